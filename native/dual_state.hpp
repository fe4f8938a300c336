// The state of a pairwise solver: flat arrays in working order, and the rows of the matrix that are at hand.
//
// The problem is  max linear·b − ½ bᵀMb − ½ Σ ridge_i b_i²,  lower ≤ b ≤ upper,  Σ_{group g} b = total_g.
// Working order: the first `active` positions hold the variables that take part; the rest are shrunk away.
#pragma once

#include <cstdint>

namespace maxmargin {

struct DualState {
  double* dual;              // b
  double* gradient;          // linear − M b − ridge∘b, kept up to date for active positions
  const double* lower;
  const double* upper;
  const double* diagonal;    // M_ii + ridge_i
  const double* ridge;
  const std::int32_t* group; // 0 … groups−1, or −1 for a variable in no group
  double* bounded_part;      // Σ over variables at a non-zero bound of b_k M_k·, or null when nothing shrinks
  std::int64_t size;
  std::int64_t active;
  std::int32_t groups;
  std::int64_t singles;      // how many variables are in no group

  bool can_increase(std::int64_t k) const { return dual[k] < upper[k]; }
  bool can_decrease(std::int64_t k) const { return dual[k] > lower[k]; }
  double room_up(std::int64_t k) const { return upper[k] - dual[k]; }
  double room_down(std::int64_t k) const { return dual[k] - lower[k]; }
  // What a variable contributes to bounded_part: its value if it rests on a bound, else nothing.
  double resting(std::int64_t k, double value) const {
    return value == lower[k] || value == upper[k] ? value : 0.0;
  }
};

// A least-recently-used store of matrix rows. Filled by the caller; the loop only reads and stamps.
struct RowStore {
  const double* storage;        // one row of `stride` values per slot
  std::int64_t stride;
  const std::int64_t* slot;     // slot of a position's row, or −1
  const std::int64_t* length;   // how many leading values of a slot are valid
  std::int64_t* last_use;       // by slot
  std::int64_t clock;
  std::int64_t requests = 0;

  const double* find(std::int64_t position, std::int64_t needed) const {
    const std::int64_t s = slot[position];
    return s >= 0 && length[s] >= needed ? storage + s * stride : nullptr;
  }
  void stamp(std::int64_t position) { last_use[slot[position]] = ++clock; ++requests; }
};

}  // namespace maxmargin
