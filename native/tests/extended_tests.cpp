// Tests of the loops in double-double arithmetic: the same bits with every instruction set, and values that agree with
// sums in long double.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

struct Numbers {
  std::vector<double> high, low;
  explicit Numbers(std::size_t count) : high(count), low(count) {}
  ExtendedOutput out() { return {high.data(), low.data()}; }
  ExtendedInput in() const { return {high.data(), low.data()}; }
  long double operator[](std::size_t k) const { return static_cast<long double>(high[k]) + low[k]; }
};

void check_close(long double found, long double wanted, long double size, const char* what) {
  check(std::fabs(found - wanted) <= 1e-17L * size, what);  // long double may have the 53 bits of double elsewhere
}

// Rows of features, dense and compressed, times weights that almost cancel.
void test_rows(const Level& level, std::int64_t count, std::int64_t width) {
  std::mt19937_64 random(count * 100 + width);
  std::normal_distribution<double> normal;
  std::vector<double> values(count * width);
  for (double& x : values) x = normal(random);
  std::vector<std::int32_t> starts(count + 1), features(count * width);
  for (std::int64_t k = 0; k <= count; ++k) starts[k] = static_cast<std::int32_t>(k * width);
  for (std::int64_t k = 0; k < count * width; ++k) features[k] = static_cast<std::int32_t>(k % width);
  const DenseRows<double> dense{values.data(), width};
  const CompressedRows<double, std::int32_t> compressed{starts.data(), features.data(), values.data(), width};
  Numbers weights(width), factors(count);
  for (double& x : weights.high) x = 1e6 * normal(random);
  for (double& x : factors.high) x = 1e6 * normal(random);
  for (std::int64_t k = 0; k < width; ++k) weights.low[k] = weights.high[k] * 1e-17;

  Numbers decisions(count), same(count), sums(width), same_sums(width);
  level.extended->dense_double.decisions(dense, nullptr, 0, count, weights.in(), decisions.out());
  level.extended->short_double.decisions(compressed, nullptr, 0, count, weights.in(), same.out());
  for (std::int64_t r = 0; r < count; ++r) {
    long double sum = 0, size = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      sum += static_cast<long double>(values[r * width + k]) * weights[k];
      size += std::fabs(values[r * width + k] * weights.high[k]);
    }
    check_close(decisions[r], sum, size, "decisions of dense rows");
    check_close(same[r], decisions[r], 1e-9L * size, "decisions of compressed rows");
  }
  level.extended->dense_double.combine(dense, nullptr, 0, count, factors.in(), sums.out());
  level.extended->short_double.combine(compressed, nullptr, 0, count, factors.in(), same_sums.out());
  level.extended->normalise(sums.out(), width);
  for (std::int64_t k = 0; k < width; ++k) {
    long double sum = 0, size = 0;
    for (std::int64_t r = 0; r < count; ++r) {
      sum += static_cast<long double>(values[r * width + k]) * factors.high[r];
      size += std::fabs(values[r * width + k] * factors.high[r]);
    }
    check_close(sums[k], sum, size, "combination of dense rows");
    check_close(same_sums[k], sums[k], 1e-9L * size, "combination of compressed rows");
    check(std::fabs(sums.low[k]) <= std::fabs(sums.high[k]), "the low part is the smaller one");
  }
}

// Kernel values of packed samples in exactly as much memory as they take, so that the sanitiser detects a read beyond
// it.
Numbers block(const Level& level, const Formula& f, std::int64_t rows, std::int64_t columns, std::int64_t features,
              const double* weights) {
  const auto& loops = level.kernels->in_double;
  std::mt19937_64 random(rows + 7 * columns);
  std::uniform_real_distribution<double> uniform;
  std::vector<double> data((rows + columns) * features);
  for (double& x : data) x = uniform(random);
  std::vector<std::int64_t> left(rows), right(columns);
  for (std::int64_t k = 0; k < rows; ++k) left[k] = k;
  for (std::int64_t k = 0; k < columns; ++k) right[k] = rows + k;
  const auto padded = [](std::int64_t count, int width) { return (count + width - 1) / width * width; };
  std::vector<double> strips(padded(rows, loops.strip) * features), panels(padded(columns, loops.panel) * features);
  std::vector<double> strip_norms(padded(rows, loops.strip)), panel_norms(padded(columns, loops.panel));
  loops.pack(data.data(), left.data(), rows, features, loops.strip, nullptr, nullptr, strips.data(),
             strip_norms.data());
  loops.pack(data.data(), right.data(), columns, features, loops.panel, nullptr, nullptr, panels.data(),
             panel_norms.data());
  Numbers values(rows * columns);
  const std::int64_t last = (rows + loops.strip - 1) / loops.strip;
  level.extended->dense[static_cast<int>(f.term)](f, {strips.data(), strip_norms.data(), rows},
                                                  {panels.data(), panel_norms.data(), columns}, features, weights, 0,
                                                  last, columns, values.out());
  return values;
}

void test_blocks(std::int64_t rows, std::int64_t columns, std::int64_t features) {
  const std::vector<Formula> formulas = {{Term::product, Function::power, 0.3, 0.7, 5},
                                         {Term::product, Function::tangent, 0.3, -0.2, 0},
                                         {Term::squared, Function::exponential, 0.3, 0.0, 0},
                                         {Term::absolute, Function::exponential, 0.3, 0.0, 0},
                                         {Term::chi_squared, Function::exponential, 0.3, 0.0, 0}};
  const std::vector<Level> levels = usable_levels();
  std::vector<double> some(features, 0.7), ones(features, 1.0);
  some[0] = 0.0;
  for (const Formula& f : formulas) {
    const Numbers first = block(levels[0], f, rows, columns, features, nullptr);
    const Numbers equal = block(levels[0], f, rows, columns, features, ones.data());
    check(first.high == equal.high && first.low == equal.low, "weights of 1 change nothing");
    const Numbers weighted = block(levels[0], f, rows, columns, features, some.data());
    for (std::size_t k = 0; k < first.high.size(); ++k)
      check(std::isfinite(first.high[k]) && std::fabs(first.low[k]) <= 1e-15 * std::fabs(first.high[k]),
            "kernel values are pairs of a number and its rest");
    for (const Level& level : levels) {
      const Numbers same = block(level, f, rows, columns, features, nullptr);
      check(same.high == first.high && same.low == first.low, "instruction sets agree to the last bit");
      const Numbers again = block(level, f, rows, columns, features, some.data());
      check(again.high == weighted.high && again.low == weighted.low, "also with weights");
    }
  }
}

}  // namespace

void test_extended() {
  for (const Level& level : usable_levels())
    for (std::int64_t count : {1, 7, 40})
      for (std::int64_t width : {1, 3, 8, 17}) test_rows(level, count, width);
  for (std::int64_t size : {1, 5, 16, 33}) test_blocks(size, 2 * size + 1, 3);
}
