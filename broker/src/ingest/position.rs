//! Positions of clients.

use std::fmt;

use matcher::area::are_opposite;
use matcher::geo::{Position, PositionError, World};
use matcher::live::Fix;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use wire::Fault;

use super::json::{self, Members};
use super::{near, place};
use crate::config::Limits;
use crate::model::error::ApiError;
use crate::model::problems::IGNORED;

/// Reads `[longitude, latitude]`, with an altitude or without; `[x, y]` in a planar world.
pub(crate) fn coordinates(world: World, text: &str, pointer: &str) -> Result<Position, Fault> {
    let read = json::read(text, pointer, "an array of two or three numbers");
    let Numbers { first, found } =
        read.map_err(|fault| Fault { detail: fault.detail + &place::advice(world, text), ..fault })?;
    let position = first.get(..found).map_or_else(
        || Err(PositionError::Dimensions { found }.to_string()),
        |numbers| place::position(world, numbers),
    );
    position.map_err(|detail| Fault { pointer: pointer.to_owned(), detail })
}

/// The first numbers of an array, and how many there are.
struct Numbers {
    first: [f64; 3],
    found: usize,
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(NumbersVisitor)
    }
}

struct NumbersVisitor;

impl<'de> Visitor<'de> for NumbersVisitor {
    type Value = Numbers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Numbers, A::Error> {
        let mut numbers = Numbers { first: [0.0; 3], found: 0 };
        while let Some(number) = elements.next_element()? {
            if let Some(place) = numbers.first.get_mut(numbers.found) {
                *place = number;
            }
            numbers.found += 1;
        }
        Ok(numbers)
    }
}

/// Places where a client was, oldest first, at least one.
pub(crate) type Track = Box<[Position]>;

/// Where a client is now, and how it came there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Move {
    pub(crate) fix: Fix,
    /// Where it was until then, where it told that; the last place is the fix's.
    pub(crate) track: Option<Track>,
}

/// Reads positions, whose texts are no larger than one with a track may be. Other members than those asked for may be
/// there: positions come from devices that tell more than anyone asked.
pub(crate) struct PositionReader {
    world: World,
    position_bytes: usize,
    track_points: usize,
    track_m: u64,
}

impl PositionReader {
    pub(crate) fn new(world: World, limits: &Limits) -> Self {
        let Limits { position_bytes, track_points, track_m, .. } = *limits;
        Self { world, position_bytes, track_points, track_m }
    }

    /// Reads `{"coordinates", "accuracy_m", "time"}`, or `track` in place of the coordinates.
    pub(crate) fn parse(&self, text: &str) -> Result<Move, ApiError> {
        self.parse_members(&mut Members::parse(text)?, text.len())
    }

    /// Reads `{"client", "coordinates", ..}`. Beside it stand warnings, mostly none.
    pub(crate) fn parse_named(&self, text: &str) -> Result<(String, Move, Vec<Fault>), ApiError> {
        let mut members = Members::parse(text)?;
        let Some(client) = members.take("client") else {
            return Err(ApiError::invalid("/client", "must say which client is there"));
        };
        let client = json::read(client, "/client", "a text")?;
        let told = self.parse_members(&mut members, text.len())?;
        Ok((client, told, near::POSITION.warnings(&members, &IGNORED)))
    }

    /// Reads the members that are left of a text of `bytes` bytes when `client`, `op` and the like are taken.
    pub(crate) fn parse_members(&self, members: &mut Members<'_>, bytes: usize) -> Result<Move, ApiError> {
        let track = members.take("track");
        if track.is_none() && bytes > self.position_bytes {
            let (limit, setting) = (self.position_bytes as u64, "limits.position_bytes");
            return Err(ApiError::TooLarge { what: "a position", limit, setting });
        }
        let mut faults = Vec::new();
        let place = self.place(members, track).map_err(|fault| faults.push(fault)).ok();
        let mut accuracy_m = 0.0;
        if let Some(text) = members.take("accuracy_m") {
            match json::read::<f64>(text, "/accuracy_m", "a number of metres") {
                Ok(metres) if metres >= 0.0 => accuracy_m = metres,
                Ok(_) => faults.push(Fault {
                    pointer: "/accuracy_m".to_owned(),
                    detail: "must be 0 metres or more".to_owned(),
                }),
                Err(fault) => faults.push(fault),
            }
        }
        if let Some(text) = members.take("time") {
            faults.extend(time(text, "/time").err());
        }
        match place {
            Some((position, track)) if faults.is_empty() => {
                Ok(Move { fix: Fix { position, accuracy_m }, track })
            }
            _ => Err(ApiError::Invalid(faults)),
        }
    }

