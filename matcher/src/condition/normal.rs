//! Disjunctive normal form: a disjunction of conjunctions of constraints and residuals, each plain or negated.
//!
//! A constraint stays whole: `IN` and `BETWEEN` are one constraint each, so that over an array one element
//! has to satisfy all of it, and the negation of a constraint is kept as such, since over an array it is not
//! the opposite comparison.

use super::expression::{Constraint, Expression, Residual, Truth};
use crate::event::{Event, Symbol, Value};
use crate::geo::Position;

/// The most conjunctions that a normal form may have.
pub const CONJUNCTIONS_MAX: u64 = 64;
/// The most constraints that a conjunction may have.
pub const CONSTRAINTS_MAX: u64 = 32;
/// Bytes of a name and its values up to which [`Normal::constraints_count`] takes a constraint for one.
pub const CONSTRAINT_BYTES: usize = 256;

/// A disjunction of conjunctions. Without conjunctions it is never true; a conjunction without literals
/// always is.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    conjunctions: Vec<Conjunction>,
}

/// Constraints and residuals that all have to hold. Without any it always does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conjunction {
    /// The constraints, which indexes serve.
    pub literals: Vec<Literal>,
    /// Parts that are decided after them.
    pub residuals: Vec<ResidualLiteral>,
}

/// A constraint, or its negation: true when the constraint is false (not when it is unknown).
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// The constraint.
    pub constraint: Constraint,
    /// Whether it is its `NOT` that must be true.
    pub negated: bool,
}

/// A residual, or its negation: true when the residual is false (not when it is unknown).
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualLiteral {
    /// The residual.
    pub residual: Residual,
    /// Whether it is its `NOT` that must be true.
    pub negated: bool,
}

/// The normal form would be too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// More than [`CONJUNCTIONS_MAX`].
    #[error(
        "the disjunctive form of the condition has {} conjunctions, at most {CONJUNCTIONS_MAX} are allowed",
        counted(*found)
    )]
    Conjunctions {
        /// How many it would have; `u64::MAX` stands for more as well.
        found: u64,
    },
    /// More than [`CONSTRAINTS_MAX`] in one conjunction.
    #[error(
        "the disjunctive form of the condition has a conjunction of {found} constraints, at most {CONSTRAINTS_MAX} are allowed"
    )]
    Constraints {
        /// How many it would have.
        found: u64,
    },
}

/// A count in a sentence. Counts stop where 64 bits end.
fn counted(found: u64) -> String {
    if found == u64::MAX { "more than 10^19".to_owned() } else { found.to_string() }
}

impl Normal {
    pub(super) fn always() -> Self {
        Self { conjunctions: vec![Conjunction::default()] }
    }

    /// Normalises; the size is counted before anything is multiplied out.
    pub(super) fn of(expression: &Expression) -> Result<Self, TooLarge> {
        Self::check(expression)?;
        Ok(Self { conjunctions: multiply_out(expression, false) })
    }

    /// Refuses what has too large a normal form, without making that.
    pub(super) fn check(expression: &Expression) -> Result<(), TooLarge> {
        let size = measure(expression, false);
        if size.conjunctions > CONJUNCTIONS_MAX {
            return Err(TooLarge::Conjunctions { found: size.conjunctions });
        }
        if size.constraints > CONSTRAINTS_MAX {
            return Err(TooLarge::Constraints { found: size.constraints });
        }
        Ok(())
    }

    /// The normal form with one constraint more in each conjunction.
    pub(super) fn and(mut self, constraint: &Constraint) -> Self {
        for conjunction in &mut self.conjunctions {
            conjunction.literals.push(Literal { constraint: constraint.clone(), negated: false });
        }
        self
    }

    /// How much it is to hold and to test, in constraints: each counts once in every conjunction that it stands in, a long one for as many as it
    /// has [`CONSTRAINT_BYTES`], a `LIKE` that goes through whole texts for as many as that may cost, and a
    /// conjunction without any as one.
    ///
    /// Cost: linear in the constraints and the values that they list.
    #[must_use]
    pub fn constraints_count(&self) -> u64 {
        let count = |Literal { constraint, .. }: &Literal| {
            constraint.bytes().div_ceil(CONSTRAINT_BYTES).max(constraint.cost()) as u64
        };
        let count_residual = |ResidualLiteral { residual, .. }: &ResidualLiteral| {
            residual.bytes().div_ceil(CONSTRAINT_BYTES).max(residual.cost()) as u64
        };
        let conjunction = |Conjunction { literals, residuals }: &Conjunction| {
            let counts = literals.iter().map(count).chain(residuals.iter().map(count_residual));
            counts.sum::<u64>().max(1)
        };
        self.conjunctions.iter().map(conjunction).sum()
    }

    /// Whether it depends on where the client is.
    pub(super) fn reads_client(&self) -> bool {
        let mut residuals = self.conjunctions.iter().flat_map(|conjunction| &conjunction.residuals);
        residuals.any(|literal| literal.residual.reads_client())
    }

