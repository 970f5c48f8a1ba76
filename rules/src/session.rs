//! Rules at work: facts come one at a time, and what they become is taken out.

use std::cell::RefCell;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::Callable;
use crate::machine::{BadSnapshot, Bounds, Error, Image, Machine, Setting};
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

/// A fact that was added. It is the same in a session that was restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fact(u64);

/// A constraint that was taken out.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Its arguments. Variables have numbers in the order in which they come.
    pub arguments: Vec<Value>,
    /// The origins of the facts that it follows from, ascending, [`crate::ORIGINS_MAX`] of the newest at most.
    pub origins: Vec<u64>,
    /// The rule that added it, by its name or as `rule 3`; none for a fact.
    pub rule: Option<Arc<str>>,
}

/// Words of terms from which on those that nobody needs are forgotten.
const COMPACT: usize = 1 << 16;

/// A program with its store.
#[derive(Debug)]
pub struct Session {
    program: Arc<Program>,
    machine: Machine,
    /// Words from which on the next compaction is due.
    due: usize,
    /// And words of atoms.
    atoms_due: usize,
}

/// A snapshot.
#[derive(Deserialize, Serialize)]
struct Snapshot {
    version: u32,
    kinds: Vec<(Arc<str>, usize)>,
    rules: Vec<Arc<str>>,
    due: u64,
    image: Image,
}

/// The version of snapshots that is written and read.
const VERSION: u32 = 1;

impl Session {
    /// A program with an empty store. The bound on steps holds for each fact.
    #[must_use]
    pub fn new(program: &Arc<Program>, setting: Setting) -> Self {
        let machine = Machine::new(program, setting);
        Self::of(program, machine, COMPACT)
    }

    fn of(program: &Arc<Program>, machine: Machine, due: usize) -> Self {
        let atoms_due = COMPACT + 2 * machine.atoms.words();
        Self { program: Arc::clone(program), machine, due, atoms_due }
    }

    /// All that a later session of the same program needs to go on: bytes for [`Self::restore`].
    ///
    /// A restored session finds the same things in the same order as this one, and this one goes on as if it had not been asked. Linear in
    /// the store.
    pub fn snapshot(&mut self) -> Vec<u8> {
        let kinds = self.program.code.kinds.iter();
        let snapshot = Snapshot {
            version: VERSION,
            kinds: kinds.map(|kind| (self.program.atoms.text(kind.name), kind.arity)).collect(),
            rules: self.program.code.rules.iter().map(|rule| Arc::clone(&rule.name)).collect(),
            due: self.due as u64,
            image: self.machine.image(),
        };
        let bytes = postcard::to_stdvec(&snapshot).expect("plain data is written to memory");
        self.renew(snapshot.image);
        bytes
    }

    /// Goes on where a snapshot was taken. The program has to be the same.
    ///
    /// # Errors
    /// [`BadSnapshot`] for bytes that are none of this program's.
    pub fn restore(program: &Arc<Program>, setting: Setting, bytes: &[u8]) -> Result<Self, BadSnapshot> {
        let (snapshot, behind) =
            postcard::take_from_bytes::<Snapshot>(bytes).map_err(|_| BadSnapshot::Format)?;
        let Snapshot { version, kinds, rules, due, image } = snapshot;
        if version != VERSION || !behind.is_empty() {
            return Err(BadSnapshot::Format);
        }
        let names = program.code.kinds.iter().map(|kind| (program.atoms.name(kind.name), kind.arity));
        let is_same = kinds.iter().map(|(name, arity)| (&**name, *arity)).eq(names)
            && rules.iter().eq(program.code.rules.iter().map(|rule| &rule.name));
        if !is_same {
            return Err(BadSnapshot::Program);
        }
        let machine = Machine::restored(program, setting, image)?;
        let due = usize::try_from(due).map_err(|_| BadSnapshot::Format)?;
        Ok(Self::of(program, machine, due))
    }

