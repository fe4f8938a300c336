// The loops in double-double arithmetic for the instruction set MAXMARGIN_LEVEL, without fused multiply-add.
#include "extended_loops.hpp"

#include "extended_products.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class Rows> constexpr ExtendedRowLoops<Rows> extended_row_loops() {
  return {extended_decisions<Rows>, extended_combine<Rows>};
}

extern const ExtendedLoops extended;
const ExtendedLoops extended = {{extended_block<ExtendedProduct>, extended_block<ExtendedSquare>,
                                 extended_block<ExtendedAbsolute>, extended_block<ExtendedChiSquare>},
                                extended_row_loops<DenseRows<float>>(),
                                extended_row_loops<DenseRows<double>>(),
                                extended_row_loops<CompressedRows<float, std::int32_t>>(),
                                extended_row_loops<CompressedRows<double, std::int32_t>>(),
                                extended_row_loops<CompressedRows<float, std::int64_t>>(),
                                extended_row_loops<CompressedRows<double, std::int64_t>>(),
                                extended_table_product,
                                normalise};

}  // namespace maxmargin::MAXMARGIN_LEVEL
