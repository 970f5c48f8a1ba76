//! The launchers of `kernel_routes.cu`.

use device::{Buffer, Device, DriverError, Parameter, Staged, Stream};
use kernels::routes::{BLOCK, Query, State};

use crate::evaluator::Kernel;

/// The kernels, compiled for a device.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    initialise: device::Kernel,
    relax: device::Kernel,
    update: device::Kernel,
    block_minimum: device::Kernel,
    minimum: device::Kernel,
    rounds: device::Kernel,
}

/// Threads of a large grid: a large device is full with these.
const THREADS_MAX: u32 = 1 << 18;

/// Threads of a block where warps work by themselves, and most of a team.
const THREADS: u32 = 256;

/// Warps of a team, at most.
pub(crate) const WARPS_MAX: u32 = THREADS / 32;

/// Graphs on the device.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) nodes: usize,
    pub(crate) arcs: usize,
    pub(crate) first: Staged<u32>,
    pub(crate) heads: Staged<u32>,
    pub(crate) weights: Staged<u64>,
    pub(crate) landmarks: Staged<u64>,
}

/// Queries on the device, with the stretches that they have.
#[derive(Debug)]
pub(crate) struct Arrays {
    pub(crate) count: u32,
    pub(crate) blocks: u32,
    /// Blocks of the query that has most.
    pub(crate) blocks_max: u32,
    pub(crate) queries: Staged<Query>,
    pub(crate) block_queries: Staged<u32>,
    pub(crate) states: Staged<State>,
    pub(crate) costs: Buffer<u64>,
    pub(crate) updating: Buffer<u64>,
    pub(crate) keys: Buffer<u64>,
    pub(crate) frontier: Buffer<u8>,
    pub(crate) settled: Buffer<u8>,
    pub(crate) minima: Buffer<u64>,
    pub(crate) touched: Buffer<u32>,
}

/// Bytes that a block of a query takes in [`Arrays`].
pub(crate) const BLOCK_BYTES: usize = BLOCK as usize * (3 * size_of::<u64>() + 2) + 16;

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::ROUTES)?;
        Ok(Self {
            device: device.clone(),
            initialise: module.kernel("routes_initialise")?,
            relax: module.kernel("routes_relax")?,
            update: module.kernel("routes_update")?,
            block_minimum: module.kernel("routes_block_minimum")?,
            minimum: module.kernel("routes_minimum")?,
            rounds: module.kernel("routes_rounds")?,
        })
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Starts a kernel over all queries; `rounds_max`, and how many warps have a query, are for [`Kernel::Rounds`] alone.
    pub(crate) fn start(
        &self,
        stream: &Stream,
        kernel: Kernel,
        tables: &Tables,
        arrays: &Arrays,
        (rounds_max, warps): (u32, Option<u32>),
    ) -> Result<(), DriverError> {
        check(tables, arrays);
        let mut parameters = vec![
            Parameter::buffer(&tables.first.buffer),
            Parameter::buffer(&tables.heads.buffer),
            Parameter::buffer(&tables.weights.buffer),
            Parameter::buffer(&tables.landmarks.buffer),
            Parameter::buffer(&arrays.queries.buffer),
            Parameter::buffer(&arrays.block_queries.buffer),
            Parameter::buffer(&arrays.states.buffer),
            Parameter::buffer(&arrays.costs),
            Parameter::buffer(&arrays.updating),
            Parameter::buffer(&arrays.keys),
            Parameter::buffer(&arrays.frontier),
            Parameter::buffer(&arrays.settled),
            Parameter::buffer(&arrays.minima),
            Parameter::buffer(&arrays.touched),
        ];
        let (by_block, by_query) = (&arrays.blocks, &arrays.count);
        let (function, count) = match kernel {
            Kernel::Initialise => (&self.initialise, by_block),
            Kernel::Relax => (&self.relax, by_block),
            Kernel::Update => (&self.update, by_block),
            Kernel::BlockMinimum => (&self.block_minimum, by_block),
            Kernel::Minimum => (&self.minimum, by_query),
            Kernel::Rounds => (&self.rounds, by_query),
        };
        parameters.push(Parameter::value(count));
        let (threads, block) = if kernel == Kernel::Rounds {
            parameters.push(Parameter::value(&rounds_max));
            // No more warps than the largest query has blocks.
            let most = arrays.blocks_max.next_power_of_two().min(WARPS_MAX);
            let team = 32 * warps.map_or(most, |warps| warps.clamp(1, most));
            (u64::from(*count) * u64::from(team), team)
        } else {
            (u64::from(*count) * 32, THREADS)
        };
        // A host runs the threads of a grid one after another.
        let most = if self.device.is_host() { 1 } else { THREADS_MAX / block };
        let grid = u32::try_from(threads.div_ceil(block.into())).map_or(most, |grid| grid.clamp(1, most));
        // SAFETY: the parameters are those of the kernel, in its order: `ROUTES_PARAMETERS`, then the count, and for `routes_rounds` the rounds.
        // `check` holds all arrays against the counts. Queries were written by `Pack::fill`: their blocks are below `blocks`, each has its query's
        // number, and graph, ends and landmarks are those of graphs that `Searcher::load` wrote, whose heads are nodes.
        unsafe { stream.launch(function, grid, block, &mut parameters) }
    }
}

/// Holds tables and arrays against their counts.
fn check(tables: &Tables, arrays: &Arrays) {
    let [count, blocks] = [arrays.count, arrays.blocks].map(|count| count as usize);
    let elements = blocks * BLOCK as usize;
    assert!(tables.first.buffer.len() >= tables.nodes, "vertices");
    assert!(tables.heads.buffer.len() >= tables.arcs && tables.weights.buffer.len() >= tables.arcs, "edges");
    assert!(arrays.queries.buffer.len() >= count && arrays.states.buffer.len() >= count, "queries");
    assert!(arrays.block_queries.buffer.len() >= blocks, "blocks");
    assert!(arrays.minima.len() >= blocks && arrays.touched.len() >= blocks, "blocks");
    for costs in [&arrays.costs, &arrays.updating, &arrays.keys] {
        assert!(costs.len() >= elements, "elements");
    }
    assert!(arrays.frontier.len() >= elements && arrays.settled.len() >= elements, "masks");
}
