// Joint steps on the square block of the matrix between the variables of a large working set: many pair steps between two
// exchanges of what all multiprocessors know. By one thread block, or by a cluster of blocks on as many multiprocessors.
//
// Each thread keeps its variables in registers. In a joint step, neighbouring warps offer the variable that is to grow and
// the one that is to fall of theirs, of those that the step before did not take. What was offered last time stays. So 128
// members move at once: the first warp of every block takes pair steps with second-order selection on the square block
// between them in shared memory, all blocks the same, until their violation is a fraction of that at the start. Among the
// members are both ends of the gradient of all variables: their first violation is that of all. Then all threads update
// their gradients by the members that have changed.
//
// Gradient, dual vector, rooms to bounds and the violation between two joint steps are float64. Within a joint step, slopes
// are float32 differences from the middle of the interval of the gradient, exact to rounding near its ends; they decide
// selection and lengths of pair steps, of which the dual variables are then exact sums. Middle and members are handed from
// launch to launch: how steps are divided into launches changes nothing.
//
// Compile-time parameters: those of working_set.cuh for 32 warps or a multiple, of one group and without single variables;
// FRACTION (of the violation that the members end with), RIDGE.

#include "working_set.cuh"

constexpr int kAtEachEnd = 32, kBank = 2 * kAtEachEnd, kMembers = 2 * kBank, kEach = kMembers / 32;
constexpr int kShare = BLOCKS * kWarps / kAtEachEnd;  // warps that offer together
constexpr int kStride = kMembers + 4;                 // of a row of the square block: 16 bytes more
constexpr int kMaxSteps = kMembers;                   // pair steps of a joint step
constexpr int kBatchSize = (THREADS > 512 ? 16 : 32) / VARIABLES, kBatch = kBatchSize > 1 ? kBatchSize : 2;  // of rows
constexpr int kGoesOn = -1;
#define kNever __int_as_float(0x7f800000)  // infinity
static_assert(kShare * kAtEachEnd == BLOCKS * kWarps, "32 warps, or a multiple");

// What a warp offers: a key (0 for nothing), and a variable with its gradient and dual variable.
struct __align__(16) Offer {
  unsigned key;
  int variable;
  double gradient, dual, unused;
};

// Members are in two banks of 64, in turn those that are offered and those of the step before. They are numbered
// lane · 4 + 2 · bank + end, end 0 for those offered to grow; each lane of the first warp has those of a slot, which are
// offered by the same warps. Rows of the square block are in another order, see `row_of`.
struct Shared {
  Offer up[BLOCKS * kWarps], down[BLOCKS * kWarps];
  int variable[kMembers];                                  // -1 for none
  double gradient[kMembers], before[kMembers];             // gradient and dual variable before the step
  double dual[kMembers];                                   // after it
  double lower[kMembers], upper[kMembers], kink[kMembers], ridge[kMembers];
  double room_up[kMembers], room_down[kMembers];
  __align__(16) float grows[kMembers], falls[kMembers];  // what is added to slopes: -infinity and infinity at bounds
  float diagonal[kMembers];
  int row[kMembers + 32];  // those that have changed, one after the other
  double weight[kMembers + 32];
  int rows, steps, reason;
  double middle, violation;
};

__device__ __forceinline__ int row_of(int member) { return member % 4 * 32 + member / 4; }

__device__ __forceinline__ int first_lane(bool which) { return __ffs(__ballot_sync(kAll, which)) - 1; }

// Offer the best candidate of a warp to all blocks.
__device__ __forceinline__ void offer(Offer* slot, unsigned key, int variable, double gradient, double dual) {
  const unsigned best = __reduce_max_sync(kAll, key);
  const int winner = first_lane(key == best), lane = threadIdx.x & 31;
#if BLOCKS > 1
  variable = __shfl_sync(kAll, variable, winner);
  gradient = __shfl_sync(kAll, gradient, winner);
  dual = __shfl_sync(kAll, dual, winner);
  if (lane < BLOCKS) {
    const unsigned at = remote_address(slot, lane);
    store_remote(at, __hiloint2double(variable, (int)best), gradient);
    store_remote(at + 16, dual, 0.0);
  }
#else
  if (lane == winner) *slot = {best, variable, gradient, dual, 0.0};
#endif
}

