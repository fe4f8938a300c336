// Threads that divide many short passes among each other, one after another.
//
// A pass of a pair step lasts some microseconds, less than it takes to wake a thread. The threads of a team wait for
// the next pass with the processor. A pass consists of chunks. Each thread begins with a chunk of its own, whose memory
// its processor has in its cache, and then takes those that others have not begun: a pass ends also if they do not get
// a processor in time. Results must not depend on which thread takes which chunk.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "solver_loops.hpp"
#include "thread_pool.hpp"

namespace maxmargin {

class ThreadTeam {
 public:
  // Call lead(runner) on this thread, with others that take part in its passes of so many chunks: one thread a chunk.
  template <class Lead> static void with(int chunks, const Lead& lead) {
    ThreadTeam team(chunks);
    ThreadPool::of_process().share(chunks - 1, [&](int id) {
      if (id > 0) return team.serve(id);
      lead(ChunkRunner{
          [](void* self, ChunkRunner::Work work, void* context) { static_cast<ThreadTeam*>(self)->run(work, context); },
          &team});
      team.ended_.store(true, std::memory_order_release);
    });
  }

 private:
  static constexpr int kPausesPerYield = 2000;  // a thread that waits longer offers its processor to others

  // The last pass in which a chunk was taken, and the last one in which its work has ended, on a cache line of their
  // own: threads that count in one place would wait for each other.
  struct alignas(64) Chunk {
    std::atomic<std::uint64_t> pass{0}, done{0};
  };

  explicit ThreadTeam(int chunks) : chunks_(static_cast<std::size_t>(chunks)) {}

  void run(ChunkRunner::Work work, void* context) {
    work_ = work;
    context_ = context;
    const std::uint64_t pass = pass_.load(std::memory_order_relaxed) + 1;
    pass_.store(pass, std::memory_order_release);
    take_chunks(pass, 0);
    for (const Chunk& chunk : chunks_)
      for (int k = 0; chunk.done.load(std::memory_order_acquire) != pass; ++k) wait(k);
  }

  // The pass of a chunk is that before, unless it is taken or this thread is late for a pass that has ended. The work
  // is read after a chunk is taken: until that has ended, no other pass begins.
  void take_chunks(std::uint64_t pass, std::size_t first) {
    for (std::size_t k = 0; k < chunks_.size(); ++k) {
      const std::size_t chunk = (first + k) % chunks_.size();
      std::uint64_t before = pass - 1;
      if (chunks_[chunk].pass.load(std::memory_order_relaxed) != before) continue;  // cheaper than a failed exchange
      if (!chunks_[chunk].pass.compare_exchange_strong(before, pass, std::memory_order_relaxed)) continue;
      work_(context_, static_cast<std::int64_t>(chunk));
      chunks_[chunk].done.store(pass, std::memory_order_release);
    }
  }

  void serve(int id) {
    std::uint64_t last = 0;
    for (int k = 0; !ended_.load(std::memory_order_acquire); ++k) {
      const std::uint64_t pass = pass_.load(std::memory_order_acquire);
      if (pass != last) {
        take_chunks(pass, static_cast<std::size_t>(id));
        last = pass;
        k = 0;
      }
      wait(k);
    }
  }

  static void wait(int k) {
    if (k % kPausesPerYield == kPausesPerYield - 1)
      std::this_thread::yield();
    else
      ThreadPool::pause();
  }

  std::vector<Chunk> chunks_;
  // On a cache line of their own: what the leader writes.
  alignas(64) std::atomic<std::uint64_t> pass_{0};
  ChunkRunner::Work work_ = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> ended_{false};
};

}  // namespace maxmargin
