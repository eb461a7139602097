#pragma once

#include "compiler/support/Result.h"
#include "runtime/device/DriverApi.h"
#include "runtime/exec/MergeStates.h"
#include "runtime/peers/Agreement.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace deft::peers {

/// How results move between GPUs. The numbers are those of <deft/c/peers.h>.
enum class Transport {
  Auto = 0,   ///< mapped if every pair of ranks supports it, otherwise NCCL
  Mapped = 1, ///< each reads the others' memory
  Nccl = 2,
};

/// A group's results, and one rank's part of them.
struct GpuGroup {
  int count = 1, rank = 0;
  exec::StateType type = exec::StateType::BF16;
  int queries = 0; ///< the most in a merge
  int heads = 0, dim = 0;
  int headBegin = 0, headCount = 0; ///< the heads that this rank merges
  double timeoutSeconds = 10;
  std::uint64_t version = 0; ///< of the library, as a hash

  std::int64_t rows() const { return std::int64_t{queries} * heads; }
};

/// A merge of one rank, in its GPU's memory.
struct GpuMerge {
  const void *own = nullptr;     ///< [query][head][dim]
  const float *ownLse = nullptr; ///< [query][head], natural; -inf: this rank saw no token
  void *out = nullptr;           ///< [query][headCount][dim]
  float *lse = nullptr;          ///< [query][headCount]; may be null
  int queries = 0;
  int headBegin = 0, headCount = 0; ///< some of the heads that this rank merges
};

/// One rank's end of a group of GPUs, which merges results over all ranks' tokens. All ranks make the same
/// calls, in the same order.
class GpuExchange {
public:
  GpuExchange() = default;
  GpuExchange(const GpuExchange &) = delete;
  GpuExchange &operator=(const GpuExchange &) = delete;
  virtual ~GpuExchange() = default;

  virtual Transport transport() const = 0;

  /// Like Peers::agree. Waits for the others.
  virtual support::Result<void> agree(const Agreement &own, const std::string &kind,
                                      std::span<const int> holders) = 0;

  /// Puts a merge on the stream. It can be captured.
  virtual support::Result<void> merge(const GpuMerge &merge, device::cu::Stream stream) = 0;

  /// Reports a rank that was late for a merge, once a merge has noticed. Does not wait.
  virtual std::optional<support::Error> takeFault() = 0;
};

} // namespace deft::peers
