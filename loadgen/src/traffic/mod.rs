//! City traffic, vehicle by vehicle; and that of whole countries, without incidents ([`country`]).
//!
//! Each vehicle has a place in a lane of a street ([`streets::Network`]) and follows the one before it by the Intelligent
//! Driver Model (`following.rs`); junctions let one direction through at a time (`junctions.rs`); ways are found by chance or to
//! destinations (`routes.rs`). How fast a street is follows from the vehicles on it, and queues and jams come of themselves. What
//! breaks down, jams, or leaves its place makes an [`Incident`], so that what there is to publish is known.
//!
//! What is simplified: vehicles keep their lane until the end of an arc and there take the lane with most room; junctions have no
//! extent, so that nobody overlaps within a lane, but a vehicle that just left one may be close to the next that comes to its end;
//! conflicts of those who may cross at the same time are not modelled; bends do not slow anybody down; streets that are full all
//! around stay full until somebody parks.
//!
//! A step has three parts: junctions decide (in parallel), every vehicle plans from the state that all see (in parallel), and
//! those who pass the end of their arc are moved on one after the other, for they compete for the same room. So a seed gives the
//! same states whatever the number of threads, which are those of the current `rayon` pool.

pub(crate) mod chance;
pub mod country;
mod driving;
mod following;
mod incidents;
mod junctions;
mod measure;
mod road;
mod routes;
mod settings;

use std::sync::Arc;

use rand::Rng;
use rand::seq::index;
use rand_distr::{Distribution, Normal};

pub use incidents::{Change, Incident, Kind};
pub use measure::{Measured, measure};
pub use road::State;
pub(crate) use settings::as_written;
pub use settings::{Idm, Jams, Routes, Settings};

use driving::Planned;
use incidents::Desk;
use junctions::{Junctions, length_m};
use road::{Cars, Lanes};
use routes::Goals;
use streets::{NONE, Network};

/// The longest step that is taken at once, in seconds.
const STEP_MAX_S: f32 = 0.5;

/// Why nobody drives.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A setting is out of range, or not a number.
    #[error("{name} {value} is not within {min} to {max}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
        /// The least that makes sense.
        min: f64,
        /// The most.
        max: f64,
    },
    /// The streets cannot hold so many vehicles, bumper to bumper.
    #[error("{vehicles} vehicles do not fit onto {lanes_km:.1} km of lanes: at most {room}")]
    TooMany {
        /// How many were asked for.
        vehicles: u32,
        /// How long all lanes are together, in km.
        lanes_km: f64,
        /// How many fit.
        room: usize,
    },
    /// There are no threads to be had.
    #[error("no threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// A city's traffic.
#[derive(Debug)]
pub struct Traffic {
    network: Arc<Network>,
    settings: Settings,
    seed: u64,
    now_s: f64,
    lanes: Lanes,
    cars: Cars,
    junctions: Junctions,
    goals: Goals,
    desk: Desk,
    /// What each vehicle is about to do in this step.
    planned: Vec<Planned>,
    changes: Vec<Change>,
}

impl Traffic {
    /// Puts vehicles onto streets: anywhere, evenly over all lanes, as fast as the gaps permit.
    ///
    /// # Errors
    /// [`TrafficError`]: a setting makes no sense, or the streets are too short for so many.
    pub fn new(network: Arc<Network>, settings: Settings, seed: u64) -> Result<Self, TrafficError> {
        settings.check()?;
        let mut lanes = Lanes::of(&network);
        let mut goals = Goals::of(&network, settings.routes, seed);
        let cars = place(&network, &settings, seed, &mut lanes, &mut goals)?;
        let mut traffic = Self {
            junctions: Junctions::of(&network, seed),
            desk: Desk::new(&network, seed),
            planned: vec![Planned::default(); cars.lane.len()],
            now_s: 0.0,
            changes: Vec::new(),
            network,
            settings,
            seed,
            lanes,
            cars,
            goals,
        };
        traffic.schedule_trips();
        Ok(traffic)
    }

    /// Lets `dt_s` seconds go by, in steps of half a second at most, and says what began and ended meanwhile. At most an hour at
    /// once; no time goes by for what is no number.
    ///
    /// Cost: about O(vehicles), and every second of simulated time once O(arcs).
    pub fn step(&mut self, dt_s: f32) -> &[Change] {
        self.changes.clear();
        let whole_s = if dt_s.is_finite() { dt_s.clamp(0.0, 3600.0) } else { 0.0 };
        let mut steps = 0_u16;
        while f32::from(steps) * STEP_MAX_S < whole_s {
            steps += 1;
        }
        for _ in 0..steps {
            self.advance(whole_s / f32::from(steps));
        }
        &self.changes
    }

    /// The streets.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// How long it has been going on, in seconds.
    #[must_use]
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// How many vehicles there are, parked ones included. They are numbered from 0.
    #[must_use]
    pub fn vehicles_count(&self) -> u32 {
        u32::try_from(self.cars.lane.len()).unwrap_or(u32::MAX)
    }

    /// How many junctions have signals, and how many there are at all where not everybody may go on.
    #[must_use]
    pub fn junctions_counts(&self) -> (usize, usize) {
        self.junctions.counts()
    }

    /// What a vehicle does.
    #[must_use]
    pub fn state(&self, vehicle: u32) -> State {
        self.cars.state[vehicle as usize]
    }

    /// The arc that a vehicle is on.
    #[must_use]
    pub fn arc(&self, vehicle: u32) -> u32 {
        self.lanes.arc[self.cars.lane[vehicle as usize] as usize]
    }

