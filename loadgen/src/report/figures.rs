//! What is made of a record before it is shown: tables that the terminal, the page and comparisons have in common.

use std::collections::BTreeMap;
use std::ops::Range;

use super::record::{Record, Second, Slope, Totals, Usage};
use super::table::Table;
use super::text::{bytes, count, counted, digits, float, microseconds};

/// What a process used while it was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub(super) cores: f64,
    pub(super) busiest_thread_cores: f64,
    pub(super) resident_bytes_max: u64,
}

impl Record {
    /// The rows of the measured time.
    pub(super) fn measured(&self) -> impl Iterator<Item = &Second> {
        let part = self.measured_part();
        self.timeline.iter().filter(move |second| second.is_in(&part))
    }

    /// The measured time, in seconds from the start of the run.
    pub(super) fn measured_part(&self) -> Range<f64> {
        self.warm_up_s..self.warm_up_s + self.measured_s
    }

    /// So many a second of the measured time.
    pub(super) fn a_second(&self, count: u64) -> f64 {
        if self.measured_s > 0.0 { float(count) / self.measured_s } else { 0.0 }
    }

    pub(super) fn used(&self, who: fn(&Second) -> Option<Usage>) -> Option<Used> {
        let rows: Vec<(f64, Usage)> =
            self.measured().filter_map(|second| Some((second.span_s, who(second)?))).collect();
        let span_s: f64 = rows.iter().map(|(span_s, _)| span_s).sum();
        if span_s <= 0.0 {
            return None;
        }
        let mean = |figure: fn(&Usage) -> f64| {
            rows.iter().map(|(row_s, usage)| row_s * figure(usage)).sum::<f64>() / span_s
        };
        Some(Used {
            cores: mean(|usage| usage.cpu_cores),
            busiest_thread_cores: mean(|usage| usage.busiest_thread_cores),
            resident_bytes_max: rows.iter().map(|(_, usage)| usage.resident_bytes).max()?,
        })
    }

    /// Processor time for each of a number of things, in microseconds.
    pub(super) fn us_each(&self, used: Option<Used>, count: u64) -> Option<f64> {
        let used = used.filter(|_| count > 0)?;
        Some(used.cores * self.measured_s * 1e6 / float(count))
    }

    /// What was lost, refused or wrong; what did not happen is left out.
    pub(super) fn losses(&self) -> Table {
        let mut table = Table::with_words(&["lost or wrong", "", ""]);
        let totals = &self.totals;
        let mut row = |what: &str, number: u64, more: String| {
            if number > 0 {
                table.row([what.to_owned(), count(number), more]);
            }
        };
        if let Some(check) = &self.check {
            row("missing", check.missing, format!("of {} required", count(check.required)));
            row("spurious", check.spurious, String::new());
            let came = count(check.came + check.superfluous);
            row(
                "superfluous",
                check.superfluous,
                format!("of {came} that came, thrown away by the receiver"),
            );
        }
        let duplicates = self.check.as_ref().map_or(0, |check| check.duplicates).max(totals.duplicates);
        row("duplicates", duplicates, String::new());
        row("out of order", totals.out_of_order, String::new());
        row("errors", totals.errors_count(), kinds(&totals.errors));
        row(
            "lost, and told by gaps",
            totals.gap_deliveries,
            format!("in {}", counted(totals.gaps, "gap", "gaps")),
        );
        row("events refused", totals.events.refused_count(), kinds(&totals.events.refused));
        row("moves refused", totals.moves.refused_count(), kinds(&totals.moves.refused));
        row("left over at the end", totals.left_over, String::new());
        table
    }

