// Arc consistency on bits: values that lose their supports are found a word at a time, as in AC3bit ("Enforcing arc consistency using
// bitwise operations", Lecoutre and Vion, 2008). Values only go, so that who reads a word too early removes too little and never too
// much; what removes something is looked at again.
//
// A start is a record of 64-bit words: one that tells how it went, then the values that are left, in the order of the network's words.

#include "groups.cuh"

/// The values of a task's word without a support at y. First by the union of the rows of y's values, four at a time; and once few values
/// are without, each by its own row.
DEVICE uint64_t groups_missing(const uint64_t* rows, const GroupsTask& task, const uint64_t* words, uint32_t size) {
  uint64_t missing = groups_look(&words[task.word]);
  const uint64_t* supports = &words[task.at];
  uint32_t tried = 0;
  bool is_sparse = false;
  for (uint32_t idx = 0; idx < task.row_words && missing && !is_sparse; idx++) {
    uint64_t values = groups_look(&supports[idx]);
    while (values && missing && !is_sparse) {
      uint64_t supported = 0, value = 0;
      for (uint32_t turn = 0; turn < 4; turn++) {
        // What has no fourth takes the third twice.
        if (values) value = 64 * idx + groups_lowest(values);
        values &= values - 1;
        supported |= rows[task.unions + value * task.union_stride];
      }
      missing &= ~supported;
      tried += 4;
      is_sparse = tried >= 8 && tried + 2 * groups_popcount(missing) < size;
    }
  }
  if (!is_sparse) return missing;
  for (uint64_t left = missing; left; left &= left - 1) {
    const uint32_t value = groups_lowest(left);
    const uint64_t* row = &rows[task.tests + uint64_t{value} * task.row_words];
    for (uint32_t idx = 0; idx < task.row_words; idx++) {
      if (row[idx] & groups_look(&supports[idx])) {
        missing &= ~(uint64_t{1} << value);
        break;
      }
    }
  }
  return missing;
}

/// Removes values of a word of x. Answers whether some were still there; tells it where none is left.
DEVICE bool groups_remove(uint64_t* word, uint64_t missing, uint32_t* size, uint32_t* is_empty) {
  const uint32_t removed = groups_popcount(groups_and(word, ~missing) & missing);
  if (removed == 0) return false;
  if (atomic_add(size, 0u - removed) == removed) *is_empty = 1;
  return true;
}

/// Takes from the words of a variable what no start keeps. How many values are left.
DEVICE uint32_t groups_begin(const uint64_t* base, const uint32_t* words_at, uint32_t x, uint64_t* words) {
  uint32_t size = 0;
  for (uint32_t at = words_at[x]; at < words_at[x + 1]; at++) {
    words[at] &= base[at];
    size += groups_popcount(words[at]);
  }
  return size;
}

/// Round 1 of a start. A warp a variable.
/// given [words] in: the values that are left, in the host's memory; base [words] in; words_at [variables + 1] in; full [variables] in: how
/// many values there are; start [1 + words] out, its first word zero; sizes [variables] out; stamps [variables] out: the last round in
/// which the variable lost a value
KERNEL groups_prepare(const uint64_t* given, const uint64_t* base, const uint32_t* words_at, const uint32_t* full, uint32_t variables,
                      uint64_t* start, uint32_t* sizes, uint32_t* stamps) {
  uint32_t* head = reinterpret_cast<uint32_t*>(start);
  for (uint32_t x = warp_index(); x < variables; x += warps_count()) {
    uint32_t size = 0;
    for (uint32_t at = words_at[x] + lane_index(); at < words_at[x + 1]; at += LANES) {
      const uint64_t left = given[at] & base[at];
      start[1 + at] = left;
      size += groups_popcount(left);
    }
    size = warp_sum(size);
    if (lane_index() != 0) continue;
    sizes[x] = size;
    stamps[x] = size < full[x];
    if (size < full[x]) head[START_ROUND] = 1;
    if (size == 0) head[START_EMPTY] = 1;
  }
}
HOST_ENTRY(groups_prepare)

