// Threads that divide many short passes among each other, one after another.
//
// A pass of a pair step lasts some microseconds, less than it takes to wake a thread. The threads of a team wait for
// the next pass with the processor. A pass consists of chunks, of which each thread does its own, whose memory is in
// the cache of its processor. The leader also takes those that others have not begun after a moment: a pass ends also
// if they do not get a processor in time. Other threads never read what belongs to another chunk, since every such
// access takes as long as a short pass. Results must not depend on which thread takes which chunk.
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
  // Pauses of the leader before it takes a chunk that no thread has begun: about as long as a pass.
  static constexpr int kPatience = 40;
  static constexpr int kPausesPerYield = 2000;  // a thread that waits longer offers its processor to others

  // The last pass in which a chunk was taken, and the last one in which its work has ended. Each is on a cache line of
  // its own: the first stays with its thread as long as that is in time, the second goes to the leader once a pass.
  struct Chunk {
    alignas(64) std::atomic<std::uint64_t> taken{0};
    alignas(64) std::atomic<std::uint64_t> done{0};
    bool late = false;  // whether the leader took it in the last pass; for the leader only
  };

  explicit ThreadTeam(int chunks) : chunks_(static_cast<std::size_t>(chunks)) {}

  void run(ChunkRunner::Work work, void* context) {
    work_ = work;
    context_ = context;
    const std::uint64_t pass = pass_.load(std::memory_order_relaxed) + 1;
    pass_.store(pass, std::memory_order_release);
    work(context, 0);
    for (std::size_t k = 1; k < chunks_.size(); ++k) {
      Chunk& chunk = chunks_[k];
      bool taken = chunk.late && take(chunk, pass, k);
      for (int pauses = 0; !taken && chunk.done.load(std::memory_order_acquire) != pass; ++pauses) {
        if (pauses == kPatience) taken = take(chunk, pass, k);
        wait(pauses);
      }
      chunk.late = taken;
    }
  }

  // Do the work of a chunk, unless another thread has begun it. The pass of a chunk is that before, unless it is taken
  // or this thread is late for a pass that has ended. The work is read after the chunk is taken: until that has ended,
  // no other pass begins.
  bool take(Chunk& chunk, std::uint64_t pass, std::size_t number) {
    std::uint64_t before = pass - 1;
    if (!chunk.taken.compare_exchange_strong(before, pass, std::memory_order_relaxed)) return false;
    work_(context_, static_cast<std::int64_t>(number));
    chunk.done.store(pass, std::memory_order_release);
    return true;
  }

  void serve(int id) {
    const auto number = static_cast<std::size_t>(id);
    std::uint64_t last = 0;
    for (int pauses = 0; !ended_.load(std::memory_order_acquire); ++pauses) {
      const std::uint64_t pass = pass_.load(std::memory_order_acquire);
      if (pass != last) {
        take(chunks_[number], pass, number);
        last = pass;
        pauses = 0;
      }
      wait(pauses);
    }
  }

  static void wait(int pauses) {
    if (pauses % kPausesPerYield == kPausesPerYield - 1)
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
