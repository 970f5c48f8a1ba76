//! Sessions that outlive their connections: when a session is one, what is kept of it, and how it is let go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::kept::{Kept, KeptMatch};
use super::ledger::Waiting;
use super::resume::{cut_off_behind, pull};
use super::{Client, Sessions};
use crate::budget::Kind;
use crate::model::clock;
use crate::model::delivery::{Delivery, Entry, Reason};
use crate::model::error::Refusal;
use crate::outbox::Offered;
use crate::store::StoredMatch;

/// The part of a client that it has while its session is durable.
pub(super) struct Durable {
    pub(super) kept: Kept,
    /// Its durable subscriptions.
    pub(super) subscriptions_count: usize,
    /// The last offset that was handed out: what nobody got nobody can acknowledge.
    pub(super) handed: u64,
    /// Whether its record has changed since it was written.
    pub(super) is_changed: bool,
    /// On disk nothing is kept up to here.
    pub(super) stored_floor: u64,
    /// Offsets of the matches that were kept and are no more, since then.
    pub(super) gone: Vec<u64>,
    /// The date of its oldest match, or of one before that, among those that are looked at.
    date: Option<Instant>,
}

impl Durable {
    pub(super) fn new(kept: Kept, last: u64) -> Self {
        Self {
            kept,
            subscriptions_count: 0,
            handed: last,
            is_changed: false,
            stored_floor: last,
            gone: Vec::new(),
            date: None,
        }
    }

    /// Gives its oldest match a date, unless it has one.
    fn date_oldest(&mut self, id: u32, dates: &mut BTreeSet<(Instant, u32)>, now_ms: u64, age_ms: u64) {
        if let (None, Some(oldest)) = (self.date, self.kept.oldest_ms()) {
            let due = date(oldest, now_ms, age_ms);
            self.date = Some(due);
            dates.insert((due, id));
        }
    }
}

impl Sessions {
    /// Makes the session of a client durable, if it is not.
    pub(super) fn make_durable(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(id).filter(|client| client.durable.is_none()) else { return };
        let held = client.account(&self.budget).hold_anyway(Kind::Kept, 0);
        let kept = Kept::after(client.offset, Arc::clone(&self.kept_total), held);
        client.durable = Some(Box::new(Durable::new(kept, client.offset)));
        client.is_stored |= self.ledger.has_disk();
        self.metrics.durable_sessions.raise();
        self.session_changed(id, true);
    }

    /// Ends what is durable of a session that has nothing left to keep and nobody to tell.
    pub(super) fn settle(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let is_over = client.durable.as_ref().is_some_and(|durable| {
            durable.subscriptions_count == 0 && durable.kept.is_empty() && client.readers.is_empty()
        });
        // What is still on its way is released first.
        if is_over && client.released == client.offset {
            // Up to here: what its record says stays right, for it takes no more offsets as a durable one.
            let ended = client.durable.take();
            self.metrics.durable_sessions.lower();
            // The next offset is told to nobody before this is on disk: after a crash it would be given once more.
            client.held_step = self.ledger.step();
            if let Some(batch) = self.ledger.record_soon() {
                batch.forget_kept(&client.name, 0..=client.offset);
            }
            if let Some(durable) = ended {
                self.forget_date(id, &durable);
            }
        }
        self.leave(id);
    }

    /// Writes the record of a session anew with the next commit.
    pub(super) fn session_changed(&mut self, id: u32, is_due: bool) {
        if !self.ledger.has_disk() {
            return;
        }
        let Some(durable) = self.clients.get_mut(id).and_then(|client| client.durable.as_mut()) else {
            return;
        };
        if !durable.is_changed || is_due {
            durable.is_changed = true;
            self.ledger.session_changed(id, is_due);
        }
    }

