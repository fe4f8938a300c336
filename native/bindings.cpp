// The only file that knows Python: checks shapes, releases the interpreter lock, calls the loops.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "levels.hpp"

namespace nb = nanobind;
using namespace maxmargin;

namespace {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* sentence) {
  if (!condition) throw std::invalid_argument(sentence);
}

void require_within(Vector<const std::int64_t> picks, std::int64_t count) {
  const std::int64_t* p = picks.data();
  for (std::size_t k = 0; k < picks.shape(0); ++k) require(p[k] >= 0 && p[k] < count, "a sample index is out of range");
}

// The widest usable instruction set, chosen once at import. The variable MAXMARGIN_LEVEL asks for a narrower one: for
// tests and for comparing speeds.
Level choose_level() {
  const std::vector<Level> usable = usable_levels();
  const char* wish = std::getenv("MAXMARGIN_LEVEL");
  for (const Level& level : usable)
    if (wish && std::string(wish) == level.name) return level;
  return usable.back();
}

const Level level = choose_level();

template <class T> const BlockLoops<T>& block_loops() {
  if constexpr (sizeof(T) == 4) return level.kernels->in_single;
  else return level.kernels->in_double;
}

// Hand out [0, count) in chunks to `threads` threads. Whoever is free takes the next one; the results do not depend on
// who took which.
template <class Work> void in_parallel(int threads, std::int64_t count, std::int64_t chunk, Work work) {
  std::atomic<std::int64_t> next{0};
  const auto take = [&](int thread) {
    for (std::int64_t begin; (begin = next.fetch_add(chunk)) < count;)
      work(begin, std::min(count, begin + chunk), thread);
  };
  std::vector<std::thread> others;
  const std::int64_t useful = (count + chunk - 1) / chunk;
  for (int t = 1; t < threads && t < useful; ++t) {
    try {
      others.emplace_back(take, t);
    } catch (const std::exception&) {
      break;  // no more threads or memory to be had: the ones there are do the work
    }
  }
  take(0);
  for (std::thread& other : others) other.join();
}

Formula formula_of(int term, int function, double gamma, double coef0, int degree) {
  require(term >= 0 && term <= 3 && function >= 0 && function <= 4 && degree >= 0, "unknown kernel formula");
  return {static_cast<Term>(term), static_cast<Function>(function), gamma, coef0, degree};
}

template <class T> std::vector<T*> row_pointers(Table<T> storage, Vector<const std::int64_t> slots, std::int64_t columns) {
  require(static_cast<std::int64_t>(storage.shape(1)) >= columns, "the rows of the store are too short");
  require_within(slots, storage.shape(0));
  std::vector<T*> rows(slots.shape(0));
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = storage.data() + slots.data()[k] * storage.shape(1);
  return rows;
}

template <class T>
void pack(Table<const double> data, Vector<const std::int64_t> picks, int width, Vector<const double> shift,
          Vector<T> out, Vector<T> half_norms, int threads) {
  const std::int64_t count = picks.shape(0), features = data.shape(1);
  require(width > 0, "width is out of range");
  const std::int64_t groups = (count + width - 1) / width;
  require(static_cast<std::int64_t>(out.shape(0)) >= groups * width * features &&
              static_cast<std::int64_t>(half_norms.shape(0)) >= groups * width,
          "the packed samples need more room");
  require(shift.shape(0) == 0 || static_cast<std::int64_t>(shift.shape(0)) == features, "shift has the wrong length");
  require_within(picks, data.shape(0));
  const double* centre = shift.shape(0) ? shift.data() : nullptr;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, groups, 64, [&](std::int64_t begin, std::int64_t end, int) {
    block_loops<T>().pack(data.data(), picks.data() + begin * width, std::min(count, end * width) - begin * width, features,
                          width, centre, out.data() + begin * width * features, half_norms.data() + begin * width);
  });
}

template <class T> PackedSamples<T> packed(Vector<const T> values, Vector<const T> norms, std::int64_t count, std::int64_t features, int width) {
  const std::int64_t padded = (count + width - 1) / width * width;
  require(count >= 0 && features >= 0 && static_cast<std::int64_t>(values.shape(0)) >= padded * features &&
              static_cast<std::int64_t>(norms.shape(0)) >= padded,
          "the packed samples are too short");
  return {values.data(), norms.data(), count};
}

