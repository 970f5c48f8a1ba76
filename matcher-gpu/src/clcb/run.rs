//! One event's way through the device.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kernels::clcb::{Input, SUBS, Task};
use matcher::geo::World;

use super::arrays::Arrays;
use super::groups::Group;
use super::slack_sq;
use crate::filters::Filters;
use crate::launchers::clcb::{ClcbKernels, FastWay, Form, INPUT_TASKS};
use crate::rounding::rounded;
use device::{Buffer, Device, DriverError, Event, Pinned, SharedWords, Stream};

/// Subscriptions that come back with the first copy; more need a second one.
const PREFIX: usize = 252;
/// Words of a task.
const TASK_WORDS: usize = size_of::<Task>() / size_of::<u64>();
/// The part of a word that says which run it is of.
const RUN_BITS: u64 = 0xffff_ffff << 32;
/// Set in the number of every run, so that it is never 0.
const RUN: u32 = 1 << 31;
/// Runs that share a counter's word.
const RUNS: u32 = 4;

/// The paper's five steps (section 5, "Analysis of CLCB").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The event goes to the device.
    CopyInput,
    /// Names and distances.
    Loc,
    /// Constraints.
    Cont,
    /// Subscriptions in a row.
    Zip,
    /// The subscriptions come back.
    CopyResult,
}

impl Step {
    /// All steps in their order.
    pub const ALL: [Self; 5] = [Self::CopyInput, Self::Loc, Self::Cont, Self::Zip, Self::CopyResult];

    /// Name of the step in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyInput => "Copy input",
            Self::Loc => "Loc",
            Self::Cont => "Cont",
            Self::Zip => "Zip",
            Self::CopyResult => "Copy result",
        }
    }
}

/// How long each step took on the device, between events of its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTimes {
    steps: [Duration; 5],
}

impl StepTimes {
    /// Time that one step took.
    #[must_use]
    pub fn of(&self, step: Step) -> Duration {
        self.steps[step as usize]
    }
}

/// Memory that one event after the other goes through.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) form: Form,
    /// Counts to 2^31 and begins again: tells which of four runs comes next, and answers apart.
    run: u32,
    input: Input,
    tasks: Vec<Task>,
    /// The input and the tasks behind it, on the way and on the device.
    pinned: Pinned<Task>,
    sent: Buffer<Task>,
    /// In the fast form: tasks on the way there, and answers on the way back.
    given: SharedWords,
    shown: SharedWords,
    /// SubsCount and Subs.
    results: Pinned<u32>,
    found: Vec<u32>,
    /// Around the steps.
    marks: [Event; 6],
    device: Device,
}

