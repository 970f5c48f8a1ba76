#pragma once
// Constraint Handling Rules: records and operations. `src/rules.rs` has the same, and says what they mean.

#include "lanes.cuh"

/// Most heads of a rule, variables of a rule, values on the stack, and arguments of a constraint.
constexpr uint32_t RULES_HEADS = 6;
constexpr uint32_t RULES_SLOTS = 32;
constexpr uint32_t RULES_STACK = 16;
constexpr uint32_t RULES_ARITY = 16;
/// Counts that a warp sums up at a time.
constexpr uint32_t RULES_CHUNK = 1024;
/// No constraint, no rule, no index.
constexpr uint32_t NOWHERE = 0xffffffffu;
/// The claim of nobody.
constexpr uint64_t UNCLAIMED = ~uint64_t{0};

/// Types of values.
constexpr uint32_t WHOLE = 0;
constexpr uint32_t FLOAT = 1;
constexpr uint32_t NAME = 2;
/// A distance, known to an error. Only comparisons see it; no constraint has one.
constexpr uint32_t MEASURED = 3;

struct RulesValue {
  uint64_t bits;
  uint32_t type;
  uint32_t unused;
};
static_assert(sizeof(RulesValue) == 16, "shared with Rust");

/// How the next head is found.
struct RulesStep {
  uint32_t kind;
  /// Its place among the heads as they stand in the text.
  uint32_t place;
  /// The index that knows where to look; NOWHERE: everything is looked at.
  uint32_t index;
  /// Operands of the key, from there in `code`.
  uint32_t key;
  uint32_t key_count;
  /// Code that matches its arguments, and tests what can be tested then.
  uint32_t code;
  /// Whether the rule is looked for from this head before the first one.
  uint32_t earlier;
};
static_assert(sizeof(RulesStep) == 28, "shared with Rust");

/// A rule as one of its heads starts it.
struct RulesOccurrence {
  uint32_t rule;
  uint32_t heads;
  /// Heads that are removed, as bits by their places.
  uint32_t removed;
  /// Number among the occurrences of rules that remove nothing, else NOWHERE.
  uint32_t propagation;
  /// Whether candidates are looked at from the active constraint on, and not from the oldest.
  uint32_t rotates;
  /// Code of the body, and how many constraints that adds.
  uint32_t body;
  uint32_t adds;
  /// Whether a match stays the one to fire as long as its heads are there: no rule before has a head of the active one's kind.
  uint32_t stays;
  RulesStep steps[RULES_HEADS];
};
static_assert(sizeof(RulesOccurrence) == 32 + 28 * 6, "shared with Rust");

/// An index of a kind: the arguments that are its key, as bits.
struct RulesIndex {
  uint32_t kind;
  uint32_t mask;
};
static_assert(sizeof(RulesIndex) == 8, "shared with Rust");

/// How all launches see the device's memory.
struct RulesLayout {
  uint32_t occurrences;
  uint32_t propagations;
  uint32_t indexes;
  /// Values of a constraint.
  uint32_t width;
  /// Constraints, proposals and an index's buckets that there is room for; the last is a power of two.
  uint32_t constraints_max;
  uint32_t proposals_max;
  uint32_t buckets;
  uint32_t unused;
};
static_assert(sizeof(RulesLayout) == 32, "shared with Rust");

/// A match that is to fire.
struct RulesProposal {
  uint32_t occurrence;
  /// An error of its guard; 0 where there is none.
  uint32_t error;
  uint64_t priority;
  /// The heads, in the order in which they were found.
  uint32_t heads[RULES_HEADS];
};
static_assert(sizeof(RulesProposal) == 16 + 4 * 6, "shared with Rust");

/// Words that a run counts in.
constexpr uint32_t HEAD_ROUND = 0;
constexpr uint32_t HEAD_STOP = 1;
constexpr uint32_t HEAD_ERROR = 2;
constexpr uint32_t HEAD_STORED = 3;
constexpr uint32_t HEAD_ACTIVE = 4;
constexpr uint32_t HEAD_SURVIVORS = 5;
constexpr uint32_t HEAD_KEPT = 6;
constexpr uint32_t HEAD_FOUND = 7;
constexpr uint32_t HEAD_NEW = 8;
constexpr uint32_t HEAD_SURVIVING = 9;
constexpr uint32_t HEAD_APPLIED = 10;
constexpr uint32_t HEAD_DEAD = 11;
constexpr uint32_t HEAD_NEEDED = 12;

/// The round that a run begins with: an even one, and not that of stamps that are not set.
constexpr uint32_t ROUND_FIRST = 2;

/// Why a run stops.
constexpr uint32_t RUNS = 0;
constexpr uint32_t DONE = 1;
constexpr uint32_t NO_PROPOSALS = 2;
constexpr uint32_t NO_CONSTRAINTS = 3;
constexpr uint32_t FAILED = 4;
constexpr uint32_t ERROR = 5;

/// Errors.
constexpr uint32_t NO_ERROR = 0;
constexpr uint32_t TOO_WIDE = 1;
constexpr uint32_t BY_ZERO = 2;
constexpr uint32_t UNDEFINED = 3;
constexpr uint32_t TOO_LARGE = 4;
constexpr uint32_t NOT_A_NUMBER = 5;
constexpr uint32_t NOT_WHOLE = 6;
/// A distance is too near to what it is compared with.
constexpr uint32_t TOO_NEAR = 7;

/// Operations: the lowest eight bits of an instruction; operands are in the others, `a` of 8 and `b` of 16 bits.
constexpr uint32_t YES = 0;
constexpr uint32_t NO = 1;
constexpr uint32_t MATCH_CONSTANT = 2;
constexpr uint32_t MATCH_SLOT = 3;
constexpr uint32_t BIND = 4;
constexpr uint32_t PUSH_CONSTANT = 5;
constexpr uint32_t PUSH_SLOT = 6;
constexpr uint32_t STORE = 7;
constexpr uint32_t UNARY = 8;
constexpr uint32_t BINARY = 9;
constexpr uint32_t COMPARE = 10;
constexpr uint32_t SAME = 11;
constexpr uint32_t JUMP = 12;
constexpr uint32_t JUMP_UNLESS = 13;
constexpr uint32_t NUMBER = 14;
constexpr uint32_t ADD = 15;
constexpr uint32_t DISTANCE = 16;

/// Functions of one number.
constexpr uint32_t MINUS = 0;
constexpr uint32_t ABS = 1;
constexpr uint32_t SIGN = 2;
constexpr uint32_t SQRT = 3;
constexpr uint32_t TO_FLOAT = 4;
constexpr uint32_t ROUND = 5;
constexpr uint32_t TRUNCATE = 6;
constexpr uint32_t FLOOR = 7;
constexpr uint32_t CEILING = 8;
constexpr uint32_t COMPLEMENT = 9;

/// Functions of two.
constexpr uint32_t PLUS = 0;
constexpr uint32_t SUBTRACT = 1;
constexpr uint32_t MULTIPLY = 2;
constexpr uint32_t DIVIDE = 3;
constexpr uint32_t INT_DIVIDE = 4;
constexpr uint32_t DIV = 5;
constexpr uint32_t MOD = 6;
constexpr uint32_t REM = 7;
constexpr uint32_t MIN = 8;
constexpr uint32_t MAX = 9;
constexpr uint32_t SHIFT_LEFT = 10;
constexpr uint32_t SHIFT_RIGHT = 11;
constexpr uint32_t BIT_AND = 12;
constexpr uint32_t BIT_OR = 13;
constexpr uint32_t BIT_XOR = 14;
