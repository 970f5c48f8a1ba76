//! Clients as an operator sees them: who is slow, and how to be rid of one.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Form, Http, Program, Serve, encode, eventually, feature};

/// Room for little, and longer patience with writes that are stuck than a test takes to look at them.
const CONFIG: &str =
    "[privacy]\nround_m = 0\n[outbox]\nframes = 300\n[connection]\nwrite_timeout_ms = 10000\n";

fn everything() -> Value {
    json!({"filters": [{}]})
}

fn durable() -> Value {
    json!({"filters": [{}], "durable": true})
}

async fn publish(http: &Http, count: usize, text_bytes: usize) {
    let events: Vec<_> = (0..count)
        .map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"text": "x".repeat(text_bytes)})))
        .collect();
    let (content_type, body) = encode(Form::Lines, &events);
    http.post("/v1/events", content_type, body).await.expect(202);
}

async fn listed(program: &Program, query: &str) -> Value {
    program.http().get(&format!("/v1/clients{query}")).await.expect(200).json()
}

/// What the listing says of a client.
async fn figures(program: &Program, client: &str) -> Value {
    let listed = listed(program, "?limit=1000").await;
    let clients = listed["clients"].as_array().expect("clients");
    clients
        .iter()
        .find(|one| one["client"] == client)
        .unwrap_or_else(|| panic!("no {client}: {listed}"))
        .clone()
}

/// The same when its writer has had its turn: what waits then waits for the client.
async fn settled(program: &Program, client: &str) -> Value {
    tokio::time::sleep(Duration::from_millis(300)).await;
    figures(program, client).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_ones_come_first() {
    let program = Serve::new().args(&["--shards", "2"]).config(CONFIG).start().await;
    let http = program.http();
    http.put("/v1/clients/away/subscriptions/s", &durable()).await.expect(201);
    http.put("/v1/clients/still/position", &json!({"coordinates": [9.18273, 45.46391]})).await.expect(204);
    let mut quick = program.ws("quick").await;
    quick.subscribe("a", everything()).await;
    quick.subscribe("b", everything()).await;
    let mut slow = program.ws("slow").await;
    slow.subscribe("s", everything()).await;
    // Until its socket takes no more and deliveries wait.
    let slowest = eventually("the slow one is behind", async || {
        publish(&http, 50, 16_000).await;
        for _ in 0..50 {
            quick.event().await;
        }
        let figures = settled(&program, "slow").await;
        (figures["behind"].as_u64() > Some(10)).then_some(figures)
    })
    .await;
    assert_eq!((&slowest["connections"], &slowest["subscriptions"]), (&json!(1), &json!(1)), "{slowest}");
    assert_eq!(slowest["durable"], false, "{slowest}");
    assert!(slowest["waiting_bytes"].as_u64() > Some(160_000), "{slowest}");

    let all = listed(&program, "").await;
    let names: Vec<_> =
        all["clients"].as_array().expect("clients").iter().map(|one| &one["client"]).collect();
    // The slow one is behind; of the others something is kept for the first, and the rest come by name.
    assert_eq!(names, ["slow", "away", "quick", "still"], "{all}");
    assert!(all.get("next").is_none(), "{all}");
    let text = all.to_string();
    assert!(!text.contains("18273") && !text.contains("46391"), "a position: {text}");
    let [away, quick_one, still] = [1, 2, 3].map(|idx| &all["clients"][idx]);
    assert!(away["kept_matches"].as_u64() >= Some(50) && away["durable"] == true, "{away}");
    assert!(away.get("silence_ms").is_none() && away["connections"] == 0, "{away}");
    assert!(quick_one["silence_ms"].is_u64() && quick_one["subscriptions"] == 2, "{quick_one}");
    assert_eq!((&still["behind"], &still["subscriptions"]), (&json!(0), &json!(0)), "{still}");
    drop(slow);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_have_every_client_once() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let names: Vec<_> = (0..25).map(|idx| format!("a:{idx} ü&")).collect();
    let moves = names.iter().map(|name| json!({"client": name, "coordinates": [9, 45]}));
    http.post("/v1/positions", "application/json", Value::from_iter(moves).to_string()).await.expect(202);
    for limit in [1, 7, 25, 26] {
        let (mut seen, mut query) = (Vec::new(), format!("?limit={limit}"));
        loop {
            let page = listed(&program, &query).await;
            let clients = page["clients"].as_array().expect("clients");
            assert!(clients.len() <= limit, "{page}");
            seen.extend(clients.iter().map(|one| one["client"].as_str().expect("a name").to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            query = format!("?limit={limit}&after={next}");
        }
        assert_eq!(seen.len(), names.len(), "limit {limit}: {seen:?}");
        assert_eq!(BTreeSet::from_iter(&seen), BTreeSet::from_iter(&names), "limit {limit}");
    }
    for query in ["limit=0", "limit=1001", "limit=x", "after=x", "after=1:2", "limit=1&limit=2"] {
        http.get(&format!("/v1/clients?{query}")).await.problem(400);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_disconnected_and_keeps_what_is_kept() {
    let program = Serve::new().config(CONFIG).start().await;
    let http = program.http();
    http.put("/v1/clients/car/subscriptions/s", &durable()).await.expect(201);
    let (mut ws, mut sse, mut other) =
        (program.ws("car").await, program.sse("car").await, program.ws("bus").await);
    other.subscribe("s", everything()).await;
    publish(&http, 3, 1).await;
    assert_eq!(figures(&program, "car").await["connections"], 2);

    http.delete("/v1/clients/car/connections").await.expect(204);
    assert_eq!(ws.closed().await, (1008, "disconnected by an operator".to_owned()));
    while sse.receive().await.is_some() {}
    let gone = eventually("the connections are gone", async || {
        let figures = figures(&program, "car").await;
        (figures["connections"] == 0).then_some(figures)
    })
    .await;
    assert_eq!((&gone["kept_matches"], &gone["subscriptions"]), (&json!(3), &json!(1)), "{gone}");
    let mut back = program.ws("car").await;
    for offset in 1..=3 {
        assert_eq!(back.event().await["offset"], offset);
        other.event().await;
    }
    other.assert_quiet().await;
    http.delete("/v1/clients/nobody/connections").await.expect(204);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_does_not_read_is_gone_when_its_write_has_been_stuck_for_long_enough() {
    let program = Serve::new().config(CONFIG).start().await;
    let http = program.http();
    let mut stalled = program.ws("car").await;
    stalled.subscribe("s", everything()).await;
    eventually("it is behind", async || {
        publish(&http, 50, 16_000).await;
        (settled(&program, "car").await["behind"].as_u64() > Some(100)).then_some(())
    })
    .await;
    let before = http.get("/v1/stats").await.expect(200).json()["deliveries_dropped"].as_u64();
    http.delete("/v1/clients/car/connections").await.expect(204);
    let after = http.get("/v1/stats").await.expect(200).json()["deliveries_dropped"].as_u64();
    assert!(after > before.map(|before| before + 100), "what waited was lost: {before:?} {after:?}");
    // Nothing is known of it then: its subscription went with it.
    eventually("it is gone", async || {
        listed(&program, "").await["clients"].as_array().expect("clients").is_empty().then_some(())
    })
    .await;
    drop(stalled);
    program.finish().await;
}
