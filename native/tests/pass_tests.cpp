// Tests of the sums of a pass over a block, sample by sample against direct formulas.
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

// Samples of a block, with kinks and proximal centres; every third one has no ridge.
struct PassData {
  std::vector<double> linear, lower, upper, ridge, kink;
  std::vector<std::int32_t> kinds;
  std::vector<float> centre;
  std::vector<std::int64_t> indices;

  explicit PassData(std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      linear.push_back(std::sin(1.0 + i));
      lower.push_back(i % 2 ? 0.0 : -1.0);
      upper.push_back(i % 5 ? 0.7 : 0.0);
      ridge.push_back(i % 3 ? 0.25 * (i % 3) : 0.0);
      kink.push_back(i % 4 ? 0.1 : 0.0);
      kinds.push_back(static_cast<std::int32_t>((i * 5) % n));
      centre.push_back(0.1f * static_cast<float>(i % 7 - 3));
      indices.push_back(n - 1 - i);
    }
  }
};

double clip(double value, double lower, double upper) { return std::fmin(std::fmax(value, lower), upper); }

double response_of(double beyond, double lower, double upper, double ridge) {
  if (ridge > 0.0) return clip(beyond / ridge, lower, upper);
  return beyond > 0.0 ? upper : beyond < 0.0 ? lower : clip(0.0, lower, upper);
}

// Samples [begin, n); arrays end where their last value does, so that sanitisers see a read beyond it.
template <class Rows>
void test_pass(const Rows& rows, const RowLoops<Rows>& loops, const std::vector<double>& table, const PassData& data,
               std::int64_t n, std::int64_t d, std::int64_t begin, bool by_kind, double sigma) {
  std::vector<double> w(d), response(n, 7.0), weights(2 * d, 0.0), expected(2 * d, 0.0);
  for (std::int64_t k = 0; k < d; ++k) w[k] = std::cos(1.0 + k);
  const std::unique_ptr<bool[]> free(new bool[n]);
  const double shift = 0.01, offset = -0.2;
  const PassProblem problem{data.linear.data(),
                            data.lower.data(),
                            data.upper.data(),
                            data.ridge.data(),
                            data.kink.data(),
                            by_kind ? data.kinds.data() : nullptr,
                            data.centre.data(),
                            shift,
                            offset,
                            sigma,
                            0.0,
                            response.data(),
                            free.get()};
  PassTotals totals;
  loops.sum_pass(rows, by_kind ? data.indices.data() : nullptr, problem, w.data(), begin, n, totals, weights.data());
  double loss = 0.0, size = 0.0, square = 0.0, sums[2] = {0.0, 0.0}, linear[2] = {0.0, 0.0}, ridges[2] = {0.0, 0.0};
  std::int64_t count = 0;
  for (std::int64_t i = begin; i < n; ++i) {
    const std::int64_t row = by_kind ? data.indices[i] : i, kind = by_kind ? data.kinds[i] : i;
    const double lower = data.lower[kind], upper = data.upper[kind], ridge = data.ridge[kind], kink = data.kink[kind];
    double z = data.linear[kind] - shift - offset;
    for (std::int64_t k = 0; k < d; ++k) z -= table[row * d + k] * w[k];
    const auto beyond = [&](double slack) { return std::copysign(std::fmax(std::fabs(slack) - kink, 0.0), slack); };
    const double exact = response_of(beyond(z), lower, upper, ridge);
    const double smoothed = clip(beyond(z + sigma * data.centre[i]) / (ridge + sigma), lower, upper);
    const double b = sigma > 0.0 ? smoothed : exact;
    check(std::fabs(b - response[i]) < 1e-9, "the responses of a pass");
    loss += exact * beyond(z) - 0.5 * ridge * exact * exact;
    square += z * z;
    size += (std::fabs(data.linear[kind]) + kink + 1.0) * std::fabs(b);
    const bool is_free = response[i] > lower && response[i] < upper && response[i] != 0.0;
    check(free[i] == is_free, "free samples of a pass");
    count += is_free;
    const int sign = b < 0.0;
    sums[sign] += b;
    linear[sign] += data.linear[kind] * b - kink * std::fabs(b);
    ridges[sign] += ridge * b * b;
    for (std::int64_t k = 0; k < d; ++k) expected[sign * d + k] += b * table[row * d + k];
  }
  const double tolerance = 1e-9 * static_cast<double>(n);
  check(std::fabs(loss - totals.loss) < tolerance && std::fabs(square - totals.slack_square) < tolerance &&
            std::fabs(size - totals.size) < tolerance && count == totals.free,
        "the sums of a pass");
  for (int sign = 0; sign < 2; ++sign)
    check(std::fabs(sums[sign] - totals.total[sign]) < tolerance &&
              std::fabs(linear[sign] - totals.linear[sign]) < tolerance &&
              std::fabs(ridges[sign] - totals.ridge[sign]) < tolerance,
          "the sums of positive and negative responses");
  for (std::int64_t k = 0; k < 2 * d; ++k)
    check(std::fabs(expected[k] - weights[k]) < tolerance, "the weights of the responses of a pass");
}

}  // namespace

void test_passes() {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::int64_t n : {1, 2, 7, 63, 64, 65, 131})
    for (std::int64_t d : {0, 1, 3, 4, 7, 8, 17}) {
      std::vector<double> table, kept;
      std::vector<float> single;
      std::vector<std::int32_t> short_starts(1, 0), features;
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t k = 0; k < d; ++k) {
          const float drawn = uniform(random), value = drawn > 0.2f ? drawn : 0.0f;
          single.push_back(value);
          table.push_back(value);
          if (value == 0.0f) continue;
          kept.push_back(value);
          features.push_back(static_cast<std::int32_t>(k));
        }
        short_starts.push_back(static_cast<std::int32_t>(kept.size()));
      }
      const PassData data(n);
      for (const Level& level : usable_levels())
        for (const bool by_kind : {false, true})
          for (const double sigma : {0.0, 0.5})
            for (const std::int64_t begin : {std::int64_t{0}, n / 3}) {
              const LinearLoops& loops = *level.linear;
              test_pass(DenseRows<float>{single.data(), d}, loops.dense_single, table, data, n, d, begin, by_kind,
                        sigma);
              test_pass(DenseRows<double>{table.data(), d}, loops.dense_double, table, data, n, d, begin, by_kind,
                        sigma);
              test_pass(CompressedRows<double, std::int32_t>{short_starts.data(), features.data(), kept.data(), d},
                        loops.short_double, table, data, n, d, begin, by_kind, sigma);
            }
    }
}
