// Second-order pair steps when the variables of a group are next to each other: one group, as in every classifier with
// a bias, or the two of the ν-machines.
//
// The algorithm of pairwise.hpp in two passes over memory per step instead of three: one updates the gradient and finds
// its extremes, the other finds the partner. Gains are compared in the precision of the rows.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "pairwise.hpp"
#include "solver_loops.hpp"
#include "vector_argmax.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// What is added to a gradient before it is compared: −∞ (∞) if the variable cannot increase (decrease), else the kink
// of the side to which it moves, 0 for most. And the diagonal in the precision of the rows.
template <class Value> struct FusedArrays {
  double* increase_shift;
  double* decrease_shift;
  Value* diagonal;
};

template <class Value>
MAXMARGIN_INLINE void update_shifts(const DualState& s, const FusedArrays<Value>& f, std::int64_t k) {
  const double b = s.dual[k], kink = s.kink ? s.kink[k] : 0.0;
  f.increase_shift[k] = !can_increase(s, k) ? -kInfinity : b < 0.0 ? kink : -kink;
  f.decrease_shift[k] = !can_decrease(s, k) ? kInfinity : b > 0.0 ? -kink : kink;
}

// gradient −= step · (row_up − row_down) if Update; then the extremes of the gradient of a run, as find_extremes
// computes them, but for the position of the lowest. The two are one loop because memory limits its speed: apart they
// would read the gradient twice. Shifts take the place of the dual variables and their bounds, which would be one more
// array to read.
template <bool Update, class Value>
inline void update_and_find_extremes(const DualState& s, const FusedArrays<Value>& f, Run run, const Value* row_up,
                                     const Value* row_down, double step, GradientExtremes& e) {
  LaneArgmax highest{repeat(-kInfinity), IndexLanes{} - 1};
  Lanes lowest = repeat(kInfinity);
  IndexLanes here = lane_indices() + run.begin;
  std::int64_t k = run.begin;
  for (; k + kLanes <= run.end; k += kLanes, here += kLanes) {
    Lanes g = load(s.gradient + k);
    if constexpr (Update) {
      g -= step * (load(row_up + k) - load(row_down + k));
      store_vector(s.gradient + k, g);
    }
    const Lanes up = g + load(f.increase_shift + k), down = g + load(f.decrease_shift + k);
    highest.update(up, here);
    lowest = down < lowest ? down : lowest;
  }
  highest.reduce(e.highest, e.highest_at);
  for (int l = 0; l < kLanes; ++l) e.lowest = smaller(e.lowest, lowest[l]);
  for (; k < run.end; ++k) {
    if constexpr (Update) s.gradient[k] -= step * (static_cast<double>(row_up[k]) - static_cast<double>(row_down[k]));
    const double up = s.gradient[k] + f.increase_shift[k];
    if (up > e.highest) {
      e.highest = up;
      e.highest_at = k;
    }
    e.lowest = smaller(e.lowest, s.gradient[k] + f.decrease_shift[k]);
  }
}

// The same for all runs; returns the extremes of the group of the largest violation.
template <bool Update, class Value>
inline GradientExtremes update_and_find_worst_group(const DualState& s, const GroupRuns& runs,
                                                    const FusedArrays<Value>& f, const Value* row_up,
                                                    const Value* row_down, double step) {
  GradientExtremes of_group[kMaxRuns];
  for (std::int32_t g = 0; g < s.groups; ++g) of_group[g] = {-kInfinity, kInfinity, -1, -1};
  for (int r = 0; r < runs.count; ++r)
    update_and_find_extremes<Update>(s, f, runs.at(r), row_up, row_down, step, of_group[s.group[runs.start[r]]]);
  GradientExtremes worst = of_group[0];
  for (std::int32_t g = 1; g < s.groups; ++g)
    if (of_group[g].highest - of_group[g].lowest > worst.highest - worst.lowest) worst = of_group[g];
  return worst;
}

// As many values of the precision of the rows as a vector of doubles has, and their positions.
template <class Value> struct GainVector;
template <> struct GainVector<float> {
  typedef float Values __attribute__((vector_size(kLanes * sizeof(float))));
  typedef std::int32_t Positions __attribute__((vector_size(kLanes * sizeof(float))));
};
template <> struct GainVector<double> {
  typedef Lanes Values;
  typedef IndexLanes Positions;
};

