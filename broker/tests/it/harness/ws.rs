//! A WebSocket session as a client keeps it. Nothing reads in the background: what a test does not read stays unread.

use std::collections::VecDeque;
use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Pair, with_problem_shape, within};

/// What a session goes over.
trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

type Socket = WebSocketStream<Box<dyn Transport>>;

/// One session.
pub(crate) struct Ws {
    stream: Socket,
    /// The `ready` frame that opened it.
    pub(crate) ready: Value,
    /// Frames that came while an answer was awaited.
    early: VecDeque<Value>,
    last_ref: u64,
}

/// What a socket brings.
#[derive(Debug)]
pub(crate) enum Received {
    /// A text frame with a JSON object.
    Frame(Value),
    /// The end: code and reason, 1006 where the connection broke off.
    Closed(u16, String),
}

impl Ws {
    /// Opens a session and takes its `ready`.
    pub(crate) async fn connect(address: SocketAddr, client: &str) -> Self {
        Self::connect_with(address, client, "").await
    }

    /// Opens one that goes on after an offset of an epoch.
    pub(crate) async fn resume(address: SocketAddr, client: &str, epoch: &str, offset: u64) -> Self {
        Self::connect_with(address, client, &format!("?resume={epoch}:{offset}")).await
    }

    async fn connect_with(address: SocketAddr, client: &str, query: &str) -> Self {
        let url = format!("ws://{address}/v1/clients/{client}/ws{query}");
        let stream = within(&url, open(url.as_str(), TcpStream::connect(address))).await;
        let stream = stream.unwrap_or_else(|fault| panic!("{url}: {fault:?}"));
        match Self::begin(stream, client).await {
            Ok(session) => session,
            Err((code, reason)) => panic!("{url}: closed with {code} {reason:?}"),
        }
    }

    /// Opens a session over TLS with a broker that has this certificate.
    pub(crate) async fn secured(address: SocketAddr, client: &str, pair: &Pair) -> Self {
        let url = format!("wss://{address}/v1/clients/{client}/ws");
        let stream = within(&url, open(url.as_str(), pair.connect(address))).await;
        let stream = stream.unwrap_or_else(|fault| panic!("{url}: {fault:?}"));
        Self::begin(stream, client).await.unwrap_or_else(|end| panic!("{url}: closed with {end:?}"))
    }

    /// Opens a session by any request for one, with a token for example; the answer's status where it is refused.
    pub(crate) async fn open(request: Request<()>, client: &str) -> Result<Self, u16> {
        let authority = request.uri().authority().expect("a whole address").to_string();
        match within("a socket opens or not", open(request, TcpStream::connect(authority))).await {
            Ok(stream) => Ok(Self::begin(stream, client).await.expect("it is not closed at once")),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(fault) => panic!("{fault:?}"),
        }
    }

    /// Opens a session after an offset, `<epoch>:<offset>` or nothing, with a broker that may go away; `None` where it did.
    pub(crate) async fn attempt(address: SocketAddr, client: &str, after: &str) -> Option<Self> {
        let query = if after.is_empty() { String::new() } else { format!("?resume={after}") };
        let url = format!("ws://{address}/v1/clients/{client}/ws{query}");
        match within(&url, open(url.as_str(), TcpStream::connect(address))).await {
            Ok(stream) => Self::begin(stream, client).await.ok(),
            Err(Error::Http(answer)) => panic!("{url}: {}", answer.status()),
            Err(_) => None,
        }
    }

    async fn begin(stream: Socket, client: &str) -> Result<Self, (u16, String)> {
        let mut session = Self { stream, ready: Value::Null, early: VecDeque::new(), last_ref: 0 };
        let ready = match session.receive().await {
            Received::Frame(ready) => ready,
            Received::Closed(code, reason) => return Err((code, reason)),
        };
        assert_eq!(ready["op"], "ready", "{ready}");
        assert_eq!(ready["client"], client, "{ready}");
        assert!(ready["epoch"].as_str().is_some_and(|epoch| !epoch.is_empty()), "{ready}");
        assert!(ready["offset"].is_u64(), "{ready}");
        session.ready = ready;
        Ok(session)
    }

    /// Sends any message.
    pub(crate) async fn send_message(&mut self, message: Message) {
        within("a frame is taken", self.stream.send(message)).await.expect("the socket is open");
    }

    /// Sends any text.
    pub(crate) async fn send_text(&mut self, text: impl Into<String>) {
        self.send_message(Message::text(text.into())).await;
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_text(frame.to_string()).await;
    }

