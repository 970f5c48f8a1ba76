//! The processor's engine: the oracle.

use std::sync::Arc as Shared;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kernels::traffic::{Arc, BEHIND, CROSSES, Car, ENTERS, FOLLOWS, FULL, Junction, NONE, Plan, Way};
use rayon::prelude::*;

use crate::Engine;
use crate::error::Error;
use crate::fleet::{Fleet, Settings, State, is_beside};
use crate::model::{
    ARCS_AHEAD, CAR_MM, CHANGE, CLEAR_MM, DETOUR, PATIENCE, SLOT_MM, STEPS_ADAPTED, STEPS_SNAPSHOT,
    TURN_LEAST, acceleration, claim, desired, free, group, groups, is_by_clock, is_closed, lanes, moved,
    speed_before, wanted, weight, whole,
};
use crate::roads::{Roads, number};
use crate::trips;

/// Traffic on the threads of the current `rayon` pool.
///
/// A step is the same whatever their number: vehicles see the state of the step before, and together they write only the greatest of claims and sets of
/// bits, for which no order matters.
#[derive(Debug)]
pub struct Processor {
    roads: Shared<Roads>,
    settings: Settings,
    step: u32,
    state: State,
    junctions: Vec<Junction>,
    /// Which groups of each junction ask for it, and from bit 8 on, which have waited long.
    asks: Vec<AtomicU32>,
    claims: Vec<AtomicU64>,
    /// The last vehicle of each lane; not there any more where it has left.
    tails: Vec<AtomicU32>,
    plans: Vec<Plan>,
    counts: Vec<AtomicU32>,
    weights: Vec<u32>,
    /// Weights by which whole routes are planned; none where nobody has a destination.
    snapshot: Vec<u32>,
    /// Each trip's route, and the way ahead.
    routes: Vec<Vec<u32>>,
    ahead: Vec<Vec<u32>>,
}

/// The limits of a vehicle's next step.
struct View {
    acceleration: f32,
    /// How far it may go.
    free_mm: i32,
    /// How fast it may be because of slower streets ahead.
    speed_max: i32,
    lane: u32,
    flags: u32,
}

impl Processor {
    /// Puts vehicles onto roads.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::TooManyRouted`]
    pub fn new(roads: &Shared<Roads>, settings: Settings) -> Result<Self, Error> {
        let Fleet { state, tails } = Fleet::place(roads, settings.check()?)?;
        let (arcs, trips) = (roads.arcs.len(), state.trips.len());
        Ok(Self {
            settings,
            step: 0,
            junctions: roads.junctions.clone(),
            asks: zeroed(roads.junctions.len()),
            claims: (0..tails.len()).map(|_| AtomicU64::new(0)).collect(),
            tails: tails.into_iter().map(AtomicU32::new).collect(),
            plans: vec![Plan::default(); state.cars.len()],
            counts: zeroed(arcs),
            weights: vec![0; arcs],
            snapshot: Vec::new(),
            routes: vec![Vec::new(); trips],
            ahead: vec![Vec::new(); trips],
            roads: Shared::clone(roads),
            state,
        })
    }

    /// Weights of all arcs, in milliseconds, when they were last looked at.
    #[must_use]
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    fn advance_once(&mut self) {
        if self.step.is_multiple_of(STEPS_ADAPTED) {
            self.adapt();
        }
        self.give();
        let mut plans = std::mem::take(&mut self.plans);
        plans.par_iter_mut().zip(0..self.settings.vehicles).for_each(|(plan, vehicle)| {
            *plan = self.plan(vehicle);
        });
        self.plans = plans;
        self.go();
        self.step += 1;
    }

