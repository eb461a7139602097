#include "compiler/kernels/DefaultConfig.h"
#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "compiler/kernels/Sm90.h"
#include "tests/support/LatentTensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace deft::kernels {
namespace {

spec::Variant variantOf(int queryHeads, int kvHeads, int dim) {
  spec::Variant variant;
  variant.name = "v";
  variant.queryHeads = queryHeads;
  variant.kvHeads = kvHeads;
  variant.tensors = spec::Tensors::alike(dim);
  return variant;
}

TEST(DefaultConfigTest, LegalOnEveryTargetForEveryRatioAndHeadDim) {
  for (int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 28, 32, 48, 64, 71, 128})
    for (int headDim : {64, 80, 96, 112, 128, 192, 256}) {
      if (ratio > 64 && headDim > 128)
        continue; // see the next test
      const spec::Variant variant = variantOf(ratio * 2, 2, headDim);
      const auto portable = defaultConfigOfAnyGpu(variant);
      ASSERT_TRUE(portable) << portable.error().message;
      for (const target::Target &target : target::targets()) {
        const auto config = defaultConfig(variant, &target);
        ASSERT_TRUE(config) << target.arch << " ratio " << ratio << " head_dim " << headDim << ": "
                            << config.error().message;
        EXPECT_TRUE(checkConfig(KernelShape::of(variant), *config, &target));
        const auto everywhere = checkConfig(KernelShape::of(variant), *portable, &target);
        EXPECT_TRUE(everywhere) << target.arch << ": " << everywhere.error().message;
      }
    }
}

TEST(DefaultConfigTest, AScheduleForLargeTargetsHasAConfigForNoneInParticular) {
  spec::Variant variant = variantOf(28, 4, 128);
  spec::PhaseSpec phase;
  phase.name = "narrow";
  phase.tileQ = spec::TuneList{{16}, false, {}};
  phase.tileKv = spec::TuneList{{64}, false, {}};
  phase.stages = spec::TuneList{{4}, false, {}};
  variant.schedule = spec::ScheduleSpec{{}, std::nullopt, {phase}};
  EXPECT_FALSE(defaultConfig(variant, target::findTarget("sm_86")));
  const auto config = defaultConfigOfAnyGpu(variant);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(checkConfig(KernelShape::of(variant), *config, target::findTarget("sm_80")));
  EXPECT_EQ(config->phases[0].stages, 4);
  variant.schedule->phases[0].stages->values = {8}; // too much for all: what is said is of the smallest
  const auto none = defaultConfigOfAnyGpu(variant);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("sm_86"), std::string::npos) << none.error().message;
}

TEST(DefaultConfigTest, AQueryTooLargeForTheMachineSaysByHowMuch) {
  const auto config = defaultConfig(variantOf(128, 1, 256), target::findTarget("sm_86"));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "phase `wide`: it needs 200640 bytes of shared memory; sm_86 allows 101376");
}

TEST(DefaultConfigTest, TwoPhasesUnlessAQueryFillsAWideTile) {
  const auto gqa = defaultConfigOfAnyGpu(variantOf(32, 8, 128));
  ASSERT_EQ(gqa->phases.size(), 2u);
  EXPECT_EQ(gqa->phases[0].name, "wide");
  EXPECT_EQ(gqa->phases[0].rowsAbove, 16);
  EXPECT_EQ(gqa->phases[1].tileQ, 16);
  const auto mqa = defaultConfigOfAnyGpu(variantOf(71, 1, 64));
  ASSERT_EQ(mqa->phases.size(), 1u);
  EXPECT_EQ(mqa->phases[0].tileQ, 80);
  EXPECT_EQ(mqa->phases[0].rowsAbove, -1);
}

TEST(DefaultConfigTest, ACpuCutsItemsAsForAGpuWithoutMuchMemory) {
  for (const int ratio : {1, 4, 17, 128})
    for (const int headDim : {64, 128, 256}) {
      const spec::Variant variant = variantOf(ratio, 1, headDim);
      const auto own = defaultConfig(variant, nullptr);
      const auto ofGpu = defaultConfigOfAnyGpu(variant);
      ASSERT_TRUE(own && ofGpu) << ratio << " " << headDim;
      ASSERT_EQ(own->phases.size(), ofGpu->phases.size());
      for (std::size_t i = 0; i < own->phases.size(); ++i) {
        EXPECT_EQ(own->phases[i].family, config::Family::Cpu);
        EXPECT_EQ(own->phases[i].tileQ, ofGpu->phases[i].tileQ);
        EXPECT_EQ(own->phases[i].rowsAbove, ofGpu->phases[i].rowsAbove);
      }
      EXPECT_EQ(defaultConfigs(variant, nullptr)->size(), 1u);
    }
}

