// Runs every native loop at every level that this processor has, under the address and undefined-behaviour sanitisers,
// on sizes around the widths of vectors and panels, with a cache of two rows. Kernel values are compared with a plain
// formula, steps of the solvers between the levels bit for bit.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "levels.hpp"
#include "parallel.hpp"

using namespace maxmargin;

namespace {

void check(bool condition, const char* what) {
  if (!condition) {
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
  }
}

double term(int kind, double x, double z) {
  switch (kind) {
    case 0:
      return x * z;
    case 1:
      return (x - z) * (x - z);
    case 2:
      return std::fabs(x - z);
    default:
      return x + z == 0 ? 0 : (x - z) * (x - z) / (x + z);
  }
}

double expected(const Formula& f, double sum, double half_norms) {
  switch (f.function) {
    case Function::power:
      return std::pow(f.gamma * sum + f.coef0, f.degree);
    case Function::exponential:
      return std::exp(-f.gamma * sum);
    case Function::tangent:
      return std::tanh(f.gamma * sum + f.coef0);
    case Function::gaussian_of_product:
      return std::exp(f.gamma * (sum - half_norms));
    default:
      return sum;
  }
}

const std::vector<Formula> kFormulas = {
    {Term::product, Function::identity, 0.0, 0.0, 0},       {Term::product, Function::power, 0.3, 0.7, 5},
    {Term::product, Function::tangent, 0.3, -0.2, 0},       {Term::product, Function::gaussian_of_product, 0.3, 0.0, 0},
    {Term::squared, Function::exponential, 0.3, 0.0, 0},    {Term::absolute, Function::exponential, 0.3, 0.0, 0},
    {Term::chi_squared, Function::exponential, 0.3, 0.0, 0}};

template <class T> const BlockLoops<T>& blocks(const Level& level) {
  if constexpr (sizeof(T) == 4)
    return level.kernels->in_single;
  else
    return level.kernels->in_double;
}

// Packed samples in exactly as much memory as they take: the sanitiser sees a read beyond it.
template <class T> struct Packed {
  std::vector<T> values, norms;
  Packed(const BlockLoops<T>& loops, const std::vector<double>& data, const std::vector<std::int64_t>& picks,
         std::int64_t features, int width) {
    const std::int64_t padded = (static_cast<std::int64_t>(picks.size()) + width - 1) / width * width;
    values.resize(padded * features);
    norms.resize(padded);
    loops.pack(data.data(), picks.data(), picks.size(), features, width, nullptr, values.data(), norms.data());
  }
};

template <class T> void test_dense_blocks(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  const double accuracy = sizeof(T) == 4 ? 2e-5 : 1e-12;
  for (std::int64_t features : {1, 2, 7, 33, 100})
    for (std::int64_t rows : {1, 3, 12, 13, 25})
      for (std::int64_t columns : {1, 15, 16, 17, 33, 65}) {
        std::vector<double> left(rows * features), right(columns * features);
        for (double& x : left) x = uniform(random);
        for (double& z : right) z = uniform(random);
        std::vector<std::int64_t> left_picks(rows), right_picks(columns);
        for (std::int64_t r = 0; r < rows; ++r) left_picks[r] = rows - 1 - r;
        for (std::int64_t c = 0; c < columns; ++c) right_picks[c] = (c * 7) % columns;
        for (const Level& level : usable_levels())
          for (const Formula& f : kFormulas) {
            const BlockLoops<T>& loops = blocks<T>(level);
            const Packed<T> strips(loops, left, left_picks, features, loops.strip);
            const Packed<T> panels(loops, right, right_picks, features, loops.panel);
            const PackedSamples<T> a{strips.values.data(), strips.norms.data(), rows};
            const PackedSamples<T> b{panels.values.data(), panels.norms.data(), columns};
            std::vector<T> out(rows * columns, T(-1)), weights(panels.norms.size(), T(0));
            std::vector<T*> targets(rows);
            std::vector<double> sums(rows);
            for (std::int64_t r = 0; r < rows; ++r) targets[r] = out.data() + r * columns;
            for (std::int64_t c = 0; c < columns; ++c) weights[c] = static_cast<T>(c % 3) - T(1);
            const int term_code = static_cast<int>(f.term);
            loops.dense[term_code](f, a, b, features, 0, (columns + loops.panel - 1) / loops.panel, targets.data());
            loops.combination[term_code](f, a, b, features, 0, (rows + loops.strip - 1) / loops.strip, weights.data(),
                                         sums.data());
            for (std::int64_t r = 0; r < rows; ++r) {
              double total = 0.0, size = 1.0;
              for (std::int64_t c = 0; c < columns; ++c) {
                double sum = 0.0, norms = 0.0;
                for (std::int64_t k = 0; k < features; ++k) {
                  const double x = left[left_picks[r] * features + k], z = right[right_picks[c] * features + k];
                  sum += term(term_code, x, z);
                  norms += 0.5 * (x * x + z * z);
                }
                const double value = expected(f, sum, norms);
                check(std::fabs(out[r * columns + c] - value) <= accuracy * (1.0 + std::fabs(value)) * (1.0 + norms),
                      "a dense value");
                total += value * weights[c];
                size += std::fabs(value) * (1.0 + norms);
              }
              check(std::fabs(sums[r] - total) <= accuracy * size, "a combination");
            }
          }
      }
}

// Samples with themselves: mirrored values are those of the block to the last bit, in whatever pieces they are
// computed.
template <class T> void test_dense_squares(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  for (std::int64_t features : {1, 7, 33})
    for (std::int64_t count : {1, 5, 33, 130, 300}) {
      std::vector<double> data(count * features);
      for (double& x : data) x = uniform(random);
      std::vector<std::int64_t> picks(count);
      for (std::int64_t r = 0; r < count; ++r) picks[r] = count - 1 - r;
      for (const Level& level : usable_levels())
        for (const Formula& f : kFormulas) {
          const BlockLoops<T>& loops = blocks<T>(level);
          const int term_code = static_cast<int>(f.term);
          const Packed<T> strips(loops, data, picks, features, loops.strip),
              packed(loops, data, picks, features, loops.panel);
          const PackedSamples<T> a{strips.values.data(), strips.norms.data(), count},
              b{packed.values.data(), packed.norms.data(), count};
          const std::int64_t panels = (count + loops.panel - 1) / loops.panel;
          std::vector<T> all(count * count, T(-1)), half(count * count, T(-1));
          std::vector<T*> to_all(count), to_half(count);
          for (std::int64_t r = 0; r < count; ++r) {
            to_all[r] = all.data() + r * count;
            to_half[r] = half.data() + r * count;
          }
          loops.dense[term_code](f, a, b, features, 0, panels, to_all.data());
          for (std::int64_t p = 0; p < panels; p += 3)
            loops.dense_square[term_code](f, a, b, features, p, std::min(panels, p + 3), to_half.data());
          check(all == half, "a mirrored dense value");
        }
    }
}

template <class T> void test_sparse_blocks(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  const std::int64_t rows = 70, features = 20;
  const double accuracy = sizeof(T) == 4 ? 2e-5 : 1e-12;
  std::vector<std::int64_t> starts = {0}, picks(rows);
  std::vector<std::int32_t> indices;
  std::vector<T> values;
  std::vector<double> dense(rows * features, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    picks[r] = r;
    for (std::int64_t k = 0; k < features; ++k)
      if (r != 4 && uniform(random) < 0.3) {  // row 4 is empty
        indices.push_back(static_cast<std::int32_t>(k));
        values.push_back(static_cast<T>(uniform(random)));
        dense[r * features + k] = static_cast<double>(values.back());
      }
    starts.push_back(static_cast<std::int64_t>(indices.size()));
  }
  const SparseRows<T> matrix{starts.data(), indices.data(), values.data()};
  for (const Level& level : usable_levels())
    for (const Formula& f : kFormulas) {
      if (f.function == Function::gaussian_of_product) continue;  // for dense samples only
      const BlockLoops<T>& loops = blocks<T>(level);
      const int term_code = static_cast<int>(f.term);
      const std::int64_t panels = (rows + loops.sparse_panel - 1) / loops.sparse_panel;
      std::vector<std::int32_t> line(features, 0);
      std::vector<T> table((features + 1) * loops.sparse_panel), out(rows * rows), alone(rows);
      std::vector<T> weights(panels * loops.sparse_panel, T(0));
      std::vector<double> sums(rows);
      std::vector<T*> targets(rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        targets[r] = out.data() + r * rows;
        weights[r] = static_cast<T>(r % 3) - T(1);
      }
      loops.alone[term_code](matrix, picks.data(), rows, alone.data());
      loops.sparse[term_code](f, matrix, picks.data(), rows, matrix, picks.data(), 0, rows, alone.data(), alone.data(),
                              line.data(), table.data(), targets.data());
      loops.sparse_combination[term_code](f, matrix, picks.data(), 0, rows, matrix, picks.data(), rows, alone.data(),
                                          alone.data(), line.data(), table.data(), weights.data(), sums.data());
      for (std::int64_t a = 0; a < rows; ++a) {
        double total = 0.0, size = 1.0;
        for (std::int64_t b = 0; b < rows; ++b) {
          double sum = 0.0;
          for (std::int64_t k = 0; k < features; ++k)
            sum += term(term_code, dense[a * features + k], dense[b * features + k]);
          const double value = expected(f, sum, 0.0);
          check(std::fabs(out[a * rows + b] - value) <= accuracy * (1.0 + std::fabs(value)), "a sparse value");
          check(out[a * rows + b] == out[b * rows + a], "sparse values are symmetric");
          total += value * weights[b];
          size += std::fabs(value);
        }
        check(std::fabs(sums[a] - total) <= accuracy * size, "a sparse combination");
      }
      std::vector<T> mirrored(rows * rows, T(-1)), turned(rows * rows, T(-1));
      std::vector<T*> to_mirrored(rows), to_turned(rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        to_mirrored[r] = mirrored.data() + r * rows;
        to_turned[r] = turned.data() + r * rows;
      }
      for (std::int64_t at = 0; at < rows; at += loops.sparse_panel)
        loops.sparse_square[term_code](f, matrix, picks.data(), rows, at, std::min(rows, at + loops.sparse_panel),
                                       alone.data(), line.data(), table.data(), to_mirrored.data());
      for (std::int64_t at = 0; at < rows; at += 23)
        loops.sparse_turned[term_code](f, matrix, picks.data(), rows, matrix, picks.data(), at, std::min(rows, at + 23),
                                       alone.data(), alone.data(), line.data(), table.data(), to_turned.data());
      check(out == mirrored, "a mirrored sparse value");
      check(out == turned, "a turned sparse value");
      for (std::int32_t entry : line) check(entry == 0, "the lines are left clean");
    }
}

void test_subtract_rows(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  for (std::int64_t width : {1, 7, 8, 1030})
    for (std::int64_t count : {0, 1, 8, 11}) {
      std::vector<float> values(width * count);
      for (float& x : values) x = static_cast<float>(uniform(random));
      std::vector<const float*> rows(count);
      std::vector<double> change(count);
      for (std::int64_t k = 0; k < count; ++k) {
        rows[k] = values.data() + k * width;
        change[k] = uniform(random) - 0.5;
      }
      for (const Level& level : usable_levels()) {
        std::vector<double> gradient(width, 1.0);
        level.kernels->subtract_rows(gradient.data(), rows.data(), change.data(), count, 0, width);
        for (std::int64_t c = 0; c < width; ++c) {
          double sum = 1.0;
          for (std::int64_t k = 0; k < count; ++k) sum -= change[k] * static_cast<double>(rows[k][c]);
          check(std::fabs(gradient[c] - sum) < 1e-12, "a changed gradient");
        }
      }
    }
}

enum class Shape { plain, flat, unlimited };  // flat: duplicates and no ridge; unlimited: an open box

// Solves a random classification problem with a store of two rows, fetched on demand and only as far as asked (the rest
// is poisoned), with the last `shrunk` variables left out, and returns the dual.
std::vector<double> solve(const SolverLoops& loops, std::int64_t n, Rule rule, int groups, bool keep_bounded,
                          Shape shape, std::int64_t shrunk, std::int64_t& steps) {
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
  DualState state{dual.data(),
                  gradient.data(),
                  lower.data(),
                  upper.data(),
                  diagonal.data(),
                  ridge.data(),
                  group.data(),
                  keep_bounded ? bounded.data() : nullptr,
                  n,
                  n - shrunk,
                  groups,
                  groups == 0 ? n : 0};
  RowStore<double> rows{storage.data(), n, slot.data(), length.data(), last_use.data(), 0, 0};
  std::vector<GradientExtremes> extremes(groups + 1);
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
              for (const Level& level : usable_levels()) {
                const auto dual = solve(*level.solvers, n, static_cast<Rule>(rule), groups, keep, shape, shrunk, steps);
                if (first.empty()) {
                  first = dual;
                  first_steps = steps;
                }
                check(steps == first_steps, "levels take the same steps");
                check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on the solution");
                for (double b : dual) check(std::isfinite(b), "nothing of the poison gets in");
              }
            }
      }
}

