//! Harm by what connections are: many, silent, slow, or gone too soon.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::attack::{Attack, Attacker, Size, Tenant};
use super::wire::{connect, head, keep, open};

/// What the broker has for a connection: its task, its buffers, the client and its empty outbox.
pub(super) const CONNECTION_BYTES: u64 = 24 << 10;
/// `limits.subscription_bytes`, the room that a body of it grows into, and the connection.
const BODY_BYTES: u64 = 2 * (512 << 10) + CONNECTION_BYTES;
/// `connection.head_bytes`, the room that these grow into, and the connection.
const HEAD_BYTES: u64 = 2 * (64 << 10) + CONNECTION_BYTES;
/// Connections of a client, as many as `limits.readers_per_client`; nothing waits for streams that broke.
const READERS_BYTES: u64 = 16 * CONNECTION_BYTES;

/// Between one byte and the next.
const TRICKLE: Duration = Duration::from_millis(20);

/// What stands for an attack of this family, but for what it is.
const PLAIN: Attack = Attack {
    slug: "",
    name: "",
    clients: Size::new(1_000, 20),
    bound_bytes: CONNECTION_BYTES,
    shared_bytes: 0,
    live: Size::NONE,
    tenant: Tenant::Same,
    begin: |_| Box::pin(async { Ok(()) }),
};

/// The family.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        slug: "slow-heads",
        name: "heads, a byte at a time",
        begin: |attacker| {
            Box::pin(async move {
                let head = head(&attacker, "GET", "/v1/stats") + "x: ";
                let stream = connect(&attacker).await?;
                tokio::spawn(trickle(attacker, stream, head.into_bytes()));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "slow-bodies",
        name: "bodies, a byte at a time",
        begin: |attacker| {
            Box::pin(async move {
                let head = head(&attacker, "POST", "/v1/events");
                let head = format!(
                    "{head}content-type: application/x-ndjson\r\ncontent-length: 100000000\r\n\r\n{{"
                );
                let stream = connect(&attacker).await?;
                tokio::spawn(trickle(attacker, stream, head.into_bytes()));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "steady-bodies",
        name: "subscriptions that are nearly complete, and then a byte at a time",
        clients: Size::new(200, 4),
        bound_bytes: BODY_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                const LENGTH: usize = 512 << 10;
                let path = format!("/v1/clients/{}/subscriptions/s", attacker.client());
                let head = head(&attacker, "PUT", &path);
                let head =
                    format!("{head}content-type: application/json\r\ncontent-length: {LENGTH}\r\n\r\n");
                // White space is JSON, too.
                let begun = [head.into_bytes(), vec![b' '; LENGTH - 4_096]].concat();
                let stream = connect(&attacker).await?;
                tokio::spawn(trickle(attacker, stream, begun));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "endless-heads",
        name: "heads of 400 KB that do not end",
        clients: Size::new(200, 10),
        bound_bytes: HEAD_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let begun = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}", "a".repeat(390_000));
                let stream = connect(&attacker).await?;
                tokio::spawn(trickle(attacker, stream, begun.into_bytes()));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "silent",
        name: "connections that say nothing",
        begin: |attacker| {
            Box::pin(async move {
                keep(connect(&attacker).await?);
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "idle",
        name: "idle WebSockets",
        clients: Size::new(10_000, 20),
        begin: |attacker| {
            Box::pin(async move {
                keep(open(&attacker).await?);
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "broken-streams",
        name: "event streams that break while they attach",
        clients: Size::new(20, 2),
        bound_bytes: READERS_BYTES + CONNECTION_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                attacker.subscribe("all", &json!({"filters": [{}]})).await;
                tokio::spawn(break_streams(attacker));
                Ok(())
            })
        },
        ..PLAIN
    },
];

/// Begins something and goes on a byte at a time, again and again.
async fn trickle(attacker: Attacker, mut stream: TcpStream, begun: Vec<u8>) {
    loop {
        let mut next = begun.as_slice();
        while stream.write_all(next).await.is_ok() {
            attacker.sent(next.len() as u64);
            next = b" ";
            tokio::time::sleep(TRICKLE).await;
        }
        // Cut off: here it is again.
        attacker.refused();
        tokio::time::sleep(TRICKLE).await;
        if let Ok(again) = connect(&attacker).await {
            stream = again;
        }
    }
}

/// Asks for an event stream and is gone a little later each time, from at once to when the answer is on its way.
async fn break_streams(attacker: Attacker) {
    const TURNS_MAX: usize = 32;
    let request = head(&attacker, "GET", &format!("/v1/clients/{}/events", attacker.client())) + "\r\n";
    for turns in (0..TURNS_MAX).cycle() {
        let Ok(mut stream) = connect(&attacker).await else {
            tokio::time::sleep(TRICKLE).await;
            continue;
        };
        if stream.write_all(request.as_bytes()).await.is_ok() {
            attacker.sent(1);
        }
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }
}
