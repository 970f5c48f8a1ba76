//! The log of deliveries: the recipients of events, and the fate of each delivery. It has the live events, and the last that
//! ended or never were live.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use matcher::live::{Cause, Moment};

use super::slots::Slots;
use super::{Client, Sessions};
use crate::budget;
use crate::ingest::json::{self, Members};
use crate::model::delivery::{self, SubscriptionIds, Transition};
use crate::model::event::Body;
use crate::model::sent_offsets::SentOffsets;
use crate::model::tenant;

/// A delivery, as it was dealt.
#[derive(Clone, Debug)]
pub(super) struct Dispatched {
    pub(super) recipient: Arc<SentOffsets>,
    pub(super) subscriptions: SubscriptionIds,
    pub(super) offset: u64,
    pub(super) cause: Cause,
    pub(super) transition: Option<Transition>,
    /// Whether anybody read for the client then.
    pub(super) is_read: bool,
    /// Where the client was then, where others are shown that at all.
    pub(super) place: Option<[f64; 2]>,
}

/// Where the deliveries of one event are kept. Good until the next event ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId(u32);

/// The deliveries of events.
///
/// An event that went to nobody has no entry. Those of live events stay while they are live; those of the others are
/// forgotten, the oldest first, beyond `sessions.recent_events` events, or where all entries together hold as many
/// deliveries, or take as many bytes, as they may.
pub(super) struct Log {
    bounds: Bounds,
    entries: Slots<Entry>,
    /// Entries of live events, by the address of the event's body, which the entry keeps.
    live: HashMap<usize, u32, foldhash::fast::RandomState>,
    /// When those are over.
    ends: BTreeSet<(Moment, usize)>,
    /// Entries of other events, the oldest first.
    recent: VecDeque<u32>,
    dealt_count: usize,
    /// Bytes of the entries: deliveries, their names, and the texts of events that are not live.
    bytes: u64,
    /// How many deliveries share each list of names, by its address.
    names: HashMap<usize, u32, foldhash::fast::RandomState>,
    /// The charge for `bytes` to the budget of all clients.
    held: budget::Held,
    /// The last end of those that were forgotten.
    forgotten: Option<Moment>,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Events that are not live; 0: nothing at all is kept.
    recent: usize,
    /// Deliveries of one event, and of one answer. Further ones are counted.
    listed: usize,
    /// Deliveries of all events.
    dealt: usize,
    /// Bytes of all of it.
    bytes: u64,
}

/// Deliveries of one event that one shard lists.
const LISTED_MAX: usize = 10_000;

/// Deliveries that one shard keeps, some 80 MB besides their names.
const DEALT_MAX: usize = 1_000_000;

/// The deliveries of one event.
struct Entry {
    body: Arc<Body>,
    dealt: Vec<Dispatched>,
    omitted: u64,
    /// When the event's life was over; none while it lasts.
    ended: Option<Moment>,
    /// When it will be over by itself.
    expires: Moment,
}

/// Restricts an audit to the events that its asker may know of.
pub(crate) type Known = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Events that may be of an id, as one shard remembers them.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// Live events of the id.
    live: Vec<Arc<Body>>,
    /// All events of the tenant that are not live, whatever their ids.
    recent: Vec<Arc<Body>>,
}

/// Events that are asked for: by their bodies' addresses, ascending. The bodies are kept meanwhile.
#[derive(Debug)]
pub(crate) struct Asked(Vec<Arc<Body>>);

/// The knowledge of one shard about the events of an id.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Whether an event of the id is live.
    is_live: bool,
    events: Vec<AuditedEvent>,
    forgotten: Option<Moment>,
}

/// The knowledge of one shard about an event.
#[derive(Debug)]
struct AuditedEvent {
    /// When its life was over; none while it lasts.
    ended: Option<Moment>,
    deliveries: Vec<(Dispatched, wire::DeliveryState)>,
    omitted: u64,
}

impl Log {
    pub(super) fn new(recent_events: usize, recent_bytes: usize, held: budget::Held) -> Self {
        let bytes = recent_bytes as u64;
        Self::within(Bounds { recent: recent_events, listed: LISTED_MAX, dealt: DEALT_MAX, bytes }, held)
    }

    fn within(bounds: Bounds, held: budget::Held) -> Self {
        Self {
            bounds,
            entries: Slots::new(),
            live: HashMap::default(),
            ends: BTreeSet::new(),
            recent: VecDeque::new(),
            dealt_count: 0,
            bytes: 0,
            names: HashMap::default(),
            held,
            forgotten: None,
        }
    }

