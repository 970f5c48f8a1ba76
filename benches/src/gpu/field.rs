//! Engines with the same subscriptions, which grow from size to size so that each is drawn once.

use anyhow::{Context, ensure};
use device::Device;
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::{Config, Workload};
use matcher::geo::{Position, Radius};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher_gpu::{Clcb, Gpu};

use crate::engines::oracle::{Oracle, Tally};

/// All engines over one workload.
pub struct Field {
    /// The workload of the largest size.
    config: Config,
    /// What it is called.
    pub scenario: String,
    /// The CPU's engine.
    pub cells: Cells,
    /// CLCB to the letter.
    pub clcb: Clcb,
    /// The batched engine.
    pub gpu: Gpu,
    /// Where each client is.
    positions: Vec<Position>,
    installed: u32,
}

/// A client with a single filter, which asks for what no event has: for what a lone location update costs.
pub const LONE: ClientId = ClientId(3_000_000_000);

impl Field {
    /// Empty engines on these devices; `config` is of the largest size.
    ///
    /// # Errors
    /// When a device fails.
    pub fn new(scenario: &str, config: Config, devices: &[Device]) -> anyhow::Result<Self> {
        let world = Workload::new(config.clone())?.world();
        let first = devices.first().context("a device")?;
        let mut field = Self {
            scenario: scenario.to_owned(),
            cells: Cells::new(world),
            clcb: Clcb::new(world, first)?,
            gpu: Gpu::new(world, devices)?,
            positions: Vec::new(),
            installed: 0,
            config,
        };
        let area = Area::Following(Radius::new(world, 76.0)?);
        let condition = Condition::parse("\"asked by nobody\" = 1")?;
        let lone = Subscription { client: LONE, filters: vec![Filter { area, condition }] };
        field.clcb.install(SubscriptionId(LONE.0), &lone)?;
        field.gpu.install(SubscriptionId(LONE.0), &lone)?;
        Ok(field)
    }

    /// The workload of the size that is installed.
    ///
    /// # Errors
    /// Never, once the field was made.
    pub fn workload(&self) -> anyhow::Result<Workload> {
        Ok(Workload::new(Config { subscriptions: self.installed.max(1), ..self.config.clone() })?)
    }

    /// How many filters are installed.
    #[must_use]
    pub fn filters(&self) -> u64 {
        u64::from(self.installed) * u64::from(self.config.filters_per_subscription)
    }

    /// How many clients there are.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.installed
    }

    /// Installs subscriptions until there are so many.
    ///
    /// # Errors
    /// When an engine takes no more.
    pub fn grow(&mut self, subscriptions: u32) -> anyhow::Result<()> {
        let workload = Workload::new(self.config.clone())?;
        for index in self.installed..subscriptions {
            let subscription = workload.subscription(index);
            let home = workload.position(workload.home(subscription.client));
            self.positions.push(home);
            let engines: [&mut dyn Engine; 3] = [&mut self.cells, &mut self.clcb, &mut self.gpu];
            for engine in engines {
                engine.move_client(subscription.client, Some(home));
                engine.install(SubscriptionId(index), &subscription)?;
            }
        }
        self.installed = subscriptions;
        self.clcb.settle()?;
        self.gpu.settle()?;
        Ok(())
    }

    /// Tells every engine but one, which was told already, where clients have moved.
    pub fn moved(&mut self, moves: &[(ClientId, Position)], told: &str) {
        let engines: [&mut dyn Engine; 3] = [&mut self.cells, &mut self.clcb, &mut self.gpu];
        for engine in engines.into_iter().filter(|engine| engine.name() != told) {
            moves.iter().for_each(|(client, position)| engine.move_client(*client, Some(*position)));
        }
        for (client, position) in moves {
            self.positions[client.0 as usize] = *position;
        }
    }

    /// Compares all engines with brute force on some events, and with each other on more.
    ///
    /// # Errors
    /// The first wrong answer.
    pub fn check(&mut self, events: &[Event], by_brute_force: usize) -> anyhow::Result<String> {
        let workload = self.workload()?;
        let mut oracle = Oracle::new(&workload);
        for (client, position) in (0..).map(ClientId).zip(&self.positions) {
            oracle.move_client(client, *position);
        }
        let all: Vec<&Event> = events.iter().collect();
        let mut rows = [MatchRows::new(), MatchRows::new(), MatchRows::new()];
        self.cells.match_batch(&all, &mut rows[0])?;
        self.gpu.match_batch(&all, &mut rows[1])?;
        let some = &all[..by_brute_force.max(1_000).min(all.len())];
        self.clcb.match_batch(some, &mut rows[2])?;
        ensure!(rows[0] == rows[1], "gpu and cells differ at {} filters", self.filters());
        let mut pairs = 0;
        for (index, event) in some.iter().enumerate() {
            let [cells, clcb] = [&rows[0], &rows[2]].map(|rows| rows.row(index));
            ensure!(cells == clcb, "event {index}: clcb and cells differ at {} filters", self.filters());
            if index < by_brute_force {
                let found = Tally::of(cells.iter().map(|id| id.0));
                let expected = oracle.truths(event).subscriptions;
                ensure!(found == expected, "event {index}: cells found {found:?}, brute force {expected:?}");
                pairs += found.count;
            }
        }
        Ok(format!(
            "{}, {} filters: on {by_brute_force} events all engines answer what brute force does ({pairs} pairs), `clcb` what \
             `cells` does on {}, `gpu` on {} ({} pairs)",
            self.scenario,
            crate::engines::report::thousands(self.filters()),
            some.len(),
            all.len(),
            rows[1].pairs_count(),
        ))
    }
}
