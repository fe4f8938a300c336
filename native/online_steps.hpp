// LASVM on the signed dual (Bordes et al. 2005; second order: Glasmachers & Igel 2008): for each sample of a stream,
//
//   PROCESS     a pair step of the new sample with a partner among the samples that are kept
//   REPROCESS   a pair step among the samples that are kept
//   remove      after each step, samples with b = 0 that cannot be part of a violating pair, if removal is enabled
//
// Slots hold samples in the order of arrival. Those before `length` have gradients that are kept up to date; a slot
// whose bounds are equal is not kept in this model. Without a group a step moves one variable.
//
// The loop returns when all arrivals are processed, a row is not cached, or the time limit is reached, and can be
// called again with the arrays as it left them: it selects the same pair again.
#pragma once

#include <chrono>
#include <cstdint>

#include "pairwise.hpp"
#include "solver_loops.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr std::int64_t kMaxWithoutPartner = 8;  // samples that are kept before the first possible partner arrives

inline bool is_kept(const DualState& s, std::int64_t k) { return s.lower[k] < s.upper[k]; }

// Σ b row, summed in order. Unused slots add 0, so the sum does not depend on their number or on how the stream is
// divided into batches. After an unclipped step two gradients are equal, and the last digit decides about the next
// pair.
template <class Value> inline double product(const double* dual, const Value* row, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) sum += dual[k] * static_cast<double>(row[k]);
  return sum;
}

// The partner of `k` by second-order gain, for k increasing (sign 1) or decreasing (sign −1), and that gain.
template <class Value>
inline std::int64_t partner_of(const DualState& s, std::int64_t k, const Value* row, double sign, double& best) {
  const double g_k = s.gradient[k], d_k = s.diagonal[k];
  LaneArgmax gains{repeat(-kInfinity), IndexLanes{} - 1};
  IndexLanes here = lane_indices();
  std::int64_t p = 0;
  for (; p + kLanes <= s.active; p += kLanes, here += kLanes) {
    const Lanes slope = sign * (g_k - load(s.gradient + p)), b = load(s.dual + p);
    const Lanes curved = d_k + load(s.diagonal + p) - 2.0 * load(row + p);
    const Lanes gain = slope * slope / (curved > kMinCurvature ? curved : repeat(kMinCurvature));
    gains.update(gain, (slope > 0.0) & (sign > 0.0 ? b > load(s.lower + p) : b < load(s.upper + p)), here);
  }
  double highest = -kInfinity;
  std::int64_t partner = -1;
  gains.reduce(highest, partner);
  for (; p < s.active; ++p) {
    const double slope = sign * (g_k - s.gradient[p]);
    if (!(slope > 0.0) || !(sign > 0.0 ? can_decrease(s, p) : can_increase(s, p))) continue;
    const double gain = unclipped_gain(slope, curvature(s, k, p, row));
    if (gain > highest) {
      highest = gain;
      partner = p;
    }
  }
  if (!(highest > best)) return -1;
  best = highest;
  return partner;
}

