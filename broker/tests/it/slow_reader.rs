//! A subscriber that does not read loses by the stated policy and is told exactly what; the others feel nothing.

use serde_json::{Value, json};

use crate::harness::{Form, Http, Program, Received, Serve, Sse, Ws, encode, eventually, feature};

/// Bytes of each event's ballast.
const BALLAST_BYTES: usize = 16_000;

/// Events published while the slow one sleeps: far more than the kernel's buffers and the outbox hold together.
const EVENTS_COUNT: u64 = 4_000;

/// How many are published before the fast reader is waited for.
const STRIDE: u64 = 50;

/// A small outbox, and patience with writes that are stuck.
const CONFIG: &str = "[outbox]\nframes = 300\nbytes = 2000000\n[connection]\nwrite_timeout_ms = 600000\n\
    ping_interval_ms = 600000\nsilence_timeout_ms = 1200000\n";

fn event(idx: u64) -> Value {
    feature(&format!("e{idx}"), [9.0, 45.0], json!({"ballast": "x".repeat(BALLAST_BYTES)}))
}

/// Publishes events in strides, each of which the fast reader gets in full before the next.
async fn publish_to_fast_reader(http: &Http, fast: &mut Ws, first: u64, count: u64) {
    for start in (first..first + count).step_by(usize::try_from(STRIDE).expect("small")) {
        let ids = start..(start + STRIDE).min(first + count);
        let (content_type, body) = encode(Form::Lines, &ids.clone().map(event).collect::<Vec<_>>());
        let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
        assert_eq!(answer["rejected"], json!([]));
        for idx in ids {
            let frame = fast.event().await;
            assert_eq!(frame["event"]["id"], format!("e{idx}"), "the fast reader misses something");
        }
    }
}

/// Checks frames one after the other against the offsets that must come, and counts.
struct Ledger {
    next: u64,
    events_count: u64,
    lost_count: u64,
    gaps_count: u64,
}

impl Ledger {
    fn new(next: u64) -> Self {
        Self { next, events_count: 0, lost_count: 0, gaps_count: 0 }
    }

    /// Takes a frame. Event `e7` has the offset of the first event plus 7, so what is lost is known by number.
    fn take(&mut self, frame: &Value, first: u64) {
        match frame["op"].as_str() {
            Some("event") => {
                assert_eq!(frame["offset"], self.next, "{}", frame["op"]);
                assert_eq!(frame["event"]["id"], format!("e{}", self.next - first));
                self.events_count += 1;
                self.next += 1;
            }
            Some("gap") => {
                let number =
                    |name: &str| frame[name].as_u64().unwrap_or_else(|| panic!("no {name} in {frame}"));
                let (from, to, count) = (number("from"), number("to"), number("count"));
                assert_eq!(from, self.next, "{frame}");
                assert_eq!(count, to - from + 1, "{frame}");
                assert_eq!(frame["reason"], "overflow", "{frame}");
                self.lost_count += count;
                self.gaps_count += 1;
                self.next = to + 1;
            }
            _ => panic!("neither event nor gap: {frame}"),
        }
    }

    fn assert_lossy_but_told(&self, first: u64, count: u64) {
        assert_eq!(self.next, first + count, "everything is accounted for");
        assert_eq!(self.events_count + self.lost_count, count);
        assert!(
            self.gaps_count >= 1 && self.lost_count > 0,
            "nothing was lost: the test publishes too little"
        );
        assert!(self.events_count > 0, "what waited in the outbox comes");
    }
}

async fn start() -> Program {
    Serve::new().config(CONFIG).args(&["--shards", "2"]).start().await
}

