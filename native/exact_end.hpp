// The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).
//
// The native twin of solvers/smo/exact_finish.py for problems of one group or none whose free variables all have their
// rows at hand.
#pragma once

#include <cstdint>

#include "free_equations.hpp"
#include "loops.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kAccuracy = 1e-11;  // of the matrix: duplicates make its equations singular
constexpr double kMostWork = 1e8;    // multiplications after which a point that keeps hitting the box is left as it is

// Scratch for the equations of up to `limit` free variables: 2 limit² + 7 limit numbers and 3 limit places.
struct EquationRoom {
  double *block, *triangle;                 // limit × limit
  double *dual, *gradient, *lower, *upper;  // limit
  double *direction, *image, *right;
  std::int64_t *free, *movers, *others;
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

// Move the free variables to the solution of their equations, as far as the box lets them.
inline void solve_free(DualState& s, const RowStore<double>& rows, const EquationRoom& room, std::int64_t count,
                       double& work) {
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = room.free[a];
    const double* row = find(rows, i, s.size);
    if (!row) return;  // a start that never moved
    for (std::int64_t b = 0; b < count; ++b) room.block[a * count + b] = row[room.free[b]];
    room.block[a * count + a] += s.ridge[i];
    room.dual[a] = s.dual[i];
    room.gradient[a] = s.gradient[i];
    room.lower[a] = s.lower[i];
    room.upper[a] = s.upper[i];
  }
  std::int64_t anchor = -1;
  const FreeTask task{room.block,       count,         s.group /* the same for all */,
                      s.groups,         room.lower,    room.upper,
                      room.dual,        room.gradient, kAccuracy,
                      kMostWork - work, room.triangle, room.direction,
                      room.image,       room.right,    room.movers,
                      room.others,      &anchor};
  work += FreeEquations(task).solve();
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
