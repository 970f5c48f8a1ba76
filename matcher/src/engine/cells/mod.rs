//! `cells`, the default engine: a hierarchy of grids on the CPU.
//!
//! It is CLCB's order of tests (section 4.2: names, then distance, then constraints) behind an index that a move
//! changes in constant time. An event goes through four steps:
//!
//! 1. Its attributes get the numbers of the names that filters use (`view`). These lead to the clusters of filters that use
//!    such names together (`clusters`).
//! 2. The grid gives the cells around the event (`grid`). A table gives the runs of each cluster in each cell (`buckets`);
//!    crowded buckets are divided further by place (`near`, `store`).
//! 3. Twelve filters at a time are tested for names and distance, and the rest for values by coarse codes (`runs`, `codes`).
//! 4. The few filters that are still in doubt are tested exactly (`records`, `constraints`, `shapes`).

mod arena;
mod buckets;
mod clusters;
mod coded;
mod codes;
mod grid;
mod near;
mod pages;
mod records;
mod runs;
mod store;

use std::hint::black_box;

use buckets::Place;
use clusters::{ClusterProbe, Clusters, Fence, Names};
use coded::Coded;
use codes::ValueCode;
use grid::{CellKey, Extent, Grid, GridFilter};
use records::{Header, Records};
use runs::{Candidate, Hit, Lane, Local, Owner, Run};
use store::{Pile, Store};

use super::{Engine, Footprint, InstallError, MatchError, MatchRows};
use crate::area::Area;
use crate::compiled::constraints::{Constraints, bounds};
use crate::compiled::roster::Roster;
use crate::compiled::shapes::{Shapes, following};
use crate::compiled::texts::Texts;
use crate::compiled::view::{Kind, View, Viewed, ViewedAttribute, append_attributes};
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
    index: Index,
    scratch: Scratch,
}

/// Installed subscriptions, and the positions of clients.
#[derive(Debug)]
struct Index {
    world: World,
    names: Names,
    texts: Texts,
    clusters: Clusters,
    constraints: Constraints,
    shapes: Shapes<Extent>,
    grid: Grid,
    records: Records,
    roster: Roster,
}

/// Lists that the steps hand to each other; kept for their memory.
#[derive(Debug, Default)]
struct Scratch {
    view: View,
    attributes: Vec<ViewedAttribute>,
    /// Codes of the attributes, in their order.
    codes: Vec<ValueCode>,
    probes: Vec<ClusterProbe>,
    cells: Vec<(CellKey, Local)>,
    /// For each cell of an event, for each of its clusters.
    places: Vec<Place>,
    piles: Vec<ProbedPile>,
    /// The next piles, while crowds make way for their parts.
    parts: Vec<ProbedPile>,
    /// Runs whose filters are all in reach and required names are all there.
    inner: Vec<InnerRun>,
    candidates: Vec<Candidate>,
    /// Filters that the tests of one event leave in doubt.
    doubtful: Vec<Hit>,
    /// Records that follow the client of one move.
    moving: Vec<u32>,
    /// One per event of the group.
    ends: Vec<Ends>,
}

/// Filters and what they are to be compared with.
#[derive(Clone, Copy, Debug)]
struct ProbedPile {
    pile: Pile,
    cell: u32,
    probe: u32,
    /// Whether the event is in reach of all of them for certain.
    inner: bool,
}

/// A run of which only the fences are left to be tested.
#[derive(Clone, Copy, Debug)]
struct InnerRun {
    run: Run,
    probe: u32,
}

/// The candidates of an event: whole runs that are certain to be in range, and single filters.
struct Near<'a> {
    inner: &'a [InnerRun],
    candidates: &'a [Candidate],
}

/// Where an event's parts of the lists end, and the mask of its names.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    mask: u32,
    attributes: usize,
    probes: usize,
    cells: usize,
}

impl Cells {
    /// An empty engine.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { index: Index::new(world), scratch: Scratch::default() }
    }
}

