//! Leaves as code for the device.
//!
//! What a leaf says of one variable alone is a *column*: the processor works it out once for each event that comes, by the code that
//! defines the meaning. What is left, relations of several variables, the device works out in `f64`, each number with a bound on its
//! error, and tells where that could decide.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use kernels::checks::{self as k, Code, STACK};
use matcher::condition::expression::{Comparand, Comparison};
use matcher::event::Scalar;
use matcher::predicate::node::{Operator, Place};
use matcher::predicate::{Node, Operand, Predicate, Term};

use crate::columns::{Column, Columns, mask};
use crate::compile::{Unfit, u32_of};

/// A leaf on its way into code.
pub(crate) struct Leaves<'a> {
    predicate: &'a Predicate,
    columns: &'a mut Columns,
    code: &'a mut Vec<Code>,
    /// Values and truths on the stacks.
    values: usize,
    truths: usize,
}

impl<'a> Leaves<'a> {
    pub(crate) fn new(predicate: &'a Predicate, columns: &'a mut Columns, code: &'a mut Vec<Code>) -> Self {
        Self { predicate, columns, code, values: 0, truths: 0 }
    }

    pub(crate) fn compile(mut self) -> Result<(), Unfit> {
        self.truth(self.predicate.tree())
    }

    /// Adds an instruction that takes values and truths from the stacks and pushes others.
    fn push(&mut self, code: Code, values: [usize; 2], truths: [usize; 2]) -> Result<(), Unfit> {
        self.code.push(code);
        self.values = self.values - values[0] + values[1];
        self.truths = self.truths - truths[0] + truths[1];
        if self.values > STACK || self.truths > STACK { Err(Unfit::Stack) } else { Ok(()) }
    }

    fn push_value(&mut self, op: u32, depths: [usize; 2], number: f64) -> Result<(), Unfit> {
        self.push(code(op, depths, number), [0, 1], [0, 0])
    }

    fn truth(&mut self, node: &Node) -> Result<(), Unfit> {
        let mut variables = BTreeSet::new();
        let _ = node.visit_variables(&mut |variable| seen(&mut variables, variable));
        let world = self.predicate.world();
        if let Some(variable) = alone(&variables) {
            let column = self.columns.add(Column::Truth(Predicate::of(world, node.clone())));
            return self.push(code(k::TRUTH_CELL, [variable, column], 0.0), [0, 0], [0, 1]);
        }
        if variables.is_empty() {
            let truth = Predicate::of(world, node.clone()).truth(&[]);
            return self.push(code(k::TRUTH_CONSTANT, [mask(truth) as usize, 0], 0.0), [0, 0], [0, 1]);
        }
        match node {
            Node::Not(inner) => {
                self.truth(inner)?;
                self.push(code(k::TRUTH_NOT, [0, 0], 0.0), [0, 0], [1, 1])
            }
            Node::And(inner) => self.all(inner, k::TRUTH_AND),
            Node::Or(inner) => self.all(inner, k::TRUTH_OR),
            Node::Compare(comparison, operands) => self.compare(*comparison, &operands[0], &operands[1]),
            Node::Between(operands) => {
                operands.iter().try_for_each(|operand| self.value(operand))?;
                self.push(code(k::BETWEEN, [0, 0], 0.0), [3, 0], [0, 1])
            }
            Node::In(value, list) if !list.is_empty() => {
                for (idx, operand) in list.iter().enumerate() {
                    self.compare(Comparison::Equal, value, operand)?;
                    if idx > 0 {
                        self.push(code(k::TRUTH_OR, [0, 0], 0.0), [0, 0], [2, 1])?;
                    }
                }
                Ok(())
            }
            Node::Same(a, b) => self.push(code(k::SAME, [*a, *b], 0.0), [0, 0], [0, 1]),
            // The processor decides these each time.
            Node::Constant(_)
            | Node::In(..)
            | Node::Like(..)
            | Node::IsNull(_)
            | Node::Temporal(..)
            | Node::Sets(..)
            | Node::Within(..) => {
                self.push(code(k::TRUTH_CONSTANT, [k::MAY_BE_ANY as usize, 0], 0.0), [0, 0], [0, 1])
            }
        }
    }

