//! Whether what came was right, and whether the figures are the target's.

use super::latency::LATENESS;
use super::record::Record;
use super::text;

/// Where of a hundred things the load was later with one than this, and that is a tenth of the latency, the latency is partly its own.
const LATE_US: u64 = 1_000;
/// Share of a core that counts as a whole one.
const WHOLE_CORE: f64 = 0.95;
/// Share of the seconds in which it may happen.
const SECONDS_SHARE: f64 = 0.1;

/// What to think of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether what came was right.
    pub answer: Answer,
    /// What was wrong or was not carried, a sentence each.
    pub faults: Vec<String>,
    /// Why figures are of the load, or of the machine, rather than of the target; a sentence each, none where they are the target's.
    pub doubts: Vec<String>,
}

/// Whether what came was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All that was looked at.
    Right,
    /// All that was looked at, but not everything was carried: the target refused, lost and told so, did not answer, or broke off.
    Incomplete,
    /// Not all of it.
    Wrong,
    /// Nobody looked.
    Unchecked,
}

impl Record {
    /// What to think of it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let (mut faults, not_carried) = (self.faults(), self.not_carried());
        let was_checked =
            self.measured_s > 0.0 && self.check.as_ref().is_some_and(|check| check.required > 0);
        let answer = match (faults.is_empty(), not_carried.is_empty(), was_checked) {
            (false, ..) => Answer::Wrong,
            (true, false, _) => Answer::Incomplete,
            (true, true, true) => Answer::Right,
            (true, true, false) => Answer::Unchecked,
        };
        faults.extend(not_carried);
        Verdict { answer, faults, doubts: self.doubts() }
    }

    /// What the target did not carry, and said so or broke off.
    fn not_carried(&self) -> Vec<String> {
        let totals = &self.totals;
        let refused = totals.events.refused_count() + totals.moves.refused_count();
        let mut all = Vec::new();
        let mut add = |number: u64, one: &str, many: &str, what: &str| {
            if number > 0 {
                all.push(format!("{} {what}", text::counted(number, one, many)));
            }
        };
        add(refused, "request", "requests", "refused");
        add(totals.left_over, "event", "events", "never answered");
        add(totals.gap_deliveries, "delivery", "deliveries", "lost, as gaps told");
        for (error, times) in &totals.errors {
            add(*times, "time", "times", &format!("an error: {error}"));
        }
        all
    }

    fn faults(&self) -> Vec<String> {
        let check = self.check.clone().unwrap_or_default();
        let missing = format!("of {} required did not come", text::count(check.required));
        let faults = [
            (check.missing, missing.as_str()),
            (check.spurious, "came that should not have"),
            (check.duplicates.max(self.totals.duplicates), "came again"),
            (self.totals.out_of_order, "came out of order"),
            (self.totals.holes, "are missing in their sessions, and no gap told of them"),
        ];
        let faults = faults.into_iter().filter(|(number, _)| *number > 0);
        faults
            .map(|(number, what)| format!("{} {what}", text::counted(number, "delivery", "deliveries")))
            .collect()
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let Some(late) = self.latency(LATENESS).filter(|late| late.p99_us > LATE_US) {
            let (whole, of) = match self.latency(super::latency::DELIVERY) {
                Some(delivery) if delivery.count > 0 => (
                    delivery.p99_us,
                    format!(", where the p99 of delivery is {}", text::microseconds(delivery.p99_us)),
                ),
                _ => (0, String::new()),
            };
            if late.p99_us.saturating_mul(10) > whole {
                doubts.push(format!("the load was late by {} (p99){of}", text::microseconds(late.p99_us)));
            }
        }
        let seconds: Vec<_> = self.measured().collect();
        let often = |is: &dyn Fn(&super::record::Second) -> bool| {
            let count = seconds.iter().filter(|second| is(second)).count() as u64;
            text::float(count) > SECONDS_SHARE * text::float(seconds.len() as u64)
        };
        if often(&|second| second.load.is_some_and(|load| load.busiest_thread_cores >= WHOLE_CORE)) {
            doubts.push(
                "a thread of the load had a whole core to do: it may have been the bottleneck".to_owned(),
            );
        }
        let cores = f64::from(self.machine.cores);
        let is_full = |second: &super::record::Second| {
            let both = second.broker.zip(second.load);
            both.is_some_and(|(broker, load)| broker.cpu_cores + load.cpu_cores >= WHOLE_CORE * cores)
        };
        if cores > 0.0 && often(&is_full) {
            doubts.push(
                "target and load used all of the machine's cores: each took them from the other".to_owned(),
            );
        }
        doubts
    }
}

impl Verdict {
    /// Whether it was looked at, and right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.answer == Answer::Right
    }

    /// Whether the figures are the target's.
    #[must_use]
    pub fn is_of_target(&self) -> bool {
        self.doubts.is_empty()
    }

    /// In a few words.
    #[must_use]
    pub fn headline(&self) -> String {
        let answer = self.answer.text();
        let of = match (self.answer, self.is_of_target()) {
            (Answer::Wrong | Answer::Incomplete, true) => return answer.to_owned(),
            (_, true) => "; the load kept up",
            (_, false) => "; and the figures are partly the load's own",
        };
        format!("{answer}{of}")
    }
}

impl Answer {
    /// In a word or two.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Incomplete => "NOT ALL WAS CARRIED",
            Self::Wrong => "WRONG",
            Self::Unchecked => "not checked",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::latency::Latency;
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_missing_is_wrong_and_what_was_told_is_incomplete() {
        let mut record = sample::record();
        assert_eq!(record.verdict().answer, Answer::Right, "{:?}", record.verdict());
        let is_incomplete = |change: fn(&mut Record)| {
            let mut record = sample::record();
            change(&mut record);
            record.verdict().answer == Answer::Incomplete
        };
        assert!(is_incomplete(|record| record.totals.gap_deliveries = 40));
        assert!(is_incomplete(|record| record.totals.left_over = 1));
        assert!(is_incomplete(|record| record.totals.errors = [("reset".to_owned(), 3)].into()));
        assert!(is_incomplete(|record| {
            record.totals.events.refused = [("overloaded".to_owned(), 3)].into();
        }));
        record.check.as_mut().unwrap().missing = 1;
        assert_eq!(record.verdict().faults, ["1 delivery of 240,000 required did not come"]);
        record.check = None;
        assert_eq!(record.verdict().answer, Answer::Unchecked);
        record.totals.out_of_order = 1;
        assert_eq!(record.verdict().answer, Answer::Wrong);
    }

    #[test]
    fn a_load_that_did_not_keep_up_says_so() {
        let is_of_target = |change: fn(&mut Record)| {
            let mut record = sample::record();
            change(&mut record);
            record.verdict().is_of_target()
        };
        assert!(is_of_target(|_| ()), "{:?}", sample::record().verdict());
        assert!(!is_of_target(|record| {
            let late = record.latencies.iter_mut().find(|latency| latency.name == LATENESS).unwrap();
            *late = Latency { p99_us: 40_000, ..late.clone() };
        }));
        assert!(!is_of_target(|record| {
            let loads = record.timeline.iter_mut().filter_map(|second| second.load.as_mut());
            loads.for_each(|load| load.busiest_thread_cores = 0.99);
        }));
        assert!(!is_of_target(|record| record.machine.cores = 1));
    }
}
