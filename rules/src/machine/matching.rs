//! Whether a constraint is what a head asks for.

use super::{Error, HEADER, Heap, Machine};
use crate::code::{Arg, Code, Test};
use crate::term::Term;

impl Machine {
    #[inline]
    pub(super) fn matches_constraint(&mut self, pattern: &[Arg], kind: u32, slot: u32) -> bool {
        let slots = &mut self.stack[self.frame + HEADER..];
        let arguments = self.constraints[kind as usize].arguments(slot);
        pattern.iter().zip(arguments).all(|(arg, argument)| match arg {
            // What most arguments are is here, for a call costs more than that.
            Arg::Void => true,
            Arg::New(own) => {
                slots[*own as usize] = *argument;
                true
            }
            Arg::Slot(own) => self.heap.is_same(*argument, slots[*own as usize]),
            arg => matches(&self.heap, slots, arg, *argument),
        })
    }

    #[inline]
    pub(super) fn tests(&mut self, code: &Code, tests: &[Test]) -> Result<bool, Error> {
        for test in tests {
            let holds = match test {
                Test::Compare(comparison, left, right) => self.compares(*comparison, left, right)?,
                test => self.test(code, test)?,
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn test(&mut self, code: &Code, test: &Test) -> Result<bool, Error> {
        Ok(match test {
            Test::Compare(comparison, left, right) => self.compares(*comparison, left, right)?,
            Test::Is(to, expression) => {
                let value = self.evaluate(expression)?;
                self.unify_arg(to, value)
            }
            Test::Unify(left, right) => {
                let value = self.build(right);
                self.unify_arg(left, value)
            }
            Test::Builtin(builtin, arguments) => {
                let kept = std::mem::take(&mut self.arguments);
                self.load(arguments);
                let arguments = std::mem::replace(&mut self.arguments, kept);
                self.builtin(code, *builtin, &arguments)?
            }
            Test::Any(any) => {
                let mut holds = false;
                for all in any {
                    holds = self.tests(code, all)?;
                    if holds {
                        break;
                    }
                }
                holds
            }
            Test::None(all) => !self.tests(code, all)?,
            Test::Fail => false,
            Test::Call(at) => self.nested(code, *at)?,
        })
    }
}

/// Matches a term without giving its variables values.
fn matches(heap: &Heap, slots: &mut [Term], arg: &Arg, term: Term) -> bool {
    match arg {
        Arg::Void => true,
        Arg::New(slot) => {
            slots[*slot as usize] = term;
            true
        }
        Arg::Const(value) => heap.is_same(term, *value),
        Arg::Slot(slot) => heap.is_same(term, slots[*slot as usize]),
        Arg::Compound(name, parts) => match heap.resolve(term) {
            Term::Compound(at) if heap.functor(at) == (*name, parts.len()) => parts
                .iter()
                .zip(heap.arguments(at))
                .all(|(part, argument)| matches(heap, slots, part, argument)),
            _ => false,
        },
        Arg::List(parts, tail) => {
            let mut rest = term;
            for part in parts {
                let Some((head, next)) = heap.head_and_tail(rest) else { return false };
                if !matches(heap, slots, part, head) {
                    return false;
                }
                rest = next;
            }
            matches(heap, slots, tail, rest)
        }
    }
}
