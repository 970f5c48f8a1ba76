//! The addresses of a cluster's brokers: one away, one a standby, one that carries out what is asked.

use std::time::Duration;

use nearcast_client::{Broker, Connection, Error, Subscription, connect, event, everywhere};
use serde_json::json;

use crate::{broker, scripted::Server, within};

/// Nobody listens there.
const AWAY: &str = "http://127.0.0.1:1";

/// Refuses what comes next, as a standby does.
async fn refuse(standby: &Server) {
    let problem = json!({"type": "urn:nearcast:problem:recovering", "title": "not yet", "status": 503});
    let headers = json!({"content-type": "application/problem+json", "retry-after": "60"});
    standby.request().await.answer(503, &headers, &problem.to_string()).await;
}

#[tokio::test]
async fn a_session_finds_the_broker_that_carries_out_requests_without_a_wait() {
    let (standby, mut first, second) =
        tokio::join!(Server::start(), broker::Broker::start(), broker::Broker::start());
    let connecting = connect(AWAY, "ann")
        .address(standby.url())
        .address(first.url())
        .address(second.url())
        .backoff(Duration::from_millis(50), Duration::from_millis(50));
    // The minute that the standby asks for is longer than anything here waits.
    let (connected, ()) = within("a connection", async { tokio::join!(connecting, refuse(&standby)) }).await;
    let (session, _messages) = connected.expect("connected");
    session.subscribe("all", Subscription::from(everywhere())).await.expect("subscribed");
    assert_eq!(session.broker().subscriptions("ann").await.expect("hers").len(), 1);
    let mut changes = session.connections();
    first.kill().await;
    within("the second broker", async {
        while !matches!(changes.next().await, Some(Connection::Ready { .. })) {}
    })
    .await;
    session.publish(&event([9.0, 45.0], json!({}))).await.expect("published");
    let other = Broker::builder(second.url()).open().expect("a URL");
    within("its subscription, which is made again", async {
        while other.subscriptions("ann").await.map_or(0, |all| all.len()) != 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    session.close().await;
}

#[tokio::test]
async fn calls_go_to_the_broker_that_carries_them_out() {
    let (standby, started) = tokio::join!(Server::start(), broker::Broker::start());
    let broker = Broker::builder(standby.url()).address(started.url()).open().expect("URLs");
    let event = event([9.0, 45.0], json!({}));
    let (published, ()) = tokio::join!(broker.publish(&event), refuse(&standby));
    published.expect("published");

    let broker = Broker::builder(AWAY).address(started.url()).open().expect("URLs");
    // It is not known whether it was carried out: what to do is the application's to say.
    assert!(matches!(broker.publish(&event).await, Err(Error::Connection { .. })));
    broker.publish(&event).await.expect("published by the next one");
    let broker = Broker::builder(AWAY).address(started.url()).open().expect("URLs");
    broker.stats().await.expect("figures of the next one");
    let fault = Broker::builder(AWAY).address("example.org").open().expect_err("no URL").to_string();
    assert!(fault.contains("is http://example.org meant"), "{fault}");
}
