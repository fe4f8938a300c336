// The certificate of a small linear model in double precision: the native counterpart of problems/certificate.py,
// problems/products.py and problems/objective_bounds.py for weights w, a dual vector b within its bounds, and one group
// of all variables with the sum 0, or none. The same bounds on rounding errors, which hold for sums in any order.
#pragma once

#include <cmath>
#include <cstdint>

#include "linear_loops.hpp"
#include "loss_offset.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kUnitRoundoff = 0x1p-53;
constexpr double kSafety = 1.02;  // on all bounds: covers their own rounding errors and terms of second order

// A bound on the error of a squared norm whose vector is off by `error` in norm.
inline double norm_error(double squared, double error, double relative) {
  return 2.0 * std::sqrt(squared) * error + error * error + relative * squared;
}

inline double squared_length(const double* vector, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t j = 0; j < count; ++j) sum += vector[j] * vector[j];
  return sum;
}

inline void keep_largest(double value, std::int64_t index, double& largest, std::int64_t& at) {
  if (!(value > largest)) return;
  largest = value;
  at = index;
}

// Add the variables [0, n) to sums: `add(k, sums)` takes those of a vector, or of one number.
template <template <class> class Sums, class Add>
MAXMARGIN_INLINE void add_all(std::int64_t n, const Add& add, Sums<Vec<double>>& several, Sums<double>& single) {
  std::int64_t k = 0;
  for (; k + kWidth<double> <= n; k += kWidth<double>) add(k, several);
  for (; k < n; ++k) add(k, single);
}

// Of the dual vector b: the number of its variables off 0, Σ ‖f_i‖ |b_i|, Σ b and Σ |b|.
template <class V> struct DualSums {
  V used{}, size_of_weights{}, sum{}, absolute{};

  MAXMARGIN_INLINE void add(V b, V norm) {
    const V magnitude = magnitude_of(b);
    used += magnitude > 0.0 ? V{} + 1.0 : V{};
    size_of_weights += norm * magnitude;
    sum += b;
    absolute += magnitude;
  }
};

// The largest gradient of variables that can grow and its upper bound, and the negatives of the smallest gradient of
// those that can fall and of its lower bound.
template <class V> struct LargestGradients {
  V low = V{} - kInfinite, above = V{} - kInfinite, minus_high = V{} - kInfinite, minus_below = V{} - kInfinite;

  MAXMARGIN_INLINE void add(V gradient, V error, V b, V lower, V upper) {
    const V none = V{} - kInfinite, minus = -gradient;
    low = larger_of<V>(b < upper ? gradient : none, low);
    above = larger_of<V>(b < upper ? V(gradient + error) : none, above);
    minus_high = larger_of<V>(b > lower ? minus : none, minus_high);
    minus_below = larger_of<V>(b > lower ? V(minus + error) : none, minus_below);
  }
};

MAXMARGIN_INLINE double largest_of(Vec<double> several, double single) {
  for (int l = 0; l < kWidth<double>; ++l) single = larger_of<double>(several[l], single);
  return single;
}

// Losses, shares of the gap, and what bounds their errors.
template <class V> struct GapSums {
  V loss{}, loss_error{}, residual{}, ridge{}, linear{}, linear_size{}, slack_size{}, dual_error{};
};

