//! `nearcast move`.

use serde_json::json;

use super::{Typed, output, typed, typed_with};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Door, Serve, eventually, feature};

/// Where the broker has a client, as `explain` shows it.
async fn place(door: &Door, client: &str) -> serde_json::Value {
    let question = json!({"client": client, "subscription": {"filters": [{}]}, "event": feature("x", [0.0, 0.0], json!({}))});
    let answer = door.http().post("/v1/explain", "application/json", question.to_string()).await.expect(200);
    answer.json()["position"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_moved_by_flags_by_lines_and_among_others() {
    let program = Serve::new().start().await;
    let moved = typed(&program, &["move", "--client", "ann", "--at=-9.19,45.464", "--accuracy", "12"], "")
        .await
        .with(0);
    assert_eq!(moved.out, "1 moved");
    let at = place(&program, "ann").await;
    assert_eq!((&at["coordinates"], &at["accuracy_m"]), (&json!([-9.19, 45.464]), &json!(12.0)));
    // As they come, and not when the input ends.
    let mut moving = Typed::start_with(&program, &["move", "-"], &[("NEARCAST_CLIENT", "ann")]);
    for lon in [9.1, 9.2] {
        moving.say(&format!("{lon},45.464\n"));
        let there = async || (place(&program, "ann").await["coordinates"][0] == lon).then_some(());
        eventually("she is there", there).await;
    }
    assert_eq!(moving.end().await.with(0).out, "2 moved");
    let fleet = "{\"client\": \"car-1\", \"coordinates\": [1, 2]}\nnowhere\n\
        {\"type\": \"Feature\", \"geometry\": {\"type\": \"Point\", \"coordinates\": [3, 4]}, \"properties\": {\"client\": \"car-2\"}}\n\
        {\"client\": \"car-3\", \"coordinates\": [3, 95]}\n5,6\n";
    let moved = typed(&program, &["move", "-", "--json"], fleet).await.with(1);
    assert_eq!(moved.json()["accepted"], 2);
    for told in [
        "line 2 of standard input: a position is lon,lat, or JSON",
        "line 4 of standard input: ",
        "line 5 of standard input: it does not say whose position it is",
    ] {
        assert!(moved.err.contains(told), "{told}: {moved:?}");
    }
    assert_eq!(place(&program, "car-2").await["coordinates"], json!([3.0, 4.0]));
    let ended = typed(&program, &["move", "--client", "ann", "--at", "9,95"], "").await.with(1);
    assert!(ended.err.contains("/coordinates: latitude 95"), "{ended:?}");
    assert_eq!(output(&["move", "--at", "9,45"]).0, Some(2));
    assert_eq!(output(&["move", "--client", "ann"]).0, Some(2));
    let (code, said) = output(&["move", "--client", "ann", "95,200"]);
    assert!(code == Some(2) && said.contains("a place goes with --at: --at 95,200"), "{said}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_moves_is_who_the_token_is_of() {
    let (serve, _) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let token = ISSUER.token("ann", "subscribe");
    let env = [("NEARCAST_TOKEN", token.as_str())];
    typed_with(&program, &["move", "--at", "9.19,45.464"], &env, "").await.with(0);
    let ended =
        typed_with(&program, &["move", "-"], &env, "{\"client\": \"bob\", \"coordinates\": [1, 2]}\n3,4\n")
            .await
            .with(1);
    assert_eq!(ended.out, "1 moved, 1 refused");
    assert!(ended.err.contains("line 1 of standard input: "), "{ended:?}");
    program.finish().await;
}
