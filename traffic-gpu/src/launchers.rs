//! The launchers of `kernel_traffic.cu`.

use device::{Buffer, Device, DriverError, Parameter, Stream};
use kernels::traffic::{AHEAD, Arc, Car, Junction, KNOWN, Plan, ROUTE, Run, TABLE, Trip, Way};

/// Threads of a block.
const THREADS: u32 = 256;
/// Warps that look for ways at a time, each with scratch memory of its own.
const SEARCHERS: u32 = 4096;
/// Blocks of a grid, at most.
const BLOCKS_MAX: u32 = 1 << 20;

/// The kernels, compiled for a device.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    junctions: device::Kernel,
    plan: device::Kernel,
    go: device::Kernel,
    count: device::Kernel,
    weigh: device::Kernel,
    trips: device::Kernel,
    ways: device::Kernel,
}

/// A part of a step, or of the adaptation of weights and ways: a kernel each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Junctions,
    Plan,
    Move,
    Count,
    Weigh,
    Trips,
    Ways,
}

/// Traffic on a device.
#[derive(Debug)]
pub(crate) struct Arrays {
    pub(crate) first: Buffer<u32>,
    pub(crate) arcs: Buffer<Arc>,
    pub(crate) lanes: Buffer<u32>,
    pub(crate) junctions: Buffer<Junction>,
    pub(crate) asks: Buffer<u32>,
    pub(crate) claims: Buffer<u64>,
    pub(crate) tails: Buffer<u32>,
    pub(crate) cars: Buffer<Car>,
    pub(crate) ways: Buffer<Way>,
    pub(crate) plans: Buffer<Plan>,
    pub(crate) counts: Buffer<u32>,
    pub(crate) weights: Buffer<u32>,
    pub(crate) trips: Buffer<Trip>,
    pub(crate) routes: Buffer<u32>,
    pub(crate) ahead: Buffer<u32>,
    pub(crate) keys: Buffer<u64>,
    pub(crate) known: Buffer<u32>,
    pub(crate) run: Run,
}

/// How many trips look for their ways at a time on a device.
pub(crate) fn searchers(device: &Device, trips: u32) -> usize {
    // A host runs the threads of a grid one after another.
    if device.is_host() { 32 } else { trips.min(SEARCHERS) as usize }
}

impl Arrays {
    /// How many bytes of the device's memory they take.
    pub(crate) fn bytes(&self) -> u64 {
        fn of<T>(buffer: &Buffer<T>) -> usize {
            buffer.len() * size_of::<T>()
        }
        let words = [&self.first, &self.lanes, &self.asks, &self.tails, &self.counts, &self.weights];
        let trips = [&self.routes, &self.ahead, &self.known];
        let words = words.into_iter().chain(trips).map(of).sum::<usize>();
        let vehicles = of(&self.cars) + of(&self.ways) + of(&self.plans) + of(&self.trips);
        (words + vehicles + of(&self.arcs) + of(&self.junctions) + of(&self.claims) + of(&self.keys)) as u64
    }

    /// Holds arrays against their counts.
    fn check(&self) {
        let [nodes, arcs, vehicles, trips] =
            [self.run.nodes, self.run.arcs, self.run.vehicles, self.run.trips].map(|count| count as usize);
        assert!(
            self.first.len() > nodes && self.junctions.len() >= nodes && self.asks.len() >= nodes,
            "nodes"
        );
        assert!(self.arcs.len() >= arcs && self.lanes.len() > arcs, "arcs");
        assert!(self.counts.len() >= arcs && self.weights.len() >= arcs, "weights");
        assert!(self.claims.len() >= self.tails.len(), "lanes");
        assert!(self.cars.len() >= vehicles && self.ways.len() >= vehicles, "vehicles");
        assert!(self.plans.len() >= vehicles && self.run.stride > 0, "plans");
        assert!(self.trips.len() >= trips && self.routes.len() >= trips * ROUTE as usize, "trips");
        assert!(self.ahead.len() >= trips * AHEAD as usize, "ways ahead");
    }
}

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::TRAFFIC)?;
        Ok(Self {
            device: device.clone(),
            junctions: module.kernel("traffic_junctions")?,
            plan: module.kernel("traffic_plan")?,
            go: module.kernel("traffic_move")?,
            count: module.kernel("traffic_count")?,
            weigh: module.kernel("traffic_weigh")?,
            trips: module.kernel("traffic_trips")?,
            ways: module.kernel("traffic_ways")?,
        })
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn start(&self, stream: &Stream, part: Part, arrays: &Arrays) -> Result<(), DriverError> {
        arrays.check();
        let Arrays { run, .. } = arrays;
        let mut block = THREADS;
        let (kernel, count) = match part {
            Part::Junctions => (&self.junctions, run.nodes),
            Part::Plan => (&self.plan, run.vehicles),
            Part::Move => (&self.go, run.vehicles),
            Part::Count => (&self.count, run.vehicles),
            Part::Weigh => (&self.weigh, run.arcs),
            Part::Trips => (&self.trips, run.trips),
            Part::Ways => (&self.ways, run.trips),
        };
        // A host runs the threads of a grid one after another, and its warps have one lane.
        let mut grid = if self.device.is_host() { 1 } else { count.div_ceil(block).min(BLOCKS_MAX) };
        if part == Part::Ways {
            block = 32;
            let searchers = searchers(&self.device, run.trips);
            grid = if self.device.is_host() { 1 } else { u32::try_from(searchers).unwrap_or(0) };
            assert!(arrays.keys.len() >= searchers * KNOWN as usize, "keys");
            assert!(arrays.known.len() >= searchers * (3 * KNOWN + TABLE) as usize, "known nodes");
        }
        if count == 0 {
            return Ok(());
        }
        let mut parameters = [
            Parameter::buffer(&arrays.first),
            Parameter::buffer(&arrays.arcs),
            Parameter::buffer(&arrays.lanes),
            Parameter::buffer(&arrays.junctions),
            Parameter::buffer(&arrays.asks),
            Parameter::buffer(&arrays.claims),
            Parameter::buffer(&arrays.tails),
            Parameter::buffer(&arrays.cars),
            Parameter::buffer(&arrays.ways),
            Parameter::buffer(&arrays.plans),
            Parameter::buffer(&arrays.counts),
            Parameter::buffer(&arrays.weights),
            Parameter::buffer(&arrays.trips),
            Parameter::buffer(&arrays.routes),
            Parameter::buffer(&arrays.ahead),
            Parameter::buffer(&arrays.keys),
            Parameter::buffer(&arrays.known),
            Parameter::value(run),
        ];
        // SAFETY: the parameters are those of the kernel, in its order, and `check` holds all arrays against the counts; scratch memory was checked for as many
        // warps as the grid has. Arcs lead to nodes and lanes are counted from them, as `Roads` were packed; cars are on arcs and their ways lead on to arcs
        // or nowhere, as `Fleet::place` and the kernels have them; routes are arcs, as `trips::plan` found them, and no longer than `ROUTE`.
        unsafe { stream.launch(kernel, grid, block, &mut parameters) }
    }
}
