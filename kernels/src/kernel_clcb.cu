// CLCB to the letter (Cugola and Margara, section 4.3 and Algorithm 1): Loc, Cont and Zip, one event at a time, and
// what installs, moves and removes filters. Counters have a byte for each of four runs, so that only the first
// of four has to clear them.

#include "clcb.cuh"
#include "lanes.cuh"
#include "launch.cuh"

/// Whether the event lies in the filter's circle, as far as floats tell: never false when it does.
template <int DIMENSIONS>
DEVICE bool within(const ClcbInput& input, const float* fpos, const float* sq_dist, uint32_t id) {
  float square = 0.0f;
  for (int axis = 0; axis < DIMENSIONS; axis++) {
    const float apart = input.position[axis] - fpos[uint64_t(id) * DIMENSIONS + axis];
    square += apart * apart;
  }
  // A centre that is not a number is nowhere: every comparison with it is false.
  return square <= sq_dist[id] + input.slack_sq;
}

/// Sets the counter of one filter that passed, and its subscription when nothing else is needed.
DEVICE void count_location(uint32_t id, const ClcbInput& input, uint32_t* fcount, const uint8_t* needed,
                           const uint32_t* owner, uint8_t* subs_bv) {
  reinterpret_cast<uint8_t*>(fcount)[uint64_t(id) * 4 + (input.shift >> 3)] = 1;
  if (needed[id] == 1) subs_bv[owner[id]] = 1;
}

template <int DIMENSIONS>
DEVICE void loc(const ClcbInput* d_input, const uint32_t* bf, const float* fpos, const float* sq_dist,
                uint32_t* fcount, const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv,
                uint32_t* results) {
  const uint32_t id = thread_index();
  if (id == 0) results[0] = 0;
  const ClcbInput input = *d_input;
  if (id >= input.filters_count) return;
  if (input.shift == 0) fcount[id] = 0;
  if (bf[id] & ~input.mask) return;
  if (!within<DIMENSIONS>(input, fpos, sq_dist, id)) return;
  count_location(id, input, fcount, needed, owner, subs_bv);
}

/// Loc: a thread a filter. Grid: 1-D, any tail; the counters of filters that fail stay at 0.
/// d_input [1] in; bf, sq_dist, needed, owner [filters_count] in; fpos [filters_count][2 or 3] in, units of points
/// fcount [filters_count] out; subs_bv [subscriptions_count] out; results [1] out, SubsCount = 0
KERNEL clcb_loc_planar(const ClcbInput* d_input, const uint32_t* bf, const float* fpos, const float* sq_dist,
                       uint32_t* fcount, const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv,
                       uint32_t* results) {
  loc<2>(d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv, results);
}
HOST_ENTRY(clcb_loc_planar)

KERNEL clcb_loc_geodetic(const ClcbInput* d_input, const uint32_t* bf, const float* fpos, const float* sq_dist,
                         uint32_t* fcount, const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv,
                         uint32_t* results) {
  loc<3>(d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv, results);
}
HOST_ENTRY(clcb_loc_geodetic)

/// The fast form: the masks of four filters come in one load, and the event as a parameter, which goes from there to
/// where the other kernels read it. The first threads bring the tasks from the host's memory.
template <int DIMENSIONS>
DEVICE void loc_fast(const ClcbInput& input, const ClcbTask* given, ClcbInput* d_input, const uint32_t* bf,
                     const float* fpos, const float* sq_dist, uint32_t* fcount, const uint8_t* needed,
                     const uint32_t* owner, uint8_t* subs_bv) {
  constexpr uint32_t QUADS = TOGETHER / 4;
  const uint32_t stride = threads_count();
  if (thread_index() == 0) *d_input = input;
  ClcbTask* tasks = reinterpret_cast<ClcbTask*>(d_input + 1);
  for (uint32_t task = thread_index(); task < input.tasks_count; task += stride) tasks[task] = given[task];
  // The arrays are longer than the filters by up to three; those are not looked at further down.
  const uint32_t quads_count = (input.filters_count + 3) / 4;
  for (uint32_t first = thread_index(); first < quads_count; first += QUADS * stride) {
    uint32_t masks[TOGETHER];
    for (uint32_t quad = 0; quad < QUADS; quad++) {
      const uint32_t index = first + quad * stride;
      const Quad loaded = index < quads_count ? load_quad(bf, index) : Quad{~0u, ~0u, ~0u, ~0u};
      masks[quad * 4] = loaded.a, masks[quad * 4 + 1] = loaded.b;
      masks[quad * 4 + 2] = loaded.c, masks[quad * 4 + 3] = loaded.d;
      if (input.shift == 0 && index < quads_count) store_quad(fcount, index, Quad{0, 0, 0, 0});
    }
    float places[TOGETHER][DIMENSIONS], reaches[TOGETHER];
    for (uint32_t each = 0; each < TOGETHER; each++) {
      const uint64_t id = uint64_t(first + each / 4 * stride) * 4 + each % 4;
      const bool left = (masks[each] & ~input.mask) == 0 && id < input.filters_count;
      // Below every squared distance, so that nothing has to remember who is out.
      reaches[each] = left ? sq_dist[id] : -1.0f;
      for (int axis = 0; axis < DIMENSIONS; axis++) {
        places[each][axis] = left ? fpos[id * DIMENSIONS + axis] : 0.0f;
      }
    }
    for (uint32_t each = 0; each < TOGETHER; each++) {
      float square = 0.0f;
      for (int axis = 0; axis < DIMENSIONS; axis++) {
        const float apart = input.position[axis] - places[each][axis];
        square += apart * apart;
      }
      if (reaches[each] >= 0.0f && square <= reaches[each] + input.slack_sq) {
        count_location((first + each / 4 * stride) * 4 + each % 4, input, fcount, needed, owner, subs_bv);
      }
    }
  }
}

