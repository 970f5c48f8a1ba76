//! How a live event stands to a subscription, and what it takes to change that.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::account::anchor;
use super::deadlines::{Deadlines, Due};
use super::events::{Events, Outdated};
use super::tracker::{Watch, Way};
use super::{Cause, Change, Effect, Fix, Interest, Moment, Settings, Transitions};
use crate::area::Area;
use crate::condition::expression::Truth;
use crate::evaluation;
use crate::event::Event;
use crate::geo::{Position, World, squared_chord};
use crate::subscription::{Filter, SubscriptionId};

/// The live events that a subscription knows.
pub(super) type Known = HashMap<u32, Standing, foldhash::fast::RandomState>;

/// How an event stands to a subscription that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The subscription has had it, or its object is inside.
    Inside,
    /// Its object has to stay until then before it enters.
    Waiting { until: Moment, cause: Cause },
}

/// All but subscriptions and clients.
pub(super) struct Scene<P> {
    pub(super) world: World,
    pub(super) settings: Settings,
    pub(super) events: Events<P>,
    pub(super) deadlines: Deadlines,
    /// Objects that wait to enter.
    pub(super) waiting_count: usize,
}

/// What goes on: when, why, and what it leads to.
pub(super) struct Occasion<'a, P> {
    pub(super) now: Moment,
    pub(super) cause: Cause,
    /// The event that has just been replaced, for what leaves with it.
    pub(super) outdated: Option<(u32, Outdated<P>)>,
    pub(super) effects: &'a mut Vec<Effect<P>>,
}

impl Watch {
    fn transitions(&self) -> Option<&Transitions> {
        match &self.interest {
            Interest::Events => None,
            Interest::Transitions(transitions) => Some(transitions),
        }
    }

    pub(super) fn is_for_transitions(&self) -> bool {
        self.transitions().is_some()
    }

    /// Whether some filter counts the nearest only.
    pub(super) fn counts_nearest(&self) -> bool {
        self.nearest.iter().any(Option::is_some)
    }

    /// The filters that do not count.
    fn plain_filters(&self) -> impl Iterator<Item = &Filter> {
        let nearest = self.nearest.iter().copied().chain(std::iter::repeat(None));
        self.filters.iter().zip(nearest).filter(|(_, nearest)| nearest.is_none()).map(|(filter, _)| filter)
    }

    /// Whether a filter's area waits for a better fix.
    pub(super) fn is_held(&self, settings: &Settings, area: &Area, fix: Option<&Fix>) -> bool {
        match (area, fix) {
            (Area::Following(radius), Some(fix)) => {
                settings.holds_inaccurate && self.is_for_transitions() && fix.accuracy_m > radius.metres()
            }
            _ => false,
        }
    }

    /// Whether some filter's area waits for a better fix.
    pub(super) fn holds_some(&self, settings: &Settings, fix: Option<&Fix>) -> bool {
        self.filters.iter().any(|filter| self.is_held(settings, &filter.area, fix))
    }

