//! What was recorded, again: positions and events of any CSV or newline-delimited JSON file, at a speed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use flate2::read::MultiGzDecoder;
use matcher::area::Area;
use matcher::condition::Condition;
use matcher::event::{Event, Scalar, Symbol, Value};
use matcher::geo::{Position, Radius, World};
use matcher::subscription::Filter;

use super::{Reconnects, Scenario};
use crate::plan::{Act, Client, Occurrence, Plan, Step, Steps, Wish};

/// The recording that comes with the program. Where it is from and on what terms: the README beside it.
const TAXIS: &[u8] = include_bytes!("../../data/shenzhen-taxi/taxi_20min.csv.gz");

/// Its name as a file.
const TAXIS_NAME: &str = "shenzhen-taxi";

/// Rows that are read: some gigabytes of memory.
const ROWS_MAX: usize = 20_000_000;

/// What a file holds, and what is made of it.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// A CSV file with a header (`.csv`) or one JSON object a line (`.ndjson`, `.jsonl`), either as `.gz`, too, by its path from the
    /// scenario's folder; or `shenzhen-taxi`, which comes with the program.
    pub file: PathBuf,
    /// The column of the time.
    pub time: String,
    /// What it is: `unix_s`, `unix_ms`, `rfc3339`, or as `%Y-%m-%d %H:%M:%S`, which is taken for UTC.
    pub time_format: String,
    /// The column of who or what it is.
    pub object: String,
    /// The column of the longitude, or x.
    pub longitude: String,
    /// The column of the latitude, or y.
    pub latitude: String,
    /// Columns that become attributes: numbers where they read as such, `true`, `false`, else texts; an empty one is absent.
    pub attributes: Vec<String>,
    /// The attribute `type` that all events have; empty: none.
    pub kind: String,
    /// Whether a row moves its object's client.
    pub moves: bool,
    /// Whether a row is published as an event.
    pub publishes: bool,
    /// Whether the events are live, as the object of their key, for `events.ttl_s`.
    pub keyed: bool,
    /// How much faster than it was.
    pub speed: f64,
    /// How often the recording is there, each time a kilometre further east.
    pub copies: u32,
    /// Whether rows that cannot be read are passed over, and counted, rather than refused.
    pub skip_faulty: bool,
    /// Radius of the area around each client.
    pub radius_m: f64,
    /// Conditions, dealt to the clients in turn; an empty one holds always.
    pub conditions: Vec<String>,
    /// `geodetic` or `planar`.
    pub world: String,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            file: TAXIS_NAME.into(),
            time: "ts_ms".to_owned(),
            time_format: "unix_ms".to_owned(),
            object: "taxi_id".to_owned(),
            longitude: "lon".to_owned(),
            latitude: "lat".to_owned(),
            attributes: vec!["speed_kmh".to_owned(), "status".to_owned()],
            kind: "report".to_owned(),
            moves: true,
            publishes: true,
            keyed: false,
            speed: 1.0,
            copies: 1,
            skip_faulty: false,
            radius_m: 500.0,
            conditions: vec![String::new()],
            world: "geodetic".to_owned(),
        }
    }
}

/// A row.
#[derive(Clone, Debug)]
struct Row {
    /// Seconds, from wherever the file counts.
    time_s: f64,
    object: u32,
    position: Position,
    values: Box<[Option<Scalar>]>,
}

/// A recording with everybody who is in it.
#[derive(Clone)]
pub(super) struct Recording {
    replay: Replay,
    world: World,
    rows: Arc<[Row]>,
    /// What objects are called, in the order in which they appear.
    objects: Arc<[String]>,
    names: Vec<Symbol>,
    filters: Vec<Filter>,
    clients: u32,
    ttl_s: f64,
    duration: Duration,
    reconnects: Reconnects,
    seed: u64,
    /// Rows that could not be read.
    skipped: u64,
    /// Clients that were asked for, and whom nobody in the recording moves.
    left_out: u32,
}

