// Tests of the division of work among threads.
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "check.hpp"
#include "parallel.hpp"

using namespace maxmargin;

namespace {

// An exception of any thread is thrown again by the caller's thread, and only after all threads have ended.
void test_parallel_exceptions() {
  for (int threads : {1, 2, 5})
    for (std::int64_t failing : {0, 3, 99}) {
      std::atomic<int> running{0};
      bool caught = false;
      try {
        in_parallel(threads, 100, 1, [&](std::int64_t k, std::int64_t, int) {
          ++running;
          if (k >= failing) {
            --running;
            throw std::runtime_error("of a worker");
          }
          --running;
        });
      } catch (const std::runtime_error&) { caught = true; }
      check(caught && running == 0, "an exception of a worker thread reaches the caller");
    }
}

void test_chunks() {
  std::atomic<std::int64_t> sum{0};
  in_parallel(3, 100, 7, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
  check(sum == 100, "all chunks are taken once");
}

}  // namespace

void test_parallel() {
  test_parallel_exceptions();
  test_chunks();
}
