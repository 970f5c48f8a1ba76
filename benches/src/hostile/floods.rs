//! Harm by how many requests there are.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::attack::{Attack, EVENTS, Size, Tenant};
use super::wire::{connect, flood, frame, open, request};

/// `outbox.answers` of 1 KiB at most, a buffer that is written and one that is read.
pub(super) const FLOOD_BYTES: u64 = (1 << 20) + (1 << 20);
/// Some 300 bytes a constraint, of the subscription in force and of the one that takes its place, and the texts of both.
const HUGE_BYTES: u64 = 2 * (64 * 64 * 6 * 300 + (1 << 20));

/// Requests that are sent again and again.
const STRIDE: usize = 100;

/// What stands for an attack of this family, but for what it is.
const PLAIN: Attack = Attack {
    slug: "",
    name: "",
    clients: Size::new(4, 2),
    bound_bytes: FLOOD_BYTES,
    shared_bytes: 0,
    live: Size::NONE,
    tenant: Tenant::Same,
    begin: |_| Box::pin(async { Ok(()) }),
};

/// The family.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        slug: "subscriptions",
        name: "floods of subscribe and unsubscribe",
        begin: |attacker| {
            Box::pin(async move {
                let filters =
                    json!([{"area": {"radius_m": 1000}, "where": "speed > 50 AND kind IN ('bus', 'tram')"}]);
                let frames = (0..STRIDE).map(|index| {
                    let id = format!("s{}", index / 2 % 10);
                    if index % 2 == 0 {
                        json!({"op": "subscribe", "ref": index, "id": id, "filters": filters})
                    } else {
                        json!({"op": "unsubscribe", "ref": index, "id": id})
                    }
                });
                let bytes = frames.flat_map(|one| frame(&one)).collect();
                flood(&attacker, open(&attacker).await?, bytes, STRIDE);
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "moves",
        name: "floods of moves",
        begin: |attacker| {
            Box::pin(async move {
                let frames = (0..STRIDE).map(|index| {
                    let lon = 9.0 + index as f64 / 1_000.0;
                    match index % 3 {
                        0 => json!({"op": "move", "coordinates": [lon, 45.0]}),
                        1 => {
                            json!({"op": "move", "ref": index, "coordinates": [lon, 45.0], "accuracy_m": 10})
                        }
                        _ => json!({"op": "move", "track": [[lon, 45.0, 1], [lon + 0.01, 45.0, 2]]}),
                    }
                });
                let bytes = frames.flat_map(|one| frame(&one)).collect();
                flood(&attacker, open(&attacker).await?, bytes, STRIDE);
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "huge-conditions",
        name: "floods of huge conditions",
        bound_bytes: HUGE_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let subscriptions = [0, 1].map(huge_subscription);
                attacker.subscribe("s", &subscriptions[0]).await;
                tokio::spawn(async move {
                    for subscription in subscriptions.iter().cycle() {
                        attacker.subscribe("s", subscription).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "compressed",
        name: "compressed bodies",
        begin: |attacker| {
            Box::pin(async move {
                let client = reqwest::Client::builder().no_proxy().build()?;
                let url = format!("http://{}{EVENTS}", attacker.door.address);
                let authorization = attacker.authorization().unwrap_or_default();
                tokio::spawn(async move {
                    loop {
                        let post = client.post(&url).header("content-encoding", "gzip").body(BOMB.as_slice());
                        let _ = post.header("authorization", &authorization).send().await;
                        attacker.sent(1);
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "durable-cycles",
        name: "durable subscriptions that are made, get an event and are deleted",
        begin: |attacker| {
            Box::pin(async move {
                let client = format!("/v1/clients/{}", attacker.client());
                let wish = json!({"filters": [{"where": "type = 'cycle'"}], "durable": true}).to_string();
                let event = json!({
                    "type": "Feature", "geometry": {"type": "Point", "coordinates": [9.1, 45.4]},
                    "properties": {"type": "cycle"},
                });
                let cycle = [
                    request(&attacker, "PUT", &format!("{client}/subscriptions/s"), &wish),
                    request(&attacker, "POST", EVENTS, &event.to_string()),
                    request(&attacker, "DELETE", &client, ""),
                ];
                flood(&attacker, connect(&attacker).await?, cycle.concat(), cycle.len());
                Ok(())
            })
        },
        ..PLAIN
    },
];

/// 256 MiB of zeros, packed.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    (0..256).for_each(|_| encoder.write_all(&zeros).expect("a vector takes everything"));
    encoder.finish().expect("a vector takes everything")
});

/// A subscription of nearly as many bytes as it may have, all of them conditions.
fn huge_subscription(salt: usize) -> Value {
    let alternative = |row: usize| {
        let tests = (0..6).map(|column| format!("name_{salt}_{row}_{column} > {row}"));
        tests.collect::<Vec<_>>().join(" AND ")
    };
    let condition = (0..64).map(alternative).collect::<Vec<_>>().join(" OR ");
    json!({"filters": vec![json!({"where": condition}); 64]})
}