/// A GPU takes the halves of a row as columns of 8 elements.
TEST(DefaultConfigTest, ACpuAppliesAHookOfKToRowsThatNoGpuDoes) {
  for (int dim : {8, 24, 40, 64, 104, 248})
    for (int ratio : {1, 8, 128}) {
      spec::Variant variant = variantOf(ratio, 1, dim);
      const auto without = defaultConfig(variant, nullptr);
      ASSERT_TRUE(without.ok()) << without.error().message;
      variant.exprs.resize(1);
      variant.key = 0;
      const auto with = defaultConfig(variant, nullptr);
      ASSERT_TRUE(with.ok()) << with.error().message;
      ASSERT_EQ(with->phases.size(), without->phases.size());
      for (std::size_t i = 0; i < with->phases.size(); ++i)
        EXPECT_EQ(with->phases[i].tileQ, without->phases[i].tileQ);
    }
}

TEST(DefaultConfigTest, ASchedulesPhasesAreOfTheFamilyForTheDevice) {
  spec::Variant variant = variantOf(32, 8, 128);
  spec::PhaseSpec phase;
  phase.name = "mine";
  phase.tileQ = spec::TuneList{{32}, false, {}};
  variant.schedule = spec::ScheduleSpec{{}, std::nullopt, {phase}};
  EXPECT_EQ(defaultConfig(variant, target::findTarget("sm_90a"))->phases[0].family, config::Family::Sm80);
  const auto onCpu = defaultConfig(variant, nullptr);
  ASSERT_TRUE(onCpu) << onCpu.error().message;
  EXPECT_EQ(onCpu->phases[0].family, config::Family::Cpu);
  EXPECT_EQ(onCpu->phases[0].name, "mine");
  EXPECT_EQ(onCpu->phases[0].tileQ, 32);
}

TEST(DefaultConfigTest, ARoomierTargetGetsADeeperRing) {
  const spec::Variant variant = variantOf(32, 8, 64);
  const auto small = defaultConfig(variant, target::findTarget("sm_86"));
  const auto large = defaultConfig(variant, target::findTarget("sm_80"));
  EXPECT_LT(small->phases[0].stages, large->phases[0].stages);
}

TEST(DefaultConfigTest, HopperGetsOneKernelOfItsFamilyFromHeadDim32) {
  const target::Target &hopper = *target::findTarget("sm_90a");
  const auto config = defaultConfig(variantOf(32, 8, 128), &hopper);
  ASSERT_EQ(config->phases.size(), 1u);
  EXPECT_EQ(config->phases[0].family, config::Family::Sm90);
  EXPECT_EQ(config->phases[0].stages, 4);
  EXPECT_EQ(config->phases[0].warps, kSm90Warps);
  const auto own = defaultConfig(variantOf(32, 32, 128), &hopper); // every head has its own keys
  EXPECT_EQ(own->phases[0].warps, kSm90LightWarps);
  EXPECT_EQ(own->phases[0].stages, 2);
  EXPECT_EQ(defaultConfig(variantOf(32, 8, 80), &hopper)->phases[0].family, config::Family::Sm90);
  const auto small = defaultConfig(variantOf(32, 8, 64), &hopper);
  EXPECT_EQ(small->phases[0].family, config::Family::Sm90);
  EXPECT_EQ(small->phases[0].warps, kSm90LightWarps);
  EXPECT_EQ(defaultConfig(variantOf(32, 8, 32), &hopper)->phases[0].family, config::Family::Sm90);
  EXPECT_EQ(defaultConfig(variantOf(32, 8, 16), &hopper)->phases[0].family, config::Family::Sm80);
  const auto large = defaultConfig(variantOf(16, 8, 256), &hopper);
  EXPECT_EQ(large->phases[0].warps, kSm90Warps);
  EXPECT_EQ(large->phases[0].stages, 2);
  const auto singles = defaultConfig(variantOf(16, 16, 192), &hopper); // two light blocks do not fit
  EXPECT_EQ(singles->phases[0].family, config::Family::Sm80);
}

TEST(DefaultConfigTest, ArraysOverTokensAreForTheKernelsOfAllOthers) {
  spec::Variant variant = variantOf(32, 8, 128);
  variant.params.push_back({"doc", spec::ScalarType::I32, spec::Param::Shape::PerToken, {}, {}, 0});
  const auto configsOf = [](const spec::Variant &variant) {
    std::vector<nlohmann::json> all;
    const auto configs = defaultConfigs(variant, target::findTarget("sm_90a"));
    for (const config::Config &config : *configs)
      all.push_back(config::toJson(config));
    return all;
  };
  EXPECT_EQ(configsOf(variant), configsOf(variantOf(32, 8, 128)));
}

