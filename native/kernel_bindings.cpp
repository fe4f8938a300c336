// Bindings of the loops that compute blocks of kernel values: check arguments, release the interpreter lock, call the
// loops.
#include "kernel_arguments.hpp"

namespace maxmargin {
namespace {

template <class T> const BlockLoops<T>& block_loops() {
  if constexpr (sizeof(T) == 4)
    return level.kernels->in_single;
  else
    return level.kernels->in_double;
}

// The number of pieces that a thread takes at a time: about four turns for every thread, but at most `most` pieces.
std::int64_t chunk_of(std::int64_t pieces, int threads, std::int64_t most) {
  return std::max<std::int64_t>(1, std::min(most, pieces / (4 * std::max(1, threads))));
}

// Some rows of a compressed sparse matrix, in float32 or float64, and the sum Σ_k term(x_k, 0) of each.
struct SparseSamples {
  Vector<const std::int64_t> starts;
  Vector<const std::int32_t> features;
  AnyVector values;
  Vector<const std::int64_t> indices;  // the rows
  std::int64_t width;                  // the number of features
  AnyVector separate_sums;             // one for each index; may be absent while they are computed

  std::int64_t count() const { return length(indices); }

  void check() const {
    require(has_type<float>(values.dtype()) || has_type<double>(values.dtype()),
            "sparse samples must be float32 or float64");
    require(length(starts) > 0 && length(features) == length(values) && width >= 0, "the sparse rows are malformed");
    require(!separate_sums.is_valid() || (separate_sums.dtype() == values.dtype() && length(separate_sums) == count()),
            "there must be one separate sum for every sample, of the type of the values");
  }

  void add_to(Memory& memory) const {
    memory.reads("starts", starts).reads("features", features).reads("values", values).reads("indices", indices);
    memory.reads("separate_sums", separate_sums);
  }

  // The checked rows. The check reads every index, so it is divided among threads, without the interpreter lock.
  template <class T> SparseRows<T> rows(int threads) const {
    require(has_type<T>(values.dtype()), "sparse samples and the output must have the same precision");
    const std::int64_t stored = length(features);
    require_within(indices, length(starts) - 1);
    in_parallel(threads, count(), 1024, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t begin = starts.data()[indices.data()[k]], end = starts.data()[indices.data()[k] + 1];
        require(0 <= begin && begin <= end && end <= stored, "the sparse rows are malformed");
        bool inside = true;  // negative ones are large as unsigned numbers
        for (std::int64_t p = begin; p < end; ++p)
          inside &= static_cast<std::uint32_t>(features.data()[p]) < static_cast<std::uint64_t>(width);
        require(inside, "a feature index is out of range");
      }
    });
    return {starts.data(),  features.data(), as<T>(values),
            indices.data(), count(),         separate_sums.is_valid() ? as<T>(separate_sums) : nullptr};
  }
};

// Interleave samples [begin, end) of some rows of an array in float32 or float64.
template <class T, class Source>
void pack_some(const Table<const Source>& data, const std::int64_t* indices, std::int64_t begin, std::int64_t end,
               int width, const double* shift, T* out, T* half_norms) {
  const std::int64_t features = length(data, 1);
  if constexpr (sizeof(Source) == 4)
    block_loops<T>().pack_single(data.data(), indices + begin, end - begin, features, width, shift, out, half_norms);
  else
    block_loops<T>().pack(data.data(), indices + begin, end - begin, features, width, shift, out, half_norms);
}

template <class T, class Source>
void pack(Table<const Source> data, Vector<const std::int64_t> indices, int width, Vector<const double> shift,
          Vector<T> out, Vector<T> half_norms, int threads) {
  const std::int64_t count = length(indices), features = length(data, 1);
  require(width > 0, "width is out of range");
  const std::int64_t groups = (count + width - 1) / width;
  require(length(out) >= groups * width * features && length(half_norms) >= groups * width,
          "the packed samples need more memory");
  require(shift.shape(0) == 0 || length(shift) == features, "shift has the wrong length");
  require_within(indices, length(data));
  Memory()
      .reads("data", data)
      .reads("indices", indices)
      .reads("shift", shift)
      .writes("out", out)
      .writes("half_norms", half_norms)
      .require_disjoint();
  const double* centre = shift.shape(0) ? shift.data() : nullptr;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, groups, chunk_of(groups, threads, 64), [&](std::int64_t begin, std::int64_t end, int) {
    pack_some<T>(data, indices.data(), begin * width, std::min(count, end * width), width, centre,
                 out.data() + begin * width * features, half_norms.data() + begin * width);
  });
}

