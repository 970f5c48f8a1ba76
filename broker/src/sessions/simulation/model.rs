//! The model of one shard, which finds what the shard has to do by looking at everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use matcher::live::Cause;

use super::session::{Bounds, Session, Told};
use super::spec::{Area, Event, Spec};
use crate::model::delivery::Transition;

/// A shard: what is live for it, and its clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    pub(super) live: BTreeMap<String, Live>,
    pub(super) clients: BTreeMap<String, Client>,
    /// Whether nothing was committed since the start: what a recovery leaves out is on disk still.
    pub(super) is_fresh: bool,
    /// Objects whose events were revoked before the start, in their order, which is made known first of all.
    pub(super) revoked: Vec<String>,
    /// Whether it has to look at all that is live, for some of it may not have come to its subscriptions.
    pub(super) resumes: bool,
    /// Commands that it has carried out.
    pub(super) carried_out: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) event: Arc<Event>,
    pub(super) sequence: u64,
    pub(super) expires_ms: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) at: Option<i64>,
    pub(super) subscriptions: BTreeMap<String, Held>,
    pub(super) session: Session,
    pub(super) readers: BTreeSet<u64>,
    /// Whether what comes to it waits for the next commit, although its session is not durable: a change of a
    /// subscription that is on disk has to be answered first.
    pub(super) is_held: bool,
}

/// A subscription.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) spec: Spec,
    /// The connection that it ends with.
    pub(super) owner: Option<u64>,
    pub(super) is_stored: bool,
    /// Objects: those that are inside or on their way, or whose live event it has had.
    pub(super) known: BTreeMap<String, Known>,
    /// After a crash: for each object that is inside by an older event than the live one, that event.
    pub(super) recalled: BTreeMap<String, Live>,
    /// Whether it has to look at all that is inside: it may not know some of it since a restart.
    pub(super) misses: bool,
    /// Live events that it was told of, each of which may come once.
    pub(super) had: BTreeSet<u64>,
    /// Objects of which an enter was told, or would have been.
    pub(super) entered: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) number: u64,
    /// Time until which it waits, and the cause.
    pub(super) waits: Option<(u64, Cause)>,
}

/// When it is, and what counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) now_ms: u64,
    pub(super) bounds: Bounds,
}

/// The changes that a client receives, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Left,
    Entered,
    Reached,
}

struct Effect {
    client: String,
    subscription: String,
    change: Change,
    cause: Cause,
    live: Live,
}

impl Held {
    pub(super) fn new(spec: Spec, owner: Option<u64>, is_stored: bool) -> Self {
        Self {
            spec,
            owner,
            is_stored,
            known: BTreeMap::new(),
            recalled: BTreeMap::new(),
            misses: false,
            had: BTreeSet::new(),
            entered: BTreeSet::new(),
        }
    }

    /// Comes to know an event.
    fn meet(&mut self, live: &Live, cause: Cause, now_ms: u64, silently: bool) -> Option<Change> {
        let mut known = Known { number: live.event.number, waits: None };
        let mut told = None;
        match self.spec.transitions {
            None => told = (!silently).then_some(Change::Reached),
            Some(how) if how.dwell_ms > 0 && !silently => known.waits = Some((now_ms + how.dwell_ms, cause)),
            Some(how) => {
                told = (how.enter && !silently).then_some(Change::Entered);
                if silently {
                    self.entered.insert(live.event.object());
                }
            }
        }
        self.known.insert(live.event.object(), known);
        told
    }

    /// Knows an object no more.
    fn part(&mut self, object: &str) -> Option<Change> {
        let known = self.known.remove(object)?;
        let tells = self.spec.transitions.is_some_and(|how| how.exit) && known.waits.is_none();
        tells.then_some(Change::Left)
    }

    /// Forgets an object as `part` does, where the exit may tell an older event than the live one. Returns the change with
    /// that event.
    fn recall(&mut self, object: &str, live: &Live) -> Option<(Change, Live)> {
        let last = self.recalled.remove(object);
        self.part(object).map(|change| (change, last.unwrap_or_else(|| live.clone())))
    }
}

