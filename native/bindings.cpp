// The module, and what computes kernel values: checks shapes, releases the interpreter lock, calls the loops.
#include <cstdlib>
#include <string>
#include <tuple>
#include <type_traits>

#include "bindings.hpp"

using namespace maxmargin;

// The widest usable instruction set, chosen once at import. The variable MAXMARGIN_LEVEL asks for a narrower one: for
// tests and for comparing speeds.
static Level choose_level() {
  const std::vector<Level> usable = usable_levels();
  const char* wish = std::getenv("MAXMARGIN_LEVEL");
  for (const Level& level : usable)
    if (wish && std::string(wish) == level.name) return level;
  return usable.back();
}

const Level maxmargin::level = choose_level();

namespace {

template <class T> const BlockLoops<T>& block_loops() {
  if constexpr (sizeof(T) == 4)
    return level.kernels->in_single;
  else
    return level.kernels->in_double;
}

Formula formula_of(int term, int function, double gamma, double coef0, int degree) {
  require(term >= 0 && term <= 3 && function >= 0 && function <= 4 && degree >= 0, "unknown kernel formula");
  return {static_cast<Term>(term), static_cast<Function>(function), gamma, coef0, degree};
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
    block_loops<T>().pack(data.data(), picks.data() + begin * width, std::min(count, end * width) - begin * width,
                          features, width, centre, out.data() + begin * width * features,
                          half_norms.data() + begin * width);
  });
}

template <class T>
PackedSamples<T> packed(Vector<const T> values, Vector<const T> norms, std::int64_t count, std::int64_t features,
                        int width) {
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
  in_parallel(threads, panels,
              std::max<std::int64_t>(1, std::min<std::int64_t>(32, panels / (4 * std::max(1, threads)))),
              [&](std::int64_t begin, std::int64_t end, int) {
                loops.dense[term](formula, left, right, features, begin, end, targets.data());
              });
}

// out[r][c] for rows and columns that are the same samples: `rows` are packed in strips, `columns` in panels.
template <class T>
void dense_square(int term, int function, double gamma, double coef0, int degree, Vector<const T> rows,
                  Vector<const T> row_norms, Vector<const T> columns, Vector<const T> column_norms,
                  std::int64_t features, Table<T> out, Vector<const std::int64_t> slots, int threads) {
  const auto& loops = block_loops<T>();
  const Formula formula = formula_of(term, function, gamma, coef0, degree);
  const std::int64_t count = slots.shape(0), panels = (count + loops.panel - 1) / loops.panel;
  const PackedSamples<T> left = packed<T>(rows, row_norms, count, features, loops.strip);
  const PackedSamples<T> right = packed<T>(columns, column_norms, count, features, loops.panel);
  const std::vector<T*> targets = row_pointers<T>(out, slots, count);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, panels, 4, [&](std::int64_t begin, std::int64_t end, int) {
    loops.dense_square[term](formula, left, right, features, begin, end, targets.data());
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
    for (std::int64_t p = begin; p < end; ++p)
      inside &= static_cast<std::uint32_t>(features.data()[p]) < static_cast<std::uint64_t>(count);
    require(inside, "a feature index is out of range");
  }
  return {starts.data(), features.data(), values.data()};
}

