// Runs every native loop with every instruction set of this processor, under the address and undefined-behaviour
// sanitisers, on sizes around the widths of vectors and panels. Kernel values are compared with a direct formula, steps
// of the solvers between the instruction sets bit for bit.
#include <cstdio>

#include "check.hpp"
#include "instruction_sets.hpp"

int main() {
  test_parallel();
  test_kernel_blocks();
  test_pairwise();
  test_free_variables();
  test_selection();
  test_linear_models();
  test_ridged_newton();
  test_passes();
  test_online();
  test_extended();
  for (const maxmargin::Level& level : maxmargin::usable_levels()) std::printf("level %s passed\n", level.name);
  return 0;
}
