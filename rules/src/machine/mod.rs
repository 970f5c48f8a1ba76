//! The machine: it adds constraints, applies rules, and goes back where a goal fails.
//!
//! Frames lie on a stack and are found by the number of their first word. A frame has its caller's frame, where that goes on, its own size,
//! and slots. Frames below the top of a choice are not written to.

mod arithmetic;
mod builtins;
mod heap;
mod occurrences;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

pub(crate) use builtins::Builtin;
pub(crate) use heap::Heap;

use crate::code::{Arg, Callable, Code, Instruction, Key};
use crate::program::Program;
use crate::term::{Atom, Atoms, Term};
use store::{Constraints, State};

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Rules applied and predicates called.
    pub steps: u64,
    /// Words of terms, of frames and of choices.
    pub words: usize,
    /// Constraints that are there at once, dead ones included that are not forgotten yet.
    pub constraints: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { steps: u64::MAX, words: 1 << 27, constraints: 1 << 24 }
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
/// Runs within runs, at most.
const NESTING_MAX: u32 = 100;

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
    History(Box<[u64]>),
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
    history: HashSet<Box<[u64]>, RandomState>,
    /// What the history has of a constraint.
    histories: HashMap<u64, Vec<Box<[u64]>>, RandomState>,
    next_id: u64,
    steps: u64,
    pub(crate) applications: u64,
    nesting: u32,
    /// The frame at hand, and the next instruction.
    frame: usize,
    at: u32,
    alive: usize,
    /// Constraints looked at since the stop was looked at.
    looks: u32,
}

