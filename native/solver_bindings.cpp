// What the solvers call: checks shapes, releases the interpreter lock, calls the loops.
#include <chrono>
#include <memory>
#include <tuple>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// gradient −= Σ_k change[k] · storage[slots[k]] over the first values of each row.
void subtract_rows(Vector<double> gradient, Table<const float> storage, Vector<const std::int64_t> slots,
                   Vector<const double> change, std::int64_t count, int threads) {
  require(change.shape(0) == slots.shape(0), "there must be one change for every row");
  require(count >= 0 && count <= static_cast<std::int64_t>(gradient.shape(0)), "count is out of range");
  const std::vector<const float*> rows = row_pointers<const float>(storage, slots, count);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, 2048, [&](std::int64_t begin, std::int64_t end, int) {
    level.kernels->subtract_rows(gradient.data(), rows.data(), change.data(), rows.size(), begin, end);
  });
}

// out[k] = storage[slots[k]] at the chosen columns.
void gather(Table<const float> storage, Vector<const std::int64_t> slots, Vector<const std::int64_t> columns,
            Table<float> out, int threads) {
  const std::int64_t count = slots.shape(0), width = columns.shape(0);
  require(static_cast<std::int64_t>(out.shape(0)) >= count && static_cast<std::int64_t>(out.shape(1)) == width,
          "the output has the wrong shape");
  require_within(columns, storage.shape(1));
  const std::vector<const float*> rows = row_pointers<const float>(storage, slots, 0);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(1, width)),
              [&](std::int64_t begin, std::int64_t end, int) {
                for (std::int64_t k = begin; k < end; ++k)
                  for (std::int64_t c = 0; c < width; ++c) out.data()[k * width + c] = rows[k][columns.data()[c]];
              });
}

template <class Value> auto mirror_loop() {
  if constexpr (sizeof(Value) == 4)
    return level.kernels->in_single.mirror;
  else
    return level.kernels->in_double.mirror;
}

// table[r][c] = table[c][r] for the rows before `first` and the columns from there to `last`.
template <class Value> void mirror(Table<Value> table, std::int64_t first, std::int64_t last, int threads) {
  const std::int64_t size = table.shape(0);
  require(static_cast<std::int64_t>(table.shape(1)) == size && 0 <= first && first <= last && last <= size,
          "the table has the wrong shape");
  std::vector<Value*> rows(size);
  for (std::int64_t r = 0; r < size; ++r) rows[r] = table.data() + r * size;
  constexpr std::int64_t side = 64;  // of squares that are read along one side and written along the other, in cache
  nb::gil_scoped_release unlocked;
  in_parallel(threads, first, 2 * side, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; row += side)
      for (std::int64_t column = first; column < last; column += side)
        mirror_loop<Value>()(rows.data(), column, std::min(column + side, last), row, std::min(row + side, end));
  });
}

