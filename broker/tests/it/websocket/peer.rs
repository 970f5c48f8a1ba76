//! A client that writes frames by hand, and holds what it reads against the letter.

use std::net::SocketAddr;

use super::Manner;
use crate::harness::Raw;

/// The key of the example in RFC 6455, 1.3, and what has to be answered to it.
pub(super) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(super) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Opcodes.
pub(super) const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// A frame as a client sends it, in order until something is changed.
#[derive(Clone)]
pub(super) struct Frame {
    opcode: u8,
    last: bool,
    reserved: u8,
    masked: bool,
    payload: Vec<u8>,
}

impl Frame {
    pub(super) fn new(opcode: u8, payload: impl Into<Vec<u8>>) -> Self {
        Self { opcode, last: true, reserved: 0, masked: true, payload: payload.into() }
    }

    pub(super) fn text(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(TEXT, payload)
    }

    pub(super) fn close(code: u16, reason: &str) -> Self {
        Self::new(CLOSE, [&code.to_be_bytes(), reason.as_bytes()].concat())
    }

    /// A text in parts that end at these offsets, and at its end.
    pub(super) fn parts(payload: &[u8], ends: impl IntoIterator<Item = usize>) -> Vec<Self> {
        let mut start = 0;
        let mut frames = Vec::new();
        for end in ends.into_iter().chain([payload.len()]) {
            let opcode = if frames.is_empty() { TEXT } else { CONTINUATION };
            frames.push(Self::new(opcode, &payload[start..end]).unfinished());
            start = end;
        }
        frames.last_mut().expect("the end is one").last = true;
        frames
    }

    pub(super) fn unfinished(mut self) -> Self {
        self.last = false;
        self
    }

    /// With these of the three reserved bits.
    pub(super) fn reserved(mut self, bits: u8) -> Self {
        self.reserved = bits;
        self
    }

    pub(super) fn without_mask(mut self) -> Self {
        self.masked = false;
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
        let mut bytes = vec![u8::from(self.last) << 7 | self.reserved << 4 | self.opcode];
        let mask_bit = u8::from(self.masked) << 7;
        match (u8::try_from(self.payload.len()), u16::try_from(self.payload.len())) {
            (Ok(length @ ..=125), _) => bytes.push(mask_bit | length),
            (_, Ok(length)) => {
                bytes.push(mask_bit | 126);
                bytes.extend(length.to_be_bytes());
            }
            (_, Err(_)) => {
                bytes.push(mask_bit | 127);
                bytes.extend((self.payload.len() as u64).to_be_bytes());
            }
        }
        let mask = if self.masked { MASK } else { [0; 4] };
        if self.masked {
            bytes.extend(mask);
        }
        bytes.extend(self.payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }
}

/// What the broker sends.
#[derive(Debug)]
pub(super) enum Got {
    Text(String),
    Ping,
    Pong(Vec<u8>),
    /// With its code.
    Close(Option<u16>),
    /// The connection ended without a close.
    Cut,
}

/// The text of a request for a WebSocket, with these headers besides `Host`.
pub(super) fn request(line: &str, headers: &[&str]) -> String {
    format!("{line}\r\nHost: nearcast\r\n{}\r\n\r\n", headers.join("\r\n"))
}

/// A connection.
pub(super) struct Peer {
    raw: Raw,
    /// For messages.
    name: String,
}

impl Peer {
    /// Opens one, past its `ready`.
    pub(super) async fn open(address: SocketAddr, name: &str) -> Self {
        let key = format!("Sec-WebSocket-Key: {KEY}");
        let headers = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", &key];
        let request = request("GET /v1/clients/peer/ws HTTP/1.1", &headers);
        let (head, mut peer) = Self::ask(address, name, request.as_bytes()).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{name}: {head}");
        peer.expect_ready().await;
        peer
    }

    /// Sends the request for one, and returns the head of the response.
    pub(super) async fn ask(address: SocketAddr, name: &str, request: &[u8]) -> (String, Self) {
        let mut raw = Raw::connect(address).await;
        raw.send(request).await;
        let head = raw.head().await;
        (head, Self { raw, name: name.to_owned() })
    }

    pub(super) async fn expect_ready(&mut self) {
        let ready = self.text().await;
        assert!(ready.contains(r#""op":"ready""#), "{}: {ready}", self.name);
    }

    /// Sends bytes; that the broker has closed before the last of them is not a fault.
    pub(super) async fn send(&mut self, bytes: &[u8], manner: Manner) {
        let size = match manner {
            Manner::Together => bytes.len(),
            Manner::Pieces(size) => size,
        };
        for piece in bytes.chunks(size) {
            if !self.raw.send(piece).await {
                break;
            }
        }
    }

    /// Sends some kilobytes of anything, after a while in which the broker can notice what came before; says whether they are taken.
    pub(super) async fn goes_on(&mut self) -> bool {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        self.raw.send(&[b'x'; 8_000]).await
    }

    /// The next frame, which has to be in order.
    pub(super) async fn next(&mut self) -> Got {
        let Some(head) = self.raw.bytes(2).await else { return Got::Cut };
        let name = &self.name;
        let (first, second) = (head[0], head[1]);
        assert_eq!(first & 0xf0, 0x80, "{name}: not the last part, or reserved bits: {first:#x}");
        assert_eq!(second & 0x80, 0, "{name}: the broker masks");
        let opcode = first & 0x0f;
        let length = match second {
            126 => {
                let length = self.length(2).await;
                assert!((126..1 << 16).contains(&length), "{}: {length} in 16 bits", self.name);
                length
            }
            127 => {
                let length = self.length(8).await;
                assert!(length >= 1 << 16, "{}: {length} in 64 bits", self.name);
                length
            }
            length => length.into(),
        };
        let payload =
            self.raw.bytes(length).await.unwrap_or_else(|| panic!("{}: cut off in a frame", self.name));
        let name = &self.name;
        assert!(opcode < CLOSE || length <= 125, "{name}: a control frame of {length} bytes");
        match (opcode, payload.as_slice()) {
            (TEXT, _) => Got::Text(String::from_utf8(payload).expect("texts are UTF-8")),
            (PING, _) => Got::Ping,
            (PONG, _) => Got::Pong(payload),
            (CLOSE, []) => Got::Close(None),
            (CLOSE, [high, low, reason @ ..]) => {
                assert!(str::from_utf8(reason).is_ok(), "{name}: {reason:?}");
                Got::Close(Some(u16::from_be_bytes([*high, *low])))
            }
            _ => panic!("{name}: opcode {opcode} with {length} bytes"),
        }
    }

    /// The next frame, a text.
    pub(super) async fn text(&mut self) -> String {
        let got = self.next().await;
        let Got::Text(text) = got else { panic!("{}: {got:?}", self.name) };
        text
    }

    async fn length(&mut self, bytes_count: usize) -> usize {
        let bytes = self.raw.bytes(bytes_count).await.expect("a whole head");
        bytes.into_iter().fold(0, |length, byte| length << 8 | usize::from(byte))
    }

    /// After a close nothing comes but the end of the connection, once the close is answered.
    pub(super) async fn assert_ended(mut self) {
        self.send(&Frame::close(1000, "").bytes(), Manner::Together).await;
        let rest = self.raw.rest(&self.name).await;
        assert!(rest.is_empty(), "{}: something after the close", self.name);
    }
}
