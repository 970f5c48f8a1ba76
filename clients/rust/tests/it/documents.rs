//! The contract's vectors of conditions, areas and problems.

use nearcast_client::condition::Literal;
use nearcast_client::{
    Area, Condition, Coordinates, Error, Subscription, along_route, around, attr, circle, connect, corridor,
    documents, everywhere, polygon,
};
use serde_json::{Value, json};

use crate::{by_value, scripted::Server, vectors, within};

fn literal(value: &Value) -> Literal {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) if number.is_i64() => number.as_i64().expect("a whole number").into(),
        Value::Number(number) => number.as_f64().expect("a number").into(),
        Value::String(text) => text.as_str().into(),
        Value::Null | Value::Array(_) | Value::Object(_) => panic!("no value: {value}"),
    }
}

fn texts(values: &Value) -> Vec<&str> {
    values.as_array().expect("an array").iter().map(text).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn condition(form: &Value) -> Condition {
    let parts = form.as_array().expect("a form");
    let all = || parts[1..].iter().map(condition);
    let (name, value) = (|| attr(text(&parts[1])), &parts[2.min(parts.len() - 1)]);
    match text(&parts[0]) {
        "and" => all().reduce(Condition::and).expect("conditions"),
        "or" => all().reduce(Condition::or).expect("conditions"),
        "not" => !condition(&parts[1]),
        "=" => name().eq(literal(value)),
        "<>" => name().ne(literal(value)),
        "<" => name().lt(literal(value)),
        "<=" => name().le(literal(value)),
        ">" => name().gt(literal(value)),
        ">=" => name().ge(literal(value)),
        "between" => name().between(literal(value), literal(&parts[3])),
        "in" => name().is_in(value.as_array().expect("values").iter().map(literal)),
        "like" => name().like(text(value)),
        "isnull" => name().is_null(),
        "isnotnull" => name().is_not_null(),
        "casei=" => name().casei().eq(text(value)),
        "casei<>" => name().casei().ne(text(value)),
        "caseiin" => name().casei().is_in(texts(value)),
        "caseilike" => name().casei().like(text(value)),
        other => panic!("a form that the contract does not have: {other}"),
    }
}

#[test]
fn conditions_are_written_as_the_contract_says() {
    let vectors = vectors("conditions.json");
    let built = vectors.as_array().expect("an array").iter().filter(|vector| vector["builder"].is_array());
    let mut count = 0;
    for vector in built {
        assert_eq!(condition(&vector["builder"]).to_string(), text(&vector["text"]), "{}", vector["name"]);
        count += 1;
    }
    assert!(count > 50, "there are {count}");
}

#[test]
fn conditions_combine_by_operators_as_well() {
    let built = attr("a").eq(1) & (attr("b").gt(2.5) | !attr("c").is_null());
    assert_eq!(built.to_string(), "a = 1 AND (b > 2.5 OR NOT c IS NULL)");
    assert_eq!(attr("a").lt(f64::NAN).to_string(), "a < NaN", "which the broker refuses, for it is a name");
}

fn positions(value: &Value) -> Vec<Coordinates> {
    serde_json::from_value(value.clone()).expect("positions")
}

fn area(form: &Value) -> Area {
    let mut parts = form.as_array().expect("a form").clone();
    let last = parts.last().cloned().unwrap_or_default();
    if last[0] == "nearest" {
        parts.pop();
        let k = last[1].as_u64().and_then(|k| u32::try_from(k).ok());
        return area(&Value::Array(parts)).nearest(k.expect("a number"));
    }
    let place = |value: &Value| serde_json::from_value::<Coordinates>(value.clone()).expect("a place");
    let radius_m = |place: usize| parts[place].as_f64().expect("a number");
    match text(&parts[0]) {
        "around" => around(radius_m(1)),
        "circle" => circle(place(&parts[1]), radius_m(2)),
        "polygon" if parts[1].is_object() => polygon(parts[1].clone()),
        "polygon" => polygon(parts[1].as_array().expect("rings").iter().map(positions).collect::<Vec<_>>()),
        "corridor" if parts[1].is_object() => corridor(parts[1].clone(), radius_m(2)),
        "along_route" => along_route(place(&parts[1]), radius_m(2)),
        "corridor" => corridor(positions(&parts[1]), radius_m(2)),
        "everywhere" => everywhere(),
        other => panic!("a form that the contract does not have: {other}"),
    }
}

#[test]
fn areas_are_written_as_the_contract_says() {
    let all = ["areas.json", "route_areas.json"].map(vectors);
    for vector in all.iter().flat_map(|vectors| vectors.as_array().expect("an array")) {
        let document = documents::Subscription::from(Subscription::from(area(&vector["builder"])));
        let filter = serde_json::to_value(&document.filters[0]).expect("JSON");
        let expected = if vector["area"].is_null() { json!({}) } else { json!({"area": vector["area"]}) };
        assert_eq!(by_value(&filter), by_value(&expected), "{}", vector["name"]);
    }
}

#[tokio::test]
async fn problems_are_read_as_the_contract_says() {
    let server = Server::start().await;
    let connecting = tokio::spawn(connect(server.url(), "ann").into_future());
    let mut peer = server.request().await.accept().await;
    peer.ready("e1", 0).await;
    let (session, _messages) = within("connect", connecting).await.expect("no panic").expect("connected");
    for vector in vectors("problems.json").as_array().expect("an array") {
        let asking = tokio::spawn({
            let session = session.clone();
            async move { session.subscriptions().await }
        });
        let status =
            vector["status"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
        let request = server.request().await;
        assert_eq!(request.line(), "GET /v1/clients/ann/subscriptions");
        request.answer(status, &vector["headers"], text(&vector["body"])).await;
        let error = within("an answer", asking).await.expect("no panic").expect_err("a problem");
        let Error::Problem { problem, retry_after, .. } = error else {
            panic!("{}: {error:?}", vector["name"])
        };
        let code = problem.code().to_owned();
        let mut read = serde_json::to_value(problem).expect("JSON");
        let members = read.as_object_mut().expect("members");
        members.remove("type");
        members.insert("code".to_owned(), code.into());
        if let Some(retry_after) = retry_after {
            members.insert("retry_after_s".to_owned(), retry_after.as_secs().into());
        }
        assert_eq!(by_value(&read), by_value(&vector["expect"]), "{}", vector["name"]);
    }
}
