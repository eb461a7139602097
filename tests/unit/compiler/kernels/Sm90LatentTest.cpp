/// The family of wgmma over latent caches: its bytes, what it refuses, and its kernels.

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

KernelShape latent(int queryHeads, int latentDim = 512, int ropeDim = 64) {
  return {{queryHeads, 1, test::latentTensors(latentDim, ropeDim)}};
}

PhaseConfig tiles(int rows = 64) { return {"tiles", -1, config::Family::Sm90Latent, rows, 64, 2, 12}; }

std::string check(const KernelShape &shape, const PhaseConfig &phase = tiles(), const char *arch = "sm_90a") {
  const auto result = checkPhase(shape, phase, target::findTarget(arch));
  return result ? "legal" : result.error().message;
}

/// Two tiles of 64 tokens, each with 64 records of 12 bytes, facts, references of 64 rows and five barriers;
/// 64 rows of queries; twice a unit's item, callers' indices and positions, with its last step and heads, and
/// what two warpgroups know of its rows; two barriers of queries; the alignment.
TEST(Sm90LatentTest, SharedMemoryHoldsTwoTilesAndTheQueries) {
  for (const int latentDim : {256, 384, 512}) {
    const int tile = 64 * (latentDim + 64) * 2;
    EXPECT_EQ(smemBytes(latent(16, latentDim), tiles()), 2 * (tile + 64 * 12 + 64 + 64 * 4 + 5 * 8) + tile +
                                                             2 * (32 + 64 * 8 + 16) + 2 * 2 * 64 * 8 + 2 * 8 +
                                                             1024)
        << latentDim;
    EXPECT_EQ(check(latent(16, latentDim)), "legal") << latentDim;
    const KernelShape bytes{{16, 1, test::latentBytes(latentDim, 64, latentDim / 4)}};
    EXPECT_EQ(smemBytes(bytes, tiles()),
              smemBytes(latent(16, latentDim), tiles()) + 2 * (64 * 12 + 64) + 2 * 8 * 8 + 2 * 64 * 16)
        << "facts and records are of four tiles, copying warps have barriers, and tokens four scales";
    const KernelShape plain{{16, 1, test::latentBytes(latentDim, 64, 0)}};
    EXPECT_EQ(smemBytes(plain, tiles()), smemBytes(bytes, tiles()) - 2 * 64 * 16) << "no scales";
  }
  EXPECT_LE(smemBytes(latent(16), tiles()), target::findTarget("sm_90a")->smemPerBlock);
}

/// Weights of two tiles, results or scores, sums for the other warpgroup, maxima, sums and references of
/// rows, and two words, for each of two warpgroups.
TEST(Sm90LatentTest, BlocksForFewRowsHaveRoomForBothWarpgroups) {
  for (const int latentDim : {256, 384, 512}) {
    const int slots = 2 * (64 * (latentDim + 64) * 2 + 64 * 12 + 64 + 5 * 8), results = 16 * (latentDim + 16);
    const int group = 2 * 16 * 128 + std::max(results, 4 * 16 * 20 * 4) + 16 * latentDim * 2 + 9 * 64 + 8;
    EXPECT_EQ(smemBytes(latent(16, latentDim), tiles(16)), slots + 2 * 64 + 16 * (latentDim + 64) * 2 +
                                                               2 * group + 2 * (32 + 16 * 8 + 16) +
                                                               2 * 2 * 16 * 8 + 2 * 8 + 1024)
        << latentDim;
    EXPECT_EQ(check(latent(16, latentDim), tiles(16)), "legal") << latentDim;
  }
  EXPECT_EQ(check(latent(32), tiles(16)),
            "phase `tiles`: tile_q is 16, less than the 32 query heads that share a KV head");
}