impl Recording {
    pub(super) fn new(scenario: &Scenario, replay: &Replay) -> anyhow::Result<Self> {
        let world = match replay.world.as_str() {
            "geodetic" => World::Geodetic,
            "planar" => World::Planar,
            other => bail!("replay.world has to be geodetic or planar, not {other}"),
        };
        ensure!(
            replay.speed > 0.0 && replay.speed <= 1e6,
            "replay.speed has to be more than 0, up to 1,000,000"
        );
        ensure!((1..=1_000).contains(&replay.copies), "replay.copies has to be from 1 to 1,000");
        ensure!(!replay.conditions.is_empty(), "replay.conditions has to have one");
        ensure!(
            replay.kind.is_empty() || !replay.attributes.iter().any(|name| name == "type"),
            "replay.attributes has a `type`, and so would replay.kind: set that to \"\""
        );
        let radius = Radius::new(world, replay.radius_m).context("replay.radius_m")?;
        let filter = |text: &String| -> anyhow::Result<Filter> {
            let condition = if text.is_empty() {
                Condition::always()
            } else {
                Condition::parse(text).with_context(|| format!("replay.conditions: {text}"))?
            };
            Ok(Filter { area: Area::Following(radius), condition })
        };
        let filters = replay.conditions.iter().map(filter).collect::<anyhow::Result<_>>()?;
        let mut reading = Reading {
            replay,
            world,
            objects: Vec::new(),
            idxs: HashMap::new(),
            rows: Vec::new(),
            skipped: 0,
        };
        reading.read(&scenario.folder)?;
        let Reading { objects, mut rows, skipped, .. } = reading;
        ensure!(!rows.is_empty(), "{}: there are no rows", replay.file.display());
        rows.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
        let everybody = u32::try_from(objects.len() as u64 * u64::from(replay.copies))?;
        let clients =
            if replay.moves { everybody.min(scenario.clients.count) } else { scenario.clients.count };
        ensure!(
            replay.moves || clients == 0 || everybody >= clients,
            "clients.count is {clients}, and the recording has {everybody} objects for them to start at"
        );
        Ok(Self {
            replay: replay.clone(),
            world,
            rows: rows.into(),
            objects: objects.into(),
            names: replay.attributes.iter().map(Symbol::new).collect(),
            filters,
            clients,
            ttl_s: scenario.events.ttl_s,
            duration: scenario.duration(),
            reconnects: scenario.reconnects.clone(),
            seed: scenario.seed,
            skipped,
            left_out: scenario.clients.count - clients,
        })
    }

    fn put(&self, position: &Position, copy: u32) -> Option<Position> {
        let east = f64::from(copy) * if self.world == World::Planar { 1_000.0 } else { 0.01 };
        self.world.position(&[position.x() + east, position.y()]).ok()
    }

    fn occurrence(&self, row: &Row, position: Position, copy: u32) -> Occurrence {
        let mut event = Event::at(position);
        if !self.replay.kind.is_empty() {
            event = event.with("type", Value::Scalar(Scalar::Text(Symbol::new(self.replay.kind.as_str()))));
        }
        for (name, value) in self.names.iter().zip(&row.values) {
            if let Some(value) = value {
                event = event.with(name.as_str(), Value::Scalar(value.clone()));
            }
        }
        let key = self.replay.keyed.then(|| self.name(row.object, copy));
        Occurrence {
            event,
            truth: None,
            ttl_s: if self.replay.keyed { self.ttl_s } else { 0.0 },
            key,
            is_alarm: false,
        }
    }

    fn name(&self, object: u32, copy: u32) -> String {
        let object = &self.objects[object as usize];
        if copy == 0 { object.clone() } else { format!("{object}-{copy}") }
    }
}

impl Plan for Recording {
    fn world(&self) -> World {
        self.world
    }