// Flat and unlimited for a variable on its own: the loop says so instead of looking for a partner that is not there.
void test_unbounded_single() {
  for (const Level& level : usable_levels())
    for (int rule = 0; rule < 3; ++rule) {
      double dual[1] = {0.0}, gradient[1] = {1.0}, row[2] = {0.0, 0.0};
      const double lower[1] = {0.0}, upper[1] = {HUGE_VAL}, zero[1] = {0.0};
      const std::int32_t group[1] = {-1};
      const std::int64_t slot[1] = {0}, length[2] = {1, 0};
      std::int64_t last_use[2] = {0, 0};
      DualState state{dual, gradient, lower, upper, zero, zero, group, nullptr, 1, 1, 0, 1};
      RowStore<double> rows{row, 1, slot, length, last_use, 0, 0};
      GradientExtremes extremes[1];
      SelectionMemory memory{static_cast<Rule>(rule), -1, -1, -1, -1, 0.0, extremes};
      check(level.solvers->pairwise(state, rows, memory, 1e-3, 10, 1.0).reason == Reason::unbounded,
            "an open flat box");
    }
}

// Steps on single-precision rows, all of them at hand: every level ends at the same point, which is optimal.
void test_one_group() {
  for (std::int64_t n : {2, 3, 8, 17, 64, 129}) {
    std::vector<double> first;
    for (const Level& level : usable_levels()) {
      std::mt19937 random(7);
      std::normal_distribution<double> normal;
      std::vector<float> matrix(n * n), bend(n);
      std::vector<double> x(n), dual(n, 0.0), gradient(n), lower(n), upper(n), diagonal(n, 1.1), ridge(n, 0.1),
          room(2 * n);
      std::vector<std::int32_t> group(n, 0);
      std::vector<std::int64_t> slot(n), length(n, n), last_use(n, 0);
      for (std::int64_t i = 0; i < n; ++i) {
        const double sign = i % 2 ? 1.0 : -1.0;
        x[i] = normal(random) + 0.5 * sign;
        gradient[i] = sign;
        lower[i] = sign > 0 ? 0.0 : -1.0;
        upper[i] = sign > 0 ? 1.0 : 0.0;
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
                      1,
                      0};
      RowStore<float> rows{matrix.data(), n, slot.data(), length.data(), last_use.data(), 0, 0};
      const Outcome out = level.solvers->one_group(state, rows, room.data(), bend.data(), 1e-6, 100000, 10.0);
      check(out.reason == Reason::optimal && out.violation <= 1e-6, "steps on single-precision rows end");
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

// The equations of free variables on a line, which depend on one another up to rounding: every level ends at the same
// point, to the last bit; the dual has risen, sums are kept, and who is still free has the gradient of its group.
void test_free_equations() {
  for (std::int64_t n : {1, 2, 3, 8, 17, 64, 129})
    for (int groups : {0, 1, 3})
      for (double size : {0.1, 10.0, 1e4}) {
        std::vector<double> first;
        for (const Level& level : usable_levels()) {
          std::mt19937 random(7);
          std::normal_distribution<double> normal;
          std::vector<double> x(n), block(n * n), lower(n, -size), upper(n, size), dual(n, 0.0), gradient(n), before(n),
              room(n * n + 3 * n);
          std::vector<std::int32_t> group(n);
          std::vector<std::int64_t> places(2 * n + groups, -1);
          for (std::int64_t i = 0; i < n; ++i) {
            x[i] = normal(random);
            gradient[i] = before[i] = i % 2 ? 1.0 : -1.0;
            group[i] = static_cast<std::int32_t>(i % (groups + 1)) - (groups == 1 ? i % 2 : 1);
          }
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) block[i * n + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j]));
          const FreeTask task{block.data(),
                              n,
                              group.data(),
                              groups,
                              lower.data(),
                              upper.data(),
                              dual.data(),
                              gradient.data(),
                              1e-11,
                              1e9,
                              room.data(),
                              room.data() + n * n,
                              room.data() + n * n + n,
                              room.data() + n * n + 2 * n,
                              places.data(),
                              places.data() + n,
                              places.data() + 2 * n};
          level.solvers->solve_free(task);
          std::vector<double> sums(groups, 0.0), levels(groups, 0.0), counts(groups, 0.0);
          double gain = 0.0;
          for (std::int64_t i = 0; i < n; ++i) {
            gain += dual[i] * (before[i] + gradient[i]);
            check(std::fabs(dual[i]) <= size, "free variables stay in the box");
            if (group[i] < 0) {
              check(std::fabs(dual[i]) == size || std::fabs(gradient[i]) < 1e-6,
                    "the equations of single variables are solved");
              continue;
            }
            sums[group[i]] += dual[i];
            if (std::fabs(dual[i]) == size) continue;
            levels[group[i]] += gradient[i];
            counts[group[i]] += 1.0;
          }
          check(n == 1 || gain > 0.0 || (groups && n <= groups + 1), "the dual rises");
          for (int g = 0; g < groups; ++g) check(std::fabs(sums[g]) < 1e-11 * (1.0 + size), "a group keeps its sum");
          for (std::int64_t i = 0; i < n; ++i)
            if (group[i] >= 0 && std::fabs(dual[i]) < size)
              check(std::fabs(gradient[i] - levels[group[i]] / counts[group[i]]) < 1e-6,
                    "the equations of a group are solved");
          if (first.empty()) first = dual;
          check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on free variables");
        }
      }
}

