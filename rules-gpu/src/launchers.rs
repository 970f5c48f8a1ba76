//! The launchers of `kernel_rules.cu` and `kernel_rules_letter.cu`.

use device::{Buffer, DriverError, Kernel, LoadedModule, Parameter, Stream};
use kernels::rules::{CHUNK, HEAD, Index, Layout, Occurrence, Proposal, STACK, Value};

/// The kernels of rounds, of an interpreter or of a program.
#[derive(Clone, Debug)]
pub(crate) struct RoundKernels {
    seek: Kernel,
    count: Kernel,
    sums: Kernel,
    starts: Kernel,
    offsets: Kernel,
    fill: Kernel,
    decide: Kernel,
    apply: Kernel,
    insert: Kernel,
    alive: Kernel,
    shift: Kernel,
    renumber: Kernel,
    moved: Kernel,
    turn: Kernel,
}

/// The kernel of the paper's scheme.
#[derive(Clone, Debug)]
pub(crate) struct LetterKernel {
    letter: Kernel,
}

/// What the device has of a program.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) occurrences: Buffer<Occurrence>,
    pub(crate) code: Buffer<u32>,
    pub(crate) constants: Buffer<Value>,
    pub(crate) indexes: Buffer<Index>,
}

/// Constraints on the device.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) kinds: Buffer<u32>,
    pub(crate) values: Buffer<u64>,
    pub(crate) types: Buffer<u8>,
    pub(crate) claims: Buffer<u64>,
    pub(crate) stamps: Buffer<u32>,
    pub(crate) buckets: Buffer<u32>,
    pub(crate) nexts: Buffer<u32>,
}

/// Buffers of a run that are no constraints.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) head: Buffer<u64>,
    /// Twice as many as there is room for constraints.
    pub(crate) active: Buffer<u32>,
    /// Twice as many as there is room for proposals.
    pub(crate) proposals: Buffer<Proposal>,
    pub(crate) counts: Buffer<u64>,
    pub(crate) offsets: Buffer<u64>,
    pub(crate) sums: Buffer<u64>,
    pub(crate) fires: Buffer<u8>,
}

/// All that launches of a run name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) code: &'a Code,
    pub(crate) store: &'a Store,
    pub(crate) rounds: &'a Rounds,
    pub(crate) layout: &'a Layout,
    /// Blocks of a grid.
    pub(crate) grid: u32,
}

/// Counts that are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Active = 0,
    Proposals = 1,
    Constraints = 2,
}

/// Threads of a block.
pub(crate) const BLOCK: u32 = 128;
/// Threads of a block in the paper.
pub(crate) const BLOCK_OF_LETTER: u32 = 512;

impl RoundKernels {
    /// The kernels of a module.
    ///
    /// # Errors
    /// [`DriverError`]
    pub(crate) fn of(module: &LoadedModule) -> Result<Self, DriverError> {
        Ok(Self {
            seek: module.kernel("rules_seek")?,
            count: module.kernel("rules_count")?,
            sums: module.kernel("rules_sums")?,
            starts: module.kernel("rules_starts")?,
            offsets: module.kernel("rules_offsets")?,
            fill: module.kernel("rules_fill")?,
            decide: module.kernel("rules_decide")?,
            apply: module.kernel("rules_apply")?,
            insert: module.kernel("rules_insert")?,
            alive: module.kernel("rules_alive")?,
            shift: module.kernel("rules_move")?,
            renumber: module.kernel("rules_renumber")?,
            moved: module.kernel("rules_moved")?,
            turn: module.kernel("rules_turn")?,
        })
    }

