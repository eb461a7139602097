/// The family of wgmma: bytes, blocks, and the kernels among which a tree chooses.

#include "compiler/kernels/Sm90.h"

#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::kernels {
namespace {

const KernelShape kLlama{32, 8, spec::Tensors::alike(128)};

std::string check(const PhaseConfig &phase, const KernelShape &shape = kLlama, const char *arch = "sm_90a") {
  const auto result = checkPhase(shape, phase, target::findTarget(arch));
  return result ? "legal" : result.error().message;
}

int bytesOf(int dim, const PhaseConfig &phase) {
  return smemBytes({32, 8, spec::Tensors::alike(dim)}, phase);
}

TEST(Sm90Test, ThereIsOneShapeOfBlockAndALightOne) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  // Ring: 4 stages of K and V, 64 tokens * 256 bytes each, 64 records of 12 bytes, the facts of four
  // groups and two barriers; 8 * 16 padded rows of results; two pieces of 64 rows of queries, each with its
  // item, callers' indices, positions and two barriers; the alignment.
  const auto bytes = [](int dim) {
    return 4 * (2 * 64 * 256 + 64 * 12 + 64 + 16) + 8 * 16 * (2 * dim + 16) +
           2 * (64 * 256 + 32 + 64 * 8 + 16) + 1024;
  };
  EXPECT_EQ(bytesOf(128, tiles), bytes(128));
  EXPECT_EQ(bytesOf(80, tiles), bytes(80)); // columns come in blocks of 64: head dim 80 takes two
  EXPECT_EQ(check(tiles), "legal");
  PhaseConfig odd = tiles;
  odd.stages = 3;
  EXPECT_EQ(check(odd), "phase `tiles`: stages is 3; family sm90 takes an even number");
  EXPECT_EQ(check(tiles, kLlama, "sm_89"),
            "phase `tiles`: family sm90 needs wgmma, which sm_89 does not have");
  EXPECT_EQ(check(tiles, {8, 8, spec::Tensors::alike(16)}),
            "phase `tiles`: head_dim is 16, less than family sm90's 32");
  EXPECT_EQ(check(tiles, {{32, 8, spec::Tensors::alike(128)}, {.key = true}}),
            "phase `tiles`: there is a hook `key`; family sm90 makes keys only in blocks of 8 warps");
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  EXPECT_EQ(check(light, {{32, 8, spec::Tensors::alike(128)}, {.key = true}}), "legal");
  const auto with = [&](auto change) {
    PhaseConfig phase = tiles;
    change(phase);
    return phase;
  };
  EXPECT_EQ(check(with([](auto &p) { p.warps = 8; })),
            "phase `tiles`: tile_q is 128; family sm90 takes 64 with 8 warps");
  EXPECT_EQ(check(with([](auto &p) { p.warps = 4; })),
            "phase `tiles`: warps is 4; a block of family sm90 has 12, 8 or 16");
  EXPECT_EQ(check(with([](auto &p) { p.tileQ = 32; })),
            "phase `tiles`: tile_q is 32; family sm90 takes 64 or 128");
  EXPECT_EQ(check(with([](auto &p) { p.tileKv = 128; })),
            "phase `tiles`: tile_kv is 128; family sm90 takes 64");
  EXPECT_EQ(check(with([](auto &p) { p.stages = 6; })),
            "phase `tiles`: it needs 271424 bytes of shared memory; sm_90a allows 232448");
}

TEST(Sm90Test, TheNarrowestHeadsAreTakenInTilesOf64Columns) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  for (int dim = 32; dim <= 64; dim += 16) {
    EXPECT_EQ(bytesOf(dim, tiles), 4 * (2 * 64 * 128 + 64 * 12 + 64 + 16) + 8 * 16 * (2 * dim + 16) +
                                       2 * (64 * 128 + 32 + 64 * 8 + 16) + 1024);
    EXPECT_EQ(check(tiles, {8, 8, spec::Tensors::alike(dim)}), "legal") << dim;
    EXPECT_EQ(check(light, {8, 8, spec::Tensors::alike(dim)}), "legal") << dim;
  }
}

TEST(Sm90Test, TwoLightBlocksShareAMultiprocessor) {
  PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  // As above, with one piece of queries and 4 * 16 rows of results.
  EXPECT_EQ(bytesOf(128, light),
            2 * (2 * 64 * 256 + 64 * 12 + 64 + 16) + 4 * 16 * 272 + 64 * 256 + 32 + 64 * 8 + 16 + 1024);
  EXPECT_EQ(check(light), "legal");
  light.stages = 3; // need not be even
  EXPECT_EQ(check(light),
            "phase `tiles`: it needs 136224 bytes of shared memory; two blocks of 8 warps share "
            "a multiprocessor, which leaves each 115712");
}

