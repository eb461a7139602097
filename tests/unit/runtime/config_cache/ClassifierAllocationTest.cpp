/// Classification is part of planning, so it allocates nothing once it has seen a tree of the size. A program
/// of its own: it counts every call of operator new.

#include "runtime/config_cache/TreeClassifier.h"
#include "tests/support/CountAllocations.h"
#include "tests/support/Forest.h"

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

} // namespace
} // namespace deft::config_cache
