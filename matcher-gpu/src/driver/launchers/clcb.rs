//! Loc, Cont and Zip, and what changes their arrays.

use kernels::clcb::{ConstraintUpdate, FilterUpdate, Move, PAGE, Task};
use matcher::geo::World;

use crate::clcb::arrays::{Arrays, SUBS};
use crate::driver::parameter::Parameter;
use crate::driver::{Buffer, Device, DriverError, Kernel, Stream};

/// Threads a block, as in the paper (section 4.3).
const BLOCK: u32 = 256;

/// How many filters, constraints and subscriptions a thread looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One, as in the paper.
    Plain,
    /// Several, with fewer and larger loads.
    Wide,
}

/// The kernels of one world.
#[derive(Debug)]
pub(crate) struct ClcbKernels {
    loc: [Kernel; 2],
    cont: [Kernel; 2],
    zip: [Kernel; 2],
    install: Kernel,
    constrain: Kernel,
    move_centres: Kernel,
}

/// How much of the arrays one event concerns; the same numbers are in the input on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) filters: u32,
    pub(crate) subscriptions: u32,
    pub(crate) tasks: u32,
}

impl ClcbKernels {
    pub(crate) fn load(device: &Device, world: World) -> Result<Self, DriverError> {
        let module = device.module(&kernels::CLCB)?;
        let loc = match world {
            World::Planar => ["clcb_loc_planar", "clcb_loc_wide_planar"],
            World::Geodetic => ["clcb_loc_geodetic", "clcb_loc_wide_geodetic"],
        };
        Ok(Self {
            loc: [module.kernel(loc[0])?, module.kernel(loc[1])?],
            cont: [module.kernel("clcb_cont")?, module.kernel("clcb_cont_wide")?],
            zip: [module.kernel("clcb_zip")?, module.kernel("clcb_zip_wide")?],
            install: module.kernel("clcb_install")?,
            constrain: module.kernel("clcb_constrain")?,
            move_centres: module.kernel("clcb_move")?,
        })
    }

    /// Loc: names, then distance, for every filter. `input` begins with the event.
    pub(crate) fn loc(
        &self,
        stream: &Stream,
        form: Form,
        extent: Extent,
        input: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        let Extent { filters, subscriptions, tasks } = extent;
        check(input, tasks, arrays, filters, subscriptions);
        // The first thread clears SubsCount, so there has to be one.
        let threads = match form {
            Form::Plain => filters,
            Form::Wide => filters.div_ceil(4),
        };
        // SAFETY: the parameters are those of `clcb_loc_*` in kernel_clcb.cu; filters and their owners' numbers are
        // below the arrays' lengths, checked above and by whoever wrote the owners, which are multiples of four.
        unsafe {
            stream.launch(
                &self.loc[form as usize],
                threads.max(1).div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(input),
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

    /// Cont: the constraints on the event's attributes. `input` has the tasks behind the event.
    pub(crate) fn cont(
        &self,
        stream: &Stream,
        form: Form,
        extent: Extent,
        input: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        let Extent { filters, subscriptions, tasks } = extent;
        check(input, tasks, arrays, filters, subscriptions);
        if tasks == 0 {
            return Ok(());
        }
        let threads_per_page = match form {
            Form::Plain => PAGE as u32,
            Form::Wide => PAGE as u32 / 4,
        };
        // SAFETY: the parameters are those of `clcb_cont*` in kernel_clcb.cu; tasks name pages of `constraints`, whose
        // filters are below the arrays' lengths or none.
        unsafe {
            stream.launch(
                &self.cont[form as usize],
                (tasks * threads_per_page).div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(input),
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
        form: Form,
        extent: Extent,
        input: &Buffer<Task>,
        arrays: &Arrays,
    ) -> Result<(), DriverError> {
        let Extent { filters, subscriptions, tasks } = extent;
        check(input, tasks, arrays, filters, subscriptions);
        let threads = match form {
            Form::Plain => subscriptions,
            Form::Wide => subscriptions.div_ceil(16),
        };
        if threads == 0 {
            return Ok(());
        }
        // SAFETY: the parameters are those of `clcb_zip*` in kernel_clcb.cu; `results` has a word for each
        // subscription behind SubsCount, and `subs_bv` is a multiple of sixteen long.
        unsafe {
            stream.launch(
                &self.zip[form as usize],
                threads.div_ceil(BLOCK),
                BLOCK,
                &mut [
                    Parameter::buffer(input),
                    Parameter::buffer(&arrays.subs_bv),
                    Parameter::buffer(&arrays.results),
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
}

/// Holds the extent against what is there.
fn check(input: &Buffer<Task>, tasks: u32, arrays: &Arrays, filters: u32, subscriptions: u32) {
    let [filters, subscriptions] = [filters, subscriptions].map(|count| count as usize);
    assert!(tasks as usize + INPUT_TASKS <= input.len(), "more tasks than were sent");
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

/// The event takes the room of so many tasks.
pub(crate) const INPUT_TASKS: usize = size_of::<kernels::clcb::Input>() / size_of::<Task>();
