// Binding of the solver of small problems: checks arguments, releases the interpreter lock, shares problems among
// threads.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "kernel_arguments.hpp"
#include "one_vs_one.hpp"

namespace maxmargin {
namespace {

// Samples whose kernel values are the matrix of problems: a problem computes rows when it needs them, and keeps them in
// the memory of its thread.
struct KernelSamples {
  FormulaArguments formula;
  PackedArrays columns;
  Table<double> memory;  // a row for every thread
  std::int64_t large;    // problems of more variables keep at most `max_rows` rows
  std::int64_t max_rows;

  void check() const { require(large >= 0 && max_rows >= 0, "the limits of rows must not be negative"); }

  void add_to(Memory& all) const { all.of(columns).writes("memory", memory); }
};

// The kernel rows of samples as a RowSource.
class KernelRows {
 public:
  explicit KernelRows(const KernelSamples& samples)
      : formula_(samples.formula),
        columns_(samples.columns.in_groups_of<double>(level.kernels->in_double.panel)),
        features_(samples.columns.features),
        term_(samples.formula.term),
        large_(samples.large),
        of_small_{fill, this, level.kernels->in_double.panel, samples.large},
        of_large_{fill, this, level.kernels->in_double.panel, samples.max_rows},
        diagonal_(columns_.count) {
    const std::int64_t panel = of_small_.panel;
    std::vector<double> values(panel);
    for (std::int64_t k = 0; k < columns_.count; ++k) {
      fill(this, k, k / panel, k / panel + 1, values.data());
      diagonal_[k] = values[k % panel];
    }
  }

  // The rows of a problem of so many variables.
  const RowSource* source(std::int64_t size) const { return size > large_ ? &of_large_ : &of_small_; }
  double diagonal(std::int64_t row) const { return diagonal_[row]; }

 private:
  static void fill(const void* context, std::int64_t row, std::int64_t first, std::int64_t last, double* out) {
    const KernelRows& self = *static_cast<const KernelRows*>(context);
    level.kernels->in_double.dense_row[self.term_](self.formula_, self.columns_, self.features_, row, first, last, out);
  }

  const Formula formula_;
  const PackedSamples<double> columns_;
  const std::int64_t features_;
  const int term_;
  const std::int64_t large_;
  const RowSource of_small_, of_large_;
  std::vector<double> diagonal_;
};

// Problems on parts of one matrix: variables edges[p] … edges[p+1] are problem p.
struct ProblemBatch {
  Table<const double> matrix;          // empty if there are samples
  Vector<const std::int64_t> indices;  // the matrix row of each variable; empty: every problem has all rows, in order
  Vector<const std::int64_t> edges;
  Vector<const double> linear, lower, upper, ridge;
  std::int32_t groups;               // of each problem, whose sums are kept
  Vector<const std::int32_t> group;  // of each variable; empty if there is at most one: all are in it, or in none
  Vector<const double> kink;         // empty: none
  std::optional<KernelSamples> samples;

  void check() const {
    constexpr const char* sentence = "the arrays of the problems must have one length";
    require(length(matrix) == length(matrix, 1), "the matrix must be square");
    require(!samples || (!given(matrix) && given(indices)), "problems are on a matrix or on indices of samples");
    require_length(length(linear), sentence, lower, upper, ridge);
    require(!given(kink) || length(kink) == length(linear), sentence);
    require(!given(indices) || length(indices) == length(linear), "there must be one index for every variable");
    require(length(edges) >= 1, "the edges of the problems are malformed");
    require(groups >= 0 && groups <= kMaxSmallGroups, "a small problem has at most two groups");
    require(length(group) == (groups < 2 ? 0 : length(linear)), "there must be one group for every variable");
  }

  void add_to(Memory& memory) const {
    memory.reads("matrix", matrix).reads("indices", indices).reads("edges", edges).reads("linear", linear);
    memory.reads("lower", lower).reads("upper", upper).reads("ridge", ridge).reads("group", group).reads("kink", kink);
    if (samples) memory.of(*samples);
  }