template <class T>
void dense_block(int term, int function, double gamma, double coef0, int degree, Vector<const T> rows,
                 Vector<const T> row_norms, Vector<const T> columns, Vector<const T> column_norms,
                 std::int64_t column_count, std::int64_t features, Table<T> out, Vector<const std::int64_t> slots,
                 int threads) {
  const auto& loops = block_loops<T>();
  const Formula formula = formula_of(term, function, gamma, coef0, degree);
  const PackedSamples<T> left = packed<T>(rows, row_norms, slots.shape(0), features, loops.strip);
  const PackedSamples<T> right = packed<T>(columns, column_norms, column_count, features, loops.panel);
  const std::vector<T*> targets = row_pointers<T>(out, slots, column_count);
  const std::int64_t panels = (column_count + loops.panel - 1) / loops.panel;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, panels, std::max<std::int64_t>(1, std::min<std::int64_t>(32, panels / (4 * std::max(1, threads)))),
              [&](std::int64_t begin, std::int64_t end, int) {
                loops.dense[term](formula, left, right, features, begin, end, targets.data());
              });
}

template <class T>
void dense_combination(int term, int function, double gamma, double coef0, int degree, Vector<const T> rows,
                       Vector<const T> row_norms, Vector<const T> columns, Vector<const T> column_norms,
                       std::int64_t features, Vector<const T> weights, Vector<double> out, int threads) {
  const auto& loops = block_loops<T>();
  const Formula formula = formula_of(term, function, gamma, coef0, degree);
  const PackedSamples<T> left = packed<T>(rows, row_norms, out.shape(0), features, loops.strip);
  const PackedSamples<T> right = packed<T>(columns, column_norms, weights.shape(0), features, loops.panel);
  require(weights.shape(0) % loops.panel == 0, "the weights must be padded to whole panels");
  const std::int64_t strips = (out.shape(0) + loops.strip - 1) / loops.strip;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, strips, 8, [&](std::int64_t begin, std::int64_t end, int) {
    loops.combination[term](formula, left, right, features, begin, end, weights.data(), out.data());
  });
}

template <class T>
SparseRows<T> checked(Vector<const std::int64_t> starts, Vector<const std::int32_t> features, Vector<const T> values,
                      Vector<const std::int64_t> picks, std::int64_t count) {
  const std::int64_t stored = features.shape(0);
  require(starts.shape(0) > 0 && features.shape(0) == values.shape(0) && count >= 0, "the sparse rows are malformed");
  require_within(picks, starts.shape(0) - 1);
  for (std::size_t k = 0; k < picks.shape(0); ++k) {
    const std::int64_t begin = starts.data()[picks.data()[k]], end = starts.data()[picks.data()[k] + 1];
    require(0 <= begin && begin <= end && end <= stored, "the sparse rows are malformed");
    bool inside = true;  // negative ones are large as unsigned numbers
    for (std::int64_t p = begin; p < end; ++p) inside &= static_cast<std::uint32_t>(features.data()[p]) < static_cast<std::uint64_t>(count);
    require(inside, "a feature index is out of range");
  }
  return {starts.data(), features.data(), values.data()};
}

// What each thread needs to spread panels of sparse columns.
template <class T> class SparseBuffers {
 public:
  struct Own { std::vector<std::int32_t> line; std::vector<T> table; };

  SparseBuffers(int threads, std::int64_t features, const SparseRows<T>& columns, const std::int64_t* picks, std::int64_t count)
      : own_(std::max(1, threads)) {
    const std::int64_t panel = block_loops<T>().sparse_panel;
    std::int64_t most = 0;  // stored values of the fullest panel
    for (std::int64_t at = 0; at < count; at += panel) {
      std::int64_t sum = 0;
      for (std::int64_t c = at; c < std::min(count, at + panel); ++c) sum += columns.starts[picks[c] + 1] - columns.starts[picks[c]];
      most = std::max(most, sum);
    }
    for (Own& own : own_) {  // before any thread starts, where running out of memory is an ordinary error
      own.line.assign(features + 1, 0);
      own.table.resize((1 + std::min(most, features)) * panel);
    }
  }

  Own& of(int thread) { return own_[thread]; }

 private:
  std::vector<Own> own_;
};

