//! Situations on disk: how far each shard has dealt their findings out, where no stream brings them, and what they know.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Sessions;
use crate::model::event::{Live, Origin};
use crate::store::{StoredDecisions, StoredStanding, StoredState};

/// What a situation has to know after a restart.
#[derive(Debug)]
pub(crate) struct State {
    /// The version of its document.
    pub(crate) version: Arc<str>,
    pub(crate) stored: Option<StoredState>,
    /// What it did with deliveries that may come again, where that has changed.
    pub(crate) decisions: Option<StoredDecisions>,
    /// Whether the situation waits until it is on disk.
    pub(crate) is_awaited: bool,
}

/// How far each shard had got with the findings of a situation.
pub(crate) struct RestoredFindings {
    /// The situation's version.
    pub(super) version: Arc<str>,
    /// What each shard has written, by its place.
    pub(super) dealt: Vec<(Arc<str>, StoredStanding)>,
}

/// Whether another run of the broker has dealt a finding out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dealt {
    /// No shard has.
    Nowhere,
    /// This shard has, so that its clients have got it.
    Here,
    /// Another one has, so that this is its turn. If the finding is live, its life has begun.
    Elsewhere,
}

/// The last findings of a situation that another run of the broker dealt out.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastDealt {
    here: u64,
    anywhere: u64,
}

impl Sessions {
    /// Takes up how far the shards had got, where some had got further than others.
    pub(super) fn restore_findings(&mut self, found: &[RestoredFindings]) {
        for RestoredFindings { version, dealt } in found {
            let number = |(_, standing): &(Arc<str>, StoredStanding)| standing.sequence;
            let here = dealt.iter().find(|(place, _)| **place == *self.place).map_or(0, number);
            let anywhere = told_by_any(dealt);
            if anywhere > told_by_all(dealt) {
                self.dealt.insert(Arc::clone(version), LastDealt { here, anywhere });
            }
        }
    }

    /// Whether another run has dealt a finding out.
    pub(super) fn dealt(&mut self, origin: &Origin) -> Dealt {
        match self.dealt.get(&origin.version) {
            Some(last) if origin.number <= last.here => Dealt::Here,
            Some(last) if origin.number <= last.anywhere => Dealt::Elsewhere,
            Some(_) => {
                self.dealt.remove(&origin.version);
                Dealt::Nowhere
            }
            None => Dealt::Nowhere,
        }
    }

    /// Whether this event is live, so that its object's newest event is this one.
    pub(super) fn is_live(&self, live: &Live) -> bool {
        let known = self.tracker.live_of(&live.object).and_then(|published| published.live.as_ref());
        known.is_some_and(|known| known.id == live.id)
    }

    /// Writes with the deliveries of a finding that this shard has dealt it out. It stands where the standings of objects stand: what is
    /// inside a situation is its own affair.
    pub(super) fn record_origin(&mut self, origin: &Origin) {
        if let Some(batch) = self.ledger.record() {
            let standing = StoredStanding { sequence: origin.number, waits: None };
            batch.put_standing(&origin.client, &origin.version, &self.place, &standing);
        }
    }

    /// Writes what a situation knows. What it acknowledges for that is written with it or later.
    pub(crate) fn record_state(&mut self, client: &str, state: &State) {
        let Some(batch) = self.ledger.record() else { return };
        if let Some(stored) = &state.stored {
            batch.put_state(client, &state.version, stored);
        }
        if let Some(decisions) = &state.decisions {
            batch.put_decisions(client, &state.version, decisions);
        }
    }
}

/// Names the place of a shard among all.
pub(super) fn place(index: usize, count: usize) -> Box<str> {
    format!("{index}/{count}").into()
}

/// The number of the last finding that any shard had dealt out; 0 before the first.
pub(super) fn told_by_any(standings: &[(Arc<str>, StoredStanding)]) -> u64 {
    standings.iter().map(|(_, standing)| standing.sequence).max().unwrap_or(0)
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
