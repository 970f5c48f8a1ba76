//! Predicates of the machine's own.

use std::cell::RefCell;
use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::causes::Causes;
use super::{Error, Machine, arithmetic};
use crate::code::Code;
use crate::syntax::Writer;
use crate::term::{Atom, Term};

macro_rules! builtins {
    ($($(#[$is_test:ident])? $variant:ident = $name:literal / $arity:literal,)*) => {
        /// A predicate that has one answer at most.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Builtin { $($variant,)* }
        impl Builtin {
            pub(crate) fn all() -> impl Iterator<Item = (&'static str, usize)> {
                [$(($name, $arity),)*].into_iter()
            }

            pub(crate) fn of(name: &str, arity: usize) -> Option<Self> {
                Some(match (name, arity) { $(($name, $arity) => Self::$variant,)* _ => return None })
            }

            /// Whether it only asks, so that it may be decided as soon as its arguments are known.
            pub(crate) fn is_test(self) -> bool {
                match self { $(Self::$variant => builtins!(@ $($is_test)?),)* }
            }
        }
    };
    (@ test) => { true };
    (@) => { false };
}

builtins! {
    #[test] Var = "var"/1, #[test] Nonvar = "nonvar"/1, #[test] IsAtom = "atom"/1, #[test] IsNumber = "number"/1, #[test] IsInteger = "integer"/1,
    #[test] IsFloat = "float"/1, #[test] Atomic = "atomic"/1, #[test] IsCompound = "compound"/1, #[test] IsCallable = "callable"/1,
    #[test] Ground = "ground"/1, #[test] IsList = "is_list"/1, #[test] Attvar = "attvar"/1, #[test] Same = "=="/2, #[test] NotSame = "\\=="/2,
    #[test] Before = "@<"/2, #[test] After = "@>"/2, #[test] NotAfter = "@=<"/2, #[test] NotBefore = "@>="/2, #[test] NotUnifiable = "\\="/2,
    Unifiable = "?="/2, Compare = "compare"/3, Functor = "functor"/3, Arg = "arg"/3, Univ = "=.."/2, CopyTerm = "copy_term"/2,
    Findall = "findall"/3, Sort = "sort"/2, Msort = "msort"/2, PredSort = "sort"/4, KeySort = "keysort"/2, LengthOf = "$length"/3,
    FreshList = "$fresh_list"/2, Free = "$free"/3, CpuTime = "cputime"/1, Statistics = "statistics"/2,
    Write = "write"/1, Print = "print"/1, WriteLn = "writeln"/1, Writeq = "writeq"/1, Newline = "nl"/0, GarbageCollect = "garbage_collect"/0,
    TermVariables = "term_variables"/2, Succ = "succ"/2, Plus = "plus"/3, AtomLength = "atom_length"/2, AtomConcat = "atom_concat"/3,
    Dummy = "chr_dummy"/0, NotVariant = "\\=@="/2, Variant = "=@="/2, Tab = "tab"/1,
}

impl Machine {
    pub(super) fn builtin(
        &mut self,
        code: &Code,
        builtin: Builtin,
        arguments: &[Term],
    ) -> Result<bool, Error> {
        let argument = |machine: &Self, idx: usize| machine.heap.resolve(arguments[idx]);
        Ok(match builtin {
            Builtin::Var => matches!(argument(self, 0), Term::Var(_)),
            Builtin::Nonvar => !matches!(argument(self, 0), Term::Var(_)),
            Builtin::IsAtom => matches!(argument(self, 0), Term::Atom(_)),
            Builtin::IsNumber => matches!(argument(self, 0), Term::Int(_) | Term::Float(_)),
            Builtin::IsInteger => matches!(argument(self, 0), Term::Int(_)),
            Builtin::IsFloat => matches!(argument(self, 0), Term::Float(_)),
            Builtin::Atomic => matches!(argument(self, 0), Term::Atom(_) | Term::Int(_) | Term::Float(_)),
            Builtin::IsCompound => matches!(argument(self, 0), Term::Compound(_)),
            Builtin::IsCallable => matches!(argument(self, 0), Term::Compound(_) | Term::Atom(_)),
            Builtin::Ground => self.heap.is_ground(arguments[0]),
            Builtin::IsList => self.heap.elements(arguments[0]).is_some(),
            Builtin::Attvar => matches!(argument(self, 0), Term::Var(cell) if self.is_watched(cell)),
            Builtin::Same => self.heap.is_same(arguments[0], arguments[1]),
            Builtin::NotSame => !self.heap.is_same(arguments[0], arguments[1]),
            Builtin::Before => self.order(arguments).is_lt(),
            Builtin::After => self.order(arguments).is_gt(),
            Builtin::NotAfter => self.order(arguments).is_le(),
            Builtin::NotBefore => self.order(arguments).is_ge(),
            Builtin::NotUnifiable => !self.would_unify(arguments[0], arguments[1]),
            Builtin::Unifiable => {
                self.heap.is_same(arguments[0], arguments[1]) || !self.would_unify(arguments[0], arguments[1])
            }
            Builtin::Variant => self.is_variant(arguments[0], arguments[1]),
            Builtin::NotVariant => !self.is_variant(arguments[0], arguments[1]),
            Builtin::Compare => {
                let sign = match self.heap.compare(&self.atoms, arguments[1], arguments[2]) {
                    Ordering::Less => "<",
                    Ordering::Equal => "=",
                    Ordering::Greater => ">",
                };
                let sign = Term::Atom(self.atoms.intern(sign));
                self.unify(arguments[0], sign)
            }
            Builtin::Functor => self.functor(arguments)?,
            Builtin::Arg => self.argument_of(arguments)?,
            Builtin::Univ => self.univ(arguments)?,
            Builtin::CopyTerm => {
                let copy = self.copy(arguments[0])?;
                self.unify(arguments[1], copy)
            }
            Builtin::Findall => self.find_all(code, arguments)?,
            Builtin::Sort | Builtin::Msort | Builtin::KeySort => {
                let mut elements = self.list(arguments[0], "sort/2")?;
                let mut keys = elements.clone();
                if builtin == Builtin::KeySort {
                    for key in &mut keys {
                        *key = self.key_of(*key)?;
                    }
                }
                if !self.heap.pays_for_sorting(keys.iter().copied()) {
                    return Ok(false);
                }
                let mut order: Vec<_> = (0..elements.len()).collect();
                order.sort_by(|left, right| self.heap.compare_paid(&self.atoms, keys[*left], keys[*right]));
                if builtin == Builtin::Sort {
                    order.dedup_by(|right, left| self.heap.is_same(keys[*left], keys[*right]));
                }
                elements = order.into_iter().map(|idx| elements[idx]).collect();
                let sorted = self.heap.list(elements.into_iter(), Term::Atom(Atom::NIL));
                self.unify(arguments[1], sorted)
            }
            Builtin::PredSort => self.sort_by(arguments)?,
            Builtin::LengthOf => {
                let (mut count, mut rest) = (0, argument(self, 0));
                while let Some((_, tail)) = self.heap.head_and_tail(rest) {
                    (count, rest) = (count + 1, tail);
                    self.heap.walk(1);
                }
                self.unify(arguments[1], Term::Int(count)) && self.unify(arguments[2], rest)
            }
            Builtin::FreshList => {
                let Term::Int(count) = argument(self, 0) else { return Ok(false) };
                self.check_words(usize::try_from(count).map_or(0, |count| count.saturating_mul(4)))?;
                let elements: Vec<_> = (0..count).map(|_| self.heap.fresh()).collect();
                let list = self.heap.list(elements.into_iter(), Term::Atom(Atom::NIL));
                self.unify(arguments[1], list)
            }
            Builtin::Free => self.free(arguments),
            Builtin::CpuTime => self.unify(arguments[0], Term::Float(0.0)),
            Builtin::Statistics => {
                let list = self.heap.list([Term::Int(0), Term::Int(0)].into_iter(), Term::Atom(Atom::NIL));
                self.unify(arguments[1], list)
            }
            // There is no output, so that nothing is written.
            Builtin::Write
            | Builtin::Print
            | Builtin::WriteLn
            | Builtin::Writeq
            | Builtin::Newline
            | Builtin::Tab => true,
            Builtin::GarbageCollect | Builtin::Dummy => true,
            Builtin::TermVariables => {
                let variables = self.distinct(arguments[0], &HashSet::default());
                let list = self.heap.list(variables.into_iter(), Term::Atom(Atom::NIL));
                self.unify(arguments[1], list)
            }
            Builtin::Succ => self.succ(arguments)?,
            Builtin::Plus => self.plus(arguments)?,
            Builtin::AtomLength => {
                let text = self.text_of(arguments[0], "atom_length/2")?;
                let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                self.unify(arguments[1], Term::Int(count))
            }
            Builtin::AtomConcat => {
                let text = self.text_of(arguments[0], "atom_concat/3")?
                    + &self.text_of(arguments[1], "atom_concat/3")?;
                self.text_bytes += text.len();
                self.check_words(0)?;
                let name = Term::Atom(self.atoms.intern(&text));
                self.unify(arguments[2], name)
            }
        })
    }

    /// A number and the next one, of which one is known.
    fn succ(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let numbers = [0, 1].map(|idx| self.heap.resolve(arguments[idx]));
        if let Some(found) = numbers.iter().find(|number| !matches!(number, Term::Int(0..) | Term::Var(_))) {
            return Err(self.wrong("succ/2", *found, "a whole number from 0 on"));
        }
        let (value, of) = match numbers {
            [Term::Int(left), _] => (left.checked_add(1), 1),
            [_, Term::Int(0)] => return Ok(false),
            [_, Term::Int(right)] => (Some(right - 1), 0),
            _ => return Err(Error::Unbound("succ/2")),
        };
        Ok(self.unify(arguments[of], arithmetic::checked(value)?))
    }

    /// Two numbers and their sum, of which two are known.
    fn plus(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let numbers = [0, 1, 2].map(|idx| self.heap.resolve(arguments[idx]));
        if let Some(found) = numbers.iter().find(|number| !matches!(number, Term::Int(_) | Term::Var(_))) {
            return Err(self.wrong("plus/3", *found, "a whole number"));
        }
        let (value, of) = match numbers {
            [Term::Int(left), Term::Int(right), _] => (left.checked_add(right), 2),
            [Term::Int(left), _, Term::Int(sum)] => (sum.checked_sub(left), 1),
            [_, Term::Int(right), Term::Int(sum)] => (sum.checked_sub(right), 0),
            _ => return Err(Error::Unbound("plus/3")),
        };
        Ok(self.unify(arguments[of], arithmetic::checked(value)?))
    }

    /// Whether a constraint that is there waits for a variable.
    fn is_watched(&self, cell: u32) -> bool {
        let Term::Watched(list) = self.heap.cells[cell as usize] else { return false };
        self.watched[list as usize]
            .iter()
            .any(|(kind, slot)| self.constraints[*kind as usize].is_stored(*slot))
    }

    fn wrong(&self, what: &'static str, found: Term, wanted: &'static str) -> Error {
        match self.heap.resolve(found) {
            Term::Var(_) => Error::Unbound(what),
            found => Error::Type { what, found: self.text(found), wanted },
        }
    }

    fn order(&self, arguments: &[Term]) -> Ordering {
        self.heap.compare(&self.atoms, arguments[0], arguments[1])
    }

    /// Whether two terms can be made one, without doing so.
    fn would_unify(&mut self, left: Term, right: Term) -> bool {
        let top = self.top(self.frame);
        let (undo, cells) = (self.undo.len(), self.heap.cells.len());
        let alternative = super::Alternative::End;
        let (frame, next, cause) = (self.frame, self.at, Causes::NONE);
        self.choices.push(super::Choice { alternative, undo, cells, top, frame, next, cause });
        let would = self.unify(left, right);
        self.undo_to_choice();
        self.drop_choice();
        would
    }

    fn is_variant(&self, left: Term, right: Term) -> bool {
        let (mut there, mut back): (HashMap<_, _, RandomState>, HashMap<_, _, RandomState>) =
            Default::default();
        let mut open = vec![(left, right)];
        while let Some((left, right)) = open.pop() {
            if !self.heap.walk(1) {
                return false;
            }
            match (self.heap.resolve(left), self.heap.resolve(right)) {
                (Term::Var(left), Term::Var(right)) => {
                    if *there.entry(left).or_insert(right) != right
                        || *back.entry(right).or_insert(left) != left
                    {
                        return false;
                    }
                }
                (Term::Compound(left), Term::Compound(right))
                    if self.heap.functor(left) == self.heap.functor(right) =>
                {
                    open.extend(self.heap.arguments(left).zip(self.heap.arguments(right)));
                }
                (left @ (Term::Int(_) | Term::Float(_) | Term::Atom(_)), right)
                    if self.heap.is_same(left, right) => {}
                _ => return false,
            }
        }
        true
    }

    fn list(&self, list: Term, what: &'static str) -> Result<Vec<Term>, Error> {
        self.heap.elements(list).ok_or_else(|| self.wrong(what, list, "a list"))
    }

    fn key_of(&self, pair: Term) -> Result<Term, Error> {
        match self.heap.resolve(pair) {
            Term::Compound(at) if self.heap.functor(at) == (Atom::MINUS, 2) => Ok(self.heap.argument(at, 0)),
            found => Err(self.wrong("keysort/2", found, "a pair Key-Value")),
        }
    }

    /// `sort/4`: key, order, list, sorted list.
    fn sort_by(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let Term::Int(key) = self.heap.resolve(arguments[0]) else {
            return Err(self.wrong("sort/4", arguments[0], "a whole number"));
        };
        let Term::Atom(order) = self.heap.resolve(arguments[1]) else {
            return Err(self.wrong("sort/4", arguments[1], "an order"));
        };
        let (is_down, keeps_equal) = match self.atoms.name(order) {
            "@<" => (false, false),
            "@=<" => (false, true),
            "@>" => (true, false),
            "@>=" => (true, true),
            _ => return Err(self.wrong("sort/4", arguments[1], "an order")),
        };
        let elements = self.list(arguments[2], "sort/4")?;
        let mut keyed = Vec::new();
        for element in elements {
            let value = match (key, self.heap.resolve(element)) {
                (0, element) => element,
                (1.., Term::Compound(at)) if key <= self.heap.arguments(at).len() as i64 => {
                    self.heap.argument(at, usize::try_from(key - 1).unwrap_or_default())
                }
                (_, found) => return Err(self.wrong("sort/4", found, "a compound with that argument")),
            };
            keyed.push((value, element));
        }
        if !self.heap.pays_for_sorting(keyed.iter().map(|(key, _)| *key)) {
            return Ok(false);
        }
        keyed.sort_by(|left, right| {
            let order = self.heap.compare_paid(&self.atoms, left.0, right.0);
            if is_down { order.reverse() } else { order }
        });
        if !keeps_equal {
            keyed.dedup_by(|right, left| self.heap.is_same(left.0, right.0));
        }
        let sorted = self.heap.list(keyed.into_iter().map(|(_, element)| element), Term::Atom(Atom::NIL));
        Ok(self.unify(arguments[3], sorted))
    }

    fn functor(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let (name, arity) = match self.heap.resolve(arguments[0]) {
            Term::Compound(at) => {
                let (name, arity) = self.heap.functor(at);
                (Term::Atom(name), i64::try_from(arity).unwrap_or(i64::MAX))
            }
            Term::Var(_) => {
                let built = match (self.heap.resolve(arguments[1]), self.heap.resolve(arguments[2])) {
                    (name, Term::Int(0)) => name,
                    (Term::Atom(name), Term::Int(arity @ 1..=1_024)) => {
                        let parts: Vec<_> = (0..arity).map(|_| self.heap.fresh()).collect();
                        self.heap.compound(name, &parts)
                    }
                    (_, found) => return Err(self.wrong("functor/3", found, "an arity of 1,024 at most")),
                };
                return Ok(self.unify(arguments[0], built));
            }
            constant => (constant, 0),
        };
        Ok(self.unify(arguments[1], name) && self.unify(arguments[2], Term::Int(arity)))
    }

    fn argument_of(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let Term::Compound(at) = self.heap.resolve(arguments[1]) else {
            return Err(self.wrong("arg/3", arguments[1], "a compound"));
        };
        let Term::Int(number) = self.heap.resolve(arguments[0]) else {
            return Err(self.wrong("arg/3", arguments[0], "a whole number"));
        };
        let argument = usize::try_from(number - 1).ok().and_then(|idx| self.heap.arguments(at).nth(idx));
        Ok(argument.is_some_and(|argument| self.unify(arguments[2], argument)))
    }

    fn univ(&mut self, arguments: &[Term]) -> Result<bool, Error> {
        let list = match self.heap.resolve(arguments[0]) {
            Term::Compound(at) => {
                let (name, _) = self.heap.functor(at);
                let parts: Vec<_> =
                    std::iter::once(Term::Atom(name)).chain(self.heap.arguments(at)).collect();
                self.heap.list(parts.into_iter(), Term::Atom(Atom::NIL))
            }
            Term::Var(_) => {
                let parts = self.list(arguments[1], "=../2")?;
                let built = match parts.split_first() {
                    Some((name, [])) => *name,
                    Some((name, parts)) => match self.heap.resolve(*name) {
                        Term::Atom(name) => self.heap.compound(name, parts),
                        found => return Err(self.wrong("=../2", found, "an atom")),
                    },
                    None => return Err(self.wrong("=../2", arguments[1], "a list with an element")),
                };
                return Ok(self.unify(arguments[0], built));
            }
            constant => self.heap.list([constant].into_iter(), Term::Atom(Atom::NIL)),
        };
        Ok(self.unify(arguments[1], list))
    }

    /// A term like another, with new variables.
    fn copy(&mut self, term: Term) -> Result<Term, Error> {
        let saved = self.save(&[term], 0)?;
        Ok(self.load_saved(&saved)[0])
    }

    /// Terms as cells of their own, beside `more` words that are to be there as well.
    fn save(&self, terms: &[Term], more: usize) -> Result<Vec<Term>, Error> {
        let mut cells = vec![Term::Int(terms.len() as i64)];
        cells.extend_from_slice(terms);
        let mut variables: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut at = 1;
        while at < cells.len() {
            if !matches!(cells[at], Term::Functor(..)) {
                cells[at] = match self.heap.resolve(cells[at]) {
                    Term::Var(cell) => Term::Var(*variables.entry(cell).or_insert(super::index(at))),
                    Term::Compound(from) => {
                        self.check_words(more + cells.len())?;
                        let to = super::index(cells.len());
                        cells.push(self.heap.cells[from as usize]);
                        cells.extend(self.heap.arguments(from));
                        Term::Compound(to)
                    }
                    constant => constant,
                };
            }
            at += 1;
        }
        self.heap.walk(cells.len());
        Ok(cells)
    }

    fn load_saved(&mut self, cells: &[Term]) -> Vec<Term> {
        let base = self.heap.top();
        let Some(Term::Int(count)) = cells.first() else { return Vec::new() };
        self.heap.cells.extend(cells.iter().map(|cell| match cell {
            Term::Var(at) => Term::Var(base + at),
            Term::Compound(at) => Term::Compound(base + at),
            cell => *cell,
        }));
        (1..=usize::try_from(*count).unwrap_or_default())
            .map(|idx| self.heap.cells[base as usize + idx])
            .collect()
    }

    /// `findall/3`: the copies of a term for all answers of a goal.
    fn find_all(&mut self, code: &Code, arguments: &[Term]) -> Result<bool, Error> {
        let mut found = Vec::new();
        let mut words = 0;
        self.answers(code, arguments[1], |machine| {
            let saved = machine.save(&arguments[..1], words)?;
            words += saved.len();
            found.push(saved);
            machine.check_words(words)
        })?;
        let elements: Vec<_> = found.iter().map(|saved| self.load_saved(saved)[0]).collect();
        let list = self.heap.list(elements.into_iter(), Term::Atom(Atom::NIL));
        Ok(self.unify(arguments[2], list))
    }

    /// Calls `each` at every answer of a goal, and undoes all of them.
    fn answers(
        &mut self,
        code: &Code,
        goal: Term,
        mut each: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.nesting == super::NESTING_MAX {
            return Err(Error::Nesting(super::NESTING_MAX));
        }
        let (frame, next) = (self.frame, self.at);
        let (count, top) = (self.choices.len(), self.top(self.frame));
        let (undo, cells) = (self.undo.len(), self.heap.cells.len());
        let alternative = super::Alternative::End;
        let cause = Causes::NONE;
        self.choices.push(super::Choice { alternative, undo, cells, top, frame, next, cause });
        self.nesting += 1;
        self.arguments.clear();
        self.arguments.push(goal);
        let mut has_answer = self.call_term(code, frame, Code::STOP)? || self.fail(code)?;
        while has_answer {
            if !self.woken.is_empty() {
                self.wake_up()?;
            }
            if !self.go_on(code, count + 1)? {
                break;
            }
            each(self)?;
            has_answer = self.fail(code)?;
        }
        self.nesting -= 1;
        self.undo_to_choice();
        self.cut(count);
        (self.frame, self.at) = (frame, next);
        Ok(())
    }

    /// `$free/3`: of `Template^Goal` the variables that no `^` binds, and the goal without them.
    fn free(&mut self, arguments: &[Term]) -> bool {
        let Some((_, 2, at)) = self.heap.callable(arguments[0]) else { return false };
        let (template, mut goal) = (self.heap.argument(at, 0), self.heap.argument(at, 1));
        let mut bound = HashSet::default();
        self.heap.variables(template, &mut |cell| _ = bound.insert(cell));
        while let Term::Compound(at) = goal
            && self.heap.functor(at) == (Atom::CARET, 2)
        {
            let (variables, inner) = (self.heap.argument(at, 0), self.heap.argument(at, 1));
            self.heap.variables(variables, &mut |cell| _ = bound.insert(cell));
            goal = inner;
        }
        let free = self.distinct(goal, &bound);
        let free = self.heap.list(free.into_iter(), Term::Atom(Atom::NIL));
        self.unify(arguments[1], free) && self.unify(arguments[2], goal)
    }

    /// The variables of a term, each once, but for some.
    fn distinct(&self, term: Term, but: &HashSet<u32, RandomState>) -> Vec<Term> {
        let (mut found, mut known) = (Vec::new(), but.clone());
        self.heap.variables(term, &mut |cell| {
            if known.insert(cell) {
                found.push(Term::Var(cell));
            }
        });
        found
    }

    fn text_of(&self, term: Term, what: &'static str) -> Result<String, Error> {
        match self.heap.resolve(term) {
            Term::Atom(name) => Ok(self.atoms.name(name).to_owned()),
            number @ (Term::Int(_) | Term::Float(_)) => Ok(self.text(number)),
            found => Err(self.wrong(what, found, "an atom or a number")),
        }
    }

    /// A term as text, with variables by numbers in the order in which they come.
    pub(super) fn text(&self, term: Term) -> String {
        self.text_numbered(term, &RefCell::default())
    }

    /// A term as text, with variables by the order in which they came in this and in those before.
    pub(crate) fn text_numbered(&self, term: Term, known: &RefCell<Vec<u32>>) -> String {
        self.text_with(term, &|cell| {
            let mut known = known.borrow_mut();
            let number = known.iter().position(|other| *other == cell).unwrap_or_else(|| {
                known.push(cell);
                known.len() - 1
            });
            format!("_{}", number + 1)
        })
    }

    /// A term as text, with names of variables.
    pub(crate) fn text_with(&self, term: Term, variables: &dyn Fn(u32) -> String) -> String {
        let (heap, atoms, operators) = (&self.heap, &self.atoms, &self.program.operators);
        let mut writer = Writer { heap, atoms, operators, variables, text: String::new(), depth: 0 };
        writer.term(term, 1200);
        writer.text
    }
}