    /// Whether anything is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.bounds.recent > 0
    }

    /// Begins the entry of an event that is not live, with room for deliveries to this number of clients.
    pub(super) fn begin_passing(
        &mut self,
        body: &Arc<Body>,
        ended: Moment,
        clients: usize,
    ) -> Option<EntryId> {
        if !self.is_kept() {
            return None;
        }
        let dealt = Vec::with_capacity(clients.min(self.bounds.listed));
        let body = Arc::clone(body);
        let number =
            self.entries.insert(Entry { body, dealt, omitted: 0, ended: Some(ended), expires: ended })?;
        self.remember(number);
        Some(EntryId(number))
    }

    /// The entry of a live event, which is begun if need be.
    pub(super) fn of_live(&mut self, body: &Arc<Body>, expires: Moment) -> Option<EntryId> {
        if !self.is_kept() {
            return None;
        }
        let address = Arc::as_ptr(body).addr();
        if let Some(number) = self.live.get(&address) {
            return Some(EntryId(*number));
        }
        let body = Arc::clone(body);
        let number =
            self.entries.insert(Entry { body, dealt: Vec::new(), omitted: 0, ended: None, expires })?;
        self.live.insert(address, number);
        self.ends.insert((expires, address));
        Some(EntryId(number))
    }

    /// Adds a delivery.
    pub(super) fn note(&mut self, entry: EntryId, dealt: Dispatched) {
        let bytes = size_of::<Dispatched>() as u64 + self.bytes_of_more(&dealt.subscriptions);
        while (self.dealt_count >= self.bounds.dealt || self.bytes + bytes > self.bounds.bytes)
            && self.recent.front().is_some_and(|oldest| *oldest != entry.0)
        {
            self.forget_oldest();
        }
        let bytes = size_of::<Dispatched>() as u64 + self.bytes_of_more(&dealt.subscriptions);
        let has_room = self.dealt_count < self.bounds.dealt && self.bytes + bytes <= self.bounds.bytes;
        let Some(entry) = self.entries.get_mut(entry.0) else { return };
        if entry.dealt.len() >= self.bounds.listed || !has_room {
            entry.omitted += 1;
            return;
        }
        if let Some(address) = address_of(&dealt.subscriptions) {
            *self.names.entry(address).or_default() += 1;
        }
        entry.dealt.push(dealt);
        self.dealt_count += 1;
        self.count(self.bytes + bytes);
    }

    /// Bytes that the names of a delivery take more than is kept already, since deliveries share them.
    fn bytes_of_more(&self, names: &SubscriptionIds) -> u64 {
        let is_new = address_of(names).is_some_and(|address| !self.names.contains_key(&address));
        if is_new { bytes_of(names) } else { 0 }
    }

    fn count(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.held.cover(bytes);
    }

    /// An event is live no more, and everything that this brought has been dealt.
    pub(super) fn end(&mut self, body: &Arc<Body>, now: Moment) {
        let address = Arc::as_ptr(body).addr();
        let Some(number) = self.live.remove(&address) else { return };
        if let Some(entry) = self.entries.get_mut(number) {
            entry.ended = Some(now);
            self.ends.remove(&(entry.expires, address));
        }
        self.remember(number);
    }

    /// Ends the lives of all events whose time is over.
    pub(super) fn end_expired(&mut self, now: Moment) {
        while let Some((expires, address)) = self.ends.first().copied()
            && expires <= now
        {
            self.ends.pop_first();
            let Some(number) = self.live.remove(&address) else { continue };
            if let Some(entry) = self.entries.get_mut(number) {
                entry.ended = Some(expires);
            }
            self.remember(number);
        }
    }

    fn remember(&mut self, number: u32) {
        let bytes = self.entries.get(number).map_or(0, Entry::bytes);
        self.recent.push_back(number);
        self.count(self.bytes + bytes);
        while self.recent.len() > self.bounds.recent
            || (self.bytes > self.bounds.bytes && self.recent.len() > 1)
        {
            self.forget_oldest();
        }
    }

    /// Forgets all events that are not live: what is remembered of them would keep their texts on disk.
    pub(super) fn forget_recent(&mut self) {
        while !self.recent.is_empty() {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(entry) = self.recent.pop_front().and_then(|number| self.entries.remove(number)) else {
            return;
        };
        let mut bytes = entry.bytes() + size_of_val(&*entry.dealt) as u64;
        for dealt in &entry.dealt {
            bytes += self.give_up(&dealt.subscriptions);
        }
        self.count(self.bytes - bytes);
        self.dealt_count -= entry.dealt.len();
        self.forgotten = self.forgotten.max(entry.ended);
    }

    /// A delivery has its names no more. What they took, where it was the last one.
    fn give_up(&mut self, names: &SubscriptionIds) -> u64 {
        let Some(address) = address_of(names) else { return 0 };
        let Some(count) = self.names.get_mut(&address) else { return 0 };
        *count -= 1;
        if *count > 0 {
            return 0;
        }
        self.names.remove(&address);
        bytes_of(names)
    }

    fn live_entry(&self, body: &Arc<Body>) -> Option<&Entry> {
        self.entries.get(*self.live.get(&Arc::as_ptr(body).addr())?)
    }

    /// The entries of a tenant's events that are not live, the newest first.
    fn recent_entries<'a>(&'a self, tenant: &'a str) -> impl Iterator<Item = &'a Entry> {
        let entries = self.recent.iter().rev().filter_map(|number| self.entries.get(*number));
        entries.filter(move |entry| entry.is_of(tenant))
    }
}

