//! A counting matcher: for each attribute it finds the constraints that the value satisfies and counts them per
//! filter; a filter whose count is complete is satisfied.
//!
//! Source: Carzaniga and Wolf, "Forwarding in a content-based network", SIGCOMM 2003, the algorithm of SFF,
//! which the paper compares with. As there, constraints are indexed by name and operator in sorted arrays.
//! Ours counts an interval as one constraint, keeps a filter's target beside its number in the posting, stamps
//! counters with the run instead of clearing them, and numbers the filters by their names, so that the
//! counters that one event touches lie together. What becomes of location is up to [`Location`].

mod postings;

use super::{Circle, Contents, Interval, Prepared};
use postings::Postings;

/// Low bits of a counter that count; the others are the run's number.
const COUNT_BITS: u32 = 5;
/// Low bits of a posting that are the filter; the others are how many constraints it has.
const FILTER_BITS: u32 = 27;

/// What the matcher makes of the filters' location, and so which part of the problem it solves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nothing: it finds the filters whose content fits, wherever they are.
    Ignored,
    /// It tests the circles of the filters whose content fits.
    Afterwards,
    /// Two more names, x and y, with an interval each for every filter, in the manner of the paper's Table 2. A box
    /// is all that intervals can say, so the circles of the filters whose box and content fit are tested: the answer
    /// is then that of the whole problem, and the few filters that are left take no time to speak of.
    Intervals,
    /// Boxes as in `Intervals`, by a comparison for each of the four sides, for a matcher that knows no intervals, like SFF:
    /// each is satisfied by half of the filters.
    Comparisons,
}

/// The matcher.
#[derive(Debug)]
pub struct Counting {
    location: Location,
    /// The last two are x and y.
    names: Vec<Postings>,
    /// By filter: run and count.
    counters: Vec<u16>,
    run: u16,
    owners: Owners,
    /// By the caller's filter: its posting. Empty where location has none.
    postings: Vec<u32>,
    /// Filters that any content satisfies.
    unconstrained: Vec<u32>,
    satisfied: Vec<u32>,
}

/// By filter: what is found with it.
#[derive(Debug)]
enum Owners {
    /// The caller's number of it.
    Filters(Vec<u32>),
    /// Where it is relevant, and whose it is.
    Places(Vec<Place>),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    circle: Circle,
    subscription: u32,
}

impl Counting {
    /// Indexes the filters of these contents and circles.
    ///
    /// # Errors
    /// With 2^27 filters or more, or more than 31 constraints in one, those of its location included.
    pub fn new(
        contents: &Contents,
        circles: &[Circle],
        names_count: usize,
        filters_per_subscription: u32,
        location: Location,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(contents.filters_count() < 1 << FILTER_BITS, "too many filters for a posting");
        let mut lists: Vec<Vec<(Interval, u32)>> = vec![Vec::new(); names_count + 2];
        let (mut unconstrained, mut intervals) = (Vec::new(), Vec::new());
        let mut postings = if location.is_encoded() { vec![0; contents.filters_count()] } else { Vec::new() };
        let order = by_names(contents);
        for (number, filter) in (0..).zip(&order) {
            intervals.clear();
            intervals.extend_from_slice(contents.of(*filter as usize));
            location.encode(&circles[*filter as usize], names_count, &mut intervals);
            anyhow::ensure!(intervals.len() < 1 << COUNT_BITS, "too many constraints to count");
            if intervals.is_empty() {
                unconstrained.push(number);
            }
            let posting = u32::try_from(intervals.len())? << FILTER_BITS | number;
            if let Some(own) = postings.get_mut(*filter as usize) {
                *own = posting;
            }
            for interval in &intervals {
                lists[interval.name as usize].push((*interval, posting));
            }
        }
        let place = |filter: &u32| Place {
            circle: circles[*filter as usize],
            subscription: filter / filters_per_subscription,
        };
        Ok(Self {
            location,
            // Each list goes when its arrays are there: at ten million filters both would fill the memory.
            names: lists.into_iter().map(|list| Postings::new(&list)).collect(),
            counters: vec![0; contents.filters_count()],
            run: 0,
            owners: match location {
                Location::Ignored => Owners::Filters(order),
                Location::Afterwards | Location::Intervals | Location::Comparisons => {
                    Owners::Places(order.iter().map(place).collect())
                }
            },
            postings,
            unconstrained,
            satisfied: Vec::new(),
        })
    }

