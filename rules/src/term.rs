//! Atoms and terms.

use std::sync::Arc;

use foldhash::fast::RandomState;

/// The number of an atom in a table of atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Atom(pub(crate) u32);

macro_rules! atoms {
    ($($name:ident = $text:literal,)*) => {
        /// Atoms that every table has, by their names here.
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "names of a table, not of types")]
        enum Known { $($name,)* }
        impl Atom {
            $(pub(crate) const $name: Self = Self(Known::$name as u32);)*
            const KNOWN: &[&str] = &[$($text,)*];
        }
    };
}

atoms! {
    NIL = "[]", DOT = "[|]", COMMA = ",", SEMICOLON = ";", ARROW = "->", SOFT_ARROW = "*->", NOT = "\\+",
    CLAUSE = ":-", QUERY = "?-", TRUE = "true", FAIL = "fail", FALSE = "false", CUT = "!", UNIFY = "=", IS = "is",
    PROPAGATE = "==>", SIMPLIFY = "<=>", KEPT = "\\", NAME = "@", PRAGMA = "pragma", PASSIVE = "passive", ID = "#", BAR = "|",
    CURLY = "{}", MINUS = "-", CARET = "^", CALL = "call", COLON = ":", OP = "op", CHR_CONSTRAINT = "chr_constraint",
    CONSTRAINTS = "constraints", SLASH = "/", ONCE = "once",

}

/// Atoms by number, and numbers by atom. A clone shares them until one of both gets a new one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Atoms {
    table: Arc<Table>,
}

#[derive(Clone, Debug)]
struct Table {
    names: Vec<Arc<str>>,
    /// About how many words of 16 bytes they take.
    words: usize,
    numbers: hashbrown::HashMap<Arc<str>, Atom, RandomState>,
}

impl Default for Table {
    fn default() -> Self {
        let mut table = Self { names: Vec::new(), words: 0, numbers: hashbrown::HashMap::default() };
        for name in Atom::KNOWN {
            table.add(name);
        }
        table
    }
}

impl Table {
    fn add(&mut self, name: &str) -> Atom {
        let atom = Atom(u32::try_from(self.names.len()).expect("a program has fewer than 2^32 atoms"));
        let name: Arc<str> = name.into();
        self.words += 1 + name.len() / 16;
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, atom);
        atom
    }
}

impl Atoms {
    pub(crate) fn intern(&mut self, name: &str) -> Atom {
        match self.find(name) {
            Some(atom) => atom,
            None => Arc::make_mut(&mut self.table).add(name),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Atom> {
        self.table.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, atom: Atom) -> &str {
        &self.table.names[atom.0 as usize]
    }

    /// The text of an atom, shared.
    pub(crate) fn text(&self, atom: Atom) -> Arc<str> {
        Arc::clone(&self.table.names[atom.0 as usize])
    }

    pub(crate) fn count(&self) -> usize {
        self.table.names.len()
    }

    /// About how many words of 16 bytes they take.
    pub(crate) fn words(&self) -> usize {
        self.table.words
    }
}

/// A term, or a cell of the heap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Term {
    /// The cell of that number. A cell that is itself is a variable without value.
    Var(u32),
    /// Only as a cell: a variable without value that stored constraints wait for, by the number of their list.
    Watched(u32),
    Int(i64),
    Float(f64),
    Atom(Atom),
    /// The functor is in the cell of that number, and the arguments are behind it.
    Compound(u32),
    /// Only as a cell: name and arity of a compound.
    Functor(Atom, u32),
    /// Only in frames: how many words it has, and the cause of what is done in it.
    Frame(u32, u32),
    /// Only in frames: a constraint, by its kind and its slot.
    Suspension(u32, u32),
    /// Only in frames: the next constraint of an index, by its kind and its slot.
    Next(u32, u32),
    /// Only in frames: a list of those that wait for a variable, and how many of it are left.
    Waiting(u32, u32),
}
