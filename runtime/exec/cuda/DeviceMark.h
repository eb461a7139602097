#pragma once

#include "runtime/device/HostMemory.h"

#include <memory>
#include <optional>
#include <string>

namespace deft::exec {

/// A word in the host's memory in which a kernel notes what is wrong, whoever is still looking: which one it
/// is, plus one, below 32 bits and a value of it above. Any thread may call anything.
class DeviceMark {
public:
  /// `what` names it where memory cannot be had.
  static support::Result<DeviceMark> create(const std::shared_ptr<device::Device> &device,
                                            const std::string &what);

  unsigned long long *onDevice() const { return memory_->onDevice<unsigned long long>(); }

  /// As it was noted last; 0: nothing was. Forgets it.
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