const PhaseConfig kTall{"tiles", -1, config::Family::Sm90, 192, 64, 4, kSm90TallWarps};

/// Three pieces of queries, which stay, and results that leave 32 columns at a time.
TEST(Sm90Test, ATallBlockHasThreeWarpgroupsRows) {
  EXPECT_EQ(bytesOf(128, kTall), 4 * (2 * 64 * 256 + 64 * 12 + 64 + 16) + 12 * 16 * (2 * 32 + 16) +
                                     3 * (64 * 256 + 32 + 64 * 8 + 16) + 1024);
  EXPECT_EQ(check(kTall), "legal");
  EXPECT_EQ(check(kTall, {16, 1, spec::Tensors::alike(64)}), "legal");
  PhaseConfig phase = kTall;
  phase.stages = 3; // need not be even
  EXPECT_EQ(check(phase), "legal");
  phase.tileQ = 128;
  EXPECT_EQ(check(phase), "phase `tiles`: tile_q is 128; family sm90 takes 192 with 16 warps");
  KernelShape bytes{32, 8, spec::Tensors::alike(128)};
  bytes.tensors.k.dtype = bytes.tensors.v.dtype = spec::DType::F8E4M3;
  for (const KernelShape &shape : {bytes, KernelShape{32, 8, spec::Tensors::alike(192)}})
    EXPECT_EQ(check(kTall, shape), "phase `tiles`: a block of family sm90 of 16 warps has registers "
                                   "only for 16-bit caches of up to 128 columns");
  EXPECT_EQ(check(kTall, {{32, 8, spec::Tensors::alike(128)}, {.key = true}}),
            "phase `tiles`: there is a hook `key`; family sm90 makes keys only in blocks of 8 warps");
}

/// A step of 192 rows takes less than one of 128 and one of 64, and a block alone with 64 rows more than a
/// wide one, whose warpgroups have a tile each then.
TEST(Sm90Test, TallTilesPayWhereTheyAreFull) {
  const config::CostCoefficients prices = config::pricesFor(config::someGpu()).kernels;
  const PhaseConfig wide{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const auto stepUs = [&](const PhaseConfig &phase, int rows) {
    const TileCost tile = sm90.tileCost(phase, rows, prices);
    return prices.stepUs * tile.stepShare + 4 * 128 * 64 * 1e-3 * rows / tile.gflops;
  };
  EXPECT_LT(stepUs(kTall, 192), stepUs(wide, 128) + stepUs(wide, 64));
  EXPECT_GT(stepUs(kTall, 128), stepUs(wide, 128));
  EXPECT_GT(stepUs(kTall, 64), stepUs(wide, 64));
}

/// Rule A12: light blocks with as many stages as fit, which plans that deal are not for.
TEST(Sm90Test, ProductsOfBytesHaveOneKernel) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  for (const int kvHeads : {1, 8, 32})
    for (const int dim : {96, 128}) {
      KernelShape shape{32, kvHeads, spec::Tensors::alike(dim)};
      shape.tensors.k.dtype = shape.tensors.v.dtype = spec::DType::F8E4M3;
      shape.tensors.byteProducts = true;
      const auto all = sm90.defaults(shape, hopper);
      ASSERT_EQ(all.size(), 1u);
      EXPECT_TRUE(isLight(all.front().phase));
      EXPECT_EQ(all.front().phase.stages, 4); // two tiles a step
      EXPECT_EQ(all.front().order, config::Order::FromRoot);
      const auto tuned = sm90.tuned(shape);
      ASSERT_EQ(tuned.size(), 1u);
      EXPECT_TRUE(isLight(tuned.front().phases.front().phase));
    }
}

