// Bindings of the reader and the writer of LIBSVM's text format.
#include <memory>

#include "bindings.hpp"
#include "libsvm_text.hpp"

namespace maxmargin {
namespace {

constexpr std::int64_t kSmallestChunk = std::int64_t{1} << 17;

const char* checked_text(Vector<const std::uint8_t> text, std::int64_t size) {
  require(size >= 0 && size + kTextPadding <= length(text), "the text is too short");
  const char* begin = reinterpret_cast<const char*>(text.data());
  for (std::int64_t k = 0; k < kTextPadding; ++k) require(begin[size + k] == '\n', "line ends must follow the text");
  return begin;
}

// Divide a text into chunks of lines, and write the end and the numbers of lines and colons of each into a row of the
// table. Returns the number of chunks.
std::int64_t count_text(Vector<const std::uint8_t> text, std::int64_t size, Table<std::int64_t> chunks, int threads) {
  const char* begin = checked_text(text, size);
  const std::int64_t most = length(chunks);
  require(most > 0 && length(chunks, 1) == 3, "the table of chunks is malformed");
  Memory().reads("text", text).writes("chunks", chunks).require_disjoint();
  std::int64_t* rows = chunks.data();
  std::int64_t count = 0;
  nb::gil_scoped_release unlocked;
  const std::int64_t step = std::max(kSmallestChunk, (size + most - 1) / most);
  for (std::int64_t at = 0; at < size; ++count) {
    std::int64_t end = std::min(size, at + step);
    if (end < size) end = std::min<std::int64_t>(size, line_end(begin + end - 1) + 1 - begin);
    rows[3 * count] = at = end;
  }
  in_parallel(threads, count, 1, [&](std::int64_t k, std::int64_t, int) {
    const Counts counts = count_lines(begin + (k ? rows[3 * k - 3] : 0), begin + rows[3 * k]);
    rows[3 * k + 1] = counts.lines + (begin[rows[3 * k] - 1] != '\n');
    rows[3 * k + 2] = counts.colons;
  });
  return count;
}

// The format that a reader expects.
struct TextRuleArguments {
  std::int64_t base;   // the index of the first feature
  bool zero_allowed;   // whether an index may be 0 nevertheless
  std::int64_t limit;  // the largest index
  bool has_queries;    // whether every line has a qid, or none has

  void check() const { require(base == 0 || base == 1, "the index of the first feature must be 0 or 1"); }
};

// The arrays that samples are read to, from row `row` and value `stored` on. Values are float32 or float64, features
// int32 or int64; empty queries are not read.
struct TextArrays {
  Vector<double> labels;
  Vector<std::int64_t> starts, queries;
  nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu> features, values;
  std::int64_t row, stored;

  void check() const {
    require(has_type<std::int32_t>(features.dtype()) || has_type<std::int64_t>(features.dtype()),
            "features must be int32 or int64");
    require(has_type<float>(values.dtype()) || has_type<double>(values.dtype()), "values must be float32 or float64");
    require(row >= 0 && stored >= 0, "row and stored must not be negative");
  }

  void add_to(Memory& memory) const {
    memory.writes("labels", labels).writes("starts", starts).writes("queries", queries);
    memory.writes("features", features).writes("values", values);
  }

  void require_capacity(std::int64_t rows, std::int64_t values_end) const {
    require(rows <= length(labels) && rows + 1 <= length(starts) && (!given(queries) || rows <= length(queries)) &&
                values_end <= length(features) && values_end <= length(values),
            "the arrays are too short for the rows of the text");
  }
};

// Lines are given by the offset of their first character, −1 for none.
struct TextResult {
  int status;         // 0: good, 1: bad line, 2: an index does not fit into the type of the features
  std::int64_t line;  // where reading stopped
  std::int64_t rows, stored;
  std::int64_t largest, largest_line;  // index
  std::int64_t zero_line;              // the first with an index 0
};

// Where each chunk of a text ends, and where its rows and values begin.
struct ChunkLayout {
  std::vector<std::int64_t> ends, rows, values;

