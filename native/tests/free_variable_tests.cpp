// Tests of the active-set method, and of the small problems that end with it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

// Free variables of points on a line, whose matrix is singular up to rounding: all levels end at the same point, to the
// last bit; the objective has increased, sums are kept, and variables that are still free have the gradient of their
// group.
void test_active_set() {
  for (std::int64_t n : {1, 2, 3, 8, 17, 64, 129})
    for (int groups : {0, 1, 3})
      for (double size : {0.1, 10.0, 1e4}) {
        std::vector<double> first;
        for (const Level& level : usable_levels()) {
          std::mt19937 random(7);
          std::normal_distribution<double> normal;
          std::vector<double> x(n), block(n * n), lower(n, -size), upper(n, size), dual(n, 0.0), gradient(n), before(n),
              doubles(n * n + 3 * n);
          std::vector<std::int32_t> group(n);
          std::vector<std::int64_t> indices(2 * n + groups);
          for (std::int64_t i = 0; i < n; ++i) {
            x[i] = normal(random);
            gradient[i] = before[i] = i % 2 ? 1.0 : -1.0;
            group[i] = static_cast<std::int32_t>(i % (groups + 1)) - (groups == 1 ? i % 2 : 1);
          }
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) block[i * n + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j]));
          const FreeVariables variables{block.data(), n,           group.data(),    groups, lower.data(),
                                        upper.data(), dual.data(), gradient.data(), 1e-11,  1e9};
          level.solvers->solve_free(variables, doubles.data(), indices.data());
          std::vector<double> sums(groups, 0.0), mean(groups, 0.0), counts(groups, 0.0);
          double gain = 0.0;
          for (std::int64_t i = 0; i < n; ++i) {
            gain += dual[i] * (before[i] + gradient[i]);
            check(std::fabs(dual[i]) <= size, "free variables stay in the box");
            if (group[i] < 0) {
              check(std::fabs(dual[i]) == size || std::fabs(gradient[i]) < 1e-6,
                    "the KKT system of variables in no group is solved");
              continue;
            }
            sums[group[i]] += dual[i];
            if (std::fabs(dual[i]) == size) continue;
            mean[group[i]] += gradient[i];
            counts[group[i]] += 1.0;
          }
          check(n == 1 || gain > 0.0 || (groups && n <= groups + 1), "the objective increases");
          for (int g = 0; g < groups; ++g) check(std::fabs(sums[g]) < 1e-11 * (1.0 + size), "a group keeps its sum");
          for (std::int64_t i = 0; i < n; ++i)
            if (group[i] >= 0 && std::fabs(dual[i]) < size)
              check(std::fabs(gradient[i] - mean[group[i]] / counts[group[i]]) < 1e-6,
                    "the KKT system of a group is solved");
          if (first.empty()) first = dual;
          check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on free variables");
        }
      }
}

// Small problems on every third row of a larger matrix or on all rows, without groups, with one, two that are runs and
// two that are mixed, with and without kinks: all levels end at the same point, to the last bit, and the gradient is
// that of a direct sum.
void test_small_problems() {
  for (std::int64_t n : {2, 3, 8, 17, 64, 129})
    for (bool indexed : {false, true})
      for (int layout : {0, 1, 2, 3, 4})
        for (std::int64_t max_free : {std::int64_t{0}, std::int64_t{5}, n}) {
          const int groups = layout == 4 ? 1 : std::min(layout, 2);
          const double tube = layout == 4 ? 0.2 : 0.0;
          std::vector<double> first;
          for (const Level& level : usable_levels()) {
            std::mt19937 random(7);
            std::normal_distribution<double> normal;
            const std::int64_t stride = indexed ? 3 * n : n, m = max_free;
            std::vector<double> x(stride), matrix(stride * stride), linear(n), dual(n, 0.0), gradient(n), lower(n),
                upper(n);
            std::vector<double> diagonal(n, 1.0), ridge(n, 0.0), copies(n * n), before(n), doubles(2 * m * m + 7 * m),
                shifts(2 * n), row_diagonal(n), kink(n, tube);
            std::vector<std::int32_t> group(n, groups - 1), free_groups(m);
            std::vector<std::int64_t> indices(n), slot(n), free_indices(3 * m + 2);
            for (std::int64_t i = 0; i < stride; ++i) x[i] = normal(random) + (i % 2 ? 0.5 : -0.5);
            for (std::int64_t i = 0; i < stride; ++i)
              for (std::int64_t j = 0; j < stride; ++j)
                matrix[i * stride + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j]));
            for (std::int64_t i = 0; i < n; ++i) {
              indices[i] = indexed ? 3 * i : i;
              linear[i] = i % 2 ? 1.0 : -1.0;
              lower[i] = i % 2 && layout < 4 ? 0.0 : -10.0;
              upper[i] = i % 2 || layout == 4 ? 10.0 : 0.0;
              if (layout == 2) group[i] = i >= n / 2;
              if (layout == 3) group[i] = i % 3 == 0;
            }
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
                            groups ? 0 : n,
                            tube > 0.0 ? kink.data() : nullptr};
            const SmallProblem problem{matrix.data(), stride, indices.data(), linear.data(), m};
            const SmallWorkspace workspace{indexed ? copies.data() : nullptr,
                                           n * n,
                                           slot.data(),
                                           before.data(),
                                           shifts.data(),
                                           row_diagonal.data(),
                                           doubles.data(),
                                           free_indices.data(),
                                           free_groups.data(),
                                           {}};
            GradientExtremes extremes[3];
            const Outcome out = level.solvers->small_problem(state, problem, workspace, 1e-3, 100000, extremes);
            check(out.reason == StopReason::optimal && out.violation <= 1e-3, "a small problem is solved");
            for (int g = 0; g < groups; ++g)
              check(!(extremes[g].highest - extremes[g].lowest > 1e-3), "every group is optimal");
            for (std::int64_t i = 0; i < n; ++i) {
              double direct = linear[i];
              for (std::int64_t j = 0; j < n; ++j) direct -= matrix[indices[i] * stride + indices[j]] * dual[j];
              check(std::fabs(direct - gradient[i]) < 1e-10, "the gradient of a small problem");
            }
            if (first.empty()) first = dual;
            check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on a small problem");
          }
        }
}

