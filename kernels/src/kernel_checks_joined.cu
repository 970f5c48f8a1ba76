// Checks past the paper: many changes evaluated at once, and joins in the place of copies that cannot hold.
//
// The host gives each node of the violation's normal form, in which every quantifier is `some event makes the matrix true`, perhaps
// negated. A node's *entries* are assignments that may make its matrix true: an entry of the node around it, and an event, which a hash of
// attributes or a cell of a grid brought together where there is such a join. Sets change while a batch goes by, and events do not. So a
// leaf is worked out once for all states of the batch, an entry holds in a range of them, and truth is a word of 64 states: one word for
// each chunk of 63 changes, whose lowest bit is the state before them.
#include "checks.cuh"
#include "lanes.cuh"

/// Most leaves of a node, and steps of its three programs together.
constexpr uint32_t JOINED_LEAVES = 64;
constexpr uint32_t JOINED_STEPS = 256;
/// Most words that a program has on its stack.
constexpr uint32_t JOINED_STACK = 16;
/// Most keys of an event in an index, and most that are looked up for it; with more of these it is compared with all.
constexpr uint32_t JOINED_KEYS = 4;
constexpr uint32_t JOINED_LOOKUPS = 32;
/// Changes of a chunk.
constexpr uint32_t JOINED_CHUNK = 63;

/// What a step of a program does: the first three push a word, and 0 pushes one of all states.
constexpr uint32_t STEP_FALSE = 1;
constexpr uint32_t STEP_LEAF = 2;
constexpr uint32_t STEP_SOME = 3;
constexpr uint32_t STEP_AND = 4;
constexpr uint32_t STEP_OR = 5;

/// Words that a batch counts in. The entries of each node follow.
constexpr uint32_t JOINED_DOUBTS = 0;
constexpr uint32_t JOINED_TOLD = 1;
constexpr uint32_t JOINED_ENTRIES = 2;

struct JoinedStep {
  uint8_t op;
  /// A leaf or a node.
  uint8_t a;
  /// Whose leaf, or around which entry: 0 is the entry's own, 1 the one around it.
  uint8_t level;
  /// 0 for what is to be false.
  uint8_t holds;
};
static_assert(sizeof(JoinedStep) == 4, "shared with Rust");

/// A node, and one of the ways to its events.
struct JoinedNode {
  ChecksCode code[CODE];
  JoinedStep steps[JOINED_STEPS];
  uint16_t leaf_begin[JOINED_LEAVES];
  uint16_t leaf_count[JOINED_LEAVES];
  /// Leaves without which there is no entry, and those that are to be true.
  uint64_t needed;
  uint64_t wanted;
  /// Nodes around it, the nearest first and the root last, the depths of their variables, and the variables, after its own.
  uint8_t around[DEPTH + 2];
  uint8_t depths[DEPTH + 2];
  uint8_t variables[DEPTH + 2];
  /// Nodes whose entries are around one of its own.
  uint8_t inner[DEPTH];
  uint8_t padding[2];
  uint32_t around_count;
  uint32_t inner_count;
  uint32_t number;
  uint32_t depth;
  uint32_t leaves;
  /// Ends of the programs: what is true, where it has links inside, and where the links around go through it.
  uint32_t value_end;
  uint32_t linked_end;
  uint32_t through_end;
  /// Members of its set.
  uint32_t members_begin;
  uint32_t members_count;
  /// The index, the first word of the look-up in a row of keys, and the depth of the event that looks up.
  uint32_t index;
  uint32_t lookup;
  uint32_t from;
  uint32_t unused;
};
static_assert(sizeof(JoinedNode) == 4096 + 1024 + 256 + 16 + 72 + 56, "shared with Rust");

struct JoinedLayout {
  /// What leaves and links need: columns, variables, the world, the most doubts.
  ChecksLayout leaves;
  /// Words of an event's row of keys.
  uint32_t keys;
  /// Entries that each node has room for.
  uint32_t room;
  uint32_t chunks;
  /// Links that there is room for.
  uint32_t told_max;
  /// Buckets of each index, a power of two, and items that each has room for.
  uint32_t buckets;
  uint32_t items;
};
static_assert(sizeof(JoinedLayout) == 64, "shared with Rust");

