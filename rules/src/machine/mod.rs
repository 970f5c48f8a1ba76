//! The machine: it adds constraints, applies rules, and goes back where a goal fails.
//!
//! Frames lie on a stack and are found by the number of their first word. A frame has its caller's frame, where that goes on, its own size,
//! and slots. Frames below the top of a choice are not written to.

mod arithmetic;
mod builtins;
mod calls;
mod causes;
mod choices;
mod facts;
mod heap;
mod image;
mod matching;
mod occurrences;
mod restore;
mod store;
mod unification;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

pub(crate) use builtins::Builtin;
pub use causes::ORIGINS_MAX;
pub(crate) use heap::Heap;
pub(crate) use image::Image;
pub use restore::BadSnapshot;

use crate::code::{Arg, Callable, Code, Instruction};
use crate::program::Program;
use crate::term::{Atoms, Term};
use causes::Causes;
use store::{Constraints, State};

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rules applied and predicates called.
    pub steps: u64,
    /// Constraints that are looked at for a head of a rule.
    pub looks: u64,
    /// Words of terms, of frames and of choices.
    pub words: usize,
    /// Constraints that are there at once, dead ones included that are not forgotten yet.
    pub constraints: usize,
}

impl Bounds {
    /// No bound.
    pub const NONE: Self =
        Self { steps: u64::MAX, looks: u64::MAX, words: usize::MAX, constraints: usize::MAX };
}

impl Default for Bounds {
    fn default() -> Self {
        Self { steps: u64::MAX, looks: u64::MAX, words: 1 << 27, constraints: 1 << 24 }
    }
}

/// What a machine is given from outside.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What a run may take.
    pub bounds: Bounds,
    /// Metres between two places, each longitude and latitude: `distance/4`.
    pub distance: fn([f64; 2], [f64; 2]) -> f64,
    /// A run ends soon after this is set.
    pub stop: Arc<AtomicBool>,
}

impl Default for Setting {
    /// Bounds that are wide, and distances on a plane.
    fn default() -> Self {
        let distance = |from: [f64; 2], to: [f64; 2]| (to[0] - from[0]).hypot(to[1] - from[1]);
        Self { bounds: Bounds::default(), distance, stop: Arc::default() }
    }
}

