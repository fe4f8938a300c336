// The upper triangular factor R with RᵀR = A of a positive definite matrix, block by block, and R⁻ᵀ times columns. Sums
// run over the rows of R in order, so all instruction sets compute the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "pairwise.hpp"
#include "vector_argmax.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr std::int64_t kCholeskyBlock = 48;      // rows
constexpr std::int64_t kTileWidth = 2 * kLanes;  // columns of a tile
constexpr int kTileRows = 6;

// Values in rows, one row after so many values.
struct Strided {
  double* values;
  std::int64_t stride;

  double* row(std::int64_t k) const { return values + k * stride; }
};

// out[i][j] −= Σ_{first ≤ k < last} left[k][i] right[k][j] for `Rows` rows from i on and two vectors of columns from j
// on.
template <int Rows>
MAXMARGIN_INLINE void subtract_products(Strided out, Strided left, Strided right, std::int64_t first, std::int64_t last,
                                        std::int64_t i, std::int64_t j) {
  Lanes sums[Rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    sums[r][0] = load(out.row(i + r) + j);
    sums[r][1] = load(out.row(i + r) + j + kLanes);
  }
  for (std::int64_t k = first; k < last; ++k) {
    const double *from = left.row(k) + i, *row = right.row(k) + j;
    const Lanes low = load(row), high = load(row + kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Lanes factor = repeat(from[r]);
      sums[r][0] -= factor * low;
      sums[r][1] -= factor * high;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    store_vector(out.row(i + r) + j, sums[r][0]);
    store_vector(out.row(i + r) + j + kLanes, sums[r][1]);
  }
}

// The same for rows [i, i_end).
MAXMARGIN_INLINE void subtract_products(Strided out, Strided left, Strided right, std::int64_t first, std::int64_t last,
                                        std::int64_t i, std::int64_t i_end, std::int64_t j) {
  for (; i + kTileRows <= i_end; i += kTileRows) subtract_products<kTileRows>(out, left, right, first, last, i, j);
  for (; i < i_end; ++i) subtract_products<1>(out, left, right, first, last, i, j);
}

// The same for the trailing rows [last, n) of a from their diagonal on, of itself. Values below the diagonal are
// changed, too.
inline void update_trailing(Strided a, std::int64_t n, std::int64_t first, std::int64_t last) {
  const std::int64_t wide = n / kTileWidth * kTileWidth;  // columns in whole pairs of vectors, aligned to 0
  for (std::int64_t j = last / kTileWidth * kTileWidth; j < wide; j += kTileWidth) {
    std::int64_t end = last;
    while (end < n && end < j + kTileWidth) end += kTileRows;
    subtract_products(a, a, a, first, last, last, end < n ? end : n, j);
  }
  for (std::int64_t i = last; i < n; ++i)
    for (std::int64_t j = i > wide ? i : wide; j < n; ++j) {
      double sum = a.row(i)[j];
      for (std::int64_t k = first; k < last; ++k) sum -= a.row(k)[i] * a.row(k)[j];
      a.row(i)[j] = sum;
    }
}

// Replace the upper triangle of A by R. False if a pivot is at most `least`: the matrix is singular up to rounding.
inline bool factor_blocks(double* values, std::int64_t n, std::int64_t stride, double least) {
  const Strided a{values, stride};
  for (std::int64_t begin = 0; begin < n; begin += kCholeskyBlock) {
    const std::int64_t end = begin + kCholeskyBlock < n ? begin + kCholeskyBlock : n;
    for (std::int64_t r = begin; r < end; ++r) {
      double* row = a.row(r);
      for (std::int64_t k = begin; k < r; ++k) add_row(row + r, a.row(k) + r, -a.row(k)[r], n - r);
      if (!(row[r] > least)) return false;
      const double scale = 1.0 / std::sqrt(row[r]);
      for (std::int64_t c = r; c < n; ++c) row[c] *= scale;
    }
    update_trailing(a, n, begin, end);
  }
  return true;
}

// Replace columns [first, last) of x by R⁻ᵀ times these. `nonzero` has the first row of each in which it is not zero,
// in ascending order. Up to a tile's width of columns behind them is changed, too.
inline void solve_columns(Strided factor, std::int64_t n, Strided x, std::int64_t first, std::int64_t last,
                          const std::int64_t* nonzero) {
  std::int64_t some = first;  // columns that are not zero in the rows of a block
  for (std::int64_t begin = 0; begin < n; begin += kCholeskyBlock) {
    const std::int64_t end = begin + kCholeskyBlock < n ? begin + kCholeskyBlock : n;
    while (some < last && nonzero[some] < end) ++some;
    for (std::int64_t r = begin; r < end && some > first; ++r) {
      double* row = x.row(r) + first;
      for (std::int64_t k = begin; k < r; ++k) add_row(row, x.row(k) + first, -factor.row(k)[r], some - first);
      const double scale = 1.0 / factor.row(r)[r];
      for (std::int64_t c = 0; c < some - first; ++c) row[c] *= scale;
    }
    for (std::int64_t j = first; j < some; j += kTileWidth) subtract_products(x, factor, x, begin, end, end, n, j);
  }
}

// x = R⁻¹ x
inline void solve_transposed(const double* a, std::int64_t n, std::int64_t stride, double* x) {
  for (std::int64_t r = n - 1; r >= 0; --r) {
    const double* row = a + r * stride;
    x[r] = (x[r] - ordered_dot(row + r + 1, x + r + 1, n - r - 1)) / row[r];
  }
}

// x = R⁻ᵀ x
inline void substitute(const double* a, std::int64_t n, std::int64_t stride, double* x) {
  for (std::int64_t r = 0; r < n; ++r) {
    const double* row = a + r * stride;
    x[r] /= row[r];
    add_row(x + r + 1, row + r + 1, -x[r], n - r - 1);
  }
}

// x = A⁻¹ x
inline void solve_factored(const double* a, std::int64_t n, std::int64_t stride, double* x) {
  substitute(a, n, stride, x);
  solve_transposed(a, n, stride, x);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
