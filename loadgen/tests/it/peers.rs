//! Scenarios against Mosquitto and NATS, which have to be installed: `make test` sees to that.

use loadgen::report::record::Record;
use loadgen::run::{Peer, Place, Stage, Target, record};
use loadgen::scenario::Scenario;

/// Runs the fan-out, otherwise as sets say, against a broker of its own.
fn run(peer: Peer, sets: &[&str]) -> Record {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::load("fanout", &sets).unwrap();
    let plan = scenario.plan().unwrap();
    let target = Target { peer: Some(peer), place: Place::Started { program: None, is_secure: false } };
    let mut stage = Stage::set(&scenario, &*plan, &target, None, |_| ()).unwrap();
    let watched = stage.phase(&scenario, &*plan, |_| ()).unwrap();
    record(&scenario, &*plan, &stage, watched).unwrap()
}

/// Ten clients at each of thirty places get what happens there, and nothing else.
fn carries_the_fan_out(peer: Peer, name: &str) {
    let sets = [
        "clients.count=300",
        "field.places=30",
        "events.rate=200",
        "run.duration_s=2",
        "run.warmup_s=0",
        "load.publishers=2",
        "load.checked_clients=300",
    ];
    let record = run(peer, &sets);
    let totals = &record.totals;
    assert_eq!(record.target.name, name);
    let version = &record.target.version;
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    assert!(!record.target.shortfalls.is_empty());
    assert!(totals.events.sent > 200, "{totals:#?}");
    assert_eq!(totals.events.accepted, totals.events.sent, "{totals:#?}");
    assert_eq!(totals.deliveries, totals.events.sent * 10, "{totals:#?}");
    assert_eq!((totals.left_over, totals.errors_count()), (0, 0), "{totals:#?}");
    let check = record.check.unwrap();
    assert_eq!(
        (check.required, check.came, check.missing),
        (totals.deliveries, totals.deliveries, 0),
        "{check:#?}"
    );
    assert_eq!(
        (check.spurious, check.superfluous, check.duplicates, check.ambiguous),
        (0, 0, 0, 0),
        "{check:#?}"
    );
}

/// Clients that walk get all that concerns them, and what else happens in the cells around them.
fn brings_more_than_was_asked_for(peer: Peer) {
    let sets = [
        "clients.count=300",
        "moves.interval_s=0.5",
        "moves.step_m=100",
        "field.places=0",
        "field.stays=false",
        "field.radius_m=700",
        "field.side_m=10000",
        "field.conditions=[\"severity >= 2\"]",
        "events.rate=200",
        "run.duration_s=3",
        "run.warmup_s=0.5",
        "load.checked_clients=50",
        "peer.cell_m=0",
    ];
    let record = run(peer, &sets);
    let (check, moves) = (record.check.unwrap(), &record.totals.moves);
    assert!(moves.sent > 1_000 && moves.accepted > 100, "{moves:#?}");
    assert!(check.required > 50, "{check:#?}");
    assert_eq!((check.missing, check.duplicates, check.spurious), (0, 0, 0), "{check:#?}");
    assert!(
        check.superfluous > check.required,
        "of nine cells a circle of a cell's radius is a third: {check:#?}"
    );
    assert_eq!(record.totals.left_over, 0);
}

#[test]
fn mosquitto_carries_the_fan_out() {
    carries_the_fan_out(Peer::Mosquitto, "mosquitto");
}

#[test]
fn nats_carries_the_fan_out() {
    carries_the_fan_out(Peer::Nats, "nats");
}

#[test]
fn mosquitto_brings_more_than_was_asked_for() {
    brings_more_than_was_asked_for(Peer::Mosquitto);
}

#[test]
fn nats_brings_more_than_was_asked_for() {
    brings_more_than_was_asked_for(Peer::Nats);
}

#[test]
fn a_peer_that_is_not_installed_is_told_with_how_to_get_it() {
    let scenario = Scenario::load("fanout", &[]).unwrap();
    let plan = scenario.plan().unwrap();
    for (peer, package) in [(Peer::Mosquitto, "mosquitto"), (Peer::Nats, "nats-server")] {
        let place = Place::Started { program: Some("/nowhere/to/be/found".into()), is_secure: false };
        let target = Target { peer: Some(peer), place };
        let error = Stage::set(&scenario, &*plan, &target, None, |_| ()).err().unwrap();
        let text = format!("{error:#}");
        assert!(
            text.contains("/nowhere/to/be/found") && text.contains(&format!("apt-get install {package}")),
            "{text}"
        );
    }
}
