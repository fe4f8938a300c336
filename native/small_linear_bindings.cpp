// Bindings of the solvers of small linear problems, with the certificate of the solution: the Newton method, for which
// rows are copied with the constant feature, and centred if there is a group, and dual coordinate ascent on the rows as
// they are.
#include <cmath>

#include "data_rows.hpp"
#include "ridged_newton.hpp"
#include "small_ascent.hpp"

namespace maxmargin {
namespace {

constexpr double kMostOrdinary = 0x1p66, kLeastOrdinary = 0x1p-66;  // no product of four such numbers overflows

int ordinary(double magnitude) {
  return int{magnitude == 0.0} | (int{magnitude >= kLeastOrdinary} & int{magnitude <= kMostOrdinary});
}

struct SmallLinearOptions {
  double constant;  // the value of one more feature that all rows have
  double relative_gap, gap;
  std::int64_t max_steps;
  bool compressed;  // whether compressed rows stay compressed, if there is no group; else they become dense

  void check() const { require(max_steps >= 0, "the limit of steps must not be negative"); }
};

// Whether the problem is of a kind that the solver takes: a ridge everywhere, or finite bounds and no ridge; 0
// feasible; one group of all variables or none; numbers of ordinary magnitude.
bool is_suitable(const BoxProblem& problem) {
  const std::int64_t n = problem.size();
  const std::int64_t singles = problem.count_singles();
  if (n == 0 || given(problem.kink) || problem.groups > 1 || (problem.groups == 1 && singles > 0)) return false;
  const double *linears = problem.linear.data(), *lowers = problem.lower.data(), *uppers = problem.upper.data();
  const double* ridges = problem.ridge.data();
  const bool ridged = ridges[0] > 0.0;
  int suitable = 1;
  for (std::int64_t k = 0; k < n; ++k) {  // without branches
    const double linear = std::fabs(linears[k]), lower = lowers[k], upper = uppers[k], ridge = ridges[k];
    const int unlimited = int{lower == -kUnlimited} | int{upper == kUnlimited};
    suitable &= int{(ridge > 0.0) == ridged} & (int{ridged} | (1 - unlimited)) & int{lower <= 0.0} & int{upper >= 0.0};
    suitable &= ordinary(ridge) & ordinary(linear);
    suitable &= (int{lower == -kUnlimited} | ordinary(-lower)) & (int{upper == kUnlimited} | ordinary(upper));
  }
  return suitable != 0;
}

// The distinct rows of a problem in double precision, with the constant feature last: dense, or compressed.
struct RowCopy {
  std::vector<double> values;
  std::vector<std::int32_t> starts, features;  // empty for dense rows
};

template <class T>
RowCopy copy_rows(const DenseRows<T>& rows, const std::int64_t* row_of, std::int64_t count, double constant, bool) {
  const std::int64_t columns = rows.width + (constant != 0.0);
  RowCopy copy{std::vector<double>(count * columns), {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const T* x = rows.values + (row_of ? row_of[i] : i) * rows.width;
    double* to = copy.values.data() + i * columns;
    for (std::int64_t j = 0; j < rows.width; ++j) to[j] = static_cast<double>(x[j]);
    if (constant != 0.0) to[rows.width] = constant;
  }
  return copy;
}

template <class T, class I>
RowCopy copy_rows(const CompressedRows<T, I>& rows, const std::int64_t* row_of, std::int64_t count, double constant,
                  bool compressed) {
  const std::int64_t columns = rows.width + (constant != 0.0);
  RowCopy copy;
  if (compressed)
    copy.starts.push_back(0);
  else
    copy.values.assign(count * columns, 0.0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = row_of ? row_of[i] : i;
    double* to = copy.values.data() + i * columns;
    for (I k = rows.starts[row]; k < rows.starts[row + 1]; ++k) {
      const auto value = static_cast<double>(rows.values[k]);
      if (!compressed) {
        to[rows.features[k]] += value;
        continue;
      }
      copy.values.push_back(value);
      copy.features.push_back(static_cast<std::int32_t>(rows.features[k]));
    }
    if (!compressed && constant != 0.0) to[rows.width] = constant;
    if (compressed && constant != 0.0) {
      copy.values.push_back(constant);
      copy.features.push_back(static_cast<std::int32_t>(rows.width));
    }
    if (compressed) copy.starts.push_back(static_cast<std::int32_t>(copy.features.size()));
  }
  return copy;
}

// A free offset makes the same problem of centred rows, with less cancellation.
void centre(std::vector<double>& table, std::int64_t count, std::int64_t columns, std::int64_t width) {
  std::vector<double> mean(width, 0.0);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < width; ++j) mean[j] += table[i * columns + j];
  for (double& value : mean) value /= static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < width; ++j) table[i * columns + j] -= mean[j];
}

// Whether the second half of the variables has the same rows as the first.
bool is_repeated(const std::int64_t* row, std::int64_t n) {
  return row && n % 2 == 0 && n > 0 && std::equal(row, row + n / 2, row + n / 2);
}

// Solve the problem and certify the solution. Not converged, with a certificate that is not conclusive: the problem is
// left to other solvers.
SmallLinearResult solve_small_linear(const DataRows& features, const BoxProblem& problem,
                                     const SmallLinearArrays& arrays, const SmallLinearOptions& options) {
  problem.require_objective();
  const std::int64_t n = problem.size(), width = features.width, count = features.count();
  require(count == n && length(arrays.dual) == n, "there must be a row for every variable");
  require(length(arrays.weights) == width + 1, "weights must include the constant feature");
  Memory().of(features, problem, arrays).require_disjoint();
  SmallLinearResult result;
  if (!is_suitable(problem)) return result;
  return with_rows(features, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    const std::int64_t* row_of = features.at();
    const bool grouped = problem.groups == 1;
    const std::int64_t distinct = is_repeated(row_of, n) ? n / 2 : n, columns = width + (options.constant != 0.0);
    std::vector<double> norms(n);
    loops.squared_norms(rows, row_of, 0, n, norms.data());
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < distinct; ++i) {
      if (!ordinary(norms[i])) return result;
      longest = std::max(longest, stored_in(rows, row_of ? row_of[i] : i));
    }
    RowCopy copy = copy_rows(rows, row_of, distinct, options.constant, options.compressed && !grouped);
    if (grouped) centre(copy.values, distinct, columns, width);
    const bool compressed = !copy.starts.empty();
    const SmallLinearProblem small{copy.values.data(),
                                   compressed ? copy.starts.data() : nullptr,
                                   compressed ? copy.features.data() : nullptr,
                                   distinct,
                                   columns,
                                   n,
                                   problem.linear.data(),
                                   problem.lower.data(),
                                   problem.upper.data(),
                                   problem.ridge.data(),
                                   grouped,
                                   options.relative_gap,
                                   options.gap,
                                   options.max_steps};
    std::vector<double> memory(level.linear->small_memory(small));
    std::vector<std::int64_t> indices(distinct);
    double *w = arrays.weights.data(), *b = arrays.dual.data();
    w[width] = 0.0;
    result.outcome = level.linear->solve_small(small, memory.data(), indices.data(), b, w);
    std::vector<double> dual_weights(width + 1, 0.0), decisions(n), product(n);
    loops.combine(rows, row_of, 0, n, b, dual_weights.data());
    for (std::int64_t k = 0; k < n; ++k) dual_weights[width] += options.constant * b[k];
    const auto decide = [&](const double* weights, std::vector<double>& out) {
      loops.decisions(rows, row_of, 0, n, weights, out.data());
      for (double& value : out) value += options.constant * weights[width];
    };
    decide(w, decisions);
    decide(dual_weights.data(), product);
    result.certificate =
        level.linear->certify({n, width, longest, small.linear, small.lower, small.upper, small.ridge, b, w,
                               dual_weights.data(), decisions.data(), product.data(), norms.data(), options.constant,
                               grouped, arrays.slack.data(), arrays.residual.data(), nullptr});
    return result;
  });
}

