//! Records as they are stored: a CRC-32 over table, key and record, and the record as postcard writes it. Facts that the key
//! states are not repeated in the record.

use std::sync::Arc;

use matcher::live::Cause;
use serde::{Deserialize, Serialize};

use super::keys::Table;
use crate::model::delivery::{SubscriptionIds, Transition};
use crate::model::event::Frontier;
use crate::model::record::BodyId;

/// A client's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredPosition {
    pub(crate) coordinates: [f64; 3],
    pub(crate) accuracy_m: f64,
    pub(crate) received_ms: u64,
}

/// A durable session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) epoch: Arc<str>,
    pub(crate) offset: u64,
    pub(crate) acknowledged: u64,
    /// The last offset that was lost although it should have been kept.
    pub(crate) lost: u64,
}

impl StoredSession {
    /// An epoch that no session has had.
    pub(crate) fn new_epoch() -> Arc<str> {
        format!("{:016x}", rand::random::<u64>()).into()
    }
}

/// How far a shard has read the stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFrontier {
    /// All before it is in what is stored.
    pub(crate) frontier: Frontier,
    /// How many shards there are: with another number of them, clients are dealt out otherwise.
    pub(crate) shards: u32,
}

/// The last finding that a shard has had of a situation: those up to it came before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFinding {
    /// The version of the situation's document.
    pub(crate) version: Arc<str>,
    pub(crate) number: u64,
}

/// A client's push subscription.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredPush {
    pub(crate) endpoint: Box<str>,
    pub(crate) point: Box<[u8]>,
    pub(crate) secret: Box<[u8]>,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) since_ms: u64,
}

/// Without what only the browser and the broker may know.
impl std::fmt::Debug for StoredPush {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredPush(since {})", self.since_ms)
    }
}

/// The state of a situation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    /// The last delivery that is in it.
    pub(crate) offset: u64,
    pub(crate) state: Box<[u8]>,
}

/// Without the contents of events.
impl std::fmt::Debug for StoredState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredState(up to {}, {} bytes)", self.offset, self.state.len())
    }
}

/// What a situation did with deliveries that may come again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredDecisions {
    /// The delivery up to which everything that was found was dealt out.
    pub(crate) told_up_to: u64,
    /// What bounds decided, in the order of the offsets: what comes again is not decided again.
    pub(crate) bounds: Vec<(u64, Decision)>,
}

/// What a bound decided of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Decision {
    /// Parts of it were left out, a bit each.
    LeftOut(u64),
    /// With it the situation began anew.
    Anew,
}

/// A live event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredLive {
    pub(crate) object: Arc<str>,
    pub(crate) id: Arc<str>,
    pub(crate) sequence: u64,
    pub(crate) expires_ms: u64,
    /// Whether it was ended before its time. Its record is there until everybody was told.
    pub(crate) is_revoked: bool,
    pub(crate) body: BodyId,
}

/// A kept match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredMatch {
    pub(crate) offset: u64,
    pub(crate) subscriptions: SubscriptionIds,
    pub(crate) cause: Cause,
    pub(crate) transition: Option<Transition>,
    pub(crate) at_ms: u64,
    pub(crate) body: BodyId,
}

/// How a live event stands to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredStanding {
    pub(crate) sequence: u64,
    /// Time until which it waits, and the cause; `None` where the object is inside.
    pub(crate) waits: Option<(u64, Cause)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LiveRecord<'a> {
    pub(super) id: &'a str,
    pub(super) expires_ms: u64,
    pub(super) is_revoked: bool,
    pub(super) body: u64,
}

/// The event of a kept match, which is the same for all its recipients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Matched {
    pub(super) body: u64,
    pub(super) cause: u8,
    pub(super) transition: Option<u8>,
    pub(super) at_ms: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct MatchRecord<'a> {
    pub(super) offset: u64,
    pub(super) matched: Matched,
    /// Names with 0x00 between them: they are JSON texts, in which there is none.
    pub(super) subscriptions: &'a str,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StandingRecord {
    pub(super) sequence: u64,
    pub(super) waits: Option<(u64, u8)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BodyRecord<'a> {
    pub(super) text: &'a str,
    pub(super) received_ms: u64,
}

impl<'a> LiveRecord<'a> {
    pub(super) fn of(live: &'a StoredLive) -> Self {
        let StoredLive { id, expires_ms, is_revoked, body, .. } = live;
        Self { id, expires_ms: *expires_ms, is_revoked: *is_revoked, body: body.0 }
    }