template <class Value>
std::tuple<int, std::int64_t, std::int64_t, std::int64_t, double, double, std::int64_t, std::int64_t> pairwise_steps(
    Vector<double> dual, Vector<double> gradient, Vector<const double> lower, Vector<const double> upper,
    Vector<const double> diagonal, Vector<const double> ridge, Vector<const std::int32_t> group,
    Vector<double> bounded_part, std::int64_t active, std::int32_t groups, std::int64_t singles,
    Table<const Value> storage, Vector<const std::int64_t> slot, Vector<const std::int64_t> length,
    Vector<std::int64_t> last_use, std::int64_t clock, int rule, Vector<std::int64_t> memory, double violation,
    double tolerance, std::int64_t max_steps, double max_seconds) {
  const std::size_t n = dual.shape(0);
  require(gradient.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && diagonal.shape(0) == n &&
              ridge.shape(0) == n && group.shape(0) == n && slot.shape(0) == n && storage.shape(1) >= n,
          "the arrays of a dual state must have one length");
  require(bounded_part.shape(0) == n || bounded_part.shape(0) == 0, "bounded_part has the wrong length");
  require(length.shape(0) == storage.shape(0) && last_use.shape(0) == storage.shape(0), "the row store is malformed");
  require(active >= 0 && active <= static_cast<std::int64_t>(n), "active is out of range");
  for (std::size_t k = 0; k < n; ++k)
    require(slot.data()[k] >= -1 && slot.data()[k] < static_cast<std::int64_t>(storage.shape(0)) &&
                group.data()[k] >= -1 && group.data()[k] < groups,
            "a slot or a group is out of range");
  for (std::size_t k = 0; k < length.shape(0); ++k)
    require(length.data()[k] <= static_cast<std::int64_t>(storage.shape(1)), "the row store is malformed");
  require(memory.shape(0) == 4, "memory holds the previous and the pending pair");
  for (int k = 0; k < 4; ++k)
    require(memory.data()[k] >= -1 && memory.data()[k] < active, "memory names a position that is not active");
  require(rule >= 0 && rule <= 2, "unknown working-set rule");
  require(groups >= 0, "groups is out of range");
  DualState state{dual.data(),
                  gradient.data(),
                  lower.data(),
                  upper.data(),
                  diagonal.data(),
                  ridge.data(),
                  group.data(),
                  bounded_part.shape(0) ? bounded_part.data() : nullptr,
                  static_cast<std::int64_t>(n),
                  active,
                  groups,
                  singles};
  RowStore<Value> rows{storage.data(),
                       static_cast<std::int64_t>(storage.shape(1)),
                       slot.data(),
                       length.data(),
                       last_use.data(),
                       clock,
                       0};
  std::int64_t* m = memory.data();
  Outcome out;
  {
    nb::gil_scoped_release unlocked;
    std::vector<Extreme> extremes(groups + 1);
    SelectionMemory selection{static_cast<Rule>(rule), m[0], m[1], m[2], m[3], violation, extremes.data()};
    if constexpr (sizeof(Value) == 4) {
      if (groups == 1 && singles == 0 && selection.rule == Rule::second_order && !state.bounded_part) {
        std::vector<double> room(2 * n);
        std::vector<float> bend(n);
        out = level.solvers->one_group(state, rows, room.data(), bend.data(), tolerance, max_steps, max_seconds);
      } else {
        out = level.solvers->pairwise_single(state, rows, selection, tolerance, max_steps, max_seconds);
      }
    } else
      out = level.solvers->pairwise(state, rows, selection, tolerance, max_steps, max_seconds);
    m[0] = selection.previous_up;
    m[1] = selection.previous_down;
    m[2] = selection.pending_up;
    m[3] = selection.pending_down;
  }
  return {
      static_cast<int>(out.reason), out.steps, out.row, out.length, out.violation, out.gain, rows.clock, rows.requests};
}

// What the optimality criterion looks at: no diagonal, no rows.
DualState criterion_of(Vector<const double> dual, Vector<const double> gradient, Vector<const double> lower,
                       Vector<const double> upper, Vector<const std::int32_t> group, std::int32_t groups) {
  const std::size_t n = dual.shape(0);
  require(gradient.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && group.shape(0) == n && groups >= 0,
          "the arrays of a dual state must have one length");
  std::int64_t singles = 0;
  for (std::size_t k = 0; k < n; ++k) {
    require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
    singles += group.data()[k] < 0;
  }
  // They are only read.
  return DualState{const_cast<double*>(dual.data()),
                   const_cast<double*>(gradient.data()),
                   lower.data(),
                   upper.data(),
                   nullptr,
                   nullptr,
                   group.data(),
                   nullptr,
                   static_cast<std::int64_t>(n),
                   static_cast<std::int64_t>(n),
                   groups,
                   singles};
}

// By how much each variable violates optimality when it grows, and when it falls.
void violations(Vector<const double> dual, Vector<const double> gradient, Vector<const double> lower,
                Vector<const double> upper, Vector<const std::int32_t> group, std::int32_t groups, Vector<double> up,
                Vector<double> down) {
  const DualState state = criterion_of(dual, gradient, lower, upper, group, groups);
  require(up.shape(0) == dual.shape(0) && down.shape(0) == dual.shape(0), "the output has the wrong shape");
  std::vector<Extreme> extremes(groups + 1);
  level.solvers->violations(state, extremes.data(), up.data(), down.data());
}

