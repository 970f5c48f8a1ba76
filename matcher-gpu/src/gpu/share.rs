//! One device's share of the filters: the table, the base sorted from it, and the log of what has changed since.

use std::sync::atomic::{AtomicBool, Ordering};

use kernels::gpu::{
    Constraint, ConstraintUpdate, EntryUpdate, HeadUpdate, KIND_CIRCLE, KIND_LIVE, Levels, Move,
};
use kernels::gpu::{NAME_COMPLETE, NAME_OPTIONAL, Place};
use matcher::compiled::constraints::Bound;

use super::base::{Base, Sorter};
use super::entries::{Changes, Entries, Moved};
use super::log::{CAPACITY, Log};
use super::table::Table;
use crate::filters::Filters;
use crate::launchers::gpu::{Entering, GpuKernels};
use crate::rounding::{rounded, to_f32};
use crate::staging::Staging;
use device::{Device, DriverError, Event, Priority, Stream};

/// Once the log is longer than this, a sixteenth of its ring, the base is sorted anew beside the matching.
const LOG_SORTED_FROM: u32 = CAPACITY / 16;
/// Tests of log entries that take as long as sorting an entry, roughly: above that the sort comes first.
const TESTS_A_SORTED_ENTRY: u64 = 100;

#[derive(Debug)]
pub(crate) struct Share {
    pub(super) device: Device,
    pub(super) entries: Entries,
    pub(super) kernels: GpuKernels,
    /// Changes, and sorts that matching waits for.
    stream: Stream,
    sort_stream: Stream,
    pub(super) table: Table,
    pub(super) base: Base,
    pub(super) log: Log,
    spare: Base,
    sorter: Sorter,
    sorting: Option<Sorting>,
    /// Changes are on the device.
    changed: Event,
    /// That was seen, so that no further stream has to wait for it.
    settled: AtomicBool,
    /// Something was given to the stream since that was marked.
    unmarked: bool,
    /// The base that was last begun is sorted.
    sorted: Event,
    /// Stamp of the last flush.
    stamp: u32,
    /// The base lacks changes that are not in the log.
    stale: bool,
    staged_entries: Staging<EntryUpdate>,
    staged_constraints: Staging<ConstraintUpdate>,
    staged_heads: Staging<HeadUpdate>,
    staged_moves: Staging<Move>,
}

/// A sort that goes on beside the matching.
#[derive(Clone, Copy, Debug)]
struct Sorting {
    /// Where the log ended when it began.
    log_start: u32,
}

impl Share {
    pub(super) fn new(device: &Device, levels: Levels) -> Result<Self, DriverError> {
        Ok(Self {
            device: device.clone(),
            entries: Entries::new(),
            kernels: GpuKernels::load(device)?,
            stream: device.stream(Priority::High)?,
            sort_stream: device.stream(Priority::Low)?,
            table: Table::new(device)?,
            base: Base::new(device, levels)?,
            log: Log::new(device)?,
            spare: Base::new(device, levels)?,
            sorter: Sorter::new(device)?,
            sorting: None,
            changed: device.event()?,
            settled: AtomicBool::new(false),
            unmarked: true,
            sorted: device.event()?,
            stamp: 0,
            stale: false,
            staged_entries: Staging::new(device)?,
            staged_constraints: Staging::new(device)?,
            staged_heads: Staging::new(device)?,
            staged_moves: Staging::new(device)?,
        })
    }

