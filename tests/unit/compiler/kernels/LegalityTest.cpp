#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "compiler/kernels/Sm90.h"

#include <gtest/gtest.h>

namespace deft::kernels {
namespace {

using config::Config;

const KernelShape kLlama{32, 8, spec::Tensors::alike(128)};

PhaseConfig narrow() { return {"narrow", -1, config::Family::Sm80, 16, 64, 3, 4}; }

std::string messageOf(const support::Result<void> &result) {
  return result ? "legal" : result.error().message;
}

std::string check(const PhaseConfig &phase, const KernelShape &shape = kLlama, const char *arch = "sm_90a") {
  return messageOf(checkPhase(shape, phase, target::findTarget(arch)));
}

/// What no kernel is made for is refused, and a CPU takes it.
TEST(LegalityTest, GpusTakeTensorsOfOneDtypeEachInItsMemory) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  spec::Tensors tensors = spec::Tensors::alike(128);
  tensors.out.dtype = spec::DType::F16;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}), "legal") << "the output has a type of its own";
  tensors = spec::Tensors::alike(128);
  tensors.q.dim = tensors.k.dim = 192;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}), "legal");
  EXPECT_EQ(check(tiles, {32, 8, tensors}), "legal");
  const PhaseSite site{{32, 8, tensors}, narrow(), target::findTarget("sm_80"), sm80};
  EXPECT_FALSE(kAlikeTensors.holds(site)) << "the rule of families that know of one dim";
  EXPECT_EQ(kAlikeTensors.message(site), "k has dim 192 and v 128; family sm80 takes one dim for both");
  tensors.valueInKey = true;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}),
            "phase `narrow`: v is in k's memory; family sm80 reads it from memory of its own");
  tensors = spec::Tensors::alike(128);
  tensors.k.dtype = spec::DType::F16;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}),
            "phase `narrow`: q is bf16, k f16 and v bf16; family sm80 takes one dtype for all three");
  EXPECT_TRUE(checkPhase({32, 8, tensors}, {"tiles", -1, config::Family::Cpu, 64, 32, 2, 2}, nullptr));
}

/// Rule A12: what multiplies in 16 bits serves no spec that asks for 8.
TEST(LegalityTest, ProductsOfBytesAreForFamiliesThatMakeThem) {
  spec::Tensors tensors = spec::Tensors::alike(128);
  tensors.k.dtype = tensors.v.dtype = spec::DType::F8E4M3;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}), "legal");
  tensors.byteProducts = true;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}),
            "phase `narrow`: products are of fp8_e4m3; family sm80 multiplies in 16 bits (rule A12)");
  EXPECT_TRUE(checkPhase({32, 8, tensors}, {"tiles", -1, config::Family::Cpu, 64, 32, 2, 2}, nullptr));
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 3, kSm90LightWarps};
  EXPECT_EQ(check(light, {32, 8, tensors}), "legal");
  const std::string only = "phase `tiles`: products are of fp8_e4m3; family sm90 makes them in blocks of 8 "
                           "warps, only for head dims 96 and 128 (rule A12)";
  EXPECT_EQ(check({"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps}, {32, 8, tensors}), only);
  for (const int dim : {64, 80, 112, 256}) {
    spec::Tensors other = spec::Tensors::alike(dim);
    other.k.dtype = other.v.dtype = spec::DType::F8E4M3;
    other.byteProducts = true;
    EXPECT_EQ(check(light, {32, 8, other}), only) << dim;
  }
}

/// q of 16 bits under K and V of 8, each of either kind; not one of them alone.
TEST(LegalityTest, GpusTakeCachesOfBytes) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  spec::Tensors tensors = spec::Tensors::alike(128);
  tensors.k.dtype = spec::DType::F8E4M3;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}),
            "phase `narrow`: q is bf16, k fp8_e4m3 and v bf16; family sm80 takes one dtype for all three");
  tensors.v.dtype = spec::DType::F8E5M2;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}), "legal");
  EXPECT_EQ(check(tiles, {32, 8, tensors}), "legal");
  tensors.q.dim = tensors.k.dim = 192;
  EXPECT_EQ(check(narrow(), {32, 8, tensors}), "legal");
  const auto ofBytes = checkPhase({32, 8, tensors}, tiles, target::findTarget("sm_90a"));
  EXPECT_EQ(messageOf(ofBytes),
            "phase `tiles`: k has dim 192 and v 128, in 8 bits; family sm90 needs one dim for both");
  EXPECT_EQ(ofBytes.error().hint, "use family sm80");
}

