//! A text becomes rules, clauses and declarations.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashSet;

use crate::code::{Callable, Code};
use crate::compile::{self, Faults};
use crate::syntax::{Clause, Fault as At, Kind, Node, Operators, Parser};
use crate::term::{Atom, Atoms};

/// Most bytes of a program.
pub const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// Most arguments of a constraint.
pub const ARGUMENTS_MAX: usize = 63;

/// Most heads of a rule. What a rule costs to compile grows with their cube.
const HEADS_MAX: usize = 32;

/// Faults of a text that are told, at most.
pub(crate) const FAULTS_MAX: usize = 100;

/// What is wrong with a program or a goal, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Sign of the line, from 1.
    pub column: usize,
    /// What is wrong, in words.
    pub what: String,
}

/// What is wrong with a program and its goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// All that is wrong with the program.
    Program(Vec<Fault>),
    /// What is wrong with the goal.
    Goal(Vec<Fault>),
}

impl Fault {
    pub(crate) fn new(text: &str, fault: At) -> Self {
        let before = &text[..fault.at.min(text.len())];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|sign| *sign != '\n').count() + 1;
        Self { line, column, what: fault.what }
    }

    /// The first faults: finding the place of each takes a walk through the text.
    fn all(text: &str, faults: Vec<At>) -> Vec<Self> {
        faults.into_iter().take(FAULTS_MAX).map(|fault| Self::new(text, fault)).collect()
    }
}

/// A program that can be run.
#[derive(Debug)]
pub struct Program {
    pub(crate) atoms: Atoms,
    pub(crate) operators: Operators,
    pub(crate) code: Code,
    unknown: Vec<Fault>,
}

/// A head of a rule, as it stands in the text.
pub(crate) struct Head {
    pub(crate) name: Atom,
    pub(crate) arguments: Vec<Node>,
    pub(crate) is_removed: bool,
    /// Whether it never looks for the others.
    pub(crate) is_passive: bool,
    id: Option<usize>,
}

/// A rule, as it stands in the text.
pub(crate) struct Rule {
    pub(crate) name: Option<Atom>,
    pub(crate) at: usize,
    pub(crate) heads: Vec<Head>,
    pub(crate) guard: Option<Node>,
    pub(crate) body: Node,
    pub(crate) variables: Vec<String>,
}

/// What a text says.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) rules: Vec<Rule>,
    /// Clauses in their order: head, body.
    pub(crate) clauses: Vec<(Node, Option<Node>, Vec<String>)>,
    /// A goal for it, as a clause.
    pub(crate) goal: Option<(Node, Option<Node>, Vec<String>)>,
    pub(crate) constraints: Vec<(Atom, usize)>,
    /// Constraints that were declared with the types of their arguments.
    pub(crate) types: Vec<(Atom, Vec<Node>)>,
}

impl Program {
    /// The predicate that a goal becomes.
    pub(crate) const GOAL: &str = "$goal";

