// Coordinate descent for the penalty Σ |w_j| (Yuan et al. 2010): Newton steps along one weight after another, over the
// columns of the data, which are stored as rows with samples in place of features; or over a quadratic model of the
// loss.
#pragma once

#include <cstdint>

#include "linear_loops.hpp"
#include "row_products.hpp"
#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kSufficientDecrease = 0.01;  // the fraction of the decrease expected from the slope (Armijo)
constexpr int kMaxHalvings = 30;              // of a step

// ---- one sample, or a vector of them ------------------------------------------------------------------------------

template <class V> MAXMARGIN_INLINE V clipped_response(V slack, V inverse_ridge, V lower, V upper) {
  const V unclipped = slack * inverse_ridge;
  const V above = unclipped < lower ? lower : unclipped;
  return above > upper ? upper : above;
}

// Adds response(z) x, and x²/ridge if the response is not at a bound.
template <class V>
MAXMARGIN_INLINE void add_column_derivatives(V slack, V inverse_ridge, V lower, V upper, V x, V& slope, V& curvature) {
  const V response = clipped_response(slack, inverse_ridge, lower, upper);
  slope += response * x;
  curvature += response == slack * inverse_ridge ? x * x * inverse_ridge : V{};
}

// conjugate(z − d x) − conjugate(z)
template <class V> MAXMARGIN_INLINE V loss_difference(V slack, V inverse_ridge, V lower, V upper, V x, double d) {
  const V then = slack - d * x;
  const V before = clipped_response(slack, inverse_ridge, lower, upper),
          after = clipped_response(then, inverse_ridge, lower, upper);
  return after * (then - 0.5 * after / inverse_ridge) - before * (slack - 0.5 * before / inverse_ridge);
}

// ---- one column -----------------------------------------------------------------------------------------------------

// Call each(position, value) for the samples of a column one by one, or several(position, values) for neighbours.
template <class T, class Several, class Each>
MAXMARGIN_INLINE void for_samples(const DenseRows<T>& columns, std::int64_t column, Several several, Each each) {
  const T* x = columns.values + column * columns.width;
  std::int64_t i = 0;
  for (; i + kWidth<double> <= columns.width; i += kWidth<double>) several(i, load_double(x + i));
  for (; i < columns.width; ++i) each(i, static_cast<double>(x[i]));
}

template <class T, class I, class Several, class Each>
MAXMARGIN_INLINE void for_samples(const CompressedRows<T, I>& columns, std::int64_t column, Several, Each each) {
  const std::int64_t end = columns.starts[column + 1];
  for (std::int64_t k = columns.starts[column]; k < end; ++k)
    each(static_cast<std::int64_t>(columns.features[k]), static_cast<double>(columns.values[k]));
}

template <class Columns>
MAXMARGIN_INLINE Derivatives derivatives_along(const Columns& columns, std::int64_t column, const ColumnState& s) {
  Vec<double> slopes{}, curvatures{};
  Derivatives out;
  for_samples(
      columns, column,
      [&](std::int64_t i, Vec<double> x) {
        add_column_derivatives<Vec<double>>(load_vector(s.slack + i), load_vector(s.inverse_ridge + i),
                                            load_vector(s.lower + i), load_vector(s.upper + i), x, slopes, curvatures);
      },
      [&](std::int64_t i, double x) {
        add_column_derivatives<double>(s.slack[i], s.inverse_ridge[i], s.lower[i], s.upper[i], x, out.slope,
                                       out.curvature);
      });
  out.slope += sum_of(slopes);
  out.curvature += sum_of(curvatures);
  return out;
}

template <class Columns>
MAXMARGIN_INLINE double loss_change(const Columns& columns, std::int64_t column, const ColumnState& s, double d) {
  Vec<double> several{};
  double sum = 0.0;
  for_samples(
      columns, column,
      [&](std::int64_t i, Vec<double> x) {
        several += loss_difference<Vec<double>>(load_vector(s.slack + i), load_vector(s.inverse_ridge + i),
                                                load_vector(s.lower + i), load_vector(s.upper + i), x, d);
      },
      [&](std::int64_t i, double x) {
        sum += loss_difference<double>(s.slack[i], s.inverse_ridge[i], s.lower[i], s.upper[i], x, d);
      });
  return sum + sum_of(several);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

MAXMARGIN_INLINE double magnitude(double x) { return x < 0.0 ? -x : x; }

// By how much the slope g of the loss violates −g ∈ ∂|w|.
MAXMARGIN_INLINE double violation_at(double w, double g) {
  if (w > 0.0) return magnitude(g + 1.0);
  if (w < 0.0) return magnitude(g - 1.0);
  return magnitude(g) > 1.0 ? magnitude(g) - 1.0 : 0.0;
}

// argmin over d of |w + d| + g d + ½ h d²
MAXMARGIN_INLINE double newton_step(double w, double g, double h) {
  if (g + 1.0 <= h * w) return -(g + 1.0) / h;
  if (g - 1.0 >= h * w) return -(g - 1.0) / h;
  return -w;
}

// A step along each of the weights of the order, in turn; returns the largest violation met. The Newton step is halved
// until the decrease is sufficient; a bound from the largest curvature often shows that without evaluating the loss.
template <class Columns>
double descend_columns(const Columns& columns, ColumnState& s, const std::int64_t* order, std::int64_t count) {
  double largest = 0.0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t j = order[k];
    if (k + 1 < count) prefetch(columns, order[k + 1], s.slack);
    const double w = s.weights[j], max_curvature = s.curvature[j];
    const Derivatives derivatives = derivatives_along(columns, j, s);
    const double g = -derivatives.slope, violation = violation_at(w, g);
    if (violation > largest) largest = violation;
    if (violation == 0.0) continue;
    double d = max_curvature > 0.0
                   ? newton_step(w, g, derivatives.curvature > 0.0 ? derivatives.curvature : max_curvature)
                   : -w;
    double expected = magnitude(w + d) - magnitude(w) + g * d;
    for (int halvings = 0; d != 0.0; ++halvings) {
      const double penalty = magnitude(w + d) - magnitude(w);
      const double bound = penalty + g * d + 0.5 * max_curvature * d * d;
      if (bound <= kSufficientDecrease * expected ||
          penalty + loss_change(columns, j, s, d) <= kSufficientDecrease * expected)
        break;
      d = halvings < kMaxHalvings ? 0.5 * d : 0.0;
      expected *= 0.5;
    }
    if (d == 0.0) continue;
    s.weights[j] = w + d;
    add(columns, j, -d, s.slack);
  }
  return largest;
}

// Passes over the weights of min Σ |w_j| + slope·(w − w₀) + ½ (w − w₀)ᵀ H (w − w₀), in which `slope` is kept up to
// date, until the largest violation of a pass is within the tolerance; returns that violation.
static double descend_model(const double* square, std::int64_t count, double* weights, double* slope, double tolerance,
                            std::int64_t max_passes) {
  double largest = 0.0;
  for (std::int64_t pass = 0; pass < max_passes; ++pass) {
    largest = 0.0;
    for (std::int64_t j = 0; j < count; ++j) {
      const double* row = square + j * count;
      const double w = weights[j], violation = violation_at(w, slope[j]);
      if (violation > largest) largest = violation;
      if (violation == 0.0) continue;
      const double d = row[j] > 0.0 ? newton_step(w, slope[j], row[j]) : -w;
      weights[j] = w + d;
      add(DenseRows<double>{square, count}, j, d, slope);
    }
    if (largest <= tolerance) break;
  }
  return largest;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
