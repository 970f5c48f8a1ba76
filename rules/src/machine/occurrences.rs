//! The refined semantics: an active constraint tries its occurrences in order, and stays where none removed it.

use std::sync::Arc;

use super::store::{self, NONE, State};
use super::{Choice, Error, HEADER, Machine, Undo, facts, index};
use crate::code::{Arg, Code, Occurrence, Partner, Rule};
use crate::term::Term;

/// Words at the end of the frame of an occurrence: its number among those of its kind, and the active constraint. Before them are two for
/// each partner: the one at hand, and the next one.
const BEHIND: usize = 2;

/// The frame of an occurrence.
#[derive(Clone, Copy)]
struct Place {
    frame: usize,
    end: usize,
    kind: u32,
    slot: u32,
    number: usize,
    caller: usize,
    next: u32,
}

impl Place {
    fn partner(self, idx: usize) -> usize {
        self.end - BEHIND - 2 * (idx + 1)
    }
}

impl Machine {
    /// Adds a constraint with the arguments at hand, and makes it active.
    pub(super) fn add(&mut self, code: &Code, kind: u32, caller: usize, next: u32) -> Result<bool, Error> {
        self.count_step()?;
        if self.alive >= self.setting.bounds.constraints {
            return Err(Error::Constraints(self.setting.bounds.constraints));
        }
        let dead: usize = self.constraints.iter().map(|constraints| constraints.dead.len()).sum();
        if dead > facts::STALE.max(self.alive) {
            self.reclaim();
        }
        self.next_id += 1;
        let arguments = std::mem::take(&mut self.arguments);
        let is_reactive = !arguments.iter().all(|argument| self.heap.is_ground(*argument));
        if let Err(error) = self.check_walk() {
            self.arguments = arguments;
            return Err(error);
        }
        let cause = self.cause(self.frame);
        let slot = self.constraints[kind as usize].create(self.next_id, &arguments, is_reactive, cause);
        self.arguments = arguments;
        self.alive += 1;
        if !self.choices.is_empty() {
            self.undo.push(Undo::Create(kind, slot));
        }
        self.activate(code, kind, slot, caller, next)
    }

    fn activate(
        &mut self,
        code: &Code,
        kind: u32,
        slot: u32,
        caller: usize,
        next: u32,
    ) -> Result<bool, Error> {
        let frame = self.top(caller);
        self.occurrences(code, Place { frame, end: 0, kind, slot, number: 0, caller, next }, false)
    }

