#include "compiler/kernels/DefaultConfig.h"
#include "runtime/api/AttentionImpl.h"
#include "runtime/api/Convert.h"
#include "runtime/api/GpuImpl.h"
#include "runtime/api/InvariantConfig.h"
#include "runtime/api/ParamsImpl.h"
#include "runtime/api/TreeImpl.h"
#include "runtime/device/Driver.h"
#include "runtime/program/KernelChoice.h"
#include "runtime/tree/CachePlacement.h"

#include <algorithm>

namespace deft {

using api::usage;

namespace {

GpuFacts toPublic(const device::DeviceFacts &facts) {
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  return {facts.ordinal,
          facts.name,
          facts.major,
          facts.minor,
          facts.multiprocessors,
          facts.memoryBytes,
          target ? std::string(target->arch) : ""};
}

/// One kernel, whose sums do not depend on who else is in an item.
support::Result<config::Config> invariantConfig(const spec::Variant &variant, config::Config config) {
  const auto varies = [](const config::PhaseConfig &phase) {
    return !kernels::familyOf(phase).whyNotInvariant.empty();
  };
  if (std::any_of(config.phases.begin(), config.phases.end(), varies)) {
    auto plain = kernels::defaultConfigOfAnyGpu(variant);
    if (!plain)
      return plain;
    config.phases = std::move(plain->phases);
  }
  return api::withWidestPhase(std::move(config));
}

/// For trees like this one.
support::Result<package::KernelSet>
kernelsFor(const Gpu &gpu, const Attention &attention,
           const std::shared_ptr<const config_cache::ConfigCache> &configs, const Tree &tree) {
  auto placed = tree::placedTree(tree.impl().tree(), attention.pageSize());
  if (!placed)
    return placed.error();
  auto choice =
      program::chooseKernels(attention.impl().program, gpu.impl().device->facts(), configs, *placed);
  if (!choice)
    return choice.error();
  return std::move(choice->kernels);
}

Result<void> checkAreOf(const Attention &attention, const Params &params) {
  if (&params.impl().attention.impl() != &attention.impl())
    return usage("the parameters are those of another attention");
  return {};
}

Result<std::shared_ptr<const exec::CudaParams>> uploadParams(const Gpu &gpu, const Attention &attention,
                                                             const Params &params) {
  if (auto checked = checkAreOf(attention, params); !checked)
    return checked.error();
  const auto given = params.impl().all();
  if (!given)
    return given.error();
  std::vector<exec::ParamValue> values;
  for (const exec::ParamValue *value : *given)
    values.push_back(*value);
  auto uploaded = exec::CudaParams::upload(gpu.impl().device, attention.impl().variant(), values);
  if (!uploaded)
    return api::toPublic(uploaded.error());
  return std::shared_ptr<const exec::CudaParams>(std::move(*uploaded));
}

} // namespace

Gpu::Gpu(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
const GpuFacts &Gpu::facts() const { return impl_->facts; }

Result<std::vector<GpuFacts>> Gpu::list() {
  return api::guarded([]() -> Result<std::vector<GpuFacts>> {
    const auto driver = device::Driver::load();
    if (!driver)
      return api::toPublic(driver.error());
    std::vector<GpuFacts> all;
    for (int ordinal = 0; ordinal < (*driver)->deviceCount(); ++ordinal) {
      const auto facts = device::lookAt(**driver, ordinal);
      if (!facts)
        return api::toPublic(facts.error());
      all.push_back(toPublic(*facts));
    }
    return all;
  });
}

Result<Gpu> Gpu::open(int index) {
  return api::guarded([&]() -> Result<Gpu> {
    auto device = device::Device::open(index);
    if (!device)
      return api::toPublic(device.error());
    return Gpu(std::make_shared<const Impl>(Impl{toPublic((*device)->facts()), std::move(*device)}));
  });
}

GpuAttention::GpuAttention(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
const Attention &GpuAttention::attention() const { return impl_->attention; }
const Gpu &GpuAttention::gpu() const { return impl_->gpu; }

Result<GpuAttention> GpuAttention::load(const Gpu &gpu, const Attention &attention,
                                        const GpuLoadOptions &options) {
  return api::guarded([&]() -> Result<GpuAttention> {
    const program::Program &program = attention.impl().program;
    const device::DeviceFacts &facts = gpu.impl().device->facts();
    const Params given = options.params ? *options.params : Params(attention);
    if (auto checked = checkAreOf(attention, given); !checked)
      return checked.error();
    const bool areAllGiven = given.impl().all().ok(); // else runs are with others
    auto params = uploadParams(gpu, attention, given);
    if (areAllGiven && !params)
      return params.error();
    auto config = program.untunedConfig(facts.major, facts.minor);
    if (config && options.invariant)
      config = invariantConfig(program.variant(), std::move(*config));
    if (!config)
      return api::toPublic(config.error());
    const auto configs = attention.impl().configs->of(config_cache::DeviceKey::ofGpu(facts));
    auto kernels = support::Result<package::KernelSet>(support::Error{});
    if (options.typicalTree && !options.invariant)
      kernels = kernelsFor(gpu, attention, configs, *options.typicalTree);
    std::string warning; // a cache that cannot be written costs time at the next load, no more
    if (!kernels)        // no tree to choose for, or what was chosen cannot be made
      kernels = program.cudaKernels(facts.major, facts.minor, *config, warning, &configs->sparse());
    if (!kernels)
      return api::toPublic(kernels.error());
    auto loaded = exec::CudaKernels::load(gpu.impl().device, program.variant(), *kernels,
                                          configs->sparse().cutsFor(program.variant(), *kernels));
    if (!loaded)
      return api::toPublic(loaded.error());
    return GpuAttention(std::make_shared<const Impl>(
        Impl{gpu, attention, std::move(*loaded), std::move(params), given.impl().reach()}));
  });
}

Result<GpuAttention> GpuAttention::withParams(const Params &params) const {
  return api::guarded([&]() -> Result<GpuAttention> {
    auto uploaded = uploadParams(impl_->gpu, impl_->attention, params);
    if (!uploaded)
      return uploaded.error();
    auto impl = std::make_shared<Impl>(*impl_);
    impl->params = std::move(uploaded);
    impl->reach = params.impl().reach();
    return GpuAttention(std::move(impl));
  });
}

} // namespace deft
