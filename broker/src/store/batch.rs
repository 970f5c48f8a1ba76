//! What one step of a shard puts on disk, as it is written there.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::keys::{self, Table};
use super::records::{
    BodyId, BodyRecord, LiveRecord, MatchRecord, StandingRecord, StoredLive, StoredMatch, StoredPosition,
    StoredSession, StoredStanding, seal,
};

/// What of one shard's step has to survive. Built in memory, in the form in which it is written; nothing is written before
/// [`Store::commit`](super::Store::commit).
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// One [`Op`] after the other.
    pub(super) ops: Vec<u8>,
    /// A record on its way there.
    value: Vec<u8>,
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
        self.ops.is_empty()
    }

    /// A subscription, as it was sent.
    pub(crate) fn put_subscription(&mut self, client: &str, id: &str, text: &str) {
        self.put(Table::Subscriptions, &keys::within(client, id.as_bytes()), &text);
    }

    /// Removes a subscription and its standings.
    pub(crate) fn remove_subscription(&mut self, client: &str, id: &str) {
        self.remove(Table::Subscriptions, &keys::within(client, id.as_bytes()));
        self.remove_all(Table::Standings, keys::standing(client, id, ""));
    }

    /// Where a client is; the last one wins.
    pub(crate) fn put_position(&mut self, client: &str, position: &StoredPosition) {
        self.put(Table::Positions, &keys::of_client(client), position);
    }

    /// How far a session has come; the last one wins.
    pub(crate) fn put_session(&mut self, client: &str, session: &StoredSession) {
        self.put(Table::Sessions, &keys::of_client(client), session);
    }

    /// Removes everything of a client.
    pub(crate) fn forget_client(&mut self, client: &str) {
        for table in Table::OF_CLIENTS {
            self.remove_all(table, keys::of_client(client));
        }
    }

    /// The text of an event. Several shards may put the same.
    pub(crate) fn put_body(&mut self, body: BodyId, text: &str, received_ms: u64) {
        self.put(Table::Bodies, &body.0.to_be_bytes(), &BodyRecord { text, received_ms });
    }

    /// A live event. Of several of one object the newest is recovered, whoever put which of them last.
    pub(crate) fn put_live(&mut self, live: &StoredLive) {
        self.put(Table::Live, &keys::live(&live.object, live.sequence), &LiveRecord::of(live));
    }

    /// Removes a live event.
    pub(crate) fn remove_live(&mut self, object: &str, sequence: u64) {
        self.remove(Table::Live, &keys::live(object, sequence));
    }

    /// Keeps a match for a client.
    pub(crate) fn keep(&mut self, client: &str, kept: &StoredMatch) {
        let key = keys::within(client, &kept.offset.to_be_bytes());
        self.put(Table::Kept, &key, &MatchRecord::of(kept));
    }

    /// Forgets matches that were kept for a client; offsets under which there is nothing do no harm.
    pub(crate) fn forget_kept(&mut self, client: &str, offsets: RangeInclusive<u64>) {
        let (first, last) = offsets.into_inner();
        if first == last {
            return self.remove(Table::Kept, &keys::within(client, &first.to_be_bytes()));
        }
        let from = keys::within(client, &first.to_be_bytes());
        let to = match last.checked_add(1) {
            Some(end) => keys::within(client, &end.to_be_bytes()),
            None => keys::behind(keys::of_client(client)),
        };
        if from < to {
            self.push(&Op::RemoveRange { table: Table::Kept as u8, from: Bytes(&from), to: Bytes(&to) });
        }
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
        postcard::to_io(op, &mut self.ops).expect("a vector takes everything, and all lengths are known");
    }
}