// A small problem from start to end, on every third row of a larger matrix or on all: every level ends at the same
// point, to the last bit, and a plain sum finds it optimal.
void test_whole_problem() {
  for (std::int64_t n : {2, 3, 8, 17, 64, 129})
    for (bool picked : {false, true})
      for (int groups : {0, 1})
        for (std::int64_t most_free : {std::int64_t{0}, std::int64_t{5}, n}) {
          std::vector<double> first;
          for (const Level& level : usable_levels()) {
            std::mt19937 random(7);
            std::normal_distribution<double> normal;
            const std::int64_t stride = picked ? 3 * n : n, m = most_free;
            std::vector<double> x(stride), matrix(stride * stride), linear(n), dual(n, 0.0), gradient(n), lower(n),
                upper(n);
            std::vector<double> diagonal(n, 1.0), ridge(n, 0.0), copies(n * n), before(n), equations(2 * m * m + 7 * m);
            std::vector<std::int32_t> group(n, groups - 1);
            std::vector<std::int64_t> picks(n), slot(n), length(n), last_use(n), places(3 * m);
            for (std::int64_t i = 0; i < stride; ++i) x[i] = normal(random) + (i % 2 ? 0.5 : -0.5);
            for (std::int64_t i = 0; i < stride; ++i)
              for (std::int64_t j = 0; j < stride; ++j)
                matrix[i * stride + j] = std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j]));
            for (std::int64_t i = 0; i < n; ++i) {
              picks[i] = picked ? 3 * i : i;
              linear[i] = i % 2 ? 1.0 : -1.0;
              lower[i] = i % 2 ? 0.0 : -10.0;
              upper[i] = i % 2 ? 10.0 : 0.0;
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
                            groups ? 0 : n};
            const WholeTask task{matrix.data(),
                                 stride,
                                 picks.data(),
                                 linear.data(),
                                 picked ? copies.data() : nullptr,
                                 slot.data(),
                                 length.data(),
                                 last_use.data(),
                                 before.data(),
                                 equations.data(),
                                 places.data(),
                                 m};
            const Outcome out = level.solvers->whole_problem(state, task, 1e-3, 100000);
            check(out.reason == Reason::optimal && out.violation <= 1e-3, "a small problem ends");
            for (std::int64_t i = 0; i < n; ++i) {
              double fresh = linear[i];
              for (std::int64_t j = 0; j < n; ++j) fresh -= matrix[picks[i] * stride + picks[j]] * dual[j];
              check(std::fabs(fresh - gradient[i]) < 1e-10, "the gradient of a small problem is fresh");
            }
            if (first.empty()) first = dual;
            check(std::memcmp(first.data(), dual.data(), n * sizeof(double)) == 0, "levels agree on a small problem");
          }
        }
}

