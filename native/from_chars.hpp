// std::from_chars for doubles, also where the standard library has it for integers only (libc++ before version 20,
// which is that of macOS).
#pragma once

#include <charconv>

#ifdef MAXMARGIN_WITHOUT_FLOAT_FROM_CHARS
#include "strtod_from_chars.hpp"
#endif

namespace maxmargin {

inline std::from_chars_result double_from_chars(const char* p, const char* end, double& value) {
#ifdef MAXMARGIN_WITHOUT_FLOAT_FROM_CHARS
  return strtod_from_chars(p, end, value);
#else
  return std::from_chars(p, end, value);
#endif
}

}  // namespace maxmargin
