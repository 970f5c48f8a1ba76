//! Where: areas of subscriptions. The broker's `docs/protocol/subscribe.md` has their meaning.

use serde_json::{Value, json};

use crate::{Coordinates, Filter, condition::Cql2};

/// An area of a filter. Made by [`around`], [`circle`], [`polygon`], [`corridor`], [`along_route`] and [`everywhere`].
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Area(pub(crate) Option<wire::Area>);

impl Area {
    /// Counts only the `k` live objects that are nearest to the client, of those that the filter takes.
    pub fn nearest(self, k: u32) -> Self {
        use wire::Area::{Circle, Corridor, Following, Nearest, Polygon, Route};
        let nearest = Some(k);
        Self(Some(match self.0 {
            None | Some(Nearest { .. }) => Nearest { nearest: k },
            Some(Following(following)) => Following(wire::Following { nearest, ..following }),
            Some(Circle { center, radius_m, .. }) => Circle { center, radius_m, nearest },
            Some(Polygon { polygon, .. }) => Polygon { polygon, nearest },
            Some(Corridor { corridor, radius_m, .. }) => Corridor { corridor, radius_m, nearest },
            Some(Route { route, radius_m, .. }) => Route { route, radius_m, nearest },
        }))
    }

    /// A filter of this area and a condition: what [`attr`](crate::attr) builds, CQL2 text, or CQL2-JSON.
    pub fn when(self, condition: impl Into<Cql2>) -> Filter {
        Filter::from(self).when(condition)
    }
}

/// A circle of `radius_m` metres around the client, wherever it moves. It holds nothing until the client has told its
/// position.
pub fn around(radius_m: f64) -> Area {
    Area(Some(wire::Area::Following(wire::Following { radius_m, nearest: None })))
}

/// A circle of `radius_m` metres around a place, the edge included.
pub fn circle(center: impl Into<Coordinates>, radius_m: f64) -> Area {
    Area(Some(wire::Area::Circle { center: center.into().to_vec(), radius_m, nearest: None }))
}

/// Inside a polygon, edges included: its outer ring and then its holes, or a GeoJSON Polygon or MultiPolygon as a [`Value`]. Rings that do
/// not end where they begin are closed. A polygon across the antimeridian comes cut in two.
///
/// ```
/// use nearcast_client::polygon;
/// let triangle = polygon([[[9.0, 45.0], [10.0, 45.0], [10.0, 46.0]]]);
/// ```
pub fn polygon(shape: impl Into<Shape>) -> Area {
    Area(Some(wire::Area::Polygon { polygon: shape.into().0, nearest: None }))
}

/// All places within `radius_m` metres of a line of two positions or more, or of a GeoJSON LineString as a [`Value`].
pub fn corridor(line: impl Into<Line>, radius_m: f64) -> Area {
    Area(Some(wire::Area::Corridor { corridor: line.into().0, radius_m, nearest: None }))
}

/// All places within `radius_m` metres of the quickest way along streets from the client to a place. It is found again when the client has left
/// it, and holds nothing until the client has told its position. The broker has to know the streets.
pub fn along_route(to: impl Into<Coordinates>, radius_m: f64) -> Area {
    let route = wire::RouteEnd { to: to.into().to_vec(), by: wire::RouteBy::Duration };
    Area(Some(wire::Area::Route { route, radius_m, nearest: None }))
}

/// Everywhere; with [`nearest`](Area::nearest) the k nearest, however far they are.
pub fn everywhere() -> Area {
    Area(None)
}

/// Argument of [`polygon`]: rings of positions, or GeoJSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape(Value);

impl From<Value> for Shape {
    fn from(geometry: Value) -> Self {
        Self(geometry)
    }
}

impl<C: Into<Coordinates>> From<Vec<Vec<C>>> for Shape {
    fn from(rings: Vec<Vec<C>>) -> Self {
        let rings: Vec<_> = rings.into_iter().map(closed).collect();
        Self(json!({"type": "Polygon", "coordinates": rings}))
    }
}

impl<C: Into<Coordinates>, const RINGS: usize, const CORNERS: usize> From<[[C; CORNERS]; RINGS]> for Shape {
    fn from(rings: [[C; CORNERS]; RINGS]) -> Self {
        rings.into_iter().map(Vec::from).collect::<Vec<_>>().into()
    }
}

fn closed<C: Into<Coordinates>>(ring: Vec<C>) -> Vec<Coordinates> {
    let mut ring: Vec<Coordinates> = ring.into_iter().map(Into::into).collect();
    if let (Some(&first), Some(&last)) = (ring.first(), ring.last())
        && [first.lon, first.lat] != [last.lon, last.lat]
    {
        ring.push(first);
    }
    ring
}

/// Argument of [`corridor`]: positions, or GeoJSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Line(Value);

impl From<Value> for Line {
    fn from(geometry: Value) -> Self {
        Self(geometry)
    }
}

impl<C: Into<Coordinates>> From<Vec<C>> for Line {
    fn from(positions: Vec<C>) -> Self {
        let positions: Vec<Coordinates> = positions.into_iter().map(Into::into).collect();
        Self(json!({"type": "LineString", "coordinates": positions}))
    }
}

impl<C: Into<Coordinates>, const POSITIONS: usize> From<[C; POSITIONS]> for Line {
    fn from(positions: [C; POSITIONS]) -> Self {
        Vec::from(positions).into()
    }
}
