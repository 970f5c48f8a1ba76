// Constraint Handling Rules in rounds. In a round each active constraint looks for a match of a rule that removes something, or else for all
// matches of rules that do not; matches claim what they remove; those whose claims and heads nobody better has fire together.
//
// All kernels are for any 1-D grid. Each does nothing once `head[HEAD_STOP]` is set. What grows in a round is doubled: by the parity of
// the round one half is read and the other is written.

#include "rules_search.cuh"

DEVICE uint32_t* rules_half(uint32_t* both, uint32_t max, uint64_t round) { return both + (round & 1 ? max : 0); }

DEVICE RulesProposal* rules_half(RulesProposal* both, uint32_t max, uint64_t round) { return both + (round & 1 ? max : 0); }

/// The first match that a search finds.
struct RulesFirst {
  /// Whether it is of rules that remove nothing.
  static constexpr bool PROPAGATES = false;
  uint32_t* heads;
  uint32_t* error;

  MEMBER bool operator()(const uint32_t* ids, uint32_t told) const {
    for (uint32_t place = 0; place < RULES_HEADS; place++) heads[place] = ids[place];
    *error = told;
    return true;
  }
};

/// Whether a proposal of the round before is still the one to fire.
DEVICE bool rules_stays(const RulesSight& sight, const RulesProposal& proposal) {
  if (proposal.occurrence == NOWHERE) return false;
  const RulesOccurrence& occurrence = sight.program.occurrences[proposal.occurrence];
  if (!occurrence.stays) return false;
  for (uint32_t depth = 0; depth < occurrence.heads; depth++) {
    if (sight.store.kinds[proposal.heads[depth]] == NOWHERE) return false;
  }
  return true;
}

/// Gives a match its priority, and claims what it removes.
DEVICE void rules_propose(const RulesSight& sight, uint32_t id, uint32_t number, RulesProposal* proposal) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  proposal->occurrence = number;
  // The youngest comes first; where both of a pair go, neighbours would wait for each other in a row, so their order is scrambled.
  const uint32_t order = occurrence.rotates ? rules_scramble(id ^ sight.round * 0x9e3779b9u) : ~id;
  proposal->priority = uint64_t{occurrence.rule} << 32 | order;
  for (uint32_t depth = 0; depth < occurrence.heads; depth++) {
    if (occurrence.removed >> occurrence.steps[depth].place & 1) {
      rules_claim(&sight.store.claims[proposal->heads[depth]], proposal->priority);
    }
  }
}

// A search waits for memory most of the time: with a program compiled in, it does with few registers, and a multiprocessor holds as many warps as
// it can (Floyd-Warshall of 1,024 vertices on an H100, November 2026: 4.7 s with 16 blocks, 6.2 s with 8). The interpreter needs its registers.
#ifdef RULES_COMPILED
#define SEEK_BOUNDS __launch_bounds__(128, 16)
#else
#define SEEK_BOUNDS __launch_bounds__(128)
#endif

