//! Where exactly an object enters and leaves.

use serde_json::{Value, json};

use super::scene::{HOME, Watcher, circle, fence, following, keyed, lasting, north, post, with};
use crate::harness::Serve;

/// An object walks through a subscription; each step says what is told of it.
async fn walk(world: &str, subscription: Value, steps: &[([f64; 2], Told)]) {
    let program = Serve::new().args(&["--world", world]).start().await;
    let http = program.http();
    let mut car = Watcher::connect(&program, "car").await;
    car.ws.subscribe("s", subscription.clone()).await;
    for (idx, (place, told)) in steps.iter().enumerate() {
        post(&http, &keyed("k", &format!("k{idx}"), *place)).await;
        let expected = match told {
            Told::Nothing => Vec::new(),
            Told::Enter => vec![format!("enter k{idx} published s")],
            // The last event during its stay is the one before.
            Told::Exit => vec![format!("exit k{} published s", idx - 1)],
        };
        assert_eq!(car.told().await, expected, "step {idx} to {place:?} in {subscription}");
    }
    program.finish().await;
}

/// What a step leads to.
#[derive(Clone, Copy)]
enum Told {
    Nothing,
    Enter,
    Exit,
}

use Told::{Enter, Exit, Nothing};

fn hysteresis(filters: &Value, metres: f64) -> Value {
    json!({"filters": filters, "on": ["enter", "exit"], "hysteresis_m": metres})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_circle_ends_at_its_radius() {
    let steps = [
        (north(100.001), Nothing),
        (north(99.999), Enter),
        (north(100.001), Exit),
        (north(-99.999), Enter),
        (north(-100.001), Exit),
    ];
    walk("geodetic", fence(&circle(100.0)), &steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_beyond_the_hysteresis_and_enters_at_the_radius() {
    let steps = [
        (north(120.0), Nothing),
        (north(99.999), Enter),
        (north(120.0), Nothing),
        (north(149.999), Nothing),
        (north(50.0), Nothing),
        (north(-149.999), Nothing),
        (north(-150.001), Exit),
        // Out it is: the way back in is the radius.
        (north(149.999), Nothing),
        (north(100.001), Nothing),
        (north(99.999), Enter),
    ];
    walk("geodetic", hysteresis(&json!([circle(100.0)]), 50.0), &steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn borders_of_a_planar_world_are_exact() {
    let area = json!({"area": {"center": [0, 0], "radius_m": 500}});
    let steps = [
        ([300.0, 400.001], Nothing),
        ([300.0, 400.0], Enter),
        // 505 m away, exactly.
        ([303.0, 404.0], Nothing),
        ([303.0, 404.001], Exit),
        ([303.0, 404.0], Nothing),
    ];
    walk("planar", hysteresis(&json!([area]), 5.0), &steps).await;
    let square = json!({"area": {"polygon": {"type": "Polygon",
        "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}}});
    let steps = [
        ([10.001, 5.0], Nothing),
        ([10.0, 5.0], Enter),
        ([15.0, 5.0], Nothing),
        ([13.0, 14.0], Nothing),
        ([13.0, 14.001], Exit),
        ([10.0, 10.0], Enter),
        ([15.001, 5.0], Exit),
    ];
    walk("planar", hysteresis(&json!([square]), 5.0), &steps).await;
    let corridor = json!({"area": {"corridor": {"type": "LineString", "coordinates": [[0, 0], [100, 0]]},
        "radius_m": 5}});
    let steps = [
        ([50.0, 5.0], Enter),
        ([50.0, -8.0], Nothing),
        ([50.0, -8.001], Exit),
        ([103.0, 4.0], Enter),
        ([108.0, 0.0], Nothing),
        ([108.001, 0.0], Exit),
    ];
    walk("planar", hysteresis(&json!([corridor]), 3.0), &steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polygons_and_corridors_on_the_globe_have_a_hysteresis_too() {
    // At the equator a degree is the same both ways.
    let east = |metres: f64| [north(metres)[1] - HOME[1] + 0.01, 0.005];
    let square = json!({"area": {"polygon": {"type": "Polygon",
        "coordinates": [[[0, 0], [0.01, 0], [0.01, 0.01], [0, 0.01], [0, 0]]]}}});
    let steps = [
        (east(0.01), Nothing),
        (east(-0.01), Enter),
        (east(29.9), Nothing),
        (east(30.1), Exit),
        (east(29.9), Nothing),
    ];
    walk("geodetic", hysteresis(&json!([square]), 30.0), &steps).await;
    let line = json!({"type": "LineString", "coordinates": [HOME, north(1_000.0)]});
    let corridor = json!({"area": {"corridor": line, "radius_m": 20}});
    let steps = [
        (north(1_020.01), Nothing),
        (north(1_019.99), Enter),
        (north(1_049.99), Nothing),
        (north(1_050.01), Exit),
    ];
    walk("geodetic", hysteresis(&json!([corridor]), 30.0), &steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_leaves_when_it_is_far_from_every_area() {
    let other = json!({"area": {"center": north(1_000.0), "radius_m": 100}});
    let steps = [
        (north(0.0), Enter),
        (north(140.0), Nothing),
        (north(860.0), Nothing),
        (north(1_140.0), Nothing),
        (north(500.0), Exit),
        (north(860.0), Nothing),
    ];
    walk("geodetic", hysteresis(&json!([circle(100.0), other]), 50.0), &steps).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_and_reach_have_no_hysteresis() {
    let (program, mut car) = super::scene::start().await;
    let http = program.http();
    let filter = with(circle(100.0), "where", json!("n < 10"));
    car.ws.subscribe("s", hysteresis(&json!([filter]), 1_000.0)).await;
    let mut step = async |id: &str, metres: f64, n: i32, reach_m: f64| {
        let event = with(keyed("k", id, north(metres)), "properties", json!({"n": n}));
        post(&http, &with(event, "reach_m", json!(reach_m))).await;
        car.told().await
    };
    assert_eq!(step("k0", 0.0, 9, 5_000.0).await, ["enter k0 published s"]);
    assert_eq!(step("k1", 900.0, 9, 5_000.0).await, [""; 0]);
    assert_eq!(step("k2", 900.0, 10, 5_000.0).await, ["exit k1 published s"]);
    assert_eq!(step("k3", 0.0, 9, 5_000.0).await, ["enter k3 published s"]);
    assert_eq!(step("k4", 50.0, 9, 50.1).await, [""; 0]);
    assert_eq!(step("k5", 50.0, 9, 49.9).await, ["exit k4 published s"]);
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_subscriber_has_the_same_borders() {
    let (program, mut car) = super::scene::start().await;
    post(&program.http(), &lasting("e", north(1_000.0))).await;
    car.ws.subscribe("s", hysteresis(&json!([following(100.0)]), 50.0)).await;
    car.ws.subscribe("t", fence(&following(100.0))).await;
    for (metres, expected) in [
        (899.999, &[][..]),
        (900.001, &["enter e moved s+t"]),
        (1_100.001, &["exit e moved t"]),
        (1_149.999, &[]),
        (1_150.001, &["exit e moved s"]),
        (1_100.001, &[]),
        (1_099.999, &["enter e moved s+t"]),
    ] {
        car.ws.place(north(metres)).await;
        car.assert_told(&format!("{metres} m"), expected).await;
    }
    program.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_hysteresis_counts_at_once() {
    let (program, mut car) = super::scene::start().await;
    post(&program.http(), &keyed("k", "k1", HOME)).await;
    car.ws.subscribe("s", hysteresis(&json!([circle(100.0)]), 50.0)).await;
    post(&program.http(), &keyed("k", "k2", north(120.0))).await;
    car.assert_told("within", &[]).await;
    car.ws.subscribe("s", hysteresis(&json!([circle(100.0)]), 30.0)).await;
    car.assert_told("still within", &[]).await;
    car.ws.subscribe("s", fence(&circle(100.0))).await;
    car.assert_told("without it is outside", &["exit k2 changed s"]).await;
    car.ws.subscribe("s", hysteresis(&json!([circle(100.0)]), 50.0)).await;
    car.assert_told("and does not come back by it", &[]).await;
    program.finish().await;
}
