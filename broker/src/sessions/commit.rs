//! The ledger of a shard: changes of its steps on their way to the disk, and everything that waits until they are there.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use matcher::violated;
use tokio::sync::oneshot;

use super::{Health, Installed, Sessions, recovery};
use crate::model::clock;
use crate::model::completion::CompletionGuard;
use crate::model::error::ApiError;
use crate::model::event::{Body, Frontier, Live, Published};
use crate::model::record::{BodyId, DroppedLives, LiveRecord, StoredBody};
use crate::model::warning;
use crate::outbox::Outbox;
use crate::store::{Batch, Store, StoreError, StoredFrontier, StoredSession};

/// Where batches go. The one there is is [`Store`]; tests have others, which fail when they are told to.
pub(crate) trait Disk: Send {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;
    fn new_body(&self) -> Arc<StoredBody>;
}

impl Disk for Store {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        Self::commit(self, batch)
    }

    fn new_body(&self) -> Arc<StoredBody> {
        Self::new_body(self)
    }
}

/// The batch of the step at hand, and what waits for it.
///
/// The steps of a shard are committed in their order, each once the one before is on disk. While the disk takes nothing
/// the failed batch stays, and what the clock brings is added to it.
pub(super) struct CommitBuffer {
    disk: Option<Box<dyn Disk>>,
    batch: Batch,
    /// Bytes of the live events that are going to be in the batch.
    live_bytes: usize,
    /// Whether somebody waits for the batch.
    is_due: bool,
    /// Whether the command at hand has put something into it.
    is_touched: bool,
    /// When it is due at the latest, although nobody waits for it.
    due_at: Option<Instant>,
    /// How long that may be put off.
    delay: Duration,
    /// Entries that wait for the disk, in the order in which they arose.
    waiting: Vec<Waiting>,
    /// Clients whose session's record has to be written anew.
    sessions: Vec<u32>,
    /// How far the stream of events was read, where that is not in the batch yet.
    frontier: Option<Frontier>,
    /// Live events that were replaced or have ended since the last commit: their records stay until the batch is on disk. What
    /// is on disk of this shard is of a time when they were live, and after a crash its exits tell them.
    ended: Vec<Arc<Published>>,
    /// Objects that something in the batch is about, whose live events belong into it as well.
    objects: Vec<Arc<str>>,
    /// Live events in the batch. Their records are not to go before it has put them there.
    lives: Vec<Arc<Published>>,
    /// Live events that no shard holds any more. The list is one for all shards: the last holder of an event puts it in, and
    /// the first shard empties it.
    dropped_lives: Arc<DroppedLives>,
    /// Counts steps.
    step: u64,
    /// When a failed commit is tried again.
    retry_at: Option<Instant>,
    /// When the batch was last given the time.
    dated_at: Instant,
    health: Arc<Health>,
}

/// Something to answer or release when the batch is on disk.
pub(super) enum Waiting {
    /// The session of a client has come to an offset, which its connections may have then.
    Release { client: u32, offset: u64, is_alarm: bool },
    /// An answer.
    Answer(Answer),
}

/// The asker of a command, and the answer if all goes well.
pub(crate) enum Answer {
    CompletionGuard(CompletionGuard),
    Changed(oneshot::Sender<Result<(), ApiError>>),
    Done(oneshot::Sender<Result<bool, ApiError>>, bool),
    Installed {
        /// Gets its answer before any delivery that the subscription brings.
        owner: Option<(Arc<Outbox>, Box<str>)>,
        reply: oneshot::Sender<Result<Installed, ApiError>>,
        installed: Box<Installed>,
    },
}

/// How long after a failed commit the next one is tried.
const RETRY: Duration = Duration::from_secs(1);

/// How long the time on disk may be behind while something there ages. A broker that is killed and comes back within as long again
/// finds no jump of the clock.
const STAMP_INTERVAL: Duration = Duration::from_secs(clock::JUMP.as_secs() / 2);

/// Entries that may wait before a step is committed although it has not come to its end: some megabytes.
const WAITING_MAX: usize = 65_536;
/// Bytes of the batch that may wait before it is committed although its step has not come to its end. What is under way when
/// the disk becomes full has to find room in the reserve.
const BATCH_BYTES: usize = 1 << 20;

impl Answer {
    fn give(self, outcome: Result<(), ApiError>) {
        match self {
            Self::CompletionGuard(ticket) => ticket.settle(outcome),
            // Who asked may be gone by now: then nobody needs the reply.
            Self::Changed(reply) => drop(reply.send(outcome)),
            Self::Done(reply, done) => drop(reply.send(outcome.map(|()| done))),
            Self::Installed { owner, reply, installed } => {
                if let (Ok(()), Some((outbox, answer))) = (&outcome, owner) {
                    outbox.push_answer(warning::insert(answer.into_string(), &installed.warnings));
                }
                drop(reply.send(outcome.map(|()| *installed)));
            }
        }
    }
}

