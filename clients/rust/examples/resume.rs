//! What is published while nobody reads is kept for a durable subscription. The next process goes on where the last one was.

use nearcast_client::{Message, Subscription, attr, connect, event};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("NEARCAST_URL").unwrap_or_else(|_| "http://localhost:7070".to_owned());
    let (publisher, _) = connect(&url, "publisher").await?;

    let (before, mut messages) = connect(&url, "ann").await?;
    before.subscribe("fires", Subscription::from(attr("type").eq("fire")).durable()).await?;
    publisher.publish(&event([9.19, 45.46], json!({"type": "fire", "n": 1}))).await?;
    if let Some(Message::Event(event)) = messages.next().await.transpose()? {
        println!("before {}", event.feature.properties["n"]);
    }
    let stored = before.checkpoint(); // An application writes it to disk, together with what it made of the event.
    before.close().await;

    publisher.publish(&event([9.19, 45.46], json!({"type": "fire", "n": 2}))).await?;

    let (after, mut messages) = connect(&url, "ann").resume(stored).await?;
    match messages.next().await.transpose()? {
        Some(Message::Gap(gap)) => println!("lost {} because of {}", gap.count, gap.reason),
        Some(Message::Event(event)) => println!("after {}", event.feature.properties["n"]),
        _ => {}
    }
    after.close().await;
    publisher.close().await;
    Ok(())
}
