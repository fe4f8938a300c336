// SIMD vectors of float and double, as wide as a register of the instruction set (GCC and Clang vector extensions), and
// the exponential function of a vector.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cstdint>
#include <cstring>

#define MAXMARGIN_INLINE inline __attribute__((always_inline))

namespace maxmargin::MAXMARGIN_LEVEL {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kStrip = 12;  // rows that a block keeps in registers, two vectors each
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kStrip = 6;
#elif defined(__aarch64__)
constexpr int kVectorBytes = 16;
constexpr int kStrip = 8;  // 16 sums: four multipliers with a latency of four; the 32 registers hold them
#else
constexpr int kVectorBytes = 16;
constexpr int kStrip = 4;
#endif

template <class T> struct VectorOf;
template <> struct VectorOf<float> {
  typedef float Values __attribute__((vector_size(kVectorBytes)));
  typedef std::int32_t Integers __attribute__((vector_size(kVectorBytes)));
};
template <> struct VectorOf<double> {
  typedef double Values __attribute__((vector_size(kVectorBytes)));
  typedef std::int64_t Integers __attribute__((vector_size(kVectorBytes)));
};
template <class T> using Vec = typename VectorOf<T>::Values;
template <class T> using IntegerVec = typename VectorOf<T>::Integers;
template <class T> constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));

template <class T> MAXMARGIN_INLINE Vec<T> load_vector(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
// Floats converted to a vector of double. GCC 12 compiles the portable form to five instructions.
MAXMARGIN_INLINE Vec<double> load_widened(const float* p) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX__)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
  Half half;
  std::memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, Vec<double>);
#endif
}

template <class T> MAXMARGIN_INLINE void store_vector(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }
template <class T> MAXMARGIN_INLINE Vec<T> repeat(T x) { return x - Vec<T>{}; }

// Loops over several numbers and over single ones: V is a vector of double, or double.
template <class V> MAXMARGIN_INLINE V get(const double* p) {
  V values;
  std::memcpy(&values, p, sizeof values);
  return values;
}
template <class V> MAXMARGIN_INLINE void put(double* p, V values) { std::memcpy(p, &values, sizeof values); }
template <class V> MAXMARGIN_INLINE V magnitude_of(V x) { return x < 0.0 ? V(-x) : x; }
template <class V> MAXMARGIN_INLINE V larger_of(V a, V b) { return a > b ? a : b; }
MAXMARGIN_INLINE double square_root(double x) { return __builtin_sqrt(x); }
MAXMARGIN_INLINE Vec<double> square_root(Vec<double> x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_pd(x);
#elif defined(__AVX__)
  return _mm256_sqrt_pd(x);
#elif defined(__x86_64__)
  return _mm_sqrt_pd(x);
#else
  for (int l = 0; l < kWidth<double>; ++l) x[l] = __builtin_sqrt(x[l]);
  return x;
#endif
}

// Hide the contents of a vector from the compiler, for example that all lanes are equal.
template <class V> MAXMARGIN_INLINE void hide(V& v) {
#if defined(__AVX512F__)
  asm volatile("" : "+v"(v));
#elif defined(__x86_64__)
  asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(v));  // in a register, too
#else
  asm volatile("" : : "r"(&v) : "memory");
#endif
}

// e^r = 1 + r + r² q(r) on |r| ≤ ½ ln 2, with q a Chebyshev fit; x = n ln 2 + r (Cody and Waite), 2^n by way of the
// exponent bits. Relative error below 2 units in the last place of T. Results too small for a normal number are 0,
// arguments above the largest are taken as the largest.
template <class T> struct Exponential;

template <> struct Exponential<float> {
  static constexpr float kMost = 88.37f, kLeast = -87.33f;
  static constexpr float kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it leaves the nearest integer in the low bits
  static constexpr int kBias = 127, kShift = 23;
  static constexpr float kTerms[] = {0.0013926183587713494542f, 0.0083631790527225773704f, 0.041666554617204574203f,
                                     0.16666576989698775683f, 0.5f};
};
template <> struct Exponential<double> {
  static constexpr double kMost = 709.4, kLeast = -708.3;
  static constexpr double kLog2e = 1.4426950408889634074, kLn2High = 0.693147180369123816490,
                          kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52
  static constexpr int kBias = 1023, kShift = 52;
  static constexpr double kTerms[] = {2.5100385495510319078e-8,  2.7620088445409748161e-7,
                                      2.7557268459997064772e-6,  0.000024801521295954375131,
                                      0.00019841269863053616878, 0.0013888888917213716901,
                                      0.0083333333333300618325,  0.041666666666624127873,
                                      0.16666666666666667453,    0.5};
};

template <class T> MAXMARGIN_INLINE Vec<T> exponential(Vec<T> x) {
  using E = Exponential<T>;
  const IntegerVec<T> vanishes = x < E::kLeast;
  x = x > E::kMost ? repeat<T>(E::kMost) : x;
  const Vec<T> rounded = x * E::kLog2e + E::kRound;
  const Vec<T> n = rounded - E::kRound;
  const Vec<T> r = (x - n * E::kLn2High) - n * E::kLn2Low;
  Vec<T> q = repeat<T>(E::kTerms[0]);
#pragma GCC unroll 16
  for (int k = 1; k < static_cast<int>(sizeof(E::kTerms) / sizeof(T)); ++k) q = q * r + E::kTerms[k];
  const Vec<T> fraction = (r * r) * q + r + T(1);
  IntegerVec<T> bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits = (bits + E::kBias) << E::kShift;
  Vec<T> power;
  std::memcpy(&power, &bits, sizeof power);
  return vanishes ? Vec<T>{} : fraction * power;
}

template <class T> MAXMARGIN_INLINE Vec<T> hyperbolic_tangent(Vec<T> x) {
  return T(1) - T(2) / (exponential<T>(x + x) + T(1));
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