/// A lane an active constraint: its first match of a rule that removes something becomes its proposal, which claims what it removes.
/// Occurrences before that, of rules that remove nothing, get their stamps; without one it becomes passive. A match of which several are active
/// is looked for from the earliest of its heads alone. A match of the round before is not looked for again where it may stay.
/// active [2 * constraints_max] in; proposals [2 * proposals_max] in and out; counts [actives] out: bit 32 where there is a proposal
KERNEL SEEK_BOUNDS
rules_seek(PROGRAM, STORE, RulesLayout layout, uint64_t* head, uint32_t* active,
           RulesProposal* proposals, uint64_t* counts) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (head[HEAD_STOP] != RUNS) return;
  const uint64_t round = head[HEAD_ROUND];
  const uint32_t stored = static_cast<uint32_t>(head[HEAD_STORED]), actives = static_cast<uint32_t>(head[HEAD_ACTIVE]);
  const uint32_t* mine = rules_half(active, layout.constraints_max, round);
  RulesProposal* written = rules_half(proposals, layout.proposals_max, round);
  const RulesSight sight = {program, store, layout, stored, static_cast<uint32_t>(round)};
  // Where they are few, each has a warp to itself.
  const uint32_t spread = actives / warps_count() + 1, share = spread < LANES ? spread : LANES;
  for (uint64_t first = uint64_t{warp_index()} * share; first < actives; first += uint64_t{warps_count()} * share) {
    const uint64_t at = lane_index() < share ? first + lane_index() : actives;
    const uint32_t id = at < actives ? mine[at] : NOWHERE;
    const uint32_t kind = id == NOWHERE ? NOWHERE : store.kinds[id];
    RulesProposal proposal = {};
    proposal.occurrence = NOWHERE;
    // In the first round there is none before.
    const bool stays = round > ROUND_FIRST && kind != NOWHERE && rules_stays(sight, written[at]);
    if (stays) {
      proposal = written[at];
      rules_propose(sight, id, proposal.occurrence, &proposal);
    }
    bool is_found = kind == NOWHERE || stays;
    for (uint32_t number = 0; number < layout.occurrences; number++) {
      const RulesOccurrence& occurrence = program.occurrences[number];
      const bool wants = !is_found && occurrence.steps[0].kind == kind;
      if (occurrence.propagation != NOWHERE) {
        if (wants) {
          uint32_t* stamp = &store.stamps[uint64_t{id} * (layout.propagations + 1) + occurrence.propagation];
          if (*stamp == 0) *stamp = static_cast<uint32_t>(round);
        }
        continue;
      }
      bool has = false;
      if (occurrence.heads > 1 && occurrence.steps[1].index == NOWHERE) {
        for (uint32_t waiting = ballot(wants); waiting != 0; waiting &= waiting - 1) {
          const uint32_t lane = lowest_bit(waiting);
          uint32_t heads[RULES_HEADS], error = NO_ERROR;
          const bool found = rules_first_of_all(sight, number, shuffle(id, lane), heads, &error);
          if (lane == lane_index() && found) has = RulesFirst{proposal.heads, &proposal.error}(heads, error);
        }
      } else if (wants) {
        RulesFirst first = {proposal.heads, &proposal.error};
        has = rules_visit(sight, number, id, first);
      }
      if (!has) continue;
      is_found = true;
      rules_propose(sight, id, number, &proposal);
    }
    if (kind != NOWHERE) *rules_passive(store, layout, id) = is_found ? 0 : static_cast<uint32_t>(round);
    if (at < actives) {
      written[at] = proposal;
      counts[at] = proposal.occurrence == NOWHERE ? 0 : uint64_t{1} << 32;
    }
  }
}
HOST_ENTRY(rules_seek)

/// Whether a constraint was done with an occurrence's rule before, or with this head in the same round: of constraints that come together, the
/// one of the first head finds the match.
DEVICE bool rules_is_met(const RulesSight& sight, uint32_t number, const uint32_t* ids) {
  const RulesOccurrence& occurrence = sight.program.occurrences[number];
  const uint32_t place = occurrence.steps[0].place;
  for (uint32_t depth = 1; depth < occurrence.heads; depth++) {
    const uint32_t other = occurrence.steps[depth].place;
    // Occurrences of a rule stand together, in the order of their heads.
    const uint32_t propagation = occurrence.propagation + other - place;
    const uint32_t stamp = sight.store.stamps[uint64_t{ids[depth]} * (sight.layout.propagations + 1) + propagation];
    if (stamp == 0 || stamp > sight.round || (other < place && stamp == sight.round)) return false;
  }
  return true;
}

/// Counts the new matches of an occurrence, and writes them where `out` is not null.
struct RulesNews {
  static constexpr bool PROPAGATES = true;
  const RulesSight& sight;
  uint32_t number;
  uint32_t id;
  RulesProposal* out;
  uint32_t count;

