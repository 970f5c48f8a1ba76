//! Admission: the one place that decides whether an event is taken, before there is work for it.
//!
//! An accepted event is to be written within `admission.delay_ms` of being read. A new event is held against the time that it
//! would have to wait: behind the work of the engines (`shard/load.rs`), and for a thread that is free. Beyond an allowance it is
//! refused. That is half of the delay, the other half being for everything behind the engines, or what a controller makes of how late
//! deliveries are (`controller.rs`). The rest of that time is shared: a publisher that has much under way already is refused first,
//! and one that has nothing last, by tenants and within a tenant by publishers (dynamic thresholds: Choudhury and Hahne, 1998).
//! Alarms are never refused here; only an engine's queue that stays full keeps them out.

mod bucket;
mod changes;
mod controller;
mod engine_time;
mod flows;
mod lag;
mod named;
mod turns;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::auth::Principal;
use crate::config::{Config, ControllerName};
use crate::ingest::{Confinement, Weighed};
use crate::metrics::Metrics;
use crate::model::error::ApiError;
use crate::model::tenant;
pub(crate) use changes::Change;
use changes::Changes;
use controller::{Feedback, STEP};
pub(crate) use engine_time::{EngineTime, Paid};
pub(crate) use flows::{ClientLimiter, InFlightGuard, Publisher};
use flows::{Flows, Rates};
use lag::Lag;
pub(crate) use turns::MoveTurn;

/// Decides what is taken.
pub(crate) struct Admission {
    engines: Box<dyn Backlog>,
    metrics: Arc<Metrics>,
    /// How long what is accepted may take.
    delay: Duration,
    /// What takes the place of a fixed part of the delay.
    feedback: Option<Arc<Feedback>>,
    /// How long a batch is held back before it is refused.
    patience: Duration,
    own_rates: Rates,
    tenant_rates: Rates,
    changes: Changes,
    engine_time: Arc<EngineTime>,
    clients: Flows,
    tenants: Flows,
    lag: Lag,
}

/// The figures of the engines that admission asks for.
pub(crate) trait Backlog: Send + Sync {
    /// How long a command that comes now waits for the slowest engine.
    fn wait(&self, now: Instant) -> Duration;

    /// Time that an event takes in the slowest engine.
    fn cost_of_one(&self) -> Duration;

    /// Has moves carried out that lie in the queues.
    fn hurry(&self);
}

/// The time that events on their way may take, and the share of one event in it.
struct Allowance {
    /// Time within which an event is to be dealt out, from now.
    left: Duration,
    /// Part of it that an event under way takes.
    event: Duration,
}

/// How often a batch that is held back asks again.
const BATCH_INTERVAL: Duration = Duration::from_millis(2);

/// Divisor of the delay that gives the engines' part of it, where no controller does.
const ENGINES_PART: u32 = 2;

/// Divisor of the allowance that gives the part beyond which a batch is held back: its sender can wait, and leaves the rest to
/// those who cannot.
const BATCH_PART: u32 = 2;

/// The most that one flow may have under way, as a multiple of what is left for others.
const SHARE: u32 = 4;

/// Divisor of the allowance that gives the part below which nobody is in anybody's way, and nothing is counted.
const QUIET_PART: u32 = 16;

impl Admission {
    pub(crate) fn new(
        config: &Config,
        engines: Box<dyn Backlog>,
        metrics: Arc<Metrics>,
        engine_time: Arc<EngineTime>,
    ) -> Self {
        let own_rates = own_rates(config);
        let quotas = &config.quotas;
        let (events, moves) = (quotas.tenant_events_per_second, quotas.tenant_moves_per_second);
        let tenant_rates = Rates { events, moves, change_bytes: 0 };
        let patience = Duration::from_millis(config.queue.wait_ms);
        Self {
            engines,
            metrics,
            delay: Duration::from_millis(config.admission.delay_ms),
            feedback: (config.admission.controller == ControllerName::Pi)
                .then(|| Arc::new(Feedback::new(&config.admission))),
            patience,
            own_rates,
            tenant_rates,
            changes: Changes::new(patience),
            engine_time,
            clients: Flows::new(own_rates),
            tenants: Flows::of_tenants(tenant_rates),
            lag: Lag::default(),
        }
    }

