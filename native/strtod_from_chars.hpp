// std::from_chars for doubles on top of the C library's strtod, which rounds correctly, in the C locale. It takes the
// same characters and returns the same value and errors; native/tests/from_chars_tests.cpp compares the two.
#pragma once

#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace maxmargin {

inline std::from_chars_result strtod_from_chars(const char* p, const char* end, double& value) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const char* digits = p + (p < end && *p == '-');
  // What strtod accepts besides: blanks, a sign +, hexadecimal numbers.
  const bool starts = digits < end && (*digits == '.' || (*digits >= '0' && *digits <= '9') || *digits == 'i' ||
                                       *digits == 'I' || *digits == 'n' || *digits == 'N');
  if (!starts) return {p, std::errc::invalid_argument};
  if (end - digits > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) end = digits + 1;
  const std::string text(p, end);  // strtod reads up to a null character
  char* stop = nullptr;
  const int before = errno;
  errno = 0;
  const double number = strtod_l(text.c_str(), &stop, plain);
  const bool beyond = errno == ERANGE && (number == 0 || std::isinf(number));  // others are subnormal
  errno = before;
  if (stop == text.c_str()) return {p, std::errc::invalid_argument};
  if (!beyond) value = number;
  return {p + (stop - text.c_str()), beyond ? std::errc::result_out_of_range : std::errc()};
}

}  // namespace maxmargin
