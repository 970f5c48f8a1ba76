//! The active broker: what its store commits goes to the ledger, until another broker is the active one.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cluster::jetstream::{JetStream, Member};
use cluster::ledger::{Answer, End, PushError, Request, Timing, Writer};
use cluster::log::Log as _;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Cluster, Seen};
use crate::model::lease::Lease;
use crate::store::{Ledger, Replica, SnapshotParts, StoreError};

/// The one that appends.
pub(crate) struct Owner {
    cluster: Cluster,
    writer: Writer,
    me: Member,
    dir: PathBuf,
    begun: Instant,
    call_tasks: JoinSet<Answer>,
    confirm_tasks: JoinSet<Confirmed>,
    commands: UnboundedReceiver<Command>,
    rows: Option<Rows>,
    /// Rows that wait, by the number of their last part.
    waiting: VecDeque<(u64, SyncSender<Outcome>)>,
    /// A look that found records which are not known to be this broker's own yet: when it began, and the last of them.
    unsure: Option<(Instant, u64)>,
    /// The sequence of the last record that was noted.
    noted: u64,
    is_writing_snapshot: Arc<AtomicBool>,
    ownership: Arc<Ownership>,
}

/// Whether this broker is the active one.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// In force while no other broker can be the active one.
    pub(crate) lease: Arc<Lease>,
    /// Cancelled when it is not the active one any more.
    pub(crate) lost: CancellationToken,
    why: OnceLock<String>,
    dir: PathBuf,
    /// The members of the cluster.
    pub(crate) seen: Arc<Seen>,
}

type Outcome = Result<(), String>;

enum Command {
    Append(Vec<Vec<u8>>, SyncSender<Outcome>),
    Snapshot(Box<SnapshotParts>),
}

/// What was found at a look at the log, after a beat that a majority of the servers took.
type Confirmed = Option<(Instant, u64)>;

/// How a store reaches the ledger. Requests that wait are bounded by its one writer, which has one at a time.
#[derive(Debug)]
struct Rows {
    commands: UnboundedSender<Command>,
    /// The answer to a row that took longer than a caller waits.
    late: Option<Receiver<Outcome>>,
    is_writing_snapshot: Arc<AtomicBool>,
}

/// How often it is confirmed that this broker is the active one.
const CONFIRM: Duration = Duration::from_secs(1);
/// How long a caller waits for a row. An election in NATS takes longer: then it asks again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause before it is looked whether something is due.
const TICK: Duration = Duration::from_millis(10);
/// A broker that has not been confirmed for as long ends, for its clients are better off elsewhere: longer than an election in NATS.
const LOST_AFTER: Duration = Duration::from_secs(15);

impl Ownership {
    /// Why it was lost.
    pub(crate) fn why(&self) -> &str {
        self.why.get().map_or("it is the active broker", |why| why)
    }

    /// What was acknowledged is gone, or may be. Whenever this member takes over the next time, its sessions begin new epochs.
    pub(crate) fn lose_with_all_epochs(&self, why: String) {
        Replica::note_went_back(&self.dir);
        self.lose(why);
    }

    fn lose(&self, why: String) {
        tracing::error!(why, "this is not the active broker of the cluster any more");
        // The first reason counts.
        let _ = self.why.set(why);
        self.lost.cancel();
    }
}

impl Owner {
    pub(super) fn new(cluster: Cluster, writer: Writer, me: Member, dir: &Path) -> Self {
        let (commands, requests) = unbounded_channel();
        let is_writing_snapshot = Arc::<AtomicBool>::default();
        let rows = Rows { commands, late: None, is_writing_snapshot: Arc::clone(&is_writing_snapshot) };
        let lease = Arc::new(Lease::new(Timing::default().ttl));
        let seen = Arc::new(Seen::new(
            Arc::clone(&cluster.members),
            me.clone(),
            cluster.name.clone(),
            cluster.partitions,
        ));
        let (lost, why, dir) = (CancellationToken::new(), OnceLock::new(), dir.to_owned());
        let ownership = Ownership { lease, lost, why, dir: dir.clone(), seen };
        Self {
            cluster,
            writer,
            me,
            dir,
            begun: Instant::now(),
            call_tasks: JoinSet::new(),
            confirm_tasks: JoinSet::new(),
            commands: requests,
            rows: Some(rows),
            waiting: VecDeque::new(),
            unsure: None,
            noted: 0,
            is_writing_snapshot,
            ownership: Arc::new(ownership),
        }
    }

