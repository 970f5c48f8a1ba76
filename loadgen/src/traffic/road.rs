//! Who drives where: vehicles and lanes in flat arrays, each lane a list from its end to its beginning.

use streets::{NONE, Network};

/// What a vehicle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// It drives, or waits to.
    Driving,
    /// It has broken down, and stands where it is or is about to.
    Broken,
    /// It is parked beside its lane, and in nobody's way.
    Parked,
}

/// The lanes of all arcs, those of an arc side by side.
#[derive(Debug)]
pub(super) struct Lanes {
    /// The lanes of arc a are `start[a]..start[a + 1]`.
    start: Vec<u32>,
    pub(super) arc: Vec<u32>,
    /// The vehicle nearest to the end of each.
    pub(super) first: Vec<u32>,
    /// The vehicle nearest to its beginning.
    pub(super) last: Vec<u32>,
}

/// All vehicles, by number.
#[derive(Debug, Default)]
pub(super) struct Cars {
    pub(super) state: Vec<State>,
    /// The lane; of a parked one, the lane beside it.
    pub(super) lane: Vec<u32>,
    /// Where its front is, from the beginning of the arc.
    pub(super) along_m: Vec<f32>,
    pub(super) speed_ms: Vec<f32>,
    /// The desired speed is the limit times this.
    pub(super) factor: Vec<f32>,
    /// For how long it has stood.
    pub(super) waited_s: Vec<f32>,
    /// Who drives before it in its lane.
    pub(super) ahead: Vec<u32>,
    /// Who drives behind it in its lane.
    pub(super) behind: Vec<u32>,
    /// The arc that it takes next.
    pub(super) next: Vec<u32>,
    /// How many arcs it has entered.
    pub(super) hop: Vec<u32>,
    /// Which of the shared destinations it drives to.
    pub(super) goal: Vec<u16>,
}

impl Lanes {
    pub(super) fn of(network: &Network) -> Self {
        let mut start = vec![0];
        let mut arc = Vec::new();
        for number in 0..u32::try_from(network.arcs_count()).unwrap_or(NONE) {
            arc.extend(std::iter::repeat_n(number, usize::from(network.lanes(number))));
            start.push(u32::try_from(arc.len()).expect("at most four lanes on each of a network's arcs"));
        }
        Self { start, first: vec![NONE; arc.len()], last: vec![NONE; arc.len()], arc }
    }

    pub(super) fn of_arc(&self, arc: u32) -> std::ops::Range<u32> {
        self.start[arc as usize]..self.start[arc as usize + 1]
    }

    /// The lane of an arc that has most room at its beginning, and the vehicle that is last there.
    #[inline]
    pub(super) fn roomiest(&self, cars: &Cars, arc: u32) -> (u32, u32) {
        let mut best = (self.start[arc as usize], NONE);
        let mut best_m = f32::NEG_INFINITY;
        for lane in self.of_arc(arc) {
            let last = self.last[lane as usize];
            if last == NONE {
                return (lane, NONE);
            }
            if cars.along_m[last as usize] > best_m {
                best_m = cars.along_m[last as usize];
                best = (lane, last);
            }
        }
        best
    }

    /// The vehicles of a lane, from its end to its beginning.
    pub(super) fn vehicles<'a>(&self, cars: &'a Cars, lane: u32) -> impl Iterator<Item = u32> + 'a {
        let first = Some(self.first[lane as usize]).filter(|car| *car != NONE);
        std::iter::successors(first, |car| Some(cars.behind[*car as usize]).filter(|car| *car != NONE))
    }

    /// Puts a vehicle into a lane, behind `ahead` (none: before all).
    pub(super) fn insert(&mut self, cars: &mut Cars, car: u32, lane: u32, ahead: u32) {
        let behind = match cars.behind.get(ahead as usize) {
            Some(behind) => *behind,
            None => self.first[lane as usize],
        };
        cars.lane[car as usize] = lane;
        (cars.ahead[car as usize], cars.behind[car as usize]) = (ahead, behind);
        self.join(cars, lane, ahead, car);
        self.join(cars, lane, car, behind);
    }

    /// Takes a vehicle out of its lane.
    pub(super) fn remove(&mut self, cars: &mut Cars, car: u32) {
        let (ahead, behind) = (cars.ahead[car as usize], cars.behind[car as usize]);
        let lane = cars.lane[car as usize];
        self.join(cars, lane, ahead, behind);
    }

    /// Makes two vehicles neighbours; either may be none, the end of the list.
    fn join(&mut self, cars: &mut Cars, lane: u32, ahead: u32, behind: u32) {
        match cars.behind.get_mut(ahead as usize) {
            Some(link) => *link = behind,
            None => self.first[lane as usize] = behind,
        }
        match cars.ahead.get_mut(behind as usize) {
            Some(link) => *link = ahead,
            None => self.last[lane as usize] = ahead,
        }
    }
}
