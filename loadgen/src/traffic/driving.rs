//! A step: everybody plans, moves, and passes from arc to arc.

use rayon::prelude::*;

use super::Traffic;
use super::following::{CLEAR_M, Obstacle, moved};
use super::junctions::length_m;
use super::road::State;
use streets::NONE;

/// How many arcs ahead the first of a lane looks, at most; and over how many it passes in a step.
const ARCS_AHEAD: u32 = 5;
/// How near to the end of its arc one stops who may not go on, in metres.
const STOP_M: f32 = 0.5;
/// How many vehicles a thread takes at a time.
const CHUNK: usize = 2048;

/// Where a vehicle will be, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Planned {
    /// From the beginning of its arc; past the end of the arc for one that goes on to the next.
    along_m: f32,
    speed_ms: f32,
}

/// What limits one who drives first in its lane.
struct View {
    acceleration: f32,
    /// How far it may go.
    free_m: f32,
    /// How fast it may be for what is slower ahead.
    speed_max_ms: f32,
}

impl Traffic {
    /// Lets at most [`super::STEP_MAX_S`] go by.
    pub(super) fn advance(&mut self, dt_s: f32) {
        let second = self.now_s.floor();
        self.junctions.turn(&self.network, &self.lanes, &self.cars, &self.settings, self.now_s);
        let mut planned = std::mem::take(&mut self.planned);
        planned.par_iter_mut().with_min_len(CHUNK).zip(0..self.vehicles_count()).for_each(
            |(planned, car)| {
                *planned = self.plan(car, dt_s);
            },
        );
        let going_on = self.move_all(&planned, dt_s);
        for car in going_on {
            self.pass(car, planned[car as usize], dt_s);
        }
        self.planned = planned;
        self.now_s += f64::from(dt_s);
        if self.now_s.floor() > second {
            self.every_second();
        }
    }

    /// Moves all within their arcs. Gives those that pass the end, in the order of their numbers.
    fn move_all(&mut self, planned: &[Planned], dt_s: f32) -> Vec<u32> {
        let (network, lanes, lane) = (&self.network, &self.lanes, &self.cars.lane);
        let cars = self.cars.along_m.par_iter_mut().zip(&mut self.cars.speed_ms).zip(&mut self.cars.waited_s);
        let cars = cars.zip(planned).zip(lane).with_min_len(CHUNK).enumerate();
        cars.filter_map(|(car, ((((along_m, speed_ms), waited_s), planned), lane))| {
            let end_m = length_m(network, lanes.arc[*lane as usize]);
            *along_m = planned.along_m.min(end_m);
            *speed_ms = planned.speed_ms;
            *waited_s = if planned.speed_ms < 0.5 { *waited_s + dt_s } else { 0.0 };
            (planned.along_m > end_m).then(|| u32::try_from(car).unwrap_or(NONE))
        })
        .collect()
    }

    /// What a vehicle does in a step, from the state before it.
    #[inline]
    fn plan(&self, car: u32, dt_s: f32) -> Planned {
        let at = car as usize;
        let (along_m, speed_ms) = (self.cars.along_m[at], self.cars.speed_ms[at]);
        let state = self.cars.state[at];
        if state == State::Parked {
            return Planned { along_m, speed_ms: 0.0 };
        }
        let arc = self.lanes.arc[self.cars.lane[at] as usize];
        let desired_ms = self.network.limit_ms(arc) * self.cars.factor[at];
        let idm = &self.settings.idm;
        let ahead = self.cars.ahead[at];
        let view = if ahead == NONE {
            self.look_ahead(car, arc, desired_ms)
        } else {
            let gap_m = self.rear_m(ahead) - along_m;
            let obstacle = Obstacle { gap_m, speed_ms: self.cars.speed_ms[ahead as usize] };
            let acceleration = idm.acceleration(speed_ms, desired_ms, Some(obstacle));
            View { acceleration, free_m: gap_m - CLEAR_M, speed_max_ms: f32::INFINITY }
        };
        let acceleration = match state {
            State::Broken => view.acceleration.min(-idm.deceleration),
            State::Driving | State::Parked => view.acceleration,
        };
        let (then_ms, way_m) = moved(speed_ms, acceleration, dt_s);
        let then_ms = then_ms.min(desired_ms).min(view.speed_max_ms);
        let free_m = view.free_m.max(0.0);
        if way_m <= free_m {
            Planned { along_m: along_m + way_m, speed_ms: then_ms }
        } else {
            // Harder braking than the model asks for, so that nobody drives into anybody.
            Planned { along_m: along_m + free_m, speed_ms: then_ms.min(free_m / dt_s) }
        }
    }

    /// Where the rear of a vehicle is, from the beginning of its arc; below 0 while it is still leaving the one before.
    #[inline]
    fn rear_m(&self, car: u32) -> f32 {
        self.cars.along_m[car as usize] - self.settings.vehicle_length_m
    }

