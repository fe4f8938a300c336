// Vectors of double as the working-set rules use them: loads that widen, and the largest value with its place.
#pragma once

#include <cstdint>
#include <cstring>

#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kLanes = kWidth<double>;
typedef Vec<double> Lanes;
typedef IntegerVec<double> IndexLanes;

MAXMARGIN_INLINE Lanes load(const double* p) { return load_vector(p); }

MAXMARGIN_INLINE Lanes load(const float* p) { return load_widened(p); }

MAXMARGIN_INLINE Lanes spread(double x) { return repeat(x); }

MAXMARGIN_INLINE IndexLanes counting() {
  IndexLanes v;
  for (int l = 0; l < kLanes; ++l) v[l] = l;
  return v;
}

// Without the care for not-a-number of std::fmin, which costs a call.
MAXMARGIN_INLINE double smaller(double a, double b) { return a < b ? a : b; }
MAXMARGIN_INLINE double larger(double a, double b) { return a > b ? a : b; }

// The largest of the values seen so far in each lane, and where it was seen first.
struct LaneMaximum {
  Lanes value;
  IndexLanes at;

  MAXMARGIN_INLINE void see(Lanes candidate, IndexLanes here) { see(candidate, ~IndexLanes{}, here); }

  MAXMARGIN_INLINE void see(Lanes candidate, IndexLanes allowed, IndexLanes here) {
    const IndexLanes better = (candidate > value) & allowed;
    value = better ? candidate : value;
    at = better ? here : at;
  }

  // Over all lanes; among equals the lowest index, as in a plain loop.
  MAXMARGIN_INLINE void reduce(double& best, std::int64_t& best_at) const {
    for (int l = 0; l < kLanes; ++l)
      if (at[l] >= 0 && (value[l] > best || (value[l] == best && at[l] < best_at))) {
        best = value[l];
        best_at = at[l];
      }
  }
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
