// The instruction sets that the loops are compiled for, and those that this processor has.
//
// The same sources are compiled for the x86-64 microarchitecture levels v2, v3 and v4 ("plain" elsewhere), each inside
// a namespace of its own, so that the linker cannot replace code of one level by that of another. Builds for the thread
// sanitiser have the narrowest level only (MAXMARGIN_NARROWEST_LEVEL), portable ones "plain" (MAXMARGIN_PORTABLE).
#pragma once

#include <vector>

#include "extended_loops.hpp"
#include "kernel_loops.hpp"
#include "linear_loops.hpp"
#include "solver_loops.hpp"

#define MAXMARGIN_DECLARE_LEVEL(name)  \
  namespace name {                     \
  extern const KernelLoops kernels;    \
  extern const SolverLoops solvers;    \
  extern const LinearLoops linear;     \
  extern const ExtendedLoops extended; \
  }

namespace maxmargin {

#if defined(__x86_64__) && !defined(MAXMARGIN_PORTABLE)
MAXMARGIN_DECLARE_LEVEL(v2)
MAXMARGIN_DECLARE_LEVEL(v3)
MAXMARGIN_DECLARE_LEVEL(v4)
#else
MAXMARGIN_DECLARE_LEVEL(plain)
#endif

struct Level {
  const char* name;
  const KernelLoops* kernels;
  const SolverLoops* solvers;
  const LinearLoops* linear;
  const ExtendedLoops* extended;
};

// The levels that this processor and operating system support, narrowest first.
inline std::vector<Level> usable_levels() {
#if defined(__x86_64__) && !defined(MAXMARGIN_PORTABLE)
  __builtin_cpu_init();
  std::vector<Level> found = {{"v2", &v2::kernels, &v2::solvers, &v2::linear, &v2::extended}};
#if !defined(MAXMARGIN_NARROWEST_LEVEL)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    found.push_back({"v3", &v3::kernels, &v3::solvers, &v3::linear, &v3::extended});
  if (found.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    found.push_back({"v4", &v4::kernels, &v4::solvers, &v4::linear, &v4::extended});
#endif
  return found;
#else
  return {{"plain", &plain::kernels, &plain::solvers, &plain::linear, &plain::extended}};
#endif
}

}  // namespace maxmargin
