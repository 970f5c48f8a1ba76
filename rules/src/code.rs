//! What programs are compiled to.

use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::machine::Builtin;
use crate::term::{Atom, Term};

/// How an argument is made from a frame, or matched into one.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Const(Term),
    /// The slot has a value.
    Slot(u32),
    /// The slot has none before.
    New(u32),
    /// Anything.
    Void,
    Compound(Atom, Box<[Self]>),
    List(Box<[Self]>, Box<Self>),
}

/// An arithmetic expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Value(Term),
    Slot(u32),
    Unary(Unary, Box<Self>),
    Binary(Binary, Box<[Self; 2]>),
    /// Metres between two places: longitude and latitude of each.
    Distance(Box<[Self; 4]>),
    /// One that is none: an error where it is evaluated.
    Unknown(Atom, usize),
}

macro_rules! functions {
    ($(#[$meta:meta])* $name:ident: $($variant:ident = $text:literal),* $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant,)* }
        impl $name {
            pub(crate) fn of(name: &str) -> Option<Self> {
                Some(match name { $($text => Self::$variant,)* _ => return None })
            }
        }
    };
}

functions! {
    /// Functions of one number.
    Unary: Minus = "-", Plus = "+", Not = "\\", Abs = "abs", Sign = "sign", Sqrt = "sqrt", Sin = "sin", Cos = "cos", Tan = "tan",
    Asin = "asin", Acos = "acos", Atan = "atan", Exp = "exp", Log = "log", Log2 = "log2", Float = "float", Integer = "integer",
    Truncate = "truncate", Floor = "floor", Ceiling = "ceiling", Round = "round", Msb = "msb", FractionalPart = "float_fractional_part",
    IntegerPart = "float_integer_part", Succ = "succ",
}

functions! {
    /// Functions of two numbers.
    Binary: Add = "+", Subtract = "-", Multiply = "*", Divide = "/", IntDivide = "//", Div = "div", Mod = "mod", Rem = "rem",
    Min = "min", Max = "max", Power = "**", IntPower = "^", ShiftLeft = "<<", ShiftRight = ">>", And = "/\\", Or = "\\/", Xor = "xor",
    Atan2 = "atan2", Atan = "atan", Gcd = "gcd", CopySign = "copysign",
}

functions! {
    /// Comparisons of numbers.
    Comparison: Less = "<", Greater = ">", LessOrEqual = "=<", GreaterOrEqual = ">=", Equal = "=:=", NotEqual = "=\\=",
}

/// What a guard asks without calling anything.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Compare(Comparison, Expr, Expr),
    Is(Arg, Expr),
    Unify(Arg, Arg),
    Builtin(Builtin, Box<[Arg]>),
    /// All of each that are in one row.
    Any(Box<[Box<[Self]>]>),
    None(Box<[Self]>),
    Fail,
    /// The code there, once.
    Call(u32),
}

/// One instruction. Frames, slots and code are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    Call {
        predicate: u32,
        arguments: Box<[Arg]>,
        is_last: bool,
    },
    Add {
        kind: u32,
        arguments: Box<[Arg]>,
        is_last: bool,
    },
    /// Calls a term with further arguments.
    CallTerm {
        arguments: Box<[Arg]>,
        is_last: bool,
    },
    Builtin(Builtin, Box<[Arg]>),
    Unify(Arg, Arg),
    Is(Arg, Expr),
    Compare(Comparison, Expr, Expr),
    Fresh(u32),
    /// Remembers in a slot which choices there are.
    Mark(u32),
    /// Drops the choices since then.
    Cut(u32),
    /// Makes the last choice since then one that fails.
    SoftCut(u32),
    Try(u32),
    Jump(u32),
    Fail,
    Proceed,
    /// Goes on with the occurrence in whose frame the body ran.
    Resume,
    /// Goes on with the next suspension of a frame of those that were woken.
    Wake,
    /// Ends a run with success.
    Stop,
    Undefined(Atom, usize),
}

/// A clause of a predicate.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) head: Box<[Arg]>,
    /// What the first argument has to be, where it is no variable.
    pub(crate) first: Option<Key>,
    pub(crate) slots: u32,
    /// Its body; none where it has none.
    pub(crate) body: Option<u32>,
}

/// What a first argument is at its top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Key {
    Constant(Term),
    Functor(Atom, usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    pub(crate) clauses: Vec<Clause>,
}

/// A kind of constraints.
#[derive(Clone, Debug)]
pub(crate) struct ConstraintKind {
    pub(crate) name: Atom,
    pub(crate) arity: usize,
    /// Its occurrences in rules, in the order in which they are tried.
    pub(crate) occurrences: Vec<u32>,
    /// Arguments by which constraints are looked up, as bits. The first index is the list of all, where one is needed.
    pub(crate) indexes: Vec<u64>,
}

/// An occurrence of a constraint in a rule, and how the other heads are found.
#[derive(Clone, Debug)]
pub(crate) struct Occurrence {
    pub(crate) rule: u32,
    pub(crate) pattern: Box<[Arg]>,
    /// Arguments that have to be these constants, looked at before anything else.
    pub(crate) constants: Box<[(usize, Term)]>,
    pub(crate) is_removed: bool,
    pub(crate) tests: Box<[Test]>,
    pub(crate) partners: Box<[Partner]>,
    /// The place of each head of the rule: the active constraint is 0, its partners are counted from 1.
    pub(crate) places: Box<[usize]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Partner {
    pub(crate) kind: u32,
    pub(crate) pattern: Box<[Arg]>,
    pub(crate) is_removed: bool,
    pub(crate) tests: Box<[Test]>,
    /// The index, and the values that it is asked for.
    pub(crate) index: usize,
    pub(crate) key: Box<[Arg]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Its name, or else its number in the program.
    pub(crate) name: Arc<str>,
    pub(crate) slots: u32,
    /// The body where the active constraint is removed; none where no such constraint is ever active.
    pub(crate) body: Option<u32>,
    /// The body where the active constraint is kept, and looks for more behind it.
    pub(crate) body_and_resume: Option<u32>,
    /// Whether the body is another than `true`.
    pub(crate) has_body: bool,
    pub(crate) is_propagation: bool,
    /// Whether the order of constraints tells which combinations were there.
    pub(crate) is_told_by_age: bool,
}

/// What a name with an arity is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Callable {
    Constraint(u32),
    Predicate(u32),
    Builtin(Builtin),
}

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) kinds: Vec<ConstraintKind>,
    pub(crate) predicates: Vec<Predicate>,
    pub(crate) occurrences: Vec<Occurrence>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) callables: hashbrown::HashMap<(Atom, usize), Callable, RandomState>,
}

impl Code {
    /// Instructions that every program has.
    pub(crate) const STOP: u32 = 0;
    pub(crate) const FAIL: u32 = 1;
    pub(crate) const WAKE: u32 = 2;
    pub(crate) const FIXED: [Instruction; 3] = [Instruction::Stop, Instruction::Fail, Instruction::Wake];
}
