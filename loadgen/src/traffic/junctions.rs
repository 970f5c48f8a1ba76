//! Who may cross a junction.
//!
//! The arcs that reach a junction are put into groups that do not get into each other's way: an arc and the one that comes the
//! other way. One group at a time is let through.
//!
//! - With signals, by the clock: `green_s` each, `clear_s` in between.
//! - Without, who asks for it: the more important street first, others when they have waited for [`PATIENCE_S`]; streets that are
//!   equally important take turns of at least [`TURN_S`]. A change while somebody is under way takes [`CHANGE_S`].
//! - Where two arms meet, or only one arc comes in, everybody may go on.
//!
//! What turns left before those who come the other way is not held back: conflicts inside a group are not modelled.

use rayon::prelude::*;

use super::chance;
use super::road::{Cars, Lanes, State};
use super::settings::Settings;
use streets::{Class, NONE, Network};

/// How long the lesser street waits before it takes its turn.
const PATIENCE_S: f32 = 15.0;
/// The least that an equal street has to itself while others wait.
const TURN_S: f64 = 4.0;
/// How long nobody may go when the turn changes while somebody comes.
const CHANGE_S: f64 = 1.0;
/// How strongly one brakes for a light that changes, in m/s²: who would have to brake more drives on.
const AMBER_MS2: f32 = 3.0;
/// No group.
const NOBODY: u8 = u8::MAX;
/// The most groups of a junction; arcs beyond share the last.
const GROUPS_MAX: u8 = 16;

/// All junctions.
#[derive(Debug)]
pub(super) struct Junctions {
    /// Which of `all` an arc leads to; [`NONE`] where everybody may go on.
    of_arc: Vec<u32>,
    group: Vec<u8>,
    all: Vec<Junction>,
}

#[derive(Clone, Debug)]
struct Junction {
    node: u32,
    /// The most important street of each group, as [`Class`] orders them.
    ranks: Vec<Class>,
    /// Signals: how far their clock is ahead, in seconds.
    signals_offset_s: Option<f64>,
    open: u8,
    /// When the open group got its turn.
    since_s: f64,
    /// From when on it may go.
    ready_s: f64,
}

/// Who wants to cross.
#[derive(Clone, Copy, Default)]
struct Asking {
    is_there: bool,
    waited_s: f32,
}

impl Junctions {
    pub(super) fn of(network: &Network, seed: u64) -> Self {
        let mut junctions = Self {
            of_arc: vec![NONE; network.arcs_count()],
            group: vec![0; network.arcs_count()],
            all: Vec::new(),
        };
        // Tables say nothing of signals: then large junctions of streets that matter have them.
        let nodes = 0..u32::try_from(network.nodes_count()).unwrap_or(NONE);
        let is_told = nodes.clone().any(|node| network.has_signals(node));
        for node in nodes {
            let arms = arms(network, node);
            if arms < 3 || network.arcs_to(node).len() < 2 {
                continue;
            }
            let ranks = junctions.group_arcs(network, node);
            let is_large = arms >= 4 && ranks.iter().all(|rank| *rank <= Class::Tertiary);
            let has_signals = ranks.len() > 1 && (network.has_signals(node) || (!is_told && is_large));
            let offset_s = f64::from(chance::unit(chance::mixed(seed, u64::from(node), u64::MAX))) * 1000.0;
            for arc in network.arcs_to(node) {
                junctions.of_arc[*arc as usize] = u32::try_from(junctions.all.len()).unwrap_or(NONE);
            }
            junctions.all.push(Junction {
                node,
                ranks,
                signals_offset_s: has_signals.then_some(offset_s),
                open: 0,
                since_s: 0.0,
                ready_s: 0.0,
            });
        }
        junctions
    }

    /// Pairs the arcs that reach a node, the most important first, each with the one that comes nearest to the other way.
    fn group_arcs(&mut self, network: &Network, node: u32) -> Vec<Class> {
        let mut left = network.arcs_to(node).to_vec();
        left.sort_by_key(|arc| (network.class(*arc), *arc));
        left.reverse();
        let mut ranks = Vec::new();
        while let Some(arc) = left.pop() {
            let group = u8::try_from(ranks.len()).unwrap_or(NOBODY).min(GROUPS_MAX - 1);
            if ranks.len() < usize::from(GROUPS_MAX) {
                ranks.push(network.class(arc));
            }
            self.group[arc as usize] = group;
            let heading = network.heading_deg(arc, network.length_m(arc));
            let opposed = |other: &u32| {
                let turn = network.heading_deg(*other, network.length_m(*other)) - heading;
                180.0 - (turn.rem_euclid(360.0) - 180.0).abs()
            };
            let partner = left.iter().enumerate().map(|(at, other)| (at, opposed(other)));
            let partner = partner.filter(|(_, opposed)| *opposed > 135.0).max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((at, _)) = partner {
                self.group[left.remove(at) as usize] = group;
            }
        }
        ranks
    }

