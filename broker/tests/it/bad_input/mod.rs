//! Whatever comes in: a problem that says what is wrong, or a close with a reason, and nothing else disturbed.

mod bytes;
mod calls;
mod conditions;
mod frames;
mod limits;

use serde_json::json;

use crate::harness::{Http, Program, Ws, feature};

/// Watches that a broker goes on working: it subscribes to everything, and nothing but its own probes may come.
struct Witness {
    http: Http,
    ws: Ws,
    probes_count: u64,
}

impl Witness {
    async fn new(program: &Program) -> Self {
        let mut ws = program.ws("witness").await;
        ws.subscribe("everything", json!({"filters": [{}]})).await;
        Self { http: Http::without_keeping(program.address()), ws, probes_count: 0 }
    }

    /// Publishes over a connection that may have seen bad input, and gets that over another one, and nothing else.
    async fn probe(&mut self, after: &str, http: &Http) {
        self.probes_count += 1;
        let id = format!("probe-{}", self.probes_count);
        let event = feature(&id, [9.0, 45.0], json!({}));
        let answer = http.post("/v1/events", "application/geo+json", event.to_string()).await;
        assert_eq!(answer.status, 202, "after {after}: {}", answer.text());
        let frame = self.ws.event().await;
        assert_eq!(frame["event"]["id"], id, "after {after}: {frame}");
    }

    /// The same over a connection of its own.
    async fn probe_elsewhere(&mut self, after: &str) {
        self.probe(after, &self.http.clone()).await;
    }
}

/// JSON that nests this deep, around nothing.
fn nested_arrays(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

/// The text of a subscription with one condition.
fn with_condition(condition: &str) -> String {
    json!({"filters": [{"where": condition}]}).to_string()
}
