//! Frames as text. A delivery is a small beginning and the event's body, which is shared by all who get it.

use matcher::live::Cause;
use std::fmt::Write as _;

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

/// An entry as a WebSocket frame.
pub(crate) fn frame(entry: Entry) -> String {
    match entry {
        Entry::Answer(text) => text.into_string(),
        Entry::Delivery(delivery) => {
            // To the byte: what is left over would cost another allocation on the way to the socket.
            let mut text = String::with_capacity(delivery_bytes(&delivery));
            push_delivery(&mut text, &delivery);
            text
        }
        Entry::Gap(gap) => {
            let mut text = String::new();
            push_gap(&mut text, &gap);
            text
        }
    }
}

/// Appends an entry as a server-sent event.
pub(crate) fn push_server_sent(text: &mut String, epoch: &str, entry: &Entry) {
    let (offset, kind) = match entry {
        // Event streams ask nothing, so that what they are answered is a problem that they did not ask for.
        Entry::Answer(answer) => return push_problem(text, answer),
        Entry::Delivery(delivery) => (delivery.offset, "event"),
        Entry::Gap(gap) => (gap.to, "gap"),
    };
    write!(text, "id: {epoch}:{offset}\nevent: {kind}\ndata: ").expect("a text grows");
    match entry {
        Entry::Answer(_) => {}
        Entry::Delivery(delivery) => push_delivery(text, delivery),
        Entry::Gap(gap) => push_gap(text, gap),
    }
    text.push_str("\n\n");
}

fn push_problem(text: &mut String, frame: &str) {
    let problem = frame.strip_prefix(error::BEFORE_PROBLEM).and_then(|rest| rest.strip_suffix('}'));
    if let Some(problem) = problem {
        write!(text, "event: problem\ndata: {problem}\n\n").expect("a text grows");
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

fn push_delivery(text: &mut String, delivery: &Delivery) {
    let Delivery { offset, subscriptions, cause, transition, body, is_ahead, .. } = delivery;
    // Once for each delivery: the formatting machinery was a tenth of the broker's time here.
    text.push_str(BEFORE_OFFSET);
    text.push_str(itoa::Buffer::new().format(*offset));
    text.push_str(before_names(*is_ahead));
    for (index, name) in subscriptions.as_slice().iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(name);
    }
    text.push_str(BEFORE_CAUSE);
    text.push_str(cause_text(*cause));
    text.push_str(after_cause(*transition));
    text.push_str(body.trace_members());
    text.push_str(BEFORE_BODY);
    text.push_str(&body.text);
    text.push('}');
}

fn push_gap(text: &mut String, gap: &Gap) {
    let Gap { from, to, reason } = *gap;
    let (count, reason) = (gap.count(), reason.text());
    write!(text, r#"{{"op":"gap","from":{from},"to":{to},"count":{count},"reason":"{reason}"}}"#)
        .expect("a text grows");
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
    use crate::model::delivery::{Names, Reason};
    use crate::model::error::Refusal;
    use crate::model::event::Body;
    use crate::telemetry::{Telemetry, TraceContext};

    fn delivery(names: &[&str]) -> Entry {
        let body = Body::new(r#"{"type":"Feature"}"#.into(), Instant::now(), Default::default());
        let names: Vec<Arc<str>> = names.iter().map(|name| (*name).into()).collect();
        let subscriptions = match names.as_slice() {
            [one] => Names::One(Arc::clone(one)),
            _ => Names::Many(names.into()),
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
            frame(delivery(&["\"s1\"", "\"s2\""])),
            r#"{"op":"event","offset":17,"subscriptions":["s1","s2"],"cause":"published","event":{"type":"Feature"}}"#
        );
        assert_eq!(
            frame(Entry::Gap(Gap { from: 18, to: 40, reason: Reason::Overflow })),
            r#"{"op":"gap","from":18,"to":40,"count":23,"reason":"overflow"}"#
        );
        let Entry::Delivery(exit) = delivery(&["\"s1\""]) else { panic!("a delivery") };
        let exit = Delivery { cause: Cause::Expired, transition: Some(Transition::Exit), ..exit };
        assert_eq!(
            frame(Entry::Delivery(exit)),
            r#"{"op":"event","offset":17,"subscriptions":["s1"],"cause":"expired","transition":"exit","event":{"type":"Feature"}}"#
        );
        let empty = Gap { from: 1, to: 0, reason: Reason::Epoch };
        assert!(frame(Entry::Gap(empty)).contains("\"count\":0"));
    }

    #[test]
    fn a_delivery_takes_no_more_room_than_it_needs() {
        for names in [&[][..], &["\"s1\""], &["\"s1\"", "\"s2\""]] {
            for offset in [0, 9, 10, 12_345, u64::MAX] {
                for ((cause, _), (transition, _)) in causes_and_transitions() {
                    let Entry::Delivery(delivery) = delivery(names) else { panic!("a delivery") };
                    let delivery = Delivery { offset, cause, transition, ..delivery };
                    let bytes = delivery_bytes(&delivery);
                    assert_eq!(frame(Entry::Delivery(delivery)).len(), bytes);
                }
            }
        }
        let Entry::Delivery(delivery) = delivery(&["\"s1\""]) else { panic!("a delivery") };
        let delivery = Delivery { body: Arc::new(traced(r#"{"type":"Feature"}"#)), ..delivery };
        let bytes = delivery_bytes(&delivery);
        assert_eq!(frame(Entry::Delivery(delivery)).len(), bytes);
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
        let text = frame(Entry::Delivery(delivery));
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
            let text = frame(Entry::Delivery(Delivery { cause, transition, body, ..delivery }));
            let frame: wire::ServerFrame = serde_json::from_str(&text).unwrap();
            let wire::ServerFrame::Event { cause, transition, offset: 17, .. } = frame else {
                panic!("{text}")
            };
            assert_eq!((cause, transition), (told_cause, told_transition), "{text}");
        }
    }

    #[test]
    fn server_sent_events_carry_the_epoch() {
        let mut text = String::new();
        push_server_sent(&mut text, "e1", &delivery(&["\"s1\""]));
        push_server_sent(&mut text, "e1", &Entry::Gap(Gap { from: 18, to: 40, reason: Reason::Overflow }));
        let mut events = text.split("\n\n");
        let event: Vec<_> = events.next().unwrap().lines().collect();
        assert_eq!(event[..2], ["id: e1:17", "event: event"]);
        assert!(event[2].starts_with("data: {\"op\":\"event\",") && event.len() == 3);
        assert!(events.next().unwrap().starts_with("id: e1:40\nevent: gap\ndata: {\"op\":\"gap\""));
    }

    #[test]
    fn an_event_stream_is_told_problems_that_nobody_asked_for() {
        let mut text = String::new();
        push_server_sent(&mut text, "e1", &Entry::Answer(Refusal::Overloaded.frame(None).into()));
        let data = text.strip_prefix("event: problem\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let problem: wire::Problem = serde_json::from_str(data.expect("one event")).unwrap();
        assert_eq!(problem, Refusal::Overloaded.problem());
    }
}
