//! Documents: events, subscriptions, positions and questions. In both worlds, and under limits that are met and limits that are not.

use std::sync::LazyLock;

use matcher::condition::text::TEXT_BYTES_MAX;
use matcher::evaluation::{filter_matches, reaches};
use matcher::event::{Event, Scalar};
use matcher::explain::explain;
use matcher::geo::World;
use serde_json::Value;

use super::check_refusal;
use crate::config::{Config, Limits};
use crate::ingest::Behalf;
use crate::ingest::explain::{AskedEvent, AskedSubscription, QuestionReader};
use crate::ingest::feature::FeatureReader;
use crate::ingest::position::PositionReader;
use crate::ingest::subscription::{Prepared, SubscriptionReader};
use crate::model::delivery::OverflowName;
use crate::model::error::ApiError;
use crate::model::event::Published;

static LIMITS: LazyLock<Limits> = LazyLock::new(|| Config::default().limits);
/// Small ones, which small documents pass.
static TIGHT: LazyLock<Limits> = LazyLock::new(|| Limits {
    event_bytes: 600,
    attributes_per_event: 6,
    depth: 3,
    name_bytes: 12,
    text_bytes: 24,
    position_bytes: 90,
    track_points: 4,
    track_m: 1_000_000,
    filters_per_subscription: 2,
    condition_bytes: 60,
    vertices_per_area: 6,
    nearest: 3,
    nearest_filters: 1,
    ttl_s: 60,
    ..LIMITS.clone()
});

pub(super) struct Readers {
    pub(super) world: World,
    features: FeatureReader,
    pub(super) subscriptions: SubscriptionReader,
    positions: PositionReader,
}

impl Readers {
    fn new(world: World, limits: &Limits) -> Self {
        Self {
            world,
            features: FeatureReader::new(world, limits, 7),
            subscriptions: SubscriptionReader::new(world, limits.clone(), OverflowName::DropOldest),
            positions: PositionReader::new(world, limits),
        }
    }
}

/// Readers by world, geodetic and planar, and by limits: tight, as set by default, and lenient.
static READERS: LazyLock<[[Readers; 3]; 2]> = LazyLock::new(|| {
    [World::Geodetic, World::Planar]
        .map(|world| [&*TIGHT, &*LIMITS, &LIMITS.lenient()].map(|limits| Readers::new(world, limits)))
});

/// Reads a text with all readers of each world: who is more lenient accepts no less. Gives what the default reader makes of it.
pub(super) fn read<T>(
    text: &str,
    read: impl Fn(&Readers, &str) -> Result<T, ApiError>,
    mut accepted: impl FnMut(&Readers, T),
) {
    for [tight, readers, lenient] in &*READERS {
        let is_tight = match read(tight, text) {
            Ok(_) => true,
            Err(refusal) => {
                check_refusal(text, &refusal);
                false
            }
        };
        match read(readers, text) {
            Ok(value) => {
                if let Err(refusal) = read(lenient, text) {
                    panic!("refused by who is more lenient: {refusal:?}");
                }
                accepted(readers, value);
            }
            Err(refusal) => {
                assert!(!is_tight, "refused by who is more lenient: {refusal:?}");
                check_refusal(text, &refusal);
            }
        }
    }
}

/// An event.
pub fn feature(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read(
        text,
        |readers, text| readers.features.parse(Behalf::default(), text),
        |readers, published| {
            let rehearsed = readers
                .features
                .rehearse(Behalf::default(), text)
                .expect("what is accepted can be rehearsed");
            assert!(are_same(&rehearsed.event, &published.event));
            assert_eq!(rehearsed.life.is_some(), published.live.is_some());
            check_body(text, &published);
            let body = &published.body.text;
            let again =
                readers.features.parse(Behalf::default(), body).expect("what is delivered can be published");
            assert!(are_same(&again.event, &published.event), "{body}");
            assert_eq!(again.body.text, *body);
            assert_eq!(again.body.object, published.body.object);
        },
    );
    // Of what is small the limits are kept to.
    for [tight, ..] in &*READERS {
        if let Ok(published) = tight.features.parse(Behalf::default(), text) {
            let attributes = &published.event.attributes;
            assert!(text.len() <= TIGHT.event_bytes && attributes.len() <= TIGHT.attributes_per_event);
            assert!(attributes.iter().all(|attribute| attribute.name.as_str().len() <= TIGHT.name_bytes));
            let mut values = attributes.iter().flat_map(|attribute| attribute.value.elements());
            assert!(values.all(|value| match value {
                Scalar::Text(text) => text.as_str().len() <= TIGHT.text_bytes,
                Scalar::Number(number) => number.is_finite(),
                Scalar::Bool(_) => true,
            }));
        }
    }
}

