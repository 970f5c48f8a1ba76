//! A check that was read: names are resolved, texts are parsed, sizes are bounded.

use matcher::World;
use matcher::area::Area;
use matcher::condition::expression::Truth;
use matcher::condition::{Condition, ConditionError};
use matcher::event::Event;
use matcher::predicate::Predicate;

use crate::formula::{Clock, Document, Formula, Quantified};

/// The most context sets that a check may have: a bit each in the word that says which sets hold an event.
pub const CONTEXTS_MAX: usize = 64;

/// The most variables that a formula may bind.
pub const VARIABLES_MAX: usize = 16;

/// The most parts that a formula may have, leaves included.
pub const PARTS_MAX: usize = 256;

/// The deepest that a formula may be nested.
pub const NESTING_MAX: usize = 32;

/// The longest that a set may hold an event: a hundred days.
pub const FOR_S_MAX: f64 = 8_640_000.0;

/// What is wrong with a document, and where.
#[derive(Debug, thiserror::Error)]
#[error("{pointer}: {fault}")]
pub struct CheckError {
    /// JSON pointer of the member that is wrong, from the document's root.
    pub pointer: String,
    /// What is wrong with it.
    #[source]
    pub fault: Fault,
}

/// What may be wrong with a part of a document.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no set of this name.
    #[error("there is no context `{0}`")]
    UnknownContext(String),
    /// Two sets have one name.
    #[error("there are two contexts `{0}`")]
    ContextTwice(String),
    /// A variable is bound twice.
    #[error("the variable `{0}` is bound twice")]
    BoundTwice(String),
    /// A name that no leaf could say.
    #[error("`{0}` is no name of a variable: a letter or `_`, then letters, digits and `_`")]
    Name(String),
    /// A duration that is negative, not finite or too long.
    #[error("a set holds events for 0 to {FOR_S_MAX} seconds, found {0}")]
    Duration(f64),
    /// A set has no client that its area could follow.
    #[error("a context has no client that its area could follow")]
    Following,
    /// More of something than a check may have.
    #[error("a check has at most {max} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        max: usize,
    },
    /// A condition that cannot be read.
    #[error(transparent)]
    Condition(ConditionError),
    /// A leaf that cannot be read.
    #[error(transparent)]
    Leaf(ConditionError),
}

/// A check, ready for an engine.
#[derive(Debug)]
pub struct Check {
    pub(crate) world: World,
    pub(crate) clock: Clock,
    /// Different sets; contexts that take the same for as long are one.
    pub(crate) sets: Vec<SetRule>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) root: Node,
    contexts: Vec<(String, usize)>,
}

/// Which events a set takes, and for how long.
#[derive(Debug, PartialEq)]
pub(crate) struct SetRule {
    condition: Condition,
    area: Area,
    pub(crate) for_ms: i64,
}

/// A variable of the formula.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Set that it goes through.
    pub(crate) set: usize,
    /// Variables that are bound around it: its place in the frame of a leaf.
    pub(crate) depth: usize,
}

/// A leaf of the formula.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) predicate: Predicate,
    /// Depths of the variables that it speaks of, ascending.
    pub(crate) depths: Vec<usize>,
}

/// A part of a resolved formula, for an engine.
#[derive(Debug)]
pub enum Node {
    /// A leaf, by its place in [`Check::predicate`].
    Leaf(usize),
    /// A variable, and the part that has to hold for every event of its set.
    Forall(usize, Box<Node>),
    /// A variable, and the part that has to hold for some event of its set.
    Exists(usize, Box<Node>),
    /// All of them.
    And(Vec<Node>),
    /// Some of them.
    Or(Vec<Node>),
    /// The second where the first holds.
    Implies(Box<Node>, Box<Node>),
    /// The inner part does not hold.
    Not(Box<Node>),
}

impl SetRule {
    /// Whether the set takes an event, whenever it was.
    pub(crate) fn takes(&self, world: World, event: &Event) -> bool {
        self.condition.expression().truth(event) == Truth::True
            && self.area.holds(world, None, &event.position)
    }
}