    /// Brings changes to the device. They are there for everything that waits for [`Share::order_after_changes`].
    ///
    /// # Errors
    /// When there is too little memory: then nothing has been done. Anything else leaves the device useless.
    pub(super) fn flush(&mut self, filters: &Filters<()>) -> Result<(), DriverError> {
        if self.entries.changes().is_empty() {
            return Ok(());
        }
        let (entries_end, clients_end, constraints_end) = self.entries.ends();
        self.unmarked = true;
        self.table.reserve(&self.stream, entries_end, clients_end, constraints_end)?;
        if self.stamp == u32::MAX {
            self.restart_stamps()?;
        }
        self.stamp += 1;
        let Self { entries: known, stream, kernels, table, log, .. } = self;
        let Changes { entries, heads, moved } = known.changes();
        let following: u64 = moved.iter().map(|moved| u64::from(moved.following)).sum();
        let logged = following + entries.len() as u64;
        let logging = !self.stale && logged <= u64::from(CAPACITY - log.len());
        let entering = Entering { stamp: self.stamp, logging };
        let mut log_at = log.end;
        let live = entries.iter().filter(|entry| known.is_live(**entry) && known.is_changed(**entry));
        let constraints = live.flat_map(|entry| {
            let places = known.constraints_start(*entry)..;
            let bounds = filters.bounds(known.filter(*entry));
            places.zip(bounds).map(|(at, bound)| ConstraintUpdate { at, constraint: constraint(&bound) })
        });
        self.staged_constraints.send(stream, constraints, |updates, count| {
            kernels.put_constraints(stream, updates, count, &table.constraints)
        })?;
        let entries = entries.iter().map(|entry| {
            let update = entry_update(filters, known, *entry, log_at);
            log_at = log_at.wrapping_add(1);
            update
        });
        self.staged_entries.send(stream, entries, |updates, count| {
            kernels.put_entries(stream, updates, count, entering, table, log)
        })?;
        let heads = heads.iter().map(|client| HeadUpdate { client: *client, head: known.head(*client) });
        self.staged_heads
            .send(stream, heads, |updates, count| kernels.put_heads(stream, updates, count, &table.heads))?;
        let moves = moved.iter().map(|&Moved { client, following, position }| {
            let moved = Move { client, log_at, position };
            log_at = log_at.wrapping_add(following);
            moved
        });
        self.staged_moves.send(stream, moves, |moves, count| {
            kernels.move_clients(stream, moves, count, entering, table, log)
        })?;
        if logging {
            log.end = log_at;
        } else {
            self.stale = true;
        }
        self.entries.settle();
        Ok(())
    }

    /// Prepares the base for a batch of this number of events: it is sorted first where the log would take longer,
    /// beside the matching where the log has grown, and otherwise left alone.
    ///
    /// # Errors
    /// When there is too little memory, and the log alone will not do; or the device fails.
    pub(super) fn prepare(
        &mut self,
        events_count: usize,
        levels: impl FnOnce() -> Levels,
    ) -> Result<(), DriverError> {
        if self.sorting.is_some() && self.sorted.done()? {
            self.take_sorted();
        }
        let ((entries_count, ..), live) = (self.entries.ends(), self.entries.live());
        let tests = events_count as u64 * u64::from(self.log.len());
        let first = self.stale || tests > TESTS_A_SORTED_ENTRY * (live as u64 + u64::from(CAPACITY));
        if first {
            // Whatever is being sorted is too old.
            self.sort_stream.synchronize()?;
            self.sorting = None;
        } else if self.sorting.is_some() || self.log.len() <= LOG_SORTED_FROM {
            return Ok(());
        }
        match self.sorter.reserve(&self.device, &mut self.spare, entries_count, live) {
            // The log still has everything.
            Err(DriverError::OutOfMemory { .. }) if !self.stale => return Ok(()),
            reserved => reserved?,
        }
        self.unmarked |= first;
        let stream = if first { &self.stream } else { &self.sort_stream };
        if !first {
            self.stream.record(&self.changed)?;
            stream.wait(&self.changed)?;
        }
        let entries_count = u32::try_from(entries_count).expect("entries have 32-bit numbers");
        let (kernels, table) = (&self.kernels, &self.table);
        (self.spare.levels, self.spare.epoch) = (levels(), self.stamp);
        self.sorter.sort(stream, kernels, table, &self.spare, entries_count)?;
        stream.record(&self.sorted)?;
        self.sorting = Some(Sorting { log_start: self.log.end });
        if first {
            self.take_sorted();
            self.stale = false;
        }
        Ok(())
    }

