//! Harm by what the broker has to hold: what it answers, what it keeps, what is live.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::attack::{Attack, Attacker, EVENTS, Size, Tenant, live_event};
use super::connections::CONNECTION_BYTES;
use super::floods::FLOOD_BYTES;
use super::wire::{frame, keep, open, ping, pour};

/// `outbox.bytes`, and a batch on its way.
const OUTBOX_BYTES: u64 = (8 << 20) + FLOOD_BYTES;
/// An element that is read, what is listed of those that were refused, and the answer that is made of that.
const BATCH_BYTES: u64 = 8 << 20;
/// Subscriptions of one client as large as this, with what it takes to have them: 4 KB each.
const SUBSCRIPTIONS_BYTES: u64 = 1_000 * (4 << 10);
/// What a tenant may have live: half of `limits.live_bytes`, where `quotas.tenant_live_bytes` says nothing else.
const LIVE_BYTES: u64 = 1 << 30;
/// What the subscriptions of one client may know of live events: `limits.members_per_client` of some 200 bytes.
pub(super) const MEMBERS_BYTES: u64 = 100_000 * 256;
/// What the log of deliveries may take: `sessions.recent_bytes`.
const DEALT_BYTES: u64 = 128 << 20;
/// A live event without much in it.
pub(super) const LIVE_EVENT_BYTES: u64 = 2_048;

/// Bytes of an event that is as large as it may be, or nearly.
const LARGEST_EVENT_BYTES: usize = 60_000;

/// What stands for an attack of this family, but for what it is.
const PLAIN: Attack = Attack {
    slug: "",
    name: "",
    clients: Size::new(1, 1),
    bound_bytes: CONNECTION_BYTES,
    shared_bytes: 0,
    live: Size::NONE,
    tenant: Tenant::Same,
    begin: |_| Box::pin(async { Ok(()) }),
};

/// The family.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        slug: "deaf",
        name: "WebSockets that want everything and read nothing",
        clients: Size::new(100, 20),
        bound_bytes: OUTBOX_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let mut socket = open(&attacker).await?;
                let wish =
                    json!({"op": "subscribe", "id": "all", "filters": [{}], "overflow": "drop-oldest"});
                socket.write_all(&frame(&wish)).await?;
                keep(socket);
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "refused-batches",
        name: "batches of which every event is refused for a name of 60 KB",
        bound_bytes: BATCH_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let line = format!("{}\n", *REFUSED);
                tokio::spawn(async move {
                    loop {
                        attacker.call("POST", EVENTS, line.repeat(attacker.scaled(1_000, 20))).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "refused-publishes",
        name: "WebSockets that publish what is refused for a name of 60 KB, and read no answer",
        clients: Size::new(4, 2),
        bound_bytes: OUTBOX_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let (read, write) = open(&attacker).await?.into_split();
                let publish = frame(&json!({"op": "publish", "ref": 1, "event": *REFUSED}));
                tokio::spawn(async move {
                    // It stays open as long as something may be written, and is not read.
                    pour(attacker, write, publish, 1).await;
                    drop(read);
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "pings",
        name: "pings of 125 bytes by WebSockets that hardly read",
        clients: Size::new(2, 2),
        bound_bytes: OUTBOX_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                const STRIDE: usize = 512;
                let (read, write) = open(&attacker).await?.into_split();
                tokio::spawn(read_little(read));
                tokio::spawn(pour(attacker, write, ping().repeat(STRIDE), STRIDE));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "large-live-events",
        name: "8,000 live events of 60 KB",
        bound_bytes: LIVE_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let properties = json!({"type": "large", "texts": vec!["a".repeat(15_000); 4]});
                let count = attacker.scaled(8_000, 20);
                tokio::spawn(async move {
                    let client = attacker.client();
                    loop {
                        let events = (0..count).map(|number| live_event(&client, number, &properties));
                        attacker.publish(events, 50).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "standings",
        name: "1,000 subscriptions to 10,000 live events",
        live: Size::new(10_000, 200),
        bound_bytes: SUBSCRIPTIONS_BYTES + MEMBERS_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                everything(&attacker).await;
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "delivered-names",
        name: "20,000 live events to 1,000 subscriptions of one client",
        bound_bytes: SUBSCRIPTIONS_BYTES + MEMBERS_BYTES + 20_000 * LIVE_EVENT_BYTES,
        shared_bytes: DEALT_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                everything(&attacker).await;
                let count = attacker.scaled(20_000, 100);
                let client = attacker.client();
                let properties = json!({"type": "delivered"});
                attacker
                    .publish((0..count).map(|number| live_event(&client, number, &properties)), 500)
                    .await;
                Ok(())
            })
        },
        ..PLAIN
    },
];

/// An event that is refused for its name, and for each of those within.
static REFUSED: LazyLock<Value> = LazyLock::new(|| {
    let within = (0..40).map(|number| (format!("n{number}"), json!(1))).collect::<serde_json::Map<_, _>>();
    json!({
        "type": "Feature", "geometry": {"type": "Point", "coordinates": [9.1, 45.4]},
        "properties": {"n".repeat(LARGEST_EVENT_BYTES): within},
    })
});

/// As many subscriptions to everything as a client may have.
async fn everything(attacker: &Attacker) {
    for index in 0..attacker.scaled(1_000, 20) {
        attacker.subscribe(&format!("s{index}"), &json!({"filters": [{}]})).await;
    }
}

/// Reads enough not to be taken for dead.
async fn read_little(mut read: tokio::net::tcp::OwnedReadHalf) {
    let mut some = vec![0; 16 << 10];
    while read.read(&mut some).await.is_ok_and(|count| count > 0) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
