// Checks by GAIN ("GAIN: GPU-based constraint checking for context consistency"): c-units from bottom to top, a c-copy to a thread.
//
// A c-copy's truths and the index of its links lie side by side at its root's place in arrays as long as the runtime tree has nodes; the
// copies of the units below come after them (section 4.4). The host knows how large each branch is (`branchSize`, Equation 2).
#include "checks.cuh"
#include "lanes.cuh"

// Algorithm 4, `CalcOffset`: the place of a copy's root, and the events that its variables are bound to. The way up to the root of the
// runtime tree is the same for all copies of a unit, but for the branches.
DEVICE uint32_t place_copy(const ChecksUnit& unit, const ChecksLayout& layout, const uint32_t* members, uint32_t copy,
                           uint32_t* slots) {
  uint32_t place = unit.origin;
  for (uint32_t depth = unit.depth; depth-- > 0;) {
    const uint32_t branch = copy % unit.count[depth];
    copy /= unit.count[depth];
    place += branch * unit.stride[depth];
    slots[depth] = members[unit.set[depth] * layout.capacity + branch];
  }
  return place;
}

// `UpdateCtxtSetKer` (Algorithm 2): a thread to each set makes the changes of that set.
//
// Grid: 1-D, a thread for each set.
// changes [count] in, in their order
// members [sets][capacity] in and out
KERNEL checks_update(const ChecksChange* changes, uint32_t count, uint32_t sets, uint32_t capacity, uint32_t* members) {
  const uint32_t set = thread_index();
  if (set >= sets) return;
  for (uint32_t change = 0; change < count; change++) {
    if (changes[change].set == set) members[set * capacity + changes[change].at] = changes[change].slot;
  }
}
HOST_ENTRY(checks_update)

// `TruthValueKer` (Figure 4): the truths of a c-unit's nodes, from the last one to the root. A leaf that doubles cannot decide is taken for
// false, and told.
//
// Grid: 1-D, `together` threads for each copy; these are 1 or LANES, and go through the branches of quantifiers together.
// truths [nodes of the runtime tree] in and out
// doubts [doubts_max] out
// head   in and out
KERNEL checks_truth(CONSTANT ChecksUnit unit, CONSTANT ChecksLayout layout, const ChecksEvent* events,
                    const ChecksCell* cells, const uint32_t* members, uint8_t* truths, ChecksDoubt* doubts,
                    uint64_t* head) {
  const uint32_t copy = thread_index() / layout.together, lane = thread_index() % layout.together;
  if (copy >= unit.copies) return;
  uint32_t slots[DEPTH];
  const uint32_t root = place_copy(unit, layout, members, copy, slots);
  // Truths of this copy's nodes, in registers (section 4.5).
  uint64_t buffer = 0;
  for (uint32_t index = unit.end; index-- > unit.begin;) {
    const ChecksNode& node = unit.nodes[index];
    uint8_t* truth = truths + root + index;
    const auto child_holds = [&](uint32_t child) {
      return layout.buffering ? (buffer >> child & 1) != 0 : (truths[root + child] & HOLDS) != 0;
    };
    bool holds = false;
    uint32_t decided = 0;
    switch (node.kind) {
      case LEAF: {
        if (layout.decided && *truth & DECIDED) {
          decided = DECIDED;
          holds = *truth & HOLDS;
          break;
        }
        const uint32_t may = leaf_truth(unit.code + node.first, node.count, slots, events, cells, layout);
        holds = may == MAY_HOLD;
        if (may & MAY_HOLD && may != MAY_HOLD && lane == 0) {
          const uint64_t at = atomic_add_wide(head + HEAD_DOUBTS, 1);
          if (at < layout.doubts_max) doubts[at] = {unit.number, index, copy};
        }
        break;
      }
      case FORALL:
      case EXISTS: {
        const bool decisive = node.kind == EXISTS;
        const uint8_t* branches = truths + root + node.origin;
        bool found = false;
        for (uint32_t branch = lane; branch < node.count && !found; branch += layout.together) {
          found = ((branches[size_t{branch} * node.stride] & HOLDS) != 0) == decisive;
        }
        if (layout.together > 1) found = ballot(found) != 0;
        holds = found == decisive;
        break;
      }
      case AND:
      case OR:
        holds = node.kind == AND;
        for (uint32_t child = node.first; child != ABSENT; child = unit.nodes[child].next) {
          holds = node.kind == AND ? holds && child_holds(child) : holds || child_holds(child);
        }
        break;
      case IMPLIES: holds = !child_holds(node.first) || child_holds(unit.nodes[node.first].next); break;
      default: holds = !child_holds(node.first);
    }
    buffer |= uint64_t{holds} << index;
    *truth = static_cast<uint8_t>((holds ? HOLDS : 0) | decided);
    if (unit.depth == 0 && index == 0) head[HEAD_ROOT] = holds;
  }
}
HOST_ENTRY(checks_truth)