    /// Replaces `found` by the subscriptions, ascending and each once, that the event satisfies; with
    /// [`Location::Ignored`] by the filters that its content satisfies, in no order.
    pub fn find(&mut self, event: &Prepared, found: &mut Vec<u32>) {
        let base = self.next_run();
        self.satisfied.clear();
        self.satisfied.extend_from_slice(&self.unconstrained);
        let (counters, satisfied) = (&mut self.counters, &mut self.satisfied);
        for (name, value) in &event.values {
            self.names[*name as usize].visit(*value, |postings| count(postings, base, counters, satisfied));
        }
        if self.location.is_encoded() {
            let axes = self.names.len() - 2;
            for (postings, value) in self.names[axes..].iter().zip(event.at) {
                postings.visit(value, |postings| count(postings, base, counters, satisfied));
            }
        }
        found.clear();
        match &self.owners {
            Owners::Filters(filters) => {
                found.extend(self.satisfied.iter().map(|filter| filters[*filter as usize]));
            }
            Owners::Places(places) => {
                for filter in &self.satisfied {
                    let place = &places[*filter as usize];
                    if place.circle.holds(event.at) {
                        found.push(place.subscription);
                    }
                }
                found.sort_unstable();
                found.dedup();
            }
        }
    }

    /// Moves a filter's circle. Where location is encoded, its constraints are removed from the sorted arrays and
    /// inserted again: at its best what the structure allows, for all entries between the old place and the new
    /// one shift. SFF builds all arrays anew, which [`Self::new`] does. Says whether it was there.
    pub fn relocate(&mut self, filter: u32, to: Circle) -> bool {
        let (Owners::Places(places), Some(posting)) = (&mut self.owners, self.postings.get(filter as usize))
        else {
            return false;
        };
        let circle = &mut places[(posting & ((1 << FILTER_BITS) - 1)) as usize].circle;
        let axes = self.names.len() - 2;
        let [mut before, mut after] = [Vec::with_capacity(4), Vec::with_capacity(4)];
        self.location.encode(circle, axes, &mut before);
        self.location.encode(&to, axes, &mut after);
        *circle = to;
        let mut constraints = before.iter().zip(&after);
        constraints.all(|(from, to)| self.names[from.name as usize].relocate(*posting, from, to))
    }

    /// What counters of the next run start from; counters of earlier runs are smaller.
    fn next_run(&mut self) -> u16 {
        self.run += 1;
        if self.run == 1 << (16 - COUNT_BITS) {
            self.counters.fill(0);
            self.run = 1;
        }
        self.run << COUNT_BITS
    }
}

impl Location {
    fn is_encoded(self) -> bool {
        matches!(self, Self::Intervals | Self::Comparisons)
    }

    /// Appends the constraints that say where a filter is relevant; x and y are the names after the others.
    fn encode(self, circle: &Circle, names_count: usize, intervals: &mut Vec<Interval>) {
        for (name, [low, high]) in (names_count..).zip(circle.sides()) {
            let name = u32::try_from(name).expect("names have 32-bit numbers");
            match self {
                Self::Ignored | Self::Afterwards => {}
                Self::Intervals => intervals.push(Interval { name, low, high }),
                Self::Comparisons => {
                    intervals.push(Interval { name, low, high: f64::INFINITY });
                    intervals.push(Interval { name, low: f64::NEG_INFINITY, high });
                }
            }
        }
    }
}

/// The filters, those with the same names next to each other.
fn by_names(contents: &Contents) -> Vec<u32> {
    let mut names = Vec::new();
    // A key holds eight names; where they agree the others matter little.
    let mut key = |filter: u32| {
        names.clear();
        names.extend(contents.of(filter as usize).iter().map(|interval| interval.name));
        names.sort_unstable();
        names.iter().take(8).fold(0, |key, name| key << 8 | u64::from(*name))
    };
    let mut order: Vec<u32> = (0..).take(contents.filters_count()).collect();
    order.sort_by_cached_key(|filter| key(*filter));
    order
}

/// The hot loop.
#[inline]
fn count(postings: &[u32], base: u16, counters: &mut [u16], satisfied: &mut Vec<u32>) {
    for posting in postings {
        let filter = posting & ((1 << FILTER_BITS) - 1);
        let counter = &mut counters[filter as usize];
        *counter = (*counter).max(base) + 1;
        if u32::from(*counter - base) == posting >> FILTER_BITS {
            satisfied.push(filter);
        }
    }
}
