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

Result<void> checkCpuConfig(const kernels::KernelShape &shape, const config::Config &config) {
  constexpr int kMost = 4096; // rows, or tokens
  if (config.phases.empty())
    return Error{ErrorCode::Diagnostics, "a config without phases serves no item", {}};
  if (config.chunkTokens < 0)
    return Error{
        ErrorCode::Diagnostics, "chunk is " + std::to_string(config.chunkTokens) + ", less than 0", {}};
  if (auto priced = config::checkCost(config.cost); !priced)
    return priced;
  int widest = 0;
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    const config::PhaseConfig &phase = config.phases[i];
    const bool isLast = i + 1 == config.phases.size();
    if (isLast ? phase.rowsAbove >= 0 : phase.rowsAbove <= config.phases[i + 1].rowsAbove)
      return Error{ErrorCode::Diagnostics, "the phases do not serve all items, each once", {}};
    // A CPU has no tiles of tokens, but an order of tokens may be by them.
    for (const auto &[name, value] : {std::pair{"tile_q", phase.tileQ}, std::pair{"tile_kv", phase.tileKv}})
      if (value < 1 || value > kMost)
        return Error{ErrorCode::Diagnostics,
                     std::string(name) + " is " + std::to_string(value) + ", not between 1 and " +
                         std::to_string(kMost),
                     {}};
    widest = std::max(widest, phase.tileQ);
  }
  if (widest < shape.ratio())
    return Error{ErrorCode::Diagnostics,
                 "tile_q is " + std::to_string(widest) + ", less than the " + std::to_string(shape.ratio()) +
                     " query heads that share a KV head",
                 {}};
  return {};
}

LegalityCheck legalityFor(const spec::Variant &variant, const target::Target *target) {
  return [&variant, target](const config::Config &config) -> Result<void> {
    const auto shape = kernels::KernelShape::of(variant);
    if (auto checked = target ? kernels::checkConfig(shape, config, *target) : checkCpuConfig(shape, config);
        !checked)
      return checked;
    return variant.schedule ? checkSchedule(*variant.schedule, config) : Result<void>();
  };
}

Request requestFor(const spec::Variant &variant, const TreeClass &treeClass, const target::Target *target,
                   config::Config untuned) {
  const auto kind = target ? DeviceKey::Kind::Gpu : DeviceKey::Kind::Cpu;
  return {VariantSignature::of(variant), treeClass, legalityFor(variant, target), kernelHash(kind),
          std::move(untuned)};
}

} // namespace deft::config_cache
