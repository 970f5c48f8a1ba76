#pragma once
// What a search for the heads of a rule sees, and words that many threads write.

#include "rules_run.cuh"

/// What a search sees: `stored` constraints, dead ones included, in a round.
struct RulesSight {
  const RulesProgram& program;
  const RulesStore& store;
  const RulesLayout& layout;
  uint32_t stored;
  uint32_t round;
};

/// The word of a constraint that tells when it became passive.
INLINE uint32_t* rules_passive(const RulesStore& store, const RulesLayout& layout, uint32_t id) {
  return &store.stamps[uint64_t{id} * (layout.propagations + 1) + layout.propagations];
}

/// Whether a constraint looks for matches in this round. Those that become passive in it still do.
INLINE bool rules_is_active(const RulesSight& sight, uint32_t id) {
  const uint32_t stamp = *static_cast<const volatile uint32_t*>(rules_passive(sight.store, sight.layout, id));
  return stamp == 0 || stamp == sight.round;
}

#ifdef RULES_COMPILED
#include "rules_compiled.cuh"
#else
#include "rules_interpreter.cuh"
#endif

/// One to one: no two are alike.
INLINE uint32_t rules_scramble(uint32_t number) {
  number = (number ^ number >> 16) * 0x85ebca6bu;
  number = (number ^ number >> 13) * 0xc2b2ae35u;
  return number ^ number >> 16;
}

DEVICE uint64_t rules_claim(uint64_t* word, uint64_t value) {
#ifdef __CUDACC__
  return atomicMin(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
#else
  const uint64_t before = *word;
  if (value < before) *word = value;
  return before;
#endif
}

DEVICE uint32_t rules_exchange_if(uint32_t* word, uint32_t expected, uint32_t value) {
#ifdef __CUDACC__
  return atomicCAS(word, expected, value);
#else
  const uint32_t before = *word;
  if (before == expected) *word = value;
  return before;
#endif
}

DEVICE void rules_fence() {
#ifdef __CUDACC__
  __threadfence();
#endif
}

DEVICE uint32_t rules_look(const uint32_t* word) { return *static_cast<const volatile uint32_t*>(word); }

// Pointers come one by one, since a launch knows the buffers that it names.
#define PROGRAM                                                                                                        \
  const RulesOccurrence *occurrences, const uint32_t *code, const RulesValue *constants, const RulesIndex *indexes
#define STORE                                                                                                         \
  uint32_t *kinds, uint64_t *values, uint8_t *types, uint64_t *claims, uint32_t *stamps, uint32_t *buckets, uint32_t *nexts
#define TAKE_PROGRAM const RulesProgram program = {occurrences, code, constants, indexes}
#define TAKE_STORE const RulesStore store = {kinds, values, types, claims, stamps, buckets, nexts}
