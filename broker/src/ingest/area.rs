//! Areas of filters.

use std::num::NonZeroU32;

use matcher::area::{Area, Corridor, Polygon};
use matcher::geo::{Position, Radius, World};
use matcher::live::Nearest;
use wire::{Fault, RouteBy};

use super::json::{self, Members};
use super::route::best_by;
use super::{near, place, position};
use crate::model::error::ApiError;

/// How much an area may hold.
#[derive(Clone, Copy)]
pub(crate) struct AreaBounds {
    pub(crate) vertices: usize,
    pub(crate) nearest: u32,
}

/// An area as it was read.
#[derive(Debug)]
pub(crate) struct AreaRead {
    pub(crate) area: Area,
    pub(crate) nearest: Nearest,
    /// Where a route leads from the client that the area is to lie along. The area is a corridor that is nowhere as yet.
    pub(crate) route: Option<RouteTo>,
}

/// The end of a route that begins where a client is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RouteTo {
    pub(crate) to: Position,
    pub(crate) by: RouteBy,
}

/// Reads one of the five forms of an area, and how many of the nearest objects there count; of everywhere, where it
/// says no more than that.
pub(crate) fn parse(world: World, text: &str, bounds: AreaBounds) -> Result<AreaRead, ApiError> {
    let mut members = Members::parse(text)?;
    let mut faults = Vec::new();
    if members.is_null("route") {
        faults.push(fault("/route", "must be an object with \"to\": longitude and latitude, or absent"));
    }
    let nearest = members.take("nearest").map(|text| nearest(text, bounds));
    let radius = members.take("radius_m").map(|text| radius(world, text));
    let route = members.take("route");
    let forms = (members.take("center"), members.take("polygon"), members.take("corridor"));
    let mut leads = None;
    let area = match (forms, radius) {
        ((None, None, None), Some(radius)) if route.is_some() => radius.and_then(|radius| {
            let led = route_to(world, route.unwrap_or_default(), &mut faults)?;
            leads = Some(led);
            Ok(Area::Corridor(Box::new(Corridor::nowhere(world, &led.to, radius))))
        }),
        ((None, None, None), None) if route.is_some() => {
            Err(fault("/radius_m", "must be there: a number of metres"))
        }
        _ if route.is_some() => Err(fault("", FORMS)),
        ((None, None, None), None) if nearest.is_some() => Ok(Area::Everywhere),
        ((None, None, None), Some(radius)) => radius.map(Area::Following),
        ((Some(centre), None, None), Some(radius)) => position::coordinates(world, centre, "/center")
            .and_then(|centre| Ok(Area::Circle { centre, radius: radius? })),
        ((None, Some(text), None), None) => {
            polygon(world, text, "/polygon", bounds).map(|polygon| Area::Polygon(Box::new(polygon)))
        }
        ((None, None, Some(text)), Some(radius)) => {
            radius.and_then(|radius| corridor(world, text, radius, bounds))
        }
        ((Some(_), None, None) | (None, None, Some(_)), None) => {
            Err(fault("/radius_m", "must be there: a number of metres"))
        }
        ((None, Some(_), None), Some(_)) => Err(fault("/radius_m", "a polygon has no radius")),
        _ => Err(fault("", FORMS)),
    };
    let area = area.map_err(|fault| faults.push(fault));
    let nearest = nearest.transpose().map_err(|fault| faults.push(fault));
    if let Some(array) = place::by_names(&members) {
        let detail = format!("did you mean \"center\": {array} in place of two members?");
        faults.insert(0, fault("/center", detail));
    }
    members.refuse_rest("", &near::AREA, 0, &mut faults);
    match (area, nearest) {
        (Ok(area), Ok(nearest)) if faults.is_empty() => Ok(AreaRead { area, nearest, route: leads }),
        _ => Err(ApiError::Invalid(faults)),
    }
}

const FORMS: &str = "must be one of {\"radius_m\"}, {\"center\", \"radius_m\"}, {\"polygon\"}, {\"corridor\", \"radius_m\"} and \
                     {\"route\", \"radius_m\"}, with \"nearest\" or without, or {\"nearest\"}";

/// Reads `{"to", "by"}`. One fault is given back, further ones are put beside it.
fn route_to(world: World, text: &str, faults: &mut Vec<Fault>) -> Result<RouteTo, Fault> {
    if world != World::Geodetic {
        return Err(fault(
            "/route",
            "routes are on the globe only, and this broker's world is planar (server.world)",
        ));
    }
    let Ok(mut members) = Members::parse(text) else {
        return Err(fault("/route", "must be an object with \"to\": longitude and latitude"));
    };
    let by = members.take("by").map(|text| best_by(text, "/route/by")).transpose()?.unwrap_or_default();
    let to = members.take("to").ok_or_else(|| fault("/route/to", "must be there: longitude and latitude"))?;
    let to = position::coordinates(world, to, "/route/to")?;
    members.refuse_rest("/route", &near::ROUTE_AREA, 0, faults);
    Ok(RouteTo { to, by })
}

