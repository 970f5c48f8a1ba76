//! Rules at work: facts come one at a time, and what they become is taken out.

use std::sync::Arc;

use crate::code::Callable;
use crate::machine::{Error, Machine, Setting};
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

/// A fact that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    kind: u32,
    slot: u32,
    id: u64,
}

/// Words of terms from which on those that nobody needs are forgotten.
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

    /// Adds a fact, and applies rules until none applies. Returns none where that failed: then nothing of it is left.
    ///
    /// # Errors
    /// A bound, or an error of the program. Nothing of the fact is left then.
    pub fn add(&mut self, kind: Kind, arguments: &[Value]) -> Result<Option<Fact>, Error> {
        let words = self.machine.words() + self.machine.atoms.count();
        if words > self.due {
            self.machine.compact();
            self.due = COMPACT + 2 * (self.machine.words() + self.machine.atoms.count());
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
        let added = self.machine.step(kind.0, &arguments)?;
        Ok(added.map(|(slot, id)| Fact { kind: kind.0, slot, id }))
    }

    /// Takes a fact away. Returns whether it was still there.
    pub fn remove(&mut self, fact: Fact) -> bool {
        self.machine.take_out(fact.kind, fact.slot, fact.id)
    }

    /// Takes all constraints of a kind out, the oldest first.
    pub fn take(&mut self, kind: Kind) -> Vec<Vec<Value>> {
        let found = self.machine.of_kind(kind.0);
        let mut taken = Vec::new();
        for (slot, id) in found {
            taken
                .push(self.machine.arguments_of(kind.0, slot).iter().map(|term| self.value(*term)).collect());
            self.machine.take_out(kind.0, slot, id);
        }
        taken
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
