//! The thread that reads all sockets.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mio::{Events, Poll, Token};

use super::Who;
use super::heard::{AlarmHeard, Heard};
use super::line::Line;
use super::shared::{Nanos, Shared};
use crate::scheduling::give_way;
use crate::wire::{Cause, Hear, Told};

/// Bytes that one call reads at most.
const READ_BYTES: usize = 256 * 1024;

/// Sockets that one wait says something of.
const EVENTS_MAX: usize = 4_096;

/// How many deliveries a durable client takes before it says that it has them.
const ACKNOWLEDGE_EVERY: u64 = 128;

/// The token of the bell that others ring.
pub(super) const BELL: Token = Token(usize::MAX);

/// What the reader tells the thread that sends.
pub(super) enum Word {
    /// A connection has come about.
    Connected { token: Token },
    /// A conversation can begin.
    Ready { token: Token, epoch: Box<str> },
    /// Somebody is asked whether it is there.
    Ping { token: Token, payload: Box<[u8]> },
    /// A request of several events was answered.
    Batch { token: Token, outcome: Result<u64, Box<str>> },
    /// A durable client has everything up to there.
    Has { token: Token, offset: u64 },
    /// A connection ended that should not have.
    Ended { token: Token, ended: Ended, offset: u64, answers: u64 },
    /// A connection that was let go of is; what it had come to.
    LetGo { token: Token, offset: u64, answers: u64 },
}

/// How a connection ended.
pub(super) struct Ended {
    pub(super) why: Box<str>,
    /// When the broker wants the client back, if it said so before.
    pub(super) retry_in: Option<Duration>,
}

/// What others want of the reader.
pub(super) enum Wish {
    Read(Token, Box<Ear>),
    /// So many answers will come to what it said of itself.
    Expect(Token, u64),
    LetGo(Token),
}

/// A connection, as the reader has it.
pub(super) struct Ear {
    pub(super) line: Arc<Line>,
    pub(super) who: Who,
    pub(super) hear: Box<dyn Hear>,
    /// Whether all that comes to it is compared with the oracle.
    pub(super) is_checked: bool,
    pub(super) is_durable: bool,
    pub(super) is_connected: bool,
    /// Answers that are still to come to what it said of itself.
    pub(super) answers: u64,
    /// When the broker wants the client back: it has said that it stops.
    pub(super) retry_in: Option<Duration>,
    /// When it was to come back, of a connection that takes the place of one that broke.
    pub(super) since: Option<Nanos>,
    /// What came and is not whole.
    pub(super) pending: Vec<u8>,
    /// The last place in the session that something came for.
    pub(super) offset: u64,
    pub(super) acknowledged: u64,
}

/// Where wishes wait until the bell rings.
pub(super) type Wishes = Arc<Mutex<Vec<Wish>>>;

pub(super) struct Reader {
    pub(super) poll: Poll,
    pub(super) shared: Arc<Shared>,
    pub(super) wishes: Wishes,
    pub(super) words: Sender<Word>,
}

