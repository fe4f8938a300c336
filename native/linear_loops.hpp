// The loops of linear models: their arguments and results, and the table of them for one instruction set.
//
// The sources are compiled once per instruction set (instruction_sets.hpp), with fused multiplication and addition.
#pragma once

#include <cstdint>

namespace maxmargin {

// ---- rows of features -------------------------------------------------------------------------------------------

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

constexpr std::int64_t kMomentRows = 128;    // dense rows whose second moments are summed up together
constexpr std::int64_t kMomentPadding = 16;  // values that a buffered row may take beyond its features

// ---- dual coordinate ascent -------------------------------------------------------------------------------------

// The dual variables, and the weights w = Σ b_i x_i, which are kept up to date.
struct AscentState {
  double* dual;
  double* weights;  // `width` of them, then that of the constant feature
  const double *linear, *lower, *upper, *ridge, *squared_norm;
  const std::int64_t* rows;   // the row of each variable, null if they are the same
  const std::int32_t* group;  // null if no variable is in a group
  const double* offset;       // the current ρ of each group
  double* excess;             // Σ b − total of each group
  const double* penalty;      // of the augmented Lagrangian: the offset is ρ + penalty · excess
  std::int64_t width;
  double constant;                    // one more feature that all rows have
  double shrink_above, shrink_below;  // gradients beyond which a variable at its bound is shrunk
  double damping;                     // of steps on several threads, each of which assumes the others to take the same
};

struct AscentResult {
  std::int64_t steps = 0, remaining = 0;  // the latter after shrinking
  double highest = 0.0, lowest = 0.0;     // projected gradients
  double gap = 0.0;                       // the sum of the duality gaps of the samples, each before its step
};

// ---- stochastic subgradient method ------------------------------------------------------------------------------

// w = scale · direction; the weighted sum of the iterates is factor · direction + sums.
struct SubgradientState {
  double* direction;             // `width` of them, then that of the constant feature
  double* sums;                  // null without an average
  double *offset, *offset_sums;  // of each group
  const double *linear, *lower, *upper, *ridge;
  const std::int64_t* rows;    // the row of each variable, null if they are the same
  const std::int32_t* group;   // of each variable, −1 for none
  const double* share;         // the sum that a group must have, divided by the number of variables
  double *responses, *visits;  // sums of weighted responses and of weights of each variable, or null
  double* buffer;              // for the responses of a batch
  std::int64_t width, groups;
  double constant;                     // one more feature that all rows have
  double samples;                      // the number of variables that the objective counts
  double numerator, growth, delay;     // the step size is numerator / (growth · t + delay)
  double offset_rate;                  // of the steps of offsets, relative to those of weights
  double radius;                       // of the ball that weights are projected to; infinite for none
  bool growing;                        // whether later iterates have more weight in the average
  double scale, factor, squared_norm;  // the last of the direction
  double last_weight, weight_sum;      // of the iterates in the average
  std::int64_t steps;
};

// ---- primal methods ---------------------------------------------------------------------------------------------

// Coordinate descent: the weights, and the slack of each sample, which is kept up to date.
struct ColumnState {
  double* weights;
  double* slack;                                // linear − F w − ρ
  const double *inverse_ridge, *lower, *upper;  // of each sample
  const double* curvature;                      // of each weight: Σ x²/ridge, the largest that the loss can have
};

// A problem whose primal is smoothed with σ around the dual vector `centre`.
struct SmoothedProblem {
  const double *linear, *lower, *upper, *ridge, *centre;
  const std::int32_t* group;  // null if no variable is in a group
  const double* offset;
  double sigma;
  double *slack, *response;  // are computed
};

struct ResponseSums {
  double loss = 0.0;                                     // Σ conjugate(z)
  double linear = 0.0, ridge = 0.0, absolute_sum = 0.0;  // linear·β, Σ ridge β², Σ |β| of the responses β
};

// ---- passes over blocks -----------------------------------------------------------------------------------------

constexpr double kSlackRoundings = 8 * 1.1102230246251565e-16;  // of the numbers that a slack is computed from

// The problem of the samples of a block, or of one sample of each kind. The primal is smoothed with σ around `centre`.
struct PassProblem {
  const double *linear, *lower, *upper, *ridge;
  const double* kink;         // null if there is none
  const std::int32_t* kinds;  // of each sample, null if each is a kind of its own
  const float* centre;        // null for 0
  double shift, offset;       // z = linear − (row · w + shift) − offset
  double sigma, slack_error;  // the latter bounds the error of the product
  double* response;           // of each sample, computed
  bool* free;                 // whether it is off its bounds and kinks, computed
};

// Sums over samples z with responses β. Pairs are of positive and negative responses.
struct PassTotals {
  double loss = 0.0;                           // Σ conjugate(z), of the largest z within its error
  double slack_square = 0.0;                   // Σ z²
  double linear[2]{}, ridge[2]{}, total[2]{};  // Σ (linear β − kink |β|), Σ ridge β², Σ β
  double size = 0.0;                           // Σ (|linear| + kink + 1) |β|
  std::int64_t free = 0;                       // samples off their bounds and kinks
};

struct SlackArrays {
  const double *slack, *lower, *upper, *ridge;
  double sigma = 0.0;  // is added to all ridges
};

struct Derivatives {
  double slope = 0.0, curvature = 0.0;
};

// ---- small problems ---------------------------------------------------------------------------------------------

// Variable k has row k mod rows_count; the rows are centred where there is a group, with the regularised constant
// feature last where there is one. Compressed rows have starts and features, ascending in each row, and no group.
struct SmallLinearProblem {
  const double* rows;
  const std::int32_t *starts, *features;  // null for dense rows
  std::int64_t rows_count, width, variables;
  const double *linear, *lower, *upper, *ridge;
  bool grouped;              // whether the variables must have the sum 0
  double relative_gap, gap;  // either is enough, the latter only if no objective value is larger
  std::int64_t max_steps;
};

struct SmallLinearOutcome {
  bool converged = false;
  std::int64_t steps = 0, rounds = 0;  // Newton steps and smoothed problems
  double primal = 0.0, dual = 0.0;
};

// A dual vector b and weights w with their products: all arrays that a certificate is computed from.
struct CertifiedPoint {
  std::int64_t variables, width, longest_row;
  const double *linear, *lower, *upper, *ridge, *dual;
  const double *weights, *dual_weights;  // w and Fᵀb, with the constant feature last
  const double *decisions, *product;     // F w and F Fᵀb
  const double* squared_norms;           // of each variable's row, without the constant feature
  double constant;
  bool grouped;
  double *slack, *residual;  // are computed
  const double* offset;      // null: that of least loss is computed
};

struct LinearCertificate {
  double primal = 0.0, dual = 0.0, gap = 0.0, rounding = 0.0, violation = 0.0, infeasibility = 0.0, squared_norm = 0.0;
  double offset = 0.0, low = 0.0, high = 0.0;  // the latter are the interval of the offset
  bool conclusive = false;                     // whether the bounds are finite
};

// ---- the tables -------------------------------------------------------------------------------------------------

// The loops for one kind of rows; `indices` selects rows, null for all.
template <class Rows> struct RowLoops {
  void (*decisions)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end, const double* w,
                    double* out);
  void (*combine)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end, const double* b,
                  double* w);
  void (*squared_norms)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end, double* out);
  void (*add_moments)(const Rows&, const std::int64_t* indices, std::int64_t begin, std::int64_t end, const double* b,
                      const double* origin, double* buffer, double* sums, double* square, std::int64_t stride);
  AscentResult (*ascend)(const Rows&, AscentState&, std::int64_t* order, std::int64_t begin, std::int64_t end);
  void (*respond)(const Rows&, const std::int64_t* indices, const SmoothedProblem&, const double* w, double shift,
                  double* decisions, double* dual_weights, std::int64_t begin, std::int64_t end, ResponseSums& sums,
                  double* group_sums);
  void (*sum_pass)(const Rows&, const std::int64_t* indices, const PassProblem&, const double* w, std::int64_t begin,
                   std::int64_t end, PassTotals& out, double* weights);
  void (*subgradient_steps)(const Rows&, SubgradientState&, const std::int64_t* order, std::int64_t count,
                            std::int64_t batch);
  double (*descend_columns)(const Rows&, ColumnState&, const std::int64_t* order, std::int64_t count);
};

