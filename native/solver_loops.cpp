// The dual solvers for the instruction set MAXMARGIN_LEVEL, without fused multiply-add.
#include "solver_loops.hpp"

#include "active_set.hpp"
#include "fold_path.hpp"
#include "fused_pairwise.hpp"
#include "online_steps.hpp"
#include "pairwise.hpp"
#include "removal_path.hpp"
#include "small_problem.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

static Outcome fused_pairwise(DualState& s, RowCache<float>& rows, const GroupRuns& runs, double* shifts,
                              float* diagonal, const DividedPasses& division, double tolerance, std::int64_t max_steps,
                              double max_seconds) {
  return run_fused_pairwise(s, rows, runs, {shifts, shifts + s.active, diagonal}, division, tolerance, max_steps,
                            max_seconds);
}

static Outcome small_problem(DualState& s, const SmallProblem& problem, const SmallWorkspace& workspace,
                             double tolerance, std::int64_t max_steps, GradientExtremes* extremes) {
  return SmallProblemSolver(problem, workspace, s, extremes).solve(tolerance, max_steps);
}

static FoldOutcome solve_fold(const FoldPath& path, const FoldWorkspace& workspace, DualState& s, double tolerance,
                              std::int64_t max_steps) {
  return FoldPathSolver(path, workspace, s).solve(tolerance, max_steps);
}

static RemovalOutcome remove_sample(const RemovalTable& table, const RemovalWorkspace& workspace,
                                    const Removal& removal, RemovalGoal goal, double* changes, double* slacks) {
  RemovalPath path(table, workspace);
  const RemovalOutcome out = path.follow(removal, goal);
  if (changes) path.write(changes, slacks);
  return out;
}

static double solve_free(const FreeVariables& variables, double* doubles, std::int64_t* indices) {
  return ActiveSetMethod(variables, doubles, indices).solve();
}

extern const SolverLoops solvers;
const SolverLoops solvers = {run_pairwise<RowCache<double>>,
                             run_pairwise<RowCache<float>>,
                             fused_pairwise,
                             small_problem,
                             solve_fold,
                             remove_sample,
                             find_violations,
                             find_selectable,
                             solve_free,
                             run_online<double>,
                             run_online<float>};

}  // namespace maxmargin::MAXMARGIN_LEVEL
