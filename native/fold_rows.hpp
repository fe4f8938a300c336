// The rows of problems on one matrix in memory: of all variables of a problem, and copies of their parts for the
// variables that can still change.
#pragma once

#include <cstdint>

#include "pairwise.hpp"
#include "single_pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// Rows at the columns of a problem: in place if these are a few runs, as those of two classes in a matrix whose samples
// are sorted by class.
class MatrixRows {
 public:
  using Value = double;
  const GroupRuns runs;
  const bool in_runs;

  MatrixRows(const FoldPath& path, const DualState& state)
      : runs(runs_of(path, state)), in_runs(runs.count > 0), path_(path), size_(state.size) {}

  const double* row(std::int64_t k) const { return path_.matrix + path_.columns[k] * path_.stride; }
  double at(const double* row, std::int64_t k) const { return row[path_.columns[k]]; }

  // target += factor · row k, over all variables.
  void add(double* target, std::int64_t k, double factor) const {
    const double* from = row(k);
    if (!in_runs) {
      for (std::int64_t c = 0; c < size_; ++c) target[c] += factor * from[path_.columns[c]];
      return;
    }
    for (int r = 0; r < runs.count; ++r) {
      const Run run = runs.at(r);
      add_row(target + run.begin, from + (run.begin + run.shift), factor, run.end - run.begin);
    }
  }

 private:
  static GroupRuns runs_of(const FoldPath& path, const DualState& state) {
    GroupRuns runs;
    if (!runs.find(state, path.columns)) runs.count = 0;
    return runs;
  }

  const FoldPath& path_;
  const std::int64_t size_;
};

inline const double* find(const MatrixRows& rows, std::int64_t k, std::int64_t) { return rows.row(k); }
inline void mark_used(const MatrixRows&, std::int64_t) {}

// Rows at the variables of a part, in single precision, copied when they are first needed. If they are too many, the
// oldest are replaced, except for the last one that was asked for: a step needs two. Rows are padded with zeros and
// aligned to whole vectors.
class PartRows {
 public:
  using Value = float;

  // For `size` variables, whose columns are given, in memory for so many values, at least three rows. `slot` has an
  // entry for each variable, and `owner` for each row that there is memory for.
  void begin(const FoldPath& path, const std::int64_t* columns, std::int64_t size, const FoldWorkspace& w) {
    matrix_ = path.matrix;
    stride_ = path.stride;
    columns_ = columns;
    size_ = size;
    length_ = padded(size);
    slot_ = w.slot;
    owner_ = w.owner;
    values_ = aligned(w.values);
    const std::int64_t fit = w.values_count / (size > 0 ? length_ : 1);
    most_ = fit < size ? fit : size;
    next_ = 0;
    last_ = -1;
    for (std::int64_t k = 0; k < size; ++k) slot_[k] = -1;
    for (std::int64_t k = 0; k < most_; ++k) owner_[k] = -1;
  }

  const float* row(std::int64_t k) {
    if (slot_[k] < 0) {
      if (last_ >= 0 && slot_[last_] == next_) next_ = next_ + 1 < most_ ? next_ + 1 : 0;
      if (owner_[next_] >= 0) slot_[owner_[next_]] = -1;
      const double* from = matrix_ + columns_[k] * stride_;
      float* to = values_ + next_ * length_;
      for (std::int64_t c = 0; c < size_; ++c) to[c] = static_cast<float>(from[columns_[c]]);
      for (std::int64_t c = size_; c < length_; ++c) to[c] = 0.0f;
      owner_[next_] = k;
      slot_[k] = next_;
      next_ = next_ + 1 < most_ ? next_ + 1 : 0;
    }
    last_ = k;
    return values_ + slot_[k] * length_;
  }

  double at(const float* row, std::int64_t k) const { return static_cast<double>(row[k]); }
  void add(double* target, std::int64_t k, double factor) { add_row(target, row(k), factor, size_); }

 private:
  const double* matrix_ = nullptr;
  std::int64_t stride_ = 0, size_ = 0, length_ = 0, most_ = 0, next_ = 0, last_ = -1;
  const std::int64_t* columns_ = nullptr;
  std::int64_t *slot_ = nullptr, *owner_ = nullptr;
  float* values_ = nullptr;
};

inline const float* find(PartRows& rows, std::int64_t k, std::int64_t) { return rows.row(k); }
inline void mark_used(PartRows&, std::int64_t) {}

}  // namespace maxmargin::MAXMARGIN_LEVEL
