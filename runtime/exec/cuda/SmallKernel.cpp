#include "runtime/exec/cuda/SmallKernel.h"

#include "compiler/target/Target.h"
#include "runtime/module_cache/CompileKernels.h"

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

Result<device::Kernel> loadSmallKernel(const std::shared_ptr<device::Device> &device,
                                       const std::string &entry, const std::string &source, int threads) {
  const device::DeviceFacts &facts = device->facts();
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  if (!target)
    return Error{ErrorCode::Environment, facts.name + " is too old", "compute capability 8.0 is the least"};
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  const auto cache = module_cache::CubinCache::openDefault();
  auto compiled = module_cache::compileKernel(cache.get(), **nvrtc, entry, source, target->arch);
  if (!compiled)
    return compiled.error();
  return device::Kernel::load(device, compiled->cubin, entry, threads, 0);
}

} // namespace deft::exec
