//! What clients that are confined differently may hear and do, computed from first principles.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::exactness::geometry::{Place, distance_m};

/// The step of the grid on which zones have their corners, degrees.
const STEP: f64 = 0.002_5;
/// Radii of the subscriptions, metres.
const PART_M: f64 = 700.0;
const MOVING_M: f64 = 900.0;
/// How many count in `near`.
const NEAREST: usize = 2;

/// A corner of the grid.
pub(crate) fn corner(x: u32, y: u32) -> Place {
    [9.0 + f64::from(x) * STEP, 45.0 + f64::from(y) * STEP]
}

/// The zones: rectangles by their corners, of which two overlap and one comes in two pieces.
const ZONES: [(&str, &[[u32; 4]]); 3] =
    [("harbour", &[[0, 0, 4, 4]]), ("city", &[[3, 3, 8, 8]]), ("isles", &[[6, 0, 7, 1], [9, 0, 10, 2]])];

/// The file of zones.
pub(crate) fn zones() -> Value {
    let features = ZONES.map(|(name, rectangles)| {
        let polygons: Vec<_> = rectangles
            .iter()
            .map(|[west, south, east, north]| {
                let ring = [[west, south], [east, south], [east, north], [west, north], [west, south]];
                json!([ring.map(|[x, y]| corner(*x, *y))])
            })
            .collect();
        let geometry = json!({"type": "MultiPolygon", "coordinates": polygons});
        json!({"type": "Feature", "id": name, "properties": {"of": "test"}, "geometry": geometry})
    });
    json!({"type": "FeatureCollection", "features": features})
}

fn is_in(zone: &str, [x, y]: Place) -> bool {
    let (_, rectangles) = ZONES.iter().find(|(name, _)| *name == zone).expect("a zone");
    rectangles.iter().any(|[west, south, east, north]| {
        let ([west, south], [east, north]) = (corner(*west, *south), corner(*east, *north));
        (west..=east).contains(&x) && (south..=north).contains(&y)
    })
}

/// An event that was published.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Of the n-th publish.
    pub(crate) n: u64,
    pub(crate) id: String,
    pub(crate) place: Place,
    pub(crate) severity: Option<i64>,
    pub(crate) kind: Option<&'static str>,
    /// Its key where it is live.
    pub(crate) key: Option<String>,
    tenant: &'static str,
}

impl Event {
    /// As it is published.
    pub(crate) fn feature(&self) -> Value {
        let properties = json!({"n": self.n, "severity": self.severity, "kind": self.kind});
        let mut feature = crate::harness::feature(&self.id, self.place, properties);
        if let Some(key) = &self.key {
            feature["key"] = json!(key);
        }
        feature
    }
}

/// Somebody with a token.
pub(crate) struct Holder {
    pub(crate) name: &'static str,
    pub(crate) tenant: &'static str,
    /// The claim.
    pub(crate) claim: Value,
    zones: Option<&'static [&'static str]>,
    condition: fn(&Event) -> bool,
    place: Option<Place>,
    /// By subscription and object the last event that was inside.
    inside: BTreeMap<(&'static str, String), u64>,
    /// Events that came to `part`.
    had: HashSet<u64>,
}

/// All that there is.
pub(crate) fn holders() -> Vec<Holder> {
    let holder = |name, tenant, claim, zones, condition| Holder {
        name,
        tenant,
        claim,
        zones,
        condition,
        place: None,
        inside: BTreeMap::new(),
        had: HashSet::new(),
    };
    vec![
        holder("free", "", Value::Null, None, |_| true),
        holder("calm", "", json!({"where": "severity < 3"}), None, |event| {
            event.severity.is_some_and(|severity| severity < 3)
        }),
        holder("port", "", json!({"zones": ["harbour"]}), Some(&["harbour"]), |_| true),
        holder(
            "watch",
            "",
            json!({"zones": ["isles", "city"], "where": "kind = 'ship' OR NOT (severity >= 2)"}),
            Some(&["city", "isles"]),
            |event| event.kind == Some("ship") || event.severity.is_some_and(|severity| severity < 2),
        ),
        holder("guest", "acme", json!({"zones": ["city"]}), Some(&["city"]), |_| true),
        holder("host", "acme", Value::Null, None, |_| true),
    ]
}

