//! Routes on the command line, and over HTTP.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::harness::{Http, Serve, eventually, run_to_end};

/// A square with a diagonal that is slow, one way from 1 to 2, and an island.
const NODES: &str = "node,lat,lon\n1,0,0\n2,0,0.01\n3,0.01,0.01\n4,0.01,0\n7,0.1,0.1\n8,0.1,0.11\n";
const EDGES: &str = "from,to,length_mm,oneway,highway,maxspeed\n\
    1,2,1000000,1,primary,50\n2,3,1000000,0,primary,50\n3,4,1000000,0,primary,50\n4,1,1000000,0,primary,50\n\
    1,3,1500000,0,residential,20\n7,8,5,0,service,\n";

fn find_in(folder: &Path, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let arguments = [&["routes", "find", "--streets", ".", "--pairs", "pairs.csv"], arguments].concat();
    let output = run_to_end(&arguments, &[], folder);
    if !output.status.success() {
        return Err(String::from_utf8(output.stderr).expect("UTF-8"));
    }
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    Ok(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

/// A folder with the streets.
pub(crate) fn square() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in [("nodes.csv", NODES), ("edges.csv", EDGES)] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn find(pairs: &str, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let folder = square();
    std::fs::write(folder.path().join("pairs.csv"), pairs).expect("written");
    find_in(folder.path(), arguments)
}

#[test]
fn routes_are_found_in_the_order_of_the_pairs() {
    let pairs = "from,to\n1,3\n3,1\n2,1\n1,7\n8,7\n4,4\n";
    let found = find(pairs, &[]).expect("routes");
    let route = |from: i64, to: i64, length_mm: Value| json!({"from": from, "to": to, "level": 0, "length_mm": length_mm});
    let expected = [
        route(1, 3, json!(1_500_000)),
        route(3, 1, json!(1_500_000)),
        route(2, 1, json!(2_500_000)),
        route(1, 7, Value::Null),
        route(8, 7, json!(5)),
        route(4, 4, json!(0)),
    ];
    assert_eq!(found[..6], expected);
    let summary = &found[6];
    assert_eq!(found.len(), 7);
    assert_eq!((&summary["score"], &summary["deadline_met"]), (&json!(30), &Value::Null));
    // By time the diagonal is not worth it.
    let found = find(pairs, &["--by", "duration"]).expect("routes");
    assert_eq!(found[0], route(1, 3, json!(2_000_000)));
    assert_eq!(found[2], route(2, 1, json!(3_000_000)));
}

#[test]
fn coarser_routes_are_no_shorter_and_lead_where_the_exact_ones_do() {
    let pairs = "from,to\n1,3\n2,1\n1,7\n8,7\n";
    let exact = find(pairs, &[]).expect("routes");
    for level in ["1", "2", "3"] {
        let found = find(pairs, &["--level", level]).expect("routes");
        for (found, exact) in found.iter().zip(&exact).take(4) {
            assert_eq!(found["length_mm"].is_null(), exact["length_mm"].is_null(), "{found}");
            assert!(found["length_mm"].as_u64() >= exact["length_mm"].as_u64(), "{found} and {exact}");
        }
    }
}

/// Without a device the processor answers.
#[test]
fn a_device_finds_what_the_processor_finds() {
    let pairs = "from,to\n1,3\n2,1\n1,7\n8,7\n4,4\n";
    for arguments in [&["--level", "0"][..], &["--level", "2"], &["--contract-ms", "10000"]] {
        let expected = find(pairs, arguments).expect("routes");
        let found = find(pairs, &[arguments, &["--engine", "gpu"]].concat()).expect("routes");
        assert_eq!(found[..5], expected[..5], "{arguments:?}");
        assert_eq!((&found[5]["score"], found.len()), (&expected[5]["score"], 6), "{arguments:?}");
    }
}

#[test]
fn a_contract_is_kept() {
    let pairs: String = "from,to\n".to_owned() + &"1,3\n".repeat(1_000);
    for scheduler in ["static", "offline", "online"] {
        let found = find(&pairs, &["--contract-ms", "10000", "--scheduler", scheduler]).expect("routes");
        let summary = found.last().expect("a summary");
        let told = (&summary["score"], &summary["deadline_met"], &summary["answered"]);
        assert_eq!(told, (&json!(6_000), &json!(true), &json!(1_000)), "{scheduler}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    for (pairs, expected) in [
        ("from,to\n1,3\n1,99\n", "pairs.csv, line 3: to: there is no node 99"),
        ("from,to\n1,3\nA,3\n", "pairs.csv, line 3: from: \"A\" is no whole number"),
        ("from\n1\n", "pairs.csv, line 1: there is no column to"),
    ] {
        let told = find(pairs, &[]).expect_err(expected);
        assert!(told.contains(expected), "{told}");
    }
    let folder = TempDir::new().expect("a folder");
    let told = find_in(folder.path(), &[]).expect_err("no streets");
    assert!(told.contains("nodes.csv"), "{told}");
}

/// A broker whose streets are the square.
async fn serve(folder: &TempDir) -> crate::harness::Program {
    let streets = folder.path().display();
    Serve::new().config(&format!("[routes]\nstreets = \"{streets}\"\n")).start().await
}

async fn ask(http: &Http, question: &Value) -> Value {
    http.post("/v1/routes", "application/json", question.to_string()).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_with_the_way_along_the_streets() {
    let folder = square();
    let program = serve(&folder).await;
    let http = program.http();
    // Some metres away from nodes 2 and 1.
    let question = json!({"from": [0.0101, 0.0001], "to": [0.0001, -0.0001], "by": "length"});
    let line = [[0.01, 0.0], [0.01, 0.01], [0.0, 0.0]];
    let route = json!({"type": "LineString", "coordinates": line});
    let expected = json!({"route": route, "length_m": 2_500.0, "duration_s": 342.0, "level": 0, "score": 6});
    assert_eq!(ask(&http, &question).await, expected);
    let by_time = ask(&http, &json!({"from": [0.0, 0.0], "to": [0.01, 0.01], "deadline_ms": 60000})).await;
    assert_eq!((&by_time["length_m"], &by_time["duration_s"]), (&json!(2_000.0), &json!(144.0)));
    let nowhere = ask(&http, &json!({"from": [0.0, 0.0], "to": [0.0, 0.0]})).await;
    assert_eq!(nowhere["route"]["coordinates"], json!([[0.0, 0.0], [0.0, 0.0]]));
    assert_eq!(nowhere["length_m"], 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_questions_are_answered_by_lines() {
    let folder = square();
    let program = serve(&folder).await;
    let http = program.http();
    let questions = [
        json!({"from": [0.0, 0.0], "to": [0.01, 0.01], "by": "length"}),
        json!({"from": [0.0, 0.0], "to": [0.1, 0.1]}),
        json!({"from": [0.0, 0.0], "to": [50.0, 8.0]}),
        json!({"from": [0.0, 0.0], "at": 1}),
        json!({"from": [0.0, 0.0], "to": [0.01, 0.0], "coarsest": 0, "deadline_ms": 30_000}),
    ];
    let long = format!("{{{}}}", " ".repeat(1 << 14));
    let lines = questions.iter().map(ToString::to_string).chain([long]);
    let body: String = lines.map(|line| line + "\n").collect();
    let answer = http.post("/v1/routes", "application/x-ndjson", body).await.expect(200).text();
    let answers: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told = |answer: &Value| answer["type"].as_str().unwrap_or("a route").to_owned();
    let problem = |code: &str| format!("urn:nearcast:problem:{code}");
    let expected = [
        "a route".to_owned(),
        problem("no-route"),
        problem("no-route"),
        problem("invalid-document"),
        "a route".to_owned(),
        problem("too-large"),
    ];
    assert_eq!(answers.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!(answers[0]["length_m"], 1_500.0);
    assert!(
        answers[2]["detail"].as_str().is_some_and(|detail| detail.contains("within 1000 m of to")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_take_too_long_are_held_back() {
    let folder = square();
    let streets = folder.path().display();
    let config = format!(
        "[routes]\nstreets = \"{streets}\"\n[admission]\nengine_ms_per_second = 1\n[queue]\nwait_ms = 50\n"
    );
    let program = Serve::new().config(&config).start().await;
    let http = program.http();
    let question = json!({"from": [0.0101, 0.0001], "to": [0.0001, -0.0001]}).to_string();
    let lines = format!("{question}\n").repeat(1_000);
    let refused = eventually("the refusal", async || {
        let reply = http.post("/v1/routes", "application/x-ndjson", lines.clone()).await;
        (reply.status == 429).then_some(reply)
    })
    .await;
    let problem = refused.problem(429);
    assert_eq!(problem["type"], "urn:nearcast:problem:too-costly");
    assert_eq!(problem["setting"], "admission.engine_ms_per_second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_counts_while_a_debt_is_paid() {
    let folder = square();
    let streets = folder.path().display();
    let config = format!(
        "[routes]\nstreets = \"{streets}\"\n[admission]\nengine_ms_per_second = 1\n[queue]\nwait_ms = 60000\n"
    );
    let program = Serve::new().config(&config).start().await;
    let http = program.http();
    let question = json!({"from": [0.0, 0.0], "to": [0.01, 0.01]}).to_string();
    let hurried = json!({"from": [0.0, 0.0], "to": [0.01, 0.01], "deadline_ms": 20}).to_string();
    let lines = format!("{question}\n").repeat(1_000);
    let single = eventually("a debt that is not paid within 20 ms", async || {
        http.post("/v1/routes", "application/x-ndjson", lines.clone()).await;
        let late = async {
            tokio::join!(
                http.post("/v1/routes", "application/json", hurried.clone()),
                http.post("/v1/routes", "application/x-ndjson", hurried.clone()),
            )
        };
        // The question without a deadline waits for the debt, and the hurried ones do not.
        tokio::select! {
            biased;
            _ = http.post("/v1/routes", "application/json", question.clone()) => None,
            (single, batch) = late => {
                let both = single.status == 503 && batch.text().contains("urn:nearcast:problem:late");
                both.then_some(single)
            }
        }
    })
    .await;
    assert_eq!(single.problem(503)["type"], "urn:nearcast:problem:late");
}

/// Streets in a row, whose ways have thousands of places.
fn long_street() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let at = |node: u32| f64::from(node) / 10_000.0;
    let nodes: String = (0..3_000).map(|node| format!("{node},0,{}\n", at(node))).collect();
    let edges: String = (1..3_000).map(|node| format!("{},{node},11120,0,primary,50\n", node - 1)).collect();
    let heads = [NODES, EDGES].map(|text| text.lines().next().expect("a head").to_owned());
    for (name, head, text) in [("nodes.csv", &heads[0], nodes), ("edges.csv", &heads[1], edges)] {
        std::fs::write(folder.path().join(name), format!("{head}\n{text}")).expect("written");
    }
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_not_read_have_a_bound() {
    let folder = long_street();
    let streets = folder.path().display();
    let settings = format!("[routes]\nstreets = \"{streets}\"\n[limits]\npage_bytes = 16777216\n");
    let program = Serve::new().config(&settings).start().await;
    let http = program.http();
    let question = json!({"from": [0.0, 0.0], "to": [0.2999, 0.0]}).to_string();
    let one = http.post("/v1/routes", "application/json", question.clone()).await.expect(200).text();
    let fitting = (16 << 20) / (one.len() - 1);
    let lines = format!("{question}\n").repeat(fitting + 100);
    for _ in 0..2 {
        let answer = http.post("/v1/routes", "application/x-ndjson", lines.clone()).await.expect(200).text();
        let (found, refused): (Vec<_>, Vec<_>) = answer.lines().partition(|line| line.contains("\"route\""));
        // What has been read is not held any more: the second time is as the first.
        assert_eq!((found.len(), refused.len()), (fitting, 100));
        let problem: Value = serde_json::from_str(refused[0]).expect("JSON");
        assert_eq!(problem["setting"], "limits.page_bytes", "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_questions_take_room_while_they_come() {
    let folder = square();
    let streets = folder.path().display();
    let settings = format!(
        "[routes]\nstreets = \"{streets}\"\n[limits]\nposition_bytes = 32768\npage_bytes = 16777216\n"
    );
    let program = Serve::new().config(&settings).start().await;
    let question = json!({"from": [0.0, 0.0], "to": [0.01, 0.01]}).to_string();
    let lines = |bytes: usize| format!("{question}{}\n", " ".repeat(bytes)).repeat(1_000);
    let http = program.http();
    let refused = http.post("/v1/routes", "application/x-ndjson", lines(18_000)).await.problem(429);
    assert_eq!(refused["type"], "urn:nearcast:problem:overloaded", "{refused}");
    http.post("/v1/routes", "application/x-ndjson", lines(9_000)).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_hangs_up_pays_for_what_was_found() {
    let folder = long_street();
    let streets = folder.path().display();
    let settings = format!(
        "[routes]\nstreets = \"{streets}\"\n[admission]\nengine_ms_per_second = 1\n[queue]\nwait_ms = 50\n"
    );
    let program = Serve::new().config(&settings).start().await;
    let question = json!({"from": [0.0, 0.0], "to": [0.2999, 0.0]}).to_string();
    let lines = format!("{question}\n").repeat(1_000);
    let head = format!(
        "POST /v1/routes HTTP/1.1\r\nhost: {}\r\ncontent-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
        program.address(),
        lines.len()
    );
    let mut caller = TcpStream::connect(program.address()).await.expect("a connection");
    caller.write_all((head + &lines).as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(caller);
    // Asked once a second, this question alone costs far less than one may.
    let cheap = json!({"from": [0.0, 0.0], "to": [0.0001, 0.0]}).to_string();
    let mut answer = program.http().post("/v1/routes", "application/json", cheap.clone()).await;
    for _ in 0..60 {
        if answer.status != 200 {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        answer = program.http().post("/v1/routes", "application/json", cheap.clone()).await;
    }
    assert_eq!(answer.problem(429)["type"], "urn:nearcast:problem:too-costly");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_are_none_are_refused_with_the_place() {
    let folder = square();
    let program = serve(&folder).await;
    let http = program.http();
    for (question, pointer) in [
        (json!({"from": [0, 0]}), "/to"),
        (json!({"from": [0, 95], "to": [0, 0]}), "/from"),
        (json!({"from": [0, 0], "to": [0, 0], "deadline_ms": 0}), "/deadline_ms"),
        (json!({"from": [0, 0], "to": [0, 0], "coarsest": 4}), "/coarsest"),
        (json!({"from": [0, 0], "to": [0, 0], "by": "speed"}), "/by"),
        (json!({"from": [0, 0], "to": [0, 0], "by": {"length": null}}), "/by"),
        (json!({"from": [0, 0], "to": [0, 0], "destination": 1}), "/destination"),
    ] {
        let refused = http.post("/v1/routes", "application/json", question.to_string()).await.problem(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{question}: {refused}");
    }
    let plain = Serve::new().start().await;
    let question = json!({"from": [0, 0], "to": [0, 0]}).to_string();
    let refused = plain.http().post("/v1/routes", "application/json", question).await.problem(404);
    assert_eq!(refused["type"], "urn:nearcast:problem:no-streets");
}
