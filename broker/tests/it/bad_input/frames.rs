//! WebSocket frames that cannot be carried out.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::nested_arrays;
use crate::harness::{Program, Received, Serve, Witness, Ws, eventually, with_problem_shape};

/// Texts that are answered by a problem; the session lives on.
fn texts() -> Vec<(&'static str, String, Value)> {
    let row = |name, text: &str| (name, text.to_owned(), Value::Null);
    let with_ref = |name, text: &str| (name, text.to_owned(), json!("r7"));
    vec![
        row("nothing", ""),
        row("an open brace", "{"),
        row("half a literal", "nul"),
        row("an array", "[]"),
        row("a number", "5"),
        row("an object without op", "{}"),
        row("an op that is a number", r#"{"op":5}"#),
        row("10,000 arrays", &nested_arrays(10_000)),
        with_ref(
            "10,000 arrays for an event",
            &format!(r#"{{"op":"publish","ref":"r7","event":{}}}"#, nested_arrays(10_000)),
        ),
        with_ref(
            "10,000 arrays for filters",
            &format!(r#"{{"op":"subscribe","ref":"r7","id":"s","filters":{}}}"#, nested_arrays(10_000)),
        ),
        with_ref("an unknown op", r#"{"op":"dance","ref":"r7"}"#),
        with_ref("an empty subscribe", r#"{"op":"subscribe","ref":"r7"}"#),
        with_ref("a subscribe without id", r#"{"op":"subscribe","ref":"r7","filters":[{}]}"#),
        with_ref(
            "a subscribe with a number for an id",
            r#"{"op":"subscribe","ref":"r7","id":5,"filters":[{}]}"#,
        ),
        with_ref("a subscribe without filters", r#"{"op":"subscribe","ref":"r7","id":"s"}"#),
        with_ref(
            "a subscribe with a bad area",
            r#"{"op":"subscribe","ref":"r7","id":"s","filters":[{"area":{"radius_m":-1}}]}"#,
        ),
        with_ref(
            "a subscribe with a bad condition",
            r#"{"op":"subscribe","ref":"r7","id":"s","filters":[{"where":"a >"}]}"#,
        ),
        with_ref(
            "a subscribe with a misspelt member",
            r#"{"op":"subscribe","ref":"r7","id":"s","filter":[{}],"filters":[{}]}"#,
        ),
        with_ref("an unsubscribe without id", r#"{"op":"unsubscribe","ref":"r7"}"#),
        with_ref("an unsubscribe of nothing", r#"{"op":"unsubscribe","ref":"r7","id":"unknown"}"#),
        with_ref("a move to nowhere", r#"{"op":"move","ref":"r7"}"#),
        with_ref("a move out of range", r#"{"op":"move","ref":"r7","coordinates":[200,45]}"#),
        with_ref("a move to texts", r#"{"op":"move","ref":"r7","coordinates":["9","45"]}"#),
        with_ref("a move to 1e999", r#"{"op":"move","ref":"r7","coordinates":[1e999,45]}"#),
        with_ref(
            "a move that is less than exact",
            r#"{"op":"move","ref":"r7","coordinates":[9,45],"accuracy_m":-1}"#,
        ),
        with_ref("a track without points", r#"{"op":"move","ref":"r7","track":[]}"#),
        with_ref("a track without times", r#"{"op":"move","ref":"r7","track":[[9,45,1],[9,45]]}"#),
        with_ref(
            "a track by either way around the globe",
            r#"{"op":"move","ref":"r7","track":[[9,45,1],[-171,-45,2]]}"#,
        ),
        with_ref("a move of no time", r#"{"op":"move","ref":"r7","coordinates":[9,45],"time":"just now"}"#),
        row("a move to NaN", r#"{"op":"move","coordinates":[NaN,45]}"#),
        with_ref("a publish of nothing", r#"{"op":"publish","ref":"r7"}"#),
        with_ref("a publish of a number", r#"{"op":"publish","ref":"r7","event":5}"#),
        with_ref(
            "a publish without geometry",
            r#"{"op":"publish","ref":"r7","event":{"type":"Feature","properties":{}}}"#,
        ),
        with_ref(
            "a publish of a collection",
            r#"{"op":"publish","ref":"r7","event":{"type":"FeatureCollection","features":[]}}"#,
        ),
        with_ref(
            "a publish of an infinite number",
            r#"{"op":"publish","ref":"r7","event":{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]},"properties":{"a":1e999}}}"#,
        ),
        with_ref(
            "a publish of an event 100 deep",
            &format!(
                r#"{{"op":"publish","ref":"r7","event":{{"type":"Feature","geometry":{{"type":"Point","coordinates":[9,45]}},"properties":{{"a":{}}}}}}}"#,
                nested_arrays(100)
            ),
        ),
        with_ref("a member that comes twice", r#"{"op":"ping","ref":"r7","op":"ping"}"#),
        row("a ref that comes twice", r#"{"op":"ping","ref":"r7","ref":"r8"}"#),
        with_ref("an ack without offset", r#"{"op":"ack","ref":"r7"}"#),
        with_ref("an ack of null", r#"{"op":"ack","ref":"r7","offset":null}"#),
        with_ref("an ack of half a delivery", r#"{"op":"ack","ref":"r7","offset":1.5}"#),
        with_ref("an ack of a text", r#"{"op":"ack","ref":"r7","offset":"all"}"#),
        with_ref("an ack of less than nothing", r#"{"op":"ack","ref":"r7","offset":-1}"#),
        with_ref("an ack of what never came", r#"{"op":"ack","ref":"r7","offset":1000000}"#),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_are_none_are_answered_and_the_session_lives() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let mut client = program.ws("car").await;
    for (name, text, reference) in texts() {
        client.send_text(text).await;
        let answer = client.next().await;
        assert_eq!(answer["op"], "problem", "{name}: {answer}");
        assert_eq!(answer["ref"], reference, "{name}: {answer}");
        with_problem_shape(name, answer["problem"].clone());
        client.assert_quiet().await;
        witness.probe_elsewhere(name).await;
        program.assert_healthy();
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ack_that_is_none_is_told_what_an_ack_says() {
    let program = Serve::new().start().await;
    let mut client = program.ws("car").await;
    for frame in [
        json!({"op": "ack"}),
        json!({"op": "ack", "offset": null}),
        json!({"op": "ack", "offset": -1}),
        json!({"op": "ack", "offset": 1.5}),
        json!({"op": "ack", "offset": "1"}),
    ] {
        let problem = client.problem(frame.clone()).await;
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], "/offset", "{frame}: {problem}");
        let detail = error["detail"].as_str().expect("a text");
        assert!(detail.contains("offset of a delivery, a whole number"), "{frame}: {detail}");
    }
    program.finish().await;
}

/// Sends what no session survives, and tells how it ended.
async fn end_of(program: &mut Program, witness: &mut Witness, name: &str, message: Message) -> (u16, String) {
    let mut client = program.ws("car").await;
    client.try_send_message(message).await;
    let end = client.closed().await;
    witness.probe_elsewhere(name).await;
    program.assert_healthy();
    end
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_end_a_session_say_why() {
    let mut program = Serve::new().config("[limits]\nframe_bytes = 65536\n").start().await;
    let mut witness = Witness::new(&program).await;

    let (code, reason) =
        end_of(&mut program, &mut witness, "a large frame", Message::text("x".repeat(100_000))).await;
    assert_eq!(code, 1009, "{reason:?}");
    assert!(!reason.is_empty());

    let text = Frame::message(b"{\"op\":\"\xff\"}".to_vec(), OpCode::Data(Data::Text), true);
    let (code, reason) = end_of(&mut program, &mut witness, "no UTF-8", Message::Frame(text)).await;
    assert_eq!(code, 1007, "{reason:?}");

    let reserved = Frame::message(vec![1, 2, 3], OpCode::Data(Data::Reserved(5)), true);
    let (code, reason) =
        end_of(&mut program, &mut witness, "a reserved opcode", Message::Frame(reserved)).await;
    assert_eq!(code, 1002, "{reason:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn binary_frames_are_refused() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let mut client = program.ws("car").await;
    client.send_message(Message::binary(vec![0xff; 1_000])).await;
    match client.receive().await {
        // Either is an answer: the session goes on after a problem, or ends with the code for unsupported data.
        Received::Frame(frame) => {
            assert_eq!(frame["op"], "problem", "{frame}");
            client.assert_quiet().await;
        }
        Received::Closed(code, reason) => {
            assert_eq!(code, 1003, "{reason:?}");
            assert!(!reason.is_empty());
        }
    }
    witness.probe_elsewhere("a binary frame").await;
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_nonsense_is_cut_off() {
    let mut program = Serve::new().config("[limits]\nproblems_in_a_row = 20\n").start().await;
    let mut witness = Witness::new(&program).await;
    let mut client = program.ws("car").await;
    // One good frame in between is forgiven.
    for _ in 0..3 {
        for _ in 0..15 {
            client.problem(json!({"op": "dance"})).await;
        }
        client.place([9.0, 45.0]).await;
    }
    for _ in 0..40 {
        if !client.try_send_message(Message::text("nonsense")).await {
            break;
        }
    }
    let (code, reason) = client.closed().await;
    assert_eq!(code, 1008, "{reason:?}");
    assert!(!reason.is_empty());
    witness.probe_elsewhere("nonsense").await;
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_break_off_leave_nothing_behind() {
    let program = Serve::new().start().await;
    let http = program.http();
    for idx in 0..50 {
        let mut client = program.ws("car").await;
        client.subscribe(&format!("s{idx}"), json!({"filters": [{}]})).await;
        // Every other one says farewell.
        if idx % 2 == 0 {
            client.try_send_message(Message::Close(None)).await;
            client.closed().await;
        }
    }
    eventually("no socket and no subscription is left", async || {
        let stats = http.get("/v1/stats").await.expect(200).json();
        (stats["websockets"] == 0 && stats["subscriptions"] == 0).then_some(())
    })
    .await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_in_parts_is_one_frame() {
    let program = Serve::new().start().await;
    let mut client = program.ws("car").await;
    let part = |text: &str, opcode, last| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(opcode), last))
    };
    client.send_message(part("{\"op\":", Data::Text, false)).await;
    // Control frames may stand between the parts.
    client.send_message(Message::Ping(vec![1, 2, 3].into())).await;
    client.send_message(part("\"move\",\"ref\":1,", Data::Continue, false)).await;
    client.send_message(part("\"coordinates\":[9,45]}", Data::Continue, true)).await;
    assert_eq!(client.next().await, json!({"op": "ok", "ref": 1}));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_stays_silent_is_taken_for_dead() {
    let config = "[connection]\nping_interval_ms = 500\nsilence_timeout_ms = 5000\n";
    let program = Serve::new().config(config).start().await;
    let http = program.http();
    let mut living = program.ws("living").await;
    let waits = tokio::spawn(async move {
        let frame = living.event().await;
        assert_eq!(frame["event"]["id"], "late");
        living
    });
    // This one never reads, so it never answers a ping; the other one answers while it waits.
    let dead = program.ws("dead").await;
    let living = json!({"filters": [{}]});
    http.put("/v1/clients/living/subscriptions/s", &living).await.expect(201);
    eventually("the dead one is gone", async || {
        let stats = http.get("/v1/stats").await.expect(200).json();
        (stats["websockets"] == 1).then_some(())
    })
    .await;
    let event = crate::harness::feature("late", [9.0, 45.0], json!({}));
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
    let mut living = waits.await.expect("the living one lives");
    living.assert_quiet().await;
    drop(dead);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ref_comes_back_as_it_was() {
    let program = Serve::new().start().await;
    let mut client: Ws = program.ws("car").await;
    for reference in [json!(0), json!(17), json!("seventeen"), json!("")] {
        client.send(&json!({"op": "move", "ref": reference, "coordinates": [9, 45]})).await;
        let answer = client.next().await;
        assert_eq!(answer, json!({"op": "ok", "ref": reference}));
    }
    // Without a ref a move is not answered.
    client.send(&json!({"op": "move", "coordinates": [9, 45]})).await;
    client.assert_quiet().await;
    program.finish().await;
}
