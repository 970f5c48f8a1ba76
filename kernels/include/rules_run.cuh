#pragma once
// Values of rules, and the interpreter of what guards and bodies become.

#include <math.h>

#include "rules.cuh"

#ifdef __CUDACC__
// Each result is rounded by itself, as on the processor.
#define RULES_ADD(a, b) __dadd_rn(a, b)
#define RULES_MUL(a, b) __dmul_rn(a, b)
#define RULES_DIV(a, b) __ddiv_rn(a, b)
#define RULES_SQRT(a) __dsqrt_rn(a)
#define PLAIN __device__ __noinline__
#else
#define RULES_ADD(a, b) ((a) + (b))
#define RULES_MUL(a, b) ((a) * (b))
#define RULES_DIV(a, b) ((a) / (b))
#define RULES_SQRT(a) sqrt(a)
#define PLAIN static
#endif

// ---- Values -----------------------------------------------------------------------------------------------------

struct RulesCell {
  uint64_t bits;
  uint32_t type;
};

INLINE double rules_float(uint64_t bits) {
  union {
    uint64_t bits;
    double number;
  } both;
  both.bits = bits;
  return both.number;
}

INLINE RulesCell rules_of_float(double number) {
  union {
    uint64_t bits;
    double number;
  } both;
  both.number = number;
  return {both.bits, FLOAT};
}

INLINE RulesCell rules_of_whole(int64_t number) { return {static_cast<uint64_t>(number), WHOLE}; }

INLINE double rules_as_float(const RulesCell& cell) {
  return cell.type == WHOLE ? static_cast<double>(static_cast<int64_t>(cell.bits)) : rules_float(cell.bits);
}

INLINE bool rules_same(const RulesCell& a, const RulesCell& b) {
  // Without branches, so that loads of several values do not wait for one another.
  const bool bits = a.bits == b.bits, numbers = rules_float(a.bits) == rules_float(b.bits);
  return (a.type == b.type) & (a.type == FLOAT ? numbers : bits);
}

/// -1, 0, 1; a whole number is rounded to a float where the other one is a float.
INLINE int32_t rules_order(const RulesCell& a, const RulesCell& b) {
  if (a.type == WHOLE && b.type == WHOLE) {
    const int64_t x = static_cast<int64_t>(a.bits), y = static_cast<int64_t>(b.bits);
    return x < y ? -1 : x > y;
  }
  const double x = rules_as_float(a), y = rules_as_float(b);
  return x < y ? -1 : x > y;
}

/// The lesser or the greater one of two numbers of which one is a float; of two that are equal the float, and of two zeros the one with the sign.
INLINE RulesCell rules_extreme(bool is_least, const RulesCell& a, const RulesCell& b) {
  const double x = rules_as_float(a), y = rules_as_float(b);
  const bool is_negative = signbit(x);
  if (x == y && is_negative == static_cast<bool>(signbit(y))) return rules_of_float(x);
  return (x == y ? is_negative : x < y) == is_least ? a : b;
}

INLINE uint32_t rules_finite(double number, RulesCell* result) {
  if (number != number) return UNDEFINED;
  if (!(fabs(number) <= 1.7976931348623157e308)) return TOO_LARGE;
  *result = rules_of_float(number);
  return NO_ERROR;
}

INLINE uint32_t rules_unary(uint32_t function, const RulesCell& a, RulesCell* result) {
  if (a.type == NAME) return NOT_A_NUMBER;
  const bool is_whole = a.type == WHOLE;
  const int64_t whole = static_cast<int64_t>(a.bits);
  const double number = rules_as_float(a);
  switch (function) {
    case MINUS:
      if (is_whole && whole == INT64_MIN) return TOO_WIDE;
      *result = is_whole ? rules_of_whole(-whole) : rules_of_float(-number);
      return NO_ERROR;
    case ABS:
      if (is_whole && whole == INT64_MIN) return TOO_WIDE;
      *result = is_whole ? rules_of_whole(whole < 0 ? -whole : whole) : rules_of_float(fabs(number));
      return NO_ERROR;
    case SIGN:
      if (is_whole) {
        *result = rules_of_whole(whole < 0 ? -1 : whole > 0);
      } else {
        *result = rules_of_float(number == 0.0 ? 0.0 : number < 0.0 ? -1.0 : 1.0);
      }
      return NO_ERROR;
    case SQRT: return rules_finite(RULES_SQRT(number), result);
    case TO_FLOAT: *result = rules_of_float(number); return NO_ERROR;
    case COMPLEMENT:
      if (!is_whole) return NOT_WHOLE;
      *result = rules_of_whole(~whole);
      return NO_ERROR;
    default: {
      if (is_whole) {
        *result = a;
        return NO_ERROR;
      }
      const double rounded = function == ROUND      ? round(number)
                             : function == TRUNCATE ? trunc(number)
                             : function == FLOOR    ? floor(number)
                                                    : ceil(number);
      if (!(rounded >= -9223372036854775808.0 && rounded < 9223372036854775808.0)) return TOO_WIDE;
      *result = rules_of_whole(static_cast<int64_t>(rounded));
      return NO_ERROR;
    }
  }
}

