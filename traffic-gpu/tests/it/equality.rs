//! Both engines come to the same states, bit by bit.

use std::path::Path;
use std::sync::Arc;

use streets::Network;
use traffic_gpu::{Engine, Roads, Settings};

use crate::{country, device, gpu, is_soak, network, processor};

/// Drives on both, and compares all states on the way.
fn check(name: &str, roads: &Arc<Roads>, settings: Settings, steps: u32) {
    let mut expected = processor(roads, settings);
    let mut found = gpu(&device(), roads, settings);
    for step in 0..steps {
        expected.advance(1).expect("the processor does not fail");
        found.advance(1).expect("the device works");
        if step % 5 != 0 && step + 1 != steps {
            continue;
        }
        let (expected, found) = (expected.state().unwrap(), found.state().unwrap());
        for (vehicle, (expected, found)) in expected.cars.iter().zip(&found.cars).enumerate() {
            assert_eq!(found, expected, "{name}, {settings:?}: vehicle {vehicle} after step {step}");
        }
        assert_eq!(found, expected, "{name}, {settings:?}, step {step}");
        assert_eq!(found.digest(), expected.digest());
    }
}

#[test]
fn states_are_equal_on_countries_of_many_seeds() {
    for seed in 0..if is_soak() { 200 } else { 12 } {
        let roads = country(if seed % 2 == 0 { 300 } else { 3000 }, seed);
        // From nearly nobody to a standstill.
        let vehicles = [1, 50, 700, 2000][(seed / 2 % 4) as usize];
        let routed = if seed % 3 == 0 { 0 } else { vehicles.min(20) };
        check("country", &roads, Settings { vehicles, routed, seed }, 120);
    }
}

#[test]
fn states_are_equal_on_made_networks() {
    for seed in 0..4 {
        let grid = network(&Network::grid(8, 9, 120.0), seed);
        check("grid", &grid, Settings { vehicles: 900, routed: 30, seed }, 120);
        let ring = network(&Network::ring(1000.0, 20, 14.0), seed);
        check("ring", &ring, Settings { vehicles: 40, routed: 0, seed }, 120);
    }
}

#[test]
fn states_are_equal_on_real_streets() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../loadgen/data/liechtenstein/highways.osm.pbf");
    let roads = network(&streets::load_connected(&path).expect("they come along"), 2012);
    check("Liechtenstein", &roads, Settings { vehicles: 4000, routed: 100, seed: 2012 }, 60);
}

#[test]
fn nobody_drives_where_nobody_is() {
    check("country", &country(100, 1), Settings { vehicles: 0, routed: 0, seed: 1 }, 20);
}
