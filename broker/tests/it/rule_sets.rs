//! Rule sets: events become facts, rules work on them, and what they make is published.

use std::collections::HashSet;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Form, Http, Program, Serve, encode, eventually, feature};

/// Three slow taxis near one another are a jam.
fn traffic() -> Value {
    json!({
        "facts": {"slow": {"where": "speed_kmh < 5", "args": ["taxi_id", "@lon", "@lat", "@time"], "for_s": 120}},
        "program": "slow(T,X,Y,A) \\ slow(T,_,_,B) <=> A >= B | true.\n\
            found @ slow(T1,X1,Y1,_), slow(T2,X2,Y2,_), slow(T3,X3,Y3,_) ==> T1 < T2, T2 < T3, \
            distance(X1,Y1,X2,Y2) < 80, distance(X1,Y1,X3,Y3) < 80 | jam(X1,Y1).",
        "clock": "event",
        "publish": {"jam": {"at": [0, 1], "properties": {"type": "jam", "lon": "{0}", "place": "{0}/{1}"}, "key": "jam-{0}-{1}", "ttl_s": 300}},
    })
}

fn taxi(id: &str, number: u32, second: u32, lon: f64) -> Value {
    let mut event = feature(id, [lon, 22.5], json!({"taxi_id": number, "speed_kmh": 3}));
    event["time"] = json!(format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60));
    event
}

/// The rule set of that text, whose facts are `name(n)` of events with a number of that name.
fn of(program: &str, facts: &[&str], publish: Value) -> Value {
    let fact = |name: &&str| ((*name).to_owned(), json!({"where": format!("{name} >= 0"), "args": [name]}));
    json!({"facts": facts.iter().map(fact).collect::<serde_json::Map<_, _>>(), "program": program, "publish": publish})
}

fn numbered(name: &str, number: u64) -> Value {
    feature(&format!("{name}{number}"), [9.0, 45.0], json!({name: number}))
}

async fn publish(http: &Http, event: &Value) {
    http.post("/v1/events", "application/geo+json", event.to_string()).await.expect(202);
}

async fn publish_all(http: &Http, events: &[Value]) {
    let (kind, body) = encode(Form::Lines, events);
    http.post("/v1/events", kind, body).await.expect(202);
}

async fn activity(http: &Http, name: &str) -> Value {
    http.get(&format!("/v1/rules/{name}")).await.expect(200).json()["activity"].clone()
}

/// Its activity once it has had as many inputs.
async fn after(http: &Http, name: &str, inputs: u64) -> Value {
    eventually("its inputs", async || {
        let activity = activity(http, name).await;
        (activity["inputs"].as_u64() >= Some(inputs)).then_some(activity)
    })
    .await
}

/// Its activity once something of that text went wrong.
async fn problem(http: &Http, name: &str, text: &str) -> Value {
    eventually(text, async || {
        let activity = activity(http, name).await;
        activity["problem"].as_str().is_some_and(|problem| problem.contains(text)).then_some(activity)
    })
    .await
}

/// What it found, the oldest first.
async fn findings(http: &Http, name: &str) -> Vec<Value> {
    let mut found = http.get(&format!("/v1/rules/{name}/findings")).await.expect(200).json();
    let found = found.as_array_mut().expect("an array");
    found.reverse();
    std::mem::take(found)
}

/// What it found, the oldest first, once that are as many: an input is counted before what it brought is published.
async fn found(http: &Http, name: &str, count: usize) -> Vec<Value> {
    eventually("its findings", async || {
        let found = findings(http, name).await;
        (found.len() >= count).then_some(found)
    })
    .await
}

async fn start(folder: &TempDir) -> Program {
    let data = folder.path().join("data");
    Serve::new().args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")]).start().await
}