    /// Weighs arcs by the vehicles on them, and finds the ways of trips again.
    fn adapt(&mut self) {
        let (roads, State { cars, ways, trips }) = (&*self.roads, &mut self.state);
        cars.par_iter().for_each(|car| {
            self.counts[car.arc as usize].fetch_add(1, Ordering::Relaxed);
        });
        let arcs = self.weights.par_iter_mut().zip(&roads.arcs).zip(&mut self.counts);
        arcs.for_each(|((weigh, arc), count)| *weigh = weight(arc, std::mem::take(count.get_mut())));
        for (trip, route) in trips.iter_mut().zip(&self.routes) {
            let vehicle = trip.vehicle as usize;
            trips::pass(roads, trip, route, cars[vehicle].arc, ways[vehicle].hop);
        }
        if self.step.is_multiple_of(STEPS_SNAPSHOT) && !trips.is_empty() {
            self.snapshot.clone_from(&self.weights);
        }
        for (trip, route) in trips::plan(roads, &self.snapshot, self.settings.seed, trips) {
            self.routes[trip] = route;
        }
        for ((trip, route), found) in trips.iter_mut().zip(&self.routes).zip(&mut self.ahead) {
            trips::ahead(roads, &self.weights, trip, route, &mut ways[trip.vehicle as usize], found);
        }
    }

    /// Gives junctions to those that have asked for them.
    fn give(&mut self) {
        let step = self.step;
        self.junctions.par_iter_mut().zip(&mut self.asks).for_each(|(junction, asks)| {
            let asks = std::mem::take(asks.get_mut());
            if asks != 0 {
                give(junction, asks, step);
            }
        });
    }

    /// Plans a vehicle's step from the state before it.
    fn plan(&self, vehicle: u32) -> Plan {
        let car = &self.state.cars[vehicle as usize];
        let arc = &self.roads.arcs[car.arc as usize];
        let speed = i32::from(car.speed);
        let desired_speed = desired(arc, car.factor);
        let free_share = free(speed, desired_speed);
        let ahead = self.state.cars.get(car.ahead as usize).filter(|ahead| is_beside(car, ahead));
        let mut view = match ahead {
            Some(ahead) => {
                let gap = signed(ahead.along_mm) - CAR_MM - signed(car.along_mm);
                View {
                    acceleration: acceleration(free_share, speed, gap, i32::from(ahead.speed)),
                    free_mm: gap - CLEAR_MM,
                    speed_max: i32::MAX,
                    lane: 0,
                    flags: FOLLOWS,
                }
            }
            None => self.look(vehicle, car, arc, free_share),
        };
        let (then, way_mm) = moved(speed, view.acceleration);
        let then = then.min(desired_speed).min(view.speed_max);
        let free_mm = view.free_mm.max(0);
        // Harder braking than the model asks for, so that nobody drives into anybody.
        let (then, way_mm) = if way_mm > free_mm { (then.min(2 * free_mm), free_mm) } else { (then, way_mm) };
        let mut along_mm = car.along_mm + way_mm.cast_unsigned();
        if along_mm > arc.length_mm {
            along_mm -= arc.length_mm;
            view.flags |= ENTERS;
            let lane = self.roads.lanes[self.state.ways[vehicle as usize].next as usize] + view.lane;
            self.claims[lane as usize].fetch_max(claim(vehicle, self.step), Ordering::Relaxed);
        }
        let byte = |number| u8::try_from(number).unwrap_or(u8::MAX);
        let speed = u16::try_from(then).unwrap_or(u16::MAX);
        Plan { along_mm, speed, lane: byte(view.lane), flags: byte(view.flags) }
    }

