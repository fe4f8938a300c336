// The solver of a small problem whose whole matrix is in memory, from start to end in one call:
//
//   pair steps to the tolerance, the active-set finish (active_set_finish.hpp), and a recomputed gradient; the same
//   again if that gradient does not confirm the tolerance.
//
// The matrix may be larger than the problem, whose variables are some of its rows, as for two classes of several, or
// smaller, as for two variables per sample. Unless these rows are a few runs, they are copied when they are first
// needed. A problem that reaches the limit of steps, or whose tolerance is close to rounding, is returned unfinished.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "active_set_finish.hpp"
#include "fused_pairwise.hpp"
#include "pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxRestarts = 3;             // after a recomputed gradient that exceeds the tolerance
constexpr int kMaxFinishRounds = 20;        // of the active-set finish
constexpr int kPairStepsPerRound = 16;      // between two solutions of the KKT system
constexpr double kFinishTolerance = 1e-13;  // of the active-set finish, relative to the largest product M b
constexpr double kDoubleEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kMaxRoundingFraction = 0.01;  // of the tolerance, above which the violation must be verified

// The rows of a small problem: those of the matrix, where its variables are a few runs of columns, else copies of their
// values at the variables of the problem.
class SmallRows {
 public:
  using Value = double;
  std::int64_t requests = 0;
  GroupRuns runs;
  bool in_runs;  // whether the variables of each group are next to each other

  SmallRows(const SmallProblem& problem, const SmallWorkspace& workspace, const DualState& state)
      : in_runs(runs.find(state, workspace.copies ? problem.indices : nullptr)),
        p_(problem),
        w_(workspace),
        size_(state.size),
        copies_(w_.copies && !in_runs) {
    if (!copies_) return;
    in_runs = runs.find(state);
    for (std::int64_t k = 0; k < size_; ++k) w_.slot[k] = -1;
  }

  const double* row(std::int64_t k) {
    if (!w_.copies) return p_.matrix + k * p_.stride;
    const double* from = p_.matrix + p_.indices[k] * p_.stride;
    if (!copies_) return from;
    if (w_.slot[k] < 0) {
      double* to = w_.copies + copied_ * size_;
      for (std::int64_t c = 0; c < size_; ++c) to[c] = from[p_.indices[c]];
      w_.slot[k] = copied_++;
    }
    return w_.copies + w_.slot[k] * size_;
  }

  // The value of a row at a variable.
  double at(const double* row, std::int64_t k) const { return row[in_runs ? runs.column(k) : k]; }

  // target += factor · row k, over all variables
  void add(double* target, std::int64_t k, double factor) {
    const double* from = row(k);
    if (!in_runs) return add_row(target, from, factor, size_);
    for (int r = 0; r < runs.count; ++r) {
      const Run run = runs.at(r);
      add_row(target + run.begin, from + (run.begin + run.shift), factor, run.end - run.begin);
    }
  }

 private:
  const SmallProblem& p_;
  const SmallWorkspace& w_;
  const std::int64_t size_;
  const bool copies_;
  std::int64_t copied_ = 0;
};

inline const double* find(SmallRows& rows, std::int64_t k, std::int64_t) { return rows.row(k); }
inline void mark_used(SmallRows& rows, std::int64_t) { ++rows.requests; }

class SmallProblemSolver {
 public:
  // `extremes` has groups + 1 entries, which become those of the solution.
  SmallProblemSolver(const SmallProblem& problem, const SmallWorkspace& workspace, DualState& state,
                     GradientExtremes* extremes)
      : p_(problem),
        w_(workspace),
        free_(workspace.free_doubles, workspace.free_indices, workspace.free_groups, problem.max_free),
        s_(state),
        rows_(problem, workspace, state),
        fused_{workspace.shifts, workspace.shifts + state.size, workspace.diagonal},
        memory_{Rule::second_order, -1, -1, -1, -1, 0.0, extremes} {}

