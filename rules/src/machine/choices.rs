//! Choices, and the way back to the last one.

use super::causes::Causes;
use super::store::State;
use super::{Alternative, Choice, Error, Machine, NESTING_MAX, Undo};
use crate::code::Code;
use crate::term::Term;

/// Entries of the undo log for which room is kept from one fact to the next.
const UNDO_KEPT: usize = 4_096;

impl Machine {
    pub(super) fn undo_to_choice(&mut self) {
        let Some(choice) = self.choices.last() else { return };
        let (undo, cells) = (choice.undo, choice.cells);
        while self.undo.len() > undo {
            let Some(undo) = self.undo.pop() else { break };
            self.take_back(undo);
        }
        self.heap.cells.truncate(cells);
        self.woken.clear();
    }

    pub(super) fn take_back(&mut self, undo: Undo) {
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
            Undo::List(cell) => {
                self.heap.cells[cell as usize] = Term::Var(cell);
                self.watched.pop();
            }
            Undo::Watch(list, count) => self.watched[list as usize].truncate(count as usize),
            Undo::History(entry) => {
                self.history.remove(&entry);
                // It is the last one of each: no constraint is forgotten while there are choices.
                for id in &entry[1..] {
                    self.histories.get_mut(id).and_then(Vec::pop);
                }
                self.history_links -= entry.len() - 1;
            }
        }
    }

    pub(super) fn drop_choice(&mut self) {
        if let Some(Choice { alternative: Alternative::Clauses { arguments, .. }, .. }) = self.choices.pop() {
            self.kept.truncate(arguments);
        }
    }

    /// Drops all choices but the first ones.
    pub(super) fn cut(&mut self, count: usize) {
        while self.choices.len() > count {
            self.drop_choice();
        }
        if self.choices.is_empty() {
            // Its room is kept for the next fact, unless this one took very much.
            let mut undo = std::mem::take(&mut self.undo);
            for undo in undo.drain(..) {
                if let Undo::Kill(kind, slot, _) = undo {
                    self.constraints[kind as usize].dead.push(slot);
                    let id = self.constraints[kind as usize].suspensions[slot as usize].id;
                    self.forget(id);
                }
            }
            undo.shrink_to(UNDO_KEPT);
            self.undo = undo;
        }
    }

    /// Drops what the history has of a constraint.
    #[inline]
    pub(super) fn forget(&mut self, id: u64) {
        if let Some(entries) = self.histories.remove(&id) {
            self.history_links -= entries.len();
            for entry in entries {
                self.history.remove(&entry);
            }
        }
    }

    /// Goes back to the last choice. Returns false where that ends the run.
    pub(super) fn fail(&mut self, code: &Code) -> Result<bool, Error> {
        loop {
            self.undo_to_choice();
            let Some(choice) = self.choices.last() else { return Ok(false) };
            let (frame, next, cause) = (choice.frame, choice.next, choice.cause);
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
                    if self.clauses(code, predicate, clause as usize, frame, next, cause)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Runs code in the frame at hand to its first answer, within another run. Choices that it leaves are dropped.
    pub(super) fn nested(&mut self, code: &Code, at: u32) -> Result<bool, Error> {
        if self.nesting == NESTING_MAX {
            return Err(Error::Nesting(NESTING_MAX));
        }
        let (frame, next) = (self.frame, self.at);
        let (count, top) = (self.choices.len(), self.top(self.frame));
        let (undo, cells) = (self.undo.len(), self.heap.cells.len());
        let (alternative, cause) = (Alternative::End, Causes::NONE);
        self.choices.push(Choice { alternative, undo, cells, top, frame, next, cause });
        self.at = at;
        self.nesting += 1;
        let has_answer = self.go_on(code, count + 1);
        self.nesting -= 1;
        let has_answer = has_answer?;
        self.cut(count);
        (self.frame, self.at) = (frame, next);
        Ok(has_answer)
    }
}
