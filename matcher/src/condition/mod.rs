//! Conditions on the content of events: CQL2 in, disjunctive normal form out.

pub mod error;
pub mod expression;
pub mod like;
mod lower;
pub mod normal;
pub(crate) mod reading;
pub mod residual;
pub mod text;
pub mod time;
pub(crate) mod write;

#[cfg(test)]
mod tests;

pub use error::ConditionError;
use expression::{Constraint, Expression};
use normal::{Normal, TooLarge};

use crate::geo::World;
use crate::predicate::Node;

/// A condition: the expression as it was written, and its disjunctive normal form.
///
/// The oracle evaluates the expression, the fast engines the normal form; they mean the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    expression: Expression,
    normal: Normal,
    reads_client: bool,
}

impl Default for Condition {
    fn default() -> Self {
        Self::always()
    }
}

impl Condition {
    /// The condition that every event satisfies.
    #[must_use]
    pub fn always() -> Self {
        Self { expression: Expression::Constant(true), normal: Normal::always(), reads_client: false }
    }

    /// Reads a condition in CQL2 text and normalises it.
    ///
    /// Cost: linear in the text and in the normal form, which is bounded.
    ///
    /// # Errors
    /// [`ConditionError`], which says what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        Ok(Self::new(text::parse(text)?)?)
    }

    /// Reads a condition of a client's subscription, whose places and distances are of a world: [`parse`](Self::parse) refuses functions
    /// that have these, and the client's place `me`.
    ///
    /// # Errors
    /// [`ConditionError`], which says what is wrong and where.
    pub fn parse_in(world: World, text: &str) -> Result<Self, ConditionError> {
        Ok(Self::new(text::parse_in(world, text)?)?)
    }

    /// The condition of a tree over one event, whose variable is 0, and the client, whose variable is 1.
    ///
    /// # Errors
    /// [`TooLarge`], as for [`new`](Self::new).
    pub fn of_node(world: World, node: Node) -> Result<Self, TooLarge> {
        Self::new(lower::expression(world, node))
    }

    /// Reads what [`parse_in`](Self::parse_in) reads but for `me`, for a caller that has no client and no use for a normal form.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// The errors of [`parse_in`](Self::parse_in).
    pub fn parse_expression(world: World, text: &str) -> Result<Expression, ConditionError> {
        let expression = text::parse_of_event(world, text)?;
        Normal::check(&expression)?;
        Ok(expression)
    }

    /// Normalises an expression. Recursion goes as deep as the expression does; what comes from outside is
    /// bounded where it is read ([`text::NESTING_MAX`]).
    ///
    /// # Errors
    /// [`TooLarge`] when the normal form passes [`normal::CONJUNCTIONS_MAX`] or
    /// [`normal::CONSTRAINTS_MAX`].
    pub fn new(expression: Expression) -> Result<Self, TooLarge> {
        let normal = Normal::of(&expression)?;
        let reads_client = normal.reads_client();
        Ok(Self { expression, normal, reads_client })
    }

    /// The condition with one constraint more, which has to hold as well. It does not count towards
    /// [`normal::CONSTRAINTS_MAX`].
    #[must_use]
    pub fn and(self, constraint: Constraint) -> Self {
        let normal = self.normal.and(&constraint);
        Self {
            expression: Expression::And(vec![self.expression, Expression::Constraint(constraint)]),
            normal,
            reads_client: self.reads_client,
        }
    }

    /// The condition that is satisfied where both are.
    ///
    /// # Errors
    /// [`TooLarge`] when the normal form of the two together passes [`normal::CONJUNCTIONS_MAX`] or
    /// [`normal::CONSTRAINTS_MAX`].
    pub fn both(self, other: &Self) -> Result<Self, TooLarge> {
        Self::new(Expression::And(vec![self.expression, other.expression.clone()]))
    }

    /// Whether it depends on where the client is: whether a function in it has `me`.
    #[must_use]
    pub fn reads_client(&self) -> bool {
        self.reads_client
    }

    /// The expression as it was written.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// Its disjunctive normal form.
    #[must_use]
    pub fn normal(&self) -> &Normal {
        &self.normal
    }
}