// Offer the ends of the gradient among the variables of a warp that are not members already.
__device__ __forceinline__ void offer_ends(Shared& shared, const Variable (&own)[VARIABLES], int first) {
  const double middle = shared.middle;
  unsigned up = 0, down = 0;
  Variable top = own[0], bottom = own[0];
  int top_at = first, bottom_at = first;
  bool finite = true;
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) {
    const Variable& one = own[v];
    finite = finite && isfinite(one.gradient);
    if (one.flags & kMember) continue;
    const unsigned grows = one.flags & kGrows ? ordered((float)(one.growing() - middle)) : 0u;
    const unsigned falls = one.flags & kFalls ? ordered((float)(middle - one.falling())) : 0u;
    if (grows > up) up = grows, top = one, top_at = first + v * THREADS;
    if (falls > down) down = falls, bottom = one, bottom_at = first + v * THREADS;
  }
  const int slot = block_of_cluster() * kWarps + threadIdx.x / 32;
  offer(&shared.up[slot], finite ? up : kNotFinite, top_at, top.gradient, top.dual);
  offer(&shared.down[slot], down, bottom_at, bottom.gradient, bottom.dual);
}

// The best offer of some neighbouring warps, those of a lane.
__device__ __forceinline__ Offer best_of(const Offer* offers) {
  const int first = (threadIdx.x & 31) * kShare;
  int at = first;
#pragma unroll
  for (int k = 1; k < kShare; ++k)
    if (offers[first + k].key > offers[at].key) at = first + k;
  Offer best = offers[at];
  if (!best.key || best.key == kNotFinite) best.variable = -1;
  return best;
}

// Copy the rows of a bank between its members and those of the other to the shared memory of all blocks, each of which
// loads a part of them, and then their columns. Lanes have the members of a slot.
__device__ __forceinline__ void load_values(float* values, const float* __restrict__ matrix, int size, int bank,
                                            const int (&members)[kEach]) {
  constexpr int kRows = kBank / (BLOCKS * kWarps), kColumns = kBank / kWarps;
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  float4 loaded[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = (block_of_cluster() * kWarps + warp) * kRows + r;
    int mine[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) mine[e] = __shfl_sync(kAll, bank ? members[2 + e] : members[e], row & 31);
    const float* from = matrix + (long long)max(row < 32 ? mine[0] : mine[1], 0) * size;
    loaded[r].x = members[0] >= 0 ? __ldg(from + members[0]) : 0.0f;
    loaded[r].y = members[1] >= 0 ? __ldg(from + members[1]) : 0.0f;
    loaded[r].z = members[2] >= 0 ? __ldg(from + members[2]) : 0.0f;
    loaded[r].w = members[3] >= 0 ? __ldg(from + members[3]) : 0.0f;
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float* to = values + (bank * kBank + (block_of_cluster() * kWarps + warp) * kRows + r) * kStride + lane * 4;
#if BLOCKS > 1
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block)
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(remote_address(to, block)),
                   "f"(loaded[r].x), "f"(loaded[r].y), "f"(loaded[r].z), "f"(loaded[r].w)
                   : "memory");
#else
    *(float4*)to = loaded[r];
#endif
  }
  barrier();
#pragma unroll
  for (int r = 0; r < kColumns; ++r) {
    const int row = warp * kColumns + r, column = row % 32 * 4 + 2 * bank + row / 32, other = 1 - bank;
    const float2 both = *(const float2*)(values + (bank * kBank + row) * kStride + lane * 4 + 2 * other);
    values[(other * kBank + lane) * kStride + column] = both.x;
    values[(other * kBank + 32 + lane) * kStride + column] = both.y;
  }
}

// Write the dual variable of a member, how far it may move, and what is added to its slopes since the step has begun.
// Without branches: a pair step takes as long as its instructions.
__device__ __forceinline__ void set_member(Shared& shared, int at, double dual, double lower, double upper) {
  double room_up = upper - dual, room_down = dual - lower;
  float grows = 0.0f, falls = 0.0f;
#if KINKS
  const double kink = shared.kink[at], before = shared.before[at];
  if (dual < 0 && kink > 0) room_up = -dual;
  if (dual > 0 && kink > 0) room_down = dual;
  grows = (float)((dual < 0 ? kink : -kink) - (before < 0 ? kink : -kink));
  falls = (float)((dual > 0 ? -kink : kink) - (before > 0 ? -kink : kink));
#endif
#if RIDGE
  const float lost = (float)(shared.ridge[at] * (dual - shared.before[at]));
  grows -= lost, falls -= lost;
#endif
  shared.dual[at] = dual, shared.room_up[at] = room_up, shared.room_down[at] = room_down;
  shared.grows[at] = dual < upper ? grows : -kNever, shared.falls[at] = dual > lower ? falls : kNever;
}

