//! Tenants that use the same names for everything, at the same place, at the same time.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::frames::open;
use super::tokens::{ISSUER, claims};
use crate::harness::{Door, Serve, Ws, eventually, within};

/// Names that are told apart, the one that there is without a name included.
const TENANTS: [&str; 4] = ["acme", "umbrella", "", "acm"];
const PLACE: [f64; 2] = [9.19, 45.46];

fn token(tenant: &str, client: &str, scope: &str) -> String {
    let mut claims = claims(Some(client), scope);
    if !tenant.is_empty() {
        claims["tenant"] = json!(tenant);
    }
    ISSUER.sign(&claims)
}

/// Calls by a token, mostly of an admin of a tenant.
struct Admin<'a> {
    door: &'a Door,
    token: String,
}

impl Admin<'_> {
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request =
            http.request(method, format!("http://{}{path}", self.door.address())).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let answer = within(path, request.send()).await.expect("an answer");
        let status = answer.status().as_u16();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

fn admin<'a>(door: &'a Door, tenant: &str) -> Admin<'a> {
    Admin { door, token: token(tenant, "root", "admin") }
}

/// The same event of every tenant: it says whose it is.
fn event(tenant: &str, coordinates: [f64; 2], life: bool) -> Value {
    let mut event = crate::harness::feature("e", coordinates, json!({"of": tenant, "n": 1}));
    if life {
        event["key"] = json!("k");
        event["ttl_s"] = json!(600);
    }
    event
}

/// A condition of as many constraints as one may have, which every event here satisfies.
fn long_condition() -> String {
    (0..32).map(|index| format!("n < {}", index + 2)).collect::<Vec<_>>().join(" AND ")
}