    /// Makes the publisher that has this permit and sends over this connection.
    pub(crate) fn publisher(&self, permit: &Principal, connection: &Arc<ClientLimiter>) -> Publisher {
        // Where there are no tenants, everybody is of one.
        let nobody = || (self.tenant_rates.events > 0).then_some("");
        let tenant = permit.tenant.as_deref().or_else(nobody).map(|tenant| self.tenants.of(tenant));
        let own = permit.client.as_deref().map(|client| self.clients.of(&permit.inside(client)));
        let own = own.unwrap_or_else(|| Arc::clone(connection));
        Publisher { own, tenant, confinement: permit.confinement.clone() }
    }

    /// Takes an event, or refuses it. What comes back goes with the event until it is dealt out.
    pub(crate) fn event(
        &self,
        publisher: &Publisher,
        now: Instant,
    ) -> Result<Option<Arc<InFlightGuard>>, ApiError> {
        self.check_rates(publisher, now)?;
        self.room(publisher, self.allowance(), now).map_err(|refusal| self.refused(refusal))
    }

    /// Takes an event of a batch, or refuses it, as [`event`](Self::event) does. The event is held back for as long as a
    /// sender may be. `relent` is called before that, so that a waiting sender holds nothing that others wait for.
    pub(crate) async fn event_of_batch(
        &self,
        publisher: &Publisher,
        started: Instant,
        relent: impl AsyncFnOnce() -> Result<(), ApiError>,
    ) -> Result<Option<Arc<InFlightGuard>>, ApiError> {
        self.check_rates(publisher, started)?;
        let (mut now, mut relent) = (started, Some(relent));
        loop {
            match self.room(publisher, self.allowance() / BATCH_PART, now) {
                Err(_) if now - started < self.patience => {
                    if let Some(relent) = relent.take() {
                        relent().await?;
                    }
                    tokio::time::sleep(BATCH_INTERVAL).await;
                }
                decided => return decided.map_err(|refusal| self.refused(refusal)),
            }
            now = Instant::now();
        }
    }

    /// Takes an alarm. It counts, and is not refused.
    pub(crate) fn alarm(&self, publisher: &Publisher, now: Instant) -> Arc<InFlightGuard> {
        publisher.flows().for_each(|flow| flow.events.take_anyhow(now));
        self.guard(publisher, now)
    }

    /// Takes a move of a client, by its name inside, or refuses it. A sender with many under way is held back. What comes back goes
    /// with the move until it is carried out.
    pub(crate) async fn client_move(
        &self,
        publisher: &Publisher,
        client: &str,
        has_track: bool,
    ) -> Result<Arc<MoveTurn>, ApiError> {
        self.check_moves(client, Instant::now())?;
        let paid = self.pay(client, publisher.confinement.as_ref()).await?;
        let hurry = || self.engines.hurry();
        let turn = MoveTurn::of_move(&publisher.own, has_track, paid, self.patience, hurry).await;
        turn.map_err(|refusal| self.refused(refusal))
    }

    /// Lets a command go on for which a client pays, by its name inside: at once, or when its debts have been paid. What comes back
    /// goes with the command until it is carried out. Who asks is confined to something, or not.
    pub(crate) async fn pay(
        &self,
        client: &str,
        confinement: Option<&Arc<Confinement>>,
    ) -> Result<Paid, ApiError> {
        self.engine_time
            .pay(client, confinement, self.patience)
            .await
            .map_err(|refusal| self.refused(refusal))
    }

    /// Charges a client, by its name inside, for work beside the engines that it has asked for.
    pub(crate) fn charge(&self, client: &str, took: Duration) {
        self.engine_time.charge(client, took, Instant::now());
    }

    /// Refuses one of a batch that would have to wait for a debt: the others of the batch are not to wait for it.
    pub(crate) fn check_debts(&self, client: &str) -> Result<(), ApiError> {
        self.engine_time.check(client).map_err(|refusal| self.refused(refusal))
    }

    /// Reads a document with conditions for a client that pays for it. What comes back beside it goes with it until
    /// it is carried out.
    pub(crate) async fn read<T: Weighed + Send + 'static>(
        &self,
        publisher: &Publisher,
        client: &str,
        bytes: usize,
        read: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<(T, Change), ApiError> {
        // Before anything is taken that others wait for.
        let paid = self.pay(client, publisher.confinement.as_ref()).await?;
        let (read, change) =
            self.changes.read(publisher, bytes, read).await.map_err(|refusal| self.refused(refusal))?;
        Ok((read, change.paid(paid)))
    }

