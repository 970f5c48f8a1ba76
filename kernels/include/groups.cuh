#pragma once
// What the kernels of networks share: records, and a few words more than `launch.cuh` has. `src/groups.rs` has the records, field by field.

#include "launch.cuh"

/// Lengths that a warp sums up at a time.
constexpr uint32_t GROUPS_CHUNK = 1024;

/// Words in which the algorithms of the N-E model tell the host how it goes: 1 where a variable has no node left, and then for each of
/// the loops that are started together the nodes that it deleted.
constexpr uint32_t NE_EMPTY = 0;
constexpr uint32_t NE_DELETED = 1;
constexpr uint32_t NE_LOOPS = 32;
/// No loop: what is before the first one, or is not bound to one.
constexpr uint32_t NE_NO_LOOP = 0xffffffff;

/// Halves of the word that stands before the words of a start: the last round that removed something, or the loops; and not 0 where a
/// variable has no value left.
constexpr uint32_t START_ROUND = 0;
constexpr uint32_t START_EMPTY = 1;

/// Words that the host looks at while a start is worked at: not 0 once all is told, how it went, and then what is left.
constexpr uint32_t TOLD_FLAG = 0;
constexpr uint32_t TOLD_HEAD = 1;
constexpr uint32_t TOLD_WORDS = 2;

/// A word of values of a variable x that lose their supports at a variable y. Tasks are sorted by y.
struct GroupsTask {
  uint32_t x;
  /// The word, among those of a start.
  uint32_t word;
  uint32_t y;
  /// The first word of y, among those of a start.
  uint32_t at;
  /// The word of the row of y's first value that has bits for the values of `word`, and from one row to the next.
  uint32_t unions;
  uint32_t union_stride;
  /// The row of the first value of `word`: bits for the values of y, in as many words as y has.
  uint32_t tests;
  uint32_t row_words;
  /// The fewest supports that a value of x has among all values of y.
  uint32_t least;
};
static_assert(sizeof(GroupsTask) == 36, "shared with Rust");

#ifdef __CUDACC__
#define UNROLL _Pragma("unroll 8")
#else
#define UNROLL
#endif

/// A word that others may write meanwhile.
template <typename T>
DEVICE T groups_look(const T* word) {
  return *static_cast<const volatile T*>(word);
}

/// Orders what was written before and what is written after, for the host too.
DEVICE void groups_fence() {
#ifdef __CUDACC__
  __threadfence_system();
#endif
}

/// Answers what stood there before.
DEVICE uint32_t groups_exchange(uint32_t* word, uint32_t value) {
#ifdef __CUDACC__
  return atomicExch(word, value);
#else
  const uint32_t before = *word;
  *word = value;
  return before;
#endif
}

/// Answers what stood there before.
DEVICE uint64_t groups_and(uint64_t* word, uint64_t bits) {
#ifdef __CUDACC__
  return atomicAnd(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(bits));
#else
  const uint64_t before = *word;
  *word = before & bits;
  return before;
#endif
}

DEVICE uint32_t groups_popcount(uint64_t bits) {
  return popcount(static_cast<uint32_t>(bits)) + popcount(static_cast<uint32_t>(bits >> 32));
}

/// The number of the lowest bit that is set; some is.
DEVICE uint32_t groups_lowest(uint64_t bits) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__ffsll(static_cast<long long>(bits))) - 1;
#else
  return static_cast<uint32_t>(__builtin_ctzll(bits));
#endif
}