/// The subscriptions that each of them has.
pub(crate) fn subscriptions(durable: bool) -> [(&'static str, Value); 4] {
    let part = "severity >= 2 OR kind = 'bus'";
    [
        ("all", json!({"filters": [{}], "durable": durable})),
        ("part", json!({"filters": [{"area": {"radius_m": PART_M}, "where": part}], "durable": durable})),
        (
            "moving",
            json!({"filters": [{"area": {"radius_m": MOVING_M}, "where": "severity < 4"}],
                "on": ["enter", "exit"], "durable": durable}),
        ),
        (
            "near",
            json!({"filters": [{"area": {"nearest": NEAREST}}], "on": ["enter", "exit"], "durable": durable}),
        ),
    ]
}

/// A frame: the n of its event, its transition, and the subscriptions that it names.
pub(crate) type Told = (u64, Option<&'static str>, BTreeSet<&'static str>);

/// The world as it should be.
#[derive(Default)]
pub(crate) struct World {
    /// By tenant, claim of who publishes, and key.
    live: BTreeMap<(String, String, String), Event>,
    published_count: u64,
}

impl Holder {
    /// Whether an event is any business of theirs.
    fn may_have(&self, event: &Event) -> bool {
        let in_zones = self.zones.is_none_or(|zones| zones.iter().any(|zone| is_in(zone, event.place)));
        self.tenant == event.tenant && in_zones && (self.condition)(event)
    }

    /// Whether they may be at a place.
    pub(crate) fn may_be(&self, place: Place) -> bool {
        self.zones.is_none_or(|zones| zones.iter().any(|zone| is_in(zone, place)))
    }

    fn is_within(&self, event: &Event, radius_m: f64) -> bool {
        self.place.is_some_and(|place| distance_m(place, event.place) <= radius_m)
    }

    fn has_part(&self, event: &Event) -> bool {
        let is_wanted = event.severity.is_some_and(|severity| severity >= 2) || event.kind == Some("bus");
        self.may_have(event) && is_wanted && self.is_within(event, PART_M)
    }

    /// What is inside of the subscriptions to transitions.
    fn inside_now(&self, world: &World) -> BTreeMap<(&'static str, String), u64> {
        let own = || world.live.iter().filter(|(_, event)| self.may_have(event));
        let mut near: Vec<_> = own()
            .filter_map(|(object, event)| Some((distance_m(self.place?, event.place), event.n, object)))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let near = near.into_iter().take(NEAREST).map(|(_, n, object)| (("near", format!("{object:?}")), n));
        let moving = own().filter(|(_, event)| {
            event.severity.is_some_and(|severity| severity < 4) && self.is_within(event, MOVING_M)
        });
        near.chain(moving.map(|(object, event)| (("moving", format!("{object:?}")), event.n))).collect()
    }

    /// What they are told, by what has happened to the world or to them, in no order.
    fn told(&mut self, world: &World, published: Option<&Event>) -> Vec<Told> {
        let mut told = Vec::new();
        let mut names = BTreeSet::new();
        if let Some(event) = published.filter(|event| self.may_have(event)) {
            names.insert("all");
            if self.has_part(event) {
                names.insert("part");
                self.had.insert(event.n);
            }
            told.push((event.n, None, names));
        }
        for event in world.live.values() {
            if self.has_part(event) && self.had.insert(event.n) {
                told.push((event.n, None, BTreeSet::from(["part"])));
            }
        }
        let now = self.inside_now(world);
        let before = std::mem::replace(&mut self.inside, now);
        let mut transitions: BTreeMap<(u64, &'static str), BTreeSet<_>> = BTreeMap::new();
        for ((name, _), n) in self.inside.iter().filter(|(member, _)| !before.contains_key(*member)) {
            transitions.entry((*n, "enter")).or_default().insert(*name);
        }
        for ((name, _), n) in before.iter().filter(|(member, _)| !self.inside.contains_key(*member)) {
            transitions.entry((*n, "exit")).or_default().insert(*name);
        }
        told.extend(transitions.into_iter().map(|((n, kind), names)| (n, Some(kind), names)));
        told.sort();
        told
    }
}

impl World {
    /// An event that somebody is about to publish.
    pub(crate) fn event(&mut self, publisher: &Holder, event: Draft) -> Event {
        self.published_count += 1;
        let Draft { id, place, severity, kind, key } = event;
        Event { n: self.published_count, id, place, severity, kind, key, tenant: publisher.tenant }
    }

    /// Whether they may publish it.
    pub(crate) fn publish(&mut self, publisher: &Holder, event: &Event) -> bool {
        let may = publisher.may_have(event);
        if let Some(key) = event.key.clone().filter(|_| may) {
            let object = (event.tenant.to_owned(), publisher.claim.to_string(), key);
            self.live.insert(object, event.clone());
        }
        may
    }

    /// How many live events of an id somebody may end. Of several the first to end may bring others nearer, for a moment.
    pub(crate) fn revocable_count(&self, by: &Holder, id: &str) -> usize {
        self.live.values().filter(|event| event.id == id && by.may_have(event)).count()
    }

    /// Ends what somebody may end; says whether there was something.
    pub(crate) fn revoke(&mut self, by: &Holder, id: &str) -> bool {
        let before = self.live.len();
        self.live.retain(|_, event| event.id != id || !by.may_have(event));
        self.live.len() < before
    }

    /// What everybody is told then.
    pub(crate) fn tell(&self, holders: &mut [Holder], published: Option<&Event>) -> Vec<Vec<Told>> {
        holders.iter_mut().map(|holder| holder.told(self, published)).collect()
    }
}

impl Holder {
    /// They are there now.
    pub(crate) fn place(&mut self, place: Place) {
        self.place = Some(place);
    }
}

/// What is drawn of an event.
pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) place: Place,
    pub(crate) severity: Option<i64>,
    pub(crate) kind: Option<&'static str>,
    pub(crate) key: Option<String>,
}
