//! A disk that is really full: nothing more is taken, removals are, and they make room.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Answer, Http, Program, Serve, Ws, eventually, feature, run_to_end};

/// Disks of these sizes: on the larger one the log is folded.
const SIZES_MB: [usize; 2] = [40, 120];
/// What an event takes, roughly.
const LARGE_BYTES: usize = 48_000;

/// A small file system of its own, as long as it lives.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount(size_mb: usize) -> Self {
        let folder = TempDir::new().expect("a folder");
        let size = format!("size={size_mb}m");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()));
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Takes what room there is but so many bytes, in a file that is not the broker's.
    fn fill(&self, left_bytes: usize) {
        let mut file = File::create(self.path("other")).expect("a file");
        while file.write_all(&[1; 4_096]).is_ok() {}
        let length = file.metadata().expect("it is there").len();
        file.set_len(length - left_bytes as u64).expect("it is longer");
    }

    fn empty(&self) {
        fs::remove_file(self.path("other")).expect("it is there");
    }

    fn has_ballast(&self) -> bool {
        self.path("data/ballast").exists()
    }

    async fn serve(&self, config: &str) -> (Program, Http) {
        let data = self.path("data");
        let data = data.to_str().expect("a path that is a text");
        let program = Serve::new().args(&["--data", data, "--shards", "2"]).config(config).listening().await;
        let http = program.http();
        eventually("what is on disk is read back", async || {
            (http.get("/v1/clients/nobody/subscriptions").await.status != 503).then_some(())
        })
        .await;
        (program, http)
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

fn large(id: &str) -> Value {
    let text = "x".repeat(LARGE_BYTES / 3);
    feature(id, [9.0, 45.0], json!({"a": text, "b": text, "c": text}))
}

async fn post(http: &Http, event: &Value) -> Answer {
    http.post("/v1/events", "application/geo+json", event.to_string()).await
}

async fn publish(http: &Http, id: &str) -> Answer {
    let mut event = large(id);
    event["ttl_s"] = json!(3_600);
    post(http, &event).await
}

/// Publishes live events until one is refused, and says how many were taken.
async fn publish_until_full(http: &Http, name: &str) -> usize {
    let mut taken = 0;
    loop {
        let answer = publish(http, &format!("{name}-{taken}")).await;
        if answer.status != 202 {
            assert_refused(answer);
            return taken;
        }
        taken += 1;
    }
}

async fn delete_all(http: &Http, name: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        http.delete(&format!("/v1/events/{name}-{number}")).await.expect(204);
    }
}

async fn is_short(http: &Http) -> bool {
    http.get("/metrics").await.expect(200).text().lines().any(|line| line == "nearcast_store_short 1")
}

#[track_caller]
fn assert_refused(answer: Answer) {
    let told = answer.problem(503);
    assert_eq!(told["type"], "urn:nearcast:problem:storage", "{told}");
}

