//! Rules become code for the kernels' interpreter.

use bytemuck::Zeroable;
use kernels::rules::{self as k, NOWHERE};

use crate::subset::{Action, Expression, Pattern, Program, Refusal, Rule, Test, Value, number};

/// A program as the kernels have it.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) occurrences: Vec<k::Occurrence>,
    pub(crate) code: Vec<u32>,
    pub(crate) constants: Vec<k::Value>,
    pub(crate) indexes: Vec<k::Index>,
    /// Occurrences of rules that remove nothing.
    pub(crate) propagations: u32,
    /// Values of a constraint.
    pub(crate) width: u32,
}

/// How heads are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// From each head, by what is shared with those before.
    Indexed,
    /// All combinations, heads in the order of the text.
    Exhaustive,
}

/// What the words of the code and of instructions have room for.
const WORDS_MAX: usize = 1 << 16;

impl Compiled {
    /// Compiles a program.
    ///
    /// # Errors
    /// A rule that is too large.
    pub(crate) fn new(program: &Program, search: Search) -> Result<Self, Refusal> {
        let mut compiled = Self::default();
        let width = program.kinds.iter().map(|kind| kind.types.len()).max().unwrap_or_default();
        compiled.width = number(width.max(1));
        for (idx, rule) in program.rules.iter().enumerate() {
            let compiled_rule = compiled.rule(number(idx), rule, search);
            let is_large = compiled.code.len() > WORDS_MAX || compiled.constants.len() > WORDS_MAX;
            if !compiled_rule || is_large {
                let what =
                    if is_large { "the program is too large" } else { "an expression is nested too deep" };
                let fault = rules::view::fault(&program.text, rule.at, format!("{what} for a device"));
                return Err(Refusal::Rule { rule: rule.name.clone(), fault });
            }
        }
        Ok(compiled)
    }

    /// Adds a rule's occurrences. Returns false where its stack would be too high.
    fn rule(&mut self, idx: u32, rule: &Rule, search: Search) -> bool {
        let removed = rule.heads.iter().enumerate().filter(|(_, head)| head.is_removed);
        let removed = removed.fold(0, |bits, (place, _)| bits | 1 << place);
        if removed == 0 && rule.body.is_empty() {
            // It changes nothing.
            return true;
        }
        let mut writing = Writing { compiled: self, fits: true };
        let body = writing.body(rule);
        let adds = rule.body.iter().filter(|action| matches!(action, Action::Add(..))).count();
        let places = if search == Search::Indexed { ranks(rule) } else { vec![0] };
        for place in places {
            let mut occurrence = k::Occurrence {
                rule: idx,
                heads: number(rule.heads.len()),
                removed,
                propagation: NOWHERE,
                rotates: u32::from(removed.count_ones() > 1),
                body,
                adds: number(adds),
                ..k::Occurrence::zeroed()
            };
            if removed == 0 {
                occurrence.propagation = writing.compiled.propagations;
                writing.compiled.propagations += 1;
            }
            writing.steps(rule, place, search, &mut occurrence.steps);
            let kind = occurrence.steps[0].kind;
            let is_before = |other: &k::Occurrence| {
                other.rule < idx && other.propagation == NOWHERE && other.steps[0].kind == kind
            };
            occurrence.stays = (removed != 0 && !writing.compiled.occurrences.iter().any(is_before)).into();
            writing.compiled.occurrences.push(occurrence);
        }
        writing.fits
    }

    fn constant(&mut self, value: Value) -> u32 {
        let (bits, kind) = bits(value);
        let value = k::Value { bits, kind, unused: 0 };
        let known = self.constants.iter().position(|known| *known == value);
        number(known.unwrap_or_else(|| {
            self.constants.push(value);
            self.constants.len() - 1
        }))
    }

    fn index(&mut self, kind: u32, mask: u32) -> u32 {
        let index = k::Index { kind, mask };
        let known = self.indexes.iter().position(|known| *known == index);
        number(known.unwrap_or_else(|| {
            self.indexes.push(index);
            self.indexes.len() - 1
        }))
    }
}

/// A value as the device has it: its bits and its type.
pub(crate) fn bits(value: Value) -> (u64, u32) {
    match value {
        Value::Int(number) => (number.cast_unsigned(), k::WHOLE),
        Value::Float(number) => (number.to_bits(), k::FLOAT),
        Value::Atom(number) => (number.into(), k::NAME),
    }
}

fn word(op: u32, a: u32, b: u32) -> u32 {
    op | a << 8 | (b & 0xffff) << 16
}

/// Code on its way.
struct Writing<'a> {
    compiled: &'a mut Compiled,
    fits: bool,
}

