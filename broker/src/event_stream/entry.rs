//! What one broker tells the others, as the stream of events has it.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::model::clock;
use crate::model::event::{Origin, Published};
use crate::model::tenant;

/// One element of a record.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry<'a> {
    /// Counts what its broker appends, so that this broker knows its own again.
    pub(crate) number: u64,
    #[serde(borrow)]
    pub(crate) kind: EntryKind<'a>,
}

/// What it is.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind<'a> {
    /// An event that was accepted.
    #[serde(borrow)]
    Event(Accepted<'a>),
    /// The live events of an id end, of these those that a confinement holds for.
    Revocation { id: &'a str, confinement: Option<&'a str> },
    /// An event that a situation found.
    Finding {
        #[serde(borrow)]
        accepted: Accepted<'a>,
        #[serde(borrow)]
        found: Found<'a>,
    },
}

/// The situation that found an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found<'a> {
    /// Its client, its version and the number of the finding, as [`Origin`] has them.
    pub(crate) client: &'a str,
    pub(crate) version: &'a str,
    pub(crate) number: u64,
    /// Where readers who are confined otherwise get it without ids: the claim to which the situation is confined, if it is.
    #[serde(borrow)]
    pub(crate) veiled: Option<Option<&'a str>>,
}

/// An event that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accepted<'a> {
    /// When, in Unix milliseconds.
    pub(crate) received_ms: u64,
    /// Its tenant, where there are tenants.
    pub(crate) tenant: Option<&'a str>,
    /// Its text, as it is stored.
    pub(crate) text: &'a str,
    /// Where it stays live: object, id, and how long, in milliseconds.
    pub(crate) life: Option<(&'a str, &'a str, u64)>,
}

impl Entry<'_> {
    /// Writes an event.
    pub(super) fn of(number: u64, published: &Published) -> Vec<u8> {
        let text = published.body.stored_text();
        let ttl_ms = |expires: Instant| {
            let left = expires.saturating_duration_since(clock::now());
            u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
        };
        let life = published.live.as_ref().map(|live| (&*live.object, &*live.id, ttl_ms(live.expires)));
        let accepted = Accepted {
            received_ms: published.body.arrived_ms(),
            tenant: tenant::marked(&published.event),
            text: &text,
            life,
        };
        let kind = match &published.origin {
            Some(Origin { client, version, number }) => {
                let veiled = published.body.veil.as_ref().map(|veil| veil.confinement.as_deref());
                let found = Found { client, version, number: *number, veiled };
                EntryKind::Finding { accepted, found }
            }
            None => EntryKind::Event(accepted),
        };
        Entry { number, kind }.bytes()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("all lengths are known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let life = Some(("key:bus", "7", 60_000));
        let accepted = Accepted { received_ms: 1, tenant: Some(""), text: "{}", life };
        let found = Found { client: "$checks/a", version: "v", number: 5, veiled: Some(None) };
        // Versions run beside each other while a cluster is upgraded, so that these bytes stay as they are.
        let kinds: [(_, &[u8]); 3] = [
            (EntryKind::Event(accepted), b"\xac\x02\x00\x01\x01\x00\x02{}\x01\x07key:bus\x017\xe0\xd4\x03"),
            (EntryKind::Revocation { id: "7", confinement: Some("{}") }, b"\xac\x02\x01\x017\x01\x02{}"),
            (
                EntryKind::Finding { accepted, found },
                b"\xac\x02\x02\x01\x01\x00\x02{}\x01\x07key:bus\x017\xe0\xd4\x03\t$checks/a\x01v\x05\x01\x00",
            ),
        ];
        for (kind, bytes) in kinds {
            let entry = Entry { number: 300, kind };
            assert_eq!(entry.bytes().escape_ascii().to_string(), bytes.escape_ascii().to_string());
            assert_eq!(postcard::from_bytes::<Entry<'_>>(bytes).unwrap(), entry);
        }
    }
}
