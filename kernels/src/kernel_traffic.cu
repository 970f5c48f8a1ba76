// Traffic of a country: AutoMatrix of "Anytime algorithms for GPU architectures" (Mangharam and Saba, RTSS 2011, section VII), a vehicle a thread.
//
// A step of half a second has three kernels. Junctions give way to those that asked for it in the step before; every vehicle plans from the state
// that all see, and claims the lane that it is about to enter; every vehicle moves, past the end of its arc where its claim is the greatest.
// Nothing depends on the order of threads. Lengths are whole millimetres and speeds whole millimetres a second; floating-point numbers
// in between are rounded step by step, so that `traffic-gpu/src/processor` has the same states bit by bit.
//
// Every ten steps weights follow the vehicles on each arc, and vehicles with a destination look for their ways a kilometre ahead.

#include "traffic.cuh"

// ---- Numbers ------------------------------------------------------------------------------------------------------------------------

/// 32 random bits of a vehicle, for its nth choice: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
INLINE uint32_t traffic_chance(uint64_t seed, uint32_t vehicle, uint32_t nth) {
  uint64_t state = seed + ((uint64_t{vehicle} << 32) | nth) * 0x9e3779b97f4a7c15u;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
  return static_cast<uint32_t>((state ^ (state >> 31)) >> 32);
}

/// A word that no two vehicles have in the same step.
INLINE uint32_t traffic_turn(uint32_t vehicle, uint32_t step) { return vehicle * 0x9e3779b1u + step * 0x85ebca6bu; }

INLINE int32_t traffic_min(int32_t a, int32_t b) { return a < b ? a : b; }
INLINE int32_t traffic_max(int32_t a, int32_t b) { return a > b ? a : b; }

INLINE uint32_t traffic_limit(const TrafficArc& arc) { return arc.limits & 0xffff; }
INLINE uint32_t traffic_lanes(const TrafficArc& arc) { return (arc.limits >> 16 & 3) + 1; }
INLINE uint32_t traffic_group(const TrafficArc& arc) { return arc.limits >> 18 & 7; }

/// How fast a vehicle likes to drive, in mm/s. Factors are in 1/200.
INLINE int32_t traffic_desired(const TrafficArc& arc, uint32_t factor) {
  return static_cast<int32_t>(traffic_limit(arc) * factor / 200);
}

/// The gap that one would like to have, in mm: the Intelligent Driver Model's s*, with 2 m, 1 s, and 2 sqrt(ab) for 1 and 1.5 m/s².
INLINE float traffic_wanted(int32_t speed, int32_t approach) {
  const float braking = TRAFFIC_DIV(TRAFFIC_MUL(float(speed), float(approach)), 2449.48975f);
  const float dynamic = TRAFFIC_ADD(float(speed), braking);
  return TRAFFIC_ADD(2000.0f, dynamic > 0.0f ? dynamic : 0.0f);
}

/// The model's acceleration on a free road, as a share of the greatest.
INLINE float traffic_free(int32_t speed, int32_t desired) {
  const float ratio = TRAFFIC_DIV(float(speed), float(desired));
  const float squared = TRAFFIC_MUL(ratio, ratio);
  return TRAFFIC_ADD(1.0f, -TRAFFIC_MUL(squared, squared));
}

/// In mm/s², with somebody `gap` ahead.
INLINE float traffic_acceleration(float free, int32_t speed, int32_t gap, int32_t speed_ahead) {
  const float share = TRAFFIC_DIV(traffic_wanted(speed, speed - speed_ahead), float(traffic_max(gap, 10)));
  return TRAFFIC_MUL(1000.0f, TRAFFIC_ADD(free, -TRAFFIC_MUL(share, share)));
}

// ---- Where to go --------------------------------------------------------------------------------------------------------------------

