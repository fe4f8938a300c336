// Extremes of the gradient over the variables of each group: the optimality criterion (Bottou & Lin 1.11).
//
// A feasible point is optimal when in each group the largest gradient of the variables that can increase (b < upper) is
// at most the smallest of those that can decrease (b > lower). A variable in no group moves alone, so 0 takes the place
// of the other end. Of equal gradients the first counts.
#pragma once

#include <cstdint>
#include <limits>

#include "solver_loops.hpp"
#include "vector_argmax.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline bool can_increase(const DualState& s, std::int64_t k) { return s.dual[k] < s.upper[k]; }
inline bool can_decrease(const DualState& s, std::int64_t k) { return s.dual[k] > s.lower[k]; }

inline bool has_one_group(const DualState& s) { return s.groups == 1 && s.singles == 0; }

inline void update(GradientExtremes& e, const DualState& s, std::int64_t k) {
  const double g = s.gradient[k];
  if (g > e.highest && can_increase(s, k)) {
    e.highest = g;
    e.highest_at = k;
  }
  if (g < e.lowest && can_decrease(s, k)) {
    e.lowest = g;
    e.lowest_at = k;
  }
}

// The extremes of the active variables of each group, and last those of the variables in no group. If all variables are
// in one group, only its extremes are computed, with vectors.
inline void find_extremes(const DualState& s, GradientExtremes* extremes) {
  const GradientExtremes none{-kInfinity, kInfinity, -1, -1};
  if (!has_one_group(s)) {
    for (std::int32_t g = 0; g <= s.groups; ++g) extremes[g] = none;
    for (std::int64_t k = 0; k < s.active; ++k) update(extremes[s.group[k] < 0 ? s.groups : s.group[k]], s, k);
    return;
  }
  LaneArgmax highest{repeat(-kInfinity), IndexLanes{} - 1}, lowest = highest;  // the latter of −gradient
  IndexLanes here = lane_indices();
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    const Lanes g = load(s.gradient + k), b = load(s.dual + k);
    highest.update(g, b < load(s.upper + k), here);
    lowest.update(-g, b > load(s.lower + k), here);
  }
  GradientExtremes& e = extremes[0];
  e = {-kInfinity, -kInfinity, -1, -1};
  highest.reduce(e.highest, e.highest_at);
  lowest.reduce(e.lowest, e.lowest_at);
  e.lowest = -e.lowest;
  for (; k < s.active; ++k) update(e, s, k);
}

// By how much each active variable violates optimality when it increases and when it decreases, −∞ if it cannot.
inline void find_violations(const DualState& s, GradientExtremes* extremes, double* increasing, double* decreasing) {
  find_extremes(s, extremes);
  if (s.singles) extremes[s.groups] = {0.0, 0.0, -1, -1};
  for (std::int64_t k = 0; k < s.active; ++k) {
    const GradientExtremes& e = extremes[s.group[k] < 0 ? s.groups : s.group[k]];
    increasing[k] = can_increase(s, k) ? s.gradient[k] - e.lowest : -kInfinity;
    decreasing[k] = can_decrease(s, k) ? e.highest - s.gradient[k] : -kInfinity;
  }
}

// Which variables shrinking keeps: not those at a bound whose gradient is beyond both extremes of their group, since no
// rule can select them.
inline void find_selectable(const DualState& s, GradientExtremes* extremes, bool* keep) {
  find_extremes(s, extremes);
  if (s.singles) {
    GradientExtremes& e = extremes[s.groups];
    e.highest = larger(e.highest, 0.0);
    e.lowest = smaller(e.lowest, 0.0);
  }
  for (std::int64_t k = 0; k < s.active; ++k) {
    const GradientExtremes& e = extremes[s.group[k] < 0 ? s.groups : s.group[k]];
    const bool up = can_increase(s, k), down = can_decrease(s, k);
    keep[k] = (up || !(s.gradient[k] > e.highest)) && (down || !(s.gradient[k] < e.lowest)) && (up || down);
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
