#pragma once

#include "templates/deft/abi.h"

#include <algorithm>
#include <cstddef>

namespace deft::plan {

/// Asks for lines of the cache before they are written, in the order of their addresses.
///
/// What a device has copied the core that wrote it shares with it: who writes there again waits for each line
/// to be the core's own (templates/NOTES.md: 10 us in a plan of 100 KB).
class WriteAhead {
public:
  WriteAhead(const abi::Run *begin, std::size_t count)
      : next_(reinterpret_cast<const char *>(begin)), end_(reinterpret_cast<const char *>(begin + count)) {}

  /// As many runs from `at` on are written next, and then others behind them.
  void ask(const abi::Run *at, std::size_t count) {
    const std::size_t left = static_cast<std::size_t>(end_ - reinterpret_cast<const char *>(at));
    const char *const end =
        reinterpret_cast<const char *>(at) + std::min(left, count * sizeof(abi::Run) + kMore);
    for (; next_ < end; next_ += kLine)
      own(next_);
  }

private:
  static constexpr std::size_t kLine = 64, kMore = 4096;

  static void own(const char *line) {
#if defined(__x86_64__) // where the builtin, unless told of the processor, asks for a line that stays shared
    asm volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, /*rw=*/1);
#endif
  }

  const char *next_, *end_;
};

} // namespace deft::plan
