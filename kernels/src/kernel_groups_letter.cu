// "A constraint network model and parallel arc consistency algorithms based on GPU" (Li, Li and Li, Journal of Computer Research and
// Development 54, 2017): the N-E model by `BuildNE`, AC4GPU and AC4GPU+. The arrays are those of `groups/src/network/ne`, which names the
// slips of the listings; a pass of a loop there is a thread here, or a lane.

#include "groups.cuh"

// ---- Exclusive scans: sums of chunks, sums of those, and the sums of what comes before -----------------------------------------

/// A warp a chunk.
/// lengths [count] in; sums [count / GROUPS_CHUNK + 1] out
KERNEL groups_sums(const uint32_t* lengths, uint32_t count, uint32_t* sums) {
  for (uint32_t chunk = warp_index(); chunk <= count / GROUPS_CHUNK; chunk += warps_count()) {
    uint32_t sum = 0;
    for (uint32_t offset = lane_index(); offset < GROUPS_CHUNK; offset += LANES) {
      const uint32_t at = chunk * GROUPS_CHUNK + offset;
      if (at < count) sum += lengths[at];
    }
    sum = warp_sum(sum);
    if (lane_index() == 0) sums[chunk] = sum;
  }
}
HOST_ENTRY(groups_sums)

/// The sum of the lanes before, and of all.
DEVICE uint32_t groups_lanes_before(uint32_t value, uint32_t* total) {
  uint32_t sum = value;
  for (uint32_t step = 1; step < LANES; step *= 2) {
    const uint32_t other = shuffle(sum, (lane_index() - step) % LANES);
    if (lane_index() >= step) sum += other;
  }
  *total = shuffle(sum, LANES - 1);
  return sum - value;
}

/// One warp: sums become those of the chunks before.
/// sums [chunks] in and out
KERNEL groups_sums_before(uint32_t* sums, uint32_t chunks) {
  if (warp_index() > 0) return;
  uint32_t running = 0;
  for (uint32_t first = 0; first < chunks; first += LANES) {
    const uint32_t at = first + lane_index();
    uint32_t total;
    const uint32_t before = groups_lanes_before(at < chunks ? sums[at] : 0, &total);
    if (at < chunks) sums[at] = running + before;
    running += total;
  }
}
HOST_ENTRY(groups_sums_before)

/// A warp a chunk.
/// lengths [count] in; sums [chunks] in; scan [count + 1] out, the last the sum of all
KERNEL groups_scan(const uint32_t* lengths, uint32_t count, const uint32_t* sums, uint32_t* scan) {
  for (uint32_t chunk = warp_index(); chunk <= count / GROUPS_CHUNK; chunk += warps_count()) {
    uint32_t running = sums[chunk];
    for (uint32_t first = 0; first < GROUPS_CHUNK; first += LANES) {
      const uint32_t at = chunk * GROUPS_CHUNK + first + lane_index();
      uint32_t total;
      const uint32_t before = groups_lanes_before(at < count ? lengths[at] : 0, &total);
      if (at <= count) scan[at] = running + before;
      running += total;
    }
  }
}
HOST_ENTRY(groups_scan)

// ---- BuildNE --------------------------------------------------------------------------------------------------------------------

/// Procedure 1, `ComputeEdgeOffset`, and the same for slots. A thread a constraint. Those of Procedure 2 are the sizes themselves.
/// scopes [2 * constraints] in; sizes [variables] in; edges_length, slots_length [constraints] out
KERNEL groups_lengths(const uint32_t* scopes, const uint32_t* sizes, uint32_t constraints, uint32_t* edges_length,
                      uint32_t* slots_length) {
  for (uint32_t c = thread_index(); c < constraints; c += threads_count()) {
    const uint32_t size0 = sizes[scopes[2 * c]], size1 = sizes[scopes[2 * c + 1]];
    edges_length[c] = size0 * size1;
    slots_length[c] = size0 + size1;
  }
}
HOST_ENTRY(groups_lengths)

