// Compiled once per instruction set, with fused multiply-add where there is one; MAXMARGIN_LEVEL names the namespace.
#include "kernel_block.hpp"
#include "loops.hpp"
#include "sparse_block.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class T> constexpr BlockLoops<T> block_loops() {
  return {kPanel<T>,
          kStrip,
          kSparsePanel<T>,
          pack<T>,
          {dense_block<T, Product>, dense_block<T, SquaredDifference>, dense_block<T, AbsoluteDifference>,
           dense_block<T, ChiSquaredDifference>},
          {dense_square<T, Product>, dense_square<T, SquaredDifference>, dense_square<T, AbsoluteDifference>,
           dense_square<T, ChiSquaredDifference>},
          {dense_combination<T, Product>, dense_combination<T, SquaredDifference>,
           dense_combination<T, AbsoluteDifference>, dense_combination<T, ChiSquaredDifference>},
          {sparse_alone<T, Product>, sparse_alone<T, SquaredDifference>, sparse_alone<T, AbsoluteDifference>,
           sparse_alone<T, ChiSquaredDifference>},
          {sparse_block<T, Product>, sparse_block<T, SquaredDifference>, sparse_block<T, AbsoluteDifference>,
           sparse_block<T, ChiSquaredDifference>},
          {sparse_turned<T, Product>, sparse_turned<T, SquaredDifference>, sparse_turned<T, AbsoluteDifference>,
           sparse_turned<T, ChiSquaredDifference>},
          {sparse_square<T, Product>, sparse_square<T, SquaredDifference>, sparse_square<T, AbsoluteDifference>,
           sparse_square<T, ChiSquaredDifference>},
          {sparse_combination<T, Product>, sparse_combination<T, SquaredDifference>,
           sparse_combination<T, AbsoluteDifference>, sparse_combination<T, ChiSquaredDifference>},
          mirror<T>};
}

extern const KernelLoops kernels;
const KernelLoops kernels = {block_loops<float>(), block_loops<double>(), subtract_rows};

}  // namespace maxmargin::MAXMARGIN_LEVEL
