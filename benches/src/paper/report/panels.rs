//! The report's parts for Table 2 and each figure.

use super::markdown::{as_given, lead, section, table, times};
use crate::engines::contender::counting_name;
use crate::engines::report::{digits, thousands};
use crate::paper::figures::{Figures, Point, number};
use crate::paper::plan::Plan;
use crate::paper::scene::percent;
use crate::paper::{aims, device, moves, table2};

pub(super) fn table_2(figures: &Figures) -> String {
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
pub(super) struct MatchingFigure {
    stem: &'static str,
    panels: [&'static str; 4],
    title: &'static str,
    text: &'static str,
}

pub(super) const FIG3: MatchingFigure = MatchingFigure {
    stem: "fig3",
    panels: ["fig3a", "fig3b", "fig3c", "fig3d"],
    title: "Fig. 3: matching time, clients and events spread evenly",
    text: "The larger the circles, the more of them hold an event: the R\\*-tree has to visit each, which is why its time grows with \
           subscriptions and with coverage. The paper says that its CLCB does not depend on the coverage and takes 306 us at 250,000 subscriptions and \
           0.01 %, and that R\\*-trees win below 400 subscriptions.",
};

pub(super) const FIG4: MatchingFigure = MatchingFigure {
    stem: "fig4",
    panels: ["fig4a", "fig4b", "fig4c", "fig4d"],
    title: "Fig. 4: matching time, hot spots (Zipf)",
    text: "Clients and events crowd in the same places: of 1,024 squares the first has an eighth of all, the second half as many, and so on. An event in a \
           crowd is in many circles. The paper says that its R\\*-tree takes more than 10,000 us from 700,000 subscriptions on, even at 0.001 %.",
};

pub(super) fn matching_figure(
    plan: &Plan,
    figures: &Figures,
    plots: &[&str],
    figure: &MatchingFigure,
) -> String {
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

pub(super) fn figure_5(figures: &Figures, plots: &[&str]) -> String {
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

pub(super) fn figure_6(figures: &Figures, plots: &[&str]) -> String {
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

pub(super) fn figure_7(figures: &Figures, plots: &[&str]) -> String {
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
