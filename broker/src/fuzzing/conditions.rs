//! Conditions, and whether everybody understands them alike.

use matcher::area::Area;
use matcher::condition::Condition;
use matcher::condition::expression::{Comparand, Constraint, Test, Truth};
use matcher::condition::normal::Conjunction;
use matcher::condition::text::TEXT_BYTES_MAX;
use matcher::engine::cells::Cells;
use matcher::engine::{Engine as _, MatchRows};
use matcher::event::{Attribute, Event, Scalar, Symbol, Value};
use matcher::explain::explain;
use matcher::geo::World;
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::cql2_json;
use crate::ingest::{json, value};

const WORLD: World = World::Planar;

/// CQL2 text.
pub fn condition_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Condition::parse_in(WORLD, text) {
        Ok(condition) => check_condition(&condition),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let Some(place) = error.place() {
                assert!(text.is_char_boundary(place.offset), "{error} in {text:?}");
                assert_eq!(place.column, text[..place.offset].chars().count() + 1, "{error} in {text:?}");
            }
        }
    }
}

/// CQL2-JSON, as it stands in a subscription.
pub fn condition_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if json::check_syntax(text).is_err() {
        return;
    }
    let Ok(document) = value::read(text, "") else { return };
    match cql2_json::condition(WORLD, &document) {
        Ok(condition) => check_condition(&condition),
        Err(error) => {
            let (parent, _) = error.pointer.rsplit_once('/').unwrap_or_default();
            assert!(document.pointer(parent).is_some() && !error.detail.is_empty(), "{error}");
        }
    }
}

/// Events that a condition is tried on.
const EVENTS: usize = 12;

/// The tree, its normal form, the text of that, an explanation and the engine say the same of events that come near the condition's values.
fn check_condition(condition: &Condition) {
    let text = condition.normal().to_string();
    let again = (text.len() <= TEXT_BYTES_MAX).then(|| {
        Condition::parse_in(WORLD, &text)
            .unwrap_or_else(|error| panic!("{text} is a normal form, but {error}"))
    });
    if let Some(again) = &again {
        assert_eq!(again.normal(), condition.normal(), "{text}");
    }
    let world = WORLD;
    let filters = vec![Filter { area: Area::Everywhere, condition: condition.clone() }];
    let mut cells = Cells::new(world);
    let subscription = Subscription { client: ClientId(0), filters: filters.clone() };
    cells.install(SubscriptionId(0), &subscription).expect("the first finds room");
    let mut random = StdRng::seed_from_u64(text.len() as u64);
    for _ in 0..EVENTS {
        let event = event(condition, &mut random);
        let holds = condition.expression().truth(&event) == Truth::True;
        let conjunctions = condition.normal().conjunctions();
        let normal = conjunctions.iter().any(|conjunction| conjunction.satisfied(&event, None));
        assert_eq!(normal, holds, "the normal form {text} of {event:?}");
        if let Some(again) = &again {
            let again = again.expression().truth(&event) == Truth::True;
            assert_eq!(again, holds, "the text {text} of {event:?}");
        }
        let explained = explain(world, &filters, None, &event);
        assert_eq!(explained.matched, holds, "the explanation of {text} for {event:?}");
        let mut rows = MatchRows::new();
        cells.match_batch(&[&event], &mut rows).expect("engines on the CPU do not fail");
        assert_eq!(!rows.row(0).is_empty(), holds, "the engine's answer to {text} for {event:?}");
    }
}

/// An event with the condition's attributes, or some of them.
fn event(condition: &Condition, random: &mut StdRng) -> Event {
    let mut event = Event::at(WORLD.position(&[0.0, 0.0]).expect("the origin is in the world"));
    let conjunctions = condition.normal().conjunctions();
    let literals = conjunctions.iter().flat_map(|conjunction| &conjunction.literals);
    for constraint in literals.map(|literal| &literal.constraint) {
        if event.value(&constraint.name).is_some() || random.random_ratio(1, 8) {
            continue;
        }
        let value = match random.random_range(0..8) {
            0 => Value::Array((0..random.random_range(0..3)).map(|_| near(constraint, random)).collect()),
            _ => Value::Scalar(near(constraint, random)),
        };
        event.attributes.push(Attribute { name: constraint.name.clone(), value });
    }
    for name in conjunctions.iter().flat_map(Conjunction::required) {
        if event.value(name).is_some() || random.random_ratio(1, 8) {
            continue;
        }
        let value = match random.random_range(0..5) {
            0 => Value::Array(vec![any(random), any(random)]),
            _ => Value::Scalar(any(random)),
        };
        event.attributes.push(Attribute { name: name.clone(), value });
    }
    event
}

/// One of few values, so that attributes meet.
fn any(random: &mut StdRng) -> Scalar {
    match random.random_range(0..6) {
        0 => Scalar::Text("a".into()),
        1 => Scalar::Text("2026-03-01".into()),
        2 => Scalar::Bool(true),
        number => Scalar::Number(f64::from(number) - 4.0),
    }
}

/// The scalar that an event has to have to equal a condition's value.
fn scalar(value: &Comparand) -> Scalar {
    match value {
        Comparand::Scalar(scalar) => scalar.clone(),
        Comparand::Date(date) => Scalar::Text(Symbol::new(date.to_string())),
        Comparand::Timestamp(timestamp) => Scalar::Text(timestamp.as_str().into()),
    }
}

/// A value that a constraint names, or one beside it.
fn near(constraint: &Constraint, random: &mut StdRng) -> Scalar {
    let named = match &constraint.test {
        Test::Compare(_, value) => scalar(value),
        Test::Between(low, high) => scalar(if random.random() { low } else { high }),
        Test::In(values) => scalar(&values[random.random_range(0..values.len())]),
        Test::Like(pattern) => Scalar::Text(pattern.as_str().into()),
        Test::IsNull => Scalar::Bool(true),
    };
    match (random.random_range(0..6), named) {
        (0, Scalar::Number(number)) => Scalar::Number(number.next_up().min(f64::MAX)),
        (1, Scalar::Number(number)) => Scalar::Number(number.next_down().max(f64::MIN)),
        (2, Scalar::Number(number)) => Scalar::Number(-number),
        (0, Scalar::Text(text)) => Scalar::Text(Symbol::new(format!("{}a", text.as_str()))),
        (1, Scalar::Text(text)) => Scalar::Text(Symbol::new(text.as_str().to_uppercase())),
        (2, Scalar::Text(text)) => Scalar::Text(Symbol::new(text.as_str().replace(['%', '\\'], ""))),
        (0, Scalar::Bool(truth)) => Scalar::Bool(!truth),
        (3, _) => Scalar::Number(0.0),
        (4, _) => Scalar::Text("".into()),
        (_, named) => named,
    }
}
