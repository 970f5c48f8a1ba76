//! `auto`: `cells` on the CPU and a device side by side. Both see every change; each batch goes to one of them. When the
//! device fails, `cells` answers that very batch and all that follow, so nothing is lost.
//!
//! An engine that is to have every batch ([`Auto::gpu`], [`Auto::clcb`]) has the same fallback to `cells`.
//!
//! A device that has failed is not taken again: an engine starts with one or goes on without. That holds for too little
//! memory as well. What was installed would be too much for it tomorrow, too, and to bring all filters back to a device takes
//! long enough that somebody should want it: a restart does it.

mod crossover;
mod report;

use std::mem::ManuallyDrop;
use std::time::Instant;

use matcher::engine::cells::Cells;
use matcher::engine::{Engine, Footprint, InstallError, MatchError, MatchRows};
use matcher::event::Event;
use matcher::geo::{Position, World};
use matcher::subscription::{ClientId, Subscription, SubscriptionId};

use crate::failure::match_error;
use crate::{Clcb, Gpu};
use crossover::{Crossover, Side};
use device::{Device, DriverError};
use report::Choice;
pub use report::Report;

/// Changes that a device has not seen, at most: then they are brought there, whichever side matches, since no batch
/// should have to wait for more.
const UNSEEN_MAX: usize = 1 << 14;

/// The engine.
///
/// Ids of clients and subscriptions should be small numbers: memory grows with the largest.
#[derive(Debug)]
pub struct Auto {
    cells: Cells,
    device: Option<OnDevice>,
    /// Decides where batches go; `None` where all go to the device.
    crossover: Option<Crossover>,
    /// Installs and removals since filters were last counted, and how many subscriptions there were then.
    changes: usize,
    counted: usize,
    report: Report,
}

/// A device's engine.
#[derive(Debug)]
struct OnDevice {
    engine: DeviceEngine,
    /// Changes since the device last had all of them.
    unseen: usize,
}

#[derive(Debug)]
enum DeviceEngine {
    Gpu(Box<Gpu>),
    Clcb(Box<Clcb>),
}

impl Auto {
    /// An empty engine over the devices that were found, or without one for the reason why none was: that, or none at
    /// all, or one that cannot be used, leaves `cells`. [`Auto::report`] says so.
    #[must_use]
    pub fn new(world: World, found: Result<&[Device], &DriverError>) -> Self {
        let engine = match found {
            Ok([]) => Err(DriverError::NoDevice),
            Ok(devices) => Gpu::new(world, devices).map(|gpu| (gpu, names(devices))),
            Err(error) => Err(error.clone()),
        };
        match engine {
            Ok((gpu, devices)) => {
                let choice = Choice::Measured { devices };
                Self::with(world, Some(DeviceEngine::Gpu(Box::new(gpu))), Some(Crossover::new()), choice)
            }
            Err(error) => {
                // Ordinary where there is no driver: the loader's words would sound like a failure.
                let is_ordinary = matches!(error, DriverError::NoDriver { .. });
                let reason =
                    if is_ordinary { "there is no NVIDIA driver here".to_owned() } else { error.to_string() };
                Self::with(world, None, None, Choice::Cells { reason })
            }
        }
    }

    /// An empty engine that has every batch matched by [`Gpu`] while that works.
    ///
    /// # Errors
    /// The errors of [`Gpu::new`].
    ///
    /// # Panics
    /// Without a device.
    pub fn gpu(world: World, devices: &[Device]) -> Result<Self, DriverError> {
        let engine = DeviceEngine::Gpu(Box::new(Gpu::new(world, devices)?));
        Ok(Self::with(world, Some(engine), None, Choice::Device { engine: "gpu", devices: names(devices) }))
    }

    /// An empty engine that has every batch matched by [`Clcb`] while that works.
    ///
    /// # Errors
    /// The errors of [`Clcb::new`].
    pub fn clcb(world: World, device: &Device) -> Result<Self, DriverError> {
        let engine = DeviceEngine::Clcb(Box::new(Clcb::new(world, device)?));
        let devices = device.name().to_owned();
        Ok(Self::with(world, Some(engine), None, Choice::Device { engine: "clcb", devices }))
    }

    fn with(
        world: World,
        device: Option<DeviceEngine>,
        crossover: Option<Crossover>,
        choice: Choice,
    ) -> Self {
        let device = device.map(|engine| OnDevice { engine, unseen: 0 });
        let report = Report::new(choice);
        Self { cells: Cells::new(world), device, crossover, changes: 0, counted: 0, report }
    }

    /// Which engine matches and why, now and later on.
    #[must_use]
    pub fn report(&self) -> Report {
        self.report.clone()
    }

    /// Where a batch goes.
    fn side(&self, events: usize) -> Side {
        match (&self.device, &self.crossover) {
            (None, _) => Side::Cells,
            (Some(_), None) => Side::Device,
            (Some(_), Some(crossover)) => crossover.side(events),
        }
    }

    /// Lets the device match, unless it fails.
    fn match_on_device(&mut self, events: &[&Event], rows: &mut MatchRows) -> bool {
        let Some(device) = &mut self.device else { return false };
        let matched = device.engine.as_engine().match_batch(events, rows);
        matched.map_err(|error| self.give_up(error)).is_ok()
    }

