//! What an attack cost the ordinary clients, as a line of a table and as JSON.

use serde_json::{Value, json};

use super::attack::Attack;
use super::measure::{Aim, Plan, Seen};
use crate::fanout::pairs::Pairs;

/// What a program may grow by whatever it does: pages that its allocator keeps, and what threads and tables take once.
pub const SLACK_BYTES: u64 = 48 << 20;
/// By how much the 99th percentile may rise.
const RISE_MAX: f64 = 0.20;

/// What one attack did.
pub struct Report {
    attack: &'static Attack,
    plan: Plan,
    seen: Vec<Seen>,
}

/// What a median of ratios is, and between what it lies in 95 of 100 draws.
#[derive(Clone, Copy, Debug)]
struct Rise {
    median: f64,
    low: f64,
    high: f64,
    /// By how much the 99th percentile of the worst phase that it is compared with is above their median.
    spread: f64,
}

impl Rise {
    fn holds(self) -> bool {
        self.median < RISE_MAX.max(self.spread)
    }
}

impl Report {
    /// Makes the report of what was seen.
    #[must_use]
    pub fn new(attack: &'static Attack, plan: Plan, seen: Vec<Seen>) -> Self {
        Self { attack, plan, seen }
    }

    /// What a line of [`told`](Self::told) is about.
    pub const HEADING: &'static str = "| harm | clients | requests/s | refused | p99 ms without | beside | with | by sharing the machine and the broker | spread | by sharing the broker | in 95 of 100 draws | spread | ordinary events refused, unanswered, lost, wrong | memory before, most, after, MB | may be, MB | verdict |";
    /// Columns of it.
    pub const COLUMNS: usize = 16;

