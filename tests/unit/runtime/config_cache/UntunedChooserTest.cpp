#include "runtime/config_cache/UntunedChooser.h"

#include "compiler/config/DefaultConfig.h"
#include "compiler/config/Legality.h"
#include "compiler/config/SharedMemory.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

const target::Target &hopper() { return *target::findTarget("sm_90a"); }
spec::Variant variantOf(int queryHeads, int kvHeads) {
  return test::VariantBuilder(queryHeads, kvHeads, 128).variant;
}

/// What an H200 gets for a tree.
config::Config chosen(const spec::Variant &variant, const tree::KvTree &tree) {
  UntunedChooser chooser(variant, &hopper(), 132, *config::defaultConfigs(variant, hopper()));
  return chooser.choose(tree);
}

/// Measured on an H200: 27 us by light blocks and 35 by wide ones; 106 by wide ones and 116 by light ones.
TEST(UntunedChooserTest, TheTreeDecidesBetweenWideAndLightBlocks) {
  const spec::Variant variant = variantOf(32, 8);
  EXPECT_TRUE(isLight(chosen(variant, test::levelTree({1, 50}, {4000, 200})).phases[0]));
  EXPECT_FALSE(isLight(chosen(variant, test::levelTree({1, 1024}, {2048, 32})).phases[0]));
}

TEST(UntunedChooserTest, ItSaysWhy) {
  const spec::Variant variant = variantOf(32, 8);
  UntunedChooser chooser(variant, &hopper(), 132, *config::defaultConfigs(variant, hopper()));
  chooser.choose(test::levelTree({1, 50}, {4000, 200}));
  EXPECT_NE(chooser.why().find(" us by the model with items of 64 rows, "), std::string::npos)
      << chooser.why();
  EXPECT_NE(chooser.why().find(" with 128"), std::string::npos) << chooser.why();
}

TEST(UntunedChooserTest, WithoutAChoiceTheFirstIsTakenAndNothingIsSaid) {
  const spec::Variant variant = variantOf(32, 8);
  const std::vector<config::Config> configs = *config::defaultConfigs(variant, hopper());
  const tree::KvTree tree = test::levelTree({1, 50}, {4000, 200});
  for (auto [target, units, count] : {std::tuple(&hopper(), 132, 1), {&hopper(), 0, 2}}) {
    UntunedChooser chooser(variant, target, units, {configs.begin(), configs.begin() + count});
    EXPECT_TRUE(haveSameKernels(chooser.choose(tree), configs.front()));
    EXPECT_EQ(chooser.why(), "");
  }
}

TEST(UntunedChooserTest, ARunKeepsItsKernelsWhereTheyArePinned) {
  const auto variant = std::make_shared<const spec::Variant>(variantOf(32, 8));
  ConfigChooser chooser(std::make_shared<ConfigCache>(), variant, &hopper(),
                        *config::defaultConfigs(*variant, hopper()), 132);
  EXPECT_TRUE(isLight(chooser.choose(test::levelTree({1, 50}, {4000, 200})).config().phases[0]));
  EXPECT_NE(chooser.selection().chosen.why().find("the analytic choice: "), std::string::npos);
  chooser.pinKernels();
  EXPECT_TRUE(isLight(chooser.choose(test::levelTree({1, 1024}, {2048, 32})).config().phases[0]));
  EXPECT_EQ(chooser.changes(), 2);
}

} // namespace
} // namespace deft::config_cache
