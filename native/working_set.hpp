// Working-set selection: the pair that moves next. Each rule also returns the violation of the optimality criterion,
// the maximum over groups of (max over b<upper of g − min over b>lower of g), because it is the stopping test.
//
//   most_violating_pair   Bottou & Lin 1.25         both ends of that interval
//   second_order          Bottou & Lin 1.27         the upper end, and the partner of the largest unclipped gain
//   maximum_gain          Glasmachers & Igel 2006   one index of the previous pair, and the partner of the largest gain
//                                                   inside the box; second_order if the previous pair is in a corner
//
// A variable in no group moves alone: `down` is −1 when it increases and `up` is −1 when it decreases.
#pragma once

#include <cmath>
#include <cstdint>

#include "gradient_extremes.hpp"
#include "solver_loops.hpp"
#include "vector_argmax.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

struct SelectedPair {
  double violation = 0.0;
  std::int64_t up = -1;       // the variable that increases
  std::int64_t down = -1;     // the variable that decreases
  std::int64_t missing = -1;  // a row that the rule needs and that is not cached
};

constexpr double kMinCurvature = 1e-12;  // replaces zero or negative curvature when gains are compared

inline double slack_to_upper(const DualState& s, std::int64_t k) { return nearest_upper(s, k) - s.dual[k]; }
inline double slack_to_lower(const DualState& s, std::int64_t k) { return s.dual[k] - nearest_lower(s, k); }

// The row of a position, if its first `needed` values are cached.
template <class Value>
inline const Value* find(const RowCache<Value>& rows, std::int64_t position, std::int64_t needed) {
  const std::int64_t s = rows.slot[position];
  return s >= 0 && rows.valid[s] >= needed ? rows.storage + s * rows.stride : nullptr;
}

template <class Value> inline double curvature(const DualState& s, std::int64_t i, std::int64_t j, const Value* row_i) {
  return s.diagonal[i] + s.diagonal[j] - 2.0 * static_cast<double>(row_i[j]);
}

inline double unclipped_gain(double slope, double curvature) {
  return slope * slope / (curvature > kMinCurvature ? curvature : kMinCurvature);
}

// The exact increase of the dual by a step that is clipped to the box.
inline double clipped_gain(double slope, double curvature, double slack) {
  const double newton = curvature > 0.0 ? slope / curvature : kInfinity;
  const double step = newton < slack ? newton : slack;
  if (std::isinf(step)) return kInfinity;  // unbounded: no other pair gains more
  return step * (slope - 0.5 * step * curvature);
}

