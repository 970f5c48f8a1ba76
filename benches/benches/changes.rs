//! What does a change of an engine cost: a subscription that comes and one that goes, a client that moves?
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;

use benches::micro::{answer, check, filled, workload};
use divan::Bencher;
use matcher::engine::Engine as _;
use matcher::fixtures::workload::{Config, Workload};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

/// Subscriptions of ten filters: few enough to be filled in a second, too many for the caches.
const SUBSCRIPTIONS: [u32; 2] = [5_000, 50_000];

fn main() {
    divan::main();
}

fn sized(subscriptions: u32) -> Workload {
    workload(Config { subscriptions, ..Config::default() })
}

/// A new subscription of ten filters is installed, and the oldest one removed.
#[divan::bench(args = SUBSCRIPTIONS)]
fn install_and_remove(bencher: Bencher<'_, '_>, subscriptions: u32) {
    let workload = sized(subscriptions);
    let clients = workload.config().subscriptions;
    let mut engine = filled(&workload);
    // The client is one that is there already, so that the areas have a centre.
    let drawn = |id: u32| Subscription { client: ClientId(id % clients), ..workload.subscription(id) };
    let next = RefCell::new(clients);
    bencher
        .with_inputs(|| {
            let id = next.replace_with(|id| *id + 1);
            (id, drawn(id))
        })
        .bench_local_values(|(id, subscription)| {
            engine.install(SubscriptionId(id), &subscription).expect("one has just gone");
            engine.remove(SubscriptionId(id - clients))
        });
    let ids = next.take() - clients..;
    let mut anew = matcher::engine::scan::Scan::new(workload.world());
    for id in ids.take(clients as usize) {
        let client = ClientId(id % clients);
        anew.move_client(client, Some(workload.position(workload.home(client))));
        anew.install(SubscriptionId(id), &drawn(id)).expect("the oracle takes everything");
    }
    assert_eq!(engine.footprint().filters, anew.footprint().filters);
    for index in 0..20 {
        let event = workload.event(index);
        let (found, expected) = (answer(&mut engine, &event), answer(&mut anew, &event));
        assert_eq!(found.expect("it matches"), expected.expect("it matches"), "event {index}");
    }
}

/// A client with ten filters jumps to anywhere.
#[divan::bench(args = SUBSCRIPTIONS)]
fn move_anywhere(bencher: Bencher<'_, '_>, subscriptions: u32) {
    let workload = sized(subscriptions);
    moves(bencher, &workload, |index, _| workload.jump(index));
}

/// A client with ten filters goes ten metres.
#[divan::bench(args = SUBSCRIPTIONS)]
fn move_10_m(bencher: Bencher<'_, '_>, subscriptions: u32) {
    let workload = sized(subscriptions);
    moves(bencher, &workload, |index, spots| {
        let (client, _) = workload.jump(index);
        let from = spots.get(&client).copied().unwrap_or_else(|| workload.home(client));
        (client, workload.step(index, from, 10.0))
    });
}

type Spots = HashMap<ClientId, matcher::fixtures::workload::Spot>;

fn moves(
    bencher: Bencher<'_, '_>,
    workload: &Workload,
    draw: impl Fn(u64, &Spots) -> (ClientId, matcher::fixtures::workload::Spot),
) {
    let mut engine = filled(workload);
    let state = RefCell::new((0, Spots::new()));
    bencher
        .with_inputs(|| {
            let (index, spots) = &mut *state.borrow_mut();
            let (client, spot) = draw(*index, spots);
            spots.insert(client, spot);
            *index += 1;
            (client, workload.position(spot))
        })
        .bench_local_values(|(client, position)| engine.move_client(client, Some(position)));
    let (_, spots) = state.into_inner();
    let moved = spots.into_iter().map(|(client, spot)| (client, workload.position(spot)));
    check(&mut engine, workload, moved).expect("moved filters are found");
}
