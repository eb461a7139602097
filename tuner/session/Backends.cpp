#include "runtime/program/CpuConfig.h"
#include "tuner/session/Tune.h"

namespace deft::session {

using config_cache::DeviceKey;
using support::Error;
using support::ErrorCode;
using support::Result;

Result<Backend> cpuBackend(const program::Program &program, int threads) {
  auto kernel = program.cpuKernel();
  if (!kernel)
    return kernel.error();
  const spec::Variant &variant = program.variant();
  Backend backend;
  backend.open = [&variant, kernel = *kernel, threads] { return measure::openCpu(variant, kernel, threads); };
  backend.untuned = [&variant, threads](const DeviceKey &) -> Result<std::vector<config::Config>> {
    auto config = program::cpuConfig(variant, threads);
    if (!config)
      return config.error();
    return std::vector{std::move(*config)};
  };
  return backend;
}

Result<Backend> cudaBackend(const program::Program &program) {
  auto source = program.source();
  if (!source)
    return source.error();
  Backend backend;
  backend.open = [&program] { return measure::openCuda(program.variant()); };
  backend.untuned = [&program](const DeviceKey &key) -> Result<std::vector<config::Config>> {
    if (const target::Target *target = targetOf(key))
      return program.untunedConfigs(target->major, target->minor);
    return Error{ErrorCode::Environment, "no kernels for a GPU of architecture " + key.arch,
                 "deftc knows " + target::targetNames()};
  };
  backend.source = std::move(*source);
  return backend;
}

} // namespace deft::session
