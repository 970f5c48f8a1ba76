// Shortest paths between all vertices by a plain blocked kernel, to compare rules with: `nvcc -O3 -arch=native floyd_warshall.cu && ./a.out`.
//
// Three launches for each of the tiles on the diagonal: that tile, its row and column, and the rest. Distances are of 64 bits, as those of rules.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int TILE = 32;

__global__ void diagonal(int64_t* lengths, int count, int at) {
  __shared__ int64_t tile[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  int64_t* mine = &lengths[int64_t(at * TILE + y) * count + at * TILE + x];
  tile[y][x] = *mine;
  __syncthreads();
  for (int via = 0; via < TILE; via++) {
    const int64_t around = tile[y][via] + tile[via][x];
    __syncthreads();
    if (around < tile[y][x]) tile[y][x] = around;
    __syncthreads();
  }
  *mine = tile[y][x];
}

__global__ void cross(int64_t* lengths, int count, int at) {
  const int other = blockIdx.x, x = threadIdx.x, y = threadIdx.y;
  if (other == at) return;
  const bool is_row = blockIdx.y == 0;
  __shared__ int64_t middle[TILE][TILE], tile[TILE][TILE];
  middle[y][x] = lengths[int64_t(at * TILE + y) * count + at * TILE + x];
  int64_t* mine = is_row ? &lengths[int64_t(at * TILE + y) * count + other * TILE + x]
                         : &lengths[int64_t(other * TILE + y) * count + at * TILE + x];
  tile[y][x] = *mine;
  __syncthreads();
  for (int via = 0; via < TILE; via++) {
    const int64_t around = is_row ? middle[y][via] + tile[via][x] : tile[y][via] + middle[via][x];
    __syncthreads();
    if (around < tile[y][x]) tile[y][x] = around;
    __syncthreads();
  }
  *mine = tile[y][x];
}

__global__ void rest(int64_t* lengths, int count, int at) {
  const int column = blockIdx.x, row = blockIdx.y, x = threadIdx.x, y = threadIdx.y;
  if (column == at || row == at) return;
  __shared__ int64_t left[TILE][TILE], above[TILE][TILE];
  left[y][x] = lengths[int64_t(row * TILE + y) * count + at * TILE + x];
  above[y][x] = lengths[int64_t(at * TILE + y) * count + column * TILE + x];
  int64_t* mine = &lengths[int64_t(row * TILE + y) * count + column * TILE + x];
  int64_t best = *mine;
  __syncthreads();
  for (int via = 0; via < TILE; via++) {
    const int64_t around = left[y][via] + above[via][x];
    if (around < best) best = around;
  }
  *mine = best;
}

int main() {
  for (int count : {256, 512, 1024}) {
    std::vector<int64_t> lengths(size_t(count) * count);
    for (int64_t from = 0; from < count; from++) {
      for (int64_t to = 0; to < count; to++) {
        const int64_t apart = (to - from + count) % count;
        lengths[from * count + to] = apart == 0 ? 0 : apart == 1 ? 1 + from % 5 : 10 + (from * 31 + to * 17) % 97 * apart;
      }
    }
    int64_t* d_lengths = nullptr;
    const size_t bytes = lengths.size() * sizeof(int64_t);
    cudaMalloc(&d_lengths, bytes);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<float> times;
    for (int run = 0; run < 8; run++) {
      cudaMemcpy(d_lengths, lengths.data(), bytes, cudaMemcpyHostToDevice);
      cudaEventRecord(begin);
      const int tiles = count / TILE;
      const dim3 block(TILE, TILE);
      for (int at = 0; at < tiles; at++) {
        diagonal<<<1, block>>>(d_lengths, count, at);
        cross<<<dim3(tiles, 2), block>>>(d_lengths, count, at);
        rest<<<dim3(tiles, tiles), block>>>(d_lengths, count, at);
      }
      cudaEventRecord(end);
      cudaEventSynchronize(end);
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      // The first run warms up.
      if (run > 0) times.push_back(ms);
    }
    std::vector<int64_t> found(lengths.size());
    if (cudaMemcpy(found.data(), d_lengths, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    int64_t sum = 0;
    for (int64_t length : found) sum += length;
    std::sort(times.begin(), times.end());
    printf("%d vertices: %.3f ms (%.3f to %.3f), sum %lld\n", count, times[3], times[0], times[6], (long long)sum);
  }
  return 0;
}