TEST(DefaultConfigTest, KeysAreMadeByLightBlocksAloneOnHopper) {
  const auto configsOf = [](int headDim) {
    spec::Variant variant = variantOf(32, 8, headDim);
    variant.key = 0;
    return *defaultConfigs(variant, target::findTarget("sm_90a"));
  };
  const auto configs = configsOf(128);
  ASSERT_EQ(configs.size(), 2u);
  EXPECT_FALSE(isDealt(configs[0]));
  EXPECT_TRUE(isDealt(configs[1]));
  for (const config::Config &config : configs)
    EXPECT_TRUE(config.phases.size() == 1 && isLight(config.phases[0]));
  EXPECT_EQ(configsOf(192)[0].phases[0].family, config::Family::Sm80); // two light blocks do not fit
}

TEST(DefaultConfigTest, HopperHasWideAndLightBlocksForATreeToChooseFrom) {
  const target::Target &hopper = *target::findTarget("sm_90a");
  for (const int kvHeads : {8, 32}) {
    const auto all = defaultConfigs(variantOf(32, kvHeads, 128), &hopper);
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), kvHeads == 8 ? 4u : 3u);
    EXPECT_EQ(isTall(all->back().phases[0]), kvHeads == 8);
    EXPECT_EQ(isLight((*all)[0].phases[0]), kvHeads == 32);
    EXPECT_NE(isLight((*all)[0].phases[0]), isLight((*all)[1].phases[0]));
    EXPECT_FALSE(isDealt((*all)[0]) || isDealt((*all)[1]));
    EXPECT_TRUE(isLight((*all)[2].phases[0]) && isDealt((*all)[2]));
    for (const config::Config &config : *all)
      EXPECT_EQ(config.partition, spec::Partition::Auto);
  }
  spec::Variant sigmoid = variantOf(32, 8, 128);
  sigmoid.normalize = spec::Normalize::Sigmoid;
  EXPECT_EQ(defaultConfigs(sigmoid, &hopper)->size(), 4u);
  spec::Variant masked = variantOf(32, 8, 128);
  masked.exprs.push_back({});
  masked.mask = 0;
  EXPECT_EQ(defaultConfigs(masked, &hopper)->size(), 4u);
  EXPECT_EQ(defaultConfigs(variantOf(16, 8, 128), &hopper)->size(), 3u); // few rows: no tall blocks
  EXPECT_EQ(defaultConfigs(variantOf(28, 4, 128), &hopper)->size(),
            3u); // no dealing: queries have rows of two warps
  for (const int dim : {32, 48, 64}) {
    const auto narrow = defaultConfigs(variantOf(32, 8, dim), &hopper);
    ASSERT_EQ(narrow->size(), 3u) << dim;
    EXPECT_TRUE(isLight((*narrow)[0].phases[0])) << dim;
    EXPECT_TRUE(isDealt((*narrow)[2])) << dim;
  }
  const auto broad = defaultConfigs(variantOf(16, 8, 256), &hopper); // light blocks do not fit
  ASSERT_EQ(broad->size(), 1u);
  EXPECT_EQ((*broad)[0].phases[0].warps, kSm90Warps);
  const auto alone = defaultConfigs(variantOf(16, 16, 192), &hopper);
  ASSERT_EQ(alone->size(), 1u);
  EXPECT_EQ((*alone)[0].phases[0].family, config::Family::Sm80);
  EXPECT_EQ(defaultConfigs(variantOf(32, 8, 128), target::findTarget("sm_80"))->size(), 1u);
}

spec::TuneList listOf(std::vector<int> values) { return {std::move(values), true, {}}; }

TEST(DefaultConfigTest, TheSchedulesFirstLegalCombinationIsTaken) {
  spec::Variant variant = variantOf(32, 8, 128);
  spec::ScheduleSpec schedule;
  schedule.partitions = {spec::Partition::Auto};
  schedule.chunk = listOf({128, 256});
  spec::PhaseSpec wide, narrow;
  wide.name = "wide";
  wide.rowsAbove = 16;
  wide.tileQ = listOf({64, 128});
  wide.tileKv = listOf({128, 64}); // 128 tokens do not fit sm_86
  wide.stages = listOf({2, 3});
  narrow.name = "narrow";
  narrow.tileQ = listOf({16});
  schedule.phases = {wide, narrow};
  variant.schedule = schedule;

  const auto large = defaultConfig(variant, target::findTarget("sm_90a"));
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_EQ(large->partition, spec::Partition::Auto);
  EXPECT_EQ(large->chunkTokens, 128);
  EXPECT_EQ(large->phases[0].tileKv, 128);
  const auto small = defaultConfig(variant, target::findTarget("sm_86"));
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->phases[0].tileKv, 64);
  EXPECT_EQ(small->phases[0].stages, 2);
}

