//! Situations on disk: how far each shard has dealt their findings out, and what they know.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Sessions;
use crate::model::event::Origin;
use crate::store::{StoredStanding, StoredState};

/// What a situation knows.
#[derive(Debug)]
pub(crate) struct State {
    /// The version of its document.
    pub(crate) version: Arc<str>,
    pub(crate) stored: StoredState,
}

impl Sessions {
    /// Writes with the deliveries of a finding that this shard has dealt it out. It stands where the standings of objects stand: what is
    /// inside a situation is its own affair.
    pub(super) fn record_origin(&mut self, origin: &Origin) {
        if let Some(batch) = self.ledger.record() {
            let standing = StoredStanding { sequence: origin.number, waits: None };
            batch.put_standing(&origin.client, &origin.version, &self.place, &standing);
        }
    }

    /// Writes what a situation knows. What it acknowledges for that is written with it or later.
    pub(crate) fn record_state(&mut self, client: &str, state: State) {
        if let Some(batch) = self.ledger.record() {
            batch.put_state(client, &state.version, &state.stored);
        }
    }
}

/// Names the place of a shard among all.
pub(super) fn place(index: usize, count: usize) -> Box<str> {
    format!("{index}/{count}").into()
}

/// The number of the last finding that all shards had dealt out, by what each has written; 0 before the first. Another number of shards
/// leaves rows of its own.
pub(super) fn told_by_all(standings: &[(Arc<str>, StoredStanding)]) -> u64 {
    let mut by_count = BTreeMap::<usize, Vec<u64>>::new();
    for (place, standing) in standings {
        if let Some(count) = place.split_once('/').and_then(|(_, count)| count.parse().ok()) {
            by_count.entry(count).or_default().push(standing.sequence);
        }
    }
    let complete = by_count.into_iter().filter(|(count, told)| told.len() == *count);
    complete.filter_map(|(_, told)| told.into_iter().min()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_once_all_shards_have_dealt_it_out() {
        let told = |rows: &[(&str, u64)]| {
            let standing = |sequence| StoredStanding { sequence, waits: None };
            told_by_all(
                &rows.iter().map(|(place, number)| ((*place).into(), standing(*number))).collect::<Vec<_>>(),
            )
        };
        assert_eq!(told(&[]), 0);
        assert_eq!(told(&[("0/1", 7)]), 7);
        assert_eq!(told(&[("0/2", 7)]), 0, "the other one has none");
        assert_eq!(told(&[("0/2", 7), ("1/2", 5)]), 5);
        assert_eq!(told(&[("0/1", 4), ("0/2", 7), ("1/2", 5)]), 5, "there are two shards now");
        assert_eq!(told(&[("0/1", 4), ("0/2", 7)]), 4);
    }
}
