// The upper triangular factor R with RᵀR = A of a positive definite matrix, block by block. Sums run over the rows of R
// in order, so all instruction sets compute the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "pairwise.hpp"
#include "vector_argmax.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr std::int64_t kCholeskyBlock = 48;  // rows

// a[i][j] −= Σ_{first ≤ k < last} a[k][i] a[k][j] for `Rows` rows from i on and two vectors of columns from j on.
template <int Rows>
MAXMARGIN_INLINE void subtract_products(double* a, std::int64_t stride, std::int64_t first, std::int64_t last,
                                        std::int64_t i, std::int64_t j) {
  Lanes sums[Rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    sums[r][0] = load(a + (i + r) * stride + j);
    sums[r][1] = load(a + (i + r) * stride + j + kLanes);
  }
  for (std::int64_t k = first; k < last; ++k) {
    const double* row = a + k * stride;
    const Lanes left = load(row + j), right = load(row + j + kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Lanes factor = repeat(row[i + r]);
      sums[r][0] -= factor * left;
      sums[r][1] -= factor * right;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    store_vector(a + (i + r) * stride + j, sums[r][0]);
    store_vector(a + (i + r) * stride + j + kLanes, sums[r][1]);
  }
}

// The same for rows [i, n) from their diagonal on. Values below the diagonal are changed, too.
inline void update_trailing(double* a, std::int64_t n, std::int64_t stride, std::int64_t first, std::int64_t last) {
  constexpr int rows = 6;
  constexpr std::int64_t width = 2 * kLanes;
  std::int64_t i = last;
  const std::int64_t wide = n / width * width;  // columns in whole pairs of vectors, aligned to 0
  for (std::int64_t j = last / width * width; j < wide; j += width)
    for (i = last; i < n && i < j + width; i += rows) {
      if (i + rows <= n)
        subtract_products<rows>(a, stride, first, last, i, j);
      else
        for (std::int64_t r = i; r < n; ++r) subtract_products<1>(a, stride, first, last, r, j);
    }
  for (i = last; i < n; ++i)
    for (std::int64_t j = i > wide ? i : wide; j < n; ++j) {
      double sum = a[i * stride + j];
      for (std::int64_t k = first; k < last; ++k) sum -= a[k * stride + i] * a[k * stride + j];
      a[i * stride + j] = sum;
    }
}

// Replace the upper triangle of A by R. False if a pivot is at most `least`: the matrix is singular up to rounding.
inline bool factor_blocks(double* a, std::int64_t n, std::int64_t stride, double least) {
  for (std::int64_t begin = 0; begin < n; begin += kCholeskyBlock) {
    const std::int64_t end = begin + kCholeskyBlock < n ? begin + kCholeskyBlock : n;
    for (std::int64_t r = begin; r < end; ++r) {
      double* row = a + r * stride;
      for (std::int64_t k = begin; k < r; ++k) add_row(row + r, a + k * stride + r, -a[k * stride + r], n - r);
      if (!(row[r] > least)) return false;
      const double scale = 1.0 / std::sqrt(row[r]);
      for (std::int64_t c = r; c < n; ++c) row[c] *= scale;
    }
    update_trailing(a, n, stride, begin, end);
  }
  return true;
}

// x = A⁻¹ x
inline void solve_factored(const double* a, std::int64_t n, std::int64_t stride, double* x) {
  for (std::int64_t r = 0; r < n; ++r) {
    const double* row = a + r * stride;
    x[r] /= row[r];
    add_row(x + r + 1, row + r + 1, -x[r], n - r - 1);
  }
  for (std::int64_t r = n - 1; r >= 0; --r) {
    const double* row = a + r * stride;
    x[r] = (x[r] - ordered_dot(row + r + 1, x + r + 1, n - r - 1)) / row[r];
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
