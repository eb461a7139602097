#include "compiler/kernels/Sm80Latent.h"

#include "compiler/kernels/LatentRules.h"
#include "compiler/kernels/SharedMemory.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

/// mma.sync over latent caches, on every architecture: V is the first columns of K's rows, which are read
/// once. Warps of the same rows share dims of q.k and columns of p.v. See
/// templates/deft/attend_sm80_latent.cuh.
namespace deft::kernels {
namespace {

using Site = PhaseSite;

constexpr int kMostLatent = 512, kLeastRope = 16, kMostRope = 128; ///< columns
constexpr int kMostNarrowRows = 32;                                ///< of a tile for items of few
constexpr int kMostRows = 128; ///< of a tile: each 16 rows have a named barrier

/// Of a thread, for addresses, loop state and facts of the hooks, beside fragments: what variants with masks,
/// scores and hooks of the output were seen to need at most.
constexpr int kOtherRegisters = 80;
/// Twin: Shares::kRegisters. Of them sums take theirs, and queries what is left.
int registersOfFragments(int warps) { return (warps <= 8 ? 256 : 2048 / warps) - 108; }

std::string number(int value) { return std::to_string(value); }
int roundedUp(int value, int by) { return (value + by - 1) / by; }
/// The least multiple of 16 that holds what a unit has of a query.
int fewestRows(const KernelShape &shape) { return 16 * roundedUp(shape.rowsOfQuery(), 16); }
int rowWarps(const PhaseConfig &phase) { return std::max(1, phase.tileQ / 16); }

int registersLeft(const Site &site) {
  return std::min(site.target->registersPerThread, site.target->registersPerSm / (32 * site.phase.warps));
}

int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase) {
  const LatentShares shares = latentShares(shape, phase);
  const int scores = phase.tileKv / 2;
  return shares.sumRegisters + 4 * shares.stepsHeld + scores + kOtherRegisters;
}
int estimateRegisters(const Site &site) { return estimateRegisters(site.shape, site.phase); }

constexpr PhaseRule kRules[] = {
    kLatentTensors,
    {"latent columns",
     [](const Site &site) {
       const int dim = site.shape.tensors.v.dim;
       return dim % 16 == 0 && dim <= kMostLatent;
     },
     [](const Site &site) {
       return "v has dim " + number(site.shape.tensors.v.dim) +
              "; family sm80_latent takes a multiple of 16, up to " + number(kMostLatent);
     },
     nullptr},
    {"rope columns",
     [](const Site &site) {
       const int dim = ropeDim(site.shape);
       return dim % 16 == 0 && dim >= kLeastRope && dim <= kMostRope;
     },
     [](const Site &site) {
       return "k has " + number(ropeDim(site.shape)) +
              " columns that v does not have; family sm80_latent takes a multiple of 16, from " +
              number(kLeastRope) + " to " + number(kMostRope);
     },
     nullptr},
    kShortQueries,
    kNoKeyHook,
    {"rows", [](const Site &site) { return site.phase.tileQ <= kMostRows; },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + "; family sm80_latent takes at most " +
              number(kMostRows);
     },
     nullptr},
    {"warps share a tile", [](const Site &site) { return site.phase.warps % rowWarps(site.phase) == 0; },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + ", not a multiple of the " +
              number(rowWarps(site.phase)) + " that a tile of " + number(site.phase.tileQ) + " rows takes";
     },
     nullptr},
    {"threads", [](const Site &site) { return site.phase.tileKv <= 32 * site.phase.warps; },
     [](const Site &site) {
       return "tile_kv is " + number(site.phase.tileKv) + ", more than the block's " +
              number(32 * site.phase.warps) + " threads";
     },
     nullptr},
    {"registers", [](const Site &site) { return estimateRegisters(site) <= registersLeft(site); },
     [](const Site &site) {
       return "a thread needs about " + number(estimateRegisters(site)) + " registers; a block of " +
              number(site.phase.warps) + " warps leaves " + number(registersLeft(site));
     },
     [](const Site &site) -> std::string {
       return site.phase.warps < 8 ? "use more warps, or lower tile_kv" : "lower tile_kv or tile_q";
     }},
};

