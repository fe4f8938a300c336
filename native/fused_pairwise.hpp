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

// Comparisons of as many vectors at a time are independent of each other: one alone would wait for the one before it.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTogether = 4;
#else
constexpr int kTogether = 2;  // of 16 registers
#endif

// Long rows come from memory, whose latency the processor's own prefetching hides only within a page: values so far
// ahead are requested beforehand. Short rows stay in the caches.
constexpr std::int64_t kAhead = 1024;

template <class Value> MAXMARGIN_INLINE void prefetch(const Value* values, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(Value);
  for (std::int64_t k = 0; k < count; k += line) __builtin_prefetch(values + k);
}

// The beginning of a long run, before a pass over it.
template <class Value> MAXMARGIN_INLINE void prefetch_beginning(const Value* row, Run run) {
  if (run.end - run.begin > kAhead) prefetch(row + (run.begin + run.shift), kAhead);
}

// What will follow after a while, in a pass that is at position k.
template <class Value> MAXMARGIN_INLINE void prefetch_ahead(const Value* row, Run run, std::int64_t k) {
  if (k + kAhead < run.end) prefetch(row + (k + run.shift + kAhead), kTogether * kLanes);
}

// The extremes of some lanes.
struct LaneExtremes {
  LaneArgmax highest{repeat(-kInfinity), IndexLanes{} - 1};
  Lanes lowest = repeat(kInfinity);

  MAXMARGIN_INLINE void update(Lanes up, Lanes down, IndexLanes here) {
    highest.update(up, here);
    lowest = down < lowest ? down : lowest;
  }

  MAXMARGIN_INLINE void reduce(GradientExtremes& e) const {
    highest.reduce(e.highest, e.highest_at);
    for (int l = 0; l < kLanes; ++l) e.lowest = smaller(e.lowest, lowest[l]);
  }
};

// gradient −= step · (row_up − row_down) if Update; then the extremes of the gradient of a run, as find_extremes
// computes them, but for the position of the lowest. The two are one loop because memory limits its speed: apart they
// would read the gradient twice. Shifts take the place of the dual variables and their bounds, which would be one more
// array to read.
template <bool Update, class Value>
inline void update_and_find_extremes(const DualState& s, const FusedArrays<Value>& f, Run run, const Value* row_up,
                                     const Value* row_down, double step, GradientExtremes& e) {
  LaneExtremes extremes[kTogether];
  IndexLanes here = lane_indices() + run.begin;
  const auto visit = [&](std::int64_t k, LaneExtremes& of_lanes) __attribute__((always_inline)) {
    Lanes g = load(s.gradient + k);
    if constexpr (Update) {
      g -= step * (load(row_up + (k + run.shift)) - load(row_down + (k + run.shift)));
      store_vector(s.gradient + k, g);
    }
    of_lanes.update(g + load(f.increase_shift + k), g + load(f.decrease_shift + k), here);
    here += kLanes;
  };
  if constexpr (Update) prefetch_beginning(row_down, run);
  std::int64_t k = run.begin;
  for (; k + kTogether * kLanes <= run.end; k += kTogether * kLanes) {
    if constexpr (Update) prefetch_ahead(row_down, run, k);
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) visit(k + v * kLanes, extremes[v]);
  }
  for (; k + kLanes <= run.end; k += kLanes) visit(k, extremes[0]);
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) extremes[v].reduce(e);
  for (; k < run.end; ++k) {
    if constexpr (Update)
      s.gradient[k] -=
          step * (static_cast<double>(row_up[k + run.shift]) - static_cast<double>(row_down[k + run.shift]));
    const double up = s.gradient[k] + f.increase_shift[k];
    if (up > e.highest) {
      e.highest = up;
      e.highest_at = k;
    }
    e.lowest = smaller(e.lowest, s.gradient[k] + f.decrease_shift[k]);
  }
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

// The largest gain so far in each lane, and the position of its first occurrence.
template <class Value> struct LaneGains {
  using Gains = typename GainVector<Value>::Values;
  using Positions = typename GainVector<Value>::Positions;

  Gains most = {};
  Positions at = Positions{} - 1;

  MAXMARGIN_INLINE void update(Gains gains, Positions here) {
    const Positions better = gains > most;
    most = better ? gains : most;
    at = better ? here : at;
  }

  MAXMARGIN_INLINE void reduce(Value& best, std::int64_t& partner) const {
    for (int l = 0; l < kLanes; ++l)
      if (at[l] >= 0 && (most[l] > best || (most[l] == best && at[l] < partner))) {
        best = most[l];
        partner = at[l];
      }
  }
};

