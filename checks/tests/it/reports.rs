//! The reports of Shenzhen's taxis, which lie beside the project.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checks::Arrival;
use flate2::read::GzDecoder;
use matcher::World;
use matcher::event::Event;

/// One report.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) seq: usize,
    pub(crate) ts_ms: i64,
    pub(crate) taxi_id: String,
    pub(crate) place: [f64; 2],
    pub(crate) speed_kmh: f64,
    pub(crate) status: f64,
}

/// The folder of the taxis' data; `None`, said aloud, in a clone that has none beside it.
pub(crate) fn folder() -> Option<PathBuf> {
    let around = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folder = around.map(|folder| folder.join("shared/data/shenzhen-taxi")).find(|folder| folder.exists());
    if folder.is_none() {
        eprintln!("NOT TESTED: no shared/data/shenzhen-taxi beside the project or a folder around it");
    }
    folder
}

/// Lines of a packed file of the folder.
pub(crate) fn lines(folder: &Path, name: &str) -> impl Iterator<Item = String> {
    let file = std::fs::File::open(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("a line of text"))
}

/// All reports of a file.
pub(crate) fn reports(folder: &Path, name: &str) -> Vec<Report> {
    lines(folder, name).skip(1).map(|line| Report::parse(&line)).collect()
}

impl Report {
    fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split(',').collect();
        let number =
            |idx: usize| fields[idx].parse::<f64>().unwrap_or_else(|_| panic!("not a report: {line}"));
        Self {
            seq: fields[0].parse().expect("a number"),
            ts_ms: fields[1].parse().expect("a time"),
            taxi_id: fields[2].to_owned(),
            place: [number(3), number(4)],
            speed_kmh: number(5),
            status: number(6),
        }
    }

    /// The report as an event that arrives at its time.
    pub(crate) fn arrival(&self) -> Arrival {
        let position = World::Geodetic.position(&self.place).expect("a place on Earth");
        let event = Event::at(position)
            .with("taxi_id", self.taxi_id.as_str())
            .with("speed_kmh", self.speed_kmh)
            .with("status", self.status);
        Arrival { event: Arc::new(event), time_ms: Some(self.ts_ms), arrival_ms: self.ts_ms }
    }
}
