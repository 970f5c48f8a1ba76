//! Knows what was acknowledged, and holds it against what is in the log.

use std::collections::{BTreeMap, HashSet};
use std::ops::AddAssign;

use cluster::ledger::{ChainError, End, FollowError, Writer};
use cluster::log::{Identity, Stored};
use cluster::record::{Body, Incarnation, Record};
use cluster::simulated::World;

use super::node::Digest;

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) acknowledged: u64,
    pub(super) takeovers: u64,
    pub(super) fenced: u64,
    pub(super) gave_up: u64,
    pub(super) told: u64,
    pub(super) lost: u64,
    pub(super) restored: u64,
    pub(super) truncated: u64,
    pub(super) without_snapshot: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.takeovers += other.takeovers;
        self.fenced += other.fenced;
        self.gave_up += other.gave_up;
        self.told += other.told;
        self.lost += other.lost;
        self.restored += other.restored;
        self.truncated += other.truncated;
        self.without_snapshot += other.without_snapshot;
    }
}

pub(super) struct Judge {
    world: World,
    pub(super) tally: Tally,
    nonces: u64,
    acknowledged: BTreeMap<u64, (Vec<u8>, Incarnation)>,
    gone: Vec<Identity>,
    /// Whether anything was acknowledged since the simulation looked, and whether anybody began anew.
    pub(super) has_acknowledged: bool,
    pub(super) has_news: bool,
    /// Whether the log went back behind its last snapshot.
    pub(super) is_beyond_help: bool,
}

/// The rows of a log, told without the code that is tested.
struct Truth {
    rows: Vec<(Vec<u8>, Incarnation)>,
    digests: Vec<u64>,
}

