// The loops that Python calls: what goes in, what comes out, and one table of them per instruction set.
//
// The same sources are compiled once per level (x86-64-v2, -v3, -v4; "plain" elsewhere) inside a namespace of its own,
// so that no code of one level can stand in for another's; for the same reason they use no containers of the standard
// library, and buffers are handed in. solvers.cpp must not fuse multiply and add (-ffp-contract=off): given the same
// matrix, every level takes the same steps to the last bit. kernels.cpp may: kernel values differ between levels in
// their last digit, never between blocks, threads or runs.
#pragma once

#include <cstdint>

namespace maxmargin {

// ---- blocks of kernel values --------------------------------------------------------------------------------

// A kernel is a function of a sum over features: function(Σ_k term(x_k, z_k)).
enum class Term : int { product = 0, squared = 1, absolute = 2, chi_squared = 3 };
enum class Function : int {
  identity = 0,             // s
  power = 1,                // (γ s + coef0)^degree
  exponential = 2,          // exp(−γ s)
  tangent = 3,              // tanh(γ s + coef0)
  gaussian_of_product = 4,  // exp(γ (s − ½‖x‖² − ½‖z‖²)), s a product: the gaussian of γ/2
};

struct Formula {
  Term term;
  Function function;
  double gamma, coef0;
  int degree;
};

template <class T> struct PackedSamples {  // interleaved in panels (columns) or strips (rows); see kernel_block.hpp
  const T* values;
  const T* half_norms;
  std::int64_t count;
};

template <class T> struct SparseRows {  // compressed sparse rows
  const std::int64_t* starts;
  const std::int32_t* features;
  const T* values;
};

template <class T> struct BlockLoops {
  int panel, strip, sparse_panel;  // columns and rows that are interleaved; columns that share a table
  void (*pack)(const double* data, const std::int64_t* picks, std::int64_t count, std::int64_t features, int width,
               const double* shift, T* out, T* half_norms);
  void (*dense[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns, std::int64_t features,
                   std::int64_t first_panel, std::int64_t last_panel, T* const* out);
  void (*dense_square[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                          std::int64_t features, std::int64_t first_panel, std::int64_t last_panel, T* const* out);
  void (*combination[4])(const Formula&, const PackedSamples<T>& rows, const PackedSamples<T>& columns,
                         std::int64_t features, std::int64_t first_strip, std::int64_t last_strip, const T* weights,
                         double* out);
  void (*alone[4])(const SparseRows<T>& rows, const std::int64_t* picks, std::int64_t count, T* out);
  void (*sparse[4])(const Formula&, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t count,
                    const SparseRows<T>& columns, const std::int64_t* column_picks, std::int64_t first,
                    std::int64_t last, const T* row_alone, const T* column_alone, std::int32_t* line, T* table,
                    T* const* out);
  void (*sparse_turned[4])(const Formula&, const SparseRows<T>& rows, const std::int64_t* row_picks, std::int64_t count,
                           const SparseRows<T>& columns, const std::int64_t* column_picks, std::int64_t first,
                           std::int64_t last, const T* row_alone, const T* column_alone, std::int32_t* line, T* table,
                           T* const* out);
  void (*sparse_square[4])(const Formula&, const SparseRows<T>& rows, const std::int64_t* picks, std::int64_t count,
                           std::int64_t first, std::int64_t last, const T* alone, std::int32_t* line, T* table,
                           T* const* out);
  void (*sparse_combination[4])(const Formula&, const SparseRows<T>& rows, const std::int64_t* row_picks,
                                std::int64_t first, std::int64_t last, const SparseRows<T>& columns,
                                const std::int64_t* column_picks, std::int64_t count, const T* row_alone,
                                const T* column_alone, std::int32_t* line, T* table, const T* weights, double* out);
  void (*mirror)(T* const* out, std::int64_t first_row, std::int64_t last_row, std::int64_t first, std::int64_t last);
};

struct KernelLoops {
  BlockLoops<float> in_single;
  BlockLoops<double> in_double;
  void (*subtract_rows)(double* gradient, const float* const* rows, const double* change, std::int64_t count,
                        std::int64_t begin, std::int64_t end);
};

// ---- pair steps -----------------------------------------------------------------------------------------------

// The state of a pairwise solver: flat arrays in working order. The problem is
//   max linear·b − ½ bᵀMb − ½ Σ ridge_i b_i²,  lower ≤ b ≤ upper,  Σ_{group g} b = total_g.
// The first `active` positions hold the variables that take part; the rest are shrunk away.
struct DualState {
  double* dual;      // b
  double* gradient;  // linear − M b − ridge∘b, kept up to date for active positions
  const double* lower;
  const double* upper;
  const double* diagonal;  // M_ii + ridge_i
  const double* ridge;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  double* bounded_part;       // Σ over variables at a non-zero bound of b_k M_k·, or null when nothing shrinks
  std::int64_t size;
  std::int64_t active;
  std::int32_t groups;
  std::int64_t singles;  // how many variables are in no group
};

// A least-recently-used store of matrix rows. Filled by the caller; the loop only reads and stamps.
template <class Value> struct RowStore {
  const Value* storage;  // one row of `stride` values per slot
  std::int64_t stride;
  const std::int64_t* slot;    // slot of a position's row, or −1
  const std::int64_t* length;  // how many leading values of a slot are valid
  std::int64_t* last_use;      // by slot
  std::int64_t clock;
  std::int64_t requests;
};

enum class Rule : int { most_violating_pair = 0, second_order = 1, maximum_gain = 2 };

// The largest gradient of the variables of a group that can increase, the smallest of those that can decrease, and
// their positions, −1 for none.
struct GradientExtremes {
  double highest, lowest;
  std::int64_t highest_at, lowest_at;
};

// What a selection rule remembers between two calls.
struct SelectionMemory {
  Rule rule;
  std::int64_t previous_up, previous_down;  // the last pair that moved
  std::int64_t pending_up, pending_down;    // chosen, but its rows were not at hand: taken up again
  double pending_violation;
  GradientExtremes* extremes;  // room for one more than there are groups
};

enum class Reason : int { optimal = 0, needs_row = 1, paused = 2, unbounded = 3, precision = 4 };

struct Outcome {
  Reason reason = Reason::paused;
  std::int64_t steps = 0;
  std::int64_t row = -1;  // with needs_row: the position, and how many leading values are wanted
  std::int64_t length = 0;
  double violation = 0.0;
  double gain = 0.0;  // by how much the dual rose
};

// A small problem whose matrix values are all there, and room to solve it in.
struct WholeTask {
  const double* values;  // a square matrix of `stride` columns
  std::int64_t stride;
  const std::int64_t* picks;  // which of its rows the variables are; not read if there are no copies
  const double* linear;
  double* copies;  // room for size × size values of the picked rows, or null where all rows are picked in order
  std::int64_t *slot, *length, *last_use;  // size
  double* dual_before;                     // size
  double* equations;                       // 2 limit² + 7 limit, with at most `limit` free variables
  std::int64_t* places;                    // 3 limit
  std::int64_t most_free;                  // limit
};

// The free variables of a problem with the matrix between them, and room to solve their equations in.
struct FreeTask {
  const double* block;  // count × count, ridge included
  std::int64_t count;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  std::int32_t groups;
  const double *lower, *upper;
  double *dual, *gradient;                 // where they are, and then where they have moved to
  double accuracy;                         // directions flatter than this, relative to the steepest, count as flat
  double most_work;                        // multiplications after which the variables are left where they are
  double* triangle;                        // count × count
  double *direction, *image, *right;       // count
  std::int64_t *movers, *others, *anchor;  // count, count, groups
};

// ---- streams ----------------------------------------------------------------------------------------------------

// One machine that learns from a stream: arrays over slots, each of which holds a sample.
struct OnlineArrays {
  double *dual, *gradient, *lower, *upper;
  const double *diagonal, *ridge;  // the latter all zeros
  const std::int32_t* group;       // all 0, or all −1 without a group
  bool grouped;
  bool selective;  // whether samples leave that are of no use; otherwise all stay that came
};

// What arrives: a slot, −1 for nothing but a step within the memory, and what the machine makes of the sample in it.
struct Arrivals {
  const std::int64_t* slot;
  const double *linear, *lower, *upper;
  const double* start;  // the value that its dual variable has from the beginning
  std::int64_t count;
};

struct OnlineProgress {
  std::int64_t next;    // the first arrival that is not finished
  std::int64_t phase;   // how far it is
  std::int64_t length;  // slots with gradients
};

// ---- linear machines --------------------------------------------------------------------------------------------

constexpr std::int64_t kSquareRows = 128;    // dense rows whose products are summed up together
constexpr std::int64_t kSquarePadding = 16;  // each takes up to so many values more than it has features

template <class T> struct DenseRows {
  const T* values;
  std::int64_t width;
};

template <class T, class I> struct CompressedRows {
  const I* starts;
  const I* features;
  const T* values;
  std::int64_t width;
};

// The state of dual coordinate ascent: the dual variables and the weights w = Σ b_i x_i, which are kept up to date.
struct AscentState {
  double* dual;
  double* weights;  // `width` of them, then that of the constant feature
  const double *linear, *lower, *upper, *ridge, *squared_norm;
  const std::int64_t* rows;   // the row of each variable, null if they are the same
  const std::int32_t* group;  // null if no variable is in a group
  const double* offset;       // ρ of each group, as it is known
  double* excess;             // Σ b − total of each group
  const double* penalty;      // how much an excess adds to ρ
  std::int64_t width;
  double constant;  // one more feature that all rows have
  double leave_above, leave_below;
  double damping;  // with several threads each takes the others to do the same as it does
};

struct AscentOutcome {
  std::int64_t steps = 0, left = 0;
  double highest = 0.0, lowest = 0.0;  // of the projected gradients that were seen
  double gap = 0.0;                    // the duality gaps of the samples, each when it was seen
};

// The state of the stochastic subgradient method: w = scale · direction, the sum of past weights = factor · direction +
// sums.
struct DescentState {
  double* direction;             // `width` of them, then that of the constant feature
  double* sums;                  // null if nothing is averaged
  double *offset, *offset_sums;  // of each group
  const double *linear, *lower, *upper, *ridge;
  const std::int64_t* rows;   // the row of each variable, null if they are the same
  const std::int32_t* group;  // of each variable, −1 for none
  const double* share;        // the sum that a group must have, divided by the number of variables
  double *answers, *visits;   // weighted sums of the responses of each variable and of the weights, null if nobody asks
  double* room;               // for the responses of a batch
  std::int64_t width, groups;
  double constant;                  // one more feature that all rows have
  double samples;                   // how many variables the objective counts
  double numerator, growth, delay;  // the step is numerator / (growth · t + delay)
  double offset_rate;               // how much longer the steps of offsets are
  double radius;                    // weights are put back into this ball; infinite for none
  bool growing;                     // whether later weights count more in the average, or all the same
  double scale, factor, squared_length;
  double weight, weights;  // of the last step in the average, and of all
  std::int64_t steps;
};

// The state of descent along weights: the weights and the slack of each sample, which are kept up to date.
struct ColumnState {
  double* weights;
  double* slack;                          // linear − F w − ρ
  const double *inverse, *lower, *upper;  // 1 / ridge and the bounds of each sample
  const double* curvature;                // Σ x²/ridge of each column: the largest that the loss can have along it
};

constexpr double kSufficient = 0.01;  // the part of what the slope promises that a step must bring
constexpr int kHalvings = 30;

// A problem whose primal is rounded off by σ around the dual vector `centre`.
struct Rounded {
  const double *linear, *lower, *upper, *ridge, *centre;
  const std::int32_t* group;  // null if no variable is in a group
  const double* offset;
  double sigma;
  double *slack, *response;  // what is computed
};

struct SlackSums {
  double loss = 0.0;                             // Σ conjugate(z)
  double linear = 0.0, ridge = 0.0, size = 0.0;  // linear·β, Σ ridge β², Σ |β| of the responses β
};

template <class Rows> struct RowLoops {
  void (*decisions)(const Rows&, const std::int64_t* picks, std::int64_t begin, std::int64_t end, const double* w,
                    double* out);
  void (*combine)(const Rows&, const std::int64_t* picks, std::int64_t begin, std::int64_t end, const double* b,
                  double* w);
  void (*squared_norms)(const Rows&, const std::int64_t* picks, std::int64_t begin, std::int64_t end, double* out);
  void (*add_squares)(const Rows&, const std::int64_t* picks, std::int64_t begin, std::int64_t end, const double* b,
                      const double* origin, double* room, double* sums, double* square, std::int64_t stride);
  AscentOutcome (*ascend)(const Rows&, AscentState&, std::int64_t* order, std::int64_t begin,
                          std::int64_t end) = nullptr;
  void (*respond)(const Rows&, const std::int64_t* picks, const Rounded&, const double* w, double shift, double* image,
                  double* own, std::int64_t begin, std::int64_t end, SlackSums& sums, double* group_sums) = nullptr;
  void (*descend)(const Rows&, DescentState&, const std::int64_t* order, std::int64_t begin, std::int64_t end,
                  std::int64_t batch) = nullptr;
  double (*descend_columns)(const Rows&, ColumnState&, const std::int64_t* order, std::int64_t begin,
                            std::int64_t end) = nullptr;
};

struct SlackArrays {
  const double *slack, *lower, *upper, *ridge;
};

struct Slope {
  double sum = 0.0, bend = 0.0;
};

struct LinearLoops {
  RowLoops<DenseRows<float>> dense_single;
  RowLoops<DenseRows<double>> dense_double;
  RowLoops<CompressedRows<float, std::int32_t>> short_single;  // by the width of the indices
  RowLoops<CompressedRows<double, std::int32_t>> short_double;
  RowLoops<CompressedRows<float, std::int64_t>> long_single;
  RowLoops<CompressedRows<double, std::int64_t>> long_double;
  void (*respond)(const Rounded&, const double* image, std::int64_t begin, std::int64_t end, SlackSums& sums,
                  double* group_sums);
  double (*loss)(const SlackArrays&, std::int64_t begin, std::int64_t end);
  Slope (*slope)(const SlackArrays&, const double* direction, double t, std::int64_t begin, std::int64_t end);
  double (*descend_model)(const double* square, std::int64_t count, double* weights, double* slope, double tolerance,
                          std::int64_t passes);
};

// ---- the table --------------------------------------------------------------------------------------------------

struct SolverLoops {
  Outcome (*pairwise)(DualState&, RowStore<double>&, SelectionMemory&, double tolerance, std::int64_t max_steps,
                      double max_seconds);
  Outcome (*pairwise_single)(DualState&, RowStore<float>&, SelectionMemory&, double tolerance, std::int64_t max_steps,
                             double max_seconds);
  // Second order, one group, nothing shrunk; `room` is for two values per variable, `bend` for one.
  Outcome (*one_group)(DualState&, RowStore<float>&, double* room, float* bend, double tolerance,
                       std::int64_t max_steps, double max_seconds);
  // Second order, one group or none; `row` of the outcome counts requests for rows.
  Outcome (*whole_problem)(DualState&, const WholeTask&, double tolerance, std::int64_t max_steps);
  // Of the active variables; `extremes` has room for one more than there are groups.
  void (*violations)(const DualState&, GradientExtremes* extremes, double* up, double* down);
  void (*can_matter)(const DualState&, GradientExtremes* extremes, bool* keep);
  double (*solve_free)(const FreeTask&);  // returns how many multiplications that took
  Outcome (*online)(const OnlineArrays&, RowStore<double>&, const Arrivals&, Rule, OnlineProgress&, double tolerance,
                    double max_seconds);
  Outcome (*online_single)(const OnlineArrays&, RowStore<float>&, const Arrivals&, Rule, OnlineProgress&,
                           double tolerance, double max_seconds);
};

#if defined(__x86_64__)
namespace v2 {
extern const KernelLoops kernels;
extern const SolverLoops solvers;
extern const LinearLoops linear;
}  // namespace v2
namespace v3 {
extern const KernelLoops kernels;
extern const SolverLoops solvers;
extern const LinearLoops linear;
}  // namespace v3
namespace v4 {
extern const KernelLoops kernels;
extern const SolverLoops solvers;
extern const LinearLoops linear;
}  // namespace v4
#else
namespace plain {
extern const KernelLoops kernels;
extern const SolverLoops solvers;
extern const LinearLoops linear;
}  // namespace plain
#endif

}  // namespace maxmargin
