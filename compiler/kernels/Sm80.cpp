#include "compiler/kernels/Sm80.h"

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/Occupancy.h"
#include "compiler/kernels/SharedMemory.h"

#include <algorithm>
#include <cmath>
#include <optional>

/// mma.sync on every architecture: warps that load what they compute. See templates/deft/attend_sm80.cuh.
namespace deft::kernels {
namespace {

using support::Error;
using support::Result;
using Site = PhaseSite;

/// Addresses, loop state and the row facts of the hooks, beside the fragments; from resource reports
/// of the shipped specs.
constexpr int kOtherRegisters = 96;
/// What of a hook of K stays from tile to tile: frequencies of a rotation, for one.
constexpr int kKeyHookRegisters = 16;

std::string number(int value) { return std::to_string(value); }

int rowWarps(const Site &site) { return site.phase.tileQ / 16; }
int tokenWarps(const Site &site) { return site.phase.warps / rowWarps(site); }

int registersLeft(const Site &site) {
  return std::min(site.target->registersPerThread, site.target->registersPerSm / (32 * site.phase.warps));
}

/// Whether K and V are converted as they are loaded.
bool converts(const spec::Tensors &tensors) { return tensors.k.elementBytes() == 1; }

constexpr PhaseRule kRules[] = {
    kTensorsApart,
    {"key hook", [](const Site &site) { return !site.shape.has.key || !converts(site.shape.tensors); },
     [](const Site &) -> std::string {
       return "the hook `key` overwrites keys in place; family sm80 has 1 byte for each element of this "
              "cache and needs 2";
     },
     [](const Site &) -> std::string { return "let the cache have q's dtype, or use a CPU"; }},
    {"key hook", [](const Site &site) { return !site.shape.has.key || site.shape.tensors.k.dim % 16 == 0; },
     [](const Site &site) {
       return keyDimText(site.shape.tensors) +
              "; the hook `key` takes the halves of a row as columns of 8 elements, which takes a multiple "
              "of 16";
     },
     [](const Site &) -> std::string { return "use a CPU"; }},
    {"warps share a tile", [](const Site &site) { return site.phase.warps % rowWarps(site) == 0; },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not a multiple of the " + number(rowWarps(site)) +
              " that a tile of " + number(site.phase.tileQ) + " rows takes";
     },
     nullptr},
    {"warps share a tile", [](const Site &site) { return site.phase.tileKv % (16 * tokenWarps(site)) == 0; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", not a multiple of the " +
              number(16 * tokenWarps(site)) + " tokens that its " + number(tokenWarps(site)) +
              " token warps take at a time";
     },
     nullptr},
    {"threads", [](const Site &site) { return site.phase.tileKv <= 32 * site.phase.warps; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", more than the block's " +
              number(32 * site.phase.warps) + " threads";
     },
     nullptr},
    {"registers",
     [](const Site &site) { return estimateRegisters(site.shape, site.phase) <= registersLeft(site); },
     [](const Site &site) {
       return "a thread needs about " + number(estimateRegisters(site.shape, site.phase)) +
              " registers; a block of " + number(site.phase.warps) + " warps leaves " +
              number(registersLeft(site));
     },
     [](const Site &) -> std::string { return "lower tile_kv or tile_q"; }},
};

/// Twin: templates/deft/sm80/shared_layout.cuh.
int bytesOf(const KernelShape &shape, const PhaseConfig &phase) {
  // A row is swizzled where it fills whole 128-byte lines, else padded to an odd number of 16-byte columns.
  const auto rowBytes = [](const spec::TensorType &tensor) {
    const int columns = tensor.rowBytes() / 16;
    return 16 * (columns % 8 == 0 ? columns : columns | 1);
  };
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = shape.tensors;
  const int ringBytes = phase.stages * phase.tileKv * (rowBytes(k) + rowBytes(v));
  const int joinBytes = phase.warps * 16 * (out.dim + 4 + 2) * 4;
  const int unitBytes = converts(shape.tensors) ? 4 : 0; // of a row that waits in shared memory
  const int queryBytes = q.dim <= 128 ? 0 : phase.tileQ * (rowBytes(q) + unitBytes);
  const int recordBytes = (phase.stages + 1) * phase.tileKv * (20 + 4 * shape.tokenParams);
  return std::max(ringBytes, joinBytes) + queryBytes + recordBytes;
}

int registersOf(const Site &site) {
  return std::min(estimateRegisters(site.shape, site.phase), site.target->registersPerThread);
}

int paddedRows(const PhaseConfig &phase, int rows) { return std::max(phase.tileQ, rows); }

TileCost tileCost(const PhaseConfig &, int, const config::CostCoefficients &cost) {
  return {.gflops = cost.blockGflops};
}

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
int stagesFor(const KernelShape &shape, PhaseConfig phase, const target::Target *target, int most) {
  for (int limit : {halfSmem(*target), target->smemPerBlock})
    for (phase.stages = most; phase.stages >= 2; --phase.stages)
      if (bytesOf(shape, phase) <= limit)
        return phase.stages;
  return 2;
}

std::vector<int> valuesOf(const std::optional<spec::TuneList> &list, const std::vector<int> &preferred) {
  return list ? list->values : preferred;
}

/// Fills one phase: the first legal combination of what the schedule lists and, where it lists
/// nothing, of what is preferred here. Preferences fall in size, so the last error is the telling one.
Result<PhaseConfig> choosePhase(const KernelShape &shape, const spec::PhaseSpec &spec, bool isWide,
                                const target::Target *target) {
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
          const PhaseSite site{shape, phase, target, sm80};
          const PhaseRule *broken = brokenRule(site);
          if (!broken)
            return phase;
          lastError = errorOf(*broken, site);
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

Result<std::vector<PhaseConfig>> scheduled(const KernelShape &shape, std::span<const spec::PhaseSpec> given,
                                           const target::Target *target) {
  const std::vector<spec::PhaseSpec> preferred = preferredPhases(shape);
  const std::span<const spec::PhaseSpec> phases = given.empty() ? preferred : given;
  std::vector<PhaseConfig> chosen;
  for (const spec::PhaseSpec &phase : phases) {
    const bool isWide = phase.rowsAbove.has_value() || phases.size() == 1;
    Result<PhaseConfig> one = choosePhase(shape, phase, isWide, target);
    if (!one)
      return one.error();
    chosen.push_back(std::move(*one));
  }
  return chosen;
}

TunedPhase tuned(PhaseConfig phase, std::vector<int> tileQ) {
  return {.phase = std::move(phase),
          .rowsAbove = {},
          .tileQ = std::move(tileQ),
          .tileKv = {32, 64, 128},
          .stages = {2, 3, 4, 5},
          .warps = {2, 4, 8}};
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  const PhaseConfig single{"tiles", -1, config::Family::Sm80, 16, 64, 4, 4};
  TunedPhase wide =
      tuned({"wide", 16, config::Family::Sm80, 64, 64, 3, 4}, rowsThatHold(shape, {32, 64, 128}));
  wide.rowsAbove = rowsThatHold(shape, {16, 32, 64});
  return {{"sm80", {tuned(single, rowsThatHold(shape, {16, 32, 64, 128}))}},
          {"sm80+sm80", {std::move(wide), sm80Narrow(shape)}}};
}

TunedPhase tunedOfSchedule(const KernelShape &shape) {
  return tuned({.name = {}, .family = config::Family::Sm80}, rowsThatHold(shape, {16, 32, 64, 128}));
}

/// Tiles far from 64 tokens, more warps than rows need, and blocks that are alone on a multiprocessor.
double oddness(const Site &site) {
  const PhaseConfig &phase = site.phase;
  const double odd = std::abs(std::log2(phase.tileKv / 64.0)) +
                     std::abs(std::log2(phase.warps / std::max(4.0, phase.tileQ / 16.0)));
  return blocksPerSm(site) < 2 ? odd + 2 : odd;
}

} // namespace

int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase) {
  const int tokenWarps = std::max(1, phase.warps / std::max(1, phase.tileQ / 16));
  const int accumulators = shape.tensors.out.dim / 2;
  const int scores = phase.tileKv / tokenWarps / 2;
  const int dim = shape.tensors.q.dim, queries = dim <= 128 ? dim / 4 : 0;
  return accumulators + scores + queries + kOtherRegisters + (shape.has.key ? kKeyHookRegisters : 0);
}

TunedPhase sm80Narrow(const KernelShape &shape) {
  return tuned({"narrow", -1, config::Family::Sm80, 16, 64, 4, 4}, rowsThatHold(shape, {16, 32, 64}));
}

constinit const Family sm80{
    .name = "sm80",
    .device = config::DeviceKind::Gpu,
    .mma = target::Mma::Sync,
    .values = Values::Apart,
    .rules = kRules,
    .countsRowsAlone = false,
    .smemBytes = bytesOf,
    .registers = registersOf,
    .blocksAtOnce = {},
    .canDeal = false,
    // The hardware hands out the lighter units as blocks end; starting a block costs, so not all of them.
    .mostWaves = 8,
    .readsByTensorMap = false,
    .whyNotInvariant = {},
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = 0,
    .defaults = nullptr, // it serves what no other family does, by its phases for schedules
    .scheduled = scheduled,
    .tuned = tunedPhases,
    .tunedOfSchedule = tunedOfSchedule,
    .mostTunedRows = 0,
    .oddness = oddness,
};

} // namespace deft::kernels
