// Transposition of blocks of values: kernel values are symmetric, so half of a square block is computed and half
// mirrored.
#pragma once

#include <cstdint>
#include <cstring>

namespace maxmargin::MAXMARGIN_LEVEL {

// to[c][left + r] = from[r][top + c], in registers of four by four values.
template <class T>
void transpose(const T* const* from, std::int64_t top, std::int64_t rows, std::int64_t columns, T* const* to,
               std::int64_t left) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  const auto load = [](const T* p) {
    Four v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  const auto store = [](T* p, Four v) { std::memcpy(p, &v, sizeof v); };
  std::int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    for (std::int64_t next = c + 4; next < columns && next < c + 8; ++next)  // the targets of the next columns
      for (std::int64_t r = 0; r < rows; r += 64 / static_cast<std::int64_t>(sizeof(T)))
        __builtin_prefetch(to[next] + left + r, 1);
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const Four w = load(from[r] + top + c), x = load(from[r + 1] + top + c);
      const Four y = load(from[r + 2] + top + c), z = load(from[r + 3] + top + c);
      const Four wx_low = __builtin_shufflevector(w, x, 0, 4, 1, 5),
                 wx_high = __builtin_shufflevector(w, x, 2, 6, 3, 7);
      const Four yz_low = __builtin_shufflevector(y, z, 0, 4, 1, 5),
                 yz_high = __builtin_shufflevector(y, z, 2, 6, 3, 7);
      store(to[c] + left + r, __builtin_shufflevector(wx_low, yz_low, 0, 1, 4, 5));
      store(to[c + 1] + left + r, __builtin_shufflevector(wx_low, yz_low, 2, 3, 6, 7));
      store(to[c + 2] + left + r, __builtin_shufflevector(wx_high, yz_high, 0, 1, 4, 5));
      store(to[c + 3] + left + r, __builtin_shufflevector(wx_high, yz_high, 2, 3, 6, 7));
    }
    for (; r < rows; ++r)
      for (int k = 0; k < 4; ++k) to[c + k][left + r] = from[r][top + c + k];
  }
  for (; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r) to[c][left + r] = from[r][top + c];
}

// out[c][r] = out[r][c] for rows [first_row, last_row) and columns [first, last).
template <class T>
void mirror(T* const* out, std::int64_t first_row, std::int64_t last_row, std::int64_t first, std::int64_t last) {
  transpose<T>(out + first_row, first, last_row - first_row, last - first, out + first, first_row);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
