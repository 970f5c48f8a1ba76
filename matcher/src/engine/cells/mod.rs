//! `cells`, the default engine: a hierarchy of grids on the CPU.
//!
//! It is CLCB's order of tests (section 4.2: names, then distance, then constraints) behind an index that a move
//! changes in constant time. An event goes through four steps: its attributes get the numbers of the names that
//! filters use (`view`); the grid gives the runs of filters in the cells around it, under the access keys that it has
//! (`grid`, `access`); four filters at a time are tested for names and distance (`lines`); those that are left are
//! decided exactly, first by their constraints (`program`), then by their area where the pre-test left a doubt.

mod access;
mod grid;
mod lines;
mod paged;
mod program;
mod shapes;
mod symbols;
mod table;
mod view;

use access::{Accesses, required_mask};
use grid::{Grid, Landing, Run};
use lines::{Probe, Survivor};
use paged::Slab;
use program::Programs;
use shapes::{Shapes, following};
use symbols::Symbols;
use view::{View, ViewedAttribute, append_attributes};

use super::{Engine, Footprint, InstallError, MatchError, MatchRows};
use crate::condition::normal::Literal;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::{ClientId, Subscription, SubscriptionId};

/// No entry, no subscription.
const NONE: u32 = u32::MAX;
/// Events that go through the steps together, so that the memory waits of one are hidden behind another.
const GROUP_EVENTS: usize = 16;

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Cells {
    world: World,
    names: Symbols,
    texts: Symbols,
    accesses: Accesses,
    programs: Programs,
    shapes: Shapes,
    grid: Grid,
    entries: Slab<Entry>,
    subscriptions: Slab<Held>,
    subscriptions_count: usize,
    clients: Slab<Client>,
    scratch: Scratch,
}

/// One conjunction of one filter.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    program: u32,
    shape: u32,
    subscription: u32,
    /// The subscription's next entry.
    next: u32,
    access: u32,
    mask: u32,
}

/// A subscription, in the list of its client's.
#[derive(Clone, Copy, Debug)]
struct Held {
    installed: bool,
    client: u32,
    first_entry: u32,
    previous: u32,
    next: u32,
}

