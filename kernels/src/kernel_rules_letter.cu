// Constraint Handling Rules as in "Parallel Execution of Constraint Handling Rules on a Graphical Processing Unit", sections 4 and 5: all
// combinations in nested loops, what is added in the place of what is removed; and with claims, so that threads do not get in their way.

#include "rules_search.cuh"

/// A constraint that somebody overwrites or removes, in its lock; the other bits count those that keep it.
constexpr uint32_t WRITTEN = 0x80000000u;

DEVICE bool rules_lock(uint32_t* word, bool is_removed) {
  if (is_removed) return rules_exchange_if(word, 0, WRITTEN) == 0;
  if ((atomic_add(word, 1) & WRITTEN) == 0) return true;
  atomic_add(word, ~0u);
  return false;
}

DEVICE void rules_unlock(uint32_t* word, bool is_removed) { atomic_add(word, is_removed ? WRITTEN : ~0u); }

/// Whether a rule applies to these constraints, in the order of its heads.
DEVICE uint32_t rules_applies(const RulesSight& sight, uint32_t number, const uint32_t* ids, RulesFrame* frame, uint32_t* error) {
  for (uint32_t head = 0; head < sight.program.occurrences[number].heads; head++) {
    if (rules_look(&sight.store.kinds[ids[head]]) == NOWHERE) return RAN_NO;
  }
  return rules_match(sight, number, ids, frame, error);
}

/// Fires a rule on every combination of constraints. A thread has one for the first head and goes through the others in nested loops; with `pairs`
/// it has one for the second head, too. What is added takes the place of what is removed, as `targets` says for each in turn; the others are marked.
/// With `claims` a thread first locks its heads, in their order in memory, and looks once more; one that cannot tries again in the next round.
/// begins [kinds + 1] in: where each kind's array begins; locks [constraints] in and out, zeros; head in and out: HEAD_NEW becomes 1 where
/// something may be left to do, and HEAD_APPLIED counts
KERNEL __launch_bounds__(512)
rules_letter(PROGRAM, STORE, RulesLayout layout, uint64_t* head, const uint32_t* begins, const uint32_t* targets, uint32_t* locks,
             uint32_t number, uint32_t pairs, uint32_t claims_first) {
  TAKE_PROGRAM;
  TAKE_STORE;
  const RulesOccurrence& occurrence = program.occurrences[number];
  uint32_t begin[RULES_HEADS] = {}, count[RULES_HEADS] = {};
  for (uint32_t at = 0; at < occurrence.heads; at++) {
    begin[at] = begins[occurrence.steps[at].kind];
    count[at] = begins[occurrence.steps[at].kind + 1] - begin[at];
    if (count[at] == 0) return;
  }
  const uint32_t outer = pairs && occurrence.heads > 1 ? 2 : 1;
  const uint64_t threads = outer == 2 ? uint64_t{count[0]} * count[1] : count[0];
  const RulesSight sight = {program, store, layout, 0, 0};
  RulesFrame frame;
  for (uint64_t thread = thread_index(); thread < threads; thread += threads_count()) {
    uint32_t ids[RULES_HEADS] = {};
    ids[0] = begin[0] + static_cast<uint32_t>(outer == 2 ? thread / count[1] : thread);
    if (outer == 2) ids[1] = begin[1] + static_cast<uint32_t>(thread % count[1]);
    for (uint32_t at = outer; at < occurrence.heads; at++) ids[at] = begin[at];
    bool is_over = false;
    while (!is_over) {
      bool is_twice = false;
      for (uint32_t a = 0; a < occurrence.heads; a++) {
        for (uint32_t b = a + 1; b < occurrence.heads; b++) is_twice = is_twice || ids[a] == ids[b];
      }
      uint32_t error = NO_ERROR;
      uint32_t ran = is_twice ? RAN_NO : rules_applies(sight, number, ids, &frame, &error);
      if (ran != RAN_NO) {
        uint32_t order[RULES_HEADS], locked = 0;
        bool has_all = true;
        if (claims_first) {
          for (uint32_t at = 0; at < occurrence.heads; at++) {
            uint32_t to = at;
            for (; to > 0 && ids[order[to - 1]] > ids[at]; to--) order[to] = order[to - 1];
            order[to] = at;
          }
          while (has_all && locked < occurrence.heads) {
            has_all = rules_lock(&locks[ids[order[locked]]], occurrence.removed >> order[locked] & 1);
            locked += has_all;
          }
          rules_fence();
          if (has_all) ran = rules_applies(sight, number, ids, &frame, &error);
          if (!has_all) head[HEAD_NEW] = 1;
        }
        if (has_all && ran == RAN_YES) {
          uint32_t out[RULES_STACK];
          uint32_t left = occurrence.removed;
          for (uint32_t added = 0; added < occurrence.adds; added++) {
            const uint32_t target = targets[number * RULES_STACK + added];
            out[added] = ids[target];
            left &= ~(1u << target);
          }
          ran = rules_body(sight, number, &frame, out, &error);
          for (uint32_t at = 0; at < occurrence.heads; at++) {
            if (left >> at & 1) store.kinds[ids[at]] = NOWHERE;
          }
          head[HEAD_NEW] = 1;
          atomic_add_wide(&head[HEAD_APPLIED], 1);
          if (ran == RAN_NO) rules_claim(&head[HEAD_ERROR], uint64_t{occurrence.rule} << 8 | 0xff);
        }
        if (has_all && ran == RAN_ERROR) rules_claim(&head[HEAD_ERROR], uint64_t{occurrence.rule} << 8 | error);
        rules_fence();
        for (; locked > 0; locked--) {
          rules_unlock(&locks[ids[order[locked - 1]]], occurrence.removed >> order[locked - 1] & 1);
        }
      }
      // The next combination of the inner loops.
      uint32_t at = occurrence.heads;
      for (is_over = true; is_over && at > outer; at--) {
        is_over = ++ids[at - 1] == begin[at - 1] + count[at - 1];
        if (is_over) ids[at - 1] = begin[at - 1];
      }
    }
  }
}
HOST_ENTRY(rules_letter)
