// Bindings of the pair steps, of the optimality criterion and of the free variables.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "bindings.hpp"
#include "problem_facts.hpp"
#include "thread_team.hpp"

namespace maxmargin {
namespace {

// The arrays of pair steps in working order; the first `active` positions take part.
struct PairwiseState {
  Vector<double> dual, gradient;
  Vector<const double> diagonal;  // M_ii + ridge_i
  std::int64_t active;
  Vector<double> bounded_product;  // M b of the variables at a bound other than 0; absent or empty: not kept

  void check() const {
    require_length(length(dual), "the arrays of a dual state must have one length", gradient, diagonal);
    require(!given(bounded_product) || length(bounded_product) == length(dual), "bounded_product has the wrong length");
    require(active >= 0 && active <= length(dual), "active is out of range");
  }

  void add_to(Memory& memory) const {
    memory.writes("dual", dual).writes("gradient", gradient).writes("bounded_product", bounded_product);
    memory.reads("diagonal", diagonal);
  }
};

// The selection rule, and what it knows from the steps before.
struct PairSelection {
  int rule;
  Vector<std::int64_t> memory;  // the previous pair and the pending pair, −1 for none
  double violation;             // that the pending pair was chosen for

  void check() const {
    require(rule >= 0 && rule <= 2, "unknown working-set rule");
    require(length(memory) == 4, "memory must hold the previous pair and the pending pair");
  }

