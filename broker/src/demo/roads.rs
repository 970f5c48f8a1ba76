//! Where there are roads, as far as the recording shows it: a base map for the console, since no street graph is at hand.

use std::time::Duration;

use serde_json::json;

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

/// The roads as a GeoJSON FeatureCollection: a line wherever a taxi's reports follow each other closely enough.
pub(crate) fn document() -> anyhow::Result<String> {
    let lines = lines(&Recording::embedded()?)?;
    let roads = json!({
        "type": "FeatureCollection",
        "attribution": "Roads as 750 taxis of Shenzhen drove them, 2007",
        "features": [{
            "type": "Feature",
            "properties": {},
            "geometry": {"type": "MultiLineString", "coordinates": lines},
        }],
    });
    Ok(roads.to_string())
}

fn lines(recording: &Recording) -> anyhow::Result<Vec<Vec<[f64; 2]>>> {
    let mut drives = vec![Vec::new(); recording.taxis.len()];
    for report in &recording.reports {
        drives[report.taxi_idx].push((report, WORLD.position(&[report.lon, report.lat])?));
    }
    let mut lines = Vec::new();
    for drive in &drives {
        for stretch in drive.chunk_by(|(a, from), (b, to)| is_road(b.at - a.at, WORLD.distance_m(from, to))) {
            let mut line: Vec<_> = stretch.iter().map(|(report, _)| rounded(report)).collect();
            // It stood still.
            line.dedup();
            if line.len() > 1 {
                lines.push(line);
            }
        }
    }
    Ok(lines)
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
    fn the_recording_has_thousands_of_roads_and_no_fault_among_them() {
        let lines = lines(&Recording::embedded().unwrap()).unwrap();
        let steps: usize = lines.iter().map(|line| line.len() - 1).sum();
        assert!((8_000..9_500).contains(&steps), "{steps} in {} lines", lines.len());
        for step in lines.iter().flat_map(|line| line.windows(2)) {
            let [from, to] = [step[0], step[1]].map(|place| WORLD.position(&place).unwrap());
            assert!((113.0..115.0).contains(&step[0][0]) && (22.0..24.0).contains(&step[0][1]), "{step:?}");
            // The corners of a rounded metre.
            assert!(step[0] != step[1] && WORLD.distance_m(&from, &to) < STEP_MAX_M + 2.0, "{step:?}");
        }
        let text = document().unwrap();
        assert!(text.len() < 400_000, "{} bytes", text.len());
        assert!(!text.contains("000001,") && !text.contains("999999"), "more than five decimals");
    }
}
