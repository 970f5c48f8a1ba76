//! Loc, Cont and Zip, and what changes their arrays.

use kernels::clcb::{ConstraintUpdate, FilterUpdate, Input, Move, PAGE, SUBS, TOGETHER, Task, ZIPPED};
use matcher::geo::World;

use crate::clcb::arrays::Arrays;
use device::{Buffer, Device, DriverError, Graph, Kernel, Launch, Parameter, SharedWords, Stream};

/// Threads a block, as in the paper (section 4.3).
const BLOCK: u32 = 256;
/// Blocks that a task takes in the plain form.
const TASK_BLOCKS: u32 = 4;
const _: () = assert!(PAGE == (TASK_BLOCKS * BLOCK) as usize);
/// Blocks of Loc in the fast form, sixteen for each of an H100's 132 multiprocessors; threads stride over the rest.
const LOC_BLOCKS_MAX: u32 = 16 * 132;
/// Blocks of Cont in the fast form, four for each of an H100's multiprocessors; they take a task at a time.
const CONT_BLOCKS: u32 = 4 * 132;
/// Tasks whose room the input takes.
pub(crate) const INPUT_TASKS: usize = size_of::<Input>() / size_of::<Task>();

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

/// Memory that an event goes through in the fast form.
#[derive(Debug)]
pub(crate) struct FastWay<'a> {
    /// Begins with the tasks.
    pub(crate) given: &'a mut SharedWords,
    /// Where the input and the tasks go on the device.
    pub(crate) sent: &'a Buffer<Task>,
    /// Gets SubsCount and as many subscriptions as it has room for.
    pub(crate) found: &'a mut SharedWords,
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
    /// The launches of the fast form.
    graph: Graph,
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
            graph: Graph::default(),
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
        // SAFETY: the parameters are those of `clcb_cont` in kernel_clcb.cu; tasks name slots of `constraints`, whose
        // filters are below the arrays' lengths or none.
        unsafe {
            stream.launch(
                &self.cont,
                input.tasks_count * TASK_BLOCKS,
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

    /// Loc, Cont and Zip in the fast form. `between` is called around the kernels, which are then started one by one; without
    /// it they are one piece of work.
    pub(crate) fn run_fast(
        &mut self,
        stream: &Stream,
        input: &Input,
        way: FastWay<'_>,
        arrays: &Arrays,
        between: Option<&mut dyn FnMut() -> Result<(), DriverError>>,
    ) -> Result<(), DriverError> {
        let FastWay { given, sent, found } = way;
        check(input, arrays);
        let tasks = input.tasks_count as usize;
        assert!(
            tasks * size_of::<Task>() <= size_of_val(given.words()) && INPUT_TASKS + tasks <= sent.len(),
            "too many tasks"
        );
        let capacity = found.words().len().checked_sub(1).expect("there is room for the count");
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        // Zip's last warp tells the host, so there has to be one; grids change seldom, for a graph's sake.
        let loc_blocks = input.filters_count.div_ceil(TOGETHER * BLOCK).clamp(1, LOC_BLOCKS_MAX);
        let zip_blocks = input.subscriptions_count.div_ceil(ZIPPED * BLOCK).max(1);
        let loc = &mut [
            Parameter::value(input),
            Parameter::shared(given),
            Parameter::buffer(sent),
            Parameter::buffer(&arrays.bf),
            Parameter::buffer(&arrays.fpos),
            Parameter::buffer(&arrays.sq_dist),
            Parameter::buffer(&arrays.fcount),
            Parameter::buffer(&arrays.needed),
            Parameter::buffer(&arrays.owner),
            Parameter::buffer(&arrays.subs_bv),
        ];
        let cont = &mut [
            Parameter::buffer(sent),
            Parameter::buffer(&arrays.constraints),
            Parameter::buffer(&arrays.fcount),
            Parameter::buffer(&arrays.needed),
            Parameter::buffer(&arrays.owner),
            Parameter::buffer(&arrays.subs_bv),
        ];
        let zip = &mut [
            Parameter::buffer(sent),
            Parameter::value(&capacity),
            Parameter::buffer(&arrays.subs_bv),
            Parameter::buffer(&arrays.results),
            Parameter::buffer(&arrays.tally),
            Parameter::shared(found),
        ];
        let mut launches = [
            Launch { kernel: &self.loc_fast, grid: loc_blocks, block: BLOCK, parameters: loc },
            Launch { kernel: &self.cont_fast, grid: CONT_BLOCKS, block: BLOCK, parameters: cont },
            Launch { kernel: &self.zip_fast, grid: zip_blocks, block: BLOCK, parameters: zip },
        ];
        let Some(between) = between else {
            // SAFETY: the parameters are those of `clcb_loc_fast_*`, `clcb_cont_fast` and `clcb_zip_fast` in
            // kernel_clcb.cu, whose lengths were checked above; filters' owners and the pages of tasks are below the arrays'
            // lengths, which are multiples of sixteen.
            return unsafe { stream.launch_all(&mut self.graph, &mut launches) };
        };
        for Launch { kernel, grid, block, parameters } in launches {
            between()?;
            // SAFETY: as above.
            unsafe { stream.launch(kernel, grid, block, parameters) }?;
        }
        between()
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
                    Parameter::value(&arrays.dimensions),
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
                    Parameter::value(&arrays.dimensions),
                    Parameter::buffer(&arrays.fpos),
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
            && filters * arrays.dimensions as usize <= arrays.fpos.len(),
        "more filters than there is room for"
    );
    assert!(
        subscriptions <= arrays.subs_bv.len() && SUBS + subscriptions <= arrays.results.len(),
        "more subscriptions than there is room for"
    );
}
