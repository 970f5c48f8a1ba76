//! The context of a trace as publishers tell it and subscribers get it (W3C Trace Context).

use std::str::FromStr as _;

use axum::http::HeaderMap;
use opentelemetry::trace::{SpanId, TraceFlags, TraceId, TraceState};

use crate::ingest::json::{self, Members};

/// Bytes of a `traceparent` of version 00, and of what of a later one is understood.
const PARENT_BYTES: usize = 55;
/// Bytes of a `tracestate` that are passed on; of a longer one nothing is. The least that the standard asks for.
const STATE_BYTES_MAX: usize = 512;
/// Entries of a `tracestate`, by the standard.
const STATE_ENTRIES_MAX: usize = 32;
/// Flags that have a meaning: sampled, and that the trace's id is random.
const FLAGS_KNOWN: u8 = 0b11;

/// Which trace something belongs to, and below which span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(super) trace_id: TraceId,
    pub(super) span_id: SpanId,
    pub(super) flags: TraceFlags,
    /// `tracestate` as it came.
    pub(super) state: Option<Box<str>>,
}

impl TraceContext {
    /// Reads the context from the headers of a request. A header with a fault counts as absent, as the standard wants it.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all("traceparent").iter();
        let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
        let states = headers.get_all("tracestate").iter().map(|state| state.to_str().ok());
        let state = states.collect::<Option<Vec<_>>>().map(|states| states.join(","));
        Self::read(parent.to_str().ok()?.trim(), state.as_deref())
    }

    /// Takes what a frame tells by members of the same names.
    pub(crate) fn of_frame(members: &mut Members<'_>) -> Option<Self> {
        let parent = json::read_text(members.take("traceparent")?).ok()?;
        let state = members.take("tracestate").and_then(|text| json::read_text(text).ok());
        Self::read(&parent, state.as_deref())
    }

    fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let (known, rest) = parent.split_at_checked(PARENT_BYTES)?;
        let is_written_right = known.bytes().enumerate().all(|(at, byte)| match at {
            2 | 35 | 52 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        });
        let version = &known[..2];
        let may_go_on = version != "00" && rest.starts_with('-');
        if !is_written_right || version == "ff" || !(rest.is_empty() || may_go_on) {
            return None;
        }
        let trace_id = TraceId::from_hex(&known[3..35]).ok()?;
        let span_id = SpanId::from_hex(&known[36..52]).ok()?;
        let flags = u8::from_str_radix(&known[53..], 16).ok()? & FLAGS_KNOWN;
        if trace_id == TraceId::INVALID || span_id == SpanId::INVALID {
            return None;
        }
        let state = state.map(|state| state.trim_matches([' ', '\t'])).filter(|state| is_state(state));
        Some(Self { trace_id, span_id, flags: TraceFlags::new(flags), state: state.map(Box::from) })
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.flags.is_sampled()
    }

    /// `tracestate` as spans have it.
    pub(super) fn trace_state(&self) -> TraceState {
        // It was held against the same rules when it came.
        self.state.as_deref().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default()
    }

    /// The members of a frame that tell it, each with a comma behind it.
    pub(super) fn members(&self) -> Box<str> {
        let Self { trace_id, span_id, flags, state } = self;
        let mut text = format!(r#""traceparent":"00-{trace_id}-{span_id}-{flags:02x}","#);
        if let Some(state) = state {
            text.push_str(r#""tracestate":"#);
            text.push_str(&serde_json::Value::from(&**state).to_string());
            text.push(',');
        }
        text.into()
    }
}

fn is_state(text: &str) -> bool {
    let is_printed = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
    !text.is_empty()
        && text.len() <= STATE_BYTES_MAX
        && text.bytes().all(is_printed)
        && text.split(',').count() <= STATE_ENTRIES_MAX
        && TraceState::from_str(text).is_ok_and(|state| !state.header().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The members of a frame that tell what these headers told.
    fn passed_on(parents: &[&str], states: &[&str]) -> Option<String> {
        let headers = parents.iter().map(|parent| ("traceparent", parent));
        let headers = headers.chain(states.iter().map(|state| ("tracestate", state)));
        let headers = headers.map(|(name, value)| {
            (axum::http::HeaderName::from_static(name), value.parse().expect("a header"))
        });
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        TraceContext::of_headers(&map).map(|context| context.members().into())
    }

    #[test]
    fn what_is_right_is_passed_on() {
        for (parent, passed) in [
            (PARENT.to_owned(), PARENT.to_owned()),
            (PARENT.replace("-01", "-00"), PARENT.replace("-01", "-00")),
            (PARENT.replace("-01", "-ff"), PARENT.replace("-01", "-03")),
            (PARENT.replacen("00", "cc", 1), PARENT.to_owned()),
            (PARENT.replacen("00", "01", 1) + "-what-comes", PARENT.to_owned()),
            (format!(" {PARENT} "), PARENT.to_owned()),
        ] {
            assert_eq!(passed_on(&[&parent], &[]), Some(format!(r#""traceparent":"{passed}","#)), "{parent}");
        }
    }

    #[test]
    fn what_is_not_right_counts_as_absent() {
        for parent in [
            "",
            "00",
            &PARENT[..54],
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT.replace("-01", "-0g"),
            &PARENT.replace("-01", "-+1"),
            &PARENT.replace("4bf9", "+bf9"),
            &PARENT.replace('-', "_"),
            &format!("{PARENT}-"),
            &format!("{PARENT}0"),
            &(PARENT.replacen("00", "01", 1) + "0"),
            &format!("{}é", &PARENT[..54]),
        ] {
            let headers = [(axum::http::HeaderName::from_static("traceparent"), parent.parse().unwrap())];
            assert_eq!(TraceContext::of_headers(&HeaderMap::from_iter(headers)), None, "{parent}");
            assert_eq!(TraceContext::read(parent, None), None, "{parent}");
        }
        assert_eq!(passed_on(&[PARENT, PARENT], &[]), None);
        assert_eq!(passed_on(&[], &["a=1"]), None);
    }

    #[test]
    fn the_state_goes_along_where_it_is_right() {
        let state = |states: &[&str]| {
            let told = passed_on(&[PARENT], states).unwrap();
            let members = format!("{{{}}}", told.trim_end_matches(','));
            let members: serde_json::Value = serde_json::from_str(&members).unwrap();
            assert_eq!(members["traceparent"], PARENT);
            members["tracestate"].as_str().map(str::to_owned)
        };
        assert_eq!(state(&["a=1,b@c=2"]).as_deref(), Some("a=1,b@c=2"));
        assert_eq!(state(&["a=1", "b=\"\\"]).as_deref(), Some("a=1,b=\"\\"));
        let entries = |count: usize| (0..count).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(",");
        assert_eq!(state(&[&entries(32)]), Some(entries(32)));
        for wrong in ["", " ", ",", "a", "A=1", "a=\u{e9}", &entries(33), &format!("a={}", "b".repeat(511))] {
            assert_eq!(state(&[wrong]), None, "{wrong}");
        }
        assert_eq!(TraceContext::read(PARENT, Some("a=\n")).unwrap().state, None);
    }

    #[test]
    fn frames_tell_the_same_as_headers() {
        let read = |text: &str| {
            let context = TraceContext::of_frame(&mut Members::parse(text).unwrap());
            context.map(|context| context.members().into_string())
        };
        let told = format!(r#"{{"traceparent":"{PARENT}","tracestate":"a=1"}}"#);
        assert_eq!(read(&told), passed_on(&[PARENT], &["a=1"]));
        assert!(read(&told).is_some());
        assert_eq!(read(&told.replace("\"a=1\"", "7")), passed_on(&[PARENT], &[]));
        assert_eq!(read(&told.replace(&format!("\"{PARENT}\""), "7")), None);
        assert_eq!(read(r#"{"tracestate":"a=1"}"#), None);
    }
}