fn fault(pointer: &str, detail: impl Into<String>) -> Fault {
    Fault { pointer: pointer.to_owned(), detail: detail.into() }
}

fn nearest(text: &str, bounds: AreaBounds) -> Result<NonZeroU32, Fault> {
    let limit = bounds.nearest;
    let expected = format!("a whole number from 1 to {limit} (limits.nearest)");
    let count: u32 = json::read(text, "/nearest", &expected)?;
    let count = NonZeroU32::new(count).filter(|count| count.get() <= limit);
    count.ok_or_else(|| fault("/nearest", format!("must be {expected}")))
}

fn radius(world: World, text: &str) -> Result<Radius, Fault> {
    let metres = json::read::<f64>(text, "/radius_m", "a number of metres")?;
    Radius::new(world, metres).map_err(|error| fault("/radius_m", error.to_string()))
}

/// The `type` and the text of the `coordinates` of a geometry.
fn geometry<'a>(text: &'a str, parent: &str) -> Result<(String, &'a str), Fault> {
    let members = Members::parse(text);
    let Ok(mut members) = members else { return Err(fault(parent, "must be a GeoJSON geometry")) };
    let kind = members.take("type").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    match members.take("coordinates") {
        Some(coordinates) => Ok((kind, coordinates)),
        None => Err(fault(&json::pointer(parent, "coordinates"), "must be there")),
    }
}

type Coordinates = Vec<f64>;

/// Reads a GeoJSON Polygon or MultiPolygon, which stands at `parent`.
pub(crate) fn polygon(world: World, text: &str, parent: &str, bounds: AreaBounds) -> Result<Polygon, Fault> {
    let (kind, coordinates) = geometry(text, parent)?;
    let place = &json::pointer(parent, "coordinates");
    let polygons: Vec<Vec<Vec<Coordinates>>> = match kind.as_str() {
        "Polygon" => vec![json::read(coordinates, place, "an array of rings of positions")?],
        "MultiPolygon" => json::read(coordinates, place, "an array of polygons of rings of positions")?,
        _ => return Err(fault(&json::pointer(parent, "type"), "must be \"Polygon\" or \"MultiPolygon\"")),
    };
    check_vertices(polygons.iter().flatten().map(Vec::len).sum(), place, bounds)?;
    let is_multi = kind == "MultiPolygon";
    let mut checked = Vec::with_capacity(polygons.len());
    for (polygon_idx, rings) in polygons.iter().enumerate() {
        let mut checked_rings = Vec::with_capacity(rings.len());
        for (ring_idx, ring) in rings.iter().enumerate() {
            let place = if is_multi {
                format!("{place}/{polygon_idx}/{ring_idx}")
            } else {
                format!("{place}/{ring_idx}")
            };
            checked_rings.push(positions(world, ring, &place)?);
        }
        checked.push(checked_rings);
    }
    Polygon::new(world, &checked).map_err(|error| fault(place, error.to_string()))
}

fn corridor(world: World, text: &str, radius: Radius, bounds: AreaBounds) -> Result<Area, Fault> {
    let (kind, coordinates) = geometry(text, "/corridor")?;
    if kind != "LineString" {
        return Err(fault("/corridor/type", "must be \"LineString\""));
    }
    let place = "/corridor/coordinates";
    let line: Vec<Coordinates> = json::read(coordinates, place, "an array of positions")?;
    check_vertices(line.len(), place, bounds)?;
    let line = positions(world, &line, place)?;
    let corridor = Corridor::new(world, &line, radius).map_err(|error| fault(place, error.to_string()))?;
    Ok(Area::Corridor(Box::new(corridor)))
}

fn check_vertices(count: usize, place: &str, bounds: AreaBounds) -> Result<(), Fault> {
    if count > bounds.vertices {
        let limit = bounds.vertices;
        return Err(fault(
            place,
            format!("has {count} positions, at most {limit} (limits.vertices_per_area)"),
        ));
    }
    Ok(())
}

