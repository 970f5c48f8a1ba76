// PAP* of "Anytime algorithms for GPU architectures" (Mangharam and Saba, RTSS 2011, section III): many A* searches at once, on one graph or on
// many that are packed into the same arrays. The vertex array V is `first`, the edge array E `heads` and the weight array W `weights`.
//
// Each query has a stretch of elements, one a node of its graph and whole blocks of them: the cost C of the best known way to the node, the
// updating cost, the key g + h, and whether the node is on the frontier F and whether it is settled. A warp has a block, a lane a node. A round is
// relax, update, minimum of each block and minimum of each query, a launch each; or all of them in `routes_rounds`, without the host.

#include "launch.cuh"

/// Nodes of a block, which has one minimum.
constexpr uint32_t ROUTES_BLOCK = 128;
constexpr uint64_t ROUTES_UNREACHABLE = 0xffffffffffffffffu;

struct RouteQuery {
  /// Nodes of its graph, and where that begins in V.
  uint32_t nodes, first_node;
  /// The ends of the route, as numbers of the graph.
  uint32_t from, to;
  uint32_t first_block, blocks;
  /// Landmarks of the graph that may be relied on.
  uint32_t landmarks, unused;
  /// The costs of the graph's first node from and to its first landmark.
  uint64_t landmarks_at;
  /// A node is relaxed while its key is at most so much above the least one.
  uint64_t slack;
};
static_assert(sizeof(RouteQuery) == 48, "shared with Rust");

struct RouteState {
  /// The least key on the frontier, and what the best known route costs.
  uint64_t least, best;
  uint32_t is_over, rounds;
};
static_assert(sizeof(RouteState) == 24, "shared with Rust");

/// All that kernels work on.
struct Routes {
  const uint32_t* __restrict__ first;
  const uint32_t* __restrict__ heads;
  const uint64_t* __restrict__ weights;
  const uint64_t* __restrict__ landmarks;
  const RouteQuery* __restrict__ queries;
  const uint32_t* __restrict__ block_queries;
  RouteState* states;
  uint64_t* costs;
  uint64_t* updating;
  uint64_t* keys;
  uint8_t* frontier;
  uint8_t* settled;
  uint64_t* minima;
  /// Blocks of which nodes came to the frontier, left it or may cost less.
  uint32_t* touched;
};

#define ROUTES_PARAMETERS                                                                                                              \
  const uint32_t *first, const uint32_t *heads, const uint64_t *weights, const uint64_t *landmarks, const RouteQuery *queries,       \
      const uint32_t *block_queries, RouteState *states, uint64_t *costs, uint64_t *updating, uint64_t *keys, uint8_t *frontier,     \
      uint8_t *settled, uint64_t *minima, uint32_t *touched
#define ROUTES_OF_PARAMETERS                                                                                                           \
  {first, heads,    weights, landmarks, queries, block_queries, states,                                                              \
   costs, updating, keys,    frontier,  settled, minima,        touched}

/// A word that others may write meanwhile.
template <typename T>
DEVICE T routes_look(const T* word) {
  return *static_cast<const volatile T*>(word);
}