/// A row is swizzled where it fills whole 128-byte lines, else padded to an odd number of 16-byte columns.
int rowBytes(int dim) {
  const int columns = dim / 8;
  return 16 * (columns % 8 == 0 ? columns : columns | 1);
}

/// Twin: templates/deft/sm80_latent/shared_layout.cuh.
int bytesOf(const KernelShape &shape, const PhaseConfig &phase) {
  const LatentShares shares = latentShares(shape, phase);
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = shape.tensors;
  const int tileBytes = phase.tileKv * rowBytes(k.dim);
  // Of a cache of bytes the ring has these, and behind it is one tile of what they become.
  const int ringBytes = k.elementBytes() == 2
                            ? phase.stages * tileBytes
                            : phase.stages * phase.tileKv * shape.tensors.keyRow().rowBytes() + tileBytes;
  const int queryBytes = shares.dimsWaiting > 0 ? phase.tileQ * rowBytes(shares.dimsWaiting) : 0;
  const int resultBytes = phase.tileQ * (v.dim * 2 + 16);
  const int partBytes = shares.sharers > 1 ? phase.warps * phase.tileKv * 64 : 0;
  const int recordBytes = (phase.stages + 1) * phase.tileKv * (20 + 4 * shape.tokenParams);
  return std::max(ringBytes + queryBytes, resultBytes) + partBytes + recordBytes;
}

int registersOf(const Site &site) {
  return std::min(estimateRegisters(site), site.target->registersPerThread);
}

int paddedRows(const PhaseConfig &phase, int rows) { return std::max(phase.tileQ, rows); }

/// Prices are for blocks of four warps, which share a multiprocessor. A block of eight is mostly alone there.
TileCost tileCost(const PhaseConfig &phase, int, const config::CostCoefficients &cost) {
  return {.gflops = cost.blockGflops * phase.warps / 4};
}

/// Of tiles that stand in the order of preference, the first legal one, with the deepest ring of up to four
/// stages. Where two blocks of it are to share a multiprocessor, the deepest that lets them, if one does.
std::optional<PhaseConfig> firstLegal(const KernelShape &shape, const target::Target *target, int tileQ,
                                      int warps, bool areTwo, std::initializer_list<int> tileKvs) {
  for (const int tileKv : tileKvs)
    for (const bool mustShare : {areTwo, false})
      for (int stages = 4; stages >= 2; --stages) {
        PhaseConfig phase{"tiles", -1, config::Family::Sm80Latent, tileQ, tileKv, stages, warps};
        if (!brokenRule({shape, phase, target, sm80_latent}) &&
            (!mustShare || bytesOf(shape, phase) <= halfSmem(*target)))
          return phase;
      }
  return std::nullopt;
}

/// The first one has the widest tile, for tokens that many rows see. The second one has a tile of one query's
/// rows, for tokens that few see; two blocks of it share a multiprocessor.
std::vector<DefaultKernel> defaults(const KernelShape &shape, const target::Target *target) {
  std::vector<DefaultKernel> all;
  const auto add = [&](const std::optional<PhaseConfig> &phase) {
    if (phase && (all.empty() || all.back().phase.tileQ != phase->tileQ))
      all.push_back({*phase});
  };
  const int fewest = fewestRows(shape);
  // A warp has 16 rows and half of the columns, of fewer rows a quarter.
  const auto wide =
      firstLegal(shape, target, std::max(64, fewest), std::max(64, fewest) / 8, false, {32, 16});
  add(wide);
  if (!wide || fewest == 32)
    add(firstLegal(shape, target, std::max(32, fewest), std::max(32, fewest) / 4, false, {32, 16}));
  if (fewest == 16)
    add(firstLegal(shape, target, 16, 4, true, {16}));
  return all;
}

/// Rows of a tile, at least those of a query and up to `most`: of powers of two, or the fewest there are.
std::vector<int> rowsUpTo(const KernelShape &shape, int most) {
  std::vector<int> rows;
  for (int value = fewestRows(shape); rows.empty() || value <= most;
       value = static_cast<int>(std::bit_ceil(static_cast<unsigned>(value) + 1)))
    rows.push_back(value);
  return rows;
}