impl Client {
    fn new(number: u64) -> Self {
        Self {
            at: None,
            subscriptions: BTreeMap::new(),
            session: Session::new(number),
            readers: BTreeSet::new(),
            is_held: false,
        }
    }

    pub(super) fn has_durable(&self) -> bool {
        self.subscriptions.values().any(|held| held.spec.durable)
    }

    /// Whether something of it is to be found after a crash.
    pub(super) fn is_durable_on_disk(&self) -> bool {
        self.has_durable() || !self.session.kept.is_empty()
    }

    fn settle(&mut self) {
        let session = &mut self.session;
        if session.kept.is_empty()
            && self.readers.is_empty()
            && session.released == session.offset()
            && !self.subscriptions.values().any(|held| held.spec.durable)
        {
            session.durable = false;
        }
    }

    fn is_idle(&self) -> bool {
        self.at.is_none()
            && self.subscriptions.is_empty()
            && self.readers.is_empty()
            && !self.session.durable
            && self.session.released == self.session.offset()
    }
}

impl Shard {
    /// A client, which is made known if need be. `number` is for its session.
    pub(super) fn enter(&mut self, name: &str, number: u64) -> &mut Client {
        self.clients.entry(name.to_owned()).or_insert_with(|| Client::new(number))
    }

    fn settle(&mut self, name: &str) {
        if let Some(client) = self.clients.get_mut(name) {
            client.settle();
            if client.is_idle() {
                self.clients.remove(name);
            }
        }
    }

    /// Carries out everything that is due by itself.
    pub(super) fn advance(&mut self, setting: Setting) -> Result<(), String> {
        for object in std::mem::take(&mut self.revoked) {
            let effects = self.end(&object, Cause::Revoked);
            self.deal(effects, setting)?;
        }
        self.let_happen(setting)?;
        if std::mem::take(&mut self.resumes) {
            self.resume(setting)?;
        }
        let names: Vec<_> = self.clients.keys().cloned().collect();
        for name in names {
            if self.clients.get_mut(&name).is_some_and(|client| {
                client.session.durable && client.session.expire(setting.now_ms, &setting.bounds)
            }) {
                self.settle(&name);
            }
        }
        Ok(())
    }

    /// Durable subscriptions receive what had not come to them.
    fn resume(&mut self, setting: Setting) -> Result<(), String> {
        let mut effects = Vec::new();
        for (name, client) in &mut self.clients {
            for (id, held) in client.subscriptions.iter_mut().filter(|(_, held)| held.misses) {
                for live in self.live.values() {
                    let object = live.event.object();
                    let is_inside = held.spec.holds(client.at, &live.event);
                    let change = match (is_inside, held.known.contains_key(&object)) {
                        (true, false) => {
                            let change = held.meet(live, Cause::Changed, setting.now_ms, false);
                            change.map(|change| (change, live.clone()))
                        }
                        (false, true) if held.spec.transitions.is_some() => held.recall(&object, live),
                        _ => None,
                    };
                    let told = |(change, live)| effect(name, id, change, Cause::Changed, live);
                    effects.extend(change.map(told));
                }
                held.recalled.clear();
            }
        }
        // In the order in which the events came.
        effects.sort_by_key(|effect| effect.live.sequence);
        while let Some(first) = effects.first().map(|effect| effect.live.sequence) {
            let rest = effects.split_off(effects.partition_point(|effect| effect.live.sequence == first));
            self.deal(std::mem::replace(&mut effects, rest), setting)?;
        }
        Ok(())
    }

