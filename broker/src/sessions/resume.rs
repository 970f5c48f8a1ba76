//! Readers: where each of them is in its client's session, how one begins, and how it goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::durable::Durable;
use super::kept::Next;
use super::{Attached, Resume, Sessions};
use crate::ingest::Confinement;
use crate::ingest::subscription::quoted;
use crate::metrics::Metrics;
use crate::model::delivery::{Delivery, Entry, Gap, Reason};
use crate::model::error::Refusal;
use crate::model::tenant;
use crate::outbox::{Offered, Outbox};

/// A connection that reads for a client.
pub(super) struct Reader {
    pub(super) outbox: Arc<Outbox>,
    /// The last offset that it was given, or told as lost.
    pub(super) cursor: u64,
    /// Whether more waits for a durable session than its outbox has room for. It asks when it has room.
    pub(super) is_behind: bool,
    /// Offsets of the alarms behind the cursor of a durable session that it was given before their turn.
    pub(super) ahead: BTreeSet<u64>,
}

impl Reader {
    /// Gives it something of a session that is not durable. At the bound of its outbox the policy decides what is lost.
    pub(super) fn push(&self, entry: Entry, metrics: &Metrics, sleepers: &mut Vec<Arc<Outbox>>) {
        match entry {
            Entry::Delivery(delivery) => {
                let pushed = self.outbox.push_delivery(delivery);
                metrics.dropped.add(pushed.dropped);
                metrics.gaps.of(Reason::Overflow).add(pushed.dropped);
                metrics.overflowed.add(pushed.cut_off.into());
                if pushed.sleeps {
                    sleepers.push(Arc::clone(&self.outbox));
                }
            }
            Entry::Gap(gap) => {
                metrics.gaps.of(gap.reason).add(gap.count());
                self.outbox.push_gap(gap);
            }
            Entry::Answer(text) => self.outbox.push_answer(text),
        }
    }

    /// Deals with a delivery that finds no room with a reader that kept up until now: the reader is behind, or cut off if
    /// that is the policy. The kept matches stay for the reader that comes back.
    pub(super) fn overflow(&mut self, metrics: &Metrics) {
        metrics.overflowed.add(self.outbox.cut_off_if_asked().into());
        self.fall_behind(metrics);
    }

    /// Gives it an alarm before its turn, if anything else comes first.
    pub(super) fn push_ahead(&mut self, alarm: &Delivery) {
        let is_behind = self.is_behind || self.cursor + 1 < alarm.offset;
        if self.cursor < alarm.offset && self.outbox.offer_ahead(alarm, is_behind) {
            self.ahead.insert(alarm.offset);
        }
    }

    fn fall_behind(&mut self, metrics: &Metrics) {
        if !std::mem::replace(&mut self.is_behind, true) {
            metrics.readers_behind.raise();
        }
    }

    pub(super) fn catch_up(&mut self, metrics: &Metrics) {
        if std::mem::replace(&mut self.is_behind, false) {
            metrics.readers_behind.lower();
        }
    }
}

/// Cuts off readers that have not taken everything yet.
pub(super) fn cut_off_behind(readers: &[Reader], metrics: &Metrics) {
    for reader in readers.iter().filter(|reader| reader.is_behind) {
        metrics.overflowed.add(reader.outbox.cut_off().into());
    }
}

/// Gives a reader what comes next in a durable session, up to `last`, as far as its outbox has room. `is_late` is for one that
/// catches up with what it could have had before: it has not failed to read.
pub(super) fn pull(
    reader: &mut Reader,
    durable: &mut Durable,
    last: u64,
    is_late: bool,
    metrics: &Metrics,
    sleepers: &mut Vec<Arc<Outbox>>,
) {
    let mut sleeps = false;
    while let Some(next) = durable.kept.next(reader.cursor, last) {
        let (to, entry) = match next {
            Next::Match(Delivery { offset, .. }) if reader.ahead.contains(offset) => {
                (*offset, Entry::Gap(Gap { from: *offset, to: *offset, reason: Reason::Ahead }))
            }
            Next::Match(delivery) => {
                (delivery.offset, Entry::Delivery(Delivery { is_late, ..delivery.clone() }))
            }
            Next::Gap(gap) => (gap.to, Entry::Gap(gap)),
        };
        let told = if let Entry::Gap(gap) = &entry { Some((gap.reason, gap.count())) } else { None };
        match reader.outbox.offer(entry) {
            Offered::Full => {
                if is_late {
                    reader.fall_behind(metrics);
                } else {
                    reader.overflow(metrics);
                }
                break;
            }
            Offered::Taken { sleeps: one } => {
                sleeps |= one;
                reader.cursor = to;
                reader.ahead.remove(&to);
                if let Some((reason, count)) = told {
                    metrics.gaps.of(reason).add(count);
                }
            }
        }
    }
    if reader.cursor >= last {
        reader.catch_up(metrics);
    }
    durable.handed = durable.handed.max(reader.cursor.min(last));
    if sleeps {
        sleepers.push(Arc::clone(&reader.outbox));
    }
}

