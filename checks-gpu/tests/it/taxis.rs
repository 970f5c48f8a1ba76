//! The twelve rules of GAIN's application over real reports.

use checks::{Bounds, Checker, replay_with};
use checks_gpu::{Gpu, Settings};
use matcher::World;
use serde_json::Value;

use crate::documents;
use crate::reports;

const RULES: &str = include_str!("../../../checks/tests/data/taxis.json");

/// Links of a rule, and different reports in them, as counted by brute force.
fn expected(counts: &Value) -> (Option<u64>, Option<u64>) {
    if counts.is_number() {
        return (counts.as_u64(), counts.as_u64());
    }
    (counts["ordered_pairs"].as_u64(), counts["distinct_contexts"].as_u64())
}

fn check(file: &str, settings: Settings) {
    let Some(folder) = reports::folder() else { return };
    let text =
        std::fs::read_to_string(folder.join("expected_violations.json")).expect("it is beside the reports");
    let counts: Value = serde_json::from_str(&text).expect("the counts are JSON");
    let reports = reports::reports(&folder, &format!("{file}.csv.gz"));
    let kernels = crate::kernels(&crate::device());
    for (rule, check) in documents::read(World::Geodetic, RULES) {
        let engine = Gpu::new(check.clone(), Bounds::default(), &kernels, settings);
        assert_eq!(engine.refusal(), None);
        let mut checker = Checker::with_engine(check, Box::new(engine));
        let events = reports.iter().map(|report| (report.seq, report.arrival()));
        let report = replay_with(&mut checker, events).expect("few links");
        let found = (Some(report.violations() as u64), Some(report.events_in_violation as u64));
        assert_eq!(found, expected(&counts[file][&rule]), "{file}, {rule}, {settings:?}");
    }
}

#[test]
fn the_violations_of_the_first_reports_are_found() {
    let standard = Settings::default();
    let variants = if crate::is_on_device() {
        crate::variants()
    } else {
        vec![standard, Settings { batches: false, ..standard }]
    };
    for settings in variants {
        check("taxi_first1500", settings);
    }
}

/// On a device only: the processor as one takes minutes.
#[test]
fn the_violations_of_the_hour_are_found() {
    if crate::is_on_device() {
        check("taxi_h11", Settings::default());
    } else {
        eprintln!("NOT TESTED: without NEARCAST_GPU_TESTS=1 there is no device for the hour");
    }
}
