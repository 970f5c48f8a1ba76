//! A phase: steps are carried out when they are due.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::{Load, Phase, Sent, Voice};
use crate::drive::Who;
use crate::drive::heard::Heard;
use crate::drive::reader::Wish;
use crate::drive::shared::{Live, Nanos, Watch, nanos};
use crate::interrupt;
use crate::plan::{Act, Step, Steps};
use crate::scheduling::{give_way, wake_precisely};

/// Steps that are carried out before what they say is written and the broker's words are heard, where so many are due: a load that is
/// behind says several things in a write, as a broker that is behind hears them.
const BURST: u64 = 8_192;

/// Bytes that one connection may have waiting because the broker does not read; what comes then is not sent, and counted.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Events that are noted for the check, which looks at fewer.
const JOURNAL_MAX: usize = 4_000_000;

/// From the decision to begin to the beginning.
const LEAD: Duration = Duration::from_millis(50);

/// How long nothing more may come before a phase is over.
const QUIET: Duration = Duration::from_millis(600);

/// Steps that wait ready-made, in chunks: making them must not hold up sending them.
const CHUNK: usize = 512;
const CHUNKS: usize = 128;

impl Load {
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
        // As do the threads that it starts.
        let _gives_way = give_way();
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
        wake_precisely();
        // The first steps are there when it begins.
        let mut waiting = steps.recv().unwrap_or_default().into_iter();
        let began = self.shared.now() + nanos(LEAD);
        let first_number = self.next_number;
        self.sent = Sent::new()?;
        *self.shared.heard() = Heard::new()?;
        self.shared.measured_from.store(began + nanos(warmup), Relaxed);
        begun(Instant::now() + LEAD, Watch::new(&self.shared))?;
        let mut next = waiting.next();
        while let Some(step) = next.take().filter(|_| !interrupt::is_asked() && !self.is_alone()) {
            let due = began + nanos(step.at);
            let now = self.shared.now();
            if due > now {
                self.flush()?;
                // What could not be written is tried again soon.
                let wait = if self.dirty.is_empty() { due - now } else { (due - now).min(500_000) };
                let wait = self.returns.next().map_or(wait, |at| wait.min(at.saturating_sub(now)));
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
        if self.is_alone() {
            self.note("every connection has ended: the rest was not sent");
        }
        let is_cut_short = interrupt::is_asked() || self.is_alone();
        // Nobody takes what is made ready: its thread ends.
        drop(steps);
        maker.join().map_err(|_| anyhow::anyhow!("the plan's thread panicked"))?;
        if is_cut_short {
            // What was made ready is not due any more.
            self.shared.due_seconds().clear();
        }
        self.settle()?;
        self.end(began, seconds, first_number)
    }

    /// Whether nobody has a connection any more, nor will have one.
    fn is_alone(&self) -> bool {
        self.who.is_empty() && self.returns.next().is_none()
    }

    fn hear_all(&mut self) -> anyhow::Result<()> {
        while let Ok(word) = self.words.try_recv() {
            self.hear(word)?;
        }
        Ok(())
    }

    /// Waits until nothing more comes.
    fn settle(&mut self) -> anyhow::Result<()> {
        // Of what came, that which is this load's: others may go on.
        let seen = |load: &Self| {
            let Live { deliveries, lost, introduced, .. } = &*load.shared.live;
            let counts = [deliveries, lost, introduced].map(|count| count.load(Relaxed));
            (load.shared.heard().answered, counts)
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
                now.0 >= self.sent.all_events && self.unanswered() == 0 && self.dirty.is_empty();
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
            if voice.socket.is_none() && voice.breaking.is_none() && voice.absence.is_none() {
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
            Act::Publish(mut occurrence) => {
                if let Some(key) = &mut occurrence.key {
                    key.insert_str(0, &self.prefix);
                }
                let number = self.next_number;
                self.next_number += 1;
                self.shared.intend(number, due, occurrence.is_alarm);
                let count = self.publishers.len() as u64;
                // What is said of one object stays in order.
                let publisher = occurrence.key.as_deref().map_or(number, hash) % count;
                let who = Who::Publisher(u32::try_from(publisher)?);
                let Some(voice) = self.voice_to(who) else { return Ok(()) };
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
                    // It says so when it is back, if it is to come back.
                    let is_cut_off =
                        voice.socket.is_none() && voice.breaking.is_none() && voice.absence.is_none();
                    self.sent.cut_off += u64::from(is_cut_off);
                    self.sent.moves_due += u64::from(is_cut_off && is_measured);
                    return Ok(());
                }
                self.sent.moves_due += u64::from(is_measured);
                let Some(voice) = self.voice_to(who) else { return Ok(()) };
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

    /// Somebody who can say something now; what cannot be said is counted.
    fn voice_to(&mut self, who: Who) -> Option<&mut Voice> {
        let voice = self.voice(who);
        let held = voice.speak.waiting();
        match &voice.socket {
            None => self.sent.cut_off += 1,
            Some(socket) if socket.waiting() + held >= WAITING_BYTES_MAX => self.sent.unread += 1,
            Some(_) => return Some(self.voice(who)),
        }
        None
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

/// FNV-1a: which of a few publishers says what is said of an object.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
