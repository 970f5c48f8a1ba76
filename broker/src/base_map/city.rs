//! An extract of OpenStreetMap in memory, and its description for the pages.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderValue;
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::Xxh3;

use super::kinds::{Kind, Layer};
use super::osm::{self, Shape, Spot};
use super::{Document, tiles};

/// Zooms of the tiles; closer views are drawn from the last.
const ZOOMS: [u8; 2] = [5, 15];
/// The most names that are given to pages for their search.
const NAMES_MAX: usize = 100_000;
/// Tiles that are made at one time: the other cores have more important things to do.
const TILES_AT_ONCE: usize = 2;

/// Streets, water, parks, buildings and places.
#[derive(Debug)]
pub(crate) struct City {
    pub(super) shapes: Vec<Shape>,
    /// Rectangles around them, with their places in `shapes`.
    index: RTree<GeomWithData<Rectangle<[i64; 2]>, u32>>,
    /// Entity tag of all tiles.
    pub(crate) etag: HeaderValue,
    /// Names, for the search of the pages.
    pub(crate) names: Document,
    bounds: [f64; 4],
    /// Bounds how many tiles are made at one time; the rest wait.
    making: Semaphore,
}

impl City {
    /// Reads an extract. Blocks.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shapes = with_labels(osm::read(path)?);
        anyhow::ensure!(!shapes.is_empty(), "has nothing to draw: no streets, no water, no places");
        tracing::info!(shapes = shapes.len(), "read an extract of OpenStreetMap");
        Self::new(shapes)
    }

    fn new(shapes: Vec<Shape>) -> anyhow::Result<Self> {
        let mut hash = Xxh3::new();
        let mut all = [[u32::MAX; 2], [0; 2]];
        let mut boxes = Vec::with_capacity(shapes.len());
        for (idx, shape) in shapes.iter().enumerate() {
            let [low, high] = around(shape.parts.iter().flat_map(|part| part.iter()));
            for spot in [low, high] {
                hash.update(&spot.map(u32::to_le_bytes).concat());
            }
            all = [
                [0, 1].map(|axis| all[0][axis].min(low[axis])),
                [0, 1].map(|axis| all[1][axis].max(high[axis])),
            ];
            let corners = [low, high].map(|spot| spot.map(i64::from));
            boxes.push(GeomWithData::new(
                Rectangle::from_corners(corners[0], corners[1]),
                u32::try_from(idx)?,
            ));
        }
        let [west, north] = osm::degrees(all[0]);
        let [east, south] = osm::degrees(all[1]);
        let etag = HeaderValue::try_from(format!("W/\"{:016x}\"", hash.digest()))?;
        let names = Document::new("application/json", names(&shapes))?;
        let index = RTree::bulk_load(boxes);
        Ok(Self {
            shapes,
            index,
            etag,
            names,
            bounds: [west, south, east, north],
            making: Semaphore::new(TILES_AT_ONCE),
        })
    }

    /// What a page has to know to ask for tiles: TileJSON 3.0, with addresses from the broker's own.
    pub(super) fn document(&self) -> String {
        let layers: Vec<Value> =
            Layer::ALL.iter().map(|layer| json!({"id": layer.name(), "fields": {}})).collect();
        // Where there is a coast, what is sea is known to the pages alone.
        let has_coast = self.shapes.iter().any(|shape| shape.kind.kind == "coastline");
        let document = json!({
            "tilejson": "3.0.0",
            "tiles": ["base-map/{z}/{x}/{y}"],
            "names": "base-map/names.json",
            "minzoom": ZOOMS[0],
            "maxzoom": ZOOMS[1],
            "bounds": self.bounds,
            "inland": !has_coast,
            "attribution": "<a href=\"https://www.openstreetmap.org/copyright\">© OpenStreetMap contributors</a>",
            "vector_layers": layers,
        });
        format!("{document}\n")
    }

    /// A tile, packed and compressed with gzip where that is wanted; none where there is no such tile.
    pub(crate) async fn tile(self: Arc<Self>, at: [u32; 3], gzip: bool) -> Option<Vec<u8>> {
        let [zoom, x, y] = at;
        let zoom = u8::try_from(zoom).ok().filter(|zoom| (ZOOMS[0]..=ZOOMS[1]).contains(zoom))?;
        if x >> zoom != 0 || y >> zoom != 0 {
            return None;
        }
        let _permit = self.making.acquire().await.ok()?;
        let city = Arc::clone(&self);
        let made = tokio::task::spawn_blocking(move || {
            let tile = tiles::make(&city, zoom, [x, y]);
            if gzip { super::gzip(&tile).ok() } else { Some(tile) }
        });
        made.await.ok().flatten()
    }

    /// The shapes about a rectangle, in the order of the file.
    pub(super) fn about(&self, low: [i64; 2], high: [i64; 2]) -> Vec<&Shape> {
        let found = self.index.locate_in_envelope_intersecting(AABB::from_corners(low, high));
        let mut idxs: Vec<u32> = found.map(|found| found.data).collect();
        idxs.sort_unstable();
        idxs.into_iter().map(|idx| &self.shapes[idx as usize]).collect()
    }

    /// The last zoom that has tiles of its own.
    pub(super) fn is_last(zoom: u8) -> bool {
        zoom == ZOOMS[1]
    }
}

