// Division of work among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

#include "thread_pool.hpp"

namespace maxmargin {

// Call work(begin, end, thread) for chunks of [0, count) on up to `threads` threads. Threads take the next chunk when
// they are free, so the results must not depend on which thread takes which chunk. If a call throws, no more chunks are
// begun, and the first exception is thrown again here, after all threads have ended.
template <class Work> void in_parallel(int threads, std::int64_t count, std::int64_t chunk, Work work) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto take = [&](int thread) {
    try {
      for (std::int64_t begin; (begin = next.fetch_add(chunk)) < count;)
        work(begin, std::min(count, begin + chunk), thread);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(failing);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  const std::int64_t useful = std::min<std::int64_t>(threads, (count + chunk - 1) / chunk);
  if (useful > 1)
    ThreadPool::of_process().share(static_cast<int>(useful) - 1, take);
  else
    take(0);
  if (failure) std::rethrow_exception(failure);
}

// Divide [0, count) into parts of equal size, always in the same way: sums over a part are repeatable.
template <class Work> void in_parts(int parts, std::int64_t count, Work work) {
  in_parallel(parts, parts, 1, [&](std::int64_t part, std::int64_t, int) {
    work(count * part / parts, count * (part + 1) / parts, static_cast<int>(part));
  });
}

}  // namespace maxmargin