template <class T>
void sparse_alone(int term, Vector<const std::int64_t> starts, Vector<const std::int32_t> features,
                  Vector<const T> values, Vector<const std::int64_t> picks, std::int64_t count, Vector<T> out) {
  require(term >= 0 && term <= 3 && out.shape(0) == picks.shape(0), "the sums of sparse rows are malformed");
  const SparseRows<T> rows = checked<T>(starts, features, values, picks, count);
  nb::gil_scoped_release unlocked;
  block_loops<T>().alone[term](rows, picks.data(), picks.shape(0), out.data());
}

template <class T>
void sparse_block(int term, int function, double gamma, double coef0, int degree, Vector<const std::int64_t> row_starts,
                  Vector<const std::int32_t> row_features, Vector<const T> row_values,
                  Vector<const std::int64_t> row_picks, Vector<const T> row_alone,
                  Vector<const std::int64_t> column_starts, Vector<const std::int32_t> column_features,
                  Vector<const T> column_values, Vector<const std::int64_t> column_picks, Vector<const T> column_alone,
                  std::int64_t features, Table<T> out, Vector<const std::int64_t> slots, int threads) {
  const auto& loops = block_loops<T>();
  const Formula formula = formula_of(term, function, gamma, coef0, degree);
  require(formula.function != Function::gaussian_of_product, "this formula is for dense samples");
  const std::int64_t count = row_picks.shape(0), columns = column_picks.shape(0);
  require(slots.shape(0) == row_picks.shape(0) && row_alone.shape(0) == row_picks.shape(0) &&
              column_alone.shape(0) == column_picks.shape(0),
          "the rows of a sparse block are malformed");
  const SparseRows<T> left = checked<T>(row_starts, row_features, row_values, row_picks, features);
  const SparseRows<T> right = checked<T>(column_starts, column_features, column_values, column_picks, features);
  const std::vector<T*> targets = row_pointers<T>(out, slots, columns);
  nb::gil_scoped_release unlocked;
  SparseBuffers<T> buffers(threads, features, right, column_picks.data(), columns);
  const std::int64_t panels = (columns + loops.sparse_panel - 1) / loops.sparse_panel;
  in_parallel(threads, panels, std::max<std::int64_t>(1, std::min<std::int64_t>(8, panels / (4 * std::max(1, threads)))),
              [&](std::int64_t begin, std::int64_t end, int thread) {
                auto& own = buffers.of(thread);
                loops.sparse[term](formula, left, row_picks.data(), count, right, column_picks.data(),
                                   begin * loops.sparse_panel, std::min(columns, end * loops.sparse_panel),
                                   row_alone.data(), column_alone.data(), own.line.data(), own.table.data(), targets.data());
              });
}

template <class T>
void sparse_combination(int term, int function, double gamma, double coef0, int degree,
                        Vector<const std::int64_t> row_starts, Vector<const std::int32_t> row_features,
                        Vector<const T> row_values, Vector<const std::int64_t> row_picks, Vector<const T> row_alone,
                        Vector<const std::int64_t> column_starts, Vector<const std::int32_t> column_features,
                        Vector<const T> column_values, Vector<const std::int64_t> column_picks,
                        Vector<const T> column_alone, std::int64_t features, Vector<const T> weights,
                        Vector<double> out, int threads) {
  const auto& loops = block_loops<T>();
  const Formula formula = formula_of(term, function, gamma, coef0, degree);
  require(formula.function != Function::gaussian_of_product, "this formula is for dense samples");
  const std::int64_t count = row_picks.shape(0), columns = column_picks.shape(0);
  require(out.shape(0) == row_picks.shape(0) && row_alone.shape(0) == row_picks.shape(0) &&
              column_alone.shape(0) == column_picks.shape(0),
          "the rows of a sparse combination are malformed");
  require(static_cast<std::int64_t>(weights.shape(0)) >= (columns + loops.sparse_panel - 1) / loops.sparse_panel * loops.sparse_panel,
          "the weights must be padded to whole panels");
  const SparseRows<T> left = checked<T>(row_starts, row_features, row_values, row_picks, features);
  const SparseRows<T> right = checked<T>(column_starts, column_features, column_values, column_picks, features);
  nb::gil_scoped_release unlocked;
  SparseBuffers<T> buffers(threads, features, right, column_picks.data(), columns);
  in_parallel(threads, count, std::max<std::int64_t>(256, std::min<std::int64_t>(4096, count / (4 * std::max(1, threads)))),
              [&](std::int64_t begin, std::int64_t end, int thread) {
                auto& own = buffers.of(thread);
                loops.sparse_combination[term](formula, left, row_picks.data(), begin, end, right, column_picks.data(),
                                               columns, row_alone.data(), column_alone.data(), own.line.data(),
                                               own.table.data(), weights.data(), out.data());
              });
}