// Products of rows with plain formulas, then passes of coordinate ascent: the dual must rise and the weights stay true.
template <class Rows>
void test_rows(const Rows& rows, const RowLoops<Rows>& loops, const std::vector<double>& table, std::int64_t n,
               std::int64_t d, std::vector<double>& first) {
  std::vector<double> w(d), b(n), decisions(n), combined(d, 0.0), norms(n), sums(d, 0.0), square(d * d, 0.0);
  for (std::int64_t k = 0; k < d; ++k) w[k] = std::cos(1.0 + k);
  for (std::int64_t i = 0; i < n; ++i) b[i] = i % 3 ? std::sin(2.0 + i) : 0.0;
  loops.decisions(rows, nullptr, 0, n, w.data(), decisions.data());
  loops.combine(rows, nullptr, 0, n, b.data(), combined.data());
  loops.squared_norms(rows, nullptr, 0, n, norms.data());
  std::vector<double> sizes(n), room(kSquareRows * (d + kSquarePadding));
  for (std::int64_t i = 0; i < n; ++i) sizes[i] = std::fabs(b[i]);
  loops.add_squares(rows, nullptr, 0, n, sizes.data(), nullptr, room.data(), sums.data(), square.data(), d);
  for (std::int64_t i = 0; i < n; ++i) {
    double dot = 0.0, norm = 0.0;
    for (std::int64_t k = 0; k < d; ++k) dot += table[i * d + k] * w[k], norm += table[i * d + k] * table[i * d + k];
    check(std::fabs(dot - decisions[i]) < 1e-10 && std::fabs(norm - norms[i]) < 1e-10, "decisions and norms of rows");
  }
  for (std::int64_t k = 0; k < d; ++k)
    for (std::int64_t j = 0; j <= k; ++j) {
      double sum = 0.0, one = 0.0, size = 0.0;
      for (std::int64_t i = 0; i < n; ++i) {
        sum += sizes[i] * table[i * d + k] * table[i * d + j];
        one += b[i] * table[i * d + k];
        size += sizes[i] * table[i * d + k];
      }
      check(std::fabs(sum - square[k * d + j]) < 1e-9 && std::fabs(one - combined[k]) < 1e-9 &&
                std::fabs(size - sums[k]) < 1e-9,
            "combinations and squares of rows");
    }
  std::vector<double> dual(n, 0.0), weights(d + 1, 0.0), linear(n), lower(n), upper(n), ridge(n, 0.01);
  std::vector<double> offset(1, 0.0), excess(1, 0.0), penalty(1, 1.0);
  std::vector<std::int32_t> group(n, 0);
  std::vector<std::int64_t> order(n);
  for (std::int64_t i = 0; i < n; ++i) {
    linear[i] = i % 2 ? 1.0 : -1.0;
    lower[i] = i % 2 ? 0.0 : -1.0;
    upper[i] = i % 2 ? 1.0 : 0.0;
    order[i] = (i * 7) % n;
  }
  AscentState state{dual.data(),
                    weights.data(),
                    linear.data(),
                    lower.data(),
                    upper.data(),
                    ridge.data(),
                    norms.data(),
                    nullptr,
                    group.data(),
                    offset.data(),
                    excess.data(),
                    penalty.data(),
                    d,
                    0.0,
                    HUGE_VAL,
                    HUGE_VAL,
                    1.0};
  std::int64_t left = n;
  for (int pass = 0; pass < 20; ++pass) {
    const AscentOutcome out = loops.ascend(rows, state, order.data(), 0, left);
    left = out.left;
    state.leave_above = out.highest > 0 ? out.highest : HUGE_VAL;
    state.leave_below = out.lowest < 0 ? -out.lowest : HUGE_VAL;
  }
  for (std::int64_t k = 0; k < d; ++k) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n; ++i) sum += dual[i] * table[i * d + k];
    check(std::fabs(sum - weights[k]) < 1e-9, "the weights stay those of the dual");
  }
  if (first.empty()) first = weights;
  for (std::int64_t k = 0; k < d; ++k)
    check(std::fabs(first[k] - weights[k]) < 1e-6, "levels and forms agree on coordinate steps");
}

