// The only file that knows Python: checks shapes, releases the interpreter lock, calls the loops.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

#include "pair_sums.hpp"
#include "pairwise.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace maxmargin;

namespace {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* sentence) {
  if (!condition) throw std::invalid_argument(sentence);
}

void require_within(Vector<const std::int64_t> picks, std::int64_t count) {
  const std::int64_t* p = picks.data();
  for (std::size_t k = 0; k < picks.shape(0); ++k) require(p[k] >= 0 && p[k] < count, "a sample index is out of range");
}

void dense(const std::string& term, Table<const double> left, Vector<const std::int64_t> left_picks,
           Table<const double> right, Vector<const std::int64_t> right_picks, Table<double> out) {
  const std::int64_t features = left.shape(1), rows = left_picks.shape(0), columns = right_picks.shape(0);
  require(static_cast<std::int64_t>(right.shape(1)) == features, "the two sample sets differ in features");
  require(static_cast<std::int64_t>(out.shape(0)) == rows && static_cast<std::int64_t>(out.shape(1)) == columns,
          "the output block has the wrong shape");
  require_within(left_picks, left.shape(0));
  require_within(right_picks, right.shape(0));
  const DensePairSums sums = term == "product"       ? dense_products
                             : term == "squared"     ? dense_squared
                             : term == "absolute"    ? dense_absolute
                             : term == "chi_squared" ? dense_chi_squared
                                                     : nullptr;
  require(sums != nullptr, "unknown term");
  nb::gil_scoped_release unlocked;
  sums(left.data(), left_picks.data(), rows, right.data(), right_picks.data(), columns, features, out.data());
}

template <class Index> struct Compressed {
  Vector<const Index> starts, features;
  Vector<const double> values;
};

// Column indices are checked where a matrix enters the package: a scan per block would double its cost.
template <class Index> void check(const Compressed<Index>& m, Vector<const std::int64_t> picks) {
  const std::int64_t rows = static_cast<std::int64_t>(m.starts.shape(0)) - 1;
  const std::int64_t stored = m.values.shape(0);
  require(rows >= 0 && static_cast<std::int64_t>(m.features.shape(0)) >= stored, "a compressed matrix is malformed");
  require_within(picks, rows);
  const std::int64_t* p = picks.data();
  for (std::size_t k = 0; k < picks.shape(0); ++k) {
    const Index begin = m.starts.data()[p[k]], end = m.starts.data()[p[k] + 1];
    require(begin >= 0 && begin <= end && end <= stored, "a compressed matrix is malformed");
  }
}

template <class Index>
void sparse(const std::string& term, Vector<const Index> left_starts, Vector<const Index> left_features,
            Vector<const double> left_values, Vector<const std::int64_t> left_picks, Vector<const Index> right_starts,
            Vector<const Index> right_features, Vector<const double> right_values,
            Vector<const std::int64_t> right_picks, std::int64_t features, Table<double> out) {
  const std::int64_t rows = left_picks.shape(0), columns = right_picks.shape(0);
  require(static_cast<std::int64_t>(out.shape(0)) == rows && static_cast<std::int64_t>(out.shape(1)) == columns,
          "the output block has the wrong shape");
  check<Index>({left_starts, left_features, left_values}, left_picks);
  check<Index>({right_starts, right_features, right_values}, right_picks);
  const SparseRows<Index> left{left_starts.data(), left_features.data(), left_values.data()};
  const SparseRows<Index> right{right_starts.data(), right_features.data(), right_values.data()};
  const auto sums = term == "product"       ? sparse_pair_sums<Product, Index>
                    : term == "squared"     ? sparse_pair_sums<SquaredDifference, Index>
                    : term == "absolute"    ? sparse_pair_sums<AbsoluteDifference, Index>
                    : term == "chi_squared" ? sparse_pair_sums<ChiSquaredDifference, Index>
                                            : nullptr;
  require(sums != nullptr, "unknown term");
  nb::gil_scoped_release unlocked;
  sums(left, left_picks.data(), rows, right, right_picks.data(), columns, features, out.data());
}

