//! `POST /v1/explain`: what is said of a pair, against what is then delivered.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::scene::{
    HOME, Watcher, circle, fence, following, keyed, lasting, north, post, start, start_with, with,
};
use crate::harness::{Http, Serve, feature};

async fn explain(http: &Http, question: &Value) -> Value {
    http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json()
}

fn ask(subscription: &Value, event: &Value) -> Value {
    json!({"client": "car", "subscription": subscription, "event": event})
}

#[track_caller]
fn assert_near(found: &Value, expected: f64) {
    let number = found.as_f64().unwrap_or_else(|| panic!("{found} is a number"));
    assert!((number - expected).abs() < 0.01, "{number} is not {expected}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_may_be_about_nothing_that_is_there() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let filter = with(following(500.0), "where", json!("severity >= 3 AND NOT kind = 'test' AND lane = 1"));
    let mut event = feature("e", north(600.0), json!({"severity": 2, "kind": "fire"}));
    event["reach_m"] = json!(400);
    event["ttl_s"] = json!(60);
    let mut question = ask(&json!({"filters": [filter, circle(1000.0)]}), &event);
    let answer = explain(&http, &question).await;
    assert_eq!(answer["position"], json!(null));
    assert_eq!(answer["matched"], true, "nobody without a position is held to a reach: {answer}");
    question["position"] = json!(HOME);
    let answer = explain(&http, &question).await;
    assert_eq!(answer["matched"], false);
    assert_eq!((&answer["client"], &answer["subscription"]), (&json!("car"), &json!(null)));
    assert_eq!(answer["position"], json!({"coordinates": HOME, "accuracy_m": null, "age_s": null}));
    assert_eq!(answer["event"], json!({"id": "e", "live": true, "expires_in_s": 60.0}));
    assert_eq!(answer["inside"], false);
    assert_eq!((&answer["reach"]["holds"], &answer["reach"]["reach_m"]), (&json!(false), &json!(400.0)));
    assert_near(&answer["reach"]["distance_m"], 600.0);
    assert_near(&answer["reach"]["metres_outside"], 200.0);
    let first = &answer["filters"][0];
    assert_eq!((&first["matched"], &first["area"]["form"]), (&json!(false), &json!("following")));
    assert_eq!((&first["area"]["holds"], &first["area"]["radius_m"]), (&json!(false), &json!(500.0)));
    assert_near(&first["area"]["distance_m"], 600.0);
    assert_near(&first["area"]["metres_outside"], 100.0);
    let expected = json!({"truth": "false", "constraints": [
        {"constraint": "severity >= 3", "attribute": "severity", "value": 2, "truth": "false",
         "reason": "severity is 2, which is not >= 3"},
        {"constraint": "NOT kind = 'test'", "attribute": "kind", "value": "fire", "truth": "true",
         "reason": "kind is 'fire', which is not = 'test'"},
        {"constraint": "lane = 1", "attribute": "lane", "value": null, "truth": "unknown",
         "reason": "there is no attribute lane"},
    ]});
    assert_eq!(first["condition"], expected);
    let second = &answer["filters"][1];
    assert_eq!((&second["matched"], &second["area"]["metres_outside"]), (&json!(true), &json!(0.0)));
    assert_eq!(answer["why"], "the client is 200 m outside of the event's reach of 400 m");
    assert_eq!(http.get("/v1/stats").await.expect(200).json()["clients"], 0, "a question makes nobody known");
    program.finish().await;
}

/// Filters and events from few values, so that every other pair matches.
struct Draw(StdRng);

impl Draw {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.random_range(0..from.len())]
    }

    fn place(&mut self) -> [f64; 2] {
        north(self.pick(&[0.0, 100.0, 300.0, 700.0]))
    }

    fn filter(&mut self) -> Value {
        let radius_m = self.pick(&[100.0, 350.0, 500.0]);
        let mut filter = match self.0.random_range(0..4) {
            0 => json!({}),
            1 => circle(radius_m),
            2 => {
                json!({"area": {"corridor": {"type": "LineString", "coordinates": [north(100.0), north(200.0)]}, "radius_m": radius_m}})
            }
            _ => following(radius_m),
        };
        if self.0.random() {
            filter["where"] = json!(self.pick(&[
                "level >= 2",
                "NOT kind = 'a'",
                "kind IS NULL OR level = 0",
                "level LIKE 'x%'"
            ]));
        }
        filter
    }

    fn event(&mut self, id: &str) -> Value {
        let mut event = feature(id, self.place(), json!({"level": self.0.random_range(0..4)}));
        if self.0.random() {
            event["properties"]["kind"] = json!(self.pick(&["a", "b"]));
        }
        if self.0.random_bool(0.3) {
            event["reach_m"] = json!(self.pick(&[100.0, 350.0]));
        }
        if self.0.random() {
            event["ttl_s"] = json!(600);
        }
        event
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_is_what_is_delivered() {
    const SUBSCRIPTIONS: usize = 5;
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    let mut draw = Draw(StdRng::seed_from_u64(5));
    let mut clients = Vec::new();
    for name in ["a", "b", "nowhere"] {
        let mut watcher = Watcher::connect(&program, name).await;
        if name != "nowhere" {
            watcher.ws.place(draw.place()).await;
        }
        for id in 0..SUBSCRIPTIONS {
            let filters = [draw.filter(), draw.filter()];
            watcher.ws.subscribe(&format!("s{id}"), json!({"filters": filters})).await;
        }
        clients.push((name, watcher));
    }
    let mut counts = [0; 2];
    for index in 0..40 {
        let event = draw.event(&format!("e{index}"));
        let mut expected = Vec::new();
        for (name, _) in &clients {
            let mut subscriptions = Vec::new();
            for id in (0..SUBSCRIPTIONS).map(|id| format!("s{id}")) {
                let question = json!({"client": name, "subscription": id, "event": event});
                let answer = explain(&http, &question).await;
                let matched = answer["matched"] == true;
                counts[usize::from(matched)] += 1;
                if matched {
                    subscriptions.push(id);
                }
            }
            expected.push(subscriptions);
        }
        post(&http, &event).await;
        for ((name, watcher), expected) in clients.iter_mut().zip(expected) {
            let mut told = watcher.told().await;
            // Other clients' marks match where no condition is.
            told.retain(|told| !told.starts_with("event mark-"));
            let expected =
                (!expected.is_empty()).then(|| format!("event e{index} published {}", expected.join("+")));
            assert_eq!(told, expected.clone().into_iter().collect::<Vec<_>>(), "{name}: {event}");
            if event["ttl_s"].is_null() {
                continue;
            }
            let question = json!({"client": name, "subscription": "s0", "event": event["id"]});
            let answer = explain(&http, &question).await;
            let told_s0 = expected.is_some_and(|told| told.contains("s0"));
            assert_eq!(answer["matched"], told_s0, "{name}: {answer}");
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_event_is_asked_for_by_its_id() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.ok(json!({"op": "move", "coordinates": HOME, "accuracy_m": 12.5})).await;
    let subscription = with(fence(&following(500.0)), "hysteresis_m", json!(200));
    car.ws.subscribe("s", subscription).await;
    post(&http, &with(keyed("cam-4", "e1", north(100.0)), "ttl_s", json!(3600))).await;
    car.assert_told("it enters", &["enter e1 published s"]).await;
    let mut question = ask(&json!("s"), &json!("e1"));
    let answer = explain(&http, &question).await;
    assert_eq!((&answer["matched"], &answer["inside"]), (&json!(true), &json!(true)));
    assert_eq!((&answer["subscription"], &answer["event"]["id"]), (&json!("s"), &json!("e1")));
    assert_eq!(answer["position"]["accuracy_m"], 12.5);
    assert!(
        answer["position"]["age_s"].as_f64().is_some_and(|age_s| (0.0..600.0).contains(&age_s)),
        "{answer}"
    );
    let left = answer["event"]["expires_in_s"].as_f64();
    assert!(left.is_some_and(|left_s| left_s > 3_000.0 && left_s <= 3_600.0), "{answer}");
    // Were the client 600 metres further south, the object would be outside, but not far enough to leave.
    question["position"] = json!(north(-500.0));
    let answer = explain(&http, &question).await;
    assert_eq!((&answer["matched"], &answer["inside"]), (&json!(false), &json!(true)));
    assert_near(&answer["filters"][0]["area"]["metres_outside"], 100.0);
    let why = answer["why"].as_str().unwrap_or_default();
    assert!(why.ends_with("its object leaves when it is more than 200 m outside"), "{answer}");
    http.delete("/v1/events/e1").await.expect(204);
    car.assert_told("it leaves", &["exit e1 revoked s"]).await;
    let problem = http.post("/v1/explain", "application/json", question.to_string()).await.problem(404);
    assert_eq!(problem["detail"], "no event e1 is live");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_among_the_nearest_is_told() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", json!({"filters": [{"area": {"nearest": 2}}]})).await;
    for (id, metres) in [("far", 300.0), ("near", 100.0), ("middle", 200.0)] {
        post(&http, &lasting(id, north(metres))).await;
    }
    for (id, rank, matched) in [("near", 1, true), ("middle", 2, true), ("far", 3, false)] {
        let answer = explain(&http, &ask(&json!("s"), &json!(id))).await;
        let expected = json!({"k": 2, "rank": rank, "holds": matched});
        assert_eq!(
            (&answer["matched"], &answer["filters"][0]["area"]["nearest"]),
            (&json!(matched), &expected)
        );
    }
    let passing = explain(&http, &ask(&json!("s"), &feature("p", HOME, json!({})))).await;
    assert_eq!((&passing["matched"], &passing["event"]["live"]), (&json!(false), &json!(false)));
    assert_eq!(passing["why"], "only the nearest live events count, and the event is not live");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_changes_nothing() {
    let (program, mut car) = start_with("[limits]\nlive_events = 1\n").await;
    let http = program.http();
    car.ws.subscribe("s", fence(&circle(500.0))).await;
    post(&http, &keyed("a", "e1", HOME)).await;
    car.assert_told("it enters", &["enter e1 published s"]).await;
    // A replacement that would leave, and a second object, for which there is no room.
    for event in [keyed("a", "e2", north(900.0)), lasting("e3", HOME)] {
        explain(&http, &ask(&json!("s"), &event)).await;
    }
    explain(&http, &json!({"client": "car", "subscription": "s", "event": "e1", "position": north(900.0)}))
        .await;
    explain(&http, &ask(&json!({"id": "s", "filters": [following(1.0)]}), &json!("e1"))).await;
    car.assert_told("nothing", &[]).await;
    let subscription = http.get("/v1/clients/car/subscriptions/s").await.expect(200).json();
    assert_eq!(subscription["filters"][0], circle(500.0));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_question_is_refused() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", json!({"filters": [{}]})).await;
    let event = feature("e", HOME, json!({}));
    let mut unknown = ask(&json!("s"), &event);
    unknown["client"] = json!("nobody");
    for question in [ask(&json!("t"), &event), ask(&json!("s"), &json!("e")), unknown] {
        http.post("/v1/explain", "application/json", question.to_string()).await.problem(404);
    }
    let wrong =
        json!({"client": "", "subscription": {"filters": []}, "event": {"type": "Feature"}, "positon": HOME});
    let problem = http.post("/v1/explain", "application/json", wrong.to_string()).await.problem(400);
    let errors = problem["errors"].as_array().cloned().unwrap_or_default();
    let pointers: Vec<_> = errors.iter().map(|error| error["pointer"].as_str().unwrap_or_default()).collect();
    assert_eq!(pointers, ["/positon", "/subscription/filters", "/event/geometry"]);
    let nameless = json!({"client": "", "subscription": "s", "event": event});
    let problem = http.post("/v1/explain", "application/json", nameless.to_string()).await.problem(400);
    assert_eq!(problem["errors"][0]["pointer"], "/client");
    http.post("/v1/explain", "application/json", "{").await.problem(400);
    http.post("/v1/explain", "application/x-ndjson", "{}").await.problem(415);
    car.ws.assert_quiet().await;
    program.finish().await;
}
