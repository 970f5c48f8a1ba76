//! Why a request is not carried out, whichever way it came.
//!
//! The text of a refusal may repeat parts of the request. However these are chosen, a problem has no more than some
//! kilobytes: a refusal must not cost more than what it refuses.

use std::borrow::Cow;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wire::{Fault, PROBLEM_PREFIX, Problem};

use super::problems::{self, ProblemKind};

/// Phase of a broker that follows another ([`ApiError::Recovering`]).
pub(crate) const STANDBY: &str = "standby";
/// Text of a refusal while the disk is full.
pub(crate) const FULL: &str = "the disk is full: only removals are taken until there is room";

/// The media type of a form, and the advice for senders of one by accident.
const FORM: &str = "application/x-www-form-urlencoded";
const CURLS: &str =
    " (curl sends this unless told otherwise: --json, or -H 'content-type: application/json')";

/// Beginning of the frame of a problem that answers no request.
pub(crate) const BEFORE_PROBLEM: &str = r#"{"op":"problem","problem":"#;

/// Variables of a check, each with the id of the event that it was bound to.
pub(crate) type Link = Vec<(Arc<str>, Arc<str>)>;

/// The engine time that a subscription has cost of late, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) subscription: Arc<str>,
    pub(crate) ms: u64,
}

/// Why a request is not carried out. Becomes a problem document over HTTP, a `problem` frame over a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiError {
    /// Not JSON, or not UTF-8.
    Malformed { detail: String, line: usize, column: usize },
    /// JSON, but not the document that was asked for.
    Invalid(Vec<Fault>),
    /// More bytes than a setting allows.
    TooLarge { what: &'static str, limit: u64, setting: &'static str },
    /// More things than a setting allows.
    Limit { what: &'static str, limit: u64, setting: &'static str },
    /// More bytes of answers that nobody has read yet than a setting allows.
    Unread { what: &'static str, limit: u64, setting: &'static str },
    /// Events faster than a setting allows.
    TooFast { limit: u64, setting: &'static str },
    /// Moves faster than a setting allows.
    TooManyMoves { limit: u64, setting: &'static str },
    /// The requests of the client, or of its tenant, have cost the engines more than a setting allows.
    TooCostly { limit: u64, setting: &'static str, debt: Duration, costliest: Arc<[Cost]> },
    /// It could not be done in time.
    Overloaded,
    /// It is not on disk, since that took nothing.
    Storage,
    /// The disk is full, and this would have added to what is there.
    Full,
    /// Nothing was to be changed, and the disk takes nothing, as with `Storage`; the text says why.
    NotStored(String),
    /// Another broker of the cluster serves the client, at this address.
    Elsewhere { url: String },
    /// The broker is about to end.
    Stopping,
    /// It takes up what is on disk: what of that it does now, and how far it is.
    Recovering { phase: &'static str, done: u64, of: u64 },
    /// The issuer of tokens has not been reached yet, so that there is no key to check one with.
    NoKeys,
    /// The body paused for too long.
    TooSlow,
    /// The body came at less than the least rate.
    BelowRate,
    /// The body ended before it was complete.
    Interrupted,
    /// The body's kind is not among those that are understood.
    MediaType { found: String, understood: &'static str },
    /// The request cannot be understood for another reason.
    BadRequest(String),
    /// No such thing.
    NotFound(String),
    /// Push messages are off.
    NoPush,
    /// No streets are known.
    NoStreets,
    /// There is no route, for a reason.
    NoRoute(String),
    /// The answer would have come after the deadline.
    Late,
    /// A check found that the event does not fit with others.
    Inconsistent { check: Arc<str>, links: Arc<[Link]> },
    /// There is such a thing, but it cannot be asked this: only what `possible` says.
    MethodNotAllowed { asked: String, possible: String },
    /// Another version of the WebSocket protocol is asked for.
    WebSocketVersion,
    /// A web page of somewhere else asks: how that is known.
    ForeignOrigin(String),
    /// The request names a host, in the text, that the broker is not.
    ForeignHost(String),
    /// The request has no token, or none that counts.
    Unauthenticated { detail: String, has_token: bool },
    /// The token has ended.
    TokenExpired,
    /// The token does not permit this; one with the scope would.
    Forbidden { detail: String, scope: Option<&'static str> },
    /// The broker broke.
    Internal(&'static str),
}

/// Bytes that all the faults take that a problem lists. The first is always among them; the detail counts the others.
const FAULTS_BYTES_MAX: usize = 2_048;

/// Bytes of a detail as JSON.
const DETAIL_BYTES_MAX: usize = 640;

/// Bytes of a pointer as JSON.
const POINTER_BYTES_MAX: usize = 512;

/// Bytes of a name or an address that are quoted.
const QUOTED_BYTES_MAX: usize = 64;

/// The beginning of a text, in whole characters and at most `bytes_max` bytes, with an ellipsis where something is cut off.
pub(crate) fn excerpt(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// The excerpt of a text from a request that a refusal quotes, at most `QUOTED_BYTES_MAX` bytes.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    excerpt(text, QUOTED_BYTES_MAX)
}

/// Bytes of a character in a JSON text.
const fn json_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// The beginning of a text as [`excerpt`] makes it, where `bytes_max` bounds the bytes that the text has in JSON.
fn excerpt_of_json(text: String, bytes_max: usize) -> String {
    // Most texts are far from it.
    if text.len() * 6 <= bytes_max {
        return text;
    }
    let mut left = bytes_max;
    let beyond = text.char_indices().find(|(_, character)| match left.checked_sub(json_bytes(*character)) {
        Some(less) => {
            left = less;
            false
        }
        None => true,
    });
    match beyond {
        Some((end, _)) => excerpt(&text, end).into_owned(),
        None => text,
    }
}

/// A fault as documents have it. A pointer that is cut ends behind a whole step.
fn told(fault: &Fault) -> Fault {
    let mut pointer = excerpt_of_json(fault.pointer.clone(), POINTER_BYTES_MAX);
    if pointer.len() != fault.pointer.len() {
        pointer.truncate(pointer.rfind('/').unwrap_or(0));
        pointer.push_str("/…");
    }
    Fault { pointer, detail: excerpt_of_json(fault.detail.clone(), DETAIL_BYTES_MAX) }
}

/// The first faults, as many as may be told.
fn listed(faults: &[Fault]) -> Vec<Fault> {
    let mut left = FAULTS_BYTES_MAX;
    let mut listed = Vec::new();
    for fault in faults.iter().map(told) {
        let bytes = FAULT_BYTES
            + [&fault.pointer, &fault.detail]
                .into_iter()
                .flat_map(|text| text.chars())
                .map(json_bytes)
                .sum::<usize>();
        let Some(less) = left.checked_sub(bytes) else { break };
        left = less;
        listed.push(fault);
    }
    listed
}

/// The first links, as many as may be told.
fn listed_links(links: &[Link]) -> Value {
    let mut left = FAULTS_BYTES_MAX;
    let mut listed = Vec::new();
    for link in links {
        let link: Value = link.iter().map(|(name, id)| ((**name).to_owned(), json!(id))).collect();
        let Some(less) = left.checked_sub(link.to_string().len() + 1) else { break };
        left = less;
        listed.push(link);
    }
    listed.into()
}

/// Bytes of a fault besides its pointer and its detail.
const FAULT_BYTES: usize = r#"{"pointer":"","detail":""},"#.len();

impl ApiError {
    /// One fault of a document.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![Fault { pointer: pointer.into(), detail: detail.into() }])
    }

    /// The frame `problem`, with the request's `ref` where that could be read.
    pub(crate) fn frame(&self, reference: Option<&str>) -> String {
        let problem = serde_json::to_string(&self.problem()).unwrap_or_default();
        match reference {
            Some(reference) => format!(r#"{{"op":"problem","ref":{reference},"problem":{problem}}}"#),
            None => format!("{BEFORE_PROBLEM}{problem}}}"),
        }
    }

    /// When it makes sense to try again, in seconds.
    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        if let Self::TooCostly { debt, .. } = self {
            return Some(u32::try_from(debt.as_secs()).unwrap_or(u32::MAX).saturating_add(1));
        }
        if matches!(
            self,
            Self::TooFast { .. }
                | Self::TooManyMoves { .. }
                | Self::Unread { .. }
                | Self::Overloaded
                | Self::Late
                | Self::Storage
                | Self::Full
                | Self::NotStored(_)
                | Self::Recovering { .. }
                | Self::NoKeys
                | Self::Stopping
        ) {
            return Some(1);
        }
        None
    }

    /// Value of `WWW-Authenticate` (RFC 6750, 3): the kind of token that would do. `None` where no token would.
    pub(crate) fn challenge(&self) -> Option<String> {
        let error = if let Self::Unauthenticated { has_token: false, .. } = self {
            String::new()
        } else if matches!(self, Self::Unauthenticated { .. } | Self::TokenExpired) {
            r#", error="invalid_token""#.to_owned()
        } else if let Self::Forbidden { scope: Some(scope), .. } = self {
            format!(r#", error="insufficient_scope", scope="{scope}""#)
        } else {
            return None;
        };
        Some(format!(r#"Bearer realm="nearcast"{error}"#))
    }

    /// Turns the refusal of a document into that of the document around it, in which the refused one is the part at `parent`
    /// (a JSON pointer). Faults get the prefix; a malformed part becomes an invalid document, since line and column would be
    /// the part's own.
    pub(crate) fn below(mut self, parent: &str) -> Self {
        if let Self::Invalid(faults) = &mut self {
            faults.iter_mut().for_each(|fault| fault.pointer.insert_str(0, parent));
        } else if let Self::Malformed { detail, .. } = self {
            // Line and column are those of the part alone.
            return Self::invalid(parent, detail);
        }
        self
    }

    /// The document that tells it.
    pub(crate) fn problem(&self) -> Problem {
        let ProblemKind { code, title, status, .. } = *self.kind();
        let mut problem = Problem {
            kind: format!("{PROBLEM_PREFIX}{code}"),
            title: title.to_owned(),
            status,
            detail: self.detail().map(|detail| excerpt_of_json(detail, DETAIL_BYTES_MAX)),
            errors: Vec::new(),
            facts: Default::default(),
        };
        if let Self::Unauthenticated { has_token: true, .. } = self {
            problems::TOKEN_REFUSED.clone_into(&mut problem.title);
        }
        let mut fact = |name: &str, value: Value| problem.facts.insert(name.to_owned(), value);
        if let Self::Malformed { line, column, .. } = self {
            fact("line", Value::from(*line));
            fact("column", Value::from(*column));
        } else if let Self::TooLarge { limit, setting, .. }
        | Self::Limit { limit, setting, .. }
        | Self::Unread { limit, setting, .. }
        | Self::TooFast { limit, setting }
        | Self::TooManyMoves { limit, setting } = self
        {
            fact("limit", Value::from(*limit));
            fact("setting", Value::from(*setting));
        } else if let Self::TooCostly { limit, setting, costliest, .. } = self {
            fact("limit", Value::from(*limit));
            fact("setting", Value::from(*setting));
            let told = |cost: &Cost| json!({"subscription": &*cost.subscription, "engine_ms": cost.ms});
            fact("costliest", costliest.iter().map(told).collect());
        } else if let Self::Recovering { phase, done, of } = self {
            fact("phase", Value::from(*phase));
            fact("done", Value::from(*done));
            fact("of", Value::from(*of));
        } else if let Self::Inconsistent { check, links } = self {
            fact("check", Value::from(&*quoted(check)));
            fact("links", listed_links(links));
        } else if matches!(self, Self::NoKeys) {
            fact("phase", Value::from("keys of the issuer"));
            fact("done", Value::from(0));
            fact("of", Value::from(1));
        } else if let Self::Invalid(faults) = self {
            problem.errors = listed(faults);
        }
        problem
    }

    /// The code by which programs know the refusal.
    pub(crate) fn code(&self) -> &'static str {
        self.kind().code
    }

    fn kind(&self) -> &'static ProblemKind {
        match self {
            Self::Malformed { .. } => &problems::MALFORMED_JSON,
            Self::Invalid(_) => &problems::INVALID_DOCUMENT,
            Self::TooLarge { .. } => &problems::TOO_LARGE,
            Self::Limit { .. } => &problems::LIMIT_REACHED,
            Self::TooFast { .. } => &problems::TOO_MANY_EVENTS,
            Self::TooManyMoves { .. } => &problems::TOO_MANY_MOVES,
            Self::TooCostly { .. } => &problems::TOO_COSTLY,
            Self::Unread { .. } | Self::Overloaded => &problems::OVERLOADED,
            Self::Storage | Self::Full | Self::NotStored(_) => &problems::STORAGE,
            Self::Elsewhere { .. } => &problems::ELSEWHERE,
            Self::Stopping => &problems::STOPPING,
            Self::Recovering { .. } | Self::NoKeys => &problems::RECOVERING,
            Self::TooSlow | Self::BelowRate => &problems::TOO_SLOW,
            Self::Interrupted => &problems::INTERRUPTED,
            Self::MediaType { .. } => &problems::UNSUPPORTED_MEDIA_TYPE,
            Self::BadRequest(_) => &problems::BAD_REQUEST,
            Self::NotFound(_) => &problems::NOT_FOUND,
            Self::NoPush => &problems::NO_PUSH,
            Self::NoStreets => &problems::NO_STREETS,
            Self::NoRoute(_) => &problems::NO_ROUTE,
            Self::Late => &problems::LATE,
            Self::Inconsistent { .. } => &problems::INCONSISTENT,
            Self::MethodNotAllowed { .. } => &problems::METHOD_NOT_ALLOWED,
            Self::WebSocketVersion => &problems::WEBSOCKET_VERSION,
            Self::ForeignOrigin(_) => &problems::FOREIGN_ORIGIN,
            Self::ForeignHost(_) => &problems::FOREIGN_HOST,
            Self::Unauthenticated { .. } => &problems::UNAUTHENTICATED,
            Self::TokenExpired => &problems::TOKEN_EXPIRED,
            Self::Forbidden { .. } => &problems::FORBIDDEN,
            Self::Internal(_) => &problems::INTERNAL,
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Malformed { detail, line, column } => format!("{detail} at line {line} column {column}"),
            Self::Invalid(faults) => match faults.as_slice() {
                [] => return None,
                [one] if one.pointer.is_empty() => one.detail.clone(),
                [one, rest @ ..] => {
                    let Fault { pointer, detail } = told(one);
                    let more =
                        if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                    let room = DETAIL_BYTES_MAX.saturating_sub(pointer.len() + more.len() + 16);
                    format!("{pointer}: {}{more}", excerpt(&detail, room))
                }
            },
            Self::TooLarge { what, limit, setting } => {
                format!("{what} may have at most {limit} bytes ({setting})")
            }
            Self::Limit { what, limit, setting } => format!("at most {limit} {what} ({setting})"),
            Self::Unread { what, limit, setting } => {
                format!("at most {limit} {what} may be on their way ({setting}): read those first")
            }
            Self::TooFast { limit, setting } => format!("at most {limit} events per second ({setting})"),
            Self::TooManyMoves { limit, setting } => format!("at most {limit} moves per second ({setting})"),
            Self::TooCostly { limit, setting, costliest, .. } => too_costly(*limit, setting, costliest),
            Self::Overloaded => {
                "the broker has more to do than it can in time, and nothing was done of this".to_owned()
            }
            Self::Storage => {
                "the disk takes nothing now: this is not on disk, and may still take effect".to_owned()
            }
            Self::Full => FULL.to_owned(),
            Self::Elsewhere { url } => format!("another broker of the cluster serves this client: {url}"),
            Self::Stopping => "the broker takes no more requests; ask again when it is back".to_owned(),
            Self::Recovering { phase: STANDBY, .. } => {
                "this broker is not the active one of its cluster: it follows, and takes over when no other one is active. \
                 Where none is ready, their logs say why: NATS may be out of reach"
                    .to_owned()
            }
            Self::Recovering { phase, done, of } => {
                format!(
                    "the broker takes up what is on disk ({phase}: {done} of {of}); ask again when it is ready"
                )
            }
            Self::NoKeys => {
                "the keys to check tokens with cannot be fetched from their issuer yet; ask again when the broker is ready"
                    .to_owned()
            }
            Self::MethodNotAllowed { asked, possible } => {
                format!("{} is not possible here: {possible}", quoted(asked))
            }
            Self::Inconsistent { check, .. } => {
                format!("the event does not fit with those before it, by the check {}", quoted(check))
            }
            Self::NoStreets => "this broker knows no streets (routes.streets)".to_owned(),
            Self::Late => "there was no time to find it within deadline_ms".to_owned(),
            Self::NoPush => "this broker sends no push messages (push.enabled)".to_owned(),
            Self::WebSocketVersion => "Sec-WebSocket-Version must be 13".to_owned(),
            Self::TooSlow => "the body paused for too long (connection.body_timeout_ms)".to_owned(),
            Self::BelowRate => "the body came too slowly (connection.body_bytes_per_second)".to_owned(),
            Self::Interrupted => "the connection ended within the body".to_owned(),
            Self::MediaType { found, understood } => {
                let hint = if found.starts_with(FORM) { CURLS } else { "" };
                format!("{} is not understood here: {understood}{hint}", quoted(found))
            }
            Self::BadRequest(detail)
            | Self::NotFound(detail)
            | Self::NoRoute(detail)
            | Self::NotStored(detail)
            | Self::ForeignOrigin(detail) => detail.clone(),
            Self::ForeignHost(host) => {
                let host = quoted(host);
                format!(
                    "{host} is not an address, not localhost and not in server.hosts: it could be a name that a page of elsewhere \
                     has led here"
                )
            }
            Self::Unauthenticated { detail, .. } | Self::Forbidden { detail, .. } => detail.clone(),
            Self::TokenExpired => "the token's time is over (claim exp)".to_owned(),
            Self::Internal(detail) => (*detail).to_owned(),
        })
    }
}

fn too_costly(limit: u64, setting: &str, costliest: &[Cost]) -> String {
    let mut text =
        format!("at most {limit} ms of an engine's time per second ({setting}), and more was used");
    for (index, Cost { subscription, ms }) in costliest.iter().enumerate() {
        text += if index == 0 { "; the costliest subscriptions of late: " } else { ", " };
        text += &format!("{subscription} {ms} ms");
    }
    text
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Self::Invalid(vec![fault])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(refusal: &ApiError) -> usize {
        serde_json::to_string(&refusal.problem()).unwrap().len()
    }

    /// Bytes that any problem may take.
    const PROBLEM_BYTES_MAX: usize = 4_096;

    #[test]
    fn a_problem_is_small_whatever_it_repeats() {
        for piece in ["x", "/", "\u{1}", "\"", "ü", "\u{10ffff}"] {
            let long = piece.repeat(1 << 16);
            let refusals = [
                ApiError::Malformed { detail: long.clone(), line: 1, column: 1 },
                ApiError::invalid(long.clone(), long.clone()),
                ApiError::invalid("", long.clone()),
                ApiError::Invalid(vec![Fault { pointer: long.clone(), detail: long.clone() }; 1_000]),
                ApiError::Invalid(vec![Fault { pointer: "/a".to_owned(), detail: "b".to_owned() }; 1_000]),
                ApiError::invalid("/a", "b").below(&long),
                ApiError::NotStored(long.clone()),
                ApiError::MediaType { found: long.clone(), understood: "application/json" },
                ApiError::MethodNotAllowed { asked: long.clone(), possible: "GET".to_owned() },
                ApiError::BadRequest(long.clone()),
                ApiError::NotFound(long.clone()),
                ApiError::ForeignOrigin(long.clone()),
                ApiError::ForeignHost(long.clone()),
                ApiError::Inconsistent {
                    check: long.as_str().into(),
                    links: vec![vec![("a".into(), long.as_str().into())]].into(),
                },
                ApiError::Inconsistent {
                    check: "c".into(),
                    links: vec![vec![("a".into(), piece.into())]; 1_000].into(),
                },
                ApiError::Unauthenticated { detail: long.clone(), has_token: true },
                ApiError::Forbidden { detail: long.clone(), scope: None },
            ];
            for refusal in refusals {
                let told = bytes(&refusal);
                assert!(told <= PROBLEM_BYTES_MAX, "{} with {piece:?}: {told} bytes", refusal.code());
                let problem = refusal.problem();
                assert!(problem.errors.is_empty() != matches!(refusal, ApiError::Invalid(_)));
            }
        }
    }

    #[test]
    fn a_pointer_is_cut_behind_a_step() {
        let refusal = ApiError::invalid("/abcdefg".repeat(100), "must be there");
        let [fault] = refusal.problem().errors.try_into().unwrap();
        assert_eq!(fault.pointer, format!("{}/…", "/abcdefg".repeat(POINTER_BYTES_MAX / 8 - 1)));
        assert_eq!(fault.detail, "must be there");
    }

    #[test]
    fn what_is_short_is_told_as_it_is() {
        let faults: Vec<_> = (0..20)
            .map(|index| Fault { pointer: format!("/{index}"), detail: "must be there".to_owned() })
            .collect();
        let problem = ApiError::Invalid(faults.clone()).problem();
        assert_eq!(problem.errors, faults);
        assert_eq!(problem.detail.as_deref(), Some("/0: must be there (and 19 more)"));
    }

    #[test]
    fn a_detail_that_is_cut_still_counts_the_others() {
        let faults = vec![Fault { pointer: "/a".to_owned(), detail: "x".repeat(10_000) }; 3];
        let detail = ApiError::Invalid(faults).problem().detail.unwrap();
        assert!(detail.ends_with("… (and 2 more)") && detail.len() <= DETAIL_BYTES_MAX, "{detail}");
    }

    #[test]
    fn an_excerpt_is_of_whole_characters() {
        assert_eq!(excerpt("abc", 3), "abc");
        assert_eq!(excerpt("abcd", 3), "abc…");
        assert_eq!(excerpt("aüü", 4), "aü…");
        assert_eq!(excerpt_of_json("\u{1}".repeat(300), 12), "\u{1}\u{1}…");
    }
}
