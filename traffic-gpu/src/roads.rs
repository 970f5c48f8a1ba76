//! Streets as vehicles see them, in flat arrays as a device gets them.

use std::ops::Range;

use kernels::traffic::{Arc, CROSSES, Junction, NONE, SIGNALS};
use rayon::prelude::*;
use streets::{Class, Country, CountryArc, Network};

use crate::error::Error;
use crate::model::{SLOT_MM, chance, lanes, limit};

/// Most groups of a junction; arcs beyond share the last.
const GROUPS: u32 = 8;
/// The fastest limit: with the fastest driver's factor it is below 2^16 mm/s.
const LIMIT: f64 = 56_000.0;
/// The longest arc: sums of two fit into 31 bits.
const LENGTH: f64 = 1e9;
/// Where the class of an arc is in `limits`.
const CLASS: u32 = 25;
/// Nodes that a thread takes at a time.
const CHUNK: u32 = 1 << 14;
/// The most nodes, arcs, lanes.
const MAX: u64 = 1 << 31;

/// Streets that traffic is driven on.
///
/// Where vehicles count otherwise than maps: an arc is at least as long as the room of a vehicle (6.5 m), and as the fastest of them drives in a step (half a
/// second), so that nobody passes more than one end in a step.
#[derive(Debug)]
pub struct Roads {
    /// The arcs that leave node n are `first[n]..first[n + 1]`.
    pub(crate) first: Vec<u32>,
    pub(crate) arcs: Vec<Arc>,
    /// The lanes of arc a are `lanes[a]..lanes[a + 1]`.
    pub(crate) lanes: Vec<u32>,
    pub(crate) junctions: Vec<Junction>,
}

/// An arc as it comes from a map.
struct Piece {
    to: u32,
    length_m: f64,
    limit_ms: f32,
    lanes: u8,
    class: Class,
    /// Its direction at its end, in degrees.
    arrives_deg: f32,
}

impl Roads {
    /// The streets of a network.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::DeadEnd`], which a connected network has none of.
    pub fn of_network(network: &Network, seed: u64) -> Result<Self, Error> {
        let nodes = u32::try_from(network.nodes_count()).unwrap_or(NONE);
        let is_told = (0..nodes).any(|node| network.has_signals(node));
        let has_signals = |node| is_told.then(|| network.has_signals(node));
        pack(nodes, seed, has_signals, |node, pieces| {
            pieces.extend(network.arcs_from(node).map(|arc| Piece {
                to: network.to(arc),
                length_m: network.length_m(arc),
                limit_ms: network.limit_ms(arc),
                lanes: network.lanes(arc),
                class: network.class(arc),
                arrives_deg: narrow(network.heading_deg(arc, network.length_m(arc))),
            }));
        })
    }