    /// Reads and compiles a program.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(text: &str) -> Result<Arc<Self>, Vec<Fault>> {
        Self::with_constraints(text, &[])
    }

    /// Reads and compiles a program in which these names are constraints as well: of one arity, or of all with which bodies have them.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn with_constraints(text: &str, names: &[(&str, Option<usize>)]) -> Result<Arc<Self>, Vec<Fault>> {
        Self::read(text, None, names)
            .map(|(program, _)| program)
            .map_err(|(Wrong::Program(faults) | Wrong::Goal(faults))| faults)
    }

    /// Compiles a program with a goal, and returns the goal's variables as well.
    pub(crate) fn with_goal(text: &str, goal: &str) -> Result<(Arc<Self>, Vec<String>), Wrong> {
        Self::read(text, Some(goal), &[])
    }

    fn read(
        text: &str,
        goal: Option<&str>,
        names: &[(&str, Option<usize>)],
    ) -> Result<(Arc<Self>, Vec<String>), Wrong> {
        let mut atoms = Atoms::default();
        let mut operators = Operators::default();
        let (mut library, wrong) =
            Source::read(include_str!("library.pl"), &mut atoms, &mut operators.clone());
        debug_assert!(wrong.is_empty(), "the library has faults: {wrong:?}");
        let faults = |faults: Vec<At>| Wrong::Program(Fault::all(text, faults));
        if text.len() > PROGRAM_BYTES_MAX {
            let what = format!("a program has {PROGRAM_BYTES_MAX} bytes at most");
            return Err(faults(vec![At { at: 0, what }]));
        }
        let (source, wrong) = Source::read(text, &mut atoms, &mut operators);
        if !wrong.is_empty() {
            return Err(faults(wrong));
        }
        let mut source = source;
        for &(name, arity) in names {
            source.add_constraint(atoms.intern(name), arity);
        }
        // What a program defines itself is not taken from the library.
        let own: HashSet<_, RandomState> = source
            .clauses
            .iter()
            .filter_map(|(head, ..)| key(head))
            .chain(source.constraints.iter().copied())
            .collect();
        library.clauses.retain(|(head, ..)| key(head).is_none_or(|key| !own.contains(&key)));
        library.clauses.extend(source.clauses);
        let mut source = Source { clauses: library.clauses, ..source };
        let mut variables = Vec::new();
        if let Some(goal) = goal {
            let read = Parser::new(goal, &mut atoms).goal(&operators);
            let read = read.map_err(|fault| Wrong::Goal(vec![Fault::new(goal, fault)]))?;
            variables = read.variables.iter().filter(|name| *name != "_").cloned().collect();
            let arguments = read.variables.iter().enumerate().filter(|(_, name)| *name != "_");
            let arguments: Vec<_> =
                arguments.map(|(idx, _)| Node { kind: Kind::Variable(idx), at: 0 }).collect();
            let name = atoms.intern(Self::GOAL);
            let kind = if arguments.is_empty() { Kind::Atom(name) } else { Kind::Compound(name, arguments) };
            source.goal = Some((Node { kind, at: 0 }, Some(read.term), read.variables));
        }
        let (code, unknown) = compile::program(&source, &mut atoms).map_err(|found| match found {
            Faults::Program(found) => faults(found),
            Faults::Goal(found) => Wrong::Goal(Fault::all(goal.unwrap_or_default(), found)),
        })?;
        Ok((Arc::new(Self { atoms, operators, code, unknown: Fault::all(text, unknown) }), variables))
    }

    /// Calls of what is neither a constraint nor a predicate, the first 100, each with a name that it may mean: an error where one is
    /// reached. With a goal such a program is refused.
    #[must_use]
    pub fn unknown(&self) -> &[Fault] {
        &self.unknown
    }

    /// The names and arities of all constraints.
    pub fn constraints(&self) -> impl Iterator<Item = (&str, usize)> {
        self.code.kinds.iter().map(|kind| (self.atoms.name(kind.name), kind.arity))
    }

    pub(crate) fn callable(&self, name: Atom, arity: usize) -> Option<Callable> {
        self.code.callables.get(&(name, arity)).copied()
    }
}

fn key(head: &Node) -> Option<(Atom, usize)> {
    head.callable().map(|(name, arguments)| (name, arguments.len()))
}

impl Source {
    pub(crate) fn read(text: &str, atoms: &mut Atoms, operators: &mut Operators) -> (Self, Vec<At>) {
        let (mut source, mut faults) = (Self::default(), Vec::new());
        let mut parser = Parser::new(text, atoms);
        while faults.len() < FAULTS_MAX {
            match parser.clause(operators) {
                Ok(Some(clause)) => {
                    if let Err(fault) = source.take(clause, parser.atoms, operators) {
                        faults.push(fault);
                    }
                }
                Ok(None) => break,
                Err(fault) => faults.push(fault),
            }
        }
        // Without a declaration every name in a head is a constraint.
        let heads = source.rules.iter().flat_map(|rule| &rule.heads);
        source.constraints.extend(heads.map(|head| (head.name, head.arguments.len())));
        let mut known: HashSet<_, RandomState> = HashSet::default();
        source.constraints.retain(|key| known.insert(*key));
        for (head, ..) in &source.clauses {
            if key(head).is_some_and(|key| known.contains(&key)) {
                let what = "a constraint cannot have clauses as well".to_owned();
                faults.push(At { at: head.at, what });
            }
        }
        (source, faults)
    }