impl CommitBuffer {
    pub(super) fn new(
        disk: Option<Box<dyn Disk>>,
        delay: Duration,
        health: Arc<Health>,
        dropped_lives: Arc<DroppedLives>,
    ) -> Self {
        Self {
            disk,
            batch: Batch::default(),
            live_bytes: 0,
            is_due: false,
            is_touched: false,
            due_at: None,
            delay,
            waiting: Vec::new(),
            sessions: Vec::new(),
            frontier: None,
            ended: Vec::new(),
            objects: Vec::new(),
            lives: Vec::new(),
            dropped_lives,
            step: 1,
            retry_at: None,
            dated_at: clock::now(),
            health,
        }
    }

    /// Whether anything outlives the broker.
    pub(super) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether the disk took nothing when it was asked last.
    pub(super) fn is_failing(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Whether the disk is full, so that only removals are taken.
    pub(super) fn is_short(&self) -> bool {
        self.disk.is_some() && self.health.is_short()
    }

    #[cfg(test)]
    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// Whether so much waits that it should not become more.
    pub(super) fn is_full(&self) -> bool {
        let bytes = self.batch.bytes() + self.live_bytes;
        (self.waiting.len() >= WAITING_MAX || bytes >= BATCH_BYTES) && !self.is_failing()
    }

    /// Numbers the steps: each ends with its release.
    pub(super) fn step(&self) -> u64 {
        self.step
    }

    /// The batch, for what somebody waits for; `None` without a disk.
    pub(super) fn record(&mut self) -> Option<&mut Batch> {
        self.disk.as_ref()?;
        (self.is_due, self.is_touched) = (true, true);
        Some(&mut self.batch)
    }

    /// The batch, for what may be written a little later.
    pub(super) fn record_later(&mut self) -> Option<&mut Batch> {
        self.disk.as_ref()?;
        self.put_off();
        Some(&mut self.batch)
    }

    /// The batch, for what has to be on disk before what follows is released.
    pub(super) fn record_soon(&mut self) -> Option<&mut Batch> {
        self.disk.as_ref()?;
        // A step that is over has no end at which it would be written.
        self.put_off();
        self.is_due = true;
        Some(&mut self.batch)
    }

    fn put_off(&mut self) {
        if self.due_at.is_none() {
            self.due_at = Some(clock::now() + self.delay);
        }
    }

    /// Notes that a client's session has changed; once for each commit.
    pub(super) fn session_changed(&mut self, client: u32, is_due: bool) {
        self.sessions.push(client);
        if is_due {
            (self.is_due, self.is_touched) = (true, true);
        } else {
            self.put_off();
        }
    }

    /// The record of a body, which is in the batch unless it is on disk. It is dated by a time that is not in doubt: a start
    /// holds the clock against that, and against what batches are dated by.
    pub(super) fn body(&mut self, body: &Arc<Body>, received_ms: u64) -> Option<BodyId> {
        let disk = self.disk.as_ref()?;
        let stored = body.stored.get_or_init(|| disk.new_body());
        self.batch.put_body(stored, &body.stored_text(), received_ms);
        Some(stored.id())
    }

    /// Sees to it that the record of a live event goes when the last shard lets go of the event.
    pub(super) fn track_record(&self, live: &Live) {
        live.record.get_or_init(|| {
            let (object, dropped) = (Arc::clone(&live.object), Arc::clone(&self.dropped_lives));
            LiveRecord::new(object, live.sequence, dropped)
        });
    }

    /// Notes how far the shard has read the stream of events.
    pub(super) fn came_to(&mut self, frontier: Frontier) {
        if self.disk.is_some() {
            self.frontier = Some(frontier);
            self.put_off();
        }
    }

    /// Notes that the batch says something of an object. Its live event is written along: without it the one before it
    /// would be live again after a crash, and come again. The shard that writes all live events may not have come to it yet.
    pub(super) fn concern(&mut self, object: &Arc<str>) {
        if self.disk.is_some() && self.objects.last() != Some(object) {
            self.objects.push(Arc::clone(object));
        }
    }

    /// Notes that a live event is going to be in the batch.
    pub(super) fn expect(&mut self, bytes: usize) {
        self.live_bytes += bytes;
    }

    /// Notes that the batch has a live event.
    pub(super) fn wrote_live(&mut self, published: &Arc<Published>) {
        self.lives.push(Arc::clone(published));
    }

    /// Lets something wait for the batch.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.is_due = true;
        self.waiting.push(waiting);
    }

