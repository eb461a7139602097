#include "compiler/target/Target.h"

#include <gtest/gtest.h>

#include <set>

namespace deft::target {
namespace {

TEST(TargetTest, EveryArchitectureIsFoundByItsName) {
  for (const char *arch : {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120"}) {
    const Target *target = findTarget(arch);
    ASSERT_NE(target, nullptr) << arch;
    EXPECT_EQ(target->arch, arch);
  }
  EXPECT_EQ(findTarget("sm_75"), nullptr);
  EXPECT_EQ(findTarget(""), nullptr);
}

TEST(TargetTest, TablesAreConsistent) {
  std::set<std::string_view> names;
  for (const Target &target : targets()) {
    EXPECT_TRUE(names.insert(target.arch).second) << target.arch;
    EXPECT_EQ(target.smemPerBlock + target.smemReserved, target.smemPerSm) << target.arch;
    EXPECT_LE(target.threadsPerBlock, target.threadsPerSm) << target.arch;
    EXPECT_TRUE(target.has(Mma::Sync)) << target.arch;
    EXPECT_EQ(target.has(Mma::Wgmma), target.arch == "sm_90a") << target.arch;
  }
}

TEST(TargetTest, DevicesGetTheNewestTargetThatTheyRun) {
  const auto archFor = [](int major, int minor) {
    const Target *target = targetForDevice(major, minor);
    return target ? std::string(target->arch) : std::string("none");
  };
  EXPECT_EQ(archFor(8, 0), "sm_80");
  EXPECT_EQ(archFor(8, 6), "sm_86");
  EXPECT_EQ(archFor(8, 7), "sm_86");
  EXPECT_EQ(archFor(8, 9), "sm_89");
  EXPECT_EQ(archFor(9, 0), "sm_90a");
  EXPECT_EQ(archFor(10, 3), "sm_100");
  EXPECT_EQ(archFor(12, 1), "sm_120");
  EXPECT_EQ(archFor(7, 5), "none");
  EXPECT_EQ(archFor(13, 0), "none");
}

TEST(TargetTest, CubinsOfASpecificArchitectureRunOnItAlone) {
  EXPECT_TRUE(runsOn(*findTarget("sm_90a"), 9, 0));
  EXPECT_FALSE(runsOn(*findTarget("sm_90a"), 9, 1));
  EXPECT_TRUE(runsOn(*findTarget("sm_80"), 8, 9));
  EXPECT_FALSE(runsOn(*findTarget("sm_86"), 8, 0));
}

TEST(TargetTest, UnknownNamesGetASuggestion) {
  EXPECT_EQ(suggestTarget("sm_90"), "sm_90a");
  EXPECT_EQ(suggestTarget("sm80"), "sm_80");
  EXPECT_EQ(suggestTarget("compute_100a"), "sm_100");
  EXPECT_EQ(suggestTarget("volta"), std::nullopt);
}

} // namespace
} // namespace deft::target
