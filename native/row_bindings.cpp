// Bindings of operations on stored rows: sums, selections and reflections of kernel values, compression of dense data.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// gradient −= Σ_k change[k] · storage[slots[k]] over the first values of each row.
void subtract_rows(Vector<double> gradient, Table<const float> storage, Vector<const std::int64_t> slots,
                   Vector<const double> change, std::int64_t count, int threads) {
  require(length(change) == length(slots), "there must be one change for every row");
  require(count >= 0 && count <= length(gradient), "count is out of range");
  const std::vector<const float*> rows = row_pointers<const float>(storage, slots, count);
  Memory()
      .writes("gradient", gradient)
      .reads("storage", storage)
      .reads("slots", slots)
      .reads("change", change)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, 2048, [&](std::int64_t begin, std::int64_t end, int) {
    level.kernels->subtract_rows(gradient.data(), rows.data(), change.data(), rows.size(), begin, end);
  });
}

// Σ_r weights[r] Σ_c d and Σ_r weights[r] Σ_c d² of the differences d of a table from a centre. Sums are taken over
// chunks of rows first: they do not depend on the number of threads.
template <class T>
std::pair<double, double> weighted_sums(Table<const T> table, Vector<const double> weights, double centre,
                                        int threads) {
  constexpr std::int64_t chunk_values = 1 << 18, lanes = 8;
  const std::int64_t rows = length(table), columns = length(table, 1);
  require(length(weights) == rows, "there must be one weight for every row");
  const std::int64_t chunk = std::max<std::int64_t>(1, chunk_values / std::max<std::int64_t>(1, columns));
  std::vector<std::pair<double, double>> parts((rows + chunk - 1) / chunk);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, rows, chunk, [&](std::int64_t begin, std::int64_t end, int) {
    double sum = 0.0, squares = 0.0;
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = table.data() + r * columns;
      double own[lanes] = {}, own_squares[lanes] = {};
      std::int64_t c = 0;
      for (; c + lanes <= columns; c += lanes)
        for (std::int64_t k = 0; k < lanes; ++k) {
          const double d = static_cast<double>(row[c + k]) - centre;
          own[k] += d;
          own_squares[k] += d * d;
        }
      for (; c < columns; ++c) {
        const double d = static_cast<double>(row[c]) - centre;
        own[0] += d;
        own_squares[0] += d * d;
      }
      for (std::int64_t k = 1; k < lanes; ++k) own[0] += own[k], own_squares[0] += own_squares[k];
      sum += weights.data()[r] * own[0];
      squares += weights.data()[r] * own_squares[0];
    }
    parts[begin / chunk] = {sum, squares};
  });
  double sum = 0.0, squares = 0.0;
  for (const auto& part : parts) sum += part.first, squares += part.second;
  return {sum, squares};
}

// The largest magnitude of a square table, and the largest difference between it and its transpose: not a number if a
// value of the table, or a difference, is not finite. Square tiles and their mirror images are read together, so that
// columns are not read value by value.
template <class T> std::pair<double, double> asymmetry(Table<const T> table, int threads) {
  constexpr std::int64_t tile = 64;
  const std::int64_t n = length(table);
  require(length(table, 1) == n, "the table must be square");
  nb::gil_scoped_release unlocked;
  const std::int64_t tiles = (n + tile - 1) / tile;
  std::vector<T> largest(tiles, T{0}), difference(tiles, T{0});
  in_parallel(threads, tiles, 1, [&](std::int64_t first, std::int64_t, int) {
    T most = 0, apart = 0;
    bool finite = true;
    const std::int64_t last_row = std::min(n, (first + 1) * tile);
    for (std::int64_t second = first; second < tiles; ++second)
      for (std::int64_t r = first * tile; r < last_row; ++r) {
        const T *row = table.data() + r * n, *column = table.data() + r;
        for (std::int64_t c = second * tile; c < std::min(n, (second + 1) * tile); ++c) {
          const T mirrored = column[c * n], both = row[c] - mirrored;
          most = std::max(most, std::max(std::abs(row[c]), std::abs(mirrored)));
          apart = std::max(apart, std::abs(both));
          finite &= both - both == T{0};
        }
      }
    largest[first] = most;
    difference[first] = finite ? apart : std::numeric_limits<T>::quiet_NaN();
  });
  T most = 0, apart = 0;
  for (std::int64_t k = 0; k < tiles; ++k) {
    most = std::max(most, largest[k]);
    apart = std::isnan(difference[k]) ? difference[k] : std::max(apart, difference[k]);  // not a number remains
  }
  return {most, apart};
}

