/// The family of mma.sync: bytes, registers, and the phases that it is given. What is refused is
/// LegalityTest's.

#include "compiler/kernels/Sm80.h"

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

PhaseConfig narrow() { return {"narrow", -1, config::Family::Sm80, 16, 64, 3, 4}; }

int bytesOf(int dim, const PhaseConfig &phase) {
  return smemBytes({32, 8, spec::Tensors::alike(dim)}, phase);
}

TEST(Sm80Test, SharedMemoryCountsRingRecordsAndQueries) {
  // Ring: 2 (k, v) * 3 stages * 64 tokens * 256 bytes; records: 4 slots * 64 tokens * 20 bytes.
  EXPECT_EQ(bytesOf(128, narrow()), 2 * 3 * 64 * 256 + 4 * 64 * 20);
  // Head dim 80 is padded from 10 to 11 columns of 16 bytes.
  EXPECT_EQ(bytesOf(80, narrow()), 2 * 3 * 64 * 176 + 4 * 64 * 20);
  // Above 128 the queries are in shared memory too.
  EXPECT_EQ(bytesOf(256, narrow()), 2 * 3 * 64 * 512 + 16 * 512 + 4 * 64 * 20);
  // A short ring is smaller than the buffer that joins the warps' accumulators.
  PhaseConfig small{"small", -1, config::Family::Sm80, 64, 16, 2, 4};
  EXPECT_EQ(bytesOf(128, small), 4 * 16 * 134 * 4 + 3 * 16 * 20);
}

TEST(Sm80Test, RegistersAreHeldToTheBlock) {
  PhaseConfig wide{"wide", -1, config::Family::Sm80, 256, 64, 2, 16};
  EXPECT_EQ(check(wide), "phase `wide`: a thread needs about 224 registers; a block of 16 warps leaves 128");
}

TEST(Sm80Test, KeysAreMadeOfWhatHasRoomForThem) {
  const spec::HookSet hasKey{.key = true};
  KernelShape shape{{32, 8, spec::Tensors::alike(128)}, hasKey};
  EXPECT_EQ(check(narrow(), shape), "legal");
  shape.tensors.k.dtype = shape.tensors.v.dtype = spec::DType::F8E4M3;
  EXPECT_EQ(check(narrow(), shape), "phase `narrow`: the hook `key` overwrites keys in place; family sm80 "
                                    "has 1 byte for each element of this cache and needs 2");
  shape.has.key = false;
  EXPECT_EQ(check(narrow(), shape), "legal");
  EXPECT_EQ(check(narrow(), {{32, 8, spec::Tensors::alike(40)}, hasKey}),
            "phase `narrow`: head_dim is 40; the hook `key` takes the halves of a row as columns of 8 "
            "elements, which "
            "takes a multiple of 16");
}

/// Where the schedule says nothing, every shape gets phases that can be compiled, and of which one holds a
/// query.
TEST(Sm80Test, PhasesWithoutAScheduleAreLegalAndServeAll) {
  for (const char *const arch : {"sm_80", "sm_86", "sm_89", "sm_90a"})
    for (const auto &[queryHeads, kvHeads] : {std::pair(32, 32), {32, 8}, {28, 1}, {64, 1}, {71, 1}})
      for (const int dim : {16, 64, 80, 128}) {
        SCOPED_TRACE(std::string(arch) + ", " + std::to_string(queryHeads) + "/" + std::to_string(kvHeads) +
                     ", " + std::to_string(dim));
        const KernelShape shape{queryHeads, kvHeads, spec::Tensors::alike(dim)};
        const target::Target *const target = target::findTarget(arch);
        const auto phases = sm80.scheduled(shape, {}, target);
        ASSERT_TRUE(phases) << phases.error().message;
        config::Config config;
        config.phases = *phases;
        const auto legal = checkConfig(shape, config, target);
        EXPECT_TRUE(legal) << legal.error().message;
        // Two of them only where a leaf's few rows would pay for a wide tile.
        EXPECT_EQ(phases->size(), queryHeads / kvHeads > 32 ? 1U : 2U);
        if (phases->size() == 2) {
          EXPECT_LT((*phases)[1].tileQ, (*phases)[0].tileQ);
          EXPECT_EQ((*phases)[0].rowsAbove, (*phases)[1].tileQ);
        }
      }
}

TEST(Sm80Test, TheFirstLegalCombinationOfASchedulesListsIsTaken) {
  spec::PhaseSpec wide;
  wide.name = "wide";
  wide.tileQ = spec::TuneList{{48, 64}, true, {}};
  wide.warps = spec::TuneList{{4}, false, {}};
  const auto chosen = sm80.scheduled(kLlama, std::vector{wide}, target::findTarget("sm_90a"));
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().tileQ, 64) << "4 warps do not share a tile of 48 rows";
  wide.tileQ = spec::TuneList{{48}, false, {}};
  const auto none = sm80.scheduled(kLlama, std::vector{wide}, target::findTarget("sm_90a"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            "phase `wide`: warps is 4, not a multiple of the 3 that a tile of 48 rows takes");
}

TEST(Sm80Test, RegistersFollowFromFragments) {
  const auto of = [](int dim, int tileQ, int tileKv, int warps) {
    return estimateRegisters({32, 8, spec::Tensors::alike(dim)},
                             {"p", -1, config::Family::Sm80, tileQ, tileKv, 2, warps});
  };
  EXPECT_EQ(of(128, 64, 64, 4) - of(128, 64, 32, 4), 16) << "a thread has half of a row's scores, two rows";
  EXPECT_EQ(of(128, 64, 64, 4) - of(64, 64, 64, 4), 32 + 16) << "accumulators and queries";
  EXPECT_EQ(of(128, 64, 64, 8), of(128, 64, 32, 4)) << "two warps share a row's tokens";
  EXPECT_EQ(of(192, 64, 64, 4) - of(128, 64, 64, 4), 32 - 32) << "wide queries wait in shared memory";
}

TEST(Sm80Test, WhatTheTunerTriesHoldsAQuery) {
  for (const int queryHeads : {8, 20, 40, 100})
    for (const TunedPhases &tuned : sm80.tuned({queryHeads, 1, spec::Tensors::alike(128)}))
      for (const TunedPhase &phase : tuned.phases) {
        EXPECT_FALSE(phase.tileQ.empty());
        EXPECT_GE(*std::min_element(phase.tileQ.begin(), phase.tileQ.end()), queryHeads) << tuned.name;
      }
  EXPECT_EQ(sm80Narrow(kLlama).tileQ, (std::vector{16, 32, 64}));
}

} // namespace
} // namespace deft::kernels
