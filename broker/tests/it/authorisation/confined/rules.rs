//! What a confined token may do, call by call, and what becomes of a client whose next token is confined otherwise.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Caller, ask_for, confined, world};
use crate::authorisation::guarded;
use crate::authorisation::tokens::{ISSUER, claims};
use crate::harness::{Door, Serve, Ws, eventually, feature, run_to_end};

const CALM: &str = r#"{"where": "severity < 3"}"#;

fn calm() -> Value {
    serde_json::from_str(CALM).expect("JSON")
}

fn caller<'a>(door: &'a Door, client: &str, scope: &str, claim: &Value) -> Caller<'a> {
    Caller { door, token: confined(client, "", scope, claim) }
}

fn root(door: &Door) -> Caller<'_> {
    caller(door, "root", "admin", &Value::Null)
}

fn event(id: &str, severity: u8, key: Option<&str>) -> Value {
    let mut event = feature(id, [9.0, 45.0], json!({"severity": severity}));
    if let Some(key) = key {
        event["key"] = json!(key);
    }
    event
}

#[track_caller]
fn assert_forbidden((status, problem): &(u16, Value)) {
    assert_eq!((*status, &problem["type"]), (403, &json!("urn:nearcast:problem:forbidden")), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("claim nearcast")), "{problem}");
}

