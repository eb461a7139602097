#include "runtime/exec/DrawnLists.h"

#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/support/Forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace deft::exec {
namespace {

plan::Paths pathsOf(const tree::KvTree &tree) {
  plan::Plan plan;
  config::Config config;
  config.phases = {{"tiles", -1, config::Family::Sm80, 16, 64, 2, 4}};
  EXPECT_TRUE(plan::Planner().make(tree, {.ratio = 4, .kvHeads = 1, .pageSize = 4}, config, 8, plan));
  plan::Paths paths;
  paths.read(plan);
  return paths;
}

TEST(DrawnListsTest, SlotsAreThoseOfThePositions) {
  tree::KvTree tree = test::levelTree({1, 3}, {30, 10});
  ASSERT_TRUE(
      tree::placeInCache(tree, {.pageSize = 4, .order = tree::PlacementOrder::InOrder, .seed = 1}).ok());
  const plan::Paths paths = pathsOf(tree);
  Inputs inputs;
  for (int page = 0; page < 40; ++page)
    inputs.pageTable.push_back(39 - page);
  for (const bool holes : {false, true}) {
    const DrawnLists drawn = drawLists(paths, inputs, 4, 16, holes, 3);
    EXPECT_EQ(drawn.given().queries, 3);
    for (int query = 0; query < 3; ++query) {
      std::multiset<int> expected, got;
      for (const int position : drawn.selection.of(query, 0))
        for (const plan::PathStretch &stretch : paths.of(query))
          if (position >= stretch.position && position < stretch.position + stretch.tokens)
            expected.insert(static_cast<int>(
                cacheSlotOf(inputs.pageTable.data(), 4, stretch.location + position - stretch.position)));
      for (const int slot : drawn.given().of(query))
        if (slot >= 0)
          got.insert(slot);
      EXPECT_EQ(got, expected);
      EXPECT_EQ(std::set(got.begin(), got.end()).size(), got.size()) << "each once";
      if (!holes) {
        EXPECT_EQ(got.size(), 16u);
      }
    }
  }
}

TEST(DrawnListsTest, WithoutHolesAShortPathIsAllThere) {
  const plan::Paths paths = pathsOf(test::levelTree({1, 2}, {3, 2}));
  Inputs inputs;
  const DrawnLists drawn = drawLists(paths, inputs, 0, 8, false, 1);
  EXPECT_EQ(drawn.selection.counts, (std::vector<std::int32_t>{5, 5}));
}

} // namespace
} // namespace deft::exec
