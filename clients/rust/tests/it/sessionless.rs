//! The broker's calls without a session, against a started broker.

use std::{convert::Infallible, time::Duration};

use futures_util::{FutureExt, StreamExt, TryStreamExt};
use nearcast_client::{Batch, Broker, Error, Feature, Query, attr, circle, event, everywhere, iter};
use serde_json::json;

use crate::{broker, scripted::Server, within};

#[tokio::test]
async fn everything_over_http_is_done_without_becoming_a_reader() {
    let started = broker::Broker::start().await;
    let broker =
        Broker::builder(started.url()).request_timeout(Duration::from_secs(20)).open().expect("a URL");
    assert!(broker.ready().await.expect("ready").starts_with("ready"));
    let id = broker.publish(&event([9.19, 45.46], json!({"n": 1})).ttl_s(60.0)).await.expect("published");
    let refused = broker.publish(&event([9.19, 95.0], json!({}))).await.expect_err("no latitude");
    assert_eq!(refused.problem().expect("a problem").errors[0].pointer, "/geometry/coordinates");
    let lines =
        ["{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[9,45]}}", "nonsense"];
    let report = broker.publish_lines(iter(lines.map(str::to_owned)), Batch::default()).await.expect("sent");
    assert_eq!((report.accepted, report.rejected[0].index), (1, 1));

    // A subscription of somebody else's, who is not connected.
    let (ann, _) = started.connect("ann").await.expect("connected");
    ann.subscribe("near", nearcast_client::Subscription::from(circle([9.19, 45.46], 100.0)).durable())
        .await
        .expect("subscribed");
    assert_eq!(ann.broker().subscriptions("ann").await.expect("hers").len(), 1);
    ann.close().await;
    let explained = broker.explain("ann", "near", &id, None).await.expect("explained");
    assert!(explained.matched, "{explained:?}");
    let there = Some([9.2, 45.46].into());
    let explained = broker.explain("bob", everywhere().nearest(1), &id, there).await.expect("explained");
    assert_eq!(explained.position.expect("as asked").coordinates, [9.2, 45.46]);
    assert_eq!(broker.deliveries(&id).await.expect("deliveries").deliveries[0].client, "ann");
    broker.publish(&event([9.19, 45.46], json!({"n": 2}))).await.expect("published");
    let clients = broker.clients(10, None).await.expect("clients").clients;
    assert_eq!((clients[0].client.as_str(), clients[0].connections, clients[0].kept_matches), ("ann", 0, 2));
    assert_eq!(broker.stats().await.expect("figures").events, 3);
    assert!(broker.metrics().await.expect("figures").contains("nearcast_events_total 3"));
    broker.revoke(&id).await.expect("revoked");
    broker.unsubscribe("ann", "near").await.expect("unsubscribed");
    broker.forget("ann").await.expect("forgotten");
    assert_eq!(broker.unsubscribe("ann", "near").await.expect_err("gone").code(), Some("not-found"));
}