    /// Makes a name a constraint of one arity, or of all with which bodies have it.
    fn add_constraint(&mut self, name: Atom, arity: Option<usize>) {
        let mut found: Vec<_> = arity.into_iter().collect();
        if arity.is_none() {
            let bodies = self
                .rules
                .iter()
                .map(|rule| &rule.body)
                .chain(self.clauses.iter().filter_map(|(_, body, _)| body.as_ref()));
            bodies.for_each(|body| arities(body, name, &mut found));
        }
        for arity in found {
            if !self.constraints.contains(&(name, arity)) {
                self.constraints.push((name, arity));
            }
        }
    }

    fn take(&mut self, clause: Clause, atoms: &mut Atoms, operators: &mut Operators) -> Result<(), At> {
        let Clause { term, variables } = clause;
        if let Kind::Compound(Atom::CLAUSE | Atom::QUERY, parts) = &term.kind
            && let [directive] = &parts[..]
        {
            return self.directive(directive, atoms, operators);
        }
        if let Kind::Compound(Atom::CLAUSE, parts) = &term.kind
            && let [head, body] = &parts[..]
        {
            return self.clause(head.clone(), Some(body.clone()), variables);
        }
        if let Some(rule) = rule(&term, variables.clone())? {
            self.rules.push(rule);
            return Ok(());
        }
        self.clause(term, None, variables)
    }

    fn clause(&mut self, head: Node, body: Option<Node>, variables: Vec<String>) -> Result<(), At> {
        match head.callable() {
            Some(_) if !matches!(head.kind, Kind::Conjunction(_)) => {
                self.clauses.push((head, body, variables));
                Ok(())
            }
            _ => Err(At { at: head.at, what: "neither a rule nor a clause nor a directive".to_owned() }),
        }
    }

    fn directive(
        &mut self,
        directive: &Node,
        atoms: &mut Atoms,
        operators: &mut Operators,
    ) -> Result<(), At> {
        for part in directive.conjuncts() {
            match &part.kind {
                Kind::Compound(Atom::CHR_CONSTRAINT | Atom::CONSTRAINTS, parts) => {
                    for part in parts.iter().flat_map(Node::conjuncts) {
                        let declared = declared(part).ok_or_else(|| At {
                            at: part.at,
                            what: "a constraint is declared as name/arity or name(type, ..)".to_owned(),
                        })?;
                        self.constraints.push(declared);
                        if let Kind::Compound(name, types) = &part.kind
                            && part.binary(Atom::SLASH).is_none()
                        {
                            self.types.push((*name, types.clone()));
                        }
                    }
                }
                Kind::Compound(Atom::OP, parts)
                    if parts.len() == 3 && !set_operator(parts, atoms, operators) =>
                {
                    let what = "op/3 has a priority of 0 to 1200, a kind such as xfx, and a name".to_owned();
                    return Err(At { at: part.at, what });
                }
                // Modules, options, types and the like change no answer.
                _ => {}
            }
        }
        Ok(())
    }
}

/// The arities with which a body has a name.
fn arities(body: &Node, name: Atom, found: &mut Vec<usize>) {
    let Some((called, parts)) = body.callable() else { return };
    if called == name {
        found.push(parts.len());
    }
    parts.iter().for_each(|part| arities(part, name, found));
}

fn set_operator(parts: &[Node], atoms: &Atoms, operators: &mut Operators) -> bool {
    let (Kind::Int(priority), Kind::Atom(kind)) = (&parts[0].kind, &parts[1].kind) else { return false };
    let Some(priority) = u16::try_from(*priority).ok().filter(|priority| *priority <= 1200) else {
        return false;
    };
    let names = match &parts[2].kind {
        Kind::List(names, None) => names.iter().collect(),
        _ => vec![&parts[2]],
    };
    names.into_iter().all(|name| match &name.kind {
        Kind::Atom(name) if !matches!(*name, Atom::COMMA | Atom::BAR | Atom::NIL | Atom::CURLY) => {
            operators.set(priority, atoms.name(*kind), atoms.name(*name))
        }
        _ => false,
    })
}

