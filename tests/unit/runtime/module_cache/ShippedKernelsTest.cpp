#include "runtime/module_cache/KernelSet.h"

#include "compiler/config/DefaultConfig.h"
#include "compiler/config/Legality.h"
#include "compiler/driver/Compilation.h"
#include "tests/support/ShippedVariants.h"

#include <gtest/gtest.h>

namespace deft::module_cache {
namespace {

/// Every kernel of every shipped spec under its default config, for one architecture.
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
    const auto config = config::defaultConfig(variant, target);
    ASSERT_TRUE(config.ok()) << config.error().message;
    const auto set = compileKernels(cache.get(), **nvrtc, *source, *config, target);
    ASSERT_TRUE(set.ok()) << set.error().message;
    ASSERT_EQ(set->attend.size(), config->phases.size());

    const auto check = [&](const Kernel &kernel) {
      SCOPED_TRACE(kernel.entry);
      EXPECT_FALSE(kernel.cubin.empty());
      EXPECT_FALSE(kernel.resources.spills()) << kernel.resources.spillStoreBytes << " bytes stored, "
                                              << kernel.resources.spillLoadBytes << " loaded";
      EXPECT_EQ(kernel.resources.stackBytes, 0);
      EXPECT_GT(kernel.resources.registers, 0);
      EXPECT_LE(kernel.resources.registers, target.registersPerThread);
      EXPECT_LE(kernel.resources.registers * kernel.threads, target.registersPerSm);
      EXPECT_LE(kernel.smemBytes + kernel.resources.staticSharedBytes, target.smemPerBlock);
    };
    for (const Kernel &kernel : set->attend)
      check(kernel);
    check(set->merge);
    EXPECT_EQ(set->merge.smemBytes, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, ShippedKernelsTest,
                         testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace deft::module_cache
