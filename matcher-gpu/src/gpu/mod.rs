//! `gpu`, for throughput: batches of events against filters that are sorted by cell on the device.
//!
//! Entries (a filter's conjunctions) are rows of a table. The *base* is the table sorted by cell; what has changed since
//! then is in the *log* as well, which every event scans whole (that is CLCB's Loc again). A stamp on each entry tells which
//! of its places is the last, so nothing has to be taken out of the base when something moves. When the log has
//! grown, the base is sorted anew on the device, beside the matching. A move is one record for a client, however many
//! filters follow it; the device walks their list.
//!
//! Batches are cut into waves that go through encoding, search and decision on several threads at once; the device reads a
//! wave in the host's memory and writes the answers there. What single precision and codes of values leave in doubt comes
//! back as such and is decided exactly on the host.

mod arena;
pub(crate) mod base;
mod entries;
mod levels;
pub(crate) mod log;
mod share;
pub(crate) mod table;
mod wave;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use kernels::gpu::ENTRIES_END;
use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
use matcher::event::Event;
use matcher::geo::{Position, World};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

use crate::failure::match_error;
use crate::filters::{Filters, constraints_count};
use crate::rounding::rounded;
use device::{Device, DriverError};
use levels::Reaches;
use share::Share;
use wave::Lane;

/// Events of a wave at most; its memory stays in a core's cache.
const WAVE_MAX: usize = 8192;
/// Events of a wave at least, unless there are fewer.
const WAVE_MIN: usize = 256;
/// Events of a wave at least where a thread has a second one: a call of the driver costs as much as writing some hundred events down.
const WAVE_AGAIN_MIN: usize = 512;
/// Waves of a thread, if they are large enough.
const WAVES: usize = 4;
/// More threads find nothing left to do.
const THREADS_MAX: usize = 16;
/// Cores from which on the caller has one of its own.
const CALLER_HAS_CORE: usize = 8;

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Gpu {
    world: World,
    filters: Filters<()>,
    reaches: Reaches,
    /// One for each device; filters are dealt over them by their client.
    shares: Vec<Share>,
    /// Two for each thread of the pool: one is searched for while the thread writes the other's wave down, or its rows.
    lanes: Vec<Mutex<[Lane; 2]>>,
    pool: rayon::ThreadPool,
}

impl Gpu {
    /// An empty engine on one or more devices.
    ///
    /// # Errors
    /// When a device has no room or cannot run the kernels, or the system gives no threads.
    ///
    /// # Panics
    /// Without a device.
    pub fn new(world: World, devices: &[Device]) -> Result<Self, DriverError> {
        assert!(!devices.is_empty(), "a GPU engine needs a device");
        let reaches = Reaches::new();
        let share = |device: &Device| Share::new(device, reaches.levels(world));
        let shares = devices.iter().map(share).collect::<Result<Vec<_>, _>>()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        // The caller appends rows meanwhile; where there are many cores it has one of its own, so that no wave waits for it.
        let threads = if cores < CALLER_HAS_CORE { cores } else { cores - 1 };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("gpu-wave-{index}"))
            .build()
            .map_err(|error| DriverError::Other {
                operation: "starting threads",
                reason: error.to_string(),
            })?;
        let lane = || Lane::new(devices.iter());
        let lanes =
            (0..threads).map(|_| Ok(Mutex::new([lane()?, lane()?]))).collect::<Result<_, DriverError>>()?;
        Ok(Self { world, filters: Filters::new(world, ENTRIES_END), reaches, shares, lanes, pool })
    }

    /// Makes the devices hold all that has changed, and waits until they do. Matching needs none of that: it sees every
    /// change anyway.
    ///
    /// # Errors
    /// When there is too little memory, which leaves everything to be done later, or a device fails.
    pub fn settle(&mut self) -> Result<(), DriverError> {
        self.flush(0)?;
        self.shares.iter_mut().try_for_each(Share::synchronize)
    }

    /// Bytes of the devices' memory.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        let lanes = |lanes: &Mutex<[Lane; 2]>| {
            lanes.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Lane::bytes).sum::<usize>()
        };
        self.shares.iter().map(Share::bytes).sum::<usize>() + self.lanes.iter().map(lanes).sum::<usize>()
    }

    fn share_of(&self, client: u32) -> usize {
        client as usize % self.shares.len()
    }

    /// Brings changes to the devices and gets them ready for `events_count` events, without a wait.
    pub(crate) fn flush(&mut self, events_count: usize) -> Result<(), DriverError> {
        let Self { world, filters, reaches, shares, .. } = self;
        for share in shares {
            share.flush(filters)?;
            share.prepare(events_count, || reaches.levels(*world))?;
            share.mark_changes()?;
        }
        Ok(())
    }

    fn enter(&mut self, filter: u32, client: u32) {
        let share = self.share_of(client);
        let constraints = self.filters.bounds(filter).count();
        let follows = self.filters.follows(filter).then_some(client);
        self.shares[share].entries.enter(filter, constraints, follows);
        self.reaches.add(self.filters.circle(filter).reach);
    }

    fn leave(&mut self, filter: u32, client: u32) {
        let share = self.share_of(client);
        self.shares[share].entries.leave(filter);
        self.reaches.remove(self.filters.circle(filter).reach);
    }

    /// Matches a batch wave by wave.
    fn run(&self, events: &[&Event], rows: &mut MatchRows) -> Result<(), DriverError> {
        let Self { filters, shares, lanes, pool, .. } = self;
        let lanes_of = |index: usize| lanes[index].lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() <= WAVE_MIN {
            // Too few to be shared out. A wave that is taken in halves may fail in the second: rows get all or nothing.
            let mut matched = MatchRows::new();
            lanes_of(0)[0].run(events, filters, shares, &mut matched)?;
            rows.append(&matched);
            return Ok(());
        }
        let one_each = events.len().div_ceil(lanes.len()).max(WAVE_MIN);
        let wave = events.len().div_ceil(WAVES * lanes.len()).clamp(WAVE_AGAIN_MIN, WAVE_MAX).min(one_each);
        let waves: Vec<&[&Event]> = events.chunks(wave).collect();
        let next = AtomicUsize::new(0);
        // Takes wave after wave; each is searched for while the thread writes the next one down.
        let work = |sender: &Sender<(usize, Result<MatchRows, DriverError>)>| {
            let mut lanes = lanes_of(rayon::current_thread_index().expect("the pool's threads have numbers"));
            let [first, second] = &mut *lanes;
            let (mut idle, mut busy) = (first, second);
            let mut under_way = None;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let begun = waves
                    .get(index)
                    .map(|wave| (index, *wave, idle.begin(wave, events.len(), filters, shares)));
                if let Some((index, wave, begun)) = under_way.take() {
                    let mut rows = MatchRows::new();
                    let finished = busy.finish(begun, wave, filters, shares, &mut rows);
                    if sender.send((index, finished.map(|()| rows))).is_err() {
                        // Nobody listens any more once a wave has failed: then the others are left out.
                        next.store(waves.len(), Ordering::Relaxed);
                    }
                }
                if begun.is_none() {
                    return;
                }
                under_way = begun;
                std::mem::swap(&mut idle, &mut busy);
            }
        };
        let rows_before = rows.len();
        let (sender, receiver) = mpsc::channel();
        let all = pool.in_place_scope(|scope| {
            for _ in 0..waves.len().min(lanes.len()) {
                let sender = sender.clone();
                scope.spawn(|_| {
                    let sender = sender;
                    work(&sender);
                });
            }
            drop(sender);
            // What comes early is appended while the others are on their way.
            let mut matched: Vec<Option<MatchRows>> = waves.iter().map(|_| None).collect();
            let mut appended = 0;
            for (index, rows_of_wave) in receiver {
                matched[index] = Some(rows_of_wave?);
                while let Some(next) = matched.get_mut(appended).and_then(Option::take) {
                    rows.append(&next);
                    appended += 1;
                }
            }
            Ok(())
        });
        if all.is_err() {
            rows.truncate(rows_before);
        }
        all
    }
}

