//! Sessions, outboxes and store of several shards, simulated: one thread, clocks that stand still until they are told to go
//! on, a disk in memory that fails, fills, loses and tears, and a random number generator that decides everything. The same
//! seed is the same run.
//!
//! The broker is the real one from the queues of its shards to the file under its store, but for threads and sockets
//! ([`broker`]). What it does is held, delivery by delivery, against a [`model`] that looks at everything and shares no code
//! with it; after each crash the data on disk is compared with what was acknowledged ([`recovery`]).
//!
//! `NEARCAST_SEED=17 cargo test -p broker simulation` is one run, whose every step is printed.

mod actions;
mod book;
mod broker;
mod model;
mod plan;
mod reader;
mod recovery;
mod session;
mod spec;
mod trace;

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::Hasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::task::noop_waker_ref;
use matcher::live::Cause;

use crate::model::clock;
use crate::model::error::ApiError;
use crate::sessions::Attached;
use crate::shard::index_of;
use crate::store::Recovered;
use crate::store::inline::{InlineStore, TestDisk};
use book::{Book, Step};
use broker::Broker;
use model::{Client, Setting};
use plan::{Choices, Plan};
use reader::Connection;
use recovery::Publications;
use session::Session;
use trace::Trace;

/// A run.
struct Simulation {
    seed: u64,
    plan: Plan,
    choices: Choices,
    disk: TestDisk,
    /// `None` while it is down.
    broker: Option<Broker>,
    books: Vec<Book>,
    requests: Vec<Request>,
    connections: BTreeMap<u64, Connection>,
    published: Publications,
    now_ms: u64,
    /// Counts events, sessions and connections.
    numbers: u64,
    lives: u64,
    trace: Trace,
}

/// A request that was made and is not answered yet.
struct Request {
    what: What,
    future: Pin<Box<dyn Future<Output = Result<Done, ApiError>>>>,
    /// Shards of which one has to have this on disk before it is answered, and the number of the command there.
    on_disk: Vec<(usize, u64)>,
}

enum What {
    Publish(u64),
    Attach(u64),
    /// The revocation of the events of an id, up to this one.
    Revoke(String, u64),
    Other,
}

enum Done {
    Attached(Attached),
    /// Whether there was something to do.
    Other(bool),
}

/// A new store, as it is made once for all.
fn new_disk(plan: &Plan) -> TestDisk {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    TestDisk::of(
        BYTES
            .get_or_init(|| {
                let disk = TestDisk::default();
                drop(broker::open(&disk, plan).expect("a new store"));
                disk.bytes()
            })
            .clone(),
    )
}

impl Simulation {
    fn new(seed: u64) -> Result<Self, String> {
        let mut choices = Choices::new(seed);
        let plan = choices.plan();
        let now_ms = 1_780_000_000_000;
        clock::paused::pause(now_ms);
        let disk = new_disk(&plan);
        let is_printed = std::env::var_os("NEARCAST_SEED").is_some();
        let mut simulation = Self {
            seed,
            choices,
            disk,
            broker: None,
            books: Vec::new(),
            requests: Vec::new(),
            connections: BTreeMap::new(),
            published: Publications::default(),
            now_ms,
            numbers: 0,
            lives: 0,
            trace: Trace { is_printed, ..Trace::default() },
            plan,
        };
        simulation.trace.add(format!("{:?}", simulation.plan));
        let (store, recovered) =
            broker::open(&simulation.disk, &simulation.plan).map_err(|error| error.to_string())?;
        simulation.start(store, recovered)?;
        Ok(simulation)
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..self.plan.steps_count {
            self.act()?;
        }
        self.come_to_rest()?;
        if self.choices.chance(0.5) {
            self.crash(false)?;
            self.come_to_rest()?;
        }
        self.leave_nothing()
    }

