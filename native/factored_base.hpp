// The factored equations of a base of variables, RᵀR = M, and columns R⁻ᵀE of others that border them, with their
// complement: for a border ( M E ; Eᵀ D ) it is D − XᵀX with X = R⁻ᵀE.
//
// The columns of E are ones, if the variables have a group; those of the matrix, of variables outside of the base; and
// unit vectors, of variables of the base. D has the matrix of the variables outside, and ones between these and the
// group. Columns are added and never removed, so each is computed once.
#pragma once

#include <cstdint>

#include "blocked_cholesky.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr double kSmallestPivot = 1e-11;  // relative to the largest diagonal element

class FactoredBase {
 public:
  // `ridge` of all variables of the problem, of so many; `doubles` for max_free² values, max_free · most columns and
  // the square of these, `indices` for max_free and twice the columns.
  FactoredBase(const FoldPath& path, const double* ridge, std::int64_t variables, std::int64_t groups,
               const FoldWorkspace& w, double* doubles, std::int64_t* indices)
      : groups_(groups),
        path_(path),
        ridge_(ridge),
        factor_{doubles, 0},
        columns_{doubles + w.max_free * w.max_free, 0},
        complement_{columns_.values + w.max_free * padded_columns(w.max_free), 0},
        variables_(indices),
        nonzero_(indices + w.max_free),
        owner_(nonzero_ + padded_columns(w.max_free)),
        place_(w.place),
        column_(w.column) {
    for (std::int64_t k = 0; k < variables; ++k) place_[k] = column_[k] = -1;
  }

  std::int64_t size() const { return size_; }
  std::int64_t width() const { return width_; }  // the number of columns
  std::int64_t variable(std::int64_t place) const { return variables_[place]; }
  std::int64_t place(std::int64_t variable) const { return place_[variable]; }    // −1: not in the base
  std::int64_t column(std::int64_t variable) const { return column_[variable]; }  // −1: it has none
  std::int64_t owner(std::int64_t column) const { return owner_[column]; }
  const double* columns(std::int64_t place) const { return columns_.row(place); }
  const double* complement(std::int64_t column) const { return complement_.row(column); }
  double least_pivot() const { return least_pivot_; }

  // Of the matrix, in single precision as the rows of a part.
  double value(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(static_cast<float>(path_.matrix[path_.columns[i] * path_.stride + path_.columns[j]]));
  }

  void forget() {
    for (std::int64_t a = 0; a < size_; ++a) place_[variables_[a]] = -1;
    for (std::int64_t c = groups_; c < width_; ++c) column_[owner_[c]] = -1;
    size_ = width_ = 0;
  }

  // Append a variable to the base, which has no factor yet.
  void append(std::int64_t variable) {
    place_[variable] = size_;
    variables_[size_++] = variable;
  }

  // Factor the equations; `row_of(a)` is the row of the matrix of variable a of the base, and `at(row, b)` its value
  // for another one. False if they are singular.
  template <class RowOf, class At> bool factor(const RowOf& row_of, const At& at) {
    double largest = 0.0;
    for (std::int64_t a = 0; a < size_; ++a) {
      const auto* row = row_of(a);
      double* to = factor_.values + a * size_;
      for (std::int64_t b = a; b < size_; ++b) to[b] = at(row, b);
      to[a] += ridge_[variables_[a]];
      largest = larger(largest, to[a]);
    }
    least_pivot_ = kSmallestPivot * largest;
    factor_.stride = size_;
    columns_.stride = complement_.stride = padded_columns(size_);
    if (!factor_blocks(factor_.values, size_, size_, least_pivot_)) return false;
    if (groups_) {
      begin_columns(1);
      for (std::int64_t a = 0; a < size_; ++a) columns_.row(a)[0] = 1.0;
      nonzero_[0] = 0;
      end_columns(1);
    }
    return true;
  }

  bool has_room(std::int64_t columns) const { return width_ + columns <= columns_of_free_equations(size_); }

  // Columns of variables outside of the base, and of those at ascending places in it.
  void add_columns(const std::int64_t* outside, std::int64_t outside_count, const std::int64_t* places,
                   std::int64_t places_count) {
    if (outside_count + places_count == 0) return;
    begin_columns(outside_count + places_count);
    std::int64_t next = width_;
    for (std::int64_t k = 0; k < outside_count; ++k, ++next) {
      for (std::int64_t a = 0; a < size_; ++a) columns_.row(a)[next] = value(outside[k], variables_[a]);
      own_column(outside[k], next, 0);
    }
    for (std::int64_t k = 0; k < places_count; ++k, ++next) {
      columns_.row(places[k])[next] = 1.0;
      own_column(variables_[places[k]], next, places[k]);
    }
    end_columns(outside_count + places_count);
  }

  // x = R⁻ᵀ x, and x = R⁻¹ x
  void substitute(double* x) const { MAXMARGIN_LEVEL::substitute(factor_.values, size_, size_, x); }
  void solve_transposed(double* x) const { MAXMARGIN_LEVEL::solve_transposed(factor_.values, size_, size_, x); }

 private:
  void own_column(std::int64_t variable, std::int64_t column, std::int64_t first_row) {
    column_[variable] = column;
    owner_[column] = variable;
    nonzero_[column] = first_row;
  }

  void begin_columns(std::int64_t added) {
    for (std::int64_t a = 0; a < size_; ++a)
      for (std::int64_t c = width_; c < width_ + added + kTileWidth; ++c) columns_.row(a)[c] = 0.0;
  }

  // Solve the columns, and compute the complement for them.
  void end_columns(std::int64_t added) {
    const std::int64_t first = width_, last = width_ + added;
    solve_columns(factor_, size_, columns_, first, last, nonzero_);
    for (std::int64_t i = 0; i < last; ++i) {
      for (std::int64_t j = first; j < last; ++j) complement_.row(i)[j] = border(i, j);
      for (std::int64_t j = last; j < last + kTileWidth; ++j) complement_.row(i)[j] = 0.0;
    }
    for (std::int64_t begin = 0; begin < size_; begin += kCholeskyBlock) {
      const std::int64_t end = begin + kCholeskyBlock < size_ ? begin + kCholeskyBlock : size_;
      for (std::int64_t j = first; j < last && nonzero_[j] < end; j += kTileWidth)
        subtract_products(complement_, columns_, columns_, begin, end, 0, last, j);
    }
    for (std::int64_t i = first; i < last; ++i)
      for (std::int64_t j = 0; j < first; ++j) complement_.row(i)[j] = complement_.row(j)[i];
    width_ = last;
  }

  bool is_outside(std::int64_t column) const { return column >= groups_ && place_[owner_[column]] < 0; }

  // D
  double border(std::int64_t i, std::int64_t j) const {
    if (is_outside(i) && is_outside(j)) return value(owner_[i], owner_[j]) + (i == j ? ridge_[owner_[i]] : 0.0);
    return (i < groups_ && is_outside(j)) || (j < groups_ && is_outside(i)) ? 1.0 : 0.0;
  }

  const std::int64_t groups_;
  const FoldPath& path_;
  const double* ridge_;
  Strided factor_, columns_, complement_;
  std::int64_t* variables_;
  std::int64_t *nonzero_, *owner_;  // of each column: the first row in which it is not zero, and its variable
  std::int64_t *place_, *column_;   // of each variable of the problem
  std::int64_t size_ = 0, width_ = 0;
  double least_pivot_ = 0.0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