impl Default for Held {
    fn default() -> Self {
        Self { installed: false, client: NONE, first_entry: NONE, previous: NONE, next: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Client {
    position: Option<Position>,
    first_subscription: u32,
}

impl Default for Client {
    fn default() -> Self {
        Self { position: None, first_subscription: NONE }
    }
}

/// Lists that the steps hand to each other; kept for their memory.
#[derive(Debug, Default)]
struct Scratch {
    view: View,
    attributes: Vec<ViewedAttribute>,
    accesses: Vec<u32>,
    probes: Vec<Probe>,
    runs: Vec<Run>,
    survivors: Vec<Survivor>,
    /// Per event of the group: where its attributes, runs and survivors end.
    ends: Vec<(usize, usize, usize)>,
}

impl Cells {
    /// An empty engine.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            world,
            names: Symbols::of_names(),
            texts: Symbols::of_texts(),
            accesses: Accesses::new(),
            programs: Programs::new(),
            shapes: Shapes::new(world),
            grid: Grid::new(world),
            entries: Slab::new(),
            subscriptions: Slab::new(),
            subscriptions_count: 0,
            clients: Slab::new(),
            scratch: Scratch::default(),
        }
    }

    /// Adds the entries of a subscription; those that were made before an error are in its list.
    fn add_entries(&mut self, id: u32, subscription: &Subscription) -> Option<()> {
        for filter in &subscription.filters {
            for conjunction in filter.condition.normal().conjunctions() {
                let shape = self.shapes.acquire(&filter.area, &self.grid)?;
                let entry = self.entries.insert(Entry { shape, subscription: id, ..Entry::default() });
                let Some(entry) = entry else {
                    self.shapes.release(shape);
                    return None;
                };
                if self.fill_entry(entry, conjunction).is_none() {
                    self.shapes.release(shape);
                    self.entries.remove(entry);
                    return None;
                }
                let held = &mut self.subscriptions[id];
                self.entries[entry].next = std::mem::replace(&mut held.first_entry, entry);
                let position = self.clients[subscription.client.0].position;
                if let Some(centre) = self.shapes.centre(shape, position.as_ref()) {
                    let mut landing = Landing::NOWHERE;
                    self.place(entry, &centre, &mut landing)?;
                }
            }
        }
        Some(())
    }

    fn fill_entry(&mut self, entry: u32, conjunction: &[Literal]) -> Option<()> {
        let program = self.programs.acquire(conjunction, &mut self.names, &mut self.texts)?;
        let Some(access) = self.accesses.acquire(conjunction, &self.names, &self.texts) else {
            self.programs.release(program, &mut self.names, &mut self.texts);
            return None;
        };
        let mask = required_mask(conjunction, &self.names);
        let held = &mut self.entries[entry];
        (held.program, held.access, held.mask) = (program, access, mask);
        Some(())
    }

    fn place(&mut self, entry: u32, centre: &[f64; 3], landing: &mut Landing) -> Option<()> {
        let held = self.entries[entry];
        let extent = self.shapes.extent(held.shape);
        self.grid.put(entry, (held.access, held.mask), extent, centre, landing).ok()
    }

    fn remove_held(&mut self, id: u32) {
        let held = std::mem::take(&mut self.subscriptions[id]);
        let mut entry = held.first_entry;
        while entry != NONE {
            self.grid.take(entry);
            let removed = self.entries.remove(entry);
            // The key refers to names and texts that the program keeps alive.
            self.accesses.release(removed.access);
            self.programs.release(removed.program, &mut self.names, &mut self.texts);
            self.shapes.release(removed.shape);
            entry = removed.next;
        }
        match held.previous {
            NONE => self.clients[held.client].first_subscription = held.next,
            previous => self.subscriptions[previous].next = held.next,
        }
        if held.next != NONE {
            self.subscriptions[held.next].previous = held.previous;
        }
        self.subscriptions_count -= 1;
    }

    /// Finds and pre-tests the filters near each event of a group.
    fn gather(&self, events: &[&Event], scratch: &mut Scratch) {
        scratch.attributes.clear();
        scratch.probes.clear();
        scratch.runs.clear();
        scratch.survivors.clear();
        scratch.ends.clear();
        for event in events {
            let start = scratch.attributes.len();
            let mask = append_attributes(event, &self.names, &self.texts, &mut scratch.attributes);
            scratch.accesses.clear();
            let attributes = &scratch.attributes[start..];
            self.accesses.append_keys(event, attributes, &self.texts, &mut scratch.accesses);
            let point = event.position.point();
            self.grid.find(point, mask, &scratch.accesses, &mut scratch.probes, &mut scratch.runs);
            scratch.ends.push((scratch.attributes.len(), scratch.runs.len(), 0));
        }
        let mut run = 0;
        for ends in &mut scratch.ends {
            while run < ends.1 {
                self.grid.pre_test(&scratch.runs[run], &scratch.probes, &mut scratch.survivors);
                run += 1;
            }
            ends.2 = scratch.survivors.len();
        }
    }

    /// Appends the subscriptions of those survivors that the event, which `view` shows, satisfies.
    fn decide(&self, event: &Event, view: &View, survivors: &[Survivor], ids: &mut Vec<SubscriptionId>) {
        for survivor in survivors {
            let entry = &self.entries[survivor.entry];
            if self.programs.satisfied(entry.program, view, event, &self.texts)
                && (survivor.inside && self.shapes.is_circle(entry.shape) || self.area_holds(entry, event))
                && self.reaches(entry, event)
            {
                ids.push(SubscriptionId(entry.subscription));
            }
        }
    }

    fn client_position(&self, entry: &Entry) -> Option<&Position> {
        self.clients[self.subscriptions[entry.subscription].client].position.as_ref()
    }

    fn area_holds(&self, entry: &Entry, event: &Event) -> bool {
        let area = self.shapes.area(entry.shape);
        let client = if following(area) { self.client_position(entry) } else { None };
        area.holds(self.world, client, &event.position)
    }

    fn reaches(&self, entry: &Entry, event: &Event) -> bool {
        match (&event.reach, event.reach.and_then(|_| self.client_position(entry))) {
            (Some(reach), Some(client)) => reach.holds(self.world, &event.position, client),
            _ => true,
        }
    }
}

impl Engine for Cells {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        let (id, client) = (id.0, subscription.client.0);
        self.subscriptions.grow_to(id);
        self.clients.grow_to(client);
        if self.subscriptions[id].installed {
            self.remove_held(id);
        }
        let next = std::mem::replace(&mut self.clients[client].first_subscription, id);
        if next != NONE {
            self.subscriptions[next].previous = id;
        }
        self.subscriptions[id] = Held { installed: true, client, first_entry: NONE, previous: NONE, next };
        self.subscriptions_count += 1;
        if self.add_entries(id, subscription).is_none() {
            self.remove_held(id);
            return Err(InstallError::Full { held: self.entries.used() as u64 });
        }
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let installed = self.subscriptions.get(id.0).is_some_and(|held| held.installed);
        if installed {
            self.remove_held(id.0);
        }
        installed
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        self.clients.grow_to(client.0);
        self.clients[client.0].position = position;
        let mut subscription = self.clients[client.0].first_subscription;
        let mut landing = Landing::NOWHERE;
        while subscription != NONE {
            let held = self.subscriptions[subscription];
            let mut entry = held.first_entry;
            while entry != NONE {
                let (shape, next) = (self.entries[entry].shape, self.entries[entry].next);
                if following(self.shapes.area(shape)) {
                    match &position {
                        Some(position) => {
                            let placed = self.place(entry, position.point(), &mut landing);
                            // A move takes a lane before it gives one back; 2^32 lanes are 64 GiB of lines.
                            debug_assert!(placed.is_some(), "lines outnumber entries");
                        }
                        None => self.grid.take(entry),
                    }
                }
                entry = next;
            }
            subscription = held.next;
        }
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        for group in events.chunks(GROUP_EVENTS) {
            self.gather(group, &mut scratch);
            let (mut attributes_start, mut survivors_start) = (0, 0);
            for (event, (attributes_end, _, survivors_end)) in group.iter().zip(&scratch.ends) {
                let survivors = &scratch.survivors[survivors_start..*survivors_end];
                rows.push_with(|ids| {
                    if !survivors.is_empty() {
                        let attributes = &scratch.attributes[attributes_start..*attributes_end];
                        scratch.view.show(attributes, self.names.numbers_end());
                        self.decide(event, &scratch.view, survivors, ids);
                    }
                });
                (attributes_start, survivors_start) = (*attributes_end, *survivors_end);
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            subscriptions: self.subscriptions_count,
            filters: self.entries.used(),
            bytes: self.names.bytes()
                + self.texts.bytes()
                + self.accesses.bytes()
                + self.programs.bytes()
                + self.shapes.bytes()
                + self.grid.bytes()
                + self.entries.bytes()
                + self.subscriptions.bytes()
                + self.clients.bytes(),
        }
    }
}
