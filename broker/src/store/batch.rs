//! The changes that one step of a shard puts on disk, as they are written there.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::keys::{self, Table};
use super::records::{
    BETWEEN_NAMES, BodyRecord, LiveRecord, Matched, StandingRecord, StoredDecisions, StoredFinding,
    StoredFrontier, StoredLive, StoredMatch, StoredPosition, StoredPush, StoredSession, StoredStanding,
    StoredState, seal,
};
use crate::model::delivery::SubscriptionIds;
use crate::model::record::{BodyId, StoredBody};

/// The part of one shard's step that has to survive. It is built in memory, in the form in which it is written; nothing is
/// written before [`Store::commit`](super::Store::commit).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// One [`Op`] after the other.
    ops: Vec<u8>,
    /// The texts of events. Those that another batch has written by then are left out.
    bodies: Vec<PutBody>,
    /// The changes that put them.
    body_ops: Vec<u8>,
    /// The event that was kept last.
    matched: Option<Matched>,
    /// A record on its way there.
    value: Vec<u8>,
    /// The believed time, in Unix milliseconds.
    pub(super) believed_ms: Option<u64>,
    /// Whether something that it removes has to leave the disk soon as well.
    pub(super) is_wiped_soon: bool,
}

/// The text of an event, and where the change is that puts it.
#[derive(Clone, Debug)]
struct PutBody {
    stored: Arc<StoredBody>,
    op: Range<usize>,
}

/// One change, as it stands in the log. The last word on a key counts, so that it does no harm to carry a run of them out
/// again on what they led to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Op<'a> {
    Put {
        table: u8,
        #[serde(borrow)]
        key: Bytes<'a>,
        value: Bytes<'a>,
    },
    Remove {
        table: u8,
        key: Bytes<'a>,
    },
    /// All keys from `from` to before `to`.
    RemoveRange {
        table: u8,
        from: Bytes<'a>,
        to: Bytes<'a>,
    },
    /// The event that is kept from here on.
    Matched(Matched),
    /// It is kept for a client.
    Keep {
        client: &'a str,
        offset: u64,
        subscriptions: &'a str,
    },
    /// Nothing is kept for a client from `first` to `last`.
    Forget {
        client: &'a str,
        first: u64,
        last: u64,
    },
}