    /// The streets of a country that is made up, without a network in between.
    ///
    /// Cost: at 24 million nodes 1.8 GB that stay, and 1 GB meanwhile.
    ///
    /// # Errors
    /// [`Error::TooLarge`]
    pub fn of_country(country: &Country, seed: u64) -> Result<Self, Error> {
        pack(
            country.nodes_count(),
            seed,
            |_| None,
            |node, pieces| {
                let mut arcs: Vec<CountryArc> = Vec::new();
                country.arcs(node, &mut arcs);
                let [x, y] = country.node_at(node);
                pieces.extend(arcs.into_iter().map(|arc| {
                    let [to_x, to_y] = country.node_at(arc.to);
                    let (east, north) = (to_x - x, to_y - y);
                    Piece {
                        to: arc.to,
                        length_m: (east * east + north * north).sqrt(),
                        limit_ms: arc.limit_ms,
                        lanes: arc.lanes,
                        class: arc.class,
                        arrives_deg: narrow(east.atan2(north).to_degrees()),
                    }
                }));
            },
        )
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes_count(&self) -> u32 {
        number(self.junctions.len())
    }

    /// How many arcs there are.
    #[must_use]
    pub fn arcs_count(&self) -> u32 {
        number(self.arcs.len())
    }

    /// How many lanes all arcs have together.
    #[must_use]
    pub fn lanes_count(&self) -> u32 {
        self.lanes.last().copied().unwrap_or(0)
    }

    /// How long they are together, in km, as vehicles count.
    #[must_use]
    pub fn lanes_km(&self) -> f64 {
        self.arcs.par_iter().map(|arc| f64::from(arc.length_mm) * f64::from(lanes(arc))).sum::<f64>() / 1e6
    }

    /// How many lanes an arc has.
    #[must_use]
    pub fn lanes_of(&self, arc: u32) -> u32 {
        lanes(&self.arcs[arc as usize])
    }

    /// How long an arc is as vehicles count, in mm.
    #[must_use]
    pub fn length_mm(&self, arc: u32) -> u32 {
        self.arcs[arc as usize].length_mm
    }

    /// Its speed limit, in mm/s.
    #[must_use]
    pub fn limit_mm_s(&self, arc: u32) -> u32 {
        limit(&self.arcs[arc as usize])
    }

    /// The node that it reaches.
    #[must_use]
    pub fn to(&self, arc: u32) -> u32 {
        self.arcs[arc as usize].to
    }

    /// The node that it leaves.
    #[must_use]
    pub fn from(&self, arc: u32) -> u32 {
        self.arcs[arc as usize].from
    }

    /// The arcs that leave a node.
    pub(crate) fn leaving(&self, node: u32) -> Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// At the end of an arc by chance, rather onto wide and quick streets; back only where there is no other way.
    pub(crate) fn walk(&self, seed: u64, vehicle: u32, arc: &Arc, hop: u32, changes: u16) -> u32 {
        let leaving = self.leaving(arc.to);
        let arcs = &self.arcs[leaving.start as usize..leaving.end as usize];
        let weight = |other: &Arc| match () {
            () if other.to == other.from || other.to == arc.from => 0,
            () => u64::from(limit(other) * lanes(other)),
        };
        let back = || {
            let mut back = arcs.iter().zip(leaving.clone());
            back.find(|(other, _)| other.to == arc.from && other.to != other.from).map_or(NONE, |(_, at)| at)
        };
        let all: u64 = arcs.iter().map(weight).sum();
        if all == 0 {
            return back();
        }
        let nth = hop.wrapping_add(u32::from(changes).wrapping_mul(0x9e37_79b1));
        let mut left = (all * u64::from(chance(seed, vehicle, nth))) >> 32;
        for (other, at) in arcs.iter().zip(leaving.clone()) {
            let weight = weight(other);
            if left < weight {
                return at;
            }
            left -= weight;
        }
        back()
    }
}

/// Packs arcs, node by node. `has_signals` says so where the source knows; else large junctions of streets that matter have them.
fn pack(
    nodes: u32,
    seed: u64,
    has_signals: impl Fn(u32) -> Option<bool> + Sync,
    pieces_of: impl Fn(u32, &mut Vec<Piece>) + Sync,
) -> Result<Roads, Error> {
    check("nodes", u64::from(nodes))?;
    let mut first = Vec::with_capacity(nodes as usize + 1);
    first.push(0);
    let (mut arcs, mut arrives) = (Vec::<Arc>::new(), Vec::<f32>::new());
    // A wave of chunks at a time, so that arcs are not held twice.
    let wave = CHUNK.saturating_mul(64);
    for begin in (0..nodes).step_by(wave as usize) {
        let end = begin.saturating_add(wave).min(nodes);
        let chunks = (begin..end).step_by(CHUNK as usize).collect::<Vec<_>>();
        let packed = chunks.into_par_iter().map(|begin| {
            let (mut counts, mut packed, mut pieces) = (Vec::new(), Vec::new(), Vec::new());
            for from in begin..begin.saturating_add(CHUNK).min(end) {
                pieces.clear();
                pieces_of(from, &mut pieces);
                counts.push(number(pieces.len()));
                packed.extend(pieces.iter().map(|piece| (packed_arc(from, piece), piece.arrives_deg)));
            }
            (counts, packed)
        });
        for (counts, packed) in packed.collect::<Vec<_>>() {
            for count in counts {
                first.push(first[first.len() - 1] + count);
            }
            arcs.extend(packed.iter().map(|(arc, _)| *arc));
            arrives.extend(packed.iter().map(|(_, deg)| *deg));
        }
        check("arcs", arcs.len() as u64)?;
    }
    if let Some(node) = (0..nodes).find(|node| first[*node as usize] == first[*node as usize + 1]) {
        return Err(Error::DeadEnd { node });
    }
    let mut lanes_begin = Vec::with_capacity(arcs.len() + 1);
    let mut sum = 0;
    lanes_begin.push(0);
    for arc in &arcs {
        sum += lanes(arc);
        lanes_begin.push(sum);
    }
    check("lanes", u64::from(sum))?;
    let (in_first, in_arcs) = by_head(nodes, &arcs);
    let range = |first: &[u32], node: u32| first[node as usize] as usize..first[node as usize + 1] as usize;
    let chunks = (0..nodes).step_by(CHUNK as usize).collect::<Vec<_>>().into_par_iter().map(|begin| {
        let (mut groups, mut junctions) = (Vec::new(), Vec::new());
        for node in begin..begin.saturating_add(CHUNK).min(nodes) {
            let (reaching, leaving) = (&in_arcs[range(&in_first, node)], &arcs[range(&first, node)]);
            let (mut some, junction) =
                junction(node, seed, &arcs, &arrives, reaching, leaving, has_signals(node));
            groups.append(&mut some);
            junctions.push(junction);
        }
        (groups, junctions)
    });
    let chunks: Vec<_> = chunks.collect();
    drop(arrives);
    let mut junctions = Vec::with_capacity(nodes as usize);
    let mut reaching = in_arcs.into_iter();
    for (groups, mut some) in chunks {
        junctions.append(&mut some);
        for (group, arc) in groups.into_iter().zip(&mut reaching) {
            arcs[arc as usize].limits |= group;
        }
    }
    Ok(Roads { first, arcs, lanes: lanes_begin, junctions })
}

fn packed_arc(from: u32, piece: &Piece) -> Arc {
    let limit = whole(f64::from(piece.limit_ms) * 1000.0, 1000.0, LIMIT);
    // As far as the fastest driver comes in a step, and a little more.
    let least = f64::from(SLOT_MM.max(limit * 3 / 5));
    let limits = limit | u32::from(piece.lanes.clamp(1, 4) - 1) << 16 | (piece.class as u32) << CLASS;
    Arc { to: piece.to, from, length_mm: whole(piece.length_m * 1000.0, least, LENGTH), limits }
}

/// The junction of a node, and the bits of `limits` for each arc that reaches it.
fn junction(
    node: u32,
    seed: u64,
    arcs: &[Arc],
    arrives: &[f32],
    reaching: &[u32],
    leaving: &[Arc],
    has_signals: Option<bool>,
) -> (Vec<u32>, Junction) {
    let mut others: Vec<_> = leaving.iter().map(|arc| arc.to).collect();
    others.extend(reaching.iter().map(|arc| arcs[*arc as usize].from));
    others.sort_unstable();
    others.dedup();
    let nobody_waits = || (vec![0; reaching.len()], Junction::default());
    if others.len() < 3 || reaching.len() < 2 {
        return nobody_waits();
    }
    let rank = |at: usize| arcs[reaching[at] as usize].limits >> CLASS & 15;
    let mut left: Vec<_> = (0..reaching.len()).collect();
    left.sort_by_key(|at| (rank(*at), *at));
    let (mut groups, mut ranks, mut count) = (vec![0; reaching.len()], 0, 0);
    let mut least = 0;
    // The most important first, each with the one that comes nearest to the other way.
    while !left.is_empty() {
        let at = left.remove(0);
        let group = count.min(GROUPS - 1);
        if count < GROUPS {
            ranks |= rank(at) << (4 * group);
            least = least.max(rank(at));
            count += 1;
        }
        groups[at] = group;
        let opposed = |other: usize| {
            let turn = arrives[reaching[other] as usize] - arrives[reaching[at] as usize];
            180.0 - (turn.rem_euclid(360.0) - 180.0).abs()
        };
        let partner = left.iter().enumerate().map(|(nth, other)| (nth, opposed(*other)));
        let partner = partner.filter(|(_, opposed)| *opposed > 135.0).max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((nth, _)) = partner {
            groups[left.remove(nth)] = group;
        }
    }
    if count < 2 {
        return nobody_waits();
    }
    let is_large = others.len() >= 4 && least <= Class::Tertiary as u32;
    let has_signals = has_signals.unwrap_or(is_large);
    let kind = count | if has_signals { SIGNALS } else { 0 };
    let ready = if has_signals { chance(seed ^ 2, node, 0) % 10_000 } else { 0 };
    let junction = Junction { ranks, kind: u16::try_from(kind).unwrap_or(0), open: 0, since: 0, ready };
    (groups.into_iter().map(|group| group << 18 | CROSSES).collect(), junction)
}

/// Arcs by the node that they reach, ascending within each.
fn by_head(nodes: u32, arcs: &[Arc]) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0; nodes as usize + 2];
    for arc in arcs {
        first[arc.to as usize + 2] += 1;
    }
    for node in 2..first.len() {
        first[node] += first[node - 1];
    }
    let mut by_head = vec![0; arcs.len()];
    for (arc, number) in arcs.iter().zip(0..) {
        let at = &mut first[arc.to as usize + 1];
        by_head[*at as usize] = number;
        *at += 1;
    }
    (first, by_head)
}

fn check(parts: &'static str, count: u64) -> Result<(), Error> {
    if count < MAX { Ok(()) } else { Err(Error::TooLarge { count, parts }) }
}

/// A count that was checked.
#[expect(clippy::cast_possible_truncation, reason = "`pack` refuses more")]
pub(crate) fn number(count: usize) -> u32 {
    count as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds that fit")]
fn whole(number: f64, least: f64, most: f64) -> u32 {
    number.round().clamp(least, most) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "a direction, to a ten-thousandth of a degree")]
fn narrow(degrees: f64) -> f32 {
    degrees as f32
}
