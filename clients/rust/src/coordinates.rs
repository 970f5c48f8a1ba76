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
