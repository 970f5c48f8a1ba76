//! The trace of an event, from being published to being delivered: what subscribers are told of it, what a collector gets, and
//! that nobody waits for a collector.

use std::collections::BTreeSet;

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Collector, Form, Http, Program, Serve, Taken, attribute, encode, eventually, feature, hex,
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PUBLISHER: &str = "00f067aa0ba902b7";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PUBLISHER}-{flags}")
}

fn serve(endpoint: &str, sample: f64) -> Serve {
    let config = format!(
        "[telemetry]\notlp_endpoint = \"{endpoint}\"\nsample = {sample:?}\nservice_name = \"here\"\n\
         [server]\nshutdown_grace_ms = 2000\n"
    );
    Serve::new().config(&config).args(&["--shards", "2"])
}

fn event(id: &str) -> Value {
    feature(id, [9.18273, 45.46391], json!({"n": 1}))
}

async fn subscribed(program: &Program, clients: &[&str]) {
    for client in clients {
        let path = format!("/v1/clients/{client}/subscriptions/s");
        program.http().put(&path, &json!({"filters": [{}]})).await.expect(201);
    }
}

async fn publish(http: &Http, event: &Value, headers: &[(&str, &str)]) {
    let (content_type, body) = encode(Form::Feature, std::slice::from_ref(event));
    http.send_with("POST", "/v1/events", Some(content_type), headers, body).await.expect(202);
}

/// Version, trace, span and flags of a `traceparent`.
fn parts(frame: &Value) -> [String; 4] {
    let parent = frame["traceparent"].as_str().unwrap_or_else(|| panic!("no traceparent: {frame}"));
    let parts: Vec<_> = parent.split('-').map(str::to_owned).collect();
    parts.try_into().expect("four parts")
}

