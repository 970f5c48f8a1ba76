//! Where the device cannot, the processor does: the answers stay.

use std::sync::Arc;

use checks::{Bounds, Check, Checker, Clock, Context, Document, Formula, Kind, Overflow};
use checks_gpu::{Gpu, Settings};
use device::{Device, Fault};
use matcher::World;
use matcher::event::Value;

use crate::world;

/// Every pair of events has another `x`.
fn check() -> Arc<Check> {
    let that = Formula::forall("b", "all", Formula::leaf("a.x <> b.x OR SAME(a, b)"));
    let document = Document {
        contexts: vec![Context::of_all("all", 1_000.0)],
        formula: Formula::forall("a", "all", that),
        clock: Clock::Arrival,
    };
    Arc::new(Check::new(World::Planar, &document).expect("it is sound"))
}

/// Takes events in, `fault` before the tenth, and compares with the oracle.
fn compare(device: &Device, settings: Settings, fault: Option<Fault>) {
    let check = check();
    let mut oracle = Checker::new(check.clone(), Kind::Sequential, Bounds::default());
    let engine = Gpu::new(check.clone(), Bounds::default(), &crate::kernels(device), settings);
    let mut checker = Checker::with_engine(check, Box::new(engine));
    for event in 0..24_i64 {
        if let (10, Some(fault)) = (event, fault) {
            device.inject(fault, 1);
        }
        let x = Value::from(f64::from(i32::try_from(event % 11).expect("small")));
        let arrival = world::arrival([0.0, 0.0], event, &[("x", x)]);
        let [expected, found] = [&mut oracle, &mut checker]
            .map(|checker| checker.take(event, &arrival).expect("few links").expect("taken"));
        let sorted = |mut links: Vec<checks::Link>| {
            links.sort();
            links
        };
        assert_eq!(
            (found.violated, sorted(found.told)),
            (expected.violated, sorted(expected.told)),
            "{event}"
        );
    }
    assert!(!oracle.links().is_empty());
}

#[test]
fn a_device_that_fails_gives_way_to_the_processor() {
    for fault in [Fault::DeviceLost, Fault::LaunchFailed, Fault::OutOfMemory] {
        compare(&Device::host(1 << 24), Settings::default(), Some(fault));
    }
}

#[test]
fn what_is_too_large_for_the_device_is_done_by_the_processor() {
    let device = crate::device();
    let standard = Settings::default();
    for settings in [
        Settings { nodes_max: 100, ..standard },
        Settings { links_max: 2, ..standard },
        Settings { doubts_max: 0, ..standard },
    ] {
        compare(&device, settings, None);
    }
    // Too little memory for the events themselves.
    compare(&Device::host(1 << 12), standard, None);
}

#[test]
fn too_many_links_are_refused_as_by_the_others() {
    let check = check();
    let bounds = Bounds { links_max: 5, ..Bounds::default() };
    let engine = Gpu::new(check.clone(), bounds, &crate::kernels(&crate::device()), Settings::default());
    let mut checker = Checker::with_engine(check, Box::new(engine));
    let mut overflows = 0;
    for event in 0..8 {
        let arrival = world::arrival([0.0, 0.0], event, &[("x", Value::from(1.0))]);
        match checker.take(event, &arrival) {
            Ok(_) => {}
            Err(overflow) => {
                assert_eq!(overflow, Overflow::Links { max: 5 });
                overflows += 1;
            }
        }
    }
    // Three events of one `x` are six pairs; the sets are empty again after that.
    assert_eq!(overflows, 2);
}
