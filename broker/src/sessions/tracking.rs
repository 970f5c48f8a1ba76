//! Live events of one shard: the clients that receive them when they come, when a client moves, and when their time is
//! up.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use matcher::live::{Announcement, Change, Effect, Moment, Partition};
use matcher::subscription::SubscriptionId;

use super::Sessions;
use super::fanout::Trigger;
use super::lives_clock::{moment_of, unix_ms_of};
use crate::ingest::Confinement;
use crate::model::delivery::{GapReason, Transition};
use crate::model::event::{Body, Live, Placed, Published};
use crate::model::{clock, tenant};
use crate::store::StoredLive;

impl Sessions {
    /// The time as the tracker counts it.
    pub(super) fn moment(&self, at: Instant) -> Moment {
        at.saturating_duration_since(self.started)
    }

    /// When [`advance`](Self::advance) may have something to do next.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let live = self.tracker.next_deadline().filter(|at| self.lives_clock.gets_to(*at));
        let live = live.map(|moment| self.started + moment);
        let unfinished =
            (!self.unfinished.is_empty() || self.is_listing() || self.is_querying()).then_some(self.started);
        let doubt = self.timeline.doubt().map(|(_, ends)| ends);
        let idle = self.idle.next_look(self.ids.len());
        let stamp = self.next_stamp();
        [unfinished, live, self.ledger.next_deadline(), self.next_date(), doubt, idle, stamp]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether there are live events, which a move may have to do with.
    pub(crate) fn has_live(&self) -> bool {
        self.tracker.live_count() > 0
    }

    /// Lets everything happen whose time has come.
    pub(crate) fn advance(&mut self) {
        let now = clock::now();
        self.now = self.moment(now);
        self.lives_now = self.lives_clock.at(self.now);
        let is_settled = self.follow_clock(now);
        let unfinished = std::mem::take(&mut self.unfinished);
        self.fit(&unfinished.kept);
        for object in unfinished.revoked {
            self.tracker.revoke_object(&object, self.lives_now, &mut self.effects);
            self.deal();
        }
        self.end_lives();
        self.catch_up(&unfinished.subscriptions);
        if is_settled {
            self.end_doubtful();
        }
        self.log.end_expired(self.lives_now);
        self.let_go(now);
        self.forget_idle(now);
        self.wake_readers();
    }

    /// Everything has been read that the stream of events got up to a time.
    pub(crate) fn has_read_until(&mut self, at: Instant) {
        self.lives_clock.read_until(self.moment(at));
    }

    /// An event of the stream comes next: the time is that of its acceptance at least.
    pub(super) fn go_on_to(&mut self, published: &Published) {
        if published.place.is_none() {
            return;
        }
        let accepted = published.body.first_received_ms.map_or_else(
            || self.moment(published.body.received),
            |at_ms| moment_of(at_ms.get(), self.moment(clock::now()), clock::unix_ms()),
        );
        self.lives_clock.read_until(accepted);
        self.lives_now = self.lives_clock.at(self.now);
        self.end_lives();
    }

    /// Lets lives and dwells end for which it is time.
    fn end_lives(&mut self) {
        while self.tracker.advance(self.lives_now, &mut self.effects) {
            self.deal();
        }
    }

    /// Looks at the clock; says whether it is known now that a jump of it was right or wrong.
    fn follow_clock(&mut self, now: Instant) -> bool {
        let before = self.timeline.doubt();
        let is_settled = self.timeline.advance(now, clock::unix_ms());
        self.unix_ms = self.timeline.unix_ms();
        if let (true, Some((ahead, ends))) = (self.writes_live, self.timeline.doubt())
            && before.is_none_or(|(_, before)| before != ends)
        {
            tracing::warn!(
                ahead_s = ahead.as_secs(),
                doubt_s = clock::DOUBT.as_secs(),
                "the clock has jumped ahead; what is kept and is too old by that stays for doubt_s, and goes if the clock still says so then"
            );
        }
        is_settled
    }

