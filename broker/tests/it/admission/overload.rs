//! More than the broker can do: what is taken is done, what is not is told, and nobody takes it all.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Program, Serve, Ws, feature};

/// An engine that looks at every filter, and a short patience; what may be held back is until the flood is over.
const CONFIG: &str = "[admission]\ndelay_ms = 250\n[queue]\nwait_ms = 50000\n";

/// Filters that every event is held against.
const FILTERS: usize = 4_000;

/// Publishers that do not wait, and the events of each: together many times what can be done in 250 ms.
const GREEDY: usize = 3;
const EVENTS_COUNT: usize = 1_500;

/// What became of a publisher's events.
#[derive(Default)]
struct Outcome {
    accepted: Vec<String>,
    refused: usize,
}

impl Outcome {
    fn count(&mut self, id: String, answer: &Value) {
        if answer["op"] == "ok" {
            self.accepted.push(id);
            return;
        }
        let problem = &answer["problem"];
        assert_eq!(
            (&problem["type"], &problem["status"]),
            (&json!("urn:nearcast:problem:overloaded"), &json!(429))
        );
        self.refused += 1;
    }

    fn refused_share(&self) -> f64 {
        self.refused as f64 / (self.accepted.len() + self.refused) as f64
    }
}

async fn flood(program: &Program, name: String) -> Outcome {
    let mut socket = program.ws(&name).await;
    let mut outcome = Outcome::default();
    let id = |idx: usize| format!("{name}-{idx}");
    // So many are asked before the first answer is read.
    for idx in 0..EVENTS_COUNT + 500 {
        if idx < EVENTS_COUNT {
            let event = feature(&id(idx), [9.0, 45.0], json!({"a": 1}));
            socket.send(&json!({"op": "publish", "ref": idx, "event": event})).await;
        }
        if let Some(answered) = idx.checked_sub(500) {
            let answer = socket.next().await;
            assert_eq!(answer["ref"], answered, "{answer}");
            outcome.count(id(answered), &answer);
        }
    }
    outcome
}

