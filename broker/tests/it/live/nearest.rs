//! Only so many of the nearest live objects count as inside.

use serde_json::{Value, json};

use super::scene::{HOME, Watcher, fence, keyed, lasting, north, post, revoke, start, with};
use crate::harness::{Program, feature};

async fn put(program: &Program, id: &str, metres: f64) {
    post(&program.http(), &lasting(id, north(metres))).await;
}

fn nearest(k: u32, mut area: Value) -> Value {
    area["nearest"] = json!(k);
    json!({"area": area})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nearest_change_as_the_client_moves() {
    let (program, mut car) = start().await;
    for (id, metres) in [("a", 100.0), ("b", 200.0), ("c", 300.0), ("d", 5_000.0)] {
        put(&program, id, metres).await;
    }
    car.ws.subscribe("s", with(fence(&nearest(2, json!({"radius_m": 1_000}))), "initial", json!(true))).await;
    car.ws.subscribe("all", with(fence(&nearest(2, json!({}))), "initial", json!(true))).await;
    let told = ["enter a changed all", "enter a changed s", "enter b changed all", "enter b changed s"];
    car.assert_told("at first", &told).await;
    for (metres, expected) in [
        (199.0, &[][..]),
        (201.0, &["enter c moved all+s", "exit a moved all+s"]),
        (199.0, &["enter a moved all+s", "exit c moved all+s"]),
        // The circle has two at most; everywhere there are always two.
        (-850.0, &["exit b moved s"]),
        (2_599.0, &["enter c moved all", "exit a moved all+s"]),
        (2_601.0, &["enter d moved all", "exit b moved all"]),
        (4_500.0, &["enter d moved s"]),
    ] {
        car.ws.place(north(metres)).await;
        car.assert_told(&format!("{metres} m"), expected).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_comes_nearer_takes_the_place_of_another() {
    let (program, mut car) = start().await;
    let http = program.http();
    car.ws.subscribe("s", fence(&nearest(1, json!({"radius_m": 1_000})))).await;
    put(&program, "a", 500.0).await;
    car.assert_told("the only one", &["enter a published s"]).await;
    post(&http, &keyed("k", "k1", north(600.0))).await;
    car.assert_told("farther away", &[]).await;
    post(&http, &keyed("k", "k2", north(400.0))).await;
    car.assert_told("nearer", &["enter k2 published s", "exit a published s"]).await;
    post(&http, &keyed("k", "k3", north(300.0))).await;
    car.assert_told("nearer still", &[]).await;
    // It walks past the other one: an exit carries what was inside.
    post(&http, &keyed("k", "k4", north(700.0))).await;
    car.assert_told("past it", &["enter a published s", "exit k3 published s"]).await;
    // An end makes room; whatever happened is the cause of all that it leads to.
    revoke(&http, "a").await;
    car.assert_told("revoked", &["enter k4 revoked s", "exit a revoked s"]).await;
    let brief = with(keyed("brief", "brief", HOME), "ttl_s", json!(0.2));
    post(&http, &brief).await;
    for expected in
        [["enter brief published s", "exit k4 published s"], ["enter k4 expired s", "exit brief expired s"]]
    {
        let mut told = [car.next().await, car.next().await];
        told.sort();
        assert_eq!(told, expected);
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_at_the_same_distance_the_earlier_is_nearer() {
    let (program, mut car) = start().await;
    let http = program.http();
    // The id says nothing: only the order of arrival does.
    for (key, id) in [("x", "z"), ("y", "a")] {
        post(&http, &keyed(key, id, north(100.0))).await;
    }
    car.ws.subscribe("s", with(fence(&nearest(1, json!({}))), "initial", json!(true))).await;
    car.assert_told("the earlier", &["enter z changed s"]).await;
    // A newer event of the first makes it the later one.
    post(&http, &keyed("x", "z2", north(100.0))).await;
    car.assert_told("the other", &["enter a published s", "exit z published s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_satisfies_the_filter_is_counted() {
    let (program, mut car) = start().await;
    let http = program.http();
    let filter = with(nearest(1, json!({"radius_m": 1_000})), "where", json!("free = TRUE"));
    car.ws.subscribe("s", fence(&filter)).await;
    let taxi = |id: &str, metres: f64, free: bool| {
        with(keyed(&id[..1], id, north(metres)), "properties", json!({"free": free}))
    };
    post(&http, &taxi("a1", 10.0, false)).await;
    car.assert_told("not free", &[]).await;
    post(&http, &taxi("b1", 500.0, true)).await;
    car.assert_told("free", &["enter b1 published s"]).await;
    post(&http, &taxi("a2", 10.0, true)).await;
    car.assert_told("free as well", &["enter a2 published s", "exit b1 published s"]).await;
    // Nor does one count that does not reach the client.
    post(&http, &with(taxi("c1", 5.0, true), "reach_m", json!(4))).await;
    car.assert_told("out of its reach", &[]).await;
    post(&http, &with(taxi("c2", 5.0, true), "reach_m", json!(6))).await;
    car.assert_told("within its reach", &["enter c2 published s", "exit a2 published s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circle_that_stays_counts_from_the_client_or_from_its_centre() {
    let (program, mut car) = start().await;
    let http = program.http();
    let mut nowhere = Watcher::connect(&program, "nowhere").await;
    put(&program, "south", -200.0).await;
    put(&program, "middle", 10.0).await;
    put(&program, "north", 300.0).await;
    put(&program, "outside", 1_100.0).await;
    let area = json!({"center": HOME, "radius_m": 1_000});
    let subscription = with(fence(&nearest(1, area.clone())), "initial", json!(true));
    nowhere.ws.subscribe("s", subscription.clone()).await;
    nowhere.assert_told("from the centre", &["enter middle changed s"]).await;
    car.ws.place(north(1_200.0)).await;
    car.ws.subscribe("s", subscription).await;
    car.assert_told("from the client", &["enter north changed s"]).await;
    car.ws.place(north(-500.0)).await;
    car.assert_told("which moves", &["enter south moved s", "exit north moved s"]).await;
    nowhere.ws.place(north(400.0)).await;
    nowhere.assert_told("who tells a position", &["enter north moved s", "exit middle moved s"]).await;
    // Other areas have no centre, so without a position they hold nobody.
    let mut late = Watcher::connect(&program, "late").await;
    let line =
        json!({"corridor": {"type": "LineString", "coordinates": [HOME, north(500.0)]}, "radius_m": 50});
    let ring = json!([[8.9, 44.9], [9.1, 44.9], [9.1, 45.1], [8.9, 45.1], [8.9, 44.9]]);
    let polygon = json!({"polygon": {"type": "Polygon", "coordinates": [ring]}});
    for (id, area) in
        [("line", line), ("polygon", polygon), ("all", json!({})), ("near", json!({"radius_m": 9}))]
    {
        late.ws.subscribe(id, with(fence(&nearest(1, area)), "initial", json!(true))).await;
    }
    late.assert_told("nowhere", &[]).await;
    late.ws.place(north(1_050.0)).await;
    late.assert_told("somewhere", &["enter north moved line", "enter outside moved all+polygon"]).await;
    http.delete("/v1/clients/nowhere").await.expect(204);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_come_when_they_are_among_the_nearest() {
    let (program, mut car) = start().await;
    let http = program.http();
    for (id, metres) in [("a", 100.0), ("b", 200.0), ("c", 300.0)] {
        put(&program, id, metres).await;
    }
    car.ws.subscribe("s", json!({"filters": [nearest(1, json!({"radius_m": 1_000}))]})).await;
    car.assert_told("the nearest", &["event a changed s"]).await;
    car.ws.place(north(290.0)).await;
    car.assert_told("another is nearest", &["event c moved s"]).await;
    car.ws.place(HOME).await;
    car.assert_told("it has come before", &[]).await;
    put(&program, "d", 150.0).await;
    car.assert_told("one that is farther", &[]).await;
    put(&program, "e", 50.0).await;
    car.assert_told("one that is nearer", &["event e published s"]).await;
    post(&http, &feature("over", HOME, json!({}))).await;
    car.assert_told("what is not live is never among them", &[]).await;
    revoke(&http, "e").await;
    car.assert_told("the next one has come before", &[]).await;
    revoke(&http, "a").await;
    car.assert_told("one that has not come", &["event d revoked s"]).await;
    // Another filter of the same subscription is not bound by it.
    let filters = json!([nearest(1, json!({"radius_m": 1_000})), {"where": "loud = TRUE"}]);
    car.ws.subscribe("s", json!({"filters": filters})).await;
    post(&http, &with(lasting("loud", north(900.0)), "properties", json!({"loud": true}))).await;
    car.assert_told("heard", &["event loud published s"]).await;
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_number_changes_who_is_inside() {
    let (program, mut car) = start().await;
    for (id, metres) in [("a", 100.0), ("b", 200.0), ("c", 300.0)] {
        put(&program, id, metres).await;
    }
    for (k, expected) in [
        (1, &[][..]),
        (3, &["enter b changed s", "enter c changed s"]),
        (1_000, &[]),
        (2, &["exit c changed s"]),
    ] {
        car.ws.subscribe("s", fence(&nearest(k, json!({"radius_m": 1_000})))).await;
        car.assert_told(&format!("{k} nearest"), expected).await;
    }
    program.finish().await;
}
