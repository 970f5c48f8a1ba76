//! Figures as Prometheus writes them.

use std::collections::HashMap;

/// Figures by name and labels, as they are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(HashMap<String, f64>);

/// Observations of a histogram between two looks: their count, median and 99th percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) count: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Figures {
    /// Reads Prometheus text; what is none of it is passed over.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let figure = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.trim().to_owned(), value.parse().ok()?))
        };
        Self(lines.filter_map(figure).collect())
    }

    /// The figure of this name, or the sum of those that it has by labels.
    pub(super) fn sum(&self, name: &str) -> Option<f64> {
        let of_name =
            |key: &str| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'));
        let found = self.0.iter().filter(|(key, _)| of_name(key)).map(|(_, value)| *value);
        found.reduce(|sum, value| sum + value)
    }

    /// Observations that came to a histogram since an earlier look. `None` where none came.
    pub(super) fn spread(&self, before: &Self, name: &str) -> Option<Spread> {
        let prefix = format!("{name}_bucket{{le=\"");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (key, value) in &self.0 {
            let Some(end) = key.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix("\"}")) else {
                continue;
            };
            let end = if end == "+Inf" { f64::INFINITY } else { end.parse().ok()? };
            buckets.push((end, value - before.0.get(key).copied().unwrap_or_default()));
        }
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = buckets.last()?.1;
        if total < 1.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of 1 or more")]
        let count = total as u64;
        Some(Spread { count, p50: quantile(&buckets, total * 0.5), p99: quantile(&buckets, total * 0.99) })
    }
}

/// Where so many of the values lie below: on the line from the beginning of a bucket to its end. Beyond the last end it is that end.
fn quantile(buckets: &[(f64, f64)], rank: f64) -> f64 {
    let mut begin = (0.0, 0.0);
    for &(end, below) in buckets {
        if below >= rank && end.is_finite() {
            let (from, already) = begin;
            return from + (end - from) * ((rank - already) / (below - already)).clamp(0.0, 1.0);
        }
        if end.is_finite() {
            begin = (end, below);
        }
    }
    begin.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP a b\na_total 3\nb{cause=\"x\"} 1\nb{cause=\"y y\"} 2\nbb 9\nnonsense\n\
        t_bucket{le=\"0.1\"} 10\nt_bucket{le=\"0.2\"} 30\nt_bucket{le=\"+Inf\"} 40\nt_count 40\n";

    #[test]
    fn figures_are_found_by_name() {
        let figures = Figures::parse(TEXT);
        assert_eq!(
            [figures.sum("a_total"), figures.sum("b"), figures.sum("c")],
            [Some(3.0), Some(3.0), None]
        );
    }

    #[test]
    fn spreads_are_of_what_came_in_between() {
        let figures = Figures::parse(TEXT);
        let none = Figures::default();
        let spread = figures.spread(&none, "t").unwrap();
        assert_eq!(spread.count, 40);
        assert!((spread.p50 - 0.15).abs() < 1e-9 && (spread.p99 - 0.2).abs() < 1e-9, "{spread:?}");
        assert_eq!(figures.spread(&figures.clone(), "t"), None);
        assert_eq!(figures.spread(&none, "u"), None);
        let later =
            Figures::parse("t_bucket{le=\"0.1\"} 14\nt_bucket{le=\"0.2\"} 34\nt_bucket{le=\"+Inf\"} 44\n");
        let spread = later.spread(&figures, "t").unwrap();
        assert!(spread.count == 4 && (spread.p50 - 0.05).abs() < 1e-9, "{spread:?}");
    }
}
