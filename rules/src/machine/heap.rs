//! Cells, bindings, and what undoes them.

use std::cell::Cell;
use std::cmp::Ordering;

use crate::term::{Atom, Atoms, Term};

/// Terms that are alive.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) cells: Vec<Term>,
    /// Cells that were walked through. A term that has another one twice is walked through as if it were a tree.
    walked: Cell<u64>,
    /// How many may be. Beyond that walks end early, and what they say counts for nothing, since the run ends with an error.
    walk_max: Option<u64>,
}

impl Heap {
    pub(crate) fn with_walk_max(walk_max: u64) -> Self {
        Self { walk_max: Some(walk_max), ..Self::default() }
    }

    pub(crate) fn bound(&mut self, walk_max: u64) {
        self.walk_max = Some(walk_max);
    }

    pub(crate) fn rest(&self) {
        self.walked.set(0);
    }

    /// Counts cells. Returns whether the walk may go on.
    #[inline]
    pub(crate) fn walk(&self, cells: usize) -> bool {
        self.walked.set(self.walked.get().saturating_add(cells as u64));
        !self.is_worn()
    }

    /// Whether a walk ended early.
    #[inline]
    pub(crate) fn is_worn(&self) -> bool {
        self.walk_max.is_some_and(|max| self.walked.get() > max)
    }

    /// What a term stands for: a variable without value, or no variable.
    #[inline]
    pub(crate) fn resolve(&self, mut term: Term) -> Term {
        while let Term::Var(cell) = term {
            match self.cells[cell as usize] {
                Term::Watched(_) => return term,
                value if value == term => return term,
                value => term = value,
            }
        }
        term
    }

    #[expect(clippy::cast_possible_truncation, reason = "a bound keeps the cells below 2^32")]
    pub(crate) fn top(&self) -> u32 {
        self.cells.len() as u32
    }

    pub(crate) fn fresh(&mut self) -> Term {
        let variable = Term::Var(self.top());
        self.cells.push(variable);
        variable
    }

    pub(crate) fn compound(&mut self, name: Atom, arguments: &[Term]) -> Term {
        let at = self.top();
        #[expect(clippy::cast_possible_truncation, reason = "a bound keeps the cells below 2^32")]
        self.cells.push(Term::Functor(name, arguments.len() as u32));
        self.cells.extend_from_slice(arguments);
        Term::Compound(at)
    }

    pub(crate) fn pair(&mut self, head: Term, tail: Term) -> Term {
        self.compound(Atom::DOT, &[head, tail])
    }

    pub(crate) fn list(&mut self, elements: impl DoubleEndedIterator<Item = Term>, tail: Term) -> Term {
        elements.rev().fold(tail, |tail, head| self.pair(head, tail))
    }

    pub(crate) fn functor(&self, at: u32) -> (Atom, usize) {
        match self.cells[at as usize] {
            Term::Functor(name, arity) => (name, arity as usize),
            cell => unreachable!("a compound begins with its functor, and not with {cell:?}"),
        }
    }

    /// What is in a cell of a compound. The cell may be that of a variable for which constraints wait.
    #[inline]
    fn value(&self, cell: u32) -> Term {
        match self.cells[cell as usize] {
            Term::Watched(_) => Term::Var(cell),
            term => term,
        }
    }

    /// The arguments of the compound at that cell.
    pub(crate) fn arguments(&self, at: u32) -> impl ExactSizeIterator<Item = Term> + DoubleEndedIterator {
        let (_, arity) = self.functor(at);
        #[expect(clippy::cast_possible_truncation, reason = "a bound keeps the cells below 2^32")]
        (at + 1..at + 1 + arity as u32).map(|cell| self.value(cell))
    }

    /// Argument of a compound, by its index.
    #[inline]
    pub(crate) fn argument(&self, at: u32, idx: usize) -> Term {
        #[expect(clippy::cast_possible_truncation, reason = "a bound keeps the cells below 2^32")]
        self.resolve(self.value(at + 1 + idx as u32))
    }