// A float and a number below 128, in the order of the float, of which the last seven bits are left out.
__device__ __forceinline__ int packed(float x, int number) {
  const int bits = __float_as_int(x);
  return ((bits ^ (bits >> 31 & 0x7fffffff)) & ~127) | number;
}

__device__ __forceinline__ float unpacked(int key) {
  const int bits = key & ~127;
  return __int_as_float(bits ^ (bits >> 31 & 0x7fffffff));
}

// The violation of all variables, from the ends of the gradient among the members, and the middle between them.
__device__ __forceinline__ double find_violation(const Variable (&member)[kEach], double& middle) {
  unsigned up = 0, down = 0;
  double highest = 0.0, lowest = 0.0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const Variable& one = member[v];
    const unsigned grows = one.flags & kGrows ? ordered((float)(one.growing() - middle)) : 0u;
    const unsigned falls = one.flags & kFalls ? ordered((float)(middle - one.falling())) : 0u;
    if (grows > up) up = grows, highest = one.growing();
    if (falls > down) down = falls, lowest = one.falling();
  }
  const unsigned top = __reduce_max_sync(kAll, up), bottom = __reduce_max_sync(kAll, down);
  highest = __shfl_sync(kAll, highest, first_lane(up == top));
  lowest = __shfl_sync(kAll, lowest, first_lane(down == bottom));
  if (!top || !bottom) return -kInfinity;
  middle = 0.5 * (highest + lowest);
  return highest - lowest;
}

// Take pair steps among the members by one warp until their violation is within the target; return their number. `reason`
// says why there is none.
__device__ __forceinline__ int take_pair_steps(Shared& shared, const float* values, const Variable (&member)[kEach],
                                               double middle, float target, int& reason) {
  const int lane = threadIdx.x & 31;
  float growing[kEach], falling[kEach], diagonal[kEach];
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    growing[v] = (float)(member[v].growing() - middle), falling[v] = (float)(member[v].falling() - middle);
    diagonal[v] = (float)member[v].diagonal;
  }
  for (int taken = 0;; ++taken) {
    const float4 grows = *(const float4*)&shared.grows[lane * 4], falls = *(const float4*)&shared.falls[lane * 4];
    const float up[kEach] = {growing[0] + grows.x, growing[1] + grows.y, growing[2] + grows.z, growing[3] + grows.w};
    const float down[kEach] = {falling[0] + falls.x, falling[1] + falls.y, falling[2] + falls.z, falling[3] + falls.w};
    int top = packed(up[0], lane * 4), bottom = packed(-down[0], lane * 4);
#pragma unroll
    for (int v = 1; v < kEach; ++v)
      top = max(top, packed(up[v], lane * 4 + v)), bottom = max(bottom, packed(-down[v], lane * 4 + v));
    top = __reduce_max_sync(kAll, top), bottom = __reduce_max_sync(kAll, bottom);
    const float highest = unpacked(top);
    if (!(highest + unpacked(bottom) > target) || taken == kMaxSteps) return taken;
    const int i = top & 127;
    const float *row = values + row_of(i) * kStride, own_diagonal = shared.diagonal[i];
    const float4 first = *(const float4*)(row + lane * 4);
    const float mine[kEach] = {first.x, first.y, first.z, first.w};
    int best = 0;
#pragma unroll
    for (int v = 0; v < kEach; ++v) {
      const float rise = fmaxf(highest - down[v], 0.0f);
      const float bend = fmaxf(own_diagonal + diagonal[v] - 2.0f * mine[v], 1e-12f);
      if (lane * 4 + v != i) best = max(best, packed(__fdividef(rise * rise, bend), lane * 4 + v));
    }
    best = __reduce_max_sync(kAll, best);
    const int j = best & 127;
    const float4 second = *(const float4*)(values + row_of(j) * kStride + lane * 4);
    const float theirs = j & 2 ? (j & 1 ? down[3] : down[2]) : (j & 1 ? down[1] : down[0]);
    const float slope = highest - __shfl_sync(kAll, theirs, j / 4);
    const float curvature = own_diagonal + shared.diagonal[j] - 2.0f * row[j];
    const double room_up = shared.room_up[i], room_down = shared.room_down[j];
    const double step = fmin(curvature > 0.0f ? (double)__fdividef(slope, curvature) : kInfinity, fmin(room_up, room_down));
    if (best < 128 || isinf(step)) {
      reason = best < 128 ? kPrecision : kUnbounded;
      return taken;
    }
    const float length = (float)step, other[kEach] = {second.x, second.y, second.z, second.w};
    // The first lane moves the one that grows, the second its partner. A step to a bound or kink ends exactly there.
    const int at = lane ? j : i;
    const double dual = shared.dual[at], lower = shared.lower[at], upper = shared.upper[at];
    double end = lane ? lower : upper;
    if (KINKS && shared.kink[at] > 0 && (lane ? dual > 0 : dual < 0)) end = 0.0;
    const double after = step >= (lane ? room_down : room_up) ? end : lane ? dual - step : dual + step;
    __syncwarp();  // all lanes have read
    if (lane < 2) set_member(shared, at, after, lower, upper);
#pragma unroll
    for (int v = 0; v < kEach; ++v) {
      growing[v] -= length * (mine[v] - other[v]);
      falling[v] = KINKS ? falling[v] - length * (mine[v] - other[v]) : growing[v];
    }
    __syncwarp();
  }
}

