//! The launchers of `kernel_groups.cu` and `kernel_groups_letter.cu`.

use device::{Buffer, Device, DriverError, Graph, Kernel, Launch, Parameter, Stream};
use kernels::groups::{CHUNK, NE_HEAD, Task};

use crate::memory::Staged;

/// The kernels, compiled for a device.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    prepare: Kernel,
    round: Kernel,
    starts: Kernel,
    sums: Kernel,
    sums_before: Kernel,
    scan: Kernel,
    lengths: Kernel,
    nodes: Kernel,
    edges: Kernel,
    count: Kernel,
    domains: Kernel,
    delete: Kernel,
    clear: Kernel,
    delete_once: Kernel,
    decrement: Kernel,
}

/// A network for the rounds, and starts of it.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) variables: u32,
    /// Words of a start, without the one that tells how it went.
    pub(crate) words_count: u32,
    pub(crate) tasks_count: u32,
    pub(crate) tasks: Staged<Task>,
    /// Where the tasks of each y begin, and an end.
    pub(crate) tasks_at: Staged<u32>,
    pub(crate) rows: Staged<u64>,
    /// The words of a start that has all values that the network keeps at all.
    pub(crate) base: Staged<u64>,
    pub(crate) words_at: Staged<u32>,
    pub(crate) full: Staged<u32>,
    pub(crate) starts: Staged<u64>,
    pub(crate) sizes: Buffer<u32>,
    pub(crate) stamps: Buffer<u32>,
    pub(crate) work: Buffer<u32>,
}

/// Numbers of parts of the N-E model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) variables: u32,
    pub(crate) constraints: u32,
    pub(crate) words: u32,
    pub(crate) nodes: u32,
    pub(crate) edges: u32,
    pub(crate) slots: u32,
}

/// A network, and its N-E model with what the algorithms add.
#[derive(Debug)]
pub(crate) struct Arrays {
    pub(crate) sizes: Staged<u32>,
    pub(crate) words_at: Staged<u32>,
    pub(crate) scopes: Staged<u32>,
    pub(crate) rows_at: Staged<u32>,
    pub(crate) rows: Staged<u64>,
    pub(crate) left: Staged<u64>,
    pub(crate) edges_length: Buffer<u32>,
    pub(crate) slots_length: Buffer<u32>,
    pub(crate) sums: Buffer<u32>,
    pub(crate) nodes_at: Buffer<u32>,
    pub(crate) edges_at: Buffer<u32>,
    pub(crate) slots_at: Buffer<u32>,
    pub(crate) x: Staged<u32>,
    pub(crate) v: Staged<u32>,
    pub(crate) e: Staged<u32>,
    pub(crate) node0: Buffer<u32>,
    pub(crate) node1: Buffer<u32>,
    pub(crate) s: Buffer<u8>,
    pub(crate) m0: Buffer<u32>,
    pub(crate) m1: Buffer<u32>,
    pub(crate) slot_node: Buffer<u32>,
    pub(crate) slot_edge: Buffer<u32>,
    pub(crate) slot_stride: Buffer<u32>,
    pub(crate) slot_count: Buffer<u32>,
    pub(crate) counter: Buffer<u32>,
    pub(crate) domain: Buffer<u32>,
    pub(crate) head: Staged<u32>,
}

