//! What a run measures, and how much of it.

use clap::ValueEnum;

/// A table or figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Section {
    /// Content matchers without and with location, and their update.
    Table2,
    /// Matching time against subscriptions, clients and events spread evenly.
    Fig3,
    /// Matching time against subscriptions, clients and events around hot spots.
    Fig4,
    /// What it takes to move a filter.
    Fig5,
    /// The steps of CLCB; needs a GPU.
    Fig6,
    /// Memory.
    Fig7,
    /// Checks: another paper's experiments, on their own.
    Checks,
    /// Rules beside SWI-Prolog's, on their own.
    Rules,
    /// Arc consistency of instances by each algorithm, on its own.
    Groups,
}

impl Section {
    /// All of the paper's, in its order.
    pub const ALL: [Self; 6] = [Self::Table2, Self::Fig3, Self::Fig4, Self::Fig5, Self::Fig6, Self::Fig7];
}

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Who {
    /// Our engine on the CPU.
    Cells,
    /// An R*-tree, location only.
    Rtree,
    /// The R*-tree and the content of what it finds.
    RtreeContent,
    /// A counting matcher.
    Counting,
    /// The paper's algorithm on a GPU.
    Clcb,
    /// The batched engine on GPUs.
    Gpu,
}

impl Who {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Cells, Self::Rtree, Self::RtreeContent, Self::Counting, Self::Clcb, Self::Gpu];

    /// What tables and plots call it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Cells => "cells",
            Self::Rtree => "rtree",
            Self::RtreeContent => "rtree + content",
            Self::Counting => "counting",
            Self::Clcb => "clcb",
            Self::Gpu => "gpu",
        }
    }
}

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which tables and figures.
    pub sections: Vec<Section>,
    /// Who takes part.
    pub engines: Vec<Who>,
    /// Subscriptions at which the figures have points, ascending.
    pub sizes: Vec<u32>,
    /// Subscriptions of Table 2.
    pub table2_subscriptions: u32,
    /// Shares of the terrain that a filter covers, for Fig. 3 and 4: at most four.
    pub coverages: Vec<f64>,
    /// Turns of each contender.
    pub rounds: usize,
    /// Seed of the workload.
    pub seed: u64,
    /// Events of a turn; fewer where the slowest contender would take too long.
    pub events: usize,
    /// Seconds that one turn of the slowest contender may take.
    pub turn_seconds: f64,
    /// Seconds that brute force may take for a check.
    pub check_seconds: f64,
    /// Filters that move in a turn.
    pub moves: usize,
    /// Clients that move at once, for the engines that take changes in batches.
    pub many: u32,
    /// Events of a GPU's batch.
    pub batch: usize,
    /// Events whose steps are timed.
    pub step_events: usize,
}

impl Plan {
    /// The paper's sizes: a thousand to a million subscriptions of ten filters.
    #[must_use]
    pub fn full() -> Self {
        Self {
            sections: Section::ALL.to_vec(),
            engines: Who::ALL.to_vec(),
            sizes: vec![1_000, 10_000, 50_000, 100_000, 250_000, 500_000, 1_000_000],
            table2_subscriptions: 250_000,
            coverages: vec![0.000_01, 0.000_1, 0.001, 0.01],
            rounds: 5,
            seed: 2012,
            events: 1_000,
            turn_seconds: 2.0,
            check_seconds: 2.0,
            moves: 10_000,
            many: 10_000,
            batch: 65_536,
            step_events: 200,
        }
    }

    /// A twentieth of that, for a look.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            sizes: vec![1_000, 5_000, 10_000, 25_000, 50_000],
            table2_subscriptions: 25_000,
            rounds: 3,
            turn_seconds: 0.25,
            check_seconds: 0.1,
            moves: 2_000,
            ..Self::full()
        }
    }

    /// Whether a table or figure is asked for.
    #[must_use]
    pub fn shows(&self, section: Section) -> bool {
        self.sections.contains(&section)
    }

    /// Whether somebody is to take part.
    #[must_use]
    pub fn has(&self, who: Who) -> bool {
        self.engines.contains(&who)
    }

    /// The most subscriptions of the figures.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(1)
    }
}
