// An active-set method for the KKT system of the free variables within their bounds (Bottou & Lin 1.4.2).
//
//   max gᵀd − ½ dᵀHd over the change d of the free variables, each within its bounds, with the sum of each group fixed
//
// One variable of each group, its reference, absorbs the changes of the others: d = Zc with the columns z_k = e_k −
// e_ref, or z_k = e_k for a variable in no group. The reduced KKT system is ZᵀHZ c = Zᵀg. Cholesky with pivoting
// selects a maximal set of columns with a regular ZᵀHZ, the factored ones; the factor RᵀR = ZᵀHZ is updated as
// variables enter and leave (Gill, Golub, Murray & Saunders 1974). The remaining columns depend on these up to
// rounding. In turn,
//
//   a dependent variable moves, together with the factored ones, along a direction of zero curvature as far as the
//   objective rises, until a variable blocks the step. A blocking variable stays at its bound and is dropped from the
//   free set; the factored variables take the Newton step, or the part of it that the ratio test allows; blocking ones
//   are dropped.
//
// Each step costs a number of multiplications quadratic in the number of factored variables; nothing is factorised
// anew.
#pragma once

#include <cmath>
#include <cstdint>

#include "cholesky_factor.hpp"
#include "pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

class ActiveSetMethod {
 public:
  // The workspace has n² + 3n doubles, and 2n + groups indices.
  ActiveSetMethod(const FreeVariables& variables, double* doubles, std::int64_t* indices)
      : v_(variables),
        n_(variables.count),
        factor_(doubles, n_),
        direction_(doubles + n_ * n_),
        product_(direction_ + n_),
        vector_(product_ + n_),
        factored_(indices),
        dependent_(factored_ + n_),
        reference_(dependent_ + n_) {}

  // Returns the number of multiplications; infinity, with unfinished values, after the limit of seconds.
  double solve() {
    if (!factorise()) return work_;
    for (bool refined = false; work_ < v_.max_work && !expired();) {
      while (dependents_ > 0 && work_ < v_.max_work && !expired())
        if (!move_dependent(dependent_[dependents_ - 1])) return work_;
      const bool reached = newton_step();
      if (reached && reconsider_)
        restore_deferred();
      else if (reached && refined)
        break;
      refined = reached;
    }
    return work_;
  }

 private:
  bool expired() {
    if (seconds_since(start_) > v_.max_seconds) work_ = kInfinity;
    return std::isinf(work_);
  }

  bool grouped(std::int64_t k) const { return v_.group[k] >= 0; }
  std::int64_t reference_of(std::int64_t k) const { return grouped(k) ? reference_[v_.group[k]] : -1; }

  // z_kᵀ values
  double reduced(const double* values, std::int64_t k) const {
    const std::int64_t a = reference_of(k);
    return a < 0 ? values[k] : values[k] - values[a];
  }

  // row −= Σ_r R[r][p] R[r], from column `begin` on, over the first `rank` rows of the factor, one after the other,
  // though four at a time: the row is then read and written a quarter as often.
  void subtract_factored_rows(double* row, std::int64_t p, std::int64_t begin, std::int64_t rank) const {
    std::int64_t r = 0;
    for (; r + 4 <= rank; r += 4) {
      const double *a = factor_.row(r), *b = factor_.row(r + 1), *c = factor_.row(r + 2), *d = factor_.row(r + 3);
      const double at_a = a[p], at_b = b[p], at_c = c[p], at_d = d[p];
      for (std::int64_t k = begin; k < n_; ++k)
        row[k] = (((row[k] - at_a * a[k]) - at_b * b[k]) - at_c * c[k]) - at_d * d[k];
    }
    for (; r < rank; ++r) add_row(row + begin, factor_.row(r) + begin, -factor_.row(r)[p], n_ - begin);
  }

  // out = H z_k
  void multiply_column(std::int64_t k, double* out) const {
    const double* row = v_.matrix + k * n_;
    const std::int64_t a = reference_of(k);
    if (a < 0) {
      for (std::int64_t i = 0; i < n_; ++i) out[i] = row[i];
      return;
    }
    const double* reference = v_.matrix + a * n_;
    for (std::int64_t i = 0; i < n_; ++i) out[i] = row[i] - reference[i];
  }