/// Whether a product needs more than 64 bits.
INLINE bool rules_multiply(int64_t x, int64_t y, int64_t* product) {
#ifdef __CUDA_ARCH__
  const int64_t low = static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  *product = low;
  return __mul64hi(x, y) != low >> 63;
#else
  return __builtin_mul_overflow(x, y, product);
#endif
}

INLINE uint32_t rules_whole(uint32_t function, int64_t x, int64_t y, RulesCell* result) {
  const uint64_t ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  int64_t whole = 0;
  switch (function) {
    case PLUS:
      whole = static_cast<int64_t>(ux + uy);
      if (((x ^ whole) & (y ^ whole)) < 0) return TOO_WIDE;
      break;
    case SUBTRACT:
      whole = static_cast<int64_t>(ux - uy);
      if (((x ^ y) & (x ^ whole)) < 0) return TOO_WIDE;
      break;
    case MULTIPLY:
      if (rules_multiply(x, y, &whole)) return TOO_WIDE;
      break;
    case MIN: whole = x < y ? x : y; break;
    case MAX: whole = x > y ? x : y; break;
    case BIT_AND: whole = x & y; break;
    case BIT_OR: whole = x | y; break;
    case BIT_XOR: whole = x ^ y; break;
    case SHIFT_LEFT:
    case SHIFT_RIGHT: {
      // To the right by a negative number.
      const int64_t bits = function == SHIFT_LEFT ? y : y == INT64_MIN ? INT64_MAX : -y;
      if (bits < 0) {
        whole = x >> (bits > -63 ? -bits : 63);
      } else if (x != 0) {
        if (bits > 63) return TOO_WIDE;
        whole = static_cast<int64_t>(ux << bits);
        if (whole >> bits != x) return TOO_WIDE;
      }
      break;
    }
    default: {
      if (y == 0) return BY_ZERO;
      // The quotient is beyond 64 bits, and the remainder is not.
      const bool is_beyond = x == INT64_MIN && y == -1;
      if (is_beyond && function != MOD && function != REM) return TOO_WIDE;
      const int64_t quotient = is_beyond ? 0 : x / y, rest = is_beyond ? 0 : x % y;
      const bool is_below = rest != 0 && (rest < 0) != (y < 0);
      switch (function) {
        case DIVIDE:
          if (rest != 0) return rules_finite(RULES_DIV(static_cast<double>(x), static_cast<double>(y)), result);
          whole = quotient;
          break;
        case INT_DIVIDE: whole = quotient; break;
        case DIV: whole = quotient - is_below; break;
        case MOD: whole = is_below ? rest + y : rest; break;
        default: whole = rest;
      }
    }
  }
  *result = rules_of_whole(whole);
  return NO_ERROR;
}

INLINE uint32_t rules_binary(uint32_t function, const RulesCell& a, const RulesCell& b, RulesCell* result) {
  if (a.type == NAME || b.type == NAME) return NOT_A_NUMBER;
  if (a.type == WHOLE && b.type == WHOLE) {
    return rules_whole(function, static_cast<int64_t>(a.bits), static_cast<int64_t>(b.bits), result);
  }
  const double x = rules_as_float(a), y = rules_as_float(b);
  switch (function) {
    case PLUS: return rules_finite(RULES_ADD(x, y), result);
    case SUBTRACT: return rules_finite(RULES_ADD(x, -y), result);
    case MULTIPLY: return rules_finite(RULES_MUL(x, y), result);
    case DIVIDE: return y != 0.0 ? rules_finite(RULES_DIV(x, y), result) : x == 0.0 ? UNDEFINED : BY_ZERO;
    case MIN:
    case MAX: *result = rules_extreme(function == MIN, a, b); return NO_ERROR;
    default: return NOT_WHOLE;
  }
}

/// How much a distance may differ from the processor's, as a share of it. Both are haversines of the same differences; the sines, cosines and arc
/// sines of two libraries differ by some units in the last place, which become 3e-15 at most: h has two squared sines and a product of
/// cosines, its root halves the error, and the arc sine of at most sqrt(1/2) stretches it by 1.3.
constexpr double RULES_DISTANCE_ERROR = 1e-13;

