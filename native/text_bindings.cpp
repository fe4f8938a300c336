// What reading and writing LIBSVM's text calls: checks shapes, releases the interpreter lock, calls the loops.
#include <memory>
#include <tuple>

#include "bindings.hpp"
#include "libsvm_text.hpp"

namespace maxmargin {
namespace {

constexpr std::int64_t kSmallestChunk = std::int64_t{1} << 17;

const char* checked_text(Vector<const std::uint8_t> text, std::int64_t length) {
  require(length >= 0 && length + kTextMargin <= static_cast<std::int64_t>(text.shape(0)), "the text is too short");
  const char* begin = reinterpret_cast<const char*>(text.data());
  for (std::int64_t k = 0; k < kTextMargin; ++k) require(begin[length + k] == '\n', "line ends must follow the text");
  return begin;
}

// Cut a text into chunks of lines, and write the end, the lines and the colons of each into a row of the table. Returns
// how many there are.
std::int64_t count_text(Vector<const std::uint8_t> text, std::int64_t length, Table<std::int64_t> chunks, int threads) {
  const char* begin = checked_text(text, length);
  const std::int64_t most = chunks.shape(0);
  require(most > 0 && chunks.shape(1) == 3, "the table of chunks is malformed");
  std::int64_t* rows = chunks.data();
  std::int64_t count = 0;
  nb::gil_scoped_release unlocked;
  const std::int64_t size = std::max(kSmallestChunk, (length + most - 1) / most);
  for (std::int64_t at = 0; at < length; ++count) {
    std::int64_t end = std::min(length, at + size);
    if (end < length) end = std::min<std::int64_t>(length, line_end(begin + end - 1) + 1 - begin);
    rows[3 * count] = at = end;
  }
  in_parallel(threads, count, 1, [&](std::int64_t k, std::int64_t, int) {
    const Counts counts = count_lines(begin + (k ? rows[3 * k - 3] : 0), begin + rows[3 * k]);
    rows[3 * k + 1] = counts.lines + (begin[rows[3 * k] - 1] != '\n');
    rows[3 * k + 2] = counts.colons;
  });
  return count;
}

// Read a text in the given chunks; rows go to `labels` and the others from `row` on, values from `stored` on. Returns a
// status, where the line begins that reading stopped at, rows, values, the largest index, where its line begins, and
// where the first line with an index 0 begins (−1: there is none).
template <class Value, class Index>
std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t> read_text(
    Vector<const std::uint8_t> text, std::int64_t length, Table<const std::int64_t> chunks, std::int64_t base,
    bool zero_allowed, std::int64_t limit, bool has_queries, Vector<double> labels, Vector<std::int64_t> starts,
    Vector<std::int64_t> queries, Vector<Index> features, Vector<Value> values, std::int64_t row, std::int64_t stored,
    int threads) {
  const char* begin = checked_text(text, length);
  const std::int64_t count = chunks.shape(0);
  require(chunks.shape(1) == 3 && (base == 0 || base == 1), "the table of chunks is malformed");
  std::vector<std::int64_t> ends(count + 1, 0), rows(count + 1, row), values_at(count + 1, stored);
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t* chunk = chunks.data() + 3 * k;
    require(ends[k] < chunk[0] && chunk[0] <= length && chunk[1] >= 0 && chunk[2] >= 0 &&
                (chunk[0] == length || begin[chunk[0] - 1] == '\n'),
            "the table of chunks is malformed");
    ends[k + 1] = chunk[0];
    rows[k + 1] = rows[k] + chunk[1];
    values_at[k + 1] = values_at[k] + chunk[2];
  }
  const auto room_for = [](const auto& array, std::int64_t size) {
    return size <= static_cast<std::int64_t>(array.shape(0));
  };
  const bool wanted = queries.shape(0) > 0;
  require(row >= 0 && stored >= 0 && room_for(labels, rows[count]) && room_for(starts, rows[count] + 1) &&
              (!wanted || room_for(queries, rows[count])) && room_for(features, values_at[count]) &&
              room_for(values, values_at[count]),
          "there is too little room for the rows");
  std::vector<TextFound> found(count);
  TextFound all;
  nb::gil_scoped_release unlocked;
  const TextRules rules{base, zero_allowed, limit, has_queries};
  in_parallel(threads, count, 1, [&](std::int64_t k, std::int64_t, int) {
    const std::int64_t r = rows[k], v = values_at[k];
    found[k] =
        read_lines<Value, Index>(begin + ends[k], begin + ends[k + 1], rules,
                                 {labels.data() + r, starts.data() + r + 1, wanted ? queries.data() + r : nullptr,
                                  features.data() + v, values.data() + v, rows[k + 1] - r, values_at[k + 1] - v});
  });
  for (std::int64_t k = 0; k < count && all.status == TextStatus::good; ++k) {
    const TextFound& part = found[k];
    const std::int64_t r = row + all.rows, v = stored + all.stored;
    if (r != rows[k]) {
      std::copy_n(labels.data() + rows[k], part.rows, labels.data() + r);
      std::copy_n(starts.data() + rows[k] + 1, part.rows, starts.data() + r + 1);
      if (wanted) std::copy_n(queries.data() + rows[k], part.rows, queries.data() + r);
    }
    if (v != values_at[k]) {
      std::copy_n(features.data() + values_at[k], part.stored, features.data() + v);
      std::copy_n(values.data() + values_at[k], part.stored, values.data() + v);
    }
    for (std::int64_t i = 0; i < part.rows; ++i) starts.data()[r + 1 + i] += v;
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

int first_query_in(Vector<const std::uint8_t> text, std::int64_t length) {
  const char* begin = checked_text(text, length);
  return first_query(begin, begin + length);
}

// Where lines begin that are not plain, from `begin` on, while there is room for them in `odd`. Returns how many, where
// to go on, rows, rows with an index 0, and where the first of those begins (−1: there is none).
std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t> odd_lines(
    Vector<const std::uint8_t> text, std::int64_t length, std::int64_t begin, bool has_queries, bool returns,
    bool comments, Vector<std::int64_t> odd) {
  const char* origin = checked_text(text, length);
  require(begin >= 0 && begin <= length, "the beginning is out of range");
  nb::gil_scoped_release unlocked;
  const PlainFound found = find_odd_lines(origin, origin + begin, origin + length, {has_queries, returns, comments},
                                          odd.data(), odd.shape(0));
  return {found.odd, std::min<std::int64_t>(length, found.next - origin), found.rows, found.rows_with_zero,
          found.zero_line ? found.zero_line - origin : -1};
}

// Lines for samples.
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
    for (std::size_t k = 0; k < parts.size();
         ++k)  // before any thread starts, where running out of memory is an ordinary error
      parts[k].text.reset(new char[text_room(rows, k * chunk, std::min<std::int64_t>(count, (k + 1) * chunk))]);
    in_parallel(threads, count, chunk, [&](std::int64_t begin, std::int64_t end, int) {
      Part& part = parts[begin / chunk];
      part.size = write_lines(rows, begin, end, base, digits, part.text.get()) - part.text.get();
    });
    for (const Part& part : parts) size += part.size;
  }
  PyObject* text = PyBytes_FromStringAndSize(nullptr, size);
  if (!text) nb::raise_python_error();
  char* out = PyBytes_AS_STRING(text);
  for (const Part& part : parts) out = std::copy_n(part.text.get(), part.size, out);
  return nb::steal<nb::bytes>(text);
}

template <class Value, class Index> void define_reader(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("read_text", &read_text<Value, Index>, exact("text"), nb::arg("length"), exact("chunks"), nb::arg("base"),
        nb::arg("zero_allowed"), nb::arg("limit"), nb::arg("has_queries"), exact("labels"), exact("starts"),
        exact("queries"), exact("features"), exact("values"), nb::arg("row"), nb::arg("stored"), nb::arg("threads"));
}

template <class Index> void define_writer(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("write_text", &write_text<Index>, exact("labels"), exact("starts"), exact("features"), exact("values"),
        exact("queries"), nb::arg("base"), nb::arg("digits"), nb::arg("threads"));
}

}  // namespace

void define_text(nb::module_& m) {
  m.attr("text_margin") = kTextMargin;  // line ends that must follow a text
  m.def("count_text", &count_text, nb::arg("text").noconvert(), nb::arg("length"), nb::arg("chunks").noconvert(),
        nb::arg("threads"));
  m.def("first_query", &first_query_in, nb::arg("text").noconvert(), nb::arg("length"));
  m.def("odd_lines", &odd_lines, nb::arg("text").noconvert(), nb::arg("length"), nb::arg("begin"),
        nb::arg("has_queries"), nb::arg("returns"), nb::arg("comments"), nb::arg("odd").noconvert());
  define_reader<double, std::int32_t>(m);
  define_reader<double, std::int64_t>(m);
  define_reader<float, std::int32_t>(m);
  define_reader<float, std::int64_t>(m);
  define_writer<std::int32_t>(m);
  define_writer<std::int64_t>(m);
}

}  // namespace maxmargin
