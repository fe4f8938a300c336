// The active-set finish of pair steps: the free variables of a dual state are moved to the solution of their KKT
// system.
//
// The native counterpart of solvers/smo/exact_finish.py for problems whose rows are in memory.
#pragma once

#include <cstdint>

#include "active_set.hpp"
#include "pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kMatrixAccuracy = 1e-11;  // relative; equal samples make the matrix singular
constexpr double kMaxWork = 1e8;           // multiplications of all solutions together

// The workspace for up to `limit` free variables, in 2 limit² + 7 limit doubles, 3 limit + groups indices and `limit`
// groups.
struct FreeWorkspace {
  double *matrix, *dual, *gradient, *lower, *upper, *doubles;
  std::int64_t *free, *indices;
  std::int32_t* group;

  FreeWorkspace(double* memory, std::int64_t* index_memory, std::int32_t* groups, std::int64_t limit)
      : matrix(memory),
        dual(matrix + limit * limit),
        gradient(dual + limit),
        lower(gradient + limit),
        upper(lower + limit),
        doubles(upper + limit),
        free(index_memory),
        indices(free + limit),
        group(groups) {}
};

// List the variables strictly between their bounds and not at a kink; returns their number, or limit + 1 if there are
// more than `limit`.
inline std::int64_t find_free(const DualState& s, std::int64_t limit, std::int64_t* free) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < s.size; ++k)
    if (is_free(s, k)) {
      if (count == limit) return limit + 1;
      free[count++] = k;
    }
  return count;
}

// Copy the values of the listed free variables to the workspace.
inline void copy_free_values(const DualState& s, const FreeWorkspace& w, std::int64_t count) {
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = w.free[a];
    w.group[a] = s.group[i];
    w.dual[a] = s.dual[i];
    w.gradient[a] = gradient_up(s, i);
    w.lower[a] = nearest_lower(s, i);
    w.upper[a] = nearest_upper(s, i);
  }
}

// Copy the listed free variables and the matrix between them to the workspace; false if there is no memory for a row.
template <class Rows>
inline bool copy_free(const DualState& s, Rows& rows, const FreeWorkspace& w, std::int64_t count) {
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = w.free[a];
    const auto* row = find(rows, i, s.size);
    if (!row) return false;
    for (std::int64_t b = 0; b < count; ++b) w.matrix[a * count + b] = rows.at(row, w.free[b]);
    w.matrix[a * count + a] += s.ridge[i];
  }
  copy_free_values(s, w, count);
  return true;
}

// Move the listed free variables to their values in the workspace, if that increases the objective.
template <class Rows> inline bool move_free(DualState& s, Rows& rows, const FreeWorkspace& w, std::int64_t count) {
  double twice_gain = 0.0;
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = w.free[a];
    w.dual[a] = snapped_to_bound(s, i, w.dual[a]);
    twice_gain += (w.dual[a] - s.dual[i]) * (gradient_up(s, i) + w.gradient[a]);
  }
  if (!(twice_gain > 0.0)) return false;  // rounding errors can make it negative
  for (std::int64_t a = 0; a < count; ++a) {
    const std::int64_t i = w.free[a];
    const double change = w.dual[a] - s.dual[i];
    if (change == 0.0) continue;
    rows.add(s.gradient, i, -change);
    s.gradient[i] -= s.ridge[i] * change;
    s.dual[i] = w.dual[a];
  }
  return true;
}

// Solve the KKT system of the listed free variables within their bounds, and add the multiplications to `work`.
template <class Rows>
inline void solve_free(DualState& s, Rows& rows, const FreeWorkspace& w, std::int64_t count, double& work,
                       double accuracy = kMatrixAccuracy, double max_work = kMaxWork) {
  if (!copy_free(s, rows, w, count)) return;
  const FreeVariables variables{w.matrix, count,  w.group,    s.groups, w.lower,
                                w.upper,  w.dual, w.gradient, accuracy, max_work - work};
  work += ActiveSetMethod(variables, w.doubles, w.indices).solve();
  move_free(s, rows, w, count);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