impl Writing<'_> {
    fn here(&self) -> u32 {
        number(self.compiled.code.len())
    }

    fn emit(&mut self, op: u32, a: u32, b: u32) -> usize {
        self.compiled.code.push(word(op, a, b));
        self.compiled.code.len() - 1
    }

    /// Lets jumps go here.
    fn land(&mut self, jumps: &[usize]) {
        let here = self.here();
        for jump in jumps {
            let code = &mut self.compiled.code[*jump];
            *code = *code & 0xffff | (here & 0xffff) << 16;
        }
    }

    /// Pushes the value of an expression on so many others.
    fn push(&mut self, expression: &Expression, below: usize) {
        if below >= k::STACK {
            self.fits = false;
            return;
        }
        match expression {
            Expression::Value(value) => {
                let constant = self.compiled.constant(*value);
                self.emit(k::PUSH_CONSTANT, 0, constant);
            }
            Expression::Variable(variable) => {
                self.emit(k::PUSH_SLOT, 0, number(*variable));
            }
            Expression::Unary(function, operand) => {
                self.push(operand, below);
                self.emit(k::UNARY, *function, 0);
            }
            Expression::Binary(function, operands) => {
                self.push(&operands[0], below);
                self.push(&operands[1], below + 1);
                self.emit(k::BINARY, *function, 0);
            }
            Expression::Distance(places) => {
                for (at, place) in places.iter().enumerate() {
                    self.push(place, below + at);
                }
                self.emit(k::DISTANCE, 0, 0);
            }
        }
    }

    fn same(&mut self, left: &Expression, right: &Expression, is_number: bool, is_same: bool) -> usize {
        self.push(left, 0);
        self.push(right, 1);
        if is_number {
            self.emit(k::NUMBER, 0, 0);
        }
        self.emit(k::SAME, is_same.into(), 0);
        self.emit(k::JUMP_UNLESS, 0, 0)
    }

    fn store(&mut self, variable: usize, value: &Expression, is_number: bool) {
        self.push(value, 0);
        if is_number {
            self.emit(k::NUMBER, 0, 0);
        }
        self.emit(k::STORE, 0, number(variable));
    }

    /// Goes on behind where a test holds, and adds to the jumps where it does not.
    fn test(&mut self, test: &Test, fails: &mut Vec<usize>) {
        match test {
            Test::Compare(comparison, left, right) => {
                self.push(left, 0);
                self.push(right, 1);
                self.emit(k::COMPARE, *comparison, 0);
                fails.push(self.emit(k::JUMP_UNLESS, 0, 0));
            }
            Test::Same(left, right, is_same) => fails.push(self.same(left, right, false, *is_same)),
            Test::Any(sides) => {
                let mut ends = Vec::new();
                for (idx, side) in sides.iter().enumerate() {
                    let mut next = Vec::new();
                    side.iter().for_each(|test| self.test(test, &mut next));
                    if idx + 1 == sides.len() {
                        fails.extend(next);
                    } else {
                        ends.push(self.emit(k::JUMP, 0, 0));
                        self.land(&next);
                    }
                }
                self.land(&ends);
            }
            Test::Not(tests) => {
                let mut holds = Vec::new();
                tests.iter().for_each(|test| self.test(test, &mut holds));
                fails.push(self.emit(k::JUMP, 0, 0));
                self.land(&holds);
            }
            Test::Is(variable, value) => self.store(*variable, value, true),
            Test::Let(variable, value) => self.store(*variable, value, false),
            Test::Never => fails.push(self.emit(k::JUMP, 0, 0)),
        }
    }

    fn end(&mut self, fails: &[usize]) {
        self.emit(k::YES, 0, 0);
        self.land(fails);
        self.emit(k::NO, 0, 0);
    }

    fn body(&mut self, rule: &Rule) -> u32 {
        let begin = self.here();
        let mut fails = Vec::new();
        for action in &rule.body {
            match action {
                Action::Is(variable, value) => self.store(*variable, value, true),
                Action::Let(variable, value) => self.store(*variable, value, false),
                Action::Same(left, right) => fails.push(self.same(left, right, false, true)),
                Action::SameNumber(left, right) => fails.push(self.same(left, right, true, true)),
                Action::Fail => fails.push(self.emit(k::JUMP, 0, 0)),
                Action::Add(kind, arguments) => {
                    for (below, argument) in arguments.iter().enumerate() {
                        self.push(argument, below);
                    }
                    self.emit(k::ADD, number(arguments.len()), number(*kind));
                }
            }
        }
        self.end(&fails);
        begin
    }

    /// The heads of a rule in the order in which they are looked for, from one of them on.
    fn steps(&mut self, rule: &Rule, first: usize, search: Search, steps: &mut [k::Step; k::HEADS]) {
        let mut depths = vec![usize::MAX; rule.variables];
        let mut left: Vec<_> = (0..rule.heads.len()).collect();
        let mut order = Vec::new();
        let mut next = Some(first);
        while let Some(place) = next {
            left.retain(|other| *other != place);
            for argument in &rule.heads[place].arguments {
                if let Pattern::Variable(variable) = argument {
                    depths[*variable] = depths[*variable].min(order.len());
                }
            }
            order.push(place);
            let known =
                |place: &usize| mask(&rule.heads[*place].arguments, &depths, order.len()).count_ones();
            next = match search {
                Search::Exhaustive => left.first().copied(),
                // Of equal ones that from which the rule is looked for first: it is the one that may be left to its own search.
                Search::Indexed => {
                    ranks(rule).into_iter().rev().filter(|place| left.contains(place)).max_by_key(known)
                }
            };
        }
        // Each test as soon as its variables have values.
        let mut tests: Vec<Vec<&Test>> = vec![Vec::new(); order.len()];
        for test in &rule.guard {
            let depth = match search {
                Search::Exhaustive => order.len() - 1,
                Search::Indexed => depth_of_test(test, &depths),
            };
            if let Test::Is(variable, _) | Test::Let(variable, _) = test {
                depths[*variable] = depth;
            }
            tests[depth].push(test);
        }
        for (depth, place) in order.iter().enumerate() {
            let head = &rule.heads[*place];
            let kind = number(head.kind);
            let ranks = ranks(rule);
            let rank = |place: usize| ranks.iter().position(|ranked| *ranked == place);
            let is_earlier = rule.heads.iter().any(|head| head.is_removed) && rank(*place) < rank(first);
            let mut step = k::Step {
                kind,
                place: number(*place),
                index: NOWHERE,
                earlier: (search == Search::Indexed && is_earlier).into(),
                ..k::Step::zeroed()
            };
            let mask = mask(&head.arguments, &depths, depth);
            if search == Search::Indexed && depth > 0 && mask != 0 {
                step.index = self.compiled.index(kind, mask);
                step.key = self.here();
                step.key_count = mask.count_ones();
                for (idx, argument) in head.arguments.iter().enumerate() {
                    match argument {
                        Pattern::Value(value) if mask >> idx & 1 == 1 => {
                            self.push(&Expression::Value(*value), 0)
                        }
                        Pattern::Variable(variable) if mask >> idx & 1 == 1 => {
                            self.push(&Expression::Variable(*variable), 0);
                        }
                        _ => {}
                    }
                }
            }
            step.code = self.here();
            let mut bound = Vec::new();
            for (idx, argument) in head.arguments.iter().enumerate() {
                let idx = number(idx);
                match argument {
                    Pattern::Any => {}
                    Pattern::Value(value) => {
                        let constant = self.compiled.constant(*value);
                        self.emit(k::MATCH_CONSTANT, idx, constant);
                    }
                    Pattern::Variable(variable) => {
                        let is_new = depths[*variable] == depth && !bound.contains(variable);
                        bound.push(*variable);
                        self.emit(if is_new { k::BIND } else { k::MATCH_SLOT }, idx, number(*variable));
                    }
                }
            }
            let mut fails = Vec::new();
            tests[depth].iter().for_each(|test| self.test(test, &mut fails));
            self.end(&fails);
            steps[depth] = step;
        }
    }
}