    /// What the first of a lane sees: the end of its arc, and over several arcs who drives there.
    fn look_ahead(&self, car: u32, arc: u32, desired_ms: f32) -> View {
        let at = car as usize;
        let (idm, speed_ms) = (&self.settings.idm, self.cars.speed_ms[at]);
        // As if somebody stood there: further ahead nothing makes a difference.
        let horizon_m = 2.0 * idm.wanted_gap_m(speed_ms, speed_ms) + speed_ms;
        let mut view = View {
            acceleration: idm.acceleration(speed_ms, desired_ms, None),
            free_m: f32::INFINITY,
            speed_max_ms: f32::INFINITY,
        };
        let mut arc = arc;
        let mut to_end_m = length_m(&self.network, arc) - self.cars.along_m[at];
        for step in 0..ARCS_AHEAD {
            if self.junctions.is_closed(arc, self.now_s, speed_ms, to_end_m) {
                // One stops a little before the line, and not a whole gap.
                let obstacle = Obstacle { gap_m: to_end_m + idm.gap_m - STOP_M, speed_ms: 0.0 };
                view.acceleration =
                    view.acceleration.min(idm.acceleration(speed_ms, desired_ms, Some(obstacle)));
                // Not to the very end, which rounding might place a little further.
                view.free_m = view.free_m.min(to_end_m - 0.1);
                break;
            }
            let hop = self.cars.hop[at] + step;
            let next = match step {
                0 => self.cars.next[at],
                _ => self.goals.next(&self.network, car, self.cars.goal[at], arc, hop),
            };
            let then_ms = self.network.limit_ms(next) * self.cars.factor[at];
            if speed_ms > then_ms {
                let braking = 2.0 * idm.deceleration * to_end_m.max(0.0);
                view.speed_max_ms = view.speed_max_ms.min((then_ms * then_ms + braking).sqrt());
            }
            let (_, last) = self.lanes.roomiest(&self.cars, next);
            if last != NONE && last != car {
                let gap_m = to_end_m + self.rear_m(last);
                let obstacle = Obstacle { gap_m, speed_ms: self.cars.speed_ms[last as usize] };
                view.acceleration =
                    view.acceleration.min(idm.acceleration(speed_ms, desired_ms, Some(obstacle)));
                view.free_m = view.free_m.min(gap_m - CLEAR_M);
                break;
            }
            arc = next;
            to_end_m += length_m(&self.network, arc);
            if to_end_m > horizon_m {
                break;
            }
        }
        view
    }

    /// Moves a vehicle past the end of its arc, as far as there is room now: those before it in the order may have taken it.
    fn pass(&mut self, car: u32, planned: Planned, dt_s: f32) {
        let at = car as usize;
        let network = std::sync::Arc::clone(&self.network);
        let mut over_m = planned.along_m - length_m(&network, self.arc(car));
        for _ in 0..ARCS_AHEAD {
            let next = self.cars.next[at];
            let (lane, last) = self.lanes.roomiest(&self.cars, next);
            // On a street that comes back to where it began one may be behind oneself, and alone.
            let last = if last == car { NONE } else { last };
            let room_m = if last == NONE { f32::INFINITY } else { self.rear_m(last) - CLEAR_M };
            if room_m < 0.0 {
                self.cars.speed_ms[at] = 0.0;
                self.cars.waited_s[at] += dt_s;
                return;
            }
            self.lanes.remove(&mut self.cars, car);
            self.lanes.insert(&mut self.cars, car, lane, last);
            self.enter(car, next);
            let end_m = length_m(&network, next);
            self.cars.along_m[at] = over_m.min(room_m).min(end_m);
            let desired_ms = network.limit_ms(next) * self.cars.factor[at];
            let mut speed_ms = self.cars.speed_ms[at].min(desired_ms);
            if room_m < over_m {
                speed_ms = speed_ms.min(self.cars.speed_ms[last as usize]);
            }
            self.cars.speed_ms[at] = speed_ms;
            over_m -= end_m;
            // The plan ended at the first junction that it may not cross.
            if over_m <= 0.0 || room_m < over_m + end_m {
                return;
            }
        }
    }

    /// What a vehicle does first on another arc: it looks where to go next.
    fn enter(&mut self, car: u32, arc: u32) {
        let at = car as usize;
        self.cars.hop[at] = self.cars.hop[at].wrapping_add(1);
        if self.goals.is_reached(self.cars.goal[at], self.network.to(arc)) {
            self.goals.leave(self.cars.goal[at]);
            self.cars.goal[at] = self.goals.pick(car, self.cars.hop[at]);
            self.arrive(car);
        }
        self.cars.next[at] = self.goals.next(&self.network, car, self.cars.goal[at], arc, self.cars.hop[at]);
    }
}
