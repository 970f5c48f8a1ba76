//! A tenth of the sockets never reads. The others get everything; those who slept are told exactly what is kept no more.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::harness::{Form, Http, Serve, Ws, encode, feature, soak, within};

/// Bytes of each event's ballast.
const BALLAST_BYTES: usize = 8_000;

/// What is kept for a client at most.
const KEPT_FRAMES: u64 = 500;

/// Events of a request.
const BATCH: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_that_never_read_cost_the_others_nothing() {
    let (clients_count, events_count) = if soak() { (500, 10_000) } else { (30, 1_500) };
    let data = TempDir::new().expect("a folder for the data");
    let folder = data.path().to_str().expect("a path that is a text");
    let config = format!(
        "[sessions]\nkept_frames = {KEPT_FRAMES}\n[outbox]\nframes = 100\nbytes = 1000000\n[connection]\n\
         write_timeout_ms = 600000\nping_interval_ms = 600000\nsilence_timeout_ms = 1200000\n"
    );
    let mut program = Serve::new().config(&config).args(&["--data", folder]).start().await;
    let (address, http) = (program.address(), program.http());
    let mut sockets = Vec::new();
    for idx in 0..clients_count {
        let name = format!("car-{idx}");
        let wish = json!({"filters": [{}], "durable": true, "overflow": "drop-oldest"});
        http.put(&format!("/v1/clients/{name}/subscriptions/s"), &wish).await.expect(201);
        sockets.push(program.ws(&name).await);
    }

    // Everybody reads, then a tenth does not: in one run, so that the two can be compared.
    let started = Instant::now();
    let count = clients_count - clients_count / 10;
    let (mut sockets, before) = phase(address, sockets, started, 0..events_count).await;
    let mut stalled = sockets.split_off(count);
    let resident_bytes = program.resident_bytes();
    let (_sockets, after) = phase(address, sockets, started, events_count..4 * events_count).await;
    let grown_bytes = program.resident_bytes().saturating_sub(resident_bytes);
    println!(
        "p99 of {count} readers: {} us alone, {} us beside {} that never read; the broker grew by {} KiB",
        before.value_at_quantile(0.99),
        after.value_at_quantile(0.99),
        stalled.len(),
        grown_bytes >> 10
    );
    // Of each client at most so many bodies are kept, and all of them share those.
    let kept_bytes = KEPT_FRAMES * BALLAST_BYTES as u64;
    assert!(grown_bytes < (48 << 20) + 4 * kept_bytes, "the broker has grown by {grown_bytes} bytes");

    for socket in &mut stalled {
        let told = read_late(socket, events_count, 4 * events_count).await;
        assert!(told.lost_count > 0, "nothing was lost: too little is published");
        assert!(told.events_count >= KEPT_FRAMES, "{told:?}: as many as that are kept");
    }
    program.assert_healthy();
    program.finish().await;
}

/// Publishes events while all sockets read, and returns how late the deliveries were, in microseconds.
async fn phase(
    address: SocketAddr,
    sockets: Vec<Ws>,
    started: Instant,
    numbers: std::ops::Range<u64>,
) -> (Vec<Ws>, Histogram<u64>) {
    let mut readers = JoinSet::new();
    for (idx, mut socket) in sockets.into_iter().enumerate() {
        let numbers = numbers.clone();
        readers.spawn(async move {
            let mut late_us = Vec::new();
            for number in numbers {
                let frame = socket.event().await;
                assert_eq!(frame["event"]["properties"]["number"], number, "reader {idx}");
                let sent_us = frame["event"]["properties"]["sent_us"].as_u64().expect("a number");
                late_us.push(micros(started.elapsed()).saturating_sub(sent_us));
                if number % 64 == 0 {
                    socket.send(&json!({"op": "ack", "offset": frame["offset"]})).await;
                }
            }
            (idx, socket, late_us)
        });
    }
    let http = Http::new(address);
    let mut number = numbers.start;
    while number < numbers.end {
        let sent_us = micros(started.elapsed());
        let events = (number..number + BATCH).map(|number| event(number, sent_us)).collect::<Vec<_>>();
        let (content_type, body) = encode(Form::Lines, &events);
        let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
        assert_eq!(answer["rejected"], json!([]));
        number += BATCH;
        // At a rate that the broker holds easily, or the readers would measure their own queue.
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3).expect("valid bounds");
    let mut sockets = Vec::new();
    while let Some(read) = within("all have read", readers.join_next()).await {
        let (idx, socket, late_us) = read.expect("the reader did not fail");
        late_us.into_iter().for_each(|late_us| histogram.saturating_record(late_us));
        sockets.push((idx, socket));
    }
    sockets.sort_by_key(|(idx, _)| *idx);
    (sockets.into_iter().map(|(_, socket)| socket).collect(), histogram)
}

fn event(number: u64, sent_us: u64) -> Value {
    let ballast = "x".repeat(BALLAST_BYTES);
    let properties = json!({"number": number, "sent_us": sent_us, "ballast": ballast});
    feature(&format!("e{number}"), [9.0, 45.0], properties)
}

/// What somebody was told who reads late.
#[derive(Debug, Default)]
struct Told {
    events_count: u64,
    lost_count: u64,
}

/// Reads all there is: each event is there or counted in a gap.
async fn read_late(socket: &mut Ws, first: u64, end: u64) -> Told {
    let mut told = Told::default();
    // The first event of all has offset 1.
    let mut offset = first;
    while offset < end {
        let frame = socket.next().await;
        if frame["op"] == "gap" {
            let [from, to, count] =
                ["from", "to", "count"].map(|name| frame[name].as_u64().expect("a number"));
            assert_eq!((from, count), (offset + 1, to - offset), "{frame}");
            assert_eq!(frame["reason"], "overflow", "{frame}");
            told.lost_count += count;
            offset = to;
            continue;
        }
        offset += 1;
        assert_eq!(frame["op"], "event", "{frame}");
        assert_eq!(
            (&frame["offset"], &frame["event"]["properties"]["number"]),
            (&json!(offset), &json!(offset - 1))
        );
        told.events_count += 1;
    }
    told
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("not that long")
}
