//! `cells`, the default engine: a hierarchy of grids on the CPU.
//!
//! It is CLCB's order of tests (section 4.2: names, then distance, then constraints) behind an index that a move
//! changes in constant time. An event goes through four steps: its attributes get the numbers of the names that
//! filters use (`view`); the grid gives the runs of filters in the cells around it, under the access keys that it has
//! (`grid`, `access`); four filters at a time are tested for names and distance (`lines`); those that are left are
//! decided exactly, first by their constraints (`records`, `constraints`), then by their area where the pre-test left a doubt.

mod access;
mod buckets;
mod constraints;
mod grid;
mod lines;
mod names;
mod paged;
mod pages;
mod records;
mod shapes;
mod table;
mod texts;
mod view;

use std::hint::black_box;

use access::{Accesses, required_mask};
use constraints::Constraints;
use grid::{AccessGroup, CellKey, Grid, ProbedRun};
use lines::{Probe, Survivor};
use names::Names;
use paged::Slab;
use records::{Header, NONE, Records};
use shapes::{Shapes, following};
use texts::Texts;
use view::{View, ViewedAttribute, append_attributes};

use super::{Engine, Footprint, InstallError, MatchError, MatchRows};
use crate::condition::normal::Literal;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::{ClientId, Subscription, SubscriptionId};

/// Events that go through the steps together, so that the memory waits of one are hidden behind another.
const GROUP_EVENTS: usize = 16;

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Cells {
    world: World,
    names: Names,
    texts: Texts,
    accesses: Accesses,
    constraints: Constraints,
    shapes: Shapes,
    grid: Grid,
    records: Records,
    subscriptions: Slab<Held>,
    subscriptions_count: usize,
    clients: Slab<Client>,
    scratch: Scratch,
}

/// A subscription, in the list of its client's.
#[derive(Clone, Copy, Debug)]
struct Held {
    installed: bool,
    client: u32,
    /// The first of its records: one for each conjunction of each filter.
    first_record: u32,
    previous: u32,
    next: u32,
}

impl Default for Held {
    fn default() -> Self {
        Self { installed: false, client: NONE, first_record: NONE, previous: NONE, next: NONE }
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
    /// Of one event at a time.
    accesses: Vec<u32>,
    access_groups: Vec<AccessGroup>,
    /// A cell and its probe have the same index.
    cells: Vec<CellKey>,
    probes: Vec<Probe>,
    runs: Vec<ProbedRun>,
    survivors: Vec<Survivor>,
    /// Of one move at a time.
    moving: Vec<u32>,
    /// One per event of the group.
    ends: Vec<Ends>,
}

/// Where an event's parts of the lists end.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    attributes: usize,
    access_groups: usize,
    cells: usize,
    runs: usize,
    survivors: usize,
}