  ChunkLayout(const char* begin, std::int64_t text_length, const Table<const std::int64_t>& chunks,
              const TextArrays& target)
      : ends(length(chunks) + 1, 0), rows(length(chunks) + 1, target.row), values(length(chunks) + 1, target.stored) {
    for (std::int64_t k = 0; k < length(chunks); ++k) {
      const std::int64_t* chunk = chunks.data() + 3 * k;
      require(ends[k] < chunk[0] && chunk[0] <= text_length && chunk[1] >= 0 && chunk[2] >= 0 &&
                  (chunk[0] == text_length || begin[chunk[0] - 1] == '\n'),
              "the table of chunks is malformed");
      ends[k + 1] = chunk[0];
      rows[k + 1] = rows[k] + chunk[1];
      values[k + 1] = values[k] + chunk[2];
    }
    target.require_capacity(rows.back(), values.back());
  }
};

template <class Value, class Index>
TextResult read_chunks(const char* begin, const ChunkLayout& at, const TextRules& rules, const TextArrays& target,
                       int threads) {
  const std::int64_t count = static_cast<std::int64_t>(at.ends.size()) - 1;
  const bool with_queries = given(target.queries);
  Index* features = static_cast<Index*>(target.features.data());
  Value* values = static_cast<Value*>(target.values.data());
  std::vector<ChunkResult> found(count);
  ChunkResult all;
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, 1, [&](std::int64_t k, std::int64_t, int) {
    const std::int64_t r = at.rows[k], v = at.values[k];
    found[k] = read_lines<Value, Index>(
        begin + at.ends[k], begin + at.ends[k + 1], rules,
        {target.labels.data() + r, target.starts.data() + r + 1, with_queries ? target.queries.data() + r : nullptr,
         features + v, values + v, at.rows[k + 1] - r, at.values[k + 1] - v});
  });
  for (std::int64_t k = 0; k < count && all.status == TextStatus::good; ++k) {
    const ChunkResult& part = found[k];
    const std::int64_t r = target.row + all.rows, v = target.stored + all.stored;
    if (r != at.rows[k]) {
      std::copy_n(target.labels.data() + at.rows[k], part.rows, target.labels.data() + r);
      std::copy_n(target.starts.data() + at.rows[k] + 1, part.rows, target.starts.data() + r + 1);
      if (with_queries) std::copy_n(target.queries.data() + at.rows[k], part.rows, target.queries.data() + r);
    }
    if (v != at.values[k]) {
      std::copy_n(features + at.values[k], part.stored, features + v);
      std::copy_n(values + at.values[k], part.stored, values + v);
    }
    for (std::int64_t i = 0; i < part.rows; ++i) target.starts.data()[r + 1 + i] += v;
    if (part.largest > all.largest) all.largest = part.largest, all.largest_line = part.largest_line;
    if (!all.zero_line) all.zero_line = part.zero_line;
    all.status = part.status;
    all.line = part.line;
    all.rows += part.rows;
    all.stored += part.stored;
  }
  const auto offset = [&](const char* line) { return line ? line - begin : std::int64_t{-1}; };
  return {static_cast<int>(all.status), offset(all.line),     all.rows, all.stored, all.largest,
          offset(all.largest_line),     offset(all.zero_line)};
}

// Read a text in the given chunks.
TextResult read_text(Vector<const std::uint8_t> text, std::int64_t size, Table<const std::int64_t> chunks,
                     const TextRuleArguments& rules, const TextArrays& target, int threads) {
  const char* begin = checked_text(text, size);
  require(length(chunks, 1) == 3, "the table of chunks is malformed");
  Memory().of(target).reads("text", text).reads("chunks", chunks).require_disjoint();
  const ChunkLayout layout(begin, size, chunks, target);
  const TextRules checked{rules.base, rules.zero_allowed, rules.limit, rules.has_queries};
  const auto read = [&](auto value) {
    using Value = decltype(value);
    if (has_type<std::int32_t>(target.features.dtype()))
      return read_chunks<Value, std::int32_t>(begin, layout, checked, target, threads);
    return read_chunks<Value, std::int64_t>(begin, layout, checked, target, threads);
  };
  return has_type<float>(target.values.dtype()) ? read(float{}) : read(double{});
}

// Whether the first sample has a qid: 1 or 0, −1 if there is no sample.
int has_query_ids(Vector<const std::uint8_t> text, std::int64_t size) {
  const char* begin = checked_text(text, size);
  return first_query(begin, begin + size);
}

struct IrregularLines {
  std::int64_t count;  // of irregular lines
  std::int64_t next;   // where to continue
  std::int64_t rows, rows_with_zero;
  std::int64_t zero_line;  // the first line with an index 0, −1 for none
};

// Write the offsets of irregular lines, from `begin` on, to `out` as far as they fit. Lines with a carriage return and
// those with a comment may be accepted.
IrregularLines find_irregular_lines(Vector<const std::uint8_t> text, std::int64_t size, std::int64_t begin,
                                    bool has_queries, bool accept_returns, bool accept_comments,
                                    Vector<std::int64_t> out) {
  const char* origin = checked_text(text, size);
  require(begin >= 0 && begin <= size, "the beginning is out of range");
  Memory().reads("text", text).writes("out", out).require_disjoint();
  nb::gil_scoped_release unlocked;
  const IrregularSearch found = search_irregular_lines(
      origin, origin + begin, origin + size, {has_queries, accept_returns, accept_comments}, out.data(), length(out));
  return {found.irregular, std::min<std::int64_t>(size, found.next - origin), found.rows, found.rows_with_zero,
          found.zero_line ? found.zero_line - origin : -1};
}

// The text of samples.
template <class Index>
nb::bytes write_text(Vector<const double> labels, Vector<const std::int64_t> starts, Vector<const Index> features,
                     Vector<const double> values, Vector<const std::int64_t> queries, std::int64_t base, int digits,
                     int threads) {
  const std::int64_t count = labels.shape(0);
  require(static_cast<std::int64_t>(starts.shape(0)) == count + 1 && starts.data()[0] >= 0 &&
              starts.data()[count] <= static_cast<std::int64_t>(values.shape(0)) &&
              features.shape(0) == values.shape(0) && (queries.shape(0) == 0 || queries.shape(0) == labels.shape(0)) &&
              (base == 0 || base == 1) && digits > 0 && digits <= 17,
          "the rows to write are malformed");
  for (std::int64_t r = 0; r < count; ++r) require(starts.data()[r] <= starts.data()[r + 1], "the starts must ascend");
  const TextRows<Index> rows{labels.data(), starts.data(), features.data(), values.data(),
                             queries.shape(0) ? queries.data() : nullptr};
  struct Part {
    std::unique_ptr<char[]> text;
    std::int64_t size;
  };
  const std::int64_t wanted = 4 * std::max(1, threads),
                     chunk = std::max<std::int64_t>(1, (count + wanted - 1) / wanted);
  std::vector<Part> parts((count + chunk - 1) / chunk);
  std::int64_t size = 0;
  {
    nb::gil_scoped_release unlocked;
    for (std::size_t k = 0; k < parts.size(); ++k)
      parts[k].text.reset(new char[max_text_size(rows, k * chunk, std::min<std::int64_t>(count, (k + 1) * chunk))]);
    in_parallel(threads, count, chunk, [&](std::int64_t begin, std::int64_t end, int) {
      Part& part = parts[begin / chunk];
      part.size = write_lines(rows, begin, end, base, digits, part.text.get()) - part.text.get();
    });
    for (const Part& part : parts) size += part.size;
  }
  PyObject* text = PyBytes_FromStringAndSize(nullptr, size);
  if (!text) nb::raise_python_error();
  char* out = PyBytes_AsString(text);
  for (const Part& part : parts) out = std::copy_n(part.text.get(), part.size, out);
  return nb::steal<nb::bytes>(text);
}

template <class Index> void define_writer(nb::module_& m) {
  m.def("write_text", &write_text<Index>, exact("labels"), exact("starts"), exact("features"), exact("values"),
        exact("queries"), nb::arg("base"), nb::arg("digits"), nb::arg("threads"));
}

}  // namespace