// The partner of `i` in a run with the largest gain without a box (1.27), if that exceeds `best`, else −1.
template <class Value>
inline std::int64_t second_order_partner(const DualState& s, const FusedArrays<Value>& f, Run run, std::int64_t i,
                                         const Value* row, Value& best) {
  using Gains = typename LaneGains<Value>::Gains;
  constexpr Value none = 0, two = 2, least = static_cast<Value>(kMinCurvature);
  const double g = s.gradient[i] + f.increase_shift[i];
  const Value diagonal = f.diagonal[i];
  LaneGains<Value> gains[kTogether];
  typename LaneGains<Value>::Positions here;
  for (int l = 0; l < kLanes; ++l) here[l] = static_cast<std::int32_t>(run.begin) + l;
  const auto visit = [&](std::int64_t k, LaneGains<Value>& of_lanes) __attribute__((always_inline)) {
    const Gains slope = __builtin_convertvector(g - (load(s.gradient + k) + load(f.decrease_shift + k)), Gains);
    const Gains curved = (diagonal + load_gains(f.diagonal + k)) - two * load_gains(row + (k + run.shift));
    const Gains positive = slope > none ? slope : Gains{};
    of_lanes.update(positive * positive / (curved > least ? curved : least - Gains{}), here);
    here += kLanes;
  };
  prefetch_beginning(row, run);
  std::int64_t k = run.begin;
  for (; k + kTogether * kLanes <= run.end; k += kTogether * kLanes) {
    prefetch_ahead(row, run, k);
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) visit(k + v * kLanes, gains[v]);
  }
  for (; k + kLanes <= run.end; k += kLanes) visit(k, gains[0]);
  std::int64_t partner = -1;
#pragma GCC unroll 4
  for (int v = 0; v < kTogether; ++v) gains[v].reduce(best, partner);
  for (; k < run.end; ++k) {
    const Value slope = static_cast<Value>(g - (s.gradient[k] + f.decrease_shift[k]));
    const Value curved = (diagonal + f.diagonal[k]) - two * row[k + run.shift], positive = slope > none ? slope : none;
    const Value gain = positive * positive / (curved > least ? curved : least);
    if (gain > best) {
      best = gain;
      partner = k;
    }
  }
  return partner;
}

// One step as passes over all active positions, chunk by chunk. The result does not depend on their length or order:
// among equal values the first position counts.
template <class Value> struct PairPasses {
  const DualState& s;
  const GroupRuns& runs;
  const FusedArrays<Value>& f;
  const DividedPasses& division;
  const Value *row_up = nullptr, *row_down = nullptr;
  double step = 0.0;
  std::int64_t up = -1;
  bool divided = false;

  // gradient −= step · (row_up − row_down) if Update; returns the extremes of the group of the largest violation.
  template <bool Update> GradientExtremes update_and_find_worst_group() {
    const std::int64_t chunks = run(update_chunk<Update>);
    GradientExtremes* of_group = division.results[0].of_group;
    for (std::int64_t c = 1; c < chunks; ++c)
      for (std::int32_t g = 0; g < s.groups; ++g) {
        const GradientExtremes& e = division.results[c].of_group[g];
        if (e.highest > of_group[g].highest) {
          of_group[g].highest = e.highest;
          of_group[g].highest_at = e.highest_at;
        }
        of_group[g].lowest = smaller(of_group[g].lowest, e.lowest);
      }
    GradientExtremes worst = of_group[0];
    for (std::int32_t g = 1; g < s.groups; ++g)
      if (of_group[g].highest - of_group[g].lowest > worst.highest - worst.lowest) worst = of_group[g];
    return worst;
  }

  // The member of the group of `up` with the largest gain together with it, −1 if none has a gain.
  std::int64_t second_order_partner() {
    const std::int64_t chunks = run(partner_chunk);
    const PassResult* best = division.results;
    for (std::int64_t c = 1; c < chunks; ++c)
      if (division.results[c].gain > best->gain) best = division.results + c;
    return best->partner;
  }

 private:
  // Returns the number of chunks.
  std::int64_t run(ChunkRunner::Work work) {
    if (!divided) {
      work(this, 0);
      return 1;
    }
    division.runner->run(division.runner->team, work, this);
    return division.chunks;
  }

  // The part of a run that is in a chunk.
  Run part_of(int run, std::int64_t chunk) const {
    const Run whole = runs.at(run);
    if (!divided) return whole;
    const std::int64_t begin = chunk * division.length, end = begin + division.length;
    return {whole.begin > begin ? whole.begin : begin, whole.end < end ? whole.end : end, whole.shift};
  }

  template <bool Update> static void update_chunk(void* context, std::int64_t chunk) {
    const PairPasses& p = *static_cast<PairPasses*>(context);
    GradientExtremes* of_group = p.division.results[chunk].of_group;
    for (std::int32_t g = 0; g < p.s.groups; ++g) of_group[g] = {-kInfinity, kInfinity, -1, -1};
    for (int r = 0; r < p.runs.count; ++r) {
      const Run run = p.part_of(r, chunk);
      if (run.begin < run.end)
        update_and_find_extremes<Update>(p.s, p.f, run, p.row_up, p.row_down, p.step, of_group[p.s.group[run.begin]]);
    }
  }

  static void partner_chunk(void* context, std::int64_t chunk) {
    const PairPasses& p = *static_cast<PairPasses*>(context);
    Value best = 0;
    std::int64_t partner = -1;
    for (int r = 0; r < p.runs.count; ++r) {
      const Run run = p.part_of(r, chunk);
      if (run.begin >= run.end || p.s.group[run.begin] != p.s.group[p.up]) continue;
      const std::int64_t in_run = maxmargin::MAXMARGIN_LEVEL::second_order_partner(p.s, p.f, run, p.up, p.row_up, best);
      if (in_run >= 0) partner = in_run;
    }
    p.division.results[chunk].gain = best;
    p.division.results[chunk].partner = partner;
  }
};

