// Sequential minimal optimisation: the loop of Bottou & Lin's Algorithm 1.3 on the signed dual.
//
// It runs until it is optimal, needs a row that is not at hand, or has used up its steps or its time, and can be
// entered again with the arrays as it left them. Whoever calls it fetches rows, shrinks, reports progress and listens
// for Ctrl-C in between; nothing here knows Python.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "loops.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kRounding = 1e-14;  // relative to a bound

template <class Value>
inline void subtract_pair(double* gradient, const Value* row_up, const Value* row_down, double step,
                          std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k)
    gradient[k] -= step * (static_cast<double>(row_up[k]) - static_cast<double>(row_down[k]));
}

template <class Value> inline void add_row(double* target, const Value* row, double factor, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) target[k] += factor * static_cast<double>(row[k]);
}

template <class Value> inline void stamp(RowStore<Value>& rows, std::int64_t position) {
  rows.last_use[rows.slot[position]] = ++rows.clock;
  ++rows.requests;
}

// What a variable contributes to bounded_part: its value if it rests on a bound, else nothing.
inline double resting(const DualState& s, std::int64_t k, double value) {
  return value == s.lower[k] || value == s.upper[k] ? value : 0.0;
}

// A variable that reaches or leaves a non-zero bound changes bounded_part everywhere: its whole row is needed.
inline bool crosses_bound(const DualState& s, std::int64_t k, double value) {
  return k >= 0 && s.bounded_part && resting(s, k, value) != resting(s, k, s.dual[k]);
}

template <class Value>
inline void keep_bounded_part(const DualState& s, std::int64_t k, const Value* row, double value) {
  if (crosses_bound(s, k, value)) add_row(s.bounded_part, row, resting(s, k, value) - resting(s, k, s.dual[k]), s.size);
}

// A value that rounding alone keeps off a bound is on it. Else a variable that ought to rest would count as free, and a
// single one of those pins the offset to one end of its interval. Near a bound of 0 every digit counts.
inline double snapped(const DualState& s, std::int64_t k, double value) {
  const double lower = s.lower[k], upper = s.upper[k];
  if (upper - value <= kRounding * std::fabs(upper) && upper < kInfinity) return upper;
  if (value - lower <= kRounding * std::fabs(lower) && lower > -kInfinity) return lower;
  return value;
}

// Move `up` by +t and `down` by −t (either may be −1: a step of one variable). False: the loop must return.
template <class Value>
inline bool pair_step(DualState& s, RowStore<Value>& rows, std::int64_t up, std::int64_t down, Outcome& out) {
  const auto need = [&out](std::int64_t row, std::int64_t length) {
    out.reason = Reason::needs_row;
    out.row = row;
    out.length = length;
    return false;
  };
  const Value* row_up = up >= 0 ? find(rows, up, s.active) : nullptr;
  const Value* row_down = down >= 0 ? find(rows, down, s.active) : nullptr;
  if (up >= 0 && !row_up) return need(up, s.active);
  if (down >= 0 && !row_down) return need(down, s.active);

  const double slope = (up >= 0 ? s.gradient[up] : 0.0) - (down >= 0 ? s.gradient[down] : 0.0);
  const double bend = up < 0 ? s.diagonal[down] : down < 0 ? s.diagonal[up] : curvature(s, up, down, row_up);
  const double limit_up = up >= 0 ? room_up(s, up) : kInfinity;
  const double limit_down = down >= 0 ? room_down(s, down) : kInfinity;
  const double t = smaller(bend > 0.0 ? slope / bend : kInfinity, smaller(limit_up, limit_down));
  if (std::isinf(t)) {
    out.reason = Reason::unbounded;
    return false;
  }

  // A variable that hits its bound is set exactly to it (1.7.4.1).
  const double new_up = up < 0 ? 0.0 : t >= limit_up ? s.upper[up] : snapped(s, up, s.dual[up] + t);
  const double new_down = down < 0 ? 0.0 : t >= limit_down ? s.lower[down] : snapped(s, down, s.dual[down] - t);
  if ((up < 0 || new_up == s.dual[up]) && (down < 0 || new_down == s.dual[down])) {
    out.reason = Reason::precision;
    return false;
  }
  if (crosses_bound(s, up, new_up) && !find(rows, up, s.size)) return need(up, s.size);
  if (crosses_bound(s, down, new_down) && !find(rows, down, s.size)) return need(down, s.size);
  keep_bounded_part(s, up, row_up, new_up);
  keep_bounded_part(s, down, row_down, new_down);

  if (up >= 0 && down >= 0)
    subtract_pair(s.gradient, row_up, row_down, t, s.active);
  else if (up >= 0)
    add_row(s.gradient, row_up, -t, s.active);
  else
    add_row(s.gradient, row_down, t, s.active);
  if (up >= 0) {
    s.gradient[up] -= s.ridge[up] * t;
    s.dual[up] = new_up;
    stamp(rows, up);
  }
  if (down >= 0) {
    s.gradient[down] += s.ridge[down] * t;
    s.dual[down] = new_down;
    stamp(rows, down);
  }
  out.gain += t * (slope - 0.5 * t * bend);
  ++out.steps;
  return true;
}

template <class Value>
inline Outcome run_pairwise(DualState& s, RowStore<Value>& rows, SelectionMemory& memory, double tolerance,
                            std::int64_t max_steps, double max_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  Outcome out;
  Choice choice;
  choice.up = memory.pending_up;
  choice.down = memory.pending_down;
  choice.violation = memory.pending_violation;
  memory.pending_up = memory.pending_down = -1;
  for (;;) {
    if (choice.up < 0 && choice.down < 0) choice = select(s, rows, memory);
    out.violation = choice.violation;
    if (std::isnan(choice.violation)) {
      out.reason = Reason::precision;
      return out;
    }
    if (!(choice.violation > tolerance)) {
      out.reason = Reason::optimal;
      return out;
    }
    if (out.steps >= max_steps) return out;
    if (choice.missing >= 0) {
      out.reason = Reason::needs_row;
      out.row = choice.missing;
      out.length = s.active;
      return out;
    }
    if (choice.up < 0 && choice.down < 0) {
      out.reason = Reason::precision;
      return out;
    }  // nobody gains anything
    if (!pair_step(s, rows, choice.up, choice.down, out)) {
      if (out.reason == Reason::needs_row) {
        memory.pending_up = choice.up;
        memory.pending_down = choice.down;
      }
      return out;
    }
    memory.previous_up = choice.up;
    memory.previous_down = choice.down;
    choice = Choice{};
    if (out.steps % 16 == 0 && std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return out;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
