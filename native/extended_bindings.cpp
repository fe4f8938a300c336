// Bindings of the loops in double-double arithmetic: every result is a pair of arrays, high and low.
#include "data_rows.hpp"
#include "kernel_arguments.hpp"

namespace maxmargin {
namespace {

void require_pair(std::int64_t count, const Vector<double>& high, const Vector<double>& low) {
  require(length(high) == count && length(low) == count, "the output has the wrong length");
}

ExtendedInput input(const Vector<const double>& high, const Vector<const double>& low) {
  require(!low.is_valid() || length(low) == length(high), "high and low must have one length");
  return {high.data(), low.is_valid() ? low.data() : nullptr};
}

// high + low = the kernel values of rows packed in strips and columns packed in panels; the term of each feature is
// multiplied by its weight, if there are weights
void extended_block(const FormulaArguments& formula, const PackedArrays& rows, const PackedArrays& columns,
                    Vector<const double> weights, Table<double> high, Table<double> low, int threads) {
  const auto& loops = level.kernels->in_double;
  require(static_cast<Function>(formula.function) != Function::gaussian_of_product,
          "this formula has no extended form");
  require(rows.features == columns.features, "rows and columns must have the same features");
  for (const auto& out : {high, low})
    require(length(out) == rows.count && length(out, 1) == columns.count, "the output has the wrong shape");
  const PackedSamples<double> left = rows.in_groups_of<double>(loops.strip),
                              right = columns.in_groups_of<double>(loops.panel);
  require(weights.shape(0) == 0 || length(weights) == columns.features, "the weights have the wrong length");
  Memory().of(rows, columns).reads("weights", weights).writes("high", high).writes("low", low).require_disjoint();
  const double* factors = weights.shape(0) ? weights.data() : nullptr;
  const std::int64_t strips = (rows.count + loops.strip - 1) / loops.strip;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, strips, 1, [&](std::int64_t begin, std::int64_t end, int) {
    level.extended->dense[formula.term](formula, left, right, columns.features, factors, begin, end, columns.count,
                                        {high.data(), low.data()});
  });
}

// high + low = row k · weights
void extended_decisions(const DataRows& features, Vector<const double> weights, Vector<const double> weights_low,
                        Vector<double> high, Vector<double> low, int threads) {
  require(length(weights) == features.width, "the rows have another width");
  require_pair(features.count(), high, low);
  const ExtendedInput w = input(weights, weights_low);
  Memory().of(features).reads("weights", weights).writes("high", high).writes("low", low).require_disjoint();
  with_rows(features, *level.extended, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    in_parallel(threads, features.count(), kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int) {
      loops.decisions(rows, features.at(), begin, end, w, {high.data(), low.data()});
    });
  });
}

// high + low = Σ_k dual[k] row k
void extended_combination(const DataRows& features, Vector<const double> dual, Vector<const double> dual_low,
                          Vector<double> high, Vector<double> low) {
  require(length(dual) == features.count(), "there must be one factor for every row");
  require_pair(features.width, high, low);
  const ExtendedInput factors = input(dual, dual_low);
  Memory().of(features).reads("dual", dual).writes("high", high).writes("low", low).require_disjoint();
  with_rows(features, *level.extended, [&](auto rows, const auto& loops) {
    std::fill_n(high.data(), features.width, 0.0);
    std::fill_n(low.data(), features.width, 0.0);
    nb::gil_scoped_release unlocked;
    loops.combine(rows, features.at(), 0, features.count(), factors, {high.data(), low.data()});
    level.extended->normalise({high.data(), low.data()}, features.width);
  });
}

// high + low = table · vector; the low part of the table may be absent
void extended_table_product(Table<const double> table, Table<const double> table_low, Vector<const double> vector,
                            Vector<const double> vector_low, Vector<double> high, Vector<double> low, int threads) {
  const std::int64_t rows = length(table), columns = length(table, 1);
  require(!table_low.is_valid() || (length(table_low) == rows && length(table_low, 1) == columns),
          "the tables must have one shape");
  require(length(vector) == columns, "there must be one factor for every column");
  require_pair(rows, high, low);
  const ExtendedInput factors = input(vector, vector_low);
  Memory()
      .reads("table", table)
      .reads("table_low", table_low)
      .reads("vector", vector)
      .writes("high", high)
      .writes("low", low)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, rows, 16, [&](std::int64_t begin, std::int64_t end, int) {
    level.extended->table_product({table.data(), table_low.is_valid() ? table_low.data() : nullptr}, begin, end,
                                  columns, factors, {high.data(), low.data()});
  });
}

}  // namespace

void define_extended(nb::module_& m) {
  m.def("extended_block", &extended_block, nb::arg("formula"), nb::arg("rows"), nb::arg("columns"), exact("weights"),
        exact("high"), exact("low"), nb::arg("threads"));
  m.def("extended_decisions", &extended_decisions, nb::arg("rows"), exact("weights"), optional("weights_low"),
        exact("high"), exact("low"), nb::arg("threads"));
  m.def("extended_combination", &extended_combination, nb::arg("rows"), exact("dual"), optional("dual_low"),
        exact("high"), exact("low"));
  m.def("extended_table_product", &extended_table_product, exact("table"), optional("table_low"), exact("vector"),
        optional("vector_low"), exact("high"), exact("low"), nb::arg("threads"));
}

}  // namespace maxmargin
