// Runs every native loop at every level that this processor has, under the address and undefined-behaviour sanitisers,
// on sizes around the widths of vectors and panels, with a cache of two rows, and compares the levels bit for bit.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "loops.hpp"

using namespace maxmargin;

namespace {

void check(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
  }
}

std::vector<const Loops*> levels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::vector<const Loops*> found = {&v2::loops};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&v3::loops);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw"))
    found.push_back(&v4::loops);
  return found;
#else
  return {&plain::loops};
#endif
}

double term(int kind, double x, double z) {
  switch (kind) {
    case 0: return x * z;
    case 1: return (x - z) * (x - z);
    case 2: return std::fabs(x - z);
    default: return x + z == 0 ? 0 : (x - z) * (x - z) / (x + z);
  }
}

void test_dense_sums(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  for (std::int64_t features : {1, 2, 7, 8, 9, 31, 63, 64, 65, 71, 100}) {
    for (std::int64_t rows : {1, 2, 3, 5}) {
      for (std::int64_t columns : {1, 3, 4, 15, 16, 17, 33}) {
        std::vector<double> left(rows * features), right(columns * features);
        for (double& x : left) x = uniform(random);
        for (double& z : right) z = uniform(random);
        std::vector<std::int64_t> left_picks(rows), right_picks(columns);
        for (std::int64_t r = 0; r < rows; ++r) left_picks[r] = rows - 1 - r;
        for (std::int64_t c = 0; c < columns; ++c) right_picks[c] = (c * 7) % columns;
        for (int kind = 0; kind < 4; ++kind) {
          std::vector<double> first;
          for (const Loops* loops : levels()) {
            std::vector<double> out(rows * columns, -1.0);
            loops->dense[kind](left.data(), left_picks.data(), rows, right.data(), right_picks.data(), columns, features,
                               out.data());
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t c = 0; c < columns; ++c) {
                double sum = 0.0;
                for (std::int64_t k = 0; k < features; ++k)
                  sum += term(kind, left[left_picks[r] * features + k], right[right_picks[c] * features + k]);
                check(std::fabs(out[r * columns + c] - sum) <= 1e-12 * (1.0 + std::fabs(sum)), "a dense sum");
              }
            if (first.empty()) first = out;
            check(std::memcmp(first.data(), out.data(), out.size() * sizeof(double)) == 0, "levels agree on dense sums");
          }
        }
      }
    }
  }
}

template <class Index> void test_sparse_sums(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  const std::int64_t rows = 9, features = 20;
  std::vector<Index> starts = {0}, indices;
  std::vector<double> values, dense(rows * features, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < features; ++k)
      if (r != 4 && uniform(random) < 0.3) {  // row 4 is empty
        indices.push_back(static_cast<Index>(k));
        values.push_back(uniform(random));
        dense[r * features + k] = values.back();
      }
    starts.push_back(static_cast<Index>(indices.size()));
  }
  std::vector<std::int64_t> picks(rows);
  for (std::int64_t r = 0; r < rows; ++r) picks[r] = r;
  const SparseRows<Index> matrix{starts.data(), indices.data(), values.data()};
  for (const Loops* loops : levels())
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<double> spread(features, 0.0), out(rows * rows);
      if constexpr (sizeof(Index) == 4)
        loops->sparse32[kind](matrix, picks.data(), rows, matrix, picks.data(), rows, spread.data(), out.data());
      else
        loops->sparse64[kind](matrix, picks.data(), rows, matrix, picks.data(), rows, spread.data(), out.data());
      for (std::int64_t a = 0; a < rows; ++a)
        for (std::int64_t b = 0; b < rows; ++b) {
          double sum = 0.0;
          for (std::int64_t k = 0; k < features; ++k) sum += term(kind, dense[a * features + k], dense[b * features + k]);
          check(std::fabs(out[a * rows + b] - sum) <= 1e-12 * (1.0 + std::fabs(sum)), "a sparse sum");
        }
      for (double x : spread) check(x == 0.0, "the buffer is left clean");
    }
}

enum class Shape { plain, flat, unlimited };  // flat: duplicates and no ridge; unlimited: an open box