    /// Forgets what nobody needs, without a word of it being due earlier or later.
    fn renew(&mut self, image: Image) {
        self.machine.renew(image);
        self.atoms_due = COMPACT + 2 * self.machine.atoms.words();
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
    /// `origin` is what the caller knows it by, and is not less than those before. What rules make of the fact has it among its origins.
    ///
    /// # Errors
    /// A bound, or an error of the program. Nothing of the fact is left then.
    ///
    /// # Panics
    /// Where the kind has another number of arguments.
    pub fn add(&mut self, kind: Kind, arguments: &[Value], origin: u64) -> Result<Option<Fact>, Error> {
        assert_eq!(arguments.len(), self.program.code.kinds[kind.0 as usize].arity, "arguments of a fact");
        if self.machine.words() > self.due {
            self.machine.compact();
            self.due = COMPACT + 2 * self.machine.words();
        }
        if self.machine.atoms.words() > self.atoms_due {
            let image = self.machine.image();
            self.renew(image);
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
        Ok(self.machine.step(kind.0, &arguments, origin)?.map(Fact))
    }

    /// Sets what facts may take from now on.
    pub fn bound(&mut self, bounds: Bounds) {
        self.machine.bound(bounds);
    }

    /// Whether a fact is still there.
    #[must_use]
    pub fn has(&self, fact: Fact) -> bool {
        self.machine.has_fact(fact.0)
    }

    /// Takes a fact away. Returns whether it was still there.
    pub fn remove(&mut self, fact: Fact) -> bool {
        self.machine.remove_fact(fact.0)
    }

    /// Takes all constraints of a kind out, the oldest first.
    pub fn take(&mut self, kind: Kind) -> Vec<Taken> {
        let mut taken = Vec::new();
        for slot in self.machine.of_kind(kind.0) {
            let known = RefCell::default();
            let arguments = self.machine.arguments_of(kind.0, slot).iter();
            let arguments = arguments.map(|term| self.value(*term, &known)).collect();
            let (origins, rule) = self.machine.cause_of(kind.0, slot);
            taken.push(Taken { arguments, origins: origins.to_vec(), rule });
            self.machine.remove(kind.0, slot);
        }
        taken
    }

    /// The origins that constraints in the store have. An origin comes as often as one has it, in no order.
    pub fn origins(&self) -> impl Iterator<Item = u64> {
        self.machine.origins()
    }

    /// About how many bytes the texts take that it knows, those of its program and of facts that are gone included.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        16 * self.machine.atoms.words()
    }

    /// About how many bytes the store takes, without texts. Cheap: it counts nothing.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.machine.bytes()
    }

    fn value(&self, term: Term, known: &RefCell<Vec<u32>>) -> Value {
        match self.machine.heap.resolve(term) {
            Term::Int(number) => Value::Int(number),
            Term::Float(number) => Value::Float(number),
            Term::Atom(name) => Value::Text(self.machine.atoms.text(name)),
            term => Value::Term(self.machine.text_numbered(term, known)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A search through a kind goes through its slots.
    #[test]
    fn slots_are_given_back_when_a_step_has_ended() {
        let text = ":- chr_constraint paid/2. order(O, C), payment(O, A) <=> paid(C, A).";
        let program = Program::new(text).unwrap();
        let mut session = Session::new(&program, Setting::default());
        let kind = |session: &Session, name, arity| session.kind(name, arity).unwrap();
        let [order, payment, paid] = ["order", "payment", "paid"].map(|name| kind(&session, name, 2));
        for number in 0..1_000 {
            for kind in [order, payment] {
                session.add(kind, &[Value::Int(number), Value::Int(7)], 1).unwrap();
            }
            assert_eq!(session.take(paid).len(), 1);
        }
        assert_eq!(session.count(), 0);
        for kind in [order, payment, paid] {
            let slots = session.machine.slots(kind.0);
            assert!(slots <= 2, "{slots} slots of {kind:?}");
        }
    }
}