  // Factorise the reduced matrix. False if that exceeds the work. The first variable of each group is its reference.
  // Rows of the factor hold the factored variables first, by their position, and at their end, from column n − 1 down,
  // those that are not factored yet, in the order of `dependent_`.
  bool factorise() {
    for (std::int32_t g = 0; g < v_.groups; ++g) reference_[g] = -1;
    for (std::int64_t k = n_ - 1; k >= 0; --k)
      if (grouped(k)) reference_[v_.group[k]] = k;
    double* pivots = vector_ + n_ - 1;  // of dependent variable o at −o
    double largest = 0.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      const std::int64_t a = reference_of(k);
      if (a == k) continue;
      const double* row = v_.matrix + k * n_;
      const double pivot = a < 0 ? row[k] : row[k] - 2.0 * row[a] + v_.matrix[a * n_ + a];
      pivots[-dependents_] = pivot;
      dependent_[dependents_++] = k;
      largest = larger(largest, pivot);
    }
    min_pivot_ = v_.accuracy * largest;
    while (dependents_ > 0) {
      std::int64_t best = 0;
      for (std::int64_t o = 1; o < dependents_; ++o)
        if (pivots[-o] > pivots[-best]) best = o;
      const std::int64_t rank = factor_.size(), begin = n_ - dependents_;
      const double pivot = pivots[-best];
      if (!(pivot > min_pivot_)) break;
      if ((work_ += static_cast<double>(rank) * n_) > v_.max_work || expired()) return false;
      double* row = factor_.row(rank);
      multiply_column(dependent_[best], product_);
      for (std::int64_t o = 0; o < dependents_; ++o) row[n_ - 1 - o] = reduced(product_, dependent_[o]);
      subtract_factored_rows(row, n_ - 1 - best, begin, rank);
      const double scale = 1.0 / std::sqrt(pivot);
      for (std::int64_t k = begin; k < n_; ++k) row[k] *= scale;
      for (std::int64_t k = begin; k < n_; ++k) vector_[k] -= row[k] * row[k];
      append_pivot(best);
    }
    return true;
  }

  // Move dependent variable `best` to the factored ones; the last dependent variable takes its place.
  void append_pivot(std::int64_t best) {
    const std::int64_t rank = factor_.size(), from = n_ - 1 - best, last = n_ - dependents_;
    for (std::int64_t r = 0; r <= rank; ++r) {
      double* row = factor_.row(r);
      const double value = row[from];
      row[from] = row[last];
      row[rank] = value;
    }
    vector_[from] = vector_[last];
    factored_[rank] = dependent_[best];
    dependent_[best] = dependent_[--dependents_];
    factor_.append_row();
  }

  // Add the last dependent variable to the factor if it has become independent; else move it along a direction of zero
  // curvature. False if the objective is unbounded.
  bool move_dependent(std::int64_t k) {
    for (;;) {
      if (grouped(k) && reference_[v_.group[k]] < 0) reference_[v_.group[k]] = k;  // the last free one of its group
      if (reference_of(k) == k) break;
      const std::int64_t rank = factor_.size();
      multiply_column(k, product_);
      double* column = vector_;
      for (std::int64_t r = 0; r < rank; ++r) column[r] = reduced(product_, factored_[r]);
      factor_.solve_forward(column);
      const double pivot = reduced(product_, k) - ordered_dot(column, column, rank);
      if (pivot > min_pivot_) {
        factored_[rank] = k;
        factor_.append_column(column, pivot);
        break;
      }
      factor_.solve_backward(column);
      double slope = reduced(v_.gradient, k), magnitude = std::fabs(slope);
      for (std::int64_t r = 0; r < rank; ++r) {
        const double term = column[r] * reduced(v_.gradient, factored_[r]);
        slope -= term;
        magnitude += std::fabs(term);
      }
      if (std::fabs(slope) <= v_.accuracy * magnitude) return defer(k);
      const double sign = slope > 0.0 ? 1.0 : -1.0;
      for (std::int64_t i = 0; i < n_; ++i) direction_[i] = 0.0;
      for (std::int64_t r = 0; r < rank; ++r) add_to_direction(factored_[r], -sign * column[r]);
      add_to_direction(k, sign);
      multiply_direction();
      const double curvature = ordered_dot(direction_, product_, n_);
      const double step = take_step(curvature > 0.0 ? std::fabs(slope) / curvature : kInfinity);
      if (std::isinf(step)) return false;
      if (!blocked_) return defer(k);
      const bool blocks = at_bound(k);
      drop_variables_at_bounds();
      if (blocks) break;
    }
    --dependents_;
    return true;
  }

  // Set a dependent variable aside that cannot raise the objective while the factored variables are the same.
  bool defer(std::int64_t k) {
    --dependents_;
    dependent_[n_ - ++deferred_] = k;
    return true;
  }

  void restore_deferred() {
    for (; deferred_ > 0; --deferred_) dependent_[dependents_++] = dependent_[n_ - deferred_];
    reconsider_ = false;
  }

  // Solve the reduced KKT system and move towards the solution. True if it is reached.
  bool newton_step() {
    const std::int64_t rank = factor_.size();
    if (!rank) return true;
    for (std::int64_t r = 0; r < rank; ++r) vector_[r] = reduced(v_.gradient, factored_[r]);
    factor_.solve_forward(vector_);
    factor_.solve_backward(vector_);
    for (std::int64_t i = 0; i < n_; ++i) direction_[i] = 0.0;
    for (std::int64_t r = 0; r < rank; ++r) add_to_direction(factored_[r], vector_[r]);
    multiply_direction();
    take_step(1.0);
    const bool reached = !blocked_;
    drop_variables_at_bounds();
    return reached;
  }

  // direction += amount · z_k
  void add_to_direction(std::int64_t k, double amount) const {
    const std::int64_t a = reference_of(k);
    direction_[k] += amount;
    if (a >= 0) direction_[a] -= amount;
  }

  // product = H direction
  void multiply_direction() {
    for (std::int64_t i = 0; i < n_; ++i) product_[i] = 0.0;
    for (std::int64_t i = 0; i < n_; ++i)
      if (direction_[i] != 0.0) add_row(product_, v_.matrix + i * n_, direction_[i], n_);
    work_ += static_cast<double>(factor_.size() + 1) * (factor_.size() + n_);
  }

  bool at_bound(std::int64_t k) const { return v_.dual[k] <= v_.lower[k] || v_.dual[k] >= v_.upper[k]; }

  // The step at which a variable reaches its bound.
  double step_to_bound(std::int64_t i) const {
    const double d = direction_[i];
    return ((d > 0.0 ? v_.upper[i] : v_.lower[i]) - v_.dual[i]) / d;
  }

  // Ratio test: move along the direction by at most `max_step`, or to the first blocking bound. Variables that reach a
  // bound are set exactly to it. Returns the step.
  double take_step(double max_step) {
    double step = max_step;
    for (std::int64_t i = 0; i < n_; ++i)
      if (direction_[i] != 0.0) step = smaller(step, step_to_bound(i));
    blocked_ = false;
    if (std::isinf(step)) return step;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double d = direction_[i];
      if (d == 0.0) continue;
      const bool reaches = step_to_bound(i) <= step;
      v_.dual[i] = reaches ? (d > 0.0 ? v_.upper[i] : v_.lower[i]) : v_.dual[i] + step * d;
      blocked_ |= at_bound(i);
    }
    add_row(v_.gradient, product_, -step, n_);
    return step;
  }

  // Drop the variables at bounds from the free set.
  void drop_variables_at_bounds() {
    if (!blocked_) return;
    reconsider_ = deferred_ > 0;
    for (std::int64_t r = factor_.size() - 1; r >= 0; --r)
      if (at_bound(factored_[r])) drop(r);
    for (std::int32_t g = 0; g < v_.groups; ++g)
      if (reference_[g] >= 0 && at_bound(reference_[g])) replace_reference(g);
  }

  // The first factored variable a of the group becomes its reference: z_k becomes z_k − z_a.
  void replace_reference(std::int32_t g) {
    const std::int64_t rank = factor_.size();
    std::int64_t first = 0;
    while (first < rank && v_.group[factored_[first]] != g) ++first;
    if (first == rank) {
      reference_[g] = -1;
      return;
    }
    reference_[g] = factored_[first];
    for (std::int64_t c = first + 1; c < rank; ++c)
      if (v_.group[factored_[c]] == g) factor_.subtract_column(first, c);
    drop(first);
  }

  void drop(std::int64_t position) {
    factor_.delete_column(position);
    for (std::int64_t r = position; r < factor_.size(); ++r) factored_[r] = factored_[r + 1];
  }

  const FreeVariables& v_;
  const std::int64_t n_;
  CholeskyFactor factor_;  // of the factored variables, in their order
  double *direction_, *product_, *vector_;
  std::int64_t *factored_, *dependent_, *reference_;
  std::int64_t dependents_ = 0;  // the number of dependent variables
  std::int64_t deferred_ = 0;    // dependent variables that were set aside, at the end of their list
  double min_pivot_ = 0.0, work_ = 0.0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool blocked_ = false;     // whether a variable blocked the last step
  bool reconsider_ = false;  // whether a variable was dropped since one was deferred
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
