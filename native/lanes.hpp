// Several numbers at a time, as many as a register of the level holds (GCC and Clang vector extensions).
#pragma once

#include <cstdint>
#include <cstring>

#define MAXMARGIN_INLINE inline __attribute__((always_inline))

namespace maxmargin::MAXMARGIN_LEVEL {

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef std::int64_t IndexLanes __attribute__((vector_size(kLanes * sizeof(std::int64_t))));

MAXMARGIN_INLINE Lanes load(const double* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

MAXMARGIN_INLINE Lanes spread(double x) { return x - Lanes{}; }

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
