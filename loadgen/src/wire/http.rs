//! Publishing over HTTP: requests of many events, one under way at a time.

use std::collections::VecDeque;
use std::io::Write as _;

use matcher::geo::Position;

use super::documents::push_feature;
use super::{Common, Garbled, Hear, Speak, Told};
use crate::plan::Occurrence;

/// How the answer to a word in the clear begins where TLS is spoken: an alert (RFC 8446, section 5.1).
const TLS_ALERT: &[u8] = &[21, 3];

/// Says events in requests. Those that come while one is under way wait for the next.
pub(super) struct Batches {
    common: Common,
    batch: usize,
    /// What waits, in the bodies that it will go in.
    bodies: VecDeque<Body>,
    waiting_bytes: usize,
    is_under_way: bool,
}

/// Lines, and the numbers of their events.
#[derive(Default)]
struct Body {
    lines: Vec<u8>,
    numbers: Vec<u64>,
}

impl Batches {
    pub(super) fn new(common: Common, batch: usize) -> Self {
        Self { common, batch, bodies: VecDeque::new(), waiting_bytes: 0, is_under_way: false }
    }
}

impl Speak for Batches {
    fn open(&mut self, _resume: Option<&str>, out: &mut Vec<u8>) {
        // A first request shows that somebody is there.
        write!(out, "GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", self.common.host).expect("memory grows");
    }

    fn introduce(&mut self, _position: Option<&Position>, _out: &mut Vec<u8>) -> u64 {
        0
    }

    fn move_home(&mut self, _to: &Position, _out: &mut Vec<u8>) {
        unreachable!("who publishes does not move");
    }

    fn move_to(&mut self, _to: &Position, _number: Option<u64>, _out: &mut Vec<u8>) {
        unreachable!("who publishes does not move");
    }

    fn publish(&mut self, number: u64, occurrence: &Occurrence, _out: &mut Vec<u8>) {
        if self.bodies.back().is_none_or(|body| body.numbers.len() >= self.batch) {
            self.bodies.push_back(Body::default());
        }
        if let Some(body) = self.bodies.back_mut() {
            let before = body.lines.len();
            push_feature(number, occurrence, &mut body.lines);
            body.lines.push(b'\n');
            body.numbers.push(number);
            self.waiting_bytes += body.lines.len() - before;
        }
    }

    fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    fn forget(&mut self) {
        self.bodies.clear();
        self.waiting_bytes = 0;
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Option<Vec<u64>> {
        if self.is_under_way {
            return None;
        }
        let Body { lines, numbers } = self.bodies.pop_front()?;
        self.waiting_bytes -= lines.len();
        let host = &self.common.host;
        write!(out, "POST /v1/events HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-ndjson\r\n")
            .expect("memory grows");
        if let Some(token) = &self.common.token {
            write!(out, "authorization: Bearer {token}\r\n").expect("memory grows");
        }
        write!(out, "content-length: {}\r\n\r\n", lines.len()).expect("memory grows");
        out.extend_from_slice(&lines);
        self.is_under_way = true;
        Some(numbers)
    }

    fn answered(&mut self) {
        self.is_under_way = false;
    }

    fn pong(&mut self, _payload: &[u8], _out: &mut Vec<u8>) {}
}

/// Hears their answers.
pub(super) struct Answers;

impl Hear for Answers {
    fn hear(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told<'_>)) -> Result<usize, Garbled> {
        let mut at = 0;
        while let Some((status, body, length)) = first(&bytes[at..])? {
            at += length;
            match status {
                200 => told(Told::Ready { epoch: "", offset: 0 }),
                202 => {
                    let answer: serde_json::Value =
                        serde_json::from_slice(body).map_err(|error| Garbled(error.to_string()))?;
                    let accepted = answer["accepted"].as_u64();
                    told(Told::Batch(Ok(accepted.ok_or_else(|| Garbled(answer.to_string()))?)));
                }
                _ => {
                    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
                    let title = answer["title"].as_str().unwrap_or("no reason given");
                    told(Told::Batch(Err(title)));
                }
            }
        }
        Ok(at)
    }
}

/// Why what came is no answer over HTTP.
pub(super) fn no_head(bytes: &[u8], error: httparse::Error) -> Garbled {
    if bytes.starts_with(TLS_ALERT) {
        return Garbled("it speaks TLS: name it https://HOST:PORT".to_owned());
    }
    Garbled(error.to_string())
}

/// The status of an answer, its body, and the bytes of all of it.
type Answer<'a> = (u16, &'a [u8], usize);

/// The first answer; none while it is not whole.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<Answer<'_>>, Garbled> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes).map_err(|error| no_head(bytes, error))? {
        httparse::Status::Complete(head) => head,
        httparse::Status::Partial => return Ok(None),
    };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    let length = match (length, response.code) {
        (Some(length), _) => length,
        (None, Some(204)) => 0,
        (None, _) => return Err(Garbled("an answer without a length".to_owned())),
    };
    let Some(body) = bytes[head..].get(..length) else { return Ok(None) };
    Ok(Some((response.code.unwrap_or_default(), body, head + length)))
}
