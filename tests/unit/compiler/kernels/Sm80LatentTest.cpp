/// The family of mma.sync over latent caches: bytes, shares, what it refuses, and its kernels.

#include "compiler/kernels/Sm80Latent.h"

#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::kernels {
namespace {

KernelShape latent(int queryHeads, int latentDim = 512, int ropeDim = 64) {
  return {{queryHeads, 1, test::latentTensors(latentDim, ropeDim)}};
}

PhaseConfig tiles(int tileQ, int tileKv, int stages, int warps) {
  return {"tiles", -1, config::Family::Sm80Latent, tileQ, tileKv, stages, warps};
}

std::string check(const PhaseConfig &phase, const KernelShape &shape = latent(16),
                  const char *arch = "sm_80") {
  const auto result = checkPhase(shape, phase, target::findTarget(arch));
  return result ? "legal" : result.error().message;
}

TEST(Sm80LatentTest, SharedMemoryCountsRingQueriesPartsAndRecords) {
  const KernelShape shape = latent(16);
  // Ring: stages * tokens * 1152 bytes; parts: warps * tokens * 64; records: (stages + 1) * tokens * 20.
  EXPECT_EQ(smemBytes(shape, tiles(16, 16, 4, 4)), 4 * 16 * 1152 + 4 * 16 * 64 + 5 * 16 * 20);
  // 416 of 576 dims of q wait, in rows that are padded from 52 to 53 columns.
  EXPECT_EQ(smemBytes(shape, tiles(64, 16, 2, 8)), 2 * 16 * 1152 + 64 * 53 * 16 + 8 * 16 * 64 + 3 * 16 * 20);
  // Results, where they are larger than the ring; a warp that is alone with its rows has no parts.
  EXPECT_EQ(smemBytes(latent(64, 64, 16), tiles(64, 16, 2, 4)), 64 * (128 + 16) + 3 * 16 * 20);
  // Of bytes the ring has rows as they are stored, and beside it is a tile of what they become.
  EXPECT_EQ(smemBytes({{16, 1, test::latentBytes(512, 64, 0)}}, tiles(16, 16, 4, 4)),
            4 * 16 * 576 + 16 * 1152 + 4 * 16 * 64 + 5 * 16 * 20);
  EXPECT_EQ(smemBytes({{16, 1, test::latentBytes()}}, tiles(16, 32, 3, 4)),
            3 * 32 * 656 + 32 * 1152 + 4 * 32 * 64 + 4 * 32 * 20);
  KernelShape arrays = shape;
  arrays.tokenParams = 2;
  EXPECT_EQ(smemBytes(arrays, tiles(16, 16, 4, 4)) - smemBytes(shape, tiles(16, 16, 4, 4)), 5 * 16 * 8);
}

TEST(Sm80LatentTest, WarpsShareColumnsAndDims) {
  const auto of = [](int tileQ, int warps) { return latentShares(latent(16), tiles(tileQ, 16, 2, warps)); };
  EXPECT_EQ(of(16, 4).sharers, 4);
  EXPECT_EQ(of(16, 4).sumRegisters, 64) << "two rows of 128 columns, by 32 lanes";
  EXPECT_EQ(of(16, 4).stepsHeld, 9) << "of 36, all of a warp's";
  EXPECT_EQ(of(16, 4).dimsWaiting, 0);
  EXPECT_EQ(of(64, 8).sumRegisters, 128);
  EXPECT_EQ(of(64, 8).stepsHeld, 5) << "of 18";
  EXPECT_EQ(of(64, 8).dimsWaiting, 576 - 5 * 2 * 16);
  EXPECT_EQ(of(64, 4).stepsHeld, 0) << "sums take all that there is";
}

TEST(Sm80LatentTest, WhatItHasNoCodeForIsRefused) {
  const PhaseConfig phase = tiles(16, 16, 2, 4);
  EXPECT_EQ(check(phase), "legal");
  EXPECT_EQ(check(phase, {{16, 1, spec::Tensors::alike(128)}}),
            "phase `tiles`: v has memory of its own; family sm80_latent reads it from k's");
  KernelShape shape = latent(16);
  shape.tensors.q.dtype = spec::DType::F16;
  EXPECT_EQ(
      check(phase, shape),
      "phase `tiles`: q is f16 and k bf16; family sm80_latent takes one dtype for both, or a k of 8-bit "
      "floats");
  EXPECT_EQ(check(phase, latent(16, 528, 64)),
            "phase `tiles`: v has dim 528; family sm80_latent takes a multiple of 16, up to 512");
  EXPECT_EQ(check(phase, latent(16, 72, 16)),
            "phase `tiles`: v has dim 72; family sm80_latent takes a multiple of 16, up to 512");
  EXPECT_EQ(check(phase, latent(16, 512, 8)),
            "phase `tiles`: k has 8 columns that v does not have; family sm80_latent takes a multiple of 16, "
            "from 16 to 128");
  EXPECT_EQ(check(phase, latent(16, 512, 0)),
            "phase `tiles`: k has 0 columns that v does not have; family sm80_latent takes a multiple of 16, "
            "from 16 to 128");
  shape = latent(16);
  shape.has.key = true;
  EXPECT_EQ(check(phase, shape), "phase `tiles`: there is a hook `key`; family sm80_latent reads values from "
                                 "keys as they lie in memory");
}

TEST(Sm80LatentTest, TilesHaveWarpsAndRegisters) {
  EXPECT_EQ(check(tiles(48, 16, 2, 4)),
            "phase `tiles`: warps is 4, not a multiple of the 3 that a tile of 48 rows takes");
  EXPECT_EQ(check(tiles(144, 16, 2, 9)),
            "phase `tiles`: tile_q is 144; family sm80_latent takes at most 128");
  EXPECT_EQ(check(tiles(16, 64, 2, 1)), "phase `tiles`: tile_kv is 64, more than the block's 32 threads");
  EXPECT_EQ(check(tiles(64, 16, 2, 4)),
            "phase `tiles`: a thread needs about 344 registers; a block of 4 warps leaves 255");
  EXPECT_EQ(check(tiles(64, 16, 2, 16)),
            "phase `tiles`: a thread needs about 152 registers; a block of 16 warps leaves 128");
  EXPECT_EQ(check(tiles(64, 32, 3, 8)),
            "phase `tiles`: it needs 183808 bytes of shared memory; sm_80 allows 166912");
}

TEST(Sm80LatentTest, OtherFamiliesLeaveLatentCachesToIt) {
  for (const target::Target &target : target::targets())
    for (const PhaseConfig &phase : {PhaseConfig{"tiles", -1, config::Family::Sm80, 16, 16, 2, 1},
                                     PhaseConfig{"tiles", -1, config::Family::Sm90, 64, 64, 2, 8}})
      EXPECT_FALSE(checkPhase(latent(16), phase, &target)) << target.arch;
}

TEST(Sm80LatentTest, DefaultsAreLegalEverywhere) {
  for (const target::Target &target : target::targets())
    for (const int heads : {1, 4, 16, 20, 32, 40, 64, 96, 128})
      for (const auto &[latentDim, ropeDim] : {std::pair(512, 64), {64, 16}, {256, 128}, {112, 32}}) {
        SCOPED_TRACE(std::string(target.arch) + ", " + std::to_string(heads) + ", " +
                     std::to_string(latentDim));
        const KernelShape shape = latent(heads, latentDim, ropeDim);
        const auto all = sm80_latent.defaults(shape, &target);
        ASSERT_FALSE(all.empty());
        EXPECT_EQ(all.front().phase.tileQ, 64) << "a tile for what many rows see";
        EXPECT_LE(all.size(), 2U);
        for (const DefaultKernel &one : all) {
          const auto legal = checkPhase(shape, one.phase, &target);
          EXPECT_TRUE(legal) << legal.error().message;
          EXPECT_GE(one.phase.tileQ, shape.rowsOfQuery());
        }
        if (shape.rowsOfQuery() <= 16) {
          EXPECT_EQ(all.back().phase.tileQ, 16) << "and one for a query's";
        }
      }
  EXPECT_TRUE(
      sm80_latent.defaults({{32, 8, spec::Tensors::alike(128)}}, target::findTarget("sm_80")).empty());
}

/// Of 512 and 64 columns: by the shared memory of each.
TEST(Sm80LatentTest, DefaultsUseTheSharedMemoryThatThereIs) {
  const auto of = [](const char *arch) {
    std::string text;
    for (const DefaultKernel &one : sm80_latent.defaults(latent(16), target::findTarget(arch)))
      text += std::to_string(one.phase.tileQ) + "x" + std::to_string(one.phase.tileKv) + "x" +
              std::to_string(one.phase.stages) + " ";
    return text;
  };
  EXPECT_EQ(of("sm_80"), "64x32x2 16x16x4 ");
  EXPECT_EQ(of("sm_89"), "64x16x2 16x16x2 ");
  EXPECT_EQ(of("sm_100"), "64x32x4 16x16x4 ");
}

TEST(Sm80LatentTest, WhatTheTunerTriesHoldsAQuery) {
  for (const int queryHeads : {8, 20, 40, 128})
    for (const TunedPhases &tuned : sm80_latent.tuned(latent(queryHeads)))
      for (const TunedPhase &phase : tuned.phases) {
        EXPECT_FALSE(phase.tileQ.empty());
        EXPECT_GE(*std::min_element(phase.tileQ.begin(), phase.tileQ.end()), latent(queryHeads).rowsOfQuery())
            << tuned.name;
      }
  EXPECT_EQ(sm80LatentNarrow(latent(16)).tileQ, (std::vector{16, 32}));
  EXPECT_EQ(sm80_latent.tuned(latent(40)).size(), 1U) << "no tile is narrower than a query";
}

} // namespace
} // namespace deft::kernels