/// An event in a set, in the states from one to another.
struct JoinedMember {
  uint32_t slot;
  uint32_t from;
  uint32_t to;
};
static_assert(sizeof(JoinedMember) == 12, "shared with Rust");

struct JoinedEntry {
  /// The entry around it.
  uint32_t parent;
  uint32_t slot;
  /// States in which all of its events are there.
  uint32_t from;
  uint32_t to;
  /// Leaves that are true.
  uint64_t leaves;
};
static_assert(sizeof(JoinedEntry) == 24, "shared with Rust");

struct JoinedItem {
  uint64_t key;
  uint32_t member;
  uint32_t unused;
};
static_assert(sizeof(JoinedItem) == 16, "shared with Rust");

/// A leaf of an entry that the device cannot decide.
struct JoinedDoubt {
  uint32_t node;
  uint32_t entry;
  uint32_t leaf;
  uint32_t slots[DEPTH];
};
static_assert(sizeof(JoinedDoubt) == 76, "shared with Rust");

struct JoinedDecision {
  uint32_t at;
  uint32_t leaf;
};
static_assert(sizeof(JoinedDecision) == 8, "shared with Rust");

/// Entries around an entry, the nearest first, and their events by depth.
struct Around {
  uint32_t entries[DEPTH + 1];
  uint32_t slots[DEPTH];
};

DEVICE void or_wide(uint64_t* word, uint64_t bits) {
#ifdef __CUDACC__
  atomicOr(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(bits));
#else
  *word |= bits;
#endif
}

// ---- What is known of an event ----------------------------------------------------------------------------------

// Puts rows of new events in their places: the slot, the event, its cells, its keys.
//
// Grid: 1-D, a thread for each word.
// rows [count][1 + 6 + 2 * columns + keys] in
KERNEL checks_joined_events(const uint64_t* rows, uint32_t count, CONSTANT JoinedLayout layout, uint64_t* events,
                            uint64_t* cells, uint64_t* keys) {
  const uint32_t width = 7 + 2 * layout.leaves.columns + layout.keys;
  const uint32_t row = thread_index() / width;
  uint32_t at = thread_index() % width;
  if (row >= count || at == 0) return;
  const size_t slot = rows[size_t{row} * width];
  const uint64_t word = rows[size_t{row} * width + at];
  at -= 1;
  if (at < 6) {
    events[slot * 6 + at] = word;
  } else if (at - 6 < 2 * layout.leaves.columns) {
    cells[slot * 2 * layout.leaves.columns + at - 6] = word;
  } else {
    keys[slot * layout.keys + at - 6 - 2 * layout.leaves.columns] = word;
  }
}
HOST_ENTRY(checks_joined_events)

// ---- Buckets of indices -----------------------------------------------------------------------------------------
// An index has two words for each bucket, where its items begin and how many they are, and its items together by the bucket.

DEVICE uint32_t bucket_of(uint64_t key, uint32_t buckets) {
  return static_cast<uint32_t>((key ^ key >> 29) * 0x9e3779b97f4a7c15u >> 32) & (buckets - 1);
}

// Counts the items of each bucket.
//
// Grid: 1-D, a thread for each member of the index's set.
// buckets [indices][buckets][2] in and out
KERNEL checks_joined_count(uint32_t index, uint32_t members_begin, uint32_t members_count, CONSTANT JoinedLayout layout,
                           const JoinedMember* members, const uint64_t* keys, uint32_t* buckets) {
  if (thread_index() >= members_count) return;
  const uint64_t* own = keys + size_t{members[members_begin + thread_index()].slot} * layout.keys + index * (JOINED_KEYS + 1);
  for (uint32_t key = 0; key < own[0]; key++) {
    atomic_add(buckets + (size_t{index} * layout.buckets + bucket_of(own[1 + key], layout.buckets)) * 2 + 1, 1);
  }
}
HOST_ENTRY(checks_joined_count)

