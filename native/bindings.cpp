// The only file that knows Python: checks shapes, releases the interpreter lock, calls the loops.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "loops.hpp"

namespace nb = nanobind;
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

// The widest instruction set that this processor and operating system have, chosen once at import. The variable
// MAXMARGIN_LEVEL asks for a narrower one: for tests and for comparing speeds.
const Loops& choose_loops() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const char* wish = std::getenv("MAXMARGIN_LEVEL");
  const std::string most = wish ? wish : "v4";
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  if (v4 && most == "v4") return v4::loops;
  if (v3 && most != "v2") return v3::loops;
  return v2::loops;
#else
  return plain::loops;
#endif
}

const Loops& loops = choose_loops();

Term term_of(const std::string& name) {
  if (name == "product") return Term::product;
  if (name == "squared") return Term::squared;
  if (name == "absolute") return Term::absolute;
  require(name == "chi_squared", "unknown term");
  return Term::chi_squared;
}

void dense_pair_sums(const std::string& term, Table<const double> left, Vector<const std::int64_t> left_picks,
                     Table<const double> right, Vector<const std::int64_t> right_picks, Table<double> out) {
  const std::int64_t features = left.shape(1), rows = left_picks.shape(0), columns = right_picks.shape(0);
  require(static_cast<std::int64_t>(right.shape(1)) == features, "the two sample sets differ in features");
  require(static_cast<std::int64_t>(out.shape(0)) == rows && static_cast<std::int64_t>(out.shape(1)) == columns,
          "the output block has the wrong shape");
  require_within(left_picks, left.shape(0));
  require_within(right_picks, right.shape(0));
  const DensePairSums sums = loops.dense[static_cast<int>(term_of(term))];
  nb::gil_scoped_release unlocked;
  sums(left.data(), left_picks.data(), rows, right.data(), right_picks.data(), columns, features, out.data());
}

// Σ_k x_k² of each sample, added up in the same order as in a block of products.
void dense_squares(Table<const double> data, Vector<const std::int64_t> picks, Vector<double> out) {
  require(out.shape(0) == picks.shape(0), "the output has the wrong length");
  require_within(picks, data.shape(0));
  const DensePairSums sums = loops.dense[static_cast<int>(Term::product)];
  nb::gil_scoped_release unlocked;
  for (std::size_t k = 0; k < picks.shape(0); ++k)
    sums(data.data(), picks.data() + k, 1, data.data(), picks.data() + k, 1, data.shape(1), out.data() + k);
}

// Column indices are checked where a matrix enters the package: a scan per block would double its cost.
template <class Index>
SparseRows<Index> checked(Vector<const Index> starts, Vector<const Index> features, Vector<const double> values,
                          Vector<const std::int64_t> picks) {
  const std::int64_t rows = static_cast<std::int64_t>(starts.shape(0)) - 1;
  const std::int64_t stored = values.shape(0);
  require(rows >= 0 && static_cast<std::int64_t>(features.shape(0)) >= stored, "a compressed matrix is malformed");
  require_within(picks, rows);
  for (std::size_t k = 0; k < picks.shape(0); ++k) {
    const Index begin = starts.data()[picks.data()[k]], end = starts.data()[picks.data()[k] + 1];
    require(begin >= 0 && begin <= end && end <= stored, "a compressed matrix is malformed");
  }
  return {starts.data(), features.data(), values.data()};
}

template <class Index>
void sparse_pair_sums(const std::string& term, Vector<const Index> left_starts, Vector<const Index> left_features,
                      Vector<const double> left_values, Vector<const std::int64_t> left_picks,
                      Vector<const Index> right_starts, Vector<const Index> right_features,
                      Vector<const double> right_values, Vector<const std::int64_t> right_picks,
                      std::int64_t features, Table<double> out) {
  const std::int64_t rows = left_picks.shape(0), columns = right_picks.shape(0);
  require(static_cast<std::int64_t>(out.shape(0)) == rows && static_cast<std::int64_t>(out.shape(1)) == columns,
          "the output block has the wrong shape");
  const auto left = checked<Index>(left_starts, left_features, left_values, left_picks);
  const auto right = checked<Index>(right_starts, right_features, right_values, right_picks);
  SparsePairSums<Index> sums;
  if constexpr (sizeof(Index) == 4) sums = loops.sparse32[static_cast<int>(term_of(term))];
  else sums = loops.sparse64[static_cast<int>(term_of(term))];
  nb::gil_scoped_release unlocked;
  std::vector<double> spread(features, 0.0);
  sums(left, left_picks.data(), rows, right, right_picks.data(), columns, spread.data(), out.data());
}

