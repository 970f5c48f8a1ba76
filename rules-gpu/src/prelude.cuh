// Every argument has one type; atoms are numbers. Constraints of a kind are an array that never grows.
//
// With nvcc this is a program for a device. A C++ compiler makes one for the processor of it, for tests: threads run one after another there,
// or, with -DINTERLEAVED (C++20), at once: a step each in turn, each thread a step behind the one before.
// -DPAIRS has a thread for each pair of the first two heads. -DAS_PUBLISHED leaves out the claims, as the paper does.
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#ifdef __CUDACC__
#define TOGETHER()
#define LAUNCH(kernel, count, ...)                                         \
  kernel<<<((count) + 511) / 512, 512>>>(count, __VA_ARGS__);              \
  if (cudaDeviceSynchronize() != cudaSuccess) {                            \
    fprintf(stderr, "the device failed\n");                                \
    exit(1);                                                               \
  }
__device__ uint64_t this_thread() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ uint32_t compare_and_swap(uint32_t* word, uint32_t from, uint32_t to) { return atomicCAS(word, from, to); }
__device__ uint32_t add_to(uint32_t* word, uint32_t count) { return atomicAdd(word, count); }
__device__ void fence() { __threadfence(); }
template <typename T>
T* shared_memory(size_t count) {
  T* memory = nullptr;
  if (cudaMallocManaged(&memory, (count + 1) * sizeof(T)) != cudaSuccess) {
    fprintf(stderr, "no memory of the device\n");
    exit(1);
  }
  return memory;
}
#else
#define __device__ static inline
#define __global__ static
#ifdef INTERLEAVED
#include <barrier>
#include <thread>
static std::barrier<>* together;
#define TOGETHER() together->arrive_and_wait()
#define LAUNCH(kernel, count, ...)                                         \
  {                                                                        \
    std::barrier<> all(static_cast<ptrdiff_t>(count));                     \
    together = &all;                                                       \
    std::vector<std::thread> lanes;                                        \
    for (uint64_t number = 0; number < (count); number++) {                \
      lanes.emplace_back([&, number] {                                   \
        thread_number = number;                                            \
        for (uint64_t step = 0; step < number; step++) TOGETHER();         \
        kernel(count, __VA_ARGS__);                                        \
        all.arrive_and_drop();                                             \
      });                                                                  \
    }                                                                      \
    for (auto& lane : lanes) lane.join();                                  \
  }
#else
#define TOGETHER()
#define LAUNCH(kernel, count, ...) \
  for (thread_number = 0; thread_number < (count); thread_number++) kernel(count, __VA_ARGS__);
#endif
static thread_local uint64_t thread_number;
static inline uint64_t this_thread() { return thread_number; }
static inline uint32_t compare_and_swap(uint32_t* word, uint32_t from, uint32_t to) {
  __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return from;
}
static inline uint32_t add_to(uint32_t* word, uint32_t count) { return __atomic_fetch_add(word, count, __ATOMIC_SEQ_CST); }
static inline void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
template <typename T>
T* shared_memory(size_t count) {
  return static_cast<T*>(calloc(count + 1, sizeof(T)));
}
#endif

/// What threads tell the host. `error` is 1 for a number without a value, 2 for a body that failed.
struct Round {
  uint32_t update, applied, error, rule;
};

// ---- Claims: nobody reads what another writes, and nothing is removed twice ----

struct Claim {
  uint32_t* word;
  bool is_removed;
};

constexpr uint32_t WRITTEN = 0x80000000u;

__device__ void release(Claim* claims, int count) {
  fence();
  while (count-- > 0) add_to(claims[count].word, claims[count].is_removed ? WRITTEN : ~0u);
}

/// In the order of addresses, so that of several threads one always has all.
__device__ bool claim(Claim* claims, int count) {
  for (int at = 1; at < count; at++) {
    const Claim moved = claims[at];
    int to = at;
    for (; to > 0 && claims[to - 1].word > moved.word; to--) claims[to] = claims[to - 1];
    claims[to] = moved;
  }
  for (int at = 0; at < count; at++) {
    if (claims[at].is_removed) {
      if (compare_and_swap(claims[at].word, 0, WRITTEN) == 0) continue;
    } else {
      if ((add_to(claims[at].word, 1) & WRITTEN) == 0) continue;
      add_to(claims[at].word, ~0u);
    }
    release(claims, at);
    return false;
  }
  fence();
  return true;
}