impl Cells {
    /// An empty engine.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self {
            world,
            names: Names::new(),
            texts: Texts::new(),
            accesses: Accesses::new(),
            constraints: Constraints::new(),
            shapes: Shapes::new(world),
            grid: Grid::new(world),
            records: Records::new(),
            subscriptions: Slab::new(),
            subscriptions_count: 0,
            clients: Slab::new(),
            scratch: Scratch::default(),
        }
    }

    /// Adds the records of a subscription; those that were made before an error are in its list.
    fn add_records(&mut self, id: u32, subscription: &Subscription) -> Option<()> {
        for filter in &subscription.filters {
            for conjunction in filter.condition.normal().conjunctions() {
                let shape = self.shapes.acquire(&filter.area, &self.grid)?;
                let Some(record) = self.add_record(id, shape, conjunction) else {
                    self.shapes.release(shape);
                    return None;
                };
                self.subscriptions[id].first_record = record;
                let position = self.clients[subscription.client.0].position;
                if let Some(centre) = self.shapes.centre(shape, position.as_ref()) {
                    let extent = self.shapes.extent(shape);
                    self.grid.put(&mut self.records, record, extent, None, &centre).ok()?;
                }
            }
        }
        Some(())
    }

    fn add_record(&mut self, subscription: u32, shape: u32, conjunction: &[Literal]) -> Option<u32> {
        let words = self.constraints.acquire(conjunction, &mut self.names, &mut self.texts)?;
        let access = self.accesses.acquire(conjunction, &mut self.names, &self.texts);
        let record = access.and_then(|access| {
            let mask = required_mask(conjunction, &self.names);
            let next = self.subscriptions[subscription].first_record;
            let header = Header { slot: NONE, access, mask, next, subscription, shape, words: 0 };
            self.records.insert(header, &words)
        });
        if record.is_none() {
            if let Some(access) = access {
                self.accesses.release(access, &mut self.names);
            }
            self.constraints.release(&words, &mut self.names, &mut self.texts);
        }
        record
    }

    /// Appends the records whose areas follow a client.
    fn append_following(&self, client: u32, records: &mut Vec<u32>) {
        let mut subscription = self.clients[client].first_subscription;
        while subscription != NONE {
            let held = self.subscriptions[subscription];
            let mut record = held.first_record;
            while record != NONE {
                let header = self.records.header(record);
                if following(self.shapes.area(header.shape)) {
                    records.push(record);
                }
                record = header.next;
            }
            subscription = held.next;
        }
    }

    /// Reads what a move of these records will look at, so that the waits for memory of all of them overlap.
    fn touch_moves(&self, records: &[u32], from: Option<&[f64; 3]>, to: &[f64; 3]) {
        black_box(records.iter().fold(0, |touched, record| {
            let header = self.records.header(*record);
            touched ^ self.grid.touch_put(&header, self.shapes.extent(header.shape), from, to)
        }));
    }

    fn remove_held(&mut self, id: u32) {
        let held = std::mem::take(&mut self.subscriptions[id]);
        let position = self.clients[held.client].position;
        let mut record = held.first_record;
        while record != NONE {
            let header = self.records.header(record);
            if let Some(centre) = self.shapes.centre(header.shape, position.as_ref()) {
                self.grid.take(&mut self.records, record, self.shapes.extent(header.shape), &centre);
            }
            // The key refers to names and texts that the constraints keep alive.
            self.accesses.release(header.access, &mut self.names);
            let words = self.records.constraints(record, &header);
            self.constraints.release(words, &mut self.names, &mut self.texts);
            self.shapes.release(header.shape);
            self.records.remove(record);
            record = header.next;
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
    ///
    /// Each step first reads, without a branch in between, what it will look at: the waits for memory, which are most
    /// of the time, then overlap.
    fn gather(&self, events: &[&Event], scratch: &mut Scratch) {
        scratch.clear();
        for event in events {
            let start = scratch.ends.last().copied().unwrap_or_default();
            let mask = append_attributes(event, &self.names, &self.texts, &mut scratch.attributes);
            let attributes = &scratch.attributes[start.attributes..];
            scratch.accesses.clear();
            self.accesses.append_keys(event, attributes, &self.names, &self.texts, &mut scratch.accesses);
            group_accesses(&scratch.accesses, start.access_groups, &mut scratch.access_groups);
            self.grid.find(event.position.point(), mask, &mut scratch.cells, &mut scratch.probes);
            scratch.ends.push(Ends {
                attributes: scratch.attributes.len(),
                access_groups: scratch.access_groups.len(),
                cells: scratch.cells.len(),
                ..Ends::default()
            });
        }
        let mut touched = 0;
        let mut start = Ends::default();
        for ends in &scratch.ends {
            let groups = &scratch.access_groups[start.access_groups..ends.access_groups];
            for cell in &scratch.cells[start.cells..ends.cells] {
                touched ^= self.grid.touch_cell(*cell, groups);
            }
            start = *ends;
        }
        black_box(touched);
        let mut start = Ends::default();
        for ends in &mut scratch.ends {
            let groups = &scratch.access_groups[start.access_groups..ends.access_groups];
            for probe in start.cells..ends.cells {
                self.grid.collect(scratch.cells[probe], groups, probe, &mut scratch.runs);
            }
            ends.runs = scratch.runs.len();
            start = *ends;
        }
        black_box(scratch.runs.iter().fold(0, |sum, run| sum ^ self.grid.touch_lines(run)));
        let mut run = 0;
        for ends in &mut scratch.ends {
            while run < ends.runs {
                self.grid.pre_test(&scratch.runs[run], &scratch.probes, &mut scratch.survivors);
                run += 1;
            }
            ends.survivors = scratch.survivors.len();
        }
        black_box(scratch.survivors.iter().fold(0, |sum, survivor| sum ^ self.records.touch(survivor.entry)));
    }

    /// Appends the subscriptions of those survivors that the event, which `view` shows, satisfies.
    fn decide(&self, event: &Event, view: &View, survivors: &[Survivor], ids: &mut Vec<SubscriptionId>) {
        for survivor in survivors {
            let header = self.records.header(survivor.entry);
            let words = self.records.constraints(survivor.entry, &header);
            if self.constraints.satisfied(words, view, event, &self.texts)
                && (survivor.inside && self.shapes.is_circle(header.shape) || self.area_holds(&header, event))
                && self.reaches(&header, event)
            {
                ids.push(SubscriptionId(header.subscription));
            }
        }
    }

    fn client_position(&self, header: &Header) -> Option<&Position> {
        self.clients[self.subscriptions[header.subscription].client].position.as_ref()
    }

    fn area_holds(&self, header: &Header, event: &Event) -> bool {
        let area = self.shapes.area(header.shape);
        let client = if following(area) { self.client_position(header) } else { None };
        area.holds(self.world, client, &event.position)
    }

    fn reaches(&self, header: &Header, event: &Event) -> bool {
        match (&event.reach, event.reach.and_then(|_| self.client_position(header))) {
            (Some(reach), Some(client)) => reach.holds(self.world, &event.position, client),
            _ => true,
        }
    }
}

/// Appends the groups of four that access keys fall into, to those of other events before `start`.
fn group_accesses(accesses: &[u32], start: usize, groups: &mut Vec<AccessGroup>) {
    for access in accesses {
        let bit = 1 << (access & 3);
        match groups[start..].iter_mut().find(|group| group.accesses == access >> 2) {
            Some(group) => group.lanes |= bit,
            None => groups.push(AccessGroup { accesses: access >> 2, lanes: bit }),
        }
    }
}

impl Scratch {
    fn clear(&mut self) {
        self.attributes.clear();
        self.accesses.clear();
        self.access_groups.clear();
        self.cells.clear();
        self.probes.clear();
        self.runs.clear();
        self.survivors.clear();
        self.ends.clear();
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
        self.subscriptions[id] = Held { installed: true, client, first_record: NONE, previous: NONE, next };
        self.subscriptions_count += 1;
        if self.add_records(id, subscription).is_none() {
            self.remove_held(id);
            return Err(InstallError::Full { held: self.records.used() as u64 });
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
        let before = std::mem::replace(&mut self.clients[client.0].position, position);
        let (before, position) =
            (before.as_ref().map(Position::point), position.as_ref().map(Position::point));
        let mut moving = std::mem::take(&mut self.scratch.moving);
        moving.clear();
        self.append_following(client.0, &mut moving);
        if let Some(to) = position {
            self.touch_moves(&moving, before, to);
        }
        for record in &moving {
            let extent = self.shapes.extent(self.records.header(*record).shape);
            match (before, position) {
                (from, Some(to)) => {
                    let put = self.grid.put(&mut self.records, *record, extent, from, to);
                    // A move takes a lane before it gives one back; 2^32 lanes are 64 GiB of lines.
                    debug_assert!(put.is_ok(), "lines outnumber records");
                }
                (Some(from), None) => self.grid.take(&mut self.records, *record, extent, from),
                (None, None) => {}
            }
        }
        self.scratch.moving = moving;
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        for group in events.chunks(GROUP_EVENTS) {
            self.gather(group, &mut scratch);
            let mut start = Ends::default();
            for (event, ends) in group.iter().zip(&scratch.ends) {
                let survivors = &scratch.survivors[start.survivors..ends.survivors];
                rows.push_with(|ids| {
                    if !survivors.is_empty() {
                        let attributes = &scratch.attributes[start.attributes..ends.attributes];
                        scratch.view.show(attributes, self.names.end());
                        self.decide(event, &scratch.view, survivors, ids);
                    }
                });
                start = *ends;
            }
        }
        self.scratch = scratch;
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            subscriptions: self.subscriptions_count,
            filters: self.records.used(),
            bytes: self.names.bytes()
                + self.texts.bytes()
                + self.accesses.bytes()
                + self.constraints.bytes()
                + self.shapes.bytes()
                + self.grid.bytes()
                + self.records.bytes()
                + self.subscriptions.bytes()
                + self.clients.bytes(),
        }
    }
}
