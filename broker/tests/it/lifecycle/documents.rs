//! The API's description and its page, which works where there is no other network.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use crate::harness::{Answer, Http, Serve};

/// The paths and methods of PROTOCOL's table that this build has.
const CALLS: &[(&str, &str)] = &[
    ("/v1/events", "post"),
    ("/v1/clients/{client}/subscriptions/{id}", "put"),
    ("/v1/clients/{client}/subscriptions/{id}", "get"),
    ("/v1/clients/{client}/subscriptions/{id}", "delete"),
    ("/v1/clients/{client}/subscriptions", "get"),
    ("/v1/clients/{client}/position", "put"),
    ("/v1/clients/{client}", "delete"),
    ("/v1/clients", "get"),
    ("/v1/clients/{client}/connections", "delete"),
    ("/v1/positions", "post"),
    ("/v1/clients/{client}/events", "get"),
    ("/v1/clients/{client}/ws", "get"),
    ("/v1/stats", "get"),
    ("/v1/stats/history", "get"),
    ("/healthz", "get"),
    ("/readyz", "get"),
    ("/metrics", "get"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_has_every_call() {
    let program = Serve::new().start().await;
    let answer = program.http().get("/openapi.json").await.expect(200);
    assert!(answer.content_type.starts_with("application/json"), "{}", answer.content_type);
    let document = answer.json();
    assert!(
        document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")),
        "{}",
        document["openapi"]
    );
    for (path, method) in CALLS {
        let call = &document["paths"][path][method];
        assert!(call["responses"].as_object().is_some_and(|map| !map.is_empty()), "{method} {path}: {call}");
    }
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} is elsewhere"));
        assert!(document.pointer(pointer).is_some(), "{reference} points to nothing");
    }
    program.finish().await;
}

/// The page offers a body for each call: what one sends without a change is carried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn examples_of_bodies_are_accepted() {
    let program = Serve::new().start().await;
    let http = program.http();
    let document = http.get("/openapi.json").await.expect(200).json();
    let mut count = 0;
    for (path, method) in CALLS {
        let content = &document["paths"][path][method]["requestBody"]["content"];
        for (media_type, body) in content.as_object().into_iter().flatten() {
            let offered = example(&document, body);
            // A text is the body itself.
            let text = offered.as_str().map_or_else(|| offered.to_string(), str::to_owned);
            let path = path.replace(['{', '}'], "");
            let answer = http.send(&method.to_uppercase(), &path, Some(media_type), text.clone()).await;
            assert!((200..300).contains(&answer.status), "{path} {media_type}: {text}: {}", answer.text());
            assert!(!answer.text().contains("problem"), "{path} {media_type}: {text}: {}", answer.text());
            count += 1;
        }
    }
    assert_eq!(count, 8, "events in four types, positions in two, a position and a subscription");
    program.finish().await;
}

/// The example of a media type or a schema, as the page finds it.
fn example(document: &Value, of: &Value) -> Value {
    if let Some(example) = of.get("example") {
        return example.clone();
    }
    if let Some(pointer) = of["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        return example(document, document.pointer(pointer).expect("it points to something"));
    }
    match (of.get("schema"), of.get("items")) {
        (Some(schema), _) => example(document, schema),
        (None, Some(items)) => Value::Array(vec![example(document, items)]),
        (None, None) => panic!("no example: {of}"),
    }
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_references(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_is_taken_for_something_else() {
    let program = Serve::new().start().await;
    let http = program.http();
    for path in ["/v1/events", "/v1/events?limit=x", "/v1/stats", "/v1/nothing", "/metrics", "/healthz", "/"]
    {
        let answer = http.get(path).await;
        let told: Vec<_> = answer.headers.get_all("x-content-type-options").iter().collect();
        assert_eq!(told, ["nosniff"], "{path}");
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_need_no_other_host() {
    let program = Serve::new().start().await;
    let http = program.http();
    let (mut waiting, mut seen) =
        (VecDeque::from(["/docs", "/", "/phone"].map(str::to_owned)), BTreeSet::new());
    while let Some(path) = waiting.pop_front() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let (answer, path) = follow(&http, path).await;
        seen.insert(path.clone());
        let is_page = answer.content_type.starts_with("text/html");
        if path.starts_with("/docs/") {
            let header = |name: &str| answer.headers[name].to_str().expect("ASCII").to_owned();
            let policy = header("content-security-policy");
            assert!(policy.starts_with("default-src 'self';"), "{path}: {policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        }
        if path.starts_with("/assets/") {
            // Their policy keeps browsers from what their libraries could do.
            let policy = answer.headers["content-security-policy"].to_str().expect("ASCII");
            assert!(policy.starts_with("default-src 'self';"), "{path}: {policy}");
        } else if !is_page {
            assert_no_foreign_loads(&path, &answer.text());
            continue;
        }
        for reference in references(&answer.text()) {
            assert!(!reference.contains("//"), "{path} needs {reference}");
            let base =
                seen.iter().rfind(|known| path.starts_with(known.trim_end_matches('/'))).unwrap_or(&path);
            waiting.push_back(resolve(base, &reference));
        }
    }
    assert!(seen.iter().any(|path| path.ends_with(".js")), "the page has scripts: {seen:?}");
    let page = http.get("/docs/").await.expect(200).text();
    assert!(page.contains("<title>The API of nearcast</title>"), "the page has a name: {page}");
    program.finish().await;
}

/// Gets a path, following redirections, all of which must stay here; says where it ended up.
async fn follow(http: &Http, mut path: String) -> (Answer, String) {
    for _ in 0..5 {
        let answer = http.get(&path).await;
        if !(300..400).contains(&answer.status) {
            return (answer.expect(200), path);
        }
        let target = answer.headers["location"].to_str().unwrap_or_default().to_owned();
        assert!(!target.contains("//"), "{path} leads to {target}");
        path = resolve(&path, &target);
    }
    panic!("{path} leads in circles");
}

/// What a page loads: scripts, styles and pictures. Links that a person may follow are no loads.
fn references(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for tag in page.split('<').filter_map(|rest| rest.split('>').next()) {
        let name = tag.split_whitespace().next().unwrap_or_default();
        let attribute = match name {
            "script" | "img" | "iframe" | "source" => "src=",
            "link" => "href=",
            _ => continue,
        };
        let Some(at) = tag.find(attribute) else { continue };
        let value = tag[at + attribute.len()..].trim_start_matches(['"', '\'']);
        let value = value.split(['"', '\'', ' ']).next().unwrap_or_default();
        if !value.starts_with("data:") {
            found.push(value.to_owned());
        }
    }
    found
}

/// The ways in which a script or a style fetches from elsewhere, and the one outside service that the API page calls
/// unless it is told not to.
fn assert_no_foreign_loads(path: &str, text: &str) {
    for load in [
        "import(\"http",
        "import('http",
        "@import url(http",
        "url(http",
        "url(\"http",
        "fetch(\"http",
        "importScripts(",
    ] {
        assert!(!text.contains(load), "{path} has {load}");
    }
    if path.ends_with("initializer.js") {
        assert!(!text.contains("://"), "{path} names another host: {text}");
        assert!(
            text.contains("\"validatorUrl\": \"none\""),
            "{path} leaves the outside validator on: {text}"
        );
    }
}

fn resolve(base: &str, reference: &str) -> String {
    if reference.starts_with('/') {
        return reference.to_owned();
    }
    let folder = &base[..=base.rfind('/').unwrap_or_default()];
    format!("{folder}{}", reference.trim_start_matches("./"))
}
