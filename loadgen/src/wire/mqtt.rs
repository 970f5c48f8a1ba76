//! MQTT 3.1.1 at QoS 0, as Mosquitto speaks it.

use bytes::BytesMut;
use mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PingReq, Publish, Subscribe, SubscribeFilter, SubscribeReasonCode,
    Unsubscribe,
};
use mqttbytes::{Error, PacketType, QoS};

use super::cells::{Cell, Cells};
use super::documents::number_of_feature;
use super::topics::{LACKS, Speaker, Tongue, Topic, Turns};
use super::{Cause, Garbled, Hear, Speak, Told, Wire};
use crate::plan::Client;

/// The largest packet; those that come are events.
const PACKET_BYTES_MAX: usize = 1024 * 1024;

/// Mosquitto, with a topic for each cell.
#[derive(Clone, Debug)]
pub struct Mosquitto {
    /// The cells that stand for areas and places.
    pub cells: Cells,
}

impl Wire for Mosquitto {
    fn name(&self) -> &'static str {
        "mosquitto"
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

impl Mosquitto {
    fn ends(&self, name: &str, client: Option<&Client>) -> (Box<dyn Speak>, Box<dyn Hear>) {
        let turns = Turns::default();
        let speaker = Speaker::new(Packets::new(name), self.cells, client, turns.clone());
        (Box::new(speaker), Box::new(Listener { turns }))
    }
}

/// What a client says.
struct Packets {
    name: String,
    last: u16,
    buffer: BytesMut,
}

impl Packets {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), last: 0, buffer: BytesMut::new() }
    }

    /// The next packet's identifier, which is never 0. Of the few that are under way none has it still.
    fn next(&mut self) -> u16 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        self.last
    }

    fn say(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut BytesMut) -> Result<usize, Error>) {
        self.buffer.clear();
        write(&mut self.buffer).expect("what is said is far below 256 MiB");
        out.extend_from_slice(&self.buffer);
    }
}

fn topic_name(topic: Topic) -> String {
    match topic {
        Topic::All => "cell/#".to_owned(),
        Topic::Of(Cell { row, column }) => format!("cell/{row}/{column}"),
    }
}

impl Tongue for Packets {
    fn open(&mut self, out: &mut Vec<u8>) {
        let mut connect = Connect::new(self.name.as_str());
        // Thousands that say nothing for long are what is measured.
        connect.keep_alive = 0;
        self.say(out, |buffer| connect.write(buffer));
    }

    fn subscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>) {
        let filters = topics.iter().map(|topic| SubscribeFilter::new(topic_name(*topic), QoS::AtMostOnce));
        let mut subscribe = Subscribe::new_many(filters);
        subscribe.pkid = self.next();
        self.say(out, |buffer| subscribe.write(buffer));
    }

    fn unsubscribe(&mut self, topics: &[Topic], out: &mut Vec<u8>) {
        let topics = topics.iter().map(|topic| topic_name(*topic)).collect();
        let unsubscribe = Unsubscribe { pkid: self.next(), topics };
        self.say(out, |buffer| unsubscribe.write(buffer));
    }

    fn publish(&mut self, cell: Cell, payload: &[u8], out: &mut Vec<u8>) {
        let publish = Publish::new(topic_name(Topic::Of(cell)), QoS::AtMostOnce, payload);
        self.say(out, |buffer| publish.write(buffer));
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        self.say(out, |buffer| PingReq.write(buffer));
    }

    fn pong(&mut self, _out: &mut Vec<u8>) {
        unreachable!("brokers of MQTT ask for nothing");
    }
}

/// What a client hears.
struct Listener {
    turns: Turns,
}

impl Hear for Listener {
    fn hear(&mut self, bytes: &[u8], told: &mut dyn FnMut(Told<'_>)) -> Result<usize, Garbled> {
        let garbled = |error: Error| Garbled(format!("{error:?}"));
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let header = match mqttbytes::check(rest.iter(), PACKET_BYTES_MAX) {
                Ok(header) => header,
                Err(Error::InsufficientBytes(_)) => return Ok(at),
                Err(error) => return Err(garbled(error)),
            };
            let packet = &rest[..header.frame_length()];
            at += packet.len();
            if header.packet_type().map_err(garbled)? == PacketType::Publish {
                // Without a copy, which a delivery is too small to pay for.
                let number = number_of_feature(payload(packet)?);
                told(Told::Event { number, offset: None, cause: Cause::Published, is_ahead: false });
                continue;
            }
            match mqttbytes::v4::read(&mut packet.into(), PACKET_BYTES_MAX).map_err(garbled)? {
                Packet::ConnAck(answer) if answer.code == ConnectReturnCode::Success => {
                    told(Told::Ready { epoch: "", offset: 0 });
                }
                Packet::ConnAck(answer) => told(Told::Closed(&format!("{:?}", answer.code))),
                Packet::SubAck(answer) => {
                    if answer.return_codes.contains(&SubscribeReasonCode::Failure) {
                        told(Told::Refused(None, "a subscription"));
                    }
                }
                Packet::PingResp => told(self.turns.answered()?),
                Packet::UnsubAck(_) => {}
                other @ (Packet::Connect(_)
                | Packet::Publish(_)
                | Packet::PubAck(_)
                | Packet::PubRec(_)
                | Packet::PubRel(_)
                | Packet::PubComp(_)
                | Packet::Subscribe(_)
                | Packet::Unsubscribe(_)
                | Packet::PingReq
                | Packet::Disconnect) => return Err(Garbled(format!("{other:?}"))),
            }
        }
    }
}

