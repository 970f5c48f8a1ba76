//! HTTP calls that cannot be carried out.

use serde_json::json;

use super::nested_arrays;
use crate::harness::{Serve, Witness};

const EVENTS: &str = "/v1/events";
const POSITION: &str = "/v1/clients/car/position";
const SUBSCRIPTION: &str = "/v1/clients/car/subscriptions/s";
const GEOJSON: &str = "application/geo+json";
const JSON: &str = "application/json";

/// A Feature with one member replaced.
fn event_with(member: &str, text: &str) -> String {
    let members = [
        ("type", "\"Feature\""),
        ("geometry", r#"{"type":"Point","coordinates":[9,45]}"#),
        ("properties", "{}"),
    ];
    let mut out =
        members.iter().filter(|(name, _)| *name != member).fold(String::new(), |mut out, (name, value)| {
            out.push_str(&format!("\"{name}\":{value},"));
            out
        });
    out.push_str(&format!("\"{member}\":{text}"));
    format!("{{{out}}}")
}

fn event_at(coordinates: &str) -> String {
    event_with("geometry", &format!(r#"{{"type":"Point","coordinates":{coordinates}}}"#))
}

fn with_area(area: &str) -> String {
    format!(r#"{{"filters":[{{"area":{area}}}]}}"#)
}

/// Sends each body, demands a problem with this status, and that the broker goes on as if nothing had been.
async fn check(method: &str, path: &str, content_type: &str, status: u16, bodies: Vec<(&str, Vec<u8>)>) {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    for (name, body) in bodies {
        let answer = http.send(method, path, Some(content_type), body.clone()).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        assert_eq!(answer.status, status, "{name}: {shown}: {}", answer.text());
        answer.problem(status);
        witness.probe(name, &http).await;
        witness.probe_elsewhere(name).await;
        program.assert_healthy();
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_no_json() {
    let bodies = || {
        vec![
            ("nothing", Vec::new()),
            ("blanks", b" \n ".to_vec()),
            ("an open brace", b"{".to_vec()),
            ("half a literal", b"nul".to_vec()),
            ("two documents", b"{} {}".to_vec()),
            ("a comma too many", br#"{"type":"Feature",}"#.to_vec()),
            ("bytes that are no UTF-8", b"{\"type\":\"\xff\xfe\"}".to_vec()),
            ("a lone surrogate", br#"{"type":"\ud800"}"#.to_vec()),
            ("NUL bytes", vec![0; 64]),
            ("a byte order mark", b"\xef\xbb\xbf{}".to_vec()),
        ]
    };
    let deep = |levels: usize| {
        vec![
            ("nested arrays", nested_arrays(levels).into_bytes()),
            ("open arrays", "[".repeat(levels).into_bytes()),
            ("open objects", r#"{"a":"#.repeat(levels).into_bytes()),
        ]
    };
    check("POST", EVENTS, GEOJSON, 400, [bodies(), deep(10_000)].concat()).await;
    check("PUT", SUBSCRIPTION, JSON, 400, [bodies(), deep(10_000)].concat()).await;
    // A position is no larger than one with a track may be.
    check("PUT", POSITION, JSON, 400, [bodies(), deep(10_000)].concat()).await;
    check("PUT", POSITION, JSON, 413, vec![("600,000 arrays", nested_arrays(600_000).into_bytes())]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_none() {
    let deep = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let texts = vec![
        ("an array", "[]".to_owned()),
        ("a number", "17".to_owned()),
        ("a text", "\"Feature\"".to_owned()),
        ("an empty object", "{}".to_owned()),
        ("no type", r#"{"geometry":{"type":"Point","coordinates":[9,45]},"properties":{}}"#.to_owned()),
        ("another type", event_with("type", "\"Point\"")),
        ("no geometry", r#"{"type":"Feature","properties":{}}"#.to_owned()),
        ("a null geometry", event_with("geometry", "null")),
        ("a line", event_with("geometry", r#"{"type":"LineString","coordinates":[[9,45],[10,45]]}"#)),
        ("no coordinates", event_with("geometry", r#"{"type":"Point"}"#)),
        ("empty coordinates", event_at("[]")),
        ("one coordinate", event_at("[9]")),
        ("texts for coordinates", event_at(r#"["9","45"]"#)),
        ("nulls for coordinates", event_at("[null,45]")),
        ("an object for coordinates", event_at(r#"{"lon":9,"lat":45}"#)),
        ("arrays for coordinates", event_at("[[9,45]]")),
        ("too far east", event_at("[180.1,45]")),
        ("too far west", event_at("[-181,45]")),
        ("too far north", event_at("[9,90.001]")),
        ("too far south", event_at("[9,-91]")),
        ("NaN", event_at("[NaN,45]")),
        ("Infinity", event_at("[Infinity,45]")),
        ("-Infinity", event_at("[9,-Infinity]")),
        ("1e999", event_at("[1e999,45]")),
        ("1e999 degrees north", event_at("[9,1e999]")),
        ("an infinite altitude", event_at("[9,45,1e999]")),
        ("properties that are an array", event_with("properties", "[]")),
        ("properties that are a number", event_with("properties", "5")),
        ("an infinite property", event_with("properties", r#"{"a":1e999}"#)),
        ("an endless number", event_with("properties", &format!(r#"{{"a":1{}}}"#, "0".repeat(400)))),
        ("a NaN property", event_with("properties", r#"{"a":NaN}"#)),
        ("properties 100 deep", event_with("properties", &deep(100))),
        ("properties 2,000 deep", event_with("properties", &deep(2_000))),
        ("arrays 2,000 deep", event_with("properties", &format!(r#"{{"a":{}}}"#, nested_arrays(2_000)))),
        ("a foreign member 2,000 deep", event_with("other", &nested_arrays(2_000))),
        ("too many attributes", {
            let many = (0..300).map(|idx| format!("\"a{idx}\":{idx}")).collect::<Vec<_>>().join(",");
            event_with("properties", &format!("{{{many}}}"))
        }),
        ("an id that is an object", event_with("id", "{}")),
        ("an id that is true", event_with("id", "true")),
        ("a time that is none", event_with("time", "\"yesterday\"")),
        ("a time that is a number", event_with("time", "17")),
        ("a time without zone", event_with("time", "\"2026-03-01T07:30:00\"")),
        ("a negative reach", event_with("reach_m", "-1")),
        ("a reach in words", event_with("reach_m", "\"far\"")),
        ("an infinite reach", event_with("reach_m", "1e999")),
        ("a life of nothing", event_with("ttl_s", "0")),
        ("a life in words", event_with("ttl_s", "\"long\"")),
        ("an infinite life", event_with("ttl_s", "1e999")),
        ("a life of more than a month", event_with("ttl_s", "2592000.5")),
        ("an empty key", event_with("key", "\"\"")),
        ("a key that is a number", event_with("key", "4")),
        ("a key of 257 bytes", event_with("key", &format!("\"{}\"", "k".repeat(257)))),
        ("an unknown priority", event_with("priority", "\"urgent\"")),
        ("a collection without features", r#"{"type":"FeatureCollection"}"#.to_owned()),
        ("a collection of a number", r#"{"type":"FeatureCollection","features":5}"#.to_owned()),
        ("a member twice", r#"{"type":"Feature","type":"Feature","geometry":{"type":"Point","coordinates":[9,45]},"properties":{}}"#.to_owned()),
    ];
    let bodies = texts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    check("POST", EVENTS, GEOJSON, 400, bodies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_that_are_none() {
    let texts = [
        ("an empty object", "{}"),
        ("an array", "[9,45]"),
        ("coordinates in words", r#"{"coordinates":"here"}"#),
        ("no coordinates", r#"{"coordinates":[]}"#),
        ("out of range", r#"{"coordinates":[200,45]}"#),
        ("NaN", r#"{"coordinates":[NaN,45]}"#),
        ("1e999", r#"{"coordinates":[1e999,45]}"#),
        ("a negative accuracy", r#"{"coordinates":[9,45],"accuracy_m":-1}"#),
        ("an accuracy in words", r#"{"coordinates":[9,45],"accuracy_m":"good"}"#),
        ("a time that is none", r#"{"coordinates":[9,45],"time":"noon"}"#),
    ];
    let bodies = texts.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
    check("PUT", POSITION, JSON, 400, bodies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_that_are_none() {
    let ring = |points: &str| {
        with_area(&format!(r#"{{"polygon":{{"type":"Polygon","coordinates":[[{points}]]}}}}"#))
    };
    let line = |points: &str| {
        with_area(&format!(r#"{{"corridor":{{"type":"LineString","coordinates":[{points}]}},"radius_m":5}}"#))
    };
    let texts = vec![
        ("an array", "[]".to_owned()),
        ("no filters", "{}".to_owned()),
        ("an empty list of filters", r#"{"filters":[]}"#.to_owned()),
        ("filters that are an object", r#"{"filters":{}}"#.to_owned()),
        ("a filter that is a number", r#"{"filters":[5]}"#.to_owned()),
        ("a misspelt member", r#"{"filters":[{}],"overflw":"disconnect"}"#.to_owned()),
        ("a misspelt member of a filter", r#"{"filters":[{"aera":{"radius_m":5}}]}"#.to_owned()),
        ("a misspelt member of an area", with_area(r#"{"radius_m":5,"centre":[9,45]}"#)),
        ("an empty area", with_area("{}")),
        ("an area that is a text", with_area("\"here\"")),
        ("a negative radius", with_area(r#"{"radius_m":-1}"#)),
        ("an infinite radius", with_area(r#"{"radius_m":1e999}"#)),
        ("a radius in words", with_area(r#"{"radius_m":"near"}"#)),
        ("a centre without radius", with_area(r#"{"center":[9,45]}"#)),
        ("a centre out of range", with_area(r#"{"center":[9,145],"radius_m":5}"#)),
        (
            "two areas in one",
            with_area(r#"{"center":[9,45],"radius_m":5,"polygon":{"type":"Polygon","coordinates":[]}}"#),
        ),
        ("a polygon without rings", with_area(r#"{"polygon":{"type":"Polygon","coordinates":[]}}"#)),
        ("an open ring", ring("[0,0],[1,0],[1,1],[0,1]")),
        ("a ring of two points", ring("[0,0],[1,0],[0,0]")),
        ("a ring out of range", ring("[0,0],[200,0],[1,1],[0,0]")),
        ("a ring of numbers", ring("0,0,1,0")),
        ("a polygon that is a point", with_area(r#"{"polygon":{"type":"Point","coordinates":[9,45]}}"#)),
        ("a corridor of one point", line("[9,45]")),
        ("a corridor of none", line("")),
        ("a corridor out of range", line("[9,45],[9,95]")),
        (
            "a corridor without radius",
            with_area(r#"{"corridor":{"type":"LineString","coordinates":[[9,45],[9,46]]}}"#),
        ),
        ("a corridor between antipodes", line("[0,0],[180,0]")),
        ("an empty `on`", r#"{"filters":[{}],"on":[]}"#.to_owned()),
        ("an unknown `on`", r#"{"filters":[{}],"on":["sometimes"]}"#.to_owned()),
        ("one `on` twice", r#"{"filters":[{}],"on":["enter","enter"]}"#.to_owned()),
        ("events and transitions", r#"{"filters":[{}],"on":["event","enter"]}"#.to_owned()),
        ("an initial of events", r#"{"filters":[{}],"initial":true}"#.to_owned()),
        ("a dwell of events", r#"{"filters":[{}],"on":["event"],"dwell_s":1}"#.to_owned()),
        ("a hysteresis of events", r#"{"filters":[{}],"hysteresis_m":1}"#.to_owned()),
        ("an initial that is a number", r#"{"filters":[{}],"on":["enter"],"initial":1}"#.to_owned()),
        ("a negative dwell", r#"{"filters":[{}],"on":["enter"],"dwell_s":-1}"#.to_owned()),
        ("a dwell that outlives all", r#"{"filters":[{}],"on":["enter"],"dwell_s":2592001}"#.to_owned()),
        ("a dwell in words", r#"{"filters":[{}],"on":["enter"],"dwell_s":"5"}"#.to_owned()),
        ("a negative hysteresis", r#"{"filters":[{}],"on":["exit"],"hysteresis_m":-0.1}"#.to_owned()),
        ("an infinite hysteresis", r#"{"filters":[{}],"on":["exit"],"hysteresis_m":1e999}"#.to_owned()),
        ("a hysteresis beyond the world", r#"{"filters":[{}],"on":["exit"],"hysteresis_m":3e7}"#.to_owned()),
        ("the nearest none", with_area(r#"{"radius_m":5,"nearest":0}"#)),
        ("the nearest two and a half", with_area(r#"{"radius_m":5,"nearest":2.5}"#)),
        ("the nearest of too many", with_area(r#"{"nearest":1001}"#)),
        ("the nearest in words", with_area(r#"{"nearest":"three"}"#)),
        ("an unknown overflow", r#"{"filters":[{}],"overflow":"explode"}"#.to_owned()),
        ("durable in words", r#"{"filters":[{}],"durable":"yes"}"#.to_owned()),
    ];
    let bodies = texts.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    check("PUT", SUBSCRIPTION, JSON, 400, bodies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_with_bad_elements_keep_the_good_ones() {
    let program = Serve::new().start().await;
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    let http = program.http();
    let good = |id: &str| event_with("id", &format!("\"{id}\""));
    let far = event_at("[200,45]");
    let broken = "{\"type\":\"Fea";
    let deep = event_with("properties", &format!(r#"{{"a":{}}}"#, nested_arrays(5_000)));
    let bodies = [
        (
            "application/x-ndjson",
            format!("{}\n{broken}\n{}\n{far}\n\n{}", good("a"), good("b"), good("c")),
            vec![1, 3],
        ),
        (
            "application/x-ndjson",
            format!("{deep}\r\n{}\r\n{}\r\n{}\r\n", good("a"), good("b"), good("c")),
            vec![0],
        ),
        (
            "application/geo+json-seq",
            format!(
                "\u{1e}{}\n\u{1e}{broken}\n\u{1e}{}\n\u{1e}{far}\n\u{1e}{}\n",
                good("a"),
                good("b"),
                good("c")
            ),
            vec![1, 3],
        ),
        (
            GEOJSON,
            format!(
                r#"{{"type":"FeatureCollection","features":[{},{far},5,{},{},null]}}"#,
                good("a"),
                good("b"),
                good("c")
            ),
            vec![1, 2, 5],
        ),
        // `type` may stand behind `features`.
        (
            GEOJSON,
            format!(
                r#"{{"features":[{},{},{}],"type":"FeatureCollection"}}"#,
                good("a"),
                good("b"),
                good("c")
            ),
            vec![],
        ),
    ];
    for (content_type, body, bad) in bodies {
        let answer = http.post(EVENTS, content_type, body.clone()).await.expect(202).json();
        assert_eq!(answer["accepted"], 3, "{body}: {answer}");
        let rejected = answer["rejected"].as_array().expect("an array");
        let indices = rejected.iter().map(|one| one["index"].as_u64().expect("a number")).collect::<Vec<_>>();
        assert_eq!(indices, bad, "{content_type}: {body}: {answer}");
        for one in rejected {
            crate::harness::with_problem_shape(content_type, one["problem"].clone());
        }
        for id in ["a", "b", "c"] {
            assert_eq!(client.event().await["event"]["id"], id, "{content_type}");
        }
    }
    for (content_type, body) in [
        (GEOJSON, r#"{"type":"FeatureCollection","features":[]}"#),
        ("application/x-ndjson", ""),
        ("application/x-ndjson", "\n\n"),
        ("application/geo+json-seq", ""),
    ] {
        let answer = http.post(EVENTS, content_type, body).await.expect(202).json();
        assert_eq!(answer, json!({"accepted": 0, "rejected": []}), "{content_type}: {body:?}");
    }
    client.assert_quiet().await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_of_positions_keep_the_good_ones() {
    let program = Serve::new().start().await;
    let http = program.http();
    let good = |name: &str| format!(r#"{{"client":"{name}","coordinates":[9,45]}}"#);
    let bad = [
        r#"{"client":"x","coordinates":[9,145]}"#,
        r#"{"coordinates":[9,45]}"#,
        r#"{"client":"","coordinates":[9,45]}"#,
        r#"{"client":5,"coordinates":[9,45]}"#,
        r#"{"client":"x"}"#,
        "17",
    ];
    let mut lines = vec![good("a")];
    lines.extend(bad.iter().map(|line| (*line).to_owned()));
    lines.push(good("b"));
    let array = format!("[{}]", lines.join(","));
    for (content_type, body) in [(JSON, array), ("application/x-ndjson", lines.join("\n"))] {
        let answer = http.post("/v1/positions", content_type, body).await.expect(202).json();
        assert_eq!(answer["moved"], 2, "{content_type}: {answer}");
        let rejected = answer["rejected"].as_array().expect("an array").iter();
        let indices = rejected.map(|one| one["index"].as_u64().expect("a number")).collect::<Vec<_>>();
        assert_eq!(indices, [1, 2, 3, 4, 5, 6], "{content_type}: {answer}");
    }
    let answer = http.post("/v1/positions", JSON, "[]").await.expect(202).json();
    assert_eq!(answer, json!({"moved": 0, "rejected": []}));
    for body in ["{}", "17", "[{", "", r#"[{"client":"a","coordinates":[9,45]}"#] {
        http.post("/v1/positions", JSON, body).await.problem(400);
    }
    program.finish().await;
}

/// As editors on some systems begin a file with one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_byte_order_mark_before_a_document_is_passed_over() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    let marked = |text: &str| format!("\u{feff}{text}");
    let place = |client: &str| format!(r#"{{"client":"{client}","coordinates":[9,45]}}"#);
    // Beyond the size up to which a document is checked whole, it is read in parts.
    let many = (0..1_000).map(|idx| place(&format!("c{idx}"))).collect::<Vec<_>>().join(",");
    for (content_type, body, moved) in [
        (JSON, "[]".to_owned(), 0),
        (JSON, format!("[{},{}]", place("a"), place("b")), 2),
        (JSON, format!(" [{many}]"), 1_000),
        ("application/x-ndjson", format!("{}\n{}\n", place("a"), place("b")), 2),
    ] {
        let answer = http.post("/v1/positions", content_type, marked(&body)).await.expect(202).json();
        assert_eq!(answer, json!({"moved": moved, "rejected": []}), "{content_type}");
    }
    let event = event_with("id", "\"e\"");
    let large = format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, vec![&*event; 1_000].join(","));
    for (content_type, body, accepted) in [
        (GEOJSON, event.clone(), 1),
        (GEOJSON, format!(r#"{{"type":"FeatureCollection","features":[{event}]}}"#), 1),
        (GEOJSON, large, 1_000),
        ("application/x-ndjson", event.clone(), 1),
    ] {
        let answer = http.post(EVENTS, content_type, marked(&body)).await.expect(202).json();
        assert_eq!(answer, json!({"accepted": accepted, "rejected": []}), "{content_type}");
        for _ in 0..accepted {
            assert_eq!(client.event().await["event"]["id"], "e");
        }
    }
    http.send("PUT", POSITION, Some(JSON), marked(r#"{"coordinates":[9,45]}"#)).await.expect(204);
    http.send("PUT", SUBSCRIPTION, Some(JSON), marked(r#"{"filters":[{}]}"#)).await.expect(200);
    // One is no part of a document, two are.
    http.post("/v1/positions", JSON, marked(&marked("[]"))).await.problem(400);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_there_are_not() {
    let program = Serve::new().start().await;
    let http = program.http();
    let event = event_with("id", "\"e\"");
    for (method, path, content_type, status) in [
        ("GET", "/nothing", None, 404),
        ("GET", "/v1", None, 404),
        ("GET", "/v1/nothing", None, 404),
        ("GET", "/v2/events", None, 404),
        ("GET", "/v1/clients/car/nothing", None, 404),
        ("GET", "/v1/clients/car/subscriptions/unknown", None, 404),
        ("DELETE", "/v1/clients/car/subscriptions/unknown", None, 404),
        ("PUT", "/v1/events", None, 405),
        ("PUT", "/v1/events", Some(GEOJSON), 405),
        ("PATCH", SUBSCRIPTION, Some(JSON), 405),
        ("POST", POSITION, Some(JSON), 405),
        ("BREW", "/v1/stats", None, 405),
        ("DELETE", "/metrics", None, 405),
        ("POST", EVENTS, Some("text/plain"), 415),
        ("POST", EVENTS, Some("application/xml"), 415),
        ("POST", EVENTS, Some("nonsense"), 415),
        ("POST", "/v1/positions", Some("text/csv"), 415),
        ("PUT", SUBSCRIPTION, Some("text/html"), 415),
        ("PUT", POSITION, Some("multipart/form-data"), 415),
    ] {
        let answer = http.send(method, path, content_type, event.clone()).await;
        answer.problem(status);
        assert_eq!(
            answer.headers.contains_key("allow"),
            status == 405,
            "{}: {:?}",
            answer.call,
            answer.headers
        );
    }
    // A WebSocket path that is asked for a document.
    let answer = http.get("/v1/clients/car/ws").await;
    assert!([400, 426].contains(&answer.status), "{}", answer.status);
    answer.problem(answer.status);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_no_client_can_have() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let long = "x".repeat(5_000);
    for name in ["%00", "a%0Ab", "%FF%FE", "a%7F", &long] {
        for (method, rest, body) in [
            ("PUT", "position", r#"{"coordinates":[9,45]}"#),
            ("PUT", "subscriptions/s", r#"{"filters":[{}]}"#),
            ("GET", "events", ""),
            ("GET", "subscriptions", ""),
        ] {
            let path = format!("/v1/clients/{name}/{rest}");
            http.send(method, &path, Some(JSON), body).await.problem(400);
        }
        witness.probe_elsewhere(name).await;
        program.assert_healthy();
    }
    // Others are ordinary names, and what they name is kept apart.
    for name in ["a%20b", "%C3%A9t%C3%A9", "a.b:c@d", "..."] {
        let path = format!("/v1/clients/{name}/subscriptions/s");
        http.put(&path, &json!({"filters": [{"where": "a = 1"}]})).await.expect(201);
        http.get(&path).await.expect(200);
        http.delete(&format!("/v1/clients/{name}")).await.expect(204);
        http.get(&path).await.expect(404);
    }
    program.finish().await;
}
