//! The addresses of a cluster's brokers: one away, one a standby, one that carries out what is asked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use nearcast_client::{Broker, Connection, Error, Subscription, connect, event, everywhere};
use rand::RngCore;
use serde_json::json;

use crate::{
    broker,
    scripted::{Request, Server},
    within,
};

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

/// Says that another broker serves the client.
async fn redirect(request: Request, other: &str) {
    let problem = json!({"type": "urn:nearcast:problem:elsewhere", "title": "not here", "status": 307});
    let path = request.line().split_once(' ').expect("a path").1;
    let headers = json!({"content-type": "application/problem+json", "location": format!("{other}{path}")});
    request.answer(307, &headers, &problem.to_string()).await;
}

#[tokio::test]
async fn a_session_goes_where_its_client_is_served_until_nobody_is_there() {
    let (any, home) = tokio::join!(Server::start(), Server::start());
    let connecting = connect(any.url(), "ann").token("secret").backoff(Duration::ZERO, Duration::ZERO);
    let connecting = tokio::spawn(connecting.into_future());
    redirect(any.request().await, &home.url()).await;
    let request = home.request().await;
    assert_eq!((request.line(), request.token()), ("GET /v1/clients/ann/ws", Some("secret")));
    let mut peer = request.accept().await;
    peer.ready("e1", 5).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let mut changes = session.connections();

    // Calls about the client go there, too, and so does the next connection.
    let broker = session.broker().clone();
    let (found, ()) = tokio::join!(broker.subscriptions("ann"), async {
        let request = home.request().await;
        assert_eq!(request.token(), Some("secret"));
        request.answer(200, &json!({}), "[]").await;
    });
    assert!(found.expect("an answer").is_empty());
    peer.reset();
    let request = home.request().await;
    assert_eq!(request.line(), "GET /v1/clients/ann/ws?resume=e1%3A5");
    request.answer(503, &json!({}), "").await;

    // It is left, and the address of the list is asked again.
    redirect(any.request().await, &home.url()).await;
    home.request().await.accept().await.ready("e1", 5).await;
    let mut losses = 0;
    loop {
        let change = within("a change", changes.next()).await.expect("a session");
        if matches!(change, Connection::Ready { .. }) {
            break;
        }
        losses += usize::from(matches!(change, Connection::Lost { .. }));
    }
    assert_eq!(losses, 2, "a redirect is none");
}

#[tokio::test]
async fn what_is_sent_on_from_broker_to_broker_ends() {
    let mut servers = Vec::new();
    for _ in 0..5 {
        servers.push(Server::start().await);
    }
    let urls: Vec<_> = servers.iter().map(Server::url).collect();
    // Each names the next one: the fourth is the last that is followed to.
    let send_on = async || {
        for (server, next) in servers.iter().zip(&urls[1..]) {
            redirect(server.request().await, next).await;
        }
    };
    let broker = Broker::builder(&urls[0]).open().expect("a URL");
    let (answer, ()) = tokio::join!(broker.subscriptions("ann"), send_on());
    assert_eq!(answer.expect_err("it ends").code(), Some("elsewhere"));

    let connecting = connect(&urls[0], "ann").backoff(Duration::ZERO, Duration::ZERO);
    let connecting = tokio::spawn(connecting.into_future());
    send_on().await;
    servers[0].request().await.accept().await.ready("e1", 0).await;
    let connected = within("connect", connecting).await.expect("no panic");
    drop(connected.expect("a session, after a redirect that was a failure"));
}

#[tokio::test]
async fn where_a_broker_names_one_that_is_gone_a_wait_follows_and_then_the_next_one_is_asked() {
    let (first, second, home) = tokio::join!(Server::start(), Server::start(), Server::start());
    let wait = Duration::from_millis(1);
    let connecting =
        connect(first.url(), "ann").address(second.url()).backoff(wait, wait).random(Most).into_future();
    let connecting = tokio::spawn(connecting);
    for door in [&first, &second, &first] {
        redirect(door.request().await, AWAY).await;
    }
    redirect(second.request().await, &home.url()).await;
    let mut peer = home.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");

    // Where the broker that it knows is gone, the list is asked at once.
    let mut changes = session.connections();
    peer.reset();
    home.request().await.answer(503, &json!({}), "").await;
    redirect(second.request().await, &home.url()).await;
    home.request().await.answer(503, &json!({}), "").await;
    redirect(first.request().await, &home.url()).await;
    home.request().await.accept().await.ready("e1", 0).await;
    let mut waits = Vec::new();
    while waits.len() < 3 {
        if let Some(Connection::Lost { retry_in, .. }) = within("a loss", changes.next()).await {
            waits.push(retry_in > Duration::ZERO);
        }
    }
    assert_eq!(waits, [true, false, true]);
}

#[tokio::test]
async fn how_long_a_session_waits() {
    let cases = [
        (503, "recovering", "1", [1, 2, 3, 3]),
        (429, "overloaded", "1", [1, 2, 4, 8]),
        (503, "limit-reached", "5", [1, 5, 5, 8]),
    ];
    for (status, code, retry_after, expected) in cases {
        let server = Server::start().await;
        let connecting = tokio::spawn(connect(server.url(), "ann").random(Most).into_future());
        let mut peer = server.request().await.accept().await;
        peer.ready("e1", 0).await;
        let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
        let mut changes = session.connections();
        // A connection that held for less than ten seconds is the first failure.
        peer.reset();
        let mut waits = Vec::new();
        loop {
            let Some(Connection::Lost { retry_in, .. }) = within("a change", changes.next()).await else {
                continue;
            };
            waits.push(retry_in.as_secs_f64().round());
            if waits.len() == expected.len() {
                break;
            }
            session.wake();
            let problem = json!({"type": format!("urn:nearcast:problem:{code}"), "title": "not now"});
            let headers = json!({"content-type": "application/problem+json", "retry-after": retry_after});
            server.request().await.answer(status, &headers, &problem.to_string()).await;
        }
        assert_eq!(waits, expected.map(f64::from), "{code}");
    }
}

#[tokio::test]
async fn a_session_waits_for_a_token_and_tries_no_other_address_at_once() {
    let server = Server::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = move || {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let absent = (2..4).contains(&number);
        async move { if absent { Err(std::io::Error::other("not now")) } else { Ok(format!("t{number}")) } }
    };
    let wait = Duration::from_millis(1);
    let connecting = connect(server.url(), "ann").token_provider(provider).backoff(wait, wait);
    let connecting = tokio::spawn(connecting.address(AWAY).random(Most).into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let mut changes = session.connections();
    peer.reset();
    let request = server.request().await;
    assert_eq!(request.token(), Some("t4"));
    request.accept().await.ready("e1", 0).await;
    let mut waits = Vec::new();
    while waits.len() < 3 {
        if let Some(Connection::Lost { retry_in, .. }) = within("a loss", changes.next()).await {
            waits.push(retry_in > Duration::ZERO);
        }
    }
    assert_eq!(waits, [true, true, true]);
}

/// Always the most that there is.
struct Most;

impl RngCore for Most {
    fn next_u32(&mut self) -> u32 {
        u32::MAX
    }

    fn next_u64(&mut self) -> u64 {
        u64::MAX
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        bytes.fill(0xff);
    }
}
