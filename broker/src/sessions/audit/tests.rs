use std::time::{Duration, Instant};

use super::*;

fn body(id: &str) -> Arc<Body> {
    let text = format!(r#"{{"type":"Feature","id":{id},"properties":{{"id":"other"}}}}"#);
    Arc::new(Body::new(text.into(), Instant::now(), Default::default()))
}

fn dealt(offset: u64) -> Dispatched {
    Dispatched {
        recipient: SentOffsets::new("car".into()),
        subscriptions: SubscriptionIds::One("\"s\"".into()),
        offset,
        cause: Cause::Published,
        transition: None,
        is_read: true,
        place: None,
    }
}

fn log(recent_events: usize) -> Log {
    Log::new(recent_events, usize::MAX, budget::Held::default())
}

const fn at(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

impl Log {
    fn pass(&mut self, id: &str, now: u64, deliveries: u64) {
        let entry = self.begin_passing(&body(id), at(now), 1).unwrap();
        (0..deliveries).for_each(|offset| self.note(entry, dealt(offset)));
    }

    fn pass_to(&mut self, deliveries: &[Dispatched]) {
        let entry = self.begin_passing(&body("1"), at(1), deliveries.len()).unwrap();
        for dealt in deliveries {
            let (recipient, subscriptions) = (Arc::clone(&dealt.recipient), dealt.subscriptions.clone());
            self.note(entry, Dispatched { recipient, subscriptions, ..*dealt });
        }
    }

    /// How many deliveries of events that are not live there are, the newest event first.
    fn counts(&self, id: &str) -> Vec<(usize, u64)> {
        let named = self.recent_entries("").filter(|entry| is_named(&entry.body.text, id));
        named.map(|entry| (entry.dealt.len(), entry.omitted)).collect()
    }
}

#[test]
fn so_many_events_are_remembered_and_the_oldest_go_first() {
    let mut log = log(2);
    log.pass("\"a\"", 1, 3);
    log.pass("\"b\"", 2, 1);
    assert_eq!((log.counts("a"), log.counts("b"), log.forgotten), (vec![(3, 0)], vec![(1, 0)], None));
    log.pass("\"b\"", 3, 2);
    assert_eq!((log.counts("a"), log.counts("b")), (vec![], vec![(2, 0), (1, 0)]));
    assert_eq!((log.forgotten, log.dealt_count), (Some(at(1)), 3));
}

#[test]
fn nothing_is_kept_where_that_is_asked_for() {
    let mut log = log(0);
    assert_eq!(log.begin_passing(&body("1"), at(1), 1), None);
    assert_eq!(log.of_live(&body("1"), at(1)), None);
    assert!(!log.is_kept());
}

#[test]
fn a_live_event_stays_until_it_ends_and_then_counts_as_recent() {
    let mut log = log(1);
    let (short, long, revoked) = (body("1"), body("2"), body("3"));
    for (body, expires) in [(&short, 5), (&long, 9), (&revoked, 9)] {
        let entry = log.of_live(body, at(expires)).unwrap();
        log.note(entry, dealt(1));
        assert_eq!(log.of_live(body, at(expires)), Some(entry));
    }
    log.pass("4", 1, 1);
    log.end_expired(at(4));
    assert!(log.live_entry(&short).is_some() && log.counts("4").len() == 1);
    log.end_expired(at(5));
    assert!(log.live_entry(&short).is_none() && log.counts("4").is_empty());
    assert_eq!(log.counts("1"), [(1, 0)]);
    log.end(&revoked, at(6));
    log.end(&revoked, at(7));
    assert!(log.counts("1").is_empty() && log.counts("3").len() == 1);
    assert_eq!(log.forgotten, Some(at(5)));
    // The time of one that was revoked does not come.
    log.end_expired(at(9));
    assert_eq!((log.counts("3").len(), log.counts("2").len()), (0, 1));
    assert!(log.live.is_empty() && log.ends.is_empty() && log.dealt_count == 1);
}

#[test]
fn further_deliveries_are_counted_and_make_old_events_go() {
    let mut log =
        Log::within(Bounds { recent: 9, listed: 3, dealt: 5, bytes: u64::MAX }, budget::Held::default());
    log.pass("1", 1, 4);
    assert_eq!(log.counts("1"), [(3, 1)]);
    log.pass("2", 2, 3);
    assert_eq!((log.counts("1"), log.counts("2")), (vec![], vec![(3, 0)]));
    // Those of live events are not given up for others.
    let live = [body("3"), body("4")];
    for body in &live {
        let entry = log.of_live(body, at(9)).unwrap();
        (0..3).for_each(|offset| log.note(entry, dealt(offset)));
    }
    let shown =
        live.each_ref().map(|body| log.live_entry(body).map(|entry| (entry.dealt.len(), entry.omitted)));
    assert_eq!(shown, [Some((3, 0)), Some((2, 1))]);
    assert!(log.counts("2").is_empty());
    log.pass("5", 3, 1);
    assert_eq!(log.counts("5"), [(0, 1)]);
}

#[test]
fn names_are_counted_once_for_all_that_share_them_and_the_oldest_go_at_the_bound_of_bytes() {
    let names =
        |ids: std::ops::Range<usize>| SubscriptionIds::Many(ids.map(|id| id.to_string().into()).collect());
    let with =
        |subscriptions: &SubscriptionIds| Dispatched { subscriptions: subscriptions.clone(), ..dealt(1) };
    let mut log = log(1_000);
    let shared = names(0..1_000);
    log.pass_to(&[with(&shared)]);
    let first = log.bytes;
    assert!(first > 16_000, "{first}");
    (0..99).for_each(|_| log.pass_to(&[with(&shared), with(&shared)]));
    let each = (log.bytes - first) / 99;
    assert!(each < 1_000, "{each} bytes an event");
    assert!((log.bytes..log.bytes + 40_000).contains(&log.held.bytes()));

    // Each event with names of its own.
    log.bounds.bytes = 100_000;
    for start in 0..50 {
        log.pass_to(&[with(&names(start..start + 1_000))]);
        assert!(log.bytes <= log.bounds.bytes, "{} bytes", log.bytes);
    }
    assert_eq!((log.recent.len(), log.names.len()), (6, 6));
    // One alone that has no room is counted.
    log.bounds.bytes = 10_000;
    log.pass_to(&[with(&names(0..1_000)), dealt(2)]);
    assert_eq!(log.counts("1"), [(1, 1)]);
    while !log.recent.is_empty() {
        log.forget_oldest();
    }
    assert_eq!((log.bytes, log.dealt_count), (0, 0));
    assert!(log.names.is_empty());
    assert!(log.held.bytes() <= 16 << 10, "a step of the account may stay");
}

#[test]
fn events_are_found_by_what_their_id_reads() {
    for (written, id, is_it) in [
        ("\"a\"", "a", true),
        ("\"\\u0061\"", "a", true),
        ("17", "17", true),
        ("\"17\"", "17", true),
        ("17", "17.0", false),
        ("\"ab\"", "a", false),
        ("\"a\"", "other", false),
        ("\"a\\\"b\"", "a\"b", true),
    ] {
        assert_eq!(is_named(&body(written).text, id), is_it, "{written} {id}");
    }
}

#[test]
fn what_the_shards_share_is_asked_for_once_and_only_what_may_be_known_of() {
    let (live, named, other, secret) = (body("7"), body("\"a\""), body("\"b\""), body(" \"a\""));
    let remembered = |live: &[&Arc<Body>], recent: &[&Arc<Body>]| {
        let all = |bodies: &[&Arc<Body>]| bodies.iter().map(|body| Arc::clone(body)).collect();
        Remembered { live: all(live), recent: all(recent) }
    };
    let told = vec![remembered(&[&live], &[&named, &other]), remembered(&[&live], &[&secret, &named])];
    let known: Known = Arc::new(|text| !text.contains("id\": "));
    let asked = Asked::among(told, "a", Some(&known));
    assert_eq!([&live, &named, &other, &secret].map(|body| asked.holds(body)), [true, true, false, false]);
    assert_eq!(asked.0.len(), 2);
}

#[test]
fn what_one_shard_has_forgotten_is_forgotten() {
    let one = |client: &str, offset: u64| {
        let recipient = SentOffsets::new(client.into());
        (Dispatched { recipient, ..dealt(offset) }, wire::DeliveryState::Written)
    };
    let told =
        |ended: Option<u64>, deliveries: &[(Dispatched, wire::DeliveryState)], forgotten: Option<u64>| Told {
            is_live: ended.is_none(),
            events: vec![AuditedEvent { ended: ended.map(at), deliveries: deliveries.to_vec(), omitted: 2 }],
            forgotten: forgotten.map(at),
        };
    let forgetful = |forgotten| Told { forgotten: Some(at(forgotten)), ..Told::default() };
    let first = || told(Some(5), &[one("b", 1), one("a", 9)], None);
    let both =
        Told::joined("e", vec![first(), told(Some(5), &[one("a2", 1), one("a", 2)], Some(4))]).unwrap();
    let order: Vec<_> = both.deliveries.iter().map(|one| (&*one.client, one.offset)).collect();
    assert_eq!(order, [("a", 2), ("a", 9), ("a2", 1), ("b", 1)]);
    assert_eq!((&*both.id, both.omitted), ("e", 4));
    assert_eq!(Told::joined("e", vec![first(), forgetful(5)]), None);
    assert!(Told::joined("e", vec![told(None, &[one("a", 1)], None), forgetful(5)]).is_some());
    assert_eq!(Told::joined("e", vec![Told::default(), Told::default()]), None);
    let nobody = Told { is_live: true, ..Told::default() };
    let nobody = Told::joined("e", vec![Told::default(), nobody]).unwrap();
    assert_eq!((nobody.deliveries.len(), nobody.omitted), (0, 0));
}
