//! Taking up again where another tracker ended: with its live events, its clients' fixes, its subscriptions and, where
//! they were recorded, their standings.

use std::collections::HashMap;
use std::sync::Arc;

use super::deadlines::Due;
use super::events::{Announced, Outdated};
use super::recording::StandingNow;
use super::standing::{Occasion, Overtaken, Scene, Standing};
use super::tracker::{Tracker, Watch};
use super::{Announcement, Cause, Effect, Fix, Interest, Moment, Nearest};
use crate::evaluation;
use crate::event::Event;
use crate::subscription::{Subscription, SubscriptionId};
use crate::violated;

impl<P: Clone> Tracker<P> {
    /// Takes a live event in that was published before; nothing is matched and nobody is told. Of one object the newest is
    /// live. Older ones are there for the subscriptions that [`restore`](Self::restore) makes: for those that know no newer
    /// one, they may be the last by which the object was inside. [`forget_overtaken`](Self::forget_overtaken) ends that.
    ///
    /// The first step of a recovery: all live events, then all fixes by [`move_client`](Self::move_client), which for
    /// clients without subscriptions does no more than keep them, then all subscriptions by [`restore`](Self::restore).
    /// After that the first [`advance`](Self::advance) lets happen what was due in between, in its order, with its
    /// effects. That order is kept only as far as moments can tell it: a caller who cannot say moments of before it
    /// began, and says its beginning in their place, has all dwells end before the lives do that were due then.
    pub fn restore_live(&mut self, live: Announcement<P>) {
        let (sequence, expires) = (live.sequence, live.expires);
        if let Some(older) = self.scene.overtaken_by(&live) {
            self.scene.overtaken.entry(Arc::clone(&live.object)).or_default().push(older);
        }
        if let Announced::Live(event, _) = self.scene.events.announce(live) {
            self.scene.deadlines.push(expires, Due::Expired { event, sequence });
        }
    }

    /// Forgets the events that are live no more: all subscriptions are there again.
    pub fn forget_overtaken(&mut self) {
        self.scene.overtaken = HashMap::default();
    }

    /// Makes a subscription that was there before, in the place of any of its number; nobody is told.
    ///
    /// `known` is what was recorded of it, by object. It then knows just that:
    ///
    /// - For events: those that it has had and that are live still. A newer event of an object is another one, which it
    ///   has not had.
    /// - For transitions: the objects that were inside or on their way and are live still, whichever of their events
    ///   that is: an object stays what it is until it leaves. One that is not inside any more leaves when it is looked
    ///   at next, at an event of its own or a move.
    /// - Where an object has older events, and the subscription does not hold for the live one, its exit tells the newest of
    ///   the others that the subscription holds for, whatever brings it; [`Change::Lost`](super::Change::Lost) where there is none. What waits
    ///   there does not enter.
    /// - What waits enters when it is due, at the first [`advance`](Self::advance) where that has passed.
    /// - All of it is known, even where [`members_max`](super::Settings::members_max) is less by now.
    /// - What is live and inside, but was not recorded, had found no room. It is met at the next occasion, as it would
    ///   have been, as soon as there is room.
    /// - Or it came by an event that is recorded, and its effects are not: [`resume`](Self::resume) tells them.
    ///
    /// With `None` all that is inside is known, silently, as far as there is room: it has had it, or it is a member, also
    /// where objects have to stay before they enter and with `initial`.
    ///
    /// `is_recorded` goes on as [`record_standings`](Self::record_standings) says, with `known` taken for what the record
    /// holds: what of it is dropped is noted, what is taken over is not, and without `known` all that is inside is.
    ///
    /// Cost: what is known, and the first move of the client looks at all that is near; with `None` as for
    /// [`install`](Self::install).
    pub fn restore(
        &mut self,
        id: SubscriptionId,
        subscription: Subscription,
        nearest: Vec<Nearest>,
        interest: Interest,
        is_recorded: bool,
        known: Option<&[(&str, StandingNow)]>,
    ) {
        self.remove(id);
        let mut watch = Watch::new(subscription, nearest, interest);
        watch.is_recorded = is_recorded;
        self.enlist(id, &mut watch);
        match known {
            Some(known) => {
                let fix = self.fix(watch.client).copied();
                for (object, now) in known {
                    watch.remember(&mut self.scene, fix.as_ref(), id, object, *now);
                }
                // The next move looks whether there is.
                (watch.is_restored, watch.has_overflowed) = (true, true);
            }
            None => {
                // Silently: the time does not matter, and the effects are what finds no room.
                let (now, cause, effects) = (Moment::ZERO, Cause::Published, &mut Vec::new());
                let mut occasion = Occasion { now, cause, outdated: None, effects };
                self.catch_up(&mut watch, id, true, None, &mut occasion);
            }
        }
        self.put(id, watch);
    }