/// Threads of a block: of most kernels, of a round, and of many starts.
const BLOCK: u32 = 256;
const BLOCK_OF_ROUND: u32 = 128;
const BLOCK_OF_STARTS: u32 = 64;
/// Threads of a large grid: a large device is full with these.
const THREADS_MAX: u32 = 1 << 18;

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::GROUPS)?;
        let letter = device.module(&kernels::GROUPS_LETTER)?;
        Ok(Self {
            device: device.clone(),
            prepare: module.kernel("groups_prepare")?,
            round: module.kernel("groups_round")?,
            starts: module.kernel("groups_starts")?,
            sums: letter.kernel("groups_sums")?,
            sums_before: letter.kernel("groups_sums_before")?,
            scan: letter.kernel("groups_scan")?,
            lengths: letter.kernel("groups_lengths")?,
            nodes: letter.kernel("groups_nodes")?,
            edges: letter.kernel("groups_edges")?,
            count: letter.kernel("groups_count")?,
            domains: letter.kernel("groups_domains")?,
            delete: letter.kernel("groups_delete")?,
            clear: letter.kernel("groups_clear")?,
            delete_once: letter.kernel("groups_delete_once")?,
            decrement: letter.kernel("groups_decrement")?,
        })
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Blocks for so many threads.
    fn grid(&self, threads: u64, block: u32) -> u32 {
        // A host runs the threads of a grid one after another.
        let most = if self.device.is_host() { 1 } else { THREADS_MAX / block };
        u32::try_from(threads.div_ceil(block.into())).map_or(most, |grid| grid.clamp(1, most))
    }

    /// Starts a kernel of the paper's.
    fn start(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        threads: u64,
        list: &mut [Parameter<'_>],
    ) -> Result<(), DriverError> {
        // SAFETY: the callers below give the parameters of the kernel, in its order. `check` holds all arrays against the counts, which
        // the kernels stay below. Numbers of nodes, edges, slots and words among the arrays were written by `Letter::load` from a
        // network, and by the kernels before from those; scans have an entry more than there are lengths, for which `check` sees to
        // room.
        unsafe { stream.launch(kernel, self.grid(threads, BLOCK), BLOCK, list) }
    }

    /// Scans lengths, of which there are `count`.
    fn scan(
        &self,
        stream: &Stream,
        [lengths, sums, scan]: [&Buffer<u32>; 3],
        count: u32,
    ) -> Result<(), DriverError> {
        let chunks = count / CHUNK + 1;
        let [lengths, sums, scan] = [lengths, sums, scan].map(|buffer| move || Parameter::buffer(buffer));
        let warps = 32 * u64::from(chunks);
        self.start(stream, &self.sums, warps, &mut [lengths(), Parameter::value(&count), sums()])?;
        self.start(stream, &self.sums_before, 32, &mut [sums(), Parameter::value(&chunks)])?;
        self.start(stream, &self.scan, warps, &mut [lengths(), Parameter::value(&count), sums(), scan()])
    }

    /// Algorithm 2, `BuildNE`.
    pub(crate) fn build(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        let Counts { variables, constraints, slots, .. } = counts;
        let a = arrays;
        self.start(
            stream,
            &self.lengths,
            (*constraints).into(),
            &mut [
                Parameter::buffer(&a.scopes.buffer),
                Parameter::buffer(&a.sizes.buffer),
                Parameter::value(constraints),
                Parameter::buffer(&a.edges_length),
                Parameter::buffer(&a.slots_length),
            ],
        )?;
        self.scan(stream, [&a.edges_length, &a.sums, &a.edges_at], *constraints)?;
        self.scan(stream, [&a.slots_length, &a.sums, &a.slots_at], *constraints)?;
        self.scan(stream, [&a.sizes.buffer, &a.sums, &a.nodes_at], *variables)?;
        self.start(
            stream,
            &self.nodes,
            32 * u64::from(*variables),
            &mut [
                Parameter::buffer(&a.nodes_at),
                Parameter::buffer(&a.words_at.buffer),
                Parameter::buffer(&a.left.buffer),
                Parameter::value(variables),
                Parameter::buffer(&a.x.buffer),
                Parameter::buffer(&a.v.buffer),
                Parameter::buffer(&a.e.buffer),
            ],
        )?;
        self.start(
            stream,
            &self.edges,
            32 * u64::from(*slots),
            &mut [
                Parameter::buffer(&a.scopes.buffer),
                Parameter::buffer(&a.rows_at.buffer),
                Parameter::buffer(&a.rows.buffer),
                Parameter::buffer(&a.nodes_at),
                Parameter::buffer(&a.edges_at),
                Parameter::buffer(&a.slots_at),
                Parameter::value(constraints),
                Parameter::buffer(&a.e.buffer),
                Parameter::buffer(&a.node0),
                Parameter::buffer(&a.node1),
                Parameter::buffer(&a.s),
                Parameter::buffer(&a.m0),
                Parameter::buffer(&a.m1),
                Parameter::buffer(&a.slot_node),
                Parameter::buffer(&a.slot_edge),
                Parameter::buffer(&a.slot_stride),
                Parameter::buffer(&a.slot_count),
            ],
        )
    }

    /// Reduces the edges by the key of their counters.
    pub(crate) fn count(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.count,
            32 * u64::from(counts.slots),
            &mut [
                Parameter::buffer(&arrays.s),
                Parameter::buffer(&arrays.slot_edge),
                Parameter::buffer(&arrays.slot_stride),
                Parameter::buffer(&arrays.slot_count),
                Parameter::value(&counts.slots),
                Parameter::buffer(&arrays.counter),
            ],
        )
    }

    /// Reduces the nodes by their variable.
    pub(crate) fn domains(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.domains,
            32 * u64::from(counts.variables),
            &mut [
                Parameter::buffer(&arrays.e.buffer),
                Parameter::buffer(&arrays.nodes_at),
                Parameter::value(&counts.variables),
                Parameter::buffer(&arrays.domain),
                Parameter::buffer(&arrays.head.buffer),
            ],
        )
    }

    /// Deletes nodes in AC4GPU.
    pub(crate) fn delete(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.delete,
            counts.slots.into(),
            &mut [
                Parameter::buffer(&arrays.counter),
                Parameter::buffer(&arrays.slot_node),
                Parameter::value(&counts.slots),
                Parameter::buffer(&arrays.e.buffer),
                Parameter::buffer(&arrays.head.buffer),
            ],
        )
    }

    /// Clears edges in AC4GPU.
    pub(crate) fn clear(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.clear,
            counts.edges.into(),
            &mut [
                Parameter::buffer(&arrays.node0),
                Parameter::buffer(&arrays.node1),
                Parameter::buffer(&arrays.e.buffer),
                Parameter::value(&counts.edges),
                Parameter::buffer(&arrays.s),
            ],
        )
    }

    /// Deletes nodes in AC4GPU+.
    pub(crate) fn delete_once(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.delete_once,
            counts.slots.into(),
            &mut [
                Parameter::buffer(&arrays.counter),
                Parameter::buffer(&arrays.slot_node),
                Parameter::value(&counts.slots),
                Parameter::buffer(&arrays.x.buffer),
                Parameter::buffer(&arrays.e.buffer),
                Parameter::buffer(&arrays.domain),
                Parameter::buffer(&arrays.head.buffer),
            ],
        )
    }

    /// Takes edges from their counters in AC4GPU+.
    pub(crate) fn decrement(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(
            stream,
            &self.decrement,
            counts.edges.into(),
            &mut [
                Parameter::buffer(&arrays.node0),
                Parameter::buffer(&arrays.node1),
                Parameter::buffer(&arrays.m0),
                Parameter::buffer(&arrays.m1),
                Parameter::buffer(&arrays.e.buffer),
                Parameter::value(&counts.edges),
                Parameter::buffer(&arrays.s),
                Parameter::buffer(&arrays.counter),
                Parameter::buffer(&arrays.head.buffer),
            ],
        )
    }

    /// Round 1 and the rounds after it, as one piece of work.
    pub(crate) fn rounds(
        &self,
        stream: &Stream,
        graph: &mut Graph,
        tables: &Tables,
        rounds: &[u32],
    ) -> Result<(), DriverError> {
        check_start(tables, 1);
        let mut prepare = [
            Parameter::buffer(&tables.base.buffer),
            Parameter::buffer(&tables.words_at.buffer),
            Parameter::buffer(&tables.full.buffer),
            Parameter::value(&tables.variables),
            Parameter::buffer(&tables.starts.buffer),
            Parameter::buffer(&tables.sizes),
            Parameter::buffer(&tables.stamps),
        ];
        let mut lists: Vec<_> = rounds.iter().map(|round| round_parameters(tables, round)).collect();
        let mut launches = vec![Launch {
            kernel: &self.prepare,
            grid: self.grid(tables.variables.into(), BLOCK),
            block: BLOCK,
            parameters: &mut prepare,
        }];
        launches.extend(lists.iter_mut().map(|list| Launch {
            kernel: &self.round,
            grid: self.grid(tables.tasks_count.into(), BLOCK_OF_ROUND),
            block: BLOCK_OF_ROUND,
            parameters: list,
        }));
        // SAFETY: the parameters are those of `groups_prepare` and `groups_round`. `check_start` holds the tables against the counts; tasks
        // name variables, words and rows of the network, which `Bits::load` made them from.
        unsafe { stream.launch_all(graph, &mut launches) }
    }

    /// One more round.
    pub(crate) fn round(&self, stream: &Stream, tables: &Tables, round: u32) -> Result<(), DriverError> {
        check_start(tables, 1);
        let grid = self.grid(tables.tasks_count.into(), BLOCK_OF_ROUND);
        // SAFETY: as in `rounds`.
        unsafe { stream.launch(&self.round, grid, BLOCK_OF_ROUND, &mut round_parameters(tables, &round)) }
    }

    /// All rounds of many starts.
    pub(crate) fn starts(&self, stream: &Stream, tables: &Tables, count: u32) -> Result<(), DriverError> {
        check_start(tables, count as usize);
        let work = 1 + 3 * tables.variables as usize;
        assert!(tables.work.len() >= count as usize * work, "room for queues");
        assert!(tables.tasks_at.buffer.len() > tables.variables as usize, "an end of the tasks");
        // SAFETY: the parameters are those of `groups_starts`. As in `rounds`; a queue holds a variable once at a time, so that it has room.
        unsafe {
            stream.launch(
                &self.starts,
                self.grid(32 * u64::from(count), BLOCK_OF_STARTS),
                BLOCK_OF_STARTS,
                &mut [
                    Parameter::buffer(&tables.tasks.buffer),
                    Parameter::buffer(&tables.tasks_at.buffer),
                    Parameter::buffer(&tables.rows.buffer),
                    Parameter::buffer(&tables.base.buffer),
                    Parameter::buffer(&tables.words_at.buffer),
                    Parameter::buffer(&tables.full.buffer),
                    Parameter::value(&tables.variables),
                    Parameter::value(&tables.words_count),
                    Parameter::value(&count),
                    Parameter::buffer(&tables.starts.buffer),
                    Parameter::buffer(&tables.work),
                ],
            )
        }
    }
}

