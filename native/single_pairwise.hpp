// Second-order pair steps on one group with the gradient in single precision, for a part of a problem that is solved
// only so far before the gradient of all its variables is computed again.
//
// The algorithm of fused_pairwise.hpp, with twice as many values in a vector and half as many bytes to read in each
// pass. Dual variables, steps and bounds are in double precision. Arrays and rows are padded to whole vectors, with
// values that no rule selects.
#pragma once

#include <cmath>
#include <cstdint>

#include "pairwise.hpp"
#include "simd.hpp"
#include "solver_loops.hpp"
#include "working_set.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// The largest instruction set's vector, and the alignment of rows in memory.
constexpr std::int64_t kSingleBlock = 16;

inline std::int64_t padded(std::int64_t size) { return (size + kSingleBlock - 1) / kSingleBlock * kSingleBlock; }

inline float* aligned(float* values) {
  const auto address = reinterpret_cast<std::uintptr_t>(values);
  constexpr std::uintptr_t bytes = kSingleBlock * sizeof(float);
  return reinterpret_cast<float*>((address + bytes - 1) / bytes * bytes);
}

// The gradient, what is added to it before it is compared (as in FusedArrays), and the diagonal.
struct SingleArrays {
  float *gradient, *increase_shift, *decrease_shift, *diagonal;
};

inline void update_shifts(const DualState& s, const SingleArrays& f, std::int64_t k) {
  const double b = s.dual[k], kink = s.kink ? s.kink[k] : 0.0;
  f.increase_shift[k] = static_cast<float>(!can_increase(s, k) ? -kInfinity : b < 0.0 ? kink : -kink);
  f.decrease_shift[k] = static_cast<float>(!can_decrease(s, k) ? kInfinity : b > 0.0 ? -kink : kink);
}

// The steps of some passes, with their positions in vectors.
class SinglePasses {
 public:
  SinglePasses(const DualState& s, const SingleArrays& f) : f_(f), size_(padded(s.size)) {
    for (std::int64_t k = 0; k < s.size; ++k) {
      f.gradient[k] = static_cast<float>(s.gradient[k]);
      f.diagonal[k] = static_cast<float>(s.diagonal[k]);
      update_shifts(s, f, k);
    }
    for (std::int64_t k = s.size; k < size_; ++k) {
      f.gradient[k] = f.diagonal[k] = 0.0f;
      f.increase_shift[k] = static_cast<float>(-kInfinity);
      f.decrease_shift[k] = static_cast<float>(kInfinity);
    }
  }

  float highest = 0.0f, lowest = 0.0f;
  std::int64_t highest_at = -1;

  // gradient −= step · (row_up − row_down) if Update; then its extremes.
  template <bool Update> void update_and_find_extremes(const float* row_up, const float* row_down, float step) {
    Argmax most[kUnrolled];
    Values least[kUnrolled];
    Positions here = lane_positions();
    for (int v = 0; v < kUnrolled; ++v) least[v] = repeat(static_cast<float>(kInfinity));
    const auto visit = [&](std::int64_t k, int v) __attribute__((always_inline)) {
      Values g = load_vector(f_.gradient + k);
      if constexpr (Update) {
        g -= step * (load_vector(row_up + k) - load_vector(row_down + k));
        store_vector(f_.gradient + k, g);
      }
      most[v].update(g + load_vector(f_.increase_shift + k), here);
      const Values down = g + load_vector(f_.decrease_shift + k);
      least[v] = down < least[v] ? down : least[v];
      here += kWidth<float>;
    };
    each_vector(visit);
    for (int v = 1; v < kUnrolled; ++v) {
      most[0].merge(most[v]);
      least[0] = least[v] < least[0] ? least[v] : least[0];
    }
    highest = most[0].reduce(highest_at);
    lowest = least[0][0];
    for (int l = 1; l < kWidth<float>; ++l) lowest = least[0][l] < lowest ? least[0][l] : lowest;
  }

  // The partner of the highest with the largest gain without a box (1.27), −1 if none has a gain. To choose one, gains
  // with a relative error of a hundredth suffice; divisions would take most of the time.
  std::int64_t second_order_partner(const float* row) const {
    constexpr float none = 0.0f, two = 2.0f, curvature = static_cast<float>(kMinCurvature);
    const float highest_diagonal = f_.diagonal[highest_at], top = highest;
    Argmax most[kUnrolled];
    Positions here = lane_positions();
    const auto visit = [&](std::int64_t k, int v) __attribute__((always_inline)) {
      const Values slope = top - (load_vector(f_.gradient + k) + load_vector(f_.decrease_shift + k));
      const Values curved = (highest_diagonal + load_vector(f_.diagonal + k)) - two * load_vector(row + k);
      const Values positive = slope > none ? slope : Values{};
      most[v].update(positive * positive * reciprocal(curved > curvature ? curved : repeat(curvature)), here);
      here += kWidth<float>;
    };
    each_vector(visit);
    for (int v = 1; v < kUnrolled; ++v) most[0].merge(most[v]);
    std::int64_t partner;
    return most[0].reduce(partner) > none ? partner : -1;
  }

