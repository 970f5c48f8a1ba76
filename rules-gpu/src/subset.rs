//! What devices take of the language: rules over numbers and atoms, with arithmetic.

use std::collections::HashMap;
use std::sync::Arc;

use kernels::rules as k;
use rules::Fault;
use rules::view::{self, Shape, Term, View};

/// Why a program or a goal cannot go to a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Texts with faults.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
    /// A rule that is not of the subset.
    #[error("rule {rule}: {fault}")]
    Rule {
        /// Its name, or its number from 1.
        rule: String,
        /// Where, and why.
        fault: Fault,
    },
    /// A goal that is not.
    #[error("goal: {0}")]
    Goal(Fault),
}

/// A value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// The number of an atom, as [`Program::atom`] gives it.
    Atom(u32),
}

/// An argument of a head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pattern {
    Value(Value),
    Variable(usize),
    Any,
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Value(Value),
    Variable(usize),
    Unary(u32, Box<Self>),
    Binary(u32, Box<[Self; 2]>),
    /// Metres between two places. It is a side of a comparison, and nothing else.
    Distance(Box<[Self; 4]>),
}

/// A condition of a guard.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Compare(u32, Expression, Expression),
    /// Whether two values are the same, or are not.
    Same(Expression, Expression, bool),
    Any(Vec<Vec<Self>>),
    Not(Vec<Self>),
    Is(usize, Expression),
    /// A variable gets the value of something that is not evaluated.
    Let(usize, Expression),
    Never,
}

/// What a body does, one after another.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Is(usize, Expression),
    Let(usize, Expression),
    /// Fails where the two are not the same: with the value of an expression, or as they stand.
    Same(Expression, Expression),
    SameNumber(Expression, Expression),
    Add(usize, Vec<Expression>),
    Fail,
}

/// A head of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) kind: usize,
    pub(crate) arguments: Vec<Pattern>,
    pub(crate) is_removed: bool,
}

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Its name, or its number.
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) heads: Vec<Head>,
    pub(crate) guard: Vec<Test>,
    pub(crate) body: Vec<Action>,
    pub(crate) variables: usize,
}

/// A kind of constraints.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: Arc<str>,
    pub(crate) types: Vec<String>,
}

/// A program that devices take.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) text: Arc<str>,
    pub(crate) view: View,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) atoms: Atoms,
    /// Whether a rule has distance/4.
    pub(crate) measures: bool,
}

/// Atoms by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Atoms {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Atoms {
    fn number(&mut self, name: &Arc<str>) -> u32 {
        let next = u32::try_from(self.names.len()).expect("a text has fewer atoms");
        *self.numbers.entry(Arc::clone(name)).or_insert_with(|| {
            self.names.push(Arc::clone(name));
            next
        })
    }
}

/// What is wrong, and where.
type Wrong = (usize, String);

fn wrong<T>(at: usize, what: impl Into<String>) -> Result<T, Wrong> {
    Err((at, what.into()))
}

