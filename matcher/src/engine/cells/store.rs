//! Contents of buckets: runs, and crowds of runs where a bucket has many filters.

use super::buckets::Full;
use super::near::{Crowd, Crowds, DEPTH_MAX};
use super::records::Records;
use super::runs::{CLASS_MAX, Lane, Local, Owner, Run, Runs, Slot, Spot, capacity, class_for};
use crate::compiled::NONE;
use crate::compiled::slab::Slab;

/// A run of this class that is full becomes a crowd, which becomes a run again when few are left.
const CROWD_CLASS: u8 = 13;
const DISSOLVED_LEN: u16 = 64;

/// The filters of a bucket, or of a part of a crowd.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Pile {
    /// The first line of the run, or the number of the long pile or the crowd.
    head: u32,
    /// Lanes in use of a run.
    len: u16,
    /// The class of the run; [`Pile::LONG`] or [`Pile::CROWD`] where it is not one, [`Pile::NOTHING`] without a filter.
    class: u8,
    /// Not 0 of a part of a crowd.
    crowded: u8,
}

/// All piles.
#[derive(Debug)]
pub(super) struct Store {
    runs: Runs,
    long: Slab<Long>,
    crowds: Crowds,
}

/// A pile of more lanes than a run has.
#[derive(Clone, Debug, Default)]
struct Long {
    /// Runs of the longest class, full but for the last.
    runs: Vec<u32>,
    last_len: u16,
}

impl Pile {
    const LONG: u8 = u8::MAX;
    const CROWD: u8 = u8::MAX - 1;
    const NOTHING: u8 = u8::MAX - 2;
    /// No filters.
    pub(super) const EMPTY: Self = Self { head: NONE, len: 0, class: Self::NOTHING, crowded: 0 };
    /// A part of a crowd without filters.
    pub(super) const EMPTY_PART: Self = Self { crowded: 1, ..Self::EMPTY };

    pub(super) fn is_empty(&self) -> bool {
        self.class == Self::NOTHING
    }

    /// A word that tells piles apart, and that reading brings near.
    #[inline]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    fn is_run(&self) -> bool {
        self.class <= CLASS_MAX
    }

    fn is_long(&self) -> bool {
        self.class == Self::LONG
    }

    /// The number of the crowd that it is.
    #[inline]
    pub(super) fn crowd(&self) -> Option<u32> {
        (self.class == Self::CROWD).then_some(self.head)
    }

    /// The run of a pile that is one.
    #[inline]
    fn run(&self) -> Run {
        Run { first_line: self.head, class: self.class, crowded: self.crowded != 0, len: self.len }
    }

    fn set_run(&mut self, first_line: u32, class: u8, len: u16) {
        (self.head, self.class, self.len) = (first_line, class, len);
    }

    fn become_long(&mut self, number: u32) {
        (self.head, self.class, self.len) = (number, Self::LONG, 0);
    }

    fn become_crowd(&mut self, number: u32) {
        (self.head, self.class, self.len) = (number, Self::CROWD, 0);
    }

    fn clear(&mut self) {
        (self.head, self.class, self.len) = (NONE, Self::NOTHING, 0);
    }

    /// Whether it is a full run that is to become a crowd.
    fn is_crowded(&self) -> bool {
        self.is_run() && self.class >= CROWD_CLASS && self.len == capacity(self.run().class)
    }
}

impl Store {
    /// None yet; places are up to `places_max`.
    pub(super) fn new(places_max: [u8; 3]) -> Self {
        Self { runs: Runs::new(), long: Slab::new(), crowds: Crowds::new(places_max) }
    }

    pub(super) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(super) fn runs_mut(&mut self) -> &mut Runs {
        &mut self.runs
    }

    /// Reads what will be looked at first of a pile and so brings it near.
    #[inline]
    pub(super) fn touch(&self, pile: &Pile) -> u8 {
        match pile.crowd() {
            Some(number) => self.crowds.touch(number),
            None if pile.is_long() => 0,
            None => self.runs.touch(&pile.run()),
        }
    }

