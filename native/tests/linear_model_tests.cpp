// Tests of the loops over rows of features: products, coordinate ascent and descent, stochastic subgradient steps.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

// Products of rows against direct formulas; then passes of coordinate ascent, after which w = Σ b_i x_i must hold.
template <class Rows>
void test_rows(const Rows& rows, const RowLoops<Rows>& loops, const std::vector<double>& table, std::int64_t n,
               std::int64_t d, std::vector<double>& first) {
  std::vector<double> w(d), b(n), decisions(n), combined(d, 0.0), norms(n), sums(d, 0.0), square(d * d, 0.0);
  for (std::int64_t k = 0; k < d; ++k) w[k] = std::cos(1.0 + k);
  for (std::int64_t i = 0; i < n; ++i) b[i] = i % 3 ? std::sin(2.0 + i) : 0.0;
  loops.decisions(rows, nullptr, 0, n, w.data(), decisions.data());
  loops.combine(rows, nullptr, 0, n, b.data(), combined.data());
  loops.squared_norms(rows, nullptr, 0, n, norms.data());
  std::vector<double> sizes(n), buffer(kMomentRows * (d + kMomentPadding));
  for (std::int64_t i = 0; i < n; ++i) sizes[i] = std::fabs(b[i]);
  loops.add_moments(rows, nullptr, 0, n, sizes.data(), nullptr, buffer.data(), sums.data(), square.data(), d);
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
    const AscentResult out = loops.ascend(rows, state, order.data(), 0, left);
    left = out.remaining;
    state.shrink_above = out.highest > 0 ? out.highest : HUGE_VAL;
    state.shrink_below = out.lowest < 0 ? -out.lowest : HUGE_VAL;
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

// Coordinate descent with the rows as columns: the objective never increases, the slacks stay those of the weights, and
// levels and kinds of rows agree.
template <class Rows>
void test_columns(const Rows& columns, const RowLoops<Rows>& loops, const std::vector<double>& table,
                  std::int64_t count, std::int64_t samples, std::vector<double>& first) {
  std::vector<double> weights(count, 0.0), slack(samples), inverse_ridge(samples), lower(samples), upper(samples),
      curvature(count, 0.0);
  std::vector<std::int64_t> order(count);
  for (std::int64_t i = 0; i < samples; ++i) {
    slack[i] = i % 2 ? 1.0 : -1.0;
    inverse_ridge[i] = 3.0 + i % 5;
    lower[i] = i % 2 ? 0.0 : -HUGE_VAL;
    upper[i] = i % 2 ? HUGE_VAL : 0.0;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    order[j] = (j * 7) % count;
    for (std::int64_t i = 0; i < samples; ++i)
      curvature[j] += table[j * samples + i] * table[j * samples + i] * inverse_ridge[i];
  }
  ColumnState state{weights.data(), slack.data(), inverse_ridge.data(), lower.data(), upper.data(), curvature.data()};
  double value = HUGE_VAL;
  for (int pass = 0; pass < 30; ++pass) {
    loops.descend_columns(columns, state, order.data(), count);
    double now = 0.0;
    for (double w : weights) now += std::fabs(w);
    for (std::int64_t i = 0; i < samples; ++i) {
      const double z = slack[i] > 0.0 ? (i % 2 ? slack[i] : 0.0) : (i % 2 ? 0.0 : -slack[i]);
      now += 0.5 * inverse_ridge[i] * z * z;
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

// The quadratic model: the slope stays that of the weights, and the passes converge.
void test_model(const LinearLoops& loops, const std::vector<double>& table, std::int64_t count, std::int64_t samples) {
  std::vector<double> square(count * count, 0.0), weights(count, 0.5), slope(count), begin(count);
  for (std::int64_t j = 0; j < count; ++j) {
    begin[j] = slope[j] = j % 3 ? 2.0 : -4.0;
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < samples; ++i)
        square[j * count + k] += table[j * samples + i] * table[k * samples + i];
    square[j * count + j] += 1.0;
  }
  const double largest = loops.descend_model(square.data(), count, weights.data(), slope.data(), 1e-9, 10000);
  check(largest <= 1e-9, "the passes over a model converge");
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t k = 0; k < count; ++k) begin[j] += square[j * count + k] * (weights[k] - 0.5);
    check(std::fabs(begin[j] - slope[j]) < 1e-8, "the slope of a model stays that of the weights");
  }
}

void test_linear(std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::int64_t n : {7, 50})  // n + 1 is not a multiple of 7, which generates the order
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
// that are updated in full in every step. The first step of 1/t makes the scale 0; projections to the ball occur.
template <class Rows>
void check_descent(const Rows& rows, const RowLoops<Rows>& loops, const std::vector<double>& dense, std::int64_t n,
                   std::int64_t width, std::int64_t batch, double radius) {
  std::vector<double> linear(n), lower(n, -1.0), upper(n, 1.0), ridge(n), direction(width + 1, 0.0),
      sums(width + 1, 0.0);
  std::vector<double> responses(n, 0.0), visits(n, 0.0), buffer(batch), offset{0.0}, offset_sums{0.0}, share{0.02};
  std::vector<std::int32_t> group(n);
  std::vector<std::int64_t> order(3 * n);
  for (std::int64_t i = 0; i < n; ++i) {
    linear[i] = i % 2 ? 1.0 : -1.0;
    ridge[i] = i % 3 ? 0.0 : 0.5;
    group[i] = i % 5 ? 0 : -1;
  }
  for (std::int64_t k = 0; k < 3 * n; ++k) order[k] = (7 * k + k / n) % n;
  SubgradientState s{direction.data(),
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
                     responses.data(),
                     visits.data(),
                     buffer.data(),
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
  loops.subgradient_steps(rows, s, order.data(), 2 * n, batch);
  loops.subgradient_steps(rows, s, order.data() + 2 * n, n, batch);

  std::vector<double> w(width + 1, 0.0), sum(width + 1, 0.0), response(batch);
  double rho = 0.0, total = 0.0;
  std::int64_t t = 0;
  for (std::int64_t begin : {std::int64_t{0}, 2 * n})
    for (std::int64_t first = begin, end = begin ? 3 * n : 2 * n, last; first < end; first = last) {
      last = std::min(end, first + batch);
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t i = order[k];
        double z = linear[i] - 0.5 * w[width] - (group[i] < 0 ? 0.0 : rho);
        for (std::int64_t j = 0; j < width; ++j) z -= dense[i * width + j] * w[j];
        const double unclipped = ridge[i] > 0.0 ? z / ridge[i] : z > 0.0 ? 1.0 : z < 0.0 ? -1.0 : 0.0;
        response[k - first] = std::min(1.0, std::max(-1.0, unclipped));
      }
      const double eta = 1.0 / static_cast<double>(++t),
                   rate = eta * static_cast<double>(n) / static_cast<double>(last - first);
      for (double& value : w) value *= 1.0 - eta;
      rho -= 0.7 * eta * static_cast<double>(n) * 0.02;
      double length = 0.0;
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t i = order[k];
        for (std::int64_t j = 0; j < width; ++j) w[j] += rate * response[k - first] * dense[i * width + j];
        w[width] += rate * response[k - first] * 0.5;
        if (group[i] >= 0) rho += 0.7 * rate * response[k - first];
      }
      for (double value : w) length += value * value;
      if (length > radius * radius)
        for (double& value : w) value *= radius / std::sqrt(length);
      for (std::int64_t j = 0; j <= width; ++j) sum[j] += static_cast<double>(t) * w[j];
      total += static_cast<double>(t);
    }
  check(s.steps == t && s.weight_sum == total, "steps are counted");
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

}  // namespace

void test_linear_models() {
  std::mt19937 random(1);
  test_linear(random);
  test_stochastic_steps(random);
}
