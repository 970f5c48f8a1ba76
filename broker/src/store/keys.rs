//! Tables and the keys in them: a client's name, 0x00, what is the client's; numbers big-endian, so that keys are in the
//! order of what they name. Names, a tenant's beside a client's included, have no 0x00, so that no name is the beginning of another's key.

use redb::TableDefinition;

/// Rows of bytes under bytes.
pub(super) type Rows = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// The tables: kinds of data that are kept in rows of their own. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// client 0x00 subscription -> text; without a subscription: to what the client is confined
    Subscriptions = 0,
    /// client 0x00 -> position
    Positions = 1,
    /// client 0x00 -> session
    Sessions = 2,
    /// client 0x00, first and last offset -> kept matches
    Kept = 3,
    /// client 0x00 subscription 0x00 object -> standing
    Standings = 4,
    /// object, sequence -> live event
    Live = 5,
    /// number -> text of an event
    Bodies = 6,
    /// nothing -> nothing, while something of a deleted client is in the file
    Wipe = 7,
    /// client 0x00 -> push subscription
    Push = 8,
    /// client 0x00 subscription -> state of a situation; with 0x00 behind it: what it did since
    States = 9,
    /// shard -> how far it has read the stream of events
    Frontiers = 10,
    /// shard, client of a situation -> the last finding that the stream of events has brought
    Findings = 11,
}

impl Table {
    pub(super) const ALL: [Self; 12] = [
        Self::Subscriptions,
        Self::Positions,
        Self::Sessions,
        Self::Kept,
        Self::Standings,
        Self::Live,
        Self::Bodies,
        Self::Wipe,
        Self::Push,
        Self::States,
        Self::Frontiers,
        Self::Findings,
    ];
    /// Tables whose keys begin with a client's name. The table of kept matches, which has changes of its own, is not among
    /// them.
    pub(super) const OF_CLIENTS: [Self; 6] =
        [Self::Subscriptions, Self::Positions, Self::Sessions, Self::Standings, Self::Push, Self::States];

    pub(super) fn numbered(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn rows(self) -> Rows {
        TableDefinition::new(self.name())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Subscriptions => "subscriptions",
            Self::Positions => "positions",
            Self::Sessions => "sessions",
            Self::Kept => "kept",
            Self::Standings => "standings",
            Self::Live => "live",
            Self::Bodies => "bodies",
            Self::Wipe => "wipe",
            Self::Push => "push",
            Self::States => "states",
            Self::Frontiers => "frontiers",
            Self::Findings => "findings",
        }
    }
}

/// Fault of a key that cannot be one of its table.
pub(super) const NO_KEY: &str = "has a key that cannot be one";

/// Prefix of all keys of a client. It is also the whole key where the client has one row in a table.
pub(super) fn of_client(client: &str) -> Vec<u8> {
    within(client, &[])
}

/// Key of a client's row under a name.
pub(super) fn within(client: &str, name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(client.len() + 1 + name.len());
    key.extend_from_slice(client.as_bytes());
    key.push(0);
    key.extend_from_slice(name);
    key
}

/// The shard in the key of a frontier.
pub(super) fn shard_of(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(key.try_into().ok()?))
}

/// Key of the last finding that a shard has had of a situation, by the situation's client.
pub(super) fn finding(shard: u32, client: &str) -> Vec<u8> {
    [&shard.to_be_bytes(), client.as_bytes()].concat()
}

/// The shard and the client in such a key.
pub(super) fn of_finding(key: &[u8]) -> Option<(u32, &str)> {
    let (shard, client) = key.split_first_chunk()?;
    Some((u32::from_be_bytes(*shard), std::str::from_utf8(client).ok()?))
}

/// Key of what a situation did with deliveries that may come again.
pub(super) fn decisions(client: &str, subscription: &str) -> Vec<u8> {
    standing(client, subscription, "")
}

/// The subscription in the key of what a situation did; `None` where it is the key of a state.
pub(super) fn of_decisions(rest: &[u8]) -> Option<&[u8]> {
    rest.strip_suffix(&[0])
}

/// How an object stands to a subscription of a client; without an object, what begins the keys of all of them.
pub(super) fn standing(client: &str, subscription: &str, object: &str) -> Vec<u8> {
    let mut key = within(client, subscription.as_bytes());
    key.push(0);
    key.extend_from_slice(object.as_bytes());
    key
}

/// The first key behind all that begin with `prefix`, which ends with 0x00.
pub(super) fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    if let Some(last) = prefix.last_mut() {
        *last = 1;
    }
    prefix
}

/// The client's name, and what follows it.
pub(super) fn split(key: &[u8]) -> Option<(&str, &[u8])> {
    let end = key.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&key[..end]).ok()?, &key[end + 1..]))
}

/// Matches that are kept for a client, from an offset to another.
pub(super) fn kept(client: &str, first: u64, last: u64) -> Vec<u8> {
    let mut key = within(client, &first.to_be_bytes());
    key.extend_from_slice(&last.to_be_bytes());
    key
}

/// The client's name, and the first and the last offset.
pub(super) fn split_kept(key: &[u8]) -> Option<(&str, u64, u64)> {
    let (client, offsets) = split(key)?;
    let (first, last) = offsets.split_first_chunk()?;
    Some((client, u64::from_be_bytes(*first), number(last)?))
}

/// An event of an object.
pub(super) fn live(object: &str, sequence: u64) -> Vec<u8> {
    [object.as_bytes(), &sequence.to_be_bytes()].concat()
}

/// The object, and the sequence of its event.
pub(super) fn split_live(key: &[u8]) -> Option<(&str, u64)> {
    let (object, sequence) = key.split_last_chunk()?;
    Some((std::str::from_utf8(object).ok()?, u64::from_be_bytes(*sequence)))
}

/// A number at the end of a key.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}
