//! The scenarios, by name.

use matcher::fixtures::workload::{Config, Spread, Terrain};

/// Hot spots: 1,024 cells, of which the first has an eighth of all.
const HOT_SPOTS: Spread = Spread::Zipf { cells_per_side: 32, exponent: 1.0 };

/// A workload to race on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called on the command line.
    pub key: &'static str,
    /// What it is called in the report.
    pub title: &'static str,
    /// The workload.
    pub config: Config,
    /// How many of the events brute force checks; fewer where many filters are near an event.
    pub checked_events: usize,
}

/// The scenarios of the table of matching times; all differ from the first, which is `base`, in one thing.
#[must_use]
pub fn matching(base: &Config) -> Vec<Scenario> {
    let default = || base.clone();
    let scenario = |key, title, config| Scenario { key, title, config, checked_events: 1_000 };
    vec![
        scenario("default", "default", default()),
        scenario("cover-0.001", "0.001 %", Config { coverage: 0.000_01, ..default() }),
        scenario("cover-0.1", "0.1 %", Config { coverage: 0.001, ..default() }),
        Scenario {
            checked_events: 200,
            ..scenario("cover-1", "1 %", Config { coverage: 0.01, ..default() })
        },
        scenario("subs-100k", "100 k subs", Config { subscriptions: 100_000, ..default() }),
        scenario("subs-1m", "1 M subs", Config { subscriptions: 1_000_000, ..default() }),
        scenario("zipf-filters", "Zipf filters", Config { clients_spread: HOT_SPOTS, ..default() }),
        Scenario {
            checked_events: 500,
            ..scenario(
                "zipf-both",
                "Zipf both",
                Config { clients_spread: HOT_SPOTS, events_spread: HOT_SPOTS, ..default() },
            )
        },
        scenario("zipf-names", "Zipf names", default().zipf_names()),
        scenario("own-centres", "own centres", Config { co_located: false, ..default() }),
    ]
}

/// Other worlds and radii, to be compared with the default; an engine alone races on them.
#[must_use]
pub fn worlds(base: &Config) -> Vec<Scenario> {
    let base = || base.clone();
    let scenario = |key, title, config| Scenario { key, title, config, checked_events: 1_000 };
    let milan = Terrain::Region { lon: 9.19, lat: 45.46, side_m: 13_470.0 };
    let radii_m = vec![10.0, 1_000.0, 100_000.0];
    vec![
        scenario("planar", "planar, one radius", base()),
        scenario("region", "geodetic, a city", Config { terrain: milan, ..base() }),
        scenario("globe", "geodetic, the globe", Config { terrain: Terrain::Globe, ..base() }),
        scenario("radii", "planar, radii of 10 m, 1 km and 100 km", Config { radii_m, ..base() }),
    ]
}

impl Scenario {
    /// The scenario with its subscriptions divided by `divisor`, one at least.
    #[must_use]
    pub fn scaled(mut self, divisor: u32) -> Self {
        self.config.subscriptions = (self.config.subscriptions / divisor).max(1);
        self
    }
}
