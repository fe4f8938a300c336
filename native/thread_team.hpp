// Threads that divide many short passes among each other, one after another.
//
// A pass of a pair step lasts some microseconds, less than it takes to wake a thread. The threads of a team wait for
// the next pass with the processor. A pass consists of chunks; whoever is free takes the next one, so that a pass ends
// also if other threads do not get a processor in time, and results must not depend on which thread takes which chunk.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "solver_loops.hpp"
#include "thread_pool.hpp"

namespace maxmargin {

class ThreadTeam {
 public:
  // Call lead(runner) on this thread, with up to `helpers` other threads that take part in its passes.
  template <class Lead> static void with(int helpers, const Lead& lead) {
    ThreadTeam team;
    ThreadPool::of_process().share(helpers, [&](int id) {
      if (id > 0) return team.serve();
      lead(ChunkRunner{[](void* self, ChunkRunner::Work work, void* context, std::int64_t chunks) {
                         static_cast<ThreadTeam*>(self)->run(work, context, chunks);
                       },
                       &team});
      team.ended_.store(true, std::memory_order_release);
    });
  }

 private:
  // A ticket is the number of a pass, of its chunks, and of the next chunk. Taking one compares all of it, so that a
  // thread that is late for a pass cannot take a chunk of another. The work is read after a chunk is taken: until that
  // chunk has ended, no other pass begins.
  static constexpr int kChunkBits = 16;
  static constexpr std::uint64_t kChunkMask = (1u << kChunkBits) - 1;
  static constexpr int kPausesPerYield = 2000;  // a thread that waits longer offers its processor to others

  static bool has_chunks(std::uint64_t ticket) { return (ticket & kChunkMask) < (ticket >> kChunkBits & kChunkMask); }

  void run(ChunkRunner::Work work, void* context, std::int64_t chunks) {
    work_ = work;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    ++pass_;
    ticket_.store((pass_ << kChunkBits | static_cast<std::uint64_t>(chunks)) << kChunkBits, std::memory_order_release);
    take_chunks();
    for (int k = 0; done_.load(std::memory_order_acquire) < chunks; ++k) wait(k);
  }

  void take_chunks() {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (has_chunks(ticket)) {
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acquire)) continue;
      work_(context_, static_cast<std::int64_t>(ticket & kChunkMask));
      done_.fetch_add(1, std::memory_order_release);
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  void serve() {
    for (int k = 0; !ended_.load(std::memory_order_acquire); ++k) {
      if (has_chunks(ticket_.load(std::memory_order_relaxed))) {
        take_chunks();
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

  // On cache lines of their own: what the leader writes, what is taken, and what is counted.
  alignas(64) ChunkRunner::Work work_ = nullptr;
  void* context_ = nullptr;
  std::uint64_t pass_ = 0;
  std::atomic<bool> ended_{false};
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::int64_t> done_{0};
};

}  // namespace maxmargin