    /// Goes on with the next one of those that were woken.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the word is a number of a list"
    )]
    pub(super) fn wake(&mut self, code: &Code) -> Result<bool, Error> {
        let mut frame = self.frame;
        let size = self.size(frame);
        let Term::Int(number) = self.stack[frame + HEADER] else { unreachable!("the list has a number") };
        let number = number as usize;
        if HEADER + 1 + number == size {
            (self.frame, self.at) = self.caller(frame);
            return Ok(true);
        }
        frame = self.own(frame, size)?;
        self.stack[frame + HEADER] = Term::Int(number as i64 + 1);
        let Term::Suspension(kind, slot) = self.stack[frame + HEADER + 1 + number] else {
            unreachable!("the list has constraints")
        };
        self.frame = frame;
        self.at = Code::WAKE;
        if self.constraints[kind as usize].is_stored(slot) {
            self.activate(code, kind, slot, frame, Code::WAKE)
        } else {
            Ok(true)
        }
    }

    /// A frame that may be written to: this one, or a copy where a choice needs it as it is.
    fn own(&mut self, frame: usize, size: usize) -> Result<usize, Error> {
        if self.choices.last().is_none_or(|choice: &Choice| choice.top <= frame) {
            return Ok(frame);
        }
        let (caller, next) = self.caller(frame);
        let copy = self.top(frame);
        self.make_frame(copy, caller, next, size, self.cause(frame))?;
        self.stack.copy_within(frame + HEADER..frame + size, copy + HEADER);
        Ok(copy)
    }

    /// Goes on behind a body, with the combination that is next.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the words are numbers of words and of a list"
    )]
    pub(super) fn resume(&mut self, code: &Code) -> Result<bool, Error> {
        let size = self.size(self.frame);
        let (caller, next) = self.caller(self.frame);
        let end = self.frame + size;
        let Term::Suspension(kind, slot) = self.stack[end - 2] else {
            unreachable!("an occurrence has an active constraint")
        };
        if self.constraints[kind as usize].suspensions[slot as usize].state == State::Dead {
            (self.frame, self.at) = (caller, next);
            return Ok(true);
        }
        let Term::Int(number) = self.stack[end - 1] else { unreachable!("an occurrence has a number") };
        let frame = self.own(self.frame, size)?;
        let place = Place { frame, end: frame + size, kind, slot, number: number as usize, caller, next };
        self.occurrences(code, place, true)
    }

    /// Tries occurrences from the one of the place on, or goes on in it.
    fn occurrences(&mut self, code: &Code, mut place: Place, mut is_resumed: bool) -> Result<bool, Error> {
        let occurrences = &code.kinds[place.kind as usize].occurrences;
        while let Some(occurrence) = occurrences.get(place.number) {
            let occurrence = &code.occurrences[*occurrence as usize];
            let rule = &code.rules[occurrence.rule as usize];
            let mut depth = 0;
            if is_resumed {
                is_resumed = false;
                let count = occurrence.partners.len();
                if count == 0 {
                    place.number += 1;
                    continue;
                }
                depth = (0..count).find(|idx| !self.is_there(place.partner(*idx))).unwrap_or(count - 1);
            } else if !self.can_apply(occurrence, place) || !self.begin(code, occurrence, rule, &mut place)? {
                place.number += 1;
                continue;
            }
            match self.combine(code, occurrence, rule, place, depth)? {
                Found::Body => return Ok(true),
                Found::Removed => {
                    (self.frame, self.at) = (place.caller, place.next);
                    return Ok(true);
                }
                Found::Nothing => place.number += 1,
            }
        }
        self.store(place.kind, place.slot)?;
        (self.frame, self.at) = (place.caller, place.next);
        Ok(true)
    }

    fn is_there(&self, word: usize) -> bool {
        match self.stack[word] {
            Term::Suspension(kind, slot) => self.constraints[kind as usize].is_stored(slot),
            _ => false,
        }
    }

    /// Whether the constants fit, and there is something that each partner could be.
    fn can_apply(&self, occurrence: &Occurrence, place: Place) -> bool {
        let arguments = self.constraints[place.kind as usize].arguments(place.slot);
        occurrence.constants.iter().all(|(idx, value)| self.heap.resolve(arguments[*idx]) == *value)
            && occurrence
                .partners
                .iter()
                .all(|partner| self.constraints[partner.kind as usize].stored_count > 0)
    }

    /// Matches the active constraint. Returns whether that and what can be asked of it alone hold.
    #[expect(clippy::cast_possible_wrap, reason = "the number of an occurrence is small")]
    fn begin(
        &mut self,
        code: &Code,
        occurrence: &Occurrence,
        rule: &Rule,
        place: &mut Place,
    ) -> Result<bool, Error> {
        let size = HEADER + rule.slots as usize + 2 * occurrence.partners.len() + BEHIND;
        let cause = self.constraints[place.kind as usize].suspensions[place.slot as usize].cause;
        self.make_frame(place.frame, place.caller, place.next, size, cause)?;
        place.end = place.frame + size;
        self.stack[place.end - 1] = Term::Int(place.number as i64);
        self.stack[place.end - 2] = Term::Suspension(place.kind, place.slot);
        self.frame = place.frame;
        if !self.matches_constraint(&occurrence.pattern, place.kind, place.slot)
            || !self.tests(code, &occurrence.tests)?
        {
            return Ok(false);
        }
        if let Some(partner) = occurrence.partners.first() {
            let first = self.first(partner);
            self.stack[place.partner(0) + 1] = first;
        }
        Ok(true)
    }

    /// Looks for combinations, and applies the rule to each, until a body has to run or there are no more.
    fn combine(
        &mut self,
        code: &Code,
        occurrence: &Occurrence,
        rule: &Rule,
        place: Place,
        from: usize,
    ) -> Result<Found, Error> {
        let partners = &occurrence.partners;
        self.frame = place.frame;
        let mut depth = from;
        loop {
            if depth < partners.len() {
                if !self.advance(code, &partners[depth], place, depth)? {
                    if depth == 0 {
                        return Ok(Found::Nothing);
                    }
                    depth -= 1;
                    continue;
                }
                depth += 1;
                if let Some(partner) = partners.get(depth) {
                    let first = self.first(partner);
                    self.stack[place.partner(depth) + 1] = first;
                    continue;
                }
            }
            if !self.is_news(occurrence, rule, place) {
                let Some(last) = depth.checked_sub(1) else { return Ok(Found::Nothing) };
                depth = last;
                continue;
            }
            self.applications += 1;
            self.count_step()?;
            if rule.has_body {
                self.follow(occurrence.rule, partners.len(), place);
            }
            let mut removed = partners.len();
            for (idx, partner) in partners.iter().enumerate().rev() {
                if partner.is_removed {
                    let Term::Suspension(kind, slot) = self.stack[place.partner(idx)] else {
                        unreachable!("it was found")
                    };
                    self.kill(kind, slot);
                    removed = idx;
                }
            }
            if occurrence.is_removed {
                self.kill(place.kind, place.slot);
                if !rule.has_body {
                    return Ok(Found::Removed);
                }
                self.at = rule.body.expect("a rule that removes the active constraint has a body for that");
                return Ok(Found::Body);
            }
            if rule.has_body {
                self.store(place.kind, place.slot)?;
                self.at = rule
                    .body_and_resume
                    .expect("a rule that keeps the active constraint has a body for that");
                return Ok(Found::Body);
            }
            match partners.len() {
                0 => return Ok(Found::Nothing),
                count => depth = removed.min(count - 1),
            }
        }
    }

    /// The first constraint that a partner may be: a slot, or a place in the list of those that wait for a variable.
    fn first(&mut self, partner: &Partner) -> Term {
        let mut hash = Some(0);
        if !partner.key.is_empty() {
            let values = partner.key.iter().map(|arg| match arg {
                Arg::Const(term) => *term,
                Arg::Slot(slot) => self.stack[self.frame + HEADER + *slot as usize],
                arg => unreachable!("a key has values, and not {arg:?}"),
            });
            hash = if values.clone().all(|value| self.heap.is_ground(value)) {
                store::hash(&self.heap, values, None)
            } else {
                None
            };
        }
        if let Some(hash) = hash {
            let slot = self.constraints[partner.kind as usize].first(partner.index, hash);
            return Term::Next(partner.kind, slot);
        }
        // One of its variables is an argument of each constraint that fits.
        let mut lists = partner.key.iter().filter_map(|arg| {
            let Arg::Slot(slot) = arg else { return None };
            let mut first = None;
            self.heap.variables(self.stack[self.frame + HEADER + *slot as usize], &mut |cell| {
                first = first.or(Some(cell))
            });
            first.map(|cell| self.heap.cells[cell as usize])
        });
        match lists.next() {
            Some(Term::Watched(list)) => Term::Waiting(list, index(self.watched[list as usize].len())),
            _ => Term::Next(partner.kind, NONE),
        }
    }

    /// Goes on to the next constraint that a partner can be, and matches it.
    fn advance(&mut self, code: &Code, partner: &Partner, place: Place, idx: usize) -> Result<bool, Error> {
        let word = place.partner(idx);
        let mut next = self.stack[word + 1];
        loop {
            self.look_up()?;
            let slot = match next {
                Term::Next(_, NONE) | Term::Waiting(_, 0) => {
                    self.stack[word + 1] = next;
                    return Ok(false);
                }
                Term::Next(kind, slot) => {
                    next = Term::Next(kind, self.constraints[kind as usize].next(slot, partner.index));
                    slot
                }
                Term::Waiting(list, count) => {
                    next = Term::Waiting(list, count - 1);
                    let (kind, slot) = self.watched[list as usize][count as usize - 1];
                    if kind != partner.kind {
                        continue;
                    }
                    slot
                }
                term => unreachable!("a next one is a slot, and not {term:?}"),
            };
            if !self.constraints[partner.kind as usize].is_stored(slot)
                || (partner.kind, slot) == (place.kind, place.slot)
            {
                continue;
            }
            let found = Term::Suspension(partner.kind, slot);
            if (0..idx).any(|before| self.stack[place.partner(before)] == found) {
                continue;
            }
            self.stack[word] = found;
            self.stack[word + 1] = next;
            if self.matches_constraint(&partner.pattern, partner.kind, slot)
                && self.tests(code, &partner.tests)?
            {
                return Ok(true);
            }
        }
    }

    /// Whether a rule that removes nothing was not applied to this combination before.
    fn is_news(&mut self, occurrence: &Occurrence, rule: &Rule, place: Place) -> bool {
        if !rule.is_propagation {
            return true;
        }
        let suspension = |machine: &Self, head: usize| {
            let (kind, slot) = match head.checked_sub(1).map(|idx| machine.stack[place.partner(idx)]) {
                Some(Term::Suspension(kind, slot)) => (kind, slot),
                _ => (place.kind, place.slot),
            };
            machine.constraints[kind as usize].suspensions[slot as usize]
        };
        let active = suspension(self, 0);
        let heads = 0..=occurrence.partners.len();
        if rule.is_told_by_age && heads.clone().all(|head| !suspension(self, head).is_reactive) {
            // A younger one has been active since, and has found this combination.
            return heads.skip(1).all(|head| suspension(self, head).id < active.id);
        }
        let ids = occurrence.places.iter().map(|head| suspension(self, *head).id);
        let entry: Arc<[u64]> = std::iter::once(u64::from(occurrence.rule)).chain(ids).collect();
        if self.history.contains(&entry) {
            return false;
        }
        if !self.choices.is_empty() {
            self.undo.push(Undo::History(Arc::clone(&entry)));
        }
        self.remember(entry);
        true
    }

    /// Puts a combination into the history.
    pub(super) fn remember(&mut self, entry: Arc<[u64]>) {
        for id in &entry[1..] {
            self.histories.entry(*id).or_default().push(Arc::clone(&entry));
        }
        self.history_links += entry.len() - 1;
        self.history.insert(entry);
    }

    /// Tells the frame what the rule's body follows from: the heads, and the fact at hand.
    fn follow(&mut self, rule: u32, partners: usize, place: Place) {
        let Some(origin) = self.origin else { return };
        let partners = (0..partners).map(|idx| self.stack[place.partner(idx)]);
        let heads = std::iter::once(Term::Suspension(place.kind, place.slot)).chain(partners);
        let causes = heads.map(|head| match head {
            Term::Suspension(kind, slot) => self.constraints[kind as usize].suspensions[slot as usize].cause,
            term => unreachable!("a head is a constraint, and not {term:?}"),
        });
        let cause = self.causes.follow(rule, causes, origin);
        self.stack[place.frame + 2] = Term::Frame(index(place.end - place.frame), cause);
    }

    pub(super) fn kill(&mut self, kind: u32, slot: u32) {
        let constraints = &mut self.constraints[kind as usize];
        let suspension = &mut constraints.suspensions[slot as usize];
        let (id, before) = (suspension.id, suspension.state);
        suspension.state = State::Dead;
        self.alive -= 1;
        if before == State::Stored {
            constraints.remove(&self.heap, slot);
        }
        if !self.choices.is_empty() {
            return self.undo.push(Undo::Kill(kind, slot, before));
        }
        if before == State::Stored {
            constraints.dead.push(slot)
        } else {
            constraints.release(slot)
        }
        self.forget(id);
    }

    /// Puts an active constraint where others find it, unless it is there.
    fn store(&mut self, kind: u32, slot: u32) -> Result<(), Error> {
        let constraints = &mut self.constraints[kind as usize];
        let suspension = constraints.suspensions[slot as usize];
        if suspension.state != State::New {
            return Ok(());
        }
        constraints.insert(&self.heap, slot, None);
        if !self.choices.is_empty() {
            self.undo.push(Undo::Store(kind, slot));
        }
        if suspension.is_reactive {
            let constraints = &self.constraints[kind as usize];
            for cell in self.variables_of(constraints.arguments(slot)) {
                self.watch(cell, kind, slot);
            }
        }
        Ok(())
    }

    /// The variables in terms, each once, the oldest first.
    pub(super) fn variables_of(&self, terms: &[Term]) -> Vec<u32> {
        let mut cells = Vec::new();
        for term in terms {
            self.heap.variables(*term, &mut |cell| cells.push(cell));
        }
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    pub(super) fn watch(&mut self, cell: u32, kind: u32, slot: u32) {
        let is_undone = !self.choices.is_empty();
        if let Term::Watched(list) = self.heap.cells[cell as usize] {
            let waiting = &mut self.watched[list as usize];
            if is_undone {
                self.undo.push(Undo::Watch(list, index(waiting.len())));
            }
            waiting.push((kind, slot));
            return;
        }
        if is_undone {
            self.undo.push(Undo::List(cell));
        }
        self.heap.cells[cell as usize] = Term::Watched(index(self.watched.len()));
        self.watched.push(vec![(kind, slot)]);
    }
}

/// What a search for combinations ended with.
enum Found {
    Nothing,
    /// The rule's body is next.
    Body,
    /// The active constraint is gone, and no body is to run.
    Removed,
}
