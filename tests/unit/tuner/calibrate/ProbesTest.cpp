#include "tuner/calibrate/Probes.h"

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

TEST(ProbesTest, OtherWaysToCutATreeHaveTheFirstConfigsKernels) {
  std::vector untuned{someConfig(), someConfig()};
  untuned[0].phases[0].tileQ = 128;
  for (const ProbeConfig &one : probeConfigs(untuned, DeviceKind::Gpu))
    EXPECT_TRUE(one.isChoice || one.config.phases[0].tileQ == 128);
}

} // namespace
} // namespace deft::calibrate
