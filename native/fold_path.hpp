// The solver of the problems of one fold along a path of parameters, such as C in ascending order, on a matrix in
// memory, from start to end in one call.
//
// Each problem starts from the solution of the one before. All bounds are multiplied by a factor from one to the next;
// so is the start, whose gradient then needs no row of the matrix, and bounded variables remain at their bounds. Then,
// in turn,
//
//   pair steps on all variables, until most cannot be selected any more
//   pair steps on the part that can, on copies of its rows in single precision, with the equations of the free
//   variables whenever the steps have taken as many operations as these; then the gradient of all variables is updated
//   in double precision, and the optimality of all is tested.
//
// A problem that makes no progress is returned unfinished.
#pragma once

#include <cstdint>

#include "active_set_finish.hpp"
#include "fold_rows.hpp"
#include "free_equations.hpp"
#include "fused_pairwise.hpp"
#include "gradient_extremes.hpp"
#include "pairwise.hpp"
#include "single_pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// Pair steps on all variables between two tests whether most can be left out, and the fraction that may remain.
constexpr std::int64_t kStepsOnAll = 256;
constexpr double kMaxFirstPart = 0.6, kMaxNextPart = 0.75;
// Pair steps on a part between two tests whether to leave out more or to solve the free equations: this many, and as
// many per variable.
constexpr std::int64_t kStepsOnPart = 256;
// The tolerance of a part relative to that of all: rounding errors of its rows come in between.
constexpr double kPartTolerance = 0.8;
constexpr int kMaxFoldRounds = 60, kMaxRoundsToHalve = 8;
// Problems of at most this size and so many free variables are solved to rounding errors, as independent fits of them
// are; in so many turns of solving the free equations and pair steps.
constexpr std::int64_t kMaxFinishedSize = 2048, kMaxFinishedFree = 256, kFinishSteps = 16;
constexpr int kMaxFinishes = 20;
constexpr double kFinishedViolation = 1e-13;
constexpr double kSingleAccuracy = 1e-7;  // of the free equations, relative
// The cost of the free equations of m variables is taken as this times m³ operations of pair steps; where a
// factorisation serves them, this times m².
constexpr double kFreeCost = 0.04, kNextFreeCost = 1.5;
// The violation at which steps on a part end, relative to that of all before.
constexpr double kPartReduction = 0.1;
// The least tolerance, relative to the largest gradient, of steps with a gradient in single precision. The gradient
// must be in a range where its square has no overflow or underflow there.
constexpr double kSingleTolerance = 1e-4, kMaxSingleGradient = 1e6, kMinSingleGradient = 1e-6;

class FoldPathSolver {
 public:
  FoldPathSolver(const FoldPath& path, const FoldWorkspace& workspace, DualState& state)
      : path_(path),
        w_(workspace),
        s_(state),
        rows_(path, state),
        equations_(path, state, workspace),
        free_(workspace.free_doubles, workspace.free_indices, workspace.free_groups, workspace.max_free),
        fused_{workspace.shifts, workspace.shifts + state.size, workspace.diagonal} {}

  // Solve the problem of the state's bounds from its dual and gradient.
  FoldOutcome solve(double tolerance, std::int64_t max_steps) {
    out_ = FoldOutcome{};
    max_steps_ = max_steps;
    credit_ = 0.0;
    for (; out_.rounds < kMaxFoldRounds; ++out_.rounds) {
      StopReason reason = on_all(tolerance);
      if (reason == StopReason::optimal) finish();
      if (reason == StopReason::optimal || ended(reason)) return finished(reason);
      if (stalls()) break;
      reason = on_part(tolerance);
      if (ended(reason)) return finished(reason);
    }
    return finished(StopReason::precision);
  }

 private:
  bool ended(StopReason reason) const {
    return cancelled() || out_.steps >= max_steps_ || reason == StopReason::unbounded;
  }
  // Whether the violation of all variables has not halved for some rounds: single precision sees noise only.
  bool stalls() {
    if (out_.rounds == 0 || violation_ < 0.5 * best_violation_) {
      best_violation_ = violation_;
      best_round_ = out_.rounds;
    }
    return out_.rounds - best_round_ >= kMaxRoundsToHalve;
  }
  bool cancelled() const { return *static_cast<const volatile std::int32_t*>(w_.cancelled) != 0; }

  FoldOutcome finished(StopReason reason) {
    if (cancelled() || (reason != StopReason::optimal && out_.steps >= max_steps_)) reason = StopReason::paused;
    out_.reason = reason;
    find_extremes(s_, w_.extremes);
    return out_;
  }

