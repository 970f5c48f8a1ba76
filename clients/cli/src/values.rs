//! Values of flags.

use std::path::PathBuf;
use std::time::Duration;

use nearcast_client::Coordinates;
use serde_json::Value;

/// A time, such as `90s`, `10m` or `1h 30m`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time: jiff::SignedDuration =
        text.parse().map_err(|_| "a time is a number and a unit, such as 20s or 2m")?;
    Duration::try_from(time).map_err(|_| "a time is not negative".to_owned())
}

/// A time above zero.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    time(text).and_then(|time| if time.is_zero() { Err("it has to be above 0".to_owned()) } else { Ok(time) })
}

/// `LON,LAT`, or with an altitude. That they are on the globe is the broker's to say, for its world may be planar.
pub(crate) fn place(text: &str) -> Result<Coordinates, String> {
    let numbers = numbers(text).filter(|numbers| numbers.len() <= 3);
    match numbers.as_deref() {
        Some(&[lon, lat]) => Ok([lon, lat].into()),
        Some(&[lon, lat, altitude_m]) => Ok([lon, lat, altitude_m].into()),
        _ => Err("a place is LON,LAT, such as 9.19,45.464".to_owned()),
    }
}

/// A circle that stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Circle {
    pub(crate) center: Coordinates,
    pub(crate) radius_m: f64,
}

/// `LON,LAT,METRES`.
pub(crate) fn circle(text: &str) -> Result<Circle, String> {
    match numbers(text).as_deref() {
        Some(&[lon, lat, radius_m]) => Ok(Circle { center: [lon, lat].into(), radius_m }),
        _ => Err("a circle is LON,LAT,METRES, such as 9.19,45.464,500".to_owned()),
    }
}

/// The distance from a line in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Corridor {
    pub(crate) file: PathBuf,
    pub(crate) radius_m: f64,
}

/// `FILE,METRES`.
pub(crate) fn corridor(text: &str) -> Result<Corridor, String> {
    let parts = text.rsplit_once(',').and_then(|(file, radius)| Some((file, number(radius)?)));
    let (file, radius_m) = parts.ok_or("a corridor is FILE,METRES, such as road.geojson,200")?;
    Ok(Corridor { file: file.into(), radius_m })
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// `NAME=VALUE`, whose value is JSON where it reads so, and else a text.
pub(crate) fn setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok(Setting {
            name: name.to_owned(),
            value: serde_json::from_str(value).unwrap_or_else(|_| value.into()),
        }),
        _ => Err("an attribute is NAME=VALUE, such as severity=3".to_owned()),
    }
}

/// A number of metres, 0 or more.
pub(crate) fn metres(text: &str) -> Result<f64, String> {
    number(text)
        .filter(|metres| *metres >= 0.0)
        .ok_or_else(|| "it has to be a number of metres, 0 or more".to_owned())
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// Numbers with commas between.
pub(crate) fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_are_read() {
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        assert!(time("10").is_err() && time("-1s").is_err() && interval("0s").is_err());
        assert_eq!(place("9.19, 45.464"), Ok([9.19, 45.464].into()));
        assert_eq!(place("-9.19,-45.464,120"), Ok([-9.19, -45.464, 120.0].into()));
        for bad in ["", "9.19", "9.19,", "9.19;45", "1,2,3,4", "nan,1", "1e999,1"] {
            assert!(place(bad).is_err(), "{bad}");
        }
        assert_eq!(circle("9.19,45.464,500"), Ok(Circle { center: [9.19, 45.464].into(), radius_m: 500.0 }));
        assert!(circle("9.19,45.464").is_err());
        assert_eq!(corridor("a,b.json,20"), Ok(Corridor { file: "a,b.json".into(), radius_m: 20.0 }));
        assert!(corridor("road.json").is_err());
        assert!(metres("-1").is_err());
    }

    #[test]
    fn a_value_is_json_where_it_reads_so() {
        for (text, value) in [
            ("a=3", json!(3)),
            ("a=fire", json!("fire")),
            ("a=\"3\"", json!("3")),
            ("a=007", json!("007")),
            ("a=true", json!(true)),
            ("a=[1,2]", json!([1, 2])),
            ("a=b=c", json!("b=c")),
            ("a=", json!("")),
        ] {
            assert_eq!(setting(text), Ok(Setting { name: "a".to_owned(), value }), "{text}");
        }
        assert!(setting("a").is_err() && setting("=1").is_err());
    }
}
