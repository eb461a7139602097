#include "compiler/config/DefaultConfig.h"

#include "compiler/config/Legality.h"
#include "compiler/config/SharedMemory.h"

#include <algorithm>
#include <optional>

namespace deft::config {
namespace {

using support::Error;
using support::Result;

int roundUp(int value, int step) { return (value + step - 1) / step * step; }

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
  const int fewestRows = roundUp(shape.ratio(), 16);
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
        PhaseConfig phase{spec.name, spec.rowsAbove.value_or(-1), Family::Sm80, tileQ, tileKv, 2, warps};
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
  const int fewestRows = roundUp(shape.ratio(), 16);
  if (fewestRows > 32)
    return {wide};
  wide.rowsAbove = fewestRows;
  return {wide, narrow};
}

/// One kernel of the sm90 family for items of every size: light blocks, which are fastest with two stages, or
/// wide ones, with the deepest ring that fits. None where they do not fit.
std::optional<PhaseConfig> sm90Phase(const KernelShape &shape, const target::Target &target, bool isLight) {
  const PhaseConfig light{"tiles", -1, Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const PhaseConfig deep{"tiles", -1, Family::Sm90, 128, 64, 4, kSm90Warps};
  PhaseConfig shallow = deep;
  shallow.stages = 2;
  const auto candidates = isLight ? std::vector{light} : std::vector{deep, shallow};
  for (const PhaseConfig &phase : candidates)
    if (checkPhase(shape, phase, target))
      return phase;
  return std::nullopt;
}

/// Light blocks where every head has its own keys: rows are many queries then, which have less in common
/// (measured at 32/32, docs/kernels.md#light: 3 % faster in the mean of 15 trees, 15 % slower to 10 %
/// faster); and with 64 columns, of which reading twice costs least (3 to 27 % faster on five trees).
bool prefersLight(const KernelShape &shape) { return shape.ratio() == 1 || shape.headDim <= 64; }

/// The kernel of the family that most trees are served best by. None where every head has its own keys and
/// light blocks do not fit, because two stages of wide ones keep too few bytes of single rows under way (head
/// dim 192, 64 requests at 16/16: 220 us, 173 by family sm80).
std::optional<PhaseConfig> preferredSm90(const KernelShape &shape, const target::Target &target) {
  if (prefersLight(shape)) {
    if (const auto light = sm90Phase(shape, target, /*isLight=*/true))
      return light;
    if (shape.ratio() == 1)
      return std::nullopt;
  }
  return sm90Phase(shape, target, /*isLight=*/false);
}

/// Whether light blocks whose plans deal tokens to warps are among what a tree chooses from: for attention of
/// which no query has rows of two warps, where they deal at all (kDeals, sm90/tile_slot.cuh). Measured were
/// plain, capped and sloped scores, sigmoid and a sliding window; what other scores and masks cost there is
/// not known.
bool dealsInLightBlocks(const KernelShape &shape) {
  return 16 % shape.ratio() == 0 && shape.headDim >= 80 && shape.headDim <= 128;
}

} // namespace

Result<Config> defaultConfig(const spec::Variant &variant, const target::Target &target) {
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
    if (const auto phase = preferredSm90(shape, target)) {
      config.phases.push_back(*phase);
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
  if (Result<void> legal = checkConfig(shape, config, target); !legal)
    return legal.error();
  return config;
}

Result<std::vector<Config>> defaultConfigs(const spec::Variant &variant, const target::Target &target) {
  auto first = defaultConfig(variant, target);
  if (!first)
    return first.error();
  std::vector<Config> all{std::move(*first)};
  const PhaseConfig phase = all.front().phases.front();
  if ((variant.schedule && !variant.schedule->phases.empty()) || phase.family != Family::Sm90)
    return all;
  const KernelShape shape = KernelShape::of(variant);
  if (const auto other = sm90Phase(shape, target, !isLight(phase))) {
    all.push_back(all.front());
    all.back().phases = {*other};
  }
  const auto light = std::find_if(all.begin(), all.end(),
                                  [](const Config &config) { return isLight(config.phases.front()); });
  if (light != all.end() && dealsInLightBlocks(shape)) {
    all.push_back(Config(*light));
    all.back().order = Order::Mixed;
  }
  return all;
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

} // namespace deft::config
