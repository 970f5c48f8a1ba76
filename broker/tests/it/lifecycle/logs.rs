//! What is logged, in which form, and what never is.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Form, Program, Raw, Serve, Ws, encode, feature};

/// Digits that stand in every coordinate of this test and nowhere else.
const MARKS: [&str; 2] = ["18273", "46391"];

/// Somewhere in Milan, a little further for each number.
fn place(idx: u32) -> [f64; 2] {
    [format!("9.{idx:02}18273"), format!("45.{idx:02}46391")].map(|text| text.parse().expect("a number"))
}

fn serve(folder: &TempDir, format: &str) -> Serve {
    let data = folder.path().join("data");
    let config = format!(
        "[log]\nfilter = \"info,broker=debug\"\nformat = \"{format}\"\n[outbox]\nframes = 8\n[limits]\nfilters_per_subscription = 4\n"
    );
    Serve::new().args(&["--data", data.to_str().expect("UTF-8")]).config(&config)
}

/// Everything that has to do with positions, in order and not.
async fn use_it(program: &Program) {
    let http = program.http();
    let around = |idx| json!({"filters": [{"area": {"center": place(idx), "radius_m": 5_000}}]});
    let mut ws = program.ws("car").await;
    ws.subscribe("here", json!({"filters": [{"area": {"radius_m": 5_000}}], "on": ["enter", "exit"]})).await;
    ws.subscribe("there", around(1)).await;
    ws.place(place(1)).await;
    let track = json!([[place(1)[0], place(1)[1], 1], [place(2)[0], place(2)[1], 2]]);
    ws.ok(json!({"op": "move", "track": track})).await;
    ws.problem(json!({"op": "move", "coordinates": [918_273, 46_391]})).await;
    ws.send_text(format!("{{\"op\":\"move\",\"coordinates\":[{},", place(3)[0])).await;

    let ring = [place(1), [place(2)[0], place(1)[1]], place(2), place(1)];
    let polygon = json!({"filters": [{"area": {"polygon": {"type": "Polygon", "coordinates": [ring]}}}], "durable": true});
    http.put("/v1/clients/bus/subscriptions/s", &polygon).await;
    http.put("/v1/clients/bus/position", &json!({"coordinates": place(4), "accuracy_m": 5}))
        .await
        .expect(204);
    http.put("/v1/clients/bus/position", &json!({"coordinates": [918_273, 46_391]})).await.problem(400);
    let many = (5..9).map(|idx| json!({"client": format!("c{idx}"), "coordinates": place(idx)}));
    http.post("/v1/positions", "application/json", Value::from_iter(many).to_string()).await.expect(202);

    let events = (1..60).map(|idx| {
        let mut event = feature(&format!("e{idx}"), place(idx % 10), json!({"n": idx}));
        event["key"] = json!(format!("k{}", idx % 7));
        event
    });
    let (content_type, body) = encode(Form::Lines, &events.collect::<Vec<_>>());
    http.post("/v1/events", content_type, body).await.expect(202);
    let wrong = feature("e", [918_273.0, 46_391.0], json!({}));
    http.post("/v1/events", "application/geo+json", wrong.to_string()).await.problem(400);
    let question =
        json!({"client": "car", "subscription": "here", "event": feature("e", place(1), json!({}))});
    http.post("/v1/explain", "application/json", question.to_string()).await.expect(200);
    http.get(&format!("/v1/nowhere?at={:?}", place(1))).await.problem(404);

    // Connections that end in the middle of something.
    let mut cut = Raw::connect(program.address()).await;
    cut.send(
        format!("PUT /v1/clients/x/position HTTP/1.1\r\nhost: x\r\nbad header {:?}\r\n\r\n", place(1))
            .as_bytes(),
    )
    .await;
    cut.rest("a connection").await;
    program.says("ended early").await;
    drop(ws);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_position_is_logged() {
    for format in ["text", "json"] {
        let folder = TempDir::new().expect("a folder");
        let mut program = serve(&folder, format).start().await;
        use_it(&program).await;
        program.signal("TERM");
        program.exit_status().await;
        let first = program.log();
        // What is read back is looked at as well.
        let program = serve(&folder, format).start().await;
        let back = Ws::connect(program.address(), "bus").await;
        use_it(&program).await;
        drop(back);
        let log = first + &program.log();
        program.finish().await;
        for mark in MARKS {
            let told = log.lines().find(|line| line.contains(mark));
            assert!(told.is_none(), "a position is told: {told:?}");
        }
        assert!(log.contains("DEBUG"), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_json_each_record_is_an_object_with_fields() {
    let folder = TempDir::new().expect("a folder");
    let mut program = serve(&folder, "json").start().await;
    program.signal("TERM");
    program.exit_status().await;
    let log = program.log();
    let records =
        log.lines().filter(|line| !["nearcast ", "console: "].iter().any(|begin| line.starts_with(begin)));
    let records: Vec<Value> = records.map(|line| serde_json::from_str(line).expect(line)).collect();
    for record in &records {
        for member in ["timestamp", "level", "target"] {
            assert!(record[member].is_string(), "no {member}: {record}");
        }
        assert!(record["fields"]["message"].is_string(), "{record}");
    }
    let opened = records.iter().find(|record| record["fields"]["message"] == "opened the data");
    let opened = &opened.unwrap_or_else(|| panic!("{log}"))["fields"];
    assert!(opened["path"].as_str().is_some_and(|path| path.ends_with("data")), "{opened}");
    assert_eq!((&opened["clients"], &opened["live_events"]), (&json!(0), &json!(0)));
}
