//! Which filters share a place, and where they give that up.

use super::super::Cells;
use crate::area::Area;
use crate::engine::Engine;
use crate::fixtures::{anything, at, equals, filter, number};
use crate::geo::{Position, Radius, World};
use crate::subscription::{ClientId, Subscription, SubscriptionId};

const WORLD: World = World::Planar;

fn install(engine: &mut Cells, id: u32, client: u32, radii_m: &[f64]) {
    let area = |metres: f64| Area::Following(Radius::new(WORLD, metres).unwrap());
    let filters = (0..).zip(radii_m).map(|(index, metres)| match index % 3 {
        0 => anything(area(*metres)),
        kind => filter(area(*metres), equals("kind", number(f64::from(kind)))),
    });
    let subscription = Subscription { client: ClientId(client), filters: filters.collect() };
    engine.install(SubscriptionId(id), &subscription).unwrap();
}

fn place(engine: &mut Cells, client: u32, x: f64) {
    engine.move_client(ClientId(client), Some(spot(x)));
}

fn spot(x: f64) -> Position {
    at(WORLD, [x, 0.0])
}

/// How many filters have a place of their own, and how many bundles.
#[track_caller]
fn check(engine: &Cells, filters: u64, bundles: u64) {
    assert_eq!(engine.index.grid.counts(), (filters, bundles));
}

#[test]
fn filters_of_a_client_and_a_radius_share_a_place() {
    let mut engine = Cells::new(WORLD);
    place(&mut engine, 1, 5.0);
    install(&mut engine, 1, 1, &[100.0, 100.0, 200.0, 100.0]);
    check(&engine, 1, 1);
    install(&mut engine, 2, 1, &[200.0]);
    check(&engine, 0, 2);
    install(&mut engine, 3, 2, &[100.0, 100.0]);
    check(&engine, 0, 2);
    // Ten to a bundle; the last one is alone until another one comes.
    install(&mut engine, 4, 1, &[100.0; 8]);
    check(&engine, 1, 2);
    install(&mut engine, 5, 1, &[100.0]);
    check(&engine, 0, 3);
    engine.move_client(ClientId(1), None);
    check(&engine, 0, 0);
    place(&mut engine, 2, -7.0);
    check(&engine, 0, 1);
    place(&mut engine, 1, 1e6);
    check(&engine, 0, 4);
    for (id, bundles) in [(4, 4), (1, 3), (2, 2), (5, 1), (3, 0)] {
        assert!(engine.remove(SubscriptionId(id)));
        check(&engine, 0, bundles);
    }
}

#[test]
fn bundles_are_loose_in_a_crowd_and_whole_behind_it() {
    let mut engine = Cells::new(WORLD);
    for client in 0..240 {
        place(&mut engine, client, f64::from(client) / 100.0);
        install(&mut engine, client, client, &[50.0, 50.0]);
        if client == 127 {
            check(&engine, 0, 128);
        }
    }
    check(&engine, 480, 0);
    for client in 10..240 {
        place(&mut engine, client, f64::from(client) * 1_000.0);
    }
    check(&engine, 20, 230);
    for client in 0..240 {
        engine.move_client(ClientId(client), None);
    }
    check(&engine, 0, 0);
}