// Descent along weights, each of which has one of the rows for its column: the objective never rises, the slacks stay
// those of the weights, and levels and forms agree.
template <class Rows>
void test_columns(const Rows& columns, const RowLoops<Rows>& loops, const std::vector<double>& table,
                  std::int64_t count, std::int64_t samples, std::vector<double>& first) {
  std::vector<double> weights(count, 0.0), slack(samples), inverse(samples), lower(samples), upper(samples),
      curvature(count, 0.0);
  std::vector<std::int64_t> order(count);
  for (std::int64_t i = 0; i < samples; ++i) {
    slack[i] = i % 2 ? 1.0 : -1.0;
    inverse[i] = 3.0 + i % 5;
    lower[i] = i % 2 ? 0.0 : -HUGE_VAL;
    upper[i] = i % 2 ? HUGE_VAL : 0.0;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    order[j] = (j * 7) % count;
    for (std::int64_t i = 0; i < samples; ++i)
      curvature[j] += table[j * samples + i] * table[j * samples + i] * inverse[i];
  }
  ColumnState state{weights.data(), slack.data(), inverse.data(), lower.data(), upper.data(), curvature.data()};
  double value = HUGE_VAL;
  for (int pass = 0; pass < 30; ++pass) {
    loops.descend_columns(columns, state, order.data(), 0, count);
    double now = 0.0;
    for (double w : weights) now += std::fabs(w);
    for (std::int64_t i = 0; i < samples; ++i) {
      const double z = slack[i] > 0.0 ? (i % 2 ? slack[i] : 0.0) : (i % 2 ? 0.0 : -slack[i]);
      now += 0.5 * inverse[i] * z * z;
    }
    check(now <= value * (1.0 + 1e-12), "a step along a weight never raises the objective");
    value = now;
  }
  for (std::int64_t i = 0; i < samples; ++i) {
    double expected = i % 2 ? 1.0 : -1.0;
    for (std::int64_t j = 0; j < count; ++j) expected -= weights[j] * table[j * samples + i];
    check(std::fabs(expected - slack[i]) < 1e-9, "the slacks stay those of the weights");
  }
  if (first.empty()) first.push_back(value);
  check(std::fabs(first[0] - value) < 1e-6 * value, "levels and forms agree on steps along weights");
}

