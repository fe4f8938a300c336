// Operations over all variables between two rounds: KKT violations, selection of a working set, update by its changes.
//
// Selection is by histograms: the violations of free, growing and falling variables are counted in bins of less than one
// percent each; from the bin where the wanted number is reached, variables are taken evenly. Output is in the order of
// variables, and all results are repeatable bit for bit. Numbers that the host needs are written into its memory.
//
// Compile-time parameters: KINKS.

constexpr int kThreads = 256, kBins = 32768, kKinds = 3, kGroups = 3;  // two groups, and the variables in none
#define kInfinity __longlong_as_double(0x7ff0000000000000LL)

__device__ __forceinline__ double growing(double g, double b, const double* kink, int k) {
#if KINKS
  return b < 0 ? g + kink[k] : g - kink[k];
#else
  return g;
#endif
}

__device__ __forceinline__ double falling(double g, double b, const double* kink, int k) {
#if KINKS
  return b > 0 ? g - kink[k] : g + kink[k];
#else
  return g;
#endif
}

__device__ __forceinline__ bool is_free(double b, double lower, double upper, const double* kink, int k) {
#if KINKS
  if (b == 0.0 && kink[k] != 0.0) return false;
#endif
  return lower < b && b < upper;
}

__device__ __forceinline__ double warp_max(double x) {
  for (int k = 16; k; k /= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, k));
  return x;
}

__device__ __forceinline__ double warp_sum(double x) {
  for (int k = 16; k; k /= 2) x += __shfl_xor_sync(0xffffffffu, x, k);
  return x;
}

// Whether this block is the last of its launch to get here: it sees what all others have written. `arrived` is 0 between
// launches.
__device__ __forceinline__ bool is_last_block(unsigned* arrived) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    if (last) *arrived = 0;
  }
  __syncthreads();
  return last;
}

// Combine the ends of all blocks by the first warp: 8 numbers, then the largest violation.
__device__ void combine_ends(const volatile double* partial, int count, double* out) {
  double all[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    double x = c < 6 ? -kInfinity : 0.0;
    for (int k = threadIdx.x; k < count; k += 32) x = c < 6 ? fmax(x, partial[k * 8 + c]) : x + partial[k * 8 + c];
    all[c] = c < 6 ? warp_max(x) : warp_sum(x);
    if (threadIdx.x == 0) out[c] = all[c];
  }
  double worst = fmax(0.0, fmax(all[2], all[5]));  // a single variable needs no partner
  for (int c = 0; c < 2; ++c) worst = fmax(worst, all[c] + all[3 + c]);
  if (threadIdx.x == 0) out[8] = worst;
}

// Largest slope up and smallest down of each group, sum of the gradient, number of free variables, largest violation: 9
// numbers. `partial` has 8 for each block; bins and counts are set to 0 for `count_bins`.
extern "C" __global__ void __launch_bounds__(kThreads)
    ends(const double* dual, const double* gradient, const double* lower, const double* upper, const double* kink,
         const signed char* group, int n, double* partial, double* out, unsigned* bins, unsigned* counts,
         unsigned* arrived) {
  for (int k = blockIdx.x * kThreads + threadIdx.x; k < kKinds * kBins; k += gridDim.x * kThreads) bins[k] = 0;
  if (blockIdx.x == 0 && threadIdx.x < kKinds) counts[threadIdx.x] = 0;
  double value[8] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 0.0, 0.0};
  for (int k = blockIdx.x * kThreads + threadIdx.x; k < n; k += gridDim.x * kThreads) {
    const double b = dual[k], g = gradient[k];
    const int own = group[k] < 0 ? 2 : group[k];
#pragma unroll
    for (int c = 0; c < kGroups; ++c) {
      if (c != own) continue;
      if (b < upper[k]) value[c] = fmax(value[c], growing(g, b, kink, k));
      if (b > lower[k]) value[3 + c] = fmax(value[3 + c], -falling(g, b, kink, k));
    }
    value[6] += g;
    value[7] += is_free(b, lower[k], upper[k], kink, k);
  }
  __shared__ double shared[8][kThreads / 32];
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const double all = c < 6 ? warp_max(value[c]) : warp_sum(value[c]);
    if (threadIdx.x % 32 == 0) shared[c][threadIdx.x / 32] = all;
  }
  __syncthreads();
  if (threadIdx.x < 8) {
    double all = shared[threadIdx.x][0];
    for (int w = 1; w < kThreads / 32; ++w)
      all = threadIdx.x < 6 ? fmax(all, shared[threadIdx.x][w]) : all + shared[threadIdx.x][w];
    partial[blockIdx.x * 8 + threadIdx.x] = all;
  }
  if (is_last_block(arrived) && threadIdx.x < 32) combine_ends(partial, gridDim.x, out);
}