const COMPARISONS: [&str; 6] = ["<", ">", "=<", ">=", "=:=", "=\\="];
const UNARY: [(&str, u32); 12] = [
    ("-", k::MINUS),
    ("abs", k::ABS),
    ("sign", k::SIGN),
    ("sqrt", k::SQRT),
    ("float", k::TO_FLOAT),
    ("round", k::ROUND),
    ("integer", k::ROUND),
    ("truncate", k::TRUNCATE),
    ("floor", k::FLOOR),
    ("ceiling", k::CEILING),
    ("\\", k::COMPLEMENT),
    ("+", u32::MAX),
];
const BINARY: [(&str, u32); 15] = [
    ("+", k::PLUS),
    ("-", k::SUBTRACT),
    ("*", k::MULTIPLY),
    ("/", k::DIVIDE),
    ("//", k::INT_DIVIDE),
    ("div", k::DIV),
    ("mod", k::MOD),
    ("rem", k::REM),
    ("min", k::MIN),
    ("max", k::MAX),
    ("<<", k::SHIFT_LEFT),
    (">>", k::SHIFT_RIGHT),
    ("/\\", k::BIT_AND),
    ("\\/", k::BIT_OR),
    ("xor", k::BIT_XOR),
];

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// Faults of its text, or the first rule that devices do not take, and why.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let view = View::new(text).map_err(Refusal::Faults)?;
        let mut kinds = Vec::new();
        for constraint in &view.constraints {
            let what = if constraint.is_operator {
                "its name is an operator"
            } else if constraint.types.len() > k::ARITY {
                "it has too many arguments"
            } else {
                kinds.push(Kind { name: Arc::clone(&constraint.name), types: constraint.types.clone() });
                continue;
            };
            let what = format!("a device does not take the constraint {}: {what}", constraint.name);
            return Err(Refusal::Faults(vec![view::fault(text, 0, what)]));
        }
        let mut program = Self {
            text: text.into(),
            view: view.clone(),
            kinds,
            rules: Vec::new(),
            atoms: Atoms::default(),
            measures: false,
        };
        for (idx, rule) in view.rules.iter().enumerate() {
            let name = rule.name.clone().unwrap_or_else(|| (idx + 1).to_string());
            let lowered = Lowering::new(&mut program, rule.variables.len()).rule(rule, name.clone());
            let lowered = lowered
                .map_err(|(at, what)| Refusal::Rule { rule: name, fault: view::fault(text, at, what) })?;
            program.rules.push(lowered);
        }
        Ok(program)
    }

    /// The number of an atom.
    pub fn atom(&mut self, name: &str) -> Value {
        Value::Atom(self.atoms.number(&name.into()))
    }

    /// The number of a kind of constraints.
    #[must_use]
    pub fn kind(&self, name: &str, arity: usize) -> Option<usize> {
        self.kinds.iter().position(|kind| &*kind.name == name && kind.types.len() == arity)
    }

    /// The constraints that a goal's text is, each with its kind.
    ///
    /// # Errors
    /// A fault of the text, or something else than constraints over numbers and atoms.
    pub fn goal(&mut self, text: &str) -> Result<Vec<(usize, Vec<Value>)>, Refusal> {
        let term = self.view.goal(text).map_err(|fault| Refusal::Faults(vec![fault]))?;
        let mut facts = Vec::new();
        let mut lowering = Lowering::new(self, 0);
        for part in conjuncts(&term) {
            let fact = lowering.fact(part);
            facts.extend(fact.map_err(|(at, what)| Refusal::Goal(view::fault(text, at, what)))?);
        }
        Ok(facts)
    }

    /// A constraint as text.
    pub(crate) fn text_of(&self, kind: usize, arguments: &[Value]) -> String {
        let shapes: Vec<_> = arguments
            .iter()
            .map(|value| match value {
                Value::Int(number) => Shape::Int(*number),
                Value::Float(number) => Shape::Float(*number),
                Value::Atom(number) => {
                    Shape::Name(Arc::clone(&self.atoms.names[*number as usize]), Vec::new())
                }
            })
            .collect();
        view::text(&self.kinds[kind].name, &shapes)
    }
}

/// The parts between commas.
fn conjuncts(term: &Term) -> Vec<&Term> {
    match &term.shape {
        Shape::Name(name, parts) if &**name == "," && parts.len() > 1 => {
            parts.iter().flat_map(conjuncts).collect()
        }
        _ => vec![term],
    }
}

/// A rule on its way.
struct Lowering<'a> {
    program: &'a mut Program,
    /// Which variables have values.
    known: Vec<bool>,
}

impl<'a> Lowering<'a> {
    fn new(program: &'a mut Program, variables: usize) -> Self {
        Self { program, known: vec![false; variables] }
    }

    fn rule(&mut self, rule: &view::Rule, name: String) -> Result<Rule, Wrong> {
        if rule.heads.len() > k::HEADS {
            return wrong(rule.at, format!("a device takes {} heads at most", k::HEADS));
        }
        if rule.variables.len() > k::SLOTS {
            return wrong(rule.at, format!("a device takes {} variables at most", k::SLOTS));
        }
        let mut heads = Vec::new();
        for head in &rule.heads {
            if head.is_passive {
                return wrong(
                    rule.at,
                    "a device does not take passive heads: it looks from all heads at once",
                );
            }
            let kind =
                self.program.kind(&head.name, head.arguments.len()).expect("names in heads are constraints");
            let mut arguments = Vec::new();
            for argument in &head.arguments {
                arguments.push(match &argument.shape {
                    Shape::Variable(variable) if rule.variables[*variable] == "_" => Pattern::Any,
                    Shape::Variable(variable) => {
                        self.known[*variable] = true;
                        Pattern::Variable(*variable)
                    }
                    _ => Pattern::Value(self.constant(argument)?),
                });
            }
            heads.push(Head { kind, arguments, is_removed: head.is_removed });
        }
        let guard = rule.guard.as_ref().map_or(Ok(Vec::new()), |guard| self.tests(guard))?;
        let mut body = Vec::new();
        for part in conjuncts(&rule.body) {
            self.action(part, &mut body)?;
        }
        let adds = body.iter().filter(|action| matches!(action, Action::Add(..))).count();
        if adds > k::STACK {
            return wrong(rule.at, format!("a device adds {} constraints at a time at most", k::STACK));
        }
        Ok(Rule { name, at: rule.at, heads, guard, body, variables: rule.variables.len() })
    }