/// Metres between two places, each longitude and latitude in degrees: a great circle on a sphere, as `distance_m` in matcher/src/geo.rs.
INLINE uint32_t rules_distance(const RulesCell& from_lon, const RulesCell& from_lat, const RulesCell& to_lon,
                               const RulesCell& to_lat, RulesCell* result) {
  if (from_lon.type == NAME || from_lat.type == NAME || to_lon.type == NAME || to_lat.type == NAME) return NOT_A_NUMBER;
  const double x0 = rules_as_float(from_lon), y0 = rules_as_float(from_lat);
  const double x1 = rules_as_float(to_lon), y1 = rules_as_float(to_lat);
  // What is no place is infinitely far.
  if (!(fabs(x0) <= 180.0 && fabs(x1) <= 180.0 && fabs(y0) <= 90.0 && fabs(y1) <= 90.0)) return TOO_LARGE;
  const double pi = 3.14159265358979323846, radius = 6371008.8;
  const double apart = fabs(x1 - x0);
  const double half_lon = RULES_MUL(apart > 180.0 ? 360.0 - apart : apart, pi / 180.0) / 2.0;
  const double half_lat = RULES_MUL(RULES_ADD(y1, -y0), pi / 180.0) / 2.0;
  if (half_lon == 0.0 && half_lat == 0.0) {
    // The same place, of which there is no doubt.
    *result = rules_of_float(0.0);
    return NO_ERROR;
  }
  const double cosine0 = fabs(y0) == 90.0 ? 0.0 : cos(RULES_MUL(y0, pi / 180.0));
  const double cosine1 = fabs(y1) == 90.0 ? 0.0 : cos(RULES_MUL(y1, pi / 180.0));
  const double up = sin(half_lat), aside = sin(half_lon);
  const double h = up * up + cosine0 * cosine1 * (aside * aside);
  double metres;
  if (h <= 0.5) {
    metres = 2.0 * radius * asin(sqrt(h));
  } else {
    const double up_back = sin(RULES_MUL(RULES_ADD(y1, y0), pi / 180.0) / 2.0);
    const double aside_back = sin(RULES_MUL(180.0 - apart, pi / 180.0) / 2.0);
    const double back = up_back * up_back + cosine0 * cosine1 * (aside_back * aside_back);
    metres = radius * (pi - 2.0 * asin(sqrt(back < 0.5 ? back : 0.5)));
  }
  *result = rules_of_float(metres);
  result->type = MEASURED;
  return NO_ERROR;
}

/// Six comparisons, in this order: < > =< >= =:= =\=.
INLINE bool rules_holds(uint32_t comparison, int32_t order) {
  switch (comparison) {
    case 0: return order < 0;
    case 1: return order > 0;
    case 2: return order <= 0;
    case 3: return order >= 0;
    case 4: return order == 0;
    default: return order != 0;
  }
}

/// Compares two numbers; where that is a distance, only if it is far enough from the other that the processor's is on the same side.
INLINE uint32_t rules_compare(uint32_t comparison, const RulesCell& a, const RulesCell& b, bool* truth) {
  if (a.type == NAME || b.type == NAME) return NOT_A_NUMBER;
  if (a.type == MEASURED || b.type == MEASURED) {
    const double x = rules_as_float(a), y = rules_as_float(b);
    const double error = RULES_DISTANCE_ERROR * ((a.type == MEASURED ? x : 0.0) + (b.type == MEASURED ? y : 0.0)) + 1e-100;
    if (!(fabs(x - y) > error)) return TOO_NEAR;
    *truth = rules_holds(comparison, x < y ? -1 : 1);
    return NO_ERROR;
  }
  *truth = rules_holds(comparison, rules_order(a, b));
  return NO_ERROR;
}

// ---- The store --------------------------------------------------------------------------------------------------

/// Kinds [constraints_max], dead ones NOWHERE; values and types [constraints_max * width]; claims [constraints_max];
/// stamps [constraints_max * (propagations + 1)]: the round after which an occurrence was not tried any more, 0 before; the last of a constraint is
/// the round in which it became passive; buckets [indexes * buckets]; nexts [indexes * constraints_max]: chains of constraints, the youngest first.
struct RulesStore {
  uint32_t* kinds;
  uint64_t* values;
  uint8_t* types;
  uint64_t* claims;
  uint32_t* stamps;
  uint32_t* buckets;
  uint32_t* nexts;
};

struct RulesProgram {
  const RulesOccurrence* occurrences;
  const uint32_t* code;
  const RulesValue* constants;
  const RulesIndex* indexes;
};

INLINE uint64_t rules_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

INLINE uint64_t rules_mix_cell(uint64_t hash, const RulesCell& cell) {
  // Both zeros are one.
  const uint64_t bits = cell.type == FLOAT && rules_float(cell.bits) == 0.0 ? 0 : cell.bits;
  return rules_mix(hash, bits + cell.type);
}

