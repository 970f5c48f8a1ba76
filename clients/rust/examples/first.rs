//! The first sample of the README.

use nearcast_client::{Message, around, attr, connect, event};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), nearcast_client::Error> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("NEARCAST_URL").ok());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let (ann, mut messages) = connect(url, "ann-rs").await?;
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
    ann.forget().await // closes the session, and leaves nothing at the broker
}
