//! The courier takes messages to push services: one at a time for each client, and each push service in its turn, so that a slow one does
//! not hold the others.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::message::Length;
use super::sending::{Dispatch, Outcome};
use super::target::{Pending, Place, State, Target};
use super::{Forget, Push, PushSubscription};
use crate::model::clock;

/// Tries of a message before it is dropped.
const TRIES: u32 = 5;
/// Time after which a try that failed is followed by the next; each further time takes four times as long.
const RETRY: Duration = Duration::from_secs(1);
/// How long a push service counts as slow that did not answer in time.
const SLOW: Duration = Duration::from_secs(600);
/// Push services that may be remembered although they have nothing to do.
const SERVICES_IDLE: usize = 1_024;

/// The courier, with everything that is on its way.
pub(crate) struct Courier {
    push: Arc<Push>,
    forget: Forget,
    queue: mpsc::Receiver<Arc<Target>>,
    /// Targets that wait for a time, one entry each.
    timers: BTreeMap<(Instant, u64), Arc<Target>>,
    next_timer: u64,
    /// Push services that have something to do, by origin.
    services: HashMap<String, Service>,
    /// How many of them were left when idle ones were last forgotten.
    services_left: usize,
    /// Push services that may begin something, in their turns.
    turns: VecDeque<String>,
    sends: JoinSet<Outcome>,
    flights: HashMap<Id, Flight>,
}

/// A push service.
#[derive(Default)]
struct Service {
    /// Targets whose turn it is, alarms first.
    ready: VecDeque<Arc<Target>>,
    in_flight: usize,
    /// It did not answer in time when it was asked last. Until then it is asked one thing at a time.
    slow_until: Option<Instant>,
    paused_until: Option<Instant>,
    has_turn: bool,
}

/// A message under way.
struct Flight {
    target: Arc<Target>,
    origin: String,
    subscription: Arc<PushSubscription>,
    pending: Pending,
    readings: u64,
}

impl Service {
    /// Whether it has nothing to do, and nothing is remembered of it.
    fn is_over(&self) -> bool {
        let is_remembered = self.slow_until.max(self.paused_until).is_some_and(|until| until > clock::now());
        self.ready.is_empty() && self.in_flight == 0 && !self.has_turn && !is_remembered
    }
}

impl Courier {
    pub(super) fn new(push: Arc<Push>, queue: mpsc::Receiver<Arc<Target>>, forget: Forget) -> Self {
        Self {
            push,
            forget,
            queue,
            timers: BTreeMap::new(),
            next_timer: 0,
            services: HashMap::new(),
            services_left: 0,
            turns: VecDeque::new(),
            sends: JoinSet::new(),
            flights: HashMap::new(),
        }
    }

