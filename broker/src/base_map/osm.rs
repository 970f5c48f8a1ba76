//! Reads an extract of OpenStreetMap (`.osm.pbf`): streets, water, parks, buildings and places.
//!
//! The file is read three times, for in it nodes come before the ways that use them, and ways before the areas that they enclose: areas say which
//! ways are wanted, and ways which nodes. So no more is in memory than is drawn.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use osmpbf::{Element, ElementReader, RelMemberType};

use super::kinds::{self, Kind, Layer, Tags};

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The most lines, areas and places.
const SHAPES_MAX: usize = 3_000_000;
/// The most nodes that they have together.
const NODES_MAX: usize = 24_000_000;

/// A place on the flat map: parts of 2³² of its side from its north-west corner.
pub(super) type Spot = [u32; 2];

/// Something that is drawn.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) name: Option<Box<str>>,
    /// A point, a line, or a ring and what is cut out of it; rings end where they begin.
    pub(super) parts: Box<[Box<[Spot]>]>,
}

/// A way of which the nodes are not looked up yet.
struct Way {
    kind: Option<Kind>,
    name: Option<Box<str>>,
    refs: Box<[i64]>,
}

/// An area that several ways enclose.
struct Area {
    kind: Kind,
    name: Option<Box<str>>,
    outer: Vec<i64>,
    inner: Vec<i64>,
}

/// Everything of an extract that is drawn. Blocks.
///
/// # Errors
/// A file that cannot be read, is none of this form, or has more than fits.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Shape>> {
    let bytes = path.metadata().context("cannot be read")?.len();
    anyhow::ensure!(
        bytes <= FILE_BYTES_MAX,
        "has more than {FILE_BYTES_MAX} bytes: cut it, or make a PMTiles file of it"
    );
    let areas = areas(path)?;
    let ways = ways(path, &areas)?;
    let count = areas.len() + ways.len();
    anyhow::ensure!(
        count <= SHAPES_MAX,
        "has more than {SHAPES_MAX} lines and areas: cut it, or make a PMTiles file of it"
    );
    let mut nodes: Vec<i64> = ways.values().flat_map(|way| way.refs.iter().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    anyhow::ensure!(
        nodes.len() <= NODES_MAX,
        "has more than {NODES_MAX} nodes: cut it, or make a PMTiles file of it"
    );
    let (spots, mut shapes) = places(path, &nodes)?;
    let find = |node: i64| nodes.binary_search(&node).ok().and_then(|idx| spots[idx]);
    for area in &areas {
        shapes.extend(enclosed(area, &ways, &find));
    }
    for way in ways.into_values() {
        let Some(kind) = way.kind else { continue };
        let spots: Box<[Spot]> = way.refs.iter().filter_map(|node| find(*node)).collect();
        if spots.len() >= if kind.is_area { 4 } else { 2 } {
            shapes.push(Shape { kind, name: way.name, parts: Box::new([spots]) });
        }
    }
    Ok(shapes)
}

