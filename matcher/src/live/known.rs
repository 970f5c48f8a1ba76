//! Knowledge that subscriptions have of live events, kept small: there are as many pairs as subscriptions times live
//! events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::RandomState;

use super::standing::Standing;
use super::{Cause, Moment};
use crate::subscription::SubscriptionId;

/// When each one enters, and what brought it.
type Waiting = HashMap<u32, (Moment, Cause), RandomState>;

/// Mark of a waiting member in the place of a hint.
const WAITING: u32 = u32::MAX;

/// Mark of a member for which no filter is known that takes it, in the place of a hint.
const NO_HINT: u32 = u32::MAX - 1;

/// The live events that a subscription knows, each with how it stands to the subscription.
///
/// A pair takes 9 bytes where the table is full and 21 right after it has grown; only what waits to enter takes more. Each
/// change counts for the client of the subscription, and the end of this does, too.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// A hint for each event, see [`hint`](Self::hint), or [`WAITING`].
    hints: HashMap<u32, u32, RandomState>,
    /// Events that wait to enter; made with the first.
    waiting: Option<Box<Waiting>>,
    /// Count of all members that the client has.
    members: Option<Arc<Members>>,
}

/// How many live events the subscriptions of one client know, together, and those of all clients of a tracker. One thread changes it.
#[derive(Debug, Default)]
pub(super) struct Members {
    count: AtomicUsize,
    is_unbounded: AtomicBool,
    all: Arc<AtomicUsize>,
}

impl Members {
    /// Count of a client's members, which count among `all` as well.
    pub(super) fn among(all: &Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Self { all: Arc::clone(all), ..Self::default() })
    }

    /// Says whether the client may know any number.
    pub(super) fn bound(&self, is_bounded: bool) {
        self.is_unbounded.store(!is_bounded, Ordering::Relaxed);
    }

    /// How many the client has.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn add(&self, more: usize) {
        self.count.fetch_add(more, Ordering::Relaxed);
        self.all.fetch_add(more, Ordering::Relaxed);
    }

    fn subtract(&self, less: usize) {
        self.count.fetch_sub(less, Ordering::Relaxed);
        self.all.fetch_sub(less, Ordering::Relaxed);
    }
}

impl Known {
    /// Counts from now on for a client.
    pub(super) fn count_for(&mut self, members: &Arc<Members>) {
        self.give_up(self.hints.len());
        members.add(self.hints.len());
        self.members = Some(Arc::clone(members));
    }

    /// How many all subscriptions of the client know.
    pub(super) fn of_client(&self) -> usize {
        self.members.as_ref().map_or(0, |members| members.count())
    }

    /// Whether the client may know any number.
    pub(super) fn is_unbounded(&self) -> bool {
        self.members.as_ref().is_some_and(|members| members.is_unbounded.load(Ordering::Relaxed))
    }

    fn give_up(&self, less: usize) {
        if let Some(members) = &self.members {
            members.subtract(less);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.hints.len()
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.hints.contains_key(&number)
    }

    pub(super) fn get(&self, number: u32) -> Option<Standing> {
        self.hints.get(&number).map(|hint| self.standing(number, *hint))
    }

    fn standing(&self, number: u32, hint: u32) -> Standing {
        let waits = || self.waiting.as_ref()?.get(&number).copied();
        match (hint == WAITING).then(waits).flatten() {
            Some((until, cause)) => Standing::Waiting { until, cause },
            None => Standing::Inside,
        }
    }

    /// In any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Standing)> {
        self.hints.iter().map(|(number, hint)| (*number, self.standing(*number, *hint)))
    }

    /// In any order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.hints.keys().copied()
    }

    pub(super) fn insert(&mut self, number: u32, standing: Standing) {
        let hint = match standing {
            Standing::Inside => {
                self.wait_no_more(number);
                NO_HINT
            }
            Standing::Waiting { until, cause } => {
                self.waiting.get_or_insert_default().insert(number, (until, cause));
                WAITING
            }
        };
        if self.hints.insert(number, hint).is_none()
            && let Some(members) = &self.members
        {
            members.add(1);
        }
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Standing> {
        let hint = self.hints.remove(&number)?;
        let standing = self.standing(number, hint);
        if hint == WAITING {
            self.wait_no_more(number);
        }
        self.give_up(1);
        Some(standing)
    }

    fn wait_no_more(&mut self, number: u32) {
        if let Some(waiting) = &mut self.waiting {
            waiting.remove(&number);
            if waiting.is_empty() {
                self.waiting = None;
            }
        }
    }

    /// A filter whose condition is true of a member's live event, and whose area is worth a look before others'.
    pub(super) fn hint(&self, number: u32) -> Option<u32> {
        self.hints.get(&number).copied().filter(|hint| *hint < NO_HINT)
    }

    /// Keeps a hint for a member that does not wait; to be taken back when its object has a newer event.
    pub(super) fn set_hint(&mut self, number: u32, hint: Option<u32>) {
        if let Some(kept) = self.hints.get_mut(&number).filter(|kept| **kept != WAITING) {
            *kept = hint.unwrap_or(NO_HINT).min(NO_HINT);
        }
    }

    /// Takes all hints back: the filters are others.
    pub(super) fn forget_hints(&mut self) {
        self.hints.values_mut().filter(|hint| **hint != WAITING).for_each(|hint| *hint = NO_HINT);
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.give_up(self.hints.len());
    }
}

/// The subscriptions that know a live event.
#[derive(Debug)]
pub(super) enum KnownTo {
    /// Up to [`FEW`] subscriptions.
    Few(Vec<SubscriptionId>),
    /// More subscriptions.
    Many(HashSet<SubscriptionId, RandomState>),
}

/// Subscriptions that are looked through one by one, at most.
const FEW: usize = 16;

impl Default for KnownTo {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl KnownTo {
    /// Takes one in that is not there yet, or is.
    pub(super) fn insert(&mut self, id: SubscriptionId) {
        match self {
            Self::Few(few) if few.contains(&id) => {}
            Self::Few(few) if few.len() < FEW => few.push(id),
            Self::Few(few) => *self = Self::Many(few.drain(..).chain([id]).collect()),
            Self::Many(many) => drop(many.insert(id)),
        }
    }

    pub(super) fn remove(&mut self, id: SubscriptionId) {
        match self {
            Self::Few(few) => {
                if let Some(index) = few.iter().position(|other| *other == id) {
                    few.swap_remove(index);
                }
            }
            Self::Many(many) => {
                many.remove(&id);
                if many.len() <= FEW / 2 {
                    *self = Self::Few(many.drain().collect());
                }
            }
        }
    }

    /// In any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = SubscriptionId> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flat_map(|many| many.iter())).copied()
    }
}
