//! Changes that happen by themselves when their time has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Moment;
use crate::subscription::SubscriptionId;

/// Change that is due. Of two at the same time an object that has stayed long enough enters before a life ends, and the
/// older life ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// An object has stayed long enough to enter.
    Dwelt { subscription: SubscriptionId, event: u32 },
    /// A life ends.
    Expired { sequence: u64, event: u32 },
}

/// Deadlines by time. Those that are of no use any more stay until they are due or too many.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Moment, Due)>>,
    /// Deadlines above which those of no use are taken out.
    crowded: usize,
}

/// Fewer deadlines than this are not worth clearing up.
const CROWDED_MIN: usize = 1_024;

impl Deadlines {
    pub(super) fn push(&mut self, at: Moment, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// The next that is due by `now`.
    pub(super) fn pop(&mut self, now: Moment) -> Option<(Moment, Due)> {
        let Reverse((at, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(deadline)| deadline)
    }

    /// The next, if it is an object that has stayed long enough at just that time.
    pub(super) fn pop_dwelt(&mut self, at: Moment) -> Option<Due> {
        let Reverse((next, due)) = self.heap.peek()?;
        let is_dwelt = *next == at && matches!(due, Due::Dwelt { .. });
        if is_dwelt { self.heap.pop().map(|Reverse((_, due))| due) } else { None }
    }

    /// When something may be due next.
    pub(super) fn next(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes out what is of no use, where that may be half of them.
    ///
    /// Cost: constant for each deadline that was pushed.
    pub(super) fn clear_up(&mut self, is_of_use: impl Fn(Moment, Due) -> bool) {
        if self.heap.len() <= self.crowded.max(CROWDED_MIN) {
            return;
        }
        self.heap.retain(|Reverse((at, due))| is_of_use(*at, *due));
        self.crowded = self.heap.len() * 2;
    }
}
