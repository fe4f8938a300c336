// Random numbers and orders, the same for the same seed: the generator SplitMix64 (Steele, Lea and Flood 2014).
#pragma once

#include <cstdint>
#include <utility>

namespace maxmargin {

// A number below `count`, and the next state of the generator.
inline std::uint64_t random_below(std::uint64_t& state, std::uint64_t count) {
  std::uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(x) * count) >> 64);
}

// Shuffle an array (Fisher and Yates).
inline void shuffle(std::int64_t* order, std::int64_t count, std::uint64_t seed) {
  for (std::uint64_t k = static_cast<std::uint64_t>(count); k > 1; --k)
    std::swap(order[k - 1], order[random_below(seed, k)]);
}

}  // namespace maxmargin
