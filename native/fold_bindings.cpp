// Bindings of the solver of the problems of a fold along a path of parameters: one problem after the other.
#include <cmath>
#include <cstring>
#include <memory>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// A problem of a path.
struct FoldProblem {
  Vector<const std::int64_t> columns;  // the row and column of the matrix of each variable
  Vector<const double> linear;
  Vector<const std::int32_t> group;
  std::int32_t groups;
  Vector<const double> lower, upper, ridge, kink;  // no kinks: empty
  Vector<const std::int64_t> outside;              // other columns of the matrix, whose values are wanted

  std::int64_t size() const { return length(columns); }

  void check() const {
    require_length(size(), "the arrays of the problem must have one length", linear, group, lower, upper, ridge);
    require(length(kink) == 0 || length(kink) == size(), "the arrays of the problem must have one length");
    require(groups >= 0, "a group is out of range");
    for (std::int64_t k = 0; k < size(); ++k)
      require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
  }
};

// What is known of the solution: that of the problem before, with its values outside, whose bounds and ridges were
// those of `before` (a row each) and whose bounds grow by `factor`, by which the start may be scaled, or must be if it
// is not feasible otherwise; or with the factor 0 a feasible dual vector.
struct FoldStart {
  Vector<double> dual, gradient;  // become those of the solution
  Table<const double> before;
  double factor;
  bool must_scale;

  void check() const {
    require(length(dual) == length(gradient), "dual vector and gradient must have one length");
    require(factor == 0.0 || (length(before) == 3 && length(before, 1) == length(dual)),
            "a start from the problem before needs its bounds and ridges");
  }
};

struct FoldResults {
  Vector<double> offsets, outside;  // the latter is read where the start is the problem before
  Vector<std::int64_t> outcome;     // reason, steps, rounds, solutions of the free equations

  void check() const { require(length(outcome) == 4, "the outcome has four numbers"); }
};

constexpr double kScalingAccuracy = 1e-15;
// The fraction of bounded support vectors up to which a start is not scaled.
constexpr double kMaxBounded = 0.1;

// The middle of the interval of an offset, or its finite end, or 0 if it has none.
double middle_of(const GradientExtremes& e) {
  const double low = std::isfinite(e.highest) ? e.highest : e.lowest;
  const double high = std::isfinite(e.lowest) ? e.lowest : e.highest;
  return std::isfinite(low) ? 0.5 * (low + high) : 0.0;
}

// Memory that the problems of a path share: it is large, and new memory takes time.
struct SharedMemory {
  Vector<float> values;         // of copied rows
  Vector<double> free_doubles;  // of the equations of max_free variables
  std::int64_t max_free;

  static constexpr std::int64_t kAlignment = 15;  // values that may be left out at the beginning of the rows

  void check() const {
    require(max_free >= 0 && length(free_doubles) >= doubles_of_free_equations(max_free),
            "there must be memory for the equations of the free variables");
  }
  std::int64_t values_count() const { return length(values) - kAlignment; }
};

// Memory of one call.
struct FoldMemory {
  std::vector<double> diagonal, shifts, before, part_doubles;
  std::vector<double> diagonal_values;
  std::vector<GradientExtremes> extremes;
  std::unique_ptr<bool[]> keep;
  std::vector<float> part_floats;
  std::vector<std::int64_t> indices, free_indices;
  std::vector<std::int32_t> part_group, free_groups;
  FoldWorkspace pointers;

  FoldMemory(std::int64_t size, std::int32_t groups, const SharedMemory& shared, const std::int32_t* cancelled)
      : diagonal(size),
        shifts(2 * size),
        before(size),
        part_doubles(9 * size),
        diagonal_values(size),
        extremes(groups + 1),
        keep(new bool[size]),
        part_floats(4 * (size + 15) + SharedMemory::kAlignment),
        indices(6 * size),
        free_indices(indices_of_free_equations(shared.max_free) + groups),
        part_group(size),
        free_groups(shared.max_free) {
    std::int64_t* at = indices.data();
    pointers = {shifts.data(),
                diagonal_values.data(),
                before.data(),
                extremes.data(),
                keep.get(),
                part_doubles.data(),
                part_floats.data(),
                at,
                at + size,
                at + 2 * size,
                at + 3 * size,
                at + 4 * size,
                at + 5 * size,
                part_group.data(),
                shared.values.data(),
                shared.values_count(),
                shared.max_free,
                shared.free_doubles.data(),
                free_indices.data(),
                free_groups.data(),
                cancelled};
  }
};

