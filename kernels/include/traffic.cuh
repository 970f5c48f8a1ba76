#pragma once
// What the kernels of traffic work on. `src/traffic.rs` has the records, field by field.

#include <math.h>

#include "launch.cuh"

#ifdef __CUDACC__
// Each result is rounded by itself, as on the processor: nothing is fused.
#define TRAFFIC_ADD(a, b) __fadd_rn(a, b)
#define TRAFFIC_MUL(a, b) __fmul_rn(a, b)
#define TRAFFIC_DIV(a, b) __fdiv_rn(a, b)
#define TRAFFIC_SQRT(a) __fsqrt_rn(a)
#else
#define TRAFFIC_ADD(a, b) ((a) + (b))
#define TRAFFIC_MUL(a, b) ((a) * (b))
#define TRAFFIC_DIV(a, b) ((a) / (b))
#define TRAFFIC_SQRT(a) sqrtf(a)
#endif

constexpr uint32_t TRAFFIC_NONE = 0xffffffffu;
/// Arcs of a trip's whole route, and of the way ahead.
constexpr uint32_t TRAFFIC_ROUTE = 2048;
constexpr uint32_t TRAFFIC_AHEAD = 64;
/// Nodes that a search for the way ahead knows at most, and words of its table.
constexpr uint32_t TRAFFIC_KNOWN = 1024;
constexpr uint32_t TRAFFIC_TABLE = 2048;
/// How far ahead the way is looked for, in millimetres.
constexpr uint32_t TRAFFIC_AHEAD_MM = 1000000;
/// Nodes of a route among which a vehicle looks for where it is.
constexpr uint32_t TRAFFIC_WINDOW = 64;
/// Bits of `TrafficArc::limits` and `TrafficJunction::kind`.
constexpr uint32_t TRAFFIC_CROSSES = 1 << 24;
constexpr uint32_t TRAFFIC_SIGNALS = 1 << 8;
/// The most that an arc weighs, in milliseconds: sums of as many as a search knows fit into a word.
constexpr uint32_t TRAFFIC_WEIGHT = 1 << 21;
/// Bits of `TrafficPlan::flags`.
constexpr uint32_t TRAFFIC_FOLLOWS = 1;
constexpr uint32_t TRAFFIC_ENTERS = 2;
constexpr uint32_t TRAFFIC_BEHIND = 4;
constexpr uint32_t TRAFFIC_FULL = 8;
/// States of a trip.
constexpr uint32_t TRAFFIC_WAITS = 0;
constexpr uint32_t TRAFFIC_DRIVES = 1;

/// An arc: where it leads from and to, how long it is, and in `limits` the speed limit (16 bits), lanes less one (2), the group at its junction (3
/// bits from 18), and whether a junction is at its end.
struct alignas(16) TrafficArc {
  uint32_t to, from, length_mm, limits;
};
static_assert(sizeof(TrafficArc) == 16, "shared with Rust");

/// A junction: ranks of its groups, four bits each; in `kind` how many there are, and whether it has signals; the open group, since when it is open, and
/// from which step on one may go; of signals how many steps their clock is ahead.
struct alignas(8) TrafficJunction {
  uint32_t ranks;
  uint16_t kind, open;
  uint32_t since, ready;
};
static_assert(sizeof(TrafficJunction) == 16, "shared with Rust");

/// A vehicle as others see it. `ahead` is the vehicle that was ahead of it in its lane; it counts as long as both are in the same.
struct alignas(16) TrafficCar {
  uint32_t arc, along_mm, ahead;
  uint16_t speed;
  uint8_t lane, factor;
};
static_assert(sizeof(TrafficCar) == 16, "shared with Rust");

/// The part of a vehicle's state that others do not see: the arc that it takes next, how many it has entered, steps that it has stood, and how often it changed its mind.
struct TrafficWay {
  uint32_t next, hop;
  uint16_t waited, changes;
};
static_assert(sizeof(TrafficWay) == 12, "shared with Rust");

/// Where a vehicle will be: along its arc, or along the next one.
struct alignas(8) TrafficPlan {
  uint32_t along_mm;
  uint16_t speed;
  uint8_t lane, flags;
};
static_assert(sizeof(TrafficPlan) == 8, "shared with Rust");

/// A vehicle's trip to a destination: the node that the vehicle comes to next, arcs of its route and how many of them it has passed, and the way ahead
/// from `from_hop` on.
struct TrafficTrip {
  uint32_t vehicle, head, state, length, base, from_hop, ahead, is_last, asked, arrivals, lost;
};
static_assert(sizeof(TrafficTrip) == 44, "shared with Rust");

/// The parameters of a launch that are numbers.
struct TrafficRun {
  uint64_t seed;
  uint32_t step, nodes, arcs, vehicles, trips, stride;
};
static_assert(sizeof(TrafficRun) == 32, "shared with Rust");

/// All that kernels work on.
struct Traffic {
  const uint32_t* __restrict__ first;
  const TrafficArc* __restrict__ arcs;
  const uint32_t* __restrict__ lanes;
  TrafficJunction* junctions;
  uint32_t* asks;
  uint64_t* claims;
  uint32_t* tails;
  TrafficCar* cars;
  TrafficWay* ways;
  TrafficPlan* plans;
  uint32_t* counts;
  uint32_t* weights;
  TrafficTrip* trips;
  const uint32_t* __restrict__ routes;
  uint32_t* ahead;
  uint64_t* keys;
  uint32_t* known;
  TrafficRun run;
};

#define TRAFFIC_PARAMETERS                                                                                                                 \
  const uint32_t *first, const TrafficArc *arcs, const uint32_t *lanes, TrafficJunction *junctions, uint32_t *asks, uint64_t *claims,    \
      uint32_t *tails, TrafficCar *cars, TrafficWay *ways, TrafficPlan *plans, uint32_t *counts, uint32_t *weights, TrafficTrip *trips,  \
      const uint32_t *routes, uint32_t *ahead, uint64_t *keys, uint32_t *known, TrafficRun run
#define TRAFFIC_OF_PARAMETERS \
  {first, arcs, lanes, junctions, asks, claims, tails, cars, ways, plans, counts, weights, trips, routes, ahead, keys, known, run}