impl Index {
    fn new(world: World) -> Self {
        Self {
            world,
            names: Names::new(),
            texts: Texts::new(),
            clusters: Clusters::new(),
            constraints: Constraints::new(),
            shapes: Shapes::new(world),
            grid: Grid::new(world),
            records: Records::new(),
            roster: Roster::new(),
        }
    }

    /// Adds the records of a subscription; those that were made before an error are in its list.
    fn add_records(&mut self, id: u32, subscription: &Subscription) -> Option<()> {
        for filter in &subscription.filters {
            for conjunction in filter.condition.normal().conjunctions() {
                let shape = self.shapes.acquire(&filter.area, |reach| self.grid.extent(reach))?;
                let Some(record) = self.add_record(id, shape, conjunction) else {
                    self.shapes.release(shape);
                    return None;
                };
                self.roster.records_mut(id).push(record);
                let position = self.roster.position(subscription.client.0);
                if let Some(centre) = self.shapes.centre(shape, position) {
                    self.put(record, None, &centre)?;
                }
            }
        }
        self.roster.records_mut(id).shrink_to_fit();
        Some(())
    }

    fn add_record(&mut self, subscription: u32, shape: u32, conjunction: &[Literal]) -> Option<u32> {
        let words = self.constraints.acquire(conjunction, &mut self.names, &mut self.texts)?;
        let membership = self.clusters.acquire(&words, &mut self.names);
        let record = membership.and_then(|membership| {
            let required = bounds(&words).filter(|bound| bound.requires_presence);
            let mask = required.fold(0, |mask, bound| mask | self.names.name(bound.name).mask);
            let header = Header { slot: None, membership, mask, subscription, shape, words: 0 };
            self.records.insert(header, &words)
        });
        if record.is_none() {
            if let Some(membership) = membership {
                self.clusters.release(membership, &mut self.names);
            }
            self.constraints.release(&words, &mut self.names, &mut self.texts);
        }
        record
    }

    /// Puts a record's filter into the grid, or moves it there.
    fn put(&mut self, record: u32, from: Option<&[f64; 3]>, to: &[f64; 3]) -> Option<()> {
        let Self { grid, records, shapes, clusters, .. } = self;
        let header = records.header(record);
        let Header { membership, shape, .. } = header;
        let filter = GridFilter { record, cluster: membership.cluster, extent: shapes.extent(shape) };
        // What stands in a lane is worked out from the constraints once; then it is copied.
        let fence = match header.slot {
            None => clusters.fence(membership, records.constraints(record, &header), header.mask),
            Some(_) => Fence::OPEN,
        };
        let lane = |spot| {
            let complete = fence.complete && is_circle(shapes, shape);
            let owner = Owner { record, subscription: header.subscription, complete };
            Lane { spot, required: membership.required, owner, fence: fence.fields }
        };
        grid.put(records, &filter, from, to, lane).ok()
    }

    fn take(&mut self, record: u32, from: &[f64; 3]) {
        let Self { grid, records, shapes, .. } = self;
        let Header { membership, shape, .. } = records.header(record);
        let filter = GridFilter { record, cluster: membership.cluster, extent: shapes.extent(shape) };
        grid.take(records, &filter, from);
    }

    /// Appends the records whose areas follow a client.
    fn append_following(&self, client: u32, records: &mut Vec<u32>) {
        let follows = |record: &u32| following(self.shapes.area(self.records.header(*record).shape));
        records.extend(self.roster.records_of_client(client).filter(follows));
    }

