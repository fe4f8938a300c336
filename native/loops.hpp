// The loops that Python calls: what goes in, what comes out, and one table of them per instruction set.
//
// The same source, loops.cpp, is compiled once per level (x86-64-v2, -v3, -v4; "plain" elsewhere) inside a namespace of
// its own, so that no code of one level can stand in for another's. Nothing may fuse multiply and add or reorder sums
// (-ffp-contract=off, no fast-math): every level returns the same bits; only the speed differs. For the same reason
// loops.cpp uses no containers of the standard library; buffers are handed in.
#pragma once

#include <cstdint>

namespace maxmargin {

// ---- sums over the features of two samples ------------------------------------------------------------------

enum class Term : int { product = 0, squared = 1, absolute = 2, chi_squared = 3 };

template <class Index> struct SparseRows {  // compressed sparse rows
  const Index* starts;
  const Index* features;
  const double* values;
};

using DensePairSums = void (*)(const double* left, const std::int64_t* left_picks, std::int64_t rows,
                               const double* right, const std::int64_t* right_picks, std::int64_t columns,
                               std::int64_t features, double* out);

template <class Index>
using SparsePairSums = void (*)(SparseRows<Index> left, const std::int64_t* left_picks, std::int64_t rows,
                                SparseRows<Index> right, const std::int64_t* right_picks, std::int64_t columns,
                                double* spread, double* out);

// ---- pair steps -----------------------------------------------------------------------------------------------

// The state of a pairwise solver: flat arrays in working order. The problem is
//   max linear·b − ½ bᵀMb − ½ Σ ridge_i b_i²,  lower ≤ b ≤ upper,  Σ_{group g} b = total_g.
// The first `active` positions hold the variables that take part; the rest are shrunk away.
struct DualState {
  double* dual;               // b
  double* gradient;           // linear − M b − ridge∘b, kept up to date for active positions
  const double* lower;
  const double* upper;
  const double* diagonal;     // M_ii + ridge_i
  const double* ridge;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  double* bounded_part;       // Σ over variables at a non-zero bound of b_k M_k·, or null when nothing shrinks
  std::int64_t size;
  std::int64_t active;
  std::int32_t groups;
  std::int64_t singles;       // how many variables are in no group
};

// A least-recently-used store of matrix rows. Filled by the caller; the loop only reads and stamps.
struct RowStore {
  const double* storage;       // one row of `stride` values per slot
  std::int64_t stride;
  const std::int64_t* slot;    // slot of a position's row, or −1
  const std::int64_t* length;  // how many leading values of a slot are valid
  std::int64_t* last_use;      // by slot
  std::int64_t clock;
  std::int64_t requests;
};

enum class Rule : int { most_violating_pair = 0, second_order = 1, maximum_gain = 2 };

// The largest gradient that may grow and the smallest that may fall, and where they are.
struct Extreme {
  double high, low;
  std::int64_t high_at, low_at;
};

// What a selection rule remembers between two calls.
struct SelectionMemory {
  Rule rule;
  std::int64_t previous_up, previous_down;  // the last pair that moved
  std::int64_t pending_up, pending_down;    // chosen, but its rows were not at hand: taken up again
  double pending_violation;
  Extreme* extremes;                        // room for one more than there are groups
};

enum class Reason : int { optimal = 0, needs_row = 1, paused = 2, unbounded = 3, precision = 4 };

struct Outcome {
  Reason reason = Reason::paused;
  std::int64_t steps = 0;
  std::int64_t row = -1;  // with needs_row: the position, and how many leading values are wanted
  std::int64_t length = 0;
  double violation = 0.0;
  double gain = 0.0;      // by how much the dual rose
};

// ---- the table --------------------------------------------------------------------------------------------------

struct Loops {
  const char* level;
  DensePairSums dense[4];  // by Term
  SparsePairSums<std::int32_t> sparse32[4];
  SparsePairSums<std::int64_t> sparse64[4];
  Outcome (*pairwise)(DualState&, RowStore&, SelectionMemory&, double tolerance, std::int64_t max_steps, double max_seconds);
};

#if defined(__x86_64__)
namespace v2 { extern const Loops loops; }
namespace v3 { extern const Loops loops; }
namespace v4 { extern const Loops loops; }
#else
namespace plain { extern const Loops loops; }
#endif

}  // namespace maxmargin
