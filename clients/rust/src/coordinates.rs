//! Positions as GeoJSON writes them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A place: longitude and latitude in degrees (WGS 84). Where the broker's world is planar, `lon` is x and `lat` is y, in metres.
///
/// In GeoJSON, and wherever an array is given for it, longitude comes first.
///
/// ```
/// use nearcast_client::Coordinates;
/// assert_eq!(Coordinates::from([9.19, 45.46]), Coordinates { lon: 9.19, lat: 45.46, altitude_m: None });
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// Longitude, or x.
    pub lon: f64,
    /// Latitude, or y.
    pub lat: f64,
    /// The altitude, which is passed on and not used.
    pub altitude_m: Option<f64>,
}

impl Coordinates {
    /// How many metres it is along a great circle to another place, as the broker measures it.
    #[must_use]
    pub fn distance_m(self, to: Self) -> f64 {
        const EARTH_RADIUS_M: f64 = 6_371_008.8;
        let sin_lat = ((to.lat - self.lat).to_radians() / 2.0).sin();
        let sin_lon = ((to.lon - self.lon).to_radians() / 2.0).sin();
        let a =
            sin_lat * sin_lat + self.lat.to_radians().cos() * to.lat.to_radians().cos() * sin_lon * sin_lon;
        2.0 * EARTH_RADIUS_M * a.sqrt().min(1.0).asin()
    }

    pub(crate) fn to_vec(self) -> Vec<f64> {
        [Some(self.lon), Some(self.lat), self.altitude_m].into_iter().flatten().collect()
    }
}

impl From<[f64; 2]> for Coordinates {
    fn from([lon, lat]: [f64; 2]) -> Self {
        Self { lon, lat, altitude_m: None }
    }
}

impl From<[f64; 3]> for Coordinates {
    fn from([lon, lat, altitude_m]: [f64; 3]) -> Self {
        Self { lon, lat, altitude_m: Some(altitude_m) }
    }
}

impl Serialize for Coordinates {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.altitude_m {
            None => [self.lon, self.lat].serialize(serializer),
            Some(altitude_m) => [self.lon, self.lat, altitude_m].serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Coordinates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Vec::<f64>::deserialize(deserializer)?[..] {
            [lon, lat] => Ok([lon, lat].into()),
            [lon, lat, altitude_m] => Ok([lon, lat, altitude_m].into()),
            _ => Err(D::Error::custom("a position has two or three numbers")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_great_circles() {
        let distance_m = |from: [f64; 2], to: [f64; 2]| Coordinates::from(from).distance_m(to.into());
        let quarter = distance_m([0.0, 0.0], [90.0, 0.0]);
        assert!((quarter - 10_007_557.0).abs() < 1.0, "{quarter}");
        let across = distance_m([179.999, 0.0], [-179.999, 0.0]);
        assert!((across - 222.4).abs() < 0.1, "{across}");
        assert_eq!(distance_m([9.19, 45.46], [9.19, 45.46]), 0.0);
    }
}
