//! Offsets whose deliveries were lost, and why.

use std::collections::VecDeque;

use crate::model::delivery::GapReason;

/// Ranges of lost offsets, ascending and apart.
#[derive(Default)]
pub(super) struct Holes(VecDeque<Hole>);

/// Lost offsets, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) reason: GapReason,
}

/// Neighbouring holes of different reasons beyond those that deliveries part.
const SPARE: usize = 1_024;

impl Holes {
    /// Adds a range behind all others.
    pub(super) fn push(&mut self, from: u64, to: u64, reason: GapReason) {
        if to < from {
            return;
        }
        match self.0.back_mut() {
            Some(last) if last.to + 1 == from && last.reason == reason => last.to = to,
            _ => self.0.push_back(Hole { from, to, reason }),
        }
    }

    /// Adds an offset wherever it belongs.
    pub(super) fn insert(&mut self, offset: u64, reason: GapReason) {
        let at = self.0.partition_point(|hole| hole.to < offset);
        let joins = |hole: Option<&Hole>| {
            hole.is_some_and(|hole| {
                hole.reason == reason && (hole.to + 1 == offset || offset + 1 == hole.from)
            })
        };
        let before = at.checked_sub(1).filter(|before| joins(self.0.get(*before)));
        let after = joins(self.0.get(at));
        match (before, after) {
            (Some(before), true) => {
                self.0[before].to = self.0[at].to;
                self.0.remove(at);
            }
            (Some(before), false) => self.0[before].to = offset,
            (None, true) => self.0[at].from = offset,
            (None, false) => self.0.insert(at, Hole { from: offset, to: offset, reason }),
        }
    }

    /// Forgets all offsets up to one.
    pub(super) fn forget(&mut self, to: u64) {
        while let Some(first) = self.0.front_mut()
            && first.from <= to
        {
            if first.to > to {
                first.from = to + 1;
                break;
            }
            self.0.pop_front();
        }
    }

    /// The first hole that does not end before an offset.
    pub(super) fn at_or_after(&self, offset: u64) -> Option<Hole> {
        self.0.get(self.0.partition_point(|hole| hole.to < offset)).copied()
    }

    /// The last offset that was lost at a bound or by its age; 0 where there is none.
    pub(super) fn last_loss(&self) -> u64 {
        let is_loss = |hole: &&Hole| matches!(hole.reason, GapReason::Overflow | GapReason::Age);
        self.0.iter().rev().find(is_loss).map_or(0, |hole| hole.to)
    }

    /// Joins neighbours of different reasons where there are more holes than `deliveries` could part. The worst reason
    /// counts for the joint hole.
    pub(super) fn bound(&mut self, deliveries: usize) {
        if self.0.len() <= 2 * deliveries + SPARE {
            return;
        }
        let mut joined: VecDeque<Hole> = VecDeque::with_capacity(deliveries + 1);
        for hole in self.0.drain(..) {
            match joined.back_mut() {
                Some(last) if last.to + 1 == hole.from => {
                    (last.to, last.reason) = (hole.to, last.reason.max(hole.reason));
                }
                _ => joined.push_back(hole),
            }
        }
        self.0 = joined;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
