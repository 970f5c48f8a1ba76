//! What happens besides driving, and what of it is reported: breakdowns, jams, free parking places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use rand::Rng;
use rand_distr::{Distribution, Exp, Poisson};
use rayon::prelude::*;

use super::road::State;
use super::settings::Routes;
use super::{Traffic, chance};
use streets::{Class, NONE, Network};

/// How long one who stands at a full street waits before it takes another way, in seconds.
const DETOUR_S: f32 = 20.0;
/// When what could not be done yet is tried again, in seconds.
const RETRY_S: f64 = 2.0;

/// Something that there is to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Its number, from 1, in the order of beginnings.
    pub number: u64,
    /// What it is.
    pub kind: Kind,
    /// Where: `[longitude, latitude]` or `[x, y]`. A jam lies in the middle of its arc.
    pub position: [f64; 2],
    /// On which arc.
    pub arc: u32,
    /// The street's name.
    pub street: Option<String>,
    /// When it began, in seconds of simulated time.
    pub from_s: f64,
    /// When it ended; none while it lasts.
    pub until_s: Option<f64>,
    /// How fast those on the arc are on average, in km/h, when it began; the limit where there is nobody.
    pub speed_kmh: f64,
    /// The speed limit there, in km/h.
    pub limit_kmh: f64,
    /// How many vehicles are on the arc when it began.
    pub vehicles: u32,
    /// Whose breakdown, or who left the place.
    pub vehicle: Option<u32>,
}

/// What an incident is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A vehicle has broken down and stands in its lane.
    Breakdown,
    /// An arc is full and slow: [`super::Jams`].
    Jam,
    /// A parking place became free.
    FreeParking,
}

/// What became of an incident.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It began.
    Began(Incident),
    /// It is over.
    Ended(Incident),
}

/// What is due at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A vehicle goes on.
    Repaired(u32),
    /// A vehicle has arrived, and parks.
    Park(u32),
    /// A vehicle leaves its place.
    Leave(u32),
    /// Somebody else takes a free place.
    Taken(u64),
    /// Ways to a destination are found again.
    Renew,
}

/// What is open, and what is due.
#[derive(Debug)]
pub(super) struct Desk {
    seed: u64,
    numbers: u64,
    open: BTreeMap<u64, Incident>,
    /// By time in milliseconds, then by order.
    due: BinaryHeap<Reverse<(u64, Due)>>,
    draws: u64,
    /// For how long each arc has been slow, or, of one that is jammed, has not been.
    turning_s: Vec<f32>,
    /// Open incidents by what they are about.
    jam_of: Vec<u64>,
    breakdown_of: HashMap<u32, u64>,
    free_on: HashMap<u32, Vec<u64>>,
}

impl Desk {
    pub(super) fn new(network: &Network, seed: u64) -> Self {
        Self {
            seed,
            numbers: 0,
            open: BTreeMap::new(),
            due: BinaryHeap::new(),
            draws: 0,
            turning_s: vec![0.0; network.arcs_count()],
            jam_of: vec![0; network.arcs_count()],
            breakdown_of: HashMap::new(),
            free_on: HashMap::new(),
        }
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &Incident> {
        self.open.values()
    }

    fn schedule(&mut self, at_s: f64, due: Due) {
        self.due.push(Reverse((millis(at_s), due)));
    }

    /// Draws a span of time.
    fn span_s(&mut self, mean_s: f64) -> f64 {
        self.draws += 1;
        let spans = Exp::new(1.0 / mean_s).expect("settings were checked");
        spans.sample(&mut chance::generator(self.seed, u64::MAX - 1, self.draws))
    }

    fn end(&mut self, number: u64, now_s: f64) -> Option<Incident> {
        let mut incident = self.open.remove(&number)?;
        incident.until_s = Some(now_s);
        if let Some(free) = self.free_on.get_mut(&incident.arc) {
            free.retain(|other| *other != number);
        }
        Some(incident)
    }
}

impl Traffic {
    /// Makes a vehicle break down now, for some seconds. A vehicle that is parked or broken down already stays so.
    pub fn break_down(&mut self, vehicle: u32, for_s: f64) {
        let Some(state) = self.cars.state.get_mut(vehicle as usize).filter(|state| **state == State::Driving)
        else {
            return;
        };
        *state = State::Broken;
        self.desk.breakdown_of.insert(vehicle, 0);
        self.desk.schedule(self.now_s + for_s.max(0.0), Due::Repaired(vehicle));
    }

    /// Sets the clocks of all trips.
    pub(super) fn schedule_trips(&mut self) {
        if let Routes::Goals { renewed_s, .. } = self.settings.routes {
            self.desk.schedule(renewed_s, Due::Renew);
        }
        for car in 0..self.vehicles_count() {
            self.begin_trip(car);
        }
    }