/// Stages of light blocks hold an 8-bit cache's bytes where tiles of 16 bits leave no room for them. No GPU
/// has run that, so that only who asks for it gets it.
TEST(Sm90Test, LightBlocksOfManyColumnsHoldBytes) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const auto shapeOf = [](int dim) {
    KernelShape shape{32, 8, spec::Tensors::alike(dim)};
    shape.tensors.k.dtype = shape.tensors.v.dtype = spec::DType::F8E4M3;
    return shape;
  };
  const auto hasLight = [&](int dim) {
    const auto all = sm90.defaults(shapeOf(dim), hopper);
    return std::ranges::any_of(all, [](const DefaultKernel &one) { return isLight(one.phase); });
  };
  const auto isTuned = [&](int dim) {
    const auto all = sm90.tuned(shapeOf(dim));
    return std::ranges::any_of(all, [](const TunedPhases &one) { return isLight(one.phases.front().phase); });
  };
  // Two stages of bytes, a tile of K, and one of V or the rooms of results in its place.
  EXPECT_EQ(smemBytes(shapeOf(128), light), 2 * (2 * 64 * 128 + 64 * 12 + 64 + 16) + 64 * 256 + 4 * 16 * 272 +
                                                64 * 256 + 32 + 64 * 8 + 16 + 1024);
  EXPECT_EQ(smemBytes(shapeOf(80), light),
            2 * (2 * 64 * 128 + 64 * 12 + 64 + 16) + 2 * 64 * 256 + 64 * 256 + 32 + 64 * 8 + 16 + 1024);
  for (const int dim : {32, 64, 80, 128}) {
    EXPECT_EQ(check(light, shapeOf(dim)), "legal") << dim;
    EXPECT_TRUE(hasLight(dim)) << dim;
    EXPECT_TRUE(isTuned(dim)) << dim;
  }
  EXPECT_FALSE(hasLight(144)); // a row of bytes is a row of a tile, and two blocks would not fit either
}

TEST(Sm90Test, TheWidestHeadsAreTakenInTwoStages) {
  PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  const auto bytes = [](int tile, int pieces) { // results leave 96 columns at a time
    return 2 * (2 * tile + 64 * 12 + 64 + 16) + 8 * 16 * 208 + pieces * (tile + 32 + 64 * 8 + 16) + 1024;
  };
  EXPECT_EQ(bytesOf(192, tiles), bytes(3 * 64 * 128, 4)); // the next unit's queries have room
  EXPECT_EQ(bytesOf(256, tiles), bytes(4 * 64 * 128, 2));
  for (int dim = 144; dim <= 256; dim += 16)
    EXPECT_EQ(check(tiles, {8, 8, spec::Tensors::alike(dim)}), "legal") << dim;
  PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  EXPECT_EQ(check(light, {8, 8, spec::Tensors::alike(144)}),
            "phase `tiles`: it needs 164608 bytes of shared memory; two blocks of 8 warps share "
            "a multiprocessor, which leaves each 115712");
}

TEST(Sm90Test, QueriesThatStayHaveRoomForTheNextUnits) {
  PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const int stages = 2 * (2 * 3 * 64 * 128 + 64 * 12 + 64 + 16), piece = 3 * 64 * 128 + 32 + 64 * 8 + 16;
  tiles.stages = 2;
  EXPECT_EQ(bytesOf(160, tiles), stages + 8 * 16 * 208 + 4 * piece + 1024);
  EXPECT_EQ(check(tiles, {8, 8, spec::Tensors::alike(160)}), "legal");
}

spec::Tensors unlike(int keyDim, int valueDim) {
  spec::Tensors tensors = spec::Tensors::alike(keyDim);
  tensors.v.dim = tensors.out.dim = valueDim;
  return tensors;
}

/// Results leave 32 columns at a time then, so that four stages of wide blocks fit, and two light blocks.
TEST(Sm90Test, MoreColumnsOfKeysThanOfValuesFitInFourStages) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const KernelShape prompts{128, 128, unlike(192, 128)}, grouped{32, 8, unlike(192, 128)};
  EXPECT_EQ(smemBytes(prompts, tiles), 4 * (5 * 64 * 128 + 64 * 12 + 64 + 16) + 8 * 16 * (2 * 32 + 16) +
                                           2 * (3 * 64 * 128 + 32 + 64 * 8 + 16) + 1024);
  EXPECT_EQ(check(tiles, prompts), "legal");
  EXPECT_EQ(check(light, prompts), "legal");
  const auto ofPrompts = sm90.defaults(prompts, hopper), ofGrouped = sm90.defaults(grouped, hopper);
  ASSERT_EQ(ofPrompts.size(), 2u); // neither deals
  EXPECT_TRUE(isLight(ofPrompts[0].phase));
  EXPECT_EQ(ofPrompts[1].phase.stages, 4);
  ASSERT_EQ(ofGrouped.size(), 2u);
  EXPECT_FALSE(isLight(ofGrouped[0].phase));
}