// ---- squared losses ---------------------------------------------------------------------------------------------

struct RidgedNewtonArguments : RidgedNewtonOptions {
  void check() const { require(max_steps >= 0 && threads >= 1, "there must be a thread, and a limit of steps"); }
};

// Solve a problem with a ridge everywhere and certify the solution. One that is not suitable is returned without steps.
SmallLinearResult solve_ridged(const DataRows& features, const BoxProblem& problem, const SmallLinearArrays& arrays,
                               Vector<const double> squared_norms, const RidgedNewtonArguments& options) {
  problem.require_objective();
  const std::int64_t n = problem.size(), width = features.width;
  require(features.count() == n && length(arrays.dual) == n && length(squared_norms) == n,
          "there must be a row for every variable");
  require(length(arrays.weights) == width + 1, "weights must include the constant feature");
  Memory().of(features, problem, arrays).reads("squared_norms", squared_norms).require_disjoint();
  if (!is_suitable(problem) || !(problem.ridge.data()[0] > 0.0)) return {};
  return with_rows(features, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    SmallLinearResult result;
    std::int64_t longest = 0;
    const std::int64_t *row_of = features.at(), distinct = is_repeated(row_of, n) ? n / 2 : n;
    for (std::int64_t i = 0; i < distinct; ++i) {
      if (!ordinary(squared_norms.data()[i])) return result;
      longest = std::max(longest, stored_in(rows, row_of ? row_of[i] : i));
    }
    const double *linear = problem.linear.data(), *lower = problem.lower.data(), *upper = problem.upper.data(),
                 *ridge = problem.ridge.data();
    const bool grouped = problem.groups == 1;
    double *w = arrays.weights.data(), *b = arrays.dual.data();
    RidgedNewton solver(rows, loops, *level.linear, {n, distinct, width, row_of, linear, lower, upper, ridge, grouped},
                        options, b, arrays.slack.data(), arrays.residual.data());
    result.outcome = solver.solve();
    std::copy(solver.weights().begin(), solver.weights().end(), w);
    auto [decisions, product] = solver.products();
    std::vector<double> of_variables(n > distinct ? 2 * n : 0);
    if (n > distinct) {
      double* out = of_variables.data();
      for (const double* of_rows : {decisions, decisions, product, product}) out = std::copy_n(of_rows, distinct, out);
      decisions = of_variables.data();
      product = decisions + n;
    }
    result.certificate = level.linear->certify(
        {n, width, longest, linear, lower, upper, ridge, b, w, solver.dual_weights().data(), decisions, product,
         squared_norms.data(), options.constant, grouped, arrays.slack.data(), arrays.residual.data(), nullptr});
    return result;
  });
}

