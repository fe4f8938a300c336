// Blocks of kernel values of compressed sparse rows; the data are never made dense.
//
// A panel of columns is spread over a table with a line for every feature that occurs in it and a lane for every
// column. A row then costs its own stored features, each serving the whole panel at once:
//   Σ_k term(x_k, z_k) = (Σ_k alone(x_k) + Σ_k alone(z_k)) + Σ_{k in x} cross(x_k, z_k)
// Only features that both have count in the last sum, so it is symmetric to the last bit, and 0 for equal samples where
// the term is a difference.
#pragma once

#include <cstdint>

#include "kernel_block.hpp"
#include "loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// out[k] = Σ alone(x) of each chosen row, in vectors of equal lanes so that it rounds exactly as the sums of a block
// do.
template <class T, class Term>
void sparse_alone(const SparseRows<T>& rows, const std::int64_t* picks, std::int64_t count, T* out) {
  for (std::int64_t r = 0; r < count; ++r) {
    Vec<T> sum{};
    for (std::int64_t p = rows.starts[picks[r]]; p < rows.starts[picks[r] + 1]; ++p) {
      Vec<T> value = repeat<T>(rows.values[p]);
      hide(value);  // else the compiler multiplies one lane, and rounds once more
      sum += Term::template alone<Vec<T>>(value);
    }
    out[r] = sum[0];
  }
}

constexpr int kSparseVectors = 4;
template <class T> constexpr int kSparsePanel = kSparseVectors * kWidth<T>;

template <class T>
MAXMARGIN_INLINE void store_panel(T* out, const Vec<T> (&values)[kSparseVectors], std::int64_t count) {
  if (count >= kSparsePanel<T>) {
    for (int v = 0; v < kSparseVectors; ++v) store_vector(out + v * kWidth<T>, values[v]);
  } else {
    T copy[kSparsePanel<T>];
    for (int v = 0; v < kSparseVectors; ++v) store_vector(copy + v * kWidth<T>, values[v]);
    std::memcpy(out, copy, count * sizeof(T));
  }
}

// A panel of columns spread over a table: one line per feature that occurs, one lane per column. `line` has an entry
// per feature, all 0 before spread and after clear; `table` has room for one line more than the panel stores values.
template <class T> struct SpreadColumns {
  static constexpr std::int64_t panel = kSparsePanel<T>;
  const SparseRows<T>& columns;
  const std::int64_t* picks;
  std::int32_t* line;
  T* table;
  T alone[kSparsePanel<T>];
  int width;

  void spread(std::int64_t at, std::int64_t last, const T* column_alone) {
    width = static_cast<int>(last - at < panel ? last - at : panel);
    picks += at;
    std::int32_t lines = 0;
    for (int w = 0; w < panel; ++w) table[w] = T(0);  // for features that no column has
    for (int w = 0; w < panel; ++w) alone[w] = w < width ? column_alone[at + w] : T(0);
    for (int w = 0; w < width; ++w)
      for (std::int64_t p = columns.starts[picks[w]]; p < columns.starts[picks[w] + 1]; ++p) {
        std::int32_t& mine = line[columns.features[p]];
        if (!mine) {
          mine = ++lines;
          for (int v = 0; v < panel; ++v) table[mine * panel + v] = T(0);
        }
        table[mine * panel + w] = columns.values[p];
      }
  }

  void clear() {
    for (int w = 0; w < width; ++w)
      for (std::int64_t p = columns.starts[picks[w]]; p < columns.starts[picks[w] + 1]; ++p)
        line[columns.features[p]] = 0;
  }

  // The kernel values of one row with the panel.
  template <class Term>
  MAXMARGIN_INLINE void values(const Formula& f, const SparseRows<T>& rows, std::int64_t x, T row_alone,
                               Vec<T> (&out)[kSparseVectors]) const {
#pragma GCC unroll 4
    for (int v = 0; v < kSparseVectors; ++v) out[v] = Vec<T>{};
    for (std::int64_t p = rows.starts[x]; p < rows.starts[x + 1]; ++p) {
      const Vec<T> value = repeat<T>(rows.values[p]);
      const T* z = table + line[rows.features[p]] * panel;
#pragma GCC unroll 4
      for (int v = 0; v < kSparseVectors; ++v)
        out[v] += Term::template cross<Vec<T>>(value, load_vector(z + v * kWidth<T>));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kSparseVectors; ++v)
      out[v] = kernel_value<T>(f, (row_alone + load_vector(alone + v * kWidth<T>)) + out[v], Vec<T>{});
  }
};

