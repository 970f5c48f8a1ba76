//! Phases by turns: without harm, with harm to a second broker on the same machine, and with harm to the broker that the ordinary clients use.
//! Each has a broker of its own, fresh, so that none inherits what another left.
//!
//! What the first and the last differ by is what harm costs on this machine, its own work included, which competes with everybody's for
//! processors; what the last two differ by is what it costs to share a broker with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::attack::{Attack, Door, Harm};
use super::ordinary::{Ordinary, Phase};
use super::tokens::Tokens;
use crate::fanout::scenario::Scenario;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds of three phases.
    pub rounds: usize,
    /// Events of a phase.
    pub events: u64,
    /// Events per second.
    pub rate: f64,
    /// Whether it is only to be seen that it works.
    pub quick: bool,
}

/// A broker, seen from outside.
pub trait Running {
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// What it has in memory; `None` when it is not there any more.
    fn memory(&self) -> Option<Memory>;
    /// How it ended; `None` while it runs.
    fn ended(&mut self) -> Option<String>;
}

/// Resident bytes of a program.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Now.
    pub now_bytes: u64,
    /// The most until now.
    pub most_bytes: u64,
}

/// Starts a broker.
pub type Start<'s> = dyn Fn() -> anyhow::Result<Box<dyn Running>> + 's;

/// Whom harm is aimed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// There is none.
    Nobody,
    /// A second broker.
    Bystander,
    /// The broker of the ordinary clients.
    Broker,
}

impl Aim {
    pub(super) const ALL: [Self; 3] = [Self::Nobody, Self::Bystander, Self::Broker];
}

/// A phase, and what else was seen in it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Whom harm was aimed at.
    pub aim: Aim,
    /// What became of the ordinary clients' events; `None` when the broker was gone before they came.
    pub phase: Option<Phase>,
    /// How the broker ended, if it did.
    pub died: Option<String>,
    /// What it had in memory before any harm, the most that it had, and what it had when those that meant harm were gone for a moment.
    pub before_bytes: u64,
    /// See [`before_bytes`](Self::before_bytes).
    pub most_bytes: u64,
    /// See [`before_bytes`](Self::before_bytes).
    pub after_bytes: u64,
    /// Requests a second of those that mean harm, or bytes of those that trickle.
    pub requests_per_s: f64,
    /// What was refused to them, and how many were not let in, all in all.
    pub refused: u64,
    /// See [`refused`](Self::refused).
    pub failed: u64,
}

/// Between the last connection and a phase, and between the end of harm and a last look at what is left.
const CALM: Duration = Duration::from_millis(300);
/// How much of a phase warms everything up before.
const WARM: u64 = 3;

/// Measures the ordinary clients of a broker, by turns.
///
/// # Errors
/// When a broker does not start, or refuses what it has no reason to refuse before there is any harm.
pub async fn measure(
    start: &Start<'_>,
    tokens: Option<&Arc<Tokens>>,
    scenario: &Arc<Scenario>,
    attack: &'static Attack,
    plan: Plan,
) -> anyhow::Result<Vec<Seen>> {
    let mut order = Aim::ALL;
    let mut all = Vec::new();
    for _ in 0..plan.rounds {
        for aim in order {
            all.push(phase(start, tokens, scenario, attack, plan, aim).await?);
        }
        // Nobody is always behind the same one.
        order.rotate_left(1);
    }
    Ok(all)
}

/// One phase, with a broker of its own.
///
/// # Errors
/// As [`measure`].
pub async fn phase(
    start: &Start<'_>,
    tokens: Option<&Arc<Tokens>>,
    scenario: &Arc<Scenario>,
    attack: &'static Attack,
    plan: Plan,
    aim: Aim,
) -> anyhow::Result<Seen> {
    let stage = Stage::set(start, tokens, scenario, attack, plan, aim).await?;
    stage.play(attack, plan, aim).await
}

/// What a phase needs.
struct Stage {
    broker: Box<dyn Running>,
    /// It runs as long as the phase does.
    _bystander: Option<Box<dyn Running>>,
    ordinary: Ordinary,
    target: Option<Door>,
    before_bytes: u64,
}

impl Stage {
    async fn set(
        start: &Start<'_>,
        tokens: Option<&Arc<Tokens>>,
        scenario: &Arc<Scenario>,
        attack: &'static Attack,
        plan: Plan,
        aim: Aim,
    ) -> anyhow::Result<Self> {
        let broker = start()?;
        let bystander = if aim == Aim::Bystander { Some(start()?) } else { None };
        let here = Door::new(broker.address(), tokens.cloned());
        let beside = bystander.as_ref().map(|bystander| Door::new(bystander.address(), tokens.cloned()));
        let target = match aim {
            Aim::Nobody => None,
            Aim::Bystander => beside,
            Aim::Broker => Some(here.clone()),
        };
        let live = attack.live.get(plan.quick);
        Ordinary::publish_live(&here, attack.tenant, live).await?;
        if let (Some(target), Aim::Bystander) = (&target, aim) {
            Ordinary::publish_live(target, attack.tenant, live).await?;
        }
        let mut ordinary = Ordinary::begin(here, Arc::clone(scenario)).await?;
        ordinary.phase(plan.rate, (plan.events / WARM).max(1)).await?;
        let before_bytes = broker.memory().map_or(0, |memory| memory.now_bytes);
        Ok(Self { broker, _bystander: bystander, ordinary, target, before_bytes })
    }

    async fn play(mut self, attack: &'static Attack, plan: Plan, aim: Aim) -> anyhow::Result<Seen> {
        let mut harm = None;
        if let Some(target) = self.target.clone() {
            let begin = move || Harm::begin(attack, &target, plan.quick);
            harm = Some(tokio::task::spawn_blocking(begin).await??);
        }
        tokio::time::sleep(CALM).await;
        let sent = |harm: &Option<Harm>| harm.as_ref().map_or(0, Harm::sent);
        let (began, before) = (Instant::now(), sent(&harm));
        let phase = self.ordinary.phase(plan.rate, plan.events).await?;
        let requests_per_s = (sent(&harm) - before) as f64 / began.elapsed().as_secs_f64();
        let (refused, failed) = harm.as_ref().map_or((0, 0), |harm| (harm.refused(), harm.failed()));
        let most_bytes = self.broker.memory().map_or(0, |memory| memory.most_bytes);
        drop(harm);
        tokio::time::sleep(CALM).await;
        let after_bytes = self.broker.memory().map_or(0, |memory| memory.now_bytes);
        let died = self.broker.ended();
        let phase = if died.is_some() && phase.latency_us.is_empty() { None } else { Some(phase) };
        Ok(Seen {
            aim,
            phase,
            died,
            before_bytes: self.before_bytes,
            most_bytes,
            after_bytes,
            requests_per_s,
            refused,
            failed,
        })
    }
}
