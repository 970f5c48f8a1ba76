//! The task of one situation: it reads the situation's session, and publishes what is found.
//!
//! What a situation has to know after a restart is in its session: it acknowledges a delivery only when it needs neither that one
//! nor any before it, or when what it knows was kept after it. The deliveries that come again build its state. What it finds in them
//! was published before, up to a number that the shards write in the same commit as the findings' own deliveries, and is left out.
//! What bounds decided of deliveries is on disk before what follows from it is published.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wire::ExplainedObject;

use super::gate::Asks;
use super::judging;
use super::publishing::{ENDS, FINDINGS_BITS, Window};
use super::questions::Question;
use super::share::Holding;
use super::turn::{Evaluated, Names, Turn};
use super::{Logic, Situation, Stage};
use crate::config;
use crate::model::delivery::Entry;
use crate::model::error::ApiError;
use crate::outbox::{Bounds, Outbox};
use crate::sessions::{Resume, State};
use crate::shard::Command;
use crate::store::{Decision, StoredDecisions, StoredState};

/// Bytes of deliveries that are evaluated at once, and after which others have a turn.
const BATCH_BYTES: usize = 262_144;

/// How often the memory that a situation takes is looked at, at most; and no more than a thousandth of the time goes into that, since
/// held events wait meanwhile.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// How long to wait before something that the broker refused is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(100);

/// How long to wait at most before all that is live is brought once more, where that was lost again soon before.
const RENEW_MAX: Duration = Duration::from_secs(60);

/// Questions that wait for an answer, at most; further ones wait before.
const QUESTIONS: usize = 16;

/// Inputs after which what is needed no more is acknowledged.
const ACKNOWLEDGE_EVERY: u64 = 1_024;

/// What another run of the broker left of a situation.
#[derive(Default)]
pub(super) struct Past {
    /// The number of the last finding that was published.
    pub(super) told: u64,
    /// The number of the last finding that some shard has dealt out.
    pub(super) told_by_any: u64,
    pub(super) state: Option<StoredState>,
    /// What it did since.
    pub(super) decisions: StoredDecisions,
}

/// The task of a situation.
pub(super) struct Runner {
    ended: CancellationToken,
    task: JoinHandle<()>,
    questions: mpsc::Sender<Question>,
}

impl Runner {
    pub(super) fn start(
        stage: &Arc<Stage>,
        situation: &Arc<Situation>,
        past: Past,
        asks: Option<Asks>,
    ) -> Self {
        let ended = CancellationToken::new();
        let (questions, asked) = mpsc::channel(QUESTIONS);
        let work = Work {
            stage: Arc::clone(stage),
            situation: Arc::clone(situation),
            holding: stage.shares.begin(&situation.key.tenant),
            measure_at: Instant::now(),
            names: Names::of(situation),
            told: past.told,
            replayed_up_to: past.told_by_any >> FINDINGS_BITS,
            state: past.state,
            decisions: past.decisions,
            acknowledged: 0,
            taken: 0,
            unkept_bytes: 0,
            renewed: None,
            acking: None,
            findings: Window::default(),
            asks,
            questions: asked,
            verdicts: 0,
            is_light: false,
        };
        let token = ended.clone();
        let run = async move {
            token.run_until_cancelled_owned(work.run()).await;
        };
        let task = stage.host.tasks.spawn_on(run, &stage.host.runtime);
        Self { ended, task, questions }
    }

    /// A way to ask why a live object is in groups or in none, once this is let go.
    pub(super) fn why(
        &self,
        object: String,
    ) -> impl Future<Output = Result<Option<ExplainedObject>, ApiError>> + use<> {
        let (questions, (reply, answer)) = (self.questions.clone(), oneshot::channel());
        async move {
            questions.send(Question { object, reply }).await.map_err(|_| ApiError::Stopping)?;
            answer.await.map_err(|_| ApiError::Stopping)
        }
    }

    /// Ends it, and waits until it has.
    pub(super) async fn end(self) {
        self.ended.cancel();
        // One that panicked has said so itself.
        let _ = self.task.await;
    }
}

