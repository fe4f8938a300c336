// Fuzzes the reader of LIBSVM's text, the search for irregular lines, and the writer. For libFuzzer:
// clang++ -fsanitize=fuzzer,address,undefined.
#include <algorithm>

#include "text_samples.hpp"

using namespace maxmargin;

namespace {

constexpr std::int64_t kLargest = 1'000'000'000'000'000'000;

// What was read is written and read again.
void check_round_trip(const Samples<double, std::int64_t>& found, bool queries, const std::string& shown) {
  const std::int64_t rows = found.found.rows;
  std::vector<std::int64_t> starts{0};
  starts.insert(starts.end(), found.ends.begin(), found.ends.end());
  const TextRows<std::int64_t> all{found.labels.data(), starts.data(), found.features.data(), found.values.data(),
                                   queries ? found.queries.data() : nullptr};
  std::vector<char> buffer(max_text_size(all, 0, rows));
  const Text text(std::string(buffer.data(), write_lines(all, 0, rows, 0, 17, buffer.data())));
  const Samples<double, std::int64_t> again(text, {0, true, kLargest, queries && rows > 0});
  check(again.found.status == TextStatus::good && again.found.rows == rows, "what was written is read", shown);
  check(again.features == found.features && again.ends == found.ends, "with its features", shown);
  check(!queries || again.queries == found.queries, "and its queries", shown);
  for (std::size_t k = 0; k < found.values.size(); ++k)
    check(same_bits(again.values[k], found.values[k]) || std::isnan(found.values[k]), "and its values", shown);
  for (std::size_t k = 0; k < found.labels.size(); ++k)
    check(same_bits(again.labels[k], found.labels[k]) || std::isnan(found.labels[k]), "and its labels", shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string shown(reinterpret_cast<const char*>(data), size);
  const Text text(shown);
  const bool queries = first_query(text.begin(), text.end()) == 1;
  const TextRules rules{0, true, kLargest, queries};
  const Samples<float, std::int32_t> narrow(text, rules);
  const Samples<double, std::int64_t> wide(text, rules);
  check(wide.found.status != TextStatus::wide_index, "wide indices fit", shown);
  check((narrow.found.status == TextStatus::bad_line) <= (wide.found.status == TextStatus::bad_line), "readers agree",
        shown);
  std::int64_t out[2], found_irregular = 0;
  for (const char* p = text.begin(); p < text.end();) {
    const IrregularSearch found =
        search_irregular_lines(text.begin(), p, text.end(), {queries, true, true}, out, 1 + size % 2);
    check(found.next > p, "the search continues", shown);
    found_irregular += found.irregular;
    p = found.next;
  }
  check(wide.found.status == TextStatus::good || found_irregular > 0, "a bad line is irregular", shown);
  if (wide.found.status == TextStatus::good) check_round_trip(wide, queries, shown);
  return 0;
}
