//! A copy that takes the original's place.

use serde_json::json;
use tempfile::TempDir;

use super::{durable, epoch, expect_events, expect_gap, publish, subscribe};
use crate::harness::{Program, Serve, Ws, run_to_end};

async fn start(folder: &TempDir, data: &str) -> Program {
    let data = folder.path().join(data);
    Serve::new().args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")]).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_further_than_the_copy_is_told_and_misses_nothing_of_it() {
    let folder = TempDir::new().expect("a folder");
    let original = start(&folder, "data").await;
    subscribe(&original.http(), "car", "s", &durable()).await;
    publish(&original.http(), 1, 3).await;
    let mut car = original.ws("car").await;
    expect_events(&mut car, 1..=3).await;
    car.send(&json!({"op": "ack", "offset": 1})).await;
    // The move that was answered took the acknowledgement along.
    car.place([9.0, 45.0]).await;
    let before = epoch(&car);
    let output = run_to_end(&["backup", "--data", "data", "--to", "copy"], &[], folder.path());
    assert!(output.status.success(), "{output:?}");
    publish(&original.http(), 4, 3).await;
    expect_events(&mut car, 4..=6).await;
    car.send(&json!({"op": "ack", "offset": 5})).await;
    car.assert_quiet().await;
    original.kill();

    let copy = start(&folder, "copy").await;
    // Offsets 4 to 6 once more, for others.
    publish(&copy.http(), 4, 3).await;
    let mut car = Ws::resume(copy.address(), "car", &before, 6).await;
    let after = epoch(&car);
    assert_ne!(after, before, "the copy goes on in the original's session");
    assert_eq!(car.ready["offset"], 1);
    expect_gap(&mut car, 2, 1, "epoch").await;
    expect_events(&mut car, 2..=6).await;
    car.assert_quiet().await;
    copy.kill();

    let again = start(&folder, "copy").await;
    let mut car = Ws::resume(again.address(), "car", &after, 5).await;
    assert_eq!((&car.ready["epoch"], &car.ready["offset"]), (&json!(after), &json!(5)));
    expect_events(&mut car, [6]).await;
    car.assert_quiet().await;
    again.finish().await;
}