    /// The view of the first vehicle of a lane: the end of its arc, and vehicles on several arcs ahead.
    fn look(&self, vehicle: u32, car: &Car, own: &Arc, free: f32) -> View {
        let way = &self.state.ways[vehicle as usize];
        let speed = i32::from(car.speed);
        let most = i32::MAX;
        let mut view =
            View { acceleration: 1000.0 * free, free_mm: most, speed_max: most, lane: 0, flags: 0 };
        let wanted_mm = whole(wanted(speed, speed));
        // As if somebody stood there: further ahead nothing makes a difference.
        let horizon_mm = 2 * wanted_mm + speed;
        let (mut arc, mut lane) = (own, u32::from(car.lane));
        let mut to_end = signed(own.length_mm - car.along_mm);
        for nth in 0..ARCS_AHEAD {
            let junction = &self.junctions[arc.to as usize];
            let asks = nth == 0 && arc.limits & CROSSES != 0 && !is_by_clock(junction);
            if asks && to_end < wanted_mm + 5000 {
                let bits = if way.waited >= PATIENCE { 0x101 } else { 1 };
                self.asks[arc.to as usize].fetch_or(bits << group(arc), Ordering::Relaxed);
            }
            let next = match nth {
                _ if is_closed(junction, arc, self.step, car, to_end) => NONE,
                0 => way.next,
                _ => self.next(vehicle, arc, way.hop + nth),
            };
            let Some(there) = self.roads.arcs.get(next as usize) else {
                // One stops a little before the line, and not a whole gap.
                view.acceleration = view.acceleration.min(acceleration(free, speed, to_end + 1500, 0));
                view.free_mm = view.free_mm.min((to_end - 100).max(0));
                return view;
            };
            let then = desired(there, car.factor);
            if speed > then {
                view.speed_max = view.speed_max.min(speed_before(then, to_end));
            }
            let (next_lane, tail) = self.lane(next, there, lane);
            lane = next_lane;
            if nth == 0 {
                view.lane = lane;
                // No more than one end of an arc is passed in a step.
                view.free_mm = to_end + signed(there.length_mm);
                view.flags = if tail == NONE { 0 } else { BEHIND };
            }
            if tail != NONE && tail != vehicle {
                let last = &self.state.cars[tail as usize];
                let gap = to_end + signed(last.along_mm) - CAR_MM;
                let braking = acceleration(free, speed, gap, i32::from(last.speed));
                view.acceleration = view.acceleration.min(braking);
                view.free_mm = view.free_mm.min(gap - CLEAR_MM);
                if nth == 0 && last.along_mm < SLOT_MM {
                    view.flags |= FULL;
                }
                return view;
            }
            arc = there;
            to_end += signed(there.length_mm);
            if to_end > horizon_mm {
                break;
            }
        }
        view
    }

    /// The lane of an arc that a vehicle will enter, and the last one there, or none: its own lane, unless that is nearly full and another one has more room.
    fn lane(&self, number: u32, arc: &Arc, own: u32) -> (u32, u32) {
        let own = own.min(lanes(arc) - 1);
        let tail = self.tail(number, own);
        let room = |tail: u32| self.state.cars.get(tail as usize).map_or(u32::MAX, |car| car.along_mm);
        if lanes(arc) == 1 || room(tail) >= 30_000 {
            return (own, tail);
        }
        let mut best = (own, tail);
        for lane in 0..lanes(arc) {
            let tail = self.tail(number, lane);
            if tail == NONE {
                return (lane, NONE);
            }
            if room(tail) > room(best.1) {
                best = (lane, tail);
            }
        }
        best
    }

    /// The last vehicle of a lane, or none.
    fn tail(&self, arc: u32, lane: u32) -> u32 {
        let tail = self.tails[(self.roads.lanes[arc as usize] + lane) as usize].load(Ordering::Relaxed);
        let is_there = |car: &&Car| car.arc == arc && u32::from(car.lane) == lane;
        self.state.cars.get(tail as usize).filter(is_there).map_or(NONE, |_| tail)
    }

    /// The arc that a vehicle takes at the end of another, the `hop`-th that it has entered.
    fn next(&self, vehicle: u32, arc: &Arc, hop: u32) -> u32 {
        let told = self.settings.trip(vehicle).and_then(|trip| {
            let at = hop.wrapping_sub(self.state.trips[trip].from_hop);
            (at < self.state.trips[trip].ahead).then(|| self.ahead[trip][at as usize])
        });
        told.unwrap_or_else(|| self.roads.walk(self.settings.seed, vehicle, arc, hop, 0))
    }

