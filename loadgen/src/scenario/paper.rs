//! The paper's workload, Table 1 of Cugola and Margara (Middleware 2012), as a load: see `matcher::fixtures::workload`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use matcher::fixtures::workload::{Config, Spot, Workload};
use matcher::geo::World;
use matcher::subscription::ClientId;

use super::{Events, Moves, Scenario};
use crate::plan::{Act, Client, Occurrence, Plan, Step, Steps, Wish};

/// What differs from Table 1. How many clients there are, connected or not, says `clients`.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Paper {
    /// Filters of each client, all around its position.
    pub filters: u32,
    /// The share of the world that an area covers.
    pub coverage: f64,
    /// The share of the events whose content satisfies a filter.
    pub selectivity: f64,
}

impl Default for Paper {
    fn default() -> Self {
        let Config { filters_per_subscription, coverage, selectivity, .. } = Config::default();
        Self { filters: filters_per_subscription, coverage, selectivity }
    }
}

#[derive(Clone)]
pub(super) struct PaperPlan {
    workload: Arc<Workload>,
    clients: u32,
    silent: u64,
    duration: Duration,
    moves: Moves,
    events: Events,
    reconnects: super::Reconnects,
    seed: u64,
}

impl PaperPlan {
    pub(super) fn new(scenario: &Scenario, paper: &Paper) -> anyhow::Result<Self> {
        let everybody = u64::from(scenario.clients.count) + scenario.clients.silent;
        let config = Config {
            seed: scenario.seed,
            subscriptions: u32::try_from(everybody).context("clients")?,
            filters_per_subscription: paper.filters,
            coverage: paper.coverage,
            selectivity: paper.selectivity,
            ..Config::default()
        };
        Ok(Self {
            workload: Arc::new(Workload::new(config).context("paper")?),
            clients: scenario.clients.count,
            silent: scenario.clients.silent,
            duration: scenario.duration(),
            moves: scenario.moves.clone(),
            events: scenario.events.clone(),
            reconnects: scenario.reconnects.clone(),
            seed: scenario.seed,
        })
    }

    fn client(&self, index: u32, name: String) -> Client {
        let filters = self.workload.subscription(index).filters;
        let home = self.workload.position(self.workload.home(ClientId(index)));
        let wish = Wish { id: "near".to_owned(), filters, is_durable: self.reconnects.durable };
        Client { name, home: Some(home), wishes: vec![wish] }
    }

    /// Everybody walks at a rhythm.
    fn walks(&self) -> Steps {
        let (interval_s, count) = (self.moves.interval_s, u64::from(self.clients));
        if interval_s <= 0.0 || count == 0 {
            return Box::new(std::iter::empty());
        }
        let (plan, duration) = (self.clone(), self.duration);
        let mut spots: Vec<Spot> =
            (0..self.clients).map(|client| self.workload.home(ClientId(client))).collect();
        let steps = (0..).map(move |nth: u64| {
            let client = u32::try_from(nth % count).unwrap_or_default();
            let spot = &mut spots[client as usize];
            *spot = plan.workload.step(nth, *spot, plan.moves.step_m);
            let at = Duration::from_secs_f64(interval_s * (nth as f64 + 1.0) / count as f64);
            Step { at, act: Act::Move { client, to: plan.workload.position(*spot), truth: None } }
        });
        Box::new(steps.take_while(move |step| step.at < duration))
    }

    fn happenings(&self) -> Steps {
        let (workload, duration, ttl_s) = (Arc::clone(&self.workload), self.duration, self.events.ttl_s);
        let times = super::arrivals(&self.events, self.seed).zip(0..);
        let steps = times.map(move |(at, nth)| {
            let occurrence =
                Occurrence { event: workload.event(nth), truth: None, ttl_s, key: None, is_alarm: false };
            Step { at, act: Act::Publish(Box::new(occurrence)) }
        });
        Box::new(steps.take_while(move |step| step.at < duration))
    }
}

impl Plan for PaperPlan {
    fn world(&self) -> World {
        self.workload.world()
    }

    fn clients(&self) -> Vec<Client> {
        (0..self.clients).map(|index| self.client(index, format!("client-{index}"))).collect()
    }

    fn silent_count(&self) -> u64 {
        self.silent
    }

    fn silent(&self, index: u64) -> Client {
        // Both together fitted when the plan was made.
        let nth = u32::try_from(u64::from(self.clients) + index).unwrap_or(u32::MAX);
        self.client(nth, format!("silent-{index}"))
    }

    fn steps(&self) -> Steps {
        let breaks = super::breaks(&self.reconnects, self.clients, self.seed, self.duration);
        Box::new(super::merge::merge(vec![self.walks(), self.happenings(), breaks]))
    }
}
