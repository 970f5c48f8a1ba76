//! Sessions against a started broker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use nearcast_client::documents::{NamedPosition, Position};
use nearcast_client::{
    Batch, Connection, Error, Feature, Filter, Fix, Follow, Message, Messages, Subscription, Transition,
    around, attr, circle, documents, event, everywhere, iter,
};
use serde_json::{Value, json};

use crate::{
    broker::{Broker, token},
    until, within,
};

async fn next(messages: &mut Messages) -> nearcast_client::Event {
    let message = within("a message", messages.next()).await.expect("a message").expect("a message");
    message.event().expect("an event")
}

fn numbered(n: u32) -> Feature {
    event([9.19, 45.46], json!({"n": n}))
}

#[tokio::test]
async fn an_area_follows_its_client_and_a_condition_decides() {
    let broker = Broker::start().await;
    let (ann, mut messages) = broker.connect("ann").await.expect("connected");
    ann.move_to([9.1895, 45.4642]).expect("open");
    let severe = attr("type").eq("accident").and(attr("severity").ge(2));
    ann.subscribe("accidents", around(500.0).when(severe)).await.expect("subscribed");
    let accident = |place, severity| event(place, json!({"type": "accident", "severity": severity}));
    ann.publish(&accident([9.25, 45.46], 3)).await.expect("published"); // 5 km away
    ann.publish(&accident([9.1901, 45.465], 1)).await.expect("published");
    let id = ann.publish(&accident([9.1901, 45.465], 3)).await.expect("published");
    let got = next(&mut messages).await;
    assert_eq!((&got.feature.id, &got.subscriptions[..]), (&Some(id), &["accidents".to_owned()][..]));
    assert_eq!(got.feature.coordinates, [9.1901, 45.465].into());
    assert!(got.feature.time.is_some());

    ann.move_confirmed(Fix::at([9.25, 45.46]).accuracy_m(5.0)).await.expect("moved");
    ann.publish(&accident([9.25, 45.46], 4)).await.expect("published");
    assert_eq!(next(&mut messages).await.feature.properties["severity"], 4);
    ann.unsubscribe("accidents").await.expect("unsubscribed");
    assert_eq!(ann.unsubscribe("accidents").await.expect_err("gone").code(), Some("not-found"));
    let shown = format!("{ann:?} {messages:?}");
    assert!(shown.contains("ann") && !shown.contains("45."), "positions are private: {shown}");
    ann.close().await;
    assert!(matches!(ann.publish(&numbered(1)).await, Err(Error::Closed { .. })));
    assert!(matches!(ann.connection(), Connection::Closed { error: None }));
    assert!(within("the end", messages.next()).await.is_none());
}

#[tokio::test]
async fn objects_that_come_and_go_are_told() {
    let broker = Broker::start().await;
    let (stop, mut messages) = broker.connect("stop").await.expect("connected");
    stop.move_confirmed([9.1985, 45.4642]).await.expect("moved");
    let buses = Subscription::from(around(300.0).when(attr("type").eq("bus"))).enters().exits();
    stop.subscribe("buses", buses.hysteresis_m(20.0).dwell(Duration::ZERO)).await.expect("subscribed");
    for lon in [9.19, 9.198, 9.199, 9.207] {
        let bus = event([lon, 45.4642], json!({"type": "bus"})).key("bus-7").ttl(Duration::from_secs(600));
        stop.publish(&bus).await.expect("published");
    }
    let (enter, exit) = (next(&mut messages).await, next(&mut messages).await);
    assert_eq!((enter.transition, enter.feature.coordinates.lon), (Some(Transition::Enter), 9.198));
    assert_eq!((exit.transition, exit.feature.coordinates.lon), (Some(Transition::Exit), 9.199));
}

