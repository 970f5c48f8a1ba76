//! Twenty minutes of what taxis reported, as it was reported and as it may have been.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use anyhow::Context as _;
use flate2::read::GzDecoder;
use matcher::geo::{Position, World};

/// Where it is from and on what terms: the README beside it.
const RECORDING: &[u8] = include_bytes!("../../../loadgen/data/shenzhen-taxi/taxi_20min.csv.gz");

/// What the receivers say while they have no fix.
const NO_FIX: [f64; 2] = [136.0, 36.0];

/// Nobody drives faster in that town: 150 km/h.
const FASTEST_M_S: f64 = 150.0 / 3.6;

/// How far from where it began to stand a vehicle may seem to be and still count as standing.
const STANDING_M: f64 = 50.0;

/// Where a vehicle was at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Since the start of the recording.
    pub at: Duration,
    /// Who.
    pub taxi: u32,
    /// Where.
    pub position: Position,
    /// How fast, as its receiver measured it: by Doppler, not by comparing places.
    pub speed_kmh: u16,
}

/// All reports in the order of time.
///
/// # Errors
/// When the recording cannot be read.
pub fn recorded() -> anyhow::Result<Vec<Report>> {
    let mut text = String::new();
    GzDecoder::new(RECORDING).read_to_string(&mut text)?;
    let mut start_ms = None;
    let mut reports = Vec::new();
    for row in csv::Reader::from_reader(text.as_bytes()).records() {
        let row = row?;
        let field = |index: usize| row.get(index).context("a column is missing");
        let at_ms: u64 = field(1)?.parse()?;
        let at_ms = at_ms - *start_ms.get_or_insert(at_ms);
        let coordinates = [field(3)?.parse()?, field(4)?.parse()?];
        reports.push(Report {
            at: Duration::from_millis(at_ms),
            taxi: field(2)?.parse()?,
            position: World::Geodetic.position(&coordinates)?,
            speed_kmh: field(5)?.parse()?,
        });
    }
    Ok(reports)
}

/// The tracks as they may have been. Reports without a fix and leaps there and back that no vehicle makes are left
/// out; a vehicle that says that it stands is in one place for as long as it does.
#[must_use]
pub fn cleaned(reports: &[Report]) -> Vec<Report> {
    let mut tracks = BTreeMap::<u32, Vec<Report>>::new();
    for report in reports.iter().filter(|report| has_fix(report)) {
        tracks.entry(report.taxi).or_default().push(*report);
    }
    let mut cleaned: Vec<_> = tracks.into_values().flat_map(|track| at_rest(without_leaps(track))).collect();
    cleaned.sort_by_key(|report| report.at);
    cleaned
}

/// Whether a report is of a place.
#[must_use]
pub fn has_fix(report: &Report) -> bool {
    [report.position.x(), report.position.y()] != NO_FIX
}

/// Leaves out what is too far from both of its neighbours, until nothing is.
fn without_leaps(mut track: Vec<Report>) -> Vec<Report> {
    let is_leap = |a: &Report, b: &Report| {
        let seconds = b.at.saturating_sub(a.at).as_secs_f64().max(1.0);
        World::Geodetic.distance_m(&a.position, &b.position) > FASTEST_M_S * seconds
    };
    loop {
        let leap =
            track.windows(3).position(|near| is_leap(&near[0], &near[1]) && is_leap(&near[1], &near[2]));
        let Some(before) = leap else { return track };
        track.remove(before + 1);
    }
}

/// Puts a vehicle that stands into the middle of where it seemed to be.
fn at_rest(mut track: Vec<Report>) -> Vec<Report> {
    let mut start = 0;
    while start < track.len() {
        let first = track[start];
        let stands = |report: &&Report| {
            report.speed_kmh == 0
                && World::Geodetic.distance_m(&first.position, &report.position) <= STANDING_M
        };
        let count = track[start..].iter().take_while(stands).count();
        if count > 1 {
            let run = &mut track[start..start + count];
            let middle = median(run);
            run.iter_mut().for_each(|report| report.position = middle);
        }
        start += count.max(1);
    }
    track
}

/// The median of each coordinate: one bad fix does not pull it.
fn median(run: &[Report]) -> Position {
    let of = |coordinate: fn(&Position) -> f64| {
        let mut all: Vec<_> = run.iter().map(|report| coordinate(&report.position)).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    World::Geodetic.position(&[of(Position::x), of(Position::y)]).expect("between positions is a position")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(places: &[(u64, f64, u16)]) -> Vec<Report> {
        let report = |(at_s, lat, speed_kmh): &(u64, f64, u16)| Report {
            at: Duration::from_secs(*at_s),
            taxi: 1,
            position: World::Geodetic.position(&[114.0, *lat]).unwrap(),
            speed_kmh: *speed_kmh,
        };
        places.iter().map(report).collect()
    }

    fn latitudes(reports: &[Report]) -> Vec<f64> {
        reports.iter().map(|report| report.position.y()).collect()
    }

    #[test]
    fn leaps_there_and_back_are_left_out() {
        let reports = track(&[(0, 22.0, 50), (30, 22.5, 50), (60, 22.001, 50), (90, 22.002, 50)]);
        assert_eq!(latitudes(&cleaned(&reports)), [22.0, 22.001, 22.002]);
    }

    #[test]
    fn who_stands_is_in_one_place() {
        let reports =
            track(&[(0, 22.0, 0), (30, 22.000_2, 0), (60, 22.000_1, 0), (90, 22.000_3, 20), (120, 22.01, 0)]);
        assert_eq!(latitudes(&cleaned(&reports)), [22.000_1, 22.000_1, 22.000_1, 22.000_3, 22.01]);
    }

    #[test]
    fn the_recording_is_what_its_readme_says() {
        let reports = recorded().unwrap();
        assert_eq!(reports.len(), 20_884);
        assert_eq!(reports.iter().filter(|report| !has_fix(report)).count(), 117);
        assert!(reports.is_sorted_by_key(|report| report.at));
        let cleaned = cleaned(&reports);
        assert!(cleaned.len() + 117 <= reports.len() && cleaned.len() > reports.len() * 95 / 100);
    }
}
