//! Limits are settings, and told when hit.

use serde_json::{Value, json};

use crate::harness::{Http, Serve, Witness, feature, with_problem_shape};

const SMALL: &str = r"
[limits]
body_bytes = 20000
event_bytes = 4096
name_bytes = 32
text_bytes = 128
client_name_bytes = 16
position_bytes = 1024
subscription_bytes = 8192
subscriptions_per_client = 5
filters_per_subscription = 4
condition_bytes = 512
vertices_per_area = 10
attributes_per_event = 20
rejected_listed = 3
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_and_counts_have_bounds() {
    let mut program = Serve::new().config(SMALL).start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let event = |properties: Value| feature("e", [9.0, 45.0], properties).to_string();
    let put = |document: Value| ("PUT", "/v1/clients/car/subscriptions/s".to_owned(), document.to_string());
    let post = |body: String| ("POST", "/v1/events".to_owned(), body);
    let ring = (0..20)
        .map(|idx| [f64::from(idx), f64::from(idx * idx) / 100.0])
        .chain([[0.0, 0.0]])
        .collect::<Vec<_>>();
    let many = (0..21).map(|idx| (format!("a{idx}"), json!(idx))).collect::<serde_json::Map<_, _>>();
    let rows = [
        ("a large body", post("x".repeat(30_000))),
        ("a large event", post(event(json!({"list": vec!["x".repeat(100); 60]})))),
        ("a long text", post(event(json!({"text": "x".repeat(200)})))),
        ("a long name", post(event(json!({"x".repeat(40): 1})))),
        ("many attributes", post(event(Value::Object(many)))),
        ("a large subscription", put(json!({"filters": [{"where": "x".repeat(10_000)}]}))),
        ("many filters", put(json!({"filters": [{}, {}, {}, {}, {}]}))),
        ("a long condition", put(json!({"filters": [{"where": format!("a = '{}'", "x".repeat(600))}]}))),
        (
            "many vertices",
            put(json!({"filters": [{"area": {"polygon": {"type": "Polygon", "coordinates": [ring]}}}]})),
        ),
        (
            "a long id",
            (
                "PUT",
                format!("/v1/clients/car/subscriptions/{}", "x".repeat(40)),
                json!({"filters": [{}]}).to_string(),
            ),
        ),
        (
            "a long client",
            (
                "PUT",
                format!("/v1/clients/{}/position", "x".repeat(20)),
                json!({"coordinates": [9, 45]}).to_string(),
            ),
        ),
    ];
    for (name, (method, path, body)) in rows {
        let answer = http.send(method, &path, Some("application/json"), body).await;
        assert!(
            [400, 409, 413, 422, 429].contains(&answer.status),
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        let status = answer.status;
        let problem = answer.problem(status);
        assert!(problem.to_string().contains("limits."), "{name}: does not name its setting: {problem}");
        witness.probe_elsewhere(name).await;
        program.assert_healthy();
    }
    program.finish().await;
}

/// The same problem, whichever way a document comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_are_too_large_are_told_alike() {
    let program = Serve::new().config(SMALL).start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    let filters = json!([{"where": "x".repeat(10_000)}]);
    let told = http.put("/v1/clients/car/subscriptions/s", &json!({"filters": filters})).await.problem(413);
    assert_eq!((&told["setting"], &told["limit"]), (&json!("limits.subscription_bytes"), &json!(8192)));
    let frame = json!({"op": "subscribe", "id": "s", "filters": filters});
    assert_eq!(client.problem(frame).await, told);
    http.get("/v1/clients/car/subscriptions/s").await.expect(404);

    let place = json!({"client": "car", "coordinates": [9, 45], "note": "x".repeat(2_000)});
    let told = http.put("/v1/clients/car/position", &place).await.problem(413);
    assert_eq!((&told["setting"], &told["limit"]), (&json!("limits.position_bytes"), &json!(1024)));
    for (content_type, body) in
        [("application/json", format!("[{place}]")), ("application/x-ndjson", place.to_string())]
    {
        let answer = http.post("/v1/positions", content_type, body).await.expect(202).json();
        assert_eq!(answer, json!({"moved": 0, "rejected": [{"index": 0, "problem": told}]}));
    }
    let frame = json!({"op": "move", "coordinates": [9, 45], "note": "x".repeat(2_000)});
    assert_eq!(client.problem(frame).await, told);
    program.finish().await;
}

