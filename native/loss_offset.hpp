// The response of a sample, and the offset of least loss: native counterparts of problems/losses.py and
// problems/offsets.py for one group of all variables with the sum 0.
#pragma once

#include <cmath>
#include <cstdint>

#include "responses.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kInfinite = __builtin_huge_val();
constexpr int kMaxOffsetSteps = 120;  // halving a bracket so often exhausts double precision

// The β in [lower, upper] that maximises βz − ½ ridge β²: of one variable, or of a vector of them.
template <class V> MAXMARGIN_INLINE V response_to(V z, V lower, V upper, V ridge) {
  const V unclipped = z / ridge;
  return clipped<V>(unclipped == unclipped ? unclipped : V{}, lower, upper);  // 0/0
}

// The root of −Σ response(slack − ρ), which increases with ρ, for slacks without an offset: Newton steps within a
// shrinking bracket.
inline double best_offset(const SlackArrays& s, std::int64_t count, double guess) {
  double lowest = kInfinite, highest = -kInfinite;
  for (std::int64_t k = 0; k < count; ++k) {
    lowest = s.slack[k] < lowest ? s.slack[k] : lowest;
    highest = s.slack[k] > highest ? s.slack[k] : highest;
  }
  const auto derivative = [&](double rho, double& second) {
    const Derivatives found = derivatives(s, nullptr, rho, 0, count);
    second = found.curvature;
    return -found.slope;
  };
  // Outside the range of the slacks the derivative does not change its sign.
  guess = clipped(guess, lowest, highest);
  double second = 0.0, width = 1e-3 * (highest - lowest) > 1e-9 ? 1e-3 * (highest - lowest) : 1e-9;
  const double at_guess = derivative(guess, second);
  if (at_guess == 0.0) return guess;
  const double towards = at_guess > 0.0 ? -1.0 : 1.0;
  double edge = guess;
  for (int k = 0; k < kMaxOffsetSteps; ++k, width *= 4.0) {
    edge = clipped(guess + towards * width, lowest, highest);
    if (towards * derivative(edge, second) >= 0.0 || edge == lowest || edge == highest) break;
  }
  double low = guess < edge ? guess : edge, high = guess < edge ? edge : guess, rho = 0.5 * (low + high);
  double size = std::fabs(low) > std::fabs(high) ? std::fabs(low) : std::fabs(high);
  const double smallest = 0x1p-50 * (size > highest - lowest ? size : highest - lowest);
  for (int k = 0; k < kMaxOffsetSteps; ++k) {
    const double first = derivative(rho, second);
    if (std::fabs(first) <= smallest * second || high - low <= smallest) break;
    (first < 0.0 ? low : high) = rho;
    // Newton's step if it stays inside; every third step halves the bracket.
    const double newton = second > 0.0 ? rho - first / second : kInfinite;
    rho = newton > low && newton < high && k % 3 != 2 ? newton : 0.5 * (low + high);
  }
  return rho;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