impl Reader {
    /// Reads until nobody listens to it any more.
    pub(super) fn run(mut self) {
        let _gives_way = give_way();
        let mut ears: HashMap<Token, Box<Ear>> = HashMap::new();
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match self.poll.poll(&mut events, Some(Duration::from_millis(500))) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let why = format!("the sockets cannot be waited for: {error}").into();
                    let ended = Ended { why, retry_in: None };
                    let _ = self.words.send(Word::Ended { token: BELL, ended, offset: 0, answers: 0 });
                    return;
                }
            }
            let shared = Arc::clone(&self.shared);
            let mut heard = shared.heard();
            if !self.take_wishes(&mut ears) {
                return;
            }
            for event in &events {
                let Some(ear) = ears.get_mut(&event.token()) else { continue };
                let is_closed = event.is_read_closed();
                let went_on = self.greet(event.token(), ear).and_then(|is_connected| match is_connected {
                    true => self.read(event.token(), ear, &mut heard, &mut buffer, is_closed),
                    false => Ok(()),
                });
                if let Err(why) = went_on {
                    let (offset, answers) = (ear.offset, ear.answers);
                    let ended = Ended { why: why.into(), retry_in: ear.retry_in };
                    ears.remove(&event.token());
                    let word = Word::Ended { token: event.token(), ended, offset, answers };
                    if self.words.send(word).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn take_wishes(&self, ears: &mut HashMap<Token, Box<Ear>>) -> bool {
        let wishes = std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner));
        for wish in wishes {
            match wish {
                Wish::Read(token, ear) => drop(ears.insert(token, ear)),
                Wish::Expect(token, answers) => {
                    if let Some(ear) = ears.get_mut(&token) {
                        ear.answers += answers;
                    }
                }
                Wish::LetGo(token) => {
                    let Some(ear) = ears.remove(&token) else { continue };
                    let (offset, answers) = (ear.offset, ear.answers);
                    if self.words.send(Word::LetGo { token, offset, answers }).is_err() {
                        return false;
                    }
                }
            }
        }
        // The last reference but the reader's own is the sender's.
        Arc::strong_count(&self.wishes) > 1
    }

    /// Whether a connection has come about; says so once.
    fn greet(&self, token: Token, ear: &mut Ear) -> Result<bool, String> {
        if !ear.is_connected {
            ear.is_connected = ear.line.greet().map_err(|error| broke(&error))?;
            if ear.is_connected {
                // Who sends is there as long as the reader is.
                let _ = self.words.send(Word::Connected { token });
            }
        }
        Ok(ear.is_connected)
    }

    /// Reads one connection until there is nothing more.
    fn read(
        &self,
        token: Token,
        ear: &mut Ear,
        heard: &mut Heard,
        buffer: &mut [u8],
        is_closed: bool,
    ) -> Result<(), String> {
        loop {
            let read = match ear.line.read(buffer) {
                Ok(0) => return Err("the broker closed the connection".to_owned()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(broke(&error)),
            };
            heard.bytes += read as u64;
            let now = self.shared.now();
            let mut pending = std::mem::take(&mut ear.pending);
            let (who, is_checked) = (ear.who, ear.is_checked);
            let mut hearing = Hearing {
                reader: self,
                token,
                who,
                is_checked,
                heard,
                now,
                ended: None,
                ear: Place {
                    is_durable: ear.is_durable,
                    answers: &mut ear.answers,
                    retry_in: &mut ear.retry_in,
                    since: &mut ear.since,
                    offset: &mut ear.offset,
                    acknowledged: &mut ear.acknowledged,
                },
            };
            let taken = if pending.is_empty() {
                let taken = ear
                    .hear
                    .hear(&buffer[..read], &mut |told| hearing.told(told))
                    .map_err(|e| e.to_string())?;
                pending.extend_from_slice(&buffer[taken..read]);
                None
            } else {
                pending.extend_from_slice(&buffer[..read]);
                Some(ear.hear.hear(&pending, &mut |told| hearing.told(told)).map_err(|e| e.to_string())?)
            };
            let ended = hearing.ended;
            if let Some(taken) = taken {
                pending.drain(..taken);
            }
            ear.pending = pending;
            if ear.pending.is_empty() {
                // Thousands of sockets seldom need it.
                ear.pending = Vec::new();
            }
            if let Some(why) = ended {
                return Err(why);
            }
            if ear.line.is_drained_by(read, buffer.len()) && !is_closed {
                // The edge comes again with whatever else comes.
                return Ok(());
            }
        }
    }
}

fn broke(error: &std::io::Error) -> String {
    format!("the connection broke: {error}")
}

/// State of a connection that changes as it is read.
struct Place<'a> {
    is_durable: bool,
    answers: &'a mut u64,
    retry_in: &'a mut Option<Duration>,
    since: &'a mut Option<Nanos>,
    offset: &'a mut u64,
    acknowledged: &'a mut u64,
}

struct Hearing<'a> {
    reader: &'a Reader,
    token: Token,
    who: Who,
    is_checked: bool,
    heard: &'a mut Heard,
    now: Nanos,
    ended: Option<String>,
    ear: Place<'a>,
}

