//! What the paper says, and what we aim at.

use super::figures::Figures;
use super::{matching, moves, table2};

/// A ratio of two curves at one size.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// What it is about.
    pub what: &'static str,
    /// Where both curves are.
    pub panel: &'static str,
    /// What we are compared with.
    pub slower: &'static str,
    /// Ours.
    pub faster: &'static str,
    /// The unit of both.
    pub unit: &'static str,
    /// Subscriptions.
    pub at: u32,
    /// The least ratio.
    pub least: f64,
}

const fn matching(what: &'static str, panel: &'static str, at: u32, least: f64) -> Aim {
    Aim { what, panel, slower: "rtree", faster: "cells", unit: matching::UNIT, at, least }
}

const fn moving(what: &'static str, slower: &'static str, faster: &'static str) -> Aim {
    Aim { what, panel: "fig5a", slower, faster, unit: moves::UNIT, at: 250_000, least: 8.0 }
}

/// What `cells`, which matches location and content, is to reach on one core.
pub const AIMS: [Aim; 9] = [
    matching("R\\*-tree (location only), 0.01 %, the default", "fig3b", 250_000, 13.0),
    matching("R\\*-tree, 0.001 %", "fig3a", 250_000, 6.0),
    matching("R\\*-tree, 0.1 %", "fig3c", 250_000, 25.0),
    matching("R\\*-tree, 1 %", "fig3d", 250_000, 35.0),
    matching("R\\*-tree, 0.01 %, a million subscriptions", "fig3b", 1_000_000, 20.0),
    matching("R\\*-tree, 0.01 %, clients and events by Zipf", "fig4b", 250_000, 20.0),
    moving("R\\*-tree, moving a filter on its own", moves::RTREE_LONE, moves::CELLS_LONE),
    moving("R\\*-tree, moving a client's ten filters, each", moves::RTREE_SHARED, moves::CELLS_SHARED),
    Aim {
        what: "counting matcher, location as range constraints (its quicker form)",
        panel: table2::PANEL,
        slower: "counting, location as intervals",
        faster: "cells",
        unit: table2::MATCH,
        at: 250_000,
        least: 750.0,
    },
];

/// How an aim came out.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The aim.
    pub aim: Aim,
    /// The ratio of the medians.
    pub ratio: f64,
    /// Subscriptions at which it was measured: the aim's, or as near as the run came.
    pub at: u32,
}

/// The aims whose curves were measured.
#[must_use]
pub fn outcomes(figures: &Figures) -> Vec<Outcome> {
    let outcome = |aim: Aim| {
        let nearest = |size: &u32| size.abs_diff(aim.at);
        let at = figures.sizes(aim.panel).into_iter().min_by_key(nearest)?;
        let [slower, faster] = [aim.slower, aim.faster].map(|series| {
            let points = figures.of(aim.panel);
            let mut points = points.filter(|point| point.unit == aim.unit && point.x == at);
            points.find(|point| point.series == series)
        });
        Some(Outcome { aim, ratio: slower?.median() / faster?.median(), at })
    };
    AIMS.into_iter().filter_map(outcome).collect()
}

/// What the paper's text says of the R*-tree's time over its own at a million subscriptions. Its plots have the other
/// two, its text does not.
pub const AT_THE_LARGEST: [(&str, &str, Option<f64>); 10] = [
    ("uniform, 0.001 %", "fig3a", Some(2.47)),
    ("uniform, 0.01 %", "fig3b", None),
    ("uniform, 0.1 %", "fig3c", None),
    ("uniform, 1 %", "fig3d", Some(251.7)),
    ("Zipf, 0.001 %", "fig4a", Some(11.7)),
    ("Zipf, 0.01 %", "fig4b", Some(16.3)),
    ("Zipf, 0.1 %", "fig4c", Some(132.8)),
    ("Zipf, 1 %", "fig4d", Some(544.0)),
    ("moving a filter, uniform", "fig5a", Some(1_985.0)),
    ("moving a filter, Zipf", "fig5b", None),
];

/// The subscriptions of those ratios.
pub const PAPER_LARGEST: u32 = 1_000_000;
/// The paper's Table 2, microseconds of SFF and of BE-Tree: content only.
pub const CONTENT_US: [f64; 2] = [13_780.0, 1_480.0];
/// The paper's Table 2, microseconds of SFF and of BE-Tree: content and location.
pub const LOCATION_US: [f64; 2] = [118_690.0, 84_090.0];
/// SFF builds its index anew; BE-Tree could not be measured.
pub const SFF_UPDATE_US: f64 = 10_151_000.0;
/// CLCB in the default scenario.
pub const CLCB_US: f64 = 306.0;
/// CLCB's update.
pub const CLCB_UPDATE_US: f64 = 2.65;
