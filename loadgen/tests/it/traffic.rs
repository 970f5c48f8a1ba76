//! What holds at every moment, whatever the streets, the routes, the threads.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use loadgen::traffic::{Change, Idm, Kind, Routes, Settings, State, Traffic, TrafficError, measure};
use matcher::geo::World;
use streets::Network;

/// The small country that every clone has.
fn liechtenstein() -> Network {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/liechtenstein/highways.osm.pbf");
    streets::load_connected(&path).expect("the copy in the project is sound")
}

/// How much sums of f32 may be off, in metres and metres a second.
const EPSILON: f32 = 0.01;

/// Everybody is in one place, in order, with room, and no faster than they like.
#[track_caller]
fn check(traffic: &Traffic, vehicle_length_m: f32) {
    let network = traffic.network();
    let mut seen = vec![0_u32; traffic.vehicles_count() as usize];
    for arc in 0..u32::try_from(network.arcs_count()).expect("few") {
        for lane in 0..u32::from(network.lanes(arc)) {
            let vehicles = traffic.vehicles(arc, lane).collect::<Vec<_>>();
            for &vehicle in &vehicles {
                seen[vehicle as usize] += 1;
                assert_eq!((traffic.arc(vehicle), traffic.lane(vehicle)), (arc, lane));
                assert_ne!(traffic.state(vehicle), State::Parked);
                assert_eq!(
                    network.from(traffic.next_arc(vehicle)),
                    network.to(arc),
                    "the next arc begins here"
                );
            }
            for pair in vehicles.windows(2) {
                let gap_m = traffic.along_m(pair[0]) - vehicle_length_m - traffic.along_m(pair[1]);
                assert!(
                    gap_m > -EPSILON,
                    "{pair:?} overlap by {gap_m} m on arc {arc} at {} s",
                    traffic.now_s()
                );
            }
        }
    }
    for (vehicle, seen) in (0..).zip(seen) {
        assert_eq!(seen, u32::from(traffic.state(vehicle) != State::Parked), "vehicle {vehicle}");
        let (along_m, speed_ms) = (traffic.along_m(vehicle), traffic.speed_ms(vehicle));
        let length_m = network.length_m(traffic.arc(vehicle));
        assert!(
            along_m >= 0.0 && f64::from(along_m) <= length_m + f64::from(EPSILON),
            "{along_m} of {length_m}"
        );
        assert!(
            speed_ms >= 0.0 && speed_ms <= traffic.desired_ms(vehicle) + EPSILON,
            "vehicle {vehicle}: {speed_ms}"
        );
    }
}

/// Nobody gets further in a step than their speed permits.
fn check_no_leaps(traffic: &mut Traffic, dt_s: f32) {
    let world = traffic.network().world();
    let place = |at: [f64; 2]| world.position(&at).expect("in the world");
    let vehicles = 0..traffic.vehicles_count();
    let before = vehicles.clone().map(|car| (place(traffic.position(car)), traffic.speed_ms(car)));
    let before = before.collect::<Vec<_>>();
    traffic.step(dt_s);
    for (vehicle, (was, speed_ms)) in vehicles.zip(before) {
        let far_m = world.distance_m(&was, &place(traffic.position(vehicle)));
        let most_m = f64::from((speed_ms + 0.5 * dt_s * Idm::default().acceleration) * dt_s) + 0.05;
        assert!(far_m <= most_m, "vehicle {vehicle} leapt {far_m} m at {speed_ms} m/s");
    }
}

fn lively(vehicles: u32, routes: Routes) -> Settings {
    Settings {
        vehicles,
        routes,
        trip_mean_s: Some(120.0),
        parked_mean_s: 60.0,
        free_place_mean_s: 40.0,
        breakdowns_per_vehicle_h: 0.5,
        breakdown_mean_s: 40.0,
        ..Settings::default()
    }
}

#[test]
fn nobody_is_lost_or_driven_into() {
    let goals = Routes::Goals { count: 8, renewed_s: 5.0 };
    let country = Arc::new(liechtenstein());
    for (network, vehicles, routes) in [
        (Arc::clone(&country), 3000, Routes::Walk),
        (Arc::clone(&country), 3000, goals),
        (Arc::clone(&country), 60_000, Routes::Walk),
        (Arc::new(Network::grid(6, 6, 80.0)), 900, Routes::Walk),
        (Arc::new(Network::grid(6, 6, 80.0)), 400, goals),
        (Arc::new(Network::grid(12, 12, 3.0)), 0, Routes::Walk),
        (Arc::new(Network::grid(5, 5, 9.0)), 40, Routes::Walk),
        (Arc::new(Network::ring(1000.0, 100, 14.0)), 60, Routes::Walk),
    ] {
        for seed in 0..2 {
            let settings = lively(vehicles, routes);
            let mut traffic = Traffic::new(Arc::clone(&network), settings, seed).expect("there is room");
            check(&traffic, 4.5);
            for nth in 0..120_u8 {
                traffic.step([0.5, 0.2, 1.0, 3.0][usize::from(nth % 4)]);
                check(&traffic, 4.5);
            }
            check_no_leaps(&mut traffic, 0.5);
        }
    }
}

