//! Frames of the WebSocket.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use wire::{ClientFrame, Problem, Warning};

use crate::{Gap, Trace, feature::event, messages::Incoming, problem};

/// A frame that the broker sends.
#[derive(Debug)]
pub(crate) enum ServerFrame {
    Ready {
        epoch: Arc<str>,
        offset: u64,
    },
    Answer {
        reference: Option<Value>,
        problem: Option<Problem>,
        warnings: Vec<Warning>,
    },
    Message(Incoming),
    /// The broker stops; the client is to come back after this time.
    Retry(Duration),
    Pong,
    /// A frame of a newer broker. It is passed over.
    Unknown,
}

/// Any of them. One flat struct reads several times as fast as the tagged types of `wire`, and what a newer broker adds is no fault.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(rename = "ref")]
    reference: Option<Value>,
    #[serde(borrow)]
    epoch: Option<Cow<'a, str>>,
    offset: Option<u64>,
    #[serde(default)]
    ahead: bool,
    subscriptions: Option<Vec<String>>,
    #[serde(borrow)]
    cause: Option<Cow<'a, str>>,
    #[serde(borrow)]
    transition: Option<Cow<'a, str>>,
    traceparent: Option<String>,
    tracestate: Option<String>,
    #[serde(default)]
    violates: Vec<String>,
    event: Option<Box<RawValue>>,
    problem: Option<Value>,
    #[serde(default)]
    warnings: Vec<Warning>,
    from: Option<u64>,
    to: Option<u64>,
    count: Option<u64>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    retry_ms: Option<u32>,
}

/// Reads a frame. `epoch` is that of the connection. `None` for what is no frame: not JSON, or without what its kind needs.
pub(crate) fn read(text: &str, epoch: &Arc<str>) -> Option<ServerFrame> {
    let Ok(members) = serde_json::from_str::<Members<'_>>(text) else {
        // What a newer broker sends may have other types in it: only what is not even JSON is a fault, and known kinds that are wrong.
        let value: Value = serde_json::from_str(text).ok()?;
        let known =
            matches!(value["op"].as_str(), Some("ready" | "ok" | "problem" | "event" | "gap" | "retry"));
        return (!known).then_some(ServerFrame::Unknown);
    };
    let epoch = epoch.clone();
    Some(match members.op.as_deref() {
        Some("ready") => ServerFrame::Ready { epoch: (*members.epoch?).into(), offset: members.offset? },
        Some("ok") => {
            ServerFrame::Answer { reference: members.reference, problem: None, warnings: members.warnings }
        }
        Some("problem") => ServerFrame::Answer {
            reference: members.reference,
            problem: Some(problem::of_frame(members.problem?)),
            warnings: Vec::new(),
        },
        Some("event") => ServerFrame::Message(Incoming::Event {
            event: Box::new(crate::Event {
                epoch,
                offset: members.offset?,
                ahead: members.ahead,
                subscriptions: members.subscriptions?,
                cause: (*members.cause?).into(),
                transition: members.transition.map(|transition| (*transition).into()),
                trace: members.traceparent.map(|parent| Trace { parent, state: members.tracestate }),
                violates: members.violates,
                feature: event([0.0, 0.0], ()),
            }),
            feature: members.event?,
        }),
        Some("gap") => ServerFrame::Message(Incoming::Gap(Gap {
            epoch,
            from: members.from?,
            to: members.to?,
            count: members.count?,
            reason: (*members.reason?).into(),
        })),
        Some("retry") => ServerFrame::Retry(Duration::from_millis(members.retry_ms?.into())),
        Some("pong") => ServerFrame::Pong,
        _ => ServerFrame::Unknown,
    })
}

/// Writes a frame.
pub(crate) fn write(frame: &ClientFrame) -> Utf8Bytes {
    serde_json::to_string(frame).expect("texts and numbers are JSON").into()
}

/// Writes `publish`; `event` is JSON already.
pub(crate) fn publish(reference: u64, trace: Option<&Trace>, event: &RawValue) -> Utf8Bytes {
    #[derive(Serialize)]
    struct Publish<'a> {
        op: &'a str,
        r#ref: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        traceparent: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tracestate: Option<&'a str>,
        event: &'a RawValue,
    }
    let frame = Publish {
        op: "publish",
        r#ref: reference,
        traceparent: trace.map(|trace| &*trace.parent),
        tracestate: trace.and_then(|trace| trace.state.as_deref()),
        event,
    };
    serde_json::to_string(&frame).expect("texts and numbers are JSON").into()
}
