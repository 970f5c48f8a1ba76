//! The reports that are replayed, and when each is due.

use std::collections::HashMap;
use std::io::Read as _;
use std::time::Duration;

use anyhow::Context as _;
use flate2::read::GzDecoder;
use serde::Deserialize;

/// Embedded, so that the demo needs no file beside the program. Where it is from and on what terms: the README beside it.
const RECORDING: &[u8] = include_bytes!("../../../loadgen/data/shenzhen-taxi/taxi_20min.csv.gz");

/// Time between the last report of a round and the first of the next: longer than the check holds reports against each other, so that
/// taxis do not seem to jump back to where the recording begins.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(61);

/// A report of a taxi.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// Time since the start of the recording.
    pub(super) at: Duration,
    /// Index into [`Recording::taxis`].
    pub(super) taxi_idx: usize,
    /// Longitude in degrees; faults are left as they are.
    pub(super) lon: f64,
    /// Latitude in degrees.
    pub(super) lat: f64,
    /// Kilometres per hour.
    pub(super) speed_kmh: u16,
    /// 0 is free, more is in service.
    code: u8,
}

impl Report {
    /// The state of the taxi, in a word.
    pub(super) fn status(&self) -> &'static str {
        if self.code == 0 { "free" } else { "hired" }
    }
}

/// All reports, in the order of time.
#[derive(Debug)]
pub(super) struct Recording {
    /// Numbers of the taxis, in the order in which they appear.
    pub(super) taxis: Vec<u32>,
    pub(super) reports: Vec<Report>,
}

/// A report of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<'a> {
    /// Time after the start at which it is to be sent. Later rounds go on where the recording ends.
    pub(super) after: Duration,
    pub(super) report: &'a Report,
}

/// A line of the file.
#[derive(Deserialize)]
struct Row {
    ts_ms: u64,
    taxi_id: u32,
    lon: f64,
    lat: f64,
    speed_kmh: u16,
    status: u8,
}

impl Recording {
    /// The embedded one.
    pub(super) fn embedded() -> anyhow::Result<Self> {
        Self::read(GzDecoder::new(RECORDING)).context("the embedded recording")
    }

    fn read(source: impl std::io::Read) -> anyhow::Result<Self> {
        let mut text = String::new();
        std::io::BufReader::new(source).read_to_string(&mut text)?;
        let mut recording = Self { taxis: Vec::new(), reports: Vec::new() };
        let mut idxs = HashMap::new();
        let mut start_ms = None;
        for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
            let Row { ts_ms, taxi_id, lon, lat, speed_kmh, status } = row?;
            let taxi_idx = *idxs.entry(taxi_id).or_insert_with(|| {
                recording.taxis.push(taxi_id);
                recording.taxis.len() - 1
            });
            let at = ts_ms
                .checked_sub(*start_ms.get_or_insert(ts_ms))
                .context("a report is older than the first one")?;
            let at = Duration::from_millis(at);
            recording.reports.push(Report { at, taxi_idx, lon, lat, speed_kmh, code: status });
        }
        anyhow::ensure!(
            recording.reports.is_sorted_by_key(|report| report.at),
            "the reports are out of order"
        );
        anyhow::ensure!(start_ms.is_some(), "there are no reports");
        Ok(recording)
    }

    /// The reports over and over, each with its time.
    pub(super) fn rounds(&self, speed: f64) -> impl Iterator<Item = Due<'_>> {
        let last = self.reports.last().map_or(Duration::ZERO, |report| report.at);
        let round = last + BETWEEN_ROUNDS;
        (0_u32..).flat_map(move |number| {
            let start = round.saturating_mul(number);
            self.reports.iter().map(move |report| {
                let made = start.saturating_add(report.at);
                let after = Duration::try_from_secs_f64(made.as_secs_f64() / speed).unwrap_or(Duration::MAX);
                Due { after, report }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_recording_is_twenty_minutes_with_its_faults() {
        let recording = Recording::embedded().unwrap();
        assert_eq!((recording.reports.len(), recording.taxis.len()), (20_884, 750));
        assert!(recording.reports.last().unwrap().at < Duration::from_secs(20 * 60));
        let sentinels = recording.reports.iter().filter(|report| (report.lon, report.lat) == (136.0, 36.0));
        assert_eq!(sentinels.count(), 117);
    }

    #[test]
    fn rounds_follow_each_other_at_the_chosen_speed() {
        let text =
            "seq,ts_ms,taxi_id,lon,lat,speed_kmh,status\n0,5000,7,114.0,22.5,30,1\n1,8000,9,114.1,22.6,0,0\n";
        let recording = Recording::read(text.as_bytes()).unwrap();
        let due: Vec<_> = recording
            .rounds(2.0)
            .take(4)
            .map(|Due { after, report }| (after.as_millis(), recording.taxis[report.taxi_idx]))
            .collect();
        assert_eq!(due, [(0, 7), (1_500, 9), (32_000, 7), (33_500, 9)]);
    }

    #[test]
    fn reports_that_go_back_in_time_are_refused() {
        let text =
            "seq,ts_ms,taxi_id,lon,lat,speed_kmh,status\n0,5000,7,114.0,22.5,30,1\n1,4000,9,114.1,22.6,0,0\n";
        assert!(Recording::read(text.as_bytes()).is_err());
    }
}
