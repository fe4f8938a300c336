// Dual coordinate ascent (Hsieh et al. 2008): steps along one variable after another, each with one product of a row
// with the weights and one addition to them.
//
// A step depends on the one before, because the weights change in between. The time of a step is therefore the latency
// from weights to weights: the last sums of the product, a multiplication by an inverse that is computed before, the
// addition. Everything else is outside this chain, and rows, whose order is random, are prefetched several steps ahead.
#pragma once

#include <cstdint>

#include "linear_loops.hpp"
#include "row_products.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// ---- prefetching ---------------------------------------------------------------------------------------------------

constexpr std::int64_t kCacheLine = 64;   // bytes
constexpr std::int64_t kLinesAhead = 32;  // cache lines of all rows that are prefetched
constexpr std::int64_t kMaxRowsAhead = 24;

// Rows of more bytes than a cache shared by all cores has come from memory, which takes several times as long.
constexpr std::int64_t kCachedBytes = std::int64_t{1} << 25, kLinesAheadInMemory = 96;

MAXMARGIN_INLINE void prefetch_bytes(const void* from, std::int64_t bytes) {
  const char* at = static_cast<const char*>(from);
  for (std::int64_t k = 0; k < bytes; k += kCacheLine) __builtin_prefetch(at + k);
}

template <class T> MAXMARGIN_INLINE std::int64_t bytes_of(const DenseRows<T>& rows, std::int64_t) {
  return rows.width * static_cast<std::int64_t>(sizeof(T));
}
template <class T, class I> MAXMARGIN_INLINE std::int64_t bytes_of(const CompressedRows<T, I>& rows, std::int64_t row) {
  return static_cast<std::int64_t>(rows.starts[row + 1] - rows.starts[row]) *
         static_cast<std::int64_t>(sizeof(T) + sizeof(I));
}

template <class T> MAXMARGIN_INLINE void prefetch_start(const DenseRows<T>&, std::int64_t) {}
template <class T, class I> MAXMARGIN_INLINE void prefetch_start(const CompressedRows<T, I>& rows, std::int64_t row) {
  __builtin_prefetch(rows.starts + row);
}

template <class T> MAXMARGIN_INLINE void prefetch_row(const DenseRows<T>& rows, std::int64_t row) {
  const std::int64_t bytes = bytes_of(rows, row);
  prefetch_bytes(rows.values + row * rows.width, bytes < 2048 ? bytes : 2048);
}
template <class T, class I> MAXMARGIN_INLINE void prefetch_row(const CompressedRows<T, I>& rows, std::int64_t row) {
  const std::int64_t first = rows.starts[row], there = rows.starts[row + 1] - first, count = there < 256 ? there : 256;
  prefetch_bytes(rows.values + first, count * static_cast<std::int64_t>(sizeof(T)));
  prefetch_bytes(rows.features + first, count * static_cast<std::int64_t>(sizeof(I)));
}

// ---- steps ------------------------------------------------------------------------------------------------------

// The contribution of a sample to the duality gap: conjugate(z) − βz + ½ ridge β², infinite if the response is.
MAXMARGIN_INLINE double sample_gap(double z, double beta, double lower, double upper, double ridge) {
  if (!(ridge > 0.0)) return z == 0.0 ? 0.0 : ((z > 0.0 ? upper : lower) - beta) * z;
  const double unclipped = z / ridge, above = unclipped > lower ? unclipped : lower;
  const double response = above < upper ? above : upper;
  return (response - beta) * (z - 0.5 * ridge * (response + beta));
}

