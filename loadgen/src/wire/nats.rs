//! NATS: lines of a few verbs. <https://docs.nats.io/reference/reference-protocols/nats-protocol>

use std::collections::HashMap;
use std::io::Write as _;

use memchr::memchr;

use super::cells::{Cell, Cells};
use super::documents::number_of_feature;
use super::topics::{LACKS, Speaker, Tongue, Topic, Turns};
use super::{Cause, Garbled, Hear, Speak, Told, Wire};
use crate::plan::Client;

/// The longest line; the server's first one has some 500 bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// NATS, with a subject for each cell.
#[derive(Clone, Debug)]
pub struct Nats {
    /// The cells that stand for areas and places.
    pub cells: Cells,
}

impl Wire for Nats {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn lacks(&self) -> &'static [&'static str] {
        LACKS
    }

    fn subscriber(&self, client: &Client) -> (Box<dyn Speak>, Box<dyn Hear>) {
        self.ends(&client.name, Some(client))
    }

    fn publisher(&self, name: &str) -> (Box<dyn Speak>, Box<dyn Hear>) {
        self.ends(name, None)
    }
}

impl Nats {
    fn ends(&self, name: &str, client: Option<&Client>) -> (Box<dyn Speak>, Box<dyn Hear>) {
        let turns = Turns::default();
        let speaker = Speaker::new(Lines::new(name), self.cells, client, turns.clone());
        (Box::new(speaker), Box::new(Listener { is_open: false, turns }))
    }
}

/// What a client says.
struct Lines {
    name: String,
    /// Subscriptions have numbers.
    numbers: HashMap<Topic, u64>,
    last: u64,
}

impl Lines {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), numbers: HashMap::new(), last: 0 }
    }
}

fn push_subject(topic: Topic, out: &mut Vec<u8>) {
    match topic {
        Topic::All => out.extend_from_slice(b"cell.>"),
        Topic::Of(Cell { row, column }) => {
            let mut number = itoa::Buffer::new();
            out.extend_from_slice(b"cell.");
            out.extend_from_slice(number.format(row).as_bytes());
            out.push(b'.');
            out.extend_from_slice(number.format(column).as_bytes());
        }
    }
}

impl Tongue for Lines {
    /// Once the server has told of itself, which it does first.
    fn greet(&mut self, out: &mut Vec<u8>) {
        let options = serde_json::json!({
            "verbose": false,
            "pedantic": false,
            "echo": false,
            "headers": false,
            "protocol": 1,
            "lang": "rust",
            "version": env!("CARGO_PKG_VERSION"),
            "name": self.name,
        });
        write!(out, "CONNECT {options}\r\n").expect("memory grows");
    }

    fn subscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>) {
        for topic in topics {
            self.last += 1;
            self.numbers.insert(*topic, self.last);
            out.extend_from_slice(b"SUB ");
            push_subject(*topic, out);
            write!(out, " {}\r\n", self.last).expect("memory grows");
        }
    }

    fn unsubscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>) {
        for topic in topics {
            if let Some(number) = self.numbers.remove(topic) {
                write!(out, "UNSUB {number}\r\n").expect("memory grows");
            }
        }
    }

    fn publish(&mut self, cell: Cell, payload: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"PUB ");
        push_subject(Topic::Of(cell), out);
        write!(out, " {}\r\n", payload.len()).expect("memory grows");
        out.extend_from_slice(payload);
        out.extend_from_slice(b"\r\n");
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"PING\r\n");
    }

    fn pong(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"PONG\r\n");
    }
}

/// What a client hears.
struct Listener {
    /// Whether the server has told of itself; it may do so again.
    is_open: bool,
    turns: Turns,
}