    fn check_moves(&self, client: &str, now: Instant) -> Result<(), ApiError> {
        let mut fast = None;
        if self.tenant_rates.moves > 0 && !self.tenants.of(tenant::split(client).0).moves.take(now) {
            fast = Some((self.tenant_rates.moves, "quotas.tenant_moves_per_second"));
        } else if self.own_rates.moves > 0 && !self.clients.of(client).moves.take(now) {
            fast = Some((self.own_rates.moves, "limits.moves_per_second"));
        }
        let Some((limit, setting)) = fast else { return Ok(()) };
        Err(self.refused(ApiError::TooManyMoves { limit: limit.into(), setting }))
    }

    fn check_rates(&self, publisher: &Publisher, now: Instant) -> Result<(), ApiError> {
        let Publisher { own, tenant, .. } = publisher;
        let fast = if !own.events.take(now) {
            Some((self.own_rates.events, "limits.events_per_second"))
        } else if tenant.as_ref().is_some_and(|tenant| !tenant.events.take(now)) {
            Some((self.tenant_rates.events, "quotas.tenant_events_per_second"))
        } else {
            None
        };
        let Some((limit, setting)) = fast else { return Ok(()) };
        Err(self.refused(ApiError::TooFast { limit: limit.into(), setting }))
    }

    fn room(
        &self,
        publisher: &Publisher,
        delay: Duration,
        now: Instant,
    ) -> Result<Option<Arc<InFlightGuard>>, ApiError> {
        let left = self.left(delay, now);
        if left > delay - delay / QUIET_PART {
            return Ok(None);
        }
        if (Allowance { left, event: self.engines.cost_of_one() }).has_room(publisher) {
            Ok(Some(self.guard(publisher, now)))
        } else {
            Err(ApiError::Overloaded)
        }
    }

    /// Counts an event that is taken now.
    fn guard(&self, publisher: &Publisher, now: Instant) -> Arc<InFlightGuard> {
        InFlightGuard::new(publisher, self.feedback.as_ref().map(|feedback| (Arc::clone(feedback), now)))
    }

    /// Time that events may wait before the engines.
    pub(crate) fn allowance(&self) -> Duration {
        self.feedback.as_ref().map_or(self.delay / ENGINES_PART, |feedback| feedback.allowance())
    }

    /// The greatest part of the delay that deliveries took of late; none where nothing goes by it.
    pub(crate) fn tardiness(&self) -> Option<f64> {
        self.feedback.as_ref().map(|feedback| feedback.tardiness())
    }

    /// Time that is left of a delay, if all that has been taken is done first.
    fn left(&self, delay: Duration, now: Instant) -> Duration {
        delay.saturating_sub(self.engines.wait(now) + self.lag())
    }

    /// Counts what was taken, and then refused by a queue that stayed full.
    pub(crate) fn refused_late(&self, refusal: &ApiError, count: u64) {
        self.metrics.refused_load.add(if *refusal == ApiError::Overloaded { count } else { 0 });
    }

    /// Counts what is refused here.
    fn refused(&self, refusal: ApiError) -> ApiError {
        if refusal == ApiError::Overloaded {
            self.metrics.refused_load.add(1);
        } else if matches!(refusal, ApiError::TooFast { .. } | ApiError::TooManyMoves { .. }) {
            self.metrics.refused_rate.add(1);
        } else if matches!(refusal, ApiError::TooCostly { .. }) {
            self.metrics.refused_cost.add(1);
        }
        refusal
    }

    /// How long an event that is taken now waits for an engine.
    pub(crate) fn wait(&self) -> Duration {
        self.engines.wait(Instant::now())
    }

    /// How much later than due a task gets its turn.
    pub(crate) fn lag(&self) -> Duration {
        self.lag.now()
    }

    /// Measures the lag for as long as it is polled.
    pub(crate) async fn watch_lag(&self) -> Infallible {
        self.lag.watch().await
    }

    /// Steers the allowance for as long as it is polled, where a controller does.
    pub(crate) async fn steer(&self) -> Infallible {
        let Some(feedback) = &self.feedback else { return std::future::pending().await };
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(STEP).await;
            let now = Instant::now();
            feedback.step(self.engines.wait(now).is_zero(), now - last);
            last = now;
        }
    }

    /// The writer of an outbox has its turn, for which it has waited, should it have slept, and writes what was read at `received`.
    /// A writer that has not slept may have been held up by its reader, which is not the broker's lateness.
    pub(crate) fn has_its_turn(&self, waited: Option<Duration>, received: Option<Instant>) {
        let Some(waited) = waited else { return };
        self.metrics.writer_wait.record(waited);
        self.lag.writer(waited);
        if let Some(feedback) = &self.feedback
            && let Some(received) = received
        {
            feedback.took(received.elapsed());
        }
    }
}

