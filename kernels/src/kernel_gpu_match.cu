// Matches a batch of events: a warp an event, or several where events are few. Each looks through the cells around its
// event in the base, then through the log, and decides what passes by its constraints.

#include "gpu.cuh"
#include "lanes.cuh"
#include "launch.cuh"

/// Candidates that a warp gathers before it decides them together.
constexpr uint32_t QUEUE = 64;
/// Warps of a block at most.
constexpr uint32_t WARPS_MAX = 8;
/// Of a candidate: it lies in the log; its area holds the event for certain.
constexpr uint32_t FROM_LOG = 1u << 31;
constexpr uint32_t IN_AREA = 1u << 30;

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
  uint32_t* found;
  uint32_t capacity;
  uint32_t* queue;
  uint32_t queued;

  /// Puts the lanes' candidates into the queue.
  MEMBER void push(bool hit, uint32_t candidate) {
    const uint32_t hits = ballot(hit);
    if (hit) queue[queued + popcount(hits & lanes_below())] = candidate;
    queued += popcount(hits);
    warp_sync();
    if (queued > QUEUE - LANES) drain();
  }

  /// Tests one slot's names and place.
  MEMBER bool passes(uint32_t mask, const Place* place, uint32_t* flags) const {
    if (mask & ~event.mask) return false;
    const Verdict verdict = location_verdict(event, *place);
    *flags = verdict == Verdict::Yes ? IN_AREA : 0;
    return verdict != Verdict::No;
  }

  /// Looks at the slots of the base from one to another; every lane has the same.
  MEMBER void search_slots(uint32_t start, uint32_t end, uint32_t lane, uint32_t lanes) {
    for (uint32_t first = start; first < end; first += lanes) {
      const uint32_t slot = first + lane;
      uint32_t flags = 0;
      const bool hit = slot < end && passes(base.masks[slot], &base.places[slot], &flags);
      push(hit, slot | flags);
    }
  }

  MEMBER void search_log(uint32_t lane, uint32_t lanes) {
    const uint32_t length = log.end - log.start;
    for (uint32_t first = 0; first < length; first += lanes) {
      const uint32_t slot = (log.start + first + lane) & log.mask;
      uint32_t flags = 0;
      const bool hit = first + lane < length && passes(log.masks[slot], &log.places[slot], &flags);
      push(hit, slot | flags | FROM_LOG);
    }
  }

  /// Decides one candidate by its constraints; tells what to answer.
  MEMBER bool decide(uint32_t candidate, uint32_t* word, uint32_t* id) const {
    const uint32_t slot = candidate & ~(FROM_LOG | IN_AREA);
    uint32_t entry;
    if (candidate & FROM_LOG) {
      entry = log.entries[slot];
      if (log.stamps[slot] != table.stamps[entry]) return false;
    } else {
      entry = base.entries[slot];
      if (table.stamps[entry] > base.epoch) return false;
    }
    const uint32_t kind = table.kinds[entry];
    // A slot of the ring may be left over from before the entry was there.
    if (!(kind & KIND_LIVE)) return false;
    const GpuConstraint* constraints = table.constraints + table.starts[entry];
    bool certain = candidate & IN_AREA && kind & KIND_CIRCLE && !(event.flags & EVENT_DOUBT);
    for (uint32_t each = 0; each < (kind & KIND_CONSTRAINTS); each++) {
      const Verdict verdict =
          value_verdict(constraints[each], attributes, event.flags & EVENT_ATTRIBUTES);
      if (verdict == Verdict::No) return false;
      certain = certain && verdict == Verdict::Yes;
    }
    *word = number | (certain ? 0 : ANSWER_DOUBT);
    *id = certain ? table.subscriptions[entry] : entry;
    return true;
  }

  /// Decides what is in the queue and writes the answers; those past the capacity are counted only.
  MEMBER void drain() {
    for (uint32_t first = 0; first < queued; first += LANES) {
      const uint32_t at = first + lane_index();
      uint32_t word = 0, id = 0;
      const bool answer = at < queued && decide(queue[at], &word, &id);
      const uint32_t answers = ballot(answer);
      if (answers == 0) continue;
      uint64_t place = 0;
      if (lane_index() == 0) {
        place = atomic_add_wide(reinterpret_cast<uint64_t*>(found), popcount(answers));
      }
      place = shuffle(place, 0) + popcount(answers & lanes_below());
      if (answer && place < capacity) {
        found[FOUND_HEAD + 2 * place] = word;
        found[FOUND_HEAD + 2 * place + 1] = id;
      }
    }
    queued = 0;
    warp_sync();
  }
};

/// Grid: 1-D, events_count * parts warps; the parts of an event share its slots out among them. Pairs come unordered.
/// exchange: at 0 [events_count] GpuEvent in; at attributes_at (in words) their GpuAttribute in; at found_at, a multiple
/// of FOUND_HEAD, the count of pairs in 64 bits, starts at 0, ends above capacity on overflow; FOUND_HEAD words on
/// [capacity] pairs out
/// offsets [buckets_mask + 2], occupied [1], base_*, log_*, the table's arrays in
KERNEL gpu_match(uint32_t* exchange, uint32_t events_count, uint32_t parts, uint32_t attributes_at,
                 uint32_t found_at, uint32_t capacity, GpuLevels levels, const uint32_t* occupied,
                 const uint32_t* offsets, uint32_t buckets_mask, uint32_t epoch, const Place* base_places,
                 const uint32_t* base_masks, const uint32_t* base_entries, const Place* log_places,
                 const uint32_t* log_masks, const uint32_t* log_entries, const uint32_t* log_stamps,
                 uint32_t log_start, uint32_t log_end, uint32_t log_mask, const uint32_t* stamps,
                 const uint32_t* subscriptions, const uint32_t* kinds, const uint32_t* starts,
                 const GpuConstraint* constraints) {
  SHARED uint32_t queues[WARPS_MAX][QUEUE];
  const uint32_t number = warp_index() / parts;
  if (number >= events_count) return;
  const uint32_t part = warp_index() % parts;
  const GpuEvent event = reinterpret_cast<const GpuEvent*>(exchange)[number];
  const GpuAttribute* attributes =
      reinterpret_cast<const GpuAttribute*>(exchange + attributes_at) + event.attributes;
  Search search = {event,
                   attributes,
                   number,
                   {offsets, buckets_mask, epoch, base_places, base_masks, base_entries},
                   {log_places, log_masks, log_entries, log_stamps, log_start, log_end, log_mask},
                   {stamps, subscriptions, kinds, starts, constraints},
                   exchange + found_at,
                   capacity,
                   queues[warp_in_block()],
                   0};
  const uint32_t lane = part * LANES + lane_index();
  const uint32_t lanes = parts * LANES;
  const uint32_t levels_there = *occupied;
  for (uint32_t level = 0; level < LEVELS; level++) {
    if (!(levels_there >> level & 1)) continue;
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
        const uint32_t end = many == 0 ? 0 : offsets[from + many];
        for (uint32_t left = ballot(start < end); left != 0; left &= left - 1) {
          const uint32_t owner = lowest_bit(left);
          search.search_slots(shuffle(start, owner), shuffle(end, owner), lane, lanes);
        }
      }
    }
  }
  search.search_log(lane, lanes);
  search.drain();
}
HOST_ENTRY(gpu_match)