// ---- dual coordinate ascent -------------------------------------------------------------------------------------

// Solve a problem without a group and certify the solution. One that is not suitable is returned without steps.
SmallLinearResult solve_small_by_ascent(const DataRows& features, const BoxProblem& problem,
                                        const SmallLinearArrays& arrays, Vector<const double> squared_norms,
                                        const SmallAscentOptions& options) {
  problem.require_objective();
  const std::int64_t n = problem.size();
  require(features.count() == n && length(arrays.dual) == n && length(squared_norms) == n,
          "there must be a row for every variable");
  require(length(arrays.weights) == features.width + 1, "weights must include the constant feature");
  Memory().of(features, problem, arrays).reads("squared_norms", squared_norms).require_disjoint();
  if (problem.groups || !is_suitable(problem)) return {};
  for (std::int64_t i = 0; i < n; ++i)
    if (!ordinary(squared_norms.data()[i])) return {};
  return with_rows(features, [&](auto rows, const auto& loops) {
    nb::gil_scoped_release unlocked;
    return SmallAscent(rows, loops, features, problem, arrays, squared_norms.data(), options).solve();
  });
}

// ---- the certificate of a given point ---------------------------------------------------------------------------

// The arrays of a certificate: the point, its products, and what is computed.
struct CertificateArrays {
  Vector<const double> dual, weights, dual_weights, decisions, product, squared_norms, offset;
  Vector<double> slack, residual;

  void check() const {
    require_length(length(dual), "the arrays must have one length", decisions, product, squared_norms, slack, residual);
    require(length(weights) == length(dual_weights) && length(weights) >= 1,
            "weights must include the constant feature");
    require(length(offset) <= 1, "there must be at most one offset");
  }

  void add_to(Memory& memory) const {
    memory.reads("dual", dual).reads("weights", weights).reads("dual_weights", dual_weights);
    memory.reads("decisions", decisions).reads("product", product).reads("squared_norms", squared_norms);
    memory.reads("offset", offset).writes("slack", slack).writes("residual", residual);
  }
};