TEST(Sm90Test, EitherDimMayBeTheLargerOne) {
  const PhaseConfig two{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  for (const auto &[keyDim, valueDim] : {std::pair(32, 256), std::pair(64, 128), std::pair(96, 64),
                                         std::pair(128, 192), std::pair(256, 32), std::pair(256, 192)})
    EXPECT_EQ(check(two, {32, 8, unlike(keyDim, valueDim)}), "legal") << keyDim << " " << valueDim;
  EXPECT_EQ(check(two, {32, 8, unlike(72, 64)}),
            "phase `tiles`: key_dim is 72, not a multiple of family sm90's 16");
  EXPECT_EQ(check(two, {32, 8, unlike(64, 72)}),
            "phase `tiles`: value_dim is 72, not a multiple of family sm90's 16");
  EXPECT_EQ(check(two, {32, 8, unlike(16, 64)}), "phase `tiles`: key_dim is 16, less than family sm90's 32");
  EXPECT_EQ(check(two, {32, 8, unlike(64, 16)}),
            "phase `tiles`: value_dim is 16, less than family sm90's 32");
}

TEST(Sm90Test, RowsArePaddedToTheModesOfABlock) {
  const PhaseConfig wide{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const auto padded = [](const PhaseConfig &phase, std::initializer_list<int> rows) {
    std::vector<int> all;
    for (const int count : rows)
      all.push_back(sm90.paddedRows(phase, count));
    return all;
  };
  EXPECT_EQ(padded(wide, {1, 16, 17, 64, 65, 128}), (std::vector{16, 16, 64, 64, 128, 128}));
  EXPECT_EQ(padded(light, {1, 16, 64}), (std::vector{64, 64, 64}));
  EXPECT_EQ(padded(kTall, {1, 64, 65, 128, 129, 192}), (std::vector{64, 64, 128, 128, 192, 192}));
}

/// Light blocks first where heads share no keys, wide ones elsewhere; one that deals where a query's rows are
/// all of one warp.
TEST(Sm90Test, TheFirstKernelIsByTheHeads) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  const auto kernels = [&](int queryHeads, int kvHeads, int dim) {
    return sm90.defaults({queryHeads, kvHeads, spec::Tensors::alike(dim)}, hopper);
  };
  const auto deals = [](const std::vector<DefaultKernel> &all) {
    return std::count_if(all.begin(), all.end(),
                         [](const DefaultKernel &one) { return one.order == config::Order::Mixed; });
  };
  EXPECT_TRUE(isLight(kernels(32, 32, 128).front().phase));
  EXPECT_TRUE(isLight(kernels(32, 8, 64).front().phase));
  EXPECT_FALSE(isLight(kernels(32, 8, 128).front().phase));
  EXPECT_EQ(deals(kernels(32, 8, 128)), 1);
  EXPECT_EQ(deals(kernels(24, 8, 128)), 0) << "3 heads of a query may be rows of two warps";
  EXPECT_EQ(deals(kernels(32, 8, 192)), 0);
  const auto hasTall = [](const std::vector<DefaultKernel> &all) {
    return std::ranges::any_of(all, [](const DefaultKernel &one) { return isTall(one.phase); });
  };
  EXPECT_TRUE(hasTall(kernels(32, 8, 128)) && hasTall(kernels(64, 8, 128)) && hasTall(kernels(16, 1, 128)));
  EXPECT_FALSE(hasTall(kernels(16, 8, 128)) || hasTall(kernels(32, 1, 128)) || hasTall(kernels(32, 8, 64)));
  EXPECT_TRUE(kernels(32, 32, 192).empty()) << "an older family is faster there";
  EXPECT_TRUE(kernels(32, 8, 16).empty());
  for (const int dim : {32, 64, 128, 192, 256})
    for (const DefaultKernel &one : kernels(32, 8, dim))
      EXPECT_EQ(check(one.phase, {32, 8, spec::Tensors::alike(dim)}), "legal") << dim;
}

TEST(Sm90Test, TwoTilesOfAWideBlockAreUnderWayButTheWidest) {
  config::CostCoefficients cost;
  cost.wgmmaBlockGflops = 10;
  cost.lightStep = 0.5;
  cost.lightItem = 0.25;
  const PhaseConfig wide{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  EXPECT_EQ(sm90.tileCost(wide, 128, cost).gflops, 10);
  EXPECT_EQ(sm90.tileCost(wide, 64, cost).gflops, 20);
  EXPECT_EQ(sm90.tileCost(wide, 16, cost).stepShare, 1);
  EXPECT_EQ(sm90.tileCost(light, 64, cost).gflops, 10);
  EXPECT_EQ(sm90.tileCost(light, 64, cost).stepShare, 0.5);
  EXPECT_EQ(sm90.tileCost(light, 64, cost).itemShare, 0.25);
}

} // namespace
} // namespace deft::kernels