impl Engine for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        self.filters.check_room(id.0, subscription)?;
        let share = self.share_of(subscription.client.0);
        if !self.shares[share].entries.has_room(constraints_count(subscription)) {
            return Err(InstallError::Full { held: self.filters.count() as u64 });
        }
        self.remove(id);
        self.filters.enter(id.0, subscription)?;
        for index in 0..self.filters.roster.records(id.0).len() {
            self.enter(self.filters.roster.records(id.0)[index], subscription.client.0);
        }
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        if !self.filters.roster.is_installed(id.0) {
            return false;
        }
        let client = self.filters.roster.client(id.0);
        for index in 0..self.filters.roster.records(id.0).len() {
            self.leave(self.filters.roster.records(id.0)[index], client);
        }
        self.filters.leave(id.0);
        true
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        let share = self.share_of(client.0);
        self.filters.roster.set_position(client.0, position);
        let position = position.map_or([f32::NAN; 3], |position| rounded(position.point()));
        self.shares[share].entries.moved(client.0, position);
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        if events.is_empty() {
            return Ok(());
        }
        self.flush(events.len()).map_err(match_error)?;
        self.run(events, rows).map_err(match_error)
    }

    fn footprint(&self) -> Footprint {
        let entries: usize = self.shares.iter().map(|share| share.entries.bytes()).sum();
        Footprint {
            subscriptions: self.filters.roster.subscriptions_count(),
            filters: self.filters.count(),
            bytes: self.filters.bytes() + entries + self.device_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use matcher::engine::cells::Cells;
    use matcher::fixtures::workload::{Config, Workload};

    use super::*;

    #[test]
    fn counts_of_changes_begin_again_unnoticed() {
        let config = Config { subscriptions: 500, coverage: 0.02, selectivity: 0.015, ..Config::default() };
        let workload = Workload::new(config).unwrap();
        let world = workload.world();
        let mut gpu = Gpu::new(world, &[Device::host(1 << 30)]).unwrap();
        // The fifth flush begins anew, and the log's places do so while it is in use.
        gpu.shares[0].set_counts(u32::MAX - 4, u32::MAX - 9_000);
        let mut cells = Cells::new(world);
        let engines: [&mut dyn Engine; 2] = [&mut cells, &mut gpu];
        for engine in engines {
            for (id, subscription) in workload.subscriptions() {
                engine.move_client(
                    subscription.client,
                    Some(workload.position(workload.home(subscription.client))),
                );
                engine.install(id, &subscription).unwrap();
            }
        }
        let events: Vec<Event> = (0..40).map(|index| workload.event(index)).collect();
        let events: Vec<&Event> = events.iter().collect();
        let mut matches = 0;
        for round in 0..12 {
            let mut rows = [MatchRows::new(), MatchRows::new()];
            let engines: [&mut dyn Engine; 2] = [&mut cells, &mut gpu];
            for (engine, rows) in engines.into_iter().zip(&mut rows) {
                for index in 0..60 {
                    let (client, spot) = workload.jump(round * 100 + index);
                    engine.move_client(client, Some(workload.position(spot)));
                }
                engine.match_batch(&events, rows).unwrap();
            }
            assert_eq!(rows[0], rows[1], "round {round}");
            matches += rows[0].pairs_count();
        }
        assert!(matches > 100, "{matches} matches prove little");
    }
}
