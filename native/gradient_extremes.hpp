// Extremes of the gradient over the variables of each group: the optimality criterion (Bottou & Lin 1.11).
//
// A feasible point is optimal when in each group the largest gradient of the variables that can increase (b < upper) is
// at most the smallest of those that can decrease (b > lower). A variable in no group moves alone, so 0 takes the place
// of the other end. Of equal gradients the first counts.
//
// Where a variable has a kink, −κ|b|, the gradient has two sides: it is g + κ below 0 and g − κ above, and at 0 that of
// the side to which the variable moves. A step ends at 0, as at a bound.
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

// The gradient of a variable when it increases, and when it decreases.
inline double gradient_up(const DualState& s, std::int64_t k) {
  return !s.kink ? s.gradient[k] : s.dual[k] < 0.0 ? s.gradient[k] + s.kink[k] : s.gradient[k] - s.kink[k];
}
inline double gradient_down(const DualState& s, std::int64_t k) {
  return !s.kink ? s.gradient[k] : s.dual[k] > 0.0 ? s.gradient[k] - s.kink[k] : s.gradient[k] + s.kink[k];
}

inline bool has_kink(const DualState& s, std::int64_t k) { return s.kink && s.kink[k] > 0.0; }

// The bounds within which the objective has no kink.
inline double nearest_upper(const DualState& s, std::int64_t k) {
  return s.dual[k] < 0.0 && has_kink(s, k) ? 0.0 : s.upper[k];
}
inline double nearest_lower(const DualState& s, std::int64_t k) {
  return s.dual[k] > 0.0 && has_kink(s, k) ? 0.0 : s.lower[k];
}

// Whether a variable is strictly between these bounds.
inline bool is_free(const DualState& s, std::int64_t k) {
  return can_increase(s, k) && can_decrease(s, k) && !(s.dual[k] == 0.0 && has_kink(s, k));
}

inline void update(GradientExtremes& e, const DualState& s, std::int64_t k) {
  const double up = gradient_up(s, k), down = gradient_down(s, k);
  if (up > e.highest && can_increase(s, k)) {
    e.highest = up;
    e.highest_at = k;
  }
  if (down < e.lowest && can_decrease(s, k)) {
    e.lowest = down;
    e.lowest_at = k;
  }
}

// The gradients of several variables when they increase, and when they decrease.
template <bool Kinked> MAXMARGIN_INLINE Lanes gradients_up(const DualState& s, std::int64_t k, Lanes g, Lanes b) {
  if constexpr (!Kinked) return g;
  const Lanes kink = load(s.kink + k);
  return b < 0.0 ? g + kink : g - kink;
}
template <bool Kinked> MAXMARGIN_INLINE Lanes gradients_down(const DualState& s, std::int64_t k, Lanes g, Lanes b) {
  if constexpr (!Kinked) return g;
  const Lanes kink = load(s.kink + k);
  return b > 0.0 ? g - kink : g + kink;
}

// The extremes of the active variables, all in one group.
template <bool Kinked> inline GradientExtremes extremes_of_one_group(const DualState& s) {
  LaneArgmax highest{repeat(-kInfinity), IndexLanes{} - 1}, lowest = highest;  // the latter of −gradient
  IndexLanes here = lane_indices();
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    const Lanes g = load(s.gradient + k), b = load(s.dual + k);
    highest.update(gradients_up<Kinked>(s, k, g, b), b < load(s.upper + k), here);
    lowest.update(-gradients_down<Kinked>(s, k, g, b), b > load(s.lower + k), here);
  }
  GradientExtremes e{-kInfinity, -kInfinity, -1, -1};
  highest.reduce(e.highest, e.highest_at);
  lowest.reduce(e.lowest, e.lowest_at);
  e.lowest = -e.lowest;
  for (; k < s.active; ++k) update(e, s, k);
  return e;
}

// The extremes of the active variables of each group, and last those of the variables in no group. If all variables are
// in one group, only its extremes are computed, with vectors.
inline void find_extremes(const DualState& s, GradientExtremes* extremes) {
  if (has_one_group(s)) {
    extremes[0] = s.kink ? extremes_of_one_group<true>(s) : extremes_of_one_group<false>(s);
    return;
  }
  const GradientExtremes none{-kInfinity, kInfinity, -1, -1};
  for (std::int32_t g = 0; g <= s.groups; ++g) extremes[g] = none;
  for (std::int64_t k = 0; k < s.active; ++k) update(extremes[s.group[k] < 0 ? s.groups : s.group[k]], s, k);
}

// By how much each active variable violates optimality when it increases and when it decreases, −∞ if it cannot.
inline void find_violations(const DualState& s, GradientExtremes* extremes, double* increasing, double* decreasing) {
  find_extremes(s, extremes);
  if (s.singles) extremes[s.groups] = {0.0, 0.0, -1, -1};
  if (has_one_group(s) && !s.kink) {  // differences before the comparisons: a loop of vectors
    const double lowest = extremes[0].lowest, highest = extremes[0].highest;
    for (std::int64_t k = 0; k < s.active; ++k) {
      const double up = s.gradient[k] - lowest, down = highest - s.gradient[k];
      increasing[k] = s.dual[k] < s.upper[k] ? up : -kInfinity;
      decreasing[k] = s.dual[k] > s.lower[k] ? down : -kInfinity;
    }
    return;
  }
  for (std::int64_t k = 0; k < s.active; ++k) {
    const GradientExtremes& e = extremes[s.group[k] < 0 ? s.groups : s.group[k]];
    increasing[k] = can_increase(s, k) ? gradient_up(s, k) - e.lowest : -kInfinity;
    decreasing[k] = can_decrease(s, k) ? e.highest - gradient_down(s, k) : -kInfinity;
  }
}

// Which variables shrinking keeps: not those at a bound, or at a kink, whose gradient is beyond both extremes of their
// group, since no rule can select them.
inline void find_selectable(const DualState& s, GradientExtremes* extremes, bool* keep) {
  find_extremes(s, extremes);
  if (s.singles) {
    GradientExtremes& e = extremes[s.groups];
    e.highest = larger(e.highest, 0.0);
    e.lowest = smaller(e.lowest, 0.0);
  }
  for (std::int64_t k = 0; k < s.active; ++k) {
    const GradientExtremes& e = extremes[s.group[k] < 0 ? s.groups : s.group[k]];
    keep[k] = (can_increase(s, k) && !(gradient_up(s, k) < e.lowest)) ||
              (can_decrease(s, k) && !(gradient_down(s, k) > e.highest));
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