pub(super) struct Work {
    pub(super) stage: Arc<Stage>,
    pub(super) situation: Arc<Situation>,
    /// What it takes of its tenant's share.
    pub(super) holding: Holding,
    /// When its memory is to be looked at.
    measure_at: Instant,
    names: Names,
    /// The number of the last finding that was published.
    pub(super) told: u64,
    /// The last input whose findings were dealt out before: what comes again up to here is taken in as it was then.
    replayed_up_to: u64,
    /// What it knew when that was kept last.
    state: Option<StoredState>,
    /// What it did since.
    decisions: StoredDecisions,
    acknowledged: u64,
    /// The last input that was taken in.
    taken: u64,
    /// Bytes of the inputs that were taken in since the state was kept.
    unkept_bytes: usize,
    /// When all that is live was brought once more, and after what a wait.
    renewed: Option<(Instant, Duration)>,
    /// An acknowledgement that is on its way. Held events do not wait for it.
    acking: Option<BoxFuture<'static, Result<u64, ApiError>>>,
    pub(super) findings: Window,
    /// What the publishers of held events ask.
    pub(super) asks: Option<Asks>,
    questions: mpsc::Receiver<Question>,
    /// Verdicts that were listed.
    pub(super) verdicts: u64,
    /// Whether the last verdicts took so little time that the next ones need no thread of their own.
    pub(super) is_light: bool,
}