    /// The conjunctions.
    #[must_use]
    pub fn conjunctions(&self) -> &[Conjunction] {
        &self.conjunctions
    }
}

impl Conjunction {
    /// Whether an event satisfies all of it, for a client that is there.
    #[must_use]
    pub fn satisfied(&self, event: &Event, client: Option<&Position>) -> bool {
        self.literals.iter().all(|literal| literal.satisfied(event.value(&literal.constraint.name)))
            && self.residuals.iter().all(|literal| literal.satisfied(event, client))
    }

    /// The names that its residuals require, as often as they do.
    pub fn required(&self) -> impl Iterator<Item = &Symbol> {
        self.residuals.iter().flat_map(|literal| literal.residual.required())
    }

    /// Both at once.
    fn with(&self, other: &Self) -> Self {
        Self {
            literals: [&*self.literals, &*other.literals].concat(),
            residuals: [&*self.residuals, &*other.residuals].concat(),
        }
    }
}

impl ResidualLiteral {
    /// Whether it is true for an event and a client that is there.
    #[must_use]
    pub fn satisfied(&self, event: &Event, client: Option<&Position>) -> bool {
        self.residual.truth(event, client) == if self.negated { Truth::False } else { Truth::True }
    }
}

impl Literal {
    /// Whether it is true for the attribute's value, `None` where the attribute is absent.
    #[must_use]
    pub fn satisfied(&self, value: Option<&Value>) -> bool {
        self.constraint.truth(value) == if self.negated { Truth::False } else { Truth::True }
    }
}

/// How large a normal form is.
#[derive(Clone, Copy)]
struct Size {
    conjunctions: u64,
    /// Constraints of the longest conjunction.
    constraints: u64,
}

/// Form of an expression once negations have been pushed to the constraints (De Morgan).
enum Shape<'a> {
    Constant(bool),
    Literal(&'a Constraint),
    Residual(&'a Residual),
    Inner(&'a Expression),
    All(&'a [Expression]),
    Any(&'a [Expression]),
}

fn shape(expression: &Expression, negated: bool) -> Shape<'_> {
    match (expression, negated) {
        (Expression::Constant(truth), _) => Shape::Constant(*truth != negated),
        (Expression::Constraint(constraint), _) => Shape::Literal(constraint),
        (Expression::Residual(residual), _) => Shape::Residual(residual),
        (Expression::Not(inner), _) => Shape::Inner(inner),
        (Expression::And(inner), false) | (Expression::Or(inner), true) => Shape::All(inner),
        (Expression::Or(inner), false) | (Expression::And(inner), true) => Shape::Any(inner),
    }
}

fn measure(expression: &Expression, negated: bool) -> Size {
    match shape(expression, negated) {
        Shape::Constant(truth) => Size { conjunctions: truth.into(), constraints: 0 },
        Shape::Literal(_) => Size { conjunctions: 1, constraints: 1 },
        Shape::Residual(residual) => Size { conjunctions: 1, constraints: residual.weight() },
        Shape::Inner(inner) => measure(inner, !negated),
        Shape::All(inner) => inner.iter().map(|operand| measure(operand, negated)).fold(
            Size { conjunctions: 1, constraints: 0 },
            |a, b| match a.conjunctions.saturating_mul(b.conjunctions) {
                0 => Size { conjunctions: 0, constraints: 0 },
                conjunctions => {
                    Size { conjunctions, constraints: a.constraints.saturating_add(b.constraints) }
                }
            },
        ),
        Shape::Any(inner) => inner.iter().map(|operand| measure(operand, negated)).fold(
            Size { conjunctions: 0, constraints: 0 },
            |a, b| Size {
                conjunctions: a.conjunctions.saturating_add(b.conjunctions),
                constraints: a.constraints.max(b.constraints),
            },
        ),
    }
}

fn multiply_out(expression: &Expression, negated: bool) -> Vec<Conjunction> {
    match shape(expression, negated) {
        Shape::Constant(true) => vec![Conjunction::default()],
        Shape::Constant(false) => Vec::new(),
        Shape::Literal(constraint) => {
            let literals = vec![Literal { constraint: constraint.clone(), negated }];
            vec![Conjunction { literals, residuals: Vec::new() }]
        }
        Shape::Residual(residual) => {
            let residuals = vec![ResidualLiteral { residual: residual.clone(), negated }];
            vec![Conjunction { literals: Vec::new(), residuals }]
        }
        Shape::Inner(inner) => multiply_out(inner, !negated),
        Shape::Any(inner) => inner.iter().flat_map(|operand| multiply_out(operand, negated)).collect(),
        // A product with a factor that is never true is small however large its other factors are.
        Shape::All(inner) if inner.iter().any(|operand| measure(operand, negated).conjunctions == 0) => {
            Vec::new()
        }
        Shape::All(inner) => inner.iter().fold(vec![Conjunction::default()], |products, operand| {
            let factors = multiply_out(operand, negated);
            products
                .iter()
                .flat_map(|product: &Conjunction| factors.iter().map(|factor| product.with(factor)))
                .collect()
        }),
    }
}
