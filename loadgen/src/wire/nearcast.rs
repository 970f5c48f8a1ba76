//! nearcast's own protocol: WebSockets for all, or HTTP requests of many events for publishers.

use std::time::Duration;

use matcher::geo::Position;
use memchr::memmem;
use tungstenite::handshake::client::generate_key;
use tungstenite::protocol::frame::coding::{Control, OpCode};

use super::documents::{push_coordinates, push_feature, push_subscription};
use super::http::{Batches, no_head};
use super::{Cause, Common, Garbled, Hear, Speak, Told, Wire, frames};
use crate::plan::{Client, Occurrence, Wish};

/// The most that an answer to a handshake may have.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// How events are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Each in a frame, answered by a frame.
    WebSocket,
    /// As newline-delimited JSON: all that are due while the last request is under way, up to a bound.
    Http {
        /// Events of a request.
        batch: usize,
    },
}

/// The protocol.
#[derive(Clone, Debug)]
pub struct Nearcast {
    /// Where, and who we are.
    pub common: Common,
    /// How events are published.
    pub over: Over,
}

impl Wire for Nearcast {
    fn name(&self) -> &'static str {
        "nearcast"
    }

    fn lacks(&self) -> &'static [&'static str] {
        &[]
    }

    fn subscriber(&self, client: &Client) -> (Box<dyn Speak>, Box<dyn Hear>) {
        let speaker =
            Speaker { common: self.common.clone(), name: client.name.clone(), wishes: client.wishes.clone() };
        (Box::new(speaker), Box::new(Listener::default()))
    }

    fn publisher(&self, name: &str) -> (Box<dyn Speak>, Box<dyn Hear>) {
        match self.over {
            Over::WebSocket => {
                let speaker =
                    Speaker { common: self.common.clone(), name: name.to_owned(), wishes: Vec::new() };
                (Box::new(speaker), Box::new(Listener::default()))
            }
            Over::Http { batch } => {
                (Box::new(Batches::new(self.common.clone(), batch)), Box::new(super::http::Answers))
            }
        }
    }
}

/// What a client says.
struct Speaker {
    common: Common,
    name: String,
    wishes: Vec<Wish>,
}

impl Speak for Speaker {
    fn open(&mut self, resume: Option<&str>, out: &mut Vec<u8>) {
        let (name, host, key) = (&self.name, &self.common.host, generate_key());
        let query = resume.map_or(String::new(), |resume| format!("?resume={resume}"));
        let token = self
            .common
            .token
            .as_ref()
            .map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
        let request = format!(
            "GET /v1/clients/{name}/ws{query} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n{token}\r\n"
        );
        out.extend_from_slice(request.as_bytes());
    }