fn round_parameters<'a>(tables: &'a Tables, round: &'a u32) -> [Parameter<'a>; 8] {
    [
        Parameter::buffer(&tables.tasks.buffer),
        Parameter::value(&tables.tasks_count),
        Parameter::buffer(&tables.rows.buffer),
        Parameter::buffer(&tables.full.buffer),
        Parameter::buffer(&tables.starts.buffer),
        Parameter::buffer(&tables.sizes),
        Parameter::buffer(&tables.stamps),
        Parameter::value(round),
    ]
}

/// Holds the tables against their counts, and against so many starts.
fn check_start(tables: &Tables, starts: usize) {
    let [variables, words] = [tables.variables, tables.words_count].map(|count| count as usize);
    assert!(tables.tasks.buffer.len() >= tables.tasks_count as usize, "tasks");
    assert!(tables.words_at.buffer.len() > variables && tables.full.buffer.len() >= variables, "variables");
    assert!(tables.sizes.len() >= variables && tables.stamps.len() >= variables, "room for a start");
    assert!(tables.base.buffer.len() >= words, "the words of the network");
    assert!(tables.starts.buffer.len() >= starts * (1 + words), "room for starts");
}

/// Holds the arrays against the counts.
fn check(counts: &Counts, arrays: &Arrays) {
    let Counts { variables, constraints, words, nodes, edges, slots } = *counts;
    let [variables, constraints, words, nodes, edges, slots] =
        [variables, constraints, words, nodes, edges, slots].map(|count| count as usize);
    let a = arrays;
    assert!(a.sizes.buffer.len() >= variables && a.words_at.buffer.len() > variables, "variables");
    assert!(a.left.buffer.len() >= words && a.head.buffer.len() >= NE_HEAD, "a start");
    assert!(a.scopes.buffer.len() >= 2 * constraints && a.rows_at.buffer.len() >= constraints, "constraints");
    assert!(a.edges_length.len() >= constraints && a.slots_length.len() >= constraints, "room for lengths");
    assert!(a.nodes_at.len() > variables && a.domain.len() >= variables, "room for variables");
    assert!(a.edges_at.len() > constraints && a.slots_at.len() > constraints, "room for constraints");
    assert!(a.sums.len() > variables.max(constraints) / CHUNK as usize, "room for sums");
    for node in [&a.x, &a.v, &a.e] {
        assert!(node.buffer.len() >= nodes, "room for nodes");
    }
    for edge in [&a.node0, &a.node1, &a.m0, &a.m1] {
        assert!(edge.len() >= edges && a.s.len() >= edges, "room for edges");
    }
    for slot in [&a.slot_node, &a.slot_edge, &a.slot_stride, &a.slot_count, &a.counter] {
        assert!(slot.len() >= slots, "room for slots");
    }
}
