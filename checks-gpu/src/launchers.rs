//! The launchers of `kernel_checks.cu` and `kernel_checks_joined.cu`.

use std::num::NonZeroU32;

use device::{Buffer, Device, DriverError, Kernel, Parameter, Stream};
use kernels::checks::{Change, DEPTH, Decision, HEAD, Layout, Unit};
use kernels::checks_joined::{self as joined, JOINED_ENTRIES};

use crate::compile::u32_of;
use crate::joined::Memory as Joined;
use crate::memory::Memory;

/// Blocks of a launch of which it is not known how much it has to do.
const BLOCKS: u32 = 2_048;

/// The kernels, compiled for a device. All checks share them.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    update: Kernel,
    truth: Kernel,
    decide: Kernel,
    links: Kernel,
    joined: JoinedKernels,
    block: u32,
}

/// Kernels of batches.
#[derive(Clone, Debug)]
struct JoinedKernels {
    events: Kernel,
    count: Kernel,
    begin: Kernel,
    fill: Kernel,
    scan: Kernel,
    probe: Kernel,
    decide: Kernel,
    truth: Kernel,
    links: Kernel,
}

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::CHECKS)?;
        let batches = device.module(&kernels::CHECKS_JOINED)?;
        let joined = JoinedKernels {
            events: batches.kernel("checks_joined_events")?,
            count: batches.kernel("checks_joined_count")?,
            begin: batches.kernel("checks_joined_begin")?,
            fill: batches.kernel("checks_joined_fill")?,
            scan: batches.kernel("checks_joined_scan")?,
            probe: batches.kernel("checks_joined_probe")?,
            decide: batches.kernel("checks_joined_decide")?,
            truth: batches.kernel("checks_joined_truth")?,
            links: batches.kernel("checks_joined_links")?,
        };
        Ok(Self {
            joined,
            device: device.clone(),
            update: module.kernel("checks_update")?,
            truth: module.kernel("checks_truth")?,
            decide: module.kernel("checks_decide")?,
            links: module.kernel("checks_links")?,
            block: 64,
        })
    }

    /// The device that they are for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// These kernels with another number of threads a block.
    pub(crate) fn by(&self, block: NonZeroU32) -> Self {
        Self { block: block.get().clamp(32, 1_024).next_multiple_of(32), ..self.clone() }
    }

    fn grid(&self, threads: usize) -> u32 {
        u32::try_from(threads.div_ceil(self.block as usize)).expect("a tree has fewer nodes")
    }

    /// Writes changes into the members of sets.
    pub(crate) fn update(
        &self,
        stream: &Stream,
        changes: &Buffer<Change>,
        count: u32,
        sets: u32,
        capacity: u32,
        members: &Buffer<u32>,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= changes.len(), "more changes than were sent");
        assert!(sets as usize * capacity as usize <= members.len(), "more sets than there is room for");
        // SAFETY: the parameters are those of `checks_update`; changes name sets below `sets` and places below `capacity`, which
        // `Members` holds them to.
        unsafe {
            stream.launch(
                &self.update,
                self.grid(sets as usize),
                self.block,
                &mut [
                    Parameter::buffer(changes),
                    Parameter::value(&count),
                    Parameter::value(&sets),
                    Parameter::value(&capacity),
                    Parameter::buffer(members),
                ],
            )
        }
    }

    /// Truths of a unit's nodes.
    pub(crate) fn truth(&self, memory: &Memory, unit: &Unit, layout: &Layout) -> Result<(), DriverError> {
        check(memory, unit, layout);
        assert!(layout.doubts_max as usize <= memory.doubts.len(), "room for doubts");
        let threads = unit.copies as usize * layout.together as usize;
        // SAFETY: the parameters are those of `checks_truth`. Places are below the size of the tree, for which there is room; slots and
        // columns were written by the engine; code was made by `Leaves`, which bounds its stacks.
        unsafe {
            memory.stream.launch(
                &self.truth,
                self.grid(threads),
                self.block,
                &mut [
                    Parameter::value(unit),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.events),
                    Parameter::buffer(&memory.cells),
                    Parameter::buffer(&memory.members),
                    Parameter::buffer(&memory.truths),
                    Parameter::buffer(&memory.doubts),
                    Parameter::buffer(&memory.head),
                ],
            )
        }
    }

    /// Writes decisions over truths.
    pub(crate) fn decide(
        &self,
        stream: &Stream,
        decisions: &Buffer<Decision>,
        count: u32,
        truths: &Buffer<u8>,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= decisions.len(), "more decisions than were sent");
        // SAFETY: the parameters are those of `checks_decide`; decisions are of places that `Tree::place` told, within the tree.
        unsafe {
            stream.launch(
                &self.decide,
                self.grid(count as usize),
                self.block,
                &mut [Parameter::buffer(decisions), Parameter::value(&count), Parameter::buffer(truths)],
            )
        }
    }

    /// Links of a unit's nodes.
    pub(crate) fn links(&self, memory: &Memory, unit: &Unit, layout: &Layout) -> Result<(), DriverError> {
        check(memory, unit, layout);
        assert!(
            layout.room as usize * layout.variables as usize <= memory.links.len(),
            "room for as many links as is said"
        );
        let threads = unit.copies as usize * layout.together as usize;
        // SAFETY: the parameters are those of `checks_links`. As for `truth`; the kernel writes no link past `room`, and reads those that
        // entries of the index name, which it wrote in this evaluation.
        unsafe {
            memory.stream.launch(
                &self.links,
                self.grid(threads),
                self.block,
                &mut [
                    Parameter::value(unit),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.members),
                    Parameter::buffer(&memory.truths),
                    Parameter::buffer(&memory.index),
                    Parameter::buffer(&memory.links),
                    Parameter::buffer(&memory.head),
                ],
            )
        }
    }

    /// Puts rows of events in their places.
    pub(crate) fn joined_events(
        &self,
        memory: &Joined,
        rows: usize,
        columns: usize,
        keys: usize,
    ) -> Result<(), DriverError> {
        let width = 7 + 2 * columns + keys;
        assert!(rows * width <= memory.rows.len(), "as many rows as were sent");
        let mut layout = joined::Layout { keys: u32_of(keys), ..joined::Layout::default() };
        layout.leaves.columns = u32_of(columns);
        // SAFETY: the parameters are those of `checks_joined_events`. Each row begins with a slot for which the engine made room.
        unsafe {
            memory.stream.launch(
                &self.joined.events,
                self.grid(rows * width),
                self.block,
                &mut [
                    Parameter::buffer(&memory.rows),
                    Parameter::value(&u32_of(rows)),
                    Parameter::value(&layout),
                    Parameter::buffer(&memory.events),
                    Parameter::buffer(&memory.cells),
                    Parameter::buffer(&memory.keys),
                ],
            )
        }
    }

    /// Puts members of a set into the buckets of an index, which are empty.
    pub(crate) fn joined_index(
        &self,
        memory: &Joined,
        index: u32,
        (begin, count): (u32, u32),
        layout: &joined::Layout,
    ) -> Result<(), DriverError> {
        let indices = index as usize + 1;
        assert!((begin + count) as usize <= memory.members.len(), "members that were sent");
        assert!(2 * indices * layout.buckets as usize <= memory.buckets.len(), "room for buckets");
        assert!(
            layout.buckets.is_power_of_two() && indices <= memory.cursors.len(),
            "an index that is there"
        );
        assert!(indices * layout.items as usize <= memory.items.len(), "room for items");
        assert!(count as usize * joined::JOINED_KEYS <= layout.items as usize, "room for all of its items");
        // SAFETY: the parameters are those of `checks_joined_count`. Members name slots that have a row of keys, of which at most
        // `JOINED_KEYS` are of an index.
        unsafe {
            memory.stream.launch(
                &self.joined.count,
                self.grid(count as usize),
                self.block,
                &mut [
                    Parameter::value(&index),
                    Parameter::value(&begin),
                    Parameter::value(&count),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.members),
                    Parameter::buffer(&memory.keys),
                    Parameter::buffer(&memory.buckets),
                ],
            )
        }?;
        // SAFETY: the parameters are those of `checks_joined_begin`, which looks at the buckets of the index alone.
        unsafe {
            memory.stream.launch(
                &self.joined.begin,
                self.grid(layout.buckets as usize),
                self.block,
                &mut [
                    Parameter::value(&index),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.buckets),
                    Parameter::buffer(&memory.cursors),
                ],
            )
        }?;
        // SAFETY: the parameters are those of `checks_joined_fill`. As for counting; what was counted has its room.
        unsafe {
            memory.stream.launch(
                &self.joined.fill,
                self.grid(count as usize),
                self.block,
                &mut [
                    Parameter::value(&index),
                    Parameter::value(&begin),
                    Parameter::value(&count),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.members),
                    Parameter::buffer(&memory.keys),
                    Parameter::buffer(&memory.buckets),
                    Parameter::buffer(&memory.items),
                ],
            )
        }
    }

    /// Makes the entries of a node: from an index, or from all of its set.
    pub(crate) fn joined_entries(
        &self,
        memory: &Joined,
        node: &joined::Node,
        layout: &joined::Layout,
        joins: bool,
    ) -> Result<(), DriverError> {
        check_node(memory, node, layout);
        assert!(
            (node.members_begin + node.members_count) as usize <= memory.members.len(),
            "members that were sent"
        );
        assert!(layout.leaves.doubts_max as usize <= memory.doubts.len(), "room for doubts");
        let is_outermost = node.around_count == 1;
        // On the host threads are run one after another, and each loops over what there is.
        let grid = match memory.device.is_host() {
            true => 1,
            false if is_outermost => self.grid(node.members_count as usize).clamp(1, BLOCKS),
            false => BLOCKS,
        };
        if joins {
            let lookups = node.lookup as usize + joined::JOINED_LOOKUPS;
            assert!(lookups < layout.keys as usize && !is_outermost, "a look-up of an event around");
            assert!(
                2 * (node.index as usize + 1) * layout.buckets as usize <= memory.buckets.len(),
                "an index that is there"
            );
            // SAFETY: the parameters are those of `checks_joined_probe`. Items name members of the node's set; members name slots that have
            // an event, cells and keys; entries are not written past `room`, nor doubts past `doubts_max`; code was made by `Leaves`,
            // which bounds its stacks, and programs by `Program`, which bounds theirs.
            return unsafe {
                memory.stream.launch(
                    &self.joined.probe,
                    grid,
                    self.block,
                    &mut [
                        Parameter::value(node),
                        Parameter::value(layout),
                        Parameter::buffer(&memory.events),
                        Parameter::buffer(&memory.cells),
                        Parameter::buffer(&memory.keys),
                        Parameter::buffer(&memory.members),
                        Parameter::buffer(&memory.buckets),
                        Parameter::buffer(&memory.items),
                        Parameter::buffer(&memory.entries),
                        Parameter::buffer(&memory.any),
                        Parameter::buffer(&memory.doubts),
                        Parameter::buffer(&memory.head),
                    ],
                )
            };
        }
        // SAFETY: the parameters are those of `checks_joined_scan`; as for `checks_joined_probe`.
        unsafe {
            memory.stream.launch(
                &self.joined.scan,
                grid,
                self.block,
                &mut [
                    Parameter::value(node),
                    Parameter::value(layout),
                    Parameter::buffer(&memory.events),
                    Parameter::buffer(&memory.cells),
                    Parameter::buffer(&memory.members),
                    Parameter::buffer(&memory.entries),
                    Parameter::buffer(&memory.any),
                    Parameter::buffer(&memory.doubts),
                    Parameter::buffer(&memory.head),
                ],
            )
        }
    }

    /// Makes leaves true that were decided.
    pub(crate) fn joined_decide(&self, memory: &Joined, count: usize) -> Result<(), DriverError> {
        assert!(count <= memory.decisions.len(), "more decisions than were sent");
        // SAFETY: the parameters are those of `checks_joined_decide`; decisions are of entries that the device told.
        unsafe {
            memory.stream.launch(
                &self.joined.decide,
                self.grid(count),
                self.block,
                &mut [
                    Parameter::buffer(&memory.decisions),
                    Parameter::value(&u32_of(count)),
                    Parameter::buffer(&memory.entries),
                ],
            )
        }
    }

    /// The states in which a node's entries are true.
    pub(crate) fn joined_truth(
        &self,
        memory: &Joined,
        node: &joined::Node,
        layout: &joined::Layout,
        count: u32,
    ) -> Result<(), DriverError> {
        check_node(memory, node, layout);
        assert!(count <= layout.room, "entries that there is room for");
        // SAFETY: the parameters are those of `checks_joined_truth`. Entries name those around them, which are there.
        unsafe {
            memory.stream.launch(
                &self.joined.truth,
                self.grid(count as usize * layout.chunks as usize),
                self.block,
                &mut [
                    Parameter::value(node),
                    Parameter::value(layout),
                    Parameter::value(&count),
                    Parameter::buffer(&memory.entries),
                    Parameter::buffer(&memory.any),
                    Parameter::buffer(&memory.words),
                ],
            )
        }
    }

    /// The links that end at a node's entries and came or went.
    pub(crate) fn joined_links(
        &self,
        memory: &Joined,
        node: &joined::Node,
        layout: &joined::Layout,
        count: u32,
    ) -> Result<(), DriverError> {
        check_node(memory, node, layout);
        let width = 2 + (layout.leaves.variables as usize).div_ceil(2);
        assert!(layout.told_max as usize * width <= memory.told.len(), "room for links");
        // SAFETY: the parameters are those of `checks_joined_links`, which writes no link past `told_max`. As for `truth`.
        unsafe {
            memory.stream.launch(
                &self.joined.links,
                self.grid(count as usize * layout.chunks as usize),
                self.block,
                &mut [
                    Parameter::value(node),
                    Parameter::value(layout),
                    Parameter::value(&count),
                    Parameter::buffer(&memory.entries),
                    Parameter::buffer(&memory.any),
                    Parameter::buffer(&memory.words),
                    Parameter::buffer(&memory.told),
                    Parameter::buffer(&memory.head),
                ],
            )
        }
    }
}