    /// A command begins.
    pub(super) fn begin(&mut self) {
        self.is_touched = false;
    }

    /// Answers the command at hand: once what it changed is on disk, at once where nothing of it has to be.
    fn answer(&mut self, answer: Answer) {
        if !self.is_touched {
            answer.give(Ok(()));
        } else if self.is_failing() {
            answer.give(Err(ApiError::Storage));
        } else {
            self.wait(Waiting::Answer(answer));
        }
    }

    /// When there is something to commit without anybody's asking.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.retry_at.or(self.due_at)
    }

    /// Puts into the batch which live events are over.
    fn take_dropped_lives(&mut self) {
        let dropped = std::mem::take(&mut *self.dropped_lives.lock().unwrap_or_else(PoisonError::into_inner));
        for (object, sequence) in dropped {
            self.batch.remove_live(&object, sequence);
            self.put_off();
        }
    }

    /// Whether all that has to be on disk is.
    fn has_nothing(&self) -> bool {
        self.batch.is_empty() && self.sessions.is_empty() && self.frontier.is_none()
    }

    fn is_ripe(&self, now: Instant) -> bool {
        match self.retry_at {
            Some(at) => at <= now,
            None => self.is_due || self.due_at.is_some_and(|at| at <= now),
        }
    }
}

impl Sessions {
    /// Ends a step: what of it has to survive is written, and then told. Blocks while it is written.
    pub(crate) fn commit_and_release(&mut self) {
        if !self.ledger.has_disk() {
            return;
        }
        self.record_objects();
        if self.writes_live {
            self.ledger.take_dropped_lives();
        }
        let now = clock::now();
        if self.next_stamp().is_some_and(|at| at <= now) {
            self.stamp();
        }
        if self.ledger.is_short() {
            self.log.forget_recent();
        }
        if self.ledger.is_ripe(now) {
            self.commit();
        } else if self.ledger.has_nothing() {
            self.ledger.ended.clear();
        }
    }

    /// Commits what is left when the broker ends: nothing is put off any more.
    pub(crate) fn commit_rest(&mut self) {
        if self.ledger.has_disk() {
            self.record_objects();
            if self.writes_live {
                self.stamp();
            }
            self.commit();
        }
    }

    /// When the time is to be put on disk although nothing else is. A disk on which nothing ages is left alone.
    pub(super) fn next_stamp(&self) -> Option<Instant> {
        let ages = self.tracker.live_count() > 0 || self.kept_total.matches() > 0;
        (self.writes_live && ages && !self.ledger.is_failing()).then(|| self.ledger.dated_at + STAMP_INTERVAL)
    }

    fn stamp(&mut self) {
        self.date_batch();
        self.ledger.is_due = true;
    }

    /// Says in the batch what the time is by what is believed: the next start holds the clock against it.
    fn date_batch(&mut self) {
        self.ledger.batch.date(self.timeline.believed_ms(clock::unix_ms()));
        self.ledger.dated_at = clock::now();
    }

