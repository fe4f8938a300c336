// Bindings of the solver of the problems of a fold along a path of parameters.
#include <cmath>
#include <cstring>
#include <memory>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// The problems of a path, a row of each table for one; tables of no rows are constant or absent.
struct FoldPathProblems {
  Vector<const std::int64_t> columns;  // the row and column of the matrix of each variable
  Vector<const double> linear;
  Vector<const std::int32_t> group;
  std::int32_t groups;
  Table<const double> lower, upper, ridge;
  Table<const double> kink;            // no rows: none
  Vector<const double> factor;         // from the solution before to the start; 0: the row of `start`
  Table<const double> start;           // feasible
  Vector<const std::int64_t> outside;  // other columns of the matrix, whose values are wanted

  std::int64_t size() const { return length(columns); }
  std::int64_t count() const { return length(factor); }

  void check() const {
    require_length(size(), "the arrays of the problems must have one length", linear, group);
    for (const auto& table : {lower, upper, ridge, start})
      require(length(table) == count() && length(table, 1) == size(), "the tables must have a row for each problem");
    require(length(kink) == 0 || (length(kink) == count() && length(kink, 1) == size()),
            "the tables must have a row for each problem");
    require(count() > 0 && factor.data()[0] == 0.0 && groups >= 0, "the first problem must have a start of its own");
    for (std::int64_t k = 0; k < size(); ++k)
      require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
  }
};

struct FoldPathResults {
  Table<double> dual, offsets, outside;  // of each problem
  Table<std::int64_t> outcomes;          // reason, steps, rounds, solutions of the free equations

  void check() const {}
};

// The middle of the interval of an offset, or its finite end, or 0 if it has none.
double middle_of(const GradientExtremes& e) {
  const double low = std::isfinite(e.highest) ? e.highest : e.lowest;
  const double high = std::isfinite(e.lowest) ? e.lowest : e.highest;
  return std::isfinite(low) ? 0.5 * (low + high) : 0.0;
}

// Memory of one call.
struct FoldMemory {
  std::vector<double> gradient, bounds_before, diagonal, shifts, before, part_doubles;
  std::vector<double> diagonal_values;
  std::vector<GradientExtremes> extremes;
  std::unique_ptr<bool[]> keep;
  std::vector<float> part_diagonal;
  std::vector<std::int64_t> indices, free_indices;
  std::vector<std::int32_t> part_group, free_groups;
  std::unique_ptr<float[]> values;
  std::unique_ptr<double[]> free_doubles;
  FoldWorkspace pointers;

  FoldMemory(std::int64_t size, std::int32_t groups, std::int64_t values_count, std::int64_t max_free,
             const std::int32_t* cancelled)
      : gradient(size),
        diagonal(size),
        shifts(2 * size),
        before(size),
        part_doubles(9 * size),
        diagonal_values(size),
        extremes(groups + 1),
        keep(new bool[size]),
        part_diagonal(size),
        indices(4 * size),
        free_indices(3 * max_free + groups),
        part_group(size),
        free_groups(max_free),
        values(new float[values_count]),
        free_doubles(new double[2 * max_free * max_free + 8 * max_free]) {
    std::int64_t* at = indices.data();
    pointers = {shifts.data(),
                diagonal_values.data(),
                before.data(),
                extremes.data(),
                keep.get(),
                part_doubles.data(),
                part_diagonal.data(),
                at,
                at + size,
                at + 2 * size,
                at + 3 * size,
                part_group.data(),
                values.get(),
                values_count,
                max_free,
                free_doubles.get(),
                free_indices.data(),
                free_groups.data(),
                cancelled};
  }
};

