//! Liveness, readiness, metrics and statistics.

use std::collections::BTreeMap;

use serde_json::json;

use crate::harness::{Form, Http, Serve, encode, eventually, feature};

/// The samples of a Prometheus text, by name with labels; fails on any line that is none.
async fn samples(http: &Http) -> BTreeMap<String, f64> {
    let answer = http.get("/metrics").await.expect(200);
    assert!(answer.content_type.starts_with("text/plain"), "{}", answer.content_type);
    let text = answer.text();
    let mut samples = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix("# ") {
            let kind = comment.split(' ').next().unwrap_or_default();
            assert!(["HELP", "TYPE"].contains(&kind), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
        let name = series.split('{').next().unwrap_or_default();
        assert!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':'),
            "{line}"
        );
        assert_eq!(series.contains('{'), series.ends_with('}'), "{line}");
        let value = match value {
            "+Inf" => f64::INFINITY,
            other => other.parse().unwrap_or_else(|_| panic!("no number: {line}")),
        };
        assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
    }
    assert!(!samples.is_empty(), "no metrics at all");
    samples
}

/// The sum over all series whose name has all these words.
fn sum(samples: &BTreeMap<String, f64>, words: &[&str]) -> f64 {
    let named = samples.iter().filter(|(series, _)| words.iter().all(|word| series.contains(word)));
    named.map(|(_, value)| value).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_move_with_what_happens() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    client.subscribe("a", json!({"filters": [{}]})).await;
    client.subscribe("b", json!({"filters": [{"area": {"radius_m": 100}}]})).await;
    let before = samples(&http).await;
    client.place([9.0, 45.0]).await;
    let events = (0..5).map(|idx| feature(&format!("e{idx}"), [9.0, 45.0], json!({}))).collect::<Vec<_>>();
    let (content_type, body) = encode(Form::Collection, &events);
    http.post("/v1/events", content_type, body).await.expect(202);
    http.post("/v1/events", "application/geo+json", "{}").await.problem(400);
    for _ in 0..5 {
        client.event().await;
    }
    let stats = http.get("/v1/stats").await.expect(200).json();
    for (name, value) in [
        ("events", 5),
        ("deliveries", 5),
        ("matches", 10),
        ("moves", 1),
        ("websockets", 1),
        ("clients", 1),
        ("subscriptions", 2),
        ("shards", 2),
    ] {
        assert_eq!(stats[name], value, "{name}: {stats}");
    }
    let after = samples(&http).await;
    for (words, value) in [
        (&["events", "total"][..], 5.0),
        (&["matches", "total"], 10.0),
        (&["deliveries", "total"], 5.0),
        (&["moves", "total"], 1.0),
    ] {
        let grown = sum(&after, words) - sum(&before, words);
        assert!(grown >= value, "{words:?} grew by {grown}, not {value}: {after:?}");
    }
    // Latencies are histograms that have seen the events.
    let buckets = after.keys().filter(|series| series.contains("_bucket{") && series.contains("le=")).count();
    assert!(buckets > 0, "no histogram: {:?}", after.keys());
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_without_a_body_to_parse() {
    let program = Serve::new().start().await;
    let http = program.http();
    for path in ["/healthz", "/readyz"] {
        http.get(path).await.expect(200);
        http.send("HEAD", path, None, "").await.expect(200);
        http.send("DELETE", path, None, "").await.problem(405);
    }
    program.finish().await;
}

/// Points come by themselves: the first ten seconds after the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_hour_is_told_in_columns() {
    const COLUMNS: [&str; 9] = [
        "time_unix_ms",
        "events_per_s",
        "deliveries_per_s",
        "moves_per_s",
        "clients",
        "live_objects",
        "queue_p50_s",
        "queue_p99_s",
        "memory_bytes",
    ];
    let program = Serve::new().start().await;
    let http = program.http();
    let history = async || http.get("/v1/stats/history").await.expect(200).json();
    let before = history().await;
    assert_eq!(before["step_s"], 10);
    assert_eq!(before.as_object().expect("an object").len(), COLUMNS.len() + 1, "{before}");
    let mut client = program.ws("car").await;
    client.subscribe("a", json!({"filters": [{}]})).await;
    client.place([9.0, 45.0]).await;
    let mut event = feature("e", [9.0, 45.0], json!({}));
    event["ttl_s"] = json!(600);
    for _ in 0..20 {
        client.publish(&event).await;
        client.event().await;
    }
    let after = eventually("the points of all that", async || {
        let history = history().await;
        let sum = |column: &str| {
            let values = history[column].as_array().expect("a column").iter();
            values.map(|value| value.as_f64().expect("a number")).sum::<f64>()
        };
        (sum("events_per_s") > 0.0).then(|| {
            // Twenty in ten seconds, or in a little more.
            for column in ["events_per_s", "deliveries_per_s"] {
                assert!((1.0..=2.001).contains(&sum(column)), "{column}: {history}");
            }
            assert!(sum("moves_per_s") > 0.0 && sum("moves_per_s") < 0.2, "{history}");
            history.clone()
        })
    })
    .await;
    let last = |column: &str| after[column].as_array().and_then(|values| values.last()).expect("a point");
    let lengths: Vec<_> = COLUMNS.iter().map(|column| after[column].as_array().map(Vec::len)).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0] && length.is_some()), "{lengths:?}");
    assert_eq!((last("clients"), last("live_objects")), (&json!(1), &json!(1)), "{after}");
    let [half, most] = ["queue_p50_s", "queue_p99_s"].map(|column| last(column).as_f64().expect("a time"));
    assert!(0.0 < half && half <= most && most <= 10.0, "{after}");
    #[cfg(target_os = "linux")]
    assert!(last("memory_bytes").as_u64().is_some_and(|bytes| bytes > 1 << 20), "{after}");
    program.finish().await;
}
