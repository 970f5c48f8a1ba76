//! All readers are cut off at once and come back within seconds, while the publishers go on: none of them misses anything.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::harness::{Form, Http, Received, Serve, Ws, encode, feature, soak, within};

/// How much of everything.
struct Scale {
    clients: u64,
    storms: u64,
    /// Within which all come back.
    window: Duration,
    /// Events of a request, and the pause after it.
    batch: u64,
    pause: Duration,
}

const SHORT: Scale = Scale {
    clients: 200,
    storms: 3,
    window: Duration::from_millis(1_000),
    batch: 20,
    pause: Duration::from_millis(25),
};
const LONG: Scale = Scale {
    clients: 5_000,
    storms: 10,
    window: Duration::from_secs(10),
    batch: 10,
    pause: Duration::from_millis(500),
};

/// Each event is for one bucket of clients.
const BUCKETS: u64 = 20;

const PUBLISHERS: usize = 2;

/// Goes up with each storm; at its last value there are no more events than those that are said.
type Weather = watch::Receiver<(u64, Option<[u64; PUBLISHERS]>)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_readers_that_come_back_loses_nothing() {
    let scale = if soak() { LONG } else { SHORT };
    let files_max = may_open(scale.clients + 200);
    let data = TempDir::new().expect("a folder for the data");
    let folder = data.path().to_str().expect("a path that is a text");
    let program = Serve::new().args(&["--data", folder]).start().await;
    let (address, http) = (program.address(), program.http());

    let subscribe = (0..scale.clients).map(async |idx| {
        let wish = json!({"filters": [{"where": format!("bucket = {}", idx % BUCKETS)}], "durable": true});
        http.put(&format!("/v1/clients/car-{idx}/subscriptions/s"), &wish).await.expect(201);
    });
    stream::iter(subscribe).buffered(32).collect::<Vec<_>>().await;

    let weather = watch::Sender::new((0, None));
    let published = Arc::new([const { AtomicU64::new(0) }; PUBLISHERS]);
    let mut publishers = JoinSet::new();
    for number in 0..PUBLISHERS {
        publishers.spawn(publish(address, number, scale.batch, scale.pause, Arc::clone(&published)));
    }
    let mut readers = JoinSet::new();
    let (ready, mut readies) = mpsc::unbounded_channel();
    for idx in 0..scale.clients {
        readers.spawn(Reader::new(address, idx, ready.clone()).read(weather.subscribe(), scale.window));
    }
    drop(ready);
    all_ready(&mut readies, scale.clients).await;
    for storm in 1..=scale.storms {
        sleep(Duration::from_millis(300)).await;
        let cut = Instant::now();
        weather.send_replace((storm, None));
        let back = all_ready(&mut readies, scale.clients).await;
        let resident_mib = program.resident_bytes() >> 20;
        println!(
            "storm {storm}: all are back after {:.2?}; asked for, the session was there after {} ms at the median, {} ms at \
             p99, {} ms at most; the broker has {resident_mib} MiB",
            cut.elapsed(),
            back.value_at_quantile(0.5),
            back.value_at_quantile(0.99),
            back.max()
        );
    }
    sleep(Duration::from_millis(300)).await;
    publishers.shutdown().await;
    // The last batch of each may have been cut off, so what there is at least is known, and the rest comes in order.
    let totals = published.each_ref().map(|count| count.load(Relaxed));
    weather.send_replace((scale.storms, Some(totals)));
    let mut deliveries_count = 0;
    while let Some(read) = within("all read to the end", readers.join_next()).await {
        deliveries_count += read.expect("the reader did not fail");
    }
    println!(
        "{} clients, {} storms of {:?}: {totals:?} events, {deliveries_count} deliveries, 0 lost; {files_max} files may be open",
        scale.clients, scale.storms, scale.window
    );
    assert!(deliveries_count > scale.clients * scale.storms, "too few deliveries to mean anything");
    program.finish().await;
}

/// Lets this process have so many files open, and says how many it may have.
fn may_open(files_count: u64) -> u64 {
    let files_max = rlimit::increase_nofile_limit(files_count).expect("it is not more than allowed");
    assert!(
        files_max >= files_count,
        "{files_count} open files are needed, and this user may have {files_max}: see `ulimit -H -n`"
    );
    files_max
}

