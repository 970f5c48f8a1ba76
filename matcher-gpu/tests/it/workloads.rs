//! The paper's workload in batches large enough for waves, with moves between batches, against the CPU engine.

use matcher::area::Area;
use matcher::condition::Condition;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine, MatchRows};
use matcher::event::Event;
use matcher::fixtures::workload::{Config, Terrain, Workload};
use matcher::geo::World;
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};

use device::Device;
use matcher_gpu::{Clcb, Form, Gpu};

use super::{clcb, cuda_devices, gpu, host_device};

/// Events of a batch: several waves.
const EVENTS: usize = 2_000;

fn configs() -> Vec<Config> {
    let small = Config { subscriptions: 3_000, coverage: 0.02, selectivity: 0.015, ..Config::default() };
    let milan = Terrain::Region { lon: 9.19, lat: 45.46, side_m: 13_470.0 };
    vec![
        // More filters than the log holds, so that the first sort comes before the first match.
        Config { subscriptions: 8_000, coverage: 0.008, ..small.clone() },
        small.clone(),
        Config { terrain: milan, radii_m: vec![10.0, 300.0, 5_000.0], ..small.clone() },
        Config { terrain: Terrain::Globe, co_located: false, ..small },
    ]
}

fn rows(engine: &mut dyn Engine, events: &[Event]) -> MatchRows {
    let mut rows = MatchRows::new();
    engine.match_batch(&events.iter().collect::<Vec<_>>(), &mut rows).expect("the device works");
    rows
}

fn check(make: &dyn Fn(World) -> Box<dyn Engine>, events_count: usize) {
    for config in configs() {
        let workload = Workload::new(config).expect("the workload can be had");
        let mut engine = make(workload.world());
        let mut engines: [&mut dyn Engine; 2] = [&mut Cells::new(workload.world()), engine.as_mut()];
        for (id, subscription) in workload.subscriptions() {
            let home = workload.position(workload.home(subscription.client));
            for engine in &mut engines {
                engine.move_client(subscription.client, Some(home));
                engine.install(id, &subscription).expect("there is room");
            }
        }
        let mut matches = 0;
        // A few moves stay in the log, more of them have the base sorted beside the matching, most at once.
        for (round, moves) in [0, 1, 150, 150, 700, 5_000, 0, 20].into_iter().enumerate() {
            for index in 0..moves {
                let (client, spot) = workload.jump((round * 10_000 + index) as u64);
                let position = (index % 50 != 0).then(|| workload.position(spot));
                engines.iter_mut().for_each(|engine| engine.move_client(client, position));
            }
            let first = (round * events_count) as u64;
            let events: Vec<Event> =
                (first..first + events_count as u64).map(|index| workload.event(index)).collect();
            let [expected, found] = engines.each_mut().map(|engine| rows(*engine, &events));
            assert_eq!(expected, found, "round {round}, {:?}", workload.config());
            matches += found.pairs_count();
        }
        assert!(matches > 1_000, "{matches} matches prove little");
        for engine in &mut engines {
            engine.move_client(ClientId(0), None);
        }
    }
}

#[test]
fn large_batches_and_moves_between_them() {
    let device = host_device();
    check(&|world| gpu(world, std::slice::from_ref(&device)), EVENTS);
    check(&|world| clcb(world, &device), 50);
    for device in cuda_devices() {
        check(&|world| gpu(world, std::slice::from_ref(&device)), EVENTS);
        check(&|world| clcb(world, &device), EVENTS);
    }
}

/// Small enough for a sanitizer: entries enter, are sorted by cell on the plane and on the globe, move, and are found.
fn check_every_kernel(device: &Device) {
    for config in configs().into_iter().skip(1) {
        // With ten filters each more than the log is let to hold.
        let workload =
            Workload::new(Config { subscriptions: 600, ..config }).expect("the workload can be had");
        let world = workload.world();
        let mut gpu = Gpu::new(world, std::slice::from_ref(device)).expect("there is room");
        let mut clcb = Clcb::new(world, device).expect("there is room");
        let mut cells = Cells::new(world);
        for (id, subscription) in workload.subscriptions() {
            let home = workload.position(workload.home(subscription.client));
            let engines: [&mut dyn Engine; 3] = [&mut cells, &mut gpu, &mut clcb];
            for engine in engines {
                engine.move_client(subscription.client, Some(home));
                engine.install(id, &subscription).expect("there is room");
            }
        }
        gpu.settle().expect("the device works");
        let mut matches = 0;
        for round in 0..3 {
            let events: Vec<Event> =
                (round * 40..round * 40 + 40).map(|index| workload.event(index)).collect();
            let expected = rows(&mut cells, &events);
            assert_eq!(expected, rows(&mut gpu, &events), "round {round}");
            for form in [Form::Plain, Form::Fast] {
                clcb.set_form(form);
                assert_eq!(expected, rows(&mut clcb, &events), "{form:?}, round {round}");
            }
            matches += expected.pairs_count();
            for index in 0..30 {
                let (client, spot) = workload.jump(round * 100 + index);
                let engines: [&mut dyn Engine; 3] = [&mut cells, &mut gpu, &mut clcb];
                engines
                    .into_iter()
                    .for_each(|engine| engine.move_client(client, Some(workload.position(spot))));
            }
        }
        assert!(matches > 10, "{matches} matches prove little");
    }
}

#[test]
fn every_kernel_on_a_small_field() {
    cuda_devices().iter().chain([&host_device()]).for_each(check_every_kernel);
}

/// Everybody wants everything: many times the answers that a first guess makes room for.
fn check_crowd(engine: &mut dyn Engine) {
    const CROWD: u32 = 20_000;
    let world = World::Planar;
    let everything = Filter { area: Area::Everywhere, condition: Condition::always() };
    for id in 0..CROWD {
        let subscription = Subscription { client: ClientId(id), filters: vec![everything.clone()] };
        engine.install(SubscriptionId(id), &subscription).expect("there is room");
    }
    let events: Vec<Event> =
        (0..5).map(|x| Event::at(world.position(&[f64::from(x), 0.0]).expect("a position"))).collect();
    let all: Vec<SubscriptionId> = (0..CROWD).map(SubscriptionId).collect();
    for batch in [&events[..1], &events[..], &events[..2]] {
        let found = rows(engine, batch);
        assert_eq!(found.len(), batch.len());
        assert!(found.iter().all(|row| row == all));
    }
}

#[test]
fn more_answers_than_there_was_room_for() {
    let hosts = [host_device()];
    for devices in [&hosts[..], &cuda_devices()[..]].into_iter().filter(|devices| !devices.is_empty()) {
        check_crowd(clcb(World::Planar, &devices[0]).as_mut());
        check_crowd(gpu(World::Planar, devices).as_mut());
    }
}
