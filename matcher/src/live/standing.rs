//! How a live event stands to a subscription, and what it takes to change that.

mod inside;
mod scene;

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use super::deadlines::Due;
use super::events::Live;
use super::nearest::Ranking;
use super::search::{Range, Scratch};
use super::survey::Findings;
use super::tracker::{Watch, Way};
use super::{Cause, Change, Effect, Fix, Interest, Moment, Settings, Transitions};
use crate::evaluation;
use crate::event::Event;
use crate::subscription::SubscriptionId;
use crate::violated;
pub(super) use scene::{LOOK_NS, Occasion, Overtaken, Recalled, Scene};

/// How a live event stands to a subscription that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The subscription has had it, or its object is inside.
    Inside,
    /// Its object is there, and has to stay before it enters.
    Waiting {
        /// When it enters.
        until: Moment,
        /// Reason for its coming, with which its enter is told.
        cause: Cause,
    },
}

impl Watch {
    pub(super) fn transitions(&self) -> Option<&Transitions> {
        match &self.interest {
            Interest::Events => None,
            Interest::Transitions(transitions) => Some(transitions),
        }
    }

    pub(super) fn is_for_transitions(&self) -> bool {
        self.transitions().is_some()
    }

    /// Begins to know an event; `silently` where nobody is to be told of what was there before.
    pub(super) fn meet<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        number: u32,
        silently: bool,
    ) {
        let Some(live) = scene.events.get_mut(number) else {
            return violated!("an event that is met is held");
        };
        let transitions = self.transitions().copied();
        let mut effect = Effect {
            subscription: id,
            change: if transitions.is_some() { Change::Entered } else { Change::Reached },
            cause: occasion.cause,
            sequence: live.sequence,
            payload: live.payload.clone(),
        };
        if self.room(&scene.settings) == 0 {
            self.overflow();
            if let Some(how) = transitions {
                effect.change = Change::Refused;
                // It stands for the enter, or for the exit of what is there without a word.
                if !(how.exit || how.enter && !silently) {
                    return;
                }
            }
            occasion.effects.push(effect);
            return;
        }
        let mut standing = Standing::Inside;
        let mut tells = !silently;
        if let Some(transitions) = transitions {
            if !transitions.dwell.is_zero() && !silently {
                let until = occasion.now + transitions.dwell;
                standing = Standing::Waiting { until, cause: occasion.cause };
                scene.deadlines.push(until, Due::Dwelt { subscription: id, event: number });
                tells = false;
            }
            tells &= transitions.enter;
        }
        live.known_to.insert(id);
        self.known.insert(number, standing);
        if self.is_recorded {
            scene.noted.push((id, Arc::clone(&live.object)));
        }
        if tells {
            occasion.effects.push(effect);
        }
    }

    /// An object has stayed for long enough.
    pub(super) fn enter<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        effects: &mut Vec<Effect<P>>,
        id: SubscriptionId,
        number: u32,
        at: Moment,
    ) {
        let Some(Standing::Waiting { until, cause }) = self.known.get(number) else { return };
        if until == at {
            self.enter_now(scene, effects, id, number, cause);
        }
    }

    fn enter_now<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        effects: &mut Vec<Effect<P>>,
        id: SubscriptionId,
        number: u32,
        cause: Cause,
    ) {
        let Some(live) = scene.events.get(number) else {
            return violated!("an event that a subscription knows is held");
        };
        self.known.insert(number, Standing::Inside);
        if self.is_recorded {
            scene.noted.push((id, Arc::clone(&live.object)));
        }
        if self.transitions().is_some_and(|transitions| transitions.enter) {
            effects.push(Effect {
                subscription: id,
                change: Change::Entered,
                cause,
                sequence: live.sequence,
                payload: live.payload.clone(),
            });
        }
    }

    /// After a change of how long objects have to stay: those on the way have stayed since they came, and enter when
    /// they have for as long as it takes now, or at once.
    pub(super) fn change_dwell<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        before: Duration,
    ) {
        let Some(dwell) = self.transitions().map(|how| how.dwell).filter(|dwell| *dwell != before) else {
            return;
        };
        let waiting = self.known.iter().filter_map(|(number, standing)| match standing {
            Standing::Waiting { until, cause } => {
                Some((scene.events.get(number)?.sequence, number, until, cause))
            }
            Standing::Inside => None,
        });
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable_by_key(|(sequence, ..)| *sequence);
        for (_, number, until, cause) in waiting {
            // What is restored may have come before the time that moments count from.
            let until = (until + dwell).saturating_sub(before);
            if until <= occasion.now {
                self.enter_now(scene, occasion.effects, id, number, occasion.cause);
                continue;
            }
            self.known.insert(number, Standing::Waiting { until, cause });
            scene.deadlines.push(until, Due::Dwelt { subscription: id, event: number });
            if let (true, Some(live)) = (self.is_recorded, scene.events.get(number)) {
                scene.noted.push((id, Arc::clone(&live.object)));
            }
        }
    }

    /// An object is inside no more. The caller takes the subscription off the event's list.
    pub(super) fn part<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        number: u32,
        (sequence, payload): (u64, &P),
    ) {
        let standing = self.known.remove(number);
        let recalled = scene.forget_recalled((id, number));
        if standing == Some(Standing::Inside) && self.transitions().is_some_and(|how| how.exit) {
            let change = if matches!(recalled, Some(None)) { Change::Lost } else { Change::Left };
            let (sequence, payload) = match (&recalled, &occasion.outdated) {
                (Some(Some(last)), _) => (last.sequence, &last.payload),
                (None, Some((of, outdated))) if *of == number => (outdated.sequence, &outdated.payload),
                _ => (sequence, payload),
            };
            occasion.effects.push(Effect {
                subscription: id,
                change,
                cause: occasion.cause,
                sequence,
                payload: payload.clone(),
            });
        }
    }

    /// An object is inside no more, and its event goes on living. The subscription is taken off the event's list here.
    pub(super) fn leave<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        number: u32,
    ) {
        let Some(live) = scene.events.get_mut(number) else {
            return violated!("an event that a subscription knows is held");
        };
        live.known_to.remove(id);
        if self.is_recorded {
            scene.noted.push((id, Arc::clone(&live.object)));
        }
        let (sequence, payload) = (live.sequence, live.payload.clone());
        self.part(scene, occasion, id, number, (sequence, &payload));
    }

    /// Looks again at what is known and could have left, by location or otherwise. `nearest` are in the order of their
    /// numbers.
    pub(super) fn review<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        fix: Option<&Fix>,
        nearest: &[u32],
        findings: Option<&Findings>,
    ) {
        let mut left = Vec::new();
        let mut hints = Vec::new();
        for (number, standing) in self.known.iter() {
            if nearest.binary_search(&number).is_ok() {
                continue;
            }
            let Some(live) = scene.events.get(number) else { continue };
            let hint = self.known.hint(number);
            let surveyed = findings.and_then(|findings| findings.inside_by(number, standing));
            let look = || self.inside_by_hint(scene, fix, &live.event, Some(standing), hint);
            match surveyed.unwrap_or_else(look) {
                None => left.push((live.sequence, number)),
                by if by != hint => hints.push((number, by)),
                Some(_) => {}
            }
        }
        for (number, hint) in hints {
            self.known.set_hint(number, hint);
        }
        self.leave_all(scene, occasion, id, left);
    }

    /// A filter by which a known event is inside, the one before others that was so last.
    pub(super) fn inside_by_hint<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
        hint: Option<u32>,
    ) -> Option<u32> {
        let is_by_hint = |hint: &u32| self.is_still_there(scene, *hint, fix, event);
        hint.filter(is_by_hint).or_else(|| self.inside_by(scene, fix, event, standing))
    }

    /// Whether a member's event is in the area of a filter whose condition is known to have been true of it.
    fn is_still_there<P>(&self, scene: &Scene<P>, filter: u32, fix: Option<&Fix>, event: &Event) -> bool {
        let filter = &self.filters[filter as usize];
        let position = fix.map(|fix| &fix.position);
        self.is_there(scene, filter, fix, event, Some(Standing::Inside))
            && evaluation::reaches(scene.world, event, position)
            && (!filter.condition.reads_client() || scene.condition_holds(filter, position, event))
    }

    pub(super) fn leave_all<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        mut left: Vec<(u64, u32)>,
    ) {
        left.sort_unstable();
        for (_, number) in left {
            self.leave(scene, occasion, id, number);
        }
    }

    /// The client has moved: what is inside no more leaves, and what it came to is met.
    ///
    /// Cost: where no area follows it and none of the nearest count, the events whose own area it entered or left.
    pub(super) fn follow<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        mut occasion: Occasion<'_, P>,
        id: SubscriptionId,
        way: &Way<'_>,
        findings: Option<&Findings>,
        scratch: &mut Scratch,
    ) {
        let counts = self.counts_nearest();
        let misses_some = self.has_overflowed && self.is_for_transitions();
        let looks_at_known = self.follows || counts || way.may_leave_any || self.is_restored;
        if !looks_at_known && !misses_some && way.entered.is_empty() && way.left.is_empty() {
            return;
        }
        // An event's own area means nothing to a client that is nowhere.
        let news = way.after.map(|_| way.entered);
        let nearest = self.count_nearest(scene, way.after, news, findings);
        if looks_at_known && self.is_for_transitions() {
            self.review(scene, &mut occasion, id, way.after, &nearest, findings);
        } else if self.is_for_transitions() {
            // Their own area holds the client no more, which none of the filters can make up for.
            let known = way.left.iter().filter(|number| self.known.contains(**number));
            let left = known.filter_map(|number| Some((scene.events.get(*number)?.sequence, *number)));
            let left = left.collect();
            self.leave_all(scene, &mut occasion, id, left);
        }
        scratch.found.clear();
        let looks_at_all = misses_some && self.room(&scene.settings) > 0;
        if looks_at_all {
            self.find_surveyed(scene, &Range::Inside(way.after), findings, scratch);
        } else if let Some(after) = way.after {
            self.find_surveyed(scene, &Range::News { before: way.before, after }, findings, scratch);
            let is_news = |number: &&u32| {
                let live = scene.events.get(**number).filter(|_| !self.known.contains(**number));
                let surveyed = findings.and_then(|findings| findings.is_inside(**number));
                let look = |live: &Live<P>| self.is_inside(scene, way.after, &live.event, None);
                live.is_some_and(|live| surveyed.unwrap_or_else(|| look(live)))
            };
            scratch.found.extend(way.entered.iter().filter(is_news));
        }
        let found = &mut scratch.found;
        found.extend(nearest);
        if misses_some {
            self.has_overflowed = !looks_at_all;
            let nearest_before = OnceCell::new();
            self.leave_out(scene, found, |watch, number| {
                let Some(live) = scene.events.get(number) else { return false };
                let nearest_before = nearest_before.get_or_init(|| watch.nearest_at(scene, way.before));
                let surveyed = findings.and_then(|findings| findings.was_inside(number));
                let look = || watch.is_inside(scene, way.before, &live.event, None);
                nearest_before.binary_search(&number).is_err() && !surveyed.unwrap_or_else(look)
            });
        }
        self.meet_all(scene, &mut occasion, id, found, false);
    }

    /// For how many more there is room, in the subscription and among all of its client.
    pub(super) fn room(&self, settings: &Settings) -> usize {
        if self.known.is_unbounded() {
            return usize::MAX;
        }
        let Settings { members_max, members_per_client, .. } = *settings;
        let of_client = members_per_client.saturating_sub(self.known.of_client());
        members_max.saturating_sub(self.known.len()).min(of_client)
    }

    /// Leaves out what is not known, finds no room and is not new, so that nobody is told of it again.
    pub(super) fn leave_out<P>(
        &mut self,
        scene: &Scene<P>,
        found: &mut Vec<u32>,
        is_new: impl Fn(&Self, u32) -> bool,
    ) {
        self.put_in_order(scene, found);
        let room = self.room(&scene.settings);
        if found.len() <= room {
            return;
        }
        self.overflow();
        let mut place = 0;
        found.retain(|number| {
            place += 1;
            place <= room || is_new(self, *number)
        });
    }

    /// Something that is inside is not known.
    fn overflow(&mut self) {
        self.has_overflowed = true;
        self.rankings.fill(Ranking::default());
    }

    /// Begins to know all that it does not know yet, in the order in which they were published.
    pub(super) fn meet_all<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        found: &mut Vec<u32>,
        silently: bool,
    ) {
        self.put_in_order(scene, found);
        for number in found.drain(..) {
            self.meet(scene, occasion, id, number, silently);
        }
    }

    fn put_in_order<P>(&self, scene: &Scene<P>, found: &mut Vec<u32>) {
        found.retain(|number| !self.known.contains(*number));
        found.sort_unstable_by_key(|number| scene.events.get(*number).map(|live| live.sequence));
        found.dedup();
    }

    /// Knows an event no more, of which nobody is told.
    pub(super) fn forget<P>(&mut self, scene: &mut Scene<P>, id: SubscriptionId, number: u32) {
        self.known.remove(number);
        let Some(live) = scene.events.get_mut(number) else {
            return violated!("an event that a subscription knows is held");
        };
        live.known_to.remove(id);
        if self.is_recorded {
            scene.noted.push((id, Arc::clone(&live.object)));
        }
    }
}
