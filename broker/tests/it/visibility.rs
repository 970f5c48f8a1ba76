//! What was answered is in force: the next publish sees it, whoever sends it and however.

use serde_json::{Value, json};

use crate::harness::{Form, Http, Program, Serve, Sse, Ws, encode, feature, soak};

/// The ways to move a client.
const MOVES: [Move; 4] = [Move::Frame, Move::Put, Move::Array, Move::Lines];

/// The ways to publish; `None` is a frame over a WebSocket.
const PUBLISHES: [Option<Form>; 5] =
    [None, Some(Form::Feature), Some(Form::Collection), Some(Form::Lines), Some(Form::Sequence)];

/// How a client tells where it is.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// `{"op":"move"}` over its WebSocket.
    Frame,
    /// `PUT /v1/clients/{client}/position`.
    Put,
    /// `POST /v1/positions` with an array.
    Array,
    /// `POST /v1/positions` with lines.
    Lines,
}

/// One mover, which listens on both kinds of connection and sends on a third.
struct Mover {
    name: String,
    /// Sends moves; listens, too, but only the end of the test reads it.
    commands: Ws,
    /// Listens over WebSocket.
    ws: Ws,
    /// Listens over SSE.
    sse: Sse,
}

/// The publisher has connections of its own.
struct Publisher {
    http: Http,
    ws: Ws,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_move_is_seen_by_the_next_publish() {
    // Each of the 20 combinations, over each of two readers, in turns.
    let turns_count = if soak() { 1_000 } else { 50 };
    let program = Serve::new().args(&["--shards", "4"]).start().await;
    let mut publisher = Publisher { http: program.http(), ws: program.ws("publisher").await };
    let mut movers = Vec::new();
    for idx in 0..5 {
        movers.push(Mover::connect(&program, &format!("mover-{idx}")).await);
    }
    let mut place_idx = 0_u32;
    for turn in 0..turns_count {
        for way in MOVES {
            for form in PUBLISHES {
                let mover = &mut movers[(turn + place_idx as usize) % 5];
                let (old, new) = (place(2 * place_idx), place(2 * place_idx + 1));
                mover.go(&publisher.http, way, old).await;
                mover.go(&publisher.http, way, new).await;
                // Were the move not seen, the first would come, and the second would not.
                publisher.publish(form, &feature(&format!("old-{place_idx}"), old, json!({}))).await;
                let id = format!("new-{place_idx}");
                publisher.publish(form, &feature(&id, new, json!({}))).await;
                let frame = mover.ws.event().await;
                assert_eq!(frame["event"]["id"], id, "{way:?}, {form:?}, WebSocket: {frame}");
                let frame = mover.sse.next().await.frame();
                assert_eq!(frame["event"]["id"], id, "{way:?}, {form:?}, SSE: {frame}");
                place_idx += 1;
            }
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_one_socket_take_effect_in_order() {
    let program = Serve::new().args(&["--shards", "4"]).start().await;
    let mut client = program.ws("car").await;
    client.subscribe("near", json!({"filters": [{"area": {"radius_m": 100}}]})).await;
    // Nothing is awaited: a hundred times a move, an event there, and an event where it was before.
    for idx in 1..=100 {
        client.send(&json!({"op": "move", "coordinates": place(idx)})).await;
        client
            .send(&json!({"op": "publish", "event": feature(&format!("new-{idx}"), place(idx), json!({}))}))
            .await;
        client
            .send(
                &json!({"op": "publish", "event": feature(&format!("old-{idx}"), place(idx - 1), json!({}))}),
            )
            .await;
    }
    for idx in 1..=100 {
        let mut frame = client.next().await;
        // Answers to publishes without `ref` say nothing that this test asks for.
        while frame["op"] == "ok" {
            frame = client.next().await;
        }
        assert_eq!(frame["op"], "event", "{frame}");
        assert_eq!(frame["event"]["id"], format!("new-{idx}"), "{frame}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_change_of_a_subscription_is_seen_by_the_next_publish() {
    let program = Serve::new().args(&["--shards", "4"]).start().await;
    let mut publisher = Publisher { http: program.http(), ws: program.ws("publisher").await };
    let mut client = program.ws("car").await;
    let http = program.http();
    client.subscribe("fence", json!({"filters": [{"where": "kind = 'fence'"}]})).await;
    for turn in 0..100 {
        let form = PUBLISHES[turn % PUBLISHES.len()];
        let path = "/v1/clients/car/subscriptions/s";
        let wants = |kind: &str| json!({"filters": [{"where": format!("kind = '{kind}'")}]});
        let (over_socket, over_http) = (turn % 2 == 0, turn % 3 == 0);
        if over_socket {
            client.subscribe("s", wants("a")).await;
        } else {
            http.put(path, &wants("a")).await.expect(201);
        }
        publisher.publish(form, &feature("first", [0.0, 0.0], json!({"kind": "a"}))).await;
        if over_http {
            http.put(path, &wants("b")).await.expect(200);
        } else {
            client.subscribe("s", wants("b")).await;
        }
        publisher.publish(form, &feature("not this", [0.0, 0.0], json!({"kind": "a"}))).await;
        publisher.publish(form, &feature("second", [0.0, 0.0], json!({"kind": "b"}))).await;
        if over_socket {
            client.ok(json!({"op": "unsubscribe", "id": "s"})).await;
        } else {
            http.delete(path).await.expect(204);
        }
        publisher.publish(form, &feature("nor this", [0.0, 0.0], json!({"kind": "b"}))).await;
        publisher.publish(form, &feature("fence", [0.0, 0.0], json!({"kind": "fence"}))).await;
        for id in ["first", "second", "fence"] {
            let frame = client.event().await;
            assert_eq!(frame["event"]["id"], id, "turn {turn}, {form:?}: {frame}");
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_made_over_a_socket_end_with_it() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let everything = json!({"filters": [{}]});
    http.put("/v1/clients/car/subscriptions/stays", &everything).await.expect(201);
    let mut first = program.ws("car").await;
    first.subscribe("goes", everything).await;
    let listed = http.get("/v1/clients/car/subscriptions").await.expect(200).text();
    assert!(listed.contains("stays") && listed.contains("goes"), "{listed}");
    drop(first);
    crate::harness::eventually("the subscription is gone", async || {
        let answer = http.get("/v1/clients/car/subscriptions/goes").await;
        (answer.status == 404).then_some(())
    })
    .await;
    http.get("/v1/clients/car/subscriptions/stays").await.expect(200);
    program.finish().await;
}

/// Places on a spiral, each 1 km or so from the one before.
fn place(idx: u32) -> [f64; 2] {
    [f64::from(idx % 3_000) * 0.01 - 100.0, f64::from(idx % 7_000) * 0.01 - 35.0]
}

impl Mover {
    async fn connect(program: &Program, name: &str) -> Self {
        let mut commands = program.ws(name).await;
        commands.place([0.0, 80.0]).await;
        let path = format!("/v1/clients/{name}/subscriptions/near");
        program.http().put(&path, &json!({"filters": [{"area": {"radius_m": 100}}]})).await.expect(201);
        let (ws, sse) = (program.ws(name).await, program.sse(name).await);
        Self { name: name.to_owned(), commands, ws, sse }
    }

    async fn go(&mut self, http: &Http, way: Move, place: [f64; 2]) {
        let named = json!({"client": self.name, "coordinates": place});
        let moved = json!({"moved": 1, "rejected": []});
        match way {
            Move::Frame => self.commands.place(place).await,
            Move::Put => {
                let path = format!("/v1/clients/{}/position", self.name);
                http.put(&path, &json!({"coordinates": place})).await.expect(204);
            }
            Move::Array => {
                let answer = http.post("/v1/positions", "application/json", json!([named]).to_string()).await;
                assert_eq!(answer.expect(202).json(), moved);
            }
            Move::Lines => {
                let answer = http.post("/v1/positions", "application/x-ndjson", format!("{named}\n")).await;
                assert_eq!(answer.expect(202).json(), moved);
            }
        }
    }
}

impl Publisher {
    async fn publish(&mut self, form: Option<Form>, event: &Value) {
        match form {
            None => self.ws.publish(event).await,
            Some(form) => {
                let (content_type, body) = encode(form, std::slice::from_ref(event));
                let answer = self.http.post("/v1/events", content_type, body).await.expect(202).json();
                assert_eq!(answer, json!({"accepted": 1, "rejected": []}), "{form:?}");
            }
        }
    }
}