class PathOfProblems {
 public:
  PathOfProblems(const double* matrix, std::int64_t stride, const FoldPathProblems& p, const FoldPathResults& r,
                 const StepLimits& limits, std::int64_t values_count, std::int64_t max_free,
                 const std::int32_t* cancelled)
      : path_{matrix, stride, p.columns.data()},
        p_(p),
        r_(r),
        limits_(limits),
        n_(p.size()),
        own_(n_, p.groups, values_count, max_free, cancelled),
        cancelled_(cancelled) {
    const std::int64_t count = length(p.outside);
    for (std::int64_t c = 0; c < count; ++c)
      if (c == 0 || p.outside.data()[c] != p.outside.data()[c - 1] + 1) outside_runs_.push_back(c);
    outside_runs_.push_back(count);
  }

  void solve() {
    for (std::int64_t q = 0; q < p_.count(); ++q) {
      const double factor = p_.factor.data()[q];
      double* dual = r_.dual.data() + q * n_;
      if (factor == 0.0)
        start_anew(q, dual);
      else
        start_from_previous(q, dual, factor);
      const double* ridge = p_.ridge.data() + q * n_;
      std::int64_t singles = 0;
      for (std::int64_t k = 0; k < n_; ++k) {
        const std::int64_t column = path_.columns[k];
        own_.diagonal[k] = static_cast<double>(path_.matrix[column * path_.stride + column]) + ridge[k];
        singles += p_.group.data()[k] < 0;
      }
      DualState state{dual,
                      own_.gradient.data(),
                      p_.lower.data() + q * n_,
                      p_.upper.data() + q * n_,
                      own_.diagonal.data(),
                      ridge,
                      p_.group.data(),
                      nullptr,
                      n_,
                      n_,
                      p_.groups,
                      singles,
                      length(p_.kink) ? p_.kink.data() + q * n_ : nullptr};
      const FoldOutcome out = level.solvers->fold(path_, own_.pointers, state, limits_.tolerance, limits_.max_steps);
      std::int64_t* outcome = r_.outcomes.data() + 4 * q;
      outcome[0] = static_cast<std::int64_t>(out.reason);
      outcome[1] = out.steps;
      outcome[2] = out.rounds;
      outcome[3] = out.free_solutions;
      for (std::int32_t g = 0; g < p_.groups; ++g) r_.offsets.data()[q * p_.groups + g] = middle_of(own_.extremes[g]);
      if (*static_cast<const volatile std::int32_t*>(cancelled_)) return;
      add_outside(dual, r_.outside.data() + q * length(p_.outside));
    }
  }

 private:
  void start_anew(std::int64_t q, double* dual) {
    const double* ridge = p_.ridge.data() + q * n_;
    std::memcpy(dual, p_.start.data() + q * n_, n_ * sizeof(double));
    for (std::int64_t k = 0; k < n_; ++k) own_.gradient[k] = p_.linear.data()[k] - ridge[k] * dual[k];
    for (std::int64_t k = 0; k < n_; ++k) {
      if (dual[k] == 0.0) continue;
      const double* row = path_.matrix + path_.columns[k] * path_.stride;
      for (std::int64_t c = 0; c < n_; ++c) own_.gradient[c] -= dual[k] * static_cast<double>(row[path_.columns[c]]);
    }
  }

  // A solution without bounded variables remains one if the bounds grow.
  void start_from_previous(std::int64_t q, double* dual, double factor) {
    const double *before = dual - n_, *lower = p_.lower.data() + q * n_, *upper = p_.upper.data() + q * n_;
    const double *old_ridge = p_.ridge.data() + (q - 1) * n_, *ridge = old_ridge + n_;
    bool bounded = false;
    for (std::int64_t k = 0; k < n_; ++k)
      bounded |= before[k] != 0.0 && (before[k] == (lower - n_)[k] || before[k] == (upper - n_)[k]);
    if (!bounded && factor > 1.0) factor = 1.0;
    for (std::int64_t k = 0; k < n_; ++k) {
      const bool at_lower = before[k] == (lower - n_)[k], at_upper = before[k] == (upper - n_)[k];
      const double scaled = factor * before[k];
      dual[k] = before[k] == 0.0            ? 0.0
                : factor != 1.0 && at_lower ? lower[k]
                : factor != 1.0 && at_upper ? upper[k]
                : scaled < lower[k]         ? lower[k]
                : scaled > upper[k]         ? upper[k]
                                            : scaled;
      const double product = p_.linear.data()[k] - own_.gradient[k] - old_ridge[k] * before[k];
      own_.gradient[k] = p_.linear.data()[k] - factor * product - ridge[k] * dual[k];
    }
  }

