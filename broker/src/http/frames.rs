//! The two sides of a WebSocket: the library reads frames, and the broker itself puts those together that it writes. A server's have
//! no mask, so that a delivery is copied once, behind its header, into the bytes that the socket is given.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, ReadHalf, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Bytes before the payload of a server's frame, at most.
pub(super) const HEADER_BYTES_MAX: usize = 10;

/// Bytes of a control frame, its payload with them, at most.
pub(super) const CONTROL_BYTES_MAX: usize = 127;

/// The side of a WebSocket that reads. `IO` is the connection.
pub(super) struct FrameReader<IO>(WebSocketStream<Ear<IO>>);

/// The side of a WebSocket that writes.
pub(super) struct FrameWriter<IO> {
    io: WriteHalf<IO>,
    replies: Arc<Replies>,
}

/// The connection as the library has it: it reads from there, and what it writes waits for the writer.
struct Ear<IO> {
    io: ReadHalf<IO>,
    replies: Arc<Replies>,
}

/// Frames that the library has written: pongs, and the answer to a close.
struct Replies {
    /// A std mutex: held to append some bytes, or to take them all.
    bytes: Mutex<Vec<u8>>,
    /// Bytes beyond which the connection ends.
    bytes_max: usize,
    /// Whether the answer to a close is among them, or was.
    have_close: AtomicBool,
}

/// Divides a connection that is a WebSocket from now on. Pongs and the like that wait to be written may have `replies_bytes_max`
/// bytes.
pub(super) async fn split<IO: AsyncRead + AsyncWrite>(
    io: IO,
    config: WebSocketConfig,
    replies_bytes_max: usize,
) -> (FrameReader<IO>, FrameWriter<IO>) {
    let replies =
        Arc::new(Replies { bytes: Mutex::default(), bytes_max: replies_bytes_max, have_close: false.into() });
    let (reading, writing) = tokio::io::split(io);
    let ear = Ear { io: reading, replies: Arc::clone(&replies) };
    let stream = WebSocketStream::from_raw_socket(ear, Role::Server, Some(config)).await;
    (FrameReader(stream), FrameWriter { io: writing, replies })
}

impl<IO: AsyncRead> FrameReader<IO> {
    /// The next message; `None` behind the last. The answer to a ping or a close is ready for the writer by then.
    pub(super) async fn next(&mut self) -> Option<Result<Message, Error>> {
        let message = self.0.next().await?;
        if let Ok(Message::Ping(_) | Message::Close(_)) = message {
            if let Err(error) = self.0.flush().await {
                return Some(Err(error));
            }
            if let Ok(Message::Close(_)) = message {
                self.0.get_ref().replies.have_close.store(true, Ordering::Release);
            }
        }
        Some(message)
    }
}

impl<IO: AsyncWrite> FrameWriter<IO> {
    /// Writes frames, behind what the library has to say.
    pub(super) async fn write(&mut self, frames: &[u8]) -> io::Result<()> {
        let replies = self.replies.take();
        self.io.write_all(&replies).await?;
        self.io.write_all(frames).await?;
        self.io.flush().await
    }

    /// Asks the other side for a sign of life.
    pub(super) async fn ping(&mut self) -> io::Result<()> {
        self.write_control(Frame::ping("")).await
    }

    /// Writes a close, unless the other side has closed and is answered that.
    pub(super) async fn close(&mut self, code: u16, reason: &'static str) -> io::Result<()> {
        if self.replies.have_close.load(Ordering::Acquire) {
            return self.write(&[]).await;
        }
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        self.write_control(Frame::close(Some(frame))).await
    }

    async fn write_control(&mut self, frame: Frame) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(frame.len());
        frame.format(&mut bytes).expect("memory grows");
        self.write(&bytes).await
    }
}

/// Appends the header of a text of `payload_bytes` bytes.
pub(super) fn push_text_header(frames: &mut Vec<u8>, payload_bytes: usize) {
    let header = FrameHeader { opcode: OpCode::Data(Data::Text), ..FrameHeader::default() };
    header.format(payload_bytes as u64, frames).expect("memory grows");
}

