// Tests of pair steps: all instruction sets take the same steps, with a cache of two rows or with all rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

enum class Shape { plain, singular, unbounded };  // singular: duplicates and no ridge; unbounded: infinite bounds

// Solve a random classification problem with a cache of two rows, which are computed on demand and only as far as
// needed (the rest is NaN), with the last `shrunk` variables shrunk, and return the dual.
std::vector<double> solve(const SolverLoops& loops, std::int64_t n, Rule rule, int groups, bool keep_product,
                          Shape shape, std::int64_t shrunk, std::int64_t& steps) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> x(2 * n), matrix(n * n);
  std::vector<double> dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n), product(n, 0.0);
  std::vector<double> ridge(n, shape == Shape::singular ? 0.0 : 0.1);
  std::vector<std::int32_t> group(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double sign = i % 2 ? 1.0 : -1.0;
    x[2 * i] = normal(random) + 0.5 * sign;
    x[2 * i + 1] = normal(random);
    gradient[i] = sign;
    lower[i] = sign > 0 ? 0.0 : -1.0;
    upper[i] = sign > 0 ? 1.0 : 0.0;
    if (shape == Shape::unbounded) (sign > 0 ? upper[i] : lower[i]) *= HUGE_VAL;
    if (shape == Shape::singular && i >= 2) {  // duplicates of the two samples before, with both labels
      x[2 * i] = x[2 * i - 4 + 2 * (i % 4 < 2)];
      x[2 * i + 1] = x[2 * i - 3 + 2 * (i % 4 < 2)];
    }
    group[i] = groups == 0 ? -1 : groups == 1 ? 0 : static_cast<std::int32_t>((i / 2) % groups);
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const double a = x[2 * i] - x[2 * j], b = x[2 * i + 1] - x[2 * j + 1];
      matrix[i * n + j] = std::exp(-0.5 * (a * a + b * b));
    }
  for (std::int64_t i = 0; i < n; ++i) diagonal[i] = matrix[i * n + i] + ridge[i];

  std::vector<double> storage(2 * n);
  std::vector<std::int64_t> slot(n, -1), valid(2, 0), last_use(2, 0), owner(2, -1);
  DualState state{dual.data(),
                  gradient.data(),
                  lower.data(),
                  upper.data(),
                  diagonal.data(),
                  ridge.data(),
                  group.data(),
                  keep_product ? product.data() : nullptr,
                  n,
                  n - shrunk,
                  groups,
                  groups == 0 ? n : 0};
  RowCache<double> rows{storage.data(), n, slot.data(), valid.data(), last_use.data(), 0, 0};
  std::vector<GradientExtremes> extremes(groups + 1);
  SelectionMemory memory{rule, -1, -1, -1, -1, 0.0, extremes.data()};
  steps = 0;
  for (int round = 0; round < 1000000; ++round) {
    const Outcome out = loops.pairwise(state, rows, memory, 1e-6, 1000, 10.0);
    memory.pending_violation = out.violation;
    steps += out.steps;
    if (out.reason == StopReason::optimal) return dual;
    check(out.reason == StopReason::needs_row || out.reason == StopReason::paused, "the loop goes on");
    if (out.reason == StopReason::needs_row) {
      const int s = slot[out.row] >= 0 ? static_cast<int>(slot[out.row]) : last_use[0] <= last_use[1] ? 0 : 1;
      if (owner[s] >= 0) slot[owner[s]] = -1;
      for (std::int64_t k = 0; k < n; ++k) storage[s * n + k] = k < out.row_length ? matrix[out.row * n + k] : NAN;
      owner[s] = out.row;
      slot[out.row] = s;
      valid[s] = out.row_length;
      last_use[s] = ++rows.clock;
    }
  }
  check(false, "the loop ends");
  return dual;
}

void test_selection_rules() {
  for (std::int64_t n : {2, 3, 7, 8, 9, 16, 33, 64})
    for (int rule = 0; rule < 3; ++rule)
      for (int groups = 0; groups <= 3; ++groups) {
        if (groups > 1 && n < 4 * groups) continue;
        for (bool keep : {false, true})
          for (Shape shape : {Shape::plain, Shape::singular, Shape::unbounded})
            for (std::int64_t shrunk : {0, 1, 5}) {
              if (shrunk >= n) continue;
              std::vector<double> first;
              std::int64_t first_steps = 0, steps = 0;
              for (const Level& level : usable_levels()) {
                const auto dual = solve(*level.solvers, n, static_cast<Rule>(rule), groups, keep, shape, shrunk, steps);
                if (first.empty()) {
                  first = dual;
                  first_steps = steps;
                }
                check(steps == first_steps, "levels take the same steps");
                check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on the solution");
                for (double b : dual) check(std::isfinite(b), "NaN beyond the valid values has no effect");
              }
            }
      }
}

