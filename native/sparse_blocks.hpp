// Blocks of kernel values of compressed sparse rows, without a dense copy of the data.
//
// A panel of columns is expanded into a table with a row for every feature that occurs in it and a lane for every
// column. A row of the block then costs its own stored features, each of which serves the whole panel at once:
//   Σ_k term(x_k, z_k) = (Σ_k separate(x_k) + Σ_k separate(z_k)) + Σ_{k in x} cross(x_k, z_k)
// Only features that both samples have count in the last sum, so it is symmetric to the last bit, and 0 for equal
// samples if the term is a difference.
#pragma once

#include <cstdint>

#include "dense_blocks.hpp"
#include "kernel_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// out[k] = Σ separate(x) of each row, in vectors of equal lanes so that it rounds exactly as the sums of a block do.
template <class T, class Term> void separate_sums(const SparseRows<T>& rows, T* out) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    Vec<T> sum{};
    for (std::int64_t p = rows.starts[rows.indices[r]]; p < rows.starts[rows.indices[r] + 1]; ++p) {
      Vec<T> value = repeat<T>(rows.values[p]);
      hide(value);  // else the compiler multiplies one lane, and rounds once more
      sum += Term::template separate<Vec<T>>(value);
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

// A panel of samples that is expanded into a table.
template <class T> class ExpandedPanel {
 public:
  static constexpr std::int64_t width = kSparsePanel<T>;

  // The samples [first, last) of `samples`, at most `width` of them.
  ExpandedPanel(const SparseRows<T>& samples, const SparseWorkspace<T>& workspace, std::int64_t first,
                std::int64_t last)
      : samples_(samples),
        indices_(samples.indices + first),
        w_(workspace),
        count_(static_cast<int>(last - first < width ? last - first : width)) {
    std::int32_t rows = 0;
    for (int w = 0; w < width; ++w) w_.table[w] = T(0);  // row 0: features that no sample of the panel has
    for (int w = 0; w < width; ++w) separate_[w] = w < count_ ? samples.separate_sums[first + w] : T(0);
    for (int w = 0; w < count_; ++w)
      for (std::int64_t p = samples_.starts[indices_[w]]; p < samples_.starts[indices_[w] + 1]; ++p) {
        std::int32_t& row = w_.table_row[samples_.features[p]];
        if (!row) {
          row = ++rows;
          for (int v = 0; v < width; ++v) w_.table[row * width + v] = T(0);
        }
        w_.table[row * width + w] = samples_.values[p];
      }
  }

  ~ExpandedPanel() {
    for (int w = 0; w < count_; ++w)
      for (std::int64_t p = samples_.starts[indices_[w]]; p < samples_.starts[indices_[w] + 1]; ++p)
        w_.table_row[samples_.features[p]] = 0;
  }

  ExpandedPanel(const ExpandedPanel&) = delete;
  ExpandedPanel& operator=(const ExpandedPanel&) = delete;

  int count() const { return count_; }

  // The kernel values of sample r of `rows` with the panel.
  template <class Term>
  MAXMARGIN_INLINE void values(const Formula& f, const SparseRows<T>& rows, std::int64_t r,
                               Vec<T> (&out)[kSparseVectors]) const {
    const std::int64_t x = rows.indices[r];
#pragma GCC unroll 4
    for (int v = 0; v < kSparseVectors; ++v) out[v] = Vec<T>{};
    for (std::int64_t p = rows.starts[x]; p < rows.starts[x + 1]; ++p) {
      const Vec<T> value = repeat<T>(rows.values[p]);
      const T* z = w_.table + w_.table_row[rows.features[p]] * width;
#pragma GCC unroll 4
      for (int v = 0; v < kSparseVectors; ++v)
        out[v] += Term::template cross<Vec<T>>(value, load_vector(z + v * kWidth<T>));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kSparseVectors; ++v)
      out[v] = kernel_value<T>(f, (rows.separate_sums[r] + load_vector(separate_ + v * kWidth<T>)) + out[v]);
  }

 private:
  const SparseRows<T>& samples_;
  const std::int64_t* indices_;
  const SparseWorkspace<T>& w_;
  T separate_[kSparsePanel<T>];
  int count_;
};

// Columns [first, last) of the block, first a multiple of the panel.
template <class T, class Term>
void sparse_block(const Formula& f, const SparseRows<T>& rows, const SparseRows<T>& columns, std::int64_t first,
                  std::int64_t last, const SparseWorkspace<T>& workspace, T* const* out) {
  for (std::int64_t at = first; at < last; at += kSparsePanel<T>) {
    const ExpandedPanel<T> panel(columns, workspace, at, last);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      Vec<T> values[kSparseVectors];
      panel.template values<Term>(f, rows, r, values);
      store_panel<T>(out[r] + at, values, panel.count());
    }
  }
}