    /// A doubt is over: lives end by the time that counts now.
    fn end_doubtful(&mut self) {
        let ages_ms = self.timeline.ages_ms();
        for (object, sequence, expires_ms) in std::mem::take(&mut self.doubtful) {
            self.tracker.expire_object(&object, sequence, moment_of(expires_ms, self.now, ages_ms));
        }
        self.end_lives();
        self.look_at_all_dates(clock::now());
    }

    /// Tells what came to subscriptions before another run of the broker ended, to each client in the order in which the
    /// events came.
    fn catch_up(&mut self, subscriptions: &[SubscriptionId]) {
        let mut effects = Vec::new();
        for subscription in subscriptions {
            self.tracker.resume(*subscription, self.lives_now, &mut effects);
        }
        effects.sort_by_key(|effect| effect.sequence);
        for of_one in effects.chunk_by(|a, b| a.sequence == b.sequence) {
            self.effects.extend_from_slice(of_one);
            self.deal();
        }
    }

    /// Where a tenant's clients and live events meet. Should two tenants have one number, that costs time and nothing else:
    /// it is their filters that keep them apart.
    pub(super) fn partition(&self, tenant: &str) -> Partition {
        self.partitions.as_ref().map_or_else(Partition::default, |keys| Partition(keys.hash_one(tenant)))
    }

    /// Takes a live event in, the `index`-th of the batch.
    pub(super) fn announce(&mut self, index: usize, published: &Arc<Published>, live: &Live) {
        let Live { object, id, sequence, expires, .. } = live;
        let new = Announcement {
            object: Arc::clone(object),
            id: Arc::clone(id),
            sequence: *sequence,
            expires: self.moment(*expires),
            partition: self.partition(tenant::of(&published.event)),
            event: Arc::clone(&published.event),
            payload: Arc::clone(published),
        };
        // Another shard had come to it before the broker began again; what it brought was told when this one took it up.
        if published.place.is_some() && self.tracker.live_of(object).and_then(sequence_of) == Some(*sequence)
        {
            return;
        }
        let before = self.current_body(object);
        let began = clock::now();
        self.tracker.publish(new, self.rows.row(index), self.lives_now, &mut self.effects);
        let took = clock::now().saturating_duration_since(began);
        // A durable subscription that knows it already has no standing that changes, and its end will be written.
        // A shard that has written that it dealt a finding out has written the finding, too.
        if self.writes_live || self.tracker.is_recorded(object) || published.origin.is_some() {
            self.ledger.concern(object);
            self.ledger.expect(published.body.text.len());
        }
        self.deal();
        self.charge_event(self.worked(took));
        // Of the two one is live no more, or, where the newer one came first, never was.
        let now = self.moment(published.body.received);
        let current = self.current_body(object);
        for body in before.iter().chain([&published.body]) {
            if current.as_ref().is_some_and(|current| !Arc::ptr_eq(current, body)) {
                self.log.end(body, now);
            }
        }
    }

    fn current_body(&self, object: &str) -> Option<Arc<Body>> {
        if !self.log.is_kept() {
            return None;
        }
        self.tracker.live_of(object).map(|published| Arc::clone(&published.body))
    }

    /// Writes a live event, if no shard has yet.
    pub(super) fn record_live(&mut self, published: &Arc<Published>) {
        let Some(live) = &published.live else { return };
        if !live.is_written.load(Ordering::Acquire) {
            self.put_live(published, live, false);
        }
    }

    fn put_live(&mut self, published: &Arc<Published>, live: &Live, is_revoked: bool) {
        let Some(body) = self.ledger.body(&published.body, self.timeline.ages_ms()) else { return };
        let Live { object, id, sequence, .. } = live;
        let stored = StoredLive {
            object: Arc::clone(object),
            id: Arc::clone(id),
            sequence: *sequence,
            expires_ms: unix_ms_of(self.moment(live.expires), self.now, self.unix_ms),
            is_revoked,
            body,
        };
        if let Some(batch) = self.ledger.record() {
            batch.put_live(&stored);
        }
        self.ledger.track_record(live);
        self.ledger.wrote_live(published);
    }

