#pragma once
// The search for the heads of a rule, and its firing, where the program is part of the source: `rules_program.cuh` is made at run time, and has
//
//   RULES_OCCURRENCES     the table of occurrences, as a constant
//   RulesCode<AT>::run    what the interpreter does from `code[AT]` on, if `same`
//   RulesKey<N, D>::find  the bucket of the key of head D of occurrence N
//
// The functions are those of `rules_interpreter.cuh`, with loops in place of a search's state.

#include "rules_run.cuh"

/// Lets a value be loaded before the branch that decides whether it is needed: one wait for all values of a constraint, and not one after another.
#ifdef __CUDACC__
#define RULES_EARLY(word) asm volatile("" : "+l"(word))
#else
#define RULES_EARLY(word) static_cast<void>(word)
#endif

template <uint32_t AT>
struct RulesCode;
template <uint32_t NUMBER, uint32_t DEPTH>
struct RulesKey;

#include "rules_program.cuh"

/// Whether the second head of an occurrence may be any constraint. Only what is asked for is compiled: matches of these one by one where the rule
/// removes nothing, else the first of all; matches of others one by one.
template <uint32_t NUMBER>
constexpr bool RULES_IS_OPEN = RULES_OCCURRENCES[NUMBER].heads > 1 && RULES_OCCURRENCES[NUMBER].steps[1].index == NOWHERE;

/// Tries a constraint as a head.
template <uint32_t NUMBER, uint32_t DEPTH>
DEVICE bool rules_meets(const RulesSight& sight, uint32_t id, uint32_t* ids, RulesFrame* frame, uint32_t* error) {
  constexpr RulesStep step = RULES_OCCURRENCES[NUMBER].steps[DEPTH];
  bool is_one = sight.store.kinds[id] == step.kind;
  // From the end, since a compiler warns of what is below zero.
  for (uint32_t depth = DEPTH; depth > 0; depth--) is_one &= ids[depth - 1] != id;
  if constexpr (step.earlier != 0) is_one &= !rules_is_active(sight, id);
  uint32_t wrong = NO_ERROR;
  const uint32_t ran = RulesCode<step.code>::run(sight.store, id, frame, nullptr, &wrong, is_one);
  if (ran == RAN_NO) return false;
  if (ran == RAN_ERROR && *error == NO_ERROR) *error = wrong;
  ids[DEPTH] = id;
  return true;
}

/// Goes through the matches that have the heads before DEPTH.
template <uint32_t NUMBER, uint32_t DEPTH, typename Found>
DEVICE bool rules_descend(const RulesSight& sight, uint32_t* ids, RulesFrame* frame, uint32_t error, Found& found) {
  constexpr uint32_t heads = RULES_OCCURRENCES[NUMBER].heads;
  if constexpr (DEPTH == heads) {
    return found(ids, error);
  } else {
    constexpr RulesStep step = RULES_OCCURRENCES[NUMBER].steps[DEPTH];
    if constexpr (step.index == NOWHERE) {
      constexpr bool rotates = RULES_OCCURRENCES[NUMBER].rotates != 0;
      uint32_t id = rotates ? (ids[0] + 1) % sight.stored : 0;
      for (uint32_t left = sight.stored; left > 0; left--) {
        uint32_t wrong = error;
        if (rules_meets<NUMBER, DEPTH>(sight, id, ids, frame, &wrong) &&
            rules_descend<NUMBER, DEPTH + 1>(sight, ids, frame, wrong, found)) {
          return true;
        }
        id = id + 1 == sight.stored ? 0 : id + 1;
      }
    } else {
      const uint32_t* buckets = sight.store.buckets + uint64_t{step.index} * sight.layout.buckets;
      const uint32_t* nexts = sight.store.nexts + uint64_t{step.index} * sight.layout.constraints_max;
      uint32_t id = buckets[RulesKey<NUMBER, DEPTH>::find(*frame, sight.layout.buckets)];
      while (id != NOWHERE) {
        // Asked for early, so that it comes while this one is looked at.
        const uint32_t next = nexts[id];
        uint32_t wrong = error;
        if (rules_meets<NUMBER, DEPTH>(sight, id, ids, frame, &wrong) &&
            rules_descend<NUMBER, DEPTH + 1>(sight, ids, frame, wrong, found)) {
          return true;
        }
        id = next;
      }
    }
    return false;
  }
}

