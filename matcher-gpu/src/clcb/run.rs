//! One event's way through the device.

use std::time::Duration;

use kernels::clcb::{Input, Task};
use matcher::compiled::codes::value_code;
use matcher::compiled::view::value_bits;
use matcher::geo::World;

use super::arrays::{Arrays, SUBS};
use super::groups::Group;
use super::slack_sq;
use crate::driver::launchers::clcb::{ClcbKernels, Extent, Form, INPUT_TASKS};
use crate::driver::{Buffer, Device, DriverError, Event, Pinned, Stream};
use crate::filters::Filters;
use crate::rounding::rounded;

/// Subscriptions that come back with the first copy; more need a second one.
const PREFIX: usize = 252;
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
    /// Those come back.
    CopyResult,
}

impl Step {
    /// In their order.
    pub const ALL: [Self; 5] = [Self::CopyInput, Self::Loc, Self::Cont, Self::Zip, Self::CopyResult];

    /// What reports call it.
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
    /// Of one step.
    #[must_use]
    pub fn of(&self, step: Step) -> Duration {
        self.steps[step as usize]
    }
}

/// Memory that one event after the other goes through.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) form: Form,
    /// Which of four runs comes next.
    run: u32,
    input: Input,
    tasks: Vec<Task>,
    /// The input and the tasks behind it.
    pinned: Pinned<Task>,
    buffer: Buffer<Task>,
    results: Pinned<u32>,
    /// Around the steps.
    marks: [Event; 6],
    device: Device,
}

impl Runner {
    pub(super) fn new(device: &Device) -> Result<Self, DriverError> {
        let marks = [(); 6].map(|()| device.event());
        let [a, b, c, d, e, f] = marks;
        Ok(Self {
            form: Form::Wide,
            run: 0,
            input: Input::default(),
            tasks: Vec::new(),
            pinned: device.pinned(INPUT_TASKS)?,
            buffer: device.buffer(INPUT_TASKS)?,
            results: device.pinned(SUBS + PREFIX)?,
            marks: [a?, b?, c?, d?, e?, f?],
            device: device.clone(),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.buffer.bytes()
    }

    /// Writes down the input: InputPos, InputBF and, for each attribute that filters name, the pages of its group.
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
        for attribute in &event.attributes {
            let Some(name) = filters.names.find(&attribute.name) else { continue };
            let name = filters.names.name(name);
            mask |= name.mask;
            let (kind, bits) = value_bits(&attribute.value, filters.texts());
            name.payload.append_tasks(value_code(kind, bits).map(|code| code >> 16), &mut self.tasks);
        }
        let point = event.position.point();
        self.input = Input {
            position: rounded(point),
            slack_sq: slack_sq(world, point),
            mask,
            shift: self.run * 8,
            filters_count,
            subscriptions_count: u32::try_from(subscriptions_count).expect("subscriptions have 32-bit ids"),
            tasks_count: u32::try_from(self.tasks.len()).expect("pages have 32-bit numbers"),
            unused: [0; 3],
        };
        self.run = (self.run + 1) % RUNS;
    }

    /// Runs the three kernels over the input and answers the subscriptions that may be satisfied, in any order.
    pub(super) fn run(
        &mut self,
        stream: &Stream,
        kernels: &ClcbKernels,
        arrays: &Arrays,
        times: Option<&mut StepTimes>,
    ) -> Result<&[u32], DriverError> {
        let input_len = INPUT_TASKS + self.tasks.len();
        if input_len > self.pinned.len() {
            self.pinned = self.device.pinned(input_len.next_power_of_two())?;
            self.buffer = self.device.buffer(input_len.next_power_of_two())?;
        }
        let pinned = self.pinned.slice_mut()?;
        pinned[..INPUT_TASKS].copy_from_slice(bytemuck::cast_slice(&[self.input]));
        pinned[INPUT_TASKS..input_len].copy_from_slice(&self.tasks);
        let timed = times.is_some();
        let marks = &self.marks;
        let mark = |step: usize| if timed { stream.record(&marks[step]) } else { Ok(()) };
        let Input { filters_count: filters, subscriptions_count: subscriptions, tasks_count: tasks, .. } =
            self.input;
        let extent = Extent { filters, subscriptions, tasks };
        let (form, buffer) = (self.form, &self.buffer);
        mark(0)?;
        match form {
            // InputPos and InputBF, then Attrs, as the paper has them.
            Form::Plain => {
                stream.upload(&mut self.pinned, 0..INPUT_TASKS, buffer, 0)?;
                if input_len > INPUT_TASKS {
                    stream.upload(&mut self.pinned, INPUT_TASKS..input_len, buffer, INPUT_TASKS)?;
                }
            }
            Form::Wide => stream.upload(&mut self.pinned, 0..input_len, buffer, 0)?,
        }
        mark(1)?;
        kernels.loc(stream, form, extent, buffer, arrays)?;
        mark(2)?;
        kernels.cont(stream, form, extent, buffer, arrays)?;
        mark(3)?;
        kernels.zip(stream, form, extent, buffer, arrays)?;
        mark(4)?;
        let prefix = arrays.results.len().min(SUBS + PREFIX);
        stream.download(&arrays.results, 0..prefix, &mut self.results, 0)?;
        mark(5)?;
        stream.synchronize()?;
        let count = self.results.slice()?[0] as usize;
        if SUBS + count > prefix {
            if SUBS + count > self.results.len() {
                self.results = self.device.pinned((SUBS + count).next_power_of_two())?;
            }
            stream.download(&arrays.results, 0..SUBS + count, &mut self.results, 0)?;
            stream.synchronize()?;
        }
        if let Some(times) = times {
            for (step, pair) in times.steps.iter_mut().zip(self.marks.windows(2)) {
                *step = pair[1].elapsed_since(&pair[0])?;
            }
        }
        Ok(&self.results.slice()?[SUBS..SUBS + count])
    }
}
