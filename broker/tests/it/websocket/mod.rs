//! WebSockets by the letter of RFC 6455, spoken by hand: the ground of Autobahn's cases 1 to 7, 9 and 10. Its cases 12 and
//! 13 are about compression, which is not offered. For an echo stands a request whose answer brings back its `ref`.

mod closing;
mod fragments;
mod frames;
mod opening;
mod peer;
mod pings;
mod texts;

use peer::{Frame, Got, Peer};
use serde_json::{Value, json};

use crate::harness::{Door, Program, Serve};

/// No pings of the broker's own among what a case expects.
const QUIET: &str = "[connection]\nping_interval_ms = 600000\nsilence_timeout_ms = 1200000\n";

async fn start() -> Program {
    Serve::new().config(QUIET).start().await
}

/// How bytes come to the broker.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// All at once.
    Together,
    /// In pieces of so many bytes.
    Pieces(usize),
}

/// At once, and byte by byte.
const BOTH: [Manner; 2] = [Manner::Together, Manner::Pieces(1)];

/// What has to come back.
#[derive(Clone, Debug, PartialEq)]
enum Back {
    /// The answer to [`said`].
    Echo(String),
    /// The answer to [`REQUEST`].
    Answer,
    /// A pong with this payload.
    Pong(Vec<u8>),
    /// A problem: not JSON.
    Malformed,
    /// A problem: not a request.
    Invalid,
    /// The close, with this code; nothing comes after it.
    Close(u16),
}

/// A request that is answered.
const REQUEST: &str = r#"{"op":"ping"}"#;

/// A request whose answer brings this text back.
fn said(text: &str) -> String {
    json!({"op": "unsubscribe", "id": "none", "ref": text}).to_string()
}

/// The only place that knows how a case is played: sends frames in each manner over a connection of its own, and demands
/// what comes back. Pongs and answers are each in order, but not among each other.
async fn check(door: &Door, name: &str, manners: &[Manner], frames: &[Frame], expected: &[Back]) {
    for manner in manners {
        let name = format!("{name}, {manner:?}");
        let mut peer = Peer::open(door.address(), &name).await;
        let bytes = frames.iter().flat_map(Frame::bytes).collect::<Vec<_>>();
        peer.send(&bytes, *manner).await;
        let mut found = Vec::new();
        while found.len() < expected.len() && !matches!(found.last(), Some(Back::Close(_))) {
            found.push(back(&name, peer.next().await));
        }
        if !matches!(found.last(), Some(Back::Close(_))) {
            // Whatever else came would come before the answer to a close.
            peer.send(&Frame::close(1000, "").bytes(), Manner::Together).await;
            let last = back(&name, peer.next().await);
            assert_eq!(last, Back::Close(1000), "{name}: more has come back than was to be");
        }
        let sorted = |mut backs: Vec<Back>| {
            backs.sort_by_key(|back| matches!(back, Back::Pong(_)));
            backs
        };
        assert_eq!(sorted(found), sorted(expected.to_vec()), "{name}");
        peer.assert_ended().await;
    }
}

fn back(name: &str, got: Got) -> Back {
    let frame = match got {
        Got::Text(text) => serde_json::from_str::<Value>(&text).expect("frames are JSON"),
        Got::Ping => panic!("{name}: a ping"),
        Got::Pong(payload) => return Back::Pong(payload),
        Got::Close(code) => return Back::Close(code.unwrap_or(1005)),
        Got::Cut => panic!("{name}: cut off without a close"),
    };
    if frame["op"] == "pong" {
        return Back::Answer;
    }
    let kind = frame["problem"]["type"].as_str().and_then(|kind| kind.strip_prefix("urn:nearcast:problem:"));
    match (kind, frame["ref"].as_str()) {
        (Some("not-found"), Some(text)) => Back::Echo(text.to_owned()),
        (Some("malformed-json"), None) => Back::Malformed,
        (Some("invalid-document"), None) => Back::Invalid,
        _ => panic!("{name}: {frame}"),
    }
}
