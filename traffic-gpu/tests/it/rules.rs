//! Invariants of every step: no vehicle is lost, overlaps another one, overtakes in its lane or is too fast.

use std::collections::HashMap;
use std::sync::Arc;

use streets::Network;
use traffic_gpu::{Engine, Roads, Settings, State};

use crate::{country, network, processor};

/// From bumper to bumper, and how near one comes to it.
const CAR_MM: u32 = 4500;
const CLEAR_MM: u32 = 300;

/// The vehicles of each lane, from its end to its beginning.
fn by_lane(state: &State) -> HashMap<(u32, u8), Vec<usize>> {
    let mut lanes: HashMap<(u32, u8), Vec<usize>> = HashMap::new();
    for (vehicle, car) in state.cars.iter().enumerate() {
        lanes.entry((car.arc, car.lane)).or_default().push(vehicle);
    }
    for lane in lanes.values_mut() {
        lane.sort_by_key(|vehicle| std::cmp::Reverse(state.cars[*vehicle].along_mm));
    }
    lanes
}

fn check(roads: &Arc<Roads>, settings: Settings, steps: u32) -> State {
    let mut engine = processor(roads, settings);
    let mut before = engine.state().unwrap();
    for step in 0..steps {
        engine.advance(1).unwrap();
        let state = engine.state().unwrap();
        assert_eq!(state.cars.len(), settings.vehicles as usize);
        for (vehicle, (car, was)) in state.cars.iter().zip(&before.cars).enumerate() {
            let at = || format!("vehicle {vehicle} after step {step}: {was:?}, then {car:?}");
            assert!(u32::from(car.lane) < roads.lanes_of(car.arc), "{}", at());
            assert!(car.along_mm <= roads.length_mm(car.arc), "{}", at());
            let desired = roads.limit_mm_s(car.arc) * u32::from(car.factor) / 200;
            assert!(u32::from(car.speed) <= desired, "{}", at());
            if car.arc == was.arc {
                assert!(car.along_mm >= was.along_mm, "backwards: {}", at());
                assert_eq!(car.lane, was.lane, "{}", at());
            } else {
                assert_eq!(car.arc, before.ways[vehicle].next, "{}", at());
                assert_eq!(roads.to(was.arc), roads.from(car.arc), "{}", at());
            }
        }
        let lanes = by_lane(&state);
        for (lane, vehicles) in &lanes {
            for pair in vehicles.windows(2) {
                let [ahead, car] = [pair[0], pair[1]].map(|vehicle| state.cars[vehicle]);
                let gap = i64::from(ahead.along_mm) - i64::from(car.along_mm);
                assert!(
                    gap >= i64::from(CAR_MM + CLEAR_MM),
                    "{lane:?} after step {step}: {pair:?} are {gap} mm apart"
                );
            }
        }
        // Of those that are in the same lane as before, the order is the same.
        for (lane, were) in by_lane(&before) {
            let Some(are) = lanes.get(&lane) else { continue };
            let stayed: Vec<_> = were.iter().filter(|vehicle| are.contains(vehicle)).collect();
            let found: Vec<_> = are.iter().filter(|vehicle| were.contains(vehicle)).collect();
            assert_eq!(found, stayed, "{lane:?} after step {step}");
        }
        before = state;
    }
    before
}

#[test]
fn rules_hold_on_countries() {
    for (nodes, vehicles, seed) in [(300, 100, 1), (300, 1500, 2), (2000, 2000, 3), (2000, 6000, 4)] {
        let state = check(&country(nodes, seed), Settings { vehicles, routed: vehicles / 50, seed }, 200);
        assert!(state.figures().entered > u64::from(vehicles) / 10, "{nodes} nodes: {:?}", state.figures());
    }
}

#[test]
fn rules_hold_on_a_grid_and_a_ring() {
    check(&network(&Network::grid(6, 6, 80.0), 1), Settings { vehicles: 800, routed: 20, seed: 1 }, 200);
    check(&network(&Network::ring(500.0, 10, 20.0), 2), Settings { vehicles: 30, routed: 0, seed: 2 }, 400);
}

#[test]
fn a_ring_that_is_nearly_empty_is_driven_at_the_limit() {
    let roads = network(&Network::ring(5000.0, 50, 14.0), 1);
    let state = check(&roads, Settings { vehicles: 5, routed: 0, seed: 1 }, 300);
    let kmh = state.figures().speed_kmh;
    assert!((14.0 * 3.6 * 0.8..=14.0 * 3.6 * 1.15).contains(&kmh), "{kmh}");
}

#[test]
fn vehicles_with_destinations_arrive_and_are_sent_on() {
    let roads = network(&Network::grid(15, 15, 150.0), 5);
    let mut engine = processor(&roads, Settings { vehicles: 400, routed: 40, seed: 5 });
    engine.advance(1500).unwrap();
    let figures = engine.state().unwrap().figures();
    assert!(figures.arrivals >= 40, "{figures:?}");
    let asked = engine.state().unwrap().trips.iter().map(|trip| u64::from(trip.asked)).sum::<u64>();
    // Each was given a route at first, and another one after each arrival or loss, but for those that wait for the next look.
    assert!((40 + figures.arrivals + figures.lost).abs_diff(asked) <= 40, "{asked}: {figures:?}");
    assert!(figures.lost < figures.arrivals, "{figures:?}");
}

#[test]
fn a_seed_gives_the_same_states_whatever_the_number_of_threads_and_another_one_others() {
    let roads = country(2000, 6);
    let digest = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut engine = processor(&roads, Settings { vehicles: 3000, routed: 30, seed });
            engine.advance(60).unwrap();
            engine.state().unwrap().digest()
        })
    };
    assert_eq!(digest(1, 7), digest(4, 7));
    assert_ne!(digest(2, 7), digest(2, 8));
}