impl Machine {
    pub(crate) fn new(program: &Arc<Program>, setting: Setting) -> Self {
        Self {
            atoms: program.atoms.clone(),
            heap: Heap::default(),
            setting,
            stack: vec![Term::Int(0), Term::Int(0), Term::Int(HEADER as i64)],
            undo: Vec::new(),
            choices: Vec::new(),
            kept: Vec::new(),
            arguments: Vec::new(),
            constraints: program.code.kinds.iter().map(Constraints::new).collect(),
            watched: Vec::new(),
            woken: Vec::new(),
            history: HashSet::default(),
            histories: HashMap::default(),
            next_id: 0,
            steps: 0,
            applications: 0,
            nesting: 0,
            frame: 0,
            at: Code::STOP,
            alive: 0,
            looks: 0,
            program: Arc::clone(program),
        }
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

    /// Adds a constraint and runs to the end of what that causes. What fails, or ends with an error, is undone whole. Returns the slot and
    /// the id of the constraint; none where it failed.
    pub(crate) fn step(&mut self, kind: u32, arguments: &[Term]) -> Result<Option<(u32, u64)>, Error> {
        let program = Arc::clone(&self.program);
        let (frame, next) = (0, Code::STOP);
        let (undo, cells, top) = (self.undo.len(), self.heap.cells.len(), self.top(0));
        self.choices.push(Choice { alternative: Alternative::End, undo, cells, top, frame, next });
        self.steps = 0;
        self.arguments.clear();
        self.arguments.extend_from_slice(arguments);
        let id = self.next_id + 1;
        let mut ended = self.add(&program.code, kind, frame, next);
        if matches!(ended, Ok(true)) {
            ended = self.go_on(&program.code, 1);
        }
        if !matches!(ended, Ok(true)) {
            // Choices of the step are above its own.
            while self.choices.len() > 1 {
                self.undo_to_choice();
                self.drop_choice();
            }
            self.undo_to_choice();
            self.nesting = 0;
        }
        let slot = self.undo.iter().find_map(|undo| match undo {
            Undo::Create(created, slot) if *created == kind => Some(*slot),
            _ => None,
        });
        self.frame = 0;
        self.cut(0);
        Ok(if ended? { slot.map(|slot| (slot, id)) } else { None })
    }

    /// Takes a constraint out, if it is the one of that id and still there.
    pub(crate) fn take_out(&mut self, kind: u32, slot: u32, id: u64) -> bool {
        let there = self.constraints[kind as usize].suspensions.get(slot as usize);
        let is_there =
            there.is_some_and(|suspension| suspension.state == State::Stored && suspension.id == id);
        if is_there {
            self.kill(kind, slot);
        }
        is_there
    }

    /// The constraints of a kind that are stored, the oldest first: slot, id and arguments.
    pub(crate) fn of_kind(&self, kind: u32) -> Vec<(u32, u64)> {
        let constraints = &self.constraints[kind as usize];
        let mut found: Vec<_> =
            constraints.stored().map(|slot| (slot, constraints.suspensions[slot as usize].id)).collect();
        found.sort_unstable_by_key(|(_, id)| *id);
        found
    }

    pub(crate) fn arguments_of(&self, kind: u32, slot: u32) -> &[Term] {
        self.constraints[kind as usize].arguments(slot)
    }

    pub(crate) fn count(&self) -> usize {
        self.alive
    }

    /// Forgets terms, atoms and slots that no constraint has any more. Only between steps.
    pub(crate) fn compact(&mut self) {
        debug_assert!(self.choices.is_empty(), "a step is at work");
        self.frame = 0;
        self.reclaim();
        let mut old = std::mem::take(&mut self.heap);
        let mut moved: HashMap<u32, Term, RandomState> = HashMap::default();
        for constraints in &mut self.constraints {
            let slots: Vec<_> = constraints.stored().collect();
            for slot in slots {
                for argument in constraints.arguments_mut(slot) {
                    *argument = self.heap.take_over(&old, *argument, &mut moved);
                }
            }
        }
        old.cells.clear();
        let base = self.program.atoms.count();
        let mut atoms = self.program.atoms.clone();
        let mut renamed = |name: &mut Atom| {
            if name.0 as usize >= base {
                *name = atoms.intern(self.atoms.name(*name));
            }
        };
        for constraints in &mut self.constraints {
            constraints.each_argument(|term| {
                if let Term::Atom(name) = term {
                    renamed(name)
                }
            });
        }
        for cell in &mut self.heap.cells {
            if let Term::Atom(name) | Term::Functor(name, _) = cell {
                renamed(name);
            }
        }
        self.atoms = atoms;
        let mut watched = Vec::new();
        for cell in &mut self.heap.cells {
            if let Term::Watched(list) = cell {
                let waiting = std::mem::take(&mut self.watched[*list as usize]);
                *list = index(watched.len());
                watched.push(waiting);
            }
        }
        self.watched = watched;
        for constraints in &mut self.constraints {
            constraints.build_again(&self.heap);
        }
    }

    /// Words of terms and of the stack.
    pub(crate) fn words(&self) -> usize {
        self.heap.cells.len() + self.stack.len()
    }

    /// The stored constraints: kind and arguments.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (u32, &[Term])> {
        self.constraints.iter().zip(0..).flat_map(|(constraints, kind)| {
            constraints.stored().map(move |slot| (kind, constraints.arguments(slot)))
        })
    }