/// Waits until so many sessions have begun, and says how long each took, in milliseconds.
async fn all_ready(readies: &mut mpsc::UnboundedReceiver<Duration>, count: u64) -> Histogram<u64> {
    let mut took_ms = Histogram::new(3).expect("valid");
    for _ in 0..count {
        let took = within("a session begins", readies.recv()).await.expect("no reader has failed");
        took_ms.saturating_record(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }
    took_ms
}

/// Publishes numbers one after the other, and says up to which they were acknowledged.
async fn publish(
    address: SocketAddr,
    publisher: usize,
    batch: u64,
    pause: Duration,
    published: Arc<[AtomicU64; PUBLISHERS]>,
) {
    let http = Http::new(address);
    let published = &published[publisher];
    loop {
        let first = published.load(Relaxed);
        let events = (first..first + batch).map(|number| {
            let properties = json!({"publisher": publisher, "number": number, "bucket": number % BUCKETS});
            feature(&format!("e{publisher}-{number}"), [9.0, 45.0], properties)
        });
        let (content_type, body) = encode(Form::Lines, &events.collect::<Vec<_>>());
        let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
        assert_eq!(answer, json!({"accepted": batch, "rejected": []}));
        published.store(first + batch, Relaxed);
        sleep(pause).await;
    }
}

struct Reader {
    address: SocketAddr,
    idx: u64,
    rng: StdRng,
    epoch: String,
    offset: u64,
    /// The number of the next event of each publisher that is for it.
    next: [u64; PUBLISHERS],
    /// Told how long each session took to begin.
    ready: mpsc::UnboundedSender<Duration>,
}

impl Reader {
    fn new(address: SocketAddr, idx: u64, ready: mpsc::UnboundedSender<Duration>) -> Self {
        let rng = StdRng::seed_from_u64(idx);
        let next = [idx % BUCKETS; PUBLISHERS];
        Self { address, idx, rng, epoch: String::new(), offset: 0, next, ready }
    }

    /// Reads until it has everything. Returns how much that was.
    async fn read(mut self, mut weather: Weather, window: Duration) -> u64 {
        loop {
            let after =
                if self.epoch.is_empty() { String::new() } else { format!("{}:{}", self.epoch, self.offset) };
            let asked = Instant::now();
            let socket = Ws::attempt(self.address, &format!("car-{}", self.idx), &after).await;
            let mut socket = socket.expect("the broker is there");
            weather.mark_unchanged();
            self.ready.send(asked.elapsed()).expect("the test goes on");
            assert_eq!(socket.ready["offset"], self.offset, "car-{}: {}", self.idx, socket.ready);
            if self.epoch.is_empty() {
                socket.ready["epoch"].as_str().expect("a text").clone_into(&mut self.epoch);
            }
            assert_eq!(socket.ready["epoch"], self.epoch.as_str());
            loop {
                if weather.borrow().1.is_some_and(|totals| self.has_all(totals)) {
                    return self.offset;
                }
                tokio::select! {
                    received = socket.read() => match received {
                        Received::Frame(frame) => self.take(&frame),
                        Received::Closed(code, reason) => panic!("car-{}: {code} {reason:?}", self.idx),
                    },
                    changed = weather.changed() => {
                        changed.expect("the test goes on");
                        if weather.borrow().1.is_none() {
                            break;
                        }
                    }
                }
                if self.offset.is_multiple_of(50) {
                    let ack = json!({"op": "ack", "offset": self.offset}).to_string();
                    socket.try_send_message(ack.into()).await;
                }
            }
            // Gone without a word.
            drop(socket);
            sleep(self.rng.random_range(Duration::ZERO..window)).await;
        }
    }

    fn has_all(&self, totals: [u64; PUBLISHERS]) -> bool {
        self.next.iter().zip(totals).all(|(next, total)| *next >= total)
    }

    /// The next delivery, which nothing may be missing before.
    fn take(&mut self, frame: &Value) {
        assert_eq!(frame["op"], "event", "car-{}: {frame}", self.idx);
        self.offset += 1;
        assert_eq!(frame["offset"], self.offset, "car-{}: {frame}", self.idx);
        let number = |name: &str| frame["event"]["properties"][name].as_u64().expect("a number");
        let next = &mut self.next[usize::try_from(number("publisher")).expect("few")];
        assert_eq!(number("number"), *next, "car-{}: {frame}", self.idx);
        *next += BUCKETS;
    }
}