struct LinearLoops {
  RowLoops<DenseRows<float>> dense_single;
  RowLoops<DenseRows<double>> dense_double;
  RowLoops<CompressedRows<float, std::int32_t>> short_single;  // by the width of the indices
  RowLoops<CompressedRows<double, std::int32_t>> short_double;
  RowLoops<CompressedRows<float, std::int64_t>> long_single;
  RowLoops<CompressedRows<double, std::int64_t>> long_double;
  void (*respond)(const SmoothedProblem&, const double* decisions, std::int64_t begin, std::int64_t end,
                  ResponseSums& sums, double* group_sums);
  double (*loss)(const SlackArrays&, std::int64_t begin, std::int64_t end);
  Derivatives (*derivatives)(const SlackArrays&, const double* direction, double t, std::int64_t begin,
                             std::int64_t end);
  double (*descend_model)(const double* square, std::int64_t count, double* weights, double* slope, double tolerance,
                          std::int64_t max_passes);
  bool (*solve_positive_definite)(double* square, std::int64_t width, double* x);
  std::int64_t (*small_memory)(const SmallLinearProblem&);  // doubles
  SmallLinearOutcome (*solve_small)(const SmallLinearProblem&, double* memory, std::int64_t* indices, double* dual,
                                    double* weights);
  LinearCertificate (*certify)(const CertifiedPoint&);
};

}  // namespace maxmargin