impl Asked {
    /// Picks the events of an id that the asker may know of from what the shards remember. Bodies are read for it, of each
    /// shard as many as it remembers: this is no work for the thread of an engine.
    pub(crate) fn among(remembered: Vec<Remembered>, id: &str, known: Option<&Known>) -> Self {
        let id = tenant::split(id).1;
        let mut bodies = Vec::new();
        for Remembered { live, recent } in remembered {
            bodies.extend(live);
            bodies.extend(recent.into_iter().filter(|body| is_named(&body.text, id)));
        }
        bodies.sort_unstable_by_key(|body| Arc::as_ptr(body).addr());
        bodies.dedup_by(|a, b| Arc::ptr_eq(a, b));
        bodies.retain(|body| known.is_none_or(|known| known(&body.text)));
        Self(bodies)
    }

    fn holds(&self, body: &Arc<Body>) -> bool {
        let address = Arc::as_ptr(body).addr();
        self.0.binary_search_by_key(&address, |body| Arc::as_ptr(body).addr()).is_ok()
    }
}

impl Entry {
    /// Bytes of the entry besides its deliveries, once its event is not live.
    fn bytes(&self) -> u64 {
        (size_of::<Self>() + size_of::<Body>() + self.body.text.len()) as u64
    }

    /// Whether it is a tenant's: an event goes to clients of its own tenant alone, so that any of them tells. One of which no
    /// delivery could be kept is nobody's.
    fn is_of(&self, tenant: &str) -> bool {
        let of = |dealt: &Dispatched| tenant::split(&dealt.recipient.client).0 == tenant;
        self.dealt.first().map_or(tenant.is_empty(), of)
    }
}

/// Where a list of names is, which whoever has it keeps there. A single name is its subscription's.
fn address_of(names: &SubscriptionIds) -> Option<usize> {
    match names {
        SubscriptionIds::One(_) => None,
        SubscriptionIds::Many(names) => Some(names.as_ptr().addr()),
    }
}

/// Bytes of a list of names, with its entry among those that are shared.
fn bytes_of(names: &SubscriptionIds) -> u64 {
    (size_of_val(names.as_slice()) + 2 * size_of::<usize>() + size_of::<(usize, u32)>()) as u64
}

/// Whether a Feature has an id: a text that reads like this, or a number of these digits.
fn is_named(feature: &str, id: &str) -> bool {
    // Most can be told without being taken apart; with escapes an id is written otherwise than it reads.
    if !feature.contains(id) && !feature.contains('\\') {
        return false;
    }
    let Ok(members) = Members::parse(feature) else { return false };
    members.get("id").is_some_and(|text| {
        if text.starts_with('"') { json::read_text(text).is_ok_and(|text| text == id) } else { text == id }
    })
}

impl Sessions {
    /// The events that may be of an id.
    pub(crate) fn remembered(&self, id: &str) -> Remembered {
        if !self.log.is_kept() {
            return Remembered::default();
        }
        let live = self.tracker.live(id).map(|(_, published, _)| Arc::clone(&published.body));
        let recent = self.log.recent_entries(tenant::split(id).0).map(|entry| Arc::clone(&entry.body));
        Remembered { live: live.collect(), recent: recent.collect() }
    }

