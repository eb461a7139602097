#pragma once

#include "runtime/exec/MergeStates.h"
#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/peers_abi.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace deft::exec {

/// The kernel with which GPUs of one host merge the results of one tree through each other's memory
/// (templates/deft/merge_peers.cuh), for one element type and one rank. Launches follow each other on one
/// stream; all ranks must launch equally often.
class PeerMerge {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<PeerMerge> create(const std::shared_ptr<device::Device> &device, StateType type);

  /// The source text of the kernel.
  static std::string source(StateType type);

  /// Bytes of one buffer of results, and of a rank's memory, which must be zeros before the first launch.
  static std::int64_t bufferBytes(StateType type, std::int64_t rows, int dim);
  static std::int64_t memoryBytes(StateType type, std::int64_t rows, int dim) {
    return static_cast<std::int64_t>(sizeof(abi::PeerMemory)) + 2 * bufferBytes(type, rows, dim);
  }

  StateType type() const { return type_; }

  /// `args` points to device memory. This sets bufferBytes, which follows from the room of the ranks'
  /// memories, lanesOfRow and late. Does not wait and can be captured.
  support::Result<void> launch(abi::PeersArgs args, device::cu::Stream stream) const;

  /// An error if a launch found a rank late; later launches then do nothing.
  std::optional<support::Error> takeFault() const;

private:
  PeerMerge(device::Kernel kernel, DeviceMark mark, StateType type, int blocks)
      : kernel_(std::move(kernel)), mark_(std::move(mark)), type_(type), mostBlocks_(blocks) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  StateType type_;
  int mostBlocks_; ///< few enough to run all at once
};

} // namespace deft::exec