/// The next frame, which is an event of the tenant; its subscriptions and its transition.
async fn own(socket: &mut Ws, tenant: &str) -> (Value, Value) {
    let frame = socket.event().await;
    assert_eq!(frame["event"]["properties"]["of"], tenant, "{frame}");
    assert!(!frame.to_string().contains("\\u0001"), "{frame}");
    let mut names: Vec<_> =
        frame["subscriptions"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    (json!(names), frame["transition"].clone())
}

/// Everything that tenants could meet in.
async fn never_meet(door: &Door) {
    let mut sockets = Vec::new();
    for tenant in TENANTS {
        let mut car = open(door, "car", &token(tenant, "car", "publish subscribe")).await.expect("it may");
        car.place(PLACE).await;
        car.subscribe(
            "around",
            json!({"filters": [{"area": {"radius_m": 500}, "where": "n = 1"}], "durable": true}),
        )
        .await;
        car.subscribe("long", json!({"filters": [{"where": long_condition()}]})).await;
        // Whatever it says of the broker's own attribute, it is asked of its own tenant's events.
        let foreign = json!({"op": "or", "args": [{"op": "isNull", "args": [{"property": "\u{1}tenant"}]},
            {"op": "<>", "args": [{"property": "\u{1}tenant"}, tenant]}]});
        car.subscribe("foreign", json!({"filters": [{"where": foreign}]})).await;
        sockets.push((tenant, car));
    }
    // Passing events.
    for (tenant, car) in &mut sockets {
        car.publish(&event(tenant, PLACE, false)).await;
        assert_eq!(own(car, tenant).await, (json!(["around", "long"]), Value::Null));
    }
    for (_, car) in &mut sockets {
        car.ok(json!({"op": "unsubscribe", "id": "long"})).await;
        car.ok(json!({"op": "unsubscribe", "id": "around"})).await;
        car.subscribe(
            "near",
            json!({"filters": [{"area": {"radius_m": 500, "nearest": 1}}], "on": ["enter", "exit"]}),
        )
        .await;
        car.subscribe("in", json!({"filters": [{"area": {"radius_m": 500}}], "on": ["enter", "exit"]})).await;
    }
    // Live ones: of one key and one id, and of each tenant the nearest.
    for (tenant, car) in &mut sockets {
        car.publish(&event(tenant, PLACE, true)).await;
        assert_eq!(own(car, tenant).await, (json!(["in", "near"]), json!("enter")));
    }
    for (_, car) in &mut sockets {
        // Nobody's object was replaced, or made second.
        car.assert_quiet().await;
    }
    // A subscriber that moves.
    for (tenant, car) in &mut sockets {
        car.place([9.5, 45.5]).await;
        assert_eq!(own(car, tenant).await, (json!(["in", "near"]), json!("exit")));
        car.place(PLACE).await;
        assert_eq!(own(car, tenant).await, (json!(["in", "near"]), json!("enter")));
        car.assert_quiet().await;
    }
    for tenant in TENANTS {
        let admin = admin(door, tenant);
        let (status, told) = admin.call("GET", "/v1/events/e/deliveries", None).await;
        let deliveries = told["deliveries"].as_array().expect("deliveries");
        assert_eq!((status, &told["id"], deliveries.len()), (200, &json!("e"), 4), "{told}");
        assert!(deliveries.iter().all(|one| one["client"] == "car"), "{told}");
        let question = json!({"client": "car", "subscription": "in", "event": "e"});
        let own = Admin { door, token: token(tenant, "car", "subscribe") };
        let (status, told) = own.call("POST", "/v1/explain", Some(question)).await;
        assert_eq!((status, &told["matched"], &told["client"]), (200, &json!(true), &json!("car")), "{told}");
        assert_eq!(told["filters"][0]["condition"]["constraints"], json!([]), "{told}");
        let (status, told) = admin.call("GET", "/v1/clients/car/subscriptions", None).await;
        assert!(
            status == 200
                && !told.to_string().contains("tenant\"}\"")
                && told.as_array().is_some_and(|all| all.len() == 3),
            "{told}"
        );
    }
    // An end.
    let [(_, first), rest @ ..] = &mut sockets[..] else { panic!("several") };
    let (status, _) = admin(door, TENANTS[0]).call("DELETE", "/v1/events/e", None).await;
    assert_eq!(status, 204);
    assert_eq!(own(first, TENANTS[0]).await, (json!(["in", "near"]), json!("exit")));
    assert_eq!(admin(door, TENANTS[0]).call("DELETE", "/v1/events/e", None).await.0, 404);
    for (_, car) in rest.iter_mut() {
        car.assert_quiet().await;
    }
    // The end of a client, and of nobody else by its name.
    assert_eq!(admin(door, TENANTS[0]).call("DELETE", "/v1/clients/car", None).await.0, 204);
    assert_eq!(first.closed().await.0, 1000);
    for (tenant, car) in rest.iter_mut() {
        car.publish(&event(tenant, [9.5, 45.5], true)).await;
        assert_eq!(own(car, tenant).await, (json!(["in", "near"]), json!("exit")));
        car.assert_quiet().await;
        let (_, told) = admin(door, tenant).call("GET", "/v1/clients/car/subscriptions", None).await;
        assert_eq!(told.as_array().map(Vec::len), Some(3), "{told}");
    }
    // What only the broker says of an event.
    for name in ["\u{1}tenant", "\u{1}"] {
        let mut forged = event("acme", PLACE, false);
        forged["properties"] = json!({name: "umbrella"});
        let (status, problem) = admin(door, "acme").call("POST", "/v1/events", Some(forged)).await;
        assert_eq!(status, if name == "\u{1}" { 202 } else { 400 }, "{problem}");
    }
    // An id that looks like one of another tenant's inside.
    let (status, _) = admin(door, "").call("DELETE", "/v1/events/%01umbrella%01e", None).await;
    assert_eq!(status, 404);
    // Who runs the broker sees whose each is, page by page.
    let mut seen = Vec::new();
    let mut page = "/v1/clients?limit=1".to_owned();
    loop {
        let (status, told) = admin(door, "").call("GET", &page, None).await;
        assert_eq!(status, 200, "{told}");
        for one in told["clients"].as_array().expect("clients") {
            assert_eq!(one["client"], "car", "{told}");
            seen.push(one["tenant"].as_str().unwrap_or_default().to_owned());
        }
        let Some(next) = told["next"].as_str() else { break };
        let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        page = format!("/v1/clients?limit=1&after={next}");
    }
    seen.sort_unstable();
    assert_eq!(seen, ["", "acm", "umbrella"]);
    // Disconnected are those of the tenant alone.
    assert_eq!(admin(door, "acm").call("DELETE", "/v1/clients/car/connections", None).await.0, 204);
    for (tenant, car) in rest {
        if *tenant == "acm" {
            assert_eq!(car.closed().await.0, 1008);
        } else {
            car.assert_quiet().await;
        }
    }
    for path in ["/v1/stats", "/v1/stats/history", "/metrics", "/v1/clients"] {
        assert_eq!(admin(door, "acme").call("GET", path, None).await.0, 403, "{path}");
        assert_eq!(admin(door, "").call("GET", path, None).await.0, 200, "{path}");
    }
}

/// Durable sessions of all tenants, and live events, over a crash of the broker.
fn durable(engine: &str, data: &Path) -> (Serve, std::path::PathBuf) {
    let (serve, jwks) = super::guarded(&ISSUER, "");
    let data = data.to_str().expect("a plain path");
    (serve.args(&["--engine", engine, "--data", data]), jwks)
}

async fn meet_neither_after_a_restart(engine: &str) {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let program = durable(engine, &data).0.start().await;
    for tenant in TENANTS {
        let admin = admin(&program, tenant);
        let subscription = json!({"filters": [{"area": {"radius_m": 500}}], "durable": true});
        assert_eq!(admin.call("PUT", "/v1/clients/car/subscriptions/s", Some(subscription)).await.0, 201);
        let subscription = json!({"filters": [{"area": {"radius_m": 500}}], "durable": true, "on": ["exit"]});
        assert_eq!(admin.call("PUT", "/v1/clients/car/subscriptions/t", Some(subscription)).await.0, 201);
        assert_eq!(
            admin.call("PUT", "/v1/clients/car/position", Some(json!({"coordinates": PLACE}))).await.0,
            204
        );
    }
    for tenant in TENANTS {
        assert_eq!(
            admin(&program, tenant).call("POST", "/v1/events", Some(event(tenant, PLACE, true))).await.0,
            202
        );
    }
    program.kill();
    let program = durable(engine, &data).0.start().await;
    for tenant in TENANTS {
        // What was live is so still, and of nobody else.
        let question = json!({"client": "car", "subscription": "s", "event": "e"});
        let own = Admin { door: &program, token: token(tenant, "car", "subscribe") };
        let (status, told) = own.call("POST", "/v1/explain", Some(question)).await;
        assert_eq!((status, &told["matched"]), (200, &json!(true)), "{told}");
    }
    for tenant in TENANTS {
        let mut car =
            open(&program, "car", &token(tenant, "car", "publish subscribe")).await.expect("it may");
        assert_eq!(own(&mut car, tenant).await, (json!(["s"]), Value::Null));
        car.publish(&event(tenant, PLACE, false)).await;
        assert_eq!(own(&mut car, tenant).await, (json!(["s"]), Value::Null));
        car.place([9.5, 45.5]).await;
        assert_eq!(own(&mut car, tenant).await, (json!(["t"]), json!("exit")));
        car.assert_quiet().await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_never_meet() {
    for engine in ["scan", "cells"] {
        let program =
            super::guarded(&ISSUER, "").0.args(&["--engine", engine, "--shards", "2"]).start().await;
        never_meet(&program).await;
        program.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_do_not_meet_after_a_restart() {
    for engine in ["scan", "cells"] {
        meet_neither_after_a_restart(engine).await;
    }
}

#[cfg(feature = "gpu")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_never_meet_on_a_device() {
    use broker::Config;
    use broker::config::{AuthMode, EngineName};
    use device::Device;

    let folder = TempDir::new().expect("a folder");
    let jwks = folder.path().join("keys.json");
    ISSUER.write(&jwks);
    for engine in [EngineName::Clcb, EngineName::Gpu] {
        let mut config = Config::default();
        (config.auth.mode, config.server.engine) = (AuthMode::Jwt, engine);
        config.auth.jwks = jwks.to_str().expect("a plain path").to_owned();
        let devices = [Device::host(1 << 30)];
        let program = crate::harness::Inside::start(config, &devices).await;
        eventually("it is ready", async || (program.http().get("/readyz").await.status == 200).then_some(()))
            .await;
        never_meet(&program).await;
        program.finish().await;
    }
}