async fn with_data(data: &std::path::Path) -> crate::harness::Program {
    guarded(&ISSUER, "").0.args(&["--data", data.to_str().expect("a plain path")]).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_outside_are_refused_one_by_one() {
    let program = guarded(&ISSUER, "").0.start().await;
    let ann = caller(&program, "ann", "publish", &calm());
    assert_eq!(ann.call("POST", "/v1/events", Some(event("e", 2, None))).await.0, 202);
    assert_forbidden(&ann.call("POST", "/v1/events", Some(event("e", 3, None))).await);
    let batch = json!({"type": "FeatureCollection", "features": [event("a", 2, None), event("b", 3, None), event("c", 0, None)]});
    let (status, answer) = ann.call("POST", "/v1/events", Some(batch)).await;
    assert_eq!((status, &answer["accepted"]), (202, &json!(2)), "{answer}");
    assert_eq!(answer["rejected"][0]["problem"]["type"], "urn:nearcast:problem:forbidden", "{answer}");
    // What is wrong is told as that.
    let (status, problem) = ann.call("POST", "/v1/events", Some(json!({"type": "Feature"}))).await;
    assert_eq!(status, 400, "{problem}");
    program.finish().await;
}

/// What others have published under a key or an id is neither ended, nor replaced, nor betrayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_outside_is_as_if_it_were_not_there() {
    let program = guarded(&ISSUER, "").0.start().await;
    let (free, ann) =
        (caller(&program, "root", "admin", &Value::Null), caller(&program, "ann", "admin", &calm()));
    let mut watch = Ws::open(ask_for(&program, "root", &free.token, ""), "root").await.expect("it may");
    watch.subscribe("s", json!({"filters": [{}], "on": ["enter", "exit"]})).await;
    watch.publish(&event("e", 4, Some("k"))).await;
    assert_eq!(watch.event().await["transition"], "enter");
    for id in ["e", "nothing"] {
        let own = json!({"filters": [{"where": "severity = 4"}]});
        let question = json!({"client": "ann", "subscription": own, "event": id});
        let told = [
            ann.call("DELETE", &format!("/v1/events/{id}"), None).await,
            ann.call("GET", &format!("/v1/events/{id}/deliveries"), None).await,
            ann.call("POST", "/v1/explain", Some(question)).await,
        ];
        for (status, problem) in told {
            let text = problem.to_string().replace(id, "X");
            assert_eq!((status, text.contains("X")), (404, true), "{problem}");
        }
    }
    // By the same key it is another object, which the first one's publisher does not lose.
    assert_eq!(ann.call("POST", "/v1/events", Some(event("e", 1, Some("k")))).await.0, 202);
    assert_eq!(watch.event().await["transition"], "enter");
    let question = json!({"client": "ann", "subscription": {"filters": [{"where": "severity = 1 AND a = 1"}]}, "event": "e"});
    let (status, told) = ann.call("POST", "/v1/explain", Some(question)).await;
    assert_eq!((status, &told["matched"]), (200, &json!(false)), "{told}");
    let shown: Vec<_> = told["filters"][0]["condition"]["constraints"]
        .as_array()
        .expect("constraints")
        .iter()
        .map(|one| one["constraint"].as_str().expect("a text"))
        .collect();
    assert_eq!(shown, ["severity = 1", "a = 1"], "{told}");
    assert_eq!(told["why"], "there is no attribute a", "{told}");
    let (status, told) = ann.call("GET", "/v1/events/e/deliveries", None).await;
    assert_eq!((status, told["deliveries"].as_array().map(Vec::len)), (200, Some(1)), "{told}");
    let (_, told) = free.call("GET", "/v1/events/e/deliveries", None).await;
    assert_eq!(told["deliveries"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!(ann.call("DELETE", "/v1/events/e", None).await.0, 204);
    let exit = watch.event().await;
    assert_eq!((&exit["transition"], &exit["event"]["properties"]["severity"]), (&json!("exit"), &json!(1)));
    assert_eq!(ann.call("DELETE", "/v1/events/e", None).await.0, 404);
    assert_eq!(free.call("DELETE", "/v1/events/e", None).await.0, 204);
    assert_eq!(watch.event().await["transition"], "exit");
    // Passing events that went to somebody are remembered, and of those outside nothing is told either.
    watch.subscribe("t", json!({"filters": [{}]})).await;
    watch.publish(&event("p", 4, None)).await;
    watch.event().await;
    assert_eq!(free.call("GET", "/v1/events/p/deliveries", None).await.0, 200);
    assert_eq!(ann.call("GET", "/v1/events/p/deliveries", None).await.0, 404);
    for path in ["/v1/clients", "/v1/stats", "/v1/stats/history", "/metrics"] {
        assert_eq!(free.call("GET", path, None).await.0, 200, "{path}");
        assert_forbidden_to_operate(&ann.call("GET", path, None).await);
    }
    program.finish().await;
}

#[track_caller]
fn assert_forbidden_to_operate((status, problem): &(u16, Value)) {
    assert_eq!((*status, &problem["type"]), (403, &json!("urn:nearcast:problem:forbidden")), "{problem}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_a_client_its_own_condition() {
    let program = guarded(&ISSUER, "").0.start().await;
    let (free, ann) =
        (caller(&program, "root", "admin", &Value::Null), caller(&program, "ann", "subscribe", &calm()));
    let own = json!({"filters": [{"where": "severity >= 1"}]});
    let (status, made) = ann.call("PUT", "/v1/clients/ann/subscriptions/s", Some(own.clone())).await;
    assert_eq!((status, &made["filters"][0]["where"]), (201, &json!("severity >= 1")), "{made}");
    let question =
        |severity| json!({"client": "ann", "subscription": "s", "event": event("e", severity, None)});
    let (_, told) = ann.call("POST", "/v1/explain", Some(question(2))).await;
    assert_eq!(
        (&told["matched"], &told["filters"][0]["condition"]["constraints"][1]),
        (&json!(true), &Value::Null)
    );
    assert_forbidden(&ann.call("POST", "/v1/explain", Some(question(3))).await);
    // Who is not confined may know why it does not come.
    let (_, told) = free.call("POST", "/v1/explain", Some(question(3))).await;
    assert!(
        told["matched"] == false && told["why"].as_str().is_some_and(|why| why.contains("claim nearcast")),
        "{told}"
    );
    assert_eq!(told["filters"][0]["condition"]["constraints"].as_array().map(Vec::len), Some(1), "{told}");
    // Together they may be too large, which is said of the filter.
    let many = |count: u32| (0..count).map(|n| format!("a = {n}")).collect::<Vec<_>>().join(" OR ");
    let eight = json!({"where": many(8)});
    let bob = caller(&program, "bob", "subscribe", &eight);
    let put = async |count| {
        let document = json!({"filters": [{}, {"where": many(count)}]});
        bob.call("PUT", "/v1/clients/bob/subscriptions/s", Some(document)).await
    };
    assert_eq!(put(8).await.0, 201);
    let (status, problem) = put(9).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("/filters/1/where")), "{problem}");
    assert!(
        problem["errors"][0]["detail"].as_str().is_some_and(|told| told.contains("claim nearcast")),
        "{problem}"
    );
    program.finish().await;
}

/// Everything of a client is of one confinement until it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_one_confinement() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let mut program = with_data(&data).await;
    let narrow = json!({"where": "severity < 1"});
    let subscription = json!({"filters": [{}], "durable": true});
    let put = async |program: &Door, claim: &Value| {
        let ann = caller(program, "ann", "subscribe", claim);
        ann.call("PUT", "/v1/clients/ann/subscriptions/s", Some(subscription.clone())).await
    };
    let stream = async |program: &Door, claim: &Value| {
        caller(program, "ann", "subscribe", claim).call("GET", "/v1/clients/ann/events", None).await
    };
    assert_eq!(put(&program, &calm()).await.0, 201);
    for severity in [0, 2, 3] {
        assert_eq!(root(&program).call("POST", "/v1/events", Some(event("e", severity, None))).await.0, 202);
    }
    for round in 0..3 {
        for other in [&narrow, &Value::Null] {
            assert_forbidden(&put(&program, other).await);
            assert_forbidden(&stream(&program, other).await);
        }
        if round == 1 {
            // What is kept is what the subscription was allowed to have, also when it is gone.
            let ann = caller(&program, "ann", "subscribe", &calm());
            assert_eq!(ann.call("DELETE", "/v1/clients/ann/subscriptions/s", None).await.0, 204);
        }
        program.kill();
        program = with_data(&data).await;
    }
    let mut ann = Ws::open(ask_for(&program, "ann", &confined("ann", "", "subscribe", &calm()), ""), "ann")
        .await
        .expect("it may");
    for severity in [0, 2] {
        assert_eq!(ann.event().await["event"]["properties"]["severity"], severity);
    }
    ann.assert_quiet().await;
    // A connection goes on by a token that is confined in the same way alone.
    let auth = |claim: &Value| json!({"op": "auth", "token": confined("ann", "", "subscribe", claim)});
    for other in [&narrow, &Value::Null] {
        assert_eq!(ann.problem(auth(other)).await["type"], "urn:nearcast:problem:forbidden");
    }
    ann.ok(auth(&calm())).await;
    let (mut refused, _) = tokio_tungstenite::connect_async(ask_for(
        &program,
        "ann",
        &confined("ann", "", "subscribe", &narrow),
        "",
    ))
    .await
    .expect("it opens");
    let frame = futures_util::StreamExt::next(&mut refused).await.expect("a frame").expect("whole");
    assert!(frame.to_text().is_ok_and(|text| text.contains("forbidden")), "{frame}");
    // Begun anew it is of another one, with nothing of before.
    assert_eq!(
        caller(&program, "ann", "subscribe", &narrow).call("DELETE", "/v1/clients/ann", None).await.0,
        204
    );
    assert_eq!(ann.closed().await.0, 1000);
    assert_eq!(put(&program, &narrow).await.0, 201);
    assert_forbidden(&put(&program, &calm()).await);
    let mut ann = Ws::open(ask_for(&program, "ann", &confined("ann", "", "subscribe", &narrow), ""), "ann")
        .await
        .expect("it may");
    for severity in [2, 0] {
        assert_eq!(root(&program).call("POST", "/v1/events", Some(event("e", severity, None))).await.0, 202);
    }
    assert_eq!(ann.event().await["event"]["properties"]["severity"], 0);
    ann.assert_quiet().await;
    program.finish().await;
}

