// The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).
//
// The native twin of solvers/exact_finish.py for problems of one group or none whose free variables all have their rows at
// hand. Where the equations have no solution, because free variables depend on one another, there is a direction without
// curvature in which the dual rises up to the box.
#pragma once

#include <cmath>
#include <cstdint>

#include "loops.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kAccuracy = 1e-11;      // of the matrix: duplicates make its equations singular
constexpr double kInconsistent = 100.0;  // a remainder of so many times the accuracy: there is no solution
constexpr double kMostWork = 1e8;        // multiplications after which a point that keeps hitting the box is left as it is

// Scratch for the equations of up to `limit` free variables: 2 limit² + 7 limit numbers and 3 limit places.
struct EquationRoom {
  double *block, *factor;                              // limit × limit
  double *dual, *gradient, *direction, *right, *left;  // limit
  double *diagonal, *correction;
  std::int64_t *free, *moving, *pivots;
};

// Solves system·x = right by a Cholesky factorisation with pivots, using as few unknowns as the rank needs. The system is
// B_ij of the chosen variables, or with a group B_ij − B_0j − B_i0 + B_00: every variable moves against the first.
class PivotedCholesky {
 public:
  PivotedCholesky(const double* block, std::int64_t stride, const std::int64_t* which, std::int64_t count, bool grouped,
                  const EquationRoom& room)
      : block_(block), stride_(stride), which_(which), count_(count), grouped_(grouped), room_(room) {}

  // False: there is no solution, and x is a vector with system·x ≈ 0 and right·x > 0.
  bool solve(const double* right, double* x) {
    factorise();
    for (std::int64_t k = 0; k < count_; ++k) { room_.left[k] = right[k]; x[k] = 0.0; }
    double largest_right = 0.0, largest_left = 0.0, largest_x = 0.0;
    for (std::int64_t k = 0; k < count_; ++k) largest_right = larger(largest_right, std::fabs(right[k]));
    substitute(room_.left, x);
    for (std::int64_t k = rank_; k < count_; ++k) largest_left = larger(largest_left, std::fabs(room_.left[room_.pivots[k]]));
    for (std::int64_t k = 0; k < count_; ++k) largest_x = larger(largest_x, std::fabs(x[k]));
    if (largest_left > kInconsistent * kAccuracy * (largest_right + largest_ * largest_x)) {
      find_flat(x);
      return false;
    }
    refine(right, x);
    return true;
  }

  double work() const { return static_cast<double>(count_) * count_ * (rank_ > 8 ? rank_ : 8); }

 private:
  double entry(std::int64_t i, std::int64_t j) const {
    const double* row = block_ + which_[i + grouped_] * stride_;
    if (!grouped_) return row[which_[j]];
    const double* first = block_ + which_[0] * stride_;
    return row[which_[j + 1]] - first[which_[j + 1]] - row[which_[0]] + first[which_[0]];
  }

  // Row k of the factor holds column k of the triangle, by unknown: l_k = (system_p − Σ_{j<k} l_j[p] l_j) / √pivot.
  void factorise() {
    largest_ = 0.0;
    rank_ = 0;
    for (std::int64_t k = 0; k < count_; ++k) {
      room_.diagonal[k] = entry(k, k);
      room_.pivots[k] = k;
      largest_ = larger(largest_, room_.diagonal[k]);
    }
    if (!(largest_ > 0.0)) return;
    for (; rank_ < count_; ++rank_) {
      std::int64_t best = rank_;
      for (std::int64_t k = rank_ + 1; k < count_; ++k)
        if (room_.diagonal[room_.pivots[k]] > room_.diagonal[room_.pivots[best]]) best = k;
      const std::int64_t p = room_.pivots[best];
      const double pivot = room_.diagonal[p];
      if (!(pivot > kAccuracy * largest_)) return;
      room_.pivots[best] = room_.pivots[rank_];
      room_.pivots[rank_] = p;
      double* row = room_.factor + rank_ * count_;
      for (std::int64_t k = 0; k < count_; ++k) row[k] = entry(p, k);
      for (std::int64_t j = 0; j < rank_; ++j) {
        const double* earlier = room_.factor + j * count_;
        const double factor = earlier[p];
        for (std::int64_t k = 0; k < count_; ++k) row[k] -= factor * earlier[k];
      }
      const double scale = 1.0 / std::sqrt(pivot);
      for (std::int64_t k = 0; k < count_; ++k) row[k] *= scale;
      for (std::int64_t j = 0; j <= rank_; ++j) row[room_.pivots[j]] = j < rank_ ? 0.0 : row[p];
      for (std::int64_t k = 0; k < count_; ++k) room_.diagonal[k] -= row[k] * row[k];
    }
  }

  // Add the solution of the chosen unknowns to x; `left` becomes what the others lack.
  void substitute(double* left, double* x) const {
    for (std::int64_t k = 0; k < rank_; ++k) {
      const double* row = room_.factor + k * count_;
      const double value = left[room_.pivots[k]] / row[room_.pivots[k]];
      for (std::int64_t i = 0; i < count_; ++i) left[i] -= value * row[i];
      room_.correction[k] = value;
    }
    for (std::int64_t k = rank_ - 1; k >= 0; --k) {
      const double* row = room_.factor + k * count_;
      double value = room_.correction[k];
      for (std::int64_t i = k + 1; i < rank_; ++i) value -= row[room_.pivots[i]] * room_.correction[i];
      room_.correction[k] = value / row[room_.pivots[k]];
      x[room_.pivots[k]] += room_.correction[k];
    }
  }