    pub(super) fn latency_table(&self) -> Table {
        let mut table =
            Table::new(&["latency", "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
        for latency in self.latencies.iter().filter(|latency| latency.count > 0) {
            let figures = [latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.p9999_us];
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of u64")]
            let mean = microseconds(latency.mean_us.round() as u64);
            let first = [latency.name.clone(), count(latency.count), mean];
            let last = figures.into_iter().chain([latency.max_us]).map(microseconds);
            table.row(first.into_iter().chain(last));
        }
        table
    }

    pub(super) fn throughput(&self) -> Table {
        let mut table = Table::new(&["throughput", "intended", "sent", "accepted", "a second"]);
        let Totals { events, moves, .. } = &self.totals;
        // Few moves ask for an answer.
        for (name, requests, done) in [("events", events, events.accepted), ("moves", moves, moves.sent)] {
            if requests.intended > 0 {
                let counts = [requests.intended, requests.sent, requests.accepted].map(count);
                let rate = digits(self.a_second(done));
                table.row([name.to_owned()].into_iter().chain(counts).chain([rate]));
            }
        }
        let mut alone = |name: &str, total: String, rate: String| {
            table.row([name.to_owned(), String::new(), String::new(), total, rate]);
        };
        let totals = &self.totals;
        alone("deliveries", count(totals.deliveries), digits(self.a_second(totals.deliveries)));
        let rate = |total: u64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of bytes")]
            bytes(self.a_second(total).round() as u64)
        };
        alone("to the target", bytes(totals.bytes_out), rate(totals.bytes_out));
        alone("from the target", bytes(totals.bytes_in), rate(totals.bytes_in));
        if totals.reconnects > 0 {
            alone("reconnects", count(totals.reconnects), digits(self.a_second(totals.reconnects)));
        }
        table
    }

    /// Target and load, with what they used.
    fn processes(&self) -> impl Iterator<Item = (String, Used, [Option<Slope>; 2])> {
        let threads = counted(self.load_threads.into(), "thread", "threads");
        let (slopes, load) = (self.slopes, format!("the load ({threads})"));
        let target = self.used(|second| second.broker);
        let load_used = self.used(|second| second.load);
        let target =
            target.map(|used| (self.target.name.clone(), used, [slopes.broker_mb, slopes.broker_cores]));
        let load = load_used.map(|used| (load, used, [slopes.load_mb, slopes.load_cores]));
        target.into_iter().chain(load)
    }

    pub(super) fn costs(&self) -> Table {
        let mut table = Table::new(&[
            "processor, memory",
            "cores",
            "busiest thread",
            "µs an event",
            "µs a delivery",
            "memory",
        ]);
        for (name, used, _) in self.processes() {
            let each = |count| self.us_each(Some(used), count).map_or_else(|| "-".to_owned(), digits);
            table.row([
                name,
                digits(used.cores),
                digits(used.busiest_thread_cores),
                each(self.totals.events.accepted),
                each(self.totals.deliveries),
                bytes(used.resident_bytes_max),
            ]);
        }
        table
    }

    /// Where memory and processor time were heading; of a run of minutes that says little, and the error how little.
    pub(super) fn slope_table(&self) -> Table {
        let mut table = Table::new(&["slope", "MB an hour", "cores an hour"]);
        for (name, _, slopes) in self.processes().filter(|(.., slopes)| slopes.iter().any(Option::is_some)) {
            table.row(
                [name]
                    .into_iter()
                    .chain(slopes.map(|slope| slope.map_or_else(|| "-".to_owned(), slope_text))),
            );
        }
        table
    }

    pub(super) fn check_table(&self) -> Table {
        let mut table = Table::new(&["compared with the oracle", ""]);
        let Some(check) = &self.check else { return table };
        let clients = format!("{} of {}", count(check.clients_checked), count(check.clients_count));
        table.row(["clients checked".to_owned(), clients]);
        for (name, number) in [
            ("deliveries required", check.required),
            ("came", check.came),
            ("missing", check.missing),
            ("spurious", check.spurious),
            ("superfluous", check.superfluous),
            ("duplicates", check.duplicates),
            ("either is right", check.ambiguous),
        ] {
            table.row([name.to_owned(), count(number)]);
        }
        if let Some(truth) = check.truth {
            table.row(["wanted by the true positions".to_owned(), count(truth.wanted)]);
            table.row(["of those by the told ones, too".to_owned(), count(truth.told)]);
            table.row(["by the told ones alone".to_owned(), count(truth.beside)]);
        }
        table
    }

    pub(super) fn trial_table(&self) -> Table {
        let mut table = Table::with_words(&["events a second", "p50", "p99", "kept", "why"]);
        for trial in &self.trials {
            table.row([
                digits(trial.rate),
                microseconds(trial.p50_us),
                microseconds(trial.p99_us),
                if trial.was_kept { "yes" } else { "no" }.to_owned(),
                trial.why.clone(),
            ]);
        }
        table
    }

    pub(super) fn milestone_table(&self) -> Table {
        let mut table = Table::new(&["milestone", "seconds"]);
        for milestone in &self.milestones {
            table.row([milestone.name.clone(), digits(milestone.seconds)]);
        }
        table
    }

    /// Scenario and target.
    pub(super) fn title(&self) -> String {
        format!("{} on {} {}", self.scenario.name, self.target.name, self.target.version)
            .trim_end()
            .to_owned()
    }

    /// Where and when, a sentence each.
    pub(super) fn circumstances(&self) -> Vec<String> {
        let machine = &self.machine;
        let processor =
            if machine.processor.is_empty() { String::new() } else { format!(" of {}", machine.processor) };
        let mut circumstances = vec![
            format!(
                "{} s measured after {} s of warm-up, seed {}, begun {}, at {}",
                digits(self.measured_s),
                digits(self.warm_up_s),
                self.scenario.seed,
                self.begun.strftime("%Y-%m-%dT%H:%M:%SZ"),
                self.target.address,
            ),
            format!(
                "{} cores{processor}, {} of memory, {}",
                machine.cores,
                bytes(machine.memory_bytes),
                machine.kernel
            ),
        ];
        circumstances.extend(self.scenario.remarks.iter().cloned());
        circumstances
    }
}

/// "12 reset, 3 timeout".
pub(super) fn kinds(kinds: &BTreeMap<String, u64>) -> String {
    let mut kinds: Vec<(&String, &u64)> = kinds.iter().filter(|(_, number)| **number > 0).collect();
    kinds.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    kinds.iter().map(|(kind, number)| format!("{} {kind}", count(**number))).collect::<Vec<_>>().join(", ")
}

pub(super) fn slope_text(slope: Slope) -> String {
    format!("{} ± {}", digits(slope.per_hour), digits(slope.error_per_hour))
}
