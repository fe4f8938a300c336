// Pair steps with second-order selection on the square block of the matrix between the variables of a working set, by one
// thread block (Bottou & Lin 1.27; the loop of backends/numpy_backend.py).
//
// A step takes two barriers: one for the variable that increases and the other end of the gradient, one for its partner.
// Every warp offers a candidate with all that the others need of it, and combines the candidates of all warps by itself,
// so that gradient, dual vector and flags are only touched by the thread that owns a variable. Candidates are compared in
// float32, as differences from the middle of the interval of the step before, so that the comparison is exact to rounding
// near the optimum; steps, gradient, dual vector and violation are float64. The middle is handed from launch to launch: how
// steps are divided into launches changes nothing.
//
// Compile-time parameters: VALUE (float or double, of the matrix), THREADS, VARIABLES (per thread), GROUPS (1 or 2),
// SINGLES (whether variables without a group exist), KINKS, RIDGE, BOUND_TOLERANCE.

constexpr int kWarps = THREADS / 32;
constexpr int kPadded = THREADS * VARIABLES;  // variables beyond the working set can neither grow nor fall
constexpr unsigned kAll = 0xffffffffu;
#define kInfinity __longlong_as_double(0x7ff0000000000000LL)

enum Reason { kOptimal = 0, kPaused = 2, kUnbounded = 3, kPrecision = 4 };
enum Flags : unsigned char { kGrows = 1, kFalls = 2, kPositive = 4, kNegative = 8, kSecondGroup = 16, kSingle = 32 };

__device__ __forceinline__ unsigned ordered(float x) {  // the order of floats, 0 for none
  const unsigned u = __float_as_uint(x);
  return u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}

// The best candidate of each warp: its key, number, slope, dual variable, room to its bound, and curvature of the step.
struct Candidates {
  unsigned key[32];
  int variable[32];
  double slope[32], dual[32], room[32], curvature[32];
};

struct Candidate {
  int variable;  // −1 for none
  double slope, dual, room, curvature;
};

__device__ __forceinline__ void offer(Candidates& slots, unsigned key, const Candidate& candidate) {
  const unsigned best = __reduce_max_sync(kAll, key);
  const int winner = __ffs(__ballot_sync(kAll, key == best)) - 1;
  if ((threadIdx.x & 31) == winner) {
    const int warp = threadIdx.x / 32;
    slots.key[warp] = best;
    slots.variable[warp] = candidate.variable;
    slots.slope[warp] = candidate.slope;
    slots.dual[warp] = candidate.dual;
    slots.room[warp] = candidate.room;
    slots.curvature[warp] = candidate.curvature;
  }
}

