//! A car drives, and hears of accidents within 500 m of wherever it is.

use std::time::Duration;

use nearcast_client::{Fix, Follow, Message, around, attr, connect, event, iter};
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Deserialize)]
struct Incident {
    r#type: String,
    severity: u8,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), nearcast_client::Error> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("NEARCAST_URL").ok());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let (car, messages) = connect(&url, "car-rs").await?;
    let mut messages = messages.typed::<Incident>();
    car.move_confirmed([9.18, 45.46]).await?;
    let accidents = attr("type").eq("accident").and(attr("severity").ge(2));
    car.subscribe("accidents", around(500.0).when(accidents)).await?;

    // It lives for a minute: who comes near until then hears of it.
    let (control_room, _) = connect(&url, "control-room-rs").await?;
    let accident = event([9.2, 45.46], json!({"type": "accident", "severity": 3}));
    let id = control_room.publish(&accident.key("accident-rs").ttl(Duration::from_secs(60))).await?;

    // 2 km along the road, as a phone would tell it.
    let drive = (0..=100).map(|n| Fix::at([9.18 + f64::from(n) * 2.6e-4, 45.46]).accuracy_m(5.0));
    car.follow(iter(drive), Follow::default().min_distance_m(100.0).min_interval(Duration::ZERO)).await?;

    while let Some(message) = messages.next().await {
        if let Message::Event(event) = message? {
            let Incident { r#type, severity } = event.feature.properties;
            println!("{} of severity {severity} ahead, because we {}", r#type, event.cause);
            break;
        }
    }

    // Nothing of this is left at the broker.
    control_room.revoke(&id).await?;
    control_room.forget().await?;
    car.forget().await
}
