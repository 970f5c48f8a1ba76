//! Rules and clauses become code.

mod rules;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{
    Arg, Binary, Callable, Clause, Code, Comparison, ConstraintKind, Expr, Instruction, Key, Predicate, Unary,
};
use crate::machine::Builtin;
use crate::program::Source;
use crate::syntax::{Fault, Kind, Node};
use crate::term::{Atom, Atoms, Term};

/// Compiles what a text and a goal say, and returns calls of the text that are of nothing as well: with a goal they are faults.
///
/// # Errors
/// What is wrong with the text, or else with the goal, in the order of places.
pub(crate) fn program(source: &Source, atoms: &mut Atoms) -> Result<(Code, Vec<Fault>), Faults> {
    let mut code = Code { instructions: Code::FIXED.to_vec(), ..Code::default() };
    for (name, arity) in Builtin::all() {
        let builtin = Builtin::of(name, arity).expect("it is one of all");
        code.callables.insert((atoms.intern(name), arity), Callable::Builtin(builtin));
    }
    for &(name, arity) in &source.constraints {
        let number = index(code.kinds.len());
        code.kinds.push(ConstraintKind { name, arity, occurrences: Vec::new(), indexes: Vec::new() });
        code.callables.insert((name, arity), Callable::Constraint(number));
    }
    for (head, ..) in source.clauses.iter().chain(&source.goal) {
        let Some((name, arguments)) = head.callable() else { continue };
        let arity = arguments.len();
        if !matches!(code.callables.get(&(name, arity)), Some(Callable::Predicate(_))) {
            let number = index(code.predicates.len());
            code.predicates.push(Predicate { clauses: Vec::new() });
            code.callables.insert((name, arity), Callable::Predicate(number));
        }
    }
    let mut compiler = Compiler { atoms, code, unknown: BTreeSet::new(), faults: BTreeMap::new() };
    for (head, body, variables) in &source.clauses {
        compiler.clause(head, body.as_ref(), variables.len());
    }
    for rule in &source.rules {
        compiler.rule(rule);
    }
    let is_fine = compiler.faults.is_empty();
    let found = compiler.take_faults();
    if !is_fine || source.goal.is_some() && !found.is_empty() {
        return Err(Faults::Program(found));
    }
    if let Some((head, body, variables)) = &source.goal {
        compiler.clause(head, body.as_ref(), variables.len());
    }
    let of_goal = compiler.take_faults();
    if of_goal.is_empty() { Ok((compiler.code, found)) } else { Err(Faults::Goal(of_goal)) }
}

/// What is wrong with a text, or with a goal for it.
pub(crate) enum Faults {
    Program(Vec<Fault>),
    Goal(Vec<Fault>),
}

pub(crate) fn index(count: usize) -> u32 {
    u32::try_from(count).expect("a program has fewer than 2^32 parts")
}

struct Compiler<'a> {
    atoms: &'a mut Atoms,
    code: Code,
    /// Calls of what is nowhere, by place: a body is compiled for each way in which it may be reached.
    unknown: BTreeSet<(usize, Atom, usize)>,
    /// What is wrong beside them, by place.
    faults: BTreeMap<usize, String>,
}

/// The variables of a clause or a rule, which are the first slots of its frame.
#[derive(Clone)]
struct Scope {
    /// Times that each is used.
    uses: Vec<u32>,
    /// Whether each has a value.
    is_seen: Vec<bool>,
    slots: u32,
    /// The slot that tells what a cut leaves.
    barrier: Option<u32>,
}

/// What comes behind a body.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Proceed,
    Resume,
    Stop,
}

impl Scope {
    fn new(variables: usize) -> Self {
        Self {
            uses: vec![0; variables],
            is_seen: vec![false; variables],
            slots: index(variables),
            barrier: None,
        }
    }

    fn count(&mut self, node: &Node) {
        each_variable(node, &mut |variable| self.uses[variable] += 1);
    }

    fn slot(&mut self) -> u32 {
        self.slots += 1;
        self.slots - 1
    }

    fn is_known(&self, node: &Node) -> bool {
        let mut is_known = true;
        each_variable(node, &mut |variable| is_known &= self.is_seen[variable]);
        is_known
    }
}

fn each_variable(node: &Node, visit: &mut impl FnMut(usize)) {
    match &node.kind {
        Kind::Variable(variable) => visit(*variable),
        Kind::Compound(_, parts) | Kind::Conjunction(parts) => {
            parts.iter().for_each(|part| each_variable(part, visit))
        }
        Kind::List(parts, tail) => {
            parts.iter().for_each(|part| each_variable(part, visit));
            if let Some(tail) = tail {
                each_variable(tail, visit);
            }
        }
        Kind::Int(_) | Kind::Float(_) | Kind::Atom(_) => {}
    }
}