// How many values of each row are not 0.
void count_stored(Table<const double> data, Vector<std::int64_t> counts, int threads) {
  require(counts.shape(0) == data.shape(0), "there must be one count for every row");
  const std::int64_t features = data.shape(1);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, data.shape(0), 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const double* x = data.data() + r * features;
      std::int64_t stored = 0;
      for (std::int64_t k = 0; k < features; ++k) stored += x[k] != 0.0;
      counts.data()[r] = stored;
    }
  });
}

// The values of each row that are not 0, from starts[row] on, in single precision.
void compress(Table<const double> data, Vector<const std::int64_t> starts, Vector<std::int32_t> features,
              Vector<float> values, int threads) {
  const std::int64_t rows = data.shape(0), width = data.shape(1);
  require(static_cast<std::int64_t>(starts.shape(0)) == rows + 1 && features.shape(0) == values.shape(0) &&
              starts.data()[0] == 0 && starts.data()[rows] == static_cast<std::int64_t>(values.shape(0)),
          "the room for compressed rows is malformed");
  for (std::int64_t r = 0; r < rows; ++r) require(starts.data()[r] <= starts.data()[r + 1], "the starts must ascend");
  nb::gil_scoped_release unlocked;
  in_parallel(threads, rows, 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t at = starts.data()[r];
      for (std::int64_t k = 0; k < width && at < starts.data()[r + 1]; ++k) {
        const double x = data.data()[r * width + k];
        features.data()[at] = static_cast<std::int32_t>(k);
        values.data()[at] = static_cast<float>(x);
        at += x != 0.0;
      }
    }
  });
}

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
  in_parallel(threads, count, std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(1, width)), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k)
      for (std::int64_t c = 0; c < width; ++c) out.data()[k * width + c] = rows[k][columns.data()[c]];
  });
}

