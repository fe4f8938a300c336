// Dual coordinate ascent (Hsieh et al. 2008): steps along one variable after another, each of which needs one product
// of a row with the weights and one addition to them.
//
// A step waits for the one before, since the weights change in between; so what counts is how long the way is from
// weights to weights: the product's last sums, one multiplication by an inverse that is known early, the addition.
// Everything else is off that way, and rows, which come in random order, are fetched several steps ahead.
#pragma once

#include <cstdint>

#include "linear_rows.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// ---- fetching ---------------------------------------------------------------------------------------------------

constexpr std::int64_t kLine = 64;        // bytes that memory hands over at once
constexpr std::int64_t kLinesAhead = 32;  // that are fetched at a time, of all rows ahead
constexpr std::int64_t kFarAhead = 24;    // the most rows

MAXMARGIN_INLINE void fetch_bytes(const void* from, std::int64_t bytes) {
  const char* at = static_cast<const char*>(from);
  for (std::int64_t k = 0; k < bytes; k += kLine) __builtin_prefetch(at + k);
}

template <class T> MAXMARGIN_INLINE std::int64_t bytes_of(const DenseRows<T>& rows, std::int64_t) {
  return rows.width * static_cast<std::int64_t>(sizeof(T));
}
template <class T, class I> MAXMARGIN_INLINE std::int64_t bytes_of(const CompressedRows<T, I>& rows, std::int64_t row) {
  return static_cast<std::int64_t>(rows.starts[row + 1] - rows.starts[row]) *
         static_cast<std::int64_t>(sizeof(T) + sizeof(I));
}

template <class T> MAXMARGIN_INLINE void fetch_start(const DenseRows<T>&, std::int64_t) {}
template <class T, class I> MAXMARGIN_INLINE void fetch_start(const CompressedRows<T, I>& rows, std::int64_t row) {
  __builtin_prefetch(rows.starts + row);
}

template <class T> MAXMARGIN_INLINE void fetch_row(const DenseRows<T>& rows, std::int64_t row) {
  const std::int64_t bytes = bytes_of(rows, row);
  fetch_bytes(rows.values + row * rows.width, bytes < 2048 ? bytes : 2048);
}
template <class T, class I> MAXMARGIN_INLINE void fetch_row(const CompressedRows<T, I>& rows, std::int64_t row) {
  const std::int64_t first = rows.starts[row], there = rows.starts[row + 1] - first, count = there < 256 ? there : 256;
  fetch_bytes(rows.values + first, count * static_cast<std::int64_t>(sizeof(T)));
  fetch_bytes(rows.features + first, count * static_cast<std::int64_t>(sizeof(I)));
}

// ---- steps ------------------------------------------------------------------------------------------------------

// What a sample adds to the duality gap: conjugate(z) − βz + ½ ridge β². It is infinite if only an infinite β could
// answer.
MAXMARGIN_INLINE double sample_gap(double z, double beta, double lower, double upper, double ridge) {
  if (!(ridge > 0.0)) return z == 0.0 ? 0.0 : ((z > 0.0 ? upper : lower) - beta) * z;
  const double wish = z / ridge, risen = wish > lower ? wish : lower, answer = risen < upper ? risen : upper;
  return (answer - beta) * (z - 0.5 * ridge * (answer + beta));
}

// Take a step along each of the variables order[begin … end), one after the other. Those on a bound whose gradient
// points beyond it by more than the thresholds leave: they are put behind the others.
template <class Rows>
AscentOutcome ascend(const Rows& rows, AscentState& s, std::int64_t* order, std::int64_t begin, std::int64_t end) {
  AscentOutcome out;
  double* w = s.weights;
  double last_weight = w[s.width];  // of the constant feature
  const auto row_of = [&](std::int64_t k) { return s.rows ? s.rows[order[k]] : order[k]; };
  std::int64_t bytes = 0, seen = 0;
  for (; seen < 16 && begin + seen < end; ++seen) bytes += bytes_of(rows, row_of(begin + seen));
  std::int64_t ahead = seen ? kLinesAhead * kLine * seen / (bytes + kLine) : 1;
  ahead = ahead < 1 ? 1 : ahead > kFarAhead ? kFarAhead : ahead;
  for (std::int64_t k = begin; k < end; ++k) {
    if (k + 2 * ahead < end) {
      const std::int64_t i = order[k + 2 * ahead];
      fetch_start(rows, s.rows ? s.rows[i] : i);
      __builtin_prefetch(s.dual + i, 1);
      __builtin_prefetch(s.linear + i);
      __builtin_prefetch(s.lower + i);
      __builtin_prefetch(s.upper + i);
      __builtin_prefetch(s.ridge + i);
      __builtin_prefetch(s.squared_norm + i);
    }
    if (k + ahead < end) fetch_row(rows, row_of(k + ahead));
    if (k + 1 < end) fetch_weights(rows, row_of(k + 1), w);
    const std::int64_t i = order[k];
    const std::int64_t row = s.rows ? s.rows[i] : i;
    const std::int32_t g = s.group ? s.group[i] : -1;
    const double before = s.dual[i], lower = s.lower[i], upper = s.upper[i], ridge = s.ridge[i];
    const double curvature =
        s.damping * (s.squared_norm[i] + s.constant * s.constant + (g >= 0 ? s.penalty[g] : 0.0)) + ridge;
    const double inverse = 1.0 / curvature;
    const double offset = s.constant * last_weight + (g >= 0 ? s.offset[g] + s.penalty[g] * s.excess[g] : 0.0);
    const double slack = (s.linear[i] - offset) - dot(rows, row, w);
    const double gradient = slack - ridge * before;
    out.gap += sample_gap(slack, before, lower, upper, ridge);
    double pull = gradient;
    if (before >= upper) {
      if (gradient > s.leave_above) {
        order[k] = order[--end];
        order[end] = i;
        --k;
        continue;
      }
      pull = gradient < 0.0 ? gradient : 0.0;
    } else if (before <= lower) {
      if (gradient < -s.leave_below) {
        order[k] = order[--end];
        order[end] = i;
        --k;
        continue;
      }
      pull = gradient > 0.0 ? gradient : 0.0;
    }
    if (pull > out.highest) out.highest = pull;
    if (pull < out.lowest) out.lowest = pull;
    ++out.steps;
    if (pull == 0.0) continue;
    double after = curvature > 0.0 ? before + gradient * inverse : (gradient > 0.0 ? upper : lower);
    after = after > lower ? after : lower;
    after = after < upper ? after : upper;
    const double change = after - before;
    if (change == 0.0) continue;
    s.dual[i] = after;
    add(rows, row, s.damping * change, w);
    last_weight += s.damping * change * s.constant;
    if (g >= 0) s.excess[g] += s.damping * change;
  }
  w[s.width] = last_weight;
  out.left = end;
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
