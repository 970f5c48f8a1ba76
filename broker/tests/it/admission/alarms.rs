//! Alarms go before what waits for a reader, and need a scope of their own.

use serde_json::{Value, json};

use crate::authorisation::{ISSUER, claims, guarded, open};
use crate::harness::{Form, Http, Serve, encode, feature, with_problem_shape};

/// Room for all that the kernel's buffers do not take, and patience with writes that are stuck.
const CONFIG: &str = "[outbox]\nframes = 10000\nbytes = 100000000\n[connection]\nwrite_timeout_ms = 600000\n\
    ping_interval_ms = 600000\nsilence_timeout_ms = 1200000\n";

const BALLAST_BYTES: usize = 16_000;

/// More than the kernel's buffers hold.
const EVENTS_COUNT: u64 = 1_500;

fn alarm(id: &str) -> Value {
    let mut event = feature(id, [9.0, 45.0], json!({}));
    event["priority"] = json!("alarm");
    event
}

async fn publish(http: &Http, events: &[Value]) {
    let (content_type, body) = encode(Form::Lines, events);
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer["accepted"], events.len(), "{answer}");
}

/// Fills what waits for a reader, and publishes two alarms behind it.
async fn publish_all(http: &Http) {
    for start in (0..EVENTS_COUNT).step_by(50) {
        let event =
            |idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({"ballast": "x".repeat(BALLAST_BYTES)}));
        publish(http, &(start..start + 50).map(event).collect::<Vec<_>>()).await;
    }
    publish(http, &[alarm("first"), alarm("second")]).await;
}

/// Demands that two alarms came before some of what was published before them, in their order, and everything else in its own.
fn assert_overtaken(ids: &[String]) {
    let place =
        |id: &str| ids.iter().position(|one| one == id).unwrap_or_else(|| panic!("{id} did not come"));
    let (first, second) = (place("first"), place("second"));
    assert!(first < second && second < ids.len() - 1, "at {first} and {second} of {}", ids.len());
    let mut ordinary = ids.iter().filter(|id| id.starts_with('e'));
    for idx in 0..EVENTS_COUNT {
        assert_eq!(ordinary.next(), Some(&format!("e{idx}")));
    }
}

/// What a reader got.
#[derive(Default)]
struct Read {
    ids: Vec<String>,
    last: u64,
}