    fn aimed_at(&self, aim: Aim) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.aim == aim)
    }

    /// The 99th percentile of each phase in milliseconds.
    fn p99_ms(&self, aim: Aim) -> Vec<f64> {
        let phases = self.aimed_at(aim).filter_map(|seen| seen.phase.as_ref());
        phases.map(|phase| phase.latency_us.value_at_quantile(0.99) as f64 / 1e3).collect()
    }

    /// From phases with one aim to those with harm to the broker.
    fn rise(&self, from: Aim) -> Option<Rise> {
        let mut pairs = Pairs::default();
        for (without, with) in self.aimed_at(from).zip(self.aimed_at(Aim::Broker)) {
            if let (Some(without), Some(with)) = (&without.phase, &with.phase) {
                pairs.without.push(without.latency_us.clone());
                pairs.with.push(with.latency_us.clone());
            }
        }
        if pairs.with.is_empty() {
            return None;
        }
        let change = pairs.change(0.99);
        let harmless = self.p99_ms(from);
        let worst = harmless.iter().copied().fold(0.0, f64::max);
        Some(Rise {
            median: change.median,
            low: change.low,
            high: change.high,
            spread: worst / median(&harmless).max(f64::MIN_POSITIVE) - 1.0,
        })
    }

    /// How many of the phases with harm ended with the broker's end.
    fn deaths(&self) -> usize {
        self.aimed_at(Aim::Broker).filter(|seen| seen.died.is_some()).count()
    }

    /// Refused, unanswered, lost and wrong events of the ordinary clients.
    fn harmed(&self, aim: Aim) -> [u64; 4] {
        let phases = self.aimed_at(aim).filter_map(|seen| seen.phase.as_ref());
        let harmed = phases.map(|phase| [phase.refused, phase.unanswered, phase.lost, phase.wrong]);
        harmed.fold([0; 4], |sum, more| [0, 1, 2, 3].map(|idx| sum[idx] + more[idx]))
    }

    fn allowed_bytes(&self) -> u64 {
        self.attack.budget_bytes(self.plan.quick) + SLACK_BYTES
    }

    /// The most that a phase grew by, and of that phase what was there before, the most and after.
    fn memory(&self) -> [u64; 3] {
        let memory =
            self.aimed_at(Aim::Broker).map(|seen| [seen.before_bytes, seen.most_bytes, seen.after_bytes]);
        memory.max_by_key(|[before, most, _]| most.saturating_sub(*before)).unwrap_or_default()
    }

    /// What is not as it should be; empty when all is.
    #[must_use]
    pub fn failings(&self) -> Vec<&'static str> {
        let [before, most, _] = self.memory();
        let harmed = self.harmed(Aim::Broker).iter().sum::<u64>();
        let harmless = self.harmed(Aim::Nobody).iter().sum::<u64>();
        let failings = [
            (self.deaths() > 0, "died"),
            (self.harmed(Aim::Broker)[3] > 0, "wrong deliveries"),
            (harmed > harmless, "events refused or lost"),
            (!self.rise(Aim::Bystander).is_some_and(Rise::holds), "p99 by sharing the broker"),
            (most.saturating_sub(before) > self.allowed_bytes(), "memory"),
        ];
        failings.into_iter().filter_map(|(failed, what)| failed.then_some(what)).collect()
    }

    /// A line of a Markdown table.
    #[must_use]
    pub fn told(&self) -> String {
        let [without, beside, with] = Aim::ALL.map(|aim| median(&self.p99_ms(aim)));
        let percent = |rise: Option<Rise>, of: fn(Rise) -> f64| {
            rise.map_or_else(|| "-".to_owned(), |rise| format!("{:+.0} %", 1e2 * of(rise)))
        };
        let (machine, shared) = (self.rise(Aim::Nobody), self.rise(Aim::Bystander));
        let with_harm = || self.aimed_at(Aim::Broker);
        let phases = with_harm().count().max(1) as f64;
        let requests_per_s = with_harm().map(|seen| seen.requests_per_s).sum::<f64>() / phases;
        let refused = with_harm().map(|seen| seen.refused).sum::<u64>();
        let [before, most, after] = self.memory().map(|bytes| bytes as f64 / 1e6);
        let failings = self.failings();
        let verdict = if failings.is_empty() { "holds".to_owned() } else { failings.join(", ") };
        let deaths = match self.deaths() {
            0 => String::new(),
            deaths => format!(" ({deaths} of {phases})"),
        };
        format!(
            "| {} | {} | {requests_per_s:.0} | {refused} | {without:.2} | {beside:.2} | {with:.2} | {} | {} | {} | {} to {} | {} | {} | {before:.0}, {most:.0}, {after:.0} | {:.0} | {verdict}{deaths} |",
            self.attack.name,
            self.attack.clients.get(self.plan.quick),
            percent(machine, |rise| rise.median),
            percent(machine, |rise| rise.spread),
            percent(shared, |rise| rise.median),
            percent(shared, |rise| rise.low),
            percent(shared, |rise| rise.high),
            percent(shared, |rise| rise.spread),
            self.harmed(Aim::Broker).map(|count| count.to_string()).join(", "),
            before + self.allowed_bytes() as f64 / 1e6,
        )
    }

    /// The report as JSON, with the figures of each phase.
    #[must_use]
    pub fn document(&self) -> Value {
        let rise = |from| {
            self.rise(from).map(|rise| {
                json!({
                    "median": rise.median, "low": rise.low, "high": rise.high, "spread": rise.spread,
                    "holds": rise.holds(),
                })
            })
        };
        let phases = self.seen.iter().map(|seen| {
            let phase = seen.phase.as_ref().map(|phase| {
                let us = |quantile| phase.latency_us.value_at_quantile(quantile);
                json!({
                    "p50_us": us(0.5), "p99_us": us(0.99), "max_us": phase.latency_us.max(), "events": phase.events,
                    "refused": phase.refused, "unanswered": phase.unanswered, "lost": phase.lost, "wrong": phase.wrong,
                })
            });
            json!({
                "aim": format!("{:?}", seen.aim).to_lowercase(), "ordinary": phase, "died": seen.died,
                "resident_bytes": {"before": seen.before_bytes, "most": seen.most_bytes, "after": seen.after_bytes},
                "harm": {"requests_per_s": seen.requests_per_s, "refused": seen.refused, "failed": seen.failed},
            })
        });
        json!({
            "slug": self.attack.slug,
            "harm": self.attack.name,
            "clients": self.attack.clients.get(self.plan.quick),
            "events_per_s": self.plan.rate,
            "events_per_phase": self.plan.events,
            "budget_bytes": self.allowed_bytes(),
            "p99_rise": {"machine_and_broker": rise(Aim::Nobody), "broker": rise(Aim::Bystander)},
            "failings": self.failings(),
            "phases": phases.collect::<Vec<_>>(),
        })
    }
}

/// The one in the middle, or between the two there; no number where there is none.
fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_unstable_by(f64::total_cmp);
    let middle = figures.get(figures.len().saturating_sub(1) / 2).zip(figures.get(figures.len() / 2));
    middle.map_or(f64::NAN, |(low, high)| f64::midpoint(*low, *high))
}
