//! What traffic does is what is known of it.

use std::sync::Arc;

use loadgen::traffic::{Change, Idm, Kind, Settings, State, Traffic};
use streets::Network;

/// All alike, and nothing but driving.
fn plain(vehicles: u32) -> Settings {
    Settings {
        vehicles,
        idm: Idm { factor_deviation: 0.0, ..Idm::default() },
        trip_mean_s: None,
        breakdowns_per_vehicle_h: 0.0,
        ..Settings::default()
    }
}

fn ring(length_m: f64, settings: Settings, seed: u64) -> Traffic {
    Traffic::new(Arc::new(Network::ring(length_m, 20, 14.0)), settings, seed).expect("there is room")
}

fn speeds(traffic: &Traffic) -> Vec<f32> {
    (0..traffic.vehicles_count()).map(|car| traffic.speed_ms(car)).collect()
}

fn mean(numbers: &[f32]) -> f32 {
    numbers.iter().sum::<f32>() / f32::from(u16::try_from(numbers.len()).expect("few"))
}

#[test]
fn who_is_alone_drives_as_fast_as_they_like() {
    let mut traffic = ring(2000.0, plain(1), 1);
    traffic.step(60.0);
    let speed_ms = traffic.speed_ms(0);
    assert!((speed_ms - traffic.desired_ms(0)).abs() < 0.01 * speed_ms, "{speed_ms}");
    // And gets as far.
    let before = traffic.network().length_m(0) * f64::from(traffic.arc(0)) + f64::from(traffic.along_m(0));
    traffic.step(10.0);
    let after = traffic.network().length_m(0) * f64::from(traffic.arc(0)) + f64::from(traffic.along_m(0));
    assert!(((after - before).rem_euclid(2000.0) - 140.0).abs() < 1.5, "{before} {after}");
}

/// The speed of evenly spaced vehicles: where the model's acceleration is 0, found by halving.
fn equilibrium_ms(idm: Idm, gap_m: f32, desired_ms: f32) -> f32 {
    let (mut low, mut high) = (0.0, desired_ms);
    for _ in 0..50 {
        let speed_ms = 0.5 * (low + high);
        let wanted_m = idm.gap_m + speed_ms * idm.headway_s;
        if 1.0 - (speed_ms / desired_ms).powi(4) > (wanted_m / gap_m).powi(2) {
            low = speed_ms
        } else {
            high = speed_ms
        }
    }
    low
}

#[test]
fn flow_rises_with_density_and_falls_again() {
    let mut flows = Vec::new();
    for vehicles in [5_u16, 10, 20, 30, 40, 55, 70, 90, 110, 130] {
        // Strong enough to damp what disturbs them, so that all come to drive alike.
        let idm = Idm { acceleration: 2.5, factor_deviation: 0.0, ..Idm::default() };
        let mut traffic = ring(1000.0, Settings { idm, ..plain(u32::from(vehicles)) }, 2);
        traffic.step(600.0);
        let seen = (0..60).map(|_| {
            traffic.step(1.0);
            mean(&speeds(&traffic))
        });
        let speed_ms = mean(&seen.collect::<Vec<_>>());
        let expected_ms = equilibrium_ms(Idm::default(), 1000.0 / f32::from(vehicles) - 4.5, 14.0);
        assert!(
            (speed_ms - expected_ms).abs() < 0.1 * expected_ms + 0.1,
            "{vehicles}/km: {speed_ms}, not {expected_ms}"
        );
        flows.push((vehicles, speed_ms * f32::from(vehicles) * 3.6));
    }
    let most = flows.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("some");
    assert!((30..=55).contains(&most.0) && (1500.0..2400.0).contains(&most.1), "{flows:?} vehicles an hour");
    let at = flows.iter().position(|flow| flow == most).expect("it is one of them");
    assert!(
        flows[..=at].is_sorted_by(|a, b| a.1 < b.1) && flows[at..].is_sorted_by(|a, b| a.1 > b.1),
        "{flows:?}"
    );
}

/// Drivers who accelerate weakly do not damp what disturbs them (M. Treiber, A. Kesting, Traffic Flow Dynamics, 2013, chapter 15).
#[test]
fn weak_acceleration_makes_stop_and_go_waves() {
    let spread = |acceleration| {
        let idm = Idm { acceleration, factor_deviation: 0.0, ..Idm::default() };
        let mut traffic = ring(1000.0, Settings { idm, ..plain(55) }, 3);
        traffic.step(600.0);
        traffic.break_down(0, 15.0);
        traffic.step(900.0);
        let speeds = speeds(&traffic);
        let fastest = speeds.iter().copied().fold(0.0, f32::max);
        fastest - speeds.iter().copied().fold(f32::INFINITY, f32::min)
    };
    let (strong, weak) = (spread(2.5), spread(0.3));
    assert!(strong < 1.0 && weak > 4.0, "{strong} {weak}");
}