/// The heads in the order in which a rule is looked for from them: those that would be removed first; in propagations in their order, which the
/// kernels rely on.
fn ranks(rule: &Rule) -> Vec<usize> {
    let mut places: Vec<_> = (0..rule.heads.len()).collect();
    places.sort_by_key(|place| !rule.heads[*place].is_removed);
    places
}

/// The arguments of a head that are known before it is looked for, as bits.
fn mask(arguments: &[Pattern], depths: &[usize], depth: usize) -> u32 {
    arguments.iter().enumerate().fold(0, |mask, (idx, argument)| {
        let is_known = match argument {
            Pattern::Value(_) => true,
            Pattern::Variable(variable) => depths[*variable] < depth,
            Pattern::Any => false,
        };
        mask | u32::from(is_known) << idx
    })
}

fn depth_of(expression: &Expression, depths: &[usize]) -> usize {
    match expression {
        Expression::Value(_) => 0,
        // One without a depth gets its value within a disjunction.
        Expression::Variable(variable) if depths[*variable] == usize::MAX => 0,
        Expression::Variable(variable) => depths[*variable],
        Expression::Unary(_, operand) => depth_of(operand, depths),
        Expression::Binary(_, operands) => {
            operands.iter().map(|operand| depth_of(operand, depths)).max().unwrap_or_default()
        }
        Expression::Distance(places) => {
            places.iter().map(|place| depth_of(place, depths)).max().unwrap_or_default()
        }
    }
}

fn depth_of_test(test: &Test, depths: &[usize]) -> usize {
    let of = |tests: &[Test]| tests.iter().map(|test| depth_of_test(test, depths)).max().unwrap_or_default();
    match test {
        Test::Compare(_, left, right) | Test::Same(left, right, _) => {
            depth_of(left, depths).max(depth_of(right, depths))
        }
        Test::Any(sides) => sides.iter().map(|side| of(side)).max().unwrap_or_default(),
        Test::Not(tests) => of(tests),
        Test::Is(_, value) | Test::Let(_, value) => depth_of(value, depths),
        Test::Never => 0,
    }
}
