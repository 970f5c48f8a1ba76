//! A counting matcher: for each attribute it finds the constraints that the value satisfies and counts them per
//! filter; a filter whose count is complete is satisfied.
//!
//! Source: Carzaniga and Wolf, "Forwarding in a content-based network", SIGCOMM 2003, the algorithm of SFF,
//! which the paper compares with. As there, constraints are indexed by name and operator in sorted arrays.
//! Ours counts an interval as one constraint, keeps a filter's target beside its number in the posting, stamps
//! counters with the run instead of clearing them, and numbers the filters by their names, so that the
//! counters that one event touches lie together. Location is checked for satisfied filters.

use super::{Circle, Contents, Interval, Prepared};

/// Low bits of a counter that count; the others are the run's number.
const COUNT_BITS: u32 = 5;
/// Low bits of a posting that are the filter; the others are how many constraints it has.
const FILTER_BITS: u32 = 27;

/// The constraints on one name with one kind of operator.
#[derive(Debug, Default)]
struct Sorted {
    /// What the array is sorted by, apart from the rest for the binary search.
    keys: Vec<f64>,
    postings: Vec<u32>,
}

/// The constraints on one name.
#[derive(Debug, Default)]
struct Postings {
    /// `< <=`: by their upper bound.
    at_most: Sorted,
    /// `> >=`: by their lower bound.
    at_least: Sorted,
    /// `BETWEEN`, `=`: by their lower bound, with the upper one beside.
    within: Sorted,
    within_highs: Vec<f64>,
}

/// The matcher.
#[derive(Debug)]
pub struct Counting {
    names: Vec<Postings>,
    /// By filter: run and count.
    counters: Vec<u16>,
    run: u16,
    /// By filter.
    places: Vec<Place>,
    /// Filters that any content satisfies.
    unconstrained: Vec<u32>,
    satisfied: Vec<u32>,
}

/// Where a filter is relevant, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Place {
    centre: [f64; 2],
    radius_sq: f64,
    subscription: u32,
}

impl Counting {
    /// Indexes the filters of these contents and circles.
    ///
    /// # Errors
    /// With 2^27 filters or more, or more than 31 constraints in one.
    pub fn new(
        contents: &Contents,
        circles: &[Circle],
        names_count: usize,
        filters_per_subscription: u32,
    ) -> anyhow::Result<Self> {
        anyhow::ensure!(contents.filters_count() < 1 << FILTER_BITS, "too many filters for a posting");
        let mut lists: Vec<[Vec<(Interval, u32)>; 3]> =
            (0..names_count).map(|_| Default::default()).collect();
        let mut unconstrained = Vec::new();
        let order = by_names(contents);
        for (number, filter) in (0..).zip(&order) {
            let intervals = contents.of(*filter as usize);
            anyhow::ensure!(intervals.len() < 1 << COUNT_BITS, "too many constraints to count");
            if intervals.is_empty() {
                unconstrained.push(number);
            }
            for interval in intervals {
                let posting = u32::try_from(intervals.len())? << FILTER_BITS | number;
                let kind = match (interval.low.is_infinite(), interval.high.is_infinite()) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => 2,
                };
                lists[interval.name as usize][kind].push((*interval, posting));
            }
        }
        let place = |filter: &u32| {
            let Circle { centre, radius_m } = circles[*filter as usize];
            let subscription = filter / filters_per_subscription;
            Place { centre, radius_sq: radius_m * radius_m, subscription }
        };
        Ok(Self {
            names: lists.into_iter().map(Postings::new).collect(),
            counters: vec![0; contents.filters_count()],
            run: 0,
            places: order.iter().map(place).collect(),
            unconstrained,
            satisfied: Vec::new(),
        })
    }

    /// Replaces `found` by the subscriptions, ascending and each once, that the event satisfies.
    pub fn find(&mut self, event: &Prepared, found: &mut Vec<u32>) {
        let base = self.next_run();
        self.satisfied.clear();
        self.satisfied.extend_from_slice(&self.unconstrained);
        for (name, value) in &event.values {
            let postings = &self.names[*name as usize];
            let (counters, satisfied) = (&mut self.counters, &mut self.satisfied);
            let at_most = postings.at_most.keys.partition_point(|high| high < value);
            count(&postings.at_most.postings[at_most..], base, counters, satisfied);
            let at_least = postings.at_least.keys.partition_point(|low| low <= value);
            count(&postings.at_least.postings[..at_least], base, counters, satisfied);
            let within = postings.within.keys.partition_point(|low| low <= value);
            for (posting, high) in postings.within.postings[..within].iter().zip(&postings.within_highs) {
                if value <= high {
                    count(std::slice::from_ref(posting), base, counters, satisfied);
                }
            }
        }
        found.clear();
        let [x, y] = event.at;
        for filter in &self.satisfied {
            let place = &self.places[*filter as usize];
            let (dx, dy) = (x - place.centre[0], y - place.centre[1]);
            if dx * dx + dy * dy <= place.radius_sq {
                found.push(place.subscription);
            }
        }
        found.sort_unstable();
        found.dedup();
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

impl Postings {
    fn new([mut at_most, mut at_least, mut within]: [Vec<(Interval, u32)>; 3]) -> Self {
        // By filter within equal keys, so that counters are met in their order where that is possible.
        at_most.sort_by(|a, b| a.0.high.total_cmp(&b.0.high).then(a.1.cmp(&b.1)));
        at_least.sort_by(|a, b| a.0.low.total_cmp(&b.0.low).then(a.1.cmp(&b.1)));
        within.sort_by(|a, b| a.0.low.total_cmp(&b.0.low).then(a.1.cmp(&b.1)));
        let sorted = |list: &[(Interval, u32)], key: fn(&Interval) -> f64| Sorted {
            keys: list.iter().map(|(interval, _)| key(interval)).collect(),
            postings: list.iter().map(|(_, posting)| *posting).collect(),
        };
        Self {
            at_most: sorted(&at_most, |interval| interval.high),
            at_least: sorted(&at_least, |interval| interval.low),
            within: sorted(&within, |interval| interval.low),
            within_highs: within.iter().map(|(interval, _)| interval.high).collect(),
        }
    }
}
