// Sums over the features of two samples: products, squared, absolute and chi-squared differences.
//
// Every kernel of the package is a function of one such sum, s(x, z) = Σ_k term(x_k, z_k). The sum of a
// pair is added up in one fixed order that depends on the two samples alone, never on which block they
// were computed in. That makes a fit repeatable bit for bit at any cache size, and gives two equal rows
// exactly equal values.
#pragma once

#include <cstdint>
#include <cstring>

#include "lanes.hpp"
#include "loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// term(x, z): one feature's share; alone(x) = term(x, 0): its share when the other sample lacks it.
struct Product {
  template <class V> MAXMARGIN_INLINE static V term(V x, V z) { return x * z; }
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

constexpr std::int64_t kFewFeatures = 64;

// Sums along the features of a pair are kept in eight parts at every level, so that all levels give the same bits.
constexpr int kParts = 8;
constexpr int kVectors = kParts / kLanes;

MAXMARGIN_INLINE double total(const Lanes* sums) {
  double p[kParts];
  std::memcpy(p, sums, sizeof p);
  return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

// One sample against Width others at a time, so that each load of x serves several sums.
template <class Term, int Width>
MAXMARGIN_INLINE void strip(const double* x, const double* const* z, std::int64_t features, double* out) {
  Lanes sums[Width][kVectors] = {};
  std::int64_t k = 0;
  for (; k + kParts <= features; k += kParts)
    for (int v = 0; v < kVectors; ++v) {
      const Lanes one = load(x + k + v * kLanes);
      for (int c = 0; c < Width; ++c) sums[c][v] += Term::template term<Lanes>(one, load(z[c] + k + v * kLanes));
    }
  if (k < features) {  // the last few features, padded with zeros: term(0, 0) = 0
    double rest[kParts] = {}, other[kParts] = {};
    std::memcpy(rest, x + k, (features - k) * sizeof(double));
    for (int c = 0; c < Width; ++c) {
      std::memcpy(other, z[c] + k, (features - k) * sizeof(double));
      for (int v = 0; v < kVectors; ++v)
        sums[c][v] += Term::template term<Lanes>(load(rest + v * kLanes), load(other + v * kLanes));
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
  const std::int64_t panel = 12288 / features > 4 ? 12288 / features : 4;  // rows that stay in the second-level cache
  for (std::int64_t begin = 0; begin < rows; begin += panel) {
    const std::int64_t end = begin + panel < rows ? begin + panel : rows;
    std::int64_t c = 0;
    for (; c + width <= columns; c += width) {
      for (int w = 0; w < width; ++w) z[w] = right + right_picks[c + w] * features;
      for (std::int64_t r = begin; r < end; ++r)
        strip<Term, width>(left + left_picks[r] * features, z, features, out + r * columns + c);
    }
    for (; c < columns; ++c) {
      z[0] = right + right_picks[c] * features;
      for (std::int64_t r = begin; r < end; ++r)
        strip<Term, 1>(left + left_picks[r] * features, z, features, out + r * columns + c);
    }
  }
}

constexpr int kPanel = 16;                          // columns side by side
constexpr int kPanelVectors = kPanel / kLanes;
constexpr int kPanelRows = kLanes >= 4 ? 2 : 1;      // as many as the registers hold

// Few features: the lanes run across a panel of columns, packed feature by feature; no sums within a vector.
template <class Term, int Rows>
MAXMARGIN_INLINE void panel_rows(const double* const* x, const double* packed, std::int64_t features,
                                 double* const* out, int count) {
  Lanes sums[Rows][kPanelVectors] = {};
  for (std::int64_t k = 0; k < features; ++k)
    for (int v = 0; v < kPanelVectors; ++v) {
      const Lanes z = load(packed + k * kPanel + v * kLanes);
      for (int r = 0; r < Rows; ++r) sums[r][v] += Term::template term<Lanes>(spread(x[r][k]), z);
    }
  for (int r = 0; r < Rows; ++r) {
    double values[kPanel];
    std::memcpy(values, sums[r], sizeof values);
    std::memcpy(out[r], values, (count < kPanel ? count : kPanel) * sizeof(double));
  }
}

template <class Term>
MAXMARGIN_INLINE void across_columns(const double* left, const std::int64_t* left_picks, std::int64_t rows,
                                     const double* right, const std::int64_t* right_picks, std::int64_t columns,
                                     std::int64_t features, double* out) {
  double packed[kFewFeatures * kPanel];
  for (std::int64_t begin = 0; begin < columns; begin += kPanel) {
    const int count = static_cast<int>(columns - begin < kPanel ? columns - begin : kPanel);
    for (int c = 0; c < kPanel; ++c) {
      const double* z = right + right_picks[begin + (c < count ? c : count - 1)] * features;
      for (std::int64_t k = 0; k < features; ++k) packed[k * kPanel + c] = z[k];
    }
    const double* x[kPanelRows];
    double* target[kPanelRows];
    std::int64_t r = 0;
    for (; r + kPanelRows <= rows; r += kPanelRows) {
      for (int w = 0; w < kPanelRows; ++w) {
        x[w] = left + left_picks[r + w] * features;
        target[w] = out + (r + w) * columns + begin;
      }
      panel_rows<Term, kPanelRows>(x, packed, features, target, count);
    }
    for (; r < rows; ++r) {
      x[0] = left + left_picks[r] * features;
      target[0] = out + r * columns + begin;
      panel_rows<Term, 1>(x, packed, features, target, count);
    }
  }
}

}  // namespace detail

// out[r, c] = s(left[left_picks[r]], right[right_picks[c]]), both sets in row-major order. Which way the lanes run
// depends on the number of features alone, so the order of a sum does not depend on the block.
template <class Term>
void dense_pair_sums(const double* left, const std::int64_t* left_picks, std::int64_t rows, const double* right,
                     const std::int64_t* right_picks, std::int64_t columns, std::int64_t features, double* out) {
  if (features <= detail::kFewFeatures)
    detail::across_columns<Term>(left, left_picks, rows, right, right_picks, columns, features, out);
  else
    detail::along_features<Term>(left, left_picks, rows, right, right_picks, columns, features, out);
}

// Products of compressed rows. The left sample is spread over a dense buffer (all zeros before and after), so a pair
// costs the stored features of the right one.
template <class Index>
void sparse_products(SparseRows<Index> left, const std::int64_t* left_picks, std::int64_t rows, SparseRows<Index> right,
                     const std::int64_t* right_picks, std::int64_t columns, double* spread, double* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = left_picks[r];
    for (Index p = left.starts[i]; p < left.starts[i + 1]; ++p) spread[left.features[p]] = left.values[p];
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t j = right_picks[c];
      double sum = 0.0;
      for (Index p = right.starts[j]; p < right.starts[j + 1]; ++p) sum += spread[right.features[p]] * right.values[p];
      out[r * columns + c] = sum;
    }
    for (Index p = left.starts[i]; p < left.starts[i + 1]; ++p) spread[left.features[p]] = 0.0;
  }
}

// Differences of compressed rows: both are walked in the order of their features (which must be sorted), so that the sum
// is the same from either side and nothing cancels.
template <class Term, class Index>
void sparse_differences(SparseRows<Index> left, const std::int64_t* left_picks, std::int64_t rows,
                        SparseRows<Index> right, const std::int64_t* right_picks, std::int64_t columns, double*,
                        double* out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = left_picks[r];
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t j = right_picks[c];
      Index p = left.starts[i], q = right.starts[j];
      const Index p_end = left.starts[i + 1], q_end = right.starts[j + 1];
      double sum = 0.0;
      while (p < p_end && q < q_end) {
        const Index a = left.features[p], b = right.features[q];
        if (a == b) sum += Term::template term<double>(left.values[p++], right.values[q++]);
        else if (a < b) sum += Term::alone(left.values[p++]);
        else sum += Term::alone(right.values[q++]);
      }
      for (; p < p_end; ++p) sum += Term::alone(left.values[p]);
      for (; q < q_end; ++q) sum += Term::alone(right.values[q]);
      out[r * columns + c] = sum;
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
