// Votes of all pairs of classes, from the kernel values of a sample with the support vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace maxmargin {

// Support vectors sorted by class, `edges` between the classes; `columns` has for each support vector its coefficient
// in the model of its class and every other class, in the order of those. A pair a < b has the offset
// offsets[place(a) + b − a − 1].
struct OneVsOneModels {
  const double *columns, *offsets;
  const std::int64_t* edges;
  std::int64_t classes;

  std::int64_t place(std::int64_t a) const { return a * (classes - 1) - a * (a - 1) / 2; }
};

// The decision values of all pairs for one sample: offset + first class + second class. `sums` has room for one class.
inline void decide_pairs(const OneVsOneModels& models, const double* kernel, double* sums, double* decisions) {
  const std::int64_t others = models.classes - 1;
  std::copy_n(models.offsets, models.classes * others / 2, decisions);
  for (std::int64_t c = 0; c < models.classes; ++c) {
    std::fill_n(sums, others, 0.0);
    for (std::int64_t i = models.edges[c]; i < models.edges[c + 1]; ++i) {
      const double value = kernel[i];
      const double* column = models.columns + i * others;
      for (std::int64_t k = 0; k < others; ++k) sums[k] += value * column[k];
    }
    for (std::int64_t a = 0; a < c; ++a) decisions[models.place(a) + c - a - 1] += sums[a];
    double* own = decisions + models.place(c);
    for (std::int64_t k = c; k < others; ++k) own[k - c] += sums[k];
  }
}

// Count the votes of all pairs, a value of 0 being one for the first class if `zero_is_first`; add up the decision
// values of each class, limited to ±limit. Returns whether all values are finite.
inline bool count_votes(const double* decisions, std::int64_t classes, bool zero_is_first, double limit, double* votes,
                        double* confidence) {
  bool finite = true;
  std::fill_n(votes, classes, 0.0);
  std::fill_n(confidence, classes, 0.0);
  for (std::int64_t a = 0; a < classes; ++a)
    for (std::int64_t b = a + 1; b < classes; ++b) {
      const double value = *decisions++;
      finite = finite && std::isfinite(value);
      const double limited = std::min(std::max(value, -limit), limit);
      const bool first = zero_is_first ? value >= 0.0 : value > 0.0;
      votes[first ? a : b] += 1.0;
      confidence[a] += limited;
      confidence[b] -= limited;
    }
  return finite;
}

}  // namespace maxmargin
