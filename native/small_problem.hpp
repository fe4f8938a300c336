// The solver of a small problem whose whole matrix is in memory, from start to end in one call:
//
//   pair steps to the tolerance, the active-set finish (active_set_finish.hpp), and a recomputed gradient; the same
//   again if that gradient does not confirm the tolerance.
//
// The matrix may be larger than the problem, whose variables are some of its rows, as for two classes of several, or
// smaller, as for two variables per sample. Unless these rows are a few runs, they are copied when they are first
// needed. Or rows are computed when they are first needed (RowSource), and kept. A problem that reaches the limit of
// steps or of memory for rows, or whose tolerance is close to rounding, is returned unfinished.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "active_set_finish.hpp"
#include "fused_pairwise.hpp"
#include "pairwise.hpp"
#include "shrunk_problem.hpp"
#include "small_rows.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxRestarts = 3;             // after a recomputed gradient that exceeds the tolerance
constexpr int kMaxFinishRounds = 20;        // of the active-set finish
constexpr int kPairStepsPerRound = 16;      // between two solutions of the KKT system
constexpr double kFinishTolerance = 1e-13;  // of the active-set finish, relative to the largest product M b
constexpr double kDoubleEpsilon = std::numeric_limits<double>::epsilon();
// Variables are left out every so many steps, of problems of at least this size on computed rows, if at most this part
// of them remains: what that saves must exceed the copies.
constexpr std::int64_t kStepsPerShrink = 64, kMinSizeToShrink = 256;
constexpr double kMaxShrunkPart = 0.5;
constexpr double kMaxRoundingFraction = 0.01;  // of the tolerance, above which the violation must be verified

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
    const bool begins = !rows_.exhausted;  // else there is no memory for the rows of the start
    if (!begins) out.reason = StopReason::needs_row;
    for (int restart = 0; begins && restart <= kMaxRestarts; ++restart) {
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
    out.row_length = rows_.copied;
    return out;
  }

 private:
  Outcome run(double tolerance, std::int64_t max_steps) {
    if (rows_.in_runs) return run_on(s_, rows_, rows_.runs, fused_, tolerance, max_steps);
    const Outcome out = run_pairwise(s_, rows_, memory_, tolerance, max_steps, kInfinity);
    steps_ += out.steps;
    return out;
  }

  template <class Rows>
  Outcome run_on(DualState& s, Rows& rows, const GroupRuns& runs, const FusedArrays<double>& fused, double tolerance,
                 std::int64_t max_steps) {
    const Outcome out =
        run_fused_pairwise(s, rows, runs, fused, {1, 0, &pass_, nullptr}, tolerance, max_steps, kInfinity);
    steps_ += out.steps;
    return out;
  }

  // Pair steps to the tolerance; if they converge slowly, with solutions of the KKT system in between.
  Outcome ascend(double tolerance, std::int64_t max_steps) {
    const std::int64_t first = steps_;
    const bool shrinks = p_.source && s_.size >= kMinSizeToShrink;
    free_work_ = 0.0;
    next_free_ = steps_ + steps_per_free();
    for (;;) {
      Outcome out = run(tolerance, next_stretch(shrinks, max_steps));
      if (out.reason == StopReason::paused && steps_ < max_steps && shrinks) out = ascend_shrunk(tolerance, max_steps);
      const bool ended = out.reason != StopReason::paused || steps_ >= max_steps;
      out.steps = steps_ - first;
      if (ended) return out;
      solve_free_if_due(s_, rows_);
    }
  }

  // The same on the variables that can still be selected. Paused if that ends at the tolerance, or if they are many.
  Outcome ascend_shrunk(double tolerance, std::int64_t max_steps) {
    Outcome out;
    ShrunkProblem part(s_, rows_, w_.shrunk, w_.dual_before);
    if (!part.shrink(kMaxShrunkPart)) return out;
    do {
      out = run_on(part.state, part.rows, part.runs, part.fused, tolerance, next_stretch(true, max_steps));
      if (out.reason != StopReason::paused || steps_ >= max_steps) break;
      solve_free_if_due(part.state, part.rows);
      part.shrink(kMaxShrunkPart);
    } while (true);
    part.close();
    if (out.reason == StopReason::optimal) out.reason = StopReason::paused;
    return out;
  }

  std::int64_t steps_per_free() const { return 5 * (s_.size < 100 ? 100 : s_.size > 1000 ? 1000 : s_.size); }

  // The number of steps until variables are left out or the KKT system is solved.
  std::int64_t next_stretch(bool shrinks, std::int64_t max_steps) const {
    const std::int64_t left = max_steps - steps_, until_free = next_free_ - steps_;
    const std::int64_t stretch = shrinks && kStepsPerShrink < until_free ? kStepsPerShrink : until_free;
    return left < stretch ? left : stretch;
  }

  template <class Rows> void solve_free_if_due(DualState& s, Rows& rows) {
    if (steps_ < next_free_) return;
    next_free_ = steps_ + steps_per_free();
    const std::int64_t count = find_free(s, p_.max_free, free_.free);
    if (count && count <= p_.max_free) solve_free(s, rows, free_, count, free_work_);
  }

  // gradient = linear − M b − ridge∘b; false if it is not finite, or a row is missing.
  bool recompute_gradient() {
    for (std::int64_t k = 0; k < s_.size; ++k) s_.gradient[k] = p_.linear[k] - s_.ridge[k] * s_.dual[k];
    for (std::int64_t k = 0; k < s_.size; ++k)
      if (s_.dual[k] != 0.0 && !rows_.add(s_.gradient, k, -s_.dual[k])) return false;
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
  std::int64_t steps_ = 0, next_free_ = 0;
  double free_work_ = 0.0;  // multiplications of the solutions of the KKT system between pair steps
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