// Which variables may still be chosen for a step.
void can_matter(Vector<const double> dual, Vector<const double> gradient, Vector<const double> lower,
                Vector<const double> upper, Vector<const std::int32_t> group, std::int32_t groups, Vector<bool> keep) {
  const DualState state = criterion_of(dual, gradient, lower, upper, group, groups);
  require(keep.shape(0) == dual.shape(0), "the output has the wrong shape");
  std::vector<Extreme> extremes(groups + 1);
  level.solvers->can_matter(state, extremes.data(), keep.data());
}

// Move free variables to the solution of their linear equations, as far as the box lets them; see free_equations.hpp.
// Returns how many multiplications that took.
double solve_free(Table<const double> block, Vector<const std::int32_t> group, std::int32_t groups,
                  Vector<const double> lower, Vector<const double> upper, Vector<double> dual, Vector<double> gradient,
                  double accuracy, double most_work) {
  const std::size_t n = dual.shape(0);
  require(block.shape(0) == n && block.shape(1) == n && group.shape(0) == n && lower.shape(0) == n &&
              upper.shape(0) == n && gradient.shape(0) == n,
          "the arrays of the free variables must have one length");
  for (std::size_t k = 0; k < n; ++k)
    require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
  nb::gil_scoped_release unlocked;
  std::unique_ptr<double[]> triangle(new double[n * n]);
  std::vector<double> vectors(3 * n);
  std::vector<std::int64_t> places(2 * n), anchor(std::max(0, groups), -1);
  return level.solvers->solve_free(FreeTask{block.data(), static_cast<std::int64_t>(n), group.data(), groups,
                                            lower.data(), upper.data(), dual.data(), gradient.data(), accuracy,
                                            most_work, triangle.get(), vectors.data(), vectors.data() + n,
                                            vectors.data() + 2 * n, places.data(), places.data() + n, anchor.data()});
}

// Room to solve problems of up to `size` variables, `most_free` of them free at the end.
struct WholeRoom {
  std::unique_ptr<double[]> copies, equations;  // not touched before they are needed
  std::vector<std::int64_t> slot, length, last_use, places;
  std::vector<double> dual_before, diagonal;
  std::vector<std::int32_t> group;

  WholeRoom(std::int64_t size, std::int64_t most_free, bool picked, int group_of_all)
      : copies(picked ? new double[size * size] : nullptr),
        equations(new double[2 * most_free * most_free + 7 * most_free]),
        slot(size),
        length(size),
        last_use(size),
        places(3 * most_free),
        dual_before(size),
        diagonal(size),
        group(size, group_of_all) {}
};

// Solve problems on parts of one matrix: variables edges[p] … edges[p+1] are problem p, and picks says which rows of
// the matrix they are (empty: all, in order). outcomes[p] is reason, steps, requests for rows; only problems with
// reason −1 are solved, as many as the time allows. `dual` is the start and becomes the solution.
void solve_whole_problems(Table<const double> values, Vector<const std::int64_t> picks,
                          Vector<const std::int64_t> edges, Vector<const double> linear, Vector<const double> lower,
                          Vector<const double> upper, Vector<const double> ridge, bool grouped, Vector<double> dual,
                          Vector<double> gradient, Table<std::int64_t> outcomes, double tolerance,
                          std::int64_t max_steps, std::int64_t most_free, double max_seconds, int threads) {
  const std::int64_t n = values.shape(0), problems = outcomes.shape(0), variables = dual.shape(0);
  require(static_cast<std::int64_t>(values.shape(1)) == n, "the matrix must be square");
  for (const auto& array : {linear, lower, upper, ridge})
    require(static_cast<std::int64_t>(array.shape(0)) == variables, "the arrays of the problems must have one length");
  require(static_cast<std::int64_t>(gradient.shape(0)) == variables, "the arrays of the problems must have one length");
  const bool picked = picks.shape(0) > 0;
  require(!picked || static_cast<std::int64_t>(picks.shape(0)) == variables,
          "there must be one pick for every variable");
  require_within(picks, n);
  require(static_cast<std::int64_t>(edges.shape(0)) == problems + 1 && outcomes.shape(1) == 3 && edges.data()[0] == 0 &&
              edges.data()[problems] == variables && most_free >= 0 && max_steps >= 0,
          "the problems are malformed");
  std::int64_t largest = 0;
  for (std::int64_t p = 0; p < problems; ++p) {
    const std::int64_t size = edges.data()[p + 1] - edges.data()[p];
    require(size >= 0 && (picked || size == n), "the problems are malformed");
    largest = std::max(largest, size);
  }
  most_free = std::min(most_free, largest);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<std::unique_ptr<WholeRoom>>
      rooms;  // before the threads start: running out of memory is an error, not a crash
  for (int t = 0; t < std::max(1, threads); ++t)
    rooms.push_back(std::make_unique<WholeRoom>(largest, most_free, picked, grouped ? 0 : -1));
  nb::gil_scoped_release unlocked;
  in_parallel(threads, problems, 1, [&](std::int64_t p, std::int64_t, int thread) {
    std::int64_t* outcome = outcomes.data() + 3 * p;
    if (outcome[0] != -1 || std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return;
    WholeRoom& room = *rooms[thread];
    const std::int64_t at = edges.data()[p], size = edges.data()[p + 1] - at;
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t row = picked ? picks.data()[at + k] : k;
      room.diagonal[k] = values.data()[row * n + row] + ridge.data()[at + k];
    }
    DualState state{dual.data() + at,
                    gradient.data() + at,
                    lower.data() + at,
                    upper.data() + at,
                    room.diagonal.data(),
                    ridge.data() + at,
                    room.group.data(),
                    nullptr,
                    size,
                    size,
                    grouped ? 1 : 0,
                    grouped ? 0 : size};
    const WholeTask task{values.data(),
                         n,
                         picked ? picks.data() + at : nullptr,
                         linear.data() + at,
                         room.copies.get(),
                         room.slot.data(),
                         room.length.data(),
                         room.last_use.data(),
                         room.dual_before.data(),
                         room.equations.get(),
                         room.places.data(),
                         most_free};
    const Outcome out = level.solvers->whole_problem(state, task, tolerance, max_steps);
    outcome[0] = static_cast<std::int64_t>(out.reason);
    outcome[1] = out.steps;
    outcome[2] = out.row;
  });
}

}  // namespace

