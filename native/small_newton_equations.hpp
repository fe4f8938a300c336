// The equations of a Newton step on the primal of a small problem with the linear kernel, as in
// solvers/linear/newton_equations.py:
//
//   (I + FᵀDF) d + FᵀD1 e = −gradient,   1ᵀDF d + (ΣD) e = Σ response,   with D of the free variables
//
// The moments FᵀDF and FᵀD1 are those of the step before, updated by the rows whose factor in D has changed if these
// are few. A Cholesky factorisation solves for the weights, after the step e of the offset is eliminated.
#pragma once

#include <cmath>
#include <cstdint>

#include "linear_loops.hpp"
#include "loss_offset.hpp"
#include "row_products.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// Factorise the lower triangle of a square in place (Cholesky), and solve for x. False if it is not positive definite.
inline bool solve_positive_definite(double* square, std::int64_t width, double* x) {
  const auto product = [](const double* a, const double* b, std::int64_t count) {
    return dot(DenseRows<double>{a, count}, 0, b);
  };
  for (std::int64_t j = 0; j < width; ++j) {
    double* row = square + j * width;
    for (std::int64_t k = 0; k < j; ++k) {
      const double* above = square + k * width;
      row[k] = (row[k] - product(row, above, k)) / above[k];
    }
    const double pivot = row[j] - product(row, row, j);
    if (!(pivot > 0.0 && pivot < kInfinite)) return false;
    row[j] = std::sqrt(pivot);
    x[j] = (x[j] - product(row, x, j)) / row[j];
  }
  for (std::int64_t j = width; j-- > 0;) {
    const double* row = square + j * width;
    x[j] /= row[j];
    for (std::int64_t k = 0; k < j; ++k) x[k] -= row[k] * x[j];
  }
  return true;
}

// As in newton_equations.py, where they are explained.
constexpr double kMaxChangedFraction = 0.5;
constexpr int kMaxUpdates = 8;

template <class Rows> class SmallNewtonEquations {
 public:
  // The workspace has as many doubles as `memory` says, and an index for each row.
  SmallNewtonEquations(const Rows& rows, std::int64_t count, std::int64_t width, double* workspace,
                       std::int64_t* indices)
      : rows_(rows),
        count_(count),
        width_(width),
        wanted_(workspace),
        counted_(wanted_ + count),
        grown_(counted_ + count),
        first_(grown_ + count),
        sums_(first_ + width),
        square_(sums_ + width),
        squares_(square_ + width * width),
        buffer_(squares_ + width * width),
        free_(indices) {}

  static std::int64_t memory(std::int64_t count, std::int64_t width) {
    return 3 * count + (2 + 2 * width) * width + kMomentRows * (width + kMomentPadding);
  }

  // Set the factors of the rows, in units in which those of equal ridges do not depend on σ. Returns their sum.
  double update(const double* factors, double unit, bool equal_ridges) {
    double total = 0.0, free = 0.0, changed = 0.0;
    for (std::int64_t i = 0; i < count_; ++i) {
      total += factors[i];
      wanted_[i] = equal_ridges ? std::nearbyint(factors[i] * unit) : factors[i] * unit;
      free += wanted_[i] > 0.0;
      changed += wanted_[i] != counted_[i];
    }
    if (changed > kMaxChangedFraction * free || ++updates_ > kMaxUpdates) {
      updates_ = 0;
      for (std::int64_t j = 0; j < width_; ++j) sums_[j] = 0.0;
      for (std::int64_t j = 0; j < width_ * width_; ++j) squares_[j] = 0.0;
      for (std::int64_t i = 0; i < count_; ++i) counted_[i] = 0.0;
    }
    count_rows(1.0);
    count_rows(-1.0);
    for (std::int64_t i = 0; i < count_; ++i) counted_[i] = wanted_[i];
    for (std::int64_t j = 0; j < width_; ++j) first_[j] = sums_[j] / unit;
    for (std::int64_t j = 0; j < width_ * width_; ++j) square_[j] = squares_[j] / unit;
    return total;
  }

  // Solve for the step of the weights and, if `total` = ΣD is positive, of the offset; `sum` is the sum of the
  // responses. False if rounding errors prevent it.
  bool solve(const double* gradient, double sum, double total, double* direction, double& offset_step) {
    const bool moves = total > 0.0;
    for (std::int64_t j = 0; j < width_; ++j) {
      square_[j * width_ + j] += 1.0;
      direction[j] = -gradient[j] - (moves ? first_[j] * sum / total : 0.0);
      if (moves)
        for (std::int64_t k = 0; k <= j; ++k) square_[j * width_ + k] -= first_[j] * first_[k] / total;
    }
    if (!solve_positive_definite(square_, width_, direction)) return false;
    if (moves) {
      double along = 0.0;
      for (std::int64_t j = 0; j < width_; ++j) along += first_[j] * direction[j];
      offset_step = (sum - along) / total;
    }
    return true;
  }

 private:
  // Add the moments of the rows whose factor has grown, or subtract those of the rows whose factor has shrunk.
  void count_rows(double sign) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const double grown = sign * (wanted_[i] - counted_[i]);
      if (!(grown > 0.0)) continue;
      free_[count] = i;
      grown_[count++] = grown;
    }
    if (!count) return;
    for (std::int64_t j = 0; j < width_; ++j) first_[j] = 0.0;
    for (std::int64_t j = 0; j < width_ * width_; ++j) square_[j] = 0.0;
    add_moments(rows_, free_, 0, count, grown_, nullptr, buffer_, first_, square_, width_);
    for (std::int64_t j = 0; j < width_; ++j) sums_[j] += sign * first_[j];
    for (std::int64_t j = 0; j < width_ * width_; ++j) squares_[j] += sign * square_[j];
  }

  const Rows rows_;
  const std::int64_t count_, width_;
  double *wanted_, *counted_, *grown_;  // of rows: factors to be counted, those counted, and their differences
  double *first_, *sums_;               // of features
  double *square_, *squares_, *buffer_;
  std::int64_t* free_;
  int updates_ = kMaxUpdates;  // the first moments are computed from all rows
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
