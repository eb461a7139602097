#include "compiler/kernels/DefaultConfig.h"

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"

#include <algorithm>
#include <optional>

namespace deft::kernels {
namespace {

using config::Config;
using support::Error;
using support::Result;

/// Warps for a tile: one for each 16 rows, more by splitting the tokens too, up to four in all so that a
/// narrow tile still has enough threads to keep the copies going, and until no warp holds the scores of
/// more than 64 tokens.
int warpsFor(int tileQ, int tileKv) {
  const int rowWarps = tileQ / 16;
  const auto tooFew = [&](int warps) { return warps * 2 <= 4 || tileKv / (warps / rowWarps) > 64; };
  int warps = rowWarps;
  while (tooFew(warps) && tileKv % (16 * (warps * 2 / rowWarps)) == 0)
    warps *= 2;
  while (warps * 32 < tileKv)
    warps += rowWarps;
  return warps;
}

/// The deepest ring, up to `most`, that lets two blocks share an SM; where not even two stages do, the
/// deepest that fits alone. Two blocks cover each other's start and end of a unit.
int stagesFor(const KernelShape &shape, PhaseConfig phase, const target::Target &target, int most) {
  for (int limit : {halfSmem(target), target.smemPerBlock})
    for (phase.stages = most; phase.stages >= 2; --phase.stages)
      if (smemBytes(shape.headDim, phase) <= limit)
        return phase.stages;
  return 2;
}

std::vector<int> valuesOf(const std::optional<spec::TuneList> &list, const std::vector<int> &preferred) {
  return list ? list->values : preferred;
}

/// Fills one phase: the first legal combination of what the schedule lists and, where it lists
/// nothing, of what is preferred here. Preferences fall in size, so the last error is the telling one.
Result<PhaseConfig> choosePhase(const KernelShape &shape, const spec::PhaseSpec &spec, bool isWide,
                                const target::Target &target) {
  const int fewestRows = shape.fewestRows();
  std::vector<int> preferredRows{fewestRows};
  if (isWide)
    preferredRows = {std::max(64, fewestRows), std::max(32, fewestRows)};
  const std::vector<int> tileQs = valuesOf(spec.tileQ, preferredRows);
  const std::vector<int> tileKvs = valuesOf(spec.tileKv, {64, 32, 16});
  Error lastError;
  for (int tileKv : tileKvs)
    for (int tileQ : tileQs) {
      const std::vector<int> warpCounts = valuesOf(spec.warps, {warpsFor(std::max(16, tileQ), tileKv)});
      for (int warps : warpCounts) {
        PhaseConfig phase{spec.name, spec.rowsAbove.value_or(-1), config::Family::Sm80, tileQ, tileKv, 2,
                          warps};
        for (int stages : valuesOf(spec.stages, {stagesFor(shape, phase, target, isWide ? 3 : 4)})) {
          phase.stages = stages;
          Result<void> legal = checkPhase(shape, phase, target);
          if (legal)
            return phase;
          lastError = legal.error();
        }
      }
    }
  return lastError;
}

/// Two phases, so that a leaf's few rows do not pay for a tile of 64; one, where a single query
/// already fills more than half of a wide tile.
std::vector<spec::PhaseSpec> preferredPhases(const KernelShape &shape) {
  spec::PhaseSpec wide, narrow;
  wide.name = "wide";
  narrow.name = "narrow";
  const int fewestRows = shape.fewestRows();
  if (fewestRows > 32)
    return {wide};
  wide.rowsAbove = fewestRows;
  return {wide, narrow};
}

/// Of the newest family that has kernels for items of every size there.
std::vector<DefaultKernel> defaultKernels(const KernelShape &shape, const target::Target &target,
                                          Families all) {
  for (auto family = all.rbegin(); family != all.rend(); ++family)
    if ((*family)->defaults)
      if (auto found = (*family)->defaults(shape, target); !found.empty())
        return found;
  return {};
}

bool namesPhases(const spec::Variant &variant) {
  return variant.schedule && !variant.schedule->phases.empty();
}

} // namespace

Result<Config> defaultConfig(const spec::Variant &variant, const target::Target &target, Families all) {
  const KernelShape shape = KernelShape::of(variant);
  Config config;
  std::vector<spec::PhaseSpec> phases;
  if (variant.schedule) {
    const spec::ScheduleSpec &schedule = *variant.schedule;
    if (!schedule.partitions.empty())
      config.partition = schedule.partitions.front();
    if (schedule.chunk)
      config.chunkTokens = schedule.chunk->values.front();
    phases = schedule.phases;
  }
  if (phases.empty()) {
    if (const auto found = defaultKernels(shape, target, all); !found.empty()) {
      config.phases.push_back(found.front().phase);
      config.order = found.front().order;
      // Prices are fitted to these kernels. Of others it is not known how often what they say comes true.
      if (!variant.schedule || variant.schedule->partitions.empty())
        config.partition = spec::Partition::Auto;
    } else {
      phases = preferredPhases(shape);
    }
  }
  for (const spec::PhaseSpec &phase : phases) {
    const bool isWide = phase.rowsAbove.has_value() || phases.size() == 1;
    Result<PhaseConfig> chosen = choosePhase(shape, phase, isWide, target);
    if (!chosen)
      return std::move(chosen).error();
    config.phases.push_back(*chosen);
  }
  if (Result<void> legal = checkConfig(shape, config, target, all); !legal)
    return legal.error();
  return config;
}

Result<std::vector<Config>> defaultConfigs(const spec::Variant &variant, const target::Target &target,
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

Result<Config> defaultConfig(const spec::Variant &variant) {
  std::vector<const target::Target *> tightestFirst;
  for (const target::Target &target : target::targets())
    tightestFirst.push_back(&target);
  std::stable_sort(tightestFirst.begin(), tightestFirst.end(),
                   [](const auto *a, const auto *b) { return a->smemPerBlock < b->smemPerBlock; });
  auto config = defaultConfig(variant, *tightestFirst.front());
  for (std::size_t i = 1; i < tightestFirst.size() && !config; ++i)
    if (auto larger = defaultConfig(variant, *tightestFirst[i])) // the schedule is not for all
      config = std::move(larger);
  return config;
}

} // namespace deft::kernels
