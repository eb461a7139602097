#pragma once

#include "runtime/device/SharedMemory.h"
#include "runtime/exec/cuda/PeerMerge.h"
#include "runtime/peers/GpuExchange.h"
#include "runtime/peers/Peers.h"

#include <memory>
#include <vector>

namespace deft::peers {

/// Each rank's memory, mapped for this GPU.
using Memories = std::vector<std::optional<device::SharedMemory>>;

/// Ranks whose GPUs map each other's memory: one launch per merge.
class MappedExchange final : public GpuExchange {
public:
  /// Uses memory of the caller: exec::PeerMerge::memoryBytes for each rank, initially zeros.
  static support::Result<std::unique_ptr<GpuExchange>> create(const std::shared_ptr<device::Device> &device,
                                                              const GpuGroup &group,
                                                              std::span<void *const> memories);
  /// For ranks that have met.
  static support::Result<std::unique_ptr<GpuExchange>> create(const std::shared_ptr<device::Device> &device,
                                                              const GpuGroup &group, Memories memories,
                                                              Peers peers);

  Transport transport() const override { return Transport::Mapped; }
  support::Result<void> agree(const Agreement &own, const std::string &kind,
                              std::span<const int> holders) override;
  support::Result<void> merge(const GpuMerge &merge, device::cu::Stream stream) override;
  std::optional<support::Error> takeFault() override { return merge_.takeFault(); }

private:
  MappedExchange(exec::PeerMerge merge, const abi::PeersArgs &args) : merge_(std::move(merge)), args_(args) {}

  exec::PeerMerge merge_;
  abi::PeersArgs args_; ///< of every merge
  Memories memories_;
  std::optional<Peers> peers_; ///< none: the program has mapped the memory
};

} // namespace deft::peers