impl Work {
    async fn run(mut self) {
        loop {
            match self.read().await {
                Ok(()) => {}
                Err(ApiError::Stopping) => return,
                Err(refusal) => {
                    let why = refusal.problem().detail.unwrap_or_default();
                    self.situation.figures.problem(why);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Reads the session from what is not acknowledged on, until the connection ends.
    async fn read(&mut self) -> Result<(), ApiError> {
        let (stage, situation) = (Arc::clone(&self.stage), Arc::clone(&self.situation));
        let host = &stage.host;
        // An alarm ahead of its turn would be an event out of order, and its own turn a gap.
        let bounds = Bounds::new(&host.config.outbox).in_order();
        let outbox = Arc::new(Outbox::new(stage.connection(), bounds));
        let (attached, confinement) = (Arc::clone(&outbox), situation.confinement.clone());
        let attach = |client, reply| Command::Attach {
            client,
            outbox: attached,
            resume: Resume::Fresh,
            confinement,
            reply,
        };
        host.shards.ask(&situation.client, attach).await??;
        let _attached = Detach {
            stage: Arc::clone(&stage),
            client: Arc::clone(&situation.client),
            connection: outbox.connection,
        };
        let (mut logic, is_anew) = self.begin();
        // Its sets may begin in the middle: what it finds in what comes again up to there was dealt out, or never held.
        if self.decisions.told_up_to > 0 {
            self.told = self.told.max(((self.decisions.told_up_to + 1) << FINDINGS_BITS) - 1);
        }
        self.replayed_up_to = self.replayed_up_to.max(self.told >> FINDINGS_BITS);
        self.taken = self.state.as_ref().map_or(0, |state| state.offset);
        if is_anew && situation.plan.is_about_objects {
            logic = self.wait_to_renew(logic).await?;
            stage.renew(&situation).await?;
        }
        if logic.is_ending() {
            let offset = self.state.as_ref().map_or(0, |state| state.offset);
            logic = self.end_and_begin(logic, offset, "what it knew was too much").await?;
        }
        situation.figures.begins(logic.engine(), logic.stored());
        if let Some(standing) = logic.standing() {
            situation.figures.note_standing(standing);
        }
        let mut batch = Vec::new();
        let mut is_behind = true;
        loop {
            if situation.figures.is_paused() {
                logic = self.pause(logic, || outbox.behind()).await?;
                is_behind = true;
            }
            // The sets are whole once what came before has come again.
            is_behind = is_behind && outbox.behind() > 0;
            let mut asked = Vec::new();
            let ended = tokio::select! {
                ended = outbox.next_batch(&mut batch, BATCH_BYTES) => ended,
                () = judging::next(&mut self.asks, &mut asked), if !is_behind => {
                    self.wait_for_time().await;
                    logic = self.judge(logic, asked).await?;
                    continue;
                }
                Some(question) = self.questions.recv() => {
                    logic = self.answer(logic, question).await?;
                    continue;
                }
                acked = acked(&mut self.acking) => {
                    self.acking = None;
                    // What was refused is acknowledged with the next ones.
                    self.acknowledged = acked.unwrap_or(self.acknowledged);
                    continue;
                }
            };
            if let Some(close) = ended {
                // The broker stops, or the client was deleted.
                return if close.code == 1013 { Ok(()) } else { Err(ApiError::Stopping) };
            }
            situation.figures.queued.store(outbox.behind(), Ordering::Relaxed);
            let mut entries = std::mem::take(&mut batch).into_iter();
            while !entries.as_slice().is_empty() {
                if situation.figures.is_paused() {
                    let held = entries.as_slice().len() as u64;
                    logic = self.pause(logic, || outbox.behind() + held).await?;
                    is_behind = true;
                }
                self.wait_for_time().await;
                while let Ok(question) = self.questions.try_recv() {
                    logic = self.answer(logic, question).await?;
                }
                let is_late = self.is_late(&outbox);
                let evaluated = self.evaluate(logic, entries, is_late).await?;
                entries = evaluated.rest;
                logic = evaluated.logic;
                self.taken = evaluated.last;
                self.unkept_bytes += evaluated.bytes;
                self.decide(evaluated.decisions).await?;
                self.publish(evaluated.findings, 0).await?;
                if evaluated.is_anew && situation.plan.is_about_objects {
                    logic = self.wait_to_renew(logic).await?;
                    stage.renew(&situation).await?;
                }
                if let Some(state) = evaluated.state {
                    self.keep(evaluated.last, state, false).await?;
                }
                if let Some(why) = evaluated.measured.and_then(|measured| self.too_much(measured)) {
                    if let Some(state) = logic.ending() {
                        // A restart would not decide that again, and has to know it before the ends are published.
                        self.keep(evaluated.last, state, true).await?;
                    }
                    logic = self.end_and_begin(logic, evaluated.last, &why).await?;
                }
                self.acknowledge(logic.needs(), evaluated.last);
                let asked = if is_behind { Vec::new() } else { judging::ready(&mut self.asks) };
                if !asked.is_empty() {
                    logic = self.judge(logic, asked).await?;
                }
            }
            situation.figures.queued.store(outbox.behind(), Ordering::Relaxed);
        }
    }

    /// Takes nothing in while it is paused, and answers questions. Meanwhile `behind` says how many inputs wait.
    async fn pause(
        &mut self,
        logic: Box<dyn Logic>,
        behind: impl Fn() -> u64,
    ) -> Result<Box<dyn Logic>, ApiError> {
        let mut logic = self.pass_on(logic);
        let situation = Arc::clone(&self.situation);
        // Inputs may be lost meanwhile, also those that it knows: after a restart it is to go on from here.
        if self.taken > self.state.as_ref().map_or(0, |state| state.offset)
            && let Some(state) = logic.state(true)
        {
            self.keep(self.taken, state, false).await?;
        }
        loop {
            tokio::select! {
                () = situation.figures.while_paused(&behind) => return Ok(logic),
                Some(question) = self.questions.recv() => logic = self.answer(logic, question).await?,
            }
        }
    }

    /// Waits while its tenant has taken more of the threads' time than its share. Without tenants there is nobody to wait for.
    async fn wait_for_time(&mut self) {
        let wait = self.holding.share.wait(Instant::now());
        if self.situation.tenant.is_none() || wait.is_zero() {
            return;
        }
        self.situation.figures.problem(
            "its tenant's checks, rule sets and groups took more of the threads' time than their share (situations.tenant_time_share), so that they wait",
        );
        tokio::time::sleep(wait).await;
    }

    /// Waits before all that is live is brought once more: not at all at first, and twice as long each time that it was soon lost again.
    /// What is more than its session may keep would be lost at once, for ever.
    async fn wait_to_renew(&mut self, mut logic: Box<dyn Logic>) -> Result<Box<dyn Logic>, ApiError> {
        let wait = match self.renewed {
            Some((at, wait)) if at.elapsed() < RENEW_MAX => (2 * wait).clamp(RETRY, RENEW_MAX),
            Some(_) | None => Duration::ZERO,
        };
        let mut waited = std::pin::pin!(tokio::time::sleep(wait));
        loop {
            tokio::select! {
                () = &mut waited => break,
                Some(question) = self.questions.recv() => logic = self.answer(logic, question).await?,
            }
        }
        self.renewed = Some((Instant::now(), wait));
        Ok(logic)
    }

    /// The logic as it was kept last, or at its beginning, and whether it begins anew because that cannot be read.
    fn begin(&mut self) -> (Box<dyn Logic>, bool) {
        let mut logic = (self.situation.plan.begin)();
        if let Some(kept) = &self.state
            && let Err(why) = logic.restore(&kept.state)
        {
            self.state = None;
            return (self.situation.anew(&format!("its state on disk cannot be read ({why})")), true);
        }
        (logic, false)
    }

    /// Why the memory that the logic takes, and the time in which that was found, is too much for its tenant.
    fn too_much(&mut self, (bytes, took): (usize, Duration)) -> Option<String> {
        self.measure_at = Instant::now() + MEASURE_EVERY.max(took * 1_000);
        if self.taken <= self.replayed_up_to {
            // Another run took these inputs in and had enough memory: what it published would not fit to anything else.
            return None;
        }
        let limit = self.stage.host.config.situations.tenant_state_bytes;
        if !self.holding.is_too_much(bytes, limit) {
            return None;
        }
        self.holding.is_too_much(0, limit);
        Some(format!(
            "it knew {bytes} bytes, and its tenant's checks, rule sets and groups together more than {limit} (situations.tenant_state_bytes)"
        ))
    }

    /// Publishes the end of what lasts, and begins anew with the deliveries after one.
    async fn end_and_begin(
        &mut self,
        mut logic: Box<dyn Logic>,
        offset: u64,
        why: &str,
    ) -> Result<Box<dyn Logic>, ApiError> {
        let mut ends = Vec::new();
        logic.end(offset, &mut ends);
        self.publish(ends, ENDS).await?;
        let mut logic = self.situation.anew(why);
        if let Some(standing) = logic.standing() {
            self.situation.figures.note_standing(standing);
        }
        if let Some(state) = logic.state(true) {
            self.keep(offset, state, false).await?;
        }
        Ok(logic)
    }

    /// Whether its session soon loses inputs, also those that it knows.
    fn is_late(&self, outbox: &Outbox) -> bool {
        let config::Situations { kept_events, kept_bytes, .. } = self.stage.host.config.situations;
        outbox.behind() > kept_events as u64 / 8 * 7
            || outbox.kept_bytes() > kept_bytes / 8 * 7
            || self.unkept_bytes > kept_bytes / 4
    }

    /// Takes the entries in, on a thread beside those that serve everybody.
    async fn evaluate(
        &mut self,
        logic: Box<dyn Logic>,
        entries: std::vec::IntoIter<Entry>,
        is_late: bool,
    ) -> Result<Evaluated, ApiError> {
        let is_measured = self.measure_at <= Instant::now();
        let turn = Turn {
            stage: Arc::clone(&self.stage),
            situation: Arc::clone(&self.situation),
            share: Arc::clone(&self.holding.share),
            names: self.names.clone(),
            kept_up_to: self.state.as_ref().map_or(0, |state| state.offset),
            replayed_up_to: self.replayed_up_to,
            decisions: self.decisions.bounds.clone(),
        };
        let _turn = self.stage.threads.acquire().await.map_err(|_| ApiError::Stopping)?;
        let work = move || turn.take(logic, entries, is_late, is_measured);
        let evaluated = self.stage.host.runtime.spawn_blocking(work).await;
        evaluated.map_err(|_| ApiError::Internal("an evaluation panicked"))
    }

    /// Keeps what it knows after a delivery, so that it needs neither that one nor any before it.
    async fn keep(&mut self, offset: u64, state: Box<[u8]>, is_awaited: bool) -> Result<(), ApiError> {
        let stored = StoredState { offset, state };
        let (version, kept) = (Arc::clone(&self.situation.version), stored.clone());
        let had_decisions = !self.decisions.bounds.is_empty();
        // Inputs behind it may be known from before, and come again.
        self.decisions.bounds.retain(|(decided, _)| *decided > offset);
        let decisions = had_decisions.then(|| self.decisions.clone());
        let state = State { version, stored: Some(kept), decisions, is_awaited };
        let keep = |client, reply| Command::Ack { client, offset, state: Some(Box::new(state)), reply };
        // What is acknowledged does not come again in this run, also where the disk does not take the state yet.
        (self.acknowledged, self.state, self.unkept_bytes) = (offset, Some(stored), 0);
        self.stage.host.shards.ask(&self.situation.client, keep).await?
    }

    /// Writes what bounds decided, and waits until it is on disk. What the disk cannot take now is tried again.
    async fn decide(&mut self, decisions: Vec<(u64, Decision)>) -> Result<(), ApiError> {
        if decisions.is_empty() {
            return Ok(());
        }
        self.decisions.bounds.extend(decisions);
        let offset = self.acknowledged;
        loop {
            let (version, decisions) = (Arc::clone(&self.situation.version), self.decisions.clone());
            let state = State { version, stored: None, decisions: Some(decisions), is_awaited: true };
            let decide = |client, reply| Command::Ack { client, offset, state: Some(Box::new(state)), reply };
            match self.stage.host.shards.ask(&self.situation.client, decide).await? {
                Err(ApiError::Stopping) => return Err(ApiError::Stopping),
                Err(refusal) => self.situation.figures.problem(refusal.problem().detail.unwrap_or_default()),
                Ok(()) => return Ok(()),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Acknowledges what is needed no more, now and then.
    fn acknowledge(&mut self, needs: Option<u64>, last: u64) {
        let free = needs.map_or(last, |needed| needed.saturating_sub(1).min(last));
        let is_due =
            free > self.acknowledged && (needs.is_none() || free >= self.acknowledged + ACKNOWLEDGE_EVERY);
        if self.acking.is_some() || !is_due {
            return;
        }
        let (stage, client) = (Arc::clone(&self.stage), Arc::clone(&self.situation.client));
        self.decisions.bounds.retain(|(decided, _)| *decided > free);
        self.decisions.told_up_to = last;
        let (version, decisions) = (Arc::clone(&self.situation.version), Some(self.decisions.clone()));
        let state = Box::new(State { version, stored: None, decisions, is_awaited: false });
        let acknowledge = async move {
            let acknowledge =
                |client, reply| Command::Ack { client, offset: free, state: Some(state), reply };
            stage.host.shards.ask(&client, acknowledge).await??;
            Ok(free)
        };
        self.acking = Some(Box::pin(acknowledge));
    }
}

/// Waits for an acknowledgement that is on its way; for ever where none is.
async fn acked(acking: &mut Option<BoxFuture<'static, Result<u64, ApiError>>>) -> Result<u64, ApiError> {
    match acking {
        Some(acking) => acking.await,
        None => std::future::pending().await,
    }
}

impl Situation {
    /// Begins anew, since it cannot go on.
    pub(super) fn anew(&self, why: &str) -> Box<dyn Logic> {
        // First the reason, so that it is there for each reader of the count.
        self.figures.problem(format!("{why}, so that it began anew"));
        self.figures.restarts.fetch_add(1, Ordering::Relaxed);
        (self.plan.begin)()
    }
}

/// A connection to be taken back.
struct Detach {
    stage: Arc<Stage>,
    client: Arc<str>,
    connection: u64,
}

impl Drop for Detach {
    fn drop(&mut self) {
        let (stage, client, connection) =
            (Arc::clone(&self.stage), Arc::clone(&self.client), self.connection);
        let tasks = self.stage.host.tasks.clone();
        tasks.spawn_on(
            async move { stage.host.shards.detach(&client, connection).await },
            &self.stage.host.runtime,
        );
    }
}
