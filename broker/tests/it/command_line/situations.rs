//! `nearcast groups`.

use serde_json::json;

use super::typed;
use crate::harness::{Serve, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_said_to_be_in_groups_or_in_none() {
    let program = Serve::new().start().await;
    let pickup = json!({
        "roles": {"taxi": {"where": "type = 'taxi'"}, "rider": {"where": "type = 'rider'"}},
        "where": ["DISTANCE(taxi, rider) <= 800"],
    });
    typed(&program, &["groups", "put", "pick up", "-"], &pickup.to_string()).await.with(0);
    for (key, kind, place) in
        [("t1", "taxi", "9.19,45.46"), ("r/1", "rider", "9.19,45.461"), ("r2", "rider", "9.19,45.5")]
    {
        let kind = format!("type={kind}");
        typed(&program, &["pub", "--at", place, "--key", key, "--set", &kind], "").await.with(0);
    }
    let why = async |object: &str| {
        eventually("it is a candidate", async || {
            let ended = typed(&program, &["groups", "why", "pick up", object], "").await;
            (ended.code == Some(0)).then(|| ended.json())
        })
        .await
    };
    let alone = why("r2").await;
    let sentence = "r2 is in no group: as rider, of 1 of role taxi none fits: none satisfies DISTANCE(taxi, rider) <= 800";
    assert_eq!((&alone["why"], &alone["roles"][0]["role"]), (&json!(sentence), &json!("rider")));
    // What it answered is the broker's answer, on a line.
    assert_eq!(why("r/1").await["groups"], 1);
    for (name, object, told) in [("pick up", "nobody", "nobody is no candidate"), ("other", "t1", "other")] {
        let ended = typed(&program, &["groups", "why", name, object], "").await.with(1);
        assert!(ended.err.contains(told) && ended.err.lines().count() == 1, "{ended:?}");
    }
    // Checks have no objects.
    typed(&program, &["checks", "why", "pick up", "t1"], "").await.with(2);
    program.finish().await;
}