    fn introduce(&mut self, position: Option<&Position>, out: &mut Vec<u8>) -> u64 {
        if let Some(position) = position {
            self.move_home(position, out);
        }
        for wish in &self.wishes {
            frames::push_text(out, |out| {
                out.extend_from_slice(br#"{"op":"subscribe","ref":"hello","id":""#);
                out.extend_from_slice(wish.id.as_bytes());
                out.extend_from_slice(br#"","#);
                push_subscription(wish, out);
                out.push(b'}');
            });
        }
        u64::from(position.is_some()) + self.wishes.len() as u64
    }

    fn move_home(&mut self, to: &Position, out: &mut Vec<u8>) {
        frames::push_text(out, |out| {
            out.extend_from_slice(br#"{"op":"move","ref":"hello","coordinates":"#);
            push_coordinates(to, out);
            out.push(b'}');
        });
    }

    fn move_to(&mut self, to: &Position, number: Option<u64>, out: &mut Vec<u8>) {
        frames::push_text(out, |out| {
            out.extend_from_slice(br#"{"op":"move","#);
            if let Some(number) = number {
                out.extend_from_slice(br#""ref":"#);
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                out.push(b',');
            }
            out.extend_from_slice(br#""coordinates":"#);
            push_coordinates(to, out);
            out.push(b'}');
        });
    }

    fn publish(&mut self, number: u64, occurrence: &Occurrence, out: &mut Vec<u8>) {
        frames::push_text(out, |out| {
            out.extend_from_slice(br#"{"op":"publish","ref":"#);
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            out.extend_from_slice(br#","event":"#);
            push_feature(number, occurrence, out);
            out.push(b'}');
        });
    }

    fn acknowledge(&mut self, offset: u64, out: &mut Vec<u8>) {
        frames::push_text(out, |out| {
            out.extend_from_slice(br#"{"op":"ack","offset":"#);
            out.extend_from_slice(itoa::Buffer::new().format(offset).as_bytes());
            out.push(b'}');
        });
    }

    fn pong(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        frames::push(OpCode::Control(Control::Pong), out, |out| out.extend_from_slice(payload));
    }
}

/// What a client hears.
#[derive(Default)]
struct Listener {
    /// Whether the handshake is over.
    is_open: bool,
}

impl Hear for Listener {
    fn hear(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told<'_>)) -> Result<usize, Garbled> {
        let mut at = 0;
        if !self.is_open {
            match handshake(bytes)? {
                None => return Ok(0),
                Some((101, head)) => at = head,
                Some((status, head)) => {
                    let body: serde_json::Value = serde_json::from_slice(&bytes[head..]).unwrap_or_default();
                    let detail = [&body["title"], &body["detail"]].map(|text| text.as_str());
                    let detail: String =
                        detail.into_iter().flatten().map(|text| format!(": {text}")).collect();
                    let token = match status {
                        401 | 403 => {
                            "; a token (--token, NEARCAST_TOKEN) needs the scopes publish, subscribe and admin, and alarm for alarms"
                        }
                        200..=399 => ", as nearcast does not",
                        _ => "",
                    };
                    told(Told::Closed(&format!("the handshake was answered {status}{detail}{token}")));
                    return Ok(bytes.len());
                }
            }
            self.is_open = true;
        }
        while let Some((frame, length)) = frames::first(&bytes[at..])? {
            match frame {
                frames::Frame::Text(text) => told(read(text)?),
                frames::Frame::Ping(payload) => told(Told::Ping(payload)),
                frames::Frame::Close(payload) => {
                    let reason = payload.get(2..).map_or("", |reason| str::from_utf8(reason).unwrap_or(""));
                    told(Told::Closed(reason));
                }
                frames::Frame::Other => {}
            }
            at += length;
        }
        Ok(at)
    }
}

/// The status of the answer to a handshake, and where its head ends; none while that is not whole.
fn handshake(bytes: &[u8]) -> Result<Option<(u16, usize)>, Garbled> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => Ok(Some((response.code.unwrap_or_default(), head))),
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => Ok(None),
        Ok(httparse::Status::Partial) => Err(Garbled("a handshake without an end".to_owned())),
        Err(error) => Err(no_head(bytes, error)),
    }
}

/// A frame. Deliveries are not parsed as a whole, which would cost more than the broker takes to make them.
fn read(text: &str) -> Result<Told<'_>, Garbled> {
    const EVENT: &str = r#"{"op":"event","offset":"#;
    // Its beginning says what it is, and not where anybody is.
    let unread = || Garbled(text.chars().take(20).collect());
    if let Some(rest) = text.strip_prefix(EVENT) {
        let (offset, rest) = digits(rest);
        let is_ahead = rest.starts_with(r#","ahead":true"#);
        let cause = memmem::find(rest.as_bytes(), br#""cause":""#).ok_or_else(unread)?;
        let rest = &rest[cause + 9..];
        let cause = match rest {
            rest if rest.starts_with("published") => Cause::Published,
            rest if rest.starts_with("moved") => Cause::Moved,
            _ => Cause::Other,
        };
        // Every event of a plan begins with its number.
        let number = memmem::find(rest.as_bytes(), br#""event":{"type":"Feature","id":"#)
            .and_then(|at| digits(&rest[at + 31..]).0);
        return Ok(Told::Event { number, offset, cause, is_ahead });
    }
    if let Some(rest) = text.strip_prefix(r#"{"op":"ok""#) {
        return Ok(Told::Done(reference(rest)));
    }
    if let Some(rest) = text.strip_prefix(r#"{"op":"problem""#) {
        return Ok(Told::Refused(reference(rest), member(rest, r#""title":""#)));
    }
    if let Some(rest) = text.strip_prefix(r#"{"op":"gap""#) {
        let from = number_of(rest, r#""from":"#).ok_or_else(unread)?;
        let to = number_of(rest, r#""to":"#).ok_or_else(unread)?;
        let count = number_of(rest, r#""count":"#).ok_or_else(unread)?;
        return Ok(Told::Gap { from, to, count, reason: member(rest, r#""reason":""#) });
    }
    if let Some(rest) = text.strip_prefix(r#"{"op":"ready""#) {
        let offset = number_of(rest, r#""offset":"#).ok_or_else(unread)?;
        return Ok(Told::Ready { epoch: member(rest, r#""epoch":""#), offset });
    }
    if let Some(rest) = text.strip_prefix(r#"{"op":"retry""#) {
        let retry_ms = number_of(rest, r#""retry_ms":"#).ok_or_else(unread)?;
        return Ok(Told::Retry(Duration::from_millis(retry_ms)));
    }
    Err(unread())
}

/// The number at the beginning of a text, and what comes behind it.
fn digits(text: &str) -> (Option<u64>, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

fn number_of(text: &str, before: &str) -> Option<u64> {
    digits(&text[text.find(before)? + before.len()..]).0
}

/// A text without escapes.
fn member<'a>(text: &'a str, before: &str) -> &'a str {
    let Some(at) = text.find(before) else { return "" };
    text[at + before.len()..].split('"').next().unwrap_or_default()
}

/// The number that a request has as its reference. What a client says of itself has none.
fn reference(text: &str) -> Option<u64> {
    digits(text.strip_prefix(r#","ref":"#)?).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_protocol_are_read() {
        let event = r#"{"op":"event","offset":17,"subscriptions":["near"],"cause":"published","event":{"type":"Feature","id":4711,"geometry":null}}"#;
        assert_eq!(
            read(event),
            Ok(Told::Event {
                number: Some(4711),
                offset: Some(17),
                cause: Cause::Published,
                is_ahead: false
            })
        );
        let foreign = r#"{"op":"event","offset":18,"subscriptions":["near"],"cause":"moved","event":{"type":"Feature","id":"a","geometry":null}}"#;
        assert_eq!(
            read(foreign),
            Ok(Told::Event { number: None, offset: Some(18), cause: Cause::Moved, is_ahead: false })
        );
        assert_eq!(read(r#"{"op":"ok","ref":7}"#), Ok(Told::Done(Some(7))));
        assert_eq!(read(r#"{"op":"ok","ref":"hello"}"#), Ok(Told::Done(None)));
        let gap = r#"{"op":"gap","from":18,"to":40,"count":23,"reason":"overflow"}"#;
        assert_eq!(read(gap), Ok(Told::Gap { from: 18, to: 40, count: 23, reason: "overflow" }));
        let ready = r#"{"op":"ready","client":"c1","epoch":"e5","offset":3}"#;
        assert_eq!(read(ready), Ok(Told::Ready { epoch: "e5", offset: 3 }));
        let retry = r#"{"op":"retry","retry_ms":730}"#;
        assert_eq!(read(retry), Ok(Told::Retry(Duration::from_millis(730))));
        assert!(read("{}").is_err() && read(r#"{"op":"retry"}"#).is_err());
    }

    #[test]
    fn a_frame_that_comes_byte_by_byte_is_read_once() {
        let mut bytes = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n".to_vec();
        bytes.extend_from_slice(&[0x81, 19]);
        bytes.extend_from_slice(br#"{"op":"ok","ref":7}"#);
        let mut listener = Listener::default();
        let (mut pending, mut heard) = (Vec::new(), 0);
        for byte in bytes {
            pending.push(byte);
            let read = listener.hear(&pending, &mut |told| {
                assert_eq!(told, Told::Done(Some(7)));
                heard += 1;
            });
            pending.drain(..read.unwrap());
        }
        assert_eq!((heard, pending.len()), (1, 0));
    }
}
