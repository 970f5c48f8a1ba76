#pragma once
// What the kernels of checks share: records, and leaves. `src/checks.rs` has the records, field by field.

#include <math.h>

#include "launch.cuh"

#ifdef __CUDACC__
#define CONSTANT const __grid_constant__
// Each result is rounded by itself, as on the processor: nothing is fused.
#define ADD(a, b) __dadd_rn(a, b)
#define MUL(a, b) __dmul_rn(a, b)
#define DIV(a, b) __ddiv_rn(a, b)
#define SQRT(a) __dsqrt_rn(a)
#else
#define CONSTANT const
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define SQRT(a) sqrt(a)
#endif

/// Most nodes of a c-unit, instructions of its leaves, and variables around it.
constexpr uint32_t NODES = 64;
constexpr uint32_t CODE = 256;
constexpr uint32_t DEPTH = 16;
/// Most values and truths that a leaf has on its stacks.
constexpr uint32_t STACK = 8;

/// No node, no event.
constexpr uint32_t ABSENT = 0xffffffffu;

/// Kinds of nodes.
constexpr uint32_t LEAF = 0;
constexpr uint32_t FORALL = 1;
constexpr uint32_t EXISTS = 2;
constexpr uint32_t AND = 3;
constexpr uint32_t OR = 4;
constexpr uint32_t IMPLIES = 5;
constexpr uint32_t NOT = 6;

/// A node of a formula. Children of connectives are a list; those of quantifiers are c-units of their own.
struct ChecksNode {
  uint32_t kind;
  /// Its first child in the unit; of a leaf the first of its instructions, of a quantifier its set.
  uint32_t first;
  /// The next of its parent's children.
  uint32_t next;
  /// Of a quantifier.
  uint32_t variable;
  /// Instructions of a leaf, events that a quantifier goes through.
  uint32_t count;
  /// Where the copies of a quantifier's unit are: from this copy's root, and apart from each other.
  uint32_t origin;
  uint32_t stride;
};
static_assert(sizeof(ChecksNode) == 28, "shared with Rust");

/// An instruction of a leaf. The first group pushes a value, the second turns values into values, the third into a truth.
constexpr uint32_t PUSH_CELL = 0;
constexpr uint32_t PUSH_NUMBER = 1;
constexpr uint32_t PUSH_TEXT = 2;
constexpr uint32_t PUSH_BOOL = 3;
constexpr uint32_t PUSH_ARRAY = 4;
constexpr uint32_t PUSH_DISTANCE = 5;
constexpr uint32_t PUSH_ELAPSED = 6;
constexpr uint32_t PUSH_SPEED = 7;
constexpr uint32_t NEGATE = 8;
constexpr uint32_t ABSOLUTE = 9;
/// Seven operators follow, in this order: + - * / % div ^.
constexpr uint32_t ARITHMETIC = 10;
constexpr uint32_t PUSH_NOTHING = 18;
/// Six comparisons follow, in this order: = <> < <= > >=.
constexpr uint32_t COMPARE = 20;
constexpr uint32_t BETWEEN = 26;
constexpr uint32_t TRUTH_CELL = 27;
constexpr uint32_t TRUTH_CONSTANT = 28;
constexpr uint32_t SAME = 29;
constexpr uint32_t TRUTH_NOT = 30;
constexpr uint32_t TRUTH_AND = 31;
constexpr uint32_t TRUTH_OR = 32;

struct ChecksCode {
  uint32_t op;
  /// Depths of variables, a column, or how many.
  uint16_t a, b;
  double number;
};
static_assert(sizeof(ChecksCode) == 16, "shared with Rust");

/// A c-unit (GAIN, section 4.1) as a kernel gets it, in constant memory: kernels' parameters are there.
struct ChecksUnit {
  ChecksNode nodes[NODES];
  ChecksCode code[CODE];
  /// Of each variable around the unit: its set, events in it, and what a branch adds to the place of a copy's root.
  uint32_t set[DEPTH];
  uint32_t count[DEPTH];
  uint32_t stride[DEPTH];
  uint32_t depth;
  uint32_t nodes_count;
  /// Where the root of the first copy is.
  uint32_t origin;
  uint32_t copies;
  /// Truth of the root for which the quantifier above looks at its links; 2 at the top, which looks at false.
  uint32_t blamed;
  /// Nodes that this launch is about: all of them, or one (granularity).
  uint32_t begin;
  uint32_t end;
  /// Its place among the units.
  uint32_t number;
};
static_assert(sizeof(ChecksUnit) == 64 * 28 + 256 * 16 + 3 * 64 + 32, "shared with Rust");