/// Nothing of what was made under one token is shown or ended under one that is confined otherwise, whichever way it asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_wider_token_made_is_neither_seen_nor_removed() {
    let program = guarded(&ISSUER, "").0.start().await;
    let narrow = json!({"where": "severity < 1"});
    let held = "/v1/clients/ann/subscriptions/s";
    let document = json!({"filters": [{"where": "severity >= 3"}]});
    let question = json!({"client": "ann", "subscription": "s", "event": event("e", 0, None)});
    let calls = [
        ("GET", held, None),
        ("GET", "/v1/clients/ann/subscriptions/none", None),
        ("GET", "/v1/clients/ann/subscriptions", None),
        ("DELETE", held, None),
        ("DELETE", "/v1/clients/ann/subscriptions/none", None),
        ("DELETE", "/v1/clients/ann/connections", None),
        ("PUT", held, Some(document.clone())),
        ("GET", "/v1/clients/ann/events", None),
        ("GET", "/v1/clients/ann/position", None),
        ("GET", "/v1/clients/ann/routes", None),
        ("PUT", "/v1/clients/ann/push", Some(crate::push::document("https://1.1.1.1/a"))),
        ("GET", "/v1/clients/ann/push", None),
        ("DELETE", "/v1/clients/ann/push", None),
        ("GET", "/v1/events?client=ann", None),
        ("POST", "/v1/explain", Some(question)),
    ];
    // All calls in a client's name are among these, or have a reason not to be.
    let others = [
        // It begins anew, and nothing of before is left.
        ("DELETE", "/v1/clients/ann"),
        // What is told of a place is held against the token's own zones.
        ("PUT", "/v1/clients/ann/position"),
        // Below, by what comes over it.
        ("GET", "/v1/clients/ann/ws"),
    ];
    let known: std::collections::BTreeSet<_> = calls
        .iter()
        .map(|(method, path, _)| (*method, *path))
        .chain(others)
        .map(|(method, path)| format!("{method} {}", path.replace("/none", "/s")))
        .collect();
    let api = program.http().get("/openapi.json").await.expect(200).json();
    let of_clients = api["paths"].as_object().expect("paths").iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("calls").keys().map(|method| method.to_uppercase());
        let path = path.replace("{client}", "ann").replace("{id}", "s");
        methods.map(move |method| format!("{method} {path}"))
    });
    for call in of_clients.filter(|call| call.contains("/clients/ann")) {
        assert!(known.contains(&call), "{call}: say here whether it is held against the confinement");
    }
    for wider in [Value::Null, calm()] {
        let owner = caller(&program, "ann", "subscribe admin", &wider);
        assert_eq!(owner.call("PUT", held, Some(document.clone())).await.0, 201);
        let mut reader = Ws::open(ask_for(&program, "ann", &owner.token, ""), "ann").await.expect("it may");
        for scope in ["subscribe admin", "subscribe"] {
            let narrower = caller(&program, "ann", scope, &narrow);
            // To disconnect clients takes the other scope in any case.
            let calls =
                calls.iter().filter(|(_, path, _)| scope != "subscribe" || !path.ends_with("/connections"));
            for (method, path, body) in calls {
                let refused = narrower.call(method, path, body.clone()).await;
                assert_forbidden(&refused);
                assert!(!refused.1.to_string().contains("severity"), "{method} {path}: {}", refused.1);
            }
            // What a connection asks it has to be there for.
            for frame in [json!({"op": "unsubscribe", "id": "s"}), json!({"op": "ack", "offset": 0})] {
                for query in ["", "?resume=a:0"] {
                    let request = ask_for(&program, "ann", &narrower.token, query);
                    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.expect("it opens");
                    let text = frame.to_string();
                    // It may be closed by now.
                    let _ = futures_util::SinkExt::send(&mut socket, text.into()).await;
                    let told =
                        futures_util::StreamExt::next(&mut socket).await.expect("a frame").expect("whole");
                    assert!(told.to_text().is_ok_and(|text| text.contains("forbidden")), "{told}");
                }
            }
        }
        // Who is not confined may look at everything, and nothing is gone.
        let (status, listed) = root(&program).call("GET", "/v1/clients/ann/subscriptions", None).await;
        assert_eq!((status, listed.as_array().map(Vec::len)), (200, Some(1)), "{listed}");
        reader.assert_quiet().await;
        assert_eq!(owner.call("GET", held, None).await.0, 200);
        assert_eq!(owner.call("DELETE", held, None).await.0, 204);
        assert_eq!(owner.call("DELETE", "/v1/clients/ann", None).await.0, 204);
    }
    // A client that has nothing is anybody's.
    let narrower = caller(&program, "ann", "subscribe admin", &narrow);
    let (status, listed) = narrower.call("GET", "/v1/clients/ann/subscriptions", None).await;
    assert_eq!((status, listed), (200, json!([])));
    assert_eq!(narrower.call("DELETE", held, None).await.0, 404);
    program.finish().await;
}