 private:
  using Values = Vec<float>;
  using Positions = IntegerVec<float>;
  static constexpr int kUnrolled = 4;  // independent chains of comparisons

  struct Argmax {
    Values value = repeat(static_cast<float>(-kInfinity));
    Positions at = Positions{} - 1;

    MAXMARGIN_INLINE void update(Values candidate, Positions here) {
      const Positions better = candidate > value;
      value = better ? candidate : value;
      at = better ? here : at;
    }
    // Among equal values the first position counts.
    MAXMARGIN_INLINE void merge(const Argmax& other) {
      const Positions better = (other.value > value) | ((other.value == value) & (other.at < at));
      value = better ? other.value : value;
      at = better ? other.at : at;
    }
    float reduce(std::int64_t& best_at) const {
      int best = 0;
      for (int l = 1; l < kWidth<float>; ++l)
        if (value[l] > value[best] || (value[l] == value[best] && at[l] < at[best])) best = l;
      best_at = at[best];
      return value[best];
    }
  };

  // 1/x for positive x: a linear function of the exponent and the fraction, and a Newton step.
  static MAXMARGIN_INLINE Values reciprocal(Values x) {
    Positions bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits = kReciprocalBits - bits;
    Values y;
    std::memcpy(&y, &bits, sizeof y);
    return y * (2.0f - x * y);
  }
  static constexpr std::int32_t kReciprocalBits = 0x7ef311c3;

  static Positions lane_positions() {
    Positions v;
    for (int l = 0; l < kWidth<float>; ++l) v[l] = l;
    return v;
  }

  template <class Visit> MAXMARGIN_INLINE void each_vector(const Visit& visit) const {
    constexpr std::int64_t width = kWidth<float>;
    std::int64_t k = 0;
    for (; k + kUnrolled * width <= size_; k += kUnrolled * width)
#pragma GCC unroll 4
      for (int v = 0; v < kUnrolled; ++v) visit(k + v * width, v);
    for (; k < size_; k += width) visit(k, 0);
  }

  const SingleArrays& f_;
  const std::int64_t size_;
};

// Pair steps until the violation in single precision is within the tolerance, or their number is reached. Rows are
// padded and aligned.
template <class Rows>
inline Outcome run_single_pairwise(DualState& s, Rows& rows, const SingleArrays& f, double tolerance,
                                   std::int64_t max_steps) {
  Outcome out;
  SinglePasses passes(s, f);
  passes.template update_and_find_extremes<false>(nullptr, nullptr, 0.0f);
  const auto stop = [&](StopReason reason) {
    for (std::int64_t k = 0; k < s.size; ++k) s.gradient[k] = static_cast<double>(f.gradient[k]);
    out.reason = reason;
    return out;
  };
  for (;;) {
    out.violation = static_cast<double>(passes.highest) - static_cast<double>(passes.lowest);
    if (std::isnan(out.violation)) return stop(StopReason::precision);
    if (!(out.violation > tolerance)) return stop(StopReason::optimal);
    if (out.steps >= max_steps) return stop(StopReason::paused);
    const std::int64_t up = passes.highest_at;
    const float* row_up = find(rows, up, s.size);
    const std::int64_t down = passes.second_order_partner(row_up);
    if (down < 0) return stop(StopReason::precision);
    const float* row_down = find(rows, down, s.size);

    const double slope = static_cast<double>(f.gradient[up] + f.increase_shift[up]) -
                         static_cast<double>(f.gradient[down] + f.decrease_shift[down]);
    const double curved = s.diagonal[up] + s.diagonal[down] - 2.0 * static_cast<double>(row_up[down]);
    const double slack_up = slack_to_upper(s, up), slack_down = slack_to_lower(s, down);
    const double step = smaller(curved > 0.0 ? slope / curved : kInfinity, smaller(slack_up, slack_down));
    if (std::isinf(step)) return stop(StopReason::unbounded);
    const double new_up = increased(s, up, step, slack_up), new_down = decreased(s, down, step, slack_down);
    if (new_up == s.dual[up] && new_down == s.dual[down]) return stop(StopReason::precision);
    s.dual[up] = new_up;
    s.dual[down] = new_down;
    f.gradient[up] -= static_cast<float>(s.ridge[up] * step);
    f.gradient[down] += static_cast<float>(s.ridge[down] * step);
    update_shifts(s, f, up);
    update_shifts(s, f, down);
    passes.template update_and_find_extremes<true>(row_up, row_down, static_cast<float>(step));
    ++out.steps;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