#[tokio::test]
async fn what_is_live_is_read_page_by_page() {
    let started = broker::Broker::start().await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let events = (0..25).map(|n| event([9.0 + f64::from(n) / 1000.0, 45.0], json!({"n": n})).ttl_s(600.0));
    broker.publish_many(iter(events.collect::<Vec<_>>()), Batch::default()).await.expect("published");
    let numbers = async |query: Query| {
        let features: Vec<Feature> = broker.events(query).try_collect().await.expect("events");
        features.iter().map(|feature| feature.properties["n"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    let mut all = numbers(Query::all().page(7)).await;
    all.sort_unstable();
    assert_eq!(all, (0..25).collect::<Vec<_>>());
    assert_eq!(numbers(Query::near([9.0101, 45.0], 200.0).page(1)).await, [10, 11, 9, 12, 8]);
    assert_eq!(numbers(Query::bbox(8.9, 44.9, 9.0101, 45.1).when(attr("n").ge(10))).await, [10]);
    assert_eq!(numbers(Query::all().client("ann").when("n = 3")).await, [0; 0]);
    let refused = broker.events(Query::bbox(1.0, 95.0, 2.0, 96.0)).next().await.expect("an answer");
    assert_eq!(refused.expect_err("no latitude").code(), Some("bad-request"));

    assert_eq!(broker.position("ann").await.expect_err("nowhere").code(), Some("not-found"));
    let (ann, _) = started.connect("ann").await.expect("connected");
    ann.subscribe("near", nearcast_client::around(150.0)).await.expect("subscribed");
    ann.move_confirmed([9.01, 45.0]).await.expect("moved");
    assert_eq!(broker.position("ann").await.expect("there").coordinates, [9.01, 45.0]);
    let mut held = numbers(Query::all().client("ann")).await;
    held.sort_unstable();
    assert_eq!(held, [9, 10, 11]);
    ann.close().await;
}

#[tokio::test]
async fn routes_lead_along_the_streets() {
    let streets = concat!(env!("CARGO_MANIFEST_DIR"), "/../../loadgen/data/liechtenstein/highways.osm.pbf");
    let started = broker::Broker::configured(&format!("[routes]\nstreets = {streets:?}\n")).await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let question = wire::RouteQuestion {
        from: [9.5209, 47.1415],
        to: [9.5085, 47.165],
        deadline_ms: None,
        coarsest: None,
        by: wire::RouteBy::Length,
    };
    let found = broker.route(&question).await.expect("a route");
    assert!(found.level == 0 && (2_500.0..4_000.0).contains(&found.length_m), "{found:?}");
    let (ann, _) = started.connect("ann").await.expect("connected");
    ann.subscribe("way", nearcast_client::along_route(question.to, 100.0)).await.expect("subscribed");
    let lost = broker.client_routes("ann").await.expect("an answer");
    assert_eq!((lost.len(), lost[0].state, &lost[0].route), (1, wire::RouteState::NoPosition, &None));
    ann.move_confirmed(question.from).await.expect("moved");
    let way = broker.client_routes("ann").await.expect("an answer").remove(0);
    assert_eq!((&*way.subscription, way.filter, way.state), ("way", 0, wire::RouteState::Found));
    assert!(way.route.is_some_and(|line| line.coordinates.len() > 2) && way.left_m > Some(2_000.0));
    ann.close().await;
    let plain = broker::Broker::start().await;
    let plain = Broker::builder(plain.url()).open().expect("a URL");
    assert_eq!(plain.client_routes("ann").await.expect_err("none").code(), Some("no-streets"));
    assert_eq!(plain.route(&question).await.expect_err("none").code(), Some("no-streets"));
}

#[tokio::test]
async fn a_client_has_a_push_subscription() {
    let started = broker::Broker::start().await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let said = serde_json::json!({"endpoint": "https://1.1.1.1/a", "expirationTime": null, "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    }});
    let said: wire::PushSubscription = serde_json::from_value(said).expect("as a browser writes it");
    assert_eq!(broker.push_key().await.expect("a key").len(), 87);
    assert_eq!(broker.push("ann").await.expect_err("none").code(), Some("not-found"));
    let made = broker.put_push("ann", &said).await.expect("it is taken");
    assert_eq!((&*made.endpoint_origin, made.failures), ("https://1.1.1.1", 0));
    assert_eq!(broker.push("ann").await.expect("it is there"), made);
    broker.delete_push("ann").await.expect("it is ended");
    assert_eq!(broker.push("ann").await.expect_err("none").code(), Some("not-found"));
}

#[tokio::test]
async fn a_token_is_asked_for_and_never_shown() {
    let started = broker::Broker::with_tokens().await;
    let token = broker::token("ann", "publish", 600);
    let provider = {
        let token = token.clone();
        move || std::future::ready(Ok::<_, Infallible>(token.clone()))
    };
    let broker = Broker::builder(started.url()).token_provider(provider).open().expect("a URL");
    assert!(!format!("{broker:?}").contains(&token));
    broker.publish(&event([9.19, 45.46], json!({}))).await.expect("published");
    assert_eq!(broker.stats().await.expect_err("no admin").code(), Some("forbidden"));
    let wrong = Broker::builder("localhost").open().expect_err("no URL");
    assert!(matches!(wrong, Error::Invalid(_)), "{wrong}");
    let nobody = Broker::builder("http://127.0.0.1:1").token(token).open().expect("a URL");
    let error = within("a refusal", nobody.ready().boxed()).await.expect_err("nobody listens");
    assert!(matches!(error, Error::Connection { .. }), "{error}");
}

#[tokio::test]
async fn what_answers_need_not_be_a_broker() {
    let server = Server::start().await;
    let broker = Broker::builder(server.url()).open().expect("a URL");
    let feature = event([9.19, 45.46], json!({}));
    for answer in
        ["", "{}", "<html>", r#"{"accepted": 0, "rejected": []}"#, r#"{"accepted": 2, "rejected": []}"#]
    {
        let (published, ()) = tokio::join!(broker.publish(&feature), async {
            server.request().await.answer(202, &json!({}), answer).await;
        });
        assert!(matches!(published, Err(Error::Connection { .. })), "{answer}: {published:?}");
    }
    // Of two lines, of which one is nothing, more or less than one is told. It is not sent again, for it might come twice.
    for answer in [r#"{"accepted": 0, "rejected": []}"#, r#"{"accepted": 2, "rejected": []}"#] {
        let lines = iter([" ".to_owned(), serde_json::to_string(&feature).expect("JSON")]);
        let (sent, ()) = tokio::join!(broker.publish_lines(lines, Batch::default()), async {
            server.request().await.answer(202, &json!({}), answer).await;
        });
        let Err(Error::Batch { report, index: 0, source }) = sent else { panic!("{answer}: {sent:?}") };
        assert!(report.accepted == 0 && source.to_string().contains("accounted for"), "{report:?} {source}");
    }
    assert!(server.is_left_alone(Duration::from_millis(300)).await);
    for status in [200, 500] {
        let (answer, ()) = tokio::join!(broker.metrics(), async {
            server.request().await.answer_on_and_on(status).await;
        });
        answer.expect_err("it has no end");
    }
}

#[test]
fn a_password_in_an_address_is_refused_and_not_shown() {
    let wrong =
        Broker::builder("https://ann:secret@broker.example").open().expect_err("no place for a password");
    assert!(matches!(&wrong, Error::Invalid(text) if !text.contains("secret")), "{wrong}");
}
