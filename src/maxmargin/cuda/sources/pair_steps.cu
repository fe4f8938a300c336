// Pair steps with second-order selection on the square block of the matrix between the variables of a working set, by one
// thread block (Bottou & Lin 1.27; the loop of backends/numpy_backend.py).
//
// A step takes two barriers: one for the variable that increases and the other end of the gradient, one for its partner.
// Every warp then combines the candidates of all warps by itself. Candidates are compared in float32, as differences from
// the middle of the interval of the step before, so that the comparison is exact to rounding near the optimum; steps,
// gradient, dual vector and violation are float64.
//
// Compile-time parameters: VALUE (float or double, of the matrix), THREADS, VARIABLES (per thread), GROUPS (1 or 2), SINGLES (whether variables without a group
// exist), KINKS.

constexpr int kWarps = THREADS / 32;
constexpr unsigned kAll = 0xffffffffu;
constexpr double kInfinity = __builtin_huge_val();

enum Reason { kOptimal = 0, kPaused = 2, kUnbounded = 3, kPrecision = 4 };
enum Flags : unsigned char { kGrows = 1, kFalls = 2, kPositive = 4, kNegative = 8, kSecondGroup = 16, kSingle = 32 };

__device__ __forceinline__ unsigned ordered(float x) {  // the order of floats, 0 for none
  const unsigned u = __float_as_uint(x);
  return u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}

struct Candidates {
  unsigned key[32];
  int variable[32];
};

// The largest key of the block and its variable; 0 and −1 if there is none. `slots` is written before the barrier.
__device__ __forceinline__ void offer(Candidates& slots, unsigned key, int variable) {
  const unsigned best = __reduce_max_sync(kAll, key);
  const int winner = __ffs(__ballot_sync(kAll, key == best)) - 1;
  if ((threadIdx.x & 31) == winner) {
    slots.key[threadIdx.x / 32] = best;
    slots.variable[threadIdx.x / 32] = variable;
  }
}

__device__ __forceinline__ int winner_of(const Candidates& slots) {
  const int lane = threadIdx.x & 31;
  const unsigned key = lane < kWarps ? slots.key[lane] : 0u;
  const unsigned best = __reduce_max_sync(kAll, key);
  const int warp = __ffs(__ballot_sync(kAll, key == best)) - 1;
  return best ? slots.variable[warp] : -1;
}

struct Box {
  const double* __restrict__ lower;
  const double* __restrict__ upper;
  const double* __restrict__ kink;
  const signed char* __restrict__ group;
};

__device__ __forceinline__ unsigned char flags_of(const Box& box, int k, double b) {
  unsigned char flags = 0;
  if (b < box.upper[k]) flags |= kGrows;
  if (b > box.lower[k]) flags |= kFalls;
  if (b > 0) flags |= kPositive;
  if (b < 0) flags |= kNegative;
  if (box.group[k] == 1) flags |= kSecondGroup;
  if (box.group[k] < 0) flags |= kSingle;
  return flags;
}

// The slope of the objective when a variable grows, and when it falls.
__device__ __forceinline__ double growing(double g, unsigned char flags, const Box& box, int k) {
#if KINKS
  return flags & kNegative ? g + box.kink[k] : g - box.kink[k];
#else
  return g;
#endif
}

__device__ __forceinline__ double falling(double g, unsigned char flags, const Box& box, int k) {
#if KINKS
  return flags & kPositive ? g - box.kink[k] : g + box.kink[k];
#else
  return g;
#endif
}

__device__ __forceinline__ double room_to_grow(const Box& box, int k, double b) {
#if KINKS
  if (b < 0 && box.kink[k] > 0) return -b;
#endif
  return box.upper[k] - b;
}

__device__ __forceinline__ double room_to_fall(const Box& box, int k, double b) {
#if KINKS
  if (b > 0 && box.kink[k] > 0) return b;
#endif
  return b - box.lower[k];
}

