//! Sentence by sentence: which event satisfies which subscription.

use serde_json::{Value, json};

use crate::harness::{Serve, Ws, feature};

/// A case: what it shows, a filter, where the client is, the event, and whether it is delivered.
struct Case {
    name: &'static str,
    filter: Value,
    client: Option<[f64; 2]>,
    event: Value,
    delivered: bool,
}

/// Publishes each event to a client with that one subscription.
async fn check(world: &str, cases: Vec<Case>) {
    let program = Serve::new().args(&["--world", world, "--shards", "2"]).start().await;
    let mut failures = Vec::new();
    for (idx, case) in cases.into_iter().enumerate() {
        let mut client = program.ws(&format!("client-{idx}")).await;
        if let Some(place) = case.client {
            client.place(place).await;
        }
        let subscription = json!({"filters": [case.filter.clone()]});
        client.subscribe("s", subscription).await;
        let delivered = delivered(&mut client, &case.event).await;
        if delivered != case.delivered {
            failures.push(format!("{}: delivered {delivered}: {} {}", case.name, case.filter, case.event));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    program.finish().await;
}

/// Publishes the event and a second one that is certainly delivered: what comes before that is the delivery.
async fn delivered(client: &mut Ws, event: &Value) -> bool {
    client.subscribe("fence", json!({"filters": [{"where": "fence = TRUE"}]})).await;
    client.publish(event).await;
    client.publish(&feature("fence", [0.0, 0.0], json!({"fence": true}))).await;
    let frame = client.event().await;
    if frame["event"]["id"] == "fence" {
        return false;
    }
    assert_eq!(frame["subscriptions"], json!(["s"]), "{frame}");
    assert_eq!(client.event().await["event"]["id"], "fence");
    true
}

fn at(place: [f64; 2]) -> Value {
    feature("e", place, json!({}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn areas_hold_what_the_protocol_says() {
    let square = json!([
        [[10.0, 50.0], [11.0, 50.0], [11.0, 51.0], [10.0, 51.0], [10.0, 50.0]],
        [[10.25, 50.25], [10.25, 50.75], [10.75, 50.75], [10.75, 50.25], [10.25, 50.25]]
    ]);
    let square = json!({"area": {"polygon": {"type": "Polygon", "coordinates": square}}});
    let ring = |[west, south, east, north]: [f64; 4]| {
        json!([[west, south], [east, south], [east, north], [west, north], [west, south]])
    };
    let holes = json!([
        ring([10.0, 50.0, 11.0, 51.0]),
        ring([10.2, 50.2, 10.5, 50.5]),
        ring([10.4, 50.4, 10.7, 50.7]),
        ring([10.2, 50.2, 10.5, 50.5]),
        ring([12.0, 50.0, 13.0, 51.0])
    ]);
    let holes = json!({"area": {"polygon": {"type": "Polygon", "coordinates": holes}}});
    // A pentagram.
    let star = json!([[[0.0, 10.0], [6.0, -8.0], [-9.0, 3.0], [9.0, 3.0], [-6.0, -8.0], [0.0, 10.0]]]);
    let star = json!({"area": {"polygon": {"type": "Polygon", "coordinates": star}}});
    let corridor = json!({"area": {"corridor": {"type": "LineString", "coordinates": [[179.5, 0.0], [-179.5, 0.0]]},
        "radius_m": 1000}});
    let circle = |center: [f64; 2], radius_m: f64| json!({"area": {"center": center, "radius_m": radius_m}});
    let following = |radius_m: f64| json!({"area": {"radius_m": radius_m}});
    let case = |name, filter: &Value, client, place, delivered| Case {
        name,
        filter: filter.clone(),
        client,
        event: at(place),
        delivered,
    };
    // One degree of a great circle is 111 195.08 m.
    check(
        "geodetic",
        vec![
            case("no area is everywhere", &json!({}), None, [-180.0, -90.0], true),
            case("zero radius holds its centre", &circle([9.1, 45.4], 0.0), None, [9.1, 45.4], true),
            case("zero radius holds nothing else", &circle([9.1, 45.4], 0.0), None, [9.1, 45.400_001], false),
            case("a degree is within 111195.1 m", &circle([9.0, 45.0], 111_195.1), None, [9.0, 46.0], true),
            case(
                "a degree is not within 111195.0 m",
                &circle([9.0, 45.0], 111_195.0),
                None,
                [9.0, 46.0],
                false,
            ),
            case("across the antimeridian", &circle([179.95, 10.0], 12_000.0), None, [-179.95, 10.0], true),
            case("180 and -180 are one", &circle([180.0, 10.0], 0.001), None, [-180.0, 10.0], true),
            case("all meridians meet at a pole", &circle([0.0, 90.0], 0.001), None, [77.0, 90.0], true),
            case("across a pole", &circle([0.0, 89.9], 23_000.0), None, [180.0, 89.9], true),
            case("a following circle around no position", &following(2e7), None, [0.0, 0.0], false),
            case(
                "a following circle around a position",
                &following(500.0),
                Some([9.1, 45.4]),
                [9.1, 45.404],
                true,
            ),
            case("outside a following circle", &following(500.0), Some([9.1, 45.4]), [9.1, 45.405], false),
            case("half the Earth round", &following(20_015_116.0), Some([0.0, 0.0]), [180.0, 0.0], true),
            case("inside a polygon", &square, None, [10.1, 50.5], true),
            case("in its hole", &square, None, [10.5, 50.5], false),
            case("on its edge", &square, None, [10.5, 50.0], true),
            case("on its corner", &square, None, [11.0, 51.0], true),
            case("on the edge of its hole", &square, None, [10.25, 50.5], true),
            case("edges are straight in degrees, not great circles", &square, None, [10.5, 51.000_5], false),
            case("outside a polygon", &square, None, [11.5, 50.5], false),
            case("in one of two holes that overlap", &holes, None, [10.25, 50.25], false),
            case("in both", &holes, None, [10.45, 50.45], false),
            case("on the edge of one, inside the other", &holes, None, [10.4, 50.45], false),
            case("in the first hole, which comes twice", &holes, None, [10.25, 50.45], false),
            case("between the holes and the ring", &holes, None, [10.1, 50.1], true),
            case("in a hole outside of the ring", &holes, None, [12.5, 50.5], false),
            case("where a ring that crosses itself goes round twice", &star, None, [0.0, 0.0], false),
            case("where it goes round once", &star, None, [0.0, 6.0], true),
            case("a corridor across the antimeridian", &corridor, None, [180.0, 0.008], true),
            case("beside a corridor", &corridor, None, [180.0, 0.01], false),
            case("behind the end of a corridor", &corridor, None, [179.495, 0.0], true),
            case("further behind it", &corridor, None, [179.49, 0.0], false),
            case("the far side of the Earth is not between", &corridor, None, [0.0, 0.0], false),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planar_worlds_use_euclid() {
    let circle = json!({"area": {"center": [1000.0, 2000.0], "radius_m": 500}});
    let corridor = json!({"area": {"corridor": {"type": "LineString", "coordinates": [[0, 0], [100, 0], [100, 100]]}, "radius_m": 5}});
    let case = |name, filter: &Value, client, place, delivered| Case {
        name,
        filter: filter.clone(),
        client,
        event: at(place),
        delivered,
    };
    check(
        "planar",
        vec![
            case("3-4-5 on the edge", &circle, None, [1300.0, 2400.0], true),
            case("beyond it", &circle, None, [1300.0, 2400.001], false),
            case("beside a corridor's bend", &corridor, None, [103.0, -4.0], true),
            case("beyond it", &corridor, None, [104.0, -4.0], false),
            case(
                "a following circle",
                &json!({"area": {"radius_m": 10}}),
                Some([5e6, -5e6]),
                [5_000_006.0, -4_999_992.0],
                true,
            ),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_hold_what_the_protocol_says() {
    let properties = json!({
        "type": "accident", "severity": 3, "road": {"name": "A4", "exit": {"no": 7}}, "lanes_closed": true,
        "empty": "", "nothing": null, "tags": ["wet", "dark"], "levels": [1, 5], "none": [], "name": "STRASSE",
        "half": 0.5, "big": 9_007_199_254_740_993_u64, "percent": "100%", "quote": "it's", "and": 1,
    });
    let table = [
        ("type = 'accident' AND severity >= 2", true),
        ("type IN ('fire', 'accident')", true),
        ("severity IN (1, 2)", false),
        ("severity NOT IN (1, 2)", true),
        ("severity BETWEEN 3 AND 3", true),
        ("severity NOT BETWEEN 1 AND 3", false),
        ("half = .5 OR half = 0.5", true),
        ("half = 5e-1", true),
        ("severity = 3.0", true),
        ("severity > -1", true),
        ("road.name = 'A4'", true),
        ("road.exit.no = 7", true),
        ("\"road.exit.no\" = 7", true),
        ("road IS NULL", true),
        ("lanes_closed = TRUE", true),
        ("lanes_closed = true", true),
        ("lanes_closed <> FALSE", true),
        ("lanes_closed = 1", false),
        ("NOT (lanes_closed = 1)", false),
        ("severity = '3'", false),
        ("NOT (severity = '3')", false),
        ("missing = 1", false),
        ("missing <> 1", false),
        ("NOT (missing = 1)", false),
        ("NOT (missing = 1) OR severity = 3", true),
        ("NOT (missing = 1 AND severity = 4)", true),
        ("NOT (missing = 1 OR severity = 4)", false),
        ("missing IS NULL", true),
        ("nothing IS NULL", true),
        ("nothing IS NOT NULL", false),
        ("NOT (nothing IS NULL)", false),
        ("empty IS NULL", false),
        ("empty = ''", true),
        ("empty LIKE ''", true),
        ("empty LIKE '%'", true),
        ("missing LIKE '%'", false),
        ("NOT (missing LIKE '%')", false),
        ("type LIKE 'acc%'", true),
        ("type LIKE '%cid%'", true),
        ("type LIKE 'a_c_d_n_'", true),
        ("type LIKE 'Acc%'", false),
        ("type NOT LIKE 'Acc%'", true),
        ("type LIKE 'accident_'", false),
        ("percent LIKE '100%'", true),
        ("CASEI(type) = 'accident'", true),
        ("CASEI(type) = CASEI('ACCIDENT')", true),
        ("CASEI(name) = CASEI('straße')", true),
        ("CASEI(type) LIKE CASEI('ACC%')", true),
        ("CASEI(type) IN (CASEI('FIRE'), CASEI('Accident'))", true),
        ("quote = 'it''s'", true),
        ("type < 'b' AND type > 'a'", true),
        ("tags = 'wet'", true),
        ("tags <> 'wet'", true),
        ("NOT (tags = 'wet')", false),
        ("NOT (tags <> 'wet')", false),
        ("NOT (tags = 'dry')", true),
        ("tags LIKE 'd%'", true),
        ("levels > 4 AND levels < 2", true),
        ("levels BETWEEN 2 AND 4", false),
        ("NOT (levels BETWEEN 2 AND 4)", true),
        ("none = 1", false),
        ("levels IS NULL", false),
        ("3 = severity", true),
        ("2 < severity", true),
        ("\"and\" = 1", true),
        ("NOT (NOT (severity = 3))", true),
        ("severity=3 and TYPE='accident'", false),
        ("severity = 3 and not type = 'fire' or missing is null", true),
        ("((severity = 3))", true),
    ];
    let mut cases = Vec::new();
    for (text, delivered) in table {
        let event = feature("e", [0.0, 0.0], properties.clone());
        cases.push(Case { name: text, filter: json!({"where": text}), client: None, event, delivered });
    }
    check("geodetic", cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_reaches_only_as_far_as_it_says() {
    let reaching = |reach_m: f64| {
        let mut event = at([9.0, 45.0]);
        event["reach_m"] = json!(reach_m);
        event
    };
    let case = |name, client, event, delivered| Case { name, filter: json!({}), client, event, delivered };
    check(
        "geodetic",
        vec![
            case("a client within reach", Some([9.0, 45.001]), reaching(112.0), true),
            case("a client out of reach", Some([9.0, 45.001]), reaching(111.0), false),
            case("a client without position", None, reaching(1.0), true),
            case("no reach is any reach", Some([-170.0, -45.0]), at([9.0, 45.0]), true),
            case("zero reach, there", Some([9.0, 45.0]), reaching(0.0), true),
            case("zero reach, elsewhere", Some([9.0, 45.000_001]), reaching(0.0), false),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_matches_several_subscriptions_comes_once() {
    let program = Serve::new().args(&["--shards", "3"]).start().await;
    let mut client = program.ws("car").await;
    client.place([9.0, 45.0]).await;
    client
        .subscribe("a", json!({"filters": [{"area": {"radius_m": 500}}, {"area": {"radius_m": 900}}, {}]}))
        .await;
    client.subscribe("b", json!({"filters": [{"where": "n = 1"}, {"where": "n < 2"}]})).await;
    client.subscribe("c", json!({"filters": [{"where": "n = 2"}]})).await;
    client.publish(&feature("e", [9.0, 45.0], json!({"n": 1}))).await;
    let frame = client.event().await;
    let mut ids = frame["subscriptions"].as_array().expect("an array").clone();
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!("a"), json!("b")], "{frame}");
    // The next frame is the next event, not the same once more.
    client.publish(&feature("next", [9.0, 45.0], json!({"n": 2}))).await;
    let frame = client.event().await;
    assert_eq!(frame["event"]["id"], "next", "{frame}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_comes_as_it_was_published() {
    let program = Serve::new().start().await;
    let mut client = program.ws("car").await;
    client.subscribe("s", json!({"filters": [{}]})).await;
    let event = json!({
        "type": "Feature", "id": 17, "geometry": {"type": "Point", "coordinates": [9.1895, 45.4642, 120.5]},
        "properties": {"text": "\u{1f697} \"quoted\" \\ \u{0} \u{7f}", "nested": {"a": [1, null, {"b": 2}]},
            "float": 0.1, "negative": -5, "large": 1.7976931348623157e308},
        "time": "2026-03-01T07:30:00Z", "reach_m": 500, "priority": "normal",
    });
    client.publish(&event).await;
    let frame = client.event().await;
    for (member, value) in event.as_object().expect("an object") {
        assert_eq!(frame["event"][member], *value, "{member}: {frame}");
    }
    let nameless =
        json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": null});
    let mut ids = Vec::new();
    for _ in 0..2 {
        client.publish(&nameless).await;
        let frame = client.event().await;
        assert!(frame["event"]["time"].is_string(), "the time of arrival: {frame}");
        ids.push(frame["event"]["id"].clone());
    }
    assert!(ids[0].is_string() && ids[0] != ids[1], "the broker makes ids: {ids:?}");
    program.finish().await;
}
