// The stochastic subgradient method on rows of features (Robbins & Monro 1951; Pegasos: Shalev-Shwartz et al. 2007).
//
// The weights are scale · v and their weighted sum over the steps is factor · v + u, so that a step w ← (1 − η) w + η g
// with g = n r f, a multiple of a row f, changes one number, and the entries of v and u where the row is not zero
// (Bottou 2010; Xu 2011).
#pragma once

#include <cmath>
#include <cstdint>

#include "linear_loops.hpp"
#include "loss_offset.hpp"
#include "row_products.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// A smaller scale is multiplied into v: before digits are lost, and rarely, since that is a pass over all weights.
constexpr double kMinScale = 1e-5;

inline void apply_scale(SubgradientState& s) {
  double length = 0.0;
  for (std::int64_t k = 0; k <= s.width; ++k) {
    if (s.sums) s.sums[k] += s.factor * s.direction[k];
    s.direction[k] *= s.scale;
    length += s.direction[k] * s.direction[k];
  }
  s.factor = 0.0;
  s.scale = 1.0;
  s.squared_norm = length;
}

// w ← w + change f, for a row f with its constant feature
template <class Rows>
MAXMARGIN_INLINE void add_row(const Rows& rows, SubgradientState& s, std::int64_t row, double change) {
  const double amount = change / s.scale;
  if (s.radius < INFINITY) {
    const double along = dot(rows, row, s.direction) + s.constant * s.direction[s.width];
    s.squared_norm += amount * (2.0 * along + amount * (squared_norm(rows, row) + s.constant * s.constant));
  }
  add(rows, row, amount, s.direction);
  s.direction[s.width] += amount * s.constant;
  if (s.sums && s.factor != 0.0) {
    add(rows, row, -s.factor * amount, s.sums);
    s.sums[s.width] -= s.factor * amount * s.constant;
  }
}

// One step for every `batch` variables of the order.
template <class Rows>
void subgradient_steps(const Rows& rows, SubgradientState& s, const std::int64_t* order, std::int64_t count,
                       std::int64_t batch) {
  for (std::int64_t first = 0, last; first < count; first = last) {
    last = count - first < batch ? count : first + batch;
    const double weight = s.growing ? s.last_weight + 1.0 : 1.0;
    for (std::int64_t k = first; k < last; ++k) {
      const std::int64_t i = order[k], row = s.rows ? s.rows[i] : i;
      if (k + 1 < count) prefetch(rows, s.rows ? s.rows[order[k + 1]] : order[k + 1], s.direction);
      const double offset = s.group[i] >= 0 ? s.offset[s.group[i]] : 0.0;
      const double decision = s.scale * (dot(rows, row, s.direction) + s.constant * s.direction[s.width]) + offset;
      const double response = response_to(s.linear[i] - decision, s.lower[i], s.upper[i], s.ridge[i]);
      s.buffer[k - first] = response;
      if (s.responses) {
        s.responses[i] += weight * response;
        s.visits[i] += weight;
      }
    }
    const double step = s.numerator / (s.growth * static_cast<double>(++s.steps) + s.delay);
    const double rate = step * s.samples / static_cast<double>(last - first);
    s.scale *= 1.0 - step;
    if (!(std::fabs(s.scale) > kMinScale)) apply_scale(s);
    for (std::int64_t g = 0; g < s.groups; ++g) s.offset[g] -= step * s.offset_rate * s.samples * s.share[g];
    for (std::int64_t k = first; k < last; ++k) {
      const double response = s.buffer[k - first];
      if (response == 0.0) continue;
      const std::int64_t i = order[k];
      add_row(rows, s, s.rows ? s.rows[i] : i, rate * response);
      if (s.group[i] >= 0) s.offset[s.group[i]] += s.offset_rate * rate * response;
    }
    if (s.radius < INFINITY) {
      const double squared = s.scale * s.scale * s.squared_norm;
      if (squared > s.radius * s.radius) s.scale *= s.radius / std::sqrt(squared);
    }
    if (s.sums) {
      s.last_weight = weight;
      s.weight_sum += weight;
      s.factor += weight * s.scale;
      for (std::int64_t g = 0; g < s.groups; ++g) s.offset_sums[g] += weight * s.offset[g];
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