/// How all launches of an evaluation see the device's memory.
struct ChecksLayout {
  uint32_t columns;
  /// Slots of a set.
  uint32_t capacity;
  uint32_t variables;
  /// 1 on the globe.
  uint32_t geodetic;
  /// Threads that work at one copy together: 1, or a warp.
  uint32_t together;
  /// 1 where truths of children are kept in registers.
  uint32_t buffering;
  /// 1 where doubts were decided.
  uint32_t decided;
  uint32_t doubts_max;
  uint32_t links_max;
  /// Links that the store has room for.
  uint32_t room;
};
static_assert(sizeof(ChecksLayout) == 40, "shared with Rust");

struct ChecksEvent {
  /// Its place in space and by coordinates.
  double point[3];
  double x, y;
  /// Milliseconds; the least number where differences may not fit.
  int64_t time;
};
static_assert(sizeof(ChecksEvent) == 48, "shared with Rust");

/// Kinds of values. Of an array nothing is known but that it is no number; of DOUBTFUL nothing.
constexpr uint32_t NOTHING = 0;
constexpr uint32_t NUMBER = 1;
constexpr uint32_t TEXT = 2;
constexpr uint32_t BOOL = 3;
constexpr uint32_t ARRAY = 4;
constexpr uint32_t DOUBTFUL = 5;

/// What a part of a leaf over one variable is for an event: a value, or in `kind` the truths that it may have.
struct ChecksCell {
  double value;
  uint32_t kind;
  uint32_t unused;
};
static_assert(sizeof(ChecksCell) == 16, "shared with Rust");

struct ChecksChange {
  uint32_t set;
  uint32_t at;
  uint32_t slot;
};
static_assert(sizeof(ChecksChange) == 12, "shared with Rust");

/// A leaf of a copy that the device cannot decide.
struct ChecksDoubt {
  uint32_t unit;
  uint32_t node;
  uint32_t copy;
};
static_assert(sizeof(ChecksDoubt) == 12, "shared with Rust");

struct ChecksDecision {
  uint32_t at;
  uint32_t truth;
};
static_assert(sizeof(ChecksDecision) == 8, "shared with Rust");

/// Links of a node: the first, and how many.
struct ChecksIndex {
  uint32_t begin;
  uint32_t length;
};
static_assert(sizeof(ChecksIndex) == 8, "shared with Rust");

/// Bits of a truth in memory.
constexpr uint32_t HOLDS = 1;
constexpr uint32_t DECIDED = 2;

/// Words that an evaluation counts in.
constexpr uint32_t HEAD_DOUBTS = 0;
constexpr uint32_t HEAD_LINKS = 1;
constexpr uint32_t HEAD_OVERFLOW = 2;
constexpr uint32_t HEAD_ROOT = 3;
constexpr uint32_t HEAD_BEGIN = 4;
constexpr uint32_t HEAD_LENGTH = 5;

// ---- Leaves ---------------------------------------------------------------------------------------------------

/// A value that is known to an error. Without one it is what the processor has, bit by bit.
struct Value {
  double value;
  double error;
  uint32_t kind;
};

INLINE Value value_of(double value, double error) {
  const bool is_finite = fabs(value) <= 1.7976931348623157e308;
  // Where an error could decide whether there is a result at all.
  if (error > 0.0 && !(fabs(value) < 1e300 && error < 1e300)) return {0.0, 0.0, DOUBTFUL};
  return {value, error, is_finite ? NUMBER : NOTHING};
}

/// Truths that something may have, a bit each.
constexpr uint32_t MAY_HOLD = 1;
constexpr uint32_t MAY_FAIL = 2;
constexpr uint32_t MAY_BE_UNKNOWN = 4;
constexpr uint32_t MAY_BE_ANY = 7;

INLINE uint32_t truth_not(uint32_t a) { return (a & 1) << 1 | (a >> 1 & 1) | (a & MAY_BE_UNKNOWN); }

