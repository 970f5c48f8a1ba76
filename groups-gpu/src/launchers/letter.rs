//! The launchers of `kernel_groups_letter.cu`.

use device::{Buffer, DriverError, Graph, Kernel, Launch, Parameter, Staged, Stream};
use kernels::groups::{CHUNK, NE_HEAD, NE_LOOPS, NE_NO_LOOP};

use super::Kernels;
use crate::letter::Method;

/// Threads of a block.
const BLOCK: u32 = 256;

/// The loops that are started together, as parameters.
static LOOPS: [u32; NE_LOOPS] = {
    let mut loops = [0; NE_LOOPS];
    let mut at = 1;
    while at < NE_LOOPS {
        loops[at] = loops[at - 1] + 1;
        at += 1;
    }
    loops
};

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

/// Loops that are started together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Whether they are the first of a run.
    pub(crate) is_first: bool,
    pub(crate) loops: usize,
}

/// A launch that is not started yet.
struct Step<'a> {
    kernel: &'a Kernel,
    threads: u64,
    parameters: Vec<Parameter<'a>>,
}

impl Kernels {
    /// Starts a kernel.
    fn start(&self, stream: &Stream, step: Step<'_>) -> Result<(), DriverError> {
        let Step { kernel, threads, mut parameters } = step;
        // SAFETY: the methods below give the parameters of the kernel, in its order. `check` holds all arrays against the counts, which
        // the kernels stay below. Numbers of nodes, edges, slots and words among the arrays were written by `Letter::load` from a
        // network, and by the kernels before from those; scans have an entry more than there are lengths, for which `check` sees to
        // room; loops are below `NE_LOOPS`.
        unsafe { stream.launch(kernel, self.grid(threads, BLOCK), BLOCK, &mut parameters) }
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
        let count = || Parameter::value(&count);
        let step = |kernel, threads, parameters| Step { kernel, threads, parameters };
        self.start(stream, step(&self.sums, warps, vec![lengths(), count(), sums()]))?;
        self.start(stream, step(&self.sums_before, 32, vec![sums(), Parameter::value(&chunks)]))?;
        self.start(stream, step(&self.scan, warps, vec![lengths(), count(), sums(), scan()]))
    }

    /// Algorithm 2, `BuildNE`.
    pub(crate) fn build(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        let Counts { variables, constraints, slots, .. } = counts;
        let a = arrays;
        self.start(
            stream,
            Step {
                kernel: &self.lengths,
                threads: (*constraints).into(),
                parameters: vec![
                    Parameter::buffer(&a.scopes.buffer),
                    Parameter::buffer(&a.sizes.buffer),
                    Parameter::value(constraints),
                    Parameter::buffer(&a.edges_length),
                    Parameter::buffer(&a.slots_length),
                ],
            },
        )?;
        self.scan(stream, [&a.edges_length, &a.sums, &a.edges_at], *constraints)?;
        self.scan(stream, [&a.slots_length, &a.sums, &a.slots_at], *constraints)?;
        self.scan(stream, [&a.sizes.buffer, &a.sums, &a.nodes_at], *variables)?;
        self.start(
            stream,
            Step {
                kernel: &self.nodes,
                threads: 32 * u64::from(*variables),
                parameters: vec![
                    Parameter::buffer(&a.nodes_at),
                    Parameter::buffer(&a.words_at.buffer),
                    Parameter::buffer(&a.left.buffer),
                    Parameter::value(variables),
                    Parameter::buffer(&a.x.buffer),
                    Parameter::buffer(&a.v.buffer),
                    Parameter::buffer(&a.e.buffer),
                ],
            },
        )?;
        self.start(
            stream,
            Step {
                kernel: &self.edges,
                threads: 32 * u64::from(*slots),
                parameters: vec![
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
            },
        )
    }

    /// Reduces the edges by the key of their counters.
    pub(crate) fn count(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(stream, self.count_step(counts, arrays))
    }

    /// Reduces the nodes by their variable, before all loops or in the one that the host waits for.
    pub(crate) fn domains(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
        is_before: bool,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        let number = if is_before { &NE_NO_LOOP } else { &LOOPS[0] };
        self.start(stream, self.domains_step(counts, arrays, number))
    }

    /// Deletes nodes in AC4GPU.
    pub(crate) fn delete(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(stream, self.delete_step(counts, arrays))
    }

    /// Clears edges in AC4GPU.
    pub(crate) fn clear(&self, stream: &Stream, counts: &Counts, arrays: &Arrays) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(stream, self.clear_step(counts, arrays))
    }

    /// Deletes nodes in AC4GPU+, in the loop that the host waits for.
    pub(crate) fn delete_once(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(stream, self.delete_once_step(counts, arrays, &LOOPS[0]))
    }

    /// Takes edges from their counters in AC4GPU+, in the loop that the host waited for.
    pub(crate) fn decrement(
        &self,
        stream: &Stream,
        counts: &Counts,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        self.start(stream, self.decrement_step(counts, arrays, &LOOPS[0]))
    }

