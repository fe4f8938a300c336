// The kernel loops for the instruction set MAXMARGIN_LEVEL, with fused multiply-add where it exists.
#include "kernel_loops.hpp"

#include "both_products.hpp"
#include "dense_blocks.hpp"
#include "sparse_blocks.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// One loop for each Term, in its order.
#define MAXMARGIN_TERMS(loop) \
  {loop<T, Product>, loop<T, SquaredDifference>, loop<T, AbsoluteDifference>, loop<T, ChiSquaredDifference>}

template <class T> constexpr BlockLoops<T> block_loops() {
  return {kPanel<T>,
          kStrip,
          kSparsePanel<T>,
          pack<T, double>,
          pack<T, float>,
          MAXMARGIN_TERMS(dense_block),
          MAXMARGIN_TERMS(dense_square),
          MAXMARGIN_TERMS(dense_diagonal),
          MAXMARGIN_TERMS(dense_row),
          MAXMARGIN_TERMS(dense_combination),
          MAXMARGIN_TERMS(separate_sums),
          MAXMARGIN_TERMS(sparse_block),
          MAXMARGIN_TERMS(sparse_transposed),
          MAXMARGIN_TERMS(sparse_square),
          MAXMARGIN_TERMS(sparse_diagonal),
          MAXMARGIN_TERMS(sparse_combination),
          mirror<T>};
}

static void function_of_sums(const Formula& f, const double* sums, std::int64_t count, double* out) {
  std::int64_t k = 0;
  for (; k + kWidth<double> <= count; k += kWidth<double>)
    store_vector(out + k, kernel_value<double>(f, load_vector(sums + k)));
  if (k == count) return;
  double last[kWidth<double>] = {};
  for (std::int64_t l = k; l < count; ++l) last[l - k] = sums[l];
  store_vector(last, kernel_value<double>(f, load_vector(last)));
  for (std::int64_t l = k; l < count; ++l) out[l] = last[l - k];
}

extern const KernelLoops kernels;
const KernelLoops kernels = {block_loops<float>(), block_loops<double>(), function_of_sums, subtract_rows,
                             both_products};

}  // namespace maxmargin::MAXMARGIN_LEVEL
