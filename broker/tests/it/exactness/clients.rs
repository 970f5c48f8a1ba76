//! Clients that read all the time and keep what they get, half of them over WebSocket, half over SSE.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::geometry::Place;
use crate::harness::{Door, Received, Sse, Ws};

/// The id of the last event of a run: when a client has it, it has all that it will get.
pub(crate) const LAST: &str = "last";

/// What has been published, by id.
pub(crate) type Published = Arc<HashMap<String, Value>>;

/// The subscriptions that each event came for.
pub(crate) type Got = HashMap<String, Vec<String>>;

/// A connected client.
pub(crate) struct Client {
    /// Its name.
    pub(crate) name: String,
    /// Its socket, where it has one that takes frames.
    socket: Option<mpsc::Sender<(Value, oneshot::Sender<Value>)>>,
    /// Ends with the test, so that one failure is not followed by one of each client.
    reader: AbortOnDropHandle<Got>,
}

impl Client {
    /// Connects one: those with an even index over WebSocket, the others over SSE.
    pub(crate) async fn connect(door: &Door, idx: usize, published: Published) -> Self {
        let name = format!("car-{idx}");
        if idx.is_multiple_of(2) {
            let (tx, rx) = mpsc::channel(64);
            let reader = tokio::spawn(read_ws(door.ws(&name).await, rx, published));
            let reader = AbortOnDropHandle::new(reader);
            Self { name, socket: Some(tx), reader }
        } else {
            let reader = tokio::spawn(read_sse(door.sse(&name).await, published));
            let reader = AbortOnDropHandle::new(reader);
            Self { name, socket: None, reader }
        }
    }

    /// Whether it talks over WebSocket.
    pub(crate) fn has_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// Sends a frame over its socket, and waits for the `ok`.
    pub(crate) async fn ok(&self, frame: Value) {
        let socket = self.socket.as_ref().expect("a client with a socket");
        let (tx, rx) = oneshot::channel();
        socket.send((frame.clone(), tx)).await.expect("the reader lives");
        let answer = rx.await.expect("an answer");
        assert_eq!(answer["op"], "ok", "{}: {frame}: {answer}", self.name);
    }

    /// Moves over its socket.
    pub(crate) async fn place(&self, coordinates: Place) {
        self.ok(json!({"op": "move", "coordinates": coordinates})).await;
    }

    /// All that it got, once the last event is there.
    pub(crate) async fn finish(self) -> Got {
        self.reader.await.expect("the reader did not fail")
    }
}

async fn read_ws(
    mut ws: Ws,
    mut frames: mpsc::Receiver<(Value, oneshot::Sender<Value>)>,
    published: Published,
) -> Got {
    let mut offset = ws.ready["offset"].as_u64().expect("a number");
    let mut waiting = HashMap::new();
    let mut last_ref = 0_u64;
    let mut got = Got::new();
    loop {
        tokio::select! {
            Some((mut frame, reply)) = frames.recv() => {
                last_ref += 1;
                frame["ref"] = json!(last_ref);
                waiting.insert(last_ref, reply);
                ws.send(&frame).await;
            }
            received = ws.read() => match received {
                Received::Frame(frame) if frame["op"] == "event" => {
                    if take(&frame, &mut offset, &published, &mut got) {
                        return got;
                    }
                }
                Received::Frame(frame) => {
                    let reply = frame["ref"].as_u64().and_then(|reference| waiting.remove(&reference));
                    let reply = reply.unwrap_or_else(|| panic!("nobody waits for {frame}"));
                    reply.send(frame).expect("the asker waits");
                }
                Received::Closed(code, reason) => panic!("closed with {code} {reason:?}"),
            },
        }
    }
}

async fn read_sse(mut sse: Sse, published: Published) -> Got {
    let mut last = None;
    let mut got = Got::new();
    loop {
        let message = sse.read().await.expect("the stream goes on");
        assert_eq!(message.event, "event", "{message:?}");
        let frame = message.frame();
        let (epoch, offset) = message.epoch_and_offset();
        assert_eq!(frame["offset"], offset, "{message:?}");
        let (last_epoch, last_offset) = last.get_or_insert_with(|| (epoch.clone(), offset - 1));
        assert_eq!(*last_epoch, epoch, "{message:?}");
        if take(&frame, last_offset, &published, &mut got) {
            return got;
        }
    }
}

/// Checks one event frame and keeps it; true when it was the last.
fn take(frame: &Value, last_offset: &mut u64, published: &Published, got: &mut Got) -> bool {
    assert_eq!(frame["op"], "event", "{frame}");
    assert_eq!(frame["cause"], "published", "{frame}");
    assert_eq!(frame["offset"], *last_offset + 1, "after {last_offset}: {frame}");
    *last_offset += 1;
    let event = &frame["event"];
    let id = event["id"].as_str().unwrap_or_else(|| panic!("an event without id: {frame}"));
    if id == LAST {
        return true;
    }
    let original = published.get(id).unwrap_or_else(|| panic!("never published: {frame}"));
    for member in ["type", "geometry", "properties", "reach_m"] {
        assert_eq!(event.get(member), original.get(member), "{member} of {frame}");
    }
    let ids = frame["subscriptions"].as_array().expect("an array").iter();
    let mut ids = ids.map(|id| id.as_str().expect("a text").to_owned()).collect::<Vec<_>>();
    ids.sort();
    assert!(got.insert(id.to_owned(), ids).is_none(), "came twice: {frame}");
    false
}
