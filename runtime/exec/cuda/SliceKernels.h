#pragma once

#include "runtime/device/Device.h"
#include "runtime/exec/MergeStates.h"
#include "templates/deft/peers_abi.h"

#include <cstdint>
#include <memory>
#include <string>

namespace deft::exec {

/// The kernels at both ends of an exchange of results by messages (templates/deft/merge_slices.cuh), for one
/// element type.
class SliceKernels {
public:
  /// The kernels come from NVRTC or the cache of kernels.
  static support::Result<SliceKernels> create(const std::shared_ptr<device::Device> &device, StateType type);

  /// What they are compiled of.
  static std::string packSource(StateType type);
  static std::string mergeSource(StateType type);

  /// A message of so many rows, up to the next multiple of 128 bytes.
  static std::int64_t messageBytes(StateType type, std::int64_t rows, int dim);

  StateType type() const { return type_; }

  /// `args` in memory of the device, the watch in the host's, except lanesOfRow, which is found here. Neither
  /// waits; both can be captured.
  support::Result<void> pack(abi::SlicesArgs args, device::cu::Stream stream) const;
  support::Result<void> merge(abi::SlicesArgs args, device::cu::Stream stream) const;

private:
  SliceKernels(device::Kernel pack, device::Kernel merge, StateType type, int blocks)
      : pack_(std::move(pack)), merge_(std::move(merge)), type_(type), mostBlocks_(blocks) {}

  device::Kernel pack_, merge_;
  StateType type_;
  int mostBlocks_; ///< one for each multiprocessor: more would have too little to do
};

} // namespace deft::exec
