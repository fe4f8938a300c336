// Compares `strtod_from_chars` with the standard library's std::from_chars: the same bits, the same end, the same
// error. The cases are doubles of random bits in several notations, decimal numbers exactly between two doubles and
// beside these, the ends of the range, and random characters; in every locale that is installed.
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "strtod_from_chars.hpp"

using namespace maxmargin;

namespace {

const char* const kTexts[] = {"",
                              "-",
                              "+1",
                              "0x10",
                              "-0x1p3",
                              "inf",
                              "-Infinity",
                              "infinit",
                              "nan",
                              "nan(1)",
                              "NAN(",
                              "-nan",
                              "1e",
                              "1e+",
                              ".e1",
                              "-.",
                              "5.",
                              ".5",
                              "1e99999999999999999999",
                              "0e99999999999",
                              "1e-99999999999999999999",
                              "1,5",
                              " 1",
                              "1.7976931348623157e308",
                              "1.7976931348623158e308",
                              "1.7976931348623159e308",
                              "4.9406564584124654e-324",
                              "2.4703282292062327e-324",
                              "2.4703282292062328e-324",
                              "2.2250738585072011e-308",
                              "9007199254740993"};

void compare(const std::string& text) {
  double ours = 7, theirs = 7;
  const char *begin = text.data(), *end = begin + text.size();
  const auto found = strtod_from_chars(begin, end, ours);
  const auto expected = std::from_chars(begin, end, theirs);
  const bool same = std::memcmp(&ours, &theirs, sizeof ours) == 0 || (std::isnan(ours) && std::isnan(theirs));
  check(same && found.ptr == expected.ptr && found.ec == expected.ec, text.c_str());
}

double from_bits(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// All digits of a number, of which a double has up to 767 after its first; long double holds the middle of two doubles.
std::string all_digits(long double value) {
  std::vector<char> text(1200);
  return {text.data(), static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.1100Le", value))};
}

// A number and its neighbours at the last of its digits.
void compare_beside(std::string text) {
  compare(text);
  const std::size_t last = text.find('e') - 1;
  text[last] = '1';
  compare(text);
  const std::size_t digit = text.find_last_not_of('0', last - 1);
  if (text[digit] > '0' && text[digit] <= '9') --text[digit];
  compare(text);
}

void compare_numbers(std::mt19937_64& random, int count) {
  for (int k = 0; k < count; ++k) {
    const std::uint64_t bits = k % 4 ? random() : random() & 0x800FFFFFFFFFFFFFu;  // every fourth is subnormal
    const double value = from_bits(bits);
    char text[64];
    std::snprintf(text, sizeof text, "%.*e", k % 25, value);
    compare(text);
    if (std::isfinite(value) && k % 8 == 0) {
      const long double next = from_bits(bits + 1);
      compare_beside(all_digits((static_cast<long double>(value) + next) / 2));
    }
  }
}

void compare_characters(std::mt19937_64& random, int count) {
  const std::string alphabet = "0011234567899..--+eEinftyaxXpP ,_()";
  for (int k = 0; k < count; ++k) {
    std::string text(random() % 9, ' ');
    for (char& letter : text) letter = alphabet[random() % alphabet.size()];
    compare(text);
  }
}

}  // namespace

int main() {
  static_assert(sizeof(long double) > sizeof(double), "the middle of two doubles needs a longer type");
  std::mt19937_64 random(1);
  for (const char* locale : {"C", "C.UTF-8", "de_DE.UTF-8", "fr_FR.UTF-8"}) {
    if (!std::setlocale(LC_ALL, locale)) continue;
    for (const char* text : kTexts) compare(text);
    compare_beside(all_digits(1.797693134862315807937289714053e308L));  // the largest double or infinity
    compare_numbers(random, 40000);
    compare_characters(random, 200000);
  }
  std::printf("from_chars passed\n");
  return 0;
}