// table[r][c] = table[c][r] for the first rows and the columns behind as many.
void mirror(Table<float> table, std::int64_t first, int threads) {
  const std::int64_t size = table.shape(0);
  require(static_cast<std::int64_t>(table.shape(1)) == size && 0 <= first && first <= size, "the table has the wrong shape");
  constexpr std::int64_t side = 32;  // a square that is read along one side and written along the other, in cache
  nb::gil_scoped_release unlocked;
  in_parallel(threads, first, 2 * side, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; row += side)
      for (std::int64_t column = first; column < size; column += side)
        for (std::int64_t r = row; r < std::min(row + side, end); ++r)
          for (std::int64_t c = column; c < std::min(column + side, size); ++c)
            table.data()[r * size + c] = table.data()[c * size + r];
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
  DualState state{dual.data(),  gradient.data(), lower.data(), upper.data(), diagonal.data(), ridge.data(),
                  group.data(), bounded_part.shape(0) ? bounded_part.data() : nullptr,
                  static_cast<std::int64_t>(n), active, groups, singles};
  RowStore<Value> rows{storage.data(), static_cast<std::int64_t>(storage.shape(1)), slot.data(), length.data(), last_use.data(), clock, 0};
  std::int64_t* m = memory.data();
  Outcome out;
  {
    nb::gil_scoped_release unlocked;
    std::vector<Extreme> extremes(groups + 1);
    SelectionMemory selection{static_cast<Rule>(rule), m[0], m[1], m[2], m[3], violation, extremes.data()};
    if constexpr (sizeof(Value) == 4) {
      if (groups == 1 && singles == 0 && selection.rule == Rule::second_order && !state.bounded_part) {
        std::vector<float> room(3 * n);
        out = level.solvers->one_group(state, rows, room.data(), tolerance, max_steps, max_seconds);
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
  return {static_cast<int>(out.reason), out.steps, out.row, out.length, out.violation, out.gain, rows.clock, rows.requests};
}

template <class T> void define_blocks(nb::module_& m) {
  // No array is ever converted: a copy would be written to and lost.
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("pack", &pack<T>, exact("data"), exact("picks"), nb::arg("width"), exact("shift"), exact("out"),
        exact("half_norms"), nb::arg("threads"));
  m.def("dense_block", &dense_block<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"), nb::arg("coef0"),
        nb::arg("degree"), exact("rows"), exact("row_norms"), exact("columns"), exact("column_norms"),
        nb::arg("column_count"), nb::arg("features"), exact("out"), exact("slots"), nb::arg("threads"));
  m.def("dense_combination", &dense_combination<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"),
        nb::arg("coef0"), nb::arg("degree"), exact("rows"), exact("row_norms"), exact("columns"), exact("column_norms"),
        nb::arg("features"), exact("weights"), exact("out"), nb::arg("threads"));
  m.def("sparse_alone", &sparse_alone<T>, nb::arg("term"), exact("starts"), exact("features"), exact("values"),
        exact("picks"), nb::arg("count"), exact("out"));
  m.def("sparse_block", &sparse_block<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"), nb::arg("coef0"),
        nb::arg("degree"), exact("row_starts"), exact("row_features"), exact("row_values"), exact("row_picks"),
        exact("row_alone"), exact("column_starts"), exact("column_features"), exact("column_values"),
        exact("column_picks"), exact("column_alone"), nb::arg("features"), exact("out"), exact("slots"),
        nb::arg("threads"));
  m.def("sparse_combination", &sparse_combination<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"),
        nb::arg("coef0"), nb::arg("degree"), exact("row_starts"), exact("row_features"), exact("row_values"),
        exact("row_picks"), exact("row_alone"), exact("column_starts"), exact("column_features"),
        exact("column_values"), exact("column_picks"), exact("column_alone"), nb::arg("features"), exact("weights"),
        exact("out"), nb::arg("threads"));
  m.def("pairwise_steps", &pairwise_steps<T>, exact("dual"), exact("gradient"), exact("lower"), exact("upper"),
        exact("diagonal"), exact("ridge"), exact("group"), exact("bounded_part"), nb::arg("active"), nb::arg("groups"),
        nb::arg("singles"), exact("storage"), exact("slot"), exact("length"), exact("last_use"), nb::arg("clock"),
        nb::arg("rule"), exact("memory"), nb::arg("violation"), nb::arg("tolerance"), nb::arg("max_steps"),
        nb::arg("max_seconds"));
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Hot loops of maxmargin: flat arrays in, flat arrays and counters out.";
  m.attr("level") = level.name;  // the instruction set in use
  m.attr("strip") = level.kernels->in_single.strip;  // rows and columns that are packed side by side
  m.attr("single_panel") = level.kernels->in_single.panel;
  m.attr("sparse_panel") = level.kernels->in_single.sparse_panel;  // weights are padded to a multiple of it
  m.attr("double_panel") = level.kernels->in_double.panel;
  define_blocks<float>(m);
  define_blocks<double>(m);
  m.def("count_stored", &count_stored, nb::arg("data").noconvert(), nb::arg("counts").noconvert(), nb::arg("threads"));
  m.def("compress", &compress, nb::arg("data").noconvert(), nb::arg("starts").noconvert(),
        nb::arg("features").noconvert(), nb::arg("values").noconvert(), nb::arg("threads"));
  m.def("gather", &gather, nb::arg("storage").noconvert(), nb::arg("slots").noconvert(), nb::arg("columns").noconvert(),
        nb::arg("out").noconvert(), nb::arg("threads"));
  m.def("mirror", &mirror, nb::arg("table").noconvert(), nb::arg("first"), nb::arg("threads"));
  m.def("subtract_rows", &subtract_rows, nb::arg("gradient").noconvert(), nb::arg("storage").noconvert(),
        nb::arg("slots").noconvert(), nb::arg("change").noconvert(), nb::arg("count"), nb::arg("threads"));
}
