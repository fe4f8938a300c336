// What model selection adds to the solvers: samples removed from an optimum, and the problems of a fold along a path.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

std::vector<double> gaussian_matrix(std::int64_t n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> x(n), matrix(n * n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = normal(random) + (i % 2 ? 0.5 : -0.5);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) matrix[i * n + j] = std::exp(-20.0 * (x[i] - x[j]) * (x[i] - x[j]));
  return matrix;
}

// The inverse of a small matrix, by exchange steps.
std::vector<double> inverse(std::vector<double> a, std::int64_t n) {
  std::vector<double> b(n * n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) b[i * n + i] = 1.0;
  for (std::int64_t c = 0; c < n; ++c) {
    std::int64_t best = c;
    for (std::int64_t r = c; r < n; ++r)
      if (std::fabs(a[r * n + c]) > std::fabs(a[best * n + c])) best = r;
    for (std::int64_t k = 0; k < n; ++k) {
      std::swap(a[c * n + k], a[best * n + k]);
      std::swap(b[c * n + k], b[best * n + k]);
    }
    const double pivot = a[c * n + c];
    for (std::int64_t k = 0; k < n; ++k) {
      a[c * n + k] /= pivot;
      b[c * n + k] /= pivot;
    }
    for (std::int64_t r = 0; r < n; ++r) {
      const double factor = a[r * n + c];
      for (std::int64_t k = 0; k < n && r != c; ++k) {
        a[r * n + k] -= factor * a[c * n + k];
        b[r * n + k] -= factor * b[c * n + k];
      }
    }
  }
  return b;
}

// An optimum of `n` variables of one group, of which all but every third are free, and the columns of its equations:
// of the first `size` variables and the total.
struct Optimum {
  std::int64_t n, size;
  std::vector<double> matrix, dual, linear, lower, upper, slack, columns;
  std::vector<std::int32_t> group;

  Optimum(std::int64_t count, std::int64_t in_table) : n(count), size(in_table), group(count, 0) {
    std::mt19937 random(7);
    matrix = gaussian_matrix(n, random);
    for (std::int64_t i = 0; i < n; ++i) matrix[i * n + i] += 0.1;
    std::uniform_real_distribution<double> uniform(0.1, 0.9);
    for (std::int64_t i = 0; i < n; ++i) {
      const double sign = i % 2 ? 1.0 : -1.0;
      lower.push_back(i % 2 ? 0.0 : -1.0);
      upper.push_back(i % 2 ? 1.0 : 0.0);
      dual.push_back(!at_bound(i) ? sign * uniform(random) : i % 6 == 0 ? 0.0 : sign);
      slack.push_back(!at_bound(i) ? 0.0 : (dual[i] == upper[i] ? 1.0 : -1.0) * 0.1 * uniform(random));
    }
    for (std::int64_t i = 0; i < n; ++i) {  // for which this is optimal, with the offset 0
      linear.push_back(slack[i]);
      for (std::int64_t j = 0; j < n; ++j) linear[i] += matrix[i * n + j] * dual[j];
    }
    find_columns();
  }

  static bool at_bound(std::int64_t i) { return i % 3 == 0; }

  // ds_F = −M_FF db_F − dρ − M_FN db_N, ds_N = −M_NF db_F − dρ − M_NN db_N, Σ db = dτ, solved for (db_F, dρ, ds_N).
  void find_columns() {
    std::vector<std::int64_t> free;
    for (std::int64_t i = 0; i < size; ++i)
      if (!at_bound(i)) free.push_back(i);
    const std::int64_t m = static_cast<std::int64_t>(free.size()), p = m + 1, width = size + 1;
    std::vector<double> system(p * p, 0.0);
    for (std::int64_t a = 0; a < m; ++a) {
      for (std::int64_t b = 0; b < m; ++b) system[a * p + b] = matrix[free[a] * n + free[b]];
      system[a * p + m] = system[m * p + a] = 1.0;
    }
    const std::vector<double> solved = inverse(system, p);
    columns.assign(width * width, 0.0);
    for (std::int64_t c = 0; c < width; ++c) {
      std::vector<double> right(p, 0.0), change(size, 0.0);
      const bool is_free = c < size && !at_bound(c);
      for (std::int64_t a = 0; a < m; ++a)
        right[a] = c == size ? 0.0 : is_free ? -(free[a] == c ? 1.0 : 0.0) : -matrix[free[a] * n + c];
      right[m] = c == size ? 1.0 : is_free ? 0.0 : -1.0;
      double* column = columns.data() + c * width;
      for (std::int64_t a = 0; a < p; ++a) {
        double sum = 0.0;
        for (std::int64_t b = 0; b < p; ++b) sum += solved[a * p + b] * right[b];
        column[a < m ? free[a] : size] = sum;
        if (a < m) change[free[a]] = sum;
      }
      if (c < size && !is_free) change[c] = 1.0;
      for (std::int64_t r = 0; r < size; ++r) {
        if (!at_bound(r)) continue;
        double sum = -column[size];
        for (std::int64_t k = 0; k < size; ++k) sum -= matrix[r * n + k] * change[k];
        column[r] = sum;
      }
    }
  }

