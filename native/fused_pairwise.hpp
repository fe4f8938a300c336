// Second-order pair steps on float32 rows when all variables are in one group, as in every classifier with a bias.
//
// The algorithm of pairwise.hpp in two passes over memory per step instead of three: one updates the gradient and finds
// its extremes, the other finds the partner. Gains are compared in single precision.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "pairwise.hpp"
#include "solver_loops.hpp"
#include "vector_argmax.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr float kMinFloatCurvature = 1e-12f;  // replaces zero or negative curvature when gains are compared

// What is added to a gradient before it is compared: 0 if the variable can increase (decrease), else −∞ (∞). And the
// diagonal in single precision.
struct FusedArrays {
  double* increase_mask;
  double* decrease_mask;
  float* diagonal;
};

MAXMARGIN_INLINE void update_masks(const DualState& s, const FusedArrays& f, std::int64_t k) {
  f.increase_mask[k] = can_increase(s, k) ? 0.0 : -kInfinity;
  f.decrease_mask[k] = can_decrease(s, k) ? 0.0 : kInfinity;
}

// gradient −= step · (row_up − row_down) if Update; then the extremes of the gradient, as find_extremes computes them,
// but for the position of the lowest. The two are one loop because memory limits its speed: apart they would read the
// gradient twice. Masks take the place of the dual variables and their bounds, which would be one more array to read.
template <bool Update>
inline GradientExtremes update_and_find_extremes(const DualState& s, const FusedArrays& f, const float* row_up,
                                                 const float* row_down, double step) {
  LaneArgmax highest{repeat(-kInfinity), IndexLanes{} - 1};
  Lanes lowest = repeat(kInfinity);
  IndexLanes here = lane_indices();
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    Lanes g = load(s.gradient + k);
    if constexpr (Update) {
      g -= step * (load(row_up + k) - load(row_down + k));
      store_vector(s.gradient + k, g);
    }
    const Lanes up = g + load(f.increase_mask + k), down = g + load(f.decrease_mask + k);
    highest.update(up, here);
    lowest = down < lowest ? down : lowest;
  }
  GradientExtremes e{-kInfinity, kInfinity, -1, -1};
  highest.reduce(e.highest, e.highest_at);
  for (int l = 0; l < kLanes; ++l) e.lowest = smaller(e.lowest, lowest[l]);
  for (; k < s.active; ++k) {
    if constexpr (Update) s.gradient[k] -= step * (static_cast<double>(row_up[k]) - static_cast<double>(row_down[k]));
    const double up = s.gradient[k] + f.increase_mask[k];
    if (up > e.highest) {
      e.highest = up;
      e.highest_at = k;
    }
    e.lowest = smaller(e.lowest, s.gradient[k] + f.decrease_mask[k]);
  }
  return e;
}

typedef float FloatLanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t FloatIndexLanes __attribute__((vector_size(kLanes * sizeof(float))));

MAXMARGIN_INLINE FloatLanes load_float(const float* p) {
  FloatLanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The partner of `i` with the largest gain without a box (1.27), −1 if none has a gain.
inline std::int64_t second_order_partner(const DualState& s, const FusedArrays& f, std::int64_t i, const float* row) {
  const double g = s.gradient[i];
  const float diagonal = f.diagonal[i];
  FloatLanes most = {};
  FloatIndexLanes at = FloatIndexLanes{} - 1, here;
  for (int l = 0; l < kLanes; ++l) here[l] = l;
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    const FloatLanes slope =
        __builtin_convertvector(g - (load(s.gradient + k) + load(f.decrease_mask + k)), FloatLanes);
    const FloatLanes curved = (diagonal + load_float(f.diagonal + k)) - 2.0f * load_float(row + k);
    const FloatLanes positive = slope > 0.0f ? slope : FloatLanes{};
    const FloatLanes gains =
        positive * positive / (curved > kMinFloatCurvature ? curved : kMinFloatCurvature - FloatLanes{});
    const FloatIndexLanes better = gains > most;
    most = better ? gains : most;
    at = better ? here : at;
  }
  float best = 0.0f;
  std::int64_t partner = -1;
  for (int l = 0; l < kLanes; ++l)
    if (at[l] >= 0 && (most[l] > best || (most[l] == best && at[l] < partner))) {
      best = most[l];
      partner = at[l];
    }
  for (; k < s.active; ++k) {
    const float slope = static_cast<float>(g - (s.gradient[k] + f.decrease_mask[k]));
    const float curved = (diagonal + f.diagonal[k]) - 2.0f * row[k], positive = slope > 0.0f ? slope : 0.0f;
    const float gain = positive * positive / (curved > kMinFloatCurvature ? curved : kMinFloatCurvature);
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

inline Outcome run_fused_pairwise(DualState& s, RowCache<float>& rows, const FusedArrays& f, double tolerance,
                                  std::int64_t max_steps, double max_seconds) {
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
    update_masks(s, f, k);
    f.diagonal[k] = static_cast<float>(s.diagonal[k]);
  }
  GradientExtremes extremes = update_and_find_extremes<false>(s, f, nullptr, nullptr, 0.0);
  for (;;) {
    out.violation = extremes.highest - extremes.lowest;
    if (std::isnan(out.violation)) return stop(StopReason::precision);
    if (!(out.violation > tolerance)) return stop(StopReason::optimal);
    if (out.steps >= max_steps) return out;
    if (out.steps % kStepsPerClock == kStepsPerClock - 1 && seconds_since(start) > max_seconds) return out;

    const std::int64_t up = extremes.highest_at;
    const float* row_up = find(rows, up, s.active);
    if (!row_up) return need(up);
    const std::int64_t down = second_order_partner(s, f, up, row_up);
    if (down < 0) return stop(StopReason::precision);
    const float* row_down = find(rows, down, s.active);
    if (!row_down) return need(down);

    const double slope = s.gradient[up] - s.gradient[down], curved = curvature(s, up, down, row_up);
    const double slack_up = slack_to_upper(s, up), slack_down = slack_to_lower(s, down);
    const double step = smaller(curved > 0.0 ? slope / curved : kInfinity, smaller(slack_up, slack_down));
    if (std::isinf(step)) return stop(StopReason::unbounded);
    const double new_up = step >= slack_up ? s.upper[up] : snapped_to_bound(s, up, s.dual[up] + step);
    const double new_down = step >= slack_down ? s.lower[down] : snapped_to_bound(s, down, s.dual[down] - step);
    if (new_up == s.dual[up] && new_down == s.dual[down]) return stop(StopReason::precision);
    s.dual[up] = new_up;
    s.dual[down] = new_down;
    s.gradient[up] -= s.ridge[up] * step;
    s.gradient[down] += s.ridge[down] * step;
    update_masks(s, f, up);
    update_masks(s, f, down);
    mark_used(rows, up);
    mark_used(rows, down);
    extremes = update_and_find_extremes<true>(s, f, row_up, row_down, step);
    out.gain += step * (slope - 0.5 * step * curved);
    ++out.steps;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