  // From an optimum within the tolerance of a small problem to one within rounding errors, as in small_problem.hpp. If
  // that increases the violation, back again.
  void finish() {
    if (s_.size > kMaxFinishedSize) return;
    is_optimal(0.0);
    const double before = violation_;
    double *dual = w_.before, *gradient = w_.part_doubles, scale = 0.0;
    for (std::int64_t k = 0; k < s_.size; ++k) {
      dual[k] = s_.dual[k];
      gradient[k] = s_.gradient[k];
      scale = larger(scale, std::fabs(s_.gradient[k]));
    }
    for (int round = 0; round < kMaxFinishes; ++round) {
      const std::int64_t limit = w_.max_free < kMaxFinishedFree ? w_.max_free : kMaxFinishedFree;
      const std::int64_t count = find_free(s_, limit, free_.free);
      if (count > limit) break;
      double work = 0.0;
      if (count) solve_free(s_, rows_, free_, count, work);
      if (is_optimal(kFinishedViolation * (1.0 + scale)) || !rows_.in_runs || s_.singles) break;
      const Outcome out = run_fused_pairwise(s_, rows_, rows_.runs, fused_, {1, 0, &pass_, nullptr},
                                             kFinishedViolation * (1.0 + scale), kFinishSteps, kInfinity);
      out_.steps += out.steps;
      if (out.reason != StopReason::paused) break;
    }
    is_optimal(0.0);
    if (!(violation_ > before)) return;
    for (std::int64_t k = 0; k < s_.size; ++k) {
      s_.dual[k] = dual[k];
      s_.gradient[k] = gradient[k];
    }
  }

  // Pair steps on all variables until the point is optimal or most variables can be left out.
  StopReason on_all(double tolerance) {
    if (!rows_.in_runs || s_.singles) return is_optimal(tolerance) ? StopReason::optimal : StopReason::paused;
    for (;;) {
      if (mark_selectable() <= kMaxFirstPart * static_cast<double>(s_.size)) {
        return is_optimal(tolerance) ? StopReason::optimal : StopReason::paused;
      }
      const Outcome out =
          run_fused_pairwise(s_, rows_, rows_.runs, fused_, {1, 0, &pass_, nullptr}, tolerance, kStepsOnAll, kInfinity);
      out_.steps += out.steps;
      if (out.reason != StopReason::paused || ended(out.reason)) return out.reason;
    }
  }

  bool is_optimal(double tolerance) {
    find_extremes(s_, w_.extremes);
    double violation = -kInfinity;
    for (std::int32_t g = 0; g < s_.groups; ++g)
      violation = larger(violation, w_.extremes[g].highest - w_.extremes[g].lowest);
    if (s_.singles)
      violation = larger(violation, larger(w_.extremes[s_.groups].highest, -w_.extremes[s_.groups].lowest));
    violation_ = violation;
    return !(violation > tolerance);
  }

