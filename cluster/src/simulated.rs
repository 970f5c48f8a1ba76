//! A log with every fault of a replicated one, in virtual time: what happens is a function of the seed and of what is asked.
//!
//! [`World`] is the log and the network before it, and [`World::log`] a client's side of them. Time goes on by
//! [`World::step`] alone. The futures of a client are complete once the step has been made that answers them, and an [`Attachment`] is
//! asked for what has arrived.

mod attachment;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::log::{Append, AppendError, Appended, Attachable, Bounds, Identity, Log, ReadError, Stored};
use crate::memory::Records;

pub use attachment::Attachment;

/// The frequency of each fault.
#[derive(Clone, Debug)]
pub struct Faults {
    /// How long a message takes, each way.
    pub latency: Range<Duration>,
    /// How long after a request a client has no answer.
    pub timeout: Duration,
    /// The share of requests that are lost.
    pub lost_requests: f64,
    /// The share of answers that are lost; the request has its effect.
    pub lost_answers: f64,
    /// The share of appends that arrive once more, up to [`Faults::duplicate_after`] later.
    pub duplicates: f64,
    /// How late a duplicate arrives at most.
    pub duplicate_after: Duration,
    /// The share of records and reports of an attachment that are lost.
    pub lost_messages: f64,
    /// The share of records and reports of an attachment that arrive twice.
    pub repeated_messages: f64,
    /// The share of records and reports behind which an attachment is silent for ever.
    pub silences: f64,
    /// How long the log knows the names of records.
    pub names_kept: Duration,
    /// Whether an append is refused that expects another last sequence. A log that does not refuse it has no use but to
    /// show that a test would notice.
    pub is_fenced: bool,
}

/// Which messages between a client and the log are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partition {
    /// None.
    #[default]
    None,
    /// Requests, so that nothing has an effect.
    Requests,
    /// Answers, so that everything has its effect.
    Answers,
}

/// A log and a network with faults. A clone is the same world.
#[derive(Clone, Debug)]
pub struct World {
    // One thread runs a simulation; the lock is there for the futures, which may go to other threads.
    state: Arc<Mutex<State>>,
}

/// A client's side of a simulated log.
#[derive(Clone, Debug)]
pub struct Simulated {
    world: World,
    client: usize,
}

#[derive(Debug)]
struct State {
    random: StdRng,
    faults: Faults,
    now: Duration,
    records: Records,
    /// All records that are in the log or were truncated, and so not those that went back.
    history: Vec<Stored>,
    /// No append is carried out before.
    paused_until: Duration,
    clients: Vec<Client>,
    /// By time, then in the order in which they were thought of.
    events: BinaryHeap<Reverse<(Duration, u64)>>,
    planned: HashMap<u64, Event>,
    tickets: u64,
    calls: BTreeMap<u64, Call>,
}

#[derive(Clone, Debug, Default)]
struct Client {
    partition: Partition,
    /// How far behind the replica is that it reads from.
    behind: Duration,
    /// Counts the connections that it had, as the log and as the client knows.
    connection: u64,
    known_connection: u64,
}

#[derive(Clone, Debug)]
enum Request {
    Append(Append),
    Read { from: u64, bytes: usize },
    Truncate { before: u64 },
    Bounds,
}

#[derive(Clone, Debug)]
enum Answer {
    Append(Result<Appended, AppendError>),
    Read(Result<Vec<Stored>, ReadError>),
    Truncate(Result<(), ReadError>),
    Bounds(Result<Bounds, ReadError>),
}

#[derive(Debug)]
enum Event {
    /// A request reaches the log; a duplicate has no call.
    Arrive(Arrival),
    Answer {
        call: u64,
        answer: Answer,
    },
}

#[derive(Clone, Debug)]
struct Arrival {
    client: usize,
    connection: u64,
    call: Option<u64>,
    request: Request,
}

/// A request that its client waits for.
#[derive(Debug)]
enum Call {
    Waiting(Option<Waker>),
    Answered(Answer),
}

/// Waits for a call. The request goes on without it.
struct Wait<'a> {
    world: &'a World,
    call: u64,
}

impl Default for Faults {
    /// No faults but latency.
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(200)..Duration::from_millis(4),
            timeout: Duration::from_secs(1),
            lost_requests: 0.0,
            lost_answers: 0.0,
            duplicates: 0.0,
            duplicate_after: Duration::from_secs(180),
            lost_messages: 0.0,
            repeated_messages: 0.0,
            silences: 0.0,
            names_kept: Duration::from_secs(120),
            is_fenced: true,
        }
    }
}