    /// Starts the kernels of a round.
    pub(crate) fn round(&self, launch: Launch<'_>) -> Result<(), DriverError> {
        let Launch { rounds, layout, .. } = &launch;
        check(&launch);
        launch.start(&self.seek, true, Needs::All, |list| {
            list.extend([
                Parameter::value(*layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.active),
                Parameter::buffer(&rounds.proposals),
                Parameter::buffer(&rounds.counts),
            ]);
        })?;
        if layout.propagations > 0 {
            launch.start(&self.count, true, Needs::All, |list| {
                list.extend([
                    Parameter::value(*layout),
                    Parameter::buffer(&rounds.head),
                    Parameter::buffer(&rounds.active),
                    Parameter::buffer(&rounds.counts),
                ]);
            })?;
        }
        self.scan(launch, Which::Active)?;
        launch.start(&self.fill, true, Needs::All, |list| {
            list.extend([
                Parameter::value(*layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.active),
                Parameter::buffer(&rounds.proposals),
                Parameter::buffer(&rounds.counts),
                Parameter::buffer(&rounds.offsets),
            ]);
        })?;
        launch.start(&self.decide, true, Needs::All, |list| {
            list.extend([
                Parameter::value(*layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.proposals),
                Parameter::buffer(&rounds.counts),
                Parameter::buffer(&rounds.fires),
            ]);
        })?;
        self.scan(launch, Which::Proposals)?;
        launch.start(&self.apply, true, Needs::All, |list| {
            list.extend([
                Parameter::value(*layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.active),
                Parameter::buffer(&rounds.proposals),
                Parameter::buffer(&rounds.counts),
                Parameter::buffer(&rounds.offsets),
                Parameter::buffer(&rounds.fires),
            ]);
        })?;
        if layout.indexes > 0 {
            self.insert(launch, kernels::rules::NOWHERE)?;
        }
        launch.start(&self.turn, false, Needs::Nothing, |list| list.push(Parameter::buffer(&rounds.head)))
    }

    /// Puts constraints from `begin` on into buckets, or those that are new in a round.
    pub(crate) fn insert(&self, launch: Launch<'_>, begin: u32) -> Result<(), DriverError> {
        check(&launch);
        launch.start(&self.insert, true, Needs::All, |list| {
            list.extend([
                Parameter::value(launch.layout),
                Parameter::buffer(&launch.rounds.head),
                Parameter::value(&begin),
            ]);
        })
    }

    /// Turns counts into offsets.
    fn scan(&self, launch: Launch<'_>, which: Which) -> Result<(), DriverError> {
        let Launch { rounds, layout, .. } = launch;
        let which = which as u32;
        launch.start(&self.sums, true, Needs::Nothing, |list| {
            list.extend([
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.counts),
                Parameter::buffer(&rounds.sums),
                Parameter::value(&which),
            ]);
        })?;
        launch.start(&self.starts, false, Needs::Nothing, |list| {
            list.extend([
                Parameter::value(layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.sums),
                Parameter::value(&which),
            ]);
        })?;
        launch.start(&self.offsets, true, Needs::Nothing, |list| {
            list.extend([
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.counts),
                Parameter::buffer(&rounds.sums),
                Parameter::buffer(&rounds.offsets),
                Parameter::value(&which),
            ]);
        })
    }

    /// Moves what is alive to another store, without gaps. That has to be given empty buckets, and be filled by [`RoundKernels::insert`].
    pub(crate) fn compact(&self, launch: Launch<'_>, other: &Store) -> Result<(), DriverError> {
        let Launch { rounds, layout, .. } = launch;
        check(&launch);
        check(&Launch { store: other, ..launch });
        launch.start(&self.alive, true, Needs::Store, |list| {
            list.extend([Parameter::buffer(&rounds.head), Parameter::buffer(&rounds.counts)]);
        })?;
        self.scan(launch, Which::Constraints)?;
        launch.start(&self.shift, true, Needs::Store, |list| {
            list.extend([
                Parameter::buffer(&other.kinds),
                Parameter::buffer(&other.values),
                Parameter::buffer(&other.types),
                Parameter::buffer(&other.claims),
                Parameter::buffer(&other.stamps),
                Parameter::value(layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.offsets),
            ]);
        })?;
        launch.start(&self.renumber, true, Needs::All, |list| {
            list.extend([
                Parameter::value(layout),
                Parameter::buffer(&rounds.head),
                Parameter::buffer(&rounds.active),
                Parameter::buffer(&rounds.proposals),
                Parameter::buffer(&rounds.offsets),
            ]);
        })?;
        launch.start(&self.moved, false, Needs::Nothing, |list| list.push(Parameter::buffer(&rounds.head)))
    }
}

impl LetterKernel {
    /// The kernel of a module.
    ///
    /// # Errors
    /// [`DriverError`]
    pub(crate) fn of(module: &LoadedModule) -> Result<Self, DriverError> {
        Ok(Self { letter: module.kernel("rules_letter")? })
    }