  std::int64_t mark_selectable() {
    find_selectable(s_, w_.extremes, w_.keep);
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < s_.size; ++k) count += w_.keep[k];
    return count;
  }

  // Steps on the variables that can be selected; then the gradient of all is updated.
  StopReason on_part(double tolerance) {
    mark_selectable();
    for (std::int64_t k = 0; k < s_.size; ++k) w_.before[k] = s_.dual[k];
    open_part(nullptr);
    const StopReason reason = steps_on_part(larger(kPartTolerance * tolerance, kPartReduction * violation_));
    write_back();
    for (std::int64_t k = 0; k < s_.size; ++k) {
      const double change = s_.dual[k] - w_.before[k];
      if (change == 0.0) continue;
      rows_.add(s_.gradient, k, -change);
      s_.gradient[k] -= s_.ridge[k] * change;
    }
    return reason;
  }

  StopReason steps_on_part(double tolerance) {
    for (;;) {
      const Outcome out = run_part(tolerance, kStepsOnPart + part_.size);
      out_.steps += out.steps;
      credit_ += static_cast<double>(out.steps) * static_cast<double>(part_.size);
      if (out.reason != StopReason::paused || ended(out.reason)) return out.reason;
      shrink_part();
      const std::int64_t count = find_free(part_, w_.max_free, free_.free);
      const double m = static_cast<double>(count);
      if (count == 0 || count > w_.max_free) continue;
      const bool factored = equations_.has_factor_of(free_.free, w_.members, count);
      if (credit_ < (factored ? kNextFreeCost * m * m : kFreeCost * m * m * m)) continue;
      if (!factored) equations_.forget();
      solve_free_part(count);
      credit_ = 0.0;
      ++out_.free_solutions;
    }
  }

  // By the equations of all free variables; where they have no solution, or it is no ascent, by the active-set method.
  void solve_free_part(std::int64_t count) {
    copy_free_values(part_, free_, count);
    const FreeValues values{count, free_.free, w_.members, free_.lower, free_.upper, free_.dual, free_.gradient};
    if (equations_.solve(values, part_rows_) && move_free(part_, part_rows_, free_, count)) return;
    equations_.forget();  // the active-set method takes its memory
    double work = 0.0;
    const double m = static_cast<double>(count);
    solve_free(part_, part_rows_, free_, count, work, kSingleAccuracy, 2.0 * m * m * m);
  }

  bool single_precision_suffices(double tolerance) const {
    if (!has_one_group(part_) || !part_in_runs_) return false;
    double largest = 0.0;
    for (std::int64_t k = 0; k < part_.size; ++k) largest = larger(largest, std::fabs(part_.gradient[k]));
    return tolerance >= kSingleTolerance * largest && largest <= kMaxSingleGradient && largest >= kMinSingleGradient;
  }

  Outcome run_part(double tolerance, std::int64_t max_steps) {
    if (single_precision_suffices(tolerance))
      return run_single_pairwise(part_, part_rows_, part_single_, tolerance, max_steps);
    if (part_in_runs_)
      return run_fused_pairwise(part_, part_rows_, part_runs_, part_fused_, {1, 0, &pass_, nullptr}, tolerance,
                                max_steps, kInfinity);
    SelectionMemory memory{Rule::second_order, -1, -1, -1, -1, 0.0, w_.extremes};
    return run_pairwise(part_, part_rows_, memory, tolerance, max_steps, kInfinity);
  }

  // Leave out more variables if few remain.
  void shrink_part() {
    find_selectable(part_, w_.extremes, w_.keep);
    std::int64_t left = 0;
    for (std::int64_t k = 0; k < part_.size; ++k) left += w_.keep[k];
    if (left == 0 || static_cast<double>(left) > kMaxNextPart * static_cast<double>(part_.size)) return;
    write_back();
    open_part(&part_);
  }

  void write_back() {
    for (std::int64_t k = 0; k < part_.size; ++k) s_.dual[w_.members[k]] = part_.dual[k];
  }

  // Copy the arrays of the variables to keep, of all or of those of a part, then in place.
  void open_part(const DualState* of) {
    const DualState from = of ? *of : s_;
    const std::int64_t n = s_.size;
    double* d = w_.part_doubles;
    std::int64_t to = 0;
    for (std::int64_t k = 0; k < from.size; ++k) {
      if (!w_.keep[k]) continue;
      w_.members[to] = of ? w_.members[k] : k;
      w_.part_columns[to] = path_.columns[w_.members[to]];
      d[to] = from.dual[k];
      d[n + to] = from.gradient[k];
      d[2 * n + to] = from.lower[k];
      d[3 * n + to] = from.upper[k];
      d[4 * n + to] = from.diagonal[k];
      d[5 * n + to] = from.ridge[k];
      if (from.kink) d[6 * n + to] = from.kink[k];
      w_.part_group[to++] = from.group[k];
    }
    part_ = {d,
             d + n,
             d + 2 * n,
             d + 3 * n,
             d + 4 * n,
             d + 5 * n,
             w_.part_group,
             nullptr,
             to,
             to,
             s_.groups,
             s_.singles,
             s_.kink ? d + 6 * n : nullptr};
    float* const floats = aligned(w_.part_floats);
    const std::int64_t m = padded(n);
    part_single_ = {floats, floats + m, floats + 2 * m, floats + 3 * m};
    part_fused_ = {d + 7 * n, d + 8 * n, part_single_.diagonal};
    part_in_runs_ = part_runs_.find(part_);
    part_rows_.begin(path_, w_.part_columns, to, w_);
  }

  const FoldPath& path_;
  const FoldWorkspace& w_;
  DualState& s_;
  const MatrixRows rows_;
  FreeEquations equations_;
  const FreeWorkspace free_;
  const FusedArrays<double> fused_;
  PassResult pass_;
  DualState part_{};
  PartRows part_rows_;
  GroupRuns part_runs_;
  FusedArrays<float> part_fused_{};
  SingleArrays part_single_{};
  bool part_in_runs_ = false;
  std::int64_t max_steps_ = 0;
  double best_violation_ = 0.0;
  std::int64_t best_round_ = 0;
  double violation_ = 0.0;  // of all variables, when it was last computed
  double credit_ = 0.0;     // operations of pair steps since the last solution of the free equations
  FoldOutcome out_;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
