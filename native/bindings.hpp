// What the bindings share: arrays of Python's, checks, the level in use, threads.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

#include "levels.hpp"

namespace nb = nanobind;

namespace maxmargin {

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* sentence) {
  if (!condition) throw std::invalid_argument(sentence);
}

inline void require_within(Vector<const std::int64_t> picks, std::int64_t count) {
  const std::int64_t* p = picks.data();
  for (std::size_t k = 0; k < picks.shape(0); ++k) require(p[k] >= 0 && p[k] < count, "a sample index is out of range");
}

extern const Level level;  // the instruction set in use, chosen once at import

void define_solvers(nb::module_& m);
void define_linear(nb::module_& m);
void define_primal(nb::module_& m);
void define_online(nb::module_& m);
void define_text(nb::module_& m);

// Hand out [0, count) in chunks to `threads` threads. Whoever is free takes the next one; the results do not depend on
// who took which.
template <class Work> void in_parallel(int threads, std::int64_t count, std::int64_t chunk, Work work) {
  std::atomic<std::int64_t> next{0};
  const auto take = [&](int thread) {
    for (std::int64_t begin; (begin = next.fetch_add(chunk)) < count;)
      work(begin, std::min(count, begin + chunk), thread);
  };
  std::vector<std::thread> others;
  const std::int64_t useful = (count + chunk - 1) / chunk;
  for (int t = 1; t < threads && t < useful; ++t) {
    try {
      others.emplace_back(take, t);
    } catch (const std::exception&) {
      break;  // no more threads or memory to be had: the ones there are do the work
    }
  }
  take(0);
  for (std::thread& other : others) other.join();
}

template <class T>
std::vector<T*> row_pointers(Table<T> storage, Vector<const std::int64_t> slots, std::int64_t columns) {
  require(static_cast<std::int64_t>(storage.shape(1)) >= columns, "the rows of the store are too short");
  require_within(slots, storage.shape(0));
  std::vector<T*> rows(slots.shape(0));
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = storage.data() + slots.data()[k] * storage.shape(1);
  return rows;
}

}  // namespace maxmargin