#[tokio::test]
async fn what_was_live_along_a_track_comes() {
    let broker = Broker::start().await;
    let (car, mut messages) = broker.connect("car").await.expect("connected");
    car.subscribe("near", around(100.0)).await.expect("subscribed");
    let id = car.publish(&numbered(1).ttl_s(600.0)).await.expect("published");
    car.track(vec![[9.18, 45.46, 1.0], [9.20, 45.46, 2.0]], Some(5.0)).await.expect("in force");
    assert_eq!(next(&mut messages).await.feature.id, Some(id.clone()));
    let deliveries = car.deliveries(&id).await.expect("an answer");
    assert_eq!(deliveries.deliveries[0].cause, documents::Cause::Moved);
    car.revoke(&id).await.expect("revoked");
    assert_eq!(car.revoke(&id).await.expect_err("gone").code(), Some("not-found"));
}

#[tokio::test]
async fn of_many_events_those_that_are_refused_are_told_by_their_place_in_the_input() {
    let broker = Broker::start().await;
    let (session, mut messages) = broker.connect("ann").await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    let events = (0..1000).map(|n| if n % 300 == 299 { numbered(n).reach_m(-1.0) } else { numbered(n) });
    let report = session.publish_many(iter(events), Batch::default().size(70)).await.expect("sent");
    assert_eq!(report.accepted, 997);
    assert_eq!(report.rejected.iter().map(|rejected| rejected.index).collect::<Vec<_>>(), [299, 599, 899]);
    assert_eq!(report.rejected[0].problem.errors[0].pointer, "/reach_m");
    for n in (0..1000).filter(|n| n % 300 != 299) {
        assert_eq!(next(&mut messages).await.feature.properties["n"], n);
    }
    let position =
        |lon| Position { coordinates: vec![lon, 45.0], track: Vec::new(), accuracy_m: None, time: None };
    let positions = ["a", "b"].map(|client| NamedPosition { client: client.into(), position: position(9.0) });
    let bad = NamedPosition { client: "c".into(), position: position(900.0) };
    let positions = positions.into_iter().chain([bad]);
    let report = session.move_many(iter(positions), Batch::default()).await.expect("sent");
    assert_eq!((report.accepted, report.rejected[0].index), (2, 2));
}

#[tokio::test]
async fn a_batch_that_the_broker_ends_is_gone_on_with_behind_what_it_has_decided() {
    let broker = Broker::configured("[limits]\nevents_per_second = 100\n").await;
    let (session, mut messages) = broker.connect("ann").await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    let events = (0..250).map(|n| if n % 7 == 1 { numbered(n).reach_m(-1.0) } else { numbered(n) });
    let report = session.publish_many(iter(events), Batch::default().size(80)).await.expect("sent");
    assert_eq!((report.accepted, report.rejected_unlisted), (214, 0));
    let rejected = report.rejected.iter().map(|rejected| rejected.index);
    assert_eq!(rejected.collect::<Vec<_>>(), (1..250).step_by(7).collect::<Vec<_>>());
    for n in (0..250).filter(|n| n % 7 != 1) {
        assert_eq!(next(&mut messages).await.feature.properties["n"], n);
    }
    session.publish(&numbered(250)).await.expect("published");
    assert_eq!(next(&mut messages).await.feature.properties["n"], 250, "none comes twice");
}

#[tokio::test]
async fn a_source_is_read_no_faster_than_the_broker_takes_it() {
    let mut broker = Broker::start().await;
    let (session, _) = broker.connect("ann").await.expect("connected");
    broker.kill().await;
    let taken = AtomicU32::new(0);
    let source = stream::iter(0..100_000).map(|n| {
        taken.fetch_add(1, Relaxed);
        numbered(n)
    });
    let batch = Batch::default().size(10).patience(Duration::from_millis(1));
    let error = session.publish_many(source, batch).await.expect_err("nobody is there");
    let Error::Batch { report, index: 0, source } = &error else { panic!("{error:?}") };
    assert!(matches!(**source, Error::Connection { .. }), "{source:?}");
    assert_eq!((report.accepted, taken.into_inner()), (0, 10));
}