/// Bytes in the ring of family sm80, and a number for each row of q that waits in shared memory; tiles of q's
/// type in that of family sm90, and bytes before they are converted.
TEST(LegalityTest, SharedMemoryCountsBytes) {
  const auto ofBytes = [](int dim) {
    spec::Tensors tensors = spec::Tensors::alike(dim);
    tensors.k.dtype = tensors.v.dtype = spec::DType::F8E4M3;
    return tensors;
  };
  EXPECT_EQ(smemBytes({32, 8, ofBytes(128)}, narrow()), 3 * 64 * 256 + 4 * 64 * 20);
  EXPECT_EQ(smemBytes({32, 8, ofBytes(192)}, narrow()), 3 * 64 * 2 * 208 + 16 * (384 + 4) + 4 * 64 * 20);
  const PhaseConfig wide{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  const int stageBytes = 2 * 2 * 64 * 128 + 64 * 12 + 64 + 16, pieceBytes = 2 * 64 * 128 + 32 + 64 * 8 + 16;
  EXPECT_EQ(smemBytes({32, 8, ofBytes(128)}, wide),
            2 * stageBytes + 4 * 2 * 16 * 272 + 2 * pieceBytes + 1024 + 4 * 2 * 32 * 256);
}

/// The ring counts K and V apart, accumulators are as wide as V, and queries as K.
/// Their values come with tiles, in 4 bytes a token each.
TEST(LegalityTest, ArraysOverTokensTakeRoomOfTiles) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 2, kSm90Warps};
  KernelShape shape = kLlama;
  shape.tokenParams = 1;
  EXPECT_EQ(check(narrow(), shape), "legal");
  EXPECT_EQ(check(tiles, shape), "legal");
  EXPECT_EQ(smemBytes(shape, tiles) - smemBytes(kLlama, tiles), 2 * 64 * 4);
  EXPECT_EQ(smemBytes(shape, narrow()) - smemBytes(kLlama, narrow()), 4 * 64 * 4);
  shape.tokenParams = 32; // 32 kB in a ring of 4 slots of 64 tokens
  EXPECT_EQ(check(narrow(), shape, "sm_86"),
            "phase `narrow`: it needs 136192 bytes of shared memory; sm_86 allows 101376");
}