    fn constant(&mut self, term: &Term) -> Result<Value, Wrong> {
        match &term.shape {
            Shape::Int(number) => Ok(Value::Int(*number)),
            Shape::Float(number) => Ok(Value::Float(*number)),
            Shape::Name(name, parts) if parts.is_empty() => Ok(Value::Atom(self.program.atoms.number(name))),
            Shape::Name(name, parts) => wrong(
                term.at,
                format!("a device takes numbers and atoms, and {name}/{} is a compound", parts.len()),
            ),
            Shape::List => wrong(term.at, "a device takes numbers and atoms, and no lists"),
            Shape::Variable(_) => wrong(term.at, "a variable has no value there"),
        }
    }

    /// A value as it stands: a constant, or a variable with a value.
    fn plain(&mut self, term: &Term) -> Result<Expression, Wrong> {
        match &term.shape {
            Shape::Variable(variable) if self.known[*variable] => Ok(Expression::Variable(*variable)),
            _ => self.constant(term).map(Expression::Value),
        }
    }

    fn expression(&mut self, term: &Term) -> Result<Expression, Wrong> {
        let Shape::Name(name, parts) = &term.shape else { return self.plain(term) };
        let find = |table: &[(&str, u32)]| {
            table.iter().find(|(known, _)| *known == &**name).map(|(_, number)| *number)
        };
        match &parts[..] {
            [] => match &**name {
                "pi" => Ok(Expression::Value(Value::Float(std::f64::consts::PI))),
                "e" => Ok(Expression::Value(Value::Float(std::f64::consts::E))),
                _ => wrong(term.at, format!("a device does not know {name} in arithmetic")),
            },
            [operand] => match find(&UNARY) {
                Some(u32::MAX) => self.expression(operand),
                Some(function) => Ok(Expression::Unary(function, Box::new(self.expression(operand)?))),
                None => wrong(
                    term.at,
                    format!(
                        "a device has no function {name}/1: its values could differ from the processor's"
                    ),
                ),
            },
            [left, right] => match find(&BINARY) {
                Some(function) => Ok(Expression::Binary(
                    function,
                    Box::new([self.expression(left)?, self.expression(right)?]),
                )),
                None => wrong(
                    term.at,
                    format!(
                        "a device has no function {name}/2: its values could differ from the processor's"
                    ),
                ),
            },
            [_, _, _, _] if &**name == "distance" => wrong(
                term.at,
                "a device takes distance/4 only as a side of a comparison in a guard: its last digits differ from the processor's",
            ),
            _ => wrong(term.at, format!("a device has no function {name}/{}", parts.len())),
        }
    }

    /// A side of a comparison, which may be a distance.
    fn side(&mut self, term: &Term) -> Result<Expression, Wrong> {
        let Shape::Name(name, parts) = &term.shape else { return self.plain(term) };
        let [a, b, c, d] = &parts[..] else { return self.expression(term) };
        if &**name != "distance" {
            return self.expression(term);
        }
        let places = [self.expression(a)?, self.expression(b)?, self.expression(c)?, self.expression(d)?];
        self.program.measures = true;
        Ok(Expression::Distance(Box::new(places)))
    }

