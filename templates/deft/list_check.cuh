#pragma once

#include "deft/select_abi.h"

/// Checks lists from a caller before a kernel follows them, for callers that suspect an error. One block for
/// each list.
namespace deft {

class ListCheck {
public:
  static constexpr int kThreads = 128; ///< of a block

  __device__ __forceinline__ explicit ListCheck(const abi::ListCheckArgs &args) : args_(args) {}

  /// Called by all threads of the launch.
  __device__ __forceinline__ void check() const {
    const auto query = static_cast<unsigned>(blockIdx.x);
    const int *const list = args_.lists + static_cast<long long>(query) * args_.budget;
    for (int i = static_cast<int>(threadIdx.x); i < args_.budget; i += kThreads)
      if (const int slot = list[i]; slot < -1 || slot >= args_.slots)
        *args_.wrong = static_cast<unsigned long long>(static_cast<unsigned>(slot)) << 32 | (query + 1u);
  }

private:
  const abi::ListCheckArgs &args_;
};

} // namespace deft
