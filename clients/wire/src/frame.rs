//! WebSocket frames, which are also the data of server-sent events.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Feature, Problem, Subscription, Warning};

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum ClientFrame {
    /// Makes or replaces a subscription.
    Subscribe {
        /// Comes back in the answer: a number or a text.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// The subscription with its id.
        #[serde(flatten)]
        subscription: Subscription,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// Comes back in the answer.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// Which.
        id: String,
    },
    /// Tells where the client is now.
    Move {
        /// With it the move is answered once it is in force.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// The position. Empty where a track has it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coordinates: Vec<f64>,
        /// How it came there, in place of the coordinates: `[longitude, latitude, unix_s]` each, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        track: Vec<[f64; 3]>,
        /// How far off it may be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accuracy_m: Option<f64>,
        /// When it was measured, RFC 3339.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<String>,
    },
    /// Publishes an event.
    Publish {
        /// Comes back in the answer.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// The trace that it belongs to, as W3C Trace Context writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        /// What belongs to that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tracestate: Option<String>,
        /// The event.
        event: Box<Feature>,
    },
    /// Acknowledges all deliveries up to an offset.
    Ack {
        /// The last one that was handled.
        offset: u64,
    },
    /// Goes on by another token, of the same client, where the broker wants tokens.
    Auth {
        /// Comes back in the answer.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// The JSON Web Token.
        token: String,
    },
    /// Asks for a `pong`.
    Ping,
}

/// What the broker sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum ServerFrame {
    /// The first frame.
    Ready {
        /// Who the broker takes the connection for.
        client: String,
        /// Names the session: offsets of another epoch do not compare.
        epoch: String,
        /// The next delivery has the offset after this one.
        offset: u64,
    },
    /// A request was carried out.
    Ok {
        /// The request's.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// What is probably not meant so in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Warning>,
    },
    /// A request was not carried out.
    Problem {
        /// The request's, where it could be read.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(schema_with = crate::schema::number_or_text))]
        reference: Option<Value>,
        /// Why.
        problem: Problem,
    },
    /// A delivery.
    Event {
        /// Its number in the session.
        offset: u64,
        /// Whether it is an alarm before its turn: its number is then that of the delivery before it, and a gap of reason `ahead`
        /// stands where its turn is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ahead: bool,
        /// The client's subscriptions that the event satisfies, or that it entered or left.
        subscriptions: Vec<String>,
        /// What brought it.
        cause: Cause,
        /// What became of the event's object there; absent for subscriptions to events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transition: Option<Transition>,
        /// The trace that the event belongs to, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<String>,
        /// What belongs to that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tracestate: Option<String>,
        /// Names of the checks that the event violates, of those that mark.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        violates: Vec<String>,
        /// The event; of an exit, the last one that was inside.
        event: Box<Feature>,
    },
    /// Deliveries were lost here.
    Gap {
        /// The first that was lost.
        from: u64,
        /// The last that was lost.
        to: u64,
        /// How many were lost.
        count: u64,
        /// Why.
        reason: GapReason,
    },
    /// The broker stops, and the connection ends. The client is to come back after this time.
    Retry {
        /// How long to wait, in milliseconds.
        retry_ms: u32,
    },
    /// The answer to `ping`.
    Pong,
}

/// What brought a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The event was published.
    Published,
    /// The subscriber moved.
    Moved,
    /// The subscription changed.
    Changed,
    /// The event's time ran out.
    Expired,
    /// The event was revoked.
    Revoked,
}

/// What became of an object in a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Transition {
    /// It is inside now.
    Enter,
    /// It is inside no more.
    Exit,
}

/// Why deliveries were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// Nothing was lost: the alarm in this place was told before its turn.
    Ahead,
    /// The client has said that it has them.
    Acknowledged,
    /// They were kept for as long as they may be.
    Age,
    /// The connection did not keep up.
    Overflow,
    /// Nobody read, and the session keeps nothing.
    NotDurable,
    /// The session that the reader knew is over; the numbers are of the new one.
    Epoch,
    /// A subscription remembers as many objects as it may, and one more did not enter.
    Members,
    /// They were not written by the deadlines of their events.
    Late,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_as_the_protocol_writes_them() {
        let gap: ServerFrame =
            serde_json::from_str(r#"{"op":"gap","from":18,"to":40,"count":23,"reason":"overflow"}"#).unwrap();
        assert_eq!(gap, ServerFrame::Gap { from: 18, to: 40, count: 23, reason: GapReason::Overflow });
        for reason in ["overflow", "members", "age", "not-durable", "acknowledged", "epoch", "late"] {
            let text = format!("\"{reason}\"");
            let read: GapReason = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
        for text in [
            r#"{"op":"subscribe","ref":1,"id":"s1","filters":[{"area":{"radius_m":5.0}}]}"#,
            r#"{"op":"subscribe","id":"s1","filters":[{"area":{"nearest":3}}],"on":["enter","exit"],"initial":true,"dwell_s":2.5,"hysteresis_m":10.0}"#,
            r#"{"op":"move","coordinates":[9.0,45.0]}"#,
            r#"{"op":"move","ref":1,"track":[[9.0,45.0,1700000000.5],[9.1,45.0,1700000001.0]],"accuracy_m":5.0}"#,
            r#"{"op":"publish","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=1","event":{"type":"Feature","geometry":{"type":"Point","coordinates":[9.0,45.0]},"properties":null}}"#,
            r#"{"op":"auth","ref":1,"token":"a.b.c"}"#,
            r#"{"op":"move","coordinates":[9.0,45.0],"accuracy_m":12.5,"time":"2026-03-01T07:30:00Z"}"#,
        ] {
            let frame: ClientFrame = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
    }

    #[test]
    fn a_transition_is_there_where_it_is_one() {
        let feature =
            r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9.0,45.0]},"properties":null}"#;
        for (members, found) in [
            ("", None),
            (r#""transition":"enter","#, Some(Transition::Enter)),
            (r#""transition":"exit","#, Some(Transition::Exit)),
            (r#""violates":["jump"],"#, None),
            (
                r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=1","#,
                None,
            ),
        ] {
            let text = format!(
                r#"{{"op":"event","offset":1,"subscriptions":["s1"],"cause":"moved",{members}"event":{feature}}}"#
            );
            let frame: ServerFrame = serde_json::from_str(&text).unwrap();
            assert!(matches!(frame, ServerFrame::Event { transition, .. } if transition == found), "{text}");
            assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        }
    }
}