TEST(LegalityTest, SharedMemoryCountsEachTensor) {
  spec::Tensors tensors = spec::Tensors::alike(192);
  tensors.v.dim = tensors.out.dim = 128;
  EXPECT_EQ(smemBytes({32, 8, tensors}, narrow()), 3 * 64 * (384 + 256) + 16 * 384 + 4 * 64 * 20);
  const PhaseConfig light{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  EXPECT_EQ(smemBytes({32, 8, tensors}, light), 2 * (3 * 64 * 128 + 2 * 64 * 128 + 64 * 12 + 64 + 16) +
                                                    4 * 16 * (2 * 32 + 16) + 3 * 64 * 128 + 32 + 64 * 8 + 16 +
                                                    1024);
}

TEST(LegalityTest, EachLimitIsNamedWithTheObservedNumber) {
  EXPECT_EQ(check(narrow()), "legal");
  const auto with = [](auto change) {
    PhaseConfig phase = narrow();
    change(phase);
    return phase;
  };
  EXPECT_EQ(check(with([](auto &p) { p.tileQ = 24; })),
            "phase `narrow`: tile_q is 24, not a positive multiple of 16");
  EXPECT_EQ(check(with([](auto &p) { p.tileKv = 40; })),
            "phase `narrow`: tile_kv is 40, not a positive multiple of 16");
  EXPECT_EQ(check(with([](auto &p) { p.stages = 1; })), "phase `narrow`: stages is 1, not between 2 and 8");
  EXPECT_EQ(check(with([](auto &p) { p.warps = 33; })), "phase `narrow`: warps is 33, not between 1 and 32");
  EXPECT_EQ(check(with([](auto &p) { p.warps = 0; })), "phase `narrow`: warps is 0, not between 1 and 32");
  EXPECT_EQ(check(with([](auto &p) { p.tileQ = 48; })),
            "phase `narrow`: warps is 4, not a multiple of the 3 that a tile of 48 rows takes");
  EXPECT_EQ(
      check(with([](auto &p) { p.tileKv = 48; })),
      "phase `narrow`: tile_kv is 48, not a multiple of the 64 tokens that its 4 token warps take at a time");
  EXPECT_EQ(check(with([](auto &p) { p.warps = 1; })),
            "phase `narrow`: tile_kv is 64, more than the block's 32 threads");
  EXPECT_EQ(check(with([](auto &p) { p.name = "merge"; })),
            "phase `merge`: the name is taken by the merge kernel");
  EXPECT_EQ(check(with([](auto &p) { p.name = "a b"; })), "phase `a b`: its name is not an identifier");
}

TEST(LegalityTest, ACpuAsksForRowsOnly) {
  const auto check = [](const Config &config) { return messageOf(checkConfig(kLlama, config, nullptr)); };
  const PhaseConfig wide{"wide", 16, config::Family::Cpu, 64, 64, 2, 4},
      narrow{"narrow", -1, config::Family::Cpu, 16, 64, 2, 4};
  Config config;
  config.phases = {wide, narrow};
  EXPECT_EQ(check(config), "legal");
  config.phases[0].stages = 99; // nothing that it has
  config.phases[0].name = "narrow";
  config.phases[0].tileQ = 70;
  config.phases[1].tileQ = 2; // the other holds a query
  EXPECT_EQ(check(config), "legal");
  config.phases[0].tileQ = 3;
  EXPECT_EQ(check(config), "tile_q is 3, less than the 4 query heads that share a KV head");
  config.phases[0].tileQ = 4097;
  EXPECT_EQ(check(config), "phase `narrow`: tile_q is 4097, not between 1 and 4096");
  for (const int tileKv : {0, -16, 1 << 30}) {
    config.phases = {wide, narrow};
    config.phases[0].tileKv = tileKv; // `mixed` orders tokens by it
    EXPECT_EQ(check(config),
              "phase `wide`: tile_kv is " + std::to_string(tileKv) + ", not between 1 and 4096");
  }
  config.phases = {wide};
  EXPECT_EQ(check(config), "the last phase, `wide`, serves only items of more than 16 rows");
  config.phases = {narrow, wide};
  EXPECT_EQ(check(config), "phase `wide` is never reached: `narrow` before it serves its items");
  config.phases.clear();
  EXPECT_EQ(check(config), "a config without phases serves no item");
}

TEST(LegalityTest, AFamilyRunsOnItsDeviceAlone) {
  const PhaseConfig ofCpu{"tiles", -1, config::Family::Cpu, 64, 64, 2, 4};
  const auto onGpu = checkPhase(kLlama, ofCpu, target::findTarget("sm_90a"));
  EXPECT_EQ(messageOf(onGpu), "phase `tiles`: family cpu is not for GPUs");
  EXPECT_EQ(onGpu.error().hint, "use family sm80 or sm90");
  EXPECT_EQ(checkPhase({8, 8, spec::Tensors::alike(16)}, ofCpu, target::findTarget("sm_90a")).error().hint,
            "use family sm80");
  const auto onCpu = checkPhase(kLlama, narrow(), nullptr);
  EXPECT_EQ(messageOf(onCpu), "phase `narrow`: family sm80 is not for a CPU");
  EXPECT_EQ(onCpu.error().hint, "use family cpu");
}

TEST(LegalityTest, HintsNameTheFamiliesThatServeTheShape) {
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 128, 64, 4, kSm90Warps};
  EXPECT_EQ(checkPhase(kLlama, tiles, target::findTarget("sm_89")).error().hint, "use family sm80");
  EXPECT_EQ(checkPhase({8, 8, spec::Tensors::alike(16)}, tiles, target::findTarget("sm_90a")).error().hint,
            "use family sm80");
  const auto invariant = checkInvariant(kLlama.tensors, tiles);
  EXPECT_EQ(messageOf(invariant),
            "an invariant plan cannot use family sm90, which sums in another order where "
            "an item has more rows");
  EXPECT_EQ(invariant.error().hint, "use a phase of family sm80");
  spec::Tensors inKeys = kLlama.tensors;
  inKeys.valueInKey = true;
  EXPECT_EQ(checkInvariant(inKeys, tiles).error().hint, "use a phase of family sm80_latent or sm90_latent");
  EXPECT_TRUE(checkInvariant(kLlama.tensors, narrow()));
}

