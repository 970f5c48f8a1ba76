//! Buses come near and drive off again.

use nearcast_client::{Message, Subscription, Transition, around, attr, connect, event};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("NEARCAST_URL").unwrap_or_else(|_| "http://localhost:7070".to_owned());
    let (stop, mut messages) = connect(url, "stop-12").await?;
    stop.move_confirmed([9.1985, 45.4642]).await?;
    let buses = Subscription::from(around(300.0).when(attr("type").eq("bus")));
    stop.subscribe("buses", buses.enters().exits().hysteresis_m(20.0)).await?;

    // One object that moves: a newer event of the same key takes the place of the one before.
    for lon in [9.19, 9.198, 9.199, 9.207] {
        let bus = event([lon, 45.4642], json!({"type": "bus", "line": "94"}));
        stop.publish(&bus.key("bus-7").ttl_s(600.0)).await?;
    }

    while let Some(message) = messages.next().await {
        let Message::Event(event) = message? else { continue };
        let Some(transition) = &event.transition else { continue };
        println!("{transition} {} {}", event.feature.key.unwrap_or_default(), event.feature.coordinates.lon);
        if *transition == Transition::Exit {
            break;
        }
    }
    stop.close().await;
    Ok(())
}
