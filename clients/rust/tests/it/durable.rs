//! Nothing acknowledged is lost: the broker is killed and started again below a session, and sessions end and go on.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use nearcast_client::{
    Acknowledge, Connection, Error, Filter, GapReason, Message, Messages, Subscription, attr, event,
};
use serde_json::json;
use tokio::time::sleep;

use crate::{broker::Broker, until, within};

const KILLS: usize = 4;
const PUBLISHERS: usize = 20;
/// How far publishers run ahead of the reader: what is kept for it while it is away is bounded (`sessions.kept_frames`).
const AHEAD: u64 = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_to_a_publisher_arrives_however_often_the_broker_is_killed() {
    let mut broker = Broker::durable().await;
    let (reader, mut messages) = broker.connect("reader").await.expect("connected");
    reader.subscribe("numbers", Subscription::from(attr("n").ge(0)).durable()).await.expect("subscribed");
    let (publisher, _) = broker.connect("publisher").await.expect("connected");

    let resumptions = Arc::new(Mutex::new(Vec::new()));
    let mut changes = reader.connections();
    tokio::spawn({
        let resumptions = resumptions.clone();
        async move {
            while let Some(change) = changes.next().await {
                if let Connection::Ready { resumed, .. } = change {
                    resumptions.lock().expect("no panic").push(resumed);
                }
            }
        }
    });
    // Of each number, where it was delivered.
    let got = Arc::new(Mutex::new(BTreeMap::<u64, Vec<String>>::new()));
    let reading = tokio::spawn({
        let got = got.clone();
        async move {
            while let Some(message) = messages.next().await {
                let message = message.expect("a message");
                let Message::Event(event) = &message else { panic!("there is no gap: {message:?}") };
                let n = event.feature.properties["n"].as_u64().expect("a number");
                got.lock().expect("no panic").entry(n).or_default().push(event.checkpoint().to_string());
            }
        }
    });
    let (next, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let accepted = Arc::new(Mutex::new(BTreeSet::new()));
    let publishing: Vec<_> = (0..PUBLISHERS)
        .map(|_| {
            let (publisher, next, stop, accepted, got) =
                (publisher.clone(), next.clone(), stop.clone(), accepted.clone(), got.clone());
            let is_ahead = move |next: u64| next > got.lock().expect("no panic").len() as u64 + AHEAD;
            tokio::spawn(async move {
                while !stop.load(Relaxed) {
                    if is_ahead(next.load(Relaxed)) {
                        sleep(Duration::from_millis(5)).await;
                        continue;
                    }
                    let n = next.fetch_add(1, Relaxed);
                    publisher.publish(&event([9.0, 45.0], json!({"n": n}))).await.expect("published");
                    accepted.lock().expect("no panic").insert(n);
                }
            })
        })
        .collect();
    let count = || accepted.lock().expect("no panic").len();
    for kill in 1..=KILLS {
        let before = count();
        until("events to be published", || count() > before + 200).await;
        broker.kill().await;
        broker.run().await;
        until("the reader to be back", || resumptions.lock().expect("no panic").len() >= kill).await;
    }
    stop.store(true, Relaxed);
    for publisher in within("the publishers to end", join_all(publishing)).await {
        publisher.expect("no panic");
    }
    until("all events to arrive", || got.lock().expect("no panic").len() >= count()).await;
    reader.close().await;
    reading.await.expect("there is no gap, and no error");

    let got = got.lock().expect("no panic");
    let accepted = accepted.lock().expect("no panic");
    assert!(accepted.len() > KILLS * 200);
    assert!(accepted.iter().all(|n| got.contains_key(n)));
    // No delivery comes twice. An event may: one that is not live and was sent again, since its answer was not seen, is published twice.
    let places: Vec<_> = got.values().flatten().collect();
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len());
    assert!(places.len() - got.len() <= KILLS * PUBLISHERS, "{} came twice", places.len() - got.len());
    assert_eq!(*resumptions.lock().expect("no panic"), [true; KILLS]);
}

async fn numbers(messages: &mut Messages, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let message = within("a message", messages.next()).await.expect("a message").expect("a message");
        let event = message.event().expect("an event");
        numbers.push(event.feature.properties["n"].as_u64().expect("a number"));
    }
    numbers
}

