//! The thread that sends: who it sends for, and the phases that it carries out.

mod phase;
mod returns;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
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
use super::shared::{Nanos, Shared};
use super::socket::Socket;
use crate::endpoint::Endpoint;
use crate::interrupt;
use crate::plan::Client;
use crate::wire::{Speak, Wire};
use returns::{Absence, Returns};

/// Conversations that begin at once; more would only wait in the broker's accept queue.
const OPENING_MAX: u64 = 256;

/// Answers to what clients say of themselves that may be under way.
const ANSWERS_MAX: u64 = 4_096;

/// How long the broker may take to say something while conversations begin.
const OPENING_WAIT: Duration = Duration::from_secs(60);

/// How a load is driven.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections that publish.
    pub publishers: u32,
    /// How many clients are checked: all that comes to them is compared with the oracle.
    pub checked_clients: u32,
    /// Stride of the events that are checked.
    pub checked_stride: u64,
    /// Before the names of those who publish and of the objects of events.
    pub prefix: String,
    /// How long to wait for what is still to come at the end of a phase.
    pub patience: Duration,
    /// Within which deliveries have to come, where that is known.
    pub delay: Option<Duration>,
}

/// How far the opening is, for those who look on.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Clients that are in.
    pub done: u64,
    /// Clients that are to come in.
    pub of: u64,
}

/// A broker with connections to it.
pub struct Load {
    wire: Arc<dyn Wire>,
    endpoint: Endpoint,
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
    /// Clients that a broker that stopped wants back.
    returns: Returns,
    next_number: u64,
    checked: Vec<bool>,
    sent: Sent,
    patience: Duration,
    prefix: String,
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
    /// Present from the end that a broker announced until the conversation has begun again.
    absence: Option<Absence>,
    /// Requests of several events under way, as the numbers of their events.
    under_way: Vec<u64>,
}

/// What was sent in a phase.
#[derive(Debug)]
pub struct Sent {
    /// Events that were due after the warm-up; so are moves and reconnects.
    pub events: u64,
    /// Events that were due, warm-up included.
    pub all_events: u64,
    /// Moves that were due.
    pub moves_due: u64,
    /// Moves that were sent.
    pub moves: u64,
    /// Connections that were broken on purpose.
    pub reconnects: u64,
    /// Bytes.
    pub bytes: u64,
    /// Steps that were not sent, because what was said before had not been read.
    pub unread: u64,
    /// Steps that were not sent, because the connection had broken.
    pub cut_off: u64,
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
            moves_due: 0,
            moves: 0,
            reconnects: 0,
            bytes: 0,
            unread: 0,
            cut_off: 0,
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
            absence: None,
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
        endpoint: Endpoint,
        clients: Vec<Client>,
        settings: &Settings,
        mut watch: impl FnMut(Opening),
    ) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, BELL)?;
        let shared = Arc::new(Shared::new(clients.len(), settings.checked_stride, settings.delay)?);
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
            endpoint,
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
            returns: Returns::default(),
            next_number: first_number(),
            checked,
            sent: Sent::new()?,
            patience: settings.patience,
            prefix: settings.prefix.clone(),
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

    /// Clients whose deliveries are compared with the oracle.
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
            interrupt::check()?;
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
                bail!("the broker at {}: {error}", self.endpoint.url());
            }
            ensure!(
                quiet_since.elapsed() < OPENING_WAIT,
                "the broker at {} has said nothing for {OPENING_WAIT:?}",
                self.endpoint.url(),
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

    /// Opens the connection of a client that has none. One that comes back does so since a time, and went on up to an offset.
    fn connect(&mut self, who: Who, back: Option<(Nanos, u64)>) -> anyhow::Result<()> {
        let token = Token(self.next_token);
        self.next_token += 1;
        let mut socket = Socket::connect(&self.endpoint, token.0 as u64)?;
        let (client, (speak, hear)) = match who {
            Who::Client(client) => {
                let client = &self.clients[client as usize];
                (Some(client), self.wire.subscriber(client))
            }
            Who::Publisher(publisher) => {
                (None, self.wire.publisher(&format!("{}publisher-{publisher}", self.prefix)))
            }
        };
        let is_checked = matches!(who, Who::Client(client) if self.checked[client as usize]);
        let mut voice = Voice::new(speak, client);
        if let Some(before) = self.slot(who).take() {
            (voice.position, voice.moves, voice.epoch) = (before.position, before.moves, before.epoch);
            voice.absence = before.absence;
        }
        let resume = voice.epoch.as_ref().filter(|_| voice.is_durable).zip(back);
        let resume = resume.map(|(epoch, (_, offset))| format!("{epoch}:{offset}"));
        voice.speak.open(resume.as_deref(), &mut socket.out);
        let line = Arc::clone(&socket.line);
        let ear = Ear {
            line: Arc::clone(&line),
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
            retry_in: None,
        };
        voice.token = token;
        voice.socket = Some(socket);
        *self.slot(who) = Some(voice);
        self.who.insert(token, who);
        // First, so that the reader knows of it before anything comes.
        self.wish(Wish::Read(token, Box::new(ear)))?;
        self.registry.register(&mut SourceFd(&line.fd()), token, Interest::READABLE | Interest::WRITABLE)?;
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
        self.return_due();
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
                Ok((bytes, is_all)) => {
                    if !is_all {
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
                voice.absence = None;
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
            Word::Ended { token, ended, offset, answers } => {
                ensure!(token != BELL, "{}", ended.why);
                self.introductions -= answers;
                let Some(who) = self.who.remove(&token) else { return Ok(()) };
                let voice = self.voice(who);
                voice.socket = None;
                // One that was to break did so by itself.
                match voice.breaking.take() {
                    Some((_, since)) => self.come_back(who, since, offset),
                    None => self.stay_away(who, &ended, offset),
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

/// Where numbers of events begin: elsewhere in every run, for what another one left in a broker, or says to it now, is not of this one. Below 2^53, with
/// room for 2^32.
fn first_number() -> u64 {
    rand::random::<u64>() >> 44 << 32
}
