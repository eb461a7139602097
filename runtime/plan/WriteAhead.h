#pragma once

#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>

namespace deft::plan {

/// Requests cache lines for writing before they are written, in the order of their addresses.
///
/// After a device has copied memory, the core that wrote it shares the lines. Before it can write there
/// again, it must own each line, and it waits for each line in turn (10 us in a plan of 100 KB:
/// docs/kernels.md#copied-lines).
class WriteAhead {
public:
  WriteAhead(const abi::Run *begin, std::size_t count)
      : next_(reinterpret_cast<const char *>(begin)), end_(reinterpret_cast<const char *>(begin + count)) {}

  /// Requests the lines of `count` runs from `at` on, which are written next, and some lines behind them.
  void ask(const abi::Run *at, std::size_t count) {
    const char *const first = reinterpret_cast<const char *>(at);
    const std::size_t bytes = std::min(count * sizeof(abi::Run), kMost) + kMore;
    const char *const end = first + std::min(static_cast<std::size_t>(end_ - first), bytes);
    for (next_ = std::max(next_, first); next_ < end; next_ += kLine)
      own(next_);
  }

  /// Requests the next few lines; for runs that are written after other work.
  void askLines(int lines) {
    for (; lines > 0 && next_ < end_; --lines, next_ += kLine)
      own(next_);
  }

private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kMore = 4 << 10;  ///< lines behind the requested runs
  static constexpr std::size_t kMost = 16 << 10; ///< of one item: the first-level caches hold no more

  static void own(const char *line) {
#if defined(__x86_64__) // without the processor's name, the builtin requests a shared line here
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, /*rw=*/1);
#endif
  }

  const char *next_, *end_;
};

} // namespace deft::plan
