//! Several runs side by side: of several targets, or of one whose load was swept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::figures::kinds;
use super::html::{document, section, text};
use super::latency::{DELIVERY, Latency, MOVE_DELIVERY, MOVE_IN_FORCE};
use super::plot::{COLOURS, Line, Mark, Plot, Side};
use super::plots::percentile_line;
use super::record::Record;
use super::table::Table;
use super::tardiness;
use super::text::{bytes, count, digits, float, microseconds};

/// Runs side by side.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Tables in Markdown, their columns aligned for a terminal.
    pub markdown: String,
    /// A page with plots, too, that needs nothing beside it.
    pub html: String,
}

/// Puts runs beside each other, a column each, in their order. Where they differ in a number of their scenarios, plots go over it.
///
/// # Errors
/// When a plot cannot be drawn.
pub fn compare(records: &[Record]) -> anyhow::Result<Comparison> {
    let swept = swept(records);
    let names = columns(records, &swept);
    let tables = [figures(records, &names), latencies(records, &names)];
    let title = title(records);
    let mut markdown = format!("# {}\n", table_text(&title));
    let mut body = format!("<h1>{}</h1>\n", text(&title));
    for table in tables.iter().filter(|table| !table.is_empty()) {
        let _ = write!(markdown, "\n{}", table.to_markdown());
    }
    section(&mut body, "", &tables);
    let notes: Vec<(String, String)> = records
        .iter()
        .zip(&names)
        .flat_map(|(record, name)| record.notes().into_iter().map(move |note| (name.clone(), note)))
        .collect();
    if !notes.is_empty() {
        markdown.push('\n');
        body.push_str("<h2>To be known</h2>\n<ul>\n");
    }
    for (name, note) in &notes {
        let _ = writeln!(markdown, "- {}: {}", table_text(name), table_text(note));
        let _ = writeln!(body, "<li>{}: {}</li>", text(name), text(note));
    }
    body.push_str(if notes.is_empty() { "" } else { "</ul>\n" });
    body.push_str("<h2>Plots</h2>\n<div class=\"plots\">\n");
    let over_time = tardiness::plots(records, &names).into_iter().chain(curves(records, &names));
    for plot in over_time.chain(swept.iter().flat_map(|name| sweeps(records, name))) {
        body.push_str(&plot.to_html()?);
    }
    body.push_str("</div>\n");
    Ok(Comparison { markdown, html: document(&title, &body) })
}

impl Record {
    /// What the target does not do, and what to think of the run.
    fn notes(&self) -> Vec<String> {
        let verdict = self.verdict();
        let shortfalls = self.target.shortfalls.iter().map(|shortfall| format!("not the same: {shortfall}"));
        shortfalls.chain(verdict.faults).chain(verdict.doubts).collect()
    }
}

/// The numbers that all scenarios have and that are not the same in all.
fn swept(records: &[Record]) -> Vec<String> {
    let Some(first) = records.first() else { return Vec::new() };
    let values = |name: &String| {
        let values: Option<Vec<f64>> =
            records.iter().map(|record| record.scenario.parameters.get(name).copied()).collect();
        values.map(|values| values.into_iter().map(f64::to_bits).collect::<BTreeSet<u64>>().len())
    };
    let names = first.scenario.parameters.keys();
    names.filter(|name| values(name).is_some_and(|count| count > 1)).cloned().collect()
}

fn title(records: &[Record]) -> String {
    let scenarios: BTreeSet<&str> = records.iter().map(|record| record.scenario.name.as_str()).collect();
    format!("{}: {} runs", scenarios.into_iter().collect::<Vec<_>>().join(", "), records.len())
}

/// A name for each run: its target, and what else tells it apart.
pub(super) fn columns(records: &[Record], swept: &[String]) -> Vec<String> {
    let is_one = |pick: fn(&Record) -> &str| records.iter().map(pick).collect::<BTreeSet<&str>>().len() <= 1;
    let (one_scenario, one_version) = (is_one(|run| &run.scenario.name), is_one(|run| &run.target.version));
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    records
        .iter()
        .map(|record| {
            let mut name = record.target.name.clone();
            if !one_version && !record.target.version.is_empty() {
                let _ = write!(name, " {}", record.target.version);
            }
            if !one_scenario {
                let _ = write!(name, ", {}", record.scenario.name);
            }
            for parameter in swept {
                let value = record.scenario.parameters.get(parameter).copied().unwrap_or_default();
                let _ = write!(name, ", {parameter} {}", digits(value));
            }
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                let _ = write!(name, " ({times})");
            }
            name
        })
        .collect()
}

