// Pair steps with second-order selection on the square block of the matrix between the variables of a working set
// (Bottou & Lin 1.27; the loop of backends/numpy_backend.py), by one thread block, or by a cluster of blocks on as many
// multiprocessors.
//
// A step takes two barriers: one for the variable that increases and the other end of the gradient, one for its partner.
// Each thread keeps its variables in registers. Every warp offers a candidate with all that the others need of it, to
// every block of the cluster, and combines the candidates of all warps by itself. Candidates are compared in float32, as
// differences from the middle of the interval of the step before, so that the comparison is exact to rounding near the
// optimum; steps, gradient, dual vector and violation are float64. The middle is handed from launch to launch: how steps
// are divided into launches changes nothing.
//
// Compile-time parameters: VALUE (float or double, of the matrix), BLOCKS (of the cluster; 1 for none), THREADS (of each
// block), VARIABLES (per thread), GROUPS (1 or 2), SINGLES (whether variables without a group exist), KINKS, RIDGE,
// BOUND_TOLERANCE.

#include "working_set.cuh"

constexpr int kSlots = BLOCKS * kWarps, kSlotsPerLane = (kSlots + 31) / 32;

// What is known of a variable of the working set that may change: its key (0 for none) and number, the slope of the
// objective towards the step, the dual variable, the room to its bound, and the curvature.
struct __align__(16) Candidate {
  unsigned key;
  int variable;
  double slope, dual, room, curvature, unused;
};

// Offer the best candidate of each warp to all blocks. `brief` leaves out all but key, number and slope.
__device__ __forceinline__ void offer(Candidate (&slots)[kSlots], const Candidate& own, bool brief) {
  const unsigned best = __reduce_max_sync(kAll, own.key);
  const int winner = __ffs(__ballot_sync(kAll, own.key == best)) - 1, lane = threadIdx.x & 31;
  Candidate* slot = &slots[block_of_cluster() * kWarps + threadIdx.x / 32];
#if BLOCKS > 1
  Candidate all = own;
  all.variable = __shfl_sync(kAll, own.variable, winner);
  all.slope = __shfl_sync(kAll, own.slope, winner);
  if (!brief) {
    all.dual = __shfl_sync(kAll, own.dual, winner);
    all.room = __shfl_sync(kAll, own.room, winner);
    all.curvature = __shfl_sync(kAll, own.curvature, winner);
  }
  if (lane < BLOCKS) {
    const unsigned at = remote_address(slot, lane);
    store_remote(at, __hiloint2double(all.variable, (int)best), all.slope);
    if (!brief) {
      store_remote(at + 16, all.dual, all.room);
      store_remote(at + 32, all.curvature, 0.0);
    }
  }
#else
  if (lane == winner) *slot = own;
#endif
}

// The best of the candidates of all warps, the same for all threads.
__device__ __forceinline__ Candidate winner_of(const Candidate (&slots)[kSlots]) {
  const int lane = threadIdx.x & 31;
  unsigned key = 0;
  int at = 0;
#pragma unroll
  for (int k = 0; k < kSlotsPerLane; ++k) {
    const int slot = lane + 32 * k;
    const unsigned here = slot < kSlots ? slots[slot].key : 0u;
    if (here > key) key = here, at = slot;
  }
  const unsigned best = __reduce_max_sync(kAll, key);
  at = __shfl_sync(kAll, at, __ffs(__ballot_sync(kAll, key == best)) - 1);
  return slots[at];
}

// What the warps offer each other in a step.
struct Offers {
  Candidate up[GROUPS][kSlots], down[GROUPS][kSlots], partners[kSlots], singles[SINGLES ? kSlots : 1];
};