// The certificate of weights and a dual vector within its bounds; without an offset for a group, that of least loss.
SmallLinearResult certify_linear(const BoxProblem& problem, const CertificateArrays& arrays, double constant,
                                 std::int64_t longest_row) {
  problem.require_objective();
  const std::int64_t n = problem.size();
  require(length(arrays.dual) == n && length(arrays.offset) <= problem.groups,
          "problem and point must have one length");
  Memory().of(problem, arrays).require_disjoint();
  nb::gil_scoped_release unlocked;
  SmallLinearResult result;
  result.certificate = level.linear->certify(
      {n, length(arrays.weights) - 1, longest_row, problem.linear.data(), problem.lower.data(), problem.upper.data(),
       problem.ridge.data(), arrays.dual.data(), arrays.weights.data(), arrays.dual_weights.data(),
       arrays.decisions.data(), arrays.product.data(), arrays.squared_norms.data(), constant, problem.groups == 1,
       arrays.slack.data(), arrays.residual.data(), length(arrays.offset) ? arrays.offset.data() : nullptr});
  return result;
}

}  // namespace

void define_small_linear(nb::module_& m) {
  define_arguments<SmallLinearOptions, double, double, double, std::int64_t, bool>(
      m, "SmallLinearOptions", nb::arg("constant"), nb::arg("relative_gap"), nb::arg("gap"), nb::arg("max_steps"),
      nb::arg("compressed"));
  define_arguments<SmallLinearArrays, Vector<double>, Vector<double>, Vector<double>, Vector<double>>(
      m, "SmallLinearArrays", exact("dual"), exact("weights"), exact("slack"), exact("residual"));
  define_arguments<SmallAscentOptions, double, double, double, double, std::int64_t>(
      m, "SmallAscentOptions", nb::arg("constant"), nb::arg("relative_gap"), nb::arg("gap"), nb::arg("max_remaining"),
      nb::arg("max_passes"));
  define_arguments<RidgedNewtonArguments, double, double, double, std::int64_t, double, int>(
      m, "RidgedNewtonOptions", nb::arg("constant"), nb::arg("relative_gap"), nb::arg("gap"), nb::arg("max_steps"),
      nb::arg("max_seconds"), nb::arg("threads"));
  nb::class_<SmallLinearResult>(m, "SmallLinearResult")
      .def_prop_ro("converged", [](const SmallLinearResult& r) { return r.outcome.converged; })
      .def_prop_ro("steps", [](const SmallLinearResult& r) { return r.outcome.steps; })
      .def_prop_ro("rounds", [](const SmallLinearResult& r) { return r.outcome.rounds; })
      .def_prop_ro("conclusive", [](const SmallLinearResult& r) { return r.certificate.conclusive; })
      .def_prop_ro("bounds",
                   [](const SmallLinearResult& r) {
                     const LinearCertificate& c = r.certificate;
                     return std::make_tuple(c.primal, c.dual, c.gap, c.rounding, c.violation, c.infeasibility,
                                            c.squared_norm);
                   })
      .def_prop_ro("offsets", [](const SmallLinearResult& r) {
        return std::make_tuple(r.certificate.offset, r.certificate.low, r.certificate.high);
      });
  define_arguments<CertificateArrays, Vector<const double>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>,
                   Vector<double>, Vector<double>>(
      m, "CertificateArrays", exact("dual"), exact("weights"), exact("dual_weights"), exact("decisions"),
      exact("product"), exact("squared_norms"), exact("offset"), exact("slack"), exact("residual"));
  m.def("certify_linear", &certify_linear, nb::arg("problem"), nb::arg("arrays"), nb::arg("constant"),
        nb::arg("longest_row"));
  m.def("solve_small_linear", &solve_small_linear, nb::arg("rows"), nb::arg("problem"), nb::arg("arrays"),
        nb::arg("options"));
  m.def("solve_ridged", &solve_ridged, nb::arg("rows"), nb::arg("problem"), nb::arg("arrays"), exact("squared_norms"),
        nb::arg("options"));
  m.def("solve_small_by_ascent", &solve_small_by_ascent, nb::arg("rows"), nb::arg("problem"), nb::arg("arrays"),
        exact("squared_norms"), nb::arg("options"));
}

}  // namespace maxmargin
