//! Publishing over HTTP: requests of many events, one under way at a time.

use std::io::Write as _;

use matcher::geo::Position;

use super::documents::push_feature;
use super::{Common, Garbled, Hear, Speak, Told};
use crate::plan::Occurrence;

/// Says events in requests. Those that come while one is under way wait for the next.
pub(super) struct Batches {
    common: Common,
    batch: usize,
    /// Lines that wait, and where each ends.
    lines: Vec<u8>,
    ends: Vec<usize>,
    numbers: Vec<u64>,
    is_under_way: bool,
}

impl Batches {
    pub(super) fn new(common: Common, batch: usize) -> Self {
        Self { common, batch, lines: Vec::new(), ends: Vec::new(), numbers: Vec::new(), is_under_way: false }
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
        push_feature(number, occurrence, &mut self.lines);
        self.lines.push(b'\n');
        self.ends.push(self.lines.len());
        self.numbers.push(number);
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Option<Vec<u64>> {
        if self.is_under_way || self.numbers.is_empty() {
            return None;
        }
        let count = self.numbers.len().min(self.batch);
        let bytes = self.ends[count - 1];
        let host = &self.common.host;
        write!(out, "POST /v1/events HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-ndjson\r\n")
            .expect("memory grows");
        if let Some(token) = &self.common.token {
            write!(out, "authorization: Bearer {token}\r\n").expect("memory grows");
        }
        write!(out, "content-length: {bytes}\r\n\r\n").expect("memory grows");
        out.extend_from_slice(&self.lines[..bytes]);
        self.lines.drain(..bytes);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
        self.is_under_way = true;
        Some(self.numbers.drain(..count).collect())
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

/// The status of an answer, its body, and the bytes of all of it.
type Answer<'a> = (u16, &'a [u8], usize);

/// The first answer; none while it is not whole.
pub(crate) fn first(bytes: &[u8]) -> Result<Option<Answer<'_>>, Garbled> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes).map_err(|error| Garbled(error.to_string()))? {
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
