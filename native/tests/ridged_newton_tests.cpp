// Tests of the Newton method for squared losses: at its end w = Fᵀβ(w), and the responses of a group have the sum 0.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"
#include "ridged_newton.hpp"

using namespace maxmargin;

namespace {

struct Case {
  std::int64_t rows, width, copies;  // variables of each row
  bool grouped, equal_ridges;
  double constant;
  int threads;
};

// The problem of a case with half of its values 0: of targets where a row has two variables, else of two classes.
template <class Rows>
void check_optimum(const Case& c, const Rows& rows, const RowLoops<Rows>& loops, const LinearLoops& linear_loops,
                   const std::vector<double>& table) {
  const std::int64_t m = c.rows, n = m * c.copies, d = c.width;
  std::vector<double> linear(n), lower(n), upper(n), ridge(n), dual(n), slack(n), buffer(n);
  for (std::int64_t k = 0; k < n; ++k) {
    const double side =
        c.copies == 1 ? (table[k % m * d] + 0.3 * std::sin(3.0 * k) > 0.0 ? 1.0 : -1.0) : (k < m ? 1.0 : -1.0);
    linear[k] = c.copies == 1 ? side : std::sin(static_cast<double>(k % m)) - 0.1 * side;
    lower[k] = side > 0.0 ? 0.0 : -HUGE_VAL;
    upper[k] = side > 0.0 ? HUGE_VAL : 0.0;
    ridge[k] = c.equal_ridges ? 0.5 : 0.3 + 0.1 * static_cast<double>(k % 4);
  }
  RidgedNewton solver(rows, loops, linear_loops,
                      {n, m, d, nullptr, linear.data(), lower.data(), upper.data(), ridge.data(), c.grouped},
                      {c.constant, 1e-9, 0.0, 200, HUGE_VAL, c.threads}, dual.data(), slack.data(), buffer.data());
  const SmallLinearOutcome out = solver.solve();
  check(out.converged, "the Newton method for squared losses converges");
  const std::vector<double>& w = solver.weights();
  std::vector<double> combined(d + 1, 0.0);
  double sum = 0.0, size = 0.0, norm = 0.0, distance = 0.0;
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t j = 0; j < d; ++j) combined[j] += dual[k] * table[k % m * d + j];
    sum += dual[k];
    size += std::fabs(dual[k]);
    check(dual[k] >= lower[k] && dual[k] <= upper[k], "responses are within their bounds");
  }
  combined[d] = c.constant * sum;
  for (std::int64_t j = 0; j <= d; ++j) {
    check(std::fabs(combined[j] - solver.dual_weights()[j]) <= 1e-9 * (1.0 + size), "the weights of the responses");
    distance += (w[j] - combined[j]) * (w[j] - combined[j]);
    norm += w[j] * w[j];
  }
  check(distance <= 1e-6 * norm, "the gradient is 0");
  check(!c.grouped || std::fabs(sum) <= 1e-10 * size, "the responses of a group have the sum 0");
}

}  // namespace

void test_ridged_newton() {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const Case& c : {Case{40, 3, 1, true, true, 0.0, 1}, Case{300, 9, 1, false, false, 1.0, 1},
                        Case{1500, 5, 2, true, false, 0.0, 3}, Case{7000, 4, 1, true, true, 0.0, 2},
                        Case{7000, 6, 2, false, true, 2.0, 1}}) {
    std::vector<double> table(c.rows * c.width), values;
    std::vector<std::int32_t> features, starts{0};
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < c.width; ++j) {
        double& value = table[i * c.width + j];
        value = (i + j) % 2 ? 0.0 : normal(random);
        if (value == 0.0) continue;
        values.push_back(value);
        features.push_back(static_cast<std::int32_t>(j));
      }
      starts.push_back(static_cast<std::int32_t>(values.size()));
    }
    for (const Level& level : usable_levels()) {
      check_optimum(c, DenseRows<double>{table.data(), c.width}, level.linear->dense_double, *level.linear, table);
      check_optimum(c, CompressedRows<double, std::int32_t>{starts.data(), features.data(), values.data(), c.width},
                    level.linear->short_double, *level.linear, table);
    }
  }
}
