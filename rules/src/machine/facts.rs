//! Constraints from outside: one at a time, and forgotten when nobody has them.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::store::State;
use super::{Alternative, Choice, Error, Machine, Undo, index};
use crate::code::Code;
use crate::term::{Atom, Term};

impl Machine {
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
}
