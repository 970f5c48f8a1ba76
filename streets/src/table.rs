//! Streets as two tables, of nodes and of edges.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use matcher::geo::World;

use crate::StreetsError;
use crate::draft::{Draft, DraftEdge, DraftNode, Lane};
use crate::network::{Census, Class};
use crate::osm::{Names, default_ms, posted_ms};
use crate::outside;

/// The longest edge that is believed, in millimetres.
const LENGTH_MAX_MM: f64 = 1e9;

/// The streets of a folder.
pub(crate) fn read(folder: &Path) -> Result<Draft, StreetsError> {
    let mut census = Census::default();
    let mut numbers = HashMap::new();
    let mut nodes = Vec::new();
    let mut table = Table::open(folder, "nodes", ["node", "lat", "lon"])?;
    while let Some(row) = table.next()? {
        let node = (|| {
            let id = row.number::<i64>("node")?;
            let at = [row.number::<f64>("lon")?, row.number::<f64>("lat")?];
            World::Geodetic.position(&at).map_err(|problem| problem.to_string())?;
            if numbers.contains_key(&id) {
                return Err(format!("node {id} came before"));
            }
            numbers.insert(id, nodes.len());
            Ok(DraftNode { id, at, has_signals: false })
        })();
        match node {
            Ok(node) => nodes.push(node),
            Err(problem) => census.skip(|| row.place(&problem)),
        }
    }
    let mut names = Names::default();
    let mut edges = Vec::new();
    let mut table = Table::open(folder, "edges", ["from", "to", "length_mm", "highway"])?;
    while let Some(row) = table.next()? {
        match edge(&row, &numbers, &nodes, &mut names) {
            Ok(edge) => edges.extend(edge),
            Err(problem) => census.skip(|| row.place(&problem)),
        }
    }
    Ok(Draft { world: World::Geodetic, nodes, edges, names: names.texts, census })
}

/// The edge of a row; none where no cars drive.
fn edge(
    row: &Row<'_>,
    numbers: &HashMap<i64, usize>,
    nodes: &[DraftNode],
    names: &mut Names,
) -> Result<Option<DraftEdge>, String> {
    let Some(class) = Class::of(row.text("highway")) else { return Ok(None) };
    let node = |column| {
        let id = row.number::<i64>(column)?;
        numbers.get(&id).copied().ok_or_else(|| format!("{column}: there is no node {id}"))
    };
    let (from, to) = (node("from")?, node("to")?);
    let length_mm = row.number::<f64>("length_mm")?;
    if !(length_mm > 0.0 && length_mm <= LENGTH_MAX_MM) {
        return Err(format!("length_mm {length_mm} is not within 0 to {LENGTH_MAX_MM}"));
    }
    let mut shape = match row.text("shape") {
        "" => vec![nodes[from].at, nodes[to].at],
        text => text.split(' ').map(point).collect::<Result<_, _>>()?,
    };
    if shape.len() < 2 {
        return Err("shape: fewer than two points".to_owned());
    }
    // Tables may have fewer digits in shapes; arcs begin and end where their nodes are.
    let last = shape.len() - 1;
    (shape[0], shape[last]) = (nodes[from].at, nodes[to].at);
    let is_oneway = match row.text("oneway") {
        "1" => true,
        "0" | "" => false,
        other => return Err(format!("oneway: {other:?} is neither 0 nor 1")),
    };
    let limit_ms = match row.text("maxspeed") {
        "" => default_ms(class),
        text => posted_ms(text).unwrap_or(default_ms(class)),
    };
    let lane = Lane { limit_ms, lanes: class.lanes(is_oneway) };
    let fits = |index: usize| u32::try_from(index).map_err(|_| "too many nodes".to_owned());
    Ok(Some(DraftEdge {
        from: fits(from)?,
        to: fits(to)?,
        length_m: Some(length_mm / 1000.0),
        shape,
        forward: Some(lane),
        backward: (!is_oneway).then_some(lane),
        class,
        name: names.number(row.text("name")),
    }))
}

/// A `lat,lon` of a shape.
fn point(text: &str) -> Result<[f64; 2], String> {
    let parsed = text.split_once(',').and_then(|(lat, lon)| Some([lon.parse().ok()?, lat.parse().ok()?]));
    let at = parsed.ok_or_else(|| format!("shape: {text:?} is not lat,lon"))?;
    World::Geodetic.position(&at).map_err(|problem| format!("shape: {problem}"))?;
    Ok(at)
}

/// A table with a heading.
struct Table {
    path: PathBuf,
    reader: csv::Reader<Box<dyn std::io::BufRead>>,
    columns: HashMap<String, usize>,
    record: StringRecord,
}

impl Table {
    /// Opens `NAME.csv` or `NAME.csv.gz`, which has to have some columns.
    fn open<const N: usize>(folder: &Path, name: &str, needed: [&str; N]) -> Result<Self, StreetsError> {
        let plain = folder.join(format!("{name}.csv"));
        let path = if plain.exists() { plain } else { folder.join(format!("{name}.csv.gz")) };
        if !path.exists() {
            return Err(StreetsError::Form { path: folder.to_owned() });
        }
        let mut reader = csv::Reader::from_reader(outside::open(&path, b'\n')?);
        let heading = reader.headers().map_err(|problem| content(&path, &problem))?;
        let columns =
            heading.iter().enumerate().map(|(at, column)| (column.to_owned(), at)).collect::<HashMap<_, _>>();
        if let Some(missing) = needed.iter().find(|column| !columns.contains_key(**column)) {
            let problem = format!("there is no column {missing}");
            return Err(StreetsError::Content { path, place: "line 1".to_owned(), problem });
        }
        Ok(Self { path, reader, columns, record: StringRecord::new() })
    }

    fn next(&mut self) -> Result<Option<Row<'_>>, StreetsError> {
        let is_row =
            self.reader.read_record(&mut self.record).map_err(|problem| content(&self.path, &problem))?;
        Ok(is_row.then_some(Row { path: &self.path, columns: &self.columns, record: &self.record }))
    }
}

fn content(path: &Path, problem: &csv::Error) -> StreetsError {
    let line = problem.position().map(csv::Position::line);
    let place = line.map_or_else(|| "while reading".to_owned(), |line| format!("line {line}"));
    StreetsError::Content { path: path.to_owned(), place, problem: problem.to_string() }
}

struct Row<'a> {
    path: &'a Path,
    columns: &'a HashMap<String, usize>,
    record: &'a StringRecord,
}

impl Row<'_> {
    /// What stands in a column; empty where there is none.
    fn text(&self, column: &str) -> &str {
        self.columns.get(column).and_then(|at| self.record.get(*at)).unwrap_or_default()
    }

    fn number<T: std::str::FromStr>(&self, column: &str) -> Result<T, String> {
        let text = self.text(column);
        text.parse().map_err(|_| format!("{column}: {text:?} is not a number"))
    }

    fn place(&self, problem: &str) -> String {
        let line = self.record.position().map_or(0, csv::Position::line);
        format!("{}, line {line}: {problem}", self.path.display())
    }
}