/// An event at a time, with rests.
async fn trickle(program: &Program, name: &str, is_alarm: bool) -> Outcome {
    let mut socket = program.ws(name).await;
    let mut outcome = Outcome::default();
    for idx in 0..40 {
        let id = format!("{name}-{idx}");
        let mut event = feature(&id, [9.0, 45.0], json!({"a": 1}));
        if is_alarm {
            event["priority"] = json!("alarm");
        }
        let answer = socket.request(json!({"op": "publish", "event": event})).await;
        outcome.count(id, &answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    outcome
}

/// Floods a broker whose controller has taken over from the fixed allowance. What is taken comes, and alarms are taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_refuses_a_flood_takes_alarms_and_opens_again() {
    let config = CONFIG.replace("delay_ms = 250", "delay_ms = 250\ncontroller = \"pi\"");
    let program = Serve::new().config(&config).args(&["--engine", "scan", "--shards", "1"]).start().await;
    install_filters(&program).await;
    let mut reader = program.ws("reader").await;
    reader.subscribe("everything", json!({"filters": [{}]})).await;
    let greedy =
        futures_util::future::join_all((0..GREEDY).map(|idx| flood(&program, format!("greedy-{idx}"))));
    let (greedy, alarms) = tokio::join!(greedy, trickle(&program, "alarms", true));
    assert_eq!(alarms.refused, 0, "alarms");
    let refused: usize = greedy.iter().map(|outcome| outcome.refused).sum();
    assert!(refused > 0 && refused < GREEDY * EVENTS_COUNT, "{refused} were refused");

    let http = program.http();
    let mut expected: HashSet<String> = alarms.accepted.into_iter().collect();
    expected.extend(greedy.into_iter().flat_map(|outcome| outcome.accepted));
    let last = feature("last", [9.0, 45.0], json!({})).to_string();
    // What was taken may still be waiting, so that this is refused at first.
    let deadline = Instant::now() + Duration::from_secs(120);
    while http.post("/v1/events", "application/geo+json", last.clone()).await.status != 202 {
        assert!(Instant::now() < deadline, "nothing is taken any more");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(read_until(&mut reader, "last").await == expected, "what was accepted came, and nothing else");
    // With nothing to do, it is as it was in the beginning.
    loop {
        let text = http.get("/metrics").await.expect(200).text();
        if text.contains("\nnearcast_admission_allowance_seconds 0.125\n")
            && text.contains("\nnearcast_admission_tardiness_ratio 0\n")
        {
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    program.finish().await;
}

async fn install_filters(program: &Program) {
    let http = program.http();
    let filters: Vec<_> = (0..50).map(|idx| json!({"where": format!("a = {} AND b = 1", idx + 2)})).collect();
    for client in 0..FILTERS / 50 {
        let path = format!("/v1/clients/client-{client}/subscriptions/s");
        http.put(&path, &json!({"filters": filters})).await.expect(201);
    }
}

/// All that comes to a reader until an event of an id.
async fn read_until(reader: &mut Ws, last: &str) -> HashSet<String> {
    let mut ids = HashSet::new();
    loop {
        let frame = reader.next().await;
        if frame["op"] == "gap" {
            assert_eq!(frame["reason"], "ahead", "nothing is lost: {frame}");
            continue;
        }
        let id = frame["event"]["id"].as_str().expect("an id").to_owned();
        if id == last {
            return ids;
        }
        assert!(ids.insert(id.clone()), "{id} came twice");
    }
}

fn metric(text: &str, name: &str) -> usize {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_is_done_what_is_not_is_told_and_alarms_are_taken() {
    let program = Serve::new().config(CONFIG).args(&["--engine", "scan", "--shards", "1"]).start().await;
    install_filters(&program).await;
    let mut reader = program.ws("reader").await;
    reader.subscribe("everything", json!({"filters": [{}]})).await;
    let http = program.http();
    let lines: String =
        (0..100).map(|idx| format!("{}\n", feature(&format!("b-{idx}"), [9.0, 45.0], json!({})))).collect();

    let greedy =
        futures_util::future::join_all((0..GREEDY).map(|idx| flood(&program, format!("greedy-{idx}"))));
    let batch = http.post("/v1/events", "application/x-ndjson", lines);
    let (greedy, modest, alarms, batch) =
        tokio::join!(greedy, trickle(&program, "modest", false), trickle(&program, "alarms", true), batch,);

    assert_eq!(alarms.refused, 0, "alarms");
    assert_eq!(batch.expect(202).json()["accepted"], 100, "a batch is held back and not refused");
    let refused: usize = greedy.iter().map(|outcome| outcome.refused).sum();
    let accepted: usize = greedy.iter().map(|outcome| outcome.accepted.len()).sum();
    assert!(refused > 0 && accepted > 0, "{refused} were refused and {accepted} taken");
    let refused_share = refused as f64 / (refused + accepted) as f64;
    assert!(
        modest.refused_share() < refused_share,
        "who asks little: {} refused, who asks much: {refused_share}",
        modest.refused_share()
    );

    http.post("/v1/events", "application/geo+json", feature("last", [9.0, 45.0], json!({})).to_string())
        .await;
    let text = http.get("/metrics").await.expect(200).text();
    assert_eq!(metric(&text, "nearcast_admission_refused_total{cause=\"load\"}"), refused + modest.refused);
    let mut expected: HashSet<String> = (0..100).map(|idx| format!("b-{idx}")).collect();
    for outcome in greedy.into_iter().chain([modest, alarms]) {
        expected.extend(outcome.accepted);
    }
    assert_eq!(metric(&text, "nearcast_events_total"), expected.len() + 1);
    assert!(read_until(&mut reader, "last").await == expected, "what was accepted came, and nothing else");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_it_says_when_to_ask_again() {
    let config = "[admission]\ndelay_ms = 1\n";
    let program = Serve::new().config(config).args(&["--engine", "scan", "--shards", "1"]).start().await;
    install_filters(&program).await;
    let http = program.http();
    let event = || feature("e", [9.0, 45.0], json!({"a": 1})).to_string();
    let until_refused = async {
        loop {
            let answer = http.post("/v1/events", "application/geo+json", event()).await;
            if answer.status != 202 {
                return answer;
            }
        }
    };
    let flood = async {
        loop {
            flood(&program, "greedy".to_owned()).await;
        }
    };
    let answer = tokio::select! {
        answer = until_refused => answer,
        () = flood => unreachable!("it does not end"),
    };
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.problem(429)["type"], "urn:nearcast:problem:overloaded");
    program.finish().await;
}
