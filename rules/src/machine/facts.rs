//! Constraints from outside: one at a time, and forgotten when nobody has them.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use super::causes::Causes;
use super::store::{Constraints, NONE, State};
use super::{Alternative, Choice, Error, HEADER, Image, Machine, STACK, Undo, index};
use crate::code::Code;
use crate::term::Term;

/// Entries of the history, facts and dead constraints from which on those that nobody needs are looked for.
pub(super) const STALE: usize = 65_536;

impl Machine {
    /// Adds a constraint and runs to the end of what that causes. What fails, or ends with an error, is undone whole. Returns the id of the
    /// constraint; none where it failed.
    pub(crate) fn step(&mut self, kind: u32, arguments: &[Term], origin: u64) -> Result<Option<u64>, Error> {
        let program = Arc::clone(&self.program);
        self.stack.truncate(STACK);
        self.origin = Some(origin);
        self.stack[2] = Term::Frame(index(HEADER), self.causes.fact(origin));
        let (frame, next) = (0, Code::STOP);
        let (undo, cells, top) = (self.undo.len(), self.heap.cells.len(), self.top(0));
        let (alternative, cause) = (Alternative::End, Causes::NONE);
        self.choices.push(Choice { alternative, undo, cells, top, frame, next, cause });
        (self.steps, self.looks, self.text_bytes) = (0, 0, 0);
        self.heap.rest();
        self.arguments.clear();
        self.arguments.extend_from_slice(arguments);
        let id = self.next_id + 1;
        let mut ended = self.add(&program.code, kind, frame, next);
        if matches!(ended, Ok(true)) {
            ended = self.go_on(&program.code, 1);
        }
        if let Err(error) = self.check_walk() {
            ended = Err(error);
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
        if let Some(Undo::Create(_, slot)) = self.undo.first()
            && self.constraints[kind as usize].is_stored(*slot)
        {
            self.facts.insert(id, (kind, *slot));
        }
        self.frame = 0;
        self.cut(0);
        self.forget_stale();
        Ok(ended?.then_some(id))
    }

    /// Forgets what is kept of constraints that are gone: slots at once, the rest now and then.
    fn forget_stale(&mut self) {
        if self.facts.len() > STALE + 2 * self.alive {
            let constraints = &self.constraints;
            self.facts.retain(|id, (kind, slot)| {
                let suspension = constraints[*kind as usize].suspensions[*slot as usize];
                suspension.state == State::Stored && suspension.id == *id
            });
        }
        // An entry of three constraints has three links.
        if self.history_links > STALE + 6 * self.history.len() {
            self.histories.clear();
            self.history_links = 0;
            for entry in std::mem::take(&mut self.history) {
                self.remember(entry);
            }
        }
        self.constraints.iter_mut().for_each(Constraints::release_dead);
        let dead: usize = self.constraints.iter().map(|constraints| constraints.dead.len()).sum();
        if dead > STALE {
            self.reclaim();
        }
    }

    /// Gives the slots of dead constraints back, but for those that a frame, a choice or a search may still come to.
    pub(super) fn reclaim(&mut self) {
        let mut known: HashSet<(u32, u32), RandomState> = HashSet::default();
        let mut searched: HashSet<u32, RandomState> = HashSet::default();
        let mut open = Vec::new();
        let top = self.top(self.frame);
        for word in &self.stack[..top] {
            match *word {
                Term::Suspension(kind, slot) | Term::Next(kind, slot) if slot != NONE => {
                    open.push((kind, slot))
                }
                Term::Waiting(list, _) => {
                    searched.insert(list);
                }
                _ => {}
            }
        }
        for undo in &self.undo {
            match undo {
                Undo::Create(kind, slot)
                | Undo::Store(kind, slot)
                | Undo::Kill(kind, slot, _)
                | Undo::Late(kind, slot, _) => {
                    open.push((*kind, *slot));
                }
                Undo::Watch(list, _) => {
                    searched.insert(*list);
                }
                Undo::Cell(..) | Undo::List(_) | Undo::History(_) => {}
            }
        }
        for (waiting, list) in self.watched.iter_mut().zip(0..) {
            if searched.contains(&list) || !self.choices.is_empty() {
                open.extend_from_slice(waiting);
            } else {
                waiting.retain(|(kind, slot)| self.constraints[*kind as usize].is_stored(*slot));
            }
        }
        while let Some((kind, slot)) = open.pop() {
            let constraints = &self.constraints[kind as usize];
            if constraints.suspensions[slot as usize].state == State::Dead && known.insert((kind, slot)) {
                open.extend(constraints.nexts(slot).map(|next| (kind, next)));
            }
        }
        for (constraints, kind) in self.constraints.iter_mut().zip(0..) {
            let mut dead = std::mem::take(&mut constraints.dead);
            constraints.watched_count = 0;
            dead.sort_unstable();
            dead.dedup();
            for slot in dead {
                if known.contains(&(kind, slot)) {
                    constraints.dead.push(slot)
                } else {
                    constraints.release(slot)
                }
            }
        }
    }

    /// Whether the fact of that id is still there.
    pub(crate) fn has_fact(&self, id: u64) -> bool {
        self.facts.get(&id).is_some_and(|(kind, slot)| self.is_there_still(*kind, *slot, id))
    }

    /// Takes a fact out, if it is still there.
    pub(crate) fn remove_fact(&mut self, id: u64) -> bool {
        match self.facts.remove(&id) {
            Some((kind, slot)) if self.is_there_still(kind, slot, id) => {
                self.kill(kind, slot);
                true
            }
            _ => false,
        }
    }

    /// Takes a stored constraint out.
    pub(crate) fn remove(&mut self, kind: u32, slot: u32) {
        self.kill(kind, slot);
    }

    fn is_there_still(&self, kind: u32, slot: u32, id: u64) -> bool {
        let suspension = self.constraints[kind as usize].suspensions[slot as usize];
        suspension.state == State::Stored && suspension.id == id
    }

    /// The slots of the stored constraints of a kind, the oldest first.
    pub(crate) fn of_kind(&self, kind: u32) -> Vec<u32> {
        let constraints = &self.constraints[kind as usize];
        if constraints.stored_count == 0 {
            return Vec::new();
        }
        let mut found: Vec<_> = constraints.stored().collect();
        found.sort_unstable_by_key(|slot| constraints.suspensions[*slot as usize].id);
        found
    }

    /// How many slots a kind has, free ones included.
    #[cfg(test)]
    pub(crate) fn slots(&self, kind: u32) -> usize {
        self.constraints[kind as usize].suspensions.len()
    }

    pub(crate) fn arguments_of(&self, kind: u32, slot: u32) -> &[Term] {
        self.constraints[kind as usize].arguments(slot)
    }

    /// The origins of a constraint, and the name of the rule that added it.
    pub(crate) fn cause_of(&self, kind: u32, slot: u32) -> (&[u64], Option<Arc<str>>) {
        let cause = self.constraints[kind as usize].suspensions[slot as usize].cause;
        let rule = self.causes.rule(cause).map(|rule| &self.program.code.rules[rule as usize].name);
        (self.causes.origins(cause), rule.cloned())
    }

    /// The origins of all stored constraints, each as often as one has it.
    pub(crate) fn origins(&self) -> impl Iterator<Item = u64> {
        let suspensions = self.constraints.iter().flat_map(|constraints| &constraints.suspensions);
        let stored = suspensions.filter(|suspension| suspension.state == State::Stored);
        stored.flat_map(|suspension| self.causes.origins(suspension.cause)).copied()
    }

    pub(crate) fn count(&self) -> usize {
        self.alive
    }

    /// About how many bytes the terms and constraints take.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.words() * size_of::<Term>();
        let stored: usize = self.constraints.iter().map(|constraints| constraints.bytes()).sum();
        let history: usize = self.history.len() * HISTORY_BYTES;
        words + stored + history
    }

    /// Forgets terms, atoms and slots that no constraint has any more. Only between steps. Linear in the store.
    pub(crate) fn compact(&mut self) {
        let image = self.image();
        self.renew(image);
        self.garbage = 0;
    }

    /// Becomes what the image says, which is the machine's own.
    pub(crate) fn renew(&mut self, image: Image) {
        let setting = self.setting.clone();
        *self = Self::restored(&self.program, setting, image).expect("a machine's own image fits together");
    }

    /// The stored constraints: kind and arguments.
    pub(crate) fn stored(&self) -> impl Iterator<Item = (u32, &[Term])> {
        self.constraints.iter().zip(0..).flat_map(|(constraints, kind)| {
            constraints.stored().map(move |slot| (kind, constraints.arguments(slot)))
        })
    }
}

/// About what an entry of the history takes: three numbers and its rule, once and for each of its constraints, and the tables.
const HISTORY_BYTES: usize = 256;
