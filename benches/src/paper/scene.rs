//! The workloads that a run goes through, and about how long each takes.

use device::Device;
use matcher::fixtures::workload::{Config, Spread};

use super::plan::{Plan, Section, Who};

/// The paper says "a Zipf power law"; this is 1,024 cells of which the first has an eighth of all.
pub const HOT_SPOTS: Spread = Spread::Zipf { cells_per_side: 32, exponent: 1.0 };
/// The panels of Fig. 3 and 4, by coverage.
const PANELS: [[&str; 4]; 2] = [["fig3a", "fig3b", "fig3c", "fig3d"], ["fig4a", "fig4b", "fig4c", "fig4d"]];
/// The coverage of the paper's default scenario.
pub const DEFAULT_COVERAGE: f64 = 0.000_1;

/// A workload, and the panels for which it is measured.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What it is called in the progress and in errors.
    pub title: String,
    /// The workload at its largest.
    pub config: Config,
    /// Matching times go there.
    pub matching: Option<&'static str>,
    /// Update times.
    pub moves: Option<&'static str>,
    /// The steps of CLCB.
    pub steps: Option<&'static str>,
    /// Memory.
    pub memory: Option<&'static str>,
}

/// The scenes that the plan needs.
#[must_use]
pub fn scenes(plan: &Plan, devices: &[Device]) -> Vec<Scene> {
    let base = Config { seed: plan.seed, subscriptions: plan.largest(), ..Config::default() };
    let has_steps = plan.shows(Section::Fig6) && plan.has(Who::Clcb) && !devices.is_empty();
    let mut scenes = Vec::new();
    for (kind, spread) in [Spread::Uniform, HOT_SPOTS].into_iter().enumerate() {
        let section = [Section::Fig3, Section::Fig4][kind];
        let mut coverages = plan.coverages.clone();
        if !coverages.contains(&DEFAULT_COVERAGE) {
            coverages.push(DEFAULT_COVERAGE);
        }
        for coverage in coverages {
            let panel = plan.coverages.iter().position(|planned| *planned == coverage);
            let is_default = coverage == DEFAULT_COVERAGE;
            let only = |shown: bool, panel| (shown && is_default).then_some(panel);
            let scene = Scene {
                title: format!("{}, {} of the area", ["uniform", "Zipf"][kind], percent(coverage)),
                config: Config { coverage, clients_spread: spread, events_spread: spread, ..base.clone() },
                matching: panel.filter(|_| plan.shows(section)).map(|panel| PANELS[kind][panel % 4]),
                moves: None,
                steps: only(has_steps && kind == 0, "fig6a"),
                memory: only(plan.shows(Section::Fig7) && kind == 0, "fig7"),
            };
            if is_default && plan.shows(Section::Fig5) {
                // On their own, for moves leave the engines with other memory than they had.
                scenes.push(Scene {
                    title: format!("{}, moves", ["uniform", "Zipf"][kind]),
                    matching: None,
                    moves: Some(["fig5a", "fig5b"][kind]),
                    steps: None,
                    memory: None,
                    ..scene.clone()
                });
            }
            scenes.push(scene);
        }
    }
    if has_steps {
        // Every event has all names, and every constraint accepts every value.
        let config = Config { names: 5, topics: 1, attributes: 5..=5, selectivity: 1.0, ..base };
        scenes.push(Scene {
            title: "every constraint holds".to_owned(),
            config,
            matching: None,
            moves: None,
            steps: Some("fig6b"),
            memory: None,
        });
    }
    scenes
        .retain(|scene| [scene.matching, scene.moves, scene.steps, scene.memory].iter().any(Option::is_some));
    scenes
}

/// A share as text.
#[must_use]
pub fn percent(share: f64) -> String {
    // Seven digits drop what binary fractions add to 0.1 %.
    format!("{} %", (share * 100.0 * 1e7).round() / 1e7)
}

/// About how long things take: only for the progress, which corrects them by what has passed already.
impl Scene {
    /// All of the scene.
    #[must_use]
    pub fn seconds(&self, plan: &Plan) -> f64 {
        let before = std::iter::once(0).chain(plan.sizes.iter().copied());
        plan.sizes
            .iter()
            .zip(before)
            .map(|(size, before)| {
                let race = self.matching.map_or(0.0, |_| self.race_seconds(plan, *size));
                let moves = self.moves.map_or(0.0, |_| self.moves_seconds(plan, *size));
                self.fill_seconds(before, *size) + race + moves
            })
            .sum()
    }

    /// Drawing and installing what is new.
    #[must_use]
    pub fn fill_seconds(&self, before: u32, size: u32) -> f64 {
        self.filters(size - before) * 4e-6
    }

    /// The tree, the checks and the turns.
    #[must_use]
    pub fn race_seconds(&self, plan: &Plan, size: u32) -> f64 {
        let nearby = nearby(&self.config, size);
        let event = 5e-6 + nearby * 0.15e-6;
        let turn = (event * plan.events as f64 * 1.2).min(plan.turn_seconds);
        self.filters(size) * 1.2e-6 + (plan.rounds as f64 + 1.0) * turn * 1.3 + plan.check_seconds
    }

    /// How many events brute force can look at in the time that the plan gives it; the count is the same on every machine.
    #[must_use]
    pub fn sample(&self, plan: &Plan, size: u32) -> usize {
        Self::sample_of(&self.config, plan, size)
    }

    /// How many events brute force can look at, for a workload without a scene; see [`sample`](Self::sample).
    #[must_use]
    pub fn sample_of(config: &Config, plan: &Plan, size: u32) -> usize {
        let event = f64::from(size) * 3e-9 + nearby(config, size) * 2e-6;
        let fits = (0..plan.events).take_while(|count| (*count as f64) * event <= plan.check_seconds);
        fits.count().max(5)
    }

    /// The tree, the moves and their check.
    #[must_use]
    pub fn moves_seconds(&self, plan: &Plan, size: u32) -> f64 {
        self.filters(size) * 1.2e-6 + (plan.rounds * plan.moves) as f64 * 30e-6 + plan.check_seconds / 2.0
    }

    fn filters(&self, subscriptions: u32) -> f64 {
        filters(&self.config, subscriptions)
    }
}

/// About how many filters are near an event; where hot spots coincide, several times the share.
fn nearby(config: &Config, size: u32) -> f64 {
    let crowd = if config.clients_spread == Spread::Uniform { 1.0 } else { 8.0 };
    filters(config, size) * config.coverage * crowd
}

fn filters(config: &Config, subscriptions: u32) -> f64 {
    f64::from(subscriptions) * f64::from(config.filters_per_subscription)
}
