// Compiled once per instruction set, never with fused multiply-add; MAXMARGIN_LEVEL names the namespace.
#include "loops.hpp"
#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

extern const SolverLoops solvers;
const SolverLoops solvers = {run_pairwise<double>, run_pairwise<float>};

}  // namespace maxmargin::MAXMARGIN_LEVEL
