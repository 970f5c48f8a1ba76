//! Twelve rules over an hour of taxis, through a broker: the violations are those that are known, whatever happens to it meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use broker::Config;
use device::{Device, Fault};
use flate2::read::GzDecoder;
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Door, Inside, Serve, Ws, feature, soak};

/// The rules, as `PUT /v1/checks/{name}` takes them.
const RULES: &str = include_str!("../../../../checks/tests/data/taxis.json");

/// A finding of `rule_00` is at the place that the rule objects to, and is a violation itself. Those are left out.
const SETTINGS: &str =
    "[limits]\nderived_depth = 1\n[situations]\nfindings_per_second = 0\ntenant_findings_per_second = 0\n";

/// Events under way at once.
const WINDOW: usize = 500;

/// The folder of the taxis' data; `None`, said aloud, in a clone that has none beside it.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/shenzhen-taxi");
    if !folder.exists() {
        eprintln!("NOT TESTED: no shared/data/shenzhen-taxi beside the project");
        return None;
    }
    Some(folder)
}

/// The reports of a file, as events that have the time of the report.
fn events(folder: &Path, name: &str) -> Vec<Value> {
    let file = std::fs::File::open(folder.join(name)).expect("it is beside the project");
    let lines = BufReader::new(GzDecoder::new(file)).lines().skip(1);
    let event = |line: std::io::Result<String>| {
        let line = line.expect("a line of text");
        let [seq, ts_ms, taxi_id, lon, lat, speed_kmh, status] = line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("not a report: {line}");
        };
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let properties =
            json!({"taxi_id": taxi_id, "speed_kmh": number(speed_kmh), "status": number(status)});
        let mut event = feature(&format!("r{seq}"), [number(lon), number(lat)], properties);
        let time = jiff::Timestamp::from_millisecond(ts_ms.parse().expect("milliseconds"));
        event["time"] = json!(time.expect("a time").to_string());
        event
    };
    lines.map(event).collect()
}

/// How many violations each rule has, by the data's own count.
fn expected(folder: &Path, name: &str) -> BTreeMap<String, u64> {
    let text =
        std::fs::read_to_string(folder.join("expected_violations.json")).expect("it is beside the reports");
    let counts: Value = serde_json::from_str(&text).expect("JSON");
    let count = |counts: &Value| counts.as_u64().or_else(|| counts["ordered_pairs"].as_u64());
    let rules = counts[name].as_object().expect("counts").iter();
    let counted = rules.filter(|(rule, _)| rule.starts_with("rule_"));
    counted.map(|(rule, counts)| (rule.clone(), count(counts).expect("a count"))).collect()
}

async fn put_rules(door: &Door) {
    let rules: BTreeMap<String, Value> = serde_json::from_str(RULES).expect("JSON");
    assert_eq!(rules.len(), 12);
    let http = door.http();
    for (name, rule) in rules {
        http.put(&format!("/v1/checks/{name}"), &rule).await.expect(201);
    }
    let violations = json!({"filters": [{"where": "type = 'violation'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/v", &violations).await.expect(201);
}

/// Publishes over a WebSocket as fast as the broker takes it, and waits until all is acknowledged.
async fn publish(door: &Door, events: &[Value]) {
    let mut ws = door.ws("taxis").await;
    for window in events.chunks(WINDOW) {
        for (idx, event) in window.iter().enumerate() {
            ws.send(&json!({"op": "publish", "ref": idx, "event": event})).await;
        }
        for _ in window {
            let answer = ws.next().await;
            assert_eq!(answer["op"], "ok", "{answer}");
        }
    }
}

/// Reads violations, and counts those of each rule. None comes twice.
async fn told(ws: &mut Ws, count: u64) -> BTreeMap<String, u64> {
    let (mut counts, mut links) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..count {
        let event = ws.event().await["event"].clone();
        let properties = &event["properties"];
        let check = properties["check"].as_str().expect("a name").to_owned();
        assert!(links.insert(format!("{check} {}", properties["bindings"])), "told twice: {event}");
        *counts.entry(check).or_default() += 1;
    }
    counts
}

/// The counts of rules that have violations.
fn some(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_over_the_hour_at_full_speed_find_the_violations_that_are_known() {
    let Some(folder) = folder() else { return };
    let (events, expected) = (events(&folder, "taxi_h11.csv.gz"), expected(&folder, "taxi_h11"));
    let program = Serve::new().config(SETTINGS).start().await;
    put_rules(&program).await;
    publish(&program, &events).await;
    let mut watch = program.ws("watch").await;
    assert_eq!(told(&mut watch, expected.values().sum()).await, some(expected));
    for check in program.http().get("/v1/checks").await.expect(200).json().as_array().expect("an array") {
        assert_eq!(check["activity"]["restarts"], 0, "{check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_finds_the_violations_that_are_known() {
    let Some(checks) = on_device(&Device::host(1 << 28)).await else { return };
    assert!(checks.iter().all(|check| check["activity"]["engine"] == "gpu"), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_fails_changes_no_violation() {
    let device = Device::host(1 << 28);
    device.inject(Fault::DeviceLost, 1_500);
    on_device(&device).await;
}

/// Compares what a device finds with what is known, and returns the checks.
async fn on_device(device: &Device) -> Option<Vec<Value>> {
    let folder = folder()?;
    let name = "taxi_first1500";
    let (events, expected) = (events(&folder, &format!("{name}.csv.gz")), expected(&folder, name));
    let mut config = Config::default();
    config.limits.derived_depth = 1;
    let situations = &mut config.situations;
    (situations.findings_per_second, situations.tenant_findings_per_second) = (0, 0);
    let broker = Inside::start_with_checks(config, device).await;
    put_rules(&broker).await;
    publish(&broker, &events).await;
    let mut watch = broker.ws("watch").await;
    assert_eq!(told(&mut watch, expected.values().sum()).await, some(expected));
    let checks = broker.http().get("/v1/checks").await.expect(200).json();
    let checks = checks.as_array().expect("an array").clone();
    assert!(checks.iter().all(|check| check["activity"]["restarts"] == 0), "{checks:?}");
    broker.finish().await;
    Some(checks)
}

/// Each kill comes right after the last acknowledgement, while the checks are at work. The long form takes the whole hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_lose_no_violation_and_repeat_none() {
    let Some(folder) = folder() else { return };
    let name = if soak() { "taxi_h11" } else { "taxi_first1500" };
    let (events, expected) = (events(&folder, &format!("{name}.csv.gz")), expected(&folder, name));
    let data = TempDir::new().expect("a folder");
    let start = async || {
        Serve::new().config(SETTINGS).args(&["--data", data.path().to_str().expect("UTF-8")]).start().await
    };
    let mut program = start().await;
    put_rules(&program).await;
    let mut random = SmallRng::seed_from_u64(20_071_026);
    let mut rest = events.as_slice();
    let longest = events.len() / 8;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(random.random_range(1..=longest).min(rest.len()));
        publish(&program, now).await;
        rest = later;
        program.assert_healthy();
        program.signal("KILL");
        program.exit_status().await;
        program = start().await;
    }
    let mut watch = program.ws("watch").await;
    assert_eq!(told(&mut watch, expected.values().sum()).await, some(expected));
    let mut last = feature("last", [114.0, 22.5], json!({"type": "violation"}));
    last["time"] = events.last().expect("a report")["time"].clone();
    publish(&program, &[last]).await;
    assert_eq!(watch.event().await["event"]["id"], "last", "one violation more");
}