  MEMBER bool operator()(const uint32_t* ids, uint32_t error) {
    if (!rules_is_met(sight, number, ids)) return false;
    if (out != nullptr) {
      RulesProposal proposal = {};
      proposal.occurrence = number;
      proposal.error = error;
      proposal.priority = uint64_t{sight.program.occurrences[number].rule} << 32 | ~id;
      for (uint32_t place = 0; place < RULES_HEADS; place++) proposal.heads[place] = ids[place];
      out[count] = proposal;
    }
    count++;
    return false;
  }
};

/// Goes through the new matches of rules that remove nothing; writes them where `out` is not null, and counts them.
DEVICE uint32_t rules_new_matches(const RulesSight& sight, uint32_t id, RulesProposal* out) {
  const uint32_t kind = id == NOWHERE ? NOWHERE : sight.store.kinds[id];
  if (kind == NOWHERE) return 0;
  RulesNews news = {sight, 0, id, out, 0};
  for (uint32_t number = 0; number < sight.layout.occurrences; number++) {
    const RulesOccurrence& occurrence = sight.program.occurrences[number];
    if (occurrence.propagation == NOWHERE || occurrence.steps[0].kind != kind) continue;
    const uint64_t stamps = uint64_t{id} * (sight.layout.propagations + 1);
    if (sight.store.stamps[stamps + occurrence.propagation] != sight.round) continue;
    news.number = number;
    rules_visit(sight, number, id, news);
  }
  return news.count;
}

/// A thread an active constraint: counts its new matches of rules that remove nothing.
/// counts [actives] in and out: the lower half is added
KERNEL __launch_bounds__(128)
rules_count(PROGRAM, STORE, RulesLayout layout, const uint64_t* head, uint32_t* active,
            uint64_t* counts) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (head[HEAD_STOP] != RUNS || layout.propagations == 0) return;
  const uint64_t round = head[HEAD_ROUND];
  const uint32_t* mine = rules_half(active, layout.constraints_max, round);
  const uint32_t stored = static_cast<uint32_t>(head[HEAD_STORED]);
  const RulesSight sight = {program, store, layout, stored, static_cast<uint32_t>(round)};
  for (uint64_t at = thread_index(); at < head[HEAD_ACTIVE]; at += threads_count()) {
    counts[at] += rules_new_matches(sight, mine[at], nullptr);
  }
}
HOST_ENTRY(rules_count)

/// How many counts there are: of active constraints (0), proposals (1) or constraints (2).
DEVICE uint64_t rules_counts(const uint64_t* head, uint32_t which) {
  if (which == 2) return head[HEAD_STORED];
  return which == 0 ? head[HEAD_ACTIVE] : head[HEAD_ACTIVE] + head[HEAD_SURVIVORS] + head[HEAD_FOUND];
}

/// A warp a chunk: the sum of its counts. Both halves of a count are summed up at once.
/// counts [count] in; sums [chunks] out
KERNEL rules_sums(const uint64_t* head, const uint64_t* counts, uint64_t* sums, uint32_t which) {
  if (head[HEAD_STOP] != RUNS) return;
  const uint64_t count = rules_counts(head, which);
  for (uint64_t chunk = warp_index(); chunk * RULES_CHUNK < count; chunk += warps_count()) {
    uint64_t sum = 0;
    for (uint32_t offset = lane_index(); offset < RULES_CHUNK; offset += LANES) {
      const uint64_t at = chunk * RULES_CHUNK + offset;
      if (at < count) sum += counts[at];
    }
    sum = warp_sum(sum);
    if (lane_index() == 0) sums[chunk] = sum;
  }
}
HOST_ENTRY(rules_sums)

DEVICE uint64_t rules_lanes_before(uint64_t value, uint64_t* total) {
  uint64_t sum = value;
  for (uint32_t step = 1; step < LANES; step *= 2) {
    const uint64_t other = shuffle(sum, lane_index() - step);
    if (lane_index() >= step) sum += other;
  }
  *total = shuffle(sum, LANES - 1);
  return sum - value;
}

