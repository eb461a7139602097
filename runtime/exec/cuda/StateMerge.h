#pragma once

#include "runtime/device/Device.h"
#include "runtime/exec/MergeStates.h"

#include <memory>
#include <string>

namespace deft::exec {

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

  StateType type() const { return type_; }

  /// `args` in memory of the device, but for lanesOfRow, which is found here. Waits for nothing.
  support::Result<void> launch(abi::StatesArgs args, device::cu::Stream stream) const;

private:
  StateMerge(device::Kernel kernel, StateType type) : kernel_(std::move(kernel)), type_(type) {}

  device::Kernel kernel_;
  StateType type_;
};

} // namespace deft::exec
