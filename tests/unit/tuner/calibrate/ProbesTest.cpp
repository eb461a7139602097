#include "tuner/calibrate/Probes.h"

#include "runtime/plan/AgainPrice.h"
#include "runtime/plan/Planner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace deft::calibrate {
namespace {

using config::DeviceKind;

config::Config someConfig() {
  config::Config config;
  config.phases.resize(1);
  return config;
}

TEST(ProbesTest, TreesAreSmallAndThereAreSomeForBothKindsOfDevices) {
  constexpr long long kMostTokens = 150'000; // 600 MB of eight heads of 128 columns in 16 bits
  for (const DeviceKind device : {DeviceKind::Cpu, DeviceKind::Gpu}) {
    const auto trees = probeTrees(device);
    ASSERT_TRUE(trees) << trees.error().message;
    EXPECT_GE(trees->size(), 9U);
    for (const ProbeTree &tree : *trees) {
      EXPECT_LE(tree.tree.tokens(), kMostTokens) << tree.name;
      EXPECT_FALSE(tree.tree.queries().empty()) << tree.name;
    }
  }
}

TEST(ProbesTest, AProcessorChoosesAmongPartitionsAndAGpuAmongItsKernels) {
  const std::vector untuned{someConfig(), someConfig(), someConfig()};
  const auto choices = [&](DeviceKind device) {
    const auto configs = probeConfigs(untuned, device);
    return std::count_if(configs.begin(), configs.end(), [](const ProbeConfig &one) { return one.isChoice; });
  };
  EXPECT_EQ(choices(DeviceKind::Gpu), 3);
  EXPECT_EQ(choices(DeviceKind::Cpu), std::ssize(probeConfigs(untuned, DeviceKind::Cpu)));
}

/// Their times tell the size of the last-level cache.
TEST(ProbesTest, SeveralTilesReadMoreThanTheCachesOfGpusHold) {
  config::Config config = someConfig();
  config.phases[0].family = config::Family::Sm90;
  config.phases[0].tileQ = 128;
  const plan::VariantFacts facts{4, 8};
  double most = 0;
  const auto trees = probeTrees(DeviceKind::Gpu);
  ASSERT_TRUE(trees);
  for (const ProbeTree &tree : *trees)
    most = std::max(most, plan::bytesReadAgain(plan::Planner().read(tree.tree, facts), facts, config));
  EXPECT_GT(most, 2e8);
}

TEST(ProbesTest, OtherWaysToCutATreeHaveTheFirstConfigsKernels) {
  std::vector untuned{someConfig(), someConfig()};
  untuned[0].phases[0].tileQ = 128;
  for (const ProbeConfig &one : probeConfigs(untuned, DeviceKind::Gpu))
    EXPECT_TRUE(one.isChoice || one.config.phases[0].tileQ == 128);
}

} // namespace
} // namespace deft::calibrate
