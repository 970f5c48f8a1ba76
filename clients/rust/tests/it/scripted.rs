//! A server that does what a test says.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role},
    },
};

use crate::within;

pub(crate) struct Server {
    listener: TcpListener,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.expect("loopback") }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("an address"))
    }

    /// The next request; nothing is answered before.
    pub(crate) async fn request(&self) -> Request {
        let (mut stream, _) = within("a request", self.listener.accept()).await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within("a request", stream.read_u8()).await.expect("a request"));
        }
        let head = String::from_utf8(head).expect("text");
        Request { stream, head }
    }

    /// Whether nobody connects who is not asked to.
    pub(crate) async fn is_left_alone(&self, wait: Duration) -> bool {
        tokio::time::timeout(wait, self.listener.accept()).await.is_err()
    }
}

pub(crate) struct Request {
    stream: TcpStream,
    head: String,
}

impl Request {
    /// `GET /path?query`
    pub(crate) fn line(&self) -> &str {
        self.head.split(" HTTP/1.1").next().expect("a line")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }

    pub(crate) fn resume(&self) -> Option<String> {
        let resume = self.line().split_once("?resume=")?.1;
        Some(resume.replace("%3A", ":"))
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// The body, which comes as a whole.
    pub(crate) async fn body(&mut self) -> String {
        let bytes = self.header("content-length").expect("a length").parse().expect("a number");
        let mut body = vec![0; bytes];
        within("a body", self.stream.read_exact(&mut body)).await.expect("a body");
        String::from_utf8(body).expect("text")
    }

    pub(crate) async fn accept(mut self) -> Peer {
        let key = self.header("sec-websocket-key").expect("a request for a WebSocket");
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {}\r\n\r\n",
            derive_accept_key(key.as_bytes())
        );
        self.stream.write_all(answer.as_bytes()).await.expect("written");
        Peer { socket: WebSocketStream::from_raw_socket(self.stream, Role::Server, None).await }
    }

    pub(crate) async fn answer(mut self, status: u16, headers: &Value, body: &str) {
        let mut answer =
            format!("HTTP/1.1 {status} As asked\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers.as_object().into_iter().flatten() {
            answer += &format!("{name}: {}\r\n", value.as_str().expect("a text"));
        }
        answer += "\r\n";
        answer += body;
        self.stream.write_all(answer.as_bytes()).await.expect("written");
        self.stream.shutdown().await.expect("written");
    }

    /// Answers on and on, until nobody reads.
    pub(crate) async fn answer_on_and_on(mut self, status: u16) {
        let head = format!("HTTP/1.1 {status} As asked\r\nconnection: close\r\n\r\n");
        self.stream.write_all(head.as_bytes()).await.expect("written");
        while self.stream.write_all(&[b' '; 1 << 16]).await.is_ok() {}
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (other, value) = line.split_once(": ")?;
        other.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// The other side of a WebSocket.
pub(crate) struct Peer {
    socket: WebSocketStream<TcpStream>,
}

impl Peer {
    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.expect("sent");
    }

    pub(crate) async fn ready(&mut self, epoch: &str, offset: u64) {
        self.send(&json!({"op": "ready", "client": "ann", "epoch": epoch, "offset": offset})).await;
    }

    pub(crate) async fn event(&mut self, offset: u64, properties: &Value) {
        let geometry = json!({"type": "Point", "coordinates": [9.19, 45.46]});
        let event = json!({"type": "Feature", "id": "a", "geometry": geometry, "properties": properties});
        let frame = json!({"op": "event", "offset": offset, "subscriptions": ["s"], "cause": "published", "event": event});
        self.send(&frame).await;
    }

    /// Answers a request.
    pub(crate) async fn ok(&mut self, request: &Value) {
        self.send(&json!({"op": "ok", "ref": request["ref"]})).await;
    }

    /// The next frame that is no `ping`; those are answered.
    pub(crate) async fn receive(&mut self) -> Value {
        loop {
            let frame = self.receive_any().await;
            if frame["op"] != "ping" {
                return frame;
            }
            self.send(&json!({"op": "pong"})).await;
        }
    }

    pub(crate) async fn receive_any(&mut self) -> Value {
        match within("a frame of the client", self.socket.next()).await {
            Some(Ok(Message::Text(text))) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("the client is to send a frame, not {other:?}"),
        }
    }

    /// Breaks the connection without a close.
    pub(crate) fn reset(self) {
        self.socket.get_ref().set_zero_linger().expect("a socket");
    }

    /// Closes it, and takes the answer to that.
    pub(crate) async fn close(mut self, code: u16, reason: &str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        self.socket.close(Some(frame)).await.expect("sent");
        tokio::spawn(async move { while let Some(Ok(_)) = self.socket.next().await {} });
    }

    /// The code with which the client closes it.
    pub(crate) async fn closed(&mut self) -> u16 {
        match within("the client's close", self.socket.next()).await {
            Some(Ok(Message::Close(Some(frame)))) => frame.code.into(),
            other => panic!("the client is to close the connection, not {other:?}"),
        }
    }
}
