//! Ways to destinations: whole routes when trips begin, and the way ahead every five seconds.
//!
//! Both engines leave whole routes to [`plan`]; the way ahead is found by [`ahead`] on the processor and by `traffic_ways` on a device.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use kernels::traffic::{AHEAD, AHEAD_MM, DRIVES, KNOWN, NONE, ROUTE, Trip, WAITS, WINDOW, Way};
use rayon::prelude::*;

use crate::model::chance;
use crate::roads::{Roads, number};

/// Nodes that lie between a vehicle and its destination, by the time that it takes to get there: at least so many, and up to so many more.
const NODES_LEAST: u32 = 200;
const NODES_SPREAD: u32 = 10_000;

/// Gives a destination and a route there to each trip that waits for one; trips and routes that are new.
///
/// A destination is the last of the nodes that are reached first, as many as chance says, at the weights of the moment. Where that is more than 2,048 arcs
/// away, the trip ends before.
pub(crate) fn plan(roads: &Roads, weights: &[u32], seed: u64, trips: &mut [Trip]) -> Vec<(usize, Vec<u32>)> {
    let planned = trips.par_iter_mut().enumerate().filter(|(_, trip)| trip.state == WAITS);
    let planned = planned.map(|(number_of_trip, trip)| {
        let reached = NODES_LEAST + chance(seed ^ 7, trip.vehicle, trip.asked) % NODES_SPREAD;
        let route = explore(roads, weights, trip.head, reached);
        trip.asked += 1;
        trip.state = DRIVES;
        trip.base = 0;
        trip.length = number(route.len());
        (number_of_trip, route)
    });
    planned.collect()
}

/// The quickest way to the last of the `reached` nodes that are nearest.
fn explore(roads: &Roads, weights: &[u32], head: u32, reached: u32) -> Vec<u32> {
    let mut known = HashMap::from([(head, (0_u64, NONE))]);
    let mut queue = BinaryHeap::from([Reverse((0_u64, head))]);
    let (mut settled, mut last) = (0, head);
    while let Some(Reverse((cost, node))) = queue.pop() {
        if cost > known[&node].0 {
            continue;
        }
        last = node;
        settled += 1;
        if settled == reached {
            break;
        }
        for arc in roads.leaving(node) {
            let (to, then) = (roads.to(arc), cost + u64::from(weights[arc as usize]));
            let entry = known.entry(to).or_insert((u64::MAX, NONE));
            if then < entry.0 {
                *entry = (then, arc);
                queue.push(Reverse((then, to)));
            }
        }
    }
    let mut route = Vec::new();
    while last != head {
        let via = known[&last].1;
        route.push(via);
        last = roads.from(via);
    }
    route.reverse();
    route.truncate(ROUTE as usize);
    route
}

/// Looks how far a trip has come: where its vehicle is, whether it is over, and which node of its route was reached.
pub(crate) fn pass(roads: &Roads, trip: &mut Trip, route: &[u32], on_arc: u32, hop: u32) {
    trip.head = roads.to(on_arc);
    if trip.state != DRIVES {
        return;
    }
    if trip.is_last != 0 && hop.wrapping_sub(trip.from_hop) >= trip.ahead {
        trip.arrivals += 1;
        trip.state = WAITS;
        (trip.ahead, trip.is_last) = (0, 0);
        return;
    }
    let window = trip.base..trip.length.min(trip.base + WINDOW);
    if let Some(at) = window.rev().find(|at| roads.to(route[*at as usize]) == trip.head) {
        trip.base = at + 1;
    }
}

/// Finds the way ahead of a trip at the weights of the moment: to the node of its route that is a kilometre ahead.
pub(crate) fn ahead(
    roads: &Roads,
    weights: &[u32],
    trip: &mut Trip,
    route: &[u32],
    way: &mut Way,
    found: &mut Vec<u32>,
) {
    if trip.state != DRIVES {
        return;
    }
    let (mut target, mut sum_mm) = (trip.base, 0);
    while target < trip.length && sum_mm < AHEAD_MM {
        sum_mm += roads.length_mm(route[target as usize]).min(AHEAD_MM);
        target += 1;
    }
    let goal = if target == 0 { trip.head } else { roads.to(route[target as usize - 1]) };
    trip.from_hop = way.hop;
    (trip.ahead, trip.is_last) = (0, 0);
    let Some(arcs) = search(roads, weights, trip.head, goal) else {
        trip.lost += 1;
        trip.state = WAITS;
        return;
    };
    trip.is_last = u32::from(target == trip.length && arcs.len() <= AHEAD as usize);
    *found = arcs;
    found.truncate(AHEAD as usize);
    trip.ahead = number(found.len());
    if let Some(next) = found.first() {
        way.next = *next;
        way.changes = 0;
    }
}

/// The quickest way to a node, of those through the nodes that are known first.
fn search(roads: &Roads, weights: &[u32], head: u32, goal: u32) -> Option<Vec<u32>> {
    let mut known = HashMap::from([(head, (0_u32, NONE))]);
    let mut queue = BinaryHeap::from([Reverse((0_u32, head))]);
    while let Some(Reverse((cost, node))) = queue.pop() {
        if cost > known[&node].0 {
            continue;
        }
        if node == goal {
            let (mut arcs, mut node) = (Vec::new(), goal);
            while node != head {
                let via = known[&node].1;
                arcs.push(via);
                node = roads.from(via);
            }
            arcs.reverse();
            return Some(arcs);
        }
        for arc in roads.leaving(node) {
            let (to, then) = (roads.to(arc), cost + weights[arc as usize]);
            if known.len() >= KNOWN as usize && !known.contains_key(&to) {
                continue;
            }
            let entry = known.entry(to).or_insert((u32::MAX, NONE));
            if then < entry.0 {
                *entry = (then, arc);
                queue.push(Reverse((then, to)));
            }
        }
    }
    None
}
