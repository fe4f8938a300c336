// Bindings of products and sums of rows of features.
#include <atomic>
#include <chrono>
#include <limits>

#include "data_rows.hpp"
#include "shuffle.hpp"

namespace maxmargin {
namespace {

// out[k] = row k · weights
void row_decisions(const DataRows& features, Vector<const double> weights, Vector<double> out, int threads) {
  require(length(weights) == features.width, "the rows have another width");
  require(length(out) == features.count(), "the output has the wrong length");
  Memory().of(features).reads("weights", weights).writes("out", out).require_disjoint();
  with_rows(features, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    in_parallel(threads, features.count(), kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int) {
      loops.decisions(rows, features.at(), begin, end, weights.data(), out.data());
    });
  });
}

// out = Σ_k dual[k] row k
void combine_rows(const DataRows& features, Vector<const double> dual, Vector<double> out, int threads) {
  const std::int64_t width = length(out), count = features.count();
  require(width == features.width, "the rows have another width");
  require(length(dual) == count, "there must be one factor for every row");
  Memory().of(features).reads("dual", dual).writes("out", out).require_disjoint();
  with_rows(features, [&](auto rows, const auto& loops) {
    const int parts = count < 2 * kRowsPerChunk ? 1 : std::max(1, threads);
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * width, 0.0);
    std::fill_n(out.data(), width, 0.0);
    nb::gil_scoped_release unlocked;
    in_parts(parts, count, [&](std::int64_t begin, std::int64_t end, int part) {
      loops.combine(rows, features.at(), begin, end, dual.data(),
                    part ? others.data() + (part - 1) * width : out.data());
    });
    for (int part = 1; part < parts; ++part)
      for (std::int64_t k = 0; k < width; ++k) out.data()[k] += others[(part - 1) * width + k];
  });
}

// out[k] = ‖row k‖²
void row_squared_norms(const DataRows& features, Vector<double> out, int threads) {
  require(length(out) == features.count(), "the output has the wrong length");
  Memory().of(features).writes("out", out).require_disjoint();
  with_rows(features, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    in_parallel(threads, features.count(), kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int) {
      loops.squared_norms(rows, features.at(), begin, end, out.data());
    });
  });
}

// square = Σ_k factors[k] (row k − origin)(row k − origin)ᵀ, the lower triangle only, and
// sums = Σ_k factors[k] (row k − origin). An empty origin is zero, as it must be for compressed rows. False, with
// unfinished sums, after the limit of seconds.
bool row_moments(const DataRows& features, Vector<const double> factors, Vector<const double> origin,
                 Vector<double> sums, Table<double> square, int threads, double max_seconds) {
  const std::int64_t width = length(square), area = width * width, count = features.count();
  require(width == features.width, "the rows have another width");
  require(length(square, 1) == width && length(sums) == width, "the output must be square, with as many sums");
  const bool shifted = given(origin);
  require(!shifted || (features.dense() && length(origin) == width), "the origin has the wrong length");
  require(length(factors) == count, "there must be one factor for every row");
  for (std::int64_t k = 0; k < count; ++k) require(factors.data()[k] >= 0.0, "factors must not be negative");
  Memory()
      .of(features)
      .reads("factors", factors)
      .reads("origin", origin)
      .writes("sums", sums)
      .writes("square", square)
      .require_disjoint();
  const auto start = std::chrono::steady_clock::now();
  std::atomic<bool> late{false};
  const auto expired = [&] {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > max_seconds) late = true;
    return late.load();
  };
  with_rows(features, [&](auto rows, const auto& loops) {
    const int parts = count < 2 * kRowsPerChunk ? 1 : std::max(1, threads);
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * (area + width), 0.0);
    const std::size_t buffer_size = features.dense() ? kMomentRows * (width + kMomentPadding) : 0;
    std::vector<double> buffers(parts * buffer_size);
    std::fill_n(square.data(), area, 0.0);
    std::fill_n(sums.data(), width, 0.0);
    nb::gil_scoped_release unlocked;
    in_parts(parts, count, [&](std::int64_t begin, std::int64_t end, int part) {
      double* own = part ? others.data() + (part - 1) * (area + width) : nullptr;
      for (std::int64_t first = begin; first < end && !expired(); first += kMomentRows)
        loops.add_moments(rows, features.at(), first, std::min(end, first + kMomentRows), factors.data(),
                          shifted ? origin.data() : nullptr, buffers.data() + part * buffer_size,
                          part ? own + area : sums.data(), part ? own : square.data(), width);
    });
    if (late) return;
    for (int part = 1; part < parts; ++part) {
      const double* own = others.data() + (part - 1) * (area + width);
      for (std::int64_t k = 0; k < area; ++k) square.data()[k] += own[k];
      for (std::int64_t k = 0; k < width; ++k) sums.data()[k] += own[area + k];
    }
  });
  return !late;
}

void shuffle_order(Vector<std::int64_t> order, std::uint64_t seed) {
  nb::gil_scoped_release unlocked;
  shuffle(order.data(), length(order), seed);
}

}  // namespace

void define_row_products(nb::module_& m) {
  define_arguments<DataRows, AnyArray, std::int64_t, AnyArray, AnyArray, Vector<const std::int64_t>>(
      m, "DataRows", exact("values"), nb::arg("width"), optional("starts"), optional("features"), optional("indices"));
  m.def("row_decisions", &row_decisions, nb::arg("rows"), exact("weights"), exact("out"), nb::arg("threads"));
  m.def("combine_rows", &combine_rows, nb::arg("rows"), exact("dual"), exact("out"), nb::arg("threads"));
  m.def("row_squared_norms", &row_squared_norms, nb::arg("rows"), exact("out"), nb::arg("threads"));
  m.def("row_moments", &row_moments, nb::arg("rows"), exact("factors"), exact("origin"), exact("sums"), exact("square"),
        nb::arg("threads"), nb::arg("max_seconds") = std::numeric_limits<double>::infinity());
  m.def("shuffle", &shuffle_order, exact("order"), nb::arg("seed"));
}

}  // namespace maxmargin
