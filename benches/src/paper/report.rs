//! The report: what was measured, beside the paper's figures and what is aimed at.

use std::fmt::Write as _;

use super::aims::{self, AT_THE_LARGEST, PAPER_LARGEST};
use super::figures::{Figures, Point, number};
use super::matching::IN_BATCHES;
use super::plan::Plan;
use super::scene::percent;
use super::{device, moves, table2};
use crate::engines::contender::counting_name;
use crate::engines::report::{digits, thousands};

/// Where and how a run was made.
#[derive(Clone, Debug, Default)]
pub struct Provenance {
    /// Processor and build profile.
    pub machine: String,
    /// The GPUs that took part.
    pub devices: Vec<String>,
    /// The commit of the sources.
    pub commit: String,
    /// The command line.
    pub command: String,
    /// Why engines are absent.
    pub absent: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

/// The whole report as Markdown; `plots` are the names of the figures that were drawn.
#[must_use]
pub fn report(plan: &Plan, figures: &Figures, from: &Provenance, plots: &[&str]) -> String {
    let parts = [
        head(plan, from),
        in_short(figures),
        at_the_largest(figures),
        table_2(figures),
        matching_figure(plan, figures, plots, &FIG3),
        matching_figure(plan, figures, plots, &FIG4),
        figure_5(figures, plots),
        figure_6(figures, plots),
        figure_7(figures, plots),
        how(plan, figures),
    ];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect();
    format!("{}\n", parts.join("\n\n"))
}

fn head(plan: &Plan, from: &Provenance) -> String {
    let devices = if from.devices.is_empty() { "none".to_owned() } else { from.devices.join(", ") };
    let absent = from.absent.as_ref().map_or_else(String::new, |absent| format!("\n{absent}\n"));
    format!(
        "# The paper's evaluation on this machine\n\n\
         Cugola and Margara, \"High-performance location-aware publish-subscribe on GPUs\" (Middleware 2012), measured a \
         way to tell for each *event* (a place and some named numbers) which *subscriptions* it concerns. A subscription \
         belongs to a client and has ten *filters*; a filter is a circle around the client and three to five conditions \
         on the numbers, and holds when the place is in the circle and all conditions are true. Clients move, and their \
         circles with them. Here the same questions are put to nearcast's engines, to what one would otherwise use, and to \
         the paper.\n\n\
         - `cells` is nearcast's engine on the CPU, on one core. `clcb` is the paper's algorithm and `gpu` a batched one, both on a \
         GPU.\n\
         - `rtree` is an R\\*-tree (the crate `rstar`, bulk loaded, its best node size). It looks for circles **only**: half of the problem. \
         `rtree + content` also tests the conditions of what it finds, and so solves all of it.\n\
         - `counting` is a counting matcher in the manner of SFF, for Table 2.\n{absent}\n\
         | | |\n| --- | --- |\n\
         | machine | {} |\n| GPU | {devices} |\n| commit | {} |\n| command | `{}` |\n| seed | {} |\n| took | {:.0} s |\n\n\
         Times are means over the events of a turn, in microseconds (us): the median of {} rounds in which all take turns, \
         with the least and the largest in parentheses. All figures: [figures.csv](figures.csv).",
        from.machine, from.commit, from.command, plan.seed, from.seconds, plan.rounds,
    )
}

/// The aims.
fn in_short(figures: &Figures) -> String {
    let outcomes = aims::outcomes(figures);
    if outcomes.is_empty() {
        return String::new();
    }
    let rows = outcomes.iter().map(|outcome| {
        let met = outcome.ratio >= outcome.aim.least;
        let verdict = match (met, outcome.at == outcome.aim.at) {
            (true, true) => "met".to_owned(),
            (false, true) => "**missed**".to_owned(),
            (met, false) => {
                let word = if met { "reached" } else { "**not reached**" };
                format!("{word} at this size; the aim is for {}", thousands(outcome.aim.at.into()))
            }
        };
        vec![
            outcome.aim.what.to_owned(),
            thousands(outcome.at.into()),
            times(outcome.ratio),
            format!(">= {}x", outcome.aim.least),
            verdict,
        ]
    });
    format!(
        "## In short\n\nHow many times as long as `cells` the others take. The R\\*-tree's time is for location alone, \
         that of `cells` for location and content.\n\n{}",
        table(&["compared with", "subscriptions", "times `cells`", "aim", ""], rows)
    )
}

/// The paper's comparisons at a million subscriptions, or as far as the run went.
fn at_the_largest(figures: &Figures) -> String {
    let ours = ["cells", "clcb", "gpu", IN_BATCHES];
    let taking_part: Vec<&str> = ours
        .into_iter()
        .filter(|series| AT_THE_LARGEST.iter().any(|(_, panel, _)| figures.series(panel).contains(series)))
        .collect();
    let mut largest = 0;
    let rows: Vec<Vec<String>> = AT_THE_LARGEST
        .iter()
        .filter_map(|(what, panel, paper)| {
            let size = figures.sizes(panel).last().copied()?;
            let rtree = figures.at(panel, of_moves(panel, "rtree"), size)?.median();
            largest = size;
            let mut row = vec![(*what).to_owned(), number(rtree)];
            row.push(paper.map_or_else(|| "-".to_owned(), |paper| format!("{}x", as_given(paper))));
            for series in &taking_part {
                let point = figures.at(panel, of_moves(panel, series), size);
                row.push(
                    point
                        .map_or_else(String::new, |point| lead(rtree / point.median(), Some(point.median()))),
                );
            }
            Some(row)
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut heading = vec!["".to_owned(), "R\\*-tree, us".to_owned(), "paper: over CLCB".to_owned()];
    heading.extend(taking_part.iter().map(|series| format!("over `{series}`")));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let size = if largest == PAPER_LARGEST {
        "as in the paper".to_owned()
    } else {
        format!("the paper's are for {}", thousands(PAPER_LARGEST.into()))
    };
    format!(
        "## R\\*-tree over ours at {} subscriptions\n\nThe comparisons that the paper's text gives ({size}). The R\\*-tree finds \
         locations only. In parentheses our own time in us; bold where we lose. Percentages are the share of the area that a filter covers; \
         with *Zipf*, clients and events crowd at the same hot spots. A moved filter is one that moves on its own; the device is \
         waited for after each, and under `gpu in batches` after many.\n\n{}",
        thousands(largest.into()),
        table(&heading, rows)
    )
}

/// Under which name a contender's updates are kept.
fn of_moves<'a>(panel: &str, series: &'a str) -> &'a str {
    match (panel.starts_with("fig5"), series) {
        (true, "rtree") => moves::RTREE_LONE,
        (true, "cells") => moves::CELLS_LONE,
        (true, "clcb") => "clcb, a lone filter",
        (true, "gpu") => "gpu, a lone filter",
        (true, series) if series == IN_BATCHES => "gpu, many at once",
        _ => series,
    }
}

fn table_2(figures: &Figures) -> String {
    let Some(size) = figures.sizes(table2::PANEL).last().copied() else { return String::new() };
    let point = |series: &str, unit: &str| {
        let mut points = figures.of(table2::PANEL);
        points.find(|point| point.series == series && point.unit == unit)
    };
    let cells = |unit: &str| point("cells", unit).map(Point::median);
    let row = |what: &str, series: &str, unit: &str, paper: Option<String>| {
        let measured = point(series, unit)?;
        let ratio =
            cells(unit).filter(|_| series != "cells").map(|cells| lead(measured.median() / cells, None));
        let paper = paper.unwrap_or_else(|| "-".to_owned());
        Some(vec![what.to_owned(), paper, measured.text(), ratio.unwrap_or_else(|| "1".to_owned())])
    };
    let both = |[sff, be_tree]: [f64; 2]| Some(format!("{} / {}", number(sff), number(be_tree)));
    let [content, comparisons, intervals, afterwards] = table2::COUNTING.map(counting_name);
    let matches = [
        row("content only, no location", content, table2::MATCH, both(aims::CONTENT_US)),
        row("both, location as four more comparisons", comparisons, table2::MATCH, both(aims::LOCATION_US)),
        row("both, location as two more intervals", intervals, table2::MATCH, None),
        row("both, location tested afterwards", afterwards, table2::MATCH, None),
        row("`cells` (paper: CLCB on its GPU), both", "cells", table2::MATCH, Some(as_given(aims::CLCB_US))),
    ];
    let updates = [
        row(
            "index built anew, as SFF does",
            table2::REBUILT,
            table2::UPDATE,
            Some(number(aims::SFF_UPDATE_US)),
        ),
        row("removed and inserted, four comparisons", comparisons, table2::UPDATE, None),
        row("removed and inserted, two intervals", intervals, table2::UPDATE, None),
        row(
            "`cells` (paper: CLCB on its GPU)",
            "cells",
            table2::UPDATE,
            Some(as_given(aims::CLCB_UPDATE_US)),
        ),
    ];
    let heading =
        |what: &'static str, ours: &'static str| [what, "paper: SFF / BE-Tree, us", ours, "times `cells`"];
    format!(
        "## Table 2: content matchers, {} subscriptions\n\nA counting matcher finds for each number of an event the conditions \
         that it fulfils and counts them for each filter. It knows no places; x and y can be given to it as two more numbers. The paper's \
         point: that is slow, for every event has an x, and moving a filter means changing its index. The paper's column is for 250,000 subscriptions \
         on its machine of 2012.\n\n{}\n\n{}",
        thousands(size.into()),
        table(&heading("matching", "us an event"), matches.into_iter().flatten()),
        table(&heading("moving one filter", "us a filter"), updates.into_iter().flatten()),
    )
}

/// A figure of matching times.
struct MatchingFigure {
    stem: &'static str,
    panels: [&'static str; 4],
    title: &'static str,
    text: &'static str,
}

const FIG3: MatchingFigure = MatchingFigure {
    stem: "fig3",
    panels: ["fig3a", "fig3b", "fig3c", "fig3d"],
    title: "Fig. 3: matching time, clients and events spread evenly",
    text: "The larger the circles, the more of them hold an event: the R\\*-tree has to visit each, which is why its time grows with \
           subscriptions and with coverage. The paper says that its CLCB does not depend on the coverage and takes 306 us at 250,000 subscriptions and \
           0.01 %, and that R\\*-trees win below 400 subscriptions.",
};

const FIG4: MatchingFigure = MatchingFigure {
    stem: "fig4",
    panels: ["fig4a", "fig4b", "fig4c", "fig4d"],
    title: "Fig. 4: matching time, hot spots (Zipf)",
    text: "Clients and events crowd in the same places: of 1,024 squares the first has an eighth of all, the second half as many, and so on. An event in a \
           crowd is in many circles. The paper says that its R\\*-tree takes more than 10,000 us from 700,000 subscriptions on, even at 0.001 %.",
};

fn matching_figure(plan: &Plan, figures: &Figures, plots: &[&str], figure: &MatchingFigure) -> String {
    let mut series: Vec<&str> = Vec::new();
    for name in figure.panels.iter().flat_map(|panel| figures.series(panel)) {
        if !series.contains(&name) {
            series.push(name);
        }
    }
    if series.is_empty() {
        return String::new();
    }
    let has = |name: &str| series.contains(&name);
    let mut heading: Vec<String> = vec!["a filter covers".to_owned(), "subscriptions".to_owned()];
    heading.extend(series.iter().map(|name| format!("`{name}`, us")));
    let compared: Vec<&str> = series.iter().copied().filter(|name| !name.starts_with("rtree")).collect();
    if has("rtree") {
        heading.extend(compared.iter().map(|name| format!("`rtree` over `{name}`")));
    }
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let rows = figure.panels.iter().zip(&plan.coverages).flat_map(|(panel, coverage)| {
        let (series, compared) = (&series, &compared);
        figures.sizes(panel).into_iter().map(move |size| {
            let point = |name: &str| figures.at(panel, name, size);
            let mut row = vec![percent(*coverage), thousands(size.into())];
            row.extend(series.iter().map(|name| point(name).map_or_else(String::new, Point::text)));
            if let Some(rtree) = point("rtree") {
                row.extend(compared.iter().map(|name| {
                    point(name).map_or_else(String::new, |point| lead(rtree.median() / point.median(), None))
                }));
            }
            row
        })
    });
    section(figure.title, figure.stem, plots, figure.text, &table(&heading, rows))
}

fn figure_5(figures: &Figures, plots: &[&str]) -> String {
    let tables: Vec<String> = [("fig5a", "uniform"), ("fig5b", "Zipf")]
        .into_iter()
        .filter(|(panel, _)| figures.of(panel).next().is_some())
        .map(|(panel, what)| by_series(figures, panel, &format!("{what}: {}", moves::UNIT)))
        .collect();
    if tables.is_empty() {
        return String::new();
    }
    let text = "What it takes to tell an engine that a filter is elsewhere; answers are checked afterwards. An R\\*-tree removes and inserts, \
                which takes longer the larger it is. *A lone filter* is one that moves on its own, as in the paper: in the R\\*-tree one of any client's, in the engines \
                one of a thousand clients that have no other, and that the processor's caches may hold. *Filters of one client* move together, ten at once to the same place; \
                the time is the share of one. The paper: 2.65 us for CLCB whatever there is installed, 5,260 us for the R\\*-tree at a million \
                subscriptions, and hardly a difference between uniform and Zipf. The last column says how much larger the largest size is than the smallest.";
    section("Fig. 5: moving one filter", "fig5", plots, text, &tables.join("\n\n"))
}

fn figure_6(figures: &Figures, plots: &[&str]) -> String {
    let tables: Vec<String> = [("fig6a", "default"), ("fig6b", "every constraint holds")]
        .into_iter()
        .filter(|(panel, _)| figures.of(panel).next().is_some())
        .map(|(panel, what)| by_series(figures, panel, &format!("{what}: {}", device::STEP_UNIT)))
        .collect();
    if tables.is_empty() {
        return String::new();
    }
    let text = "Where the time of `clcb` goes: the event is copied to the GPU, *Loc* tests names and places, *Cont* the conditions, *Zip* gathers the \
                subscriptions, which are copied back. Medians of single events. The paper: either copy takes less than 100 us at any size, and where every constraint holds (b) Cont \
                grows most, while copying back stays below 600 us.";
    section("Fig. 6: the steps of CLCB", "fig6", plots, text, &tables.join("\n\n"))
}

fn figure_7(figures: &Figures, plots: &[&str]) -> String {
    if figures.of("fig7").next().is_none() {
        return String::new();
    }
    let per_filter = figures.series("fig7").into_iter().filter_map(|series| {
        let last = figures.of("fig7").filter(|point| point.series == series).last()?;
        let bytes = last.median() * 1_048_576.0 / (f64::from(last.x) * 10.0);
        Some(format!("{series}: {} bytes a filter", digits(bytes)))
    });
    let per_filter: Vec<String> = per_filter.collect();
    let text = format!(
        "What the filters take: for `cells` all memory by its own account, for the GPU engines the memory of the device. The paper: 1 GB of GPU memory \
         holds 13 million filters (some 80 bytes each). At the largest size {}.",
        per_filter.join(", ")
    );
    let table = by_series(figures, "fig7", device::MEMORY_UNIT);
    section("Fig. 7: memory", "fig7", plots, &text, &table)
}

/// Series down, sizes across, and how much grew from the first to the last.
fn by_series(figures: &Figures, panel: &str, corner: &str) -> String {
    let sizes = figures.sizes(panel);
    let mut heading = vec![corner.to_owned()];
    heading.extend(sizes.iter().map(|size| thousands((*size).into())));
    heading.push("last / first".to_owned());
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let rows = figures.series(panel).into_iter().map(|series| {
        let points: Vec<Option<&Point>> = sizes.iter().map(|size| figures.at(panel, series, *size)).collect();
        let growth = match (points.first(), points.last()) {
            (Some(Some(first)), Some(Some(last))) => times(last.median() / first.median()),
            _ => String::new(),
        };
        let mut row = vec![series.to_owned()];
        row.extend(points.into_iter().map(|point| point.map_or_else(String::new, Point::text)));
        row.push(growth);
        row
    });
    table(&heading, rows)
}

fn how(plan: &Plan, figures: &Figures) -> String {
    let mut text = format!(
        "## How it was measured\n\nThe workload is the paper's Table 1 as `benches/README.md` describes it. Events are sent one by one, \
         {} to a turn, fewer (at least a tenth) where the slowest would take longer than {} s for them; in batches of {} for \
         `{IN_BATCHES}`, whose answers equal those to events sent alone. Time in which the thread waited for a core is taken off, where the system tells it.\n\n\
         Before the clock starts, the answers of all who take part are compared by count and checksum: with brute force over every filter on some \
         events, with each other on all that are timed. In Fig. 5 this comes after the moves. Had one been wrong, there would be no report.\n\n",
        thousands(plan.events as u64),
        plan.turn_seconds,
        thousands(plan.batch as u64),
    );
    let mut panels: Vec<&str> = figures.checks().iter().map(|check| check.panel).collect();
    panels.dedup();
    panels.sort_unstable();
    panels.dedup();
    let rows = panels.into_iter().map(|panel| {
        let checks = || figures.checks().iter().filter(|check| check.panel == panel);
        let sum = |of: fn(&super::figures::Check) -> u64| checks().map(of).sum::<u64>();
        let checksum = checks().fold(0_u64, |sum, check| sum.wrapping_add(check.checked.checksum));
        vec![
            panel.to_owned(),
            thousands(sum(|check| check.checked.events as u64)),
            thousands(sum(|check| check.checked.pairs)),
            thousands(sum(|check| check.checked.nearby)),
            thousands(sum(|check| check.events as u64)),
            format!("{checksum:016x}"),
        ]
    });
    let heading = [
        "",
        "events by brute force",
        "matches among them",
        "filters near them",
        "events on which all agree",
        "checksum",
    ];
    text.push_str(&table(&heading, rows));
    text
}

fn section(title: &str, stem: &str, plots: &[&str], text: &str, tables: &str) -> String {
    let mut out = format!("## {title}\n\n{text}\n\n");
    if plots.contains(&stem) {
        // Writing to a string never fails.
        let _ = write!(out, "![{title}]({stem}.png)\n\n([SVG]({stem}.svg))\n\n");
    }
    out.push_str(tables);
    out
}

fn table(heading: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n| --- |{}", heading.join(" | "), " ---: |".repeat(heading.len() - 1));
    for row in rows {
        // Writing to a string never fails.
        let _ = write!(text, "\n| {} |", row.join(" | "));
    }
    text
}

/// A figure of the paper with all its digits.
fn as_given(figure: f64) -> String {
    if figure < 1_000.0 { figure.to_string() } else { number(figure) }
}

fn times(ratio: f64) -> String {
    format!("{}x", number(ratio))
}

/// A ratio, bold where it says that we lose, with our own time beside it.
fn lead(ratio: f64, ours_us: Option<f64>) -> String {
    let ratio = if ratio < 1.0 { format!("**{}**", times(ratio)) } else { times(ratio) };
    match ours_us {
        Some(ours) => format!("{ratio} ({})", number(ours)),
        None => ratio,
    }
}