class FoldProblemSolver {
 public:
  FoldProblemSolver(const double* matrix, std::int64_t stride, const FoldProblem& p, const FoldStart& start,
                    const FoldResults& r, const SharedMemory& shared, const std::int32_t* cancelled)
      : path_{matrix, stride, p.columns.data()},
        p_(p),
        start_(start),
        r_(r),
        n_(p.size()),
        dual_(start.dual.data()),
        gradient_(start.gradient.data()),
        dual_outside_(n_),
        own_(n_, p.groups, shared, cancelled) {}

  void solve(const StepLimits& limits) {
    if (start_.factor == 0.0) {
      compute_gradient();
      std::fill_n(r_.outside.data(), length(r_.outside), 0.0);
    } else {
      start_from_previous();
    }
    std::int64_t singles = 0;
    for (std::int64_t k = 0; k < n_; ++k) {
      const std::int64_t column = path_.columns[k];
      own_.diagonal[k] = path_.matrix[column * path_.stride + column] + p_.ridge.data()[k];
      singles += p_.group.data()[k] < 0;
    }
    DualState state{dual_,
                    gradient_,
                    p_.lower.data(),
                    p_.upper.data(),
                    own_.diagonal.data(),
                    p_.ridge.data(),
                    p_.group.data(),
                    nullptr,
                    n_,
                    n_,
                    p_.groups,
                    singles,
                    length(p_.kink) ? p_.kink.data() : nullptr};
    const FoldOutcome out = level.solvers->fold(path_, own_.pointers, state, limits.tolerance, limits.max_steps);
    std::int64_t* outcome = r_.outcome.data();
    outcome[0] = static_cast<std::int64_t>(out.reason);
    outcome[1] = out.steps;
    outcome[2] = out.rounds;
    outcome[3] = out.free_solutions;
    for (std::int32_t g = 0; g < p_.groups; ++g) r_.offsets.data()[g] = middle_of(own_.extremes[g]);
    add_outside(r_.outside.data());
  }

 private:
  void compute_gradient() {
    const double* ridge = p_.ridge.data();
    for (std::int64_t k = 0; k < n_; ++k) gradient_[k] = p_.linear.data()[k] - ridge[k] * dual_[k];
    for (std::int64_t k = 0; k < n_; ++k) {
      if (dual_[k] == 0.0) continue;
      const double* row = path_.matrix + path_.columns[k] * path_.stride;
      for (std::int64_t c = 0; c < n_; ++c) gradient_[c] -= dual_[k] * row[path_.columns[c]];
    }
  }