// out[slots[r]][c] = the kernel value of row r and column c; `rows` are packed in strips, `columns` in panels.
template <class T>
void dense_block(const FormulaArguments& formula, const PackedArrays& rows, const PackedArrays& columns, Table<T> out,
                 Vector<const std::int64_t> slots, int threads) {
  const auto& loops = block_loops<T>();
  require(rows.count == length(slots), "there must be one slot for every row");
  require(rows.features == columns.features, "rows and columns must have the same features");
  const PackedSamples<T> left = rows.in_groups_of<T>(loops.strip), right = columns.in_groups_of<T>(loops.panel);
  const std::vector<T*> targets = row_pointers<T>(out, slots, columns.count);
  Memory().of(rows, columns).reads("slots", slots).writes("out", out).require_disjoint();
  const std::int64_t panels = (columns.count + loops.panel - 1) / loops.panel;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, panels, chunk_of(panels, threads, 32), [&](std::int64_t begin, std::int64_t end, int) {
    loops.dense[formula.term](formula, left, right, columns.features, begin, end, targets.data());
  });
}

// The same for rows and columns that are the same samples, whose values are symmetric: those of panels [first, last) of
// columns from the diagonal downwards, and those mirrored at the diagonal.
template <class T>
void dense_square(const FormulaArguments& formula, const PackedArrays& rows, const PackedArrays& columns, Table<T> out,
                  Vector<const std::int64_t> slots, std::int64_t first_panel, std::int64_t last_panel, int threads) {
  const auto& loops = block_loops<T>();
  const std::int64_t count = length(slots), panels = (count + loops.panel - 1) / loops.panel;
  require(rows.count == count && columns.count == count, "there must be one slot for every row and column");
  require(0 <= first_panel && first_panel <= last_panel && last_panel <= panels, "the panels are out of range");
  require(rows.features == columns.features, "rows and columns must have the same features");
  const PackedSamples<T> left = rows.in_groups_of<T>(loops.strip), right = columns.in_groups_of<T>(loops.panel);
  const std::vector<T*> targets = row_pointers<T>(out, slots, count);
  Memory().of(rows, columns).reads("slots", slots).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, last_panel - first_panel, 4, [&](std::int64_t begin, std::int64_t end, int) {
    loops.dense_square[formula.term](formula, left, right, columns.features, first_panel + begin, first_panel + end,
                                     targets.data());
  });
}

// out = the function of a kernel, of the sums over features of pairs of samples.
void function_of_sums(const FormulaArguments& formula, Table<const double> sums, Table<double> out, int threads) {
  require(length(out) == length(sums) && length(out, 1) == length(sums, 1), "there must be a value for each sum");
  Memory().reads("sums", sums).writes("out", out).require_disjoint();
  const std::int64_t columns = length(sums, 1);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, length(sums), 16, [&](std::int64_t begin, std::int64_t end, int) {
    level.kernels->function_of_sums(formula, sums.data() + begin * columns, (end - begin) * columns,
                                    out.data() + begin * columns);
  });
}

// out[k] = the kernel value of sample indices[k] with itself.
void dense_diagonal(const FormulaArguments& formula, Table<const double> data, Vector<const std::int64_t> indices,
                    Vector<double> out) {
  const std::int64_t count = length(indices);
  require(length(out) == count, "there must be one output for every sample");
  require_within(indices, length(data));
  Memory().reads("data", data).reads("indices", indices).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  block_loops<double>().dense_diagonal[formula.term](formula, data.data(), indices.data(), count, length(data, 1),
                                                     out.data());
}

// out[r] = Σ_c k(row r, column c) weights[c]. Each thread packs the rows of a few strips at a time, which then are in
// its cache: all of them in memory would have to be written and read.
template <class T, class Source>
void dense_combination(const FormulaArguments& formula, Table<const Source> data, Vector<const std::int64_t> indices,
                       Vector<const double> shift, const PackedArrays& columns, Vector<const T> weights,
                       Vector<double> out, int threads) {
  constexpr std::int64_t strips_at_once = 8;
  const auto& loops = block_loops<T>();
  const std::int64_t count = length(indices), features = length(data, 1), rows_at_once = strips_at_once * loops.strip;
  require(count == length(out), "there must be one output for every row");
  require(features == columns.features, "rows and columns must have the same features");
  require(shift.shape(0) == 0 || length(shift) == features, "shift has the wrong length");
  require_within(indices, length(data));
  const PackedSamples<T> right = columns.in_groups_of<T>(loops.panel);
  require(length(weights) == (columns.count + loops.panel - 1) / loops.panel * loops.panel,
          "the weights must be padded to whole panels");
  Memory()
      .of(columns)
      .reads("data", data)
      .reads("indices", indices)
      .reads("shift", shift)
      .reads("weights", weights)
      .writes("out", out)
      .require_disjoint();
  const double* centre = shift.shape(0) ? shift.data() : nullptr;
  nb::gil_scoped_release unlocked;
  std::vector<std::vector<T>> buffers(std::max(1, threads));
  in_parallel(threads, count, rows_at_once, [&](std::int64_t begin, std::int64_t end, int thread) {
    std::vector<T>& packed = buffers[thread];
    packed.resize(rows_at_once * (features + 1));  // values, and a half norm for each
    T *values = packed.data(), *norms = values + rows_at_once * features;
    pack_some<T>(data, indices.data(), begin, end, loops.strip, centre, values, norms);
    loops.combination[formula.term](formula, {values, norms, end - begin}, right, features, 0,
                                    (end - begin + loops.strip - 1) / loops.strip, weights.data(), out.data() + begin);
  });
}