    /// Loops of an algorithm as one piece of work; those that have nothing to do end at once.
    pub(crate) fn loops(
        &self,
        stream: &Stream,
        graph: &mut Graph,
        (counts, arrays): (&Counts, &Arrays),
        method: Method,
        batch: Batch,
    ) -> Result<(), DriverError> {
        check(counts, arrays);
        let mut steps = Vec::new();
        if batch.is_first {
            if method == Method::Ac4GpuPlus {
                steps.push(self.count_step(counts, arrays));
            }
            steps.push(self.domains_step(counts, arrays, &NE_NO_LOOP));
        }
        for number in &LOOPS[..batch.loops] {
            steps.extend(match method {
                Method::Ac4Gpu => [
                    self.count_delete_step(counts, arrays, number),
                    self.clear_domains_step(counts, arrays, number),
                ],
                Method::Ac4GpuPlus => [
                    self.delete_once_step(counts, arrays, number),
                    self.decrement_step(counts, arrays, number),
                ],
            });
        }
        let mut launches: Vec<_> = steps
            .iter_mut()
            .map(|Step { kernel, threads, parameters }| Launch {
                kernel,
                grid: self.grid(*threads, BLOCK),
                block: BLOCK,
                parameters,
            })
            .collect();
        // SAFETY: as in `start`.
        unsafe { stream.launch_all(graph, &mut launches) }
    }

    /// The launch of `groups_count`.
    fn count_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays) -> Step<'a> {
        Step {
            kernel: &self.count,
            threads: 32 * u64::from(counts.slots),
            parameters: vec![
                Parameter::buffer(&a.s),
                Parameter::buffer(&a.slot_edge),
                Parameter::buffer(&a.slot_stride),
                Parameter::buffer(&a.slot_count),
                Parameter::value(&counts.slots),
                Parameter::buffer(&a.counter),
            ],
        }
    }

    /// The launch of `groups_domains`.
    fn domains_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays, number: &'a u32) -> Step<'a> {
        Step {
            kernel: &self.domains,
            threads: 32 * u64::from(counts.variables),
            parameters: vec![
                Parameter::buffer(&a.e.buffer),
                Parameter::buffer(&a.nodes_at),
                Parameter::value(&counts.variables),
                Parameter::buffer(&a.domain),
                Parameter::buffer(&a.head.buffer),
                Parameter::value(number),
            ],
        }
    }

    /// The launch of `groups_delete`.
    fn delete_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays) -> Step<'a> {
        Step {
            kernel: &self.delete,
            threads: counts.slots.into(),
            parameters: vec![
                Parameter::buffer(&a.counter),
                Parameter::buffer(&a.slot_node),
                Parameter::value(&counts.slots),
                Parameter::buffer(&a.e.buffer),
            ],
        }
    }

    /// The launch of `groups_clear`.
    fn clear_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays) -> Step<'a> {
        Step {
            kernel: &self.clear,
            threads: counts.edges.into(),
            parameters: vec![
                Parameter::buffer(&a.node0),
                Parameter::buffer(&a.node1),
                Parameter::buffer(&a.e.buffer),
                Parameter::value(&counts.edges),
                Parameter::buffer(&a.s),
            ],
        }
    }

    /// The launch of `groups_count_delete`.
    fn count_delete_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays, number: &'a u32) -> Step<'a> {
        Step {
            kernel: &self.count_delete,
            threads: 32 * u64::from(counts.slots),
            parameters: vec![
                Parameter::buffer(&a.s),
                Parameter::buffer(&a.slot_edge),
                Parameter::buffer(&a.slot_stride),
                Parameter::buffer(&a.slot_count),
                Parameter::value(&counts.slots),
                Parameter::buffer(&a.counter),
                Parameter::buffer(&a.slot_node),
                Parameter::buffer(&a.e.buffer),
                Parameter::buffer(&a.head.buffer),
                Parameter::value(number),
            ],
        }
    }

    /// The launch of `groups_clear_domains`.
    fn clear_domains_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays, number: &'a u32) -> Step<'a> {
        Step {
            kernel: &self.clear_domains,
            threads: u64::from(counts.edges).max(32 * u64::from(counts.variables)),
            parameters: vec![
                Parameter::buffer(&a.node0),
                Parameter::buffer(&a.node1),
                Parameter::buffer(&a.e.buffer),
                Parameter::value(&counts.edges),
                Parameter::buffer(&a.s),
                Parameter::buffer(&a.nodes_at),
                Parameter::value(&counts.variables),
                Parameter::buffer(&a.domain),
                Parameter::buffer(&a.head.buffer),
                Parameter::value(number),
            ],
        }
    }

    /// The launch of `groups_delete_once`.
    fn delete_once_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays, number: &'a u32) -> Step<'a> {
        Step {
            kernel: &self.delete_once,
            threads: counts.slots.into(),
            parameters: vec![
                Parameter::buffer(&a.counter),
                Parameter::buffer(&a.slot_node),
                Parameter::value(&counts.slots),
                Parameter::buffer(&a.x.buffer),
                Parameter::buffer(&a.e.buffer),
                Parameter::buffer(&a.domain),
                Parameter::buffer(&a.head.buffer),
                Parameter::value(number),
            ],
        }
    }

    /// The launch of `groups_decrement`.
    fn decrement_step<'a>(&'a self, counts: &'a Counts, a: &'a Arrays, number: &'a u32) -> Step<'a> {
        Step {
            kernel: &self.decrement,
            threads: counts.edges.into(),
            parameters: vec![
                Parameter::buffer(&a.node0),
                Parameter::buffer(&a.node1),
                Parameter::buffer(&a.m0),
                Parameter::buffer(&a.m1),
                Parameter::buffer(&a.e.buffer),
                Parameter::value(&counts.edges),
                Parameter::buffer(&a.s),
                Parameter::buffer(&a.counter),
                Parameter::buffer(&a.head.buffer),
                Parameter::value(number),
            ],
        }
    }
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