/// Data of tenants, or of who is confined, is not for everybody to see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_tokens_nobody_sees_what_they_kept_apart() {
    for (tenant, claim) in [("acme", Value::Null), ("", calm())] {
        let folder = TempDir::new().expect("a folder");
        let data = folder.path().join("data");
        let program = with_data(&data).await;
        let token = confined("wilma", tenant, "publish subscribe", &claim);
        let wilma = Caller { door: &program, token };
        let document = json!({"filters": [{}]});
        assert_eq!(wilma.call("PUT", "/v1/clients/wilma/subscriptions/s", Some(document)).await.0, 201);
        program.finish().await;
        let plain = Serve::new().args(&["--data", data.to_str().expect("a plain path")]);
        let (status, told) = plain.try_start().await.err().expect("it is not for everybody");
        assert!(
            !status.success() && told.contains("auth.mode") && !told.contains("wilma"),
            "{status}: {told}"
        );
        let program = with_data(&data).await;
        let token = confined("wilma", tenant, "publish subscribe", &claim);
        let wilma = Caller { door: &program, token };
        assert_eq!(wilma.call("DELETE", "/v1/clients/wilma", None).await.0, 204);
        program.finish().await;
        Serve::new().args(&["--data", data.to_str().expect("a plain path")]).start().await.finish().await;
    }
}