// The workspaces of threads that expand panels of sparse samples.
template <class T> class SparseBuffers {
 public:
  SparseBuffers(int threads, std::int64_t features, const SparseRows<T>& samples) : buffers_(std::max(1, threads)) {
    const std::int64_t panel = block_loops<T>().sparse_panel;
    std::int64_t most = 0;  // stored values of a panel
    for (std::int64_t at = 0; at < samples.count; at += panel) {
      std::int64_t sum = 0;
      for (std::int64_t c = at; c < std::min(samples.count, at + panel); ++c)
        sum += samples.starts[samples.indices[c] + 1] - samples.starts[samples.indices[c]];
      most = std::max(most, sum);
    }
    for (Buffer& buffer : buffers_) {
      constexpr std::size_t line = 64;  // of the cache: a vector across two lines takes twice as long to load
      buffer.rows.assign(features + 1, 0);
      buffer.values.resize((1 + std::min(most, features)) * panel + line / sizeof(T));
      const auto start = (reinterpret_cast<std::uintptr_t>(buffer.values.data()) + line - 1) / line * line;
      buffer.workspace = {buffer.rows.data(), reinterpret_cast<T*>(start)};
    }
  }

  const SparseWorkspace<T>& of(int thread) const { return buffers_[thread].workspace; }

 private:
  struct Buffer {
    std::vector<std::int32_t> rows;
    std::vector<T> values;
    SparseWorkspace<T> workspace;
  };
  std::vector<Buffer> buffers_;
};

// out[r] = Σ_k term(x_k, 0) of each sample x
template <class T> void sparse_separate_sums(int term, const SparseSamples& samples, Vector<T> out) {
  require(term >= 0 && term <= 3, "unknown kernel formula");
  require(length(out) == samples.count(), "there must be one output for every sample");
  Memory().of(samples).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  const SparseRows<T> rows = samples.rows<T>(1);
  block_loops<T>().separate_sums[term](rows, out.data());
}

void check_pair(const FormulaArguments& formula, const SparseSamples& rows, const SparseSamples& columns) {
  require(static_cast<Function>(formula.function) != Function::gaussian_of_product,
          "this formula is for dense samples");
  require(rows.width == columns.width, "rows and columns must have the same features");
  require(rows.separate_sums.is_valid() && columns.separate_sums.is_valid(), "the separate sums must be given");
}

// out[r] = the kernel value of each sample with itself.
void sparse_diagonal(const FormulaArguments& formula, const SparseSamples& samples, Vector<double> out) {
  check_pair(formula, samples, samples);
  require(length(out) == samples.count(), "there must be one output for every sample");
  const SparseRows<double> rows = samples.rows<double>(1);
  Memory().of(samples).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  block_loops<double>().sparse_diagonal[formula.term](formula, rows, out.data());
}

// out[slots[r]][c] = the kernel value of row r and column c.
template <class T>
void sparse_block(const FormulaArguments& formula, const SparseSamples& rows, const SparseSamples& columns,
                  Table<T> out, Vector<const std::int64_t> slots, int threads) {
  const auto& loops = block_loops<T>();
  check_pair(formula, rows, columns);
  const std::int64_t count = rows.count(), width = columns.count(), panel = loops.sparse_panel;
  require(length(slots) == count, "there must be one slot for every row");
  const std::vector<T*> targets = row_pointers<T>(out, slots, width);
  Memory().of(rows, columns).reads("slots", slots).writes("out", out).require_disjoint();
  const int term = formula.term;
  nb::gil_scoped_release unlocked;
  const SparseRows<T> left = rows.rows<T>(threads), right = columns.rows<T>(threads);
  const bool same =
      left.values == right.values && count == width && std::equal(left.indices, left.indices + count, right.indices);
  if (!same && count < width && count <= 4 * panel) {  // few rows take less time to expand than many columns
    const SparseBuffers<T> buffers(threads, rows.width, left);
    const std::int64_t chunk = std::max<std::int64_t>(512, chunk_of(width, threads, width));
    in_parallel(threads, width, chunk, [&](std::int64_t begin, std::int64_t end, int thread) {
      loops.sparse_transposed[term](formula, left, right, begin, end, buffers.of(thread), targets.data());
    });
    return;
  }
  const SparseBuffers<T> buffers(threads, columns.width, right);
  const std::int64_t panels = (width + panel - 1) / panel;
  in_parallel(threads, panels, chunk_of(panels, threads, 8), [&](std::int64_t begin, std::int64_t end, int thread) {
    const std::int64_t first = begin * panel, last = std::min(width, end * panel);
    if (same)
      loops.sparse_square[term](formula, left, first, last, buffers.of(thread), targets.data());
    else
      loops.sparse[term](formula, left, right, first, last, buffers.of(thread), targets.data());
  });
}

