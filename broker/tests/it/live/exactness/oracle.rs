//! Who must be told what, from the whole state of the world: every subscription is held against every live object by
//! the words of PROTOCOL, and what was told before is remembered. Nothing here is fast or shared with the broker.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::exactness::conditions::CONDITIONS;
use crate::exactness::geometry::{Area, Frame, Place, Side, distance_m, within};

/// A filter: an area, a row of the table of conditions, and how many of the nearest count.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) area: Area,
    pub(crate) condition_idx: usize,
    pub(crate) nearest: Option<usize>,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interest {
    Events,
    Transitions { enter: bool, exit: bool, initial: bool, hysteresis_m: f64 },
}

/// A subscription has at most eight filters, of which at most one counts the nearest.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) filters: Vec<Filter>,
    pub(crate) interest: Interest,
}

/// An event, with all that conditions say of it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Its number in the order of publishing, from 1; also a property of it.
    pub(crate) number: u64,
    pub(crate) place: Place,
    pub(crate) reach_m: Option<f64>,
    pub(crate) truths: Vec<bool>,
}

/// A frame that a client must get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    /// The number of the event that it carries.
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// In order.
    pub(crate) subscriptions: Vec<String>,
    /// What happened, be it to another object that made room or took it.
    pub(crate) cause: String,
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Event,
    Enter,
    Exit,
}

/// A pair of a subscription and a live object, and what must be said of it when somebody asks.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) client_idx: usize,
    pub(crate) subscription: String,
    /// The id of the object's event.
    pub(crate) event: String,
    pub(crate) matched: bool,
    pub(crate) inside: bool,
}

/// What a step leads to: frames, by client.
pub(crate) type Outcome = BTreeMap<usize, Vec<Told>>;

/// Said of a step that puts something so near to a border that two correct formulas may differ: it must not be taken.
#[derive(Debug)]
pub(crate) struct OnBorder;

/// The state of the world.
pub(crate) struct Oracle {
    clients: Vec<Client>,
    /// The live event of each object; objects are numbered.
    objects: Vec<Option<Event>>,
}

#[derive(Default)]
struct Client {
    place: Option<Place>,
    accuracy_m: f64,
    subscriptions: BTreeMap<String, Held>,
}

struct Held {
    subscription: Subscription,
    /// A box around each filter's area, in which it may hold or keep something.
    frames: Vec<Frame>,
    /// What the filters say of each object.
    pairs: Vec<Pair>,
    /// Of each object the number of the event that came last, or that was inside last; 0 where none did, or where the
    /// object is outside.
    memory: Vec<u64>,
}

/// What the filters of a subscription say of an object, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// Filters that let it in.
    holds: u8,
    /// Filters that keep it in.
    keeps: u8,
    /// How far it is from where the nearest are counted from.
    distance_m: f64,
}

impl Subscription {
    /// As PROTOCOL writes it.
    pub(crate) fn document(&self) -> Value {
        let filters = self.filters.iter().map(|filter| {
            let mut document = json!({});
            let mut area = filter.area.document();
            if let Some(nearest) = filter.nearest {
                area.get_or_insert_with(|| json!({}))["nearest"] = json!(nearest);
            }
            if let Some(area) = area {
                document["area"] = area;
            }
            if let Some(text) = (CONDITIONS[filter.condition_idx].text)() {
                document["where"] = text;
            }
            document
        });
        let mut document = json!({"filters": filters.collect::<Vec<_>>()});
        if let Interest::Transitions { enter, exit, initial, hysteresis_m } = self.interest {
            let on = [(enter, "enter"), (exit, "exit")].into_iter().filter(|on| on.0);
            document["on"] = json!(on.map(|on| on.1).collect::<Vec<_>>());
            document["initial"] = json!(initial);
            document["hysteresis_m"] = json!(hysteresis_m);
        }
        document
    }

    fn hysteresis_m(&self) -> f64 {
        match self.interest {
            Interest::Events => 0.0,
            Interest::Transitions { hysteresis_m, .. } => hysteresis_m,
        }
    }

    /// The bit of the filter that counts the nearest, and how many it counts.
    fn nearest(&self) -> (u8, usize) {
        let nearest =
            self.filters.iter().enumerate().find_map(|(idx, filter)| Some((1 << idx, filter.nearest?)));
        nearest.unwrap_or((0, 0))
    }
}

impl Client {
    /// Whether a filter cannot use the client's fix.
    fn is_lost(&self, subscription: &Subscription, area: &Area) -> bool {
        matches!(subscription.interest, Interest::Transitions { .. })
            && matches!(area, Area::Following { radius_m } if self.accuracy_m > *radius_m)
    }