// Whether passes are divided among threads: as many steps are timed with and without, and the faster way is kept. Both
// take the same steps.
class DivisionTrial {
 public:
  explicit DivisionTrial(bool possible) : possible_(possible) {}

  bool divided_at(std::int64_t step) {
    if (!possible_ || step < kTrialSteps || step > 3 * kTrialSteps) return divided_;
    const auto now = std::chrono::steady_clock::now();
    if (step == kTrialSteps) undivided_began_ = now;
    if (step == 2 * kTrialSteps) {
      divided_began_ = now;
      divided_ = true;
    }
    if (step == 3 * kTrialSteps) divided_ = now - divided_began_ < divided_began_ - undivided_began_;
    return divided_;
  }

 private:
  static constexpr std::int64_t kTrialSteps = 8;  // the first eight are not timed: other threads may still be asleep
  bool possible_, divided_ = false;
  std::chrono::steady_clock::time_point undivided_began_, divided_began_;
};

template <class Rows>
inline Outcome run_fused_pairwise(DualState& s, Rows& rows, const GroupRuns& runs,
                                  const FusedArrays<typename Rows::Value>& f, const DividedPasses& division,
                                  double tolerance, std::int64_t max_steps, double max_seconds) {
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
  PairPasses<Value> passes{s, runs, f, division};
  DivisionTrial trial(division.runner != nullptr);
  GradientExtremes extremes = passes.template update_and_find_worst_group<false>();
  for (;;) {
    out.violation = extremes.highest - extremes.lowest;
    if (std::isnan(out.violation)) return stop(StopReason::precision);
    if (!(out.violation > tolerance)) return stop(StopReason::optimal);
    if (out.steps >= max_steps) return out;
    if (out.steps % kStepsPerClock == kStepsPerClock - 1 && seconds_since(start) > max_seconds) return out;

    passes.divided = trial.divided_at(out.steps);
    const std::int64_t up = extremes.highest_at;
    const Value* row_up = find(rows, up, s.active);
    if (!row_up) return need(up);
    passes.up = up;
    passes.row_up = row_up;
    const std::int64_t down = passes.second_order_partner();
    if (down < 0) return stop(StopReason::precision);
    const Value* row_down = find(rows, down, s.active);
    if (!row_down) return need(down);

    const double slope = gradient_up(s, up) - gradient_down(s, down);
    const double curved = s.diagonal[up] + s.diagonal[down] - 2.0 * static_cast<double>(row_up[runs.column(down)]);
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
    passes.row_down = row_down;
    passes.step = step;
    extremes = passes.template update_and_find_worst_group<true>();
    out.gain += step * (slope - 0.5 * step * curved);
    ++out.steps;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
