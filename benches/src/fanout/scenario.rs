//! Where clients are, what they want, which events there are, and which clients have to get each: by looking at every pair.

use matcher::geo::{EARTH_RADIUS_M, World};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use std::f64::consts::PI;
use std::fmt::Write as _;

/// Different events; more are published by going through them again under new ids.
pub const EVENTS_COUNT: usize = 4_096;

const WORLD: World = World::Geodetic;
/// The box that everything lies in, about 100 km by 100 km around Milan.
const WEST_SOUTH: [f64; 2] = [8.55, 45.01];
const EAST_NORTH: [f64; 2] = [9.83, 45.91];
/// Severities are drawn from 1 to this, and so are the ones that subscribers ask for.
const SEVERITY_MAX: u8 = 5;
/// How often a severity is at least the one asked for: 15 of 25 pairs.
const SEVERITY_SHARE: f64 = 0.6;

/// A subscriber: one circle that follows it, one condition.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber {
    /// Where it is.
    pub coordinates: [f64; 2],
    /// It wants events of at least this severity.
    pub severity_min: u8,
}

/// Clients that have to get an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// How many subscribers.
    pub count: u32,
    /// The wrapping sum of their [`mark`]s.
    pub marks: u64,
}

/// Everything that a run is made of, from a seed.
#[derive(Debug)]
pub struct Scenario {
    /// All of them.
    pub subscribers: Vec<Subscriber>,
    /// The radius of every subscriber's circle in metres.
    pub radius_m: f64,
    events: Vec<EventText>,
    expected: Vec<Expected>,
}

/// A feature cut in two where its id goes.
#[derive(Debug)]
struct EventText {
    before_id: &'static str,
    after_id: String,
}

impl Scenario {
    /// Draws subscribers and events such that an event goes to about `fan_out` subscribers.
    #[must_use]
    pub fn new(subscribers_count: usize, fan_out: f64, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let severity = |rng: &mut StdRng| rng.random_range(1..=SEVERITY_MAX);
        let subscribers: Vec<_> = (0..subscribers_count)
            .map(|_| Subscriber { coordinates: place(&mut rng), severity_min: severity(&mut rng) })
            .collect();
        let subscribers_per_m2 = subscribers_count as f64 / box_m2();
        let radius_m = (fan_out / (SEVERITY_SHARE * subscribers_per_m2 * PI)).sqrt();
        let drawn: Vec<_> = (0..EVENTS_COUNT).map(|_| (place(&mut rng), severity(&mut rng))).collect();
        let expected = expected(&subscribers, radius_m, &drawn);
        let events =
            drawn.iter().map(|(coordinates, severity)| EventText::new(*coordinates, *severity)).collect();
        Self { subscribers, radius_m, events, expected }
    }

    /// Appends the `number`-th event as GeoJSON, with its number as its id.
    pub fn write_event(&self, number: u64, text: &mut String) {
        let EventText { before_id, after_id } = &self.events[index(number)];
        text.push_str(before_id);
        write!(text, "{number}").expect("writing to a String cannot fail");
        text.push_str(after_id);
    }

    /// Clients that have to get the `number`-th event.
    #[must_use]
    pub fn expected(&self, number: u64) -> Expected {
        self.expected[index(number)]
    }

    /// How many deliveries those events make.
    #[must_use]
    pub fn deliveries(&self, numbers: std::ops::Range<u64>) -> u64 {
        numbers.map(|number| u64::from(self.expected(number).count)).sum()
    }
}

fn index(number: u64) -> usize {
    // The remainder is below EVENTS_COUNT, so it fits any usize.
    usize::try_from(number % EVENTS_COUNT as u64).unwrap_or(0)
}

impl EventText {
    fn new([lon, lat]: [f64; 2], severity: u8) -> Self {
        Self {
            before_id: r#"{"type":"Feature","id":"#,
            after_id: format!(
                r#","geometry":{{"type":"Point","coordinates":[{lon},{lat}]}},"properties":{{"type":"accident","severity":{severity},"road":{{"name":"A4"}},"lanes_closed":true}}}}"#
            ),
        }
    }
}

/// Six digits, a tenth of a metre, as positioning gives them.
fn place(rng: &mut StdRng) -> [f64; 2] {
    [0, 1].map(|axis| {
        let drawn: f64 = rng.random_range(WEST_SOUTH[axis]..EAST_NORTH[axis]);
        (drawn * 1e6).round() / 1e6
    })
}

fn box_m2() -> f64 {
    let width = (EAST_NORTH[0] - WEST_SOUTH[0]).to_radians();
    let sines = EAST_NORTH[1].to_radians().sin() - WEST_SOUTH[1].to_radians().sin();
    EARTH_RADIUS_M * EARTH_RADIUS_M * width * sines
}

/// Compares each event with each subscriber. Latitudes alone rule most pairs out: a distance is never less than
/// their difference.
fn expected(subscribers: &[Subscriber], radius_m: f64, events: &[([f64; 2], u8)]) -> Vec<Expected> {
    let position = |coordinates: &[f64; 2]| WORLD.position(coordinates).expect("the box lies in the world");
    let positions: Vec<_> = subscribers.iter().map(|subscriber| position(&subscriber.coordinates)).collect();
    let lat_max = (radius_m * 1.001 / EARTH_RADIUS_M).to_degrees();
    let mut all = Vec::with_capacity(events.len());
    for (coordinates, severity) in events {
        let event = position(coordinates);
        let mut expected = Expected::default();
        for (number, subscriber) in subscribers.iter().enumerate() {
            let here = &positions[number];
            if *severity >= subscriber.severity_min
                && (here.y() - event.y()).abs() <= lat_max
                && WORLD.distance_m(here, &event) <= radius_m
            {
                expected.count += 1;
                expected.marks = expected.marks.wrapping_add(mark(number));
            }
        }
        all.push(expected);
    }
    all
}

/// A number that stands for a subscriber, so that a sum tells sets of subscribers apart (the finaliser of
/// Steele, Lea and Flood's SplitMix64).
#[must_use]
pub fn mark(subscriber_number: usize) -> u64 {
    let mut z = (subscriber_number as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_goes_to_about_as_many_as_asked_for() {
        let scenario = Scenario::new(2_000, 10.0, 1);
        let mean = scenario.deliveries(0..EVENTS_COUNT as u64) as f64 / EVENTS_COUNT as f64;
        // Circles that hang over the edge of the box lose some.
        assert!((8.0..10.5).contains(&mean), "{mean}");
    }

    #[test]
    fn events_go_round_under_new_ids() {
        let scenario = Scenario::new(10, 1.0, 1);
        let text = |number| {
            let mut text = String::new();
            scenario.write_event(number, &mut text);
            text
        };
        assert_eq!(text(7).replace("\"id\":7,", "\"id\":4103,"), text(7 + EVENTS_COUNT as u64));
        assert_eq!(scenario.expected(7), scenario.expected(7 + EVENTS_COUNT as u64));
    }
}
