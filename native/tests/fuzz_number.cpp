// Fuzzes the reader of numbers against strtod, the reader of integers against a direct loop, and the writer against the
// reader. For libFuzzer: clang++ -fsanitize=fuzzer,address,undefined.
#include <cctype>

#include "text_samples.hpp"

using namespace maxmargin;

namespace {

// Whether a word has the form of a number: strtod also accepts hexadecimal numbers, and nan with a payload.
bool is_number(const std::string& word) {
  for (char c : word)
    if (c == 'x' || c == 'X' || c == '(' || c == '\0' || c == '\v' || c == '\f') return false;
  if (word.empty()) return false;
  char* end;
  std::strtod(word.c_str(), &end);
  return *end == '\0' && end == word.c_str() + word.size();
}

void check_whole(const std::string& word) {
  const Text text(word);
  const char* p = text.begin();
  std::int64_t value = 0, expected = 0;
  std::size_t digits = 0, begin = 0;
  while (begin + digits < word.size() && std::isdigit(static_cast<unsigned char>(word[begin + digits]))) ++digits;
  std::size_t significant = digits, first = 0;
  for (; significant && word[first] == '0'; ++first) --significant;
  const bool valid = digits > 0 && significant <= 18;
  for (std::size_t k = 0; valid && k < digits; ++k) expected = 10 * expected + (word[k] - '0');
  check(read_whole(p, value) == valid, "an integer of at most 18 digits is read", word);
  check(!valid || (value == expected && p == text.begin() + digits), "with its value", word);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string word(reinterpret_cast<const char*>(data), size);
  for (char& c : word)
    if (ends_token(c)) c = '0';
  const Text text(word);
  const char* p = text.begin();
  double value = 0;
  const bool read = read_number(p, value);
  check(read == is_number(word), "numbers are read, others are refused", word);
  check(!read || p == text.end(), "a number is read to its end", word);
  if (read) {
    const double exact = std::strtod(word.c_str(), nullptr);
    check(same_bits(value, exact) || (std::isnan(value) && std::isnan(exact)), "as strtod reads it", word);
    if (!std::isnan(value)) {
      char out[kMaxNumberSize];
      const Text again(std::string(out, write_number(out, value, 17)));
      p = again.begin();
      check(read_number(p, value) && same_bits(value, exact), "there and back", word);
    }
  }
  check_whole(word);
  return 0;
}
