//! Tests of what is held for clients: counted, bounded, and given back when they are deleted or not heard of.

use futures_util::FutureExt as _;

use super::tests::{Bench, listed};
use super::*;
use crate::budget::Kind;

#[test]
fn what_is_held_for_a_client_is_counted_bounded_and_given_back() {
    let mut bench = Bench::with(None, |config| config.limits.subscription_bytes_per_client = 2_000);
    let budget = bench.sessions.budget.clone();
    let document = |note: usize| format!(r#"{{"filters":[{{"where":"a = '{}'"}}]}}"#, "x".repeat(note));
    let documents = || budget.client("a").bytes(Kind::Documents);
    bench.install_document("a", "s", &document(100), None).unwrap();
    let small = documents();
    assert!((600..1_000).contains(&small), "{small}");
    let refused = bench.install_document("a", "t", &document(900), None);
    let setting = "limits.subscription_bytes_per_client";
    assert!(matches!(refused, Err(ApiError::Limit { limit: 2_000, setting: of, .. }) if of == setting));
    bench.install_document("a", "s", &document(900), None).unwrap();
    assert!(documents() > small + 700);
    assert!(bench.install_document("a", "s", &document(1_900), None).is_err());
    bench.install_document("a", "s", &document(100), None).unwrap();
    assert_eq!(documents(), small);
    assert_eq!(budget.broker().bytes(Kind::Documents), small);
    let durable = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;
    bench.install_document("b", "s", durable, None).unwrap();
    bench.move_to("b", 0.0);
    bench.publish();
    bench.publish();
    let kept = budget.client("b").bytes(Kind::Kept);
    assert_eq!(kept, bench.sessions.kept_total.bytes());
    let (_, listed) = listed(&mut bench, None, 9);
    let of_b = listed.iter().find(|figures| figures.client == "b").unwrap();
    assert_eq!((of_b.held["kept"], of_b.held_bytes), (kept, kept + of_b.held["documents"]));
    bench.sessions.forget("a");
    bench.sessions.forget("b");
    assert!([Kind::Documents, Kind::Kept].into_iter().all(|kind| budget.broker().bytes(kind) == 0));
}

#[test]
fn sessions_that_end_leave_no_dates() {
    let mut bench = Bench::with(None, |_| {});
    let durable = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;
    bench.install_document("b", "s", durable, None).unwrap();
    bench.move_to("b", 0.0);
    for cycle in 0..10_000 {
        bench.install_document("a", "s", durable, None).unwrap();
        bench.move_to("a", 0.0);
        bench.publish();
        assert_eq!(bench.sessions.dates.len(), 2, "one for each session, cycle {cycle}");
        if cycle % 2 == 0 {
            bench.sessions.forget("a");
        } else {
            let outbox = bench.attach("a", 1, Resume::Ready);
            let mut batch = Vec::new();
            assert_eq!(outbox.next_batch(&mut batch, usize::MAX).now_or_never(), Some(None));
            bench.sessions.acknowledge("a", 1).unwrap();
            bench.sessions.remove("a", "s");
            bench.sessions.detach("a", 1);
        }
        assert_eq!(bench.sessions.dates.len(), 1, "cycle {cycle}");
        bench.sessions.forget("a");
    }
}

#[test]
fn clients_that_are_not_heard_of_are_forgotten_with_all_that_is_held_for_them() {
    let mut bench = Bench::with(None, |config| {
        config.sessions.idle_s = 80;
        config.limits.clients = 9;
    });
    let start = clock::now();
    let at = |bench: &mut Bench, seconds: u64| {
        let now = start + Duration::from_secs(seconds);
        bench.sessions.now = bench.sessions.moment(now);
        bench.sessions.forget_idle(now);
    };
    at(&mut bench, 1);
    let durable = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;
    for client in ["away", "moves", "reads", "leaves", "asks"] {
        bench.install_document(client, "s", durable, None).unwrap();
        bench.move_to(client, 0.0);
    }
    bench.attach("reads", 1, Resume::Ready);
    bench.attach("leaves", 2, Resume::Ready);
    bench.publish();
    at(&mut bench, 60);
    bench.move_to("moves", 1.0);
    bench.sessions.detach("leaves", 2);
    bench.sessions.acknowledge("asks", 0).unwrap();
    at(&mut bench, 80);
    assert_eq!(bench.sessions.metrics.clients.get(), 5, "not yet");
    at(&mut bench, 95);
    assert_eq!((bench.sessions.metrics.clients.get(), bench.sessions.metrics.clients_idle.get()), (4, 1));
    assert!(bench.sessions.documents("away").is_empty() && !bench.sessions.documents("leaves").is_empty());
    assert_eq!(bench.sessions.budget.client("away").bytes(Kind::Kept), 0);
    at(&mut bench, 160);
    // Who is connected stays, however silent.
    assert_eq!(bench.sessions.metrics.clients.get(), 1);
    assert!(bench.sessions.ids.contains_key("reads") && bench.sessions.dates.len() == 1);
    bench.sessions.detach("reads", 1);
    at(&mut bench, 175);
    assert_eq!(bench.sessions.metrics.clients.get(), 1, "it has the time again");
    at(&mut bench, 260);
    assert_eq!(bench.sessions.metrics.clients.get(), 0);
    assert_eq!(bench.sessions.next_deadline(), None);
}

/// Each takes its time: others that wait for the thread come in between.
#[test]
fn many_clients_are_forgotten_a_few_at_a_time() {
    let mut bench = Bench::with(None, |config| {
        config.sessions.idle_s = 80;
        config.limits.clients = 1_000;
    });
    let start = clock::now();
    (0..500).for_each(|number| bench.move_to(&format!("c{number}"), 0.0));
    let now = start + Duration::from_secs(200);
    bench.sessions.now = bench.sessions.moment(now);
    let mut left = 500;
    while left > 0 {
        assert!(bench.sessions.next_deadline().is_some_and(|at| at <= now), "{left} are left for later");
        bench.sessions.forget_idle(now);
        let before = std::mem::replace(&mut left, bench.sessions.ids.len());
        assert!((1..=50).contains(&(before - left)), "{before} and then {left}");
    }
}

/// The table in docs/operations.md, row by row.
#[test]
fn each_kind_is_filled_to_its_bound_and_no_further() {
    const BYTES: usize = 4_000;
    let mut bench = Bench::with(None, |config| {
        config.limits.clients = 9;
        config.limits.subscriptions_per_client = 100;
        config.limits.subscription_bytes_per_client = BYTES;
        config.limits.members_per_client = 7;
        config.limits.live_bytes = 5 * BYTES as u64;
        config.sessions.kept_bytes = BYTES;
        config.sessions.recent_bytes = BYTES;
        config.outbox.bytes = BYTES;
    });
    let budget = bench.sessions.budget.clone();
    let all = |kind| budget.broker().bytes(kind);
    let setting = |refused: ApiError| {
        let ApiError::Limit { setting, .. } = refused else { panic!("{refused:?}") };
        setting
    };
    let durable = r#"{"filters":[{"area":{"radius_m":5}}],"durable":true}"#;
    let zone = r#"{"filters":[{"area":{"radius_m":5}}],"on":["enter","exit"]}"#;
    for client in ["away", "reads", "zones"] {
        bench.move_to(client, 0.0);
    }
    bench.install_document("away", "s", durable, None).unwrap();
    bench.install("reads", "s", None).unwrap();
    let outbox = bench.attach("reads", 1, Resume::Fresh);

    let refused = (0..100).find_map(|n| bench.install_document("zones", &n.to_string(), zone, None).err());
    assert_eq!(refused.map(setting), Some("limits.subscription_bytes_per_client"));
    let documents = budget.client("zones").bytes(Kind::Documents);
    assert!((BYTES as u64 / 2..=BYTES as u64).contains(&documents), "{documents}");
    let subscriptions = bench.sessions.documents("zones").len();
    assert!(subscriptions > 2, "{subscriptions}");

    let live = |n: usize| format!(r#","key":"k{n}","properties":{{"note":"{}"}}"#, "x".repeat(300));
    let refused = (0..100).find_map(|n| bench.try_publish(0.0, &live(n)).err());
    assert_eq!(refused.map(setting), Some("limits.live_bytes"));
    assert!((4 * BYTES as u64..=5 * BYTES as u64).contains(&all(Kind::LiveEvents)));
    let number = bench.sessions.ids["zones"];
    assert_eq!(bench.sessions.tracker.members_of(ClientId(number)), 7);
    assert!(all(Kind::Members) >= 7 * listing::MEMBER_BYTES);

    let passing = format!(r#","properties":{{"note":"{}"}}"#, "x".repeat(300));
    for _ in 0..100 {
        bench.publish_with(&passing);
    }
    let (_, waiting) = outbox.waiting();
    let kept = budget.client("away").bytes(Kind::Kept);
    for (what, bytes) in [("outbox", waiting as u64), ("kept", kept)] {
        assert!((BYTES as u64 / 2..=BYTES as u64).contains(&bytes), "{what}: {bytes}");
    }
    // It counts in steps.
    assert!((BYTES as u64 / 2..=16 * 1_024).contains(&all(Kind::DeliveryLog)));

    for figures in listed(&mut bench, None, 9).1 {
        let kinds: Vec<_> = figures.held.keys().map(String::as_str).collect();
        let expected = match &*figures.client {
            "away" => vec!["documents", "kept", "members"],
            "reads" => vec!["documents", "members", "outbox"],
            _ => vec!["documents", "members"],
        };
        assert_eq!((kinds, figures.held_bytes), (expected, figures.held.values().sum()), "{figures:?}");
    }
    drop((bench, outbox));
    for kind in Kind::ALL {
        assert_eq!(all(kind), 0, "{kind:?}");
    }
}
