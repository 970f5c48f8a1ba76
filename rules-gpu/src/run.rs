//! A run in rounds: `ours`.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytemuck::Zeroable;
use device::DriverError;
use kernels::rules::{self as k, NOWHERE, UNCLAIMED};
use rules::{Answer, Setting};

use crate::compile::{Compiled, Search, bits};
use crate::distance::measured;
use crate::kernels::{Form, Kernels};
use crate::memory::{Head, Memory, download, write};
use crate::subset::{Program, Refusal, Value, number};

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The device does not take the program or the goal.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The device failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// A rule had an error, or a bound was reached.
    #[error("{}{error}", rule.as_ref().map_or_else(String::new, |rule| format!("rule {rule}: ")))]
    Rules {
        /// The rule, where it was one.
        rule: Option<String>,
        /// What it was.
        error: rules::Error,
    },
    /// A distance is nearer to what it is compared with than the last digits of device and processor differ. The processor's engine decides.
    #[error("rule {rule}: a distance is too near to what it is compared with for a device to decide")]
    TooNear {
        /// The rule.
        rule: String,
    },
    /// More matches of a round than there is room for.
    #[error("a round has {needed} matches, and there is room for {max}")]
    Matches {
        /// How many there are.
        needed: u64,
        /// How many fit.
        max: u64,
    },
}

/// A constraint: its kind, and its arguments.
pub type Fact = (usize, Vec<Value>);

/// What a run ended with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether it succeeded.
    pub is_success: bool,
    /// The constraints that are left, the oldest first.
    pub store: Vec<Fact>,
    /// How many times a rule was applied.
    pub applications: u64,
    /// Rounds, or what corresponds to them.
    pub rounds: u64,
    /// In which form the device had the rules.
    pub form: Form,
    /// How long the rounds took: without the compiler, and without copies of the constraints to the device and back.
    pub rounds_took: Duration,
}

/// Most matches that a round has room for.
const PROPOSALS_MAX: u64 = 1 << 28;
/// Least constraints and matches that there is room for.
const ROOM_MIN: usize = 1 << 10;
/// Most rounds that the device goes on before it is asked how far it is.
const BATCH_MAX: u64 = 16;

/// Runs a program's goal on a device, to the answer of [`rules::run`] where the program is confluent: an answer that does not depend on the order
/// in which rules are applied. How often they are may differ. The bound on steps is one on applications.
///
/// # Errors
/// A program or goal that the device does not take; see [`Error`] for the others.
pub fn run(program: &str, goal: &str, kernels: &Kernels, setting: &Setting) -> Result<Answer, Error> {
    let mut program = Program::new(program)?;
    let facts = program.goal(goal)?;
    let outcome = run_facts(&program, &facts, kernels, setting)?;
    Ok(program.answer(outcome))
}

/// As [`run`], from constraints to constraints.
///
/// # Errors
/// As [`run`].
pub fn run_facts(
    program: &Program,
    facts: &[Fact],
    kernels: &Kernels,
    setting: &Setting,
) -> Result<Outcome, Error> {
    let compiled = Compiled::new(program, Search::Indexed)?;
    if facts.is_empty() {
        return Ok(Outcome { is_success: true, ..Outcome::default() });
    }
    measured(program, setting)?;
    let (round_kernels, form) = kernels.rounds_for(&compiled, facts.len())?;
    let room = number((2 * facts.len()).max(ROOM_MIN).next_power_of_two());
    let mut memory = Memory::new(kernels.device(), round_kernels, &compiled, room, room)?;
    let mut head = begin(&mut memory, facts)?;
    memory.stream.synchronize()?;
    let began = Instant::now();
    let mut batch = 1;
    loop {
        let work = head[k::HEAD_ACTIVE] + head[k::HEAD_SURVIVORS];
        for _ in 0..batch {
            memory.kernels.round(memory.launch(work))?;
        }
        head = memory.read_head()?;
        batch = (2 * batch).min(BATCH_MAX);
        let bounded = |error| Err(Error::Rules { rule: None, error });
        if head[k::HEAD_APPLIED] > setting.bounds.steps {
            return bounded(rules::Error::Steps(setting.bounds.steps));
        }
        if setting.stop.load(Ordering::Relaxed) {
            return bounded(rules::Error::Stopped);
        }
        match u32::try_from(head[k::HEAD_STOP]).unwrap_or(u32::MAX) {
            k::RUNS => {
                let dead = head[k::HEAD_DEAD];
                if 2 * dead > head[k::HEAD_STORED] + ROOM_MIN as u64 {
                    let layout = memory.layout;
                    head = memory.rebuild(&head, layout.constraints_max, layout.proposals_max)?;
                }
            }
            k::DONE => break,
            k::FAILED => {
                return Ok(Outcome {
                    applications: head[k::HEAD_APPLIED],
                    rounds: head[k::HEAD_ROUND] - u64::from(k::ROUND_FIRST),
                    form,
                    rounds_took: began.elapsed(),
                    ..Outcome::default()
                });
            }
            k::NO_PROPOSALS | k::NO_CONSTRAINTS => {
                head = grow(&mut memory, head, setting)?;
                batch = 1;
            }
            _ => return Err(error_of(program, head[k::HEAD_ERROR])),
        }
    }
    let rounds_took = began.elapsed();
    Ok(Outcome { form, rounds_took, ..finish(&memory, program, &head)? })
}

