//! What a session does with connections that are silent, or that nobody closes, and with batches that break off.

use std::time::Duration;

use futures_util::stream;
use nearcast_client::{Batch, Connection, Error, connect, event};
use serde_json::{Value, json};

use crate::{scripted::Server, within};

#[tokio::test]
async fn a_connection_that_says_nothing_any_more_is_made_anew() {
    let server = Server::start().await;
    let connecting = tokio::spawn(
        connect(server.url(), "ann")
            .silence(Duration::from_secs(3))
            .backoff(Duration::ZERO, Duration::ZERO)
            .into_future(),
    );
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 5).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let mut changes = session.connections();
    assert_eq!(peer.receive_any().await, json!({"op": "ping"}));
    let Some(Connection::Lost { error, .. }) = within("the loss", changes.next()).await else {
        panic!("not lost")
    };
    assert_eq!(error.to_string(), "nothing was heard for 3s");
    assert_eq!(server.request().await.resume().as_deref(), Some("e1:5"));
}

#[tokio::test]
async fn a_broker_that_is_not_ready_in_time_is_tried_again_until_the_application_gives_up() {
    let server = Server::start().await;
    let connect = connect(server.url(), "ann")
        .handshake_timeout(Duration::from_millis(50))
        .connect_timeout(Duration::from_millis(500))
        .backoff(Duration::ZERO, Duration::ZERO);
    let connecting = tokio::spawn(connect.into_future());
    let silent = (server.request().await, server.request().await.accept().await);
    let error = within("connect", connecting).await.expect("no panic").expect_err("never ready");
    let Error::Timeout { source: Some(source), .. } = error else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "the broker was not ready in time");
    drop(silent);
}

#[tokio::test]
async fn a_frame_that_is_too_long_for_the_broker_fails_alone() {
    let server = Server::start().await;
    let connect = connect(server.url(), "ann").backoff(Duration::ZERO, Duration::ZERO);
    let connecting = tokio::spawn(connect.into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let publish = |text: String| {
        let session = session.clone();
        tokio::spawn(async move { session.publish(&event([9.0, 45.0], json!({"text": text}))).await })
    };
    let (short, long) = (publish("short".to_owned()), publish("long".repeat(1000)));
    peer.receive().await;
    peer.receive().await;
    peer.close(1009, "too long").await;
    let error = within("the long one", long).await.expect("no panic").expect_err("too long");
    assert!(matches!(error, Error::Connection { code: Some(1009), .. }), "{error:?}");
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let again = peer.receive().await;
    assert_eq!(again["event"]["properties"]["text"], "short");
    peer.ok(&again).await;
    within("the short one", short).await.expect("no panic").expect("published");
}

#[tokio::test]
async fn closing_waits_for_answers_and_not_for_ever() {
    let server = Server::start().await;
    let connecting = tokio::spawn(connect(server.url(), "ann").into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, mut messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let publishing = tokio::spawn({
        let session = session.clone();
        async move { session.publish(&event([9.0, 45.0], json!({}))).await }
    });
    peer.receive().await;
    tokio::time::pause();
    let closing = tokio::spawn(async move { session.close().await });
    within("the close", closing).await.expect("no panic");
    let error = within("the call", publishing).await.expect("no panic").expect_err("not answered");
    assert!(matches!(error, Error::Closed { code: None, .. }), "{error:?}");
    assert!(within("the end", messages.next()).await.is_none());
}

#[tokio::test]
async fn closing_ends_although_the_broker_reads_nothing() {
    let server = Server::start().await;
    let connecting = tokio::spawn(connect(server.url(), "ann").into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    // More than the buffers of both sides take.
    let text = "much".repeat(1 << 18);
    let publishing: Vec<_> = (0..40)
        .map(|n| {
            let (session, event) = (session.clone(), event([9.0, 45.0], json!({"n": n, "text": text})));
            tokio::spawn(async move { session.publish(&event).await })
        })
        .collect();
    tokio::task::yield_now().await;
    tokio::time::pause();
    within("the close", session.close()).await;
    for publishing in publishing {
        assert!(matches!(publishing.await.expect("no panic"), Err(Error::Closed { .. })));
    }
    drop(peer);
}

#[tokio::test]
async fn a_batch_goes_on_behind_what_the_broker_has_decided() {
    let server = Server::start().await;
    let connecting = tokio::spawn(connect(server.url(), "ann").into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let publishing = tokio::spawn(async move {
        let events = (0..8).map(|n| event([9.0, 45.0], json!({"n": n})));
        session.publish_many(stream::iter(events), Batch::default()).await
    });
    let refused = json!({"type": "urn:nearcast:problem:invalid-document", "title": "no", "status": 400});
    let rejected = |index: u64| json!([{"index": index, "problem": refused}]);
    for (came, code, tally) in [
        (0..8, "overloaded", json!({"accepted": 2, "rejected": rejected(1)})),
        (3..8, "stopping", json!({"accepted": 0, "rejected": rejected(0), "rejected_unlisted": 1})),
        // What is on disk is known of none of them, and then of the first one.
        (5..8, "storage", json!({"accepted": 2})),
        (5..8, "storage", json!({"accepted": 1, "rejected": []})),
        (6..8, "", {
            let warning = json!({"index": 1, "pointer": "/ttl", "detail": "did you mean ttl_s?"});
            json!({"accepted": 1, "rejected": rejected(0), "warnings": [warning], "warnings_unlisted": 2})
        }),
    ] {
        let mut request = server.request().await;
        let body = request.body().await;
        let numbers = body.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let numbers = numbers.map(|event| event["properties"]["n"].as_u64().expect("a number"));
        assert_eq!(numbers.collect::<Vec<_>>(), came.collect::<Vec<_>>(), "before {code}");
        let (status, kind) = if code.is_empty() { (202, "json") } else { (503, "problem+json") };
        let mut answer = tally;
        answer["type"] = json!(format!("urn:nearcast:problem:{code}"));
        let headers = json!({"content-type": format!("application/{kind}")});
        request.answer(status, &headers, &answer.to_string()).await;
    }
    let report = within("a report", publishing).await.expect("no panic").expect("sent");
    let indices: Vec<_> = report.rejected.iter().map(|rejected| rejected.index).collect();
    assert_eq!((report.accepted, indices, report.rejected_unlisted), (4, vec![1, 3, 6], 1));
    assert_eq!((report.warnings[0].index, &*report.warnings[0].pointer), (Some(7), "/ttl"));
    assert_eq!((report.warnings.len(), report.warnings_unlisted), (1, 2));
}

#[tokio::test]
async fn what_is_at_the_bottom_of_a_loss_is_told() {
    let server = Server::start().await;
    let connecting = connect(server.url(), "ann").backoff(Duration::ZERO, Duration::ZERO).into_future();
    let connecting = tokio::spawn(connecting);
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    let mut changes = session.connections();
    drop(server);
    peer.reset();
    let mut losses = Vec::new();
    while losses.len() < 2 {
        if let Some(Connection::Lost { error, .. }) = within("a loss", changes.next()).await {
            losses.push(error.to_string());
        }
    }
    assert!(losses[0].starts_with("it broke off: ") && losses[0].len() > 20, "{losses:?}");
    assert!(losses[1].starts_with("the broker cannot be reached: Connection refused"), "{losses:?}");
}