TEST(DefaultConfigTest, AScheduleWithoutLegalCombinationSaysWhy) {
  spec::Variant variant = variantOf(32, 1, 128);
  spec::PhaseSpec only;
  only.name = "only";
  only.tileQ = listOf({16});
  variant.schedule.emplace().phases = {only};
  const auto config = defaultConfigOfAnyGpu(variant);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "phase `only`: tile_q is 16, less than the 32 query heads that share a KV head");
}

/// What a schedule says is about speed; whether a tile fits a GPU is said where there is one.
TEST(DefaultConfigTest, ACpuTakesAScheduleThatNoGpuDoes) {
  spec::Variant variant = variantOf(40, 2, 256);
  spec::PhaseSpec wide, narrow;
  wide.name = "wide";
  wide.rowsAbove = 32;
  wide.tileQ = listOf({1024}); // 64 warps
  narrow.name = "narrow";
  narrow.tileQ = listOf({16, 48}); // 20 query heads share a KV head
  narrow.tileKv = listOf({1024});
  variant.schedule.emplace().phases = {wide, narrow};
  EXPECT_FALSE(defaultConfigOfAnyGpu(variant));
  const auto config = defaultConfig(variant, nullptr);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->phases.size(), 2u);
  EXPECT_EQ(config->phases[0].tileQ, 1024);
  EXPECT_EQ(config->phases[0].rowsAbove, 32);
  EXPECT_EQ(config->phases[1].tileQ, 48);
  EXPECT_EQ(config->phases[1].rowsAbove, -1);
}

spec::Variant latentVariant(int latentDim = 512) {
  spec::Variant variant = variantOf(16, 1, latentDim + 64);
  variant.tensors = test::latentTensors(latentDim);
  return variant;
}

TEST(DefaultConfigTest, LatentCachesGetTheNewestFamilyThatServesThem) {
  const auto familyFor = [](const spec::Variant &variant, const char *arch) {
    const auto config = defaultConfig(variant, target::findTarget(arch));
    return config ? std::string(familyOf(config->phases.front()).name) : config.error().message;
  };
  EXPECT_EQ(familyFor(latentVariant(), "sm_90a"), "sm90_latent");
  EXPECT_EQ(familyFor(latentVariant(128), "sm_90a"), "sm80_latent");
  for (const char *arch : {"sm_80", "sm_89", "sm_100"})
    EXPECT_EQ(familyFor(latentVariant(), arch), "sm80_latent") << arch;
  spec::Variant bytes = latentVariant();
  bytes.tensors.k.dtype = bytes.tensors.v.dtype = spec::DType::F8E4M3;
  for (const int scaleColumns : {0, 128}) {
    bytes.tensors.scaleColumns = scaleColumns;
    EXPECT_EQ(familyFor(bytes, "sm_90a"), "sm90_latent");
    EXPECT_EQ(familyFor(bytes, "sm_80"), "sm80_latent");
  }
  EXPECT_TRUE(defaultConfigOfAnyGpu(latentVariant()));
}

TEST(DefaultConfigTest, WhyNoGpuServesALatentCacheIsSaidByTheFamilyOfAllOfThem) {
  spec::Variant halves = latentVariant();
  halves.tensors.k.dtype = halves.tensors.v.dtype = spec::DType::F16;
  const std::string why =
      "phase `tiles`: q is bf16 and k f16; family sm80_latent takes one dtype for both, or "
      "a k of 8-bit floats";
  for (const target::Target &target : target::targets()) {
    const auto ofHalves = defaultConfig(halves, &target), wide = defaultConfig(latentVariant(576), &target);
    ASSERT_FALSE(ofHalves || wide) << target.arch;
    EXPECT_EQ(ofHalves.error().message, why);
    EXPECT_EQ(ofHalves.error().hint, "") << "no family is any better";
    EXPECT_EQ(wide.error().message,
              "phase `tiles`: v has dim 576; family sm80_latent takes a multiple of 16, up to 512");
  }
  EXPECT_EQ(defaultConfigOfAnyGpu(halves).error().message, why);
}

TEST(DefaultConfigTest, SchedulesNameNoPhasesOfLatentCachesOnGpus) {
  spec::Variant variant = latentVariant();
  spec::PhaseSpec phase;
  phase.name = "mine";
  variant.schedule = spec::ScheduleSpec{{}, std::nullopt, {phase}};
  for (const auto &config :
       {defaultConfig(variant, target::findTarget("sm_90a")), defaultConfigOfAnyGpu(variant)}) {
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().message, "phase `mine`: GPUs have no phases to name where v is in k's memory");
    EXPECT_EQ(config.error().hint, "leave the phases out of the schedule");
  }
  EXPECT_TRUE(defaultConfig(variant, nullptr));
  variant.schedule->phases.clear();
  EXPECT_TRUE(defaultConfig(variant, target::findTarget("sm_90a")));
}

} // namespace
} // namespace deft::kernels
