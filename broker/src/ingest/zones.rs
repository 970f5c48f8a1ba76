//! Zones: areas in the settings that tokens confine their holders to, by name.
//!
//! Where there are zones, an event gets an attribute with the names of those that hold its position, and filters of who is
//! confined ask for one of these: which event lies in which zone is decided once, when it comes.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use anyhow::Context as _;
use matcher::area::Polygon;
use matcher::condition::expression::{Constraint, Test};
use matcher::event::{Attribute, Event, Scalar, Symbol, Value};
use matcher::geo::{Position, World};
use serde_json::value::RawValue;
use wire::Fault;

use super::area::{self, AreaBounds};
use super::file;
use super::json::{self, Members};
use crate::config::Config;

/// The most zones: each has its box compared with every event.
const ZONES_MAX: usize = 10_000;
/// The most bytes of a zone's name.
const NAME_BYTES_MAX: usize = 128;

/// The attribute of events. Its name is drawn anew by each process, so that no document can have it and no condition ask for it:
/// where zones lie is nobody's business.
static ATTRIBUTE: LazyLock<Symbol> =
    LazyLock::new(|| Symbol::new(format!("\u{1}zone {:032x}", rand::random::<u128>())));

/// The zones of the settings, by name.
#[derive(Debug, Default)]
pub(crate) struct Zones(Vec<Arc<Zone>>);

/// An area with a name. Its edges belong to it.
#[derive(Debug)]
pub(crate) struct Zone {
    name: Symbol,
    polygon: Polygon,
}

impl Zones {
    /// Reads the zones from the file that the settings name; there are none where they name no file. Blocks.
    ///
    /// # Errors
    /// A file that cannot be read, is too large, or has faults, of which the first few are told.
    pub(crate) fn read(config: &Config) -> anyhow::Result<Self> {
        let path = &config.auth.zones;
        if path.is_empty() {
            return Ok(Self::default());
        }
        let context = || format!("the zones in {path} (auth.zones)");
        let text = file::read(Path::new(path)).with_context(context)?;
        let bounds = AreaBounds { vertices: config.limits.vertices_per_area, nearest: 0 };
        let zones = Self::parse(&text, World::from(config.server.world), bounds);
        let zones = zones.map_err(|faults| anyhow::anyhow!(file::listed(&faults))).with_context(context)?;
        tracing::info!(zones = zones.0.len(), "tokens may confine to the zones in {path}");
        Ok(zones)
    }

    /// Reads a GeoJSON FeatureCollection of Polygons and MultiPolygons, each with an `id`. All faults are given back.
    fn parse(text: &str, world: World, bounds: AreaBounds) -> Result<Self, Vec<Fault>> {
        let texts = features(text)?;
        let mut faults = Vec::new();
        let mut zones: Vec<Arc<Zone>> = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            let pointer = format!("/features/{index}");
            match Zone::parse(text.get(), world, bounds) {
                Ok(zone) => zones.push(Arc::new(zone)),
                Err(found) => faults.extend(
                    found
                        .into_iter()
                        .map(|fault| Fault { pointer: format!("{pointer}{}", fault.pointer), ..fault }),
                ),
            }
        }
        zones.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        let twice = zones.windows(2).filter(|pair| pair[0].name == pair[1].name);
        faults.extend(twice.map(|pair| fault("/features", format!("two have the id {:?}", pair[0].name()))));
        if faults.is_empty() { Ok(Self(zones)) } else { Err(faults) }
    }

    /// The zone of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Zone>> {
        let index = self.0.binary_search_by(|zone| zone.name().cmp(name)).ok()?;
        self.0.get(index)
    }

    /// Says of an event in which zones it is. One that is in none says nothing of zones.
    ///
    /// Cost: a comparison with the box of each zone, and what it takes to look at those whose box holds the event.
    pub(crate) fn mark(&self, event: &mut Event) {
        let holding = self.0.iter().filter(|zone| zone.holds(&event.position));
        let names: Vec<_> = holding.map(|zone| Scalar::Text(zone.name.clone())).collect();
        if !names.is_empty() {
            event.attributes.push(Attribute { name: ATTRIBUTE.clone(), value: Value::Array(names) });
        }
    }
}

impl Zone {
    fn parse(text: &str, world: World, bounds: AreaBounds) -> Result<Self, Vec<Fault>> {
        let mut members = Members::parse(text).map_err(file::faults_of)?;
        let mut faults = Vec::new();
        if members.take("type") != Some("\"Feature\"") {
            faults.push(fault("/type", "must be \"Feature\""));
        }
        let name = members
            .take("id")
            .and_then(|text| json::read_text(text).ok())
            .filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control));
        if name.is_none() {
            let expected = format!("a text of 1 to {NAME_BYTES_MAX} bytes without control characters");
            faults.push(fault("/id", format!("must be there: {expected}")));
        }
        let polygon = match members.take("geometry") {
            Some(geometry) => area::polygon(world, geometry, "/geometry", bounds),
            None => Err(fault("/geometry", "must be a GeoJSON Polygon or MultiPolygon")),
        };
        match (name, polygon.map_err(|fault| faults.push(fault))) {
            (Some(name), Ok(polygon)) if faults.is_empty() => Ok(Self { name: Symbol::new(&*name), polygon }),
            _ => Err(faults),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Whether a position is inside or on an edge.
    pub(super) fn holds(&self, position: &Position) -> bool {
        self.polygon.holds(position)
    }
}