// The same if rows and columns are the same samples: from the diagonal downwards, and mirrored.
template <class T, class Term>
void sparse_square(const Formula& f, const SparseRows<T>& rows, std::int64_t first, std::int64_t last,
                   const SparseWorkspace<T>& workspace, T* const* out) {
  constexpr std::int64_t width = kSparsePanel<T>;
  for (std::int64_t at = first; at < last; at += width) {
    const ExpandedPanel<T> panel(rows, workspace, at, last);
    for (std::int64_t begin = at; begin < rows.count; begin += width) {
      const std::int64_t end = begin + width < rows.count ? begin + width : rows.count;
      for (std::int64_t r = begin; r < end; ++r) {
        Vec<T> values[kSparseVectors];
        panel.template values<Term>(f, rows, r, values);
        store_panel<T>(out[r] + at, values, panel.count());
      }
      if (begin > at) mirror<T>(out, begin, end, at, at + panel.count());
    }
  }
}

// Columns [first, last) of the block if there are fewer rows than columns: the rows are expanded, and the values, which
// are symmetric, are transposed.
template <class T, class Term>
void sparse_transposed(const Formula& f, const SparseRows<T>& rows, const SparseRows<T>& columns, std::int64_t first,
                       std::int64_t last, const SparseWorkspace<T>& workspace, T* const* out) {
  constexpr std::int64_t together = 16;
  T buffer[together][kSparsePanel<T>];
  const T* buffered[together];
  for (int c = 0; c < together; ++c) buffered[c] = buffer[c];
  for (std::int64_t at = 0; at < rows.count; at += kSparsePanel<T>) {
    const ExpandedPanel<T> panel(rows, workspace, at, rows.count);
    for (std::int64_t begin = first; begin < last; begin += together) {
      const int count = static_cast<int>(begin + together < last ? together : last - begin);
      for (int c = 0; c < count; ++c) {
        Vec<T> values[kSparseVectors];
        panel.template values<Term>(f, columns, begin + c, values);
        for (int v = 0; v < kSparseVectors; ++v) store_vector(buffer[c] + v * kWidth<T>, values[v]);
      }
      transpose<T>(buffered, 0, count, panel.count(), out + at, begin);
    }
  }
}

// out[r] = k(x, x) for each of the samples, bit for bit the value of a block.
template <class T, class Term> void sparse_diagonal(const Formula& f, const SparseRows<T>& rows, T* out) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    Vec<T> sum{};
    for (std::int64_t p = rows.starts[rows.indices[r]]; p < rows.starts[rows.indices[r] + 1]; ++p) {
      Vec<T> value = repeat<T>(rows.values[p]);
      hide(value);  // as in separate_sums
      sum += Term::template cross<Vec<T>>(value, value);
    }
    const Vec<T> separate = repeat<T>(rows.separate_sums[r]);
    out[r] = kernel_value<T>(f, (separate + separate) + sum)[0];
  }
}

// out[r] = Σ_c k(r, c) weights[c] for rows [first, last); `weights` is padded with zeros to whole panels.
template <class T, class Term>
void sparse_combination(const Formula& f, const SparseRows<T>& rows, const SparseRows<T>& columns, std::int64_t first,
                        std::int64_t last, const SparseWorkspace<T>& workspace, const T* weights, double* out) {
  for (std::int64_t r = first; r < last; ++r) out[r] = 0.0;
  for (std::int64_t at = 0; at < columns.count; at += kSparsePanel<T>) {
    const ExpandedPanel<T> panel(columns, workspace, at, columns.count);
    for (std::int64_t r = first; r < last; ++r) {
      Vec<T> values[kSparseVectors], sum{};
      panel.template values<Term>(f, rows, r, values);
#pragma GCC unroll 4
      for (int v = 0; v < kSparseVectors; ++v) sum += values[v] * load_vector(weights + at + v * kWidth<T>);
      out[r] += sum_of_lanes<T>(sum);
    }
  }
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
