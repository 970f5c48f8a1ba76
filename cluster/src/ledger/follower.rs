//! Folds a ledger's rows to a state, beginning with a snapshot where the log does not begin with its first row.

use std::collections::VecDeque;

use super::chain::{Chain, ChainError};
use crate::log::Stored;
use crate::record::{Body, Chunk, Record};

/// What the rows of a ledger are folded to.
pub trait State {
    /// Carries out a row. The state after row `number` is a function of the rows up to it.
    ///
    /// # Errors
    /// Why the row means nothing to this state. Nothing is folded from then on.
    fn apply(&mut self, number: u64, row: &[u8]) -> Result<(), String>;

    /// Becomes the state before the first row, to which the parts of a snapshot are added next.
    fn clear(&mut self);

    /// Takes the next part of a snapshot.
    ///
    /// # Errors
    /// Why it is none. Nothing is folded from then on.
    fn restore(&mut self, chunk: &[u8]) -> Result<(), String>;
}

/// Why a ledger cannot be followed any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// The order of records is broken.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The state refused a row.
    #[error("row {number}: {why}")]
    Row {
        /// The row.
        number: u64,
        /// The state's reason.
        why: String,
    },
    /// The log does not begin with the first row and has no whole snapshot: it went back behind those that it had. Its state is gone.
    #[error("the log begins with record {first} and has no whole snapshot: restore a backup")]
    NoSnapshot {
        /// The sequence of its first record.
        first: u64,
    },
    /// The state refused a part of a snapshot, the part cannot be where it is, or the log begins behind what its first snapshot has.
    #[error("the snapshot after row {row}: {why}")]
    Snapshot {
        /// The row after which it is the state.
        row: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// A chain and the state that its rows make.
#[derive(Debug)]
pub(super) struct Follower<S> {
    chain: Chain,
    /// The sequence of the first record to read, where none has been read.
    begin: u64,
    state: S,
    /// The last row that is in the state.
    applied: u64,
    loading: Option<Loading>,
    /// The snapshot whose parts come in.
    incoming: Option<Incoming>,
    /// Where the last complete snapshot that came by has its rows from on.
    snapshot_start: Option<u64>,
}

/// A log is read that does not begin with the first row, up to its first complete snapshot.
#[derive(Debug, Default)]
struct Loading {
    /// The row before the first that the log has.
    before: u64,
    /// Rows that came before the snapshot was complete: as many as are committed while one is written.
    held: VecDeque<(u64, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug)]
struct Incoming {
    row: u64,
    start: u64,
    next: u32,
}

impl<S: State> Follower<S> {
    /// Begins with the state before the first row.
    pub(super) fn new(mut state: S) -> Self {
        state.clear();
        let chain = Chain::default();
        Self { chain, begin: 1, state, applied: 0, loading: None, incoming: None, snapshot_start: None }
    }

    /// Begins anew with a log whose first record is `begin`.
    pub(super) fn begin_with(&mut self, begin: u64) {
        self.state.clear();
        (self.chain, self.begin, self.applied) = (Chain::default(), begin, 0);
        (self.loading, self.incoming, self.snapshot_start) = (None, None, None);
    }

    /// The sequence of the record that it began with.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    /// The sequence of the record to read next.
    pub(super) fn next(&self) -> u64 {
        self.chain.last().map_or(self.begin, |last| last.sequence + 1)
    }

    /// Whether nothing has been read of a log from which nothing is truncated, as far as is known.
    pub(super) fn is_new(&self) -> bool {
        self.next() == 1
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn state(&self) -> &S {
        &self.state
    }

    pub(super) fn applied(&self) -> u64 {
        self.applied
    }

    pub(super) fn snapshot_start(&self) -> Option<u64> {
        self.snapshot_start
    }

    pub(super) fn into_state(self) -> S {
        self.state
    }

    /// Whether the state is that after the last row that was read.
    pub(super) fn is_whole(&self) -> bool {
        self.loading.is_none() && (self.chain.last().is_some() || self.is_new())
    }

    pub(super) fn take(&mut self, stored: &Stored) -> Result<(), FollowError> {
        let is_first = self.chain.last().is_none();
        let Some(record) = self.chain.admit(stored)? else { return Ok(()) };
        if is_first && stored.sequence > 1 {
            self.loading = Some(Loading { before: record.header.number - 1, held: VecDeque::new() });
        }
        self.fold(stored.sequence, &record)
    }

    fn fold(&mut self, sequence: u64, record: &Record<'_>) -> Result<(), FollowError> {
        let unreadable = |error| ChainError::Unreadable { sequence, error };
        match record.body().map_err(unreadable)? {
            Body::Rows(rows) => {
                for (number, row) in (record.header.number..).zip(rows) {
                    match &mut self.loading {
                        Some(loading) => loading.held.push_back((number, row.to_owned())),
                        None => self.apply(number, row)?,
                    }
                }
                Ok(())
            }
            // Who began a snapshot will not go on with it.
            Body::Seal(_) => {
                self.incoming = None;
                Ok(())
            }
            Body::Chunk(chunk) => self.chunk(sequence, chunk),
            // A chain admits none of them.
            Body::Events(_) | Body::Marker => Ok(()),
        }
    }

    fn apply(&mut self, number: u64, row: &[u8]) -> Result<(), FollowError> {
        self.state.apply(number, row).map_err(|why| FollowError::Row { number, why })?;
        self.applied = number;
        Ok(())
    }

    fn chunk(&mut self, sequence: u64, chunk: Chunk<'_>) -> Result<(), FollowError> {
        let Chunk { row, start, index, is_last, bytes, member: _ } = chunk;
        let (rows, wrong) = (self.chain.rows(), |why| Err(FollowError::Snapshot { row, why }));
        if row > rows {
            return wrong(format!("the ledger has rows up to {rows} there"));
        }
        if index == 0 {
            if start > sequence {
                return wrong(format!(
                    "it begins with record {sequence} and has the rows before record {start}"
                ));
            }
            self.incoming = Some(Incoming { row, start, next: 0 });
            if self.loading.is_some() {
                self.state.clear();
            }
        }
        let belongs =
            |incoming: &&mut Incoming| (incoming.row, incoming.start, incoming.next) == (row, start, index);
        // The log may begin within a snapshot that its owner did not end.
        let Some(incoming) = self.incoming.as_mut().filter(belongs) else {
            self.incoming = None;
            return Ok(());
        };
        incoming.next = index.saturating_add(1);
        if self.loading.is_some() {
            self.state.restore(bytes).map_err(|why| FollowError::Snapshot { row, why })?;
        }
        if !is_last {
            return Ok(());
        }
        (self.incoming, self.snapshot_start) = (None, Some(start));
        let Some(Loading { before, held }) = self.loading.take() else { return Ok(()) };
        if row < before {
            return wrong(format!("the log begins behind row {before}"));
        }
        self.applied = row;
        held.into_iter()
            .filter(|(number, _)| *number > row)
            .try_for_each(|(number, row)| self.apply(number, &row))
    }
}