// out[r] = Σ_c k(row r, column c) weights[c]
template <class T>
void sparse_combination(const FormulaArguments& formula, const SparseSamples& rows, const SparseSamples& columns,
                        Vector<const T> weights, Vector<double> out, int threads) {
  const auto& loops = block_loops<T>();
  check_pair(formula, rows, columns);
  const std::int64_t count = rows.count(), width = columns.count(), panel = loops.sparse_panel;
  require(length(out) == count, "there must be one output for every row");
  require(length(weights) >= (width + panel - 1) / panel * panel, "the weights must be padded to whole panels");
  Memory().of(rows, columns).reads("weights", weights).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  const SparseRows<T> left = rows.rows<T>(threads), right = columns.rows<T>(threads);
  const SparseBuffers<T> buffers(threads, columns.width, right);
  const std::int64_t chunk = std::max<std::int64_t>(256, chunk_of(count, threads, 4096));
  in_parallel(threads, count, chunk, [&](std::int64_t begin, std::int64_t end, int thread) {
    loops.sparse_combination[formula.term](formula, left, right, begin, end, buffers.of(thread), weights.data(),
                                           out.data());
  });
}

template <class T, class Source> void define_packing(nb::module_& m) {
  m.def("pack", &pack<T, Source>, exact("data"), exact("indices"), nb::arg("width"), exact("shift"), exact("out"),
        exact("half_norms"), nb::arg("threads"));
  m.def("dense_combination", &dense_combination<T, Source>, nb::arg("formula"), exact("data"), exact("indices"),
        exact("shift"), nb::arg("columns"), exact("weights"), exact("out"), nb::arg("threads"));
}

template <class T> void define_blocks(nb::module_& m) {
  define_packing<T, double>(m);
  define_packing<T, float>(m);
  m.def("dense_block", &dense_block<T>, nb::arg("formula"), nb::arg("rows"), nb::arg("columns"), exact("out"),
        exact("slots"), nb::arg("threads"));
  m.def("dense_square", &dense_square<T>, nb::arg("formula"), nb::arg("rows"), nb::arg("columns"), exact("out"),
        exact("slots"), nb::arg("first_panel"), nb::arg("last_panel"), nb::arg("threads"));
  m.def("sparse_separate_sums", &sparse_separate_sums<T>, nb::arg("term"), nb::arg("samples"), exact("out"));
  m.def("sparse_block", &sparse_block<T>, nb::arg("formula"), nb::arg("rows"), nb::arg("columns"), exact("out"),
        exact("slots"), nb::arg("threads"));
  m.def("sparse_combination", &sparse_combination<T>, nb::arg("formula"), nb::arg("rows"), nb::arg("columns"),
        exact("weights"), exact("out"), nb::arg("threads"));
}

}  // namespace

void define_kernels(nb::module_& m) {
  define_arguments<FormulaArguments, int, int, double, double, int>(
      m, "Formula", nb::arg("term"), nb::arg("function"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"));
  define_arguments<PackedArrays, AnyVector, AnyVector, std::int64_t, std::int64_t>(
      m, "PackedSamples", exact("values"), exact("half_norms"), nb::arg("count"), nb::arg("features"));
  define_arguments<SparseSamples, Vector<const std::int64_t>, Vector<const std::int32_t>, AnyVector,
                   Vector<const std::int64_t>, std::int64_t, AnyVector>(
      m, "SparseSamples", exact("starts"), exact("features"), exact("values"), exact("indices"), nb::arg("width"),
      optional("separate_sums"));
  m.def("function_of_sums", &function_of_sums, nb::arg("formula"), exact("sums"), exact("out"), nb::arg("threads"));
  m.def("dense_diagonal", &dense_diagonal, nb::arg("formula"), exact("data"), exact("indices"), exact("out"));
  m.def("sparse_diagonal", &sparse_diagonal, nb::arg("formula"), nb::arg("samples"), exact("out"));
  define_blocks<float>(m);
  define_blocks<double>(m);
}

}  // namespace maxmargin
