//! How a connection begins to read a client's session.

use std::sync::Arc;

use super::{Attached, Resume, Sessions};
use crate::ingest::Confinement;
use crate::ingest::subscription::quoted;
use crate::model::delivery::{Gap, GapReason};
use crate::model::error::ApiError;
use crate::model::tenant;
use crate::outbox::Outbox;

impl Sessions {
    /// Lets a connection read for a client. Its `ready`, and a gap that says what it missed, come before every delivery.
    pub(crate) fn attach(
        &mut self,
        name: &Arc<str>,
        outbox: Arc<Outbox>,
        resume: Resume,
        confinement: Option<Arc<Confinement>>,
    ) -> Result<Attached, ApiError> {
        let limit = self.limits.readers_per_client;
        let id = self.enter(name, None)?;
        self.bind(id, confinement.as_ref())?;
        let client = self.clients.get_mut(id).ok_or(ApiError::Internal("the client is gone"))?;
        if client.readers.len() >= limit {
            let setting = "limits.readers_per_client";
            return Err(ApiError::Limit {
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
        let (last, is_durable) = (client.released, client.durable.is_some());
        let log = Arc::clone(client.log(self.outbox_bounds, &self.budget, &self.kept_total, &self.metrics));
        let known = asked
            .as_ref()
            .map(|(epoch, offset)| (**epoch == *client.epoch && *offset <= last).then_some(*offset));
        let start = match (is_durable, known) {
            (true, None) => log.lock().acknowledged(),
            (true, Some(Some(offset))) => {
                acknowledged = (!greets).then_some(offset);
                offset
            }
            (true, Some(None)) => {
                let start = log.lock().acknowledged();
                gap = Some(Gap { from: start + 1, to: start, reason: GapReason::Epoch });
                start
            }
            (false, None) => last,
            (false, Some(Some(offset))) => {
                gap = (offset < last).then_some(Gap {
                    from: offset + 1,
                    to: last,
                    reason: GapReason::NotDurable,
                });
                last
            }
            (false, Some(None)) => {
                gap = Some(Gap { from: 1, to: last, reason: GapReason::Epoch });
                last
            }
        };
        let has_subscriptions = !client.subscriptions.is_empty();
        let attached =
            Attached { epoch: Arc::clone(&client.epoch), offset: start, number: id, has_subscriptions };
        if greets {
            let (client, epoch) = (quoted(tenant::outside(name)), &client.epoch);
            outbox.push_answer(format!(
                r#"{{"op":"ready","client":{client},"epoch":"{epoch}","offset":{start}}}"#
            ));
        }
        if let Some(gap) = gap {
            self.metrics.gaps.of(gap.reason).add(gap.count());
            outbox.push_gap(gap);
        }
        if self.log.is_kept() {
            outbox.note_for(Arc::clone(client.recipient()));
        }
        let mut has_acknowledged = false;
        if let Some(offset) = acknowledged {
            let mut log = log.lock();
            log.note_given(offset);
            has_acknowledged = log.acknowledge(offset);
        }
        outbox.read_from(&log, start, last);
        outbox.wake();
        client.readers.push(outbox);
        if let Some(push) = &client.push {
            push.read();
        }
        if has_acknowledged {
            self.session_changed(id, false);
        }
        self.wake_readers();
        Ok(attached)
    }
}