// The kind of each variable (0 free, 1 grows, 2 falls, 3 satisfies optimality) and the bin of its violation, and counts.
// `report`, in host memory: the ends, and the number of variables of each kind.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_bins(const double* dual, const double* gradient, const double* lower, const double* upper, const double* kink,
               const signed char* group, int n, const double* ends, unsigned* codes, unsigned* bins, unsigned* counts,
               unsigned* arrived, double* report) {
  const int k = blockIdx.x * kThreads + threadIdx.x;
  unsigned kind = 3;
  if (k < n) {
    const double b = dual[k], g = gradient[k];
    const int own = group[k] < 0 ? 2 : group[k];
    const double highest = own == 2 ? 0.0 : ends[own], lowest = own == 2 ? 0.0 : -ends[3 + own];
    const double up = b < upper[k] ? growing(g, b, kink, k) - lowest : -kInfinity;
    const double down = b > lower[k] ? highest - falling(g, b, kink, k) : -kInfinity;
    const double worst = fmax(up, down);
    if (is_free(b, lower[k], upper[k], kink, k))
      kind = 0;
    else if (worst > 0.0)
      kind = up >= down ? 1 : 2;
    unsigned bin = worst > 0.0 ? __float_as_uint(fminf((float)worst, 3e38f)) >> 16 : 0u;
    // The most violating pair itself comes first, whatever else is in its bin.
    if (own < 2 && worst > 0.0 && (up == highest - lowest || down == highest - lowest)) bin = kBins - 1;
    codes[k] = kind << 16 | bin;
    if (kind < 3) atomicAdd(&bins[kind * kBins + bin], 1u);
  }
#pragma unroll
  for (unsigned c = 0; c < kKinds; ++c) {
    const int members = __syncthreads_count(kind == c);
    if (threadIdx.x == 0 && members) atomicAdd(&counts[c], (unsigned)members);
  }
  if (is_last_block(arrived) && threadIdx.x < 9 + kKinds) {
    const int c = threadIdx.x;
    report[c] = c < 9 ? ends[c] : (double)*(const volatile unsigned*)&counts[c - 9];
  }
}

// How far a variable is from letting the violation grow: from the largest slope up, and the smallest down.
struct Distance {
  double up, down;

  __device__ __forceinline__ Distance(double b, double g, double lower, double upper, const double* kink, int k,
                                      double highest, double lowest)
      : up(b < upper ? fmax(0.0, highest - growing(g, b, kink, k)) : kInfinity),
        down(b > lower ? fmax(0.0, falling(g, b, kink, k) - lowest) : kInfinity) {}
};

// The bin of each variable by its distance from the end of the violation, 1 for the largest slope up, 2 for the smallest
// down, whichever is nearer.
extern "C" __global__ void __launch_bounds__(kThreads)
    count_distances(const double* dual, const double* gradient, const double* lower, const double* upper,
                    const double* kink, const signed char* group, int n, const double* ends, unsigned* codes,
                    unsigned* bins) {
  const int k = blockIdx.x * kThreads + threadIdx.x;
  if (k >= n) return;
  const int own = group[k] < 0 ? 2 : group[k];
  const Distance from(dual[k], gradient[k], lower[k], upper[k], kink, k, own == 2 ? 0.0 : ends[own],
                      own == 2 ? 0.0 : -ends[3 + own]);
  const double nearer = fmin(from.up, from.down);
  const unsigned kind = isinf(nearer) ? 3 : from.up <= from.down ? 1 : 2;
  const unsigned bin = kBins - 1 - (__float_as_uint(fminf((float)nearer, 3e38f)) >> 16);
  codes[k] = kind << 16 | bin;
  if (kind < 3) atomicAdd(&bins[kind * kBins + bin], 1u);
}

