//! `nearcast-load traffic` with a whole country, from the command line.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use loadgen::traffic::{Settings, Traffic};
use traffic_gpu::{Engine as _, Processor, Roads};

fn traffic(arguments: &[&str]) -> Output {
    let mut load = Command::new(env!("CARGO_BIN_EXE_nearcast-load"));
    load.arg("traffic").args(arguments).output().expect("the program of this test")
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// The values of the one line under the head, by name.
fn row(output: &Output) -> std::collections::HashMap<String, String> {
    assert!(output.status.success(), "{}", said(&output.stderr));
    let text = said(&output.stdout);
    let lines: Vec<_> = text.lines().collect();
    let [head, row] = *lines else { panic!("{text}") };
    head.split(',').map(str::to_owned).zip(row.split(',').map(str::to_owned)).collect()
}

#[test]
fn a_country_is_driven_and_measured() {
    let arguments =
        ["--engine", "cpu", "--nodes", "3000", "--vehicles", "500", "--routed", "10", "--seconds", "5"];
    let found = row(&traffic(&arguments));
    for (name, value) in
        [("engine", "cpu"), ("vehicles", "500"), ("routed", "10"), ("nodes", "3000"), ("simulated_s", "5")]
    {
        assert_eq!(found[name], value, "{found:?}");
    }
    assert!(found["times_the_clock"].parse::<f64>().unwrap() > 0.0, "{found:?}");
    // The same whatever the number of threads, and another one by another seed.
    let digest = |more: &[&str]| row(&traffic(&[&arguments, more].concat()))["digest"].clone();
    assert_eq!(digest(&["--threads", "3"]), found["digest"]);
    assert_ne!(digest(&["--seed", "1"]), found["digest"]);
}

#[test]
fn a_map_is_driven_too() {
    let found = row(&traffic(&["liechtenstein", "--engine", "cpu", "--vehicles", "300", "--for", "2"]));
    assert!(found["nodes"].parse::<u32>().unwrap() > 1000, "{found:?}");
}

#[test]
fn what_cannot_be_driven_is_refused_with_its_reason() {
    for (arguments, reason) in [
        (&["--engine", "cpu", "--nodes", "100", "--vehicles", "4000000000"][..], "do not fit onto"),
        (&["--engine", "cpu", "--nodes", "100", "--vehicles", "10", "--routed", "11"], "11 of 10 vehicles"),
        (&["--engine", "cpu", "--nodes", "100", "--vehicles", "10", "--step", "0.25"], "--step 0.25"),
        (&["--engine", "cpu", "--nodes", "100", "--vehicles", "10", "--for=-1"], "--for -1"),
        (&["--engine", "cpu", "--nodes", "10"], "--nodes"),
        (&["liechtenstein", "--nodes", "100"], "--nodes"),
        (&["--engine", "bicycle"], "bicycle"),
        (&["--routed", "5", "--vehicles", "10"], "--routed and --check"),
    ] {
        let output = traffic(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said(&output.stderr).contains(reason), "{arguments:?}: {}", said(&output.stderr));
    }
}

/// Two models with the same equations: on the same streets and with as many vehicles they are about as fast.
#[test]
fn a_country_is_driven_as_a_city_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/liechtenstein/highways.osm.pbf");
    let network = Arc::new(streets::load_connected(&path).expect("the copy in the project is sound"));
    for vehicles in [500, 4000] {
        let settings =
            Settings { vehicles, trip_mean_s: None, breakdowns_per_vehicle_h: 0.0, ..Settings::default() };
        let mut city = Traffic::new(Arc::clone(&network), settings, 1).expect("there is room");
        city.step(90.0);
        let sum: f64 = (0..vehicles).map(|vehicle| f64::from(city.speed_ms(vehicle))).sum();
        let roads = Arc::new(Roads::of_network(&network, 1).expect("not too large"));
        let settings = traffic_gpu::Settings { vehicles, routed: 0, seed: 1 };
        let mut country = Processor::new(&roads, settings).expect("there is room");
        country.advance(180).expect("the processor does not fail");
        let found = country.state().expect("the processor does not fail").figures().speed_kmh;
        let expected = sum / f64::from(vehicles) * 3.6;
        assert!((found / expected - 1.0).abs() < 0.12, "{vehicles}: {found} and {expected} km/h");
    }
}