    fn setting(&self) -> Setting {
        Setting { now_ms: self.now_ms, bounds: self.plan.bounds }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn broker(&mut self) -> &mut Broker {
        self.broker.as_mut().expect("it runs")
    }

    fn shard_of(&self, client: &str) -> usize {
        index_of(&broker::dealing(self.seed ^ self.lives), client, self.plan.shards_count)
    }

    fn session(&self, client: &str) -> Option<&Session> {
        let book = &self.books[self.shard_of(client)];
        book.now.clients.get(client).map(|client| &client.session)
    }

    fn pass(&mut self, ms: u64) {
        self.now_ms += ms;
        clock::paused::pass(Duration::from_millis(ms));
    }

    /// Asks the broker. What comes into the queue of a shard by that has to do what `step` says.
    fn ask(
        &mut self,
        what: What,
        mut future: Pin<Box<dyn Future<Output = Result<Done, ApiError>>>>,
        step: &Step,
        has_to_be_on_disk: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        let polled = future.as_mut().poll(&mut Context::from_waker(noop_waker_ref()));
        let grown = self.follow_queues(step);
        let on_disk = grown.into_iter().filter(|(shard, _)| has_to_be_on_disk(*shard)).collect();
        let request = Request { what, future, on_disk };
        match polled {
            Poll::Pending => self.requests.push(request),
            Poll::Ready(outcome) => self.answered(request, outcome)?,
        }
        Ok(())
    }

    /// Notes this step for everything that is new in the queues of the shards. Returns the shards, each with the number of
    /// the command there.
    fn follow_queues(&mut self, step: &Step) -> Vec<(usize, u64)> {
        let mut grown = Vec::new();
        let broker = self.broker.as_mut().expect("it runs");
        for (index, (book, (_, queue))) in self.books.iter_mut().zip(&broker.workers).enumerate() {
            while book.queue.len() < queue.len() {
                grown.push((index, book.push(step.clone())));
            }
        }
        grown
    }

    /// Lets requests take notice of their answers.
    fn poll(&mut self) -> Result<(), String> {
        for mut request in std::mem::take(&mut self.requests) {
            let polled = request.future.as_mut().poll(&mut Context::from_waker(noop_waker_ref()));
            match polled {
                Poll::Pending => self.requests.push(request),
                Poll::Ready(outcome) => self.answered(request, outcome)?,
            }
        }
        Ok(())
    }

    fn answered(&mut self, request: Request, outcome: Result<Done, ApiError>) -> Result<(), String> {
        let is_done = matches!(outcome, Ok(Done::Other(true)));
        let is_on_disk = |(shard, number): &(usize, u64)| self.books[*shard].on_disk.carried_out >= *number;
        if is_done && !request.on_disk.is_empty() && !request.on_disk.iter().any(is_on_disk) {
            return Err(format!("it is answered, and not on disk: {:?}", request.on_disk));
        }
        match (request.what, outcome) {
            (What::Publish(number), Ok(_)) => {
                for (name, client) in self.books.iter().flat_map(|book| &book.now.clients) {
                    let session = &client.session;
                    for offset in session.kept.keys().filter(|offset| **offset > session.released) {
                        let is_it = |told: &session::Told| {
                            told.event.number == number
                                && (told.cause, told.transition) == (Cause::Published, None)
                        };
                        if session.at(*offset).is_some_and(is_it) {
                            return Err(format!("event {number} is answered, and not on disk for {name}"));
                        }
                    }
                }
                self.published.acknowledged.insert(number);
                self.trace.add(format!("event {number} is acknowledged"));
            }
            (What::Attach(connection), Ok(Done::Attached(attached))) => {
                self.attached(connection, &attached)?
            }
            (What::Revoke(id, last), Ok(Done::Other(true))) => {
                self.published.ended.insert(id, last);
            }
            (_, Err(refusal)) if matches!(refusal, ApiError::Storage | ApiError::Invalid(_)) => {
                self.trace.add(format!("refused: {refusal:?}"));
            }
            (_, Err(refusal)) => return Err(format!("refused: {refusal:?}")),
            _ => {}
        }
        Ok(())
    }

    fn attached(&mut self, connection: u64, attached: &Attached) -> Result<(), String> {
        let Some(reader) = self.connections.get_mut(&connection) else { return Ok(()) };
        let begins = reader.begins.clone().ok_or("it was attached before its time")?;
        reader.cursor = Some(attached.offset);
        if begins.after.is_some_and(|after| after != attached.offset) {
            return Err(format!("{connection} begins after {} and not as {begins:?}", attached.offset));
        }
        let client = reader.client.clone();
        let shard = self.shard_of(&client);
        let Some(client) = self.books[shard].now.clients.get_mut(&client) else { return Ok(()) };
        if client.session.number == begins.session {
            let epoch = client.session.epoch.get_or_insert_with(|| attached.epoch.to_string());
            if **epoch != *attached.epoch {
                return Err(format!("{connection} reads the session {} and not {epoch}", attached.epoch));
            }
            // What is on disk of it is called the same.
            if let Some(client) =
                self.books[shard].on_disk.clients.get_mut(&self.connections[&connection].client)
                && client.session.number == begins.session
            {
                client.session.epoch = Some(attached.epoch.to_string());
            }
        }
        Ok(())
    }

    /// Lets a shard do what is due and carry out `commands_max` commands at most, and does the same in its book.
    fn step(&mut self, index: usize, commands_max: usize) -> Result<(), String> {
        if index >= self.books.len() {
            return Ok(());
        }
        let (setting, disk) = (self.setting(), self.disk.clone());
        let broker = self.broker.as_mut().expect("it runs");
        let faults = &broker.faults;
        let before = (faults.reached.load(Ordering::Relaxed), faults.written.load(Ordering::Relaxed));
        let (shard, queue) = &mut broker.workers[index];
        let mut commands = Vec::new();
        while commands.len() < commands_max
            && let Some(command) = queue.take_one()
        {
            commands.push(command);
        }
        let count = commands.len();
        let is_failing = shard.sessions.refuses_changes();
        let ledger_step = shard.sessions.ledger.step();
        let _ = shard.step(&mut commands);
        let has_committed = shard.sessions.ledger.step() > ledger_step;
        let reached = faults.reached.load(Ordering::Relaxed) > before.0;
        let written = faults.written.load(Ordering::Relaxed) > before.1;
        let shown: Vec<_> = self.books[index].queue.iter().take(count).cloned().collect();
        self.trace.add(format!(
            "shard {index}{} {shown:?}{}",
            if is_failing { ", which fails," } else { "" },
            if has_committed { ", committed" } else { "" }
        ));
        let mut begun = Vec::new();
        let before = self.sessions(index);
        let carried_out = self.books[index].carry_out(count, is_failing, setting, &mut begun);
        self.tell_changes(index, &before);
        carried_out?;
        if written {
            // What is written takes the place of what failed.
            self.books.iter_mut().for_each(|book| book.attempts.clear());
        }
        let book = &mut self.books[index];
        if has_committed {
            book.now.is_fresh = false;
            book.on_disk = book.now.clone();
            book.now.committed();
        } else if reached {
            book.attempts.push(model::Shard { is_fresh: false, ..book.now.clone() });
        }
        for (connection, beginning) in begun {
            if let Some(reader) = self.connections.get_mut(&connection) {
                reader.begins = Some(beginning);
            }
        }
        self.poll()?;
        if disk.is_off() { self.crash_now() } else { Ok(()) }
    }

    /// How far the sessions of a shard have come: which they are, their last offsets, and how many are kept.
    fn sessions(&self, index: usize) -> BTreeMap<String, (u64, u64, usize)> {
        let clients = self.books[index].now.clients.iter();
        let told = clients.map(|(name, Client { session, .. })| {
            (name.clone(), (session.number, session.offset(), session.kept.len()))
        });
        told.collect()
    }

    fn tell_changes(&mut self, index: usize, before: &BTreeMap<String, (u64, u64, usize)>) {
        for (name, client) in &self.books[index].now.clients {
            let (session, was) = (&client.session, before.get(name));
            let is_same = |(number, ..): &&(u64, u64, usize)| *number == session.number;
            let from = was.filter(is_same).map_or(0, |(_, offset, _)| *offset);
            for offset in from + 1..=session.offset() {
                let Some(session::Told { subscriptions, cause, transition, event, .. }) = session.at(offset)
                else {
                    continue;
                };
                let number = event.number;
                self.trace
                    .add(format!("  {name} {offset}: {subscriptions:?} {cause:?} {transition:?} {number}"));
            }
            if was.is_none_or(|(_, _, kept)| *kept != session.kept.len()) {
                let kept: Vec<_> = session.kept.keys().collect();
                self.trace.add(format!("  {name} keeps {kept:?}, durable: {}", session.durable));
            }
        }
    }

    /// Lets a reader take the entries that wait for it, up to `bytes_max` bytes.
    fn read(&mut self, connection: u64, bytes_max: usize) -> Result<(), String> {
        let Some(mut reader) = self.connections.remove(&connection) else { return Ok(()) };
        let mut batch = Vec::new();
        let close = reader.outbox.next_batch(&mut batch, bytes_max).now_or_never().flatten();
        let client = reader.client.clone();
        for entry in &batch {
            let session = reader.begins.as_ref().map(|begins| begins.session);
            let session = self.session(&client).filter(|one| session == Some(one.number));
            let said =
                reader.take(entry, session).map_err(|what| format!("{connection} of {client}: {what}"))?;
            self.trace.deliveries_count += 1;
            self.trace.add(format!("{connection} of {client} reads {said}"));
        }
        if let Some(close) = close
            && !reader.is_closed
        {
            reader.is_closed = true;
            self.trace.add(format!("{connection} of {client} is closed: {}", close.reason));
            let shards = self.broker().shards.clone();
            shards.detach(&client.as_str().into(), connection).now_or_never();
            self.follow_queues(&Step::Detach { client, connection });
        }
        if !reader.is_closed {
            self.connections.insert(connection, reader);
        }
        Ok(())
    }

    /// Ends the broker: its process is gone, and with the power what was not synced.
    fn crash(&mut self, loses_power: bool) -> Result<(), String> {
        let bytes = if loses_power { self.disk.torn(&mut self.choices.0) } else { self.disk.bytes() };
        self.trace.add(if loses_power { "the power is lost".to_owned() } else { "killed".to_owned() });
        self.trace.crashes_count += 1;
        self.disk.lose_power_after(0);
        self.requests.clear();
        self.connections.clear();
        self.broker = None;
        self.disk = TestDisk::of(bytes);
        let downtime = self.choices.one(&[0, 0, 1, 400, 3_000]);
        self.pass(downtime);
        if self.choices.chance(0.1) {
            // And once more while it starts.
            let writes = self.choices.below(20) as u64;
            self.disk.lose_power_after(writes);
        }
        match broker::open(&self.disk, &self.plan) {
            Ok((store, recovered)) => self.start(store, recovered),
            Err(_) if self.disk.is_off() => self.crash(loses_power),
            Err(error) => Err(format!("it does not start: {error}")),
        }
    }

    /// Crashes at a point that was decided before.
    fn crash_now(&mut self) -> Result<(), String> {
        let loses_power = self.choices.chance(0.6);
        self.crash(loses_power)
    }

    /// Begins a life with what was found, and checks that.
    fn start(&mut self, store: InlineStore, recovered: Recovered) -> Result<(), String> {
        let count = self.books.len();
        let mut fitting = Vec::new();
        for (index, book) in std::mem::take(&mut self.books).into_iter().enumerate() {
            let hash = broker::dealing(self.seed ^ self.lives);
            let is_own = |name: &str| index_of(&hash, name, count) == index;
            let mut outcomes = Vec::new();
            let mut fits = |shard: &model::Shard| {
                let mut outcome = recovery::differs(shard, &recovered, &is_own);
                if index == 0 && outcome.is_ok() {
                    outcome = recovery::has_live(shard, &recovered);
                }
                outcome.map_err(|what| outcomes.push(what)).is_ok()
            };
            let mut candidates: Vec<_> = std::iter::once(book.on_disk).chain(book.attempts).collect();
            candidates.retain(&mut fits);
            if candidates.is_empty() {
                return Err(format!("lost or torn: {}", outcomes.join("; or ")));
            }
            fitting.push(candidates);
        }
        let chosen: Vec<_> = fitting.into_iter().filter_map(|mut shards| shards.pop()).collect();
        let (live, revoked) = recovery::live_events(&recovered, &chosen, &self.published, self.now_ms)?;
        let overtaken = recovery::overtaken(&recovered, &self.published)?;
        self.lives += 1;
        if self.lives > 1 && self.choices.chance(0.3) {
            self.plan.shards_count = self.choices.one(&[1, 2, 3]);
        }
        self.books = (0..self.plan.shards_count).map(|_| Book::default()).collect();
        for book in &mut self.books {
            book.now.live = live.clone();
            (book.now.is_fresh, book.now.resumes) = (true, true);
            book.now.revoked = revoked.clone();
        }
        for (name, client) in chosen.iter().flat_map(|shard| &shard.clients) {
            let number = self.number();
            let taken_up = recovery::taken_up(client, &live, &overtaken, number, self.now_ms);
            let Some(client) = taken_up.map_err(|what| format!("client {name}: {what}"))? else { continue };
            let shard = self.shard_of(name);
            self.books[shard].now.clients.insert(name.clone(), client);
        }
        for book in &mut self.books {
            book.on_disk = book.now.clone();
        }
        self.broker = Some(Broker::start(store, recovered, &self.plan, self.seed ^ self.lives)?);
        self.trace.add(format!("started with {} live events", live.len()));
        Ok(())
    }
}

/// Runs a seed; an error comes with the steps that led to it.
fn run(seed: u64) -> Result<Trace, String> {
    let mut simulation = Simulation::new(seed)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| simulation.run()));
    let failed = match outcome {
        Ok(Ok(())) => return Ok(simulation.trace),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            format!("panicked: {}", text.unwrap_or("?"))
        }
    };
    let last: Vec<_> = simulation.trace.last.into_iter().collect();
    Err(format!("NEARCAST_SEED={seed}: {}\n{:?}\n{failed}", last.join("\n"), simulation.plan))
}

