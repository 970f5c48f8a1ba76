//! A WebSocket to the broker with small buffers, for publisher and subscribers alike.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Deliveries and answers are some hundred bytes; the library's own 128 KiB would be a gigabyte for 10,000 sockets.
const READ_BUFFER_BYTES: usize = 2 * 1024;

/// A connection to the broker.
pub type Socket = WebSocketStream<TcpStream>;

/// Connects and waits for `ready`.
///
/// # Errors
/// When the broker does not let the client in.
pub async fn open(broker: SocketAddr, client: &str) -> anyhow::Result<Socket> {
    open_over(TcpStream::connect(broker).await?, broker, client).await
}

/// Opens a WebSocket over a connection that is there, and waits for `ready`.
///
/// # Errors
/// When the broker does not let the client in.
pub async fn open_over(stream: TcpStream, broker: SocketAddr, client: &str) -> anyhow::Result<Socket> {
    open_as(stream, broker, client, None).await
}

/// Opens a WebSocket over a connection that is there, with a token, and waits for `ready`.
///
/// # Errors
/// When the broker does not let the client in.
pub async fn open_as(
    stream: TcpStream,
    broker: SocketAddr,
    client: &str,
    authorization: Option<&str>,
) -> anyhow::Result<Socket> {
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
    let mut request = format!("ws://{broker}/v1/clients/{client}/ws").into_client_request()?;
    if let Some(authorization) = authorization {
        request.headers_mut().insert("authorization", authorization.parse()?);
    }
    let (mut socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
    await_frame(&mut socket, "ready").await?;
    Ok(socket)
}

/// Waits for a frame that has to be the next one.
///
/// # Errors
/// When it is another one, or none comes any more.
pub async fn await_frame(
    stream: &mut (impl futures_util::Stream<Item = Result<Message, Error>> + Unpin),
    op: &str,
) -> anyhow::Result<()> {
    loop {
        match stream.next().await.context("the connection closed")?? {
            Message::Text(text) => {
                let told = text.strip_prefix(r#"{"op":""#).and_then(|rest| rest.strip_prefix(op));
                anyhow::ensure!(
                    told.is_some_and(|rest| rest.starts_with('"')),
                    "expected {op}, was told {text}"
                );
                return Ok(());
            }
            Message::Close(_) => bail!("the broker closed the connection"),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
}
