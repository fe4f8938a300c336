// Kernel values and products in double-double arithmetic, from data in single or double precision.
#pragma once

#include "dense_blocks.hpp"
#include "double_double.hpp"
#include "extended_loops.hpp"
#include "row_products.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

using ExtendedVec = DoubleDouble<Vec<double>>;

MAXMARGIN_INLINE void accumulate(ExtendedVec& sum, ExtendedVec value) {
  const ExtendedVec s = two_sum(sum.high, value.high);
  sum.high = s.high;
  sum.low += s.low + value.low;
}

// What one feature of two samples adds to the sum of a kernel: the terms of kernel_terms.hpp, of exact doubles.
struct ExtendedProduct {
  MAXMARGIN_INLINE static ExtendedVec term(Vec<double> x, Vec<double> z) { return two_product(x, z); }
};
struct ExtendedSquare {
  MAXMARGIN_INLINE static ExtendedVec term(Vec<double> x, Vec<double> z) {
    const ExtendedVec d = two_sum<Vec<double>>(x, -z);
    return d * d;
  }
};
struct ExtendedAbsolute {
  MAXMARGIN_INLINE static ExtendedVec term(Vec<double> x, Vec<double> z) {
    const ExtendedVec d = two_sum<Vec<double>>(x, -z);
    return {d.high < 0 ? -d.high : d.high, d.high < 0 ? -d.low : d.low};
  }
};
struct ExtendedChiSquare {
  MAXMARGIN_INLINE static ExtendedVec term(Vec<double> x, Vec<double> z) {
    const ExtendedVec d = two_sum<Vec<double>>(x, -z);
    ExtendedVec total = two_sum(x, z);
    total.high = total.high == 0 ? total.high + 1 : total.high;
    return d * d / total;
  }
};

MAXMARGIN_INLINE ExtendedVec extended_value(const Formula& f, ExtendedVec sum) {
  using V = Vec<double>;
  const ExtendedVec one = {repeat(1.0), V{}}, gamma = {repeat(f.gamma), V{}}, coef0 = {repeat(f.coef0), V{}};
  switch (f.function) {
    case Function::power: {
      ExtendedVec base = sum * gamma + coef0, result = one;
      for (int rest = f.degree; rest; rest /= 2, base = base * base)
        if (rest % 2) result = result * base;
      return result;
    }
    case Function::exponential:
      return exponential(-(sum * gamma));
    case Function::tangent: {
      const ExtendedVec two = {repeat(2.0), V{}};
      return one - two / (exponential(two * (sum * gamma + coef0)) + one);
    }
    default:
      return sum;
  }
}

template <class Term>
void extended_block(const Formula& f, const PackedSamples<double>& rows, const PackedSamples<double>& columns,
                    std::int64_t features, const double* weights, std::int64_t first_strip, std::int64_t last_strip,
                    std::int64_t stride, ExtendedOutput out) {
  constexpr int width = kWidth<double>;
  for (std::int64_t s = first_strip; s < last_strip; ++s)
    for (std::int64_t at = 0; at < columns.count; at += width) {
      const double* panel = columns.values + at / kPanel<double> * kPanel<double> * features + at % kPanel<double>;
      for (int r = 0; r < kStrip && s * kStrip + r < rows.count; ++r) {
        const double* x = rows.values + s * features * kStrip + r;
        ExtendedVec sum{};
        for (std::int64_t k = 0; k < features; ++k) {
          const ExtendedVec term = Term::term(repeat(x[k * kStrip]), load_vector(panel + k * kPanel<double>));
          accumulate(sum, weights ? term * ExtendedVec{repeat(weights[k]), Vec<double>{}} : term);
        }
        const ExtendedVec value = extended_value(f, two_sum(sum.high, sum.low));
        const std::int64_t place = (s * kStrip + r) * stride + at;
        const std::size_t bytes = (columns.count - at < width ? columns.count - at : width) * sizeof(double);
        std::memcpy(out.high + place, &value.high, bytes);
        std::memcpy(out.low + place, &value.low, bytes);
      }
    }
}

MAXMARGIN_INLINE DoubleDouble<double> sum_of_lanes(ExtendedVec v) {
  DoubleDouble<double> sum{};
  for (int l = 0; l < kWidth<double>; ++l) sum = sum + two_sum(v.high[l], v.low[l]);
  return sum;
}

