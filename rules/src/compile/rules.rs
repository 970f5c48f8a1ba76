//! Rules become occurrences, each with an order in which the other heads are found.

use super::{Compiler, End, Scope, each_variable, index};
use crate::code::{Arg, Callable, Comparison, Instruction, Occurrence, Partner, Rule as Compiled, Test};
use crate::machine::Builtin;
use crate::program::{Head, Rule};
use crate::syntax::{Kind, Node};
use crate::term::Atom;

impl Compiler<'_> {
    pub(super) fn rule(&mut self, rule: &Rule) {
        let number = index(self.code.rules.len());
        let mut scope = Scope::new(rule.variables.len());
        for head in &rule.heads {
            head.arguments.iter().for_each(|argument| scope.count(argument));
        }
        for part in rule.guard.iter().chain([&rule.body]) {
            scope.count(part);
        }
        let guard: Vec<_> = rule.guard.iter().flat_map(Node::conjuncts).collect();
        let is_propagation = rule.heads.iter().all(|head| !head.is_removed);
        let is_told_by_age = rule.heads.iter().all(|head| !head.is_passive);
        let has_body = !matches!(rule.body.kind, Kind::Atom(Atom::TRUE));
        let name = rule.name.map(|name| self.atoms.text(name));
        self.code.rules.push(Compiled {
            name: name.unwrap_or_else(|| format!("rule {}", number + 1).into()),
            slots: 0,
            body: None,
            body_and_resume: None,
            has_body,
            is_propagation,
            is_told_by_age,
        });
        // Those that are removed are tried first.
        let removed = rule.heads.iter().enumerate().filter(|(_, head)| head.is_removed);
        let kept = rule.heads.iter().enumerate().filter(|(_, head)| !head.is_removed);
        let order: Vec<_> = removed.chain(kept).map(|(idx, _)| idx).collect();
        let (mut slots, mut behind) = (scope.slots, scope.clone());
        for &active in order.iter().filter(|active| !rule.heads[**active].is_passive) {
            let mut scope = scope.clone();
            self.occurrence(number, rule, &order, active, &guard, &mut scope);
            slots = slots.max(scope.slots);
            behind = scope;
        }
        // The body finds its variables in the same slots, whichever head was active.
        behind.slots = slots;
        if has_body && rule.heads.iter().any(|head| head.is_removed && !head.is_passive) {
            let mut scope = behind.clone();
            self.code.rules[number as usize].body = Some(self.body(&rule.body, &mut scope, End::Proceed));
            slots = slots.max(scope.slots);
        }
        if has_body && rule.heads.iter().any(|head| !head.is_removed && !head.is_passive) {
            let mut scope = behind.clone();
            self.code.rules[number as usize].body_and_resume =
                Some(self.body(&rule.body, &mut scope, End::Resume));
            slots = slots.max(scope.slots);
        }
        self.code.rules[number as usize].slots = slots;
    }

    fn occurrence(
        &mut self,
        number: u32,
        rule: &Rule,
        order: &[usize],
        active: usize,
        guard: &[&Node],
        scope: &mut Scope,
    ) {
        let heads = &rule.heads;
        let mut places = vec![0; heads.len()];
        let mut pending: Vec<_> = guard.to_vec();
        let pattern = self.arguments(&heads[active].arguments, scope);
        let mut rest: Vec<_> = order.iter().copied().filter(|idx| *idx != active).collect();
        let tests = self.tests(&mut pending, rest.is_empty(), scope);
        let mut partners = Vec::new();
        while !rest.is_empty() {
            // A head that shares something with those before is found by an index.
            let shares = |idx: &usize| known(&heads[*idx], scope) != 0 || heads[*idx].arguments.is_empty();
            let next = rest.remove(rest.iter().position(shares).unwrap_or(0));
            let head = &heads[next];
            let mask = known(head, scope);
            let key = head.arguments.iter().enumerate().filter(|(idx, _)| mask >> idx & 1 == 1);
            let key = key.map(|(_, argument)| argument.clone()).collect::<Vec<_>>();
            let key = self.arguments(&key, &mut scope.clone());
            let pattern = self.arguments(&head.arguments, scope);
            let kind = self.kind(head);
            let indexes = &mut self.code.kinds[kind as usize].indexes;
            let idx = indexes.iter().position(|known| *known == mask).unwrap_or_else(|| {
                indexes.push(mask);
                indexes.len() - 1
            });
            let tests = self.tests(&mut pending, rest.is_empty(), scope);
            partners.push(Partner { kind, pattern, is_removed: head.is_removed, tests, index: idx, key });
            places[next] = partners.len();
        }
        let constants = pattern.iter().enumerate().filter_map(|(idx, arg)| match arg {
            Arg::Const(value) => Some((idx, *value)),
            _ => None,
        });
        let occurrence = Occurrence {
            rule: number,
            constants: constants.collect(),
            pattern,
            is_removed: heads[active].is_removed,
            tests,
            partners: partners.into(),
            places: places.into(),
        };
        let kind = self.kind(&heads[active]);
        let idx = index(self.code.occurrences.len());
        self.code.occurrences.push(occurrence);
        self.code.kinds[kind as usize].occurrences.push(idx);
    }

    fn kind(&self, head: &Head) -> u32 {
        match self.code.callables.get(&(head.name, head.arguments.len())) {
            Some(Callable::Constraint(kind)) => *kind,
            found => unreachable!("heads are constraints, and not {found:?}"),
        }
    }

    /// Takes those parts of a guard that can be decided now; with all heads found, all of them.
    fn tests(&mut self, pending: &mut Vec<&Node>, is_last: bool, scope: &mut Scope) -> Box<[Test]> {
        let mut tests = Vec::new();
        let mut late = Vec::new();
        for node in std::mem::take(pending) {
            let is_early = late.is_empty() || scope.is_known(node);
            if is_last || (is_early && scope.is_known(node) && self.is_plain(node)) {
                self.test(node, scope, &mut tests);
            } else {
                late.push(node);
            }
        }
        *pending = late;
        tests.into()
    }

    /// Whether a part of a guard calls and binds nothing, provided that its variables are known.
    fn is_plain(&self, node: &Node) -> bool {
        match node.callable() {
            Some((Atom::SEMICOLON | Atom::COMMA, parts)) => parts.iter().all(|part| self.is_plain(part)),
            Some((Atom::NOT, [part])) => self.is_plain(part),
            Some((Atom::TRUE | Atom::FAIL | Atom::FALSE, [])) => true,
            Some((name, [_, _])) if Comparison::of(self.atoms.name(name)).is_some() => true,
            Some((name, arguments)) => {
                let callable = self.code.callables.get(&(name, arguments.len()));
                matches!(callable, Some(Callable::Builtin(builtin)) if builtin.is_test())
            }
            None => false,
        }
    }

    fn test(&mut self, node: &Node, scope: &mut Scope, tests: &mut Vec<Test>) {
        if self.is_plain(node) && scope.is_known(node) {
            return self.plain(node, scope, tests);
        }
        match node.callable() {
            Some((Atom::IS, [left, right])) if scope.is_known(right) => {
                let right = self.expression(right, scope);
                let left = self.argument(left, scope);
                tests.push(Test::Is(left, right));
            }
            Some((Atom::UNIFY, [left, right])) => {
                let (left, right) = self.unification(left, right, scope);
                tests.push(Test::Unify(left, right));
            }
            _ => {
                // It runs as code of its own, in which the variables that it brings have to be there.
                let begin = self.here();
                let mut fresh = Vec::new();
                each_variable(node, &mut |variable| {
                    if !scope.is_seen[variable] && scope.uses[variable] > 1 {
                        scope.is_seen[variable] = true;
                        fresh.push(variable);
                    }
                });
                for variable in fresh {
                    self.emit(Instruction::Fresh(index(variable)));
                }
                self.body(node, scope, End::Stop);
                tests.push(Test::Call(begin));
            }
        }
    }

    fn plain(&mut self, node: &Node, scope: &mut Scope, tests: &mut Vec<Test>) {
        match node.callable() {
            Some((Atom::COMMA, parts)) => parts.iter().for_each(|part| self.plain(part, scope, tests)),
            Some((Atom::SEMICOLON, parts)) => {
                let mut any = Vec::new();
                for part in parts {
                    let mut all = Vec::new();
                    self.plain(part, scope, &mut all);
                    any.push(all.into());
                }
                tests.push(Test::Any(any.into()));
            }
            Some((Atom::NOT, [part])) => {
                let mut all = Vec::new();
                self.plain(part, scope, &mut all);
                tests.push(Test::None(all.into()));
            }
            Some((Atom::TRUE, [])) => {}
            Some((Atom::FAIL | Atom::FALSE, [])) => tests.push(Test::Fail),
            Some((name, [left, right])) if let Some(comparison) = Comparison::of(self.atoms.name(name)) => {
                tests.push(Test::Compare(
                    comparison,
                    self.expression(left, scope),
                    self.expression(right, scope),
                ));
            }
            Some((name, arguments)) => {
                let builtin = Builtin::of(self.atoms.name(name), arguments.len());
                let arguments = self.arguments(arguments, scope);
                tests.extend(builtin.map(|builtin| Test::Builtin(builtin, arguments)));
            }
            None => {}
        }
    }
}

/// The arguments of a head that are known before it is found, as bits. An index does not look into compounds.
fn known(head: &Head, scope: &Scope) -> u64 {
    let is_simple = |argument: &Node| {
        !matches!(argument.kind, Kind::Compound(..) | Kind::List(..) | Kind::Conjunction(_))
    };
    let bits = head.arguments.iter().enumerate();
    let bits = bits.filter(|(_, argument)| is_simple(argument) && scope.is_known(argument));
    bits.fold(0, |mask, (idx, _)| mask | 1 << idx)
}