// Columns [first, last) of the block, first a multiple of the panel.
template <class T, class Term>
void sparse_block(const Formula& f, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t count,
                  const SparseRows<T>& columns, const std::int64_t* column_picks, std::int64_t first, std::int64_t last,
                  const T* row_alone, const T* column_alone, std::int32_t* line, T* table, T* const* out) {
  for (std::int64_t at = first; at < last; at += kSparsePanel<T>) {
    SpreadColumns<T> panel{columns, column_picks, line, table, {}, 0};
    panel.spread(at, last, column_alone);
    for (std::int64_t r = 0; r < count; ++r) {
      Vec<T> values[kSparseVectors];
      panel.template values<Term>(f, rows, row_picks[r], row_alone[r], values);
      store_panel<T>(out[r] + at, values, panel.width);
    }
    panel.clear();
  }
}

// The same where rows and columns are the same samples: from the diagonal downwards, and mirrored.
template <class T, class Term>
void sparse_square(const Formula& f, const SparseRows<T>& rows, const std::int64_t* picks, std::int64_t count,
                   std::int64_t first, std::int64_t last, const T* alone, std::int32_t* line, T* table, T* const* out) {
  constexpr std::int64_t panel_width = kSparsePanel<T>;
  for (std::int64_t at = first; at < last; at += panel_width) {
    SpreadColumns<T> panel{rows, picks, line, table, {}, 0};
    panel.spread(at, last, alone);
    for (std::int64_t some = at; some < count; some += panel_width) {
      const std::int64_t stop = some + panel_width < count ? some + panel_width : count;
      for (std::int64_t r = some; r < stop; ++r) {
        Vec<T> values[kSparseVectors];
        panel.template values<Term>(f, rows, picks[r], alone[r], values);
        store_panel<T>(out[r] + at, values, panel.width);
      }
      if (some > at) mirror<T>(out, some, stop, at, at + panel.width);
    }
    panel.clear();
  }
}

// The block where there are fewer rows than columns: the rows are spread, the columns [first, last) meet them one by
// one, and the values, which are symmetric, are turned on their way out.
template <class T, class Term>
void sparse_turned(const Formula& f, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t count,
                   const SparseRows<T>& columns, const std::int64_t* column_picks, std::int64_t first,
                   std::int64_t last, const T* row_alone, const T* column_alone, std::int32_t* line, T* table,
                   T* const* out) {
  constexpr std::int64_t panel_width = kSparsePanel<T>;
  constexpr std::int64_t together = 16;
  T values_of[together][kSparsePanel<T>];
  const T* lines[together];
  for (int c = 0; c < together; ++c) lines[c] = values_of[c];
  for (std::int64_t at = 0; at < count; at += panel_width) {
    SpreadColumns<T> panel{rows, row_picks, line, table, {}, 0};
    panel.spread(at, count, row_alone);
    for (std::int64_t some = first; some < last; some += together) {
      const int here = static_cast<int>(some + together < last ? together : last - some);
      for (int c = 0; c < here; ++c) {
        Vec<T> values[kSparseVectors];
        panel.template values<Term>(f, columns, column_picks[some + c], column_alone[some + c], values);
        for (int v = 0; v < kSparseVectors; ++v) store_vector(values_of[c] + v * kWidth<T>, values[v]);
      }
      turn<T>(lines, 0, here, panel.width, out + at, some);
    }
    panel.clear();
  }
}

// out[r] = Σ_c k(r, c) weights[c] for rows [first, last); `weights` is padded with zeros to whole panels.
template <class T, class Term>
void sparse_combination(const Formula& f, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t first,
                        std::int64_t last, const SparseRows<T>& columns, const std::int64_t* column_picks,
                        std::int64_t count, const T* row_alone, const T* column_alone, std::int32_t* line, T* table,
                        const T* weights, double* out) {
  for (std::int64_t r = first; r < last; ++r) out[r] = 0.0;
  for (std::int64_t at = 0; at < count; at += kSparsePanel<T>) {
    SpreadColumns<T> panel{columns, column_picks, line, table, {}, 0};
    panel.spread(at, count, column_alone);
    for (std::int64_t r = first; r < last; ++r) {
      Vec<T> values[kSparseVectors], sum{};
      panel.template values<Term>(f, rows, row_picks[r], row_alone[r], values);
#pragma GCC unroll 4
      for (int v = 0; v < kSparseVectors; ++v) sum += values[v] * load_vector(weights + at + v * kWidth<T>);
      out[r] += sum_of_lanes<T>(sum);
    }
    panel.clear();
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