/// Procedures 5 and 6, `BuildNodes`. A warp a variable, a lane a value.
/// nodes_at [variables + 1] in; words_at [variables + 1] in; left [words] in: bits of the values that there are; x, v, e [nodes] out
KERNEL groups_nodes(const uint32_t* nodes_at, const uint32_t* words_at, const uint64_t* left, uint32_t variables, uint32_t* x,
                    uint32_t* v, uint32_t* e) {
  for (uint32_t variable = warp_index(); variable < variables; variable += warps_count()) {
    const uint32_t begin = nodes_at[variable], size = nodes_at[variable + 1] - begin;
    for (uint32_t value = lane_index(); value < size; value += LANES) {
      x[begin + value] = variable;
      v[begin + value] = value;
      e[begin + value] = left[words_at[variable] + value / 64] >> (value % 64) & 1;
    }
  }
}
HOST_ENTRY(groups_nodes)

/// Procedures 3 and 4, `BuildEdges`, with the stride |dom(x1)|, the counters `m0` and `m1` of AC4GPU+, and the slots. A warp a slot; one of
/// x0's values has its edges, a lane an edge.
/// scopes [2 * constraints], rows_at [constraints], rows, nodes_at [variables + 1], edges_at, slots_at [constraints + 1], e [nodes] in;
/// node0, node1, s, m0, m1 [edges] out; slot_node, slot_edge, slot_stride, slot_count [slots] out
KERNEL groups_edges(const uint32_t* scopes, const uint32_t* rows_at, const uint64_t* rows, const uint32_t* nodes_at,
                    const uint32_t* edges_at, const uint32_t* slots_at, uint32_t constraints, const uint32_t* e, uint32_t* node0,
                    uint32_t* node1, uint8_t* s, uint32_t* m0, uint32_t* m1, uint32_t* slot_node, uint32_t* slot_edge,
                    uint32_t* slot_stride, uint32_t* slot_count) {
  const uint32_t slots = slots_at[constraints];
  for (uint32_t slot = warp_index(); slot < slots; slot += warps_count()) {
    // The last constraint that begins at or before it.
    uint32_t c = 0, end = constraints;
    while (end - c > 1) {
      const uint32_t middle = c + (end - c) / 2;
      if (slots_at[middle] <= slot) {
        c = middle;
      } else {
        end = middle;
      }
    }
    const uint32_t x0 = scopes[2 * c], x1 = scopes[2 * c + 1];
    const uint32_t on0 = nodes_at[x0], on1 = nodes_at[x1];
    const uint32_t size0 = nodes_at[x0 + 1] - on0, size1 = nodes_at[x1 + 1] - on1;
    const uint32_t first = edges_at[c], value = slot - slots_at[c];
    const bool is_row = value < size0;
    const uint32_t v1 = value - size0;
    if (lane_index() == 0) {
      slot_node[slot] = is_row ? on0 + value : on1 + v1;
      slot_edge[slot] = is_row ? first + size1 * value : first + v1;
      slot_stride[slot] = is_row ? 1 : size1;
      slot_count[slot] = is_row ? size1 : size0;
    }
    if (!is_row) continue;
    const uint64_t* row = &rows[rows_at[c] + uint64_t{value} * ((size1 + 63) / 64)];
    for (uint32_t at = lane_index(); at < size1; at += LANES) {
      const uint32_t edge = first + at + size1 * value;
      node0[edge] = on0 + value;
      node1[edge] = on1 + at;
      s[edge] = static_cast<uint8_t>(row[at / 64] >> (at % 64) & e[on0 + value] & e[on1 + at]);
      m0[edge] = slot;
      m1[edge] = slots_at[c] + size0 + at;
    }
  }
}
HOST_ENTRY(groups_edges)

// ---- Both algorithms ------------------------------------------------------------------------------------------------------------
// Loops are started one by one, or many together: then one is idle if the loop before deleted nothing, or a variable has no node left.

DEVICE bool groups_is_idle(const uint32_t* head, uint32_t loop) {
  if (loop == NE_NO_LOOP) return false;
  return groups_look(&head[NE_EMPTY]) || (loop > 0 && groups_look(&head[NE_DELETED + loop - 1]) == 0);
}