/// Why a run ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A bound on steps.
    #[error("more than {0} steps")]
    Steps(u64),
    /// A bound on constraints that are looked at, and on terms.
    #[error("more than {0} constraints, or 16 times as many words of terms, were looked at")]
    Looks(u64),
    /// A bound on memory.
    #[error("more than {0} words of terms and frames")]
    Words(usize),
    /// A bound on constraints.
    #[error("more than {0} constraints")]
    Constraints(usize),
    /// A variable without a value in an expression, or where a value is needed.
    #[error("{0}: a variable has no value")]
    Unbound(&'static str),
    /// A value that does not belong there.
    #[error("{what}: {found} is not {wanted}")]
    Type {
        /// Where.
        what: &'static str,
        /// The value, as text.
        found: String,
        /// What belongs there.
        wanted: &'static str,
    },
    /// A whole number beyond 64 bits, a division by zero and the like.
    #[error("{0}")]
    Number(&'static str),
    /// A call of what is nowhere.
    #[error("{0}/{1} is defined nowhere")]
    Undefined(String, usize),
    /// A stop from outside.
    #[error("stopped")]
    Stopped,
    /// Calls within calls that need a run of their own.
    #[error("guards, findall and the like are nested deeper than {0}")]
    Nesting(u32),
}

/// Words of a frame before its slots.
const HEADER: usize = 3;
/// Words of the stack that are there when a fact comes, so that what a bound refuses does not depend on the facts before.
const STACK: usize = 1_024;
/// Runs within runs, at most.
const NESTING_MAX: u32 = 100;
/// Cells of terms that may be walked through for each look.
const WALK_PER_LOOK: u64 = 16;

fn walk_max(bounds: &Bounds) -> u64 {
    bounds.looks.saturating_mul(WALK_PER_LOOK)
}

/// What is undone when a goal fails.
#[derive(Debug)]
enum Undo {
    Cell(u32, Term),
    Create(u32, u32),
    Store(u32, u32),
    /// A constraint died, and what it was before.
    Kill(u32, u32, State),
    Late(u32, u32, u32),
    Watch(u32, u32),
    /// A variable got the last list.
    List(u32),
    History(Arc<[u64]>),
}

/// Where a choice goes on.
#[derive(Debug)]
enum Alternative {
    /// The code there, in the frame of the choice.
    Code(u32),
    /// The clauses of a predicate from that one on, with the arguments from there on.
    Clauses { predicate: u32, clause: u32, arguments: usize },
    /// Nowhere: a run ends.
    End,
}

#[derive(Debug)]
struct Choice {
    alternative: Alternative,
    undo: usize,
    cells: usize,
    /// The first word of the stack that is free.
    top: usize,
    frame: usize,
    /// Where the call goes on that has clauses left.
    next: u32,
    /// The cause of what that call does.
    cause: u32,
}

/// A program at work.
#[derive(Debug)]
pub(crate) struct Machine {
    program: Arc<Program>,
    pub(crate) atoms: Atoms,
    pub(crate) heap: Heap,
    setting: Setting,
    stack: Vec<Term>,
    undo: Vec<Undo>,
    choices: Vec<Choice>,
    /// Arguments of choices.
    kept: Vec<Term>,
    /// Arguments of the call at hand.
    arguments: Vec<Term>,
    constraints: Vec<Constraints>,
    /// Constraints that wait for a variable, by list.
    watched: Vec<Vec<(u32, u32)>>,
    /// Lists whose variable got a value.
    woken: Vec<u32>,
    history: HashSet<Arc<[u64]>, RandomState>,
    /// What the history has of a constraint.
    histories: HashMap<u64, Vec<Arc<[u64]>>, RandomState>,
    /// How many entries that is, those included that the history has no more.
    history_links: usize,
    next_id: u64,
    causes: Causes,
    /// The origin of the fact at hand; none where causes are not asked for.
    origin: Option<u64>,
    /// Facts that may still be there, by their ids.
    facts: HashMap<u64, (u32, u32), RandomState>,
    /// Words that were forgotten before they were due: they count until then, so that bounds hold as if they were there.
    garbage: usize,
    steps: u64,
    /// Bytes of texts that builtins made for the fact at hand.
    text_bytes: usize,
    pub(crate) applications: u64,
    nesting: u32,
    /// The frame at hand, and the next instruction.
    frame: usize,
    at: u32,
    alive: usize,
    /// Constraints looked at.
    looks: u64,
}

impl Machine {
    pub(crate) fn new(program: &Arc<Program>, setting: Setting) -> Self {
        Self {
            atoms: program.atoms.clone(),
            heap: Heap::with_walk_max(walk_max(&setting.bounds)),
            setting,
            stack: Self::empty_stack(),
            undo: Vec::new(),
            choices: Vec::new(),
            kept: Vec::new(),
            arguments: Vec::new(),
            constraints: program.code.kinds.iter().map(Constraints::new).collect(),
            watched: Vec::new(),
            woken: Vec::new(),
            history: HashSet::default(),
            histories: HashMap::default(),
            history_links: 0,
            next_id: 0,
            causes: Causes::default(),
            origin: None,
            facts: HashMap::default(),
            garbage: 0,
            steps: 0,
            text_bytes: 0,
            applications: 0,
            nesting: 0,
            frame: 0,
            at: Code::STOP,
            alive: 0,
            looks: 0,
            program: Arc::clone(program),
        }
    }

    fn empty_stack() -> Vec<Term> {
        let mut stack = vec![Term::Int(0); STACK];
        stack[2] = Term::Frame(index(HEADER), Causes::NONE);
        stack
    }

    /// Runs a predicate to its first answer, and returns whether there is one.
    pub(crate) fn run(&mut self, name: &str, arguments: &[Term]) -> Result<bool, Error> {
        let program = Arc::clone(&self.program);
        let name = self.atoms.intern(name);
        let Some(Callable::Predicate(predicate)) = program.callable(name, arguments.len()) else {
            return Err(Error::Undefined(self.atoms.name(name).to_owned(), arguments.len()));
        };
        self.arguments.clear();
        self.arguments.extend_from_slice(arguments);
        self.frame = 0;
        if !self.call(&program.code, predicate, 0, Code::STOP)? {
            return Ok(false);
        }
        self.go_on(&program.code, 0)
    }

    /// The first free word behind a frame.
    fn top(&self, frame: usize) -> usize {
        let top = frame + self.size(frame);
        self.choices.last().map_or(top, |choice| top.max(choice.top))
    }

    fn size(&self, frame: usize) -> usize {
        match self.stack[frame + 2] {
            Term::Frame(size, _) => size as usize,
            word => unreachable!("a frame has a size, and not {word:?}"),
        }
    }

    /// The cause of what is done in a frame.
    fn cause(&self, frame: usize) -> u32 {
        match self.stack[frame + 2] {
            Term::Frame(_, cause) => cause,
            word => unreachable!("a frame has a cause, and not {word:?}"),
        }
    }

    /// Words of terms and causes.
    pub(crate) fn words(&self) -> usize {
        self.heap.cells.len() + self.causes.words() + self.garbage
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "these words are numbers of words"
    )]
    fn caller(&self, frame: usize) -> (usize, u32) {
        match (self.stack[frame], self.stack[frame + 1]) {
            (Term::Int(frame), Term::Int(at)) => (frame as usize, at as u32),
            words => unreachable!("a frame begins with its caller, and not with {words:?}"),
        }
    }

    /// Makes a frame of that size at the first free word behind another.
    fn push_frame(&mut self, caller: usize, next: u32, size: usize, cause: u32) -> Result<usize, Error> {
        let frame = self.top(caller);
        self.make_frame(frame, caller, next, size, cause)?;
        Ok(frame)
    }

    #[expect(clippy::cast_possible_wrap, reason = "a bound keeps words below 2^32")]
    fn make_frame(
        &mut self,
        frame: usize,
        caller: usize,
        next: u32,
        size: usize,
        cause: u32,
    ) -> Result<(), Error> {
        if self.stack.len() < frame + size {
            if frame + size + self.words() > self.setting.bounds.words {
                return Err(Error::Words(self.setting.bounds.words));
            }
            let length =
                (frame + size).max(self.stack.len() * 2).min(self.setting.bounds.words.max(frame + size));
            self.stack.resize(length, Term::Int(0));
        }
        self.stack[frame] = Term::Int(caller as i64);
        self.stack[frame + 1] = Term::Int(i64::from(next));
        self.stack[frame + 2] = Term::Frame(index(size), cause);
        Ok(())
    }

    fn slot(&self, slot: u32) -> Term {
        self.stack[self.frame + HEADER + slot as usize]
    }

    fn set(&mut self, slot: u32, term: Term) {
        self.stack[self.frame + HEADER + slot as usize] = term;
    }

    pub(crate) fn bound(&mut self, bounds: Bounds) {
        self.heap.bound(walk_max(&bounds));
        self.setting.bounds = bounds;
    }

    /// Counts a look. Its bound and a stop are looked for now and then.
    #[inline]
    fn look_up(&mut self) -> Result<(), Error> {
        self.looks += 1;
        if self.looks.is_multiple_of(4_096) {
            self.look_around()?;
        }
        Ok(())
    }

    #[cold]
    fn look_around(&self) -> Result<(), Error> {
        if self.looks > self.setting.bounds.looks {
            return Err(Error::Looks(self.setting.bounds.looks));
        }
        if self.setting.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }

    /// The error that a walk that ended early is.
    #[inline]
    pub(crate) fn check_walk(&self) -> Result<(), Error> {
        if self.heap.is_worn() { Err(Error::Looks(self.setting.bounds.looks)) } else { Ok(()) }
    }

    fn count_step(&mut self) -> Result<(), Error> {
        self.look_up()?;
        self.steps += 1;
        if self.steps > self.setting.bounds.steps {
            return Err(Error::Steps(self.setting.bounds.steps));
        }
        self.check_words(0)
    }

    /// Refuses as many words more where that is beyond the bound.
    fn check_words(&self, more: usize) -> Result<(), Error> {
        let max = self.setting.bounds.words;
        if self.words() + self.text_bytes + more > max { Err(Error::Words(max)) } else { Ok(()) }
    }

    /// Lets woken constraints run before what is next: kind by kind as they are declared, the oldest first.
    fn wake_up(&mut self) -> Result<(), Error> {
        self.check_walk()?;
        let mut woken = Vec::new();
        for list in std::mem::take(&mut self.woken) {
            for &(kind, slot) in &self.watched[list as usize] {
                let suspension = self.constraints[kind as usize].suspensions[slot as usize];
                if suspension.state == State::Stored {
                    woken.push((kind, suspension.id, slot));
                }
            }
        }
        woken.sort_unstable();
        woken.dedup();
        if woken.is_empty() {
            return Ok(());
        }
        for &(kind, _, slot) in &woken {
            // An index goes through them and back, whatever they are.
            let arguments = self.constraints[kind as usize].arguments(slot);
            arguments.iter().for_each(|argument| _ = self.heap.is_ground(*argument));
            self.check_walk()?;
            let (undo, is_undone) = (&mut self.undo, !self.choices.is_empty());
            self.constraints[kind as usize].insert_late(&self.heap, slot, |at| {
                if is_undone {
                    undo.push(Undo::Late(kind, slot, index(at)));
                }
            });
        }
        // The frame has the next one's number in the list, and the list.
        let frame = self.push_frame(self.frame, self.at, HEADER + 1 + woken.len(), Causes::NONE)?;
        self.stack[frame + HEADER] = Term::Int(0);
        for (idx, (kind, _, slot)) in woken.into_iter().enumerate() {
            self.stack[frame + HEADER + 1 + idx] = Term::Suspension(kind, slot);
        }
        (self.frame, self.at) = (frame, Code::WAKE);
        Ok(())
    }

    /// Runs from the next instruction to an answer. `base` choices are not the run's own.
    fn go_on(&mut self, code: &Code, base: usize) -> Result<bool, Error> {
        loop {
            self.check_walk()?;
            let at = self.at;
            self.at += 1;
            let is_fine = match &code.instructions[at as usize] {
                Instruction::Stop => return Ok(true),
                instruction => self.execute(code, instruction)?,
            };
            if !is_fine {
                self.woken.clear();
                if self.choices.len() < base || !self.fail(code)? {
                    return Ok(false);
                }
            } else if !self.woken.is_empty() {
                self.wake_up()?;
            }
        }
    }

    fn execute(&mut self, code: &Code, instruction: &Instruction) -> Result<bool, Error> {
        match instruction {
            Instruction::Call { predicate, arguments, is_last } => {
                self.load(arguments);
                let (caller, next) = if *is_last { self.caller(self.frame) } else { (self.frame, self.at) };
                return self.call(code, *predicate, caller, next);
            }
            Instruction::Add { kind, arguments, is_last } => {
                self.load(arguments);
                let (caller, next) = if *is_last { self.caller(self.frame) } else { (self.frame, self.at) };
                return self.add(code, *kind, caller, next);
            }
            Instruction::CallTerm { arguments, is_last } => {
                self.load(arguments);
                let (caller, next) = if *is_last { self.caller(self.frame) } else { (self.frame, self.at) };
                return self.call_term(code, caller, next);
            }
            Instruction::Builtin(builtin, arguments) => {
                self.load(arguments);
                let arguments = std::mem::take(&mut self.arguments);
                let holds = self.builtin(code, *builtin, &arguments);
                self.arguments = arguments;
                self.check_words(0)?;
                return holds;
            }
            Instruction::Unify(left, right) => {
                if let Arg::New(slot) = left {
                    let value = self.build(right);
                    self.set(*slot, value);
                } else {
                    let value = self.build(right);
                    return Ok(self.unify_arg(left, value));
                }
            }
            Instruction::Is(to, expression) => {
                let value = self.evaluate(expression)?;
                return Ok(self.unify_arg(to, value));
            }
            Instruction::Compare(comparison, left, right) => return self.compares(*comparison, left, right),
            Instruction::Fresh(slot) => {
                let variable = self.heap.fresh();
                self.set(*slot, variable);
            }
            Instruction::Mark(slot) => {
                self.set(*slot, Term::Int(i64::try_from(self.choices.len()).unwrap_or(i64::MAX)))
            }
            Instruction::Cut(slot) => {
                let count = self.marked(*slot);
                self.cut(count);
            }
            Instruction::SoftCut(slot) => {
                let count = self.marked(*slot);
                if let Some(choice) = self.choices.get_mut(count) {
                    choice.alternative = Alternative::Code(Code::FAIL);
                }
            }
            Instruction::Try(otherwise) => {
                let top = self.top(self.frame);
                self.choices.push(Choice {
                    alternative: Alternative::Code(*otherwise),
                    undo: self.undo.len(),
                    cells: self.heap.cells.len(),
                    top,
                    frame: self.frame,
                    next: 0,
                    cause: Causes::NONE,
                });
            }
            Instruction::Jump(at) => self.at = *at,
            Instruction::Fail => return Ok(false),
            Instruction::Proceed => (self.frame, self.at) = self.caller(self.frame),
            Instruction::Resume => return self.resume(code),
            Instruction::Wake => return self.wake(code),
            Instruction::Stop => {}
            Instruction::Undefined(name, arity) => {
                return Err(Error::Undefined(self.atoms.name(*name).to_owned(), *arity));
            }
        }
        Ok(true)
    }

    fn marked(&self, slot: u32) -> usize {
        match self.slot(slot) {
            Term::Int(count) => usize::try_from(count).unwrap_or_default(),
            word => unreachable!("a mark is a number, and not {word:?}"),
        }
    }
}

fn index(count: usize) -> u32 {
    u32::try_from(count).expect("a bound keeps counts below 2^32")
}