// A single variable with zero curvature and an infinite bound: the problem is reported as unbounded.
void test_unbounded_single() {
  for (const Level& level : usable_levels())
    for (int rule = 0; rule < 3; ++rule) {
      double dual[1] = {0.0}, gradient[1] = {1.0}, row[2] = {0.0, 0.0};
      const double lower[1] = {0.0}, upper[1] = {HUGE_VAL}, zero[1] = {0.0};
      const std::int32_t group[1] = {-1};
      const std::int64_t slot[1] = {0}, valid[2] = {1, 0};
      std::int64_t last_use[2] = {0, 0};
      DualState state{dual, gradient, lower, upper, zero, zero, group, nullptr, 1, 1, 0, 1};
      RowCache<double> rows{row, 1, slot, valid, last_use, 0, 0};
      GradientExtremes extremes[1];
      SelectionMemory memory{static_cast<Rule>(rule), -1, -1, -1, -1, 0.0, extremes};
      check(level.solvers->pairwise(state, rows, memory, 1e-3, 10, 1.0).reason == StopReason::unbounded,
            "an open flat box");
    }
}

// The optimality criterion of one group with a kink, from its definition.
double violation_of(const DualState& s, std::int32_t group) {
  double highest = -HUGE_VAL, lowest = HUGE_VAL;
  for (std::int64_t k = 0; k < s.size; ++k) {
    if (s.group[k] != group) continue;
    const double b = s.dual[k], g = s.gradient[k], kink = s.kink[k];
    if (b < s.upper[k]) highest = std::max(highest, b < 0.0 ? g + kink : g - kink);
    if (b > s.lower[k]) lowest = std::min(lowest, b > 0.0 ? g - kink : g + kink);
  }
  return highest - lowest;
}

// Fused steps on float32 rows, all of them cached, with one or two groups and with kinks: all levels end at the same
// optimal point.
void test_fused_pairwise(int groups, double kink) {
  for (std::int64_t n : {2, 3, 8, 17, 64, 129}) {
    std::vector<double> first;
    for (const Level& level : usable_levels()) {
      std::mt19937 random(7);
      std::normal_distribution<double> normal;
      std::vector<float> matrix(n * n), single_diagonal(n);
      std::vector<double> x(n), dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n, 1.1), ridge(n, 0.1),
          shifts(2 * n), kinks(n, kink);
      std::vector<std::int32_t> group(n, 0);
      GroupRuns runs;
      runs.count = groups;
      runs.start[0] = 0;
      runs.start[1] = groups == 1 ? n : n / 2;
      runs.start[2] = n;
      std::vector<std::int64_t> slot(n), valid(n, n), last_use(n, 0);
      for (std::int64_t i = 0; i < n; ++i) {
        const double sign = i % 2 ? 1.0 : -1.0;
        x[i] = normal(random) + 0.5 * sign;
        gradient[i] = sign;
        lower[i] = sign > 0 && kink == 0.0 ? 0.0 : -1.0;
        upper[i] = sign > 0 || kink > 0.0 ? 1.0 : 0.0;
        group[i] = i >= runs.start[1];
        slot[i] = i;
      }
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          matrix[i * n + j] = static_cast<float>(std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j])));
      DualState state{dual.data(),
                      gradient.data(),
                      lower.data(),
                      upper.data(),
                      diagonal.data(),
                      ridge.data(),
                      group.data(),
                      nullptr,
                      n,
                      n,
                      groups,
                      0,
                      kinks.data()};
      RowCache<float> rows{matrix.data(), n, slot.data(), valid.data(), last_use.data(), 0, 0};
      PassResult result;
      const Outcome out = level.solvers->fused_pairwise(state, rows, runs, shifts.data(), single_diagonal.data(),
                                                        {1, n, &result, nullptr}, 1e-6, 100000, 10.0);
      check(out.reason == StopReason::optimal && out.violation <= 1e-6, "steps on single-precision rows end");
      for (std::int32_t g = 0; g < groups; ++g) check(violation_of(state, g) <= 1e-6, "every group is optimal");
      for (std::int64_t i = 0; i < n; ++i) {
        double fresh = (i % 2 ? 1.0 : -1.0) - 0.1 * dual[i];
        for (std::int64_t j = 0; j < n; ++j) fresh -= static_cast<double>(matrix[i * n + j]) * dual[j];
        check(std::fabs(fresh - gradient[i]) < 1e-9, "the gradient is kept");
      }
      if (first.empty()) first = dual;
      check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on single-precision rows");
    }
  }
}

}  // namespace

void test_pairwise() {
  test_selection_rules();
  for (int groups : {1, 2})
    for (double kink : {0.0, 0.3}) test_fused_pairwise(groups, kink);
  test_unbounded_single();
}
