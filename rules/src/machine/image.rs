//! What a machine holds between facts, as plain data: for a snapshot, and to forget what nobody needs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::causes::Causes;
use super::{Machine, index};
use crate::term::{Atom, Term};

/// A term, or a cell of the heap. A variable has the number of its cell, and a compound that of its functor.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Cell {
    Var(u32),
    /// A variable for which constraints wait, by the number of their list.
    Watched(u32),
    Int(i64),
    /// The bits of a float.
    Float(u64),
    Atom(u32),
    Compound(u32),
    Functor(u32, u32),
}

/// A stored constraint.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Constraint {
    pub(super) kind: u32,
    pub(super) id: u64,
    pub(super) is_reactive: bool,
    pub(super) cause: u32,
}

/// All that lasts from one fact to the next. The order of variables, of constraints and of those that wait for a variable is the machine's,
/// for it decides what happens first.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Image {
    pub(crate) atoms: Vec<Arc<str>>,
    pub(super) cells: Vec<Cell>,
    /// The oldest first.
    pub(super) constraints: Vec<Constraint>,
    /// Arguments of all constraints in their order.
    pub(super) arguments: Vec<Cell>,
    /// Constraints that wait for a variable, by their places among all.
    pub(super) watched: Vec<Vec<u32>>,
    /// Combinations to which a rule was applied: its number, and the identifiers of constraints.
    pub(super) history: Vec<Box<[u64]>>,
    pub(super) causes: Vec<u64>,
    /// Constraints that came from outside, by their places among all.
    pub(super) facts: Vec<u32>,
    pub(super) next_id: u64,
    pub(super) applications: u64,
    /// Words that the machine had beyond these.
    pub(super) garbage: u64,
}

/// What a cell of the old heap becomes where nobody needs it.
const GONE: u32 = u32::MAX;

/// Takes an image: places in the old machine, and what they become.
struct Taking<'a> {
    machine: &'a Machine,
    cells: Vec<u32>,
    names: Vec<u32>,
    atoms: Vec<Arc<str>>,
}

impl Taking<'_> {
    fn atom(&mut self, atom: Atom) -> u32 {
        let number = &mut self.names[atom.0 as usize];
        if *number == GONE {
            *number = index(self.atoms.len());
            self.atoms.push(self.machine.atoms.text(atom));
        }
        *number
    }

    fn term(&mut self, term: Term) -> Cell {
        match self.machine.heap.resolve(term) {
            Term::Var(cell) => Cell::Var(self.cells[cell as usize]),
            Term::Compound(at) => Cell::Compound(self.cells[at as usize]),
            Term::Int(number) => Cell::Int(number),
            Term::Float(number) => Cell::Float(number.to_bits()),
            Term::Atom(name) => Cell::Atom(self.atom(name)),
            term => unreachable!("a term is none that is only in cells or frames, as {term:?} is"),
        }
    }

    /// Marks what is reached from a term.
    fn mark(&mut self, term: Term, open: &mut Vec<Term>) {
        let heap = &self.machine.heap;
        open.push(term);
        while let Some(term) = open.pop() {
            match heap.resolve(term) {
                Term::Var(cell) => self.cells[cell as usize] = 0,
                Term::Compound(at) if self.cells[at as usize] == GONE => {
                    self.cells[at as usize] = 0;
                    open.extend(heap.arguments(at));
                }
                _ => {}
            }
        }
    }

    /// Gives numbers to the cells that are marked. Their order stays, for it is the age of variables. Returns their old places: a functor
    /// stands for its arguments as well.
    fn number(&mut self) -> Vec<u32> {
        let (mut found, mut at, mut count) = (Vec::new(), 0, 0);
        while at < self.cells.len() {
            let mut words = 1;
            if self.cells[at] != GONE {
                found.push(index(at));
                if let Term::Functor(_, arity) = self.machine.heap.cells[at] {
                    words += arity as usize;
                }
                for cell in &mut self.cells[at..at + words] {
                    *cell = count;
                    count += 1;
                }
            }
            at += words;
        }
        found
    }
}

impl Machine {
    /// What lasts. Only between facts. Linear in the store.
    pub(crate) fn image(&self) -> Image {
        debug_assert!(self.choices.is_empty(), "a step is at work");
        let mut stored = Vec::with_capacity(self.alive);
        for (constraints, kind) in self.constraints.iter().zip(0..) {
            let slots = constraints.stored();
            stored.extend(slots.map(|slot| (constraints.suspensions[slot as usize].id, kind, slot)));
        }
        stored.sort_unstable();
        let mut taking = Taking {
            machine: self,
            cells: vec![GONE; self.heap.cells.len()],
            names: vec![GONE; self.atoms.count()],
            atoms: Vec::new(),
        };
        let mut open = Vec::new();
        for &(_, kind, slot) in &stored {
            for argument in self.constraints[kind as usize].arguments(slot) {
                taking.mark(*argument, &mut open);
            }
        }
        let mut places: Vec<_> =
            self.constraints.iter().map(|constraints| vec![GONE; constraints.suspensions.len()]).collect();
        let mut causes = Causes::default();
        let (mut constraints, mut facts) = (Vec::with_capacity(stored.len()), Vec::new());
        for (place, &(id, kind, slot)) in (0..).zip(&stored) {
            places[kind as usize][slot as usize] = place;
            let suspension = self.constraints[kind as usize].suspensions[slot as usize];
            let (rule, origins) = (self.causes.rule(suspension.cause), self.causes.origins(suspension.cause));
            let cause = causes.intern(rule, origins);
            constraints.push(Constraint { kind, id, is_reactive: suspension.is_reactive, cause });
            if self.facts.contains_key(&id) {
                facts.push(place);
            }
        }
        let (mut cells, mut watched) = (Vec::new(), Vec::new());
        for at in taking.number() {
            match self.heap.cells[at as usize] {
                Term::Functor(name, arity) => {
                    cells.push(Cell::Functor(taking.atom(name), arity));
                    for cell in at + 1..at + 1 + arity {
                        cells.push(match self.heap.cells[cell as usize] {
                            Term::Watched(list) => self.waiting(list, &places, &mut watched),
                            Term::Var(own) if own == cell => Cell::Var(taking.cells[cell as usize]),
                            term => taking.term(term),
                        });
                    }
                }
                Term::Watched(list) => cells.push(self.waiting(list, &places, &mut watched)),
                _ => cells.push(Cell::Var(taking.cells[at as usize])),
            }
        }
        let mut arguments = Vec::new();
        for &(_, kind, slot) in &stored {
            for argument in self.constraints[kind as usize].arguments(slot) {
                arguments.push(taking.term(*argument));
            }
        }
        let mut history: Vec<_> = self.history.iter().map(|entry| entry[..].into()).collect();
        history.sort_unstable();
        let garbage = self.words() - cells.len() - causes.words();
        Image {
            atoms: taking.atoms,
            cells,
            constraints,
            arguments,
            watched,
            history,
            causes: causes.all().to_vec(),
            facts,
            next_id: self.next_id,
            applications: self.applications,
            garbage: garbage as u64,
        }
    }

    /// A list of those that wait, without the dead. It stays where all are, for a variable that was waited for is bound later than another.
    fn waiting(&self, list: u32, places: &[Vec<u32>], watched: &mut Vec<Vec<u32>>) -> Cell {
        let waiting = self.watched[list as usize].iter();
        let waiting = waiting.map(|(kind, slot)| places[*kind as usize][*slot as usize]);
        watched.push(waiting.filter(|place| *place != GONE).collect());
        Cell::Watched(index(watched.len() - 1))
    }
}