impl Hearing<'_> {
    fn told(&mut self, told: Told<'_>) {
        match told {
            Told::Event { number, offset, cause, is_ahead } => {
                if let Some(offset) = offset.filter(|_| !is_ahead) {
                    self.place(offset);
                }
                self.delivery(number, cause);
            }
            Told::Done(number) => self.done(number),
            Told::Refused(number, why) => self.refused(number, why),
            Told::Ready { epoch, offset } => {
                if self.ear.is_durable && *self.ear.offset > 0 {
                    self.heard.holes += offset.saturating_sub(*self.ear.offset);
                }
                *self.ear.offset = offset;
                self.reader.shared.live.ready.fetch_add(1, Relaxed);
                self.say(Word::Ready { token: self.token, epoch: epoch.into() });
            }
            Told::Gap { from, to, count, reason } => {
                if count > 0 {
                    self.heard.holes += from.saturating_sub(*self.ear.offset + 1);
                }
                *self.ear.offset = to.max(*self.ear.offset);
                // The alarm itself came before its turn.
                if reason != "ahead" {
                    self.heard.gaps += 1;
                    self.heard.lost += count;
                    self.reader.shared.live.lost.fetch_add(count, Relaxed);
                    if let Who::Client(client) = self.who
                        && self.is_checked
                    {
                        self.heard.journal.lossy.push((client, count));
                    }
                }
            }
            Told::Batch(outcome) => {
                self.say(Word::Batch { token: self.token, outcome: outcome.map_err(Into::into) });
            }
            Told::Ping(payload) => self.say(Word::Ping { token: self.token, payload: payload.into() }),
            Told::Retry(retry_in) => *self.ear.retry_in = Some(retry_in),
            Told::Closed(why) => self.ended = Some(format!("the broker ended it: {why}")),
        }
    }

    /// Offsets go up by one.
    fn place(&mut self, offset: u64) {
        let last = *self.ear.offset;
        if offset <= last {
            self.heard.duplicates += 1;
            return;
        }
        self.heard.holes += offset - last - 1;
        *self.ear.offset = offset;
        if self.ear.is_durable && offset - *self.ear.acknowledged >= ACKNOWLEDGE_EVERY {
            *self.ear.acknowledged = offset;
            self.say(Word::Has { token: self.token, offset });
        }
    }

    fn delivery(&mut self, number: Option<u64>, cause: Cause) {
        let shared = &self.reader.shared;
        let Who::Client(client) = self.who else { return };
        let Some(intended) = number.and_then(|number| shared.intended(number)) else {
            self.heard.foreign += 1;
            return;
        };
        let number = number.unwrap_or_default();
        let is_measured = shared.is_measured(intended);
        if cause == Cause::Moved {
            let moved = shared.client(client).moved.load(Relaxed);
            if is_measured {
                self.heard.move_delivery_us.saturating_record(self.now.saturating_sub(moved) / 1_000);
            }
            self.heard.deliveries_by_move += u64::from(is_measured);
        } else if cause == Cause::Published {
            let after = self.now.saturating_sub(intended);
            self.heard.current_us.saturating_record(after / 1_000);
            if is_measured {
                self.heard.delivery_us.saturating_record(after / 1_000);
            }
            if shared.is_alarm(number) {
                let alarm =
                    self.heard.alarms.entry(number).or_insert(AlarmHeard { deliveries: 0, last_after: 0 });
                alarm.deliveries += 1;
                alarm.last_after = alarm.last_after.max(after);
            }
        }
        self.heard.deliveries += u64::from(is_measured);
        shared.live.deliveries.fetch_add(1, Relaxed);
        if self.is_checked {
            self.heard.journal.deliveries.push((client, number, self.now));
        }
    }

    fn done(&mut self, number: Option<u64>) {
        let shared = &self.reader.shared;
        match (self.who, number) {
            (Who::Publisher(_), Some(number)) => {
                accepted(shared, self.heard, number, self.now);
            }
            (Who::Client(client), Some(number)) => {
                let moved = shared.client(client).due(number).unwrap_or(self.now);
                let after_us = self.now.saturating_sub(moved) / 1_000;
                self.heard.current_in_force_us.saturating_record(after_us);
                if shared.is_measured(moved) {
                    self.heard.moves_in_force += 1;
                    self.heard.in_force_us.saturating_record(after_us);
                }
                if self.is_checked {
                    self.heard.journal.moves.push((client, number, self.now));
                }
            }
            (who, None) => {
                shared.live.introduced.fetch_add(1, Relaxed);
                *self.ear.answers = self.ear.answers.saturating_sub(1);
                if *self.ear.answers == 0
                    && let Some(since) = self.ear.since.take()
                {
                    self.heard.reconnect_us.saturating_record(self.now.saturating_sub(since) / 1_000);
                    if let Who::Client(client) = who
                        && self.is_checked
                    {
                        self.heard.journal.returns.push((client, self.now));
                    }
                }
            }
        }
    }

    fn refused(&mut self, number: Option<u64>, why: &str) {
        match (self.who, number) {
            (Who::Publisher(_), Some(number)) => {
                refused(&self.reader.shared, self.heard, number, why);
                if number.is_multiple_of(self.reader.shared.stride) {
                    self.heard.journal.events.push((number, None));
                }
            }
            (Who::Client(_) | Who::Publisher(_), _) => {
                self.reader.shared.live.errors.fetch_add(1, Relaxed);
                self.heard.error(&format!("refused: {why}"));
                if number.is_none() && *self.ear.answers > 0 {
                    *self.ear.answers -= 1;
                    self.reader.shared.live.introduced.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// Who sends is there as long as the reader is.
    fn say(&self, word: Word) {
        let _ = self.reader.words.send(word);
    }
}

/// An event was accepted.
pub(super) fn accepted(shared: &Shared, heard: &mut Heard, number: u64, now: Nanos) {
    heard.answered += 1;
    if let Some(intended) = shared.intended(number)
        && shared.is_measured(intended)
    {
        heard.accepted += 1;
        heard.accepted_us.saturating_record(now.saturating_sub(intended) / 1_000);
    }
    if number.is_multiple_of(shared.stride) {
        heard.journal.events.push((number, Some(now)));
    }
}

/// An event was not.
pub(super) fn refused(shared: &Shared, heard: &mut Heard, number: u64, why: &str) {
    heard.answered += 1;
    shared.live.refused.fetch_add(1, Relaxed);
    if shared.intended(number).is_none_or(|intended| shared.is_measured(intended)) {
        heard.refuse(why);
    }
}