/// A later round of a start: nothing where the one before removed nothing. A thread a task, which has something to do where y lost a value
/// in the round before or in this one.
/// tasks [count] in; rows in; full [variables] in; start, sizes, stamps in and out
KERNEL __launch_bounds__(128)
groups_round(const GroupsTask* __restrict__ tasks, uint32_t count, const uint64_t* __restrict__ rows, const uint32_t* __restrict__ full,
             uint64_t* start, uint32_t* sizes, uint32_t* stamps, uint32_t round) {
  uint32_t* head = reinterpret_cast<uint32_t*>(start);
  if (groups_look(&head[START_ROUND]) + 1 < round) return;
  for (uint32_t at = thread_index(); at < count; at += threads_count()) {
    if (groups_look(&stamps[tasks[at].y]) + 1 < round) continue;
    if (groups_look(&head[START_EMPTY])) return;
    const GroupsTask task = tasks[at];
    const uint32_t size = groups_look(&sizes[task.y]);
    if (full[task.y] - size < task.least) continue;
    const uint64_t missing = groups_missing(rows, task, start + 1, size);
    if (missing && groups_remove(&start[1 + task.word], missing, &sizes[task.x], &head[START_EMPTY])) {
      stamps[task.x] = round;
      head[START_ROUND] = round;
    }
  }
}
HOST_ENTRY(groups_round)

/// One warp: tells the host how it went, and what is left if all is done after round `last`; the first word of the start is zero then.
/// start [1 + words] in and out; told [2 + words] out, in the host's memory
KERNEL groups_tell(uint64_t* start, uint32_t words, uint32_t last, uint64_t* told) {
  if (warp_index() > 0) return;
  const uint32_t* head = reinterpret_cast<const uint32_t*>(start);
  const bool is_done = head[START_EMPTY] || head[START_ROUND] < last;
  if (is_done) {
    for (uint32_t at = lane_index(); at < words; at += LANES) told[TOLD_WORDS + at] = start[1 + at];
  }
  groups_fence();
  warp_sync();
  if (lane_index() != 0) return;
  told[TOLD_HEAD] = start[0];
  if (is_done) start[0] = 0;
  groups_fence();
  *static_cast<volatile uint64_t*>(&told[TOLD_FLAG]) = 1;
}
HOST_ENTRY(groups_tell)

/// Puts a variable behind those that wait, once.
DEVICE void groups_put(uint32_t* tail, uint32_t* is_queued, uint32_t* ring, uint32_t variables, uint32_t x) {
  if (groups_exchange(&is_queued[x], 1) == 0) ring[atomic_add(tail, 1) % variables] = x;
}

/// Many starts of a network from the first round to the last. A warp a start, with a queue of variables that lost values; its lanes share
/// the tasks of one.
/// tasks_at [variables + 1] in: where those of each y begin; starts [count][1 + words] in and out, each first word zero; work [count][1 + 3 *
/// variables] scratch
KERNEL __launch_bounds__(64)
groups_starts(const GroupsTask* __restrict__ tasks, const uint32_t* __restrict__ tasks_at, const uint64_t* __restrict__ rows,
              const uint64_t* __restrict__ base, const uint32_t* __restrict__ words_at, const uint32_t* __restrict__ full,
              uint32_t variables, uint32_t words, uint32_t count, uint64_t* starts, uint32_t* work) {
  for (uint32_t idx = warp_index(); idx < count; idx += warps_count()) {
    uint64_t* start = starts + uint64_t{idx} * (1 + words);
    uint32_t* head = reinterpret_cast<uint32_t*>(start);
    uint32_t* tail = work + uint64_t{idx} * (1 + 3 * uint64_t{variables});
    uint32_t* sizes = tail + 1;
    uint32_t* is_queued = sizes + variables;
    uint32_t* ring = is_queued + variables;
    if (lane_index() == 0) *tail = 0;
    warp_sync();
    for (uint32_t x = lane_index(); x < variables; x += LANES) {
      const uint32_t size = groups_begin(base, words_at, x, start + 1);
      sizes[x] = size;
      is_queued[x] = 0;
      if (size < full[x]) groups_put(tail, is_queued, ring, variables, x);
      if (size == 0) head[START_EMPTY] = 1;
    }
    warp_sync();
    uint32_t loops = 1, end = 0;
    for (uint32_t next = 0; !groups_look(&head[START_EMPTY]); next++) {
      if (next == end) {
        end = groups_look(tail);
        if (next == end) break;
        loops++;
      }
      const uint32_t y = groups_look(&ring[next % variables]);
      warp_sync();
      if (lane_index() == 0) is_queued[y] = 0;
      warp_sync();
      const uint32_t size = groups_look(&sizes[y]);
      for (uint32_t at = tasks_at[y] + lane_index(); at < tasks_at[y + 1]; at += LANES) {
        const GroupsTask task = tasks[at];
        if (full[y] - size < task.least) continue;
        const uint64_t missing = groups_missing(rows, task, start + 1, size);
        if (missing && groups_remove(&start[1 + task.word], missing, &sizes[task.x], &head[START_EMPTY])) {
          groups_put(tail, is_queued, ring, variables, task.x);
        }
      }
      warp_sync();
    }
    if (lane_index() == 0) head[START_ROUND] = loops;
  }
}
HOST_ENTRY(groups_starts)