// Gives each bucket its room, by a prefix sum over each warp.
//
// Grid: 1-D, a thread for each bucket of the index, whole warps.
KERNEL checks_joined_begin(uint32_t index, CONSTANT JoinedLayout layout, uint32_t* buckets, uint32_t* cursors) {
  const bool is_there = thread_index() < layout.buckets;
  uint32_t* bucket = buckets + (size_t{index} * layout.buckets + (is_there ? thread_index() : 0)) * 2;
  uint32_t total;
  const uint32_t before = lanes_before(is_there ? bucket[1] : 0, &total);
  uint32_t begin = 0;
  if (lane_index() == 0 && total > 0) begin = atomic_add(cursors + index, total);
  begin = shuffle(begin, 0);
  if (!is_there) return;
  bucket[0] = begin + before;
  bucket[1] = 0;
}
HOST_ENTRY(checks_joined_begin)

// Puts the items in, and counts them once more.
//
// Grid: as for checks_joined_count.
KERNEL checks_joined_fill(uint32_t index, uint32_t members_begin, uint32_t members_count, CONSTANT JoinedLayout layout,
                          const JoinedMember* members, const uint64_t* keys, uint32_t* buckets, JoinedItem* items) {
  if (thread_index() >= members_count) return;
  const uint32_t member = members_begin + thread_index();
  const uint64_t* own = keys + size_t{members[member].slot} * layout.keys + index * (JOINED_KEYS + 1);
  for (uint32_t key = 0; key < own[0]; key++) {
    uint32_t* bucket = buckets + (size_t{index} * layout.buckets + bucket_of(own[1 + key], layout.buckets)) * 2;
    const uint32_t at = bucket[0] + atomic_add(bucket + 1, 1);
    items[size_t{index} * layout.items + at] = {own[1 + key], member, 0};
  }
}
HOST_ENTRY(checks_joined_fill)

// ---- Entries ----------------------------------------------------------------------------------------------------

DEVICE void around_of(const JoinedNode& node, const JoinedLayout& layout, const JoinedEntry* entries, uint32_t parent,
                      Around& around) {
  for (uint32_t level = 0; level < node.around_count; level++) {
    around.entries[level] = parent;
    // The root has an entry without an event.
    if (level + 1 == node.around_count) break;
    const JoinedEntry& entry = entries[size_t{node.around[level]} * layout.room + parent];
    around.slots[node.depths[level]] = entry.slot;
    parent = entry.parent;
  }
}

/// What a kernel that makes entries sees.
struct Making {
  const JoinedNode& node;
  const JoinedLayout& layout;
  const ChecksEvent* events;
  const ChecksCell* cells;
  const JoinedMember* members;
  JoinedEntry* entries;
  uint64_t* any;
  JoinedDoubt* doubts;
  uint64_t* head;

  /// Whether leaves let a member be an entry beside those around; which of them are true, and which in doubt.
  MEMBER bool judge(Around& around, uint32_t member, JoinedEntry& entry, uint64_t& in_doubt) const {
    const JoinedMember own = members[member];
    entry.parent = around.entries[0];
    entry.slot = own.slot;
    entry.from = own.from;
    entry.to = own.to;
    if (node.around_count > 1) {
      const JoinedEntry& outer = entries[size_t{node.around[0]} * layout.room + entry.parent];
      if (outer.from > entry.from) entry.from = outer.from;
      if (outer.to < entry.to) entry.to = outer.to;
    }
    if (entry.from >= entry.to) return false;
    around.slots[node.depth] = own.slot;
    entry.leaves = 0;
    // Those without which there is none are in front.
    for (uint32_t leaf = 0; leaf < node.leaves; leaf++) {
      const uint64_t bit = uint64_t{1} << leaf;
      const uint32_t may = leaf_truth(node.code + node.leaf_begin[leaf], node.leaf_count[leaf], around.slots, events,
                                      cells, layout.leaves);
      const bool holds = may == MAY_HOLD, is_doubtful = (may & MAY_HOLD) != 0 && !holds;
      if (node.needed & bit && !is_doubtful && holds != ((node.wanted & bit) != 0)) return false;
      if (holds) entry.leaves |= bit;
      if (is_doubtful) in_doubt |= bit;
    }
    return true;
  }

