// Shrinking of a small problem: steps continue on the variables that can still be selected, whose arrays and rows are
// copied next to each other; in the end the gradient of all variables is updated.
#pragma once

#include <cstdint>

#include "fused_pairwise.hpp"
#include "gradient_extremes.hpp"
#include "pairwise.hpp"
#include "small_rows.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// The rows of a problem at the variables that are left, copied when they are first needed.
class ShrunkRows {
 public:
  using Value = double;

  ShrunkRows(SmallRows& whole, const std::int64_t* members, std::int64_t* slot, std::int64_t* columns)
      : whole_(whole), members_(members), slot_(slot), columns_(columns) {}

  // Begin without rows, for the first `size` members; false if there is no memory for more rows than there are.
  bool begin(std::int64_t size) {
    size_ = size;
    copied_ = 0;
    memory_ = whole_.reserve(size);
    for (std::int64_t k = 0; k < size; ++k) {
      slot_[k] = -1;
      columns_[k] = whole_.runs.column(members_[k]);
    }
    return memory_ != nullptr;
  }

  const double* row(std::int64_t k) {
    if (slot_[k] < 0) {
      const double* from = whole_.row(members_[k]);
      if (!from) return nullptr;
      double* to = memory_ + copied_ * size_;  // as many as there are rows of all variables fit
      for (std::int64_t c = 0; c < size_; ++c) to[c] = from[columns_[c]];
      slot_[k] = copied_++;
    }
    return memory_ + slot_[k] * size_;
  }

  double at(const double* row, std::int64_t k) const { return row[k]; }

  void add(double* target, std::int64_t k, double factor) { add_row(target, row(k), factor, size_); }

  void count_request() { ++whole_.requests; }

 private:
  SmallRows& whole_;
  const std::int64_t* members_;
  std::int64_t *slot_, *columns_;
  std::int64_t size_ = 0, copied_ = 0;
  double* memory_ = nullptr;
};

inline const double* find(ShrunkRows& rows, std::int64_t k, std::int64_t) { return rows.row(k); }
inline void mark_used(ShrunkRows& rows, std::int64_t) { rows.count_request(); }

// The variables of a problem that can still be selected. `before` are the dual variables when it is opened.
class ShrunkProblem {
 public:
  DualState state;
  ShrunkRows rows;
  GroupRuns runs;
  FusedArrays<double> fused;

  ShrunkProblem(DualState& whole, SmallRows& rows_of_all, const ShrunkWorkspace& w, double* before)
      : rows(rows_of_all, w.indices, w.indices + whole.size, w.indices + 2 * whole.size),
        whole_(whole),
        rows_of_all_(rows_of_all),
        w_(w),
        before_(before) {
    const std::int64_t n = whole.size;
    double* d = w.doubles;
    state = whole;
    fused = {d + 7 * n, d + 8 * n, d + 9 * n};
  }

  // Leave out the variables that cannot be selected, of all or of those that are left, if these are so many that fewer
  // than the given part remains. False if nothing changes.
  bool shrink(double max_part) {
    GradientExtremes extremes[kMaxSmallGroups + 1];
    find_selectable(state, extremes, w_.keep);
    std::int64_t left = 0;
    for (std::int64_t k = 0; k < state.size; ++k) left += w_.keep[k];
    if (static_cast<double>(left) > max_part * static_cast<double>(state.size) || left == 0) return false;
    if (!open_)
      for (std::int64_t k = 0; k < state.size; ++k) before_[k] = whole_.dual[k];
    write_back();
    keep_selectable();
    open_ = rows.begin(state.size);
    if (!open_) state = whole_;
    return open_;
  }

  // Update the dual variables and the gradient of all.
  void close() {
    write_back();
    for (std::int64_t k = 0; k < whole_.size; ++k) {
      const double change = whole_.dual[k] - before_[k];
      if (change == 0.0) continue;
      rows_of_all_.add(whole_.gradient, k, -change);
      whole_.gradient[k] -= whole_.ridge[k] * change;
    }
    rows_of_all_.reserve(0);
  }

 private:
  void write_back() {
    if (!open_) return;
    for (std::int64_t k = 0; k < state.size; ++k) whole_.dual[w_.indices[k]] = state.dual[k];
  }

  // Copy the arrays of the variables to keep; if some are left out already, in place.
  void keep_selectable() {
    const std::int64_t n = whole_.size;
    double *const d = w_.doubles, *const kink = whole_.kink ? d + 6 * n : nullptr;
    std::int64_t to = 0;
    for (std::int64_t k = 0; k < state.size; ++k) {
      if (!w_.keep[k]) continue;
      w_.indices[to] = open_ ? w_.indices[k] : k;
      d[to] = state.dual[k];
      d[n + to] = state.gradient[k];
      d[2 * n + to] = state.lower[k];
      d[3 * n + to] = state.upper[k];
      d[4 * n + to] = state.diagonal[k];
      d[5 * n + to] = state.ridge[k];
      if (kink) kink[to] = state.kink[k];
      w_.group[to++] = state.group[k];
    }
    state = {d, d + n, d + 2 * n, d + 3 * n, d + 4 * n, d + 5 * n, w_.group, nullptr, to, to, whole_.groups, 0, kink};
    runs.find(state);
  }

  DualState& whole_;
  SmallRows& rows_of_all_;
  const ShrunkWorkspace& w_;
  double* before_;
  bool open_ = false;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
