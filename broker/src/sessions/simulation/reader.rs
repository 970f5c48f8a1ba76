//! The simulation's readers: every entry is compared with the model of the session.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::session::Session;
use crate::ingest::json;
use crate::model::delivery::{Delivery, Entry, Gap, GapReason};
use crate::outbox::Outbox;

/// A connection that reads for a client.
pub(super) struct Connection {
    pub(super) client: String,
    pub(super) outbox: Arc<Outbox>,
    /// The beginning that the connection has to be told, once the shard has it.
    pub(super) begins: Option<Beginning>,
    /// The last offset that it was given or told as lost; none until it was told where it begins.
    pub(super) cursor: Option<u64>,
    pub(super) is_closed: bool,
    has_begun: bool,
}

/// How a reader has to begin.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    /// Which session it reads.
    pub(super) session: u64,
    /// Offset after which it begins; of a session that is not durable nobody outside can say.
    pub(super) after: Option<u64>,
    /// Whether it asked for what there is not.
    pub(super) is_astray: bool,
}

impl Connection {
    pub(super) fn new(client: String, outbox: Arc<Outbox>) -> Self {
        Self { client, outbox, begins: None, cursor: None, is_closed: false, has_begun: false }
    }

    /// Takes the next entry, and says what it is.
    pub(super) fn take(&mut self, entry: &Entry, session: Option<&Session>) -> Result<String, String> {
        let said = match entry {
            Entry::Answer(_) if self.has_begun => return Err("an answer in the middle".to_owned()),
            Entry::Answer(_) => "ready".to_owned(),
            Entry::Gap(gap) => format!("gap {}-{} {}", gap.from, gap.to, gap.reason.text()),
            Entry::Delivery(delivery) => {
                let Delivery { offset, cause, transition, .. } = delivery;
                format!("{offset} {:?} {cause:?} {transition:?} {}", names(delivery), delivery.body.text)
            }
        };
        // Of a session that is gone nothing is known any more.
        let Some(session) = session else { return Ok(said) };
        let cursor = self.cursor.ok_or("something before it was told where it begins")?;
        let next = cursor + 1;
        self.cursor = Some(match entry {
            Entry::Answer(_) => cursor,
            Entry::Gap(gap) => {
                self.gap(gap, cursor, session).ok_or_else(|| format!("after {cursor}: {said}"))?
            }
            Entry::Delivery(delivery) => {
                let told = session.at(delivery.offset).ok_or_else(|| format!("nobody knows of {said}"))?;
                let is_right = delivery.offset == next
                    && names(delivery) == told.subscriptions
                    && (delivery.cause, delivery.transition) == (told.cause, told.transition)
                    && *delivery.body.text == *told.event.text();
                if !is_right {
                    return Err(format!("after {cursor}: {said}, and not {told:?}"));
                }
                if session.durable && next > session.before && next > session.released {
                    return Err(format!("{said}, and on disk is {}", session.released));
                }
                next
            }
        });
        self.has_begun |= !matches!(entry, Entry::Answer(_));
        Ok(said)
    }

    /// Where a gap leads; none where it should not be.
    fn gap(&self, gap: &Gap, cursor: u64, session: &Session) -> Option<u64> {
        let Gap { from, to, reason } = *gap;
        let begins = self.begins.as_ref()?;
        if !self.has_begun && reason == GapReason::Epoch {
            return begins.is_astray.then_some(cursor);
        }
        // A session that is not durable tells at once of all that was missed.
        if !self.has_begun && begins.after.is_none() && from <= cursor {
            let is_true = match to > cursor {
                true => session.is_true(cursor + 1, to, reason),
                false => reason == GapReason::NotDurable,
            };
            return is_true.then_some(to.max(cursor));
        }
        (from == cursor + 1 && session.is_true(from, to, reason)).then_some(to)
    }
}

/// The subscriptions that a delivery names.
fn names(delivery: &Delivery) -> BTreeSet<String> {
    let text = |name: &Arc<str>| json::read_text(name).expect("a name is a text").into_owned();
    delivery.subscriptions.as_slice().iter().map(text).collect()
}
