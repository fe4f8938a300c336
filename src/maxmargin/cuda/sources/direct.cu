// Fused products with a kernel matrix whose values are summed feature by feature, and blocks of it: every kernel in
// float64, for audits and certificates, and in float32 the kernels that are no functions of an inner product.
//
// Compile-time parameters: REAL (float or double), DATA (type of the samples), TERM and FUNCTION (as in
// kernels/formula.py), DEGREE, STORE, FUNCTIONS (that share the values). Sums over samples are float64, in an order that depends on the shape alone.

constexpr int kTile = 64, kDepth = 16, kSide = 16;  // 16 x 16 threads, 4 x 4 values each

__device__ __forceinline__ REAL term_of(REAL sum, REAL x, REAL z) {
#if TERM == 0
  return fma(x, z, sum);
#elif TERM == 1
  const REAL d = x - z;
  return fma(d, d, sum);
#elif TERM == 2
  return sum + fabs(x - z);
#else
  const REAL d = x - z, s = x + z;
  return s > 0 ? sum + d * d / s : sum;
#endif
}

__device__ __forceinline__ REAL value_of(REAL sum, REAL gamma, REAL offset) {
#if FUNCTION == 1
  const REAL base = gamma * sum + offset;
  REAL value = 1;
  for (int k = 0; k < DEGREE; ++k) value *= base;
  return value;
#elif FUNCTION == 2
  return exp(-gamma * sum);
#elif FUNCTION == 3
  return tanh(gamma * sum + offset);
#else
  return sum;
#endif
}

__device__ __forceinline__ void load_tile(REAL (&tile)[kDepth][kTile + 1], const DATA* data, int width, const int* index,
                                          int first, int count, int feature) {
  const int thread = threadIdx.y * kSide + threadIdx.x;
  for (int k = thread; k < kTile * kDepth; k += kSide * kSide) {
    const int sample = k / kDepth, f = k % kDepth;
    REAL value = 0;
    if (first + sample < count && feature + f < width) {
      const long long row = index ? index[first + sample] : first + sample;
      value = data[row * width + feature + f];
    }
    tile[f][sample] = value;
  }
}

// Blocks: tiles of 64 rows x parts of the columns. The sums of a part go to out[(part * FUNCTIONS + f) * n_rows + row].
extern "C" __global__ void __launch_bounds__(kSide* kSide)
    kernel_product(const DATA* row_data, const int* row_index, int n_rows, const DATA* column_data,
                   const int* column_index, int n_columns, int width, const double* weights, int per_part, double gamma,
                   double offset, void* out) {
  __shared__ REAL rows[kDepth][kTile + 1], columns[kDepth][kTile + 1];
  const int first_row = blockIdx.x * kTile, end = min(n_columns, (int)(blockIdx.y + 1) * per_part);
  double totals[FUNCTIONS][4] = {};
  for (int first = blockIdx.y * per_part; first < end; first += kTile) {
    REAL sums[4][4] = {};
    for (int feature = 0; feature < width; feature += kDepth) {
      __syncthreads();
      load_tile(rows, row_data, width, row_index, first_row, n_rows, feature);
      load_tile(columns, column_data, width, column_index, first, n_columns, feature);
      __syncthreads();
#pragma unroll
      for (int f = 0; f < kDepth; ++f) {
        if (feature + f >= width) break;
        REAL x[4], z[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) x[k] = rows[f][threadIdx.y + kSide * k], z[k] = columns[f][threadIdx.x + kSide * k];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][j] = term_of(sums[i][j], x[i], z[j]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = first_row + threadIdx.y + kSide * i, column = first + threadIdx.x + kSide * j;
        if (row >= n_rows || column >= n_columns) continue;
        const REAL value = value_of(sums[i][j], REAL(gamma), REAL(offset));
#if STORE
        static_cast<REAL*>(out)[(long long)row * n_columns + column] = value;
#else
#pragma unroll
        for (int f = 0; f < FUNCTIONS; ++f)
          totals[f][i] += double(value) * weights[(long long)f * n_columns + column];
#endif
      }
  }
#if !STORE
#pragma unroll
  for (int f = 0; f < FUNCTIONS; ++f)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      double total = totals[f][i];
      for (int k = 8; k; k /= 2) total += __shfl_xor_sync(0xffffffffu, total, k, 16);
      const int row = first_row + threadIdx.y + kSide * i;
      if (threadIdx.x == 0 && row < n_rows)
        static_cast<double*>(out)[((long long)blockIdx.y * FUNCTIONS + f) * n_rows + row] = total;
    }
#endif
}