    /// Whether a filter holds for an event that stands so to the subscription.
    pub(super) fn holds<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        let position = fix.map(|fix| &fix.position);
        let is_there = if self.is_held(&scene.settings, &filter.area, fix) {
            standing.is_some()
        } else {
            filter.area.holds(scene.world, position, &event.position)
                || (standing == Some(Standing::Inside)
                    && self.lingers(scene.world, &filter.area, position, &event.position))
        };
        is_there && filter.condition.expression().truth(event) == Truth::True
    }

    /// Whether a place outside of an area is not far enough outside to leave.
    fn lingers(&self, world: World, area: &Area, client: Option<&Position>, place: &Position) -> bool {
        self.transitions().is_some_and(|transitions| {
            transitions.hysteresis_m > 0.0 && area.outside_m(world, client, place) <= transitions.hysteresis_m
        })
    }

    /// Whether an event is inside by a filter that does not count the nearest.
    pub(super) fn is_inside<P>(
        &self,
        scene: &Scene<P>,
        fix: Option<&Fix>,
        event: &Event,
        standing: Option<Standing>,
    ) -> bool {
        evaluation::reaches(scene.world, event, fix.map(|fix| &fix.position))
            && self.plain_filters().any(|filter| self.holds(scene, filter, fix, event, standing))
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
        let Some(live) = scene.events.get_mut(number) else { return };
        let transitions = self.transitions().copied();
        let mut effect = Effect {
            subscription: id,
            change: if transitions.is_some() { Change::Entered } else { Change::Reached },
            cause: occasion.cause,
            sequence: live.sequence,
            payload: live.payload.clone(),
        };
        if self.known.len() >= scene.settings.members_max {
            self.has_overflowed = true;
            if transitions.is_some() {
                effect.change = Change::Refused;
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
                scene.waiting_count += 1;
                tells = false;
            }
            tells &= transitions.enter;
        }
        live.known_to.insert(id);
        self.known.insert(number, standing);
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
        let Some(Standing::Waiting { until, cause }) = self.known.get(&number).copied() else { return };
        let Some(live) = scene.events.get(number) else { return };
        if until != at {
            return;
        }
        scene.waiting_count -= 1;
        self.known.insert(number, Standing::Inside);
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

    /// An object is inside no more. The caller takes the subscription off the event's list.
    pub(super) fn part<P: Clone>(
        &mut self,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        number: u32,
        (sequence, payload): (u64, &P),
    ) -> Option<Standing> {
        let standing = self.known.remove(&number)?;
        if standing == Standing::Inside && self.transitions().is_some_and(|transitions| transitions.exit) {
            let (sequence, payload) = match &occasion.outdated {
                Some((of, outdated)) if *of == number => (outdated.sequence, &outdated.payload),
                _ => (sequence, payload),
            };
            occasion.effects.push(Effect {
                subscription: id,
                change: Change::Left,
                cause: occasion.cause,
                sequence,
                payload: payload.clone(),
            });
        }
        Some(standing)
    }

    /// The same for an event that goes on living.
    pub(super) fn leave<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        number: u32,
    ) {
        let Some(live) = scene.events.get_mut(number) else { return };
        live.known_to.remove(&id);
        let told = (live.sequence, &live.payload);
        let standing = self.part(occasion, id, number, told);
        scene.waiting_count -= usize::from(matches!(standing, Some(Standing::Waiting { .. })));
    }

    /// Looks again at everything that is known and could have left, by location or otherwise.
    pub(super) fn review<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        occasion: &mut Occasion<'_, P>,
        id: SubscriptionId,
        fix: Option<&Fix>,
        nearest: &[u32],
    ) {
        let left = |(number, standing): (&u32, &Standing)| {
            let live = scene.events.get(*number)?;
            let stays = nearest.contains(number) || self.is_inside(scene, fix, &live.event, Some(*standing));
            (!stays).then_some((live.sequence, *number))
        };
        let mut left: Vec<_> = self.known.iter().filter_map(left).collect();
        left.sort_unstable();
        for (_, number) in left {
            self.leave(scene, occasion, id, number);
        }
    }

    /// The client has moved: what is inside no more leaves, and what it came to is met.
    pub(super) fn follow<P: Clone>(
        &mut self,
        scene: &mut Scene<P>,
        mut occasion: Occasion<'_, P>,
        id: SubscriptionId,
        way: &Way<'_>,
        found: &mut Vec<u32>,
    ) {
        let counts = self.counts_nearest();
        if !(self.follows || counts || scene.events.have_reaches()) {
            return;
        }
        let nearest = if counts { self.nearest_inside(scene, way.after) } else { Vec::new() };
        if self.is_for_transitions() {
            self.review(scene, &mut occasion, id, way.after, &nearest);
        }
        found.clear();
        self.come_near(scene, way, found);
        found.extend(way.reaching);
        found.retain(|number| {
            let live = scene.events.get(*number).filter(|_| !self.known.contains_key(number));
            live.is_some_and(|live| self.is_inside(scene, way.after, &live.event, None))
        });
        found.extend(nearest);
        self.meet_all(scene, &mut occasion, id, found, false);
    }

    /// Appends the events that the areas hold which follow the client, but for those that they held before, which are
    /// known if they are wanted.
    fn come_near<P>(&self, scene: &Scene<P>, way: &Way<'_>, found: &mut Vec<u32>) {
        let Some(after) = way.after else { return };
        let knows_all = !(self.has_overflowed && self.is_for_transitions());
        let before = way.before.filter(|_| knows_all);
        for filter in self.plain_filters() {
            let Area::Following(radius) = &filter.area else { continue };
            let Some(ball) = filter.area.ball(scene.world, Some(&after.position)) else { continue };
            if self.is_held(&scene.settings, &filter.area, Some(after)) {
                continue;
            }
            let before = before.filter(|before| !self.is_held(&scene.settings, &filter.area, Some(before)));
            let first = found.len();
            scene.events.within(&ball, found);
            let Some(before) = before else { continue };
            let mut kept = first;
            for index in first..found.len() {
                let is_new = scene.events.get(found[index]).is_some_and(|live| {
                    live.event.reach.is_some()
                        || !radius.holds(scene.world, &before.position, &live.event.position)
                });
                if is_new {
                    found[kept] = found[index];
                    kept += 1;
                }
            }
            found.truncate(kept);
        }
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
        found.retain(|number| !self.known.contains_key(number));
        found.sort_unstable_by_key(|number| scene.events.get(*number).map(|live| live.sequence));
        found.dedup();
        for number in found.drain(..) {
            self.meet(scene, occasion, id, number, silently);
        }
    }

    /// Knows an event no more, of which nobody is told.
    pub(super) fn forget<P>(&mut self, scene: &mut Scene<P>, id: SubscriptionId, number: u32) {
        self.known.remove(&number);
        if let Some(live) = scene.events.get_mut(number) {
            live.known_to.remove(&id);
        }
    }

    /// The live events that are inside because they are among the nearest, over all filters that count.
    pub(super) fn nearest_inside<P>(&self, scene: &Scene<P>, fix: Option<&Fix>) -> Vec<u32> {
        let mut inside = Vec::new();
        for (filter, nearest) in self.filters.iter().zip(&self.nearest) {
            let Some(count) = nearest else { continue };
            let Some(anchor) = anchor(filter, fix) else { continue };
            let count = count.get() as usize;
            self.nearest_of(scene, filter, fix, anchor, count, &mut inside);
        }
        inside.sort_unstable();
        inside.dedup();
        inside
    }

    /// Appends the `count` nearest candidates of a filter; of those that are equally far the earlier events.
    fn nearest_of<P>(
        &self,
        scene: &Scene<P>,
        filter: &Filter,
        fix: Option<&Fix>,
        anchor: &Position,
        count: usize,
        inside: &mut Vec<u32>,
    ) {
        let position = fix.map(|fix| &fix.position);
        let is_held = self.is_held(&scene.settings, &filter.area, fix);
        let is_candidate = |number: u32| {
            let live = scene.events.get(number)?;
            // Chosen out of what the area itself holds: what was inside before has no advantage.
            let standing = self.known.get(&number).copied().filter(|_| is_held);
            let holds = evaluation::reaches(scene.world, &live.event, position)
                && self.holds(scene, filter, fix, &live.event, standing);
            holds.then_some((live.sequence, number))
        };
        let mut candidates: Vec<(f64, u64, u32)> = Vec::new();
        let mut consider = |number: u32, distance: f64| {
            if candidates.len() >= count && candidates[count - 1].0 < distance {
                return ControlFlow::Break(());
            }
            if let Some((sequence, number)) = is_candidate(number) {
                candidates.push((distance, sequence, number));
            }
            ControlFlow::Continue(())
        };
        let points = scene.events.points();
        if is_held {
            // Nothing comes in and, however many there are, nothing goes out.
            inside.extend(self.known.keys().filter(|number| is_candidate(**number).is_some()));
            return;
        }
        if let Some(ball) = filter.area.ball(scene.world, position) {
            match filter.area {
                Area::Everywhere | Area::Following(_) => {
                    points.by_distance(anchor.point(), |number, distance| {
                        if distance > ball.reach * ball.reach {
                            return ControlFlow::Break(());
                        }
                        consider(number, distance)
                    })
                }
                Area::Circle { .. } | Area::Polygon(_) | Area::Corridor(_) => {
                    let mut found = Vec::new();
                    points.within(&ball, |number| {
                        found
                            .extend(scene.squared_distance(number, anchor).map(|distance| (distance, number)))
                    });
                    visit_in_order(&mut found, consider);
                }
            }
        }
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        inside.extend(candidates.iter().take(count).map(|(_, _, number)| *number));
    }
}

impl<P> Scene<P> {
    pub(super) fn squared_distance(&self, number: u32, from: &Position) -> Option<f64> {
        Some(squared_chord(from.point(), self.events.get(number)?.event.position.point()))
    }
}

/// Visits numbers by their distances, the nearest first, until `visit` breaks.
fn visit_in_order(found: &mut [(f64, u32)], mut visit: impl FnMut(u32, f64) -> ControlFlow<()>) {
    found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    for (distance, number) in found {
        if visit(*number, *distance).is_break() {
            return;
        }
    }
}