    fn frame(&self, subscription: &Subscription, area: &Area) -> Frame {
        let margin_m = subscription.hysteresis_m();
        let grown = match area {
            _ if self.is_lost(subscription, area) => Area::Everywhere,
            Area::Following { radius_m } => Area::Following { radius_m: radius_m + margin_m },
            Area::Circle { center, radius_m } => {
                Area::Circle { center: *center, radius_m: radius_m + margin_m }
            }
            Area::Corridor { line, radius_m } => {
                Area::Corridor { line: line.clone(), radius_m: radius_m + margin_m }
            }
            Area::Polygons(_) if margin_m > 0.0 => Area::Everywhere,
            Area::Everywhere | Area::Polygons(_) => return area.frame(self.place),
        };
        grown.frame(self.place)
    }

    fn frames(&self, subscription: &Subscription) -> Vec<Frame> {
        subscription.filters.iter().map(|filter| self.frame(subscription, &filter.area)).collect()
    }

    fn pair(&self, subscription: &Subscription, frames: &[Frame], event: &Event) -> Result<Pair, OnBorder> {
        let mut pair = Pair::default();
        for (idx, filter) in subscription.filters.iter().enumerate() {
            if !event.truths[filter.condition_idx] || !frames[idx].holds(event.place) {
                continue;
            }
            let (mut holds, mut keeps) = if self.is_lost(subscription, &filter.area) {
                (Side::Outside, Side::Inside)
            } else {
                let margin_m = subscription.hysteresis_m();
                let side = filter.area.side(self.place, event.place);
                let kept = filter.area.side_of_margin(self.place, event.place, margin_m);
                (side, if margin_m > 0.0 { kept } else { side })
            };
            if filter.nearest.is_some() {
                let centre = if let Area::Circle { center, .. } = filter.area { Some(center) } else { None };
                match self.place.or(centre) {
                    Some(origin) => pair.distance_m = distance_m(origin, event.place),
                    None => (holds, keeps) = (Side::Outside, Side::Outside),
                }
            }
            let reached = match (event.reach_m, self.place) {
                (Some(reach_m), Some(place)) => within(distance_m(place, event.place), reach_m),
                (None, _) | (_, None) => Side::Inside,
            };
            for side in [holds, keeps] {
                if side != Side::Outside && (side == Side::Border || reached == Side::Border) {
                    return Err(OnBorder);
                }
            }
            if reached == Side::Inside {
                pair.holds |= u8::from(holds == Side::Inside) << idx;
                pair.keeps |= u8::from(keeps == Side::Inside) << idx;
            }
        }
        Ok(pair)
    }

    fn pairs(
        &self,
        subscription: &Subscription,
        frames: &[Frame],
        objects: &[Option<Event>],
    ) -> Result<Vec<Pair>, OnBorder> {
        let pair = |event: &Option<Event>| {
            event.as_ref().map_or(Ok(Pair::default()), |event| self.pair(subscription, frames, event))
        };
        objects.iter().map(pair).collect()
    }
}

impl Held {
    /// The objects that a filter counts as its nearest; without such a filter none.
    fn counted(&self, objects: &[Option<Event>]) -> Vec<bool> {
        let (bit, count) = self.subscription.nearest();
        let mut counted = vec![false; self.pairs.len()];
        let candidates = self.pairs.iter().enumerate().filter(|(_, pair)| pair.holds & bit != 0);
        let mut candidates = candidates
            .filter_map(|(object, pair)| Some((pair.distance_m, objects[object].as_ref()?.number, object)))
            .collect::<Vec<_>>();
        candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let Some([last, first_out]) = candidates.get(count.saturating_sub(1)..=count) {
            assert!(first_out.0 - last.0 > 1e-8, "two at the same distance: take another seed");
        }
        for (_, _, object) in candidates.into_iter().take(count) {
            counted[object] = true;
        }
        counted
    }

    /// Whether an object is inside now.
    fn is_inside(&self, object: usize, counted: &[bool]) -> bool {
        let (bit, _) = self.subscription.nearest();
        let pair = self.pairs[object];
        let stays = self.memory[object] != 0 && !matches!(self.subscription.interest, Interest::Events);
        let filters = if stays { pair.keeps } else { pair.holds };
        filters & !bit != 0 || counted[object]
    }