/// Bytes that serde takes as bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Bytes<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("bytes")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<Bytes<'de>, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_changes() && self.believed_ms.is_none()
    }

    /// Whether it says more than what the time is.
    pub(super) fn has_changes(&self) -> bool {
        !self.ops.is_empty() || !self.bodies.is_empty()
    }

    /// Says what the time is, in Unix milliseconds. The last word counts, if it comes a minute after the one before.
    pub(crate) fn date(&mut self, believed_ms: u64) {
        self.believed_ms = Some(believed_ms);
    }

    /// Forgets everything, and keeps the memory for the next.
    pub(crate) fn clear(&mut self) {
        let Self { ops, bodies, body_ops, matched, value: _, believed_ms, is_wiped_soon } = self;
        for bytes in [ops, body_ops] {
            bytes.clear();
            bytes.shrink_to(IDLE_BYTES);
        }
        bodies.clear();
        (*matched, *believed_ms, *is_wiped_soon) = (None, None, false);
    }

    /// About what it adds to the log.
    pub(crate) fn bytes(&self) -> usize {
        self.ops.len() + self.body_ops.len()
    }

    /// The bodies in it.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &Arc<StoredBody>> {
        self.bodies.iter().map(|body| &body.stored)
    }

    /// Appends all changes to a row of the log, but for the bodies that are on disk or in the row, as `bodies` says.
    pub(super) fn write_to(&self, row: &mut Vec<u8>, bodies: &mut HashSet<BodyId>) {
        for PutBody { stored, op } in &self.bodies {
            if !stored.is_written() && bodies.insert(stored.id()) {
                row.extend_from_slice(&self.body_ops[op.clone()]);
            }
        }
        row.extend_from_slice(&self.ops);
    }

    /// A subscription, as it was sent.
    pub(crate) fn put_subscription(&mut self, client: &str, id: &str, text: &str) {
        self.put(Table::Subscriptions, &keys::within(client, id.as_bytes()), &text);
    }

    /// To what all that there is of a client is confined.
    pub(crate) fn put_confinement(&mut self, client: &str, text: &str) {
        self.put(Table::Subscriptions, &keys::of_client(client), &text);
    }

    /// A client is confined to nothing any more.
    pub(crate) fn remove_confinement(&mut self, client: &str) {
        self.remove(Table::Subscriptions, &keys::of_client(client));
    }

    /// Removes a subscription and its standings.
    pub(crate) fn remove_subscription(&mut self, client: &str, id: &str) {
        self.remove(Table::Subscriptions, &keys::within(client, id.as_bytes()));
        self.remove_standings(client, id);
    }

    /// Removes all standings of a subscription.
    pub(crate) fn remove_standings(&mut self, client: &str, id: &str) {
        self.remove_all(Table::Standings, keys::standing(client, id, ""));
    }

    /// Where a client is; the last one wins.
    pub(crate) fn put_position(&mut self, client: &str, position: &StoredPosition) {
        self.put(Table::Positions, &keys::of_client(client), position);
    }

    /// Where a client is sent push messages; the last one wins.
    pub(crate) fn put_push(&mut self, client: &str, push: &StoredPush) {
        self.put(Table::Push, &keys::of_client(client), push);
    }

    /// A client is sent no push messages any more.
    pub(crate) fn remove_push(&mut self, client: &str) {
        self.remove(Table::Push, &keys::of_client(client));
    }

    /// What a situation knows, which a version of its document names; the last one wins.
    pub(crate) fn put_state(&mut self, client: &str, version: &str, state: &StoredState) {
        self.put(Table::States, &keys::within(client, version.as_bytes()), state);
    }

    /// What a situation did with deliveries that may come again; the last ones win.
    pub(crate) fn put_decisions(&mut self, client: &str, version: &str, decisions: &StoredDecisions) {
        self.put(Table::States, &keys::decisions(client, version), decisions);
    }

    /// How far a session has come; the last one wins.
    pub(crate) fn put_session(&mut self, client: &str, session: &StoredSession) {
        self.put(Table::Sessions, &keys::of_client(client), session);
    }

    /// How far a shard has read the stream of events; the last one wins.
    pub(crate) fn put_frontier(&mut self, shard: u32, frontier: &StoredFrontier) {
        self.put(Table::Frontiers, &shard.to_be_bytes(), frontier);
    }

    /// The last finding of a situation that the stream of events has brought to a shard; the last one wins.
    pub(crate) fn put_finding(&mut self, shard: u32, client: &str, finding: &StoredFinding) {
        self.put(Table::Findings, &keys::finding(shard, client), finding);
    }

    /// What is stored of findings is that of another number of shards.
    pub(crate) fn remove_findings(&mut self) {
        let (from, to) = (0_u32.to_be_bytes(), u32::MAX.to_be_bytes());
        self.push(&Op::RemoveRange { table: Table::Findings as u8, from: Bytes(&from), to: Bytes(&to) });
    }

    /// Nobody knows any more how far the stream of events was read.
    pub(crate) fn remove_frontiers(&mut self) {
        let (from, to) = (0_u32.to_be_bytes(), u32::MAX.to_be_bytes());
        self.push(&Op::RemoveRange { table: Table::Frontiers as u8, from: Bytes(&from), to: Bytes(&to) });
    }

    /// Removes everything of a client.
    pub(crate) fn forget_client(&mut self, client: &str) {
        for table in Table::OF_CLIENTS {
            self.remove_all(table, keys::of_client(client));
        }
        self.forget_kept(client, 0..=u64::MAX);
    }

    /// Sees to it that the bytes of what it removes leave the disk soon.
    pub(crate) fn wipe_soon(&mut self) {
        self.put(Table::Wipe, &[], &());
        self.is_wiped_soon = true;
    }

    /// The text of an event, unless it is there: several shards may put the same, and it is written once.
    pub(crate) fn put_body(&mut self, stored: &Arc<StoredBody>, text: &str, received_ms: u64) {
        let is_here = self.bodies.last().is_some_and(|last| Arc::ptr_eq(&last.stored, stored));
        if is_here || stored.is_written() {
            return;
        }
        let from = self.body_ops.len();
        let (key, mut value) = (stored.id().0.to_be_bytes(), std::mem::take(&mut self.value));
        seal(Table::Bodies, &key, &BodyRecord { text, received_ms }, &mut value);
        write(
            &Op::Put { table: Table::Bodies as u8, key: Bytes(&key), value: Bytes(&value) },
            &mut self.body_ops,
        );
        self.value = value;
        self.bodies.push(PutBody { stored: Arc::clone(stored), op: from..self.body_ops.len() });
    }

    /// A live event. Of several of one object the newest is recovered, whoever put which of them last.
    pub(crate) fn put_live(&mut self, live: &StoredLive) {
        self.put(Table::Live, &keys::live(&live.object, live.sequence), &LiveRecord::of(live));
    }

    /// Removes a live event.
    pub(crate) fn remove_live(&mut self, object: &str, sequence: u64) {
        self.remove(Table::Live, &keys::live(object, sequence));
    }

    /// Keeps a match for a client, whose session is at its offset then. For several clients one after the other it costs
    /// least.
    pub(crate) fn keep(&mut self, client: &str, kept: &StoredMatch) {
        let matched = Matched::of(kept);
        if self.matched != Some(matched) {
            self.push(&Op::Matched(matched));
            self.matched = Some(matched);
        }
        let subscriptions: Cow<'_, str> = match &kept.subscriptions {
            SubscriptionIds::One(name) => Cow::Borrowed(name),
            SubscriptionIds::Many(names) => Cow::Owned(names.join(BETWEEN_NAMES.encode_utf8(&mut [0; 4]))),
        };
        self.push(&Op::Keep { client, offset: kept.offset, subscriptions: &subscriptions });
    }

    /// Forgets matches that were kept for a client; offsets under which there is nothing do no harm.
    pub(crate) fn forget_kept(&mut self, client: &str, offsets: RangeInclusive<u64>) {
        let (first, last) = offsets.into_inner();
        self.push(&Op::Forget { client, first, last });
    }

    /// How a live event stands to a subscription.
    pub(crate) fn put_standing(
        &mut self,
        client: &str,
        subscription: &str,
        object: &str,
        standing: &StoredStanding,
    ) {
        let key = keys::standing(client, subscription, object);
        self.put(Table::Standings, &key, &StandingRecord::of(standing));
    }

    /// A live event stands to a subscription in no way any more.
    pub(crate) fn remove_standing(&mut self, client: &str, subscription: &str, object: &str) {
        self.remove(Table::Standings, &keys::standing(client, subscription, object));
    }

    fn put(&mut self, table: Table, key: &[u8], record: &impl Serialize) {
        let mut value = std::mem::take(&mut self.value);
        seal(table, key, record, &mut value);
        self.push(&Op::Put { table: table as u8, key: Bytes(key), value: Bytes(&value) });
        self.value = value;
    }

    fn remove(&mut self, table: Table, key: &[u8]) {
        self.push(&Op::Remove { table: table as u8, key: Bytes(key) });
    }

    fn remove_all(&mut self, table: Table, prefix: Vec<u8>) {
        let to = keys::behind(prefix.clone());
        self.push(&Op::RemoveRange { table: table as u8, from: Bytes(&prefix), to: Bytes(&to) });
    }

    fn push(&mut self, op: &Op<'_>) {
        write(op, &mut self.ops);
    }
}

/// Memory that an idle batch keeps.
const IDLE_BYTES: usize = 1 << 20;

fn write(op: &Op<'_>, ops: &mut Vec<u8>) {
    postcard::to_io(op, ops).expect("a vector takes everything, and all lengths are known");
}