/// At the end of an arc by chance, rather onto wide and quick streets; back only where there is no other way.
DEVICE uint32_t traffic_walk(const Traffic& traffic, uint32_t vehicle, const TrafficArc& arc, uint32_t hop, uint32_t changes) {
  const uint32_t begin = traffic.first[arc.to], end = traffic.first[arc.to + 1];
  uint64_t all = 0;
  uint32_t back = TRAFFIC_NONE;
  for (uint32_t next = begin; next < end; next++) {
    const TrafficArc& other = traffic.arcs[next];
    if (other.to == other.from) continue;
    if (other.to == arc.from) {
      if (back == TRAFFIC_NONE) back = next;
    } else {
      all += traffic_limit(other) * traffic_lanes(other);
    }
  }
  if (all == 0) return back;
  uint64_t left = all * traffic_chance(traffic.run.seed, vehicle, hop + changes * 0x9e3779b1u) >> 32;
  for (uint32_t next = begin; next < end; next++) {
    const TrafficArc& other = traffic.arcs[next];
    if (other.to == other.from || other.to == arc.from) continue;
    const uint64_t weight = traffic_limit(other) * traffic_lanes(other);
    if (left < weight) return next;
    left -= weight;
  }
  return back;
}

/// The trip of a vehicle; none of one that walks.
DEVICE uint32_t traffic_trip(const Traffic& traffic, uint32_t vehicle) {
  if (traffic.run.trips == 0 || vehicle % traffic.run.stride != 0) return TRAFFIC_NONE;
  const uint32_t trip = vehicle / traffic.run.stride;
  return trip < traffic.run.trips ? trip : TRAFFIC_NONE;
}

/// The arc that a vehicle takes at the end of another, the `hop`-th that it has entered.
DEVICE uint32_t traffic_next(const Traffic& traffic, uint32_t vehicle, const TrafficArc& arc, uint32_t hop) {
  const uint32_t trip = traffic_trip(traffic, vehicle);
  if (trip != TRAFFIC_NONE) {
    const uint32_t at = hop - traffic.trips[trip].from_hop;
    if (at < traffic.trips[trip].ahead) return traffic.ahead[uint64_t{trip} * TRAFFIC_AHEAD + at];
  }
  return traffic_walk(traffic, vehicle, arc, hop, 0);
}

// ---- A step -------------------------------------------------------------------------------------------------------------------------

/// Whether somebody is the last in a lane.
DEVICE bool traffic_is_last(const TrafficCar& car, uint32_t arc, uint32_t lane) { return car.arc == arc && car.lane == lane; }

/// The lane of an arc that a vehicle will enter, and the last one there, or none: its own lane, unless that is nearly full and another one has more room.
DEVICE uint32_t traffic_lane(const Traffic& traffic, uint32_t number, const TrafficArc& arc, uint32_t own, uint32_t* tail) {
  const uint32_t lanes = traffic_lanes(arc), begin = traffic.lanes[number];
  if (own >= lanes) own = lanes - 1;
  uint32_t best = own, best_mm = 0;
  for (uint32_t nth = 0; nth <= lanes; nth++) {
    const uint32_t lane = nth == 0 ? own : nth - 1;
    const uint32_t last = traffic.tails[begin + lane];
    if (last == TRAFFIC_NONE || !traffic_is_last(traffic.cars[last], number, lane)) {
      *tail = TRAFFIC_NONE;
      return lane;
    }
    const uint32_t along_mm = traffic.cars[last].along_mm;
    if (nth == 0 || along_mm > best_mm) {
      best = lane;
      best_mm = along_mm;
      *tail = last;
    }
    if (nth == 0 && (lanes == 1 || along_mm >= 30000)) break;
  }
  return best;
}

/// Whether the way over a junction is closed for a group.
INLINE bool traffic_is_closed(const TrafficJunction& junction, uint32_t group, uint32_t step) {
  if (junction.kind & TRAFFIC_SIGNALS) {
    // 25 s of green, 4 s in which nobody may go.
    const uint32_t within = (step + junction.ready) % (58 * (junction.kind & 0xff));
    return within / 58 != group || within % 58 >= 50;
  }
  return junction.open != group || step < junction.ready;
}

/// The limits of a vehicle's next step.
struct TrafficView {
  float acceleration;
  /// How far it may go, and how fast it may be because of slower streets ahead.
  int32_t free_mm, speed_max;
  uint32_t lane, flags;
};

