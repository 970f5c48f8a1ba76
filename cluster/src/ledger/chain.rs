//! The order of a ledger's records: each follows the one that it names, rows count on, and only the owner has any.

use crate::log::{Identity, Stored};
use crate::record::{Body, Chunk, Incarnation, Kind, Record, RecordError, Seal};

/// What is known of a ledger by reading it up to some record.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    last: Option<Identity>,
    owner: Option<Owner>,
    rows: u64,
}

/// The owner of a ledger: the one incarnation whose rows are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// Its name, where its seal or a part of a snapshot of it was read.
    pub member: Option<String>,
}

/// Why a record is not the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The log shows another record than it did, or none where there was one. What was acknowledged may be gone. Begin anew from
    /// the log, and tell everybody who relies on what was there.
    #[error("the log went back: record {} is another one or gone", .known.sequence)]
    WentBack {
        /// The record that was there.
        known: Identity,
    },
    /// Records were left out.
    #[error("the log shows record {found} after {last}")]
    LeftOut {
        /// The last record that was read.
        last: u64,
        /// The record that was shown.
        found: u64,
    },
    /// The record cannot be read.
    #[error("record {sequence}: {error}")]
    Unreadable {
        /// Its sequence.
        sequence: u64,
        /// Why.
        error: RecordError,
    },
    /// Somebody other than the owner appended it, or the owner counted wrongly. Neither can be while the log refuses an
    /// append that expects another last sequence.
    #[error("record {sequence} is not the owner's next: {why}")]
    Foreign {
        /// Its sequence.
        sequence: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl Chain {
    /// The last record.
    #[must_use]
    pub fn last(&self) -> Option<Identity> {
        self.last
    }

    /// The owner, where there is one.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// The number of the last row, 0 where there is none.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the next record, or the last one once more, of which `None` comes. The first record may be any: a log begins
    /// where it was truncated.
    ///
    /// # Errors
    /// Any [`ChainError`]; the chain is as before then.
    pub fn admit<'a>(&mut self, stored: &'a Stored) -> Result<Option<Record<'a>>, ChainError> {
        let identity = stored.identity();
        let sequence = stored.sequence;
        if let Some(known) = self.last {
            if sequence == known.sequence {
                return if known.is(&identity) { Ok(None) } else { Err(ChainError::WentBack { known }) };
            }
            if sequence != known.sequence + 1 {
                return Err(ChainError::LeftOut { last: known.sequence, found: sequence });
            }
        }
        let unreadable = |error| ChainError::Unreadable { sequence, error };
        let record = Record::decode(&stored.record).map_err(unreadable)?;
        let header = record.header;
        if let Some(known) = self.last
            && header.previous != known.crc
        {
            return Err(ChainError::WentBack { known });
        }
        let foreign = |why: String| ChainError::Foreign { sequence, why };
        self.check_owner(sequence, &record).map_err(foreign)?;
        let is_first = self.last.is_none() && sequence > 1;
        let rows = header.number.checked_sub(1).filter(|rows| is_first || *rows == self.rows);
        let rows = rows.ok_or_else(|| foreign(format!("row {} after row {}", header.number, self.rows)))?;
        // A row and an owner have a next one.
        let rows = rows.checked_add(u64::from(header.count)).filter(|rows| *rows < u64::MAX);
        let rows = rows.ok_or_else(|| foreign("rows cannot be counted".to_owned()))?;
        let member = match record.body().map_err(unreadable)? {
            Body::Seal(Seal { member }) | Body::Chunk(Chunk { member, .. }) => Some(member),
            Body::Rows(_) | Body::Events(_) | Body::Marker => None,
        };
        let is_known = |owner: &Owner| owner.member.is_some() || member.is_none();
        if header.kind == Kind::Seal || !self.owner.as_ref().is_some_and(is_known) {
            self.owner = Some(Owner { incarnation: header.incarnation, member: member.map(str::to_owned) });
        }
        (self.last, self.rows) = (Some(identity), rows);
        Ok(Some(record))
    }

    fn check_owner(&self, sequence: u64, record: &Record<'_>) -> Result<(), String> {
        let Incarnation { term, .. } = record.header.incarnation;
        let is_seal = record.header.kind == Kind::Seal;
        match &self.owner {
            _ if matches!(record.header.kind, Kind::Events | Kind::Marker) => {
                Err("it is of a stream of events".to_owned())
            }
            _ if term == u64::MAX => Err("owners cannot be counted".to_owned()),
            None if sequence == 1 && !(is_seal && term == 1) => {
                Err("a ledger begins with the seal of its first owner".to_owned())
            }
            None => Ok(()),
            Some(owner) if is_seal && owner.incarnation.term.checked_add(1) != Some(term) => {
                Err(format!("a seal of term {term} after one of {}", owner.incarnation.term))
            }
            Some(owner) if !is_seal && record.header.incarnation != owner.incarnation => {
                Err(format!("it is of {}, and the owner is {}", record.header.incarnation, owner.incarnation))
            }
            Some(_) => Ok(()),
        }
    }
}