// The largest magnitude of a square table, and the largest difference between its product with a vector and that of its
// transpose, in one pass over it: not a number if a product is not finite.
std::pair<double, double> product_asymmetry(Table<const double> table, Vector<const double> vector, int threads) {
  const std::int64_t n = length(table);
  const int parts = std::max(1, threads);
  require(length(table, 1) == n && length(vector) == n, "the table must be square, the vector as long");
  nb::gil_scoped_release unlocked;
  std::vector<double> product(n), transposed(parts * n), largest(parts);
  in_parts(parts, n, [&](std::int64_t first, std::int64_t last, int part) {
    largest[part] = level.kernels->both_products(table.data(), vector.data(), n, first, last, product.data(),
                                                 transposed.data() + part * n);
  });
  double difference = 0.0;
  for (std::int64_t c = 0; c < n; ++c) {
    double apart = product[c];
    for (int part = 0; part < parts; ++part) apart -= transposed[part * n + c];
    if (!std::isfinite(apart)) return {apart, std::numeric_limits<double>::quiet_NaN()};
    difference = std::max(difference, std::abs(apart));
  }
  return {*std::max_element(largest.begin(), largest.end()), difference};
}

// out[k] = storage[slots[k]] at the chosen columns.
template <class T, class V>
void gather(Table<const T> storage, Vector<const std::int64_t> slots, Vector<const std::int64_t> columns, Table<V> out,
            int threads) {
  const std::int64_t count = length(slots), width = length(columns);
  require(length(out) >= count && length(out, 1) == width, "the output has the wrong shape");
  require_within(columns, storage.shape(1));
  const std::vector<const T*> rows = row_pointers<const T>(storage, slots, 0);
  Memory()
      .writes("out", out)
      .reads("storage", storage)
      .reads("slots", slots)
      .reads("columns", columns)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(1, width)),
              [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t k = begin; k < end; ++k)
                  for (std::int64_t c = 0; c < width; ++c)
                    out.data()[k * width + c] = static_cast<V>(rows[k][columns.data()[c]]);
              });
}

template <class Value> auto mirror_loop() {
  if constexpr (sizeof(Value) == 4)
    return level.kernels->in_single.mirror;
  else
    return level.kernels->in_double.mirror;
}

// table[r][c] = table[c][r] for the rows before `first` and the columns from there to `last`.
template <class Value> void mirror(Table<Value> table, std::int64_t first, std::int64_t last, int threads) {
  const std::int64_t size = length(table);
  require(length(table, 1) == size && 0 <= first && first <= last && last <= size, "the table has the wrong shape");
  std::vector<Value*> rows(size);
  for (std::int64_t r = 0; r < size; ++r) rows[r] = table.data() + r * size;
  constexpr std::int64_t side = 64;  // of squares that are read along one side and written along the other, in cache
  nb::gil_scoped_release unlocked;
  in_parallel(threads, first, 2 * side, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; row += side)
      for (std::int64_t column = first; column < last; column += side)
        mirror_loop<Value>()(rows.data(), column, std::min(column + side, last), row, std::min(row + side, end));
  });
}

// The largest absolute value, 0 of none; not a number if one of them is infinite or not a number.
template <class T> double largest_absolute(Vector<const T> values, int threads) {
  constexpr int lanes = 16;
  std::vector<T> largest(std::max(1, threads), T(0));
  std::atomic<bool> finite{true};
  nb::gil_scoped_release unlocked;
  in_parallel(threads, length(values), 65536, [&](std::int64_t begin, std::int64_t end, int thread) {
    T most[lanes] = {}, zeros[lanes] = {};  // 0 times a value is not a number where the value is not finite
    const auto add = [&](int lane, T value) {
      const T size = std::fabs(value);
      most[lane] = size > most[lane] ? size : most[lane];
      zeros[lane] += value * T(0);
    };
    std::int64_t k = begin;
    for (; k + lanes <= end; k += lanes)
      for (int lane = 0; lane < lanes; ++lane) add(lane, values.data()[k + lane]);
    for (; k < end; ++k) add(0, values.data()[k]);
    for (int lane = 0; lane < lanes; ++lane) {
      largest[thread] = std::max(largest[thread], most[lane]);
      if (std::isnan(zeros[lane])) finite = false;
    }
  });
  return finite ? *std::max_element(largest.begin(), largest.end()) : std::numeric_limits<double>::quiet_NaN();
}

// Whether no value is infinite or not a number: 0 times such a value is not a number.
template <class T> bool all_finite(Vector<const T> values, int threads) {
  constexpr int lanes = 32;
  std::atomic<bool> finite{true};
  nb::gil_scoped_release unlocked;
  in_parallel(threads, length(values), 65536, [&](std::int64_t begin, std::int64_t end, int) {
    const T* p = values.data();
    T zeros[lanes] = {};
    std::int64_t k = begin;
    for (; k + lanes <= end; k += lanes)
      for (int lane = 0; lane < lanes; ++lane) zeros[lane] += p[k + lane] * T(0);
    for (; k < end; ++k) zeros[0] += p[k] * T(0);
    T sum(0);
    for (const T zero : zeros) sum += zero;
    if (std::isnan(sum)) finite = false;
  });
  return finite;
}