  void add_to(Memory& arrays) const { arrays.writes("memory", memory); }
};

struct PairwiseResult {
  int reason;  // a number of StopReason
  std::int64_t steps;
  std::int64_t row, row_length;  // with needs_row: which row, and how many of its leading values
  double violation, gain;
  std::int64_t clock, requests;  // of the row cache
};

// The shortest rows whose passes are divided among threads, and the fewest positions of a thread: a pass over them
// takes some tenths of a microsecond, as long as the threads need to agree. Whether they gain is measured.
constexpr std::int64_t kMinDividedRow = 2048, kMinDividedLength = 512;

template <class Value>
Outcome run_pairwise(DualState& state, RowCache<Value>& rows, SelectionMemory& memory, const StepLimits& limits) {
  if constexpr (sizeof(Value) == 4) {
    GroupRuns runs;
    if (memory.rule == Rule::second_order && !state.bounded_product && runs.find(state)) {
      std::vector<double> shifts(2 * state.size);
      std::vector<float> diagonal(state.size);
      const std::int64_t chunks =
          state.active < kMinDividedRow ? 1 : std::min<std::int64_t>(limits.threads, state.active / kMinDividedLength);
      std::vector<PassResult> results(chunks);
      Outcome out;
      const auto steps = [&](const ChunkRunner* runner) {
        const DividedPasses division{chunks, (state.active + chunks - 1) / chunks, results.data(), runner};
        out = level.solvers->fused_pairwise(state, rows, runs, shifts.data(), diagonal.data(), division,
                                            limits.tolerance, limits.max_steps, limits.max_seconds);
      };
      if (chunks > 1)
        ThreadTeam::with(static_cast<int>(chunks), [&](const ChunkRunner& runner) { steps(&runner); });
      else
        steps(nullptr);
      return out;
    }
    return level.solvers->pairwise_single(state, rows, memory, limits.tolerance, limits.max_steps, limits.max_seconds);
  } else {
    return level.solvers->pairwise(state, rows, memory, limits.tolerance, limits.max_steps, limits.max_seconds);
  }
}

// Move variables to their bounds, in the given order, until their sum has changed by `missing`; the last one may stop
// before. False, and nothing moves, if one of the bounds is infinite.
bool move_to_bounds(Vector<const std::int64_t> order, Vector<const double> bounds, Vector<double> dual,
                    double missing) {
  require(length(bounds) == length(dual), "the arrays of a problem must have one length");
  require_within(order, length(dual));
  Memory().reads("order", order).reads("bounds", bounds).writes("dual", dual).require_disjoint();
  double* b = dual.data();
  for (std::int64_t k = 0; k < length(order); ++k)
    if (std::isinf(bounds.data()[order.data()[k]])) return false;
  double moved = 0.0;
  for (std::int64_t k = 0; k < length(order); ++k) {
    const std::int64_t i = order.data()[k];
    const double bound = bounds.data()[i], after = moved + std::fabs(bound - b[i]);
    if (after > std::fabs(missing)) {
      const double value = b[i] + std::copysign(std::fabs(missing) - moved, missing);
      b[i] = missing > 0.0 ? std::fmin(value, bound) : std::fmax(value, bound);
      break;
    }
    b[i] = bound;
    moved = after;
  }
  return true;
}

// The fields of ProblemFacts in their order.
nb::tuple facts_of(Vector<const double> linear, Vector<const double> lower, Vector<const double> upper,
                   Vector<const double> ridge, Vector<const double> kink, Vector<const std::int32_t> group,
                   Vector<const double> total) {
  const std::int64_t n = length(linear);
  require_length(n, "the arrays of a problem must have one length", lower, upper, ridge, kink, group);
  const ProblemFacts f = problem_facts(n, static_cast<std::int32_t>(length(total)), linear.data(), lower.data(),
                                       upper.data(), ridge.data(), kink.data(), group.data(), total.data());
  return nb::make_tuple(f.valid, f.zero_fits, f.bounded, f.coercive, f.ridged, f.kinked, f.ungrouped, f.largest_linear,
                        f.largest_bound, f.least_ridge, f.largest_ridge, f.largest_total, f.room);
}

// Sequential minimal optimisation until the violation is within the tolerance, a row is missing, or a limit is reached.
PairwiseResult pairwise_steps(const BoxProblem& problem, const PairwiseState& arrays, const CachedRows& cache,
                              const PairSelection& selection, const StepLimits& limits) {
  const std::int64_t n = length(arrays.dual), groups = problem.groups;
  require(problem.size() == n && length(cache.slot) == n, "problem, state and row cache must have one length");
  require(problem.ridge.is_valid() && cache.valid.is_valid(), "ridge and the valid lengths of rows must be given");
  const std::int64_t singles = problem.count_singles();
  cache.check_slots();
  Memory().of(problem, arrays, cache, selection).require_disjoint();
  std::int64_t* m = selection.memory.data();
  for (int k = 0; k < 4; ++k)
    require(m[k] >= -1 && m[k] < arrays.active, "memory contains a position that is not active");
  DualState state{arrays.dual.data(),
                  arrays.gradient.data(),
                  problem.lower.data(),
                  problem.upper.data(),
                  arrays.diagonal.data(),
                  problem.ridge.data(),
                  problem.group.data(),
                  given(arrays.bounded_product) ? arrays.bounded_product.data() : nullptr,
                  n,
                  arrays.active,
                  problem.groups,
                  singles,
                  problem.kink_data()};
  const auto run = [&](auto value) -> PairwiseResult {
    using Value = decltype(value);
    RowCache<Value> rows{as<Value>(cache.storage),
                         length(cache.storage, 1),
                         cache.slot.data(),
                         cache.valid.data(),
                         cache.last_use.data(),
                         cache.clock,
                         0};
    nb::gil_scoped_release unlocked;
    std::vector<GradientExtremes> extremes(groups + 1);
    SelectionMemory memory{
        static_cast<Rule>(selection.rule), m[0], m[1], m[2], m[3], selection.violation, extremes.data()};
    const Outcome out = run_pairwise(state, rows, memory, limits);
    m[0] = memory.previous_up;
    m[1] = memory.previous_down;
    m[2] = memory.pending_up;
    m[3] = memory.pending_down;
    return {static_cast<int>(out.reason),
            out.steps,
            out.row,
            out.row_length,
            out.violation,
            out.gain,
            rows.clock,
            rows.requests};
  };
  return has_type<float>(cache.storage.dtype()) ? run(float{}) : run(double{});
}

// What the optimality criterion needs: no diagonal, no rows. The arrays are only read.
DualState criterion_of(const BoxProblem& problem, const Vector<const double>& dual,
                       const Vector<const double>& gradient) {
  const std::int64_t n = problem.size();
  require_length(n, "problem and dual state must have one length", dual, gradient);
  const std::int64_t singles = problem.count_singles();
  return DualState{const_cast<double*>(dual.data()),
                   const_cast<double*>(gradient.data()),
                   problem.lower.data(),
                   problem.upper.data(),
                   nullptr,
                   nullptr,
                   problem.group.data(),
                   nullptr,
                   n,
                   n,
                   problem.groups,
                   singles,
                   problem.kink_data()};
}

// By how much each variable violates optimality when it increases and when it decreases.
void kkt_violations(const BoxProblem& problem, Vector<const double> dual, Vector<const double> gradient,
                    Vector<double> increasing, Vector<double> decreasing) {
  const DualState state = criterion_of(problem, dual, gradient);
  require_length(problem.size(), "the output has the wrong length", increasing, decreasing);
  Memory()
      .of(problem)
      .reads("dual", dual)
      .reads("gradient", gradient)
      .writes("increasing", increasing)
      .writes("decreasing", decreasing)
      .require_disjoint();
  std::vector<GradientExtremes> extremes(problem.groups + 1);
  level.solvers->violations(state, extremes.data(), increasing.data(), decreasing.data());
}

// Which variables shrinking keeps: those that a selection rule may still choose.
void can_be_selected(const BoxProblem& problem, Vector<const double> dual, Vector<const double> gradient,
                     Vector<bool> keep) {
  const DualState state = criterion_of(problem, dual, gradient);
  require_length(problem.size(), "the output has the wrong length", keep);
  Memory().of(problem).reads("dual", dual).reads("gradient", gradient).writes("keep", keep).require_disjoint();
  std::vector<GradientExtremes> extremes(problem.groups + 1);
  level.solvers->selectable(state, extremes.data(), keep.data());
}

// Solve the KKT equations of free variables within their bounds; see active_set.hpp. `block` is the matrix between
// them with the ridge. Returns the number of multiplications.
double solve_free_variables(Table<const double> block, const BoxProblem& problem, Vector<double> dual,
                            Vector<double> gradient, double accuracy, double max_work, double max_seconds) {
  const std::int64_t n = length(dual);
  require(length(block) == n && length(block, 1) == n && problem.size() == n && length(gradient) == n,
          "the arrays of the free variables must have one length");
  problem.count_singles();
  Memory().of(problem).reads("block", block).writes("dual", dual).writes("gradient", gradient).require_disjoint();
  nb::gil_scoped_release unlocked;
  std::unique_ptr<double[]> doubles(new double[n * n + 3 * n]);  // not initialised: only a part may be needed
  std::vector<std::int64_t> indices(2 * n + problem.groups);
  const FreeVariables variables{
      block.data(),         n,           problem.group.data(), problem.groups, problem.lower.data(),
      problem.upper.data(), dual.data(), gradient.data(),      accuracy,       max_work,
      max_seconds};
  return level.solvers->solve_free(variables, doubles.get(), indices.data());
}

}  // namespace

void define_solvers(nb::module_& m) {
  m.def("move_to_bounds", &move_to_bounds, exact("order"), exact("bounds"), exact("dual"), nb::arg("missing"));
  m.def("problem_facts", &facts_of, exact("linear"), exact("lower"), exact("upper"), exact("ridge"), exact("kink"),
        exact("group"), exact("total"));
  define_arguments<PairwiseState, Vector<double>, Vector<double>, Vector<const double>, std::int64_t, Vector<double>>(
      m, "PairwiseState", exact("dual"), exact("gradient"), exact("diagonal"), nb::arg("active"),
      optional("bounded_product"));
  define_arguments<PairSelection, int, Vector<std::int64_t>, double>(m, "PairSelection", nb::arg("rule"),
                                                                     exact("memory"), nb::arg("violation"));
  nb::class_<PairwiseResult>(m, "PairwiseResult")
      .def_ro("reason", &PairwiseResult::reason)
      .def_ro("steps", &PairwiseResult::steps)
      .def_ro("row", &PairwiseResult::row)
      .def_ro("row_length", &PairwiseResult::row_length)
      .def_ro("violation", &PairwiseResult::violation)
      .def_ro("gain", &PairwiseResult::gain)
      .def_ro("clock", &PairwiseResult::clock)
      .def_ro("requests", &PairwiseResult::requests);
  m.def("pairwise_steps", &pairwise_steps, nb::arg("problem"), nb::arg("state"), nb::arg("rows"), nb::arg("selection"),
        nb::arg("limits"));
  m.def("kkt_violations", &kkt_violations, nb::arg("problem"), exact("dual"), exact("gradient"), exact("increasing"),
        exact("decreasing"));
  m.def("can_be_selected", &can_be_selected, nb::arg("problem"), exact("dual"), exact("gradient"), exact("keep"));
  m.def("solve_free_variables", &solve_free_variables, exact("block"), nb::arg("problem"), exact("dual"),
        exact("gradient"), nb::arg("accuracy"), nb::arg("max_work"),
        nb::arg("max_seconds") = std::numeric_limits<double>::infinity());
}

}  // namespace maxmargin
