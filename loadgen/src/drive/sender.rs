//! The thread that sends.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use hdrhistogram::Histogram;
use matcher::geo::Position;
use mio::unix::SourceFd;
use mio::{Interest, Poll, Registry, Token, Waker};

use super::Who;
use super::heard::{self, Heard};
use super::journal::SentJournal;
use super::reader::{self, BELL, Ear, Reader, Wish, Wishes, Word};
use super::shared::{Nanos, Shared, Watch, nanos};
use super::socket::Socket;
use crate::plan::{Act, Client, Step, Steps};
use crate::wire::{Speak, Wire};

/// Steps that are carried out before what they say is written and the broker's words are heard, where so many are due: a load that is
/// behind says several things in a write, as a broker that is behind hears them.
const BURST: u64 = 8_192;

/// Steps that wait ready-made, in chunks: making them must not hold up sending them.
const CHUNK: usize = 512;
const CHUNKS: usize = 128;

/// Bytes that one connection may have waiting because the broker does not read; what comes then is not sent, and counted.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Conversations that begin at once; more would only wait in the broker's accept queue.
const OPENING_MAX: u64 = 256;

/// Answers to what clients say of themselves that may be under way.
const ANSWERS_MAX: u64 = 4_096;

/// How long the broker may take to say something while conversations begin.
const OPENING_WAIT: Duration = Duration::from_secs(60);

/// Events that are noted for the check, which looks at fewer.
const JOURNAL_MAX: usize = 4_000_000;

/// From the decision to begin to the beginning.
const LEAD: Duration = Duration::from_millis(50);

/// How long nothing more may come before a phase is over.
const QUIET: Duration = Duration::from_millis(600);

/// How a load is driven.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections that publish.
    pub publishers: u32,
    /// Of so many clients all is held against the oracle.
    pub checked_clients: u32,
    /// Every so many events is.
    pub checked_stride: u64,
    /// How long to wait for what is still to come at the end of a phase.
    pub patience: Duration,
}

/// How far the opening is, for those who look on.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Clients that are in.
    pub done: u64,
    /// Of how many.
    pub of: u64,
}

/// A broker with connections to it.
pub struct Load {
    wire: Arc<dyn Wire>,
    address: SocketAddr,
    shared: Arc<Shared>,
    registry: Registry,
    waker: Waker,
    wishes: Wishes,
    words: Receiver<Word>,
    reader: Option<JoinHandle<()>>,
    clients: Vec<Client>,
    voices: Vec<Option<Voice>>,
    publishers: Vec<Option<Voice>>,
    who: HashMap<Token, Who>,
    next_token: usize,
    /// Answers that clients wait for to what they said of themselves.
    introductions: u64,
    /// Connections with something to write.
    dirty: Vec<Who>,
    next_number: u64,
    checked: Vec<bool>,
    sent: Sent,
    patience: Duration,
}

/// One who says something.
struct Voice {
    /// None while it is away.
    socket: Option<Socket>,
    token: Token,
    speak: Box<dyn Speak>,
    is_dirty: bool,
    is_ready: bool,
    position: Option<Position>,
    moves: u64,
    epoch: Option<Box<str>>,
    is_durable: bool,
    /// A connection that is to break, since when: it does when the reader has let go of it, and said how far it was read.
    breaking: Option<(Socket, Nanos)>,
    /// Requests of several events under way, as the numbers of their events.
    under_way: Vec<u64>,
}

/// What was sent in a phase.
#[derive(Debug)]
pub struct Sent {
    /// Events that were due after the warm-up; so are moves and reconnects.
    pub events: u64,
    /// Of all events, warm-up included.
    pub all_events: u64,
    /// Moves.
    pub moves: u64,
    /// Connections that were broken on purpose.
    pub reconnects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Steps that were not sent, because what was said before had not been read.
    pub unsent: u64,
    /// How much later than intended steps were sent, in microseconds.
    pub late_us: Histogram<u64>,
    /// Events that were due in each second of the phase.
    pub due_seconds: Vec<u64>,
    /// What went wrong.
    pub errors: BTreeMap<String, u64>,
    /// What the check asks for.
    pub journal: SentJournal,
}

/// What came of a phase.
#[derive(Debug)]
pub struct Phase {
    /// What was sent.
    pub sent: Sent,
    /// What came.
    pub heard: Heard,
    /// When it began, on the load's clock.
    pub began: Nanos,
    /// From its beginning to its last step, in seconds.
    pub seconds: f64,
    /// Number of its first event.
    pub first_number: u64,
    /// Where checked clients were when it began.
    pub checked: Vec<u32>,
    /// Events that were neither accepted nor refused in the end.
    pub unanswered: u64,
}

