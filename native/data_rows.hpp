// Rows of features as Python passes them: their kind (dense or compressed, float32 or float64, int32 or int64 indices)
// is recognised once per call, and the loops of that kind are called.
#pragma once

#include "bindings.hpp"

namespace maxmargin {

constexpr std::int64_t kRowsPerChunk = 512;  // that a thread takes at a time

// The rows of a data set: a table, or the three arrays of compressed sparse rows; and which of them are meant.
struct DataRows {
  AnyArray values;
  std::int64_t width;  // the number of features
  AnyArray starts, features;
  Vector<const std::int64_t> indices;  // absent: all rows, in order

  bool dense() const { return values.ndim() == 2; }
  std::int64_t stored_rows() const { return dense() ? length(values) : length(starts) - 1; }
  std::int64_t count() const { return indices.is_valid() ? length(indices) : stored_rows(); }
  const std::int64_t* at() const { return indices.is_valid() ? indices.data() : nullptr; }

  void check() const {
    require(has_type<float>(values.dtype()) || has_type<double>(values.dtype()), "rows must be float32 or float64");
    require(values.ndim() == 1 || values.ndim() == 2, "rows must be a table or compressed");
    if (dense()) {
      require(length(values, 1) == width, "the rows have another width");
      return;
    }
    require(starts.is_valid() && features.is_valid() && starts.ndim() == 1 && features.ndim() == 1 &&
                starts.dtype() == features.dtype() && length(starts) >= 1 && length(features) == length(values),
            "the compressed rows are malformed");
    require(has_type<std::int32_t>(starts.dtype()) || has_type<std::int64_t>(starts.dtype()),
            "indices must be int32 or int64");
  }

  void add_to(Memory& memory) const {
    memory.reads("values", values).reads("starts", starts).reads("features", features).reads("indices", indices);
  }

  template <class Index> void check_starts() const {
    const Index* p = as<Index>(starts);
    require(p[0] >= 0, "the compressed rows are malformed");
    for (std::int64_t k = 1; k < length(starts); ++k) require(p[k] >= p[k - 1], "the compressed rows are malformed");
    require(static_cast<std::int64_t>(p[length(starts) - 1]) <= length(values), "the compressed rows are malformed");
  }
};

// Call work(rows, loops) with the rows of their own kind and its loops, from a table with loops for every kind.
template <class Loops, class Work> auto with_rows(const DataRows& a, const Loops& loops, Work work) {
  const bool single = has_type<float>(a.values.dtype());
  if (a.indices.is_valid()) require_within(a.indices, a.stored_rows());
  if (a.dense()) {
    if (single) return work(DenseRows<float>{as<float>(a.values), a.width}, loops.dense_single);
    return work(DenseRows<double>{as<double>(a.values), a.width}, loops.dense_double);
  }
  if (has_type<std::int32_t>(a.starts.dtype())) {
    using Index = std::int32_t;
    a.check_starts<Index>();
    const auto *s = as<Index>(a.starts), *f = as<Index>(a.features);
    if (single) return work(CompressedRows<float, Index>{s, f, as<float>(a.values), a.width}, loops.short_single);
    return work(CompressedRows<double, Index>{s, f, as<double>(a.values), a.width}, loops.short_double);
  }
  using Index = std::int64_t;
  a.check_starts<Index>();
  const auto *s = as<Index>(a.starts), *f = as<Index>(a.features);
  if (single) return work(CompressedRows<float, Index>{s, f, as<float>(a.values), a.width}, loops.long_single);
  return work(CompressedRows<double, Index>{s, f, as<double>(a.values), a.width}, loops.long_double);
}

template <class Work> auto with_rows(const DataRows& a, Work work) { return with_rows(a, *level.linear, work); }

// Check indices of samples in the order of a pass.
template <class Order> void check_order(const Order& order, std::int64_t count) {
  for (std::int64_t k = 0; k < length(order); ++k)
    require(order.data()[k] >= 0 && order.data()[k] < count, "the order is malformed");
}

}  // namespace maxmargin