    /// Where the client is, and its track where it tells one.
    fn place(
        &self,
        members: &mut Members<'_>,
        track: Option<&str>,
    ) -> Result<(Position, Option<Track>), Fault> {
        let fault =
            |pointer: &str, detail: &str| Fault { pointer: pointer.to_owned(), detail: detail.to_owned() };
        match (members.take("coordinates"), track) {
            (Some(text), None) => Ok((coordinates(self.world, text, "/coordinates")?, None)),
            (None, Some(text)) => {
                let (last, track) = self.track(text)?;
                Ok((last, Some(track)))
            }
            (Some(_), Some(_)) => {
                Err(fault("/track", "is there beside coordinates, in whose place it stands"))
            }
            (None, None) => {
                let detail = match place::by_names(members) {
                    Some(array) => format!("must be there: \"coordinates\": {array} in place of two members"),
                    None => format!("must be there, {}, or a track in their place", place::order(self.world)),
                };
                Err(fault("/coordinates", &detail))
            }
        }
    }

    /// Reads `[[longitude, latitude, unix_s], ..]`, oldest first. The fault is that of the first point that has one.
    fn track(&self, text: &str) -> Result<(Position, Track), Fault> {
        let limit = self.track_points;
        let expected = format!("an array of 1 to {limit} points (limits.track_points)");
        let fault = |pointer: &str, detail: String| Fault { pointer: pointer.to_owned(), detail };
        let points: Vec<&RawValue> = json::read(text, "/track", &expected)?;
        if points.len() > limit {
            return Err(fault("/track", format!("must be {expected}, found {}", points.len())));
        }
        let mut track: Vec<Position> = Vec::with_capacity(points.len());
        let (mut before_s, mut length_m) = (f64::NEG_INFINITY, 0.0);
        for (index, point) in points.into_iter().enumerate() {
            let pointer = format!("/track/{index}");
            let expected = "an array of three numbers, the last of them Unix seconds";
            let [x, y, unix_s] = json::read::<[f64; 3]>(point.get(), &pointer, expected)?;
            let position = place::position(self.world, &[x, y]).map_err(|detail| fault(&pointer, detail))?;
            if unix_s < before_s {
                return Err(fault(&pointer, format!("is of {unix_s} s, before the point in front of it")));
            }
            before_s = unix_s;
            if track.last().is_some_and(|last| are_opposite(self.world, last, &position)) {
                let detail =
                    "is on the opposite side of the globe from the point in front of it, by no shortest way";
                return Err(fault(&pointer, detail.to_owned()));
            }
            length_m += track.last().map_or(0.0, |last| self.world.distance_m(last, &position));
            #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 metres nobody counts")]
            if length_m > self.track_m as f64 {
                let limit = self.track_m;
                return Err(fault(
                    &pointer,
                    format!("is more than {limit} m along the way (limits.track_m)"),
                ));
            }
            track.push(position);
        }
        match track.last() {
            Some(last) => Ok((*last, track.into_boxed_slice())),
            None => Err(fault("/track", format!("must be {expected}, found none"))),
        }
    }
}