template <class Index>
void sparse_squares(Vector<const Index> starts, Vector<const Index> features, Vector<const double> values,
                    Vector<const std::int64_t> picks, Vector<double> out) {
  require(out.shape(0) == picks.shape(0), "the output has the wrong length");
  const auto rows = checked<Index>(starts, features, values, picks);
  nb::gil_scoped_release unlocked;
  for (std::size_t k = 0; k < picks.shape(0); ++k) {
    const std::int64_t i = picks.data()[k];
    double sum = 0.0;
    for (Index p = rows.starts[i]; p < rows.starts[i + 1]; ++p) sum += rows.values[p] * rows.values[p];
    out.data()[k] = sum;
  }
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
  for (int k = 0; k < 4; ++k)
    require(memory.data()[k] >= -1 && memory.data()[k] < active, "memory names a position that is not active");
  require(rule >= 0 && rule <= 2, "unknown working-set rule");
  require(groups >= 0, "groups is out of range");
  DualState state{dual.data(),  gradient.data(), lower.data(), upper.data(), diagonal.data(), ridge.data(),
                  group.data(), bounded_part.shape(0) ? bounded_part.data() : nullptr,
                  static_cast<std::int64_t>(n), active, groups, singles};
  RowStore rows{storage.data(), static_cast<std::int64_t>(n), slot.data(), length.data(), last_use.data(), clock, 0};
  std::int64_t* m = memory.data();
  Outcome out;
  {
    nb::gil_scoped_release unlocked;
    std::vector<Extreme> extremes(groups + 1);
    SelectionMemory selection{static_cast<Rule>(rule), m[0], m[1], m[2], m[3], violation, extremes.data()};
    out = loops.pairwise(state, rows, selection, tolerance, max_steps, max_seconds);
    m[0] = selection.previous_up;
    m[1] = selection.previous_down;
    m[2] = selection.pending_up;
    m[3] = selection.pending_down;
  }
  return {static_cast<int>(out.reason), out.steps, out.row, out.length, out.violation, out.gain, rows.clock, rows.requests};
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Hot loops of maxmargin: flat arrays in, flat arrays and counters out.";
  m.attr("level") = loops.level;  // the instruction set in use
  // No array is ever converted: a copy would be written to and lost.
  m.def("dense_pair_sums", &dense_pair_sums, nb::arg("term"), nb::arg("left").noconvert(),
        nb::arg("left_picks").noconvert(), nb::arg("right").noconvert(), nb::arg("right_picks").noconvert(),
        nb::arg("out").noconvert());
  m.def("dense_squares", &dense_squares, nb::arg("data").noconvert(), nb::arg("picks").noconvert(),
        nb::arg("out").noconvert());
  m.def("sparse_pair_sums", &sparse_pair_sums<std::int32_t>, nb::arg("term"), nb::arg("left_starts").noconvert(),
        nb::arg("left_features").noconvert(), nb::arg("left_values").noconvert(), nb::arg("left_picks").noconvert(),
        nb::arg("right_starts").noconvert(), nb::arg("right_features").noconvert(),
        nb::arg("right_values").noconvert(), nb::arg("right_picks").noconvert(), nb::arg("features"),
        nb::arg("out").noconvert());
  m.def("sparse_squares", &sparse_squares<std::int32_t>, nb::arg("starts").noconvert(),
        nb::arg("features").noconvert(), nb::arg("values").noconvert(), nb::arg("picks").noconvert(),
        nb::arg("out").noconvert());
  m.def("sparse_pair_sums", &sparse_pair_sums<std::int64_t>, nb::arg("term"), nb::arg("left_starts").noconvert(),
        nb::arg("left_features").noconvert(), nb::arg("left_values").noconvert(), nb::arg("left_picks").noconvert(),
        nb::arg("right_starts").noconvert(), nb::arg("right_features").noconvert(),
        nb::arg("right_values").noconvert(), nb::arg("right_picks").noconvert(), nb::arg("features"),
        nb::arg("out").noconvert());
  m.def("sparse_squares", &sparse_squares<std::int64_t>, nb::arg("starts").noconvert(),
        nb::arg("features").noconvert(), nb::arg("values").noconvert(), nb::arg("picks").noconvert(),
        nb::arg("out").noconvert());
  m.def("pairwise_steps", &pairwise_steps, nb::arg("dual").noconvert(), nb::arg("gradient").noconvert(),
        nb::arg("lower").noconvert(), nb::arg("upper").noconvert(), nb::arg("diagonal").noconvert(),
        nb::arg("ridge").noconvert(), nb::arg("group").noconvert(), nb::arg("bounded_part").noconvert(),
        nb::arg("active"), nb::arg("groups"), nb::arg("singles"), nb::arg("storage").noconvert(),
        nb::arg("slot").noconvert(), nb::arg("length").noconvert(), nb::arg("last_use").noconvert(), nb::arg("clock"),
        nb::arg("rule"), nb::arg("memory").noconvert(), nb::arg("violation"), nb::arg("tolerance"),
        nb::arg("max_steps"), nb::arg("max_seconds"));
}
