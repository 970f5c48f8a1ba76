//! The costs of a shard's clients to its engine, and the subscriptions that cause them.
//!
//! A client pays for its commands. What it has cost is counted with the client and charged to its account a millisecond or more at a
//! time, so that ordinary commands cost no more for being measured.
//!
//! The cost of an event is its publisher's affair, except for the work that a few subscriptions make of it. Where it takes
//! long to hold a live event against those that stand, or any event against long conditions (`matching.rs`), the time is
//! ascribed to these. A subscription that goes on costing much of what others publish is suspended.

use std::sync::Arc;
use std::time::Duration;

use matcher::live::Moment;
use matcher::subscription::SubscriptionId;
use matcher::violated;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::Sessions;
use crate::model::delivery::GapReason;
use crate::model::error::Cost;
use crate::model::{clock, tenant};

/// So much is charged at once, or more.
const CHARGED: Duration = Duration::from_millis(1);

/// The least time that is charged for a command without a client of its own.
const LEAST: Duration = Duration::from_micros(50);

/// A move that takes longer is ascribed to subscriptions, and of events as much together.
pub(super) const LONG: Duration = Duration::from_millis(1);

/// Time after which half of a subscription's cost counts no more.
const HALF_LIFE: Duration = Duration::from_secs(60);

/// Seconds whose worth the subscriptions of a client may cost by the events of others, within a minute or so.
const BY_EVENTS_S: f64 = 30.0;

/// Subscriptions that are named.
const NAMED: usize = 3;

/// The payer of a command.
#[derive(Clone, Debug)]
pub(crate) enum Payer {
    /// A client of the shard, for one of its subscriptions or all of them.
    Client { id: u32, subscription: Option<u32> },
    /// Any client, by its name inside.
    Name(Arc<str>),
}

/// The costs of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    total: Duration,
    /// The part of the total that has not been charged yet.
    open: Duration,
    /// The recent cost of its subscriptions by the events of others.
    by_events: Recent,
}

/// The recent cost of a subscription.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    ms: f64,
    at: Moment,
}

/// The share of a subscription in the cost of an event.
struct Share {
    client: u32,
    number: u32,
    weight: f64,
}

/// Time that nobody has been charged for yet. When it is enough, what is at hand is looked into and stands for all since the last time:
/// the longer something took, the more likely it is the one.
#[derive(Debug)]
pub(super) struct Open {
    sum: Duration,
    enough: Duration,
    random: StdRng,
}

impl Open {
    pub(super) fn new(seed: u64) -> Self {
        Self { sum: Duration::ZERO, enough: LONG, random: StdRng::seed_from_u64(seed) }
    }

    /// Adds what something took. Gives back all that there is once it is enough.
    pub(super) fn add(&mut self, took: Duration) -> Option<Duration> {
        self.sum += took;
        (self.sum >= self.enough).then(|| std::mem::take(&mut self.sum))
    }

    /// About how much is enough from here on: nobody is to know what will be looked into.
    pub(super) fn wait(&mut self, about: Duration) {
        self.enough = about.mul_f64(self.random.random_range(0.5..1.5));
    }
}

pub(super) fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

