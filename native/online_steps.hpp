// LASVM on the signed dual (Bordes et al. 2005; second order: Glasmachers & Igel 2008): a stream of samples, and for
// each
//
//   PROCESS     a pair step of the newcomer and a partner in the memory
//   REPROCESS   a pair step within the memory
//   remove      after each step, who has b = 0 and could not be part of a violating pair, unless all are to stay
//
// Slots hold samples in the order of arrival. Those before `length` have gradients that are kept up to date; a slot
// whose two bounds are equal is not in the memory of this machine. Without a group a step moves one variable.
//
// The loop returns when all arrivals are taken, a row is not at hand, or its time is up, and is entered again with the
// arrays as it left them: whatever it has chosen it chooses again.
#pragma once

#include <chrono>
#include <cstdint>

#include "loops.hpp"
#include "pairwise.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr std::int64_t kSeeds = 8;  // so many samples wait for the first that could be their partner

inline bool in_memory(const DualState& s, std::int64_t k) { return s.lower[k] < s.upper[k]; }

// Σ b row, one term after the other. Slots that nobody uses add 0, so the sum does not depend on how many of them there
// are, nor on how the stream was cut into batches: after an unclipped step two gradients are equal, and the last digit
// decides.
template <class Value> inline double product(const double* dual, const Value* row, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) sum += dual[k] * static_cast<double>(row[k]);
  return sum;
}

// The partner of `k` by second-order gain, for k growing (sign 1) or falling (sign −1), and that gain.
template <class Value>
inline std::int64_t partner_of(const DualState& s, std::int64_t k, const Value* row, double sign, double& best) {
  const double g_k = s.gradient[k], d_k = s.diagonal[k];
  LaneMaximum gains{spread(-kInfinity), IndexLanes{} - 1};
  IndexLanes here = counting();
  std::int64_t p = 0;
  for (; p + kLanes <= s.active; p += kLanes, here += kLanes) {
    const Lanes slope = sign * (g_k - load(s.gradient + p)), b = load(s.dual + p);
    const Lanes bend = d_k + load(s.diagonal + p) - 2.0 * load(row + p);
    const Lanes gain = slope * slope / (bend > kTinyCurvature ? bend : spread(kTinyCurvature));
    gains.see(gain, (slope > 0.0) & (sign > 0.0 ? b > load(s.lower + p) : b < load(s.upper + p)), here);
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

// One machine and the stream that it sees.
template <class Value> class OnlineMachine {
 public:
  OnlineMachine(const OnlineArrays& machine, RowStore<Value>& rows, const Arrivals& stream, Rule rule,
                OnlineProgress& progress, double tolerance)
      : m(machine),
        rows(rows),
        stream(stream),
        rule(rule),
        at(progress),
        tolerance(tolerance),
        s{machine.dual,     machine.gradient, machine.lower,           machine.upper,
          machine.diagonal, machine.ridge,    machine.group,           nullptr,
          progress.length,  progress.length,  machine.grouped ? 1 : 0, machine.grouped ? 0 : progress.length} {}

  Outcome run(double max_seconds) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    while (at.next < stream.count) {
      if (at.phase == 0 && !enter()) return out;
      if (at.phase == 1 && !process()) return out;
      if (at.phase == 2 && !reprocess()) return out;
      at.phase = 0;
      ++at.next;
      if (std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return out;
    }
    out.reason = Reason::optimal;
    return out;
  }

 private:
  const OnlineArrays& m;
  RowStore<Value>& rows;
  const Arrivals& stream;
  const Rule rule;
  OnlineProgress& at;
  const double tolerance;
  DualState s;
  Outcome out;

  bool wants(std::int64_t row) {
    out.reason = Reason::needs_row;
    out.row = row;
    return false;
  }

  // Let the newcomer in, with its gradient. Phase 1: it is new. 2: it is there already, or nobody came. 3: it takes no
  // part.
  bool enter() {
    const std::int64_t k = stream.slot[at.next];
    if (k < 0) {
      at.phase = 2;
      return true;
    }
    const bool takes_part = stream.lower[at.next] < stream.upper[at.next], fresh = k == at.length;
    if (!fresh && in_memory(s, k)) {
      at.phase = 2;
      return true;
    }
    const Value* row = nullptr;
    if (takes_part) {
      row = find(rows, k, fresh ? k : at.length);
      if (!row) return wants(k);
    }
    if (fresh) {
      m.gradient[k] = takes_part ? stream.linear[at.next] - product(m.dual, row, k) : 0.0;
      m.dual[k] = m.lower[k] = m.upper[k] = 0.0;
      at.length = s.size = s.active = k + 1;
      if (!m.grouped) s.singles = k + 1;
    }
    if (!takes_part) {
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
    if (!row) return wants(k);
    std::int64_t up = -1, down = -1;
    bool partners = true, violates;
    if (!m.grouped) {
      const double g = s.gradient[k];
      violates = (can_increase(s, k) && g > tolerance) || (can_decrease(s, k) && -g > tolerance);
      (g > 0.0 ? up : down) = k;
    } else {
      const GradientExtremes ends = extremes();
      const double as_up = can_increase(s, k) ? s.gradient[k] - ends.lowest : 0.0;
      const double as_down = can_decrease(s, k) ? ends.highest - s.gradient[k] : 0.0;
      violates = as_up > tolerance || as_down > tolerance;
      partners = can_increase(s, k) ? ends.lowest < kInfinity : ends.highest > -kInfinity;
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
    } else if (m.selective && stream.start[at.next] == 0.0 && (partners || waiting() > kSeeds)) {
      m.lower[k] = m.upper[k] = 0.0;  // it would change nothing
    }
    at.phase = 2;
    return true;
  }

  bool reprocess() {
    GradientExtremes extremes[2];
    SelectionMemory nothing{rule, -1, -1, -1, -1, 0.0, extremes};
    const Choice choice = select(s, rows, nothing);
    out.violation = choice.violation > 0.0 ? choice.violation : 0.0;
    if (!(choice.violation > tolerance)) return true;
    if (choice.missing >= 0) return wants(choice.missing);
    return step(choice.up, choice.down);
  }

  // A step, and who leaves after it. A step that rounding swallows is none.
  bool step(std::int64_t up, std::int64_t down) {
    if (!pair_step(s, rows, up, down, out)) return out.reason == Reason::precision;
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

  std::int64_t waiting() const {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < at.length; ++k) count += in_memory(s, k);
    return count;
  }
};

template <class Value>
Outcome run_online(const OnlineArrays& machine, RowStore<Value>& rows, const Arrivals& stream, Rule rule,
                   OnlineProgress& progress, double tolerance, double max_seconds) {
  return OnlineMachine<Value>(machine, rows, stream, rule, progress, tolerance).run(max_seconds);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