// By one block of 1024 threads: the largest error of the gradient in a sample, and the largest of those that `factor` times
// as large would let a variable move. product: the rows of the sample times the dual vector.
extern "C" __global__ void __launch_bounds__(1024)
    largest_errors(const double* dual, const double* gradient, const double* lower, const double* upper,
                   const double* kink, const signed char* group, int n, const double* ends, const double* linear,
                   const double* ridge, const int* sample, int count, const double* product, double factor,
                   double* report) {
  double largest = 0.0, counted = 0.0;
  for (int j = threadIdx.x; j < count; j += 1024) {
    const int k = sample[j], own = group[k] < 0 ? 2 : group[k];
    const double highest = own == 2 ? 0.0 : ends[own], lowest = own == 2 ? 0.0 : -ends[3 + own];
    const double b = dual[k], g = gradient[k];
    double error = fabs(linear[k] - product[j] - ridge[k] * b - g);
    if (!isfinite(error)) error = kInfinity;  // maxima leave out what is not a number
    const bool up = b < upper[k] && growing(g, b, kink, k) + factor * error >= lowest;
    const bool down = b > lower[k] && falling(g, b, kink, k) - factor * error <= highest;
    largest = fmax(largest, error);
    if (up || down) counted = fmax(counted, error);
  }
  __shared__ double shared[2][32];
  largest = warp_max(largest), counted = warp_max(counted);
  if (threadIdx.x % 32 == 0) shared[0][threadIdx.x / 32] = largest, shared[1][threadIdx.x / 32] = counted;
  __syncthreads();
  if (threadIdx.x < 32) {
    largest = warp_max(shared[0][threadIdx.x]), counted = warp_max(shared[1][threadIdx.x]);
    if (threadIdx.x == 0) report[0] = largest, report[1] = counted;
  }
}

// The sum of a value over the threads of a block before each one, and of all. `shared` has 33 entries.
__device__ int block_scan(int value, int* shared, int& total) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int sum = value;
  for (int k = 1; k < 32; k *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, sum, k);
    if (lane >= k) sum += other;
  }
  __syncthreads();
  if (lane == 31) shared[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int part = lane < warps ? shared[lane] : 0;
    for (int k = 1; k < 32; k *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, part, k);
      if (lane >= k) part += other;
    }
    shared[lane] = part;
  }
  __syncthreads();
  total = shared[warps - 1];
  return sum - value + (warp ? shared[warp - 1] : 0);
}

// One block of 1024 threads for each kind: the bin where the wanted number is reached from above, how many are wanted of it,
// and how many it has. wanted: how many variables of each kind to take.
extern "C" __global__ void __launch_bounds__(1024)
    find_bins(const unsigned* bins, int wanted_free, int wanted_growing, int wanted_falling, int* found) {
  __shared__ int shared[33];
  constexpr int kEach = kBins / 1024;
  const unsigned* own = bins + blockIdx.x * kBins;
  const int want = blockIdx.x == 0 ? wanted_free : blockIdx.x == 1 ? wanted_growing : wanted_falling;
  const int first = kBins - 1 - threadIdx.x * kEach;  // from the top
  int sum = 0, total;
  for (int k = 0; k < kEach; ++k) sum += own[first - k];
  const int above = block_scan(sum, shared, total);
  if (threadIdx.x == 0 && (want == 0 || want >= total)) {  // none, or all
    found[blockIdx.x * 3] = want == 0 ? kBins : -1;
    found[blockIdx.x * 3 + 1] = 0;
    found[blockIdx.x * 3 + 2] = 1;
  } else if (want > 0 && want < total && above < want && above + sum >= want) {
    int before = above;
    for (int k = 0; k < kEach; ++k) {
      const int here = own[first - k];
      if (before + here >= want) {
        found[blockIdx.x * 3] = first - k;
        found[blockIdx.x * 3 + 1] = want - before;
        found[blockIdx.x * 3 + 2] = here;
        break;
      }
      before += here;
    }
  }
}

