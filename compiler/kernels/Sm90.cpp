#include "compiler/kernels/Sm90.h"

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "compiler/kernels/Sm80.h"
#include "compiler/spec/Names.h"

#include <algorithm>
#include <optional>

/// wgmma: warpgroups that compute what one more copies, in blocks that live on. See
/// templates/deft/attend_sm90.cuh.
namespace deft::kernels {
namespace {

using Site = PhaseSite;

constexpr int kLeastHeadDim = 32; ///< a tile of values has at least four columns of eight, a warp's share
constexpr int kGroupRows = 64;    ///< of a warpgroup

std::string number(int value) { return std::to_string(value); }

bool hasOneDim(const KernelShape &shape) { return shape.tensors.k.dim == shape.tensors.v.dim; }

/// Of the wider one of K and V.
int mostColumns(const KernelShape &shape) { return std::max(shape.tensors.k.dim, shape.tensors.v.dim); }

/// Whether K and V are of 8 bits, and become factors of 16 bits before products.
bool converts(const KernelShape &shape) { return shape.tensors.k.elementBytes() == 1; }

/// Of half a tile of K and of V, as they are copied. Twin: templates/deft/sm90/byte_cache.cuh.
int halfTileBytes(const KernelShape &shape) {
  const int columns = shape.tensors.k.dim / 16, low = columns > 2 ? 4 : columns;
  return 2 * low * ((columns + low - 1) / low) * 32 * 16;
}

/// Whether stages hold bytes, which the computing warps convert. Twin: templates/deft/sm90/layout.cuh.
bool holdsBytes(const KernelShape &shape, const PhaseConfig &phase) {
  return converts(shape) && isLight(phase) && shape.tensors.k.dim > 64 && shape.tensors.k.dim <= 128;
}

/// Where copying warps convert bytes, two tiles of each warp, or of each pair, wait for that.
int stagingBytes(const KernelShape &shape, const PhaseConfig &phase) {
  return 4 * 2 * (isLight(phase) || phase.stages == 2 ? 1 : 2) * halfTileBytes(shape);
}

/// Twin: templates/deft/sm90/layout.cuh.
int bytesOf(const KernelShape &shape, const PhaseConfig &phase) {
  // Blocks of 128 bytes of each row.
  const auto tileBytes = [](const spec::TensorType &tensor, int rows) {
    return (tensor.rowBytes() + 127) / 128 * rows * 128;
  };
  const auto &[q, k, v, out, valueInKey, scaleColumns, byteProducts] = shape.tensors;
  const auto tileOf = [&](const spec::TensorType &tensor) {
    return spec::TensorType{converts(shape) ? q.dtype : tensor.dtype, tensor.dim};
  };
  const bool isLong = k.dim > 128 && v.dim <= 128;
  const int rowBytes = out.elementBytes() * (isLong || isTall(phase) ? 32 : v.dim <= 128 ? v.dim : 96) + 16;
  const int groups = phase.warps / 4 - 1;             // that compute
  const int bufferBytes = 4 * groups * 16 * rowBytes; // sums that are joined, results on their way out
  // Where queries stay, the next unit's may have places of their own.
  const int pieces = v.dim > 128 && k.dim <= 192 ? 2 * groups : groups;
  const int pieceBytes =
      tileBytes(q, kGroupRows) + 32 + 64 * 8 + 2 * 8; // queries, item, facts of rows, barriers
  // Facts of groups, and of tokens records and elements.
  const int slotBytes = 64 + phase.tileKv * (12 + 4 * shape.tokenParams);
  const int tilesBytes = tileBytes(tileOf(k), phase.tileKv) + tileBytes(tileOf(v), phase.tileKv);
  const int besideTiles = slotBytes + 2 * 8; // of a stage, with its barriers
  constexpr int kAlignment = 1024;
  const int unitBytes = pieces * pieceBytes + kAlignment;
  if (holdsBytes(shape, phase)) { // in rows of 128; they become one tile, whose values results follow
    const int keyBytes = byteProducts ? 0 : tilesBytes / 2; // products of bytes take K as it came
    const int tileAndBuffers = keyBytes + std::max(tilesBytes / 2, bufferBytes);
    return phase.stages * (2 * phase.tileKv * 128 + besideTiles) + tileAndBuffers + unitBytes;
  }
  return phase.stages * (tilesBytes + besideTiles) + bufferBytes + unitBytes +
         (converts(shape) ? stagingBytes(shape, phase) : 0);
}
int bytesOf(const Site &site) { return bytesOf(site.shape, site.phase); }

/// Whether both products are made of bytes as stages hold them. Twin:
/// templates/deft/sm90/eight_bit_products.cuh.
bool multipliesBytes(const Site &site) {
  return holdsBytes(site.shape, site.phase) && site.shape.tensors.k.dim % 32 == 0;
}

constexpr PhaseRule kRules[] = {
    kTensorsApart,
    {"products", [](const Site &site) { return !site.shape.tensors.byteProducts || multipliesBytes(site); },
     [](const Site &site) {
       return std::string("products are of ") + toString(spec::kByteProducts) +
              "; family sm90 makes them in blocks of " + number(kSm90LightWarps) +
              " warps, only for head dims 96 and 128 (rule A12)";
     },
     [](const Site &) -> std::string { return "use a CPU, or leave `products` out"; }},
    {"tensors", [](const Site &site) { return !converts(site.shape) || hasOneDim(site.shape); },
     [](const Site &site) {
       return "k has dim " + number(site.shape.tensors.k.dim) + " and v " + number(site.shape.tensors.v.dim) +
              ", in 8 bits; family sm90 needs one dim for both";
     },
     useOtherFamily},
    {"key hook",
     [](const Site &site) { return !site.shape.has.key || (isLight(site.phase) && !converts(site.shape)); },
     [](const Site &site) -> std::string {
       return converts(site.shape) ? "the hook `key` overwrites keys in place; family sm90 has 1 byte for "
                                     "each element of this cache and needs 2"
                                   : "there is a hook `key`; family sm90 makes keys only in blocks of " +
                                         number(kSm90LightWarps) + " warps";
     },
     useOtherFamily},
    {"threads",
     [](const Site &site) {
       return site.phase.warps == kSm90Warps || isLight(site.phase) || isTall(site.phase);
     },
     [](const Site &site) {
       return "warps is " + number(site.phase.warps) + "; a block of family sm90 has " + number(kSm90Warps) +
              ", " + number(kSm90LightWarps) + " or " + number(kSm90TallWarps);
     },
     nullptr},
    {"mma shape",
     [](const Site &site) {
       const int rows = site.phase.tileQ;
       return isTall(site.phase) ? rows == 192 : rows == 64 || (rows == 128 && !isLight(site.phase));
     },
     [](const Site &site) {
       return "tile_q is " + number(site.phase.tileQ) + "; family sm90 takes " +
              (isTall(site.phase)    ? "192 with " + number(kSm90TallWarps) + " warps"
               : isLight(site.phase) ? "64 with " + number(kSm90LightWarps) + " warps"
                                     : "64 or 128");
     },
     nullptr},
    {"tensors",
     [](const Site &site) {
       return !isTall(site.phase) || (!converts(site.shape) && mostColumns(site.shape) <= 128);
     },
     [](const Site &) -> std::string {
       return "a block of family sm90 of " + number(kSm90TallWarps) +
              " warps has registers only for 16-bit caches of up to 128 columns";
     },
     [](const Site &) -> std::string { return "use " + number(kSm90Warps) + " warps"; }},
    {"mma shape", [](const Site &site) { return site.phase.tileKv == 64; },
     [](const Site &site) { return "tile_kv is " + number(site.phase.tileKv) + "; family sm90 takes 64"; },
     nullptr},
    // Where warpgroups take tiles in turn, each has its own stages within a unit, at whose end they wait for
    // each other: one that came to the other's might take an older phase of its barrier for the one it waits
    // for.
    {"stages",
     [](const Site &site) { return site.phase.stages % 2 == 0 || isLight(site.phase) || isTall(site.phase); },
     [](const Site &site) {
       return "stages is " + number(site.phase.stages) + "; family sm90 takes an even number";
     },
     nullptr},
    {"shared memory",
     [](const Site &site) { return !isLight(site.phase) || bytesOf(site) <= halfSmem(*site.target); },
     [](const Site &site) {
       return "it needs " + number(bytesOf(site)) + " bytes of shared memory; two blocks of " +
              number(kSm90LightWarps) + " warps share a multiprocessor, which leaves each " +
              number(halfSmem(*site.target));
     },
     [](const Site &) -> std::string { return "lower stages"; }},
    {"head dim", [](const Site &site) { return site.shape.tensors.k.dim % 16 == 0; },
     [](const Site &site) { return keyDimText(site.shape.tensors) + ", not a multiple of family sm90's 16"; },
     useOtherFamily},
    {"head dim", [](const Site &site) { return site.shape.tensors.v.dim % 16 == 0; },
     [](const Site &site) {
       return "value_dim is " + number(site.shape.tensors.v.dim) + ", not a multiple of family sm90's 16";
     },
     useOtherFamily},
    {"head dim", [](const Site &site) { return site.shape.tensors.k.dim >= kLeastHeadDim; },
     [](const Site &site) {
       return keyDimText(site.shape.tensors) + ", less than family sm90's " + number(kLeastHeadDim);
     },
     useOtherFamily},
    {"head dim", [](const Site &site) { return site.shape.tensors.v.dim >= kLeastHeadDim; },
     [](const Site &site) {
       return "value_dim is " + number(site.shape.tensors.v.dim) + ", less than family sm90's " +
              number(kLeastHeadDim);
     },
     useOtherFamily},
};

/// The blocks that are at once on a multiprocessor share its registers out between their warpgroups.
int registersOf(const Site &site) {
  return site.target->registersPerSm / (32 * std::max(1, site.phase.warps) * (isLight(site.phase) ? 2 : 1));
}

/// It has a mode for each of these (templates/deft/sm90/consumer.cuh), light blocks for one alone, and of
/// tall ones each warpgroup its own 64 (sm90/own_rows.cuh).
int paddedRows(const PhaseConfig &phase, int rows) {
  if (isTall(phase))
    return rows <= 64 ? 64 : rows <= 128 ? 128 : 192;
  return rows <= 16 && !isLight(phase) ? 16 : rows <= 64 ? 64 : 128;
}

/// Of a tall block over a wide one: queries are read from shared memory, where the next unit has no room for
/// its own, and a third warpgroup waits for its turn. By the work of the busiest block, 30 times of tall
/// blocks in tests/gpu/irregular_trees.py on an H200 are then 5 % below the price on average, 18 of wide ones
/// 4 %, within 7 % rms. Items cost the same.
constexpr double kTallStep = 1.05;

/// Of a wide block's modes, only the widest has both warpgroups on one tile: else two are under way, of light
/// blocks one in each of the two.
TileCost tileCost(const PhaseConfig &phase, int paddedRows, const config::CostCoefficients &cost) {
  if (isLight(phase))
    return {.gflops = cost.wgmmaBlockGflops, .stepShare = cost.lightStep, .itemShare = cost.lightItem};
  if (isTall(phase))
    return {.gflops = cost.wgmmaBlockGflops, .stepShare = kTallStep};
  return {.gflops = cost.wgmmaBlockGflops * (paddedRows > 64 ? 1 : 2)};
}

/// One kernel of the sm90 family for items of every size: light blocks, which are fastest with two stages, or
/// wide ones, with the deepest ring that fits. None where they do not fit.
std::optional<PhaseConfig> sm90Phase(const KernelShape &shape, const target::Target *target, bool isLight) {
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const PhaseConfig deep{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  PhaseConfig shallow = deep;
  shallow.stages = 2;
  PhaseConfig paired = light; // products of 8 bits take two tiles a step
  paired.stages = 4;
  const auto candidates = !isLight                     ? std::vector{deep, shallow}
                          : shape.tensors.byteProducts ? std::vector{paired, light}
                                                       : std::vector{light};
  for (const PhaseConfig &phase : candidates)
    if (!brokenRule({shape, phase, target, sm90}))
      return phase;
  return std::nullopt;
}

/// Light blocks where every head has its own keys: rows are many queries then, which have less in common
/// (measured at 32/32, docs/kernels.md#light: 3 % faster in the mean of 15 trees, 15 % slower to 10 %
/// faster); with 64 columns, of which reading twice costs least (3 to 27 % faster on five trees); and where
/// keys are made, as only they do.
bool prefersLight(const KernelShape &shape) {
  return shape.ratio() == 1 || mostColumns(shape) <= 64 || shape.has.key || shape.tensors.byteProducts;
}

/// The kernel of the family that most trees are served best by. None where every head has its own keys and
/// light blocks do not fit, because two stages of wide ones keep too few bytes of single rows under way (head
/// dim 192, 64 requests at 16/16: 220 us, 173 by family sm80).
std::optional<PhaseConfig> preferredSm90(const KernelShape &shape, const target::Target *target) {
  if (prefersLight(shape)) {
    if (const auto light = sm90Phase(shape, target, /*isLight=*/true))
      return light;
    if (shape.ratio() == 1 && !converts(shape))
      return std::nullopt;
  }
  return sm90Phase(shape, target, /*isLight=*/false);
}

/// Whether light blocks whose plans deal tokens to warps are among what a tree chooses from: for attention of
/// which no query has rows of two warps, where they deal at all (kDeals, sm90/tile_slot.cuh). Measured were
/// plain, capped and sloped scores, sigmoid and a sliding window; what other scores and masks cost there is
/// not known.
bool dealsInLightBlocks(const KernelShape &shape) {
  return 16 % shape.ratio() == 0 && mostColumns(shape) <= 128 && !shape.tensors.byteProducts;
}

/// Whether a tree may choose tall blocks. We measured plain attentions of head dim 128 with 4, 8 and 16 query
/// heads over a KV head: tall blocks are up to 31 % faster and up to 30 % slower, and prices tell which.
bool choosesTall(const KernelShape &shape) {
  return shape.ratio() >= 4 && shape.ratio() <= 16 && shape.tensors.k.dim == 128 &&
         shape.tensors.v.dim == 128 && shape.has == spec::HookSet();
}

/// First the kernel that most trees are served best by.
std::vector<DefaultKernel> defaults(const KernelShape &shape, const target::Target *target) {
  std::vector<DefaultKernel> all;
  if (const auto first = preferredSm90(shape, target))
    all.push_back({*first});
  else
    return all;
  if (const auto other = sm90Phase(shape, target, !isLight(all.front().phase)))
    all.push_back({*other});
  for (const DefaultKernel &one : all)
    if (isLight(one.phase) && dealsInLightBlocks(shape)) {
      all.push_back({one.phase, config::Order::Mixed});
      break;
    }
  const PhaseConfig tall{"tiles", -1, config::Family::Sm90, 192, 64, 4, kSm90TallWarps};
  if (choosesTall(shape) && !brokenRule({shape, tall, target, sm90}))
    all.push_back({tall});
  return all;
}

/// Wide blocks and light ones, for items of every size or beside kernels for few rows.
std::vector<TunedPhases> tunedPhases(const KernelShape &shape) {
  const TunedPhase wide{.phase = {"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps},
                        .rowsAbove = {},
                        .tileQ = {64, 128},
                        .tileKv = {},
                        .stages = {2, 3, 4, 5},
                        .warps = {}};
  const TunedPhase light{.phase = {"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps},
                         .rowsAbove = {},
                         .tileQ = {},
                         .tileKv = {},
                         .stages = {2, 3, 4},
                         .warps = {}};
  const auto besideNarrow = [&](TunedPhase above) {
    above.phase.name = "wide";
    above.phase.rowsAbove = 16;
    above.rowsAbove = rowsThatHold(shape, {16, 32, 64});
    return std::vector{std::move(above), sm80Narrow(shape)};
  };
  if (shape.tensors.byteProducts)
    return {{"sm90_light", {light}}};
  return {{"sm90", {wide}},
          {"sm90_light", {light}},
          {"sm90+sm80", besideNarrow(wide)},
          {"sm90_light+sm80", besideNarrow(light)}};
}

} // namespace

constinit const Family sm90{
    .name = "sm90",
    .device = config::DeviceKind::Gpu,
    .mma = target::Mma::Wgmma,
    .values = Values::Apart,
    .multipliesBytes = true,
    .rules = kRules,
    .countsRowsAlone = false,
    .smemBytes = bytesOf,
    .registers = registersOf,
    // Only where it is said does ptxas know the registers that setmaxnreg moves about.
    .blocksAtOnce = "deft::sm90::Layout<Config>::kBlocksAtOnce",
    .canDeal = true,
    .mostWaves = 1, // blocks copy a unit's tokens while they compute the one before, so they live on
    .readsByTensorMap = true,
    .whyNotInvariant = "which sums in another order where an item has more rows",
    .paddedRows = paddedRows,
    .tileCost = tileCost,
    .groupRows = kGroupRows,
    .defaults = defaults,
    .scheduled = nullptr,
    .tuned = tunedPhases,
    .tunedOfSchedule = nullptr,
    .mostTunedRows = 0,
    .oddness = nullptr,
};

} // namespace deft::kernels
