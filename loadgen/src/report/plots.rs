//! Which plots a record has.

use std::collections::BTreeSet;

use super::axis::{Scale, Unit};
use super::figures::slope_text;
use super::latency::Latency;
use super::plot::{COLOURS, Line, Mark, Plot, Side};
use super::record::{Percentiles, Record, Second, Slope, Usage};
use super::text::float;

/// What is scraped has a plot for each of these, by how its name begins and ends.
const SCRAPED: [(&str, &str, &str); 5] = [
    ("mean(", "_seconds)", "How long it takes in the target, on average"),
    ("sum(", "_seconds)", "How long it waits in the target, by its estimate"),
    ("sum(", ")", "What waits and lives in the target"),
    ("rate(", ")", "What the target does"),
    ("mean(", ")", "How much the target does at once, on average"),
];

/// Shortest part of a second that a rate is given for.
const SPAN_MIN_S: f64 = 0.3;

impl Record {
    /// All plots, the most important first. Those without points are shown by nobody.
    pub(super) fn plots(&self) -> Vec<Plot> {
        let mut plots = vec![
            self.over_time(
                "Publish to delivery, over time",
                Side::latency(),
                percentiles(|second| second.delivery),
            ),
            self.percentile_curve(),
            self.over_time(
                "Throughput",
                Side::plain("a second"),
                vec![
                    self.sent("events due", |second| second.events_intended),
                    self.sent("events sent", |second| second.events_sent),
                    rate("deliveries", |second| second.deliveries),
                    self.sent("moves", |second| second.moves),
                ],
            ),
            self.over_time(
                "Refused, lost, wrong",
                Side::plain("a second"),
                vec![
                    rate("refused", |second| second.refused),
                    rate("lost, and told by gaps", |second| second.gap_deliveries),
                    rate("errors", |second| second.errors),
                ],
            ),
            self.over_time(
                "Move to in force, over time",
                Side::latency(),
                percentiles(|second| second.move_in_force),
            ),
        ];
        plots.extend(self.scraped_plots());
        let slopes = &self.slopes;
        let cores = [slopes.broker_cores, slopes.load_cores];
        plots.push(self.usage("Processor time", "cores", cores, |usage| usage.cpu_cores));
        let memory = [slopes.broker_mb, slopes.load_mb];
        plots.push(self.usage("Memory", "MB", memory, |usage| float(usage.resident_bytes) / 1e6));
        plots.push(self.trial_plot());
        plots.retain(|plot| !plot.lines.is_empty());
        plots
    }

    fn over_time(&self, title: &str, y: Side, curves: Vec<Curve>) -> Plot {
        let (unit_s, name) = match self.timeline.last().map_or(0.0, |second| second.at_s) {
            end_s if end_s <= 600.0 => (1.0, "seconds"),
            end_s if end_s <= 10_800.0 => (60.0, "minutes"),
            _ => (3_600.0, "hours"),
        };
        let last_s = self.timeline.last().map_or(0.0, |second| second.at_s);
        let shades = [0.0..self.warm_up_s, self.warm_up_s + self.measured_s..last_s].into_iter();
        let shades = shades.map(|shade| shade.start / unit_s..shade.end / unit_s);
        let line = |(name, figure): Curve| {
            let points = self.timeline.iter().map(|second| (second.at_s / unit_s, figure(second)));
            Line { name, points: points.collect(), mark: Mark::Joined }
        };
        let lines = curves.into_iter().map(line).filter(is_something).collect();
        Plot {
            title: title.to_owned(),
            x: Side::plain(&format!("{name} since the start; shaded: warm-up, and waiting for the rest")),
            y,
            shades: shades.filter(|shade| shade.end > shade.start).collect(),
            lines,
        }
    }

    /// How often the load did something, until its last step was due: it waits for what is still to come then.
    fn sent(&self, name: &str, count: fn(&Second) -> u64) -> Curve {
        let end_s = self.warm_up_s + self.measured_s;
        let figure = move |second: &Second| {
            let span_s = second.at_s.min(end_s) - (second.at_s - second.span_s);
            (span_s >= SPAN_MIN_S).then(|| float(count(second)) / span_s)
        };
        (name.to_owned(), Box::new(figure))
    }

    fn percentile_curve(&self) -> Plot {
        let latencies = self.latencies.iter().filter(|latency| latency.count > 0).take(COLOURS.len());
        Plot::by_percentile(latencies.filter_map(|latency| percentile_line(latency, &latency.name)).collect())
    }

    fn scraped_plots(&self) -> Vec<Plot> {
        let mut names: BTreeSet<&String> =
            self.timeline.iter().flat_map(|second| second.scraped.keys()).collect();
        let mut plots = Vec::new();
        for (head, tail, title) in SCRAPED {
            let (these, others) =
                names.into_iter().partition(|name| name.starts_with(head) && name.ends_with(tail));
            names = others;
            let mut curves: Vec<Curve> = Vec::new();
            for name in Vec::from_iter(these as BTreeSet<&String>) {
                let is_time = tail == "_seconds)";
                let label =
                    name.trim_start_matches(head).trim_end_matches(')').trim_start_matches("nearcast_");
                let label = label.trim_end_matches("_total").trim_end_matches("_seconds").replace('_', " ");
                let key = name.clone();
                let factor = if is_time { 1e6 } else { 1.0 };
                curves.push((label, Box::new(move |second| Some(second.scraped.get(&key)? * factor))));
            }
            let y = match (head, tail) {
                (_, "_seconds)") => Side::latency(),
                ("rate(", _) => Side::plain("a second"),
                _ => Side::plain("how many"),
            };
            let plot = self.over_time(title, y, curves);
            for lines in plot.lines.chunks(COLOURS.len()) {
                plots.push(Plot { lines: lines.to_vec(), ..plot.clone() });
            }
        }
        plots
    }