impl Allowance {
    /// Whether another event of a publisher fits in, beside what others may have.
    fn has_room(&self, publisher: &Publisher) -> bool {
        let taken = |flow: &ClientLimiter| self.event * u32::try_from(flow.under_way()).unwrap_or(u32::MAX);
        // What is left for a tenant's publishers is what is left for all and not the tenant's yet.
        let of_tenant = publisher.tenant.as_deref().map_or(Duration::ZERO, taken);
        let left_to_tenant = (self.left * SHARE).checked_sub(of_tenant);
        !self.left.is_zero() && left_to_tenant.is_some_and(|left| taken(&publisher.own) < left)
    }
}

/// Makes the flow of a connection, for publishers that do not say who they are.
pub(crate) fn flow_of_connection(config: &Config) -> Arc<ClientLimiter> {
    ClientLimiter::new(own_rates(config))
}

fn own_rates(config: &Config) -> Rates {
    Rates {
        events: config.limits.events_per_second,
        moves: config.limits.moves_per_second,
        change_bytes: config.admission.change_bytes_per_second,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const EVENT: Duration = Duration::from_millis(1);
    const DELAY: Duration = Duration::from_millis(500);

    /// Lets each publisher offer its number of events for every event that is dealt out. Returns how many of each were taken,
    /// and how many waited at most.
    fn offer(publishers: &[(&Publisher, usize)]) -> (Vec<usize>, usize) {
        let (mut queue, mut taken, mut longest) = (VecDeque::new(), vec![0; publishers.len()], 0);
        for step in 0..20_000 {
            // Nobody is always the first.
            for turn in 0..publishers.len() {
                let index = (step + turn) % publishers.len();
                let (publisher, offers) = publishers[index];
                for _ in 0..offers {
                    let waiting = EVENT * u32::try_from(queue.len()).unwrap();
                    let allowance = Allowance { left: DELAY.saturating_sub(waiting), event: EVENT };
                    if allowance.has_room(publisher) {
                        queue.push_back(InFlightGuard::new(publisher, None));
                        taken[index] += 1;
                    }
                }
            }
            longest = longest.max(queue.len());
            queue.pop_front();
        }
        (taken, longest)
    }

    #[track_caller]
    fn assert_alike(taken: &[usize]) {
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(most * 10 <= least * 11, "{taken:?}");
    }

    #[test]
    fn who_asks_for_more_gets_no_more() {
        let flows = Flows::new(Rates::default());
        let alone = |name: &str| Publisher { own: flows.of(name), tenant: None, confinement: None };
        let [modest, greedy, greedier] = ["a", "b", "c"].map(alone);
        let (taken, longest) = offer(&[(&modest, 1), (&greedy, 3), (&greedier, 30)]);
        assert_alike(&taken);
        assert!(taken.iter().sum::<usize>() >= 20_000 && longest <= 500, "{taken:?} {longest}");
        // Nothing is kept free for nobody.
        let (_, longest) = offer(&[(&greedy, 3)]);
        assert!((390..=400).contains(&longest), "{longest}");
    }

    #[test]
    fn tenants_share_first_and_their_publishers_then() {
        let flows = Flows::new(Rates::default());
        let tenants = Flows::new(Rates::default());
        let of = |tenant: &str, name: &str| {
            let tenant = Some(tenants.of(tenant));
            Publisher { own: flows.of(name), tenant, confinement: None }
        };
        let many: Vec<_> = (0..10).map(|index| of("many", &index.to_string())).collect();
        let few = of("few", "one");
        let offers: Vec<_> = many.iter().map(|publisher| (publisher, 2)).chain([(&few, 2)]).collect();
        let (taken, _) = offer(&offers);
        let (of_many, of_few) = taken.split_at(10);
        assert_alike(of_many);
        // Who is alone in a tenant gets less than half, for room is kept for a second publisher, but many times the others'.
        assert!(of_few[0] > 4 * of_many[0], "{taken:?}");
    }
}
