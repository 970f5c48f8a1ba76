//! The same for every reader of a client, over either kind of connection, on whatever shard it is.

use serde_json::json;

use super::scene::{
    HOME, Watcher, circle, fence, following, keyed, lasting, north, post, revoke, short, start, with,
};
use crate::harness::{Serve, Sse, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_readers_of_a_client_are_told_the_same() {
    let program = Serve::new().args(&["--shards", "3"]).start().await;
    let http = program.http();
    let client = "/v1/clients/car";
    http.put(&format!("{client}/position"), &json!({"coordinates": HOME})).await.expect(204);
    http.put(&format!("{client}/subscriptions/s"), &fence(&following(100.0))).await.expect(201);
    http.put(&format!("{client}/subscriptions/t"), &json!({"filters": [following(100.0)]})).await.expect(201);
    let (mut a, mut b) = (program.ws("car").await, program.ws("car").await);
    let mut stream = program.sse("car").await;
    post(&http, &keyed("k", "k1", HOME)).await;
    post(&http, &lasting("e", north(500.0))).await;
    http.put(&format!("{client}/position"), &json!({"coordinates": north(450.0)})).await.expect(204);
    http.put(&format!("{client}/subscriptions/s"), &fence(&circle(100.0))).await.expect(200);
    revoke(&http, "k1").await;
    let steps = [
        &["enter k1 published s", "event k1 published t"][..],
        &["enter e moved s", "event e moved t", "exit k1 moved s"],
        &["enter k1 changed s", "exit e changed s"],
        &["exit k1 revoked s"],
    ];
    for expected in steps {
        let mut told = Vec::new();
        for _ in expected {
            let frame = a.event().await;
            assert_eq!(frame, b.event().await);
            let message = stream.next().await;
            assert_eq!(message.event, "event", "{message:?}");
            assert_eq!(message.frame(), frame);
            let epoch = a.ready["epoch"].as_str().expect("a text").to_owned();
            assert_eq!(message.epoch_and_offset(), (epoch, frame["offset"].as_u64().expect("a number")));
            told.push(short(&frame));
        }
        told.sort();
        assert_eq!(told, expected);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_away_is_told_how_much_was_missed_and_goes_on() {
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let http = program.http();
    http.put("/v1/clients/car/subscriptions/s", &fence(&circle(100.0))).await.expect(201);
    let mut stream = program.sse("car").await;
    post(&http, &keyed("k", "k1", HOME)).await;
    let last = stream.next().await;
    assert_eq!(short(&last.frame()), "enter k1 published s");
    drop(stream);
    eventually("the reader is gone", async || {
        (http.get("/v1/stats").await.expect(200).json()["event_streams"] == 0).then_some(())
    })
    .await;
    // While nobody reads, who is inside is kept up.
    post(&http, &keyed("k", "k2", north(200.0))).await;
    post(&http, &keyed("k", "k3", HOME)).await;
    let mut stream = Sse::resume(program.address(), "car", &last.id).await;
    let gap = stream.next().await;
    assert_eq!((gap.event.as_str(), gap.frame()["count"].as_u64()), ("gap", Some(2)), "{gap:?}");
    post(&http, &keyed("k", "k4", north(10.0))).await;
    revoke(&http, "k4").await;
    assert_eq!(short(&stream.next().await.frame()), "exit k4 revoked s");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_made_over_a_socket_ends_with_it() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut watching = Watcher::connect(&program, "car").await;
    {
        let mut passing = program.ws("car").await;
        passing.subscribe("s", fence(&circle(100.0))).await;
        post(&http, &lasting("e", HOME)).await;
        assert_eq!(short(&passing.event().await), "enter e published s");
    }
    assert_eq!(watching.next().await, "enter e published s");
    eventually("the subscription is gone", async || {
        (http.get("/v1/clients/car/subscriptions/s").await.status == 404).then_some(())
    })
    .await;
    revoke(&http, "e").await;
    watching.assert_told("nobody asks any more", &[]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_all_shards_know_the_same_objects() {
    let (program, mut car) = start().await;
    let http = program.http();
    // Enough that every shard has some.
    let mut others = Vec::new();
    for idx in 0..12 {
        let mut client = Watcher::connect(&program, &format!("bus-{idx}")).await;
        client.ws.subscribe("s", fence(&circle(100.0))).await;
        others.push(client);
    }
    // Published over many connections, one after the other.
    for (round, client) in others.iter_mut().enumerate().take(10) {
        let metres = if round % 2 == 0 { 0.0 } else { 200.0 };
        client.ws.publish(&keyed("k", &format!("k{round}"), north(metres))).await;
    }
    car.ws.publish(&with(keyed("brief", "brief", HOME), "ttl_s", json!(0.2))).await;
    revoke(&http, "k9").await;
    for client in &mut others {
        for round in 0..10 {
            let (kind, of) = if round % 2 == 0 { ("enter", round) } else { ("exit", round - 1) };
            assert_eq!(client.next().await, format!("{kind} k{of} published s"));
        }
        assert_eq!(client.next().await, "enter brief published s");
        assert_eq!(client.next().await, "exit brief expired s");
        client.assert_told("all is over", &[]).await;
    }
    let initial = with(fence(&circle(100.0)), "initial", json!(true));
    car.ws.subscribe("late", initial).await;
    car.assert_told("nothing is left", &[]).await;
    program.finish().await;
}
