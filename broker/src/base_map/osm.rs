//! Reads an extract of OpenStreetMap (`.osm.pbf`): streets, water, parks, buildings and places.
//!
//! The file is read three times, for in it nodes come before the ways that use them, and ways before the areas that they enclose: areas say which
//! ways are wanted, and ways which nodes. So no more is in memory than is drawn. Blocks are unpacked on all cores, and not again where
//! they have nothing that is looked for: most have elements of one sort.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use osmpbf::{BlobDecode, BlobReader, Element, PrimitiveBlock, RelMemberType, Relation};
use rayon::iter::{ParallelBridge as _, ParallelIterator as _};

use super::kinds::{self, Kind, Layer, Tags};

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The most lines, areas and places.
const SHAPES_MAX: usize = 3_000_000;
/// The most nodes that they have together.
const NODES_MAX: usize = 24_000_000;
/// The most nodes of ways, each counted for every way that it is in: a few bytes of a file may name one millions of times.
const REFS_MAX: usize = 32_000_000;

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

/// The sorts of elements that a block of the file has.
#[derive(Clone, Copy, Default)]
struct Sorts {
    has_nodes: bool,
    has_ways: bool,
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
    // Its threads end with it: nobody needs them later.
    let pool = rayon::ThreadPoolBuilder::new().build().context("there are no threads")?;
    pool.install(|| shapes(path))
}

fn shapes(path: &Path) -> anyhow::Result<Vec<Shape>> {
    let (areas, sorts) = areas(path)?;
    let ways = ways(path, &sorts, &areas, REFS_MAX)?;
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
    let (spots, mut shapes) = places(path, &sorts, &nodes)?;
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

/// Reads the blocks of a file that are wanted, by their numbers, several at a time. What `read` makes of a block goes to `take`: one at
/// a time, and in no order.
fn each_block<T>(
    path: &Path,
    is_wanted: impl Fn(usize) -> bool + Sync,
    read: impl Fn(&PrimitiveBlock) -> anyhow::Result<T> + Sync,
    take: impl FnMut(usize, T) + Send,
) -> anyhow::Result<()> {
    const NOT_PBF: &str = "is no .osm.pbf file, or a part of one";
    let take = Mutex::new(take);
    let blobs = BlobReader::from_path(path).context("cannot be read")?.enumerate().par_bridge();
    blobs.try_for_each(|(number, blob)| {
        let blob = blob.context(NOT_PBF)?;
        if is_wanted(number)
            && let BlobDecode::OsmData(block) = blob.decode().context(NOT_PBF)?
        {
            let read = read(&block)?;
            (take.lock().unwrap_or_else(PoisonError::into_inner))(number, read);
        }
        Ok(())
    })
}

/// Takes so many off what is left of `most`.
fn count(left: &AtomicUsize, more: usize, most: usize, what: &str) -> anyhow::Result<()> {
    let rest = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(more));
    anyhow::ensure!(rest.is_ok(), "has more than {most} {what}: cut it, or make a PMTiles file of it");
    Ok(())
}

/// Puts what came of blocks into the order of the file.
fn in_order<T>(mut found: Vec<(usize, Vec<T>)>) -> Vec<T> {
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().flat_map(|(_, found)| found).collect()
}

/// The areas of several ways, and what each block has.
fn areas(path: &Path) -> anyhow::Result<(Vec<Area>, Vec<Sorts>)> {
    let (mut found, mut sorts) = (Vec::new(), Vec::new());
    let left = AtomicUsize::new(SHAPES_MAX);
    let read = |block: &PrimitiveBlock| {
        let (mut areas, mut sorts) = (Vec::<Area>::new(), Sorts::default());
        block.for_each_element(|element| match element {
            Element::Relation(relation) => areas.extend(area(&relation)),
            Element::Way(_) => sorts.has_ways = true,
            Element::Node(_) | Element::DenseNode(_) => sorts.has_nodes = true,
        });
        let members = areas.iter().map(|area| 1 + area.outer.len() + area.inner.len()).sum();
        count(&left, members, SHAPES_MAX, "areas of several lines, with these")?;
        Ok((areas, sorts))
    };
    each_block(
        path,
        |_| true,
        read,
        |number, (areas, told)| {
            if sorts.len() <= number {
                sorts.resize(number + 1, Sorts::default());
            }
            sorts[number] = told;
            found.push((number, areas));
        },
    )?;
    Ok((in_order(found), sorts))
}

fn area(relation: &Relation<'_>) -> Option<Area> {
    let tags = |key: &str| relation.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
    if tags("type") != Some("multipolygon") {
        return None;
    }
    let kind = kinds::of_way(&tags, true).filter(|kind| kind.is_area)?;
    let mut area = Area { kind, name: name(&tags), outer: Vec::new(), inner: Vec::new() };
    for member in relation.members().filter(|member| member.member_type == RelMemberType::Way) {
        match member.role() {
            Ok("inner") => area.inner.push(member.member_id),
            Ok("outer" | "") => area.outer.push(member.member_id),
            _ => {}
        }
    }
    Some(area)
}

