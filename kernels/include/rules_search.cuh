#pragma once
// The search for the heads of a rule.

#include "rules_run.cuh"

/// A search for the heads of an occurrence.
struct RulesSearch {
  uint32_t ids[RULES_HEADS];
  /// Where each head is looked for: the next candidate, and where the round is closed.
  uint32_t cursors[RULES_HEADS];
  uint32_t lefts[RULES_HEADS];
  uint32_t depth;
  /// Depths whose tests ended with an error, as bits.
  uint32_t errors;
  uint32_t error;
  RulesFrame frame;
};

/// The bucket of an index for the key that a frame has.
INLINE uint32_t rules_bucket(const RulesProgram& program, const RulesStep& step, const RulesFrame& frame, uint32_t buckets) {
  uint64_t hash = rules_mix(0, step.index);
  for (uint32_t part = 0; part < step.key_count; part++) {
    const uint32_t word = program.code[step.key + part], b = word >> 16;
    if ((word & 0xff) == PUSH_SLOT) {
      hash = rules_mix_cell(hash, {frame.bits[b], frame.types[b]});
    } else {
      hash = rules_mix_cell(hash, {program.constants[b].bits, program.constants[b].type});
    }
  }
  return static_cast<uint32_t>(hash >> 20) & (buckets - 1);
}

/// Begins to look for the head at a depth.
INLINE void rules_open(const RulesProgram& program, const RulesStore& store, const RulesLayout& layout,
                       const RulesOccurrence& occurrence, RulesSearch* search, uint32_t stored) {
  const RulesStep& step = occurrence.steps[search->depth];
  if (step.index == NOWHERE) {
    search->cursors[search->depth] = occurrence.rotates ? (search->ids[0] + 1) % stored : 0;
    search->lefts[search->depth] = stored;
  } else {
    search->cursors[search->depth] = store.buckets[rules_bucket(program, step, search->frame, layout.buckets)];
  }
}

/// The next candidate for the head at the search's depth; NOWHERE behind the last.
INLINE uint32_t rules_candidate(const RulesStore& store, const RulesLayout& layout, const RulesStep& step, RulesSearch* search,
                                uint32_t stored) {
  uint32_t& cursor = search->cursors[search->depth];
  if (step.index == NOWHERE) {
    uint32_t& left = search->lefts[search->depth];
    if (left == 0) return NOWHERE;
    left--;
    const uint32_t id = cursor;
    cursor = cursor + 1 == stored ? 0 : cursor + 1;
    return id;
  }
  while (cursor != NOWHERE) {
    const uint32_t node = cursor;
    cursor = store.nexts[node];
    // A bucket has nodes of other indexes, too.
    if (node % layout.indexes == step.index) return node / layout.indexes;
  }
  return NOWHERE;
}

/// Tries a constraint as the head at the search's depth.
INLINE bool rules_try(const RulesProgram& program, const RulesStore& store, const RulesLayout& layout, const RulesStep& step,
                      RulesSearch* search, uint32_t id) {
  if (store.kinds[id] != step.kind) return false;
  for (uint32_t depth = 0; depth < search->depth; depth++) {
    if (search->ids[depth] == id) return false;
  }
  uint32_t error = NO_ERROR;
  const uint32_t ran = rules_run(program, store, layout.width, step.code, id, &search->frame, nullptr, &error);
  if (ran == RAN_NO) return false;
  search->errors &= (1u << search->depth) - 1;
  if (ran == RAN_ERROR) {
    // It is one only where all other heads are there.
    search->errors |= 1u << search->depth;
    search->error = error;
  }
  search->ids[search->depth] = id;
  return true;
}

/// Goes on to the next match. Returns whether there is one; `errors` tells whether a test of it had no answer.
PLAIN bool rules_advance(const RulesProgram& program, const RulesStore& store, const RulesLayout& layout,
                          const RulesOccurrence& occurrence, RulesSearch* search, uint32_t stored, uint32_t bottom) {
  while (search->depth > bottom) {
    const RulesStep& step = occurrence.steps[search->depth];
    const uint32_t id = rules_candidate(store, layout, step, search, stored);
    if (id == NOWHERE) {
      search->depth--;
      continue;
    }
    if (!rules_try(program, store, layout, step, search, id)) continue;
    if (search->depth + 1 == occurrence.heads) return true;
    search->depth++;
    rules_open(program, store, layout, occurrence, search, stored);
  }
  return false;
}

/// Begins with an active constraint: whether it can be the first head. Without other heads it is a match.
INLINE bool rules_begin(const RulesProgram& program, const RulesStore& store, const RulesLayout& layout,
                        const RulesOccurrence& occurrence, RulesSearch* search, uint32_t id) {
  search->depth = 0;
  search->errors = 0;
  search->error = NO_ERROR;
  return rules_try(program, store, layout, occurrence.steps[0], search, id);
}

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
