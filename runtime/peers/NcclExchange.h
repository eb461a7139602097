#pragma once

#include "runtime/device/HostMemory.h"
#include "runtime/device/NcclGroup.h"
#include "runtime/exec/cuda/SliceKernels.h"
#include "runtime/peers/GpuExchange.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace deft::peers {

/// Ranks whose GPUs send each other by NCCL the rows that each of them merges: a launch that packs, NCCL's
/// own, and a launch that merges. NCCL waits for a late rank on the GPU for ever. So a thread watches that
/// merges end, also in replays of a graph, and aborts late ones.
class NcclExchange final : public GpuExchange {
public:
  /// All ranks call it with the same id. Returns when all have, or with an error about a rank that differs,
  /// or that not all ranks arrived within `joinSeconds`.
  static support::Result<std::unique_ptr<GpuExchange>> create(std::shared_ptr<const device::Nccl> nccl,
                                                              const std::shared_ptr<device::Device> &device,
                                                              const GpuGroup &group,
                                                              const device::nccl::Id &id, double joinSeconds);
  ~NcclExchange() override;

  Transport transport() const override { return Transport::Nccl; }
  support::Result<void> agree(const Agreement &own, const std::string &kind,
                              std::span<const int> holders) override;
  support::Result<void> merge(const GpuMerge &merge, device::cu::Stream stream) override;
  std::optional<support::Error> takeFault() override;

private:
  NcclExchange(exec::SliceKernels kernels, const std::shared_ptr<device::Device> &device,
               const GpuGroup &group);

  support::Result<void> compare();
  support::Result<void> reserve();
  std::int64_t messageBytes(int queries, int rank) const;
  void watch();
  std::optional<support::Error> findLate();
  std::optional<support::Error> missing() const;

  GpuGroup group_;
  exec::SliceKernels kernels_;
  std::vector<abi::SlicesArgs::Slice> slices_; ///< of each rank
  std::vector<std::byte *> sent_, received_;   ///< for each rank, from each rank
  device::Buffer messages_, state_;
  device::HostMemory words_; ///< abi::SlicesWatch

  // For the watch, which uses `nccl_` while others exchange.
  std::mutex mutex_;
  std::condition_variable stop_;
  bool isStopping_ = false;
  std::unique_ptr<device::NcclGroup> nccl_;
  std::optional<support::Error> fault_;
  unsigned long long seen_ = 0; ///< the run that had begun at the watch's last check
  std::chrono::steady_clock::time_point since_;
  std::thread watch_;
};

} // namespace deft::peers
