// Files mapped into memory for reading, whose pages may be lost while they are mapped.
//
// If another process truncates a mapped file, or the disk fails, the next access to a lost page raises SIGBUS, which
// ends the process. Here a handler puts zeros in the place of the lost page and all after it, and notes that; the
// reader asks `lost` after its pass. Faults outside of these mappings go to the handler that was there before.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>

namespace maxmargin {

class MappedFile {
 public:
  // Maps the first `size` bytes of a file; throws if it cannot be mapped, or too many files are.
  MappedFile(int descriptor, std::size_t size) : size_(size) {
    static std::once_flag installed;
    std::call_once(installed, install);
    void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) throw std::runtime_error("the file cannot be mapped into memory");
    data_ = static_cast<const std::uint8_t*>(data);
    for (Range& range : ranges()) {
      bool free = false;
      if (!range.taken.compare_exchange_strong(free, true)) continue;
      range.lost = false;
      range.first = reinterpret_cast<std::uintptr_t>(data_);
      range.last = range.first + size;
      range_ = &range;
      return;
    }
    munmap(data, size);
    throw std::runtime_error("too many files are mapped into memory");
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    range_->last = 0;
    range_->first = 0;
    munmap(const_cast<std::uint8_t*>(data_), size_);
    range_->taken = false;
  }

  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool lost() const { return range_->lost; }

 private:
  struct Range {
    std::atomic<bool> taken{false}, lost{false};
    std::atomic<std::uintptr_t> first{0}, last{0};
  };
  static constexpr int kMostFiles = 256;

  struct Ranges {
    Range range[kMostFiles];
    Range* begin() { return range; }
    Range* end() { return range + kMostFiles; }
  };
  static Ranges& ranges() {
    static Ranges all;
    return all;
  }
  static struct sigaction& previous() {
    static struct sigaction action;
    return action;
  }
  static std::uintptr_t& page() {
    static std::uintptr_t size = 4096;
    return size;
  }

  static void install() {
    page() = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    ranges();  // constructed before the handler needs it
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, nullptr, &previous());
    sigaction(SIGBUS, &action, nullptr);
  }

  static void handle(int number, siginfo_t* info, void* context) {
    const int error = errno;
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (Range& range : ranges()) {
      const std::uintptr_t first = range.first, last = range.last;
      if (at < first || at >= last) continue;
      const std::uintptr_t begin = at / page() * page();
      range.lost = true;
      void* zeros =
          mmap(reinterpret_cast<void*>(begin), last - begin, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      errno = error;
      if (zeros != MAP_FAILED) return;
    }
    if (previous().sa_flags & SA_SIGINFO)
      previous().sa_sigaction(number, info, context);
    else if (previous().sa_handler != SIG_DFL && previous().sa_handler != SIG_IGN)
      previous().sa_handler(number);
    else
      signal(SIGBUS, SIG_DFL);  // the access fails once more, and ends the process
  }

  const std::uint8_t* data_;
  std::size_t size_;
  Range* range_ = nullptr;
};

}  // namespace maxmargin