/// The view of the first vehicle of a lane: the end of its arc, and vehicles on several arcs ahead.
DEVICE TrafficView traffic_look(const Traffic& traffic, uint32_t vehicle, const TrafficCar& car, const TrafficArc& own, float free) {
  const TrafficWay way = traffic.ways[vehicle];
  const int32_t speed = car.speed;
  TrafficView view = {TRAFFIC_MUL(1000.0f, free), 0x7fffffff, 0x7fffffff, 0, 0};
  const int32_t wanted = static_cast<int32_t>(traffic_wanted(speed, speed));
  // As if somebody stood there: further ahead nothing makes a difference.
  const int32_t horizon = 2 * wanted + speed;
  TrafficArc arc = own;
  uint32_t lane = car.lane;
  int32_t to_end = static_cast<int32_t>(arc.length_mm - car.along_mm);
  for (uint32_t step = 0; step < 5; step++) {
    bool is_closed = false;
    if (arc.limits & TRAFFIC_CROSSES) {
      const TrafficJunction& junction = traffic.junctions[arc.to];
      if (step == 0 && !(junction.kind & TRAFFIC_SIGNALS) && to_end < wanted + 5000) {
        // A street that has waited for 15 s is let through.
        const uint32_t bits = way.waited >= 30 ? 0x101u : 1u;
        atomic_or(&traffic.asks[arc.to], bits << traffic_group(arc));
      }
      // 3 m/s²: one that would have to brake harder drives on.
      is_closed = traffic_is_closed(junction, traffic_group(arc), traffic.run.step) &&
                  uint64_t{car.speed} * car.speed <= uint64_t{6000} * static_cast<uint32_t>(to_end);
    }
    const uint32_t next = is_closed ? TRAFFIC_NONE : step == 0 ? way.next : traffic_next(traffic, vehicle, arc, way.hop + step);
    if (next == TRAFFIC_NONE) {
      // One stops a little before the line, and not a whole gap.
      view.acceleration = fminf(view.acceleration, traffic_acceleration(free, speed, to_end + 1500, 0));
      view.free_mm = traffic_min(view.free_mm, traffic_max(to_end - 100, 0));
      return view;
    }
    const TrafficArc there = traffic.arcs[next];
    const int32_t then = traffic_desired(there, car.factor);
    if (speed > then) {
      const float room = TRAFFIC_MUL(3000.0f, float(to_end));
      const float most = TRAFFIC_SQRT(TRAFFIC_ADD(TRAFFIC_MUL(float(then), float(then)), room));
      view.speed_max = traffic_min(view.speed_max, static_cast<int32_t>(most));
    }
    uint32_t tail = TRAFFIC_NONE;
    lane = traffic_lane(traffic, next, there, lane, &tail);
    if (step == 0) {
      view.lane = lane;
      // No more than one end of an arc is passed in a step.
      view.free_mm = to_end + static_cast<int32_t>(there.length_mm);
      if (tail != TRAFFIC_NONE) view.flags = TRAFFIC_BEHIND;
    }
    if (tail != TRAFFIC_NONE && tail != vehicle) {
      const TrafficCar last = traffic.cars[tail];
      const int32_t gap = to_end + static_cast<int32_t>(last.along_mm) - 4500;
      view.acceleration = fminf(view.acceleration, traffic_acceleration(free, speed, gap, last.speed));
      view.free_mm = traffic_min(view.free_mm, gap - 300);
      if (step == 0 && last.along_mm < 6500) view.flags |= TRAFFIC_FULL;
      return view;
    }
    arc = there;
    to_end += static_cast<int32_t>(there.length_mm);
    if (to_end > horizon) return view;
  }
  return view;
}