async fn fast_reader(program: &Program) -> Ws {
    let mut fast = program.ws("fast").await;
    fast.subscribe("s", json!({"filters": [{}]})).await;
    fast
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_that_does_not_read_gets_an_exact_gap() {
    let mut program = start().await;
    let http = program.http();
    let mut slow = program.ws("slow").await;
    slow.subscribe("s", json!({"filters": [{}], "overflow": "drop-oldest"})).await;
    let mut fast = fast_reader(&program).await;
    // Once round first, so that what grows at the start does not count.
    publish_to_fast_reader(&http, &mut fast, 0, STRIDE).await;
    let before = program.resident_bytes();
    publish_to_fast_reader(&http, &mut fast, STRIDE, EVENTS_COUNT - STRIDE).await;
    let grown = program.resident_bytes().saturating_sub(before);
    // 64 MB have gone through; the outbox holds 2 MB, and of what each of four threads has used once its allocator
    // keeps some.
    assert!(grown < 48 << 20, "the broker has grown by {} MiB", grown >> 20);

    let first = slow.ready["offset"].as_u64().expect("a number") + 1;
    let mut ledger = Ledger::new(first);
    while ledger.next < first + EVENTS_COUNT {
        ledger.take(&slow.next().await, first);
    }
    ledger.assert_lossy_but_told(first, EVENTS_COUNT);
    // And on it goes.
    publish_to_fast_reader(&http, &mut fast, EVENTS_COUNT, 1).await;
    ledger.take(&slow.next().await, first);
    assert_eq!(ledger.next, first + EVENTS_COUNT + 1);
    slow.assert_quiet().await;
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(
        metrics.lines().any(|line| line.contains("drop") && !line.ends_with(" 0") && !line.starts_with('#'))
    );
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_stream_that_does_not_read_gets_an_exact_gap() {
    let mut program = start().await;
    let http = program.http();
    let mut slow: Sse = program.sse("slow").await;
    http.put("/v1/clients/slow/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let mut fast = fast_reader(&program).await;
    publish_to_fast_reader(&http, &mut fast, 0, EVENTS_COUNT).await;
    let message = slow.next().await;
    let (epoch, first) = message.epoch_and_offset();
    let mut ledger = Ledger::new(first);
    ledger.take(&message.frame(), first);
    while ledger.next < first + EVENTS_COUNT {
        let message = slow.next().await;
        let frame = message.frame();
        assert_eq!(frame["op"], message.event.as_str(), "{}", message.event);
        ledger.take(&frame, first);
        // Whoever reconnects with this id goes on behind it.
        assert_eq!(message.epoch_and_offset(), (epoch.clone(), ledger.next - 1));
    }
    ledger.assert_lossy_but_told(first, EVENTS_COUNT);
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overflow_disconnect_ends_the_slow_session_only() {
    let mut program = start().await;
    let http = program.http();
    let mut slow = program.ws("slow").await;
    slow.subscribe("s", json!({"filters": [{}], "overflow": "disconnect"})).await;
    let mut fast = fast_reader(&program).await;
    publish_to_fast_reader(&http, &mut fast, 0, EVENTS_COUNT).await;
    // What was under way comes without a hole, then the end.
    let first = slow.ready["offset"].as_u64().expect("a number") + 1;
    let mut ledger = Ledger::new(first);
    let (code, reason) = loop {
        match slow.receive().await {
            Received::Frame(frame) => ledger.take(&frame, first),
            Received::Closed(code, reason) => break (code, reason),
        }
    };
    assert!(ledger.events_count < EVENTS_COUNT, "nothing overflowed: the test publishes too little");
    assert_eq!(ledger.gaps_count, 0, "a session that is closed at the bound has no gaps");
    assert!(code == 1006 || !reason.is_empty(), "{code} without a reason");
    publish_to_fast_reader(&http, &mut fast, EVENTS_COUNT, STRIDE).await;
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_stuck_for_too_long_ends_the_session() {
    let config = "[outbox]\nframes = 300\nbytes = 2000000\n[connection]\nwrite_timeout_ms = 300\n";
    let mut program = Serve::new().config(config).start().await;
    let http = program.http();
    let mut slow = program.ws("slow").await;
    slow.subscribe("s", json!({"filters": [{}]})).await;
    let mut fast = fast_reader(&program).await;
    publish_to_fast_reader(&http, &mut fast, 0, EVENTS_COUNT / 4).await;
    let mut published = EVENTS_COUNT / 4;
    // The kernel takes some megabytes on its own account before a write is stuck.
    eventually("the session is cut off", async || {
        publish_to_fast_reader(&http, &mut fast, published, STRIDE).await;
        published += STRIDE;
        let stats = http.get("/v1/stats").await.expect(200).json();
        (stats["websockets"] == 1).then_some(())
    })
    .await;
    program.assert_healthy();
    drop(slow);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publisher_that_reads_its_answers_late_loses_none() {
    let program = Serve::new().config("[outbox]\nanswers = 16\n").start().await;
    let mut client = program.ws("publisher").await;
    for idx in 0..5_000 {
        let event = feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
        client.send(&json!({"op": "publish", "ref": idx, "event": event})).await;
    }
    for idx in 0..5_000 {
        assert_eq!(client.next().await, json!({"op": "ok", "ref": idx}));
    }
    program.finish().await;
}

/// Of two objects one tells a lot, the other now and then: the news of the quiet one are not lost for the loud one's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keep_latest_loses_what_is_out_of_date_first() {
    let mut program = start().await;
    let http = program.http();
    let subscription = json!({"filters": [{}], "overflow": "keep-latest"});
    let mut slow = program.ws("slow").await;
    slow.subscribe("s", subscription.clone()).await;
    let shown = http.get("/v1/clients/slow/subscriptions/s").await.expect(200).json();
    assert_eq!(shown["overflow"], "keep-latest");
    let mut fast = fast_reader(&program).await;
    let keyed = |idx: u64| {
        let mut event = event(idx);
        event["key"] =
            json!(if idx % 500 == 499 { format!("quiet-{idx}") } else { format!("loud-{}", idx % 10) });
        event
    };
    for start in (0..EVENTS_COUNT).step_by(usize::try_from(STRIDE).expect("small")) {
        let (content_type, body) =
            encode(Form::Lines, &(start..start + STRIDE).map(keyed).collect::<Vec<_>>());
        http.post("/v1/events", content_type, body).await.expect(202);
        for idx in start..start + STRIDE {
            assert_eq!(fast.event().await["event"]["id"], format!("e{idx}"));
        }
    }
    let first = slow.ready["offset"].as_u64().expect("a number") + 1;
    let mut ledger = Ledger::new(first);
    let mut seen = Vec::new();
    let mut gap_before = false;
    while ledger.next < first + EVENTS_COUNT {
        let frame = slow.next().await;
        let is_gap = frame["op"] == "gap";
        assert!(!(is_gap && gap_before), "two gaps beside each other: {frame}");
        gap_before = is_gap;
        seen.extend(frame["event"]["key"].as_str().map(str::to_owned));
        ledger.take(&frame, first);
    }
    ledger.assert_lossy_but_told(first, EVENTS_COUNT);
    assert!(ledger.gaps_count > 1, "what stays stands between what is lost");
    // Nobody's last news are lost, which with drop-oldest those of the quiet ones would be.
    for idx in (499..EVENTS_COUNT).step_by(500) {
        assert!(seen.contains(&format!("quiet-{idx}")), "quiet-{idx} is lost");
    }
    for loud in 0..10 {
        assert!(seen.contains(&format!("loud-{loud}")));
    }
    program.assert_healthy();
    program.finish().await;
}
