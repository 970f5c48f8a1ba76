//! A country that is made up: cities like chessboards on a lattice, and motorways between them.

use crate::network::Class;

/// Most nodes of a country.
const NODES_MAX: u32 = 1 << 30;
/// Fewest: two cities with a road between them.
const NODES_MIN: u32 = 64;
/// A thousandth of the nodes is left to roads for each of these.
const ROADS_PERMILLE: u64 = 30;
/// Crossings along the side of a city in a large country, on average.
const SIDE: u32 = 64;

/// A country without a map: as many nodes as are asked for, and about 2.4 arcs each, as streets of a whole state have; every arc can be had by its node
/// alone, so that a country is never in memory unless somebody keeps it.
///
/// - Cities differ in size (half to three halves of the mean) and in the length of their blocks (150 to 300 m). A block has two nodes between its
///   crossings, as maps have where streets bend or change. In the middle of a city two main streets cross (60 km/h, two lanes); every eighth street is a
///   secondary one (50 km/h), the others are residential (30 km/h).
/// - Cities are 60 km apart, in rows. A motorway (110 km/h, two lanes) leads from each to the next in its row, and to the one beyond it in the next row.
/// - All streets go both ways and are straight, and from everywhere one can get everywhere.
///
/// Nodes are numbered city by city, then road by road, so that neighbours have numbers that are near each other.
#[derive(Clone, Debug)]
pub struct Country {
    seed: u64,
    nodes: u32,
    /// The first node of each city, and the first behind them all.
    cities: Vec<u32>,
    /// Crossings along the side of each city.
    sides: Vec<u32>,
    /// Cities in a row: at least two.
    columns: u32,
    roads: Vec<Road>,
}

/// A motorway from one city to another, with its nodes.
#[derive(Clone, Copy, Debug)]
struct Road {
    from: u32,
    to: u32,
    first: u32,
    count: u32,
}

/// An arc of a country.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountryArc {
    /// The node that it reaches.
    pub to: u32,
    /// The kind of street.
    pub class: Class,
    /// The speed limit in metres a second.
    pub limit_ms: f32,
    /// How many lanes it has.
    pub lanes: u8,
}

/// A place in a city: a crossing, or a node on the way from it to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    row: u32,
    column: u32,
    /// 0 at the crossing; 1 and 2 on the way east, 3 and 4 on the way north.
    part: u32,
}

impl Country {
    /// A country with as many nodes: at least 64, at most 2^30.
    ///
    /// Cost: O(cities), a thousand for 24 million nodes.
    #[must_use]
    pub fn new(nodes: u32, seed: u64) -> Self {
        let nodes = nodes.clamp(NODES_MIN, NODES_MAX);
        let side = (nodes / 60).isqrt().clamp(2, SIDE);
        let for_cities = u64::from(nodes) * (1000 - ROADS_PERMILLE) / 1000;
        let (mut cities, mut sides) = (vec![0], Vec::new());
        let mut all = 0;
        for city in 0.. {
            let spread = mixed(seed, city) % u64::from(side + 1);
            let mut side = side / 2 + u32::try_from(spread).unwrap_or(0);
            side = side.max(2);
            // The second city is as small as it has to be.
            if all + u64::from(city_nodes(side)) > for_cities && sides.len() < 2 {
                side = 2;
            }
            if all + u64::from(city_nodes(side)) > for_cities && sides.len() >= 2 {
                break;
            }
            all += u64::from(city_nodes(side));
            sides.push(side);
            cities.push(u32::try_from(all).unwrap_or(nodes));
        }
        let count = u32::try_from(sides.len()).unwrap_or(u32::MAX);
        let columns = count.isqrt() + u32::from(count.isqrt().pow(2) < count);
        let mut ends = Vec::new();
        for city in 0..count {
            if (city + 1) % columns != 0 && city + 1 < count {
                ends.push((city, city + 1));
            }
            if city + columns < count {
                ends.push((city, city + columns));
            }
        }
        let mut roads = Vec::new();
        let first = u32::try_from(all).unwrap_or(nodes);
        let (left, roads_count) =
            (u64::from(nodes - first), u64::try_from(ends.len()).unwrap_or(u64::MAX).max(1));
        let begin = |road: u64| first + u32::try_from(left * road / roads_count).unwrap_or(0);
        for ((from, to), road) in ends.into_iter().zip(0..) {
            roads.push(Road { from, to, first: begin(road), count: begin(road + 1) - begin(road) });
        }
        Self { seed, nodes, cities, sides, columns, roads }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes_count(&self) -> u32 {
        self.nodes
    }

    /// How many cities there are.
    #[must_use]
    pub fn cities_count(&self) -> usize {
        self.sides.len()
    }

    /// Where a node is: `[x, y]` in metres.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn node_at(&self, node: u32) -> [f64; 2] {
        if let Some((city, place)) = self.place(node) {
            return self.place_at(city, place);
        }
        let road = self.road(node);
        let (begin, end) = (self.node_at(self.gate(road, true)), self.node_at(self.gate(road, false)));
        let share = f64::from(node - road.first + 1) / f64::from(road.count + 1);
        [begin[0] + (end[0] - begin[0]) * share, begin[1] + (end[1] - begin[1]) * share]
    }

