// CLCB to the letter (Cugola and Margara, section 4.3 and Algorithm 1): Loc, Cont and Zip, one event at a time, and
// what installs, moves and removes filters. Counters have a byte for each of four runs, so that only the first
// of four has to clear them.

#include "clcb.cuh"
#include "lanes.cuh"
#include "launch.cuh"

/// No filter of a page's slot.
constexpr uint32_t NO_FILTER = 0xffffffffu;
/// Where Subs begins in the results; SubsCount is their first word.
constexpr uint32_t SUBS = 4;

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

/// The same with four filters a thread, whose masks come in one load.
template <int DIMENSIONS>
DEVICE void loc_wide(const ClcbInput* d_input, const uint32_t* bf, const float* fpos, const float* sq_dist,
                     uint32_t* fcount, const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv,
                     uint32_t* results) {
  const uint32_t index = thread_index();
  if (index == 0) results[0] = 0;
  const ClcbInput input = *d_input;
  const uint32_t first = index * 4;
  if (first >= input.filters_count) return;
  // The arrays are longer than the filters by up to three, and those are nowhere.
  const Quad masks = load_quad(bf, index);
  if (input.shift == 0) store_quad(fcount, index, Quad{0, 0, 0, 0});
  for (uint32_t each = 0; each < 4; each++) {
    const uint32_t mask = each == 0 ? masks.a : each == 1 ? masks.b : each == 2 ? masks.c : masks.d;
    const uint32_t id = first + each;
    if ((mask & ~input.mask) == 0 && id < input.filters_count &&
        within<DIMENSIONS>(input, fpos, sq_dist, id)) {
      count_location(id, input, fcount, needed, owner, subs_bv);
    }
  }
}

/// Loc, four filters a thread; arrays as for the plain form, their lengths multiples of four.
KERNEL clcb_loc_wide_planar(const ClcbInput* d_input, const uint32_t* bf, const float* fpos,
                            const float* sq_dist, uint32_t* fcount, const uint8_t* needed,
                            const uint32_t* owner, uint8_t* subs_bv, uint32_t* results) {
  loc_wide<2>(d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv, results);
}
HOST_ENTRY(clcb_loc_wide_planar)

KERNEL clcb_loc_wide_geodetic(const ClcbInput* d_input, const uint32_t* bf, const float* fpos,
                              const float* sq_dist, uint32_t* fcount, const uint8_t* needed,
                              const uint32_t* owner, uint8_t* subs_bv, uint32_t* results) {
  loc_wide<3>(d_input, bf, fpos, sq_dist, fcount, needed, owner, subs_bv, results);
}
HOST_ENTRY(clcb_loc_wide_geodetic)

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

/// Cont: a thread a constraint of the event's attributes. Grid: 1-D, tasks_count pages.
/// d_input [1] in, with [tasks_count] tasks behind it; constraints [pages][CLCB_PAGE] in; needed, owner [filters_count] in
/// fcount [filters_count] in and out; subs_bv [subscriptions_count] out
KERNEL clcb_cont(const ClcbInput* d_input, const ClcbConstraint* constraints, uint32_t* fcount,
                 const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  const uint32_t index = thread_index();
  if (index / CLCB_PAGE >= d_input->tasks_count) return;
  const ClcbTask task = tasks_of(d_input)[index / CLCB_PAGE];
  const uint32_t slot = index % CLCB_PAGE;
  if (slot >= task.count) return;
  const ClcbConstraint constraint = constraints[uint64_t(task.page) * CLCB_PAGE + slot];
  if (constraint.filter == NO_FILTER) return;
  count_constraint(constraint, fcount[constraint.filter], task, d_input->shift, fcount, needed, owner, subs_bv);
}
HOST_ENTRY(clcb_cont)

/// Cont, four constraints a thread, so that the waits for their counters overlap. Grid: 1-D, tasks_count pages.
KERNEL clcb_cont_wide(const ClcbInput* d_input, const ClcbConstraint* constraints,
                      uint32_t* fcount, const uint8_t* needed, const uint32_t* owner, uint8_t* subs_bv) {
  constexpr uint32_t THREADS = CLCB_PAGE / 4;
  const uint32_t index = thread_index();
  if (index / THREADS >= d_input->tasks_count) return;
  const ClcbTask task = tasks_of(d_input)[index / THREADS];
  const uint32_t shift = d_input->shift;
  const ClcbConstraint* page = constraints + uint64_t(task.page) * CLCB_PAGE;
  ClcbConstraint mine[4];
  uint32_t counters[4];
  for (uint32_t each = 0; each < 4; each++) {
    const uint32_t slot = index % THREADS + each * THREADS;
    mine[each] = slot < task.count ? page[slot] : ClcbConstraint{NO_FILTER, 0};
  }
  for (uint32_t each = 0; each < 4; each++) {
    counters[each] = mine[each].filter == NO_FILTER ? 0 : fcount[mine[each].filter];
  }
  for (uint32_t each = 0; each < 4; each++) {
    count_constraint(mine[each], counters[each], task, shift, fcount, needed, owner, subs_bv);
  }
}
HOST_ENTRY(clcb_cont_wide)

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

/// Zip, sixteen subscriptions a thread; subs_bv is a multiple of sixteen long.
KERNEL clcb_zip_wide(const ClcbInput* d_input, uint8_t* subs_bv, uint32_t* results) {
  const uint32_t index = thread_index();
  if (index * 16 >= d_input->subscriptions_count) return;
  uint32_t* words = reinterpret_cast<uint32_t*>(subs_bv);
  const Quad flags = load_quad(words, index);
  if ((flags.a | flags.b | flags.c | flags.d) == 0) return;
  store_quad(words, index, Quad{0, 0, 0, 0});
  const uint32_t all[4] = {flags.a, flags.b, flags.c, flags.d};
  for (uint32_t byte = 0; byte < 16; byte++) {
    if (all[byte / 4] >> (byte % 4 * 8) & 0xff) results[SUBS + atomic_add(results, 1)] = index * 16 + byte;
  }
}
HOST_ENTRY(clcb_zip_wide)

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

/// Writes constraints into slots of pages: a thread an update, each slot at most once.
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
