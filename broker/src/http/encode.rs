//! Frames as text. A delivery is a small beginning and the event's body, which is shared by all who get it.

use std::io::Write as _;

use matcher::live::Cause;

use crate::model::delivery::{Delivery, Entry, Gap, Transition};
use crate::model::error;

/// Beginning of a delivery, before its offset.
const BEFORE_OFFSET: &str = r#"{"op":"event","offset":"#;
/// Text between a delivery's offset and the names of its subscriptions.
const fn before_names(is_ahead: bool) -> &'static str {
    if is_ahead { r#","ahead":true,"subscriptions":["# } else { r#","subscriptions":["# }
}
/// Text between the names and the cause. A delivery is closed after the event's body.
const BEFORE_CAUSE: &str = r#"],"cause":""#;

/// The cause in the protocol's words.
const fn cause_text(cause: Cause) -> &'static str {
    match cause {
        Cause::Published => "published",
        Cause::Moved => "moved",
        Cause::Changed => "changed",
        Cause::Expired => "expired",
        Cause::Revoked => "revoked",
    }
}

/// Text between the cause and the members of the event's trace.
const fn after_cause(transition: Option<Transition>) -> &'static str {
    match transition {
        None => r#"","#,
        Some(Transition::Enter) => r#"","transition":"enter","#,
        Some(Transition::Exit) => r#"","transition":"exit","#,
    }
}

/// Text between these members and the event's body.
const BEFORE_BODY: &str = r#""event":"#;

/// Bytes of an entry as [`push_payload`] writes it.
pub(crate) fn payload_bytes(entry: &Entry) -> usize {
    match entry {
        Entry::Answer(text) => text.len(),
        Entry::Delivery(delivery) => delivery_bytes(delivery),
        Entry::Gap(gap) => gap_text(gap).len(),
    }
}

/// Appends an entry as the payload of a WebSocket's frame.
pub(crate) fn push_payload(bytes: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::Answer(text) => bytes.extend_from_slice(text.as_bytes()),
        Entry::Delivery(delivery) => push_delivery(bytes, delivery),
        Entry::Gap(gap) => bytes.extend_from_slice(gap_text(gap).as_bytes()),
    }
}

/// Bytes of an entry as [`push_server_sent`] writes it, at most.
pub(crate) fn server_sent_bytes_max(epoch: &str, entry: &Entry) -> usize {
    "id: :18446744073709551615\nevent: problem\ndata: \n\n".len() + epoch.len() + payload_bytes(entry)
}

/// Appends an entry as a server-sent event.
pub(crate) fn push_server_sent(bytes: &mut Vec<u8>, epoch: &str, entry: &Entry) {
    let (offset, kind) = match entry {
        // Event streams ask nothing, so that what they are answered is a problem that they did not ask for.
        Entry::Answer(answer) => return push_problem(bytes, answer),
        Entry::Delivery(delivery) => (delivery.offset, "event"),
        Entry::Gap(gap) => (gap.to, "gap"),
    };
    write!(bytes, "id: {epoch}:{offset}\nevent: {kind}\ndata: ").expect("memory grows");
    push_payload(bytes, entry);
    bytes.extend_from_slice(b"\n\n");
}

fn push_problem(bytes: &mut Vec<u8>, frame: &str) {
    let problem = frame.strip_prefix(error::BEFORE_PROBLEM).and_then(|rest| rest.strip_suffix('}'));
    if let Some(problem) = problem {
        write!(bytes, "event: problem\ndata: {problem}\n\n").expect("memory grows");
    }
}

fn delivery_bytes(delivery: &Delivery) -> usize {
    let names = delivery.subscriptions.as_slice();
    let names_bytes = names.iter().map(|name| name.len()).sum::<usize>() + names.len().saturating_sub(1);
    let offset_bytes = delivery.offset.checked_ilog10().map_or(1, |log| log as usize + 1);
    let before_names_bytes = before_names(delivery.is_ahead).len();
    let fixed_bytes = BEFORE_OFFSET.len() + before_names_bytes + BEFORE_CAUSE.len() + BEFORE_BODY.len() + 1;
    let cause_bytes = cause_text(delivery.cause).len() + after_cause(delivery.transition).len();
    let body_bytes = delivery.body.trace_members().len() + delivery.body.text.len();
    fixed_bytes + cause_bytes + offset_bytes + names_bytes + body_bytes
}

