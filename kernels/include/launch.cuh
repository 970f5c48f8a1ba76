// How a kernel sees its launch, on the device and as plain C++.
//
// Under nvcc this is a thin cover of CUDA. Without it a kernel is a plain function that HOST_ENTRY runs once for each
// thread of the grid, one after another, on the caller's thread. A warp is one lane there, so a kernel that is right for
// any LANES and uses no block barrier gives the same answers on both.
//
// Grids are 1-D and hold fewer than 2^32 threads; blocks are whole warps on the device.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__

#define KERNEL extern "C" __global__ void
// Pure logic, callable from anywhere.
#define INLINE __host__ __device__ __forceinline__
// What only a kernel may call.
#define DEVICE __device__ __forceinline__
#define HOST_ENTRY(name)

constexpr uint32_t LANES = 32;
constexpr uint32_t ALL_LANES = 0xffffffffu;

#else

#include <stddef.h>

#include <type_traits>
#include <utility>

#define KERNEL static void
#define INLINE static inline
#define DEVICE static inline
#define __launch_bounds__(...)

constexpr uint32_t LANES = 1;
constexpr uint32_t ALL_LANES = 1;

// Which thread of which grid runs now. One for each host thread, for several devices may run at once.
struct HostThread {
  uint32_t index;
  uint32_t count;
};
static thread_local HostThread host_thread = {0, 1};

template <typename... Arguments, size_t... Index>
static void host_run(void (*kernel)(Arguments...), uint32_t grid, uint32_t block, void** parameters,
                     std::index_sequence<Index...>) {
  host_thread.count = grid * block;
  for (host_thread.index = 0; host_thread.index < host_thread.count; host_thread.index++) {
    kernel(*static_cast<std::remove_cv_t<Arguments>*>(parameters[Index])...);
  }
}

template <typename... Arguments>
static void host_run(void (*kernel)(Arguments...), uint32_t grid, uint32_t block, void** parameters) {
  host_run(kernel, grid, block, parameters, std::index_sequence_for<Arguments...>{});
}

// Stands after a kernel and makes it known to the host backend: parameters[i] points to the i-th argument, as for cuLaunchKernel.
#define HOST_ENTRY(name)                                                                                             \
  extern "C" void host_##name(uint32_t grid, uint32_t block, void** parameters) {                                 \
    host_run(&name, grid, block, parameters);                                                                    \
  }

#endif

// ---- Where am I -------------------------------------------------------------------------------------------------

// This thread's number in the grid.
DEVICE uint32_t thread_index() {
#ifdef __CUDACC__
  return blockIdx.x * blockDim.x + threadIdx.x;
#else
  return host_thread.index;
#endif
}

// How many threads the grid has: the stride of a grid-stride loop.
DEVICE uint32_t threads_count() {
#ifdef __CUDACC__
  return gridDim.x * blockDim.x;
#else
  return host_thread.count;
#endif
}

// This thread's number in its warp, below LANES.
DEVICE uint32_t lane_index() {
#ifdef __CUDACC__
  return threadIdx.x % LANES;
#else
  return 0;
#endif
}

// This warp's number in the grid.
DEVICE uint32_t warp_index() {
  return thread_index() / LANES;
}

// How many warps the grid has.
DEVICE uint32_t warps_count() {
  return threads_count() / LANES;
}

// ---- Within a warp: all lanes call together ---------------------------------------------------------------------

// Orders the memory accesses of a warp's lanes.
DEVICE void warp_sync() {
#ifdef __CUDACC__
  __syncwarp(ALL_LANES);
#endif
}

// CUDA's headers took this name for a function that no longer works.
#ifdef __CUDACC__
#define ballot warp_ballot
#endif

// Bit i says what lane i holds.
DEVICE uint32_t ballot(bool holds) {
#ifdef __CUDACC__
  return __ballot_sync(ALL_LANES, holds);
#else
  return holds ? 1u : 0u;
#endif
}

// The value of another lane; `lane` is below LANES.
template <typename T>
DEVICE T shuffle(T value, uint32_t lane) {
#ifdef __CUDACC__
  return __shfl_sync(ALL_LANES, value, static_cast<int>(lane));
#else
  static_cast<void>(lane);
  return value;
#endif
}

// The sum over all lanes, in every lane. Integers only: the order of the additions is not told.
template <typename T>
DEVICE T warp_sum(T value) {
#ifdef __CUDACC__
  for (uint32_t step = LANES / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(ALL_LANES, value, static_cast<int>(step));
  }
#endif
  return value;
}

// ---- Words that many threads write ------------------------------------------------------------------------------
// Each answers what stood there before.

DEVICE uint32_t atomic_add(uint32_t* word, uint32_t addend) {
#ifdef __CUDACC__
  return atomicAdd(word, addend);
#else
  uint32_t before = *word;
  *word = before + addend;
  return before;
#endif
}

DEVICE uint64_t atomic_add_wide(uint64_t* word, uint64_t addend) {
#ifdef __CUDACC__
  return atomicAdd(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(addend));
#else
  uint64_t before = *word;
  *word = before + addend;
  return before;
#endif
}

DEVICE uint32_t atomic_or(uint32_t* word, uint32_t bits) {
#ifdef __CUDACC__
  return atomicOr(word, bits);
#else
  uint32_t before = *word;
  *word = before | bits;
  return before;
#endif
}

// ---- Bits -------------------------------------------------------------------------------------------------------

// How many bits are set.
DEVICE uint32_t popcount(uint32_t bits) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__popc(bits));
#else
  return static_cast<uint32_t>(__builtin_popcount(bits));
#endif
}