    fn tests(&mut self, term: &Term) -> Result<Vec<Test>, Wrong> {
        let mut tests = Vec::new();
        for part in conjuncts(term) {
            let Shape::Name(name, parts) = &part.shape else {
                return wrong(part.at, "a device does not call this");
            };
            match (&**name, &parts[..]) {
                ("true", []) => {}
                ("fail" | "false", []) => tests.push(Test::Never),
                (";", [left, right]) => {
                    let known = self.known.clone();
                    let mut any = Vec::new();
                    for side in [left, right] {
                        any.push(self.tests(side)?);
                        // What only one side gives a value has none behind them.
                        self.known.clone_from(&known);
                    }
                    tests.push(Test::Any(any));
                }
                ("\\+", [inner]) => {
                    let known = self.known.clone();
                    tests.push(Test::Not(self.tests(inner)?));
                    self.known = known;
                }
                ("is", [variable, expression]) => {
                    let value = self.expression(expression)?;
                    match &variable.shape {
                        Shape::Variable(variable) if !self.known[*variable] => {
                            self.known[*variable] = true;
                            tests.push(Test::Is(*variable, value));
                        }
                        _ => {
                            return wrong(
                                part.at,
                                "a device takes `is` in a guard only for a new variable: write =:=",
                            );
                        }
                    }
                }
                ("==" | "=", [left, right]) | ("\\==" | "\\=", [left, right]) => {
                    let is_same = matches!(&**name, "==" | "=");
                    if let (true, Some((variable, value))) = (&**name == "=", self.fresh(left, right)?) {
                        tests.push(Test::Let(variable, value));
                    } else {
                        tests.push(Test::Same(self.plain(left)?, self.plain(right)?, is_same));
                    }
                }
                (_, [left, right])
                    if let Some(comparison) = COMPARISONS.iter().position(|known| *known == &**name) =>
                {
                    let [left, right] = [self.side(left)?, self.side(right)?];
                    tests.push(Test::Compare(number(comparison), left, right));
                }
                _ => {
                    return wrong(
                        part.at,
                        format!("a device does not take {name}/{} in a guard", parts.len()),
                    );
                }
            }
        }
        Ok(tests)
    }

    /// A variable without a value, and the value that `=` gives it.
    fn fresh(&mut self, left: &Term, right: &Term) -> Result<Option<(usize, Expression)>, Wrong> {
        for (variable, other) in [(left, right), (right, left)] {
            if let Shape::Variable(variable) = &variable.shape
                && !self.known[*variable]
            {
                let value = self.plain(other)?;
                self.known[*variable] = true;
                return Ok(Some((*variable, value)));
            }
        }
        Ok(None)
    }

    fn action(&mut self, part: &Term, body: &mut Vec<Action>) -> Result<(), Wrong> {
        let Shape::Name(name, parts) = &part.shape else {
            return wrong(part.at, "a device does not call this");
        };
        match (&**name, &parts[..]) {
            ("true", []) => {}
            ("fail" | "false", []) => body.push(Action::Fail),
            ("is", [variable, expression]) => {
                let value = self.expression(expression)?;
                match &variable.shape {
                    Shape::Variable(variable) if !self.known[*variable] => {
                        self.known[*variable] = true;
                        body.push(Action::Is(*variable, value));
                    }
                    _ => body.push(Action::SameNumber(self.plain(variable)?, value)),
                }
            }
            ("=", [left, right]) => {
                if let Some((variable, value)) = self.fresh(left, right)? {
                    body.push(Action::Let(variable, value));
                } else {
                    body.push(Action::Same(self.plain(left)?, self.plain(right)?));
                }
            }
            _ => match self.program.kind(name, parts.len()) {
                Some(kind) => {
                    let mut arguments = Vec::new();
                    for argument in parts {
                        arguments.push(self.plain(argument)?);
                    }
                    body.push(Action::Add(kind, arguments));
                }
                None => {
                    return wrong(
                        part.at,
                        format!("a device does not take {name}/{} in a body", parts.len()),
                    );
                }
            },
        }
        Ok(())
    }

    /// A constraint of a goal; none for `true`.
    fn fact(&mut self, part: &Term) -> Result<Option<(usize, Vec<Value>)>, Wrong> {
        let Shape::Name(name, parts) = &part.shape else {
            return wrong(part.at, "a goal of a device has constraints alone");
        };
        if parts.is_empty() && &**name == "true" {
            return Ok(None);
        }
        let Some(kind) = self.program.kind(name, parts.len()) else {
            return wrong(
                part.at,
                format!("a goal of a device has constraints alone, and {name}/{} is none", parts.len()),
            );
        };
        let values = parts.iter().map(|part| self.constant(part)).collect::<Result<_, _>>()?;
        Ok(Some((kind, values)))
    }
}

/// Converts a number that is small in every program.
pub(crate) fn number(number: usize) -> u32 {
    u32::try_from(number).expect("it is bounded far below")
}
