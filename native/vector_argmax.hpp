// The largest of many values and its position, several lanes of doubles at a time: for the working-set rules.
#pragma once

#include <cstdint>

#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kLanes = kWidth<double>;
typedef Vec<double> Lanes;
typedef IntegerVec<double> IndexLanes;

MAXMARGIN_INLINE Lanes load(const double* p) { return load_vector(p); }
MAXMARGIN_INLINE Lanes load(const float* p) { return load_widened(p); }

MAXMARGIN_INLINE IndexLanes lane_indices() {
  IndexLanes v;
  for (int l = 0; l < kLanes; ++l) v[l] = l;
  return v;
}

// Minimum and maximum without the treatment of NaN by std::fmin and std::fmax, which costs a call.
MAXMARGIN_INLINE double smaller(double a, double b) { return a < b ? a : b; }
MAXMARGIN_INLINE double larger(double a, double b) { return a > b ? a : b; }

// The largest value so far in each lane, and the position of its first occurrence.
struct LaneArgmax {
  Lanes value;
  IndexLanes at;

  MAXMARGIN_INLINE void update(Lanes candidate, IndexLanes here) { update(candidate, ~IndexLanes{}, here); }

  MAXMARGIN_INLINE void update(Lanes candidate, IndexLanes allowed, IndexLanes here) {
    const IndexLanes better = (candidate > value) & allowed;
    value = better ? candidate : value;
    at = better ? here : at;
  }

  // Over all lanes; among equal values the lowest position, as in a scalar loop.
  MAXMARGIN_INLINE void reduce(double& best, std::int64_t& best_at) const {
    for (int l = 0; l < kLanes; ++l)
      if (at[l] >= 0 && (value[l] > best || (value[l] == best && at[l] < best_at))) {
        best = value[l];
        best_at = at[l];
      }
  }
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