impl Replies {
    fn push(&self, frames: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() + frames.len() > self.bytes_max {
            return Err(io::Error::other("the other side asks for more pongs than it reads"));
        }
        bytes.extend_from_slice(frames);
        Ok(())
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<IO: AsyncRead> AsyncRead for Ear<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(ctx, buffer)
    }
}

/// The library writes whole frames, and each time all that it has.
impl<IO> AsyncWrite for Ear<IO> {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, frames: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.replies.push(frames).map(|()| frames.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    type Client = WebSocketStream<DuplexStream>;

    /// A client, and the two sides that it talks to.
    async fn connected(bytes_max: usize) -> (Client, FrameReader<DuplexStream>, FrameWriter<DuplexStream>) {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (reader, writer) = split(near, WebSocketConfig::default(), bytes_max).await;
        (WebSocketStream::from_raw_socket(far, Role::Client, None).await, reader, writer)
    }

    #[tokio::test]
    async fn texts_of_all_lengths_are_read_as_they_were_written() {
        let (mut client, _reader, mut writer) = connected(1_000).await;
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
        let mut frames = Vec::new();
        for length in lengths {
            let before = frames.len();
            push_text_header(&mut frames, length);
            assert!(frames.len() - before <= HEADER_BYTES_MAX);
            frames.resize(frames.len() + length, b'x');
        }
        writer.write(&frames).await.unwrap();
        writer.ping().await.unwrap();
        for length in lengths {
            assert_eq!(client.next().await.unwrap().unwrap(), Message::text("x".repeat(length)));
        }
        assert_eq!(client.next().await.unwrap().unwrap(), Message::Ping(Default::default()));
        writer.close(1013, "later").await.unwrap();
        let close = CloseFrame { code: 1013.into(), reason: "later".into() };
        assert_eq!(client.next().await.unwrap().unwrap(), Message::Close(Some(close)));
    }

    #[tokio::test]
    async fn pings_are_answered_before_what_is_written_next() {
        let (mut client, mut reader, mut writer) = connected(1_000).await;
        for payload in ["a", "b"] {
            client.send(Message::Ping(payload.into())).await.unwrap();
            assert_eq!(reader.next().await.unwrap().unwrap(), Message::Ping(payload.into()));
        }
        writer.write(b"\x81\x01x").await.unwrap();
        for expected in [Message::Pong("a".into()), Message::Pong("b".into()), Message::text("x")] {
            assert_eq!(client.next().await.unwrap().unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn a_close_is_answered_with_its_own_code_and_only_once() {
        let (mut client, mut reader, mut writer) = connected(1_000).await;
        let close = CloseFrame { code: 4000.into(), reason: "enough".into() };
        client.send(Message::Ping("a".into())).await.unwrap();
        client.send(Message::Close(Some(close.clone()))).await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), Message::Ping("a".into()));
        assert_eq!(reader.next().await.unwrap().unwrap(), Message::Close(Some(close.clone())));
        assert!(reader.next().await.is_none());
        writer.close(1000, "").await.unwrap();
        drop((reader, writer));
        assert_eq!(client.next().await.unwrap().unwrap(), Message::Pong("a".into()));
        assert_eq!(client.next().await.unwrap().unwrap(), Message::Close(Some(close)));
        assert!(client.next().await.is_none());
    }

    #[tokio::test]
    async fn pongs_that_nobody_reads_have_a_bound() {
        let (mut client, mut reader, _writer) = connected(3 * CONTROL_BYTES_MAX).await;
        let payload = vec![7; 125];
        for _ in 0..3 {
            client.send(Message::Ping(payload.clone().into())).await.unwrap();
            reader.next().await.unwrap().unwrap();
        }
        client.send(Message::Ping(payload.into())).await.unwrap();
        assert!(matches!(reader.next().await, Some(Err(Error::Io(_)))));
    }
}