/// One warp: sums become those of the chunks before, and the totals are held against the room there is.
/// sums [chunks] in and out
KERNEL rules_starts(RulesLayout layout, uint64_t* head, uint64_t* sums, uint32_t which) {
  if (warp_index() > 0 || head[HEAD_STOP] != RUNS) return;
  const uint64_t count = rules_counts(head, which);
  const uint64_t chunks = (count + RULES_CHUNK - 1) / RULES_CHUNK;
  uint64_t running = 0;
  for (uint64_t first = 0; first < chunks; first += LANES) {
    const uint64_t at = first + lane_index();
    uint64_t total;
    const uint64_t before = rules_lanes_before(at < chunks ? sums[at] : 0, &total);
    if (at < chunks) sums[at] = running + before;
    running += total;
  }
  warp_sync();
  if (lane_index() != 0) return;
  const uint64_t low = running & 0xffffffffu, high = running >> 32;
  if (which == 2) {
    head[HEAD_NEW] = low;
  } else if (which == 0) {
    head[HEAD_FOUND] = low;
    head[HEAD_KEPT] = high;
    head[HEAD_NEEDED] = head[HEAD_ACTIVE] + head[HEAD_SURVIVORS] + low;
    if (head[HEAD_NEEDED] > layout.proposals_max) head[HEAD_STOP] = NO_PROPOSALS;
  } else {
    head[HEAD_NEW] = low;
    head[HEAD_SURVIVING] = high;
    const uint64_t proposals = head[HEAD_KEPT] + low + high;
    if (proposals > layout.proposals_max) {
      head[HEAD_NEEDED] = proposals;
      head[HEAD_STOP] = NO_PROPOSALS;
    }
    if (head[HEAD_STORED] + low > layout.constraints_max) {
      head[HEAD_NEEDED] = head[HEAD_STORED] + low;
      head[HEAD_STOP] = NO_CONSTRAINTS;
    }
  }
}
HOST_ENTRY(rules_starts)

/// A warp a chunk: counts become the sums of those before them.
/// sums [chunks] in; counts [count] in; offsets [count] out
KERNEL rules_offsets(const uint64_t* head, const uint64_t* counts, const uint64_t* sums, uint64_t* offsets, uint32_t which) {
  if (head[HEAD_STOP] != RUNS) return;
  const uint64_t count = rules_counts(head, which);
  for (uint64_t chunk = warp_index(); chunk * RULES_CHUNK < count; chunk += warps_count()) {
    uint64_t running = sums[chunk];
    for (uint32_t first = 0; first < RULES_CHUNK; first += LANES) {
      const uint64_t at = chunk * RULES_CHUNK + first + lane_index();
      uint64_t total;
      const uint64_t before = rules_lanes_before(at < count ? counts[at] : 0, &total);
      if (at < count) offsets[at] = running + before;
      running += total;
    }
  }
}
HOST_ENTRY(rules_offsets)

/// A thread an active constraint: writes its new matches behind those that survived, and itself and its proposal into the next lists if it has one.
KERNEL __launch_bounds__(128)
rules_fill(PROGRAM, STORE, RulesLayout layout, const uint64_t* head, uint32_t* active,
           RulesProposal* proposals, const uint64_t* counts, const uint64_t* offsets) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (head[HEAD_STOP] != RUNS) return;
  const uint64_t round = head[HEAD_ROUND];
  const uint32_t* mine = rules_half(active, layout.constraints_max, round);
  uint32_t* next = rules_half(active, layout.constraints_max, round + 1);
  const RulesProposal* proposed = rules_half(proposals, layout.proposals_max, round);
  RulesProposal* carried = rules_half(proposals, layout.proposals_max, round + 1);
  RulesProposal* written = rules_half(proposals, layout.proposals_max, round) + head[HEAD_ACTIVE] + head[HEAD_SURVIVORS];
  const uint32_t stored = static_cast<uint32_t>(head[HEAD_STORED]);
  const RulesSight sight = {program, store, layout, stored, static_cast<uint32_t>(round)};
  for (uint64_t at = thread_index(); at < head[HEAD_ACTIVE]; at += threads_count()) {
    if (counts[at] >> 32) {
      next[offsets[at] >> 32] = mine[at];
      carried[offsets[at] >> 32] = proposed[at];
    }
    if ((counts[at] & 0xffffffffu) == 0) continue;
    rules_new_matches(sight, mine[at], written + (offsets[at] & 0xffffffffu));
  }
}
HOST_ENTRY(rules_fill)


