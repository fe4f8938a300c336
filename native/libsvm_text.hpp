// LIBSVM's text format: one line per sample, "label index:value index:value …", optionally with qid:number after the
// label and a comment after #.
//
// A text is divided into chunks of whole lines. Threads count the lines and colons of each chunk, which bounds its rows
// and values, and then read each chunk into its own part of the arrays. Lines without a sample, such as comments, leave
// gaps that are closed at the end. Reading a chunk stops at the first invalid line; the caller finds the error in that
// line.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "decimal.hpp"

namespace maxmargin {

// Line ends that must follow a text, so that whole machine words can be read at its end.
constexpr std::int64_t kTextPadding = 32;

struct Counts {
  std::int64_t lines = 0, colons = 0;
};

inline Counts count_lines(const char* begin, const char* end) {
  typedef std::uint8_t Bytes __attribute__((vector_size(16)));
  Counts counts;
  while (end - begin >= 16) {
    Bytes lines{}, colons{};
    for (int k = 0; k < 255 && end - begin >= 16; ++k, begin += 16) {  // a byte counts to 255
      Bytes text;
      std::memcpy(&text, begin, 16);
      lines -= reinterpret_cast<Bytes>(text == '\n');
      colons -= reinterpret_cast<Bytes>(text == ':');
    }
    for (int k = 0; k < 16; ++k) counts.lines += lines[k], counts.colons += colons[k];
  }
  for (; begin < end; ++begin) counts.lines += *begin == '\n', counts.colons += *begin == ':';
  return counts;
}

// The format that a reader expects.
struct TextRules {
  std::int64_t base;   // the index of the first feature
  bool zero_allowed;   // whether an index may be 0 nevertheless
  std::int64_t limit;  // the largest index
  bool queries;        // whether each line has a qid, or none has
};

// The arrays for the rows of a chunk, and their capacity.
template <class Value, class Index> struct TextTarget {
  double* labels;
  std::int64_t* ends;     // of each row, among the values
  std::int64_t* queries;  // or null
  Index* features;
  Value* values;
  std::int64_t rows, stored;
};

enum class TextStatus { good, bad_line, wide_index };

// The result of reading a chunk; lines are given by their first character.
struct ChunkResult {
  TextStatus status = TextStatus::good;
  const char* line = nullptr;  // where reading stopped
  std::int64_t rows = 0, stored = 0;
  std::int64_t largest = -1;  // index
  const char* largest_line = nullptr;
  const char* zero_line = nullptr;  // the first with an index 0
};

inline const char* line_end(const char* p) {
  while (*p != '\n') ++p;
  return p;
}

inline bool begins_query(const char* p) { return std::memcmp(p, "qid:", 4) == 0; }

// Whether the first sample of [begin, end) has a qid: 1 or 0, −1 if there is no sample.
inline int first_query(const char* begin, const char* end) {
  for (const char* p = begin; p < end; ++p) {
    while (is_blank(*p)) ++p;
    if (*p != '\n' && *p != '#') {
      while (!ends_token(*p)) ++p;
      while (is_blank(*p)) ++p;
      return begins_query(p);
    }
    p = line_end(p);
  }
  return -1;
}

// The number after "qid:".
inline bool read_query(const char*& p, std::int64_t& query) {
  p += 4;
  const bool negative = *p == '-';
  p += negative;
  if (!read_whole(p, query) || !ends_token(*p)) return false;
  if (negative) query = -query;
  return true;
}

// Read the lines of [begin, end), the last of which is complete. Rows and values are counted from 0.
template <class Value, class Index>
ChunkResult read_lines(const char* begin, const char* end, const TextRules& rules,
                       const TextTarget<Value, Index>& target) {
  ChunkResult found;
  std::int64_t at = 0;
  const char* line = begin;
  const auto stop = [&](TextStatus status) {
    found.status = status;
    found.line = line;
    return found;
  };
  for (const char* p = begin; p < end; line = ++p) {
    while (is_blank(*p)) ++p;
    if (*p == '#') p = line_end(p);
    if (*p == '\n') continue;
    if (found.rows == target.rows || !read_number(p, target.labels[found.rows])) return stop(TextStatus::bad_line);
    while (is_blank(*p)) ++p;
    std::int64_t query = 0;
    const bool has_query = begins_query(p);
    if (has_query != rules.queries || (has_query && !read_query(p, query))) return stop(TextStatus::bad_line);
    std::int64_t last = -1;
    const std::int64_t first = at;
    for (;;) {
      while (is_blank(*p)) ++p;
      if (*p == '\n') break;
      if (*p == '#') {
        p = line_end(p);
        break;
      }
      std::int64_t index;
      double value;
      if (!read_whole(p, index) || *p++ != ':' || index <= last || index > rules.limit || !read_number(p, value) ||
          at == target.stored)
        return stop(TextStatus::bad_line);
      last = index;
      if (index - rules.base > std::numeric_limits<Index>::max()) return stop(TextStatus::wide_index);
      target.features[at] = static_cast<Index>(index - rules.base);
      target.values[at] = static_cast<Value>(value);
      ++at;
    }
    if (at > first && target.features[first] + rules.base == 0) {
      if (!rules.zero_allowed) return stop(TextStatus::bad_line);
      if (!found.zero_line) found.zero_line = line;
    }
    if (last > found.largest) found.largest = last, found.largest_line = line;
    if (target.queries) target.queries[found.rows] = query;
    target.ends[found.rows++] = found.stored = at;
  }
  return found;
}

// Irregular lines are those that other readers may not accept. Carriage returns and comments may be accepted.
struct RegularityRules {
  bool queries, accept_returns, accept_comments;
};

struct IrregularSearch {
  const char* next;  // the line to continue with
  std::int64_t irregular = 0, rows = 0, rows_with_zero = 0;
  const char* zero_line = nullptr;
};

// Write the offsets from `origin` of the irregular lines of [begin, end) to `out`, as far as they fit.
inline IrregularSearch search_irregular_lines(const char* origin, const char* begin, const char* end,
                                              const RegularityRules& rules, std::int64_t* out, std::int64_t capacity) {
  IrregularSearch found{begin};
  std::vector<double> values;
  std::vector<std::int32_t> features;
  while (found.next < end && found.irregular < capacity) {
    const char* line = found.next;
    const char* stop = line_end(line);
    std::size_t colons = 0;
    bool irregular = false;
    for (const char* p = line; p < stop; ++p) {
      colons += *p == ':';
      irregular |= static_cast<unsigned char>(*p) >= 0x80 || (*p == '\r' && !rules.accept_returns) ||
                   (*p == '#' && !rules.accept_comments);
    }
    if (values.size() < colons) values.resize(colons), features.resize(colons);
    double label = 0.0;
    std::int64_t row_end = 0;
    const ChunkResult read = read_lines<double, std::int32_t>(
        line, stop + 1, {0, true, std::numeric_limits<std::int64_t>::max(), rules.queries},
        {&label, &row_end, nullptr, features.data(), values.data(), 1, static_cast<std::int64_t>(colons)});
    irregular |= read.status != TextStatus::good || !std::isfinite(label);
    for (std::int64_t k = 0; k < read.stored; ++k) irregular |= !std::isfinite(values[k]);
    irregular |= read.rows == 0 && !(rules.accept_comments && std::memchr(line, '#', stop - line));  // a blank line
    found.rows += read.rows;
    found.rows_with_zero += read.zero_line != nullptr;
    if (read.zero_line && !found.zero_line) found.zero_line = line;
    if (irregular) out[found.irregular++] = line - origin;
    found.next = stop + 1;
  }
  return found;
}

// Samples to write; `queries` may be null.
template <class Index> struct TextRows {
  const double* labels;
  const std::int64_t* starts;
  const Index* features;
  const double* values;
  const std::int64_t* queries;
};

// The largest number of characters of rows [begin, end): an index has at most 20, a number 25.
template <class Index> std::int64_t max_text_size(const TextRows<Index>& rows, std::int64_t begin, std::int64_t end) {
  return 56 * (end - begin) + 48 * (rows.starts[end] - rows.starts[begin]);
}

// Write lines for the rows [begin, end); returns where the text ends.
template <class Index>
char* write_lines(const TextRows<Index>& rows, std::int64_t begin, std::int64_t end, std::int64_t base, int digits,
                  char* out) {
  for (std::int64_t r = begin; r < end; ++r) {
    out = write_number(out, rows.labels[r], digits);
    if (rows.queries) {
      out = static_cast<char*>(std::memcpy(out, " qid:", 5)) + 5;
      out = std::to_chars(out, out + 20, rows.queries[r]).ptr;
    }
    for (std::int64_t k = rows.starts[r]; k < rows.starts[r + 1]; ++k) {
      *out++ = ' ';
      out = std::to_chars(out, out + 20, static_cast<std::int64_t>(rows.features[k]) + base).ptr;
      *out++ = ':';
      out = write_number(out, rows.values[k], digits);
    }
    *out++ = '\n';
  }
  return out;
}

}  // namespace maxmargin
