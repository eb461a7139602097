#include "runtime/config_cache/VariantLegality.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Legality.h"

#include <algorithm>
#include <utility>

namespace deft::config_cache {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error outside(const std::string &what) { return {ErrorCode::Diagnostics, "the schedule " + what, ""}; }

bool allows(const std::optional<spec::TuneList> &list, int value) {
  return !list || std::find(list->values.begin(), list->values.end(), value) != list->values.end();
}

Result<void> checkPhaseOf(const spec::PhaseSpec &asked, const config::PhaseConfig &phase) {
  const std::string name = "of phase `" + phase.name + "` ";
  if (asked.name != phase.name || asked.rowsAbove.value_or(-1) != phase.rowsAbove)
    return outside("has phase `" + asked.name + "` where the config has `" + phase.name + "`");
  struct Number {
    const char *key;
    const std::optional<spec::TuneList> &list;
    int value;
  };
  for (const Number &number : {Number{"tile_q", asked.tileQ, phase.tileQ},
                               {"tile_kv", asked.tileKv, phase.tileKv},
                               {"stages", asked.stages, phase.stages},
                               {"warps", asked.warps, phase.warps}})
    if (!allows(number.list, number.value))
      return outside(name + "does not list " + number.key + " " + std::to_string(number.value));
  return {};
}

} // namespace

Result<void> checkSchedule(const spec::ScheduleSpec &schedule, const config::Config &config) {
  const auto &partitions = schedule.partitions;
  const auto names = [&](spec::Partition partition) {
    return std::find(partitions.begin(), partitions.end(), partition) != partitions.end();
  };
  if (!partitions.empty() && !names(spec::Partition::Auto) && !names(config.partition))
    return outside("does not list partition `" + config::partitionName(config.partition) + "`");
  if (!allows(schedule.chunk, config.chunkTokens))
    return outside("does not list chunk " + std::to_string(config.chunkTokens));
  if (schedule.phases.empty())
    return {};
  if (schedule.phases.size() != config.phases.size())
    return outside("has " + std::to_string(schedule.phases.size()) + " phases, the config " +
                   std::to_string(config.phases.size()));
  for (std::size_t i = 0; i < config.phases.size(); ++i)
    if (auto checked = checkPhaseOf(schedule.phases[i], config.phases[i]); !checked)
      return checked;
  return {};
}

LegalityCheck legalityFor(const spec::Variant &variant, const target::Target *target) {
  return [&variant, target](const config::Config &config) -> Result<void> {
    if (auto checked = kernels::checkConfig(kernels::KernelShape::of(variant), config, target); !checked)
      return checked;
    return variant.schedule ? checkSchedule(*variant.schedule, config) : Result<void>();
  };
}

Request requestFor(const spec::Variant &variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned) {
  return {VariantSignature::of(variant), treeClass, legalityFor(variant, target),
          kernelHash(kernels::deviceOf(target), variant.tensors), std::move(untuned)};
}

} // namespace deft::config_cache