impl Check {
    /// Reads a document.
    ///
    /// # Errors
    /// The first thing that is wrong, with a pointer to where it stands.
    pub fn new(world: World, document: &Document) -> Result<Self, CheckError> {
        let mut check = Self {
            world,
            clock: document.clock,
            sets: Vec::new(),
            variables: Vec::new(),
            leaves: Vec::new(),
            root: Node::And(Vec::new()),
            contexts: Vec::new(),
        };
        check.read_contexts(document)?;
        let mut reading =
            Reading { check: &mut check, scope: Vec::new(), parts: 0, pointer: "/formula".into() };
        let root = reading.read(&document.formula, 0)?;
        check.root = root;
        Ok(check)
    }

    fn read_contexts(&mut self, document: &Document) -> Result<(), CheckError> {
        if document.contexts.len() > CONTEXTS_MAX {
            let fault = Fault::TooMany { what: "contexts", max: CONTEXTS_MAX };
            return Err(CheckError { pointer: "/contexts".into(), fault });
        }
        for context in &document.contexts {
            let pointer = format!("/contexts/{}", escape(&context.name));
            let fault = |member: &str, fault| CheckError { pointer: format!("{pointer}{member}"), fault };
            if self.contexts.iter().any(|(name, _)| *name == context.name) {
                return Err(fault("", Fault::ContextTwice(context.name.clone())));
            }
            if !(0.0..=FOR_S_MAX).contains(&context.for_s) {
                return Err(fault("/for_s", Fault::Duration(context.for_s)));
            }
            let area = context.area.clone().unwrap_or(Area::Everywhere);
            if matches!(area, Area::Following(_)) {
                return Err(fault("/area", Fault::Following));
            }
            let condition = match &context.condition {
                None => Condition::always(),
                Some(text) => {
                    let expression = Condition::parse_expression(self.world, text);
                    let condition = expression.and_then(|expression| Ok(Condition::new(expression)?));
                    condition.map_err(|error| fault("/where", Fault::Condition(error)))?
                }
            };
            #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
            let rule = SetRule { condition, area, for_ms: (context.for_s * 1_000.0).round() as i64 };
            let known = self.sets.iter().position(|other| *other == rule);
            let set = known.unwrap_or_else(|| {
                self.sets.push(rule);
                self.sets.len() - 1
            });
            self.contexts.push((context.name.clone(), set));
        }
        Ok(())
    }

    /// Names of the variables, in the order in which the formula binds them.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = &str> {
        self.variables.iter().map(|variable| &*variable.name)
    }

    /// Whether some set takes an event, whenever it was.
    #[must_use]
    pub fn takes(&self, event: &Event) -> bool {
        self.sets.iter().any(|set| set.takes(self.world, event))
    }

    /// Number of the set that a context is; two contexts that take the same for as long are one set.
    #[must_use]
    pub fn set_of(&self, context: &str) -> Option<usize> {
        self.contexts.iter().find(|(name, _)| name == context).map(|(_, set)| *set)
    }

    /// The world of its places and distances.
    #[must_use]
    pub fn world(&self) -> World {
        self.world
    }

    /// The formula, for an engine.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// A leaf of the formula. Its variables are those that are bound around it, from the outermost inwards.
    #[must_use]
    pub fn predicate(&self, leaf: usize) -> &Predicate {
        &self.leaves[leaf].predicate
    }

    /// Number of the set that a variable goes through.
    #[must_use]
    pub fn set_of_variable(&self, variable: usize) -> usize {
        self.variables[variable].set
    }

    /// How long a set holds an event, in seconds.
    #[must_use]
    pub fn for_s(&self, set: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "durations are bounded")]
        let for_ms = self.sets[set].for_ms as f64;
        for_ms / 1_000.0
    }

    /// How many different sets there are.
    #[must_use]
    pub fn sets_count(&self) -> usize {
        self.sets.len()
    }
}

/// Characters that have a meaning in a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A formula on its way to a resolved one.
struct Reading<'a> {
    check: &'a mut Check,
    /// Variables that are bound here, from the outermost inwards.
    scope: Vec<usize>,
    parts: usize,
    pointer: String,
}

