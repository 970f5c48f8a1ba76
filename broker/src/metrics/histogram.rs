//! Distributions of what happens for every event and every write: counted in place, by two additions.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::IntoF64;

/// How often something had what size. Whoever records neither waits nor allocates.
pub(crate) struct Histogram {
    name: &'static str,
    text: &'static str,
    /// Upper ends of the buckets, ascending.
    ends: &'static [f64],
    /// Counts of the buckets, and last of all values above the highest end.
    counts: Box<[AtomicU64]>,
    /// Sum of all recorded values, in billionths.
    sum_nano: AtomicU64,
}

impl Histogram {
    pub(super) fn new(name: &'static str, text: &'static str, ends: &'static [f64]) -> Self {
        let counts = (0..=ends.len()).map(|_| AtomicU64::new(0)).collect();
        Self { name, text, ends, counts, sum_nano: AtomicU64::new(0) }
    }

    /// Counts a duration, in seconds, or a number. It is 0 or more.
    pub(crate) fn record(&self, value: impl IntoF64) {
        let value = value.into_f64();
        let bucket = self.ends.partition_point(|end| *end < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no time and no batch is that large"
        )]
        self.sum_nano.fetch_add((value * 1e9) as u64, Ordering::Relaxed);
    }

    /// The counts of the buckets, and last of all of values above the highest end.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// The value that this share of the values in these counts is at most, by a straight line through its bucket; for values above
    /// the highest end that end. `None` without values.
    pub(super) fn quantile(&self, counts: &[u64], share: f64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share of so many is not that exact")]
        let float = |count: u64| count as f64;
        let wanted = float(counts.iter().sum()) * share;
        let mut below = 0;
        let mut begin = 0.0;
        for (end, count) in self.ends.iter().zip(counts) {
            if *count > 0 && float(below + count) >= wanted {
                return Some(begin + (end - begin) * (wanted - float(below)) / float(*count));
            }
            below += count;
            begin = *end;
        }
        (wanted > 0.0).then_some(begin)
    }

    /// Appends it as Prometheus text.
    pub(super) fn render(&self, out: &mut String) {
        let Self { name, text, ends, counts, sum_nano } = self;
        let mut count = 0;
        #[expect(clippy::cast_precision_loss, reason = "a sum of times")]
        let sum = sum_nano.load(Ordering::Relaxed) as f64 / 1e9;
        write!(out, "# HELP {name} {text}\n# TYPE {name} histogram\n").expect("a text grows");
        for (end, counted) in ends.iter().zip(counts) {
            count += counted.load(Ordering::Relaxed);
            writeln!(out, "{name}_bucket{{le=\"{end}\"}} {count}").expect("a text grows");
        }
        count += counts[ends.len()].load(Ordering::Relaxed);
        write!(out, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n\n")
            .expect("a text grows");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_is_shown_as_prometheus_reads_it() {
        let histogram = Histogram::new("n", "What it is.", &[0.001, 1.0]);
        histogram.record(Duration::from_millis(1));
        histogram.record(0.5);
        histogram.record(2.0);
        let mut text = String::new();
        histogram.render(&mut text);
        let expected = [
            "# HELP n What it is.",
            "# TYPE n histogram",
            "n_bucket{le=\"0.001\"} 1",
            "n_bucket{le=\"1\"} 2",
            "n_bucket{le=\"+Inf\"} 3",
            "n_sum 2.501",
            "n_count 3",
            "",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}