    /// After the first [`advance`](Self::advance), where events may be recorded whose effects on a recorded subscription
    /// are not: tells these, as for a subscription that was changed, for what would have brought them is not known any more. Of what finds no room nobody is told: they have been.
    ///
    /// Cost: what is near, and what is inside.
    pub fn resume(&mut self, id: SubscriptionId, now: Moment, effects: &mut Vec<Effect<P>>) {
        let watch = self.watches.get_mut(id.0 as usize).and_then(|watch| watch.take_if(|it| it.is_restored));
        let Some(mut watch) = watch else { return };
        let mut occasion = Occasion { now, cause: Cause::Changed, outdated: None, effects };
        self.catch_up(&mut watch, id, false, None, &mut occasion);
        self.watches[id.0 as usize] = Some(watch);
        // What is inside now is so by its live event.
        let of_it: Vec<_> =
            self.scene.recalled.range((id, 0)..=(id, u32::MAX)).map(|(place, _)| *place).collect();
        for place in of_it {
            self.scene.forget_recalled(place);
        }
        self.clear_up();
    }
}

impl<P> Scene<P> {
    /// The older one of an event and the live one of its object, if there is one.
    fn overtaken_by(&self, new: &Announcement<P>) -> Option<Overtaken<P>>
    where
        P: Clone,
    {
        let live = self.events.get(self.events.of_object(&new.object)?)?;
        let (sequence, event, payload) = if live.sequence < new.sequence {
            (live.sequence, &live.event, &live.payload)
        } else {
            (new.sequence, &new.event, &new.payload)
        };
        Some(Overtaken { sequence, event: Arc::clone(event), payload: payload.clone() })
    }
}

impl Watch {
    /// Knows an object again, if that means anything still.
    fn remember<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        fix: Option<&Fix>,
        id: SubscriptionId,
        object: &str,
        now: StandingNow,
    ) {
        let number = scene.events.of_object(object).filter(|number| {
            let sequence = scene.events.get(*number).map(|live| live.sequence);
            self.is_for_transitions() || sequence == Some(now.sequence)
        });
        let Some(number) = number else {
            if self.is_recorded {
                scene.noted.push((id, Arc::from(object)));
            }
            return;
        };
        // Events are had or not: nothing waits.
        let standing = if self.is_for_transitions() { now.standing } else { Standing::Inside };
        if self.known.contains(number) {
            return;
        }
        if let Some(last) = self.last_inside(scene, fix, object, number, standing) {
            if standing != Standing::Inside {
                if self.is_recorded {
                    scene.noted.push((id, Arc::from(object)));
                }
                return;
            }
            scene.recalled.insert((id, number), last);
        }
        let Some(live) = scene.events.get_mut(number) else { return violated!("an object's number is held") };
        live.known_to.insert(id);
        self.known.insert(number, standing);
        if let Standing::Waiting { until, .. } = standing {
            scene.deadlines.push(until, Due::Dwelt { subscription: id, event: number });
        }
    }

    /// Where an object that is known has a live event that the subscription does not hold for, and older ones: the newest of
    /// these that it holds for, if there is one.
    fn last_inside<P: Clone>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        object: &str,
        number: u32,
        standing: Standing,
    ) -> Option<Option<Outdated<P>>> {
        let overtaken = scene.overtaken.get(object).filter(|_| self.is_for_transitions())?;
        let live = scene.events.get(number)?;
        if self.may_hold(scene, fix, &live.event, standing) {
            return None;
        }
        let older = overtaken.iter().filter(|older| self.may_hold(scene, fix, &older.event, standing));
        let last = older.max_by_key(|older| older.sequence);
        Some(last.map(|last| Outdated { sequence: last.sequence, payload: last.payload.clone() }))
    }

    /// Whether an event is inside, but for how many others are nearer.
    fn may_hold<P>(&self, scene: &Scene<P>, fix: Option<&Fix>, event: &Event, standing: Standing) -> bool {
        evaluation::reaches(scene.world, event, fix.map(|fix| &fix.position))
            && self.filters.iter().any(|filter| self.holds(scene, filter, fix, event, Some(standing)))
    }
}