// Rows in panels of 16 columns of a matrix.
struct PanelRows {
  std::vector<double> matrix;
  std::int64_t stride;

  static void fill(const void* context, std::int64_t row, std::int64_t first, std::int64_t last, double* out) {
    const PanelRows& self = *static_cast<const PanelRows*>(context);
    const double* from = self.matrix.data() + row * self.stride;
    std::copy(from + 16 * first, from + 16 * last, out);
  }
};

// Problems on two runs of computed rows, large enough to shrink, with memory for all rows, for some and for few: all
// levels end at the same point, to the last bit, and a finished one has the gradient of a direct sum.
void test_computed_rows() {
  constexpr std::int64_t first_run = 150, gap = 23, stride = 480, m = 64;
  for (std::int64_t n : {2, 100, 300, 440})
    for (std::int64_t values : {n * (n + 64) * 2, n * 130, n * 20}) {
      std::vector<double> first;
      for (const Level& level : usable_levels()) {
        std::mt19937 random(7);
        std::normal_distribution<double> normal;
        std::vector<double> x(stride), linear(n), dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n, 1.0),
            ridge(n, 0.0), copies(values), before(n), doubles(2 * m * m + 7 * m), shifts(2 * n), row_diagonal(n),
            shrunk(10 * n);
        std::vector<std::int32_t> group(n, 0), free_groups(m), shrunk_group(n);
        std::vector<std::int64_t> indices(n), slot(n), free_indices(3 * m + 2), shrunk_indices(3 * n);
        const std::unique_ptr<bool[]> keep(new bool[n]);
        PanelRows rows{std::vector<double>(stride * stride), stride};
        for (std::int64_t i = 0; i < n; ++i) {
          indices[i] = i < first_run ? i : i + gap;
          linear[i] = i % 2 ? 1.0 : -1.0;
          lower[i] = i % 2 ? 0.0 : -2.0;
          upper[i] = i % 2 ? 2.0 : 0.0;
          x[indices[i]] = normal(random) + linear[i];
        }
        for (std::int64_t i = 0; i < stride; ++i)
          for (std::int64_t j = 0; j < stride; ++j)
            rows.matrix[i * stride + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j]));
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
                        1,
                        0};
        const RowSource source{PanelRows::fill, &rows, 16, n};
        const SmallProblem problem{nullptr, 0, indices.data(), linear.data(), m, &source};
        const SmallWorkspace workspace{
            copies.data(),      values,
            slot.data(),        before.data(),
            shifts.data(),      row_diagonal.data(),
            doubles.data(),     free_indices.data(),
            free_groups.data(), {shrunk.data(), shrunk_indices.data(), shrunk_group.data(), keep.get()}};
        GradientExtremes extremes[3];
        const Outcome out = level.solvers->small_problem(state, problem, workspace, 1e-3, 100000, extremes);
        check(out.row_length <= n && (out.reason == StopReason::optimal || out.reason == StopReason::needs_row),
              "a problem on computed rows is solved, or lacks rows");
        check(out.reason == StopReason::optimal || values < n * n, "memory for all rows suffices");
        for (std::int64_t i = 0; i < n && out.reason == StopReason::optimal; ++i) {
          double direct = linear[i];
          for (std::int64_t j = 0; j < n; ++j) direct -= rows.matrix[indices[i] * stride + indices[j]] * dual[j];
          check(std::fabs(direct - gradient[i]) < 1e-10, "the gradient of a problem on computed rows");
        }
        if (first.empty()) first = dual;
        check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on computed rows");
      }
    }
}

}  // namespace

void test_free_variables() {
  test_active_set();
  test_small_problems();
  test_computed_rows();
}
