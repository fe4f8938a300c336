// Numbers of about 106 bits: the unevaluated sum of two doubles (Dekker 1971), for scalars and vectors.
//
// The source must be compiled without fused multiply-add (-ffp-contract=off): a product that is fused into a sum is
// another number than the one whose rounding error was computed.
#pragma once

#include <cmath>

#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class V> struct DoubleDouble {
  V high, low;
};

// a + b = high + low exactly.
template <class V> MAXMARGIN_INLINE DoubleDouble<V> two_sum(V a, V b) {
  const V s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

// The same for |a| ≥ |b|.
template <class V> MAXMARGIN_INLINE DoubleDouble<V> quick_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}

// The rounding error of the product p = a b.
template <class V> MAXMARGIN_INLINE V split_error(V a, V b, V p) {
  const V ca = a * 134217729.0, cb = b * 134217729.0;  // 2^27 + 1 (Veltkamp)
  const V ah = ca - (ca - a), bh = cb - (cb - b), al = a - ah, bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
MAXMARGIN_INLINE double product_error(double a, double b, double p) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fma(a, b, -p);
#else
  return split_error(a, b, p);
#endif
}
MAXMARGIN_INLINE Vec<double> product_error(Vec<double> a, Vec<double> b, Vec<double> p) {
#if defined(__AVX512F__)
  return _mm512_fmsub_pd(a, b, p);
#elif defined(__FMA__)
  return _mm256_fmsub_pd(a, b, p);
#elif defined(__aarch64__)
  return vfmaq_f64(-p, a, b);
#else
  return split_error(a, b, p);
#endif
}

// a b = high + low exactly, unless it overflows or underflows.
template <class V> MAXMARGIN_INLINE DoubleDouble<V> two_product(V a, V b) {
  const V p = a * b;
  return {p, product_error(a, b, p)};
}

template <class V> MAXMARGIN_INLINE DoubleDouble<V> operator-(DoubleDouble<V> a) { return {-a.high, -a.low}; }

template <class V> MAXMARGIN_INLINE DoubleDouble<V> operator+(DoubleDouble<V> a, DoubleDouble<V> b) {
  DoubleDouble<V> s = two_sum(a.high, b.high), t = two_sum(a.low, b.low);
  s = quick_two_sum<V>(s.high, s.low + t.high);
  return quick_two_sum<V>(s.high, s.low + t.low);
}
template <class V> MAXMARGIN_INLINE DoubleDouble<V> operator-(DoubleDouble<V> a, DoubleDouble<V> b) { return a + -b; }

template <class V> MAXMARGIN_INLINE DoubleDouble<V> operator*(DoubleDouble<V> a, DoubleDouble<V> b) {
  const DoubleDouble<V> p = two_product(a.high, b.high);
  return quick_two_sum<V>(p.high, p.low + (a.high * b.low + a.low * b.high));
}

template <class V> MAXMARGIN_INLINE DoubleDouble<V> operator/(DoubleDouble<V> a, DoubleDouble<V> b) {
  const V first = a.high / b.high;
  DoubleDouble<V> rest = a - DoubleDouble<V>{first, V{}} * b;
  const V second = rest.high / b.high;
  rest = rest - DoubleDouble<V>{second, V{}} * b;
  const DoubleDouble<V> sum = quick_two_sum<V>(first, second);
  return sum + DoubleDouble<V>{rest.high / b.high, V{}};
}

// sum += a (b_high + b_low): the compensated inner product of Ogita, Rump and Oishi (2005). After n of them the error
// is at most 4 (n + 8)² 2^-106 Σ |a b|.
template <class V> MAXMARGIN_INLINE void add_product(DoubleDouble<V>& sum, V a, V b_high, V b_low) {
  const DoubleDouble<V> p = two_product(a, b_high), s = two_sum(sum.high, p.high);
  sum.high = s.high;
  sum.low += s.low + (p.low + a * b_low);
}

// e^x for x ≤ 0 or moderate: x = n ln 2 + r, then e^(r/256) − 1 by its series, and eight times s ← s (s + 2). The
// series has a relative error below 2^-100; each squaring doubles the error and adds one rounding, so that of the
// result is below 2^-90. Results too small for a normal double are 0.
MAXMARGIN_INLINE DoubleDouble<Vec<double>> exponential(DoubleDouble<Vec<double>> x) {
  using V = Vec<double>;
  using E = Exponential<double>;
  // ln 2 in pieces of which a product with an integer below 2^11 is exact.
  constexpr double ln2[] = {0x1.62e42fefa2p-1, 0x1.9ef35793c6p-41, 0x1.673007e5ed5e8p-81};
  // 1/k! for k = 10, …, 1
  constexpr double high[] = {2.7557319223985888e-07,
                             2.7557319223985893e-06,
                             2.4801587301587302e-05,
                             0.00019841269841269841,
                             0.0013888888888888889,
                             0.0083333333333333332,
                             0.041666666666666664,
                             0.16666666666666666,
                             0.5,
                             1.0};
  constexpr double low[] = {2.3767714622250297e-23,
                            -1.858393274046472e-22,
                            2.1511947866775882e-23,
                            1.7209558293420705e-22,
                            -5.300543954373577e-20,
                            1.1564823173178714e-19,
                            2.3129646346357427e-18,
                            9.25185853854297e-18,
                            0.0,
                            0.0};
  const IntegerVec<double> vanishes = x.high < E::kLeast;
  const V most = repeat(E::kMost);
  x.low = x.high > E::kMost ? V{} : x.low;
  x.high = x.high > E::kMost ? most : x.high;
  const V rounded = x.high * E::kLog2e + E::kRound, n = rounded - E::kRound;
  DoubleDouble<V> r = x;
  for (double piece : ln2) r = r - DoubleDouble<V>{n * piece, V{}};
  r = {r.high / 256.0, r.low / 256.0};
  DoubleDouble<V> s = {repeat(high[0]), repeat(low[0])};
  for (int k = 1; k < 10; ++k) s = s * r + DoubleDouble<V>{repeat(high[k]), repeat(low[k])};
  s = s * r;
  for (int k = 0; k < 8; ++k) s = s * (s + DoubleDouble<V>{repeat(2.0), V{}});
  s = s + DoubleDouble<V>{repeat(1.0), V{}};
  IntegerVec<double> bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits = (bits + E::kBias) << E::kShift;
  V power;
  std::memcpy(&power, &bits, sizeof power);
  return {vanishes ? V{} : s.high * power, vanishes ? V{} : s.low * power};
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
