// Compiled once per instruction set, never with fused multiply-add; MAXMARGIN_LEVEL names the namespace.
#include "free_equations.hpp"
#include "loops.hpp"
#include "one_group.hpp"
#include "online_steps.hpp"
#include "pairwise.hpp"
#include "whole_problem.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

static Outcome one_group(DualState& s, RowStore<float>& rows, double* room, float* bend, double tolerance,
                         std::int64_t max_steps, double max_seconds) {
  return run_one_group(s, rows, Directions{room, room + s.active, bend}, tolerance, max_steps, max_seconds);
}

static Outcome whole_problem(DualState& s, const WholeTask& task, double tolerance, std::int64_t max_steps) {
  const std::int64_t m = task.most_free;
  double* vectors = task.equations + 2 * m * m;
  const EquationRoom room{task.equations,  task.equations + m * m, vectors,         vectors + m,     vectors + 2 * m,
                          vectors + 3 * m, vectors + 4 * m,        vectors + 5 * m, vectors + 6 * m, task.places,
                          task.places + m, task.places + 2 * m};
  return WholeProblem(task, s, room).solve(tolerance, max_steps, m);
}

static double solve_free_variables(const FreeTask& task) { return FreeEquations(task).solve(); }

extern const SolverLoops solvers;
const SolverLoops solvers = {run_pairwise<double>, run_pairwise<float>, one_group,
                             whole_problem,        find_violations,     find_selectable,
                             solve_free_variables, run_online<double>,  run_online<float>};

}  // namespace maxmargin::MAXMARGIN_LEVEL
