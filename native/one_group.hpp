// Second-order pair steps on single-precision rows when all variables are in one group: every classifier with a bias.
//
// The same algorithm as pairwise.hpp in two passes over memory per step instead of three. One changes the gradient and
// finds both ends of the violation; the other finds the partner. Gains are compared in single precision.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "lanes.hpp"
#include "loops.hpp"
#include "pairwise.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr float kTinyBend = 1e-12f;  // stands in for zero or negative curvature when gains are compared

// What is added to a gradient before it is compared: 0 where the variable may grow, else −∞; 0 where it may fall, else
// ∞. And its curvature.
struct Directions {
  double* grow;
  double* fall;
  float* bend;
};

MAXMARGIN_INLINE void note_directions(const DualState& s, const Directions& d, std::int64_t k) {
  d.grow[k] = can_increase(s, k) ? 0.0 : -kInfinity;
  d.fall[k] = can_decrease(s, k) ? 0.0 : kInfinity;
}

// gradient −= step · (row_up − row_down) if Change; then the extremes of the gradient, as find_extremes computes them.
// The two are one loop because memory limits its speed: apart they would read the gradient twice. Masks that are added
// to it take the place of the bounds, which would be two more arrays to read.
template <bool Change>
inline GradientExtremes change_and_find_ends(const DualState& s, const Directions& d, const float* row_up,
                                             const float* row_down, double step) {
  LaneMaximum highs{spread(-kInfinity), IndexLanes{} - 1};
  Lanes lows = spread(kInfinity);
  IndexLanes here = counting();
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    Lanes g = load(s.gradient + k);
    if constexpr (Change) {
      g -= step * (load(row_up + k) - load(row_down + k));
      store_vector(s.gradient + k, g);
    }
    const Lanes up = g + load(d.grow + k), down = g + load(d.fall + k);
    highs.see(up, here);
    lows = down < lows ? down : lows;
  }
  GradientExtremes e{-kInfinity, kInfinity, -1, -1};
  highs.reduce(e.highest, e.highest_at);
  for (int l = 0; l < kLanes; ++l) e.lowest = smaller(e.lowest, lows[l]);
  for (; k < s.active; ++k) {
    if constexpr (Change) s.gradient[k] -= step * (static_cast<double>(row_up[k]) - static_cast<double>(row_down[k]));
    const double up = s.gradient[k] + d.grow[k];
    if (up > e.highest) {
      e.highest = up;
      e.highest_at = k;
    }
    e.lowest = smaller(e.lowest, s.gradient[k] + d.fall[k]);
  }
  return e;
}

typedef float Gains __attribute__((vector_size(kLanes * sizeof(float))));
typedef std::int32_t Places __attribute__((vector_size(kLanes * sizeof(float))));

MAXMARGIN_INLINE Gains load_gains(const float* p) {
  Gains v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The partner of `i` with the largest gain if there were no box (1.27), −1 if nobody gains.
inline std::int64_t best_partner(const DualState& s, const Directions& d, std::int64_t i, const float* row) {
  const double g = s.gradient[i];
  const float bend = d.bend[i];
  Gains most = {};
  Places at = Places{} - 1, here;
  for (int l = 0; l < kLanes; ++l) here[l] = l;
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    const Gains slope = __builtin_convertvector(g - (load(s.gradient + k) + load(d.fall + k)), Gains);
    const Gains total = (bend + load_gains(d.bend + k)) - 2.0f * load_gains(row + k);
    const Gains positive = slope > 0.0f ? slope : Gains{};
    const Gains gains = positive * positive / (total > kTinyBend ? total : kTinyBend - Gains{});
    const Places better = gains > most;
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
    const float slope = static_cast<float>(g - (s.gradient[k] + d.fall[k]));
    const float total = (bend + d.bend[k]) - 2.0f * row[k], positive = slope > 0.0f ? slope : 0.0f;
    const float gain = positive * positive / (total > kTinyBend ? total : kTinyBend);
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

inline Outcome run_one_group(DualState& s, RowStore<float>& rows, const Directions& d, double tolerance,
                             std::int64_t max_steps, double max_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto need = [&s](Outcome& out, std::int64_t row) {
    out.reason = Reason::needs_row;
    out.row = row;
    out.length = s.active;
    return out;
  };
  for (std::int64_t k = 0; k < s.active; ++k) {
    note_directions(s, d, k);
    d.bend[k] = static_cast<float>(s.diagonal[k]);
  }
  Outcome out;
  GradientExtremes ends = change_and_find_ends<false>(s, d, nullptr, nullptr, 0.0);
  for (;;) {
    out.violation = ends.highest - ends.lowest;
    if (std::isnan(out.violation)) {
      out.reason = Reason::precision;
      return out;
    }
    if (!(out.violation > tolerance)) {
      out.reason = Reason::optimal;
      return out;
    }
    if (out.steps >= max_steps) return out;
    if (out.steps % 16 == 15 && std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return out;

    const std::int64_t up = ends.highest_at;
    const float* row_up = find(rows, up, s.active);
    if (!row_up) return need(out, up);
    const std::int64_t down = best_partner(s, d, up, row_up);
    if (down < 0) {
      out.reason = Reason::precision;
      return out;
    }  // nobody gains anything
    const float* row_down = find(rows, down, s.active);
    if (!row_down) return need(out, down);

    const double slope = s.gradient[up] - s.gradient[down], bend = curvature(s, up, down, row_up);
    const double limit_up = room_up(s, up), limit_down = room_down(s, down);
    const double t = smaller(bend > 0.0 ? slope / bend : kInfinity, smaller(limit_up, limit_down));
    if (std::isinf(t)) {
      out.reason = Reason::unbounded;
      return out;
    }
    const double new_up = t >= limit_up ? s.upper[up] : snapped(s, up, s.dual[up] + t);
    const double new_down = t >= limit_down ? s.lower[down] : snapped(s, down, s.dual[down] - t);
    if (new_up == s.dual[up] && new_down == s.dual[down]) {
      out.reason = Reason::precision;
      return out;
    }
    s.dual[up] = new_up;
    s.dual[down] = new_down;
    s.gradient[up] -= s.ridge[up] * t;
    s.gradient[down] += s.ridge[down] * t;
    note_directions(s, d, up);
    note_directions(s, d, down);
    stamp(rows, up);
    stamp(rows, down);
    ends = change_and_find_ends<true>(s, d, row_up, row_down, t);
    out.gain += t * (slope - 0.5 * t * bend);
    ++out.steps;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
