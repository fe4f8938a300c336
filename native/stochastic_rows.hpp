// Steps of the stochastic subgradient method on rows of features (Robbins & Monro 1951; Pegasos: Shalev-Shwartz et al.
// 2007).
//
// The weights are scale · v and their weighted sum over the steps is factor · v + u, so that a step w ← (1 − η) w + η
// g, with a row g = n r f, changes one number and the entries of v and u where the row is not zero (Bottou 2010; Xu
// 2011).
#pragma once

#include <cmath>
#include <cstdint>

#include "linear_rows.hpp"
#include "loops.hpp"
#include "slack_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// A smaller scale is multiplied into v: before it loses digits, and rarely, because it takes a look at all weights.
constexpr double kSmallestScale = 1e-5;

MAXMARGIN_INLINE double answer_to(double z, double lower, double upper, double ridge) {
  if (ridge > 0.0) return clipped(z / ridge, lower, upper);
  return z > 0.0 ? upper : z < 0.0 ? lower : clipped(0.0, lower, upper);
}

inline void fold_scale(DescentState& s) {
  double length = 0.0;
  for (std::int64_t k = 0; k <= s.width; ++k) {
    if (s.sums) s.sums[k] += s.factor * s.direction[k];
    s.direction[k] *= s.scale;
    length += s.direction[k] * s.direction[k];
  }
  s.factor = 0.0;
  s.scale = 1.0;
  s.squared_length = length;
}

// w ← w + change f, for a row f with its constant feature
template <class Rows>
MAXMARGIN_INLINE void add_row(const Rows& rows, DescentState& s, std::int64_t row, double change) {
  const double part = change / s.scale;
  if (s.radius < INFINITY) {
    const double along = dot(rows, row, s.direction) + s.constant * s.direction[s.width];
    s.squared_length += part * (2.0 * along + part * (squared_norm(rows, row) + s.constant * s.constant));
  }
  add(rows, row, part, s.direction);
  s.direction[s.width] += part * s.constant;
  if (s.sums && s.factor != 0.0) {
    add(rows, row, -s.factor * part, s.sums);
    s.sums[s.width] -= s.factor * part * s.constant;
  }
}

// One step for every `batch` variables of order[begin … end).
template <class Rows>
void descend(const Rows& rows, DescentState& s, const std::int64_t* order, std::int64_t begin, std::int64_t end,
             std::int64_t batch) {
  for (std::int64_t first = begin, last; first < end; first = last) {
    last = end - first < batch ? end : first + batch;
    const double importance = s.growing ? s.weight + 1.0 : 1.0;
    for (std::int64_t k = first; k < last; ++k) {
      const std::int64_t i = order[k], row = s.rows ? s.rows[i] : i;
      if (k + 1 < end) fetch(rows, s.rows ? s.rows[order[k + 1]] : order[k + 1], s.direction);
      const double offset = s.group[i] >= 0 ? s.offset[s.group[i]] : 0.0;
      const double decision = s.scale * (dot(rows, row, s.direction) + s.constant * s.direction[s.width]) + offset;
      const double answer = answer_to(s.linear[i] - decision, s.lower[i], s.upper[i], s.ridge[i]);
      s.room[k - first] = answer;
      if (s.answers) {
        s.answers[i] += importance * answer;
        s.visits[i] += importance;
      }
    }
    const double step = s.numerator / (s.growth * static_cast<double>(++s.steps) + s.delay);
    const double push = step * s.samples / static_cast<double>(last - first);
    s.scale *= 1.0 - step;
    if (!(std::fabs(s.scale) > kSmallestScale)) fold_scale(s);
    for (std::int64_t g = 0; g < s.groups; ++g) s.offset[g] -= step * s.offset_rate * s.samples * s.share[g];
    for (std::int64_t k = first; k < last; ++k) {
      const double answer = s.room[k - first];
      if (answer == 0.0) continue;
      const std::int64_t i = order[k];
      add_row(rows, s, s.rows ? s.rows[i] : i, push * answer);
      if (s.group[i] >= 0) s.offset[s.group[i]] += s.offset_rate * push * answer;
    }
    if (s.radius < INFINITY) {
      const double squared = s.scale * s.scale * s.squared_length;
      if (squared > s.radius * s.radius) s.scale *= s.radius / std::sqrt(squared);
    }
    if (s.sums) {
      s.weight = importance;
      s.weights += importance;
      s.factor += importance * s.scale;
      for (std::int64_t g = 0; g < s.groups; ++g) s.offset_sums[g] += importance * s.offset[g];
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