TEST(LegalityTest, RowsOfAnOddNumberOfEightsAreForSm80) {
  const KernelShape shape{8, 8, spec::Tensors::alike(72)};
  const PhaseConfig tiles{"tiles", -1, config::Family::Sm90, 64, 64, 2, kSm90LightWarps};
  const auto wide = checkPhase(shape, tiles, target::findTarget("sm_90a"));
  EXPECT_EQ(messageOf(wide), "phase `tiles`: head_dim is 72, not a multiple of family sm90's 16");
  EXPECT_EQ(wide.error().hint, "use family sm80");
  EXPECT_TRUE(checkPhase(shape, narrow(), target::findTarget("sm_90a")));
}

TEST(LegalityTest, TheTileHoldsAQueryOfEveryRatio) {
  EXPECT_EQ(check(narrow(), {28, 1, spec::Tensors::alike(128)}),
            "phase `narrow`: tile_q is 16, less than the 28 query heads that share a KV head");
  const auto result = checkPhase({28, 1, spec::Tensors::alike(128)}, narrow(), target::findTarget("sm_80"));
  EXPECT_EQ(result.error().hint, "use at least 32");
}

TEST(LegalityTest, SharedMemoryIsHeldToTheTarget) {
  PhaseConfig phase = narrow();
  EXPECT_EQ(check(phase, kLlama, "sm_86"),
            "phase `narrow`: it needs 103424 bytes of shared memory; sm_86 allows 101376");
  EXPECT_EQ(check(phase, kLlama, "sm_80"), "legal");
  phase.stages = 6;
  EXPECT_EQ(check(phase, kLlama, "sm_80"),
            "phase `narrow`: it needs 205568 bytes of shared memory; sm_80 allows 166912");
  EXPECT_EQ(check(phase, kLlama, "sm_90a"), "legal");
}

TEST(LegalityTest, PhasesAreOrderedAndTheLastServesAll) {
  const target::Target &target = *target::findTarget("sm_90a");
  PhaseConfig wide{"wide", 16, config::Family::Sm80, 64, 64, 2, 4};
  Config config;
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)), "a config without phases serves no item");
  config.phases = {wide, narrow()};
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)), "legal");
  config.phases = {wide};
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)),
            "the last phase, `wide`, serves only items of more than 16 rows");
  config.phases = {narrow(), wide};
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)),
            "phase `wide` is never reached: `narrow` before it serves its items");
  config.phases = {wide, narrow()};
  config.phases[1].name = "wide";
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)), "two phases are called `wide`");
  config.chunkTokens = -1;
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)), "chunk is -1, less than 0");
  config.phases[1].name = "narrow";
  config.chunkTokens = 0;
  config.cost.itemUs = 1.7e308;
  EXPECT_EQ(messageOf(checkConfig(kLlama, config, &target)),
            "cost: `item_us` is 1.7e+308, a price is from 0 to 1e+06");
}

} // namespace
} // namespace deft::kernels
