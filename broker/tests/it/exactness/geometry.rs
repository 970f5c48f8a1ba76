//! Areas decided from first principles, sharing nothing with the program under test.
//!
//! Every answer has three values: two correct formulas may round a point that lies on a border to different sides,
//! so what is nearer to a border than [`BORDER_M`] is left undecided, and the tests count how often that happens.

use serde_json::{Value, json};

/// The Earth of PROTOCOL, metres.
const EARTH_M: f64 = 6_371_008.8;

/// How near to a border a point counts as on it.
const BORDER_M: f64 = 1e-6;

/// Longitude and latitude, degrees.
pub(crate) type Place = [f64; 2];

/// Which side of a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// In the area.
    Inside,
    /// Not in the area.
    Outside,
    /// Too near to tell.
    Border,
}

/// Where a filter is interested.
#[derive(Clone, Debug)]
pub(crate) enum Area {
    Everywhere,
    Following {
        radius_m: f64,
    },
    Circle {
        center: Place,
        radius_m: f64,
    },
    /// Each part has an outer ring and holes; all rings are closed.
    Polygons(Vec<Vec<Vec<Place>>>),
    Corridor {
        line: Vec<Place>,
        radius_m: f64,
    },
}

/// A box in degrees that holds an area, widened so that it never cuts a border off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    west: f64,
    south: f64,
    east: f64,
    north: f64,
}

impl Frame {
    const ALL: Self = Self { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };
    /// Holds nothing.
    pub(crate) const NOTHING: Self = Self { west: 1.0, south: 1.0, east: -1.0, north: -1.0 };

    /// Whether a place is in the box.
    pub(crate) fn holds(&self, place: Place) -> bool {
        place[0] >= self.west && place[0] <= self.east && place[1] >= self.south && place[1] <= self.north
    }

    fn around(places: impl Iterator<Item = Place>, margin_m: f64) -> Self {
        let mut frame = Self { west: 180.0, south: 90.0, east: -180.0, north: -90.0 };
        for [lon, lat] in places {
            frame.west = frame.west.min(lon);
            frame.east = frame.east.max(lon);
            frame.south = frame.south.min(lat);
            frame.north = frame.north.max(lat);
        }
        // Twice the margin and ten metres: a great circle bows out of the box of its ends, and meridians converge.
        let lat_margin = ((2.0 * margin_m + 10.0) / EARTH_M).to_degrees();
        let highest = (frame.north.abs().max(frame.south.abs()) + lat_margin).min(90.0);
        let lon_margin = lat_margin / highest.to_radians().cos();
        let wide = !(frame.west - lon_margin >= -180.0 && frame.east + lon_margin <= 180.0 && highest < 85.0);
        // Lines of more than a degree bow further than the margin, and boxes stop at the antimeridian and the poles.
        if wide || frame.east - frame.west > 1.0 || frame.north - frame.south > 1.0 {
            return Self::ALL;
        }
        Self {
            west: frame.west - lon_margin,
            east: frame.east + lon_margin,
            south: frame.south - lat_margin,
            north: frame.north + lat_margin,
        }
    }
}

impl Area {
    /// A box outside of which the area holds nothing.
    pub(crate) fn frame(&self, client: Option<Place>) -> Frame {
        match self {
            Self::Everywhere => Frame::ALL,
            Self::Following { radius_m } => {
                client.map_or(Frame::NOTHING, |place| Frame::around([place].into_iter(), *radius_m))
            }
            Self::Circle { center, radius_m } => Frame::around([*center].into_iter(), *radius_m),
            Self::Polygons(parts) => Frame::around(parts.iter().flatten().flatten().copied(), 0.0),
            Self::Corridor { line, radius_m } => Frame::around(line.iter().copied(), *radius_m),
        }
    }