TunedPhase tuned(PhaseConfig phase, std::vector<int> tileQ) {
  return {.phase = std::move(phase),
          .rowsAbove = {},
          .tileQ = std::move(tileQ),
          .tileKv = {16, 32, 64},
          .stages = {2, 3, 4},
          .warps = {4, 8}};
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  const PhaseConfig single{"tiles", -1, config::Family::Sm80Latent, 64, 16, 2, 8};
  std::vector<TunedPhases> all{{"sm80_latent", {tuned(single, rowsUpTo(shape, 64))}}};
  if (fewestRows(shape) <= kMostNarrowRows) {
    TunedPhase wide = tuned({"wide", 16, config::Family::Sm80Latent, 64, 16, 2, 8}, {64});
    wide.rowsAbove = rowsUpTo(shape, kMostNarrowRows);
    all.push_back({"sm80_latent+sm80_latent", {std::move(wide), sm80LatentNarrow(shape)}});
  }
  return all;
}

/// Tiles far from 32 tokens, and warps far from one for 8 rows.
double oddness(const Site &site) {
  const PhaseConfig &phase = site.phase;
  return std::abs(std::log2(phase.tileKv / 32.0)) +
         std::abs(std::log2(phase.warps / std::max(4.0, phase.tileQ / 8.0)));
}

} // namespace

LatentShares latentShares(const KernelShape &shape, const PhaseConfig &phase) {
  const int keyDim = shape.tensors.k.dim;
  LatentShares shares;
  shares.sharers = std::max(1, phase.warps / rowWarps(phase));
  shares.sumRegisters = 8 * roundedUp(shape.tensors.v.dim / 16, shares.sharers);
  const int room = registersOfFragments(std::max(1, phase.warps)) - shares.sumRegisters;
  shares.stepsHeld = std::clamp(room / 4, 0, roundedUp(keyDim / 16, shares.sharers));
  shares.dimsWaiting = std::max(0, keyDim - 16 * shares.sharers * shares.stepsHeld);
  return shares;
}

std::vector<PhaseConfig> sm80LatentSparse(const KernelShape &shape, const target::Target &target) {
  // As the defaults for items of one query.
  const int rows = fewestRows(shape), warps = rows <= 32 ? rows / 4 : rows / 8;
  const bool isNarrow = rows == 16;
  std::vector<PhaseConfig> phases;
  for (const int tileKv : {isNarrow ? 16 : 32, isNarrow ? 32 : 16})
    for (int stages = 4; stages >= 2; --stages)
      phases.push_back({"sparse", -1, config::Family::Sm80Latent, rows, tileKv, stages, warps});
  if (isNarrow) // two blocks share a multiprocessor, where they can
    std::stable_partition(phases.begin(), phases.end(), [&](const PhaseConfig &phase) {
      return bytesOf(shape, phase) <= halfSmem(target);
    });
  return phases;
}

TunedPhase sm80LatentNarrow(const KernelShape &shape) {
  return tuned({"narrow", -1, config::Family::Sm80Latent, 16, 16, 2, 4}, rowsUpTo(shape, kMostNarrowRows));
}

constinit const Family sm80_latent{
    .name = "sm80_latent",
    .device = config::DeviceKind::Gpu,
    .mma = target::Mma::Sync,
    .values = Values::InKeys,
    .rules = kRules,
    .countsRowsAlone = false,
    .smemBytes = bytesOf,
    .registers = registersOf,
    .blocksAtOnce = {},
    .canDeal = false,
    .mostWaves = 8, // as of family sm80
    .readsByTensorMap = false,
    .whyNotInvariant = {},
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = 0,
    .defaults = defaults,
    .scheduled = nullptr,
    .tuned = tunedPhases,
    .tunedOfSchedule = nullptr,
    .mostTunedRows = 0,
    .oddness = oddness,
};

} // namespace deft::kernels
