//! Follows a ledger, and becomes its owner when the owner is gone.

use std::time::Duration;

use super::chain::{ChainError, Owner};
use super::follower::{FollowError, Follower, State};
use super::membership::{Beat, Watch};
use super::writer::Writer;
use super::{Answer, READ_BYTES, Request, Timing};
use crate::log::{Append, AppendError, Identity, ReadError, Stored};
use crate::record::{Body, Incarnation, Seal, encode};

/// A member that reads a ledger and may become its owner.
///
/// Taking over: once the owner is gone, the standby appends a seal behind the last record that it knows, and again until it
/// is there. From then on the owner can append nothing. The standby is the owner when it has *read* its own seal, and so
/// every row before it; the answer to the append alone says nothing.
#[derive(Debug)]
pub struct Standby<S> {
    member: String,
    nonce: u64,
    timing: Timing,
    follower: Follower<S>,
    /// Watches the owner.
    watch: Option<Watch>,
    call: Call,
    /// When the next request is due.
    next_at: Duration,
    /// Whether the last record has to be looked at again, because the log may be another by now.
    has_to_look_back: bool,
    /// A record that the log had when the member ran the last time, until it has been read.
    expected: Option<Identity>,
    missing_since: Option<Duration>,
    /// Whether the last read showed nothing new.
    has_caught_up: bool,
    failed: Option<FollowError>,
}

/// What a standby is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status<'a> {
    /// It follows the owner.
    Following,
    /// The owner is gone, and it tries to become the owner.
    Sealing,
    /// It is the owner: [`Standby::into_writer`].
    Owner,
    /// It cannot go on. Make a new one, which begins from what the log has.
    Failed(&'a FollowError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    None,
    Reading,
    Sealing,
}

impl<S: State> Standby<S> {
    /// A member that begins to read. `nonce` is a random number: no two processes have the same.
    ///
    /// A member that finds itself to be the owner, as after a restart, does not wait: `member` names one process at a time.
    #[must_use]
    pub fn new(member: String, nonce: u64, timing: Timing, state: S) -> Self {
        Self {
            member,
            nonce,
            timing,
            follower: Follower::new(state),
            watch: None,
            call: Call::None,
            next_at: Duration::ZERO,
            has_to_look_back: false,
            expected: None,
            missing_since: None,
            has_caught_up: false,
            failed: None,
        }
    }

    /// Has it take a log without this record for one that went back, and not take over before the record was found. It is what the member knew when
    /// it ran the last time. Where the log begins behind it, there is nothing to compare with.
    #[must_use]
    pub fn expecting(mut self, expected: Option<Identity>) -> Self {
        self.expected = expected;
        self
    }

    /// The state after row [`Standby::applied`], as long as no snapshot is being read.
    #[must_use]
    pub fn state(&self) -> &S {
        self.follower.state()
    }

