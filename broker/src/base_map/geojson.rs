//! Whether a base map is a GeoJSON document of its world.

use matcher::geo::World;
use serde_json::value::RawValue;
use wire::Fault;

use crate::ingest::json::{self, Members};
use crate::ingest::{file, position};

/// Nothing, or the faults of a part of a document, with pointers from there.
pub(super) type Checked = Result<(), Vec<Fault>>;

/// Checks that a text is a GeoJSON document of this world. Members beside those of the standard may be there.
pub(super) fn check(world: World, text: &str) -> Checked {
    let members = members(text)?;
    match kind(&members).as_str() {
        "FeatureCollection" => each(&members, "features", |text| feature(world, text)),
        "Feature" => feature(world, text),
        _ => geometry(world, text, true),
    }
}

fn feature(world: World, text: &str) -> Checked {
    let members = members(text)?;
    if kind(&members) != "Feature" {
        return Err(fault("/type", "must be \"Feature\""));
    }
    match members.get("geometry") {
        Some(text) => geometry(world, text, true).map_err(|faults| below("/geometry", faults)),
        // One without a place is a Feature, too.
        None => Ok(()),
    }
}

/// A collection in another, which nobody needs, could be nested without an end.
fn geometry(world: World, text: &str, may_be_collection: bool) -> Checked {
    let members = members(text)?;
    let depth = match kind(&members).as_str() {
        "GeometryCollection" if may_be_collection => {
            return each(&members, "geometries", |text| geometry(world, text, false));
        }
        "Point" => 0,
        "MultiPoint" | "LineString" => 1,
        "MultiLineString" | "Polygon" => 2,
        "MultiPolygon" => 3,
        _ => return Err(fault("/type", "must be a type of GeoJSON that may stand here")),
    };
    let text = members.get("coordinates").ok_or_else(|| fault("/coordinates", "must be there"))?;
    coordinates(world, text, depth).map_err(|faults| below("/coordinates", faults))
}

/// Checks positions in arrays that are nested so deep, up to the first fault.
fn coordinates(world: World, text: &str, depth: u8) -> Checked {
    let Some(depth) = depth.checked_sub(1) else {
        return position::coordinates(world, text, "").map(drop).map_err(|fault| vec![fault]);
    };
    let parts: Vec<&RawValue> = json::read(text, "", "an array").map_err(|fault| vec![fault])?;
    parts.iter().enumerate().try_for_each(|(idx, part)| {
        coordinates(world, part.get(), depth).map_err(|faults| below(&format!("/{idx}"), faults))
    })
}

/// Checks all elements of a member.
fn each(members: &Members<'_>, name: &str, check: impl Fn(&str) -> Checked) -> Checked {
    let pointer = json::pointer("", name);
    let text = members.get(name).ok_or_else(|| fault(&pointer, "must be there"))?;
    let elements: Vec<&RawValue> = json::read(text, &pointer, "an array").map_err(|fault| vec![fault])?;
    let faults = elements.iter().enumerate().filter_map(|(idx, element)| {
        let faults = check(element.get()).err()?;
        Some(below(&format!("{pointer}/{idx}"), faults))
    });
    let faults: Vec<_> = faults.flatten().collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn members(text: &str) -> Result<Members<'_>, Vec<Fault>> {
    Members::parse(text).map_err(file::faults_of)
}

fn kind(members: &Members<'_>) -> String {
    members.get("type").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn below(pointer: &str, faults: Vec<Fault>) -> Vec<Fault> {
    let below = |fault: Fault| Fault { pointer: format!("{pointer}{}", fault.pointer), ..fault };
    faults.into_iter().map(below).collect()
}

fn fault(pointer: &str, detail: &str) -> Vec<Fault> {
    vec![Fault { pointer: pointer.to_owned(), detail: detail.to_owned() }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo;

    #[track_caller]
    fn told(world: World, text: &str, expected: &[&str]) {
        let faults = check(world, text).err().unwrap_or_default();
        let pointers: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, expected, "{text}: {faults:?}");
    }

    #[test]
    fn documents_of_geojson_are_taken_as_they_are() {
        for geometry in [
            r#"{"type":"LineString","coordinates":[[114.06,22.54],[114.07,22.55,12]]}"#,
            r#"{"type":"MultiLineString","coordinates":[[[0,0],[1,1]],[]],"bbox":[0,0,1,1]}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#,
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[-180,90]}]}"#,
        ] {
            told(World::Geodetic, geometry, &[]);
            let feature = format!(r#"{{"type":"Feature","properties":null,"geometry":{geometry}}}"#);
            told(World::Geodetic, &feature, &[]);
            let collection = format!(
                r#"{{"type":"FeatureCollection","attribution":"x","features":[{feature},{{"type":"Feature","geometry":null}}]}}"#
            );
            told(World::Geodetic, &collection, &[]);
        }
        told(World::Geodetic, demo::roads::DOCUMENT, &[]);
    }

    #[test]
    fn every_feature_tells_its_first_fault_and_where_it_is() {
        let collection = r#"{"type":"FeatureCollection","features":[
            {"type":"Feature","geometry":{"type":"LineString","coordinates":[[0,0],[181,0]]}},
            {"type":"Feature","geometry":{"type":"MultiLineString","coordinates":[[[0,0],[1,1]],[[0,0],"x"]]}},
            {"type":"Feature","geometry":{"type":"Line","coordinates":[]}},
            {"type":"Thing"},
            7,
            {"type":"Feature","geometry":{"type":"GeometryCollection","geometries":[
                {"type":"Point","coordinates":[0]},{"type":"GeometryCollection","geometries":[]}]}},
            {"type":"Feature","geometry":{"type":"LineString"}}
        ]}"#;
        let expected = [
            "/features/0/geometry/coordinates/1",
            "/features/1/geometry/coordinates/1/1",
            "/features/2/geometry/type",
            "/features/3/type",
            "/features/4",
            "/features/5/geometry/geometries/0/coordinates",
            "/features/5/geometry/geometries/1/type",
            "/features/6/geometry/coordinates",
        ];
        told(World::Geodetic, collection, &expected);
        told(World::Planar, r#"{"type":"LineString","coordinates":[[500000,9000],[1,2]]}"#, &[]);
        told(
            World::Geodetic,
            r#"{"type":"LineString","coordinates":[[500000,9000],[1,2]]}"#,
            &["/coordinates/0"],
        );
        for text in ["", "[]", "{\"type\":", "[1,2]"] {
            told(World::Geodetic, text, &[""]);
        }
        told(World::Geodetic, "{}", &["/type"]);
        told(World::Geodetic, r#"{"type":"FeatureCollection"}"#, &["/features"]);
    }
}
