//! The plain way: after every step each subscription is held against each live event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nearcast_matcher::area::{Area, Corridor};
use nearcast_matcher::condition::expression::Truth;
use nearcast_matcher::event::Event;
use nearcast_matcher::geo::{Position, Radius, World};
use nearcast_matcher::live::{Cause, Change, Fix, Interest, Moment, Nearest};
use nearcast_matcher::subscription::Filter;

/// What is told: subscription, change, cause, sequence number of the event.
pub(crate) type Told = (u32, Change, Cause, u64);

pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) sequence: u64,
    pub(crate) expires: Moment,
    pub(crate) event: Arc<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Inside,
    Waiting(Moment, Cause),
}

pub(crate) struct Held {
    pub(crate) client: u32,
    pub(crate) filters: Vec<(Filter, Nearest)>,
    pub(crate) interest: Interest,
    pub(crate) known: BTreeMap<String, State>,
}

/// What happens, and for whom it is an occasion to come in that had found no room before.
struct Step<'a> {
    now: Moment,
    cause: Cause,
    /// Whose event has been replaced, and the sequence number of that one.
    replaced: Option<(&'a str, u64)>,
    /// What was inside before and had found no room, by subscription.
    missing: BTreeMap<u32, Vec<String>>,
    /// By subscription, its client and the object.
    is_occasion: &'a dyn Fn(u32, u32, &str) -> bool,
}

pub(crate) struct Oracle {
    world: World,
    pub(crate) lives: BTreeMap<String, Live>,
    pub(crate) held: BTreeMap<u32, Held>,
    pub(crate) fixes: BTreeMap<u32, Fix>,
    members_max: usize,
    /// Whether anything has ever found no room.
    has_refused: bool,
    told: Vec<Told>,
}

impl Oracle {
    /// Exact at the bound as well, where nobody counts the nearest or is told of events.
    pub(crate) fn new(world: World, members_max: usize) -> Self {
        Self {
            world,
            lives: BTreeMap::new(),
            held: BTreeMap::new(),
            fixes: BTreeMap::new(),
            members_max,
            has_refused: false,
            told: Vec::new(),
        }
    }

    pub(crate) fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    pub(crate) fn known(&self, subscription: u32) -> usize {
        self.held.get(&subscription).map_or(0, |held| held.known.len())
    }

    pub(crate) fn knows(&self, subscription: u32, object: &str) -> bool {
        self.held.get(&subscription).is_some_and(|held| held.known.contains_key(object))
    }

    pub(crate) fn advance(&mut self, now: Moment) {
        loop {
            let dwelt = self.held.iter().flat_map(|(id, held)| {
                held.known.iter().filter_map(|(object, state)| match state {
                    State::Waiting(until, _) => Some((*until, 0, 0, Some(*id), object.clone())),
                    State::Inside => None,
                })
            });
            let expired = self
                .lives
                .iter()
                .map(|(object, live)| (live.expires, 1, live.sequence, None, object.clone()));
            let next = dwelt.chain(expired).filter(|due| due.0 <= now).min();
            let Some((at, _, _, subscription, object)) = next else { return };
            match subscription {
                Some(id) => self.enter(id, &object),
                None => self.end(&object, at, Cause::Expired),
            }
        }
    }

    fn enter(&mut self, id: u32, object: &str) {
        let held = self.held.get_mut(&id).expect("it waits");
        let Some(State::Waiting(_, cause)) = held.known.insert(object.to_owned(), State::Inside) else {
            panic!("it waits")
        };
        if matches!(held.interest, Interest::Transitions(how) if how.enter) {
            self.told.push((id, Change::Entered, cause, self.lives[object].sequence));
        }
    }

    pub(crate) fn end(&mut self, object: &str, now: Moment, cause: Cause) {
        let missing = self.missing();
        let live = self.lives.remove(object).expect("it lives");
        for (id, held) in &mut self.held {
            if held.known.remove(object) == Some(State::Inside)
                && matches!(held.interest, Interest::Transitions(how) if how.exit)
            {
                self.told.push((*id, Change::Left, cause, live.sequence));
            }
        }
        self.settle(&Step { now, cause, replaced: None, missing, is_occasion: &|_, _, _| false });
    }

    pub(crate) fn publish(&mut self, object: &str, live: Live, now: Moment) {
        let missing = self.missing();
        let before = self.lives.insert(object.to_owned(), live).map(|before| before.sequence);
        for held in self.held.values_mut() {
            if held.interest == Interest::Events {
                held.known.remove(object);
            }
        }
        let replaced = before.map(|sequence| (object, sequence));
        let is_occasion = &|_, _, of: &str| of == object;
        self.settle(&Step { now, cause: Cause::Published, replaced, missing, is_occasion });
    }

    pub(crate) fn move_client(&mut self, client: u32, fix: Fix, now: Moment) {
        let missing = self.missing();
        self.fixes.insert(client, fix);
        let is_occasion = &|_, of, _: &str| of == client;
        self.settle(&Step { now, cause: Cause::Moved, replaced: None, missing, is_occasion });
    }