DEVICE void groups_count_slot(uint32_t slot, uint32_t sum, uint32_t* counter, const uint32_t* node, uint32_t* e) {
  counter[slot] = sum;
  if (e && sum == 0) e[node[slot]] = 0;
}

/// Reduces `s` by key, and with `e` deletes the nodes without support at once. Edges that lie apart are the work of a thread, for its
/// neighbours have the edges beside them; those that lie together are the work of a warp.
DEVICE void groups_count_all(const uint8_t* s, const uint32_t* edge, const uint32_t* stride, const uint32_t* count, uint32_t slots,
                             uint32_t* counter, const uint32_t* node, uint32_t* e) {
  for (uint32_t slot = thread_index(); slot < slots; slot += threads_count()) {
    const uint32_t step = stride[slot];
    if (step == 1) continue;
    uint32_t at = edge[slot], sum = 0;
    const uint32_t turns = count[slot];
    UNROLL
    for (uint32_t turn = 0; turn < turns; turn++) sum += s[at + turn * step];
    groups_count_slot(slot, sum, counter, node, e);
  }
  for (uint32_t slot = warp_index(); slot < slots; slot += warps_count()) {
    if (stride[slot] != 1) continue;
    const uint32_t begin = edge[slot], size = count[slot];
    uint32_t sum = 0;
    for (uint32_t at = lane_index(); at < size; at += LANES) sum += s[begin + at];
    sum = warp_sum(sum);
    if (lane_index() == 0) groups_count_slot(slot, sum, counter, node, e);
  }
}

/// Reduces `e` by the key `x`. A warp a variable.
DEVICE void groups_domains_all(const uint32_t* e, const uint32_t* nodes_at, uint32_t variables, uint32_t* domain, uint32_t* head,
                               uint32_t loop) {
  for (uint32_t x = warp_index(); x < variables; x += warps_count()) {
    uint32_t sum = 0;
    for (uint32_t node = nodes_at[x] + lane_index(); node < nodes_at[x + 1]; node += LANES) sum += e[node];
    sum = warp_sum(sum);
    if (lane_index() != 0) continue;
    const uint32_t before = domain[x];
    domain[x] = sum;
    if (loop != NE_NO_LOOP && before != sum) atomic_add(&head[NE_DELETED + loop], before - sum);
    if (sum == 0) head[NE_EMPTY] = 1;
  }
}

/// Clears the edges of deleted nodes. A thread an edge.
DEVICE void groups_clear_all(const uint32_t* node0, const uint32_t* node1, const uint32_t* e, uint32_t edges, uint8_t* s) {
  for (uint32_t edge = thread_index(); edge < edges; edge += threads_count()) {
    if (s[edge] && !(e[node0[edge]] & e[node1[edge]])) s[edge] = 0;
  }
}

/// s [edges] in; edge, stride, count [slots] in; counter [slots] out
KERNEL groups_count(const uint8_t* s, const uint32_t* edge, const uint32_t* stride, const uint32_t* count, uint32_t slots,
                    uint32_t* counter) {
  groups_count_all(s, edge, stride, count, slots, counter, nullptr, nullptr);
}
HOST_ENTRY(groups_count)

/// e [nodes] in; nodes_at [variables + 1] in; domain [variables] in and out; head in and out
KERNEL groups_domains(const uint32_t* e, const uint32_t* nodes_at, uint32_t variables, uint32_t* domain, uint32_t* head,
                      uint32_t loop) {
  groups_domains_all(e, nodes_at, variables, domain, head, loop);
}
HOST_ENTRY(groups_domains)

// ---- Algorithm 3, AC4GPU --------------------------------------------------------------------------------------------------------

/// Lines 2 to 4. A thread a slot.
/// counter, node [slots] in; e [nodes] out
KERNEL groups_delete(const uint32_t* counter, const uint32_t* node, uint32_t slots, uint32_t* e) {
  for (uint32_t slot = thread_index(); slot < slots; slot += threads_count()) {
    if (counter[slot] == 0) e[node[slot]] = 0;
  }
}
HOST_ENTRY(groups_delete)

