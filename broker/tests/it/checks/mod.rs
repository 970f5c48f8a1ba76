//! Checks: events held against one another, by a broker and in a dry run.

mod hour;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Form, Http, Program, Serve, encode, eventually, feature, run_to_end};

/// No taxi is faster than 55 m/s between any two reports of 48 s, by the reports' own clock.
fn jump() -> Value {
    let pair = json!({"implies": ["a.taxi = b.taxi AND ELAPSED(a, b) > 0", "SPEED(a, b) <= 55"]});
    let formula =
        json!({"forall": "a", "in": "recent", "that": {"forall": "b", "in": "recent", "that": pair}});
    json!({"contexts": {"recent": {"where": "status <> 0", "for_s": 48}}, "formula": formula, "clock": "event"})
}

/// A report of the taxi at a second of a minute, so many degrees east.
fn report(id: &str, second: u32, east: f64) -> Value {
    let mut event = feature(id, [114.0 + east, 22.5], json!({"taxi": "t1", "status": 1}));
    event["time"] = json!(format!("2026-01-01T00:00:{second:02}Z"));
    event
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

/// Ids that violations bind, the oldest first, once there are as many.
async fn told(http: &Http, count: usize) -> Vec<[String; 2]> {
    let findings = eventually("the violations", async || {
        let findings = http.get("/v1/checks/jump/findings").await.expect(200).json();
        let findings = findings.as_array().expect("an array").clone();
        (findings.len() >= count).then_some(findings)
    })
    .await;
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let pair = |event: &Value| {
        let bindings = &event["properties"]["bindings"];
        [text(&bindings["a"]), text(&bindings["b"])]
    };
    findings.iter().rev().map(pair).collect()
}

fn pairs(of: &[[&str; 2]]) -> Vec<[String; 2]> {
    of.iter().map(|pair| pair.map(str::to_owned)).collect()
}

async fn start(folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    Serve::new().args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")]).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_is_told_once_also_after_a_kill() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    let http = program.http();
    let violations = json!({"filters": [{"where": "type = 'violation'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/v", &violations).await.expect(201);
    let made = http.put("/v1/checks/jump", &jump()).await.expect(201).json();
    assert_eq!(made["on_violation"], "tell");
    assert_eq!(made["contexts"]["recent"], json!({"where": "status <> 0", "for_s": 48.0}));
    for event in [report("e1", 0, 0.0), report("e2", 10, 0.001), report("e3", 20, 0.1), report("e4", 30, 0.1)]
    {
        publish(&http, &event).await;
    }
    let first = pairs(&[["e1", "e3"], ["e2", "e3"], ["e1", "e4"], ["e2", "e4"]]);
    assert_eq!(told(&http, 4).await, first);
    let activity = http.get("/v1/checks/jump").await.expect(200).json()["activity"].clone();
    assert_eq!((&activity["inputs"], &activity["published"]), (&json!(4), &json!(4)), "{activity}");
    assert_eq!(activity["engine"], "incremental");

    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;
    let program = start(&folder).await;
    let http = program.http();
    // The sets are as they were, and nothing is told again.
    publish(&http, &report("e5", 40, 0.3)).await;
    let second = pairs(&[["e1", "e5"], ["e2", "e5"], ["e3", "e5"], ["e4", "e5"]]);
    assert_eq!(told(&http, 4).await, second);
    let mut watch = program.ws("watch").await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        let event = watch.event().await["event"].clone();
        assert_eq!(event["derived"]["by"], "checks/jump");
        assert_eq!(event["derived"]["depth"], 1);
        let bindings = &event["properties"]["bindings"];
        seen.push(["a", "b"].map(|name| bindings[name].as_str().expect("an id").to_owned()));
    }
    assert_eq!(seen, [first, second].concat());

    http.delete("/v1/checks/jump").await.expect(204);
    http.get("/v1/checks/jump").await.problem(404);
    assert_eq!(http.get("/v1/checks").await.expect(200).json(), json!([]));
}

/// An hour of events, of which each eighth is an anchor: all reports of ten seconds have one, and a violation without bindings lasts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_again_is_no_violation_where_the_sets_begin_in_the_middle() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    let http = program.http();
    let violations = json!({"filters": [{"where": "type = 'violation'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/v", &violations).await.expect(201);
    let context = |condition: &str| json!({"for_s": 10, "where": condition});
    let anchored = json!({
        "contexts": {"reports": context("kind = 'report'"), "anchors": context("kind = 'anchor'")},
        "formula": {"forall": "r", "in": "reports", "that": {"exists": "a", "in": "anchors", "that": "a.x = r.x"}},
        "clock": "event",
    });
    let lasting = json!({
        "contexts": {"all": context("kind IS NOT NULL")},
        "formula": {"exists": "v", "in": "all", "that": "v.x = 5"},
        "clock": "event",
    });
    http.put("/v1/checks/anchored", &anchored).await.expect(201);
    http.put("/v1/checks/lasting", &lasting).await.expect(201);
    let event = |number: u32, x: u32| {
        let kind = if number.is_multiple_of(8) { "anchor" } else { "report" };
        let mut event = feature(&format!("e{number}"), [1.0, 1.0], json!({"kind": kind, "x": x}));
        event["time"] =
            json!(format!("2026-01-01T{:02}:{:02}:{:02}Z", number / 3_600, number / 60 % 60, number % 60));
        event
    };
    for round in 0..2 {
        let events: Vec<_> = (0..3_000).map(|idx| event(3_000 * round + idx, 1)).collect();
        let (kind, body) = encode(Form::Lines, &events);
        program.http().post("/v1/events", kind, body).await.expect(202);
        eventually("all is taken in", async || {
            let checks = program.http().get("/v1/checks").await.expect(200).json();
            let taken = |check: &Value| check["activity"]["inputs"].as_u64() >= Some(3_000);
            checks.as_array().expect("an array").iter().all(taken).then_some(())
        })
        .await;
        program.assert_healthy();
        program.signal("KILL");
        program.exit_status().await;
        program = start(&folder).await;
    }
    publish(&program.http(), &event(6_001, 2)).await;
    let mut watch = program.ws("watch").await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let event = watch.event().await["event"].clone();
        seen.push((event["properties"]["check"].clone(), event["properties"]["bindings"]["r"].clone()));
    }
    assert_eq!(seen, [(json!("lasting"), Value::Null), (json!("anchored"), json!("e6001"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_takes_what_a_function_of_the_event_says() {
    let program = Serve::new().start().await;
    let http = program.http();
    let near = json!({"for_s": 10, "where": "DISTANCE(event, POINT(114 22.5)) < 1000 AND taxi = 't1'"});
    let check =
        json!({"contexts": {"near": near}, "formula": {"forall": "e", "in": "near", "that": "1 = 2"}});
    let made = http.put("/v1/checks/jump", &check).await.expect(201).json();
    publish(&http, &report("far", 0, 1.0)).await;
    publish(&http, &report("near", 1, 0.0)).await;
    eventually("the violation", async || {
        let findings = http.get("/v1/checks/jump/findings").await.expect(200).json();
        findings.as_array().expect("an array").first().cloned()
    })
    .await;
    let findings = http.get("/v1/checks/jump/findings").await.expect(200).json();
    assert_eq!(findings[0]["properties"]["bindings"], json!({"e": "near"}), "{made}");
    assert_eq!(findings[1], Value::Null);
    let of_client = json!({"for_s": 10, "where": "DISTANCE(event, me) < 1000"});
    let of_client = json!({"contexts": {"near": of_client}, "formula": "1 = 1"});
    let problem = http.put("/v1/checks/jump", &of_client).await.problem(400);
    assert_eq!(problem["errors"][0]["pointer"], "/contexts/near/where");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_is_replaced_begins_empty_and_one_that_is_paused_waits() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump()).await.expect(201);
    publish(&http, &report("e1", 0, 0.0)).await;
    http.put("/v1/checks/jump", &jump()).await.expect(200);
    publish(&http, &report("e2", 10, 0.1)).await;
    publish(&http, &report("e3", 20, 0.2)).await;
    assert_eq!(told(&http, 1).await, pairs(&[["e2", "e3"]]));

    // The figures of the one before have gone with it.
    let figures = http.get("/metrics").await.expect(200).text();
    for (name, value) in
        [("inputs", 2), ("evaluations", 2), ("published", 1), ("dropped", 0), ("restarts", 0)]
    {
        let line = format!("nearcast_situation_{name}_total{{kind=\"checks\",name=\"jump\"}} {value}\n");
        assert!(figures.contains(&line), "{line} is not in\n{figures}");
    }

    http.post("/v1/checks/jump/pause", "application/json", "").await.expect(204);
    publish(&http, &report("e4", 30, 0.2)).await;
    let paused = http.get("/v1/checks/jump").await.expect(200).json()["activity"]["paused"].clone();
    assert_eq!(paused, true);
    http.post("/v1/checks/jump/resume", "application/json", "").await.expect(204);
    assert_eq!(told(&http, 2).await, pairs(&[["e2", "e3"], ["e2", "e4"]]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_and_its_end_outlive_the_broker() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    let again = async |mut program: Program| {
        program.assert_healthy();
        program.signal("KILL");
        program.exit_status().await;
        start(&folder).await
    };
    let is_paused = async |http: &Http| {
        http.get("/v1/checks/jump").await.expect(200).json()["activity"]["paused"].clone()
    };
    let http = program.http();
    http.put("/v1/checks/jump", &jump()).await.expect(201);
    publish(&http, &report("e1", 0, 0.0)).await;
    publish(&http, &report("e2", 10, 0.1)).await;
    assert_eq!(told(&http, 1).await, pairs(&[["e1", "e2"]]));
    http.post("/v1/checks/jump/pause", "application/json", "").await.expect(204);
    program = again(program).await;
    let http = program.http();
    assert_eq!(is_paused(&http).await, true);
    publish(&http, &report("e3", 20, 0.1)).await;
    let activity = http.get("/v1/checks/jump").await.expect(200).json()["activity"].clone();
    assert_eq!((&activity["inputs"], &activity["published"]), (&json!(0), &json!(0)), "{activity}");
    // It goes on with what waited, and what was told before the pause is not told again.
    http.post("/v1/checks/jump/resume", "application/json", "").await.expect(204);
    assert_eq!(told(&http, 1).await, pairs(&[["e1", "e3"]]));
    program = again(program).await;
    let http = program.http();
    assert_eq!(is_paused(&http).await, false);
    publish(&http, &report("e4", 30, 0.3)).await;
    assert_eq!(told(&http, 3).await, pairs(&[["e1", "e4"], ["e2", "e4"], ["e3", "e4"]]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_refused_leaves_the_one_before_in_force() {
    let program = Serve::new().config("[limits]\nfilters_per_subscription = 1\n").start().await;
    let http = program.http();
    http.put("/v1/checks/jump", &jump()).await.expect(201);
    publish(&http, &report("e1", 0, 0.0)).await;
    let mut wide = jump();
    wide["contexts"]["other"] = json!({"for_s": 1});
    http.put("/v1/checks/jump", &wide).await.problem(400);
    publish(&http, &report("e2", 10, 0.1)).await;
    assert_eq!(told(&http, 1).await, pairs(&[["e1", "e2"]]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_of_findings_end_at_a_depth() {
    let program = Serve::new().config("[limits]\nderived_depth = 3\n").start().await;
    let http = program.http();
    // Whatever comes is wrong, its own findings included.
    let never = json!({"contexts": {"all": {"for_s": 3600}}, "formula": {"forall": "a", "in": "all", "that": "FALSE"}});
    http.put("/v1/checks/never", &never).await.expect(201);
    publish(&http, &feature("e1", [9.0, 45.0], json!({}))).await;
    let findings = eventually("it ends", async || {
        let check = http.get("/v1/checks/never").await.expect(200).json();
        let is_over = check["activity"]["dropped"] == 1;
        is_over.then_some(())?;
        Some(http.get("/v1/checks/never/findings").await.expect(200).json())
    })
    .await;
    let depths: Vec<_> =
        findings.as_array().expect("an array").iter().map(|one| one["derived"]["depth"].clone()).collect();
    assert_eq!(depths, [3, 2, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_with_its_place() {
    let program = Serve::new().start().await;
    let http = program.http();
    let refused = async |document: Value| {
        let problem = http.put("/v1/checks/c", &document).await.problem(400);
        let faults = problem["errors"].as_array().expect("faults").clone();
        faults
            .into_iter()
            .map(|fault| fault["pointer"].as_str().expect("a pointer").to_owned())
            .collect::<Vec<_>>()
    };
    let with = |member: &str, value: Value| {
        let mut document = jump();
        document[member] = value;
        document
    };
    assert_eq!(refused(json!({})).await, ["/contexts", "/formula"]);
    assert_eq!(refused(with("clok", json!(1))).await, ["/clok"]);
    assert_eq!(refused(with("on_violation", json!("hush"))).await, ["/on_violation"]);
    assert_eq!(
        refused(with("contexts", json!({"recent": {"were": "a = 1"}}))).await,
        ["/contexts/recent/for_s", "/contexts/recent/were"]
    );
    assert_eq!(
        refused(with("contexts", json!({"recent": {"for_s": 1, "area": {"radius_m": 5}}}))).await,
        ["/contexts/recent/area"]
    );
    let other = json!({"forall": "a", "in": "other", "that": "a.x = 1"});
    assert_eq!(refused(with("formula", other)).await, ["/formula/in"]);
    let twice =
        json!({"forall": "a", "in": "recent", "that": {"exists": "a", "in": "recent", "that": "a.x = 1"}});
    assert_eq!(refused(with("formula", twice)).await, ["/formula/that/exists"]);
    let unbound = json!({"forall": "a", "in": "recent", "that": {"and": ["a.x = 1", "b.x = 1"]}});
    assert_eq!(refused(with("formula", unbound)).await, ["/formula/that/and/1"]);
    assert_eq!(refused(json!({"preset": "fast"})).await, ["/preset"]);
    assert_eq!(refused(json!({"preset": "speed", "object": 7})).await, ["/object", "/max_m_per_s"]);
    assert_eq!(refused(json!({"preset": "speed", "object": "", "max_m_per_s": 5})).await, ["/object"]);
    assert_eq!(refused(json!({"preset": "frozen", "object": "taxi", "for_s": 5e6})).await, ["/for_s"]);
    let outside = |polygon: Value| json!({"preset": "outside", "polygon": polygon});
    let ring = json!([[[9, 45, 7], [10, 45, 7], [10, 46, 7], [9, 45, 7]]]);
    assert_eq!(refused(outside(json!({"type": "Point", "coordinates": ring}))).await, ["/polygon/type"]);
    let open = json!({"type": "Polygon", "coordinates": [[[9, 45], [10, 45], [10, 46]]]});
    assert_eq!(refused(outside(open)).await, ["/polygon/coordinates"]);
    http.put("/v1/checks/high", &outside(json!({"type": "Polygon", "coordinates": ring}))).await.expect(201);

    // A member that is known, in a place where it means nothing.
    let two = json!({"and": ["1 = 1"], "or": ["1 = 1"]});
    let problem = http.put("/v1/checks/c", &with("formula", two)).await.problem(400);
    let expected = json!([{"pointer": "/formula/or", "detail": "does not go with the other members"}]);
    assert_eq!(problem["errors"], expected);
    let twice = r#"{"contexts": {"r": {"for_s": 1}}, "formula": {"not": "1 = 1", "not": "1 = 2"}}"#;
    let problem = http.send("PUT", "/v1/checks/c", Some("application/json"), twice).await.problem(400);
    let expected = json!([{"pointer": "/formula/not", "detail": "this member is given twice"}]);
    assert_eq!(problem["errors"], expected);

    // Names and members that are the broker's own.
    http.put("/v1/clients/~checks%2Fjump/position", &json!({"coordinates": [9, 45]})).await.problem(400);
    let mut event = feature("e1", [9.0, 45.0], json!({}));
    event["derived"] = json!({"by": "checks/jump"});
    http.post("/v1/events", "application/geo+json", event.to_string()).await.problem(400);
    for preset in [
        json!({"preset": "speed", "object": "taxi", "max_m_per_s": 55}),
        json!({"preset": "accuracy", "property": "accuracy_m", "max_m": 50}),
        json!({"preset": "frozen", "object": "taxi", "for_s": 600}),
        json!({"preset": "duplicate", "object": "taxi", "within_m": 5, "for_s": 10}),
        json!({"preset": "outside", "polygon": {"type": "Polygon", "coordinates": [[[9, 45], [10, 45], [10, 46], [9, 45]]]}}),
    ] {
        let made = http.put("/v1/checks/preset", &preset).await.json();
        assert!(made["formula"].is_object(), "{preset}: {made}");
        // What is shown can be sent back.
        http.put("/v1/checks/preset", &made).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_would_cost_too_much_is_refused_with_the_estimate() {
    /// A number of variables over all events, which nothing joins.
    fn nested(count: usize) -> Value {
        let variables: Vec<_> = (0..count).map(|index| format!("v{index}")).collect();
        let leaves: Vec<_> =
            variables.windows(2).map(|pair| format!("{}.x < {}.x + 1", pair[0], pair[1])).collect();
        let innermost = json!({"or": leaves});
        let formula = variables
            .iter()
            .rev()
            .fold(innermost, |that, variable| json!({"forall": variable, "in": "all", "that": that}));
        json!({"contexts": {"all": {"for_s": 60}}, "formula": formula})
    }
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/checks/two", &nested(2)).await.expect(201);
    // The engine is known before the first input.
    eventually("the engine", async || {
        let engine = http.get("/v1/checks/two").await.expect(200).json()["activity"]["engine"].clone();
        (engine == "incremental").then_some(())
    })
    .await;
    let problem = http.put("/v1/checks/four", &nested(4)).await.problem(400);
    let faults = problem["errors"].as_array().expect("faults");
    assert_eq!(faults.len(), 1, "{problem}");
    assert_eq!(faults[0]["pointer"], "/formula");
    let detail = faults[0]["detail"].as_str().expect("a text");
    let settings = ["100000000 (situations.comparisons_max)", "200 events a second"];
    assert!(settings.iter().all(|part| detail.contains(part)), "{detail}");
    http.get("/v1/checks/four").await.problem(404);
    // The same check over sets that hold events for a moment, and over those of a slow stream.
    let mut brief = nested(4);
    brief["contexts"]["all"]["for_s"] = json!(0.2);
    http.put("/v1/checks/brief", &brief).await.expect(201);
    let program = Serve::new().config("[situations]\ncomparisons_events_per_s = 1\n").start().await;
    program.http().put("/v1/checks/four", &nested(4)).await.expect(201);
}

#[test]
fn a_dry_run_says_what_a_check_would_have_told() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let events = [report("e1", 0, 0.0), report("e2", 10, 0.001), report("e3", 20, 0.1)];
    let lines: Vec<_> = events.iter().map(Value::to_string).collect();
    std::fs::write(path("events.ndjson"), lines.join("\n")).expect("written");
    std::fs::write(path("checks.json"), json!({"jump": jump()}).to_string()).expect("written");
    for engine in ["sequential", "concurrent", "incremental"] {
        let arguments = [
            "checks",
            "replay",
            "events.ndjson",
            "--checks",
            "checks.json",
            "--engine",
            engine,
            "--links",
            "links",
        ];
        let output = run_to_end(&arguments, &[], folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let jump = &report["jump"];
        let figures = ["violations", "events_in_violation", "evaluations"].map(|name| jump[name].clone());
        assert_eq!(figures, [2, 3, 3], "{engine}");
        let links = std::fs::read_to_string(path("links")).expect("links");
        let expected =
            [["e1", "e3"], ["e2", "e3"]].map(|[a, b]| json!({"check": "jump", "bindings": {"a": a, "b": b}}));
        let links: Vec<Value> = links.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(links, expected, "{engine}");
    }
    std::fs::write(path("checks.json"), json!({"jump": {"preset": "fast"}}).to_string()).expect("written");
    let output =
        run_to_end(&["checks", "replay", "events.ndjson", "--checks", "checks.json"], &[], folder.path());
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("check jump: /preset: "));
}

#[test]
fn a_dry_run_says_which_line_is_wrong_and_why() {
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let run = |events: &[u8], checks: &str| {
        std::fs::write(path("events"), events).expect("written");
        std::fs::write(path("checks"), checks).expect("written");
        let output = run_to_end(&["checks", "replay", "events", "--checks", "checks"], &[], folder.path());
        (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let jump = json!({"jump": jump()}).to_string();
    let first = report("e1", 0, 0.0).to_string();
    let events = |second: &[u8]| [first.as_bytes(), b"\n\n", second, b"\n"].concat();
    for (line, expected) in [
        (&b"{\"type\": Feature}"[..], "events line 3: expected value at column 10"),
        (b"[]", "events line 3: must be an object, not an array"),
        (b"\xff", "cannot read events line 3: "),
    ] {
        let (is_done, told) = run(&events(line), &jump);
        assert!(!is_done && told.contains(expected), "{told}");
    }
    let mut untimed = report("e2", 10, 0.0);
    untimed.as_object_mut().expect("an object").remove("time");
    let (is_done, told) = run(&events(untimed.to_string().as_bytes()), &jump);
    assert!(is_done && told.contains("1 of them, the first on line 3"), "{told}");
    for (checks, expected) in [
        (r#"{"a": {}, "a": {}}"#, "/a: this member is given twice"),
        ("{\n,}", "line 2 column 1"),
        ("[]", "must be an object, not an array"),
        (r#"{"a": 1}"#, "check a: must be an object, not a number"),
    ] {
        let (is_done, told) = run(first.as_bytes(), checks);
        assert!(!is_done && told.contains(expected), "{told}");
    }
}
