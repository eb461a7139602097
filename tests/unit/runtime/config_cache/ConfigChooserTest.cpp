#include "runtime/config_cache/ConfigChooser.h"

#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

tree::KvTree fewShot(int branches) { return test::levelTree({1, branches}, {4000, 10}); }
TreeClass classOfTree(const tree::KvTree &tree) { return TreeClassifier().classify(tree); }

config::Config wideOnly(int chunkTokens) {
  config::Config config = someConfig(chunkTokens);
  config.phases = {{"wide", -1, config::Family::Sm80, 64, 64, 2, 4}};
  return config;
}

class ConfigChooserTest : public testing::Test {
protected:
  /// Of 8, 16 and 32 branches, chunks of that many tokens.
  ConfigChooser make() {
    auto cache = std::make_shared<ConfigCache>();
    for (const int branches : {8, 16, 32}) {
      Entry entry = someEntry(classOfTree(fewShot(branches)), branches);
      if (branches == 16)
        entry.config = wideOnly(branches);
      cache->add({entry, cache->device(), Origin::User, "file.json"});
    }
    Entry near = someEntry(classOfTree(fewShot(16)), 17); // of another variant
    near.signature.cache.pageSize = 1;
    cache->add({near, cache->device(), Origin::User, "file.json"});
    const auto variant = std::make_shared<const spec::Variant>(test::VariantBuilder(32, 8, 128).variant);
    return {cache, variant, target::findTarget("sm_90a"), someConfig(1)};
  }
  static int chunkFor(ConfigChooser &chooser, int branches) {
    return chooser.choose(fewShot(branches)).config().chunkTokens;
  }
};

TEST_F(ConfigChooserTest, TheConfigFollowsTheClass) {
  ConfigChooser chooser = make();
  EXPECT_EQ(chunkFor(chooser, 8), 8);
  EXPECT_EQ(chunkFor(chooser, 16), 16);
  EXPECT_EQ(chunkFor(chooser, 32), 32);
  EXPECT_EQ(chunkFor(chooser, 2000), 1);
}

TEST_F(ConfigChooserTest, ARunAtAnEdgeKeepsItsConfig) {
  ConfigChooser chooser = make();
  EXPECT_EQ(chunkFor(chooser, 22), 16);
  EXPECT_EQ(chunkFor(chooser, 23), 16);
  EXPECT_EQ(chunkFor(chooser, 22), 16);
  EXPECT_EQ(chunkFor(chooser, 32), 32);
  EXPECT_EQ(chunkFor(chooser, 22), 32);
  chooser.restart();
  EXPECT_EQ(chunkFor(chooser, 22), 16);
}

tree::KvTree prompt(int tokens) { return test::levelTree({1, 16}, {tokens, 10}); }
Coordinates placeOf(int tokens) { return TreeClassifier().measure(prompt(tokens)).coordinates(); }

/// Of one entry with chunk 16 for trees like a prompt of 4,000 tokens alone; others get chunk 1.
ConfigChooser chooserForSome(double within) {
  auto cache = std::make_shared<ConfigCache>();
  Entry entry = someEntry(classOfTree(prompt(4000)), 16);
  entry.onlyFor = {placeOf(4000)};
  entry.within = within;
  cache->add({entry, cache->device(), Origin::User, "file.json"});
  return {cache, std::make_shared<const spec::Variant>(test::VariantBuilder(32, 8, 128).variant),
          target::findTarget("sm_90a"), someConfig(1)};
}

TEST_F(ConfigChooserTest, WhatIsForSomeTreesIsLetGoByAMarginAndTakenUpAgain) {
  ConfigChooser chooser = chooserForSome(kLikeness);
  const auto chunkOf = [&](int tokens) { return chooser.choose(prompt(tokens)).config().chunkTokens; };
  EXPECT_EQ(chunkOf(4000), 16);
  EXPECT_EQ(chunkOf(4400), 16); // a tenth and a bit more: within the margin
  EXPECT_EQ(chunkOf(4800), 1);
  EXPECT_EQ(chunkOf(4400), 1); // back at the edge
  EXPECT_EQ(chunkOf(4100), 16);
  EXPECT_EQ(chooser.changes(), 3);
}

TEST_F(ConfigChooserTest, WhatIsForSomeTreesIsLetGoBeforeItReachesTheTreeItLostOn) {
  ConfigChooser chooser = chooserForSome(distanceToNearest({placeOf(4000)}, placeOf(4300)) / 2);
  const auto chunkOf = [&](int tokens) { return chooser.choose(prompt(tokens)).config().chunkTokens; };
  EXPECT_EQ(chunkOf(4000), 16);
  EXPECT_EQ(chunkOf(4180), 16); // over half way, within the margin
  EXPECT_EQ(chunkOf(4300), 1);
}

TEST_F(ConfigChooserTest, PinnedKernelsStay) {
  ConfigChooser chooser = make();
  EXPECT_EQ(chunkFor(chooser, 8), 8);
  chooser.pinKernels();
  EXPECT_EQ(chunkFor(chooser, 16), 17); // what is near, since its own has other kernels
  EXPECT_EQ(chunkFor(chooser, 32), 32); // which has the same
  EXPECT_EQ(chunkFor(chooser, 2000), 1);
}

TEST_F(ConfigChooserTest, ThereIsAConfigThatKeepsTheKernelsOrTheLastOneStays) {
  ConfigChooser chooser = make();
  EXPECT_EQ(chunkFor(chooser, 16), 16);
  chooser.pinKernels();
  EXPECT_EQ(chunkFor(chooser, 8), 16);
  EXPECT_EQ(chunkFor(chooser, 2000), 16); // not even the heuristic's fits
}

TEST(HaveSameKernelsTest, PlansMayDifferTilesMayNot) {
  config::Config other = someConfig(512);
  other.partition = spec::Partition::Union;
  other.cost.itemUs = 9;
  EXPECT_TRUE(haveSameKernels(someConfig(256), other));
  other.order = config::Order::Alternate;
  EXPECT_TRUE(haveSameKernels(someConfig(256), other));
  config::Config one = someConfig(256);
  one.phases[0].family = other.phases[0].family = config::Family::Sm80;
  one.phases[1].family = other.phases[1].family = config::Family::Sm80;
  other.order = config::Order::Mixed;
  EXPECT_TRUE(haveSameKernels(one, other));
  one.phases[0].family = other.phases[0].family = config::Family::Sm90; // has kernels of its own for it
  EXPECT_FALSE(haveSameKernels(one, other));
  EXPECT_TRUE(haveSameTiles(one, other));
  other = someConfig(256);
  other.phases[1].stages += 1;
  EXPECT_FALSE(haveSameTiles(someConfig(256), other));
  EXPECT_FALSE(haveSameKernels(someConfig(256), wideOnly(256)));
}

} // namespace
} // namespace deft::config_cache
