//! Loc, Cont and Zip, and what changes their arrays.

use kernels::clcb::{ConstraintUpdate, FilterUpdate, Input, Move, PAGE, Task};
use matcher::geo::World;

use crate::clcb::arrays::{Arrays, SUBS};
use crate::driver::parameter::Parameter;
use crate::driver::{Buffer, Device, DriverError, Kernel, SharedWords, Stream};

/// Threads a block, as in the paper (section 4.3).
const BLOCK: u32 = 256;
/// Threads of a warp.
const WARP: u32 = 32;
/// Blocks that a large device runs at once; Loc's threads stride over the rest.
const LOC_BLOCKS_MAX: u32 = 1056;

/// How an event goes through the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As the paper has it: copies there and back around three kernels with a thread for each filter, constraint and
    /// subscription.
    Plain,
    /// The event as a parameter, its tasks and the answers through memory that host and device share, threads that look at
    /// several things, and the last of Zip's tells the host.
    Fast,
}

/// The kernels of one world.
#[derive(Debug)]
pub(crate) struct ClcbKernels {
    loc: Kernel,
    loc_fast: Kernel,
    cont: Kernel,
    cont_fast: Kernel,
    zip: Kernel,
    zip_fast: Kernel,
    install: Kernel,
    constrain: Kernel,
    move_centres: Kernel,
    move_run: Kernel,
}

impl ClcbKernels {
    pub(crate) fn load(device: &Device, world: World) -> Result<Self, DriverError> {
        let module = device.module(&kernels::CLCB)?;
        let [loc, loc_fast] = match world {
            World::Planar => ["clcb_loc_planar", "clcb_loc_fast_planar"],
            World::Geodetic => ["clcb_loc_geodetic", "clcb_loc_fast_geodetic"],
        };
        Ok(Self {
            loc: module.kernel(loc)?,
            loc_fast: module.kernel(loc_fast)?,
            cont: module.kernel("clcb_cont")?,
            cont_fast: module.kernel("clcb_cont_fast")?,
            zip: module.kernel("clcb_zip")?,
            zip_fast: module.kernel("clcb_zip_fast")?,
            install: module.kernel("clcb_install")?,
            constrain: module.kernel("clcb_constrain")?,
            move_centres: module.kernel("clcb_move")?,
            move_run: module.kernel("clcb_move_run")?,
        })
    }

    /// Loc: names, then distance, for every filter. `sent` begins with the input, which has the same numbers.
    pub(crate) fn loc(
        &self,
        stream: &Stream,
        input: &Input,
        sent: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        assert!(INPUT_TASKS + input.tasks_count as usize <= sent.len(), "more tasks than were sent");
        // The first thread clears SubsCount, so there has to be one.
        let grid = input.filters_count.max(1).div_ceil(BLOCK);
        // SAFETY: the parameters are those of `clcb_loc_*` in kernel_clcb.cu; filters and the numbers of their owners
        // are below the arrays' lengths, checked above and by whoever wrote the owners.
        unsafe {
            stream.launch(
                &self.loc,
                grid,
                BLOCK,
                &mut [
                    Parameter::buffer(sent),
                    Parameter::buffer(&arrays.bf),
                    Parameter::buffer(&arrays.fpos),
                    Parameter::buffer(&arrays.sq_dist),
                    Parameter::buffer(&arrays.fcount),
                    Parameter::buffer(&arrays.needed),
                    Parameter::buffer(&arrays.owner),
                    Parameter::buffer(&arrays.subs_bv),
                    Parameter::buffer(&arrays.results),
                ],
            )
        }
    }

