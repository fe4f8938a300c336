// Threads that outlive the call that needed them: starting a thread takes longer than many calls last.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace maxmargin {

// Threads shared by all callers of the process. A caller offers a task to some of them and works on it, too, so that a
// task ends also if all threads are busy elsewhere, or none could be started. Threads without a task wait for a moment
// with the processor, then offer it to others, and sleep when nothing comes; none is ever ended before the process.
class ThreadPool {
 public:
  // Call run(id) with id = 0 on this thread and with ids 1 … at most `helpers` on others that are free in time. When it
  // returns, all calls have ended. `run` must not throw.
  template <class Run> void share(int helpers, const Run& run) {
    Task task{[](const void* context, int id) { (*static_cast<const Run*>(context))(id); }, &run, helpers};
    offer(task);
    run(0);
    withdraw(task);
  }

  // The pool of this process. A child process has none of its parent's threads, so it starts a pool of its own; the
  // memory of the old one, which other threads may have left in any state, is not touched again.
  static ThreadPool& of_process() {
    std::atomic<ThreadPool*>& current = pool();
#ifndef _WIN32
    static const int registered = pthread_atfork(nullptr, nullptr, [] { pool() = nullptr; });
    (void)registered;
#endif
    ThreadPool* existing = current.load();
    if (existing) return *existing;
    auto* fresh = new ThreadPool;
    if (current.compare_exchange_strong(existing, fresh)) return *fresh;
    delete fresh;  // another thread was faster
    return *existing;
  }

  // Wait for a moment with the processor.
  static void pause() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" : : : "memory");  // waits about as long as x86's pause; a yield of the thread is a system call
#else
    std::this_thread::yield();
#endif
  }

 private:
  struct Task {
    void (*call)(const void*, int);
    const void* context;
    int helpers;      // how many threads may join
    int joined = 0;   // how many have
    int running = 0;  // and have not ended
  };

  // Pauses of a thread that waits for a task with the processor: some tens of microseconds. Then it waits while it
  // offers the processor to others. A fit has sequential parts of up to some milliseconds between two tasks, and to
  // wake many threads takes longer than many tasks last.
  static constexpr int kPauses = 1000;
  static constexpr std::chrono::milliseconds kYielding{2};
  static constexpr int kMostThreads = 1024;

  static std::atomic<ThreadPool*>& pool() {
    static std::atomic<ThreadPool*> current{nullptr};
    return current;
  }

  void offer(Task& task) {
    int sleeping;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(&task);
      offered_.fetch_add(1, std::memory_order_release);
      while (threads_ - busy_ < task.helpers && threads_ < kMostThreads && start_thread()) {}
      sleeping = sleeping_;
    }
    for (int k = 0; k < sleeping && k < task.helpers; ++k) wake_.notify_one();
  }

  void withdraw(Task& task) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (auto at = tasks_.begin(); at != tasks_.end(); ++at)
      if (*at == &task) {
        tasks_.erase(at);
        break;
      }
    ended_.wait(lock, [&] { return task.running == 0; });
  }

  // Signals are for the threads of the interpreter.
  bool start_thread() {
#ifndef _WIN32
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
    bool started = true;
    try {
      std::thread([this] { serve(); }).detach();
      ++threads_;
    } catch (const std::exception&) { started = false; }  // no more threads or memory: those that exist do the work
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
    return started;
  }

  [[noreturn]] void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (Task* task = open_task()) {
        const int id = ++task->joined;
        ++task->running, ++busy_;
        lock.unlock();
        task->call(task->context, id);
        lock.lock();
        --busy_;
        if (--task->running == 0) ended_.notify_all();
        continue;
      }
      const std::uint64_t seen = offered_.load(std::memory_order_relaxed);
      lock.unlock();
      wait_while_offered(seen);
      lock.lock();
      if (offered_.load(std::memory_order_relaxed) != seen) continue;
      ++sleeping_;
      wake_.wait(lock, [&] { return offered_.load(std::memory_order_relaxed) != seen; });
      --sleeping_;
    }
  }

  // Wait for another task than the last one seen, for a while.
  void wait_while_offered(std::uint64_t seen) const {
    for (int k = 0; k < kPauses; ++k, pause())
      if (offered_.load(std::memory_order_acquire) != seen) return;
    const auto end = std::chrono::steady_clock::now() + kYielding;
    while (offered_.load(std::memory_order_acquire) == seen && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }

  Task* open_task() const {
    for (Task* task : tasks_)
      if (task->joined < task->helpers) return task;
    return nullptr;
  }

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<Task*> tasks_;
  std::atomic<std::uint64_t> offered_{0};
  int threads_ = 0, busy_ = 0, sleeping_ = 0;
};

}  // namespace maxmargin
