//! `nearcast-load traffic` with a whole country, from the command line.

use std::process::{Command, Output};

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
