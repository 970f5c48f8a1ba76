//! Engines with a fallback: what they answer, with devices that work, devices that fail and none.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use device::{Device, DriverError, Fault};
use matcher::area::Area;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::{anything, at, conformance, random};
use matcher::geo::{Radius, World};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};
use matcher_gpu::{Auto, Report};

use super::{cuda_devices, host_device};

/// Event x filter pairs that a run compares.
const PAIRS: u64 = 400_000;
/// Random worlds whose devices fail.
const WORLDS: u64 = 20;
/// How long a condition may take to hold.
const DEADLINE: Duration = Duration::from_secs(60);

/// The three ways to stand beside `cells`.
const WAYS: [&str; 3] = ["auto", "gpu", "clcb"];

fn engine(way: &str, world: World, device: &Device) -> Auto {
    let devices = std::slice::from_ref(device);
    match way {
        "auto" => Auto::new(world, Ok(devices)),
        "gpu" => Auto::gpu(world, devices).expect("an empty engine has room"),
        _ => Auto::clcb(world, device).expect("an empty engine has room"),
    }
}

fn check(what: &str, seed: u64, pairs: u64, make: &dyn Fn(World) -> Box<dyn Engine>) {
    conformance::check(make);
    let tally = random::run_pairs(make, seed, pairs).unwrap_or_else(|failure| panic!("{what}: {failure}"));
    println!("{what}: compared {tally:?}, 0 mismatches");
}

#[test]
fn every_way_answers_what_the_oracle_answers() {
    for device in cuda_devices().into_iter().chain([host_device()]) {
        for way in WAYS {
            let make = |world| -> Box<dyn Engine> { Box::new(engine(way, world, &device)) };
            check(&format!("{way} on {}", device.name()), 0, PAIRS, &make);
        }
    }
}

#[test]
fn without_a_device_cells_answers_and_says_why() {
    let error = DriverError::NoDriver { reason: "libcuda.so.1: no such file".to_owned() };
    check("auto without a device", 1_000, PAIRS, &|world| Box::new(Auto::new(world, Err(&error))));
    for (found, why) in [(Err(&error), "no NVIDIA driver"), (Ok(&[][..]), "finds no device")] {
        let auto = Auto::new(World::Planar, found);
        let report = auto.report();
        assert_eq!((auto.name(), report.engine(), report.has_device()), ("cells", "cells", false));
        assert!(report.to_string().contains(why), "{report}");
        assert_eq!((report.failure(), report.device_from()), (None, None));
    }
}

#[test]
fn a_device_that_cannot_be_used_leaves_cells() {
    // The first few operations are those of the engine being made.
    for fault in [Fault::OutOfMemory, Fault::DeviceLost] {
        for after in [1, 2, 5, 10, 15] {
            let device = host_device();
            device.inject(fault, after);
            let auto = Auto::new(World::Planar, Ok(std::slice::from_ref(&device)));
            assert_eq!(auto.name(), "cells", "{fault:?} {after}");
            assert!(!auto.report().has_device());
            device.inject(fault, after);
            assert!(Auto::gpu(World::Planar, &[device]).is_err());
        }
    }
    assert!(Auto::clcb(World::Planar, &Device::host(1_000)).is_err(), "there is no room");
}