// `ascend` for problems with groups or without. Numbers that do not change are copied: stores to arrays might change
// those of the state, as far as the compiler knows.
template <bool kGrouped, class Rows>
AscentResult ascend_along(const Rows& rows, AscentState& s, std::int64_t* order, std::int64_t begin, std::int64_t end) {
  AscentResult out;
  const std::int64_t* const row_index = s.rows;
  double *const w = s.weights, *const dual = s.dual;
  const double *const linears = s.linear, *const lowers = s.lower, *const uppers = s.upper, *const ridges = s.ridge;
  const double* const norms = s.squared_norm;
  const double constant = s.constant, damping = s.damping, above = s.shrink_above, below = -s.shrink_below;
  double last_weight = w[s.width];  // of the constant feature
  const auto row_of = [&](std::int64_t k) { return row_index ? row_index[order[k]] : order[k]; };
  std::int64_t bytes = 0, sampled = 0;
  for (; sampled < 16 && begin + sampled < end; ++sampled) bytes += bytes_of(rows, row_of(begin + sampled));
  const std::int64_t lines = bytes * (end - begin) > kCachedBytes * sampled ? kLinesAheadInMemory : kLinesAhead;
  std::int64_t ahead = sampled ? lines * kCacheLine * sampled / (bytes + kCacheLine) : 1;
  ahead = ahead < 1 ? 1 : ahead > kMaxRowsAhead ? kMaxRowsAhead : ahead;
  for (std::int64_t k = begin; k < end; ++k) {
    if (k + 2 * ahead < end) {
      const std::int64_t i = order[k + 2 * ahead];
      prefetch_start(rows, row_index ? row_index[i] : i);
      __builtin_prefetch(dual + i, 1);
      __builtin_prefetch(linears + i);
      __builtin_prefetch(lowers + i);
      __builtin_prefetch(uppers + i);
      __builtin_prefetch(ridges + i);
      __builtin_prefetch(norms + i);
    }
    if (k + ahead < end) prefetch_row(rows, row_of(k + ahead));
    if (k + 1 < end) prefetch_weights(rows, row_of(k + 1), w);
    const std::int64_t i = order[k];
    const std::int64_t row = row_index ? row_index[i] : i;
    const std::int32_t g = kGrouped ? s.group[i] : -1;
    const double before = dual[i], lower = lowers[i], upper = uppers[i], ridge = ridges[i];
    const double curvature = damping * (norms[i] + constant * constant + (g >= 0 ? s.penalty[g] : 0.0)) + ridge;
    const double inverse = 1.0 / curvature;
    const double offset = constant * last_weight + (g >= 0 ? s.offset[g] + s.penalty[g] * s.excess[g] : 0.0);
    const double slack = (linears[i] - offset) - dot(rows, row, w);
    const double gradient = slack - ridge * before;
    out.gap += sample_gap(slack, before, lower, upper, ridge);
    double projected = gradient;
    if (before >= upper || before <= lower) {
      const bool at_upper = before >= upper;
      if (at_upper ? gradient > above : gradient < below) {
        order[k] = order[--end];
        order[end] = i;
        --k;
        continue;
      }
      projected = at_upper ? (gradient < 0.0 ? gradient : 0.0) : (gradient > 0.0 ? gradient : 0.0);
    }
    if (projected > out.highest) out.highest = projected;
    if (projected < out.lowest) out.lowest = projected;
    ++out.steps;
    if (projected == 0.0) continue;
    double after = curvature > 0.0 ? before + gradient * inverse : (gradient > 0.0 ? upper : lower);
    after = after > lower ? after : lower;
    after = after < upper ? after : upper;
    const double change = after - before;
    if (change == 0.0) continue;
    dual[i] = after;
    add(rows, row, damping * change, w);
    last_weight += damping * change * constant;
    if (g >= 0) s.excess[g] += damping * change;
  }
  w[s.width] = last_weight;
  out.remaining = end;
  return out;
}

// A step along each of the variables order[begin … end), in turn. Variables at a bound whose gradient points beyond it
// by more than the thresholds are shrunk: they are moved behind the others.
template <class Rows>
AscentResult ascend(const Rows& rows, AscentState& s, std::int64_t* order, std::int64_t begin, std::int64_t end) {
  return s.group ? ascend_along<true>(rows, s, order, begin, end) : ascend_along<false>(rows, s, order, begin, end);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
