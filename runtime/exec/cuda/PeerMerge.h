#pragma once

#include "runtime/exec/MergeStates.h"
#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/peers_abi.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace deft::exec {

/// The kernel by which GPUs of one host merge results of one tree through each other's memory
/// (templates/deft/merge_peers.cuh), for one element type and one rank. Launches follow each other on one
/// stream; all ranks make as many.
class PeerMerge {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<PeerMerge> create(const std::shared_ptr<device::Device> &device, StateType type);

  /// What the kernel is compiled of.
  static std::string source(StateType type);

  /// Bytes of a buffer of results, and of a rank's memory, which is zeros before the first launch.
  static std::int64_t bufferBytes(StateType type, std::int64_t rows, int dim);
  static std::int64_t memoryBytes(StateType type, std::int64_t rows, int dim) {
    return static_cast<std::int64_t>(sizeof(abi::PeerMemory)) + 2 * bufferBytes(type, rows, dim);
  }

  StateType type() const { return type_; }

  /// `args` in memory of the device, except bufferBytes, which is given by the room of all ranks' memories,
  /// lanesOfRow and late, which are found here. Waits for nothing, can be captured.
  support::Result<void> launch(abi::PeersArgs args, device::cu::Stream stream) const;

  /// That a rank was late, once a launch has noticed; later launches do nothing.
  std::optional<support::Error> takeFault() const;

private:
  PeerMerge(device::Kernel kernel, DeviceMark mark, StateType type, int blocks)
      : kernel_(std::move(kernel)), mark_(std::move(mark)), type_(type), mostBlocks_(blocks) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  StateType type_;
  int mostBlocks_; ///< all run at once
};

} // namespace deft::exec