    fn usage(&self, title: &str, unit: &str, slopes: [Option<Slope>; 2], figure: fn(Usage) -> f64) -> Plot {
        let [target, load] = slopes.map(|slope| {
            slope.map_or_else(String::new, |slope| format!(": {} {unit} an hour", slope_text(slope)))
        });
        let curves: Vec<Curve> = vec![
            (format!("{}{target}", self.target.name), Box::new(move |second| second.broker.map(figure))),
            (format!("the load{load}"), Box::new(move |second| second.load.map(figure))),
        ];
        self.over_time(title, Side::plain(unit), curves)
    }

    fn trial_plot(&self) -> Plot {
        let line = |name: &str, was_kept: bool| {
            let trials = self.trials.iter().filter(|trial| trial.was_kept == was_kept && trial.p99_us > 0);
            let points = trials.map(|trial| (trial.rate, Some(float(trial.p99_us)))).collect();
            Line { name: name.to_owned(), points, mark: Mark::Alone }
        };
        Plot {
            title: "Rates that were tried".to_owned(),
            x: Side::plain("events a second"),
            y: Side { name: "p99".to_owned(), ..Side::latency() },
            shades: Vec::new(),
            lines: vec![line("kept the bound", true), line("did not", false)]
                .into_iter()
                .filter(|line| !line.points.is_empty())
                .collect(),
        }
    }
}

impl Plot {
    /// As HdrHistogram's plotter shows them: each nine has as much room as the one before.
    pub(super) fn by_percentile(lines: Vec<Line>) -> Self {
        let x = Side { name: "percentile".to_owned(), scale: Scale::Log, unit: Unit::Percentile };
        Self {
            title: "By percentile, while measured".to_owned(),
            x,
            y: Side::latency(),
            shades: Vec::new(),
            lines,
        }
    }
}

/// The line of a latency by percentile; none where its histogram is damaged, for its figures are in the table.
pub(super) fn percentile_line(latency: &Latency, name: &str) -> Option<Line> {
    let histogram = latency.histogram().ok()?;
    let last = float(histogram.len());
    let steps = std::iter::successors(Some(1.0_f64), |ratio| Some(ratio * 1.05));
    let steps = steps.take_while(|ratio| *ratio < last).chain([last]);
    let point = |ratio: f64| (ratio, Some(float(histogram.value_at_quantile(1.0 - 1.0 / ratio).max(1))));
    Some(Line { name: name.to_owned(), points: steps.map(point).collect(), mark: Mark::Joined })
}

type Curve = (String, Box<dyn Fn(&Second) -> Option<f64>>);

/// A line that is zero all along says nothing.
fn is_something(line: &Line) -> bool {
    line.points.iter().any(|(_, value)| value.is_some_and(|value| value != 0.0))
}

fn rate(name: &str, count: fn(&Second) -> u64) -> Curve {
    (
        name.to_owned(),
        Box::new(move |second| (second.span_s > 0.0).then(|| float(count(second)) / second.span_s)),
    )
}

fn percentiles(of: fn(&Second) -> Option<Percentiles>) -> Vec<Curve> {
    let curve = |name: &str, pick: fn(Percentiles) -> u64| -> Curve {
        // The least that a logarithmic axis can show.
        (name.to_owned(), Box::new(move |second| Some(float(pick(of(second)?).max(1)))))
    };
    vec![
        curve("p50", |these| these.p50_us),
        curve("p90", |these| these.p90_us),
        curve("p99", |these| these.p99_us),
        curve("p99.9", |these| these.p999_us),
        curve("max", |these| these.max_us),
    ]
}

impl Side {
    pub(super) fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), scale: Scale::Linear, unit: Unit::Plain }
    }

    pub(super) fn latency() -> Self {
        Self { name: String::new(), scale: Scale::Log, unit: Unit::Microseconds }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_is_sent_has_a_rate_until_the_last_step_and_what_comes_has_one_until_it_is_quiet() {
        let mut record = sample::record();
        let end_s = record.warm_up_s + record.measured_s;
        let row =
            |at_s: f64| Second { at_s, span_s: 1.0, events_sent: 40, deliveries: 300, ..Second::default() };
        // Of the first 0.4 s were load, of the second nothing was.
        record.timeline = vec![row(end_s - 0.6), row(end_s + 0.6), row(end_s + 1.6)];
        let plots = record.plots();
        let throughput = plots.iter().find(|plot| plot.title == "Throughput").unwrap();
        let values = |name: &str| -> Vec<Option<f64>> {
            let line = throughput.lines.iter().find(|line| line.name == name).unwrap();
            line.points.iter().map(|(_, value)| value.map(f64::round)).collect()
        };
        assert_eq!(values("events sent"), [Some(40.0), Some(100.0), None]);
        assert_eq!(values("deliveries"), [Some(300.0), Some(300.0), Some(300.0)]);
    }
}
