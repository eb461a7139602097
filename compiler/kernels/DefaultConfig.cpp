#include "compiler/kernels/DefaultConfig.h"

#include "compiler/kernels/Legality.h"

#include <vector>

namespace deft::kernels {
namespace {

using config::Config;
using support::Error;
using support::ErrorCode;
using support::Result;

/// Of the newest family that has kernels for items of every size there.
std::vector<DefaultKernel> defaultKernels(const KernelShape &shape, const target::Target *target,
                                          Families all) {
  const std::vector<const Family *> some = familiesOn(target, all);
  for (auto family = some.rbegin(); family != some.rend(); ++family)
    if ((*family)->defaults)
      if (auto found = (*family)->defaults(shape, target); !found.empty())
        return found;
  return {};
}

bool namesPhases(const spec::Variant &variant) {
  return variant.schedule && !variant.schedule->phases.empty();
}

/// The phases that a schedule names, or none. Families of latent caches have tiles of their own and leave
/// none to schedules: the oldest, which runs wherever a newer one does, says why it has none.
Result<std::vector<PhaseConfig>> scheduledPhases(const KernelShape &shape,
                                                 std::span<const spec::PhaseSpec> given,
                                                 const target::Target *target, Families all) {
  const Family &family = familyOfSchedules(target, all);
  if (readsValuesOf(family, shape.tensors))
    return family.scheduled(shape, given, target);
  if (!given.empty())
    return Error{ErrorCode::Diagnostics,
                 "phase `" + given.front().name + "`: GPUs have no phases to name where v is in k's memory",
                 "leave the phases out of the schedule"};
  for (const Family *other : familiesOn(target, all))
    if (readsValuesOf(*other, shape.tensors))
      for (const TunedPhases &tuned : other->tuned(shape))
        if (auto legal = checkPhase(shape, tuned.phases.front().phase, target, all); !legal)
          return legal.error();
  return Error{ErrorCode::Diagnostics,
               "no kernels of " + std::string(target->arch) + " read values from keys", "use a CPU"};
}

/// What `make` gives for the GPU with the least shared memory for which it gives something; its error for the
/// least of all.
template <typename Make> auto forTightestGpu(const Make &make) {
  const std::vector<const target::Target *> targets = target::tightestFirst();
  auto made = make(targets.front());
  for (auto target = targets.begin() + 1; !made && target != targets.end(); ++target)
    if (auto one = make(*target))
      made = std::move(one);
  return made;
}

} // namespace

Result<Config> defaultConfig(const spec::Variant &variant, const target::Target *target, Families all) {
  const KernelShape shape = KernelShape::of(variant);
  const spec::ScheduleSpec schedule = variant.schedule.value_or(spec::ScheduleSpec());
  Config config;
  if (!schedule.partitions.empty())
    config.partition = schedule.partitions.front();
  if (schedule.chunk)
    config.chunkTokens = schedule.chunk->values.front();
  const auto kernels =
      namesPhases(variant) ? std::vector<DefaultKernel>() : defaultKernels(shape, target, all);
  if (!kernels.empty()) {
    config.phases.push_back(kernels.front().phase);
    config.order = kernels.front().order;
    // Prices are fitted to these kernels. Of others it is not known how often what they say comes true.
    if (schedule.partitions.empty())
      config.partition = spec::Partition::Auto;
  } else {
    auto phases = scheduledPhases(shape, schedule.phases, target, all);
    if (!phases)
      return phases.error();
    config.phases = std::move(*phases);
  }
  if (Result<void> legal = checkConfig(shape, config, target, all); !legal)
    return legal.error();
  return config;
}

Result<std::vector<Config>> defaultConfigs(const spec::Variant &variant, const target::Target *target,
                                           Families all) {
  auto first = defaultConfig(variant, target, all);
  if (!first)
    return first.error();
  std::vector<Config> configs{std::move(*first)};
  if (namesPhases(variant))
    return configs;
  const auto found = defaultKernels(KernelShape::of(variant), target, all);
  for (std::size_t i = 1; i < found.size(); ++i) {
    configs.push_back(Config(configs.front()));
    configs.back().phases = {found[i].phase};
    configs.back().order = found[i].order;
  }
  return configs;
}

Result<Config> defaultConfigOfAnyGpu(const spec::Variant &variant, Families all) {
  return forTightestGpu([&](const target::Target *target) { return defaultConfig(variant, target, all); });
}

Result<std::vector<PhaseConfig>> phasesOfAnyGpu(const KernelShape &shape,
                                                std::span<const spec::PhaseSpec> given, Families all) {
  return forTightestGpu([&](const target::Target *target) -> Result<std::vector<PhaseConfig>> {
    if (given.empty())
      if (const auto kernels = defaultKernels(shape, target, all); !kernels.empty())
        return std::vector{kernels.front().phase};
    return scheduledPhases(shape, given, target, all);
  });
}

} // namespace deft::kernels
