//! Requests that are refused and name themselves at length: an answer must not cost more than what it answers.

use serde_json::Value;

use crate::harness::{Program, Received, Serve};

/// An answer has at most so many times the bytes of its request, and so many besides.
const TIMES: usize = 4;
const BESIDES_BYTES: usize = 4 << 10;

/// Besides, for the answer to a batch.
const BATCH_BESIDES_BYTES: usize = 20 << 10;

#[track_caller]
fn assert_small(name: &str, sent_bytes: usize, besides_bytes: usize, answer: &str) {
    let most_bytes = TIMES * sent_bytes + besides_bytes;
    let start = answer.chars().take(200).collect::<String>();
    assert!(answer.len() <= most_bytes, "{name}: {} bytes for {sent_bytes}: {start}", answer.len());
}

/// Names that are long, and longer where they are escaped.
fn names() -> [String; 5] {
    ["n", "/", "\\u0001", "\\\"", "\u{10ffff}"].map(|piece| piece.repeat(20_000 / piece.len()))
}

/// Members that nobody knows, of some kilobytes.
fn many_members() -> String {
    (0..900).map(|index| format!("\"m{index}\":1e999")).collect::<Vec<_>>().join(",")
}

/// Events that are wrong wherever a fault repeats what it is about.
fn events() -> Vec<String> {
    let point = r#""geometry":{"type":"Point","coordinates":[9,45]}"#;
    let mut events = Vec::new();
    for name in names() {
        let below = vec!["1e999"; 100].join(",");
        events.extend([
            format!(r#"{{"type":"Feature",{point},"properties":{{"{name}":1e999}}}}"#),
            format!(r#"{{"type":"Feature",{point},"properties":{{"{name}":[{below}]}}}}"#),
            format!(r#"{{"type":"Feature",{point},"{name}":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}}"#),
            format!(r#"{{"type":"Feature",{point},"{name}":1,"{name}":2}}"#),
            format!(r#"{{"type":"{name}","geometry":"{name}","key":"{name}"}}"#),
            format!(r#"{{"type":"Feature","id":"{name}",{point}}}"#),
            format!(r#"{{"type":"Feature",{point},"time":"{name}","ttl_s":"{name}"}}"#),
            format!(r#"{{"type":"Feature",{point},"priority":"{name}","reach_m":"{name}"}}"#),
        ]);
    }
    events.push(format!(r#"{{"type":"Feature",{point},{}}}"#, many_members()));
    events.push(format!(r#"{{"type":"Feature",{point},"properties":{{{}}}}}"#, many_members()));
    events
}

fn subscriptions() -> Vec<String> {
    let mut subscriptions = Vec::new();
    for name in names() {
        subscriptions.extend([
            format!(r#"{{"filters":[{{}}],"{name}":1}}"#),
            format!(r#"{{"filters":[{{"{name}":1}}]}}"#),
            format!(r#"{{"filters":[{{"area":{{"{name}":1}}}}]}}"#),
            format!(r#"{{"filters":[{{}}],"id":"{name}"}}"#),
            format!(r#"{{"filters":[{{"where":{{"op":"{name}","args":[]}}}}]}}"#),
        ]);
        let short = &name[..name.len() / 48 * 12];
        subscriptions.extend([
            format!(r#"{{"filters":[{{"where":"a = {short} {short}"}}]}}"#),
            format!(
                r#"{{"filters":[{{"where":{{"op":"=","args":[{{"property":"a"}},{{"{short}":1}}]}}}}]}}"#
            ),
        ]);
    }
    let filter = format!("{{{}}}", many_members());
    subscriptions.push(format!(r#"{{"filters":[{}]}}"#, vec![filter; 30].join(",")));
    subscriptions
}

fn positions() -> Vec<String> {
    let short = |name: String| name[..name.len() / 48 * 12].to_owned();
    let mut positions = Vec::new();
    for name in names().map(short) {
        positions.push(format!(r#"{{"{name}":1}}"#));
        positions.push(format!(r#"{{"coordinates":"{name}","accuracy_m":"{name}"}}"#));
    }
    positions
}

async fn check_calls(program: &Program) {
    let http = program.http();
    let put =
        |path: &'static str, bodies: Vec<String>| bodies.into_iter().map(move |body| ("PUT", path, body));
    let explained =
        subscriptions().into_iter().zip(events().into_iter().cycle()).map(|(subscription, event)| {
            (
                "POST",
                "/v1/explain",
                format!(r#"{{"client":"car","subscription":{subscription},"event":{event}}}"#),
            )
        });
    let calls = put("/v1/clients/car/subscriptions/s", subscriptions())
        .chain(put("/v1/clients/car/position", positions()))
        .chain(events().into_iter().map(|event| ("POST", "/v1/events", event)))
        .chain(explained);
    for (method, path, body) in calls {
        let sent_bytes = body.len();
        let answer = http.send(method, path, Some("application/json"), body).await;
        assert!((400..500).contains(&answer.status), "{method} {path}: {}", answer.status);
        assert_small(path, sent_bytes, BESIDES_BYTES, &answer.text());
    }
    for name in ["n", "%01", "%22"].map(|piece| piece.repeat(8_000 / piece.len())) {
        for path in [
            format!("/{name}"),
            format!("/v1/clients/{name}/subscriptions/s"),
            format!("/v1/clients/car/subscriptions/{name}"),
            format!("/v1/events/{name}/deliveries"),
            format!("/v1/clients?{name}=1&after={name}"),
        ] {
            assert_small("a path", path.len(), BESIDES_BYTES, &http.get(&path).await.text());
        }
    }
}

async fn check_batches(program: &Program) {
    let http = program.http();
    for event in events() {
        for count in [1, 30] {
            let batch = vec![event.as_str(); count].join("\n");
            let sent_bytes = batch.len();
            let answer = http.post("/v1/events", "application/x-ndjson", batch).await.expect(202);
            assert_small("events", sent_bytes, BATCH_BESIDES_BYTES, &answer.text());
            let answer = answer.json();
            let listed = answer["rejected"].as_array().map_or(0, Vec::len) as u64;
            let unlisted = answer["rejected_unlisted"].as_u64().unwrap_or(0);
            assert_eq!(listed + unlisted, count as u64);
        }
    }
    // Small elements are the dearest: all are counted, the first are listed.
    let answer = http.post("/v1/events", "application/x-ndjson", "1\n".repeat(5_000)).await.expect(202);
    assert_small("small elements", 10_000, BATCH_BESIDES_BYTES, &answer.text());
    let answer = answer.json();
    let listed = answer["rejected"].as_array().map_or(0, Vec::len) as u64;
    assert!(listed >= 40 && listed + answer["rejected_unlisted"].as_u64().unwrap_or(0) == 5_000, "{listed}");
}

async fn check_frames(program: &Program) {
    let mut ws = program.ws("car").await;
    let mut frames: Vec<String> =
        names().iter().map(|name| format!(r#"{{"op":"{name}","{name}":1}}"#)).collect();
    frames.extend(names().iter().map(|name| format!(r#"{{"op":"subscribe","id":"{name}"}}"#)));
    frames.extend(names().iter().map(|name| format!(r#"{{"op":"unsubscribe","id":"{name}"}}"#)));
    frames.extend(events().iter().map(|event| format!(r#"{{"op":"publish","event":{event}}}"#)));
    let with_op = |op: &str, document: &String| format!(r#"{{"op":"{op}","id":"s",{}"#, &document[1..]);
    frames.extend(subscriptions().iter().map(|document| with_op("subscribe", document)));
    frames.extend(positions().iter().map(|document| with_op("move", document)));
    for frame in frames {
        let (sent_bytes, start) = (frame.len(), frame.chars().take(200).collect::<String>());
        ws.send_text(frame).await;
        let Received::Frame(answer) = ws.receive().await else { panic!("it is closed") };
        assert_eq!(answer["op"], "problem", "{start}: {answer}");
        assert_small("a frame", sent_bytes, BESIDES_BYTES, &Value::to_string(&answer));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_no_larger_than_what_they_answer() {
    let mut program = Serve::new().start().await;
    check_calls(&program).await;
    check_batches(&program).await;
    check_frames(&program).await;
    program.assert_healthy();
    program.finish().await;
}