    /// Deals a delivery out in a durable session, whose next offset it has.
    pub(super) fn deliver_durable(&mut self, id: u32, delivery: Delivery, is_kept: bool) {
        if is_kept {
            self.make_room(id, KeptMatch::bytes_of(&delivery));
        }
        let Some(client) = self.clients.get_mut(id) else { return };
        let Some(durable) = &mut client.durable else { return };
        let (offset, has_disk) = (delivery.offset, self.ledger.has_disk());
        let mut passing = None;
        let mut is_changed = true;
        if is_kept {
            let kept = KeptMatch { delivery: delivery.clone(), at_ms: self.unix_ms };
            let gone_before = durable.gone.len();
            let keeping = durable.kept.push(kept, &self.kept_bounds, &mut durable.gone);
            let lost = durable.gone.len() - gone_before + usize::from(!keeping.is_kept);
            // Where the session is then, the match itself says.
            is_changed = lost > 0;
            self.metrics.dropped.add(lost as u64);
            if !has_disk {
                durable.gone.clear();
            }
            if !keeping.is_kept {
                // Lost for who is not there.
                passing = Some(Entry::Delivery(delivery));
            } else if let Some(body) = self.ledger.body(&delivery.body, self.timeline.ages_ms()) {
                let kept = StoredMatch {
                    offset,
                    subscriptions: delivery.subscriptions.clone(),
                    cause: delivery.cause,
                    transition: delivery.transition,
                    at_ms: self.unix_ms,
                    body,
                };
                if let Some(batch) = self.ledger.record() {
                    batch.keep(&client.name, &kept);
                }
            }
            if keeping.cuts_off {
                cut_off_behind(&client.readers, &self.metrics);
            }
            durable.date_oldest(id, &mut self.dates, self.timeline.ages_ms(), self.kept_bounds.age_ms);
        } else {
            durable.kept.skip(offset, Reason::NotDurable);
            passing = Some(Entry::Delivery(delivery));
        }
        if is_changed {
            self.session_changed(id, true);
        }
        self.wait_or_release(id, offset, passing);
    }

    /// Takes an offset of a durable session for a loss that is told.
    pub(super) fn skip_durable(&mut self, id: u32, offset: u64, reason: Reason) {
        if let Some(durable) = self.clients.get_mut(id).and_then(|client| client.durable.as_mut()) {
            durable.kept.skip(offset, reason);
        }
        self.session_changed(id, true);
        self.wait_or_release(id, offset, None);
    }

    fn wait_or_release(&mut self, client: u32, offset: u64, passing: Option<Entry>) {
        match (self.ledger.has_disk(), passing) {
            (true, None) => self.ledger.wait(Waiting::Kept { client, offset }),
            (true, Some(entry)) => {
                let entry = Box::new(entry);
                self.ledger.wait(Waiting::Passing { client, offset, entry });
            }
            (false, None) => self.release_kept(client, offset),
            (false, Some(entry)) => self.release_passing(client, offset, entry),
        }
    }

