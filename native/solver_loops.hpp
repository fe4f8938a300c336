// The loops of dual solvers with a matrix: their arguments and results, and the table of them for one instruction set.
//
// The sources of the loops are compiled once per instruction set inside a namespace of its own (instruction_sets.hpp).
// They use no containers of the standard library, whose functions the linker could take from another instruction set;
// buffers are passed in. solver_loops.cpp must not fuse multiplication and addition (-ffp-contract=off): for the same
// matrix, every instruction set takes the same steps to the last bit.
#pragma once

#include <cstdint>
#include <limits>

namespace maxmargin {

// ---- pair steps -------------------------------------------------------------------------------------------------

// The state of a pairwise solver: arrays in working order. The problem is
//   max linear·b − Σ kink_i |b_i| − ½ bᵀMb − ½ Σ ridge_i b_i²,  lower ≤ b ≤ upper,  Σ_{group g} b = total_g.
// The first `active` positions are the active variables; the others are shrunk.
struct DualState {
  double* dual;      // b
  double* gradient;  // linear − M b − ridge∘b, up to date for active positions
  const double* lower;
  const double* upper;
  const double* diagonal;  // M_ii + ridge_i
  const double* ridge;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  double* bounded_product;    // M b of the variables at a bound other than 0, or null without shrinking
  std::int64_t size;
  std::int64_t active;
  std::int32_t groups;
  std::int64_t singles;          // the number of variables in no group
  const double* kink = nullptr;  // at least 0, and lower ≤ 0 ≤ upper where it is positive; null for none
};

// A least-recently-used cache of matrix rows. The caller fills it; loops read rows and update `last_use`.
template <class T> struct RowCache {
  using Value = T;
  const Value* storage;  // one row of `stride` values per slot
  std::int64_t stride;
  const std::int64_t* slot;   // of the row of each position, or −1
  const std::int64_t* valid;  // the number of leading values of each slot that are valid
  std::int64_t* last_use;     // of each slot
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

// What a selection rule keeps between two calls.
struct SelectionMemory {
  Rule rule;
  std::int64_t previous_up, previous_down;  // the last pair that moved
  std::int64_t pending_up, pending_down;    // the pair that was selected but lacked a row
  double pending_violation;
  GradientExtremes* extremes;  // groups + 1
};

// Positions begin … end − 1, whose values in a row begin at its column begin + shift.
struct Run {
  std::int64_t begin, end, shift;
};

// Active positions of one group, next to each other in rows of the matrix: run r begins at start[r].
constexpr int kMaxRuns = 4;
struct GroupRuns {
  int count = 0;
  std::int64_t start[kMaxRuns + 1];
  std::int64_t shift[kMaxRuns] = {};

  Run at(int r) const { return {start[r], start[r + 1], shift[r]}; }

  // The column of a position in a row.
  std::int64_t column(std::int64_t k) const {
    int r = 0;
    while (k >= start[r + 1]) ++r;
    return k + shift[r];
  }

  // Divide the active positions into runs, given the column of each unless that is the position itself. False if there
  // are too many runs or groups, or a variable is in no group.
  bool find(const DualState& state, const std::int64_t* columns = nullptr) {
    count = 0;
    if (state.singles || state.groups < 1 || state.groups > kMaxRuns) return false;
    for (std::int64_t k = 0; k < state.active; ++k) {
      if (k > 0 && state.group[k] == state.group[k - 1] && (!columns || columns[k] == columns[k - 1] + 1)) continue;
      if (count == kMaxRuns) return false;
      shift[count] = columns ? columns[k] - k : 0;
      start[count++] = k;
    }
    start[count] = state.active;
    return true;
  }
};

// The result of a pass over a chunk of positions: extremes of the gradient, or the partner with the largest gain.
struct alignas(64) PassResult {
  GradientExtremes of_group[kMaxRuns];
  double gain;
  std::int64_t partner;
};

// A call that runs work(context, chunk) for all chunks on several threads, and returns when all have ended.
struct ChunkRunner {
  using Work = void (*)(void* context, std::int64_t chunk);
  void (*run)(void* team, Work work, void* context);
  void* team;
};

// How passes over long rows can be divided among threads: into chunks of `length` positions, each with a result.
struct DividedPasses {
  std::int64_t chunks, length;
  PassResult* results;
  const ChunkRunner* runner;  // null for one thread
};

enum class StopReason : int { optimal = 0, needs_row = 1, paused = 2, unbounded = 3, precision = 4 };

struct Outcome {
  StopReason reason = StopReason::paused;
  std::int64_t steps = 0;
  std::int64_t row = -1;  // with needs_row: its position, and how many of its leading values are needed
  std::int64_t row_length = 0;
  double violation = 0.0;
  double gain = 0.0;  // the increase of the dual objective
};

// ---- free variables and small problems --------------------------------------------------------------------------

struct FreeVariables {
  const double* matrix;  // count × count, with the ridge
  std::int64_t count;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  std::int32_t groups;
  const double *lower, *upper;
  double *dual, *gradient;  // are updated
  double accuracy;          // of the matrix: directions of less curvature, relative to the largest, count as flat
  double max_work;          // the limit of multiplications
  double max_seconds = std::numeric_limits<double>::infinity();
};

// Computes the values of a row of a matrix in whole panels [first_panel, last_panel) of `panel` columns.
struct RowSource {
  void (*fill)(const void* context, std::int64_t row, std::int64_t first_panel, std::int64_t last_panel, double* out);
  const void* context;
  std::int64_t panel;
  std::int64_t max_rows;  // of one problem
};

// A problem on some rows of a square matrix, in memory or computed when needed. Groups that are runs of variables take
// the fastest steps.
struct SmallProblem {
  const double* matrix;  // of `stride` columns; not read if there is a source
  std::int64_t stride;
  const std::int64_t* indices;  // the row of each variable; not read if there are no copies
  const double* linear;
  std::int64_t max_free;              // the limit of free variables whose KKT system is solved
  const RowSource* source = nullptr;  // of problems whose variables are a few runs
};

constexpr int kMaxSmallGroups = 2;

struct ShrunkWorkspace {
  double* doubles;        // 10 size
  std::int64_t* indices;  // 3 size
  std::int32_t* group;    // size
  bool* keep;             // size
};

struct SmallWorkspace {
  double* copies;              // values of the rows that are copied or computed, or null for all rows in order
  std::int64_t copied_values;  // the number of these values that there is memory for
  std::int64_t* slot;          // size; not used without copies
  double* dual_before;         // size
  double *shifts, *diagonal;   // 2 size, size
  double* free_doubles;        // 2 max_free² + 8 max_free
  std::int64_t* free_indices;  // 3 max_free + 2
  std::int32_t* free_groups;   // max_free
  ShrunkWorkspace shrunk;      // of problems with a source of rows
};

// ---- folds on one matrix ----------------------------------------------------------------------------------------

// The variables of a problem on some columns of a symmetric matrix in memory.
struct FoldPath {
  const double* matrix;
  std::int64_t stride;
  const std::int64_t* columns;  // the row and column of each variable
};

// The memory for the equations of so many free variables: the matrix and vectors of FreeWorkspace, then that of
// FreeEquations, which has up to half as many columns as variables.
constexpr std::int64_t columns_of_free_equations(std::int64_t count) { return count / 2 + 2; }
constexpr std::int64_t padded_columns(std::int64_t count) { return columns_of_free_equations(count) + 16; }
constexpr std::int64_t doubles_of_free_equations(std::int64_t count) {
  const std::int64_t columns = padded_columns(count);
  return 2 * count * count + 8 * count + count * columns + 2 * columns * columns + 3 * columns;
}
constexpr std::int64_t indices_of_free_equations(std::int64_t count) { return 6 * count + 4 * padded_columns(count); }

struct FoldWorkspace {
  double* shifts;                                       // 2 size
  double* diagonal;                                     // size
  double* before;                                       // size
  GradientExtremes* extremes;                           // groups + 1
  bool* keep;                                           // size
  double* part_doubles;                                 // 9 size
  float* part_floats;                                   // 4 (size + 15) + 15
  std::int64_t *members, *part_columns, *slot, *owner;  // size
  std::int64_t *place, *column;                         // size
  std::int32_t* part_group;                             // size
  float* values;                                        // of copied rows, and 15 for their alignment
  std::int64_t values_count;                            // at least three rows of size + 15 values
  std::int64_t max_free;                                // the limit of free variables whose equations are solved
  double* free_doubles;                                 // doubles_of_free_equations(max_free)
  std::int64_t* free_indices;                           // indices_of_free_equations(max_free) + groups
  std::int32_t* free_groups;                            // max_free
  const std::int32_t* cancelled;  // another thread sets it to another number than 0 to end the call
};

struct FoldOutcome {
  StopReason reason = StopReason::paused;
  std::int64_t steps = 0, rounds = 0, free_solutions = 0;
};

// ---- samples removed from an optimum ----------------------------------------------------------------------------

// The variables of an optimum that may change, the free ones among them, and the columns of the equations between their
// values (removal_path.hpp), one after the other; those of the totals of the groups are the last.
struct RemovalTable {
  const double* columns;  // size + groups, of so many values each
  const double *dual, *slack, *lower, *upper;
  const std::int32_t* group;  // 0 … groups−1, or −1 for a variable in no group
  std::int64_t size;
  std::int32_t groups;
  double curvature;  // the largest diagonal value of the matrix with the ridge
};

// A variable that is moved to 0.
struct Removal {
  std::int64_t place;    // in the table; −1 if it is not there
  const double* column;  // of the equations, and its own slack there, if it is not in the table
  double response;
  double dual, slack, linear, ridge;
  double margin;          // by which the value must differ from 0 to have another sign
  std::int64_t twin;      // another variable of the sample in the table, which stays 0; −1 for none
  const double* missing;  // how the totals change meanwhile; null: not at all
  double gain;            // that is needed for a proof
  double* offsets;        // the changes of the offsets
};

// value: until the variable is 0. sign: or until the value of the sample has another sign. bound: beyond 0, until the
// gain is reached, or the value has another sign.
enum class RemovalGoal : int { value = 0, sign = 1, bound = 2 };

// failed: the equations are singular, or there are too many break points.
enum class RemovalEnd : int { reached = 0, crossed = 1, proved = 2, unproved = 3, failed = 4 };

struct RemovalOutcome {
  RemovalEnd end = RemovalEnd::failed;
  double value = 0.0;  // linear − ridge b − slack of the sample
  double way = 0.0;    // of the variable from its value to 0
  double gain = 0.0;   // the increase of the objective without the terms of the sample
  std::int64_t exchanges = 0;
  double violation = 0.0;  // of optimality by the variables of the table
  bool unique = true;      // the offsets are: every group has a free variable
};

struct RemovalWorkspace {
  double* doubles;        // (5 + max_exchanges) (size + groups + 1)
  std::int64_t* indices;  // size + groups + 1 + max_exchanges
  std::int64_t max_exchanges;
};

// ---- online learning --------------------------------------------------------------------------------------------

// A model that learns from a stream: arrays over slots, each of which holds a sample.
struct OnlineArrays {
  double *dual, *gradient, *lower, *upper;
  const double *diagonal, *ridge;  // the latter all zeros
  const std::int32_t* group;       // all 0, or all −1 without a group
  bool grouped;
  bool selective;  // whether samples that cannot be part of a violating pair are removed
};

// The samples to process: their slots, −1 for a REPROCESS step only, and what they add to the problem.
struct Arrivals {
  const std::int64_t* slot;
  const double *linear, *lower, *upper;
  const double* start;  // the initial value of the dual variable
  std::int64_t count;
};

struct OnlineProgress {
  std::int64_t next;    // the first arrival that is not finished
  std::int64_t phase;   // of that arrival: 0 insert, 1 PROCESS, 2 REPROCESS
  std::int64_t length;  // the number of slots with gradients
};

// ---- the table --------------------------------------------------------------------------------------------------

struct SolverLoops {
  Outcome (*pairwise)(DualState&, RowCache<double>&, SelectionMemory&, double tolerance, std::int64_t max_steps,
                      double max_seconds);
  Outcome (*pairwise_single)(DualState&, RowCache<float>&, SelectionMemory&, double tolerance, std::int64_t max_steps,
                             double max_seconds);
  // Second order, all variables in groups, nothing shrunk; `shifts` has two values per variable, `diagonal` one.
  Outcome (*fused_pairwise)(DualState&, RowCache<float>&, const GroupRuns&, double* shifts, float* diagonal,
                            const DividedPasses&, double tolerance, std::int64_t max_steps, double max_seconds);
  // Second order, at most two groups; `row` of the outcome is the number of requests for rows, `row_length` that of
  // rows copied or computed. `extremes` has groups + 1 entries: those of the solution.
  Outcome (*small_problem)(DualState&, const SmallProblem&, const SmallWorkspace&, double tolerance,
                           std::int64_t max_steps, GradientExtremes* extremes);
  // The problem of the bounds of a state, from its dual and gradient; the workspace has the extremes of the solution.
  FoldOutcome (*fold)(const FoldPath&, const FoldWorkspace&, DualState&, double tolerance, std::int64_t max_steps);
  // `changes` and `slacks` of the variables of the table, unless null.
  RemovalOutcome (*remove)(const RemovalTable&, const RemovalWorkspace&, const Removal&, RemovalGoal, double* changes,
                           double* slacks);
  // Of the active variables; `extremes` has groups + 1 entries.
  void (*violations)(const DualState&, GradientExtremes* extremes, double* increasing, double* decreasing);
  void (*selectable)(const DualState&, GradientExtremes* extremes, bool* keep);
  // Returns the number of multiplications; the workspace has count² + 3 count doubles and 2 count + groups indices.
  double (*solve_free)(const FreeVariables&, double* doubles, std::int64_t* indices);
  Outcome (*online)(const OnlineArrays&, RowCache<double>&, const Arrivals&, Rule, OnlineProgress&, double tolerance,
                    double max_seconds);
  Outcome (*online_single)(const OnlineArrays&, RowCache<float>&, const Arrivals&, Rule, OnlineProgress&,
                           double tolerance, double max_seconds);
};

}  // namespace maxmargin