    /// Its lane there, from 0.
    #[must_use]
    pub fn lane(&self, vehicle: u32) -> u32 {
        self.cars.lane[vehicle as usize] - self.lanes.of_arc(self.arc(vehicle)).start
    }

    /// The arc that it will take next.
    #[must_use]
    pub fn next_arc(&self, vehicle: u32) -> u32 {
        self.cars.next[vehicle as usize]
    }

    /// How far its front is from the beginning of the arc, in metres.
    #[must_use]
    pub fn along_m(&self, vehicle: u32) -> f32 {
        self.cars.along_m[vehicle as usize]
    }

    /// How fast it is, in metres a second.
    #[must_use]
    pub fn speed_ms(&self, vehicle: u32) -> f32 {
        self.cars.speed_ms[vehicle as usize]
    }

    /// How fast it would like to be where it is, in metres a second.
    #[must_use]
    pub fn desired_ms(&self, vehicle: u32) -> f32 {
        self.network.limit_ms(self.arc(vehicle)) * self.cars.factor[vehicle as usize]
    }

    /// Where it is: `[longitude, latitude]` or `[x, y]`.
    #[must_use]
    pub fn position(&self, vehicle: u32) -> [f64; 2] {
        self.network.point(self.arc(vehicle), f64::from(self.along_m(vehicle)))
    }

    /// Where it is headed: degrees clockwise from north, 0 to 360.
    #[must_use]
    pub fn heading_deg(&self, vehicle: u32) -> f64 {
        self.network.heading_deg(self.arc(vehicle), f64::from(self.along_m(vehicle)))
    }

    /// The vehicles of a lane (from 0) of an arc, from its end to its beginning; none of a lane that is not there.
    pub fn vehicles(&self, arc: u32, lane: u32) -> impl Iterator<Item = u32> + '_ {
        let lane = self.lanes.of_arc(arc).nth(lane as usize);
        lane.into_iter().flat_map(|lane| self.lanes.vehicles(&self.cars, lane))
    }

    /// The mean speed of the vehicles on an arc, in metres a second; none where there is nobody.
    #[must_use]
    pub fn segment_speed(&self, arc: u32) -> Option<f32> {
        let (count, sum) = self.flow(arc);
        (count > 0.0).then(|| sum / count)
    }

    /// How many vehicles are on an arc, and the sum of their speeds.
    fn flow(&self, arc: u32) -> (f32, f32) {
        let cars = self.lanes.of_arc(arc).flat_map(|lane| self.lanes.vehicles(&self.cars, lane));
        cars.fold((0.0, 0.0), |(count, sum), car| (count + 1.0, sum + self.cars.speed_ms[car as usize]))
    }

    /// The incidents that have begun and not ended, in the order of their numbers.
    pub fn incidents(&self) -> impl Iterator<Item = &Incident> {
        self.desk.open()
    }
}

/// Vehicles at random in slots that are a length and a gap long.
fn place(
    network: &Network,
    settings: &Settings,
    seed: u64,
    lanes: &mut Lanes,
    goals: &mut Goals,
) -> Result<Cars, TrafficError> {
    let slot_m = settings.vehicle_length_m + settings.idm.gap_m;
    let slots = lanes.arc.iter().map(|arc| whole(length_m(network, *arc) / slot_m)).collect::<Vec<_>>();
    let room = slots.iter().sum::<usize>();
    let count = settings.vehicles as usize;
    if count > room {
        let lanes_km = network.lanes_m() / 1000.0;
        return Err(TrafficError::TooMany { vehicles: settings.vehicles, lanes_km, room });
    }
    let mut generator = chance::generator(seed, u64::MAX, 0);
    let mut taken = index::sample(&mut generator, room, count).into_vec();
    // From the end of each lane to its beginning, as lists of vehicles go.
    taken.sort_unstable_by(|a, b| b.cmp(a));
    let factors = Normal::new(1.0, settings.idm.factor_deviation).expect("settings were checked");
    let mut cars = Cars::default();
    let (mut lane, mut end) = (slots.len(), room);
    for (car, slot) in (0..).zip(taken) {
        while slot < end {
            lane -= 1;
            end -= slots[lane];
        }
        let arc = lanes.arc[lane];
        let lane_m = length_m(network, arc);
        let slot_m = lane_m / length(slots[lane]);
        let along_m = (length(slot - end + 1) * slot_m).min(lane_m);
        let lane = u32::try_from(lane).unwrap_or(NONE);
        let ahead = lanes.last[lane as usize];
        let gap_m = match cars.along_m.get(ahead as usize) {
            Some(ahead_m) => ahead_m - settings.vehicle_length_m - along_m,
            None => lane_m - along_m,
        };
        let factor = factors.sample(&mut generator).clamp(0.8, 1.15);
        let goal = goals.pick(car, 0);
        cars.state.push(State::Driving);
        cars.lane.push(lane);
        cars.along_m.push(along_m);
        cars.factor.push(factor);
        let safe_ms = (gap_m - settings.idm.gap_m).max(0.0) / (settings.idm.headway_s + 1.0);
        cars.speed_ms.push(safe_ms.min(network.limit_ms(arc) * factor) * generator.random_range(0.5..=1.0));
        cars.waited_s.push(0.0);
        cars.ahead.push(NONE);
        cars.behind.push(NONE);
        cars.next.push(goals.next(network, car, goal, arc, 0));
        cars.hop.push(0);
        cars.goal.push(goal);
        lanes.insert(&mut cars, car, lane, ahead);
    }
    Ok(cars)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of slots in a lane"
)]
fn whole(number: f32) -> usize {
    number as usize
}

#[expect(clippy::cast_precision_loss, reason = "a number of slots in a lane")]
fn length(count: usize) -> f32 {
    count as f32
}
