//! Sockets that are open, want events, and never read.

use std::net::SocketAddr;

use anyhow::ensure;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::fanout::scenario::Scenario;
use crate::fanout::socket::{self, Socket};

/// Requests under way at once.
const REQUESTS_MAX: usize = 32;

/// Clients that sleep with open sockets.
#[derive(Debug)]
pub struct Stalled {
    sockets: Vec<Socket>,
}

/// Opens sockets that want what the first subscribers of a scenario want, durably.
///
/// # Errors
/// When the broker refuses.
pub async fn connect(broker: SocketAddr, scenario: &Scenario, count: usize) -> anyhow::Result<Stalled> {
    let http = reqwest::Client::new();
    let open = scenario.subscribers.iter().take(count).enumerate().map(async |(number, subscriber)| {
        let client = name(number);
        let filter = json!({
            "area": {"center": subscriber.coordinates, "radius_m": scenario.radius_m},
            "where": format!("type = 'accident' AND severity >= {}", subscriber.severity_min),
        });
        let wish = json!({"filters": [filter], "durable": true, "overflow": "drop-oldest"});
        let url = format!("http://{broker}/v1/clients/{client}/subscriptions/near");
        let answer = http.put(url).json(&wish).send().await?;
        ensure!(answer.status().is_success(), "the broker answered {}", answer.text().await?);
        socket::open(broker, &client).await
    });
    let sockets = stream::iter(open).buffered(REQUESTS_MAX).try_collect().await?;
    Ok(Stalled { sockets })
}

impl Stalled {
    /// Has the broker forget them.
    ///
    /// # Errors
    /// When it does not.
    pub async fn leave(self, broker: SocketAddr) -> anyhow::Result<()> {
        let http = reqwest::Client::new();
        for number in 0..self.sockets.len() {
            let url = format!("http://{broker}/v1/clients/{}", name(number));
            http.delete(url).send().await?.error_for_status()?;
        }
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("stalled-{number}")
}
