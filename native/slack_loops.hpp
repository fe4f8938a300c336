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

// response, conjugate and whether the response lies strictly between its bounds, for ridge > 0 everywhere in [begin, end).
static SlackSums respond(const SlackArrays& s, std::int64_t begin, std::int64_t end, double* response) {
  SlackSums sums;
  double loss = 0.0, total = 0.0;
  std::int64_t between = 0;
  for (std::int64_t k = begin; k < end; ++k) {
    const double r = s.ridge[k], wish = s.slack[k] / r;
    const double answer = clipped(wish, s.lower[k], s.upper[k]);
    response[k] = answer;
    loss += answer * s.slack[k] - 0.5 * r * answer * answer;
    total += answer;
    between += answer > s.lower[k] && answer < s.upper[k];
  }
  sums.loss = loss;
  sums.total = total;
  sums.between = between;
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