    /// Each event against the whole line, as the corridor that it is.
    pub(crate) fn reach_along(&mut self, client: u32, track: &[Position]) {
        let world = self.world;
        let comes_within = |radius: Radius, event: &Event| match track {
            [only] => world.distance_m(only, &event.position) <= radius.metres(),
            [..] => Corridor::new(world, track, radius).unwrap().holds(world, &event.position),
        };
        let mut lives: Vec<_> = self.lives.iter().collect();
        lives.sort_by_key(|(_, live)| live.sequence);
        for (id, held) in self.held.iter_mut().filter(|(_, held)| held.client == client) {
            for (object, live) in &lives {
                let event = &*live.event;
                let takes = |(filter, nearest): &(Filter, Nearest)| {
                    let Area::Following(radius) = filter.area else { return false };
                    nearest.is_none()
                        && comes_within(radius, event)
                        && filter.condition.expression().truth_for(event, track.last()) == Truth::True
                };
                if held.interest == Interest::Events
                    && !held.known.contains_key(*object)
                    && event.reach.is_none_or(|reach| comes_within(reach, event))
                    && held.filters.iter().any(takes)
                {
                    held.known.insert((*object).clone(), State::Inside);
                    self.told.push((*id, Change::Reached, Cause::Moved, live.sequence));
                }
            }
        }
    }

    pub(crate) fn install(
        &mut self,
        id: u32,
        client: u32,
        filters: Vec<(Filter, Nearest)>,
        interest: Interest,
        now: Moment,
    ) {
        let missing = self.missing();
        let previous = self.held.remove(&id);
        let same = |held: &Held| std::mem::discriminant(&held.interest) == std::mem::discriminant(&interest);
        let previous = previous.filter(same);
        let known = previous.as_ref().map(|held| held.known.clone());
        let is_new = known.is_none();
        let held = Held { client, filters, interest, known: known.unwrap_or_default() };
        self.held.insert(id, held);
        match interest {
            Interest::Transitions(how) if is_new && !how.initial => {
                for object in self.take_for_known(id) {
                    if how.exit {
                        let sequence = self.lives[&object].sequence;
                        self.told.push((id, Change::Refused, Cause::Changed, sequence));
                    }
                }
            }
            Interest::Events | Interest::Transitions(_) => {
                let is_occasion = &|of, _, _: &str| of == id;
                self.settle(&Step { now, cause: Cause::Changed, replaced: None, missing, is_occasion });
            }
        }
        if let Some(Held { known, interest: Interest::Transitions(before), .. }) = previous {
            self.change_dwells(id, known, before.dwell, now);
        }
    }

    /// Who waits, and waited before the change, has stayed from when it came.
    fn change_dwells(
        &mut self,
        id: u32,
        before: BTreeMap<String, State>,
        dwell_before: Duration,
        now: Moment,
    ) {
        let held = self.held.get_mut(&id).expect("it is there");
        let Interest::Transitions(how) = held.interest else { return };
        for (object, state) in before {
            let State::Waiting(until, cause) = state else { continue };
            if !held.known.contains_key(&object) {
                continue;
            }
            let until = until - dwell_before + how.dwell;
            let state = if until <= now { State::Inside } else { State::Waiting(until, cause) };
            if state == State::Inside && how.enter {
                self.told.push((id, Change::Entered, Cause::Changed, self.lives[&object].sequence));
            }
            held.known.insert(object, state);
        }
    }

    /// All that is inside now is so without a word and without a wait, as far as there is room, and nothing else is
    /// known. Says what there is no room for.
    pub(crate) fn take_for_known(&mut self, id: u32) -> Vec<String> {
        self.held.get_mut(&id).expect("it is there").known.clear();
        let mut inside = self.inside(id);
        let left_out = inside.split_off(inside.len().min(self.members_max));
        self.has_refused |= !left_out.is_empty();
        let known = inside.into_iter().map(|object| (object, State::Inside)).collect();
        self.held.get_mut(&id).expect("it is there").known = known;
        left_out
    }

    /// What is inside and not known, by subscription.
    fn missing(&self) -> BTreeMap<u32, Vec<String>> {
        if !self.has_refused {
            return BTreeMap::new();
        }
        let missing = |(id, held): (&u32, &Held)| {
            let unknown = |object: &String| !held.known.contains_key(object);
            (*id, self.inside(*id).into_iter().filter(unknown).collect())
        };
        self.held.iter().map(missing).collect()
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.held.remove(&id);
    }

