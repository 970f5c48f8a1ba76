//! `clcb`, the paper's algorithm to the letter (Cugola and Margara, section 4): one event at a time goes through Loc,
//! Cont and Zip on one stream, with one synchronisation.
//!
//! Two things are added. Positions, distances and values are rounded for the device so that nothing is missed
//! ([`crate::rounding`], `matcher::compiled::codes`), and the subscriptions that come back are decided exactly on the host.
//! Counters have a byte for each of four runs, so that only every fourth run has to clear them.

pub(crate) mod arrays;
mod groups;
mod run;

use kernels::clcb::{Constraint, ConstraintUpdate, FilterUpdate, Move, NO_FILTER};
use matcher::compiled::slab::Slab;
use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
use matcher::event::Event;
use matcher::geo::{Position, World};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

use crate::failure::match_error;
use crate::filters::{Filters, Seen, constraints_count};
use crate::launchers::clcb::ClcbKernels;
pub use crate::launchers::clcb::Form;
use crate::numbering::Numbering;
use crate::rounding::{rounded, slack, to_f32};
use crate::staging::Staging;
use arrays::Arrays;
use device::{Device, DriverError, Pinned, Priority, SharedWords, Stream};
use groups::{Group, Slots};
use run::Runner;
pub use run::{Step, StepTimes};

/// Numbers of filters are below this, so that those of constraints have 32 bits.
const FILTERS_END: u32 = 1 << 27;

/// In the plane, squared radii are stretched by this share, so that what rounding adds to a distance can be added to its
/// square: (r + s)^2 <= r^2 (1 + t) + s^2 (1 + 1 / t).
const STRETCH: f64 = 1.0 / 1024.0;

/// For the roundings of squares themselves, as a share: 32 times that of one.
const SQUARES: f64 = 32.0 / (1 << 24) as f64;

/// Most filters, and most runs of neighbours among them, that are moved by copies: from a fifth copy on a kernel is
/// quicker.
const COPIED_FILTERS: usize = 256;
const COPIED_RUNS: usize = 4;

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Clcb {
    world: World,
    filters: Filters<Group>,
    slots: Slots,
    placed: Slab<Placed>,
    filters_end: u32,
    /// Numbers of subscriptions, for SubsBV.
    numbering: Numbering,
    /// Filters whose arrays are to be written, each once.
    changed: Vec<u32>,
    /// Filters whose centres are to be written, each once unless it has changed as well.
    moved: Vec<u32>,
    /// Slots that were given back; some may be in use again.
    freed: Vec<u32>,
    on_device: OnDevice,
    seen: Seen,
}

/// A filter's constraints and what the device does not know of it yet.
#[derive(Debug, Default)]
struct Placed {
    live: bool,
    pending: Pending,
    /// Slots of the constraints that have to hold, in the order of the filter's bounds.
    slots: Box<[u32]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    Move,
    All,
}

#[derive(Debug)]
struct OnDevice {
    stream: Stream,
    kernels: ClcbKernels,
    arrays: Arrays,
    filters: Staging<FilterUpdate>,
    constraints: Staging<ConstraintUpdate>,
    moves: Staging<Move>,
    /// Centres that are copied as they are.
    centres: Pinned<f32>,
    /// A word in which the device tells that it has them, by the number of the announcement, and the last number.
    told: SharedWords,
    announcement: u32,
    /// The announcement after which the device knows everything; none where the stream has to be waited for.
    settled: Option<u32>,
    runner: Runner,
}

impl Clcb {
    /// An empty engine on a device.
    ///
    /// # Errors
    /// When the device has no room or cannot run the kernels.
    pub fn new(world: World, device: &Device) -> Result<Self, DriverError> {
        let dimensions = match world {
            World::Planar => 2,
            World::Geodetic => 3,
        };
        Ok(Self {
            world,
            filters: Filters::new(world, FILTERS_END),
            slots: Slots::default(),
            placed: Slab::new(),
            filters_end: 0,
            numbering: Numbering::new(),
            changed: Vec::new(),
            moved: Vec::new(),
            freed: Vec::new(),
            on_device: OnDevice {
                stream: device.stream(Priority::High)?,
                kernels: ClcbKernels::load(device, world)?,
                arrays: Arrays::new(device, dimensions)?,
                filters: Staging::new(device)?,
                constraints: Staging::new(device)?,
                moves: Staging::new(device)?,
                centres: device.pinned(COPIED_FILTERS * dimensions as usize)?,
                told: device.shared(1)?,
                announcement: 0,
                settled: None,
                runner: Runner::new(device)?,
            },
            seen: Seen::default(),
        })
    }

