//! Properties of the traffic: weights, speeds, arrivals.

use streets::Network;
use traffic_gpu::{Engine, STEPS_ADAPTED, Settings};

use crate::{country, network, processor};

#[test]
fn weights_follow_the_vehicles_on_an_arc() {
    let roads = network(&Network::ring(1000.0, 10, 10.0), 1);
    let weights = |vehicles| {
        let mut engine = processor(&roads, Settings { vehicles, routed: 0, seed: 1 });
        engine.advance(1).unwrap();
        let state = engine.state().unwrap();
        engine
            .weights()
            .iter()
            .enumerate()
            .map(|(arc, weight)| {
                let count = state.cars.iter().filter(|car| car.arc as usize == arc).count();
                (count, *weight)
            })
            .collect::<Vec<_>>()
    };
    // 100 m at 10 m/s.
    assert!(weights(0).iter().all(|(_, weight)| *weight == 10_001), "{:?}", weights(0));
    let some = weights(70);
    for ((count, weight), (other_count, other)) in some.iter().zip(&some[1..]) {
        assert!(*weight > 10_001);
        if count.abs_diff(*other_count) > 2 {
            assert_eq!(count < other_count, weight < other, "{some:?}");
        }
    }
    // Bumper to bumper, at a sixteenth of the limit.
    assert!(weights(150).iter().all(|(_, weight)| (80_000..=170_000).contains(weight)), "{:?}", weights(150));
}

#[test]
fn weights_are_looked_at_every_five_seconds() {
    let roads = country(500, 1);
    let mut engine = processor(&roads, Settings { vehicles: 800, routed: 0, seed: 1 });
    engine.advance(1).unwrap();
    let first = engine.weights().to_vec();
    engine.advance(STEPS_ADAPTED - 1).unwrap();
    assert_eq!(engine.weights(), first);
    engine.advance(1).unwrap();
    assert_ne!(engine.weights(), first);
}

#[test]
fn more_vehicles_are_slower() {
    let roads = country(2000, 3);
    let speed = |vehicles| {
        let mut engine = processor(&roads, Settings { vehicles, routed: 0, seed: 3 });
        engine.advance(240).unwrap();
        engine.state().unwrap().figures().speed_kmh
    };
    let [few, some, many] = [100, 4000, 12_000].map(speed);
    assert!(few > some && some > many && many > 0.0, "{few}, {some}, {many} km/h");
}

#[test]
fn those_with_destinations_arrive_in_dense_traffic() {
    let roads = network(&Network::grid(10, 10, 150.0), 2);
    let mut engine = processor(&roads, Settings { vehicles: 1500, routed: 50, seed: 2 });
    engine.advance(1800).unwrap();
    let figures = engine.state().unwrap().figures();
    assert!(figures.arrivals > 20 && figures.lost == 0, "{figures:?}");
}
