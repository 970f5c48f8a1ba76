//! At the ends of what there is room for: the furthest reaches, logs and waves that are just full, memory that is short at any
//! point, devices with unequal shares.

use device::{Device, Fault};
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::geo::{Position, Radius, World};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher_gpu::{Auto, Clcb, Gpu};

use super::host_device;

const WORLD: World = World::Planar;
/// Entries that the log of `gpu` holds.
const LOG: u32 = 1 << 16;

fn at(x: f64, y: f64) -> Position {
    WORLD.position(&[x, y]).expect("a position")
}

fn radius(metres: f64) -> Radius {
    Radius::new(WORLD, metres).expect("a radius")
}

fn filter(area: Area, condition: &str) -> Filter {
    let condition = match condition {
        "" => Condition::always(),
        text => Condition::parse(text).expect("a condition"),
    };
    Filter { area, condition }
}

fn install(engines: [&mut dyn Engine; 2], id: u32, client: u32, filters: Vec<Filter>) {
    let subscription = Subscription { client: ClientId(client), filters };
    for engine in engines {
        engine.install(SubscriptionId(id), &subscription).expect("there is room");
    }
}

fn rows(engine: &mut dyn Engine, events: &[Event]) -> MatchRows {
    let mut rows = MatchRows::new();
    engine.match_batch(&events.iter().collect::<Vec<_>>(), &mut rows).expect("the device works");
    rows
}

#[test]
fn areas_reach_as_far_as_numbers_go() {
    for metres in [1e9, 1e10, 1e12, 1e18, 1e20, 1e30, 1e300] {
        let (mut cells, mut gpu) = (Cells::new(WORLD), Gpu::new(WORLD, &[host_device()]).expect("room"));
        // More of them than the base is sorted for, and nothing that reaches less far.
        for id in 0..5_000 {
            let (x, y) = [(0.0, 0.0), (-5.0, -5.0), (1e9, -1e9), (-123_456.0, 7.0)][id as usize % 4];
            let area = Area::Circle { centre: at(x, y), radius: radius(metres) };
            install([&mut cells, &mut gpu], id, 0, vec![filter(area, "")]);
        }
        let events = [(0.0, 0.0), (-3.0, 8.0), (1e9, 1e9), (-1e9, 5.0)].map(|(x, y)| Event::at(at(x, y)));
        let expected = rows(&mut cells, &events);
        for sorted in [false, true] {
            assert_eq!(expected, rows(&mut gpu, &events), "{metres:e} m, sorted: {sorted}");
            gpu.settle().expect("the device works");
        }
    }
}

#[test]
fn a_share_that_does_not_grow_is_sorted_too() {
    let (mut cells, mut gpu) =
        (Cells::new(WORLD), Gpu::new(WORLD, &[host_device(), host_device()]).expect("room"));
    let events: Vec<Event> = (0..4_096).map(|n| Event::at(at(f64::from(n % 90), 0.0))).collect();
    for (ids, client) in [(0..2_000, 1), (2_000..12_000, 2)] {
        for id in ids {
            let area = Area::Circle { centre: at(f64::from(id % 97), 0.0), radius: radius(0.5) };
            install([&mut cells, &mut gpu], id, client, vec![filter(area, "")]);
        }
        for _ in 0..2 {
            assert_eq!(rows(&mut cells, &events), rows(&mut gpu, &events));
        }
    }
}

/// Everybody has a filter that follows, and most move between two batches: the log holds all of them exactly, or not.
#[test]
fn logs_that_are_just_full_and_waves_of_all_sizes() {
    let (mut cells, mut gpu) = (Cells::new(WORLD), Gpu::new(WORLD, &[host_device()]).expect("room"));
    for id in 0..LOG + 10 {
        install([&mut cells, &mut gpu], id, id, vec![filter(Area::Following(radius(3.0)), "")]);
    }
    for (turn, (moves, events)) in (1..).zip([
        (0, 1),
        (LOG, 256),
        (LOG - 1, 257),
        (1, 1),
        (1, 0),
        (LOG + 1, 8_193),
        (4_097, 1),
        (LOG - 4_097, 3),
        (1, 20_000),
    ]) {
        for id in 0..moves {
            let place = || at(f64::from(id * turn % 301), f64::from((id + turn) % 467));
            let position = (id % 17 != 0).then(place);
            let engines: [&mut dyn Engine; 2] = [&mut cells, &mut gpu];
            engines.into_iter().for_each(|engine| engine.move_client(ClientId(id), position));
        }
        let events: Vec<Event> =
            (0..events).map(|n| Event::at(at(f64::from(n % 307), f64::from(n % 467)))).collect();
        assert_eq!(rows(&mut cells, &events), rows(&mut gpu, &events), "{moves} moves");
    }
}

#[test]
fn one_client_whom_more_filters_follow_than_the_log_holds() {
    let (mut cells, mut gpu) = (Cells::new(WORLD), Gpu::new(WORLD, &[host_device()]).expect("room"));
    let following = filter(Area::Following(radius(1.0)), "");
    for id in 0..LOG / 8 - 1 {
        install([&mut cells, &mut gpu], id, 0, vec![following.clone(); 8]);
    }
    let events: Vec<Event> = (0..3).map(|x| Event::at(at(f64::from(x * 5), 0.0))).collect();
    // The log holds all, and then no longer.
    for last in [LOG / 8 - 1, LOG / 8] {
        install([&mut cells, &mut gpu], last, 0, vec![following.clone(); 8]);
        for x in [Some(0.0), Some(5.0), None, Some(10.0), Some(10.0)] {
            let engines: [&mut dyn Engine; 2] = [&mut cells, &mut gpu];
            engines.into_iter().for_each(|engine| engine.move_client(ClientId(0), x.map(|x| at(x, 0.0))));
            assert_eq!(rows(&mut cells, &events), rows(&mut gpu, &events), "{x:?}");
        }
    }
}

