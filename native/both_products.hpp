// The products of a square table and of its transpose with a vector, in one pass over the table: both are the same if
// it is symmetric.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// The products of `Rows` rows from r on; returns the largest magnitude among their values and `largest`.
template <int Rows>
MAXMARGIN_INLINE double both_products_of_rows(const double* table, const double* vector, std::int64_t n, std::int64_t r,
                                              double* product, double* transposed, double largest) {
  constexpr int width = kWidth<double>;
  const double *row = table + r * n, *factor = vector + r;
  Vec<double> sums[Rows] = {}, most{};
  std::int64_t c = 0;
  for (; c + width <= n; c += width) {
    Vec<double> down = load_vector(transposed + c);
    const Vec<double> x = load_vector(vector + c);
#pragma GCC unroll 8
    for (int k = 0; k < Rows; ++k) {
      const Vec<double> values = load_vector(row + k * n + c), size = values < 0 ? -values : values;
      sums[k] += values * x;
      down += factor[k] * values;
      most = size > most ? size : most;
    }
    store_vector(transposed + c, down);
  }
  for (int l = 0; l < width; ++l) largest = most[l] > largest ? most[l] : largest;
  for (int k = 0; k < Rows; ++k) {
    double sum = 0.0;
    for (int l = 0; l < width; ++l) sum += sums[k][l];
    for (std::int64_t rest = c; rest < n; ++rest) {
      const double value = row[k * n + rest], size = value < 0 ? -value : value;
      sum += value * vector[rest];
      transposed[rest] += factor[k] * value;
      largest = size > largest ? size : largest;
    }
    product[r + k] = sum;
  }
  return largest;
}

// product[r] = Σ_c table[r][c] vector[c], and transposed[c] += Σ_r table[r][c] vector[r], over rows [first, last).
// Returns the largest magnitude among the values of these rows.
inline double both_products(const double* table, const double* vector, std::int64_t n, std::int64_t first,
                            std::int64_t last, double* product, double* transposed) {
  constexpr int together = 4;  // rows for which `transposed` is read and written once
  double largest = 0.0;
  std::int64_t r = first;
  for (; r + together <= last; r += together)
    largest = both_products_of_rows<together>(table, vector, n, r, product, transposed, largest);
  for (; r < last; ++r) largest = both_products_of_rows<1>(table, vector, n, r, product, transposed, largest);
  return largest;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