/// Kleene's conjunction, of any truths that the two may have.
INLINE uint32_t truth_and(uint32_t a, uint32_t b) {
  const uint32_t holds = a & b & MAY_HOLD;
  const uint32_t fails = (a | b) & MAY_FAIL;
  const bool unknown = (a & MAY_BE_UNKNOWN && b & (MAY_BE_UNKNOWN | MAY_HOLD)) ||
                       (b & MAY_BE_UNKNOWN && a & (MAY_BE_UNKNOWN | MAY_HOLD));
  return holds | fails | (unknown ? MAY_BE_UNKNOWN : 0);
}

INLINE uint32_t accepts(uint32_t comparison, bool less, bool equal) {
  const bool greater = !less && !equal;
  const bool holds = comparison == 0   ? equal
                     : comparison == 1 ? !equal
                     : comparison == 2 ? less
                     : comparison == 3 ? less || equal
                     : comparison == 4 ? greater
                                       : greater || equal;
  return holds ? MAY_HOLD : MAY_FAIL;
}

/// Truths that a comparison may have.
INLINE uint32_t compare(uint32_t comparison, const Value& a, const Value& b) {
  if (a.kind == NOTHING || b.kind == NOTHING) return MAY_BE_UNKNOWN;
  if (a.kind >= ARRAY || b.kind >= ARRAY) return MAY_BE_ANY;
  if (a.kind != b.kind) return MAY_BE_UNKNOWN;
  if (a.kind == TEXT) {
    // Numbers of texts say which are equal, not which comes first.
    if (comparison > 1 && a.value != b.value) return MAY_HOLD | MAY_FAIL;
    return accepts(comparison, false, a.value == b.value);
  }
  const double error = a.error + b.error;
  // The difference and the sum of errors are rounded themselves.
  if (error > 0.0 && !(fabs(a.value - b.value) > 1.001 * error)) return MAY_HOLD | MAY_FAIL;
  return accepts(comparison, a.value < b.value, a.value == b.value);
}

INLINE Value arithmetic(uint32_t operation, const Value& a, const Value& b) {
  const bool is_number = (a.kind == NUMBER || a.kind == DOUBTFUL) && (b.kind == NUMBER || b.kind == DOUBTFUL);
  if (!is_number) return {0.0, 0.0, NOTHING};
  const double error = a.error + b.error;
  if (a.kind == DOUBTFUL || b.kind == DOUBTFUL || (error > 0.0 && operation > 1)) return {0.0, 0.0, DOUBTFUL};
  double result = 0.0;
  switch (operation) {
    case 0: result = ADD(a.value, b.value); break;
    case 1: result = ADD(a.value, -b.value); break;
    case 2: result = MUL(a.value, b.value); break;
    case 3: result = DIV(a.value, b.value); break;
    case 4: result = fmod(a.value, b.value); break;
    case 5: result = trunc(DIV(a.value, b.value)); break;
    // Libraries differ in the last places.
    default: result = pow(a.value, b.value); return value_of(result, fabs(result) * 1e-14 + 1e-300);
  }
  return value_of(result, error > 0.0 ? error * 1.001 + fabs(result) * 1e-15 : 0.0);
}

/// In metres. In the plane it is exact; on the globe the processor's is another formula, and the two differ by less than the error:
/// 2e-14 of a radius as a chord (`CHORD_ERROR` in matcher/src/geo.rs), stretched at most sevenfold below an angle of 0.9 pi.
INLINE Value distance(const ChecksEvent& a, const ChecksEvent& b, bool geodetic) {
  if (!geodetic) {
    const double dx = ADD(b.x, -a.x), dy = ADD(b.y, -a.y);
    return value_of(SQRT(ADD(MUL(dx, dx), MUL(dy, dy))), 0.0);
  }
  if (a.x == b.x && a.y == b.y) return {0.0, 0.0, NUMBER};
  const double dx = a.point[0] - b.point[0], dy = a.point[1] - b.point[1], dz = a.point[2] - b.point[2];
  const double half = sqrt(dx * dx + dy * dy + dz * dz) / 2.0;
  if (!(half < 0.98)) return {0.0, 0.0, DOUBTFUL};
  const double metres = 2.0 * 6371008.8 * asin(half);
  return {metres, 1e-6 + metres * 1e-14, NUMBER};
}

