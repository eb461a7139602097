#pragma once

#include "runtime/device/Device.h"
#include "runtime/exec/MergeStates.h"

#include <memory>
#include <string>

namespace deft::exec {

/// The name of an element type in device code, and as the suffix of kernel names.
const char *elementName(StateType type);
const char *elementSuffix(StateType type);

/// The kernel that merges partial attentions of the same rows, for one element type. Immutable: all threads
/// and streams may use it.
class StateMerge {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<StateMerge> create(const std::shared_ptr<device::Device> &device, StateType type);

  /// The source text of the kernel.
  static std::string source(StateType type);

  /// The elements in 16 bytes. `dim` must be a multiple of it.
  static constexpr int piece(StateType type) { return 16 / bytesOf(type); }

  /// The lanes of a warp that share a row of `dim` elements; each handles one piece at a time.
  static int lanesOfRow(StateType type, int dim);

  StateType type() const { return type_; }

  /// `args` points to device memory; this computes lanesOfRow. Does not wait.
  support::Result<void> launch(abi::StatesArgs args, device::cu::Stream stream) const;

private:
  StateMerge(device::Kernel kernel, StateType type) : kernel_(std::move(kernel)), type_(type) {}

  device::Kernel kernel_;
  StateType type_;
};

} // namespace deft::exec
