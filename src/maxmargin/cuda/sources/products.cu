// Fused products with a kernel matrix on tensor cores, and blocks of it.
//
//     out[f, row] = Σ_j value(x_row · z_j) weight_fj    (STORE = 0)
//     out[row, j] = value(x_row · z_j)                  (STORE = 1)
//
// A sample is the sum of two vectors in half precision, high and low. Three products of the four give the inner product
// to about 22 bits; where the low part is 0 (EXACT = 1), one does. Sums over features and over eight samples (32 for
// several functions) are float32, sums of these float64, in an order that depends on the shape alone: results are
// repeatable bit for bit. The sums of one function are in registers, those of several in shared memory.
//
// Compile-time parameters: FUNCTION (as in kernels/formula.py), DEGREE, WIDTH (features, a multiple of 16), EXACT, STORE,
// FUNCTIONS (that share the values).

#include <cuda_fp16.h>

constexpr int kRows = 128, kColumns = 128, kThreads = 256;
constexpr int kDepth = WIDTH < 64 ? WIDTH : 64;       // features in shared memory at a time
constexpr int kChunks = (WIDTH + kDepth - 1) / kDepth;
constexpr int kStride = kDepth + 8;                   // halves from row to row: no bank conflicts
constexpr int kParts = EXACT ? 1 : 2;
constexpr int kTile = 128 * kStride;                  // halves of one part of 128 samples

struct Samples {
  const __half* high;
  const __half* low;
  const int* index;         // the row of each sample
  int count;
};

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void copy_16_bytes(unsigned to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;  // the rest is filled with zeros
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(from)
               : "memory");
}

__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copy some features of 128 samples from `first` on into shared memory, both parts.
__device__ void load_tile(__half* tile, const Samples& samples, int first, int chunk) {
  constexpr int kPieces = kDepth / 8;
  for (int k = threadIdx.x; k < 128 * kPieces; k += kThreads) {
    const int sample = k / kPieces, piece = k % kPieces;
    const bool valid = first + sample < samples.count && chunk * kDepth + piece * 8 < WIDTH;
    const long long row = valid ? (samples.index ? samples.index[first + sample] : first + sample) : 0;
    const long long from = row * WIDTH + (valid ? chunk * kDepth + piece * 8 : 0);
    const unsigned to = shared_address(tile + sample * kStride + piece * 8);
    copy_16_bytes(to, samples.high + from, valid);
    if (!EXACT) copy_16_bytes(to + kTile * sizeof(__half), samples.low + from, valid);
  }
}

__device__ __forceinline__ float value_of(float sum, float left, float right, float scale, float offset) {
#if FUNCTION == 4
  float exponent = fminf(fmaf(sum, scale, -left - right), 0.0f), value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
  return value;
#elif FUNCTION == 1
  const float base = fmaf(sum, scale, offset);
  float value = 1.0f;
#pragma unroll
  for (int k = 0; k < DEGREE; ++k) value *= base;
  return value;
#elif FUNCTION == 3
  return tanhf(fmaf(sum, scale, offset));
#else
  return sum * scale;
#endif
}

// The inner products of a tile of 64 x 32 for each of the eight warps.
__device__ __forceinline__ void multiply_tiles(float (&sums)[4][4][4], const __half* rows, const __half* columns) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned a_from = shared_address(rows + ((warp / 4) * 64 + lane % 16) * kStride + (lane / 16) * 8);
  const unsigned b_from =
      shared_address(columns + ((warp % 4) * 32 + lane % 8 + (lane / 16) * 8) * kStride + (lane / 8 % 2) * 8);
  constexpr unsigned kPart = kTile * sizeof(__half);
#pragma unroll
  for (int depth = 0; depth < kDepth; depth += 16) {
    unsigned b[kParts][2][4];
#pragma unroll
    for (int part = 0; part < kParts; ++part)
#pragma unroll
      for (int n = 0; n < 2; ++n) load_matrices(b[part][n], b_from + part * kPart + (n * 16 * kStride + depth) * 2);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      unsigned high[4], low[4];
      load_matrices(high, a_from + (m * 16 * kStride + depth) * 2);
      if (!EXACT) load_matrices(low, a_from + kPart + (m * 16 * kStride + depth) * 2);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (!EXACT) {
          multiply_add(sums[m][n], low, b[0][n / 2][n % 2 * 2], b[0][n / 2][n % 2 * 2 + 1]);
          multiply_add(sums[m][n], high, b[kParts - 1][n / 2][n % 2 * 2], b[kParts - 1][n / 2][n % 2 * 2 + 1]);
        }
        multiply_add(sums[m][n], high, b[0][n / 2][n % 2 * 2], b[0][n / 2][n % 2 * 2 + 1]);
      }
    }
  }
}

__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