template <uint32_t NUMBER = 0, typename Found>
DEVICE bool rules_visit(const RulesSight& sight, uint32_t number, uint32_t id, Found& found) {
  if constexpr (NUMBER < RULES_OCCURRENCES_COUNT) {
    if (number != NUMBER) return rules_visit<NUMBER + 1>(sight, number, id, found);
    constexpr bool propagates = RULES_OCCURRENCES[NUMBER].propagation != NOWHERE;
    if constexpr (propagates == Found::PROPAGATES && (propagates || !RULES_IS_OPEN<NUMBER>)) {
      uint32_t ids[RULES_HEADS], error = NO_ERROR;
      RulesFrame frame;
      return rules_meets<NUMBER, 0>(sight, id, ids, &frame, &error) &&
             rules_descend<NUMBER, 1>(sight, ids, &frame, error, found);
    }
  }
  return false;
}

template <uint32_t NUMBER = 0>
DEVICE bool rules_first_of_all(const RulesSight& sight, uint32_t number, uint32_t id, uint32_t* heads, uint32_t* error) {
  if constexpr (NUMBER < RULES_OCCURRENCES_COUNT) {
    if (number != NUMBER) return rules_first_of_all<NUMBER + 1>(sight, number, id, heads, error);
    constexpr bool rotates = RULES_OCCURRENCES[NUMBER].rotates != 0;
    if constexpr (RULES_OCCURRENCES[NUMBER].propagation == NOWHERE && RULES_IS_OPEN<NUMBER>) {
      uint32_t ids[RULES_HEADS] = {}, active_error = NO_ERROR;
      RulesFrame frame;
      if (!rules_meets<NUMBER, 0>(sight, id, ids, &frame, &active_error)) return false;
      const uint32_t start = rotates ? id + 1 : 0;
      for (uint64_t first = 0; first < sight.stored; first += LANES) {
        const uint64_t at = first + lane_index();
        uint32_t wrong = active_error, last = active_error;
        auto keep = [&](const uint32_t*, uint32_t told) {
          last = told;
          return true;
        };
        const bool found =
            at < sight.stored &&
            rules_meets<NUMBER, 1>(sight, static_cast<uint32_t>((start + at) % sight.stored), ids, &frame, &wrong) &&
            rules_descend<NUMBER, 2>(sight, ids, &frame, wrong, keep);
        const uint32_t found_by = ballot(found);
        if (found_by == 0) continue;
        const uint32_t lane = lowest_bit(found_by);
        for (uint32_t head = 0; head < RULES_HEADS; head++) heads[head] = shuffle(ids[head], lane);
        *error = shuffle(last, lane);
        return true;
      }
    }
  }
  return false;
}

template <uint32_t NUMBER, uint32_t DEPTH = 0>
DEVICE uint32_t rules_match_from(const RulesSight& sight, const uint32_t* heads, RulesFrame* frame, uint32_t* error) {
  constexpr uint32_t count = RULES_OCCURRENCES[NUMBER].heads;
  if constexpr (DEPTH < count) {
    constexpr uint32_t code = RULES_OCCURRENCES[NUMBER].steps[DEPTH].code;
    const uint32_t ran = RulesCode<code>::run(sight.store, heads[DEPTH], frame, nullptr, error, true);
    return ran == RAN_YES ? rules_match_from<NUMBER, DEPTH + 1>(sight, heads, frame, error) : ran;
  } else {
    return RAN_YES;
  }
}

template <uint32_t NUMBER = 0>
DEVICE uint32_t rules_match(const RulesSight& sight, uint32_t number, const uint32_t* heads, RulesFrame* frame, uint32_t* error) {
  if constexpr (NUMBER < RULES_OCCURRENCES_COUNT) {
    if (number != NUMBER) return rules_match<NUMBER + 1>(sight, number, heads, frame, error);
    return rules_match_from<NUMBER>(sight, heads, frame, error);
  } else {
    return RAN_NO;
  }
}

template <uint32_t NUMBER = 0>
DEVICE uint32_t rules_body(const RulesSight& sight, uint32_t number, RulesFrame* frame, const uint32_t* out, uint32_t* error) {
  if constexpr (NUMBER < RULES_OCCURRENCES_COUNT) {
    if (number != NUMBER) return rules_body<NUMBER + 1>(sight, number, frame, out, error);
    constexpr uint32_t body = RULES_OCCURRENCES[NUMBER].body;
    return RulesCode<body>::run(sight.store, 0, frame, out, error, true);
  } else {
    return RAN_NO;
  }
}
