//! Filters that follow their client, in bundles and on their own, and how they move.

use std::hint::black_box;

use super::bundles::{Bundle, ROOM_MAX, Standing};
use super::grid::{CellKey, GridFilter};
use super::runs::Spot;
use super::{Index, Moving};
use crate::compiled::NONE;
use crate::compiled::shapes::following;

/// Bundles of a client that are looked at for one with room, and filters for one to share a bundle with: the newest.
/// With this bound, installing costs the same whatever the client has.
const BUNDLES_LOOKED_AT: usize = 4;
const FILTERS_LOOKED_AT: usize = 2 * ROOM_MAX;
/// Bundles that one that comes into a crowded cell makes loose beside itself: a crowd soon has none that is whole.
const LOOSENED_COUNT: usize = 2;

/// What follows a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followers {
    first_bundle: u32,
    /// Filters without a bundle.
    pub(super) lone_count: u32,
}

impl Default for Followers {
    fn default() -> Self {
        Self { first_bundle: NONE, lone_count: 0 }
    }
}

impl Index {
    /// Puts a new filter that follows its client into a bundle, unless an earlier one has taken it along, or where it is to be on its own.
    pub(super) fn follow(&mut self, client: u32, record: u32) -> Option<()> {
        let header = self.records.header(record);
        if header.bundle != NONE {
            return Some(());
        }
        let shape = header.shape;
        if self.is_lone(record, shape) {
            if let Some(bundle) = self.bundle_with_room(client, shape) {
                return self.join(client, bundle, record);
            }
            let newest = self.roster.records_of_client(client).take(FILTERS_LOOKED_AT);
            let partner = newest.filter(|other| *other != record).find(|other| self.is_lone(*other, shape));
            if let Some(partner) = partner {
                let bundle = self.add_bundle(client, shape)?;
                self.join(client, bundle, partner)?;
                self.join(client, bundle, record)?;
                let position = self.roster.position(client).copied();
                return match position {
                    Some(position) => self.place(bundle, None, position.point()),
                    None => Some(()),
                };
            }
        }
        let position = self.roster.position(client).copied();
        position.map_or(Some(()), |position| self.put(record, None, position.point()))
    }

    /// Forgets a filter that follows a client, has been taken out of the grid, and is about to be removed.
    pub(super) fn unfollow(&mut self, client: u32, record: u32) {
        let number = self.records.header(record).bundle;
        if number == NONE {
            self.roster.payload_mut(client).lone_count -= 1;
            return;
        }
        self.records.remove_member(number, record);
        let bundle = *self.records.bundle(number);
        if bundle.len() > 0 {
            return;
        }
        if let Some(position) = self.roster.position(client).copied() {
            self.withdraw(number, position.point());
        }
        self.relink(&bundle, bundle.next, bundle.previous);
        self.records.remove_bundle(number);
    }

    /// Whether a filter follows its client in a circle of a shape, and could be in a bundle but is in none.
    fn is_lone(&self, record: u32, shape: u32) -> bool {
        let header = self.records.header(record);
        header.shape == shape
            && header.bundle == NONE
            && Bundle::takes(header.membership.cluster)
            && following(self.shapes.area(shape))
    }

    /// A bundle of a client that a filter of a shape can join.
    fn bundle_with_room(&mut self, client: u32, shape: u32) -> Option<u32> {
        let mut number = self.roster.payload(client).first_bundle;
        for _ in 0..BUNDLES_LOOKED_AT {
            if number == NONE {
                return None;
            }
            let bundle = *self.records.bundle(number);
            if bundle.shape == shape && bundle.len() < ROOM_MAX {
                return if bundle.is_full() { self.enlarge(number) } else { Some(number) };
            }
            number = bundle.next;
        }
        None
    }

    /// A new bundle with room for the newest filters of a client that can join.
    fn add_bundle(&mut self, client: u32, shape: u32) -> Option<u32> {
        let newest = self.roster.records_of_client(client).take(FILTERS_LOOKED_AT);
        let room = newest.filter(|record| self.is_lone(*record, shape)).count();
        let number = self.records.add_bundle(client, shape, room)?;
        let next = std::mem::replace(&mut self.roster.payload_mut(client).first_bundle, number);
        self.records.bundle_mut(number).next = next;
        if next != NONE {
            self.records.bundle_mut(next).previous = number;
        }
        Some(number)
    }