    /// Fires a rule on every combination, as the paper does.
    #[expect(clippy::too_many_arguments, reason = "as many as the kernel has")]
    pub(crate) fn fire(
        &self,
        launch: Launch<'_>,
        begins: &Buffer<u32>,
        targets: &Buffer<u32>,
        locks: &Buffer<u32>,
        rule: u32,
        pairs: bool,
        claims: bool,
    ) -> Result<(), DriverError> {
        check(&launch);
        assert!(rule < launch.layout.occurrences, "a rule of the program");
        assert!(targets.len() >= launch.layout.occurrences as usize * STACK, "a place for all that is added");
        assert!(locks.len() >= launch.layout.constraints_max as usize, "a lock for each constraint");
        let (pairs, claims) = (u32::from(pairs), u32::from(claims));
        launch.start(&self.letter, true, Needs::Letter, |list| {
            list.extend([
                Parameter::value(launch.layout),
                Parameter::buffer(&launch.rounds.head),
                Parameter::buffer(begins),
                Parameter::buffer(targets),
                Parameter::buffer(locks),
                Parameter::value(&rule),
                Parameter::value(&pairs),
                Parameter::value(&claims),
            ]);
        })
    }
}

/// What a kernel's first parameters are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    Store,
    /// Code and store.
    All,
    /// Code and store, in the paper's blocks.
    Letter,
}

impl<'a> Launch<'a> {
    /// Starts a kernel with a grid, or with one warp.
    fn start(
        &self,
        kernel: &Kernel,
        is_wide: bool,
        needs: Needs,
        rest: impl FnOnce(&mut Vec<Parameter<'a>>),
    ) -> Result<(), DriverError> {
        let mut list = Vec::with_capacity(32);
        if matches!(needs, Needs::All | Needs::Letter) {
            let Code { occurrences, code, constants, indexes } = self.code;
            list.extend([
                Parameter::buffer(occurrences),
                Parameter::buffer(code),
                Parameter::buffer(constants),
                Parameter::buffer(indexes),
            ]);
        }
        if needs != Needs::Nothing {
            let Store { kinds, values, types, claims, stamps, buckets, nexts } = self.store;
            list.extend([
                Parameter::buffer(kinds),
                Parameter::buffer(values),
                Parameter::buffer(types),
                Parameter::buffer(claims),
                Parameter::buffer(stamps),
                Parameter::buffer(buckets),
                Parameter::buffer(nexts),
            ]);
        }
        rest(&mut list);
        let block = if needs == Needs::Letter { BLOCK_OF_LETTER } else { BLOCK };
        let (grid, block) = if is_wide { (self.grid, block) } else { (1, 32) };
        // SAFETY: the parameters are those of the kernel, in its order: code and store as `PROGRAM` and `STORE` of the source name them, then
        // the rest. `check` holds all buffers against the layout; the kernels stay below its counts, and stop where what they count
        // does not fit. Numbers of constraints, occurrences, slots and constants were written by `compile`, `Run` and the kernels.
        unsafe { self.stream.launch(kernel, grid, block, &mut list) }
    }
}

/// Holds the buffers against what the layout says.
fn check(launch: &Launch<'_>) {
    let Launch { code, store, rounds, layout, .. } = launch;
    let [constraints, proposals] = [layout.constraints_max, layout.proposals_max].map(|max| max as usize);
    assert!(
        layout.buckets.is_power_of_two()
            && store.buckets.len() >= layout.buckets as usize * layout.indexes as usize,
        "buckets"
    );
    assert!(
        code.occurrences.len() >= layout.occurrences as usize
            && code.indexes.len() >= layout.indexes as usize,
        "code"
    );
    assert!(store.kinds.len() >= constraints && store.claims.len() >= constraints, "room for constraints");
    let values = constraints * layout.width as usize;
    assert!(store.values.len() >= values && store.types.len() >= values, "room for values");
    assert!(store.stamps.len() >= constraints * (layout.propagations as usize + 1), "room for stamps");
    assert!(store.nexts.len() >= constraints * layout.indexes as usize, "room for chains");
    assert!(rounds.head.len() == HEAD && rounds.active.len() >= 2 * constraints, "room for a round");
    assert!(rounds.proposals.len() >= 2 * proposals && rounds.fires.len() >= proposals, "room for proposals");
    let counts = constraints.max(proposals);
    assert!(rounds.counts.len() >= counts && rounds.offsets.len() >= counts, "room for counts");
    assert!(rounds.sums.len() > counts / CHUNK, "room for sums");
}