    /// Moves all as they have planned, or to the ends of their arcs where others took the lanes.
    fn go(&mut self) {
        let mut cars = std::mem::take(&mut self.state.cars);
        let mut ways = std::mem::take(&mut self.state.ways);
        // Vehicles that leave the way that they were told.
        for trip in &mut self.state.trips {
            let vehicle = trip.vehicle as usize;
            let is_elsewhere = ways[vehicle].changes != 0;
            if is_elsewhere
                && enters(
                    &self.plans[vehicle],
                    &self.claims,
                    &self.roads,
                    &ways[vehicle],
                    trip.vehicle,
                    self.step,
                )
            {
                (trip.ahead, trip.is_last) = (0, 0);
            }
        }
        let all = cars.par_iter_mut().zip(&mut ways).zip(&self.plans).zip(0..self.settings.vehicles);
        all.for_each(|(((car, way), plan), vehicle)| self.go_on(car, way, plan, vehicle));
        (self.state.cars, self.state.ways) = (cars, ways);
    }

    fn go_on(&self, car: &mut Car, way: &mut Way, plan: &Plan, vehicle: u32) {
        if u32::from(plan.flags) & FOLLOWS == 0 {
            car.ahead = NONE;
        }
        if enters(plan, &self.claims, &self.roads, way, vehicle, self.step) {
            let lane = (self.roads.lanes[way.next as usize] + u32::from(plan.lane)) as usize;
            let arc = &self.roads.arcs[way.next as usize];
            let before = self.tails[lane].swap(vehicle, Ordering::Relaxed);
            car.ahead = if u32::from(plan.flags) & BEHIND != 0 { before } else { NONE };
            (car.arc, car.lane, car.along_mm) = (way.next, plan.lane, plan.along_mm);
            let speed = i32::from(plan.speed).min(desired(arc, car.factor));
            car.speed = u16::try_from(speed).unwrap_or(u16::MAX);
            *way = Way { hop: way.hop + 1, ..Way::default() };
            way.next = self.next(vehicle, arc, way.hop);
            return;
        }
        if u32::from(plan.flags) & ENTERS != 0 {
            (car.along_mm, car.speed) = (self.roads.arcs[car.arc as usize].length_mm, 0);
        } else {
            (car.along_mm, car.speed) = (plan.along_mm, plan.speed);
        }
        way.waited = if car.speed >= 500 { 0 } else { way.waited.saturating_add(1) };
        let is_full = u32::from(plan.flags) & FULL != 0;
        if is_full && way.waited >= DETOUR && way.waited.is_multiple_of(DETOUR) {
            way.changes = way.changes.wrapping_add(1);
            let arc = &self.roads.arcs[car.arc as usize];
            way.next = self.roads.walk(self.settings.seed, vehicle, arc, way.hop, way.changes);
        }
    }
}

impl Engine for Processor {
    fn advance(&mut self, steps: u32) -> Result<(), Error> {
        for _ in 0..steps {
            self.advance_once();
        }
        Ok(())
    }

    fn state(&mut self) -> Result<State, Error> {
        Ok(self.state.clone())
    }

    fn bytes(&self) -> u64 {
        let word = size_of::<u32>();
        let vehicles = self.plans.len() * (size_of::<Car>() + size_of::<Way>() + size_of::<Plan>());
        // With the first lane, weight and count of each arc.
        let arcs = self.weights.len() * (size_of::<Arc>() + 3 * word);
        // As they were at the beginning and as they are, with the first arc of each node and the asks.
        let nodes = self.junctions.len() * (2 * size_of::<Junction>() + 2 * word);
        // Claims and tails.
        (vehicles + arcs + nodes + self.claims.len() * (size_of::<u64>() + word)) as u64
    }
}

