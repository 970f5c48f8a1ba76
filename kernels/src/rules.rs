//! Records and operations of the kernels of rules. `include/rules.cuh` has the same, field by field.

use bytemuck::{Pod, Zeroable};

/// The source of the kernels of rounds, to be compiled with a program of rules: with `COMPILED` defined, and a header `rules_program.cuh` beside those
/// of [`HEADERS`], as `include/rules_compiled.cuh` describes it.
pub const SOURCE: &str = include_str!("kernel_rules.cu");
/// The source of the paper's scheme, to be compiled alike.
pub const LETTER_SOURCE: &str = include_str!("kernel_rules_letter.cu");
/// What the sources include.
pub const HEADERS: [(&str, &str); 6] = [
    ("launch.cuh", include_str!("../include/launch.cuh")),
    ("lanes.cuh", include_str!("../include/lanes.cuh")),
    ("rules.cuh", include_str!("../include/rules.cuh")),
    ("rules_run.cuh", include_str!("../include/rules_run.cuh")),
    ("rules_search.cuh", include_str!("../include/rules_search.cuh")),
    ("rules_compiled.cuh", include_str!("../include/rules_compiled.cuh")),
];
/// What is defined where a source is compiled with a program.
pub const COMPILED: &str = "RULES_COMPILED";
/// Most heads of a rule.
pub const HEADS: usize = 6;
/// Most variables of a rule.
pub const SLOTS: usize = 32;
/// Most values on the stack, and constraints that a body adds.
pub const STACK: usize = 16;
/// Most arguments of a constraint.
pub const ARITY: usize = 16;
/// Counts that a warp sums up at a time.
pub const CHUNK: usize = 1_024;
/// No constraint, no rule, no index.
pub const NOWHERE: u32 = u32::MAX;
/// A whole number.
pub const WHOLE: u32 = 0;
/// A float.
pub const FLOAT: u32 = 1;
/// The number of an atom.
pub const NAME: u32 = 2;
/// A distance, known to an error. Only comparisons see it; no constraint has one.
pub const MEASURED: u32 = 3;
/// The round, from 1.
pub const HEAD_ROUND: usize = 0;
/// Why the run stopped.
pub const HEAD_STOP: usize = 1;
/// The rule and the error, or all ones.
pub const HEAD_ERROR: usize = 2;
/// Constraints, dead ones included.
pub const HEAD_STORED: usize = 3;
/// Constraints that look for matches.
pub const HEAD_ACTIVE: usize = 4;
/// Proposals of the round before.
pub const HEAD_SURVIVORS: usize = 5;
/// Active ones that stay so.
pub const HEAD_KEPT: usize = 6;
/// New matches of rules that remove nothing.
pub const HEAD_FOUND: usize = 7;
/// Constraints that the round adds.
pub const HEAD_NEW: usize = 8;
/// Proposals for the next round.
pub const HEAD_SURVIVING: usize = 9;
/// Rules applied.
pub const HEAD_APPLIED: usize = 10;
/// Constraints removed since the last compaction.
pub const HEAD_DEAD: usize = 11;
/// Room that would do.
pub const HEAD_NEEDED: usize = 12;
/// The round that a run begins with: an even one, and not that of stamps that are not set.
pub const ROUND_FIRST: u32 = 2;
/// Why a run stops: it does not.
pub const RUNS: u32 = 0;
/// Why a run stops: nothing is left to do.
pub const DONE: u32 = 1;
/// Why a run stops: too little room for proposals.
pub const NO_PROPOSALS: u32 = 2;
/// Why a run stops: too little room for constraints.
pub const NO_CONSTRAINTS: u32 = 3;
/// Why a run stops: a body failed.
pub const FAILED: u32 = 4;
/// Why a run stops: an error.
pub const ERROR: u32 = 5;
/// No error.
pub const NO_ERROR: u32 = 0;
/// A whole number is beyond 64 bits.
pub const TOO_WIDE: u32 = 1;
/// A division by zero.
pub const BY_ZERO: u32 = 2;
/// A function has no value there.
pub const UNDEFINED: u32 = 3;
/// A float is too large.
pub const TOO_LARGE: u32 = 4;
/// An atom in an expression.
pub const NOT_A_NUMBER: u32 = 5;
/// A float where a whole number belongs.
pub const NOT_WHOLE: u32 = 6;
/// A distance is too near to what it is compared with.
pub const TOO_NEAR: u32 = 7;
/// Ends with success.
pub const YES: u32 = 0;
/// Ends without.
pub const NO: u32 = 1;
/// Argument `a` has to be constant `b`.
pub const MATCH_CONSTANT: u32 = 2;
/// Argument `a` has to be the value of variable `b`.
pub const MATCH_SLOT: u32 = 3;
/// Variable `b` gets the value of argument `a`.
pub const BIND: u32 = 4;
/// Pushes constant `b`.
pub const PUSH_CONSTANT: u32 = 5;
/// Pushes variable `b`.
pub const PUSH_SLOT: u32 = 6;
/// Pops a value into variable `b`.
pub const STORE: u32 = 7;
/// Applies function `a` to the top.
pub const UNARY: u32 = 8;
/// Applies function `a` to the two on top.
pub const BINARY: u32 = 9;
/// Pops two numbers, and keeps whether comparison `a` holds.
pub const COMPARE: u32 = 10;
/// Pops two values, and keeps whether they are the same (`a` is 1) or not (0).
pub const SAME: u32 = 11;
/// Goes on at `b`.
pub const JUMP: u32 = 12;
/// Goes on at `b` if what was kept last is false.
pub const JUMP_UNLESS: u32 = 13;
/// The top has to be a number.
pub const NUMBER: u32 = 14;
/// Pops `a` arguments, and adds a constraint of kind `b`.
pub const ADD: u32 = 15;
/// Pops four numbers, and pushes the distance between two places.
pub const DISTANCE: u32 = 16;
/// `-`
pub const MINUS: u32 = 0;
/// `abs`
pub const ABS: u32 = 1;
/// `sign`
pub const SIGN: u32 = 2;
/// `sqrt`
pub const SQRT: u32 = 3;
/// `float`
pub const TO_FLOAT: u32 = 4;
/// `round`, `integer`
pub const ROUND: u32 = 5;
/// `truncate`
pub const TRUNCATE: u32 = 6;
/// `floor`
pub const FLOOR: u32 = 7;
/// `ceiling`
pub const CEILING: u32 = 8;
/// `\\`
pub const COMPLEMENT: u32 = 9;
/// `+`
pub const PLUS: u32 = 0;
/// `-`
pub const SUBTRACT: u32 = 1;
/// `*`
pub const MULTIPLY: u32 = 2;
/// `/`
pub const DIVIDE: u32 = 3;
/// `//`
pub const INT_DIVIDE: u32 = 4;
/// `div`
pub const DIV: u32 = 5;
/// `mod`
pub const MOD: u32 = 6;
/// `rem`
pub const REM: u32 = 7;
/// `min`
pub const MIN: u32 = 8;
/// `max`
pub const MAX: u32 = 9;
/// `<<`
pub const SHIFT_LEFT: u32 = 10;
/// `>>`
pub const SHIFT_RIGHT: u32 = 11;
/// `/\\`
pub const BIT_AND: u32 = 12;
/// `\\/`
pub const BIT_OR: u32 = 13;
/// `xor`
pub const BIT_XOR: u32 = 14;
/// Words that a run counts in.
pub const HEAD: usize = 16;
/// The claim of nobody, and no error.
pub const UNCLAIMED: u64 = u64::MAX;

