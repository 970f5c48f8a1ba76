//! The predicates with which CQL2 tests servers, by the number of features that each selects.
//!
//! `data/cql2` has the figures of OGC 21-065r2 (CQL2 1.0.0), Annex A, for predicates without geometries, and the attributes that
//! these read in its test data (from Natural Earth 1:110m, public domain).

use std::collections::BTreeMap;

use nearcast_matcher::condition::Condition;
use nearcast_matcher::condition::expression::Truth;
use nearcast_matcher::engine::Engine;
use nearcast_matcher::engine::cells::Cells;
use nearcast_matcher::engine::scan::Scan;
use nearcast_matcher::event::{Event, Value};
use nearcast_matcher::{EventBuilder, FilterBuilder, Matcher, World};

const WORLD: World = World::Geodetic;
const PLACE: [f64; 2] = [0.0, 0.0];

const PREDICATES: &str = include_str!("../data/cql2/predicates.tsv");
const LAYERS: [(&str, &str); 2] = [
    ("countries", include_str!("../data/cql2/countries.tsv")),
    ("places", include_str!("../data/cql2/places.tsv")),
];

/// Predicates in each class.
const CLASSES: [(&str, usize); 8] = [
    ("accent-insensitive-comparison", 11),
    ("advanced-comparison-operators", 14),
    ("arithmetic", 13),
    ("basic-cql2", 48),
    ("basic-cql2-combinations", 77),
    ("case-insensitive-comparison", 10),
    ("property-property", 70),
    ("temporal-functions", 36),
];

/// Predicates that select another number than the standard says, with that number.
///
/// The data has Chișinău, Chicago and Chengdu, and no other name with these beginnings, so that the standard's 2 is right for none:
/// <https://github.com/opengeospatial/ogcapi-features/issues/1011>.
const OTHERWISE: [(&str, usize); 3] = [
    ("ACCENTI(name) LIKE accenti('Ch%')", 3),
    ("ACCENTI(CASEI(name)) LIKE accenti(casei('Chiș%'))", 1),
    ("ACCENTI(CASEI(name)) LIKE accenti(casei('cHis%'))", 1),
];

type Feature = Vec<(&'static str, Value)>;

/// The lines of a table after its header, each in its columns.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.split('\t').collect())
}

/// The attributes of each feature. An empty column is an absent attribute; dates and timestamps are texts.
fn features(table: &'static str) -> Vec<Feature> {
    let names: Vec<_> = table.lines().next().unwrap().split('\t').collect();
    let value = |name: &str, text: &str| match name {
        "boolean" => text.parse::<bool>().unwrap().into(),
        "pop_other" | "pop_min" | "pop_max" | "POP_EST" => text.parse::<f64>().unwrap().into(),
        _ => Value::from(text),
    };
    let feature = |row: Vec<&'static str>| {
        let present = names.iter().zip(row).filter(|(_, text)| !text.is_empty());
        present.map(|(name, text)| (*name, value(name, text))).collect()
    };
    rows(table).map(feature).collect()
}

/// The number of features for which each condition is true.
fn by_truth(features: &[Feature], texts: &[&str]) -> Vec<usize> {
    let event = |feature: &Feature| {
        let event = Event::at(WORLD.position(&PLACE).unwrap());
        feature.iter().fold(event, |event, (name, value)| event.with(name, value.clone()))
    };
    let events: Vec<_> = features.iter().map(event).collect();
    let count = |text: &&str| {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        events.iter().filter(|event| condition.expression().truth(event) == Truth::True).count()
    };
    texts.iter().map(count).collect()
}

/// The number of features that an engine finds for each condition.
fn by_engine(engine: Box<dyn Engine>, features: &[Feature], texts: &[&str]) -> Vec<usize> {
    let mut matcher: Matcher<()> = Matcher::with_engine(WORLD, engine);
    let client = matcher.add_client();
    let filters = texts.iter().map(|text| FilterBuilder::everywhere().when(*text));
    let ids: Vec<_> = filters.map(|filter| matcher.subscribe(client, [filter]).unwrap()).collect();
    let mut counts = BTreeMap::new();
    for feature in features {
        let event = EventBuilder::at(PLACE);
        let event = feature.iter().fold(event, |event, (name, value)| event.with(*name, value.clone()));
        for (_, id) in matcher.publish(&event).unwrap() {
            *counts.entry(id).or_default() += 1;
        }
    }
    ids.iter().map(|id| counts.get(id).copied().unwrap_or_default()).collect()
}

#[test]
fn predicates_of_the_standard_select_as_many_features_as_it_says() {
    let mut classes: BTreeMap<_, usize> = BTreeMap::new();
    let mut otherwise = Vec::new();
    for (layer, table) in LAYERS {
        let features = features(table);
        let predicates: Vec<_> = rows(PREDICATES).filter(|row| row[1] == layer).collect();
        let texts: Vec<_> = predicates.iter().map(|row| row[2]).collect();
        let counts = by_truth(&features, &texts);
        let engines: [Box<dyn Engine>; 2] = [Box::new(Scan::new(WORLD)), Box::new(Cells::new(WORLD))];
        for engine in engines {
            let name = engine.name();
            for ((text, count), found) in texts.iter().zip(&counts).zip(by_engine(engine, &features, &texts))
            {
                assert_eq!(found, *count, "{name}: {text}");
            }
        }
        for (row, count) in predicates.iter().zip(counts) {
            *classes.entry(row[0]).or_default() += 1;
            if row[3].parse() != Ok(count) {
                otherwise.push((row[2], count));
            }
        }
    }
    assert_eq!(otherwise, OTHERWISE);
    assert_eq!(classes.into_iter().collect::<Vec<_>>(), CLASSES);
}
