//! Somebody who does nothing wrong, while others do.

use serde_json::json;

use super::{Http, Program, Ws, feature};

/// Watches that a broker goes on working: it subscribes to everything, and nothing but its own probes may come.
pub(crate) struct Witness {
    http: Http,
    ws: Ws,
    probes_count: u64,
}

impl Witness {
    /// Subscribes.
    pub(crate) async fn new(program: &Program) -> Self {
        let mut ws = program.ws("witness").await;
        ws.subscribe("everything", json!({"filters": [{}]})).await;
        Self { http: Http::without_keeping(program.address()), ws, probes_count: 0 }
    }

    /// Publishes over a connection that may have seen bad input, and gets that over another one, and nothing else.
    pub(crate) async fn probe(&mut self, after: &str, http: &Http) {
        self.probes_count += 1;
        let id = format!("probe-{}", self.probes_count);
        let event = feature(&id, [9.0, 45.0], json!({}));
        let answer = http.post("/v1/events", "application/geo+json", event.to_string()).await;
        assert_eq!(answer.status, 202, "after {after}: {}", answer.text());
        let frame = self.ws.event().await;
        assert_eq!(frame["event"]["id"], id, "after {after}: {frame}");
    }

    /// The same over a connection of its own.
    pub(crate) async fn probe_elsewhere(&mut self, after: &str) {
        self.probe(after, &self.http.clone()).await;
    }
}
