//! Which curves each figure has, and how they look.

use std::path::Path;

use plotters::style::RGBColor;

use super::figures::Figures;
use super::matching::IN_BATCHES;
use super::moves;
use super::plan::{Plan, Who};
use super::plot::{Curve, CurvePoint, Figure, Look, Marker, Panel, write};
use super::scene::percent;

const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PURPLE: RGBColor = RGBColor(204, 121, 167);
const SKY: RGBColor = RGBColor(86, 180, 233);

/// What a curve is called in a legend and how it looks, by the series that it shows.
const LOOKS: [(&str, &str, Look); 22] = [
    ("cells", "cells: location + content", look(BLUE, Marker::Disc, None)),
    ("rtree", "R*-tree: location only", look(VERMILION, Marker::Square, Some((9, 5)))),
    ("rtree + content", "R*-tree, then content", look(ORANGE, Marker::Triangle, Some((3, 4)))),
    ("clcb", "clcb: location + content", look(GREEN, Marker::Diamond, Some((14, 5)))),
    ("gpu", "gpu, one by one", look(PURPLE, Marker::Ring, None)),
    (IN_BATCHES, "gpu, in batches", look(SKY, Marker::Cross, Some((6, 3)))),
    (moves::RTREE_LONE, "R*-tree, a lone filter", look(VERMILION, Marker::Square, Some((9, 5)))),
    (moves::RTREE_SHARED, "R*-tree, ten filters a client", look(ORANGE, Marker::Triangle, Some((9, 5)))),
    (moves::CELLS_SHARED, "cells, ten filters a client", look(BLUE, Marker::Disc, None)),
    (moves::CELLS_LONE, "cells, a lone filter", look(SKY, Marker::Cross, None)),
    ("clcb, a lone filter", "clcb, waited for one by one", look(GREEN, Marker::Diamond, Some((14, 5)))),
    ("gpu, a lone filter", "gpu, waited for one by one", look(PURPLE, Marker::Ring, None)),
    ("clcb, many at once", "clcb, many at once", look(GREEN, Marker::Cross, Some((6, 3)))),
    ("gpu, many at once", "gpu, many at once", look(PURPLE, Marker::Cross, Some((6, 3)))),
    ("Copy input", "Copy input", look(BLUE, Marker::Disc, None)),
    ("Loc", "Loc", look(VERMILION, Marker::Square, Some((9, 5)))),
    ("Cont", "Cont", look(GREEN, Marker::Diamond, Some((14, 5)))),
    ("Zip", "Zip", look(ORANGE, Marker::Triangle, Some((3, 4)))),
    ("Copy result", "Copy result", look(PURPLE, Marker::Ring, None)),
    ("clcb, on the GPU", "clcb, on the GPU", look(GREEN, Marker::Diamond, Some((14, 5)))),
    ("gpu, on the GPU", "gpu, on the GPU", look(PURPLE, Marker::Ring, None)),
    // What no other line names.
    ("", "", look(RGBColor(90, 90, 90), Marker::Disc, None)),
];

const fn look(colour: RGBColor, marker: Marker, dashes: Option<(u32, u32)>) -> Look {
    Look { colour, marker, dashes }
}

/// Writes the plots of all figures that have points; returns their names without endings.
///
/// # Errors
/// When a file cannot be written.
pub fn write_all(plan: &Plan, figures: &Figures, folder: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut written = Vec::new();
    for (stem, figure) in all(plan, figures) {
        if figure.panels.iter().any(|panel| !panel.curves.is_empty()) {
            write(&figure, folder, stem)?;
            written.push(stem);
        }
    }
    Ok(written)
}

fn all(plan: &Plan, figures: &Figures) -> Vec<(&'static str, Figure)> {
    let x_label = "subscriptions (thousands), ten filters each";
    let by_coverage = |panels: [&'static str; 4]| -> Vec<(&'static str, String)> {
        let titles = plan.coverages.iter().zip("abcd".chars());
        let titles =
            titles.map(|(coverage, letter)| format!("({letter}) a filter covers {}", percent(*coverage)));
        panels.into_iter().zip(titles).collect()
    };
    let named = |panels: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        panels.iter().map(|(panel, title)| (*panel, (*title).to_owned())).collect()
    };
    let figure = |title: &str, y_label: &str, y_log: bool, panels: Vec<(&'static str, String)>| Figure {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        y_log,
        panels: panels
            .into_iter()
            .filter(|(panel, _)| figures.of(panel).next().is_some())
            .map(|(panel, title)| Panel { title, curves: curves(figures, panel) })
            .collect(),
    };
    let matching = "µs an event";
    let spreads = named(&[("fig5a", "(a) uniform"), ("fig5b", "(b) Zipf")]);
    let steps = named(&[("fig6a", "(a) default"), ("fig6b", "(b) every constraint holds")]);
    vec![
        (
            "fig3",
            figure(
                "Fig. 3: matching time, uniform",
                matching,
                true,
                by_coverage(["fig3a", "fig3b", "fig3c", "fig3d"]),
            ),
        ),
        (
            "fig4",
            figure(
                "Fig. 4: matching time, Zipf",
                matching,
                true,
                by_coverage(["fig4a", "fig4b", "fig4c", "fig4d"]),
            ),
        ),
        ("fig5", figure("Fig. 5: moving one filter", "µs a filter", true, spreads)),
        ("fig6", figure("Fig. 6: the steps of CLCB on the GPU", "µs a step", false, steps)),
        ("fig7", figure("Fig. 7: memory", "MiB", false, named(&[("fig7", "0.01 % of the area")]))),
    ]
}

fn curves(figures: &Figures, panel: &str) -> Vec<Curve> {
    let series = figures.series(panel);
    // In the order of the looks, so that every figure has its legend in the same order.
    let order = |name: &&str| LOOKS.iter().position(|(known, ..)| known == name).unwrap_or(LOOKS.len());
    let mut series: Vec<&str> = series;
    series.sort_by_key(order);
    series
        .into_iter()
        .map(|name| {
            let (_, text, look) = LOOKS[order(&name).min(LOOKS.len() - 1)];
            let points = figures.of(panel).filter(|point| point.series == name).map(|point| CurvePoint {
                x: f64::from(point.x) / 1e3,
                y: point.median(),
                spread: (point.least(), point.largest()),
            });
            let label = if text.is_empty() || is_memory_of_cells(panel, name) { name } else { text };
            Curve { label: label.to_owned(), look, points: points.collect() }
        })
        .collect()
}

/// `cells` does not match where memory is shown.
fn is_memory_of_cells(panel: &str, name: &str) -> bool {
    panel == "fig7" && name == Who::Cells.label()
}