impl Costs {
    /// Since the client is known.
    pub(super) fn total_ms(&self) -> u64 {
        u64::try_from(self.total.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Recent {
    fn add(&mut self, ms: f64, now: Moment) {
        *self = Self { ms: self.ms(now) + ms, at: now };
    }

    fn ms(&self, now: Moment) -> f64 {
        let passed = now.saturating_sub(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.ms * (-passed).exp2()
    }
}

impl Sessions {
    /// Names the payer of the command at hand.
    pub(crate) fn paid_by(&mut self, payer: Payer) {
        self.payer = Some(payer);
    }

    /// A step begins.
    pub(crate) fn begin_work(&mut self) {
        self.worked_before = clock::worked();
    }

    /// Returns the time that the thread can have worked in a part of the step that took `took`. On a busy machine a thread
    /// waits for its turn, for which no client pays. Only a part that took long is worth the system call.
    pub(crate) fn worked(&self, took: Duration) -> Duration {
        if took < LONG { took } else { took.min(clock::worked().saturating_sub(self.worked_before)) }
    }

    /// Charges the payer of the command at hand for the time that it took. That of its survey has been charged, but is ascribed with it.
    pub(crate) fn charge(&mut self, took: Duration, surveyed: Duration) {
        match self.payer.take() {
            None => {}
            Some(Payer::Client { id, subscription }) => self.charge_client(id, subscription, took, surveyed),
            Some(Payer::Name(_)) if took < LEAST => {}
            Some(Payer::Name(name)) => match self.ids.get(&name) {
                Some(id) => self.charge_client(*id, None, took, surveyed),
                None => {
                    self.engine_time.charge(&name, took, clock::now());
                }
            },
        }
    }

    /// Charges a client, by its name inside, for a slice of a survey.
    pub(crate) fn charge_slice(&mut self, client: &str, took: Duration) {
        let Some(id) = self.ids.get(client).copied() else {
            self.engine_time.charge(client, took, clock::now());
            return;
        };
        if let Some(client) = self.clients.get_mut(id) {
            client.costs.total += took;
            client.costs.open += took;
        }
        self.charge_open(id, CHARGED);
    }

    fn charge_client(&mut self, id: u32, subscription: Option<u32>, took: Duration, surveyed: Duration) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.costs.total += took;
        client.costs.open += took;
        let took = took + surveyed;
        if let Some(held) = subscription.and_then(|number| self.subscriptions.get_mut(number)) {
            held.cost.add(took.as_secs_f64() * 1e3, self.now);
        } else if took >= LONG {
            self.ascribe(id, took);
        }
        // Only now it is known what the slices were for.
        self.charge_open(id, if surveyed.is_zero() { CHARGED } else { Duration::ZERO });
    }

    /// Charges what a client has not paid yet, should it be as much.
    pub(super) fn charge_open(&mut self, id: u32, least: Duration) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if client.costs.open < least || client.costs.open.is_zero() {
            return;
        }
        let open = std::mem::take(&mut client.costs.open);
        if self.engine_time.charge(&client.name, open, clock::now()) {
            let (name, confinement) = (Arc::clone(&client.name), client.confinement.clone());
            self.engine_time.explain(&name, self.costliest(id), confinement);
        }
    }

    /// Ascribes what a client cost to its subscriptions, by how much there is to look at for each.
    fn ascribe(&mut self, id: u32, took: Duration) {
        let Some(client) = self.clients.get(id) else {
            return violated!("a client that is charged is there");
        };
        let weigh = |number: &u32| {
            let constraints = self.subscriptions.get(*number).map_or(0, |held| held.taken.constraints);
            let known = self.tracker.known_count(SubscriptionId(*number)) as u64;
            #[expect(clippy::cast_precision_loss, reason = "there are some millions at most")]
            let weight = (1 + constraints) as f64 * (1 + known) as f64;
            (*number, weight)
        };
        let weights: Vec<_> = client.subscriptions.values().map(weigh).collect();
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        for (number, weight) in weights {
            if let Some(held) = self.subscriptions.get_mut(number) {
                held.cost.add(took.as_secs_f64() * 1e3 * weight / all, self.now);
            }
        }
    }

    /// A live event took this long to be compared with the standing subscriptions. Now and then the owners of those that took much of it pay
    /// for all that came since the last time, each for what the tracker did for it. What many took a little of, nobody pays for.
    pub(super) fn charge_event(&mut self, took: Duration) {
        let Some(open) = self.standing.add(took) else { return };
        let (of, all) = self.tracker.demanding();
        self.charge_shares(open, &of, all.max(nanoseconds(took)));
        self.standing.wait(LONG);
    }

    /// Charges the owners of subscriptions, each with what it took of the work, of which there was so much.
    pub(super) fn charge_shares(&mut self, took: Duration, of: &[(SubscriptionId, u64)], all: u64) {
        let mut shares: Vec<_> = of.iter().filter_map(|(id, work)| self.share(*id, *work)).collect();
        shares.sort_by_key(|share| share.number);
        shares.dedup_by(|more, first| {
            let is_same = more.number == first.number;
            first.weight += if is_same { more.weight } else { 0.0 };
            is_same
        });
        #[expect(clippy::cast_precision_loss, reason = "there are some billions at most")]
        let all = all.max(1) as f64;
        shares.sort_by_key(|share| share.client);
        for of_client in shares.chunk_by(|a, b| a.client == b.client) {
            let id = of_client[0].client;
            let weight: f64 = of_client.iter().map(|share| share.weight).sum();
            let ms = took.as_secs_f64() * 1e3 / all;
            for share in of_client {
                if let Some(held) = self.subscriptions.get_mut(share.number) {
                    held.cost.add(ms * share.weight, self.now);
                }
            }
            let Some(client) = self.clients.get_mut(id) else {
                violated!("a subscription's client is there");
                continue;
            };
            let part = took.mul_f64(weight / all);
            client.costs.total += part;
            client.costs.open += part;
            client.costs.by_events.add(ms * weight, self.now);
            let is_beyond = self.engine_time.is_beyond(client.costs.by_events.ms(self.now), BY_EVENTS_S);
            self.charge_open(id, CHARGED);
            if is_beyond {
                self.suspend_costliest(id, of_client);
            }
        }
    }

    fn share(&self, id: SubscriptionId, work: u64) -> Option<Share> {
        let client = self.subscriptions.get(id.0)?.client;
        #[expect(clippy::cast_precision_loss, reason = "there are some billions at most")]
        let weight = work as f64;
        Some(Share { client, number: id.0, weight })
    }

    /// Suspends, of the subscriptions of a client that an event was compared with, those that cost at least half as much as the costliest.
    fn suspend_costliest(&mut self, id: u32, shares: &[Share]) {
        let most = shares.iter().map(|share| share.weight).fold(0.0, f64::max);
        let costliest = self.costliest(id);
        for share in shares.iter().filter(|share| share.weight * 2.0 >= most) {
            self.suspend(share.number);
        }
        let Some(client) = self.clients.get_mut(id) else {
            return violated!("a client that is charged is there");
        };
        client.costs.by_events = Recent::default();
        let refusal = self.engine_time.refusal(costliest);
        let (tenant, name) = tenant::split(&client.name);
        tracing::warn!(
            tenant,
            client = name,
            "its costliest subscriptions are suspended: {}",
            refusal.code()
        );
        for reader in &client.readers {
            reader.push_answer(refusal.frame(None));
        }
        // From here on something is missing, for later connections as well.
        self.tell_loss(id, GapReason::Overflow);
        self.wake_readers();
    }

    /// Has a subscription find nothing any more, until it is made anew.
    fn suspend(&mut self, number: u32) {
        self.engine.remove(SubscriptionId(number));
        self.tracker.remove(SubscriptionId(number));
        self.matching.ended(number);
        let Some(held) = self.subscriptions.get_mut(number) else {
            return violated!("a subscription that is charged is there");
        };
        held.activity.suspend();
        self.metrics.suspended.add(1);
        // It begins anew, whether it is put again or the broker is started: what it had inside is not known then.
        if let (true, Some(client)) = (held.is_stored, self.clients.get(held.client))
            && let Some(batch) = self.ledger.record()
        {
            batch.remove_standings(&client.name, &held.id);
        }
    }

    /// The subscriptions of a client that cost most.
    fn costliest(&self, id: u32) -> Vec<Cost> {
        let Some(client) = self.clients.get(id) else {
            violated!("a client that is charged is there");
            return Vec::new();
        };
        let held = client.subscriptions.values().filter_map(|number| self.subscriptions.get(*number));
        let mut costs: Vec<_> = held.map(|held| (held.cost.ms(self.now), &held.id)).collect();
        costs.sort_by(|a, b| b.0.total_cmp(&a.0));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let cost = |(ms, id): &(f64, &Arc<str>)| Cost { subscription: Arc::clone(id), ms: ms.round() as u64 };
        costs.iter().take(NAMED).map(cost).filter(|cost| cost.ms > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_little_each_time_comes_together() {
        let mut open = Open::new(1);
        let mut given = Vec::new();
        for _ in 0..1_000 {
            if let Some(all) = open.add(LONG / 100) {
                given.push(all);
                open.wait(LONG);
            }
        }
        assert_eq!(given.iter().sum::<Duration>() + open.sum, LONG * 10);
        assert!(given.len() > 5 && given.iter().any(|all| *all != given[0]), "{given:?}");
    }
}