DEVICE void routes_lower(uint64_t* word, uint64_t value) {
#ifdef __CUDACC__
  atomicMin(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
#else
  if (value < *word) *word = value;
#endif
}

DEVICE uint64_t routes_warp_min(uint64_t value) {
  for (uint32_t step = LANES / 2; step > 0; step /= 2) {
    const uint64_t other = shuffle(value, lane_index() ^ step);
    if (other < value) value = other;
  }
  return value;
}

DEVICE uint64_t routes_sum(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum < a ? ROUTES_UNREACHABLE : sum;
}

/// The heuristic h: no more than the way from a node to the end of the route costs, by the triangle inequality; unreachable where a landmark shows
/// that there is none.
DEVICE uint64_t routes_ahead(const Routes& routes, const RouteQuery& query, uint32_t node) {
  const uint64_t* of_node = routes.landmarks + query.landmarks_at + uint64_t{2} * query.landmarks * node;
  const uint64_t* of_end = routes.landmarks + query.landmarks_at + uint64_t{2} * query.landmarks * query.to;
  uint64_t ahead = 0;
  for (uint32_t at = 0; at < 2 * query.landmarks; at += 2) {
    const uint64_t from_to_node = of_node[at], from_to_end = of_end[at];
    const uint64_t node_to = of_node[at + 1], end_to = of_end[at + 1];
    if (from_to_node != ROUTES_UNREACHABLE) {
      if (from_to_end == ROUTES_UNREACHABLE) return ROUTES_UNREACHABLE;
      if (from_to_end > from_to_node && from_to_end - from_to_node > ahead) ahead = from_to_end - from_to_node;
    }
    if (end_to != ROUTES_UNREACHABLE) {
      if (node_to == ROUTES_UNREACHABLE) return ROUTES_UNREACHABLE;
      if (node_to > end_to && node_to - end_to > ahead) ahead = node_to - end_to;
    }
  }
  return ahead;
}

// ---- A warp, a block of a query ----------------------------------------------------------------------------------------------------

/// Nodes of the frontier relax their arcs and leave it, those with keys near the least one. Nodes with the least key are settled: no way to
/// them costs less.
DEVICE void routes_relax_block(const Routes& routes, const RouteQuery& query, uint32_t query_idx, uint32_t block) {
  const uint64_t least = routes_look(&routes.states[query_idx].least), best = routes_look(&routes.states[query_idx].best);
  const uint64_t most = routes_sum(least, query.slack);
  if (routes_look(&routes.minima[block]) > most) return;
  const uint64_t begin = uint64_t{query.first_block} * ROUTES_BLOCK;
  for (uint32_t offset = lane_index(); offset < ROUTES_BLOCK; offset += LANES) {
    const uint64_t at = uint64_t{block} * ROUTES_BLOCK + offset;
    if (!routes_look(&routes.frontier[at])) continue;
    const uint64_t key = routes_look(&routes.keys[at]);
    if (key > most || key >= best) continue;
    routes.frontier[at] = 0;
    routes.touched[block] = 1;
    if (key <= least) routes.settled[at] = 1;
    const uint64_t cost = routes_look(&routes.costs[at]);
    const uint32_t node = query.first_node + static_cast<uint32_t>(at - begin);
    for (uint32_t arc = routes.first[node]; arc < routes.first[node + 1]; arc++) {
      const uint32_t head = routes.heads[arc];
      if (routes_look(&routes.settled[begin + head])) continue;
      const uint64_t reached = routes_sum(cost, routes.weights[arc]);
      if (reached >= routes_look(&routes.updating[begin + head])) continue;
      routes_lower(&routes.updating[begin + head], reached);
      routes.touched[query.first_block + head / ROUTES_BLOCK] = 1;
    }
  }
}

/// Updating costs that are less are taken over, and their nodes are on the frontier, unless they can be on no better route.
DEVICE void routes_update_block(const Routes& routes, const RouteQuery& query, uint32_t query_idx, uint32_t block) {
  if (!routes_look(&routes.touched[block])) return;
  const uint64_t best = routes_look(&routes.states[query_idx].best);
  for (uint32_t offset = lane_index(); offset < ROUTES_BLOCK; offset += LANES) {
    const uint64_t at = uint64_t{block} * ROUTES_BLOCK + offset;
    const uint64_t cost = routes_look(&routes.updating[at]);
    if (cost >= routes_look(&routes.costs[at])) continue;
    routes.costs[at] = cost;
    const uint32_t node = static_cast<uint32_t>(at - uint64_t{query.first_block} * ROUTES_BLOCK);
    const uint64_t key = routes_sum(cost, routes_ahead(routes, query, node));
    routes.keys[at] = key;
    if (key < best) routes.frontier[at] = 1;
  }
}

DEVICE void routes_minimum_of_block(const Routes& routes, uint32_t block) {
  if (!routes_look(&routes.touched[block])) return;
  uint64_t least = ROUTES_UNREACHABLE;
  for (uint32_t offset = lane_index(); offset < ROUTES_BLOCK; offset += LANES) {
    const uint64_t at = uint64_t{block} * ROUTES_BLOCK + offset;
    if (!routes_look(&routes.frontier[at])) continue;
    const uint64_t key = routes_look(&routes.keys[at]);
    if (key < least) least = key;
  }
  // All lanes have looked at the word by then.
  least = routes_warp_min(least);
  if (lane_index() != 0) return;
  routes.minima[block] = least;
  routes.touched[block] = 0;
}

/// A warp, a query: it is over when no key is less than the best known route.
DEVICE void routes_minimum_of_query(const Routes& routes, const RouteQuery& query, uint32_t query_idx) {
  uint64_t least = ROUTES_UNREACHABLE;
  for (uint32_t idx = lane_index(); idx < query.blocks; idx += LANES) {
    const uint64_t of_block = routes_look(&routes.minima[query.first_block + idx]);
    if (of_block < least) least = of_block;
  }
  least = routes_warp_min(least);
  if (lane_index() != 0) return;
  RouteState* state = &routes.states[query_idx];
  const uint64_t best = routes_look(&routes.costs[uint64_t{query.first_block} * ROUTES_BLOCK + query.to]);
  state->least = least;
  state->best = best;
  state->rounds++;
  state->is_over = least >= best;
}

// ---- Kernels, in the order in which they run -----------------------------------------------------------------------------------------

/// Begins all queries. A warp a block.
/// V first, E heads, W weights [arcs], landmarks, queries [queries], block_queries [blocks] in; states [queries] out; costs, updating, keys, frontier,
/// settled [blocks * ROUTES_BLOCK] out; minima, touched [blocks] out
KERNEL routes_initialise(ROUTES_PARAMETERS, uint32_t blocks) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t block = warp_index(); block < blocks; block += warps_count()) {
    const uint32_t query_idx = block_queries[block];
    const RouteQuery& query = queries[query_idx];
    const uint32_t from_block = query.first_block + query.from / ROUTES_BLOCK;
    const uint64_t key = block == from_block ? routes_ahead(routes, query, query.from) : ROUTES_UNREACHABLE;
    for (uint32_t offset = lane_index(); offset < ROUTES_BLOCK; offset += LANES) {
      const uint64_t at = uint64_t{block} * ROUTES_BLOCK + offset;
      const bool is_from = block == from_block && offset == query.from % ROUTES_BLOCK;
      costs[at] = updating[at] = is_from ? 0 : ROUTES_UNREACHABLE;
      keys[at] = is_from ? key : ROUTES_UNREACHABLE;
      frontier[at] = is_from && key != ROUTES_UNREACHABLE;
      settled[at] = 0;
    }
    if (lane_index() != 0) continue;
    minima[block] = key;
    touched[block] = 0;
    if (block != from_block) continue;
    const bool is_there = query.from == query.to;
    states[query_idx] = {key, is_there ? 0 : ROUTES_UNREACHABLE, is_there || key == ROUTES_UNREACHABLE, 0};
  }
}
HOST_ENTRY(routes_initialise)

