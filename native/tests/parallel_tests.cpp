// Tests of the division of work among threads.
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "parallel.hpp"
#include "thread_team.hpp"

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

// Callers share the threads of the process; work may be divided again within a chunk.
void test_concurrent_and_nested_calls() {
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call)
        in_parallel(3, 8, 1, [&](std::int64_t begin, std::int64_t end, int) {
          in_parallel(2, end - begin, 1, [&](std::int64_t first, std::int64_t last, int) { sum += last - first; });
        });
    });
  for (std::thread& caller : callers) caller.join();
  check(sum == 4 * 200 * 8, "concurrent and nested calls do all of their work once");
}

// Every chunk of every pass is taken once, and a pass begins when the one before has ended.
void test_passes_of_a_team() {
  struct Pass {
    std::vector<std::int64_t> counts;
    std::int64_t before;
  };
  for (int chunks : {1, 2, 4, 40}) {
    bool right = true;
    ThreadTeam::with(chunks, [&](const ChunkRunner& runner) {
      Pass pass{std::vector<std::int64_t>(40), 0};
      for (std::int64_t k = 0; k < 5000; ++k) {
        pass.before = k;
        const auto work = [](void* context, std::int64_t chunk) {
          Pass& p = *static_cast<Pass*>(context);
          p.counts[chunk] += 1 + p.before % 3;
        };
        std::vector<std::int64_t> expected = pass.counts;
        for (int c = 0; c < chunks; ++c) expected[c] += 1 + k % 3;
        runner.run(runner.team, work, &pass);
        right = right && pass.counts == expected;
      }
    });
    check(right, "each chunk of a pass is taken once");
  }
}

// Each thread of a call has a number of its own, for its workspace.
void test_thread_numbers() {
  for (int call = 0; call < 200; ++call) {
    std::atomic<int> inside[4] = {};
    std::atomic<bool> alone{true};
    in_parallel(4, 64, 1, [&](std::int64_t, std::int64_t, int thread) {
      if (thread < 0 || thread >= 4 || ++inside[thread] != 1) alone = false;
      if (thread >= 0 && thread < 4) --inside[thread];
    });
    check(alone, "no two threads of a call have the same number at the same time");
  }
}

}  // namespace

void test_parallel() {
  test_parallel_exceptions();
  test_chunks();
  test_concurrent_and_nested_calls();
  test_passes_of_a_team();
  test_thread_numbers();
}