  RemovalTable table() const {
    return {columns.data(), dual.data(), slack.data(), lower.data(), upper.data(), group.data(), size, 1, 1.0};
  }
};

// Every variable of a table is removed, and the last one, which has a column of its own if it is not in the table.
void test_removals() {
  for (std::int64_t n : {5, 8, 17, 40, 65})
    for (std::int64_t outside : {0, 1})
      for (int goal : {0, 1, 2})
        for (std::int64_t most : {std::int64_t{1}, 4 * n}) {
          const Optimum whole(n, n), part(n, n - outside);
          if (outside && !Optimum::at_bound(n - 1)) continue;
          std::vector<double> first;
          for (const Level& level : usable_levels()) {
            std::vector<double> all;
            const std::int64_t width = part.size + 2;
            for (std::int64_t i = 0; i < n; ++i) {
              if (part.dual[i] == 0.0) continue;
              std::vector<double> doubles((5 + most) * width), changes(part.size), slacks(part.size), offsets(1);
              std::vector<std::int64_t> indices(width + most);
              std::vector<double> own(whole.columns.begin() + i * (n + 1), whole.columns.begin() + (i + 1) * (n + 1));
              const double response = own[i];
              if (i >= part.size) own.erase(own.begin() + i);
              const bool inside = i < part.size;
              const Removal removal{inside ? i : -1,
                                    own.data(),
                                    inside ? 0.0 : response,
                                    part.dual[i],
                                    part.slack[i],
                                    part.linear[i],
                                    0.0,
                                    1e-9,
                                    -1,
                                    nullptr,
                                    0.01,
                                    offsets.data()};
              const RemovalOutcome out =
                  level.solvers->remove(part.table(), {doubles.data(), indices.data(), most}, removal,
                                        static_cast<RemovalGoal>(goal), changes.data(), slacks.data());
              check(out.exchanges <= most, "a path has as many exchanges as there is memory for");
              all.insert(all.end(), {out.value, out.way, out.gain, offsets[0]});
              all.insert(all.end(), changes.begin(), changes.end());
              if (out.end == RemovalEnd::failed) continue;
              check(goal == 2 || out.violation < 1e-9, "the variables of the table are optimal");
              double sum = inside ? 0.0 : -out.way * part.dual[i];
              for (double change : changes) sum += change;
              check(std::fabs(sum) < 1e-9 * (1.0 + std::fabs(out.way)), "a path keeps the sum of the group");
              for (std::int64_t k = 0; k < part.size; ++k) {
                double direct = part.slack[k] - offsets[0];
                for (std::int64_t j = 0; j < part.size; ++j) direct -= part.matrix[k * n + j] * changes[j];
                if (!inside) direct += part.matrix[k * n + i] * out.way * part.dual[i];
                check(std::fabs(direct - slacks[k]) < 1e-7 * (1.0 + std::fabs(out.way)),
                      "slacks are those of the matrix");
                const double dual = part.dual[k] + changes[k];
                if (k == i) continue;
                check(dual >= part.lower[k] - 1e-9 && dual <= part.upper[k] + 1e-9, "a path stays in the box");
                check(goal == 2 || dual < part.lower[k] + 1e-9 || slacks[k] > -1e-9, "a path stays optimal from below");
                check(goal == 2 || dual > part.upper[k] - 1e-9 || slacks[k] < 1e-9, "a path stays optimal from above");
              }
            }
            if (first.empty()) first = all;
            check(first.size() == all.size() && std::memcmp(first.data(), all.data(), all.size() * sizeof(double)) == 0,
                  "levels agree on removals");
          }
        }
}

// The memory of a fold.
struct FoldMemory {
  std::vector<double> shifts, diagonal, before, part_doubles, free_doubles;
  std::vector<GradientExtremes> extremes;
  std::unique_ptr<bool[]> keep;
  std::vector<float> part_floats, values;
  std::vector<std::int64_t> indices, free_indices;
  std::vector<std::int32_t> part_group, free_groups;
  FoldWorkspace pointers;

