//! Where there are roads, as far as the recording shows it: a base map for the console, since no street graph is at hand.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use matcher::geo::Position;
use serde_json::{Value, json};

use super::fleet::WORLD;
use super::replay::{Recording, Report};

/// Longer apart, a taxi was elsewhere between two reports.
const PAUSE_MAX: Duration = Duration::from_secs(45);
/// Further apart, a straight line between two reports is no road.
const STEP_MAX_M: f64 = 1_500.0;
/// Faster than that nobody drives there: one of the two reports is a fault.
const SPEED_MAX_KMH: f64 = 120.0;
/// Parts of a degree that are told: a metre.
const PARTS: f64 = 1e5;

/// Parts of a degree across a cell in which drives are counted: some sixty metres, which is a wide road and the error of a position.
const CELL: f64 = 1.0 / 1_700.0;
/// The part of all steps that have more traffic than those of each class but the last.
const CLASSES: [f64; 3] = [0.45, 0.18, 0.05];

/// Longer, a straight line is a road only where other taxis were along it, too: else it may cut a corner.
const STRAIGHT_MAX_M: f64 = 500.0;
/// The part of such a line along which others were.
const SHARED_MIN: f64 = 0.5;
/// Shorter, a line of which no more is known is noise of a receiver.
const LINE_MIN_M: f64 = 120.0;

/// Parts of the city where taxis drive, as [GeoNames](https://www.geonames.org/) (CC BY 4.0) has them: `[longitude, latitude]`.
const QUARTERS: [(&str, [f64; 2]); 22] = [
    ("Bantian", [114.04989, 22.63636]),
    ("Buji", [114.10073, 22.60298]),
    ("Fuyong", [113.81519, 22.67214]),
    ("Guanlan", [114.05244, 22.7211]),
    ("Henggang", [114.19612, 22.6489]),
    ("Liantang", [114.16859, 22.5667]),
    ("Longgang", [114.26326, 22.72289]),
    ("Longhua", [114.00893, 22.65784]),
    ("Minzhi", [114.03763, 22.62447]),
    ("Nanshan", [113.93889, 22.538]),
    ("Nantou", [113.91564, 22.53557]),
    ("Nanwan", [114.1304, 22.59882]),
    ("Pinghu", [114.11703, 22.69062]),
    ("Shahe", [113.97912, 22.55226]),
    ("Shajing", [113.81903, 22.74628]),
    ("Shatoujiao", [114.22589, 22.55463]),
    ("Shekou", [113.9156, 22.49359]),
    ("Shiyan", [113.94118, 22.68588]),
    ("Xili", [113.94786, 22.58809]),
    ("Xin’an", [113.91615, 22.57274]),
    ("Xixiang", [113.8889, 22.59306]),
    ("Yantian", [114.23477, 22.56004]),
];

/// The roads as a GeoJSON FeatureCollection: a line wherever a taxi's reports follow each other closely enough, with a property `traffic` of 1 to 4 for
/// those on which few to many drove, and the names of quarters.
pub(crate) fn document() -> anyhow::Result<String> {
    let lines = lines(&Recording::embedded()?)?;
    let features: Vec<Value> = by_traffic(&lines)
        .iter()
        .zip(1..)
        .map(|(lines, traffic)| {
            json!({
                "type": "Feature",
                "properties": {"traffic": traffic},
                "geometry": {"type": "MultiLineString", "coordinates": lines},
            })
        })
        .chain(QUARTERS.map(|(name, place)| {
            json!({
                "type": "Feature",
                "properties": {"name": name},
                "geometry": {"type": "Point", "coordinates": place},
            })
        }))
        .collect();
    let roads = json!({
        "type": "FeatureCollection",
        "attribution": "Roads as 750 taxis of Shenzhen drove them, 2007 | Quarters: GeoNames",
        "features": features,
    });
    Ok(roads.to_string())
}

