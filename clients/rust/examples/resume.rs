//! What is published while nobody reads is kept for a durable subscription. The next process goes on where the last one was.

use nearcast_client::{Message, Subscription, attr, connect, event};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), nearcast_client::Error> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("NEARCAST_URL").ok());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let client = "phone-rs";
    connect(&url, client).await?.0.forget().await?; // what a run that was broken off has left

    let (before, mut messages) = connect(&url, client).await?;
    before.subscribe("fires", Subscription::from(attr("type").eq("fire")).durable()).await?;
    before.publish(&event([9.19, 45.46], json!({"type": "fire", "n": 1}))).await?;
    if let Some(Message::Event(event)) = messages.next().await.transpose()? {
        println!("before {}", event.feature.properties["n"]);
    }
    let stored = before.checkpoint(); // An application writes it to disk, together with what it made of the event.
    before.close().await;

    let (elsewhere, _) = connect(&url, "alarm-rs").await?;
    elsewhere.publish(&event([9.19, 45.46], json!({"type": "fire", "n": 2}))).await?;
    elsewhere.forget().await?;

    let (after, mut messages) = connect(&url, client).resume(stored).await?;
    match messages.next().await.transpose()? {
        Some(Message::Gap(gap)) => println!("lost {} because of {}", gap.count, gap.reason),
        Some(Message::Event(event)) => println!("after {}", event.feature.properties["n"]),
        _ => {}
    }
    after.forget().await // A durable subscription would go on to keep what matches.
}
