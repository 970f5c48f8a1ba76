//! Checks that mark or drop: events are held until the verdict is known.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Answer, Http, Program, Serve, Ws, eventually, feature};

/// Long enough for any machine, so that a verdict is always waited for.
const PATIENT: &str = "[checks]\nhold_ms = 60000\n";

/// No taxi is faster than 55 m/s between any two reports of 48 s, by the reports' own clock.
fn jump(on_violation: &str) -> Value {
    let pair = json!({"implies": ["a.taxi = b.taxi AND ELAPSED(a, b) > 0", "SPEED(a, b) <= 55"]});
    let formula =
        json!({"forall": "a", "in": "recent", "that": {"forall": "b", "in": "recent", "that": pair}});
    json!({"contexts": {"recent": {"where": "status <> 0", "for_s": 48}}, "formula": formula, "clock": "event",
        "on_violation": on_violation})
}

/// No report is from east of this longitude.
fn west_of(east: f64, on_violation: &str) -> Value {
    let formula = json!({"forall": "a", "in": "all", "that": format!("LON(a) <= {east}")});
    json!({"contexts": {"all": {"for_s": 0}}, "formula": formula, "on_violation": on_violation})
}

/// A report of the taxi at a second of a minute, this many degrees further east.
fn report(id: &str, second: u32, east: f64) -> Value {
    let mut event = feature(id, [114.0 + east, 22.5], json!({"taxi": "t1", "status": 1}));
    event["time"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
    event
}

async fn post(http: &Http, event: &Value) -> Answer {
    http.post("/v1/events", "application/geo+json", event.to_string()).await
}

async fn publish(http: &Http, event: &Value) {
    post(http, event).await.expect(202);
}

async fn activity(http: &Http, check: &str) -> Value {
    http.get(&format!("/v1/checks/{check}")).await.expect(200).json()["activity"].clone()
}

async fn everything(program: &Program, client: &str) -> Ws {
    let mut ws = program.ws(client).await;
    ws.subscribe("all", json!({"filters": [{}]})).await;
    ws
}

/// The id of the next event, and the checks that mark it.
async fn next(ws: &mut Ws) -> (String, Value) {
    let frame = ws.event().await;
    (frame["event"]["id"].as_str().expect("an id").to_owned(), frame["violates"].clone())
}

fn one(id: &str, violates: Value) -> (String, Value) {
    (id.to_owned(), violates)
}

async fn durable(folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    let args = ["--shards", "2", "--data", data.to_str().expect("UTF-8")];
    Serve::new().config(PATIENT).args(&args).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_event_reaches_nobody_and_breaks_nothing_later() {
    let folder = TempDir::new().expect("a folder");
    let mut program = durable(&folder).await;
    let http = program.http();
    let kept = json!({"filters": [{}], "durable": true});
    http.put("/v1/clients/late/subscriptions/all", &kept).await.expect(201);
    let made = http.put("/v1/checks/jump", &jump("drop")).await.expect(201).json();
    assert_eq!(made["on_violation"], "drop");
    publish(&http, &report("e1", 0, 0.0)).await;
    publish(&http, &report("e2", 10, 0.001)).await;
    let mut far = report("e3", 20, 0.1);
    (far["ttl_s"], far["key"]) = (json!(600), json!("t1"));
    let problem = post(&http, &far).await.problem(422);
    assert_eq!(problem["type"], "urn:nearcast:problem:inconsistent");
    assert_eq!(problem["check"], "jump");
    assert_eq!(problem["links"], json!([{"a": "e1", "b": "e3"}, {"a": "e2", "b": "e3"}]));
    let live = http.get("/v1/events?bbox=-180,-90,180,90").await.expect(200).json();
    assert_eq!(live["features"], json!([]));
    http.get("/v1/events/e3/deliveries").await.problem(404);
    publish(&http, &report("e4", 30, 0.002)).await;
    let figures = activity(&http, "jump").await;
    let shown = ["marked", "dropped", "passed", "published"].map(|name| figures[name].clone());
    assert_eq!(shown, [0, 1, 0, 0].map(Value::from));
    let findings = http.get("/v1/checks/jump/findings").await.expect(200).json();
    let told = |finding: &Value| {
        let properties = &finding["properties"];
        ["outcome", "event", "check"].map(|name| properties[name].as_str().expect("a text").to_owned())
    };
    let findings: Vec<_> = findings.as_array().expect("an array").iter().map(told).collect();
    assert_eq!(findings, [["dropped", "e3", "jump"], ["dropped", "e3", "jump"]]);

    // The sets are as they were also after a kill, without what was dropped.
    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;
    let program = durable(&folder).await;
    let http = program.http();
    let problem = post(&http, &report("e5", 40, 0.3)).await.problem(422);
    let links = json!([{"a": "e1", "b": "e5"}, {"a": "e2", "b": "e5"}, {"a": "e4", "b": "e5"}]);
    assert_eq!(problem["links"], links);
    publish(&http, &report("e6", 41, 0.002)).await;
    let mut late = program.ws("late").await;
    for id in ["e1", "e2", "e4", "e6"] {
        assert_eq!(next(&mut late).await, one(id, Value::Null));
    }
    late.assert_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_is_beside_the_event_also_after_a_kill() {
    let folder = TempDir::new().expect("a folder");
    let mut program = durable(&folder).await;
    let http = program.http();
    http.put("/v1/clients/late/subscriptions/all", &json!({"filters": [{}], "durable": true}))
        .await
        .expect(201);
    http.put("/v1/checks/jump", &jump("mark")).await.expect(201);
    http.put("/v1/checks/a %22%7B%22 b", &west_of(114.05, "mark")).await.expect(201);
    let mut now = everything(&program, "now").await;
    for event in [report("e1", 0, 0.0), report("e2", 10, 0.1), report("e3", 20, 0.1)] {
        publish(&http, &event).await;
    }
    let both = json!(["a \"{\" b", "jump"]);
    // The third is as far from the first as the second is.
    let expected = [one("e1", Value::Null), one("e2", both.clone()), one("e3", both)];
    for expected in &expected {
        assert_eq!(next(&mut now).await, *expected);
    }
    let figures = activity(&http, "jump").await;
    let shown = ["marked", "dropped", "passed", "published"].map(|name| figures[name].clone());
    assert_eq!(shown, [2, 0, 0, 0].map(Value::from));
    let metrics = http.get("/metrics").await.expect(200).text();
    for (name, value) in [("marked", 2), ("passed", 0)] {
        let line = format!("nearcast_situation_{name}_total{{kind=\"checks\",name=\"jump\"}} {value}\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    // Each is in the sets once, whichever way it came there.
    eventually("all have come", async || (activity(&http, "jump").await["inputs"] == 3).then_some(())).await;
    assert_eq!(activity(&http, "jump").await["evaluations"], 3);

    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;
    let program = durable(&folder).await;
    let mut late = program.ws("late").await;
    for expected in &expected {
        assert_eq!(next(&mut late).await, *expected);
    }
    // Their sets hold what they held.
    publish(&program.http(), &report("e4", 30, 0.3)).await;
    assert_eq!(next(&mut late).await.1, json!(["a \"{\" b", "jump"]));
    let findings = program.http().get("/v1/checks/jump/findings").await.expect(200).json();
    assert_eq!(findings.as_array().expect("an array").len(), 3, "{findings}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn elements_and_frames_are_answered_one_by_one() {
    let program = Serve::new().config(PATIENT).start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump("drop")).await.expect(201);
    let mut all = everything(&program, "all").await;
    let elements =
        [report("e1", 0, 0.0), report("e2", 10, 0.1), report("e3", 20, 0.0), report("e4", 30, 0.1)];
    let batch = json!({"type": "FeatureCollection", "features": elements});
    let answer = post(&http, &batch).await.expect(202).json();
    assert_eq!(answer["accepted"], 2);
    let rejected = |index: usize| {
        let problem = &answer["rejected"][index]["problem"];
        (answer["rejected"][index]["index"].clone(), problem["status"].clone(), problem["links"].clone())
    };
    assert_eq!(rejected(0), (json!(1), json!(422), json!([{"a": "e1", "b": "e2"}])));
    assert_eq!(rejected(1), (json!(3), json!(422), json!([{"a": "e1", "b": "e4"}, {"a": "e3", "b": "e4"}])));
    let lines: Vec<_> = [report("e5", 31, 0.1), report("e6", 32, 0.0)].iter().map(Value::to_string).collect();
    let answer = http.post("/v1/events", "application/x-ndjson", lines.join("\n")).await.expect(202).json();
    assert_eq!((&answer["accepted"], &answer["rejected"][0]["index"]), (&json!(1), &json!(0)));

    let mut publisher = program.ws("taxi").await;
    let problem = publisher.problem(json!({"op": "publish", "event": report("e7", 33, 0.1)})).await;
    assert_eq!(problem["status"], 422, "{problem}");
    assert_eq!(problem["links"].as_array().expect("links").len(), 3, "{problem}");
    publisher.publish(&report("e8", 34, 0.0)).await;
    for id in ["e1", "e3", "e6", "e8"] {
        assert_eq!(next(&mut all).await, one(id, Value::Null));
    }
    all.assert_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_held_long_enough_passes_and_is_counted() {
    let program = Serve::new().config("[checks]\nhold_ms = 0\n").start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump("drop")).await.expect(201);
    let mut all = everything(&program, "all").await;
    for event in [report("e1", 0, 0.0), report("e2", 10, 0.1)] {
        publish(&http, &event).await;
        assert_eq!(next(&mut all).await.1, Value::Null);
    }
    // They are in the sets once, by the session.
    let figures = eventually("both have come", async || {
        let figures = activity(&http, "jump").await;
        (figures["inputs"] == 2).then_some(figures)
    })
    .await;
    assert_eq!((&figures["passed"], &figures["dropped"]), (&json!(2), &json!(0)), "{figures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_is_both_refused_and_delivered_where_verdicts_are_late() {
    const COUNT: usize = 32;
    let program =
        Serve::new().config("[checks]\nhold_ms = 1\n[situations]\ncomparisons_max = 0\n").start().await;
    let http = program.http();
    // Every event is compared with every three others, which soon takes longer than a millisecond.
    let leaf = json!("a.bad = 0 OR b.n <> a.n OR c.n <> a.n OR d.n <> a.n");
    let formula = ["d", "c", "b", "a"]
        .iter()
        .fold(leaf, |that, variable| json!({"forall": variable, "in": "all", "that": that}));
    let slow = json!({"contexts": {"all": {"for_s": 3600}}, "formula": formula, "on_violation": "drop"});
    http.put("/v1/checks/slow", &slow).await.expect(201);
    let mut all = everything(&program, "all").await;
    let event = |n: usize| {
        feature(&n.to_string(), [9.0, 45.0], json!({"n": n, "bad": usize::from(n.is_multiple_of(3))}))
    };
    let lines: Vec<_> = (0..COUNT).map(|n| event(n).to_string()).collect();
    let answer = http.post("/v1/events", "application/x-ndjson", lines.join("\n")).await.expect(202).json();
    let rejected: Vec<_> =
        answer["rejected"].as_array().expect("an array").iter().map(|one| one["index"].clone()).collect();
    assert!(rejected.iter().all(|index| index.as_u64().expect("a number").is_multiple_of(3)), "{answer}");
    for n in (0..COUNT).filter(|n| !rejected.contains(&json!(n))) {
        assert_eq!(next(&mut all).await, one(&n.to_string(), Value::Null));
    }
    all.assert_quiet().await;
    let figures = eventually("all have come", async || {
        let figures = activity(&http, "slow").await;
        (figures["inputs"] == COUNT).then_some(figures)
    })
    .await;
    assert_eq!(figures["dropped"], rejected.len(), "{figures}");
    assert_ne!(figures["passed"], 0, "{figures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_does_not_wait_for_a_check_that_is_late_with_each_of_its_events() {
    let program = Serve::new().config("[situations]\ncomparisons_max = 0\n").start().await;
    let http = program.http();
    // With some dozens of events in the set each evaluation takes seconds.
    let formula = ["d", "c", "b", "a"].iter().fold(
        json!("a.n + b.n + c.n + d.n >= 0"),
        |that, variable| json!({"forall": variable, "in": "all", "that": that}),
    );
    let slow = json!({"contexts": {"all": {"for_s": 3600}}, "formula": formula, "on_violation": "mark"});
    http.put("/v1/checks/slow", &slow).await.expect(201);
    // More events than seconds for which an answer is waited for.
    let lines: Vec<_> =
        (0..300).map(|n| feature(&n.to_string(), [9.0, 45.0], json!({"n": n})).to_string()).collect();
    let answer = http.post("/v1/events", "application/x-ndjson", lines.join("\n")).await.expect(202).json();
    assert_eq!(answer["accepted"], 300);
    let passed = activity(&http, "slow").await["passed"].as_u64().expect("a number");
    assert!(passed > 100, "{passed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_and_what_no_context_takes_are_not_held() {
    let program = Serve::new().config(PATIENT).start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump("drop")).await.expect(201);
    let mut all = everything(&program, "all").await;
    publish(&http, &report("e1", 0, 0.0)).await;
    // An alarm overtakes.
    assert_eq!(next(&mut all).await, one("e1", Value::Null));
    let mut alarm = report("e2", 10, 0.1);
    alarm["priority"] = json!("alarm");
    publish(&http, &alarm).await;
    let mut other = report("e3", 20, 0.5);
    other["properties"]["status"] = json!(0);
    assert_eq!(next(&mut all).await, one("e2", Value::Null));
    publish(&http, &other).await;
    assert_eq!(next(&mut all).await, one("e3", Value::Null));
    // A paused check holds nothing, and one that was deleted neither.
    http.post("/v1/checks/jump/pause", "application/json", "").await.expect(204);
    publish(&http, &report("e4", 21, 0.7)).await;
    assert_eq!(activity(&http, "jump").await["passed"], 1);
    http.delete("/v1/checks/jump").await.expect(204);
    publish(&http, &report("e5", 22, 0.9)).await;
    for id in ["e4", "e5"] {
        assert_eq!(next(&mut all).await, one(id, Value::Null));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_check_drops_is_in_the_sets_of_no_other() {
    let program = Serve::new().config(PATIENT).start().await;
    let http = program.http();
    // The first is asked before the second and takes the event, the third marks.
    http.put("/v1/checks/jump", &jump("drop")).await.expect(201);
    http.put("/v1/checks/west", &west_of(114.5, "drop")).await.expect(201);
    http.put("/v1/checks/also", &west_of(114.5, "mark")).await.expect(201);
    http.put("/v1/checks/near", &west_of(114.0, "mark")).await.expect(201);
    let mut all = everything(&program, "all").await;
    let problem = post(&http, &report("e1", 0, 1.0)).await.problem(422);
    assert_eq!((&problem["check"], &problem["links"]), (&json!("west"), &json!([{"a": "e1"}])));
    // It would be too far from this one.
    publish(&http, &report("e2", 10, 0.1)).await;
    assert_eq!(next(&mut all).await, one("e2", json!(["near"])));
    for (check, dropped) in [("jump", 0), ("west", 1), ("also", 0)] {
        let figures = activity(&http, check).await;
        assert_eq!((&figures["dropped"], &figures["marked"]), (&json!(dropped), &json!(0)), "{check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_which_check_would_hold_an_event_back_and_changes_nothing() {
    let program = Serve::new().config(PATIENT).start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump("drop")).await.expect(201);
    http.put("/v1/checks/west", &west_of(114.05, "mark")).await.expect(201);
    publish(&http, &report("e1", 0, 0.0)).await;
    let ask = async |event: Value| {
        let question = json!({"client": "car", "subscription": {"filters": [{}]}, "event": event});
        http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json()
    };
    for _ in 0..2 {
        let answer = ask(report("e2", 10, 0.1)).await;
        assert_eq!(answer["matched"], false, "{answer}");
        assert_eq!(answer["why"], "held back by check jump: a = e1, b = e2");
        let held = json!([{"check": "jump", "on_violation": "drop", "links": [{"a": "e1", "b": "e2"}]}]);
        assert_eq!(answer["checks"], held);
    }
    // The question has left nothing in the sets, and has moved no clock.
    publish(&http, &report("e3", 5, 0.0)).await;
    assert_eq!(ask(report("e4", 6, 0.0)).await["checks"], Value::Null);
    let mut slow = report("e5", 59, 0.06);
    slow["properties"]["taxi"] = json!("t2");
    let answer = ask(slow).await;
    assert_eq!(
        (&answer["matched"], &answer["checks"][0]["check"]),
        (&json!(true), &json!("west")),
        "{answer}"
    );
    assert_eq!(activity(&http, "jump").await["dropped"], 0);
}