    /// Carries out everything that the time brings: dwells and lives that are over.
    fn let_happen(&mut self, setting: Setting) -> Result<(), String> {
        loop {
            let dwelt =
                self.held().flat_map(|held| held.known.values()).filter_map(|known| Some(known.waits?.0));
            let dwelt = dwelt.min().filter(|until| *until <= setting.now_ms);
            let over = self.live.values().map(|live| (live.expires_ms, live.sequence)).min();
            let over = over.filter(|(expires, _)| *expires <= setting.now_ms);
            match (dwelt, over) {
                (Some(until), over) if over.is_none_or(|(expires, _)| until <= expires) => {
                    self.enter_all(until, setting)?;
                }
                (_, Some((_, sequence))) => {
                    let is_it = |(_, live): &(&String, &Live)| live.sequence == sequence;
                    let object = self.live.iter().find(is_it).map(|(object, _)| object.clone());
                    let effects = self.end(&object.expect("it was there"), Cause::Expired);
                    self.deal(effects, setting)?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.clients.values().flat_map(|client| client.subscriptions.values())
    }

    fn enter_all(&mut self, at_ms: u64, setting: Setting) -> Result<(), String> {
        let mut effects = Vec::new();
        for (name, client) in &mut self.clients {
            for (id, held) in &mut client.subscriptions {
                for (object, known) in &mut held.known {
                    let Some((_, cause)) = known.waits.filter(|(until, _)| *until == at_ms) else { continue };
                    known.waits = None;
                    if held.spec.transitions.is_some_and(|how| how.enter) {
                        let live = self.live[object].clone();
                        effects.push(effect(name, id, Change::Entered, cause, live));
                    }
                }
            }
        }
        self.deal(effects, setting)
    }

    fn end(&mut self, object: &str, cause: Cause) -> Vec<Effect> {
        let Some(live) = self.live.remove(object) else { return Vec::new() };
        let mut effects = Vec::new();
        for (name, client) in &mut self.clients {
            for (id, held) in &mut client.subscriptions {
                let told = held.recall(object, &live);
                effects.extend(told.map(|(change, live)| effect(name, id, change, cause, live)));
            }
        }
        effects
    }

    /// An event comes. `sequence` and `expires_ms` count where it is live.
    pub(super) fn publish(
        &mut self,
        event: &Arc<Event>,
        sequence: u64,
        expires_ms: u64,
        setting: Setting,
    ) -> Result<(), String> {
        let object = event.object();
        let new = Live { event: Arc::clone(event), sequence, expires_ms };
        let older = self.live.get(&object).cloned();
        let is_live = event.is_live() && older.as_ref().is_none_or(|older| older.sequence < sequence);
        if is_live {
            self.live.insert(object.clone(), new.clone());
        }
        let mut effects = Vec::new();
        for (name, client) in &mut self.clients {
            for (id, held) in &mut client.subscriptions {
                let is_inside = held.spec.holds(client.at, event);
                if !is_live {
                    if is_inside && held.spec.transitions.is_none() {
                        effects.push(effect(name, id, Change::Reached, Cause::Published, new.clone()));
                    }
                    continue;
                }
                if held.spec.transitions.is_none() {
                    held.known.remove(&object);
                } else if !is_inside && let (Some(change), Some(older)) = (held.part(&object), &older) {
                    effects.push(effect(name, id, change, Cause::Published, older.clone()));
                }
                if is_inside
                    && !held.known.contains_key(&object)
                    && let Some(change) = held.meet(&new, Cause::Published, setting.now_ms, false)
                {
                    effects.push(effect(name, id, change, Cause::Published, new.clone()));
                }
            }
        }
        self.deal(effects, setting)
    }

    pub(super) fn revoke(&mut self, id: &str, setting: Setting) -> Result<(), String> {
        let objects = self.live.iter().filter(|(_, live)| live.event.id == id);
        let objects: Vec<_> = objects.map(|(object, _)| object.clone()).collect();
        let effects = objects.iter().flat_map(|object| self.end(object, Cause::Revoked)).collect();
        self.deal(effects, setting)
    }

    pub(super) fn move_client(
        &mut self,
        name: &str,
        track: &[i64],
        number: u64,
        setting: Setting,
    ) -> Result<(), String> {
        self.enter(name, number);
        let live = &self.live;
        let Some((client, to)) = self.clients.get_mut(name).zip(track.last().copied()) else { return Ok(()) };
        let before = client.at.replace(to);
        let mut effects = Vec::new();
        for (id, held) in &mut client.subscriptions {
            let mut told = |change: Option<Change>, live: &Live| {
                effects.extend(change.map(|change| effect(name, id, change, Cause::Moved, live.clone())));
            };
            let is_for_events = held.spec.transitions.is_none();
            if let (true, true, Area::Following(radius)) = (is_for_events, track.len() > 1, held.spec.area) {
                for one in live.values() {
                    if passes(track, radius, one.event.at)
                        && held.spec.takes_kind(one.event.kind)
                        && !held.known.contains_key(&one.event.object())
                    {
                        told(held.meet(one, Cause::Moved, setting.now_ms, false), one);
                    }
                }
            }
            let misses = held.misses && !is_for_events;
            if !matches!(held.spec.area, Area::Following(_)) && !misses || live.is_empty() {
                continue;
            }
            if !is_for_events {
                for one in live.values() {
                    if !held.spec.holds(Some(to), &one.event) {
                        told(held.part(&one.event.object()), one);
                    }
                }
            }
            held.misses &= is_for_events;
            for one in live.values() {
                let is_new =
                    misses || !before.is_some_and(|before| held.spec.reaches(Some(before), one.event.at));
                if is_new
                    && held.spec.holds(Some(to), &one.event)
                    && !held.known.contains_key(&one.event.object())
                {
                    told(held.meet(one, Cause::Moved, setting.now_ms, false), one);
                }
            }
        }
        self.deal(effects, setting)
    }

    pub(super) fn install(
        &mut self,
        name: &str,
        id: &str,
        mut new: Held,
        number: u64,
        setting: Setting,
    ) -> Result<(), String> {
        self.enter(name, number);
        let live = &self.live;
        let Some(client) = self.clients.get_mut(name) else { return Ok(()) };
        let mut effects = Vec::new();
        let mut told = |change: Option<Change>, live: &Live| {
            effects.extend(change.map(|change| effect(name, id, change, Cause::Changed, live.clone())));
        };
        let is_of_kind = |old: &Held| old.spec.transitions.is_some() == new.spec.transitions.is_some();
        let old = client.subscriptions.remove(id);
        client.is_held |= new.is_stored || old.as_ref().is_some_and(|old| old.is_stored);
        let old = old.filter(is_of_kind);
        let is_new = old.is_none();
        if let Some(old) = old {
            let inside = old.known.iter().filter(|(_, known)| known.waits.is_none());
            new.entered = inside.map(|(object, _)| object.clone()).collect();
            (new.known, new.had) = (old.known, old.had);
            if let Some(how) = new.spec.transitions {
                for one in live.values() {
                    if !new.spec.holds(client.at, &one.event) {
                        told(new.part(&one.event.object()), one);
                    }
                }
                let dwell_before = old.spec.transitions.map_or(0, |how| how.dwell_ms);
                for (object, known) in &mut new.known {
                    let Some((until, cause)) = known.waits.filter(|_| how.dwell_ms != dwell_before) else {
                        continue;
                    };
                    let until = (until + how.dwell_ms).saturating_sub(dwell_before);
                    known.waits = (until > setting.now_ms).then_some((until, cause));
                    if known.waits.is_none() {
                        told(how.enter.then_some(Change::Entered), &live[object]);
                    }
                }
            }
        }
        let silently = is_new && new.spec.transitions.is_some_and(|how| !how.initial);
        for one in live.values() {
            if new.spec.holds(client.at, &one.event) && !new.known.contains_key(&one.event.object()) {
                told(new.meet(one, Cause::Changed, setting.now_ms, silently), one);
            }
        }
        if new.spec.durable {
            client.session.make_durable();
        }
        client.subscriptions.insert(id.to_owned(), new);
        self.settle(name);
        self.deal(effects, setting)
    }

    /// Ends a subscription; says whether there was one.
    pub(super) fn remove(&mut self, name: &str, id: &str) -> bool {
        let Some(client) = self.clients.get_mut(name) else { return false };
        let Some(was) = client.subscriptions.remove(id) else { return false };
        client.is_held |= was.is_stored;
        self.settle(name);
        true
    }

    pub(super) fn acknowledge(&mut self, name: &str, offset: u64) {
        if let Some(client) = self.clients.get_mut(name)
            && client.session.durable
            && offset <= client.session.released
        {
            client.session.acknowledge(offset);
            self.settle(name);
        }
    }

    pub(super) fn detach(&mut self, name: &str, connection: u64) {
        if let Some(client) = self.clients.get_mut(name) {
            client.readers.remove(&connection);
            client.subscriptions.retain(|_, held| held.owner != Some(connection));
            self.settle(name);
        }
    }

    /// Notes that everything done so far is on disk.
    pub(super) fn committed(&mut self) {
        self.is_fresh = false;
        let names: Vec<_> = self.clients.keys().cloned().collect();
        for name in names {
            let Some(client) = self.clients.get_mut(&name) else { continue };
            client.session.released = client.session.offset();
            client.is_held = false;
            if client.readers.is_empty() && client.subscriptions.is_empty() {
                self.settle(&name);
            }
        }
    }

    /// Tells the effects of one step: each client each event once for each thing that happened to it.
    fn deal(&mut self, effects: Vec<Effect>, setting: Setting) -> Result<(), String> {
        let mut groups: BTreeMap<_, (Arc<Event>, BTreeSet<String>)> = BTreeMap::new();
        for effect in effects {
            let Effect { client, subscription, change, cause, live } = effect;
            let group = groups.entry((client, change, live.sequence, live.event.number, cause));
            group.or_insert_with(|| (live.event, BTreeSet::new())).1.insert(subscription);
        }
        for ((name, change, _, _, cause), (event, subscriptions)) in groups {
            let Some(client) = self.clients.get_mut(&name) else { continue };
            let mut overflow = None;
            let mut is_kept = false;
            for id in &subscriptions {
                let Some(held) = client.subscriptions.get_mut(id) else { continue };
                overflow = overflow.max(held.spec.overflow);
                is_kept |= held.spec.durable;
                held.check(change, &event).map_err(|what| format!("{name} {id}: {what}"))?;
            }
            let transition = match change {
                Change::Left => Some(Transition::Exit),
                Change::Entered => Some(Transition::Enter),
                Change::Reached => None,
            };
            let (at_ms, lost) = (setting.now_ms, None);
            let is_kept = is_kept && client.session.durable;
            let told = Told { subscriptions, cause, transition, event, at_ms, overflow, is_kept, lost };
            client.session.take(told, &setting.bounds);
            let session = &mut client.session;
            if !session.durable && !client.is_held && session.released + 1 >= session.offset() {
                session.released = session.offset();
            }
        }
        Ok(())
    }
}

impl Held {
    /// Whatever the tracker does: a live event comes once, enters and exits take turns.
    fn check(&mut self, change: Change, event: &Event) -> Result<(), String> {
        let tells_both = self.spec.transitions.is_some_and(|how| how.enter && how.exit);
        let is_right = match change {
            Change::Reached => !event.is_live() || self.had.insert(event.number),
            Change::Entered => self.entered.insert(event.object()) || !tells_both,
            Change::Left => self.entered.remove(&event.object()) || !tells_both,
        };
        if is_right { Ok(()) } else { Err(format!("{change:?} again, by event {}", event.number)) }
    }
}

fn effect(client: &str, subscription: &str, change: Change, cause: Cause, live: Live) -> Effect {
    Effect { client: client.to_owned(), subscription: subscription.to_owned(), change, cause, live }
}

/// Whether a place is within a radius of a line from point to point.
fn passes(track: &[i64], radius: i64, place: i64) -> bool {
    let near = |from: i64, to: i64| from.min(to) - radius <= place && place <= from.max(to) + radius;
    track.windows(2).any(|leg| near(leg[0], leg[1])) || track.first().is_some_and(|at| near(*at, *at))
}