  // Σ b_k M_k at the other columns; where these are in runs, without an index for each.
  void add_outside(const double* dual, double* out) const {
    const std::int64_t count = length(p_.outside);
    const std::int64_t* at = p_.outside.data();
    for (std::int64_t c = 0; c < count; ++c) out[c] = 0.0;
    for (std::int64_t k = 0; k < n_ && count; ++k) {
      if (dual[k] == 0.0) continue;
      const double* row = path_.matrix + path_.columns[k] * path_.stride;
      for (std::size_t r = 0; r + 1 < outside_runs_.size(); ++r) {
        const std::int64_t begin = outside_runs_[r], end = outside_runs_[r + 1];
        const double* from = row + at[begin];
        for (std::int64_t c = begin; c < end; ++c) out[c] += dual[k] * from[c - begin];
      }
    }
  }

  const FoldPath path_;
  const FoldPathProblems& p_;
  const FoldPathResults& r_;
  const StepLimits& limits_;
  const std::int64_t n_;
  FoldMemory own_;
  const std::int32_t* cancelled_;
  std::vector<std::int64_t> outside_runs_;  // where each begins, and the end of the last one
};

void solve_fold_path(Table<const double> matrix, const FoldPathProblems& problems, const FoldPathResults& results,
                     const StepLimits& limits, std::int64_t values_count, std::int64_t max_free,
                     Vector<const std::int32_t> cancelled) {
  const std::int64_t n = problems.size(), count = problems.count();
  require(length(matrix) == length(matrix, 1), "the matrix must be square");
  require_within(problems.columns, length(matrix));
  require_within(problems.outside, length(matrix));
  require(length(results.dual) == count && length(results.dual, 1) == n && length(results.offsets) == count &&
              length(results.offsets, 1) == problems.groups && length(results.outside) == count &&
              length(results.outside, 1) == length(problems.outside) && length(results.outcomes) == count &&
              length(results.outcomes, 1) == 4,
          "the results must have a row for each problem");
  require(length(cancelled) == 1 && max_free >= 0 && values_count >= 3 * n, "there must be memory for three rows");
  nb::gil_scoped_release unlocked;
  PathOfProblems(matrix.data(), length(matrix, 1), problems, results, limits, values_count, max_free, cancelled.data())
      .solve();
}

}  // namespace

void define_folds(nb::module_& m) {
  define_arguments<FoldPathProblems, Vector<const std::int64_t>, Vector<const double>, Vector<const std::int32_t>,
                   std::int32_t, Table<const double>, Table<const double>, Table<const double>, Table<const double>,
                   Vector<const double>, Table<const double>, Vector<const std::int64_t>>(
      m, "FoldPathProblems", exact("columns"), exact("linear"), exact("group"), nb::arg("groups"), exact("lower"),
      exact("upper"), exact("ridge"), exact("kink"), exact("factor"), exact("start"), exact("outside"));
  define_arguments<FoldPathResults, Table<double>, Table<double>, Table<double>, Table<std::int64_t>>(
      m, "FoldPathResults", exact("dual"), exact("offsets"), exact("outside"), exact("outcomes"));
  m.def("solve_fold_path", &solve_fold_path, exact("matrix"), nb::arg("problems"), nb::arg("results"),
        nb::arg("limits"), nb::arg("values_count"), nb::arg("max_free"), exact("cancelled"));
}

}  // namespace maxmargin