#[test]
fn zones_with_faults_are_told_before_anything_listens() {
    let folder = TempDir::new().expect("a folder");
    ISSUER.write(&folder.path().join("keys.json"));
    let good = world::zones();
    let mut far = good.clone();
    far["features"][1]["geometry"]["coordinates"][0][0][2] = json!([9.0, 95.0]);
    let mut nameless = good.clone();
    nameless["features"][0]["id"] = Value::Null;
    for (name, text, words) in [
        ("far.json", far.to_string(), &["/features/1/geometry/coordinates/0/0/2", "latitude"][..]),
        ("nameless.json", nameless.to_string(), &["/features/0/id"]),
        ("broken.json", "{".to_owned(), &["line 1"]),
        ("other.json", "{}".to_owned(), &["FeatureCollection"]),
        ("missing.json", String::new(), &["cannot be read"]),
    ] {
        if !text.is_empty() {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        let config = folder.path().join("config.toml");
        std::fs::write(
            &config,
            format!("[auth]\nmode = \"jwt\"\njwks = \"keys.json\"\nzones = \"{name}\"\n"),
        )
        .expect("written");
        let output =
            run_to_end(&["serve", "--listen", "127.0.0.1:0", "--config", "config.toml"], &[], folder.path());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && output.stdout.is_empty(), "{name}: {told}");
        for word in words.iter().chain(&["auth.zones", name]) {
            assert!(told.contains(word), "{name}, {word}: {told}");
        }
    }
}

/// A client that is confined to zones is not elsewhere, nor on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_outside_of_the_zones_are_refused() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("zones.json");
    std::fs::write(&file, world::zones().to_string()).expect("written");
    let program =
        guarded(&ISSUER, &format!("zones = {:?}\n", file.to_str().expect("a plain path"))).0.start().await;
    let (inside, outside) = (world::corner(1, 1), world::corner(9, 9));
    let ann = caller(&program, "ann", "subscribe", &json!({"zones": ["harbour", "isles"]}));
    let put = async |document| ann.call("PUT", "/v1/clients/ann/position", Some(document)).await;
    assert_eq!(put(json!({"coordinates": inside})).await.0, 204);
    assert_forbidden(&put(json!({"coordinates": outside})).await);
    let on_the_way = |places: [[f64; 2]; 3]| json!({"track": places.map(|[x, y]| [x, y, 0.0])});
    assert_forbidden(&put(on_the_way([inside, outside, inside])).await);
    assert_eq!(put(on_the_way([inside, world::corner(2, 3), world::corner(10, 2)])).await.0, 204);
    let many = json!([{"client": "ann", "coordinates": inside}, {"client": "ann", "coordinates": outside}]);
    let (_, answer) = ann.call("POST", "/v1/positions", Some(many)).await;
    assert_eq!((&answer["moved"], &answer["rejected"][0]["index"]), (&json!(1), &json!(1)), "{answer}");
    program.finish().await;
}

