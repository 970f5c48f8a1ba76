//! All vehicles: where they begin, and figures about them together.

use kernels::traffic::{Car, NONE, Trip, Way};
use rayon::prelude::*;

use crate::error::Error;
use crate::model::{CAR_MM, SLOT_MM, chance, desired, lanes};
use crate::roads::{Roads, number};

/// How much traffic there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many vehicles.
    pub vehicles: u32,
    /// How many of them drive to destinations; the others go by chance.
    pub routed: u32,
    /// Where all chance comes from.
    pub seed: u64,
}

impl Settings {
    /// Whether one can drive with that.
    pub(crate) fn check(self) -> Result<Self, Error> {
        let Self { vehicles, routed, .. } = self;
        if routed > vehicles { Err(Error::TooManyRouted { routed, vehicles }) } else { Ok(self) }
    }

    /// Every how-many-th vehicle has a destination.
    pub(crate) fn stride(self) -> u32 {
        self.vehicles.checked_div(self.routed).unwrap_or(1)
    }

    /// The trip of a vehicle; none of one that goes by chance.
    pub(crate) fn trip(self, vehicle: u32) -> Option<usize> {
        let (trip, rest) = (vehicle / self.stride(), vehicle % self.stride());
        (rest == 0 && trip < self.routed).then_some(trip as usize)
    }
}

/// The state of all vehicles at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// By number: where each is, and how fast.
    pub cars: Vec<Car>,
    /// Where it goes.
    pub ways: Vec<Way>,
    /// The trips of those that have destinations.
    pub trips: Vec<Trip>,
}

/// Figures about all vehicles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// How fast they are on average, in km/h.
    pub speed_kmh: f64,
    /// Which share of them stands (below 0.5 m/s).
    pub standing: f64,
    /// How many arcs they have entered.
    pub entered: u64,
    /// How many destinations were reached.
    pub arrivals: u64,
    /// How often no way ahead was found.
    pub lost: u64,
}

impl State {
    /// A number that is the same for the same states, and hardly ever for others.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mixed = |nth: usize, bytes: &[u8]| {
            bytes.chunks(8).fold(nth as u64, |state, word| {
                let mut eight = [0; 8];
                eight[..word.len()].copy_from_slice(word);
                let state = (state ^ u64::from_le_bytes(eight)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                state ^ (state >> 29)
            })
        };
        let cars = self.cars.par_iter().zip(&self.ways).enumerate();
        let sum = cars.map(|(nth, (car, way))| {
            mixed(nth, bytemuck::bytes_of(car)).wrapping_add(mixed(!nth, bytemuck::bytes_of(way)))
        });
        let trips = self.trips.iter().enumerate().map(|(nth, trip)| mixed(nth, bytemuck::bytes_of(trip)));
        trips.fold(sum.reduce(|| 0, u64::wrapping_add), |all, trip| all.rotate_left(1) ^ trip)
    }

    /// Figures about all of them.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let speeds = self.cars.par_iter().map(|car| u64::from(car.speed)).sum::<u64>();
        let standing = self.cars.par_iter().filter(|car| car.speed < 500).count();
        let count = f64::from(number(self.cars.len().max(1)));
        let of_trips = |count: fn(&Trip) -> u32| self.trips.iter().map(|trip| u64::from(count(trip))).sum();
        Figures {
            speed_kmh: (speeds / self.cars.len().max(1) as u64) as f64 * 3.6 / 1000.0,
            standing: f64::from(number(standing)) / count,
            entered: self.ways.par_iter().map(|way| u64::from(way.hop)).sum(),
            arrivals: of_trips(|trip| trip.arrivals),
            lost: of_trips(|trip| trip.lost),
        }
    }
}

/// Vehicles at the beginning, and the last one in each lane.
pub(crate) struct Fleet {
    pub(crate) state: State,
    pub(crate) tails: Vec<u32>,
}