  Outcome solve(double tolerance, std::int64_t max_steps) {
    recompute_gradient();
    Outcome out;
    for (int restart = 0; restart <= kMaxRestarts; ++restart) {
      out = ascend(tolerance, max_steps);
      if (out.reason != StopReason::optimal) break;
      if (out.steps == 0) break;  // confirmed by a recomputed gradient
      if (!restart) finish(out.violation);
      if (!recompute_gradient()) {
        out.reason = StopReason::precision;
        break;
      }
      if (restart == kMaxRestarts) {
        out = run(tolerance, 0);
        if (out.reason != StopReason::optimal) out.reason = StopReason::precision;
      }
    }
    if (out.reason == StopReason::optimal && close_to_rounding(tolerance)) out.reason = StopReason::precision;
    find_extremes(s_, memory_.extremes);
    out.steps = steps_;
    out.row = rows_.requests;
    return out;
  }

 private:
  Outcome run(double tolerance, std::int64_t max_steps) {
    const Outcome out = rows_.in_runs ? run_fused_pairwise(s_, rows_, rows_.runs, fused_, {1, 0, &pass_, nullptr},
                                                           tolerance, max_steps, kInfinity)
                                      : run_pairwise(s_, rows_, memory_, tolerance, max_steps, kInfinity);
    steps_ += out.steps;
    return out;
  }

  // Pair steps to the tolerance; if they converge slowly, with solutions of the KKT system in between.
  Outcome ascend(double tolerance, std::int64_t max_steps) {
    const std::int64_t batch = 5 * (s_.size < 100 ? 100 : s_.size > 1000 ? 1000 : s_.size);
    double work = 0.0;
    for (std::int64_t taken = 0;;) {
      const std::int64_t left = max_steps - steps_;
      Outcome out = run(tolerance, left < batch ? left : batch);
      out.steps = taken += out.steps;
      if (out.reason != StopReason::paused || steps_ >= max_steps) return out;
      const std::int64_t count = find_free(s_, p_.max_free, free_.free);
      if (count && count <= p_.max_free) solve_free(s_, rows_, free_, count, work);
    }
  }

  // gradient = linear − M b − ridge∘b; false if it is not finite.
  bool recompute_gradient() {
    for (std::int64_t k = 0; k < s_.size; ++k) s_.gradient[k] = p_.linear[k] - s_.ridge[k] * s_.dual[k];
    for (std::int64_t k = 0; k < s_.size; ++k)
      if (s_.dual[k] != 0.0) rows_.add(s_.gradient, k, -s_.dual[k]);
    bool finite = true;
    for (std::int64_t k = 0; k < s_.size; ++k) finite &= std::fabs(s_.gradient[k]) < kInfinity;
    return finite;
  }

  // Whether the gradient computed in another order may differ by a noticeable part of the tolerance.
  bool close_to_rounding(double tolerance) const {
    double sum = 0.0, largest = 0.0;
    for (std::int64_t k = 0; k < s_.size; ++k) {
      sum += std::fabs(s_.dual[k]);
      largest = larger(largest, std::fabs(s_.diagonal[k]));
    }
    return !(kDoubleEpsilon * sum * largest <= kMaxRoundingFraction * tolerance);
  }

  // From an optimum within the tolerance to one within rounding errors; if that increases the violation, back again.
  void finish(double violation) {
    for (std::int64_t k = 0; k < s_.size; ++k) w_.dual_before[k] = s_.dual[k];
    double work = 0.0;
    for (int round = 0; round < kMaxFinishRounds && work < kMaxWork; ++round) {
      const std::int64_t count = find_free(s_, p_.max_free, free_.free);
      if (count > p_.max_free) break;
      if (count) solve_free(s_, rows_, free_, count, work);
      double scale = 0.0;
      for (std::int64_t k = 0; k < s_.size; ++k) scale = larger(scale, std::fabs(p_.linear[k] - s_.gradient[k]));
      const Outcome out = run(kFinishTolerance * (1.0 + scale), kPairStepsPerRound);
      if (out.reason != StopReason::paused) break;
    }
    if (run(0.0, 0).violation > violation) {
      for (std::int64_t k = 0; k < s_.size; ++k) s_.dual[k] = w_.dual_before[k];
    }
  }

  const SmallProblem& p_;
  const SmallWorkspace& w_;
  const FreeWorkspace free_;
  DualState& s_;
  SmallRows rows_;
  const FusedArrays<double> fused_;
  PassResult pass_;
  SelectionMemory memory_;
  std::int64_t steps_ = 0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
