//! Surveys: what an installation or a move is going to find, looked up a slice at a time before it is carried out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use matcher::geo::Position;
use matcher::live::{Fix, Survey};
use matcher::subscription::{ClientId, Filter, Subscription, SubscriptionId};
use matcher::violated;

use super::Sessions;
use crate::budget::{Held, Kind};
use crate::ingest::subscription::Prepared;
use crate::model::{clock, tenant};

/// How long a slice takes at least, but for the last event that it tests.
const SLICE: Duration = Duration::from_millis(1);

/// Filters and constraints times live events that are worth a survey: fewer are tested in some milliseconds.
const MUCH: u64 = 50_000;

/// The moves of clients whose filters and constraints are fewer are carried out at once, so that nobody has to wait for them.
const HEAVY: u64 = 16;

/// The clients whose moves are surveyed. Such a move is in force only when it has been carried out: it is waited for.
#[derive(Debug, Default)]
pub(crate) struct Heavy {
    /// How many there are: mostly nobody is, and that is all that is looked at.
    count: AtomicUsize,
    /// A std lock: held for a look.
    names: RwLock<Names>,
}

/// How often each client is one: for its subscriptions, and for one that is being surveyed.
type Names = HashMap<Arc<str>, usize, foldhash::fast::RandomState>;

/// One of them, for as long as this is held.
pub(crate) struct HeavyClient {
    name: Arc<str>,
    heavy: Arc<Heavy>,
}

impl Heavy {
    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether a client, by its name inside, is one.
    pub(crate) fn has(&self, client: &str) -> bool {
        self.any() && self.names.read().unwrap_or_else(PoisonError::into_inner).contains_key(client)
    }

    fn change(&self, change: impl FnOnce(&mut Names)) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut names);
        self.count.store(names.len(), Ordering::Release);
    }

    fn enter(self: &Arc<Self>, name: &Arc<str>) -> HeavyClient {
        self.change(|names| *names.entry(Arc::clone(name)).or_default() += 1);
        HeavyClient { name: Arc::clone(name), heavy: Arc::clone(self) }
    }
}

impl Drop for HeavyClient {
    fn drop(&mut self) {
        self.heavy.change(|names| {
            let left = names.get_mut(&self.name).map_or(0, |count| {
                *count -= 1;
                *count
            });
            if left == 0 {
                names.remove(&self.name);
            }
        });
    }
}

/// How much there is to test for a subscription at each event. One whose conditions depend on where its client is looks, at each move, at all
/// that is live in its areas.
pub(super) fn weight(filters: &[Filter], constraints: u64) -> u64 {
    let reads_client = filters.iter().any(|filter| filter.condition.reads_client());
    constraints + filters.len() as u64 + if reads_client { HEAVY } else { 0 }
}

impl Sessions {
    /// The subscriptions of a client weigh more, and less.
    pub(super) fn weigh(&mut self, client: u32, more: u64, less: u64) {
        let Some(client) = self.clients.get_mut(client) else {
            return violated!("a subscription's client is there");
        };
        client.weight = (client.weight + more).saturating_sub(less);
        let is_routed = client.routed.as_ref().is_some_and(|routed| routed.is_needed());
        match (client.weight >= HEAVY || is_routed, client.heavy.is_some()) {
            (true, false) => client.heavy = Some(self.heavy.enter(&client.name)),
            (false, true) => client.heavy = None,
            (true, true) | (false, false) => return,
        }
        let numbers: Vec<_> = client.subscriptions.values().copied().collect();
        numbers.into_iter().for_each(|number| self.note_constraints(number));
    }

    /// Notes how much the conditions of a subscription that is in force may take of the matching of events.
    pub(super) fn note_constraints(&mut self, number: u32) {
        let Some(held) = self.subscriptions.get(number).filter(|held| !held.activity.is_suspended()) else {
            return;
        };
        let of_many = self.clients.get(held.client).is_some_and(|client| client.heavy.is_some());
        self.matching.installed(number, held.taken.constraints, of_many);
    }

    fn is_much(&self, client: &str, weight: u64) -> bool {
        let partition = self.partition(tenant::split(client).0);
        weight.saturating_mul(self.tracker.live_count_in(partition) as u64) >= MUCH
    }

    /// Begins a survey for a move, where it has much to look at.
    pub(crate) fn survey_move(&self, client: &str, fix: Fix, track: Option<&[Position]>) -> Option<Survey> {
        let id = *self.ids.get(client)?;
        let held = self.clients.get(id).filter(|held| held.heavy.is_some())?;
        self.is_much(client, held.weight).then(|| self.tracker.survey_move(ClientId(id), fix, track))
    }

    /// Begins a survey for an installation, where it has much to look at.
    pub(crate) fn survey_installation(&self, name: &str, prepared: &Prepared) -> Option<Survey> {
        let Prepared { id, filters, nearest, interest, constraints, .. } = prepared;
        if !self.is_much(name, weight(filters, *constraints)) {
            return None;
        }
        let known = self.ids.get(name).copied();
        let previous = known.and_then(|known| self.clients.get(known)?.subscriptions.get(id).copied());
        let client = ClientId(known.unwrap_or(u32::MAX));
        let subscription = Subscription { client, filters: filters.clone() };
        let (previous, partition) = (previous.map(SubscriptionId), self.partition(tenant::split(name).0));
        Some(self.tracker.survey_installation(previous, subscription, nearest.clone(), *interest, partition))
    }

    /// Goes on with a survey for a slice, which may take a part of the time that the step at hand has taken so far; says whether it has come
    /// to its end.
    pub(crate) fn go_on(&self, survey: &mut Survey, part: Duration) -> bool {
        let ends = clock::now() + SLICE.max(part);
        self.tracker.go_on(survey, &mut || clock::now() < ends)
    }

    /// Where the memory of a survey for a client is accounted for.
    pub(crate) fn hold_survey(&self, client: &str) -> Held {
        self.budget.client(client).hold_anyway(Kind::Surveys, 0)
    }

    /// Has all moves of a client wait that come while one of its commands is surveyed.
    pub(crate) fn make_heavy(&self, client: &Arc<str>) -> HeavyClient {
        self.heavy.enter(client)
    }

    /// Has the next change, should it be the one that it was made for, use a survey.
    pub(crate) fn use_survey(&mut self, survey: Option<Survey>) {
        self.survey = survey;
    }
}