    /// Where a store puts its rows. Once.
    pub(crate) fn rows(&mut self) -> Option<Box<dyn Ledger>> {
        self.rows.take().map(|rows| Box::new(rows) as _)
    }

    /// The stream of events, where several brokers are active.
    pub(crate) fn events(&self) -> Option<Arc<JetStream>> {
        self.cluster.events.clone()
    }

    pub(crate) fn ownership(&self) -> Arc<Ownership> {
        Arc::clone(&self.ownership)
    }

    /// Appends until the store is closed, the broker has ended, or another broker is the active one.
    pub(crate) async fn run(mut self, ended: CancellationToken) {
        let mut confirm = tokio::time::interval(CONFIRM);
        confirm.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_open = true;
        while !self.is_over() {
            while let Some(request) = self.writer.poll(self.begun.elapsed()) {
                self.make(request);
            }
            self.settle();
            tokio::select! {
                () = ended.cancelled() => return self.leave().await,
                command = self.commands.recv(), if is_open => match command {
                    Some(command) => self.take(command),
                    // The store is closed, and all that it committed is there.
                    None => is_open = false,
                },
                Some(answer) = self.call_tasks.join_next() => {
                    if let Ok(answer) = answer {
                        self.answered(answer);
                    }
                }
                Some(confirmed) = self.confirm_tasks.join_next() => {
                    if let Ok(Some((at, last))) = confirmed {
                        self.confirmed(at, last);
                    }
                }
                _ = confirm.tick() => self.confirm(),
                () = tokio::time::sleep(TICK), if !self.writer.is_idle() => {}
            }
        }
        self.settle();
    }

    /// Says that this broker is about to end, so that a standby takes over at once.
    async fn leave(mut self) {
        // No beat may come behind it.
        self.confirm_tasks.shutdown().await;
        self.me.is_leaving = true;
        if let Err(error) = self.cluster.members.beat(&self.me).await {
            tracing::warn!(%error, "the cluster was not told that this broker ends: a standby waits before it takes over");
        }
    }

    /// Whether another is the active broker, or may be.
    fn is_over(&mut self) -> bool {
        let lost = match self.writer.end() {
            Some(End::Fenced { sequence }) => {
                Some(format!("another broker has taken over, at record {sequence} of the ledger"))
            }
            Some(end) => Some(end.to_string()),
            None => {
                let age = self.ownership.lease.age();
                (age > LOST_AFTER).then(|| format!("NATS has not been heard of for {} s", age.as_secs()))
            }
        };
        let is_over = lost.is_some();
        if let Some(why) = lost {
            if matches!(self.writer.end(), Some(End::WentBack { .. })) {
                self.ownership.lose_with_all_epochs(why);
            } else {
                self.note();
                self.ownership.lose(why);
            }
        }
        is_over
    }

    fn make(&mut self, request: Request) {
        let log = Arc::clone(&self.cluster.log);
        self.call_tasks.spawn(async move { request.make(&*log).await });
    }

    fn answered(&mut self, answer: Answer) {
        self.writer.answer(self.begun.elapsed(), answer);
        // An append alone renews nothing: a standby counts the silence since the last beat.
        if let Some((at, last)) = self.unsure
            && self.writer.last().sequence >= last
        {
            self.unsure = None;
            self.ownership.lease.confirm(at);
        }
        if let Some(fault) = self.writer.take_snapshot_fault() {
            tracing::error!(fault, "a snapshot for the cluster's ledger was given up");
        }
        self.is_writing_snapshot.store(self.writer.is_writing_snapshot(), Ordering::Release);
    }