/// Loc, fast. Grid: 1-D, any; arrays as for the plain form, their lengths multiples of four.
/// given [tasks_count] in, the host's memory; d_input [1] out, with [tasks_count] tasks behind it
KERNEL clcb_loc_fast_planar(ClcbInput input, const ClcbTask* given, ClcbInput* d_input, const uint32_t* bf,
                            const float* fpos, const float* sq_dist, uint32_t* fcount,
                            const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  loc_fast<2>(input, given, d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv);
}
HOST_ENTRY(clcb_loc_fast_planar)

KERNEL clcb_loc_fast_geodetic(ClcbInput input, const ClcbTask* given, ClcbInput* d_input, const uint32_t* bf,
                              const float* fpos, const float* sq_dist, uint32_t* fcount,
                              const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  loc_fast<3>(input, given, d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv);
}
HOST_ENTRY(clcb_loc_fast_geodetic)

/// Attrs, which lie behind the rest of the input.
DEVICE const ClcbTask* tasks_of(const ClcbInput* d_input) {
  return reinterpret_cast<const ClcbTask*>(d_input + 1);
}

/// Counts a constraint that may hold, for a filter whose location holds.
DEVICE void count_constraint(const ClcbConstraint& constraint, uint32_t counter, const ClcbTask& task,
                             uint32_t shift, uint32_t* fcount, const uint8_t* needed, const uint32_t* owner,
                             uint8_t* subs_bv) {
  if ((counter >> shift & 0xff) == 0) return;
  const uint32_t low = constraint.interval & 0xffff;
  const uint32_t high = constraint.interval >> 16;
  if (!task.anything && (task.code < low || task.code > high)) return;
  const uint32_t before = atomic_add(&fcount[constraint.filter], 1u << shift);
  if ((before >> shift & 0xff) + 1 == needed[constraint.filter]) subs_bv[owner[constraint.filter]] = 1;
}

/// Cont: a thread a constraint of the event's attributes. Grid: 1-D, CLCB_PAGE threads a task.
/// d_input [1] in, with [tasks_count] tasks behind it; constraints [slots] in; needed, owner [filters_count] in
/// fcount [filters_count] in and out; subs_bv [subscriptions_count] out
KERNEL clcb_cont(const ClcbInput* d_input, const ClcbConstraint* constraints, uint32_t* fcount,
                 const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  const uint32_t index = thread_index();
  if (index / CLCB_PAGE >= d_input->tasks_count) return;
  const ClcbTask task = tasks_of(d_input)[index / CLCB_PAGE];
  const uint32_t slot = index % CLCB_PAGE;
  if (slot >= task.count) return;
  const ClcbConstraint constraint = constraints[uint64_t(task.start) + slot];
  if (constraint.filter == NO_FILTER) return;
  count_constraint(constraint, fcount[constraint.filter], task, d_input->shift, fcount, needed, owner, subs_bv);
}
HOST_ENTRY(clcb_cont)

/// Cont, fast: four constraints a thread, so that the waits for their counters overlap. Grid: 1-D, any number of blocks
/// of CLCB_PAGE / 4 threads, each for a task at a time.
/// Arrays as for the plain form.
KERNEL clcb_cont_fast(const ClcbInput* d_input, const ClcbConstraint* constraints, uint32_t* fcount,
                      const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  constexpr uint32_t THREADS = CLCB_PAGE / 4;
  const uint32_t shift = d_input->shift;
  const uint32_t tasks_count = d_input->tasks_count;
  const uint32_t thread = thread_index() % THREADS;
  for (uint32_t at = thread_index() / THREADS; at < tasks_count; at += threads_count() / THREADS) {
    const ClcbTask task = tasks_of(d_input)[at];
    const ClcbConstraint* run = constraints + task.start;
    ClcbConstraint mine[4];
    uint32_t counters[4];
    for (uint32_t each = 0; each < 4; each++) {
      const uint32_t slot = thread + each * THREADS;
      mine[each] = slot < task.count ? run[slot] : ClcbConstraint{NO_FILTER, 0};
    }
    for (uint32_t each = 0; each < 4; each++) {
      counters[each] = mine[each].filter == NO_FILTER ? 0 : fcount[mine[each].filter];
    }
    for (uint32_t each = 0; each < 4; each++) {
      count_constraint(mine[each], counters[each], task, shift, fcount, needed, owner, subs_bv);
    }
  }
}
HOST_ENTRY(clcb_cont_fast)