impl Runner {
    pub(super) fn new(device: &Device) -> Result<Self, DriverError> {
        let marks = [(); 6].map(|()| device.event());
        let [a, b, c, d, e, f] = marks;
        Ok(Self {
            form: Form::Fast,
            run: 0,
            input: Input::default(),
            tasks: Vec::new(),
            pinned: device.pinned(INPUT_TASKS)?,
            sent: device.buffer(INPUT_TASKS)?,
            given: device.shared(0)?,
            shown: device.shared(1 + PREFIX)?,
            results: device.pinned(SUBS + PREFIX)?,
            found: Vec::new(),
            marks: [a?, b?, c?, d?, e?, f?],
            device: device.clone(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.sent.bytes()
    }

    /// Writes down the input: InputPos, InputBF and, for each attribute that filters name, the runs of its group.
    pub(super) fn encode(
        &mut self,
        world: World,
        event: &matcher::event::Event,
        filters: &Filters<Group>,
        filters_count: u32,
        subscriptions_count: usize,
    ) {
        self.tasks.clear();
        let mut mask = 0;
        for (name, name_mask, code) in
            event.attributes.iter().filter_map(|attribute| filters.known(attribute))
        {
            mask |= name_mask;
            filters.names.name(name).payload.append_tasks(code.map(|code| code >> 16), &mut self.tasks);
        }
        let point = event.position.point();
        self.input = Input {
            position: rounded(point),
            slack_sq: slack_sq(world, point),
            mask,
            shift: self.run % RUNS * 8,
            filters_count,
            subscriptions_count: u32::try_from(subscriptions_count).expect("subscriptions have 32-bit ids"),
            tasks_count: u32::try_from(self.tasks.len()).expect("runs of slots are fewer than slots"),
            run: self.run | RUN,
            unused: [0; 2],
        };
        self.run = (self.run + 1) % RUN;
        if self.run == 0 {
            // Nothing may be taken for an answer to a run of the same number.
            self.shown.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// Stands in for billions of runs: `left` runs are left until they are counted anew.
    #[cfg(test)]
    pub(super) fn set_run_before_the_last(&mut self, left: u32) {
        self.run = RUN - left;
    }

    /// Runs the three kernels over the input and answers the subscriptions that may be satisfied, in any order.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        kernels: &mut ClcbKernels,
        arrays: &Arrays,
        times: Option<&mut StepTimes>,
    ) -> Result<&[u32], DriverError> {
        let input_len = INPUT_TASKS + self.tasks.len();
        if input_len > self.sent.len() {
            let len = input_len.next_power_of_two();
            self.pinned = self.device.pinned(len)?;
            self.given = self.device.shared(len * TASK_WORDS)?;
            // The last, since its length is the one that is asked.
            self.sent = self.device.buffer(len)?;
        }
        match self.form {
            Form::Plain => self.run_plain(stream, kernels, arrays, times.is_some())?,
            Form::Fast => self.run_fast(stream, kernels, arrays, times.is_some())?,
        }
        if let Some(times) = times {
            stream.synchronize()?;
            for (step, pair) in times.steps.iter_mut().zip(self.marks.windows(2)) {
                *step = pair[1].elapsed_since(&pair[0])?;
            }
        }
        Ok(&self.found)
    }

    /// Copies there, three kernels, copies back.
    fn run_plain(
        &mut self,
        stream: &Stream,
        kernels: &mut ClcbKernels,
        arrays: &Arrays,
        timed: bool,
    ) -> Result<(), DriverError> {
        let Self { input, tasks, pinned, sent, marks, results, found, device, .. } = self;
        let mark = |step: usize| if timed { stream.record(&marks[step]) } else { Ok(()) };
        let end = INPUT_TASKS + tasks.len();
        let words = pinned.slice_mut()?;
        words[..INPUT_TASKS].copy_from_slice(bytemuck::cast_slice(&[*input]));
        words[INPUT_TASKS..end].copy_from_slice(tasks);
        mark(0)?;
        // InputPos and InputBF, then Attrs.
        stream.upload(pinned, 0..INPUT_TASKS, sent, 0)?;
        if end > INPUT_TASKS {
            stream.upload(pinned, INPUT_TASKS..end, sent, INPUT_TASKS)?;
        }
        mark(1)?;
        kernels.loc(stream, input, sent, arrays)?;
        mark(2)?;
        kernels.cont(stream, input, sent, arrays)?;
        mark(3)?;
        kernels.zip(stream, input, sent, arrays)?;
        mark(4)?;
        let prefix = arrays.results.len().min(SUBS + PREFIX);
        stream.download(&arrays.results, 0..prefix, results, 0)?;
        mark(5)?;
        stream.synchronize()?;
        let count = results.slice()?[0] as usize;
        if SUBS + count > prefix {
            fetch_all(stream, arrays, results, device, count)?;
        }
        found.clear();
        found.extend_from_slice(&results.slice()?[SUBS..SUBS + count]);
        Ok(())
    }

    /// Three kernels, and a look at what the last has written.
    fn run_fast(
        &mut self,
        stream: &Stream,
        kernels: &mut ClcbKernels,
        arrays: &Arrays,
        timed: bool,
    ) -> Result<(), DriverError> {
        let Self { input, tasks, sent, given, shown, marks, results, found, device, .. } = self;
        given.write(0, bytemuck::cast_slice(tasks));
        let mut marks = marks.iter();
        let mut mark = || marks.next().map_or(Ok(()), |mark| stream.record(mark));
        // Neither copy is a step of its own.
        if timed {
            mark()?;
        }
        let between: Option<&mut dyn FnMut() -> Result<(), DriverError>> =
            if timed { Some(&mut mark) } else { None };
        kernels.run_fast(stream, input, FastWay { given, sent, found: shown }, arrays, between)?;
        if timed {
            mark()?;
        }
        let run = u64::from(input.run) << 32;
        let of_this_run = |word: u64| word & RUN_BITS == run;
        let count = (shown.wait(stream, 0, of_this_run)? & !RUN_BITS) as usize;
        found.clear();
        if count >= shown.words().len() {
            fetch_all(stream, arrays, results, device, count)?;
            found.extend_from_slice(&results.slice()?[SUBS..SUBS + count]);
            return Ok(());
        }
        for index in 1..=count {
            let word = shown.wait(stream, index, of_this_run)? & !RUN_BITS;
            found.push(u32::try_from(word).expect("the upper half is gone"));
        }
        Ok(())
    }
}

/// Brings all subscriptions that were found, where the first look did not show all.
fn fetch_all(
    stream: &Stream,
    arrays: &Arrays,
    results: &mut Pinned<u32>,
    device: &Device,
    count: usize,
) -> Result<(), DriverError> {
    if SUBS + count > results.len() {
        *results = device.pinned((SUBS + count).next_power_of_two())?;
    }
    stream.download(&arrays.results, 0..SUBS + count, results, 0)?;
    stream.synchronize()
}