    pub(super) fn under(self, object: &str, sequence: u64) -> StoredLive {
        let Self { id, expires_ms, is_revoked, body } = self;
        let (object, id, body) = (object.into(), id.into(), BodyId(body));
        StoredLive { object, id, sequence, expires_ms, is_revoked, body }
    }
}

impl Matched {
    pub(super) fn of(kept: &StoredMatch) -> Self {
        Self {
            body: kept.body.0,
            cause: number_of(kept.cause),
            transition: kept.transition.map(|transition| match transition {
                Transition::Enter => 0,
                Transition::Exit => 1,
            }),
            at_ms: kept.at_ms,
        }
    }
}

impl MatchRecord<'_> {
    /// Reads the kept match, for subscriptions that were read from this record or from one like it.
    pub(super) fn read(self, subscriptions: SubscriptionIds) -> Option<StoredMatch> {
        let Matched { body, cause, transition, at_ms } = self.matched;
        Some(StoredMatch {
            offset: self.offset,
            subscriptions,
            cause: cause_of(cause)?,
            transition: match transition {
                None => None,
                Some(0) => Some(Transition::Enter),
                Some(1) => Some(Transition::Exit),
                Some(_) => return None,
            },
            at_ms,
            body: BodyId(body),
        })
    }

    pub(super) fn names(&self) -> SubscriptionIds {
        match self.subscriptions.contains(BETWEEN_NAMES) {
            false => SubscriptionIds::One(self.subscriptions.into()),
            true => SubscriptionIds::Many(self.subscriptions.split(BETWEEN_NAMES).map(Arc::from).collect()),
        }
    }
}

/// Between the names of subscriptions.
pub(super) const BETWEEN_NAMES: char = '\0';

impl StandingRecord {
    pub(super) fn of(standing: &StoredStanding) -> Self {
        let waits = standing.waits.map(|(until_ms, cause)| (until_ms, number_of(cause)));
        Self { sequence: standing.sequence, waits }
    }

    pub(super) fn read(self) -> Option<StoredStanding> {
        let waits = match self.waits {
            None => None,
            Some((until_ms, cause)) => Some((until_ms, cause_of(cause)?)),
        };
        Some(StoredStanding { sequence: self.sequence, waits })
    }
}

/// Causes by their numbers, which are on disk.
const CAUSES: [Cause; 5] = [Cause::Published, Cause::Moved, Cause::Changed, Cause::Expired, Cause::Revoked];

fn number_of(cause: Cause) -> u8 {
    match cause {
        Cause::Published => 0,
        Cause::Moved => 1,
        Cause::Changed => 2,
        Cause::Expired => 3,
        Cause::Revoked => 4,
    }
}

fn cause_of(number: u8) -> Option<Cause> {
    CAUSES.get(usize::from(number)).copied()
}

/// Bytes of the checksum before a record.
const CRC_BYTES: usize = 4;

pub(super) fn crc(table: Table, key: &[u8], record: &[u8]) -> [u8; CRC_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[table as u8]);
    hasher.update(key);
    hasher.update(record);
    hasher.finalize().to_le_bytes()
}

/// Writes a record as it stands in a table, over what `value` was.
pub(super) fn seal(table: Table, key: &[u8], record: &impl Serialize, value: &mut Vec<u8>) {
    value.clear();
    value.extend_from_slice(&[0; CRC_BYTES]);
    postcard::to_io(record, &mut *value).expect("a vector takes everything, and all lengths are known");
    let crc = crc(table, key, &value[CRC_BYTES..]);
    value[..CRC_BYTES].copy_from_slice(&crc);
}

/// Whether a record has its checksum.
pub(super) fn is_whole(table: Table, key: &[u8], value: &[u8]) -> bool {
    value.split_at_checked(CRC_BYTES).is_some_and(|(sum, record)| sum == crc(table, key, record))
}

/// Reads a record from its place in a table; the error says what is wrong with it.
pub(super) fn unseal<'a, T: Deserialize<'a>>(
    table: Table,
    key: &[u8],
    value: &'a [u8],
) -> Result<T, &'static str> {
    let Some((sum, record)) = value.split_at_checked(CRC_BYTES) else { return Err("is cut off") };
    if sum != crc(table, key, record) {
        return Err("does not have the checksum that was written with it");
    }
    match postcard::take_from_bytes(record) {
        Ok((read, [])) => Ok(read),
        Ok(_) => Err("is longer than it can be"),
        Err(_) => Err("cannot be read"),
    }
}
