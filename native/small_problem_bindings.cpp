// Binding of the solver of small problems: checks arguments, releases the interpreter lock, shares problems among
// threads.
#include <chrono>
#include <memory>

#include "bindings.hpp"
#include "one_vs_one.hpp"

namespace maxmargin {
namespace {

// Problems on parts of one matrix: variables edges[p] … edges[p+1] are problem p.
struct ProblemBatch {
  Table<const double> matrix;
  Vector<const std::int64_t> indices;  // the matrix row of each variable; empty: every problem has all rows, in order
  Vector<const std::int64_t> edges;
  Vector<const double> linear, lower, upper, ridge;
  bool grouped;  // whether each problem keeps the sum of its variables

  void check() const {
    require(length(matrix) == length(matrix, 1), "the matrix must be square");
    require_length(length(linear), "the arrays of the problems must have one length", lower, upper, ridge);
    require(!given(indices) || length(indices) == length(linear), "there must be one index for every variable");
    require(length(edges) >= 1, "the edges of the problems are malformed");
  }

  void add_to(Memory& memory) const {
    memory.reads("matrix", matrix).reads("indices", indices).reads("edges", edges).reads("linear", linear);
    memory.reads("lower", lower).reads("upper", upper).reads("ridge", ridge);
  }

  // Check the indices and edges; returns the size of the largest problem.
  std::int64_t largest() const {
    const std::int64_t problems = length(edges) - 1;
    require_within(indices, length(matrix));
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

// Memory for problems of up to `size` variables, at most `max_free` of them free.
struct Workspace {
  std::unique_ptr<double[]> copies, free_doubles;  // not initialised: only a part may be needed
  std::vector<std::int64_t> slot, valid, last_use, free_indices;
  std::vector<double> dual_before, diagonal;
  std::vector<std::int32_t> group;

  Workspace(std::int64_t size, std::int64_t max_free, bool indexed, int group_of_all)
      : copies(indexed ? new double[size * size] : nullptr),
        free_doubles(new double[2 * max_free * max_free + 7 * max_free]),
        slot(size),
        valid(size),
        last_use(size),
        free_indices(3 * max_free + 1),
        dual_before(size),
        diagonal(size),
        group(size, group_of_all) {}

  SmallWorkspace pointers() {
    return {copies.get(),       slot.data(),        valid.data(),       last_use.data(),
            dual_before.data(), free_doubles.get(), free_indices.data()};
  }
};

// Solve the problems whose outcome is −1, as many as the time allows. outcomes[p] becomes (reason, steps, requests for
// rows); `dual` is the start and becomes the solution.
void solve_small_problems(const ProblemBatch& batch, Vector<double> dual, Vector<double> gradient,
                          Table<std::int64_t> outcomes, const StepLimits& limits, std::int64_t max_free, int threads) {
  const std::int64_t n = length(batch.matrix), problems = length(outcomes);
  require_length(length(batch.linear), "the arrays of the problems must have one length", dual, gradient);
  require(length(batch.edges) == problems + 1 && length(outcomes, 1) == 3 && max_free >= 0 && limits.max_steps >= 0,
          "the problems are malformed");
  const std::int64_t largest = batch.largest();
  Memory().of(batch).writes("dual", dual).writes("gradient", gradient).writes("outcomes", outcomes).require_disjoint();
  const std::int64_t* edges = batch.edges.data();
  const std::int64_t* indices = given(batch.indices) ? batch.indices.data() : nullptr;
  max_free = std::min(max_free, largest);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<std::unique_ptr<Workspace>> workspaces;
  for (int t = 0; t < std::max(1, threads); ++t)
    workspaces.push_back(std::make_unique<Workspace>(largest, max_free, indices, batch.grouped ? 0 : -1));
  nb::gil_scoped_release unlocked;
  in_parallel(threads, problems, 1, [&](std::int64_t p, std::int64_t, int thread) {
    std::int64_t* outcome = outcomes.data() + 3 * p;
    if (outcome[0] != -1 || std::chrono::duration<double>(Clock::now() - start).count() > limits.max_seconds) return;
    Workspace& own = *workspaces[thread];
    const std::int64_t at = edges[p], size = edges[p + 1] - at;
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t row = indices ? indices[at + k] : k;
      own.diagonal[k] = batch.matrix.data()[row * n + row] + batch.ridge.data()[at + k];
    }
    DualState state{dual.data() + at,
                    gradient.data() + at,
                    batch.lower.data() + at,
                    batch.upper.data() + at,
                    own.diagonal.data(),
                    batch.ridge.data() + at,
                    own.group.data(),
                    nullptr,
                    size,
                    size,
                    batch.grouped ? 1 : 0,
                    batch.grouped ? 0 : size};
    const SmallProblem problem{batch.matrix.data(), n, indices ? indices + at : nullptr, batch.linear.data() + at,
                               max_free};
    const Outcome out =
        level.solvers->small_problem(state, problem, own.pointers(), limits.tolerance, limits.max_steps);
    outcome[0] = static_cast<std::int64_t>(out.reason);
    outcome[1] = out.steps;
    outcome[2] = out.row;
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
  define_arguments<ProblemBatch, Table<const double>, Vector<const std::int64_t>, Vector<const std::int64_t>,
                   Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>, bool>(
      m, "ProblemBatch", exact("matrix"), exact("indices"), exact("edges"), exact("linear"), exact("lower"),
      exact("upper"), exact("ridge"), nb::arg("grouped"));
  m.def("solve_small_problems", &solve_small_problems, nb::arg("batch"), exact("dual"), exact("gradient"),
        exact("outcomes"), nb::arg("limits"), nb::arg("max_free"), nb::arg("threads"));
}

}  // namespace maxmargin
