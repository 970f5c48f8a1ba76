//! Phases in pairs, one without something and one with it, and how far apart they are for certain.

use hdrhistogram::Histogram;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// How often pairs are drawn anew.
const RESAMPLES: usize = 2_000;
const SEED: u64 = 20_121_206;

/// Latencies in microseconds, a phase each; of a pair both stand at the same index.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// Without it.
    pub without: Vec<Histogram<u64>>,
    /// With it.
    pub with: Vec<Histogram<u64>>,
}

/// By how much a quantile is greater with something; 0.1 is a tenth.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The median of all pairs.
    pub median: f64,
    /// The median of 95 of 100 draws lies between this
    pub low: f64,
    /// and this.
    pub high: f64,
    /// How many pairs there are.
    pub pairs: usize,
}

/// With fewer pairs draws say nothing of 95 of 100.
const PAIRS_MIN: usize = 6;

impl Pairs {
    /// By how much a quantile is greater with it: the median of all pairs, and between which two values that lies in 95 of 100 draws
    /// of as many pairs as there are (a bootstrap). One phase in which the machine did something else counts no more than any other.
    ///
    /// # Panics
    /// Without a pair.
    #[must_use]
    pub fn change(&self, quantile: f64) -> Change {
        let of = |phase: &Histogram<u64>| phase.value_at_quantile(quantile) as f64;
        let pairs = self.with.iter().zip(&self.without);
        let ratios = pairs.map(|(with, without)| of(with) / of(without) - 1.0).collect::<Vec<_>>();
        let ratio = |drawn: &[usize]| {
            let mut drawn = drawn.iter().map(|pair| ratios[*pair]).collect::<Vec<_>>();
            drawn.sort_unstable_by(f64::total_cmp);
            f64::midpoint(drawn[(drawn.len() - 1) / 2], drawn[drawn.len() / 2])
        };
        let median = ratio(&(0..ratios.len()).collect::<Vec<_>>());
        let mut rng = StdRng::seed_from_u64(SEED);
        let draw = |_| {
            let drawn = (0..ratios.len()).map(|_| rng.random_range(0..ratios.len())).collect::<Vec<_>>();
            ratio(&drawn)
        };
        let mut draws = (0..RESAMPLES).map(draw).collect::<Vec<_>>();
        draws.sort_unstable_by(f64::total_cmp);
        Change {
            median,
            low: draws[RESAMPLES / 40],
            high: draws[RESAMPLES - 1 - RESAMPLES / 40],
            pairs: ratios.len(),
        }
    }
}

impl Change {
    /// What may be concluded about a tenth.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (self.low, self.high) {
            _ if self.pairs < PAIRS_MIN => "too few pairs to say",
            (_, high) if high < 0.10 => "less than 10 % is shown",
            (low, _) if low >= 0.10 => "it is more than 10 %",
            _ => "this run does not decide whether it is less than 10 %",
        }
    }
}

/// A quantile of all phases, in milliseconds.
#[must_use]
pub fn merged_ms(phases: &[Histogram<u64>], quantile: f64) -> f64 {
    let mut phases = phases.iter().cloned();
    let mut all = phases.next().unwrap_or_else(|| Histogram::new(3).expect("three digits are valid"));
    phases.for_each(|phase| all.add(phase).expect("all have the same bounds"));
    all.value_at_quantile(quantile) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(with_us: impl Fn(u64) -> u64) -> Pairs {
        let phases = |of: &dyn Fn(u64) -> u64| {
            let phase = |pair: u64| {
                let mut latency_us = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
                (0..1_000).for_each(|n| latency_us.record(of(1_000 + n + 50 * (pair % 3))).unwrap());
                latency_us
            };
            (0..12).map(phase).collect()
        };
        Pairs { without: phases(&|us| us), with: phases(&with_us) }
    }

    #[test]
    fn a_change_is_seen_and_none_is_not() {
        assert_eq!(pairs(|us| us).change(0.99).verdict(), "less than 10 % is shown");
        let Change { median, low, high, .. } = pairs(|us| us * 3 / 2).change(0.99);
        assert!(low <= median && median <= high && (0.4..0.6).contains(&median), "{low} {median} {high}");
        assert_eq!(pairs(|us| us * 3 / 2).change(0.99).verdict(), "it is more than 10 %");
        let mut few = pairs(|us| us);
        few.with.truncate(3);
        assert_eq!(few.change(0.99).verdict(), "too few pairs to say");
    }
}
