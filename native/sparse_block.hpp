// Blocks of kernel values of compressed sparse rows; the data are never made dense.
//
// A panel of columns is spread over a table with a line for every feature that occurs in it and a lane for every column.
// A row then costs its own stored features, each serving the whole panel at once:
//   Σ_k term(x_k, z_k) = (Σ_k alone(x_k) + Σ_k alone(z_k)) + Σ_{k in x} cross(x_k, z_k)
// Only features that both have count in the last sum, so it is symmetric to the last bit, and 0 for equal samples where
// the term is a difference.
#pragma once

#include <cstdint>

#include "kernel_block.hpp"
#include "loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// out[k] = Σ alone(x) of each chosen row, in vectors of equal lanes so that it rounds exactly as the sums of a block do.
template <class T, class Term>
void sparse_alone(const SparseRows<T>& rows, const std::int64_t* picks, std::int64_t count, T* out) {
  for (std::int64_t r = 0; r < count; ++r) {
    Vec<T> sum{};
    for (std::int64_t p = rows.starts[picks[r]]; p < rows.starts[picks[r] + 1]; ++p) {
      T lanes[kWidth<T>];
      for (T& lane : lanes) lane = rows.values[p];
      asm volatile("" : : "r"(lanes) : "memory");  // else the compiler multiplies one lane, and rounds once more
      sum += Term::template alone<Vec<T>>(load_vector(lanes));
    }
    out[r] = sum[0];
  }
}

// Columns [first, last) of the block, first a multiple of the panel. `line` has an entry per feature, all 0 before and
// after; `table` has room for one line of kPanel<T> more than any panel stores values.
template <class T, class Term>
void sparse_block(const Formula& f, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t count,
                  const SparseRows<T>& columns, const std::int64_t* column_picks, std::int64_t first, std::int64_t last,
                  const T* row_alone, const T* column_alone, std::int32_t* line, T* table, T* const* out) {
  constexpr std::int64_t panel = kPanel<T>;
  for (int w = 0; w < panel; ++w) table[w] = T(0);  // for features that no column has
  for (std::int64_t at = first; at < last; at += panel) {
    const int width = static_cast<int>(last - at < panel ? last - at : panel);
    std::int32_t lines = 0;
    T alone[panel] = {};
    for (int w = 0; w < width; ++w) {
      const std::int64_t z = column_picks[at + w];
      alone[w] = column_alone[at + w];
      for (std::int64_t p = columns.starts[z]; p < columns.starts[z + 1]; ++p) {
        std::int32_t& mine = line[columns.features[p]];
        if (!mine) {
          mine = ++lines;
          for (int v = 0; v < panel; ++v) table[mine * panel + v] = T(0);
        }
        table[mine * panel + w] = columns.values[p];
      }
    }
    const Vec<T> alone_first = load_vector(alone), alone_second = load_vector(alone + kWidth<T>);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t x = row_picks[r];
      Vec<T> first_sum{}, second_sum{};
      for (std::int64_t p = rows.starts[x]; p < rows.starts[x + 1]; ++p) {
        const Vec<T> value = repeat<T>(rows.values[p]);
        const T* z = table + line[rows.features[p]] * panel;
        first_sum += Term::template cross<Vec<T>>(value, load_vector(z));
        second_sum += Term::template cross<Vec<T>>(value, load_vector(z + kWidth<T>));
      }
      store_some<T>(out[r] + at, kernel_value<T>(f, (row_alone[r] + alone_first) + first_sum, Vec<T>{}),
                    kernel_value<T>(f, (row_alone[r] + alone_second) + second_sum, Vec<T>{}), width);
    }
    for (int w = 0; w < width; ++w) {
      const std::int64_t z = column_picks[at + w];
      for (std::int64_t p = columns.starts[z]; p < columns.starts[z + 1]; ++p) line[columns.features[p]] = 0;
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