// Solves a random classification problem with a store of two rows, fetched on demand and only as far as asked (the rest is
// poisoned), with the last `shrunk` variables left out, and returns the dual.
std::vector<double> solve(const Loops& loops, std::int64_t n, Rule rule, int groups, bool keep_bounded, Shape shape,
                          std::int64_t shrunk, std::int64_t& steps) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> x(2 * n), matrix(n * n);
  std::vector<double> dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n), bounded(n, 0.0);
  std::vector<double> ridge(n, shape == Shape::flat ? 0.0 : 0.1);
  std::vector<std::int32_t> group(n);
  for (std::int64_t i = 0; i < n; ++i) {
    const double sign = i % 2 ? 1.0 : -1.0;
    x[2 * i] = normal(random) + 0.5 * sign;
    x[2 * i + 1] = normal(random);
    gradient[i] = sign;
    lower[i] = sign > 0 ? 0.0 : -1.0;
    upper[i] = sign > 0 ? 1.0 : 0.0;
    if (shape == Shape::unlimited) (sign > 0 ? upper[i] : lower[i]) *= HUGE_VAL;
    if (shape == Shape::flat && i >= 2) {  // every sample stands for the two before it, with both labels
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
  std::vector<std::int64_t> slot(n, -1), length(2, 0), last_use(2, 0), owner(2, -1);
  DualState state{dual.data(), gradient.data(), lower.data(), upper.data(), diagonal.data(), ridge.data(), group.data(),
                  keep_bounded ? bounded.data() : nullptr, n, n - shrunk, groups, groups == 0 ? n : 0};
  RowStore rows{storage.data(), n, slot.data(), length.data(), last_use.data(), 0, 0};
  std::vector<Extreme> extremes(groups + 1);
  SelectionMemory memory{rule, -1, -1, -1, -1, 0.0, extremes.data()};
  steps = 0;
  for (int round = 0; round < 1000000; ++round) {
    const Outcome out = loops.pairwise(state, rows, memory, 1e-6, 1000, 10.0);
    memory.pending_violation = out.violation;
    steps += out.steps;
    if (out.reason == Reason::optimal) return dual;
    check(out.reason == Reason::needs_row || out.reason == Reason::paused, "the loop goes on");
    if (out.reason == Reason::needs_row) {
      const int s = slot[out.row] >= 0 ? static_cast<int>(slot[out.row]) : last_use[0] <= last_use[1] ? 0 : 1;
      if (owner[s] >= 0) slot[owner[s]] = -1;
      for (std::int64_t k = 0; k < n; ++k) storage[s * n + k] = k < out.length ? matrix[out.row * n + k] : NAN;
      owner[s] = out.row;
      slot[out.row] = s;
      length[s] = out.length;
      last_use[s] = ++rows.clock;
    }
  }
  check(false, "the loop ends");
  return dual;
}

void test_pairwise() {
  for (std::int64_t n : {2, 3, 7, 8, 9, 16, 33, 64})
    for (int rule = 0; rule < 3; ++rule)
      for (int groups = 0; groups <= 3; ++groups) {
        if (groups > 1 && n < 4 * groups) continue;
        for (bool keep : {false, true})
          for (Shape shape : {Shape::plain, Shape::flat, Shape::unlimited})
            for (std::int64_t shrunk : {0, 1, 5}) {
              if (shrunk >= n) continue;
              std::vector<double> first;
              std::int64_t first_steps = 0, steps = 0;
              for (const Loops* loops : levels()) {
                const auto dual = solve(*loops, n, static_cast<Rule>(rule), groups, keep, shape, shrunk, steps);
                if (first.empty()) { first = dual; first_steps = steps; }
                check(steps == first_steps, "levels take the same steps");
                check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on the solution");
                for (double b : dual) check(std::isfinite(b), "nothing of the poison gets in");
              }
            }
      }
}

// Flat and unlimited for a variable on its own: the loop says so instead of looking for a partner that is not there.
void test_unbounded_single() {
  for (const Loops* loops : levels())
    for (int rule = 0; rule < 3; ++rule) {
      double dual[1] = {0.0}, gradient[1] = {1.0}, row[2] = {0.0, 0.0};
      const double lower[1] = {0.0}, upper[1] = {HUGE_VAL}, zero[1] = {0.0};
      const std::int32_t group[1] = {-1};
      const std::int64_t slot[1] = {0}, length[2] = {1, 0};
      std::int64_t last_use[2] = {0, 0};
      DualState state{dual, gradient, lower, upper, zero, zero, group, nullptr, 1, 1, 0, 1};
      RowStore rows{row, 1, slot, length, last_use, 0, 0};
      Extreme extremes[1];
      SelectionMemory memory{static_cast<Rule>(rule), -1, -1, -1, -1, 0.0, extremes};
      check(loops->pairwise(state, rows, memory, 1e-3, 10, 1.0).reason == Reason::unbounded, "an open flat box");
    }
}

}  // namespace

int main() {
  std::mt19937 random(1);
  test_dense_sums(random);
  test_sparse_sums<std::int32_t>(random);
  test_sparse_sums<std::int64_t>(random);
  test_pairwise();
  test_unbounded_single();
  for (const Loops* loops : levels()) std::printf("level %s passed\n", loops->level);
  return 0;
}
