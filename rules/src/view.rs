//! A program as it stands in its text, for engines elsewhere.

use std::sync::Arc;

use crate::program::{Fault, Source};
use crate::syntax::{Fault as At, Kind, Node, Operators, Parser, float, quoted};
use crate::term::{Atom, Atoms};

/// A program as it was read.
#[derive(Clone, Debug)]
pub struct View {
    /// Names of constraints, with the types of their arguments; untyped ones have none.
    pub constraints: Vec<Constraint>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    operators: Operators,
}

/// A kind of constraints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Its name.
    pub name: Arc<str>,
    /// The types of its arguments as the declaration has them, without their modes; empty texts where it has none.
    pub types: Vec<String>,
    /// Whether its name is an operator, so that it is written otherwise than others.
    pub is_operator: bool,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Bytes of the text before it.
    pub at: usize,
    /// Its heads, in their order.
    pub heads: Vec<Head>,
    /// Conditions that have to hold; none is `true`.
    pub guard: Option<Term>,
    /// What is done.
    pub body: Term,
    /// Names of its variables, by their numbers.
    pub variables: Vec<String>,
}

/// A head of a rule.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its name.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Vec<Term>,
    /// Whether the rule takes it away.
    pub is_removed: bool,
    /// Whether it never looks for the others.
    pub is_passive: bool,
}

/// A term, and where it stands.
#[derive(Clone, Debug)]
pub struct Term {
    /// What it is.
    pub shape: Shape,
    /// Bytes of the text before it.
    pub at: usize,
}

/// What a term is.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A variable, by its number in the rule.
    Variable(usize),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// An atom, or a name with arguments. Conjunctions are `,` with two parts or more.
    Name(Arc<str>, Vec<Term>),
    /// A list.
    List,
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape
    }
}

impl View {
    /// Reads a program.
    ///
    /// # Errors
    /// All that is wrong with its text.
    pub fn new(text: &str) -> Result<Self, Vec<Fault>> {
        let mut atoms = Atoms::default();
        let mut operators = Operators::default();
        let (source, faults) = Source::read(text, &mut atoms, &mut operators);
        if !faults.is_empty() {
            return Err(faults.into_iter().map(|fault| Fault::new(text, fault)).collect());
        }
        let viewer = Viewer { atoms: &atoms };
        let constraints = source.constraints.iter().map(|(name, arity)| Constraint {
            name: atoms.text(*name),
            types: viewer.types(&source, *name, *arity),
            is_operator: operators.is_one(atoms.name(*name)),
        });
        let constraints = constraints.collect();
        let rules = source.rules.iter().map(|rule| Rule {
            name: rule.name.map(|name| atoms.name(name).to_owned()),
            at: rule.at,
            heads: rule
                .heads
                .iter()
                .map(|head| Head {
                    name: atoms.text(head.name),
                    arguments: viewer.terms(&head.arguments),
                    is_removed: head.is_removed,
                    is_passive: head.is_passive,
                })
                .collect(),
            guard: rule.guard.as_ref().map(|guard| viewer.term(guard)),
            body: viewer.term(&rule.body),
            variables: rule.variables.clone(),
        });
        Ok(Self { constraints, rules: rules.collect(), operators })
    }

    /// Reads a goal.
    ///
    /// # Errors
    /// What is wrong with its text.
    pub fn goal(&self, text: &str) -> Result<Term, Fault> {
        let mut atoms = Atoms::default();
        let read = Parser::new(text, &mut atoms).goal(&self.operators);
        let read = read.map_err(|fault| Fault::new(text, fault))?;
        Ok(Viewer { atoms: &atoms }.term(&read.term))
    }
}

/// What is wrong with a text, as its reader tells it.
#[must_use]
pub fn fault(text: &str, at: usize, what: String) -> Fault {
    Fault::new(text, At { at, what })
}

/// A constraint over numbers and atoms as `writeq` writes it, unless its name is an operator.
#[must_use]
pub fn text(name: &str, arguments: &[Shape]) -> String {
    let mut text = quoted(name);
    for (idx, argument) in arguments.iter().enumerate() {
        text.push(if idx == 0 { '(' } else { ',' });
        text.push_str(&match argument {
            Shape::Int(number) => number.to_string(),
            Shape::Float(number) => float(*number),
            Shape::Name(name, _) => quoted(name),
            Shape::Variable(_) | Shape::List => String::from("_"),
        });
    }
    if !arguments.is_empty() {
        text.push(')');
    }
    text
}

struct Viewer<'a> {
    atoms: &'a Atoms,
}

impl Viewer<'_> {
    fn types(&self, source: &Source, name: Atom, arity: usize) -> Vec<String> {
        let declared = source.types.iter().find(|(known, types)| *known == name && types.len() == arity);
        match declared {
            Some((_, types)) => types.iter().map(|declared| self.type_of(declared)).collect(),
            None => vec![String::new(); arity],
        }
    }

    /// The type of `+int` and the like.
    fn type_of(&self, declared: &Node) -> String {
        match &declared.kind {
            Kind::Atom(name) => self.atoms.name(*name).to_owned(),
            Kind::Compound(_, parts) if parts.len() == 1 => self.type_of(&parts[0]),
            _ => String::new(),
        }
    }

    fn terms(&self, nodes: &[Node]) -> Vec<Term> {
        nodes.iter().map(|node| self.term(node)).collect()
    }

    fn term(&self, node: &Node) -> Term {
        let shape = match &node.kind {
            Kind::Variable(number) => Shape::Variable(*number),
            Kind::Int(number) => Shape::Int(*number),
            Kind::Float(number) => Shape::Float(*number),
            Kind::Atom(name) => Shape::Name(self.atoms.text(*name), Vec::new()),
            Kind::Compound(name, parts) => Shape::Name(self.atoms.text(*name), self.terms(parts)),
            Kind::Conjunction(parts) => Shape::Name(self.atoms.text(Atom::COMMA), self.terms(parts)),
            Kind::List(..) => Shape::List,
        };
        Term { shape, at: node.at }
    }
}
