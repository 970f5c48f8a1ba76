//! A machine from what another one held. Nothing of that is taken on trust.

use std::sync::Arc;

use super::causes::ORIGINS_MAX;
use super::image::{Cell, Image};
use super::store::Known;
use super::{Machine, Setting};
use crate::program::Program;
use crate::term::{Atom, Term};

/// Why bytes are no snapshot of a session of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSnapshot {
    /// They are no snapshot, or one of another version.
    #[error("these bytes are no snapshot")]
    Format,
    /// They are of a program with other constraints or rules.
    #[error("the snapshot is of another program")]
    Program,
    /// A part of it does not fit the others.
    #[error("the snapshot does not fit together: {0}")]
    Part(&'static str),
}

/// Most that a counter has, so that none overflows.
const COUNT_MAX: u64 = 1 << 62;

fn check(fits: bool, part: &'static str) -> Result<(), BadSnapshot> {
    if fits { Ok(()) } else { Err(BadSnapshot::Part(part)) }
}

/// What stands in a cell of the heap.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Functor,
    Variable,
    Argument,
}

impl Machine {
    /// A machine that goes on where another one was.
    pub(crate) fn restored(
        program: &Arc<Program>,
        setting: Setting,
        image: Image,
    ) -> Result<Self, BadSnapshot> {
        let mut machine = Self::new(program, setting);
        let counters = [image.next_id, image.applications, image.garbage];
        check(counters.iter().all(|counter| *counter <= COUNT_MAX), "counters")?;
        (machine.next_id, machine.applications) = (image.next_id, image.applications);
        machine.garbage = usize::try_from(image.garbage).map_err(|_| BadSnapshot::Part("counters"))?;
        let atoms: Vec<_> = image.atoms.iter().map(|text| machine.atoms.intern(text)).collect();
        let roles = roles(&image)?;
        let term = |cell: Cell| term(cell, &atoms, &roles);
        for (cell, at) in image.cells.iter().zip(0..) {
            machine.heap.cells.push(match *cell {
                Cell::Functor(name, arity) => {
                    let name = atoms.get(name as usize).ok_or(BadSnapshot::Part("atoms"))?;
                    Term::Functor(*name, arity)
                }
                Cell::Watched(list) => Term::Watched(list),
                Cell::Var(cell) if cell == at => Term::Var(cell),
                cell => term(cell)?,
            });
        }
        check(machine.is_finite(&roles), "terms")?;
        machine.restore_causes(&image.causes)?;
        machine.restore_constraints(&image, term)?;
        for entry in image.history {
            let is_alive =
                |id: &u64| image.constraints.binary_search_by_key(id, |constraint| constraint.id).is_ok();
            let fits = entry.split_first().is_some_and(|(rule, ids)| {
                *rule < program.code.rules.len() as u64 && ids.iter().all(is_alive)
            });
            check(fits, "history")?;
            machine.remember(entry.into());
        }
        Ok(machine)
    }

    fn restore_constraints(
        &mut self,
        image: &Image,
        term: impl Fn(Cell) -> Result<Term, BadSnapshot>,
    ) -> Result<(), BadSnapshot> {
        let (mut arguments, mut places, mut before) = (&image.arguments[..], Vec::new(), 0);
        let mut known = Known::default();
        for constraint in &image.constraints {
            let kind = self.program.code.kinds.get(constraint.kind as usize);
            let arity = kind.ok_or(BadSnapshot::Part("kinds"))?.arity;
            let (own, behind) = arguments.split_at_checked(arity).ok_or(BadSnapshot::Part("arguments"))?;
            arguments = behind;
            check(before < constraint.id && constraint.id <= image.next_id, "identifiers")?;
            before = constraint.id;
            let own = own.iter().map(|cell| term(*cell)).collect::<Result<Vec<_>, _>>()?;
            let constraints = &mut self.constraints[constraint.kind as usize];
            let slot = constraints.create(constraint.id, &own, constraint.is_reactive, constraint.cause);
            constraints.insert(&self.heap, slot, Some(&mut known));
            places.push((constraint.kind, slot));
        }
        check(arguments.is_empty(), "arguments")?;
        self.alive = places.len();
        let place = |place: &u32| places.get(*place as usize).copied().ok_or(BadSnapshot::Part("places"));
        for list in &image.watched {
            self.watched.push(list.iter().map(place).collect::<Result<_, _>>()?);
        }
        for fact in &image.facts {
            self.facts.insert(
                image.constraints.get(*fact as usize).ok_or(BadSnapshot::Part("places"))?.id,
                place(fact)?,
            );
        }
        let mut causes: Vec<_> = image.constraints.iter().map(|constraint| constraint.cause).collect();
        causes.sort_unstable();
        causes.dedup();
        check(self.causes.are_known(&causes), "causes")
    }

