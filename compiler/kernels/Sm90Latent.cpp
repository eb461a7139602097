#include "compiler/kernels/Sm90Latent.h"

#include "compiler/kernels/LatentRules.h"

#include <string>

/// wgmma over latent caches: V is the first columns of K's rows, which are read once. A block of two
/// computing warpgroups has 64 rows, and each of them half of V's columns. See
/// templates/deft/attend_sm90_latent.cuh.
namespace deft::kernels {
namespace {

using Site = PhaseSite;

constexpr int kTile = 64;                            ///< rows, and tokens
constexpr int kSlots = 2;                            ///< for tiles
constexpr int kKeptScales = 4;                       ///< of a token, beside its tile
constexpr int kComputingWarps = 8;                   ///< behind those that copy
constexpr int kBlockColumns = 64;                    ///< of a row in a block of shared memory, 128 bytes
constexpr int kLeastLatent = 256, kMostLatent = 512; ///< columns of V

std::string number(int value) { return std::to_string(value); }

bool isOfBytes(const KernelShape &shape) { return shape.tensors.k.elementBytes() == 1; }
/// Twin: kCopyingWarps of templates/deft/sm90_latent/layout.cuh.
int copyingWarps(const KernelShape &shape) { return isOfBytes(shape) ? 8 : 4; }
int warpsOf(const KernelShape &shape) { return copyingWarps(shape) + kComputingWarps; }

/// Twin: templates/deft/sm90_latent/layout.cuh.
int bytesOf(const KernelShape &shape, const PhaseConfig &phase) {
  const int tileBytes = shape.tensors.k.dim / kBlockColumns * phase.tileKv * 128;
  constexpr int kRows = kTile;
  constexpr int kHeadBytes = 32 + kRows * 8 + 16, kReferenceBytes = kRows * 4, kShareBytes = kRows * 8;
  constexpr int kFactsBytes = 64, kRecordBytes = 12, kBarriersOfSlot = 5, kAlignment = 1024;
  const int factsBytes = kFactsBytes + phase.tileKv * kRecordBytes;
  const int factSlots = isOfBytes(shape) ? 2 * kSlots : kSlots; // written a tile ahead
  const int scales = shape.tensors.scaleColumns > 0 ? shape.tensors.v.dim / shape.tensors.scaleColumns : 0;
  const int scaleBytes = scales == kKeptScales ? kSlots * phase.tileKv * scales * 4 : 0;
  const int landedBytes = isOfBytes(shape) ? kSlots * copyingWarps(shape) * 8 : 0; // barriers
  const int slotBytes = tileBytes + kReferenceBytes + kBarriersOfSlot * 8;
  return kSlots * slotBytes + factSlots * factsBytes + tileBytes + 2 * kHeadBytes + 2 * 2 * kShareBytes +
         2 * 8 + landedBytes + scaleBytes + kAlignment;
}

constexpr PhaseRule kRules[] = {
    kLatentTensors,
    {"latent columns",
     [](const Site &site) {
       const int dim = site.shape.tensors.v.dim;
       return dim % (2 * kBlockColumns) == 0 && dim >= kLeastLatent && dim <= kMostLatent;
     },
     [](const Site &site) {
       return "v has dim " + number(site.shape.tensors.v.dim) + "; family sm90_latent takes a multiple of " +
              number(2 * kBlockColumns) + " from " + number(kLeastLatent) + " to " + number(kMostLatent);
     },
     useOtherFamily},
    {"rope columns", [](const Site &site) { return ropeDim(site.shape) == kBlockColumns; },
     [](const Site &site) {
       return "k has " + number(ropeDim(site.shape)) +
              " columns that v does not have; family sm90_latent takes " + number(kBlockColumns);
     },
     useOtherFamily},
    kShortQueries,
    kNoKeyHook,
    {"arrays over tokens", [](const Site &site) { return site.shape.tokenParams == 0; },
     [](const Site &) -> std::string {
       return "there are arrays over tokens; family sm90_latent reads none";
     },
     useOtherFamily},
    {"tile",
     [](const Site &site) {
       const PhaseConfig &phase = site.phase;
       return phase.tileQ == kTile && phase.tileKv == kTile && phase.stages == kSlots &&
              phase.warps == warpsOf(site.shape);
     },
     [](const Site &site) {
       const PhaseConfig &phase = site.phase;
       return "tile_q is " + number(phase.tileQ) + ", tile_kv " + number(phase.tileKv) + ", stages " +
              number(phase.stages) + " and warps " + number(phase.warps) +
              "; family sm90_latent has one tile: " + number(kTile) + ", " + number(kTile) + ", " +
              number(kSlots) + " and " + number(warpsOf(site.shape));
     },
     nullptr},
};

/// A block is alone on a multiprocessor.
int registersOf(const Site &site) {
  return site.target->registersPerSm / (32 * std::max(1, site.phase.warps));
}

int paddedRows(const PhaseConfig &, int) { return kTile; }

/// As measured on an H200: a step takes 1.9 us, and an item, with 64 rows of queries, twice what one of
/// family sm90 takes to begin and end.
constexpr double kRateShare = 0.66, kItemShare = 2;

TileCost tileCost(const PhaseConfig &, int, const config::CostCoefficients &cost) {
  return {.gflops = kRateShare * cost.wgmmaBlockGflops, .itemShare = kItemShare};
}

PhaseConfig phaseNamed(const char *name, const KernelShape &shape) {
  return {name, -1, config::Family::Sm90Latent, kTile, kTile, kSlots, warpsOf(shape)};
}
PhaseConfig onlyPhase(const KernelShape &shape) { return phaseNamed("tiles", shape); }

std::vector<DefaultKernel> defaults(const KernelShape &shape, const target::Target *target) {
  if (brokenRule({shape, onlyPhase(shape), target, sm90_latent}))
    return {};
  return {{onlyPhase(shape)}};
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  return {
      {"sm90_latent",
       {{.phase = onlyPhase(shape), .rowsAbove = {}, .tileQ = {}, .tileKv = {}, .stages = {}, .warps = {}}}}};
}

} // namespace

PhaseConfig sm90LatentSparse(const KernelShape &shape) { return phaseNamed("sparse", shape); }
PhaseConfig sm90LatentUnited(const KernelShape &shape) { return phaseNamed("united", shape); }

constinit const Family sm90_latent{
    .name = "sm90_latent",
    .device = config::DeviceKind::Gpu,
    .mma = target::Mma::Wgmma,
    .values = Values::InKeys,
    .rules = kRules,
    .countsRowsAlone = false,
    .smemBytes = bytesOf,
    .registers = registersOf,
    // Only where it is said does ptxas know the registers that setmaxnreg moves about.
    .blocksAtOnce = "1",
    .canDeal = false,
    .mostWaves = 1, // blocks copy a unit's tokens while they compute the one before, so they live on
    .readsByTensorMap = true,
    .whyNotInvariant = {},
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = 0,
    .defaults = defaults,
    .scheduled = nullptr,
    .tuned = tunedPhases,
    .tunedOfSchedule = nullptr,
    .mostTunedRows = 0,
    .oddness = nullptr,
};

} // namespace deft::kernels
