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

inline LinearCertificate certify_linear(const CertifiedPoint& p) {
  constexpr double u = kUnitRoundoff;
  const std::int64_t n = p.variables;
  double* norms = p.residual;  // until the shares of the gap replace them
  for (std::int64_t k = 0; k < n; ++k) norms[k] = std::sqrt(p.squared_norms[k] + p.constant * p.constant);
  LinearCertificate out;
  // ‖w‖, ‖Fᵀb‖, and the error of the latter.
  const double roundings = static_cast<double>(p.width + 1 + 8) * u;
  double used = 0.0, size_of_weights = 0.0, sum = 0.0, absolute_sum = 0.0;
  for (std::int64_t k = 0; k < n; ++k) {
    const double magnitude = std::fabs(p.dual[k]);
    used += magnitude > 0.0;
    size_of_weights += norms[k] * magnitude;
    sum += p.dual[k];
    absolute_sum += magnitude;
  }
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
  const auto gradient_error = [&](std::int64_t k, double norm, double& gradient) {
    const double ridge = p.ridge[k] * p.dual[k];
    gradient = p.linear[k] - p.product[k] - ridge;
    return norm * of_products + 4.0 * u * (std::fabs(p.linear[k]) + std::fabs(p.product[k]) + std::fabs(ridge));
  };
  // The violation of the optimality criterion with every gradient within its error, and the interval of the offset.
  double above = -kInfinite, below = kInfinite, low = -kInfinite, high = kInfinite;
  double most_up = -1.0, most_down = -1.0, most_room = -1.0;
  std::int64_t up_most = 0, down_most = 0, roomiest = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    double gradient = 0.0;
    const double error = gradient_error(k, norms[k], gradient), b = p.dual[k];
    if (b < p.upper[k]) {
      low = gradient > low ? gradient : low;
      above = gradient + error > above ? gradient + error : above;
    }
    if (b > p.lower[k]) {
      high = gradient < high ? gradient : high;
      below = gradient - error < below ? gradient - error : below;
    }
    if (!p.grouped) continue;
    const double up = p.upper[k] - b, down = b - p.lower[k], room = up < down ? up : down;
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
  double loss_sum = 0.0, loss_error = 0.0, residual_sum = 0.0, ridge_sum = 0.0, linear_sum = 0.0;
  double dual_error = 0.0, linear_size = 0.0, slack_size = 0.0;
  for (std::int64_t k = 0; k < n; ++k) {
    const double b = p.dual[k], ridge = p.ridge[k], lower = p.lower[k], upper = p.upper[k];
    const double slack = p.linear[k] - (p.decisions[k] + out.offset);
    double error = norms[k] * of_decisions;
    error += 4.0 * u * (std::fabs(p.linear[k]) + std::fabs(p.decisions[k]) + std::fabs(out.offset));
    const double loss = conjugate(slack, lower, upper, ridge), share = loss - (slack - 0.5 * ridge * b) * b;
    const double at_most = std::fabs(response_to(slack + error, lower, upper, ridge));
    const double at_least = std::fabs(response_to(slack - error, lower, upper, ridge));
    p.slack[k] = slack;
    p.residual[k] = share > 0.0 ? share : 0.0;
    residual_sum += p.residual[k];
    loss_sum += loss;
    loss_error += (at_most > at_least ? at_most : at_least) * error;
    ridge_sum += ridge * b * b;
    linear_sum += p.linear[k] * b;
    linear_size += std::fabs(p.linear[k] * b);
    slack_size += std::fabs(slack * b);
    dual_error += std::fabs(b) * error;
  }
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