  // Check the indices, groups and edges; returns the size of the largest problem.
  std::int64_t largest() const {
    const std::int64_t problems = length(edges) - 1;
    require_within(indices, samples ? samples->columns.count : length(matrix));
    for (std::int64_t k = 0; k < length(group); ++k)
      require(group.data()[k] >= 0 && group.data()[k] < groups, "a group is out of range");
    require(edges.data()[0] == 0 && edges.data()[problems] == length(linear),
            "the edges of the problems are malformed");
    std::int64_t largest = 0;
    for (std::int64_t p = 0; p < problems; ++p) {
      const std::int64_t size = edges.data()[p + 1] - edges.data()[p];
      require(size >= 0 && (given(indices) || size == length(matrix)), "the edges of the problems are malformed");
      largest = std::max(largest, size);
    }
    return largest;
  }
};

// The arrays of one problem.
struct ProblemArrays {
  double *dual, *gradient;
  const double *linear, *lower, *upper, *ridge, *kink;  // the latter may be null
  const std::int32_t* group;
  const std::int64_t* indices;  // null: all rows of the matrix in order
};

// Memory for the arrays of a problem whose groups are not runs of variables, ordered by group.
class OrderedArrays {
 public:
  OrderedArrays(std::int64_t size, int groups)
      : order_(groups < 2 ? 0 : size), doubles_(7 * order_.size()), group_(order_.size()), indices_(order_.size()) {}

  // The ordered arrays, or those given if the variables of each group are next to each other already.
  ProblemArrays order(const ProblemArrays& from, std::int64_t size) {
    if (order_.empty() || std::is_sorted(from.group, from.group + size)) return from;
    for (std::int64_t k = 0, first = 0, second = std::count(from.group, from.group + size, 0); k < size; ++k)
      order_[from.group[k] ? second++ : first++] = k;
    double* next = doubles_.data();
    const auto copy = [&](const double* values) -> double* {
      if (!values) return nullptr;
      double* to = next;
      next += size;
      for (std::int64_t k = 0; k < size; ++k) to[k] = values[order_[k]];
      return to;
    };
    for (std::int64_t k = 0; k < size; ++k) {
      group_[k] = from.group[order_[k]];
      indices_[k] = from.indices ? from.indices[order_[k]] : order_[k];
    }
    return {copy(from.dual),  copy(from.gradient), copy(from.linear), copy(from.lower), copy(from.upper),
            copy(from.ridge), copy(from.kink),     group_.data(),     indices_.data()};
  }

  // Copy the solution back.
  void restore(const ProblemArrays& ordered, const ProblemArrays& to, std::int64_t size) const {
    if (ordered.dual == to.dual) return;
    for (std::int64_t k = 0; k < size; ++k) {
      to.dual[order_[k]] = ordered.dual[k];
      to.gradient[order_[k]] = ordered.gradient[k];
    }
  }

 private:
  std::vector<std::int64_t> order_;
  std::vector<double> doubles_;
  std::vector<std::int32_t> group_;
  std::vector<std::int64_t> indices_;
};

// Memory for problems of up to `size` variables, at most `max_free` of them free.
struct Workspace {
  std::unique_ptr<double[]> copies, free_doubles;  // not initialised: only a part may be needed
  std::vector<std::int64_t> slot, free_indices;
  std::vector<double> dual_before, shifts, row_diagonal, diagonal;
  std::vector<std::int32_t> one_group, free_groups;
  std::vector<double> shrunk_doubles;
  std::vector<std::int64_t> shrunk_indices;
  std::vector<std::int32_t> shrunk_group;
  std::unique_ptr<bool[]> keep;
  OrderedArrays ordered;
  double* rows;              // that are copied or computed
  std::int64_t rows_values;  // the number of their values that there is memory for

  // `memory` of so many values for rows is owned if null
  Workspace(std::int64_t size, std::int64_t max_free, double* memory, std::int64_t values, int groups)
      : copies(memory || !values ? nullptr : new double[values]),
        free_doubles(new double[2 * max_free * max_free + 7 * max_free]),
        slot(size),
        free_indices(3 * max_free + kMaxSmallGroups),
        dual_before(size),
        shifts(2 * size),
        row_diagonal(size),
        diagonal(size),
        one_group(size, groups ? 0 : -1),
        free_groups(max_free),
        shrunk_doubles(memory ? 10 * size : 0),
        shrunk_indices(memory ? 3 * size : 0),
        shrunk_group(memory ? size : 0),
        keep(memory ? new bool[size] : nullptr),
        ordered(size, groups),
        rows(memory ? memory : copies.get()),
        rows_values(values) {}