    /// Doubles a bundle; answers the number that it has then.
    fn enlarge(&mut self, number: u32) -> Option<u32> {
        let room = self.records.bundle(number).room() * 2;
        let enlarged = self.records.enlarge_bundle(number, room)?;
        let bundle = *self.records.bundle(enlarged);
        self.relink(&bundle, enlarged, enlarged);
        if let (Standing::Whole(lane), Some(position)) =
            (bundle.standing(), self.roster.position(bundle.client))
        {
            let (cell, _) = self.grid.place(self.shapes.extent(bundle.shape), position.point());
            self.grid.renumber(cell, lane, enlarged);
        }
        Some(enlarged)
    }

    /// Makes the neighbours of a bundle in the list of its client point elsewhere: the one before to `next`, the one
    /// behind to `previous`.
    fn relink(&mut self, bundle: &Bundle, next: u32, previous: u32) {
        match bundle.previous {
            NONE => self.roster.payload_mut(bundle.client).first_bundle = next,
            before => self.records.bundle_mut(before).next = next,
        }
        if bundle.next != NONE {
            self.records.bundle_mut(bundle.next).previous = previous;
        }
    }

    /// Puts a filter that has been on its own, or nowhere yet, into a bundle with room.
    fn join(&mut self, client: u32, bundle: u32, record: u32) -> Option<()> {
        let position = self.roster.position(client).copied();
        let standing = self.records.bundle(bundle).standing();
        let lane = self.lane(record);
        self.records.push_member(bundle, self.records.header(record).membership.cluster, &lane);
        self.roster.payload_mut(client).lone_count -= 1;
        match (position, standing) {
            (Some(position), Standing::Loose) if self.records.slot(record).is_none() => {
                self.put(record, None, position.point())
            }
            (Some(position), Standing::Whole(_) | Standing::Nowhere) => {
                self.take(record, position.point());
                Some(())
            }
            (Some(_), Standing::Loose) | (None, _) => Some(()),
        }
    }

    /// Puts a bundle into the cell around a point, after it was elsewhere or nowhere.
    fn place(&mut self, number: u32, from: Option<&[f64; 3]>, to: &[f64; 3]) -> Option<()> {
        let bundle = *self.records.bundle(number);
        let extent = *self.shapes.extent(bundle.shape);
        let (cell, spot) = self.grid.place(&extent, to);
        let standing = self.grid.enter_bundle(cell, spot, &extent, number).ok()?;
        if let Some(from) = from {
            self.withdraw(number, from);
        }
        self.records.bundle_mut(number).set_standing(standing);
        if standing == Standing::Loose {
            self.scatter(number, cell, spot)?;
            self.loosen(cell, &bundle)?;
        }
        Some(())
    }

    /// Takes a bundle out of the grid.
    fn withdraw(&mut self, number: u32, from: &[f64; 3]) {
        let bundle = *self.records.bundle(number);
        let extent = *self.shapes.extent(bundle.shape);
        let (cell, _) = self.grid.place(&extent, from);
        if bundle.standing() == Standing::Loose {
            for index in 0..bundle.len() {
                let (cluster, lane) = self.records.member(number, index, Spot::default());
                let filter = GridFilter { record: lane.owner.record, cluster, extent: &extent };
                self.grid.take(&mut self.records, &filter, from);
            }
        }
        self.grid.leave_bundle(&mut self.records, cell, &extent, bundle.standing());
        self.records.bundle_mut(number).set_standing(Standing::Nowhere);
    }

    /// Puts the filters of a loose bundle, which are nowhere, into their clusters in a cell.
    fn scatter(&mut self, number: u32, cell: CellKey, spot: Spot) -> Option<()> {
        let bundle = *self.records.bundle(number);
        let extent = self.shapes.extent(bundle.shape);
        for index in 0..bundle.len() {
            let (cluster, lane) = self.records.member(number, index, spot);
            self.grid.put_lane(&mut self.records, cell, cluster, extent, &lane).ok()?;
        }
        Some(())
    }

    /// Makes some of the whole bundles of a crowded cell loose; the cell is on the level of `arrived`.
    fn loosen(&mut self, cell: CellKey, arrived: &Bundle) -> Option<()> {
        for _ in 0..LOOSENED_COUNT {
            let Some((spot, number)) = self.grid.loosen(cell, self.shapes.extent(arrived.shape)) else {
                break;
            };
            self.records.bundle_mut(number).set_standing(Standing::Loose);
            self.scatter(number, cell, spot)?;
        }
        Some(())
    }

