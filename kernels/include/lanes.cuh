#pragma once
// More of what kernels do with the lanes of a warp, and with four words at a time.

#include "launch.cuh"

#ifdef __CUDACC__
/// A member function of something that lives in a kernel.
#define MEMBER __device__ __forceinline__
/// Memory that the warps of a block share out among them.
#define SHARED __shared__
#else
#define MEMBER inline
#define SHARED static thread_local
#endif

/// The lanes before this one, as bits.
DEVICE uint32_t lanes_below() { return (1u << lane_index()) - 1; }

/// Which bit is the lowest of those set; there is one.
DEVICE uint32_t lowest_bit(uint32_t bits) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
#else
  return static_cast<uint32_t>(__builtin_ctz(bits));
#endif
}

/// This warp's number in its block. On the host all are the same, since they run one after another.
DEVICE uint32_t warp_in_block() {
#ifdef __CUDACC__
  return threadIdx.x / LANES;
#else
  return 0;
#endif
}

/// Four words, read and written in one go.
struct alignas(16) Quad {
  uint32_t a, b, c, d;
};

DEVICE Quad load_quad(const uint32_t* words, uint32_t index) {
  return reinterpret_cast<const Quad*>(words)[index];
}

DEVICE void store_quad(uint32_t* words, uint32_t index, const Quad& quad) {
  reinterpret_cast<Quad*>(words)[index] = quad;
}

/// The sum of the lanes before this one, and of all.
DEVICE uint32_t lanes_before(uint32_t value, uint32_t* total) {
  uint32_t sum = value;
  for (uint32_t step = 1; step < LANES; step *= 2) {
    const uint32_t other = shuffle(sum, lane_index() - step);
    if (lane_index() >= step) sum += other;
  }
  *total = shuffle(sum, LANES - 1);
  return sum - value;
}

/// Writes a word that the host looks at, in one piece.
DEVICE void publish(uint64_t* word, uint64_t value) { *static_cast<volatile uint64_t*>(word) = value; }

/// Lets the host see what this thread wrote before it sees what is written after.
DEVICE void host_fence() {
#ifdef __CUDACC__
  __threadfence_system();
#endif
}
