// The rows of a small problem: those of a matrix in memory, copies of parts of them, or rows that are computed.
#pragma once

#include <cstdint>

#include "pairwise.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr std::int64_t kValuesPerLine = 8;  // of the cache

// The rows of a small problem: those of the matrix, where its variables are a few runs of columns, else copies of their
// values at the variables of the problem. Rows from a source have whole panels for each run.
class SmallRows {
 public:
  using Value = double;
  std::int64_t requests = 0;
  std::int64_t copied = 0;  // the number of rows that were copied or computed
  bool exhausted = false;   // whether a row was needed for which there was no memory
  GroupRuns runs;
  bool in_runs;  // whether the variables of each group are next to each other

  SmallRows(const SmallProblem& problem, const SmallWorkspace& workspace, const DualState& state)
      : in_runs(runs.find(state, workspace.copies ? problem.indices : nullptr)),
        p_(problem),
        w_(workspace),
        size_(state.size),
        length_(state.size),
        copies_(w_.copies && (p_.source || !in_runs)) {
    if (!copies_) return;
    if (p_.source && in_runs)
      lay_out_panels();
    else
      in_runs = runs.find(state);
    max_rows_ = p_.source && !in_runs ? 0 : rows_in_memory(0);
    for (std::int64_t k = 0; k < size_; ++k) w_.slot[k] = -1;
  }

  // Null if there is no memory for one more.
  const double* row(std::int64_t k) {
    if (!w_.copies) return p_.matrix + k * p_.stride;
    if (!copies_) return p_.matrix + p_.indices[k] * p_.stride;
    if (w_.slot[k] < 0) {
      exhausted = copied == max_rows_;
      if (exhausted) return nullptr;
      copy(k, w_.copies + copied * length_);
      w_.slot[k] = copied++;
    }
    return w_.copies + w_.slot[k] * length_;
  }

  // Memory for copies of as many rows as there is memory for together with those copies, at `values` each; null if
  // there are more rows already. No values end the reservation.
  double* reserve(std::int64_t values) {
    const std::int64_t rows = rows_in_memory(values);
    if (rows < copied) return nullptr;
    max_rows_ = rows;
    return w_.copies + (w_.copied_values - rows * values);
  }

  // The value of a row at a variable.
  double at(const double* row, std::int64_t k) const { return row[in_runs ? runs.column(k) : k]; }

  // target += factor · row k, over all variables; false if there is no such row.
  bool add(double* target, std::int64_t k, double factor) {
    const double* from = row(k);
    if (!from) return false;
    if (!in_runs) {
      add_row(target, from, factor, size_);
      return true;
    }
    for (int r = 0; r < runs.count; ++r) {
      const Run run = runs.at(r);
      add_row(target + run.begin, from + (run.begin + run.shift), factor, run.end - run.begin);
    }
    return true;
  }

 private:
  // How many rows fit, each with so many more values.
  std::int64_t rows_in_memory(std::int64_t values) const {
    const std::int64_t fit = length_ > 0 ? w_.copied_values / (length_ + values) : 0;
    return p_.source && p_.source->max_rows < fit ? p_.source->max_rows : fit;
  }

  // From now on columns are places in a row of panels, those of one run after those of another.
  void lay_out_panels() {
    const std::int64_t width = p_.source->panel;
    length_ = 0;
    for (int r = 0; r < runs.count; ++r) {
      const Run run = runs.at(r);
      const std::int64_t first = run.begin + run.shift, last = run.end + run.shift;
      panels_[r][0] = first / width;
      panels_[r][1] = (last + width - 1) / width;
      runs.shift[r] = length_ - panels_[r][0] * width + run.shift;
      length_ += (panels_[r][1] - panels_[r][0]) * width;
    }
  }

  void copy(std::int64_t k, double* to) const {
    const std::int64_t from = p_.indices[k];
    if (!p_.source) {
      const double* row = p_.matrix + from * p_.stride;
      if (p_.stride <= kValuesPerLine * size_)  // nearly all lines are needed, in an order that is no stream
        for (std::int64_t c = 0; c < p_.stride; c += kValuesPerLine) __builtin_prefetch(row + c);
      for (std::int64_t c = 0; c < size_; ++c) to[c] = row[p_.indices[c]];
      return;
    }
    for (int r = 0; r < runs.count; ++r) {
      p_.source->fill(p_.source->context, from, panels_[r][0], panels_[r][1], to);
      to += (panels_[r][1] - panels_[r][0]) * p_.source->panel;
    }
  }

  const SmallProblem& p_;
  const SmallWorkspace& w_;
  const std::int64_t size_;
  std::int64_t length_;  // of a copied row
  const bool copies_;
  std::int64_t max_rows_ = 0;
  std::int64_t panels_[kMaxRuns][2];  // of each run
};

inline const double* find(SmallRows& rows, std::int64_t k, std::int64_t) { return rows.row(k); }
inline void mark_used(SmallRows& rows, std::int64_t) { ++rows.requests; }

}  // namespace maxmargin::MAXMARGIN_LEVEL