#[tokio::test]
async fn who_publishes_within_the_loop_that_takes_messages_does_not_wait_for_himself() {
    let broker = Broker::start().await;
    let (session, mut messages) = broker.connect("ann").inbox(2).await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    let events = (0..20).map(numbered);
    session.publish_many(iter(events), Batch::default()).await.expect("sent");
    for n in 0..20 {
        assert_eq!(next(&mut messages).await.feature.properties["n"], n);
        within("an answer", session.publish(&numbered(100 + n))).await.expect("published");
    }
}

#[tokio::test]
async fn an_application_that_does_not_keep_up_is_told_what_it_missed() {
    let broker = Broker::start().await;
    let (session, mut messages) = broker.connect("ann").inbox(10).await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    // With a position the broker knows the client also while the connection is made anew.
    session.move_confirmed([9.19, 45.46]).await.expect("moved");
    // Nobody takes them, and the publishes that wait have the connection read on, up to 160.
    for n in 0..400 {
        session.publish(&numbered(n)).await.expect("published");
    }
    let (mut events, mut missed) = (0, 0);
    while events + missed < 400 {
        match within("a message", messages.next()).await.expect("a message").expect("a message") {
            Message::Event(_) => events += 1,
            Message::Gap(gap) => missed += gap.count,
            other @ (Message::Unreadable(_) | _) => panic!("{other:?}"),
        }
    }
    assert_eq!((events, missed), (160, 240));
}

#[tokio::test]
async fn who_only_publishes_receives_nothing() {
    let broker = Broker::start().await;
    let (session, _) = broker.connect("ann").inbox(1).await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    for n in 0..100 {
        within("an answer", session.publish(&numbered(n))).await.expect("published");
    }
    session.close().await;
}

#[tokio::test]
async fn a_follower_records_while_there_is_no_connection() {
    let mut broker = Broker::durable().await;
    let (car, mut messages) = broker.connect("car").await.expect("connected");
    car.subscribe("near", Subscription::from(around(100.0)).durable()).await.expect("subscribed");
    car.publish(&numbered(1).ttl_s(600.0)).await.expect("published");
    car.move_confirmed([9.17, 45.46]).await.expect("moved");
    broker.kill().await;
    until("the loss", || !matches!(car.connection(), Connection::Ready { .. })).await;
    // Past the event, while nobody is there who could say so.
    let drive = (0..=100).map(|n| Fix::at([9.18 + f64::from(n) * 2e-4, 45.46]));
    car.follow(iter(drive), Follow::default().min_interval(Duration::ZERO)).await.expect("followed");
    broker.run().await;
    let passed = next(&mut messages).await;
    assert_eq!((passed.cause.as_str(), &passed.feature.properties["n"]), ("moved", &json!(1)));
}