// Σ_k x[k] w[k]
template <class T> DoubleDouble<double> extended_dot(const T* x, ExtendedInput w, std::int64_t count) {
  constexpr int step = kWidth<double>;
  ExtendedVec several{};
  std::int64_t k = 0;
  for (; k + step <= count; k += step)
    add_product(several, load_double(x + k), load_vector(w.high + k), w.low ? load_vector(w.low + k) : Vec<double>{});
  DoubleDouble<double> sum = sum_of_lanes(several);
  for (; k < count; ++k) add_product(sum, static_cast<double>(x[k]), w.high[k], w.low ? w.low[k] : 0.0);
  return two_sum(sum.high, sum.low);
}

template <class T>
MAXMARGIN_INLINE DoubleDouble<double> extended_dot(const DenseRows<T>& rows, std::int64_t row, ExtendedInput w) {
  return extended_dot(rows.values + row * rows.width, w, rows.width);
}
template <class T, class I>
MAXMARGIN_INLINE DoubleDouble<double> extended_dot(const CompressedRows<T, I>& rows, std::int64_t row,
                                                   ExtendedInput w) {
  DoubleDouble<double> sum{};
  for (std::int64_t k = rows.starts[row]; k < static_cast<std::int64_t>(rows.starts[row + 1]); ++k) {
    const std::int64_t j = rows.features[k];
    add_product(sum, static_cast<double>(rows.values[k]), w.high[j], w.low ? w.low[j] : 0.0);
  }
  return two_sum(sum.high, sum.low);
}

template <class Rows>
void extended_decisions(const Rows& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
                        ExtendedInput weights, ExtendedOutput out) {
  for (std::int64_t k = begin; k < end; ++k) {
    const DoubleDouble<double> sum = extended_dot(rows, indices ? indices[k] : k, weights);
    out.high[k] = sum.high;
    out.low[k] = sum.low;
  }
}

template <class T>
MAXMARGIN_INLINE void extended_add(const DenseRows<T>& rows, std::int64_t row, DoubleDouble<double> factor,
                                   ExtendedOutput w) {
  constexpr int step = kWidth<double>;
  const T* x = rows.values + row * rows.width;
  std::int64_t k = 0;
  for (; k + step <= rows.width; k += step) {
    ExtendedVec sum = {load_vector(w.high + k), load_vector(w.low + k)};
    add_product(sum, load_double(x + k), repeat(factor.high), repeat(factor.low));
    store_vector(w.high + k, sum.high);
    store_vector(w.low + k, sum.low);
  }
  for (; k < rows.width; ++k) {
    DoubleDouble<double> sum = {w.high[k], w.low[k]};
    add_product(sum, static_cast<double>(x[k]), factor.high, factor.low);
    w.high[k] = sum.high;
    w.low[k] = sum.low;
  }
}
template <class T, class I>
MAXMARGIN_INLINE void extended_add(const CompressedRows<T, I>& rows, std::int64_t row, DoubleDouble<double> factor,
                                   ExtendedOutput w) {
  for (std::int64_t k = rows.starts[row]; k < static_cast<std::int64_t>(rows.starts[row + 1]); ++k) {
    const std::int64_t j = rows.features[k];
    DoubleDouble<double> sum = {w.high[j], w.low[j]};
    add_product(sum, static_cast<double>(rows.values[k]), factor.high, factor.low);
    w.high[j] = sum.high;
    w.low[j] = sum.low;
  }
}

template <class Rows>
void extended_combine(const Rows& rows, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
                      ExtendedInput factors, ExtendedOutput out) {
  for (std::int64_t k = begin; k < end; ++k) {
    const DoubleDouble<double> factor = {factors.high[k], factors.low ? factors.low[k] : 0.0};
    if (factor.high != 0.0) extended_add(rows, indices ? indices[k] : k, factor, out);
  }
}

// After cancellation the low part may be the larger one: make the pairs those of a sum.
inline void normalise(ExtendedOutput values, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) {
    const DoubleDouble<double> sum = two_sum(values.high[k], values.low[k]);
    values.high[k] = sum.high;
    values.low[k] = sum.low;
  }
}

inline void extended_table_product(ExtendedInput table, std::int64_t begin, std::int64_t end, std::int64_t columns,
                                   ExtendedInput vector, ExtendedOutput out) {
  for (std::int64_t r = begin; r < end; ++r) {
    DoubleDouble<double> sum = extended_dot(table.high + r * columns, vector, columns);
    if (table.low) sum = sum + extended_dot(table.low + r * columns, {vector.high, nullptr}, columns);
    out.high[r] = sum.high;
    out.low[r] = sum.low;
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