#[tokio::test]
async fn the_next_process_goes_on_by_its_checkpoint_or_by_what_it_acknowledged() {
    let broker = Broker::durable().await;
    let (first, mut messages) = broker.connect("ann").await.expect("connected");
    first.subscribe("numbers", Subscription::from(Filter::all()).durable()).await.expect("subscribed");
    for n in 1..=6 {
        first.publish(&event([9.0, 45.0], json!({"n": n}))).await.expect("published");
    }
    assert_eq!(numbers(&mut messages, 3).await, [1, 2, 3]);
    let checkpoint = first.checkpoint();
    first.close().await; // 3 was handed out and nothing asked for after it: only 1 and 2 count as processed.
    assert!(within("the end", messages.next()).await.is_none());

    let second = broker.connect("ann").resume(checkpoint).acknowledge(Acknowledge::Manual);
    let (second, mut messages) = second.await.expect("connected");
    assert_eq!(numbers(&mut messages, 3).await, [4, 5, 6]);
    second.close().await;

    let (third, mut messages) = broker.connect("ann").await.expect("connected");
    assert_eq!(numbers(&mut messages, 4).await, [3, 4, 5, 6]);
    third.ack(third.checkpoint().expect("a checkpoint"));
    third.publish(&event([9.0, 45.0], json!({"n": 7}))).await.expect("published"); // Answered after the acknowledgement was read.
    third.close().await;

    let (fourth, mut messages) = broker.connect("ann").await.expect("connected");
    assert_eq!(numbers(&mut messages, 1).await, [7]);
    fourth.forget().await.expect("forgotten");
}

#[tokio::test]
async fn a_broker_that_has_forgotten_everything_is_told_durable_subscriptions_again() {
    let mut broker = Broker::start().await;
    let (session, mut messages) = broker.connect("ann").await.expect("connected");
    session.subscribe("numbers", Subscription::from(Filter::all()).durable()).await.expect("subscribed");
    session.subscribe("others", attr("n").eq(0)).await.expect("subscribed");
    session.publish(&event([9.0, 45.0], json!({"n": 1}))).await.expect("published");
    assert_eq!(numbers(&mut messages, 1).await, [1]);
    broker.kill().await;
    broker.run().await;
    // Its answer comes behind those to the subscriptions, which are made again before it is sent.
    session.publish(&event([9.0, 45.0], json!({"n": 2}))).await.expect("published");
    assert_eq!(session.subscriptions().await.expect("an answer").len(), 2);
    let message = within("the gap", messages.next()).await.expect("a message").expect("a message");
    assert!(
        matches!(&message, Message::Gap(gap) if gap.reason == GapReason::Epoch && gap.count == 0),
        "{message:?}"
    );
    assert_eq!(numbers(&mut messages, 1).await, [2]);
}

/// Anybody who may publish can send an event of another shape. The README's loop, in which `?` ends the program, goes on behind it, and
/// so do those of the next programs and brokers.
#[tokio::test]
async fn a_foreign_event_ends_no_program_and_does_not_come_again() {
    #[derive(Debug, serde::Deserialize)]
    struct Numbered {
        n: u64,
    }
    async fn program(messages: Messages, last: u64) -> Result<(Vec<u64>, usize), Error> {
        let (mut numbers, mut foreign) = (Vec::new(), 0);
        let mut messages = messages.typed::<Numbered>();
        while let Some(message) = messages.next().await {
            match message? {
                Message::Event(event) => numbers.push(event.feature.properties.n),
                Message::Unreadable(_) => foreign += 1,
                other @ (Message::Gap(_) | _) => panic!("{other:?}"),
            }
            if numbers.last() == Some(&last) {
                break;
            }
        }
        Ok((numbers, foreign))
    }
    let mut broker = Broker::durable().await;
    let (first, messages) = broker.connect("ann").await.expect("connected");
    first.subscribe("numbers", Subscription::from(Filter::all()).durable()).await.expect("subscribed");
    for n in [json!(1), json!("two"), json!(3)] {
        first.publish(&event([9.0, 45.0], json!({"n": n}))).await.expect("published");
    }
    assert_eq!(within("the program", program(messages, 3)).await.expect("goes on"), (vec![1, 3], 1));
    first.close().await;

    // On disk after the acknowledgement, which nobody confirms.
    let (publisher, _) = broker.connect("publisher").await.expect("connected");
    publisher.publish(&event([9.0, 45.0], json!({"n": "four"}))).await.expect("published");
    broker.kill().await;
    broker.run().await;
    // Nobody asked for what comes behind 3, so that it comes again; the foreign event before it does not.
    let (second, messages) = broker.connect("ann").await.expect("connected");
    second.publish(&event([9.0, 45.0], json!({"n": 5}))).await.expect("published");
    assert_eq!(within("the program", program(messages, 5)).await.expect("goes on"), (vec![3, 5], 1));
    second.close().await;
}
