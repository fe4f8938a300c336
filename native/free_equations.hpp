// The linear equations of the free variables, with variables that would leave their bounds fixed at them, all at a
// time.
//
// The active-set method (active_set.hpp) fixes one variable after the other, so that every step is an ascent. Where
// hundreds leave their bounds, as after a change of C, that takes hundreds of updates of the factor. Here all of them
// are fixed, and the equations of the others are solved again, until none leaves its bounds. That point need not
// be better, but on the way to it the objective may rise first: the step is as long as it does.
//
// Equations of a base of variables are factored, RᵀR = M. With variables of the base fixed at a change d, and the sum
// of all as it is, the others follow from
//
//   M x + E λ = r,  Eᵀx = d,  so  (XᵀX) λ = Xᵀz − d,  x = R⁻¹(z − X λ)  with  X = R⁻ᵀE,  z = R⁻ᵀr,
//
// where E has a unit vector for each fixed variable, and a column of ones, whose λ is the offset; the other λ are the
// slacks. Columns of X are computed once, whatever variables are fixed in the end, in a fraction of the time of
// another factorisation. Where that would take longer, the active variables become the base.
#pragma once

#include <cmath>
#include <cstdint>

#include "active_set_finish.hpp"
#include "blocked_cholesky.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxFactorisations = 12, kMaxReleases = 8;
constexpr double kSmallestPivot = 1e-11;  // relative to the largest diagonal element
// The columns of fixed variables take as long as so many factorisations of the equations of the active ones.
constexpr double kMaxColumnCost = 3.0;

class FreeEquations {
 public:
  // In doubles_of_free_equations(count) less those of the matrix and of four vectors, and in indices_of_free_equations
  // less `count`.
  FreeEquations(const FreeVariables& v, double* doubles, std::int64_t* indices)
      : v_(v),
        n_(v.count),
        max_columns_(columns_of_free_equations(n_)),
        factor_{doubles, n_},
        right_(doubles + n_ * n_),
        step_(right_ + n_),
        slack_(step_ + n_),
        columns_{slack_ + n_, padded_columns(n_)},
        products_{columns_.values + n_ * columns_.stride, columns_.stride},
        small_(products_.values + columns_.stride * columns_.stride),
        lambda_(small_ + columns_.stride * columns_.stride),
        base_(indices),
        column_(base_ + n_),
        fixed_(column_ + n_),
        active_(fixed_ + n_),
        nonzero_(active_ + n_) {}