impl Sent {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            events: 0,
            all_events: 0,
            moves: 0,
            reconnects: 0,
            bytes: 0,
            unsent: 0,
            late_us: Histogram::new_with_bounds(1, 600_000_000, 3)?,
            due_seconds: Vec::new(),
            errors: BTreeMap::new(),
            journal: SentJournal::default(),
        })
    }
}

impl Voice {
    fn new(speak: Box<dyn Speak>, client: Option<&Client>) -> Self {
        Self {
            socket: None,
            token: BELL,
            speak,
            is_dirty: false,
            is_ready: false,
            position: client.and_then(|client| client.home),
            moves: 0,
            epoch: None,
            is_durable: client.is_some_and(|client| client.wishes.iter().any(|wish| wish.is_durable)),
            breaking: None,
            under_way: Vec::new(),
        }
    }
}

impl Load {
    /// Connects all clients and all who publish. Who is checked is spread evenly over the clients.
    ///
    /// # Errors
    /// When the broker lets somebody not in, or says nothing for too long.
    pub fn open(
        wire: Arc<dyn Wire>,
        address: SocketAddr,
        clients: Vec<Client>,
        settings: &Settings,
        mut watch: impl FnMut(Opening),
    ) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, BELL)?;
        let shared = Arc::new(Shared::new(clients.len(), settings.checked_stride)?);
        let wishes: Wishes = Arc::default();
        let (words_in, words) = channel();
        let reader =
            Reader { poll, shared: Arc::clone(&shared), wishes: Arc::clone(&wishes), words: words_in };
        let reader = std::thread::Builder::new().name("reader".to_owned()).spawn(move || reader.run())?;
        let count = clients.len() as u64;
        let checked_count = u64::from(settings.checked_clients).min(count);
        let mut checked = vec![false; clients.len()];
        for index in 0..checked_count {
            checked[usize::try_from(index * count / checked_count)?] = true;
        }
        let live = Arc::clone(&shared.live);
        let of = u64::from(settings.publishers) + count;
        let mut load = Self {
            wire,
            address,
            shared,
            registry,
            waker,
            wishes,
            words,
            reader: Some(reader),
            voices: clients.iter().map(|_| None).collect(),
            clients,
            publishers: Vec::new(),
            who: HashMap::new(),
            next_token: 0,
            introductions: 0,
            dirty: Vec::new(),
            next_number: first_number(),
            checked,
            sent: Sent::new()?,
            patience: settings.patience,
        };
        for index in 0..settings.publishers {
            load.publishers.push(None);
            load.connect(Who::Publisher(index), None)?;
        }
        for index in 0..u32::try_from(count)? {
            load.connect(Who::Client(index), None)?;
            let asked = u64::from(settings.publishers) + u64::from(index) + 1;
            load.await_until(
                |load| asked - live.ready.load(Relaxed) <= OPENING_MAX && load.unanswered() <= ANSWERS_MAX,
                || watch(Opening { done: live.ready.load(Relaxed), of }),
            )?;
        }
        load.await_until(
            |load| live.ready.load(Relaxed) >= of && load.unanswered() == 0,
            || watch(Opening { done: live.ready.load(Relaxed), of }),
        )?;
        Ok(load)
    }

    /// Whose deliveries are held against the oracle.
    #[must_use]
    pub fn checked(&self) -> Vec<u32> {
        (0..).zip(&self.checked).filter_map(|(index, checked)| checked.then_some(index)).collect()
    }

    /// Answers that clients wait for to what they said of themselves.
    fn unanswered(&self) -> u64 {
        self.introductions.saturating_sub(self.shared.live.introduced.load(Relaxed))
    }

    /// Hears the broker until something holds.
    fn await_until(
        &mut self,
        mut holds: impl FnMut(&Self) -> bool,
        mut watch: impl FnMut(),
    ) -> anyhow::Result<()> {
        let (mut quiet_since, mut shown, mut seen) = (Instant::now(), Instant::now(), 0);
        loop {
            self.flush()?;
            while let Ok(word) = self.words.try_recv() {
                quiet_since = Instant::now();
                self.hear(word)?;
            }
            let introduced = self.shared.live.introduced.load(Relaxed);
            if introduced != seen {
                (seen, quiet_since) = (introduced, Instant::now());
            }
            if shown.elapsed() > Duration::from_millis(200) {
                watch();
                shown = Instant::now();
            }
            if holds(self) {
                return self.flush();
            }
            if let Some((error, _)) = self.shared.heard().errors.iter().chain(&self.sent.errors).next() {
                bail!("the broker at {}: {error}", self.address);
            }
            ensure!(
                quiet_since.elapsed() < OPENING_WAIT,
                "the broker at {} has said nothing for {OPENING_WAIT:?}",
                self.address,
            );
            if let Ok(word) = self.words.recv_timeout(Duration::from_millis(1)) {
                quiet_since = Instant::now();
                self.hear(word)?;
            }
        }
    }

    fn slot(&mut self, who: Who) -> &mut Option<Voice> {
        match who {
            Who::Client(client) => &mut self.voices[client as usize],
            Who::Publisher(publisher) => &mut self.publishers[publisher as usize],
        }
    }

    fn voice(&mut self, who: Who) -> &mut Voice {
        self.slot(who).as_mut().expect("whoever is named was connected once")
    }

    /// Opens the connection of one who has none. One that comes back does so since a time, and went on up to an offset.
    fn connect(&mut self, who: Who, back: Option<(Nanos, u64)>) -> anyhow::Result<()> {
        let token = Token(self.next_token);
        self.next_token += 1;
        let mut socket = Socket::connect(self.address, token.0 as u64)?;
        let (client, (speak, hear)) = match who {
            Who::Client(client) => {
                let client = &self.clients[client as usize];
                (Some(client), self.wire.subscriber(client))
            }
            Who::Publisher(publisher) => (None, self.wire.publisher(&format!("publisher-{publisher}"))),
        };
        let is_checked = matches!(who, Who::Client(client) if self.checked[client as usize]);
        let mut voice = Voice::new(speak, client);
        if let Some(before) = self.slot(who).take() {
            (voice.position, voice.moves, voice.epoch) = (before.position, before.moves, before.epoch);
        }
        let resume = voice.epoch.as_ref().filter(|_| voice.is_durable).zip(back);
        let resume = resume.map(|(epoch, (_, offset))| format!("{epoch}:{offset}"));
        voice.speak.open(resume.as_deref(), &mut socket.out);
        let stream = Arc::clone(&socket.stream);
        let ear = Ear {
            stream: Arc::clone(&stream),
            who,
            hear,
            is_checked,
            is_durable: voice.is_durable,
            is_connected: false,
            since: back.map(|(since, _)| since),
            pending: Vec::new(),
            offset: back.map_or(0, |(_, offset)| offset),
            acknowledged: back.map_or(0, |(_, offset)| offset),
            answers: 0,
        };
        voice.token = token;
        voice.socket = Some(socket);
        *self.slot(who) = Some(voice);
        self.who.insert(token, who);
        // First, so that the reader knows of it before anything comes.
        self.wish(Wish::Read(token, Box::new(ear)))?;
        self.registry.register(
            &mut SourceFd(&stream.as_raw_fd()),
            token,
            Interest::READABLE | Interest::WRITABLE,
        )?;
        self.mark(who);
        Ok(())
    }

    fn wish(&self, wish: Wish) -> anyhow::Result<()> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(wish);
        self.waker.wake().context("the reader cannot be woken")
    }

    /// Somebody has something to write.
    fn mark(&mut self, who: Who) {
        let voice = self.voice(who);
        if !voice.is_dirty {
            voice.is_dirty = true;
            self.dirty.push(who);
        }
    }

    /// Writes what waits.
    fn flush(&mut self) -> anyhow::Result<()> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut left = Vec::new();
        for who in dirty {
            let voice = self.voice(who);
            voice.is_dirty = false;
            // One that is about to connect is marked again then.
            let Some(socket) = voice.socket.as_mut().filter(|socket| socket.is_connected) else { continue };
            if let Some(numbers) = voice.speak.flush(&mut socket.out) {
                voice.under_way = numbers;
            }
            match socket.flush() {
                Ok(bytes) => {
                    if socket.waiting() > 0 {
                        voice.is_dirty = true;
                        left.push(who);
                    }
                    self.sent.bytes += bytes;
                }
                // The reader hears of it, too, and says so.
                Err(_) => voice.socket = None,
            }
        }
        self.dirty = left;
        Ok(())
    }

    fn hear(&mut self, word: Word) -> anyhow::Result<()> {
        match word {
            Word::Connected { token } => {
                let Some(who) = self.who.get(&token).copied() else { return Ok(()) };
                if let Some(socket) = &mut self.voice(who).socket {
                    socket.is_connected = true;
                }
                self.mark(who);
            }
            Word::Ready { token, epoch } => {
                let Some(who) = self.who.get(&token).copied() else { return Ok(()) };
                let voice = self.voice(who);
                voice.is_ready = true;
                voice.epoch = Some(epoch);
                let (position, is_there) = (voice.position, voice.token == token);
                if is_there && let Some(socket) = &mut voice.socket {
                    let answers = voice.speak.introduce(position.as_ref(), &mut socket.out);
                    self.introductions += answers;
                    self.wish(Wish::Expect(token, answers))?;
                    self.mark(who);
                }
            }
            Word::Ping { token, payload } => {
                self.say(token, |voice, out| voice.pong(&payload, out));
            }
            Word::Has { token, offset } => {
                self.say(token, |voice, out| voice.acknowledge(offset, out));
            }
            Word::Batch { token, outcome } => {
                let Some(who) = self.who.get(&token).copied() else { return Ok(()) };
                let voice = self.voice(who);
                voice.speak.answered();
                let numbers = std::mem::take(&mut voice.under_way);
                self.mark(who);
                let shared = Arc::clone(&self.shared);
                let (now, mut heard) = (shared.now(), shared.heard());
                match outcome {
                    Ok(accepted) if accepted == numbers.len() as u64 => {
                        for number in numbers {
                            reader::accepted(&shared, &mut heard, number, now);
                        }
                    }
                    // Of none it is known whether it is one of those.
                    Ok(_) => {
                        for number in numbers {
                            reader::refused(&shared, &mut heard, number, "a part of its batch was not taken");
                        }
                    }
                    Err(why) => {
                        for number in numbers {
                            reader::refused(&shared, &mut heard, number, &why);
                        }
                    }
                }
            }
            Word::LetGo { token, offset, answers } => {
                self.introductions -= answers;
                let Some(who) = self.who.remove(&token) else { return Ok(()) };
                if let Some((socket, since)) = self.voice(who).breaking.take() {
                    socket.shut();
                    self.come_back(who, since, offset);
                }
            }
            Word::Ended { token, why, offset, answers } => {
                ensure!(token != BELL, "{why}");
                self.introductions -= answers;
                let Some(who) = self.who.remove(&token) else { return Ok(()) };
                let voice = self.voice(who);
                voice.socket = None;
                // One that was to break did so by itself.
                match voice.breaking.take() {
                    Some((_, since)) => self.come_back(who, since, offset),
                    None => self.note(&why),
                }
            }
        }
        Ok(())
    }

    /// Connects somebody again.
    fn come_back(&mut self, who: Who, since: Nanos, offset: u64) {
        if let Err(error) = self.connect(who, Some((since, offset))) {
            self.note(&format!("{error:#}"));
        }
    }

    /// Something went wrong.
    fn note(&mut self, what: &str) {
        heard::count(&mut self.sent.errors, what);
        self.shared.live.errors.fetch_add(1, Relaxed);
    }

    fn say(&mut self, token: Token, say: impl FnOnce(&mut dyn Speak, &mut Vec<u8>)) {
        let Some(who) = self.who.get(&token).copied() else { return };
        let voice = self.voice(who);
        if let Some(socket) = &mut voice.socket {
            say(&mut *voice.speak, &mut socket.out);
            self.mark(who);
        }
    }

    /// Carries a plan out, whose clients are those of this load, and waits for what comes of it. What is intended before the
    /// warm-up is over is not in the latencies.
    ///
    /// # Errors
    /// When the broker goes away.
    pub fn phase(
        &mut self,
        mut plan: Steps,
        warmup: Duration,
        begun: impl FnOnce(Instant, Watch) -> anyhow::Result<()>,
    ) -> anyhow::Result<Phase> {
        self.put_back()?;
        let (steps_in, steps) = sync_channel::<Vec<Step>>(CHUNKS);
        let shared = Arc::clone(&self.shared);
        shared.due_seconds().clear();
        let maker = std::thread::Builder::new().name("plan".to_owned()).spawn(move || {
            loop {
                let chunk: Vec<Step> = std::iter::from_fn(|| plan.next()).take(CHUNK).collect();
                count_due(&chunk, &mut shared.due_seconds());
                if chunk.is_empty() || steps_in.send(chunk).is_err() {
                    return;
                }
            }
        })?;
        precise();
        // The first steps are there when it begins.
        let mut waiting = steps.recv().unwrap_or_default().into_iter();
        let began = self.shared.now() + nanos(LEAD);
        let first_number = self.next_number;
        self.sent = Sent::new()?;
        *self.shared.heard() = Heard::new()?;
        self.shared.measured_from.store(began + nanos(warmup), Relaxed);
        begun(Instant::now() + LEAD, Watch::new(&self.shared))?;
        let mut next = waiting.next();
        while let Some(step) = next.take() {
            let due = began + nanos(step.at);
            let now = self.shared.now();
            if due > now {
                self.flush()?;
                // What could not be written is tried again soon.
                let wait = if self.dirty.is_empty() { due - now } else { (due - now).min(500_000) };
                match self.words.recv_timeout(Duration::from_nanos(wait)) {
                    Ok(word) => self.hear(word)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => bail!("the reader has ended"),
                }
                next = Some(step);
                continue;
            }
            self.carry_out(step, due)?;
            if self.sent.journal.steps.is_multiple_of(BURST) {
                self.flush()?;
                self.hear_all()?;
            }
            next = match waiting.next() {
                Some(step) => Some(step),
                None => {
                    waiting = steps.recv().unwrap_or_default().into_iter();
                    waiting.next()
                }
            };
        }
        self.flush()?;
        let seconds = Duration::from_nanos(self.shared.now().saturating_sub(began)).as_secs_f64();
        self.settle()?;
        maker.join().map_err(|_| anyhow::anyhow!("the plan's thread panicked"))?;
        self.end(began, seconds, first_number)
    }

    fn hear_all(&mut self) -> anyhow::Result<()> {
        while let Ok(word) = self.words.try_recv() {
            self.hear(word)?;
        }
        Ok(())
    }

    /// Waits until nothing more comes.
    fn settle(&mut self) -> anyhow::Result<()> {
        let seen = |load: &Self| {
            let heard = load.shared.heard();
            (heard.bytes, heard.answered, load.shared.live.introduced.load(Relaxed))
        };
        let (started, mut last, mut since) = (Instant::now(), seen(self), Instant::now());
        while started.elapsed() < self.patience {
            self.flush()?;
            if let Ok(word) = self.words.recv_timeout(Duration::from_millis(5)) {
                self.hear(word)?;
            }
            let now = seen(self);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let is_answered =
                now.1 >= self.sent.all_events && self.unanswered() == 0 && self.dirty.is_empty();
            // What has no answer yet may be stuck in a queue, and come.
            let quiet = if is_answered { QUIET } else { QUIET * 5 };
            if since.elapsed() > quiet {
                break;
            }
        }
        Ok(())
    }

    fn end(&mut self, began: Nanos, seconds: f64, first_number: u64) -> anyhow::Result<Phase> {
        let heard = std::mem::replace(&mut *self.shared.heard(), Heard::new()?);
        let mut sent = std::mem::replace(&mut self.sent, Sent::new()?);
        sent.journal.ended = self.shared.now();
        sent.due_seconds = std::mem::take(&mut *self.shared.due_seconds());
        // What could not be said in time is not said in the next phase.
        self.publishers.iter_mut().flatten().for_each(|voice| voice.speak.forget());
        let unanswered = sent.all_events.saturating_sub(heard.answered);
        Ok(Phase { sent, heard, began, seconds, first_number, checked: self.checked(), unanswered })
    }

    /// Puts everybody where they are at first.
    fn put_back(&mut self) -> anyhow::Result<()> {
        let publishers = (0..u32::try_from(self.publishers.len())?).map(Who::Publisher);
        let clients = (0..u32::try_from(self.clients.len())?).map(Who::Client);
        // Who was cut off in an earlier phase is there in this one.
        for who in publishers.chain(clients) {
            let voice = self.voice(who);
            if voice.socket.is_none() && voice.breaking.is_none() {
                self.connect(who, None)?;
            }
        }
        self.await_until(
            |load| load.voices.iter().chain(&load.publishers).flatten().all(|voice| voice.is_ready),
            || (),
        )?;
        for client in 0..u32::try_from(self.clients.len())? {
            self.shared.client(client).forget();
            let home = self.clients[client as usize].home;
            let voice = self.voice(Who::Client(client));
            voice.moves = 0;
            if voice.position == home {
                continue;
            }
            voice.position = home;
            let Some((home, socket)) = home.zip(voice.socket.as_mut()) else { continue };
            // A reference that is no number: it is counted as said of oneself.
            voice.speak.move_home(&home, &mut socket.out);
            self.introductions += 1;
            self.mark(Who::Client(client));
        }
        self.await_until(|load| load.unanswered() == 0, || ())
    }

    fn carry_out(&mut self, step: Step, due: Nanos) -> anyhow::Result<()> {
        let now = self.shared.now();
        self.sent.journal.steps += 1;
        let is_measured = self.shared.is_measured(due);
        if is_measured {
            self.sent.late_us.saturating_record(now.saturating_sub(due) / 1_000);
        }
        match step.act {
            Act::Publish(occurrence) => {
                let number = self.next_number;
                self.next_number += 1;
                self.shared.intend(number, due, occurrence.is_alarm);
                let count = self.publishers.len() as u64;
                // What is said of one object stays in order.
                let publisher = occurrence.key.as_deref().map_or(number, hash) % count;
                let who = Who::Publisher(u32::try_from(publisher)?);
                let Some(voice) = self.voice_to(who) else {
                    self.sent.unsent += 1;
                    return Ok(());
                };
                let socket = voice.socket.as_mut().context("it was there")?;
                voice.speak.publish(number, &occurrence, &mut socket.out);
                self.sent.events += u64::from(is_measured);
                self.sent.all_events += 1;
                self.shared.live.events.fetch_add(1, Relaxed);
                if number.is_multiple_of(self.shared.stride) && self.sent.journal.events.len() < JOURNAL_MAX {
                    self.sent.journal.events.push((number, now));
                }
                self.mark(who);
            }
            Act::Move { client, to, .. } => {
                let who = Who::Client(client);
                let is_checked = self.checked[client as usize];
                let voice = self.voice(who);
                let move_number = voice.moves;
                voice.moves += 1;
                voice.position = Some(to);
                if !voice.is_ready || voice.socket.is_none() {
                    // It says so when it is back.
                    return Ok(());
                }
                let Some(voice) = self.voice_to(who) else {
                    self.sent.unsent += 1;
                    return Ok(());
                };
                let socket = voice.socket.as_mut().context("it was there")?;
                voice.speak.move_to(&to, is_checked.then_some(move_number), &mut socket.out);
                self.shared.client(client).moved.store(due, Relaxed);
                self.sent.moves += u64::from(is_measured);
                self.shared.live.moves.fetch_add(1, Relaxed);
                if is_checked {
                    self.sent.journal.moves.push((client, move_number, now));
                    self.shared.client(client).ask(move_number, due);
                }
                self.mark(who);
            }
            Act::Reconnect { client } => {
                let who = Who::Client(client);
                let voice = self.voice(who);
                if let Some(socket) = voice.socket.take() {
                    voice.breaking = Some((socket, due));
                    voice.is_ready = false;
                    let token = voice.token;
                    self.sent.reconnects += u64::from(is_measured);
                    if self.checked[client as usize] {
                        self.sent.journal.breaks.push((client, now));
                    }
                    self.wish(Wish::LetGo(token))?;
                }
            }
        }
        Ok(())
    }

    /// Somebody who can say something now.
    fn voice_to(&mut self, who: Who) -> Option<&mut Voice> {
        let voice = self.voice(who);
        let held = voice.speak.waiting();
        let is_there =
            voice.socket.as_ref().is_some_and(|socket| socket.waiting() + held < WAITING_BYTES_MAX);
        is_there.then_some(voice)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.wishes = Arc::default();
        let _ = self.waker.wake();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Counts events by the second that they are due in.
fn count_due(steps: &[Step], due_seconds: &mut Vec<u64>) {
    for step in steps.iter().filter(|step| matches!(step.act, Act::Publish(_))) {
        let second = usize::try_from(step.at.as_secs()).unwrap_or(usize::MAX);
        if due_seconds.len() <= second {
            due_seconds.resize(second + 1, 0);
        }
        due_seconds[second] += 1;
    }
}

/// Where numbers of events begin: elsewhere in every run, for what an earlier one left in a broker is not of this one. Below 2^53.
fn first_number() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| (now.as_secs() & 0xFFFF_FFFF) << 20)
}

/// FNV-1a: which of a few publishers says what is said of an object.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Has this thread woken when it asked to be, and not up to 50 us later so that the system can wake several at once. Where
/// that cannot be said it is later, which is measured as being late.
fn precise() {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return };
    if let Some(number) = thread.file_name().and_then(std::ffi::OsStr::to_str) {
        let _ = std::fs::write(format!("/proc/{number}/timerslack_ns"), "1");
    }
}
