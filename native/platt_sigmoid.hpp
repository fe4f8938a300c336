// The cross-entropy of Platt's sigmoid 1 / (1 + exp(m)), m = slope · value + shift, and its derivatives:
//
//   Σ weight (target m + log(1 + exp(−m)))
//
// in one pass over the samples, with one exponential function for each.
#pragma once

#include <cmath>
#include <cstdint>

namespace maxmargin {

struct SigmoidSums {
  double loss;
  double slope, shift;                           // first derivatives
  double slope_slope, slope_shift, shift_shift;  // second derivatives
};

inline SigmoidSums sigmoid_sums(const double* values, const double* targets, const double* weights, std::int64_t count,
                                double slope, double shift) {
  SigmoidSums sums{0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (std::int64_t k = 0; k < count; ++k) {
    const double margin = slope * values[k] + shift;
    const double small = std::exp(-std::fabs(margin));  // no overflow
    const double probability = (margin < 0.0 ? 1.0 : small) / (1.0 + small);
    const double residual = weights[k] * (targets[k] - probability);
    const double curvature = weights[k] * probability * (1.0 - probability);
    sums.loss += weights[k] * (targets[k] * margin + (margin < 0.0 ? -margin : 0.0) + std::log1p(small));
    sums.slope += residual * values[k];
    sums.shift += residual;
    sums.slope_slope += curvature * values[k] * values[k];
    sums.slope_shift += curvature * values[k];
    sums.shift_shift += curvature;
  }
  return sums;
}

}  // namespace maxmargin