    fn begin_trip(&mut self, car: u32) {
        if let (Some(mean_s), Routes::Walk) = (self.settings.trip_mean_s, self.settings.routes) {
            let for_s = self.desk.span_s(mean_s);
            self.desk.schedule(self.now_s + for_s, Due::Park(car));
        }
    }

    /// A vehicle is about to reach its destination: it parks, where vehicles do.
    pub(super) fn arrive(&mut self, car: u32) {
        if self.settings.trip_mean_s.is_some() {
            self.desk.schedule(self.now_s, Due::Park(car));
        }
    }

    /// What is looked after once a second.
    pub(super) fn every_second(&mut self) {
        self.break_some_down();
        self.tell_breakdowns();
        while let Some(Reverse((at_ms, due))) = self.desk.due.peek().copied() {
            if at_ms > millis(self.now_s) {
                break;
            }
            self.desk.due.pop();
            self.happen(due);
        }
        self.find_jams();
        self.find_detours();
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Repaired(car) => {
                self.cars.state[car as usize] = State::Driving;
                if let Some(number) = self.desk.breakdown_of.remove(&car) {
                    self.end(number);
                }
            }
            Due::Park(car) => self.park(car),
            Due::Leave(car) => self.leave(car),
            Due::Taken(number) => self.end(number),
            Due::Renew => {
                let mut goals = std::mem::take(&mut self.goals);
                let network = std::sync::Arc::clone(&self.network);
                goals.renew(&network, |arc| self.segment_speed(arc).unwrap_or(network.limit_ms(arc)));
                self.goals = goals;
                if let Routes::Goals { renewed_s, .. } = self.settings.routes {
                    self.desk.schedule(self.now_s + renewed_s, Due::Renew);
                }
            }
        }
    }

    fn break_some_down(&mut self) {
        let count = f64::from(self.vehicles_count());
        let mean = self.settings.breakdowns_per_vehicle_h * count / 3600.0;
        let Ok(breakdowns) = Poisson::new(mean) else { return };
        let mut generator = chance::generator(self.seed, u64::MAX - 2, millis(self.now_s));
        // One that is drawn while it is parked does not break down.
        for _ in 0..millis(breakdowns.sample(&mut generator) / 1000.0) {
            let car = generator.random_range(0..self.vehicles_count());
            if self.cars.state[car as usize] == State::Driving {
                let for_s = self.desk.span_s(self.settings.breakdown_mean_s);
                self.break_down(car, for_s);
            }
        }
    }

    /// A breakdown is reported when the vehicle stands.
    fn tell_breakdowns(&mut self) {
        let standing = self
            .desk
            .breakdown_of
            .iter()
            .filter(|(car, number)| **number == 0 && self.cars.speed_ms[**car as usize] == 0.0);
        let mut standing = standing.map(|(car, _)| *car).collect::<Vec<_>>();
        standing.sort_unstable();
        for car in standing {
            let number = self.begin(Kind::Breakdown, self.arc(car), self.position(car), Some(car));
            self.desk.breakdown_of.insert(car, number);
        }
    }

    /// Takes a vehicle off its lane, if cars park there: onto a place that is known to be free, or else one that nobody knew of.
    fn park(&mut self, car: u32) {
        let at = car as usize;
        let arc = self.arc(car);
        if self.cars.state[at] == State::Parked {
            return;
        }
        if self.cars.state[at] == State::Broken || self.network.class(arc) < Class::Secondary {
            self.desk.schedule(self.now_s + RETRY_S, Due::Park(car));
            return;
        }
        self.lanes.remove(&mut self.cars, car);
        self.cars.state[at] = State::Parked;
        self.cars.speed_ms[at] = 0.0;
        let free = self.desk.free_on.get(&arc).and_then(|numbers| numbers.first().copied());
        if let Some(number) = free {
            self.end(number);
        }
        let for_s = self.desk.span_s(self.settings.parked_mean_s);
        self.desk.schedule(self.now_s + for_s, Due::Leave(car));
    }

