//! Places in other forms than `[longitude, latitude]`, and the form that their senders should write.

use matcher::geo::{Position, PositionError, World};

use super::json::Members;

/// Names that people give to the two numbers of a place.
const LONGITUDE: [&str; 5] = ["lon", "lng", "long", "longitude", "x"];
const LATITUDE: [&str; 3] = ["lat", "latitude", "y"];

/// Checks the numbers of a position. Where they would be one if they changed places, the reason says so.
///
/// # Errors
/// The reason why they are none.
pub(crate) fn position(world: World, numbers: &[f64]) -> Result<Position, String> {
    world.position(numbers).map_err(|error| match (numbers, world) {
        (&[first, second, ..], World::Geodetic)
            if matches!(error, PositionError::OutOfRange { .. })
                && world.position(&[second, first]).is_ok() =>
        {
            format!("{error} (longitude comes first: did you mean [{second}, {first}]?)")
        }
        _ => error.to_string(),
    })
}

/// The order of the two numbers of a position, in words.
pub(crate) const fn order(world: World) -> &'static str {
    match world {
        World::Geodetic => "[longitude, latitude]",
        World::Planar => "[x, y]",
    }
}

/// The place that an object tells by two members such as `lat` and `lon`, written as an array.
pub(crate) fn by_names(members: &Members<'_>) -> Option<String> {
    let number = |names: &[&str]| {
        let is_one = |name: &str| names.iter().any(|one| name.eq_ignore_ascii_case(one));
        let (_, text) = members.rest().find(|(name, _)| is_one(name))?;
        finite(text.trim_matches('"'))
    };
    Some(format!("[{}, {}]", number(&LONGITUDE)?, number(&LATITUDE)?))
}

/// An advice for the sender of something that should be an array of numbers, to be put behind the reason; empty where it
/// cannot be told what was meant.
pub(super) fn advice(world: World, text: &str) -> String {
    if text.starts_with('{') {
        let array = Members::parse(text).ok().and_then(|members| by_names(&members));
        return array.map(|array| format!(": {array}")).unwrap_or_default();
    }
    let numbers: Option<Vec<f64>> = text
        .trim_matches(['"', '[', ']'])
        .split(',')
        .map(|part| finite(part.trim_matches([' ', '"'])))
        .collect();
    match (numbers.as_deref(), world) {
        (Some([first, second]), World::Geodetic) => {
            format!(
                ", longitude first: [{first}, {second}], or [{second}, {first}] if the latitude is {first}"
            )
        }
        (Some([first, second]), World::Planar) => format!(": [{first}, {second}]"),
        _ => String::new(),
    }
}

/// A number that is no longer than a place has them.
fn finite(text: &str) -> Option<f64> {
    (text.len() <= 32).then(|| text.parse().ok()).flatten().filter(|number: &f64| number.abs() <= 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(numbers: &[f64], reason: &str) {
        assert_eq!(position(World::Geodetic, numbers).unwrap_err(), reason);
    }

    #[test]
    fn numbers_that_have_changed_places_are_told_in_their_order() {
        check(
            &[34.05, -118.24],
            "latitude -118.24 is outside of -90 to 90 (longitude comes first: did you mean [-118.24, 34.05]?)",
        );
        check(
            &[-33.87, 151.21, 12.0],
            "latitude 151.21 is outside of -90 to 90 (longitude comes first: did you mean [151.21, -33.87]?)",
        );
        // The other way round they are none, either.
        check(&[200.0, 0.0], "longitude 200 is outside of -180 to 180");
        check(&[100.0, 100.0], "latitude 100 is outside of -90 to 90");
        check(&[1.0], "a position has two or three numbers, found 1");
        let planar = position(World::Planar, &[0.0, 2e9]).unwrap_err();
        assert_eq!(planar, "y 2000000000 is outside of -1000000000 to 1000000000");
    }

    #[test]
    fn a_place_by_names_is_written_as_an_array() {
        let named = |text| by_names(&Members::parse(text).unwrap());
        assert_eq!(named(r#"{"lat":45.4,"lon":9.1}"#).as_deref(), Some("[9.1, 45.4]"));
        assert_eq!(named(r#"{"Longitude":"9.1","LATITUDE":"45.4"}"#).as_deref(), Some("[9.1, 45.4]"));
        for text in [r#"{"lat":45.4}"#, r#"{"lat":45.4,"lon":"east"}"#, r#"{"lat":45.4,"lon":1e300}"#, "{}"] {
            assert_eq!(named(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_array_of_numbers_is_written_as_one() {
        let geodetic = |text| advice(World::Geodetic, text);
        assert_eq!(geodetic(r#"{"lat":45.4,"lng":9.1}"#), ": [9.1, 45.4]");
        let both = ", longitude first: [45.4, 9.1], or [9.1, 45.4] if the latitude is 45.4";
        assert_eq!(geodetic(r#""45.4, 9.1""#), both);
        assert_eq!(geodetic(r#"["45.4","9.1"]"#), both);
        assert_eq!(advice(World::Planar, "\"3,4\""), ": [3, 4]");
        for text in ["\"here\"", "7", "null", "{}", "\"1,2,3\"", &format!("\"{},2\"", "9".repeat(300))] {
            assert_eq!(geodetic(text), "", "{text}");
        }
    }
}