  /// Appends the entries of a warp's lanes, and tells what is in doubt of them.
  MEMBER void append(bool is_entry, const Around& around, const JoinedEntry& entry, uint64_t in_doubt) const {
    const uint32_t lanes = ballot(is_entry);
    if (lanes == 0) return;
    uint64_t begin = 0;
    if (lane_index() == 0) begin = atomic_add_wide(head + JOINED_ENTRIES + node.number, popcount(lanes));
    begin = shuffle(begin, 0) + popcount(lanes & lanes_below());
    if (!is_entry || begin >= layout.room) return;
    const uint32_t at = static_cast<uint32_t>(begin);
    entries[size_t{node.number} * layout.room + at] = entry;
    for (uint32_t inner = 0; inner < node.inner_count; inner++) {
      uint64_t* words = any + (size_t{node.inner[inner]} * layout.room + at) * layout.chunks;
      for (uint32_t chunk = 0; chunk < layout.chunks; chunk++) words[chunk] = 0;
    }
    for (uint32_t leaf = 0; in_doubt >> leaf != 0 && leaf < JOINED_LEAVES; leaf++) {
      if ((in_doubt >> leaf & 1) == 0) continue;
      const uint64_t doubt = atomic_add_wide(head + JOINED_DOUBTS, 1);
      if (doubt >= layout.leaves.doubts_max) continue;
      doubts[doubt].node = node.number;
      doubts[doubt].entry = at;
      doubts[doubt].leaf = leaf;
      for (uint32_t depth = 0; depth <= node.depth; depth++) doubts[doubt].slots[depth] = around.slots[depth];
    }
  }

  MEMBER uint32_t outer_count() const {
    const uint64_t count = head[JOINED_ENTRIES + node.around[0]];
    return count < layout.room ? static_cast<uint32_t>(count) : layout.room;
  }
};

// Makes the entries of a node from all events of its set.
//
// Grid: 1-D, any, whole warps.
// entries [nodes][room] in and out
// any     [nodes][room][chunks] out: zero for the nodes around which new entries are
// doubts  [doubts_max] out
// head    in and out
KERNEL checks_joined_scan(CONSTANT JoinedNode node, CONSTANT JoinedLayout layout, const ChecksEvent* events,
                          const ChecksCell* cells, const JoinedMember* members, JoinedEntry* entries, uint64_t* any,
                          JoinedDoubt* doubts, uint64_t* head) {
  const Making making{node, layout, events, cells, members, entries, any, doubts, head};
  const uint64_t pairs = uint64_t{making.outer_count()} * node.members_count;
  for (uint64_t first = uint64_t{warp_index()} * LANES; first < pairs; first += threads_count()) {
    const uint64_t pair = first + lane_index();
    Around around = {};
    JoinedEntry entry = {};
    uint64_t in_doubt = 0;
    bool is_entry = false;
    if (pair < pairs) {
      around_of(node, layout, entries, static_cast<uint32_t>(pair / node.members_count), around);
      const uint32_t member = static_cast<uint32_t>(pair % node.members_count);
      is_entry = making.judge(around, node.members_begin + member, entry, in_doubt);
    }
    making.append(is_entry, around, entry, in_doubt);
  }
}
HOST_ENTRY(checks_joined_scan)