/// The bucket, among those of an index, of a key whose last part is `last`. Whole numbers that follow one another have buckets that do, so
/// that lanes with neighbouring keys read neighbouring words.
INLINE uint32_t rules_bucket_of(uint64_t hash, const RulesCell& last, uint32_t buckets) {
  if (last.type == FLOAT) return static_cast<uint32_t>(rules_mix_cell(hash, last) >> 20) & (buckets - 1);
  const uint32_t group = static_cast<uint32_t>(rules_mix(hash, (last.bits >> 5) + last.type) >> 20);
  return (group + static_cast<uint32_t>(last.bits & 31)) & (buckets - 1);
}

INLINE RulesCell rules_value(const RulesStore& store, uint32_t width, uint32_t id, uint32_t argument) {
  const uint64_t place = uint64_t{id} * width + argument;
  return {store.values[place], store.types[place]};
}

INLINE void rules_write(const RulesStore& store, uint32_t width, uint32_t id, uint32_t argument, const RulesCell& cell) {
  const uint64_t place = uint64_t{id} * width + argument;
  store.values[place] = cell.bits;
  store.types[place] = static_cast<uint8_t>(cell.type);
}

struct RulesFrame {
  uint64_t bits[RULES_SLOTS];
  uint8_t types[RULES_SLOTS];
};

/// What a run of code came to.
constexpr uint32_t RAN_NO = 0;
constexpr uint32_t RAN_YES = 1;
constexpr uint32_t RAN_ERROR = 2;

INLINE void rules_bind(RulesFrame* frame, uint32_t slot, const RulesCell& cell) {
  frame->bits[slot] = cell.bits;
  frame->types[slot] = static_cast<uint8_t>(cell.type);
}

#ifndef RULES_COMPILED
/// Runs code on a constraint, `id`, that is matched; a body writes constraints from `out` on.
PLAIN uint32_t rules_run(const RulesProgram& program, const RulesStore& store, uint32_t width, uint32_t at, uint32_t id,
                         RulesFrame* frame, const uint32_t* out, uint32_t* error) {
  RulesCell stack[RULES_STACK];
  uint32_t top = 0, added = 0;
  bool truth = true;
  while (true) {
    const uint32_t word = program.code[at++];
    const uint32_t op = word & 0xff, a = word >> 8 & 0xff, b = word >> 16;
    switch (op) {
      case YES: return RAN_YES;
      case NO: return RAN_NO;
      case MATCH_CONSTANT: {
        const RulesValue& value = program.constants[b];
        if (!rules_same(rules_value(store, width, id, a), {value.bits, value.type})) return RAN_NO;
        break;
      }
      case MATCH_SLOT:
        if (!rules_same(rules_value(store, width, id, a), {frame->bits[b], frame->types[b]})) return RAN_NO;
        break;
      case BIND: rules_bind(frame, b, rules_value(store, width, id, a)); break;
      case PUSH_CONSTANT: stack[top++] = {program.constants[b].bits, program.constants[b].type}; break;
      case PUSH_SLOT: stack[top++] = {frame->bits[b], frame->types[b]}; break;
      case STORE:
        top--;
        rules_bind(frame, b, stack[top]);
        break;
      case NUMBER:
        if (stack[top - 1].type == NAME) {
          *error = NOT_A_NUMBER;
          return RAN_ERROR;
        }
        break;
      case UNARY:
        *error = rules_unary(a, stack[top - 1], &stack[top - 1]);
        if (*error != NO_ERROR) return RAN_ERROR;
        break;
      case BINARY:
        top--;
        *error = rules_binary(a, stack[top - 1], stack[top], &stack[top - 1]);
        if (*error != NO_ERROR) return RAN_ERROR;
        break;
      case COMPARE:
        top -= 2;
        *error = rules_compare(a, stack[top], stack[top + 1], &truth);
        if (*error != NO_ERROR) return RAN_ERROR;
        break;
      case DISTANCE:
        top -= 3;
        *error = rules_distance(stack[top - 1], stack[top], stack[top + 1], stack[top + 2], &stack[top - 1]);
        if (*error != NO_ERROR) return RAN_ERROR;
        break;
      case SAME:
        top -= 2;
        truth = rules_same(stack[top], stack[top + 1]) == (a != 0);
        break;
      case JUMP: at = b; break;
      case JUMP_UNLESS:
        if (!truth) at = b;
        break;
      default: {
        // ADD: a kind, and how many arguments.
        const uint32_t place = out[added++];
        top -= a;
        for (uint32_t argument = 0; argument < a; argument++) rules_write(store, width, place, argument, stack[top + argument]);
        store.kinds[place] = b;
      }
    }
  }
}
#endif