    /// Whether an object comes inside or stays there, its hysteresis left aside; and whether it is inside.
    fn account(&self, object: usize, counted: &[bool], lost: u8) -> (bool, bool) {
        let (bit, _) = self.subscription.nearest();
        let pair = self.pairs[object];
        let inside = self.memory[object] != 0 && self.subscription.interest != Interest::Events;
        let filters = if inside { pair.holds | pair.keeps & lost } else { pair.holds };
        (filters & !bit != 0 || counted[object], inside)
    }

    /// Tells what has changed for an object, and remembers it.
    fn settle(
        &mut self,
        object: usize,
        event: Option<&Event>,
        counted: &[bool],
        mut tell: impl FnMut(Kind, u64),
    ) {
        let inside = event.filter(|_| self.is_inside(object, counted));
        let before = self.memory[object];
        match (self.subscription.interest, inside) {
            (Interest::Events, Some(event)) => {
                if before != event.number {
                    tell(Kind::Event, event.number);
                    self.memory[object] = event.number;
                }
            }
            (Interest::Events, None) => {}
            (Interest::Transitions { enter, .. }, Some(event)) => {
                if enter && before == 0 {
                    tell(Kind::Enter, event.number);
                }
                self.memory[object] = event.number;
            }
            (Interest::Transitions { exit, .. }, None) => {
                if exit && before != 0 {
                    tell(Kind::Exit, before);
                }
                self.memory[object] = 0;
            }
        }
    }
}

