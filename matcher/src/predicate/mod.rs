//! Predicates over several named events, in CQL2 text: `a.taxi = b.taxi AND SPEED(a, b) > 55`.
//!
//! A property is written `a.speed`: the variable, a dot and the attribute's flattened name. Beside CQL2's operators there are
//! functions of places and times; `docs/semantics.md` has the meaning of all of it. A [`Predicate`] has a truth, a [`Term`] a value.
//! Conditions of subscriptions are made of the same [`Node`]s where no index serves them.

pub(crate) mod evaluate;
pub mod index;
mod joins;
pub mod node;
mod sets;
mod temporal;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use crate::condition::error::ConditionError;
use crate::condition::expression::Truth;
use crate::condition::text::{Scope, parse_node, parse_operand};
use crate::event::{Event, Scalar};
use crate::geo::World;
use evaluate::Context;
pub use joins::Join;
pub use node::{Node, Operand};

/// An event under a variable's name, with what functions need to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The event.
    pub event: &'a Event,
    /// Its time in milliseconds, from a moment that all events share.
    pub time_ms: i64,
    /// A number that it has alone: `SAME` compares these.
    pub identity: u64,
}

/// A truth-valued text over named events.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    world: World,
    tree: Node,
}

/// A text over named events that has a value: a number, a text or a truth value.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    world: World,
    tree: Operand,
}

impl Predicate {
    /// Reads a predicate over the variables that are in scope. They have no dots.
    ///
    /// Cost: linear in the text, whose length and depth are bounded as those of conditions.
    ///
    /// # Errors
    /// [`ConditionError`], with the place of what is wrong.
    pub fn parse(world: World, text: &str, variables: &[&str]) -> Result<Self, ConditionError> {
        Ok(Self { world, tree: parse_node(text, &Scope::Variables(variables), Some(world))? })
    }

    /// A predicate made of a part of another one's tree.
    #[must_use]
    pub fn of(world: World, tree: Node) -> Self {
        Self { world, tree }
    }

    /// The indices of the variables that it reads, ascending.
    pub fn variables(&self) -> impl Iterator<Item = usize> {
        let mut variables = Vec::new();
        let _ = self.tree.visit_variables(&mut |variable| {
            variables.push(variable);
            ControlFlow::Continue(())
        });
        sorted(variables)
    }

    /// Its truth for events by the index of their variable. What it reads of a variable without one is unknown. Where it counts
    /// as a whole, only what is [`Truth::True`] holds.
    ///
    /// Cost: within [`cost`](Self::cost); nothing is allocated for numbers and plain texts.
    #[must_use]
    pub fn truth(&self, subjects: &[Option<Subject<'_>>]) -> Truth {
        self.tree.truth(Context { world: self.world, subjects })
    }

    /// Cost of its truth at worst, in comparisons of numbers.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.tree.cost()
    }

    /// Conditions that hold wherever it is true. None says nothing.
    #[must_use]
    pub fn necessary(&self) -> Vec<Join> {
        joins::of_truth(&self.tree)
    }

    /// Conditions that hold wherever it is false or unknown and all of its variables have events. None says nothing.
    #[must_use]
    pub fn necessary_for_failure(&self) -> Vec<Join> {
        joins::of_failure(&self.tree)
    }

    /// Its tree, for a program that makes something else of it.
    #[must_use]
    pub fn tree(&self) -> &Node {
        &self.tree
    }

    /// The world of its places and distances.
    #[must_use]
    pub fn world(&self) -> World {
        self.world
    }
}

impl Term {
    /// Reads a term over the variables that are in scope. They have no dots.
    ///
    /// # Errors
    /// [`ConditionError`], with the place of what is wrong.
    pub fn parse(world: World, text: &str, variables: &[&str]) -> Result<Self, ConditionError> {
        Ok(Self { world, tree: parse_operand(text, &Scope::Variables(variables), Some(world))? })
    }

    /// A term made of a part of a tree.
    #[must_use]
    pub fn of(world: World, tree: Operand) -> Self {
        Self { world, tree }
    }

    /// The indices of the variables that it reads, ascending.
    pub fn variables(&self) -> impl Iterator<Item = usize> {
        let mut variables = Vec::new();
        let _ = self.tree.visit_variables(&mut |variable| {
            variables.push(variable);
            ControlFlow::Continue(())
        });
        sorted(variables)
    }

    /// Its value for events by the index of their variable; `None` where it has none, and where that is an array.
    #[must_use]
    pub fn value(&self, subjects: &[Option<Subject<'_>>]) -> Option<Scalar> {
        self.tree.value(Context { world: self.world, subjects })?.into_scalar()
    }

    /// Its tree, for a program that makes something else of it.
    #[must_use]
    pub fn tree(&self) -> &Operand {
        &self.tree
    }
}

fn sorted(mut variables: Vec<usize>) -> impl Iterator<Item = usize> {
    variables.sort_unstable();
    variables.dedup();
    variables.into_iter()
}