    fn commit(&mut self) {
        self.record_sessions();
        if let Some(frontier) = self.ledger.frontier.take() {
            let shards = u32::try_from(self.shards_count).unwrap_or(u32::MAX);
            let shard = u32::try_from(self.shard).unwrap_or(u32::MAX);
            self.ledger.batch.put_frontier(shard, &StoredFrontier { frontier, shards });
        }
        if !self.ledger.batch.is_empty() {
            self.date_batch();
        }
        let ledger = &mut self.ledger;
        let Some(disk) = &ledger.disk else { return };
        if let Err(error) = if ledger.batch.is_empty() { Ok(()) } else { disk.commit(&ledger.batch) } {
            self.metrics.store_failures.add(1);
            *ledger.health.why() = error.to_string();
            if ledger.retry_at.is_none() {
                ledger.health.failing.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, "not on disk; nothing is changed until it is, and each second it is tried again");
            }
            ledger.retry_at = Some(clock::now() + RETRY);
            // Waiting callers get the error. The changes stay, and their deliveries follow when the batch is on disk.
            let answers = ledger.waiting.extract_if(.., |waiting| matches!(waiting, Waiting::Answer(_)));
            for waiting in answers {
                if let Waiting::Answer(answer) = waiting {
                    answer.give(Err(ApiError::Storage));
                }
            }
            return;
        }
        if ledger.retry_at.take().is_some() {
            ledger.health.failing.fetch_sub(1, Ordering::Relaxed);
            tracing::info!("the disk takes what it is given again");
        }
        for published in ledger.lives.drain(..) {
            if let Some(live) = &published.live {
                live.is_written.store(true, Ordering::Release);
            }
        }
        ledger.batch.clear();
        ledger.ended.clear();
        (ledger.is_due, ledger.due_at, ledger.live_bytes) = (false, None, 0);
        ledger.step += 1;
        let mut waiting = std::mem::take(&mut ledger.waiting);
        for one in waiting.drain(..) {
            match one {
                Waiting::Release { client, offset, is_alarm } => self.release(client, offset, is_alarm),
                Waiting::Answer(answer) => answer.give(Ok(())),
            }
        }
        // A burst leaves a large one behind.
        waiting.shrink_to(1_024);
        self.ledger.waiting = waiting;
        self.wake_readers();
    }

    /// Puts the sessions that have changed into the batch, each once, with what is kept no more.
    fn record_sessions(&mut self) {
        let mut changed = std::mem::take(&mut self.ledger.sessions);
        for id in changed.drain(..) {
            let Some(client) = self.clients.get_mut(id) else { continue };
            let Some(durable) = client.durable.as_mut().filter(|durable| durable.is_changed) else {
                continue;
            };
            durable.is_changed = false;
            let Some(log) = &client.log else {
                violated!("a durable session has a log");
                continue;
            };
            let log = log.lock();
            let batch = &mut self.ledger.batch;
            let floor = log.floor(client.offset);
            if floor > durable.stored_floor {
                batch.forget_kept(&client.name, durable.stored_floor + 1..=floor);
                durable.stored_floor = floor;
            }
            for gone in durable.gone.drain(..).filter(|gone| *gone > floor) {
                batch.forget_kept(&client.name, gone..=gone);
            }
            let session = StoredSession {
                epoch: Arc::clone(&client.epoch),
                offset: client.offset,
                acknowledged: log.acknowledged(),
                lost: log.last_loss(),
            };
            batch.put_session(&client.name, &session);
        }
        self.ledger.sessions = changed;
    }

    /// A command begins, or a run of events.
    pub(crate) fn begin(&mut self) {
        self.ledger.begin();
    }

    /// Answers a command that was carried out: once what it changed is on disk, at once where it changed nothing.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.record_objects();
        self.ledger.answer(answer);
    }

    /// Whether anything outlives the broker.
    pub(crate) fn has_disk(&self) -> bool {
        self.ledger.has_disk()
    }

    /// Whether changes of one client are refused, for what was changed before is not on disk yet. What concerns all shards
    /// is not: one of them alone would come to differ from the others.
    pub(crate) fn refuses_changes(&self) -> bool {
        self.ledger.is_failing()
    }

    /// Whether what adds to what is on disk is refused.
    pub(crate) fn refuses_more(&self) -> bool {
        self.ledger.is_short()
    }

    /// Ends a step early where so much waits for its end that it should not become more; says whether it did.
    pub(crate) fn commit_when_full(&mut self) -> bool {
        let is_full = self.ledger.is_full();
        if is_full {
            self.commit_and_release();
        }
        is_full
    }

    /// Puts into the batch how the standings of durable subscriptions have changed, and the live events of all objects that it
    /// says something of.
    fn record_objects(&mut self) {
        if !self.ledger.has_disk() {
            return;
        }
        let (subscriptions, clients, ledger) = (&self.subscriptions, &self.clients, &mut self.ledger);
        let (now, unix_ms) = (self.now, self.unix_ms);
        self.tracker.drain_released(|ended| ledger.ended.push(ended));
        self.tracker.drain_standings(|number, object, standing| {
            let Some(held) = subscriptions.get(number.0) else { return };
            let Some(client) = clients.get(held.client) else {
                return violated!("a subscription's client is there");
            };
            let Some(batch) = ledger.record() else { return };
            match standing {
                Some(standing) => {
                    let stored = recovery::stored_standing(standing, now, unix_ms);
                    batch.put_standing(&client.name, &held.id, object, &stored);
                }
                None => batch.remove_standing(&client.name, &held.id, object),
            }
            ledger.concern(object);
        });
        let mut objects = std::mem::take(&mut self.ledger.objects);
        objects.sort_unstable();
        objects.dedup();
        for object in objects.drain(..) {
            if let Some(published) = self.tracker.live_of(&object).map(Arc::clone) {
                self.record_live(&published);
            }
        }
        self.ledger.objects = objects;
    }

    /// Takes back what waits for a client that is gone: its number may be another's soon.
    pub(super) fn drop_waiting(&mut self, id: u32) {
        self.ledger.waiting.retain(|waiting| match waiting {
            Waiting::Release { client, .. } => *client != id,
            Waiting::Answer(_) => true,
        });
    }
}
