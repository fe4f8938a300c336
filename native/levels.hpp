// The instruction sets that this processor and operating system have.
#pragma once

#include <vector>

#include "loops.hpp"

namespace maxmargin {

struct Level {
  const char* name;
  const KernelLoops* kernels;
  const SolverLoops* solvers;
  const LinearLoops* linear;
};

// The instruction sets that this processor and operating system have, narrowest first.
inline std::vector<Level> usable_levels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::vector<Level> found = {{"v2", &v2::kernels, &v2::solvers, &v2::linear}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    found.push_back({"v3", &v3::kernels, &v3::solvers, &v3::linear});
  if (found.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
    found.push_back({"v4", &v4::kernels, &v4::solvers, &v4::linear});
  return found;
#else
  return {{"plain", &plain::kernels, &plain::solvers, &plain::linear}};
#endif
}

}  // namespace maxmargin
