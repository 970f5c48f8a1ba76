// Matches a batch of events: a warp an event, or several where events are few. Each looks through the cells around its
// event in the base, then through the log, and decides what passes by its constraints.

#include "gpu.cuh"
#include "lanes.cuh"
#include "launch.cuh"

/// Candidates that a warp gathers before it decides them together.
constexpr uint32_t QUEUE = 64;
/// Warps of a block at most.
constexpr uint32_t WARPS_MAX = 8;
/// Slots whose names a lane asks for before it looks at any: the waits for memory overlap.
constexpr uint32_t SLOTS = 8;
/// Constraints that a lane asks for together.
constexpr uint32_t CONSTRAINTS = 4;
/// Attributes of an event that are brought from the host's memory once; those of an event with more are read there.
constexpr uint32_t NEAR = 64;
/// Of a candidate: it lies in the log.
constexpr uint32_t FROM_LOG = 1u << 31;
/// What a warp that is done adds to the tally: answers are counted below.
constexpr uint64_t DONE = uint64_t(1) << 48;

/// Filters sorted by cell. Entries with a stamp above `epoch` have changed since: their places here are old.
struct Base {
  const uint32_t* offsets;
  uint32_t buckets_mask;
  uint32_t epoch;
  const Place* places;
  const uint32_t* masks;
  const uint32_t* entries;
};

/// Entries that have changed since the base was sorted, a ring. An entry counts where its stamp is the last.
struct Log {
  const Place* places;
  const uint32_t* masks;
  const uint32_t* entries;
  const uint32_t* stamps;
  uint32_t start, end, mask;
};

struct Table {
  const uint32_t* stamps;
  const uint32_t* subscriptions;
  const uint32_t* kinds;
  const uint32_t* starts;
  const GpuConstraint* constraints;
};

/// What one warp does for one event.
struct Search {
  const GpuEvent event;
  const GpuAttribute* attributes;
  uint32_t number;
  Base base;
  Log log;
  Table table;
  uint64_t* found;
  uint64_t* tally;
  uint32_t capacity;
  uint32_t* queue;
  uint32_t queued;

  /// Puts the lanes' candidates into the queue; `hits` are the lanes that have one.
  MEMBER void push(uint32_t hits, bool hit, uint32_t candidate) {
    if (hit) queue[queued + popcount(hits & lanes_below())] = candidate;
    queued += popcount(hits);
    warp_sync();
    if (queued > QUEUE - LANES) drain();
  }

  /// Looks for slots without a name that the event lacks: `length` of them from `start` on, modulo `ring` + 1. Every lane
  /// has the same.
  MEMBER void scan(const uint32_t* masks, uint32_t start, uint32_t length, uint32_t ring, uint32_t flag,
                   uint32_t lane, uint32_t lanes) {
    for (uint32_t first = 0; first < length; first += lanes * SLOTS) {
      uint32_t lacks[SLOTS];
      for (uint32_t each = 0; each < SLOTS; each++) {
        const uint32_t at = first + each * lanes + lane;
        lacks[each] = at < length ? masks[(start + at) & ring] & ~event.mask : 1;
      }
      uint32_t passed = 0;
      for (uint32_t each = 0; each < SLOTS; each++) passed |= lacks[each] == 0 ? 1u << each : 0;
      for (uint32_t hits = ballot(passed != 0); hits != 0; hits = ballot(passed != 0)) {
        const uint32_t each = passed == 0 ? 0 : lowest_bit(passed);
        push(hits, passed != 0, ((start + first + each * lanes + lane) & ring) | flag);
        passed &= passed - 1;
      }
    }
  }

  /// Decides one candidate by its place and its constraints; tells what to answer.
  MEMBER bool decide(uint32_t candidate, uint64_t* answer) const {
    const bool from_log = candidate & FROM_LOG;
    const uint32_t slot = candidate & ~FROM_LOG;
    const Place place = (from_log ? log.places : base.places)[slot];
    const uint32_t entry = (from_log ? log.entries : base.entries)[slot];
    const Verdict there = location_verdict(event, place);
    if (there == Verdict::No) return false;
    const uint32_t stamp = table.stamps[entry];
    const uint32_t kind = table.kinds[entry];
    const uint32_t start = table.starts[entry];
    const uint32_t subscription = table.subscriptions[entry];
    if (from_log ? log.stamps[slot] != stamp : stamp > base.epoch) return false;
    // A slot of the ring may be left over from before the entry was there.
    if (!(kind & KIND_LIVE)) return false;
    bool certain = there == Verdict::Yes && kind & KIND_CIRCLE && !(event.flags & EVENT_DOUBT);
    const uint32_t count = kind & KIND_CONSTRAINTS;
    for (uint32_t first = 0; first < count; first += CONSTRAINTS) {
      GpuConstraint constraints[CONSTRAINTS];
      for (uint32_t each = 0; each < CONSTRAINTS; each++) {
        if (first + each < count) constraints[each] = table.constraints[start + first + each];
      }
      for (uint32_t each = 0; each < CONSTRAINTS; each++) {
        if (first + each >= count) continue;
        const Verdict verdict = value_verdict(constraints[each], attributes, event.flags & EVENT_ATTRIBUTES);
        if (verdict == Verdict::No) return false;
        certain = certain && verdict == Verdict::Yes;
      }
    }
    *answer = uint64_t(certain ? subscription : entry) << 32 | number | (certain ? 0 : ANSWER_DOUBT);
    return true;
  }

