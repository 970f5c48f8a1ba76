// Sorts the entries of the batched engine by cell: a counting sort without block barriers. Order inside of a bucket
// differs from run to run; what is in it does not.

#include "gpu.cuh"
#include "lanes.cuh"
#include "launch.cuh"

/// A thread an entry: its bucket, how many came into that before it, and which levels there are.
/// places, kinds [entries_count] in; keys, ranks [entries_count] out; counts [buckets_mask + 1] in and out, from 0;
/// occupied [1] in and out, from 0
KERNEL gpu_sort_keys(const Place* places, const uint32_t* kinds, uint32_t entries_count, GpuLevels levels,
                     uint32_t buckets_mask, uint32_t* keys, uint32_t* ranks, uint32_t* counts,
                     uint32_t* occupied) {
  const uint32_t entry = thread_index();
  if (entry >= entries_count) return;
  const Place place = places[entry];
  // Who is nowhere has no cell.
  if (!(kinds[entry] & KIND_LIVE) || place.x != place.x) {
    keys[entry] = NONE;
    return;
  }
  uint32_t level;
  const uint32_t bucket = bucket_of(place, levels, &level) & buckets_mask;
  keys[entry] = bucket;
  ranks[entry] = atomic_add(&counts[bucket], 1);
  if (!(*occupied >> level & 1)) atomic_or(occupied, 1u << level);
}
HOST_ENTRY(gpu_sort_keys)

/// A warp a chunk: the sum of its counts.
/// counts [chunks * CHUNK] in; sums [chunks] out
KERNEL gpu_sort_sums(const uint32_t* counts, uint32_t chunks, uint32_t* sums) {
  if (warp_index() >= chunks) return;
  uint32_t sum = 0;
  for (uint32_t at = lane_index(); at < CHUNK; at += LANES) sum += counts[uint64_t(warp_index()) * CHUNK + at];
  sum = warp_sum(sum);
  if (lane_index() == 0) sums[warp_index()] = sum;
}
HOST_ENTRY(gpu_sort_sums)

/// One warp: each sum becomes that of the chunks before.
/// sums [chunks] in and out
KERNEL gpu_sort_starts(uint32_t* sums, uint32_t chunks) {
  if (warp_index() > 0) return;
  uint32_t running = 0;
  for (uint32_t first = 0; first < chunks; first += LANES) {
    const uint32_t at = first + lane_index();
    uint32_t total;
    const uint32_t before = lanes_before(at < chunks ? sums[at] : 0, &total);
    if (at < chunks) sums[at] = running + before;
    running += total;
  }
}
HOST_ENTRY(gpu_sort_starts)

/// A warp a chunk: counts become where buckets begin.
/// starts [chunks] in; counts [chunks * CHUNK + 1] in and out
KERNEL gpu_sort_offsets(const uint32_t* starts, uint32_t chunks, uint32_t* counts) {
  if (warp_index() >= chunks) return;
  uint32_t running = starts[warp_index()];
  for (uint32_t first = 0; first < CHUNK; first += LANES) {
    const uint64_t at = uint64_t(warp_index()) * CHUNK + first + lane_index();
    uint32_t total;
    const uint32_t before = lanes_before(counts[at], &total);
    counts[at] = running + before;
    running += total;
  }
  if (warp_index() == chunks - 1 && lane_index() == 0) counts[uint64_t(chunks) * CHUNK] = running;
}
HOST_ENTRY(gpu_sort_offsets)

/// A thread an entry: copies it to its place in the base.
/// keys, ranks, places, masks [entries_count] in; offsets [buckets + 1] in; base_* [entries] out
KERNEL gpu_sort_scatter(const uint32_t* keys, const uint32_t* ranks, uint32_t entries_count,
                        const uint32_t* offsets, const Place* places, const uint32_t* masks,
                        Place* base_places, uint32_t* base_masks, uint32_t* base_entries) {
  const uint32_t entry = thread_index();
  if (entry >= entries_count || keys[entry] == NONE) return;
  const uint32_t at = offsets[keys[entry]] + ranks[entry];
  base_places[at] = places[entry];
  base_masks[at] = masks[entry];
  base_entries[at] = entry;
}
HOST_ENTRY(gpu_sort_scatter)