// The quadratic model: the slope stays that of the weights, and the passes come to an end.
void test_model(const LinearLoops& loops, const std::vector<double>& table, std::int64_t count, std::int64_t samples) {
  std::vector<double> square(count * count, 0.0), weights(count, 0.5), slope(count), begin(count);
  for (std::int64_t j = 0; j < count; ++j) {
    begin[j] = slope[j] = j % 3 ? 2.0 : -4.0;
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < samples; ++i)
        square[j * count + k] += table[j * samples + i] * table[k * samples + i];
    square[j * count + j] += 1.0;
  }
  const double worst = loops.descend_model(square.data(), count, weights.data(), slope.data(), 1e-9, 10000);
  check(worst <= 1e-9, "the passes over a model come to an end");
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t k = 0; k < count; ++k) begin[j] += square[j * count + k] * (weights[k] - 0.5);
    check(std::fabs(begin[j] - slope[j]) < 1e-8, "the slope of a model stays that of the weights");
  }
}

void test_linear(std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::int64_t n : {7, 50})  // not a multiple of 7 where the order is made by it
    for (std::int64_t d : {1, 5, 8, 33, 70}) {
      const std::int64_t count = n + 1;
      std::vector<float> single(count * d);
      std::vector<double> table(count * d), kept;
      std::vector<float> kept_single;
      std::vector<std::int32_t> starts(1, 0), features;
      std::vector<double> first, objective;
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t k = 0; k < d; ++k) {
          const float value = uniform(random);
          if (value > 0.2f) {
            single[i * d + k] = value;
            table[i * d + k] = value;
            kept.push_back(value);
            kept_single.push_back(value);
            features.push_back(static_cast<std::int32_t>(k));
          }
        }
        starts.push_back(static_cast<std::int32_t>(kept.size()));
      }
      const std::vector<std::int64_t> long_starts(starts.begin(), starts.end()),
          long_features(features.begin(), features.end());
      for (const Level& level : usable_levels()) {
        const LinearLoops& loops = *level.linear;
        test_model(loops, table, count, d);
        test_rows(DenseRows<float>{single.data(), d}, loops.dense_single, table, count, d, first);
        test_columns(DenseRows<float>{single.data(), d}, loops.dense_single, table, count, d, objective);
        test_rows(DenseRows<double>{table.data(), d}, loops.dense_double, table, count, d, first);
        test_columns(DenseRows<double>{table.data(), d}, loops.dense_double, table, count, d, objective);
        using Short = std::int32_t;
        using Long = std::int64_t;
        test_rows(CompressedRows<float, Short>{starts.data(), features.data(), kept_single.data(), d},
                  loops.short_single, table, count, d, first);
        test_columns(CompressedRows<float, Short>{starts.data(), features.data(), kept_single.data(), d},
                     loops.short_single, table, count, d, objective);
        test_rows(CompressedRows<double, Short>{starts.data(), features.data(), kept.data(), d}, loops.short_double,
                  table, count, d, first);
        test_columns(CompressedRows<double, Short>{starts.data(), features.data(), kept.data(), d}, loops.short_double,
                     table, count, d, objective);
        test_rows(CompressedRows<float, Long>{long_starts.data(), long_features.data(), kept_single.data(), d},
                  loops.long_single, table, count, d, first);
        test_columns(CompressedRows<float, Long>{long_starts.data(), long_features.data(), kept_single.data(), d},
                     loops.long_single, table, count, d, objective);
        test_rows(CompressedRows<double, Long>{long_starts.data(), long_features.data(), kept.data(), d},
                  loops.long_double, table, count, d, first);
        test_columns(CompressedRows<double, Long>{long_starts.data(), long_features.data(), kept.data(), d},
                     loops.long_double, table, count, d, objective);
      }
    }
}