fn figures(records: &[Record], names: &[String]) -> Table {
    let mut table = heading("figure", names);
    let mut row = |name: &str, figure: &dyn Fn(&Record) -> String| {
        let cells: Vec<String> = records.iter().map(figure).collect();
        // What none of them has is not worth a line.
        if cells.iter().any(|cell| !matches!(cell.as_str(), "" | "-" | "0")) {
            table.row(std::iter::once(name.to_owned()).chain(cells));
        }
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let checked = |pick: fn(&super::record::Check) -> u64| {
        move |record: &Record| {
            record.check.as_ref().map_or_else(|| "-".to_owned(), |check| count(pick(check)))
        }
    };
    row("what came", &|run| run.verdict().answer.text().to_owned());
    row("the figures are", &|run| {
        if run.verdict().is_of_target() { "the target's" } else { "partly the load's" }.to_owned()
    });
    row("missing", &checked(|check| check.missing));
    row("spurious", &checked(|check| check.spurious));
    row("duplicates", &|run| count(run.totals.duplicates));
    row("out of order", &|run| count(run.totals.out_of_order));
    row("errors", &|run| kinds(&run.totals.errors));
    row("lost, and told by gaps", &|run| count(run.totals.gap_deliveries));
    row("events refused", &|run| kinds(&run.totals.events.refused));
    row("moves refused", &|run| kinds(&run.totals.moves.refused));
    row("left over at the end", &|run| count(run.totals.left_over));
    row("events intended", &|run| count(run.totals.events.intended));
    row("events accepted", &|run| count(run.totals.events.accepted));
    row("events a second", &|run| digits(run.a_second(run.totals.events.accepted)));
    row("moves a second", &|run| digits(run.a_second(run.totals.moves.sent)));
    row("deliveries", &|run| count(run.totals.deliveries));
    row("deliveries a second", &|run| digits(run.a_second(run.totals.deliveries)));
    row("bytes from the target a delivery", &|run| {
        let deliveries = run.totals.deliveries;
        or_none(run.totals.bytes_in.checked_div(deliveries).map(bytes))
    });
    let broker = |run: &Record| run.used(|second| second.broker);
    let load = |run: &Record| run.used(|second| second.load);
    row("the target's cores", &|run| or_none(broker(run).map(|used| digits(used.cores))));
    row("its µs an event", &|run| or_none(run.us_each(broker(run), run.totals.events.accepted).map(digits)));
    row("its µs a delivery", &|run| or_none(run.us_each(broker(run), run.totals.deliveries).map(digits)));
    row("its memory", &|run| or_none(broker(run).map(|used| bytes(used.resident_bytes_max))));
    row("the load's cores", &|run| or_none(load(run).map(|used| digits(used.cores))));
    let milestones: BTreeSet<&str> =
        records.iter().flat_map(|run| &run.milestones).map(|milestone| milestone.name.as_str()).collect();
    for name in milestones {
        row(&format!("{name}, s"), &|run| {
            let found = run.milestones.iter().find(|milestone| milestone.name == name);
            or_none(found.map(|milestone| digits(milestone.seconds)))
        });
    }
    row("highest rate that kept the bound", &|run| {
        let kept = run.trials.iter().filter(|trial| trial.was_kept).map(|trial| trial.rate);
        or_none(kept.reduce(f64::max).map(digits))
    });
    table
}

fn latencies(records: &[Record], names: &[String]) -> Table {
    let mut table = heading("latency", names);
    let mut kinds: Vec<&str> = Vec::new();
    for latency in records.iter().flat_map(|record| &record.latencies) {
        if latency.count > 0 && !kinds.contains(&latency.name.as_str()) {
            kinds.push(&latency.name);
        }
    }
    type Figure = fn(&Latency) -> u64;
    let figures: [(&str, Figure); 5] = [
        ("p50", |latency| latency.p50_us),
        ("p99", |latency| latency.p99_us),
        ("p99.9", |latency| latency.p999_us),
        ("p99.99", |latency| latency.p9999_us),
        ("max", |latency| latency.max_us),
    ];
    for kind in kinds {
        for (name, figure) in figures {
            let cell = |record: &Record| {
                let latency = record.latency(kind).filter(|latency| latency.count > 0);
                latency.map_or_else(|| "-".to_owned(), |latency| microseconds(figure(latency)))
            };
            table.row(std::iter::once(format!("{kind}, {name}")).chain(records.iter().map(cell)));
        }
    }
    table
}

fn heading(first: &str, names: &[String]) -> Table {
    Table::new(&std::iter::once(first).chain(names.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// For each of the most important latencies, the percentiles of all runs.
fn curves(records: &[Record], names: &[String]) -> Vec<Plot> {
    let plot = |kind: &str| {
        let runs = records.iter().zip(names).take(COLOURS.len());
        let line = |(record, name): (&Record, &String)| percentile_line(record.latency(kind)?, name);
        Plot {
            title: format!("{kind}, by percentile"),
            ..Plot::by_percentile(runs.filter_map(line).collect())
        }
    };
    [DELIVERY, MOVE_IN_FORCE, MOVE_DELIVERY]
        .map(plot)
        .into_iter()
        .filter(|plot| !plot.lines.is_empty())
        .collect()
}

/// Figures over a number in which the scenarios differ, a line for each target.
fn sweeps(records: &[Record], parameter: &str) -> Vec<Plot> {
    let targets: BTreeSet<&str> = records.iter().map(|record| record.target.name.as_str()).collect();
    let plot = |title: &str, y: Side, figure: &dyn Fn(&Record) -> Option<f64>| {
        let line = |target: &&str| {
            let runs = records.iter().filter(|record| record.target.name == **target);
            let mut points: Vec<(f64, Option<f64>)> = runs
                .filter_map(|run| Some((*run.scenario.parameters.get(parameter)?, Some(figure(run)?))))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Line { name: (*target).to_owned(), points, mark: Mark::Dots }
        };
        let lines = targets.iter().take(COLOURS.len()).map(line).filter(|line| !line.points.is_empty());
        Plot {
            title: format!("{title}, by {parameter}"),
            x: Side::plain(parameter),
            y,
            shades: Vec::new(),
            lines: lines.collect(),
        }
    };
    let latency = |pick: fn(&Latency) -> u64| {
        move |run: &Record| {
            Some(float(pick(run.latency(DELIVERY).filter(|latency| latency.count > 0)?).max(1)))
        }
    };
    vec![
        plot("Publish to delivery, p50", Side::latency(), &latency(|latency| latency.p50_us)),
        plot("Publish to delivery, p99", Side::latency(), &latency(|latency| latency.p99_us)),
        plot("Deliveries", Side::plain("a second"), &|run| Some(run.a_second(run.totals.deliveries))),
        plot("The target's processor time", Side::plain("µs a delivery"), &|run| {
            run.us_each(run.used(|second| second.broker), run.totals.deliveries)
        }),
        plot("The target's memory", Side::plain("MB"), &|run| {
            Some(float(run.used(|second| second.broker)?.resident_bytes_max) / 1e6)
        }),
    ]
}

/// A text from outside, within Markdown.
fn table_text(text: &str) -> String {
    super::table::clean(text).replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::super::{html, sample};
    use super::*;

    /// Without the spaces that make columns.
    fn squeezed(markdown: &str) -> String {
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        markdown.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn targets_are_columns_with_what_they_do_not_do() {
        let mut peer = sample::record();
        peer.target.name = "mosquitto".to_owned();
        peer.target.shortfalls = vec!["no areas: one topic a cell".to_owned()];
        peer.timeline.iter_mut().for_each(|second| second.broker = None);
        let comparison = compare(&[sample::record(), peer]).unwrap();
        let markdown = squeezed(&comparison.markdown);
        for line in [
            "# rush hour: 2 runs",
            "| figure | nearcast | mosquitto |",
            "| --- | ---: | ---: |",
            "| deliveries a second | 12,000 | 12,000 |",
            "- mosquitto: not the same: no areas: one topic a cell",
        ] {
            assert!(markdown.lines().any(|found| found == line), "{line}\n{markdown}");
        }
        let cores = markdown.lines().find(|line| line.contains("target's cores")).unwrap();
        assert!(cores.ends_with("| - |"), "{cores}");
        let (texts, names) = html::tests::read(&comparison.html);
        assert!(texts.contains("publish to delivery, by percentile"), "{texts}");
        assert_eq!(names.iter().filter(|name| *name == "figure").count(), 2);
    }

    #[test]
    fn a_sweep_is_plotted_over_what_was_swept() {
        let runs: Vec<Record> = [3.0, 1.0, 2.0]
            .into_iter()
            .map(|thousands| {
                let mut record = sample::record();
                record.scenario.parameters.insert("clients".to_owned(), 1_000.0 * thousands);
                record
            })
            .collect();
        assert_eq!(swept(&runs), ["clients"]);
        let comparison = compare(&runs).unwrap();
        assert!(
            squeezed(&comparison.markdown).contains("| nearcast, clients 3,000 | nearcast, clients 1,000 |")
        );
        let (texts, _) = html::tests::read(&comparison.html);
        assert!(texts.contains("Publish to delivery, p99, by clients"), "{texts}");
    }

    #[test]
    fn the_same_twice_is_told_apart_and_none_is_no_fault() {
        let comparison = compare(&[sample::record(), sample::record()]).unwrap();
        assert!(
            squeezed(&comparison.markdown).contains("| nearcast | nearcast (2) |"),
            "{}",
            comparison.markdown
        );
        let (_, names) = html::tests::read(&compare(&[sample::bad(), sample::record()]).unwrap().html);
        assert!(!names.iter().any(|name| name == "script"));
        html::tests::read(&compare(&[]).unwrap().html);
    }
}
