//! A client that is sent push messages, as its shard and the courier share it: its new deliveries, and how far its message is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::error::TrySendError;

use super::{Push, PushSubscription};
use crate::limits::QuotaPermit;
use crate::metrics::Raised;
use crate::model::event::Body;
use crate::model::{clock, tenant};

/// A client with a push subscription.
pub(crate) struct Target {
    pub(super) client: Arc<str>,
    push: Arc<Push>,
    /// A std mutex: held for some assignments, by the shard and the courier.
    state: Mutex<State>,
}

/// The state of a client's messages.
#[derive(Default)]
pub(super) struct State {
    /// `None` once it is removed.
    pub(super) subscription: Option<Arc<PushSubscription>>,
    pub(super) pending: Option<Pending>,
    pub(super) place: Place,
    /// Whether it is in the courier's channel.
    pub(super) is_queued: bool,
    /// How often a connection began to read: earlier deliveries are not told any more.
    pub(super) readings: u64,
    /// Not earlier than then, unless it is an alarm.
    pub(super) paced_until: Option<Instant>,
    /// Not earlier than then at all.
    pub(super) blocked_until: Option<Instant>,
    /// Tries of the message at hand that failed.
    pub(super) tries: u32,
    /// When a push service last took a message, in Unix milliseconds.
    pub(super) last_push_ms: Option<u64>,
    /// Tries that failed since.
    pub(super) failures: u64,
}

/// The deliveries for a client since its last message.
pub(super) struct Pending {
    pub(super) count: u64,
    /// The last of it, or the last alarm.
    pub(super) body: Arc<Body>,
    pub(super) is_alarm: bool,
    /// Whether a push service has found the message too long.
    pub(super) is_too_long: bool,
    _place: Waiting,
}

/// One of the messages that may wait: of all, and of the tenant's.
struct Waiting {
    _permit: OwnedSemaphorePermit,
    _quota: QuotaPermit,
    _raised: Raised,
}

/// Where the courier has a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Nowhere,
    /// It waits for a time, under a number of its own.
    Timer(Instant, u64),
    /// It is the turn of its push service.
    Ready,
    /// Its message is under way.
    InFlight,
}

/// The hold of a session on its target, which is removed with it.
pub(crate) struct Subscribed {
    target: Arc<Target>,
    _raised: Raised,
}

impl Pending {
    /// Adds later deliveries, which are told with these.
    pub(super) fn merge(&mut self, later: Self) {
        self.count = self.count.saturating_add(later.count);
        if later.is_alarm || !self.is_alarm {
            (self.body, self.is_alarm, self.is_too_long) = (later.body, later.is_alarm, later.is_too_long);
        }
    }
}

impl Subscribed {
    pub(crate) fn new(push: &Arc<Push>, client: &Arc<str>, subscription: Arc<PushSubscription>) -> Self {
        let state = State { subscription: Some(subscription), ..State::default() };
        let target = Target { client: Arc::clone(client), push: Arc::clone(push), state: Mutex::new(state) };
        let raised = Raised::new(&push.metrics, |metrics| &metrics.push_subscriptions);
        Self { target: Arc::new(target), _raised: raised }
    }

    /// Goes on with another subscription of the same client's, at the same pace.
    pub(crate) fn replace(&self, subscription: Arc<PushSubscription>) {
        let mut state = self.target.state();
        (state.failures, state.tries, state.last_push_ms, state.blocked_until) = (0, 0, None, None);
        state.subscription = Some(subscription);
    }

    /// Whether it is this subscription.
    pub(crate) fn is(&self, subscription: &Arc<PushSubscription>) -> bool {
        self.target.state().is(subscription)
    }

    /// Describes it, without the secrets of the browser and the broker.
    pub(crate) fn describe(&self) -> Option<wire::PushState> {
        let state = self.target.state();
        let subscription = state.subscription.as_ref()?;
        Some(wire::PushState {
            endpoint_origin: subscription.origin(),
            since: subscription.since(),
            last_push: state.last_push_ms.map(clock::rfc3339),
            failures: state.failures,
        })
    }

    /// Counts a delivery that nobody reads. [`announce`](Self::announce) follows when it is safe.
    pub(crate) fn note(&self, body: &Arc<Body>) {
        let mut state = self.target.state();
        let (body, is_alarm) = (Arc::clone(body), body.is_alarm);
        if let Some(pending) = &mut state.pending {
            pending.count = pending.count.saturating_add(1);
            if is_alarm || !pending.is_alarm {
                (pending.body, pending.is_alarm, pending.is_too_long) = (body, is_alarm, false);
            }
            return;
        }
        match self.target.push.place(tenant::split(&self.target.client).0) {
            Some(place) => {
                state.pending = Some(Pending { count: 1, body, is_alarm, is_too_long: false, _place: place });
            }
            None => self.target.push.metrics.push_unqueued.add(1),
        }
    }

    /// Hands the noted deliveries to the courier, unless that knows of them.
    pub(crate) fn announce(&self) {
        let mut state = self.target.state();
        let Some(pending) = &state.pending else { return };
        let is_news = match state.place {
            Place::Nowhere => true,
            // An alarm does not wait for its turn.
            Place::Timer(..) => pending.is_alarm,
            Place::Ready | Place::InFlight => false,
        };
        if !is_news || state.is_queued {
            return;
        }
        match self.target.push.queue.try_send(Arc::clone(&self.target)) {
            Ok(()) => state.is_queued = true,
            // A target that waits for its time goes on waiting.
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) if state.place != Place::Nowhere => {}
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => {
                state.pending = None;
                self.target.push.metrics.push_unqueued.add(1);
            }
        }
    }

    /// A connection reads from now on: nothing has to be told.
    pub(crate) fn read(&self) {
        let mut state = self.target.state();
        state.pending = None;
        state.readings += 1;
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let mut state = self.target.state();
        (state.subscription, state.pending) = (None, None);
    }
}

impl Target {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(super) fn is(&self, subscription: &Arc<PushSubscription>) -> bool {
        self.subscription.as_ref().is_some_and(|current| Arc::ptr_eq(current, subscription))
    }

    /// When its message may be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        let pace =
            self.paced_until.filter(|_| self.pending.as_ref().is_some_and(|pending| !pending.is_alarm));
        self.blocked_until.max(pace)
    }
}

impl Push {
    /// A place among the messages that wait, if there is one for the tenant.
    fn place(&self, tenant: &str) -> Option<Waiting> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let quota = self.quota.acquire(tenant, 1).ok()?;
        Some(Waiting {
            _permit: permit,
            _quota: quota,
            _raised: Raised::new(&self.metrics, |metrics| &metrics.push_waiting),
        })
    }
}