/// The constraint that events satisfy if they are in one of some zones.
pub(super) fn in_one_of(names: &[String]) -> Constraint {
    let names = names.iter().map(|name| Scalar::Text(Symbol::new(name.as_str())).into()).collect();
    Constraint { name: ATTRIBUTE.clone(), casei: false, test: Test::In(names) }
}

/// The texts of a collection's Features. Other members of a collection are GeoJSON's own or foreign, and say nothing here.
fn features(text: &str) -> Result<Vec<&RawValue>, Vec<Fault>> {
    let mut members = Members::parse(text).map_err(file::faults_of)?;
    if members.take("type") != Some("\"FeatureCollection\"") {
        return Err(vec![fault("/type", "must be \"FeatureCollection\"")]);
    }
    let expected = format!("an array of 1 to {ZONES_MAX} Features");
    let texts = members.take("features").unwrap_or("[]");
    match json::read::<Vec<&RawValue>>(texts, "/features", &expected) {
        Ok(texts) if (1..=ZONES_MAX).contains(&texts.len()) => Ok(texts),
        Ok(texts) => Err(vec![fault("/features", format!("must be {expected}, found {}", texts.len()))]),
        Err(fault) => Err(vec![fault]),
    }
}

fn fault(pointer: &str, detail: impl Into<String>) -> Fault {
    Fault { pointer: pointer.to_owned(), detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: AreaBounds = AreaBounds { vertices: 100, nearest: 0 };

    fn square(id: &str, from: f64, to: f64) -> String {
        let ring = format!("[[{from},{from}],[{to},{from}],[{to},{to}],[{from},{to}],[{from},{from}]]");
        format!(
            r#"{{"type":"Feature","id":{id},"properties":{{}},"geometry":{{"type":"Polygon","coordinates":[{ring}]}}}}"#
        )
    }

    fn parse(features: &[String]) -> Result<Zones, Vec<Fault>> {
        let text =
            format!(r#"{{"type":"FeatureCollection","name":"x","features":[{}]}}"#, features.join(","));
        Zones::parse(&text, World::Geodetic, BOUNDS)
    }

    #[test]
    fn an_event_says_in_which_zones_it_is() {
        let zones = parse(&[square("\"b\"", 1.0, 3.0), square("\"a\"", 0.0, 2.0), square("\"c\"", 5.0, 6.0)])
            .unwrap();
        for (at, expected) in [
            ([0.5, 0.5], &["a"][..]),
            ([1.5, 1.5], &["a", "b"]),
            ([2.0, 2.0], &["a", "b"]),
            ([4.0, 4.0], &[]),
        ] {
            let mut event = Event::at(World::Geodetic.position(&at).unwrap());
            zones.mark(&mut event);
            let names: Vec<_> = expected.iter().map(|name| Scalar::Text((*name).into())).collect();
            assert_eq!(event.value(&ATTRIBUTE).map(Value::elements).unwrap_or_default(), names, "{at:?}");
            assert_eq!(event.attributes.len(), usize::from(!expected.is_empty()));
        }
        assert!(zones.get("b").is_some() && zones.get("d").is_none());
    }

    #[test]
    fn every_fault_is_told_where_it_is() {
        let good = square("\"a\"", 0.0, 1.0);
        let faults = parse(&[
            square("7", 0.0, 1.0),
            square("\"\"", 0.0, 1.0),
            square("\"far\"", 0.0, 100.0),
            good.replace("\"Feature\"", "\"Thing\"").replace("\"a\"", "\"t\""),
            r#"{"type":"Feature","id":"p","geometry":{"type":"Point","coordinates":[1,2]}}"#.to_owned(),
            "5".to_owned(),
            good.clone(),
            good,
        ])
        .unwrap_err();
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/features/0/id",
                "/features/1/id",
                "/features/2/geometry/coordinates/0/2",
                "/features/3/type",
                "/features/4/geometry/type",
                "/features/5",
                "/features",
            ]
        );
        for text in ["", "[]", "{}", r#"{"type":"FeatureCollection"}"#, r#"{"type":"Feature","features":[]}"#]
        {
            assert_eq!(Zones::parse(text, World::Geodetic, BOUNDS).unwrap_err().len(), 1, "{text}");
        }
    }
}
