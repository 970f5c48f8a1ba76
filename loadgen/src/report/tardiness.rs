//! How late deliveries are by a delay that the target has to keep, second by second.

use std::fmt::Write as _;

use super::compare::columns;
use super::plot::{COLOURS, Line, Mark, Plot, Side};
use super::record::{Record, Second};
use super::text::float;

/// Name of the delay, in milliseconds, among the numbers of a scenario.
pub const DELAY_MS: &str = "delay_ms";

/// Figures of a second: their names, and what they are made of.
const FIGURES: [(&str, Figure); 5] = [
    ("tardiness", |second, delay_ms| Some(float(second.delivery?.max_us) / 1e3 / delay_ms)),
    ("tardiness_p50", |second, delay_ms| Some(float(second.delivery?.p50_us) / 1e3 / delay_ms)),
    ("admitted_per_s", |second, _| {
        (second.span_s > 0.0)
            .then(|| float(second.events_sent.saturating_sub(second.refused)) / second.span_s)
    }),
    ("misses", |second, _| (second.deliveries > 0).then(|| float(second.late) / float(second.deliveries))),
    ("allowance_s", |second, _| second.scraped.get("sum(nearcast_admission_allowance_seconds)").copied()),
];

type Figure = fn(&Second, f64) -> Option<f64>;

/// The seconds of several runs as comma-separated values, for runs that have a delay to keep.
///
/// `tardiness` is the longest latency of a delivery that came in a second, from when its event was due, as a share of the delay, and
/// `tardiness_p50` the median; `misses` is the share of the deliveries that took longer than the delay; `allowance_s` is how long the
/// target lets events wait, as it says itself. What is not known is empty.
#[must_use]
pub fn csv(records: &[Record]) -> String {
    let mut text = "target,at_s".to_owned();
    FIGURES.iter().for_each(|(name, _)| text.extend([",", *name]));
    text.push('\n');
    for (record, name) in records.iter().zip(columns(records, &[])) {
        let Some(delay_ms) = delay_ms(record) else { continue };
        // Names are of letters, but for what a file may say.
        let name = name.replace(['"', ',', '\n', '\r'], "");
        for second in &record.timeline {
            let _ = write!(text, "{name},{:.1}", second.at_s);
            for (_, figure) in FIGURES {
                text.push(',');
                if let Some(value) = figure(second, delay_ms) {
                    let _ = write!(text, "{value:.4}");
                }
            }
            text.push('\n');
        }
    }
    text
}

/// Plots of several runs over time, where all of them have a delay to keep.
pub(super) fn plots(records: &[Record], names: &[String]) -> Vec<Plot> {
    let shown = [
        ("Tardiness: the longest latency, as a share of the delay", "tardiness"),
        ("Admitted events", "admitted_per_s"),
        ("Misses: the share of deliveries after the delay", "misses"),
        ("Allowance: how long events may wait", "allowance_s"),
    ];
    let plot = |(title, key): (&str, &str)| {
        let figure = FIGURES.iter().find(|(name, _)| *name == key)?.1;
        let line = |(record, name): (&Record, &String)| {
            let delay_ms = delay_ms(record)?;
            let points = record.timeline.iter().map(|second| (second.at_s, figure(second, delay_ms)));
            Some(Line { name: name.clone(), points: points.collect(), mark: Mark::Joined })
        };
        let lines: Vec<Line> = records.iter().zip(names).take(COLOURS.len()).filter_map(line).collect();
        let unit = match key {
            "admitted_per_s" => "a second",
            "allowance_s" => "seconds",
            _ => "share",
        };
        (!lines.is_empty()).then(|| Plot {
            title: title.to_owned(),
            x: Side::plain("seconds since the start"),
            y: Side::plain(unit),
            shades: Vec::new(),
            lines,
        })
    };
    shown.into_iter().filter_map(plot).collect()
}

fn delay_ms(record: &Record) -> Option<f64> {
    record.scenario.parameters.get(DELAY_MS).copied().filter(|delay_ms| *delay_ms > 0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::record::Percentiles;
    use super::super::{compare, html, sample};
    use super::*;

    fn run(name: &str) -> Record {
        let mut record = sample::record();
        record.target.name = name.to_owned();
        record.scenario.parameters.insert(DELAY_MS.to_owned(), 2_000.0);
        let second = Second { at_s: 1.0, span_s: 1.0, events_sent: 640, ..Second::default() };
        record.timeline = vec![
            second.clone(),
            Second {
                at_s: 2.0,
                span_s: 2.0,
                refused: 240,
                deliveries: 50,
                late: 5,
                delivery: Some(Percentiles {
                    p50_us: 1_000_000,
                    max_us: 3_000_000,
                    ..Percentiles::default()
                }),
                scraped: BTreeMap::from([("sum(nearcast_admission_allowance_seconds)".to_owned(), 1.25)]),
                ..second
            },
        ];
        record
    }

    #[test]
    fn seconds_are_rows_and_what_is_not_known_is_empty() {
        let mut without = run("third");
        without.scenario.parameters.remove(DELAY_MS);
        let text = csv(&[run("nearcast, fixed"), run("other"), without]);
        let expected = "target,at_s,tardiness,tardiness_p50,admitted_per_s,misses,allowance_s\n\
            nearcast fixed,1.0,,,640.0000,,\n\
            nearcast fixed,2.0,1.5000,0.5000,200.0000,0.1000,1.2500\n\
            other,1.0,,,640.0000,,\n\
            other,2.0,1.5000,0.5000,200.0000,0.1000,1.2500\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn runs_with_a_delay_are_plotted_over_time() {
        let (texts, _) = html::tests::read(&compare(&[run("fixed"), run("pi")]).unwrap().html);
        for title in ["Tardiness: the longest", "Admitted events", "Misses: the share", "Allowance: how long"]
        {
            assert!(texts.contains(title), "{title}: {texts}");
        }
        let (texts, _) = html::tests::read(&compare(&[sample::record()]).unwrap().html);
        assert!(!texts.contains("Tardiness"), "{texts}");
    }
}
