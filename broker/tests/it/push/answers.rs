//! Answers of push services, and the messages and subscriptions after them.

use serde_json::json;

use super::service::{Reply, Service};
use super::{durable, figure, publish_alarm, publish_named};
use crate::harness::{Serve, eventually};

/// Each client has a push service that answers otherwise, before it takes the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_again_as_the_push_service_wants_it() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("every_s = 3600")).start().await;
    let http = program.http();
    let cases: [(&str, &[Reply]); 6] = [
        ("limited", &[Reply::Later(429)]),
        ("overloaded", &[Reply::Later(503)]),
        ("broken", &[Reply::Status(500)]),
        ("elsewhere", &[Reply::Elsewhere]),
        ("long", &[Reply::Status(413)]),
        ("endless", &[Reply::Endless]),
    ];
    for (client, replies) in cases {
        durable(&http, client).await;
        let path = format!("/b/{client}");
        http.put(&format!("/v1/clients/{client}/push"), &service.subscribe(&path)).await.expect(201);
        service.reply(&path, replies);
    }
    publish_named(&http, "news").await;
    for (client, _) in cases {
        let (path, tries) = (format!("/b/{client}"), if client == "endless" { 1 } else { 2 });
        let messages = service.messages(&path, tries).await;
        let last = &messages[tries - 1].text;
        let title = if client == "long" { "nearcast" } else { "news" };
        assert_eq!((&last["title"], &last["count"]), (&json!(title), &json!(1)), "{client}");
        let described = eventually("the message is taken", async || {
            let described = http.get(&format!("/v1/clients/{client}/push")).await.expect(200).json();
            described["last_push"].is_string().then_some(described)
        })
        .await;
        assert_eq!(described["failures"], 0, "{client}");
    }
    for line in ["nearcast_push_sent_total 6", "nearcast_push_failures_total 4", "nearcast_push_waiting 0"] {
        figure(&program, line).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_is_over_is_forgotten() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("")).start().await;
    let http = program.http();
    for (client, status) in [("gone", 410), ("lost", 404)] {
        durable(&http, client).await;
        let path = format!("/b/{client}");
        http.put(&format!("/v1/clients/{client}/push"), &service.subscribe(&path)).await.expect(201);
        service.reply(&path, &[Reply::Status(status)]);
    }
    // This one says when it is over, which was long ago.
    durable(&http, "old").await;
    let mut said = service.subscribe("/b/old");
    said["expirationTime"] = json!(1_000);
    http.put("/v1/clients/old/push", &said).await.expect(201);
    publish_alarm(&http, "news").await;
    figure(&program, "nearcast_push_subscriptions 0").await;
    figure(&program, "nearcast_push_subscriptions_ended_total 3").await;
    for client in ["gone", "lost", "old"] {
        http.get(&format!("/v1/clients/{client}/push")).await.problem(404);
        http.get(&format!("/v1/clients/{client}/subscriptions/all")).await.expect(200);
    }
    assert!(service.so_far("/b/old").is_empty());
    program.finish().await;
}

/// One push service answers nothing, as often as it is asked. Half of the messages under way go to it, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_service_that_does_not_answer_does_not_hold_the_others() {
    let (stuck, other) = (Service::start().await, Service::start().await);
    let both = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(both.path(), stuck.ca() + &other.ca()).expect("written");
    let settings = format!(
        "[push]\nca = {:?}\nprivate_addresses = true\ncontact = {:?}\nsends = 2\nsends_per_origin = 1\n",
        both.path(),
        super::service::CONTACT
    );
    let program = Serve::new().config(&settings).start().await;
    let http = program.http();
    for client in ["a", "b", "c", "d"] {
        durable(&http, client).await;
        let path = format!("/b/{client}");
        http.put(&format!("/v1/clients/{client}/push"), &stuck.subscribe(&path)).await.expect(201);
        stuck.reply(&path, &[Reply::Stuck; 10]);
    }
    publish_alarm(&http, "first").await;
    figure(&program, "nearcast_push_waiting 4").await;
    durable(&http, "ann").await;
    http.put("/v1/clients/ann/push", &other.subscribe("/b/ann")).await.expect(201);
    for (count, id) in [(1, "second"), (2, "third"), (3, "fourth")] {
        publish_alarm(&http, id).await;
        let messages = other.messages("/b/ann", count).await;
        assert_eq!(messages[count - 1].text["event"], id);
    }
    // It is stopped with messages under way.
    program.finish().await;
}

/// Places for messages are taken by clients whose push service does not answer: a delivery for another is kept and not announced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_wait_are_bounded() {
    let service = Service::start().await;
    let program = Serve::new().config(&service.settings("queue = 2")).start().await;
    let http = program.http();
    for client in ["a", "b", "c"] {
        durable(&http, client).await;
        let path = format!("/b/{client}");
        http.put(&format!("/v1/clients/{client}/push"), &service.subscribe(&path)).await.expect(201);
        service.reply(&path, &[Reply::Stuck; 10]);
    }
    publish_alarm(&http, "news").await;
    figure(&program, "nearcast_push_dropped_total{cause=\"queue\"} 1").await;
    figure(&program, "nearcast_push_waiting 2").await;
    program.finish().await;
}