template <class Value> class OnlineSolver {
 public:
  OnlineSolver(const OnlineArrays& arrays, RowCache<Value>& rows, const Arrivals& stream, Rule rule,
               OnlineProgress& progress, double tolerance)
      : m(arrays),
        rows(rows),
        stream(stream),
        rule(rule),
        at(progress),
        tolerance(tolerance),
        s{arrays.dual,     arrays.gradient, arrays.lower,           arrays.upper,
          arrays.diagonal, arrays.ridge,    arrays.group,           nullptr,
          progress.length, progress.length, arrays.grouped ? 1 : 0, arrays.grouped ? 0 : progress.length} {}

  Outcome run(double max_seconds) {
    const auto start = std::chrono::steady_clock::now();
    while (at.next < stream.count) {
      if (at.phase == 0 && !insert()) return out;
      if (at.phase == 1 && !process()) return out;
      if (at.phase == 2 && !reprocess()) return out;
      at.phase = 0;
      ++at.next;
      if (seconds_since(start) > max_seconds) return out;
    }
    out.reason = StopReason::optimal;
    return out;
  }

 private:
  const OnlineArrays& m;
  RowCache<Value>& rows;
  const Arrivals& stream;
  const Rule rule;
  OnlineProgress& at;
  const double tolerance;
  DualState s;
  Outcome out;

  bool needs(std::int64_t row) {
    out.reason = StopReason::needs_row;
    out.row = row;
    return false;
  }

  // Insert the new sample, with its gradient. The next phase is 1 (PROCESS), 2 (REPROCESS) if the sample is kept
  // already or there is none, or 3 (none) if its bounds exclude it from this model.
  bool insert() {
    const std::int64_t k = stream.slot[at.next];
    if (k < 0) {
      at.phase = 2;
      return true;
    }
    const bool included = stream.lower[at.next] < stream.upper[at.next], is_new = k == at.length;
    if (!is_new && is_kept(s, k)) {
      at.phase = 2;
      return true;
    }
    const Value* row = nullptr;
    if (included) {
      row = find(rows, k, is_new ? k : at.length);
      if (!row) return needs(k);
    }
    if (is_new) {
      m.gradient[k] = included ? stream.linear[at.next] - product(m.dual, row, k) : 0.0;
      m.dual[k] = m.lower[k] = m.upper[k] = 0.0;
      at.length = s.size = s.active = k + 1;
      if (!m.grouped) s.singles = k + 1;
    }
    if (!included) {
      at.phase = 3;
      return true;
    }
    m.lower[k] = stream.lower[at.next];
    m.upper[k] = stream.upper[at.next];
    const double value = stream.start[at.next];
    if (value != 0.0) {
      add_row(m.gradient, row, -value, at.length);
      m.dual[k] = value;
    }
    at.phase = 1;
    return true;
  }

  bool process() {
    const std::int64_t k = stream.slot[at.next];
    const Value* row = find(rows, k, at.length);
    if (!row) return needs(k);
    std::int64_t up = -1, down = -1;
    bool has_partners = true, violates;
    if (!m.grouped) {
      const double g = s.gradient[k];
      violates = (can_increase(s, k) && g > tolerance) || (can_decrease(s, k) && -g > tolerance);
      (g > 0.0 ? up : down) = k;
    } else {
      const GradientExtremes ends = extremes();
      const double as_up = can_increase(s, k) ? s.gradient[k] - ends.lowest : 0.0;
      const double as_down = can_decrease(s, k) ? ends.highest - s.gradient[k] : 0.0;
      violates = as_up > tolerance || as_down > tolerance;
      has_partners = can_increase(s, k) ? ends.lowest < kInfinity : ends.highest > -kInfinity;
      if (violates && rule == Rule::most_violating_pair) {
        up = as_up >= as_down ? k : ends.highest_at;
        down = as_up >= as_down ? ends.lowest_at : k;
      } else if (violates) {
        double best = -kInfinity;
        if (can_increase(s, k)) {
          down = partner_of(s, k, row, 1.0, best);
          up = k;
        }
        const std::int64_t above = can_decrease(s, k) ? partner_of(s, k, row, -1.0, best) : -1;
        if (above >= 0) {
          up = above;
          down = k;
        }
      }
    }
    if (violates) {
      if (!step(up, down)) return false;
    } else if (m.selective && stream.start[at.next] == 0.0 && (has_partners || count_kept() > kMaxWithoutPartner)) {
      m.lower[k] = m.upper[k] = 0.0;  // it cannot change the model
    }
    at.phase = 2;
    return true;
  }

  bool reprocess() {
    GradientExtremes extremes[2];
    SelectionMemory memory{rule, -1, -1, -1, -1, 0.0, extremes};
    const SelectedPair pair = select(s, rows, memory);
    out.violation = pair.violation > 0.0 ? pair.violation : 0.0;
    if (!(pair.violation > tolerance)) return true;
    if (pair.missing >= 0) return needs(pair.missing);
    return step(pair.up, pair.down);
  }

  // Take a step, and remove samples after it. A step that is lost in rounding errors is skipped.
  bool step(std::int64_t up, std::int64_t down) {
    if (!pair_step(s, rows, up, down, out)) return out.reason == StopReason::precision;
    if (!m.selective) return true;
    const GradientExtremes ends = m.grouped ? extremes() : GradientExtremes{0.0, 0.0, -1, -1};
    for (std::int64_t k = 0; k < at.length; ++k) {
      const bool useful = m.dual[k] != 0.0 || (m.upper[k] > 0.0 && m.gradient[k] > ends.lowest) ||
                          (m.lower[k] < 0.0 && m.gradient[k] < ends.highest);
      m.lower[k] = useful ? m.lower[k] : 0.0;
      m.upper[k] = useful ? m.upper[k] : 0.0;
    }
    return true;
  }

  GradientExtremes extremes() const {
    GradientExtremes of_groups[2];
    find_extremes(s, of_groups);
    return of_groups[0];
  }

  std::int64_t count_kept() const {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < at.length; ++k) count += is_kept(s, k);
    return count;
  }
};

template <class Value>
Outcome run_online(const OnlineArrays& arrays, RowCache<Value>& rows, const Arrivals& stream, Rule rule,
                   OnlineProgress& progress, double tolerance, double max_seconds) {
  return OnlineSolver<Value>(arrays, rows, stream, rule, progress, tolerance).run(max_seconds);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
