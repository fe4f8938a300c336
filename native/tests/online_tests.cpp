// Tests of online learning: all instruction sets take the same steps, with all rows or with a cache of four.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

// A stream with duplicates of both labels, with all rows cached or a cache of four: all levels take the same steps to
// the last bit, the NaN beyond the slots has no effect, and the gradient is that of a direct sum.
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
    if (i % 7 == 6) lower[i] = upper[i] = start[i] = 0.0;  // excluded
  }
  std::vector<Value> matrix(n * n), storage(held * (n + 3), static_cast<Value>(NAN));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      matrix[i * n + j] = static_cast<Value>(std::exp(-0.5 * (x[i] - x[j]) * (x[i] - x[j])));
  std::vector<double> dual(n, NAN), gradient(n, NAN), low(n, NAN), high(n, NAN), diagonal(n), ridge(n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) diagonal[i] = static_cast<double>(matrix[i * n + i]);
  std::vector<std::int32_t> group(n, grouped ? 0 : -1);
  std::vector<std::int64_t> arrivals(n + 4, -1), slot(n, -1), valid(held, n), last_use(held, 0), owner(held, -1);
  for (std::int64_t i = 0; i < n; ++i) arrivals[i] = i;
  for (auto* array : {&linear, &lower, &upper, &start}) array->resize(n + 4, 0.0);
  const OnlineArrays model{dual.data(),  gradient.data(), low.data(), high.data(),           diagonal.data(),
                           ridge.data(), group.data(),    grouped,    n % 2 == 1 || !novelty};
  const Arrivals samples{arrivals.data(), linear.data(), lower.data(), upper.data(), start.data(), n + 4};
  RowCache<Value> rows{storage.data(), n + 3, slot.data(), valid.data(), last_use.data(), 0, 0};
  OnlineProgress progress{0, 0, 0};
  steps = 0;
  for (;;) {
    const Outcome out = loop(model, rows, samples, rule, progress, 1e-3, 10.0);
    steps += out.steps;
    if (out.reason == StopReason::optimal) break;
    check(out.reason == StopReason::needs_row, "a stream goes on");
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

void test_streams() {
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

}  // namespace

void test_online() { test_streams(); }
