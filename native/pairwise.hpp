// Sequential minimal optimisation: the loop of Bottou & Lin's Algorithm 1.3 on the signed dual.
//
// It runs until it is optimal, needs a row that is not at hand, or has used up its steps or its time, and
// can be entered again with the arrays as it left them. Whoever calls it fetches rows, shrinks, reports
// progress and listens for Ctrl-C in between; nothing here knows Python.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "dual_state.hpp"
#include "working_set.hpp"

namespace maxmargin {

enum class Reason : int { optimal = 0, needs_row = 1, paused = 2, unbounded = 3, precision = 4 };

struct Outcome {
  Reason reason = Reason::paused;
  std::int64_t steps = 0;
  std::int64_t row = -1;       // with needs_row: the position and how many leading values it wants
  std::int64_t length = 0;
  double violation = 0.0;
  double gain = 0.0;           // by how much the dual rose
};

MAXMARGIN_CLONES inline void subtract_rows(double* gradient, const double* row_up, const double* row_down,
                                           double step, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) gradient[k] -= step * (row_up[k] - row_down[k]);
}

MAXMARGIN_CLONES inline void add_row(double* target, const double* row, double factor, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) target[k] += factor * row[k];
}

class PairwiseLoop {
 public:
  PairwiseLoop(DualState& state, RowStore& rows, Selector& selector) : s_(state), rows_(rows), selector_(selector) {}

  Outcome run(double tolerance, std::int64_t max_steps, double max_seconds) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    Outcome out;
    for (;;) {
      Choice& choice = selector_.pending;
      if (choice.up < 0 && choice.down < 0) choice = selector_.select(s_, rows_);
      out.violation = choice.violation;
      if (std::isnan(choice.violation)) return end(out, Reason::precision);
      if (!(choice.violation > tolerance)) return end(out, Reason::optimal);
      if (out.steps >= max_steps) return end(out, Reason::paused);
      if (choice.missing >= 0) { need(out, choice.missing, s_.active); choice = Choice{}; return out; }
      if (!step(choice.up, choice.down, out)) return out;
      choice = Choice{};
      if (out.steps % 16 == 0 && std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return out;
    }
  }

 private:
  Outcome& end(Outcome& out, Reason reason) {
    selector_.pending = Choice{};
    out.reason = reason;
    return out;
  }

  static Outcome& need(Outcome& out, std::int64_t row, std::int64_t length) {
    out.reason = Reason::needs_row;
    out.row = row;
    out.length = length;
    return out;
  }

  // Move `up` by +t and `down` by −t (either may be −1: a step of one variable). False: the loop must return.
  bool step(std::int64_t up, std::int64_t down, Outcome& out) {
    const double* row_up = nullptr;
    const double* row_down = nullptr;
    if (up >= 0 && !(row_up = rows_.find(up, s_.active))) return need(out, up, s_.active), false;
    if (down >= 0 && !(row_down = rows_.find(down, s_.active))) return need(out, down, s_.active), false;

    const double slope = (up >= 0 ? s_.gradient[up] : 0.0) - (down >= 0 ? s_.gradient[down] : 0.0);
    const double bend = up < 0     ? s_.diagonal[down]
                        : down < 0 ? s_.diagonal[up]
                                   : curvature(s_, up, down, row_up);
    const double room_up = up >= 0 ? s_.room_up(up) : kInfinity;
    const double room_down = down >= 0 ? s_.room_down(down) : kInfinity;
    double t = bend > 0.0 ? slope / bend : kInfinity;
    t = std::fmin(t, std::fmin(room_up, room_down));
    if (std::isinf(t)) { out.reason = Reason::unbounded; return false; }

    // A variable that hits its bound is set exactly to it (1.7.4.1).
    const double new_up = up < 0 ? 0.0 : t >= room_up ? s_.upper[up] : std::fmin(s_.dual[up] + t, s_.upper[up]);
    const double new_down = down < 0 ? 0.0 : t >= room_down ? s_.lower[down] : std::fmax(s_.dual[down] - t, s_.lower[down]);
    if ((up < 0 || new_up == s_.dual[up]) && (down < 0 || new_down == s_.dual[down])) {
      out.reason = Reason::precision;
      return false;
    }
    if (!keep_bounded_part(up, row_up, new_up, out) || !keep_bounded_part(down, row_down, new_down, out)) return false;
    if (up >= 0) commit_bounded_part(up, row_up, new_up);
    if (down >= 0) commit_bounded_part(down, row_down, new_down);

    if (up >= 0 && down >= 0) subtract_rows(s_.gradient, row_up, row_down, t, s_.active);
    else if (up >= 0) add_row(s_.gradient, row_up, -t, s_.active);
    else add_row(s_.gradient, row_down, t, s_.active);
    if (up >= 0) { s_.gradient[up] -= s_.ridge[up] * t; s_.dual[up] = new_up; rows_.stamp(up); }
    if (down >= 0) { s_.gradient[down] += s_.ridge[down] * t; s_.dual[down] = new_down; rows_.stamp(down); }
    selector_.previous_up = up;
    selector_.previous_down = down;
    out.gain += t * (slope - 0.5 * t * bend);
    ++out.steps;
    return true;
  }

  bool crosses_bound(std::int64_t k, double value) const { return s_.resting(k, value) != s_.resting(k, s_.dual[k]); }

  // A variable that reaches or leaves a non-zero bound changes bounded_part everywhere: its whole row is needed.
  bool keep_bounded_part(std::int64_t k, const double* row, double value, Outcome& out) const {
    if (k < 0 || !s_.bounded_part || !row || !crosses_bound(k, value)) return true;
    if (rows_.find(k, s_.size)) return true;
    need(out, k, s_.size);
    return false;
  }

  void commit_bounded_part(std::int64_t k, const double* row, double value) const {
    if (!s_.bounded_part || !crosses_bound(k, value)) return;
    add_row(s_.bounded_part, row, s_.resting(k, value) - s_.resting(k, s_.dual[k]), s_.size);
  }

  DualState& s_;
  RowStore& rows_;
  Selector& selector_;
};

}  // namespace maxmargin