    fn restore_causes(&mut self, mut words: &[u64]) -> Result<(), BadSnapshot> {
        while let Some((first, behind)) = words.split_first() {
            let (rule, count) = (*first >> 32, (*first & 0xFFFF_FFFF) as usize);
            let rules = self.program.code.rules.len();
            let (origins, behind) = behind.split_at_checked(count).ok_or(BadSnapshot::Part("causes"))?;
            let fits = (1..=ORIGINS_MAX).contains(&count) && rule <= rules as u64;
            check(fits && origins.is_sorted_by(|left, right| left < right), "causes")?;
            let (rule, known) = (u32::try_from(rule).unwrap_or(0).checked_sub(1), self.causes.words());
            self.causes.intern(rule, origins);
            // One that was there before would move those behind it.
            check(self.causes.words() == known + 1 + count, "causes")?;
            words = behind;
        }
        Ok(())
    }

    /// Whether no term contains itself.
    fn is_finite(&self, roles: &[Role]) -> bool {
        /// A compound whose arguments are being looked at, or were.
        #[derive(Clone, Copy, PartialEq)]
        enum Look {
            Not,
            Begun,
            Done,
        }
        let mut looks = vec![Look::Not; roles.len()];
        let mut open = Vec::new();
        for at in (0..roles.len()).filter(|at| roles[*at] == Role::Functor) {
            open.push(at);
            while let Some(at) = open.last().copied() {
                if looks[at] != Look::Not {
                    looks[at] = Look::Done;
                    open.pop();
                    continue;
                }
                looks[at] = Look::Begun;
                let arity = match self.heap.cells[at] {
                    Term::Functor(_, arity) => arity as usize,
                    _ => 0,
                };
                for argument in &self.heap.cells[at + 1..=at + arity] {
                    if let Term::Compound(inner) = *argument {
                        match looks[inner as usize] {
                            Look::Not => open.push(inner as usize),
                            Look::Begun => return false,
                            Look::Done => {}
                        }
                    }
                }
            }
        }
        true
    }
}

/// What each cell of the heap is.
fn roles(image: &Image) -> Result<Vec<Role>, BadSnapshot> {
    let mut roles = Vec::with_capacity(image.cells.len());
    let (mut arguments, mut lists) = (0, 0);
    for (cell, at) in image.cells.iter().zip(0_u32..) {
        let is_argument = arguments > 0;
        arguments -= u32::from(is_argument);
        roles.push(match *cell {
            Cell::Functor(_, arity) if !is_argument && arity > 0 => {
                arguments = arity;
                Role::Functor
            }
            Cell::Var(own) if own == at => Role::Variable,
            // Each list is that of one variable.
            Cell::Watched(list) if list == lists => {
                lists += 1;
                Role::Variable
            }
            Cell::Functor(..) | Cell::Watched(_) => return Err(BadSnapshot::Part("cells")),
            _ if is_argument => Role::Argument,
            _ => return Err(BadSnapshot::Part("cells")),
        });
    }
    check(arguments == 0 && lists as usize == image.watched.len(), "cells")?;
    Ok(roles)
}

/// A term, where it is one.
fn term(cell: Cell, atoms: &[Atom], roles: &[Role]) -> Result<Term, BadSnapshot> {
    let role = |at: u32| roles.get(at as usize).copied();
    Ok(match cell {
        Cell::Var(at) if role(at) == Some(Role::Variable) => Term::Var(at),
        Cell::Compound(at) if role(at) == Some(Role::Functor) => Term::Compound(at),
        Cell::Int(number) => Term::Int(number),
        Cell::Float(bits) => Term::Float(f64::from_bits(bits)),
        Cell::Atom(name) => Term::Atom(*atoms.get(name as usize).ok_or(BadSnapshot::Part("atoms"))?),
        Cell::Var(_) | Cell::Compound(_) | Cell::Watched(_) | Cell::Functor(..) => {
            return Err(BadSnapshot::Part("cells"));
        }
    })
}
