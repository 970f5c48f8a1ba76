//! Calls that a broker passes on are answered as the broker that they are about answers them.

use std::time::Duration;

use serde_json::json;

use super::several_active::{Member, two};
use super::{folder, run};
use crate::harness::{Program, Raw, eventually};
use crate::nats::Servers;

/// Names that programs like to read as something else, as they are written in paths.
const ODD: [&str; 9] = [".", "..", "%2e", "%2E%2e", "a\\b", "a%5Cb", "a%2F..%2Fb", "it's", "%25"];

/// A request as it is written, for one document.
fn put(path: &str, document: &str, more: &str) -> String {
    let length = document.len();
    format!(
        "PUT {path} HTTP/1.1\r\nhost: b\r\nconnection: close\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n{document}"
    )
}

fn call(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: b\r\nconnection: close\r\n\r\n")
}

/// The answer but for its date, with its headers in alphabetic order.
async fn answer(program: &Program, request: &str) -> String {
    let mut raw = Raw::connect(program.address()).await;
    raw.send(request.as_bytes()).await;
    let text = String::from_utf8(raw.rest(request).await).expect("a text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request}: {text}"));
    let (status, headers) = head.split_once("\r\n").unwrap_or_else(|| panic!("{request}: {text}"));
    let mut headers: Vec<_> = headers.lines().filter(|line| !line.starts_with("date: ")).collect();
    headers.sort_unstable();
    format!("{status}\n{}\n\n{body}", headers.join("\n"))
}

/// The answers of the broker that is asked first, and of the other one.
async fn alike(members: &[Member; 2], request: &str) -> String {
    let [one, two] = [answer(&members[0].program, request).await, answer(&members[1].program, request).await];
    assert_eq!(one, two, "{request}");
    one
}

#[test]
fn names_heads_and_refusals_are_those_of_the_broker_that_has_the_client() {
    run(async {
        let nats = folder();
        let servers = Servers::start(nats.path(), 3, "always");
        let members = two(&servers).await;
        let document = r#"{"filters": [{"where": "a = 1"}]}"#;
        for name in ODD {
            let path = format!("/v1/clients/{name}/subscriptions/s");
            let made = answer(&members[0].program, &put(&path, document, "")).await;
            assert!(made.starts_with("HTTP/1.1 20"), "{path}: {made}");
            assert!(alike(&members, &put(&path, document, "")).await.starts_with("HTTP/1.1 200 "));
            assert!(alike(&members, &call("GET", &path)).await.starts_with("HTTP/1.1 200 "));
            assert!(alike(&members, &call("HEAD", &path)).await.contains("\ncontent-length: "));
            let rules = format!("/v1/rules/{name}");
            assert!(alike(&members, &call("GET", &rules)).await.starts_with("HTTP/1.1 404 "));
        }
        // A subscription's name leads to no other client.
        let clients = members[0].clients().await;
        for client in &clients {
            for path in ["subscriptions/..\\..\\a%5Cb", "subscriptions/%2e%2e", "subscriptions/."] {
                let found = alike(&members, &call("DELETE", &format!("/v1/clients/{client}/{path}"))).await;
                assert!(found.contains("not-found"), "{found}");
            }
        }
        assert!(
            alike(&members, &call("GET", "/v1/clients/a\\b/subscriptions/s")).await.contains("\"a = 1\"")
        );
        // Nor does an event's: its list has the deliveries of both brokers.
        for client in &clients {
            let path = format!("/v1/clients/{client}/subscriptions/s");
            members[0].program.http().put(&path, &json!({"filters": [{}]})).await.expect(201);
        }
        let event = json!({"type": "Feature", "id": "..", "ttl_s": 60, "properties": {"a": 2},
            "geometry": {"type": "Point", "coordinates": [9.0, 45.0]}});
        members[0].program.http().post("/v1/events", "application/json", event.to_string()).await.expect(202);
        eventually("both clients have it", async || {
            let told = answer(&members[0].program, &call("GET", "/v1/events/%2e%2e/deliveries")).await;
            clients.iter().all(|client| told.contains(&format!("\"{client}\""))).then_some(())
        })
        .await;
        alike(&members, &call("GET", "/v1/events/../deliveries")).await;

        for client in &clients {
            let position = format!("/v1/clients/{client}/position");
            let place = r#"{"coordinates": [9.0, 45.0]}"#;
            assert!(!alike(&members, &put(&position, place, "")).await.contains("\ncontent-type"));
            let packed = alike(&members, &put(&position, place, "content-encoding: gzip\r\n")).await;
            assert!(packed.starts_with("HTTP/1.1 415 "), "{packed}");
            // What is announced is refused before it comes.
            let large =
                put(&position, "", "expect: 100-continue\r\n").replace("length: 0", "length: 99000000");
            assert!(alike(&members, &large).await.starts_with("HTTP/1.1 413 "));
            let mut ended = [
                Raw::connect(members[0].program.address()).await,
                Raw::connect(members[1].program.address()).await,
            ];
            for raw in &mut ended {
                raw.send(put(&position, place, "").replace("length: 2", "length: 9").as_bytes()).await;
                raw.shut().await;
                let told = String::from_utf8(raw.rest("a body that ends early").await).expect("a text");
                assert!(told.starts_with("HTTP/1.1 400 ") && told.contains("interrupted"), "{told}");
            }
        }

        // A document that is still coming holds up no stop.
        let [mut first, second] = members;
        let mut slow = Raw::connect(first.program.address()).await;
        let path = format!("/v1/clients/{}/subscriptions/s", clients[1]);
        slow.send(put(&path, "{", "").replace("length: 1", "length: 9").as_bytes()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        first.program.signal("TERM");
        let told = String::from_utf8(slow.rest("the answer of a broker that stops").await).expect("a text");
        assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("stopping"), "{told}");
        assert!(first.program.exit_status().await.success(), "{}", first.program.log());
        second.program.finish().await;
    });
}