    /// Which side of its border a place is; `client` is where the subscriber is.
    pub(crate) fn side(&self, client: Option<Place>, place: Place) -> Side {
        match self {
            Self::Everywhere => Side::Inside,
            Self::Following { radius_m } => {
                client.map_or(Side::Outside, |center| within(distance_m(center, place), *radius_m))
            }
            Self::Circle { center, radius_m } => within(distance_m(*center, place), *radius_m),
            Self::Polygons(parts) => polygons_side(parts, place),
            Self::Corridor { line, radius_m } => within(line_distance_m(line, place), *radius_m),
        }
    }

    /// The same for the area and all that is at most so many metres outside of it.
    pub(crate) fn side_of_margin(&self, client: Option<Place>, place: Place, margin_m: f64) -> Side {
        match self {
            Self::Everywhere => Side::Inside,
            Self::Following { radius_m } => {
                client.map_or(Side::Outside, |center| within(distance_m(center, place), radius_m + margin_m))
            }
            Self::Circle { center, radius_m } => within(distance_m(*center, place), radius_m + margin_m),
            Self::Polygons(parts) if polygons_side(parts, place) != Side::Outside => Side::Inside,
            Self::Polygons(parts) => {
                let distances = parts.iter().map(|rings| part_distance_m(rings, place));
                let outside_m = distances.fold(f64::INFINITY, f64::min);
                // The distance is only so good, so near the end of the margin it tells nothing.
                if (outside_m - margin_m).abs() < 0.005 * margin_m + BORDER_M {
                    return Side::Border;
                }
                within(outside_m, margin_m)
            }
            Self::Corridor { line, radius_m } => within(line_distance_m(line, place), radius_m + margin_m),
        }
    }

    /// As PROTOCOL writes it; `None` for everywhere, which is an absent member.
    pub(crate) fn document(&self) -> Option<Value> {
        match self {
            Self::Everywhere => None,
            Self::Following { radius_m } => Some(json!({"radius_m": radius_m})),
            Self::Circle { center, radius_m } => Some(json!({"center": center, "radius_m": radius_m})),
            Self::Polygons(parts) if parts.len() == 1 => {
                Some(json!({"polygon": {"type": "Polygon", "coordinates": parts[0]}}))
            }
            Self::Polygons(parts) => Some(json!({"polygon": {"type": "MultiPolygon", "coordinates": parts}})),
            Self::Corridor { line, radius_m } => {
                Some(json!({"corridor": {"type": "LineString", "coordinates": line}, "radius_m": radius_m}))
            }
        }
    }
}

/// Compares a distance with a radius.
pub(crate) fn within(distance_m: f64, radius_m: f64) -> Side {
    if (distance_m - radius_m).abs() < BORDER_M {
        Side::Border
    } else if distance_m < radius_m {
        Side::Inside
    } else {
        Side::Outside
    }
}

/// Great-circle distance by the haversine.
pub(crate) fn distance_m(a: Place, b: Place) -> f64 {
    let [lon_a, lat_a] = a.map(f64::to_radians);
    let [lon_b, lat_b] = b.map(f64::to_radians);
    let across = ((lat_b - lat_a) / 2.0).sin();
    let along = ((lon_b - lon_a) / 2.0).sin();
    let h = across * across + lat_a.cos() * lat_b.cos() * along * along;
    2.0 * EARTH_M * h.min(1.0).sqrt().asin()
}

/// Distance to the nearest of the great-circle segments of a line.
fn line_distance_m(line: &[Place], place: Place) -> f64 {
    line.windows(2).map(|ends| segment_distance_m(ends[0], ends[1], place)).fold(f64::INFINITY, f64::min)
}

/// Cross-track distance where the foot of the perpendicular falls between the ends, else to the nearer end.
fn segment_distance_m(a: Place, b: Place, place: Place) -> f64 {
    let ends = distance_m(a, place).min(distance_m(b, place));
    let [va, vb, vp] = [a, b, place].map(unit);
    let normal = cross(va, vb);
    let length = dot(normal, normal).sqrt();
    if length == 0.0 {
        return ends;
    }
    // The foot lies between the ends when the place is on the inner side of both planes that stand on the ends.
    if dot(cross(normal, va), vp) > 0.0 && dot(cross(vb, normal), vp) > 0.0 {
        return ends.min(EARTH_M * (dot(normal, vp) / length).clamp(-1.0, 1.0).asin().abs());
    }
    ends
}

