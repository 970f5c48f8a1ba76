// Tells whether a device runs our kernels at all, and tries what launch.cuh gives.
#include "launch.cuh"

// Adds a number to each word and counts the odd results.
//
// Grid: 1-D, any size; a warp takes LANES words at a time.
// input  [count] in
// output [count] out, input + addend, wrapping
// odd    [1] in and out, the number of odd outputs is added
KERNEL probe(const uint32_t* input, uint32_t* output, uint32_t* odd, uint32_t count, uint32_t addend) {
  // 64 bits, for the last stride may go past 2^32.
  for (uint64_t first = uint64_t{warp_index()} * LANES; first < count; first += uint64_t{warps_count()} * LANES) {
    uint64_t index = first + lane_index();
    bool inside = index < count;
    uint32_t sum = inside ? input[index] + addend : 0;
    if (inside) {
      output[index] = sum;
    }
    uint32_t odds = popcount(ballot((sum & 1u) != 0));
    if (lane_index() == 0 && odds > 0) {
      atomic_add(odd, odds);
    }
  }
}
HOST_ENTRY(probe)
