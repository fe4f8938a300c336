// Products of rows of features, dense or compressed, in single or double precision: computed in double precision from
// the data as they are in memory.
#pragma once

#include <cstdint>

#include "linear_loops.hpp"
#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

MAXMARGIN_INLINE Vec<double> load_double(const double* p) { return load_vector(p); }
MAXMARGIN_INLINE Vec<double> load_double(const float* p) { return load_widened(p); }

MAXMARGIN_INLINE double sum_of(Vec<double> v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_pd(v);
#elif defined(__AVX__)
  const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return pair[0] + pair[1];
#else
  return v[0] + v[1];
#endif
}

// ---- one row ----------------------------------------------------------------------------------------------------

template <class T> MAXMARGIN_INLINE double dot(const DenseRows<T>& rows, std::int64_t row, const double* w) {
  constexpr int step = kWidth<double>;
  const T* x = rows.values + row * rows.width;
  Vec<double> a{}, b{}, c{}, d{};
  std::int64_t k = 0;
  for (; k + 4 * step <= rows.width; k += 4 * step) {
    a += load_double(x + k) * load_vector(w + k);
    b += load_double(x + k + step) * load_vector(w + k + step);
    c += load_double(x + k + 2 * step) * load_vector(w + k + 2 * step);
    d += load_double(x + k + 3 * step) * load_vector(w + k + 3 * step);
  }
  for (; k + step <= rows.width; k += step) a += load_double(x + k) * load_vector(w + k);
  double sum = sum_of((a + b) + (c + d));
  for (; k < rows.width; ++k) sum += static_cast<double>(x[k]) * w[k];
  return sum;
}

template <class T> MAXMARGIN_INLINE void add(const DenseRows<T>& rows, std::int64_t row, double factor, double* w) {
  constexpr int step = kWidth<double>;
  const T* x = rows.values + row * rows.width;
  std::int64_t k = 0;
  for (; k + step <= rows.width; k += step) store_vector(w + k, load_vector(w + k) + factor * load_double(x + k));
  for (; k < rows.width; ++k) w[k] += factor * static_cast<double>(x[k]);
}

template <class T> MAXMARGIN_INLINE double squared_norm(const DenseRows<T>& rows, std::int64_t row) {
  constexpr int step = kWidth<double>;
  const T* x = rows.values + row * rows.width;
  Vec<double> several{};
  std::int64_t k = 0;
  for (; k + step <= rows.width; k += step) several += load_double(x + k) * load_double(x + k);
  double sum = sum_of(several);
  for (; k < rows.width; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return sum;
}

// The next row is prefetched while this one is processed: hardware does not predict a random order.
template <class T> MAXMARGIN_INLINE void prefetch(const DenseRows<T>& rows, std::int64_t row, const double*) {
  const char* x = reinterpret_cast<const char*>(rows.values + row * rows.width);
  const std::int64_t bytes = rows.width * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < bytes && at < 1024; at += 64) __builtin_prefetch(x + at);
}

template <class T, class I>
MAXMARGIN_INLINE double dot(const CompressedRows<T, I>& rows, std::int64_t row, const double* w) {
  const std::int64_t end = rows.starts[row + 1];
  std::int64_t k = rows.starts[row];
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  for (; k + 4 <= end; k += 4) {
    a += static_cast<double>(rows.values[k]) * w[rows.features[k]];
    b += static_cast<double>(rows.values[k + 1]) * w[rows.features[k + 1]];
    c += static_cast<double>(rows.values[k + 2]) * w[rows.features[k + 2]];
    d += static_cast<double>(rows.values[k + 3]) * w[rows.features[k + 3]];
  }
  for (; k < end; ++k) a += static_cast<double>(rows.values[k]) * w[rows.features[k]];
  return (a + b) + (c + d);
}

template <class T, class I>
MAXMARGIN_INLINE void add(const CompressedRows<T, I>& rows, std::int64_t row, double factor, double* w) {
  const std::int64_t end = rows.starts[row + 1];
#pragma GCC unroll 4
  for (std::int64_t k = rows.starts[row]; k < end; ++k)
    w[rows.features[k]] += factor * static_cast<double>(rows.values[k]);
}

template <class T, class I> MAXMARGIN_INLINE double squared_norm(const CompressedRows<T, I>& rows, std::int64_t row) {
  double sum = 0.0;
  for (std::int64_t k = rows.starts[row]; k < static_cast<std::int64_t>(rows.starts[row + 1]); ++k)
    sum += static_cast<double>(rows.values[k]) * static_cast<double>(rows.values[k]);
  return sum;
}

template <class T, class I>
MAXMARGIN_INLINE void prefetch(const CompressedRows<T, I>& rows, std::int64_t row, const double* w) {
  const std::int64_t end = rows.starts[row + 1];
  for (std::int64_t k = rows.starts[row]; k < end; ++k) __builtin_prefetch(w + rows.features[k]);
}

constexpr std::int64_t kCachedWeights = 65536;  // so many weights are in the caches without a prefetch

template <class T> MAXMARGIN_INLINE void prefetch_weights(const DenseRows<T>&, std::int64_t, const double*) {}
template <class T, class I>
MAXMARGIN_INLINE void prefetch_weights(const CompressedRows<T, I>& rows, std::int64_t row, const double* w) {
  if (rows.width > kCachedWeights) prefetch(rows, row, w);
}