/// A thread a proposal: whether it fires. It does if all of its heads are there, it has all that it removes, and nobody better wants what it
/// keeps. Then all that fire could do so one after another, in the order of their priorities; the best of all always fires.
/// counts [proposals] out: constraints that it adds, bit 32 where it waits for the next round; fires [proposals] out
KERNEL rules_decide(PROGRAM, STORE, RulesLayout layout, const uint64_t* head, RulesProposal* proposals,
                    uint64_t* counts, uint8_t* fires) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (head[HEAD_STOP] != RUNS) return;
  const RulesProposal* mine = rules_half(proposals, layout.proposals_max, head[HEAD_ROUND]);
  for (uint64_t at = thread_index(); at < rules_counts(head, 1); at += threads_count()) {
    const RulesProposal& proposal = mine[at];
    counts[at] = 0;
    fires[at] = 0;
    if (proposal.occurrence == NOWHERE) continue;
    const RulesOccurrence& occurrence = program.occurrences[proposal.occurrence];
    bool is_alive = true, is_first = true;
    for (uint32_t depth = 0; depth < occurrence.heads; depth++) {
      const uint32_t id = proposal.heads[depth];
      if (store.kinds[id] == NOWHERE) is_alive = false;
      const bool is_removed = occurrence.removed >> occurrence.steps[depth].place & 1;
      if (is_removed ? store.claims[id] != proposal.priority : store.claims[id] < proposal.priority) is_first = false;
    }
    if (!is_alive) continue;
    fires[at] = is_first;
    if (is_first) {
      counts[at] = occurrence.adds;
    } else if (occurrence.propagation != NOWHERE) {
      // The others look again.
      counts[at] = uint64_t{1} << 32;
    }
  }
}
HOST_ENTRY(rules_decide)

/// A thread a proposal: fires it, or carries it over.
KERNEL __launch_bounds__(128)
rules_apply(PROGRAM, STORE, RulesLayout layout, uint64_t* head, uint32_t* active, RulesProposal* proposals,
            const uint64_t* counts, const uint64_t* offsets, const uint8_t* fires) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (head[HEAD_STOP] != RUNS) return;
  const uint64_t round = head[HEAD_ROUND];
  const RulesProposal* mine = rules_half(proposals, layout.proposals_max, round);
  RulesProposal* next = rules_half(proposals, layout.proposals_max, round + 1) + head[HEAD_KEPT] + head[HEAD_NEW];
  uint32_t* next_active = rules_half(active, layout.constraints_max, round + 1) + head[HEAD_KEPT];
  RulesProposal* next_proposed = rules_half(proposals, layout.proposals_max, round + 1) + head[HEAD_KEPT];
  const RulesSight sight = {program, store, layout, static_cast<uint32_t>(head[HEAD_STORED]), static_cast<uint32_t>(round)};
  for (uint64_t at = thread_index(); at < rules_counts(head, 1); at += threads_count()) {
    const RulesProposal& proposal = mine[at];
    if (proposal.occurrence == NOWHERE) continue;
    const RulesOccurrence& occurrence = program.occurrences[proposal.occurrence];
    for (uint32_t depth = 0; depth < occurrence.heads; depth++) {
      if (occurrence.removed >> occurrence.steps[depth].place & 1) store.claims[proposal.heads[depth]] = UNCLAIMED;
    }
    if (counts[at] >> 32) next[offsets[at] >> 32] = proposal;
    if (!fires[at]) continue;
    RulesFrame frame;
    uint32_t error = proposal.error, ran = RAN_ERROR;
    // The variables' values once more; the tests have held.
    if (error == NO_ERROR) ran = rules_match(sight, proposal.occurrence, proposal.heads, &frame, &error);
    uint32_t removed = 0;
    for (uint32_t depth = 0; depth < occurrence.heads; depth++) {
      if (!(occurrence.removed >> occurrence.steps[depth].place & 1)) continue;
      store.kinds[proposal.heads[depth]] = NOWHERE;
      removed++;
    }
    const uint64_t begin = offsets[at] & 0xffffffffu;
    uint32_t out[RULES_STACK];
    for (uint32_t added = 0; added < occurrence.adds; added++) {
      out[added] = static_cast<uint32_t>(head[HEAD_STORED] + begin + added);
      next_active[begin + added] = out[added];
      next_proposed[begin + added].occurrence = NOWHERE;
      store.claims[out[added]] = UNCLAIMED;
      store.kinds[out[added]] = NOWHERE;
      for (uint32_t stamp = 0; stamp <= layout.propagations; stamp++) {
        store.stamps[uint64_t{out[added]} * (layout.propagations + 1) + stamp] = 0;
      }
    }
    if (ran == RAN_YES) ran = rules_body(sight, proposal.occurrence, &frame, out, &error);
    // The first rule's error is told, whatever the order of threads: its number and the error's, and then that a body failed.
    if (ran != RAN_YES) {
      const uint64_t told = uint64_t{occurrence.rule} << 8 | (ran == RAN_ERROR ? error : 0xff);
      rules_claim(&head[HEAD_ERROR], told);
    }
    atomic_add_wide(&head[HEAD_APPLIED], 1);
    if (removed > 0) atomic_add_wide(&head[HEAD_DEAD], removed);
  }
}
HOST_ENTRY(rules_apply)