// Add the products of the values of a tile with the weights of its samples to the sums of several functions.
__device__ __forceinline__ void add_products(double* parts, const float* factors, const float (&values)[4][4][4]) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
  for (int f = 0; f < FUNCTIONS; ++f) {
    float of_columns[8];
#pragma unroll
    for (int c = 0; c < 8; ++c)
      of_columns[c] = factors[f * kColumns + (warp % 4) * 32 + (c / 2) * 8 + (lane % 4) * 2 + c % 2];
    double* own = parts + (f * 4 + warp % 4) * kRows + (warp / 4) * 64 + lane / 4;
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      float partial = 0.0f;
#pragma unroll
      for (int c = 0; c < 8; ++c) partial = fmaf(values[r / 2][c / 2][r % 2 * 2 + c % 2], of_columns[c], partial);
      partial += __shfl_xor_sync(0xffffffffu, partial, 1);
      partial += __shfl_xor_sync(0xffffffffu, partial, 2);
      if (lane % 4 == 0) own[(r / 2) * 16 + (r % 2) * 8] += partial;
    }
  }
}

// Blocks: tiles of 128 rows x parts of the columns, `per_part` (a multiple of 128) each. The sums of a part go to
// out[(part * FUNCTIONS + f) * rows.count + row].
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    kernel_product(const __half* row_high, const __half* row_low, const float* row_half_norms, const int* row_index,
                   int n_rows, const __half* column_high, const __half* column_low, const float* column_half_norms,
                   const int* column_index, int n_columns, const double* weights, int per_part, float scale,
                   float offset, void* out) {
  extern __shared__ __align__(16) unsigned char memory[];
  __half* row_tile = reinterpret_cast<__half*>(memory);
  __half* column_tile = row_tile + kParts * kTile;
  __shared__ float norms[kColumns];
#if FUNCTIONS == 1
  __shared__ float factors[kColumns];
  __shared__ double parts[4 * kRows];
#else
  double* parts = reinterpret_cast<double*>(column_tile + kParts * kTile);
  float* factors = reinterpret_cast<float*>(parts + FUNCTIONS * 4 * kRows);
  for (int k = threadIdx.x; k < FUNCTIONS * 4 * kRows; k += kThreads) parts[k] = 0.0;
#endif
  const Samples rows{row_high, row_low, row_index, n_rows};
  const Samples columns{column_high, column_low, column_index, n_columns};
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = blockIdx.x * kRows, end = min(n_columns, (int)(blockIdx.y + 1) * per_part);
  float row_norms[8];
  double totals[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int row = first_row + (warp / 4) * 64 + (k / 2) * 16 + lane / 4 + (k % 2) * 8;
    row_norms[k] = row_half_norms && row < n_rows ? row_half_norms[row_index ? row_index[row] : row] : 0.0f;
    totals[k] = 0.0;
  }
  if (kChunks == 1) load_tile(row_tile, rows, first_row, 0);
  for (int first = blockIdx.y * per_part; first < end; first += kColumns) {
    __syncthreads();  // everyone is done with the tiles before
    if (threadIdx.x < kColumns) {
      const int column = first + threadIdx.x;
      const bool valid = column < n_columns;
      norms[threadIdx.x] =
          valid && column_half_norms ? column_half_norms[column_index ? column_index[column] : column] : 0.0f;
    }
    for (int k = threadIdx.x; k < FUNCTIONS * kColumns && !STORE; k += kThreads) {
      const int column = first + k % kColumns;
      factors[k] = column < n_columns ? (float)weights[(long long)(k / kColumns) * n_columns + column] : 0.0f;
    }
    float sums[4][4][4] = {};
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      if (chunk) __syncthreads();
      if (kChunks > 1) load_tile(row_tile, rows, first_row, chunk);
      load_tile(column_tile, columns, first, chunk);
      wait_for_copies();
      multiply_tiles(sums, row_tile, column_tile);
    }
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float partial = 0.0f;
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const int column = (warp % 4) * 32 + n * 8 + (lane % 4) * 2 + k;
            const float value =
                value_of(sums[m][n][half * 2 + k], row_norms[m * 2 + half], norms[column], scale, offset);
#if STORE
            const int row = first_row + (warp / 4) * 64 + m * 16 + half * 8 + lane / 4;
            if (row < n_rows && first + column < n_columns)
              static_cast<float*>(out)[(long long)row * n_columns + first + column] = value;
#elif FUNCTIONS == 1
            partial = fmaf(value, factors[column], partial);
#else
            sums[m][n][half * 2 + k] = value;
#endif
          }
        totals[m * 2 + half] += partial;
      }
#if !STORE && FUNCTIONS > 1
    add_products(parts, factors, sums);
#endif
  }
#if !STORE
#if FUNCTIONS == 1
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    totals[k] += __shfl_xor_sync(0xffffffffu, totals[k], 1);
    totals[k] += __shfl_xor_sync(0xffffffffu, totals[k], 2);
    if (lane % 4 == 0) parts[(warp % 4) * kRows + (warp / 4) * 64 + (k / 2) * 16 + lane / 4 + (k % 2) * 8] = totals[k];
  }
#endif
  __syncthreads();
  for (int k = threadIdx.x; k < FUNCTIONS * kRows; k += kThreads) {
    const int f = k / kRows, row = k % kRows;
    const double* own = parts + f * 4 * kRows + row;
    if (first_row + row < n_rows)
      static_cast<double*>(out)[((long long)blockIdx.y * FUNCTIONS + f) * n_rows + first_row + row] =
          (own[0] + own[kRows]) + (own[2 * kRows] + own[3 * kRows]);
  }
#endif
}