// Writes what the host decided of leaves in doubt; the truths are then made once more.
//
// Grid: 1-D, a thread for each decision.
KERNEL checks_decide(const ChecksDecision* decisions, uint32_t count, uint8_t* truths) {
  const uint32_t index = thread_index();
  if (index < count) truths[decisions[index].at] = static_cast<uint8_t>(decisions[index].truth | DECIDED);
}
HOST_ENTRY(checks_decide)

// The links of a copy's node: how many there are, and what they are (Figure 5).
struct NodeLinks {
  const ChecksUnit& unit;
  const ChecksLayout& layout;
  const uint32_t* members;
  const uint8_t* truths;
  const ChecksIndex* index;
  uint32_t* links;
  uint32_t root;
  uint32_t lane;

  MEMBER bool holds(uint32_t place) const { return (truths[place] & HOLDS) != 0; }

  // Whether links of the children are joined, each with each: where all of them made the node what it is.
  MEMBER bool joins(const ChecksNode& node, bool truth) const {
    return node.kind == AND ? truth : !truth;
  }

  // Whether a child made the node what it is, where any one does.
  MEMBER bool blames(const ChecksNode& node, bool truth, uint32_t child) const {
    const bool expected = node.kind == IMPLIES ? child != node.first : truth;
    return holds(root + child) == expected;
  }

  MEMBER uint64_t count(const ChecksNode& node, bool truth) const {
    uint64_t sum = 0;
    if (node.kind == FORALL || node.kind == EXISTS) {
      const bool decisive = node.kind == EXISTS;
      if (truth != decisive) return 0;
      for (uint32_t branch = lane; branch < node.count; branch += layout.together) {
        const uint32_t place = root + node.origin + branch * node.stride;
        if (holds(place) != decisive) continue;
        sum += index[place].length == 0 ? 1 : index[place].length;
      }
      return sum;
    }
    if (lane != 0) return 0;
    const bool product = joins(node, truth);
    for (uint32_t child = node.first; child != ABSENT; child = unit.nodes[child].next) {
      const uint32_t length = product || blames(node, truth, child) ? index[root + child].length : 0;
      if (length == 0) continue;
      sum = product && sum > 0 ? sum * length : sum + length;
      // Too many anyway, and no product of it wraps.
      if (sum > UINT32_MAX) sum = UINT32_MAX;
    }
    return sum;
  }

  // Writes the link of a number over another, which binds other variables.
  MEMBER void merge(uint32_t from, uint32_t* to) const {
    for (uint32_t variable = 0; variable < layout.variables; variable++) {
      const uint32_t slot = links[size_t{from} * layout.variables + variable];
      if (slot != ABSENT) to[variable] = slot;
    }
  }

  MEMBER uint32_t* cleared(uint32_t at) const {
    uint32_t* link = links + size_t{at} * layout.variables;
    for (uint32_t variable = 0; variable < layout.variables; variable++) link[variable] = ABSENT;
    return link;
  }

