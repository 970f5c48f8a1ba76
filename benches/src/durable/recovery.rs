//! How long it takes until a broker that was killed has everything again.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use futures_util::stream::{self, TryStreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::fanout::process::Broker;

/// Clients of a bucket: each event is kept for so many.
const BUCKET_CLIENTS: u64 = 100;
/// Buckets of clients.
const BUCKETS: u64 = 10;
/// Events of a request.
const BATCH: u64 = 500;
/// Requests under way at once.
const REQUESTS_MAX: usize = 32;

/// Fills a data directory with that many kept matches, kills the broker, and starts it again. Returns a Markdown table.
///
/// # Errors
/// When anything is missing afterwards.
pub async fn measure(program: &Path, folder: &Path, kept: u64) -> anyhow::Result<String> {
    let data = tempfile::TempDir::new_in(folder)?;
    let arguments = ["--data".to_owned(), data.path().display().to_string()];
    let broker = Broker::start(program, &arguments)?;
    subscribe(broker.address).await?;
    let started = Instant::now();
    let events = publish(broker.address, kept / BUCKET_CLIENTS).await?;
    let filled_s = started.elapsed().as_secs_f64();
    let resident_before = broker.resident_bytes()?;
    // Dropped, it is killed: this is not the start after a clean end.
    drop(broker);
    let disk_bytes = size(data.path())?;

    let mut table = "| kept matches | clients | filled in s | on disk MB | start | ready after s | broker, resident MB before / after |\n"
        .to_owned();
    writeln!(table, "|{}", " --- |".repeat(7))?;
    for start in ["after a kill", "after a kill, again"] {
        let started = Instant::now();
        let broker = Broker::start(program, &arguments)?;
        let ready_s = started.elapsed().as_secs_f64();
        let resident_after = broker.resident_bytes()?;
        check(broker.address, events).await?;
        writeln!(
            table,
            "| {} | {} | {filled_s:.1} | {:.1} | {start} | {ready_s:.2} | {:.1} / {:.1} |",
            events * BUCKET_CLIENTS,
            BUCKETS * BUCKET_CLIENTS,
            disk_bytes as f64 / 1e6,
            resident_before as f64 / 1e6,
            resident_after as f64 / 1e6,
        )?;
    }
    Ok(table)
}

fn name(number: u64) -> String {
    format!("sleeper-{number}")
}

async fn subscribe(broker: SocketAddr) -> anyhow::Result<()> {
    let http = reqwest::Client::new();
    let subscribe = (0..BUCKETS * BUCKET_CLIENTS).map(async |number| {
        let wish = json!({"filters": [{"where": format!("bucket = {}", number % BUCKETS)}], "durable": true});
        let url = format!("http://{broker}/v1/clients/{}/subscriptions/s", name(number));
        http.put(url).json(&wish).send().await?.error_for_status()?;
        anyhow::Ok(())
    });
    stream::iter(subscribe).buffered(REQUESTS_MAX).try_collect::<Vec<()>>().await?;
    Ok(())
}

/// Publishes events, as many for each bucket. Returns how many.
async fn publish(broker: SocketAddr, events: u64) -> anyhow::Result<u64> {
    let events = events.div_ceil(BUCKETS) * BUCKETS;
    let http = reqwest::Client::new();
    let mut number = 0;
    while number < events {
        let end = events.min(number + BATCH);
        let mut body = String::new();
        for number in number..end {
            let bucket = number % BUCKETS;
            writeln!(
                body,
                r#"{{"type":"Feature","id":{number},"geometry":{{"type":"Point","coordinates":[9.19,45.46]}},"properties":{{"bucket":{bucket},"type":"accident","severity":3,"road":{{"name":"A4"}}}}}}"#
            )?;
        }
        let request = http.post(format!("http://{broker}/v1/events"));
        let request = request.header("content-type", "application/x-ndjson").body(body);
        let answer: Value = request.send().await?.error_for_status()?.json().await?;
        ensure!(answer["accepted"] == end - number, "the broker answered {answer}");
        number = end;
    }
    Ok(events)
}

/// Reads what is kept for one client of each bucket.
async fn check(broker: SocketAddr, events: u64) -> anyhow::Result<()> {
    for number in 0..BUCKETS {
        let url = format!("ws://{broker}/v1/clients/{}/ws", name(number));
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
        let mut offset = 0;
        while offset < events / BUCKETS {
            let message = socket.next().await.context("the connection closed")??;
            let Message::Text(text) = message else { continue };
            let frame: Value = serde_json::from_str(&text)?;
            if frame["op"] == "ready" {
                continue;
            }
            offset += 1;
            ensure!(
                frame["op"] == "event" && frame["offset"] == offset,
                "{offset} should have come: {frame}"
            );
        }
    }
    Ok(())
}

/// Bytes of the files of a folder, as much of them as the disk holds.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // In blocks of 512 bytes, whatever the file system's own are.
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