template <class Value> MAXMARGIN_INLINE typename GainVector<Value>::Values load_gains(const Value* p) {
  typename GainVector<Value>::Values v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The partner of `i` in a run with the largest gain without a box (1.27), if that exceeds `best`, else −1.
template <class Value>
inline std::int64_t second_order_partner(const DualState& s, const FusedArrays<Value>& f, Run run, std::int64_t i,
                                         const Value* row, Value& best) {
  using Gains = typename GainVector<Value>::Values;
  using Positions = typename GainVector<Value>::Positions;
  constexpr Value none = 0, two = 2, least = static_cast<Value>(kMinCurvature);
  const double g = s.gradient[i] + f.increase_shift[i];
  const Value diagonal = f.diagonal[i];
  Gains most = {};
  Positions at = Positions{} - 1, here;
  for (int l = 0; l < kLanes; ++l) here[l] = static_cast<std::int32_t>(run.begin) + l;
  std::int64_t k = run.begin;
  for (; k + kLanes <= run.end; k += kLanes, here += kLanes) {
    const Gains slope = __builtin_convertvector(g - (load(s.gradient + k) + load(f.decrease_shift + k)), Gains);
    const Gains curved = (diagonal + load_gains(f.diagonal + k)) - two * load_gains(row + k);
    const Gains positive = slope > none ? slope : Gains{};
    const Gains gains = positive * positive / (curved > least ? curved : least - Gains{});
    const Positions better = gains > most;
    most = better ? gains : most;
    at = better ? here : at;
  }
  std::int64_t partner = -1;
  for (int l = 0; l < kLanes; ++l)
    if (at[l] >= 0 && (most[l] > best || (most[l] == best && at[l] < partner))) {
      best = most[l];
      partner = at[l];
    }
  for (; k < run.end; ++k) {
    const Value slope = static_cast<Value>(g - (s.gradient[k] + f.decrease_shift[k]));
    const Value curved = (diagonal + f.diagonal[k]) - two * row[k], positive = slope > none ? slope : none;
    const Value gain = positive * positive / (curved > least ? curved : least);
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

// The same among all members of its group.
template <class Value>
inline std::int64_t second_order_partner(const DualState& s, const GroupRuns& runs, const FusedArrays<Value>& f,
                                         std::int64_t i, const Value* row) {
  Value best = 0;
  std::int64_t partner = -1;
  for (int r = 0; r < runs.count; ++r) {
    if (s.group[runs.start[r]] != s.group[i]) continue;
    const std::int64_t in_run = second_order_partner(s, f, runs.at(r), i, row, best);
    if (in_run >= 0) partner = in_run;
  }
  return partner;
}

template <class Rows>
inline Outcome run_fused_pairwise(DualState& s, Rows& rows, const GroupRuns& runs,
                                  const FusedArrays<typename Rows::Value>& f, double tolerance, std::int64_t max_steps,
                                  double max_seconds) {
  using Value = typename Rows::Value;
  const auto start = std::chrono::steady_clock::now();
  Outcome out;
  const auto stop = [&out](StopReason reason) {
    out.reason = reason;
    return out;
  };
  const auto need = [&](std::int64_t row) {
    out.row = row;
    out.row_length = s.active;
    return stop(StopReason::needs_row);
  };
  for (std::int64_t k = 0; k < s.active; ++k) {
    update_shifts(s, f, k);
    f.diagonal[k] = static_cast<Value>(s.diagonal[k]);
  }
  GradientExtremes extremes = update_and_find_worst_group<false, Value>(s, runs, f, nullptr, nullptr, 0.0);
  for (;;) {
    out.violation = extremes.highest - extremes.lowest;
    if (std::isnan(out.violation)) return stop(StopReason::precision);
    if (!(out.violation > tolerance)) return stop(StopReason::optimal);
    if (out.steps >= max_steps) return out;
    if (out.steps % kStepsPerClock == kStepsPerClock - 1 && seconds_since(start) > max_seconds) return out;

    const std::int64_t up = extremes.highest_at;
    const Value* row_up = find(rows, up, s.active);
    if (!row_up) return need(up);
    const std::int64_t down = second_order_partner(s, runs, f, up, row_up);
    if (down < 0) return stop(StopReason::precision);
    const Value* row_down = find(rows, down, s.active);
    if (!row_down) return need(down);

    const double slope = gradient_up(s, up) - gradient_down(s, down), curved = curvature(s, up, down, row_up);
    const double slack_up = slack_to_upper(s, up), slack_down = slack_to_lower(s, down);
    const double step = smaller(curved > 0.0 ? slope / curved : kInfinity, smaller(slack_up, slack_down));
    if (std::isinf(step)) return stop(StopReason::unbounded);
    const double new_up = increased(s, up, step, slack_up), new_down = decreased(s, down, step, slack_down);
    if (new_up == s.dual[up] && new_down == s.dual[down]) return stop(StopReason::precision);
    s.dual[up] = new_up;
    s.dual[down] = new_down;
    s.gradient[up] -= s.ridge[up] * step;
    s.gradient[down] += s.ridge[down] * step;
    update_shifts(s, f, up);
    update_shifts(s, f, down);
    mark_used(rows, up);
    mark_used(rows, down);
    extremes = update_and_find_worst_group<true, Value>(s, runs, f, row_up, row_down, step);
    out.gain += step * (slope - 0.5 * step * curved);
    ++out.steps;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
