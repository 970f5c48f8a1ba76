//! Who asked for what and what was answered, who was told what: all that the oracle knows, noted as it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::timeline::{Span, Timeline};
use super::world::{On, Place, Spot, Wish};

/// Clocks of the broker and of the tests may be read so far apart.
const SLACK: Duration = Duration::from_millis(100);

/// Everything that is known.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) clients: Vec<Client>,
    /// By number.
    pub(crate) events: BTreeMap<u64, Event>,
    /// The last event of each object.
    objects: BTreeMap<String, u64>,
    events_count: u64,
    /// Of places and wishes.
    numbers_count: u32,
    pub(crate) deliveries_count: u64,
    pub(crate) repeated_count: u64,
    /// What was wrong.
    pub(crate) faults: Vec<String>,
}

/// A client, by what it asked for and what it was told.
pub(crate) struct Client {
    pub(crate) name: String,
    /// Before any event.
    born: Instant,
    pub(crate) place: Timeline<Option<Place>>,
    pub(crate) wishes: BTreeMap<String, Timeline<Option<Wish>>>,
    subscriptions_count: u32,
    /// What it was told by its readers.
    pub(crate) epoch: Option<String>,
    /// The last offset that was read by any connection, and by the one that is open now.
    pub(crate) seen: u64,
    cursor: u64,
    pub(crate) acked: u64,
    /// What came under each offset, as a hash.
    frames: BTreeMap<u64, u64>,
    /// Of those the offsets of deliveries that name no durable subscription.
    passing: BTreeSet<u64>,
    /// The offset under which each event came first.
    pub(crate) offsets: BTreeMap<u64, u64>,
    /// How often each event came to each subscription to events.
    pub(crate) told: BTreeMap<(String, u64), u32>,
    /// The same as it was when all was compared last.
    pub(crate) told_before: BTreeMap<(String, u64), u32>,
    /// The objects that are inside of each subscription to transitions, as was told.
    pub(crate) inside: BTreeSet<(String, String)>,
    /// The number of the last published event from each publisher.
    orders: BTreeMap<u64, u64>,
}

/// An event, and its life.
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) document: Value,
    pub(crate) spot: Spot,
    pub(crate) kind: u64,
    /// Its key or its id, where it is live.
    pub(crate) object: Option<String>,
    pub(crate) ttl: Option<Duration>,
    first_sent: Option<Instant>,
    pub(crate) last_sent: Option<Instant>,
    pub(crate) acked: Option<Instant>,
    pub(crate) attempts_count: u32,
    /// When it was replaced or revoked.
    ended: Option<(Instant, Option<Instant>)>,
}

impl Ledger {
    /// A client that nobody has heard of; returns its number.
    pub(crate) fn add_client(&mut self, name: String) -> usize {
        self.clients.push(Client {
            name,
            born: Instant::now(),
            place: Timeline::new(None, Instant::now()),
            wishes: BTreeMap::new(),
            subscriptions_count: 0,
            epoch: None,
            seen: 0,
            cursor: 0,
            acked: 0,
            frames: BTreeMap::new(),
            passing: BTreeSet::new(),
            offsets: BTreeMap::new(),
            told: BTreeMap::new(),
            told_before: BTreeMap::new(),
            inside: BTreeSet::new(),
            orders: BTreeMap::new(),
        });
        self.clients.len() - 1
    }