  // Change v.dual and v.gradient. False, with both unchanged, if there is no ascent: the matrix is singular, there are
  // several groups, or all variables leave their bounds.
  bool solve() {
    if (v_.groups > 1) return false;
    double largest = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      largest = larger(largest, v_.matrix[k * n_ + k]);
      active_[k] = 1;
      step_[k] = 0.0;
    }
    active_count_ = n_;
    base_count_ = 0;
    for (int round = 0; round < kMaxFactorisations && active_count_ > 0; ++round) {
      if (!add_columns() && !factor(kSmallestPivot * largest)) return false;
      if (!solve_equations()) return false;
      if (!change_active(round < kMaxReleases)) return move();
    }
    return false;
  }

 private:
  // Factor the equations of the active variables, with the right-hand side and ones as the first columns.
  bool factor(double least) {
    base_count_ = 0;
    for (std::int64_t k = 0; k < n_; ++k) {
      column_[k] = active_[k] ? 0 : -1;  // 0: in the base, without a column
      if (active_[k]) base_[base_count_++] = k;
    }
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const double* row = v_.matrix + base_[a] * n_;
      double* to = factor_.values + a * base_count_;
      for (std::int64_t b = a; b < base_count_; ++b) to[b] = row[base_[b]];
    }
    factor_.stride = base_count_;
    if (!factor_blocks(factor_.values, base_count_, base_count_, least)) return false;
    subtract_fixed();
    width_ = 0;
    begin_columns(1 + v_.groups);
    for (std::int64_t a = 0; a < base_count_; ++a) {
      columns_.row(a)[0] = right_[base_[a]];
      if (v_.groups == 1) columns_.row(a)[1] = 1.0;
    }
    nonzero_[0] = nonzero_[1] = 0;
    end_columns(1 + v_.groups);
    return true;
  }

  // right = gradient − M step, of the variables that are not in the base.
  void subtract_fixed() {
    missing_ = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) right_[k] = v_.gradient[k];
    if (base_count_ == n_) return;
    for (std::int64_t k = 0; k < n_; ++k) {
      if (active_[k]) continue;
      missing_ -= step_[k];
      if (step_[k] != 0.0) add_row(right_, v_.matrix + k * n_, -step_[k], n_);
    }
  }

  // Columns of the fixed variables that have none. False if active variables are outside of the base, or if a
  // factorisation takes less time or memory.
  bool add_columns() {
    if (base_count_ == 0) return false;
    std::int64_t added = 0;
    for (std::int64_t k = 0; k < n_; ++k) {
      if (column_[k] < 0 && active_[k]) return false;
      added += column_[k] == 0 && !active_[k];
    }
    const double base = static_cast<double>(base_count_), left = static_cast<double>(active_count_);
    if (width_ + added > max_columns_ || static_cast<double>(added) * base * base > kMaxColumnCost * left * left * left)
      return false;
    begin_columns(added);
    std::int64_t next = width_;
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const std::int64_t k = base_[a];
      if (column_[k] != 0 || active_[k]) continue;
      nonzero_[next] = a;
      columns_.row(a)[next] = 1.0;
      column_[k] = next++;
    }
    end_columns(added);
    return true;
  }

  void begin_columns(std::int64_t added) {
    for (std::int64_t a = 0; a < base_count_; ++a)
      for (std::int64_t c = width_; c < width_ + added + kTileWidth; ++c) columns_.row(a)[c] = 0.0;
  }

  // Solve the columns, and compute −XᵀX for them.
  void end_columns(std::int64_t added) {
    const std::int64_t first = width_, last = width_ + added;
    if (added == 0) return;
    solve_columns(factor_, base_count_, columns_, first, last, nonzero_);
    for (std::int64_t i = 0; i < last; ++i)
      for (std::int64_t j = first; j < last + kTileWidth; ++j) products_.row(i)[j] = 0.0;
    for (std::int64_t begin = 0; begin < base_count_; begin += kCholeskyBlock) {
      const std::int64_t end = begin + kCholeskyBlock < base_count_ ? begin + kCholeskyBlock : base_count_;
      for (std::int64_t j = first; j < last && nonzero_[j] < end; j += kTileWidth)
        subtract_products(products_, columns_, columns_, begin, end, 0, last, j);
    }
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t j = 0; j < first; ++j) products_.row(i)[j] = products_.row(j)[i];
    width_ = last;
  }

  // The steps of the active variables, given those of the fixed ones, whose slacks are found. False if the fixed ones
  // depend on each other, up to rounding.
  bool solve_equations() {
    std::int64_t fixed = 0;  // columns whose λ is wanted
    if (v_.groups == 1) {
      fixed_[fixed] = 1;
      lambda_[fixed++] = missing_;
    }
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const std::int64_t k = base_[a];
      if (active_[k]) continue;
      fixed_[fixed] = column_[k];
      lambda_[fixed++] = step_[k];
    }
    for (std::int64_t i = 0; i < fixed; ++i) {
      const double* row = products_.row(fixed_[i]);
      lambda_[i] = -row[0] - lambda_[i];
      for (std::int64_t j = i; j < fixed; ++j) small_[i * fixed + j] = -row[fixed_[j]];
    }
    if (!factor_blocks(small_, fixed, fixed, 0.0)) return false;
    solve_factored(small_, fixed, fixed, lambda_);
    offset_ = v_.groups == 1 ? lambda_[0] : 0.0;
    double* x = small_;  // no longer needed
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const double* row = columns_.row(a);
      x[a] = row[0];
      for (std::int64_t i = 0; i < fixed; ++i) x[a] -= row[fixed_[i]] * lambda_[i];
    }
    solve_transposed(factor_.values, base_count_, base_count_, x);
    std::int64_t next = v_.groups;
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const std::int64_t k = base_[a];
      if (active_[k])
        step_[k] = x[a];
      else
        slack_[k] = lambda_[next++];
    }
    if (base_count_ == n_) return true;
    for (std::int64_t k = 0; k < n_; ++k) slack_[k] = column_[k] < 0 ? right_[k] - offset_ : slack_[k];
    for (std::int64_t a = 0; a < base_count_; ++a) {
      const std::int64_t k = base_[a];
      for (std::int64_t c = 0; c < n_; ++c)
        if (column_[c] < 0) slack_[c] -= step_[k] * v_.matrix[k * n_ + c];
    }
    return true;
  }

  // Fix the active variables that leave their bounds, and release fixed ones that would move inwards. Returns whether
  // there are any.
  bool change_active(bool releases) {
    bool changes = false;
    for (std::int64_t k = 0; k < n_; ++k) {
      if (active_[k]) {
        const double value = v_.dual[k] + step_[k];
        const bool below = value<v_.lower[k], above = value> v_.upper[k];
        if (!below && !above) continue;
        step_[k] = (below ? v_.lower[k] : v_.upper[k]) - v_.dual[k];
        active_[k] = 0;
        --active_count_;
        changes = true;
      } else if (releases && (step_[k] > 0.0 ? slack_[k] < 0.0 : slack_[k] > 0.0)) {
        active_[k] = 1;
        ++active_count_;
        changes = true;
      }
    }
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
  const std::int64_t n_, max_columns_;
  Strided factor_;
  double *right_, *step_, *slack_;
  Strided columns_;   // X; the first ones are z and that of ones
  Strided products_;  // −XᵀX
  double *small_, *lambda_;
  std::int64_t* base_;     // the variables of the base
  std::int64_t* column_;   // of each variable in X; 0: none, −1: it is not in the base
  std::int64_t* fixed_;    // columns of the fixed variables
  std::int64_t* active_;   // whether a variable is active
  std::int64_t* nonzero_;  // the first row of each column in which it is not zero
  std::int64_t base_count_ = 0, active_count_ = 0, width_ = 0;
  double offset_ = 0.0, missing_ = 0.0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
