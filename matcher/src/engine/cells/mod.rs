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
mod bundles;
mod clusters;
mod coded;
mod codes;
mod following;
mod grid;
mod matching;
mod near;
mod pages;
mod records;
mod rolls;
mod runs;
mod store;

use std::hint::black_box;

use clusters::{Clusters, Names};
use following::Followers;
use grid::{Extent, Grid, GridFilter};
use matching::{GROUP_EVENTS, Scratch};
use records::{Header, Records};
use runs::{Lane, Owner, Spot};

use super::{Engine, Footprint, InstallError, MatchError, MatchRows};
use crate::area::Area;
use crate::compiled::NONE;
use crate::compiled::constraints::{Constraints, bounds};
use crate::compiled::roster::Roster;
use crate::compiled::shapes::{Shapes, following};
use crate::compiled::texts::Texts;
use crate::condition::normal::Conjunction;
use crate::event::Event;
use crate::geo::{Position, World};
use crate::subscription::{ClientId, Subscription, SubscriptionId};

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Cells {
    index: Index,
    scratch: Scratch,
    moving: Moving,
}

/// What follows the client of one move; kept for its memory.
#[derive(Debug, Default)]
struct Moving {
    bundles: Vec<u32>,
    records: Vec<u32>,
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
    roster: Roster<Followers>,
}

impl Cells {
    /// An empty engine.
    #[must_use]
    pub fn new(world: World) -> Self {
        Self { index: Index::new(world), scratch: Scratch::default(), moving: Moving::default() }
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
        let client = subscription.client.0;
        for filter in &subscription.filters {
            for conjunction in filter.condition.normal().conjunctions() {
                let shape = self.shapes.acquire(&filter.area, |reach| self.grid.extent(reach))?;
                let Some(record) = self.add_record(id, shape, conjunction) else {
                    self.shapes.release(shape);
                    return None;
                };
                self.roster.records_mut(id).push(record);
                if following(self.shapes.area(shape)) {
                    self.roster.payload_mut(client).lone_count += 1;
                }
            }
        }
        self.roster.records_mut(id).shrink_to_fit();
        for index in 0..self.roster.records(id).len() {
            let record = self.roster.records(id)[index];
            let shape = self.records.header(record).shape;
            if following(self.shapes.area(shape)) {
                self.follow(client, record)?;
            } else if let Some(centre) = self.shapes.centre(shape, None) {
                self.put(record, None, &centre)?;
            }
        }
        Some(())
    }

    fn add_record(&mut self, subscription: u32, shape: u32, conjunction: &Conjunction) -> Option<u32> {
        let words = self.constraints.acquire(conjunction, &mut self.names, &mut self.texts)?;
        let membership = self.clusters.acquire(&words, &mut self.names);
        let record = membership.and_then(|membership| {
            let required = bounds(&words).filter(|bound| bound.requires_presence);
            let mask = required.fold(0, |mask, bound| mask | self.names.name(bound.name).mask);
            let header = Header { slot: None, membership, mask, subscription, shape, words: 0, bundle: NONE };
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
        let Header { slot, membership, shape, .. } = self.records.header(record);
        // What stands in a lane is worked out from the constraints once; then it is copied.
        let lane = if slot.is_none() { Some(self.lane(record)) } else { None };
        let filter = GridFilter { record, cluster: membership.cluster, extent: self.shapes.extent(shape) };
        self.grid.put(&mut self.records, &filter, from, to, lane).ok()
    }

    /// The lane of a record's filter at no spot yet.
    fn lane(&self, record: u32) -> Lane {
        let header = self.records.header(record);
        let Header { membership, mask, subscription, shape, .. } = header;
        let fence = self.clusters.fence(membership, self.records.constraints(record, &header), mask);
        let complete = fence.complete && is_circle(&self.shapes, shape);
        let owner = Owner { record, subscription, complete };
        Lane { spot: Spot::default(), required: membership.required, owner, fence: fence.fields }
    }

    fn take(&mut self, record: u32, from: &[f64; 3]) {
        let Self { grid, records, shapes, .. } = self;
        let Header { membership, shape, .. } = records.header(record);
        let filter = GridFilter { record, cluster: membership.cluster, extent: shapes.extent(shape) };
        grid.take(records, &filter, from);
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
            if following(self.shapes.area(header.shape)) {
                self.unfollow(client, record);
            }
            // The cluster refers to names and texts that the constraints keep alive.
            self.clusters.release(header.membership, &mut self.names);
            let words = self.records.constraints(record, &header);
            self.constraints.release(words, &mut self.names, &mut self.texts);
            self.shapes.release(header.shape);
            self.records.remove(record);
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
        let Self { index, moving, .. } = self;
        let before = index.roster.set_position(client.0, position);
        let (before, position) =
            (before.as_ref().map(Position::point), position.as_ref().map(Position::point));
        index.move_followers(client.0, before, position, moving);
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        for group in events.chunks(GROUP_EVENTS) {
            self.index.match_group(group, &mut self.scratch, rows);
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