    fn clients(&self) -> Vec<Client> {
        let mut homes: HashMap<u32, Position> = HashMap::new();
        for row in self.rows.iter() {
            homes.entry(row.object).or_insert(row.position);
        }
        let count = self.objects.len() as u64;
        let client = |index: u32| {
            let (object, copy) = (u64::from(index) % count, u64::from(index) / count);
            let (object, copy) = (u32::try_from(object).ok()?, u32::try_from(copy).ok()?);
            let nth = index as usize % self.filters.len();
            let wish = Wish {
                id: "near".to_owned(),
                filters: vec![self.filters[nth].clone()],
                is_durable: self.reconnects.durable,
            };
            let home = homes.get(&object).and_then(|home| self.put(home, copy));
            Some(Client { name: format!("client-{index}"), home, wishes: vec![wish] })
        };
        (0..self.clients).filter_map(client).collect()
    }

    fn steps(&self) -> Steps {
        let (this, first_s, duration) = (self.clone(), self.rows[0].time_s, self.duration);
        let objects = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        let rows = (0..self.rows.len()).flat_map(move |index| {
            let row = this.rows[index].clone();
            let at_s = ((row.time_s - first_s) / this.replay.speed).max(0.0);
            let at = Duration::try_from_secs_f64(at_s).unwrap_or(Duration::MAX);
            let this = this.clone();
            (0..this.replay.copies).flat_map(move |copy| {
                let Some(to) = this.put(&row.position, copy) else { return Vec::new() };
                let client = copy * objects + row.object;
                let mut steps = Vec::with_capacity(2);
                if this.replay.moves && client < this.clients {
                    steps.push(Step { at, act: Act::Move { client, to, truth: None } });
                }
                if this.replay.publishes {
                    let occurrence = Box::new(this.occurrence(&row, to, copy));
                    steps.push(Step { at, act: Act::Publish(occurrence) });
                }
                steps
            })
        });
        let breaks = super::breaks(&self.reconnects, self.clients, self.seed, self.duration);
        Box::new(super::merge::merge(vec![Box::new(rows.take_while(move |step| step.at < duration)), breaks]))
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.skipped > 0 {
            let file = self.replay.file.display();
            remarks.push(format!("{} rows of {file} could not be read and were passed over", self.skipped));
        }
        if self.left_out > 0 {
            remarks.push(format!(
                "{} clients, not {}: there are no more objects to move them (replay.copies makes more)",
                self.clients,
                self.clients + self.left_out
            ));
        }
        remarks
    }
}

/// A cell of more lines is what follows upon a quote that nobody has closed.
const CELL_LINES: usize = 10;

/// A file as it is read.
struct Reading<'a> {
    replay: &'a Replay,
    world: World,
    objects: Vec<String>,
    idxs: HashMap<String, u32>,
    rows: Vec<Row>,
    skipped: u64,
}

