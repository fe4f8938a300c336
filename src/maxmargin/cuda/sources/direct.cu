// Fused products with a kernel matrix whose values are summed feature by feature, and blocks of it: every kernel in
// float64, for audits and certificates, and in float32 the kernels that are no functions of an inner product.
//
// Compile-time parameters: REAL (float or double), DATA (type of the samples), TERM and FUNCTION (as in
// kernels/formula.py), DEGREE, STORE, FUNCTIONS (that share the values), SPLIT. Sums over samples are float64, in an
// order that depends on the shape alone.
//
// SPLIT: sums over features are pairs of float32, for GPUs whose float64 is slow (kernels/split_sums.py, where the
// errors of these operations are). Features are multiplied by `unit`; the sum is converted to float64.

constexpr int kTile = 64, kDepth = 16, kSide = 16;  // 16 x 16 threads, 4 x 4 values each

#if SPLIT
struct Pair {
  float high, low;
};
using Term = Pair;

__device__ __forceinline__ Pair two_sum(float a, float b) {
  const float s = __fadd_rn(a, b), t = __fsub_rn(s, a);
  return {s, __fadd_rn(__fsub_rn(a, __fsub_rn(s, t)), __fsub_rn(b, t))};
}

__device__ __forceinline__ Pair fast_two_sum(float a, float b) {
  const float s = __fadd_rn(a, b);
  return {s, __fsub_rn(b, __fsub_rn(s, a))};
}

__device__ __forceinline__ Pair add(Pair x, Pair y) {  // AccurateDWPlusDW
  const Pair s = two_sum(x.high, y.high), t = two_sum(x.low, y.low);
  const Pair v = fast_two_sum(s.high, __fadd_rn(s.low, t.high));
  return fast_two_sum(v.high, __fadd_rn(t.low, v.low));
}

__device__ __forceinline__ Pair multiply(Pair x, Pair y) {  // DWTimesDW3
  const float c = __fmul_rn(x.high, y.high), rest = __fmaf_rn(x.high, y.high, -c);
  const float cross = __fmaf_rn(x.low, y.high, __fmaf_rn(x.high, y.low, __fmul_rn(x.low, y.low)));
  return fast_two_sum(c, __fadd_rn(rest, cross));
}

__device__ __forceinline__ Pair negative(Pair x) { return {-x.high, -x.low}; }

__device__ __forceinline__ Pair as_term(DATA x, double unit) {
  const double scaled = double(x) * unit;
  const float high = __double2float_rn(scaled);
  return {high, __double2float_rn(scaled - high)};
}

__device__ __forceinline__ Pair term_of(Pair sum, Pair x, Pair z) {
#if TERM == 0
  return add(sum, multiply(x, z));
#else
  const Pair d = add(x, negative(z));
#if TERM == 1
  return add(sum, multiply(d, d));
#else
  return add(sum, d.high < 0.0f ? negative(d) : d);
#endif
#endif
}

__device__ __forceinline__ REAL sum_of(Pair sum, double scale) {  // products with powers of 2 are exact
  return (double(sum.high) + double(sum.low)) * scale;
}
#else
using Term = REAL;

__device__ __forceinline__ REAL as_term(DATA x, double) { return x; }

__device__ __forceinline__ REAL sum_of(REAL sum, double) { return sum; }

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
#endif

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

__device__ __forceinline__ void load_tile(Term (&tile)[kDepth][kTile + 1], const DATA* data, int width,
                                          const int* index, int first, int count, int feature, double unit) {
  const int thread = threadIdx.y * kSide + threadIdx.x;
  for (int k = thread; k < kTile * kDepth; k += kSide * kSide) {
    const int sample = k / kDepth, f = k % kDepth;
    Term value = {};
    if (first + sample < count && feature + f < width) {
      const long long row = index ? index[first + sample] : first + sample;
      value = as_term(data[row * width + feature + f], unit);
    }
    tile[f][sample] = value;
  }
}

// Blocks: tiles of 64 rows x parts of the columns. The sums of a part go to out[(part * FUNCTIONS + f) * n_rows + row].
extern "C" __global__ void __launch_bounds__(kSide* kSide)
    kernel_product(const DATA* row_data, const int* row_index, int n_rows, const DATA* column_data,
                   const int* column_index, int n_columns, int width, const double* weights, int per_part, double gamma,
                   double offset, void* out, double unit) {
  __shared__ Term rows[kDepth][kTile + 1], columns[kDepth][kTile + 1];
  const int first_row = blockIdx.x * kTile, end = min(n_columns, (int)(blockIdx.y + 1) * per_part);
  const double scale = TERM == 2 ? 1.0 / unit : 1.0 / (unit * unit);
  double totals[FUNCTIONS][4] = {};
  for (int first = blockIdx.y * per_part; first < end; first += kTile) {
    Term sums[4][4] = {};
    for (int feature = 0; feature < width; feature += kDepth) {
      __syncthreads();
      load_tile(rows, row_data, width, row_index, first_row, n_rows, feature, unit);
      load_tile(columns, column_data, width, column_index, first, n_columns, feature, unit);
      __syncthreads();
#pragma unroll
      for (int f = 0; f < kDepth; ++f) {
        if (feature + f >= width) break;
        Term x[4], z[4];
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
        const REAL value = value_of(sum_of(sums[i][j], scale), REAL(gamma), REAL(offset));
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
