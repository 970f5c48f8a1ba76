//! The plan of a run, which a seed decides once and for all, and the choices on the way.

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::session::Bounds;
use super::spec::{Area, Event, Spec, Transitions};
use crate::model::delivery::OverflowName;

/// How a run is set. Bounds are small, so that they are reached.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) shards_count: usize,
    pub(super) scans: bool,
    pub(super) bounds: Bounds,
    pub(super) outbox_frames: usize,
    pub(super) ack_delay_ms: u64,
    /// Events of which it is known to whom they went.
    pub(super) recent_events: usize,
    pub(super) fold_rows: u64,
    pub(super) folds_at_once: bool,
    /// How many subscriptions a client has at most.
    pub(super) subscriptions_max: usize,
    pub(super) clients_count: usize,
    pub(super) steps_count: usize,
    /// Weights of disk faults and of crashes among the steps, against 1,000 for all other steps.
    pub(super) faults: u32,
    pub(super) crashes: u32,
    /// How often replaced and removed data are wiped.
    pub(super) wipe_every_ms: Option<u64>,
}

pub(super) struct Choices(pub(super) StdRng);

/// Places are from 0 to here.
const WIDTH: i64 = 12;

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.0.random_bool(probability)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    pub(super) fn plan(&mut self) -> Plan {
        // Of the same subject are deliveries of the same subscriptions: with one there is no doubt about their order.
        let keeps_latest = self.chance(0.2);
        let overflow = match keeps_latest {
            true => OverflowName::KeepLatest,
            false => self.one(&[OverflowName::DropOldest, OverflowName::Disconnect]),
        };
        let bounds = Bounds {
            frames: self.one(&[3, 8, 1_000]),
            bytes: self.one(&[2_500, 1 << 20, 1 << 20]),
            age_ms: self.one(&[5_000, 3_600_000]),
            overflow,
        };
        Plan {
            shards_count: self.one(&[1, 2, 2, 2, 3]),
            scans: self.chance(0.5),
            bounds,
            outbox_frames: self.one(&[1, 3, 1_000]),
            ack_delay_ms: self.one(&[0, 50, 1_000]),
            recent_events: self.one(&[0, 2]),
            fold_rows: self.one(&[1, 4, 30]),
            folds_at_once: self.chance(0.5),
            subscriptions_max: if keeps_latest { 1 } else { self.one(&[1, 3]) },
            clients_count: self.one(&[2, 4, 6]),
            steps_count: self.one(&[60, 150, 300]),
            faults: self.one(&[0, 10, 30]),
            crashes: self.one(&[0, 10, 30]),
            wipe_every_ms: self.one(&[None, Some(0), Some(2_000)]),
        }
    }

    pub(super) fn place(&mut self) -> i64 {
        self.0.random_range(0..=WIDTH)
    }

    pub(super) fn event(&mut self, number: u64) -> Event {
        let key = self.chance(0.5).then(|| self.one(&["a", "b", "c"]).to_owned());
        let lives = self.chance(0.5);
        let ttl_ms = if lives { Some(self.0.random_range(1..8_000)) } else { None };
        let id = if self.chance(0.6) { self.one(&["x", "y", "z"]).to_owned() } else { format!("e{number}") };
        let padding = self.one(&[0, 0, 300]);
        Event { number, id, key, ttl_ms, at: self.place(), kind: self.one(&[1, 2]), padding }
    }

    pub(super) fn spec(&mut self, plan: &Plan) -> Spec {
        let radius = self.0.random_range(0..6);
        let area = match self.below(10) {
            0..6 => Area::Following(radius),
            6..8 => Area::Circle(self.place(), radius),
            _ => Area::Everywhere,
        };
        let transitions = self.chance(0.5).then(|| {
            let (enter, exit) = self.one(&[(true, true), (true, true), (true, false), (false, true)]);
            let dwell_ms = self.one(&[0, 0, 700, 1_500]);
            Transitions { enter, exit, initial: self.chance(0.5), dwell_ms }
        });
        let latest = plan.bounds.overflow == OverflowName::KeepLatest;
        let overflow = match self.below(4) {
            0 => Some(OverflowName::DropOldest),
            1 => Some(OverflowName::Disconnect),
            2 if latest => Some(OverflowName::KeepLatest),
            _ => None,
        };
        let kind = self.chance(0.4).then(|| self.one(&[1, 2]));
        Spec { area, kind, confined: None, transitions, durable: self.chance(0.75), overflow }
    }
}