// Stochastic subgradient steps on dense and compressed rows, in exactly as much memory as they take, against weights
// that are written out in every step. The first step of 1/t makes the scale 0; the ball is small enough to be hit.
template <class Rows>
void check_descent(const Rows& rows, const RowLoops<Rows>& loops, const std::vector<double>& dense, std::int64_t n,
                   std::int64_t width, std::int64_t batch, double radius) {
  std::vector<double> linear(n), lower(n, -1.0), upper(n, 1.0), ridge(n), direction(width + 1, 0.0),
      sums(width + 1, 0.0);
  std::vector<double> answers(n, 0.0), visits(n, 0.0), room(batch), offset{0.0}, offset_sums{0.0}, share{0.02};
  std::vector<std::int32_t> group(n);
  std::vector<std::int64_t> order(3 * n);
  for (std::int64_t i = 0; i < n; ++i) {
    linear[i] = i % 2 ? 1.0 : -1.0;
    ridge[i] = i % 3 ? 0.0 : 0.5;
    group[i] = i % 5 ? 0 : -1;
  }
  for (std::int64_t k = 0; k < 3 * n; ++k) order[k] = (7 * k + k / n) % n;
  DescentState s{direction.data(),
                 sums.data(),
                 offset.data(),
                 offset_sums.data(),
                 linear.data(),
                 lower.data(),
                 upper.data(),
                 ridge.data(),
                 nullptr,
                 group.data(),
                 share.data(),
                 answers.data(),
                 visits.data(),
                 room.data(),
                 width,
                 1,
                 0.5,
                 static_cast<double>(n),
                 1.0,
                 1.0,
                 0.0,
                 0.7,
                 radius,
                 true,
                 1.0,
                 0.0,
                 0.0,
                 0.0,
                 0.0,
                 0};
  loops.descend(rows, s, order.data(), 0, 2 * n, batch);
  loops.descend(rows, s, order.data(), 2 * n, 3 * n, batch);

  std::vector<double> w(width + 1, 0.0), sum(width + 1, 0.0), answer(batch);
  double rho = 0.0, total = 0.0;
  std::int64_t t = 0;
  for (std::int64_t begin : {std::int64_t{0}, 2 * n})
    for (std::int64_t first = begin, end = begin ? 3 * n : 2 * n, last; first < end; first = last) {
      last = std::min(end, first + batch);
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t i = order[k];
        double z = linear[i] - 0.5 * w[width] - (group[i] < 0 ? 0.0 : rho);
        for (std::int64_t j = 0; j < width; ++j) z -= dense[i * width + j] * w[j];
        const double wish = ridge[i] > 0.0 ? z / ridge[i] : z > 0.0 ? 1.0 : z < 0.0 ? -1.0 : 0.0;
        answer[k - first] = std::min(1.0, std::max(-1.0, wish));
      }
      const double eta = 1.0 / static_cast<double>(++t),
                   push = eta * static_cast<double>(n) / static_cast<double>(last - first);
      for (double& value : w) value *= 1.0 - eta;
      rho -= 0.7 * eta * static_cast<double>(n) * 0.02;
      double length = 0.0;
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t i = order[k];
        for (std::int64_t j = 0; j < width; ++j) w[j] += push * answer[k - first] * dense[i * width + j];
        w[width] += push * answer[k - first] * 0.5;
        if (group[i] >= 0) rho += 0.7 * push * answer[k - first];
      }
      for (double value : w) length += value * value;
      if (length > radius * radius)
        for (double& value : w) value *= radius / std::sqrt(length);
      for (std::int64_t j = 0; j <= width; ++j) sum[j] += static_cast<double>(t) * w[j];
      total += static_cast<double>(t);
    }
  check(s.steps == t && s.weights == total, "steps are counted");
  for (std::int64_t j = 0; j <= width; ++j) {
    check(std::fabs(s.scale * direction[j] - w[j]) < 1e-8, "weights of stochastic steps");
    check(std::fabs(s.factor * direction[j] + sums[j] - sum[j]) < 1e-8 * total, "sums of stochastic steps");
  }
  check(std::fabs(offset[0] - rho) < 1e-8, "offsets of stochastic steps");
}

void test_stochastic_steps(std::mt19937& random) {
  std::normal_distribution<double> normal;
  const std::int64_t n = 23;
  for (std::int64_t width : {1, 3, 4, 7, 8, 9, 17, 33, 70}) {
    std::vector<double> dense(n * width), values;
    std::vector<std::int32_t> features, starts{0};
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        dense[i * width + j] = (i + j) % 3 ? 0.0 : static_cast<float>(normal(random));
        if (dense[i * width + j] == 0.0) continue;
        values.push_back(dense[i * width + j]);
        features.push_back(static_cast<std::int32_t>(j));
      }
      starts.push_back(static_cast<std::int32_t>(values.size()));
    }
    const std::vector<float> single(dense.begin(), dense.end());
    for (const Level& level : usable_levels())
      for (std::int64_t batch : {1, 4})
        for (double radius : {2.0, static_cast<double>(INFINITY)}) {
          check_descent(DenseRows<double>{dense.data(), width}, level.linear->dense_double, dense, n, width, batch,
                        radius);
          check_descent(DenseRows<float>{single.data(), width}, level.linear->dense_single, dense, n, width, batch,
                        radius);
          check_descent(CompressedRows<double, std::int32_t>{starts.data(), features.data(), values.data(), width},
                        level.linear->short_double, dense, n, width, batch, radius);
        }
  }
}

