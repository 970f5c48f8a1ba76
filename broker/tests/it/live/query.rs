//! `GET /v1/events` and `GET ../position`: what is live here now, and where a client is.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};

use super::scene::{HOME, following, keyed, lasting, north, post, revoke, with};
use crate::authorisation::{ISSUER, claims, guarded};
use crate::harness::{Http, Program, Raw, Serve, eventually, feature, within};

/// A page: its ids in their order, and where the next one begins.
async fn page(http: &Http, query: &str) -> (Vec<String>, Option<String>) {
    let answer = http.get(&format!("/v1/events{query}")).await.expect(200);
    assert_eq!(answer.content_type, "application/geo+json");
    let page = answer.json();
    let features = page["features"].as_array().expect("features");
    assert_eq!(
        (&page["type"], &page["numberReturned"]),
        (&json!("FeatureCollection"), &json!(features.len()))
    );
    let ids = features.iter().map(|feature| feature["id"].as_str().expect("an id").to_owned());
    (ids.collect(), page.get("next").map(|next| next.as_str().expect("a text").to_owned()))
}

/// All pages.
async fn all(http: &Http, query: &str, limit: usize) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    loop {
        let mark = if query.is_empty() { "?" } else { "&" };
        let (more, next) = page(http, &format!("{query}{mark}limit={limit}{after}")).await;
        assert!(more.len() <= limit && (next.is_none() || more.len() == limit), "{more:?}");
        ids.extend(more);
        let Some(next) = next else { return ids };
        after = format!("&after={next}");
    }
}