    /// Ends the live events of an id, of these those that a confinement holds for; says whether there was one.
    ///
    /// Each shard writes that they are over, together with what it tells of that: after a crash in between all of them find
    /// them ended, and those that had not told it yet do.
    pub(crate) fn revoke(
        &mut self,
        id: &str,
        confinement: Option<&Confinement>,
        place: Option<Placed>,
    ) -> bool {
        if self.has_had(place) {
            return false;
        }
        self.came_to(place);
        let live = self.tracker.live(id).map(|(_, published, _)| published);
        let ended: Vec<_> = live
            .filter(|published| place.is_none_or(|place| published.place.is_none_or(|of| of.at < place.at)))
            .filter(|published| confinement.is_none_or(|confinement| confinement.holds(&published.event)))
            .map(Arc::clone)
            .collect();
        for published in &ended {
            if let Some(live) = &published.live {
                self.put_live(published, live, true);
            }
        }
        for live in ended.iter().filter_map(|published| published.live.as_ref()) {
            self.tracker.revoke_object(&live.object, self.lives_now, &mut self.effects);
        }
        self.deal();
        for published in &ended {
            self.log.end(&published.body, self.lives_now);
        }
        self.wake_readers();
        !ended.is_empty()
    }

    /// Tells what an installed subscription brought.
    pub(crate) fn tell_changes(&mut self) {
        self.deal();
        self.wake_readers();
    }

    /// Tells the effects of one step: to each client each event once for each of the things that happened to it, with
    /// all subscriptions that it happened in.
    pub(super) fn deal(&mut self) {
        if self.effects.is_empty() {
            return;
        }
        let mut effects = std::mem::take(&mut self.effects);
        let mut told: Vec<(u32, &Effect<Arc<Published>>)> = effects
            .iter()
            .filter_map(|effect| Some((self.subscriptions.get(effect.subscription.0)?.client, effect)))
            .collect();
        let kind =
            |(client, effect): &(u32, &Effect<_>)| (*client, effect.change, effect.sequence, effect.cause);
        told.sort_by_key(|one| (kind(one), one.1.subscription));
        let mut numbers = Vec::new();
        for group in told.chunk_by(|a, b| kind(a) == kind(b)) {
            let (client, effect) = group[0];
            numbers.clear();
            numbers.extend(group.iter().map(|(client, effect)| (*client, effect.subscription.0)));
            let transition = match effect.change {
                Change::Left => Some(Transition::Exit),
                Change::Entered => Some(Transition::Enter),
                Change::Reached => None,
                Change::Refused => {
                    self.tell_loss(client, GapReason::Members);
                    continue;
                }
                Change::Lost => {
                    self.tell_loss(client, GapReason::Overflow);
                    continue;
                }
            };
            let published = &effect.payload;
            let live = published.live.as_ref();
            let entry = live.and_then(|live| self.log.of_live(&published.body, self.moment(live.expires)));
            let is_kept = self.clients.get(client).is_some_and(|client| client.durable.is_some());
            if let Some(live) = live.filter(|_| is_kept) {
                self.ledger.concern(&live.object);
            }
            let occurrence = Trigger { cause: effect.cause, transition, body: &published.body, entry };
            self.deliver_to(client, &numbers, &occurrence);
        }
        drop(told);
        effects.clear();
        self.effects = effects;
    }

    /// Whether an event that is not live is for a subscription that it satisfies.
    pub(super) fn takes_passing(&self, number: u32, published: &Published) -> bool {
        self.tracker.takes_passing(SubscriptionId(number), &published.event)
    }
}

fn sequence_of(published: &Arc<Published>) -> Option<u64> {
    published.live.as_ref().map(|live| live.sequence)
}
