#include "tuner/workload/Families.h"

#include "runtime/config_cache/TreeClassifier.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace deft::workload {
namespace {

std::vector<FamilyTree> treesOf(const WorkloadFamily &family) {
  auto trees = familyTrees(family.name);
  EXPECT_TRUE(trees.ok()) << trees.error().message;
  return trees ? std::move(*trees) : std::vector<FamilyTree>();
}

TEST(FamiliesTest, EveryFamilyHasClassesWithSeveralTreesAndHeldOutOnes) {
  ASSERT_EQ(families().size(), 7U);
  for (const WorkloadFamily &family : families()) {
    std::map<std::string, std::pair<int, int>> classes; // searched on, held out
    config_cache::TreeClassifier classifier;
    for (const FamilyTree &tree : treesOf(family)) {
      auto &[searched, heldOut] = classes[classifier.classify(tree.tree).text()];
      ++(tree.isHeldOut ? heldOut : searched);
    }
    int whole = 0;
    for (const auto &[name, counts] : classes)
      whole += counts.first > 0 && counts.second > 0;
    EXPECT_GE(whole, 1) << family.name;
    EXPECT_LE(classes.size(), 20U) << family.name;
  }
}

TEST(FamiliesTest, ATreeCanBeMadeAgainByItsName) {
  for (const WorkloadFamily &family : families())
    for (const FamilyTree &tree : treesOf(family)) {
      const auto again = make(tree.name, tree.seed);
      ASSERT_TRUE(again.ok()) << tree.name;
      EXPECT_EQ(again->tree().nodes(), tree.tree.nodes()) << tree.name;
      EXPECT_EQ(again->tree().queries(), tree.tree.queries()) << tree.name;
    }
}

TEST(FamiliesTest, HeldOutTreesAreNotSearchedOn) {
  for (const WorkloadFamily &family : families()) {
    std::set<std::pair<std::string, std::uint64_t>> searched;
    const std::vector<FamilyTree> trees = treesOf(family);
    for (const FamilyTree &tree : trees)
      if (!tree.isHeldOut)
        searched.insert({tree.name, tree.seed});
    for (const FamilyTree &tree : trees)
      EXPECT_TRUE(!tree.isHeldOut || !searched.contains({tree.name, tree.seed})) << tree.name;
  }
}

TEST(FamiliesTest, AWorkloadOfItsOwnIsSampledAsItGoesOn) {
  const auto trees = workloadTrees("few_shot:prompt=500,branches=4,iterations=60", 0);
  ASSERT_TRUE(trees.ok()) << trees.error().message;
  EXPECT_EQ(trees->size(), 12U);
  int heldOut = 0;
  std::set<std::int64_t> tokens;
  for (const FamilyTree &tree : *trees) {
    heldOut += tree.isHeldOut;
    tokens.insert(tree.tree.tokens());
  }
  EXPECT_EQ(heldOut, 6);
  EXPECT_EQ(tokens.size(), 12U); // another step each
  // One that names its step is that tree.
  const auto one = workloadTrees("few_shot:step=7", 0);
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ((*one)[0].tree.tokens(), 4000 + 20 * 7);
  EXPECT_FALSE((*one)[0].isHeldOut);
}

TEST(FamiliesTest, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_EQ(familyTrees("few_shots").error().message, "no family of trees `few_shots`");
  EXPECT_EQ(familyTrees("few_shots").error().hint, "did you mean `few_shot`?");
  EXPECT_FALSE(workloadTrees("few_shots", 0).ok());
}

} // namespace
} // namespace deft::workload