    /// Lets a stream's later work see the changes and the base.
    pub(super) fn order_after_changes(&self, stream: &Stream) -> Result<(), DriverError> {
        if self.settled.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.changed.done()? {
            self.settled.store(true, Ordering::Release);
            return Ok(());
        }
        stream.wait(&self.changed)
    }

    /// Marks the place in the stream of changes that matching has to wait for.
    pub(super) fn mark_changes(&mut self) -> Result<(), DriverError> {
        if self.unmarked {
            *self.settled.get_mut() = false;
            self.stream.record(&self.changed)?;
            self.unmarked = false;
        }
        Ok(())
    }

    /// Waits until the device has all changes, and the base is sorted if it was being.
    pub(super) fn synchronize(&mut self) -> Result<(), DriverError> {
        self.stream.synchronize()?;
        self.sort_stream.synchronize()?;
        if self.sorting.is_some() {
            self.take_sorted();
        }
        Ok(())
    }

    /// Bytes of the device's memory.
    pub(super) fn bytes(&self) -> usize {
        self.table.bytes()
            + self.base.bytes()
            + self.spare.bytes()
            + self.sorter.bytes()
            + self.log.bytes()
            + self.staged_entries.bytes()
            + self.staged_constraints.bytes()
            + self.staged_heads.bytes()
            + self.staged_moves.bytes()
    }

    /// Stands in for billions of flushes and log entries.
    #[cfg(test)]
    pub(super) fn set_counts(&mut self, stamp: u32, log_end: u32) {
        self.stamp = stamp;
        (self.log.start, self.log.end) = (log_end, log_end);
    }

    fn take_sorted(&mut self) {
        if let Some(Sorting { log_start }) = self.sorting.take() {
            std::mem::swap(&mut self.base, &mut self.spare);
            self.log.start = log_start;
        }
    }

    /// Begins to count flushes anew: nothing in the base or the log is newer than anything.
    fn restart_stamps(&mut self) -> Result<(), DriverError> {
        self.synchronize()?;
        self.stream.fill(&self.table.stamps, 0..self.table.stamps.len(), 0)?;
        // What is left over in the ring is nobody's last change.
        self.stream.fill(&self.log.stamps, 0..self.log.stamps.len(), u32::MAX)?;
        self.stamp = 0;
        self.stale = true;
        Ok(())
    }
}

fn constraint(bound: &Bound) -> Constraint {
    let optional = if bound.requires_presence { 0 } else { NAME_OPTIONAL };
    let complete = if bound.complete { NAME_COMPLETE } else { 0 };
    Constraint { name: bound.name | optional | complete, low: bound.interval.low, high: bound.interval.high }
}

fn entry_update(filters: &Filters<()>, known: &Entries, entry: u32, log_at: u32) -> EntryUpdate {
    let next = known.next(entry);
    let changed = u32::from(known.is_changed(entry));
    if !known.is_live(entry) {
        let place = Place { centre: [f32::NAN; 3], reach: 0.0 };
        let (mask, subscription, constraints, kind) = (u32::MAX, 0, 0, 0);
        return EntryUpdate { place, entry, mask, subscription, constraints, kind, next, log_at, changed };
    }
    let filter = known.filter(entry);
    let circle = filters.circle(filter);
    let centre = circle.centre.map_or([f32::NAN; 3], |centre| rounded(&centre));
    let complete = if circle.complete { KIND_CIRCLE } else { 0 };
    EntryUpdate {
        place: Place { centre, reach: to_f32(circle.reach) },
        entry,
        mask: filters.mask(filter),
        subscription: filters.subscription(filter),
        constraints: known.constraints_start(entry),
        kind: known.constraints_len(entry) | complete | KIND_LIVE,
        next,
        log_at,
        changed,
    }
}