async fn start() -> (Program, Http) {
    let program = Serve::new().args(&["--shards", "3"]).start().await;
    let http = program.http();
    (program, http)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_live_is_shown_as_it_is_delivered() {
    let (program, http) = start().await;
    let mut ws = program.ws("car").await;
    ws.subscribe("all", json!({"filters": [{}]})).await;
    let event = with(lasting("a", north(100.0)), "anything", json!({"else": [1, "é"]}));
    post(&http, &event).await;
    let delivered = ws.next().await["event"].clone();
    let answer = http.get("/v1/events").await.expect(200);
    assert_eq!(answer.json()["features"], json!([delivered]));
    // As the publisher wrote it.
    let text = event.to_string();
    let begin = r#"{"type":"FeatureCollection","numberReturned":1,"features":["#.to_owned();
    assert!(answer.text().starts_with(&(begin + &text[..text.len() - 1])), "{}", answer.text());
    // What is over at once is not there, what a newer one replaces is not, and what has ended is not.
    post(&http, &feature("passing", HOME, json!({}))).await;
    post(&http, &keyed("bus", "b1", north(200.0))).await;
    post(&http, &keyed("bus", "b2", north(300.0))).await;
    assert_eq!(all(&http, "?near=9,45,1000", 10).await, ["a", "b2"]);
    revoke(&http, "a").await;
    assert_eq!(page(&http, "").await, (vec!["b2".to_owned()], None));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_and_conditions_select_and_pages_are_complete_while_others_come_and_go() {
    let (program, http) = start().await;
    let mut random = StdRng::seed_from_u64(5);
    let mut events = Vec::new();
    for n in 0..400_i32 {
        let at = match n % 4 {
            0 => [[180.0, 5.0], [-180.0, 5.0], [77.0, 90.0], [9.0, -90.0]][random.random_range(0..4)],
            1 => [random.random_range(-180.0..=180.0), random.random_range(-90.0..=90.0)],
            _ => [random.random_range(170.0..190.0), random.random_range(-10.0..10.0)],
        };
        let at = [if at[0] > 180.0 { at[0] - 360.0 } else { at[0] }, at[1]];
        events.push((format!("e{n}"), at, n % 3));
    }
    let lines: String = events
        .iter()
        .map(|(id, at, level)| {
            format!("{}\n", with(feature(id, *at, json!({"level": level})), "ttl_s", json!(3600)))
        })
        .collect();
    http.post("/v1/events", "application/x-ndjson", lines).await.expect(202);
    let spans = |x: f64, west: f64, east: f64| {
        if west <= east { west <= x && x <= east } else { x >= west || x <= east }
    };
    for [west, south, east, north] in [
        [175.0, -5.0, -175.0, 5.0],
        [-180.0, -90.0, 180.0, 90.0],
        [180.0, 0.0, 180.0, 10.0],
        [-180.0, 0.0, -180.0, 10.0],
        [0.0, 80.0, 1.0, 90.0],
        [-10.0, -90.0, 10.0, -60.0],
        [10.0, -60.0, -10.0, 60.0],
        [0.0, 0.0, 0.0, 0.0],
    ] {
        let expected: BTreeSet<_> = events
            .iter()
            .filter(|(_, [x, y], level)| {
                let is_there =
                    y.abs() == 90.0 || spans(*x, west, east) || (x.abs() == 180.0 && spans(-x, west, east));
                (south..=north).contains(y) && is_there && *level >= 1
            })
            .map(|(id, ..)| id.clone())
            .collect();
        let query = format!("?bbox={west},{south},{east},{north}&where=level%20%3E%3D%201");
        // Others come and go between the pages.
        let (mut met, mut after, mut turn) = (Vec::new(), String::new(), 0);
        loop {
            let (ids, next) = page(&http, &format!("{query}&limit=7{after}")).await;
            met.extend(ids.into_iter().filter(|id| id.starts_with('e')));
            let Some(next) = next else { break };
            after = format!("&after={next}");
            turn += 1;
            let other = feature(&format!("other-{}", turn % 3), [west, south], json!({"level": 2}));
            post(&http, &with(other, "key", json!(format!("k{}", turn % 3)))).await;
        }
        let count = met.len();
        assert_eq!(met.into_iter().collect::<BTreeSet<_>>(), expected, "{query}");
        assert_eq!(count, expected.len(), "each once: {query}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nearest_come_first_over_all_pages() {
    let (program, http) = start().await;
    let distances = [700, 20, 400, 400, 3_000, 90, 5];
    for (n, metres) in distances.iter().enumerate() {
        post(&http, &lasting(&format!("{metres}-{n}"), north(f64::from(*metres)))).await;
    }
    for limit in [1, 2, 100] {
        let ids = all(&http, "?near=9,45,1000", limit).await;
        let metres: Vec<u32> = ids.iter().map(|id| id.split('-').next().unwrap().parse().unwrap()).collect();
        assert_eq!(metres, [5, 20, 90, 400, 400, 700], "{ids:?}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_shown_what_its_subscriptions_take_where_it_is() {
    let (program, http) = start().await;
    for (id, metres) in [("near", 100.0), ("far", 5_000.0), ("reaching", 150.0)] {
        let mut event = lasting(id, north(metres));
        if id == "reaching" {
            event["reach_m"] = json!(50);
        }
        post(&http, &event).await;
    }
    assert_eq!(all(&http, "?client=car", 10).await, [""; 0]);
    http.put("/v1/clients/car/subscriptions/s", &json!({"filters": [following(1_000.0)]})).await.expect(201);
    assert_eq!(all(&http, "?client=car", 10).await, [""; 0], "it is nowhere yet");
    http.put("/v1/clients/car/position", &json!({"coordinates": HOME})).await.expect(204);
    assert_eq!(all(&http, "?client=car", 1).await, ["near"]);
    http.put("/v1/clients/car/position", &json!({"coordinates": north(150.0)})).await.expect(204);
    assert_eq!(all(&http, "?client=car&near=9,45,9000", 1).await, ["near", "reaching"]);
    http.put("/v1/clients/car/position", &json!({"coordinates": north(5_000.0)})).await.expect(204);
    assert_eq!(all(&http, "?client=car", 10).await, ["far"]);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_bounded_in_bytes() {
    let (program, http) = start().await;
    let text = "x".repeat(12_500);
    for n in 0..100 {
        post(
            &http,
            &with(
                feature(&format!("e{n}"), HOME, json!({"a": text, "b": text, "c": text, "d": text})),
                "ttl_s",
                json!(3600),
            ),
        )
        .await;
    }
    let (ids, next) = page(&http, "?limit=1000").await;
    assert!(ids.len() > 70 && ids.len() < 90, "{}", ids.len());
    let (more, none) = page(&http, &format!("?limit=1000&after={}", next.expect("more"))).await;
    assert_eq!((ids.len() + more.len(), none), (100, None));
    assert!(more.iter().all(|id| !ids.contains(id)));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_question_is_refused_with_what_would_be_one() {
    let (program, http) = start().await;
    post(&http, &lasting("a", HOME)).await;
    post(&http, &lasting("b", HOME)).await;
    let next = page(&http, "?limit=1").await.1.expect("more");
    for (query, told) in [
        ("?bbx=1,2,3,4".to_owned(), "did you mean bbox?"),
        ("?bbox=1,2,3,4&near=1,2,3".to_owned(), "cannot be asked for together"),
        ("?bbox=1,2,,4".to_owned(), "number 3"),
        ("?near=45,100,1".to_owned(), "are they swapped?"),
        ("?where=a%20%3D".to_owned(), "where: "),
        ("?limit=1001".to_owned(), "limit must be a number from 1 to 1000"),
        ("?client=".to_owned(), "a client's name has 1 to"),
        ("?after=00".to_owned(), "after must be `next`"),
        (format!("?near=9,45,5&after={next}"), "of the same question"),
        (format!("?after={}", next.to_uppercase().replace('A', "B")), ""),
    ] {
        let problem = http.get(&format!("/v1/events{query}")).await;
        if told.is_empty() {
            continue;
        }
        let problem = problem.problem(400);
        assert!(problem["detail"].as_str().unwrap().contains(told), "{query}: {problem}");
    }
    assert_eq!(page(&http, &format!("?after={next}")).await.0.len(), 1);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_position_is_told_as_it_was() {
    let (program, http) = start().await;
    let none = http.get("/v1/clients/car/position").await.problem(404);
    assert!(none["detail"].as_str().unwrap().contains("no position of client"), "{none}");
    http.put("/v1/clients/car/position", &json!({"coordinates": [9.1918273, 45.5], "accuracy_m": 12}))
        .await
        .expect(204);
    let told = http.get("/v1/clients/car/position").await.expect(200).json();
    assert_eq!((&told["coordinates"], &told["accuracy_m"]), (&json!([9.1918273, 45.5]), &json!(12.0)));
    assert!(told["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{told}");
    http.delete("/v1/clients/car").await.expect(204);
    http.get("/v1/clients/car/position").await.problem(404);
    program.finish().await;
}

/// A call with a token: its status and its document.
async fn call(program: &Program, claims: &Value, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = http.request(method, format!("http://{}{path}", program.address()));
    let request = request.bearer_auth(ISSUER.sign(claims)).header("content-type", "application/json");
    let answer = within(path, request.body(body.to_string()).send()).await.expect("an answer");
    let status = answer.status().as_u16();
    let text = answer.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

async fn get(program: &Program, claims: &Value, path: &str) -> (u16, Value) {
    call(program, claims, Method::GET, path, &Value::Null).await
}

/// Ids, in alphabetic order.
async fn ids(program: &Program, claims: &Value, query: &str) -> Vec<String> {
    let (status, page) = get(program, claims, &format!("/v1/events{query}")).await;
    assert_eq!(status, 200, "{page}");
    let mut ids: Vec<_> = page["features"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn claim(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_confinements_and_scopes_hold() {
    let program = guarded(&ISSUER, "").0.start().await;
    let acme = |claims| claim(claims, "tenant", json!("acme"));
    let calm = |claims| claim(claims, "nearcast", json!({"where": "severity < 3"}));
    let (root, ann) = (claims(Some("root"), "admin publish"), claims(Some("ann"), "subscribe"));
    for (who, id, severity) in [(&root, "mild", 1), (&root, "grave", 3), (&acme(root.clone()), "theirs", 1)] {
        let event = with(feature(id, HOME, json!({"severity": severity})), "ttl_s", json!(600));
        assert_eq!(call(&program, who, Method::POST, "/v1/events", &event).await.0, 202);
    }
    let bbox = "?bbox=8,44,10,46";
    assert_eq!(ids(&program, &ann, bbox).await, ["grave", "mild"]);
    assert_eq!(ids(&program, &calm(ann.clone()), bbox).await, ["mild"]);
    assert_eq!(ids(&program, &calm(ann.clone()), "?where=severity%20%3E%202").await, [""; 0]);
    assert_eq!(ids(&program, &acme(ann.clone()), "").await, ["theirs"]);
    assert_eq!(get(&program, &claims(Some("ann"), "publish"), "/v1/events").await.0, 403);
    // A cursor is of one tenant.
    let next = get(&program, &ann, "/v1/events?limit=1").await.1["next"].as_str().unwrap().to_owned();
    assert_eq!(get(&program, &acme(ann.clone()), &format!("/v1/events?after={next}")).await.0, 400);
    // Of clients one sees the own one.
    let all = json!({"filters": [{"area": {"radius_m": 500}}]});
    let position = json!({"coordinates": HOME});
    assert_eq!(call(&program, &ann, Method::PUT, "/v1/clients/ann/subscriptions/s", &all).await.0, 201);
    assert_eq!(call(&program, &ann, Method::PUT, "/v1/clients/ann/position", &position).await.0, 204);
    assert_eq!(ids(&program, &ann, "?client=ann").await, ["grave", "mild"]);
    assert_eq!(get(&program, &claims(Some("bob"), "subscribe"), "/v1/events?client=ann").await.0, 403);
    assert_eq!(
        get(&program, &calm(ann.clone()), "/v1/events?client=ann").await.0,
        403,
        "it was made under another claim"
    );
    // Others are not shown what tells where it is.
    assert_eq!(ids(&program, &root, "?client=ann").await, [""; 0]);
    assert_eq!(get(&program, &ann, "/v1/clients/ann/position").await.1["coordinates"], json!(HOME));
    let (status, problem) = get(&program, &root, "/v1/clients/ann/position").await;
    assert!(status == 403 && problem["detail"].as_str().unwrap().contains("privacy.round_m"), "{problem}");
    assert_eq!(
        get(&program, &root, "/v1/clients/nobody/position").await.0,
        403,
        "nor whether it is anywhere"
    );
    assert_eq!(get(&program, &claims(Some("bob"), "subscribe"), "/v1/clients/ann/position").await.0, 403);
    program.finish().await;
}

/// Publishes live events that have so many bytes of text each.
async fn publish_long(program: &Program, who: &Value, count: usize, bytes: usize) {
    let text = "Lorem ipsum ".repeat(bytes / 48);
    let properties = json!({"a": text, "b": text, "c": text, "d": text});
    for number in 0..count {
        let event = with(feature(&format!("e{number}"), HOME, properties.clone()), "ttl_s", json!(600));
        assert_eq!(call(program, who, Method::POST, "/v1/events", &event).await.0, 202);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_questions_of_one_client_wait_for_one_another_alone() {
    let patience = "[queue]\nwait_ms = 5\n[admission]\nengine_ms_per_second = 0\n";
    let program = guarded(&ISSUER, patience).0.start().await;
    let (ann, bob) = (claims(Some("ann"), "subscribe publish"), claims(Some("bob"), "subscribe"));
    publish_long(&program, &ann, 200, 48_000).await;
    let costly =
        "/v1/events?where=CASEI(a)%20LIKE%20CASEI('%25x_y%25')%20OR%20CASEI(b)%20LIKE%20CASEI('%25x_y%25')";
    let flood = futures_util::future::join_all((0..24).map(|_| get(&program, &ann, costly)));
    let (answers, other) = tokio::join!(flood, get(&program, &bob, "/v1/events?limit=1"));
    assert_eq!(other.0, 200, "{}", other.1);
    let kind = |answer: &(u16, Value)| answer.1["type"].as_str().unwrap_or_default().to_owned();
    let refused: Vec<_> = answers.iter().filter(|answer| answer.0 == 429).map(kind).collect();
    assert!((1..24).contains(&refused.len()), "{refused:?}");
    assert!(refused.iter().all(|kind| kind == "urn:nearcast:problem:overloaded"), "{refused:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_are_not_read_are_shown_and_bounded() {
    let program = guarded(&ISSUER, "[limits]\npage_bytes_per_client = 8388608\n").0.start().await;
    let (ann, bob) = (claims(Some("ann"), "subscribe publish"), claims(Some("bob"), "subscribe admin"));
    publish_long(&program, &ann, 100, 60_000).await;
    let path = "/v1/events?limit=1000";
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", ISSUER.sign(&ann));
    let mut deaf = Vec::new();
    for _ in 0..2 {
        let mut raw = Raw::deaf(program.address()).await;
        raw.send(head.as_bytes()).await;
        let told = raw.head().await;
        assert!(told.starts_with("HTTP/1.1 200") && told.contains("content-length: 4"), "{told}");
        deaf.push(raw);
    }
    let (status, problem) = get(&program, &ann, path).await;
    assert_eq!((status, &problem["setting"]), (429, &json!("limits.page_bytes_per_client")), "{problem}");
    assert_eq!(get(&program, &bob, path).await.0, 200);
    let held = async || {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request =
            http.get(format!("http://{}/metrics", program.address())).bearer_auth(ISSUER.sign(&bob));
        let text = request.send().await.expect("an answer").text().await.expect("a body");
        let line = text.lines().find_map(|line| line.strip_prefix("nearcast_held_bytes{kind=\"pages\"} "));
        line.expect("a figure").parse::<f64>().expect("a number")
    };
    assert!(held().await > 8_000_000.0, "{}", held().await);
    drop(deaf);
    eventually("they are let go of", async || (held().await == 0.0).then_some(())).await;
    assert_eq!(get(&program, &ann, path).await.0, 200);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_is_shown_what_rounding_permits() {
    let program = guarded(&ISSUER, "[privacy]\nround_m = 1000\n").0.start().await;
    let (root, car) = (claims(None, "admin"), claims(Some("car"), "subscribe"));
    let place = [9.1918273, 45.4646391];
    let told = json!({"coordinates": place, "accuracy_m": 7});
    assert_eq!(call(&program, &car, Method::PUT, "/v1/clients/car/position", &told).await.0, 204);
    let shown = get(&program, &root, "/v1/clients/car/position").await.1;
    let listed = get(&program, &root, "/v1/clients").await.1;
    assert_eq!(shown["coordinates"], listed["clients"][0]["position"]);
    assert!(shown.get("accuracy_m").is_none() && shown["coordinates"] != json!(place), "{shown}");
    assert_eq!(get(&program, &root, "/v1/clients/nobody/position").await.0, 404);
    let confined = claim(root, "nearcast", json!({"where": "a = 1"}));
    assert_eq!(get(&program, &confined, "/v1/clients/car/position").await.0, 403);
    program.finish().await;
}

/// A delivery tells where its client was when it was decided, whatever moves came later, as far as rounding permits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_tells_where_its_client_was() {
    for round_m in [1000, 0] {
        let program = guarded(&ISSUER, &format!("[privacy]\nround_m = {round_m}\n")).0.start().await;
        let (root, car) = (claims(None, "admin publish"), claims(Some("car"), "subscribe"));
        let place = [9.1918273, 45.4646391];
        let (put, at) = (Method::PUT, "/v1/clients/car/position");
        let subscription = json!({"filters": [{"area": {"radius_m": 500}}]});
        call(&program, &car, put.clone(), "/v1/clients/car/subscriptions/s", &subscription).await;
        assert_eq!(call(&program, &car, put.clone(), at, &json!({"coordinates": place})).await.0, 204);
        let shown = get(&program, &root, at).await.1["coordinates"].clone();
        let event = feature("e", place, json!({"a": 1}));
        assert_eq!(call(&program, &root, Method::POST, "/v1/events", &event).await.0, 202);
        assert_eq!(call(&program, &car, put.clone(), at, &json!({"coordinates": [9.0, 45.0]})).await.0, 204);
        let told = async |claims: &Value| {
            let told = get(&program, claims, "/v1/events/e/deliveries").await;
            assert_eq!((told.0, &told.1["deliveries"][0]["client"]), (200, &json!("car")), "{}", told.1);
            told.1["deliveries"][0]["position"].clone()
        };
        assert_eq!(told(&root).await, if round_m == 0 { Value::Null } else { shown });
        let confined = claim(root.clone(), "nearcast", json!({"where": "a = 1"}));
        assert_eq!(told(&confined).await, Value::Null);
        // It goes with the client.
        assert_eq!(call(&program, &root, Method::DELETE, "/v1/clients/car", &Value::Null).await.0, 204);
        assert_eq!(told(&root).await, Value::Null);
        program.finish().await;
    }
}
