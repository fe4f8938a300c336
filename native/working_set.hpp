// Working-set selection: which pair moves next. Each rule also returns the violation of the optimality
// criterion, max over groups of (max over b<upper of g − min over b>lower of g), because it is the stopping test.
//
//   most_violating_pair   Bottou & Lin 1.25   both ends of that interval
//   second_order          Bottou & Lin 1.27   the upper end, and the partner of the largest unclipped gain
//   maximum_gain          Glasmachers & Igel 2006   one index of the previous pair, and the partner of the largest
//                         gain inside the box; second_order when the previous pair rests in a corner
//
// A variable in no group moves alone: `down` is −1 when it goes up and `up` is −1 when it goes down.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dual_state.hpp"
#include "instruction_sets.hpp"

namespace maxmargin {

enum class Rule : int { most_violating_pair = 0, second_order = 1, maximum_gain = 2 };

struct Choice {
  double violation = 0.0;
  std::int64_t up = -1;           // the variable that increases
  std::int64_t down = -1;         // the variable that decreases
  std::int64_t missing = -1;      // a row the rule needs and does not have
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTinyCurvature = 1e-12;  // stands in for zero or negative curvature when gains are compared

struct Extreme { double high, low; std::int64_t high_at, low_at; };

// The largest gradient that may grow and the smallest that may fall, over one group.
MAXMARGIN_CLONES inline Extreme extremes_of_one_group(const DualState& s) {
  Extreme e{-kInfinity, kInfinity, -1, -1};
  for (std::int64_t k = 0; k < s.active; ++k) {
    const double g = s.gradient[k];
    if (g > e.high && s.can_increase(k)) { e.high = g; e.high_at = k; }
    if (g < e.low && s.can_decrease(k)) { e.low = g; e.low_at = k; }
  }
  return e;
}

// The same for many groups. Variables in no group come last: for them the other end of the interval is 0.
inline void extremes_of_groups(const DualState& s, std::vector<Extreme>& extremes) {
  extremes.assign(s.groups + 1, Extreme{-kInfinity, kInfinity, -1, -1});
  for (std::int64_t k = 0; k < s.active; ++k) {
    Extreme& e = extremes[s.group[k] < 0 ? s.groups : s.group[k]];
    const double g = s.gradient[k];
    if (g > e.high && s.can_increase(k)) { e.high = g; e.high_at = k; }
    if (g < e.low && s.can_decrease(k)) { e.low = g; e.low_at = k; }
  }
}

inline double curvature(const DualState& s, std::int64_t i, std::int64_t j, const double* row_i) {
  return s.diagonal[i] + s.diagonal[j] - 2.0 * row_i[j];
}

inline double unclipped_gain(double slope, double curvature) {
  return slope * slope / (curvature > kTinyCurvature ? curvature : kTinyCurvature);
}

// The exact increase of the dual for a step that stops at the box.
inline double clipped_gain(double slope, double curvature, double room) {
  const double newton = curvature > 0.0 ? slope / curvature : kInfinity;
  const double step = newton < room ? newton : room;
  return step * (slope - 0.5 * step * curvature);
}

// The partner of `i` by second-order gain among its group (1.27).
MAXMARGIN_CLONES inline std::int64_t second_order_partner(const DualState& s, std::int64_t i, const double* row) {
  const double g_i = s.gradient[i], d_i = s.diagonal[i];
  const std::int32_t group = s.group[i];
  double best = -kInfinity;
  std::int64_t partner = -1;
  for (std::int64_t k = 0; k < s.active; ++k) {
    const double slope = g_i - s.gradient[k];
    if (!(slope > 0.0) || !s.can_decrease(k) || s.group[k] != group) continue;
    const double gain = unclipped_gain(slope, d_i + s.diagonal[k] - 2.0 * row[k]);
    if (gain > best) { best = gain; partner = k; }
  }
  return partner;
}

// The best pair that contains `p`, by clipped gain; improves on `best` and `choice` if it can.
inline void maximum_gain_partner(const DualState& s, std::int64_t p, const double* row, double& best, Choice& choice) {
  for (std::int64_t k = 0; k < s.active; ++k) {
    if (k == p || s.group[k] != s.group[p]) continue;
    const double slope = s.gradient[p] - s.gradient[k];
    const std::int64_t up = slope > 0.0 ? p : k, down = slope > 0.0 ? k : p;
    const double room = std::fmin(s.room_up(up), s.room_down(down));
    if (!(room > 0.0)) continue;
    const double gain = clipped_gain(std::fabs(slope), curvature(s, p, k, row), room);
    if (gain > best) { best = gain; choice.up = up; choice.down = down; }
  }
}

// The best single step among the variables in no group.
inline void choose_single(const DualState& s, Rule rule, Choice& choice) {
  double best = -kInfinity;
  for (std::int64_t k = 0; k < s.active; ++k) {
    if (s.group[k] >= 0) continue;
    const double g = s.gradient[k], slope = std::fabs(g), room = g > 0.0 ? s.room_up(k) : s.room_down(k);
    if (!(slope > 0.0) || !(room > 0.0)) continue;
    const double gain = rule == Rule::most_violating_pair ? slope
                        : rule == Rule::second_order      ? unclipped_gain(slope, s.diagonal[k])
                                                          : clipped_gain(slope, s.diagonal[k], room);
    if (gain > best) { best = gain; choice.up = g > 0.0 ? k : -1; choice.down = g > 0.0 ? -1 : k; }
  }
}

inline bool in_corner(const DualState& s, std::int64_t k) {
  const double width = s.upper[k] - s.lower[k];
  const double margin = std::isfinite(width) ? 1e-8 * width : 0.0;
  return s.room_up(k) <= margin || s.room_down(k) <= margin;
}

struct Selector {
  Rule rule;
  std::int64_t previous_up = -1, previous_down = -1;  // the last pair that moved
  Choice pending{};  // chosen, but its rows were not at hand: taken up again instead of choosing anew
  std::vector<Extreme> extremes{};