DEVICE void traffic_claim(uint64_t* word, uint64_t value) {
#ifdef __CUDACC__
  atomicMax(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
#else
  if (value > *word) *word = value;
#endif
}

INLINE uint64_t traffic_claim_of(uint32_t vehicle, uint32_t step) {
  return uint64_t{step + 1} << 32 | traffic_turn(vehicle, step);
}

/// Plans a vehicle's step from the state before it.
DEVICE void traffic_plan_of(const Traffic& traffic, uint32_t vehicle) {
  const TrafficCar car = traffic.cars[vehicle];
  const TrafficArc arc = traffic.arcs[car.arc];
  const int32_t speed = car.speed;
  const int32_t desired = traffic_desired(arc, car.factor);
  const float free = traffic_free(speed, desired);
  TrafficView view = {0.0f, 0, 0x7fffffff, 0, 0};
  bool is_behind = car.ahead != TRAFFIC_NONE;
  if (is_behind) {
    const TrafficCar ahead = traffic.cars[car.ahead];
    is_behind = ahead.arc == car.arc && ahead.lane == car.lane;
    if (is_behind) {
      const int32_t gap = static_cast<int32_t>(ahead.along_mm) - 4500 - static_cast<int32_t>(car.along_mm);
      view.acceleration = traffic_acceleration(free, speed, gap, ahead.speed);
      view.free_mm = gap - 300;
      view.flags = TRAFFIC_FOLLOWS;
    }
  }
  if (!is_behind) view = traffic_look(traffic, vehicle, car, arc, free);
  // Constant acceleration, and no driving backwards.
  const float then = TRAFFIC_ADD(float(speed), TRAFFIC_MUL(view.acceleration, 0.5f));
  int32_t then_speed = 0, way_mm = 0;
  if (then >= 0.0f) {
    then_speed = static_cast<int32_t>(TRAFFIC_ADD(then, 0.5f));
    way_mm = static_cast<int32_t>(TRAFFIC_MUL(TRAFFIC_ADD(float(speed), then), 0.25f));
  } else {
    // It stands before the step is over.
    way_mm = static_cast<int32_t>(TRAFFIC_DIV(TRAFFIC_MUL(-0.5f, TRAFFIC_MUL(float(speed), float(speed))), view.acceleration));
  }
  then_speed = traffic_min(traffic_min(then_speed, desired), view.speed_max);
  const int32_t free_mm = traffic_max(view.free_mm, 0);
  if (way_mm > free_mm) {
    // Harder braking than the model asks for, so that nobody drives into anybody.
    way_mm = free_mm;
    then_speed = traffic_min(then_speed, 2 * free_mm);
  }
  uint32_t along_mm = car.along_mm + static_cast<uint32_t>(way_mm);
  if (along_mm > arc.length_mm) {
    along_mm -= arc.length_mm;
    view.flags |= TRAFFIC_ENTERS;
    const uint32_t lane = traffic.lanes[traffic.ways[vehicle].next] + view.lane;
    traffic_claim(&traffic.claims[lane], traffic_claim_of(vehicle, traffic.run.step));
  }
  traffic.plans[vehicle] = {along_mm, static_cast<uint16_t>(then_speed), static_cast<uint8_t>(view.lane), static_cast<uint8_t>(view.flags)};
}

/// Moves a vehicle as it has planned, or to the end of its arc where another one took the lane.
DEVICE void traffic_move_of(const Traffic& traffic, uint32_t vehicle) {
  const TrafficPlan plan = traffic.plans[vehicle];
  TrafficCar car = traffic.cars[vehicle];
  TrafficWay way = traffic.ways[vehicle];
  bool has_entered = false;
  car.ahead = plan.flags & TRAFFIC_FOLLOWS ? car.ahead : TRAFFIC_NONE;
  if (plan.flags & TRAFFIC_ENTERS) {
    const uint32_t lane = traffic.lanes[way.next] + plan.lane;
    has_entered = traffic.claims[lane] == traffic_claim_of(vehicle, traffic.run.step);
    if (has_entered) {
      const TrafficArc arc = traffic.arcs[way.next];
      car.ahead = plan.flags & TRAFFIC_BEHIND ? traffic.tails[lane] : TRAFFIC_NONE;
      traffic.tails[lane] = vehicle;
      car.arc = way.next;
      car.lane = plan.lane;
      car.along_mm = plan.along_mm;
      car.speed = static_cast<uint16_t>(traffic_min(plan.speed, traffic_desired(arc, car.factor)));
      const uint32_t trip = traffic_trip(traffic, vehicle);
      if (trip != TRAFFIC_NONE && way.changes != 0) {
        // It has left the way that it was told.
        traffic.trips[trip].ahead = 0;
        traffic.trips[trip].is_last = 0;
      }
      way = {0, way.hop + 1, 0, 0};
      way.next = traffic_next(traffic, vehicle, arc, way.hop);
    } else {
      car.along_mm = traffic.arcs[car.arc].length_mm;
      car.speed = 0;
    }
  } else {
    car.along_mm = plan.along_mm;
    car.speed = plan.speed;
  }
  if (!has_entered) {
    way.waited = car.speed >= 500 ? 0 : static_cast<uint16_t>(traffic_min(way.waited + 1, 0xffff));
    if (plan.flags & TRAFFIC_FULL && way.waited >= 40 && way.waited % 40 == 0) {
      // It has stood for 20 s before a full street, and takes another one.
      way.changes++;
      way.next = traffic_walk(traffic, vehicle, traffic.arcs[car.arc], way.hop, way.changes);
    }
  }
  traffic.cars[vehicle] = car;
  traffic.ways[vehicle] = way;
}

/// Gives a junction to one of those that asked for it.
DEVICE void traffic_give(const Traffic& traffic, uint32_t node) {
  const uint32_t asks = traffic.asks[node];
  if (asks == 0) return;
  traffic.asks[node] = 0;
  TrafficJunction junction = traffic.junctions[node];
  const uint32_t groups = junction.kind & 0xff, open = junction.open;
  uint32_t best = TRAFFIC_NONE, best_key = TRAFFIC_NONE;
  for (uint32_t turn = 1; turn < groups; turn++) {
    // Equal ones take turns.
    const uint32_t group = (open + turn) % groups;
    if (!(asks >> group & 1)) continue;
    const uint32_t key = (asks >> (8 + group) & 1 ? 0u : 16u) | (junction.ranks >> (4 * group) & 15);
    if (key < best_key) {
      best = group;
      best_key = key;
    }
  }
  if (best == TRAFFIC_NONE) return;
  const bool is_used = asks >> open & 1;
  const bool is_late = asks >> (8 + best) & 1;
  const uint32_t mine = junction.ranks >> (4 * open) & 15, theirs = junction.ranks >> (4 * best) & 15;
  const bool is_turn = traffic.run.step >= junction.since + 8 && (theirs <= mine || is_late);
  if (is_used && !is_turn) return;
  junction.open = static_cast<uint16_t>(best);
  junction.since = traffic.run.step;
  junction.ready = traffic.run.step + (is_used ? 2 : 0);
  traffic.junctions[node] = junction;
}

// ---- Ways ahead ---------------------------------------------------------------------------------------------------------------------

/// How long an arc takes, in milliseconds: Greenshields's speed, which falls to nothing where vehicles stand bumper to bumper (May, Traffic Flow
/// Fundamentals, 1990), and at least a sixteenth of the limit.
INLINE uint32_t traffic_weight(const TrafficArc& arc, uint32_t count) {
  const uint64_t lanes_mm = uint64_t{arc.length_mm} * traffic_lanes(arc), full_mm = uint64_t{6500} * count;
  const uint64_t limit = traffic_limit(arc);
  uint64_t speed = full_mm < lanes_mm ? limit * (lanes_mm - full_mm) / lanes_mm : 0;
  if (speed < limit / 16 + 1) speed = limit / 16 + 1;
  const uint64_t weight = uint64_t{arc.length_mm} * 1000 / speed + 1;
  return weight < TRAFFIC_WEIGHT ? static_cast<uint32_t>(weight) : TRAFFIC_WEIGHT;
}

/// Looks how far a trip has come: where its vehicle is, whether it is over, and which node of its route was reached.
DEVICE void traffic_pass(const Traffic& traffic, uint32_t number) {
  TrafficTrip* trip = &traffic.trips[number];
  const uint32_t head = traffic.arcs[traffic.cars[trip->vehicle].arc].to;
  trip->head = head;
  if (trip->state != TRAFFIC_DRIVES) return;
  if (trip->is_last && traffic.ways[trip->vehicle].hop - trip->from_hop >= trip->ahead) {
    trip->arrivals++;
    trip->state = TRAFFIC_WAITS;
    trip->ahead = trip->is_last = 0;
    return;
  }
  const uint32_t* route = traffic.routes + uint64_t{number} * TRAFFIC_ROUTE;
  const uint32_t base = trip->base;
  for (uint32_t at = base; at < trip->length && at < base + TRAFFIC_WINDOW; at++) {
    if (traffic.arcs[route[at]].to == head) trip->base = at + 1;
  }
}

/// A search for the way ahead: nodes that it knows, a table that finds them, keys (cost, then node) of those that are not settled, and the arcs by which
/// they were reached.
struct TrafficSearch {
  uint64_t* keys;
  uint32_t *nodes, *costs, *via, *table;
  uint32_t count;
};

/// Where a node is among those known, or where it would be put; `count` if it is new, and none where there is no more room.
DEVICE uint32_t traffic_find(const TrafficSearch& search, uint32_t node, uint32_t* word) {
  for (uint32_t at = node * 0x9e3779b1u;; at++) {
    const uint32_t slot = search.table[at % TRAFFIC_TABLE];
    if (slot == 0) {
      *word = at % TRAFFIC_TABLE;
      return search.count < TRAFFIC_KNOWN ? search.count : TRAFFIC_NONE;
    }
    if (search.nodes[slot - 1] == node) return slot - 1;
  }
}

DEVICE void traffic_reach(TrafficSearch* search, uint32_t node, uint32_t cost, uint32_t via) {
  uint32_t word = 0;
  const uint32_t slot = traffic_find(*search, node, &word);
  if (slot == TRAFFIC_NONE) return;
  if (slot == search->count) {
    search->count++;
    search->table[word] = slot + 1;
    search->nodes[slot] = node;
  } else if (cost >= search->costs[slot]) {
    return;
  }
  search->costs[slot] = cost;
  search->via[slot] = via;
  search->keys[slot] = uint64_t{cost} << 32 | node;
}

DEVICE uint64_t traffic_warp_min(uint64_t value) {
  for (uint32_t step = LANES / 2; step > 0; step /= 2) {
    const uint64_t other = shuffle(value, lane_index() ^ step);
    if (other < value) value = other;
  }
  return value;
}

/// Finds the way ahead of a trip at the weights of the moment: to the node of its route that is a kilometre ahead. A warp; the lanes look for the least
/// key together, and the first one relaxes.
DEVICE void traffic_adapt(const Traffic& traffic, uint32_t number, uint32_t scratch) {
  TrafficTrip* trip = &traffic.trips[number];
  if (trip->state != TRAFFIC_DRIVES) return;
  const uint32_t* route = traffic.routes + uint64_t{number} * TRAFFIC_ROUTE;
  const uint32_t head = trip->head;
  uint32_t target = trip->base;
  for (uint32_t sum_mm = 0; target < trip->length && sum_mm < TRAFFIC_AHEAD_MM; target++) {
    const uint32_t length_mm = traffic.arcs[route[target]].length_mm;
    sum_mm = length_mm < TRAFFIC_AHEAD_MM ? sum_mm + length_mm : TRAFFIC_AHEAD_MM;
  }
  const uint32_t goal = target == 0 ? head : traffic.arcs[route[target - 1]].to;
  uint32_t* words = traffic.known + uint64_t{scratch} * (3 * TRAFFIC_KNOWN + TRAFFIC_TABLE);
  TrafficSearch search = {traffic.keys + uint64_t{scratch} * TRAFFIC_KNOWN, words,
                          words + TRAFFIC_KNOWN,                            words + 2 * TRAFFIC_KNOWN,
                          words + 3 * TRAFFIC_KNOWN,                        0};
  for (uint32_t at = lane_index(); at < TRAFFIC_TABLE; at += LANES) search.table[at] = 0;
  warp_sync();
  if (lane_index() == 0) traffic_reach(&search, head, 0, TRAFFIC_NONE);
  bool is_found = false;
  while (true) {
    search.count = shuffle(search.count, 0);
    warp_sync();
    uint64_t least = 0xffffffffffffffffu;
    for (uint32_t at = lane_index(); at < search.count; at += LANES) {
      const uint64_t key = search.keys[at];
      if (key < least) least = key;
    }
    least = traffic_warp_min(least);
    const uint32_t node = static_cast<uint32_t>(least);
    is_found = least != 0xffffffffffffffffu && node == goal;
    if (least == 0xffffffffffffffffu || is_found) break;
    if (lane_index() == 0) {
      uint32_t word = 0;
      search.keys[traffic_find(search, node, &word)] = 0xffffffffffffffffu;
      for (uint32_t arc = traffic.first[node]; arc < traffic.first[node + 1]; arc++) {
        traffic_reach(&search, traffic.arcs[arc].to, static_cast<uint32_t>(least >> 32) + traffic.weights[arc], arc);
      }
    }
  }
  if (lane_index() != 0) return;
  TrafficWay* way = &traffic.ways[trip->vehicle];
  trip->from_hop = way->hop;
  trip->ahead = trip->is_last = 0;
  if (!is_found) {
    trip->lost++;
    trip->state = TRAFFIC_WAITS;
    return;
  }
  // The way is read from its end.
  uint32_t arcs_count = 0, word = 0;
  for (uint32_t node = goal; node != head; arcs_count++) {
    node = traffic.arcs[search.via[traffic_find(search, node, &word)]].from;
  }
  uint32_t at = arcs_count;
  for (uint32_t node = goal; node != head;) {
    const uint32_t via = search.via[traffic_find(search, node, &word)];
    at--;
    if (at < TRAFFIC_AHEAD) traffic.ahead[uint64_t{number} * TRAFFIC_AHEAD + at] = via;
    node = traffic.arcs[via].from;
  }
  trip->ahead = arcs_count < TRAFFIC_AHEAD ? arcs_count : TRAFFIC_AHEAD;
  trip->is_last = target == trip->length && arcs_count <= TRAFFIC_AHEAD;
  if (trip->ahead > 0) {
    way->next = traffic.ahead[uint64_t{number} * TRAFFIC_AHEAD];
    way->changes = 0;
  }
}

// ---- Kernels ------------------------------------------------------------------------------------------------------------------------
// All have the same parameters: first [nodes + 1], arcs [arcs], lanes [arcs + 1] in: the first arc of each node, arcs, the first lane of each arc;
// junctions, asks [nodes], claims, tails [lanes], cars, ways, plans [vehicles], counts, weights [arcs], trips [trips], routes [trips * TRAFFIC_ROUTE],
// ahead [trips * TRAFFIC_AHEAD], keys and known: as many stretches of TRAFFIC_KNOWN and 3 * TRAFFIC_KNOWN + TRAFFIC_TABLE as the grid has warps.

/// A thread a node. Begins a step.
KERNEL __launch_bounds__(256) traffic_junctions(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t node = thread_index(); node < run.nodes; node += threads_count()) traffic_give(traffic, node);
}
HOST_ENTRY(traffic_junctions)

