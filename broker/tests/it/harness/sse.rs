//! A reader of `text/event-stream`, the part of it that the broker needs.

use std::net::SocketAddr;

use serde_json::Value;

use super::within;

/// An open stream.
pub(crate) struct Sse {
    response: reqwest::Response,
    buffer: Vec<u8>,
    /// The last `retry`, when to come back.
    pub(crate) retry_ms: Option<u64>,
}

/// One dispatched message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    /// `id`.
    pub(crate) id: String,
    /// `event`.
    pub(crate) event: String,
    /// `data`, lines joined.
    pub(crate) data: String,
}

impl Message {
    /// The data as JSON.
    pub(crate) fn frame(&self) -> Value {
        serde_json::from_str(&self.data)
            .unwrap_or_else(|fault| panic!("data that is no JSON: {fault}: {self:?}"))
    }

    /// The parts of the id: epoch and offset.
    pub(crate) fn epoch_and_offset(&self) -> (String, u64) {
        let (epoch, offset) =
            self.id.split_once(':').unwrap_or_else(|| panic!("an id without colon: {self:?}"));
        (epoch.to_owned(), offset.parse().unwrap_or_else(|_| panic!("an offset that is no number: {self:?}")))
    }
}

impl Sse {
    /// Opens a client's stream; from its status line on the client is connected.
    pub(crate) async fn connect(address: SocketAddr, client: &str) -> Self {
        Self::resume(address, client, "").await
    }

    /// Opens it again after the message with an id.
    pub(crate) async fn resume(address: SocketAddr, client: &str, last_event_id: &str) -> Self {
        let attempt = Self::attempt(address, client, last_event_id).await;
        attempt.unwrap_or_else(|| panic!("the stream of {client} ended at once"))
    }

    /// The same with a broker that may go away or have too much to do; `None` where it did.
    pub(crate) async fn attempt(address: SocketAddr, client: &str, last_event_id: &str) -> Option<Self> {
        // A pool of its own: a stream keeps its connection for good, and pools are for those that come back.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build();
        let url = format!("http://{address}/v1/clients/{client}/events");
        let mut request = http.expect("a client without TLS").get(&url).header("accept", "text/event-stream");
        if !last_event_id.is_empty() {
            request = request.header("last-event-id", last_event_id);
        }
        let response = within(&url, request.send()).await.ok()?;
        if response.status() == 503 {
            // Its queues are full, or it is ending.
            return None;
        }
        assert_eq!(response.status(), 200, "{url}");
        let content_type = response.headers()["content-type"].to_str().unwrap_or_default().to_owned();
        assert!(content_type.starts_with("text/event-stream"), "{url}: {content_type}");
        Some(Self { response, buffer: Vec::new(), retry_ms: None })
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn receive(&mut self) -> Option<Message> {
        within("a message", self.read()).await
    }

    /// The next message, where the end would be a fault.
    pub(crate) async fn next(&mut self) -> Message {
        self.receive().await.expect("the stream goes on")
    }

    /// The next message, however long that takes; for tasks that read all the time.
    pub(crate) async fn read(&mut self) -> Option<Message> {
        let mut message = Message { id: String::new(), event: String::new(), data: String::new() };
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                if !message.data.is_empty() {
                    return Some(message);
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => value.clone_into(&mut message.id),
                "event" => value.clone_into(&mut message.event),
                "data" if message.data.is_empty() => value.clone_into(&mut message.data),
                "data" => {
                    message.data.push('\n');
                    message.data.push_str(value);
                }
                "retry" => self.retry_ms = value.parse().ok(),
                // A comment, which keeps the connection alive.
                _ => {}
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.drain(..=end).collect::<Vec<u8>>();
                line.truncate(end);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Some(String::from_utf8(line).expect("an event stream is UTF-8"));
            }
            let chunk = self.response.chunk().await.ok()??;
            self.buffer.extend_from_slice(&chunk);
        }
    }
}