#[tokio::test]
async fn problems_come_as_the_broker_wrote_them() {
    let broker = Broker::start().await;
    let (session, _messages) = broker.connect("ann").await.expect("connected");
    let mut changes = session.connections();
    let bad = Subscription::any([Filter::all(), Filter::all().when("severity >=")]);
    let error = session.subscribe("bad", bad).await.expect_err("refused");
    let problem = error.problem().expect("a problem");
    assert_eq!((problem.code(), problem.status), ("invalid-document", 400));
    assert_eq!(problem.errors[0].pointer, "/filters/1/where");
    let error = session.publish(&event([999.0, 0.0], Value::Null)).await.expect_err("refused");
    assert_eq!(error.problem().expect("a problem").errors[0].pointer, "/event/geometry/coordinates");
    session.move_to([0.0, 999.0]).expect("open");
    let Some(Connection::Refused { error }) = within("a refusal", changes.next()).await else { panic!() };
    assert_eq!(error.code(), Some("invalid-document"));
    assert!(matches!(nearcast_client::connect("ftp://x", "ann").await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn what_the_broker_warns_of_is_told() {
    let broker = Broker::start().await;
    let (session, _messages) = broker.connect("ann").await.expect("connected");
    let mut changes = session.connections();
    session.subscribe("near", around(500.0)).await.expect("subscribed");
    let Some(Connection::Warned { warnings }) = within("a warning", changes.next()).await else { panic!() };
    assert_eq!((warnings.len(), &*warnings[0].pointer), (1, "/filters/0/area"));
    assert!(matches!(session.connection(), Connection::Ready { .. }), "the connection stays");
}

#[tokio::test]
async fn why_is_answered() {
    let broker = Broker::start().await;
    let (session, _messages) = broker.connect("ann").await.expect("connected");
    session.subscribe("near", circle([9.19, 45.46], 100.0).when("n >= 3")).await.expect("subscribed");
    let why = session.explain("near", numbered(2)).await.expect("an answer");
    assert!(!why.matched);
    assert_eq!(why.filters[0].condition.constraints[0].reason, "n is 2, which is not >= 3");
    let id = session.publish(&numbered(2).ttl_s(600.0)).await.expect("published");
    assert!(
        session.explain(around(10.0).when("n = 2"), &id).await.expect("an answer").why.contains("position")
    );
    let document = documents::Subscription::from(Subscription::from(everywhere().nearest(3)));
    session.subscribe("third", Subscription::from(document)).await.expect("subscribed");
    let ids = session
        .subscriptions()
        .await
        .expect("an answer")
        .into_iter()
        .filter_map(|subscription| subscription.id);
    assert_eq!(ids.collect::<Vec<_>>(), ["near", "third"]);
}

#[tokio::test]
async fn tokens_are_wanted_renewed_and_refused() {
    let broker = Broker::with_tokens().await;
    let error = broker.connect("ann").await.expect_err("no token");
    assert_eq!(error.code(), Some("unauthenticated"));
    let error = broker.connect("ann").token(token("bob", "subscribe", 60)).await.expect_err("another's");
    assert_eq!(error.code(), Some("forbidden"));
    let ending = broker.connect("ann").token(token("ann", "subscribe", 8));
    let (_session, mut messages) = ending.await.expect("connected");
    let error = within("the end", messages.next()).await.expect("an error").expect_err("an error");
    assert!(matches!(error, Error::Closed { code: Some(4401), .. }), "{error:?}");
    assert_eq!(error.code(), Some("token-expired"));

    // Tokens of six seconds, renewed when half of that is over: the connection stays for longer than one of them.
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let renewed = broker.connect("ann").token_provider(move || {
        counted.fetch_add(1, Relaxed);
        async { Ok::<_, std::io::Error>(token("ann", "subscribe publish", 6)) }
    });
    let (session, mut messages) = renewed.await.expect("connected");
    let mut changes = session.connections();
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    until("three renewals", || asked.load(Relaxed) == 4).await;
    assert!(changes.next().now_or_never().is_none(), "the connection is the first one");
    session.publish(&numbered(1)).await.expect("published");
    assert_eq!(next(&mut messages).await.feature.properties["n"], 1);
    assert_eq!(session.subscriptions().await.expect("an answer").len(), 1);
}

#[tokio::test]
async fn tls_is_spoken_with_those_who_are_trusted() {
    let (broker, certificate) = Broker::with_tls().await;
    let error =
        broker.connect("ann").connect_timeout(Duration::from_millis(500)).await.expect_err("not trusted");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    let (session, mut messages) =
        broker.connect("ann").root_certificates(certificate).await.expect("connected");
    session.subscribe("all", Filter::all()).await.expect("subscribed");
    session.publish_many(iter([numbered(1)]), Batch::default()).await.expect("sent");
    assert_eq!(next(&mut messages).await.feature.properties["n"], 1);
    session.close().await;
}
