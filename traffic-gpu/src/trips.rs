//! Ways to destinations: whole routes when trips begin, and the way ahead every five seconds.
//!
//! Both engines leave whole routes to [`plan`]; the way ahead is found by [`ahead`] on the processor and by `traffic_ways` on a device.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use kernels::traffic::{AHEAD, AHEAD_MM, DRIVES, KNOWN, NONE, ROUTE, Trip, WAITS, WINDOW, Way};
use rayon::prelude::*;

use crate::model::chance;
use crate::roads::{Roads, number};

/// Nodes that lie between a vehicle and its destination, by the time that it takes to get there: at least this many, and up to that many more.
const NODES_LEAST: u32 = 200;
const NODES_SPREAD: u32 = 10_000;

/// Gives a destination and a route there to each trip that waits for one; trips and routes that are new.
///
/// A destination is the last of the nodes that are reached first, as many as chance says, at the weights of the last snapshot, which is at most a minute old. Where that is more than 2,048 arcs
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
    let mut settled = 0;
    let (_, mut route) = quickest(roads, weights, head, usize::MAX, |_| {
        settled += 1;
        settled == reached
    });
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
    let (is_reached, arcs) = quickest(roads, weights, head, KNOWN as usize, |node| node == goal);
    is_reached.then_some(arcs)
}

/// The quickest way to the first node, by the time that it takes, that is the end; or else to the last one, and says so. No more than `known_max`
/// nodes are known.
fn quickest(
    roads: &Roads,
    weights: &[u32],
    head: u32,
    known_max: usize,
    mut is_end: impl FnMut(u32) -> bool,
) -> (bool, Vec<u32>) {
    let mut known = HashMap::from([(head, (0_u64, NONE))]);
    let mut queue = BinaryHeap::from([Reverse((0_u64, head))]);
    let (mut last, mut is_reached) = (head, false);
    while let Some(Reverse((cost, node))) = queue.pop() {
        if cost > known[&node].0 {
            continue;
        }
        last = node;
        is_reached = is_end(node);
        if is_reached {
            break;
        }
        for arc in roads.leaving(node) {
            let (to, then) = (roads.to(arc), cost + u64::from(weights[arc as usize]));
            if known.len() >= known_max && !known.contains_key(&to) {
                continue;
            }
            let entry = known.entry(to).or_insert((u64::MAX, NONE));
            if then < entry.0 {
                *entry = (then, arc);
                queue.push(Reverse((then, to)));
            }
        }
    }
    let mut arcs = Vec::new();
    while last != head {
        let via = known[&last].1;
        arcs.push(via);
        last = roads.from(via);
    }
    arcs.reverse();
    (is_reached, arcs)
}

#[cfg(test)]
mod tests {
    use streets::{Country, Network};

    use super::*;

    fn cost(weights: &[u32], arcs: &[u32]) -> u64 {
        arcs.iter().map(|arc| u64::from(weights[*arc as usize])).sum()
    }

    #[test]
    fn a_way_ahead_is_a_quickest_one_and_leads_where_it_should() {
        let roads = Roads::of_country(&Country::new(800, 3), 3).unwrap();
        let weights: Vec<_> = (0..roads.arcs_count()).map(|arc| 1 + chance(3, arc, 0) % 1000).collect();
        for nth in 0..100 {
            let head = chance(4, nth, 0) % roads.nodes_count();
            let route = explore(&roads, &weights, head, 1 + chance(4, nth, 1) % 500);
            let goal = route.last().map_or(head, |arc| roads.to(*arc));
            let found = search(&roads, &weights, head, goal).expect("fewer nodes than are known");
            assert_eq!(cost(&weights, &found), cost(&weights, &route), "{head} to {goal}");
            let end = found.iter().fold(head, |node, arc| {
                assert_eq!(roads.from(*arc), node);
                roads.to(*arc)
            });
            assert_eq!(end, goal);
        }
    }

    #[test]
    fn a_full_street_is_driven_around() {
        let roads = Roads::of_network(&Network::grid(3, 3, 100.0), 1).unwrap();
        let mut weights = vec![1000; roads.arcs_count() as usize];
        let straight = search(&roads, &weights, 3, 5).expect("a way");
        assert_eq!(straight.len(), 2);
        weights[straight[1] as usize] = 10_000;
        let around = search(&roads, &weights, 3, 5).expect("a way");
        assert!(around.len() == 4 && !around.contains(&straight[1]), "{around:?}");
    }

    #[test]
    fn what_is_too_far_is_not_found() {
        let roads = Roads::of_network(&Network::grid(60, 60, 100.0), 1).unwrap();
        let weights = vec![1000; roads.arcs_count() as usize];
        assert!(search(&roads, &weights, 0, 3599).is_none());
        assert!(search(&roads, &weights, 0, 5).is_some());
    }

    #[test]
    fn a_trip_is_over_where_its_way_ends() {
        let roads = Roads::of_network(&Network::grid(1, 5, 400.0), 1).unwrap();
        let weights = vec![1000; roads.arcs_count() as usize];
        let route = explore(&roads, &weights, 0, 5);
        let mut trip = Trip { state: DRIVES, length: 4, ..Trip::default() };
        let (mut way, mut found) = (Way { hop: 7, changes: 1, ..Way::default() }, Vec::new());
        ahead(&roads, &weights, &mut trip, &route, &mut way, &mut found);
        // Three streets are the first that make a kilometre.
        assert_eq!((&*found, trip.is_last, way.next, way.changes), (&route[..3], 0, route[0], 0));
        pass(&roads, &mut trip, &route, route[2], 10);
        assert_eq!((trip.head, trip.base, trip.state), (3, 3, DRIVES));
        way.hop = 10;
        ahead(&roads, &weights, &mut trip, &route, &mut way, &mut found);
        assert_eq!((&*found, trip.is_last), (&route[3..], 1));
        pass(&roads, &mut trip, &route, route[3], 11);
        assert_eq!((trip.arrivals, trip.state, trip.ahead), (1, WAITS, 0));
    }
}