  // What the other unknowns lack, and the chosen ones so that nothing bends.
  void find_flat(double* x) const {
    for (std::int64_t k = 0; k < count_; ++k) x[k] = 0.0;
    for (std::int64_t k = rank_; k < count_; ++k) x[room_.pivots[k]] = room_.left[room_.pivots[k]];
    for (std::int64_t k = 0; k < rank_; ++k) {
      double sum = 0.0;
      for (std::int64_t o = rank_; o < count_; ++o) sum -= entry(room_.pivots[k], room_.pivots[o]) * x[room_.pivots[o]];
      room_.left[room_.pivots[k]] = sum;
    }
    substitute(room_.left, x);
  }

  void refine(const double* right, double* x) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      double sum = right[i];
      for (std::int64_t k = 0; k < rank_; ++k) sum -= entry(i, room_.pivots[k]) * x[room_.pivots[k]];
      room_.left[i] = sum;
    }
    substitute(room_.left, x);
  }

  const double* block_;
  std::int64_t stride_;
  const std::int64_t* which_;
  std::int64_t count_, rank_ = 0;
  bool grouped_;
  const EquationRoom& room_;
  double largest_ = 0.0;
};

// The variables off their bounds: how many, or more than `limit`.
inline std::int64_t find_free(const DualState& s, std::int64_t limit, std::int64_t* free) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < s.size; ++k)
    if (can_increase(s, k) && can_decrease(s, k)) {
      if (count == limit) return limit + 1;
      free[count++] = k;
    }
  return count;
}

// How far it is to the top of the dual along a direction, in its own length; infinite if there is none.
inline double top_of(const EquationRoom& room, std::int64_t count, std::int64_t moving) {
  double slope = 0.0, bend = 0.0;
  for (std::int64_t k = 0; k < moving; ++k) {
    const double* row = room.block + room.moving[k] * count;
    double sum = 0.0;
    for (std::int64_t l = 0; l < moving; ++l) sum += row[room.moving[l]] * room.direction[l];
    bend += room.direction[k] * sum;
    slope += room.direction[k] * room.gradient[room.moving[k]];
  }
  return bend > 0.0 ? slope / bend : kInfinity;
}

// Take the free variables to the solution of their equations, or to the first bound on the way, drop those that reached
// theirs, and so on; `room` has their values then.
inline void approach_solution(const DualState& s, const EquationRoom& room, std::int64_t count, double& work) {
  const bool grouped = s.groups == 1;
  std::int64_t moving = count;
  for (std::int64_t a = 0; a < count; ++a) room.moving[a] = a;
  while (moving > grouped && work < kMostWork) {
    const std::int64_t unknowns = moving - grouped;
    PivotedCholesky system(room.block, count, room.moving, unknowns, grouped, room);
    const double against = grouped ? room.gradient[room.moving[0]] : 0.0;
    for (std::int64_t k = 0; k < unknowns; ++k) room.right[k] = room.gradient[room.moving[k + grouped]] - against;
    const bool solved = system.solve(room.right, room.direction + grouped);
    work += system.work();
    if (grouped) {
      room.direction[0] = 0.0;
      for (std::int64_t k = 1; k < moving; ++k) room.direction[0] -= room.direction[k];
    }
    const double limit = solved ? 1.0 : top_of(room, count, moving);
    double step = limit;
    for (std::int64_t k = 0; k < moving; ++k) {
      const std::int64_t a = room.moving[k], i = room.free[a];
      const double d = room.direction[k];
      if (d != 0.0) step = smaller(step, ((d > 0.0 ? s.upper[i] : s.lower[i]) - room.dual[a]) / d);
    }
    if (!(step < kInfinity)) return;  // an open box without a top: the pair steps find out
    for (std::int64_t k = 0; k < moving; ++k) {
      const double* row = room.block + room.moving[k] * count;
      const double change = step * room.direction[k];
      for (std::int64_t b = 0; b < count; ++b) room.gradient[b] -= change * row[b];
    }
    std::int64_t rest = 0;
    for (std::int64_t k = 0; k < moving; ++k) {
      const std::int64_t a = room.moving[k], i = room.free[a];
      const double d = room.direction[k], bound = d > 0.0 ? s.upper[i] : s.lower[i];
      const bool blocked = step < limit && d != 0.0 && (bound - room.dual[a]) / d <= step;
      room.dual[a] = blocked ? bound : room.dual[a] + step * d;
      if (!blocked) room.moving[rest++] = a;
    }
    if (step >= limit) return;
    moving = rest;  // fewer by at least one
  }
}

// Move the free variables to the solution of their equations, as far as the box lets them.
inline void solve_free(DualState& s, const RowStore<double>& rows, const EquationRoom& room, std::int64_t count,
                       double& work) {
  for (std::int64_t a = 0; a < count; ++a) {
    const double* row = find(rows, room.free[a], s.size);
    if (!row) return;  // a start that never moved
    for (std::int64_t b = 0; b < count; ++b) room.block[a * count + b] = row[room.free[b]];
    room.block[a * count + a] += s.ridge[room.free[a]];
    room.dual[a] = s.dual[room.free[a]];
    room.gradient[a] = s.gradient[room.free[a]];
  }
  approach_solution(s, room, count, work);
  double gain = 0.0;  // twice
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = room.free[a];
    room.dual[a] = snapped(s, i, room.dual[a]);
    gain += (room.dual[a] - s.dual[i]) * (s.gradient[i] + room.gradient[a]);
  }
  if (!(gain > 0.0)) return;  // rounding alone may lose
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = room.free[a];
    const double change = room.dual[a] - s.dual[i];
    if (change == 0.0) continue;
    add_row(s.gradient, find(rows, i, s.size), -change, s.size);
    s.gradient[i] -= s.ridge[i] * change;
    s.dual[i] = room.dual[a];
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
