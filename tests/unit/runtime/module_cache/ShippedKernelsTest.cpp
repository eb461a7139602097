#include "runtime/module_cache/CompileKernels.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/driver/Compilation.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/Sm90.h"
#include "tests/support/MachineCode.h"
#include "tests/support/ShippedVariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace deft::module_cache {
namespace {

/// What kernels that deal tokens may keep in memory, of a thread, with three times as many bytes of loads:
/// one with a mask does, and those over 8-bit caches or that make keys (docs/kernels.md#spills).
int mostDealtSpills(const spec::Variant &variant) {
  return variant.tensors.k.elementBytes() == 1 || variant.key ? 48 : 24;
}

/// Bytes that kernels under default configs may spill: only those of latent caches of bytes do. On Hopper
/// their eight copying warps have 48 registers a thread. An H200 took 0.86 to 0.93 of the time of four such
/// warps with more registers (tests/gpu/records/h200-latent-bytes.json).
int mostSpills(const spec::Variant &variant, const target::Target &target) {
  if (!variant.tensors.valueInKey || variant.tensors.k.elementBytes() != 1)
    return 0;
  return target.arch == "sm_90a" ? 112 : 16;
}

/// 64 heads over rows with scales need 100.4 KiB of a block, and some GPUs have 99.
bool isTooLarge(const spec::Variant &variant, const target::Target &target) {
  constexpr int kLeast = 102848;
  return variant.tensors.scaleColumns > 0 && variant.queryHeads >= 64 && target.smemPerBlock < kLeast;
}

void checkKernel(const package::Kernel &kernel, const target::Target &target, int mostSpills) {
  SCOPED_TRACE(kernel.entry);
  EXPECT_FALSE(kernel.cubin.empty());
  EXPECT_EQ(test::predicatedReductions(kernel.cubin), 0);
  EXPECT_LE(kernel.resources.spillStoreBytes, mostSpills);
  EXPECT_LE(kernel.resources.spillLoadBytes, 3 * mostSpills);
  EXPECT_LE(kernel.resources.stackBytes, mostSpills);
  EXPECT_GT(kernel.resources.registers, 0);
  EXPECT_LE(kernel.resources.registers, target.registersPerThread);
  EXPECT_LE(kernel.resources.registers * kernel.threads, target.registersPerSm);
  EXPECT_LE(kernel.smemBytes + kernel.resources.staticSharedBytes, target.smemPerBlock);
}

/// A variant's kernels under some configs.
void checkVariant(const spec::Variant &variant, const std::vector<config::Config> &configs, int mostSpills,
                  const test::ShippedVariants &shipped, const target::Target &target, const auto &nvrtc,
                  const auto &cache) {
  SCOPED_TRACE(variant.name);
  auto compilation = driver::Compilation::create(variant, shipped.sources);
  ASSERT_TRUE(compilation.ok()) << compilation.error().message;
  const auto source = compilation->cudaVariantSource();
  ASSERT_TRUE(source.ok()) << source.error().message;
  for (const config::Config &config : configs) {
    const auto set = compileLayers(cache.get(), **nvrtc, *source, config, target);
    ASSERT_TRUE(set.ok()) << set.error().message;
    for (const package::Kernel &kernel : set->attend)
      checkKernel(kernel, target, mostSpills);
  }
}

/// Every kernel of every shipped spec under its default config, for one architecture; where there are kernels
/// that deal tokens, those of all default configs, too.
class ShippedKernelsTest : public testing::TestWithParam<const char *> {};

TEST_P(ShippedKernelsTest, CompileWithoutSpillsWithinTheMachinesLimits) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const target::Target &target = *target::findTarget(GetParam());
  const test::ShippedVariants shipped = test::shippedVariants();
  ASSERT_GE(shipped.variants.size(), 12u);
  // A folder of the build, so that only what has changed is compiled again.
  const auto cache = CubinCache::open(DEFT_TEST_CACHE);