    fn all(&mut self, nodes: &[Node], op: u32) -> Result<(), Unfit> {
        for (idx, node) in nodes.iter().enumerate() {
            self.truth(node)?;
            if idx > 0 {
                self.push(code(op, [0, 0], 0.0), [0, 0], [2, 1])?;
            }
        }
        Ok(())
    }

    fn compare(&mut self, comparison: Comparison, left: &Operand, right: &Operand) -> Result<(), Unfit> {
        self.value(left)?;
        self.value(right)?;
        let nth = match comparison {
            Comparison::Equal => 0,
            Comparison::NotEqual => 1,
            Comparison::Less => 2,
            Comparison::LessOrEqual => 3,
            Comparison::Greater => 4,
            Comparison::GreaterOrEqual => 5,
        };
        self.push(code(k::COMPARE + nth, [0, 0], 0.0), [2, 0], [0, 1])
    }

    fn value(&mut self, operand: &Operand) -> Result<(), Unfit> {
        let mut variables = BTreeSet::new();
        let _ = operand.visit_variables(&mut |variable| seen(&mut variables, variable));
        let term = || Term::of(self.predicate.world(), operand.clone());
        if let Some(variable) = alone(&variables) {
            let column = self.columns.add(Column::Value(term()));
            return self.push_value(k::PUSH_CELL, [variable, column], 0.0);
        }
        if variables.is_empty() {
            if let Operand::Value(Comparand::Date(_) | Comparand::Timestamp(_)) = operand {
                return self.push_value(k::PUSH_ARRAY, [0, 0], 0.0);
            }
            return match term().value(&[]) {
                None => self.push_value(k::PUSH_NOTHING, [0, 0], 0.0),
                Some(Scalar::Number(number)) => self.push_value(k::PUSH_NUMBER, [0, 0], number),
                Some(Scalar::Bool(truth)) => self.push_value(k::PUSH_BOOL, [0, 0], truth.into()),
                Some(Scalar::Text(text)) => {
                    let number = self.columns.number_of_constant(text.as_str());
                    self.push_value(k::PUSH_TEXT, [0, 0], number)
                }
            };
        }
        match operand {
            Operand::Negated(inner) => {
                self.value(inner)?;
                self.push(code(k::NEGATE, [0, 0], 0.0), [1, 1], [0, 0])
            }
            Operand::Absolute(inner) => {
                self.value(inner)?;
                self.push(code(k::ABSOLUTE, [0, 0], 0.0), [1, 1], [0, 0])
            }
            Operand::Arithmetic(operator, operands) => {
                operands.iter().try_for_each(|operand| self.value(operand))?;
                let nth = match operator {
                    Operator::Add => 0,
                    Operator::Subtract => 1,
                    Operator::Multiply => 2,
                    Operator::Divide => 3,
                    Operator::Remainder => 4,
                    Operator::IntegerDivide => 5,
                    Operator::Power => 6,
                };
                self.push(code(k::ARITHMETIC + nth, [0, 0], 0.0), [2, 1], [0, 0])
            }
            Operand::Distance(places) => match **places {
                [Place::Of(a), Place::Of(b)] => self.push_value(k::PUSH_DISTANCE, [a, b], 0.0),
                _ => Err(Unfit::Leaf),
            },
            Operand::Elapsed(from, to) => self.push_value(k::PUSH_ELAPSED, [*from, *to], 0.0),
            Operand::Speed(a, b) => self.push_value(k::PUSH_SPEED, [*a, *b], 0.0),
            Operand::Value(_)
            | Operand::Attribute(_)
            | Operand::Folded(..)
            | Operand::Longitude(_)
            | Operand::Latitude(_)
            | Operand::Interval(_)
            | Operand::Array(_) => Err(Unfit::Leaf),
        }
    }
}

fn code(op: u32, [a, b]: [usize; 2], number: f64) -> Code {
    let short = |number| u16::try_from(u32_of(number)).expect("a formula has few variables and columns");
    Code { op, a: short(a), b: short(b), number }
}

fn seen(variables: &mut BTreeSet<usize>, variable: usize) -> ControlFlow<()> {
    variables.insert(variable);
    ControlFlow::Continue(())
}

/// The variable of a part that reads one.
fn alone(variables: &BTreeSet<usize>) -> Option<usize> {
    if variables.len() == 1 { variables.first().copied() } else { None }
}