/// Which seeds to run: the one that `NEARCAST_SEED` names, some, or with `NEARCAST_SOAK=1` as many as there should be.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let is_soak = std::env::var("NEARCAST_SOAK").is_ok_and(|soak| soak == "1");
    match number("NEARCAST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NEARCAST_SEEDS").unwrap_or(if is_soak { 10_000 } else { 40 }),
    }
}

#[test]
fn what_was_acknowledged_is_told_once_and_in_order_whatever_fails() {
    let (mut deliveries_count, mut crashes_count) = (0, 0);
    let mut failures = Vec::new();
    for seed in seeds() {
        match run(seed) {
            Ok(trace) => {
                deliveries_count += trace.deliveries_count;
                crashes_count += trace.crashes_count;
            }
            Err(what) => failures.push((seed, what)),
        }
    }
    println!("{:?}: {deliveries_count} deliveries, {crashes_count} crashes", seeds());
    for (seed, what) in &failures {
        println!("seed {seed}: {}", what.lines().last().unwrap_or_default());
    }
    if let Some((_, what)) = failures.first() {
        panic!("{} seeds failed, the first:\n{what}", failures.len());
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 2, 3] {
        let hash = || run(seed).map(|trace| (trace.count, trace.hash.finish()));
        assert_eq!(hash(), hash(), "seed {seed}");
    }
}
