//! Constraints from outside: one at a time, and forgotten when nobody has them.

use std::sync::Arc;

use super::store::{Constraints, State};
use super::{Alternative, Choice, Error, HEADER, Image, Machine, Undo, index};
use crate::code::Code;
use crate::term::Term;

/// Bytes of an entry of the history, of a fact, of a word of a cause and of an atom, with the tables in which they are found.
const ENTRY_BYTES: usize = 160;
const FACT_BYTES: usize = 32;
const CAUSE_BYTES: usize = 12;
const ATOM_BYTES: usize = 64;

impl Machine {
    /// Adds a constraint and runs to the end of what that causes. What fails, or ends with an error, is undone whole. Returns the slot and
    /// the id of the constraint; none where it failed.
    pub(crate) fn step(
        &mut self,
        kind: u32,
        arguments: &[Term],
        origin: u64,
    ) -> Result<Option<(u32, u64)>, Error> {
        let program = Arc::clone(&self.program);
        let (frame, next) = (0, Code::STOP);
        self.origin = Some(origin);
        let cause = self.causes.fact(origin);
        self.stack[2] = Term::Frame(index(HEADER), cause);
        let (undo, cells, top) = (self.undo.len(), self.heap.cells.len(), self.top(0));
        self.choices.push(Choice { alternative: Alternative::End, undo, cells, top, frame, next, cause });
        (self.steps, self.looks) = (0, 0);
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
        let added = if ended? { slot.map(|slot| (slot, id)) } else { None };
        if let Some((slot, id)) = added
            && self.is_stored(kind, slot, id)
        {
            self.facts.insert(id, (kind, slot));
        }
        Ok(added)
    }

    fn is_stored(&self, kind: u32, slot: u32, id: u64) -> bool {
        let there = self.constraints[kind as usize].suspensions.get(slot as usize);
        there.is_some_and(|suspension| suspension.state == State::Stored && suspension.id == id)
    }

    /// Whether a fact is still there.
    pub(crate) fn has_fact(&self, id: u64) -> bool {
        self.facts.get(&id).is_some_and(|(kind, slot)| self.is_stored(*kind, *slot, id))
    }

    /// Takes a fact out, if it is still there.
    pub(crate) fn remove_fact(&mut self, id: u64) -> bool {
        let Some((kind, slot)) = self.facts.remove(&id) else { return false };
        let is_there = self.is_stored(kind, slot, id);
        if is_there {
            self.kill(kind, slot);
        }
        is_there
    }

    /// The constraints of a kind that are stored, the oldest first: slot and id.
    pub(crate) fn of_kind(&self, kind: u32) -> Vec<(u32, u64)> {
        let constraints = &self.constraints[kind as usize];
        if constraints.stored_count == 0 {
            return Vec::new();
        }
        let mut found: Vec<_> =
            constraints.stored().map(|slot| (slot, constraints.suspensions[slot as usize].id)).collect();
        found.sort_unstable_by_key(|(_, id)| *id);
        found
    }

    pub(crate) fn arguments_of(&self, kind: u32, slot: u32) -> &[Term] {
        self.constraints[kind as usize].arguments(slot)
    }

    /// Takes a stored constraint out.
    pub(crate) fn take_out(&mut self, kind: u32, slot: u32) {
        self.kill(kind, slot);
    }

    /// The origins that a stored constraint follows from, and the rule that added it.
    pub(crate) fn cause_of(&self, kind: u32, slot: u32) -> (&[u64], Option<u32>) {
        let cause = self.constraints[kind as usize].suspensions[slot as usize].cause;
        (self.causes.origins(cause), self.causes.rule(cause))
    }

    /// The origins that stored constraints follow from; some of them more than once.
    pub(crate) fn origins(&self) -> impl Iterator<Item = u64> {
        let all = self.constraints.iter();
        let causes = all.flat_map(|constraints| {
            constraints.stored().map(|slot| constraints.suspensions[slot as usize].cause)
        });
        let mut causes: Vec<_> = causes.collect();
        causes.sort_unstable();
        causes.dedup();
        causes.into_iter().flat_map(|cause| self.causes.origins(cause).iter().copied())
    }

    pub(crate) fn count(&self) -> usize {
        self.alive
    }

    /// Forgets terms, atoms, causes and slots that no constraint has any more, and returns what it knows. Only between facts.
    pub(crate) fn compact(&mut self) -> Image {
        let image = self.image();
        let again = Self::restored(&self.program, self.setting.clone(), &image);
        *self = again.expect("an image of a machine is one");
        image
    }

    /// The memory that it takes, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        let constraints: usize = self.constraints.iter().map(Constraints::bytes).sum();
        let terms = (self.heap.cells.len() + self.stack.len()) * size_of::<Term>();
        let entries = self.history.len() * ENTRY_BYTES + self.facts.len() * FACT_BYTES;
        constraints + terms + self.causes.words() * CAUSE_BYTES + entries + self.atoms.count() * ATOM_BYTES
    }

    /// The stored constraints: kind and arguments.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (u32, &[Term])> {
        self.constraints.iter().zip(0..).flat_map(|(constraints, kind)| {
            constraints.stored().map(move |slot| (kind, constraints.arguments(slot)))
        })
    }
}
