//! Streets for the console's base map. No street graph is at hand, so they were inferred from the hour out of which the demo's recording was cut.

/// A GeoJSON FeatureCollection: lines with a property `traffic` of 1 to 4, for narrow to wide streets, and the names of quarters. How it was made:
/// the README beside it.
pub(crate) const DOCUMENT: &str = include_str!("../../../loadgen/data/shenzhen-taxi/streets.json");

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;
    use crate::demo::replay::Recording;

    /// Metres in a degree of longitude and of latitude, in Shenzhen.
    const METRES: [f64; 2] = [102_800.0, 110_800.0];

    type Line = Vec<[f64; 2]>;

    #[derive(Deserialize)]
    struct Document {
        features: Vec<Feature>,
    }

    #[derive(Deserialize)]
    struct Feature {
        properties: Properties,
        geometry: Geometry,
    }

    #[derive(Deserialize)]
    struct Properties {
        traffic: Option<u8>,
    }

    #[derive(Deserialize)]
    #[serde(tag = "type", content = "coordinates")]
    enum Geometry {
        Point([f64; 2]),
        MultiLineString(Vec<Line>),
    }

    /// The streets of each class, narrow ones first, and the quarters, in metres from where longitude and latitude are zero.
    fn read() -> (Vec<Vec<Line>>, Vec<[f64; 2]>) {
        let document: Document = serde_json::from_str(DOCUMENT).unwrap();
        let (mut classes, mut quarters) = (Vec::new(), Vec::new());
        for Feature { properties, geometry } in document.features {
            match geometry {
                Geometry::Point(place) => quarters.push(metres(place)),
                Geometry::MultiLineString(lines) => {
                    classes
                        .push(lines.into_iter().map(|line| line.into_iter().map(metres).collect()).collect());
                    assert_eq!(properties.traffic.map(usize::from), Some(classes.len()));
                }
            }
        }
        (classes, quarters)
    }

    fn metres(place: [f64; 2]) -> [f64; 2] {
        [0, 1].map(|axis| place[axis] * METRES[axis])
    }

    fn length_m(line: &[[f64; 2]]) -> f64 {
        line.windows(2).map(|step| (step[1][0] - step[0][0]).hypot(step[1][1] - step[0][1])).sum()
    }

    /// The distance from a place to the nearest part of a straight line.
    fn away_m(place: [f64; 2], step: &[[f64; 2]]) -> f64 {
        let [along, to] = [step[1], place].map(|end| [end[0] - step[0][0], end[1] - step[0][1]]);
        let part = (to[0] * along[0] + to[1] * along[1]) / (along[0].powi(2) + along[1].powi(2));
        let part = part.clamp(0.0, 1.0);
        (to[0] - along[0] * part).hypot(to[1] - along[1] * part)
    }

    #[test]
    fn few_streets_are_wide_and_the_wider_ones_are_longer() {
        let (classes, _) = read();
        let counts: Vec<_> = classes.iter().map(Vec::len).collect();
        assert!(counts.len() == 4 && counts.is_sorted_by(|one, other| one > other), "{counts:?}");
        let mean_m = |lines: &Vec<Line>| {
            lines.iter().map(|line| length_m(line)).sum::<f64>()
                / f64::from(u32::try_from(lines.len()).unwrap())
        };
        let means_m: Vec<_> = classes.iter().map(mean_m).collect();
        assert!(means_m.is_sorted_by(|one, other| 1.5 * one < *other), "{means_m:?}");
        let total_m: f64 = classes.iter().flatten().map(|line| length_m(line)).sum();
        assert!((600_000.0..900_000.0).contains(&total_m), "{total_m}");
        assert!(DOCUMENT.len() < 150_000, "{} bytes", DOCUMENT.len());
    }

    #[test]
    fn streets_meet_at_their_ends_and_have_no_long_straight_lines_across_the_city() {
        let streets = read().0.concat();
        let mut met = HashMap::<[u64; 2], u32>::new();
        for place in streets.iter().flatten() {
            *met.entry(place.map(f64::to_bits)).or_default() += 1;
        }
        let ends: Vec<_> = streets.iter().flat_map(|line| [line[0], line[line.len() - 1]]).collect();
        let open = ends.iter().filter(|end| met[&end.map(f64::to_bits)] == 1).count();
        assert!(open * 10 < ends.len(), "{open} of {} ends", ends.len());
        for step in streets.iter().flat_map(|line| line.windows(2)) {
            assert!((2.0..1_900.0).contains(&length_m(step)), "{step:?}");
        }
    }

    #[test]
    fn taxis_drive_on_streets_and_streets_and_quarters_are_where_taxis_drive() {
        let (classes, quarters) = read();
        let streets = classes.concat();
        let recording = Recording::embedded().unwrap();
        let driving: Vec<_> = recording
            .reports
            .iter()
            // Without those at the placeholder for no position, and those beyond the map.
            .filter(|report| {
                report.speed_kmh > 0 && (113.74..114.36).contains(&report.lon) && report.lat < 22.82
            })
            .map(|report| metres([report.lon, report.lat]))
            .collect();
        let sample: Vec<_> = driving.iter().step_by(20).collect();
        let is_on = |place: &&&[f64; 2]| {
            streets.iter().flat_map(|line| line.windows(2)).any(|step| away_m(***place, step) < 50.0)
        };
        let on = sample.iter().filter(is_on).count();
        assert!(on * 10 > sample.len() * 8, "{on} of {} reports", sample.len());
        // The map shows an hour, and the recording is the third part of it.
        let vertices: Vec<_> = streets.iter().flatten().step_by(10).collect();
        let is_driven = |at: [f64; 2], away_m| driving.iter().any(|place| length_m(&[at, *place]) < away_m);
        let driven = vertices.iter().filter(|vertex| is_driven(***vertex, 250.0)).count();
        assert!(driven * 10 > vertices.len() * 9, "{driven} of {} vertices", vertices.len());
        assert!(quarters.len() > 20, "{}", quarters.len());
        for quarter in quarters {
            assert!(is_driven(quarter, 1_500.0), "{quarter:?}");
        }
    }
}
