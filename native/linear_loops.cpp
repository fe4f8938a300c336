// The loops of linear models for the instruction set MAXMARGIN_LEVEL, with fused multiply-add where it exists.
#include "linear_loops.hpp"

#include "coordinate_ascent.hpp"
#include "l1_coordinate_descent.hpp"
#include "linear_certificate.hpp"
#include "pass_sums.hpp"
#include "responses.hpp"
#include "row_products.hpp"
#include "small_linear.hpp"
#include "subgradient_steps.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class Rows> constexpr RowLoops<Rows> row_loops() {
  return {decisions<Rows>,    combine_rows<Rows>, squared_norms<Rows>,     add_moments,          ascend<Rows>,
          respond_rows<Rows>, sum_pass<Rows>,     subgradient_steps<Rows>, descend_columns<Rows>};
}

extern const LinearLoops linear;
const LinearLoops linear = {row_loops<DenseRows<float>>(),
                            row_loops<DenseRows<double>>(),
                            row_loops<CompressedRows<float, std::int32_t>>(),
                            row_loops<CompressedRows<double, std::int32_t>>(),
                            row_loops<CompressedRows<float, std::int64_t>>(),
                            row_loops<CompressedRows<double, std::int64_t>>(),
                            respond,
                            loss,
                            derivatives,
                            descend_model,
                            solve_positive_definite,
                            small_memory,
                            solve_small,
                            certify_linear};

}  // namespace maxmargin::MAXMARGIN_LEVEL