/// Everything is taken again, within seconds.
async fn is_taken_again(http: &Http, what: &str) {
    let begun = Instant::now();
    eventually("it is published again", async || (publish(http, "again").await.status == 202).then_some(()))
        .await;
    http.get("/readyz").await.expect(200);
    assert!(!is_short(http).await);
    println!("{what}: everything is taken after {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(20), "{what}: {:?}", begun.elapsed());
}

async fn subscribe(http: &Http, client: &str, id: &str) -> Answer {
    let wish = json!({"filters": [{}], "durable": true});
    http.put(&format!("/v1/clients/{client}/subscriptions/{id}"), &wish).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn removals_are_taken_and_make_room() {
    for size_mb in SIZES_MB {
        let disk = SmallDisk::mount(size_mb);
        let (program, http) = disk.serve("").await;
        let wish = json!({"filters": [{"where": "a = 'none'"}]});
        http.put("/v1/clients/other/subscriptions/s", &wish).await.expect(201);
        for round in 0..3 {
            let name = format!("round-{round}");
            let taken = publish_until_full(&http, &name).await;
            println!("{size_mb} MB, round {round}: {taken} events of {LARGE_BYTES} bytes");
            assert!(taken * LARGE_BYTES > (size_mb << 20) / 4, "round {round}: only {taken} fit");
            assert!(is_short(&http).await);
            let told = http.get("/readyz").await.problem(503);
            assert!(told["detail"].as_str().is_some_and(|text| text.contains("only removals")), "{told}");
            assert_refused(http.put("/v1/clients/other/subscriptions/t", &wish).await);
            assert_refused(
                http.put("/v1/clients/other/position", &json!({"coordinates": [9.1, 45.0]})).await,
            );
            delete_all(&http, &name, 0..taken).await;
            is_taken_again(&http, &format!("{size_mb} MB, round {round}")).await;
        }
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn what_was_removed_on_a_disk_that_others_fill_stays_removed() {
    for size_mb in SIZES_MB {
        let disk = SmallDisk::mount(size_mb);
        let (program, http) = disk.serve("").await;
        for number in 0..100 {
            publish(&http, &format!("event-{number}")).await.expect(202);
            subscribe(&http, &format!("client-{number}"), "s").await.expect(201);
        }
        disk.fill(0);
        delete_all(&http, "event", 0..50).await;
        for number in 0..50 {
            http.delete(&format!("/v1/clients/client-{number}")).await.expect(204);
        }
        program.kill();
        let (mut program, mut http) = disk.serve("").await;
        for restart in 0..5 {
            for number in 0..100 {
                let path = format!("/v1/clients/client-{number}/subscriptions/s");
                http.get(&path).await.expect(if number < 50 + restart { 404 } else { 200 });
            }
            http.delete(&format!("/v1/events/event-{}", 49 + restart)).await.expect(404);
            http.delete(&format!("/v1/events/event-{}", 50 + restart)).await.expect(204);
            http.delete(&format!("/v1/clients/client-{}", 50 + restart)).await.expect(204);
            program.kill();
            (program, http) = disk.serve("").await;
        }
        disk.empty();
        is_taken_again(&http, &format!("{size_mb} MB")).await;
        program.finish().await;
    }
}

/// A store that is larger than the room beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn a_wipe_does_not_fill_the_disk() {
    for (size_mb, events) in [(120, 600), (120, 1_500)] {
        let disk = SmallDisk::mount(size_mb);
        let (program, http) = disk.serve("").await;
        for number in 0..events {
            publish(&http, &format!("event-{number}")).await.expect(202);
        }
        let data = disk.path("data").to_str().expect("a path that is a text").to_owned();
        let wiping = tokio::task::spawn_blocking(move || run_to_end(&["wipe", &data], &[], Path::new(".")));
        while !wiping.is_finished() {
            assert!(!is_short(&http).await && disk.has_ballast());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let output = wiping.await.expect("no panic");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{size_mb} MB with {events} events: {:?} {told}", output.status);
        assert!(output.status.success() || told.contains("no room"), "{told}");
        publish(&http, "one-more").await.expect(202);
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn a_disk_that_becomes_full_during_a_fold_has_room_again() {
    for left_bytes in [0, 1 << 20, 3 << 20, 6 << 20, 12 << 20] {
        let disk = SmallDisk::mount(120);
        let (program, http) = disk.serve("").await;
        // The log is folded when it has 32 MiB.
        for number in 0..690 {
            publish(&http, &format!("before-{number}")).await.expect(202);
        }
        disk.fill(left_bytes);
        let taken = publish_until_full(&http, "event").await;
        println!("{left_bytes} bytes were left: {taken} more events");
        delete_all(&http, "event", 0..taken).await;
        delete_all(&http, "before", 0..690).await;
        is_taken_again(&http, &format!("{left_bytes} bytes were left")).await;
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn removals_that_make_no_room_are_taken_all_the_same() {
    let disk = SmallDisk::mount(40);
    let (program, http) = disk.serve("").await;
    for client in 0..100 {
        join_all((0..50).map(|id| {
            let (http, client) = (&http, format!("client-{client}"));
            async move { subscribe(http, &client, &id.to_string()).await.expect(201) }
        }))
        .await;
    }
    disk.fill(0);
    for client in 0..100 {
        join_all((0..50).map(|id| {
            let (http, path) = (&http, format!("/v1/clients/client-{client}/subscriptions/{id}"));
            async move { http.delete(&path).await.expect(204) }
        }))
        .await;
    }
    assert!(is_short(&http).await);
    program.kill();
    let (program, http) = disk.serve("").await;
    http.get("/v1/clients/client-99/subscriptions/49").await.expect(404);
    disk.empty();
    is_taken_again(&http, "after 5,000 removals").await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn acknowledgements_make_room() {
    for size_mb in SIZES_MB {
        let disk = SmallDisk::mount(size_mb);
        let (program, http) = disk.serve("[sessions]\nkept_bytes = 200_000_000\n").await;
        for client in ["one", "two", "three"] {
            subscribe(&http, client, "s").await.expect(201);
        }
        let mut taken = 0_u64;
        while post(&http, &large("passing")).await.status == 202 {
            taken += 1;
        }
        println!("{size_mb} MB: {taken} events are kept");
        assert!(is_short(&http).await);
        // What no room was found for is kept as well, as soon as there is some.
        for client in ["one", "two", "three"] {
            let mut reader: Ws = program.ws(client).await;
            let mut last = 0;
            while last < taken {
                last = reader.next().await["offset"].as_u64().expect("an offset");
                if last.is_multiple_of(50) || last == taken {
                    reader.send(&json!({"op": "ack", "offset": last})).await;
                }
            }
        }
        is_taken_again(&http, &format!("{size_mb} MB")).await;
        program.finish().await;
    }
}

/// One shard comes to the events before the other, which writes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "mounts a file system, which takes root: make full-disk-test"]
async fn parallel_batches_of_large_events_leave_room_for_removals() {
    const BATCHES: usize = 8;
    const EVENTS: usize = 400;
    let disk = SmallDisk::mount(120);
    let (program, http) = disk.serve("").await;
    let batch = |number: usize| {
        let lines = (0..EVENTS).map(|event| {
            let mut event = large(&format!("batch-{}", number * EVENTS + event));
            event["ttl_s"] = json!(3_600);
            event.to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    for round in 0..3 {
        let answers = join_all((0..BATCHES).map(|number| {
            let (http, batch) = (&http, batch(number));
            async move { http.post("/v1/events", "application/x-ndjson", batch).await }
        }))
        .await;
        assert!(answers.iter().all(|answer| [202, 503].contains(&answer.status)));
        assert!(answers.iter().any(|answer| answer.status == 503), "all of it fitted");
        // Those that were not taken are none.
        let mut removed = 0;
        for number in 0..BATCHES * EVENTS {
            let answer = http.delete(&format!("/v1/events/batch-{number}")).await;
            assert!([204, 404].contains(&answer.status), "round {round}: {}", answer.status);
            removed += usize::from(answer.status == 204);
        }
        println!("round {round}: {removed} events of {LARGE_BYTES} bytes were there");
        is_taken_again(&http, &format!("round {round}")).await;
        http.delete("/v1/events/again").await.expect(204);
    }
    program.finish().await;
}
