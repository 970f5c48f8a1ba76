//! Publishes one event, and then many with back-pressure.

use nearcast_client::{Batch, connect, event, iter};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), nearcast_client::Error> {
    let url = std::env::args().nth(1).or_else(|| std::env::var("NEARCAST_URL").ok());
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7070".to_owned());
    let (session, _) = connect(url, "publisher-rs").await?;

    let id = session.publish(&event([9.1901, 45.465], json!({"type": "accident", "severity": 3}))).await?;
    println!("published {id}");

    let readings =
        (0..2000).map(|n| event([9.19 + f64::from(n) * 1e-5, 45.46], json!({"type": "reading", "value": n})));
    let report = session.publish_many(iter(readings), Batch::default()).await?;
    println!("accepted {} rejected {}", report.accepted, report.rejected.len());

    session.forget().await // closes the session, and leaves nothing at the broker
}
