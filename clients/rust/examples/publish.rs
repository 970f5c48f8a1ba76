//! Publishes one event, and then many with back-pressure.

use nearcast_client::{Batch, connect, event, iter};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("NEARCAST_URL").unwrap_or_else(|_| "http://localhost:7070".to_owned());
    let (session, _) = connect(url, "publisher").await?;

    let id = session.publish(&event([9.1901, 45.465], json!({"type": "accident", "severity": 3}))).await?;
    println!("published {id}");

    let readings = (0..2000).map(|n| {
        let lon = 9.19 + f64::from(n) * 1e-5;
        event([lon, 45.46], json!({"type": "reading", "value": n}))
            .key(format!("sensor-{}", n % 100))
            .ttl_s(60.0)
    });
    let report = session.publish_many(iter(readings), Batch::default()).await?;
    println!("accepted {} rejected {}", report.accepted, report.rejected.len());

    session.close().await;
    Ok(())
}
