//! What appending to a stream with three replicas costs, and what reading a record does. Starts three NATS servers on this machine.
//!
//! `cargo run --release -p nearcast-cluster --example appends -- FOLDER [SECONDS]`: the servers store in
//! the folder, on a disk or in memory (`/dev/shm`).

#[path = "../tests/nats/mod.rs"]
mod nats;
#[path = "../tests/nats/clients.rs"]
mod nats_clients;

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::jetstream::{JetStream, Options, demands};
use cluster::log::{Append, AppendError, Log as _};
use cluster::record::{Body, Incarnation, Record, encode};
use tokio::task::JoinSet;

use nats::Servers;

const REPLICAS: usize = 3;
const EVENT_BYTES: usize = 200;
const ROUNDS: usize = 3;

/// What one run of writers found.
struct Found {
    appends_per_s: f64,
    /// Milliseconds of an append, ascending.
    ms: Vec<f64>,
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder that the servers store in");
    let seconds = arguments.next().map_or(2.0, |seconds| seconds.parse().expect("seconds"));
    decoding();
    let folder = tempfile::tempdir_in(Path::new(&folder)).expect("a folder");
    let servers = Servers::start(folder.path(), REPLICAS, "always");
    let logs = open(&servers).await;
    demands::check(&servers.system().await, REPLICAS).await.expect("servers that keep what they acknowledge");
    println!("| writers | bytes | appends/s | events/s | p50 ms | p99 ms | spread of appends/s |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for bytes in [EVENT_BYTES, 16 << 10] {
        for writers in [1, 2, 4, 8, 16] {
            let mut rounds = Vec::new();
            for round in 0..ROUNDS {
                rounds.push(measure(&logs[..writers], bytes, seconds, round).await);
            }
            rounds.sort_by(|a, b| a.appends_per_s.total_cmp(&b.appends_per_s));
            let Found { appends_per_s, ms } = &rounds[ROUNDS / 2];
            let events = appends_per_s * (bytes / EVENT_BYTES) as f64;
            let (p50, p99) = (ms[ms.len() / 2], ms[ms.len() * 99 / 100]);
            let (least, most) = (rounds[0].appends_per_s, rounds[ROUNDS - 1].appends_per_s);
            println!(
                "| {writers} | {bytes} | {appends_per_s:.0} | {events:.0} | {p50:.2} | {p99:.2} | {least:.0} to {most:.0} |"
            );
        }
    }
}

/// A stream for each writer, as each broker has one for its ledger.
async fn open(servers: &Servers) -> Vec<Arc<JetStream>> {
    let mut logs = Vec::new();
    while logs.len() < 16 {
        let stream = format!("appends-{}", logs.len());
        let options =
            Options { subject: format!("nc.{stream}"), stream, replicas: REPLICAS, is_to_be_made: true };
        match JetStream::open(servers.client().await, &options).await {
            Ok(log) => logs.push(Arc::new(log)),
            Err(error) => {
                eprintln!("{error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    logs
}

/// Each writer appends to its stream, one record at a time, and expects its own last one to be the last.
async fn measure(logs: &[Arc<JetStream>], bytes: usize, seconds: f64, round: usize) -> Found {
    let until = Duration::from_secs_f64(seconds);
    let record = Bytes::from(vec![7; bytes]);
    let begun = Instant::now();
    let mut writers = JoinSet::new();
    for log in logs {
        let (log, record) = (Arc::clone(log), record.clone());
        writers.spawn(async move {
            let mut last = log.bounds().await.expect("the ends of the log").last;
            let mut ms = Vec::new();
            while begun.elapsed() < until {
                let id = format!("{bytes}-{round}-{last}");
                let append = Append { expected: Some(last), id, record: record.clone() };
                let sent = Instant::now();
                match log.append(append).await {
                    Ok(appended) => last = appended.sequence,
                    Err(AppendError::NoAnswer) => continue,
                    Err(error) => panic!("{error}"),
                }
                ms.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            ms
        });
    }
    let mut ms = writers.join_all().await.concat();
    ms.sort_by(f64::total_cmp);
    Found { appends_per_s: ms.len() as f64 / begun.elapsed().as_secs_f64(), ms }
}

/// Records of events as texts, each with other numbers, so that they compress as events do.
fn decoding() {
    println!("| events in a record | bytes | stored | decode us | ns an event | least to most |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for count in [1, 80, 1_000] {
        let event = |number: u64| {
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (lat, lon, speed) = (mixed % 1_000_000, mixed >> 20 & 0xf_ffff, mixed >> 50 & 0x3f);
            let mut text = format!(
                r#"{{"type":"Feature","id":"taxi-{number}","geometry":{{"type":"Point","coordinates":[-71.{lon:07},-29.{lat:07}]}},"properties":{{"kind":"taxi","speed":{speed},"status":"free"}}}}"#
            );
            text.push_str(&format!("{mixed:032x}{:032x}", mixed.wrapping_mul(mixed | 1)));
            text.truncate(EVENT_BYTES);
            text.into_bytes()
        };
        let rows: Vec<_> = (0..count).map(event).collect();
        let plain: usize = rows.iter().map(Vec::len).sum();
        let body = Body::Rows(rows.iter().map(Vec::as_slice).collect());
        let record = encode(Incarnation::default(), 1, 0, &body).expect("a record");
        let times = 200_000 / count;
        let mut rounds: Vec<_> = (0..7)
            .map(|_| {
                let begun = Instant::now();
                for _ in 0..times {
                    let record = Record::decode(black_box(&record)).expect("a record");
                    let Ok(Body::Rows(rows)) = record.body() else { panic!("rows") };
                    assert_eq!(black_box(rows).len() as u64, count);
                }
                begun.elapsed().as_secs_f64() / times as f64
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        let ns = |seconds: f64| seconds * 1e9 / count as f64;
        let (middle, least, most) = (rounds[3], ns(rounds[0]), ns(rounds[6]));
        println!(
            "| {count} | {plain} | {} | {:.1} | {:.0} | {least:.0} to {most:.0} |",
            record.len(),
            middle * 1e6,
            ns(middle)
        );
    }
    println!();
}