fn ways(path: &Path, sorts: &[Sorts], areas: &[Area], refs_max: usize) -> anyhow::Result<HashMap<i64, Way>> {
    let left = AtomicUsize::new(refs_max);
    let members: HashSet<i64> =
        areas.iter().flat_map(|area| area.outer.iter().chain(&area.inner)).copied().collect();
    let read = |block: &PrimitiveBlock| {
        let mut found = Vec::new();
        block.elements().try_for_each(|element| {
            let Element::Way(way) = element else { return Ok::<_, anyhow::Error>(()) };
            let tags = |key: &str| way.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
            let is_closed = way.raw_refs().len() > 3 && way.refs().next() == way.refs().last();
            let kind = kinds::of_way(&tags, is_closed);
            if kind.is_some() || members.contains(&way.id()) {
                count(&left, way.raw_refs().len(), refs_max, "nodes of lines")?;
                found.push((way.id(), Way { kind, name: name(&tags), refs: way.refs().collect() }));
            }
            Ok(())
        })?;
        Ok(found)
    };
    let mut ways = HashMap::new();
    each_block(
        path,
        |number| sorts[number].has_ways,
        read,
        |_, found| {
            // Beyond that the file is refused.
            let room = (SHAPES_MAX + 1).saturating_sub(ways.len());
            ways.extend(found.into_iter().take(room));
        },
    )?;
    Ok(ways)
}

/// Where the nodes are, and the places among all nodes.
fn places(path: &Path, sorts: &[Sorts], nodes: &[i64]) -> anyhow::Result<(Vec<Option<Spot>>, Vec<Shape>)> {
    let read = |block: &PrimitiveBlock| {
        let (mut found, mut places) = (Vec::new(), Vec::new());
        let mut take = |id: i64, spot: Option<Spot>, tags: Tags<'_>| {
            let Some(spot) = spot else { return };
            found.extend(nodes.binary_search(&id).ok().map(|idx| (idx, spot)));
            let (kind, name) = (kinds::of_node(tags), name(tags));
            if let (Some(kind), Some(_)) = (kind, &name) {
                places.push(Shape { kind, name, parts: Box::new([Box::new([spot])]) });
            }
        };
        block.for_each_element(|element| match element {
            Element::DenseNode(node) => {
                let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
                take(node.id(), spot(node.lon(), node.lat()), &tags);
            }
            Element::Node(node) => {
                let tags = |key: &str| node.tags().find(|tag| tag.0 == key).map(|tag| tag.1);
                take(node.id(), spot(node.lon(), node.lat()), &tags);
            }
            Element::Way(_) | Element::Relation(_) => {}
        });
        Ok((found, places))
    };
    let (mut spots, mut shapes, mut count) = (vec![None; nodes.len()], Vec::new(), 0);
    each_block(
        path,
        |number| sorts[number].has_nodes,
        read,
        |number, (found, places)| {
            found.into_iter().for_each(|(idx, spot)| spots[idx] = Some(spot));
            if count < SHAPES_MAX {
                count += places.len();
                shapes.push((number, places));
            }
        },
    )?;
    Ok((spots, in_order(shapes)))
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
    // Of those that meet somewhere the first is on top. One that is used is taken off, and not met again.
    for (idx, line) in lines.iter().enumerate().rev() {
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
            let mut meeting = std::iter::from_fn(|| open.get_mut(&end).and_then(Vec::pop));
            let Some(next) = meeting.find(|idx| !is_used[*idx]) else { break };
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
    fn many_ways_between_the_same_nodes_are_joined_in_one_go() {
        let lines = vec![&[1_i64, 2][..]; 200_000];
        assert!(joined(lines).is_empty());
    }

    #[test]
    fn the_nodes_of_ways_are_counted_while_they_are_read() {
        let extract = concat!(env!("CARGO_MANIFEST_DIR"), "/../loadgen/data/liechtenstein/highways.osm.pbf");
        let (_, sorts) = areas(Path::new(extract)).unwrap();
        let all = ways(Path::new(extract), &sorts, &[], REFS_MAX).unwrap();
        let count: usize = all.values().map(|way| way.refs.len()).sum();
        assert_eq!(ways(Path::new(extract), &sorts, &[], count).unwrap().len(), all.len());
        let Err(refused) = ways(Path::new(extract), &sorts, &[], count - 1) else {
            panic!("one fits too many")
        };
        assert!(
            refused.to_string().contains(&format!("more than {} nodes of lines", count - 1)),
            "{refused}"
        );
    }

    #[test]
    fn a_ring_holds_what_is_inside() {
        let ring = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]];
        assert!(holds(&ring, [5, 5]) && !holds(&ring, [15, 5]) && !holds(&ring, [5, 15]));
    }
}