void dense_own(Table<const double> data, Vector<const std::int64_t> picks, Vector<double> out) {
  require(out.shape(0) == picks.shape(0), "the output has the wrong length");
  require_within(picks, data.shape(0));
  nb::gil_scoped_release unlocked;
  dense_squares(data.data(), picks.data(), picks.shape(0), data.shape(1), out.data());
}

template <class Index>
void sparse_own(Vector<const Index> starts, Vector<const Index> features, Vector<const double> values,
                Vector<const std::int64_t> picks, Vector<double> out) {
  require(out.shape(0) == picks.shape(0), "the output has the wrong length");
  check<Index>({starts, features, values}, picks);
  nb::gil_scoped_release unlocked;
  sparse_squares<Index>({starts.data(), features.data(), values.data()}, picks.data(), picks.shape(0), out.data());
}

std::tuple<int, std::int64_t, std::int64_t, std::int64_t, double, double, std::int64_t, std::int64_t> pairwise_steps(
    Vector<double> dual, Vector<double> gradient, Vector<const double> lower, Vector<const double> upper,
    Vector<const double> diagonal, Vector<const double> ridge, Vector<const std::int32_t> group,
    Vector<double> bounded_part, std::int64_t active, std::int32_t groups, std::int64_t singles,
    Table<const double> storage, Vector<const std::int64_t> slot, Vector<const std::int64_t> length,
    Vector<std::int64_t> last_use, std::int64_t clock, int rule, Vector<std::int64_t> memory, double violation,
    double tolerance, std::int64_t max_steps, double max_seconds) {
  const std::size_t n = dual.shape(0);
  require(gradient.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && diagonal.shape(0) == n &&
              ridge.shape(0) == n && group.shape(0) == n && slot.shape(0) == n && storage.shape(1) == n,
          "the arrays of a dual state must have one length");
  require(bounded_part.shape(0) == n || bounded_part.shape(0) == 0, "bounded_part has the wrong length");
  require(length.shape(0) == storage.shape(0) && last_use.shape(0) == storage.shape(0), "the row store is malformed");
  require(active >= 0 && active <= static_cast<std::int64_t>(n), "active is out of range");
  require(memory.shape(0) == 4, "memory holds the previous and the pending pair");
  require(rule >= 0 && rule <= 2, "unknown working-set rule");
  DualState state{dual.data(),  gradient.data(), lower.data(), upper.data(), diagonal.data(), ridge.data(),
                  group.data(), bounded_part.shape(0) ? bounded_part.data() : nullptr,
                  static_cast<std::int64_t>(n), active, groups, singles};
  RowStore rows{storage.data(), static_cast<std::int64_t>(n), slot.data(), length.data(), last_use.data(), clock};
  std::int64_t* m = memory.data();
  Selector selector{static_cast<Rule>(rule), m[0], m[1]};
  selector.pending.up = m[2];
  selector.pending.down = m[3];
  selector.pending.violation = violation;
  Outcome out;
  {
    nb::gil_scoped_release unlocked;
    out = PairwiseLoop(state, rows, selector).run(tolerance, max_steps, max_seconds);
  }
  m[0] = selector.previous_up;
  m[1] = selector.previous_down;
  m[2] = selector.pending.up;
  m[3] = selector.pending.down;
  return {static_cast<int>(out.reason), out.steps, out.row, out.length, out.violation, out.gain, rows.clock, rows.requests};
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Hot loops of maxmargin: flat arrays in, flat arrays and counters out.";
  m.def("dense_pair_sums", &dense, "term"_a, "left"_a, "left_picks"_a, "right"_a, "right_picks"_a, "out"_a);
  m.def("sparse_pair_sums", &sparse<std::int32_t>);
  m.def("sparse_pair_sums", &sparse<std::int64_t>);
  m.def("dense_squares", &dense_own, "data"_a, "picks"_a, "out"_a);
  m.def("sparse_squares", &sparse_own<std::int32_t>);
  m.def("sparse_squares", &sparse_own<std::int64_t>);
  m.def("pairwise_steps", &pairwise_steps);
}
