//! The contract's vectors of frames: what a client reads is sent to a session, and what it writes is what comes of its calls.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nearcast_client::{
    Acknowledge, Connection, Event, Feature, Gap, Message, Messages, Session, Trace, connect,
};
use serde_json::{Value, json};

use crate::{
    by_value, resume,
    scripted::{Peer, Server},
    vectors, within,
};

async fn connected(server: &Server) -> (Peer, Session, Messages) {
    let connect = connect(server.url(), "ann").acknowledge(Acknowledge::Manual);
    let connecting = tokio::spawn(connect.into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    (peer, session, messages)
}

#[tokio::test]
async fn frames_of_the_broker_are_read_as_the_contract_says() {
    let server = Server::start().await;
    let (mut peer, session, mut messages) = connected(&server).await;
    let mut changes = session.connections();
    for vector in vectors("frames.json")["server"].as_array().expect("an array") {
        let (name, text, expected) =
            (&vector["name"], vector["text"].as_str().expect("a text"), &vector["expect"]);
        match expected["kind"].as_str().expect("a kind") {
            "ready" => read_ready(text, expected).await,
            "event" | "gap" => {
                peer.send_text(text).await;
                let message =
                    within("a message", messages.next()).await.expect("a message").expect("a message");
                let mut read = resume::members(&message);
                let members = read.as_object_mut().expect("members");
                members.retain(|name, value| !(value.is_null() || name == "ahead" && *value == false));
                let mut expected = expected.clone();
                if let Some(event) = expected["event"].as_object_mut() {
                    // Properties that are absent or `null` are an object to an application.
                    if event.get("properties").is_none_or(Value::is_null) {
                        event.insert("properties".to_owned(), json!({}));
                    }
                }
                if expected["event"].is_null() {
                    expected.as_object_mut().expect("members").remove("event");
                }
                assert_eq!(by_value(&read), by_value(&expected), "{name}");
            }
            "problem" => {
                peer.send_text(text).await;
                let Some(Connection::Refused { error }) = within("a refusal", changes.next()).await else {
                    panic!("{name}: not told");
                };
                let read = serde_json::to_value(error.problem().expect("a problem")).expect("JSON");
                assert_eq!(by_value(&read), by_value(&expected["problem"]), "{name}");
            }
            "retry" => retry(text, expected).await,
            // These say nothing to an application but what the broker warns of; the connection stays, and what comes behind them is read.
            "ok" | "pong" | "unknown" => {
                peer.send_text(text).await;
                if expected["warnings"].is_array() {
                    let Some(Connection::Warned { warnings }) = within("warnings", changes.next()).await
                    else {
                        panic!("{name}: not told");
                    };
                    assert_eq!(serde_json::to_value(warnings).expect("JSON"), expected["warnings"], "{name}");
                }
                peer.send(&json!({"op": "gap", "from": 7, "to": 8, "count": 2, "reason": "age"})).await;
                let message = within("a message", messages.next()).await.expect("a message");
                assert!(matches!(message, Ok(Message::Gap(Gap { from: 7, .. }))), "{name}: {message:?}");
            }
            other => panic!("a kind that the contract does not have: {other}"),
        }
    }
}

/// The broker says when to come back, and that is when the client does, whatever its own waits are.
async fn retry(text: &str, expected: &Value) {
    let server = Server::start().await;
    let (mut peer, session, _messages) = connected(&server).await;
    let mut changes = session.connections();
    peer.send_text(text).await;
    peer.close(1001, "the broker is stopping").await;
    let Some(Connection::Lost { retry_in, .. }) = within("the loss", changes.next()).await else {
        panic!("not lost")
    };
    assert_eq!(json!({"kind": "retry", "retry_ms": retry_in.subsec_millis()}), *expected);
    server.request().await.accept().await.ready("e1", 0).await;
}

async fn read_ready(text: &str, expected: &Value) {
    let server = Server::start().await;
    let connecting =
        tokio::spawn(connect(server.url(), expected["client"].as_str().expect("a client")).into_future());
    let mut peer = server.request().await.accept().await;
    peer.send_text(text).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let Connection::Ready { epoch, offset, resumed: false } = session.connection() else {
        panic!("not ready")
    };
    assert_eq!(
        json!({"kind": "ready", "client": session.client(), "epoch": epoch, "offset": offset}),
        *expected
    );
}

#[tokio::test]
async fn frames_of_a_client_are_written_as_the_contract_says() {
    let server = Server::start().await;
    let (mut peer, session, _messages) = connected(&server).await;
    for vector in vectors("frames.json")["client"].as_array().expect("an array") {
        let (name, call) = (&vector["name"], vector["call"].clone());
        let verb = call["verb"].as_str().expect("a verb");
        let frame = match verb {
            "ping" => pinged().await,
            "auth" => renewed(call["token"].as_str().expect("a token").to_owned()).await,
            // A session always wants to know whether a track was taken.
            "track" if call["ref"].is_null() => continue,
            _ => {
                tokio::spawn(carried_out(session.clone(), call.clone()));
                peer.receive().await
            }
        };
        let mut expected = vector["frame"].clone();
        if !expected["ref"].is_null() {
            assert!(frame["ref"].is_number(), "{name}: {frame}");
            expected["ref"] = frame["ref"].clone();
        }
        if let Some(members) = expected.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        assert_eq!(by_value(&frame), by_value(&expected), "{name}");
        if !frame["ref"].is_null() {
            peer.ok(&frame).await;
        }
    }
}

async fn carried_out(session: Session, call: Value) {
    let trace = call["traceparent"].as_str().map(|parent| Trace {
        parent: parent.to_owned(),
        state: call["tracestate"].as_str().map(str::to_owned),
    });
    let done = match (call["verb"].as_str(), trace) {
        (Some("track"), _) => {
            let points = serde_json::from_value(call["track"].clone()).expect("a track");
            session.track(points, call["accuracy_m"].as_f64()).await
        }
        (Some("publish"), Some(trace)) => {
            let event: Feature = serde_json::from_value(call["event"].clone()).expect("an event");
            session.publish_traced(&event, &trace).await.map(drop)
        }
        _ => resume::call(session, call).await,
    };
    done.expect("done");
}

/// A connection that is silent is asked for a sign of life.
async fn pinged() -> Value {
    let server = Server::start().await;
    let connecting = tokio::spawn(connect(server.url(), "ann").silence(Duration::from_secs(3)).into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let _connected = within("connect", connecting).await.expect("no panic").expect("connected");
    peer.receive_any().await
}

/// A connection goes on by another token before its own ends.
async fn renewed(token: String) -> Value {
    let claims = URL_SAFE_NO_PAD.encode(json!({"exp": 1_000_001}).to_string());
    let tokens = std::sync::Mutex::new(vec![token, format!("head.{claims}.signature")]);
    let server = Server::start().await;
    let connect = connect(server.url(), "ann")
        .clock(|| std::time::UNIX_EPOCH + Duration::from_secs(1_000_000))
        .token_provider(move || {
            std::future::ready(tokens.lock().expect("no panic").pop().ok_or(std::fmt::Error))
        });
    let connecting = tokio::spawn(connect.into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let _connected = within("connect", connecting).await.expect("no panic").expect("connected");
    peer.receive().await
}

#[test]
fn properties_that_are_null_are_an_object_without_members() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Perhaps {
        n: Option<u8>,
    }
    for text in [
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]},"properties":null}"#,
        r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]}}"#,
    ] {
        assert_eq!(serde_json::from_str::<Feature>(text).expect("it is one").properties, json!({}));
        assert_eq!(
            serde_json::from_str::<Feature<Perhaps>>(text).expect("it is one").properties,
            Perhaps { n: None }
        );
        assert_eq!(
            serde_json::from_str::<Feature<Option<Perhaps>>>(text).expect("it is one").properties,
            None
        );
        let Feature { properties: (), .. } = serde_json::from_str(text).expect("it is one");
    }
}

#[tokio::test]
async fn an_event_of_another_type_is_told_and_the_stream_goes_on() {
    #[derive(Debug, serde::Deserialize)]
    struct Numbered {
        n: u8,
    }
    let server = Server::start().await;
    let (mut peer, _session, messages) = connected(&server).await;
    let mut messages = messages.typed::<Numbered>();
    for (offset, properties) in [(1, json!({"n": 1})), (2, json!({"n": "two"})), (3, json!({"n": 3}))] {
        peer.event(offset, &properties).await;
    }
    let mut read = Vec::new();
    while read.len() < 3 {
        read.push(match within("a message", messages.next()).await.expect("a message") {
            Ok(Message::Event(Event { feature, .. })) => feature.properties.n.to_string(),
            Ok(Message::Unreadable(other)) => format!("{} {}: {}", other.offset, other.fault, other.feature),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(read[0], "1");
    assert!(read[1].starts_with("2 invalid type: string \"two\"") && read[1].ends_with('}'), "{read:?}");
    assert_eq!(read[2], "3");
}