// ---- Arithmetic: what has no value sets `bad` ----

__device__ int order(int64_t a, int64_t b) { return a < b ? -1 : a > b; }
__device__ int order(double a, double b) { return a < b ? -1 : a > b; }
__device__ int order(int64_t a, double b) { return order(double(a), b); }
__device__ int order(double a, int64_t b) { return order(a, double(b)); }
__device__ double finite(double value, bool* bad) {
  if (!(fabs(value) <= 1.7976931348623157e308)) *bad = true;
  return value;
}
__device__ int64_t plus(int64_t a, int64_t b, bool* bad) {
  const int64_t sum = int64_t(uint64_t(a) + uint64_t(b));
  if (((a ^ sum) & (b ^ sum)) < 0) *bad = true;
  return sum;
}
__device__ int64_t minus(int64_t a, int64_t b, bool* bad) {
  const int64_t difference = int64_t(uint64_t(a) - uint64_t(b));
  if (((a ^ b) & (a ^ difference)) < 0) *bad = true;
  return difference;
}
__device__ int64_t times(int64_t a, int64_t b, bool* bad) {
  const int64_t product = int64_t(uint64_t(a) * uint64_t(b));
  if (a != 0 && ((a == -1 && b == INT64_MIN) || (a != -1 && product / a != b))) *bad = true;
  return product;
}
__device__ int64_t quotient(int64_t a, int64_t b, bool* bad) {
  if (b == 0 || (a == INT64_MIN && b == -1)) {
    *bad = true;
    return 0;
  }
  return a / b;
}
__device__ int64_t rest(int64_t a, int64_t b, bool* bad) { return b == -1 ? 0 : a - quotient(a, b, bad) * b; }
__device__ int64_t quotient_below(int64_t a, int64_t b, bool* bad) {
  const int64_t left = rest(a, b, bad);
  return quotient(a, b, bad) - (left != 0 && (left < 0) != (b < 0));
}
__device__ int64_t modulo(int64_t a, int64_t b, bool* bad) {
  const int64_t left = rest(a, b, bad);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
__device__ int64_t negative(int64_t a, bool* bad) { return minus(0, a, bad); }
__device__ int64_t magnitude(int64_t a, bool* bad) { return a < 0 ? negative(a, bad) : a; }
__device__ int64_t sign(int64_t a, bool*) { return (a > 0) - (a < 0); }
__device__ int64_t left_shift(int64_t a, int64_t bits, bool* bad) {
  if (bits < 0) return a >> (bits > -63 ? -bits : 63);
  if (a == 0) return 0;
  if (bits > 63 || int64_t(uint64_t(a) << bits) >> bits != a) {
    *bad = true;
    return 0;
  }
  return int64_t(uint64_t(a) << bits);
}
__device__ int64_t right_shift(int64_t a, int64_t bits, bool* bad) {
  return left_shift(a, bits == INT64_MIN ? INT64_MAX : -bits, bad);
}
__device__ int64_t whole(double a, bool* bad) {
  if (a >= -9223372036854775808.0 && a < 9223372036854775808.0) return int64_t(a);
  *bad = true;
  return 0;
}
#ifdef __CUDA_ARCH__
__device__ double plus(double a, double b, bool* bad) { return finite(__dadd_rn(a, b), bad); }
__device__ double times(double a, double b, bool* bad) { return finite(__dmul_rn(a, b), bad); }
#else
__device__ double plus(double a, double b, bool* bad) { return finite(a + b, bad); }
__device__ double times(double a, double b, bool* bad) { return finite(a * b, bad); }
#endif
__device__ double minus(double a, double b, bool* bad) { return plus(a, -b, bad); }
__device__ double ratio(double a, double b, bool* bad) { return finite(a / b, bad); }
__device__ double negative(double a, bool*) { return -a; }
__device__ double magnitude(double a, bool*) { return fabs(a); }
__device__ double sign(double a, bool*) { return a == 0 ? 0.0 : a < 0 ? -1.0 : 1.0; }
__device__ double root(double a, bool* bad) { return finite(sqrt(a), bad); }
__device__ int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
// Of two zeros the one with the sign is less.
__device__ double least(double a, double b) { return (a == b ? signbit(a) : a < b) ? a : b; }
__device__ double most(double a, double b) { return (a == b ? !signbit(a) : a > b) ? a : b; }
