// What the kernels of steps on a working set share: a variable in the registers of a thread, and the cluster of blocks.
//
// Compile-time parameters: BLOCKS (of the cluster; 1 for none), THREADS (of each block), VARIABLES (per thread), KINKS,
// BOUND_TOLERANCE.

constexpr int kWarps = THREADS / 32;
constexpr unsigned kAll = 0xffffffffu, kNotFinite = 0xffffffffu;
#define kInfinity __longlong_as_double(0x7ff0000000000000LL)

enum Reason { kOptimal = 0, kPaused = 2, kUnbounded = 3, kPrecision = 4 };
enum Flags : unsigned { kGrows = 1, kFalls = 2, kPositive = 4, kNegative = 8, kSecondGroup = 16, kSingle = 32, kMember = 64 };

#if BLOCKS > 1
#define CLUSTER __cluster_dims__(BLOCKS, 1, 1)
#else
#define CLUSTER
#endif

__device__ __forceinline__ unsigned ordered(float x) {  // the order of floats, 0 for none
  const unsigned u = __float_as_uint(x);
  return u ^ (u >> 31 ? 0xffffffffu : 0x80000000u);
}

__device__ __forceinline__ int block_of_cluster() {
#if BLOCKS > 1
  return blockIdx.x % BLOCKS;
#else
  return 0;
#endif
}

__device__ __forceinline__ void barrier() {
#if BLOCKS > 1
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

#if BLOCKS > 1
// The address in the shared memory of a block of the cluster of what is at `here` in this block.
__device__ __forceinline__ unsigned remote_address(const void* here, int block) {
  unsigned at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(at)
               : "r"((unsigned)__cvta_generic_to_shared(here)), "r"(block));
  return at;
}

__device__ __forceinline__ void store_remote(unsigned at, double x, double y) {
  asm volatile("st.shared::cluster.v2.f64 [%0], {%1, %2};" ::"r"(at), "d"(x), "d"(y) : "memory");
}
#endif

// A variable of the working set; variables beyond its end can neither grow nor fall.
struct Variable {
  double gradient, dual, lower, upper, diagonal, kink;
  unsigned flags;

  __device__ __forceinline__ void set_flags() {
    flags &= kSecondGroup | kSingle;
    if (dual < upper) flags |= kGrows;
    if (dual > lower) flags |= kFalls;
    if (dual > 0) flags |= kPositive;
    if (dual < 0) flags |= kNegative;
  }

  // The slope of the objective when the variable grows, and when it falls.
  __device__ __forceinline__ double growing() const {
#if KINKS
    return flags & kNegative ? gradient + kink : gradient - kink;
#else
    return gradient;
#endif
  }

  __device__ __forceinline__ double falling() const {
#if KINKS
    return flags & kPositive ? gradient - kink : gradient + kink;
#else
    return gradient;
#endif
  }

  // How far it may move up (sign 1) or down (sign −1) before its bound or kink.
  __device__ __forceinline__ double room(double sign) const {
#if KINKS
    if (dual * sign < 0 && kink > 0) return fabs(dual);
#endif
    return sign > 0 ? upper - dual : dual - lower;
  }

  // Its value after a step; a step to a bound ends exactly there, and one that ends very near to a bound, too.
  __device__ __forceinline__ double moved(double step, double sign, bool to_bound) const {
#if KINKS
    if (to_bound && dual * sign < 0 && kink > 0) return 0.0;
#endif
    if (to_bound) return sign > 0 ? upper : lower;
    const double value = dual + sign * step;
    if (isfinite(upper) && fabs(value - upper) <= BOUND_TOLERANCE * fabs(upper)) return upper;
    if (isfinite(lower) && fabs(value - lower) <= BOUND_TOLERANCE * fabs(lower)) return lower;
    return value;
  }

  __device__ __forceinline__ bool is_free() const {
#if KINKS
    if (dual == 0.0 && kink != 0.0) return false;
#endif
    return (flags & kGrows) && (flags & kFalls);
  }
};

// The arrays of a working set in global memory.
struct WorkingSet {
  int size;
  double *gradient, *dual;
  const double *start, *lower, *upper, *kink, *diagonal;
  const signed char* group;

  // Variable k; one that can neither grow nor fall for a number outside.
  __device__ __forceinline__ Variable load(int k) const {
    const bool valid = k >= 0 && k < size;
    Variable one = {valid ? gradient[k] : 0.0, valid ? dual[k] : 0.0,     valid ? lower[k] : 0.0,
                    valid ? upper[k] : 0.0,    valid ? diagonal[k] : 0.0, KINKS && valid ? kink[k] : 0.0, 0u};
    const int g = valid ? group[k] : 0;
    one.flags = g == 1 ? kSecondGroup : g < 0 ? kSingle : 0u;
    one.set_flags();
    return one;
  }

  // Write the variables of a thread, and three numbers of the block: variables that differ from the start, free ones, and
  // the gain since the launch began.
  __device__ __forceinline__ void store(const Variable (&own)[VARIABLES], int first, double* numbers) const {
    __shared__ double gains[kWarps];
    int changed = 0, free_count = 0;
    double gain = 0.0;
#pragma unroll
    for (int v = 0; v < VARIABLES; ++v) {
      const int k = first + v * THREADS;
      const bool valid = k < size;
      if (valid) {
        gain += 0.5 * (own[v].dual - dual[k]) * (own[v].gradient + gradient[k]);
        if (KINKS) gain -= own[v].kink * (fabs(own[v].dual) - fabs(dual[k]));
        gradient[k] = own[v].gradient, dual[k] = own[v].dual;
      }
      changed += __syncthreads_count(valid && own[v].dual != start[k]);
      free_count += __syncthreads_count(valid && own[v].is_free());
    }
    for (int k = 16; k; k /= 2) gain += __shfl_xor_sync(kAll, gain, k);
    if (threadIdx.x % 32 == 0) gains[threadIdx.x / 32] = gain;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < kWarps; ++w) gain += gains[w];
    numbers[0] = changed, numbers[1] = free_count, numbers[2] = gain;
  }
};