/// Lines 6 to 10.
/// node0, node1 [edges] in; e [nodes] in; s [edges] in and out
KERNEL groups_clear(const uint32_t* node0, const uint32_t* node1, const uint32_t* e, uint32_t edges, uint8_t* s) {
  groups_clear_all(node0, node1, e, edges, s);
}
HOST_ENTRY(groups_clear)

/// Lines 1 to 4 of one of many loops.
/// As `groups_count` and `groups_delete`; head in
KERNEL groups_count_delete(const uint8_t* s, const uint32_t* edge, const uint32_t* stride, const uint32_t* count, uint32_t slots,
                           uint32_t* counter, const uint32_t* node, uint32_t* e, const uint32_t* head, uint32_t loop) {
  if (groups_is_idle(head, loop)) return;
  groups_count_all(s, edge, stride, count, slots, counter, node, e);
}
HOST_ENTRY(groups_count_delete)

/// The other lines of one of many loops: what the paper does in two streams.
/// As `groups_clear` and `groups_domains`
KERNEL groups_clear_domains(const uint32_t* node0, const uint32_t* node1, const uint32_t* e, uint32_t edges, uint8_t* s,
                            const uint32_t* nodes_at, uint32_t variables, uint32_t* domain, uint32_t* head, uint32_t loop) {
  // Not `groups_is_idle`: another warp may have found an empty variable in this loop.
  if (loop > 0 && groups_look(&head[NE_DELETED + loop - 1]) == 0) return;
  groups_domains_all(e, nodes_at, variables, domain, head, loop);
  groups_clear_all(node0, node1, e, edges, s);
}
HOST_ENTRY(groups_clear_domains)

// ---- Algorithm 4, AC4GPU+ -------------------------------------------------------------------------------------------------------

/// A thread a slot. A node whose last supports in two constraints went at once (the paper's Fig. 3) is deleted by the thread that exchanges
/// its `e`. The paper lets both count, and counts a domain anew that seems to be empty.
/// counter, node [slots] in; x [nodes] in; e [nodes], domain [variables], head in and out
KERNEL groups_delete_once(const uint32_t* counter, const uint32_t* node, uint32_t slots, const uint32_t* x, uint32_t* e,
                          uint32_t* domain, uint32_t* head, uint32_t loop) {
  if (groups_is_idle(head, loop)) return;
  for (uint32_t slot = thread_index(); slot < slots; slot += threads_count()) {
    if (counter[slot] != 0) continue;
    if (groups_look(&head[NE_EMPTY])) return;
    const uint32_t deleted = node[slot];
    if (groups_look(&e[deleted]) == 0 || groups_exchange(&e[deleted], 0) == 0) continue;
    atomic_add(&head[NE_DELETED + loop], 1);
    if (atomic_add(&domain[x[deleted]], 0u - 1) == 1) head[NE_EMPTY] = 1;
  }
}
HOST_ENTRY(groups_delete_once)

/// Clears the edges of deleted nodes, and takes each from its two counters. A thread an edge.
/// node0, node1, m0, m1 [edges] in; e [nodes], head in; s [edges], counter [slots] in and out
KERNEL groups_decrement(const uint32_t* node0, const uint32_t* node1, const uint32_t* m0, const uint32_t* m1, const uint32_t* e,
                        uint32_t edges, uint8_t* s, uint32_t* counter, const uint32_t* head, uint32_t loop) {
  if (groups_look(&head[NE_EMPTY]) || groups_look(&head[NE_DELETED + loop]) == 0) return;
  for (uint32_t edge = thread_index(); edge < edges; edge += threads_count()) {
    if (s[edge] && !(e[node0[edge]] & e[node1[edge]])) {
      s[edge] = 0;
      atomic_add(&counter[m0[edge]], 0u - 1);
      atomic_add(&counter[m1[edge]], 0u - 1);
    }
  }
}
HOST_ENTRY(groups_decrement)