    /// A number that no place and no wish has yet.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.numbers_count += 1;
        self.numbers_count
    }

    /// An event that nobody has heard of. `make` gets its number.
    pub(crate) fn add_event(&mut self, make: impl FnOnce(u64) -> Event) -> u64 {
        self.events_count += 1;
        self.events.insert(self.events_count, make(self.events_count));
        self.events_count
    }

    /// An event is published, or published again because there was no answer. Returns its document.
    pub(crate) fn send_event(&mut self, number: u64) -> Value {
        let now = Instant::now();
        let event = self.events.get_mut(&number).expect("it was made");
        event.first_sent.get_or_insert(now);
        event.last_sent = Some(now);
        event.attempts_count += 1;
        let document = event.document.clone();
        if let Some(object) = event.object.clone()
            && let Some(previous) = self.objects.insert(object, number)
            && previous != number
        {
            self.send_end(previous);
        }
        document
    }

    /// The broker has answered that it has an event.
    pub(crate) fn ack_event(&mut self, number: u64) {
        let event = self.events.get_mut(&number).expect("it was made");
        event.acked = Some(Instant::now());
        let Some(object) = event.object.clone() else { return };
        let replaced = self.events.range_mut(..number).rev().map(|(_, event)| event);
        for previous in replaced.filter(|event| event.object.as_ref() == Some(&object)) {
            previous.ack_end();
        }
    }

    /// A live event is revoked, or replaced.
    pub(crate) fn send_end(&mut self, number: u64) {
        if let Some(event) = self.events.get_mut(&number) {
            event.ended.get_or_insert((Instant::now(), None));
        }
    }

    /// That was answered.
    pub(crate) fn ack_end(&mut self, number: u64) {
        if let Some(event) = self.events.get_mut(&number) {
            event.ack_end();
        }
    }

    /// Whether an event is the last one of its object.
    pub(crate) fn is_last(&self, object: &str, number: u64) -> bool {
        self.objects.get(object) == Some(&number)
    }

    /// Notes that something was wrong.
    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    /// A reader was let in.
    pub(crate) fn ready(&mut self, client_idx: usize, epoch: &str, offset: u64, asked: Option<u64>) {
        let client = &mut self.clients[client_idx];
        let known = client.epoch.get_or_insert_with(|| epoch.to_owned());
        let mut fault = None;
        if known != epoch {
            fault = Some(format!("the epoch was {known} and is {epoch}"));
        } else if asked.is_some_and(|asked| asked != offset) {
            fault = Some(format!("it resumed after {asked:?} and goes on after {offset}"));
        } else if asked.is_none() && offset > client.acked {
            fault = Some(format!("it has acknowledged {} and goes on after {offset}", client.acked));
        }
        client.cursor = offset;
        if let Some(fault) = fault {
            let fault = format!("{}: {fault}", client.name);
            self.fault(fault);
        }
    }

    /// A reader acknowledges what it has read.
    pub(crate) fn ack(&mut self, client_idx: usize) -> u64 {
        let client = &mut self.clients[client_idx];
        client.acked = client.seen;
        client.acked
    }

    /// `<epoch>:<offset>` of what was read last.
    pub(crate) fn resume(&self, client_idx: usize) -> Option<(String, u64)> {
        let client = &self.clients[client_idx];
        Some((format!("{}:{}", client.epoch.as_ref()?, client.seen), client.seen))
    }

    /// A reader got a frame.
    pub(crate) fn frame(&mut self, client_idx: usize, frame: &Value) {
        if let Err(fault) = self.take(client_idx, frame) {
            let client = &self.clients[client_idx];
            let fault = format!("{}, at offset {}: {fault}: {frame}", client.name, client.cursor);
            self.fault(fault);
        }
    }

    fn take(&mut self, client_idx: usize, frame: &Value) -> Result<(), String> {
        let client = &mut self.clients[client_idx];
        if frame["op"] == "gap" {
            return client.miss(frame);
        }
        let offset = frame["offset"].as_u64().filter(|_| frame["op"] == "event").ok_or("not a delivery")?;
        if offset != client.cursor + 1 {
            let fault = format!("{} should have come", client.cursor + 1);
            client.cursor = offset;
            return Err(fault);
        }
        client.cursor = offset;
        if offset <= client.seen {
            self.repeated_count += 1;
            return client.compare(offset, frame);
        }
        client.frames.insert(offset, hash_of(frame));
        while client.frames.len() > 50_000 {
            client.frames.pop_first();
        }
        let names = frame["subscriptions"].as_array().ok_or("no names")?;
        let names = names.iter().map(|name| name.as_str().unwrap_or_default().to_owned());
        let names = names.collect::<Vec<_>>();
        if !names.iter().any(|name| is_durable(name)) {
            client.passing.insert(offset);
        }
        client.seen = offset;
        self.deliveries_count += 1;
        let number = frame["event"]["properties"]["number"].as_u64().ok_or("no number")?;
        let event = self.events.get(&number).ok_or("an event that is over, or never was")?;
        for (member, value) in event.document.as_object().expect("an object") {
            if frame["event"][member] != *value {
                return Err(format!("{member} was {value}"));
            }
        }
        client.offsets.entry(number).or_insert(offset);
        match frame["transition"].as_str() {
            Some(transition) => {
                let object = event.object.as_ref().ok_or("it is not live")?;
                for name in names {
                    let changed = match transition {
                        "enter" => client.inside.insert((name, object.clone())),
                        _ => client.inside.remove(&(name, object.clone())),
                    };
                    if !changed {
                        return Err(format!("a second {transition} of {object} in a row"));
                    }
                }
            }
            None => {
                for name in names {
                    *client.told.entry((name, number)).or_default() += 1;
                }
            }
        }
        // An exit carries the event before the one that is its cause, and who dwells enters later.
        let dwells =
            client.wishes.get("t").and_then(|wish| wish.last()).is_some_and(|wish| wish.on == On::Dwelling);
        let is_late = frame["transition"] == "exit" || frame["transition"] == "enter" && dwells;
        if frame["cause"] == "published" && !is_late {
            let publisher = event.document["properties"]["from"].as_u64().unwrap_or_default();
            let last = client.orders.insert(publisher, number).unwrap_or_default();
            if last > number && event.attempts_count < 2 {
                return Err(format!("event {last} of the same publisher came before"));
            }
        }
        Ok(())
    }

    /// Forgets events that are over and all that is decided.
    pub(crate) fn forget(&mut self) {
        let now = Instant::now();
        self.events.retain(|_, event| event.life().is_some_and(|life| life.1.is_none_or(|end| end > now)));
        let events = &self.events;
        self.objects.retain(|_, number| events.contains_key(number));
        for client in &mut self.clients {
            client.place.forget();
            client.wishes.values_mut().for_each(Timeline::forget);
            client.wishes.retain(|_, wish| wish.last().is_some());
            client.told.retain(|(_, number), _| events.contains_key(number));
            client.told_before.clone_from(&client.told);
            client.offsets.retain(|number, _| events.contains_key(number));
            let first = client.frames.first_key_value().map_or(0, |(offset, _)| *offset);
            client.passing = client.passing.split_off(&first);
        }
    }
}