/// Weights for each scale, whose memory sums and results use; maxima, sums and references of rows, two words
/// and a scale of each warp, for each of two warpgroups; and factors of the rows' queries.
TEST(Sm90LatentTest, BlocksForFewRowsKeepBytes) {
  PhaseConfig ofBytes = tiles(16);
  ofBytes.stages = 4;
  for (const int latentDim : {256, 512}) {
    const KernelShape scaled{{16, 1, test::latentBytes(latentDim, 64, latentDim / 4)}};
    const KernelShape plain{{16, 1, test::latentBytes(latentDim, 64, 0)}};
    const int slots = 4 * (64 * (latentDim + 2 * 64) + 2 * (64 * 12 + 64) + 5 * 8 + 64 * 16);
    const int group = 2 * 4 * 16 * 128 + 9 * 64 + 8 + 4 * 4;
    EXPECT_EQ(smemBytes(scaled, ofBytes), slots + 4 * 64 + 16 * (latentDim + 64) * 2 + 2 * group + 16 * 4 +
                                              2 * (32 + 16 * 8 + 16) + 2 * 2 * 16 * 8 + 2 * 8 + 1024)
        << latentDim;
    EXPECT_EQ(smemBytes(plain, ofBytes), smemBytes(scaled, ofBytes) - 4 * 64 * (64 + 16) -
                                             2 * (8 * 16 * 128 - 16 * latentDim * 2 + 4 * 4))
        << "no scales, no weights by them, and bytes behind V's columns";
    EXPECT_LE(smemBytes(scaled, ofBytes), target::findTarget("sm_90a")->smemPerBlock);
    EXPECT_EQ(check(scaled, ofBytes), "legal") << latentDim;
    EXPECT_EQ(check(plain, ofBytes), "legal") << latentDim;
  }
  EXPECT_EQ(check({{16, 1, test::latentBytes(512, 64, 64)}}, ofBytes),
            "phase `tiles`: tile_q is 16 and a token's row has a scale for each 64 columns; for these family "
            "sm90_latent has tiles of 64 rows, and of 16 for 4 scales of whole blocks of 64 columns");
}

TEST(Sm90LatentTest, WhatItHasNoCodeForIsRefused) {
  for (const int latentDim : {128, 320, 640})
    EXPECT_EQ(check(latent(16, latentDim)),
              "phase `tiles`: v has dim " + std::to_string(latentDim) +
                  "; family sm90_latent takes a multiple of 128 from 256 to 512");
  for (const int ropeDim : {0, 32, 128})
    EXPECT_EQ(check(latent(16, 512, ropeDim)),
              "phase `tiles`: k has " + std::to_string(ropeDim) +
                  " columns that v does not have; family sm90_latent takes 64");
  KernelShape shape = latent(16);
  shape.tokenParams = 1;
  EXPECT_EQ(check(shape), "phase `tiles`: there are arrays over tokens; family sm90_latent reads none");
  EXPECT_EQ(check(latent(16), tiles(), "sm_80"),
            "phase `tiles`: family sm90_latent needs wgmma, which sm_80 does not have");
}

TEST(Sm90LatentTest, HintsNameTheFamilyThatServesTheRest) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  KernelShape arrays = latent(16);
  arrays.tokenParams = 1;
  EXPECT_EQ(checkPhase(arrays, tiles(), hopper).error().hint, "use family sm80_latent");
  EXPECT_EQ(checkPhase(latent(16, 128), tiles(), hopper).error().hint, "use family sm80_latent");
  const auto plain = checkPhase({{16, 1, spec::Tensors::alike(16)}}, tiles(), hopper);
  EXPECT_EQ(plain.error().hint, "use family sm80");
}

