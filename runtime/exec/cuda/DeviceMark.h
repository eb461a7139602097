#pragma once

#include "runtime/device/HostMemory.h"

#include <memory>
#include <optional>
#include <string>

namespace deft::exec {

/// A word in host memory where a kernel notes a fault for the host: in the lower 32 bits the index of the
/// faulty thing plus one, in the upper ones a value of it. Any thread may call any function.
class DeviceMark {
public:
  /// `what` names the mark in the error if there is no memory.
  static support::Result<DeviceMark> create(const std::shared_ptr<device::Device> &device,
                                            const std::string &what);

  unsigned long long *onDevice() const { return memory_->onDevice<unsigned long long>(); }

  /// The last noted fault; 0: none. Clears it.
  unsigned long long take() const;

  struct Noted {
    int which;
    int value;
  };
  std::optional<Noted> takeNoted() const;

private:
  explicit DeviceMark(std::shared_ptr<device::HostMemory> memory) : memory_(std::move(memory)) {}

  std::shared_ptr<device::HostMemory> memory_;
};

} // namespace deft::exec
