//! WebSocket frames (RFC 6455, section 5) over the library's headers.

use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::Garbled;

/// What masks a frame. A mask that changes nothing is as valid as any other; it protects proxies, of which there are none here.
const MASK: [u8; 4] = [0; 4];

/// Appends a frame of a client, whose payload `write` appends.
pub(super) fn push(opcode: OpCode, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    write(out);
    let length = out.len() - at;
    let header = FrameHeader { is_final: true, opcode, mask: Some(MASK), ..FrameHeader::default() };
    let mut head = [0; 14];
    let mut cursor = Cursor::new(&mut head[..]);
    header.format(length as u64, &mut cursor).expect("a header fits into 14 bytes");
    let head_bytes = header.len(length as u64);
    out.splice(at..at, head[..head_bytes].iter().copied());
}

/// Appends a text.
pub(super) fn push_text(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push(OpCode::Data(Data::Text), out, write);
}

/// A frame of a broker.
pub(super) enum Frame<'a> {
    Text(&'a str),
    Ping(&'a [u8]),
    Close(&'a [u8]),
    /// Any other frame; it is passed over.
    Other,
}

/// The first frame of what has come, and its bytes; none while it is not whole.
pub(super) fn first(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Garbled> {
    let mut cursor = Cursor::new(bytes);
    let header = FrameHeader::parse(&mut cursor).map_err(|error| Garbled(error.to_string()))?;
    let Some((header, length)) = header else { return Ok(None) };
    let start = usize::try_from(cursor.position()).expect("within the bytes");
    let length = usize::try_from(length).map_err(|_| Garbled("a frame without an end".to_owned()))?;
    let Some(payload) = bytes[start..].get(..length) else { return Ok(None) };
    if header.mask.is_some() || !header.is_final {
        return Err(Garbled("a frame that is masked or in parts".to_owned()));
    }
    let frame = match header.opcode {
        OpCode::Data(Data::Text) => {
            Frame::Text(str::from_utf8(payload).map_err(|_| Garbled("a text that is none".to_owned()))?)
        }
        OpCode::Control(Control::Ping) => Frame::Ping(payload),
        OpCode::Control(Control::Close) => Frame::Close(payload),
        OpCode::Data(_) | OpCode::Control(_) => Frame::Other,
    };
    Ok(Some((frame, start + length)))
}