/// Compares a node with what is there.
fn check_node(memory: &Joined, node: &joined::Node, layout: &joined::Layout) {
    let nodes = memory.head.len() - JOINED_ENTRIES;
    let entries = nodes * layout.room as usize;
    assert!(
        (node.number as usize) < nodes && node.around_count as usize <= DEPTH + 1,
        "a node of this check"
    );
    assert!(entries <= memory.entries.len(), "room for entries");
    let words = entries * layout.chunks as usize;
    assert!(2 * words <= memory.any.len() && words <= memory.words.len(), "room for their words");
}

/// Compares a unit with what is there.
fn check(memory: &Memory, unit: &Unit, layout: &Layout) {
    let depth = unit.depth as usize;
    assert!(
        depth <= DEPTH && unit.end <= unit.nodes_count && memory.head.len() == HEAD,
        "a unit of this check"
    );
    assert!(layout.together == 1 || layout.together == 32, "threads alone or by the warp");
    let last = unit.origin as usize
        + (0..depth).map(|at| (unit.count[at] as usize - 1) * unit.stride[at] as usize).sum::<usize>()
        + unit.nodes_count as usize;
    assert!(last <= memory.truths.len() && last <= memory.index.len(), "room for the tree");
    for at in 0..depth {
        assert!(unit.count[at] <= layout.capacity, "no set is larger than its room");
        assert!(
            (unit.set[at] as usize + 1) * layout.capacity as usize <= memory.members.len(),
            "a set that is there"
        );
    }
}