void define_solvers(nb::module_& m) {
  // No array is ever converted: a copy would be written to and lost.
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  const auto define_steps = [&](auto steps) {
    m.def("pairwise_steps", steps, exact("dual"), exact("gradient"), exact("lower"), exact("upper"), exact("diagonal"),
          exact("ridge"), exact("group"), exact("bounded_part"), nb::arg("active"), nb::arg("groups"),
          nb::arg("singles"), exact("storage"), exact("slot"), exact("length"), exact("last_use"), nb::arg("clock"),
          nb::arg("rule"), exact("memory"), nb::arg("violation"), nb::arg("tolerance"), nb::arg("max_steps"),
          nb::arg("max_seconds"));
  };
  define_steps(&pairwise_steps<float>);
  define_steps(&pairwise_steps<double>);
  m.def("gather", &gather, exact("storage"), exact("slots"), exact("columns"), exact("out"), nb::arg("threads"));
  m.def("mirror", &mirror<float>, exact("table"), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
  m.def("mirror", &mirror<double>, exact("table"), nb::arg("first"), nb::arg("last"), nb::arg("threads"));
  m.def("subtract_rows", &subtract_rows, exact("gradient"), exact("storage"), exact("slots"), exact("change"),
        nb::arg("count"), nb::arg("threads"));
  m.def("violations", &violations, exact("dual"), exact("gradient"), exact("lower"), exact("upper"), exact("group"),
        nb::arg("groups"), exact("up"), exact("down"));
  m.def("can_matter", &can_matter, exact("dual"), exact("gradient"), exact("lower"), exact("upper"), exact("group"),
        nb::arg("groups"), exact("keep"));
  m.def("solve_free", &solve_free, exact("block"), exact("group"), nb::arg("groups"), exact("lower"), exact("upper"),
        exact("dual"), exact("gradient"), nb::arg("accuracy"), nb::arg("most_work"));
  m.def("solve_whole_problems", &solve_whole_problems, exact("values"), exact("picks"), exact("edges"), exact("linear"),
        exact("lower"), exact("upper"), exact("ridge"), nb::arg("grouped"), exact("dual"), exact("gradient"),
        exact("outcomes"), nb::arg("tolerance"), nb::arg("max_steps"), nb::arg("most_free"), nb::arg("max_seconds"),
        nb::arg("threads"));
}

}  // namespace maxmargin