    /// Reads what a move of these records will look at, so that the waits for memory of all of them overlap.
    fn touch_moves(&self, records: &[u32], from: Option<&[f64; 3]>, to: &[f64; 3]) {
        let grid_filter = |record: &u32| {
            let header = self.records.header(*record);
            let (cluster, extent) = (header.membership.cluster, self.shapes.extent(header.shape));
            (header.slot, GridFilter { record: *record, cluster, extent })
        };
        black_box(records.iter().map(grid_filter).fold(0, |touched, (slot, filter)| {
            touched ^ self.grid.touch_buckets(slot.as_ref(), &filter, from, to)
        }));
        black_box(records.iter().map(grid_filter).fold(0, |touched, (slot, filter)| {
            let last = slot.and(from).and_then(|from| self.grid.touch_runs(&filter, from, to));
            touched ^ last.map_or(0, |record| self.records.touch(record))
        }));
    }

    fn remove_held(&mut self, id: u32) {
        let (client, records) = self.roster.leave(id);
        let position = self.roster.position(client).copied();
        for record in records {
            let header = self.records.header(record);
            if let Some(centre) = self.shapes.centre(header.shape, position.as_ref()) {
                self.take(record, &centre);
            }
            // The cluster refers to names and texts that the constraints keep alive.
            self.clusters.release(header.membership, &mut self.names);
            let words = self.records.constraints(record, &header);
            self.constraints.release(words, &mut self.names, &mut self.texts);
            self.shapes.release(header.shape);
            self.records.remove(record);
        }
    }

    /// Finds the runs of filters that each event of a group may satisfy.
    ///
    /// Each step first reads, without a branch in between, what it will look at: the waits for memory, which are most
    /// of the time, then overlap.
    fn gather(&self, events: &[&Event], scratch: &mut Scratch) {
        scratch.clear();
        for event in events {
            let start = scratch.ends.last().copied().unwrap_or_default();
            let (list, codes) = (&mut scratch.attributes, &mut scratch.codes);
            let mask = append_attributes(event, &self.names, &self.texts, list);
            let attributes = &list[start.attributes..];
            codes.extend(attributes.iter().map(|attribute| ValueCode::of(attribute.kind, attribute.bits)));
            let codes = &codes[start.attributes..];
            scratch.view.show(attributes, self.names.end());
            let viewed = Viewed { event, attributes, view: &scratch.view };
            let coded = Coded { viewed, codes };
            self.clusters.append_probes(&coded, &self.names, &self.texts, &mut scratch.probes);
            self.grid.find(event.position.point(), &mut scratch.cells);
            scratch.ends.push(Ends {
                mask,
                attributes: scratch.attributes.len(),
                probes: scratch.probes.len(),
                cells: scratch.cells.len(),
            });
        }
        let buckets = self.grid.buckets();
        let mut start = Ends::default();
        let mut touched = 0;
        for ends in &scratch.ends {
            for (cell, _) in &scratch.cells[start.cells..ends.cells] {
                for probe in &scratch.probes[start.probes..ends.probes] {
                    let (place, word) = buckets.locate(*cell, probe.cluster);
                    touched ^= word;
                    scratch.places.push(place);
                }
            }
            start = *ends;
        }
        black_box(touched);
        let mut places = scratch.places.iter();
        let mut start = Ends::default();
        for ends in &scratch.ends {
            for (cell, (key, _)) in (start.cells..).zip(&scratch.cells[start.cells..ends.cells]) {
                for probe in start.probes..ends.probes {
                    let Some(place) = places.next() else { break };
                    if let Some(pile) = buckets.find(*place, *key, scratch.probes[probe].cluster) {
                        #[expect(clippy::cast_possible_truncation, reason = "a group of events has few")]
                        let (cell, probe) = (cell as u32, probe as u32);
                        scratch.piles.push(ProbedPile { pile: *pile, cell, probe, inner: false });
                    }
                }
            }
            start = *ends;
        }
        self.append_near(scratch);
    }

