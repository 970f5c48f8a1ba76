//! `nearcast sub`.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Typed, line, typed, typed_with};
use crate::authorisation::{ISSUER, guarded};
use crate::harness::{Pair, Serve, command, eventually, feature};

fn frames(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_a_line_for_people_or_for_programs() {
    let program = Serve::new().start().await;
    let wanted = ["--around", "500", "--at", "9.19,45.464", "--where", "severity >= 2", "--count", "1"];
    let people = Typed::start(&program, &[&["sub", "--client", "ann"], &wanted[..]].concat());
    let programs =
        Typed::start(&program, &[&["sub", "--client", "bob", "--json", "--id", "s"], &wanted[..]].concat());
    people.tells("listening as ann").await;
    programs.tells("listening as bob").await;
    let near = |id: &str, severity: u32| {
        feature(id, [9.191, 45.464], json!({"severity": severity, "name": "two words \u{1b}[31m"}))
            .to_string()
    };
    let far = feature("far", [9.29, 45.464], json!({"severity": 5})).to_string();
    for event in [near("mild", 1), far, near("a-1", 3)] {
        program.http().post("/v1/events", "application/json", event).await.expect(202);
    }
    let ended = people.end().await.with(0);
    let (time, rest) = ended.out.split_once(' ').expect("a time");
    assert!(time.len() == 9 && time.ends_with('Z'), "{ended:?}");
    assert_eq!(
        rest,
        r#"78 m a-1 9.191,45.464 name="two words \\u001b[31m" severity=3"#.replace("\\\\", "\\")
    );
    let frames = frames(&programs.end().await.with(0).out);
    assert_eq!(frames.len(), 1);
    let found = ["op", "cause", "offset", "subscriptions"].map(|name| frames[0][name].clone());
    assert_eq!(json!(found), json!(["event", "published", 1, ["s"]]));
    assert_eq!(frames[0]["event"]["properties"]["name"], "two words \u{1b}[31m");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moves_is_followed_and_objects_come_and_go() {
    let program = Serve::new().start().await;
    typed(&program, &["pub", "--at", "9.19,45.464", "--key", "bus-7", "--set", "type=bus"], "").await.with(0);
    let mut listening = Typed::start(
        &program,
        &[
            "sub",
            "--client",
            "ann",
            "--around",
            "300",
            "--on",
            "enter,exit",
            "--follow",
            "-",
            "--min-interval",
            "0s",
            "--count",
            "2",
        ],
    );
    listening.tells("listening as ann").await;
    listening.say("9.20,45.464\nnonsense\n");
    listening.tells("line 2 of standard input: a position is lon,lat").await;
    listening.say("{\"coordinates\": [9.1901, 45.464], \"accuracy_m\": 5}\n");
    let entered = listening.shows("enter moved").await;
    assert!(entered.contains(" 8 m bus-7 9.19,45.464 type=bus"), "{entered}");
    listening.say("9.25,45.464\n");
    listening.shows("exit moved 4.7 km bus-7").await;
    listening.end().await.with(0);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn areas_come_from_files_and_subscriptions_from_documents() {
    let program = Serve::new().start().await;
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, text.to_string()).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let ring = json!([[[9.0, 45.0], [9.1, 45.0], [9.1, 45.1], [9.0, 45.0]]]);
    let area = file(
        "area.geojson",
        json!({"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": ring}}),
    );
    let road = file("road.geojson", json!({"type": "LineString", "coordinates": [[8.0, 44.0], [8.1, 44.0]]}))
        + ",100";
    let document = json!({"id": "mine", "filters": [{"where": "a = 1"}], "overflow": "keep-latest"});
    let flags = [
        "sub",
        "--client",
        "ann",
        "--polygon",
        &area,
        "--corridor",
        &road,
        "--circle=-9,45,1000",
        "--nearest",
        "3",
        "--on",
        "enter",
        "--initial",
        "--dwell",
        "2s",
        "--hysteresis",
        "10",
        "--overflow",
        "disconnect",
        "--where",
        "b = 1",
    ];
    let by_flags = Typed::start(&program, &flags);
    by_flags.tells("listening").await;
    let mut by_document = Typed::start(&program, &["sub", "--client", "bob", "--document", "-"]);
    by_document.say(&document.to_string());
    by_document.hush();
    by_document.tells("listening").await;
    let show =
        async |client: &str| program.http().get(&format!("/v1/clients/{client}/subscriptions")).await.json();
    let ann = show("ann").await[0].clone();
    let areas: Vec<_> =
        ann["filters"].as_array().expect("filters").iter().map(|filter| filter["area"].clone()).collect();
    assert_eq!(
        areas,
        [
            json!({"center": [-9.0, 45.0], "radius_m": 1000.0, "nearest": 3}),
            json!({"polygon": {"type": "Polygon", "coordinates": ring}, "nearest": 3}),
            json!({"corridor": {"type": "LineString", "coordinates": [[8.0, 44.0], [8.1, 44.0]]}, "radius_m": 100.0, "nearest": 3}),
        ]
    );
    let rest = ["id", "on", "initial", "dwell_s", "hysteresis_m", "overflow", "durable"]
        .map(|name| ann[name].clone());
    assert!(rest[0].as_str().is_some_and(|id| id.starts_with("cli-")), "{ann}");
    assert_eq!(json!(rest[1..]), json!([["enter"], true, 2.0, 10.0, "disconnect", false]));
    let bob = show("bob").await[0].clone();
    assert_eq!(
        (&bob["id"], &bob["overflow"], &bob["filters"][0]["where"]),
        (&json!("mine"), &json!("keep-latest"), &json!("a = 1"))
    );
    // They end with the program.
    by_flags.signal("INT");
    assert_eq!(by_flags.end().await.with(0).out, "");
    by_document.signal("TERM");
    by_document.end().await.with(0);
    eventually("it is gone", async || (show("ann").await == json!([])).then_some(())).await;
    for (document, told) in [
        (
            json!({"filters": [{"wher": "a = 1"}]}),
            "standard input: /filters/0/wher: a subscription has no such member",
        ),
        (json!({"filters": [{"where": "a ="}]}), "/filters/0/where"),
    ] {
        let ended = typed(&program, &["sub", "--document", "-"], &document.to_string()).await.with(1);
        assert!(ended.err.contains(told), "{ended:?}");
    }
    let ended = typed(&program, &["sub", "--polygon", &road.replace(",100", "")], "").await.with(1);
    assert!(ended.err.contains("there is no Polygon"), "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_durable_one_goes_on_where_it_was() {
    let program = Serve::new().start().await;
    let folder = TempDir::new().expect("a folder");
    let place = folder.path().join("checkpoint");
    let place = place.to_str().expect("UTF-8");
    let flags = [
        "sub",
        "--client",
        "ann",
        "--id",
        "s",
        "--where",
        "type = 'fire'",
        "--durable",
        "--resume",
        place,
        "--json",
    ];
    let mut first = Typed::start(&program, &flags);
    first.tells("listening").await;
    typed(&program, &["pub", "-"], &[line("a", 1), line("b", 1)].concat()).await.with(0);
    first.shows("\"b\"").await;
    let kept = async || std::fs::read_to_string(place).is_ok_and(|text| text.ends_with(":2\n")).then_some(());
    eventually("it has kept its place", kept).await;
    // As it is when the machine is switched off.
    first.signal("KILL");
    first.hush();
    typed(&program, &["pub", "-"], &[line("c", 1), line("d", 1)].concat()).await.with(0);
    let again = typed(&program, &[&flags[..], &["--count", "1"]].concat(), "").await.with(0);
    assert_eq!(
        frames(&again.out).iter().map(|frame| frame["event"]["id"].clone()).collect::<Vec<_>>(),
        ["c"]
    );
    // What was not asked for any more was not acknowledged. Who only listens needs no subscription of his own.
    let rest = typed(&program, &["sub", "--client", "ann", "--resume", place, "--json", "--for", "5s"], "")
        .await
        .with(0);
    assert_eq!(frames(&rest.out).iter().map(|frame| frame["event"]["id"].clone()).collect::<Vec<_>>(), ["d"]);
    typed(&program, &["sub", "--client", "ann", "--id", "s", "--remove"], "").await.with(0);
    assert_eq!(program.http().get("/v1/clients/ann/subscriptions").await.json(), json!([]));
    let ended = typed(&program, &["sub", "--client", "ann", "--id", "s", "--remove"], "").await.with(1);
    assert!(ended.err.starts_with("nearcast: "), "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_goes_is_told_and_waited_for() {
    let program = Serve::new().start().await;
    let address = program.address().to_string();
    let listening = Typed::start(&program, &["sub", "--client", "ann", "--everywhere", "--count", "1"]);
    listening.tells("listening").await;
    program.kill();
    listening.tells("the connection is lost: ").await;
    let program = Serve::new().listen(&address).start().await;
    listening.tells("connected again, in another session").await;
    let http = program.http();
    let there = async || (http.get("/v1/clients/ann/subscriptions").await.json() != json!([])).then_some(());
    eventually("the subscription is made again", there).await;
    typed(&program, &["pub", "-"], &line("a", 1)).await.with(0);
    listening.end().await.with(0);
    let door = *program;
    program.finish().await;
    let ended = typed(&door, &["sub", "--everywhere"], "").await.with(1);
    assert!(ended.err.contains("cannot be reached: Connection refused"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_when_who_reads_has_read_enough() {
    let program = Serve::new().start().await;
    let url = format!("http://{}", program.address());
    let folder = TempDir::new().expect("a folder");
    let mut shell = std::process::Command::new("bash")
        .args(["-c", "\"$0\" sub --everywhere --url \"$1\" 2> err | head -n 1; echo ${PIPESTATUS[0]} $(tail -n +2 err)"])
        .args([env!("CARGO_BIN_EXE_nearcast"), &url])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("there is bash");
    let http = program.http();
    let ended = eventually("it ends", async || {
        http.post("/v1/events", "application/json", line("a", 1)).await.expect(202);
        shell.try_wait().expect("it can be asked")
    });
    assert!(ended.await.success());
    let output = shell.wait_with_output().expect("it has ended");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].contains(" a 9.19,45.464 "), "{out}");
    // Silently.
    assert_eq!(lines[1].trim(), "0");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_is_who_the_token_is_of() {
    let (serve, _) = guarded(&ISSUER, "");
    let program = serve.start().await;
    let (ann, feed) = (ISSUER.token("ann", "subscribe"), ISSUER.token("feed", "publish"));
    let ended = typed(&program, &["sub", "--everywhere"], "").await.with(1);
    assert!(ended.err.contains("a token is needed"), "{ended:?}");
    let ended =
        typed_with(&program, &["sub", "--client", "bob", "--everywhere"], &[("NEARCAST_TOKEN", &ann)], "")
            .await
            .with(1);
    assert!(ended.err.starts_with("nearcast: ") && ended.err.lines().count() == 1, "{ended:?}");
    let listening =
        Typed::start_with(&program, &["sub", "--everywhere", "--count", "1"], &[("NEARCAST_TOKEN", &ann)]);
    listening.tells("listening as ann").await;
    typed_with(&program, &["pub", "-"], &[("NEARCAST_TOKEN", &feed)], &line("a", 1)).await.with(0);
    listening.end().await.with(0);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls_the_authority_is_told() {
    let folder = TempDir::new().expect("a folder");
    let program = Serve::new().tls(folder.path(), &Arc::new(Pair::new())).start().await;
    let url = format!("https://{}", program.address());
    let certificate = folder.path().join("cert.pem");
    let known = ["--url", &url, "--ca", certificate.to_str().expect("UTF-8")];
    let flags = ["sub", "--everywhere", "--count", "1"];
    let listening = Typed::start(&program, &[&flags[..], &known].concat());
    listening.tells("listening as cli-").await;
    typed(&program, &[&["pub", "-"][..], &known].concat(), &line("a", 1)).await.with(0);
    listening.end().await.with(0);
    let ended = typed(&program, &[&flags[..], &known[..2]].concat(), "").await.with(1);
    assert!(ended.err.contains("certificate"), "{ended:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_has_read_is_not_acknowledged() {
    let program = Serve::new().start().await;
    let http = program.http();
    http.put("/v1/clients/ann/subscriptions/s", &json!({"filters": [{}], "durable": true})).await.expect(201);
    let long = feature("long", [9.19, 45.464], json!({"text": "x".repeat(10_000)}));
    http.post("/v1/events", "application/x-ndjson", format!("{long}\n").repeat(100)).await.expect(202);
    // A pipe that nobody reads holds some sixty kilobytes of the megabyte.
    let folder = TempDir::new().expect("a folder");
    let mut unread = command(folder.path())
        .args(["sub", "--client", "ann", "--json", "--for", "5s"])
        .args(["--url", &format!("http://{}", program.address())])
        .spawn()
        .expect("it starts");
    let ended = async || unread.try_wait().expect("it can be asked");
    let ended = eventually("its time is over, and it ends although it is stuck", ended).await;
    assert!(ended.success(), "{ended}");
    let kept = http.get("/v1/clients").await.json()["clients"][0].clone();
    let kept = kept["kept_matches"].as_u64();
    assert!(kept.is_some_and(|kept| (90..=100).contains(&kept)), "{kept:?}");
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_told() {
    let program = Serve::new().start().await;
    program.http().put("/v1/clients/ann/subscriptions/s", &json!({"filters": [{}]})).await.expect(201);
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (place, copy) = (path("place"), path("copy"));
    let first = Typed::start(&program, &["sub", "--client", "ann", "--resume", &place, "--count", "1"]);
    first.tells("listening").await;
    typed(&program, &["pub", "-"], &line("a", 1)).await.with(0);
    first.end().await.with(0);
    std::fs::copy(&place, &copy).expect("a copy");
    // Nobody listens, and nothing is durable.
    typed(&program, &["pub", "-"], &line("b", 1)).await.with(0);
    let people = Typed::start(&program, &["sub", "--client", "ann", "--resume", &place]);
    people.tells("nearcast: a delivery is missing (not-durable), 2").await;
    people.signal("INT");
    assert_eq!(people.end().await.with(0).out, "");
    let flags = ["sub", "--client", "ann", "--resume", &copy, "--json"];
    let programs = Typed::start(&program, &flags);
    programs.shows("gap").await;
    programs.signal("INT");
    let gap = programs.end().await.with(0).json();
    let found = ["op", "from", "to", "count", "reason"].map(|name| gap[name].clone());
    assert_eq!(json!(found), json!(["gap", 2, 2, 1, "not-durable"]));
    std::fs::write(&copy, "nonsense").expect("written");
    let ended = typed(&program, &flags, "").await.with(1);
    assert!(ended.err.contains("copy: a checkpoint is <epoch>:<offset>"), "{ended:?}");
    program.finish().await;
}

/// What two programs of one client look for is each its own, and what is kept is not lost by mistake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_one_client_leave_each_others_subscriptions_alone() {
    let program = Serve::new().start().await;
    let first = Typed::start(&program, &["sub", "--client", "ann", "--where", "a = 1"]);
    first.tells("listening as ann").await;
    let listened = async |args: &[&str]| {
        let listening = Typed::start(&program, args);
        listening.tells("listening as ").await;
        listening.signal("INT");
        listening.end().await.with(0)
    };
    listened(&["sub", "--client", "ann", "--where", "a = 2"]).await;
    // Its program may have ended before the broker has let it go.
    let there = eventually("only the other's is there", async || {
        let there = program.http().get("/v1/clients/ann/subscriptions").await.json();
        (there.as_array().map(Vec::len) == Some(1)).then_some(there)
    })
    .await;
    assert_eq!(there[0]["filters"][0]["where"], "a = 1");
    let kept = ["sub", "--client", "ann", "--id", "kept", "--where", "a = 3"];
    listened(&[&kept[..], &["--durable"]].concat()).await;
    let refused = Typed::start(&program, &kept).end().await.with(2);
    assert!(refused.err.contains("kept is there and durable"), "{refused:?}");
    let there = program.http().get("/v1/clients/ann/subscriptions").await.json();
    assert_eq!(there.as_array().map(Vec::len), Some(2), "{there}");
    let silent = listened(&["sub", "--client", "bob"]).await;
    assert!(silent.err.contains("bob has no subscriptions"), "{silent:?}");
    program.finish().await;
}

/// Who starts before its broker says how long it waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_not_there_yet_is_waited_for_where_that_is_wanted() {
    let mut program = Serve::new().start().await;
    program.signal("TERM");
    program.exit_status().await;
    let event = ["pub", "--at", "9,45", "--set", "a=1"];
    Typed::start(&program, &event).end().await.with(1);
    let begun = std::time::Instant::now();
    Typed::start(&program, &[&event[..], &["--patience", "1s"]].concat()).end().await.with(1);
    assert!(begun.elapsed() >= std::time::Duration::from_secs(1));
}
