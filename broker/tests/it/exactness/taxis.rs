//! Real GPS reports of taxis in Shenzhen, as events.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::geometry::Place;
use crate::harness::feature;

/// One report.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Its place in the stream.
    pub(crate) seq: usize,
    /// Who reports.
    pub(crate) taxi_id: u32,
    /// From where.
    pub(crate) place: Place,
    /// How fast.
    pub(crate) speed_kmh: u32,
    /// 0 out of service, 1 and 2 in service.
    pub(crate) status: u32,
}

/// The first reports of the hour: from the data beside the project where there is one, else from the copy inside.
pub(crate) fn reports(count: usize) -> Vec<Report> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [root.join("../shared/data/shenzhen-taxi"), root.join("loadgen/data/shenzhen-taxi")];
    let file = folders.iter().find_map(|folder| {
        let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut names = names.filter(|path| path.to_string_lossy().ends_with(".csv.gz")).collect::<Vec<_>>();
        // The file of whole reports has the shortest name that starts with `taxi_h`; other files are excerpts.
        names.sort_by_key(|path| (!path.to_string_lossy().contains("taxi_h"), path.clone()));
        names.into_iter().next()
    });
    let file = file.unwrap_or_else(|| panic!("no taxi reports in {folders:?}"));
    let reader = GzDecoder::new(std::fs::File::open(&file).expect("the file opens"));
    let lines = BufReader::new(reader).lines().map(|line| line.expect("a line of text"));
    let reports = lines.skip(1).take(count).map(|line| parse(&line)).collect::<Vec<_>>();
    assert_eq!(reports.len(), count, "{} is too short", file.display());
    reports
}

fn parse(line: &str) -> Report {
    let fields = line.split(',').collect::<Vec<_>>();
    let [seq, _ts_ms, taxi_id, lon, lat, speed_kmh, status] = fields[..] else {
        panic!("not a report: {line}");
    };
    let whole = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("not a report: {line}"));
    let degrees = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("not a report: {line}"));
    Report {
        seq: whole(seq) as usize,
        taxi_id: whole(taxi_id),
        place: [degrees(lon), degrees(lat)],
        speed_kmh: whole(speed_kmh),
        status: whole(status),
    }
}

impl Report {
    /// The id of its event.
    pub(crate) fn id(&self) -> String {
        format!("r{}", self.seq)
    }

    /// Its properties. What the report does not hold is made from its number, so that every kind of value, and its
    /// absence, occurs.
    pub(crate) fn properties(&self) -> Value {
        const DISTRICTS: [&str; 5] = ["Nanshan", "NANSHAN", "Futian", "futian", "Luohu"];
        const ROADS: [&str; 4] = ["G4", "S33", "Binhe", "Shennan"];
        const TAGS: [&[&str]; 5] =
            [&["airport"], &["rank", "hotel"], &[], &["airport", "rank"], &["station"]];
        let seq = self.seq;
        let mut properties = json!({
            "taxi_id": self.taxi_id,
            "status": self.status,
            "plate": format!("B-{}", self.taxi_id),
            "district": DISTRICTS[seq % 5],
            "road": {"lanes": seq % 6},
            "free": self.status != 1,
            "readings": [self.speed_kmh, seq % 100],
        });
        if !seq.is_multiple_of(11) {
            properties["speed_kmh"] = json!(self.speed_kmh);
        }
        if !seq.is_multiple_of(3) {
            properties["road"]["name"] = json!(ROADS[seq % 4]);
        }
        if !seq.is_multiple_of(4) {
            properties["tags"] = json!(TAGS[seq % 5]);
        }
        match seq % 7 {
            0 => properties["note"] = Value::Null,
            1 => properties["note"] = json!("it's late"),
            2 => properties["note"] = json!("new tyres \u{1f697}"),
            _ => {}
        }
        let (day, hour) = (1 + seq % 28, seq % 24);
        properties["since"] = match seq % 6 {
            0 => json!(format!("2026-03-{day:02}")),
            1 => json!(format!("2026-03-{day:02}T{hour:02}:30:00Z")),
            2 => json!(format!("2026-03-{day:02}t{hour:02}:30:00.250+05:30")),
            3 => json!("yesterday"),
            4 => json!(20_260_301),
            _ => Value::Null,
        };
        properties["mixed"] = match seq % 5 {
            0 => json!(3),
            1 => json!("3"),
            2 => json!(true),
            3 => json!(4.5),
            _ => Value::Null,
        };
        properties
    }

    /// Its event.
    pub(crate) fn event(&self) -> Value {
        let mut event = feature(&self.id(), self.place, self.properties());
        if let Some(reach_m) = self.reach_m() {
            event["reach_m"] = json!(reach_m);
        }
        event
    }

    /// The event's own area, for some.
    pub(crate) fn reach_m(&self) -> Option<f64> {
        match self.seq % 9 {
            4 => Some(1_500.0),
            7 => Some(12_000.0),
            _ => None,
        }
    }
}
