//! Who pays for events that conditions make costly.

use serde_json::json;

use crate::harness::{Http, Serve, feature};

/// A client may use a hundredth of an engine: what its conditions take of some events is too much.
const CONFIG: &str = "[admission]\nengine_ms_per_second = 10\ndelay_ms = 60000\n[queue]\nwait_ms = 50\n";

/// What clients have cost, in milliseconds.
async fn engine_ms(http: &Http, client: &str) -> u64 {
    let clients = http.get("/v1/clients").await.expect(200).json();
    let clients = clients["clients"].as_array().unwrap();
    let of_it = clients.iter().find(|one| one["client"] == client);
    of_it.and_then(|one| one["engine_ms"].as_u64()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_over_others_passing_events_are_charged_and_finally_suspended() {
    let program = Serve::new().config(CONFIG).args(&["--shards", "1"]).start().await;
    let http = program.http();
    // Who comes first pays for the engine's first memory.
    let first = json!({"filters": [{"where": "kind = 'y'"}]});
    http.put("/v1/clients/first/subscriptions/first", &first).await.expect(201);
    let mut neighbour = program.ws("neighbour").await;
    neighbour.subscribe("cheap", json!({"filters": [{"where": "kind = 'x'"}]})).await;
    // Their pieces are all in the text, one after the other, so that all of it is read, and in vain.
    let filters: Vec<_> =
        (0..64).map(|idx| json!({"where": format!("text LIKE '%_{idx}_and_and%'")})).collect();
    let of_subscribing = engine_ms(&http, "neighbour").await;
    let path = "/v1/clients/costly/subscriptions/heavy";
    http.put(path, &json!({"filters": filters})).await.expect(201);
    let mut costly = program.ws("costly").await;

    let text: String = (0..1_600).map(|idx| format!("{idx} and ")).collect();
    let publish = async |idx: usize| {
        let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({"kind": "x", "text": text}));
        http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    };
    let is_suspended = async || http.get(path).await.expect(200).json()["activity"]["suspended"] == true;
    let mut idx = 0;
    while !is_suspended().await {
        assert!(idx < 10_000, "it goes on");
        publish(idx).await;
        assert_eq!(neighbour.event().await["event"]["id"], format!("e{idx}"));
        idx += 1;
    }
    assert!(engine_ms(&http, "costly").await >= 300);
    assert_eq!(engine_ms(&http, "neighbour").await, of_subscribing);
    let told = costly.next().await;
    assert_eq!(told["problem"]["type"], "urn:nearcast:problem:too-costly", "{told}");
    let refused = http.put(path, &json!({"filters": filters})).await.problem(429);
    assert_eq!(refused["costliest"][0]["subscription"], "heavy", "{refused}");
    // The neighbour gets what it did, and owes nothing.
    publish(idx).await;
    assert_eq!(neighbour.event().await["event"]["id"], format!("e{idx}"));
    http.put("/v1/clients/neighbour/subscriptions/more", &json!({"filters": [{}]})).await.expect(201);
    program.finish().await;
}