/// Frames under way: subscriptions of one client that are told the same of one object share one.
#[derive(Default)]
struct Frames(BTreeMap<(usize, u64, Kind, &'static str), Vec<String>>);

impl Frames {
    fn push(&mut self, client_idx: usize, number: u64, kind: Kind, cause: &'static str, id: &str) {
        self.0.entry((client_idx, number, kind, cause)).or_default().push(id.to_owned());
    }

    fn outcome(self) -> Outcome {
        let mut outcome = Outcome::new();
        for ((client_idx, number, kind, cause), subscriptions) in self.0 {
            outcome.entry(client_idx).or_default().push(Told {
                number,
                kind,
                subscriptions,
                cause: cause.to_owned(),
            });
        }
        outcome
    }
}

impl Oracle {
    /// An empty world.
    pub(crate) fn new(clients_count: usize, objects_count: usize) -> Self {
        let clients = (0..clients_count).map(|_| Client::default()).collect();
        Self { clients, objects: vec![None; objects_count] }
    }

    /// Whether an object lives.
    pub(crate) fn lives(&self, object: usize) -> bool {
        self.objects[object].is_some()
    }

    /// The subscriptions of a client.
    pub(crate) fn subscriptions(&self, client_idx: usize) -> Vec<String> {
        self.clients[client_idx].subscriptions.keys().cloned().collect()
    }

    /// Where a client is.
    pub(crate) fn place(&self, client_idx: usize) -> Option<Place> {
        self.clients[client_idx].place
    }

    /// Where an object is.
    pub(crate) fn object_place(&self, object: usize) -> Option<Place> {
        self.objects[object].as_ref().map(|event| event.place)
    }

    /// What must be said of every live object and a subscription; `ids` are those of the objects' events.
    pub(crate) fn questions(&self, client_idx: usize, subscription: &str, ids: &[String]) -> Vec<Question> {
        let client = &self.clients[client_idx];
        let held = &client.subscriptions[subscription];
        let filters = held.subscription.filters.iter().enumerate();
        let lost = filters.filter(|(_, filter)| client.is_lost(&held.subscription, &filter.area));
        let lost = lost.fold(0, |bits, (idx, _)| bits | 1 << idx);
        let counted = held.counted(&self.objects);
        let question = |object: usize| {
            let (matched, inside) = held.account(object, &counted, lost);
            let (subscription, event) = (subscription.to_owned(), ids[object].clone());
            Question { client_idx, subscription, event, matched, inside }
        };
        (0..self.objects.len()).filter(|object| self.lives(*object)).map(question).collect()
    }

    /// Takes a new event of an object.
    pub(crate) fn publish(&mut self, object: usize, event: Event) -> Result<Outcome, OnBorder> {
        let mut pairs = Vec::new();
        for client in &self.clients {
            for held in client.subscriptions.values() {
                pairs.push(client.pair(&held.subscription, &held.frames, &event)?);
            }
        }
        self.objects[object] = Some(event);
        Ok(self.put(object, pairs, "published"))
    }

    /// Ends an object's life.
    pub(crate) fn end(&mut self, object: usize, cause: &'static str) -> Outcome {
        self.objects[object] = None;
        let subscriptions_count = self.clients.iter().map(|client| client.subscriptions.len()).sum();
        self.put(object, vec![Pair::default(); subscriptions_count], cause)
    }

    /// Puts what the filters say of an object now in the place of what they said.
    fn put(&mut self, object: usize, pairs: Vec<Pair>, cause: &'static str) -> Outcome {
        let mut frames = Frames::default();
        let mut pairs = pairs.into_iter();
        for (client_idx, client) in self.clients.iter_mut().enumerate() {
            for (id, held) in &mut client.subscriptions {
                let pair = pairs.next().expect("a pair for each subscription");
                let before = std::mem::replace(&mut held.pairs[object], pair);
                let (bit, _) = held.subscription.nearest();
                if (before.holds | pair.holds) & bit != 0 {
                    settle_all(held, &self.objects, cause, client_idx, id, &mut frames);
                } else if pair.holds | pair.keeps != 0 || held.memory[object] != 0 {
                    let counted = vec![false; self.objects.len()];
                    held.settle(object, self.objects[object].as_ref(), &counted, |kind, number| {
                        frames.push(client_idx, number, kind, cause, id);
                    });
                }
            }
        }
        frames.outcome()
    }

    /// Passes an event on that does not live.
    pub(crate) fn pass(&self, event: &Event) -> Result<Outcome, OnBorder> {
        let mut frames = Frames::default();
        for (client_idx, client) in self.clients.iter().enumerate() {
            for (id, held) in &client.subscriptions {
                let pair = client.pair(&held.subscription, &held.frames, event)?;
                let (bit, _) = held.subscription.nearest();
                if held.subscription.interest == Interest::Events && pair.holds & !bit != 0 {
                    frames.push(client_idx, event.number, Kind::Event, "published", id);
                }
            }
        }
        Ok(frames.outcome())
    }

    /// Moves a client.
    pub(crate) fn move_client(
        &mut self,
        client_idx: usize,
        place: Place,
        accuracy_m: f64,
    ) -> Result<Outcome, OnBorder> {
        let client = &mut self.clients[client_idx];
        let before = (client.place, client.accuracy_m);
        (client.place, client.accuracy_m) = (Some(place), accuracy_m);
        let mut fresh = Vec::new();
        for held in client.subscriptions.values() {
            let frames = client.frames(&held.subscription);
            match client.pairs(&held.subscription, &frames, &self.objects) {
                Ok(pairs) => fresh.push((frames, pairs)),
                Err(on_border) => {
                    (client.place, client.accuracy_m) = before;
                    return Err(on_border);
                }
            }
        }
        let mut frames = Frames::default();
        for ((id, held), fresh) in client.subscriptions.iter_mut().zip(fresh) {
            (held.frames, held.pairs) = fresh;
            settle_all(held, &self.objects, "moved", client_idx, id, &mut frames);
        }
        Ok(frames.outcome())
    }

    /// Makes or replaces a subscription.
    pub(crate) fn subscribe(
        &mut self,
        client_idx: usize,
        id: &str,
        subscription: Subscription,
    ) -> Result<Outcome, OnBorder> {
        let client = &mut self.clients[client_idx];
        let frames = client.frames(&subscription);
        let pairs = client.pairs(&subscription, &frames, &self.objects)?;
        let previous = client.subscriptions.remove(id).filter(|previous| {
            let kinds = [&previous.subscription, &subscription].map(|s| s.interest == Interest::Events);
            kinds[0] == kinds[1]
        });
        let is_new = previous.is_none();
        let memory = previous.map_or_else(|| vec![0; self.objects.len()], |previous| previous.memory);
        let silent = matches!(subscription.interest, Interest::Transitions { initial: false, .. }) && is_new;
        let mut held = Held { subscription, frames, pairs, memory };
        let mut frames = Frames::default();
        settle_all(&mut held, &self.objects, "changed", client_idx, id, &mut frames);
        client.subscriptions.insert(id.to_owned(), held);
        Ok(if silent { Outcome::new() } else { frames.outcome() })
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, client_idx: usize, id: &str) {
        self.clients[client_idx].subscriptions.remove(id).expect("there is one");
    }
}

fn settle_all(
    held: &mut Held,
    objects: &[Option<Event>],
    cause: &'static str,
    client_idx: usize,
    id: &str,
    frames: &mut Frames,
) {
    let counted = held.counted(objects);
    for (object, event) in objects.iter().enumerate() {
        held.settle(object, event.as_ref(), &counted, |kind, number| {
            frames.push(client_idx, number, kind, cause, id);
        });
    }
}
