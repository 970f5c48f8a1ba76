//! The protocol at its lowest, for clients that do not keep to what a library would do.

use anyhow::ensure;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::attack::Attacker;

/// A connection that is reset when it is closed: thousands that linger would take up the ports.
pub(super) async fn connect(attacker: &Attacker) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(attacker.door.address).await?;
    stream.set_nodelay(true)?;
    stream.set_zero_linger()?;
    Ok(stream)
}

/// The head of a request, without the empty line that ends it.
pub(super) fn head(attacker: &Attacker, method: &str, path: &str) -> String {
    let authorization = attacker.authorization().map(|value| format!("authorization: {value}\r\n"));
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{}", authorization.unwrap_or_default())
}

/// A whole request.
pub(super) fn request(attacker: &Attacker, method: &str, path: &str, body: &str) -> Vec<u8> {
    let head = head(attacker, method, path);
    format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// A connection that has become a WebSocket of the client's.
pub(super) async fn open(attacker: &Attacker) -> anyhow::Result<TcpStream> {
    let mut stream = connect(attacker).await?;
    let head = head(attacker, "GET", &format!("/v1/clients/{}/ws", attacker.client()));
    let request = format!(
        "{head}connection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await?);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    Ok(stream)
}

/// A text frame as a client sends it; a mask of zeros is one.
pub(super) fn frame(document: &Value) -> Vec<u8> {
    let text = document.to_string().into_bytes();
    let length = match u16::try_from(text.len()) {
        Ok(length) => [&[0xfe], length.to_be_bytes().as_slice()].concat(),
        Err(_) => [&[0xff], (text.len() as u64).to_be_bytes().as_slice()].concat(),
    };
    [&[0x81], length.as_slice(), &[0; 4], text.as_slice()].concat()
}

/// A ping of as many bytes as one may have.
pub(super) fn ping() -> Vec<u8> {
    const PAYLOAD_BYTES: u8 = 125;
    [[0x89, 0x80 | PAYLOAD_BYTES].as_slice(), &[0; 4], &[b'p'; PAYLOAD_BYTES as usize]].concat()
}

/// Holds a connection and does nothing with it.
pub(super) fn keep(stream: TcpStream) {
    tokio::spawn(async move {
        let _stream = stream;
        std::future::pending::<()>().await;
    });
}

/// Sends the same bytes for ever, which are so many requests, and reads the answers, so that nothing holds it up but the broker.
pub(super) fn flood(attacker: &Attacker, stream: TcpStream, bytes: Vec<u8>, requests_count: usize) {
    let (mut read, write) = stream.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
    tokio::spawn(pour(attacker.clone(), write, bytes, requests_count));
}

/// Sends the same bytes for ever, or until nothing is taken any more.
pub(super) async fn pour(
    attacker: Attacker,
    mut write: tokio::net::tcp::OwnedWriteHalf,
    bytes: Vec<u8>,
    requests_count: usize,
) {
    let (mut sent, mut counted) = (0, 0);
    while let Ok(count) = write.write(&bytes[sent % bytes.len()..]).await {
        sent += count;
        let requests_sent = sent * requests_count / bytes.len();
        attacker.sent((requests_sent - counted) as u64);
        counted = requests_sent;
    }
}
