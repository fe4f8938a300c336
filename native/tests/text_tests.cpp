// Reads and writes LIBSVM's text under the address and undefined-behaviour sanitisers: every array has exactly the size
// that the loops may use, texts are mutated at random, numbers are compared with strtod, and what is written is read
// back.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "text_samples.hpp"

using namespace maxmargin;

namespace {

void test_numbers(std::mt19937_64& random) {
  std::vector<std::string> words = {
      "0",  "-0",  "1",     "12345678", "1234567.12345678", "0.1234567812345678",     "9007199254740993",
      ".5", "5.",  "1e400", "-1e400",   "1e-400",           "1e99999999999999999999", "4.9e-324",
      "+7", "1E5", "inf",   "-nan",     "infinity"};
  for (int k = 0; k < 20000; ++k) {
    char word[64];
    double value;
    const std::uint64_t bits = random();
    std::memcpy(&value, &bits, 8);
    if (!std::isfinite(value)) continue;
    std::snprintf(word, sizeof word, "%.*g", 1 + k % 18, k % 2 ? value : static_cast<double>(bits % 1000000) / 1000);
    words.push_back(word);
  }
  for (const std::string& word : words) {
    const Text text(word);
    const char* p = text.begin();
    double value;
    check(read_number(p, value) && p == text.end(), "a number is read", word);
    const double exact = std::strtod(word.c_str(), nullptr);
    check(same_bits(value, exact) || (std::isnan(value) && std::isnan(exact)), "as strtod reads it", word);
    if (std::isnan(value)) continue;
    char out[kMaxNumberSize];
    const Text again(std::string(out, write_number(out, value, 17)));
    p = again.begin();
    check(read_number(p, value) && same_bits(value, exact), "there and back", word);
    for (int digits = 1; digits < 17; ++digits) {
      char expected[64];
      std::snprintf(expected, sizeof expected, "%.*g", digits, value);
      check(std::string(out, write_number(out, value, digits)) == expected, "as printf writes it", word);
    }
  }
  for (const char* word :
       {"", "+", "-", ".", "e5", "1e", "1e+", "+-1", "--1", "1.2.3", "0x10", "nan(1)", "1_0", "infinit", "1,5", "1:"}) {
    const Text text(word);
    const char* p = text.begin();
    double value;
    check(!read_number(p, value), "what is no number is refused", word);
  }
}

void test_mutations(std::mt19937_64& random) {
  const std::string alphabet = "0123456789:.:  \n\n#\t\r+-eqidnaf\xff";
  const std::string start = "# c\r\n+1 1:0.5 3:-2e-3 12345678901:7\n-1 qid:3 2:1\n\n2.5 0:1 # x\n1 1:nan 2:inf\n7";
  for (int k = 0; k < 20000; ++k) {
    std::string mutated = start;
    for (int change = random() % 8; change >= 0; --change) {
      const std::size_t at = random() % mutated.size();
      if (random() % 3 == 0)
        mutated.erase(at, 1 + random() % 5);
      else if (random() % 2)
        mutated.insert(at, 1, alphabet[random() % alphabet.size()]);
      else
        mutated[at] = alphabet[random() % alphabet.size()];
      if (mutated.empty()) mutated = "1";
    }
    const Text text(mutated);
    const bool queries = first_query(text.begin(), text.end()) == 1;
    const TextRules rules{1, true, 1'000'000'000'000'000'000, queries};
    const Samples<float, std::int32_t> narrow(text, rules);
    const Samples<double, std::int64_t> wide(text, rules);
    check(wide.found.status != TextStatus::wide_index, "wide indices fit", mutated);
    check(narrow.found.status != TextStatus::good || wide.found.status == TextStatus::good, "both readers agree",
          mutated);
    std::vector<std::int64_t> out(1 + random() % 4);
    std::int64_t found_irregular = 0;
    for (const char* p = text.begin(); p < text.end();) {
      const IrregularSearch found =
          search_irregular_lines(text.begin(), p, text.end(), {queries, false, false}, out.data(), out.size());
      check(found.next > p, "the search goes on", mutated);
      found_irregular += found.irregular;
      p = found.next;
    }
    check(wide.found.status == TextStatus::good || found_irregular > 0, "a bad line is irregular", mutated);
  }
}

template <class Index> void test_writing(std::mt19937_64& random) {
  for (int k = 0; k < 500; ++k) {
    const std::int64_t rows = random() % 5;
    std::vector<double> labels(rows), values;
    std::vector<std::int64_t> starts{0}, queries(rows);
    std::vector<Index> features;
    for (std::int64_t r = 0; r < rows; ++r) {
      labels[r] = static_cast<double>(random() % 7) - 3;
      queries[r] = static_cast<std::int64_t>(random() % 2'000'000'000'000'000'000) - 1'000'000'000'000'000'000;
      for (Index j = random() % 3; random() % 6; j += 1 + random() % (std::numeric_limits<Index>::max() / 1000)) {
        const std::uint64_t bits = random();
        double value;
        std::memcpy(&value, &bits, 8);
        features.push_back(j);
        values.push_back(std::isnan(value) ? 1.5 : value);
      }
      starts.push_back(features.size());
    }
    const TextRows<Index> all{labels.data(), starts.data(), features.data(), values.data(),
                              k % 2 ? queries.data() : nullptr};
    std::vector<char> buffer(max_text_size(all, 0, rows));
    const Text text(std::string(buffer.data(), write_lines(all, 0, rows, k % 3 > 0, 17, buffer.data())));
    const Samples<double, Index> again(text, {k % 3 > 0, true, 1'000'000'000'000'000'000, rows > 0 && k % 2});
    const std::string shown(text.begin(), text.end());
    check(again.found.status == TextStatus::good && again.found.rows == rows, "what was written is read", shown);
    check(again.labels == labels && again.features == features, "with its labels and features", shown);
    check(values.empty() || std::memcmp(again.values.data(), values.data(), values.size() * sizeof(double)) == 0,
          "and its values", shown);
    check(std::equal(again.ends.begin(), again.ends.end(), starts.begin() + 1), "and its rows", shown);
    check(k % 2 == 0 || again.queries == queries, "and its queries", shown);
  }
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  test_numbers(random);
  test_mutations(random);
  test_writing<std::int32_t>(random);
  test_writing<std::int64_t>(random);
  std::printf("text passed\n");
  return 0;
}