async fn figure(http: &Http, name: &str) -> u64 {
    let text = http.get("/metrics").await.expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    line.trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_trace_goes_from_the_publisher_to_the_subscribers() {
    let collector = Collector::start().await;
    let program =
        serve(&collector.endpoint(), 0.0).env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret%201").start().await;
    // By name they are dealt over the shards; some are on each.
    let clients: Vec<String> = (0..8).map(|idx| format!("client{idx}")).collect();
    let names: Vec<&str> = clients.iter().map(String::as_str).collect();
    subscribed(&program, &names).await;
    let mut sockets = Vec::new();
    for name in &names[1..] {
        sockets.push(program.ws(name).await);
    }
    let mut stream = program.sse(names[0]).await;

    let headers = [("traceparent", &*parent("01")), ("tracestate", "a=1"), ("tracestate", "b=\"2")];
    publish(&program.http(), &event("e1"), &headers).await;
    let message = stream.next().await;
    let frame = message.frame();
    let [version, trace, published, flags] = parts(&frame);
    assert_eq!((&*version, &*trace, &*flags), ("00", TRACE, "01"));
    assert_eq!(frame["tracestate"], "a=1,b=\"2");
    for socket in &mut sockets {
        let of_socket = socket.event().await;
        for member in ["traceparent", "tracestate", "event", "cause"] {
            assert_eq!(of_socket[member], frame[member]);
        }
    }

    let taken = eventually("all spans", async || {
        let taken = collector.taken();
        (taken.of(TRACE, "deliver").len() == 8).then_some(taken)
    })
    .await;
    let [publish] = *taken.of(TRACE, "publish") else { panic!("{:?}", taken.spans) };
    assert_eq!(
        (hex(&publish.span_id), hex(&publish.parent_span_id)),
        (published.clone(), PUBLISHER.to_owned())
    );
    assert_eq!((publish.kind(), &*publish.trace_state), (SpanKind::Server, "a=1,b=\"2"));
    assert_eq!(attribute(&publish.attributes, "nearcast.transport").as_deref(), Some("http"));
    let matches = taken.of(TRACE, "match");
    let shards: BTreeSet<_> =
        matches.iter().map(|span| attribute(&span.attributes, "nearcast.shard")).collect();
    assert_eq!(shards, BTreeSet::from([Some("0".to_owned()), Some("1".to_owned())]));
    let matched = |span| attribute(span, "nearcast.matches").and_then(|count| count.parse::<u64>().ok());
    assert_eq!(matches.iter().filter_map(|span| matched(&span.attributes)).sum::<u64>(), 8);
    for span in &matches {
        assert_eq!(hex(&span.parent_span_id), published);
        assert!(span.start_time_unix_nano >= publish.start_time_unix_nano, "{span:?}");
    }
    let delivered = taken.of(TRACE, "deliver");
    for span in &delivered {
        let under = matches.iter().find(|one| one.span_id == span.parent_span_id).expect("below a match");
        assert!(span.end_time_unix_nano >= under.end_time_unix_nano, "{span:?}");
    }
    let over = |name| {
        let over = delivered.iter().map(|span| attribute(&span.attributes, "nearcast.transport"));
        over.filter(|over| over.as_deref() == Some(name)).count()
    };
    assert_eq!((over("websocket"), over("event-stream")), (7, 1));

    assert_eq!(taken.spans.len(), 1 + 2 + 8);
    assert_eq!(attribute(&taken.resource, "service.name").as_deref(), Some("here"));
    assert_eq!(taken.headers["x-key"], "secret 1");
    let told = format!("{:?}", taken.spans);
    assert!(["18273", "46391", "client", "e1"].iter().all(|private| !told.contains(private)), "{told}");
    // The collector has them before the broker knows that.
    let http = program.http();
    let exported = async || (figure(&http, "nearcast_spans_exported_total").await == 11).then_some(());
    eventually("all are counted", exported).await;
    program.finish().await;
}

/// What is exported after the broker has ended, which is all there is.
async fn all_of(program: Program, collector: &Collector) -> Taken {
    program.finish().await;
    collector.taken()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_are_passed_on_and_only_sampled_ones_recorded() {
    let collector = Collector::start().await;
    let program = serve(&collector.endpoint(), 0.0).start().await;
    subscribed(&program, &["car"]).await;
    let http = program.http();
    let mut car = program.ws("car").await;

    publish(&http, &event("plain"), &[]).await;
    let plain = car.event().await;
    assert!(plain.get("traceparent").is_none() && plain.get("tracestate").is_none(), "{plain}");
    for wrong in ["", "00", &parent("0x"), &parent("01").to_uppercase(), &format!("{}-", parent("01"))] {
        publish(&http, &event("wrong"), &[("traceparent", wrong), ("tracestate", "a=1")]).await;
        let frame = car.event().await;
        assert!(frame.get("traceparent").is_none() && frame.get("tracestate").is_none(), "{wrong}: {frame}");
    }
    publish(&http, &event("unsampled"), &[("traceparent", &parent("00")), ("tracestate", "a=1")]).await;
    let unsampled = car.event().await;
    assert_eq!((&unsampled["traceparent"], &unsampled["tracestate"]), (&json!(parent("00")), &json!("a=1")));

    // Over a WebSocket by members of the frame; what is wrong there is ignored as well.
    car.ok(json!({"op": "publish", "traceparent": parent("01"), "tracestate": 7, "event": event("sampled")}))
        .await;
    let frame = car.event().await;
    let [_, trace, first, _] = parts(&frame);
    assert!(trace == TRACE && first != PUBLISHER && frame.get("tracestate").is_none(), "{frame}");
    car.ok(json!({"op": "publish", "traceparent": 7, "tracestate": "a=1", "event": event("wrong")})).await;
    assert!(car.event().await.get("traceparent").is_none());

    // All events of a batch are children of what asked for it, and a refused one says why.
    let [one, other] = [event("one"), event("other")];
    let mut wrong = event("wrong");
    wrong["geometry"]["coordinates"] = json!([918_273, 46_391]);
    let (content_type, body) = encode(Form::Lines, &[one, wrong, other]);
    let headers = [("traceparent", &*parent("01"))];
    http.send_with("POST", "/v1/events", Some(content_type), &headers, body).await.expect(202);
    let mut published = BTreeSet::from([first]);
    for _ in 0..2 {
        published.insert(parts(&car.event().await)[2].clone());
    }
    drop(car);

    let taken = all_of(program, &collector).await;
    assert!(taken.spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{:?}", taken.spans);
    let spans = taken.of(TRACE, "publish");
    assert!(spans.iter().all(|span| hex(&span.parent_span_id) == PUBLISHER));
    let (failed, fine): (Vec<_>, Vec<_>) =
        spans.into_iter().partition(|span| span.status.as_ref().is_some_and(|status| status.code == 2));
    assert_eq!(fine.iter().map(|span| hex(&span.span_id)).collect::<BTreeSet<_>>(), published);
    let [failed] = *failed else { panic!("{failed:?}") };
    assert_eq!(failed.status.as_ref().map(|status| &*status.message), Some("invalid-document"));
    assert_eq!(taken.of(TRACE, "match").len(), 3 * 2);
    assert!(!format!("{:?}", taken.spans).contains("46391"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_events_without_a_context_a_share_is_traced() {
    let collector = Collector::start().await;
    let program = serve(&collector.endpoint(), 1.0).start().await;
    let clients: Vec<String> = (0..40).map(|idx| format!("c{idx}")).collect();
    let names: Vec<&str> = clients.iter().map(String::as_str).collect();
    subscribed(&program, &names).await;
    let mut sockets = Vec::new();
    for name in &names {
        sockets.push(program.ws(name).await);
    }
    publish(&program.http(), &event("e1"), &[]).await;
    publish(&program.http(), &event("e2"), &[("traceparent", &parent("00"))]).await;
    let mut traces = BTreeSet::new();
    for socket in &mut sockets {
        let [_, trace, span, flags] = parts(&socket.event().await);
        assert_eq!(flags, "01");
        traces.insert((trace, span));
        assert_eq!(socket.event().await["traceparent"], parent("00"));
    }
    let (trace, span) = traces.pop_first().expect("one");
    assert!(traces.is_empty(), "another: {traces:?}");
    // What was recorded is exported before the end; and however many get an event, so many have a span.
    let taken = all_of(program, &collector).await;
    assert_eq!(taken.spans.len(), 1 + 2 + 16);
    let [publish] = *taken.of(&trace, "publish") else { panic!("{:?}", taken.spans) };
    assert_eq!((hex(&publish.span_id), hex(&publish.parent_span_id)), (span, String::new()));
    assert_eq!(taken.of(&trace, "deliver").len(), 16);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_live_event_carries_stays_with_it() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let mut live = event("e1");
    live["ttl_s"] = json!(600);
    // Without a collector, too.
    publish(&program.http(), &live, &[("traceparent", &parent("01"))]).await;
    let mut car = program.ws("car").await;
    car.subscribe("s", json!({"filters": [{"area": {"radius_m": 5_000}}]})).await;
    car.place([9.18, 45.46]).await;
    let frame = car.event().await;
    assert_eq!((&frame["cause"], &frame["traceparent"]), (&json!("moved"), &json!(parent("01"))));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_is_not_the_delivery_of_the_event_that_it_tells_of() {
    let collector = Collector::start().await;
    let program = serve(&collector.endpoint(), 0.0).start().await;
    let mut car = program.ws("car").await;
    car.subscribe("s", json!({"filters": [{"area": {"radius_m": 5_000}}], "on": ["enter", "exit"]})).await;
    car.place([9.18, 45.46]).await;
    let mut inside = event("e1");
    inside["key"] = json!("bus");
    publish(&program.http(), &inside, &[("traceparent", &parent("01"))]).await;
    let entered = car.event().await;
    let mut outside = feature("e2", [10.0, 46.0], json!({}));
    outside["key"] = json!("bus");
    publish(&program.http(), &outside, &[]).await;
    let left = car.event().await;
    assert_eq!((&entered["transition"], &left["transition"]), (&json!("enter"), &json!("exit")));
    assert_eq!((&left["event"]["id"], &left["traceparent"]), (&json!("e1"), &entered["traceparent"]));
    drop(car);
    assert_eq!(all_of(program, &collector).await.of(TRACE, "deliver").len(), 1);
}

/// More events than spans may wait for.
async fn publish_many(http: &Http) {
    let events: Vec<Value> = (0..10_000).map(|idx| event(&format!("e{idx}"))).collect();
    let (content_type, body) = encode(Form::Lines, &events);
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!((&answer["accepted"], &answer["rejected"]), (&json!(10_000), &json!([])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_collector_that_hangs() {
    let collector = Collector::hanging().await;
    let mut program = serve(&collector.endpoint(), 1.0).start().await;
    subscribed(&program, &["car"]).await;
    let mut car = program.ws("car").await;
    publish_many(&program.http()).await;
    for idx in 0..10_000 {
        assert_eq!(car.event().await["event"]["id"], format!("e{idx}"));
    }
    // 30,000 spans and more, of which the queue and one request hold not even 10,000.
    assert!(figure(&program.http(), "nearcast_spans_lost_total{cause=\"queue\"}").await > 20_000);
    drop(car);
    program.signal("TERM");
    assert!(program.exit_status().await.success());
    assert!(program.log().contains("did not take all that was left"), "{}", program.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_is_told_of_once() {
    let gone = Collector::start().await.endpoint();
    let program = serve(&gone, 1.0).env("OTEL_EXPORTER_OTLP_TIMEOUT", "200").start().await;
    let http = program.http();
    for lost in [3, 6] {
        publish(&http, &event("e"), &[]).await;
        eventually("the spans are given up", async || {
            let count = figure(&http, "nearcast_spans_lost_total{cause=\"collector\"}").await;
            (count == lost).then_some(())
        })
        .await;
    }
    let log = program.log();
    assert_eq!(log.matches("the collector takes no traces").count(), 1, "{log}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_has_its_trace_until_the_broker_ends() {
    let collector = Collector::start().await;
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let args = ["--data", data.to_str().expect("UTF-8")];
    let program = serve(&collector.endpoint(), 0.0).args(&args).start().await;
    let path = "/v1/clients/car/subscriptions/s";
    program.http().put(path, &json!({"filters": [{}], "durable": true})).await.expect(201);
    publish(&program.http(), &event("early"), &[("traceparent", &parent("01"))]).await;
    let mut car = program.ws("car").await;
    let [_, trace, early, _] = parts(&car.event().await);
    assert_eq!(trace, TRACE);
    publish(&program.http(), &event("late"), &[("traceparent", &parent("01"))]).await;
    let [_, _, late, _] = parts(&car.event().await);
    // What was kept meanwhile was not delivered by publishing it.
    let taken = eventually("a delivery", async || {
        let taken = collector.taken();
        (!taken.of(TRACE, "deliver").is_empty()).then_some(taken)
    })
    .await;
    let [delivered] = *taken.of(TRACE, "deliver") else { panic!("{:?}", taken.spans) };
    let matched = taken.of(TRACE, "match").into_iter().find(|span| span.span_id == delivered.parent_span_id);
    assert_eq!(hex(&matched.expect("its parent").parent_span_id), late);
    assert_ne!(early, late);
    drop(car);
    program.kill();

    let program = serve("", 0.0).args(&args).start().await;
    let mut car = program.ws("car").await;
    for _ in 0..2 {
        let frame = car.event().await;
        assert!(frame.get("traceparent").is_none(), "{frame}");
    }
    program.finish().await;
}