/// Checks a time (RFC 3339).
pub(crate) fn time(text: &str, pointer: &str) -> Result<jiff::Timestamp, Fault> {
    let text: std::borrow::Cow<'_, str> = json::read(text, pointer, "a text")?;
    text.parse().map_err(|_| Fault {
        pointer: pointer.to_owned(),
        detail: "must be a time with its offset (RFC 3339), such as 2026-03-01T07:30:00Z".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn reader(world: World) -> PositionReader {
        let limits =
            Limits { position_bytes: 100, track_points: 4, track_m: 1_000_000, ..Config::default().limits };
        PositionReader::new(world, &limits)
    }

    /// The pointers of the faults.
    #[track_caller]
    fn faults(world: World, text: &str) -> Vec<String> {
        match reader(world).parse(text) {
            Err(ApiError::Invalid(faults)) => faults.into_iter().map(|fault| fault.pointer).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_fault_is_told_with_its_pointer() {
        let text = r#"{"coordinates":[200,0],"accuracy_m":-1,"time":"yesterday","speed":3}"#;
        assert_eq!(faults(World::Geodetic, text), ["/coordinates", "/accuracy_m", "/time"]);
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in [
            r#"{"coordinates":[1e999,0]}"#,
            r#"{"coordinates":[1]}"#,
            r#"{"coordinates":[1,2,3,4]}"#,
            r#"{"coordinates":["1","2"]}"#,
            r#"{"coordinates":null}"#,
            "{}",
        ] {
            assert_eq!(faults(World::Planar, text), ["/coordinates"], "{text}");
        }
        assert!(reader(World::Planar).parse(r#"{"coordinates":[500000.5,-3,12]}"#).is_ok());
    }

    #[test]
    fn a_fix_says_how_far_off_it_may_be() {
        let reader = reader(World::Planar);
        let position = World::Planar.position(&[1.0, 2.0]).unwrap();
        for (members, accuracy_m) in [
            ("", 0.0),
            (r#","accuracy_m":null,"track":null"#, 0.0),
            (r#","accuracy_m":0"#, 0.0),
            (r#","accuracy_m":12.5,"time":"2026-03-01T07:30:00Z""#, 12.5),
        ] {
            let text = format!(r#"{{"client":"a","coordinates":[1,2]{members}}}"#);
            let there = Move { fix: Fix { position, accuracy_m }, track: None };
            assert_eq!(reader.parse(&text), Ok(there.clone()), "{members}");
            assert_eq!(reader.parse_named(&text), Ok(("a".to_owned(), there, Vec::new())), "{members}");
        }
    }

    #[test]
    fn a_track_ends_where_the_client_is() {
        let at = |x: f64, y: f64| World::Planar.position(&[x, y]).unwrap();
        let text = r#"{"track":[[1,2,-5.5],[3,4,-5.5],[5,6,1e9]],"accuracy_m":7}"#;
        let moved = reader(World::Planar).parse(text).unwrap();
        assert_eq!(moved.fix, Fix { position: at(5.0, 6.0), accuracy_m: 7.0 });
        assert_eq!(moved.track.as_deref(), Some(&[at(1.0, 2.0), at(3.0, 4.0), at(5.0, 6.0)][..]));
        assert!(reader(World::Planar).parse(r#"{"track":[[1,2,0]]}"#).is_ok());
    }

    #[test]
    fn a_point_of_a_track_that_is_wrong_is_named() {
        for (track, pointer) in [
            ("[]", "/track"),
            ("{}", "/track"),
            ("[1,2,3]", "/track/0"),
            ("[[1,2]]", "/track/0"),
            ("[[1,2,3,4]]", "/track/0"),
            ("[[1,2,0],[1,91,1]]", "/track/1"),
            ("[[1,2,0],[1,2,1],[1,2,0.9]]", "/track/2"),
            ("[[1,2,0],[1,2,null]]", "/track/1"),
            ("[[1,2,1e999]]", "/track/0"),
            ("[[1,2,0],[1,2,0],[1,2,0],[1,2,0],[1,2,0]]", "/track"),
            // 445 km, and again.
            ("[[1,2,0],[1,6,0],[1,2,0],[1,6,0]]", "/track/3"),
        ] {
            assert_eq!(faults(World::Geodetic, &format!(r#"{{"track":{track}}}"#)), [pointer], "{track}");
        }
        assert_eq!(faults(World::Geodetic, r#"{"track":[[1,2,0]],"coordinates":[1,2]}"#), ["/track"]);
        assert_eq!(
            faults(World::Geodetic, r#"{"track":[[1,2]],"accuracy_m":-1}"#),
            ["/track/0", "/accuracy_m"]
        );
    }

    #[test]
    fn a_track_does_not_jump_to_the_opposite_side_of_the_globe() {
        let limits = Config::default().limits;
        let read = |world, track: &str| {
            PositionReader::new(world, &limits).parse(&format!(r#"{{"track":{track}}}"#))
        };
        for (track, pointer) in [
            ("[[0,0,0],[180,0,1]]", "/track/1"),
            ("[[9,45,0],[9,45,0],[-171,-45,1],[0,0,2]]", "/track/2"),
            ("[[7,90,0],[-100,-90,1]]", "/track/1"),
        ] {
            let Err(ApiError::Invalid(faults)) = read(World::Geodetic, track) else { panic!("{track}") };
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].pointer, pointer);
            assert!(faults[0].detail.contains("opposite side of the globe"), "{faults:?}");
        }
        // 110 m are enough to say which way is shorter.
        assert!(read(World::Geodetic, "[[0,0,0],[179.999,0,1]]").is_ok());
        assert!(read(World::Planar, "[[0,0,0],[180,0,1],[-180,0,2]]").is_ok());
    }

    #[test]
    fn a_track_may_be_larger_than_a_position() {
        let read = |members: &str, bytes: usize| {
            let text = format!(r#"{{{members},"note":"{}"}}"#, "x".repeat(bytes - members.len() - 12));
            assert_eq!(text.len(), bytes);
            reader(World::Planar).parse(&text)
        };
        let (position, track) = (r#""coordinates":[1,2]"#, r#""track":[[1,2,3]]"#);
        assert!(read(position, 100).is_ok() && read(track, 101).is_ok());
        assert!(matches!(read(position, 101), Err(ApiError::TooLarge { limit: 100, .. })));
    }
}