    /// Finds those among the filters of the piles that each event may be in reach of.
    fn append_near(&self, scratch: &mut Scratch) {
        let buckets = self.grid.buckets();
        let (store, runs) = (buckets.store(), buckets.runs());
        black_box(scratch.piles.iter().fold(0, |touched, probed| touched ^ store.touch(&probed.pile)));
        scratch.expand_crowds(store);
        for ProbedPile { pile, cell, probe, inner } in &scratch.piles {
            let ClusterProbe { absent, masked, .. } = scratch.probes[*probe as usize];
            store.visit_runs(pile, |run| {
                if !inner {
                    let local = &scratch.cells[*cell as usize].1;
                    runs.append_candidates(&run, local, absent, *probe, &mut scratch.candidates);
                } else if absent == 0 && !masked {
                    scratch.inner.push(InnerRun { run, probe: *probe });
                } else {
                    runs.append_named(&run, absent, *probe, &mut scratch.candidates);
                }
            });
        }
        let touch = |touched, candidate| touched ^ runs.touch_fence(candidate);
        black_box(scratch.candidates.iter().fold(0, touch));
    }

    /// Tests an event against the filters that it is near to; appends the subscriptions that it satisfies for certain, and to `doubtful`
    /// the filters that have to be decided.
    fn test(
        &self,
        viewed: &Viewed<'_>,
        mask: u32,
        near: &Near<'_>,
        probes: &[ClusterProbe],
        doubtful: &mut Vec<Hit>,
        ids: &mut Vec<SubscriptionId>,
    ) {
        // The code of an array says nothing for certain.
        let certain = viewed.event.reach.is_none()
            && viewed.attributes.iter().all(|attribute| attribute.kind != Kind::Array);
        let runs = self.grid.buckets().runs();
        let mut sort = |hit: Hit| {
            if hit.in_reach && hit.in_fence && hit.owner.complete && certain {
                ids.push(SubscriptionId(hit.owner.subscription));
            } else {
                doubtful.push(hit);
            }
        };
        for InnerRun { run, probe } in near.inner {
            runs.test_all(run, &probes[*probe as usize], &mut sort);
        }
        for candidate in near.candidates {
            runs.test(candidate, &probes[candidate.probe as usize], mask).into_iter().for_each(&mut sort);
        }
    }

    /// Appends the subscriptions of those filters that the event satisfies.
    fn decide(&self, viewed: &Viewed<'_>, doubtful: &[Hit], ids: &mut Vec<SubscriptionId>) {
        black_box(doubtful.iter().fold(0, |touched, hit| {
            let client = self.roster.client(hit.owner.subscription);
            // Where the client is matters when the event is near the border of its area.
            let position = if hit.in_reach { None } else { self.roster.position(client) };
            touched
                ^ u64::from(self.records.touch(hit.owner.record) ^ client)
                ^ position.map_or(0, |position| position.x().to_bits())
        }));
        for hit in doubtful {
            let header = self.records.header(hit.owner.record);
            let words = self.records.constraints(hit.owner.record, &header);
            if self.constraints.satisfied(words, viewed, &self.texts)
                && (hit.in_reach && is_circle(&self.shapes, header.shape)
                    || self.area_holds(&header, viewed.event))
                && self.reaches(&header, viewed.event)
            {
                ids.push(SubscriptionId(header.subscription));
            }
        }
    }