  // A solution without bounded variables remains one if the bounds grow. With few of them it is the better start: the
  // gradient of the others is right.
  void start_from_previous() {
    const double *lower = p_.lower.data(), *upper = p_.upper.data(), *ridge = p_.ridge.data();
    const double *old_lower = start_.before.data(), *old_upper = old_lower + n_, *old_ridge = old_upper + n_;
    double factor = start_.factor;
    std::int64_t support = 0, bounded = 0;
    for (std::int64_t k = 0; k < n_; ++k) {
      support += dual_[k] != 0.0;
      bounded += dual_[k] != 0.0 && (dual_[k] == old_lower[k] || dual_[k] == old_upper[k]);
    }
    const bool few = static_cast<double>(bounded) <= kMaxBounded * static_cast<double>(support);
    if (few && !start_.must_scale && factor > 1.0) factor = 1.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      const double before = dual_[k], scaled = factor * before;
      const bool at_lower = before == old_lower[k], at_upper = before == old_upper[k];
      dual_[k] = before == 0.0               ? 0.0
                 : factor != 1.0 && at_lower ? lower[k]
                 : factor != 1.0 && at_upper ? upper[k]
                 : scaled < lower[k]         ? lower[k]
                 : scaled > upper[k]         ? upper[k]
                                             : scaled;
      // A bound may differ from the scaled one by rounding.
      dual_outside_[k] = std::fabs(dual_[k] - scaled) <= kScalingAccuracy * std::fabs(scaled) ? dual_[k] : scaled;
      const double product = p_.linear.data()[k] - gradient_[k] - old_ridge[k] * before;
      gradient_[k] = p_.linear.data()[k] - factor * product - ridge[k] * dual_[k];
    }
    for (std::int64_t c = 0; c < length(r_.outside); ++c) r_.outside.data()[c] *= factor;
  }

  // Σ b_k M_k at the other columns, of which the sum for `dual_outside_` is known; where these are in runs, without an
  // index for each.
  void add_outside(double* out) const {
    const std::int64_t count = length(p_.outside);
    const std::int64_t* at = p_.outside.data();
    std::vector<std::int64_t> runs;  // where each begins, and the end of the last one
    for (std::int64_t c = 0; c < count; ++c) {
      if (c == 0 || at[c] != at[c - 1] + 1) runs.push_back(c);
    }
    runs.push_back(count);
    for (std::int64_t k = 0; k < n_ && count; ++k) {
      const double change = dual_[k] - dual_outside_[k];
      if (change == 0.0) continue;
      const double* row = path_.matrix + path_.columns[k] * path_.stride;
      for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
        const double* from = row + at[runs[r]];
        for (std::int64_t c = runs[r]; c < runs[r + 1]; ++c) out[c] += change * from[c - runs[r]];
      }
    }
  }

  const FoldPath path_;
  const FoldProblem& p_;
  const FoldStart& start_;
  const FoldResults& r_;
  const std::int64_t n_;
  double *dual_, *gradient_;
  std::vector<double> dual_outside_;  // zeros, or the dual vector whose values outside are known
  FoldMemory own_;
};

void solve_fold_problem(Table<const double> matrix, const FoldProblem& problem, const FoldStart& start,
                        const FoldResults& results, const StepLimits& limits, const SharedMemory& shared,
                        Vector<const std::int32_t> cancelled) {
  const std::int64_t n = problem.size();
  require(length(matrix) == length(matrix, 1), "the matrix must be square");
  require_within(problem.columns, length(matrix));
  require_within(problem.outside, length(matrix));
  require(length(start.dual) == n && length(results.offsets) == problem.groups &&
              length(results.outside) == length(problem.outside),
          "start and results must have the sizes of the problem");
  require(length(cancelled) == 1, "one number says whether the call is cancelled");
  require(shared.values_count() >= 3 * (n + 15), "there must be memory for three rows");
  nb::gil_scoped_release unlocked;
  FoldProblemSolver(matrix.data(), length(matrix, 1), problem, start, results, shared, cancelled.data()).solve(limits);
}

}  // namespace

void define_folds(nb::module_& m) {
  define_arguments<FoldProblem, Vector<const std::int64_t>, Vector<const double>, Vector<const std::int32_t>,
                   std::int32_t, Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>,
                   Vector<const std::int64_t>>(m, "FoldProblem", exact("columns"), exact("linear"), exact("group"),
                                               nb::arg("groups"), exact("lower"), exact("upper"), exact("ridge"),
                                               exact("kink"), exact("outside"));
  define_arguments<FoldStart, Vector<double>, Vector<double>, Table<const double>, double, bool>(
      m, "FoldStart", exact("dual"), exact("gradient"), exact("before"), nb::arg("factor"), nb::arg("must_scale"));
  define_arguments<FoldResults, Vector<double>, Vector<double>, Vector<std::int64_t>>(
      m, "FoldResults", exact("offsets"), exact("outside"), exact("outcome"));
  define_arguments<SharedMemory, Vector<float>, Vector<double>, std::int64_t>(m, "FoldMemory", exact("values"),
                                                                              exact("free"), nb::arg("max_free"));
  m.def("doubles_of_free_equations", &doubles_of_free_equations, nb::arg("count"));
  m.def("solve_fold_problem", &solve_fold_problem, exact("matrix"), nb::arg("problem"), nb::arg("start"),
        nb::arg("results"), nb::arg("limits"), nb::arg("memory"), exact("cancelled"));
}

}  // namespace maxmargin
