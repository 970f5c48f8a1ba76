//! The plain way: after every step each subscription is held against each live event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use matcher::area::Area;
use matcher::condition::expression::Truth;
use matcher::event::Event;
use matcher::geo::{Position, World};
use matcher::live::{Cause, Change, Fix, Interest, Moment, Nearest};
use matcher::subscription::Filter;

/// What is told: subscription, change, cause, sequence number of the event.
pub(crate) type Told = (u32, Change, Cause, u64);

pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) sequence: u64,
    pub(crate) expires: Moment,
    pub(crate) event: Arc<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Inside,
    Waiting(Moment, Cause),
}

struct Held {
    client: u32,
    filters: Vec<(Filter, Nearest)>,
    interest: Interest,
    known: BTreeMap<String, State>,
}

pub(crate) struct Oracle {
    world: World,
    pub(crate) lives: BTreeMap<String, Live>,
    held: BTreeMap<u32, Held>,
    fixes: BTreeMap<u32, Fix>,
    told: Vec<Told>,
}

impl Oracle {
    pub(crate) fn new(world: World) -> Self {
        Self {
            world,
            lives: BTreeMap::new(),
            held: BTreeMap::new(),
            fixes: BTreeMap::new(),
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
        let live = self.lives.remove(object).expect("it lives");
        for (id, held) in &mut self.held {
            if held.known.remove(object) == Some(State::Inside)
                && matches!(held.interest, Interest::Transitions(how) if how.exit)
            {
                self.told.push((*id, Change::Left, cause, live.sequence));
            }
        }
        self.settle(now, cause, None);
    }

    pub(crate) fn publish(&mut self, object: &str, live: Live, now: Moment) {
        let before = self.lives.insert(object.to_owned(), live).map(|before| before.sequence);
        for held in self.held.values_mut() {
            if held.interest == Interest::Events {
                held.known.remove(object);
            }
        }
        self.settle(now, Cause::Published, before.map(|sequence| (object, sequence)));
    }

    pub(crate) fn move_client(&mut self, client: u32, fix: Fix, now: Moment) {
        self.fixes.insert(client, fix);
        self.settle(now, Cause::Moved, None);
    }

    pub(crate) fn install(
        &mut self,
        id: u32,
        client: u32,
        filters: Vec<(Filter, Nearest)>,
        interest: Interest,
        now: Moment,
    ) {
        let previous = self.held.remove(&id);
        let same = |held: &Held| std::mem::discriminant(&held.interest) == std::mem::discriminant(&interest);
        let known = previous.filter(same).map(|held| held.known);
        let is_new = known.is_none();
        let held = Held { client, filters, interest, known: known.unwrap_or_default() };
        self.held.insert(id, held);
        if let (true, Interest::Transitions(how)) = (is_new, interest)
            && !how.initial
        {
            // All that is inside now is so without a word and without a wait.
            for object in self.inside(id) {
                self.held.get_mut(&id).expect("it is there").known.insert(object, State::Inside);
            }
        }
        self.settle(now, Cause::Changed, None);
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.held.remove(&id);
    }

    /// The objects that are inside of a subscription, given what it knows.
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
                        matcher::geo::squared_chord(anchor.point(), live.event.position.point())
                    };
                    far(a.1).total_cmp(&far(b.1)).then(a.1.sequence.cmp(&b.1.sequence))
                });
                found.truncate(count.get() as usize);
            }
            inside.extend(found.into_iter().map(|(object, _)| object.clone()));
        }
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
        if filter.condition.expression().truth(event) != Truth::True {
            return false;
        }
        match held.interest {
            _ if Self::is_held(held, filter, fix) => state.is_some(),
            Interest::Transitions(how) if state == Some(&State::Inside) => {
                self.outside_m(&filter.area, position, &event.position) <= how.hysteresis_m
            }
            _ => self.outside_m(&filter.area, position, &event.position) <= 0.0,
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
    fn settle(&mut self, now: Moment, cause: Cause, replaced: Option<(&str, u64)>) {
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
                    let sequence = match replaced {
                        Some((name, sequence)) if name == object => sequence,
                        _ => self.lives[&object].sequence,
                    };
                    self.told.push((id, Change::Left, cause, sequence));
                }
            }
            for object in inside {
                if held.known.contains_key(&object) {
                    continue;
                }
                let sequence = self.lives[&object].sequence;
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
