// What the tests and the fuzzers of LIBSVM's text share: texts and samples in arrays of exactly the size that the loops
// may use, so that the address sanitiser detects every access beyond them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "libsvm_text.hpp"

namespace maxmargin {

inline void check(bool condition, const char* what, const std::string& text = "") {
  if (!condition) {
    std::fprintf(stderr, "failed: %s: %s\n", what, text.c_str());
    std::abort();
  }
}

inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// A text with its padding, in memory of its own.
struct Text {
  std::vector<char> characters;
  std::int64_t length;
  explicit Text(const std::string& text) : characters(text.begin(), text.end()), length(text.size()) {
    characters.insert(characters.end(), kTextPadding, '\n');
  }
  const char* begin() const { return characters.data(); }
  const char* end() const { return characters.data() + length; }
};

template <class Value, class Index> struct Samples {
  std::vector<double> labels;
  std::vector<std::int64_t> ends, queries;
  std::vector<Index> features;
  std::vector<Value> values;
  ChunkResult found;
  Samples(const Text& text, const TextRules& rules) {
    const Counts counts = count_lines(text.begin(), text.end());
    const std::int64_t rows = counts.lines + (text.length > 0 && text.end()[-1] != '\n');
    labels.resize(rows), ends.resize(rows), queries.resize(rows), features.resize(counts.colons),
        values.resize(counts.colons);
    found = read_lines<Value, Index>(
        text.begin(), text.end(), rules,
        {labels.data(), ends.data(), queries.data(), features.data(), values.data(), rows, counts.colons});
    check(found.rows <= rows && found.stored <= counts.colons, "rows and values within their capacity");
    check(found.status == TextStatus::good || (found.line >= text.begin() && found.line < text.end()),
          "a bad line is in the text");
    labels.resize(found.rows), ends.resize(found.rows), queries.resize(found.rows), features.resize(found.stored),
        values.resize(found.stored);
  }
};

}  // namespace maxmargin
