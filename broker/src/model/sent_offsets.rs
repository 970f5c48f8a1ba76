//! The recipients of deliveries, and the deliveries that a connection has taken.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One session of a client. Its readers note here what they take, so that this is known after they are gone.
pub(crate) struct SentOffsets {
    /// The client's name.
    pub(crate) client: Arc<str>,
    /// A std mutex: held for the additions of one batch, or for one look.
    written: Mutex<Offsets>,
}

/// Offsets, of which most follow each other, as ranges: both ends included, ascending, and apart.
///
/// At [`RANGES_MAX`] the two oldest become one: what was lost between them that long ago counts as written.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    ranges: Vec<(u64, u64)>,
}

/// A loss begins another range; a kilobyte of them is kept for a client.
const RANGES_MAX: usize = 64;

impl SentOffsets {
    pub(crate) fn new(client: Arc<str>) -> Arc<Self> {
        Arc::new(Self { client, written: Mutex::default() })
    }

    /// The deliveries that were handed to a connection's writer.
    ///
    /// A panic under the lock is impossible but for memory running out; what is there is still right.
    pub(crate) fn written(&self) -> MutexGuard<'_, Offsets> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SentOffsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SentOffsets").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Offsets {
    /// Adds an offset, nearly always the one after the last.
    pub(crate) fn add(&mut self, offset: u64) {
        if let Some((_, to)) = self.ranges.last_mut()
            && *to + 1 == offset
        {
            *to = offset;
            return;
        }
        // Of several readers each takes the same at its own pace.
        let index = self.at_or_after(offset);
        let after = self.ranges.get(index).copied();
        if after.is_some_and(|(from, _)| from <= offset) {
            return;
        }
        let follows = index > 0 && self.ranges[index - 1].1 + 1 == offset;
        match after.filter(|(from, _)| *from == offset + 1) {
            Some((_, to)) if follows => {
                self.ranges[index - 1].1 = to;
                self.ranges.remove(index);
            }
            Some(_) => self.ranges[index].0 = offset,
            None if follows => self.ranges[index - 1].1 = offset,
            None => {
                self.ranges.insert(index, (offset, offset));
                if self.ranges.len() > RANGES_MAX {
                    let (_, to) = self.ranges.remove(1);
                    self.ranges[0].1 = to;
                }
            }
        }
    }

    pub(crate) fn contains(&self, offset: u64) -> bool {
        self.ranges.get(self.at_or_after(offset)).is_some_and(|(from, _)| *from <= offset)
    }

    /// The first range that does not end before an offset.
    fn at_or_after(&self, offset: u64) -> usize {
        self.ranges.partition_point(|(_, to)| *to < offset)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn of(offsets: impl IntoIterator<Item = u64>) -> Offsets {
        let mut found = Offsets::default();
        offsets.into_iter().for_each(|offset| found.add(offset));
        found
    }

    #[test]
    fn what_follows_is_one_range_and_a_loss_begins_another() {
        assert_eq!(of([1, 2, 3, 7, 8]).ranges, [(1, 3), (7, 8)]);
        assert_eq!(of([5, 1, 3, 2, 2, 9, 4]).ranges, [(1, 5), (9, 9)]);
        assert_eq!(of([4, 3, 1]).ranges, [(1, 1), (3, 4)]);
        assert!(!of([]).contains(0));
    }

    #[test]
    fn any_order_gives_the_same_set() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..200 {
            let mut expected = BTreeSet::new();
            let mut found = Offsets::default();
            for _ in 0..60 {
                let offset = random.random_range(1..100);
                expected.insert(offset);
                found.add(offset);
            }
            for offset in 0..=101 {
                assert_eq!(found.contains(offset), expected.contains(&offset), "{offset} of {found:?}");
            }
            let apart = found.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
            assert!(apart, "{found:?}");
        }
    }

    #[test]
    fn the_oldest_losses_are_forgotten_at_the_bound() {
        let many = of((1..=200).map(|index| index * 10));
        assert_eq!(many.ranges.len(), RANGES_MAX);
        // The last ones are exact still.
        assert!(many.contains(2_000) && !many.contains(1_995) && many.contains(1_990));
        assert!(many.contains(15) && !many.contains(9) && !many.contains(2_001));
    }
}
