//! Explanations against the engines: they cannot say otherwise.

use nearcast_matcher::condition::expression::{Expression, Truth};
use nearcast_matcher::engine::cells::Cells;
use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::engine::{Engine, MatchRows};
use nearcast_matcher::evaluation::{filter_matches, reaches};
use nearcast_matcher::event::Event;
use nearcast_matcher::explain::{Explanation, explain};
use nearcast_matcher::fixtures::random::Scene;
use nearcast_matcher::geo::World;
use nearcast_matcher::subscription::{ClientId, Filter, SubscriptionId};

/// For each event whether each subscription is satisfied.
fn answers(engine: &mut dyn Engine, scene: &Scene) -> Vec<Vec<bool>> {
    for (client, position) in (0..).map(ClientId).zip(&scene.clients) {
        engine.move_client(client, *position);
    }
    for (id, subscription) in (0..).map(SubscriptionId).zip(&scene.subscriptions) {
        engine.install(id, subscription).unwrap();
    }
    let mut rows = MatchRows::default();
    engine.match_batch(&scene.events.iter().collect::<Vec<_>>(), &mut rows).unwrap();
    let ids = (0..).map(SubscriptionId).take(scene.subscriptions.len());
    (0..scene.events.len())
        .map(|event| ids.clone().map(|id| rows.row(event).contains(&id)).collect())
        .collect()
}

/// Whether some part is true or false whatever happens; `AND` and `OR` of nothing are.
fn has_constants(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) => true,
        Expression::Constraint(_) | Expression::Residual(_) => false,
        Expression::Not(inner) => has_constants(inner),
        Expression::And(inner) | Expression::Or(inner) => inner.is_empty() || inner.iter().any(has_constants),
    }
}

/// The parts must add up to the whole.
#[track_caller]
fn check_parts(explanation: &Explanation, filters: &[Filter], event: &Event) {
    assert_eq!(explanation.filters.len(), filters.len());
    for (filter, asked) in explanation.filters.iter().zip(filters) {
        assert_eq!(filter.matched, filter.area.holds && filter.condition.truth == Truth::True);
        assert_eq!(filter.area.holds, filter.area.outside_m == Some(0.0));
        if let (Some(distance_m), Some(radius_m)) = (filter.area.distance_m, filter.area.radius_m) {
            assert_eq!(filter.area.holds, distance_m <= radius_m);
        }
        // With the negations at the constraints, one that is not true is what keeps the whole from being true.
        let truths = || filter.condition.constraints.iter().map(|part| part.truth);
        if !has_constants(asked.condition.expression()) {
            let whole = filter.condition.truth == Truth::True;
            assert!(whole || truths().any(|truth| truth != Truth::True), "{filter:?}");
            assert!(!whole || truths().any(|truth| truth == Truth::True), "{filter:?}");
        }
        for part in &filter.condition.constraints {
            assert_eq!(part.value.as_ref(), event.value(&part.attribute.as_str().into()));
            assert!(!part.reason.is_empty() && !part.constraint.is_empty());
        }
    }
    let reached = explanation.reach.is_none_or(|reach| reach.holds);
    assert_eq!(explanation.matched, reached && explanation.filters.iter().any(|filter| filter.matched));
    assert!(!explanation.why().is_empty());
}

#[test]
fn explanations_agree_with_the_engines_on_every_pair() {
    let mut on_both_sides = [0_u32; 2];
    for seed in 0..120 {
        for world in [World::Geodetic, World::Planar] {
            let scene = Scene::new(world, seed);
            let by_scan = answers(&mut Scan::new(world), &scene);
            let by_cells = answers(&mut Cells::new(world), &scene);
            for (index, event) in scene.events.iter().enumerate() {
                for (id, subscription) in scene.subscriptions.iter().enumerate() {
                    let client = scene.clients[subscription.client.0 as usize].as_ref();
                    let explanation = explain(world, &subscription.filters, client, event);
                    let expected = by_scan[index][id];
                    assert_eq!(explanation.matched, expected, "seed {seed} {world:?} {index} {id}");
                    assert_eq!(by_cells[index][id], expected, "seed {seed} {world:?} {index} {id}");
                    let alone = subscription
                        .filters
                        .iter()
                        .any(|filter| filter_matches(world, filter, client, event))
                        && reaches(world, event, client);
                    assert_eq!(alone, expected, "seed {seed} {world:?} {index} {id}");
                    check_parts(&explanation, &subscription.filters, event);
                    on_both_sides[usize::from(expected)] += 1;
                }
            }
        }
    }
    assert!(on_both_sides.iter().all(|count| *count > 10_000), "{on_both_sides:?}");
}
