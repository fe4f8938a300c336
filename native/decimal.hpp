// Exact conversion between doubles and decimal text: a text is read as the nearest double, and a double is written so
// that it reads back as the same double.
//
// Short decimals, w·10⁻ᵏ with an integer w ≤ 2⁵³ and k ≤ 22, have a fast path: w and 10ᵏ are exact doubles, so one IEEE
// division rounds once and is correct (Clinger 1990, How to read floating point numbers accurately). Digits are read
// eight at a time from one machine word. All other numbers are left to std::from_chars, which is exact.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>

#include "from_chars.hpp"

namespace maxmargin {

// Eight characters of a text as a word, the first in the lowest byte.
inline std::uint64_t eight_characters(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

// The leading digits of a word of eight characters: their number, and the integer that they represent.
struct Digits {
  int count;
  std::uint64_t number;

  explicit Digits(const char* p) {
    std::uint64_t t = eight_characters(p) ^ 0x3030303030303030u;  // digits become 0 … 9, all else is larger
    const std::uint64_t others =
        ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;  // a carry never comes from a digit
    count = others ? __builtin_ctzll(others) >> 3 : 8;
    t = count ? t << (64 - 8 * count) : 0;  // leading zeros
    t = t * 10 + (t >> 8);                  // pairs of digits, then all pairs at once
    number =
        ((t & 0x000000FF000000FFu) * 0x000F424000000064u + ((t >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u) >>
        32;
  }
};

constexpr std::uint64_t kPowers[] = {1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u};
constexpr double kExactPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
inline bool ends_token(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#'; }

// The value of a number out of range, for which std::from_chars returns none: infinite, or 0 below the smallest double.
inline double out_of_range(const char* p, const char* end) {
  const double sign = *p == '-' ? -1.0 : 1.0;
  p += *p == '-';
  std::int64_t magnitude = 0;  // decimal places before the point, of the first digit that is not 0
  bool point = false, started = false;
  for (; p < end && *p != 'e' && *p != 'E'; ++p) {
    if (*p == '.')
      point = true;
    else if (started || *p != '0') {
      started = true;
      magnitude += !point;
    } else
      magnitude -= point;
  }
  std::int64_t exponent = 0;
  if (p < end) {
    const bool negative = p[1] == '-';
    for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end; ++p)
      if (exponent < 1'000'000'000'000) exponent = exponent * 10 + (*p - '0');
    if (negative) exponent = -exponent;
  }
  return sign * (magnitude + exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0);
}

// Any number in [p, end): digits with a sign, a point and an exponent, inf, infinity or nan. False if it is none.
inline bool read_any_number(const char* p, const char* end, double& value) {
  if (p < end && *p == '+' && (++p == end || *p == '-' || *p == '+')) return false;
  if (p < end && end[-1] == ')') return false;  // nan(...) is not accepted
  const auto [stop, error] = double_from_chars(p, end, value);
  if (stop != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) value = out_of_range(p, end);
  return true;
}

inline unsigned digit(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }  // above 9 for other characters

// A number that begins at `p` and ends before a blank, the end of the line or #; `p` is then there. The text must
// continue for 24 characters after the end of the line. The end of a number is needed to find the next one, so the
// common formats, one digit and one digit before the point, are branches that the processor can predict.
inline bool read_number(const char*& p, double& value) {
  const char* q = p;
  const bool negative = *q == '-';
  q += negative || *q == '+';
  std::uint64_t number = digit(*q);
  int digits = 1, places = 0;
  if (number > 9 || (q[1] != '.' && !ends_token(q[1]))) {
    const Digits whole(q);
    number = whole.number;
    digits = whole.count;
  }
  bool fits = digits < 8;
  q += digits;
  if (*q == '.') {
    ++q;
    for (int part = 0; part < 2; ++part) {
      const Digits fraction(q);
      number = number * kPowers[fraction.count] + fraction.number;
      places += fraction.count;
      q += fraction.count;
      if (fraction.count < 8) break;
    }
    fits = fits && digits + places < 20;  // so many digits fit into the word
  }
  if (__builtin_expect(ends_token(*q) && fits && digits + places > 0 && number <= std::uint64_t{1} << 53, 1)) {
    const double magnitude = places ? static_cast<double>(number) / kExactPowers[places] : static_cast<double>(number);
    value = negative ? -magnitude : magnitude;
    p = q;
    return true;
  }
  q = p;
  while (!ends_token(*q)) ++q;
  if (!read_any_number(p, q, value)) return false;
  p = q;
  return true;
}

// An integer ≥ 0 of at most 18 digits; `p` is then after it. False if there is none or it has more. Indices ascend, so
// the next one mostly has the same number of digits, which branches predict.
inline bool read_whole(const char*& p, std::int64_t& value) {
  const unsigned a = digit(p[0]), b = digit(p[1]), c = digit(p[2]);
  if (a > 9) return false;
  if (b > 9) {
    value = a;
    p += 1;
    return true;
  }
  if (c > 9) {
    value = 10 * a + b;
    p += 2;
    return true;
  }
  const Digits first(p);
  value = static_cast<std::int64_t>(first.number);
  if (__builtin_expect(first.count < 8, 1)) {
    p += first.count;
    return true;
  }
  while (*p == '0') ++p;
  int count = 0;
  for (value = 0; digit(*p) <= 9; ++p) {
    if (++count > 18) return false;
    value = value * 10 + digit(*p);
  }
  return true;
}

// The largest number of characters of a number: a sign, 17 digits, a point, and an exponent of five or as many zeros
// after the point.
constexpr int kMaxNumberSize = 25;

// Write a number: with 17 digits the shortest text that reads back as the same double, with fewer digits as %g does.
inline char* write_number(char* out, double value, int digits) {
  if (digits >= 17) {
    if (std::fabs(value) < 1e15 && value == std::trunc(value) && !(value == 0 && std::signbit(value)))
      return std::to_chars(out, out + kMaxNumberSize, static_cast<std::int64_t>(value)).ptr;
    return std::to_chars(out, out + kMaxNumberSize, value).ptr;
  }
  return std::to_chars(out, out + kMaxNumberSize, value, std::chars_format::general, digits).ptr;
}

}  // namespace maxmargin