impl World {
    /// An empty log at time 0.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        let state = State {
            random: StdRng::seed_from_u64(seed),
            records: Records::new(micros(faults.names_kept)),
            faults,
            now: Duration::ZERO,
            history: Vec::new(),
            paused_until: Duration::ZERO,
            clients: Vec::new(),
            events: BinaryHeap::new(),
            planned: HashMap::new(),
            tickets: 0,
            calls: BTreeMap::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A client more.
    #[must_use]
    pub fn log(&self) -> Simulated {
        let mut state = self.state();
        state.clients.push(Client::default());
        Simulated { world: self.clone(), client: state.clients.len() - 1 }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// Goes on to the next message that arrives, though not beyond `until`. Returns whether there was one.
    pub fn step(&self, until: Duration) -> bool {
        let (wakers, is_event) = self.state().step(until);
        wakers.into_iter().for_each(Waker::wake);
        is_event
    }

    /// Sets how often what goes wrong from here on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// The log has no leader for as long: appends are refused, lost, or carried out late.
    pub fn pause(&self, how_long: Duration) {
        let mut state = self.state();
        state.paused_until = state.now + how_long;
    }

    /// Whether the log has no leader.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let state = self.state();
        state.now < state.paused_until
    }

    /// Loses the last records and every client's connection, as a cluster does that lost its power and had not synced. Returns what
    /// is gone.
    pub fn go_back(&self, records: usize) -> Vec<Stored> {
        let mut state = self.state();
        let gone = state.records.go_back(records);
        let left = state.history.len() - gone.len();
        state.history.truncate(left);
        state.clients.iter_mut().for_each(|client| client.connection += 1);
        // What was answered over a connection that is gone does not arrive.
        state.planned.retain(|_, event| match event {
            Event::Answer { answer, .. } => answer.is_refusal(),
            Event::Arrive(_) => true,
        });
        gone
    }

    /// Drops the oldest records, as a log does that is full.
    pub fn drop_oldest(&self, records: u64) {
        let mut state = self.state();
        let first = state.records.bounds().first;
        state.records.truncate(first + records);
    }

    /// Every record that was appended and did not go back, also those that were truncated.
    #[must_use]
    pub fn history(&self) -> Vec<Stored> {
        self.state().history.clone()
    }

    /// Whether a record was appended and did not go back.
    #[must_use]
    pub fn has(&self, known: &Identity) -> bool {
        let state = self.state();
        let at = usize::try_from(known.sequence).ok().and_then(|sequence| sequence.checked_sub(1));
        at.and_then(|at| state.history.get(at)).is_some_and(|stored| known.is(&stored.identity()))
    }

    /// The ends of the log.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.state().records.bounds()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, client: usize, request: Request) -> Wait<'_> {
        Wait { world: self, call: self.state().call(client, request) }
    }
}

impl State {
    fn plan(&mut self, at: Duration, event: Event) {
        self.tickets += 1;
        self.events.push(Reverse((at, self.tickets)));
        self.planned.insert(self.tickets, event);
    }

    fn latency(&mut self) -> Duration {
        self.random.random_range(self.faults.latency.clone())
    }

    fn call(&mut self, client: usize, request: Request) -> u64 {
        self.tickets += 1;
        let call = self.tickets;
        self.calls.insert(call, Call::Waiting(None));
        let timeout = self.now + self.faults.timeout;
        self.plan(timeout, Event::Answer { call, answer: request.without_answer() });
        let is_lost = self.random.random_bool(self.faults.lost_requests);
        let connection = self.clients[client].known_connection;
        if !is_lost && self.clients[client].partition != Partition::Requests {
            if matches!(request, Request::Append(_)) && self.random.random_bool(self.faults.duplicates) {
                let after = self.random.random_range(Duration::ZERO..=self.faults.duplicate_after);
                let again = Arrival { client, connection, call: None, request: request.clone() };
                self.plan(self.now + after, Event::Arrive(again));
            }
            let at = self.now + self.latency();
            self.plan(at, Event::Arrive(Arrival { client, connection, call: Some(call), request }));
        }
        call
    }

    fn step(&mut self, until: Duration) -> (Option<Waker>, bool) {
        let next = self.events.peek().map(|Reverse(next)| *next).filter(|(at, _)| *at <= until);
        let Some((at, ticket)) = next else {
            self.now = self.now.max(until);
            return (None, false);
        };
        self.events.pop();
        self.now = at;
        let waker = match self.planned.remove(&ticket) {
            Some(Event::Arrive(arrival)) => {
                self.arrive(arrival);
                None
            }
            Some(Event::Answer { call, answer }) => self.answered(call, answer),
            None => None,
        };
        (waker, true)
    }