/// A thread a vehicle. All plan before anybody moves.
KERNEL __launch_bounds__(256) traffic_plan(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t vehicle = thread_index(); vehicle < run.vehicles; vehicle += threads_count()) traffic_plan_of(traffic, vehicle);
}
HOST_ENTRY(traffic_plan)

/// A thread a vehicle. Ends a step.
KERNEL __launch_bounds__(256) traffic_move(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t vehicle = thread_index(); vehicle < run.vehicles; vehicle += threads_count()) traffic_move_of(traffic, vehicle);
}
HOST_ENTRY(traffic_move)

/// A thread a vehicle. Counts vehicles on arcs; `counts` is zero before.
KERNEL __launch_bounds__(256) traffic_count(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t vehicle = thread_index(); vehicle < run.vehicles; vehicle += threads_count()) {
    atomic_add(&traffic.counts[traffic.cars[vehicle].arc], 1);
  }
}
HOST_ENTRY(traffic_count)

/// A thread an arc. Weighs arcs by the vehicles on them; `counts` is zero afterwards.
KERNEL __launch_bounds__(256) traffic_weigh(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t arc = thread_index(); arc < run.arcs; arc += threads_count()) {
    traffic.weights[arc] = traffic_weight(traffic.arcs[arc], traffic.counts[arc]);
    traffic.counts[arc] = 0;
  }
}
HOST_ENTRY(traffic_weigh)

/// A thread a trip.
KERNEL __launch_bounds__(256) traffic_trips(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t trip = thread_index(); trip < run.trips; trip += threads_count()) traffic_pass(traffic, trip);
}
HOST_ENTRY(traffic_trips)

/// A warp a trip.
KERNEL __launch_bounds__(128) traffic_ways(TRAFFIC_PARAMETERS) {
  const Traffic traffic = TRAFFIC_OF_PARAMETERS;
  for (uint32_t trip = warp_index(); trip < run.trips; trip += warps_count()) {
    traffic_adapt(traffic, trip, warp_index());
    // The next trip has the same stretches.
    warp_sync();
  }
}
HOST_ENTRY(traffic_ways)