    /// The last row that is in the state.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.follower.applied()
    }

    /// Whether the state is whole: a snapshot that the log begins with has been read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.follower.is_whole()
    }

    /// The sequence of the record that the state began with. Where the log begins behind it by now, the state may have more than the log
    /// has, and a new standby has what the log has.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.follower.begin()
    }

    /// Ends following, and gives back the state.
    #[must_use]
    pub fn into_state(self) -> S {
        self.follower.into_state()
    }

    /// The ledger's owner, as far as it has been read.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        self.follower.chain().owner()
    }

    /// The last record that it has read.
    #[must_use]
    pub fn last(&self) -> Option<Identity> {
        self.follower.chain().last()
    }

    /// What it is doing.
    #[must_use]
    pub fn status(&self) -> Status<'_> {
        match &self.failed {
            Some(error) => Status::Failed(error),
            None if self.is_owner() => Status::Owner,
            None if self.is_to_seal() => Status::Sealing,
            None => Status::Following,
        }
    }

    /// Whether the owner said that it leaves.
    #[must_use]
    pub fn has_owner_left(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::has_left)
    }

    /// Takes what a look at the members showed. A look that fails is left out.
    pub fn look(&mut self, now: Duration, beats: &[Beat]) {
        let Some(watch) = &mut self.watch else { return };
        watch.look(now, beats, &self.timing);
        // Who could write a snapshot is gone, and nobody can take over without one.
        if watch.is_gone(&self.timing) && self.has_caught_up && !self.follower.is_whole() {
            self.failed.get_or_insert(FollowError::NoSnapshot { first: self.follower.begin() });
        }
    }

    /// The next request, if one is due.
    pub fn poll(&mut self, now: Duration) -> Option<Request> {
        let is_over = matches!(self.status(), Status::Owner | Status::Failed(_));
        if is_over || self.call != Call::None || now < self.next_at {
            return None;
        }
        if self.is_to_seal() && self.has_caught_up && !self.has_to_look_back {
            match self.seal() {
                Ok(append) => {
                    self.call = Call::Sealing;
                    return Some(Request::Append(append));
                }
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            }
        }
        self.call = Call::Reading;
        let known = self.last().filter(|_| self.has_to_look_back);
        let from = known.map_or_else(|| self.follower.next(), |known| known.sequence);
        Some(Request::Read { from, bytes: READ_BYTES })
    }

    /// Takes the answer to the last request.
    pub fn answer(&mut self, now: Duration, answer: Answer) {
        let call = std::mem::replace(&mut self.call, Call::None);
        match (call, answer) {
            (Call::Sealing, Answer::Append(outcome)) => {
                // In the log or not: reading tells.
                let is_there = matches!(outcome, Ok(_) | Err(AppendError::WrongLast { .. }));
                self.next_at = if is_there { now } else { now + self.timing.retry };
                self.has_to_look_back |= outcome.is_err();
                self.has_caught_up = false;
            }
            (Call::Reading, Answer::Read(Ok(records))) => self.read(now, &records),
            (Call::Reading, Answer::Read(Err(ReadError::TooOld { first }))) => self.begin_with(first),
            (Call::Reading, Answer::Read(Err(ReadError::Unavailable { .. }))) => {
                self.has_to_look_back = true;
                self.has_caught_up = false;
                // Only looks that succeed say that a record is missing, one after the other.
                self.missing_since = None;
                self.next_at = now + self.timing.retry;
            }
            // An answer to no request of ours says nothing.
            (call, _) => self.call = call,
        }
    }

    /// Becomes the writer, with the state after the last row before its seal.
    ///
    /// # Errors
    /// The standby, where it is not the owner.
    pub fn into_writer(self) -> Result<(Writer, S), Box<Self>> {
        let chain = self.follower.chain();
        let Some(last) = chain.last().filter(|_| self.is_owner()) else { return Err(Box::new(self)) };
        let incarnation = self.incarnation();
        let writer = Writer::new(
            self.member.clone(),
            incarnation,
            last,
            chain.rows(),
            self.follower.snapshot_start(),
            self.timing,
        );
        Ok((writer, self.follower.into_state()))
    }

    fn is_owner(&self) -> bool {
        let is_mine = |owner: &Owner| owner.incarnation.nonce == self.nonce;
        self.follower.is_whole()
            && !self.has_to_look_back
            && self.owner().is_some_and(|owner| is_mine(owner) && owner.member.as_ref() == Some(&self.member))
    }

    /// Whether the owner is gone, or there is none.
    fn is_to_seal(&self) -> bool {
        if self.expected.is_some() {
            return false;
        }
        let Some(owner) = self.owner() else { return self.follower.is_new() };
        let is_gone = |watch: &Watch| watch.is_gone(&self.timing);
        self.follower.is_whole()
            && (owner.member.as_ref() == Some(&self.member) || self.watch.as_ref().is_some_and(is_gone))
    }

    /// The incarnation that follows the owner's, or its own.
    fn incarnation(&self) -> Incarnation {
        let (nonce, term) = (self.nonce, self.owner().map_or(0, |owner| owner.incarnation.term));
        if self.is_owner() { Incarnation { term, nonce } } else { Incarnation { term: term + 1, nonce } }
    }

    fn seal(&self) -> Result<Append, FollowError> {
        let chain = self.follower.chain();
        let incarnation = self.incarnation();
        let (expected, previous) = self.last().map_or((0, 0), |last| (last.sequence, last.crc));
        let body = Body::Seal(Seal { member: &self.member });
        let record = encode(incarnation, chain.rows() + 1, previous, &body)
            .map_err(|error| ChainError::Unreadable { sequence: expected + 1, error })?;
        // A seal is another one behind each record, so that the log takes none of them for a duplicate of another.
        Ok(Append { expected: Some(expected), id: format!("{incarnation}:seal-{expected}"), record })
    }

    fn read(&mut self, now: Duration, records: &[Stored]) {
        let last = self.last();
        // A log from which something was truncated is never empty, for its owner keeps its snapshots.
        let is_missing = if last.is_some() { self.has_to_look_back } else { !self.follower.is_new() };
        if is_missing && records.is_empty() {
            let missing_since = *self.missing_since.get_or_insert(now);
            if now.saturating_sub(missing_since) >= self.timing.missing {
                let went_back = |known| ChainError::WentBack { known }.into();
                let no_snapshot = FollowError::NoSnapshot { first: self.follower.begin() };
                self.failed = Some(last.map_or(no_snapshot, went_back));
            }
            self.next_at = now + self.timing.retry;
            return;
        }
        self.has_to_look_back = false;
        for stored in records {
            let owner = self.owner().map(|owner| owner.incarnation);
            if let Err(error) = self.follower.take(stored) {
                self.failed = Some(error);
                return;
            }
            if let Some(known) = self.expected.take_if(|known| known.sequence <= stored.sequence)
                && known.sequence == stored.sequence
                && !known.is(&stored.identity())
            {
                self.failed = Some(ChainError::WentBack { known }.into());
                return;
            }
            let new = self.owner().map(|owner| owner.incarnation);
            if new != owner {
                self.watch = new.map(|new| Watch::new(new.nonce));
            }
        }
        self.has_caught_up = self.last() == last;
        if let Some(known) = self.expected.filter(|_| self.has_caught_up) {
            let missing_since = *self.missing_since.get_or_insert(now);
            if now.saturating_sub(missing_since) >= self.timing.missing {
                self.failed = Some(ChainError::WentBack { known }.into());
            }
        } else {
            self.missing_since = None;
        }
        self.next_at = if self.has_caught_up { now + self.timing.follow } else { now };
    }

    /// The log begins with `first`. What is before is gone, so that the state is begun anew from the log's snapshot.
    fn begin_with(&mut self, first: u64) {
        self.has_to_look_back = false;
        self.has_caught_up = false;
        self.missing_since = None;
        if first != self.follower.next() {
            self.follower.begin_with(first);
            self.expected.take_if(|known| known.sequence < first);
            self.watch = None;
        }
    }
}
