// The solver of a small problem whose whole matrix is in memory, from start to end in one call:
//
//   pair steps to the tolerance, the active-set finish (active_set_finish.hpp), and a recomputed gradient; the same
//   again if that gradient does not confirm the tolerance.
//
// The matrix may be larger than the problem, whose variables are some of its rows, as for two classes of several; those
// rows are copied when they are first needed. A problem that reaches the limit of steps is returned unfinished.
#pragma once

#include <cmath>
#include <cstdint>

#include "active_set_finish.hpp"
#include "pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxRestarts = 3;             // after a recomputed gradient that exceeds the tolerance
constexpr int kMaxFinishRounds = 20;        // of the active-set finish
constexpr int kPairStepsPerRound = 16;      // between two solutions of the KKT system
constexpr double kFinishTolerance = 1e-13;  // of the active-set finish, relative to the largest product M b

class SmallProblemSolver {
 public:
  SmallProblemSolver(const SmallProblem& problem, const SmallWorkspace& workspace, DualState& state)
      : p_(problem),
        w_(workspace),
        free_(workspace.free_doubles, workspace.free_indices, problem.max_free),
        s_(state),
        rows_{w_.copies ? w_.copies : p_.matrix,
              w_.copies ? state.size : p_.stride,
              w_.slot,
              w_.valid,
              w_.last_use,
              0,
              0},
        memory_{Rule::second_order, -1, -1, -1, -1, 0.0, &extremes_[0]} {
    for (std::int64_t k = 0; k < s_.size; ++k) {
      w_.slot[k] = w_.copies ? -1 : k;
      w_.valid[k] = s_.size;
      w_.last_use[k] = 0;
    }
  }

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
    out.steps = steps_;
    out.row = rows_.requests;
    return out;
  }

 private:
  const double* row(std::int64_t k) {
    if (w_.slot[k] < 0) {
      const double* from = p_.matrix + p_.indices[k] * p_.stride;
      double* to = w_.copies + copied_ * s_.size;
      for (std::int64_t c = 0; c < s_.size; ++c) to[c] = from[p_.indices[c]];
      w_.slot[k] = copied_++;
    }
    return find(rows_, k, s_.size);
  }

  Outcome run(double tolerance, std::int64_t max_steps) {
    for (std::int64_t taken = 0;;) {
      Outcome out = run_pairwise(s_, rows_, memory_, tolerance, max_steps - taken, kInfinity);
      taken += out.steps;
      steps_ += out.steps;
      out.steps = taken;
      if (out.reason != StopReason::needs_row) return out;
      row(out.row);
      memory_.pending_violation = out.violation;
    }
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
      memory_.previous_up = memory_.previous_down = -1;
    }
  }

  // gradient = linear − M b − ridge∘b; false if it is not finite.
  bool recompute_gradient() {
    for (std::int64_t k = 0; k < s_.size; ++k) s_.gradient[k] = p_.linear[k] - s_.ridge[k] * s_.dual[k];
    for (std::int64_t k = 0; k < s_.size; ++k)
      if (s_.dual[k] != 0.0) add_row(s_.gradient, row(k), -s_.dual[k], s_.size);
    memory_.previous_up = memory_.previous_down = memory_.pending_up = memory_.pending_down = -1;
    bool finite = true;
    for (std::int64_t k = 0; k < s_.size; ++k) finite &= std::fabs(s_.gradient[k]) < kInfinity;
    return finite;
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
  RowCache<double> rows_;
  GradientExtremes extremes_[2];
  SelectionMemory memory_;
  std::int64_t steps_ = 0, copied_ = 0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
