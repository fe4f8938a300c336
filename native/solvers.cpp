// Compiled once per instruction set, never with fused multiply-add; MAXMARGIN_LEVEL names the namespace.
#include "loops.hpp"
#include "one_group.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

static Outcome one_group(DualState& s, RowStore<float>& rows, float* room, double tolerance, std::int64_t max_steps, double max_seconds) {
  return run_one_group(s, rows, Directions{room, room + s.active, room + 2 * s.active}, tolerance, max_steps, max_seconds);
}

extern const SolverLoops solvers;
const SolverLoops solvers = {run_pairwise<double>, run_pairwise<float>, one_group};

}  // namespace maxmargin::MAXMARGIN_LEVEL