/// Random worlds whose devices fail at another point each, the first batch among them.
fn fail_anywhere(way: &str, fault: Fault, device: &dyn Fn() -> Device) {
    let made = Cell::new(0_u32);
    let reports: RefCell<Vec<Report>> = RefCell::default();
    let make = |world| -> Box<dyn Engine> {
        let device = device();
        let auto = engine(way, world, &device);
        reports.borrow_mut().push(auto.report());
        // Allocations are rare, operations of any kind are many.
        let stride = match fault {
            Fault::OutOfMemory => 1,
            Fault::LaunchFailed => 3,
            Fault::NoCompiler => unreachable!("engines compile nothing"),
            Fault::DeviceLost => 17,
        };
        device.inject(fault, 1 + made.get() % 20 * stride);
        made.set(made.get() + 1);
        Box::new(auto)
    };
    let what = format!("{way} with {fault:?}");
    conformance::check(&make);
    reports.borrow_mut().clear();
    made.set(0);
    let mut tally = random::Tally::default();
    for seed in 50_000..50_000 + WORLDS {
        let world = if seed % 2 == 0 { World::Geodetic } else { World::Planar };
        tally += random::run(&make, world, seed).unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
    let reports = reports.into_inner();
    let failed = reports.iter().filter(|report| report.failure().is_some());
    let halfway = failed.clone().filter(|report| report.device_events() > 0).count();
    let (failed, all) = (failed.count(), reports.len());
    println!("{what}: {failed} of {all} failed, {halfway} of them after a batch; {tally:?}, 0 mismatches");
    // Whether `auto` sends anything to a device here is a matter of time.
    if way != "auto" {
        // A batch that there is too little memory for is taken in halves.
        let enough = if fault == Fault::OutOfMemory { failed } else { halfway };
        assert!(enough > 0, "{what}: nothing has failed");
        assert!(reports.iter().all(|report| report.failure().is_none() || report.engine() == "cells"));
    }
}

#[test]
fn whatever_fails_and_whenever_nothing_is_lost() {
    for fault in [Fault::OutOfMemory, Fault::LaunchFailed, Fault::DeviceLost] {
        for way in WAYS {
            fail_anywhere(way, fault, &host_device);
        }
    }
}

#[test]
fn on_cuda_devices_too() {
    if cuda_devices().is_empty() {
        return;
    }
    // A lost device stays lost for those who opened it: each world opens it anew.
    let device = || cuda_devices().swap_remove(0);
    for fault in [Fault::OutOfMemory, Fault::LaunchFailed, Fault::DeviceLost] {
        for way in WAYS {
            fail_anywhere(way, fault, &device);
        }
    }
}

/// A subscription of client 0 to all within a metre.
fn subscription() -> Subscription {
    let radius = Radius::new(World::Planar, 1.0).expect("a radius");
    Subscription { client: ClientId(0), filters: vec![anything(Area::Following(radius))] }
}

#[test]
fn a_batch_that_the_device_cannot_finish_is_answered_whole() {
    let here = at(World::Planar, [5.0, 5.0]);
    let event = Event::at(here);
    for fault in [Fault::OutOfMemory, Fault::LaunchFailed, Fault::DeviceLost] {
        for way in ["gpu", "clcb"] {
            let device = host_device();
            let mut auto = engine(way, World::Planar, &device);
            let mut rows = MatchRows::new();
            auto.install(SubscriptionId(3), &subscription()).expect("there is room");
            auto.match_batch(&[&event], &mut rows).expect("it always answers");
            auto.move_client(ClientId(0), Some(here));
            device.inject(fault, 1);
            // Many more filters and events than before, so that memory is asked for.
            for id in 4..5_000 {
                auto.install(SubscriptionId(id), &subscription()).expect("there is room");
            }
            auto.match_batch(&vec![&event; 3_000], &mut rows).expect("it always answers");
            let report = auto.report();
            assert!(report.failure().is_some(), "{way} {fault:?}");
            assert_eq!((rows.len(), rows.row(0).len()), (3_001, 0));
            assert!(rows.iter().skip(1).all(|row| row.len() == 4_997), "{way} {fault:?}");
            assert_eq!((auto.name(), report.engine(), report.has_device()), ("cells", "cells", false));
            assert!(report.to_string().contains("restart"), "{report}");
            assert_eq!(auto.footprint().subscriptions, 4_997);
        }
    }
}

#[test]
fn memory_is_given_back_once_it_is_too_little() {
    let device = host_device();
    let all = device.memory().expect("it works").free_bytes;
    let mut auto = engine("gpu", World::Planar, &device);
    assert!(device.memory().expect("it works").free_bytes < all);
    device.inject(Fault::OutOfMemory, 1);
    let event = Event::at(at(World::Planar, [5.0, 5.0]));
    auto.install(SubscriptionId(0), &subscription()).expect("there is room");
    auto.match_batch(&[&event], &mut MatchRows::new()).expect("it always answers");
    assert!(auto.report().failure().is_some_and(|why| why.contains("fewer filters")));
    let deadline = Instant::now() + DEADLINE;
    while device.memory().expect("the device itself works").free_bytes < all {
        assert!(Instant::now() < deadline, "the memory is not given back");
        std::thread::yield_now();
    }
}

#[test]
fn a_device_fails_at_changes_too_and_before_any_batch() {
    let device = host_device();
    let mut auto = engine("auto", World::Planar, &device);
    let report = auto.report();
    auto.install(SubscriptionId(0), &subscription()).expect("there is room");
    device.inject(Fault::DeviceLost, 1);
    let (here, there) = (at(World::Planar, [5.0, 5.0]), at(World::Planar, [50.0, 5.0]));
    // Changes are brought to the device in the end, whether it gets a batch or not.
    for round in 0..100_000 {
        auto.move_client(ClientId(0), Some(if round % 2 == 0 { there } else { here }));
    }
    assert!(report.failure().is_some_and(|why| why.contains("device lost")), "{report}");
    let mut rows = MatchRows::new();
    auto.match_batch(&[&Event::at(here), &Event::at(there)], &mut rows).expect("it always answers");
    assert_eq!((rows.row(0), rows.row(1)), (&[SubscriptionId(0)][..], &[][..]));
}
