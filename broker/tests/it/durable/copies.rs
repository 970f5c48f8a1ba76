//! A copy that takes the original's place.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::{durable, epoch, expect_events, expect_gap, publish, subscribe};
use crate::harness::{Program, Serve, Ws, eventually, run_to_end};

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

/// Whether something stands in a file of a directory, or in one of its directories.
fn holds(dir: &Path, bytes: &[u8]) -> bool {
    let entries = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    // Nobody writes into the ballast, which is large.
    let is_written = |path: &Path| (path.is_dir() || path.is_file()) && !path.ends_with("ballast");
    entries.filter(|path| is_written(path)).any(|path| {
        // One that is replaced meanwhile is looked at again.
        let text = || std::fs::read(&path).unwrap_or_default();
        if path.is_dir() {
            holds(&path, bytes)
        } else {
            text().windows(bytes.len()).any(|found| found == bytes)
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_is_in_no_copy_and_after_a_kill_not_on_the_disk() {
    let folder = TempDir::new().expect("a folder");
    let [data, copy] = ["data", "copy"].map(|name| folder.path().join(name));
    let serve = || Serve::new().args(&["--data", data.to_str().expect("UTF-8")]);
    let program = serve().start().await;
    let http = program.http();
    subscribe(&http, "leaver", "s", &json!({"filters": [{"where": "kind = 'only-of-the-leaver'"}]})).await;
    let longitudes = [7.123_456_789_f64, 7.123_456_791];
    for longitude in longitudes {
        let told = http.put("/v1/clients/leaver/position", &json!({"coordinates": [longitude, 45.0]})).await;
        assert!((200..300).contains(&told.status), "{told:?}");
    }
    subscribe(&http, "stayer", "s", &durable()).await;
    let holds_something = |dir: &Path| {
        let places = longitudes.map(f64::to_le_bytes);
        let texts = [&b"leaver"[..], b"only-of-the"];
        places.iter().map(|place| &place[..]).chain(texts).any(|bytes| holds(dir, bytes))
    };
    assert!(holds_something(&data), "it would not be seen");
    let gone = http.delete("/v1/clients/leaver").await;
    assert!(gone.status == 204, "{gone:?}");
    let output = run_to_end(&["backup", "--data", "data", "--to", "copy"], &[], folder.path());
    assert!(output.status.success(), "{output:?}");
    assert!(!holds_something(&copy), "a copy has something of who was forgotten before");
    program.kill();
    assert!(holds_something(&data), "it is not to be seen at once");
    let program = serve().start().await;
    eventually("who was deleted is not on the disk", async || (!holds_something(&data)).then_some(())).await;
    assert!(holds(&data, b"stayer") && holds(&copy, b"stayer"));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_is_wiped_on_demand() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let program = Serve::new().args(&["--data", data.to_str().expect("UTF-8")]).start().await;
    let http = program.http();
    for client in ["leaver", "stayer"] {
        subscribe(&http, client, "s", &durable()).await;
    }
    http.delete("/v1/clients/leaver").await.expect(204);
    assert!(holds(&data, b"leaver"), "it is not to be seen at once");
    let wipe = || {
        let output = run_to_end(&["wipe", "data"], &[], folder.path());
        assert!(output.status.success(), "{output:?}");
    };
    wipe();
    assert!(!holds(&data, b"leaver") && holds(&data, b"stayer"));
    http.delete("/v1/clients/stayer").await.expect(204);
    program.finish().await;
    assert!(holds(&data, b"stayer"), "it is not to be seen at once");
    wipe();
    assert!(!holds(&data, b"stayer"));
}