pub(super) fn digest(before: u64, row: &[u8]) -> u64 {
    row.iter().fold(before ^ 0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Judge {
    pub(super) fn new(world: World) -> Self {
        Self {
            world,
            tally: Tally::default(),
            nonces: 0,
            acknowledged: BTreeMap::new(),
            gone: Vec::new(),
            has_acknowledged: false,
            has_news: false,
            is_beyond_help: false,
        }
    }

    pub(super) fn nonce(&mut self) -> u64 {
        self.nonces += 1;
        self.has_news = true;
        self.nonces
    }

    pub(super) fn acknowledged(&mut self, writer: &Writer, number: u64, row: &[u8]) -> Result<(), String> {
        // The log's answer was on its way, or with a process that was stopped, when the record went. Had it been appended behind
        // what is gone, it would name a record before it that is not there.
        if !self.world.has(&writer.last()) {
            self.tally.lost += 1;
            let was_there = self.gone.iter().any(|gone| writer.last().is(gone));
            let never = || format!("row {number} is acknowledged and never was in the log");
            return was_there.then_some(()).ok_or_else(never);
        }
        self.tally.acknowledged += 1;
        self.has_acknowledged = true;
        match self.acknowledged.insert(number, (row.to_owned(), writer.incarnation())) {
            None => Ok(()),
            Some(_) => Err(format!("row {number} is acknowledged twice")),
        }
    }

    pub(super) fn took_over(&mut self, writer: &Writer, state: &Digest) -> Result<(), String> {
        self.tally.takeovers += 1;
        self.tally.restored += u64::from(state.is_restored);
        self.has_news = true;
        let committed = writer.committed();
        if state.rows != committed {
            return Err(format!("{committed} rows are committed, and the new owner has {}", state.rows));
        }
        // It may have been stopped with its seal in hand, while others sealed and acknowledged after it.
        let term = writer.incarnation().term;
        let mut before = self.acknowledged.iter().rev().filter(|(_, (_, owner))| owner.term < term);
        match before.next() {
            Some((last, _)) if *last > committed => Err(format!("row {last} is behind the seal")),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn ended(&mut self, end: &End) -> Result<(), String> {
        match end {
            End::Fenced { .. } => self.tally.fenced += 1,
            End::GaveUp => self.tally.gave_up += 1,
            End::WentBack { known } => self.told(known)?,
            End::Refused(_) => {}
        }
        self.has_news = true;
        Ok(())
    }

    pub(super) fn failed(&mut self, error: &FollowError) -> Result<(), String> {
        if let FollowError::NoSnapshot { first } = error {
            self.tally.without_snapshot += 1;
            self.is_beyond_help = true;
            return check_no_snapshot(*first, &self.world.history());
        }
        let FollowError::Chain(ChainError::WentBack { known }) = error else { return Err(error.to_string()) };
        self.told(known)
    }

    fn told(&mut self, known: &Identity) -> Result<(), String> {
        self.tally.told += 1;
        if self.world.has(known) {
            Err(format!("{known:?} is there, and a member said that it was gone"))
        } else {
            Ok(())
        }
    }

    /// Records of the log are gone, of which some processes know.
    pub(super) fn went_back(&mut self, gone: &[Stored]) -> Result<(), String> {
        self.gone.extend(gone.iter().map(Stored::identity));
        let gone: Result<Vec<_>, _> = gone.iter().map(rows).collect();
        for (number, row, _) in gone?.into_iter().flatten() {
            let acknowledged = self.acknowledged.remove(&number);
            if let Some((acknowledged, _)) = acknowledged {
                self.tally.lost += 1;
                if acknowledged != row {
                    return Err(format!("row {number} is another than was acknowledged"));
                }
            }
        }
        self.has_news = true;
        Ok(())
    }

    /// Holds everything against the log, and the states that standbys and the owner have.
    pub(super) fn check<'a>(
        &self,
        history: &[Stored],
        states: impl Iterator<Item = &'a Digest>,
    ) -> Result<(), String> {
        let truth = Truth::read(history)?;
        for (number, acknowledged) in &self.acknowledged {
            let found = usize::try_from(number - 1).ok().and_then(|idx| truth.rows.get(idx));
            if found != Some(acknowledged) {
                return Err(format!("row {number} was acknowledged and is {found:?}"));
            }
        }
        for state in states {
            let found = usize::try_from(state.rows).ok().and_then(|rows| truth.digests.get(rows));
            if found != Some(&state.digest) {
                return Err(format!("the state after row {} is another", state.rows));
            }
        }
        Ok(())
    }
}

/// That no snapshot is whole from a record on.
fn check_no_snapshot(first: u64, history: &[Stored]) -> Result<(), String> {
    let mut begun = None;
    for stored in history.iter().filter(|stored| stored.sequence >= first) {
        let record = Record::decode(&stored.record).map_err(|error| error.to_string())?;
        match record.body().map_err(|error| error.to_string())? {
            Body::Seal(_) => begun = None,
            Body::Chunk(chunk) if chunk.index == 0 => begun = Some(chunk.row),
            Body::Chunk(chunk) if chunk.is_last && begun == Some(chunk.row) => {
                return Err(format!("the snapshot after row {} is whole", chunk.row));
            }
            Body::Chunk(_) | Body::Rows(_) | Body::Events(_) | Body::Marker => {}
        }
    }
    Ok(())
}

type NumberedRow = (u64, Vec<u8>, Incarnation);

fn rows(stored: &Stored) -> Result<Vec<NumberedRow>, String> {
    let record = Record::decode(&stored.record).map_err(|error| error.to_string())?;
    let incarnation = record.header.incarnation;
    match record.body().map_err(|error| error.to_string())? {
        Body::Rows(rows) => {
            let numbers = record.header.number..;
            Ok(numbers.zip(rows).map(|(number, row)| (number, row.to_owned(), incarnation)).collect())
        }
        Body::Seal(_) | Body::Chunk(_) | Body::Events(_) | Body::Marker => Ok(Vec::new()),
    }
}

impl Truth {
    fn read(history: &[Stored]) -> Result<Self, String> {
        let mut truth = Self { rows: Vec::new(), digests: vec![0] };
        let (mut owner, mut sealed, mut seen) = (None, HashSet::new(), HashSet::new());
        let mut previous = 0;
        for (at, stored) in history.iter().enumerate() {
            if stored.sequence != at as u64 + 1 {
                return Err(format!("record {} is number {at}", stored.sequence));
            }
            let record = Record::decode(&stored.record).map_err(|error| error.to_string())?;
            let header = record.header;
            if std::mem::replace(&mut previous, stored.identity().crc) != header.previous {
                return Err(format!("record {} is not behind the one before it", stored.sequence));
            }
            if matches!(record.body(), Ok(Body::Seal(_))) {
                sealed.extend(owner.replace(header.incarnation));
            }
            if sealed.contains(&header.incarnation) || owner != Some(header.incarnation) {
                return Err(format!(
                    "record {} is of {}, not of {owner:?}",
                    stored.sequence, header.incarnation
                ));
            }
            for (number, row, incarnation) in rows(stored)? {
                if number != truth.rows.len() as u64 + 1 {
                    return Err(format!("row {number} after {} rows", truth.rows.len()));
                }
                if !seen.insert(row.clone()) {
                    return Err(format!("row {number} is there twice"));
                }
                truth.digests.push(digest(truth.digests[truth.rows.len()], &row));
                truth.rows.push((row, incarnation));
            }
        }
        Ok(truth)
    }
}
