// The terms of kernels: what one feature of two samples adds to the sum that a kernel is a function of.
#pragma once

#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// term(x, z); separate(x) = term(x, 0), which a feature adds that the other sample lacks; and the rest, if both have
// it, cross(x, z) = term(x, z) − separate(x) − separate(z), which is 0 if either is 0.
struct Product {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { return x * z; }
  template <class V> MAXMARGIN_INLINE static V separate(V) { return V{}; }
  template <class V> MAXMARGIN_INLINE static V cross(V x, V z) { return x * z; }
};
struct SquaredDifference {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) {
    V d = x - z;
    return d * d;
  }
  template <class V> MAXMARGIN_INLINE static V separate(V x) { return x * x; }
  template <class V> MAXMARGIN_INLINE static V cross(V x, V z) { return (x * -2) * z; }
};
struct AbsoluteDifference {
  template <class V> MAXMARGIN_INLINE static V magnitude(V x) { return x < 0 ? -x : x; }
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { return magnitude<V>(x - z); }
  template <class V> MAXMARGIN_INLINE static V separate(V x) { return magnitude<V>(x); }
  template <class V> MAXMARGIN_INLINE static V cross(V x, V z) {
    return magnitude<V>(x - z) - (magnitude<V>(x) + magnitude<V>(z));
  }
};
struct ChiSquaredDifference {  // for features ≥ 0; 0/0 counts as 0
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) {
    V total = x + z, difference = x - z;
    return difference * difference / (total == 0 ? total + 1 : total);
  }
  template <class V> MAXMARGIN_INLINE static V separate(V x) { return x; }
  template <class V> MAXMARGIN_INLINE static V cross(V x, V z) {
    V total = x + z, difference = x - z, product = x * z;
    V share = difference * difference / (total == 0 ? total + 1 : total) - total;
    return product == 0 ? V{} : share;
  }
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