// A stream with copies under both labels, with all rows at hand or a store of four: every level takes the same steps to
// the last bit, nothing of the poison beyond the slots gets in, and the gradient is that of a plain sum.
template <class Value, class Loop>
std::vector<double> stream(Loop loop, std::int64_t n, bool grouped, bool novelty, Rule rule, std::int64_t held,
                           std::int64_t& steps) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> x(n), linear(n), lower(n), upper(n), start(n, novelty ? 0.2 : 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    const double sign = novelty || i % 2 ? 1.0 : -1.0;
    x[i] = i % 5 == 4 ? x[i - 3] : normal(random) + 0.5 * sign;
    linear[i] = novelty ? 0.0 : sign;
    lower[i] = sign > 0 ? 0.0 : -2.0;
    upper[i] = sign > 0 ? 2.0 : 0.0;
    if (i % 7 == 6) lower[i] = upper[i] = start[i] = 0.0;  // takes no part
  }
  std::vector<Value> matrix(n * n), storage(held * (n + 3), static_cast<Value>(NAN));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      matrix[i * n + j] = static_cast<Value>(std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j])));
  std::vector<double> dual(n, NAN), gradient(n, NAN), low(n, NAN), high(n, NAN), diagonal(n), ridge(n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) diagonal[i] = static_cast<double>(matrix[i * n + i]);
  std::vector<std::int32_t> group(n, grouped ? 0 : -1);
  std::vector<std::int64_t> arrivals(n + 4, -1), slot(n, -1), length(held, n), last_use(held, 0), owner(held, -1);
  for (std::int64_t i = 0; i < n; ++i) arrivals[i] = i;
  for (auto* array : {&linear, &lower, &upper, &start}) array->resize(n + 4, 0.0);
  const OnlineArrays machine{dual.data(),  gradient.data(), low.data(), high.data(),           diagonal.data(),
                             ridge.data(), group.data(),    grouped,    n % 2 == 1 || !novelty};
  const Arrivals samples{arrivals.data(), linear.data(), lower.data(), upper.data(), start.data(), n + 4};
  RowStore<Value> rows{storage.data(), n + 3, slot.data(), length.data(), last_use.data(), 0, 0};
  OnlineProgress progress{0, 0, 0};
  steps = 0;
  for (;;) {
    const Outcome out = loop(machine, rows, samples, rule, progress, 1e-3, 10.0);
    steps += out.steps;
    if (out.reason == Reason::optimal) break;
    check(out.reason == Reason::needs_row, "a stream goes on");
    std::int64_t s = 0;
    for (std::int64_t k = 1; k < held; ++k)
      if (last_use[k] < last_use[s]) s = k;
    if (owner[s] >= 0) slot[owner[s]] = -1;
    for (std::int64_t k = 0; k < n; ++k) storage[s * (n + 3) + k] = matrix[out.row * n + k];
    owner[s] = out.row;
    slot[out.row] = s;
    last_use[s] = ++rows.clock;
  }
  check(progress.length == n, "all have come");
  for (std::int64_t i = 0; i < n; ++i) {
    check(std::isfinite(dual[i]) && low[i] <= dual[i] && dual[i] <= high[i], "values in their boxes");
    if (lower[i] == upper[i]) continue;
    double fresh = linear[i];
    for (std::int64_t j = 0; j < n; ++j) fresh -= static_cast<double>(matrix[i * n + j]) * dual[j];
    check(std::fabs(fresh - gradient[i]) < 1e-9, "the gradient of a stream");
  }
  return dual;
}

void test_online() {
  for (std::int64_t n : {1, 2, 3, 8, 17, 64})
    for (int rule = 0; rule < 2; ++rule)
      for (int kind = 0; kind < 3; ++kind) {
        std::vector<double> single, twice;
        std::int64_t first = 0, steps = 0;
        for (const Level& level : usable_levels())
          for (std::int64_t held : {n + 4, std::int64_t{4}}) {
            const auto a = stream<float>(level.solvers->online_single, n, kind > 0, kind > 1, static_cast<Rule>(rule),
                                         held, steps);
            if (single.empty()) {
              single = a;
              first = steps;
            }
            check(steps == first && std::memcmp(single.data(), a.data(), n * sizeof(double)) == 0,
                  "levels agree on a stream");
            const auto b =
                stream<double>(level.solvers->online, n, kind > 0, kind > 1, static_cast<Rule>(rule), held, steps);
            if (twice.empty()) twice = b;
            check(std::memcmp(twice.data(), b.data(), n * sizeof(double)) == 0, "levels agree on a stream");
          }
      }
}

// An exception of any thread is thrown again by the caller's thread, and only after all threads have ended.
void test_parallel_exceptions() {
  for (int threads : {1, 2, 5})
    for (std::int64_t failing : {0, 3, 99}) {
      std::atomic<int> running{0};
      bool caught = false;
      try {
        in_parallel(threads, 100, 1, [&](std::int64_t k, std::int64_t, int) {
          ++running;
          if (k >= failing) {
            --running;
            throw std::runtime_error("of a worker");
          }
          --running;
        });
      } catch (const std::runtime_error&) { caught = true; }
      check(caught && running == 0, "an exception of a worker thread reaches the caller");
    }
  std::atomic<std::int64_t> sum{0};
  in_parallel(3, 100, 7, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
  check(sum == 100, "all chunks are taken once");
}

}  // namespace

int main() {
  test_parallel_exceptions();
  std::mt19937 random(1);
  test_dense_blocks<float>(random);
  test_dense_blocks<double>(random);
  test_dense_squares<float>(random);
  test_dense_squares<double>(random);
  test_sparse_blocks<float>(random);
  test_sparse_blocks<double>(random);
  test_subtract_rows(random);
  test_pairwise();
  test_one_group();
  test_free_equations();
  test_whole_problem();
  test_unbounded_single();
  test_linear(random);
  test_stochastic_steps(random);
  test_online();
  for (const Level& level : usable_levels()) std::printf("level %s passed\n", level.name);
  return 0;
}