// What each thread needs to spread panels of sparse columns.
template <class T> class SparseBuffers {
 public:
  struct Own {
    std::vector<std::int32_t> line;
    std::vector<T> room;
    T* table;
  };

  SparseBuffers(int threads, std::int64_t features, const SparseRows<T>& columns, const std::int64_t* picks,
                std::int64_t count)
      : own_(std::max(1, threads)) {
    const std::int64_t panel = block_loops<T>().sparse_panel;
    std::int64_t most = 0;  // stored values of the fullest panel
    for (std::int64_t at = 0; at < count; at += panel) {
      std::int64_t sum = 0;
      for (std::int64_t c = at; c < std::min(count, at + panel); ++c)
        sum += columns.starts[picks[c] + 1] - columns.starts[picks[c]];
      most = std::max(most, sum);
    }
    for (Own& own : own_) {  // before any thread starts, where running out of memory is an ordinary error
      own.line.assign(features + 1, 0);
      constexpr std::size_t edge = 64;  // of a cache line: a vector that lies across two takes twice as long to load
      own.room.resize((1 + std::min(most, features)) * panel + edge / sizeof(T));
      own.table = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(own.room.data()) + edge - 1) / edge * edge);
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
  const auto chunk_of = [threads](std::int64_t pieces, std::int64_t most) {
    return std::max<std::int64_t>(1, std::min<std::int64_t>(most, pieces / (4 * std::max(1, threads))));
  };
  const std::int64_t panels = (columns + loops.sparse_panel - 1) / loops.sparse_panel;
  if (left.values == right.values && count == columns &&
      std::equal(row_picks.data(), row_picks.data() + count, column_picks.data())) {
    SparseBuffers<T> buffers(threads, features, right, column_picks.data(), columns);
    in_parallel(threads, panels, chunk_of(panels, 8), [&](std::int64_t begin, std::int64_t end, int thread) {
      auto& own = buffers.of(thread);
      loops.sparse_square[term](formula, left, row_picks.data(), count, begin * loops.sparse_panel,
                                std::min(columns, end * loops.sparse_panel), row_alone.data(), own.line.data(),
                                own.table, targets.data());
    });
  } else if (count < columns && count <= 4 * loops.sparse_panel) {  // few rows are spread sooner than many columns
    SparseBuffers<T> buffers(threads, features, left, row_picks.data(), count);
    in_parallel(threads, columns, std::max<std::int64_t>(512, chunk_of(columns, columns)),
                [&](std::int64_t begin, std::int64_t end, int thread) {
                  auto& own = buffers.of(thread);
                  loops.sparse_turned[term](formula, left, row_picks.data(), count, right, column_picks.data(), begin,
                                            end, row_alone.data(), column_alone.data(), own.line.data(), own.table,
                                            targets.data());
                });
  } else {
    SparseBuffers<T> buffers(threads, features, right, column_picks.data(), columns);
    in_parallel(threads, panels, chunk_of(panels, 8), [&](std::int64_t begin, std::int64_t end, int thread) {
      auto& own = buffers.of(thread);
      loops.sparse[term](formula, left, row_picks.data(), count, right, column_picks.data(), begin * loops.sparse_panel,
                         std::min(columns, end * loops.sparse_panel), row_alone.data(), column_alone.data(),
                         own.line.data(), own.table, targets.data());
    });
  }
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
  require(static_cast<std::int64_t>(weights.shape(0)) >=
              (columns + loops.sparse_panel - 1) / loops.sparse_panel * loops.sparse_panel,
          "the weights must be padded to whole panels");
  const SparseRows<T> left = checked<T>(row_starts, row_features, row_values, row_picks, features);
  const SparseRows<T> right = checked<T>(column_starts, column_features, column_values, column_picks, features);
  nb::gil_scoped_release unlocked;
  SparseBuffers<T> buffers(threads, features, right, column_picks.data(), columns);
  in_parallel(threads, count,
              std::max<std::int64_t>(256, std::min<std::int64_t>(4096, count / (4 * std::max(1, threads)))),
              [&](std::int64_t begin, std::int64_t end, int thread) {
                auto& own = buffers.of(thread);
                loops.sparse_combination[term](formula, left, row_picks.data(), begin, end, right, column_picks.data(),
                                               columns, row_alone.data(), column_alone.data(), own.line.data(),
                                               own.table, weights.data(), out.data());
              });
}

// How many values of each row are not 0.
template <class T> void count_stored(Table<const T> data, Vector<std::int64_t> counts, int threads) {
  require(counts.shape(0) == data.shape(0), "there must be one count for every row");
  const std::int64_t features = data.shape(1);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, data.shape(0), 256, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = data.data() + r * features;
      std::int64_t stored = 0;
      for (std::int64_t k = 0; k < features; ++k) stored += x[k] != T(0);
      counts.data()[r] = stored;
    }
  });
}

// The values of each row that are not 0, from starts[row] on, in their own precision or in single.
template <class T, class V>
void compress(Table<const T> data, Vector<const std::int64_t> starts, Vector<std::int32_t> features, Vector<V> values,
              int threads) {
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
        const T x = data.data()[r * width + k];
        features.data()[at] = static_cast<std::int32_t>(k);
        values.data()[at] = static_cast<V>(x);
        at += x != T(0);
      }
    }
  });
}

template <class T> void define_blocks(nb::module_& m) {
  // No array is ever converted: a copy would be written to and lost.
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("pack", &pack<T>, exact("data"), exact("picks"), nb::arg("width"), exact("shift"), exact("out"),
        exact("half_norms"), nb::arg("threads"));
  m.def("dense_block", &dense_block<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"), nb::arg("coef0"),
        nb::arg("degree"), exact("rows"), exact("row_norms"), exact("columns"), exact("column_norms"),
        nb::arg("column_count"), nb::arg("features"), exact("out"), exact("slots"), nb::arg("threads"));
  m.def("dense_square", &dense_square<T>, nb::arg("term"), nb::arg("function"), nb::arg("gamma"), nb::arg("coef0"),
        nb::arg("degree"), exact("rows"), exact("row_norms"), exact("columns"), exact("column_norms"),
        nb::arg("features"), exact("out"), exact("slots"), nb::arg("threads"));
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
}

template <class T, class V> void define_compression(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  if constexpr (std::is_same_v<T, V>)
    m.def("count_stored", &count_stored<T>, exact("data"), exact("counts"), nb::arg("threads"));
  m.def("compress", &compress<T, V>, exact("data"), exact("starts"), exact("features"), exact("values"),
        nb::arg("threads"));
}

}  // namespace

NB_MODULE(_extension, m) {
  m.doc() = "Hot loops of maxmargin: flat arrays in, flat arrays and counters out.";
  m.attr("level") = level.name;                      // the instruction set in use
  m.attr("strip") = level.kernels->in_single.strip;  // rows and columns that are packed side by side
  m.attr("single_panel") = level.kernels->in_single.panel;
  m.attr("sparse_panel") = level.kernels->in_single.sparse_panel;  // weights are padded to a multiple of it
  m.attr("double_panel") = level.kernels->in_double.panel;
  define_blocks<float>(m);
  define_blocks<double>(m);
  define_compression<double, float>(m);
  define_compression<double, double>(m);
  define_compression<float, float>(m);
  define_solvers(m);
  define_linear(m);
  define_primal(m);
  define_online(m);
  define_text(m);
}