// Write the list of the members that have changed, and return their number. What has come very near to a bound ends there.
__device__ __forceinline__ int list_changes(Shared& shared) {
  const int lane = threadIdx.x & 31;
  int count = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const double dual = shared.dual[lane * 4 + v], lower = shared.lower[lane * 4 + v], upper = shared.upper[lane * 4 + v];
    double near = dual;
    if (isfinite(lower) && fabs(dual - lower) <= BOUND_TOLERANCE * fabs(lower)) near = lower;
    if (isfinite(upper) && fabs(dual - upper) <= BOUND_TOLERANCE * fabs(upper)) near = upper;
    shared.dual[lane * 4 + v] = near;
    const double change = near - shared.before[lane * 4 + v];
    const unsigned changed = __ballot_sync(kAll, change != 0.0);
    if (change != 0.0) {
      const int place = count + __popc(changed & ((1u << lane) - 1));
      shared.row[place] = shared.variable[lane * 4 + v], shared.weight[place] = change;
    }
    count += __popc(changed);
  }
  shared.row[count + lane] = 0, shared.weight[count + lane] = 0.0;  // the rest of the last batch
  if (lane == 0) shared.rows = count;
  return count;
}

// Update the gradient of the variables of a thread by the members that have changed.
__device__ __forceinline__ void update_gradients(const Shared& shared, const float* __restrict__ matrix, int size,
                                                 Variable (&own)[VARIABLES], int first) {
  for (int start = 0; start < shared.rows; start += kBatch) {
    float values[kBatch][VARIABLES];
#pragma unroll
    for (int r = 0; r < kBatch; ++r) {
      const float* from = matrix + (long long)shared.row[start + r] * size;
#pragma unroll
      for (int v = 0; v < VARIABLES; ++v)
        values[r][v] = first + v * THREADS < size ? __ldg(from + first + v * THREADS) : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < kBatch; ++r)
#pragma unroll
      for (int v = 0; v < VARIABLES; ++v) own[v].gradient -= shared.weight[start + r] * (double)values[r][v];
  }
}

// Update the members among the variables of a thread, and mark those that stay, of a bank; all blocks receive their
// gradients.
__device__ __forceinline__ void update_members(Shared& shared, int bank, Variable (&own)[VARIABLES], int first) {
  const int slot = (block_of_cluster() * kWarps + threadIdx.x / 32) / kShare;
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) {
    Variable& one = own[v];
    one.flags &= ~kMember;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int at = slot * 4 + e;
      if (shared.variable[at] != first + v * THREADS) continue;
      one.dual = shared.dual[at];
      one.set_flags();
#if RIDGE
      one.gradient -= shared.ridge[at] * (shared.dual[at] - shared.before[at]);
#endif
      if (e / 2 != bank) continue;
      one.flags |= kMember;
#if BLOCKS > 1
#pragma unroll
      for (int block = 0; block < BLOCKS; ++block)
        asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(remote_address(&shared.gradient[at], block)),
                     "d"(one.gradient)
                     : "memory");
#else
      shared.gradient[at] = one.gradient;
#endif
    }
  }
}

// Write what stays the same of a member, variable k.
__device__ __forceinline__ void take_in(Shared& shared, int at, int k, const Variable& one, const double* ridge) {
  shared.variable[at] = k, shared.diagonal[at] = (float)one.diagonal;
  shared.lower[at] = one.lower, shared.upper[at] = one.upper, shared.kink[at] = one.kink;
  if (RIDGE) shared.ridge[at] = k >= 0 ? ridge[k] : 0.0;
}