impl Read {
    /// Takes a frame: offsets have no holes, an alarm ahead of its turn has the last one, and a gap stands where its turn is.
    fn take(&mut self, frame: &Value) {
        if frame["op"] == "gap" {
            assert_eq!((&frame["reason"], &frame["count"]), (&json!("ahead"), &json!(1)), "{frame}");
            assert_eq!(frame["from"], self.last + 1);
            self.last += 1;
            return;
        }
        self.last += u64::from(frame["ahead"] != true);
        assert_eq!(frame["offset"], self.last, "{frame}");
        self.ids.push(frame["event"]["id"].as_str().expect("an id").to_owned());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_overtake_what_waits_for_a_reader() {
    let program = Serve::new().config(CONFIG).args(&["--shards", "1"]).start().await;
    let http = program.http();
    let mut slow = program.ws("slow").await;
    slow.subscribe("everything", json!({"filters": [{}]})).await;
    http.put("/v1/clients/stream/subscriptions/everything", &json!({"filters": [{}]})).await.expect(201);
    let mut stream = program.sse("stream").await;
    publish_all(&http).await;
    let (mut read, mut streamed) = (Read::default(), Read::default());
    while read.last < EVENTS_COUNT + 2 {
        read.take(&slow.next().await);
    }
    while streamed.last < EVENTS_COUNT + 2 {
        let message = stream.next().await;
        streamed.take(&message.frame());
        assert_eq!(message.epoch_and_offset().1, streamed.last);
    }
    assert_overtaken(&read.ids);
    assert_overtaken(&streamed.ids);
    slow.assert_quiet().await;
    let deliveries = http.get("/v1/events/first/deliveries").await.expect(200).json();
    assert_eq!(deliveries["deliveries"][0]["state"], "written", "{deliveries}");
    let metrics = http.get("/metrics").await.expect(200).text();
    assert!(metrics.contains("\nnearcast_alarms_total 2\n"), "{metrics}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_need_a_scope_of_their_own() {
    let program = guarded(&ISSUER, "").0.start().await;
    let forbidden = |problem: Value| {
        let problem = with_problem_shape("an alarm", problem);
        assert_eq!(
            (&problem["status"], &problem["type"]),
            (&json!(403), &json!("urn:nearcast:problem:forbidden"))
        );
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("alarm")), "{problem}");
    };
    for (scope, may) in
        [("publish", false), ("publish subscribe", false), ("publish alarm", true), ("admin", true)]
    {
        let http = program.http();
        let token = ISSUER.sign(&claims(Some("ann"), scope));
        let post = |kind, body: String| http.post_as(&token, "/v1/events", kind, body);
        let answer = post("application/geo+json", alarm("a").to_string()).await;
        let lines = format!("{}\n{}\n", feature("b", [9.0, 45.0], json!({"about": "alarm"})), alarm("c"));
        let batch = post("application/x-ndjson", lines).await.expect(202).json();
        if may {
            assert_eq!(answer.expect(202).json()["accepted"], 1);
            assert_eq!(batch["accepted"], 2, "{batch}");
        } else {
            forbidden(answer.problem(403));
            assert_eq!(
                (&batch["accepted"], &batch["rejected"][0]["index"]),
                (&json!(1), &json!(1)),
                "{batch}"
            );
            forbidden(batch["rejected"][0]["problem"].clone());
        }
    }
    // The scope alone lets nobody publish.
    let mut socket = open(&program, "ann", &ISSUER.token("ann", "subscribe alarm")).await.expect("it may");
    assert_eq!(socket.problem(json!({"op": "publish", "event": alarm("d")})).await["status"], 403);
    let mut socket = open(&program, "ann", &ISSUER.token("ann", "subscribe publish")).await.expect("it may");
    forbidden(socket.problem(json!({"op": "publish", "event": alarm("e")})).await);
    socket.ok(json!({"op": "auth", "token": ISSUER.token("ann", "subscribe publish alarm")})).await;
    socket.ok(json!({"op": "publish", "event": alarm("e")})).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_to_a_durable_session_gets_them_first() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let data = folder.path().join("data").to_str().expect("a plain path").to_owned();
    let serve = || Serve::new().args(&["--data", &data, "--shards", "1"]);
    let program = serve().start().await;
    let http = program.http();
    let everything = json!({"filters": [{}], "durable": true});
    http.put("/v1/clients/phone/subscriptions/everything", &everything).await.expect(201);
    let ordinary = |idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({}));
    publish(&http, &(1..=20).map(ordinary).collect::<Vec<_>>()).await;
    publish(&http, &[alarm("alarm")]).await;
    publish(&http, &[ordinary(22)]).await;
    program.kill();

    let program = serve().start().await;
    let mut phone = program.ws("phone").await;
    let frame = phone.event().await;
    assert_eq!((&frame["event"]["id"], &frame["ahead"]), (&json!("alarm"), &json!(true)));
    assert_eq!(frame["offset"], 0, "to go on from here loses nothing");
    // To acknowledge it is to acknowledge what came in its turn before it.
    phone.send(&json!({"op": "ack", "offset": frame["offset"]})).await;
    for offset in 1..=20 {
        let frame = phone.event().await;
        assert_eq!((&frame["offset"], &frame["ahead"]), (&json!(offset), &Value::Null), "{frame}");
    }
    let gap = json!({"op": "gap", "from": 21, "to": 21, "count": 1, "reason": "ahead"});
    assert_eq!(phone.next().await, gap);
    assert_eq!(phone.event().await["offset"], 22);
    let mut stream = program.sse("phone").await;
    let message = stream.next().await;
    assert_eq!((message.frame()["ahead"].as_bool(), message.epoch_and_offset().1), (Some(true), 0));
    program.finish().await;
}
