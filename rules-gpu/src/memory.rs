//! What a run has on its device.

use bytemuck::Pod;
use device::{Buffer, Device, DriverError, Pinned, Priority, Stream};
use kernels::rules::{CHUNK, HEAD, HEAD_ACTIVE, HEAD_ROUND, HEAD_SURVIVORS, Layout, NOWHERE};

use crate::compile::Compiled;
use crate::launchers::{Code, Launch, RoundKernels, Rounds, Store};

/// The words that a run counts in.
pub(crate) type Head = [u64; HEAD];

/// Blocks of a large grid: a large device is full with these, 16 on each multiprocessor.
const BLOCKS_MAX: u64 = 2_112;

/// Buffers of a run.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) kernels: RoundKernels,
    pub(crate) stream: Stream,
    pub(crate) layout: Layout,
    pub(crate) code: Code,
    pub(crate) store: Store,
    /// Where the store is moved the next time.
    spare: Option<Store>,
    pub(crate) rounds: Rounds,
    head_staged: Pinned<u64>,
}

impl Memory {
    /// Room for a program and so many constraints and proposals.
    pub(crate) fn new(
        device: &Device,
        kernels: RoundKernels,
        compiled: &Compiled,
        constraints: u32,
        proposals: u32,
    ) -> Result<Self, DriverError> {
        let stream = device.stream(Priority::High)?;
        let layout = Layout {
            occurrences: crate::subset::number(compiled.occurrences.len()),
            propagations: compiled.propagations,
            indexes: crate::subset::number(compiled.indexes.len()),
            width: compiled.width,
            constraints_max: constraints,
            proposals_max: proposals,
            buckets: if compiled.indexes.is_empty() { 1 } else { buckets(constraints) },
            unused: 0,
        };
        let code = Code {
            occurrences: upload(&stream, &compiled.occurrences)?,
            code: upload(&stream, &compiled.code)?,
            constants: upload(&stream, &compiled.constants)?,
            indexes: upload(&stream, &compiled.indexes)?,
        };
        let store = new_store(&stream, &layout)?;
        let rounds = new_rounds(&stream, &layout)?;
        let head_staged = device.pinned(HEAD)?;
        Ok(Self { kernels, stream, layout, code, store, spare: None, rounds, head_staged })
    }

    /// What launches name, with a grid for so much work.
    pub(crate) fn launch(&self, work: u64) -> Launch<'_> {
        // A host runs the threads of a grid one after another.
        let blocks = if self.stream.device().is_host() { 1 } else { work.div_ceil(4).clamp(1, BLOCKS_MAX) };
        let grid = u32::try_from(blocks).expect("it is clamped");
        let Self { stream, code, store, rounds, layout, .. } = self;
        Launch { stream, code, store, rounds, layout, grid }
    }

    pub(crate) fn read_head(&mut self) -> Result<Head, DriverError> {
        self.stream.download(&self.rounds.head, 0..HEAD, &mut self.head_staged, 0)?;
        let mut head = [0; HEAD];
        head.copy_from_slice(self.head_staged.slice()?);
        Ok(head)
    }

    pub(crate) fn write_head(&mut self, head: &Head) -> Result<(), DriverError> {
        self.head_staged.slice_mut()?.copy_from_slice(head);
        self.stream.upload(&mut self.head_staged, 0..HEAD, &self.rounds.head, 0)
    }

    /// Forgets constraints that are dead, and makes room for so many and for so many proposals. Between two rounds.
    pub(crate) fn rebuild(
        &mut self,
        head: &Head,
        constraints: u32,
        proposals: u32,
    ) -> Result<Head, DriverError> {
        let before = self.layout;
        let layout = Layout {
            constraints_max: constraints,
            proposals_max: proposals,
            buckets: if before.indexes == 0 { 1 } else { buckets(constraints) },
            ..before
        };
        let spare = self.spare.take().filter(|_| before.constraints_max == constraints);
        let other = match spare {
            Some(spare) => spare,
            None => new_store(&self.stream, &layout)?,
        };
        self.write_head(head)?;
        self.kernels.compact(self.launch(u64::MAX), &other)?;
        let head = self.read_head()?;
        if (before.constraints_max, before.proposals_max) != (constraints, proposals) {
            let rounds = new_rounds(&self.stream, &layout)?;
            let is_odd = head[HEAD_ROUND] % 2 == 1;
            let half = |max: u32| if is_odd { max as usize } else { 0 };
            let size = |word: usize| usize::try_from(head[word]).expect("it fits in memory");
            let (active, survivors) = (size(HEAD_ACTIVE), size(HEAD_SURVIVORS));
            let from = half(before.constraints_max);
            let old = &self.rounds;
            self.stream.copy(&old.active, from..from + active, &rounds.active, half(constraints))?;
            let from = half(before.proposals_max);
            let carried = from..from + active + survivors;
            self.stream.copy(&old.proposals, carried, &rounds.proposals, half(proposals))?;
            self.rounds = rounds;
            self.write_head(&head)?;
        }
        self.layout = layout;
        let old = std::mem::replace(&mut self.store, other);
        self.spare = Some(old).filter(|_| before.constraints_max == constraints);
        self.fill_buckets()?;
        Ok(head)
    }

    /// Puts all constraints into empty buckets.
    pub(crate) fn fill_buckets(&self) -> Result<(), DriverError> {
        if self.layout.indexes == 0 {
            return Ok(());
        }
        let buckets = &self.store.buckets;
        self.stream.fill(buckets, 0..buckets.len(), NOWHERE)?;
        self.kernels.insert(self.launch(u64::MAX), 0)
    }
}