/// Sends the facts, all of them active.
fn begin(memory: &mut Memory, facts: &[Fact]) -> Result<Head, DriverError> {
    let width = memory.layout.width as usize;
    let mut kinds = Vec::with_capacity(facts.len());
    let mut values = vec![0_u64; facts.len() * width];
    let mut types = vec![0_u8; facts.len() * width];
    for (at, (kind, arguments)) in facts.iter().enumerate() {
        kinds.push(number(*kind));
        for (idx, argument) in arguments.iter().enumerate() {
            let (value, kind) = bits(*argument);
            values[at * width + idx] = value;
            types[at * width + idx] = u8::try_from(kind).expect("there are three");
        }
    }
    let (stream, store) = (&memory.stream, &memory.store);
    write(stream, &kinds, &store.kinds)?;
    write(stream, &values, &store.values)?;
    write(stream, &types, &store.types)?;
    write(stream, &vec![UNCLAIMED; facts.len()], &store.claims)?;
    let mut head: Head = Zeroable::zeroed();
    let count = facts.len() as u64;
    (head[k::HEAD_ROUND], head[k::HEAD_ERROR]) = (k::ROUND_FIRST.into(), UNCLAIMED);
    (head[k::HEAD_STORED], head[k::HEAD_ACTIVE]) = (count, count);
    let active: Vec<u32> = (0..number(facts.len())).collect();
    // The first round is an even one, and finds its constraints in the first half.
    write(stream, &active, &memory.rounds.active)?;
    memory.write_head(&head)?;
    memory.fill_buckets()?;
    Ok(head)
}

/// Makes room for a round that stopped for want of it.
fn grow(memory: &mut Memory, mut head: Head, setting: &Setting) -> Result<Head, Error> {
    let layout = memory.layout;
    let needed = head[k::HEAD_NEEDED];
    let (mut constraints, mut proposals) = (layout.constraints_max, layout.proposals_max);
    if head[k::HEAD_STOP] == u64::from(k::NO_PROPOSALS) {
        let room = needed.next_power_of_two();
        if room > PROPOSALS_MAX {
            return Err(Error::Matches { needed, max: PROPOSALS_MAX });
        }
        proposals = u32::try_from(room).expect("it is bounded");
    } else {
        let alive = needed - head[k::HEAD_DEAD].min(needed);
        let room_max = u64::from(NOWHERE - 1);
        if alive > (setting.bounds.constraints as u64).min(room_max / 2) {
            let error = rules::Error::Constraints(setting.bounds.constraints);
            return Err(Error::Rules { rule: None, error });
        }
        // Half of it is to be free.
        let room = (2 * alive).next_power_of_two().min(room_max);
        constraints = constraints.max(u32::try_from(room).expect("it is bounded"));
    }
    head[k::HEAD_STOP] = k::RUNS.into();
    Ok(memory.rebuild(&head, constraints, proposals)?)
}

/// The constraints that are left.
fn finish(memory: &Memory, program: &Program, head: &Head) -> Result<Outcome, Error> {
    let stored = usize::try_from(head[k::HEAD_STORED]).expect("it fits in memory");
    let store = constraints(memory, program, stored)?;
    Ok(Outcome {
        is_success: true,
        store,
        applications: head[k::HEAD_APPLIED],
        rounds: head[k::HEAD_ROUND] - u64::from(k::ROUND_FIRST),
        ..Outcome::default()
    })
}

/// What is alive of so many constraints.
pub(crate) fn constraints(
    memory: &Memory,
    program: &Program,
    stored: usize,
) -> Result<Vec<Fact>, DriverError> {
    let (stream, width) = (&memory.stream, memory.layout.width as usize);
    let kinds = download(stream, &memory.store.kinds, stored)?;
    let values = download(stream, &memory.store.values, stored * width)?;
    let types = download(stream, &memory.store.types, stored * width)?;
    let mut store = Vec::new();
    for (id, kind) in kinds.iter().enumerate().filter(|(_, kind)| **kind != NOWHERE) {
        let arity = program.kinds[*kind as usize].types.len();
        let arguments = (id * width..id * width + arity).map(|at| match u32::from(types[at]) {
            k::WHOLE => Value::Int(values[at].cast_signed()),
            k::FLOAT => Value::Float(f64::from_bits(values[at])),
            _ => Value::Atom(u32::try_from(values[at]).expect("atoms have numbers of 32 bits")),
        });
        store.push((*kind as usize, arguments.collect()));
    }
    Ok(store)
}

/// The error of a rule.
pub(crate) fn error_of(program: &Program, told: u64) -> Error {
    let rule = usize::try_from(told >> 8).ok().and_then(|rule| program.rules.get(rule));
    let kind =
        |found: &str, wanted| rules::Error::Type { what: "arithmetic", found: found.to_owned(), wanted };
    let name = || rule.map_or_else(String::new, |rule| rule.name.clone());
    let error = match u32::try_from(told & 0xff).unwrap_or_default() {
        k::TOO_NEAR => return Error::TooNear { rule: name() },
        k::TOO_WIDE => rules::Error::Number("a whole number is beyond 64 bits"),
        k::BY_ZERO => rules::Error::Number("a division by zero"),
        k::TOO_LARGE => rules::Error::Number("a float is too large"),
        k::NOT_A_NUMBER => kind("an atom", "a function or a number"),
        k::NOT_WHOLE => kind("a float", "a whole number"),
        _ => rules::Error::Number("a function has no value there"),
    };
    Error::Rules { rule: rule.map(|rule| rule.name.clone()), error }
}

impl Program {
    /// An outcome as the processor's engine tells it.
    #[must_use]
    pub fn answer(&self, outcome: Outcome) -> Answer {
        let Outcome { is_success, store, applications, .. } = outcome;
        let mut store: Vec<_> =
            store.iter().map(|(kind, arguments)| self.text_of(*kind, arguments)).collect();
        store.sort_unstable();
        Answer { is_success, store, bindings: Vec::new(), applications }
    }
}