// Makes the entries of a node from the events that an index has for those around: a warp for each entry around.
//
// Grid: 1-D, any, whole warps. As for checks_joined_scan.
KERNEL checks_joined_probe(CONSTANT JoinedNode node, CONSTANT JoinedLayout layout, const ChecksEvent* events,
                           const ChecksCell* cells, const uint64_t* keys, const JoinedMember* members,
                           const uint32_t* buckets, const JoinedItem* items, JoinedEntry* entries, uint64_t* any,
                           JoinedDoubt* doubts, uint64_t* head) {
  const Making making{node, layout, events, cells, members, entries, any, doubts, head};
  const uint32_t outer_count = making.outer_count();
  for (uint32_t parent = warp_index(); parent < outer_count; parent += warps_count()) {
    Around around = {};
    around_of(node, layout, entries, parent, around);
    const uint64_t* asked = keys + size_t{around.slots[node.from]} * layout.keys + node.lookup;
    // Where there are too many keys, all events are looked at, as if they were in one bucket.
    const bool is_all = asked[0] > JOINED_LOOKUPS;
    const uint32_t asked_count = is_all ? 1 : static_cast<uint32_t>(asked[0]);
    for (uint32_t key = 0; key < asked_count; key++) {
      const uint32_t* bucket =
          buckets + (size_t{node.index} * layout.buckets + bucket_of(asked[1 + key], layout.buckets)) * 2;
      const uint32_t count = is_all ? node.members_count : bucket[1];
      for (uint32_t first = 0; first < count; first += LANES) {
        const uint32_t at = first + lane_index();
        JoinedEntry entry = {};
        uint64_t in_doubt = 0;
        bool is_entry = false;
        if (at < count) {
          const JoinedItem item = is_all ? JoinedItem{asked[1 + key], node.members_begin + at, 0}
                                         : items[size_t{node.index} * layout.items + bucket[0] + at];
          is_entry = item.key == asked[1 + key] && making.judge(around, item.member, entry, in_doubt);
        }
        making.append(is_entry, around, entry, in_doubt);
      }
    }
  }
}
HOST_ENTRY(checks_joined_probe)

// Makes leaves true that the host decided.
//
// Grid: 1-D, a thread for each decision.
KERNEL checks_joined_decide(const JoinedDecision* decisions, uint32_t count, JoinedEntry* entries) {
  if (thread_index() >= count) return;
  const JoinedDecision& decision = decisions[thread_index()];
  or_wide(&entries[decision.at].leaves, uint64_t{1} << decision.leaf);
}
HOST_ENTRY(checks_joined_decide)

// ---- Truth ------------------------------------------------------------------------------------------------------

/// States of a chunk in a range of states of the batch.
DEVICE uint64_t states(uint32_t from, uint32_t to, uint32_t chunk) {
  const uint32_t begin = chunk * JOINED_CHUNK;
  const uint32_t low = from <= begin ? 0 : from - begin, high = to <= begin ? 0 : to - begin;
  const uint64_t not_before = low >= 64 ? 0 : ~uint64_t{0} << low;
  const uint64_t not_after = high >= 64 ? ~uint64_t{0} : (uint64_t{1} << high) - 1;
  return not_before & not_after;
}

/// What programs are about: an entry and those around it, in a chunk.
struct Seen {
  const JoinedNode& node;
  const JoinedLayout& layout;
  const JoinedEntry* entries;
  const uint64_t* any;
  /// The entry, and those around it.
  uint32_t at[DEPTH + 2];
  uint32_t chunk;

  MEMBER void look(uint32_t entry) {
    at[0] = entry;
    for (uint32_t level = 0; level < node.around_count; level++) {
      const uint32_t number = level == 0 ? node.number : node.around[level - 1];
      entry = entries[size_t{number} * layout.room + entry].parent;
      at[level + 1] = entry;
    }
  }

  /// Runs steps of a program: the states in which it is true.
  MEMBER uint64_t run(uint32_t begin, uint32_t end) const {
    uint64_t stack[JOINED_STACK];
    uint32_t top = 0;
    for (uint32_t step = begin; step < end; step++) {
      const JoinedStep& now = node.steps[step];
      switch (now.op) {
        case STEP_LEAF: {
          const uint32_t number = now.level == 0 ? node.number : node.around[now.level - 1];
          const uint64_t leaves = entries[size_t{number} * layout.room + at[now.level]].leaves;
          stack[top++] = (leaves >> now.a & 1) == now.holds ? ~uint64_t{0} : 0;
          break;
        }
        case STEP_SOME: {
          const uint64_t states = any[(size_t{now.a} * layout.room + at[now.level]) * layout.chunks + chunk];
          stack[top++] = now.holds ? states : ~states;
          break;
        }
        case STEP_AND:
          top--;
          stack[top - 1] &= stack[top];
          break;
        case STEP_OR:
          top--;
          stack[top - 1] |= stack[top];
          break;
        case STEP_FALSE: stack[top++] = 0; break;
        default: stack[top++] = ~uint64_t{0};
      }
    }
    return stack[0];
  }
};

