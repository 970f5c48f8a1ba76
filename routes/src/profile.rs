//! How long routes take by level, size of the batch and number of blocks, as measured.
//!
//! Source: Mangharam and Saba, "Anytime algorithms for GPU architectures", RTSS 2011, sections II (worst cases, Fig. 3) and IV (blocks, Figs 7 and 8). The
//! paper's instrumented kernels measure the longest run of each piece of code; here rounds are the pieces, since kernels count them anyway.

use crate::levels::LEVELS;

/// How much more a route may cost in a smaller batch, in percent: what is planned anew sooner is worth that.
const SMALLER_PERCENT: u64 = 10;

/// A batch of routes as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How many routes it had.
    pub count: usize,
    /// Blocks of nodes that each search worked on at once; 1 where the engine has no choice.
    pub blocks: u32,
    /// How long it took, in nanoseconds: the median of several runs.
    pub ns: u64,
    /// How long it took at most.
    pub most_ns: u64,
    /// Rounds of the search that had most; 0 where they are not counted.
    pub rounds: u32,
}

/// How long routes take by level, batch and number of blocks: of each size of batches the number of blocks with which it is quickest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Of ever larger batches.
    samples: [Vec<Sample>; LEVELS],
    rounds_max: [u32; LEVELS],
}

impl Profile {
    /// Notes how long a batch of a level takes. Of two numbers of blocks the quicker one is kept.
    pub fn note(&mut self, level: usize, sample: Sample) {
        let samples = &mut self.samples[level];
        self.rounds_max[level] = self.rounds_max[level].max(sample.rounds);
        let sample = Sample { count: sample.count.max(1), ..sample };
        match samples.binary_search_by_key(&sample.count, |known| known.count) {
            Ok(place) if samples[place].ns <= sample.ns => {}
            Ok(place) => samples[place] = sample,
            Err(place) => samples.insert(place, sample),
        }
    }

    /// What is kept of a level.
    #[must_use]
    pub fn samples(&self, level: usize) -> &[Sample] {
        &self.samples[level]
    }

    /// What a batch takes: between two that were measured as on the line between them, and with one that was measured in proportion to that.
    pub(crate) fn batch_ns(&self, level: usize, count: usize) -> u64 {
        let samples = &self.samples[level];
        // What takes no time would fit into none.
        let least_ns = count as u64;
        let Some(upper) = self.near(level, count) else { return least_ns };
        let below = samples.iter().rev().find(|sample| sample.count < upper.count);
        let of_none = if samples.len() > 1 { upper.ns } else { 0 };
        let (lower, lower_ns) = below.map_or((0, of_none), |sample| (sample.count, sample.ns));
        if count == 0 {
            return 0;
        }
        let more_ns = u128::from(upper.ns.saturating_sub(lower_ns));
        let more = (count - lower) as u128 * more_ns / (upper.count - lower) as u128;
        lower_ns.saturating_add(bounded(more)).max(least_ns)
    }

    /// The measured batch that is nearest to one in what it takes: the least one that has as many routes, or the largest.
    pub(crate) fn near(&self, level: usize, count: usize) -> Option<&Sample> {
        let samples = &self.samples[level];
        samples.iter().find(|sample| sample.count >= count).or(samples.last())
    }

    /// What a batch takes at worst: as many rounds as any search of the level had, each as long as where they took longest (Fig. 3). In a batch that was
    /// measured no search had more.
    #[must_use]
    pub fn worst_ns(&self, level: usize, count: usize) -> u64 {
        let batch_ns = self.batch_ns(level, count);
        let Some(Sample { ns, most_ns, rounds, .. }) = self.near(level, count).copied() else {
            return batch_ns;
        };
        let rounds_max = self.rounds_max[level].max(1);
        let worst = u128::from(batch_ns) * u128::from(most_ns) / u128::from(ns.max(1));
        bounded(worst * u128::from(rounds_max) / u128::from(rounds.clamp(1, rounds_max))).max(batch_ns)
    }

    /// Routes of a batch of a level: no more than need be for a route to cost about as little as it can.
    pub(crate) fn size(&self, level: usize, most: usize) -> usize {
        let samples = &self.samples[level];
        let each = |sample: &Sample| u128::from(sample.ns) * 1_000_000 / sample.count as u128;
        let least = samples.iter().map(each).min().unwrap_or_default();
        let is_enough = |sample: &&Sample| each(sample) * 100 <= least * u128::from(100 + SMALLER_PERCENT);
        let measured = samples.iter().find(is_enough).filter(|_| samples.len() > 1);
        measured.map_or(most, |sample| sample.count.min(most))
    }
}

/// Nanoseconds that can be added up.
pub(crate) fn bounded(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX).min(u64::MAX >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_is_the_longest_search_where_rounds_take_longest() {
        let mut profile = Profile::default();
        profile.note(0, Sample { count: 10, blocks: 4, ns: 1_000, most_ns: 1_200, rounds: 20 });
        profile.note(0, Sample { count: 10, blocks: 8, ns: 1_100, most_ns: 1_100, rounds: 20 });
        profile.note(0, Sample { count: 100, blocks: 1, ns: 4_000, most_ns: 4_000, rounds: 40 });
        let kept: Vec<_> = profile.samples(0).iter().map(|sample| (sample.count, sample.blocks)).collect();
        assert_eq!(kept, [(10, 4), (100, 1)], "of each size the quickest number of blocks");
        assert_eq!(
            [5, 10, 55, 100, 190].map(|count| profile.batch_ns(0, count)),
            [1_000, 1_000, 2_500, 4_000, 7_000]
        );
        assert_eq!([10, 100].map(|count| profile.worst_ns(0, count)), [2_400, 4_000]);
        assert_eq!((profile.size(0, 1_000), profile.size(0, 50)), (100, 50));
    }
}