  Choice select(const DualState& s, const RowStore& rows) {
    Choice choice;
    Extreme worst;
    bool single = false;
    if (s.groups == 1 && s.singles == 0) {  // every machine with a bias: one group for all
      worst = extremes_of_one_group(s);
      choice.violation = worst.high - worst.low;
    } else {
      extremes_of_groups(s, extremes);
      choice.violation = -kInfinity;
      for (std::int32_t g = 0; g <= s.groups; ++g) {
        const Extreme& e = extremes[g];
        const bool free = g == s.groups;
        const double violation = free ? std::fmax(e.high, -e.low) : e.high - e.low;
        if (violation > choice.violation) { choice.violation = violation; worst = e; single = free; }
      }
    }
    if (!(choice.violation > 0.0)) return choice;
    if (single) { choose_single(s, rule, choice); return choice; }
    if (rule == Rule::maximum_gain && select_around_previous(s, rows, choice)) return choice;
    choice.up = worst.high_at;
    if (rule == Rule::most_violating_pair) { choice.down = worst.low_at; return choice; }
    const double* row = rows.find(choice.up, s.active);
    if (!row) { choice.missing = choice.up; return choice; }
    choice.down = second_order_partner(s, choice.up, row);
    return choice;
  }

 private:
  bool select_around_previous(const DualState& s, const RowStore& rows, Choice& choice) {
    if (previous_up < 0 || previous_down < 0) return false;
    if (in_corner(s, previous_up) && in_corner(s, previous_down)) return false;
    double best = 0.0;
    for (std::int64_t p : {previous_up, previous_down}) {
      const double* row = rows.find(p, s.active);
      if (!row) { choice.missing = p; return true; }
      maximum_gain_partner(s, p, row, best, choice);
    }
    return best > 0.0;
  }
};

}  // namespace maxmargin