/// Zip: a thread a subscription. Clears subs_bv as it goes.
/// subs_bv [subscriptions_count] in, zeros out; results [SUBS + subscriptions_count] out, unordered
KERNEL clcb_zip(const ClcbInput* d_input, uint8_t* subs_bv, uint32_t* results) {
  const uint32_t id = thread_index();
  if (id >= d_input->subscriptions_count) return;
  if (subs_bv[id] == 0) return;
  subs_bv[id] = 0;
  results[SUBS + atomic_add(results, 1)] = id;
}
HOST_ENTRY(clcb_zip)

/// Zip, fast: sixteen subscriptions a thread, and the last warp of all tells the host how many there are. What the host
/// sees carries the number of the run, so nothing has to wait until something else has arrived. Grid: 1-D, any tail.
/// subs_bv, results as for the plain form, but subs_bv is a multiple of sixteen long and SubsCount is not used; instead
/// tally [1] in and out, 0: subscriptions in the lower half, warps that are done in the upper
/// shared [1 + capacity] out, the host's memory: SubsCount, then Subs, each with the run in the upper half
KERNEL clcb_zip_fast(const ClcbInput* d_input, uint32_t capacity, uint8_t* subs_bv, uint32_t* results,
                     uint64_t* tally, uint64_t* shared) {
  const uint64_t run = uint64_t(d_input->run) << 32;
  const uint32_t index = thread_index();
  static_assert(ZIPPED == sizeof(Quad), "a byte each");
  uint32_t all[4] = {0, 0, 0, 0};
  if (index * ZIPPED < d_input->subscriptions_count) {
    uint32_t* words = reinterpret_cast<uint32_t*>(subs_bv);
    const Quad flags = load_quad(words, index);
    if ((flags.a | flags.b | flags.c | flags.d) != 0) store_quad(words, index, Quad{0, 0, 0, 0});
    all[0] = flags.a, all[1] = flags.b, all[2] = flags.c, all[3] = flags.d;
  }
  // A byte of SubsBV is 0 or 1.
  uint32_t found = 0, total;
  for (uint32_t word = 0; word < 4; word++) found += popcount(all[word]);
  const uint32_t before = lanes_before(found, &total);
  uint64_t earlier = 0;
  if (lane_index() == 0) earlier = atomic_add_wide(tally, uint64_t(1) << 32 | total);
  uint32_t place = shuffle(uint32_t(earlier), 0) + before;
  for (uint32_t byte = 0; found > 0 && byte < ZIPPED; byte++) {
    if ((all[byte / 4] >> (byte % 4 * 8) & 0xff) == 0) continue;
    results[SUBS + place] = index * ZIPPED + byte;
    if (place < capacity) publish(&shared[1 + place], run | (index * ZIPPED + byte));
    place++;
  }
  if (lane_index() == 0 && uint32_t(earlier >> 32) + 1 == warps_count()) {
    *tally = 0;
    publish(&shared[0], run | (uint32_t(earlier) + total));
  }
}
HOST_ENTRY(clcb_zip_fast)

/// Writes filters into the arrays: a thread an update, each filter at most once.
/// updates [count] in; the others [filters] out; fpos has `dimensions` floats a filter
KERNEL clcb_install(const ClcbFilterUpdate* updates, uint32_t count, uint32_t dimensions, uint32_t* bf,
                    float* fpos, float* sq_dist, uint32_t* fcount, uint8_t* needed, uint32_t* owner) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  const ClcbFilterUpdate update = updates[index];
  bf[update.filter] = update.mask;
  sq_dist[update.filter] = update.sq_dist;
  fcount[update.filter] = 0;
  needed[update.filter] = uint8_t(update.needed);
  owner[update.filter] = update.owner;
  for (uint32_t axis = 0; axis < dimensions; axis++) {
    fpos[uint64_t(update.filter) * dimensions + axis] = update.position[axis];
  }
}
HOST_ENTRY(clcb_install)

/// Writes constraints into slots: a thread an update; what is written twice is the same both times.
/// updates [count] in; constraints [slots] out
KERNEL clcb_constrain(const ClcbConstraintUpdate* updates, uint32_t count, ClcbConstraint* constraints) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  constraints[updates[index].slot] = updates[index].constraint;
}
HOST_ENTRY(clcb_constrain)

/// Location updates: writes centres and nothing else. A thread an update, each filter at most once.
/// moves [count] in; fpos [filters][dimensions] out
KERNEL clcb_move(const ClcbMove* moves, uint32_t count, uint32_t dimensions, float* fpos) {
  const uint32_t index = thread_index();
  if (index >= count) return;
  const ClcbMove move = moves[index];
  for (uint32_t axis = 0; axis < dimensions; axis++) {
    fpos[uint64_t(move.filter) * dimensions + axis] = move.position[axis];
  }
}
HOST_ENTRY(clcb_move)