  SmallWorkspace pointers(bool indexed) {
    return {indexed ? rows : nullptr,
            rows_values,
            slot.data(),
            dual_before.data(),
            shifts.data(),
            row_diagonal.data(),
            free_doubles.get(),
            free_indices.data(),
            free_groups.data(),
            {shrunk_doubles.data(), shrunk_indices.data(), shrunk_group.data(), keep.get()}};
  }
};

// The middle of the interval of an offset, or its finite end, or 0 if it has none.
double middle_of(const GradientExtremes& e) {
  const double low = std::isfinite(e.highest) ? e.highest : e.lowest;
  const double high = std::isfinite(e.lowest) ? e.lowest : e.highest;
  return std::isfinite(low) ? 0.5 * (low + high) : 0.0;
}

// Solve one problem of a batch; `offsets` become those of its groups.
Outcome solve_small_problem(const ProblemBatch& batch, const KernelRows* kernel_rows, const ProblemArrays& given,
                            std::int64_t size, const StepLimits& limits, std::int64_t max_free, Workspace& own,
                            double* offsets) {
  const std::int64_t n = length(batch.matrix);
  const double* matrix = batch.matrix.data();
  const ProblemArrays a = own.ordered.order(given, size);
  for (std::int64_t k = 0; k < size; ++k) {
    const std::int64_t row = a.indices ? a.indices[k] : k;
    own.diagonal[k] = (kernel_rows ? kernel_rows->diagonal(row) : matrix[row * n + row]) + a.ridge[k];
  }
  DualState state{a.dual,  a.gradient, a.lower, a.upper,      own.diagonal.data(),     a.ridge, a.group,
                  nullptr, size,       size,    batch.groups, batch.groups ? 0 : size, a.kink};
  const SmallProblem problem{matrix,   n,        a.indices,
                             a.linear, max_free, kernel_rows ? kernel_rows->source(size) : nullptr};
  GradientExtremes extremes[kMaxSmallGroups + 1];
  const Outcome out = level.solvers->small_problem(state, problem, own.pointers(a.indices != nullptr), limits.tolerance,
                                                   limits.max_steps, extremes);
  own.ordered.restore(a, given, size);
  for (std::int32_t g = 0; g < batch.groups; ++g) offsets[g] = middle_of(extremes[g]);
  return out;
}

// Solve the problems whose outcome is −1, as many as the time allows. outcomes[p] becomes (reason, steps, requests for
// rows, rows copied or computed); `dual` is the start and becomes the solution.
void solve_small_problems(const ProblemBatch& batch, Vector<double> dual, Vector<double> gradient,
                          Table<std::int64_t> outcomes, Table<double> offsets, const StepLimits& limits,
                          std::int64_t max_free, int threads) {
  const std::int64_t problems = length(outcomes);
  require_length(length(batch.linear), "the arrays of the problems must have one length", dual, gradient);
  require(length(batch.edges) == problems + 1 && length(outcomes, 1) == 4 && length(offsets) == problems &&
              length(offsets, 1) == batch.groups && max_free >= 0 && limits.max_steps >= 0,
          "the problems are malformed");
  require(!batch.samples || length(batch.samples->memory) >= threads, "there must be memory for every thread");
  const std::int64_t largest = batch.largest();
  Memory()
      .of(batch)
      .writes("dual", dual)
      .writes("gradient", gradient)
      .writes("outcomes", outcomes)
      .writes("offsets", offsets)
      .require_disjoint();
  const std::int64_t* edges = batch.edges.data();
  const bool indexed = given(batch.indices);
  max_free = std::min(max_free, largest);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::optional<KernelRows> kernel_rows;
  if (batch.samples) kernel_rows.emplace(*batch.samples);
  const std::int64_t copied = indexed || batch.groups == 2 ? largest * largest : 0;
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (int t = 0; t < std::max(1, threads); ++t) {
    double* memory = kernel_rows ? batch.samples->memory.data() + t * length(batch.samples->memory, 1) : nullptr;
    const std::int64_t values = kernel_rows ? length(batch.samples->memory, 1) : copied;
    workspaces.push_back(std::make_unique<Workspace>(largest, max_free, memory, values, batch.groups));
  }
  nb::gil_scoped_release unlocked;
  in_parallel(threads, problems, 1, [&](std::int64_t p, std::int64_t, int thread) {
    std::int64_t* outcome = outcomes.data() + 4 * p;
    if (outcome[0] != -1 || std::chrono::duration<double>(Clock::now() - start).count() > limits.max_seconds) return;
    Workspace& own = *workspaces[thread];
    const std::int64_t at = edges[p], size = edges[p + 1] - at;
    const ProblemArrays arrays{dual.data() + at,
                               gradient.data() + at,
                               batch.linear.data() + at,
                               batch.lower.data() + at,
                               batch.upper.data() + at,
                               batch.ridge.data() + at,
                               given(batch.kink) ? batch.kink.data() + at : nullptr,
                               batch.groups < 2 ? own.one_group.data() : batch.group.data() + at,
                               indexed ? batch.indices.data() + at : nullptr};
    const Outcome out = solve_small_problem(batch, kernel_rows ? &*kernel_rows : nullptr, arrays, size, limits,
                                            max_free, own, offsets.data() + batch.groups * p);
    outcome[0] = static_cast<std::int64_t>(out.reason);
    outcome[1] = out.steps;
    outcome[2] = out.row;
    outcome[3] = out.row_length;
  });
}

// Votes and summed decision values of each class for every row of a block of kernel values.
bool one_vs_one_votes(Table<const double> block, Table<const double> columns, Vector<const std::int64_t> edges,
                      Vector<const double> offsets, bool zero_is_first, double limit, Table<double> votes,
                      Table<double> confidence) {
  const std::int64_t rows = length(block), classes = length(edges) - 1, vectors = length(block, 1);
  require(classes >= 2 && length(offsets) == classes * (classes - 1) / 2, "there must be an offset for every pair");
  require(length(columns) == vectors && length(columns, 1) == classes - 1, "the coefficients have another shape");
  require(edges.data()[0] == 0 && edges.data()[classes] == vectors, "edges must span the support vectors");
  for (std::int64_t c = 0; c < classes; ++c) require(edges.data()[c] <= edges.data()[c + 1], "edges must not decrease");
  require(length(votes) == rows && length(votes, 1) == classes, "votes must have a row for every sample");
  require(length(confidence) == rows && length(confidence, 1) == classes, "votes must have a row for every sample");
  Memory()
      .reads("block", block)
      .reads("columns", columns)
      .reads("edges", edges)
      .reads("offsets", offsets)
      .writes("votes", votes)
      .writes("confidence", confidence)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  const OneVsOneModels models{columns.data(), offsets.data(), edges.data(), classes};
  std::vector<double> sums(classes - 1), decisions(length(offsets));
  bool finite = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    decide_pairs(models, block.data() + row * vectors, sums.data(), decisions.data());
    const bool own = count_votes(decisions.data(), classes, zero_is_first, limit, votes.data() + row * classes,
                                 confidence.data() + row * classes);
    finite = finite && own;
  }
  return finite;
}

}  // namespace

