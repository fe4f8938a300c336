// Rows of features as Python hands them over: recognised here, once for a call, and given to the loops of their kind.
#pragma once

#include "bindings.hpp"

namespace maxmargin {

using Any = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// The rows of a data set: an array of two dimensions, or the three arrays of compressed rows.
struct RowArrays {
  Any values, starts, features;
  std::int64_t width;
};

template <class T> const T* as(const Any& array) { return static_cast<const T*>(array.data()); }

template <class I> void check_compressed(const RowArrays& a) {
  const I* starts = as<I>(a.starts);
  const std::int64_t stored = a.values.shape(0);
  require(a.starts.shape(0) >= 1 && starts[0] >= 0 && static_cast<std::int64_t>(a.features.shape(0)) == stored,
          "the compressed rows are malformed");
  for (std::size_t k = 1; k < a.starts.shape(0); ++k)
    require(starts[k] >= starts[k - 1], "the compressed rows are malformed");
  require(static_cast<std::int64_t>(starts[a.starts.shape(0) - 1]) <= stored, "the compressed rows are malformed");
}

// Call work(rows, loops, how many rows there are) with the rows of their own kind.
template <class Work> auto with_rows(const RowArrays& a, Work work) {
  const LinearLoops& loops = *level.linear;
  const bool single = a.values.dtype() == nb::dtype<float>();
  require(single || a.values.dtype() == nb::dtype<double>(), "rows must be float32 or float64");
  if (a.values.ndim() == 2) {
    const std::int64_t count = a.values.shape(0);
    require(static_cast<std::int64_t>(a.values.shape(1)) == a.width, "the rows have another width");
    if (single) return work(DenseRows<float>{as<float>(a.values), a.width}, loops.dense_single, count);
    return work(DenseRows<double>{as<double>(a.values), a.width}, loops.dense_double, count);
  }
  require(
      a.values.ndim() == 1 && a.starts.ndim() == 1 && a.features.ndim() == 1 && a.starts.dtype() == a.features.dtype(),
      "the compressed rows are malformed");
  const std::int64_t count = static_cast<std::int64_t>(a.starts.shape(0)) - 1;
  if (a.starts.dtype() == nb::dtype<std::int32_t>()) {
    check_compressed<std::int32_t>(a);
    const auto *s = as<std::int32_t>(a.starts), *f = as<std::int32_t>(a.features);
    if (single)
      return work(CompressedRows<float, std::int32_t>{s, f, as<float>(a.values), a.width}, loops.short_single, count);
    return work(CompressedRows<double, std::int32_t>{s, f, as<double>(a.values), a.width}, loops.short_double, count);
  }
  require(a.starts.dtype() == nb::dtype<std::int64_t>(), "indices must be int32 or int64");
  check_compressed<std::int64_t>(a);
  const auto *s = as<std::int64_t>(a.starts), *f = as<std::int64_t>(a.features);
  if (single)
    return work(CompressedRows<float, std::int64_t>{s, f, as<float>(a.values), a.width}, loops.long_single, count);
  return work(CompressedRows<double, std::int64_t>{s, f, as<double>(a.values), a.width}, loops.long_double, count);
}

// Which rows are meant: those picked, or all if nothing is picked.
struct Picks {
  const std::int64_t* at;
  std::int64_t count;
};

inline Picks picks_of(Vector<const std::int64_t> picks, bool all, std::int64_t rows) {
  if (all) return {nullptr, rows};
  require_within(picks, rows);
  return {picks.data(), static_cast<std::int64_t>(picks.shape(0))};
}

constexpr std::int64_t kChunk = 512;

// Divide [0, count) among the threads, always in the same way: sums over a part do not depend on who is quick.
template <class Work> void in_parts(int parts, std::int64_t count, Work work) {
  in_parallel(parts, parts, 1, [&](std::int64_t part, std::int64_t, int) {
    work(count * part / parts, count * (part + 1) / parts, static_cast<int>(part));
  });
}

}  // namespace maxmargin