    /// Looks whether the number of filters has changed so far that the measurements are old. Counting takes time, so it
    /// is done when about half as many subscriptions have changed as there are.
    fn note_change(&mut self) {
        self.changes += 1;
        if let Some(crossover) = &mut self.crossover
            && self.changes > self.counted / 2
        {
            let Footprint { subscriptions, filters, .. } = self.cells.footprint();
            (self.changes, self.counted) = (0, subscriptions);
            crossover.load(filters);
        }
        self.note_unseen();
    }

    /// Brings changes to the device when there are many that it has not seen.
    fn note_unseen(&mut self) {
        let Some(device) = &mut self.device else { return };
        device.unseen += 1;
        if device.unseen >= UNSEEN_MAX {
            self.send_unseen();
        }
    }

    /// Sends the device all changes that it has not seen, without a wait.
    fn send_unseen(&mut self) {
        let Some(device) = &mut self.device else { return };
        device.unseen = 0;
        if let Err(error) = device.engine.send_changes() {
            self.give_up(match_error(error));
        }
    }

    /// Goes on without the device, and says so.
    fn give_up(&mut self, error: MatchError) {
        let why = match error {
            MatchError::DeviceLost(cause) => format!("{cause}; a restart takes it again"),
            MatchError::OutOfMemory(cause) => {
                format!("{cause}; a restart with fewer filters, or with more memory, takes it again")
            }
        };
        self.give_up_because(why);
    }

    fn give_up_because(&mut self, why: String) {
        let Some(OnDevice { engine, .. }) = self.device.take() else { return };
        tracing::warn!(
            devices = self.report.devices(),
            why,
            "the GPU engine failed; cells on the CPU goes on alone, nothing is lost"
        );
        self.crossover = None;
        self.report.fail(why);
        dispose(engine);
    }
}

impl Engine for Auto {
    fn name(&self) -> &'static str {
        self.report.engine()
    }

    fn install(&mut self, id: SubscriptionId, subscription: &Subscription) -> Result<(), InstallError> {
        let installed = self.cells.install(id, subscription);
        if let Some(device) = &mut self.device {
            // `cells` decides what is there. Should one of them be full, the device's engine holds something else.
            let followed =
                installed.clone().and_then(|()| device.engine.as_engine().install(id, subscription));
            if let Err(error) = followed {
                self.give_up_because(format!("{error}; a restart with fewer filters takes it again"));
            }
        }
        self.note_change();
        installed
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let removed = self.cells.remove(id);
        if let Some(device) = &mut self.device {
            device.engine.as_engine().remove(id);
        }
        self.note_change();
        removed
    }

    fn move_client(&mut self, client: ClientId, position: Option<Position>) {
        self.cells.move_client(client, position);
        if let Some(device) = &mut self.device {
            device.engine.as_engine().move_client(client, position);
        }
        self.note_unseen();
    }

    fn match_batch(&mut self, events: &[&Event], rows: &mut MatchRows) -> Result<(), MatchError> {
        if events.is_empty() {
            return Ok(());
        }
        let side = self.side(events.len());
        if side == Side::Device {
            // Before the clock starts: `cells` was charged for its changes when they came, too.
            self.send_unseen();
        }
        let started = Instant::now();
        if side == Side::Cells || !self.match_on_device(events, rows) {
            self.cells.match_batch(events, rows)?;
            self.report.count(Side::Cells, events.len());
        } else {
            self.report.count(Side::Device, events.len());
        }
        if let Some(crossover) = &mut self.crossover {
            crossover.record(side, events.len(), started.elapsed());
            self.report.set_device_from(crossover.device_from());
        }
        Ok(())
    }

    fn footprint(&self) -> Footprint {
        let held = self.cells.footprint();
        let on_device = self.device.as_ref().map_or(0, |device| match &device.engine {
            DeviceEngine::Gpu(gpu) => gpu.footprint().bytes,
            DeviceEngine::Clcb(clcb) => clcb.footprint().bytes,
        });
        Footprint { bytes: held.bytes + on_device, ..held }
    }
}

impl DeviceEngine {
    fn as_engine(&mut self) -> &mut dyn Engine {
        match self {
            Self::Gpu(gpu) => &mut **gpu,
            Self::Clcb(clcb) => &mut **clcb,
        }
    }

    fn send_changes(&mut self) -> Result<(), DriverError> {
        match self {
            Self::Gpu(gpu) => gpu.flush(0),
            Self::Clcb(clcb) => clcb.flush(),
        }
    }
}

/// Frees what an engine has, on a thread of its own: that waits for the device, and one that has failed may never answer.
/// Nobody waits for the thread; the end of the process ends it.
fn dispose(engine: DeviceEngine) {
    let engine = ManuallyDrop::new(engine);
    let thread = std::thread::Builder::new().name("gpu-disposal".to_owned());
    // Without a thread it is left as it is rather than waited for.
    let _ = thread.spawn(move || drop(ManuallyDrop::into_inner(engine)));
}

/// Names of devices, for a sentence.
fn names(devices: &[Device]) -> String {
    let mut names: Vec<&str> = devices.iter().map(Device::name).collect();
    names.dedup();
    match (names.as_slice(), devices.len()) {
        ([only], 2..) => format!("{} x {only}", devices.len()),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests;