    /// The objects that are inside of a subscription, given what it knows, in the order in which they were published.
    fn inside(&self, id: u32) -> Vec<String> {
        let held = &self.held[&id];
        let fix = self.fixes.get(&held.client);
        let mut inside = Vec::new();
        for (filter, nearest) in &held.filters {
            // The nearest are chosen out of what the area itself holds: hysteresis is for the others.
            let counts = nearest.is_some() && !Self::is_held(held, filter, fix);
            let holds = |(object, live): &(&String, &Live)| {
                let state = held.known.get(*object).filter(|_| !counts);
                self.holds(held, filter, fix, &live.event, state)
            };
            let mut found: Vec<_> = self.lives.iter().filter(holds).collect();
            // An area that waits for a better fix lets nothing out, however many there are.
            if let (Some(count), true) = (nearest, counts) {
                let anchor = match (&fix, &filter.area) {
                    (Some(fix), _) => fix.position,
                    (None, Area::Circle { centre, .. }) => *centre,
                    (None, _) => continue,
                };
                found.sort_by(|a, b| {
                    let far = |live: &Live| {
                        nearcast_matcher::geo::squared_chord(anchor.point(), live.event.position.point())
                    };
                    far(a.1).total_cmp(&far(b.1)).then(a.1.sequence.cmp(&b.1.sequence))
                });
                found.truncate(count.get() as usize);
            }
            inside.extend(found.into_iter().map(|(object, _)| object.clone()));
        }
        inside.sort_by_key(|object| self.lives[object].sequence);
        inside.dedup();
        inside
    }

    fn holds(
        &self,
        held: &Held,
        filter: &Filter,
        fix: Option<&Fix>,
        event: &Event,
        state: Option<&State>,
    ) -> bool {
        let position = fix.map(|fix| &fix.position);
        if let (Some(reach), Some(client)) = (&event.reach, position)
            && self.world.distance_m(client, &event.position) > reach.metres()
        {
            return false;
        }
        if filter.condition.expression().truth_for(event, position) != Truth::True {
            return false;
        }
        match held.interest {
            _ if Self::is_held(held, filter, fix) => state == Some(&State::Inside),
            Interest::Transitions(how) if state == Some(&State::Inside) => {
                self.outside_m(&filter.area, position, &event.position) <= how.hysteresis_m
            }
            Interest::Events | Interest::Transitions(_) => {
                self.outside_m(&filter.area, position, &event.position) <= 0.0
            }
        }
    }

    fn is_held(held: &Held, filter: &Filter, fix: Option<&Fix>) -> bool {
        match (held.interest, &filter.area, fix) {
            (Interest::Transitions(_), Area::Following(radius), Some(fix)) => {
                fix.accuracy_m > radius.metres()
            }
            _ => false,
        }
    }

    fn outside_m(&self, area: &Area, client: Option<&Position>, place: &Position) -> f64 {
        match area {
            Area::Everywhere => 0.0,
            Area::Following(radius) => {
                client.map_or(f64::INFINITY, |client| self.world.distance_m(client, place) - radius.metres())
            }
            Area::Circle { centre, radius } => self.world.distance_m(centre, place) - radius.metres(),
            Area::Polygon(_) | Area::Corridor(_) => area.outside_m(self.world, client, place),
        }
    }

    /// Brings what every subscription knows in line with what is inside.
    fn settle(&mut self, step: &Step<'_>) {
        let Step { now, cause, .. } = *step;
        let ids: Vec<u32> = self.held.keys().copied().collect();
        for id in ids {
            let inside = self.inside(id);
            let held = self.held.get_mut(&id).expect("it is there");
            let (is_events, how) = match held.interest {
                Interest::Events => (true, None),
                Interest::Transitions(how) => (false, Some(how)),
            };
            let left: Vec<String> =
                held.known.keys().filter(|object| !is_events && !inside.contains(object)).cloned().collect();
            for object in left {
                let state = held.known.remove(&object);
                if state == Some(State::Inside) && how.is_some_and(|how| how.exit) {
                    let sequence = match step.replaced {
                        Some((name, sequence)) if name == object => sequence,
                        _ => self.lives[&object].sequence,
                    };
                    self.told.push((id, Change::Left, cause, sequence));
                }
            }
            for object in inside {
                let was_missing = step.missing.get(&id).is_some_and(|missing| missing.contains(&object));
                if held.known.contains_key(&object)
                    || was_missing && !(step.is_occasion)(id, held.client, &object)
                {
                    continue;
                }
                let sequence = self.lives[&object].sequence;
                if held.known.len() >= self.members_max {
                    self.has_refused = true;
                    let is_told = how.is_some_and(|how| how.enter || how.exit);
                    if is_told && !(was_missing && cause == Cause::Moved) {
                        self.told.push((id, Change::Refused, cause, sequence));
                    }
                    continue;
                }
                let state = match how {
                    Some(how) if how.dwell > Duration::ZERO => State::Waiting(now + how.dwell, cause),
                    Some(how) => {
                        if how.enter {
                            self.told.push((id, Change::Entered, cause, sequence));
                        }
                        State::Inside
                    }
                    None => {
                        self.told.push((id, Change::Reached, cause, sequence));
                        State::Inside
                    }
                };
                held.known.insert(object, state);
            }
        }
    }
}
