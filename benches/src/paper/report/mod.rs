//! The report: what was measured, beside the paper's figures and what is aimed at.

mod markdown;
mod panels;

use super::aims::{self, AT_THE_LARGEST, PAPER_LARGEST};
use super::figures::{Figures, number};
use super::matching::IN_BATCHES;
use super::moves;
use super::plan::Plan;
use crate::engines::report::thousands;
use markdown::{as_given, lead, table, times};
use panels::{FIG3, FIG4, figure_5, figure_6, figure_7, matching_figure, table_2};

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
