//! Checks, put in force with a started broker.

use nearcast_client::documents::{Check, OnViolation};
use nearcast_client::{Broker, Event, Feature, Filter, Messages, attr, event, everywhere};
use serde_json::{Value, json};

use crate::{broker, within};

/// No taxi is faster than 55 m/s.
fn jump(on_violation: &str) -> Value {
    json!({"preset": "speed", "object": "taxi", "max_m_per_s": 55, "clock": "event", "on_violation": on_violation})
}

/// A report of the taxi, ten seconds after the one before it.
fn report(n: u32, longitude: f64) -> Feature {
    event([longitude, 22.5], json!({"taxi": "t1"}))
        .id(format!("r{n}"))
        .time(format!("2026-03-01T08:00:{n}0Z"))
}

/// A verdict is waited for on any machine.
async fn started() -> broker::Broker {
    broker::Broker::configured("[checks]\nhold_ms = 60000\n").await
}

async fn next(messages: &mut Messages) -> Event {
    let message = within("an event", messages.next()).await.expect("a message").expect("a message");
    message.event().expect("an event")
}

#[tokio::test]
async fn a_violation_says_what_it_was_made_of() {
    let started = started().await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let (session, mut messages) = started.connect("ann").await.expect("connected");
    session.subscribe("jumps", Filter::all().when(attr("check").eq("jump/1"))).await.expect("subscribed");
    broker.put_check("jump/1", &jump("tell")).await.expect("it is put");
    for report in [report(0, 114.0), report(1, 114.3)] {
        assert_eq!(report.derived(), None);
        broker.publish(&report).await.expect("published");
    }
    let told = next(&mut messages).await;
    assert_eq!(told.violates, [""; 0]);
    let derived = told.feature.derived().expect("it is the broker's own");
    assert_eq!((&*derived.by, derived.depth), ("checks/jump/1", 1));
    assert_eq!(derived.from, ["r0", "r1"]);

    broker.pause_check("jump/1").await.expect("paused");
    let paused = broker.check("jump/1").await.expect("it is there").activity.expect("figures");
    assert!(paused.paused, "{paused:?}");
    broker.resume_check("jump/1").await.expect("resumed");
    let resumed = broker.check("jump/1").await.expect("it is there").activity.expect("figures");
    assert!(!resumed.paused, "{resumed:?}");
    broker.delete_check("jump/1").await.expect("deleted");
    assert_eq!(broker.pause_check("jump/1").await.expect_err("gone").code(), Some("not-found"));
    assert_eq!(broker.resume_check("jump/1").await.expect_err("gone").code(), Some("not-found"));
    session.close().await;
}

#[tokio::test]
async fn an_event_that_breaks_a_check_is_marked_or_refused() {
    let started = started().await;
    let (session, mut messages) = started.connect("ann").await.expect("connected");
    session.subscribe("all", everywhere()).await.expect("subscribed");
    let broker = session.broker();
    let check: Check = broker.put_check("jump", &jump("mark")).await.expect("it is put");
    assert_eq!(check.on_violation, Some(OnViolation::Mark));
    for (n, longitude) in [(0, 114.0), (1, 114.3)] {
        session.publish(&report(n, longitude)).await.expect("published");
    }
    assert_eq!(next(&mut messages).await.violates, [""; 0]);
    assert_eq!(next(&mut messages).await.violates, ["jump"]);
    let activity = broker.check("jump").await.expect("it is there").activity.expect("figures");
    assert_eq!((activity.marked, activity.passed), (1, 0));

    broker.put_check("jump", &jump("drop")).await.expect("it is put");
    session.publish(&report(2, 114.0)).await.expect("published");
    let over_http = broker.publish(&report(3, 114.3)).await.expect_err("it does not fit");
    let over_the_session = session.publish(&report(4, 114.6)).await.expect_err("it does not fit");
    for (error, id) in [(over_http, "r3"), (over_the_session, "r4")] {
        let problem = error.problem().expect("a problem");
        assert_eq!((problem.code(), problem.status, problem.check()), ("inconsistent", 422, Some("jump")));
        let links = serde_json::to_value(problem.links()).expect("JSON");
        assert_eq!(links, json!([{"a": "r2", "b": id}]));
    }
    let findings = broker.check_findings("jump").await.expect("they are listed");
    let found: Vec<_> = findings.iter().map(|finding| &finding.properties["event"]).collect();
    assert_eq!(found, ["r4", "r3"]);
    session.close().await;
}