impl Hear for Listener {
    fn hear(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told<'_>)) -> Result<usize, Garbled> {
        let mut at = 0;
        while let Some(line) = first_line(&bytes[at..])? {
            let end = at + line.len() + 2;
            if let Some(head) = line.strip_prefix(b"MSG ") {
                let unread = || Garbled(String::from_utf8_lossy(line).into_owned());
                let count = head.rsplit(|byte| *byte == b' ').next();
                let count = count
                    .and_then(|count| str::from_utf8(count).ok()?.parse::<usize>().ok())
                    .ok_or_else(unread)?;
                let Some(rest) = bytes.get(end..end.saturating_add(count).saturating_add(2)) else {
                    return Ok(at);
                };
                let payload = rest.strip_suffix(b"\r\n").ok_or_else(unread)?;
                let number = number_of_feature(payload);
                told(Told::Event { number, offset: None, cause: Cause::Published, is_ahead: false });
                at = end + rest.len();
                continue;
            }
            match line {
                b"PONG" => told(self.turns.answered()?),
                b"PING" => told(Told::Ping(&[])),
                b"+OK" => {}
                _ if line.starts_with(b"INFO ") => {
                    if !std::mem::replace(&mut self.is_open, true) {
                        told(Told::Ready { epoch: "", offset: 0 });
                    }
                }
                _ if line.starts_with(b"-ERR ") => told(Told::Closed(&String::from_utf8_lossy(&line[5..]))),
                _ => return Err(Garbled(String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned())),
            }
            at = end;
        }
        Ok(at)
    }
}

/// The first line, without its end; none while it is not whole.
fn first_line(bytes: &[u8]) -> Result<Option<&[u8]>, Garbled> {
    match memchr(b'\n', bytes) {
        Some(end) => {
            let line = bytes[..end].strip_suffix(b"\r");
            line.map(Some).ok_or_else(|| Garbled("a line that ends without a carriage return".to_owned()))
        }
        None if bytes.len() > LINE_BYTES_MAX => Err(Garbled("a line without an end".to_owned())),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::topics::tests::{Heard, byte_by_byte, conversation};
    use super::*;

    #[test]
    fn a_client_and_a_publisher_say_what_the_protocol_wants() {
        let nats = |client: Option<&Client>, cells| Nats { cells }.ends("ann", client);
        let said = conversation(nats);
        assert_eq!(said.open, b"");
        let introduction = String::from_utf8(said.introduction).unwrap();
        let (connect, rest) = introduction.split_once("\r\n").unwrap();
        let options: serde_json::Value =
            serde_json::from_str(connect.strip_prefix("CONNECT ").unwrap()).unwrap();
        assert_eq!(
            (&options["verbose"], &options["echo"], &options["name"]),
            (&false.into(), &false.into(), &"ann".into())
        );
        assert_eq!(rest, "SUB cell.0.0 1\r\nSUB cell.0.1 2\r\nPING\r\n");
        assert_eq!(said.moved, b"SUB cell.0.2 3\r\nUNSUB 1\r\nPING\r\n");
        assert_eq!(said.stayed, b"");
        let feature = said.feature.len();
        let published =
            format!("PUB cell.-1.2 {feature}\r\n{}\r\nPING\r\n", String::from_utf8(said.feature).unwrap());
        assert_eq!(String::from_utf8(said.published).unwrap(), published);
    }

    #[test]
    fn what_a_server_says_is_read_however_it_comes() {
        let mut text = b"INFO {\"server_id\":\"A\"}\r\nPING\r\nMSG cell.0.1 2 37\r\n".to_vec();
        text.extend_from_slice(b"{\"type\":\"Feature\",\"id\":4711,\"b\":\"\r\n\"}\r\nINFO {}\r\n");
        text.extend_from_slice(b"MSG cell.0.1 2 reply 0\r\n\r\nPONG\r\n-ERR 'Stale Connection'\r\n");
        let heard = byte_by_byte(&text, |turns| Box::new(Listener { is_open: false, turns }));
        let expected = [
            Heard::Ready,
            Heard::Ping,
            Heard::Event(Some(4711)),
            Heard::Event(None),
            Heard::Done(None),
            Heard::Closed("'Stale Connection'".to_owned()),
        ];
        assert_eq!(heard, Ok(expected.to_vec()));
        for garbled in ["HELLO\r\n", "PING\n", "PONG\r\nPONG\r\n", "MSG a 1 x\r\n", "MSG a 1 2\r\nabcd"] {
            let heard = byte_by_byte(garbled.as_bytes(), |turns| Box::new(Listener { is_open: true, turns }));
            assert!(heard.is_err(), "{garbled}");
        }
    }
}
