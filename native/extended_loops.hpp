// The loops in double-double arithmetic, for certificates whose rounding errors in double precision are too large:
// their arguments, and the table of them for one instruction set. The sources are compiled without fused multiply-add.
#pragma once

#include <cstdint>

#include "kernel_loops.hpp"
#include "linear_loops.hpp"

namespace maxmargin {

// A vector or table of numbers high + low; `low` may be null for zeros.
struct ExtendedInput {
  const double *high, *low;
};
struct ExtendedOutput {
  double *high, *low;
};

template <class Rows> struct ExtendedRowLoops {
  // out[k] = row k · weights for k in [begin, end)
  void (*decisions)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
                    ExtendedInput weights, ExtendedOutput out);
  // out += Σ_k factors[k] row k for k in [begin, end)
  void (*combine)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end, ExtendedInput factors,
                  ExtendedOutput out);
};

struct ExtendedLoops {
  // The block of kernel values of the rows of strips [first_strip, last_strip) with all columns, `stride` values a row;
  // one loop for each Term. The term of feature k is multiplied by weights[k], by 1 where they are null.
  void (*dense[4])(const Formula&, const PackedSamples<double>& rows, const PackedSamples<double>& columns,
                   std::int64_t features, const double* weights, std::int64_t first_strip, std::int64_t last_strip,
                   std::int64_t stride, ExtendedOutput out);
  ExtendedRowLoops<DenseRows<float>> dense_single;
  ExtendedRowLoops<DenseRows<double>> dense_double;
  ExtendedRowLoops<CompressedRows<float, std::int32_t>> short_single;
  ExtendedRowLoops<CompressedRows<double, std::int32_t>> short_double;
  ExtendedRowLoops<CompressedRows<float, std::int64_t>> long_single;
  ExtendedRowLoops<CompressedRows<double, std::int64_t>> long_double;
  // out[r] = Σ_c table[r][c] vector[c] for r in [begin, end)
  void (*table_product)(ExtendedInput table, std::int64_t begin, std::int64_t end, std::int64_t columns,
                        ExtendedInput vector, ExtendedOutput out);
  void (*normalise)(ExtendedOutput values, std::int64_t count);
};

}  // namespace maxmargin
