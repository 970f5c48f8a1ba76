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
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("NEARCAST_URL").unwrap_or_else(|_| "http://localhost:7070".to_owned());
    let (car, messages) = connect(&url, "car-7").await?;
    let mut messages = messages.typed::<Incident>();
    let accidents = attr("type").eq("accident").and(attr("severity").ge(2));
    car.subscribe("accidents", around(500.0).when(accidents)).await?;

    let (control_room, _) = connect(&url, "control-room").await?;
    let accident = event([9.2, 45.46], json!({"type": "accident", "severity": 3}));
    control_room.publish(&accident.ttl(Duration::from_secs(600))).await?;

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
    control_room.close().await;
    car.close().await;
    Ok(())
}