// out[k] = row indices[k] of the data
template <class T> void copy_rows(Table<const T> data, Vector<const std::int64_t> indices, Table<T> out, int threads) {
  const std::int64_t width = length(data, 1);
  require(length(out) == length(indices) && length(out, 1) == width, "the output has the wrong shape");
  require_within(indices, length(data));
  Memory().reads("data", data).reads("indices", indices).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, length(indices), 64, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k)
      std::copy_n(data.data() + indices.data()[k] * width, width, out.data() + k * width);
  });
}

// counts[r] = the number of values of row r that are not 0
template <class T> void count_nonzeros(Table<const T> data, Vector<std::int64_t> counts, int threads) {
  require(counts.shape(0) == data.shape(0), "there must be one count for every row");
  const std::int64_t features = length(data, 1);
  Memory().reads("data", data).writes("counts", counts).require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, data.shape(0), 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = data.data() + r * features;
      std::int64_t stored = 0;
      for (std::int64_t k = 0; k < features; ++k) stored += x[k] != T(0);
      counts.data()[r] = stored;
    }
  });
}

// The values of each row that are not 0, from starts[row] on, in their own precision or in single.
template <class T, class V>
void compress(Table<const T> data, Vector<const std::int64_t> starts, Vector<std::int32_t> features, Vector<V> values,
              int threads) {
  const std::int64_t rows = length(data), width = length(data, 1);
  require(length(starts) == rows + 1 && features.shape(0) == values.shape(0) && starts.data()[0] == 0 &&
              starts.data()[rows] == length(values),
          "the arrays for compressed rows are malformed");
  for (std::int64_t r = 0; r < rows; ++r) require(starts.data()[r] <= starts.data()[r + 1], "the starts must ascend");
  Memory()
      .reads("data", data)
      .reads("starts", starts)
      .writes("features", features)
      .writes("values", values)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, rows, 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t at = starts.data()[r];
      for (std::int64_t k = 0; k < width && at < starts.data()[r + 1]; ++k) {
        const T x = data.data()[r * width + k];
        features.data()[at] = static_cast<std::int32_t>(k);
        values.data()[at] = static_cast<V>(x);
        at += x != T(0);
      }
    }
  });
}

template <class T, class V> void define_gather(nb::module_& m) {
  m.def("gather", &gather<T, V>, exact("storage"), exact("slots"), exact("columns"), exact("out"), nb::arg("threads"));
}

template <class T, class V> void define_compression(nb::module_& m) {
  if constexpr (std::is_same_v<T, V>)
    m.def("count_nonzeros", &count_nonzeros<T>, exact("data"), exact("counts"), nb::arg("threads"));
  m.def("compress", &compress<T, V>, exact("data"), exact("starts"), exact("features"), exact("values"),
        nb::arg("threads"));
}

}  // namespace

void define_rows(nb::module_& m) {
  m.def("weighted_sums", &weighted_sums<float>, exact("table"), exact("weights"), nb::arg("centre"),
        nb::arg("threads"));
  m.def("weighted_sums", &weighted_sums<double>, exact("table"), exact("weights"), nb::arg("centre"),
        nb::arg("threads"));
  m.def("product_asymmetry", &product_asymmetry, exact("table"), exact("vector"), nb::arg("threads"));
  m.def("asymmetry", &asymmetry<float>, exact("table"), nb::arg("threads"));
  m.def("asymmetry", &asymmetry<double>, exact("table"), nb::arg("threads"));
  m.def("copy_rows", &copy_rows<float>, exact("data"), exact("indices"), exact("out"), nb::arg("threads"));
  m.def("copy_rows", &copy_rows<double>, exact("data"), exact("indices"), exact("out"), nb::arg("threads"));
  m.def("all_finite", &all_finite<float>, exact("values"), nb::arg("threads"));
  m.def("all_finite", &all_finite<double>, exact("values"), nb::arg("threads"));
  m.def("largest_absolute", &largest_absolute<float>, exact("values"), nb::arg("threads"));
  m.def("largest_absolute", &largest_absolute<double>, exact("values"), nb::arg("threads"));
  define_gather<float, float>(m);
  define_gather<float, double>(m);
  define_gather<double, double>(m);
  m.def("mirror", &mirror<float>, exact("table"), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
  m.def("mirror", &mirror<double>, exact("table"), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
  m.def("subtract_rows", &subtract_rows, exact("gradient"), exact("storage"), exact("slots"), exact("change"),
        nb::arg("count"), nb::arg("threads"));
  define_compression<double, float>(m);
  define_compression<double, double>(m);
  define_compression<float, float>(m);
}

}  // namespace maxmargin