    /// Passes on the parts of a crowd that an event may be in reach of, and whether it is in reach of all their filters for
    /// certain; reads what will be looked at first of them and so brings it near.
    #[inline]
    pub(super) fn visit_near(&self, crowd: u32, local: &Local, mut visit: impl FnMut(&Pile, bool)) -> u8 {
        let mut touched = 0;
        self.crowds.visit_near(crowd, local, |part, inner| {
            touched ^=
                if inner && part.is_run() { self.runs.touch_fences(&part.run()) } else { self.touch(part) };
            visit(part, inner);
        });
        touched
    }

    /// Passes on the runs of a pile that is not a crowd.
    #[inline]
    pub(super) fn visit_runs(&self, pile: &Pile, mut visit: impl FnMut(Run)) {
        if pile.is_long() {
            let Long { runs, last_len } = &self.long[pile.head];
            for (index, first_line) in (1..).zip(runs) {
                let len = if index == runs.len() { *last_len } else { capacity(CLASS_MAX) };
                visit(Run { first_line: *first_line, class: CLASS_MAX, crowded: pile.crowded != 0, len });
            }
        } else {
            visit(pile.run());
        }
    }

    /// Owner of the last of the lanes among which a filter at a place lies or would lie.
    #[inline]
    pub(super) fn last_owner<'a>(&'a self, mut pile: &'a Pile, xyz: [u8; 3]) -> Option<Owner> {
        while let Some(number) = pile.crowd() {
            let crowd = &self.crowds[number];
            pile = &crowd.parts[crowd.part_of(xyz)];
        }
        (!pile.is_empty()).then(|| self.runs.owner(&self.last_slot(pile)))
    }

    /// Adds a filter to a bucket; answers the slot it got.
    pub(super) fn push(&mut self, pile: &mut Pile, lane: &Lane, records: &mut Records) -> Result<Slot, Full> {
        self.push_at(0, pile, lane, records)
    }

    /// Adds a filter to a pile whose cell has been halved so often.
    fn push_at(
        &mut self,
        depth: u8,
        pile: &mut Pile,
        lane: &Lane,
        records: &mut Records,
    ) -> Result<Slot, Full> {
        if depth < DEPTH_MAX && pile.is_crowded() {
            self.divide(depth, pile, records);
        }
        let Some(number) = pile.crowd() else {
            let slot = self.add_slot(pile, records)?;
            self.runs.set_lane(&slot, lane);
            return Ok(slot);
        };
        let part = self.crowds[number].part_of(lane.spot.xyz);
        let mut held = self.crowds[number].parts[part];
        let slot = self.push_at(depth + 1, &mut held, lane, records)?;
        let crowd = &mut self.crowds[number];
        crowd.set_part(part, held);
        crowd.enter(lane.spot);
        Ok(slot)
    }

    /// Takes the filter in a slot out, whose place is told too. The last one beside it fills the gap, so runs have none.
    pub(super) fn remove(&mut self, pile: &mut Pile, slot: &Slot, xyz: [u8; 3], records: &mut Records) {
        let Some(number) = pile.crowd() else {
            let last = self.last_slot(pile);
            if last != *slot {
                let lane = self.runs.lane(&last);
                self.set(slot, &lane, records);
            }
            return self.drop_slot(pile, records);
        };
        self.remove_part(number, slot, xyz, records);
        if self.crowds[number].len <= DISSOLVED_LEN.into() {
            self.dissolve(pile, number, records);
        }
    }

    fn remove_part(&mut self, number: u32, slot: &Slot, xyz: [u8; 3], records: &mut Records) {
        let part = self.crowds[number].part_of(xyz);
        let mut held = self.crowds[number].parts[part];
        self.remove(&mut held, slot, xyz, records);
        let crowd = &mut self.crowds[number];
        crowd.set_part(part, held);
        crowd.len -= 1;
    }

    /// Gives the filter in a slot another spot in its cell; answers the slot it has then.
    pub(super) fn shift(
        &mut self,
        pile: &Pile,
        slot: &Slot,
        spot: Spot,
        records: &mut Records,
    ) -> Result<Slot, Full> {
        let from = self.runs.spot(slot).xyz;
        let mut pile = *pile;
        let mut depth = 0;
        while let Some(number) = pile.crowd() {
            let crowd = &self.crowds[number];
            let part = crowd.part_of(from);
            if part != crowd.part_of(spot.xyz) {
                let lane = Lane { spot, ..self.runs.lane(slot) };
                // First in, then out: so it neither becomes a run nor, as it is one already, a crowd.
                let landed = self.push_at(depth, &mut pile, &lane, records)?;
                self.remove_part(number, slot, from, records);
                return Ok(landed);
            }
            pile = crowd.parts[part];
            depth += 1;
        }
        self.runs.set_spot(slot, spot);
        Ok(*slot)
    }

    /// Makes a crowd of a run. It stays a run where there is no memory for that.
    fn divide(&mut self, depth: u8, pile: &mut Pile, records: &mut Records) {
        let run = pile.run();
        let lanes: Vec<Lane> = (0..run.len).map(|lane| self.runs.lane(&run.slot(lane))).collect();
        let mut crowd = Crowd::new(lanes[0].spot.xyz, depth);
        let mut lens = [0; Crowd::PARTS];
        for lane in &lanes {
            lens[crowd.part_of(lane.spot.xyz)] += 1;
        }
        for (part, len) in lens.into_iter().enumerate().filter(|(_, len)| *len > 0) {
            let class = class_for(len);
            let Some(first_line) = self.runs.allocate(class) else {
                return self.release_parts(&crowd);
            };
            crowd.parts[part].set_run(first_line, class, len);
        }
        let Some(number) = self.crowds.allocate() else {
            return self.release_parts(&crowd);
        };
        for lane in lanes.iter().rev() {
            let part = crowd.part_of(lane.spot.xyz);
            lens[part] -= 1;
            self.set(&crowd.parts[part].run().slot(lens[part]), lane, records);
            crowd.enter(lane.spot);
        }
        self.crowds[number] = crowd;
        self.runs.release(run.first_line, run.class);
        pile.become_crowd(number);
    }

    fn release_parts(&mut self, crowd: &Crowd) {
        for part in crowd.parts.iter().filter(|part| part.is_run()) {
            self.runs.release(part.head, part.run().class);
        }
    }

    /// Makes a run of a crowd of few, or nothing when nobody is left. It stays a crowd where there is no memory for a run.
    fn dissolve(&mut self, pile: &mut Pile, number: u32, records: &mut Records) {
        let crowd = self.crowds[number];
        // A part that could not become a run has to wait for memory, too.
        if crowd.parts.iter().any(|part| part.crowd().is_some()) {
            return;
        }
        #[expect(clippy::cast_possible_truncation, reason = "few")]
        let len = crowd.len as u16;
        if len == 0 {
            pile.clear();
        } else {
            let class = class_for(len);
            let Some(first_line) = self.runs.allocate(class) else { return };
            pile.set_run(first_line, class, len);
        }
        let mut next = 0;
        for part in crowd.parts.iter().filter(|part| part.is_run()) {
            next = self.copy(&part.run(), &pile.run(), next, records);
        }
        self.release_parts(&crowd);
        self.crowds.release(number);
    }

    /// One more lane at the end of a pile.
    fn add_slot(&mut self, pile: &mut Pile, records: &mut Records) -> Result<Slot, Full> {
        if pile.is_long() {
            return self.add_long_slot(pile);
        }
        if pile.is_empty() {
            pile.set_run(self.runs.allocate(0).ok_or(Full)?, 0, 1);
            return Ok(pile.run().slot(0));
        }
        let mut run = pile.run();
        if run.len == capacity(CLASS_MAX) {
            let long = Long { runs: vec![run.first_line], last_len: run.len };
            let number = self.long.insert(long).ok_or(Full)?;
            pile.become_long(number);
            return self.add_long_slot(pile);
        }
        if run.len == capacity(run.class) {
            let class = run.class + 1;
            let longer = Run { first_line: self.runs.allocate(class).ok_or(Full)?, class, ..run };
            self.copy(&run, &longer, 0, records);
            self.runs.release(run.first_line, run.class);
            run = longer;
        }
        run.len += 1;
        pile.set_run(run.first_line, run.class, run.len);
        Ok(run.slot(run.len - 1))
    }

    fn add_long_slot(&mut self, pile: &Pile) -> Result<Slot, Full> {
        if self.long[pile.head].last_len == capacity(CLASS_MAX) {
            let run = self.runs.allocate(CLASS_MAX).ok_or(Full)?;
            self.long[pile.head].runs.push(run);
            self.long[pile.head].last_len = 0;
        }
        self.long[pile.head].last_len += 1;
        Ok(self.last_slot(pile))
    }

    /// The slot of a pile's last filter.
    fn last_slot(&self, pile: &Pile) -> Slot {
        if pile.is_long() {
            let Long { runs, last_len } = &self.long[pile.head];
            let first_line = runs.last().copied().unwrap_or(NONE);
            let crowded = pile.crowded != 0;
            return Slot { first_line, class: CLASS_MAX, crowded, lane: last_len - 1 };
        }
        pile.run().slot(pile.len - 1)
    }

    /// One lane less at the end of a pile; runs that are all but empty are given back.
    fn drop_slot(&mut self, pile: &mut Pile, records: &mut Records) {
        if pile.is_long() {
            return self.drop_long_slot(pile);
        }
        let mut run = pile.run();
        run.len -= 1;
        if run.len == 0 {
            self.runs.release(run.first_line, run.class);
            return pile.clear();
        }
        if run.len <= capacity(run.class) / 3 {
            run = self.shorten(&run, records);
        }
        pile.set_run(run.first_line, run.class, run.len);
    }

    fn drop_long_slot(&mut self, pile: &mut Pile) {
        let number = pile.head;
        let long = &mut self.long[number];
        long.last_len -= 1;
        if long.last_len == 0 {
            let run = long.runs.pop().unwrap_or(NONE);
            long.last_len = capacity(CLASS_MAX);
            self.runs.release(run, CLASS_MAX);
        }
        let long = &self.long[number];
        // A quarter below the length that makes a pile long, so that it does not change with every move.
        if let [only] = *long.runs
            && long.last_len <= capacity(CLASS_MAX) / 4 * 3
        {
            pile.set_run(only, CLASS_MAX, long.last_len);
            self.long.remove(number);
        }
    }

    /// Moves the lanes of a run that uses a third of them into one of half the length.
    fn shorten(&mut self, run: &Run, records: &mut Records) -> Run {
        let class = run.class.saturating_sub(2);
        if let Some(first_line) = self.runs.allocate(class) {
            let shorter = Run { first_line, class, ..*run };
            self.copy(run, &shorter, 0, records);
            self.runs.release(run.first_line, run.class);
            return shorter;
        }
        // Without memory, half of the old run does; the other half is lost.
        let lanes: Vec<Lane> = (0..run.len).map(|lane| self.runs.lane(&run.slot(lane))).collect();
        let shorter = Run { class, ..*run };
        for (index, lane) in (0..).zip(&lanes) {
            self.set(&shorter.slot(index), lane, records);
        }
        shorter
    }

    /// Puts the lanes of a run into another, which does not overlap it, from a lane on; answers the next lane.
    fn copy(&mut self, from: &Run, to: &Run, first: u16, records: &mut Records) -> u16 {
        for lane in 0..from.len {
            let held = self.runs.lane(&from.slot(lane));
            self.set(&to.slot(first + lane), &held, records);
        }
        first + from.len
    }

    fn set(&mut self, slot: &Slot, lane: &Lane, records: &mut Records) {
        self.runs.set_lane(slot, lane);
        records.set_slot(lane.owner.record, Some(slot));
    }

    pub(super) fn bytes(&self) -> usize {
        self.runs.bytes() + self.long.bytes() + self.crowds.bytes()
    }
}

#[cfg(test)]
mod tests;