TEST(Sm90LatentTest, AStepIsDearerThanFamilySm90s) {
  const config::CostCoefficients prices;
  const TileCost own = familyOf(tiles()).tileCost(tiles(), 64, prices);
  EXPECT_LT(own.gflops, prices.wgmmaBlockGflops);
  EXPECT_GT(own.itemShare, 1);
  EXPECT_EQ(familyOf(tiles()).paddedRows(tiles(), 16), 64) << "rows of nobody are computed, too";
  EXPECT_EQ(familyOf(tiles()).paddedRows(tiles(16), 8), 16);
  const TileCost few = familyOf(tiles(16)).tileCost(tiles(16), 16, prices);
  EXPECT_LT(few.gflops, own.gflops) << "a row is dearer in a block of few";
  EXPECT_LT(16 / few.gflops, 64 / own.gflops) << "and a step cheaper";
}

TEST(Sm90LatentTest, OtherTilesAreRefused) {
  const auto with = [](auto change) {
    PhaseConfig phase = tiles();
    change(phase);
    return check(latent(16), phase);
  };
  const std::string rest = "; family sm90_latent has tiles of 64 or 16 rows: 64, 2 and 12";
  EXPECT_EQ(with([](PhaseConfig &p) { p.tileQ = 128; }),
            "phase `tiles`: tile_q is 128, tile_kv 64, stages 2 and warps 12" + rest);
  EXPECT_EQ(with([](PhaseConfig &p) { p.tileKv = 32; }),
            "phase `tiles`: tile_q is 64, tile_kv 32, stages 2 and warps 12" + rest);
  EXPECT_EQ(with([](PhaseConfig &p) { p.stages = 3; }),
            "phase `tiles`: tile_q is 64, tile_kv 64, stages 3 and warps 12" + rest);
  EXPECT_EQ(with([](PhaseConfig &p) { p.warps = 8; }),
            "phase `tiles`: tile_q is 64, tile_kv 64, stages 2 and warps 8" + rest);
  EXPECT_EQ(check({{16, 1, test::latentBytes()}}),
            "phase `tiles`: tile_q is 64, tile_kv 64, stages 2 and warps "
            "12; family sm90_latent has tiles of 64 or 16 rows: 64, 2 and 16")
      << "more warps convert bytes";
}

TEST(Sm90LatentTest, ItIsTheDefaultWhereItIsLegal) {
  const target::Target *const hopper = target::findTarget("sm_90a");
  for (const int queryHeads : {64, 128}) {
    const auto all = sm90_latent.defaults(latent(queryHeads), hopper);
    ASSERT_EQ(all.size(), 1U) << queryHeads;
    EXPECT_EQ(all.front().phase.tileQ, 64);
    EXPECT_EQ(sm90_latent.paddedRows(all.front().phase, queryHeads), 64);
  }
  for (const int queryHeads : {1, 12, 16}) {
    const auto all = sm90_latent.defaults(latent(queryHeads), hopper);
    ASSERT_EQ(all.size(), 2U) << queryHeads;
    EXPECT_EQ(all[0].phase.tileQ, 64) << "larger trees are the rule";
    EXPECT_EQ(all[1].phase.tileQ, 16);
  }
  const KernelShape bytes{{16, 1, test::latentBytes()}};
  const auto ofBytes = sm90_latent.defaults(bytes, hopper);
  ASSERT_EQ(ofBytes.size(), 2U);
  for (const DefaultKernel &kernel : ofBytes) {
    EXPECT_EQ(check(bytes, kernel.phase), "legal");
    EXPECT_LE(smemBytes(bytes, kernel.phase), hopper->smemPerBlock);
  }
  EXPECT_TRUE(sm90_latent.defaults(latent(16, 128), hopper).empty());
  EXPECT_TRUE(sm90_latent.defaults(latent(16), target::findTarget("sm_80")).empty());
  const auto tuned = sm90_latent.tuned(latent(16));
  ASSERT_EQ(tuned.size(), 2U);
  for (const TunedPhases &one : tuned)
    for (const TunedPhase &phase : one.phases)
      EXPECT_EQ(check(latent(16), phase.phase), "legal") << one.name;
}

} // namespace
} // namespace deft::kernels
