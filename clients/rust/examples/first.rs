//! The first sample of the README.

use nearcast_client::{Message, around, attr, connect, event};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), nearcast_client::Error> {
    let (ann, mut messages) = connect(std::env::var("NEARCAST_URL").expect("an address"), "ann").await?;
    ann.move_to([9.1895, 45.4642])?;
    let accidents = attr("type").eq("accident").and(attr("severity").ge(2));
    ann.subscribe("accidents", around(500.0).when(accidents)).await?;

    ann.publish(&event([9.1901, 45.465], json!({"type": "accident", "severity": 3}))).await?;

    while let Some(message) = messages.next().await {
        if let Message::Event(event) = message? {
            println!("{}", event.feature.properties); // {"severity":3,"type":"accident"}
            break;
        }
    }
    ann.close().await;
    Ok(())
}