/// The rectangle around spots.
fn around<'a>(spots: impl IntoIterator<Item = &'a Spot>) -> [Spot; 2] {
    spots.into_iter().fold([[u32::MAX; 2], [0; 2]], |[low, high], [x, y]| {
        [[low[0].min(*x), low[1].min(*y)], [high[0].max(*x), high[1].max(*y)]]
    })
}

/// Adds a point for each name that is written inside an area.
fn with_labels(mut shapes: Vec<Shape>) -> Vec<Shape> {
    let label = |shape: &Shape| {
        let (name, kind) = (shape.name.clone()?, osm::label(&shape.kind)?);
        let [low, high] = around(shape.parts.first()?.iter());
        let middle = [0, 1].map(|axis| low[axis].midpoint(high[axis]));
        Some(Shape { kind, name: Some(name), parts: Box::new([Box::new([middle])]) })
    };
    let labels: Vec<_> = shapes.iter().filter_map(label).collect();
    shapes.extend(labels);
    shapes
}

/// The names of all that has one, as `[name, kind, lon, lat]`: places first. Pieces of one street within some two kilometres are one.
fn names(shapes: &[Shape]) -> String {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    let mut named: Vec<&Shape> =
        shapes.iter().filter(|shape| shape.name.is_some() && !shape.kind.is_area).collect();
    named
        .sort_by_key(|shape| (shape.kind.layer != Layer::Places, u8::MAX - shape.kind.rank, shape.kind.zoom));
    for shape in named {
        let (Some(name), Some(line)) = (&shape.name, shape.parts.first()) else { continue };
        let Some(middle) = line.get(line.len() / 2) else { continue };
        if rows.len() < NAMES_MAX
            && seen.insert((name, middle.map(|part| part >> 17), shape.kind.layer.name()))
        {
            let [lon, lat] = osm::degrees(*middle).map(|degrees| (degrees * 1e5).round() / 1e5);
            rows.push(json!([name, word(&shape.kind), lon, lat]));
        }
    }
    format!("{}\n", json!({"names": rows}))
}

/// What something is, in a word for people.
fn word(kind: &Kind) -> &'static str {
    match kind.layer {
        Layer::Roads if kind.kind == "rail" => "railway",
        Layer::Roads => "street",
        Layer::Places => kind.detail,
        Layer::Water => "water",
        Layer::Landuse | Layer::Buildings | Layer::Pois => kind.kind,
    }
}