    /// Name and arguments' cell of a term that can be called, and its arity.
    pub(crate) fn callable(&self, term: Term) -> Option<(Atom, usize, u32)> {
        match self.resolve(term) {
            Term::Atom(name) => Some((name, 0, 0)),
            Term::Compound(at) => {
                let (name, arity) = self.functor(at);
                Some((name, arity, at))
            }
            _ => None,
        }
    }

    /// Head and tail, where a term is a list with an element.
    pub(crate) fn head_and_tail(&self, term: Term) -> Option<(Term, Term)> {
        match self.resolve(term) {
            Term::Compound(at) if self.functor(at) == (Atom::DOT, 2) => {
                Some((self.argument(at, 0), self.argument(at, 1)))
            }
            _ => None,
        }
    }

    /// The elements of a list, where it is one with an end.
    pub(crate) fn elements(&self, list: Term) -> Option<Vec<Term>> {
        let (mut elements, mut rest) = (Vec::new(), self.resolve(list));
        while let Some((head, tail)) = self.head_and_tail(rest) {
            elements.push(head);
            rest = tail;
        }
        self.walk(elements.len());
        (rest == Term::Atom(Atom::NIL)).then_some(elements)
    }

    /// Calls `visit` with each variable without value, each time that one is met, in order.
    pub(crate) fn variables(&self, term: Term, visit: &mut impl FnMut(u32)) {
        let at = match self.resolve(term) {
            Term::Var(cell) => return visit(cell),
            Term::Compound(at) => at,
            _ => return,
        };
        let mut open: Vec<_> = self.arguments(at).rev().collect();
        while let Some(term) = open.pop() {
            if !self.walk(1) {
                return;
            }
            match self.resolve(term) {
                Term::Var(cell) => visit(cell),
                Term::Compound(at) => open.extend(self.arguments(at).rev()),
                _ => {}
            }
        }
    }

    /// Whether a term has that variable in it.
    pub(crate) fn contains(&self, term: Term, variable: u32) -> bool {
        let mut is_there = false;
        self.variables(term, &mut |cell| is_there |= cell == variable);
        is_there || self.is_worn()
    }

    #[inline]
    pub(crate) fn is_ground(&self, term: Term) -> bool {
        match self.resolve(term) {
            Term::Var(_) => false,
            term @ Term::Compound(_) => self.has_no_variable(term),
            _ => true,
        }
    }

    fn has_no_variable(&self, term: Term) -> bool {
        let mut is_ground = true;
        self.variables(term, &mut |_| is_ground = false);
        is_ground && !self.is_worn()
    }

    /// Whether two terms are the same as they stand (`==`).
    #[inline]
    pub(crate) fn is_same(&self, left: Term, right: Term) -> bool {
        let (left, right) = (self.resolve(left), self.resolve(right));
        match (left, right) {
            (Term::Compound(_), Term::Compound(_)) => self.are_same(left, right),
            _ => is_equal(left, right),
        }
    }

    fn are_same(&self, left: Term, right: Term) -> bool {
        let mut open = vec![(left, right)];
        while let Some((left, right)) = open.pop() {
            if !self.walk(1) {
                return false;
            }
            match (self.resolve(left), self.resolve(right)) {
                (Term::Compound(left), Term::Compound(right)) => {
                    if left != right {
                        if self.cells[left as usize] != self.cells[right as usize] {
                            return false;
                        }
                        open.extend(self.arguments(left).zip(self.arguments(right)));
                    }
                }
                (left, right) if is_equal(left, right) => {}
                _ => return false,
            }
        }
        true
    }

    /// The standard order of terms.
    pub(crate) fn compare(&self, atoms: &Atoms, left: Term, right: Term) -> Ordering {
        self.order(atoms, left, right, || self.walk(1))
    }