  for (const spec::Variant &variant : shipped.variants) {
    SCOPED_TRACE(variant.name);
    auto compilation = driver::Compilation::create(variant, shipped.sources);
    ASSERT_TRUE(compilation.ok()) << compilation.error().message;
    const auto source = compilation->cudaVariantSource();
    ASSERT_TRUE(source.ok()) << source.error().message;
    const auto check = [&](const package::Kernel &kernel, int mostSpills) {
      checkKernel(kernel, target, mostSpills);
    };
    auto configs = kernels::defaultConfigs(variant, &target);
    if (isTooLarge(variant, target)) {
      ASSERT_FALSE(configs.ok());
      EXPECT_THAT(configs.error().message, testing::HasSubstr("it needs 102848 bytes of shared memory"));
      continue;
    }
    ASSERT_TRUE(configs.ok()) << configs.error().message;
    std::vector<config::Config> tried{configs->front()};
    for (config::Config &config : *configs) {
      if (config::mostRows(config) == 192) // TallKernelsTest
        continue;
      config.order = config::Order::Mixed;
      if (kernels::isDealt(config.phases.front(), config.order))
        tried.push_back(config);
    }
    for (const config::Config &config : tried) {
      SCOPED_TRACE(config::toJson(config).dump());
      const auto set = compileLayers(cache.get(), **nvrtc, *source, config, target);
      ASSERT_TRUE(set.ok()) << set.error().message;
      ASSERT_EQ(set->attend.size(), config.phases.size());
      const bool isDealt = config.order == config::Order::Mixed;
      for (const package::Kernel &kernel : set->attend)
        check(kernel, isDealt ? mostDealtSpills(variant) : mostSpills(variant, target));
      check(set->merge, 0);
      EXPECT_EQ(set->merge.smemBytes, 0);
      ASSERT_EQ(set->selecting.has_value(), variant.select.has_value());
      if (!set->selecting)
        continue;
      for (const package::Kernel &kernel : set->selecting->attend)
        check(kernel, isDealt ? mostDealtSpills(variant) : 0);
      if (set->selecting->select)
        check(*set->selecting->select, 0);
      check(set->selecting->sparse, 0);
      ASSERT_TRUE(set->selecting->uniting);
      check(set->selecting->uniting->unite, 0);
      check(set->selecting->uniting->attend, 0);
    }
  }
}

/// Those of the shipped specs that products of 8 bits go with, over caches of that (rule A12). A few bytes of
/// what is known of a unit stay in memory, outside the loop over tiles.
TEST(ByteProductsKernelsTest, CompileWithFewSpills) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const target::Target &target = *target::findTarget("sm_90a");
  const test::ShippedVariants shipped = test::shippedVariants();
  const auto cache = CubinCache::open(DEFT_TEST_CACHE);
  int compiled = 0;
  for (spec::Variant variant : shipped.variants) {
    spec::Tensors &tensors = variant.tensors;
    if (tensors.k.dim != tensors.v.dim || tensors.k.dim % 32 != 0 || tensors.k.dim <= 64 ||
        tensors.k.dim > 128 || tensors.valueInKey || variant.atOddsWithByteProducts())
      continue;
    tensors.k.dtype = tensors.v.dtype = spec::kByteProducts;
    tensors.byteProducts = true;
    variant.schedule.reset(); // whose phases are another family's
    const auto configs = kernels::defaultConfigs(variant, &target);
    ASSERT_TRUE(configs.ok()) << configs.error().message;
    checkVariant(variant, *configs, 72, shipped, target, nvrtc, cache);
    compiled += static_cast<int>(configs->size());
  }
  EXPECT_GE(compiled, 8);
}

/// Tall blocks of family sm90 of the shipped specs that they are legal for.
TEST(TallKernelsTest, CompileWithFewSpills) {
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  const target::Target &target = *target::findTarget("sm_90a");
  const test::ShippedVariants shipped = test::shippedVariants();
  const auto cache = CubinCache::open(DEFT_TEST_CACHE);
  config::Config config;
  config.phases = {{"tiles", -1, config::Family::Sm90, 192, 64, 4, kernels::kSm90TallWarps}};
  int compiled = 0;
  for (const spec::Variant &variant : shipped.variants) {
    if (!kernels::checkConfig(kernels::KernelShape::of(variant), config, &target))
      continue;
    checkVariant(variant, {config}, 8, shipped, target, nvrtc, cache);
    ++compiled;
  }
  EXPECT_GE(compiled, 8);
}

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, ShippedKernelsTest,
                         testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace deft::module_cache