    /// Puts a parked vehicle back into its lane, as soon as there is a gap.
    fn leave(&mut self, car: u32) {
        let at = car as usize;
        let (lane, along_m) = (self.cars.lane[at], self.cars.along_m[at]);
        let behind =
            self.lanes.vehicles(&self.cars, lane).find(|other| self.cars.along_m[*other as usize] <= along_m);
        let ahead = match behind {
            Some(behind) => self.cars.ahead[behind as usize],
            None => self.lanes.last[lane as usize],
        };
        let (length_m, idm) = (self.settings.vehicle_length_m, self.settings.idm);
        let has_room = ahead == NONE || self.cars.along_m[ahead as usize] - length_m - along_m >= idm.gap_m;
        let is_let_in = behind.is_none_or(|behind| {
            let speed_ms = self.cars.speed_ms[behind as usize];
            let gap_m = along_m - length_m - self.cars.along_m[behind as usize];
            // Nobody has to brake for it harder than they like to.
            gap_m >= idm.gap_m + speed_ms * speed_ms / (2.0 * idm.deceleration)
        });
        if !has_room || !is_let_in {
            self.desk.schedule(self.now_s + RETRY_S, Due::Leave(car));
            return;
        }
        self.lanes.insert(&mut self.cars, car, lane, ahead);
        self.cars.state[at] = State::Driving;
        self.cars.waited_s[at] = 0.0;
        self.begin_trip(car);
        let arc = self.arc(car);
        let number = self.begin(Kind::FreeParking, arc, self.position(car), Some(car));
        self.desk.free_on.entry(arc).or_default().push(number);
        let for_s = self.desk.span_s(self.settings.free_place_mean_s);
        self.desk.schedule(self.now_s + for_s, Due::Taken(number));
    }

    /// Jams that begin and end.
    fn find_jams(&mut self) {
        let jams = self.settings.jams;
        let mut turning_s = std::mem::take(&mut self.desk.turning_s);
        let arcs = turning_s.par_iter_mut().with_min_len(4096).zip(&self.desk.jam_of).enumerate();
        let turned = arcs.filter_map(|(arc, (turning_s, jam))| {
            let arc = u32::try_from(arc).unwrap_or(NONE);
            let (count, sum_ms) = self.flow(arc);
            let limit_ms = self.network.limit_ms(arc);
            let least = f32::from(u16::try_from(jams.vehicles_min).unwrap_or(u16::MAX));
            let is_turning = if *jam == 0 {
                count >= least && sum_ms < count * limit_ms * jams.begins_below
            } else {
                count * 2.0 < least || sum_ms > count * limit_ms * jams.ends_above
            };
            *turning_s = if is_turning { *turning_s + 1.0 } else { 0.0 };
            (*turning_s > jams.for_s).then_some(arc)
        });
        let turned = turned.collect::<Vec<_>>();
        self.desk.turning_s = turning_s;
        for arc in turned {
            self.desk.turning_s[arc as usize] = 0.0;
            match std::mem::take(&mut self.desk.jam_of[arc as usize]) {
                0 => {
                    let middle = self.network.point(arc, self.network.length_m(arc) / 2.0);
                    self.desk.jam_of[arc as usize] = self.begin(Kind::Jam, arc, middle, None);
                }
                number => self.end(number),
            }
        }
    }

    /// A vehicle that has stood long before a full street takes another one.
    fn find_detours(&mut self) {
        for lane in 0..self.lanes.first.len() {
            let car = self.lanes.first[lane];
            if car == NONE || self.cars.waited_s[car as usize] < DETOUR_S {
                continue;
            }
            let arc = self.lanes.arc[lane];
            let slot_m = self.settings.vehicle_length_m + self.settings.idm.gap_m;
            let has_room = |arc: &u32| {
                let (_, last) = self.lanes.roomiest(&self.cars, *arc);
                last == NONE || self.cars.along_m[last as usize] > slot_m
            };
            if has_room(&self.cars.next[car as usize]) {
                continue;
            }
            let back = self.network.reverse(arc);
            let other = self
                .network
                .arcs_from(self.network.to(arc))
                .find(|next| Some(*next) != back && has_room(next));
            if let Some(other) = other {
                self.cars.next[car as usize] = other;
            }
        }
    }

    fn begin(&mut self, kind: Kind, arc: u32, position: [f64; 2], vehicle: Option<u32>) -> u64 {
        self.desk.numbers += 1;
        let number = self.desk.numbers;
        let limit_kmh = f64::from(self.network.limit_ms(arc)) * 3.6;
        let incident = Incident {
            number,
            kind,
            position,
            arc,
            street: self.network.name(arc).map(str::to_owned),
            from_s: self.now_s,
            until_s: None,
            speed_kmh: self.segment_speed(arc).map_or(limit_kmh, |speed_ms| f64::from(speed_ms) * 3.6),
            limit_kmh,
            vehicles: u32::try_from(millis(f64::from(self.flow(arc).0) / 1000.0)).unwrap_or(u32::MAX),
            vehicle,
        };
        self.changes.push(Change::Began(incident.clone()));
        self.desk.open.insert(number, incident);
        number
    }

    fn end(&mut self, number: u64) {
        if let Some(incident) = self.desk.end(number, self.now_s) {
            self.changes.push(Change::Ended(incident));
        }
    }
}

/// A time in whole milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are positive, and saturate"
)]
fn millis(time_s: f64) -> u64 {
    (time_s * 1000.0).round() as u64
}
