#include "compiler/kernels/Sm90Latent.h"

#include "compiler/kernels/LatentRules.h"

#include <string>

/// wgmma over latent caches: V is the first columns of K's rows, which are read once. A block of two
/// computing warpgroups has 64 rows, and each of them half of V's columns; or it has 16, and each of them
/// every other tile. See templates/deft/attend_sm90_latent.cuh.
namespace deft::kernels {
namespace {

using Site = PhaseSite;

constexpr int kTile = 64;      ///< rows, and tokens
constexpr int kFewRows = 16;   ///< of a tile without padding to 64
constexpr int kKeptScales = 4; ///< of a token, beside its tile
constexpr int kCopyingWarps = 4, kConvertingWarps = 8;
constexpr int kComputingWarps = 8;                   ///< behind those
constexpr int kBlockColumns = 64;                    ///< of a row in a block of shared memory, 128 bytes
constexpr int kLeastLatent = 256, kMostLatent = 512; ///< columns of V

std::string number(int value) { return std::to_string(value); }

bool isOfBytes(const KernelShape &shape) { return shape.tensors.k.elementBytes() == 1; }
bool isOfFewRows(const PhaseConfig &phase) { return phase.tileQ == kFewRows; }

// Twins: kKeepsBytes, kCopiesConvert, kCopyingWarps and kSlots of templates/deft/sm90_latent/layout.cuh.
bool keepsBytes(const KernelShape &shape, const PhaseConfig &phase) {
  return isOfBytes(shape) && isOfFewRows(phase);
}
bool copiesConvert(const KernelShape &shape, const PhaseConfig &phase) {
  return isOfBytes(shape) && !isOfFewRows(phase);
}
int copyingWarps(const KernelShape &shape, const PhaseConfig &phase) {
  return copiesConvert(shape, phase) ? kConvertingWarps : kCopyingWarps;
}
int slotsOf(const KernelShape &shape, const PhaseConfig &phase) { return keepsBytes(shape, phase) ? 4 : 2; }
int warpsOf(const KernelShape &shape, const PhaseConfig &phase) {
  return copyingWarps(shape, phase) + kComputingWarps;
}

/// Scales in a token's row.
int scalesOf(const KernelShape &shape) {
  return shape.tensors.hasScales() ? shape.tensors.v.dim / shape.tensors.scaleColumns : 0;
}

/// What a block for few rows has besides: for each of two warpgroups the weights of two tiles, four warps'
/// scores or else half of the columns of results, as many sums for the other one, maxima, sums and references
/// of rows, and two words. With a cache of bytes there are weights for each scale, sums and results use their
/// memory, and rows have factors, warps a scale. Twin: FewLayout of templates/deft/sm90_latent/layout.cuh.
int fewBytesOf(const KernelShape &shape) {
  constexpr int kWarps = 4, kTurnedRow = kFewRows + 4, kPad = 16;
  const int columns = shape.tensors.v.dim / 2, scales = scalesOf(shape);
  const int stageBytes = std::max(kWarps * kFewRows * kTurnedRow * 4, kFewRows * (columns * 2 + kPad));
  const int weightBytes = 2 * kFewRows * 128 * std::max(scales, 1), givenBytes = kFewRows * columns * 4;
  const int groupBytes =
      isOfBytes(shape) ? std::max(weightBytes, givenBytes) : weightBytes + givenBytes + stageBytes;
  const int scaleBytes = scales > 0 ? kWarps * 4 : 0, factorBytes = isOfBytes(shape) ? kFewRows * 4 : 0;
  return 2 * (groupBytes + (2 * kWarps + 1) * kFewRows * 4 + 8 + scaleBytes) + factorBytes;
}

/// Twin: templates/deft/sm90_latent/layout.cuh.
int bytesOf(const KernelShape &shape, const PhaseConfig &phase) {
  const int slots = slotsOf(shape, phase), scales = scalesOf(shape);
  const int rows = phase.tileQ, keyBytes = shape.tensors.k.dim * 2, queryBytes = rows * keyBytes;
  // Tiles that keep bytes have those of a row, but its scales are apart.
  const int rowBytes =
      keepsBytes(shape, phase) ? shape.tensors.v.dim + ropeDim(shape) * (scales > 0 ? 2 : 1) : keyBytes;
  const int headBytes = 32 + rows * 8 + 16, referenceBytes = rows * 4, shareBytes = rows * 8;
  constexpr int kFactsBytes = 64, kRecordBytes = 12, kBarriersOfSlot = 5, kAlignment = 1024;
  const int factsBytes = kFactsBytes + phase.tileKv * kRecordBytes;
  const int factSlots = isOfBytes(shape) ? 2 * slots : slots; // written a tile ahead
  const int scaleBytes = scales == kKeptScales ? slots * phase.tileKv * scales * 4 : 0;
  const int landedBytes =
      copiesConvert(shape, phase) ? slots * copyingWarps(shape, phase) * 8 : 0; // barriers
  const int slotBytes = phase.tileKv * rowBytes + referenceBytes + kBarriersOfSlot * 8;
  return slots * slotBytes + factSlots * factsBytes + queryBytes +
         (isOfFewRows(phase) ? fewBytesOf(shape) : 0) + 2 * headBytes + 2 * 2 * shareBytes + 2 * 8 +
         landedBytes + scaleBytes + kAlignment;
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
    {"few rows",
     [](const Site &site) {
       const int scales = scalesOf(site.shape);
       return !isOfFewRows(site.phase) || scales == 0 ||
              (scales == kKeptScales && site.shape.tensors.scaleColumns % kBlockColumns == 0);
     },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + " and a token's row has a scale for each " +
              number(site.shape.tensors.scaleColumns) +
              " columns; for these family sm90_latent has tiles of " + number(kTile) + " rows, and of " +
              number(kFewRows) + " for " + number(kKeptScales) + " scales of whole blocks of " +
              number(kBlockColumns) + " columns";
     },
     nullptr},
    {"tile",
     [](const Site &site) {
       const PhaseConfig &phase = site.phase;
       return (phase.tileQ == kTile || isOfFewRows(phase)) && phase.tileKv == kTile &&
              phase.stages == slotsOf(site.shape, phase) && phase.warps == warpsOf(site.shape, phase);
     },
     [](const Site &site) {
       const PhaseConfig &phase = site.phase;
       return "tile_q is " + number(phase.tileQ) + ", tile_kv " + number(phase.tileKv) + ", stages " +
              number(phase.stages) + " and warps " + number(phase.warps) +
              "; family sm90_latent has tiles of " + number(kTile) + " or " + number(kFewRows) +
              " rows: " + number(kTile) + ", " + number(slotsOf(site.shape, phase)) + " and " +
              number(warpsOf(site.shape, phase));
     },
     nullptr},
};

/// A block is alone on a multiprocessor.
int registersOf(const Site &site) {
  return site.target->registersPerSm / (32 * std::max(1, site.phase.warps));
}

int paddedRows(const PhaseConfig &phase, int) { return phase.tileQ; }

/// As measured on an H200: a step takes 1.9 us, and an item, with 64 rows of queries, twice what one of
/// family sm90 takes to begin and end.
constexpr double kRateShare = 0.66, kItemShare = 2;
/// Of few rows: fitted to twelve trees of 8 and 16 heads, which took 30 to 102 us on an H200. Prices are 0.88
/// to 1.09 of those times, and on each tree the form that was faster is the cheaper one
/// (h200-latent-few-rows.json).
constexpr double kFewRateShare = 0.3;

/// If copies convert bytes, a step takes longer. Fitted to six trees of 16 heads and two caches: prices are
/// 0.72 to 0.91 of those times, and the faster form is the cheaper one on each (h200-latent-few-bytes.json).
constexpr double kConvertedRateShare = 0.43;

TileCost tileCost(const PhaseConfig &phase, int, const config::CostCoefficients &cost) {
  const double share = isOfFewRows(phase)                                  ? kFewRateShare
                       : phase.warps == kConvertingWarps + kComputingWarps ? kConvertedRateShare
                                                                           : kRateShare;
  return {.gflops = share * cost.wgmmaBlockGflops, .itemShare = kItemShare};
}

PhaseConfig phaseNamed(const char *name, const KernelShape &shape, int rows) {
  PhaseConfig phase{name, -1, config::Family::Sm90Latent, rows, kTile, 0, 0};
  phase.stages = slotsOf(shape, phase);
  phase.warps = warpsOf(shape, phase);
  return phase;
}
PhaseConfig widePhase(const KernelShape &shape) { return phaseNamed("tiles", shape, kTile); }
PhaseConfig fewPhase(const KernelShape &shape) { return phaseNamed("tiles", shape, kFewRows); }

std::vector<DefaultKernel> defaults(const KernelShape &shape, const target::Target *target) {
  std::vector<DefaultKernel> all;
  for (const PhaseConfig &phase : {widePhase(shape), fewPhase(shape)})
    if (!brokenRule({shape, phase, target, sm90_latent}))
      all.push_back({phase});
  return all;
}

std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  const auto fixed = [](PhaseConfig phase) {
    return TunedPhase{
        .phase = std::move(phase), .rowsAbove = {}, .tileQ = {}, .tileKv = {}, .stages = {}, .warps = {}};
  };
  return {{"sm90_latent", {fixed(widePhase(shape))}}, {"sm90_latent_few", {fixed(fewPhase(shape))}}};
}

} // namespace

std::vector<PhaseConfig> sm90LatentSparse(const KernelShape &shape) {
  return {phaseNamed("sparse", shape, kFewRows), phaseNamed("sparse", shape, kTile)};
}
PhaseConfig sm90LatentUnited(const KernelShape &shape) { return phaseNamed("united", shape, kTile); }

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