  FoldMemory(std::int64_t n, int groups, std::int64_t copied, std::int64_t free, const std::int32_t* cancelled)
      : shifts(2 * n),
        diagonal(n),
        before(n),
        part_doubles(9 * n),
        free_doubles(doubles_of_free_equations(free)),
        extremes(groups + 1),
        keep(new bool[n]),
        part_floats(4 * (n + 15) + 15),
        values(copied + 15),
        indices(6 * n),
        free_indices(indices_of_free_equations(free) + groups),
        part_group(n),
        free_groups(free),
        pointers{shifts.data(),
                 diagonal.data(),
                 before.data(),
                 extremes.data(),
                 keep.get(),
                 part_doubles.data(),
                 part_floats.data(),
                 indices.data(),
                 indices.data() + n,
                 indices.data() + 2 * n,
                 indices.data() + 3 * n,
                 indices.data() + 4 * n,
                 indices.data() + 5 * n,
                 part_group.data(),
                 values.data(),
                 copied,
                 free,
                 free_doubles.data(),
                 free_indices.data(),
                 free_groups.data(),
                 cancelled} {}
};

// Folds on every third row of a matrix or on all, without groups, with one and with two, with and without kinks, with
// memory for all copied rows and for three: all levels end at the same point, to the last bit.
void test_folds() {
  std::int64_t most_solutions = 0;
  for (std::int64_t n : {2, 9, 40, 130})
    for (std::int64_t spread : {1, 3})
      for (int groups : {0, 1, 2})
        for (double tube : {0.0, 0.2})
          for (std::int64_t copied : {3 * (n + 15), n * (n + 15) + 3 * n}) {
            std::vector<double> first;
            for (const Level& level : usable_levels()) {
              std::mt19937 random(7);
              const std::int64_t stride = spread * n, free = n;
              const std::vector<double> matrix = gaussian_matrix(stride, random);
              std::vector<std::int64_t> columns(n);
              std::vector<double> linear(n), dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n, 1.0),
                  ridge(n, 0.0), kink(n, tube);
              std::vector<std::int32_t> group(n, groups ? 0 : -1);
              for (std::int64_t i = 0; i < n; ++i) {
                columns[i] = spread * i;
                linear[i] = gradient[i] = i % 2 ? 1.0 : -1.0;
                lower[i] = i % 2 && tube == 0.0 ? 0.0 : -3.0;
                upper[i] = i % 2 || tube > 0.0 ? 3.0 : 0.0;
                if (groups == 2) group[i] = i >= n / 2;
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
              const std::int32_t cancelled = 0;
              FoldMemory memory(n, groups, copied, free, &cancelled);
              const FoldOutcome out =
                  level.solvers->fold({matrix.data(), stride, columns.data()}, memory.pointers, state, 1e-4, 200000);
              check(out.reason == StopReason::optimal, "a fold is solved");
              most_solutions = std::max(most_solutions, out.free_solutions);
              std::vector<double> sums(groups + 1, 0.0);
              for (std::int64_t i = 0; i < n; ++i) {
                double direct = linear[i];
                for (std::int64_t j = 0; j < n; ++j) direct -= matrix[columns[i] * stride + columns[j]] * dual[j];
                check(std::fabs(direct - gradient[i]) < 1e-9, "the gradient of a fold is that of all rows");
                check(dual[i] >= lower[i] && dual[i] <= upper[i], "a fold stays in the box");
                if (groups) sums[group[i]] += dual[i];
              }
              for (int g = 0; g < groups; ++g) {
                check(std::fabs(sums[g]) < 1e-10 * n, "a fold keeps the sums of its groups");
                check(!(memory.extremes[g].highest - memory.extremes[g].lowest > 1e-4), "every group is optimal");
              }
              if (first.empty()) first = dual;
              check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on a fold");
            }
          }
  check(most_solutions > 1, "a factorisation serves several solutions of the free equations");
}

// Another thread may end a fold before its first step.
void test_cancelled_fold() {
  std::mt19937 random(7);
  constexpr std::int64_t n = 40;
  const std::vector<double> matrix = gaussian_matrix(n, random);
  for (const Level& level : usable_levels()) {
    std::vector<std::int64_t> columns(n);
    std::vector<double> dual(n, 0.0), gradient(n), lower(n, -1.0), upper(n, 1.0), diagonal(n, 1.0), ridge(n, 0.0);
    std::vector<std::int32_t> group(n, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      columns[i] = i;
      gradient[i] = i % 2 ? 1.0 : -1.0;
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
                    1,
                    0};
    const std::int32_t cancelled = 1;
    FoldMemory memory(n, 1, 3 * (n + 15), n, &cancelled);
    const FoldOutcome out =
        level.solvers->fold({matrix.data(), n, columns.data()}, memory.pointers, state, 1e-4, 200000);
    check(out.reason == StopReason::paused, "a cancelled fold is paused");
  }
}

}  // namespace

void test_selection() {
  test_removals();
  test_folds();
  test_cancelled_fold();
}
