//! Requests of one client, each of which takes an engine long, without an end: an alarm of somebody else's waits for one or two of them
//! and not for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::authorisation::{ISSUER, claims, guarded, open};
use crate::harness::{Form, Http, Program, Ws, encode, eventually, feature};

/// What each of the requests looks at.
const LIVE_COUNT: usize = 20_000;

/// Connections of the client, each with a request on its way.
const CONNECTIONS_COUNT: usize = 128;

const ALARMS_COUNT: usize = 15;

/// How many times as long as one of the requests takes alone most alarms may take among all of them. A slice of one is before each; the rest
/// is for processors that are busy with other tests. Behind one of each connection it would take more than a hundred times as long.
const MOST: u32 = 20;

/// Requests of a client.
struct Flood {
    http: Http,
    authorization: String,
    request: fn(usize) -> (String, Value),
    begun_count: AtomicUsize,
    done_count: AtomicUsize,
}

impl Flood {
    async fn put(&self, path: &str, document: &Value) {
        let headers = [("authorization", self.authorization.as_str())];
        let (kind, body) = (Some("application/json"), document.to_string());
        let answer = self.http.send_with("PUT", path, kind, &headers, body).await;
        assert!((200..300).contains(&answer.status), "{path}: {}", answer.text());
    }

    async fn next(&self) {
        let (path, document) = (self.request)(self.begun_count.fetch_add(1, Ordering::Relaxed));
        self.put(&path, &document).await;
        self.done_count.fetch_add(1, Ordering::Relaxed);
    }

    /// What a request takes while there is no other, until the engine has carried it out and answers a question.
    async fn alone(&self) -> Duration {
        let mut times = Vec::new();
        for _ in 0..5 {
            let started = Instant::now();
            self.next().await;
            let headers = [("authorization", self.authorization.as_str())];
            let path = "/v1/clients/harm/subscriptions/none";
            self.http.send_with("GET", path, None, &headers, "").await.expect(404);
            times.push(started.elapsed());
        }
        times.sort_unstable();
        times[times.len() / 2]
    }
}

async fn publish_live(program: &Program, token: &str) {
    let live = |idx: usize| {
        let place = [9.0 + (idx % 200) as f64 / 1_000.0, 45.0 + (idx / 200) as f64 / 1_000.0];
        let mut event = feature(&format!("live-{idx}"), place, json!({}));
        event["ttl_s"] = json!(86_400);
        event
    };
    let (content_type, body) = encode(Form::Lines, &(0..LIVE_COUNT).map(live).collect::<Vec<_>>());
    let answer = program.http().post_as(token, "/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer["accepted"], LIVE_COUNT, "{answer}");
}

/// What an alarm takes from one client to another.
async fn alarm(publisher: &mut Ws, watcher: &mut Ws, idx: usize) -> Duration {
    let mut alarm = feature(&format!("alarm-{idx}"), [9.0, 45.0], json!({"kind": "alarm"}));
    alarm["priority"] = json!("alarm");
    let started = Instant::now();
    publisher.publish(&alarm).await;
    assert_eq!(watcher.event().await["event"]["id"], alarm["id"]);
    started.elapsed()
}

/// Floods a broker that has live events and these subscriptions with these requests, while alarms come.
async fn flood(subscriptions: &[Value], request: fn(usize) -> (String, Value)) {
    // What they cost is not charged: a client in debt would not flood anybody.
    let config = "\n[queue]\ncommands = 64\nwait_ms = 60000\n[admission]\nengine_ms_per_second = 0\n";
    let (serve, _keys) = guarded(&ISSUER, config);
    // One engine, so that everybody is behind everybody else.
    let program = serve.args(&["--shards", "1"]).start().await;
    let token = |client: &str| ISSUER.sign(&claims(Some(client), "publish subscribe alarm"));
    publish_live(&program, &token("publisher")).await;
    let mut publisher = open(&program, "publisher", &token("publisher")).await.expect("it may");
    let mut watcher = open(&program, "watcher", &token("watcher")).await.expect("it may");
    watcher.subscribe("alarms", json!({"filters": [{"where": "kind = 'alarm'"}]})).await;
    let authorization = format!("Bearer {}", token("harm"));
    let flood = Arc::new(Flood {
        http: program.http(),
        authorization,
        request,
        begun_count: AtomicUsize::new(0),
        done_count: AtomicUsize::new(0),
    });
    for (idx, subscription) in subscriptions.iter().enumerate() {
        flood.put(&format!("/v1/clients/harm/subscriptions/s{idx}"), subscription).await;
    }
    flood.alone().await;
    let alone = flood.alone().await;

    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS_COUNT {
        let flood = Arc::clone(&flood);
        connections.spawn(async move {
            loop {
                flood.next().await;
            }
        });
    }
    let done_count = || flood.done_count.load(Ordering::Relaxed);
    let alone_count = done_count();
    eventually("the flood", async || (done_count() > alone_count + 4).then_some(())).await;
    let before_count = done_count();
    let mut late = Vec::new();
    for idx in 0..ALARMS_COUNT {
        let took = alarm(&mut publisher, &mut watcher, idx).await;
        late.extend((took > alone * MOST).then_some(took));
        assert!(late.len() <= ALARMS_COUNT / 2, "{late:?} among requests of which one takes {alone:?}");
    }
    eventually("the flood goes on", async || (done_count() > before_count).then_some(())).await;
    assert!(connections.try_join_next().is_none(), "the flood was cut off");
    connections.shutdown().await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_among_subscriptions_to_all_that_is_live() {
    flood(&[], |idx| (format!("/v1/clients/harm/subscriptions/s{}", idx % 8), json!({"filters": [{}]})))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alarm_among_moves_with_a_hundred_searches_for_the_nearest() {
    let filter = json!({"area": {"radius_m": 50_000, "nearest": 1_000}});
    let subscriptions = vec![json!({"filters": [filter, filter, filter, filter]}); 25];
    flood(&subscriptions, |idx| {
        let coordinates = if idx % 2 == 0 { [9.05, 45.03] } else { [9.15, 45.07] };
        ("/v1/clients/harm/position".to_owned(), json!({"coordinates": coordinates}))
    })
    .await;
}