/// Many new clients at once, of whom some fit: who is told that they do, does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_was_answered_is_in_force_at_the_limit_of_clients() {
    const LIMIT: usize = 4;
    let program = Serve::new().config(&format!("[limits]\nclients = {LIMIT}\n")).start().await;
    let http = program.http();
    for round in 0..20 {
        let mut calls = tokio::task::JoinSet::new();
        for idx in 0..4 * LIMIT {
            let http = http.clone();
            calls.spawn(async move {
                let client = format!("/v1/clients/car-{idx}");
                let answer = http.put(&format!("{client}/position"), &json!({"coordinates": [9, 45]})).await;
                (client, answer)
            });
        }
        let mut inside = Vec::new();
        for (client, answer) in calls.join_all().await {
            if answer.status == 204 {
                inside.push(client);
            } else {
                assert_eq!(answer.problem(409)["setting"], "limits.clients");
            }
        }
        assert_eq!(inside.len(), LIMIT, "round {round}");
        let stats = http.get("/v1/stats").await.expect(200).json();
        assert_eq!(stats["clients"], LIMIT, "round {round}: {stats}");
        for client in inside {
            // Who is known may move on, and who goes makes room.
            http.put(&format!("{client}/position"), &json!({"coordinates": [10, 45]})).await.expect(204);
            http.delete(&client).await.expect(204);
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_so_many_subscriptions() {
    let program = Serve::new().config(SMALL).start().await;
    let http = program.http();
    let everything = json!({"filters": [{}]});
    for idx in 0..5 {
        http.put(&format!("/v1/clients/car/subscriptions/s{idx}"), &everything).await.expect(201);
    }
    let answer = http.put("/v1/clients/car/subscriptions/s5", &everything).await;
    let status = answer.status;
    assert!((400..500).contains(&status), "{status}");
    let problem = answer.problem(status);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains('5')), "{problem}");
    let mut client = program.ws("car").await;
    client.problem(json!({"op": "subscribe", "id": "s6", "filters": [{}]})).await;
    // Replacing is no more, others have their own, and one that goes makes room.
    http.put("/v1/clients/car/subscriptions/s0", &everything).await.expect(200);
    http.put("/v1/clients/bus/subscriptions/s0", &everything).await.expect(201);
    http.delete("/v1/clients/car/subscriptions/s0").await.expect(204);
    client.subscribe("s6", everything).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_so_many_constraints() {
    let program = Serve::new().start().await;
    let http = program.http();
    // A few kilobytes, which are 24,576 constraints in normal form.
    let factors: Vec<_> = (0..6).map(|idx| format!("(a{idx} = 1 OR b{idx} = 1)")).collect();
    let large = json!({"filters": vec![json!({"where": factors.join(" AND ")}); 64]});
    for idx in 0..4 {
        http.put(&format!("/v1/clients/car/subscriptions/s{idx}"), &large).await.expect(201);
    }
    let problem = http.put("/v1/clients/car/subscriptions/s4", &large).await.problem(409);
    assert_eq!(
        (&problem["type"], &problem["setting"], &problem["limit"]),
        (
            &json!("urn:nearcast:problem:limit-reached"),
            &json!("limits.constraints_per_client"),
            &json!(100_000)
        )
    );
    let mut client = program.ws("car").await;
    let told = client.problem(json!({"op": "subscribe", "id": "s4", "filters": large["filters"]})).await;
    assert_eq!(told, problem);
    http.put("/v1/clients/car/subscriptions/s3", &large).await.expect(200);
    client.subscribe("s4", json!({"filters": [{"where": "a = 1"}]})).await;
    http.put("/v1/clients/bus/subscriptions/s0", &large).await.expect(201);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_list_of_rejections_is_cut() {
    let program = Serve::new().config(SMALL).start().await;
    let body = "{}\n".repeat(10);
    let answer = program.http().post("/v1/events", "application/x-ndjson", body).await.expect(202).json();
    assert_eq!(answer["accepted"], 0, "{answer}");
    assert_eq!(answer["rejected"].as_array().map(Vec::len), Some(3), "{answer}");
    assert!(answer.to_string().contains('7'), "it says how many more: {answer}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_ends_midway_tells_what_became_of_its_first_elements() {
    let config = "[limits]\nevents_per_second = 10\nrejected_listed = 2\nposition_bytes = 512\n";
    let program = Serve::new().config(config).start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    let is_bad = |idx: u64| [0, 2, 3].contains(&idx);
    let line =
        |idx| if is_bad(idx) { json!({}) } else { feature(&format!("e{idx}"), [9.0, 45.0], json!({})) };
    let lines: String = (0..500).map(|idx| format!("{}\n", line(idx))).collect();
    let problem = http.post("/v1/events", "application/x-ndjson", lines).await.problem(429);
    let indices = |problem: &Value| -> Vec<u64> {
        let rejected = problem["rejected"].as_array().expect("an array");
        rejected.iter().map(|one| one["index"].as_u64().expect("a number")).collect()
    };
    assert_eq!((indices(&problem), &problem["rejected_unlisted"]), (vec![0, 2], &json!(1)), "{problem}");
    with_problem_shape("an element", problem["rejected"][0]["problem"].clone());
    let through = 3 + problem["accepted"].as_u64().expect("a number");
    assert!((7..500).contains(&through), "{problem}");
    for idx in (0..through).filter(|&idx| !is_bad(idx)) {
        assert_eq!(client.event().await["event"]["id"], format!("e{idx}"));
    }
    client.assert_quiet().await;

    // Also where nothing was done. A document that is not read as a whole before is as long as this.
    for (elements, moved) in [(r#"{"client":"a","coordinates":[9,45]},{}"#, 1), ("17,{}", 0)] {
        let body = format!("[{elements},{}not JSON]", " ".repeat(2_000));
        let problem = http.post("/v1/positions", "application/json", body).await.problem(400);
        assert_eq!((&problem["moved"], indices(&problem).len()), (&json!(moved), 2 - moved), "{problem}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishing_too_fast_is_told() {
    let program = Serve::new().config("[limits]\nevents_per_second = 5\n").start().await;
    let mut client = program.ws("car").await;
    let mut refused = 0;
    for idx in 0..60 {
        let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
        let answer = client.request(json!({"op": "publish", "event": event})).await;
        if answer["op"] == "problem" {
            let problem = with_problem_shape("publish", answer["problem"].clone());
            assert_eq!(problem["status"], 429, "{problem}");
            refused += 1;
        }
    }
    assert!(refused > 0, "60 events at once were not too fast");
    client.assert_quiet().await;
    let answers = publish_in_a_row(&program.http(), 60).await;
    assert!(answers.contains(&202) && answers.contains(&429), "{answers:?}");
    program.finish().await;
}

async fn publish_in_a_row(http: &Http, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for idx in 0..count {
        let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
        let answer = http.post("/v1/events", "application/geo+json", event.to_string()).await;
        statuses.push(answer.status);
        if answer.status == 429 {
            assert!(answer.headers.contains_key("retry-after"), "{:?}", answer.headers);
            answer.problem(429);
        }
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_connections_than_allowed_are_turned_away() {
    let program = Serve::new().config("[limits]\nconnections = 10\n").start().await;
    let mut held = Vec::new();
    for idx in 0..9 {
        held.push(program.ws(&format!("car-{idx}")).await);
    }
    // The harness keeps a connection of its own or none: two more are certainly too many.
    let mut turned_away = false;
    let mut raws = Vec::new();
    for _ in 0..3 {
        let mut raw = crate::harness::Raw::connect(program.address()).await;
        raw.send(b"GET /v1/stats HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let head = raw.head().await;
        turned_away |= head.starts_with("HTTP/1.1 503") || head.is_empty();
        raws.push(raw);
    }
    assert!(turned_away, "13 connections where 10 are allowed");
    drop(raws);
    drop(held);
    let http = program.http();
    let mut raw = crate::harness::eventually("there is room again", async || {
        let mut raw = crate::harness::Raw::connect(program.address()).await;
        raw.send(b"GET /v1/stats HTTP/1.1\r\nhost: x\r\n\r\n").await;
        raw.head().await.starts_with("HTTP/1.1 200").then_some(raw)
    })
    .await;
    raw.shut().await;
    crate::harness::eventually("there is room for another", async || {
        let answer = http.attempt("GET", "/readyz", None, String::new()).await?;
        (answer.status == 200).then_some(())
    })
    .await;
    program.finish().await;
}
