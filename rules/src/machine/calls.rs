//! Calls of predicates and of terms.

use super::{Alternative, Choice, Error, HEADER, Machine, index};
use crate::code::{Arg, Callable, Code, Key};
use crate::term::{Atom, Term};

impl Machine {
    /// Calls a predicate with the arguments at hand; in the end it goes on in the caller's frame at `next`. Returns whether it did not fail.
    pub(super) fn call(
        &mut self,
        code: &Code,
        predicate: u32,
        caller: usize,
        next: u32,
    ) -> Result<bool, Error> {
        self.count_step()?;
        self.clauses(code, predicate, 0, caller, next, self.cause(self.frame))
    }

    pub(super) fn clauses(
        &mut self,
        code: &Code,
        predicate: u32,
        from: usize,
        caller: usize,
        next: u32,
        cause: u32,
    ) -> Result<bool, Error> {
        let clauses = &code.predicates[predicate as usize].clauses;
        let first = self.arguments.first().map(|first| self.heap.resolve(*first));
        let found = match first {
            Some(Term::Compound(at)) => {
                let (name, arity) = self.heap.functor(at);
                Some(Key::Functor(name, arity))
            }
            Some(Term::Var(_)) | None => None,
            Some(constant) => Some(Key::Constant(constant)),
        };
        let fits = |idx: &usize| match (&clauses[*idx].first, &found) {
            (Some(wanted), Some(found)) => wanted == found,
            _ => true,
        };
        let mut fitting = (from..clauses.len()).filter(fits);
        let Some(mut clause) = fitting.next() else { return Ok(false) };
        loop {
            let following = fitting.next();
            let is_choice = following.is_some();
            if let Some(following) = following {
                let kept = self.kept.len();
                self.kept.extend_from_slice(&self.arguments);
                let top = self.top(caller);
                self.choices.push(Choice {
                    alternative: Alternative::Clauses {
                        predicate,
                        clause: index(following),
                        arguments: kept,
                    },
                    undo: self.undo.len(),
                    cells: self.heap.cells.len(),
                    top,
                    frame: caller,
                    next,
                    cause,
                });
                if self.choices.len() > self.setting.bounds.words / 8 {
                    return Err(Error::Words(self.setting.bounds.words));
                }
            }
            let compiled = &clauses[clause];
            let frame = self.push_frame(caller, next, HEADER + compiled.slots as usize, cause)?;
            self.frame = frame;
            let arguments = std::mem::take(&mut self.arguments);
            let is_unified =
                compiled.head.iter().zip(&arguments).all(|(arg, term)| self.unify_arg(arg, *term));
            self.arguments = arguments;
            if is_unified {
                match compiled.body {
                    Some(body) => self.at = body,
                    None => (self.frame, self.at) = (caller, next),
                }
                if !self.woken.is_empty() {
                    self.wake_up()?;
                }
                return Ok(true);
            }
            self.woken.clear();
            if !is_choice {
                return Ok(false);
            }
            // The next clause is tried here and now.
            self.undo_to_choice();
            self.drop_choice();
            match following {
                Some(following) => clause = following,
                None => return Ok(false),
            }
        }
    }

    /// Calls a term with further arguments behind its own.
    pub(super) fn call_term(&mut self, code: &Code, caller: usize, next: u32) -> Result<bool, Error> {
        let goal = self.arguments[0];
        let Some((name, arity, at)) = self.heap.callable(goal) else {
            return Err(match self.heap.resolve(goal) {
                Term::Var(_) => Error::Unbound("call/N"),
                goal => Error::Type { what: "call/N", found: self.text(goal), wanted: "something to call" },
            });
        };
        let own: Vec<_> = if arity == 0 { Vec::new() } else { self.heap.arguments(at).collect() };
        self.arguments.splice(0..1, own);
        match self.program.callable(name, self.arguments.len()) {
            Some(Callable::Predicate(predicate)) => self.call(code, predicate, caller, next),
            Some(Callable::Constraint(kind)) => self.add(code, kind, caller, next),
            Some(Callable::Builtin(builtin)) => {
                let arguments = std::mem::take(&mut self.arguments);
                let holds = self.builtin(code, builtin, &arguments);
                self.arguments = arguments;
                (self.frame, self.at) = (caller, next);
                holds
            }
            None if self.arguments.is_empty() && matches!(name, Atom::TRUE | Atom::CUT) => {
                (self.frame, self.at) = (caller, next);
                Ok(true)
            }
            None if self.arguments.is_empty() && matches!(name, Atom::FAIL | Atom::FALSE) => Ok(false),
            None if name == Atom::CALL && !self.arguments.is_empty() => self.call_term(code, caller, next),
            None => Err(Error::Undefined(self.atoms.name(name).to_owned(), self.arguments.len())),
        }
    }

    /// Makes the arguments of a call.
    pub(super) fn load(&mut self, arguments: &[Arg]) {
        self.arguments.clear();
        for arg in arguments {
            let term = self.build(arg);
            self.arguments.push(term);
        }
    }
}
