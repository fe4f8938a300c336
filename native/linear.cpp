// Compiled once per instruction set, with fused multiply-add where there is one; MAXMARGIN_LEVEL names the namespace.
#include "linear_rows.hpp"
#include "loops.hpp"
#include "slack_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

extern const LinearLoops linear;
const LinearLoops linear = {row_loops<DenseRows<float>>(),
                            row_loops<DenseRows<double>>(),
                            row_loops<CompressedRows<float, std::int32_t>>(),
                            row_loops<CompressedRows<double, std::int32_t>>(),
                            row_loops<CompressedRows<float, std::int64_t>>(),
                            row_loops<CompressedRows<double, std::int64_t>>(),
                            respond,
                            slope};

}  // namespace maxmargin::MAXMARGIN_LEVEL
