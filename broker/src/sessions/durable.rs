//! Sessions that outlive their connections: when a session is one, what is kept of it, and how it is let go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use matcher::violated;

use super::Sessions;
use super::commit::Waiting;
use crate::budget::Kind;
use crate::model::clock;
use crate::model::delivery::{Delivery, GapReason};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::outbox::{DeliveryLog, Keep, KeptBounds, Log};
use crate::store::StoredMatch;

/// The part of a client that it has while its session is durable.
pub(super) struct Durable {
    /// Its durable subscriptions.
    pub(super) subscriptions_count: usize,
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
    pub(super) fn new(last: u64) -> Self {
        Self { subscriptions_count: 0, is_changed: false, stored_floor: last, gone: Vec::new(), date: None }
    }

    /// Gives its oldest match a date, unless it has one.
    fn date_oldest(
        &mut self,
        log: &DeliveryLog,
        id: u32,
        dates: &mut BTreeSet<(Instant, u32)>,
        now_ms: u64,
        age_ms: u64,
    ) {
        // Of some it is kept for ever.
        if self.date.is_none()
            && age_ms < u64::MAX
            && let Some(oldest) = log.lock().oldest_ms()
        {
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
        let offset = client.offset;
        let log = client.log(self.outbox_bounds, &self.budget, &self.kept_total, &self.metrics);
        log.lock().make_durable(offset, held);
        client.durable = Some(Box::new(Durable::new(offset)));
        client.is_stored |= self.ledger.has_disk();
        self.metrics.durable_sessions.raise();
        self.session_changed(id, true);
    }

    /// Ends what is durable of a session that has nothing left to keep and nobody to tell.
    pub(super) fn settle(&mut self, id: u32) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let is_over = client.durable.as_ref().is_some_and(|durable| {
            durable.subscriptions_count == 0 && client.kept_count() == 0 && client.readers.is_empty()
        });
        // What is still on its way is released first.
        if is_over && client.released == client.offset {
            // Up to here: what its record says stays right, for it takes no more offsets as a durable one.
            let ended = client.durable.take();
            if let Some(log) = &client.log {
                log.lock().end_durable();
            }
            self.metrics.durable_sessions.lower();
            // No connection gets the next offset before this is on disk: after a crash it would be given once more.
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
            self.make_room(id, Log::kept_bytes_of(&delivery));
        }
        let (offset, is_alarm, has_disk) = (delivery.offset, delivery.body.is_alarm, self.ledger.has_disk());
        let Some(client) = self.clients.get_mut(id) else {
            return violated!("a client that is served is there");
        };
        let (Some(durable), Some(log)) = (&mut client.durable, &client.log) else {
            return violated!("a durable session has a log");
        };
        let Delivery { cause, transition, .. } = delivery;
        let stored = is_kept.then(|| (delivery.subscriptions.clone(), Arc::clone(&delivery.body)));
        let bounds = bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds);
        let keep = is_kept.then_some(Keep { bounds, at_ms: self.unix_ms });
        let gone_before = durable.gone.len();
        let appended = log.lock().append(delivery, keep, &mut durable.gone);
        let mut is_changed = true;
        if is_kept {
            let lost = durable.gone.len() - gone_before + usize::from(!appended.is_kept);
            // Where the session is then, the match itself says.
            is_changed = lost > 0;
            self.metrics.dropped.add(lost as u64);
            if !has_disk {
                durable.gone.clear();
            }
            durable.date_oldest(log, id, &mut self.dates, self.timeline.ages_ms(), bounds.age_ms);
        }
        let stored = stored.filter(|_| appended.is_kept);
        if let (Some(push), Some((_, body))) = (&client.push, &stored)
            && client.readers.is_empty()
        {
            push.note(body);
        }
        if let Some((subscriptions, body)) = stored
            && let Some(body) = self.ledger.body(&body, self.timeline.ages_ms())
            && let Some(batch) = self.ledger.record()
        {
            let at_ms = self.unix_ms;
            batch.keep(&client.name, &StoredMatch { offset, subscriptions, cause, transition, at_ms, body });
        }
        self.cut_off(id, &appended.cut);
        if is_changed {
            self.session_changed(id, true);
        }
        self.release_or_wait(id, offset, is_alarm, has_disk);
    }

    /// Takes an offset for a loss that a gap reports: an object did not enter, or left without an event to tell of it, or a subscription
    /// finds nothing from now on.
    pub(super) fn tell_loss(&mut self, id: u32, reason: GapReason) {
        let Some(client) = self.clients.get_mut(id) else {
            return violated!("a client that is served is there");
        };
        client.offset += 1;
        let (offset, is_durable) = (client.offset, client.durable.is_some());
        let is_held = if is_durable { self.ledger.has_disk() } else { client.is_held(&self.ledger) };
        if is_held || !client.readers.is_empty() || is_durable {
            let log = client.log(self.outbox_bounds, &self.budget, &self.kept_total, &self.metrics);
            log.lock().skip(offset, reason);
        }
        if is_durable {
            self.session_changed(id, true);
        }
        self.release_or_wait(id, offset, false, is_held);
    }

    /// Makes an offset visible to connections: at once, or once it is on disk.
    pub(super) fn release_or_wait(&mut self, client: u32, offset: u64, is_alarm: bool, is_held: bool) {
        if is_held {
            self.ledger.wait(Waiting::Release { client, offset, is_alarm });
        } else {
            self.release(client, offset, is_alarm);
        }
    }

    /// Makes everything up to an offset visible to the connections of a client. An alarm goes ahead of what waits.
    pub(super) fn release(&mut self, id: u32, offset: u64, is_alarm: bool) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.released = offset;
        // There is more behind it that is released now.
        if offset < client.offset && !is_alarm {
            return;
        }
        if let Some(push) = &client.push {
            push.announce();
        }
        let mut cut = Vec::new();
        if let Some(log) = &client.log {
            let mut guard = log.lock();
            let (readers, sleepers) = (&client.readers, &mut self.sleepers);
            cut = guard.release(offset, |connection| {
                sleepers
                    .extend(readers.iter().find(|reader| reader.connection == connection).map(Arc::clone));
            });
            let alarm = if is_alarm { guard.alarm(offset) } else { None };
            drop(guard);
            if let Some(alarm) = alarm {
                readers.iter().for_each(|reader| reader.push_ahead(&alarm));
            }
        }
        let is_last =
            client.released == client.offset && client.readers.is_empty() && client.subscriptions.is_empty();
        if !cut.is_empty() {
            self.cut_off(id, &cut);
        }
        // A client that had to wait for its last release.
        if is_last {
            self.settle(id);
        }
    }

    /// Cuts connections of a client off that did not keep up.
    pub(super) fn cut_off(&self, id: u32, connections: &[u64]) {
        let readers = self.clients.get(id).into_iter().flat_map(|client| &client.readers);
        for reader in readers.filter(|reader| connections.contains(&reader.connection)) {
            self.metrics.overflowed.add(reader.cut_off().into());
        }
    }

    /// Forgets what a client has acknowledged: everything up to an offset, as far as it was handed out.
    pub(crate) fn acknowledge(&mut self, name: &str, offset: u64) -> Result<(), ApiError> {
        let now = self.heard_now();
        let id = self.ids.get(name).copied();
        let mut client = id.and_then(|id| self.clients.get_mut(id));
        if let Some(client) = &mut client {
            client.heard(now);
        }
        let last = client.as_ref().map_or(0, |client| client.released);
        if offset > last {
            return Err(ApiError::invalid(
                "/offset",
                format!("is beyond {last}, the last offset of the session"),
            ));
        }
        let log = client.filter(|client| client.durable.is_some()).and_then(|client| client.log.as_ref());
        if let (Some(id), Some(log)) = (id, log) {
            log.lock().acknowledge(offset);
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
            let Some(client) = self.clients.get_mut(id) else { continue };
            let (Some(durable), Some(log)) = (&mut client.durable, &client.log) else {
                violated!("a durable session has a log");
                continue;
            };
            let bounds = bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds);
            log.lock().fit(bounds, &mut durable.gone);
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
            let Some(client) = self.clients.get_mut(id) else { continue };
            let age_ms = bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds).age_ms;
            let before_ms = (self.timeline.ages_ms() + 1).saturating_sub(age_ms);
            let (Some(durable), Some(log)) = (&mut client.durable, &client.log) else { continue };
            durable.date = None;
            let gone_before = durable.gone.len();
            log.lock().expire(before_ms, &mut durable.gone);
            let gone = durable.gone.len() - gone_before;
            self.metrics.dropped.add(gone as u64);
            if !self.ledger.has_disk() {
                durable.gone.clear();
            }
            durable.date_oldest(log, id, &mut self.dates, self.timeline.ages_ms(), age_ms);
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
        let Some(client) = self.clients.get_mut(id) else { return };
        if let (Some(durable), Some(log)) = (&mut client.durable, &client.log) {
            let age_ms = bounds_of(&client.name, &self.kept_bounds, &self.own_kept_bounds).age_ms;
            durable.date_oldest(log, id, &mut self.dates, self.timeline.ages_ms(), age_ms);
        }
    }

    /// A durable session is over.
    pub(super) fn forget_date(&mut self, id: u32, durable: &Durable) {
        if let Some(date) = durable.date {
            self.dates.remove(&(date, id));
        }
    }
}

/// How much is retained for a client, by its name: as much as for all clients, or for a situation.
pub(super) fn bounds_of<'a>(name: &str, clients: &'a KeptBounds, own: &'a KeptBounds) -> &'a KeptBounds {
    if tenant::is_own(tenant::outside(name)) { own } else { clients }
}

/// When a match has been kept for long enough. Never at once: a clock that was set makes nobody busy.
fn date(at_ms: u64, now_ms: u64, age_ms: u64) -> Instant {
    let left_ms = at_ms.saturating_add(age_ms).saturating_sub(now_ms).clamp(1, age_ms.max(1));
    clock::now() + Duration::from_millis(left_ms)
}
