#pragma once

#include "runtime/device/Device.h"
#include "runtime/exec/MergeStates.h"

#include <memory>
#include <string>

namespace deft::exec {

/// An element type in device code, and in names of entries.
const char *elementName(StateType type);
const char *elementSuffix(StateType type);

/// The kernel that makes one of partial attentions of the same rows, for one element type. Immutable: all
/// threads and streams may use it.
class StateMerge {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<StateMerge> create(const std::shared_ptr<device::Device> &device, StateType type);

  /// What the kernel is compiled of.
  static std::string source(StateType type);

  /// Elements of 16 bytes: `dim` is a multiple of it.
  static constexpr int piece(StateType type) { return 16 / bytesOf(type); }

  /// Lanes of a warp that share a row of `dim` elements, a piece each at a time.
  static int lanesOfRow(StateType type, int dim);

  StateType type() const { return type_; }

  /// `args` in memory of the device, except lanesOfRow, which this computes. Waits for nothing.
  support::Result<void> launch(abi::StatesArgs args, device::cu::Stream stream) const;

private:
  StateMerge(device::Kernel kernel, StateType type) : kernel_(std::move(kernel)), type_(type) {}

  device::Kernel kernel_;
  StateType type_;
};

} // namespace deft::exec
