//! Where a client is: what others are shown of it.

use serde_json::{Value, json};

use super::guarded;
use super::tokens::{ISSUER, claims};
use crate::harness::{Program, feature, within};

/// Digits that stand in the client's coordinates and nowhere else.
const MARKS: [&str; 2] = ["18273", "46391"];
const PLACE: [f64; 2] = [9.1918273, 45.4646391];

async fn call(program: &Program, claims: &Value, method: reqwest::Method, path: &str, body: &Value) -> Value {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = http.request(method, format!("http://{}{path}", program.address()));
    let request = request.bearer_auth(ISSUER.sign(claims)).header("content-type", "application/json");
    let answer = within(path, request.body(body.to_string()).send()).await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    serde_json::from_str(&answer.text().await.expect("a body")).unwrap_or(Value::Null)
}

async fn explain(program: &Program, claims: &Value, position: Option<[f64; 2]>) -> Value {
    let mut question = json!({
        "client": "car",
        "subscription": {"filters": [{"area": {"radius_m": 5_000}}]},
        "event": feature("e", [9.2, 45.47], json!({})),
    });
    if let Some(position) = position {
        question["position"] = json!(position);
    }
    call(program, claims, reqwest::Method::POST, "/v1/explain", &question).await
}

/// A broker that knows where the client is; what it tells an operator, and what it logs.
async fn shown(config: &str) -> (Program, Value) {
    let config = format!("{config}[log]\nfilter = \"info,broker=trace\"\n");
    let program = guarded(&ISSUER, &config).0.start().await;
    let car = claims(Some("car"), "subscribe");
    let put = reqwest::Method::PUT;
    let path = "/v1/clients/car/position";
    call(&program, &car, put.clone(), path, &json!({"coordinates": PLACE})).await;
    let path = "/v1/clients/nowhere/subscriptions/s";
    call(&program, &claims(None, "admin"), put, path, &json!({"filters": [{}]})).await;
    // The client itself is told all, and whoever brings a place along is told of that.
    let own = explain(&program, &car, None).await;
    assert_eq!((&own["position"]["coordinates"], &own["matched"]), (&json!(PLACE), &json!(true)), "{own}");
    let brought = explain(&program, &claims(None, "admin"), Some([9.0, 45.0])).await;
    assert_eq!(
        (&brought["position"]["coordinates"], &brought["matched"]),
        (&json!([9.0, 45.0]), &json!(false))
    );
    let listed =
        call(&program, &claims(None, "admin"), reqwest::Method::GET, "/v1/clients", &json!({})).await;
    let told = listed.to_string() + &program.log();
    assert!(MARKS.iter().all(|mark| !told.contains(mark)), "{told}");
    (program, listed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_shown_no_position_unless_set() {
    let (program, listed) = shown("").await;
    for client in listed["clients"].as_array().expect("clients") {
        assert!(client.get("position").is_none(), "{client}");
    }
    assert!(!program.log().contains("moved"), "{}", program.log());
    for admin in [claims(None, "admin"), claims(Some("bus"), "admin")] {
        let told = explain(&program, &admin, None).await;
        assert_eq!((&told["position"], &told["position_withheld"]), (&Value::Null, &json!(true)), "{told}");
        assert_eq!(
            (&told["matched"], &told["filters"][0]["area"]["distance_m"]),
            (&json!(false), &Value::Null)
        );
    }
    // Whoever is the client is told what it is, whatever else it may do.
    let own = explain(&program, &claims(Some("car"), "admin"), None).await;
    assert!(own["matched"] == true && own.get("position_withheld").is_none(), "{own}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_shown_where_a_client_is_as_exactly_as_set() {
    let (program, listed) = shown("[privacy]\nround_m = 1000\n").await;
    let [car, nowhere] = listed["clients"].as_array().expect("clients").as_slice() else {
        panic!("{listed}")
    };
    assert!(nowhere.get("position").is_none(), "{nowhere}");
    let [lon, lat] = [0, 1].map(|idx| car["position"][idx].as_f64().expect("a number"));
    // A degree is 111 km along a meridian, and 78 here along a parallel.
    let (east_m, north_m) = ((lon - PLACE[0]) * 78_000.0, (lat - PLACE[1]) * 111_200.0);
    assert!(east_m.hypot(north_m) < 1_300.0, "{car}");
    let told = explain(&program, &claims(None, "admin"), None).await;
    assert_eq!(
        (&told["position"]["coordinates"], &told["matched"]),
        (&car["position"], &json!(true)),
        "{told}"
    );
    assert!(MARKS.iter().all(|mark| !told.to_string().contains(mark)), "{told}");
    // From there, and not from where the client is.
    let from_there = explain(&program, &claims(None, "admin"), Some([lon, lat])).await;
    assert_eq!(told["filters"], from_there["filters"]);
    let moved = format!("x={lon:?} y={lat:?}");
    program.says(&moved).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_an_area_along_a_route_lies_is_kept_from_others() {
    let folder = crate::routes::square();
    for round_m in [0, 500] {
        let config = format!(
            "[routes]\nstreets = {:?}\n[privacy]\nround_m = {round_m}\n",
            folder.path().display().to_string()
        );
        let program = guarded(&ISSUER, &config).0.start().await;
        let (car, put) = (claims(Some("car"), "subscribe"), reqwest::Method::PUT);
        call(&program, &car, put.clone(), "/v1/clients/car/position", &json!({"coordinates": [0.0, 0.0]}))
            .await;
        let area = json!({"route": {"to": [0.0, 0.01]}, "radius_m": 50});
        let path = "/v1/clients/car/subscriptions/way";
        call(&program, &car, put, path, &json!({"filters": [{"area": area}]})).await;
        let mut event = feature("on-it", [0.0, 0.005], json!({}));
        event["ttl_s"] = json!(60);
        let (publisher, post) = (claims(None, "publish"), reqwest::Method::POST);
        call(&program, &publisher, post, "/v1/events", &event).await;
        for (claims, is_told) in [(&car, true), (&claims(None, "admin"), false)] {
            let path = "/v1/events?client=car";
            let live = call(&program, claims, reqwest::Method::GET, path, &Value::Null).await;
            assert_eq!(live["numberReturned"], u32::from(is_told), "{live}");
            let question = json!({"client": "car", "subscription": "way", "event": feature("e", [0.003, 0.0], json!({}))});
            let told = call(&program, claims, reqwest::Method::POST, "/v1/explain", &question).await;
            let area = &told["filters"][0]["area"];
            assert_eq!((area["distance_m"].is_number(), &area["form"]), (is_told, &json!("route")), "{told}");
        }
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_told_the_way_from_where_they_are_shown_a_client_and_not_the_one_in_force() {
    let folder = crate::routes::square();
    let streets = format!("[routes]\nstreets = {:?}\n", folder.path().display().to_string());
    let program = guarded(&ISSUER, &(streets + "[privacy]\nround_m = 1500\n")).0.start().await;
    let (car, get) = (claims(Some("car"), "subscribe"), reqwest::Method::GET);
    let path = "/v1/clients/car/subscriptions/way";
    let document = json!({"filters": [{"area": {"route": {"to": [0.01, 0.01]}, "radius_m": 50}}]});
    call(&program, &car, reqwest::Method::PUT, path, &document).await;
    let routes = async |claims: &Value| {
        let told = call(&program, claims, get.clone(), "/v1/clients/car/routes", &Value::Null).await;
        told["routes"][0].clone()
    };
    let admin = claims(None, "admin");
    assert_eq!(routes(&admin).await["state"], "no-position");
    // All places of a cell look the same, however the way in force leads.
    let mut shown = Vec::new();
    for place in [[0.01, 0.0], [0.002, 0.0], [0.01, 0.002], [0.0, 0.002]] {
        let path = "/v1/clients/car/position";
        call(&program, &car, reqwest::Method::PUT, path, &json!({"coordinates": place})).await;
        let own = routes(&car).await;
        assert!(own["route"].is_object() && own.get("approximate").is_none(), "{own}");
        let position = call(&program, &admin, get.clone(), path, &Value::Null).await["coordinates"].clone();
        let mut told = routes(&admin).await;
        assert_eq!(told["approximate"], true, "{told}");
        let question = json!({"from": position, "to": [0.01, 0.01]});
        let found = call(&program, &admin, reqwest::Method::POST, "/v1/routes", &question).await;
        assert_eq!(told["route"], found["route"], "{told}");
        told["own"] = own["route"].clone();
        shown.push((position, told));
    }
    let is_other =
        |(one, other): (&Value, &Value)| one["own"] != other["own"] && one["route"] == other["route"];
    let alike = shown.iter().flat_map(|one| shown.iter().map(move |other| (one, other)));
    let mut alike = alike.filter(|(one, other)| one.0 == other.0);
    assert!(alike.any(|(one, other)| is_other((&one.1, &other.1))), "{shown:?}");
    program.finish().await;
}