// middle is that of the launch before, `carried` what it has left: the members that stay, and the bank of the next; `fresh`
// says that there was none. result, in host memory, is that of pair steps.
extern "C" __global__ void __launch_bounds__(THREADS) CLUSTER
    joint_steps(const float* __restrict__ matrix, int size, double* __restrict__ gradient, double* __restrict__ dual,
                const double* __restrict__ start, const double* __restrict__ lower, const double* __restrict__ upper,
                const double* __restrict__ kink, const signed char* __restrict__ group,
                const double* __restrict__ ridge, const double* __restrict__ diagonal, double tolerance, int max_steps,
                double first_middle, int* __restrict__ carried, int fresh, double* __restrict__ result) {
  extern __shared__ __align__(16) float values[];
  __shared__ Shared shared;
  const int first = block_of_cluster() * THREADS * VARIABLES + threadIdx.x, lane = threadIdx.x & 31;
  const bool solves = threadIdx.x < 32;
  const WorkingSet set = {size, gradient, dual, start, lower, upper, kink, diagonal, group};
  Variable own[VARIABLES], member[kEach] = {};
#pragma unroll
  for (int v = 0; v < VARIABLES; ++v) own[v] = set.load(first + v * THREADS);
  int bank = fresh ? 0 : carried[kBank], members[kEach];
#pragma unroll
  for (int v = 0; v < kEach; ++v) members[v] = !fresh && v / 2 != bank ? carried[v % 2 * 32 + lane] : -1;
  if (solves) {
#pragma unroll
    for (int v = 0; v < kEach; ++v) {
      const int at = lane * 4 + v;
      member[v] = set.load(members[v]);
      take_in(shared, at, members[v], member[v], ridge);
      shared.dual[at] = shared.before[at] = member[v].dual;
    }
  }
  if (threadIdx.x == 0) shared.middle = first_middle, shared.steps = 0;
  barrier();  // all blocks run
  update_members(shared, 1 - bank, own, first);
  if (!fresh) load_values(values, matrix, size, 1 - bank, members);
  for (;;) {
    offer_ends(shared, own, first);
    barrier();
    const Offer up = best_of(shared.up);
    Offer down = best_of(shared.down);
    if (down.variable == up.variable) down.variable = -1;
#pragma unroll
    for (int v = 0; v < kEach; ++v)
      if (v / 2 == bank) members[v] = v % 2 ? down.variable : up.variable;
    if (solves) {
#pragma unroll
      for (int v = 0; v < kEach; ++v) {
        const int at = lane * 4 + v;
        if (v / 2 == bank) {
          member[v] = set.load(members[v]);
          const Offer& offered = v % 2 ? down : up;
          if (members[v] >= 0) member[v].gradient = offered.gradient, member[v].dual = offered.dual;
          take_in(shared, at, members[v], member[v], ridge);
        } else if (members[v] >= 0) {
          member[v].gradient = shared.gradient[at], member[v].dual = shared.dual[at];
        }
        member[v].set_flags();
        shared.before[at] = member[v].dual;
        set_member(shared, at, member[v].dual, member[v].lower, member[v].upper);
      }
    }
    load_values(values, matrix, size, bank, members);
    __syncthreads();
    if (solves) {
      double middle = shared.middle, violation = find_violation(member, middle);
      int taken = 0, reason = !(violation > tolerance) ? kOptimal : shared.steps < max_steps ? kGoesOn : kPaused;
      if (__any_sync(kAll, up.key == kNotFinite)) violation = kInfinity, reason = kPrecision;
      if (reason == kGoesOn) {
        const float target = (float)fmax(0.5 * tolerance, FRACTION * violation);
        taken = take_pair_steps(shared, values, member, middle, target, reason);
        if (!list_changes(shared)) taken = 0;
        if (lane == 0) shared.middle = middle;
      }
      if (reason == kGoesOn && !taken) reason = kPrecision;
      if (lane == 0) shared.violation = violation, shared.steps += taken, shared.reason = taken ? kGoesOn : reason;
    }
    __syncthreads();
    if (shared.reason != kGoesOn) break;
    update_gradients(shared, matrix, size, own, first);
    update_members(shared, bank, own, first);
    bank = 1 - bank;
  }
  set.store(own, first, result + 5 + 3 * block_of_cluster());
  if (!solves || block_of_cluster()) return;
#pragma unroll
  for (int v = 0; v < kEach; ++v)
    if (v / 2 != bank) carried[v % 2 * 32 + lane] = members[v];
  if (lane == 0) {
    carried[kBank] = bank;
    result[0] = shared.violation, result[1] = shared.steps, result[2] = shared.reason, result[3] = shared.middle;
  }
}