impl Reading<'_> {
    fn fault(&self, member: &str, fault: Fault) -> CheckError {
        CheckError { pointer: format!("{}{member}", self.pointer), fault }
    }

    fn read(&mut self, formula: &Formula, nesting: usize) -> Result<Node, CheckError> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(self.fault("", Fault::TooMany { what: "parts of a formula", max: PARTS_MAX }));
        }
        if nesting > NESTING_MAX {
            return Err(self.fault("", Fault::TooMany { what: "levels of nesting", max: NESTING_MAX }));
        }
        Ok(match formula {
            Formula::Leaf(text) => Node::Leaf(self.read_leaf(text)?),
            Formula::Forall(quantified) => {
                let (variable, body) = self.read_quantified(quantified, "/forall", nesting)?;
                Node::Forall(variable, body)
            }
            Formula::Exists(quantified) => {
                let (variable, body) = self.read_quantified(quantified, "/exists", nesting)?;
                Node::Exists(variable, body)
            }
            Formula::And(parts) => Node::And(self.read_all(parts.iter(), "/and", nesting)?),
            Formula::Or(parts) => Node::Or(self.read_all(parts.iter(), "/or", nesting)?),
            Formula::Implies(premise, conclusion) => {
                let premise = self.inside("/implies/0", |reading| reading.read(premise, nesting + 1))?;
                let conclusion =
                    self.inside("/implies/1", |reading| reading.read(conclusion, nesting + 1))?;
                Node::Implies(Box::new(premise), Box::new(conclusion))
            }
            Formula::Not(inner) => {
                Node::Not(Box::new(self.inside("/not", |reading| reading.read(inner, nesting + 1))?))
            }
        })
    }

    /// Reads what stands in a member of the present part.
    fn inside<T>(
        &mut self,
        member: &str,
        read: impl FnOnce(&mut Self) -> Result<T, CheckError>,
    ) -> Result<T, CheckError> {
        let length = self.pointer.len();
        self.pointer.push_str(member);
        let result = read(self);
        self.pointer.truncate(length);
        result
    }

    fn read_all<'f>(
        &mut self,
        parts: impl Iterator<Item = &'f Formula>,
        member: &str,
        nesting: usize,
    ) -> Result<Vec<Node>, CheckError> {
        parts
            .enumerate()
            .map(|(idx, part)| {
                self.inside(&format!("{member}/{idx}"), |reading| reading.read(part, nesting + 1))
            })
            .collect()
    }

    fn read_quantified(
        &mut self,
        quantified: &Quantified,
        member: &str,
        nesting: usize,
    ) -> Result<(usize, Box<Node>), CheckError> {
        let name = &quantified.variable;
        let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
        if !name.starts_with(is_first) || !name.chars().all(|c| is_first(c) || c.is_ascii_digit()) {
            return Err(self.fault(member, Fault::Name(name.clone())));
        }
        if self.check.variables.iter().any(|other| other.name == *name) {
            return Err(self.fault(member, Fault::BoundTwice(name.clone())));
        }
        if self.check.variables.len() == VARIABLES_MAX {
            return Err(self.fault(member, Fault::TooMany { what: "variables", max: VARIABLES_MAX }));
        }
        let Some(set) = self.check.set_of(&quantified.set) else {
            return Err(self.fault("/in", Fault::UnknownContext(quantified.set.clone())));
        };
        let variable = self.check.variables.len();
        self.check.variables.push(Variable { name: name.clone(), set, depth: self.scope.len() });
        self.scope.push(variable);
        let body = self.inside("/that", |reading| reading.read(&quantified.that, nesting + 1));
        self.scope.pop();
        Ok((variable, Box::new(body?)))
    }

    fn read_leaf(&mut self, text: &str) -> Result<usize, CheckError> {
        let names: Vec<_> =
            self.scope.iter().map(|&variable| &*self.check.variables[variable].name).collect();
        let predicate = Predicate::parse(self.check.world, text, &names)
            .map_err(|error| self.fault("", Fault::Leaf(error)))?;
        let depths: Vec<usize> = predicate.variables().collect();
        self.check.leaves.push(Leaf { predicate, depths });
        Ok(self.check.leaves.len() - 1)
    }
}