/// A constant.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Value {
    /// A whole number, the bits of a float, or the number of an atom.
    pub bits: u64,
    /// Its type.
    pub kind: u32,
    /// Zero.
    pub unused: u32,
}

/// How the next head is found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Step {
    /// The kind of the constraint.
    pub kind: u32,
    /// Its place among the heads as they stand in the text.
    pub place: u32,
    /// The index that knows where to look; `NOWHERE`: everything is looked at.
    pub index: u32,
    /// Operands of the key, from there in the code.
    pub key: u32,
    /// How many.
    pub key_count: u32,
    /// Code that matches its arguments, and tests what can be tested then.
    pub code: u32,
    /// 1 where the rule is looked for from this head before the first one, else 0.
    pub earlier: u32,
}

/// A rule as one of its heads starts it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Occurrence {
    /// Number of the rule.
    pub rule: u32,
    /// Number of its heads.
    pub heads: u32,
    /// Heads that are removed, as bits by their places.
    pub removed: u32,
    /// Number among the occurrences of rules that remove nothing, else `NOWHERE`.
    pub propagation: u32,
    /// Whether candidates are looked at from the active constraint on, and not from the oldest.
    pub rotates: u32,
    /// Code of the body.
    pub body: u32,
    /// Constraints that it adds.
    pub adds: u32,
    /// 1 where a match stays the one to fire as long as its heads are there: no rule before has a head of the active one's kind; else 0.
    pub stays: u32,
    /// Its heads, in the order in which they are looked for; the first is the active one.
    pub steps: [Step; HEADS],
}

/// An index of a kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Index {
    /// The kind.
    pub kind: u32,
    /// The arguments that are its key, as bits.
    pub mask: u32,
}

/// How all launches see the device's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Layout {
    /// Number of occurrences.
    pub occurrences: u32,
    /// Occurrences of rules that remove nothing.
    pub propagations: u32,
    /// Number of indexes.
    pub indexes: u32,
    /// Values of a constraint.
    pub width: u32,
    /// Constraints that there is room for.
    pub constraints_max: u32,
    /// Proposals that there is room for.
    pub proposals_max: u32,
    /// Buckets of an index, a power of two.
    pub buckets: u32,
    /// Zero.
    pub unused: u32,
}

/// A match that is to fire.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Proposal {
    /// Number of the occurrence, or `NOWHERE`.
    pub occurrence: u32,
    /// An error of its guard.
    pub error: u32,
    /// The lowest is the best.
    pub priority: u64,
    /// The heads, in the order in which they were found.
    pub heads: [u32; HEADS],
}

const _: () = assert!(
    size_of::<Value>() == 16
        && size_of::<Step>() == 28
        && size_of::<Occurrence>() == 32 + 28 * HEADS
        && size_of::<Layout>() == 32
        && size_of::<Proposal>() == 16 + 4 * HEADS
);
