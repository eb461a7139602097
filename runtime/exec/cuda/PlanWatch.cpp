#include "runtime/exec/cuda/PlanWatch.h"

#include <new>

namespace deft::exec {

support::Result<PlanWatch> PlanWatch::create(std::shared_ptr<device::Device> device) {
  auto memory = std::make_shared<device::HostMemory>(std::move(device));
  if (auto reserved = memory->reserve(sizeof(Words), "the watch of a plan"); !reserved)
    return reserved.error();
  new (memory->as<void>()) Words{};
  return PlanWatch(std::move(memory));
}

} // namespace deft::exec
