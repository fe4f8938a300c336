// std::from_chars for doubles, also where the standard library has it for integers only (libc++ before version 20,
// which is that of macOS): there strtod reads them in the C locale. Both return the nearest double.
#pragma once

#include <charconv>

#ifdef MAXMARGIN_WITHOUT_FLOAT_FROM_CHARS
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <cerrno>
#include <cmath>
#include <string>
#include <system_error>
#endif

namespace maxmargin {

#ifdef MAXMARGIN_WITHOUT_FLOAT_FROM_CHARS

inline std::from_chars_result double_from_chars(const char* p, const char* end, double& value) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const char* digits = p + (p < end && *p == '-');
  // What strtod accepts besides: blanks, a sign +, hexadecimal numbers.
  const bool starts = digits < end && (*digits == '.' || (*digits >= '0' && *digits <= '9') || *digits == 'i' ||
                                       *digits == 'I' || *digits == 'n' || *digits == 'N');
  if (!starts || (end - digits > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')))
    return {p, std::errc::invalid_argument};
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

#else

inline std::from_chars_result double_from_chars(const char* p, const char* end, double& value) {
  return std::from_chars(p, end, value);
}

#endif

}  // namespace maxmargin