// Offer the ends of the gradient, and the most violating single variable.
__device__ __forceinline__ void offer_ends(Offers& offers, const Variable (&own)[VARIABLES], int first,
                                           const double (&middle)[GROUPS]) {
  Candidate up[GROUPS] = {}, down[GROUPS] = {}, single = {};
  int up_at[GROUPS] = {};
  bool finite = true;
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) {
    const Variable& one = own[v];
    finite = finite && isfinite(one.gradient);
#if SINGLES
    if (one.flags & kSingle) {
      const double grows = one.flags & kGrows ? one.growing() : 0.0, falls = one.flags & kFalls ? -one.falling() : 0.0;
      const double worst = fmax(0.0, fmax(grows, falls));
      const unsigned key = worst > 0.0 ? ordered((float)worst) : 0u;
      if (key > single.key) {
        single.key = key, single.variable = first + v * THREADS, single.slope = grows > falls ? grows : -falls;
        single.dual = one.dual, single.room = one.room(grows > falls ? 1.0 : -1.0), single.curvature = one.diagonal;
      }
      continue;
    }
#endif
    const int group = GROUPS > 1 && one.flags & kSecondGroup;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) {
      if (c != group) continue;
      if (one.flags & kGrows) {
        const unsigned key = ordered((float)(one.growing() - middle[c]));
        if (key > up[c].key) up[c].key = key, up_at[c] = v;
      }
      if (one.flags & kFalls) {
        const unsigned key = ordered((float)(middle[c] - one.falling()));
        if (key > down[c].key) down[c].key = key, down[c].slope = one.falling();
      }
    }
  }
#pragma unroll
  for (int c = 0; c < GROUPS; ++c) {
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      if (v != up_at[c]) continue;
      up[c].variable = first + v * THREADS, up[c].slope = own[v].growing(), up[c].dual = own[v].dual;
      up[c].room = own[v].room(1.0), up[c].curvature = own[v].diagonal;
    }
    if (!finite) up[c].key = kNotFinite;
    offer(offers.up[c], up[c], false);
    offer(offers.down[c], down[c], true);
  }
#if SINGLES
  offer(offers.singles, single, false);
#endif
}

// Offer the partner of the largest gain without bounds for the variable that grows; `values` is its row.
__device__ __forceinline__ void offer_partner(Offers& offers, const Variable (&own)[VARIABLES], int first,
                                              const Candidate& up, int group, const VALUE (&values)[VARIABLES]) {
  Candidate best = {};
  int at = 0;
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) {
    const Variable& one = own[v];
    if (!(one.flags & kFalls) || (SINGLES && one.flags & kSingle)) continue;
    if (GROUPS > 1 && (one.flags & kSecondGroup ? 1 : 0) != group) continue;
    const float slope = (float)(up.slope - one.falling());
    if (!(slope > 0.0f)) continue;
    const float curvature = fmaxf((float)up.curvature + (float)one.diagonal - 2.0f * (float)values[v], 1e-12f);
    const unsigned key = ordered(__fdividef(slope * slope, curvature));
    if (key > best.key) best.key = key, at = v;
  }
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) {
    if (v != at) continue;
    best.variable = first + v * THREADS, best.slope = own[v].falling(), best.dual = own[v].dual;
    best.room = own[v].room(-1.0);
    best.curvature = up.curvature + own[v].diagonal - 2.0 * (double)values[v];
  }
  offer(offers.partners, best, false);
}

// Load a part of a row of the matrix: the values of the variables of this thread.
__device__ __forceinline__ void load_row(VALUE (&values)[VARIABLES], const VALUE* matrix, int row, int size, int first) {
  const VALUE* from = matrix + (long long)row * size;
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) values[v] = first + v * THREADS < size ? __ldg(from + first + v * THREADS) : VALUE(0);
}