    /// How events go through the device from now on; the fast form to begin with.
    pub fn set_form(&mut self, form: Form) {
        self.on_device.runner.form = form;
    }

    /// Makes the device hold all that has changed, and waits until it does. Matching does the same without the wait.
    ///
    /// # Errors
    /// When there is too little memory, which leaves everything to be done later, or the device fails.
    pub fn settle(&mut self) -> Result<(), DriverError> {
        self.flush()?;
        let OnDevice { stream, told, settled, .. } = &self.on_device;
        match settled {
            Some(announcement) => told.wait_told(stream, 0, *announcement),
            None => stream.synchronize(),
        }
    }

    /// Matches one event and tells how long each of the paper's five steps took on the device.
    ///
    /// # Errors
    /// As for `match_batch`.
    pub fn match_timed(&mut self, event: &Event, rows: &mut MatchRows) -> Result<StepTimes, MatchError> {
        self.flush().map_err(match_error)?;
        let mut times = StepTimes::default();
        self.match_one(event, rows, Some(&mut times)).map_err(match_error)?;
        Ok(times)
    }

    /// Bytes of the device's memory that filters take: the paper's arrays.
    #[must_use]
    pub fn arrays_bytes(&self) -> usize {
        self.on_device.arrays.bytes()
    }

    /// Bytes of the device's memory, what changes and events pass through included.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        let OnDevice { arrays, filters, constraints, moves, runner, .. } = &self.on_device;
        arrays.bytes() + filters.bytes() + constraints.bytes() + moves.bytes() + runner.bytes()
    }

    fn match_one(
        &mut self,
        event: &Event,
        rows: &mut MatchRows,
        times: Option<&mut StepTimes>,
    ) -> Result<(), DriverError> {
        let OnDevice { stream, kernels, arrays, runner, .. } = &mut self.on_device;
        runner.encode(self.world, event, &self.filters, self.filters_end, self.numbering.len());
        let found = runner.run(stream, kernels, arrays, times)?;
        let viewed = self.filters.see(event, &mut self.seen);
        rows.push_with(|ids| {
            let found = found.iter().map(|number| self.numbering.id(*number));
            ids.extend(found.filter(|id| self.filters.any(*id, &viewed)).map(SubscriptionId));
        });
        Ok(())
    }

    /// Gives a filter its slots.
    fn place(&mut self, number: u32) {
        let required = self.filters.bounds(number).filter(|bound| bound.requires_presence);
        let names: Vec<u32> = required.map(|bound| bound.name).collect();
        let Self { filters, slots, .. } = self;
        let slots =
            names.into_iter().map(|name| slots.acquire(&mut filters.names.name_mut(name).payload)).collect();
        self.numbering.enter(filters.subscription(number));
        self.placed.grow_to(number);
        self.placed[number].live = true;
        self.placed[number].slots = slots;
        self.filters_end = self.filters_end.max(number + 1);
        self.note(number, Pending::All);
    }

    /// Takes a filter's slots back.
    fn displace(&mut self, number: u32) {
        let slots = std::mem::take(&mut self.placed[number].slots);
        let required = self.filters.bounds(number).filter(|bound| bound.requires_presence);
        let names: Vec<u32> = required.map(|bound| bound.name).collect();
        for (name, slot) in names.into_iter().zip(slots) {
            self.slots.release(&mut self.filters.names.name_mut(name).payload, slot);
            self.freed.push(slot);
        }
        self.placed[number].live = false;
        self.note(number, Pending::All);
    }

    fn note(&mut self, number: u32, news: Pending) {
        let pending = &mut self.placed[number].pending;
        match (*pending, news) {
            (Pending::Nothing | Pending::Move, Pending::All) => self.changed.push(number),
            (Pending::Nothing, Pending::Move) => self.moved.push(number),
            _ => return,
        }
        *pending = news;
    }

    /// Sends to the device what it does not know yet.
    pub(crate) fn flush(&mut self) -> Result<(), DriverError> {
        if self.changed.is_empty() && self.moved.is_empty() && self.freed.is_empty() {
            return Ok(());
        }
        let Self { filters, placed, world, numbering, .. } = self;
        let OnDevice { stream, kernels, arrays, constraints: staged, filters: staged_filters, .. } =
            &mut self.on_device;
        arrays.reserve(stream, self.filters_end as usize, self.slots.end(), numbering.len())?;
        let empty = Constraint { filter: NO_FILTER, interval: 0 };
        let emptied = self.freed.drain(..).map(|slot| ConstraintUpdate { slot, constraint: empty });
        staged.send(stream, emptied, |updates, count| kernels.constrain(stream, updates, count, arrays))?;
        let constraints = self.changed.iter().flat_map(|number| {
            let Placed { live, slots, .. } = &placed[*number];
            // A filter that is gone has no slots, and no bounds either.
            let bounds = live.then(|| filters.bounds(*number).filter(|bound| bound.requires_presence));
            bounds.into_iter().flatten().zip(slots).map(|(bound, slot)| {
                let interval = bound.interval.low >> 16 | (bound.interval.high & 0xffff_0000);
                ConstraintUpdate { slot: *slot, constraint: Constraint { filter: *number, interval } }
            })
        });
        staged
            .send(stream, constraints, |updates, count| kernels.constrain(stream, updates, count, arrays))?;
        let updates =
            self.changed.iter().map(|number| update(*world, filters, numbering, *number, &placed[*number]));
        staged_filters
            .send(stream, updates, |updates, count| kernels.install(stream, updates, count, arrays))?;
        self.moved.retain(|number| placed[*number].pending == Pending::Move);
        for number in self.changed.drain(..).chain(self.moved.iter().copied()) {
            placed[number].pending = Pending::Nothing;
        }
        self.flush_moves()
    }

    /// Writes centres and nothing else, the paper's update (section 5): few neighbours are copied as they are.
    fn flush_moves(&mut self) -> Result<(), DriverError> {
        let Self { moved, filters, .. } = self;
        let OnDevice { stream, kernels, arrays, moves, centres, told, announcement, settled, .. } =
            &mut self.on_device;
        *settled = None;
        if moved.len() <= COPIED_FILTERS {
            moved.sort_unstable();
        }
        let runs = || moved.chunk_by(|a, b| a + 1 == *b);
        if moved.len() > COPIED_FILTERS || runs().nth(COPIED_RUNS).is_some() {
            let updates =
                moved.iter().map(|number| Move { filter: *number, position: centre(filters, *number) });
            moves.send(stream, updates, |moves, count| kernels.move_centres(stream, moves, count, arrays))?;
        } else if let [number] = &**moved {
            let (dimensions, centre) = (arrays.dimensions as usize, centre(filters, *number));
            let written = (&arrays.fpos, *number as usize * dimensions, &centre[..dimensions]);
            *announcement = announcement.wrapping_add(1);
            stream.write_and_tell(Some(written), told, 0, *announcement)?;
            *settled = Some(*announcement);
        } else if !moved.is_empty() {
            let dimensions = arrays.dimensions as usize;
            let places = centres.slice_mut()?;
            for (place, number) in places.chunks_exact_mut(dimensions).zip(moved.iter()) {
                place.copy_from_slice(&centre(filters, *number)[..dimensions]);
            }
            let mut start = 0;
            for run in runs() {
                let end = start + run.len() * dimensions;
                stream.upload(centres, start..end, &arrays.fpos, run[0] as usize * dimensions)?;
                start = end;
            }
            *announcement = announcement.wrapping_add(1);
            stream.tell(told, 0, *announcement)?;
            *settled = Some(*announcement);
        }
        moved.clear();
        Ok(())
    }
}