/// What lies in two holes of a zone lies outside of the zone, as what lies in one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holes_that_overlap_are_outside_of_a_zone() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("zones.json");
    let ring = |[west, south, east, north]: [f64; 4]| {
        json!([[west, south], [east, south], [east, north], [west, north], [west, south]])
    };
    let rings =
        [[9.0, 45.0, 10.0, 46.0], [9.2, 45.2, 9.6, 45.6], [9.4, 45.4, 9.8, 45.8], [9.9, 45.9, 11.0, 47.0]];
    let geometry = json!({"type": "Polygon", "coordinates": rings.map(ring)});
    let zone = json!({"type": "Feature", "id": "ring road", "properties": {}, "geometry": geometry});
    std::fs::write(&file, json!({"type": "FeatureCollection", "features": [zone]}).to_string())
        .expect("written");
    let program =
        guarded(&ISSUER, &format!("zones = {:?}\n", file.to_str().expect("a plain path"))).0.start().await;
    let ann = caller(&program, "ann", "publish subscribe", &json!({"zones": ["ring road"]}));
    for (place, is_inside) in [
        ([9.1, 45.1], true),
        ([9.2, 45.3], true),
        ([9.3, 45.3], false),
        ([9.5, 45.5], false),
        ([9.4, 45.5], false),
        ([9.7, 45.7], false),
        ([9.95, 45.95], false),
        ([10.5, 46.5], false),
    ] {
        let published = ann.call("POST", "/v1/events", Some(feature("e", place, json!({})))).await;
        let document = json!({"coordinates": place});
        let moved = ann.call("PUT", "/v1/clients/ann/position", Some(document)).await;
        if is_inside {
            assert_eq!((published.0, moved.0), (202, 204), "{place:?}: {} {}", published.1, moved.1);
        } else {
            assert_forbidden(&published);
            assert_forbidden(&moved);
        }
    }
    program.finish().await;
}

/// Neither counts nor ids tell how much others publish.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_of_what_one_may_know() {
    let program = guarded(&ISSUER, "").0.args(&["--shards", "1"]).start().await;
    let of = |tenant: &str, client: &str, claim: &Value| Caller {
        door: &program,
        token: confined(client, tenant, "publish subscribe", claim),
    };
    let holders = [of("", "ann", &calm()), of("", "bob", &Value::Null), of("acme", "bob", &Value::Null)];
    let names = ["ann", "bob", "bob"];
    for (holder, name) in holders.iter().zip(names) {
        let path = format!("/v1/clients/{name}/subscriptions/s");
        let document = json!({"filters": [{"where": "severity >= 2"}]});
        assert_eq!(holder.call("PUT", &path, Some(document)).await.0, 201);
    }
    let [_, bob, other] = &holders;
    for severity in [1, 2, 3, 4] {
        assert_eq!(bob.call("POST", "/v1/events", Some(event("e", severity, None))).await.0, 202);
    }
    assert_eq!(other.call("POST", "/v1/events", Some(event("e", 1, None))).await.0, 202);
    for ((holder, name), (evaluations, matches)) in holders.iter().zip(names).zip([(1, 1), (4, 3), (1, 0)]) {
        let path = format!("/v1/clients/{name}/subscriptions/s");
        let activity = eventually("it is matched", async || {
            let (_, document) = holder.call("GET", &path, None).await;
            let activity = document["activity"].clone();
            (activity["matches"] == matches && activity["evaluations"] == evaluations).then_some(activity)
        })
        .await;
        assert_eq!(activity["last_evaluation"].is_null(), evaluations == 0, "{activity}");
    }
    let mut ws = Ws::open(ask_for(&program, "bob", &bob.token, ""), "bob").await.expect("it may");
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..8 {
        let mut event = event("e", 2, None);
        event["id"] = Value::Null;
        ws.publish(&event).await;
        let id = ws.event().await["event"]["id"].as_str().expect("a text").to_owned();
        ids.insert(u64::from_str_radix(id.rsplit_once('-').expect("two parts").1, 16).expect("a number"));
    }
    let ids: Vec<_> = ids.into_iter().collect();
    assert!(ids.len() == 8 && ids.windows(2).all(|pair| pair[1] - pair[0] > 8), "{ids:?}");
    program.finish().await;
}

/// A claim that confines to nothing confines to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_claim_is_none() {
    let program = guarded(&ISSUER, "").0.start().await;
    let mut open = claims(Some("ann"), "admin");
    open["nearcast"] = json!({});
    let ann = Caller { door: &program, token: ISSUER.sign(&open) };
    assert_eq!(ann.call("GET", "/v1/stats", None).await.0, 200);
    assert_eq!(ann.call("POST", "/v1/events", Some(event("e", 9, None))).await.0, 202);
    program.finish().await;
}