__device__ __forceinline__ Candidate winner_of(const Candidates& slots) {
  const int lane = threadIdx.x & 31;
  const unsigned key = lane < kWarps ? slots.key[lane] : 0u;
  const unsigned best = __reduce_max_sync(kAll, key);
  const int warp = __ffs(__ballot_sync(kAll, key == best)) - 1;
  return {best ? slots.variable[warp] : -1, slots.slope[warp], slots.dual[warp], slots.room[warp], slots.curvature[warp]};
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

// How far a variable may move up (sign 1) or down (sign −1) before its bound or kink.
__device__ __forceinline__ double room(const Box& box, int k, double b, double sign) {
#if KINKS
  if (b * sign < 0 && box.kink[k] > 0) return fabs(b);
#endif
  return sign > 0 ? box.upper[k] - b : b - box.lower[k];
}

// The variable after a step; a step to a bound ends exactly there, and one that ends very near to a bound, too.
__device__ __forceinline__ double moved(const Box& box, int k, double b, double step, double sign, bool to_bound) {
  const double lower = box.lower[k], upper = box.upper[k];
#if KINKS
  if (to_bound && b * sign < 0 && box.kink[k] > 0) return 0.0;
#endif
  if (to_bound) return sign > 0 ? upper : lower;
  const double value = b + sign * step;
  if (isfinite(upper) && fabs(value - upper) <= BOUND_TOLERANCE * fabs(upper)) return upper;
  if (isfinite(lower) && fabs(value - lower) <= BOUND_TOLERANCE * fabs(lower)) return lower;
  return value;
}

// result: violation, gain, steps, reason, variables that differ from `start`, free variables, middle of each group.
extern "C" __global__ void __launch_bounds__(THREADS)
    pair_steps(const VALUE* __restrict__ matrix, int size, double* __restrict__ gradient_, double* __restrict__ dual_,
               const double* __restrict__ start, const double* __restrict__ lower, const double* __restrict__ upper,
               const double* __restrict__ kink, const signed char* __restrict__ group,
               const double* __restrict__ ridge, const double* __restrict__ diagonal_, double tolerance, int max_steps,
               double* __restrict__ result) {
  extern __shared__ __align__(16) unsigned char memory[];
  double* gradient = reinterpret_cast<double*>(memory);
  double* dual = gradient + kPadded;
  float* diagonal = reinterpret_cast<float*>(dual + kPadded);
  unsigned char* flags = reinterpret_cast<unsigned char*>(diagonal + kPadded);
  __shared__ Candidates up[GROUPS], down[GROUPS], partners, singles;
  const Box box{lower, upper, kink, group};
  for (int k = threadIdx.x; k < kPadded; k += THREADS) {
    const bool valid = k < size;
    gradient[k] = valid ? gradient_[k] : 0.0;
    diagonal[k] = valid ? (float)diagonal_[k] : 0.0f;
    dual[k] = valid ? dual_[k] : 0.0;
    flags[k] = valid ? flags_of(box, k, dual[k]) : 0;
  }
  double middle[GROUPS], violation = -kInfinity, gain = 0.0;
#pragma unroll
  for (int c = 0; c < GROUPS; ++c) middle[c] = result[6 + c];
  int steps = 0, reason = kOptimal;
  __syncthreads();  // the middle has been read before anyone may end
  for (;;) {
    // The ends of the gradient.
    unsigned up_key[GROUPS] = {}, down_key[GROUPS] = {}, single_key = 0;
    int up_at[GROUPS] = {}, down_at[GROUPS] = {}, single_at = 0;
    bool not_a_number = false;
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
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
    for (int c = 0; c < GROUPS; ++c) {
      Candidate top{up_at[c], 0.0, 0.0, 0.0, 0.0}, bottom{down_at[c], 0.0, 0.0, 0.0, 0.0};
      if (up_key[c]) {
        const int k = top.variable;
        top.slope = growing(gradient[k], flags[k], box, k);
        top.dual = dual[k];
        top.room = room(box, k, top.dual, 1.0);
        top.curvature = diagonal_[k];
      }
      if (down_key[c]) bottom.slope = falling(gradient[bottom.variable], flags[bottom.variable], box, bottom.variable);
      offer(up[c], up_key[c], top);
      offer(down[c], down_key[c], bottom);
    }
#if SINGLES
    {
      const int s = single_at;
      const double grows = single_key && flags[s] & kGrows ? growing(gradient[s], flags[s], box, s) : 0.0;
      const double falls = single_key && flags[s] & kFalls ? -falling(gradient[s], flags[s], box, s) : 0.0;
      offer(singles, single_key, {s, grows > falls ? grows : -falls, single_key ? dual[s] : 0.0, 0.0, 0.0});
    }
#endif
    if (__syncthreads_or(not_a_number)) {
      violation = kInfinity;
      reason = kPrecision;
      break;
    }
    Candidate first{-1, 0.0, 0.0, 0.0, 0.0};
    int chosen = 0;
    double next[GROUPS];
    violation = -kInfinity;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) {
      const Candidate top = winner_of(up[c]), bottom = winner_of(down[c]);
      next[c] = middle[c];
      if (top.variable < 0 || bottom.variable < 0) continue;
      next[c] = 0.5 * (top.slope + bottom.slope);
      if (top.slope - bottom.slope > violation) violation = top.slope - bottom.slope, first = top, chosen = c;
    }
#if SINGLES
    const Candidate single = winner_of(singles);
    const bool alone = single.variable >= 0 && fabs(single.slope) > violation;
    if (alone) violation = fabs(single.slope);
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
#if SINGLES
    if (alone) {
      const int s = single.variable;
      const double sign = single.slope > 0 ? 1.0 : -1.0, slope = fabs(single.slope), curvature = diagonal_[s];
      const double most = room(box, s, single.dual, sign);
      const double step = fmin(curvature > 0 ? slope / curvature : kInfinity, most);
      const double after = isinf(step) ? single.dual : moved(box, s, single.dual, step, sign, step >= most);
      if (isinf(step) || after == single.dual) {
        reason = isinf(step) ? kUnbounded : kPrecision;
        break;
      }
      const VALUE* row = matrix + (long long)s * size;
#pragma unroll
      for (int v = 0; v < VARIABLES; ++v) {
        const int k = threadIdx.x + v * THREADS;
        if (k >= size) break;
        const double value = k < size ? (double)row[k] : 0.0;
        gradient[k] -= sign * step * (value + (k == s ? ridge[s] : 0.0));
        if (k == s) dual[s] = after, flags[s] = flags_of(box, s, after);
      }
      gain += step * (slope - 0.5 * step * curvature);
      ++steps;
      __syncthreads();  // everyone has read the candidates
      continue;
    }
#endif
    // The partner of the largest gain without bounds.
    const int i = first.variable;
    const double high = first.slope;
    const VALUE* row_i = matrix + (long long)i * size;
    const float diagonal_i = (float)first.curvature;
    VALUE values[VARIABLES];
    unsigned key_j = 0;
    int at_j = 0;
    VALUE value_j = 0;
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      values[v] = k < size ? row_i[k] : VALUE(0);
    }
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      const unsigned char flag = flags[k];
      if (!(flag & kFalls) || (SINGLES && flag & kSingle)) continue;
      if (GROUPS > 1 && (flag & kSecondGroup ? 1 : 0) != chosen) continue;
      const float slope = (float)(high - falling(gradient[k], flag, box, k));
      if (!(slope > 0.0f)) continue;
      const float curvature = fmaxf(diagonal_i + diagonal[k] - 2.0f * (float)values[v], 1e-12f);
      const unsigned key = ordered(__fdividef(slope * slope, curvature));
      if (key > key_j) key_j = key, at_j = k, value_j = values[v];
    }
    Candidate best{at_j, 0.0, 0.0, 0.0, 0.0};
    if (key_j) {
      best.slope = falling(gradient[at_j], flags[at_j], box, at_j);
      best.dual = dual[at_j];
      best.room = room(box, at_j, best.dual, -1.0);
      best.curvature = first.curvature + diagonal_[at_j] - 2.0 * (double)value_j;
    }
    offer(partners, key_j, best);
    __syncthreads();
    const Candidate second = winner_of(partners);
    const int j = second.variable;
    if (j < 0) {
      reason = kPrecision;
      break;
    }
    const VALUE* row_j = matrix + (long long)j * size;
    VALUE others[VARIABLES];
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      others[v] = k < size ? row_j[k] : VALUE(0);
    }
    const double curvature = second.curvature, slope = high - second.slope;
    const double step = fmin(curvature > 0 ? slope / curvature : kInfinity, fmin(first.room, second.room));
    if (isinf(step) || (first.dual + step == first.dual && second.dual - step == second.dual)) {
      reason = isinf(step) ? kUnbounded : kPrecision;
      break;
    }
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = threadIdx.x + v * THREADS;
      double g = gradient[k] - step * ((double)values[v] - (double)others[v]);
      if (k == i || k == j) {
        const double sign = k == i ? 1.0 : -1.0, before = dual[k];
        dual[k] = moved(box, k, before, step, sign, step >= (k == i ? first.room : second.room));
        flags[k] = flags_of(box, k, dual[k]);
#if RIDGE
        g -= sign * step * ridge[k];
#endif
      }
      gradient[k] = g;
    }
    gain += step * (slope - 0.5 * step * curvature);
    ++steps;
  }
  int changed = 0, free_count = 0;
  for (int first = 0; first < size; first += THREADS) {
    const int k = first + threadIdx.x;
    bool differs = false, inside = false;
    if (k < size) {
      gradient_[k] = gradient[k];
      const double b = dual[k];
      dual_[k] = b;
      differs = b != start[k];
      inside = (flags[k] & kGrows) && (flags[k] & kFalls);
#if KINKS
      inside = inside && (b != 0.0 || box.kink[k] == 0.0);
#endif
    }
    changed += __syncthreads_count(differs);
    free_count += __syncthreads_count(inside);
  }
  if (threadIdx.x == 0) {
    result[0] = violation, result[1] = gain, result[2] = steps, result[3] = reason;
    result[4] = changed, result[5] = free_count;
#pragma unroll
    for (int c = 0; c < GROUPS; ++c) result[6 + c] = middle[c];
  }
}
