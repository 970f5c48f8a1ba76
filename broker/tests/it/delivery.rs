//! Who gets what, when: several readers, reconnections, forgotten clients, streamed bodies, pages of elsewhere.

use serde_json::{Value, json};

use crate::harness::{Form, Http, Program, Raw, Serve, Sse, encode, eventually, feature};

fn numbered(idx: u64) -> Value {
    feature(&format!("e{idx}"), [9.0, 45.0], json!({"n": idx}))
}

async fn publish(http: &Http, ids: std::ops::Range<u64>) {
    let (content_type, body) = encode(Form::Collection, &ids.map(numbered).collect::<Vec<_>>());
    let answer = http.post("/v1/events", content_type, body).await.expect(202).json();
    assert_eq!(answer["rejected"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_readers_of_a_client_get_the_same() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    http.put("/v1/clients/car/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let (mut a, mut b) = (program.ws("car").await, program.ws("car").await);
    let (mut c, mut d) = (program.sse("car").await, program.sse("car").await);
    assert_eq!(a.ready, b.ready);
    publish(&http, 0..200).await;
    for idx in 0..200 {
        let frame = a.event().await;
        assert_eq!(frame["event"]["id"], format!("e{idx}"));
        assert_eq!(frame, b.event().await);
        let message = c.next().await;
        assert_eq!(message.frame(), frame);
        assert_eq!(message, d.next().await);
        let id = format!("{}:{}", a.ready["epoch"].as_str().unwrap_or_default(), frame["offset"]);
        assert_eq!(message.id, id);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_together_takes_effect_in_its_order_however_short_the_queues() {
    let program = Serve::new().args(&["--shards", "2"]).config("queue.commands = 5").start().await;
    let http = program.http();
    let mut car = program.ws("car").await;
    let follows = json!({"filters": [{"area": {"radius_m": 1_000}}]});
    car.subscribe("s", follows).await;
    // Frames that are there all at once: the client hops to and fro, and of the events after each hop it is to get one in two.
    let mut told = Vec::new();
    for hop in 0..60 {
        let here = [9.0 + f64::from(hop % 2), 45.0];
        told.push(json!({"op": "move", "ref": format!("m{hop}"), "coordinates": here}));
        for at in 0..2 {
            let event = feature(&format!("e{hop}-{at}"), [9.0 + f64::from(at), 45.0], json!({}));
            told.push(json!({"op": "publish", "ref": format!("p{hop}-{at}"), "event": event}));
        }
        told.push(json!({"op": "publish", "ref": format!("x{hop}"), "event": {}}));
    }
    for frame in &told {
        car.send(frame).await;
    }
    let (mut answers, mut events) = (Vec::new(), Vec::new());
    while answers.len() < told.len() || events.len() < 60 {
        let frame = car.next().await;
        match frame["op"].as_str() {
            Some("event") => events.push(frame["event"]["id"].clone()),
            op => answers.push((op == Some("ok"), frame["ref"].clone())),
        }
    }
    let is_right = |frame: &Value| frame["event"] != json!({});
    assert_eq!(answers, told.iter().map(|frame| (is_right(frame), frame["ref"].clone())).collect::<Vec<_>>());
    assert_eq!(events, (0..60).map(|hop| json!(format!("e{hop}-{}", hop % 2))).collect::<Vec<_>>());

    car.ok(json!({"op": "move", "coordinates": [9.0, 45.0]})).await;
    publish(&http, 0..300).await;
    for idx in 0..300 {
        assert_eq!(car.event().await["event"]["id"], format!("e{idx}"));
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_reconnects_is_told_what_it_missed() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    http.put("/v1/clients/car/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let mut sse = program.sse("car").await;
    publish(&http, 0..3).await;
    let mut last = sse.next().await;
    for _ in 1..3 {
        last = sse.next().await;
    }
    let (epoch, offset) = last.epoch_and_offset();
    drop(sse);
    eventually("the reader is gone", async || {
        (http.get("/v1/stats").await.expect(200).json()["event_streams"] == 0).then_some(())
    })
    .await;
    publish(&http, 3..10).await;
    let mut sse = Sse::resume(program.address(), "car", &last.id).await;
    let gap = sse.next().await;
    assert_eq!(gap.event, "gap", "{gap:?}");
    let frame = gap.frame();
    assert_eq!(
        (&frame["from"], &frame["to"], &frame["count"]),
        (&json!(offset + 1), &json!(offset + 7), &json!(7))
    );
    assert_eq!(gap.epoch_and_offset(), (epoch.clone(), offset + 7));
    publish(&http, 10..11).await;
    let next = sse.next().await;
    assert_eq!(next.epoch_and_offset(), (epoch.clone(), offset + 8), "{next:?}");
    // With nothing missed there is no gap, and the numbers of another session are never taken for this one's.
    let mut again = Sse::resume(program.address(), "car", &next.id).await;
    let mut stranger = Sse::resume(program.address(), "car", "another:3").await;
    publish(&http, 11..12).await;
    assert_eq!(again.next().await.event, "event");
    assert_eq!(stranger.next().await.event, "gap");
    assert_eq!(stranger.next().await.epoch_and_offset(), (epoch, offset + 9));
    for nonsense in ["17", "x:y", ":"] {
        let request = reqwest::Client::new()
            .get(format!("http://{}/v1/clients/car/events", program.address()))
            .header("last-event-id", nonsense);
        assert_eq!(request.send().await.expect("an answer").status(), 400, "{nonsense}");
    }
    // A WebSocket's way to tell it is not passed over.
    let told = http.get("/v1/clients/car/events?a=b&resume=a1%3A17").await.problem(400);
    assert!(told["detail"].as_str().expect("a text").contains("Last-Event-ID"), "{told}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_client_has_no_position_and_no_subscriptions() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let near = json!({"filters": [{"area": {"radius_m": 500}}]});
    let full =
        json!({"coordinates": [9.0, 45.0, 120.0], "accuracy_m": 7.5, "time": "2026-03-01T07:30:00+01:00"});
    http.put("/v1/clients/car/position", &full).await.expect(204);
    http.put("/v1/clients/car/subscriptions/near", &near).await.expect(201);
    let listed = http.get("/v1/clients/car/subscriptions").await.expect(200).text();
    assert!(listed.contains("near"), "{listed}");
    http.delete("/v1/clients/car").await.expect(204);
    http.get("/v1/clients/car/subscriptions/near").await.problem(404);
    // The same again, but for the position: what follows it is nowhere.
    http.put("/v1/clients/car/subscriptions/near", &near).await.expect(201);
    let mut car = program.ws("car").await;
    car.subscribe("fence", json!({"filters": [{"where": "n = 1"}]})).await;
    publish(&http, 0..2).await;
    let frame = car.event().await;
    assert_eq!(frame["event"]["id"], "e1", "{frame}");
    assert_eq!(frame["subscriptions"], json!(["fence"]), "{frame}");
    // Forgetting what is not there is fine, and forgetting somebody who listens ends that.
    http.delete("/v1/clients/nobody").await.expect(204);
    http.delete("/v1/clients/car").await.expect(204);
    let (code, reason) = car.closed().await;
    assert!(code != 1006 && !reason.is_empty(), "{code} {reason:?}");
    program.finish().await;
}

/// The head of a request whose body comes in parts.
fn chunked(content_type: &str) -> String {
    format!(
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
}

async fn send_chunk(raw: &mut Raw, text: &str) {
    assert!(raw.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await, "the broker reads on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_batches_are_delivered_while_they_come() {
    /// With these a batch is certainly large: 100 KB. A small document may be read whole first.
    const HEAD_COUNT: u64 = 100;
    const COUNT: u64 = 120;
    let program = Serve::new().start().await;
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    let event = |idx: u64| {
        feature(&format!("e{idx}"), [9.0, 45.0], json!({"n": idx, "ballast": "x".repeat(1_000)})).to_string()
    };
    for (content_type, begin, before, after, end) in [
        ("application/x-ndjson", "", "", "\n", ""),
        ("application/geo+json-seq", "", "\u{1e}", "\n", ""),
        ("application/geo+json", r#"{"type":"FeatureCollection","features":["#, "", ",", "5]}"),
    ] {
        let mut raw = Raw::connect(program.address()).await;
        raw.send(chunked(content_type).as_bytes()).await;
        let head = (0..HEAD_COUNT).map(|idx| format!("{before}{}{after}", event(idx))).collect::<String>();
        send_chunk(&mut raw, &format!("{begin}{head}")).await;
        let mut delivered = 0..COUNT;
        for idx in HEAD_COUNT..COUNT {
            send_chunk(&mut raw, &format!("{before}{}{after}", event(idx))).await;
            // All before this one have arrived before the next is sent; this one's end may not be known yet.
            for id in delivered.by_ref().take(if idx == HEAD_COUNT { 100 } else { 1 }) {
                assert_eq!(client.event().await["event"]["id"], format!("e{id}"), "{content_type}");
            }
        }
        if !end.is_empty() {
            send_chunk(&mut raw, end).await;
        }
        raw.send(b"0\r\n\r\n").await;
        let head = raw.head().await;
        assert!(head.starts_with("HTTP/1.1 202"), "{content_type}: {head}");
        for id in delivered {
            assert_eq!(client.event().await["event"]["id"], format!("e{id}"), "{content_type}");
        }
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_may_come_byte_by_byte() {
    let program = Serve::new().start().await;
    let condition = format!("a = '{}'", "x".repeat(10_000));
    let document = json!({"filters": [{"where": condition}]}).to_string();
    let head =
        "PUT /v1/clients/car/subscriptions/s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunks = document.chars().map(|c| format!("1\r\n{c}\r\n")).collect::<String>();
    let mut raw = Raw::connect(program.address()).await;
    raw.send(format!("{head}{chunks}0\r\n\r\n").as_bytes()).await;
    let answer = raw.head().await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_batch_takes_little_memory() {
    const EVENTS_COUNT: usize = 30_000;
    let mut program = Serve::new().start().await;
    let http = program.http();
    publish(&http, 0..100).await;
    let before = program.resident_bytes();
    let mut raw = Raw::connect(program.address()).await;
    raw.send(chunked("application/geo+json").as_bytes()).await;
    send_chunk(&mut raw, r#"{"type":"FeatureCollection","features":["#).await;
    let feature = feature("e", [9.0, 45.0], json!({"ballast": "x".repeat(1_000)})).to_string();
    let mut most = before;
    for idx in 0..EVENTS_COUNT {
        let separator = if idx == 0 { "" } else { "," };
        send_chunk(&mut raw, &format!("{separator}{feature}")).await;
        if idx % 1_000 == 0 {
            most = most.max(program.resident_bytes());
        }
    }
    send_chunk(&mut raw, "]}").await;
    raw.send(b"0\r\n\r\n").await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 202"), "{head}");
    let stats = http.get("/v1/stats").await.expect(200).json();
    assert_eq!(stats["events"], EVENTS_COUNT + 100, "{stats}");
    // 33 MB have gone through, each of them twice: as text and as attributes. A full queue holds 19 MB of that.
    assert!(most - before < 24 << 20, "the broker has grown by {} MiB", (most - before) >> 20);
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_types_may_have_parameters_or_be_absent() {
    let program = Serve::new().start().await;
    let http = program.http();
    let event = numbered(0).to_string();
    for content_type in [
        Some("application/geo+json"),
        Some("application/json"),
        Some("Application/Geo+JSON; charset=utf-8"),
        Some("application/x-ndjson; charset=UTF-8"),
        None,
    ] {
        let answer = http.send("POST", "/v1/events", content_type, event.clone()).await.expect(202).json();
        assert_eq!(answer["accepted"], 1, "{content_type:?}: {answer}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_elsewhere_are_kept_out() {
    let program = Serve::new().config("[server]\nallowed_origins = \"https://app.example\"\n").start().await;
    for (origin, allowed) in [
        ("https://evil.example", false),
        ("https://app.example.evil.example", false),
        ("http://app.example", false),
        ("null", false),
        ("http://127.0.0.1.evil.example", false),
        ("https://app.example", true),
        ("http://localhost:3000", true),
        ("http://127.0.0.1:8080", true),
        ("http://[::1]:8080", true),
    ] {
        let asks = ask(&program, "GET /v1/stats", origin, "").await;
        assert_eq!(asks.starts_with("HTTP/1.1 200"), allowed, "{origin}: {asks}");
        assert_eq!(asks.starts_with("HTTP/1.1 403"), !allowed, "{origin}: {asks}");
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
            sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let upgraded = ask(&program, "GET /v1/clients/car/ws", origin, upgrade).await;
        assert_eq!(upgraded.starts_with("HTTP/1.1 101"), allowed, "{origin}: {upgraded}");
        let preflight =
            "access-control-request-method: PUT\r\naccess-control-request-headers: content-type\r\n";
        let preflight = ask(&program, "OPTIONS /v1/clients/car/position", origin, preflight).await;
        let lets = preflight.to_lowercase().contains(&format!("access-control-allow-origin: {origin}"));
        assert_eq!(lets, allowed, "{origin}: {preflight}");
    }
    program.finish().await;
}

/// A page that has led the name of its own domain to the broker is at home there for its browser, and sends no `Origin`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_was_led_here_gets_no_answers() {
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let calls = [
        ("GET /v1/clients", "", "200"),
        ("HEAD /v1/clients", "", "200"),
        ("GET /v1/clients/car/subscriptions", "", "200"),
        ("GET /v1/clients/car/events", "", "200"),
        ("GET /metrics", "", "200"),
        ("GET /", "", "200"),
        ("DELETE /v1/clients/car", "", "204"),
        ("GET /v1/clients/car/ws", upgrade, "101"),
    ];
    let head = async |program: &Program, call: &str, headers: &str| {
        let mut raw = Raw::connect(program.address()).await;
        raw.send(format!("{call} HTTP/1.1\r\n{headers}\r\n").as_bytes()).await;
        raw.head().await.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for insecure in [false, true] {
        let serve = Serve::new().config("[server]\nhosts = \"broker.example\"\n");
        let serve = if insecure { serve.args(&["--insecure"]) } else { serve };
        let program = serve.start().await;
        for (call, headers, status) in calls {
            for (host, own) in [
                ("evil.example", false),
                ("evil.example:7070", false),
                ("127.0.0.1.evil.example", false),
                ("broker.example", true),
                ("localhost:7070", true),
                ("127.0.0.1:7070", true),
                ("[::1]:7070", true),
            ] {
                let told = head(&program, call, &format!("host: {host}\r\n{headers}")).await;
                assert_eq!(told, if own { status } else { "421" }, "{call} {host}");
                // Its own origin is no better than the name in it.
                let origin = format!("host: {host}\r\norigin: http://{host}\r\n{headers}");
                let told = head(&program, call, &origin).await;
                assert_eq!(told, if own { status } else { "403" }, "{call} {host}");
            }
            let image = format!("host: localhost\r\nsec-fetch-site: cross-site\r\n{headers}");
            let told = head(&program, call, &image).await;
            assert_eq!(told, if call == "GET /" { status } else { "403" }, "{call}");
        }
        assert_eq!(head(&program, "GET /healthz", "host: evil.example\r\n").await, "200");
        program.finish().await;
    }
}

async fn ask(program: &Program, call: &str, origin: &str, headers: &str) -> String {
    let mut raw = Raw::connect(program.address()).await;
    raw.send(format!("{call} HTTP/1.1\r\nhost: x\r\norigin: {origin}\r\n{headers}\r\n").as_bytes()).await;
    raw.head().await
}
