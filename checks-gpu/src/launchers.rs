//! The launchers of `kernel_checks.cu`.

use std::num::NonZeroU32;

use device::{Buffer, Device, DriverError, Kernel, Parameter, Stream};
use kernels::checks::{Change, DEPTH, Decision, HEAD, Layout, Unit};

use crate::memory::Memory;

/// The kernels, compiled for a device. All checks share them.
#[derive(Clone, Debug)]
pub struct Kernels {
    device: Device,
    update: Kernel,
    truth: Kernel,
    decide: Kernel,
    links: Kernel,
    block: u32,
}

impl Kernels {
    /// Compiles them.
    ///
    /// # Errors
    /// [`DriverError`]
    pub fn load(device: &Device) -> Result<Self, DriverError> {
        let module = device.module(&kernels::CHECKS)?;
        Ok(Self {
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
}

/// Holds a unit against what is there.
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