fn buckets(constraints: u32) -> u32 {
    constraints.next_power_of_two()
}

fn new_store(stream: &Stream, layout: &Layout) -> Result<Store, DriverError> {
    let device = stream.device();
    let [constraints, width, stamps, nexts] =
        [layout.constraints_max, layout.width, layout.propagations, layout.indexes].map(|size| size as usize);
    Ok(Store {
        kinds: device.buffer(constraints)?,
        values: device.buffer(constraints * width)?,
        types: device.buffer(constraints * width)?,
        claims: device.buffer(constraints)?,
        stamps: device.buffer(constraints * (stamps + 1))?,
        buckets: device.buffer(layout.buckets as usize * nexts)?,
        nexts: device.buffer(constraints * nexts)?,
    })
}

fn new_rounds(stream: &Stream, layout: &Layout) -> Result<Rounds, DriverError> {
    let device = stream.device();
    let [constraints, proposals] = [layout.constraints_max, layout.proposals_max].map(|size| size as usize);
    let counts = constraints.max(proposals);
    Ok(Rounds {
        head: device.buffer(HEAD)?,
        active: device.buffer(2 * constraints)?,
        proposals: device.buffer(2 * proposals)?,
        counts: device.buffer(counts)?,
        offsets: device.buffer(counts)?,
        sums: device.buffer(counts / CHUNK + 1)?,
        fires: device.buffer(proposals)?,
    })
}

/// A buffer with these values.
pub(crate) fn upload<T: Pod>(stream: &Stream, values: &[T]) -> Result<Buffer<T>, DriverError> {
    let buffer = stream.device().buffer(values.len())?;
    write(stream, values, &buffer)?;
    Ok(buffer)
}

/// Writes values to the beginning of a buffer.
pub(crate) fn write<T: Pod>(stream: &Stream, values: &[T], to: &Buffer<T>) -> Result<(), DriverError> {
    let mut staged = stream.device().pinned(values.len())?;
    staged.slice_mut()?.copy_from_slice(values);
    stream.upload(&mut staged, 0..values.len(), to, 0)
}

/// The first values of a buffer.
pub(crate) fn download<T: Pod>(
    stream: &Stream,
    from: &Buffer<T>,
    count: usize,
) -> Result<Vec<T>, DriverError> {
    let mut staged = stream.device().pinned(count)?;
    stream.download(from, 0..count, &mut staged, 0)?;
    Ok(staged.slice()?.to_vec())
}