impl Compiler<'_> {
    fn here(&self) -> u32 {
        index(self.code.instructions.len())
    }

    fn emit(&mut self, instruction: Instruction) -> usize {
        self.code.instructions.push(instruction);
        self.code.instructions.len() - 1
    }

    fn clause(&mut self, head: &Node, body: Option<&Node>, variables: usize) {
        let Some((name, arguments)) = head.callable() else { return };
        let mut scope = Scope::new(variables);
        scope.count(head);
        if let Some(body) = body {
            scope.count(body);
        }
        let pattern = self.arguments(arguments, &mut scope);
        let first = arguments.first().and_then(key);
        let is_true = body.is_none_or(|body| matches!(body.kind, Kind::Atom(Atom::TRUE)));
        let body = body.filter(|_| !is_true).map(|body| self.body(body, &mut scope, End::Proceed));
        let Some(Callable::Predicate(number)) = self.code.callables.get(&(name, arguments.len())).copied()
        else {
            return;
        };
        let clause = Clause { head: pattern, first, slots: scope.slots, body };
        self.code.predicates[number as usize].clauses.push(clause);
    }

    /// Compiles a body, and returns where it begins.
    fn body(&mut self, body: &Node, scope: &mut Scope, end: End) -> u32 {
        let begin = self.here();
        if has_cut(body) {
            let slot = scope.slot();
            scope.barrier = Some(slot);
            self.emit(Instruction::Mark(slot));
        }
        self.goal(body, scope, Some(end));
        begin
    }

    fn end(&mut self, end: End) {
        self.emit(match end {
            End::Proceed => Instruction::Proceed,
            End::Resume => Instruction::Resume,
            End::Stop => Instruction::Stop,
        });
    }

    /// Compiles a goal, and what comes behind it where it is the last.
    fn goal(&mut self, node: &Node, scope: &mut Scope, last: Option<End>) {
        let is_call = match node.callable() {
            Some((Atom::COMMA, parts)) => {
                for (idx, part) in parts.iter().enumerate() {
                    self.goal(part, scope, last.filter(|_| idx + 1 == parts.len()));
                }
                return;
            }
            Some((Atom::BAR, [left, right])) => {
                self.disjunction(left, Some(right), scope);
                false
            }
            Some((Atom::SEMICOLON, [left, right])) => {
                self.disjunction(left, Some(right), scope);
                false
            }
            Some((Atom::ARROW | Atom::SOFT_ARROW, [_, _])) => {
                self.disjunction(node, None, scope);
                false
            }
            Some((Atom::NOT, [goal])) => {
                self.negation(goal, scope);
                false
            }
            Some((Atom::ONCE, [goal])) => {
                self.once(goal, scope);
                false
            }
            Some((Atom::TRUE, [])) => false,
            Some((Atom::FAIL | Atom::FALSE, [])) => {
                self.emit(Instruction::Fail);
                false
            }
            Some((Atom::CUT, [])) => {
                if let Some(barrier) = scope.barrier {
                    self.emit(Instruction::Cut(barrier));
                }
                false
            }
            Some((Atom::COLON, [_, goal])) => return self.goal(goal, scope, last),
            Some((name, arguments)) => self.simple(node, name, arguments, scope, last == Some(End::Proceed)),
            None if matches!(node.kind, Kind::Variable(_)) => {
                let arguments = [self.argument(node, scope)].into();
                self.emit(Instruction::CallTerm { arguments, is_last: last == Some(End::Proceed) });
                last == Some(End::Proceed)
            }
            None => {
                self.faults.insert(node.at, "this cannot be called".to_owned());
                false
            }
        };
        if let Some(end) = last
            && !(is_call && end == End::Proceed)
        {
            self.end(end);
        }
    }

    /// Compiles a goal without parts that are goals. Returns whether it goes on with what is behind by itself.
    fn simple(
        &mut self,
        node: &Node,
        name: Atom,
        arguments: &[Node],
        scope: &mut Scope,
        is_last: bool,
    ) -> bool {
        match (name, arguments) {
            (Atom::UNIFY, [left, right]) => {
                let (left, right) = self.unification(left, right, scope);
                self.emit(Instruction::Unify(left, right));
                return false;
            }
            (Atom::IS, [left, right]) => {
                let right = self.expression(right, scope);
                let left = self.argument(left, scope);
                self.emit(Instruction::Is(left, right));
                return false;
            }
            (Atom::CALL, [_, ..]) => {
                let arguments = self.arguments(arguments, scope);
                self.emit(Instruction::CallTerm { arguments, is_last });
                return is_last;
            }
            (_, [left, right]) if let Some(comparison) = Comparison::of(self.atoms.name(name)) => {
                let (left, right) = (self.expression(left, scope), self.expression(right, scope));
                self.emit(Instruction::Compare(comparison, left, right));
                return false;
            }
            _ => {}
        }
        let callable = self.code.callables.get(&(name, arguments.len())).copied();
        let compiled = self.arguments(arguments, scope);
        match callable {
            Some(Callable::Constraint(kind)) => {
                self.emit(Instruction::Add { kind, arguments: compiled, is_last });
                return is_last;
            }
            Some(Callable::Predicate(predicate)) => {
                self.emit(Instruction::Call { predicate, arguments: compiled, is_last });
                return is_last;
            }
            Some(Callable::Builtin(builtin)) => self.emit(Instruction::Builtin(builtin, compiled)),
            None => {
                self.unknown.insert((node.at, name, arguments.len()));
                self.emit(Instruction::Undefined(name, arguments.len()))
            }
        };
        false
    }

    /// Gives values to variables that first come in one of several branches.
    fn prepare(&mut self, nodes: &[&Node], scope: &mut Scope) {
        for node in nodes {
            each_variable(node, &mut |variable| {
                if !scope.is_seen[variable] {
                    scope.is_seen[variable] = true;
                    self.code.instructions.push(Instruction::Fresh(index(variable)));
                }
            });
        }
    }

    fn disjunction(&mut self, left: &Node, right: Option<&Node>, scope: &mut Scope) {
        self.prepare(&[left], scope);
        if let Some(right) = right {
            self.prepare(&[right], scope);
        }
        let (condition, then, is_soft) = match left.callable() {
            Some((Atom::ARROW, [condition, then])) => (Some(condition), then, false),
            Some((Atom::SOFT_ARROW, [condition, then])) => (Some(condition), then, true),
            _ => (None, left, false),
        };
        let mark = condition.map(|condition| {
            let slot = scope.slot();
            self.emit(Instruction::Mark(slot));
            (condition, slot)
        });
        let first = self.emit(Instruction::Try(0));
        if let Some((condition, slot)) = mark {
            let outer = scope.barrier.replace(slot);
            self.goal(condition, scope, None);
            scope.barrier = outer;
            self.emit(if is_soft { Instruction::SoftCut(slot) } else { Instruction::Cut(slot) });
        }
        self.goal(then, scope, None);
        let jump = self.emit(Instruction::Jump(0));
        let otherwise = self.here();
        self.code.instructions[first] = Instruction::Try(otherwise);
        match right {
            Some(right) => self.goal(right, scope, None),
            None => {
                self.emit(Instruction::Fail);
            }
        }
        let behind = self.here();
        self.code.instructions[jump] = Instruction::Jump(behind);
    }

    fn negation(&mut self, goal: &Node, scope: &mut Scope) {
        self.prepare(&[goal], scope);
        let slot = scope.slot();
        self.emit(Instruction::Mark(slot));
        let first = self.emit(Instruction::Try(0));
        let outer = scope.barrier.replace(slot);
        self.goal(goal, scope, None);
        scope.barrier = outer;
        self.emit(Instruction::Cut(slot));
        self.emit(Instruction::Fail);
        let behind = self.here();
        self.code.instructions[first] = Instruction::Try(behind);
    }

    fn once(&mut self, goal: &Node, scope: &mut Scope) {
        let slot = scope.slot();
        self.emit(Instruction::Mark(slot));
        let outer = scope.barrier.replace(slot);
        self.goal(goal, scope, None);
        scope.barrier = outer;
        self.emit(Instruction::Cut(slot));
    }

    fn arguments(&mut self, nodes: &[Node], scope: &mut Scope) -> Box<[Arg]> {
        nodes.iter().map(|node| self.argument(node, scope)).collect()
    }

    /// Two sides of `=`, of which one that is a new variable is the left.
    fn unification(&mut self, left: &Node, right: &Node, scope: &mut Scope) -> (Arg, Arg) {
        let is_new = |node: &Node| matches!(node.kind, Kind::Variable(variable) if !scope.is_seen[variable]);
        let (left, right) = if is_new(right) && !is_new(left) { (right, left) } else { (left, right) };
        // The right side is made first, so that a new variable on the left is not in it.
        let right = self.argument(right, scope);
        (self.argument(left, scope), right)
    }

    fn argument(&mut self, node: &Node, scope: &mut Scope) -> Arg {
        match &node.kind {
            Kind::Variable(variable) if scope.is_seen[*variable] => Arg::Slot(index(*variable)),
            Kind::Variable(variable) if scope.uses[*variable] == 1 => Arg::Void,
            Kind::Variable(variable) => {
                scope.is_seen[*variable] = true;
                Arg::New(index(*variable))
            }
            Kind::Int(number) => Arg::Const(Term::Int(*number)),
            Kind::Float(number) => Arg::Const(Term::Float(*number)),
            Kind::Atom(name) => Arg::Const(Term::Atom(*name)),
            Kind::Compound(name, parts) => Arg::Compound(*name, self.arguments(parts, scope)),
            Kind::List(parts, tail) => {
                let parts = self.arguments(parts, scope);
                let end = Arg::Const(Term::Atom(Atom::NIL));
                let tail = tail.as_ref().map_or(end, |tail| self.argument(tail, scope));
                Arg::List(parts, Box::new(tail))
            }
            Kind::Conjunction(parts) => {
                let mut parts: Vec<_> = parts.iter().map(|part| self.argument(part, scope)).collect();
                let last = parts.pop().unwrap_or(Arg::Void);
                parts
                    .into_iter()
                    .rev()
                    .fold(last, |rest, part| Arg::Compound(Atom::COMMA, [part, rest].into()))
            }
        }
    }

    fn expression(&mut self, node: &Node, scope: &mut Scope) -> Expr {
        match &node.kind {
            Kind::Int(number) => Expr::Value(Term::Int(*number)),
            Kind::Float(number) => Expr::Value(Term::Float(*number)),
            Kind::Variable(variable) => {
                if !scope.is_seen[*variable] {
                    scope.is_seen[*variable] = true;
                    self.emit(Instruction::Fresh(index(*variable)));
                }
                Expr::Slot(index(*variable))
            }
            Kind::Atom(name) => match constant(self.atoms.name(*name)) {
                Some(value) => Expr::Value(value),
                None => Expr::Unknown(*name, 0),
            },
            Kind::List(parts, None) if parts.len() == 1 => self.expression(&parts[0], scope),
            Kind::Compound(name, parts) => match &parts[..] {
                [operand] if let Some(function) = Unary::of(self.atoms.name(*name)) => {
                    Expr::Unary(function, Box::new(self.expression(operand, scope)))
                }
                [left, right] if let Some(function) = Binary::of(self.atoms.name(*name)) => Expr::Binary(
                    function,
                    Box::new([self.expression(left, scope), self.expression(right, scope)]),
                ),
                [a, b, c, d] if self.atoms.name(*name) == "distance" => {
                    Expr::Distance(Box::new([a, b, c, d].map(|part| self.expression(part, scope))))
                }
                _ => Expr::Unknown(*name, parts.len()),
            },
            Kind::List(..) => Expr::Unknown(Atom::DOT, 2),
            Kind::Conjunction(_) => Expr::Unknown(Atom::COMMA, 2),
        }
    }
}