// ---- products over many rows ------------------------------------------------------------------------------------

// out[k] = row k · w
template <class Rows>
void decisions(const Rows& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end, const double* w,
               double* out) {
  for (std::int64_t k = begin; k < end; ++k) {
    if (k + 1 < end) prefetch_weights(rows, indices ? indices[k + 1] : k + 1, w);
    out[k] = dot(rows, indices ? indices[k] : k, w);
  }
}

// w += Σ_k b_k row k
template <class Rows>
void combine_rows(const Rows& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end, const double* b,
                  double* w) {
  for (std::int64_t k = begin; k < end; ++k) {
    if (k + 1 < end && b[k + 1] != 0.0) prefetch_weights(rows, indices ? indices[k + 1] : k + 1, w);
    if (b[k] != 0.0) add(rows, indices ? indices[k] : k, b[k], w);
  }
}

template <class Rows>
void squared_norms(const Rows& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end, double* out) {
  for (std::int64_t k = begin; k < end; ++k) out[k] = squared_norm(rows, indices ? indices[k] : k);
}

// square += Σ_k b_k (row k − origin)(row k − origin)ᵀ, the lower triangle of `stride` columns, b ≥ 0; and
// sums += Σ_k b_k (row k − origin). Dense rows are copied to `buffer`, kMomentRows at a time and each scaled by √b;
// then blocks of 4 × 2 vectors of the square are summed up over them in registers. The origin of compressed rows is
// zero.
template <class T>
void add_moments(const DenseRows<T>& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
                 const double* b, const double* origin, double* buffer, double* sums, double* square,
                 std::int64_t stride) {
  constexpr int step = kWidth<double>;
  const std::int64_t d = rows.width, padded = (d + 2 * step - 1) / (2 * step) * (2 * step);
  for (std::int64_t first = begin; first < end; first += kMomentRows) {
    const std::int64_t count = end - first < kMomentRows ? end - first : kMomentRows;
    for (std::int64_t r = 0; r < count; ++r) {
      const T* x = rows.values + (indices ? indices[first + r] : first + r) * d;
      const double root = __builtin_sqrt(b[first + r]);
      double* y = buffer + r * padded;
      if (origin)
        for (std::int64_t k = 0; k < d; ++k) y[k] = root * (static_cast<double>(x[k]) - origin[k]);
      else
        for (std::int64_t k = 0; k < d; ++k) y[k] = root * static_cast<double>(x[k]);
      for (std::int64_t k = d; k < padded; ++k) y[k] = 0.0;
      for (std::int64_t k = 0; k < d; ++k) sums[k] += root * y[k];
    }
    for (std::int64_t i = 0; i < d; i += 4)
      for (std::int64_t j = 0; j < d && j <= i + 3; j += 2 * step) {
        Vec<double> sum[4][2] = {};
        for (std::int64_t r = 0; r < count; ++r) {
          const double* y = buffer + r * padded;
          const Vec<double> left = load_vector(y + j), right = load_vector(y + j + step);
          for (int q = 0; q < 4; ++q) {  // padded beyond the last feature
            const Vec<double> factor = repeat(y[i + q]);
            sum[q][0] += factor * left;
            sum[q][1] += factor * right;
          }
        }
        for (int q = 0; q < 4 && i + q < d; ++q)
          for (int v = 0; v < 2; ++v)
            for (int l = 0; l < step; ++l) {
              const std::int64_t column = j + v * step + l;
              if (column <= i + q) square[(i + q) * stride + column] += sum[q][v][l];
            }
      }
  }
}

// The products of values [i, i + Lines) of a row, which begins at `first`, with those up to themselves, times b: each
// value before them is read once.
template <int Lines, class T, class I>
MAXMARGIN_INLINE void add_lines(const CompressedRows<T, I>& rows, std::int64_t first, std::int64_t i, double b,
                                double* sums, double* square, std::int64_t stride) {
  const I* at = rows.features;
  const T* values = rows.values;
  double factors[Lines], *lines[Lines];
#pragma GCC unroll 4
  for (int q = 0; q < Lines; ++q) {
    factors[q] = b * static_cast<double>(values[i + q]);
    lines[q] = square + static_cast<std::int64_t>(at[i + q]) * stride;
    sums[at[i + q]] += factors[q];
  }
  for (std::int64_t j = first; j < i; ++j) {
    const auto value = static_cast<double>(values[j]);
    const std::int64_t column = at[j];
#pragma GCC unroll 4
    for (int q = 0; q < Lines; ++q) lines[q][column] += factors[q] * value;
  }
#pragma GCC unroll 4
  for (int q = 0; q < Lines; ++q)
    for (int r = 0; r <= q; ++r) lines[q][at[i + r]] += factors[q] * static_cast<double>(values[i + r]);
}

template <class T, class I>
void add_moments(const CompressedRows<T, I>& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
                 const double* b, const double*, double*, double* sums, double* square, std::int64_t stride) {
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t row = indices ? indices[k] : k;
    const std::int64_t first = rows.starts[row], last = rows.starts[row + 1];
    std::int64_t i = first;
    for (; i + 4 <= last; i += 4) add_lines<4>(rows, first, i, b[k], sums, square, stride);
    for (; i < last; ++i) add_lines<1>(rows, first, i, b[k], sums, square, stride);
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