    /// The session has come to an offset that is kept, or told as lost: readers that keep up get it, together with what
    /// came before it.
    pub(super) fn release_kept(&mut self, id: u32, offset: u64) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.released = offset;
        let Client { durable: Some(durable), readers, .. } = client else { return };
        if let Some(alarm) = durable.kept.alarm(offset) {
            readers.iter_mut().for_each(|reader| reader.push_ahead(alarm));
        }
        // There is more behind it that is released now.
        if offset < client.offset {
            return;
        }
        for reader in readers.iter_mut().filter(|reader| !reader.is_behind) {
            pull(reader, durable, offset, false, &self.metrics, &mut self.sleepers);
        }
        self.settle_released(id);
    }

    /// Settles a client that had to wait for its last release, if it has no reader and no subscription any more.
    fn settle_released(&mut self, id: u32) {
        let is_last = self.clients.get(id).is_some_and(|client| {
            client.released == client.offset && client.readers.is_empty() && client.subscriptions.is_empty()
        });
        if is_last {
            self.settle(id);
        }
    }

    /// The session has come to an offset that is not kept: it is for the readers that are there and keep up.
    pub(super) fn release_passing(&mut self, id: u32, offset: u64, entry: Entry) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.released = offset;
        for reader in &mut client.readers {
            if reader.cursor >= offset {
                continue;
            }
            match &mut client.durable {
                Some(durable) => {
                    if !reader.is_behind && reader.cursor + 1 < offset {
                        pull(reader, durable, offset - 1, false, &self.metrics, &mut self.sleepers);
                    }
                    if reader.is_behind {
                        // It is lost in its turn: before it, it is not.
                        if let Entry::Delivery(alarm) = &entry
                            && alarm.body.is_alarm
                        {
                            reader.outbox.offer_ahead(alarm, true);
                        }
                        continue;
                    }
                    match reader.outbox.offer(entry.clone()) {
                        Offered::Full => reader.overflow(&self.metrics),
                        Offered::Taken { sleeps } => {
                            reader.cursor = offset;
                            durable.handed = durable.handed.max(offset);
                            if sleeps {
                                self.sleepers.push(Arc::clone(&reader.outbox));
                            }
                        }
                    }
                }
                None => {
                    reader.cursor = offset;
                    reader.push(entry.clone(), &self.metrics, &mut self.sleepers);
                }
            }
        }
        self.settle_released(id);
    }

    /// Forgets what a client has acknowledged: everything up to an offset, as far as it was handed out.
    pub(crate) fn acknowledge(&mut self, name: &str, offset: u64) -> Result<(), Refusal> {
        let now = self.heard_now();
        let id = self.ids.get(name).copied();
        let mut client = id.and_then(|id| self.clients.get_mut(id));
        if let Some(client) = &mut client {
            client.heard(now);
        }
        let last = client.as_ref().map_or(0, |client| client.released);
        if offset > last {
            return Err(Refusal::invalid(
                "/offset",
                format!("is beyond {last}, the last offset of the session"),
            ));
        }
        if let (Some(id), Some(durable)) = (id, client.and_then(|client| client.durable.as_mut())) {
            durable.kept.acknowledge(offset.min(durable.handed));
            self.session_changed(id, false);
            self.settle(id);
        }
        Ok(())
    }

    /// When the next kept match has been kept for as long as it may be.
    pub(super) fn next_date(&self) -> Option<Instant> {
        self.dates.first().map(|(date, _)| *date)
    }

    /// Lets go of what is beyond bounds that were lowered while the broker was not there, for sessions that were taken up
    /// again.
    pub(super) fn fit(&mut self, restored: &[u32]) {
        let mut gone_count = 0;
        for &id in restored {
            let Some(durable) = self.clients.get_mut(id).and_then(|client| client.durable.as_mut()) else {
                continue;
            };
            durable.kept.fit(&self.kept_bounds, &mut durable.gone);
            let gone = durable.gone.len();
            if gone > 0 {
                gone_count += gone;
                self.session_changed(id, false);
                self.settle(id);
            }
        }
        if gone_count > 0 {
            self.metrics.dropped.add(gone_count as u64);
            tracing::warn!(
                matches = gone_count,
                "what was kept is more than may be by now, and the oldest went (sessions.kept_frames, kept_bytes, kept_total_bytes)"
            );
        }
    }

    /// Lets go of what has been kept for as long as it may be.
    pub(super) fn let_go(&mut self, now: Instant) {
        while let Some(&(date_due, id)) = self.dates.first()
            && date_due <= now
        {
            self.dates.pop_first();
            let age_ms = self.kept_bounds.age_ms;
            let durable = self.clients.get_mut(id).and_then(|client| client.durable.as_mut());
            let Some(durable) = durable else { continue };
            durable.date = None;
            let gone_before = durable.gone.len();
            durable.kept.expire((self.timeline.ages_ms() + 1).saturating_sub(age_ms), &mut durable.gone);
            let gone = durable.gone.len() - gone_before;
            self.metrics.dropped.add(gone as u64);
            if !self.ledger.has_disk() {
                durable.gone.clear();
            }
            durable.date_oldest(id, &mut self.dates, self.timeline.ages_ms(), age_ms);
            if gone > 0 {
                self.session_changed(id, false);
                self.settle(id);
            }
        }
    }

    /// The dates were reckoned by a time that does not count any more.
    pub(super) fn look_at_all_dates(&mut self, now: Instant) {
        self.dates.clear();
        for id in self.ids.values() {
            let durable = self.clients.get_mut(*id).and_then(|client| client.durable.as_mut());
            if let Some(durable) = durable
                && durable.date.is_some()
            {
                durable.date = Some(now);
                self.dates.insert((now, *id));
            }
        }
        self.let_go(now);
    }

    /// Gives the oldest match of a session that was restored its date.
    pub(super) fn date_oldest(&mut self, id: u32) {
        let durable = self.clients.get_mut(id).and_then(|client| client.durable.as_mut());
        if let Some(durable) = durable {
            durable.date_oldest(id, &mut self.dates, self.timeline.ages_ms(), self.kept_bounds.age_ms);
        }
    }

    /// A durable session is over.
    pub(super) fn forget_date(&mut self, id: u32, durable: &Durable) {
        if let Some(date) = durable.date {
            self.dates.remove(&(date, id));
        }
    }
}

/// When a match has been kept for long enough. Never at once: a clock that was set makes nobody busy.
fn date(at_ms: u64, now_ms: u64, age_ms: u64) -> Instant {
    let left_ms = at_ms.saturating_add(age_ms).saturating_sub(now_ms).clamp(1, age_ms.max(1));
    clock::now() + Duration::from_millis(left_ms)
}