/// Whether a vehicle passes the end of its arc, and nobody else takes the lane.
fn enters(plan: &Plan, claims: &[AtomicU64], roads: &Roads, way: &Way, vehicle: u32, step: u32) -> bool {
    u32::from(plan.flags) & ENTERS != 0 && {
        let lane = roads.lanes[way.next as usize] + u32::from(plan.lane);
        claims[lane as usize].load(Ordering::Relaxed) == claim(vehicle, step)
    }
}

/// Gives a junction to one of those that asked for it.
fn give(junction: &mut Junction, asks: u32, step: u32) {
    let open = u32::from(junction.open);
    let rank = |group: u32| junction.ranks >> (4 * group) & 15;
    let is_late = |group: u32| asks >> (8 + group) & 1 != 0;
    // Equal ones take turns.
    let others = (1..groups(junction)).map(|turn| (open + turn) % groups(junction));
    let asking = others.filter(|group| asks >> group & 1 != 0);
    let Some(best) = asking.min_by_key(|group| (!is_late(*group), rank(*group))) else { return };
    let is_used = asks >> open & 1 != 0;
    let is_turn = step >= junction.since + TURN_LEAST && (rank(best) <= rank(open) || is_late(best));
    if !is_used || is_turn {
        junction.open = u16::try_from(best).unwrap_or(0);
        junction.since = step;
        junction.ready = step + if is_used { CHANGE } else { 0 };
    }
}

fn zeroed(count: usize) -> Vec<AtomicU32> {
    (0..number(count)).map(|_| AtomicU32::new(0)).collect()
}

/// A length, which is below 2^31.
fn signed(length_mm: u32) -> i32 {
    length_mm.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group 0 of rank 2, group 1 of rank 2, group 2 of rank 6; the first has been open since step 10.
    fn junction() -> Junction {
        Junction { ranks: 0x622, kind: 3, open: 0, since: 10, ready: 0 }
    }

    fn given(asks: u32, step: u32) -> (u16, u32) {
        let mut junction = junction();
        give(&mut junction, asks, step);
        (junction.open, junction.ready)
    }

    #[test]
    fn a_junction_goes_to_those_that_ask() {
        // Nobody else is there: at once.
        assert_eq!(given(0b100, 11), (2, 11));
        // The more important street first.
        assert_eq!(given(0b110, 11), (1, 11));
        // Equal ones take turns of four seconds, with one in between.
        assert_eq!(given(0b011, 17), (0, 0));
        assert_eq!(given(0b011, 18), (1, 20));
        // The lesser one waits until it has waited long.
        assert_eq!(given(0b101, 30), (0, 0));
        assert_eq!(given(0b100 << 8 | 0b101, 30), (2, 32));
        // It stays as it is where nobody else asks.
        assert_eq!(given(0b001, 99), (0, 0));
    }

    #[test]
    fn a_light_is_green_for_one_group_at_a_time() {
        use kernels::traffic::SIGNALS;
        let kind = u16::try_from(SIGNALS | 2).unwrap();
        let junction = Junction { kind, ready: 7, ..Junction::default() };
        let arcs = [0, 1].map(|group| Arc { limits: group << 18 | CROSSES, ..Arc::default() });
        let car = Car::default();
        let mut green = [0; 2];
        for step in 0..116 {
            let open = arcs.each_ref().map(|arc| u32::from(!is_closed(&junction, arc, step, &car, 1000)));
            assert!(open[0] + open[1] <= 1, "{step}");
            green = [green[0] + open[0], green[1] + open[1]];
        }
        assert_eq!(green, [50, 50]);
        // One that cannot stop any more drives on.
        let fast = Car { speed: 14_000, ..car };
        let red = (0..116).find(|step| is_closed(&junction, &arcs[0], *step, &car, 1000)).unwrap();
        assert!(!is_closed(&junction, &arcs[0], red, &fast, 20_000));
        assert!(is_closed(&junction, &arcs[0], red, &fast, 40_000));
    }
}
