#include "compiler/kernels/SparsePhase.h"

#include "compiler/kernels/Legality.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

TEST(SparsePhaseTest, AListIsReadInTilesOf64ByFourWarps) {
  const auto phase = sparsePhase({32, 8, spec::Tensors::alike(128)}, *target::findTarget("sm_90a"));
  ASSERT_TRUE(phase) << phase.error().message;
  EXPECT_EQ(phase->family, config::Family::Sm80);
  EXPECT_EQ(phase->tileQ, 16);
  EXPECT_EQ(phase->tileKv, 64);
  EXPECT_EQ(phase->stages, 2);
  EXPECT_EQ(phase->warps, 4);
}

TEST(SparsePhaseTest, EveryArchitectureHasOneForEveryShape) {
  for (const target::Target &target : target::targets())
    for (const int dim : {16, 64, 96, 128, 192, 256})
      for (const int ratio : {1, 4, 7, 16, 17, 40, 64}) {
        const KernelShape shape{ratio, 1, spec::Tensors::alike(dim)};
        const auto phase = sparsePhase(shape, target);
        EXPECT_TRUE(phase) << target.arch << ", dim " << dim << ", ratio " << ratio << ": "
                           << (phase ? "" : phase.error().message);
        if (phase) {
          EXPECT_GE(phase->tileQ, ratio);
          EXPECT_TRUE(checkPhase(shape, *phase, &target).ok());
        }
      }
}

TEST(SparsePhaseTest, WhatElseMayBeFasterIsLegalAndEachOnce) {
  for (const target::Target &target : target::targets())
    for (const int dim : {16, 128, 256})
      for (const int ratio : {1, 16, 17, 40, 64}) {
        const KernelShape shape{ratio, 1, spec::Tensors::alike(dim)};
        const auto phases = sparsePhases(shape, target);
        SCOPED_TRACE(std::string(target.arch) + ", " + std::to_string(dim) + ", " + std::to_string(ratio));
        ASSERT_FALSE(phases.empty());
        EXPECT_TRUE(haveSameSparseTile(phases.front(), *sparsePhase(shape, target)));
        for (std::size_t i = 0; i < phases.size(); ++i) {
          EXPECT_TRUE(checkPhase(shape, phases[i], &target).ok());
          EXPECT_EQ(phases[i].tileQ, shape.fewestRows());
          for (std::size_t j = 0; j < i; ++j)
            EXPECT_FALSE(haveSameSparseTile(phases[i], phases[j]));
        }
      }
  EXPECT_EQ(sparsePhases({32, 8, spec::Tensors::alike(128)}, *target::findTarget("sm_90a")).size(), 19u);
  EXPECT_GT(sparsePhases({64, 2, spec::Tensors::alike(64)}, *target::findTarget("sm_90a")).size(), 5u);
  spec::Tensors tensors = spec::Tensors::alike(128);
  tensors.v.dtype = spec::DType::F16; // which no kernel serves beside K of bf16
  EXPECT_TRUE(sparsePhases({8, 8, tensors}, *target::findTarget("sm_80")).empty());
}

