// Tests of blocks of kernel values against a direct formula.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "instruction_sets.hpp"

using namespace maxmargin;

namespace {

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
    {Term::product, Function::identity, 0.0, 0.0, 0},
    {Term::product, Function::power, 0.3, 0.7, 5},
    {Term::product, Function::tangent, 0.3, -0.2, 0},
    {Term::product, Function::gaussian_of_product, 0.3, 0.0, 0},
    {Term::product, Function::gaussian_of_product, 12.0, 0.0, 0},  // samples near and far from the centre
    {Term::squared, Function::exponential, 0.3, 0.0, 0},
    {Term::absolute, Function::exponential, 0.3, 0.0, 0},
    {Term::chi_squared, Function::exponential, 0.3, 0.0, 0}};

template <class T> const BlockLoops<T>& blocks(const Level& level) {
  if constexpr (sizeof(T) == 4)
    return level.kernels->in_single;
  else
    return level.kernels->in_double;
}

// Packed samples in exactly as much memory as they take, so that the sanitiser detects a read beyond it.
template <class T> struct Packed {
  std::vector<T> values, norms;
  Packed(const BlockLoops<T>& loops, const std::vector<double>& data, const std::vector<std::int64_t>& indices,
         std::int64_t features, int width) {
    const std::int64_t padded = (static_cast<std::int64_t>(indices.size()) + width - 1) / width * width;
    values.resize(padded * features);
    norms.resize(padded);
    loops.pack(data.data(), indices.data(), indices.size(), features, width, nullptr, nullptr, values.data(),
               norms.data());
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
        std::vector<std::int64_t> left_indices(rows), right_indices(columns);
        for (std::int64_t r = 0; r < rows; ++r) left_indices[r] = rows - 1 - r;
        for (std::int64_t c = 0; c < columns; ++c) right_indices[c] = (c * 7) % columns;
        for (const Level& level : usable_levels())
          for (const Formula& f : kFormulas) {
            const BlockLoops<T>& loops = blocks<T>(level);
            const Packed<T> strips(loops, left, left_indices, features, loops.strip);
            const Packed<T> panels(loops, right, right_indices, features, loops.panel);
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
                  const double x = left[left_indices[r] * features + k], z = right[right_indices[c] * features + k];
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

// Kernel values of samples with themselves: mirrored values, the diagonal and those of one row equal those of the block
// to the last bit, for any division into panels.
template <class T> void test_dense_squares(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  for (std::int64_t features : {1, 7, 33})
    for (std::int64_t count : {1, 5, 33, 130, 300}) {
      std::vector<double> data(count * features);
      for (double& x : data) x = uniform(random);
      std::vector<std::int64_t> indices(count);
      for (std::int64_t r = 0; r < count; ++r) indices[r] = count - 1 - r;
      for (const Level& level : usable_levels())
        for (const Formula& f : kFormulas) {
          const BlockLoops<T>& loops = blocks<T>(level);
          const int term_code = static_cast<int>(f.term);
          const Packed<T> strips(loops, data, indices, features, loops.strip),
              packed(loops, data, indices, features, loops.panel);
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
          std::vector<T> stored(data.begin(), data.end()), diagonal(count);
          loops.dense_diagonal[term_code](f, stored.data(), indices.data(), count, features, diagonal.data());
          for (std::int64_t r = 0; r < count; ++r)
            check(f.function == Function::gaussian_of_product ? diagonal[r] == T(1) : diagonal[r] == all[r * count + r],
                  "a dense diagonal value");
          std::vector<T> row((panels + 1) * loops.panel, T(-1));
          for (std::int64_t r = 0; r < count; r += 7)
            for (std::int64_t p : {std::int64_t{0}, panels / 2}) {
              loops.dense_row[term_code](f, b, features, r, p, panels, row.data());
              check(std::equal(to_all[r] + p * loops.panel, to_all[r] + count, row.begin()), "a value of one row");
              check(row[(panels - p) * loops.panel] == T(-1) || p > 0, "one row is whole panels");
            }
        }
    }
}

template <class T> void test_sparse_blocks(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  const std::int64_t rows = 70, features = 20;
  const double accuracy = sizeof(T) == 4 ? 2e-5 : 1e-12;
  std::vector<std::int64_t> starts = {0}, indices(rows);
  std::vector<std::int32_t> stored;
  std::vector<T> values;
  std::vector<double> dense(rows * features, 0.0);
  for (std::int64_t r = 0; r < rows; ++r) {
    indices[r] = r;
    for (std::int64_t k = 0; k < features; ++k)
      if (r != 4 && uniform(random) < 0.3) {  // row 4 is empty
        stored.push_back(static_cast<std::int32_t>(k));
        values.push_back(static_cast<T>(uniform(random)));
        dense[r * features + k] = static_cast<double>(values.back());
      }
    starts.push_back(static_cast<std::int64_t>(stored.size()));
  }
  for (const Level& level : usable_levels())
    for (const Formula& f : kFormulas) {
      if (f.function == Function::gaussian_of_product) continue;  // for dense samples only
      const BlockLoops<T>& loops = blocks<T>(level);
      const int term_code = static_cast<int>(f.term);
      const std::int64_t panels = (rows + loops.sparse_panel - 1) / loops.sparse_panel;
      std::vector<std::int32_t> table_row(features, 0);
      std::vector<T> table((features + 1) * loops.sparse_panel), out(rows * rows), separate(rows);
      const SparseRows<T> matrix{starts.data(), stored.data(), values.data(), indices.data(), rows, separate.data()};
      const SparseWorkspace<T> workspace{table_row.data(), table.data()};
      std::vector<T> weights(panels * loops.sparse_panel, T(0));
      std::vector<double> sums(rows);
      std::vector<T*> targets(rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        targets[r] = out.data() + r * rows;
        weights[r] = static_cast<T>(r % 3) - T(1);
      }
      loops.separate_sums[term_code](matrix, separate.data());
      loops.sparse[term_code](f, matrix, matrix, 0, rows, workspace, targets.data());
      loops.sparse_combination[term_code](f, matrix, matrix, 0, rows, workspace, weights.data(), sums.data());
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
      std::vector<T> mirrored(rows * rows, T(-1)), transposed(rows * rows, T(-1));
      std::vector<T*> to_mirrored(rows), to_transposed(rows);
      for (std::int64_t r = 0; r < rows; ++r) {
        to_mirrored[r] = mirrored.data() + r * rows;
        to_transposed[r] = transposed.data() + r * rows;
      }
      for (std::int64_t at = 0; at < rows; at += loops.sparse_panel)
        loops.sparse_square[term_code](f, matrix, at, std::min(rows, at + loops.sparse_panel), workspace,
                                       to_mirrored.data());
      for (std::int64_t at = 0; at < rows; at += 23)
        loops.sparse_transposed[term_code](f, matrix, matrix, at, std::min(rows, at + 23), workspace,
                                           to_transposed.data());
      std::vector<T> diagonal(rows);
      loops.sparse_diagonal[term_code](f, matrix, diagonal.data());
      for (std::int64_t r = 0; r < rows; ++r) check(diagonal[r] == out[r * rows + r], "a sparse diagonal value");
      check(out == mirrored, "a mirrored sparse value");
      check(out == transposed, "a transposed sparse value");
      for (std::int32_t entry : table_row) check(entry == 0, "the workspace is cleared");
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

void test_both_products(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (std::int64_t n : {1, 3, 8, 21, 70}) {
    std::vector<double> table(n * n), vector(n);
    for (double& value : table) value = uniform(random);
    for (double& value : vector) value = uniform(random);
    const double most = std::fabs(
        *std::max_element(table.begin(), table.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
    for (const Level& level : usable_levels()) {
      std::vector<double> product(n), transposed(n);
      double largest = 0.0;
      for (std::int64_t first = 0; first < n; first += 17)
        largest =
            std::max(largest, level.kernels->both_products(table.data(), vector.data(), n, first,
                                                           std::min(n, first + 17), product.data(), transposed.data()));
      check(largest == most, "the largest magnitude");
      for (std::int64_t r = 0; r < n; ++r) {
        double across = 0.0, down = 0.0;
        for (std::int64_t c = 0; c < n; ++c) {
          across += table[r * n + c] * vector[c];
          down += table[c * n + r] * vector[c];
        }
        check(std::fabs(product[r] - across) < 1e-13 * n, "a product");
        check(std::fabs(transposed[r] - down) < 1e-13 * n, "a product of the transpose");
      }
    }
  }
}

}  // namespace

void test_kernel_blocks() {
  std::mt19937 random(1);
  test_dense_blocks<float>(random);
  test_dense_blocks<double>(random);
  test_dense_squares<float>(random);
  test_dense_squares<double>(random);
  test_sparse_blocks<float>(random);
  test_sparse_blocks<double>(random);
  test_subtract_rows(random);
  test_both_products(random);
}