// The states in which each entry of a node is true, gathered around the entries that it is in.
//
// Grid: 1-D, a thread for each of the node's entries and chunks.
// any   [nodes][room][chunks] in and out
// words [nodes][room][chunks] out
KERNEL checks_joined_truth(CONSTANT JoinedNode node, CONSTANT JoinedLayout layout, uint32_t count,
                           const JoinedEntry* entries, uint64_t* any, uint64_t* words) {
  const uint32_t entry = thread_index() / layout.chunks, chunk = thread_index() % layout.chunks;
  if (entry >= count) return;
  Seen seen{node, layout, entries, any, {}, chunk};
  seen.look(entry);
  const JoinedEntry& own = entries[size_t{node.number} * layout.room + entry];
  const uint64_t word = seen.run(0, node.value_end) & states(own.from, own.to, chunk);
  words[(size_t{node.number} * layout.room + entry) * layout.chunks + chunk] = word;
  if (node.around_count > 0 && word != 0) {
    or_wide(any + (size_t{node.number} * layout.room + own.parent) * layout.chunks + chunk, word);
  }
}
HOST_ENTRY(checks_joined_truth)

// ---- Links ------------------------------------------------------------------------------------------------------

// The links that end at each entry of a node, those that came or went in the batch: the others stay on the device. Room is given out by
// a prefix sum over each warp. For the nodes from the outermost inwards.
//
// Grid: 1-D, a thread for each of the node's entries and chunks, whole warps.
// words [nodes][room][chunks] in and out: becomes the states in which links go through the entry
// told  [told_max][2 + variables / 2, rounded up] out: states, the chunk, slots
KERNEL checks_joined_links(CONSTANT JoinedNode node, CONSTANT JoinedLayout layout, uint32_t count,
                           const JoinedEntry* entries, const uint64_t* any, uint64_t* words, uint64_t* told,
                           uint64_t* head) {
  const uint32_t entry = thread_index() / layout.chunks, chunk = thread_index() % layout.chunks;
  const bool is_there = entry < count;
  uint64_t ends = 0;
  if (is_there) {
    Seen seen{node, layout, entries, any, {}, chunk};
    seen.look(entry);
    uint64_t& word = words[(size_t{node.number} * layout.room + entry) * layout.chunks + chunk];
    if (node.around_count > 0) {
      word &= words[(size_t{node.around[0]} * layout.room + seen.at[1]) * layout.chunks + chunk];
      word &= seen.run(node.linked_end, node.through_end);
    }
    ends = word & ~seen.run(node.value_end, node.linked_end);
  }
  const bool is_told = ((ends ^ ends >> 1) & ~(uint64_t{1} << 63)) != 0;
  uint32_t total;
  const uint32_t before = lanes_before(is_told ? 1 : 0, &total);
  uint64_t begin = 0;
  if (lane_index() == 0 && total > 0) begin = atomic_add_wide(head + JOINED_TOLD, total);
  begin = shuffle(begin, 0) + before;
  if (!is_told || begin >= layout.told_max) return;
  uint64_t* link = told + begin * (2 + (layout.leaves.variables + 1) / 2);
  link[0] = ends;
  link[1] = chunk;
  uint32_t* slots = reinterpret_cast<uint32_t*>(link + 2);
  for (uint32_t variable = 0; variable < layout.leaves.variables; variable++) slots[variable] = ABSENT;
  uint32_t at = entry;
  for (uint32_t level = 0; level < node.around_count; level++) {
    const uint32_t number = level == 0 ? node.number : node.around[level - 1];
    const JoinedEntry& bound = entries[size_t{number} * layout.room + at];
    slots[node.variables[level]] = bound.slot;
    at = bound.parent;
  }
}
HOST_ENTRY(checks_joined_links)