fn each(path: &Path, take: impl FnMut(Element<'_>)) -> anyhow::Result<()> {
    let reader = ElementReader::from_path(path).context("cannot be read")?;
    reader.for_each(take).context("is no .osm.pbf file, or a part of one")
}

fn areas(path: &Path) -> anyhow::Result<Vec<Area>> {
    let mut areas = Vec::new();
    each(path, |element| {
        let Element::Relation(relation) = element else { return };
        let tags = |key: &str| relation.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
        if tags("type") != Some("multipolygon") || areas.len() > SHAPES_MAX {
            return;
        }
        let Some(kind) = kinds::of_way(&tags, true).filter(|kind| kind.is_area) else { return };
        let mut area = Area { kind, name: name(&tags), outer: Vec::new(), inner: Vec::new() };
        for member in relation.members().filter(|member| member.member_type == RelMemberType::Way) {
            match member.role() {
                Ok("inner") => area.inner.push(member.member_id),
                Ok("outer" | "") => area.outer.push(member.member_id),
                _ => {}
            }
        }
        areas.push(area);
    })?;
    Ok(areas)
}

fn ways(path: &Path, areas: &[Area]) -> anyhow::Result<HashMap<i64, Way>> {
    let mut ways: HashMap<i64, Way> = HashMap::new();
    let members = areas.iter().flat_map(|area| area.outer.iter().chain(&area.inner));
    ways.extend(members.map(|id| (*id, Way { kind: None, name: None, refs: Box::default() })));
    each(path, |element| {
        let Element::Way(way) = element else { return };
        let tags = |key: &str| way.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
        let refs = || way.refs().collect::<Box<[i64]>>();
        let is_closed = way.raw_refs().len() > 3 && way.refs().next() == way.refs().last();
        let kind = kinds::of_way(&tags, is_closed);
        if let Some(member) = ways.get_mut(&way.id()) {
            *member = Way { kind, name: name(&tags), refs: refs() };
        } else if kind.is_some() && ways.len() <= SHAPES_MAX {
            ways.insert(way.id(), Way { kind, name: name(&tags), refs: refs() });
        }
    })?;
    Ok(ways)
}

/// Where the nodes are, and the places among all nodes.
fn places(path: &Path, nodes: &[i64]) -> anyhow::Result<(Vec<Option<Spot>>, Vec<Shape>)> {
    let mut spots = vec![None; nodes.len()];
    let mut shapes = Vec::new();
    let mut take = |id: i64, spot: Option<Spot>, tags: Tags<'_>| {
        let Some(spot) = spot else { return };
        if let Ok(idx) = nodes.binary_search(&id) {
            spots[idx] = Some(spot);
        }
        let (kind, name) = (kinds::of_node(tags), name(tags));
        if let (Some(kind), Some(_)) = (kind, &name)
            && shapes.len() < SHAPES_MAX
        {
            shapes.push(Shape { kind, name, parts: Box::new([Box::new([spot])]) });
        }
    };
    each(path, |element| match element {
        Element::DenseNode(node) => {
            let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
            take(node.id(), spot(node.lon(), node.lat()), &tags);
        }
        Element::Node(node) => {
            let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
            take(node.id(), spot(node.lon(), node.lat()), &tags);
        }
        Element::Way(_) | Element::Relation(_) => {}
    })?;
    Ok((spots, shapes))
}

/// Names are cut where they are long beyond reason.
fn name(tags: Tags<'_>) -> Option<Box<str>> {
    let name = tags("name")?;
    let end = name.char_indices().nth(80).map_or(name.len(), |(at, _)| at);
    (end > 0).then(|| name[..end].into())
}

/// The outer rings of an area, each with the inner ones in it.
fn enclosed(area: &Area, ways: &HashMap<i64, Way>, find: &impl Fn(i64) -> Option<Spot>) -> Vec<Shape> {
    let rings = |ids: &[i64]| {
        let lines: Vec<&[i64]> = ids.iter().filter_map(|id| ways.get(id)).map(|way| &*way.refs).collect();
        joined(lines)
            .into_iter()
            .map(|ring| ring.into_iter().filter_map(find).collect::<Box<[Spot]>>())
            .filter(|ring| ring.len() > 3)
    };
    let mut shapes: Vec<_> = rings(&area.outer).map(|ring| vec![ring]).collect();
    for hole in rings(&area.inner) {
        let around = shapes.iter_mut().find(|parts| holds(&parts[0], hole[0]));
        if let Some(parts) = around {
            parts.push(hole);
        }
    }
    let shape = |parts: Vec<_>| Shape { kind: area.kind, name: area.name.clone(), parts: parts.into() };
    shapes.into_iter().map(shape).collect()
}

