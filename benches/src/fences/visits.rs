//! Visits of vehicles to fences, and how two lists of them compare.

use std::time::Duration;

/// From an enter to an exit; one that goes on at the end of the recording ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When it began.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
}

impl Visit {
    fn overlaps(&self, other: &Self) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// How what was told compares with what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Enters that were told.
    pub enters: usize,
    /// Visits that there were.
    pub visits: usize,
    /// Enter and exit of somebody who was not there.
    pub false_visits: usize,
    /// Exit and enter of somebody who did not leave.
    pub false_breaks: usize,
    /// Visits that were not told.
    pub missed: usize,
    /// How much later than the visit began its first enter came, for each that was told.
    pub delays: Vec<Duration>,
}

impl Comparison {
    /// Pairs of transitions that should not have been told.
    #[must_use]
    pub fn false_pairs(&self) -> usize {
        self.false_visits + self.false_breaks
    }

    /// Adds what was told of one vehicle and fence, in order of time, beside what was.
    pub fn add(&mut self, told: &[Visit], real: &[Visit]) {
        self.enters += told.len();
        self.visits += real.len();
        self.false_visits += told.iter().filter(|told| !real.iter().any(|real| real.overlaps(told))).count();
        self.false_breaks += told
            .windows(2)
            .filter(|pair| real.iter().any(|real| real.overlaps(&pair[0]) && real.overlaps(&pair[1])))
            .count();
        for real in real {
            match told.iter().find(|told| told.overlaps(real)) {
                Some(told) => self.delays.push(told.from.saturating_sub(real.from)),
                None => self.missed += 1,
            }
        }
    }

    /// The median delay of an enter.
    #[must_use]
    pub fn median_delay(&self) -> Duration {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays.get(delays.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(times: &[(u64, u64)]) -> Vec<Visit> {
        let visit = |(from, to): &(u64, u64)| Visit {
            from: Duration::from_secs(*from),
            to: Duration::from_secs(*to),
        };
        times.iter().map(visit).collect()
    }

    #[test]
    fn what_was_told_is_compared_with_what_was() {
        let mut comparison = Comparison::default();
        comparison.add(
            // One that was not, one in two parts, one that is late, and one that spans two.
            &visits(&[(0, 5), (10, 12), (14, 20), (45, 50), (60, 90)]),
            &visits(&[(10, 20), (40, 50), (60, 65), (70, 80), (100, 110)]),
        );
        let Comparison { enters, visits, false_visits, false_breaks, missed, delays } = comparison.clone();
        assert_eq!((enters, visits, false_visits, false_breaks, missed), (5, 5, 1, 1, 1));
        assert_eq!(delays, [0, 5, 0, 0].map(Duration::from_secs));
        assert_eq!((comparison.false_pairs(), comparison.median_delay()), (2, Duration::ZERO));
    }

    #[test]
    fn visits_that_touch_do_not_overlap() {
        let mut comparison = Comparison::default();
        comparison.add(&visits(&[(0, 10)]), &visits(&[(10, 20)]));
        assert_eq!((comparison.false_visits, comparison.missed), (1, 1));
    }
}