impl Reading<'_> {
    fn read(&mut self, folder: &Path) -> anyhow::Result<()> {
        let name = self.replay.file.display().to_string();
        if name == TAXIS_NAME {
            return self.csv(MultiGzDecoder::new(TAXIS), &name);
        }
        let path = folder.join(&self.replay.file);
        let file = File::open(&path).with_context(|| format!("replay.file: opening {}", path.display()))?;
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let source: Box<dyn Read> =
            if plain == name { Box::new(file) } else { Box::new(MultiGzDecoder::new(file)) };
        let ending = Path::new(plain).extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        match ending {
            "csv" => self.csv(source, &name),
            "ndjson" | "jsonl" => self.lines(source, &name),
            _ => bail!("replay.file: {name} is neither .csv nor .ndjson, nor one of them as .gz"),
        }
    }

    fn csv(&mut self, source: impl Read, name: &str) -> anyhow::Result<()> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source);
        let headers = reader.headers().with_context(|| format!("{name}: the header"))?.clone();
        let column = |wanted: &String| {
            let found = headers.iter().position(|header| header == wanted);
            let known = || headers.iter().collect::<Vec<_>>().join(", ");
            found.with_context(|| format!("{name}: there is no column {wanted}; there are {}", known()))
        };
        let Replay { time, object, longitude, latitude, attributes, .. } = self.replay;
        let fixed =
            [time, object, longitude, latitude].into_iter().map(column).collect::<Result<Vec<_>, _>>()?;
        let others = attributes.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        for (index, record) in reader.into_records().enumerate() {
            let line = record.as_ref().ok().and_then(csv::StringRecord::position).map(csv::Position::line);
            if let Ok(record) = &record {
                let is_whole = record.iter().all(|cell| cell.lines().count() <= CELL_LINES);
                let line = line.unwrap_or_default();
                ensure!(
                    is_whole,
                    "{name}, line {line}: a cell has more than {CELL_LINES} lines: a quote is not closed"
                );
            }
            let row = record.map_err(anyhow::Error::from).and_then(|record| {
                let cell = |column: &usize| record.get(*column).unwrap_or_default().trim();
                let values = others.iter().map(|column| scalar(cell(column))).collect();
                self.row([cell(&fixed[0]), cell(&fixed[1]), cell(&fixed[2]), cell(&fixed[3])], values)
            });
            // The header is line 1.
            self.take(row, name, line.unwrap_or(index as u64 + 2))?;
        }
        Ok(())
    }

    fn lines(&mut self, source: impl Read, name: &str) -> anyhow::Result<()> {
        let Replay { time, object, longitude, latitude, attributes, .. } = self.replay;
        for (index, line) in BufReader::new(source).lines().enumerate() {
            let line = match line {
                Ok(line) => line,
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    self.take(Err(error.into()), name, index as u64 + 1)?;
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("{name}, line {}", index + 1)),
            };
            if line.trim().is_empty() {
                continue;
            }
            let row = serde_json::from_str::<serde_json::Map<_, _>>(&line).map_err(anyhow::Error::from);
            let row = row.and_then(|members| {
                let text = |column: &String| match members.get(column) {
                    None | Some(serde_json::Value::Null) => String::new(),
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                let [time, object, longitude, latitude] = [time, object, longitude, latitude].map(text);
                let values = attributes.iter().map(|column| scalar(&text(column))).collect();
                self.row([&time, &object, &longitude, &latitude], values)
            });
            self.take(row, name, index as u64 + 1)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        [time, object, longitude, latitude]: [&str; 4],
        values: Box<[Option<Scalar>]>,
    ) -> anyhow::Result<Row> {
        let Replay { time_format, .. } = self.replay;
        let unix = || time.parse::<f64>().ok().filter(|time| time.is_finite());
        let time_s = match time_format.as_str() {
            "unix_s" => unix(),
            "unix_ms" => unix().map(|time| time / 1e3),
            "rfc3339" => time.parse::<jiff::Timestamp>().ok().map(seconds),
            format => jiff::civil::DateTime::strptime(format, time)
                .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC))
                .ok()
                .map(|time| seconds(time.timestamp())),
        };
        let time_s = time_s.with_context(|| format!("{time:?} is no time as {time_format}"))?;
        ensure!(!object.is_empty(), "{} is empty", self.replay.object);
        let number = |text: &str, what: &str| {
            text.parse::<f64>().map_err(|_| anyhow::anyhow!("{what} {text:?} is no number"))
        };
        let position = [number(longitude, &self.replay.longitude)?, number(latitude, &self.replay.latitude)?];
        let position = self.world.position(&position)?;
        let next = u32::try_from(self.objects.len())?;
        let object = match self.idxs.get(object) {
            Some(index) => *index,
            None => {
                self.objects.push(object.to_owned());
                self.idxs.insert(object.to_owned(), next);
                next
            }
        };
        Ok(Row { time_s, object, position, values })
    }

    fn take(&mut self, row: anyhow::Result<Row>, name: &str, line: u64) -> anyhow::Result<()> {
        ensure!(self.rows.len() < ROWS_MAX, "{name}: there are more than {ROWS_MAX} rows");
        match row {
            Ok(row) => self.rows.push(row),
            Err(_) if self.replay.skip_faulty => self.skipped += 1,
            Err(error) => {
                bail!("{name}, line {line}: {error:#} (replay.skip_faulty = true passes over such rows)")
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time in nanoseconds as seconds, to the microsecond")]
fn seconds(time: jiff::Timestamp) -> f64 {
    time.as_nanosecond() as f64 / 1e9
}

fn scalar(text: &str) -> Option<Scalar> {
    match text {
        "" => None,
        "true" => Some(Scalar::Bool(true)),
        "false" => Some(Scalar::Bool(false)),
        _ => Some(match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Scalar::Number(number),
            _ => Scalar::Text(Symbol::new(text)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(file: &str, text: &str, sets: &[&str]) -> anyhow::Result<Recording> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let path = folder.path().join("scenario.toml");
        std::fs::write(&path, format!("[replay]\nfile = \"{file}\"")).unwrap();
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(path.to_str().unwrap(), &sets)?;
        Recording::new(&scenario, scenario.replay.as_ref().unwrap())
    }

    const COLUMNS: [&str; 6] = [
        "replay.time=t",
        "replay.time_format=rfc3339",
        "replay.object=who",
        "replay.longitude=x",
        "replay.latitude=y",
        "replay.attributes=[\"v\"]",
    ];

    #[test]
    fn columns_are_mapped_and_rows_come_in_the_order_of_time() {
        let csv = "who,t,x,y,v\nb,2026-03-01T07:30:02Z,9.2,45.5,fast\na,2026-03-01T07:30:00Z,9.1,45.4,3\n";
        let ndjson = "{\"who\":\"b\",\"t\":\"2026-03-01T07:30:02Z\",\"x\":9.2,\"y\":45.5,\"v\":\"fast\"}\n\n\
                      {\"who\":\"a\",\"t\":\"2026-03-01T07:30:00Z\",\"x\":9.1,\"y\":45.4,\"v\":3}\n";
        for (file, text) in [("taxis.csv", csv), ("taxis.ndjson", ndjson)] {
            let recording = recording(file, text, &COLUMNS).unwrap();
            let steps: Vec<Step> = recording.steps().collect();
            let times: Vec<f64> = steps.iter().map(|step| step.at.as_secs_f64()).collect();
            assert_eq!(times, [0.0, 0.0, 2.0, 2.0], "{file}");
            let Act::Publish(occurrence) = &steps[1].act else { panic!("{file}: a move comes first") };
            assert_eq!(occurrence.event.value(&"v".into()), Some(&Value::Scalar(Scalar::Number(3.0))));
            assert_eq!(recording.clients().len(), 2, "{file}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_told_by_its_line() {
        let text = "who,t,x,y,v\na,2026-03-01T07:30:00Z,9.1,45.4,3\nb,2026-03-01T07:30:01Z,9.1,95.4,3\n";
        let error = recording("taxis.csv", text, &COLUMNS).err().unwrap();
        assert!(format!("{error:#}").contains("taxis.csv, line 3: latitude 95.4"), "{error:#}");
        let skipping: Vec<&str> = COLUMNS.into_iter().chain(["replay.skip_faulty=true"]).collect();
        let recording = recording("taxis.csv", text, &skipping).unwrap();
        assert_eq!((recording.rows.len(), recording.skipped), (1, 1));
    }

    #[test]
    fn a_quote_that_is_not_closed_swallows_nothing() {
        let rows: String =
            (0..20).map(|second| format!("b,2026-03-01T07:30:{second:02}Z,9.1,45.4,3\n")).collect();
        let text = format!("who,t,x,y,v\na,2026-03-01T07:29:00Z,9.1,45.4,\"3\n{rows}");
        let skipping: Vec<&str> = COLUMNS.into_iter().chain(["replay.skip_faulty=true"]).collect();
        let error = recording("taxis.csv", &text, &skipping).err().unwrap();
        assert!(format!("{error:#}").contains("taxis.csv, line 2: a cell has more than"), "{error:#}");
    }

    #[test]
    fn a_column_that_is_not_there_is_told_with_those_that_are() {
        let error = recording("taxis.csv", "who,when\n", &COLUMNS).err().unwrap();
        assert!(format!("{error:#}").contains("there is no column t; there are who, when"), "{error:#}");
    }

    #[test]
    fn the_taxis_that_come_along_are_read() {
        let scenario = Scenario::load("replay", &[]).unwrap();
        let recording = Recording::new(&scenario, scenario.replay.as_ref().unwrap()).unwrap();
        assert_eq!((recording.rows.len(), recording.objects.len()), (20_884, 750));
    }
}