KernelShape latent(int heads, bool areGiven) {
  KernelShape shape{heads, 1, spec::Tensors::alike(512)};
  shape.tensors.q.dim = shape.tensors.k.dim = 576;
  shape.tensors.valueInKey = true;
  shape.listsAreGiven = areGiven;
  return shape;
}
TEST(SparsePhaseTest, GivenListsAreReadFromLatentCachesByEveryArchitecture) {
  for (const target::Target &target : target::targets())
    for (const int heads : {1, 5, 16, 24, 64, 66, 128}) {
      const KernelShape shape = latent(heads, true);
      const auto phase = sparsePhase(shape, target);
      ASSERT_TRUE(phase) << target.arch << ", " << heads << " heads: " << phase.error().message;
      const bool isByWgmma = target.arch == std::string("sm_90a");
      EXPECT_EQ(phase->family, isByWgmma ? config::Family::Sm90Latent : config::Family::Sm80Latent);
      EXPECT_GE(phase->tileQ, shape.rowsOfQuery());
      if (!isByWgmma || heads <= 16) {
        EXPECT_LT(phase->tileQ, shape.rowsOfQuery() + 16);
      }
      EXPECT_TRUE(checkPhase(shape, *phase, &target).ok());
      const auto phases = sparsePhases(shape, target);
      EXPECT_TRUE(haveSameSparseTile(phases.front(), *phase));
      for (std::size_t i = 0; i < phases.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_FALSE(haveSameSparseTile(phases[i], phases[j]));
    }
}
TEST(SparsePhaseTest, WhatWgmmaDoesNotTakeIsReadByTheOtherFamily) {
  KernelShape shape = latent(32, true);
  shape.tokenParams = 1;
  EXPECT_EQ(sparsePhase(shape, *target::findTarget("sm_90a"))->family, config::Family::Sm80Latent);
}

// Rule K8.
TEST(SparsePhaseTest, OtherListsOfLatentCachesAndGivenListsOfOthersAreErrors) {
  const target::Target &target = *target::findTarget("sm_90a");
  EXPECT_EQ(sparsePhase(latent(16, false), target).error().message,
            "GPUs select no tokens of a latent cache (rule K8)");
  KernelShape shape{32, 8, spec::Tensors::alike(128)};
  shape.listsAreGiven = true;
  EXPECT_EQ(sparsePhase(shape, target).error().message,
            "GPUs read lists by `caller` from latent caches only (rule K8)");
}

TEST(SparsePhaseTest, AUnionIsReadInTilesOfTheRowsOf32Queries) {
  const auto rowsOf = [](int queryHeads, int kvHeads, int dim) {
    const auto phase =
        unitedPhase({queryHeads, kvHeads, spec::Tensors::alike(dim)}, *target::findTarget("sm_80"));
    return phase ? phase->tileQ : 0;
  };
  EXPECT_EQ(rowsOf(32, 8, 128), 128);
  EXPECT_EQ(rowsOf(32, 32, 128), 32);
  EXPECT_EQ(rowsOf(64, 32, 128), 64);
  EXPECT_EQ(rowsOf(24, 8, 128), 96);
  EXPECT_EQ(rowsOf(16, 1, 128), 128);
}

TEST(SparsePhaseTest, AUnionIsReadByWgmmaWhereItCan) {
  const auto familyOf = [](const char *arch, int dim, bool hasKeyHook) {
    KernelShape shape{32, 8, spec::Tensors::alike(dim)};
    shape.has.key = hasKeyHook;
    return unitedPhase(shape, *target::findTarget(arch))->family;
  };
  EXPECT_EQ(familyOf("sm_90a", 128, false), config::Family::Sm90);
  EXPECT_EQ(familyOf("sm_90a", 192, false), config::Family::Sm80);
  EXPECT_EQ(familyOf("sm_90a", 128, true), config::Family::Sm80);
  EXPECT_EQ(familyOf("sm_120", 128, false), config::Family::Sm80);
  KernelShape unlike{32, 8, spec::Tensors::alike(192)};
  unlike.tensors.v.dim = unlike.tensors.out.dim = 128;
  EXPECT_EQ(unitedPhase(unlike, *target::findTarget("sm_90a"))->family, config::Family::Sm80);
  unlike.tensors.q.dim = unlike.tensors.k.dim = 96;
  EXPECT_EQ(unitedPhase(unlike, *target::findTarget("sm_90a"))->family, config::Family::Sm90);
  KernelShape weighed{32, 8, spec::Tensors::alike(128)};
  weighed.tokenParams = 1;
  weighed.has.valueFactor = true;
  EXPECT_EQ(unitedPhase(weighed, *target::findTarget("sm_90a"))->family, config::Family::Sm90);
}

TEST(SparsePhaseTest, EveryArchitectureHasOneForUnionsOfEveryShape) {
  for (const target::Target &target : target::targets())
    for (const int dim : {16, 64, 96, 128, 192, 256})
      for (const int ratio : {1, 4, 7, 16, 17, 40, 64}) {
        const KernelShape shape{ratio, 1, spec::Tensors::alike(dim)};
        const auto phase = unitedPhase(shape, target);
        ASSERT_TRUE(phase) << target.arch << ", dim " << dim << ", ratio " << ratio << ": "
                           << phase.error().message;
        EXPECT_GE(phase->tileQ, ratio);
        EXPECT_TRUE(checkPhase(shape, *phase, &target).ok());
      }
}

TEST(SparsePhaseTest, ManyColumnsHaveSmallerTiles) {
  const auto phase = sparsePhase({8, 8, spec::Tensors::alike(256)}, *target::findTarget("sm_86"));
  ASSERT_TRUE(phase) << phase.error().message;
  EXPECT_EQ(phase->tileKv, 32);
}

TEST(SparsePhaseTest, WhatNoKernelServesSaysWhy) {
  spec::Tensors tensors = spec::Tensors::alike(128);
  tensors.v.dtype = spec::DType::F16;
  const auto phase = sparsePhase({8, 8, tensors}, *target::findTarget("sm_80"));
  ASSERT_FALSE(phase);
  EXPECT_NE(phase.error().message.find("dtype"), std::string::npos) << phase.error().message;
}

} // namespace
} // namespace deft::kernels
