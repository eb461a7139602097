#include "runtime/api/Gpu.h"

#include "compiler/kernels/DefaultConfig.h"
#include "runtime/api/InvariantConfig.h"
#include "runtime/api/Sized.h"
#include "runtime/api/Tree.h"
#include "runtime/device/Driver.h"
#include "runtime/program/KernelChoice.h"
#include "runtime/tree/CachePlacement.h"

#include <algorithm>

using namespace deft;
using namespace deft::api;

namespace {

const char *architectureOf(const device::DeviceFacts &facts) {
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  return target ? target->arch.data() : "";
}

deft_gpu_facts factsOf(const device::DeviceFacts &facts) {
  deft_gpu_facts known{};
  known.size = sizeof known;
  known.name = facts.name.c_str();
  known.architecture = architectureOf(facts);
  known.memory_bytes = facts.memoryBytes;
  known.index = facts.ordinal;
  known.capability_major = facts.major;
  known.capability_minor = facts.minor;
  known.multiprocessors = facts.multiprocessors;
  return known;
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
  return withWidestPhase(std::move(config));
}

/// For trees like this one.
Result<package::KernelSet> kernelsFor(const deft_gpu &gpu, const Attention &attention,
                                      const std::shared_ptr<const config_cache::ConfigCache> &configs,
                                      const deft_tree &tree) {
  auto placed = tree::placedTree(tree.tree(), attention.variant().cache.pageSize);
  if (!placed)
    return placed.error();
  auto choice = program::chooseKernels(attention.program, gpu.device->facts(), configs, *placed);
  if (!choice)
    return choice.error();
  return std::move(choice->kernels);
}

Result<std::shared_ptr<const exec::CudaParams>> uploadParams(const deft_gpu &gpu, const deft_params &params) {
  const auto given = params.all();
  if (!given)
    return given.error();
  std::vector<exec::ParamValue> values;
  for (const exec::ParamValue *value : *given)
    values.push_back(*value);
  auto uploaded = exec::CudaParams::upload(gpu.device, params.variant(), values);
  if (!uploaded)
    return uploaded.error();
  return std::shared_ptr<const exec::CudaParams>(std::move(*uploaded));
}

/// What is small of them.
std::shared_ptr<const std::vector<exec::ParamValue>> valuesOf(const deft_params &params) {
  auto values = std::make_shared<std::vector<exec::ParamValue>>();
  for (std::size_t i = 0; i < params.values.size(); ++i)
    values->push_back(params.variant().params[i].isSizedByRun()
                          ? exec::ParamValue()
                          : params.values[i].value_or(exec::ParamValue()));
  return values;
}

Result<std::unique_ptr<deft_gpu_attention>> load(const deft_gpu &gpu, const deft_attention &attention,
                                                 const deft_gpu_load_options &options) {
  const program::Program &program = attention.of->program;
  const device::DeviceFacts &facts = gpu.device->facts();
  const deft_params given = options.params ? *options.params : deft_params(attention);
  if (auto checked = given.checkIsOf(*attention.of, "deft_gpu_load_options::params"); !checked)
    return checked.error();
  const bool areAllGiven = given.all().ok(); // else runs are with others
  auto params = uploadParams(gpu, given);
  if (areAllGiven && !params)
    return params.error();
  const bool isInvariant = options.is_invariant != 0;
  auto config = program.untunedConfig(facts.major, facts.minor);
  if (config && isInvariant)
    config = invariantConfig(program.variant(), std::move(*config));
  if (!config)
    return config.error();
  const auto configs = attention.of->configs->of(config_cache::DeviceKey::ofGpu(facts));
  auto kernels = Result<package::KernelSet>(Error{});
  if (options.typical_tree && !isInvariant)
    kernels = kernelsFor(gpu, *attention.of, configs, *options.typical_tree);
  std::string warning; // a cache that cannot be written costs time at the next load, no more
  if (!kernels)        // no tree to choose for, or what was chosen cannot be made
    kernels = program.cudaKernels(facts.major, facts.minor, *config, warning, &configs->sparse());
  if (!kernels)
    return kernels.error();
  auto loaded = exec::CudaKernels::load(gpu.device, program.variant(), *kernels,
                                        configs->sparse().cutsFor(program.variant(), *kernels));
  if (!loaded)
    return loaded.error();
  return std::make_unique<deft_gpu_attention>(gpu, attention, std::move(*loaded), std::move(params),
                                              given.reach(), valuesOf(given));
}

} // namespace

deft_status deft_gpu_list(deft_gpus **gpus) {
  clear(gpus);
  return call({{"gpus", gpus}}, [&]() -> Result<void> {
    const auto driver = device::Driver::load();
    if (!driver)
      return driver.error();
    const int count = (*driver)->deviceCount();
    Made<deft_gpus> made;
    auto **const each = made.add<deft_gpu_facts *>(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      const auto facts = device::lookAt(**driver, ordinal);
      if (!facts)
        return facts.error();
      auto *const one = each[ordinal] = made.add<deft_gpu_facts>();
      *one = factsOf(*facts);
      one->name = made.text(facts->name);
      one->architecture = made.text(one->architecture);
    }
    made->size = sizeof(deft_gpus);
    made->count = static_cast<std::size_t>(count);
    made->gpus = each;
    *gpus = made.release();
    return {};
  });
}

deft_status deft_gpu_open(int32_t index, deft_gpu **gpu) {
  return make({}, gpu, [&]() -> Result<std::unique_ptr<deft_gpu>> {
    auto device = device::Device::open(index);
    if (!device)
      return device.error();
    return std::make_unique<deft_gpu>(std::move(*device));
  });
}

void deft_gpu_destroy(deft_gpu *gpu) { delete gpu; }

deft_status deft_gpu_get_facts(const deft_gpu *gpu, deft_gpu_facts *facts) {
  return call({{"gpu", gpu}, {"facts", facts}},
              [&] { return writeSized("deft_gpu_facts", factsOf(gpu->device->facts()), facts); });
}

deft_status deft_gpu_attention_load(const deft_gpu *gpu, const deft_attention *attention,
                                    const deft_gpu_load_options *options, deft_gpu_attention **loaded) {
  return make({{"gpu", gpu}, {"attention", attention}}, loaded,
              [&]() -> Result<std::unique_ptr<deft_gpu_attention>> {
                const auto known = readSized("deft_gpu_load_options", options);
                return known ? load(*gpu, *attention, *known) : known.error();
              });
}

deft_status deft_gpu_attention_with_params(const deft_gpu_attention *attention, const deft_params *params,
                                           deft_gpu_attention **other) {
  return make({{"attention", attention}, {"params", params}}, other,
              [&]() -> Result<std::unique_ptr<deft_gpu_attention>> {
                if (auto checked = params->checkIsOf(*attention->attention.of); !checked)
                  return checked.error();
                auto uploaded = uploadParams(attention->gpu, *params);
                if (!uploaded)
                  return uploaded.error();
                auto made = std::make_unique<deft_gpu_attention>(*attention);
                made->params = std::move(uploaded);
                made->reach = params->reach();
                made->values = valuesOf(*params);
                return made;
              });
}

void deft_gpu_attention_destroy(deft_gpu_attention *attention) { delete attention; }

const deft_attention *deft_gpu_attention_get_attention(const deft_gpu_attention *attention) {
  return ask<const deft_attention *>({"attention", attention}, nullptr,
                                     [&] { return &attention->attention; });
}

const deft_gpu *deft_gpu_attention_get_gpu(const deft_gpu_attention *attention) {
  return ask<const deft_gpu *>({"attention", attention}, nullptr, [&] { return &attention->gpu; });
}
