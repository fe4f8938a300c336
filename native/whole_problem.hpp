// A small problem from start to end in one call: all its matrix values are there, so nothing has to be asked of Python.
//
//   pair steps to the tolerance, the exact end (exact_end.hpp), a gradient computed afresh; if that does not confirm
//   the tolerance, again.
//
// The matrix may be larger than the problem, whose variables are some of its rows (as two classes among several are);
// those rows are copied when they are first needed. What takes too many steps comes back unfinished.
#pragma once

#include <cmath>
#include <cstdint>

#include "exact_end.hpp"
#include "loops.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kReviews = 3;     // how often a fresh gradient sends the point back
constexpr int kRounds = 20;     // of the exact end
constexpr int kPairSteps = 16;  // between two solutions of the equations

class WholeProblem {
 public:
  WholeProblem(const WholeTask& task, DualState& state, const EquationRoom& room)
      : task_(task),
        s_(state),
        room_(room),
        rows_{task.copies ? task.copies : task.values,
              task.copies ? state.size : task.stride,
              task.slot,
              task.length,
              task.last_use,
              0,
              0},
        memory_{Rule::second_order, -1, -1, -1, -1, 0.0, &extremes_[0]} {
    for (std::int64_t k = 0; k < s_.size; ++k) {
      task_.slot[k] = task.copies ? -1 : k;
      task_.length[k] = s_.size;
      task_.last_use[k] = 0;
    }
  }

  Outcome solve(double tolerance, std::int64_t max_steps, std::int64_t most_free) {
    refresh();
    Outcome out;
    for (int review = 0; review <= kReviews; ++review) {
      out = ascend(tolerance, max_steps, most_free);
      if (out.reason != Reason::optimal) break;
      if (out.steps == 0) break;  // confirmed: the gradient is fresh
      if (!review) finish(out.violation, most_free);
      if (!refresh()) {
        out.reason = Reason::precision;
        break;
      }
      if (review == kReviews) {
        out = run(tolerance, 0);
        if (out.reason != Reason::optimal) out.reason = Reason::precision;
      }
    }
    out.steps = steps_;
    out.row = rows_.requests;
    return out;
  }

 private:
  const double* row(std::int64_t k) {
    if (task_.slot[k] < 0) {
      const double* from = task_.values + task_.picks[k] * task_.stride;
      double* to = task_.copies + gathered_ * s_.size;
      for (std::int64_t c = 0; c < s_.size; ++c) to[c] = from[task_.picks[c]];
      task_.slot[k] = gathered_++;
    }
    return find(rows_, k, s_.size);
  }

  Outcome run(double tolerance, std::int64_t max_steps) {
    for (std::int64_t taken = 0;;) {
      Outcome out = run_pairwise(s_, rows_, memory_, tolerance, max_steps - taken, kInfinity);
      taken += out.steps;
      steps_ += out.steps;
      out.steps = taken;
      if (out.reason != Reason::needs_row) return out;
      row(out.row);
      memory_.pending_violation = out.violation;
    }
  }

  // Pair steps to the tolerance; where they creep, the equations of the free variables in between.
  Outcome ascend(double tolerance, std::int64_t max_steps, std::int64_t most_free) {
    const std::int64_t stretch = 5 * (s_.size < 100 ? 100 : s_.size > 1000 ? 1000 : s_.size);
    double work = 0.0;
    for (std::int64_t taken = 0;;) {
      const std::int64_t left = max_steps - steps_;
      Outcome out = run(tolerance, left < stretch ? left : stretch);
      out.steps = taken += out.steps;
      if (out.reason != Reason::paused || steps_ >= max_steps) return out;
      const std::int64_t count = find_free(s_, most_free, room_.free);
      if (count && count <= most_free) solve_free(s_, rows_, room_, count, work);
      memory_.previous_up = memory_.previous_down = -1;
    }
  }

  // gradient = linear − M b − ridge∘b. False: it is not made of numbers.
  bool refresh() {
    for (std::int64_t k = 0; k < s_.size; ++k) s_.gradient[k] = task_.linear[k] - s_.ridge[k] * s_.dual[k];
    for (std::int64_t k = 0; k < s_.size; ++k)
      if (s_.dual[k] != 0.0) add_row(s_.gradient, row(k), -s_.dual[k], s_.size);
    memory_.previous_up = memory_.previous_down = memory_.pending_up = memory_.pending_down = -1;
    bool finite = true;
    for (std::int64_t k = 0; k < s_.size; ++k) finite &= std::fabs(s_.gradient[k]) < kInfinity;
    return finite;
  }

  // From an optimum within the tolerance to the exact one; where rounding makes it worse, everything stays as it was.
  void finish(double violation, std::int64_t most_free) {
    for (std::int64_t k = 0; k < s_.size; ++k) task_.dual_before[k] = s_.dual[k];
    double work = 0.0;
    for (int round = 0; round < kRounds && work < kMostWork; ++round) {
      const std::int64_t count = find_free(s_, most_free, room_.free);
      if (count > most_free) break;
      if (count) solve_free(s_, rows_, room_, count, work);
      double scale = 0.0;
      for (std::int64_t k = 0; k < s_.size; ++k) scale = larger(scale, std::fabs(task_.linear[k] - s_.gradient[k]));
      const Outcome out = run(1e-13 * (1.0 + scale), kPairSteps);
      if (out.reason != Reason::paused) break;
    }
    if (run(0.0, 0).violation > violation) {
      for (std::int64_t k = 0; k < s_.size; ++k) s_.dual[k] = task_.dual_before[k];
    }
  }

  const WholeTask& task_;
  DualState& s_;
  const EquationRoom& room_;
  RowStore<double> rows_;
  GradientExtremes extremes_[2];
  SelectionMemory memory_;
  std::int64_t steps_ = 0, gathered_ = 0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
