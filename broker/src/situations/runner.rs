//! The task of one situation: it reads the situation's session, and publishes what is found.
//!
//! What a situation has to know after a restart is in its session: it acknowledges a delivery only when it needs neither that one
//! nor any before it. The deliveries that come again build its state; what it finds in them was published before, up to a number that the
//! shards write in the same commit as the findings' own deliveries, and is left out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use matcher::live::Cause;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::finding::without_ids;
use super::gate::Asks;
use super::judging;
use super::share::Holding;
use super::{Finding, Input, Logic, Situation, Stage};
use crate::ingest::Confinement;
use crate::ingest::subscription::quoted;
use crate::model::completion::Completion;
use crate::model::delivery::Entry;
use crate::model::error::ApiError;
use crate::model::event::{Origin, Published};
use crate::outbox::{Bounds, Outbox};
use crate::sessions::Resume;
use crate::shard::{Coming, Command};

/// Bytes of deliveries that are evaluated at once, and after which others have a turn.
const BATCH_BYTES: usize = 262_144;

/// Time after which others have a turn.
const TURN: Duration = Duration::from_millis(50);

/// How often the memory that a situation takes is looked at, at most; and no more than a thousandth of the time goes into that, since
/// held events wait meanwhile.
const MEASURE_EVERY: Duration = Duration::from_secs(1);

/// Findings of one input, at most: their numbers are in the lower bits of a finding's number.
const FINDINGS_BITS: u32 = 16;

/// How long to wait before something that the broker refused is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Inputs after which what is needed no more is acknowledged.
const ACKNOWLEDGE_EVERY: u64 = 1_024;

