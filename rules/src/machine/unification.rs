//! Terms are made, and made one.

use super::{Machine, Undo, index};
use crate::code::Arg;
use crate::term::Term;

impl Machine {
    /// Makes the term of an argument.
    pub(super) fn build(&mut self, arg: &Arg) -> Term {
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
    pub(super) fn bind(&mut self, cell: u32, value: Term) -> bool {
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
            self.watch_within(value, list);
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

    /// Lets those that waited for a variable wait for the variables of its value.
    fn watch_within(&mut self, value: Term, list: u32) {
        for cell in self.variables_of(&[value]) {
            for at in 0..self.watched[list as usize].len() {
                let (kind, slot) = self.watched[list as usize][at];
                if self.constraints[kind as usize].is_stored(slot) {
                    self.watch(cell, kind, slot);
                }
            }
        }
    }

    /// Makes two terms one.
    pub(super) fn unify(&mut self, left: Term, right: Term) -> bool {
        let mut open = Vec::new();
        let (mut left, mut right) = (left, right);
        loop {
            if !self.heap.walk(1) {
                return false;
            }
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
                        let pairs = self.heap.arguments(left).zip(self.heap.arguments(right));
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
    pub(super) fn unify_arg(&mut self, arg: &Arg, term: Term) -> bool {
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
                            let argument = self.heap.argument(at, idx);
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
}