fn declared(node: &Node) -> Option<(Atom, usize)> {
    if let Some([name, arity]) = node.binary(Atom::SLASH) {
        return match (&name.kind, &arity.kind) {
            (Kind::Atom(name), Kind::Int(arity)) => {
                Some((*name, usize::try_from(*arity).ok().filter(|arity| *arity <= ARGUMENTS_MAX)?))
            }
            _ => None,
        };
    }
    node.callable()
        .map(|(name, arguments)| (name, arguments.len()))
        .filter(|(_, arity)| *arity <= ARGUMENTS_MAX)
}

/// The rule that a term is, if it is one.
fn rule(term: &Node, variables: Vec<String>) -> Result<Option<Rule>, At> {
    let mut term = term;
    let (mut name, at) = (None, term.at);
    if let Some([named, rule]) = term.binary(Atom::NAME) {
        name = named.callable().map(|(name, _)| name);
        term = rule;
    }
    let mut passive = Vec::new();
    if let Some([rule, pragmas]) = term.binary(Atom::PRAGMA) {
        term = rule;
        for pragma in pragmas.conjuncts() {
            if let Some((Atom::PASSIVE, [Node { kind: Kind::Variable(id), .. }])) = pragma.callable() {
                passive.push((*id, pragma.at));
            }
        }
    }
    let (is_propagation, [heads, right]) = match (term.binary(Atom::PROPAGATE), term.binary(Atom::SIMPLIFY)) {
        (Some(sides), _) => (true, sides),
        (_, Some(sides)) => (false, sides),
        _ => return Ok(None),
    };
    let sides = match heads.binary(Atom::KEPT) {
        Some(_) if is_propagation => {
            return Err(At { at: heads.at, what: "a rule with ==> removes nothing: write <=>".to_owned() });
        }
        Some([kept, removed]) => vec![(kept, false), (removed, true)],
        None => vec![(heads, !is_propagation)],
    };
    let mut rule_heads = Vec::new();
    for (side, is_removed) in sides {
        for node in side.conjuncts() {
            rule_heads.push(head(node, is_removed)?);
        }
    }
    if rule_heads.len() > HEADS_MAX {
        return Err(At { at: heads.at, what: format!("a rule has {HEADS_MAX} heads at most") });
    }
    for (id, at) in passive {
        let named = rule_heads.iter_mut().find(|head| head.id == Some(id));
        let named = named.ok_or_else(|| At { at, what: "no head has that identifier".to_owned() })?;
        named.is_passive = true;
    }
    let (guard, body) = match right.binary(Atom::BAR) {
        Some([guard, body]) => (Some(guard.clone()), body.clone()),
        None => (None, right.clone()),
    };
    Ok(Some(Rule { name, at, heads: rule_heads, guard, body, variables }))
}

fn head(node: &Node, is_removed: bool) -> Result<Head, At> {
    let (node, id) = match node.binary(Atom::ID) {
        Some([head, Node { kind: Kind::Variable(id), .. }]) => (head, Some(*id)),
        Some([head, _]) => (head, None),
        None => (node, None),
    };
    let refused = || At { at: node.at, what: "a head of a rule is a constraint".to_owned() };
    let (name, arguments) = match &node.kind {
        Kind::Atom(name) => (*name, Vec::new()),
        Kind::Compound(name, arguments) => (*name, arguments.clone()),
        _ => return Err(refused()),
    };
    if arguments.len() > ARGUMENTS_MAX {
        let what = format!("a constraint has {ARGUMENTS_MAX} arguments at most");
        return Err(At { at: node.at, what });
    }
    let is_taken = match arguments.len() {
        0 => matches!(name, Atom::TRUE | Atom::FAIL | Atom::CUT),
        2 => matches!(name, Atom::SEMICOLON | Atom::UNIFY | Atom::IS | Atom::ARROW),
        _ => false,
    };
    if is_taken {
        return Err(refused());
    }
    Ok(Head { name, arguments, is_removed, is_passive: false, id })
}