void define_small_problems(nb::module_& m) {
  m.def("one_vs_one_votes", &one_vs_one_votes, exact("block"), exact("columns"), exact("edges"), exact("offsets"),
        nb::arg("zero_is_first"), nb::arg("limit"), exact("votes"), exact("confidence"));
  define_arguments<KernelSamples, FormulaArguments, PackedArrays, Table<double>, std::int64_t, std::int64_t>(
      m, "KernelSamples", nb::arg("formula"), nb::arg("columns"), exact("memory"), nb::arg("large"),
      nb::arg("max_rows"));
  define_arguments<ProblemBatch, Table<const double>, Vector<const std::int64_t>, Vector<const std::int64_t>,
                   Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>, std::int32_t,
                   Vector<const std::int32_t>, Vector<const double>, std::optional<KernelSamples>>(
      m, "ProblemBatch", exact("matrix"), exact("indices"), exact("edges"), exact("linear"), exact("lower"),
      exact("upper"), exact("ridge"), nb::arg("groups"), exact("group"), exact("kink"),
      nb::arg("samples") = nb::none());
  m.def("solve_small_problems", &solve_small_problems, nb::arg("batch"), exact("dual"), exact("gradient"),
        exact("outcomes"), exact("offsets"), nb::arg("limits"), nb::arg("max_free"), nb::arg("threads"));
}

}  // namespace maxmargin