/// Checks that the delivered text is the published one, on one line, with an `id` and a `time`.
fn check_body(text: &str, published: &Published) {
    let body = &published.body.text;
    assert!(!body.contains(['\n', '\r']), "{body}");
    let mut delivered: Value = serde_json::from_str(body).expect("what is accepted is JSON");
    let sent: Value = serde_json::from_str(text).expect("what is accepted is JSON");
    for name in ["id", "time"] {
        assert!(!delivered[name].is_null(), "{body}");
        if sent[name].is_null() {
            let delivered = delivered.as_object_mut().expect("a Feature");
            delivered.remove(name);
            if sent.as_object().is_some_and(|sent| sent.contains_key(name)) {
                delivered.insert(name.to_owned(), Value::Null);
            }
        }
    }
    assert_eq!(delivered, sent);
}

fn are_same(a: &Event, b: &Event) -> bool {
    a.position == b.position && a.attributes == b.attributes && a.reach == b.reach
}

/// A subscription.
pub fn subscription(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // With `id` it is put where that says.
    let id = serde_json::from_str::<Value>(text)
        .ok()
        .and_then(|document| Some(document.get("id")?.as_str()?.to_owned()));
    let id = id.as_deref().unwrap_or("s1");
    read(
        text,
        |readers, text| readers.subscriptions.parse(id, text),
        |readers, prepared| {
            assert_eq!(&*prepared.id, id);
            assert!((1..=LIMITS.filters_per_subscription).contains(&prepared.filters.len()));
            assert_eq!(prepared.filters.len(), prepared.nearest.len());
            serde_json::from_str::<Value>(&prepared.document).expect("the normalised form is JSON");
            check_normalised(&readers_of(readers.world)[2].subscriptions, &prepared);
        },
    );
}

fn readers_of(world: World) -> &'static [Readers; 3] {
    &READERS[usize::from(world == World::Planar)]
}

/// The normalised form is a subscription that means the same and normalises to itself.
fn check_normalised(lenient: &SubscriptionReader, prepared: &Prepared) {
    let Prepared { id, document, .. } = prepared;
    let again = match lenient.parse(id, document) {
        Ok(again) => again,
        // A condition's text may have become too long.
        Err(_) if document.len() > TEXT_BYTES_MAX => return,
        Err(refusal) => panic!("{document}: {refusal:?}"),
    };
    assert_eq!(again.document, *document);
    assert_eq!((again.interest, &again.nearest), (prepared.interest, &prepared.nearest));
    assert_eq!(again.durable, prepared.durable);
    for (again, filter) in again.filters.iter().zip(&prepared.filters) {
        assert_eq!(again.area, filter.area, "{document}");
        assert_eq!(again.condition.normal(), filter.condition.normal(), "{document}");
    }
}

/// A client's position, with its track or without, alone and in a batch.
pub fn position(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read(
        text,
        |readers, text| readers.positions.parse(text),
        |readers, told| {
            assert!(told.fix.accuracy_m >= 0.0);
            let place = &told.fix.position;
            assert!(place.x().is_finite() && place.y().is_finite());
            if let Some(track) = &told.track {
                assert!((1..=LIMITS.track_points).contains(&track.len()));
                assert_eq!(track.last(), Some(place));
            }
            let again = readers.world.position(&[place.x(), place.y()]).expect("it was accepted");
            assert!(readers.world.distance_m(place, &again) < 1e-6);
            if let Ok((_, named, _)) = readers.positions.parse_named(text) {
                assert_eq!(named, told);
            }
        },
    );
}

/// A question why an event comes or does not, and the answer where nothing of it is held by the broker.
pub fn question(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    read(
        text,
        |&Readers { world, ref features, ref subscriptions, .. }, text| {
            QuestionReader { world, behalf: Behalf::default(), features, subscriptions }.parse(text)
        },
        |readers, question| {
            let AskedSubscription::Told { prepared, .. } = &question.subscription else { return };
            let AskedEvent::Told { rehearsed, .. } = &question.event else { return };
            let (world, event, client) = (readers.world, &rehearsed.event, question.position.as_ref());
            let explained = explain(world, &prepared.filters, client, event);
            let matches = |filter| filter_matches(world, filter, client, event);
            assert_eq!(
                explained.matched,
                prepared.filters.iter().any(matches) && reaches(world, event, client)
            );
            for (part, filter) in explained.filters.iter().zip(&prepared.filters) {
                assert_eq!(part.matched, matches(filter));
                assert!(
                    part.area.outside_m.is_none_or(|metres| (metres > 0.0) != part.area.holds),
                    "{part:?}"
                );
                assert!(part.condition.constraints.iter().all(|constraint| !constraint.reason.is_empty()));
            }
        },
    );
}