/// A thread a constraint and an index: hangs it into its bucket, where the youngest are first, in whatever order threads come.
/// Constraints from `begin` on, or, where that is NOWHERE, the new ones of the round.
KERNEL rules_insert(PROGRAM, STORE, RulesLayout layout, const uint64_t* head, uint32_t begin) {
  TAKE_PROGRAM;
  TAKE_STORE;
  if (layout.indexes == 0 || head[HEAD_STOP] != RUNS) return;
  const uint64_t stored = head[HEAD_STORED];
  const uint64_t first = begin == NOWHERE ? stored : begin, end = begin == NOWHERE ? stored + head[HEAD_NEW] : stored;
  for (uint64_t at = thread_index(); at < (end - first) * layout.indexes; at += threads_count()) {
    const uint32_t id = static_cast<uint32_t>(first + at / layout.indexes), number = static_cast<uint32_t>(at % layout.indexes);
    const RulesIndex index = program.indexes[number];
    if (store.kinds[id] != index.kind) continue;
    uint64_t hash = 0;
    uint32_t mask = index.mask;
    for (; (mask & (mask - 1)) != 0; mask &= mask - 1) {
      hash = rules_mix_cell(hash, rules_value(store, layout.width, id, lowest_bit(mask)));
    }
    const uint32_t bucket = rules_bucket_of(hash, rules_value(store, layout.width, id, lowest_bit(mask)), layout.buckets);
    uint32_t* link = &store.buckets[uint64_t{number} * layout.buckets + bucket];
    uint32_t* nexts = &store.nexts[uint64_t{number} * layout.constraints_max];
    while (true) {
      const uint32_t other = rules_look(link);
      if (other != NOWHERE && other > id) {
        link = &nexts[other];
        continue;
      }
      nexts[id] = other;
      rules_fence();
      if (rules_exchange_if(link, other, id) == other) break;
    }
  }
}
HOST_ENTRY(rules_insert)

/// A thread a constraint: counts those that are alive.
KERNEL rules_alive(STORE, const uint64_t* head, uint64_t* counts) {
  TAKE_STORE;
  for (uint64_t id = thread_index(); id < head[HEAD_STORED]; id += threads_count()) counts[id] = store.kinds[id] != NOWHERE;
}
HOST_ENTRY(rules_alive)

