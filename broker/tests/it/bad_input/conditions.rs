//! Conditions that are refused, and where they say why.

use serde_json::{Value, json};

use super::{nested_arrays, with_condition};
use crate::harness::{Serve, Witness};

const PATH: &str = "/v1/clients/car/subscriptions/s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_are_no_condition_say_where() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    for (text, column) in [
        ("", 1),
        ("   ", 4),
        ("severity >", 11),
        ("severity > > 2", 12),
        ("severity >= 2 AND", 18),
        ("severity >= 2 AND AND a = 1", 19),
        ("severity == 2", 11),
        ("severity != 2", 10),
        ("severity >= 2 severity", 15),
        ("(severity >= 2", 15),
        ("severity >= 2)", 14),
        ("type = 'accident", 8),
        ("type LIKE 5", 11),
        ("type IN ()", 10),
        ("type IN ('a',)", 14),
        ("a BETWEEN 1", 12),
        ("a BETWEEN 1 OR 2", 13),
        ("a IS NOTHING", 6),
        ("a = 1e999", 5),
        ("a = \u{a7}", 5),
        ("a = 1; DROP TABLE clients", 6),
        ("S_INTERSECTS(geometry, POINT(0 0))", 1),
        ("a = 1 +", 8),
    ] {
        let answer = http.send("PUT", PATH, Some("application/json"), with_condition(text)).await;
        let problem = answer.problem(400);
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], "/filters/0/where", "{text:?}: {problem}");
        let told = error["detail"].as_str().unwrap_or_default();
        let words = format!("column {column}");
        assert!(told.contains(&words), "{text:?}: should say {words:?}: {problem}");
        witness.probe(text, &http).await;
    }
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_too_large_say_how_large() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let pairs = |count: usize| {
        (0..count).map(|idx| format!("(a{idx} = 1 OR b{idx} = 1)")).collect::<Vec<_>>().join(" AND ")
    };
    let any = |count: usize| (0..count).map(|idx| format!("a = {idx}")).collect::<Vec<_>>().join(" OR ");
    let all = |count: usize| (0..count).map(|idx| format!("a{idx} > 0")).collect::<Vec<_>>().join(" AND ");
    // PROTOCOL: at most 64 conjunctions of 32 constraints each, refused with the count.
    for (text, count) in [(pairs(6), None), (pairs(7), Some("128")), (any(64), None), (any(65), Some("65"))]
        .into_iter()
        .chain([(all(32), None), (all(33), Some("33")), (pairs(20), Some(""))])
    {
        let answer = http.send("PUT", PATH, Some("application/json"), with_condition(&text)).await;
        match count {
            None => assert!([200, 201].contains(&answer.status), "{text}: {}", answer.text()),
            Some(count) => {
                let problem = answer.problem(400).to_string();
                assert!(problem.contains(count), "{text}: should tell {count}: {problem}");
            }
        }
        witness.probe(&text, &http).await;
    }
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_that_nest_deep_are_refused() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let wrapped = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let json_nots = |times: usize| {
        let text =
            wrapped(r#"{"op":"not","args":["#, r#"{"op":"isNull","args":[{"property":"a"}]}"#, "]}", times);
        format!(r#"{{"filters":[{{"where":{text}}}]}}"#)
    };
    for (name, body) in [
        ("5,000 parentheses", with_condition(&wrapped("(", "a = 1", ")", 5_000))),
        ("5,000 open parentheses", with_condition(&"(".repeat(5_000))),
        ("4,000 NOT", with_condition(&wrapped("NOT (", "a = 1", ")", 2_000))),
        ("2,000 nested AND", with_condition(&wrapped("(b = 1 AND ", "a = 1", ")", 1_000))),
        ("1,000 CASEI", with_condition(&format!("{} = 'x'", wrapped("CASEI(", "a", ")", 1_000)))),
        ("a long condition", with_condition(&format!("a = '{}'", "x".repeat(20_000)))),
        ("5,000 nots in JSON", json_nots(5_000)),
        ("an array in JSON", format!(r#"{{"filters":[{{"where":{}}}]}}"#, nested_arrays(5_000))),
    ] {
        let answer = http.send("PUT", PATH, Some("application/json"), body).await;
        assert!([400, 413].contains(&answer.status), "{name}: {} {}", answer.status, answer.text());
        let status = answer.status;
        answer.problem(status);
        witness.probe(name, &http).await;
        program.assert_healthy();
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_that_is_no_condition_says_where() {
    let mut program = Serve::new().start().await;
    let mut witness = Witness::new(&program).await;
    let http = program.http();
    let property = || json!({"property": "a"});
    for (condition, pointer) in [
        (json!(5), "/filters/0/where"),
        (json!([]), "/filters/0/where"),
        (json!({}), "/filters/0/where"),
        (json!({"op": "explode", "args": []}), "/filters/0/where/op"),
        (json!({"op": "=", "args": [property()]}), "/filters/0/where/args"),
        (json!({"op": "=", "args": [property(), {"op": "+", "args": [1]}]}), "/filters/0/where/args/1"),
        (
            json!({"op": "and", "args": [{"op": "isNull", "args": [property()]}, 7]}),
            "/filters/0/where/args/1",
        ),
        (json!({"op": "between", "args": [property(), 1]}), "/filters/0/where/args"),
        (json!({"op": "in", "args": [property(), []]}), "/filters/0/where/args/1"),
        (json!({"op": "like", "args": [property(), 5]}), "/filters/0/where/args/1"),
    ] {
        let body = json!({"filters": [{"where": condition}]});
        let problem = http.put(PATH, &body).await.problem(400);
        let told = problem["errors"][0]["pointer"].as_str().unwrap_or_default();
        assert!(told.starts_with(pointer), "{condition}: should point to {pointer}: {problem}");
        witness.probe(&condition.to_string(), &http).await;
    }
    program.assert_healthy();
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_condition_that_come_twice_are_told_by_name_and_place() {
    let program = Serve::new().start().await;
    let http = program.http();
    let mut client = program.ws("car").await;
    for (condition, member) in [
        (r#"{"op":"=","op":"<>","args":[{"property":"a"},1]}"#, "op"),
        (r#"{"op":"=","args":[{"property":"a"},1],"args":[{"property":"b"},2]}"#, "args"),
        (
            r#"{"op":"not","args":[{"op":"isNull","args":[{"property":"a","property":"a"}]}]}"#,
            "args/0/args/0/property",
        ),
    ] {
        let subscription = format!(r#"{{"filters":[{{}},{{"where":{condition}}}]}}"#);
        let expected = json!([{
            "pointer": format!("/filters/1/where/{member}"),
            "detail": "this member is given twice",
        }]);
        let problem =
            http.send("PUT", PATH, Some("application/json"), subscription.clone()).await.problem(400);
        assert_eq!(problem["errors"], expected, "{condition}");
        let frame = subscription.replacen('{', r#"{"op":"subscribe","id":"s","#, 1);
        client.send_text(frame).await;
        let answer = client.next().await;
        assert_eq!(answer["problem"], problem, "{condition}");
    }
    http.get(PATH).await.expect(404);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_of_a_subscription_is_told_at_once() {
    let program = Serve::new().start().await;
    let body = json!({"filters": [
        {"where": "a = "},
        {"area": {"radius_m": -5}},
        {"where": "a = 1"},
        {"area": {"center": [9, 95], "radius_m": 5}, "where": "b >"}]});
    let problem = program.http().put(PATH, &body).await.problem(400);
    let errors = problem["errors"].as_array().expect("an array");
    let pointers = errors.iter().filter_map(|error| error["pointer"].as_str()).collect::<Vec<_>>();
    for filter in ["/filters/0/where", "/filters/1/area", "/filters/3/area", "/filters/3/where"] {
        assert!(pointers.iter().any(|pointer| pointer.starts_with(filter)), "{filter}: {problem}");
    }
    assert!(!pointers.iter().any(|pointer| pointer.starts_with("/filters/2")), "{problem}");
    program.http().get(PATH).await.expect(404);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_normalised_form_is_told_and_means_the_same() {
    let program = Serve::new().start().await;
    let http = program.http();
    for text in [
        "a = 1",
        "NOT (a = 1 OR b IS NULL)",
        "(a = 1 OR b = 2) AND (c LIKE 'x%' OR d BETWEEN 1 AND 2)",
        "CASEI(a) = CASEI('X') OR e IN (1, 'two', TRUE)",
        "\"odd name\" = 'it''s' AND NOT (f NOT IN (1, 2))",
    ] {
        let first = http.put(PATH, &json!({"filters": [{"where": text}]})).await;
        assert!([200, 201].contains(&first.status), "{text}: {}", first.text());
        let first = first.json();
        let normal = first["filters"][0]["where"].clone();
        assert!(normal.is_string() || normal.is_object(), "{text}: {first}");
        // A normal form is a condition, and its own normal form.
        let again = http.put(PATH, &json!({"filters": [{"where": normal}]})).await.expect(200).json();
        assert_eq!(again["filters"][0]["where"], first["filters"][0]["where"], "{text}");
        let kept = http.get(PATH).await.expect(200).json();
        assert_eq!(kept["filters"], again["filters"], "{text}");
        let listed = http.get("/v1/clients/car/subscriptions").await.expect(200).json();
        let listed =
            listed.as_array().or_else(|| listed["subscriptions"].as_array()).cloned().unwrap_or_default();
        assert_eq!(
            listed.iter().map(|one| one["id"].clone()).collect::<Vec<Value>>(),
            [json!("s")],
            "{listed:?}"
        );
    }
    program.finish().await;
}