    fn client_position(&self, header: &Header) -> Option<&Position> {
        self.roster.position(self.roster.client(header.subscription))
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

/// Whether the grid's circle is all there is to an area; with no bound, the grid says "inside" of everything.
#[inline]
fn is_circle(shapes: &Shapes<Extent>, shape: u32) -> bool {
    match shapes.area(shape) {
        Area::Everywhere => true,
        Area::Following(_) | Area::Circle { .. } => shapes.extent(shape).is_bounded(),
        Area::Polygon(_) | Area::Corridor(_) => false,
    }
}

impl<'a> Near<'a> {
    /// Takes those of the next event off, whose probes end here.
    fn split_off(&mut self, probes_end: usize) -> Self {
        let of_event = |probe: u32| (probe as usize) < probes_end;
        let (inner, inner_left) = self.inner.split_at(self.inner.partition_point(|run| of_event(run.probe)));
        let (candidates, candidates_left) =
            self.candidates.split_at(self.candidates.partition_point(|held| of_event(held.probe)));
        *self = Self { inner: inner_left, candidates: candidates_left };
        Self { inner, candidates }
    }
}

impl Scratch {
    /// Puts those parts into the place of each crowd that the event is near to, down to runs.
    fn expand_crowds(&mut self, store: &Store) {
        while self.piles.iter().any(|probed| probed.pile.crowd().is_some()) {
            self.parts.clear();
            let mut touched = 0;
            for probed in &self.piles {
                let Some(crowd) = probed.pile.crowd() else {
                    self.parts.push(*probed);
                    continue;
                };
                let local = &self.cells[probed.cell as usize].1;
                touched ^= store.visit_near(crowd, local, |part, inner| {
                    self.parts.push(ProbedPile { pile: *part, inner, ..*probed });
                });
            }
            black_box(touched);
            std::mem::swap(&mut self.piles, &mut self.parts);
        }
    }

    fn clear(&mut self) {
        self.attributes.clear();
        self.codes.clear();
        self.probes.clear();
        self.cells.clear();
        self.places.clear();
        self.piles.clear();
        self.inner.clear();
        self.candidates.clear();
        self.ends.clear();
    }
}

impl Engine for Cells {
    fn name(&self) -> &'static str {
        "cells"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        let Self { index, .. } = self;
        let id = id.0;
        if index.roster.is_installed(id) {
            index.remove_held(id);
        }
        index.roster.enter(id, subscription.client.0);
        if index.add_records(id, subscription).is_none() {
            index.remove_held(id);
            return Err(InstallError::Full { held: index.records.used() as u64 });
        }
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let Self { index, .. } = self;
        let installed = index.roster.is_installed(id.0);
        if installed {
            index.remove_held(id.0);
        }
        installed
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        let Self { index, scratch: Scratch { moving, .. } } = self;
        let before = index.roster.set_position(client.0, position);
        let (before, position) =
            (before.as_ref().map(Position::point), position.as_ref().map(Position::point));
        moving.clear();
        index.append_following(client.0, moving);
        if let Some(to) = position {
            index.touch_moves(moving, before, to);
        }
        for record in moving {
            match (before, position) {
                (from, Some(to)) => {
                    let put = index.put(*record, from, to);
                    // A move allocates a lane before it frees one. There are numbers for 256 GiB of lines.
                    debug_assert!(put.is_some(), "no lane is left for a move");
                }
                (Some(from), None) => index.take(*record, from),
                (None, None) => {}
            }
        }
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        let Self { index, scratch } = self;
        for group in events.chunks(GROUP_EVENTS) {
            index.gather(group, scratch);
            let mut left = Near { inner: &scratch.inner, candidates: &scratch.candidates };
            let mut start = Ends::default();
            for (event, ends) in group.iter().zip(&scratch.ends) {
                let attributes = &scratch.attributes[start.attributes..ends.attributes];
                scratch.view.show(attributes, index.names.end());
                scratch.view.make_room(index.constraints.written_end(), event.attributes.len());
                let viewed = Viewed { event, attributes, view: &scratch.view };
                let doubtful = &mut scratch.doubtful;
                doubtful.clear();
                let near = left.split_off(ends.probes);
                rows.push_with(|ids| {
                    index.test(&viewed, ends.mask, &near, &scratch.probes, doubtful, ids);
                    index.decide(&viewed, doubtful, ids);
                });
                start = *ends;
            }
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        let Self { index, .. } = self;
        Footprint {
            subscriptions: index.roster.subscriptions_count(),
            filters: index.records.used(),
            bytes: index.names.bytes()
                + index.texts.bytes()
                + index.clusters.bytes()
                + index.constraints.bytes()
                + index.shapes.bytes()
                + index.grid.bytes()
                + index.records.bytes()
                + index.roster.bytes(),
        }
    }
}
