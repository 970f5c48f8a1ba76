//! What appending to a stream with three replicas costs, what reading a stream of events does, and what reading a record. Starts three NATS servers on this machine.
//!
//! `cargo run --release -p nearcast-cluster --example appends -- FOLDER [SECONDS]`: the servers store in
//! the folder, on a disk or in memory (`/dev/shm`).

#[path = "../tests/nats/mod.rs"]
mod nats;
#[path = "../tests/nats/clients.rs"]
mod nats_clients;

use std::hint::black_box;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cluster::events::{Tailer, Taken, Timing};
use cluster::jetstream::{JetStream, Options, demands};
use cluster::log::{Append, AppendError, Attachable as _, Attachment as _, Log as _};
use cluster::record::{Body, Incarnation, Record, encode};
use tokio::task::JoinSet;

use nats::Servers;

const REPLICAS: usize = 3;
const EVENT_BYTES: usize = 200;
const ROUNDS: usize = 3;
/// Records of the stream of events, and events of each.
const RECORDS: u64 = 10_000;
const RECORD_EVENTS: u64 = 81;
/// Records that are appended at a time.
const APPENDS: usize = 64;

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
    reading(&servers).await;
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

/// An event as a text, each with other numbers, so that they compress as events do.
fn event(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (lat, lon, speed) = (mixed % 1_000_000, mixed >> 20 & 0xf_ffff, mixed >> 50 & 0x3f);
    let mut text = format!(
        r#"{{"type":"Feature","id":"taxi-{number}","geometry":{{"type":"Point","coordinates":[-71.{lon:07},-29.{lat:07}]}},"properties":{{"kind":"taxi","speed":{speed},"status":"free"}}}}"#
    );
    text.push_str(&format!("{mixed:032x}{:032x}", mixed.wrapping_mul(mixed | 1)));
    text.truncate(EVENT_BYTES);
    text.into_bytes()
}

/// What one reader takes from a stream of events, from its first record to its last.
async fn reading(servers: &Servers) {
    let log = open_events(servers).await;
    for first in (0..RECORDS).step_by(APPENDS) {
        let mut appends = JoinSet::new();
        for number in first..(first + APPENDS as u64).min(RECORDS) {
            let log = Arc::clone(&log);
            let events: Vec<_> = (0..RECORD_EVENTS).map(|at| event(number * RECORD_EVENTS + at)).collect();
            let body = Body::Events(events.iter().map(Vec::as_slice).collect());
            let record = encode(Incarnation::default(), number, 0, &body).expect("a record");
            appends.spawn(async move {
                let append = Append { expected: None, id: number.to_string(), record };
                while let Err(error) = log.append(append.clone()).await {
                    assert!(!matches!(error, AppendError::TooLarge { .. }), "{error}");
                }
            });
        }
        appends.join_all().await;
    }
    println!("| events in a record | records | events/s | us of processor time an event | least to most |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (begun, used) = (Instant::now(), processor_time());
        let events = read(&log).await;
        let used = processor_time().saturating_sub(used);
        assert_eq!(events, RECORDS * RECORD_EVENTS);
        rounds
            .push((used.as_secs_f64() * 1e6 / events as f64, events as f64 / begun.elapsed().as_secs_f64()));
    }
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((us, events_per_s), least, most) = (rounds[ROUNDS / 2], rounds[0].0, rounds[ROUNDS - 1].0);
    println!("| {RECORD_EVENTS} | {RECORDS} | {events_per_s:.0} | {us:.3} | {least:.3} to {most:.3} |\n");
}

/// Reads all records. How many events they have.
async fn read(log: &JetStream) -> u64 {
    let (begun, mut events) = (Instant::now(), 0);
    let (mut tailer, mut attachments) = (Tailer::new(1, Duration::ZERO, Timing::default()), 0);
    while tailer.last() < RECORDS {
        assert!(begun.elapsed() < Duration::from_secs(60), "{tailer:?}");
        let Some(attach) = tailer.poll(begun.elapsed(), &mut attachments) else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let mut attachment = log.attach(attach.from).await.expect("an attachment");
        while tailer.last() < RECORDS
            && let Some(sent) = attachment.receive().await
        {
            let taken = tailer.take(begun.elapsed(), attach.attachment, &sent).expect("a record");
            let Taken::Record { record, .. } = taken else { continue };
            let Ok(Body::Events(read)) = record.body() else { panic!("events") };
            events += black_box(read).len() as u64;
        }
        tailer.failed(begun.elapsed(), attach.attachment);
    }
    events
}

async fn open_events(servers: &Servers) -> Arc<JetStream> {
    let (stream, subject) = ("events".to_owned(), "nc.events".to_owned());
    let options = Options { stream, subject, replicas: REPLICAS, is_to_be_made: true };
    let bytes_max = NonZeroU64::new(1 << 30).expect("it is not zero");
    loop {
        match JetStream::open_events(servers.client().await, &options, bytes_max, 1).await {
            Ok(log) => return Arc::new(log),
            Err(error) => {
                eprintln!("{error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("the threads of this process");
    let nanoseconds = threads.map(|thread| {
        let file = thread.expect("a thread").path().join("schedstat");
        let text = std::fs::read_to_string(file).expect("what a thread has used");
        text.split(' ').next().and_then(|text| text.parse::<u64>().ok()).expect("nanoseconds")
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Records of events as texts.
fn decoding() {
    println!("| events in a record | bytes | stored | decode us | ns an event | least to most |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for count in [1, 80, 1_000] {
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
