//! Crowds as filters come, move and go, and what events look at in them.

use super::super::clusters::{Fence, Membership};
use super::super::records::Header;
use super::*;

/// Filters of one bucket, by record, with their spots.
struct Bucket {
    store: Store,
    records: Records,
    pile: Pile,
    held: Vec<(u32, Spot)>,
}

impl Bucket {
    fn new() -> Self {
        let store = Store::new([u8::MAX; 3]);
        Self { store, records: Records::new(), pile: Pile::EMPTY, held: Vec::new() }
    }

    fn push(&mut self, spot: Spot) {
        let membership = Membership { cluster: 0, required: 0 };
        let header =
            Header { slot: None, membership, mask: 0, subscription: 0, shape: 0, words: 0, bundle: NONE };
        let record = self.records.insert(header, &[]).unwrap();
        let owner = Owner { record, subscription: 0, complete: true };
        let lane = Lane { spot, required: 0, owner, fence: Fence::OPEN.fields };
        let slot = self.store.push(&mut self.pile, &lane, &mut self.records).unwrap();
        self.records.set_slot(record, Some(&slot));
        self.held.push((record, spot));
    }

    fn shift(&mut self, index: usize, xyz: [u8; 3]) {
        let (record, spot) = &mut self.held[index];
        spot.xyz = xyz;
        let slot = self.records.slot(*record).unwrap();
        assert_eq!(slot.crowded, self.pile.crowd().is_some());
        let landed = self.store.shift(&self.pile, &slot, *spot, &mut self.records).unwrap();
        self.records.set_slot(*record, Some(&landed));
    }

    fn remove(&mut self, index: usize) {
        let (record, spot) = self.held.swap_remove(index);
        let slot = self.records.slot(record).unwrap();
        self.store.remove(&mut self.pile, &slot, spot.xyz, &mut self.records);
        self.records.set_slot(record, None);
        self.records.remove(record);
    }

    /// Every filter is where its record says, and as many as there are lanes.
    #[track_caller]
    fn check(&self) {
        for (record, spot) in &self.held {
            let lane = self.store.runs.lane(&self.records.slot(*record).unwrap());
            assert_eq!((lane.owner.record, lane.spot), (*record, *spot));
        }
        assert_eq!(self.lanes(&self.pile), self.held.len());
    }

    fn lanes(&self, pile: &Pile) -> usize {
        let Some(number) = pile.crowd() else {
            let mut lanes = 0;
            if !pile.is_empty() {
                self.store.visit_runs(pile, |run| lanes += usize::from(run.len));
            }
            return lanes;
        };
        let crowd = &self.store.crowds[number];
        let lanes = crowd.parts.iter().map(|part| self.lanes(part)).sum();
        assert_eq!(lanes, crowd.len as usize);
        lanes
    }

    /// The records that an event there is told to look at, and those among them that it need not look at the places of.
    fn near(&self, local: &Local) -> (Vec<u32>, Vec<u32>) {
        let (mut near, mut inner) = (Vec::new(), Vec::new());
        let mut piles = vec![(self.pile, false)];
        while let Some((pile, is_inner)) = piles.pop() {
            if let Some(number) = pile.crowd() {
                self.store.visit_near(number, local, |part, inner| piles.push((*part, inner)));
                continue;
            }
            self.store.visit_runs(&pile, |run| {
                let records = (0..run.len).map(|lane| self.store.runs.lane(&run.slot(lane)).owner.record);
                (if is_inner { &mut inner } else { &mut near }).extend(records);
            });
        }
        near.extend(&inner);
        near.sort_unstable();
        inner.sort_unstable();
        (near, inner)
    }
}

/// Places all over a cell, the third of them in one corner.
fn spot(index: u32) -> Spot {
    let hash = index.wrapping_mul(0x9e37_79b9) ^ index >> 3;
    let [x, y, z, reach] = hash.rotate_left(index % 32).to_le_bytes();
    let xyz = if index.is_multiple_of(3) { [x % 4, y % 4, 0] } else { [x, y, z] };
    Spot { xyz, reach: 40 + reach % 90 }
}

#[test]
fn filters_come_move_and_go_in_crowds() {
    let mut bucket = Bucket::new();
    let limit = u32::from(capacity(CROWD_CLASS));
    for index in 0..limit {
        bucket.push(spot(index));
    }
    assert!(bucket.pile.is_run());
    for index in limit..6_000 {
        bucket.push(spot(index));
    }
    assert!(bucket.pile.crowd().is_some());
    bucket.check();
    for index in 0..6_000 {
        bucket.shift(index as usize, spot(index + 7_777).xyz);
    }
    bucket.check();
    while bucket.held.len() > DISSOLVED_LEN.into() {
        assert!(bucket.pile.crowd().is_some());
        bucket.remove(bucket.held.len() * 5 / 7);
    }
    assert!(bucket.pile.is_run());
    bucket.check();
    while !bucket.held.is_empty() {
        bucket.remove(bucket.held.len() / 2);
    }
    assert!(bucket.pile.is_empty());
}

#[test]
fn events_look_at_every_filter_in_reach() {
    let mut bucket = Bucket::new();
    for index in 0..3_000 {
        bucket.push(spot(index));
    }
    let axis = [-900, -1, 0, 31, 700, 1_024, 2_047, 2_500];
    let (mut inner_count, mut skipped) = (0, 0);
    for [x, y, z] in axis.iter().flat_map(|x| axis.map(|y| [*x, y, (x + y) / 2])) {
        let (near, inner) = bucket.near(&[x, y, z]);
        for (record, spot) in &bucket.held {
            // The distance of the middles of units, as runs test it.
            let apart = |axis: usize| i32::from(spot.xyz[axis]) * 8 + 4 - i32::from([x, y, z][axis]);
            let square = (0..3).map(|axis| apart(axis).pow(2)).sum::<i32>();
            let reach = i32::from(spot.reach) * 8;
            assert!(square > reach.pow(2) || near.binary_search(record).is_ok(), "{spot:?}");
            assert!(inner.binary_search(record).is_err() || square < (reach - 26).pow(2), "{spot:?}");
        }
        inner_count += inner.len();
        skipped += bucket.held.len() - near.len();
    }
    assert!(inner_count > 1_000 && skipped > 1_000, "{inner_count} {skipped}");
}

#[test]
fn filters_of_one_place_make_a_long_pile_at_last() {
    let mut bucket = Bucket::new();
    for _ in 0..2_000 {
        bucket.push(Spot { xyz: [17, 200, 3], reach: 100 });
    }
    bucket.check();
    assert_eq!(bucket.near(&[17 * 8, 200 * 8, 3 * 8]).1.len(), 2_000);
    while !bucket.held.is_empty() {
        bucket.remove(0);
    }
    assert!(bucket.pile.is_empty());
}