    /// Loc in the fast form; brings the tasks from `shared`, which begins with them.
    pub(crate) fn loc_fast(
        &self,
        stream: &Stream,
        input: &Input,
        shared: &mut SharedWords,
        tasks: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        let words = input.tasks_count as usize * size_of::<Task>() / size_of::<u32>();
        assert!(words <= shared.words().len() && input.tasks_count as usize <= tasks.len(), "too many tasks");
        let grid = input.filters_count.div_ceil(4).max(1).div_ceil(BLOCK).min(LOC_BLOCKS_MAX);
        // SAFETY: the parameters are those of `clcb_loc_fast_*` in kernel_clcb.cu; as above, and the arrays' lengths
        // are multiples of four.
        unsafe {
            stream.launch(
                &self.loc_fast,
                grid,
                BLOCK,
                &mut [
                    Parameter::value(input),
                    Parameter::shared(shared),
                    Parameter::buffer(tasks),
                    Parameter::buffer(&arrays.bf),
                    Parameter::buffer(&arrays.fpos),
                    Parameter::buffer(&arrays.sq_dist),
                    Parameter::buffer(&arrays.fcount),
                    Parameter::buffer(&arrays.needed),
                    Parameter::buffer(&arrays.owner),
                    Parameter::buffer(&arrays.subs_bv),
                    Parameter::buffer(&arrays.results),
                ],
            )
        }
    }

    /// Cont: the constraints on the event's attributes. `sent` has the tasks behind the input.
    pub(crate) fn cont(
        &self,
        stream: &Stream,
        input: &Input,
        sent: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        assert!(INPUT_TASKS + input.tasks_count as usize <= sent.len(), "more tasks than were sent");
        if input.tasks_count == 0 {
            return Ok(());
        }
        // SAFETY: the parameters are those of `clcb_cont` in kernel_clcb.cu; tasks name pages of `constraints`, whose
        // filters are below the arrays' lengths or none.
        unsafe {
            stream.launch(
                &self.cont,
                input.tasks_count * (PAGE as u32 / BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(sent),
                    Parameter::buffer(&arrays.constraints),
                    Parameter::buffer(&arrays.fcount),
                    Parameter::buffer(&arrays.needed),
                    Parameter::buffer(&arrays.owner),
                    Parameter::buffer(&arrays.subs_bv),
                ],
            )
        }
    }

    /// Cont in the fast form, a block a page.
    pub(crate) fn cont_fast(
        &self,
        stream: &Stream,
        input: &Input,
        tasks: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        assert!(input.tasks_count as usize <= tasks.len(), "more tasks than were sent");
        if input.tasks_count == 0 {
            return Ok(());
        }
        // SAFETY: the parameters are those of `clcb_cont_fast` in kernel_clcb.cu; as above.
        unsafe {
            stream.launch(
                &self.cont_fast,
                input.tasks_count * (PAGE as u32 / 4 / BLOCK),
                BLOCK,
                &mut [
                    Parameter::value(input),
                    Parameter::buffer(tasks),
                    Parameter::buffer(&arrays.constraints),
                    Parameter::buffer(&arrays.fcount),
                    Parameter::buffer(&arrays.needed),
                    Parameter::buffer(&arrays.owner),
                    Parameter::buffer(&arrays.subs_bv),
                ],
            )
        }
    }