  /// Decides what is in the queue and writes the answers; those past the capacity are counted only.
  MEMBER void drain() {
    for (uint32_t first = 0; first < queued; first += LANES) {
      const uint32_t at = first + lane_index();
      uint64_t answer = 0;
      const bool holds = at < queued && decide(queue[at], &answer);
      const uint32_t answers = ballot(holds);
      if (answers == 0) continue;
      uint64_t place = 0;
      if (lane_index() == 0) place = atomic_add_wide(tally, popcount(answers)) % DONE;
      place = shuffle(place, 0) + popcount(answers & lanes_below());
      if (holds && place < capacity) {
        publish(&found[1 + place], answer);
        host_fence();
      }
    }
    queued = 0;
    warp_sync();
  }
};

/// Grid: 1-D, events_count * parts warps, fewer than 2^16; the parts of an event share its slots out among them. Pairs
/// come unordered.
/// sent, the host's memory: [events_count] GpuEvent in; at attributes_at (in pairs of words) their GpuAttribute in
/// found [1 + capacity] out, the host's memory: pairs, and then, as the first, their count and one, above capacity + 1 on
/// overflow
/// tally [1] in and out, 0: pairs in the lower 48 bits, warps that are done above
/// offsets [buckets_mask + 2], occupied [1], base_*, log_*, the table's arrays in
KERNEL __launch_bounds__(WARPS_MAX * LANES)
gpu_match(const uint64_t* sent, uint32_t events_count, uint32_t parts, uint32_t attributes_at, uint64_t* found,
          uint64_t* tally, uint32_t capacity, GpuLevels levels, const uint32_t* occupied, const uint32_t* offsets,
          uint32_t buckets_mask, uint32_t epoch, const Place* base_places, const uint32_t* base_masks,
          const uint32_t* base_entries, const Place* log_places, const uint32_t* log_masks,
          const uint32_t* log_entries, const uint32_t* log_stamps, uint32_t log_start, uint32_t log_end,
          uint32_t log_mask, const uint32_t* stamps, const uint32_t* subscriptions, const uint32_t* kinds,
          const uint32_t* starts, const GpuConstraint* constraints) {
  SHARED uint32_t queues[WARPS_MAX][QUEUE];
  SHARED GpuAttribute near[WARPS_MAX][NEAR];
  const uint32_t number = warp_index() / parts;
  if (number >= events_count) return;
  const uint32_t part = warp_index() % parts;
  const uint32_t levels_there = *occupied;
  const GpuEvent event = reinterpret_cast<const GpuEvent*>(sent)[number];
  const GpuAttribute* attributes =
      reinterpret_cast<const GpuAttribute*>(sent + attributes_at) + event.attributes;
  const uint32_t attributes_count = event.flags & EVENT_ATTRIBUTES;
  if (attributes_count <= NEAR) {
    for (uint32_t at = lane_index(); at < attributes_count; at += LANES) near[warp_in_block()][at] = attributes[at];
    attributes = near[warp_in_block()];
    warp_sync();
  }
  Search search = {event,
                   attributes,
                   number,
                   {offsets, buckets_mask, epoch, base_places, base_masks, base_entries},
                   {log_places, log_masks, log_entries, log_stamps, log_start, log_end, log_mask},
                   {stamps, subscriptions, kinds, starts, constraints},
                   found,
                   tally,
                   capacity,
                   queues[warp_in_block()],
                   0};
  const uint32_t lane = part * LANES + lane_index();
  const uint32_t lanes = parts * LANES;
  for (uint32_t left = levels_there; left != 0; left &= left - 1) {
    const uint32_t level = lowest_bit(left);
    Rows rows;
    rows.count = 1;
    if (level != UNBOUNDED) rows = rows_around(event, levels, level);
    for (uint32_t first_row = 0; first_row < rows.count; first_row += LANES) {
      // A lane a row finds the row's slots; then all lanes look at those of one row after the other.
      const uint32_t row = first_row + lane_index();
      uint32_t first = row_bucket(UNBOUNDED, 0, 0), count = 0;
      if (row < rows.count) {
        count = level == UNBOUNDED ? 1 : row_buckets(event, levels, level, rows, row, &first);
      }
      // Buckets are a ring, and none is looked at twice.
      first &= buckets_mask;
      if (count > buckets_mask + 1) count = buckets_mask + 1;
      const uint32_t head = count <= buckets_mask + 1 - first ? count : buckets_mask + 1 - first;
      for (uint32_t round = 0; round < 2; round++) {
        const uint32_t from = round == 0 ? first : 0;
        const uint32_t many = round == 0 ? head : count - head;
        const uint32_t start = many == 0 ? 0 : offsets[from];
        const uint32_t length = many == 0 ? 0 : offsets[from + many] - start;
        for (uint32_t owners = ballot(length > 0); owners != 0; owners &= owners - 1) {
          const uint32_t owner = lowest_bit(owners);
          search.scan(base_masks, shuffle(start, owner), shuffle(length, owner), ~0u, 0, lane, lanes);
        }
      }
    }
  }
  search.scan(log_masks, log_start, log_end - log_start, log_mask, FROM_LOG, lane, lanes);
  search.drain();
  // Each lane's answers are on their way to the host before the warp counts as done.
  if (lane_index() == 0) {
    const uint64_t earlier = atomic_add_wide(tally, DONE);
    if (earlier / DONE + 1 == events_count * parts) {
      *tally = 0;
      host_fence();
      publish(&found[0], earlier % DONE + 1);
    }
  }
}
HOST_ENTRY(gpu_match)