/// A warp a block. Arrays as in `routes_initialise`, in and out.
KERNEL routes_relax(ROUTES_PARAMETERS, uint32_t blocks) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t block = warp_index(); block < blocks; block += warps_count()) {
    const uint32_t query_idx = block_queries[block];
    if (!states[query_idx].is_over) routes_relax_block(routes, queries[query_idx], query_idx, block);
  }
}
HOST_ENTRY(routes_relax)

/// A warp a block. Arrays as in `routes_initialise`, in and out.
KERNEL routes_update(ROUTES_PARAMETERS, uint32_t blocks) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t block = warp_index(); block < blocks; block += warps_count()) {
    const uint32_t query_idx = block_queries[block];
    if (!states[query_idx].is_over) routes_update_block(routes, queries[query_idx], query_idx, block);
  }
}
HOST_ENTRY(routes_update)

/// A warp a block. Arrays as in `routes_initialise`, in and out.
KERNEL routes_block_minimum(ROUTES_PARAMETERS, uint32_t blocks) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t block = warp_index(); block < blocks; block += warps_count()) {
    if (!states[block_queries[block]].is_over) routes_minimum_of_block(routes, block);
  }
}
HOST_ENTRY(routes_block_minimum)

/// A warp a query. Arrays as in `routes_initialise`, in and out.
KERNEL routes_minimum(ROUTES_PARAMETERS, uint32_t count) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t query_idx = warp_index(); query_idx < count; query_idx += warps_count()) {
    // Not all lanes may look after the first one has written.
    const bool is_over = routes_look(&states[query_idx].is_over) != 0;
    warp_sync();
    if (!is_over) routes_minimum_of_query(routes, queries[query_idx], query_idx);
  }
}
HOST_ENTRY(routes_minimum)

// ---- All of a round in one kernel ------------------------------------------------------------------------------------------------------

/// A team is a block of threads on the device. On the host it is one thread, for threads run one after another there.
DEVICE uint32_t team_index() {
#ifdef __CUDACC__
  return blockIdx.x;
#else
  return thread_index();
#endif
}

DEVICE uint32_t teams_count() {
#ifdef __CUDACC__
  return gridDim.x;
#else
  return threads_count();
#endif
}

/// A warp's number in its team.
DEVICE uint32_t team_warp() {
#ifdef __CUDACC__
  return threadIdx.x / LANES;
#else
  return 0;
#endif
}

DEVICE uint32_t team_warps() {
#ifdef __CUDACC__
  return blockDim.x / LANES;
#else
  return 1;
#endif
}

DEVICE void team_sync() {
#ifdef __CUDACC__
  __syncthreads();
#endif
}

/// The kernels above, composed: at most so many rounds of each query. A team a query, a warp a block; what a round leaves is what the
/// kernels above leave.
/// Arrays as in `routes_initialise`, in and out.
KERNEL __launch_bounds__(256) routes_rounds(ROUTES_PARAMETERS, uint32_t count, uint32_t rounds_max) {
  const Routes routes = ROUTES_OF_PARAMETERS;
  for (uint32_t query_idx = team_index(); query_idx < count; query_idx += teams_count()) {
    const RouteQuery& query = queries[query_idx];
    const uint32_t end = query.first_block + query.blocks;
    for (uint32_t round = 0; round < rounds_max && !routes_look(&states[query_idx].is_over); round++) {
      for (uint32_t block = query.first_block + team_warp(); block < end; block += team_warps()) {
        routes_relax_block(routes, query, query_idx, block);
      }
      team_sync();
      for (uint32_t block = query.first_block + team_warp(); block < end; block += team_warps()) {
        routes_update_block(routes, query, query_idx, block);
        warp_sync();
        routes_minimum_of_block(routes, block);
      }
      team_sync();
      if (team_warp() == 0) routes_minimum_of_query(routes, query, query_idx);
      team_sync();
    }
  }
}
HOST_ENTRY(routes_rounds)
