//! Parts of conditions that no index serves: whatever is no constraint on one attribute. They are decided after the rest.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::expression::{Expression, Truth};
use crate::event::{Event, Symbol, Value};
use crate::geo::{Position, World};
use crate::predicate::Subject;
use crate::predicate::evaluate::{Context, ns};
use crate::predicate::node::{Attribute, Node, Operand};

/// Cost up to which the normal form counts a residual as one constraint, in plain constraints.
const UNIT_COST: usize = 16;

/// Index of the variable of the event.
const EVENT: usize = 0;
/// Index of the variable of the client, `me`.
pub(crate) const CLIENT: usize = 1;

/// A leaf over one event, and maybe the client, that is no constraint, such as `speed > limit + 10`. Copies share it.
#[derive(Clone, Debug)]
pub struct Residual(Arc<Held>);

#[derive(Debug)]
struct Held {
    world: World,
    node: Node,
    /// Attributes without which it is unknown.
    required: Box<[Symbol]>,
    /// Whether it depends on where the client is.
    reads_client: bool,
    /// Its text, with the hash that tells residuals apart quickly.
    text: Symbol,
    cost: usize,
}

impl PartialEq for Residual {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.node == other.0.node && self.0.world == other.0.world)
    }
}

impl Residual {
    /// The expression of a leaf over one event; places are of the world. What is the same for all events is a constant.
    pub(super) fn expression(world: World, node: Node) -> Expression {
        let [mut reads_event, mut reads_client] = [false, false];
        let _ = node.visit_variables(&mut |variable| {
            reads_event |= variable == EVENT;
            reads_client |= variable == CLIENT;
            ControlFlow::Continue(())
        });
        if !reads_event && !reads_client {
            match node.truth(Context { world, subjects: &[] }) {
                Truth::True => return Expression::Constant(true),
                Truth::False => return Expression::Constant(false),
                Truth::Unknown => {}
            }
        }
        let mut required = Vec::new();
        for operand in node.deciding() {
            attributes(operand, &mut |attribute| {
                if !required.contains(&attribute.name) {
                    required.push(attribute.name.clone());
                }
            });
        }
        let (text, cost) = (Symbol::new(node.to_string()), node.cost());
        let required = required.into();
        Expression::Residual(Self(Arc::new(Held { world, node, required, reads_client, text, cost })))
    }

    /// Its truth for an event and a client, where that is. Without a place all that reads the client is unknown.
    #[must_use]
    pub fn truth(&self, event: &Event, client: Option<&Position>) -> Truth {
        self.in_context(event, client, |context| self.0.node.truth(context))
    }

    /// Whether it depends on where the client is.
    #[must_use]
    pub fn reads_client(&self) -> bool {
        self.0.reads_client
    }

    /// The leaf.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// Attributes without which it is unknown, each once.
    #[must_use]
    pub fn required(&self) -> &[Symbol] {
        &self.0.required
    }

    /// The attributes that it reads, each once, with their values in an event.
    pub(crate) fn read<'a>(&self, event: &'a Event) -> Vec<(Symbol, Option<&'a Value>)> {
        let mut read: Vec<(Symbol, Option<&Value>)> = Vec::new();
        for operand in self.0.node.operands() {
            attributes(operand, &mut |attribute| {
                if read.iter().all(|(name, _)| *name != attribute.name) {
                    read.push((attribute.name.clone(), event.value(&attribute.name)));
                }
            });
        }
        read
    }

    /// A hash of it, the same for equal ones within one process.
    pub(crate) fn hash(&self) -> u64 {
        self.0.text.hash()
    }

    /// Time that its truth takes for an event, in nanoseconds, about.
    pub(crate) fn ns(&self, event: &Event) -> u64 {
        self.in_context(event, None, |context| ns(&self.0.node, context))
    }

    /// For how many constraints it counts where these are bounded.
    pub(super) fn weight(&self) -> u64 {
        self.0.cost.div_ceil(UNIT_COST).max(1) as u64
    }

    /// Cost of its truth at worst, in plain constraints.
    pub(super) fn cost(&self) -> usize {
        self.0.cost
    }

    /// Bytes that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.0.text.as_str().len()
    }

    fn in_context<T>(
        &self,
        event: &Event,
        client: Option<&Position>,
        read: impl FnOnce(Context<'_>) -> T,
    ) -> T {
        let subject = |event| Subject { event, time_ms: 0, identity: 0 };
        let client = client.filter(|_| self.0.reads_client).map(|client| Event::at(*client));
        let subjects = [Some(subject(event)), client.as_ref().map(subject)];
        read(Context { world: self.0.world, subjects: &subjects })
    }
}

impl Node {
    /// The operands of a leaf without whose values it is unknown.
    fn deciding(&self) -> Vec<&Operand> {
        match self {
            Self::IsNull(_) => Vec::new(),
            // A value of the list may be missing where another one equals.
            Self::In(value, _) => vec![value],
            // A list without some of its elements is one.
            Self::Sets(_, operands) => {
                operands.iter().filter(|operand| !matches!(operand, Operand::Array(_))).collect()
            }
            Self::Constant(_)
            | Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Compare(..)
            | Self::Between(_)
            | Self::Like(..)
            | Self::Temporal(..)
            | Self::Within(..)
            | Self::Same(..) => self.operands(),
        }
    }
}

/// Visits the attributes of an operand.
fn attributes(operand: &Operand, visit: &mut impl FnMut(&Attribute)) {
    if let Operand::Attribute(attribute) = operand {
        visit(attribute);
    }
    for inner in operand.operands() {
        attributes(inner, visit);
    }
}
