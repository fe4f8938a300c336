// An upper triangular factor R with RᵀR = A that is updated as rows and columns of A are appended and deleted (Gill,
// Golub, Murray & Saunders 1974). All instruction sets compute the same bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "pairwise.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// In eight partial sums on every instruction set, so that all compute the same value.
inline double ordered_dot(const double* a, const double* b, std::int64_t count) {
  double parts[8] = {}, sum = 0.0;
  std::int64_t k = 0;
  for (; k + 8 <= count; k += 8)
    for (int l = 0; l < 8; ++l) parts[l] += a[k + l] * b[k + l];
  for (; k < count; ++k) sum += a[k] * b[k];
  for (int l = 0; l < 8; ++l) sum += parts[l];
  return sum;
}

class CholeskyFactor {
 public:
  // In memory for stride × stride values.
  CholeskyFactor(double* memory, std::int64_t stride) : values_(memory), stride_(stride) {}

  std::int64_t size() const { return size_; }
  double* row(std::int64_t r) { return values_ + r * stride_; }
  const double* row(std::int64_t r) const { return values_ + r * stride_; }

  // Append the last row, which the caller has written.
  void append_row() { ++size_; }

  // Append a column, given R⁻ᵀ times the new column of A, and the square of the new diagonal element.
  void append_column(const double* column, double pivot) {
    for (std::int64_t r = 0; r < size_; ++r) row(r)[size_] = column[r];
    row(size_)[size_] = std::sqrt(pivot);
    ++size_;
  }

  // Subtract a column from a later one.
  void subtract_column(std::int64_t column, std::int64_t later) {
    for (std::int64_t r = 0; r <= column; ++r) row(r)[later] -= row(r)[column];
  }

  // Delete a column, and restore the triangle with Givens rotations.
  void delete_column(std::int64_t position) {
    for (std::int64_t r = 0; r < size_; ++r)
      for (std::int64_t c = r > position ? r : position + 1; c < size_; ++c) row(r)[c - 1] = row(r)[c];
    --size_;
    for (std::int64_t r = position; r < size_; ++r) {
      double *upper = row(r), *lower = row(r + 1);
      const double length = std::sqrt(upper[r] * upper[r] + lower[r] * lower[r]);
      const double c = upper[r] / length, s = lower[r] / length;
      for (std::int64_t k = r; k < size_; ++k) {
        const double a = upper[k], b = lower[k];
        upper[k] = c * a + s * b;
        lower[k] = c * b - s * a;
      }
    }
  }

  // x = R⁻ᵀ x
  void solve_forward(double* x) const {
    for (std::int64_t r = 0; r < size_; ++r) {
      x[r] /= row(r)[r];
      add_row(x + r + 1, row(r) + r + 1, -x[r], size_ - r - 1);
    }
  }

  // x = R⁻¹ x
  void solve_backward(double* x) const {
    for (std::int64_t r = size_ - 1; r >= 0; --r)
      x[r] = (x[r] - ordered_dot(row(r) + r + 1, x + r + 1, size_ - r - 1)) / row(r)[r];
  }

 private:
  double* values_;
  std::int64_t stride_, size_ = 0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
