//! The base map of the pages, drawn below everything that moves: a GeoJSON file of the settings, the roads of the demo, tiles in one file
//! (PMTiles), or an extract of OpenStreetMap, of which tiles are made when they are asked for.

mod archive;
mod city;
mod geojson;
mod kinds;
mod mvt;
mod osm;
mod tiles;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use axum::body::Bytes;
use axum::http::HeaderValue;
use flate2::Compression;
use flate2::read::GzEncoder;
use matcher::geo::World;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use archive::Archive;
pub(crate) use city::City;

use crate::config::{Config, DEMO_ROADS};
use crate::demo;
use crate::ingest::file;

/// A base map as it is sent.
#[derive(Clone, Debug)]
pub struct BaseMap {
    /// The map, or what a page has to know to ask for its tiles.
    pub(crate) document: Document,
    /// The file, where the map is one of tiles.
    pub(crate) archive: Option<Archive>,
    /// Streets and places, where the map is an extract.
    pub(crate) city: Option<Arc<City>>,
}

/// A text that is sent as it is.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) kind: HeaderValue,
    pub(crate) plain: Bytes,
    /// The text compressed with gzip: here, and not once for each request.
    pub(crate) gzip: Bytes,
    /// Weak entity tag that tells the text from others.
    pub(crate) etag: HeaderValue,
}

impl Document {
    fn new(kind: &'static str, text: String) -> anyhow::Result<Self> {
        let etag = HeaderValue::try_from(format!("W/\"{:016x}\"", xxh3_64(text.as_bytes())))?;
        let gzip = gzip(text.as_bytes())?.into();
        Ok(Self { kind: HeaderValue::from_static(kind), plain: text.into(), gzip, etag })
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = Vec::new();
    io::copy(&mut GzEncoder::new(bytes, Compression::default()), &mut gzip)?;
    Ok(gzip)
}

impl BaseMap {
    /// The one that the settings name; none where they name none. Blocks.
    ///
    /// # Errors
    /// A file that cannot be read, is too large, or has faults, of which the first few are listed; tiles or an extract where the world is not the earth.
    pub fn read(config: &Config) -> anyhow::Result<Option<Self>> {
        let path = &config.console.base_map;
        if path.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let map = Self::open(World::from(config.server.world), path)
            .with_context(|| format!("the base map in {path} (console.base_map)"))?;
        tracing::info!(
            bytes = map.document.plain.len(),
            compressed_bytes = map.document.gzip.len(),
            ms = started.elapsed().as_millis(),
            "the console has the base map {path}"
        );
        Ok(Some(map))
    }

    fn open(world: World, path: &str) -> anyhow::Result<Self> {
        let name = path.to_lowercase();
        let (is_archive, is_extract) = (name.ends_with(".pmtiles"), name.ends_with(".pbf"));
        anyhow::ensure!(
            world == World::Geodetic || !(is_archive || is_extract),
            "is of the earth, and server.world is not geodetic"
        );
        if is_archive {
            let archive = Archive::open(Path::new(path))?;
            let document = Document::new("application/json", archive.document())?;
            return Ok(Self { document, archive: Some(archive), city: None });
        }
        if is_extract {
            let city = City::read(Path::new(path))?;
            let document = Document::new("application/json", city.document())?;
            return Ok(Self { document, archive: None, city: Some(Arc::new(city)) });
        }
        let text = if path == DEMO_ROADS {
            demo::roads::DOCUMENT.to_owned()
        } else {
            checked(world, Path::new(path))?
        };
        Ok(Self { document: Document::new("application/geo+json", text)?, archive: None, city: None })
    }
}

fn checked(world: World, path: &Path) -> anyhow::Result<String> {
    let text = file::read(path)?;
    geojson::check(world, &text).map_err(|faults| anyhow::anyhow!(file::listed(&faults)))?;
    Ok(text)
}
