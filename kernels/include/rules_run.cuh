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
  return cell.type == FLOAT ? rules_float(cell.bits) : static_cast<double>(static_cast<int64_t>(cell.bits));
}

INLINE bool rules_same(const RulesCell& a, const RulesCell& b) {
  if (a.type != b.type) return false;
  return a.type == FLOAT ? rules_float(a.bits) == rules_float(b.bits) : a.bits == b.bits;
}

/// -1, 0, 1; whole numbers and floats are compared exactly.
INLINE int32_t rules_order(const RulesCell& a, const RulesCell& b) {
  if (a.type == WHOLE && b.type == WHOLE) {
    const int64_t x = static_cast<int64_t>(a.bits), y = static_cast<int64_t>(b.bits);
    return x < y ? -1 : x > y;
  }
  if (a.type == FLOAT && b.type == FLOAT) {
    const double x = rules_float(a.bits), y = rules_float(b.bits);
    return x < y ? -1 : x > y;
  }
  const bool is_turned = a.type == FLOAT;
  const int64_t whole = static_cast<int64_t>(is_turned ? b.bits : a.bits);
  const double number = rules_float(is_turned ? a.bits : b.bits);
  int32_t order;
  if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0)) {
    order = number > 0.0 ? -1 : 1;
  } else {
    const double below = floor(number);
    const int64_t under = static_cast<int64_t>(below);
    order = whole < under ? -1 : whole > under ? 1 : number > below ? -1 : 0;
  }
  return is_turned ? -order : order;
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
      if (y < 0 || (y >= 63 && x != 0)) return TOO_WIDE;
      if (x != 0) {
        whole = static_cast<int64_t>(ux << y);
        if (whole >> y != x) return TOO_WIDE;
      }
      break;
    case SHIFT_RIGHT:
      if (y < 0 || y > 0xffffffffll) return UNDEFINED;
      whole = x >> (y < 63 ? y : 63);
      break;
    default: {
      if (y == 0) return BY_ZERO;
      if (x == INT64_MIN && y == -1) return TOO_WIDE;
      const int64_t quotient = x / y, rest = x % y;
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
    case DIVIDE: return y == 0.0 ? BY_ZERO : rules_finite(RULES_DIV(x, y), result);
    case MIN: *result = rules_order(a, b) <= 0 ? a : b; return NO_ERROR;
    case MAX: *result = rules_order(a, b) >= 0 ? a : b; return NO_ERROR;
    default: return NOT_WHOLE;
  }
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

// ---- The store --------------------------------------------------------------------------------------------------

/// Kinds [constraints_max], dead ones NOWHERE; values and types [constraints_max * width]; claims [constraints_max];
/// stamps [constraints_max * propagations]: the round after which an occurrence was not tried any more, 0 before;
/// buckets [buckets]; nexts [constraints_max * indexes]: chains of constraints by number, the youngest first.
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

struct RulesFrame {
  uint64_t bits[RULES_SLOTS];
  uint8_t types[RULES_SLOTS];
};

/// What a run of code came to.
constexpr uint32_t RAN_NO = 0;
constexpr uint32_t RAN_YES = 1;
constexpr uint32_t RAN_ERROR = 2;

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
        const uint64_t place = uint64_t(id) * width + a;
        if (!rules_same({store.values[place], store.types[place]}, {value.bits, value.type})) return RAN_NO;
        break;
      }
      case MATCH_SLOT: {
        const uint64_t place = uint64_t(id) * width + a;
        if (!rules_same({store.values[place], store.types[place]}, {frame->bits[b], frame->types[b]})) return RAN_NO;
        break;
      }
      case BIND: {
        const uint64_t place = uint64_t(id) * width + a;
        frame->bits[b] = store.values[place];
        frame->types[b] = store.types[place];
        break;
      }
      case PUSH_CONSTANT: stack[top++] = {program.constants[b].bits, program.constants[b].type}; break;
      case PUSH_SLOT: stack[top++] = {frame->bits[b], frame->types[b]}; break;
      case STORE:
        top--;
        frame->bits[b] = stack[top].bits;
        frame->types[b] = static_cast<uint8_t>(stack[top].type);
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
        if (stack[top].type == NAME || stack[top + 1].type == NAME) {
          *error = NOT_A_NUMBER;
          return RAN_ERROR;
        }
        truth = rules_holds(a, rules_order(stack[top], stack[top + 1]));
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
        for (uint32_t argument = 0; argument < a; argument++) {
          store.values[uint64_t(place) * width + argument] = stack[top + argument].bits;
          store.types[uint64_t(place) * width + argument] = static_cast<uint8_t>(stack[top + argument].type);
        }
        store.kinds[place] = b;
      }
    }
  }
}