#[test]
fn who_stands_makes_a_queue_that_dissolves() {
    let mut traffic = ring(2000.0, plain(60), 4);
    traffic.step(200.0);
    traffic.break_down(7, 150.0);
    let began_s = traffic.now_s();
    let mut changes = Vec::new();
    while traffic.now_s() < began_s + 140.0 {
        changes.extend_from_slice(traffic.step(1.0));
    }
    assert_eq!((traffic.state(7), traffic.speed_ms(7)), (State::Broken, 0.0));
    let queue = speeds(&traffic).iter().filter(|speed_ms| **speed_ms < 0.3).count();
    assert!(queue >= 20, "{queue} stand");
    // Bumper to bumper but for the gap that one keeps when standing.
    let places = |traffic: &Traffic| {
        let from_7 = |car| {
            let at = |car| {
                traffic.network().length_m(0) * f64::from(traffic.arc(car)) + f64::from(traffic.along_m(car))
            };
            (at(7) - at(car)).rem_euclid(2000.0)
        };
        let mut places = (0..60).map(from_7).collect::<Vec<_>>();
        places.sort_by(f64::total_cmp);
        places
    };
    for pair in places(&traffic)[..15].windows(2) {
        let gap_m = pair[1] - pair[0] - 4.5;
        assert!((1.5..3.0).contains(&gap_m), "{gap_m}");
    }
    while traffic.now_s() < began_s + 500.0 {
        changes.extend_from_slice(traffic.step(1.0));
    }
    assert!(speeds(&traffic).iter().all(|speed_ms| *speed_ms > 5.0), "{:?}", speeds(&traffic));
    let told = changes.iter().filter_map(|change| match change {
        Change::Ended(incident) if incident.kind == Kind::Breakdown => {
            Some((incident.vehicle, incident.until_s))
        }
        Change::Ended(_) | Change::Began(_) => None,
    });
    let told = told.collect::<Vec<_>>();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].0 == Some(7) && told[0].1.is_some_and(|until_s| (until_s - began_s - 150.0).abs() < 1.1),
        "{told:?}"
    );
    // The arc behind was full and stood for more than a minute, and does so no longer.
    let jams = |is_begin: bool| {
        let of = |change: &&Change| match change {
            Change::Began(incident) => is_begin && incident.kind == Kind::Jam,
            Change::Ended(incident) => !is_begin && incident.kind == Kind::Jam,
        };
        changes.iter().filter(of).count()
    };
    assert!(jams(true) > 0 && jams(true) == jams(false), "{} {}", jams(true), jams(false));
}

#[test]
fn a_signal_holds_back_and_lets_go() {
    // One crossing with four arms has signals; the nodes around it have three arms or two.
    let network = Arc::new(Network::grid(3, 3, 300.0));
    let mut traffic = Traffic::new(Arc::clone(&network), plain(120), 5).expect("room");
    assert_eq!(traffic.junctions_counts(), (1, 5));
    let arms = network.arcs_to(4).to_vec();
    let mut most = vec![0; 4];
    let mut crossed = [0_u32; 4];
    let mut between = 0;
    traffic.step(120.0);
    for _ in 0..600 {
        let before = (0..120).map(|car| traffic.arc(car)).collect::<Vec<_>>();
        traffic.step(1.0);
        let mut now = [false; 4];
        for (arm, arc) in arms.iter().enumerate() {
            let standing = traffic.vehicles(*arc, 0).filter(|car| traffic.speed_ms(*car) < 0.3).count();
            most[arm] = most[arm].max(standing);
            let gone =
                (0..120).filter(|car| before[*car as usize] == *arc && traffic.arc(*car) != *arc).count();
            crossed[arm] += u32::try_from(gone).expect("few");
            now[arm] = gone > 0;
        }
        // Arms that meet at right angles never have green in the same second.
        let headings = arms.iter().map(|arc| network.heading_deg(*arc, 300.0) % 180.0 > 45.0).zip(now);
        let (across, along): (Vec<_>, Vec<_>) =
            headings.filter(|(_, is_used)| *is_used).partition(|(is_across, _)| *is_across);
        between += u32::from(!across.is_empty() && !along.is_empty());
    }
    assert!(most.iter().all(|queue| *queue >= 3), "queues {most:?}");
    assert!(crossed.iter().all(|count| *count >= 30), "crossed {crossed:?}");
    assert_eq!(between, 0);
}

#[test]
fn nobody_waits_forever_where_there_is_room() {
    let network = Arc::new(Network::grid(7, 9, 100.0));
    let mut traffic = Traffic::new(network, plain(600), 6).expect("room");
    let mut stood = vec![0_u32; 600];
    for _ in 0..1200 {
        traffic.step(1.0);
        for (car, stood) in (0..).zip(&mut stood) {
            *stood = if traffic.speed_ms(car) < 0.1 { *stood + 1 } else { 0 };
            assert!(
                *stood < 240,
                "vehicle {car} has stood for {stood} s on arc {} at {} s",
                traffic.arc(car),
                traffic.now_s()
            );
        }
    }
    assert!(mean(&speeds(&traffic)) > 2.0);
}

#[test]
fn the_speed_of_a_segment_is_that_of_its_vehicles() {
    let mut traffic = Traffic::new(Arc::new(Network::grid(4, 4, 150.0)), plain(100), 7).expect("room");
    traffic.step(50.0);
    let arcs = 0..u32::try_from(traffic.network().arcs_count()).expect("few");
    let mut seen = 0;
    for arc in arcs {
        let vehicles = (0..100).filter(|car| traffic.arc(*car) == arc);
        let speeds = vehicles.map(|car| traffic.speed_ms(car)).collect::<Vec<_>>();
        match traffic.segment_speed(arc) {
            Some(speed_ms) => assert!((speed_ms - mean(&speeds)).abs() < 1e-3),
            None => assert!(speeds.is_empty()),
        }
        seen += usize::from(!speeds.is_empty());
    }
    assert!(seen > 10);
}
