//! Rules at work: facts come one at a time, and what they become is taken out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::Callable;
use crate::machine::{BadSnapshot, Error, Machine, Setting};
use crate::program::Program;
use crate::term::Term;

/// An argument of a constraint.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// An atom.
    Text(Arc<str>),
    /// Any other term, as `writeq` writes it. Given, it is an atom of that text.
    Term(String),
}

/// A kind of constraints of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u32);

/// A fact that was added. It outlives a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact(u64);

/// A constraint that was taken out.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// Where it comes from, ascending: [`ORIGINS_MAX`](crate::ORIGINS_MAX) of the newest.
    pub origins: Vec<u64>,
    /// The rule that added it, by its name or as `rule 3`; none for a fact.
    pub rule: Option<Arc<str>>,
}

/// Words of terms and atoms from which on those that nobody needs are forgotten.
const COMPACT: usize = 1 << 16;

/// A program with its store.
#[derive(Debug)]
pub struct Session {
    program: Arc<Program>,
    machine: Machine,
    /// Words and atoms from which on the next compaction is due.
    due: usize,
}

impl Session {
    /// A program with an empty store. The bound on steps holds for each fact.
    #[must_use]
    pub fn new(program: &Arc<Program>, setting: Setting) -> Self {
        let machine = Machine::new(program, setting);
        Self { program: Arc::clone(program), machine, due: COMPACT }
    }

    /// The kind of that name and number of arguments.
    #[must_use]
    pub fn kind(&self, name: &str, arity: usize) -> Option<Kind> {
        let name = self.program.atoms.find(name)?;
        match self.program.callable(name, arity) {
            Some(Callable::Constraint(kind)) => Some(Kind(kind)),
            _ => None,
        }
    }

    /// Goes on where another session of the program was when it took a snapshot, and does what that one does.
    ///
    /// # Errors
    /// Bytes that are none of a snapshot of a session of this program.
    pub fn restore(program: &Arc<Program>, setting: Setting, bytes: &[u8]) -> Result<Self, BadSnapshot> {
        let image = postcard::from_bytes(bytes).map_err(|_| BadSnapshot::Format)?;
        let machine = Machine::restored(program, setting, &image)?;
        let mut session = Self { program: Arc::clone(program), machine, due: 0 };
        session.set_due();
        Ok(session)
    }

    /// All that it knows, so that another one can go on from here. Its order is brought to that which the other one has. Cost: linear in
    /// the store.
    pub fn snapshot(&mut self) -> Vec<u8> {
        let image = self.machine.compact();
        self.set_due();
        postcard::to_stdvec(&image).expect("a vector takes everything, and all lengths are known")
    }

    fn words(&self) -> usize {
        self.machine.words() + self.machine.atoms.count()
    }

    fn set_due(&mut self) {
        self.due = COMPACT + 2 * self.words();
    }

    /// Adds a fact, and applies rules until none applies. What constraints come of that follow from `origin`, a number that is not smaller
    /// than those before. Returns none where that failed: then nothing of it is left.
    ///
    /// # Errors
    /// A bound, or an error of the program. Nothing of the fact is left then.
    pub fn add(&mut self, kind: Kind, arguments: &[Value], origin: u64) -> Result<Option<Fact>, Error> {
        if self.words() > self.due {
            self.machine.compact();
            self.set_due();
        }
        let arguments: Vec<_> = arguments
            .iter()
            .map(|value| match value {
                Value::Int(number) => Term::Int(*number),
                Value::Float(number) => Term::Float(*number),
                Value::Text(text) => Term::Atom(self.machine.atoms.intern(text)),
                // It is a text as well.
                Value::Term(text) => Term::Atom(self.machine.atoms.intern(text)),
            })
            .collect();
        let added = self.machine.step(kind.0, &arguments, origin)?;
        Ok(added.map(|(_, id)| Fact(id)))
    }

    /// Takes a fact away. Returns whether it was still there.
    pub fn remove(&mut self, fact: Fact) -> bool {
        self.machine.remove_fact(fact.0)
    }

    /// Whether a fact is still there.
    #[must_use]
    pub fn has(&self, fact: Fact) -> bool {
        self.machine.has_fact(fact.0)
    }

    /// Takes all constraints of a kind out, the oldest first.
    pub fn take(&mut self, kind: Kind) -> Vec<Taken> {
        let found = self.machine.of_kind(kind.0);
        let mut taken = Vec::with_capacity(found.len());
        for (slot, _) in found {
            let arguments = self.machine.arguments_of(kind.0, slot).iter().map(|term| self.value(*term));
            let (origins, rule) = self.machine.cause_of(kind.0, slot);
            let rule = rule.map(|rule| Arc::clone(&self.program.code.rules[rule as usize].name));
            taken.push(Taken { arguments: arguments.collect(), origins: origins.to_vec(), rule });
            self.machine.take_out(kind.0, slot);
        }
        taken
    }

    /// The origins that constraints follow from; some of them more than once. Cost: linear in the store.
    pub fn origins(&self) -> impl Iterator<Item = u64> {
        self.machine.origins()
    }

    /// The memory that it takes, by estimate.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.machine.bytes()
    }

    fn value(&self, term: Term) -> Value {
        match self.machine.heap.resolve(term) {
            Term::Int(number) => Value::Int(number),
            Term::Float(number) => Value::Float(number),
            Term::Atom(name) => Value::Text(self.machine.atoms.text(name)),
            term => Value::Term(self.machine.text_with(term, &|cell| format!("_{cell}"))),
        }
    }

    /// How many constraints are in the store.
    #[must_use]
    pub fn count(&self) -> usize {
        self.machine.count()
    }

    /// How many times a rule was applied.
    #[must_use]
    pub fn applications(&self) -> u64 {
        self.machine.applications
    }
}