/// Names that are numbers.
pub(crate) fn constant(name: &str) -> Option<Term> {
    Some(Term::Float(match name {
        "pi" => std::f64::consts::PI,
        "e" => std::f64::consts::E,
        "inf" => f64::INFINITY,
        "nan" => f64::NAN,
        "epsilon" => f64::EPSILON,
        _ => return None,
    }))
}

fn key(node: &Node) -> Option<Key> {
    Some(match &node.kind {
        Kind::Variable(_) => return None,
        Kind::Int(number) => Key::Constant(Term::Int(*number)),
        Kind::Float(number) => Key::Constant(Term::Float(*number)),
        Kind::Atom(name) => Key::Constant(Term::Atom(*name)),
        Kind::Compound(name, parts) => Key::Functor(*name, parts.len()),
        Kind::List(..) => Key::Functor(Atom::DOT, 2),
        Kind::Conjunction(_) => Key::Functor(Atom::COMMA, 2),
    })
}

/// Whether a body has a cut that is its own.
fn has_cut(node: &Node) -> bool {
    match node.callable() {
        Some((Atom::CUT, [])) => true,
        Some((Atom::COMMA | Atom::SEMICOLON | Atom::ARROW | Atom::SOFT_ARROW | Atom::BAR, parts)) => {
            parts.iter().any(has_cut)
        }
        _ => false,
    }
}