/// FPos: not a number while the filter is nowhere.
fn centre<P>(filters: &Filters<P>, number: u32) -> [f32; 3] {
    filters.centre(number).map_or([f32::NAN; 3], |centre| rounded(&centre))
}

fn update(
    world: World,
    filters: &Filters<Group>,
    numbering: &Numbering,
    number: u32,
    placed: &Placed,
) -> FilterUpdate {
    if !placed.live {
        // Nowhere, so that no run looks further.
        let position = [f32::NAN; 3];
        return FilterUpdate { filter: number, mask: u32::MAX, owner: 0, needed: 0, sq_dist: 0.0, position };
    }
    let needed = 1 + u32::try_from(placed.slots.len()).expect("a conjunction has 32 constraints at most");
    FilterUpdate {
        filter: number,
        mask: filters.mask(number),
        owner: numbering.number(filters.subscription(number)).expect("it was entered with its filters"),
        needed,
        sq_dist: sq_dist(world, filters.circle(number).reach),
        position: centre(filters, number),
    }
}

/// SqDist: the squared reach, stretched by what rounding may hide. On the globe events are all as far from the origin,
/// so all of that is in it; in the plane the event brings its own ([`slack_sq`]).
fn sq_dist(world: World, reach: f64) -> f32 {
    let square = match world {
        World::Geodetic => (reach * (1.0 + SQUARES) + slack(&[1.0, 0.0, 0.0]) * 1.000_001).powi(2),
        World::Planar => reach * reach * (1.0 + STRETCH),
    };
    to_f32(square * (1.0 + SQUARES))
}

