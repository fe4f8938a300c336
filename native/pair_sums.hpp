// Sums over the features of two samples: products, squared, absolute and chi-squared differences.
//
// Every kernel of the package is a function of one such sum, s(x, z) = Σ_k term(x_k, z_k). The sum of a
// pair is added up in one fixed order that depends on the two samples alone, never on which block they
// were computed in. That is what makes a fit repeatable bit for bit at any cache size, gives two equal
// rows exactly equal values, and makes a row predicted alone equal to the same row inside a batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "instruction_sets.hpp"

namespace maxmargin {

// term(x, z): one feature's share; alone(x) = term(x, 0): its share when the other sample lacks it.
struct Product {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { return x * z; }
  static double alone(double) { return 0.0; }
};
struct SquaredDifference {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { return (x - z) * (x - z); }
  static double alone(double x) { return x * x; }
};
struct AbsoluteDifference {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { V d = x - z; return d < 0 ? -d : d; }
  static double alone(double x) { return x < 0 ? -x : x; }
};
struct ChiSquaredDifference {  // for features ≥ 0; 0/0 counts as 0
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) {
    V total = x + z, difference = x - z;
    V share = difference * difference / (total == 0 ? total + 1 : total);
    return share;
  }
  static double alone(double x) { return x; }
};

namespace detail {

constexpr int kLanes = 8;
constexpr std::int64_t kFewFeatures = 64;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));