    /// Zip: the subscriptions that were found, in a row.
    pub(crate) fn zip(
        &self,
        stream: &Stream,
        input: &Input,
        sent: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        assert!(sent.len() >= INPUT_TASKS, "the input was sent");
        // SAFETY: the parameters are those of `clcb_zip` in kernel_clcb.cu; `results` has a word for each subscription
        // behind SubsCount.
        unsafe {
            stream.launch(
                &self.zip,
                input.subscriptions_count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(sent),
                    Parameter::buffer(&arrays.subs_bv),
                    Parameter::buffer(&arrays.results),
                ],
            )
        }
    }

    /// Zip in the fast form: `shared` gets SubsCount, `run` and as many subscriptions as it has room for.
    pub(crate) fn zip_fast(
        &self,
        stream: &Stream,
        input: &Input,
        run: u32,
        shared: &mut SharedWords,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        check(input, arrays);
        let capacity = shared.words().len().checked_sub(SUBS).expect("there is room for the count");
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        // The last warp tells the host, so there has to be one.
        let grid = input.subscriptions_count.div_ceil(16).max(1).div_ceil(BLOCK);
        // SAFETY: the parameters are those of `clcb_zip_fast` in kernel_clcb.cu; as above, `subs_bv` is a multiple of
        // sixteen long, and `shared` has a word for each that it has room for.
        unsafe {
            stream.launch(
                &self.zip_fast,
                grid,
                BLOCK,
                &mut [
                    Parameter::value(input),
                    Parameter::value(&run),
                    Parameter::value(&capacity),
                    Parameter::buffer(&arrays.subs_bv),
                    Parameter::buffer(&arrays.results),
                    Parameter::shared(shared),
                ],
            )
        }
    }

    /// Writes filters. Their numbers are below the arrays' lengths.
    pub(crate) fn install(
        &self,
        stream: &Stream,
        updates: &Buffer<FilterUpdate>,
        count: u32,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= updates.len(), "more updates than were sent");
        // SAFETY: the parameters are those of `clcb_install` in kernel_clcb.cu; the numbers in the updates are below
        // the arrays' lengths, for which room was made before they were sent.
        unsafe {
            stream.launch(
                &self.install,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(updates),
                    Parameter::value(&count),
                    Parameter::value(&(arrays.dimensions as u32)),
                    Parameter::buffer(&arrays.bf),
                    Parameter::buffer(&arrays.fpos),
                    Parameter::buffer(&arrays.sq_dist),
                    Parameter::buffer(&arrays.fcount),
                    Parameter::buffer(&arrays.needed),
                    Parameter::buffer(&arrays.owner),
                ],
            )
        }
    }

    /// Writes constraints. Their slots are below the arrays' length.
    pub(crate) fn constrain(
        &self,
        stream: &Stream,
        updates: &Buffer<ConstraintUpdate>,
        count: u32,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= updates.len(), "more updates than were sent");
        // SAFETY: the parameters are those of `clcb_constrain` in kernel_clcb.cu; slots are below the array's length,
        // for which room was made before they were sent.
        unsafe {
            stream.launch(
                &self.constrain,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(updates),
                    Parameter::value(&count),
                    Parameter::buffer(&arrays.constraints),
                ],
            )
        }
    }

    /// Writes centres. The filters' numbers are below the arrays' lengths.
    pub(crate) fn move_centres(
        &self,
        stream: &Stream,
        moves: &Buffer<Move>,
        count: u32,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        assert!(count as usize <= moves.len(), "more moves than were sent");
        // SAFETY: the parameters are those of `clcb_move` in kernel_clcb.cu; the filters were installed before.
        unsafe {
            stream.launch(
                &self.move_centres,
                count.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(moves),
                    Parameter::value(&count),
                    Parameter::value(&(arrays.dimensions as u32)),
                    Parameter::buffer(&arrays.fpos),
                ],
            )
        }
    }

    /// Writes the centre of neighbours that share it; then the first word of `shared` becomes `run`.
    pub(crate) fn move_run(
        &self,
        stream: &Stream,
        first: Move,
        count: u32,
        run: u32,
        shared: &mut SharedWords,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        let end = (first.filter as usize + count as usize) * arrays.dimensions;
        assert!(
            end <= arrays.fpos.len() && !shared.words().is_empty(),
            "a move of filters that are not there"
        );
        // SAFETY: the parameters are those of `clcb_move_run` in kernel_clcb.cu; the filters are below the array's
        // length.
        unsafe {
            stream.launch(
                &self.move_run,
                1,
                WARP,
                &mut [
                    Parameter::value(&first),
                    Parameter::value(&count),
                    Parameter::value(&(arrays.dimensions as u32)),
                    Parameter::value(&run),
                    Parameter::value(&0_u32),
                    Parameter::buffer(&arrays.fpos),
                    Parameter::shared(shared),
                ],
            )
        }
    }
}

/// Holds the counts against what is there.
fn check(input: &Input, arrays: &Arrays) {
    let [filters, subscriptions] =
        [input.filters_count, input.subscriptions_count].map(|count| count as usize);
    let per_filter = [&arrays.bf, &arrays.fcount, &arrays.owner].map(Buffer::len);
    assert!(
        per_filter.iter().all(|len| filters <= *len)
            && filters <= arrays.needed.len()
            && filters <= arrays.sq_dist.len()
            && filters * arrays.dimensions <= arrays.fpos.len(),
        "more filters than there is room for"
    );
    assert!(
        subscriptions <= arrays.subs_bv.len() && SUBS + subscriptions <= arrays.results.len(),
        "more subscriptions than there is room for"
    );
}

/// The input takes the room of so many tasks.
pub(crate) const INPUT_TASKS: usize = size_of::<Input>() / size_of::<Task>();