/// Closed rings of lines that meet at their ends. What does not close is left out: it leads out of the extract.
fn joined(lines: Vec<&[i64]>) -> Vec<Vec<i64>> {
    let mut open: HashMap<i64, Vec<usize>> = HashMap::new();
    for (idx, line) in lines.iter().enumerate() {
        for end in [line.first(), line.last()].into_iter().flatten() {
            open.entry(*end).or_default().push(idx);
        }
    }
    let mut is_used = vec![false; lines.len()];
    let mut rings = Vec::new();
    for begin in 0..lines.len() {
        if is_used[begin] || lines[begin].is_empty() {
            continue;
        }
        is_used[begin] = true;
        let mut ring = lines[begin].to_vec();
        while ring.first() != ring.last() {
            let end = ring[ring.len() - 1];
            let Some(next) = open[&end].iter().copied().find(|idx| !is_used[*idx]) else { break };
            is_used[next] = true;
            if lines[next][0] == end {
                ring.extend(&lines[next][1..]);
            } else {
                ring.extend(lines[next].iter().rev().skip(1));
            }
        }
        if ring.len() > 3 && ring.first() == ring.last() {
            rings.push(ring);
        }
    }
    rings
}

/// Whether a ring holds a spot, by the even-odd rule.
fn holds(ring: &[Spot], [x, y]: Spot) -> bool {
    let crosses = |pair: &[Spot]| {
        let [[x1, y1], [x2, y2]] = [pair[0], pair[1]].map(|spot| spot.map(f64::from));
        let (x, y) = (f64::from(x), f64::from(y));
        (y1 > y) != (y2 > y) && x < (x2 - x1) * (y - y1) / (y2 - y1) + x1
    };
    ring.windows(2).filter(|pair| crosses(pair)).count() % 2 == 1
}

/// Where a place is on the flat map; none for what is no place on earth, or too close to a pole for it.
pub(super) fn spot(lon: f64, lat: f64) -> Option<Spot> {
    if !(-180.0..=180.0).contains(&lon) || !(-85.05..=85.05).contains(&lat) {
        return None;
    }
    let x = (lon + 180.0) / 360.0;
    let y = 0.5 - lat.to_radians().tan().asinh() / std::f64::consts::TAU;
    Some([x, y].map(whole))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float goes to the nearest that there is"
)]
fn whole(part: f64) -> u32 {
    (part * 4_294_967_296.0) as u32
}

/// The place of a spot in degrees: longitude, latitude.
pub(super) fn degrees([x, y]: Spot) -> [f64; 2] {
    let [x, y] = [x, y].map(|part| f64::from(part) / 4_294_967_296.0);
    let lat = ((0.5 - y) * std::f64::consts::TAU).sinh().atan().to_degrees();
    [x * 360.0 - 180.0, lat]
}

/// The kind of a name that is written inside an area.
pub(super) fn label(kind: &Kind) -> Option<Kind> {
    let layer = match kind.layer {
        Layer::Water => Layer::Water,
        Layer::Landuse => Layer::Pois,
        Layer::Buildings | Layer::Roads | Layer::Pois | Layer::Places => return None,
    };
    let zoom = if layer == Layer::Water { 9 } else { 12 };
    kind.is_area.then_some(Kind { layer, zoom, is_area: false, ..*kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_onto_the_flat_map_and_back() {
        for place in [[9.52, 47.14], [-180.0, 85.0], [179.9999, -85.0], [0.0, 0.0]] {
            let [lon, lat] = degrees(spot(place[0], place[1]).unwrap());
            assert!((lon - place[0]).abs() < 1e-6 && (lat - place[1]).abs() < 1e-6, "{lon} {lat}");
        }
        for (lon, lat) in [(f64::NAN, 0.0), (0.0, f64::NAN), (181.0, 0.0), (0.0, 86.0)] {
            assert_eq!(spot(lon, lat), None);
        }
    }

    #[test]
    fn ways_are_joined_to_rings_whichever_way_they_go() {
        let rings = joined(vec![&[1, 2, 3], &[5, 4, 3], &[5, 6, 1], &[7, 8, 9, 7], &[20, 21], &[]]);
        assert_eq!(rings, [vec![1, 2, 3, 4, 5, 6, 1], vec![7, 8, 9, 7]]);
    }

    #[test]
    fn a_ring_holds_what_is_inside() {
        let ring = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]];
        assert!(holds(&ring, [5, 5]) && !holds(&ring, [15, 5]) && !holds(&ring, [5, 15]));
    }
}
