// What the arrays of a dual problem are like, found in one pass: whether they are valid, which bounds are finite, their
// magnitudes, and how far the totals of the groups are from the sums of the bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace maxmargin {

struct ProblemFacts {
  bool valid = true;      // all are numbers, ridges and kinks finite and at least 0, kinks within the box, groups known
  bool zero_fits = true;  // 0 is within all bounds
  bool bounded = true, coercive = true, ridged = true, kinked = false;
  std::int64_t ungrouped = 0;
  double largest_linear = 0.0;                            // of the linear term and the kinks
  double largest_bound = 0.0;                             // of the finite ones
  double least_ridge = 0.0, largest_ridge = 0.0;          // of the positive ones, 0 without
  double largest_total = 0.0;                             // infinite if one is not finite
  double room = std::numeric_limits<double>::infinity();  // the least difference of a total from a sum of bounds
};

inline ProblemFacts problem_facts(std::int64_t size, std::int32_t groups, const double* linear, const double* lower,
                                  const double* upper, const double* ridge, const double* kink,
                                  const std::int32_t* group, const double* total) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto magnitude = [](double x) { return std::fabs(x) < infinity ? std::fabs(x) : 0.0; };
  const auto raise = [](double& largest, double x) { largest = x > largest ? x : largest; };
  ProblemFacts f;
  std::vector<double> least(groups), most(groups);  // sums of bounds
  double least_of_first = 0.0, most_of_first = 0.0;
  for (std::int64_t k = 0; k < size; ++k) {
    const double low = lower[k], high = upper[k];
    const bool fits = low <= 0.0 && high >= 0.0, finite = std::fabs(low) < infinity && std::fabs(high) < infinity;
    f.valid &= std::fabs(linear[k]) < infinity && low == low && high == high;
    f.valid &= ridge[k] >= 0.0 && ridge[k] < infinity && kink[k] >= 0.0 && kink[k] < infinity;
    f.valid &= (kink[k] == 0.0 || fits) && group[k] >= -1 && group[k] < groups;
    f.zero_fits &= fits;
    f.bounded &= finite;
    f.coercive &= finite || ridge[k] > 0.0;
    f.ridged &= ridge[k] > 0.0;
    f.kinked |= kink[k] != 0.0;
    f.ungrouped += group[k] < 0;
    if (group[k] == 0) {  // the only group of most problems: sums in registers
      least_of_first += low;
      most_of_first += high;
    } else if (group[k] > 0 && group[k] < groups) {
      least[group[k]] += low;
      most[group[k]] += high;
    }
    raise(f.largest_linear, std::fabs(linear[k]));
    raise(f.largest_linear, kink[k]);
    raise(f.largest_bound, magnitude(low));
    raise(f.largest_bound, magnitude(high));
    raise(f.largest_ridge, ridge[k]);
    if (ridge[k] > 0.0 && (f.least_ridge == 0.0 || ridge[k] < f.least_ridge)) f.least_ridge = ridge[k];
  }
  if (groups > 0) {
    least[0] = least_of_first;
    most[0] = most_of_first;
  }
  for (std::int32_t g = 0; g < groups; ++g) {
    raise(f.largest_total, std::fabs(total[g]) < infinity ? std::fabs(total[g]) : infinity);
    for (const double distance : {total[g] - least[g], most[g] - total[g]})
      if (distance < f.room || distance != distance) f.room = distance;
  }
  return f;
}

}  // namespace maxmargin