/// Bound on the amount by which rounding may increase a squared distance from an event.
fn slack_sq(world: World, point: &[f64; 3]) -> f32 {
    match world {
        World::Geodetic => 0.0,
        World::Planar => to_f32(slack(point).powi(2) * (1.0 + 1.0 / STRETCH) * (1.0 + SQUARES)),
    }
}

impl Engine for Clcb {
    fn name(&self) -> &'static str {
        "clcb"
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        self.filters.check_room(id.0, subscription)?;
        if !self.slots.has_room(constraints_count(subscription)) {
            return Err(InstallError::Full { held: self.filters.count() as u64 });
        }
        self.remove(id);
        self.filters.enter(id.0, subscription)?;
        for index in 0..self.filters.roster.records(id.0).len() {
            self.place(self.filters.roster.records(id.0)[index]);
        }
        Ok(())
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        if !self.filters.roster.is_installed(id.0) {
            return false;
        }
        for index in 0..self.filters.roster.records(id.0).len() {
            self.displace(self.filters.roster.records(id.0)[index]);
        }
        self.filters.leave(id.0);
        true
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        self.filters.roster.set_position(client.0, position);
        let Self { filters, placed, moved, .. } = self;
        for number in filters.roster.records_of_client(client.0).filter(|number| filters.follows(*number)) {
            if placed[number].pending == Pending::Nothing {
                placed[number].pending = Pending::Move;
                moved.push(number);
            }
        }
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        self.flush().map_err(match_error)?;
        let mut found = MatchRows::new();
        for event in events {
            self.match_one(event, &mut found, None).map_err(match_error)?;
        }
        rows.append(&found);
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        Footprint {
            subscriptions: self.filters.roster.subscriptions_count(),
            filters: self.filters.count(),
            bytes: self.filters.bytes() + self.placed.bytes() + self.numbering.bytes() + self.device_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use matcher::engine::cells::Cells;
    use matcher::fixtures::workload::{Config, Workload};

    use super::*;

    #[test]
    fn runs_are_counted_anew_unnoticed() {
        let config = Config { subscriptions: 400, coverage: 0.02, selectivity: 0.015, ..Config::default() };
        let workload = Workload::new(config).unwrap();
        let mut clcb = Clcb::new(workload.world(), &Device::host(1 << 30)).unwrap();
        clcb.on_device.runner.set_run_before_the_last(10);
        let mut cells = Cells::new(workload.world());
        let mut rows = [MatchRows::new(), MatchRows::new()];
        let engines: [&mut dyn Engine; 2] = [&mut cells, &mut clcb];
        for (engine, rows) in engines.into_iter().zip(&mut rows) {
            for (id, subscription) in workload.subscriptions() {
                engine.move_client(
                    subscription.client,
                    Some(workload.position(workload.home(subscription.client))),
                );
                engine.install(id, &subscription).unwrap();
            }
            let events: Vec<Event> = (0..100).map(|index| workload.event(index)).collect();
            engine.match_batch(&events.iter().collect::<Vec<_>>(), rows).unwrap();
        }
        assert_eq!(rows[0], rows[1]);
        assert!(rows[0].pairs_count() > 20);
    }
}