// The partner of `i` by second-order gain (1.27), when all variables are in one group.
template <bool Kinked, class Value>
inline std::int64_t second_order_partner(const DualState& s, std::int64_t i, const Value* row) {
  const double g_i = gradient_up(s, i), d_i = s.diagonal[i];
  LaneArgmax gains{repeat(-kInfinity), IndexLanes{} - 1};
  IndexLanes here = lane_indices();
  std::int64_t k = 0;
  for (; k + kLanes <= s.active; k += kLanes, here += kLanes) {
    const Lanes b = load(s.dual + k), slope = g_i - gradients_down<Kinked>(s, k, load(s.gradient + k), b);
    const Lanes curved = d_i + load(s.diagonal + k) - 2.0 * load(row + k);
    const Lanes gain = slope * slope / (curved > kMinCurvature ? curved : repeat(kMinCurvature));
    gains.update(gain, (slope > 0.0) & (b > load(s.lower + k)), here);
  }
  double best = -kInfinity;
  std::int64_t partner = -1;
  gains.reduce(best, partner);
  for (; k < s.active; ++k) {
    const double slope = g_i - gradient_down(s, k);
    if (!(slope > 0.0) || !can_decrease(s, k)) continue;
    const double gain = unclipped_gain(slope, d_i + s.diagonal[k] - 2.0 * static_cast<double>(row[k]));
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

// The same among the members of its group.
template <class Value>
inline std::int64_t second_order_partner_in_group(const DualState& s, std::int64_t i, const Value* row) {
  double best = -kInfinity;
  std::int64_t partner = -1;
  for (std::int64_t k = 0; k < s.active; ++k) {
    const double slope = gradient_up(s, i) - gradient_down(s, k);
    if (!(slope > 0.0) || !can_decrease(s, k) || s.group[k] != s.group[i]) continue;
    const double gain = unclipped_gain(slope, curvature(s, i, k, row));
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

// The pair with `p` of the largest clipped gain, if that is larger than `best`.
template <class Value>
inline void maximum_gain_partner(const DualState& s, std::int64_t p, const Value* row, double& best,
                                 SelectedPair& pair) {
  for (std::int64_t k = 0; k < s.active; ++k) {
    if (k == p || s.group[k] != s.group[p]) continue;
    const double forward = gradient_up(s, p) - gradient_down(s, k), backward = gradient_up(s, k) - gradient_down(s, p);
    const bool grows = forward > 0.0;
    const std::int64_t up = grows ? p : k, down = grows ? k : p;
    const double slope = grows ? forward : backward;
    if (!(slope > 0.0)) continue;
    const double slack = smaller(slack_to_upper(s, up), slack_to_lower(s, down));
    if (!(slack > 0.0)) continue;
    const double gain = clipped_gain(slope, curvature(s, p, k, row), slack);
    if (gain > best) {
      best = gain;
      pair.up = up;
      pair.down = down;
    }
  }
}

// The best single step among the variables in no group.
inline void select_single(const DualState& s, Rule rule, SelectedPair& pair) {
  double best = -kInfinity;
  for (std::int64_t k = 0; k < s.active; ++k) {
    if (s.group[k] >= 0) continue;
    const double up = gradient_up(s, k), down = gradient_down(s, k), slope = larger(up, -down);
    const bool grows = up > -down;
    const double slack = grows ? slack_to_upper(s, k) : slack_to_lower(s, k);
    if (!(slope > 0.0) || !(slack > 0.0)) continue;
    const double gain = rule == Rule::most_violating_pair ? slope
                        : rule == Rule::second_order      ? unclipped_gain(slope, s.diagonal[k])
                                                          : clipped_gain(slope, s.diagonal[k], slack);
    if (gain > best) {
      best = gain;
      pair.up = grows ? k : -1;
      pair.down = grows ? -1 : k;
    }
  }
}

inline bool near_bound(const DualState& s, std::int64_t k) {
  const double width = s.upper[k] - s.lower[k];
  const double margin = std::isfinite(width) ? 1e-8 * width : 0.0;
  return slack_to_upper(s, k) <= margin || slack_to_lower(s, k) <= margin;
}

// Whether a pair with a variable of the previous pair was found, or `missing` is set to a row that is not cached.
template <class Rows>
inline bool select_with_previous(const DualState& s, Rows& rows, const SelectionMemory& m, std::int32_t worst_group,
                                 SelectedPair& pair) {
  if (m.previous_up < 0 || m.previous_down < 0 || s.group[m.previous_up] != worst_group) return false;
  if (near_bound(s, m.previous_up) && near_bound(s, m.previous_down)) return false;
  double best = 0.0;
  const std::int64_t previous[2] = {m.previous_up, m.previous_down};
  for (const std::int64_t p : previous) {
    const auto* row = find(rows, p, s.active);
    if (!row) {
      pair.missing = p;
      return true;
    }
    maximum_gain_partner(s, p, row, best, pair);
  }
  return best > 0.0;
}

template <class Rows> inline SelectedPair select(const DualState& s, Rows& rows, SelectionMemory& m) {
  SelectedPair pair;
  find_extremes(s, m.extremes);
  GradientExtremes worst = m.extremes[0];
  bool single = false;
  const bool one_group = has_one_group(s);  // every classifier with a bias
  if (one_group) {
    pair.violation = worst.highest - worst.lowest;
  } else {
    pair.violation = -kInfinity;
    for (std::int32_t g = 0; g <= s.groups; ++g) {
      const GradientExtremes& e = m.extremes[g];
      const bool ungrouped = g == s.groups;
      const double violation = ungrouped ? larger(e.highest, -e.lowest) : e.highest - e.lowest;
      if (violation > pair.violation) {
        pair.violation = violation;
        worst = e;
        single = ungrouped;
      }
    }
  }
  if (!(pair.violation > 0.0)) return pair;
  if (single) {
    select_single(s, m.rule, pair);
    return pair;
  }
  if (m.rule == Rule::maximum_gain && select_with_previous(s, rows, m, s.group[worst.highest_at], pair)) return pair;
  if (m.rule == Rule::most_violating_pair) {
    pair.up = worst.highest_at;
    pair.down = worst.lowest_at;
    return pair;
  }
  const auto* row = find(rows, worst.highest_at, s.active);
  if (!row) {
    pair.missing = worst.highest_at;
    return pair;
  }
  pair.up = worst.highest_at;
  pair.down = !one_group ? second_order_partner_in_group(s, pair.up, row)
              : s.kink   ? second_order_partner<true>(s, pair.up, row)
                         : second_order_partner<false>(s, pair.up, row);
  return pair;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
