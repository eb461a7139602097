#pragma once

#include "deft/abi.h"

/// Checks the pages of a plan's runs before the attend kernels follow them, for callers that suspect a page
/// table that only the device has. One warp for each item.
namespace deft {

class PageCheck {
public:
  static constexpr int kThreads = 128; ///< of a block

  __device__ __forceinline__ explicit PageCheck(const abi::PageCheckArgs &args) : args_(args) {}

  /// Called by all threads of the launch.
  __device__ __forceinline__ void check() const {
    const int thread = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if (thread / 32 >= args_.itemCount)
      return;
    const abi::Item item = args_.items[thread / 32];
    if (item.tokens == 0) // after the end of a list
      return;
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      checkRun(args_.runs[r], thread % 32);
  }

private:
  __device__ __forceinline__ void checkRun(const abi::Run &run, int lane) const {
    if (run.tokens == 0)
      return;
    const int last = (run.location + run.tokens - 1) / args_.pageSize;
    for (int entry = run.location / args_.pageSize + lane; entry <= last; entry += 32) {
      const auto page = static_cast<unsigned>(args_.pageTable[entry]); // negative values become large ones
      if (page >= static_cast<unsigned>(args_.pages))
        *args_.wrong = static_cast<unsigned long long>(page) << 32 | static_cast<unsigned>(entry + 1);
    }
  }

  const abi::PageCheckArgs &args_;
};

} // namespace deft