// middle, of each group, is that of the launch before. result, in host memory: violation, steps, reason, middle of each
// of two groups, then three numbers of each block.
extern "C" __global__ void __launch_bounds__(THREADS) CLUSTER
    pair_steps(const VALUE* __restrict__ matrix, int size, double* __restrict__ gradient, double* __restrict__ dual,
                   const double* __restrict__ start, const double* __restrict__ lower, const double* __restrict__ upper,
                   const double* __restrict__ kink, const signed char* __restrict__ group,
                   const double* __restrict__ ridge, const double* __restrict__ diagonal, double tolerance,
                   int max_steps, double first_middle, double second_middle, double* __restrict__ result) {
  __shared__ Offers offers;
  const int first = block_of_cluster() * THREADS * VARIABLES + threadIdx.x;
  const WorkingSet set = {size, gradient, dual, start, lower, upper, kink, diagonal, group};
  Variable own[VARIABLES];
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) own[v] = set.load(first + v * THREADS);
  double middle[GROUPS], violation = -kInfinity;
#pragma unroll
  for (int c = 0; c < GROUPS; ++c) middle[c] = c ? second_middle : first_middle;
  int steps = 0, reason = kOptimal;
  barrier();  // all blocks run
  for (;;) {
    offer_ends(offers, own, first, middle);
    barrier();
    Candidate up = {};
    up.variable = -1;
    int chosen = 0;
    bool finite = true;
    double next[GROUPS];
    violation = -kInfinity;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) {
      const Candidate top = winner_of(offers.up[c]), bottom = winner_of(offers.down[c]);
      next[c] = middle[c];
      finite = finite && top.key != kNotFinite;
      if (!top.key || !bottom.key) continue;
      next[c] = 0.5 * (top.slope + bottom.slope);
      if (top.slope - bottom.slope > violation) violation = top.slope - bottom.slope, up = top, chosen = c;
    }
    if (!finite) {
      violation = kInfinity, reason = kPrecision;
      break;
    }
#if SINGLES
    const Candidate single = winner_of(offers.singles);
    const bool alone = single.key && fabs(single.slope) > violation;
    if (alone) violation = fabs(single.slope), up = single;
#else
    constexpr bool alone = false;
#endif
    if (!(violation > tolerance)) break;
    if (steps >= max_steps) {
      reason = kPaused;
      break;
    }
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) middle[c] = next[c];
    VALUE values[VARIABLES], others[VARIABLES];
    load_row(values, matrix, up.variable, size, first);
    Candidate down = {};
    double slope = violation, curvature = up.curvature, sign = 1.0;
    if (alone) {
      sign = up.slope > 0 ? 1.0 : -1.0;
      down.variable = -1, down.room = kInfinity;
#pragma unroll
      for (int v = 0; v < VARIABLES; ++v) others[v] = VALUE(0);
      barrier();  // everyone has read the candidates
    } else {
      offer_partner(offers, own, first, up, chosen, values);
      barrier();
      down = winner_of(offers.partners);
      if (!down.key) {
        reason = kPrecision;
        break;
      }
      load_row(others, matrix, down.variable, size, first);
      slope = up.slope - down.slope, curvature = down.curvature;
    }
    const double step = fmin(curvature > 0 ? slope / curvature : kInfinity, fmin(up.room, down.room));
    if (isinf(step) || (up.dual + sign * step == up.dual && (alone || down.dual - step == down.dual))) {
      reason = isinf(step) ? kUnbounded : kPrecision;
      break;
    }
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      Variable& one = own[v];
      const int k = first + v * THREADS;
      one.gradient -= sign * step * ((double)values[v] - (double)others[v]);
      if (k == up.variable || k == down.variable) {
        const double own_sign = k == up.variable ? sign : -1.0;
        one.dual = one.moved(step, own_sign, step >= (k == up.variable ? up.room : down.room));
        one.set_flags();
#if RIDGE
        one.gradient -= own_sign * step * ridge[k];
#endif
      }
    }
    ++steps;
  }
  set.store(own, first, result + 5 + 3 * block_of_cluster());
  if (threadIdx.x == 0 && block_of_cluster() == 0) {
    result[0] = violation, result[1] = steps, result[2] = reason;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) result[3 + c] = middle[c];
  }
}
