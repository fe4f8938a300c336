// The loops that compute blocks of kernel values: their arguments, and the table of them for one instruction set.
//
// The sources are compiled once per instruction set (instruction_sets.hpp). Multiplication and addition may be fused:
// kernel values differ between instruction sets in their last digit, never between blocks, threads or runs.
#pragma once

#include <cstdint>

namespace maxmargin {

// A kernel is a function of a sum over features: function(Σ_k term(x_k, z_k)).
enum class Term : int { product = 0, squared = 1, absolute = 2, chi_squared = 3 };
enum class Function : int {
  identity = 0,             // s
  power = 1,                // (γ s + coef0)^degree
  exponential = 2,          // exp(−γ s)
  tangent = 3,              // tanh(γ s + coef0)
  gaussian_of_product = 4,  // exp(γ (s − ½‖x‖² − ½‖z‖²)), s a product: the Gaussian kernel of γ/2
};

// Samples x with a larger γ ½‖x‖² count as far from the centre of the data (dense_blocks.hpp).
constexpr double kMaxProductExponent = 16.0;

struct Formula {
  Term term;
  Function function;
  double gamma, coef0;
  int degree;
};

// Samples interleaved in panels (columns) or strips (rows); see dense_blocks.hpp.
template <class T> struct PackedSamples {
  const T* values;
  const T* half_norms;
  std::int64_t count;
};

// Some rows of a compressed sparse matrix, and Σ_k term(x_k, 0) of each.
template <class T> struct SparseRows {
  const std::int64_t* starts;
  const std::int32_t* features;
  const T* values;
  const std::int64_t* indices;
  std::int64_t count;
  const T* separate_sums;  // null while they are computed
};

// What a thread needs to expand panels of sparse samples: an entry for each feature, all 0 before and after use, and
// one table row more than a panel has values.
template <class T> struct SparseWorkspace {
  std::int32_t* table_row;
  T* table;
};

// The loops for values in T. Arrays of four have one loop for each Term; `out` points to the rows of the block.
template <class T> struct BlockLoops {
  int panel, strip, sparse_panel;  // columns and rows that are interleaved, and sparse columns of a table

  void (*pack)(const double* data, const std::int64_t* indices, std::int64_t count, std::int64_t features, int width,
               const double* shift, T* out, T* half_norms);
  void (*pack_single)(const float* data, const std::int64_t* indices, std::int64_t count, std::int64_t features,
                      int width, const double* shift, T* out, T* half_norms);
  // Columns of panels [first_panel, last_panel)
  void (*dense[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns, std::int64_t features,
                   std::int64_t first_panel, std::int64_t last_panel, T* const* out);
  void (*dense_square[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                          std::int64_t features, std::int64_t first_panel, std::int64_t last_panel, T* const* out);
  void (*dense_diagonal[4])(const Formula&, const T* data, const std::int64_t* indices, std::int64_t count,
                            std::int64_t features, T* out);
  // One row, a sample of the columns, and whole panels
  void (*dense_row[4])(const Formula&, const PackedSamples<T>& columns, std::int64_t features, std::int64_t row,
                       std::int64_t first_panel, std::int64_t last_panel, T* out);
  // Rows of strips [first_strip, last_strip)
  void (*combination[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                         std::int64_t features, std::int64_t first_strip, std::int64_t last_strip, const T* weights,
                         double* out);
  void (*separate_sums[4])(const SparseRows<T>& rows, T* out);
  // Columns [first, last)
  void (*sparse[4])(const Formula&, const SparseRows<T>& rows, const SparseRows<T>& columns, std::int64_t first,
                    std::int64_t last, const SparseWorkspace<T>&, T* const* out);
  void (*sparse_transposed[4])(const Formula&, const SparseRows<T>& rows, const SparseRows<T>& columns,
                               std::int64_t first, std::int64_t last, const SparseWorkspace<T>&, T* const* out);
  void (*sparse_square[4])(const Formula&, const SparseRows<T>& rows, std::int64_t first, std::int64_t last,
                           const SparseWorkspace<T>&, T* const* out);
  void (*sparse_diagonal[4])(const Formula&, const SparseRows<T>& rows, T* out);
  // Rows [first, last)
  void (*sparse_combination[4])(const Formula&, const SparseRows<T>& rows, const SparseRows<T>& columns,
                                std::int64_t first, std::int64_t last, const SparseWorkspace<T>&, const T* weights,
                                double* out);
  void (*mirror)(T* const* out, std::int64_t first_row, std::int64_t last_row, std::int64_t first, std::int64_t last);
};

struct KernelLoops {
  BlockLoops<float> in_single;
  BlockLoops<double> in_double;
  // Of Σ_k term(x_k, z_k)
  void (*function_of_sums)(const Formula&, const double* sums, std::int64_t count, double* out);
  void (*subtract_rows)(double* gradient, const float* const* rows, const double* change, std::int64_t count,
                        std::int64_t begin, std::int64_t end);
  // Of rows [first, last) of an n × n table; returns their largest magnitude
  double (*both_products)(const double* table, const double* vector, std::int64_t n, std::int64_t first,
                          std::int64_t last, double* product, double* transposed);
};

}  // namespace maxmargin