MAXMARGIN_INLINE Lanes load(const double* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

MAXMARGIN_INLINE double total(const Lanes& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// One sample against Width others at a time, so that each load of x serves several sums.
template <class Term, int Width>
MAXMARGIN_INLINE void strip(const double* x, const double* const* z, std::int64_t features, double* out) {
  Lanes sums[Width] = {};
  std::int64_t k = 0;
  for (; k + kLanes <= features; k += kLanes) {
    Lanes v = load(x + k);
    for (int c = 0; c < Width; ++c) sums[c] += Term::template term<Lanes>(v, load(z[c] + k));
  }
  if (k < features) {  // the last few features, padded with zeros: term(0, 0) = 0
    double rest[kLanes] = {}, other[kLanes] = {};
    std::memcpy(rest, x + k, (features - k) * sizeof(double));
    Lanes v = load(rest);
    for (int c = 0; c < Width; ++c) {
      std::memcpy(other, z[c] + k, (features - k) * sizeof(double));
      sums[c] += Term::template term<Lanes>(v, load(other));
    }
  }
  for (int c = 0; c < Width; ++c) out[c] = total(sums[c]);
}

// Many features: the lanes run along the features of a pair.
template <class Term>
MAXMARGIN_INLINE void along_features(const double* left, const std::int64_t* left_picks, std::int64_t rows,
                                     const double* right, const std::int64_t* right_picks, std::int64_t columns,
                                     std::int64_t features, double* out) {
  constexpr int width = 4;
  const double* z[width];
  std::int64_t c = 0;
  for (; c + width <= columns; c += width) {  // a few columns stay in the first-level cache while all rows pass
    for (int w = 0; w < width; ++w) z[w] = right + right_picks[c + w] * features;
    for (std::int64_t r = 0; r < rows; ++r)
      strip<Term, width>(left + left_picks[r] * features, z, features, out + r * columns + c);
  }
  for (; c < columns; ++c) {
    z[0] = right + right_picks[c] * features;
    for (std::int64_t r = 0; r < rows; ++r)
      strip<Term, 1>(left + left_picks[r] * features, z, features, out + r * columns + c);
  }
}

constexpr int kPanel = 2 * kLanes;

// Few features: the lanes run across a panel of columns, packed feature by feature; no sums within a vector.
template <class Term, int Rows>
MAXMARGIN_INLINE void panel_rows(const double* const* x, const double* packed, std::int64_t features,
                                 double* const* out, int count) {
  Lanes sums[Rows][2] = {};
  for (std::int64_t k = 0; k < features; ++k) {
    const Lanes first = load(packed + k * kPanel), second = load(packed + k * kPanel + kLanes);
    for (int r = 0; r < Rows; ++r) {
      const Lanes v = x[r][k] - Lanes{};
      sums[r][0] += Term::template term<Lanes>(v, first);
      sums[r][1] += Term::template term<Lanes>(v, second);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    if (count == kPanel) {
      std::memcpy(out[r], sums[r], sizeof sums[r]);
    } else {
      double values[kPanel];
      std::memcpy(values, sums[r], sizeof values);
      std::memcpy(out[r], values, count * sizeof(double));
    }
  }
}

template <class Term>
MAXMARGIN_INLINE void across_columns(const double* left, const std::int64_t* left_picks, std::int64_t rows,
                                     const double* right, const std::int64_t* right_picks, std::int64_t columns,
                                     std::int64_t features, double* out) {
  double packed[kFewFeatures * kPanel];
  for (std::int64_t begin = 0; begin < columns; begin += kPanel) {
    const int count = static_cast<int>(std::min<std::int64_t>(kPanel, columns - begin));
    for (int c = 0; c < kPanel; ++c) {
      const double* z = right + right_picks[begin + std::min(c, count - 1)] * features;
      for (std::int64_t k = 0; k < features; ++k) packed[k * kPanel + c] = z[k];
    }
    std::int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
      const double* x[2] = {left + left_picks[r] * features, left + left_picks[r + 1] * features};
      double* target[2] = {out + r * columns + begin, out + (r + 1) * columns + begin};
      panel_rows<Term, 2>(x, packed, features, target, count);
    }
    if (r < rows) {
      const double* x[1] = {left + left_picks[r] * features};
      double* target[1] = {out + r * columns + begin};
      panel_rows<Term, 1>(x, packed, features, target, count);
    }
  }
}

}  // namespace detail

// out[r, c] = s(left[left_picks[r]], right[right_picks[c]]), both sets in row-major order. Which way the lanes run
// depends on the number of features alone, so the order of a sum does not depend on the block.
// One function per term, because a multi-versioned function cannot be a template.
#define MAXMARGIN_DENSE(name, Term)                                                                              \
  MAXMARGIN_CLONES inline void name(const double* left, const std::int64_t* left_picks, std::int64_t rows,        \
                                    const double* right, const std::int64_t* right_picks, std::int64_t columns,   \
                                    std::int64_t features, double* out) {                                         \
    if (features <= detail::kFewFeatures)                                                                         \
      detail::across_columns<Term>(left, left_picks, rows, right, right_picks, columns, features, out);           \
    else                                                                                                          \
      detail::along_features<Term>(left, left_picks, rows, right, right_picks, columns, features, out);           \
  }
MAXMARGIN_DENSE(dense_products, Product)
MAXMARGIN_DENSE(dense_squared, SquaredDifference)
MAXMARGIN_DENSE(dense_absolute, AbsoluteDifference)
MAXMARGIN_DENSE(dense_chi_squared, ChiSquaredDifference)
#undef MAXMARGIN_DENSE

using DensePairSums = void (*)(const double*, const std::int64_t*, std::int64_t, const double*, const std::int64_t*,
                               std::int64_t, std::int64_t, double*);

template <class Index> struct SparseRows {  // compressed sparse rows
  const Index* starts;
  const Index* features;
  const double* values;
};

// The same for compressed rows. The left sample is spread over a dense buffer, so the cost per pair is the
// number of stored features of the right one: s = Σ_k alone(x_k) + Σ_{k in z} (term(x_k, z_k) − alone(x_k)).
template <class Term, class Index>
void sparse_pair_sums(SparseRows<Index> left, const std::int64_t* left_picks, std::int64_t rows,
                      SparseRows<Index> right, const std::int64_t* right_picks, std::int64_t columns,
                      std::int64_t features, double* out) {
  std::vector<double> spread(features, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = left_picks[r];
    double own = 0.0;
    for (Index p = left.starts[i]; p < left.starts[i + 1]; ++p) {
      spread[left.features[p]] = left.values[p];
      own += Term::alone(left.values[p]);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t j = right_picks[c];
      double sum = 0.0;
      for (Index p = right.starts[j]; p < right.starts[j + 1]; ++p) {
        const double x = spread[right.features[p]];
        sum += Term::template term<double>(x, right.values[p]) - Term::alone(x);
      }
      out[r * columns + c] = own + sum;
    }
    for (Index p = left.starts[i]; p < left.starts[i + 1]; ++p) spread[left.features[p]] = 0.0;
  }
}

// out[r] = Σ_k x_k² for every picked sample, added up in the same order as in a block of products.
inline void dense_squares(const double* data, const std::int64_t* picks, std::int64_t rows, std::int64_t features,
                          double* out) {
  for (std::int64_t r = 0; r < rows; ++r)
    dense_products(data, picks + r, 1, data, picks + r, 1, features, out + r);
}

template <class Index>
void sparse_squares(SparseRows<Index> data, const std::int64_t* picks, std::int64_t rows, double* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0.0;
    for (Index p = data.starts[picks[r]]; p < data.starts[picks[r] + 1]; ++p) sum += data.values[p] * data.values[p];
    out[r] = sum;
  }
}

}  // namespace maxmargin