/// What was published at QoS 0, behind the length of the packet and the name of the topic.
fn payload(packet: &[u8]) -> Result<&[u8], Garbled> {
    let short = || Garbled("a publish that is cut short".to_owned());
    if packet[0] & 0b0110 != 0 {
        return Err(Garbled("a publish that was not asked for: its QoS is not 0".to_owned()));
    }
    let head = packet.iter().skip(1).position(|byte| byte & 0x80 == 0).ok_or_else(short)? + 2;
    let (length, rest) = packet[head..].split_first_chunk().ok_or_else(short)?;
    rest.get(usize::from(u16::from_be_bytes(*length))..).ok_or_else(short)
}

#[cfg(test)]
mod tests {
    use super::super::topics::tests::{Heard, byte_by_byte, conversation};
    use super::*;

    /// A packet of less than 128 bytes.
    fn packet(first: u8, parts: &[&[u8]]) -> Vec<u8> {
        let rest = parts.concat();
        [&[first, u8::try_from(rest.len()).unwrap()][..], &rest].concat()
    }

    #[test]
    fn a_client_and_a_publisher_say_what_the_protocol_wants() {
        let said = conversation(|client, cells| Mosquitto { cells }.ends("ann", client));
        // Level 4, a clean session, no keep-alive.
        assert_eq!(said.open, packet(0x10, &[b"\0\x04MQTT", &[4, 2, 0, 0], b"\0\x03ann"]));
        let subscribe = packet(0x82, &[&[0, 1], b"\0\x08cell/0/0\0", b"\0\x08cell/0/1\0"]);
        assert_eq!(said.introduction, [&subscribe[..], &[0xC0, 0]].concat());
        let (entered, left) =
            (packet(0x82, &[&[0, 2], b"\0\x08cell/0/2\0"]), packet(0xA2, &[&[0, 3], b"\0\x08cell/0/0"]));
        assert_eq!(said.moved, [&entered[..], &left, &[0xC0, 0]].concat());
        assert_eq!(said.stayed, b"");
        let topic = b"\0\x09cell/-1/2";
        let length = topic.len() + said.feature.len();
        // Two bytes of a length: seven bits each, the lower ones first.
        let head = [0x30, u8::try_from(length % 128).unwrap() | 0x80, u8::try_from(length / 128).unwrap()];
        assert!(length >= 128);
        assert_eq!(said.published, [&head[..], topic, &said.feature, &[0xC0, 0]].concat());
    }

    #[test]
    fn what_a_broker_says_is_read_however_it_comes() {
        let feature = format!(r#"{{"type":"Feature","id":4711,"note":"{}"}}"#, "x".repeat(200));
        let length = feature.len() + 10;
        let publish = [
            &[0x30, u8::try_from(length % 128).unwrap() | 0x80, u8::try_from(length / 128).unwrap()][..],
            b"\0\x08cell/0/1",
            feature.as_bytes(),
        ];
        let bytes = [
            packet(0x20, &[&[0, 0]]),
            packet(0x90, &[&[0, 1, 0, 0x80]]),
            publish.concat(),
            packet(0x30, &[b"\0\x08cell/0/1"]),
            packet(0xB0, &[&[0, 3]]),
            packet(0xD0, &[]),
            packet(0x20, &[&[0, 5]]),
        ];
        let heard = byte_by_byte(&bytes.concat(), |turns| Box::new(Listener { turns }));
        let expected = [
            Heard::Ready,
            Heard::Refused("a subscription".to_owned()),
            Heard::Event(Some(4711)),
            Heard::Event(None),
            Heard::Done(None),
            Heard::Closed("NotAuthorized".to_owned()),
        ];
        assert_eq!(heard, Ok(expected.to_vec()));
        let garbled = [
            packet(0x30, &[b"\0\x09cell/0/1"]),
            packet(0x32, &[b"\0\x08cell/0/1", &[0, 1]]),
            packet(0x30, &[&[0]]),
            packet(0xC0, &[]),
            vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [packet(0xD0, &[]), packet(0xD0, &[])].concat(),
        ];
        for bytes in garbled {
            assert!(byte_by_byte(&bytes, |turns| Box::new(Listener { turns })).is_err(), "{bytes:?}");
        }
    }
}