/// In one of the polygons, and in none of that polygon's holes.
fn polygons_side(parts: &[Vec<Vec<Place>>], place: Place) -> Side {
    let sides = parts.iter().map(|rings| {
        let outer = ring_side(&rings[0], place);
        // A place on a hole's edge is not in the hole, so holes decide nothing there that rounding may not undo.
        rings[1..].iter().map(|hole| ring_side(hole, place)).fold(outer, |side, hole| match (side, hole) {
            (Side::Outside, _) | (_, Side::Inside) => Side::Outside,
            (Side::Border, _) | (_, Side::Border) => Side::Border,
            (Side::Inside, Side::Outside) => Side::Inside,
        })
    });
    sides.fold(Side::Outside, |all, one| match (all, one) {
        (Side::Inside, _) | (_, Side::Inside) => Side::Inside,
        (Side::Border, _) | (_, Side::Border) => Side::Border,
        (Side::Outside, Side::Outside) => Side::Outside,
    })
}

/// Even-odd: a ring that crosses itself holds what it goes round an odd number of times.
fn ring_side(ring: &[Place], place: Place) -> Side {
    let mut crossings = 0;
    for edge in ring.windows(2) {
        if edge_distance_m(edge[0], edge[1], place) < BORDER_M {
            return Side::Border;
        }
        let [x, y] = place;
        let ([ax, ay], [bx, by]) = (edge[0], edge[1]);
        if (ay > y) != (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax) {
            crossings += 1;
        }
    }
    if crossings % 2 == 1 { Side::Inside } else { Side::Outside }
}

/// How many places along an edge are looked at, where parts of edges may be no border.
const STEPS: u32 = 400;

/// Distance from outside to a polygon: to the nearest place on an edge of a ring that belongs to the polygon.
fn part_distance_m(rings: &[Vec<Place>], place: Place) -> f64 {
    let edges = rings.iter().flat_map(|ring| ring.windows(2));
    if rings.len() <= 2 {
        return edges.map(|edge| edge_distance_m(edge[0], edge[1], place)).fold(f64::INFINITY, f64::min);
    }
    let pieces = edges.flat_map(|edge| {
        let at = |step: u32| {
            let share = f64::from(step) / f64::from(STEPS);
            [0, 1].map(|axis| edge[0][axis] + (edge[1][axis] - edge[0][axis]) * share)
        };
        (0..STEPS).map(move |step| [at(step), at(step + 1)])
    });
    let belongs = |[from, to]: &[Place; 2]| {
        let middle = [0, 1].map(|axis| f64::midpoint(from[axis], to[axis]));
        ring_side(&rings[0], middle) != Side::Outside
            && rings[1..].iter().all(|hole| ring_side(hole, middle) != Side::Inside)
    };
    let distances = pieces.filter(belongs).map(|[from, to]| edge_distance_m(from, to, place));
    distances.fold(f64::INFINITY, f64::min)
}

/// Distance to an edge that is straight in longitude and latitude, good to a few parts in a thousand near it, which is
/// all that telling a border takes.
fn edge_distance_m(a: Place, b: Place, place: Place) -> f64 {
    let metres = EARTH_M.to_radians();
    let east = metres * place[1].to_radians().cos();
    let [ax, ay, bx, by] = [
        (a[0] - place[0]) * east,
        (a[1] - place[1]) * metres,
        (b[0] - place[0]) * east,
        (b[1] - place[1]) * metres,
    ];
    let (dx, dy) = (bx - ax, by - ay);
    let length = dx * dx + dy * dy;
    let t = if length == 0.0 { 0.0 } else { (-(ax * dx + ay * dy) / length).clamp(0.0, 1.0) };
    (ax + t * dx).hypot(ay + t * dy)
}

fn unit([lon, lat]: Place) -> [f64; 3] {
    let (lon, lat) = (lon.to_radians(), lat.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