    /// Tries to send; a peer that has closed is not a fault.
    pub(crate) async fn try_send_message(&mut self, message: Message) -> bool {
        within("a frame is taken or refused", self.stream.send(message)).await.is_ok()
    }

    /// The next frame or the end.
    pub(crate) async fn receive(&mut self) -> Received {
        if let Some(frame) = self.early.pop_front() {
            return Received::Frame(frame);
        }
        within("a frame", self.read()).await
    }

    /// The next frame or the end, however long that takes; for tasks that read all the time.
    pub(crate) async fn read(&mut self) -> Received {
        let mut farewell = None;
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str::<Value>(&text);
                    let frame =
                        frame.unwrap_or_else(|fault| panic!("a frame that is no JSON: {fault}: {text}"));
                    assert!(frame["op"].is_string(), "a frame without `op`: {frame}");
                    return Received::Frame(frame);
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(close))) => {
                    farewell = Some(close.map_or((1005, String::new()), |close| {
                        (u16::from(close.code), close.reason.to_string())
                    }));
                }
                Some(Ok(Message::Binary(bytes))) => panic!("a binary frame of {} bytes", bytes.len()),
                Some(Err(_)) | None => {
                    let (code, reason) = farewell.unwrap_or((1006, String::new()));
                    return Received::Closed(code, reason);
                }
            }
        }
    }

    /// The next frame, where the end would be a fault.
    pub(crate) async fn next(&mut self) -> Value {
        match self.receive().await {
            Received::Frame(frame) => frame,
            Received::Closed(code, reason) => panic!("closed with {code} {reason:?}"),
        }
    }

    /// Reads on until the end, and says how it ended.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Received::Closed(code, reason) = self.receive().await {
                return (code, reason);
            }
        }
    }

    /// Sends a frame with a fresh `ref` and returns the `ok` or `problem` with that `ref`; other frames stay for later.
    pub(crate) async fn request(&mut self, mut frame: Value) -> Value {
        self.last_ref += 1;
        let reference = json!(self.last_ref);
        frame["ref"] = reference.clone();
        self.send(&frame).await;
        let mut seen = VecDeque::new();
        loop {
            let answer = self.next().await;
            if answer["ref"] == reference {
                seen.append(&mut self.early);
                self.early = seen;
                return answer;
            }
            seen.push_back(answer);
        }
    }

    /// The same, where the answer must be `ok`.
    pub(crate) async fn ok(&mut self, frame: Value) {
        let answer = self.request(frame.clone()).await;
        assert_eq!(answer["op"], "ok", "{frame}: {answer}");
    }

    /// The same, where the answer must be a problem; returns that.
    pub(crate) async fn problem(&mut self, frame: Value) -> Value {
        let answer = self.request(frame.clone()).await;
        assert_eq!(answer["op"], "problem", "{frame}: {answer}");
        with_problem_shape(&frame.to_string(), answer["problem"].clone())
    }

    /// Subscribes with everything of a document.
    pub(crate) async fn subscribe(&mut self, id: &str, mut subscription: Value) {
        subscription["op"] = json!("subscribe");
        subscription["id"] = json!(id);
        self.ok(subscription).await;
    }

    /// Publishes one event.
    pub(crate) async fn publish(&mut self, event: &Value) {
        self.ok(json!({"op": "publish", "event": event})).await;
    }

    /// Moves, and waits until that is in force.
    pub(crate) async fn place(&mut self, coordinates: [f64; 2]) {
        self.ok(json!({"op": "move", "coordinates": coordinates})).await;
    }

    /// The next frame, which must be an event.
    pub(crate) async fn event(&mut self) -> Value {
        let frame = self.next().await;
        assert_eq!(frame["op"], "event", "{frame}");
        frame
    }

    /// Checks that the session still answers, and that nothing but the answer has come.
    pub(crate) async fn assert_quiet(&mut self) {
        self.send(&json!({"op": "ping"})).await;
        let frame = self.next().await;
        assert_eq!(frame["op"], "pong", "{frame}");
    }
}

async fn open<T: Transport + 'static>(
    request: impl IntoClientRequest + Unpin,
    connected: impl Future<Output = std::io::Result<T>>,
) -> Result<Socket, Error> {
    let transport: Box<dyn Transport> = Box::new(connected.await?);
    Ok(tokio_tungstenite::client_async(request, transport).await?.0)
}