async fn kill(mut program: Program) {
    program.assert_healthy();
    program.signal("KILL");
    program.exit_status().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_taxis_make_a_jam_which_knows_where_it_comes_from() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut reader = program.ws("reader").await;
    reader.subscribe("jams", json!({"filters": [{"where": "type = 'jam'"}]})).await;
    let made = http.put("/v1/rules/traffic", &traffic()).await.expect(201).json();
    assert_eq!(made["facts"]["slow"]["for_s"], 120.0);
    let mut publish_again = traffic()["publish"].clone();
    publish_again["jam"]["ttl_s"] = json!(300.0);
    assert_eq!(made["publish"], publish_again);
    for event in
        [taxi("a", 1, 0, 9.0), taxi("b", 2, 10, 9.0005), taxi("c", 2, 20, 9.0006), taxi("d", 3, 30, 9.0007)]
    {
        publish(&http, &event).await;
    }
    let event = reader.event().await["event"].clone();
    assert_eq!(event["geometry"]["coordinates"], json!([9.0, 22.5]));
    assert_eq!(event["properties"], json!({"type": "jam", "lon": 9, "place": "9/22.5"}));
    assert_eq!((&event["key"], &event["ttl_s"]), (&json!("jam-9-22.5"), &json!(300.0)));
    assert_eq!(event["derived"], json!({"by": "rules/traffic", "from": ["a", "c", "d"], "depth": 1}));
    assert_eq!(event["time"], "2026-01-01T00:00:30Z");
    let activity = eventually("its figures", async || {
        let activity = activity(&http, "traffic").await;
        (activity["published"] == 1).then_some(activity)
    })
    .await;
    assert_eq!(
        (&activity["inputs"], &activity["evaluations"], &activity["published"]),
        (&json!(4), &json!(4), &json!(1))
    );
    assert_eq!((&activity["constraints"], &activity["engine"]), (&json!(3), &json!("cpu")));

    let question = json!({"client": "reader", "subscription": "jams", "event": event["id"]});
    let why = http.post("/v1/explain", "application/json", question.to_string()).await.expect(200).json();
    let derived = json!({"by": "rules/traffic", "rule": "found", "from": ["a", "c", "d"]});
    assert_eq!(why["derived"], derived);
    let sentence = why["why"].as_str().expect("a sentence");
    assert!(sentence.ends_with("derived by rules/traffic, found, from a, c, d"), "{sentence}");

    // A taxi that reports after two minutes finds only those of the last two.
    publish(&http, &taxi("e", 4, 151, 9.0001)).await;
    eventually("what is left", async || {
        let activity = after(&http, "traffic", 5).await;
        (activity["constraints"] == 1).then_some(())
    })
    .await;
    http.delete("/v1/rules/traffic").await.expect(204);
    http.get("/v1/rules/traffic").await.problem(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_ends_after_its_last_millisecond_and_a_late_one_does_not_come() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut rules = of("n(X), m(X) <=> met(X).", &["n", "m"], json!({"met": {}}));
    rules["clock"] = json!("event");
    rules["facts"]["n"]["for_s"] = json!(10);
    rules["facts"]["m"]["for_s"] = json!(10);
    http.put("/v1/rules/r", &rules).await.expect(201);
    let at = |name: &str, number: u64, time: &str| {
        let mut event = numbered(name, number);
        event["time"] = json!(format!("2026-01-01T00:00:{time}Z"));
        event
    };
    let events = [
        at("n", 1, "00.000"),
        at("n", 2, "01.000"),
        at("m", 1, "10.000"),
        at("m", 2, "11.001"),
        // It is older than the newest by more than it stays.
        at("n", 3, "01.000"),
        at("m", 3, "11.001"),
        at("n", 4, "01.001"),
        at("m", 4, "11.001"),
    ];
    publish_all(&http, &events).await;
    after(&http, "r", 8).await;
    let met: Vec<_> =
        found(&http, "r", 2).await.iter().map(|event| event["derived"]["from"].clone()).collect();
    assert_eq!(met, [json!(["n1", "m1"]), json!(["n4", "m4"])]);

    let mut ahead = numbered("n", 5);
    ahead["time"] = json!("2999-01-01T00:00:00Z");
    publish(&http, &ahead).await;
    problem(&http, "r", "a minute ahead").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_not_finite_is_not_published() {
    let program = Serve::new().start().await;
    let http = program.http();
    let rules = of("n(2) <=> Y is inf, met(Y). n(X) <=> met(X).", &["n"], json!({"met": {}}));
    http.put("/v1/rules/r", &rules).await.expect(201);
    publish_all(&http, &[numbered("n", 2), numbered("n", 3)]).await;
    problem(&http, "r", "not finite").await;
    let found = found(&http, "r", 1).await;
    assert_eq!((found.len(), &found[0]["derived"]["from"]), (1, &json!(["n3"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_is_undone_and_told() {
    let program = Serve::new().start().await;
    let http = program.http();
    let text = "n(X) ==> seen(X).\nn(X), n(Y) ==> X < Y, Y - X > 5 | fail.\nlist @ all(L), seen(X) <=> all([X|L]).\nask(_), all(L) <=> told(L), all(L).";
    let mut rules = of(text, &["n", "ask"], json!({"told": {"properties": {"type": "told", "all": "{0}"}}}));
    rules["program"] = json!(format!("{text}\nn(0) ==> all([])."));
    http.put("/v1/rules/r", &rules).await.expect(201);
    publish_all(&http, &[0, 1, 2, 9, 3].map(|number| numbered("n", number))).await;
    publish(&http, &numbered("ask", 1)).await;
    after(&http, "r", 6).await;
    let found = eventually("both", async || {
        let found = findings(&http, "r").await;
        (found.len() == 2).then_some(found)
    })
    .await;
    assert_eq!(found[0]["properties"], json!({"type": "failed", "rules": "r", "fact": "n"}));
    assert_eq!(found[0]["derived"]["from"], json!(["n9"]));
    assert_eq!(found[1]["properties"]["all"], "[3,2,1,0]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_never_end_are_told_and_harm_nobody() {
    let settings = "[rules]\nsteps = 2000\nlooks = 10000\nconstraints = 200\n";
    let program = Serve::new().config(settings).start().await;
    let http = program.http();
    let endless = of(
        "n(X) <=> n(X).\nm(X) ==> m(X).\nk(X) <=> Y is X + 1, grown(X), k(Y).\ngrown(_) ==> true.",
        &["n", "m", "k"],
        json!({}),
    );
    http.put("/v1/rules/endless", &endless).await.expect(201);
    // A term that has another one twice, sixty levels deep.
    let deep = of(
        "d(0, T) <=> keep(T).\nd(D, T) <=> C is D - 1, d(C, f(T, T)).\nn(X) <=> d(60, X).\nkeep(_) ==> true.",
        &["n"],
        json!({}),
    );
    http.put("/v1/rules/deep", &deep).await.expect(201);
    // Three heads that nothing joins.
    let wide = of("n(X), n(Y), n(Z) ==> X + Y + Z < 0 | true.", &["n"], json!({}));
    http.put("/v1/rules/wide", &wide).await.expect(201);
    let good =
        of("n(X) <=> got(X).", &["n"], json!({"got": {"properties": {"type": "got", "number": "{0}"}}}));
    http.put("/v1/rules/good", &good).await.expect(201);
    for (name, setting) in [("n", "rules.steps"), ("k", "rules.constraints")] {
        publish(&http, &numbered(name, 1)).await;
        let told = problem(&http, "endless", setting).await;
        assert_eq!((&told["constraints"], &told["restarts"]), (&json!(0), &json!(0)), "{told}");
    }
    publish_all(&http, &(2..100).map(|number| numbered("n", number)).collect::<Vec<_>>()).await;
    problem(&http, "wide", "rules.looks").await;
    problem(&http, "deep", "rules.looks").await;
    after(&http, "good", 99).await;
    assert_eq!(found(&http, "good", 99).await.len(), 99);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_rule_sets_that_feed_each_other_end_at_a_depth() {
    let program = Serve::new().config("[limits]\nderived_depth = 4\n").start().await;
    let http = program.http();
    let turn = |from: &str, to: &str| {
        let program = format!("{from}(X) <=> Y is X + 1, {to}(Y).");
        of(&program, &[from], json!({to: {"properties": {to: "{0}"}}}))
    };
    http.put("/v1/rules/there", &turn("n", "m")).await.expect(201);
    http.put("/v1/rules/back", &turn("m", "n")).await.expect(201);
    publish(&http, &numbered("n", 1)).await;
    eventually("the end", async || (activity(&http, "there").await["dropped"] == 1).then_some(())).await;
    let of = async |name: &str| {
        findings(&http, name).await.iter().map(|event| event["derived"]["depth"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((of("there").await, of("back").await), (vec![json!(1), json!(3)], vec![json!(2), json!(4)]));
}

/// Counts events, and tells of each hundredth.
fn counting() -> Value {
    let text = "n(_), count(C) <=> D is C + 1, count(D).\nn(_) <=> count(1).\n\
        count(C) ==> C mod 100 =:= 0 | hundred(C).\nkept(X), kept(X) <=> true.";
    of(text, &["n"], json!({"hundred": {"properties": {"type": "hundred", "count": "{0}"}}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_set_goes_on_after_kills_as_if_there_had_been_none() {
    let folder = TempDir::new().expect("a folder");
    let mut program = start(&folder).await;
    let http = program.http();
    let hundreds = json!({"filters": [{"where": "type = 'hundred' OR type = 'failed'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/s", &hundreds).await.expect(201);
    http.put("/v1/rules/counter", &counting()).await.expect(201);
    let mut number = 0;
    // Once before anything is kept, once behind that, and once right after a lot.
    for (round, count) in [150, 1_300, 2_500, 60].into_iter().enumerate() {
        let events: Vec<_> = (number..number + count).map(|number| numbered("n", number)).collect();
        number += count;
        publish_all(&program.http(), &events).await;
        if round != 2 {
            let http = program.http();
            eventually("all of it", async || {
                let activity = activity(&http, "counter").await;
                // Nothing is kept before the third round, so that all inputs come again.
                let least = if round < 2 { number } else { 1 };
                (activity["queued"] == 0 && activity["inputs"].as_u64() >= Some(least)).then_some(())
            })
            .await;
        }
        kill(program).await;
        program = start(&folder).await;
    }
    let mut watch = program.ws("watch").await;
    for count in (100..=number).step_by(100) {
        let event = watch.event().await["event"].clone();
        assert_eq!(event["properties"]["count"], count, "{event}");
        assert_eq!(event["derived"]["by"], "rules/counter");
        let from = event["derived"]["from"].as_array().expect("ids");
        assert_eq!(from.len(), 16);
        assert_eq!(from[15], format!("n{}", count - 1));
    }
    let activity = activity(&program.http(), "counter").await;
    assert_eq!((&activity["restarts"], &activity["constraints"]), (&json!(0), &json!(1)), "{activity}");
    assert!(activity["inputs"].as_u64() < Some(number), "what it knew was not kept: {activity}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_bound_has_undone_stays_undone_when_a_restart_brings_another_bound() {
    let folder = TempDir::new().expect("a folder");
    let start = async |steps: u64| {
        let data = folder.path().join("data");
        let config = format!(
            "[rules]\nsteps = {steps}\n[situations]\nfindings_per_second = 0\ntenant_findings_per_second = 0\n"
        );
        Serve::new()
            .args(&["--shards", "2", "--data", data.to_str().expect("UTF-8")])
            .config(&config)
            .start()
            .await
    };
    // A fact takes some steps, and is counted at their end.
    let text = "up(0, I) <=> add(I, up).\nup(N, I) <=> M is N - 1, up(M, I).\n\
        down(0, I) <=> add(I, down).\ndown(N, I) <=> M is N - 1, down(M, I).\n\
        add(I, F), total(T) <=> U is T + 1, total(U), counted(U, I, F).\nadd(I, F) <=> total(1), counted(1, I, F).";
    let fact = |name: &str| json!({"where": "up >= 0", "args": [name, "@id"]});
    let document = json!({
        "facts": {"up": fact("up"), "down": fact("down")},
        "program": text,
        "publish": {"counted": {"properties": {"type": "counted", "count": "{0}", "id": "{1}", "fact": "{2}"}}},
    });
    let (mut program, mut random) = (start(200).await, SmallRng::seed_from_u64(53));
    let http = program.http();
    let counted = json!({"filters": [{"where": "type = 'counted'"}], "durable": true});
    http.put("/v1/clients/watch/subscriptions/s", &counted).await.expect(201);
    http.put("/v1/rules/counter", &document).await.expect(201);
    let mut events = Vec::new();
    for steps in [40, 200, 400, 200, 40, 400, 40, 200] {
        let first = events.len();
        for number in first..first + 200 {
            let [up, down] = [(); 2].map(|()| random.random_range(0..300));
            events.push(feature(&number.to_string(), [9.0, 45.0], json!({"up": up, "down": down})));
        }
        publish_all(&program.http(), &events[first..]).await;
        let http = program.http();
        eventually("what is undone", async || {
            (activity(&http, "counter").await["dropped"].as_u64() > Some(0)).then_some(())
        })
        .await;
        kill(program).await;
        program = start(steps).await;
    }
    events.push(feature("last", [9.0, 45.0], json!({"up": 1_000, "down": 0})));
    publish_all(&program.http(), &events[events.len() - 1..]).await;
    let (mut watch, mut facts) = (program.ws("watch").await, HashSet::new());
    loop {
        let counted = watch.event().await["event"]["properties"].clone();
        let [id, fact] = ["id", "fact"].map(|name| counted[name].to_string());
        assert!(facts.insert((id, fact)), "twice: {counted}");
        assert_eq!(counted["count"], facts.len(), "each follows from the one before: {counted}");
        if counted["id"] == "last" {
            break;
        }
    }
    for (event, fact) in events.iter().flat_map(|event| [(event, "up"), (event, "down")]) {
        let number = event["properties"][fact].as_u64().expect("a number");
        let is_counted = facts.contains(&(event["id"].to_string(), json!(fact).to_string()));
        // It takes two steps and more for each: in between it depends on the moment of the kill.
        if !(12..200).contains(&number) {
            assert_eq!(is_counted, number < 12, "{event}");
        }
    }
    assert_eq!(activity(&program.http(), "counter").await["restarts"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_set_is_replaced_under_load_and_begins_empty() {
    let program = Serve::new().start().await;
    let http = program.http();
    let told = |mark: u64| {
        of(
            "n(X) <=> got(X).",
            &["n"],
            json!({"got": {"properties": {"type": "got", "number": "{0}", "mark": mark}}}),
        )
    };
    http.put("/v1/rules/r", &told(0)).await.expect(201);
    let mut reader = program.ws("reader").await;
    reader.subscribe("s", json!({"filters": [{"where": "type = 'got'"}]})).await;
    let load = {
        let http = program.http();
        tokio::spawn(async move {
            for number in 0..200 {
                publish(&http, &numbered("n", number)).await;
            }
        })
    };
    for mark in 1..5 {
        http.put("/v1/rules/r", &told(mark)).await.expect(200);
        http.put("/v1/rules/r", &json!({"facts": {}, "program": "a("})).await.problem(400);
    }
    load.await.expect("it is published");
    publish(&http, &numbered("n", 1_000)).await;
    let (mut last, mut mark) = (None, 0);
    while last != Some(1_000) {
        let properties = reader.event().await["event"]["properties"].clone();
        let (number, found) = (properties["number"].as_u64(), properties["mark"].as_u64().expect("a mark"));
        assert!(last < number && mark <= found, "each once and in their order: {last:?} {mark} {properties}");
        (last, mark) = (number, found);
    }
    assert_eq!(mark, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_with_its_place() {
    let program = Serve::new().start().await;
    let http = program.http();
    let refused = async |document: &Value| {
        let problem = http.put("/v1/rules/r", document).await.problem(400);
        let faults = problem["errors"].as_array().expect("faults").clone();
        let told = |fault: &Value| {
            [&fault["pointer"], &fault["detail"]].map(|text| text.as_str().expect("a text").to_owned())
        };
        faults.iter().map(told).collect::<Vec<_>>()
    };
    let pointers = async |document: &Value| {
        refused(document).await.into_iter().map(|[pointer, _]| pointer).collect::<Vec<_>>()
    };
    let with = |path: &str, value: Value| {
        let mut document = traffic();
        *document.pointer_mut(path).expect("it is there") = value;
        document
    };
    assert_eq!(pointers(&json!({})).await, ["/facts", "/program"]);
    assert_eq!(
        pointers(&with("/facts", json!({"slow": {"were": "a = 1", "args": ["@place", ""], "for_s": -1}})))
            .await,
        ["/facts/slow/for_s", "/facts/slow/args/0", "/facts/slow/args/1", "/facts/slow/were"]
    );
    assert_eq!(
        pointers(&with("/facts/slow", json!({"area": {"radius_m": 5}, "args": []}))).await[0],
        "/facts/slow/area"
    );
    assert_eq!(pointers(&with("/facts/slow/args", json!(["a"]))).await, ["/facts/slow/args"]);
    assert_eq!(pointers(&with("/publish", json!({"jam": {"att": [0, 1]}}))).await, ["/publish/jam/att"]);
    assert_eq!(pointers(&with("/publish", json!({"jm": {}}))).await, ["/program", "/publish/jm"]);
    let unknown = refused(&with("/program", json!("slow(T, X, Y, _) <=> jam(X, Y), jamm(T, X)."))).await;
    assert_eq!(unknown, [["/program", "line 1, column 33: jamm/2 is defined nowhere: did you mean jam/2?"]]);
    assert_eq!(pointers(&with("/publish/jam/at", json!([0, 2]))).await, ["/publish/jam/at/1"]);
    assert_eq!(
        pointers(&with(
            "/publish/jam",
            json!({"at": [3, 2], "key": "{7}", "properties": {"a": ["{1}", {"b": "{8}"}]}})
        ))
        .await,
        ["/publish/jam/at/0", "/publish/jam/at/1", "/publish/jam/key", "/publish/jam/properties/a/1/b"]
    );
    for key in [String::new(), "k".repeat(300), format!("{}{{0}}", "k".repeat(300))] {
        assert_eq!(pointers(&with("/publish/jam/key", json!(key))).await, ["/publish/jam/key"]);
    }
    assert_eq!(pointers(&with("/clock", json!("sun"))).await, ["/clock"]);
    let far = json!("{18446744073709551615}");
    assert_eq!(pointers(&with("/publish/jam/key", far)).await, ["/publish/jam/key"]);
    assert_eq!(pointers(&with("/publish/jam/at", json!([0, u64::MAX]))).await, ["/publish/jam/at/1"]);
    assert_eq!(pointers(&with("/publish/jam/ttl_s", json!(0))).await, ["/publish/jam/ttl_s"]);
    // As deep as an event may be, and a level deeper.
    let nested = |depth: usize| (0..depth).fold(json!("{0}"), |inner, _| json!({"a": inner}));
    http.put("/v1/rules/deep", &with("/publish/jam/properties", nested(16))).await.expect(201);
    let deep = refused(&with("/publish/jam/properties", nested(17))).await;
    let pointer = format!("/publish/jam/properties{}", "/a".repeat(16));
    assert_eq!(deep, [[pointer.as_str(), "nested more than 16 deep (limits.depth)"]]);
    let wide = format!("{} <=> true.", vec!["a(1)"; 40].join(", "));
    assert_eq!(pointers(&with("/program", json!(wide))).await, ["/program"]);
    let faults = refused(&with("/program", json!("a(X) <=> b(X.\nc(X) ==> d(X)\n\ne(1) <=> true."))).await;
    assert!(faults.iter().all(|[pointer, _]| pointer == "/program"), "{faults:?}");
    assert!(
        faults[0][1].starts_with("line 1, column 13: ") && faults[1][1].starts_with("line 4, column 1: "),
        "{faults:?}"
    );
    http.put("/v1/clients/~rules%2Fr/position", &json!({"coordinates": [9, 45]})).await.problem(400);
    // What is shown can be sent back.
    let made = http.put("/v1/rules/r", &traffic()).await.expect(201).json();
    http.put("/v1/rules/r", &made).await.expect(200);
    let listed = http.get("/v1/rules").await.expect(200).json();
    assert_eq!([&listed[0]["name"], &listed[1]["name"]], ["deep", "r"]);
}
