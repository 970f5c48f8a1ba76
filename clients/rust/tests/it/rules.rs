//! Rule sets: the calls as they go over the wire, and rules put in force with a started broker.

use std::collections::BTreeMap;

use nearcast_client::documents::{Clock, FactRule, Publication, RuleSet};
use nearcast_client::{Broker, Error, Filter, attr, event};
use serde_json::{Value, json};

use crate::{broker, scripted::Server, within};

/// Of two reports within 100 m one stays, which is published once there is a second.
fn merging() -> RuleSet {
    let report = FactRule {
        condition: Some(json!("type = 'accident'")),
        args: ["@id", "@lon", "@lat"].map(str::to_owned).to_vec(),
        for_s: Some(300.0),
        ..FactRule::default()
    };
    let accident = Publication {
        at: Some([1, 2]),
        properties: Some(
            [("type".to_owned(), json!("accidents")), ("first".to_owned(), json!("{0}"))].into(),
        ),
        ..Publication::default()
    };
    RuleSet {
        facts: BTreeMap::from([("report".to_owned(), report)]),
        program: "report(A, X, Y) \\ report(_, U, V) <=> distance(X, Y, U, V) < 100 | accident(A, X, Y)."
            .to_owned(),
        clock: Some(Clock::Event),
        publish: BTreeMap::from([("accident".to_owned(), accident)]),
        ..RuleSet::default()
    }
}

/// What a broker is asked by a call, and its body; it answers with this, which the call returns.
async fn asked<T>(
    server: &Server,
    answer: &Value,
    call: impl Future<Output = Result<T, Error>>,
) -> (String, String, T) {
    let serving = async {
        let mut request = server.request().await;
        let line = request.line().to_owned();
        let body = if line.starts_with("PUT") { request.body().await } else { String::new() };
        request.answer(200, &json!({"content-type": "application/json"}), &answer.to_string()).await;
        (line, body)
    };
    let ((line, body), done) = within("an answer", async { tokio::join!(serving, call) }).await;
    (line, body, done.expect("it is read"))
}

#[tokio::test]
async fn the_calls_for_rule_sets_are_those_of_the_protocol() {
    let server = Server::start().await;
    let broker = Broker::builder(server.url()).open().expect("a URL");
    let activity = json!({
        "inputs": 3, "evaluations": 2, "published": 1, "queued": 0, "mean_us": 9.5, "p99_us": 20.0, "engine": "cpu", "dropped": 0,
        "restarts": 0, "paused": false, "constraints": 1
    });
    let mut shown = serde_json::to_value(merging()).expect("JSON");
    shown["activity"] = activity;

    let (line, body, put) = asked(&server, &shown, broker.put_rule_set("merge/1", &merging())).await;
    assert_eq!(line, "PUT /v1/rules/merge%2F1");
    let sent: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        sent["facts"]["report"],
        json!({"where": "type = 'accident'", "args": ["@id", "@lon", "@lat"], "for_s": 300.0})
    );
    assert_eq!(put.activity.as_ref().and_then(|activity| activity.constraints), Some(1));

    let (line, _, read) = asked(&server, &shown, broker.rule_set("merge/1")).await;
    assert_eq!((&*line, read), ("GET /v1/rules/merge%2F1", put));
    let (line, _, all) = asked(&server, &json!([shown]), broker.rule_sets()).await;
    assert_eq!((&*line, all.len()), ("GET /v1/rules", 1));
    let found = json!([{
        "type": "Feature", "id": "f-0", "geometry": {"type": "Point", "coordinates": [9.19, 45.464]},
        "properties": {"type": "accidents"}, "derived": {"by": "rules/merge/1", "depth": 1}
    }]);
    let (line, _, found) = asked(&server, &found, broker.rule_set_findings("merge/1")).await;
    assert_eq!(line, "GET /v1/rules/merge%2F1/findings");
    let derived = found[0].derived().expect("it is the broker's own");
    assert_eq!((&*derived.by, derived.from, derived.depth), ("rules/merge/1", Vec::new(), 1));

    let (line, _, ()) = asked(&server, &Value::Null, broker.pause_rule_set("merge/1")).await;
    assert_eq!(line, "POST /v1/rules/merge%2F1/pause");
    let (line, _, ()) = asked(&server, &Value::Null, broker.resume_rule_set("merge/1")).await;
    assert_eq!(line, "POST /v1/rules/merge%2F1/resume");
    let (line, _, ()) = asked(&server, &Value::Null, broker.delete_rule_set("merge/1")).await;
    assert_eq!(line, "DELETE /v1/rules/merge%2F1");
}

#[tokio::test]
async fn reports_of_one_accident_are_merged() {
    let started = broker::Broker::start().await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let (session, mut messages) = started.connect("ann").await.expect("connected");
    session
        .subscribe("accidents", Filter::all().when(attr("type").eq("accidents")))
        .await
        .expect("subscribed");
    let put = broker.put_rule_set("merge/1", &merging()).await.expect("it is put");
    assert_eq!(put.program, merging().program);
    for (id, lat) in [("r0", 45.464), ("r1", 45.4641), ("r2", 45.6)] {
        broker.publish(&event([9.19, lat], json!({"type": "accident"})).id(id)).await.expect("published");
    }
    let message = within("the accident", messages.next()).await.expect("a message").expect("a message");
    let told = message.event().expect("an event");
    assert_eq!(told.feature.properties["first"], "r0");
    let derived = told.feature.derived().expect("it is the broker's own");
    assert_eq!((&*derived.by, derived.depth), ("rules/merge/1", 1));

    broker.pause_rule_set("merge/1").await.expect("paused");
    let paused = broker.rule_set("merge/1").await.expect("it is there").activity.expect("figures");
    assert!(paused.paused, "{paused:?}");
    broker.resume_rule_set("merge/1").await.expect("resumed");
    assert_eq!(broker.rule_sets().await.expect("they are listed").len(), 1);
    let broken = RuleSet { program: "report(".to_owned(), ..merging() };
    let refused = broker.put_rule_set("merge/1", &broken).await.expect_err("it is no program");
    assert_eq!(refused.problem().expect("a problem").errors[0].pointer, "/program");
    broker.delete_rule_set("merge/1").await.expect("deleted");
    assert_eq!(broker.rule_set_findings("merge/1").await.expect_err("gone").code(), Some("not-found"));
    session.close().await;
}