    /// Adds the arcs that leave a node, in an order that is always the same.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn arcs(&self, node: u32, arcs: &mut Vec<CountryArc>) {
        let Some((city, place)) = self.place(node) else {
            let road = self.road(node);
            let nth = node - road.first;
            let before = if nth == 0 { self.gate(road, true) } else { node - 1 };
            let behind = if nth + 1 == road.count { self.gate(road, false) } else { node + 1 };
            arcs.extend([motorway(before), motorway(behind)]);
            return;
        };
        let Place { row, column, part } = place;
        let side = self.sides[city];
        let number = |place| self.cities[city] + number(side, place);
        let at = |row, column, part| number(Place { row, column, part });
        let along_row = street(side, row);
        let along_column = street(side, column);
        match part {
            0 => {
                if column + 1 < side {
                    arcs.push(along_row(at(row, column, 1)));
                }
                if row + 1 < side {
                    arcs.push(along_column(at(row, column, 3)));
                }
                if column > 0 {
                    arcs.push(along_row(at(row, column - 1, 2)));
                }
                if row > 0 {
                    arcs.push(along_column(at(row - 1, column, 4)));
                }
                self.roads_of(city, row, column, arcs);
            }
            1 => arcs.extend([along_row(at(row, column, 0)), along_row(at(row, column, 2))]),
            2 => arcs.extend([along_row(at(row, column, 1)), along_row(at(row, column + 1, 0))]),
            3 => arcs.extend([along_column(at(row, column, 0)), along_column(at(row, column, 4))]),
            _ => arcs.extend([along_column(at(row, column, 3)), along_column(at(row + 1, column, 0))]),
        }
    }

    /// Adds the motorways that begin or end at a crossing: in the middle of a city's sides.
    fn roads_of(&self, city: usize, row: u32, column: u32, arcs: &mut Vec<CountryArc>) {
        let side = self.sides[city];
        let middle = side / 2;
        if (row != middle || (column != 0 && column != side - 1))
            && (column != middle || (row != 0 && row != side - 1))
        {
            return;
        }
        let node = self.cities[city] + number(side, Place { row, column, part: 0 });
        let city = u32::try_from(city).unwrap_or(u32::MAX);
        // Roads are in the order of the cities where they begin.
        let from = |city: u32| self.roads.partition_point(|road| road.from < city);
        let mine = from(city)..from(city + 1);
        let west = city.checked_sub(1).map_or(0..0, |west| from(west)..from(west + 1));
        let south = city.checked_sub(self.columns).map_or(0..0, |south| from(south)..from(south + 1));
        for road in mine.chain(west).chain(south) {
            let road = self.roads[road];
            if road.from == city && self.gate(road, true) == node {
                let next = if road.count == 0 { self.gate(road, false) } else { road.first };
                arcs.push(motorway(next));
            }
            if road.to == city && self.gate(road, false) == node {
                let next = if road.count == 0 { self.gate(road, true) } else { road.first + road.count - 1 };
                arcs.push(motorway(next));
            }
        }
    }

    /// The crossing where a road begins, or ends: east and north of a city, west and south of the next.
    fn gate(&self, road: Road, is_begin: bool) -> u32 {
        let city = if is_begin { road.from } else { road.to } as usize;
        let side = self.sides[city];
        let (edge, middle) = (if is_begin { side - 1 } else { 0 }, side / 2);
        let place = if road.to == road.from + 1 {
            Place { row: middle, column: edge, part: 0 }
        } else {
            Place { row: edge, column: middle, part: 0 }
        };
        self.cities[city] + number(side, place)
    }

    /// The city of a node and where it is there; none of a node on a road.
    fn place(&self, node: u32) -> Option<(usize, Place)> {
        assert!(node < self.nodes, "a country of {} nodes has no node {node}", self.nodes);
        let city = self.cities.partition_point(|first| *first <= node) - 1;
        let side = *self.sides.get(city)?;
        let offset = node - self.cities[city];
        let full = 5 * side - 2;
        let row = (offset / full).min(side - 1);
        let within = offset - row * full;
        let width = if row + 1 < side { 5 } else { 3 };
        let column = (within / width).min(side - 1);
        let mut part = within - column * width;
        // The last of a row has no way east.
        if column + 1 == side && part > 0 {
            part += 2;
        }
        Some((city, Place { row, column, part }))
    }

    fn place_at(&self, city: usize, place: Place) -> [f64; 2] {
        let city_number = u32::try_from(city).unwrap_or(u32::MAX);
        // Whole centimetres, so that lengths are the same everywhere.
        let bits = u32::try_from(mixed(self.seed ^ 1, u64::from(city_number)) % 15_001).unwrap_or(0);
        let block_m = 150.0 + f64::from(bits) / 100.0;
        let (part_east, part_north) = match place.part {
            0 => (0, 0),
            part @ 1..=2 => (part, 0),
            part => (0, part - 2),
        };
        let along = |city: u32, crossing: u32, part: u32| {
            f64::from(city) * 60_000.0 + f64::from(3 * crossing + part) * block_m / 3.0
        };
        [
            along(city_number % self.columns, place.column, part_east),
            along(city_number / self.columns, place.row, part_north),
        ]
    }

    fn road(&self, node: u32) -> Road {
        self.roads[self.roads.partition_point(|road| road.first <= node) - 1]
    }
}

