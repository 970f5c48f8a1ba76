//! The whole in one type, against the oracle, and with what is wrong.

use std::num::NonZeroU32;
use std::time::Duration;

use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::{
    ClientId, Effect, Error, EventBuilder, FilterBuilder, Interest, Matcher, SubscriptionId, Transitions,
    World,
};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

const WORLD: World = World::Planar;

type Told = (Vec<(ClientId, SubscriptionId)>, Vec<Effect<u32>>);

fn filter(random: &mut StdRng) -> FilterBuilder {
    let place = [random.random_range(0.0..1_000.0), random.random_range(0.0..1_000.0)];
    let radius_m = random.random_range(10.0..300.0);
    let filter = match random.random_range(0..6) {
        0 => FilterBuilder::everywhere(),
        1 => FilterBuilder::circle(place, radius_m),
        2 => FilterBuilder::corridor(vec![place, [place[0] + 200.0, place[1]]], radius_m),
        3 => FilterBuilder::around(radius_m).nearest(NonZeroU32::new(2).unwrap()),
        _ => FilterBuilder::around(radius_m),
    };
    match random.random_range(0..3) {
        0 => filter,
        level => filter.when(format!("level >= {level}")),
    }
}

/// The same calls, drawn by the seed, and what each of them told.
fn run(seed: u64, mut matcher: Matcher<u32>) -> Vec<Told> {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut clients, mut subscriptions, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..400 {
        let place = [random.random_range(0.0..1_000.0), random.random_range(0.0..1_000.0)];
        let event = EventBuilder::at(place).with("level", f64::from(random.random_range(0..4)));
        let event = if random.random_bool(0.2) { event.reaching(200.0) } else { event };
        let mut matches = Vec::new();
        let any = |random: &mut StdRng, count: usize| (count > 0).then(|| random.random_range(0..count));
        match random.random_range(0..10) {
            0 => clients.push(matcher.add_client()),
            1 if clients.len() > 3 => {
                let client = clients.swap_remove(random.random_range(0..clients.len()));
                matcher.remove_client(client).unwrap();
                subscriptions.retain(|id| matcher.client_of(*id).is_some());
                assert!(matches!(matcher.set_position(client, None), Err(Error::UnknownClient(_))));
            }
            2 | 3 => {
                let Some(index) = any(&mut random, clients.len()) else { continue };
                let filters: Vec<_> = (0..random.random_range(1..4)).map(|_| filter(&mut random)).collect();
                let transitions = Transitions {
                    enter: true,
                    exit: true,
                    initial: true,
                    dwell: Duration::from_secs(random.random_range(0..3)),
                    hysteresis_m: 0.0,
                };
                let interest =
                    if random.random() { Interest::Events } else { Interest::Transitions(transitions) };
                subscriptions.push(matcher.subscribe_to(clients[index], filters, interest).unwrap());
            }
            4 => {
                let Some(index) = any(&mut random, subscriptions.len()) else { continue };
                matcher.unsubscribe(subscriptions.swap_remove(index)).unwrap();
            }
            5 | 6 => {
                let Some(index) = any(&mut random, clients.len()) else { continue };
                matcher.set_position(clients[index], Some(place)).unwrap();
            }
            7 => matches = matcher.publish(&event).unwrap(),
            8 => {
                let object = format!("object {}", random.random_range(0..20));
                matcher.publish_live(object, &event, Duration::from_secs(20), step).unwrap();
            }
            _ => matcher.advance(Duration::from_secs(u64::from(step) / 4)),
        }
        told.push((matches, matcher.effects().collect()));
    }
    told
}

#[test]
fn it_tells_what_it_tells_over_the_oracle() {
    let (mut matches, mut effects) = (0, 0);
    for seed in 0..40 {
        let told = run(seed, Matcher::new(WORLD));
        assert_eq!(told, run(seed, Matcher::with_engine(WORLD, Box::new(Scan::new(WORLD)))), "seed {seed}");
        matches += told.iter().map(|told| told.0.len()).sum::<usize>();
        effects += told.iter().map(|told| told.1.len()).sum::<usize>();
    }
    assert!(matches > 500 && effects > 1_000, "{matches} {effects}");
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let mut matcher: Matcher<()> = Matcher::new(World::Geodetic);
    let ann = matcher.add_client();
    let gone = matcher.add_client();
    matcher.remove_client(gone).unwrap();
    let subscribe = |matcher: &mut Matcher<()>, filter| matcher.subscribe(ann, [filter]);
    let around = || FilterBuilder::around(10.0);
    assert!(matches!(subscribe(&mut matcher, around().when("a >")), Err(Error::Condition(_))));
    assert!(matches!(subscribe(&mut matcher, FilterBuilder::around(-1.0)), Err(Error::Radius(_))));
    assert!(matches!(
        subscribe(&mut matcher, FilterBuilder::circle([200.0, 0.0], 1.0)),
        Err(Error::Position(_))
    ));
    assert!(matches!(subscribe(&mut matcher, FilterBuilder::polygons(vec![])), Err(Error::Polygon(_))));
    assert!(matches!(subscribe(&mut matcher, FilterBuilder::corridor(vec![], 1.0)), Err(Error::Corridor(_))));
    assert!(matches!(matcher.subscribe(gone, [around()]), Err(Error::UnknownClient(id)) if id == gone));
    assert!(matches!(matcher.remove_client(gone), Err(Error::UnknownClient(_))));
    assert!(matches!(matcher.unsubscribe(SubscriptionId(0)), Err(Error::UnknownSubscription(_))));
    assert!(matches!(matcher.set_position(ann, Some([0.0, 91.0])), Err(Error::Position(_))));
    assert!(matches!(matcher.publish(&EventBuilder::at([f64::NAN, 0.0])), Err(Error::Position(_))));
    let everywhere = matcher.subscribe(ann, [FilterBuilder::everywhere()]).unwrap();
    assert_eq!(matcher.publish(&EventBuilder::at([0.0, 0.0])).unwrap(), [(ann, everywhere)]);
}

#[test]
fn an_id_that_is_given_out_again_brings_nothing_along() {
    let mut matcher: Matcher<()> = Matcher::new(WORLD);
    let first = matcher.add_client();
    matcher.subscribe(first, [FilterBuilder::around(10.0), FilterBuilder::everywhere()]).unwrap();
    matcher.set_position(first, Some([0.0, 0.0])).unwrap();
    matcher.remove_client(first).unwrap();
    let second = matcher.add_client();
    assert_eq!(second, first);
    let here = EventBuilder::at([0.0, 0.0]);
    assert_eq!(matcher.publish(&here).unwrap(), []);
    let around = matcher.subscribe(second, [FilterBuilder::around(10.0)]).unwrap();
    assert_eq!(matcher.publish(&here).unwrap(), [], "it is where the other was");
    matcher.set_position(second, Some([1.0, 0.0])).unwrap();
    assert_eq!(matcher.publish(&here).unwrap(), [(second, around)]);
}
