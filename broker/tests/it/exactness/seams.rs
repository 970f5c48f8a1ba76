//! The antimeridian and the poles are ordinary places.

use std::collections::HashMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::brute::{self, Filter, Step, document};
use super::clients::LAST;
use super::compare;
use super::geometry::{Area, Place};
use crate::harness::{Form, Serve, encode, feature, soak};

/// Centres of what happens: where coordinates wrap, meet or end.
const SEAMS: [Place; 6] =
    [[180.0, 0.0], [-180.0, -17.0], [179.99, 66.0], [0.0, 90.0], [-75.0, -90.0], [120.0, 89.9]];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poles_and_antimeridian_are_ordinary_places() {
    let rounds_count = if soak() { 200 } else { 20 };
    let program = Serve::new().args(&["--shards", "2"]).start().await;
    let mut client = program.ws("traveller").await;
    let http = program.http();
    let (steps, brute) = brute::start(1);
    let tell = |step| steps.send(step).expect("the brute force lives");
    let mut rng = StdRng::seed_from_u64(180);
    client.subscribe("last", json!({"filters": [{"where": "kind = 'last'"}]})).await;
    for idx in 0..200 {
        let subscription = vec![Filter { area: area(&mut rng, idx), condition_idx: 0 }];
        let id = format!("s{idx:03}");
        client.subscribe(&id, document(&subscription)).await;
        tell(Step::Subscribe { client_idx: 0, id, subscription });
    }
    let mut events_count = 0;
    for round in 0..rounds_count {
        let position = near(&mut rng, SEAMS[round % SEAMS.len()], 20_000.0);
        client.place(position).await;
        tell(Step::Move { client_idx: 0, place: position });
        let mut events = Vec::new();
        for seam in SEAMS.iter().cycle().take(30) {
            let place = near(&mut rng, *seam, 60_000.0);
            let id = format!("e{events_count}");
            events_count += 1;
            events.push(feature(&id, place, json!({})));
            tell(Step::Publish { id, place, reach_m: None, properties: json!({}) });
        }
        let (content_type, body) = encode(Form::Collection, &events);
        http.post("/v1/events", content_type, body).await.expect(202);
    }
    client.publish(&feature(LAST, [0.0, 0.0], json!({"kind": "last"}))).await;
    let mut got = HashMap::new();
    loop {
        let frame = client.event().await;
        let id = frame["event"]["id"].as_str().expect("a text").to_owned();
        if id == LAST {
            break;
        }
        let ids = frame["subscriptions"].as_array().expect("an array").iter();
        let mut ids = ids.map(|id| id.as_str().expect("a text").to_owned()).collect::<Vec<_>>();
        ids.sort();
        assert!(got.insert(id, ids).is_none(), "came twice: {frame}");
    }
    drop(steps);
    let expected = brute.join().expect("the brute force did not fail");
    compare(&Arc::new(expected), &[got], events_count / 4);
    program.finish().await;
}

fn area(rng: &mut StdRng, idx: usize) -> Area {
    let seam = SEAMS[idx / 5 % SEAMS.len()];
    let center = near(rng, seam, 30_000.0);
    match idx % 5 {
        0 => Area::Following { radius_m: rng.random_range(100.0..60_000.0) },
        1 => Area::Circle { center, radius_m: rng.random_range(100.0..60_000.0) },
        2 => Area::Circle { center, radius_m: rng.random_range(1e6..1.9e7) },
        3 => {
            let line = vec![center, near(rng, seam, 80_000.0), near(rng, seam, 80_000.0)];
            Area::Corridor { line, radius_m: rng.random_range(100.0..20_000.0) }
        }
        _ => Area::Polygons(cut_in_two(rng, center[1])),
    }
}

/// A box across the antimeridian, cut there; at a pole it is the whole cap.
fn cut_in_two(rng: &mut StdRng, lat: f64) -> Vec<Vec<Vec<Place>>> {
    let (south, north) =
        ((lat - rng.random_range(0.05..0.4)).max(-90.0), (lat + rng.random_range(0.05..0.4)).min(90.0));
    let reach = if lat.abs() > 80.0 { 180.0 } else { rng.random_range(0.01..0.5) };
    let (east, west) = (180.0 - reach, -180.0 + reach);
    vec![
        vec![vec![[east, south], [180.0, south], [180.0, north], [east, north], [east, south]]],
        vec![vec![[-180.0, south], [west, south], [west, north], [-180.0, north], [-180.0, south]]],
    ]
}

/// A place within a distance of another, however the coordinates wrap between them.
fn near(rng: &mut StdRng, [lon, lat]: Place, reach_m: f64) -> Place {
    let (lon, lat) = (lon.to_radians(), lat.to_radians());
    let angle = rng.random_range(0.0..std::f64::consts::TAU);
    let arc = rng.random_range(0.0..reach_m) / 6_371_008.8;
    let sin_lat = lat.sin() * arc.cos() + lat.cos() * arc.sin() * angle.cos();
    let new_lat = sin_lat.clamp(-1.0, 1.0).asin();
    let turn = (angle.sin() * arc.sin() * lat.cos()).atan2(arc.cos() - lat.sin() * sin_lat);
    let new_lon = (lon + turn).to_degrees();
    [(new_lon + 540.0).rem_euclid(360.0) - 180.0, new_lat.to_degrees()]
}