/// All filters of a subscription hold, and each of them answers: the wave is taken in parts instead of in one piece that no
/// memory holds.
#[test]
fn crowded_waves_are_taken_in_parts() {
    let device = Device::host(128 << 20);
    let mut auto = Auto::gpu(WORLD, std::slice::from_ref(&device)).expect("room");
    let any = (1..=64).map(|n| format!("a > -{n}")).collect::<Vec<_>>().join(" OR ");
    for id in 0..8 {
        let filters = vec![filter(Area::Everywhere, &any); 64];
        let subscription = Subscription { client: ClientId(0), filters };
        auto.install(SubscriptionId(id), &subscription).expect("there is room");
    }
    let events = vec![Event::at(at(0.0, 0.0)).with("a", 1.0); 256];
    let found = rows(&mut auto, &events);
    assert_eq!((found.len(), found.pairs_count()), (256, 8 * 256));
    assert_eq!(auto.report().failure(), None);
    // The device goes in the midst of the parts: those that it has answered are not answered twice.
    device.inject(Fault::DeviceLost, 3);
    let found = rows(&mut auto, &events);
    assert_eq!((found.len(), found.pairs_count()), (256, 8 * 256));
    assert!(auto.report().failure().is_some());
}

#[test]
fn texts_whose_codes_collide() {
    let (mut cells, mut gpu) = (Cells::new(WORLD), Gpu::new(WORLD, &[host_device()]).expect("room"));
    let mut clcb = Clcb::new(WORLD, &host_device()).expect("room");
    for id in 0..30_000 {
        let text = match id % 2 {
            0 => format!("a = 't{id}'"),
            _ => format!("a = 't{id}' AND a <> 't{}' AND b IS NULL", id + 1),
        };
        let filters = vec![filter(Area::Everywhere, &text)];
        clcb.install(SubscriptionId(id), &Subscription { client: ClientId(id), filters: filters.clone() })
            .expect("there is room");
        install([&mut cells, &mut gpu], id, id, filters);
    }
    let events: Vec<Event> =
        (0..2_000).map(|n| Event::at(at(0.0, 0.0)).with("a", &*format!("t{}", n * 15))).collect();
    let expected = rows(&mut cells, &events);
    assert_eq!(expected.pairs_count(), 2_000);
    assert_eq!(expected, rows(&mut gpu, &events));
    assert_eq!(rows(&mut cells, &events[..50]), rows(&mut clcb, &events[..50]));
}

/// One allocation is refused, each in turn. A batch may fail for that; what is answered is right, and the next batch is answered.
fn check_short_memory(make: &dyn Fn(&[Device; 2]) -> Box<dyn Engine>, what: &str) {
    let mut refused = 0;
    for allocation in 1..50 {
        let devices = [host_device(), host_device()];
        let (mut cells, mut engine) = (Cells::new(WORLD), make(&devices));
        devices[allocation as usize % 2].inject(Fault::OutOfMemory, allocation);
        for round in 0..5 {
            for id in 0..1_100 {
                let id = (id + round * 700) % 4_000;
                let own = format!("n{id} = 1");
                let text = ["a > 1 AND b IS NULL", &own, ""][id as usize % 3];
                let filters = vec![filter(Area::Following(radius(1.5)), text)];
                install([&mut cells, engine.as_mut()], id, id + round, filters);
                let here = at(f64::from(id % 90), f64::from(round));
                let engines: [&mut dyn Engine; 2] = [&mut cells, engine.as_mut()];
                engines.into_iter().for_each(|engine| engine.move_client(ClientId(id + round), Some(here)));
            }
            for id in 0..100 {
                assert_eq!(cells.remove(SubscriptionId(id * 7)), engine.remove(SubscriptionId(id * 7)));
            }
            let event = |n: u32| {
                let event = Event::at(at(f64::from(n % 91), f64::from(n % 5))).with("a", f64::from(n % 4));
                (0..n % 300).fold(event, |event, name| event.with(&format!("n{name}"), 1.0))
            };
            let events: Vec<Event> = (0..40).map(|n| event(n * 7)).collect();
            let expected = rows(&mut cells, &events);
            let mut found = MatchRows::new();
            if engine.match_batch(&events.iter().collect::<Vec<_>>(), &mut found).is_err() {
                refused += 1;
                assert!(found.is_empty(), "{what}, allocation {allocation}");
                found = rows(engine.as_mut(), &events);
            }
            assert_eq!(expected, found, "{what}, allocation {allocation}, round {round}");
        }
    }
    assert!(refused > 0, "{what}: memory was never short");
}

#[test]
fn whichever_allocation_is_refused_the_next_batch_is_right() {
    check_short_memory(&|devices| Box::new(Gpu::new(WORLD, devices).expect("room")), "gpu");
    check_short_memory(&|devices| Box::new(Clcb::new(WORLD, &devices[0]).expect("room")), "clcb");
}
