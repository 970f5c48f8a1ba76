//! When a client is woken, and the contents of messages.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::service::Service;
use super::{durable, figure, publish, publish_alarm, publish_named};
use crate::harness::{Program, Serve, feature, run_to_end};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_that_sleeps_is_woken_by_what_is_kept_for_it() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("")).start().await;
    let http = program.http();
    durable(&http, "ann").await;
    http.get("/v1/clients/ann/push").await.problem(404);
    let made = http.put("/v1/clients/ann/push", &service.subscribe("/b/ann?a=b")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    // The path alone tells the browsers apart here.
    let said = service.subscribe("/b/ann");
    http.put("/v1/clients/ann/push", &said).await.expect(200);
    let described = http.get("/v1/clients/ann/push").await.expect(200).json();
    assert_eq!(described["endpoint_origin"], service.origin());
    assert_eq!((&described["last_push"], &described["failures"]), (&json!(null), &json!(0)));
    assert!(!described.to_string().contains("/b/ann"), "{described}");

    let mut event = feature("e/1", [9.19, 45.46], json!({"type": "accident", "headline": "A4 closed"}));
    event["ttl_s"] = json!(600);
    publish(&http, &event).await;
    let [message] = service.messages("/b/ann", 1).await.try_into().expect("one message");
    let expected = json!({
        "client": "ann", "title": "A4 closed", "body": "accident", "count": 1, "event": "e/1",
        "url": "/phone#client=ann&event=e%2F1",
    });
    assert_eq!(message.text, expected);
    assert_eq!(message.headers["urgency"], "normal");
    assert_eq!(message.headers["topic"], "news");
    let ttl_s: u64 = message.headers["ttl"].to_str().expect("ASCII").parse().expect("a number");
    assert!(ttl_s > 0 && ttl_s <= 600, "{ttl_s}");
    let key = http.get("/v1/push").await.expect(200).json();
    let authorization = message.headers["authorization"].to_str().expect("ASCII");
    assert!(authorization.ends_with(&format!(", k={}", key["public_key"].as_str().expect("a text"))));
    figure(&program, "nearcast_push_sent_total 1").await;
    let described = http.get("/v1/clients/ann/push").await.expect(200).json();
    assert!(described["last_push"].is_string(), "{described}");
    assert!(!program.log().contains("/b/ann"), "an endpoint is in the log");
    program.finish().await;
}

/// The pace is an hour, so that nothing but an alarm brings a second message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_soon_after_is_told_together_and_an_alarm_at_once() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("every_s = 3600")).start().await;
    let http = program.http();
    durable(&http, "ann").await;
    http.put("/v1/clients/ann/push", &service.subscribe("/b/ann")).await.expect(201);
    publish_named(&http, "first").await;
    service.messages("/b/ann", 1).await;
    figure(&program, "nearcast_push_sent_total 1").await;
    publish_named(&http, "second").await;
    publish_named(&http, "third").await;
    figure(&program, "nearcast_push_waiting 1").await;
    publish_alarm(&http, "fourth").await;
    let [_, alarm] = service.messages("/b/ann", 2).await.try_into().expect("two messages");
    assert_eq!((&alarm.text["count"], &alarm.text["title"]), (&json!(3), &json!("fourth")));
    assert_eq!(alarm.headers["urgency"], "high");
    assert_eq!(alarm.headers["topic"], "alarm");
    figure(&program, "nearcast_push_waiting 0").await;

    // A connection that reads is told itself, also of the delivery that waited to be announced.
    publish_named(&http, "fifth").await;
    figure(&program, "nearcast_push_waiting 1").await;
    let mut reader = program.ws("ann").await;
    figure(&program, "nearcast_push_waiting 0").await;
    publish_alarm(&http, "sixth").await;
    while reader.next().await["event"]["id"] != "sixth" {}
    drop(reader);
    figure(&program, "nearcast_websockets 0").await;
    publish_alarm(&http, "seventh").await;
    let [.., last] = <[_; 3]>::try_from(service.messages("/b/ann", 3).await).expect("three messages");
    assert_eq!((&last.text["count"], &last.text["event"]), (&json!(1), &json!("seventh")));

    http.delete("/v1/clients/ann/push").await.expect(204);
    http.delete("/v1/clients/ann/push").await.expect(204);
    http.get("/v1/clients/ann/push").await.problem(404);
    figure(&program, "nearcast_push_subscriptions 0").await;
    publish_alarm(&http, "eighth").await;
    assert_eq!(service.so_far("/b/ann").len(), 3);
    program.finish().await;
}

/// A delivery that is not kept wakes nobody: the message that comes is of a later one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_kept_wakes() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("")).start().await;
    let http = program.http();
    let passing = json!({"filters": [{"where": "name = 'passing'"}]});
    let kept = json!({"filters": [{"where": "name = 'kept'"}], "durable": true});
    http.put("/v1/clients/ann/push", &service.subscribe("/b/ann")).await.expect(201);
    http.put("/v1/clients/ann/subscriptions/passing", &passing).await.expect(201);
    publish_named(&http, "passing").await;
    http.put("/v1/clients/ann/subscriptions/kept", &kept).await.expect(201);
    publish_named(&http, "passing").await;
    publish_named(&http, "kept").await;
    let messages = service.messages("/b/ann", 1).await;
    assert_eq!((&messages[0].text["event"], &messages[0].text["count"]), (&json!("kept"), &json!(1)));
    program.finish().await;
}

async fn start(service: &Service, folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    let args = ["--shards", "2", "--data", data.to_str().expect("UTF-8")];
    Serve::new().args(&args).config(&service.settings("")).start().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_subscription_and_the_key_survive_a_crash() {
    let (service, folder) = (Service::start().await, TempDir::new().expect("a folder"));
    let program = start(&service, &folder).await;
    let http = program.http();
    for client in ["ann", "bob", "eve"] {
        durable(&http, client).await;
        let said = service.subscribe(&format!("/b/{client}"));
        http.put(&format!("/v1/clients/{client}/push"), &said).await.expect(201);
    }
    // One that has nothing else.
    http.put("/v1/clients/only/push", &service.subscribe("/b/only")).await.expect(201);
    http.delete("/v1/clients/bob/push").await.expect(204);
    http.delete("/v1/clients/eve").await.expect(204);
    let tell = async |program: &Program| -> [Value; 3] {
        let http = program.http();
        let key = http.get("/v1/push").await.expect(200).json();
        let ann = http.get("/v1/clients/ann/push").await.expect(200).json();
        [key, ann, http.get("/v1/clients/only/push").await.expect(200).json()]
    };
    let before = tell(&program).await;
    program.kill();
    let program = start(&service, &folder).await;
    assert_eq!(tell(&program).await, before);
    let http = program.http();
    for client in ["bob", "eve"] {
        http.get(&format!("/v1/clients/{client}/push")).await.problem(404);
    }
    publish_named(&http, "after").await;
    let messages = service.messages("/b/ann", 1).await;
    assert_eq!(messages[0].text["event"], "after");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = folder.path().join("data/push-key.pem");
        assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    }
    // A copy goes on with the same key, for browsers have subscribed with that.
    let [data, copy] =
        ["data", "copy"].map(|name| folder.path().join(name).to_str().expect("UTF-8").to_owned());
    let copied = run_to_end(&["backup", "--data", &data, "--to", &copy], &[], folder.path());
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    program.finish().await;
    let program = Serve::new().args(&["--data", &copy]).config(&service.settings("")).start().await;
    assert_eq!(tell(&program).await[0], before[0]);
    program.http().get("/v1/clients/ann/push").await.expect(200);
    program.finish().await;
}
