// Fused products in float64 with a kernel matrix whose values are functions of inner products, on tensor cores: for
// audits, certificates and predictions that need float64.
//
// The Gaussian takes squared distances from norms and inner products, ‖x‖² + ‖z‖² − 2 x·z, whose cancellation
// kernels/rounding.py bounds.
//
// Compile-time parameters: DATA (type of the samples), FUNCTION (as in kernels/formula.py), DEGREE, DEPTH (features in
// shared memory at a time, a multiple of 4), STRIDE (of a sample there), FUNCTIONS (that share the values),
// SMALL_PRODUCTS (those of Ampere, on newer cards, too). Sums are in an order that depends on the shape alone.

constexpr int kRows = 128, kColumns = 64, kThreads = 256;  // of a block; each of eight warps has 32 x 32 values

// Tiles of 8 x 8 values and more: a thread has two of each, in one row.
__device__ __forceinline__ void add_products(double (&sums)[4][4][2], const double (&x)[4], const double (&z)[4]) {
#if __CUDA_ARCH__ >= 900 && !SMALL_PRODUCTS
#pragma unroll
  for (int i = 0; i < 4; i += 2)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                   : "+d"(sums[i][j][0]), "+d"(sums[i][j][1]), "+d"(sums[i + 1][j][0]), "+d"(sums[i + 1][j][1])
                   : "d"(x[i]), "d"(x[i + 1]), "d"(z[j]));
#else
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                   : "+d"(sums[i][j][0]), "+d"(sums[i][j][1])
                   : "d"(x[i]), "d"(z[j]));
#endif
}

__device__ __forceinline__ double value_of(double product, double norms, double gamma, double offset) {
#if FUNCTION == 1
  const double base = gamma * product + offset;
  double value = 1;
  for (int k = 0; k < DEGREE; ++k) value *= base;
  return value;
#elif FUNCTION == 2
  return exp(-gamma * fmax(norms - 2 * product, 0.0));
#elif FUNCTION == 3
  return tanh(gamma * product + offset);
#else
  return product;
#endif
}

__device__ __forceinline__ void load_tile(double* tile, const DATA* data, int width, const int* index, int first,
                                          int count, int samples, int feature) {
  for (int k = threadIdx.x; k < samples * DEPTH; k += kThreads) {
    const int sample = k / DEPTH, f = k % DEPTH;
    double value = 0;
    if (first + sample < count && feature + f < width)
      value = data[(long long)(index ? index[first + sample] : first + sample) * width + feature + f];
    tile[sample * STRIDE + f] = value;
  }
}

// Blocks: tiles of 128 rows x parts of the columns. The sums of a part go to out[(part * FUNCTIONS + f) * n_rows + row].
extern "C" __global__ void __launch_bounds__(kThreads, FUNCTIONS == 1 ? 2 : 1)
    kernel_product(const DATA* row_data, const double* row_norms, const int* row_index, int n_rows,
                   const DATA* column_data, const double* column_norms, const int* column_index, int n_columns,
                   int width, const double* weights, int per_part, double gamma, double offset, double* out) {
  extern __shared__ double memory[];
  double *rows = memory, *columns = rows + kRows * STRIDE, *norms = columns + kColumns * STRIDE;
  double* factors = norms + kColumns;  // FUNCTIONS x kColumns
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, within = lane % 4;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const int first_row = blockIdx.x * kRows, end = min(n_columns, (int)(blockIdx.y + 1) * per_part);
  double totals[FUNCTIONS][4] = {}, own_norms[4] = {};
#if FUNCTION == 2
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + warp_row + i * 8 + group;
    if (row < n_rows) own_norms[i] = row_norms[row_index ? row_index[row] : row];
  }
#endif
  bool loaded = false;
  for (int first = blockIdx.y * per_part; first < end; first += kColumns) {
    double sums[4][4][2] = {};
    for (int feature = 0; feature < width; feature += DEPTH) {
      __syncthreads();
      if (!loaded || width > DEPTH) load_tile(rows, row_data, width, row_index, first_row, n_rows, kRows, feature);
      loaded = true;
      load_tile(columns, column_data, width, column_index, first, n_columns, kColumns, feature);
      if (feature == 0)
        for (int k = threadIdx.x; k < kColumns * FUNCTIONS; k += kThreads) {
          const int column = first + k % kColumns;
          factors[k] = column < n_columns ? weights[(long long)(k / kColumns) * n_columns + column] : 0;
#if FUNCTION == 2
          if (k < kColumns) norms[k] = column < n_columns ? column_norms[column_index ? column_index[column] : column] : 0;
#endif
        }
      __syncthreads();
#pragma unroll 4
      for (int f = 0; f < DEPTH; f += 4) {
        double x[4], z[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          x[k] = rows[(warp_row + k * 8 + group) * STRIDE + f + within];
          z[k] = columns[(warp_column + k * 8 + group) * STRIDE + f + within];
        }
        add_products(sums, x, z);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = warp_column + j * 8 + within * 2 + e;
#if FUNCTION == 2
        const double norm = norms[column];
#else
        const double norm = 0;
#endif
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const double value = value_of(sums[i][j][e], own_norms[i] + norm, gamma, offset);
#pragma unroll
          for (int f = 0; f < FUNCTIONS; ++f) totals[f][i] += value * factors[f * kColumns + column];
        }
      }
  }
#pragma unroll
  for (int f = 0; f < FUNCTIONS; ++f) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      double total = totals[f][i];
      total += __shfl_xor_sync(0xffffffffu, total, 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      if (within == 0) memory[warp % 2 * kRows + warp_row + i * 8 + group] = total;
    }
    __syncthreads();
    const int row = first_row + threadIdx.x;
    if (threadIdx.x < kRows && row < n_rows)
      out[((long long)blockIdx.y * FUNCTIONS + f) * n_rows + row] = memory[threadIdx.x] + memory[kRows + threadIdx.x];
  }
}
