// Compiled once per instruction set, with fused multiply-add where there is one; MAXMARGIN_LEVEL names the namespace.
#include "coordinate_steps.hpp"
#include "linear_rows.hpp"
#include "loops.hpp"
#include "slack_loops.hpp"
#include "sparse_weights.hpp"
#include "stochastic_rows.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

template <class Rows> constexpr RowLoops<Rows> all_loops() {
  RowLoops<Rows> loops = row_loops<Rows>();
  loops.ascend = ascend<Rows>;
  loops.respond = respond_rows<Rows>;
  loops.descend = descend<Rows>;
  loops.descend_columns = descend_columns<Rows>;
  return loops;
}

extern const LinearLoops linear;
const LinearLoops linear = {all_loops<DenseRows<float>>(),
                            all_loops<DenseRows<double>>(),
                            all_loops<CompressedRows<float, std::int32_t>>(),
                            all_loops<CompressedRows<double, std::int32_t>>(),
                            all_loops<CompressedRows<float, std::int64_t>>(),
                            all_loops<CompressedRows<double, std::int64_t>>(),
                            respond,
                            loss,
                            slope,
                            descend_model};

}  // namespace maxmargin::MAXMARGIN_LEVEL
