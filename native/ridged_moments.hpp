// The moments of the free rows of a problem with squared losses, which are brought up to date as variables reach a kink
// of their loss or leave it, and the equations of a Newton step (solvers/linear/newton_equations.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "linear_loops.hpp"
#include "parallel.hpp"

namespace maxmargin {

// As in newton_equations.py, where they are explained.
constexpr double kMaxChangedRows = 0.5;
constexpr int kMaxMomentUpdates = 8;

constexpr std::int64_t kRowsForThreads = 1024;  // fewer are not worth a thread

// The numbers of a problem. Variable k has row k mod rows_count; `row` has the row of each, null for all in order.
struct RidgedProblem {
  std::int64_t variables, rows_count, width;
  const std::int64_t* row;
  const double *linear, *lower, *upper, *ridge;
  bool grouped;  // whether the variables must have the sum 0

  std::int64_t row_of(std::int64_t i) const { return row ? row[i] : i; }
};

// Of each row: two bits for each of its variables, off its lower and off its upper bound.
using Sides = std::vector<std::uint8_t>;

template <class T> constexpr bool is_dense(const DenseRows<T>&) { return true; }
template <class T, class I> constexpr bool is_dense(const CompressedRows<T, I>&) { return false; }

// Call add(begin, end, part, sums) for each part of the rows, with zeros of `size`, and add them up in out.
template <class Add> void sum_parts(int parts, std::int64_t rows, std::int64_t size, double* out, Add add) {
  std::vector<double> others(static_cast<std::size_t>(parts - 1) * size);
  std::fill_n(out, size, 0.0);
  in_parts(parts, rows, [&](std::int64_t begin, std::int64_t end, int part) {
    add(begin, end, part, part ? others.data() + (part - 1) * size : out);
  });
  for (int part = 1; part < parts; ++part)
    for (std::int64_t j = 0; j < size; ++j) out[j] += others[(part - 1) * size + j];
}

template <class Rows> class RidgedMoments {
 public:
  RidgedMoments(const Rows& rows, const RowLoops<Rows>& loops, const RidgedProblem& problem, double constant, int parts)
      : rows_(rows),
        loops_(loops),
        p_(problem),
        constant_(constant),
        n_(problem.variables),
        m_(problem.rows_count),
        d_(problem.width),
        parts_(parts),
        sides_(m_),
        origin_(d_),
        sums_(d_),
        square_(d_ * d_),
        matrix_((d_ + 1) * (d_ + 1)),
        shifted_(is_dense(rows) && problem.grouped),
        buffer_(is_dense(rows) ? kMomentRows * (d_ + kMomentPadding) : 0),
        unit_(*std::min_element(p_.ridge, p_.ridge + n_)),
        equal_ridges_(std::all_of(p_.ridge, p_.ridge + n_, [&](double ridge) { return ridge == unit_; })) {}

  // Whether the next update computes the moments anew, because rounding errors accumulate.
  bool due() const { return updates_ >= kMaxMomentUpdates; }

  // The side of a row that the moments are of.
  int side(std::int64_t i) const { return sides_[i]; }

  // Bring the moments of the rows about the origin up to date with the sides of the rows.
  void update(const Sides& sides) {
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < m_; ++i) changed += sides[i] != sides_[i];
    if (++updates_ > kMaxMomentUpdates || static_cast<double>(changed) > kMaxChangedRows * total_) {
      updates_ = 0;
      total_ = 0.0;
      std::fill(sums_.begin(), sums_.end(), 0.0);
      std::fill(square_.begin(), square_.end(), 0.0);
      std::fill(sides_.begin(), sides_.end(), std::uint8_t{0});
      if (shifted_) centre_origin(sides);
    }
    count_rows(sides, 1.0);
    count_rows(sides, -1.0);
    sides_ = sides;
  }

  // Solve the equations for the direction and the step of the offset, given the gradient and the sum of the responses.
  bool solve(const LinearLoops& linear, const std::vector<double>& gradient, double sum, std::vector<double>& direction,
             double& offset_step) {
    const std::int64_t size = d_ + 1;
    const double c = constant_;
    const bool moves = p_.grouped && total_ > 0.0;
    if (p_.grouped && !moves && sum != 0.0) return false;
    for (std::int64_t j = 0; j < d_; ++j) {
      double* line = matrix_.data() + j * size;
      const double mean = moves ? sums_[j] / total_ : 0.0;
      for (std::int64_t k = 0; k <= j; ++k) line[k] = (square_[j * d_ + k] - mean * sums_[k]) / unit_;
      line[j] += 1.0;
      matrix_[d_ * size + j] = moves ? 0.0 : c * sums_[j] / unit_;
      direction[j] = -gradient[j] - (moves ? (origin_[j] + mean) * sum : 0.0);
    }
    matrix_[d_ * size + d_] = 1.0 + (moves ? 0.0 : c * c * total_ / unit_);
    direction[d_] = -gradient[d_] - (moves ? c * sum : 0.0);
    if (!linear.solve_positive_definite(matrix_.data(), size, direction.data())) return false;
    if (moves) {
      offset_step = sum * unit_ / total_ - c * direction[d_];
      for (std::int64_t j = 0; j < d_; ++j) offset_step -= (origin_[j] + sums_[j] / total_) * direction[j];
    }
    return true;
  }

