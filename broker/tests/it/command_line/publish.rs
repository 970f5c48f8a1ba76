//! `nearcast pub`.

use std::io::Write as _;

use serde_json::json;
use tempfile::NamedTempFile;

use super::{Typed, line, output, typed, typed_with};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Serve, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_published_by_flags_and_says_its_id() {
    let program = Serve::new().start().await;
    let mut ws = program.ws("ann").await;
    ws.request(json!({"op": "subscribe", "id": "s", "filters": [{}]})).await;
    let flags = [
        "pub",
        "--at=-9.19,45.464",
        "--set",
        "type=fire",
        "--set",
        "severity=3",
        "--id",
        "a-1",
        "--ttl",
        "10m",
        "--key",
        "k",
        "--priority",
        "alarm",
        "--reach",
        "500",
    ];
    let ended = typed(&program, &flags, "").await.with(0);
    assert_eq!(
        (ended.out.as_str(), ended.err.as_str()),
        ("published a-1 at longitude -9.19, latitude 45.464", "")
    );
    let event = ws.next().await["event"].clone();
    assert_eq!(event["geometry"]["coordinates"], json!([-9.19, 45.464]));
    assert_eq!(event["properties"], json!({"type": "fire", "severity": 3}));
    let rest = ["id", "ttl_s", "key", "priority", "reach_m"].map(|name| event[name].clone());
    assert_eq!(json!(rest), json!(["a-1", 600.0, "k", "alarm", 500.0]));
    // Without an id it gets one, which is told.
    let ended = typed(&program, &["pub", "--at", "9.19,45.464", "--json"], "").await.with(0);
    assert_eq!(ws.next().await["event"]["id"], ended.json()["id"]);
    // What the broker refuses says where and why.
    let ended = typed(&program, &["pub", "--at", "9.19,95"], "").await.with(1);
    assert!(ended.err.starts_with("nearcast: ") && ended.err.contains("/geometry/coordinates"), "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_trickle_are_published_each_as_it_comes() {
    let program = Serve::new().start().await;
    let mut ws = program.ws("ann").await;
    ws.request(json!({"op": "subscribe", "id": "s", "filters": [{}]})).await;
    let mut publishing = Typed::start(&program, &["pub", "-"]);
    for n in 0..5 {
        let id = n.to_string();
        publishing.say(&line(&id, n));
        // Before there is another line, and long before the input ends.
        assert_eq!(ws.next().await["event"]["id"], id);
    }
    assert_eq!(publishing.end().await.with(0).out, "5 published");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_line_is_told_and_the_next_one_comes() {
    let program = Serve::new().start().await;
    let good = line("a", 1);
    let far = r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[9,95]},"properties":null}"#;
    let input = format!("{good}{{\"type\": Feature}}\n\n{far}\n[1]\n{good}");
    let ended = typed(&program, &["pub", "-"], &input).await.with(1);
    assert_eq!(ended.out, "2 published, 3 refused");
    let told: Vec<_> = ended.err.lines().collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let all = [
        "line 2 of standard input: malformed JSON",
        "line 4 of standard input: ",
        "line 5 of standard input: ",
    ];
    for begin in all {
        assert!(told.iter().any(|told| told.starts_with(&format!("nearcast: {begin}"))), "{begin}: {told:?}");
    }
    assert!(ended.err.contains("/geometry/coordinates"), "{ended:?}");
    let summary = typed(&program, &["pub", "-", "--json"], &input).await.with(1).json();
    assert_eq!((&summary["accepted"], &summary["rejected_unlisted"]), (&json!(2), &json!(0)));
    let mut lines: Vec<_> =
        summary["rejected"].as_array().unwrap().iter().map(|fault| fault["line"].as_u64()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [Some(2), Some(4), Some(5)]);
    // With `--strict` it ends there, and says what was done.
    let ended =
        typed(&program, &["pub", "-", "--strict"], &format!("{good}{good}nonsense\n{good}")).await.with(1);
    assert_eq!(ended.out, "2 published, 1 refused");
    assert!(
        ended.err.ends_with("line 3 of standard input: nothing from there on was published"),
        "{ended:?}"
    );
    let ended = typed(&program, &["pub", "-", "--strict"], &format!("{far}\n")).await.with(1);
    assert!(ended.err.contains("line 1 of standard input: ended there"), "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_have_collections_or_lines() {
    let program = Serve::new().start().await;
    let features: Vec<_> = (0..3).map(|n| line(&n.to_string(), n).trim().to_owned()).collect();
    let collection =
        format!("{{\n\"type\": \"FeatureCollection\",\n\"features\": [\n{}\n]}}\n", features.join(",\n"));
    for text in [
        collection,
        features.join("\n"),
        features.iter().map(|feature| format!("\u{1e}{feature}\n")).collect(),
    ] {
        let mut file = NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        let path = file.path().to_str().expect("UTF-8");
        assert_eq!(typed(&program, &["pub", path], "").await.with(0).out, "3 published", "{text}");
    }
    let (code, err) = output(&["pub", "nowhere.geojson"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot read nowhere.geojson"), "{err}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_streams_in_little_memory() {
    let program = Serve::new().start().await;
    let before = program.http().get("/v1/stats").await.json()["events"].as_u64();
    let mut publishing = Typed::start(&program, &["pub", "-"]);
    let properties = json!({"text": "x".repeat(4000)});
    let feature = crate::harness::feature("a", [9.19, 45.464], properties).to_string();
    let (lines, block) = (20_000, 100);
    for _ in 0..lines / block {
        publishing.say(&format!("{feature}\n").repeat(block));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", publishing.id())).expect("it lives");
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells it");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    // The pages of the program itself grow with what is built into it, and are no memory that streaming takes: they were 27 of
    // 55 MiB, and the rest, 26 to 29 MiB, was 11 MiB after one event (25 November, unoptimised; 32 to 40 MiB optimised).
    let peak_kib = kib("VmHWM:") - kib("RssFile:");
    assert_eq!(publishing.end().await.with(0).out, "20,000 published");
    assert!(peak_kib < 48 << 10, "{peak_kib} KiB for 80 MB");
    let after = program.http().get("/v1/stats").await.json()["events"].as_u64();
    assert_eq!(after, before.map(|before| before + lines as u64));
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_not_there_is_told_at_once_and_one_that_goes_after_a_while() {
    let program = Serve::new().start().await;
    let mut publishing = Typed::start(&program, &["pub", "-", "--patience", "1s"]);
    publishing.say(&line("a", 1).repeat(3));
    let http = program.http();
    eventually("three are there", async || (http.get("/v1/stats").await.json()["events"] == 3).then_some(()))
        .await;
    let door = *program;
    // What was counted is answered as well.
    program.finish().await;
    publishing.say(&line("b", 1).repeat(2));
    let ended = publishing.end().await.with(1);
    assert_eq!(ended.out, "3 published");
    assert!(
        ended.err.contains("nearcast: line 4 of standard input: the broker cannot be reached: "),
        "{ended:?}"
    );
    assert!(ended.err.contains("whether ") && ended.err.contains("and nothing behind it was"), "{ended:?}");
    for args in [&["pub", "-"][..], &["pub", "--at", "1,2"]] {
        let ended = typed(&door, args, "").await.with(1);
        assert!(ended.err.contains("cannot be reached: Connection refused"), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_it_with_what_was_done() {
    let program = Serve::new().start().await;
    let mut publishing = Typed::start(&program, &["pub", "-"]);
    publishing.say(&line("a", 1));
    let http = program.http();
    eventually("it is there", async || (http.get("/v1/stats").await.json()["events"] == 1).then_some(()))
        .await;
    publishing.signal("INT");
    let ended = publishing.end_by_itself().await.with(130);
    assert_eq!(ended.out, "1 published");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_comes_from_a_file_or_the_environment() {
    let (serve, jwks) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let ended = typed(&program, &["pub", "--at", "9.19,45.464"], "").await.with(1);
    assert!(ended.err.contains("a token is needed"), "{ended:?}");
    let ended = typed(&program, &["pub", "-"], &line("a", 1)).await.with(1);
    assert!(
        ended.err.ends_with("nothing from there on was published") && ended.out == "0 published",
        "{ended:?}"
    );
    let ended =
        typed_with(&program, &["pub", "--at", "9,45"], &[("NEARCAST_TOKEN", "x.y.z")], "").await.with(1);
    assert!(ended.err.contains("the token is refused"), "{ended:?}");
    // Who only publishes may do nothing else, and need not.
    let token = ISSUER.token("feed", "publish");
    let path = jwks.with_file_name("token");
    std::fs::write(&path, format!("{token}\n")).expect("written");
    let path = path.to_str().expect("UTF-8");
    typed(&program, &["pub", "-", "--token-file", path], &line("a", 1)).await.with(0);
    typed_with(&program, &["pub", "--at", "9.19,45.464"], &[("NEARCAST_TOKEN", &token)], "").await.with(0);
    let ended = typed(&program, &["pub", "-", "--token-file", "nowhere"], "").await.with(1);
    assert!(ended.err.contains("cannot read nowhere"), "{ended:?}");
    assert!(!ended.err.contains(&token));
    program.finish().await;
}

#[test]
fn flags_that_do_not_go_together_are_told() {
    for (args, told) in [
        (&["pub"][..], "there is nothing to publish"),
        (&["pub", "--set", "a=1"], "--at"),
        (&["pub", "-", "--at", "1,2"], "cannot be used with"),
        (&["pub", "--at", "1"], "a place is LON,LAT"),
        (&["pub", "--at", "1,2", "--priority", "high"], "normal, alarm"),
        (&["sub"], "what is looked for?"),
        (&["sub", "--everywhere", "--durable"], "--client"),
        (&["sub", "--client", "ann", "--on", "enter"], "needs an area"),
        (&["sub", "--everywhere", "--around", "3"], "cannot be used with"),
        (&["sub", "--everywhere", "--on", "event,enter"], "--on is event"),
        (&["sub", "--document", "-", "--follow", "-"], "one thing only"),
        (&["sub", "--client", "ann", "--remove"], "--id"),
    ] {
        let (code, err) = output(args);
        assert_eq!(code, Some(2), "{args:?}: {err}");
        assert!(err.contains(told), "{args:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_member_is_told_once() {
    let program = Serve::new().start().await;
    let good = line("a", 1);
    let misspelt = good.replacen('{', "{\"ttl\":60,", 1);
    let ended = typed(&program, &["pub", "-"], &[good, misspelt.clone(), misspelt].concat()).await.with(0);
    assert_eq!(ended.out, "3 published");
    let told = "nearcast: line 2 of standard input: `ttl` is passed on and means nothing to the broker: did you mean ttl_s?";
    assert_eq!(ended.err, told);
    program.finish().await;
}
