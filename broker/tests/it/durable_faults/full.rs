//! A disk that is really full: nothing more is taken, removals are, and they make room.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Answer, Http, Program, Serve, eventually, feature};

/// A small file system of its own, as long as it lives.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let folder = TempDir::new().expect("a folder");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=40m", "tmpfs"]).arg(folder.path()));
        Self(folder)
    }

    fn data(&self) -> String {
        self.0.path().join("data").to_str().expect("a path that is a text").to_owned()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Also where a program still has files on it.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("it can be started");
    assert!(status.success(), "{command:?}, which takes root: {status}");
}

async fn serve(data: &Path) -> Program {
    let data = data.to_str().expect("a path that is a text");
    // One after the other: with a removal that is on disk, so is what was asked for before.
    Serve::new().args(&["--data", data, "--shards", "1"]).listening().await
}

async fn readyz(http: &Http, status: u16) {
    let what = format!("/readyz says {status}");
    eventually(&what, async || (http.get("/readyz").await.status == status).then_some(())).await;
}

async fn publish(http: &Http, id: &str, properties: Value) -> Answer {
    let mut event = feature(id, [9.0, 45.0], properties);
    event["ttl_s"] = json!(3_600);
    http.post("/v1/events", "application/geo+json", event.to_string()).await
}

async fn is_short(http: &Http) -> bool {
    http.get("/metrics").await.expect(200).text().lines().any(|line| line == "nearcast_store_short 1")
}

#[track_caller]
fn assert_refused(answer: Answer) {
    let told = answer.problem(503);
    assert_eq!(told["type"], "urn:nearcast:problem:storage", "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn on_a_full_disk_removals_are_taken_and_make_room() {
    let disk = SmallDisk::mount();
    let data = disk.data();
    let program = serve(Path::new(&data)).await;
    let http = program.http();
    readyz(&http, 200).await;
    let wish = json!({"filters": [{"where": "small = 1"}], "durable": true});
    for client in ["reader", "leaver"] {
        for subscription in ["s", "t"] {
            http.put(&format!("/v1/clients/{client}/subscriptions/{subscription}"), &wish).await.expect(201);
        }
        http.put(&format!("/v1/clients/{client}/position"), &json!({"coordinates": [9.0, 45.0]})).await;
    }
    let mut reader = program.ws("reader").await;
    publish(&http, "small", json!({"small": 1})).await.expect(202);
    let offset = reader.next().await["offset"].clone();
    assert!(offset.is_u64(), "{offset}");

    let text = "x".repeat(16_000);
    let large = json!({"a": text, "b": text, "c": text});
    let mut published = 0;
    let refused = loop {
        let answer = publish(&http, &format!("large-{published}"), large.clone()).await;
        if answer.status != 202 {
            break answer;
        }
        published += 1;
    };
    assert_refused(refused);
    println!("{published} events of 48,000 bytes until the disk was full");
    readyz(&http, 503).await;
    assert!(is_short(&http).await);
    assert_refused(http.put("/v1/clients/other/subscriptions/s", &wish).await);
    assert_refused(http.put("/v1/clients/reader/position", &json!({"coordinates": [9.1, 45.0]})).await);
    assert_refused(publish(&http, "one-more", json!({})).await);

    reader.send(&json!({"op": "ack", "offset": offset})).await;
    // Answered behind it.
    reader.problem(json!({"op": "subscribe", "id": "u", "filters": [{}]})).await;
    http.delete("/v1/events/large-0").await.expect(204);
    http.delete("/v1/clients/reader/subscriptions/t").await.expect(204);
    http.delete("/v1/clients/leaver").await.expect(204);
    program.kill();

    let program = serve(Path::new(&data)).await;
    let http = program.http();
    eventually("what is on disk is read back", async || {
        (http.get("/v1/clients/reader/subscriptions").await.status == 200).then_some(())
    })
    .await;
    assert_eq!(program.ws("reader").await.ready["offset"], offset);
    http.delete("/v1/events/large-0").await.expect(404);
    http.delete("/v1/clients/reader/subscriptions/t").await.expect(404);
    http.get("/v1/clients/leaver/subscriptions/s").await.expect(404);
    // The disk has not become larger meanwhile.
    assert!(is_short(&http).await);
    for number in 1..published {
        http.delete(&format!("/v1/events/large-{number}")).await.expect(204);
    }
    readyz(&http, 200).await;
    assert!(!is_short(&http).await);
    publish(&http, "after", large).await.expect(202);
    program.finish().await;
}
