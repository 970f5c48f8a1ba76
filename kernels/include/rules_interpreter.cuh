#pragma once
// The search for the heads of a rule, and its firing, from tables and code in memory. `rules_compiled.cuh` has the same functions for a program
// that was compiled.

#include "rules_run.cuh"

/// A search for the heads of an occurrence.
struct RulesSearch {
  uint32_t ids[RULES_HEADS];
  /// Where each head is looked for: the next candidate, and how many are left where all are.
  uint32_t cursors[RULES_HEADS];
  uint32_t lefts[RULES_HEADS];
  /// By depth, the first error of tests so far. It is one only where all other heads are there.
  uint32_t errors[RULES_HEADS];
  uint32_t depth;
  RulesFrame frame;
};

/// The buckets' word that begins the chain for the key that a frame has.
INLINE uint64_t rules_bucket(const RulesSight& sight, const RulesStep& step, const RulesFrame& frame) {
  uint64_t hash = 0;
  RulesCell part = {0, NAME};
  for (uint32_t at = 0; at < step.key_count; at++) {
    if (at > 0) hash = rules_mix_cell(hash, part);
    const uint32_t word = sight.program.code[step.key + at], b = word >> 16;
    if ((word & 0xff) == PUSH_SLOT) {
      part = {frame.bits[b], frame.types[b]};
    } else {
      part = {sight.program.constants[b].bits, sight.program.constants[b].type};
    }
  }
  return uint64_t{step.index} * sight.layout.buckets + rules_bucket_of(hash, part, sight.layout.buckets);
}

/// Begins to look for the head at a depth.
INLINE void rules_open(const RulesSight& sight, const RulesOccurrence& occurrence, RulesSearch* search) {
  const RulesStep& step = occurrence.steps[search->depth];
  if (step.index == NOWHERE) {
    search->cursors[search->depth] = occurrence.rotates ? (search->ids[0] + 1) % sight.stored : 0;
    search->lefts[search->depth] = sight.stored;
  } else {
    search->cursors[search->depth] = sight.store.buckets[rules_bucket(sight, step, search->frame)];
  }
}

/// The next candidate for the head at the search's depth; NOWHERE behind the last.
INLINE uint32_t rules_candidate(const RulesSight& sight, const RulesStep& step, RulesSearch* search) {
  uint32_t& cursor = search->cursors[search->depth];
  const uint32_t id = cursor;
  if (step.index == NOWHERE) {
    uint32_t& left = search->lefts[search->depth];
    if (left == 0) return NOWHERE;
    left--;
    cursor = cursor + 1 == sight.stored ? 0 : cursor + 1;
  } else if (id != NOWHERE) {
    cursor = sight.store.nexts[uint64_t{step.index} * sight.layout.constraints_max + id];
  }
  return id;
}

/// Tries a constraint as the head at the search's depth.
INLINE bool rules_try(const RulesSight& sight, const RulesStep& step, RulesSearch* search, uint32_t id) {
  if (sight.store.kinds[id] != step.kind) return false;
  for (uint32_t depth = 0; depth < search->depth; depth++) {
    if (search->ids[depth] == id) return false;
  }
  if (step.earlier && rules_is_active(sight, id)) return false;
  uint32_t error = NO_ERROR;
  const uint32_t ran =
      rules_run(sight.program, sight.store, sight.layout.width, step.code, id, &search->frame, nullptr, &error);
  if (ran == RAN_NO) return false;
  const uint32_t before = search->depth == 0 ? NO_ERROR : search->errors[search->depth - 1];
  search->errors[search->depth] = before == NO_ERROR && ran == RAN_ERROR ? error : before;
  search->ids[search->depth] = id;
  return true;
}

/// Goes on to the next match. Returns whether there is one.
PLAIN bool rules_advance(const RulesSight& sight, const RulesOccurrence& occurrence, RulesSearch* search, uint32_t bottom) {
  while (search->depth > bottom) {
    const RulesStep& step = occurrence.steps[search->depth];
    const uint32_t id = rules_candidate(sight, step, search);
    if (id == NOWHERE) {
      search->depth--;
      continue;
    }
    if (!rules_try(sight, step, search, id)) continue;
    if (search->depth + 1 == occurrence.heads) return true;
    search->depth++;
    rules_open(sight, occurrence, search);
  }
  return false;
}

/// Goes through the matches of an occurrence in which `id` is the active constraint, until `found(heads, error)` says that it has what it
/// wants. Returns whether it did.
template <typename Found>
DEVICE bool rules_visit(const RulesSight& sight, uint32_t number, uint32_t id, Found& found) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  RulesSearch search;
  search.depth = 0;
  if (!rules_try(sight, occurrence.steps[0], &search, id)) return false;
  if (occurrence.heads == 1) return found(search.ids, search.errors[0]);
  search.depth = 1;
  rules_open(sight, occurrence, &search);
  while (rules_advance(sight, occurrence, &search, 0)) {
    if (found(search.ids, search.errors[occurrence.heads - 1])) return true;
  }
  return false;
}

/// Looks for one match of an occurrence whose second head may be any constraint, by a whole warp, each lane with every 32nd candidate; all lanes get
/// the heads and the error.
DEVICE bool rules_first_of_all(const RulesSight& sight, uint32_t number, uint32_t id, uint32_t* heads, uint32_t* error) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  RulesSearch search;
  search.depth = 0;
  if (!rules_try(sight, occurrence.steps[0], &search, id)) return false;
  const uint32_t start = occurrence.rotates ? id + 1 : 0;
  for (uint64_t first = 0; first < sight.stored; first += LANES) {
    const uint64_t at = first + lane_index();
    bool found = false;
    if (at < sight.stored) {
      search.depth = 1;
      found = rules_try(sight, occurrence.steps[1], &search, static_cast<uint32_t>((start + at) % sight.stored));
      if (found && occurrence.heads > 2) {
        search.depth = 2;
        rules_open(sight, occurrence, &search);
        found = rules_advance(sight, occurrence, &search, 1);
      }
    }
    const uint32_t found_by = ballot(found);
    if (found_by == 0) continue;
    const uint32_t lane = lowest_bit(found_by);
    for (uint32_t head = 0; head < RULES_HEADS; head++) heads[head] = shuffle(search.ids[head], lane);
    *error = shuffle(search.errors[occurrence.heads - 1], lane);
    return true;
  }
  return false;
}

/// Runs the code of all heads in their order. Returns what that came to: RAN_YES where the rule applies.
DEVICE uint32_t rules_match(const RulesSight& sight, uint32_t number, const uint32_t* heads, RulesFrame* frame, uint32_t* error) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  uint32_t ran = RAN_YES;
  for (uint32_t depth = 0; depth < occurrence.heads && ran == RAN_YES; depth++) {
    ran = rules_run(sight.program, sight.store, sight.layout.width, occurrence.steps[depth].code, heads[depth], frame, nullptr, error);
  }
  return ran;
}

/// Runs the body of a rule, which writes constraints to `out`.
DEVICE uint32_t rules_body(const RulesSight& sight, uint32_t number, RulesFrame* frame, const uint32_t* out, uint32_t* error) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  return rules_run(sight.program, sight.store, sight.layout.width, occurrence.body, 0, frame, out, error);
}