inline LinearCertificate certify_linear(const CertifiedPoint& p) {
  constexpr double u = kUnitRoundoff;
  const std::int64_t n = p.variables;
  double* norms = p.residual;  // until the shares of the gap replace them
  LinearCertificate out;
  // ‖w‖, ‖Fᵀb‖, and the error of the latter.
  const double roundings = static_cast<double>(p.width + 1 + 8) * u;
  DualSums<Vec<double>> several;
  DualSums<double> single;
  const auto add_dual = [&](std::int64_t k, auto& sums) {
    using V = decltype(sums.sum);
    const V norm = square_root(V(get<V>(p.squared_norms + k) + p.constant * p.constant));
    put<V>(norms + k, norm);
    sums.add(get<V>(p.dual + k), norm);
  };
  add_all<DualSums>(n, add_dual, several, single);
  const double used = sum_of(several.used) + single.used, sum = sum_of(several.sum) + single.sum;
  const double size_of_weights = sum_of(several.size_of_weights) + single.size_of_weights;
  const double absolute_sum = sum_of(several.absolute) + single.absolute;
  const double of_weights = (used + 9.0) * u * size_of_weights;
  const double weights_norm = squared_length(p.weights, p.width + 1);
  const double dual_norm = squared_length(p.dual_weights, p.width + 1);
  double distance = 0.0;
  for (std::int64_t j = 0; j <= p.width; ++j) {
    const double difference = p.weights[j] - p.dual_weights[j];
    distance += 0.5 * difference * difference;
  }
  const double per_row = static_cast<double>(p.longest_row + 8) * u;
  const double of_products = per_row * std::sqrt(dual_norm) + of_weights;
  const double of_decisions = per_row * std::sqrt(weights_norm);
  const auto gradient_error = [&](std::int64_t k, auto norm, auto& gradient) {
    using V = decltype(norm);
    const V linear = get<V>(p.linear + k), product = get<V>(p.product + k);
    const V ridge = get<V>(p.ridge + k) * get<V>(p.dual + k);
    gradient = linear - product - ridge;
    return V(norm * of_products + 4.0 * u * (magnitude_of(linear) + magnitude_of(product) + magnitude_of(ridge)));
  };
  // The violation of the optimality criterion with every gradient within its error, and the interval of the offset.
  LargestGradients<Vec<double>> most;
  LargestGradients<double> last;
  const auto add_gradient = [&](std::int64_t k, auto& largest) {
    using V = decltype(largest.low);
    V gradient{};
    const V error = gradient_error(k, get<V>(norms + k), gradient);
    largest.add(gradient, error, get<V>(p.dual + k), get<V>(p.lower + k), get<V>(p.upper + k));
  };
  add_all<LargestGradients>(n, add_gradient, most, last);
  const double low = largest_of(most.low, last.low), high = -largest_of(most.minus_high, last.minus_high);
  const double above = largest_of(most.above, last.above), below = -largest_of(most.minus_below, last.minus_below);
  double most_up = -1.0, most_down = -1.0, most_room = -1.0;
  std::int64_t up_most = 0, down_most = 0, roomiest = 0;
  for (std::int64_t k = 0; p.grouped && k < n; ++k) {
    const double up = p.upper[k] - p.dual[k], down = p.dual[k] - p.lower[k], room = up < down ? up : down;
    keep_largest(room, k, most_room, roomiest);
    keep_largest(up, k, most_up, up_most);
    keep_largest(down, k, most_down, down_most);
  }
  out.violation = p.grouped ? above - below : (above > -below ? above : -below);
  if (!(out.violation > 0.0)) out.violation = 0.0;
  out.infeasibility = p.grouped ? std::fabs(sum) : 0.0;
  out.low = low < high ? low : high;
  out.high = low < high ? high : low;
  if (p.grouped && p.offset) {
    out.offset = *p.offset;
  } else if (p.grouped) {
    const double finite_low = std::fabs(low) < kInfinite ? low : high;
    const double finite_high = std::fabs(high) < kInfinite ? high : finite_low;
    const double middle = 0.5 * ((std::fabs(finite_low) < kInfinite ? finite_low : 0.0) +
                                 (std::fabs(finite_high) < kInfinite ? finite_high : 0.0));
    for (std::int64_t k = 0; k < n; ++k) p.slack[k] = p.linear[k] - p.decisions[k];
    out.offset = best_offset({p.slack, p.lower, p.upper, p.ridge}, n, middle);
  }
  // Losses and shares of the gap.
  GapSums<Vec<double>> gaps;
  GapSums<double> rest;
  const auto add_gap = [&](std::int64_t k, auto& sums) {
    using V = decltype(sums.loss);
    const V b = get<V>(p.dual + k), ridge = get<V>(p.ridge + k), lower = get<V>(p.lower + k);
    const V upper = get<V>(p.upper + k), linear = get<V>(p.linear + k), decision = get<V>(p.decisions + k);
    const V slack = linear - (decision + out.offset);
    const V size = magnitude_of(linear) + magnitude_of(decision) + std::fabs(out.offset);
    const V error = get<V>(norms + k) * of_decisions + 4.0 * u * size;
    const V response = response_to<V>(slack, lower, upper, ridge), loss = response * (slack - 0.5 * ridge * response);
    const V share = loss - (slack - 0.5 * ridge * b) * b, residual = share > 0.0 ? share : V{};
    const V at_most = magnitude_of(response_to<V>(slack + error, lower, upper, ridge));
    const V at_least = magnitude_of(response_to<V>(slack - error, lower, upper, ridge));
    put<V>(p.slack + k, slack);
    put<V>(p.residual + k, residual);
    sums.residual += residual;
    sums.loss += loss;
    sums.loss_error += larger_of<V>(at_most, at_least) * error;
    sums.ridge += ridge * b * b;
    sums.linear += linear * b;
    sums.linear_size += magnitude_of(V(linear * b));
    sums.slack_size += magnitude_of(V(slack * b));
    sums.dual_error += magnitude_of(b) * error;
  };
  add_all<GapSums>(n, add_gap, gaps, rest);
  const double loss_sum = sum_of(gaps.loss) + rest.loss, loss_error = sum_of(gaps.loss_error) + rest.loss_error;
  const double residual_sum = sum_of(gaps.residual) + rest.residual, ridge_sum = sum_of(gaps.ridge) + rest.ridge;
  const double linear_sum = sum_of(gaps.linear) + rest.linear;
  const double linear_size = sum_of(gaps.linear_size) + rest.linear_size;
  const double slack_size = sum_of(gaps.slack_size) + rest.slack_size;
  double dual_error = sum_of(gaps.dual_error) + rest.dual_error;
  // What is lost by moving one variable until the sum is exactly 0: one with room on both sides or, if none has enough,
  // one of two, depending on the sign of the sum.
  if (p.grouped && absolute_sum > 0.0) {
    const double missing = std::fabs(sum) + static_cast<double>(n + 2) * u * absolute_sum;
    const auto cost_of = [&](std::int64_t k) {
      double gradient = 0.0;
      const double norm = std::sqrt(p.squared_norms[k] + p.constant * p.constant), length = missing * norm;
      const double error = gradient_error(k, norm, gradient);
      return missing * (std::fabs(gradient) + error) + 0.5 * length * length + 0.5 * p.ridge[k] * missing * missing;
    };
    if (most_room >= missing)
      dual_error += cost_of(roomiest);
    else if (most_up >= missing && most_down >= missing)
      dual_error += cost_of(up_most) + cost_of(down_most);
    else
      return out;
  }
  dual_error += 0.5 * norm_error(dual_norm, of_weights, roundings) + norm_error(distance, of_weights, roundings);
  double size = 0.5 * weights_norm + loss_sum + ridge_sum + linear_size + 0.5 * dual_norm + slack_size;
  size *= static_cast<double>(n + 16) * u;
  const double primal_error = kSafety * (0.5 * roundings * weights_norm + loss_error + size);
  dual_error = kSafety * (dual_error + size);
  out.primal = std::nextafter(0.5 * weights_norm + loss_sum + primal_error, kInfinite);
  out.dual = std::nextafter(linear_sum - 0.5 * dual_norm - 0.5 * ridge_sum - dual_error, -kInfinite);
  out.rounding = primal_error + dual_error;
  out.gap = residual_sum + distance + out.rounding;
  out.squared_norm = weights_norm;
  out.conclusive = std::fabs(out.primal) + std::fabs(out.dual) + out.gap < kInfinite;
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