#[test]
fn a_seed_gives_the_same_states_on_any_number_of_threads() {
    let network = Arc::new(liechtenstein());
    for routes in [Routes::Walk, Routes::Goals { count: 8, renewed_s: 5.0 }] {
        let run = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| {
                let mut traffic =
                    Traffic::new(Arc::clone(&network), lively(12_000, routes), seed).expect("room");
                let changes = (0..60).flat_map(|_| traffic.step(1.0).to_vec()).collect::<Vec<_>>();
                let states = (0..traffic.vehicles_count()).map(|car| {
                    let (along_m, speed_ms) =
                        (traffic.along_m(car).to_bits(), traffic.speed_ms(car).to_bits());
                    (traffic.arc(car), traffic.lane(car), along_m, speed_ms, traffic.state(car))
                });
                (changes, states.collect::<Vec<_>>())
            })
        };
        let alone = run(1, 5);
        assert!(!alone.0.is_empty());
        for threads in [2, 5] {
            let together = run(threads, 5);
            assert_eq!(alone.0, together.0);
            assert!(alone.1 == together.1, "{threads} threads, {routes:?}");
        }
        assert!(alone.1 != run(2, 6).1);
    }
}

#[test]
fn every_incident_begins_once_and_ends_once_and_is_true() {
    let network = Arc::new(Network::grid(8, 8, 120.0));
    let jams = loadgen::traffic::Jams { vehicles_min: 5, for_s: 10.0, ..Default::default() };
    let settings = Settings { jams, ..lively(900, Routes::Walk) };
    let mut traffic = Traffic::new(network, settings, 3).expect("room");
    let mut open = HashMap::new();
    let mut ended = HashMap::<Kind, u32>::new();
    for _ in 0..600 {
        for change in traffic.step(1.0).to_vec() {
            match change {
                Change::Began(incident) => {
                    assert_eq!(incident.until_s, None);
                    assert!(
                        incident
                            .street
                            .as_deref()
                            .is_some_and(|name| name.starts_with("Row") || name.starts_with("Col"))
                    );
                    match (incident.kind, incident.vehicle) {
                        (Kind::Breakdown, Some(car)) => {
                            assert_eq!(traffic.state(car), State::Broken);
                            assert_eq!(
                                (traffic.speed_ms(car), traffic.position(car)),
                                (0.0, incident.position)
                            );
                        }
                        (Kind::Jam, None) => {
                            assert!(
                                incident.vehicles >= 5
                                    && incident.speed_kmh < 10.0
                                    && incident.limit_kmh > 49.0
                            );
                            assert!(incident.from_s > 10.0);
                        }
                        (Kind::FreeParking, Some(car)) => assert_eq!(traffic.state(car), State::Driving),
                        (kind, vehicle) => panic!("{kind:?} of {vehicle:?}"),
                    }
                    assert!(open.insert(incident.number, incident).is_none());
                }
                Change::Ended(incident) => {
                    let begun = open.remove(&incident.number).expect("it began");
                    assert!(incident.until_s.is_some_and(|until_s| until_s >= incident.from_s));
                    assert_eq!(begun, loadgen::traffic::Incident { until_s: None, ..incident.clone() });
                    *ended.entry(incident.kind).or_default() += 1;
                }
            }
        }
        let mut told = open.keys().copied().collect::<Vec<_>>();
        told.sort_unstable();
        assert_eq!(traffic.incidents().map(|incident| incident.number).collect::<Vec<_>>(), told);
    }
    for kind in [Kind::Breakdown, Kind::Jam, Kind::FreeParking] {
        assert!(ended.get(&kind).is_some_and(|count| *count >= 3), "{kind:?}: {ended:?}");
    }
}

#[test]
fn what_does_not_fit_or_makes_no_sense_is_refused() {
    let network = Arc::new(Network::ring(1000.0, 10, 14.0));
    // Each piece of 100 m has 15 places of 6.5 m.
    let fits = Settings { vehicles: 150, ..Settings::default() };
    assert!(Traffic::new(Arc::clone(&network), fits.clone(), 0).is_ok());
    let problem = Traffic::new(Arc::clone(&network), Settings { vehicles: 151, ..fits.clone() }, 0)
        .expect_err("too many");
    assert!(matches!(problem, TrafficError::TooMany { vehicles: 151, room: 150, .. }), "{problem}");
    for settings in [
        Settings { green_s: f32::NAN, ..fits.clone() },
        Settings { idm: Idm { acceleration: 0.0, ..Idm::default() }, ..fits.clone() },
        Settings { breakdown_mean_s: f64::INFINITY, ..fits.clone() },
        Settings { routes: Routes::Goals { count: 0, renewed_s: 1.0 }, ..fits.clone() },
    ] {
        let problem = Traffic::new(Arc::clone(&network), settings, 0).expect_err("a fault").to_string();
        assert!(problem.contains("is not within"), "{problem}");
    }
    let mut traffic = Traffic::new(network, fits, 0).expect("room");
    for dt_s in [f32::NAN, f32::INFINITY, -1.0, 0.0] {
        traffic.step(dt_s);
        assert_eq!(traffic.now_s(), 0.0);
    }
}

#[test]
fn a_measurement_measures() {
    let network = Arc::new(Network::grid(10, 10, 100.0));
    let settings = Settings { vehicles: 500, ..Settings::default() };
    let measured = measure(&network, &settings, 1, 2, 20.0, 0.5).expect("room");
    assert_eq!((measured.vehicles, measured.threads, measured.simulated_s), (500, 2, 20.0));
    assert!(measured.speedup() > 1.0 && measured.speed_kmh > 1.0 && (0.0..1.0).contains(&measured.standing));
    assert!(measure(&network, &settings, 1, 1, 1.0, f32::NAN).is_err());
    assert!(measure(&network, &settings, 1, 1, f64::INFINITY, 0.5).is_err());
    assert_eq!(network.world(), World::Planar);
}
