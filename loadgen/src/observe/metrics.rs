//! What the broker says of itself at `/metrics`.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::MetricsAt;

/// So long an answer may take. An overloaded broker then has seconds without figures, which says something, too.
const PATIENCE: Duration = Duration::from_millis(800);

/// What is made of a metric, over all of its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// The value of a gauge.
    Sum,
    /// How much more a counter has a second.
    Rate,
    /// The mean of what came to a histogram since the last time.
    Mean,
}

/// What is taken down: what waits, what is lost, what is done, and how long that takes.
const CHOSEN: [(Made, &str); 23] = [
    (Made::Sum, "nearcast_queue_depth"),
    (Made::Sum, "nearcast_kept_matches"),
    (Made::Sum, "nearcast_readers_behind"),
    (Made::Sum, "nearcast_live_objects"),
    (Made::Sum, "nearcast_store_log_rows"),
    (Made::Sum, "nearcast_admission_wait_seconds"),
    (Made::Sum, "nearcast_runtime_lag_seconds"),
    (Made::Sum, "nearcast_admission_allowance_seconds"),
    (Made::Sum, "nearcast_admission_tardiness_ratio"),
    (Made::Rate, "nearcast_events_total"),
    (Made::Rate, "nearcast_moves_total"),
    (Made::Rate, "nearcast_matches_total"),
    (Made::Rate, "nearcast_deliveries_total"),
    (Made::Rate, "nearcast_frames_sent_total"),
    (Made::Rate, "nearcast_drops_total"),
    (Made::Rate, "nearcast_gap_offsets_total"),
    (Made::Rate, "nearcast_admission_refused_total"),
    (Made::Mean, "nearcast_batch_events"),
    (Made::Mean, "nearcast_queue_seconds"),
    (Made::Mean, "nearcast_match_seconds"),
    (Made::Mean, "nearcast_writer_wait_seconds"),
    (Made::Mean, "nearcast_publish_to_write_seconds"),
    (Made::Mean, "nearcast_store_commit_seconds"),
];

/// Asks for the text, second by second.
#[derive(Debug)]
pub(super) struct Scraper {
    at: MetricsAt,
    last: Option<(Instant, Samples)>,
    /// Why the last request that failed did.
    pub(super) failure: Option<String>,
}

impl Scraper {
    pub(super) fn new(at: MetricsAt) -> Self {
        Self { at, last: None, failure: None }
    }

    /// What the text says now, and what has changed since it was read before; nothing where it cannot be read.
    pub(super) fn scrape(&mut self) -> BTreeMap<String, f64> {
        match self.at.endpoint.get("/metrics", self.at.token.as_deref(), PATIENCE) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                let (now, samples) = (Instant::now(), Samples::parse(&text));
                let scraped = samples.figures(self.last.as_ref().map(|(at, last)| (now - *at, last)));
                self.last = Some((now, samples));
                scraped
            }
            Err(why) => {
                self.failure = Some(why.to_string());
                BTreeMap::new()
            }
        }
    }
}

/// All samples, added up over their labels, so that their number does not matter.
#[derive(Debug, Default)]
struct Samples(HashMap<String, f64>);

impl Samples {
    fn parse(text: &str) -> Self {
        let mut sums = HashMap::new();
        for (name, value) in text.lines().filter_map(sample) {
            // Buckets would be most of it.
            if !name.ends_with("_bucket") {
                *sums.entry(name.to_owned()).or_insert(0.0) += value;
            }
        }
        Self(sums)
    }

    fn figures(&self, last: Option<(Duration, &Self)>) -> BTreeMap<String, f64> {
        let figure = |(made, name): &(Made, &str)| {
            let risen = |name: &str| {
                // A broker that was started again counts from zero.
                Some((self.0.get(name)? - last?.1.0.get(name)?).max(0.0))
            };
            let (text, value) = match made {
                Made::Sum => ("sum", *self.0.get(*name)?),
                Made::Rate => ("rate", risen(name)? / last?.0.as_secs_f64().max(1e-3)),
                Made::Mean => {
                    let count = risen(&format!("{name}_count"))?;
                    let sum = risen(&format!("{name}_sum"))?;
                    ("mean", (count > 0.0).then(|| sum / count)?)
                }
            };
            Some((format!("{text}({name})"), value))
        };
        CHOSEN.iter().filter_map(figure).collect()
    }
}

/// The name and the value in a line of Prometheus' text; none in comments, and of values that are no numbers.
fn sample(line: &str) -> Option<(&str, f64)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_at(line.find(['{', ' ', '\t'])?);
    let rest = if rest.starts_with('{') { behind_labels(rest)? } else { rest };
    // A time may follow.
    let value: f64 = rest.split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((name, value))
}

/// What follows the braces. Texts between quotes may hold braces and, behind a backslash, quotes.
fn behind_labels(text: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return text.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a broker said, with fewer buckets and comments.
    const BEFORE: &str = include_str!("metrics_before.txt");
    const AFTER: &str = include_str!("metrics_after.txt");
    /// Two seconds were between them.
    const FIGURES: [(&str, f64); 7] = [
        ("sum(nearcast_runtime_lag_seconds)", 0.000_314_217),
        ("rate(nearcast_matches_total)", 2.0),
        ("rate(nearcast_moves_total)", 0.5),
        ("rate(nearcast_drops_total)", 2.0),
        ("mean(nearcast_batch_events)", 1.0),
        ("mean(nearcast_queue_seconds)", 0.000_089_151_25),
        ("mean(nearcast_match_seconds)", 0.000_008_978_375),
    ];

    #[test]
    fn what_the_broker_says_becomes_values_rates_and_means() {
        let (before, after) = (Samples::parse(BEFORE), Samples::parse(AFTER));
        let first = before.figures(None);
        assert_eq!(first.get("sum(nearcast_queue_depth)"), Some(&0.0));
        assert!(first.keys().all(|name| name.starts_with("sum(")), "{first:?}");
        let figures = after.figures(Some((Duration::from_secs(2), &before)));
        for (name, expected) in FIGURES {
            let found = figures.get(name).copied();
            assert!(
                found.is_some_and(|found| (found - expected).abs() < 1e-9),
                "{name}: {found:?}, {expected}"
            );
        }
        assert_eq!(figures.get("mean(nearcast_store_commit_seconds)"), None, "nothing was committed");
    }

    #[test]
    fn labels_may_hold_anything() {
        let line = r#"odd{a="}\"} 7",b="x y"} 3.5e2 1395066363000"#;
        assert_eq!(sample(line), Some(("odd", 350.0)));
        assert_eq!(sample("plain 4"), Some(("plain", 4.0)));
        for nothing in ["", "# HELP a 3", "lone", "open{a=\"} 3", "nan NaN", "much +Inf", "text four", "{}"] {
            assert_eq!(sample(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_counter_that_began_again_has_not_fallen() {
        let (before, after) =
            (Samples::parse("nearcast_moves_total 9"), Samples::parse("nearcast_moves_total 4"));
        let figures = after.figures(Some((Duration::from_secs(1), &before)));
        assert_eq!(figures.get("rate(nearcast_moves_total)"), Some(&0.0));
    }
}
