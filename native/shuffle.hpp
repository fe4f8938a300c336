// A random order, the same for the same seed.
#pragma once

#include <cstdint>
#include <utility>

namespace maxmargin {

// Shuffle an array (Fisher and Yates) with the generator SplitMix64 (Steele, Lea and Flood 2014).
inline void shuffle(std::int64_t* order, std::int64_t count, std::uint64_t seed) {
  for (std::uint64_t k = static_cast<std::uint64_t>(count); k > 1; --k) {
    std::uint64_t x = seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    std::swap(order[k - 1], order[static_cast<std::uint64_t>((static_cast<unsigned __int128>(x) * k) >> 64)]);
  }
}

}  // namespace maxmargin
