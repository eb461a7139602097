#include "runtime/program/CpuConfig.h"

#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/DefaultConfig.h"

namespace deft::program {

support::Result<config::Config> cpuConfig(const spec::Variant &variant, int threads) {
  auto config = kernels::defaultConfig(variant, nullptr);
  if (!config)
    return config;
  config->cost = config::processorPrices(threads);
  if (!variant.schedule || variant.schedule->partitions.empty())
    config->partition = spec::Partition::Auto;
  return config;
}

} // namespace deft::program