fn push_delivery(bytes: &mut Vec<u8>, delivery: &Delivery) {
    let Delivery { offset, subscriptions, cause, transition, body, is_ahead, .. } = delivery;
    // Once for each delivery: the formatting machinery was a tenth of the broker's time here.
    let mut push = |text: &str| bytes.extend_from_slice(text.as_bytes());
    push(BEFORE_OFFSET);
    push(itoa::Buffer::new().format(*offset));
    push(before_names(*is_ahead));
    for (index, name) in subscriptions.as_slice().iter().enumerate() {
        if index > 0 {
            push(",");
        }
        push(name);
    }
    push(BEFORE_CAUSE);
    push(cause_text(*cause));
    push(after_cause(*transition));
    push(body.trace_members());
    push(BEFORE_BODY);
    push(&body.text);
    push("}");
}

fn gap_text(gap: &Gap) -> String {
    let Gap { from, to, reason } = *gap;
    let (count, reason) = (gap.count(), reason.text());
    format!(r#"{{"op":"gap","from":{from},"to":{to},"count":{count},"reason":"{reason}"}}"#)
}

/// `ok`, with the request's `ref` as it was written.
pub(crate) fn ok(reference: Option<&str>) -> String {
    match reference {
        Some(reference) => [r#"{"op":"ok","ref":"#, reference, "}"].concat(),
        None => r#"{"op":"ok"}"#.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::ingest::json::Members;
    use crate::model::delivery::{GapReason, SubscriptionIds};
    use crate::model::error::ApiError;
    use crate::model::event::Body;
    use crate::telemetry::{Telemetry, TraceContext};

    /// The payload of an entry's frame.
    fn frame(entry: &Entry) -> String {
        let mut bytes = Vec::new();
        push_payload(&mut bytes, entry);
        assert_eq!(bytes.len(), payload_bytes(entry));
        String::from_utf8(bytes).unwrap()
    }

    fn delivery(names: &[&str]) -> Entry {
        let body = Body::new(r#"{"type":"Feature"}"#.into(), Instant::now(), Default::default());
        let names: Vec<Arc<str>> = names.iter().map(|name| (*name).into()).collect();
        let subscriptions = match names.as_slice() {
            [one] => SubscriptionIds::One(Arc::clone(one)),
            _ => SubscriptionIds::Many(names.into()),
        };
        Entry::Delivery(Delivery {
            offset: 17,
            subscriptions,
            cause: Cause::Published,
            transition: None,
            body: Arc::new(body),
            overflow: None,
            is_late: false,
            is_ahead: false,
        })
    }

    /// Everything that can bring a delivery, with the protocol's word for it.
    const CAUSES: [(Cause, wire::Cause); 5] = [
        (Cause::Published, wire::Cause::Published),
        (Cause::Moved, wire::Cause::Moved),
        (Cause::Changed, wire::Cause::Changed),
        (Cause::Expired, wire::Cause::Expired),
        (Cause::Revoked, wire::Cause::Revoked),
    ];

    const TRANSITIONS: [(Option<Transition>, Option<wire::Transition>); 3] = [
        (None, None),
        (Some(Transition::Enter), Some(wire::Transition::Enter)),
        (Some(Transition::Exit), Some(wire::Transition::Exit)),
    ];

    fn causes_and_transitions()
    -> impl Iterator<Item = ((Cause, wire::Cause), (Option<Transition>, Option<wire::Transition>))> {
        CAUSES
            .into_iter()
            .flat_map(|cause| TRANSITIONS.into_iter().map(move |transition| (cause, transition)))
    }

    #[test]
    fn frames_are_written_as_the_protocol_says() {
        assert_eq!(
            frame(&delivery(&["\"s1\"", "\"s2\""])),
            r#"{"op":"event","offset":17,"subscriptions":["s1","s2"],"cause":"published","event":{"type":"Feature"}}"#
        );
        assert_eq!(
            frame(&Entry::Gap(Gap { from: 18, to: 40, reason: GapReason::Overflow })),
            r#"{"op":"gap","from":18,"to":40,"count":23,"reason":"overflow"}"#
        );
        let Entry::Delivery(exit) = delivery(&["\"s1\""]) else { panic!("a delivery") };
        let exit = Delivery { cause: Cause::Expired, transition: Some(Transition::Exit), ..exit };
        assert_eq!(
            frame(&Entry::Delivery(exit)),
            r#"{"op":"event","offset":17,"subscriptions":["s1"],"cause":"expired","transition":"exit","event":{"type":"Feature"}}"#
        );
        let empty = Gap { from: 1, to: 0, reason: GapReason::Epoch };
        assert!(frame(&Entry::Gap(empty)).contains("\"count\":0"));
    }

    #[test]
    fn a_delivery_takes_no_more_room_than_it_needs() {
        for names in [&[][..], &["\"s1\""], &["\"s1\"", "\"s2\""]] {
            for offset in [0, 9, 10, 12_345, u64::MAX] {
                for ((cause, _), (transition, _)) in causes_and_transitions() {
                    let Entry::Delivery(delivery) = delivery(names) else { panic!("a delivery") };
                    let delivery = Delivery { offset, cause, transition, ..delivery };
                    let mut bytes = Vec::with_capacity(delivery_bytes(&delivery));
                    let room = bytes.capacity();
                    push_delivery(&mut bytes, &delivery);
                    assert_eq!((bytes.len(), bytes.capacity()), (delivery_bytes(&delivery), room));
                }
            }
        }
        let Entry::Delivery(delivery) = delivery(&["\"s1\""]) else { panic!("a delivery") };
        let delivery = Delivery { body: Arc::new(traced(r#"{"type":"Feature"}"#)), ..delivery };
        frame(&Entry::Delivery(delivery));
    }

    /// A body of an event that came with a trace.
    fn traced(text: &str) -> Body {
        let told = r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=\""}"#;
        let context = TraceContext::of_frame(&mut Members::parse(told).unwrap());
        let body = Body::new(text.into(), Instant::now(), Default::default());
        Body { carried: Telemetry::carried(None, context.as_ref()), ..body }
    }

    #[test]
    fn the_trace_of_an_event_stands_before_it() {
        let Entry::Delivery(delivery) = delivery(&["\"s1\""]) else { panic!("a delivery") };
        let feature = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]}}"#;
        let delivery = Delivery { body: Arc::new(traced(feature)), ..delivery };
        let text = frame(&Entry::Delivery(delivery));
        let wire::ServerFrame::Event { traceparent, tracestate, .. } = serde_json::from_str(&text).unwrap()
        else {
            panic!("{text}")
        };
        assert_eq!(traceparent.as_deref(), Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        assert_eq!(tracestate.as_deref(), Some("a=\""));
    }

    #[test]
    fn causes_and_transitions_are_told_in_the_words_of_the_protocol() {
        for ((cause, told_cause), (transition, told_transition)) in causes_and_transitions() {
            let Entry::Delivery(delivery) = delivery(&["\"s1\""]) else { panic!("a delivery") };
            let feature = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,45]}}"#;
            let body = Arc::new(Body::new(feature.into(), Instant::now(), Default::default()));
            let text = frame(&Entry::Delivery(Delivery { cause, transition, body, ..delivery }));
            let frame: wire::ServerFrame = serde_json::from_str(&text).unwrap();
            let wire::ServerFrame::Event { cause, transition, offset: 17, .. } = frame else {
                panic!("{text}")
            };
            assert_eq!((cause, transition), (told_cause, told_transition), "{text}");
        }
    }

    #[test]
    fn server_sent_events_carry_the_epoch() {
        let mut bytes = Vec::new();
        push_server_sent(&mut bytes, "e1", &delivery(&["\"s1\""]));
        push_server_sent(
            &mut bytes,
            "e1",
            &Entry::Gap(Gap { from: 18, to: 40, reason: GapReason::Overflow }),
        );
        let text = String::from_utf8(bytes).unwrap();
        let mut events = text.split("\n\n");
        let event: Vec<_> = events.next().unwrap().lines().collect();
        assert_eq!(event[..2], ["id: e1:17", "event: event"]);
        assert!(event[2].starts_with("data: {\"op\":\"event\",") && event.len() == 3);
        assert!(events.next().unwrap().starts_with("id: e1:40\nevent: gap\ndata: {\"op\":\"gap\""));
    }

    #[test]
    fn an_event_stream_is_told_problems_that_nobody_asked_for() {
        let mut bytes = Vec::new();
        push_server_sent(&mut bytes, "e1", &Entry::Answer(ApiError::Overloaded.frame(None).into()));
        let text = String::from_utf8(bytes).unwrap();
        let data = text.strip_prefix("event: problem\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let problem: wire::Problem = serde_json::from_str(data.expect("one event")).unwrap();
        assert_eq!(problem, ApiError::Overloaded.problem());
    }
}