// Whether a variable is above the bin of its kind (0), in that of kind 0, 1 or 2 (1, 2, 3), or neither (4).
__device__ __forceinline__ int place_of(unsigned code, const int* found) {
  const int kind = code >> 16, bin = code & 0xffff;
  if (kind == 3) return 4;
  const int limit = found[kind * 3];
  return bin > limit ? 0 : bin == limit ? 1 + kind : 4;
}

// The number of variables of each place in a block of 1024.
extern "C" __global__ void __launch_bounds__(1024) count_places(const unsigned* codes, int n, const int* found, int* counts) {
  const int k = blockIdx.x * 1024 + threadIdx.x;
  const int place = k < n ? place_of(codes[k], found) : 4;
  for (int c = 0; c < 4; ++c) {
    const int count = __syncthreads_count(place == c);
    if (threadIdx.x == 0) counts[c * gridDim.x + blockIdx.x] = count;
  }
}

// Write the chosen variables in order. counts: the number of variables of each place in each block.
extern "C" __global__ void __launch_bounds__(1024)
    take_places(const unsigned* codes, int n, const int* found, const int* counts, int* out) {
  __shared__ int shared[33];
  int before[4];
  for (int c = 0; c < 4; ++c) {
    int sum = 0;
    for (int k = threadIdx.x; k < blockIdx.x; k += 1024) sum += counts[c * gridDim.x + k];
    block_scan(sum, shared, before[c]);
  }
  const int k = blockIdx.x * 1024 + threadIdx.x;
  const int place = k < n ? place_of(codes[k], found) : 4;
  int total, position = before[0] + block_scan(place == 0, shared, total);
  bool chosen = place == 0;
  for (int c = 0; c < 3; ++c) {
    const long long rank = before[c + 1] + block_scan(place == 1 + c, shared, total);
    const long long want = found[c * 3 + 1], there = found[c * 3 + 2];
    position += (int)(rank * want / there);
    if (place == 1 + c) chosen = (rank + 1) * want / there > rank * want / there;
  }
  if (chosen) out[position] = k;
}

// Copy eight arrays at the variables of a working set, and the dual vector once more; kink may be null.
extern "C" __global__ void gather(const int* index, int count, const double* dual, const double* gradient,
                                  const double* lower, const double* upper, const double* ridge, const double* curvature,
                                  const double* kink, const signed char* group, double* out, signed char* out_group) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  const int at = index[k];
  const double* from[8] = {dual, gradient, lower, upper, ridge, curvature, dual, kink};
#pragma unroll
  for (int c = 0; c < 8; ++c)
    if (from[c]) out[(long long)c * count + k] = from[c][at];
  out_group[k] = group[at];
}

// The changes of a working set in order, by one block of 1024 threads: variables, changes.
extern "C" __global__ void __launch_bounds__(1024)
    take_changes(const double* dual, const double* start, const int* index, int size, int* at, double* change) {
  __shared__ int shared[33];
  int before = 0;
  for (int first = 0; first < size; first += 1024) {
    const int k = first + threadIdx.x;
    const bool differs = k < size && dual[k] != start[k];
    int total;
    const int position = before + block_scan(differs, shared, total);
    if (differs) at[position] = index[k], change[position] = dual[k] - start[k];
    before += total;
    __syncthreads();
  }
}

// The point before the changes of a working set are applied: the dual vector, and the gradient minus the sums of the parts
// of a product.
extern "C" __global__ void subtract_parts(const double* dual, const double* gradient, const double* parts, int count, int n,
                                          double* out_dual, double* out_gradient) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  double sum = 0.0;
  for (int c = 0; c < count; ++c) sum += parts[(long long)c * n + k];
  out_dual[k] = dual[k];
  out_gradient[k] = gradient[k] - sum;
}

// Set the changed variables, and subtract the ridge of their changes from the gradient.
extern "C" __global__ void apply_changes(const double* subproblem_dual, const int* index, int size, const int* at,
                                         const double* change, int count, const double* ridge, double* dual,
                                         double* gradient) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < size) dual[index[k]] = subproblem_dual[k];
  if (k < count) gradient[at[k]] -= ridge[at[k]] * change[k];
}