/// Whether a subscription is durable is said by its id: what one has lost that was not counts as had for good.
pub(crate) fn is_durable(id: &str) -> bool {
    !id.starts_with('v')
}

fn hash_of(frame: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.to_string().hash(&mut hasher);
    hasher.finish()
}

impl Client {
    /// An id that no subscription of it had.
    pub(crate) fn next_subscription(&mut self, durable: bool) -> String {
        self.subscriptions_count += 1;
        format!("{}{}", if durable { 's' } else { 'v' }, self.subscriptions_count)
    }

    /// Whether a delivery is the one that came under its offset before, where that is known.
    pub(crate) fn compare(&self, offset: u64, frame: &Value) -> Result<(), String> {
        match self.frames.get(&offset) {
            Some(known) if *known != hash_of(frame) => {
                Err("something else came under this offset before".into())
            }
            _ => Ok(()),
        }
    }

    /// Whether a gap may be between two offsets: only of what no durable subscription was told. The gap says
    /// `acknowledged` where the client has acknowledged beyond it: the broker may accept a connection before an earlier one's acknowledgement.
    pub(crate) fn may_miss(&self, from: u64, frame: &Value) -> Result<u64, String> {
        let to = frame["to"].as_u64().ok_or("no end")?;
        let is_acknowledged = frame["reason"] == "acknowledged" && to <= self.acked;
        if !(frame["reason"] == "not-durable" || is_acknowledged)
            || frame["from"] != from
            || frame["count"] != to + 1 - from.min(to + 1)
        {
            return Err(format!("no such gap can be after {}", from - 1));
        }
        let kept = self.frames.range(from..=to).find(|(offset, _)| !self.passing.contains(offset));
        kept.map_or(Ok(to), |(offset, _)| Err(format!("{offset} named a durable subscription")))
    }

    fn miss(&mut self, frame: &Value) -> Result<(), String> {
        let to = self.may_miss(self.cursor + 1, frame)?;
        self.cursor = to;
        self.seen = self.seen.max(to);
        Ok(())
    }

    /// Asks for something under an id.
    pub(crate) fn send_wish(&mut self, id: &str, wish: Wish) {
        let born = self.born;
        self.wishes.entry(id.to_owned()).or_insert_with(|| Timeline::new(None, born)).send(Some(wish));
    }

    /// The ids of the subscriptions that it has, or has asked for.
    pub(crate) fn subscriptions(&self) -> Vec<String> {
        let there = self.wishes.iter().filter(|(_, wish)| wish.last().is_some());
        there.map(|(id, _)| id.clone()).collect()
    }
}

impl Event {
    /// One that nobody has heard of.
    pub(crate) fn new(
        number: u64,
        document: Value,
        spot: Spot,
        kind: u64,
        object: Option<String>,
        ttl: Option<Duration>,
    ) -> Self {
        Self {
            number,
            document,
            spot,
            kind,
            object,
            ttl,
            first_sent: None,
            last_sent: None,
            acked: None,
            attempts_count: 0,
            ended: None,
        }
    }

    /// When it may be live, or, where it does not live on, when it is matched.
    pub(crate) fn life(&self) -> Option<Span> {
        let first_sent = self.first_sent?;
        if self.object.is_none() {
            return Some((first_sent, self.acked));
        }
        let expired = self.acked.zip(self.ttl).map(|(acked, ttl)| acked + ttl + SLACK);
        let ended = self.ended.and_then(|ended| ended.1);
        Some((first_sent, expired.into_iter().chain(ended).min()))
    }

    /// When it is certainly live.
    pub(crate) fn certain_life(&self) -> Option<Span> {
        let (acked, sent) = (self.acked?, self.last_sent?);
        self.object.as_ref()?;
        let expired = self.ttl.map(|ttl| sent + ttl.saturating_sub(SLACK));
        let ended = self.ended.map(|ended| ended.0);
        let end = expired.into_iter().chain(ended).min();
        end.is_none_or(|end| acked < end).then_some((acked, end))
    }

    fn ack_end(&mut self) {
        if let Some((_, acked @ None)) = &mut self.ended {
            *acked = Some(Instant::now());
        }
    }
}
