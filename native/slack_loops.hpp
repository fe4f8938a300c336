// What a sample answers to its slack z: response(z) = argmax over [lower, upper] of βz − ½ ridge β², and sums over samples.
#pragma once

#include <cstdint>

#include "loops.hpp"
#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

MAXMARGIN_INLINE double clipped(double value, double lower, double upper) {
  const double above = value < lower ? lower : value;
  return above > upper ? upper : above;
}

// For samples [begin, end): the slack z = linear − image − ρ, the rounded slack z + σ c, the response to it with ridge + σ > 0,
// and sums: the loss of the slack z itself, and what the dual value of the responses takes.
static SlackSums respond(const Rounded& r, std::int64_t begin, std::int64_t end, double* group_sums) {
  SlackSums sums;
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int32_t g = r.group ? r.group[k] : -1;
    const double z = r.linear[k] - r.image[k] - (g >= 0 ? r.offset[g] : 0.0);
    const double lower = r.lower[k], upper = r.upper[k], ridge = r.ridge[k];
    const double rounded = z + r.sigma * r.centre[k];
    const double answer = clipped(rounded / (ridge + r.sigma), lower, upper);
    r.slack[k] = rounded;
    r.response[k] = answer;
    if (g >= 0) group_sums[g] += answer;
    const double wish = ridge > 0.0 ? clipped(z / ridge, lower, upper) : z > 0.0 ? upper : z < 0.0 ? lower : 0.0;
    sums.loss += z == 0.0 ? 0.0 : wish * z - 0.5 * ridge * wish * wish;
    sums.linear += r.linear[k] * answer;
    sums.ridge += ridge * answer * answer;
    sums.size += answer < 0.0 ? -answer : answer;
  }
  return sums;
}

// Σ response(z − t d) d and Σ over those strictly between their bounds of d²/ridge: the slope of the loss along d and how it
// bends. With ridge = 0 the response is the bound on the slack's side.
static Slope slope(const SlackArrays& s, const double* direction, double t, std::int64_t begin, std::int64_t end) {
  Slope out;
  double sum = 0.0, bend = 0.0;
  for (std::int64_t k = begin; k < end; ++k) {
    const double d = direction ? direction[k] : 1.0, z = s.slack[k] - t * d, r = s.ridge[k];
    double answer;
    if (r > 0.0) {
      const double wish = z / r;
      answer = clipped(wish, s.lower[k], s.upper[k]);
      if (answer == wish) bend += d * d / r;
    } else {
      answer = z > 0.0 ? s.upper[k] : z < 0.0 ? s.lower[k] : clipped(0.0, s.lower[k], s.upper[k]);
    }
    sum += answer * d;
  }
  out.sum = sum;
  out.bend = bend;
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