/// In seconds.
INLINE Value elapsed(const ChecksEvent& from, const ChecksEvent& to) {
  if (from.time == INT64_MIN || to.time == INT64_MIN) return {0.0, 0.0, DOUBTFUL};
  return {DIV(double(to.time - from.time), 1000.0), 0.0, NUMBER};
}

INLINE Value speed(const ChecksEvent& a, const ChecksEvent& b, bool geodetic) {
  const Value seconds = elapsed(a, b);
  const Value metres = distance(a, b, geodetic);
  if (seconds.kind == NUMBER && seconds.value == 0.0) return {0.0, 0.0, NOTHING};
  if (seconds.kind != NUMBER || metres.kind != NUMBER) return {0.0, 0.0, DOUBTFUL};
  const double divisor = fabs(seconds.value);
  const double result = DIV(metres.value, divisor);
  return value_of(result, metres.error > 0.0 ? metres.error / divisor * 1.001 + result * 1e-15 : 0.0);
}

/// Truths that a leaf may have for the events of a copy.
INLINE uint32_t leaf_truth(const ChecksCode* code, uint32_t count, const uint32_t* slots, const ChecksEvent* events,
                           const ChecksCell* cells, const ChecksLayout& layout) {
  Value values[STACK];
  uint32_t truths[STACK];
  uint32_t value = 0, truth = 0;
  for (uint32_t step = 0; step < count; step++) {
    const uint32_t op = code[step].op, a = code[step].a, b = code[step].b;
    switch (op) {
      case PUSH_CELL:
      case TRUTH_CELL: {
        const ChecksCell& cell = cells[size_t{slots[a]} * layout.columns + b];
        if (op == PUSH_CELL) {
          values[value++] = {cell.value, 0.0, cell.kind};
        } else {
          truths[truth++] = cell.kind;
        }
        break;
      }
      case PUSH_NUMBER: values[value++] = {code[step].number, 0.0, NUMBER}; break;
      case PUSH_TEXT: values[value++] = {code[step].number, 0.0, TEXT}; break;
      case PUSH_BOOL: values[value++] = {code[step].number, 0.0, BOOL}; break;
      case PUSH_ARRAY: values[value++] = {0.0, 0.0, ARRAY}; break;
      case PUSH_NOTHING: values[value++] = {0.0, 0.0, NOTHING}; break;
      case PUSH_DISTANCE: values[value++] = distance(events[slots[a]], events[slots[b]], layout.geodetic); break;
      case PUSH_ELAPSED: values[value++] = elapsed(events[slots[a]], events[slots[b]]); break;
      case PUSH_SPEED: values[value++] = speed(events[slots[a]], events[slots[b]], layout.geodetic); break;
      case NEGATE:
      case ABSOLUTE: {
        Value& top = values[value - 1];
        if (top.kind != NUMBER && top.kind != DOUBTFUL) top.kind = NOTHING;
        top.value = op == NEGATE ? -top.value : fabs(top.value);
        break;
      }
      case BETWEEN: {
        value -= 3;
        const Value &middle = values[value], &low = values[value + 1], &high = values[value + 2];
        const uint32_t above = compare(5, middle, low), below = compare(3, middle, high);
        const bool unknown = above == MAY_BE_UNKNOWN || below == MAY_BE_UNKNOWN;
        truths[truth++] = unknown ? MAY_BE_UNKNOWN : truth_and(above, below) | ((above | below) & MAY_BE_UNKNOWN);
        break;
      }
      case TRUTH_CONSTANT: truths[truth++] = a; break;
      case SAME: truths[truth++] = slots[a] == slots[b] ? MAY_HOLD : MAY_FAIL; break;
      case TRUTH_NOT: truths[truth - 1] = truth_not(truths[truth - 1]); break;
      case TRUTH_AND:
        truth--;
        truths[truth - 1] = truth_and(truths[truth - 1], truths[truth]);
        break;
      case TRUTH_OR:
        truth--;
        truths[truth - 1] = truth_not(truth_and(truth_not(truths[truth - 1]), truth_not(truths[truth])));
        break;
      default:
        value--;
        if (op < COMPARE) {
          values[value - 1] = arithmetic(op - ARITHMETIC, values[value - 1], values[value]);
        } else {
          value--;
          truths[truth++] = compare(op - COMPARE, values[value], values[value + 1]);
        }
    }
  }
  return truths[0];
}