fn lines(recording: &Recording) -> anyhow::Result<Vec<Vec<[f64; 2]>>> {
    let mut drives = vec![Vec::new(); recording.taxis.len()];
    for report in &recording.reports {
        drives[report.taxi_idx].push((report, WORLD.position(&[report.lon, report.lat])?));
    }
    let visits = visits(recording);
    let mut lines = Vec::new();
    for drive in &drives {
        let follows = |(a, from): &(&Report, Position), (b, to): &(&Report, Position)| {
            let step_m = WORLD.distance_m(from, to);
            is_road(b.at - a.at, step_m)
                && (step_m <= STRAIGHT_MAX_M || is_shared(&visits, a.taxi_idx, &[rounded(a), rounded(b)]))
        };
        for stretch in drive.chunk_by(follows) {
            let mut line: Vec<_> = stretch.iter().map(|(report, _)| rounded(report)).collect();
            // It stood still.
            line.dedup();
            let way_m: f64 = stretch.windows(2).map(|step| WORLD.distance_m(&step[0].1, &step[1].1)).sum();
            if line.len() > 1 && way_m >= LINE_MIN_M {
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

/// Which taxis reported from each cell.
fn visits(recording: &Recording) -> HashMap<[i64; 2], HashSet<usize>> {
    let mut visits = HashMap::<_, HashSet<usize>>::new();
    for report in &recording.reports {
        visits.entry([cell(report.lon), cell(report.lat)]).or_default().insert(report.taxi_idx);
    }
    visits
}

/// Whether other taxis reported from along the straight line between two reports of one.
fn is_shared(visits: &HashMap<[i64; 2], HashSet<usize>>, own_idx: usize, step: &[[f64; 2]]) -> bool {
    let cells = cells(step);
    let between = &cells[1.min(cells.len())..cells.len().saturating_sub(1)];
    let is_visited = |[x, y]: &&[i64; 2]| {
        let around = (x - 1..=x + 1).flat_map(|x| (y - 1..=y + 1).map(move |y| [x, y]));
        around.filter_map(|cell| visits.get(&cell)).flatten().any(|taxi_idx| *taxi_idx != own_idx)
    };
    let shared = between.iter().filter(is_visited).count();
    shared >= share(between.len(), SHARED_MIN)
}

/// The pieces of lines by how many others are where they are, fewest first.
fn by_traffic(lines: &[Vec<[f64; 2]>]) -> [Vec<Vec<[f64; 2]>>; 4] {
    let mut drives = HashMap::<[i64; 2], u32>::new();
    for step in lines.iter().flat_map(|line| line.windows(2)) {
        for cell in cells(step) {
            *drives.entry(cell).or_default() += 1;
        }
    }
    let traffic = |step: &[[f64; 2]]| {
        let cells = cells(step);
        let sum: f64 = cells.iter().map(|cell| f64::from(drives[cell])).sum();
        sum / f64::from(u32::try_from(cells.len()).unwrap_or(u32::MAX))
    };
    let mut all: Vec<f64> = lines.iter().flat_map(|line| line.windows(2)).map(traffic).collect();
    all.sort_by(|one, other| other.total_cmp(one));
    let bounds = CLASSES.map(|part| all.get(share(all.len(), part)).copied().unwrap_or_default());
    let class = |step: &[[f64; 2]]| {
        let traffic = traffic(step);
        bounds.iter().filter(|bound| traffic > **bound).count()
    };
    let mut pieces: [Vec<Vec<[f64; 2]>>; 4] = Default::default();
    for line in lines {
        let steps: Vec<_> = line.windows(2).map(|step| (class(step), step[1])).collect();
        let mut from = line[0];
        for run in steps.chunk_by(|(one, _), (other, _)| one == other) {
            let piece: Vec<_> = std::iter::once(from).chain(run.iter().map(|(_, to)| *to)).collect();
            from = run[run.len() - 1].1;
            pieces[run[0].0].push(piece);
        }
    }
    pieces
}

/// The cells that a step leads through, each once.
fn cells(step: &[[f64; 2]]) -> Vec<[i64; 2]> {
    let [from, to] = [step[0], step[1]];
    let parts = ((from[0] - to[0]).abs().max((from[1] - to[1]).abs()) / CELL).ceil().clamp(1.0, 100.0);
    let mut cells = Vec::new();
    let mut part = 0.0;
    while part <= parts {
        cells.push([0, 1].map(|axis| cell(from[axis] + (to[axis] - from[axis]) * part / parts)));
        part += 1.0;
    }
    cells.dedup();
    cells
}

#[expect(clippy::cast_possible_truncation, reason = "degrees have few cells")]
fn cell(degrees: f64) -> i64 {
    (degrees / CELL).floor() as i64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a part of a count of some thousands"
)]
fn share(count: usize, part: f64) -> usize {
    (count as f64 * part) as usize
}

/// Whether a taxi drove from one report to the next, in the time `pause` and over `step_m` metres.
fn is_road(pause: Duration, step_m: f64) -> bool {
    let reach_m = SPEED_MAX_KMH / 3.6 * pause.as_secs_f64();
    pause <= PAUSE_MAX && step_m <= STEP_MAX_M.min(reach_m)
}

fn rounded(report: &Report) -> [f64; 2] {
    [report.lon, report.lat].map(|degrees| (degrees * PARTS).round() / PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_a_road_where_a_taxi_can_have_driven_it() {
        let is_road = |pause_ms, step_m| is_road(Duration::from_millis(pause_ms), step_m);
        assert!(is_road(30_000, 900.0) && is_road(45_000, 1_500.0) && is_road(0, 0.0));
        assert!(!is_road(45_001, 10.0) && !is_road(45_000, 1_501.0));
        // 100 and 125 km/h.
        assert!(is_road(18_000, 500.0) && !is_road(14_400, 500.0));
    }

    #[test]
    fn a_long_straight_line_is_a_road_where_others_were_along_half_of_it() {
        let step = [[114.0, 22.5], [114.01, 22.5]];
        let along = cells(&step);
        let by = |taxi_idx: usize, part: usize| {
            along.iter().take(along.len() / part).map(|cell| (*cell, HashSet::from([taxi_idx]))).collect()
        };
        assert!(is_shared(&by(1, 1), 0, &step) && is_shared(&by(1, 2), 0, &step));
        assert!(!is_shared(&by(1, 4), 0, &step) && !is_shared(&HashMap::new(), 0, &step));
        // Its own reports say nothing of what lies between them.
        assert!(!is_shared(&by(0, 1), 0, &step));
    }

    #[test]
    fn the_recording_has_thousands_of_roads_and_no_fault_among_them() {
        let lines = lines(&Recording::embedded().unwrap()).unwrap();
        let steps: usize = lines.iter().map(|line| line.len() - 1).sum();
        assert!((7_000..7_600).contains(&steps), "{steps} in {} lines", lines.len());
        for step in lines.iter().flat_map(|line| line.windows(2)) {
            let [from, to] = [step[0], step[1]].map(|place| WORLD.position(&place).unwrap());
            assert!((113.0..115.0).contains(&step[0][0]) && (22.0..24.0).contains(&step[0][1]), "{step:?}");
            // The corners of a rounded metre.
            assert!(step[0] != step[1] && WORLD.distance_m(&from, &to) < STEP_MAX_M + 2.0, "{step:?}");
        }
        let pieces = by_traffic(&lines);
        let counts = pieces.each_ref().map(|lines| lines.iter().map(|line| line.len() - 1).sum::<usize>());
        assert_eq!(counts.iter().sum::<usize>(), steps);
        assert!(counts.is_sorted_by(|one, other| one > other) && counts[3] > steps / 50, "{counts:?}");
        let text = document().unwrap();
        assert!(text.len() < 450_000, "{} bytes", text.len());
        assert!(!text.contains("000001,") && !text.contains("999999"), "more than five decimals");
    }
}