/// A thread a constraint: copies those that are alive, without gaps and in their order.
KERNEL rules_move(STORE, uint32_t* other_kinds, uint64_t* other_values, uint8_t* other_types, uint64_t* other_claims,
           uint32_t* other_stamps, RulesLayout layout, const uint64_t* head, const uint64_t* offsets) {
  TAKE_STORE;
  for (uint64_t id = thread_index(); id < head[HEAD_STORED]; id += threads_count()) {
    if (store.kinds[id] == NOWHERE) continue;
    const uint64_t to = offsets[id];
    other_kinds[to] = store.kinds[id];
    // What a round claimed that is to be done once more is claimed by other numbers then.
    other_claims[to] = UNCLAIMED;
    for (uint64_t value = 0; value < layout.width; value++) {
      other_values[to * layout.width + value] = store.values[id * layout.width + value];
      other_types[to * layout.width + value] = store.types[id * layout.width + value];
    }
    const uint64_t stamps = layout.propagations + 1;
    for (uint64_t stamp = 0; stamp < stamps; stamp++) other_stamps[to * stamps + stamp] = store.stamps[id * stamps + stamp];
  }
}
HOST_ENTRY(rules_move)

/// A thread an active constraint or a proposal: numbers of constraints become those after `rules_move`.
KERNEL rules_renumber(PROGRAM, STORE, RulesLayout layout, const uint64_t* head, uint32_t* active,
                      RulesProposal* proposals, const uint64_t* offsets) {
  TAKE_PROGRAM;
  TAKE_STORE;
  uint32_t* mine = rules_half(active, layout.constraints_max, head[HEAD_ROUND]);
  for (uint64_t at = thread_index(); at < head[HEAD_ACTIVE]; at += threads_count()) {
    const uint32_t id = mine[at];
    if (id != NOWHERE) mine[at] = store.kinds[id] == NOWHERE ? NOWHERE : static_cast<uint32_t>(offsets[id]);
  }
  RulesProposal* carried = rules_half(proposals, layout.proposals_max, head[HEAD_ROUND]);
  // Before the first round they are none.
  const uint64_t first = head[HEAD_ROUND] > ROUND_FIRST ? 0 : head[HEAD_ACTIVE];
  for (uint64_t at = first + thread_index(); at < head[HEAD_ACTIVE] + head[HEAD_SURVIVORS]; at += threads_count()) {
    RulesProposal* proposal = &carried[at];
    if (proposal->occurrence == NOWHERE) continue;
    for (uint32_t depth = 0; depth < program.occurrences[proposal->occurrence].heads; depth++) {
      const uint32_t id = proposal->heads[depth];
      if (store.kinds[id] == NOWHERE) {
        proposal->occurrence = NOWHERE;
        break;
      }
      proposal->heads[depth] = static_cast<uint32_t>(offsets[id]);
    }
  }
}
HOST_ENTRY(rules_renumber)

/// One thread: what was moved is all that there is.
KERNEL rules_moved(uint64_t* head) {
  if (thread_index() != 0) return;
  head[HEAD_STORED] = head[HEAD_NEW];
  head[HEAD_DEAD] = 0;
}
HOST_ENTRY(rules_moved)

/// One thread: the round is over.
KERNEL rules_turn(uint64_t* head) {
  if (thread_index() != 0 || head[HEAD_STOP] != RUNS) return;
  if (head[HEAD_ERROR] != UNCLAIMED) {
    head[HEAD_STOP] = (head[HEAD_ERROR] & 0xff) == 0xff ? FAILED : ERROR;
    return;
  }
  head[HEAD_STORED] += head[HEAD_NEW];
  head[HEAD_ACTIVE] = head[HEAD_KEPT] + head[HEAD_NEW];
  head[HEAD_SURVIVORS] = head[HEAD_SURVIVING];
  head[HEAD_ROUND]++;
  if (head[HEAD_ACTIVE] + head[HEAD_SURVIVORS] == 0) head[HEAD_STOP] = DONE;
}
HOST_ENTRY(rules_turn)
