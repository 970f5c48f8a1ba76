//! A bus comes near and drives off again.

use nearcast_client::{Message, Subscription, Transition, around, attr, connect, event};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), nearcast_client::Error> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("NEARCAST_URL").ok());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let (stop, mut messages) = connect(url, "stop-rs").await?;

    // One object that moves: a newer event of the same key takes the place of the one before.
    let bus = |lon| event([lon, 45.4642], json!({"type": "bus", "line": "94"})).key("bus-rs").ttl_s(60.0);
    stop.publish(&bus(9.19)).await?;

    stop.move_confirmed([9.1985, 45.4642]).await?;
    let buses = Subscription::from(around(300.0).when(attr("type").eq("bus")));
    stop.subscribe("buses", buses.enters().exits().hysteresis_m(20.0)).await?;
    stop.publish(&bus(9.198)).await?;
    stop.publish(&bus(9.199)).await?;
    let last = stop.publish(&bus(9.207)).await?;

    while let Some(message) = messages.next().await {
        let Message::Event(event) = message? else { continue };
        let Some(transition) = &event.transition else { continue };
        println!("{transition} {} {}", event.feature.key.unwrap_or_default(), event.feature.coordinates.lon);
        if *transition == Transition::Exit {
            break;
        }
    }

    // Nothing of this is left at the broker.
    stop.revoke(&last).await?;
    stop.forget().await
}