fn positions(world: World, line: &[Coordinates], pointer: &str) -> Result<Vec<Position>, Fault> {
    let position = |(index, numbers): (usize, &Coordinates)| {
        place::position(world, numbers).map_err(|detail| fault(&format!("{pointer}/{index}"), detail))
    };
    line.iter().enumerate().map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: AreaBounds = AreaBounds { vertices: 5, nearest: 20 };

    #[track_caller]
    fn check(text: &str, pointer: &str) {
        match parse(World::Geodetic, text, BOUNDS) {
            Err(ApiError::Invalid(faults)) => assert_eq!(faults[0].pointer, pointer, "{text}: {faults:?}"),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_forms_exclude_each_other() {
        let parse = |text| parse(World::Geodetic, text, BOUNDS).map(|read| read.area);
        assert!(matches!(parse(r#"{"radius_m":5}"#), Ok(Area::Following(_))));
        assert!(matches!(parse(r#"{"radius_m":5,"center":[1,2]}"#), Ok(Area::Circle { .. })));
        let ring = "[[0,0],[1,0],[1,1],[0,0]]";
        let polygon = format!(r#"{{"polygon":{{"type":"Polygon","coordinates":[{ring}]}}}}"#);
        assert!(matches!(parse(&polygon), Ok(Area::Polygon(_))));
        let corridor = r#"{"corridor":{"type":"LineString","coordinates":[[0,0],[1,1]]},"radius_m":3}"#;
        assert!(matches!(parse(corridor), Ok(Area::Corridor(_))));
        check(r#"{"center":[1,2],"radius_m":5,"polygon":{}}"#, "");
        check("{}", "");
        check(r#"{"center":[1,2]}"#, "/radius_m");
        check(&polygon.replacen('{', r#"{"radius_m":1,"#, 1), "/radius_m");
    }

    #[test]
    fn an_area_of_any_form_may_count_the_nearest_only() {
        let ring = r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}"#;
        let line = r#"{"type":"LineString","coordinates":[[0,0],[1,1]]}"#;
        for form in [
            r#""radius_m":5,"#.to_owned(),
            r#""center":[1,2],"radius_m":5,"#.to_owned(),
            format!(r#""polygon":{ring},"#),
            format!(r#""corridor":{line},"radius_m":5,"#),
            String::new(),
        ] {
            for count in [1, 20] {
                let AreaRead { area, nearest, .. } =
                    parse(World::Geodetic, &format!("{{{form}\"nearest\":{count}}}"), BOUNDS).unwrap();
                assert_eq!(nearest, NonZeroU32::new(count));
                assert_eq!(area == Area::Everywhere, form.is_empty());
            }
            for count in ["0", "-1", "21", "1.5", "5000000000", "1e999", "\"3\"", "true", "[1]"] {
                check(&format!("{{{form}\"nearest\":{count}}}"), "/nearest");
            }
        }
        let plain = parse(World::Geodetic, r#"{"radius_m":5,"nearest":null}"#, BOUNDS);
        assert_eq!(plain.unwrap().nearest, None);
        check(r#"{"nearest":null}"#, "");
        check(r#"{"radius_m":-1,"nearest":0}"#, "/radius_m");
        check(r#"{"center":[1,2],"nearest":3}"#, "/radius_m");
    }

    #[test]
    fn a_route_has_an_end_and_is_nowhere_at_first() {
        let read = |text| parse(World::Geodetic, text, BOUNDS).unwrap();
        for (text, by) in [
            (r#"{"route":{"to":[9,45]},"radius_m":200}"#, RouteBy::Duration),
            (r#"{"radius_m":200,"route":{"by":"length","to":[9,45]},"nearest":3}"#, RouteBy::Length),
        ] {
            let AreaRead { area, route, .. } = read(text);
            assert!(matches!(area, Area::Corridor(corridor) if corridor.is_nowhere()));
            assert_eq!(route.map(|route| (route.to.x(), route.to.y(), route.by)), Some((9.0, 45.0, by)));
        }
        check(r#"{"route":{"to":[9,45]}}"#, "/radius_m");
        check(r#"{"route":{},"radius_m":5}"#, "/route/to");
        check(r#"{"route":[9,45],"radius_m":5}"#, "/route");
        check(r#"{"route":{"to":[9,95]},"radius_m":5}"#, "/route/to");
        check(r#"{"route":{"to":[9,45],"by":"speed"},"radius_m":5}"#, "/route/by");
        check(r#"{"route":{"to":[9,45],"by":{"length":null}},"radius_m":5}"#, "/route/by");
        check(r#"{"route":{"to":[9,45],"from":[9,45]},"radius_m":5}"#, "/route/from");
        check(r#"{"route":{"to":[9,45]},"radius_m":5,"center":[9,45]}"#, "");
        let planar = parse(World::Planar, r#"{"route":{"to":[9,45]},"radius_m":5}"#, BOUNDS);
        assert!(matches!(planar, Err(ApiError::Invalid(faults)) if faults[0].pointer == "/route"));
    }

    #[test]
    fn faults_are_told_where_they_are() {
        check("[1]", "");
        check(r#"{"radius_m":-1}"#, "/radius_m");
        check(r#"{"radius_m":"1"}"#, "/radius_m");
        check(r#"{"radius_m":1,"radius_km":1}"#, "/radius_km");
        check(r#"{"radius_m":1,"center":[1]}"#, "/center");
        check(r#"{"polygon":{"type":"Point","coordinates":[1,2]}}"#, "/polygon/type");
        check(
            r#"{"polygon":{"type":"Polygon","coordinates":[[[0,0],[1,0],[0,0]]]}}"#,
            "/polygon/coordinates",
        );
        check(
            r#"{"polygon":{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,91],[0,0]]]}}"#,
            "/polygon/coordinates/0/2",
        );
        check(
            r#"{"corridor":{"type":"LineString","coordinates":[[0,0]]},"radius_m":3}"#,
            "/corridor/coordinates",
        );
        check(
            r#"{"corridor":{"type":"LineString","coordinates":[[0,0],[1,1],[2,2],[3,3],[4,4],[5,5]]},"radius_m":3}"#,
            "/corridor/coordinates",
        );
    }
}
