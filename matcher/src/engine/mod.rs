//! The seam: what every engine does, whatever it runs on.

pub mod cells;
pub mod scan;

use crate::event::Event;
use crate::geo::Position;
use crate::subscription::{ClientId, Subscription, SubscriptionId};

/// Holds subscriptions and finds those that each event of a batch satisfies.
///
/// One thread owns an engine; calls take effect in their order. Every engine answers what
/// [`scan::Scan`] answers.
pub trait Engine: Send {
    /// Name of the engine in settings and reports.
    fn name(&self) -> &'static str;

    /// Installs a subscription, or replaces the one of that id. Its following areas are where the client is,
    /// or nowhere while the client has told no position.
    ///
    /// # Errors
    /// [`InstallError`]; the engine is then as it was.
    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError>;

    /// Removes a subscription; says whether there was one.
    fn remove(&mut self, id: SubscriptionId) -> bool;

    /// Tells where a client is now, or that it is nowhere: all its following areas move there.
    ///
    /// Cost: constant for each filter that follows the client, whatever else is installed.
    fn move_client(&mut self, client: ClientId, position: Option<Position>);

    /// Appends one row per event, each with the ids of the subscriptions that the event satisfies, ascending
    /// and each once. Empty in, empty out.
    ///
    /// # Errors
    /// Any [`MatchError`]; `rows` is then as it was.
    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError>;

    /// Counts of what the engine holds, and the memory that this takes.
    fn footprint(&self) -> Footprint;
}

/// Why a subscription cannot be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// The engine's 32-bit numbers are used up.
    #[error("the engine holds {held} filters and can take no more")]
    Full {
        /// Filters that it holds.
        held: u64,
    },
}

/// Error that stops a batch from being matched. CPU engines never fail.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// The device is gone for good. Fall back to a CPU engine.
    #[error("device lost")]
    DeviceLost(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The device has too little memory for what was installed or for one event's answers. What is installed stays
    /// installed: match again when others have given memory back, or fall back to a CPU engine. Removing frees room for what is
    /// installed later; the device's arrays stay as long as they were.
    #[error("out of device memory")]
    OutOfMemory(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Counts of what an engine holds, and the memory that this takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Subscriptions installed.
    pub subscriptions: usize,
    /// Entries that matching looks at: one per filter and conjunction of its condition.
    pub filters: usize,
    /// Bytes of memory, allocated capacity included.
    pub bytes: usize,
}

/// The answers to a batch, one row per event, in one flat array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchRows {
    ids: Vec<SubscriptionId>,
    ends: Vec<usize>,
}

impl MatchRows {
    /// No rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.ends.clear();
    }

    /// Makes room for further rows, and for all of their pairs.
    pub fn reserve(&mut self, rows: usize, pairs: usize) {
        self.ids.reserve(pairs);
        self.ends.reserve(rows);
    }

    /// Forgets all rows but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.ids.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many (event, subscription) pairs there are in all rows.
    #[must_use]
    pub fn pairs_count(&self) -> usize {
        self.ids.len()
    }

    /// The row of the `index`-th event.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &[SubscriptionId] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.ids[start..self.ends[index]]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[SubscriptionId]> {
        (0..self.len()).map(|index| self.row(index))
    }

    /// Appends the rows of another.
    pub fn append(&mut self, other: &Self) {
        let start = self.ids.len();
        self.ids.extend_from_slice(&other.ids);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// Closes a row with what `fill` appends to the flat array; sorts it and drops repetitions.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut Vec<SubscriptionId>)) {
        let start = self.ids.len();
        fill(&mut self.ids);
        debug_assert!(self.ids.len() >= start, "`fill` appends");
        let kept = start + sort_and_drop_repetitions(&mut self.ids[start..]);
        self.ids.truncate(kept);
        self.ends.push(kept);
    }

    /// Closes many rows: their lengths, and the ids of one after the other. Sorts each and drops its repetitions.
    pub fn push_many(
        &mut self,
        ids: impl IntoIterator<Item = SubscriptionId>,
        lens: impl IntoIterator<Item = usize>,
    ) {
        let (mut start, mut kept) = (self.ids.len(), self.ids.len());
        self.ids.extend(ids);
        for len in lens {
            let left = sort_and_drop_repetitions(&mut self.ids[start..start + len]);
            if kept < start {
                self.ids.copy_within(start..start + left, kept);
            }
            (start, kept) = (start + len, kept + left);
            self.ends.push(kept);
        }
        debug_assert!(start == self.ids.len(), "rows have all ids");
        self.ids.truncate(kept);
    }
}

/// Answers how many are left; they come first.
fn sort_and_drop_repetitions(ids: &mut [SubscriptionId]) -> usize {
    // Most rows are so short that a wrong guess at a comparison is most of what they cost: these are put in order without.
    match ids.len() {
        0 | 1 => {}
        2 => put_in_order(ids, 0),
        3 => [0, 1, 0].into_iter().for_each(|at| put_in_order(ids, at)),
        _ => ids.sort_unstable(),
    }
    if ids.windows(2).all(|pair| pair[0] != pair[1]) {
        return ids.len();
    }
    let mut kept = 0;
    for index in 0..ids.len() {
        if kept == 0 || ids[index] != ids[kept - 1] {
            ids[kept] = ids[index];
            kept += 1;
        }
    }
    kept
}

fn put_in_order(ids: &mut [SubscriptionId], at: usize) {
    let (first, second) = (ids[at], ids[at + 1]);
    (ids[at], ids[at + 1]) = (first.min(second), first.max(second));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_closed_together_are_those_closed_one_by_one() {
        let rows: Vec<Vec<u32>> = (0..7_u32)
            .flat_map(|len| (0..len.pow(2).max(1)).map(move |seed| (len, seed)))
            .map(|(len, seed)| (0..len).map(|at| (at * seed * 7 + seed) % (len + 1)).collect())
            .collect();
        let (mut together, mut apart) = (MatchRows::new(), MatchRows::new());
        for _ in 0..2 {
            together
                .push_many(rows.iter().flatten().map(|id| SubscriptionId(*id)), rows.iter().map(Vec::len));
            for row in &rows {
                apart.push_with(|ids| ids.extend(row.iter().map(|id| SubscriptionId(*id))));
                let mut expected: Vec<SubscriptionId> = row.iter().map(|id| SubscriptionId(*id)).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(apart.row(apart.len() - 1), expected);
            }
        }
        assert_eq!(together, apart);
    }
}
