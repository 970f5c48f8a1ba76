//! The state that a session has to have: every delivery by its offset, and its fate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use matcher::live::Cause;

use super::spec::Event;
use crate::model::delivery::{GapReason, OverflowName, Transition};

/// One session of a client.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Which of all sessions it is.
    pub(super) number: u64,
    /// The broker's name of the session, once that was heard.
    pub(super) epoch: Option<String>,
    pub(super) told: Vec<Told>,
    pub(super) durable: bool,
    /// Last offset from before it was durable.
    pub(super) before: u64,
    pub(super) acknowledged: u64,
    /// Last offset that may be told, since everything up to it is on disk.
    pub(super) released: u64,
    /// Nothing becomes too old before then: after a start the broker looks a millisecond later.
    pub(super) ages_from_ms: u64,
    /// Offsets that are kept, with their bytes.
    pub(super) kept: BTreeMap<u64, usize>,
}

/// A delivery.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) subscriptions: BTreeSet<String>,
    pub(super) cause: Cause,
    pub(super) transition: Option<Transition>,
    pub(super) event: Arc<Event>,
    pub(super) at_ms: u64,
    pub(super) overflow: Option<OverflowName>,
    /// Whether it was to be kept.
    pub(super) is_kept: bool,
    /// Why it is kept no more, where it was lost.
    pub(super) lost: Option<GapReason>,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) frames: usize,
    pub(super) bytes: usize,
    pub(super) age_ms: u64,
    pub(super) overflow: OverflowName,
}

/// Bytes of a kept match besides its texts.
const MATCH_BYTES: usize = 128;

impl Told {
    fn bytes(&self) -> usize {
        // Names in quotes, and the pointers to them.
        let pointer = size_of::<Arc<str>>();
        let names: usize = self.subscriptions.iter().map(|name| pointer + name.len() + 2).sum();
        MATCH_BYTES + self.event.text().len() + names
    }

    fn policy(&self, bounds: &Bounds) -> OverflowName {
        self.overflow.unwrap_or(bounds.overflow)
    }

    fn is_of_same(&self, other: &Self) -> bool {
        self.event.object() == other.event.object() && self.subscriptions == other.subscriptions
    }
}

impl Session {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            epoch: None,
            told: Vec::new(),
            durable: false,
            before: 0,
            acknowledged: 0,
            released: 0,
            ages_from_ms: 0,
            kept: BTreeMap::new(),
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.told.len() as u64
    }

    pub(super) fn at(&self, offset: u64) -> Option<&Told> {
        self.told.get(usize::try_from(offset.checked_sub(1)?).ok()?)
    }

    fn at_mut(&mut self, offset: u64) -> &mut Told {
        &mut self.told[usize::try_from(offset - 1).expect("few")]
    }

    pub(super) fn make_durable(&mut self) {
        if !self.durable {
            self.durable = true;
            (self.before, self.acknowledged) = (self.offset(), self.offset());
        }
    }

    /// Takes the next delivery; one that is kept makes room for itself by the policy.
    pub(super) fn take(&mut self, told: Told, bounds: &Bounds) {
        let (bytes, is_kept) = (told.bytes(), told.is_kept);
        let is_latest = |told: &Told| told.policy(bounds) == OverflowName::KeepLatest;
        self.told.push(told);
        let offset = self.offset();
        if !is_kept {
            return;
        }
        while self.kept.len() >= bounds.frames || self.kept.values().sum::<usize>() + bytes > bounds.bytes {
            let Some(oldest) = self.kept.keys().next().copied() else {
                self.at_mut(offset).lost = Some(GapReason::Overflow);
                return;
            };
            let has_newer = |one: &&u64| {
                let told = self.at(**one).expect("it was told");
                let later = self.kept.range(**one + 1..).map(|(later, _)| *later).chain([offset]);
                let mut later = later.filter_map(|later| self.at(later));
                is_latest(told) && later.any(|later| is_latest(later) && later.is_of_same(told))
            };
            let victim = self.kept.keys().find(has_newer).copied().unwrap_or(oldest);
            self.lose(victim, GapReason::Overflow);
        }
        self.kept.insert(offset, bytes);
    }

    fn lose(&mut self, offset: u64, reason: GapReason) {
        self.kept.remove(&offset);
        self.at_mut(offset).lost = Some(reason);
    }

    /// Loses what was kept for long enough; says whether there was any.
    pub(super) fn expire(&mut self, now_ms: u64, bounds: &Bounds) -> bool {
        if now_ms < self.ages_from_ms {
            return false;
        }
        let is_over =
            |offset: &u64| self.at(*offset).is_some_and(|told| told.at_ms + bounds.age_ms <= now_ms);
        let over: Vec<_> = self.kept.keys().copied().take_while(is_over).collect();
        over.iter().for_each(|offset| self.lose(*offset, GapReason::Age));
        !over.is_empty()
    }

    pub(super) fn acknowledge(&mut self, offset: u64) {
        if self.durable && offset > self.acknowledged {
            self.acknowledged = offset;
            self.kept = self.kept.split_off(&(offset + 1));
        }
    }

    /// The last offset that was lost although it should have been kept.
    pub(super) fn last_loss(&self) -> u64 {
        let offsets = self.acknowledged + 1..=self.offset();
        offsets.rev().find(|offset| self.at(*offset).is_some_and(|told| told.lost.is_some())).unwrap_or(0)
    }

    /// Forgets the reasons of holes, as a crash does: afterwards nobody knows of a hole more than whether it lies before the
    /// last loss.
    pub(super) fn forget_reasons(&mut self) {
        let lost = self.last_loss();
        self.before = 0;
        for offset in self.acknowledged + 1..=self.offset() {
            if !self.kept.contains_key(&offset) {
                self.at_mut(offset).lost = (offset <= lost).then_some(GapReason::Overflow);
            }
        }
    }

    /// Whether a reader may be told that an offset is not to be had for this reason.
    fn may_be_gone(&self, offset: u64, reason: GapReason) -> bool {
        let lost = self.at(offset).and_then(|told| told.lost);
        match reason {
            GapReason::Acknowledged => offset <= self.acknowledged,
            GapReason::NotDurable => {
                offset <= self.before || (lost.is_none() && !self.kept.contains_key(&offset))
            }
            GapReason::Overflow if !self.durable || offset <= self.before => true,
            GapReason::Age | GapReason::Overflow => lost == Some(reason),
            GapReason::Ahead | GapReason::Members | GapReason::Late | GapReason::Epoch => false,
        }
    }

    /// Whether a gap tells the truth: for each of its offsets there is a reason, and its own is the worst of them.
    pub(super) fn is_true(&self, from: u64, to: u64, reason: GapReason) -> bool {
        let lesser = |offset: u64| {
            let mut reasons = GapReason::ALL.into_iter().filter(|one| *one <= reason);
            reasons.any(|one| self.may_be_gone(offset, one))
        };
        to <= self.offset()
            && (from..=to).all(lesser)
            && (from..=to).any(|offset| self.may_be_gone(offset, reason))
    }
}