void define_text(nb::module_& m) {
  m.attr("text_padding") = kTextPadding;  // line ends that must follow a text
  define_arguments<TextRuleArguments, std::int64_t, bool, std::int64_t, bool>(
      m, "TextRules", nb::arg("base"), nb::arg("zero_allowed"), nb::arg("limit"), nb::arg("has_queries"));
  using Writable = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  define_arguments<TextArrays, Vector<double>, Vector<std::int64_t>, Vector<std::int64_t>, Writable, Writable,
                   std::int64_t, std::int64_t>(m, "TextArrays", exact("labels"), exact("starts"), exact("queries"),
                                               exact("features"), exact("values"), nb::arg("row"), nb::arg("stored"));
  nb::class_<TextResult>(m, "TextResult")
      .def_ro("status", &TextResult::status)
      .def_ro("line", &TextResult::line)
      .def_ro("rows", &TextResult::rows)
      .def_ro("stored", &TextResult::stored)
      .def_ro("largest", &TextResult::largest)
      .def_ro("largest_line", &TextResult::largest_line)
      .def_ro("zero_line", &TextResult::zero_line);
  nb::class_<IrregularLines>(m, "IrregularLines")
      .def_ro("count", &IrregularLines::count)
      .def_ro("next", &IrregularLines::next)
      .def_ro("rows", &IrregularLines::rows)
      .def_ro("rows_with_zero", &IrregularLines::rows_with_zero)
      .def_ro("zero_line", &IrregularLines::zero_line);
  m.def("count_text", &count_text, exact("text"), nb::arg("size"), exact("chunks"), nb::arg("threads"));
  m.def("read_text", &read_text, exact("text"), nb::arg("size"), exact("chunks"), nb::arg("rules"), nb::arg("target"),
        nb::arg("threads"));
  m.def("has_query_ids", &has_query_ids, exact("text"), nb::arg("size"));
  m.def("find_irregular_lines", &find_irregular_lines, exact("text"), nb::arg("size"), nb::arg("begin"),
        nb::arg("has_queries"), nb::arg("accept_returns"), nb::arg("accept_comments"), exact("out"));
  define_writer<std::int32_t>(m);
  define_writer<std::int64_t>(m);
}

}  // namespace maxmargin
