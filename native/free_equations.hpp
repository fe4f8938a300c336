// The linear equations of the free variables, with variables that would leave their bounds fixed at them, all at a
// time.
//
// The active-set method (active_set.hpp) fixes one variable after the other, so that every step is an ascent. Where
// hundreds leave their bounds, as after a change of C, that takes hundreds of updates of the factor. Here all of them
// are fixed, and the equations of the others are factored anew, until none leaves its bounds. That point need not
// be better, but on the way to it the objective may rise first: the step is as long as it does.
#pragma once

#include <cmath>
#include <cstdint>

#include "active_set_finish.hpp"
#include "blocked_cholesky.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxFactorisations = 12, kMaxReleases = 8;
constexpr double kSmallestPivot = 1e-11;  // relative to the largest diagonal element

class FreeEquations {
 public:
  // In the workspace of the active-set method.
  FreeEquations(const FreeVariables& v, double* doubles, std::int64_t* indices)
      : v_(v),
        n_(v.count),
        factor_(doubles),
        right_(doubles + n_ * n_),
        step_(right_ + n_),
        ones_(step_ + n_),
        active_(indices) {}

  // Change v.dual and v.gradient. False, with both unchanged, if there is no ascent: the matrix is singular, there are
  // several groups, or all variables leave their bounds.
  bool solve() {
    if (v_.groups > 1) return false;
    double largest = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      largest = larger(largest, v_.matrix[k * n_ + k]);
      active_[k] = k;
      step_[k] = 0.0;
    }
    count_ = n_;
    for (int round = 0; round < kMaxFactorisations && count_ > 0; ++round) {
      if (!factor(kSmallestPivot * largest)) return false;
      solve_equations();
      if (!change_active(round < kMaxReleases)) return move();
    }
    return false;
  }

 private:
  bool factor(double least) {
    for (std::int64_t a = 0; a < count_; ++a) {
      const double* row = v_.matrix + active_[a] * n_;
      double* to = factor_ + a * count_;
      for (std::int64_t b = a; b < count_; ++b) to[b] = row[active_[b]];
    }
    return factor_blocks(factor_, count_, count_, least);
  }

  // The steps of the active variables, given those of the fixed ones.
  void solve_equations() {
    double missing = 0.0;  // what they must add up to
    for (std::int64_t a = 0; a < count_; ++a) step_[active_[a]] = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      right_[k] = v_.gradient[k];
      missing -= step_[k];
    }
    for (std::int64_t k = 0; k < n_; ++k)
      if (step_[k] != 0.0) add_row(right_, v_.matrix + k * n_, -step_[k], n_);
    double* x = ones_ + n_;
    for (std::int64_t a = 0; a < count_; ++a) x[a] = right_[active_[a]];
    solve_factored(factor_, count_, count_, x);
    offset_ = 0.0;
    if (v_.groups == 1) {
      for (std::int64_t a = 0; a < count_; ++a) ones_[a] = 1.0;
      solve_factored(factor_, count_, count_, ones_);
      double sum = 0.0, of_ones = 0.0;
      for (std::int64_t a = 0; a < count_; ++a) {
        sum += x[a];
        of_ones += ones_[a];
      }
      offset_ = (sum - missing) / of_ones;
      for (std::int64_t a = 0; a < count_; ++a) x[a] -= offset_ * ones_[a];
    }
    for (std::int64_t a = 0; a < count_; ++a) {
      step_[active_[a]] = x[a];
      add_row(right_, v_.matrix + active_[a] * n_, -x[a], n_);
    }
  }

  // Fix the active variables that leave their bounds, and release fixed ones that would move inwards. Returns whether
  // there are any.
  bool change_active(bool releases) {
    bool changes = false;
    std::int64_t next = 0, active = 0, count = 0;
    std::int64_t* found = active_ + n_;
    for (std::int64_t k = 0; k < n_; ++k) {
      const bool was_active = active < count_ && active_[active] == k;
      active += was_active;
      const double value = v_.dual[k] + step_[k], slack = right_[k] - offset_;
      if (was_active) {
        const bool below = value<v_.lower[k], above = value> v_.upper[k];
        if (below || above) step_[k] = (below ? v_.lower[k] : v_.upper[k]) - v_.dual[k];
        changes |= below || above;
        if (!below && !above) found[count++] = k;
      } else if (releases && (step_[k] > 0.0 ? slack < 0.0 : slack > 0.0)) {
        changes = true;
        found[count++] = k;
      }
    }
    for (; next < count; ++next) active_[next] = found[next];
    count_ = count;
    return changes;
  }

  // Move towards the solution as far as the objective rises; false if it does not.
  bool move() {
    double* product = right_;
    for (std::int64_t k = 0; k < n_; ++k) product[k] = 0.0;
    for (std::int64_t k = 0; k < n_; ++k)
      if (step_[k] != 0.0) add_row(product, v_.matrix + k * n_, step_[k], n_);
    const double slope = ordered_dot(step_, v_.gradient, n_), curvature = ordered_dot(step_, product, n_);
    if (!(slope > 0.0)) return false;
    const double length = curvature > slope ? slope / curvature : 1.0;
    for (std::int64_t k = 0; k < n_; ++k) v_.dual[k] += length * step_[k];
    add_row(v_.gradient, product, -length, n_);
    return true;
  }

  const FreeVariables& v_;
  const std::int64_t n_;
  double *factor_, *right_, *step_, *ones_;
  std::int64_t* active_;
  std::int64_t count_ = 0;
  double offset_ = 0.0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
