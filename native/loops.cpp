// Compiled once per instruction set; MAXMARGIN_LEVEL names the namespace.
#include "loops.hpp"

#include "pair_sums.hpp"
#include "pairwise.hpp"

#define MAXMARGIN_QUOTE_(x) #x
#define MAXMARGIN_QUOTE(x) MAXMARGIN_QUOTE_(x)

namespace maxmargin::MAXMARGIN_LEVEL {

extern const Loops loops;
const Loops loops = {
    MAXMARGIN_QUOTE(MAXMARGIN_LEVEL),
    {dense_pair_sums<Product>, dense_pair_sums<SquaredDifference>, dense_pair_sums<AbsoluteDifference>,
     dense_pair_sums<ChiSquaredDifference>},
    {sparse_products<std::int32_t>, sparse_differences<SquaredDifference, std::int32_t>,
     sparse_differences<AbsoluteDifference, std::int32_t>, sparse_differences<ChiSquaredDifference, std::int32_t>},
    {sparse_products<std::int64_t>, sparse_differences<SquaredDifference, std::int64_t>,
     sparse_differences<AbsoluteDifference, std::int64_t>, sparse_differences<ChiSquaredDifference, std::int64_t>},
    run_pairwise,
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
