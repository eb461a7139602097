/// Classification is part of planning, so it allocates nothing once it has seen a tree of the size. A program
/// of its own: it counts every call of operator new.

#include "runtime/config_cache/ConfigChooser.h"
#include "tests/support/CountAllocations.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

TEST(ClassifierAllocationTest, TheSecondTreeOfASizeAllocatesNothing) {
  const tree::KvTree tree = test::randomForest(77, {900, 200, 900});
  TreeClassifier classifier;
  ClassFollower follower;
  const TreeClass first = follower.follow(classifier.measure(tree));
  const long long before = test::allocations;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(follower.follow(classifier.measure(tree)), first);
  EXPECT_EQ(test::allocations, before);
}

TEST(ClassifierAllocationTest, ARunThatStaysInItsClassAllocatesNothing) {
  const tree::KvTree tree = test::levelTree({1, 30}, {4000, 10});
  const auto variant = std::make_shared<const spec::Variant>(test::VariantBuilder(32, 8, 128).variant);
  ConfigChooser chooser(std::make_shared<ConfigCache>(), variant, nullptr, {});
  chooser.choose(tree);
  const long long before = test::allocations;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(chooser.choose(tree).rule(), Rule::Heuristic);
  EXPECT_EQ(test::allocations, before);
}

} // namespace
} // namespace deft::config_cache