    /// Carries messages until the broker ends. Messages that are under way then are cut off.
    pub(crate) async fn run(mut self, ended: CancellationToken) {
        loop {
            self.take_due();
            self.start();
            let next = self.timers.first_key_value().map(|((due, _), _)| *due);
            let wait = async {
                match next {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = ended.cancelled() => break,
                Some(sent) = self.sends.join_next_with_id() => self.settle(sent),
                Some(target) = self.queue.recv() => {
                    target.state().is_queued = false;
                    self.place(target);
                }
                () = wait => {}
            }
        }
        self.sends.shutdown().await;
    }

    /// Puts a target where it has to wait for its next message, if it has one.
    fn place(&mut self, target: Arc<Target>) {
        let mut state = target.state();
        match state.place {
            Place::Ready | Place::InFlight => return,
            Place::Timer(due, number) => drop(self.timers.remove(&(due, number))),
            Place::Nowhere => {}
        }
        state.place = Place::Nowhere;
        let (Some(subscription), Some(pending)) = (&state.subscription, &state.pending) else { return };
        let (origin, is_alarm) = (subscription.origin(), pending.is_alarm);
        if let Some(due) = self.due(&state, &origin) {
            let number = self.next_timer;
            self.next_timer += 1;
            state.place = Place::Timer(due, number);
            drop(state);
            self.timers.insert((due, number), target);
            return;
        }
        state.place = Place::Ready;
        drop(state);
        self.forget_services();
        let service = self.services.entry(origin.clone()).or_default();
        if is_alarm {
            service.ready.push_front(target);
        } else {
            service.ready.push_back(target);
        }
        self.give_turn(&origin);
    }

    /// When a target may be sent its message, where that is not now.
    fn due(&self, state: &State, origin: &str) -> Option<Instant> {
        let paused_until = self.services.get(origin).and_then(|service| service.paused_until);
        state.due().max(paused_until).filter(|due| *due > clock::now())
    }

    fn take_due(&mut self) {
        let now = clock::now();
        while self.timers.first_key_value().is_some_and(|((due, _), _)| *due <= now)
            && let Some((_, target)) = self.timers.pop_first()
        {
            self.place(target);
        }
    }

    /// Lets a push service have its turn if it may begin something, and forgets one that has nothing to do.
    fn give_turn(&mut self, origin: &str) {
        let Some(service) = self.services.get_mut(origin) else { return };
        if service.is_over() {
            self.services.remove(origin);
            return;
        }
        let is_slow = service.slow_until.is_some_and(|until| until > clock::now());
        let most = if is_slow { 1 } else { self.push.sends_per_origin };
        if !service.has_turn && !service.ready.is_empty() && service.in_flight < most {
            service.has_turn = true;
            self.turns.push_back(origin.to_owned());
        }
    }

    /// Forgets push services that were only remembered because they were slow or wanted a pause, once there are twice as many as after the last time.
    fn forget_services(&mut self) {
        if self.services.len() > 2 * self.services_left + SERVICES_IDLE {
            self.services.retain(|_, service| !service.is_over());
            self.services_left = self.services.len();
        }
    }

    /// Starts messages, as many as may be under way.
    fn start(&mut self) {
        while self.flights.len() < self.push.sends
            && let Some(origin) = self.turns.pop_front()
        {
            let Some(service) = self.services.get_mut(&origin) else { continue };
            service.has_turn = false;
            if let Some(target) = service.ready.pop_front() {
                self.start_one(target, &origin);
            }
            self.give_turn(&origin);
        }
    }

    fn start_one(&mut self, target: Arc<Target>, origin: &str) {
        let mut state = target.state();
        state.place = Place::Nowhere;
        let Some(subscription) = state.subscription.clone() else { return };
        if subscription.origin() != origin || self.due(&state, origin).is_some() {
            drop(state);
            return self.place(target);
        }
        let Some(pending) = state.pending.take() else { return };
        state.place = Place::InFlight;
        let dispatch = Dispatch {
            push: Arc::clone(&self.push),
            client: Arc::clone(&target.client),
            subscription: Arc::clone(&subscription),
            event: Arc::clone(&pending.body),
            count: pending.count,
            length: if pending.is_too_long { Length::Short } else { Length::Full },
            forget: Arc::clone(&self.forget),
        };
        let readings = state.readings;
        drop(state);
        if let Some(service) = self.services.get_mut(origin) {
            service.in_flight += 1;
        }
        let sending = self.sends.spawn(dispatch.send());
        let flight = Flight { target, origin: origin.to_owned(), subscription, pending, readings };
        self.flights.insert(sending.id(), flight);
    }

    /// Takes note of the outcome of a message.
    fn settle(&mut self, sent: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match sent {
            Ok(sent) => sent,
            // It has said so itself.
            Err(error) => (error.id(), Outcome::Failed),
        };
        let Some(flight) = self.flights.remove(&id) else { return };
        let now = clock::now();
        if let Some(service) = self.services.get_mut(&flight.origin) {
            service.in_flight -= 1;
            service.slow_until = (outcome == Outcome::TimedOut).then(|| now + SLOW);
            if let Outcome::Overloaded(after) = outcome {
                service.paused_until = Some(now + after);
            }
        }
        let (origin, target) = (flight.origin.clone(), Arc::clone(&flight.target));
        self.note(flight, outcome, now);
        self.place(target);
        self.give_turn(&origin);
    }

    fn note(&self, flight: Flight, outcome: Outcome, now: Instant) {
        let Flight { target, subscription, mut pending, readings, .. } = flight;
        let metrics = &self.push.metrics;
        let mut state = target.state();
        state.place = Place::Nowhere;
        let is_current = state.is(&subscription);
        let mut is_kept = false;
        match outcome {
            Outcome::Sent => {
                metrics.push_sent.add(1);
                (state.tries, state.failures) = (0, 0);
                state.last_push_ms = Some(clock::unix_ms());
            }
            Outcome::Nothing => metrics.push_over.add(1),
            Outcome::Gone => metrics.push_gone.add(1),
            Outcome::TooLong => {
                is_kept = !pending.is_too_long;
                pending.is_too_long = true;
                if !is_kept {
                    metrics.push_dropped.add(1);
                }
            }
            Outcome::Later(_) | Outcome::Overloaded(_) | Outcome::TimedOut | Outcome::Failed => {
                metrics.push_failures.add(1);
                state.failures += 1;
                state.tries += 1;
                is_kept = state.tries < TRIES;
                let after = if let Outcome::Later(after) | Outcome::Overloaded(after) = outcome {
                    after
                } else {
                    RETRY * 4_u32.pow(state.tries.min(TRIES) - 1)
                };
                state.blocked_until = Some(now + after);
                if !is_kept {
                    metrics.push_dropped.add(1);
                    state.tries = 0;
                }
            }
        }
        if !is_kept {
            state.paced_until = Some(now + self.push.every);
        } else if is_current && state.readings == readings {
            // Later deliveries are told with it.
            if let Some(later) = state.pending.take() {
                pending.merge(later);
            }
            state.pending = Some(pending);
        }
    }
}