    /// The recipients of the events of an id, and the fate of each delivery.
    pub(crate) fn deliveries(&self, id: &str, asked: &Asked) -> Told {
        let mut told = Told { forgotten: self.log.forgotten, ..Told::default() };
        if !self.log.is_kept() {
            return told;
        }
        let mut entries = Vec::new();
        for (_, published, _) in
            self.tracker.live(id).filter(|(_, published, _)| asked.holds(&published.body))
        {
            told.is_live = true;
            entries.extend(self.log.live_entry(&published.body));
        }
        let recent = self.log.recent_entries(tenant::split(id).0);
        entries.extend(recent.filter(|entry| asked.holds(&entry.body)));
        let mut room = self.log.bounds.listed;
        for entry in entries {
            let listed = &entry.dealt[..room.min(entry.dealt.len())];
            room -= listed.len();
            told.events.push(AuditedEvent {
                ended: entry.ended,
                deliveries: listed.iter().map(|dealt| self.became_of(dealt)).collect(),
                omitted: entry.omitted + (entry.dealt.len() - listed.len()) as u64,
            });
        }
        told
    }

    /// A delivery with its place as others are shown it, which goes with the client, and its state.
    fn became_of(&self, dealt: &Dispatched) -> (Dispatched, wire::DeliveryState) {
        // The session may be over, and another one have begun under the name.
        let client = self.ids.get(&*dealt.recipient.client).and_then(|id| self.clients.get(*id));
        let own = |recipient: &Arc<SentOffsets>| Arc::ptr_eq(recipient, &dealt.recipient);
        let client = client.filter(|client| client.recipient.as_ref().is_some_and(own));
        let place = client.and(dealt.place).zip(self.rounding).map(|(place, rounding)| rounding.place(place));
        (Dispatched { place, ..dealt.clone() }, Self::state(client, dealt))
    }

    fn state(client: Option<&Client>, dealt: &Dispatched) -> wire::DeliveryState {
        let mut readers = client.into_iter().flat_map(|client| &client.readers);
        let log = client.and_then(|client| client.log.as_ref());
        // In this order: what a writer takes between the two looks is written, and not lost.
        if readers.any(|reader| reader.waits(dealt.offset)) {
            wire::DeliveryState::Waiting
        } else if dealt.recipient.written().contains(dealt.offset) {
            wire::DeliveryState::Written
        } else if log.is_some_and(|log| log.lock().keeps(dealt.offset)) {
            // For the next connection.
            wire::DeliveryState::Waiting
        } else if !dealt.is_read {
            wire::DeliveryState::Unread
        } else {
            wire::DeliveryState::Dropped
        }
    }
}

impl Dispatched {
    fn shown(&self, state: wire::DeliveryState) -> wire::Delivered {
        let names = match &self.subscriptions {
            SubscriptionIds::One(name) => std::slice::from_ref(name),
            SubscriptionIds::Many(names) => names,
        };
        // They were made from texts.
        let name =
            |name: &Arc<str>| json::read_text(name).map(std::borrow::Cow::into_owned).unwrap_or_default();
        wire::Delivered {
            client: tenant::outside(&self.recipient.client).to_owned(),
            subscriptions: names.iter().map(name).collect(),
            offset: self.offset,
            cause: delivery::wire_cause(self.cause),
            transition: self.transition.map(delivery::wire_transition),
            state,
            position: self.place.map(Vec::from),
        }
    }
}

impl Told {
    /// Puts together what all shards know. `None` where no event of the id is known: of one that some shard may have
    /// forgotten the others do not tell either, for half of the deliveries would look like all of them.
    pub(crate) fn joined(id: &str, told: Vec<Self>) -> Option<wire::Deliveries> {
        let forgotten = told.iter().filter_map(|one| one.forgotten).max();
        let mut is_known = false;
        let mut joined =
            wire::Deliveries { id: tenant::outside(id).to_owned(), deliveries: Vec::new(), omitted: 0 };
        for one in told {
            is_known |= one.is_live;
            for event in one.events {
                if event.ended.is_none() || event.ended > forgotten {
                    is_known = true;
                    let shown = event.deliveries.iter().map(|(dealt, state)| dealt.shown(*state));
                    joined.deliveries.extend(shown);
                    joined.omitted += event.omitted;
                }
            }
        }
        is_known.then_some(joined).and_then(|joined| wire::Deliveries::joined([joined]))
    }
}

#[cfg(test)]
mod tests;