// The variable after a step; a step to a bound ends exactly there, and one that ends very near to a bound, too.
__device__ __forceinline__ double moved(const Box& box, int k, double b, double step, double sign, bool to_bound) {
  double lower = box.lower[k], upper = box.upper[k];
#if KINKS
  if (box.kink[k] > 0) {
    if (b > 0 && to_bound && sign < 0) return 0.0;
    if (b < 0 && to_bound && sign > 0) return 0.0;
  }
#endif
  if (to_bound) return sign > 0 ? upper : lower;
  const double value = b + sign * step;
  if (isfinite(upper) && fabs(value - upper) <= BOUND_TOLERANCE * fabs(upper)) return upper;
  if (isfinite(lower) && fabs(value - lower) <= BOUND_TOLERANCE * fabs(lower)) return lower;
  return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pair_steps(const VALUE* __restrict__ matrix, int size, double* __restrict__ gradient_, double* __restrict__ dual_,
               const double* __restrict__ lower, const double* __restrict__ upper, const double* __restrict__ kink,
               const signed char* __restrict__ group, const double* __restrict__ ridge,
               const double* __restrict__ diagonal_, double tolerance, int max_steps, double* __restrict__ result) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* gradient = reinterpret_cast<double*>(memory);
  float* diagonal = reinterpret_cast<float*>(gradient + size);
  unsigned char* flags = reinterpret_cast<unsigned char*>(diagonal + size);
  __shared__ Candidates up[GROUPS], down[GROUPS], partners, singles;
  const Box box{lower, upper, kink, group};
  for (int k = threadIdx.x; k < size; k += THREADS) {
    gradient[k] = gradient_[k];
    diagonal[k] = (float)diagonal_[k];
    flags[k] = flags_of(box, k, dual_[k]);
  }
  __syncthreads();
  double middle[GROUPS] = {}, violation = -kInfinity, gain = 0.0;
  int steps = 0, reason = kOptimal;
  for (;;) {
    // The ends of the gradient.
    unsigned up_key[GROUPS] = {}, down_key[GROUPS] = {}, single_key = 0;
    int up_at[GROUPS] = {}, down_at[GROUPS] = {}, single_at = 0;
    bool not_a_number = false;
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      if (k >= size) break;
      const unsigned char flag = flags[k];
      const double g = gradient[k];
      not_a_number |= !isfinite(g);
#if SINGLES
      if (flag & kSingle) {
        double worst = 0.0;
        if (flag & kGrows) worst = fmax(worst, growing(g, flag, box, k));
        if (flag & kFalls) worst = fmax(worst, -falling(g, flag, box, k));
        const unsigned key = worst > 0.0 ? ordered((float)worst) : 0u;
        if (key > single_key) single_key = key, single_at = k;
        continue;
      }
#endif
      const int own = GROUPS > 1 && flag & kSecondGroup;
#pragma unroll
      for (int c = 0; c < GROUPS; ++c) {
        if (c != own) continue;
        if (flag & kGrows) {
          const unsigned key = ordered((float)(growing(g, flag, box, k) - middle[c]));
          if (key > up_key[c]) up_key[c] = key, up_at[c] = k;
        }
        if (flag & kFalls) {
          const unsigned key = ordered((float)(middle[c] - falling(g, flag, box, k)));
          if (key > down_key[c]) down_key[c] = key, down_at[c] = k;
        }
      }
    }
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) offer(up[c], up_key[c], up_at[c]), offer(down[c], down_key[c], down_at[c]);
    if (SINGLES) offer(singles, single_key, single_at);
    if (__syncthreads_or(not_a_number)) {
      violation = kInfinity;
      reason = kPrecision;
      break;
    }
    int i = -1, chosen = 0;
    double high = 0.0;
    violation = -kInfinity;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) {
      const int a = winner_of(up[c]), b = winner_of(down[c]);
      if (a < 0 || b < 0) continue;
      const double top = growing(gradient[a], flags[a], box, a), bottom = falling(gradient[b], flags[b], box, b);
      middle[c] = 0.5 * (top + bottom);
      if (top - bottom > violation) violation = top - bottom, i = a, high = top, chosen = c;
    }
    int single = -1;
    if (SINGLES) {
      const int s = winner_of(singles);
      if (s >= 0) {
        const double grows = flags[s] & kGrows ? growing(gradient[s], flags[s], box, s) : 0.0;
        const double falls = flags[s] & kFalls ? -falling(gradient[s], flags[s], box, s) : 0.0;
        if (fmax(grows, falls) > violation) violation = fmax(grows, falls), single = s;
      }
    }
    if (!(violation > tolerance)) break;
    if (steps >= max_steps) {
      reason = kPaused;
      break;
    }
    int j = -1;
    const double* own_ridge = ridge;
    if (single >= 0) {
      __syncthreads();  // everyone has read the gradient
      const int s = single;
      const double b = dual_[s], grows = flags[s] & kGrows ? growing(gradient[s], flags[s], box, s) : 0.0;
      const double falls = flags[s] & kFalls ? -falling(gradient[s], flags[s], box, s) : 0.0;
      const double sign = grows > falls ? 1.0 : -1.0, slope = fmax(grows, falls), curvature = diagonal_[s];
      const double room = sign > 0 ? room_to_grow(box, s, b) : room_to_fall(box, s, b);
      const double step = fmin(curvature > 0 ? slope / curvature : kInfinity, room);
      const double after = isinf(step) ? b : moved(box, s, b, step, sign, step >= room);
      __syncthreads();
      if (isinf(step) || after == b) {
        reason = isinf(step) ? kUnbounded : kPrecision;
        break;
      }
      const VALUE* row = matrix + (long long)s * size;
#pragma unroll
      for (int v = 0; v < VARIABLES; ++v) {
        const int k = threadIdx.x + v * THREADS;
        if (k >= size) break;
        gradient[k] -= sign * step * ((double)row[k] + (k == s ? own_ridge[s] : 0.0));
        if (k == s) dual_[s] = after, flags[s] = flags_of(box, s, after);
      }
      gain += step * (slope - 0.5 * step * curvature);
      ++steps;
      continue;
    }
    // The partner of the largest gain without bounds.
    const VALUE* row_i = matrix + (long long)i * size;
    const float diagonal_i = diagonal[i];
    VALUE values[VARIABLES];
    unsigned key_j = 0;
    int at_j = 0;
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      values[v] = k < size ? row_i[k] : VALUE(0);
    }
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      if (k >= size) break;
      const unsigned char flag = flags[k];
      if (!(flag & kFalls) || (SINGLES && flag & kSingle)) continue;
      if (GROUPS > 1 && (flag & kSecondGroup ? 1 : 0) != chosen) continue;
      const float slope = (float)(high - falling(gradient[k], flag, box, k));
      if (!(slope > 0.0f)) continue;
      const float curvature = fmaxf(diagonal_i + diagonal[k] - 2.0f * (float)values[v], 1e-12f);
      const unsigned key = ordered(slope * slope / curvature);
      if (key > key_j) key_j = key, at_j = k;
    }
    const double dual_i = dual_[i];  // written by its thread only after the next barrier
    offer(partners, key_j, at_j);
    __syncthreads();
    j = winner_of(partners);
    if (j < 0) {
      reason = kPrecision;
      break;
    }
    const VALUE* row_j = matrix + (long long)j * size;
    const double dual_j = dual_[j], low = falling(gradient[j], flags[j], box, j);
    const double curvature = diagonal_[i] + diagonal_[j] - 2.0 * (double)row_i[j];
    const double room_i = room_to_grow(box, i, dual_i), room_j = room_to_fall(box, j, dual_j);
    const double slope = high - low;
    const double step = fmin(curvature > 0 ? slope / curvature : kInfinity, fmin(room_i, room_j));
    const double after_i = moved(box, i, dual_i, step, 1.0, step >= room_i);
    const double after_j = moved(box, j, dual_j, step, -1.0, step >= room_j);
    if (isinf(step) || (after_i == dual_i && after_j == dual_j)) {
      reason = isinf(step) ? kUnbounded : kPrecision;
      break;
    }
    const double ridge_i = own_ridge[i], ridge_j = own_ridge[j];
    __syncthreads();  // everyone has read dual vector, gradient and flags of the pair
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      if (k >= size) break;
      double g = gradient[k] - step * ((double)values[v] - (double)row_j[k]);
      if (k == i) g -= ridge_i * step, dual_[i] = after_i, flags[i] = flags_of(box, i, after_i);
      if (k == j) g += ridge_j * step, dual_[j] = after_j, flags[j] = flags_of(box, j, after_j);
      gradient[k] = g;
    }
    gain += step * (slope - 0.5 * step * curvature);
    ++steps;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < size; k += THREADS) gradient_[k] = gradient[k];
  if (threadIdx.x == 0) result[0] = violation, result[1] = gain, result[2] = steps, result[3] = reason;
}