/// Nodes of a city with `side` crossings along each side.
fn city_nodes(side: u32) -> u32 {
    5 * side * side - 4 * side
}

/// The number of a place in its city: row by row, each crossing before the nodes east and north of it.
fn number(side: u32, place: Place) -> u32 {
    let Place { row, column, part } = place;
    let width = if row + 1 < side { 5 } else { 3 };
    let skipped = if column + 1 == side && part > 0 { 2 } else { 0 };
    row * (5 * side - 2) + column * width + part - skipped
}

/// Arcs of the street of a row or a column.
fn street(side: u32, nth: u32) -> impl Fn(u32) -> CountryArc {
    let (class, lanes) = if nth == side / 2 {
        (Class::Primary, 2)
    } else if nth % 8 == (side / 2) % 8 {
        (Class::Secondary, 1)
    } else {
        (Class::Residential, 1)
    };
    move |to| arc(to, class, lanes)
}

fn motorway(to: u32) -> CountryArc {
    arc(to, Class::Motorway, 2)
}

#[expect(clippy::cast_possible_truncation, reason = "limits are few and small")]
fn arc(to: u32, class: Class, lanes: u8) -> CountryArc {
    CountryArc { to, class, limit_ms: (class.limit_kmh() / 3.6) as f32, lanes }
}

/// Random bits: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mixed(seed: u64, nth: u64) -> u64 {
    let state = seed.wrapping_add((nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
