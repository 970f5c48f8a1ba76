//! Group definitions with a started broker.

use nearcast_client::documents::{GroupDefinition, Role};
use nearcast_client::{Broker, Filter, attr, event};
use serde_json::json;

use crate::{broker, within};

#[tokio::test]
async fn live_objects_are_grouped_and_roles_keep_their_order() {
    let started = broker::Broker::start().await;
    let broker = Broker::builder(started.url()).open().expect("a URL");
    let (session, mut messages) = started.connect("ann").await.expect("connected");
    session.subscribe("groups", Filter::all().when(attr("type").eq("group"))).await.expect("subscribed");
    let role = |kind: &str| {
        (kind.to_owned(), Role { condition: Some(json!(format!("type = '{kind}'"))), ..Role::default() })
    };
    let pickup = GroupDefinition {
        roles: [role("taxi"), role("rider")].into_iter().collect(),
        conditions: vec!["DISTANCE(taxi, rider) <= 800".to_owned()],
        ..GroupDefinition::default()
    };
    let put = broker.put_group_definition("pick/up", &pickup).await.expect("it is put");
    assert!(put.roles.keys().eq(["taxi", "rider"]), "{put:?}");
    assert_eq!(put.limit, Some(100));
    // The last event completes the group, so that all three are candidates when its enter comes.
    for (key, kind, lat) in [("t1", "taxi", 45.0), ("r2", "rider", 45.1), ("r1", "rider", 45.001)] {
        let live = event([9.0, lat], json!({"type": kind})).id(key).key(key);
        broker.publish(&live).await.expect("published");
    }
    let message = within("the group", messages.next()).await.expect("a message").expect("a message");
    let told = message.event().expect("an event");
    assert_eq!(told.feature.properties["roles"], json!({"taxi": "t1", "rider": "r1"}));
    assert_eq!(told.feature.coordinates, [9.0, 45.0].into());

    let why = broker.explain_object("pick/up", "r2").await.expect("it is a candidate");
    assert_eq!((why.groups, why.roles[0].partners[0].fitting), (0, 0), "{why:?}");
    let shown = broker.group_definition("pick/up").await.expect("it is there");
    assert_eq!(shown.groups.map(|groups| groups.len()), Some(1));
    assert_eq!(broker.group_definition_findings("pick/up").await.expect("they are listed").len(), 1);
    broker.pause_group_definition("pick/up").await.expect("paused");
    assert!(
        broker.group_definitions().await.expect("one")[0].activity.as_ref().is_some_and(|one| one.paused)
    );
    broker.resume_group_definition("pick/up").await.expect("resumed");
    broker.delete_group_definition("pick/up").await.expect("deleted");
    assert_eq!(broker.group_definition("pick/up").await.expect_err("gone").code(), Some("not-found"));
    session.close().await;
}