/// The task of a situation.
pub(super) struct Runner {
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl Runner {
    pub(super) fn start(
        stage: &Arc<Stage>,
        situation: &Arc<Situation>,
        told: u64,
        asks: Option<Asks>,
    ) -> Self {
        let ended = CancellationToken::new();
        let work = Work {
            stage: Arc::clone(stage),
            situation: Arc::clone(situation),
            holding: stage.shares.begin(&situation.key.tenant),
            measure_at: Instant::now(),
            name: quoted(&situation.version),
            told,
            acknowledged: 0,
            findings: Window::default(),
            asks,
            verdicts: 0,
            is_light: false,
        };
        let token = ended.clone();
        let run = async move {
            token.run_until_cancelled_owned(work.run()).await;
        };
        let task = stage.host.tasks.spawn_on(run, &stage.host.runtime);
        Self { ended, task }
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
    /// The id of the subscription, as JSON.
    name: String,
    /// The number of the last finding of another run.
    told: u64,
    acknowledged: u64,
    findings: Window,
    /// What the publishers of held events ask.
    pub(super) asks: Option<Asks>,
    /// Verdicts that were listed.
    pub(super) verdicts: u64,
    /// Whether the last verdicts took so little time that the next ones need no thread of their own.
    pub(super) is_light: bool,
}

/// Findings of the second at hand.
#[derive(Default)]
pub(super) struct Window {
    began: Option<Instant>,
    count: u32,
}

impl Window {
    /// Whether one more may come.
    pub(super) fn takes(&mut self, now: Instant, limit: u32) -> bool {
        if self.began.is_none_or(|began| now.duration_since(began) >= Duration::from_secs(1)) {
            (self.began, self.count) = (Some(now), 0);
        }
        self.count += 1;
        limit == 0 || self.count <= limit
    }
}

/// What is left of the logic after a batch.
struct Evaluated {
    logic: Box<dyn Logic>,
    findings: Vec<Finding>,
    last: u64,
    /// Entries that were not taken in yet.
    rest: std::vec::IntoIter<Entry>,
    /// Memory that the logic takes, and how long it took to find that, where that was to be done.
    measured: Option<(usize, Duration)>,
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
        let outbox = Arc::new(Outbox::new(stage.connection(), Bounds::new(&host.config.outbox)));
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
        let mut logic = (situation.plan.begin)();
        situation.figures.begins(logic.engine());
        let mut batch = Vec::new();
        let mut is_behind = true;
        loop {
            if situation.figures.is_paused() {
                logic = self.pass_on(logic);
                situation.figures.while_paused(|| outbox.behind()).await;
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
            };
            if let Some(close) = ended {
                // The broker stops, or the client was deleted.
                return if close.code == 1013 { Ok(()) } else { Err(ApiError::Stopping) };
            }
            situation.figures.queued.store(outbox.behind(), Ordering::Relaxed);
            let mut entries = std::mem::take(&mut batch).into_iter();
            while !entries.as_slice().is_empty() {
                self.wait_for_time().await;
                let evaluated = self.evaluate(logic, entries).await?;
                entries = evaluated.rest;
                logic = self.fit(evaluated.logic, evaluated.measured);
                let needs = logic.needs();
                self.publish(evaluated.findings).await?;
                self.acknowledge(needs, evaluated.last).await?;
            }
        }
    }

    /// Waits while its tenant has taken more of the threads' time than its share. Without tenants there is nobody to wait for.
    async fn wait_for_time(&self) {
        let wait = self.holding.share.wait(Instant::now());
        if self.situation.tenant.is_none() || wait.is_zero() {
            return;
        }
        self.situation.figures.problem(
            "its tenant's checks took more of the threads' time than their share (situations.tenant_time_share), so that they wait",
        );
        tokio::time::sleep(wait).await;
    }

    /// The logic, or a new one where its state is too much for its tenant.
    fn fit(&mut self, logic: Box<dyn Logic>, measured: Option<(usize, Duration)>) -> Box<dyn Logic> {
        let Some((bytes, took)) = measured else { return logic };
        self.measure_at = Instant::now() + MEASURE_EVERY.max(took * 1_000);
        let limit = self.stage.host.config.situations.tenant_state_bytes;
        if !self.holding.is_too_much(bytes, limit) {
            return logic;
        }
        self.holding.is_too_much(0, limit);
        self.situation.anew(&format!(
            "it knew {bytes} bytes, and its tenant's checks together more than {limit} (situations.tenant_state_bytes)"
        ))
    }

    /// Takes the entries in, on a thread beside those that serve everybody.
    async fn evaluate(
        &self,
        mut logic: Box<dyn Logic>,
        mut rest: std::vec::IntoIter<Entry>,
    ) -> Result<Evaluated, ApiError> {
        let (share, is_measured) = (Arc::clone(&self.holding.share), self.measure_at <= Instant::now());
        let (stage, situation, name) =
            (Arc::clone(&self.stage), Arc::clone(&self.situation), self.name.clone());
        let _turn = self.stage.threads.acquire().await.map_err(|_| ApiError::Stopping)?;
        let work = move || {
            let (mut findings, mut last) = (Vec::new(), 0);
            let turn = Instant::now();
            let figures = &situation.figures;
            while turn.elapsed() < TURN
                && let Some(entry) = rest.next()
            {
                match entry {
                    Entry::Gap(gap) => {
                        last = gap.to;
                        logic = situation.anew(&format!("inputs were lost ({})", gap.reason.text()));
                    }
                    Entry::Delivery(delivery) => {
                        last = delivery.offset;
                        let is_own = delivery.subscriptions.as_slice().iter().any(|one| **one == *name);
                        if delivery.cause != Cause::Published || !is_own {
                            continue;
                        }
                        let input = Input::of(&stage.host.features, &delivery.body, delivery.offset);
                        let Ok(input) = input else { continue };
                        let (began, before) = (Instant::now(), logic.evaluations());
                        let taken = logic.take(Arc::new(input), &mut findings);
                        figures.inputs.fetch_add(1, Ordering::Relaxed);
                        let evaluations = logic.evaluations() - before;
                        if evaluations > 0 || situation.plan.gate.is_none() {
                            figures.took(began.elapsed(), logic.engine());
                        }
                        figures.evaluations.fetch_add(evaluations, Ordering::Relaxed);
                        if let Err(why) = taken {
                            logic = situation.anew(&why);
                        }
                    }
                    Entry::Answer(_) => {}
                }
            }
            let measuring = Instant::now();
            let measured = is_measured.then(|| (logic.bytes(), measuring.elapsed()));
            share.pay(Instant::now(), turn.elapsed());
            Evaluated { logic, findings, last, rest, measured }
        };
        let evaluated = self.stage.host.runtime.spawn_blocking(work).await;
        evaluated.map_err(|_| ApiError::Internal("an evaluation panicked"))
    }

    /// Publishes what was found, and waits until it is in force and safe. What the broker cannot take now is tried again.
    async fn publish(&mut self, findings: Vec<Finding>) -> Result<(), ApiError> {
        let mut texts = Vec::new();
        let mut events = Vec::new();
        let by = self.situation.by();
        let (mut offset, mut index) = (0, 0);
        for finding in findings {
            index = if finding.offset == offset { index + 1 } else { 0 };
            offset = finding.offset;
            let number = offset << FINDINGS_BITS | index;
            if number <= self.told || index >> FINDINGS_BITS > 0 {
                continue;
            }
            match self.event(&finding, &by, number) {
                Ok(published) => {
                    texts.push(published.body.text.clone());
                    events.push(published);
                }
                Err(why) => {
                    self.situation.figures.dropped.fetch_add(1, Ordering::Relaxed);
                    self.situation.figures.problem(why);
                }
            }
        }
        let receipt = Completion::new();
        let coming = |event| Coming { event, pass: None, receipt: Some(Arc::clone(&receipt)) };
        let mut events: Vec<_> = events.into_iter().map(coming).collect();
        let count = events.len() as u64;
        while !events.is_empty() {
            match self.stage.host.shards.publish(&mut events).await {
                Ok(()) => {}
                Err(ApiError::Stopping) => return Err(ApiError::Stopping),
                Err(refusal) => {
                    self.situation.figures.problem(refusal.problem().detail.unwrap_or_default());
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        receipt.settled().await?;
        self.stage.host.metrics.events.add(count);
        for text in texts {
            self.situation.figures.found(text);
        }
        Ok(())
    }

    /// The event of a finding; the error says why there is none.
    fn event(&mut self, finding: &Finding, by: &str, number: u64) -> Result<Published, String> {
        let settings = &self.stage.host.config;
        let (depth_max, limit) = (settings.limits.derived_depth, settings.situations.findings_per_second);
        if finding.depth >= depth_max {
            if self.situation.figures.dropped.load(Ordering::Relaxed) == 0 {
                tracing::warn!(
                    by,
                    depth_max,
                    "events are derived from events again and again: the deepest are not published"
                );
            }
            return Err(format!(
                "events were derived {depth_max} times one from another (limits.derived_depth)"
            ));
        }
        if !self.findings.takes(Instant::now(), limit) {
            return Err(format!("more than {limit} were found in a second (situations.findings_per_second)"));
        }
        let limit = settings.situations.tenant_findings_per_second;
        if !self.holding.share.takes_finding(Instant::now(), limit) {
            return Err(format!(
                "its tenant's checks found more than {limit} in a second (situations.tenant_findings_per_second)"
            ));
        }
        let text = finding.event(by, &self.situation.version, number);
        let published = self.stage.host.features.parse_own(self.situation.behalf(), &text);
        let mut published = published.map_err(|refusal| refusal.problem().detail.unwrap_or_default())?;
        self.veil(&mut published);
        Ok(published.derived(Origin {
            client: Arc::clone(&self.situation.client),
            version: Arc::clone(&self.situation.version),
            number,
        }))
    }

    /// Keeps ids of the events that it follows from to readers who may see them. Without tokens nobody is confined.
    fn veil(&self, published: &mut Published) {
        if self.stage.host.config.wants_tokens()
            && let Some(text) = without_ids(&published.body.text)
        {
            published.veil(self.situation.confinement.as_deref().map(Confinement::text), text.into());
        }
    }

    /// Acknowledges what is needed no more, now and then.
    async fn acknowledge(&mut self, needs: Option<u64>, last: u64) -> Result<(), ApiError> {
        let free = needs.map_or(last, |needed| needed.saturating_sub(1).min(last));
        if free <= self.acknowledged || (needs.is_some() && free < self.acknowledged + ACKNOWLEDGE_EVERY) {
            return Ok(());
        }
        let acknowledge = |client, reply| Command::Ack { client, offset: free, reply };
        self.stage.host.shards.ask(&self.situation.client, acknowledge).await??;
        self.acknowledged = free;
        Ok(())
    }
}

impl Situation {
    /// Begins anew, since it cannot go on.
    pub(super) fn anew(&self, why: &str) -> Box<dyn Logic> {
        self.figures.restarts.fetch_add(1, Ordering::Relaxed);
        self.figures.problem(format!("{why}, so that it began anew"));
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
