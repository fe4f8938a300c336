// Sequential minimal optimisation: Algorithm 1.3 of Bottou & Lin on the signed dual.
//
// The loop runs until the violation is within the tolerance, a matrix row is not cached, or a limit of steps or time is
// reached, and can be called again with the arrays as it left them. The caller computes rows, shrinks, reports progress
// and handles interrupts in between.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "solver_loops.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kBoundTolerance = 1e-14;  // relative distance from a bound that is due to rounding
constexpr int kStepsPerClock = 16;         // steps between two readings of the clock

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Value>
inline void subtract_pair(double* gradient, const Value* row_up, const Value* row_down, double step,
                          std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k)
    gradient[k] -= step * (static_cast<double>(row_up[k]) - static_cast<double>(row_down[k]));
}

template <class Value> inline void add_row(double* target, const Value* row, double factor, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) target[k] += factor * static_cast<double>(row[k]);
}

template <class Value> inline void mark_used(RowCache<Value>& rows, std::int64_t position) {
  rows.last_use[rows.slot[position]] = ++rows.clock;
  ++rows.requests;
}

// The coefficient of a variable in bounded_product: its value if that is a bound, else 0.
inline double bounded_value(const DualState& s, std::int64_t k, double value) {
  return value == s.lower[k] || value == s.upper[k] ? value : 0.0;
}

// Whether a variable reaches or leaves a bound other than 0. It then changes bounded_product everywhere, for which its
// whole row is needed.
inline bool changes_bounded_product(const DualState& s, std::int64_t k, double value) {
  return k >= 0 && s.bounded_product && bounded_value(s, k, value) != bounded_value(s, k, s.dual[k]);
}

template <class Value>
inline void update_bounded_product(const DualState& s, std::int64_t k, const Value* row, double value) {
  if (changes_bounded_product(s, k, value))
    add_row(s.bounded_product, row, bounded_value(s, k, value) - bounded_value(s, k, s.dual[k]), s.size);
}

// The bound, if a value differs from it by rounding alone; else the value. Otherwise a bounded variable would count as
// free, and a single one determines the offset. A bound of 0 has no rounding.
inline double snapped_to_bound(const DualState& s, std::int64_t k, double value) {
  const double lower = s.lower[k], upper = s.upper[k];
  if (upper - value <= kBoundTolerance * std::fabs(upper) && upper < kInfinity) return upper;
  if (value - lower <= kBoundTolerance * std::fabs(lower) && lower > -kInfinity) return lower;
  return value;
}

// The value of a variable after a step. One that reaches its bound, or 0 at a kink, is set exactly to it (1.7.4.1).
inline double increased(const DualState& s, std::int64_t k, double step, double slack) {
  return step >= slack ? nearest_upper(s, k) : snapped_to_bound(s, k, s.dual[k] + step);
}
inline double decreased(const DualState& s, std::int64_t k, double step, double slack) {
  return step >= slack ? nearest_lower(s, k) : snapped_to_bound(s, k, s.dual[k] - step);
}

// Increase `up` and decrease `down` by the optimal step within the box; either may be −1 for a step of one variable.
// False if the loop must return.
template <class Rows>
inline bool pair_step(DualState& s, Rows& rows, std::int64_t up, std::int64_t down, Outcome& out) {
  using Value = typename Rows::Value;
  const auto need = [&out](std::int64_t row, std::int64_t length) {
    out.reason = StopReason::needs_row;
    out.row = row;
    out.row_length = length;
    return false;
  };
  const Value* row_up = up >= 0 ? find(rows, up, s.active) : nullptr;
  const Value* row_down = down >= 0 ? find(rows, down, s.active) : nullptr;
  if (up >= 0 && !row_up) return need(up, s.active);
  if (down >= 0 && !row_down) return need(down, s.active);

  const double slope = (up >= 0 ? gradient_up(s, up) : 0.0) - (down >= 0 ? gradient_down(s, down) : 0.0);
  const double curved = up < 0 ? s.diagonal[down] : down < 0 ? s.diagonal[up] : curvature(s, up, down, row_up);
  const double slack_up = up >= 0 ? slack_to_upper(s, up) : kInfinity;
  const double slack_down = down >= 0 ? slack_to_lower(s, down) : kInfinity;
  const double step = smaller(curved > 0.0 ? slope / curved : kInfinity, smaller(slack_up, slack_down));
  if (std::isinf(step)) {
    out.reason = StopReason::unbounded;
    return false;
  }

  const double new_up = up < 0 ? 0.0 : increased(s, up, step, slack_up);
  const double new_down = down < 0 ? 0.0 : decreased(s, down, step, slack_down);
  if ((up < 0 || new_up == s.dual[up]) && (down < 0 || new_down == s.dual[down])) {
    out.reason = StopReason::precision;
    return false;
  }
  if (changes_bounded_product(s, up, new_up) && !find(rows, up, s.size)) return need(up, s.size);
  if (changes_bounded_product(s, down, new_down) && !find(rows, down, s.size)) return need(down, s.size);
  update_bounded_product(s, up, row_up, new_up);
  update_bounded_product(s, down, row_down, new_down);

  if (up >= 0 && down >= 0)
    subtract_pair(s.gradient, row_up, row_down, step, s.active);
  else if (up >= 0)
    add_row(s.gradient, row_up, -step, s.active);
  else
    add_row(s.gradient, row_down, step, s.active);
  if (up >= 0) {
    s.gradient[up] -= s.ridge[up] * step;
    s.dual[up] = new_up;
    mark_used(rows, up);
  }
  if (down >= 0) {
    s.gradient[down] += s.ridge[down] * step;
    s.dual[down] = new_down;
    mark_used(rows, down);
  }
  out.gain += step * (slope - 0.5 * step * curved);
  ++out.steps;
  return true;
}

template <class Rows>
inline Outcome run_pairwise(DualState& s, Rows& rows, SelectionMemory& memory, double tolerance, std::int64_t max_steps,
                            double max_seconds) {
  const auto start = std::chrono::steady_clock::now();
  Outcome out;
  const auto stop = [&out](StopReason reason) {
    out.reason = reason;
    return out;
  };
  SelectedPair pair;
  pair.up = memory.pending_up;
  pair.down = memory.pending_down;
  pair.violation = memory.pending_violation;
  memory.pending_up = memory.pending_down = -1;
  for (;;) {
    if (pair.up < 0 && pair.down < 0) pair = select(s, rows, memory);
    out.violation = pair.violation;
    if (std::isnan(pair.violation)) return stop(StopReason::precision);
    if (!(pair.violation > tolerance)) return stop(StopReason::optimal);
    if (out.steps >= max_steps) return out;
    if (pair.missing >= 0) {
      out.row = pair.missing;
      out.row_length = s.active;
      return stop(StopReason::needs_row);
    }
    if (pair.up < 0 && pair.down < 0) return stop(StopReason::precision);  // no pair has a gain
    if (!pair_step(s, rows, pair.up, pair.down, out)) {
      if (out.reason == StopReason::needs_row) {
        memory.pending_up = pair.up;
        memory.pending_down = pair.down;
      }
      return out;
    }
    memory.previous_up = pair.up;
    memory.previous_down = pair.down;
    pair = SelectedPair{};
    if (out.steps % kStepsPerClock == 0 && seconds_since(start) > max_seconds) return out;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