impl Fleet {
    /// Puts vehicles onto roads, in slots that are a vehicle and a gap long, evenly: each by chance in a stretch of its own. They are numbered along arcs and lanes.
    pub(crate) fn place(roads: &Roads, settings: Settings) -> Result<Self, Error> {
        let Settings { vehicles, routed, seed } = settings;
        let mut slots = Vec::with_capacity(roads.arcs.len() + 1);
        let mut room = 0_u64;
        slots.push(room);
        for arc in &roads.arcs {
            room += u64::from(arc.length_mm / SLOT_MM * lanes(arc));
            slots.push(room);
        }
        if u64::from(vehicles) > room {
            return Err(Error::TooMany { vehicles, lanes_km: roads.lanes_km(), room });
        }
        let stretch = |vehicle: u32| u64::from(vehicle) * room / u64::from(vehicles);
        let cars = (0..vehicles).into_par_iter().map(|vehicle| {
            let (begin, end) = (stretch(vehicle), stretch(vehicle + 1));
            let slot = begin + (((end - begin) * u64::from(chance(seed ^ 4, vehicle, 0))) >> 32);
            let arc = slots.partition_point(|first| *first <= slot) - 1;
            let per_lane = u64::from(roads.arcs[arc].length_mm / SLOT_MM);
            let within = slot - slots[arc];
            let lane = u8::try_from(within / per_lane).unwrap_or(0);
            let nth = u32::try_from(within % per_lane).unwrap_or(0);
            Car {
                arc: number(arc),
                along_mm: (nth + 1) * SLOT_MM,
                ahead: NONE,
                speed: 0,
                lane,
                factor: factor(seed, vehicle),
            }
        });
        let mut cars: Vec<_> = cars.collect();
        drop(slots);
        // The next in the same lane is ahead.
        let ahead: Vec<_> = cars
            .par_windows(2)
            .map(|pair| Some(pair[1]).filter(|ahead| is_beside(&pair[0], ahead)))
            .collect();
        cars.par_iter_mut().zip(0..vehicles).for_each(|(car, vehicle)| {
            let ahead = ahead.get(vehicle as usize).copied().flatten();
            let arc = &roads.arcs[car.arc as usize];
            let end_mm = ahead.map_or(arc.length_mm, |ahead| ahead.along_mm - CAR_MM.cast_unsigned());
            let safe = end_mm.saturating_sub(car.along_mm + 2000) / 2;
            let share = 512 + chance(seed ^ 5, vehicle, 0) % 513;
            let speed = safe.min(desired(arc, car.factor).cast_unsigned()) * share / 1024;
            car.speed = u16::try_from(speed).unwrap_or(u16::MAX);
            car.ahead = ahead.map_or(NONE, |_| vehicle + 1);
        });
        let mut tails = vec![NONE; roads.lanes_count() as usize];
        for (vehicle, car) in (0..vehicles).zip(&cars).rev() {
            tails[roads.lanes[car.arc as usize] as usize + usize::from(car.lane)] = vehicle;
        }
        let ways = cars.par_iter().zip(0..vehicles).map(|(car, vehicle)| Way {
            next: roads.walk(seed, vehicle, &roads.arcs[car.arc as usize], 0, 0),
            ..Way::default()
        });
        let ways = ways.collect();
        let trips = (0..routed).map(|trip| Trip { vehicle: trip * settings.stride(), ..Trip::default() });
        Ok(Self { state: State { cars, ways, trips: trips.collect() }, tails })
    }
}

/// Whether both are in the same lane.
pub(crate) fn is_beside(one: &Car, other: &Car) -> bool {
    (one.arc, one.lane) == (other.arc, other.lane)
}

/// How fast a driver likes to be, in 200ths of the limit: about normal with a deviation of 8 %, between 0.8 and 1.15.
fn factor(seed: u64, vehicle: u32) -> u8 {
    // The sum of four even numbers, whose deviation is 2^16 / √3.
    let sum: u32 =
        (0..2).map(|nth| chance(seed ^ 6, vehicle, nth)).map(|bits| (bits >> 16) + (bits & 0xffff)).sum();
    let away = (i64::from(sum) - 2 * 65_535) * 277 / 655_360;
    u8::try_from((200 + away).clamp(160, 230)).unwrap_or(200)
}
