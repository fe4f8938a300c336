// Steps along one weight after another for the penalty Σ |w_j| (Yuan et al. 2010): over the columns of the data, whose
// kinds are those of rows with samples in place of features, or over a quadratic model of the loss whose matrix is at
// hand.
#pragma once

#include <cstdint>

#include "linear_rows.hpp"
#include "loops.hpp"
#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// ---- one sample, or several side by side --------------------------------------------------------------------------

template <class V> MAXMARGIN_INLINE V answer_to(V slack, V inverse, V lower, V upper) {
  const V wish = slack * inverse;
  const V above = wish < lower ? lower : wish;
  return above > upper ? upper : above;
}

// response(z) x, and x²/ridge where it does not rest on a bound.
template <class V> MAXMARGIN_INLINE void add_pull(V slack, V inverse, V lower, V upper, V x, V& pull, V& bend) {
  const V answer = answer_to(slack, inverse, lower, upper);
  pull += answer * x;
  bend += answer == slack * inverse ? x * x * inverse : V{};
}

// conjugate(z − d x) − conjugate(z)
template <class V> MAXMARGIN_INLINE V more_loss(V slack, V inverse, V lower, V upper, V x, double d) {
  const V then = slack - d * x;
  const V before = answer_to(slack, inverse, lower, upper), after = answer_to(then, inverse, lower, upper);
  return after * (then - 0.5 * after / inverse) - before * (slack - 0.5 * before / inverse);
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
MAXMARGIN_INLINE Slope pull_of(const Columns& columns, std::int64_t column, const ColumnState& s) {
  Vec<double> pulls{}, bends{};
  Slope out;
  for_samples(
      columns, column,
      [&](std::int64_t i, Vec<double> x) {
        add_pull<Vec<double>>(load_vector(s.slack + i), load_vector(s.inverse + i), load_vector(s.lower + i),
                              load_vector(s.upper + i), x, pulls, bends);
      },
      [&](std::int64_t i, double x) {
        add_pull<double>(s.slack[i], s.inverse[i], s.lower[i], s.upper[i], x, out.sum, out.bend);
      });
  out.sum += sum_of(pulls);
  out.bend += sum_of(bends);
  return out;
}

template <class Columns>
MAXMARGIN_INLINE double loss_change(const Columns& columns, std::int64_t column, const ColumnState& s, double d) {
  Vec<double> several{};
  double sum = 0.0;
  for_samples(
      columns, column,
      [&](std::int64_t i, Vec<double> x) {
        several += more_loss<Vec<double>>(load_vector(s.slack + i), load_vector(s.inverse + i),
                                          load_vector(s.lower + i), load_vector(s.upper + i), x, d);
      },
      [&](std::int64_t i, double x) {
        sum += more_loss<double>(s.slack[i], s.inverse[i], s.lower[i], s.upper[i], x, d);
      });
  return sum + sum_of(several);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

MAXMARGIN_INLINE double size_of(double x) { return x < 0.0 ? -x : x; }

// By how much the slope g of the loss violates −g ∈ ∂|w|.
MAXMARGIN_INLINE double violation_at(double w, double g) {
  if (w > 0.0) return size_of(g + 1.0);
  if (w < 0.0) return size_of(g - 1.0);
  return size_of(g) > 1.0 ? size_of(g) - 1.0 : 0.0;
}

// argmin over d of |w + d| + g d + ½ h d²
MAXMARGIN_INLINE double newton_step(double w, double g, double h) {
  if (g + 1.0 <= h * w) return -(g + 1.0) / h;
  if (g - 1.0 >= h * w) return -(g - 1.0) / h;
  return -w;
}

// A step along each of the weights order[begin … end), one after the other; returns the largest violation that was met.
// Newton's step is halved until it lowers the objective by a part of what its slope promises, which the largest
// curvature may tell without a look at the loss.
template <class Columns>
double descend_columns(const Columns& columns, ColumnState& s, const std::int64_t* order, std::int64_t begin,
                       std::int64_t end) {
  double worst = 0.0;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int64_t j = order[k];
    if (k + 1 < end) fetch(columns, order[k + 1], s.slack);
    const double w = s.weights[j], most = s.curvature[j];
    const Slope pull = pull_of(columns, j, s);
    const double g = -pull.sum, violation = violation_at(w, g);
    if (violation > worst) worst = violation;
    if (violation == 0.0) continue;
    double d = most > 0.0 ? newton_step(w, g, pull.bend > 0.0 ? pull.bend : most) : -w;
    double promised = size_of(w + d) - size_of(w) + g * d;
    for (int halvings = 0; d != 0.0; ++halvings) {
      const double penalty = size_of(w + d) - size_of(w);
      const double bound = penalty + g * d + 0.5 * most * d * d;
      if (bound <= kSufficient * promised || penalty + loss_change(columns, j, s, d) <= kSufficient * promised) break;
      d = halvings < kHalvings ? 0.5 * d : 0.0;
      promised *= 0.5;
    }
    if (d == 0.0) continue;
    s.weights[j] = w + d;
    add(columns, j, -d, s.slack);
  }
  return worst;
}

// Passes over the weights of min Σ |w_j| + slope·(w − w₀) + ½ (w − w₀)ᵀ H (w − w₀), in which `slope` is kept up to
// date, until the largest violation of a pass is small enough; returns that.
static double descend_model(const double* square, std::int64_t count, double* weights, double* slope, double tolerance,
                            std::int64_t passes) {
  double worst = 0.0;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    worst = 0.0;
    for (std::int64_t j = 0; j < count; ++j) {
      const double* line = square + j * count;
      const double w = weights[j], violation = violation_at(w, slope[j]);
      if (violation > worst) worst = violation;
      if (violation == 0.0) continue;
      const double d = line[j] > 0.0 ? newton_step(w, slope[j], line[j]) : -w;
      weights[j] = w + d;
      const DenseRows<double> lines{square, count};
      add(lines, j, d, slope);
    }
    if (worst <= tolerance) break;
  }
  return worst;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
