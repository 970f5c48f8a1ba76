//! Harm by what an engine has to do for it.

use serde_json::{Value, json};

use super::attack::{Attack, Attacker, Size, Tenant, live_event, place};
use super::floods::FLOOD_BYTES;
use super::held::{LIVE_EVENT_BYTES, MEMBERS_BYTES};

/// `limits.constraints_per_client` at 1.2 KB each, at most.
const CONSTRAINTS_BYTES: u64 = 100_000 * 1_200;
/// An area of 9,900 vertices, prepared, and what it was sent as.
const POLYGON_BYTES: u64 = 4 << 20;

/// The middle of the city.
const CENTER: [f64; 2] = [9.19, 45.46];

/// What stands for an attack of this family, but for what it is.
const PLAIN: Attack = Attack {
    slug: "",
    name: "",
    clients: Size::new(1, 1),
    bound_bytes: FLOOD_BYTES + MEMBERS_BYTES,
    shared_bytes: 0,
    live: Size::NONE,
    tenant: Tenant::Same,
    begin: |_| Box::pin(async { Ok(()) }),
};

/// The family.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        slug: "put-filters",
        name: "subscriptions of 64 filters of 31 LIKEs, over 300 live events with texts",
        bound_bytes: PLAIN.bound_bytes + CONSTRAINTS_BYTES,
        live: Size::new(300, 20),
        begin: |attacker| {
            Box::pin(async move {
                tokio::spawn(async move {
                    let (filters, likes_each) = (attacker.scaled(64, 4), attacker.scaled(31, 4));
                    for salt in 0_usize.. {
                        attacker.subscribe("s", &likes(filters, likes_each, salt % 2)).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "following-filters",
        name: "moves with 200 subscriptions of 64 filters that follow, among 2,000 live events",
        bound_bytes: PLAIN.bound_bytes + CONSTRAINTS_BYTES,
        live: Size::new(2_000, 100),
        begin: |attacker| {
            Box::pin(async move {
                let filter =
                    |number| json!({"area": {"radius_m": 50_000}, "where": format!("type = 'x{number}'")});
                let subscription =
                    json!({"filters": (0..attacker.scaled(64, 4)).map(filter).collect::<Vec<_>>()});
                for index in 0..attacker.scaled(200, 4) {
                    attacker.subscribe(&format!("s{index}"), &subscription).await;
                }
                tokio::spawn(to_and_fro(attacker));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "likes",
        name: "100,000 LIKEs and a publisher of texts of 16 KB",
        bound_bytes: PLAIN.bound_bytes + CONSTRAINTS_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                for index in 0..attacker.scaled(27, 2) {
                    let (filters, likes_each) = (attacker.scaled(57, 4), 64);
                    attacker.subscribe(&format!("s{index}"), &likes(filters, likes_each, 2 + index)).await;
                }
                tokio::spawn(async move {
                    let properties = json!({"type": "long", "t": "a".repeat(16_000)});
                    loop {
                        let event = json!({
                            "type": "Feature", "properties": properties,
                            "geometry": {"type": "Point", "coordinates": CENTER},
                        });
                        attacker.publish(std::iter::once(event), 1).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "nearest",
        name: "1,000 subscriptions to the 1,000 nearest of 2,000 live objects, and updates of these",
        live: Size::new(2_000, 100),
        begin: |attacker| {
            Box::pin(async move {
                let area =
                    json!({"center": CENTER, "radius_m": 500_000, "nearest": attacker.scaled(1_000, 10)});
                let subscription = json!({"filters": [{"area": area}], "on": ["enter", "exit"]});
                for index in 0..attacker.scaled(1_000, 10) {
                    attacker.subscribe(&format!("s{index}"), &subscription).await;
                }
                tokio::spawn(update(attacker, 200));
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "hysteresis",
        name: "hysteresis around polygons of 9,900 vertices, updates of 500 objects outside of them, and moves",
        bound_bytes: PLAIN.bound_bytes + 4 * POLYGON_BYTES + 500 * LIVE_EVENT_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let polygon = json!({"type": "Polygon", "coordinates": [circle(attacker.scaled(9_900, 99))]});
                let subscription = json!({
                    "filters": [{"area": {"polygon": polygon}}],
                    "on": ["enter", "exit"], "hysteresis_m": 100_000,
                });
                for index in 0..4 {
                    attacker.subscribe(&format!("s{index}"), &subscription).await;
                }
                let count = attacker.scaled(500, 20);
                let objects = |coordinates| (0..count).map(move |number| object("held", number, coordinates));
                attacker.publish(objects(CENTER), 100).await;
                attacker.publish(objects(OUTSIDE), 100).await;
                let mut wide = live_event("wide", 0, &json!({"type": "wide"}));
                wide["reach_m"] = json!(2e7);
                attacker.publish(std::iter::once(wide), 1).await;
                let mover = attacker.clone();
                tokio::spawn(to_and_fro(mover));
                tokio::spawn(async move {
                    for number in (0..count).cycle() {
                        attacker.publish(std::iter::once(object("held", number, OUTSIDE)), 1).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "reaches",
        name: "100,000 live events of another tenant that reach half of the earth",
        tenant: Tenant::Other,
        bound_bytes: 100_000 * LIVE_EVENT_BYTES,
        begin: |attacker| {
            Box::pin(async move {
                let wide = |number| {
                    let mut event = live_event("wide", number, &json!({"type": "wide"}));
                    event["reach_m"] = json!(2e7);
                    event
                };
                attacker.publish((0..attacker.scaled(100_000, 100)).map(wide), 1_000).await;
                Ok(())
            })
        },
        ..PLAIN
    },
    Attack {
        slug: "put-loop",
        name: "subscriptions of 16 bytes to 20,000 live events, replaced again and again",
        live: Size::new(20_000, 100),
        begin: |attacker| {
            Box::pin(async move {
                tokio::spawn(async move {
                    loop {
                        attacker.subscribe("s", &json!({"filters": [{}]})).await;
                    }
                });
                Ok(())
            })
        },
        ..PLAIN
    },
];

/// Beside the polygons, within the hysteresis.
const OUTSIDE: [f64; 2] = [9.7, 45.46];

/// Filters of as many alternatives, each different and none true of a text of one letter.
fn likes(filters: usize, likes_each: usize, salt: usize) -> Value {
    let filter = |filter: usize| {
        let one = |like: usize| format!("t LIKE '%_{:x}z'", (salt * filters + filter) * likes_each + like);
        json!({"where": (0..likes_each).map(one).collect::<Vec<_>>().join(" OR ")})
    };
    json!({"filters": (0..filters).map(filter).collect::<Vec<_>>()})
}

/// A circle as a ring.
fn circle(vertices: usize) -> Vec<[f64; 2]> {
    let vertex = |number: usize| {
        let angle = number as f64 / vertices as f64 * std::f64::consts::TAU;
        [CENTER[0] + 0.1 * angle.cos(), CENTER[1] + 0.1 * angle.sin()]
    };
    // It ends where it began.
    (0..vertices).map(vertex).chain([vertex(0)]).collect()
}

/// An object that is somewhere.
fn object(id: &str, number: usize, coordinates: [f64; 2]) -> Value {
    json!({
        "type": "Feature", "key": format!("{id}-{number}"), "properties": {"type": "held"},
        "geometry": {"type": "Point", "coordinates": coordinates},
    })
}

/// Moves for ever.
async fn to_and_fro(attacker: Attacker) {
    for coordinates in [[9.05, 45.33], [9.15, 45.37]].into_iter().cycle() {
        attacker.go(coordinates).await;
    }
}

/// Moves objects for ever.
async fn update(attacker: Attacker, count: usize) {
    for number in (0..count).cycle() {
        attacker.publish(std::iter::once(object("near", number % 20, place(number * 7))), 1).await;
    }
}