    fn note(&mut self) {
        let last = self.writer.last();
        if last.sequence > self.noted {
            self.noted = last.sequence;
            Replica::note_known(&self.dir, last);
        }
    }

    /// Says that this broker is there, and looks at the log's end.
    fn confirm(&mut self) {
        self.note();
        if !self.confirm_tasks.is_empty() {
            return;
        }
        let (log, members) = (Arc::clone(&self.cluster.log), Arc::clone(&self.cluster.members));
        let (me, at) = (self.me.clone(), Instant::now());
        self.confirm_tasks.spawn(async move {
            members.beat(&me).await.ok()?;
            log.bounds().await.ok().map(|bounds| (at, bounds.last))
        });
    }

    fn confirmed(&mut self, at: Instant, last: u64) {
        let known = self.writer.last().sequence;
        if last <= known {
            self.ownership.lease.confirm(at);
        } else if self.writer.is_idle() {
            // Nothing of its own is under way: it is another's.
            self.ownership
                .lose(format!("another broker has taken over, at record {} of the ledger", known + 1));
        } else {
            self.unsure.get_or_insert((at, last));
        }
    }

    fn take(&mut self, command: Command) {
        let now = self.begun.elapsed();
        match command {
            Command::Append(parts, done) => {
                let pushed = parts.into_iter().try_fold(0, |_, part| self.writer.push(now, part));
                match pushed {
                    Ok(number) => self.waiting.push_back((number, done)),
                    Err(error) => drop(done.send(Err(told(&error)))),
                }
            }
            Command::Snapshot(parts) => {
                let row = self.writer.committed();
                if let Err(error) = self.writer.snapshot(row, parts) {
                    tracing::error!(%error, "the cluster's ledger takes no snapshot");
                }
                self.is_writing_snapshot.store(self.writer.is_writing_snapshot(), Ordering::Release);
            }
        }
    }

    /// Answers those whose rows are committed, or never will be.
    fn settle(&mut self) {
        let end = self.writer.end().map(ToString::to_string);
        while let Some((number, _)) = self.waiting.front() {
            let is_committed = *number <= self.writer.committed();
            if !is_committed && end.is_none() {
                break;
            }
            let Some((_, done)) = self.waiting.pop_front() else { break };
            // The caller may have given up.
            let _ = done.send(if is_committed { Ok(()) } else { Err(end.clone().unwrap_or_default()) });
        }
    }
}

fn told(error: &PushError) -> String {
    match error {
        PushError::Busy { .. } => format!("NATS has not answered for a while ({error})"),
        PushError::Ended(_) | PushError::TooLarge { .. } => error.to_string(),
    }
}

impl Rows {
    fn wait(&mut self, outcome: Receiver<Outcome>) -> Result<(), StoreError> {
        let why = match outcome.recv_timeout(PATIENCE) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(RecvTimeoutError::Timeout) => {
                self.late = Some(outcome);
                "NATS has not answered yet".to_owned()
            }
            Err(RecvTimeoutError::Disconnected) => LOST.to_owned(),
        };
        Err(StoreError::Ledger { why })
    }
}

const LOST: &str = "this is not the active broker any more";

impl Ledger for Rows {
    fn append(&mut self, parts: Vec<Vec<u8>>) -> Result<(), StoreError> {
        // Whether what was late is there or not: what is appended now takes its place.
        if let Some(late) = self.late.take() {
            match self.wait(late) {
                Err(error) if self.late.is_some() => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        let (done, outcome) = sync_channel(1);
        let lost = |_| StoreError::Ledger { why: LOST.to_owned() };
        self.commands.send(Command::Append(parts, done)).map_err(lost)?;
        self.wait(outcome)
    }

    fn takes_snapshot(&self) -> bool {
        self.late.is_none() && !self.is_writing_snapshot.load(Ordering::Acquire)
    }

    fn snapshot(&mut self, parts: SnapshotParts) {
        self.is_writing_snapshot.store(true, Ordering::Release);
        // Where the broker is not the active one any more, nobody needs it.
        let _ = self.commands.send(Command::Snapshot(Box::new(parts)));
    }
}