impl Sessions {
    /// Lets a connection read for a client. What it is told first stands before every delivery.
    pub(crate) fn attach(
        &mut self,
        name: &Arc<str>,
        outbox: Arc<Outbox>,
        resume: Resume,
        confinement: Option<Arc<Confinement>>,
    ) -> Result<Attached, Refusal> {
        let limit = self.limits.readers_per_client;
        let id = self.enter(name, None)?;
        self.bind(id, confinement.as_ref())?;
        let client = self.clients.get_mut(id).ok_or(Refusal::Internal("the client is gone"))?;
        if client.readers.len() >= limit {
            let setting = "limits.readers_per_client";
            return Err(Refusal::Limit {
                what: "connections that read for one client",
                limit: limit as u64,
                setting,
            });
        }
        let (greets, asked) = match resume {
            Resume::Ready => (true, None),
            Resume::Fresh => (false, None),
            Resume::ReadyAfter { epoch, offset } => (true, Some((epoch, offset))),
            Resume::After { epoch, offset } => (false, Some((epoch, offset))),
        };
        // An event stream has no other way to say that something has come.
        let mut acknowledged = None;
        let mut gap = None;
        let last = client.released;
        let known = asked
            .as_ref()
            .map(|(epoch, offset)| (**epoch == *client.epoch && *offset <= last).then_some(*offset));
        let start = match (&client.durable, known) {
            (Some(durable), None) => durable.kept.acknowledged(),
            (Some(_), Some(Some(offset))) => {
                acknowledged = (!greets).then_some(offset);
                offset
            }
            (Some(durable), Some(None)) => {
                let start = durable.kept.acknowledged();
                gap = Some(Gap { from: start + 1, to: start, reason: Reason::Epoch });
                start
            }
            (None, None) => last,
            (None, Some(Some(offset))) => {
                gap =
                    (offset < last).then_some(Gap { from: offset + 1, to: last, reason: Reason::NotDurable });
                last
            }
            (None, Some(None)) => {
                gap = Some(Gap { from: 1, to: last, reason: Reason::Epoch });
                last
            }
        };
        let attached = Attached { epoch: Arc::clone(&client.epoch), offset: start, number: id };
        if greets {
            let (client, epoch) = (quoted(tenant::outside(name)), &client.epoch);
            outbox.push_answer(format!(
                r#"{{"op":"ready","client":{client},"epoch":"{epoch}","offset":{start}}}"#
            ));
        }
        outbox.start_after(start);
        let mut reader = Reader { outbox, cursor: start, is_behind: false, ahead: BTreeSet::new() };
        if let Some(gap) = gap {
            reader.push(Entry::Gap(gap), &self.metrics, &mut self.sleepers);
        }
        if self.log.is_kept() {
            reader.outbox.note_for(Arc::clone(client.recipient()));
        }
        let mut has_acknowledged = false;
        if let Some(durable) = &mut client.durable {
            if let Some(offset) = acknowledged {
                has_acknowledged = offset > durable.kept.acknowledged();
                durable.handed = durable.handed.max(offset);
                durable.kept.acknowledge(offset);
            }
            for alarm in durable.kept.alarms(start, last) {
                reader.push_ahead(alarm);
            }
            pull(&mut reader, durable, last, true, &self.metrics, &mut self.sleepers);
        }
        client.readers.push(reader);
        if has_acknowledged {
            self.session_changed(id, false);
        }
        self.wake_readers();
        Ok(attached)
    }

    /// Gives a reader that is behind more of what is kept for it.
    pub(crate) fn refill(&mut self, name: &str, connection: u64) {
        let client = self.ids.get(name).and_then(|id| self.clients.get_mut(*id));
        let Some(client) = client else { return };
        let last = client.released;
        let Some(durable) = &mut client.durable else { return };
        let reader = client.readers.iter_mut().find(|reader| reader.outbox.connection == connection);
        if let Some(reader) = reader {
            pull(reader, durable, last, true, &self.metrics, &mut self.sleepers);
        }
        self.wake_readers();
    }
}