    /// The first free word behind a frame.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of frames are small")]
    fn top(&self, frame: usize) -> usize {
        let Term::Int(size) = self.stack[frame + 2] else { unreachable!("a frame has a size") };
        let top = frame + size as usize;
        self.choices.last().map_or(top, |choice| top.max(choice.top))
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
    fn push_frame(&mut self, caller: usize, next: u32, size: usize) -> Result<usize, Error> {
        let frame = self.top(caller);
        self.make_frame(frame, caller, next, size)?;
        Ok(frame)
    }

    #[expect(clippy::cast_possible_wrap, reason = "a bound keeps words below 2^32")]
    fn make_frame(&mut self, frame: usize, caller: usize, next: u32, size: usize) -> Result<(), Error> {
        if self.stack.len() < frame + size {
            if frame + size + self.heap.cells.len() > self.setting.bounds.words {
                return Err(Error::Words(self.setting.bounds.words));
            }
            let length =
                (frame + size).max(self.stack.len() * 2).min(self.setting.bounds.words.max(frame + size));
            self.stack.resize(length, Term::Int(0));
        }
        self.stack[frame] = Term::Int(caller as i64);
        self.stack[frame + 1] = Term::Int(i64::from(next));
        self.stack[frame + 2] = Term::Int(size as i64);
        Ok(())
    }

    fn slot(&self, slot: u32) -> Term {
        self.stack[self.frame + HEADER + slot as usize]
    }

    fn set(&mut self, slot: u32, term: Term) {
        self.stack[self.frame + HEADER + slot as usize] = term;
    }

    /// Looks now and then whether a stop is wanted.
    #[inline]
    fn look_up(&mut self) -> Result<(), Error> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(4_096) && self.setting.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    fn count_step(&mut self) -> Result<(), Error> {
        self.look_up()?;
        self.steps += 1;
        if self.steps > self.setting.bounds.steps {
            return Err(Error::Steps(self.setting.bounds.steps));
        }
        if self.heap.cells.len() > self.setting.bounds.words {
            return Err(Error::Words(self.setting.bounds.words));
        }
        Ok(())
    }

    /// Makes the term of an argument.
    fn build(&mut self, arg: &Arg) -> Term {
        match arg {
            Arg::Const(term) => *term,
            Arg::Slot(slot) => self.heap.resolve(self.slot(*slot)),
            Arg::New(slot) => {
                let variable = self.heap.fresh();
                self.set(*slot, variable);
                variable
            }
            Arg::Void => self.heap.fresh(),
            Arg::Compound(name, parts) => {
                let at = self.heap.top();
                let count = parts.len();
                self.heap.cells.push(Term::Functor(*name, u32::try_from(count).unwrap_or(u32::MAX)));
                self.heap.cells.extend(std::iter::repeat_n(Term::Int(0), count));
                for (part, cell) in parts.iter().zip(at + 1..) {
                    self.heap.cells[cell as usize] = match part {
                        Arg::New(slot) => {
                            self.set(*slot, Term::Var(cell));
                            Term::Var(cell)
                        }
                        Arg::Void => Term::Var(cell),
                        part => self.build(part),
                    };
                }
                Term::Compound(at)
            }
            Arg::List(parts, tail) => {
                let parts: Vec<_> = parts.iter().map(|part| self.build(part)).collect();
                let tail = self.build(tail);
                self.heap.list(parts.into_iter(), tail)
            }
        }
    }

    /// Gives a variable a value.
    ///
    /// Returns false for a term that would contain itself.
    fn bind(&mut self, cell: u32, value: Term) -> bool {
        if matches!(value, Term::Compound(_)) && self.heap.contains(value, cell) {
            return false;
        }
        let before = self.heap.cells[cell as usize];
        if !self.choices.is_empty() {
            self.undo.push(Undo::Cell(cell, before));
        }
        self.heap.cells[cell as usize] = value;
        let Term::Watched(list) = before else { return true };
        let Term::Var(other) = value else {
            self.woken.push(list);
            return true;
        };
        match self.heap.cells[other as usize] {
            Term::Watched(others) => {
                let count = index(self.watched[others as usize].len());
                if !self.choices.is_empty() {
                    self.undo.push(Undo::Watch(others, count));
                }
                let more = self.watched[list as usize].clone();
                self.watched[others as usize].extend(more);
                self.woken.push(others);
            }
            plain => {
                if !self.choices.is_empty() {
                    self.undo.push(Undo::Cell(other, plain));
                }
                self.heap.cells[other as usize] = before;
            }
        }
        true
    }

    /// Makes two terms one.
    fn unify(&mut self, left: Term, right: Term) -> bool {
        let mut open = Vec::new();
        let (mut left, mut right) = (left, right);
        loop {
            match (self.heap.resolve(left), self.heap.resolve(right)) {
                (Term::Var(left), Term::Var(right)) => {
                    // The younger one goes to the older one, and one for which nobody waits to one for which somebody does.
                    let is_watched = |cell: u32| matches!(self.heap.cells[cell as usize], Term::Watched(_));
                    let (from, to) = match (is_watched(left), is_watched(right)) {
                        (true, false) => (right, left),
                        (false, true) => (left, right),
                        _ => (left.max(right), left.min(right)),
                    };
                    if from != to {
                        self.bind(from, Term::Var(to));
                    }
                }
                (Term::Var(cell), value) | (value, Term::Var(cell)) => {
                    if !self.bind(cell, value) {
                        return false;
                    }
                }
                (Term::Compound(left), Term::Compound(right)) => {
                    if left != right {
                        if self.heap.cells[left as usize] != self.heap.cells[right as usize] {
                            return false;
                        }
                        let pairs = self
                            .heap
                            .arguments(left)
                            .iter()
                            .copied()
                            .zip(self.heap.arguments(right).iter().copied());
                        open.extend(pairs.rev());
                    }
                }
                (left, right) => {
                    if !self.heap.is_same(left, right) {
                        return false;
                    }
                }
            }
            match open.pop() {
                Some(pair) => (left, right) = pair,
                None => return true,
            }
        }
    }

    /// Makes a term and an argument one.
    fn unify_arg(&mut self, arg: &Arg, term: Term) -> bool {
        match arg {
            Arg::Const(value) => match self.heap.resolve(term) {
                Term::Var(cell) => self.bind(cell, *value),
                term => self.heap.is_same(term, *value),
            },
            Arg::Slot(slot) => self.unify(self.slot(*slot), term),
            Arg::New(slot) => {
                let term = self.heap.resolve(term);
                self.set(*slot, term);
                true
            }
            Arg::Void => true,
            Arg::Compound(name, parts) => match self.heap.resolve(term) {
                Term::Compound(at) => {
                    self.heap.functor(at) == (*name, parts.len())
                        && parts.iter().enumerate().all(|(idx, part)| {
                            let argument = self.heap.cells[at as usize + 1 + idx];
                            self.unify_arg(part, argument)
                        })
                }
                Term::Var(cell) => {
                    let built = self.build(arg);
                    self.bind(cell, built)
                }
                _ => false,
            },
            Arg::List(parts, tail) => {
                let mut rest = self.heap.resolve(term);
                for (idx, part) in parts.iter().enumerate() {
                    if let Some((head, next)) = self.heap.head_and_tail(rest) {
                        if !self.unify_arg(part, head) {
                            return false;
                        }
                        rest = next;
                    } else if let Term::Var(cell) = rest {
                        let more: Vec<_> = parts[idx..].iter().map(|part| self.build(part)).collect();
                        let tail = self.build(tail);
                        let list = self.heap.list(more.into_iter(), tail);
                        return self.bind(cell, list);
                    } else {
                        return false;
                    }
                }
                self.unify_arg(tail, rest)
            }
        }
    }

    /// Calls a predicate with the arguments at hand; in the end it goes on in the caller's frame at `next`. Returns whether it did not fail.
    fn call(&mut self, code: &Code, predicate: u32, caller: usize, next: u32) -> Result<bool, Error> {
        self.count_step()?;
        self.clauses(code, predicate, 0, caller, next)
    }

    fn clauses(
        &mut self,
        code: &Code,
        predicate: u32,
        from: usize,
        caller: usize,
        next: u32,
    ) -> Result<bool, Error> {
        let clauses = &code.predicates[predicate as usize].clauses;
        let first = self.arguments.first().map(|first| self.heap.resolve(*first));
        let found = match first {
            Some(Term::Compound(at)) => {
                let (name, arity) = self.heap.functor(at);
                Some(Key::Functor(name, arity))
            }
            Some(Term::Var(_)) | None => None,
            Some(constant) => Some(Key::Constant(constant)),
        };
        let fits = |idx: &usize| match (&clauses[*idx].first, &found) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        let mut fitting = (from..clauses.len()).filter(fits);
        let Some(mut clause) = fitting.next() else { return Ok(false) };
        loop {
            let following = fitting.next();
            let is_choice = following.is_some();
            if let Some(following) = following {
                let kept = self.kept.len();
                self.kept.extend_from_slice(&self.arguments);
                let top = self.top(caller);
                self.choices.push(Choice {
                    alternative: Alternative::Clauses {
                        predicate,
                        clause: index(following),
                        arguments: kept,
                    },
                    undo: self.undo.len(),
                    cells: self.heap.cells.len(),
                    top,
                    frame: caller,
                    next,
                });
                if self.choices.len() > self.setting.bounds.words / 8 {
                    return Err(Error::Words(self.setting.bounds.words));
                }
            }
            let compiled = &clauses[clause];
            let frame = self.push_frame(caller, next, HEADER + compiled.slots as usize)?;
            self.frame = frame;
            let arguments = std::mem::take(&mut self.arguments);
            let is_unified =
                compiled.head.iter().zip(&arguments).all(|(arg, term)| self.unify_arg(arg, *term));
            self.arguments = arguments;
            if is_unified {
                match compiled.body {
                    Some(body) => self.at = body,
                    None => (self.frame, self.at) = (caller, next),
                }
                if !self.woken.is_empty() {
                    self.wake_up()?;
                }
                return Ok(true);
            }
            self.woken.clear();
            if !is_choice {
                return Ok(false);
            }
            // The next clause is tried here and now.
            self.undo_to_choice();
            self.drop_choice();
            match following {
                Some(following) => clause = following,
                None => return Ok(false),
            }
        }
    }

    fn undo_to_choice(&mut self) {
        let Some(choice) = self.choices.last() else { return };
        let (undo, cells) = (choice.undo, choice.cells);
        while self.undo.len() > undo {
            let Some(undo) = self.undo.pop() else { break };
            self.take_back(undo);
        }
        self.heap.cells.truncate(cells);
        self.woken.clear();
    }

    fn take_back(&mut self, undo: Undo) {
        match undo {
            Undo::Cell(cell, before) => self.heap.cells[cell as usize] = before,
            Undo::Create(kind, slot) => {
                let constraints = &mut self.constraints[kind as usize];
                constraints.suspensions[slot as usize].state = State::Dead;
                constraints.dead.push(slot);
                self.alive -= 1;
            }
            Undo::Store(kind, slot) => {
                let constraints = &mut self.constraints[kind as usize];
                constraints.withdraw(&self.heap, slot);
                constraints.suspensions[slot as usize].state = State::New;
            }
            Undo::Kill(kind, slot, before) => {
                let constraints = &mut self.constraints[kind as usize];
                if before == State::Stored {
                    constraints.restore(&self.heap, slot);
                }
                constraints.suspensions[slot as usize].state = before;
                self.alive += 1;
            }
            Undo::Late(kind, slot, index) => {
                self.constraints[kind as usize].remove_late(&self.heap, slot, index as usize);
            }
            Undo::Watch(list, count) => self.watched[list as usize].truncate(count as usize),
            Undo::History(entry) => {
                self.history.remove(&entry);
            }
        }
    }

    fn drop_choice(&mut self) {
        if let Some(Choice { alternative: Alternative::Clauses { arguments, .. }, .. }) = self.choices.pop() {
            self.kept.truncate(arguments);
        }
    }

    /// Drops all choices but the first ones.
    fn cut(&mut self, count: usize) {
        while self.choices.len() > count {
            self.drop_choice();
        }
        if self.choices.is_empty() {
            for undo in std::mem::take(&mut self.undo) {
                if let Undo::Kill(kind, slot, _) = undo {
                    self.constraints[kind as usize].dead.push(slot);
                    let id = self.constraints[kind as usize].suspensions[slot as usize].id;
                    self.forget(id);
                }
            }
        }
    }

    /// Drops what the history has of a constraint.
    fn forget(&mut self, id: u64) {
        if !self.histories.is_empty() {
            for entry in self.histories.remove(&id).unwrap_or_default() {
                self.history.remove(&entry);
            }
        }
    }

    /// Goes back to the last choice. Returns false where that ends the run.
    fn fail(&mut self, code: &Code) -> Result<bool, Error> {
        loop {
            self.undo_to_choice();
            let Some(choice) = self.choices.last() else { return Ok(false) };
            let (frame, next) = (choice.frame, choice.next);
            match choice.alternative {
                Alternative::End => return Ok(false),
                Alternative::Code(at) => {
                    self.drop_choice();
                    (self.frame, self.at) = (frame, at);
                    return Ok(true);
                }
                Alternative::Clauses { predicate, clause, arguments } => {
                    self.arguments.clear();
                    self.arguments.extend_from_slice(&self.kept[arguments..]);
                    self.drop_choice();
                    if self.clauses(code, predicate, clause as usize, frame, next)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Runs code in the frame at hand to its first answer, within another run. Choices that it leaves are dropped.
    fn nested(&mut self, code: &Code, at: u32) -> Result<bool, Error> {
        if self.nesting == NESTING_MAX {
            return Err(Error::Nesting(NESTING_MAX));
        }
        let (frame, next) = (self.frame, self.at);
        let (count, top) = (self.choices.len(), self.top(self.frame));
        let (undo, cells) = (self.undo.len(), self.heap.cells.len());
        self.choices.push(Choice { alternative: Alternative::End, undo, cells, top, frame, next });
        self.at = at;
        self.nesting += 1;
        let has_answer = self.go_on(code, count + 1);
        self.nesting -= 1;
        let has_answer = has_answer?;
        self.cut(count);
        (self.frame, self.at) = (frame, next);
        Ok(has_answer)
    }

    /// Lets woken constraints run before what is next.
    fn wake_up(&mut self) -> Result<(), Error> {
        let mut woken = Vec::new();
        for list in std::mem::take(&mut self.woken) {
            for &(kind, slot) in &self.watched[list as usize] {
                let suspension = self.constraints[kind as usize].suspensions[slot as usize];
                if suspension.state == State::Stored {
                    woken.push((suspension.id, kind, slot));
                }
            }
        }
        woken.sort_unstable();
        woken.dedup();
        if woken.is_empty() {
            return Ok(());
        }
        for &(_, kind, slot) in &woken {
            let (undo, is_undone) = (&mut self.undo, !self.choices.is_empty());
            self.constraints[kind as usize].insert_late(&self.heap, slot, |at| {
                if is_undone {
                    undo.push(Undo::Late(kind, slot, index(at)));
                }
            });
        }
        // The frame has the next one's number in the list, and the list.
        let frame = self.push_frame(self.frame, self.at, HEADER + 1 + woken.len())?;
        self.stack[frame + HEADER] = Term::Int(0);
        for (idx, (_, kind, slot)) in woken.into_iter().enumerate() {
            self.stack[frame + HEADER + 1 + idx] = Term::Suspension(kind, slot);
        }
        (self.frame, self.at) = (frame, Code::WAKE);
        Ok(())
    }

    /// Runs from the next instruction to an answer. `base` choices are not the run's own.
    fn go_on(&mut self, code: &Code, base: usize) -> Result<bool, Error> {
        loop {
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

    /// Makes the arguments of a call.
    fn load(&mut self, arguments: &[Arg]) {
        self.arguments.clear();
        for arg in arguments {
            let term = self.build(arg);
            self.arguments.push(term);
        }
    }

    /// Calls a term with further arguments behind its own.
    fn call_term(&mut self, code: &Code, caller: usize, next: u32) -> Result<bool, Error> {
        let goal = self.arguments[0];
        let Some((name, arity, at)) = self.heap.callable(goal) else {
            return Err(match self.heap.resolve(goal) {
                Term::Var(_) => Error::Unbound("call/N"),
                goal => Error::Type { what: "call/N", found: self.text(goal), wanted: "something to call" },
            });
        };
        let own: Vec<_> = if arity == 0 { Vec::new() } else { self.heap.arguments(at).to_vec() };
        self.arguments.splice(0..1, own);
        match self.program.callable(name, self.arguments.len()) {
            Some(Callable::Predicate(predicate)) => self.call(code, predicate, caller, next),
            Some(Callable::Constraint(kind)) => self.add(code, kind, caller, next),
            Some(Callable::Builtin(builtin)) => {
                let arguments = std::mem::take(&mut self.arguments);
                let holds = self.builtin(code, builtin, &arguments);
                self.arguments = arguments;
                (self.frame, self.at) = (caller, next);
                holds
            }
            None if self.arguments.is_empty() && matches!(name, Atom::TRUE | Atom::CUT) => {
                (self.frame, self.at) = (caller, next);
                Ok(true)
            }
            None if self.arguments.is_empty() && matches!(name, Atom::FAIL | Atom::FALSE) => Ok(false),
            None if name == Atom::CALL && !self.arguments.is_empty() => self.call_term(code, caller, next),
            None => Err(Error::Undefined(self.atoms.name(name).to_owned(), self.arguments.len())),
        }
    }
}

fn index(count: usize) -> u32 {
    u32::try_from(count).expect("a bound keeps counts below 2^32")
}