    fn answered(&mut self, call: u64, answer: Answer) -> Option<Waker> {
        // Who asked may have gone, or been answered before.
        match self.calls.get_mut(&call) {
            Some(state @ Call::Waiting(_)) => match std::mem::replace(state, Call::Answered(answer)) {
                Call::Waiting(waker) => waker,
                Call::Answered(_) => None,
            },
            Some(Call::Answered(_)) | None => None,
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let Arrival { client, connection, call, ref request } = arrival;
        let current = self.clients[client].connection;
        if connection != current && !matches!(request, Request::Bounds) {
            if call.is_some() {
                self.clients[client].known_connection = current;
            }
            return self.answer(client, call, request.refused("the connection is another one"));
        }
        let needs_leader = matches!(request, Request::Append(_) | Request::Truncate { .. });
        if needs_leader && self.now < self.paused_until {
            return match self.random.random_range(0..3_u8) {
                0 => self.answer(client, call, request.refused("the log has no leader")),
                1 => {}
                _ => {
                    let at = self.paused_until + self.latency();
                    self.plan(at, Event::Arrive(arrival));
                }
            };
        }
        let request = arrival.request;
        let answer = match request {
            Request::Append(append) => Answer::Append(self.append(append)),
            Request::Read { from, bytes } => Answer::Read(self.read(client, from, bytes)),
            Request::Truncate { before } => {
                self.records.truncate(before);
                Answer::Truncate(Ok(()))
            }
            Request::Bounds => Answer::Bounds(Ok(self.records.bounds())),
        };
        self.answer(client, call, answer);
    }

    fn append(&mut self, mut append: Append) -> Result<Appended, AppendError> {
        if !self.faults.is_fenced {
            append.expected = None;
        }
        let record = append.record.clone();
        let time_us = micros(self.now);
        let appended = self.records.append(append, time_us)?;
        if !appended.is_duplicate {
            self.history.push(Stored { sequence: appended.sequence, time_us, record });
        }
        Ok(appended)
    }

    fn read(&self, client: usize, from: u64, bytes: usize) -> Result<Vec<Stored>, ReadError> {
        self.records.read(from, self.seen(client), bytes)
    }

    /// The last sequence that the replica has that a client reads from.
    fn seen(&self, client: usize) -> u64 {
        let seen_us = micros(self.now) - micros(self.clients[client].behind);
        let newer = self.history.iter().rev().take_while(|stored| stored.time_us > seen_us).count();
        self.records.last() - newer as u64
    }

    fn answer(&mut self, client: usize, call: Option<u64>, answer: Answer) {
        let Some(call) = call else { return };
        let is_lost = self.random.random_bool(self.faults.lost_answers);
        if !is_lost && self.clients[client].partition != Partition::Answers {
            let at = self.now + self.latency();
            self.plan(at, Event::Answer { call, answer });
        }
    }
}

impl Request {
    fn without_answer(&self) -> Answer {
        match self {
            Self::Append(_) => Answer::Append(Err(AppendError::NoAnswer)),
            Self::Read { .. } | Self::Truncate { .. } | Self::Bounds => self.refused("no answer"),
        }
    }

    fn refused(&self, why: &str) -> Answer {
        let why = why.to_owned();
        match self {
            Self::Append(_) => Answer::Append(Err(AppendError::Unavailable { why })),
            Self::Read { .. } => Answer::Read(Err(ReadError::Unavailable { why })),
            Self::Truncate { .. } => Answer::Truncate(Err(ReadError::Unavailable { why })),
            Self::Bounds => Answer::Bounds(Err(ReadError::Unavailable { why })),
        }
    }
}

impl Answer {
    fn is_refusal(&self) -> bool {
        match self {
            Self::Append(outcome) => outcome.is_err(),
            Self::Read(outcome) => outcome.is_err(),
            Self::Truncate(outcome) => outcome.is_err(),
            Self::Bounds(outcome) => outcome.is_err(),
        }
    }
}

impl Simulated {
    /// Sets which of this client's messages are lost.
    pub fn set_partition(&self, partition: Partition) {
        self.world.state().clients[self.client].partition = partition;
    }

    /// Which of this client's messages are lost.
    #[must_use]
    pub fn partition(&self) -> Partition {
        self.world.state().clients[self.client].partition
    }

    /// Sets how far behind the replica is that this client reads from.
    pub fn set_behind(&self, behind: Duration) {
        self.world.state().clients[self.client].behind = behind;
    }
}

impl Log for Simulated {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let answer = self.world.call(self.client, Request::Append(append)).await;
        let Answer::Append(outcome) = answer else { unreachable!("an append is answered by {answer:?}") };
        outcome
    }

    async fn read(&self, from: u64, bytes: usize) -> Result<Vec<Stored>, ReadError> {
        let answer = self.world.call(self.client, Request::Read { from, bytes }).await;
        let Answer::Read(outcome) = answer else { unreachable!("a read is answered by {answer:?}") };
        outcome
    }

    async fn truncate(&self, before: u64) -> Result<(), ReadError> {
        let answer = self.world.call(self.client, Request::Truncate { before }).await;
        let Answer::Truncate(outcome) = answer else {
            unreachable!("a truncation is answered by {answer:?}")
        };
        outcome
    }

    async fn bounds(&self) -> Result<Bounds, ReadError> {
        let answer = self.world.call(self.client, Request::Bounds).await;
        let Answer::Bounds(outcome) = answer else {
            unreachable!("a question for the ends is answered by {answer:?}")
        };
        outcome
    }
}

impl Attachable for Simulated {
    type Attachment = Attachment;

    async fn attach(&self, from: u64) -> Result<Attachment, ReadError> {
        Ok(Attachment::new(self.clone(), from))
    }
}

impl Future for Wait<'_> {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.world.state();
        match state.calls.remove(&self.call) {
            Some(Call::Answered(answer)) => Poll::Ready(answer),
            Some(Call::Waiting(_)) | None => {
                state.calls.insert(self.call, Call::Waiting(Some(context.waker().clone())));
                Poll::Pending
            }
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.world.state().calls.remove(&self.call);
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
