//! Refusals that say what to do instead.

use serde_json::{Value, json};

use crate::harness::{Http, Raw, Serve, feature};

const JSON: &str = "application/json";

/// The detail of a refusal.
#[track_caller]
fn detail(problem: &Value) -> &str {
    problem["detail"].as_str().unwrap_or_else(|| panic!("no detail: {problem}"))
}

/// The first fault of a document, as `pointer: detail`.
async fn first_fault(http: &Http, method: &str, path: &str, body: &Value) -> String {
    let problem = http.send(method, path, Some(JSON), body.to_string()).await.problem(400);
    let fault = &problem["errors"][0];
    let text = |member: &str| fault[member].as_str().unwrap_or_else(|| panic!("{problem}")).to_owned();
    format!("{}: {}", text("pointer"), text("detail"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_method_is_told_which_there_are() {
    let program = Serve::new().start().await;
    let http = program.http();
    for (method, path, told) in [
        ("PUT", "/v1/events", "PUT is not possible here: POST, GET"),
        ("POST", "/v1/clients/ann/position", "POST is not possible here: PUT, GET"),
        (
            "GET",
            "/v1/clients/ann",
            "GET is not possible here: DELETE, which forgets the client (what there is of it is at ",
        ),
        ("DELETE", "/v1/clients", "DELETE is not possible here: GET"),
        ("PATCH", "/v1/clients/ann/subscriptions/s", "PATCH is not possible here: PUT, GET, DELETE"),
        (
            "POST",
            "/v1/clients/ann/subscriptions",
            "POST is not possible here: GET (PUT /v1/clients/{client}/subscriptions/{id} makes a subscription)",
        ),
    ] {
        let problem = http.send(method, path, Some(JSON), "{}").await.problem(405);
        assert!(detail(&problem).starts_with(told), "{problem}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_media_type_is_told_which_there_are() {
    let program = Serve::new().start().await;
    let http = program.http();
    let event = feature("e", [9.0, 45.0], json!({})).to_string();
    let told = |found: &str| {
        format!(
            "{found} is not understood here: application/json, application/geo+json, application/x-ndjson and \
             application/geo+json-seq are"
        )
    };
    let problem = http.post("/v1/events", "text/plain", event.clone()).await.problem(415);
    assert_eq!(detail(&problem), told("text/plain"));
    let form = "application/x-www-form-urlencoded";
    let problem = http.post("/v1/events", form, event.clone()).await.problem(415);
    let curl = " (curl sends this unless told otherwise: --json, or -H 'content-type: application/json')";
    assert_eq!(detail(&problem), told(form) + curl);
    let place = "/v1/clients/ann/position";
    let problem = http.send("PUT", place, Some("application/x-ndjson"), "{}").await.problem(415);
    assert!(
        detail(&problem).ends_with("is not understood here: application/json or application/geo+json is")
    );
    let headers = [("content-encoding", "gzip")];
    let problem = http.send_with("POST", "/v1/events", Some(JSON), &headers, event).await.problem(415);
    assert!(detail(&problem).ends_with("send the body as it is, without content-encoding"), "{problem}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_named() {
    let program = Serve::new().start().await;
    let http = program.http();
    let long = "x".repeat(300_000);
    let geometry = r#""geometry":{"type":"Point","coordinates":[9,45]}"#;
    for (body, what) in [
        (format!(r#"{{"type":"Feature",{geometry},"properties":{{"text":"{long}"}}}}"#), "an event"),
        (
            format!(r#"{{"properties":{{"text":"{long}"}},{geometry},"type":"Feature"}}"#),
            "an event, or all of a collection but its features,",
        ),
        (
            format!(r#"{{"type":"FeatureCollection","name":"{long}","features":[]}}"#),
            "all of a collection but its features",
        ),
    ] {
        let problem = http.post("/v1/events", JSON, body).await.problem(413);
        assert_eq!(detail(&problem), format!("{what} may have at most 65536 bytes (limits.event_bytes)"));
        assert_eq!(problem["limit"], 65_536);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_near_miss_comes_before_the_faults_that_follow_from_it() {
    let program = Serve::new().start().await;
    let http = program.http();
    let put = "/v1/clients/ann/subscriptions/s";
    for (body, told) in [
        (
            json!({"filters": [{"area": {"radius": 500}}]}),
            "/filters/0/area/radius: there is no such member: did you mean radius_m?",
        ),
        (json!({"filter": [{}]}), "/filter: there is no such member: did you mean filters?"),
        (
            json!({"filters": [{}, {"condition": "a = 1"}]}),
            "/filters/1/condition: there is no such member: did you mean where?",
        ),
        (json!({"filters": [{}], "colour": "red"}), "/colour: there is no such member"),
        (
            json!({"filters": [{"area": {"lat": 45.4, "lon": 9.1, "radius_m": 5}}]}),
            "/filters/0/area/center: did you mean \"center\": [9.1, 45.4] in place of two members?",
        ),
    ] {
        assert_eq!(first_fault(&http, "PUT", put, &body).await, told);
    }
    let condition = json!({"filters": [{"where": "severity => 2"}]});
    let told = first_fault(&http, "PUT", put, &condition).await;
    assert!(told.starts_with("/filters/0/where: ") && told.ends_with("; did you mean >=?"), "{told}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn longitude_and_latitude_that_have_changed_places_are_told_so() {
    let program = Serve::new().start().await;
    let http = program.http();
    let swapped =
        "latitude -118.24 is outside of -90 to 90 (longitude comes first: did you mean [-118.24, 34.05]?)";
    let (position, events) = ("/v1/clients/ann/position", "/v1/events");
    let put = "/v1/clients/ann/subscriptions/s";
    let event = |geometry: Value| json!({"type": "Feature", "geometry": geometry, "properties": {}});
    let point = "must be a GeoJSON Point: {\"type\": \"Point\", \"coordinates\":";
    for (method, path, body, told) in [
        ("PUT", position, json!({"coordinates": [34.05, -118.24]}), format!("/coordinates: {swapped}")),
        ("PUT", position, json!({"track": [[34.05, -118.24, 0]]}), format!("/track/0: {swapped}")),
        (
            "POST",
            events,
            event(json!({"type": "Point", "coordinates": [34.05, -118.24]})),
            format!("/geometry/coordinates: {swapped}"),
        ),
        (
            "PUT",
            put,
            json!({"filters": [{"area": {"center": [34.05, -118.24], "radius_m": 5}}]}),
            format!("/filters/0/area/center: {swapped}"),
        ),
        (
            "PUT",
            put,
            json!({"filters": [{"area": {"corridor": {"type": "LineString", "coordinates": [[1, 2], [34.05, -118.24]]}, "radius_m": 5}}]}),
            format!("/filters/0/area/corridor/coordinates/1: {swapped}"),
        ),
        (
            "PUT",
            position,
            json!({"lat": 45.4, "lon": 9.1}),
            "/coordinates: must be there: \"coordinates\": [9.1, 45.4] in place of two members".to_owned(),
        ),
        (
            "PUT",
            position,
            json!({}),
            "/coordinates: must be there, [longitude, latitude], or a track in their place".to_owned(),
        ),
        (
            "PUT",
            position,
            json!({"coordinates": "45.4, 9.1"}),
            "/coordinates: must be an array of two or three numbers, longitude first: [45.4, 9.1], or [9.1, 45.4] if the latitude is 45.4"
                .to_owned(),
        ),
        (
            "PUT",
            position,
            json!({"coordinates": {"lat": 45.4, "lng": 9.1}}),
            "/coordinates: must be an array of two or three numbers: [9.1, 45.4]".to_owned(),
        ),
        ("POST", events, json!({"type": "Feature", "lat": 45.4, "lon": 9.1}), format!("/geometry: {point} [9.1, 45.4]}}")),
        ("POST", events, event(json!({"lat": 45.4, "lon": 9.1})), format!("/geometry: {point} [9.1, 45.4]}}")),
        ("POST", events, event(json!(null)), format!("/geometry: {point} [longitude, latitude]}}")),
    ] {
        assert_eq!(first_fault(&http, method, path, &body).await, told, "{body}");
    }
    program.finish().await;
}

/// As one sees it who mistypes a name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_client_without_subscriptions_says_so() {
    let program = Serve::new().start().await;
    let put = "/v1/clients/ann/subscriptions/s";
    program.http().put(put, &json!({"filters": [{}]})).await.expect(201);
    for (client, is_told) in [("ann", false), ("anne", true)] {
        let mut raw = Raw::connect(program.address()).await;
        raw.send(format!("GET /v1/clients/{client}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())
            .await;
        raw.head().await;
        let mut text = String::new();
        while !text.contains("\n\n") {
            let byte = raw.bytes(1).await.expect("the stream goes on");
            text.push(byte[0].into());
        }
        assert!(text.contains(": nearcast "), "{text}");
        let told = format!("\n: {client} has no subscriptions: nothing comes until there is one\n\n");
        assert_eq!(text.contains(&told), is_told, "{text}");
    }
    program.finish().await;
}