    /// The standard order of terms that [`Self::pays_for_sorting`] has counted.
    pub(crate) fn compare_paid(&self, atoms: &Atoms, left: Term, right: Term) -> Ordering {
        self.order(atoms, left, right, || true)
    }

    /// Counts what it takes to sort terms, before that is done: a comparison that ended early would be no order. Returns whether it may be.
    pub(crate) fn pays_for_sorting(&self, keys: impl ExactSizeIterator<Item = Term>) -> bool {
        let (before, levels) = (self.walked.get(), u64::from(usize::BITS - keys.len().leading_zeros()));
        keys.for_each(|key| {
            self.walk(1);
            self.variables(key, &mut |_| {});
        });
        let cells = self.walked.get() - before;
        self.walked.set(self.walked.get().saturating_add(cells.saturating_mul(levels)));
        !self.is_worn()
    }

    fn order(&self, atoms: &Atoms, left: Term, right: Term, walk: impl Fn() -> bool) -> Ordering {
        let mut open = vec![(left, right)];
        while let Some((left, right)) = open.pop() {
            if !walk() {
                return Ordering::Equal;
            }
            let (left, right) = (self.resolve(left), self.resolve(right));
            let order = match (left, right) {
                (Term::Compound(left), Term::Compound(right)) => {
                    let ((left_name, left_arity), (right_name, right_arity)) =
                        (self.functor(left), self.functor(right));
                    let order = left_arity.cmp(&right_arity);
                    let order = order.then_with(|| atoms.name(left_name).cmp(atoms.name(right_name)));
                    if order.is_eq() && left != right {
                        let pairs = self.arguments(left).zip(self.arguments(right));
                        let from = open.len();
                        open.extend(pairs);
                        open[from..].reverse();
                    }
                    order
                }
                (Term::Atom(left), Term::Atom(right)) => atoms.name(left).cmp(atoms.name(right)),
                (Term::Var(left), Term::Var(right)) => left.cmp(&right),
                (Term::Int(_) | Term::Float(_), Term::Int(_) | Term::Float(_)) => {
                    numbers(left, right).then_with(|| rank(left).cmp(&rank(right)))
                }
                _ => rank(left).min(2).cmp(&rank(right).min(2)).then(rank(left).cmp(&rank(right))),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// Whether two terms that are no compounds are the same; a number that is none is the same as itself.
#[inline]
fn is_equal(left: Term, right: Term) -> bool {
    match (left, right) {
        (Term::Float(left), Term::Float(right)) => left.to_bits() == right.to_bits(),
        _ => left == right,
    }
}

/// The order of kinds. Of two numbers that are equal the float is first.
fn rank(term: Term) -> u8 {
    match term {
        Term::Float(_) => 1,
        Term::Int(_) => 2,
        Term::Atom(_) => 3,
        Term::Compound(_) => 4,
        _ => 0,
    }
}

/// The standard order of two numbers by their values.
fn numbers(left: Term, right: Term) -> Ordering {
    match (left, right) {
        (Term::Int(left), Term::Int(right)) => left.cmp(&right),
        // What is no number is before all numbers.
        (Term::Float(left), Term::Float(right)) => match (left.is_nan(), right.is_nan()) {
            (false, false) => left.total_cmp(&right),
            (is_first, is_second) => is_second.cmp(&is_first),
        },
        (Term::Int(left), Term::Float(right)) => mixed(left, right),
        (Term::Float(left), Term::Int(right)) => mixed(right, left).reverse(),
        _ => Ordering::Equal,
    }
}

/// The order of a whole number and a float, which is exact.
fn mixed(whole: i64, float: f64) -> Ordering {
    if float.is_nan() {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the float is within the range")]
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        let floor = float.floor();
        return whole.cmp(&(floor as i64)).then(if float > floor { Ordering::Less } else { Ordering::Equal });
    }
    if float > 0.0 { Ordering::Less } else { Ordering::Greater }
}