  MEMBER void write(const ChecksNode& node, bool truth, uint32_t at, uint32_t count) const {
    if (node.kind == FORALL || node.kind == EXISTS) {
      const bool decisive = node.kind == EXISTS;
      for (uint32_t branch = lane; branch < node.count; branch += layout.together) {
        const uint32_t place = root + node.origin + branch * node.stride;
        if (holds(place) != decisive) continue;
        const ChecksIndex inner = index[place];
        for (uint32_t link = 0; link < (inner.length == 0 ? 1 : inner.length); link++) {
          uint32_t* written = cleared(at++);
          if (inner.length > 0) merge(inner.begin + link, written);
          written[node.variable] = members[node.first * layout.capacity + branch];
        }
      }
      return;
    }
    if (!joins(node, truth)) {
      for (uint32_t child = node.first; child != ABSENT; child = unit.nodes[child].next) {
        if (!blames(node, truth, child)) continue;
        const ChecksIndex inner = index[root + child];
        for (uint32_t link = 0; link < inner.length; link++) merge(inner.begin + link, cleared(at++));
      }
      return;
    }
    for (uint32_t link = 0; link < count; link++) {
      uint32_t* written = cleared(at + link);
      uint32_t rest = link;
      for (uint32_t child = node.first; child != ABSENT; child = unit.nodes[child].next) {
        const ChecksIndex inner = index[root + child];
        if (inner.length == 0) continue;
        merge(inner.begin + rest % inner.length, written);
        rest /= inner.length;
      }
    }
  }
};

// `LinkKer` (Figure 5): the links of a c-unit's nodes, from the last one to the root, where the quantifier above looks at them. Their store has
// two levels (section 4.4): a node's entry in `index` says where its links begin in `links`, whose room is given out by a prefix sum over
// each warp.
//
// Grid: 1-D, `together` threads for each copy, whole warps.
// index [nodes of the runtime tree] in and out
// links [room][variables] in and out
// head  in and out
KERNEL checks_links(CONSTANT ChecksUnit unit, CONSTANT ChecksLayout layout, const uint32_t* members,
                    const uint8_t* truths, ChecksIndex* index, uint32_t* links, uint64_t* head) {
  const uint32_t copy = thread_index() / layout.together, lane = thread_index() % layout.together;
  uint32_t slots[DEPTH];
  const bool is_there = copy < unit.copies;
  const uint32_t root = is_there ? place_copy(unit, layout, members, copy, slots) : 0;
  const bool is_looked_at = is_there && ((truths[root] & HOLDS) != 0) == (unit.blamed != 0);
  const NodeLinks all{unit, layout, members, truths, index, links, root, lane};
  for (uint32_t at = unit.end; at-- > unit.begin;) {
    const ChecksNode& node = unit.nodes[at];
    if (node.kind == LEAF || node.kind == NOT) {
      // The links of a negation are those of what it negates.
      if (is_looked_at && lane == 0) index[root + at] = node.kind == LEAF ? ChecksIndex{0, 0} : index[root + node.first];
      continue;
    }
    const bool truth = is_looked_at && all.holds(root + at);
    uint64_t count = is_looked_at ? all.count(node, truth) : 0;
    bool fits = count <= layout.links_max;
    if (!fits) count = 0;
    uint32_t total;
    const uint32_t before = lanes_before(static_cast<uint32_t>(count), &total);
    uint64_t begin = 0;
    if (lane_index() == 0 && total > 0) begin = atomic_add_wide(head + HEAD_LINKS, total);
    begin = shuffle(begin, 0);
    fits = fits && begin + total <= layout.room && (layout.together == 1 || total <= layout.links_max);
    if (!fits) head[HEAD_OVERFLOW] = 1;
    if (fits && count > 0) all.write(node, truth, static_cast<uint32_t>(begin) + before, static_cast<uint32_t>(count));
    // What the lanes wrote together, the first one reads at the next node.
    warp_sync();
    if (!is_looked_at || lane != 0) continue;
    if (!fits) {
      index[root + at] = {0, 0};
    } else if (layout.together > 1) {
      index[root + at] = {static_cast<uint32_t>(begin), total};
    } else {
      index[root + at] = {static_cast<uint32_t>(begin) + before, static_cast<uint32_t>(count)};
    }
  }
  if (unit.depth == 0 && unit.begin == 0 && is_looked_at && lane == 0) {
    head[HEAD_BEGIN] = index[root].begin;
    head[HEAD_LENGTH] = index[root].length;
  }
}
HOST_ENTRY(checks_links)