  // product = FᵀD (F d + e), without that of the constant feature
  void multiply(const std::vector<double>& direction, double offset_step, std::vector<double>& product) const {
    double shift = offset_step + constant_ * direction[d_], along = 0.0;
    for (std::int64_t j = 0; j < d_; ++j) {
      shift += origin_[j] * direction[j];
      along += sums_[j] * direction[j];
    }
    const double sum = along + total_ * shift;
    for (std::int64_t j = 0; j < d_; ++j) product[j] = sums_[j] * shift + origin_[j] * sum;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double* line = square_.data() + j * d_;
      double own = line[j] * direction[j];
      for (std::int64_t k = 0; k < j; ++k) {
        own += line[k] * direction[k];
        product[k] += line[k] * direction[j];
      }
      product[j] += own;
    }
    for (std::int64_t j = 0; j < d_; ++j) product[j] /= unit_;
  }

  // Call use(rows of the data, numbers, how many) with those of the rows begin … end whose side is not that of the
  // moments and whose number is positive, or not zero if `any`, some at a time.
  template <class Number, class Use>
  void for_changed(const Sides& sides, std::int64_t begin, std::int64_t end, bool any, Number number, Use use) const {
    constexpr std::int64_t kSides = 32;  // are compared at a time
    std::int64_t chosen[kMomentRows], count = 0;
    double numbers[kMomentRows];
    for (std::int64_t first = begin; first < end; first += kSides) {
      const std::int64_t last = std::min(first + kSides, end);
      if (std::equal(sides.data() + first, sides.data() + last, sides_.data() + first)) continue;
      for (std::int64_t i = first; i < last; ++i) {
        const double value = sides[i] != sides_[i] ? number(i) : 0.0;
        chosen[count] = p_.row_of(i);
        numbers[count] = value;
        count += any ? value != 0.0 : value > 0.0;
        if (count < kMomentRows) continue;
        use(chosen, numbers, count);
        count = 0;
      }
    }
    if (count) use(chosen, numbers, count);
  }

 private:
  // The factor of a row with this side: unit / ridge of its free variable, 0 without one.
  double factor_of(std::int64_t i, int side) const {
    if (equal_ridges_) return int{(side & 3) == 3} + int{side >> 2 == 3};
    double factor = 0.0;
    for (std::int64_t k = i; k < n_; k += m_, side >>= 2)
      if ((side & 3) == 3) factor += unit_ / p_.ridge[k];
    return factor;
  }

  double grown(const Sides& sides, std::int64_t i) const { return factor_of(i, sides[i]) - factor_of(i, sides_[i]); }

  // The origin is the mean of the free rows.
  void centre_origin(const Sides& sides) {
    std::vector<double> sums(d_ + 1);
    sum_parts(parts_, m_, d_ + 1, sums.data(), [&](std::int64_t begin, std::int64_t end, int, double* own) {
      for_changed(
          sides, begin, end, false, [&](std::int64_t i) { return grown(sides, i); },
          [&](const std::int64_t* rows, const double* numbers, std::int64_t count) {
            loops_.combine(rows_, rows, 0, count, numbers, own);
            own[d_] = std::accumulate(numbers, numbers + count, own[d_]);
          });
    });
    for (std::int64_t j = 0; j < d_; ++j) origin_[j] = sums[d_] > 0.0 ? sums[j] / sums[d_] : 0.0;
  }

  // Add the moments of the rows whose factor has grown, or subtract those of the rows whose factor has shrunk.
  void count_rows(const Sides& sides, double sign) {
    const std::int64_t area = d_ * d_;
    std::vector<double> sums(area + d_ + 1);
    sum_parts(parts_, m_, area + d_ + 1, sums.data(), [&](std::int64_t begin, std::int64_t end, int part, double* own) {
      std::vector<double> others(part ? buffer_.size() : 0);
      double* buffer = part ? others.data() : buffer_.data();
      for_changed(
          sides, begin, end, false, [&](std::int64_t i) { return sign * grown(sides, i); },
          [&](const std::int64_t* rows, const double* numbers, std::int64_t count) {
            loops_.add_moments(rows_, rows, 0, count, numbers, shifted_ ? origin_.data() : nullptr, buffer, own + area,
                               own, d_);
            own[area + d_] = std::accumulate(numbers, numbers + count, own[area + d_]);
          });
    });
    if (sums[area + d_] == 0.0) return;
    for (std::int64_t j = 0; j < area; ++j) square_[j] += sign * sums[j];
    for (std::int64_t j = 0; j < d_; ++j) sums_[j] += sign * sums[area + j];
    total_ += sign * sums[area + d_];
  }

  const Rows& rows_;
  const RowLoops<Rows>& loops_;
  const RidgedProblem& p_;
  const double constant_;
  const std::int64_t n_, m_, d_;
  const int parts_;
  Sides sides_;
  std::vector<double> origin_, sums_, square_, matrix_;
  const bool shifted_;  // whether the origin is the mean of the free rows
  std::vector<double> buffer_;
  const double unit_;  // the least ridge; moments are in units of its inverse
  const bool equal_ridges_;
  double total_ = 0.0;               // of the factors
  int updates_ = kMaxMomentUpdates;  // the first moments are computed from all rows
};

}  // namespace maxmargin