    /// Whether one who is `distance_m` before the end of an arc has to stop there: it is somebody else's turn, and one still can.
    #[inline]
    pub(super) fn is_closed(&self, arc: u32, now_s: f64, speed_ms: f32, distance_m: f32) -> bool {
        let junction = self.of_arc[arc as usize];
        if junction == NONE {
            return false;
        }
        let junction = &self.all[junction as usize];
        let is_open = junction.open == self.group[arc as usize] && now_s >= junction.ready_s;
        !is_open && speed_ms * speed_ms <= 2.0 * AMBER_MS2 * distance_m.max(0.0)
    }

    /// How many junctions have signals, and how many there are.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.all.iter().filter(|junction| junction.signals_offset_s.is_some()).count(), self.all.len())
    }

    /// Gives each junction to one of those who want to cross.
    pub(super) fn turn(
        &mut self,
        network: &Network,
        lanes: &Lanes,
        cars: &Cars,
        settings: &Settings,
        now_s: f64,
    ) {
        let group = &self.group;
        self.all.par_iter_mut().with_min_len(512).for_each(|junction| match junction.signals_offset_s {
            Some(offset_s) => {
                let turn_s = f64::from(settings.green_s + settings.clear_s);
                let within_s = (now_s + offset_s) % (turn_s * count(junction.ranks.len()));
                let is_green = within_s % turn_s < f64::from(settings.green_s);
                junction.open = if is_green { nth(within_s / turn_s) } else { NOBODY };
            }
            None => junction.give(network, lanes, cars, settings, group, now_s),
        });
    }
}

impl Junction {
    /// Without signals: who asks for it gets it.
    fn give(
        &mut self,
        network: &Network,
        lanes: &Lanes,
        cars: &Cars,
        settings: &Settings,
        group: &[u8],
        now_s: f64,
    ) {
        let mut asking = [Asking::default(); GROUPS_MAX as usize];
        for &arc in network.arcs_to(self.node) {
            for lane in lanes.of_arc(arc) {
                let first = lanes.first[lane as usize];
                if first == NONE {
                    continue;
                }
                let car = first as usize;
                let distance_m = length_m(network, arc) - cars.along_m[car];
                // A vehicle that has broken down does not want to cross.
                let is_driving = cars.state[car] == State::Driving;
                if is_driving
                    && distance_m < settings.idm.wanted_gap_m(cars.speed_ms[car], cars.speed_ms[car]) + 5.0
                {
                    let asking = &mut asking[usize::from(group[arc as usize])];
                    asking.is_there = true;
                    asking.waited_s = asking.waited_s.max(cars.waited_s[car]);
                }
            }
        }
        let asks = |group: &u8| asking[usize::from(*group)].is_there && *group != self.open;
        let better = |group: &u8| {
            let rank = self.ranks[usize::from(*group)];
            let is_late = asking[usize::from(*group)].waited_s >= PATIENCE_S;
            (!is_late, rank)
        };
        let groups = 0..u8::try_from(self.ranks.len()).unwrap_or(GROUPS_MAX);
        let waits = |group: &u8| -asking[usize::from(*group)].waited_s;
        let best =
            groups.filter(asks).min_by(|a, b| better(a).cmp(&better(b)).then(waits(a).total_cmp(&waits(b))));
        let Some(best) = best else { return };
        let is_used = asking[usize::from(self.open)].is_there;
        let (mine, theirs) = (self.ranks[usize::from(self.open)], self.ranks[usize::from(best)]);
        let is_late = asking[usize::from(best)].waited_s >= PATIENCE_S;
        let is_turn = now_s >= self.since_s + TURN_S && (theirs <= mine || is_late);
        if !is_used || is_turn {
            self.open = best;
            self.since_s = now_s;
            self.ready_s = if is_used { now_s + CHANGE_S } else { now_s };
        }
    }
}

/// How many other nodes a node has streets to or from.
fn arms(network: &Network, node: u32) -> usize {
    let out = network.arcs_from(node).map(|arc| network.to(arc));
    let mut others =
        out.chain(network.arcs_to(node).iter().map(|arc| network.from(*arc))).collect::<Vec<_>>();
    others.sort_unstable();
    others.dedup();
    others.len()
}

/// The length of an arc as vehicles count it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the places of vehicles are as exact as that")]
pub(super) fn length_m(network: &Network, arc: u32) -> f32 {
    network.length_m(arc) as f32
}

#[expect(clippy::cast_precision_loss, reason = "at most 16")]
fn count(groups: usize) -> f64 {
    groups as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 16")]
fn nth(turn: f64) -> u8 {
    turn as u8
}
