#include "runtime/exec/cuda/DeviceMark.h"

#include <atomic>
#include <cstdint>

namespace deft::exec {

support::Result<DeviceMark> DeviceMark::create(const std::shared_ptr<device::Device> &device,
                                               const std::string &what) {
  auto memory = std::make_shared<device::HostMemory>(device);
  if (auto reserved = memory->reserve(sizeof(std::uint64_t), what); !reserved)
    return reserved.error();
  return DeviceMark(std::move(memory));
}

unsigned long long DeviceMark::take() const {
  return memory_->as<std::atomic<std::uint64_t>>()->exchange(0, std::memory_order_acq_rel);
}

std::optional<DeviceMark::Noted> DeviceMark::takeNoted() const {
  const unsigned long long noted = take();
  if (noted == 0)
    return {};
  return Noted{static_cast<int>(noted & 0xffffffff) - 1, static_cast<int>(noted >> 32)};
}

} // namespace deft::exec
