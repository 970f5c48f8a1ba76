//! What traffic is like.

use serde::{Deserialize, Serialize, Serializer};

use super::TrafficError;

/// What traffic is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How many vehicles there are.
    pub vehicles: u32,
    /// From bumper to bumper, in metres.
    #[serde(serialize_with = "as_written")]
    pub vehicle_length_m: f32,
    /// How they follow each other.
    pub idm: Idm,
    /// How they find their ways.
    pub routes: Routes,
    /// How long each direction of a junction with signals has green, in seconds.
    #[serde(serialize_with = "as_written")]
    pub green_s: f32,
    /// How long nobody has green between two, in seconds.
    #[serde(serialize_with = "as_written")]
    pub clear_s: f32,
    /// How long a vehicle drives before it looks for a place to park, in seconds on average (exponential); none: it never parks.
    pub trip_mean_s: Option<f64>,
    /// How long it stands there, in seconds on average (exponential).
    pub parked_mean_s: f64,
    /// How long a place that was left stays free, unless a vehicle of ours takes it, in seconds on average (exponential).
    pub free_place_mean_s: f64,
    /// How often a vehicle that drives breaks down, per hour (Poisson).
    pub breakdowns_per_vehicle_h: f64,
    /// For how long, in seconds on average (exponential).
    pub breakdown_mean_s: f64,
    /// What a jam is.
    pub jams: Jams,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            vehicles: 1000,
            vehicle_length_m: 4.5,
            idm: Idm::default(),
            routes: Routes::Walk,
            green_s: 25.0,
            clear_s: 4.0,
            trip_mean_s: Some(900.0),
            parked_mean_s: 1800.0,
            free_place_mean_s: 180.0,
            breakdowns_per_vehicle_h: 0.01,
            breakdown_mean_s: 600.0,
            jams: Jams::default(),
        }
    }
}

/// The Intelligent Driver Model's parameters.
///
/// Defaults: for city traffic, after M. Treiber, A. Kesting, Traffic Flow Dynamics, 2013, table 11.2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Idm {
    /// The time gap that is kept, in seconds.
    #[serde(serialize_with = "as_written")]
    pub headway_s: f32,
    /// The gap that is kept when standing, in metres.
    #[serde(serialize_with = "as_written")]
    pub gap_m: f32,
    /// How strongly one accelerates at most, in m/s².
    #[serde(serialize_with = "as_written")]
    pub acceleration: f32,
    /// How strongly one likes to brake, in m/s².
    #[serde(serialize_with = "as_written")]
    pub deceleration: f32,
    /// How far drivers' desired speeds are from the limit: the standard deviation of their factors, which are normal around 1 and
    /// cut at 0.8 and 1.15.
    #[serde(serialize_with = "as_written")]
    pub factor_deviation: f32,
}

impl Default for Idm {
    fn default() -> Self {
        Self { headway_s: 1.0, gap_m: 2.0, acceleration: 1.0, deceleration: 1.5, factor_deviation: 0.08 }
    }
}

/// How vehicles find their ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Routes {
    /// At each junction by chance, rather onto wide and quick streets; back only where there is no other way.
    Walk,
    /// To destinations that many share, by the quickest way at the speeds of the moment.
    Goals {
        /// How many destinations there are at a time.
        count: u16,
        /// Every so many seconds the ways to one of them are found again; one to which nobody is on the way any more is then
        /// replaced by another.
        renewed_s: f64,
    },
}

/// What a jam is. It begins when an arc has been slow for `for_s`, and ends when it has not been slow for as long; in between,
/// nothing changes (hysteresis).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jams {
    /// Slow: at least so many vehicles...
    pub vehicles_min: u32,
    /// ...below this share of the limit on average.
    #[serde(serialize_with = "as_written")]
    pub begins_below: f32,
    /// Not slow: fewer than half as many vehicles, or above this share.
    #[serde(serialize_with = "as_written")]
    pub ends_above: f32,
    /// For so many seconds.
    #[serde(serialize_with = "as_written")]
    pub for_s: f32,
}

impl Default for Jams {
    fn default() -> Self {
        Self { vehicles_min: 8, begins_below: 0.2, ends_above: 0.4, for_s: 60.0 }
    }
}

impl Settings {
    /// Whether one can drive with that.
    pub(super) fn check(&self) -> Result<(), TrafficError> {
        let seconds = [
            ("green_s", f64::from(self.green_s), 1.0, 3600.0),
            ("clear_s", f64::from(self.clear_s), 0.0, 60.0),
            ("vehicle_length_m", f64::from(self.vehicle_length_m), 1.0, 30.0),
            ("idm.headway_s", f64::from(self.idm.headway_s), 0.1, 10.0),
            ("idm.gap_m", f64::from(self.idm.gap_m), 0.5, 20.0),
            ("idm.acceleration", f64::from(self.idm.acceleration), 0.1, 10.0),
            ("idm.deceleration", f64::from(self.idm.deceleration), 0.1, 10.0),
            ("idm.factor_deviation", f64::from(self.idm.factor_deviation), 0.0, 1.0),
            ("trip_mean_s", self.trip_mean_s.unwrap_or(1.0), 1.0, 1e9),
            ("parked_mean_s", self.parked_mean_s, 1.0, 1e9),
            ("free_place_mean_s", self.free_place_mean_s, 1.0, 1e9),
            ("breakdowns_per_vehicle_h", self.breakdowns_per_vehicle_h, 0.0, 1000.0),
            ("breakdown_mean_s", self.breakdown_mean_s, 1.0, 1e9),
            ("jams.begins_below", f64::from(self.jams.begins_below), 0.0, 1.0),
            ("jams.ends_above", f64::from(self.jams.ends_above), f64::from(self.jams.begins_below), 1.0),
            ("jams.for_s", f64::from(self.jams.for_s), 0.0, 1e6),
        ];
        for (name, value, min, max) in seconds {
            // Also false for NaN.
            if !(min..=max).contains(&value) {
                return Err(TrafficError::Setting { name, value, min, max });
            }
        }
        if let Routes::Goals { count, renewed_s } = self.routes {
            for (name, value, max) in
                [("routes.count", f64::from(count), 4096.0), ("routes.renewed_s", renewed_s, 1e9)]
            {
                if !(1.0..=max).contains(&value) {
                    return Err(TrafficError::Setting { name, value, min: 1.0, max });
                }
            }
        }
        Ok(())
    }
}

/// Writes a number of 32 bits as it was written, 0.2 and not 0.20000000298.
///
/// # Errors
/// The serializer's.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
pub(crate) fn as_written<S: Serializer>(number: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(number.to_string().parse().unwrap_or(f64::from(*number)))
}
