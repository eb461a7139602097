#include "compiler/kernels/DefaultConfig.h"
#include "compiler/spec/Limits.h"

#include <algorithm>
#include <optional>
#include <vector>

/// A CPU's vector code: threads that take items of any size, with no kernel of their own for a phase. See
/// compiler/codegen/cpu.
namespace deft::kernels {
namespace {

using support::Result;
using Site = PhaseSite;

constexpr int kMost = 4096; ///< rows, or tokens

std::string rangeText(const char *name, int value) {
  return std::string(name) + " is " + std::to_string(value) + ", not between 1 and " + std::to_string(kMost);
}
bool isInRange(int value) { return value >= 1 && value <= kMost; }

constexpr PhaseRule kRules[] = {
    {"rows", [](const Site &site) { return isInRange(site.phase.tileQ); },
     [](const Site &site) { return rangeText("tile_q", site.phase.tileQ); }, nullptr},
    // It has no tiles of tokens, but an order of tokens may be by them.
    {"tokens", [](const Site &site) { return isInRange(site.phase.tileKv); },
     [](const Site &site) { return rangeText("tile_kv", site.phase.tileKv); }, nullptr},
};

/// By prices that say no row_step of their own, which are a GPU's.
int paddedRows(const PhaseConfig &phase, int rows) { return std::max(phase.tileQ, rows); }

TileCost tileCost(const PhaseConfig &, int, const config::CostCoefficients &cost) {
  return {.gflops = cost.blockGflops};
}

/// Of a shape that GPUs know, one that costs about the same: hooks of K, which they apply to some rows alone,
/// aside.
KernelShape shapeOfGpu(KernelShape shape) {
  shape.has.key = false;
  const auto &tensors = shape.tensors;
  if (!tensors.areAlike())
    shape.tensors = spec::Tensors::alike(std::min(std::max(tensors.k.dim, tensors.v.dim), spec::kMaxHeadDim));
  return shape;
}

bool holdQueries(const KernelShape &shape, std::span<const spec::PhaseSpec> given) {
  return std::all_of(given.begin(), given.end(), [&](const spec::PhaseSpec &phase) {
    const auto holds = [&](int rows) { return rows >= shape.ratio(); };
    return !phase.tileQ || std::any_of(phase.tileQ->values.begin(), phase.tileQ->values.end(), holds);
  });
}

/// A schedule that no GPU takes, as it is written: why not is said where there is a GPU.
std::vector<PhaseConfig> asWritten(const KernelShape &shape, std::span<const spec::PhaseSpec> given) {
  const auto valuesOf = [](const std::optional<spec::TuneList> &list) {
    return list ? list->values : std::vector{64};
  };
  std::vector<PhaseConfig> phases;
  for (const spec::PhaseSpec &phase : given)
    phases.push_back({.name = phase.name,
                      .rowsAbove = phase.rowsAbove.value_or(-1),
                      .family = config::Family::Cpu,
                      .tileQ = rowsThatHold(shape, valuesOf(phase.tileQ)).front(),
                      .tileKv = valuesOf(phase.tileKv).front()});
  return phases;
}

/// Items are cut as for a GPU without much memory: its phases, with numbers that mean nothing here.
Result<std::vector<PhaseConfig>> scheduled(const KernelShape &shape, std::span<const spec::PhaseSpec> given,
                                           const target::Target *) {
  auto chosen = phasesOfAnyGpu(shapeOfGpu(shape), given);
  if (!chosen && !given.empty() && holdQueries(shape, given))
    return asWritten(shape, given);
  if (chosen)
    for (PhaseConfig &phase : *chosen)
      phase.family = config::Family::Cpu;
  return chosen;
}

TunedPhase tuned(std::vector<int> tileQ) {
  return {.phase = {.name = "tiles", .family = config::Family::Cpu, .tileQ = 64},
          .rowsAbove = {},
          .tileQ = std::move(tileQ),
          .tileKv = {},
          .stages = {},
          .warps = {}};
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  return {{"cpu", {tuned(rowsThatHold(shape, {16, 32, 64, 128, 256}))}}};
}

/// Journals have one value of each number that means nothing.
TunedPhase tunedOfSchedule(const KernelShape &shape) {
  return {.phase = {.name = {}, .family = config::Family::Cpu},
          .rowsAbove = {},
          .tileQ = rowsThatHold(shape, {16, 32, 64, 128}),
          .tileKv = {32},
          .stages = {2},
          .warps = {2}};
}

} // namespace

constinit const Family cpu{
    .name = "cpu",
    .device = config::DeviceKind::Cpu,
    .mma = {},
    .values = Values::Anywhere,
    .rules = kRules,
    .countsRowsAlone = true,
    .smemBytes = nullptr,
    .registers = nullptr,
    .blocksAtOnce = {},
    .canDeal = false,
    .mostWaves = 1,
    .readsByTensorMap = false,
    .whyNotInvariant = {},
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = 0,
    .defaults = nullptr,
    .scheduled = scheduled,
    .tuned = tunedPhases,
    .tunedOfSchedule = tunedOfSchedule,
    .mostTunedRows = 512, // the sums of as many fill the second-level cache of a core
    .oddness = nullptr,
};

} // namespace deft::kernels
