//! The constraints on one name, by kind of operator, in sorted arrays.

use super::super::Interval;

/// The constraints on one name.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// `< <=`: by their upper bound.
    at_most: Sorted,
    /// `> >=`: by their lower bound.
    at_least: Sorted,
    /// `BETWEEN`, `=`: by their lower bound, with the upper one beside.
    within: Sorted,
    within_highs: Vec<f64>,
    /// No interval is wider: those that begin further below a value than this need no look.
    within_width_max: f64,
}

/// The constraints with one kind of operator.
#[derive(Debug, Default)]
struct Sorted {
    /// What the array is sorted by, apart from the rest for the binary search.
    keys: Vec<f64>,
    /// Whose they are; ascending where keys are equal.
    postings: Vec<u32>,
}

impl Postings {
    pub(super) fn new(constraints: &[(Interval, u32)]) -> Self {
        let mut postings = Self::default();
        let (mut at_most, mut at_least, mut within) = (Vec::new(), Vec::new(), Vec::new());
        for (interval, posting) in constraints {
            match (interval.low.is_infinite(), interval.high.is_infinite()) {
                (true, _) => at_most.push((interval.high, *posting, interval.high)),
                (false, true) => at_least.push((interval.low, *posting, interval.high)),
                (false, false) => {
                    postings.widen(interval);
                    within.push((interval.low, *posting, interval.high));
                }
            }
        }
        postings.at_most = Sorted::new(&mut at_most);
        postings.at_least = Sorted::new(&mut at_least);
        postings.within = Sorted::new(&mut within);
        postings.within_highs = within.iter().map(|(_, _, high)| *high).collect();
        postings
    }

    /// Calls `satisfied` with the constraints that hold a value, many at a time where they lie together.
    #[inline]
    pub(super) fn visit(&self, value: f64, mut satisfied: impl FnMut(&[u32])) {
        let at_most = self.at_most.keys.partition_point(|high| *high < value);
        satisfied(&self.at_most.postings[at_most..]);
        let at_least = self.at_least.keys.partition_point(|low| *low <= value);
        satisfied(&self.at_least.postings[..at_least]);
        // One step further down, for the difference was rounded.
        let lowest = (value - self.within_width_max).next_down();
        let first = self.within.keys.partition_point(|low| *low < lowest);
        let within = first..self.within.keys.partition_point(|low| *low <= value);
        for (posting, high) in self.within.postings[within.clone()].iter().zip(&self.within_highs[within]) {
            if value <= *high {
                satisfied(std::slice::from_ref(posting));
            }
        }
    }

    /// Gives a constraint other bounds of the same kind: removes it and inserts it again, of which what is before
    /// the first of both places and behind the last one sees nothing. Says whether it was there.
    pub(super) fn relocate(&mut self, posting: u32, from: &Interval, to: &Interval) -> bool {
        match (from.low.is_infinite(), from.high.is_infinite()) {
            (true, _) => self.at_most.relocate(posting, from.high, to.high).is_some(),
            (false, true) => self.at_least.relocate(posting, from.low, to.low).is_some(),
            (false, false) => {
                let Some((taken, put)) = self.within.relocate(posting, from.low, to.low) else {
                    return false;
                };
                carry(&mut self.within_highs, taken, put, to.high);
                self.widen(to);
                true
            }
        }
    }

    fn widen(&mut self, interval: &Interval) {
        // One step more, for the difference was rounded.
        self.within_width_max = self.within_width_max.max((interval.high - interval.low).next_up());
    }
}

impl Sorted {
    /// Sorts (key, posting, anything) triples and takes the first two of each.
    fn new(list: &mut [(f64, u32, f64)]) -> Self {
        // By posting within equal keys, so that counters are met in their order where that is possible.
        list.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Self {
            keys: list.iter().map(|(key, ..)| *key).collect(),
            postings: list.iter().map(|(_, posting, _)| *posting).collect(),
        }
    }

    /// How many come before a key and posting.
    fn rank(&self, key: f64, posting: u32) -> usize {
        let first = self.keys.partition_point(|known| *known < key);
        let equal = self.keys[first..].partition_point(|known| *known <= key);
        first + self.postings[first..first + equal].partition_point(|known| *known < posting)
    }

    /// Where it was taken and where it was put; `None` when it was not there.
    fn relocate(&mut self, posting: u32, from: f64, to: f64) -> Option<(usize, usize)> {
        let taken = self.rank(from, posting);
        if (self.keys.get(taken), self.postings.get(taken)) != (Some(&from), Some(&posting)) {
            return None;
        }
        let rank = self.rank(to, posting);
        let put = if rank > taken { rank - 1 } else { rank };
        carry(&mut self.keys, taken, put, to);
        carry(&mut self.postings, taken, put, posting);
        Some((taken, put))
    }
}

/// Takes an item out, closes the gap, and puts another one where it then belongs.
fn carry<T: Copy>(items: &mut [T], taken: usize, put: usize, item: T) {
    if taken < put {
        items.copy_within(taken + 1..=put, taken);
    } else {
        items.copy_within(put..taken, put + 1);
    }
    items[put] = item;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval { name: 0, low, high }
    }

    fn holders(postings: &Postings, value: f64) -> Vec<u32> {
        let mut found = Vec::new();
        postings.visit(value, |satisfied| found.extend_from_slice(satisfied));
        found.sort_unstable();
        found
    }

    #[test]
    fn both_ends_of_an_interval_hold() {
        let infinite = f64::INFINITY;
        let constraints =
            [interval(2.0, 3.0), interval(-infinite, 2.0), interval(3.0, infinite), interval(2.0, 2.0)];
        let constraints: Vec<_> = constraints.into_iter().zip(0..).collect();
        let postings = Postings::new(&constraints);
        for (value, expected) in
            [(1.9, &[1][..]), (2.0, &[0, 1, 3]), (2.5, &[0]), (3.0, &[0, 2]), (3.1, &[2])]
        {
            assert_eq!(holders(&postings, value), expected, "{value}");
        }
    }

    #[test]
    fn relocated_constraints_are_those_of_a_new_index() {
        let ends = |index: u32| f64::from(index * 7_919 % 101);
        for halves in [None, Some(true), Some(false)] {
            let make = |low: f64| match halves {
                None => interval(low, low + 5.0),
                Some(true) => interval(low, f64::INFINITY),
                Some(false) => interval(f64::NEG_INFINITY, low),
            };
            let mut constraints: Vec<_> =
                (0..40).map(|posting| (make(ends(posting % 30)), posting)).collect();
            let mut postings = Postings::new(&constraints);
            for (step, posting) in (40..).zip([3, 0, 39, 17, 3, 3, 30, 12, 39]) {
                let to = if step == 45 { constraints[posting].0 } else { make(ends(step)) };
                let number = u32::try_from(posting).unwrap();
                assert!(postings.relocate(number, &constraints[posting].0, &to));
                constraints[posting].0 = to;
                let anew = Postings::new(&constraints);
                for value in 0..110 {
                    let value = f64::from(value);
                    assert_eq!(holders(&postings, value), holders(&anew, value), "{halves:?} {step} {value}");
                }
            }
            assert!(!postings.relocate(77, &make(1.0), &make(2.0)));
        }
    }
}