    /// Moves what follows a client: one place for each bundle, and for each filter without one.
    pub(super) fn move_followers(
        &mut self,
        client: u32,
        from: Option<&[f64; 3]>,
        to: Option<&[f64; 3]>,
        moving: &mut Moving,
    ) {
        let Followers { first_bundle, lone_count } = *self.roster.payload(client);
        let Moving { bundles, records } = moving;
        bundles.clear();
        records.clear();
        let some = |number| (number != NONE).then_some(number);
        let next = |number: &u32| some(self.records.bundle(*number).next);
        bundles.extend(std::iter::successors(some(first_bundle), next));
        if let (Some(from), Some(to)) = (from, to) {
            self.touch_bundles(bundles, from, to);
        }
        for bundle in bundles.iter() {
            let moved = self.move_bundle(*bundle, from, to, records);
            // A move takes a lane before it gives one back; the numbers of lines are 256 GiB of them.
            debug_assert!(moved.is_some(), "lines outnumber records");
        }
        if lone_count > 0 {
            let is_lone = |record: &u32| {
                let header = self.records.header(*record);
                header.bundle == NONE && following(self.shapes.area(header.shape))
            };
            records.extend(self.roster.records_of_client(client).filter(is_lone));
        }
        if let Some(to) = to {
            self.touch_moves(records, from, to);
        }
        for record in records {
            match (from, to) {
                (from, Some(to)) => {
                    let put = self.put(*record, from, to);
                    debug_assert!(put.is_some(), "lines outnumber records");
                }
                (Some(from), None) => self.take(*record, from),
                (None, None) => {}
            }
        }
    }

    /// Moves a bundle; appends its filters where they have to move on their own.
    fn move_bundle(
        &mut self,
        number: u32,
        from: Option<&[f64; 3]>,
        to: Option<&[f64; 3]>,
        records: &mut Vec<u32>,
    ) -> Option<()> {
        let Some(to) = to else {
            if let Some(from) = from {
                self.withdraw(number, from);
            }
            return Some(());
        };
        let Some(from) = from else { return self.place(number, None, to) };
        let bundle = self.records.bundle(number);
        let extent = self.shapes.extent(bundle.shape);
        let (left, (cell, spot)) = (self.grid.place(extent, from).0, self.grid.place(extent, to));
        match bundle.standing() {
            Standing::Whole(lane) if left == cell => self.grid.shift_whole(cell, lane, spot),
            Standing::Loose if left == cell => records.extend(self.members(number)),
            Standing::Loose if self.grid.is_crowded(cell) => {
                // Its filters go from run to run.
                let arrived = *bundle;
                let extent = *extent;
                self.grid.enter_bundle(cell, spot, &extent, number).ok()?;
                self.grid.leave_bundle(&mut self.records, left, &extent, Standing::Loose);
                records.extend(self.members(number));
                self.loosen(cell, &arrived)?;
            }
            Standing::Whole(_) | Standing::Loose | Standing::Nowhere => {
                return self.place(number, Some(from), to);
            }
        }
        Some(())
    }

    /// The records of a bundle's filters.
    fn members(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let len = self.records.bundle(number).len();
        (0..len).map(move |index| self.records.member(number, index, Spot::default()).1.owner.record)
    }

    /// Reads what moves of these bundles will look at, so that the waits for memory overlap.
    fn touch_bundles(&self, bundles: &[u32], from: &[f64; 3], to: &[f64; 3]) {
        let cells = |number: &u32| {
            let extent = self.shapes.extent(self.records.bundle(*number).shape);
            [from, to].map(|point| self.grid.place(extent, point).0)
        };
        let buckets = self.grid.buckets();
        black_box(
            bundles.iter().flat_map(cells).fold(0, |touched, cell| touched ^ buckets.locate_bundles(cell).1),
        );
        black_box(bundles.iter().fold(0, |touched, number| {
            let [left, landing] = cells(number);
            let standing = self.records.bundle(*number).standing();
            touched
                ^ self
                    .grid
                    .touch_whole(left, landing, standing)
                    .map_or(0, |filler| self.records.touch(filler))
        }));
    }
}

#[cfg(test)]
mod tests;
